"""Write docs/study-fields.md: every field that a study's file may have.

A test compares the page with what this would write: `make docs`.
"""

import json
from pathlib import Path

from surefoot.studies.spec.claims import CLAIMS
from surefoot.studies.spec.fields import REQUIRED
from surefoot.studies.spec.study import TABLES

DOCS = Path(__file__).parents[1] / "docs"
HEADINGS = {
    "": "At the top",
    "quick": "`[quick]`",
    "scenarios": "`[[scenarios]]`",
    "scenarios.log": "`log` of a scenario",
    "agents": "`[[agents]]`",
}


def page():
    """Return the page as text."""
    lines = [
        "# Every field of a study's file",
        "",
        "Written by `make docs`; what studies are: studies.md.",
    ]
    for table, fields in TABLES.items():
        lines += [
            "",
            f"## {HEADINGS[table]}",
            "",
            "| field | meaning | if left out |",
            "|---|---|---|",
        ]
        for name, field in fields.items():
            default = (
                "required"
                if field.default is REQUIRED
                else ""
                if field.default is None
                else json.dumps(field.default)
            )
            lines.append(f"| `{name}` | {field.meaning} | {default} |")
    lines += [
        "",
        "## Claims",
        "",
        "How each is judged: src/surefoot/studies/analysis/claims.py.",
        "",
    ]
    lines += ["| name | claim | whose |", "|---|---|---|"]
    lines += [f"| `{name}` | {claim.sentence} | {claim.source} |" for name, claim in CLAIMS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (DOCS / "study-fields.md").write_text(page())
