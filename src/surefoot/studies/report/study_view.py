"""What the sections of the page share: results with what was made of them, and the mark below a learner's name."""

from typing import Any, NamedTuple

from surefoot.studies.analysis.claims import Verdict
from surefoot.studies.analysis.promises import UNCERTIFIED
from surefoot.studies.report.html import Html, said
from surefoot.studies.run.store import Results
from surefoot.studies.spec.study import Study


class StudyView(NamedTuple):
    """A study's results, and what was made of them."""

    anchor: str
    results: Results
    verdicts: list[Verdict]
    rows: list[dict[str, Any]]

    @property
    def study(self) -> Study:
        """What was asked."""
        return self.results.study


def tag(words: str) -> Html:
    """A short mark below a learner's name."""
    bad = " bad" * words.startswith((UNCERTIFIED, "PROMISE BROKEN", "no promise"))
    return Html(f'<small class="tag{bad}">{said(words)}</small>')
