"""The commands about guards: parse, call, print."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli.console import BAD_DATA, echo, echo_json
from surefoot.cli.options import Delimiter, Delta, Group, Json, grouped
from surefoot.errors import InvalidLog, InvalidSetting

if TYPE_CHECKING:
    from surefoot.guard import Guard
    from surefoot.logs.cells import Row

guard = typer.Typer(
    no_args_is_help=True,
    help="A certified ramp for policies that no table describes: plan one, or replay one.",
)

File = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, JSON lines or Parquet, with names of columns. A missing return is an empty "
        "field."
    ),
]
STAGES = "0.01,0.1,0.5,1"


@dataclass(frozen=True)
class GuardOptions(Group):
    """What a guard promises."""

    low: Annotated[
        float,
        typer.Option(help="The lowest return that is possible. It is never inferred from data."),
    ]
    high: Annotated[float, typer.Option(help="The highest return that is possible.")]
    floor: Annotated[
        float | None, typer.Option(help="An absolute floor, in the units of the returns.")
    ] = None
    max_loss: Annotated[
        float | None,
        typer.Option(help="A relative floor: the share of the baseline's value that may be lost."),
    ] = None
    below: Annotated[
        float | None,
        typer.Option(help="A relative floor: the amount below the baseline that may be lost."),
    ] = None
    delta: Delta = 0.05
    stages: Annotated[
        str, typer.Option(help="Shares of the episodes, separated by commas, or none.")
    ] = STAGES
    unit: Annotated[str, typer.Option(help="The name of the units of returns.")] = ""

    def guard(self) -> "Guard":
        """Return the guard of these options; without a floor, 5 % of the baseline's value may be
        lost.
        """
        from surefoot.agents.floors import Below, Floor, Relative
        from surefoot.guard import Guard

        given: list[Floor] = [] if self.floor is None else [self.floor]
        relative = ((Relative, self.max_loss), (Below, self.below))
        given += [kind(most) for kind, most in relative if most is not None]
        if len(given) > 1:
            raise InvalidSetting("Give one of --floor, --max-loss and --below.")
        try:
            shares = (
                ()
                if self.stages == "none"
                else tuple(float(share) for share in self.stages.split(","))
            )
        except ValueError:
            raise InvalidSetting(
                f"--stages is {self.stages!r}, expected shares such as {STAGES}, or none."
            ) from None
        return Guard(
            low=self.low,
            high=self.high,
            floor=given[0] if given else Relative(0.05),
            delta=self.delta,
            stages=shares,
            unit=self.unit,
        )


@guard.command("plan")
@grouped
def plan_ramp(
    file: File,
    promised: GuardOptions,
    *,
    evidence: Annotated[
        bool,
        typer.Option(
            help="Count the returns as evidence: ALL of a period chosen before they were looked at."
        ),
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(help="A picture: episodes to each stage, by the candidate's value."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The baseline's name in the column `policy`, where the file has one."),
    ] = None,
    delimiter: Delimiter = None,
    as_json: Json = False,
) -> None:
    """Forecast how soon a candidate would reach each stage, from past returns of the baseline
    (column `return`).

    The candidate's returns are taken to be spread like the baseline's, with another mean. A
    forecast proves nothing.
    """
    from surefoot.guard.forecast import forecast_ramp
    from surefoot.show.figures import plot_ramp

    made = promised.guard()
    known = made.begin(logged=_past(file, policy, delimiter)).policies[0]
    if not known.heard:
        raise InvalidLog(f"{file} has no return. Expected at least one.")
    ramp = forecast_ramp(made, known.settled, evidence, known.missing)
    if out is not None:
        plot_ramp(ramp, out, made.unit)
    if as_json:
        rows = [{"value": value, "episodes": list(found)} for value, found in ramp.rows]
        about = {
            "floor": ramp.floor,
            "baseline": ramp.baseline,
            "returns": known.heard,
            "missing": known.missing,
        }
        echo_json({**about, "stages": list(ramp.goals), "rows": rows})
        return
    unit = made.unit
    lost = f"; {known.missing:,} missing, counted as the worst returns" if known.missing else ""
    echo(f"{known.heard:,} returns, mean {ramp.baseline:.4g} {unit}".rstrip() + lost)
    of = f", which is {made.floor} if it is worth that mean" if made.rule.relative else ""
    echo(f"Floor {ramp.floor:.4g} {unit}".rstrip() + of)
    echo("Episodes until a candidate plays this share of them, as forecast, by its true value:")
    head = f"value ({unit})" if unit else "value"
    wide = max(7, len(head))
    echo(f"{head:>{wide}}" + "".join(f"{goal:>12.0%}" for goal in ramp.goals))
    for value, found in ramp.rows:
        echo(
            f"{value:{wide}.4g}"
            + "".join(f"{'never' if n is None else f'{n:,}':>12}" for n in found)
        )
    if out is not None:
        echo(f"Figure: {out}")


@guard.command("replay")
@grouped
def replay(
    file: File,
    promised: GuardOptions,
    *,
    baseline: Annotated[
        str, typer.Option(help="The baseline's name in the column `policy`.")
    ] = "baseline",
    logged: Annotated[
        Path | None,
        typer.Option(
            help="A file of the baseline's returns before the first ticket (column `return`)."
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="A saved state of this very guard (`guard.save`), which the tickets follow."
        ),
    ] = None,
    delimiter: Delimiter = None,
    as_json: Json = False,
) -> None:
    """Say what is certified now, from ALL tickets in dispatch order: columns `ticket`, `policy` and
    `return`.

    A candidate is admitted with its first ticket. Exit code 1: a return is outside the declared
    range.
    """
    made = promised.guard()
    before = None if logged is None else _past(logged, None, delimiter)
    begun = None if state is None else made.load(state)
    first = 0 if begun is None else begun.tickets.n
    with closing(_tickets(file, baseline, first, delimiter)) as tickets:
        plan = made.plan(made.replay(tickets, baseline, before, begun))
    if as_json:
        echo_json(
            {
                "tickets": plan.state.tickets.n,
                "open": plan.state.open_tickets,
                "share": plan.share,
                "certified_share": plan.certified_share,
                "lower": plan.lower,
                "compared": plan.compared,
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
        if baseline != "baseline":
            echo(f"In what follows the baseline is {baseline!r} of {file}.")
        echo(plan.explain())
    if plan.state.alarm:
        raise typer.Exit(BAD_DATA)


def _return(row: "Row") -> float | None:
    """Return the return of a row; None where it is missing."""
    from surefoot.logs.text import PLAINLY, finite_number

    text = row.cells["return"]
    value = None if text is None else finite_number(text)
    if text is not None and value is None:
        expected = "expected a number, or nothing where it is missing"
        raise InvalidLog(f"{row.place}: the return is {text[:60]!r}, {expected}. {PLAINLY}.")
    return value


def _past(file: Path, policy: str | None, delimiter: str | None) -> list[float | None]:
    """Return the baseline's returns in a file. One with several policies must say which of them
    is the baseline.
    """
    from surefoot.logs.cells import rows_of

    needed, also = (("return",), ("policy",)) if policy is None else (("return", "policy"), ())
    with closing(rows_of(file, needed, also, delimiter)) as rows:
        found = [(_policy(row), _return(row)) for row in rows]
    names = dict.fromkeys(name for name, _ in found)
    if policy is None and len(names) > 1:
        raise InvalidLog(
            f"{file} has returns of several policies: {', '.join(names)}. Expected those of the "
            "baseline alone. Say which it is with --policy, or give a file of its returns."
        )
    if policy is not None and policy not in names:
        raise InvalidLog(
            f"{file} has no return of {policy!r}. Its policies: {', '.join(names) or 'none'}."
        )
    return [ret for name, ret in found if policy is None or name == policy]


def _tickets(
    file: Path, baseline: str, first: int, delimiter: str | None
) -> Generator[tuple[str, float | None], None, None]:
    """Yield whose each ticket is, with its return; refuse a file in which one is left out, the
    first ones too.
    """
    from surefoot.logs.cells import rows_of

    names: dict[str, None] = {}
    with closing(rows_of(file, ("ticket", "policy", "return"), (), delimiter)) as rows:
        for due, row in enumerate(rows, first):
            _require_ticket(row, due, first)
            name = _policy(row)
            if not name or name == "baseline" != baseline:
                expected = "the name of a policy"
                if name:
                    expected += (
                        f": with --baseline {baseline} no other policy may be called baseline"
                    )
                raise InvalidLog(f"{row.place}: the policy is {name[:60]!r}, expected {expected}.")
            names.setdefault(name)
            yield name, _return(row)
    if baseline not in names and not first:
        raise InvalidLog(
            f"{file} has no ticket of the baseline, {baseline!r}. Its policies: "
            f"{', '.join(names) or 'none'}. Say which of them is the baseline with --baseline."
        )


def _policy(row: "Row") -> str:
    """Return the name of a row's policy; "" where there is none."""
    name = row.cells.get("policy") or ""
    if name != name.strip() or not name.isprintable():
        raise InvalidLog(
            f"{row.place}: the policy is {name[:60]!r}, expected a name that can be printed, "
            "without spaces around it."
        )
    return name


def _require_ticket(row: "Row", due: int, first: int) -> None:
    """Refuse a row whose ticket is not the one that is due."""
    from surefoot.logs.text import whole_number

    text = row.cells["ticket"] or ""
    ticket = whole_number(text)
    if ticket is None or ticket < 0:
        raise InvalidLog(
            f"{row.place}: the ticket is {text[:60]!r}, expected a whole number, here {due}."
        )
    if ticket < due:
        raise InvalidLog(
            f"{row.place}: ticket {ticket} comes twice, or too late: expected {due}. A ticket has "
            "one row, in the order in which tickets were drawn."
        )
    if ticket > due:
        raise InvalidLog(
            f"{row.place}: the ticket is {ticket}, expected {due}. A ticket that was drawn is "
            "never left out: give it a row with an empty return, in the order in which tickets "
            f"were drawn, the first of which is {first}."
        )
