"""The commands about guards: parse, call, print."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli.console import BAD_DATA, echo, echo_json
from surefoot.errors import InvalidLog, InvalidSetting

if TYPE_CHECKING:
    from surefoot.guard import Guard

guard = typer.Typer(
    no_args_is_help=True, help="A certified ramp for policies that no table describes: plan one, or replay one."
)

File = Annotated[Path, typer.Argument(help="CSV with a header. A return that is missing is an empty field.")]
Low = Annotated[float, typer.Option(help="The lowest return that is possible. It is never inferred from data.")]
High = Annotated[float, typer.Option(help="The highest return that is possible.")]
Floor = Annotated[float | None, typer.Option(help="An absolute floor, in the units of the returns.")]
MaxLoss = Annotated[
    float | None,
    typer.Option("--max-loss", help="A relative floor: the share of the baseline's value that may be lost."),
]
Below = Annotated[float | None, typer.Option(help="A relative floor: the amount below the baseline that may be lost.")]
Delta = Annotated[float, typer.Option(help="The largest probability that the promise fails.")]
Stages = Annotated[str, typer.Option(help="Shares of the episodes, separated by commas, or none.")]
Unit = Annotated[str, typer.Option(help="The name of the units of returns.")]
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
BY_DEFAULT = "0.01,0.1,0.5,1"


@guard.command("plan")
def plan_ramp(
    file: File,
    low: Low,
    high: High,
    floor: Floor = None,
    max_loss: MaxLoss = None,
    below: Below = None,
    delta: Delta = 0.05,
    stages: Stages = BY_DEFAULT,
    evidence: Annotated[
        bool, typer.Option(help="Count the returns as evidence: ALL of a period chosen before they were looked at.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="A picture: episodes to each stage, by the candidate's value.")
    ] = None,
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Forecast how soon a candidate would reach each stage, from past returns of the baseline (column `return`).

    The candidate's returns are taken to be spread like the baseline's, with another mean. A forecast proves nothing.
    """
    from surefoot.guard.forecast import forecast_ramp
    from surefoot.simulation.figures import plot_ramp

    made = _guard(low, high, floor, max_loss, below, delta, stages, unit)
    returns = [ret for _, ret in _rows(file, ("return",))]
    state = made.begin(logged=returns)
    if not state.policies[0].heard:
        raise InvalidLog(f"{file} has no return. Expected at least one.")
    ramp = forecast_ramp(made, state.policies[0].settled, evidence)
    if out is not None:
        plot_ramp(ramp, out, unit)
    if as_json:
        rows = [{"value": value, "episodes": list(found)} for value, found in ramp.rows]
        echo_json({"floor": ramp.floor, "baseline": ramp.baseline, "stages": list(ramp.goals), "rows": rows})
        return
    echo(f"{state.policies[0].heard:,} returns, mean {ramp.baseline:.4g} {unit}".rstrip() + f"; floor {ramp.floor:.4g}")
    echo("Episodes until a candidate plays this share of them, as forecast, by its true value:")
    echo("  value" + "".join(f"{goal:>12.0%}" for goal in ramp.goals))
    for value, found in ramp.rows:
        echo(f"{value:7.4g}" + "".join(f"{'never' if n is None else f'{n:,}':>12}" for n in found))
    if out is not None:
        echo(f"Figure: {out}")


@guard.command("replay")
def replay(
    file: File,
    low: Low,
    high: High,
    floor: Floor = None,
    max_loss: MaxLoss = None,
    below: Below = None,
    delta: Delta = 0.05,
    stages: Stages = BY_DEFAULT,
    baseline: Annotated[str, typer.Option(help="The baseline's name in the column `policy`.")] = "baseline",
    unit: Unit = "",
    as_json: Json = False,
) -> None:
    """Say what is certified now, from ALL tickets in dispatch order: columns `ticket`, `policy` and `return`.

    A candidate is admitted with its first ticket. Exit code 1: a return is outside the declared range.
    """
    made = _guard(low, high, floor, max_loss, below, delta, stages, unit)
    plan = made.plan(made.replay(_tickets(file), baseline))
    if as_json:
        echo_json(
            {
                "tickets": plan.state.tickets.n,
                "open": plan.state.open_tickets,
                "share": plan.share,
                "certified_share": plan.certified_share,
                "lower": plan.lower,
                "upper": plan.upper,
                "safety": plan.safety,
                "frozen": plan.frozen,
                "premise": plan.promise.premise,
                "below": list(plan.below),
                "episodes_to_go": plan.episodes_to_go,
                "alarm": plan.state.alarm or None,
            }
        )
    else:
        echo(plan.explain())
    if plan.state.alarm:
        raise typer.Exit(BAD_DATA)


def _guard(
    low: float,
    high: float,
    floor: float | None,
    max_loss: float | None,
    below: float | None,
    delta: float,
    stages: str,
    unit: str,
) -> "Guard":
    """Return the guard of these options; without a floor, 5 % of the baseline's value may be lost."""
    from surefoot.agents.floors import Below, Relative
    from surefoot.guard import Guard

    if sum(given is not None for given in (floor, max_loss, below)) > 1:
        raise InvalidSetting("Give one of --floor, --max-loss and --below.")
    chosen = Relative(0.05) if max_loss is None else Relative(max_loss)
    try:
        shares = () if stages == "none" else tuple(float(share) for share in stages.split(","))
    except ValueError:
        raise InvalidSetting(f"--stages is {stages!r}, expected shares such as {BY_DEFAULT}, or none.") from None
    kept = floor if floor is not None else chosen if below is None else Below(below)
    return Guard(low=low, high=high, floor=kept, delta=delta, stages=shares, unit=unit)


def _rows(file: Path, needed: tuple[str, ...]) -> Iterator[tuple[dict[str, str], float | None]]:
    """Yield the rows of a CSV file, each with its return; None: it is missing."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            table = csv.DictReader(stream)
            lacking = [name for name in needed if name not in (table.fieldnames or ())]
            if lacking:
                raise InvalidLog(f"{file} has no column {lacking[0]!r}. Expected the columns {', '.join(needed)}.")
            for row in table:
                yield row, _return(file, table.line_num, row["return"])
    except OSError as reason:
        raise InvalidLog(f"{file} cannot be read: {reason.strerror}.") from None
    except (UnicodeDecodeError, csv.Error) as reason:
        raise InvalidLog(f"{file} is not a CSV file in UTF-8 ({reason}).") from None


def _return(file: Path, line: int, text: str | None) -> float | None:
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        expected = "expected a number, or nothing where it is missing"
        raise InvalidLog(f"{file}, line {line}: the return is {text!r}, {expected}.")
    return value


def _tickets(file: Path) -> Iterator[tuple[str, float | None]]:
    """Yield whose each ticket is, with its return; refuse a file in which one is left out, the first ones too."""
    before = -1
    for row, ret in _rows(file, ("ticket", "policy", "return")):
        text = (row["ticket"] or "").strip()
        number = int(text) if text.isdecimal() else None
        if number is None or number != before + 1:
            expected = "a whole number" if number is None else f"{before + 1}"
            raise InvalidLog(
                f"{file}: a ticket is {text!r}, expected {expected}. A ticket that was drawn is never left out: give "
                "it a row with an empty return, in the order in which tickets were drawn, the first of which is 0."
            )
        before = number
        yield row["policy"], ret
