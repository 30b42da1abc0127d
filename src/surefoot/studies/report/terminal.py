"""The summary of a study on standard output: the page's table of results, what is promised, and the verdict."""

from typing import TYPE_CHECKING

from surefoot.agents.promise import UNCERTIFIED
from surefoot.studies.analysis.summary import Rows, summary
from surefoot.studies.analysis.trials import promise_beside_truth, promises_of
from surefoot.studies.analysis.verdict import overall_verdict
from surefoot.studies.report.tables import RowGroup, StudyView, Table, TableCell, results_table
from surefoot.studies.run.store import Results

if TYPE_CHECKING:
    from rich.console import Console


def print_summary(results: Results, rows: Rows | None = None) -> tuple[str, ...]:
    """Print the results of each scenario; then what is promised, and the verdict. Return where a promise was broken.

    `rows` is the summary of these results, where it is there already.
    """
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    rows = summary(results) if rows is None else rows
    table = results_table(StudyView("", results.study, results, results.study.cells, rows, ()))
    for scenario, group in zip(results.study.scenarios, table.groups, strict=True):
        console.print(escape(group.heading), style="bold", highlight=False)
        mine = (row for cell, row in zip(results.study.cells, rows, strict=True) if cell.scenario is scenario)
        there = [row for row in mine if row["trials"]]
        if there:
            _print_scenario(console, there, table, group)
        else:
            console.print("no trials yet\n", highlight=False)
    promises: dict[str, dict[str, None]] = {}
    for cell, row in zip(results.study.cells, rows, strict=True):
        for words in promises_of(results.trials.get(cell.id, ()), promise_beside_truth):
            promises.setdefault(words, {})[row["label"]] = None
    for words, labels in promises.items():
        console.print(f"{', '.join(labels)}: {words}.", highlight=False, markup=False, soft_wrap=True)
    verdict = overall_verdict([results], [rows])
    console.print()
    console.print(verdict.word, style="bold red" if verdict.word == UNCERTIFIED else "bold", highlight=False)
    for line in (verdict.meaning, *verdict.found, *verdict.caveats):
        console.print(line, highlight=False, markup=False)
    for line in verdict.alarms:
        console.print(line, style="bold red", highlight=False, markup=False)
    return verdict.alarms


def _print_scenario(console: "Console", rows: Rows, table: Table, group: RowGroup) -> None:
    """Print the table of one scenario, of which there are trials."""
    from rich.table import Table as Printed

    first = rows[0]
    low, high = (f"{first[key]:.4g}" for key in ("baseline_low", "baseline_high"))
    baseline = low if low == high else f"{low} to {high}"
    levels = f"floor {first['floor']:.4g}, baseline {baseline}, optimum {first['optimum']:.4g} per episode"
    console.print(levels, highlight=False)
    printed = Printed(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for i, heading in enumerate(table.headings):
        printed.add_column(heading, justify="right" if i in table.numeric else "left", overflow="fold")
    for row in group.rows:
        printed.add_row(*map(_in_lines, row))
    console.print(printed)
    spans = " or ".join(f"{episodes:,}" for episodes in sorted({row["episodes"] for row in rows}))
    means = f"Means over runs of {spans} episodes; moments are medians, counted from 0.\n"
    console.print(means, highlight=False)


def _in_lines(cell: str | TableCell) -> str:
    """Return the number in a cell of the page, and that of the baseline alone below it. Its brackets are no markup."""
    from rich.markup import escape

    if isinstance(cell, str):
        return escape(cell)
    return escape("\n".join((cell.text, *(line for line in cell.small if line.startswith("baseline")))))
