"""The command: parse, call, print. docs/command.md says what the exit codes mean.

A command has one parameter per option, however many there are: typer reads the options from the
signature.
"""

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.__about__ import __version__
from surefoot.cli.console import (
    BAD_DATA,
    FINE,
    INTERRUPTED,
    PROMISE_BROKEN,
    USAGE,
    echo,
    echo_json,
    end_by_promises,
    say,
    warn,
)
from surefoot.cli.forecasts import forecast
from surefoot.cli.guards import guard
from surefoot.cli.logs import baseline, logs, show
from surefoot.cli.options import Delta, Json, Sizes
from surefoot.cli.studies import report, results, run, studies
from surefoot.errors import InvalidSetting, PremiseContradicted, SurefootError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surefoot.run.run import Run

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(logs, name="logs")
app.add_typer(guard, name="guard")
app.command()(baseline)
app.command()(show)
for command in (forecast, studies, run, report, results):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"surefoot {__version__}")
        raise typer.Exit(FINE)


@app.callback()
def surefoot(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Learn online in a running process; with high probability no episode's policy is below a
    floor.
    """


@app.command()
def demo(
    seed: Annotated[
        int, typer.Option(min=0, help="The seed of the draws; the world stays the same.")
    ] = 0,
    episodes: Annotated[
        int, typer.Option(min=1, help="Episodes with sharp certificates.")
    ] = 20_000,
    paper_episodes: Annotated[
        int, typer.Option(min=1, help="Episodes with the paper's bounds.")
    ] = 100_000_000,
    scale: Annotated[
        float, typer.Option(help="Factor of the paper's bonus; NOT CERTIFIED unless it is 1.")
    ] = 1.0,
    out: Annotated[Path, typer.Option(help="Where the figure goes: .png, .svg or .pdf.")] = Path(
        "surefoot-demo.png"
    ),
    as_json: Json = False,
) -> None:
    """Show StepMix, EpsMix and BPI-UCBVI with sharp certificates and with the paper's bounds,
    side by side.
    """
    from surefoot.cli import demo as first_look
    from surefoot.cli.tables import print_runs, print_values, rows
    from surefoot.run.by_name import values_of
    from surefoot.show.figures import plot_sides, require_target

    require_target(out)
    sides = list(first_look.demo(seed, episodes, paper_episodes, scale))
    if not sides:
        warn("Interrupted before the first episode.")
        raise typer.Exit(INTERRUPTED)
    everyone = [run for _, runs in sides for run in runs]
    facts = values_of(everyone)
    if as_json:
        about = {
            "setting": first_look.SETTING,
            "delta": first_look.DELTA,
            "seed": seed,
            "figure": str(out),
        }
        table = [{"bounds": title, **row} for title, runs in sides for row in rows(runs)]
        echo_json({**about, **facts, "rows": table})
    else:
        say(f"{first_look.SETTING}. {first_look.STORY}")
        echo("Returns lie in 0..8.")
        print_values(facts)
        for title, runs in sides:
            echo(f"\n{title}, {runs[0].episodes:,} episodes")
            print_runs(runs)
    plot_sides(sides, out, title=first_look.SETTING)
    if not as_json:
        echo(f"Figure: {out}")
    if everyone[-1].interrupted:
        warn("Interrupted: runs that had not begun were left out.")
    _end_by_runs(everyone)


@app.command()
def worlds(
    name: Annotated[str | None, typer.Argument(help="A world to describe.")] = None,
    as_json: Json = False,
) -> None:
    """List all worlds with their optimum, usual baseline and floor; or describe one of them."""
    from dataclasses import asdict

    from surefoot.cli.tables import print_world, print_worlds
    from surefoot.run import by_name
    from surefoot.worlds.registry import family

    if name is None:
        table = by_name.all_facts()
        if as_json:
            echo_json([asdict(row) for row in table])
        else:
            print_worlds(table)
        return
    chosen = family(name)
    row = by_name.facts(chosen, chosen.build())
    if as_json:
        echo_json({**asdict(row), "story": chosen.story, "sizes": chosen.sizes})
    else:
        print_world(chosen, row)


@app.command("try")
def try_(
    name: Annotated[str, typer.Argument(help="A world; `surefoot worlds` lists them.")],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            help="An agent; repeatable. There are: stepmix, epsmix, bpi-ucbvi, step-no-mix, dope, "
            "optpess-lp, budget-exploration, conservative-ucbvi, bpi-ucbvi-menard. "
            "Default: stepmix."
        ),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option(help="The floor, in the units of the world. Default: the world's own."),
    ] = None,
    delta: Delta = 0.05,
    bounds: Annotated[
        str,
        typer.Option(
            help="kl: sharp certificates (DOPE and OptPess-LP: the Maurer-Pontil box); paper: the "
            "printed constants. bpi-ucbvi-menard has bounds of its own, "
            "whatever is chosen."
        ),
    ] = "kl",
    scale: Annotated[
        float, typer.Option(help="Factor of the bonus or radius; NOT CERTIFIED unless it is 1.")
    ] = 1.0,
    pooled: Annotated[
        bool, typer.Option(help="Pool counts over steps (in stationary worlds).")
    ] = False,
    episodes: Annotated[
        int, typer.Option(min=1, help="How many episodes each agent plays.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the draws.")] = 0,
    size: Sizes = None,
    out: Annotated[
        Path | None, typer.Option(help="Also draw a figure: .png, .svg or .pdf.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Write every plan of the one agent to this file, for `surefoot certify`."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run agents in one of the worlds, beside the one that is always optimistic, and print the
    table of `demo`.
    """
    from surefoot.cli.tables import print_runs, print_task, rows
    from surefoot.run import by_name
    from surefoot.show.figures import plot_returns, require_target
    from surefoot.worlds.registry import world as build_world

    if out is not None:
        require_target(out)
    world = build_world(name, **by_name.parse_sizes(name, size or []))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        family = by_name.build_bounds(bounds, scale)
        runs = by_name.try_agents(
            world, agent or ["stepmix"], floor, delta, family, pooled, episodes, seed, ledger
        )
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        warn(f"surefoot: {text}")
    values = by_name.values_of(runs)
    if as_json:
        about = {"world": world.name, "delta": delta, "seed": seed}
        echo_json({**about, **values, "rows": rows(runs)})
    else:
        print_task(world, values)
        print_runs(runs)
        for of_its_own in by_name.with_own_bounds(agent or []):
            echo(f"{of_its_own}: bounds of its own; --bounds does not change them.")
    if out is not None:
        plot_returns(runs, out, title=world.name)
    if ledger is not None and not as_json:
        echo(f"Ledger: {ledger} (check it with `surefoot certify {ledger}`)")
    _end_by_runs(runs)


def _end_by_runs(runs: "Sequence[Run]") -> None:
    if runs[-1].interrupted:
        raise typer.Exit(INTERRUPTED)
    agents = [run.agent for run in runs if run.promise_broken or run.alarm is not None]
    end_by_promises(
        agents, f"{', '.join(agents)} broke the promise (or an alarm was raised). See the table."
    )


@app.command()
def certify(
    ledger: Annotated[
        Path,
        typer.Argument(
            help="A ledger of plans, written by `try --ledger`, learn, guard_env, Ledger or "
            "GuardLedger."
        ),
    ],
) -> None:
    """Re-derive every plan of a ledger, with a separate verifier that shares no code with the
    library.

    Exit code 0: every plan holds. 4: every plan holds if an earlier certificate does, which nobody
    can check here. 3: a plan is refused or NOT CERTIFIED, or the file is not a ledger.
    """
    from surefoot.audit.ledger import verifier_for

    if not ledger.is_file():
        raise InvalidSetting(f"{ledger} is not a file. Expected a ledger of plans.")
    raise typer.Exit(verifier_for(ledger).main([str(ledger)]))


def exit_code(refusal: SurefootError) -> int:
    """Return the exit code of a refusal."""
    if isinstance(refusal, PremiseContradicted):
        return PROMISE_BROKEN
    return USAGE if isinstance(refusal, InvalidSetting) else BAD_DATA


def main() -> None:
    """Run the command. A refusal is printed as one message on standard error, not as a
    traceback.
    """
    try:
        app()
    except SurefootError as refusal:
        warn(f"surefoot: {type(refusal).__name__}: {refusal}")
        sys.exit(exit_code(refusal))
    except SystemExit as ended:
        # typer makes an Exit of a Ctrl-C, and ends without a word.
        interrupt = getattr(ended.__context__, "__cause__", None)
        if isinstance(interrupt, KeyboardInterrupt):
            warn(str(interrupt) or "Interrupted.")
        raise
    except KeyboardInterrupt as interrupt:
        warn(str(interrupt) or "Interrupted.")
        sys.exit(INTERRUPTED)
