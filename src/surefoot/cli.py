"""The command: parse, call, print. Exit codes: 0 fine, 1 the data has a problem, 2 usage, 3 a certificate failed."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from surefoot.__about__ import __version__
from surefoot.errors import InvalidSetting, SurefootError

FINE, BAD_DATA, USAGE, CERTIFICATE_FAILED, INTERRUPTED = 0, 1, 2, 3, 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    episodes: Annotated[int, typer.Option(min=1, help="Episodes each learner plays.")] = 100_000,
    scale: Annotated[float, typer.Option(help="Bonus scale. 1 is the paper; anything else is NOT CERTIFIED.")] = 0.01,
    out: Annotated[Path, typer.Option(help="Where the figure goes: .png, .svg or .pdf.")] = Path("surefoot-demo.png"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """A first look: StepMix, EpsMix and BPI-UCBVI on one of the paper's worlds, with a table and a figure."""
    from surefoot import demo as first_look
    from surefoot.figures import plot_returns, require_format
    from surefoot.tables import print_runs, rows

    require_format(out)
    runs = list(first_look.demo(seed, episodes, scale))
    if not runs:
        raise typer.Exit(INTERRUPTED)
    if as_json:
        facts = {"floor": runs[0].floor, "baseline": runs[0].baseline, "optimum": runs[0].optimum}
        about = {"setting": first_look.SETTING, "delta": first_look.DELTA, "seed": seed, "figure": str(out)}
        typer.echo(json.dumps({**about, **facts, "rows": rows(runs)}, indent=2))
    else:
        typer.echo(f"{first_look.SETTING}; returns lie in 0..3.")
        typer.echo(f"floor {runs[0].floor:g}, baseline {runs[0].baseline:.4f}, optimum {runs[0].optimum:.4f}\n")
        print_runs(runs)
        if scale != 1.0:
            typer.echo(first_look.WHY_SCALED)
    plot_returns(runs, out, title=first_look.SETTING)
    if not as_json:
        typer.echo(f"Figure: {out}")
    if runs[-1].interrupted:
        raise typer.Exit(INTERRUPTED)


def main() -> None:
    """Run the command; what surefoot refuses is one sentence on standard error, not a traceback."""
    try:
        app()
    except SurefootError as refusal:
        typer.echo(f"surefoot: {type(refusal).__name__}: {refusal}", err=True)
        sys.exit(USAGE if isinstance(refusal, InvalidSetting) else BAD_DATA)
