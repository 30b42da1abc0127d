"""Runs as rows: the same numbers for people (a table) and for programs (JSON)."""

from collections.abc import Sequence
from typing import Any

from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.simulation.by_name import Facts
from surefoot.simulation.run import Run


def rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """One row a run, and first the baseline played for ever, so that every number has the baseline's next to it.

    Returns and regret are in the user's own units.
    """
    table: list[dict[str, Any]] = []
    known = next((run for run in runs if run.baseline is not None), None)
    if known is not None and known.baseline is not None and known.optimum is not None:
        below = known.floor is not None and known.baseline < known.floor - VIOLATION_TOLERANCE
        if known.budget is not None and known.baseline_cost is not None:
            below = known.baseline_cost > known.budget + VIOLATION_TOLERANCE
        table.append(
            {
                "learner": "baseline alone",
                "episodes": known.episodes,
                "violations": None if known.violations is None else known.episodes * below,
                "regret": known.units.scale * known.episodes * (known.optimum - known.baseline),
                "mean_return": known.units.to_user(known.baseline),
                "smallest_return": known.units.to_user(known.baseline),
                "first_off_baseline": None,
                "first_optimistic": None,
                "seconds": None,
                "smallest_sum": _smallest(known),
                "told": None,
                "cost": known.baseline_cost,
                "promise": "none needed: it is what you have today",
                "interrupted": False,
                "alarm": None,
            }
        )
    for run in runs:
        table.append(
            {
                "learner": run.agent,
                "episodes": run.episodes,
                "violations": run.violations,
                "regret": None if run.regret is None else run.units.scale * run.regret,
                "mean_return": run.units.to_user(run.mean_value),
                "smallest_return": None if run.min_value is None else run.units.to_user(run.min_value),
                "first_off_baseline": run.off_baseline,
                "first_optimistic": run.first_optimistic,
                "seconds": run.seconds,
                "smallest_sum": None if run.min_cumulative is None else _unit(run) * run.min_cumulative,
                "told": "yes" if run.told else "no",
                "cost": run.max_cost,
                "promise": str(run.promise),
                "interrupted": run.interrupted,
                "alarm": None if run.alarm is None else str(run.alarm),
            }
        )
    return table


def _unit(run: Run) -> float:
    """What one unit of the sum is worth: costs are in their own."""
    return 1.0 if run.budget is not None else run.units.scale


def _smallest(run: Run) -> float | None:
    """The smallest sum of the baseline alone: that of its first episode, or, if it is below the floor, of all."""
    margin = None
    if run.budget is not None and run.baseline_cost is not None:
        margin = run.budget - run.baseline_cost
    elif run.floor is not None and run.baseline is not None:
        margin = run.baseline - run.floor
    return None if margin is None else _unit(run) * min(margin, run.episodes * margin)


COLUMNS = (
    ("learner", "learner", "{}"),
    ("episodes", "episodes\nplayed", "{:,}"),
    ("violations", "episodes\nbelow floor", "{:,}"),
    ("regret", "regret\n(return)", "{:,.0f}"),
    ("mean_return", "return an\nepisode", "{:.4f}"),
    ("first_off_baseline", "off baseline\nat episode", "{:,}"),
    ("first_optimistic", "optimistic\nat episode", "{:,}"),
    ("smallest_sum", "smallest\nsum", "{:,.2f}"),
    ("told", "told\nV^b", "{}"),
    ("cost", "largest\ncost", "{:.4f}"),
    ("seconds", "time\n(s)", "{:.1f}"),
)


MOST_COLUMNS = 7  # with more, short headings, so that a line fits
SHORT = {
    "violations": "below\nfloor",
    "regret": "regret\n(return)",
    "mean_return": "return\neach",
    "smallest_sum": "least\nsum",
    "first_off_baseline": "off base-\nline at",
    "first_optimistic": "optimist\nat",
}


def print_runs(runs: Sequence[Run]) -> None:
    """The table on standard output, its marks below it."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    uneven = len({run.episodes for run in runs}) > 1  # somebody was interrupted
    told = any(run.told for run in runs)
    in_sum = any(run.in_sum for run in runs)
    costs = any(run.budget is not None for run in runs)
    shown = {"episodes": uneven, "smallest_sum": in_sum, "told": told, "cost": costs, "seconds": not (told or in_sum)}
    columns = [column for column in COLUMNS if shown.get(column[0], True)]
    many = len(columns) > MOST_COLUMNS
    for key, heading, _ in columns:
        first = heading == "learner"
        words = SHORT.get(key, heading) if many else heading
        table.add_column(
            "over\nbudget" if costs and key == "violations" else words,
            justify="left" if first else "right",
            no_wrap=first,
            overflow="fold",
        )
    for row in rows(runs):
        cells = ["–" if row[key] is None else shape.format(row[key]) for key, _, shape in columns]
        table.add_row(*cells)
    console.print(table)
    console.print()
    for promise in dict.fromkeys(run.promise for run in runs):
        learners = ", ".join(run.agent for run in runs if run.promise == promise)
        console.print(f"{learners}: {promise}.", highlight=False, soft_wrap=True)
    if told:
        console.print("told V^b: does the learner know what the baseline is worth?", soft_wrap=True)
    if in_sum:
        words = "least sum: of what episodes were above the floor, less what they were below, at its lowest."
        console.print(words, soft_wrap=True)
    for run in runs:
        if run.alarm is not None:
            console.print(f"{run.agent}: {run.alarm}", style="bold red", highlight=False, soft_wrap=True)
        if run.interrupted:
            console.print(f"{run.agent} was interrupted after {run.episodes:,} episodes.", style="bold red")


def print_worlds(table: Sequence[Facts]) -> None:
    """The families, a line each. Values are returns in 0..H at the default sizes."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("world", "S", "A", "H", "optimum", "baseline", "floor", ""):
        shown.add_column(heading, justify="left" if heading in ("world", "") else "right")
    for row in table:
        sizes = (str(row.S), str(row.A), str(row.H))
        values = (f"{row.optimum:.4f}", f"{row.baseline:.4f}", f"{row.floor:.4f}")
        shown.add_row(row.name, *sizes, *values, row.summary)
    Console().print(shown)
