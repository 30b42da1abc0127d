"""All text that the commands print about runs, worlds, logs and baselines; `rows` has the same
numbers for programs.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from surefoot.base.text import how_many
from surefoot.base.validation import VIOLATION_TOLERANCE, at_least
from surefoot.cli.console import echo, say
from surefoot.model.steps import step_name
from surefoot.run.by_name import Facts
from surefoot.run.run import Run

if TYPE_CHECKING:
    from surefoot.logs.baseline_file import Baseline
    from surefoot.logs.log_counts import LogCounts
    from surefoot.worlds.registry import Family
    from surefoot.worlds.tabular_mdp import TabularMDP


def rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row per run, and first the baseline alone, so that every number can be compared
    with the baseline's.

    Returns and regret are in the user's units. Programs read these keys: they keep their names.
    """
    known = [run for run in runs if run.baseline is not None and run.optimum is not None]
    return [_baseline_row(run) for run in known[:1]] + [
        {
            "agent": run.agent,
            "episodes": run.episodes,
            "violations": run.violations,
            "regret": run.regret,
            "mean_return": run.mean_value,
            "smallest_return": run.min_value,
            "first_off_baseline": run.off_baseline,
            "first_optimistic": run.first_optimistic,
            "seconds": run.seconds,
            "smallest_sum": run.min_cumulative,
            "knows_baseline_value": "yes" if run.knows_baseline_value else "no",
            "cost": run.max_cost,
            "promise": run.promise_in_words,
            "interrupted": run.interrupted,
            "alarm": None if run.alarm is None else str(run.alarm),
        }
        for run in runs
    ]


def _baseline_row(run: Run) -> dict[str, Any]:
    """Return the row of the baseline alone, in as many episodes. Its smallest sum is that of its
    first episode or, if it is below the floor, of all.
    """
    assert run.baseline is not None
    assert run.optimum is not None
    margin = None
    if run.budget is not None and run.baseline_cost is not None:
        margin = run.budget - run.baseline_cost
    elif run.floor is not None:
        margin = run.baseline - run.floor
    below = margin is not None and margin < -VIOLATION_TOLERANCE
    return {
        "agent": "baseline alone",
        "episodes": run.episodes,
        "violations": None if run.violations is None else run.episodes * below,
        "regret": run.episodes * (run.optimum - run.baseline),
        "mean_return": run.baseline,
        "smallest_return": run.baseline,
        "first_off_baseline": None,
        "first_optimistic": None,
        "seconds": None,
        "smallest_sum": None if margin is None else min(margin, run.episodes * margin),
        "knows_baseline_value": None,
        "cost": run.baseline_cost,
        "promise": "none needed: it is what you have today",
        "interrupted": False,
        "alarm": None,
    }


COLUMNS = {  # keys of `rows`: the heading, and how a value is written
    "agent": ("agent", "{}"),
    "episodes": ("episodes\nplayed", "{:,}"),
    "violations": ("below\nfloor", "{:,}"),
    "regret": ("regret\n(return)", "{:z,.0f}"),
    "mean_return": ("mean\nreturn", "{:.4f}"),
    "first_off_baseline": ("off base-\nline at", "{:,}"),
    "first_optimistic": ("opti-\nmistic at", "{:,}"),
    "smallest_sum": ("least\nsum", "{:,.2f}"),
    "knows_baseline_value": ("knows\nV^b", "{}"),
    "cost": ("largest\ncost", "{:.4f}"),
    "seconds": ("time\n(s)", "{:.1f}"),
}
WIDEST = 1000  # more than any line needs


def print_runs(runs: Sequence[Run]) -> None:
    """Print the table of runs, and below it promises, explanations and alarms."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    knows = any(run.knows_baseline_value for run in runs)
    in_sum = any(run.in_sum for run in runs)
    costs = any(run.budget is not None for run in runs)
    shown = {
        "episodes": len({run.episodes for run in runs}) > 1,  # some run was interrupted
        "smallest_sum": in_sum,
        "knows_baseline_value": knows,
        "cost": costs,
        "seconds": not (knows or in_sum),
    }
    columns = {key: column for key, column in COLUMNS.items() if shown.get(key, True)}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key, (heading, _) in columns.items():
        first = key == "agent"
        head = "over\nbudget" if costs and key == "violations" else heading
        table.add_column(head, justify="left" if first else "right", no_wrap=first, overflow="fold")
    for row in rows(runs):
        table.add_row(
            *(
                "–" if row[key] is None else shape.format(row[key])
                for key, (_, shape) in columns.items()
            )
        )
    endless = console.options.update(max_width=WIDEST)
    # no number is broken
    console.width = max(console.width, console.measure(table, options=endless).maximum)
    console.print(table)
    console.print()
    tell = partial(console.print, highlight=False, soft_wrap=True)
    for promise in dict.fromkeys(run.promise_in_words for run in runs):
        agents = ", ".join(run.agent for run in runs if run.promise_in_words == promise)
        tell(f"{agents}: {promise}.")
    for footnote in dict.fromkeys(run.promise.footnote for run in runs if run.promise.footnote):
        tell(f"{footnote}.")
    if knows:
        console.print("knows V^b: was the agent given the baseline's value?", soft_wrap=True)
    if in_sum:
        excess = "budget minus expected cost" if costs else "expected return minus floor"
        text = f"least sum: the lowest value of the sum of ({excess}) over the episodes so far."
        console.print(text, soft_wrap=True)
    for run in runs:
        if run.alarm is not None:
            tell(f"{run.agent}: {run.alarm}", style="bold red")
        if run.interrupted:
            console.print(
                f"{run.agent} was interrupted after {run.episodes:,} episodes.", style="bold red"
            )


def print_worlds(table: Sequence[Facts]) -> None:
    """Print one line per family. Values are returns at the default sizes, in the user's units."""
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


def print_world(chosen: "Family", row: Facts) -> None:
    """Print the story of one family, its values and its sizes."""
    echo(f"{chosen.name}\n\n{chosen.story}\n")
    echo(f"S = {row.S}, A = {row.A}, H = {row.H}; returns lie in {row.lowest:g}..{row.highest:g}.")
    print_values({"floor": row.floor, "baseline": row.baseline, "optimum": row.optimum})
    sizes = ", ".join(f"{size}={default}" for size, default in chosen.sizes.items())
    echo(f"Sizes that can be set: {sizes or 'none'}")


def print_task(world: "TabularMDP", values: Mapping[str, float | None]) -> None:
    """Print the sizes of a world and the values that runs in it are compared with."""
    known = world.problem
    returns = f"returns lie in {known.lowest:g}..{known.units.amount(known.highest)}"
    echo(f"{world.name}: S = {world.S}, A = {world.A}, H = {world.H}; {returns}.")
    print_values(values)
    echo("")


def print_values(values: Mapping[str, float | None]) -> None:
    """Print values by their names in one line; those that are None are left out."""
    echo(", ".join(f"{name} {value:.4f}" for name, value in values.items() if value is not None))


def print_log(log: "LogCounts") -> None:
    """Print the size of a log, and the notes about it."""
    from surefoot.logs.checking import sizes

    echo(f"{how_many(log.rows, 'row')}, {how_many(log.episodes, 'episode')}: {sizes(log)}")
    for note in log.notes:
        echo(f"note: {note}")


def print_learnt(explanation: str, found: Mapping[str, Any]) -> None:
    """Print what was learnt from a log; `found` is the report."""
    say(explanation)
    say(logged_text(found))
    echo("Premises, which nothing here checks unless a line says so:")
    for premise in found["premises"]:
        say(f"- {premise}")


def logged_text(found: Mapping[str, Any]) -> str:
    """Say what the returns of a log show about the policy that wrote it; `found` is the report."""
    lower, sure = at_least(found["logged_certified"]), at_least(1 - found["delta"])
    text = (
        f"The logged policy had a mean return of {found['logged_mean_return']:.6g} per episode. "
        f"These returns alone certify that it is worth at least {lower} (with probability {sure}, "
        "separately from the statement above, and only if a single policy wrote the whole log)."
    )
    proved = found["certified_value"]
    if proved is not None and proved < found["logged_certified"]:
        text += (
            " This is more than is certified for the learnt policy, which has never been played."
        )
    return text


def print_baseline(baseline: "Baseline", table: Sequence[Mapping[str, Any]]) -> None:
    """Print what is certified about a baseline, and its rules: the actions of each step and
    state.
    """
    say(baseline.words)
    say("Steps count from 1 here, as in explanations; in arrays, files and JSON from 0.")
    for rule in table:
        actions = ", ".join(
            f"action {label} {share:.1%}" for label, share in rule["actions"].items()
        )
        echo(f"{step_name(baseline.problem, rule['step'])}, state {rule['state']}: {actions}")
