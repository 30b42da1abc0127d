"""The command: parse, call, print. Exit codes: 0 fine, 1 the data has a problem, 2 usage, 3 a certificate failed."""

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from surefoot.__about__ import __version__
from surefoot.cli.console import BAD_DATA, FINE, INTERRUPTED, USAGE, say
from surefoot.cli.logs import baseline, logs, show
from surefoot.cli.studies import report, results, run, studies
from surefoot.errors import InvalidSetting, SurefootError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(logs, name="logs")
app.command()(baseline)
app.command()(show)
for command in (studies, run, report, results):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefoot {__version__}")
        raise typer.Exit(FINE)


@app.callback()
def surefoot(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Learn online in a running process without ever falling below a floor."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws; the world stays the same.")] = 0,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes with sharp certificates.")] = 20_000,
    paper_episodes: Annotated[int, typer.Option(min=1, help="Episodes with the paper's bounds.")] = 100_000_000,
    scale: Annotated[float, typer.Option(help="Of the paper's bonus. Other than 1: NOT CERTIFIED.")] = 1.0,
    out: Annotated[Path, typer.Option(help="Where the figure goes: .png, .svg or .pdf.")] = Path("surefoot-demo.png"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
) -> None:
    """A first look: StepMix, EpsMix and BPI-UCBVI with sharp certificates and with the paper's bounds, side by side."""
    from surefoot.cli import demo as first_look
    from surefoot.cli.tables import print_runs, rows
    from surefoot.simulation.figures import plot_sides, require_target

    require_target(out)
    sides = list(first_look.demo(seed, episodes, paper_episodes, scale))
    if not sides:
        typer.echo("Interrupted before the first episode.", err=True)
        raise typer.Exit(INTERRUPTED)
    first = sides[0].runs[0]
    facts = {"floor": first.floor, "baseline": first.baseline, "optimum": first.optimum}
    if as_json:
        about = {"setting": first_look.SETTING, "delta": first_look.DELTA, "seed": seed, "figure": str(out)}
        table = [{"bounds": side.title, **row} for side in sides for row in rows(side.runs)]
        typer.echo(json.dumps({**about, **facts, "rows": table}, indent=2))
    else:
        say(f"{first_look.SETTING}. {first_look.STORY}")
        typer.echo(", ".join(f"{name} {value:.4f}" for name, value in facts.items()) + "; returns lie in 0..8.")
        for side in sides:
            typer.echo(f"\n{side.title}, {side.runs[0].episodes:,} episodes")
            print_runs(side.runs)
    plot_sides(sides, out, title=first_look.SETTING)
    if not as_json:
        typer.echo(f"Figure: {out}")
    if sides[-1].runs[-1].interrupted:
        typer.echo("Interrupted: what had not begun was left out.", err=True)
        raise typer.Exit(INTERRUPTED)


@app.command()
def worlds(
    name: Annotated[str | None, typer.Argument(help="A world to describe.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """The worlds there are, with their optimum, usual baseline and floor; or the story of one."""
    from dataclasses import asdict

    from surefoot.cli.tables import print_worlds
    from surefoot.simulation import by_name
    from surefoot.worlds.registry import family

    if name is None:
        table = by_name.all_facts()
        if as_json:
            typer.echo(json.dumps([asdict(row) for row in table], indent=2))
        else:
            print_worlds(table)
        return
    chosen = family(name)
    row = by_name.facts(chosen, chosen.build())
    if as_json:
        typer.echo(json.dumps({**asdict(row), "story": chosen.story, "sizes": chosen.sizes}, indent=2))
        return
    typer.echo(f"{chosen.name}\n\n{chosen.story}\n")
    typer.echo(f"S = {row.S}, A = {row.A}, H = {row.H}; returns lie in {row.lowest:g}..{row.highest:g}.")
    typer.echo(f"floor {row.floor:.4f}, baseline {row.baseline:.4f}, optimum {row.optimum:.4f}")
    sizes = ", ".join(f"{size}={default}" for size, default in chosen.sizes.items())
    typer.echo(f"Can be chosen: {sizes or 'nothing'}")


@app.command("try")
def try_(
    name: Annotated[str, typer.Argument(help="A world; `surefoot worlds` lists them.")],
    agent: Annotated[list[str] | None, typer.Option(help="A learner; may be given several times.")] = None,
    floor: Annotated[float | None, typer.Option(help="The floor, in the world's units; its own if left out.")] = None,
    delta: Annotated[float, typer.Option(help="How likely the promise may fail.")] = 0.05,
    bounds: Annotated[
        str,
        typer.Option(
            help="kl: sharp certificates (DOPE and OptPess-LP: the Maurer-Pontil box); paper: constants as printed."
        ),
    ] = "kl",
    scale: Annotated[float, typer.Option(help="Scale of the bonus or radius. Anything but 1 is NOT CERTIFIED.")] = 1.0,
    pooled: Annotated[bool, typer.Option(help="Pool counts over steps (stationary worlds).")] = False,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes each learner plays.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    size: Annotated[
        list[str] | None, typer.Option("--set", help="A size of the world, such as S=8; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also draw a figure: .png, .svg or .pdf.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Write every plan of the one learner to this file, for `surefoot certify`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Run learners in one of the worlds, beside the always-optimistic one, and print the table of `demo`."""
    from surefoot.cli.tables import print_runs, rows
    from surefoot.simulation import by_name
    from surefoot.simulation.figures import plot_returns, require_target
    from surefoot.worlds.registry import world as build_world

    if out is not None:
        require_target(out)
    world = build_world(name, **by_name.parse_sizes(name, size or []))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        family = by_name.build_bounds(bounds, scale)
        runs = by_name.try_agents(world, agent or ["stepmix"], floor, delta, family, pooled, episodes, seed, ledger)
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"surefoot: {text}", err=True)
    values = by_name.values_of(world, runs)
    if as_json:
        about = {"world": world.name, "delta": delta, "seed": seed}
        typer.echo(json.dumps({**about, **values, "rows": rows(runs)}, indent=2))
    else:
        lowest, highest = world.in_user_units(0.0), world.in_user_units(float(world.H))
        sizes = f"S = {world.S}, A = {world.A}, H = {world.H}"
        typer.echo(f"{world.name}: {sizes}; returns lie in {lowest:g}..{highest:g}.")
        typer.echo(", ".join(f"{name} {value:.4f}" for name, value in values.items() if value is not None) + "\n")
        print_runs(runs)
    if out is not None:
        plot_returns(runs, out, title=world.name)
    if ledger is not None and not as_json:
        typer.echo(f"Ledger: {ledger} (check it with `surefoot certify {ledger}`)")
    if runs[-1].interrupted:
        raise typer.Exit(INTERRUPTED)


@app.command()
def forecast(
    name: Annotated[
        str | None, typer.Argument(help="A world; left out: a random world of the sizes given by --set.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The learner.")] = "stepmix",
    floor: Annotated[float | None, typer.Option(help="The floor, in the world's units; its own if left out.")] = None,
    kappa: Annotated[
        float | None, typer.Option(help="Instead of a floor: how far the baseline is above it, in units of return.")
    ] = None,
    delta: Annotated[float, typer.Option(help="How likely the promise may fail.")] = 0.05,
    pooled: Annotated[bool, typer.Option(help="Pool counts over steps (stationary worlds).")] = False,
    returns: Annotated[bool, typer.Option(help="Count returns of baseline episodes as evidence.")] = False,
    size: Annotated[
        list[str] | None, typer.Option("--set", help="A size of the world, such as S=8; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """About how many episodes until a learner leaves its baseline: with sharp certificates, with the paper's bounds,
    and by the paper's own lemma."""
    from dataclasses import asdict

    from surefoot.simulation import by_name
    from surefoot.worlds.registry import world as build_world

    chosen = name or "random"
    world = build_world(chosen, **by_name.parse_sizes(chosen, size or []))
    found = by_name.forecast_in(world, agent, floor, kappa, delta, pooled, returns)
    typer.echo(json.dumps({"world": world.name, **asdict(found)}, indent=2) if as_json else f"{world.name}: {found}")


@app.command()
def certify(
    ledger: Annotated[Path, typer.Argument(help="A ledger of plans, as `try --ledger`, learn and Ledger write it.")],
) -> None:
    """Re-derive every plan of a ledger, with a separate verifier that shares no code with the learner.

    Exit code 0: every plan holds. 3: one is refused, or this is not a ledger.
    """
    from surefoot.assurance import verifier

    raise typer.Exit(verifier.main([str(ledger)]))


def main() -> None:
    """Run the command; what surefoot refuses is one sentence on standard error, not a traceback."""
    try:
        app()
    except SurefootError as refusal:
        typer.echo(f"surefoot: {type(refusal).__name__}: {refusal}", err=True)
        sys.exit(USAGE if isinstance(refusal, InvalidSetting) else BAD_DATA)
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
