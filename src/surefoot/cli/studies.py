"""The commands about studies: studies, run, report, results. Parse, call, print."""

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli.console import INTERRUPTED, echo, echo_json, end_by_promises, say, warn
from surefoot.cli.options import Json
from surefoot.errors import InvalidSetting

if TYPE_CHECKING:
    from surefoot.studies.analysis.claims import Analysis
    from surefoot.studies.run.runner import Progress, Tell
    from surefoot.studies.run.store import Folder

REPORT = "report.html"
HEADINGS = {
    "": "At the top of the file:",
    "quick": "[quick]",
    "scenarios": "[[scenarios]], each:",
    "scenarios.log": "log = { ... } of a scenario:",
    "agents": "[[agents]], each:",
}
BROKEN = "a promise was broken. See above, and the verdict of the report."
NEWS_EVERY = 60.0  # seconds between lines of progress, where there is no terminal


def studies(
    name: Annotated[str | None, typer.Argument(help="A study to describe.")] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print its file: copy it, change a line, run it.")
    ] = False,
    fields: Annotated[
        bool, typer.Option("--fields", help="Print every field that a study's file may have.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the studies there are, the paper's and ours; or describe one; or say how a study's
    file is written.
    """
    from surefoot.studies.spec.fields import REQUIRED
    from surefoot.studies.spec.library import GROUPS, find_studies, source
    from surefoot.studies.spec.study import TABLES

    if fields:
        for table, entries in TABLES.items():
            echo(HEADINGS[table])
            for field, (_, meaning, default) in entries.items():
                left_out = (
                    ""
                    if default is None or default is REQUIRED
                    else f" (default: {json.dumps(default)})"
                )
                must = " (required)" if default is REQUIRED else ""
                say(f"  {field}: {meaning}{must}{left_out}")
        return
    if name is None and toml:
        raise InvalidSetting("Which study? For example: surefoot studies online --toml")
    if name is None and as_json:
        echo_json([study.as_table() for study in find_studies("all")])
        return
    if name is None:
        for group in ("paper", "ours", "theory"):
            for study in find_studies(group):
                echo(f"{study.name:20s} {study.title}")
        echo(f"\nGroups: {', '.join(GROUPS)}. Run one: surefoot run online --quick")
        echo(
            "One of your own: surefoot studies online --toml > my.toml; change a line; surefoot "
            "run my.toml"
        )
        return
    if toml:
        echo(source(name).removesuffix("\n"))
        return
    for study in find_studies(name):
        if as_json:
            echo_json(study.as_table())
            continue
        say(f"{study.name}: {study.title}. {study.question}")
        for kind in (study, study.made_quick()):
            cells = kind.cells
            say(
                f"  {kind.size}: scenarios x agents x trials = {len(kind.scenarios)} x "
                f"{len(kind.agents)} x {kind.trials}, up to "
                f"{max(cell.episodes for cell in cells):,} episodes per run, delta = {kind.delta:g}"
            )
        echo("  cells: " + ", ".join(cell.id for cell in study.cells))


def run(
    asked: Annotated[
        list[str], typer.Argument(metavar="STUDY|FILE...", help="Studies by name, or TOML files.")
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Minutes: fewer trials, plans in blocks; constants as printed."
        ),
    ] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="Trials of each cell.")] = None,
    jobs: Annotated[int, typer.Option(help="Workers; -1: one per core.")] = -1,
    backend: Annotated[str, typer.Option(help="loky: this machine; dask: a cluster.")] = "loky",
    address: Annotated[
        str, typer.Option(help="Of a Dask scheduler, such as tcp://host:8786.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results; results/NAME, or NAME-quick, if left out."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what is there and run what is missing.")
    ] = False,
    with_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report, too.")
    ] = True,
) -> None:
    """Run studies: one file per trial, then the report. The number of workers changes no result.

    It says beforehand how many trials there are and how many of them are done; then it shows how
    they advance. At the end it says of each study what its agents promise and how many claims hold;
    the tables are in the report, and `surefoot results DIR` prints them. Exit code 3: an agent
    broke its promise.
    """
    from surefoot.studies.analysis.claims import analyse
    from surefoot.studies.run.runner import check_workers, run_study
    from surefoot.studies.run.store import create, prepare, read_results
    from surefoot.studies.spec.library import GROUPS, find_studies

    chosen = [study for one in asked for study in find_studies(one)]
    several = len(chosen) > 1 or asked[0] in GROUPS
    names = [study.name for study in chosen]
    if len(set(names)) < len(names):
        raise InvalidSetting(
            f"{next(n for n in names if names.count(n) > 1)!r} is asked for twice, or named so "
            "twice."
        )
    if quick:
        chosen = [study.made_quick() for study in chosen]
    if trials is not None:
        from dataclasses import replace

        chosen = [replace(study, trials=trials) for study in chosen]
    # A file's results are under the file's name: a copy that kept the name of a study of ours is
    # another study.
    first = Path(asked[0]).stem if asked[0].endswith(".toml") else asked[0]
    top = Path("results") / (first if not several or asked[0] in GROUPS else "studies")
    target = out or (top.with_name(f"{top.name}-quick") if quick else top)
    # What cannot be run is refused before anything is written, and all folders are there before
    # anything is run.
    check_workers(jobs, backend, address)
    folders = [
        prepare(target / study.name if several else target, study, resume) for study in chosen
    ]
    for folder in folders:
        echo(f"{folder.study.name} ({folder.study.size}): {_done(folder)} trials done")
    for folder in folders:
        create(folder)
    known: dict[Path, Analysis] = {}
    for folder in folders:
        study = folder.study
        try:
            with _progress(folder) as tell, _interrupted_by_sigterm():
                run_study(folder, jobs, backend, address, tell)
        except KeyboardInterrupt:
            warn(
                f"\nInterrupted: {_done(folder)} trials of {study.name} are kept. Go on with "
                "--resume."
            )
            raise typer.Exit(INTERRUPTED) from None
        known[folder.path] = analyse(read_results(folder.path))
    if with_report:
        _write_report(target, target / REPORT, known)
    broken = [alarm for found in known.values() for alarm in _tell(found)]
    echo(f"Results: {target} (as tables: surefoot results {target})")
    if with_report:
        echo(f"Report: {target / REPORT}")
    end_by_promises(broken, BROKEN)


def _done(folder: "Folder") -> str:
    return f"{len(folder.there())} of {len(folder.wanted())}"


def _tell(found: "Analysis") -> tuple[str, ...]:
    """Say in a line what the agents of a study promise, and how many claims hold; return where a
    promise was broken.
    """
    from surefoot.studies.analysis.claims import tallies
    from surefoot.studies.analysis.verdict import overall_verdict

    verdict = overall_verdict([found.results], [found.rows])
    said = ". ".join((f"agents {verdict.word}", *tallies(found.verdicts)))
    for line in (f"{found.results.study.name}: {said}.", *verdict.alarms):
        echo(line)
    return verdict.alarms


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: workers are stopped, and the command says how to go
    on.
    """

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress(folder: "Folder") -> "Iterator[Tell]":
    """Show progress: a bar with the time left on a terminal; a line now and then elsewhere."""
    from surefoot.base.progress import progress_bar

    name, missing = folder.study.name, len(folder.wanted()) - len(folder.there())
    begun = last = time.monotonic()
    with progress_bar(name, missing, None, "trials") as bar:

        def tell(progress: "Progress") -> None:
            nonlocal last
            bar(progress.done)
            if not sys.stderr.isatty() and time.monotonic() - last >= NEWS_EVERY:
                last = time.monotonic()
                warn(
                    f"  {name}: {progress.done} of {progress.of} trials after "
                    f"{(last - begun) / 60:.0f} min"
                )

        yield tell


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A folder of results, or a folder of such folders."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; DIR/report.html if left out.")
    ] = None,
) -> None:
    """Write the report: one HTML page that needs nothing else, with verdicts, figures, tables and
    assumptions.

    Exit code 3: an agent broke its promise.
    """
    from surefoot.studies.analysis.verdict import overall_verdict

    place = out or folder / REPORT
    found = _write_report(folder, place, {})
    echo(f"Report: {place}")
    verdict = overall_verdict([one.results for one in found], [one.rows for one in found])
    end_by_promises(verdict.alarms, BROKEN)


def _write_report(folder: Path, out: Path, known: "dict[Path, Analysis]") -> "list[Analysis]":
    """Write the report of all results in a folder, and return them; those that are known are not
    read again.
    """
    from surefoot.studies.analysis.claims import analyse
    from surefoot.studies.report.report import write_report
    from surefoot.studies.run.store import read_results, study_folders

    everything = [
        known[one] if one in known else analyse(read_results(one)) for one in study_folders(folder)
    ]
    write_report(everything, out)
    return everything


def results(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A folder of results, or a folder of such folders."),
    ],
    sql: Annotated[
        str | None, typer.Option(help="A query over the tables summary, trials, curves and traces.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the answer: .csv, .parquet or .json.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the results of a study: a table with a row for each cell; or ask in SQL, over every
    trial.

    Exit code 3, where the table is printed: an agent broke its promise.
    """
    from surefoot.studies.analysis.summary import summary
    from surefoot.studies.report.terminal import print_summary
    from surefoot.studies.run.store import read_results, study_folders

    folders = study_folders(folder)
    if sql is not None or save is not None:
        from surefoot.studies.analysis.sql import answer, print_rows, save_answer

        question = sql or "SELECT * FROM summary"
        if save is not None:
            echo(f"Written: {save_answer(folders, question, save)}")
            return
        names, rows = answer(folders, question)
        if as_json:
            echo(
                json.dumps(
                    [dict(zip(names, row, strict=True)) for row in rows], indent=2, default=str
                )
            )
        else:
            print_rows(names, rows)
        return
    everything = [read_results(one) for one in folders]
    if as_json:
        echo_json({one.study.name: summary(one) for one in everything})
        return
    end_by_promises([line for one in everything for line in print_summary(one)], BROKEN)
