"""The summary of a study on standard output: the page's table of results, what is promised, and
the verdict.
"""

from typing import TYPE_CHECKING

from surefoot.agents.promise import UNCERTIFIED
from surefoot.studies.analysis.summary import Rows, summary
from surefoot.studies.analysis.trials import grouped, promise_beside_truth, promises_of
from surefoot.studies.analysis.verdict import overall_verdict
from surefoot.studies.report.tables import columns, result
from surefoot.studies.run.store import Results

if TYPE_CHECKING:
    from rich.console import Console


def print_summary(results: Results) -> tuple[str, ...]:
    """Print the results of each scenario; then what is promised, and the verdict. Return where a
    promise was broken.
    """
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    rows = summary(results)
    for scenario in results.study.scenarios:
        console.print(escape(scenario.heading), style="bold")
        mine = [row for row in rows if row["scenario"] == scenario.id]
        if any(row["trials"] for row in mine):
            _print_scenario(console, mine, columns(rows))
        else:
            console.print("no trials yet\n")
    said = grouped(
        (words, row["label"])
        for cell, row in zip(results.study.cells, rows, strict=True)
        for words in promises_of(results.trials.get(cell.id, ()), promise_beside_truth)
    )
    for words, labels in said.items():
        console.print(f"{', '.join(dict.fromkeys(labels))}: {words}.", markup=False, soft_wrap=True)
    verdict = overall_verdict([results], [rows])
    console.print()
    console.print(verdict.word, style="bold red" if verdict.word == UNCERTIFIED else "bold")
    for line in (verdict.meaning, *verdict.found, *verdict.caveats):
        console.print(line, markup=False)
    for line in verdict.alarms:
        console.print(line, style="bold red", markup=False)
    return verdict.alarms


def _print_scenario(console: "Console", rows: Rows, headings: dict[str, str]) -> None:
    """Print the table of one scenario, of which there are trials: numbers, and those of the
    baseline alone below.
    """
    from rich.markup import escape
    from rich.table import Table

    there = [row for row in rows if row["trials"]]
    first = there[0]
    low, high = (f"{first[key]:.4g}" for key in ("baseline_low", "baseline_high"))
    baseline = low if low == high else f"{low} to {high}"
    console.print(
        f"floor {first['floor']:.4g}, baseline {baseline}, optimum {first['optimum']:.4g} per "
        "episode"
    )
    printed = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for heading, kind in headings.items():
        printed.add_column(heading, justify="right" if kind == "n" else "left", overflow="fold")
    for row in rows:
        cells = result(row, headings)
        printed.add_row(
            *(
                # no markup
                escape("\n".join((text, *(line for line in small if line.startswith("baseline")))))
                for text, *small in cells
            )
        )
    console.print(printed)
    spans = " or ".join(f"{episodes:,}" for episodes in sorted({row["episodes"] for row in there}))
    console.print(f"Means over runs of {spans} episodes; moments are medians, counted from 0.\n")
