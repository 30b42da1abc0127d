"""Where results live: a folder with the study beside one Parquet file a trial, each written whole or not at all.

DIR/study.json                              the study, its hash, its seed and the versions that made the results
DIR/trials/PANEL/LEARNER/0007.parquet       one row: the trial's numbers, its curve and its trace as lists
DIR/times.jsonl                             seconds, host and worker of each trial: the only file that two runs of
                                            the same study do not have in common
"""

import json
import math
import os
import platform
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.__about__ import __version__
from surefoot.base.arrays import Floats, Ints
from surefoot.base.files import opened, read_json, replacing, strict_json, write_json
from surefoot.base.sql import quote_text
from surefoot.errors import InvalidFile, InvalidSetting, InvalidStudy
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.library import GROUPS
from surefoot.studies.spec.study import Study, parse_study

if TYPE_CHECKING:
    import duckdb

STUDY, TRIALS, TIMES = "study.json", "trials", "times.jsonl"
LIBRARIES = ("numpy", "numba", "highspy", "duckdb")
SQL_TYPES: dict[Any, str] = {
    str: "VARCHAR",
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    int | None: "BIGINT",
    float | None: "DOUBLE",
    Ints: "BIGINT[]",
    Floats: "DOUBLE[]",
}
COLUMNS = {field.name: SQL_TYPES[field.type] for field in fields(Trial)}
MAY_BE_NONE = {field.name for field in fields(Trial) if field.type in (int | None, float | None)}
PYTHON_TYPES = {"VARCHAR": str, "BOOLEAN": bool, "BIGINT": int, "DOUBLE": float}
LARGEST_TIMES = 2**28  # bytes of the file of times: 200 a trial
MOST_VALUES = 5_000_000  # numbers of a trial, its curve and trace included
MEMORY = "2GB"  # for DuckDB, which would take nearly all there is
Key = tuple[str, str, int]  # scenario, learner, trial
READING = "hive_partitioning = false"  # a folder that is called floor=9 is not a column


def versions() -> dict[str, str]:
    """What the numbers depend on beside the study."""
    return {"surefoot": __version__, "python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


@contextmanager
def said_of_disk(path: Path) -> Iterator[None]:
    """A disk that is full, or does not let us, is said in a sentence."""
    try:
        yield
    except OSError as reason:
        raise InvalidFile(
            f"{path} cannot be written ({reason.strerror}). What was finished before is whole; make room, or get "
            "permission, and go on with --resume."
        ) from None


@dataclass(frozen=True)
class Folder:
    """A folder of results of one study."""

    path: Path
    study: Study

    def place(self, key: Key) -> Path:
        """Where a trial goes."""
        scenario, learner, trial = key
        return self.path / TRIALS / scenario / learner / f"{trial:04d}.parquet"

    def wanted(self) -> list[Key]:
        """Every trial that the study asks for, trial 0 of all cells first."""
        cells = self.study.cells
        return [(cell.scenario.id, cell.agent.id, i) for i in range(self.study.trials) for cell in cells]

    def there(self) -> list[Key]:
        """Those that are finished."""
        return [key for key in self.wanted() if self.place(key).exists()]

    def missing(self) -> list[Key]:
        """Those that are not there yet."""
        return [key for key in self.wanted() if not self.place(key).exists()]

    def write(self, trial: Trial) -> None:
        """One file, whole or not at all."""
        target = self.place((trial.panel, trial.learner, trial.trial))
        with said_of_disk(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_trial(target, trial)

    def note_time(self, key: Key, seconds: float, worker: str) -> None:
        """Beside the results, in no result."""
        scenario, learner, trial = key
        entry = {"panel": scenario, "learner": learner, "trial": trial, "seconds": round(seconds, 3), "worker": worker}
        target = self.path / TIMES
        with said_of_disk(target), target.open("ab+") as stream:
            stream.seek(0, os.SEEK_END)
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")  # a killed process left half a line
            stream.write(f"{json.dumps({**entry, 'host': socket.gethostname()})}\n".encode())


def begin(path: str | Path, study: Study, resume: bool) -> Folder:
    """A folder for the results of this study: a new one, or one of the same study, if `resume` says so."""
    wanted = agreed(path, study, resume)
    target = Path(path)
    if target.is_dir():
        for partial in target.rglob(".*.partial"):
            if not _is_alive(partial):
                partial.unlink(missing_ok=True)  # of a process that was killed
    with said_of_disk(target):
        target.mkdir(parents=True, exist_ok=True)
        _write_study(target, wanted)
    return Folder(target, wanted)


def agreed(path: str | Path, study: Study, resume: bool) -> Study:
    """What would be run in this folder, if anything can be; nothing is written.

    More trials than were asked for before are added; fewer leave those that are there.
    """
    target = Path(path)
    if (target / STUDY).exists():
        return _gone_on(target, study, resume)
    if (target.parent / STUDY).exists():
        raise InvalidStudy(f"{target.parent} holds the results of one study, not of several. Choose another --out.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidStudy(f"{target} is there and holds something other than a study's results. Choose another --out.")
    return study


def _is_alive(partial: Path) -> bool:
    """Is the process that writes it still there?"""
    try:
        os.kill(int(partial.name.split(".")[-2]), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _gone_on(path: Path, study: Study, resume: bool) -> Study:
    before, about = _read_study(path)
    if before.digest != study.digest:
        raise InvalidStudy(
            f"{path} holds results of another study: {_difference(before, study)}. Nothing was changed. "
            "Choose another folder with --out."
        )
    folder = Folder(path, before)
    done = len(folder.there())
    if not resume and done:
        raise InvalidStudy(
            f"{path} holds {done} of {len(folder.wanted())} trials of this study already. Give --resume to keep them "
            "and go on, or choose another folder with --out."
        )
    now = versions()
    for name, made_by in about["versions"].items():
        if done and now.get(name) != made_by:
            raise InvalidStudy(
                f"{path} was begun with {name} {made_by}, this is {now.get(name)}: trials of both would not be of one "
                "study. Choose another folder with --out."
            )
    # Sizes that plan alike differ in their trials alone: what was asked for in full stays so.
    size = "full" if "full" in (before.size, study.size) else study.size
    return replace(study, trials=max(before.trials, study.trials), size=size)


def _difference(before: Study, now: Study) -> str:
    """The first thing that is not the same."""
    if before.name != now.name:
        return f"{before.name!r}, not {now.name!r}"
    mine, its = now.identity()["cells"], before.identity()["cells"]
    for cell in {**its, **mine}:
        if cell not in mine or cell not in its:
            return f"cell {cell} is only in {'the new one' if cell in mine else 'the old one'}"
        for key, value in mine[cell].items():
            if its[cell][key] != value:
                return f"in cell {cell}, {key} was {its[cell][key]!r} and is {value!r}"
    return "their hashes differ"


def _write_study(path: Path, study: Study) -> None:
    about = {
        "study": study.as_table(),
        "size": study.size,
        "digest": study.digest,
        "seed": study.seed,
        "versions": versions(),
    }
    write_json(path / STUDY, "study", about)


def _read_study(path: Path) -> tuple[Study, dict[str, Any]]:
    about = read_json(path / STUDY, "study")
    try:
        study = replace(parse_study(about["study"], str(path / STUDY)), size=str(about["size"]))
        if study.digest != about["digest"] or not isinstance(about["versions"], dict):
            raise InvalidFile(f"{path / STUDY} is damaged: its hash is not that of its study. Restore it from a copy.")
    except KeyError as reason:
        raise InvalidFile(f"{path / STUDY} lacks {reason}: the file is damaged. Restore it from a copy.") from None
    return study, about


def write_trial(target: Path, trial: Trial) -> None:
    """One row of Parquet, to a neighbour that is then renamed."""
    import duckdb

    values = [_plain(getattr(trial, name)) for name in COLUMNS]
    with replacing(target) as partial, quiet_connection() as con:
        con.execute(f"CREATE TABLE trial ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
        con.execute(f"INSERT INTO trial VALUES ({', '.join('?' for _ in values)})", values)
        try:
            con.execute(f"COPY trial TO {quote_text(partial)} (FORMAT PARQUET, COMPRESSION ZSTD)")
        except duckdb.Error as reason:
            raise OSError(0, str(reason).splitlines()[0]) from None
        except RuntimeError:  # how DuckDB says Ctrl-C
            raise KeyboardInterrupt from None


def _plain(value: Any) -> Any:
    return value.ravel().tolist() if isinstance(value, np.ndarray) else value


@contextmanager
def quiet_connection() -> "Iterator[duckdb.DuckDBPyConnection]":
    """One thread, so that the bytes of a file do not depend on how many there are; and no bar."""
    import duckdb

    with duckdb.connect(config={"threads": 1, "memory_limit": MEMORY}) as con:
        con.execute("SET enable_progress_bar = false")
        yield con


def listed(paths: Sequence[Path]) -> str:
    """Files to read as SQL writes them: their names are names, not patterns."""
    names = (re.sub(r"[*?\[]", r"[\g<0>]", str(path)) for path in paths)
    return "[" + ", ".join(map(quote_text, names)) + "]"


@dataclass(frozen=True)
class Results:
    """A study and the trials of it that are there."""

    path: Path
    study: Study
    versions: dict[str, str]
    trials: dict[str, tuple[Trial, ...]]  # by cell, in order of trial
    seconds: float  # of all trials together, where their times are known

    @property
    def missing(self) -> int:
        """How many trials are not there yet."""
        return len(self.study.cells) * self.study.trials - sum(len(some) for some in self.trials.values())

    def of(self, scenario: str, learner: str) -> tuple[Trial, ...]:
        """The trials of one cell."""
        return self.trials.get(f"{scenario}/{learner}", ())


def trial_files(path: Path) -> list[Path]:
    """The files of the trials that are there, of the study's and of no others."""
    study, _ = _read_study(path)
    folder = Folder(path, study)
    return [folder.place(key) for key in folder.there()]


def read_results(path: str | Path) -> Results:
    """What is in a folder of results."""
    target = Path(path)
    if not (target / STUDY).exists():
        raise InvalidFile(f"{target} holds no results: there is no {STUDY} in it. Expected a folder that `run` wrote.")
    study, about = _read_study(target)
    folder = Folder(target, study)
    there = folder.there()
    found: dict[str, list[Trial]] = {cell.id: [] for cell in study.cells}
    digests = {cell.id: cell.digest for cell in study.cells}
    labels = {cell.id: cell.label for cell in study.cells}  # a study may have got another since
    for key, trial in zip(there, read_trials([folder.place(key) for key in there]), strict=True):
        if (trial.panel, trial.learner, trial.trial) != key or digests[trial.cell] != trial.digest:
            raise InvalidFile(
                f"{folder.place(key)} holds trial {trial.trial} of {trial.cell} of the study {trial.study}, not what "
                "its place says. Remove it and go on with --resume."
            )
        label = labels[trial.cell]
        found[trial.cell].append(trial if trial.label == label else replace(trial, label=label))
    ordered = {cell: tuple(sorted(some, key=lambda trial: trial.trial)) for cell, some in found.items()}
    return Results(target, study, about["versions"], ordered, _seconds(target))


def read_trials(paths: Sequence[Path]) -> list[Trial]:
    """The row of each of these files, in their order."""
    import duckdb

    if not paths:
        return []
    try:
        with quiet_connection() as con:
            require_small(con, paths)
            select = (
                f"SELECT filename, {', '.join(COLUMNS)} FROM read_parquet({listed(paths)}, {READING}, filename = true)"
            )
            found = con.execute(select).fetchall()
            rows = {row[0]: row[1:] for row in found}
        if len(rows) < len(found):
            raise InvalidFile("A trial's file has more than one row. Restore it, or remove it and go on with --resume.")
    except (duckdb.Error, UnicodeDecodeError, OverflowError) as reason:
        raise InvalidFile(
            f"A trial's file cannot be read: {(str(reason) or '?').splitlines()[0][:400]} Restore it, or remove it "
            "and go on with --resume."
        ) from None
    return [_trial(path, rows.get(str(path))) for path in paths]


def require_small(con: "duckdb.DuckDBPyConnection", paths: Sequence[Path]) -> None:
    """What the files say of themselves, before any of them is read: a few bytes may stand for any number of numbers."""
    found = con.execute(
        f"SELECT file_name, sum(num_values) AS n FROM parquet_metadata({listed(paths)}) GROUP BY file_name "
        "ORDER BY n DESC LIMIT 1"
    ).fetchone()
    if found is not None and not 0 <= found[1] <= MOST_VALUES:
        raise InvalidFile(
            f"{found[0]} says that it holds {found[1]:,} numbers, expected at most {MOST_VALUES:,} of a trial. Restore "
            "it, or remove it and go on with --resume."
        )


def _trial(path: Path, row: tuple[Any, ...] | None) -> Trial:
    try:
        given = dict(zip(COLUMNS, row or (), strict=True))
        strange = [name for name, value in given.items() if not _fits(name, value)]
        if strange:
            raise TypeError(f"{strange[0]} is not {COLUMNS[strange[0]]}")
        trial = Trial(**given)
        trial.require_whole()
    except (TypeError, ValueError, AttributeError, OverflowError) as reason:
        raise InvalidFile(
            f"{path} is not what a trial's file is ({reason}). Restore it, or remove it and go on with --resume."
        ) from None
    return trial


def _fits(name: str, value: Any) -> bool:
    """Is it of the kind that its column has? What never happened is None."""
    if value is None:
        return name in MAY_BE_NONE
    kind = COLUMNS[name]
    return type(value) is (list if kind.endswith("[]") else PYTHON_TYPES[kind])


def _seconds(path: Path) -> float:
    """Of all trials that are noted; the last time of each."""
    last: dict[Key, float] = {}
    try:
        with opened(path / TIMES, "lines of times") as stream:
            lines = stream.read(LARGEST_TIMES).decode().splitlines()
    except (OSError, ValueError):
        return 0.0
    for line in lines:
        try:
            entry = strict_json(line)
            last[entry["panel"], entry["learner"], entry["trial"]] = max(0.0, float(entry["seconds"]))
        except (ValueError, KeyError, TypeError):
            continue  # a line that a killed process left half written
    return math.fsum(last.values())


def study_folders(path: str | Path) -> list[Path]:
    """The folders of results that are here: this one, or those in it; ours in the paper's order, then by name."""
    target = Path(path)
    if (target / STUDY).exists():
        return [target]
    there = sorted(target.iterdir()) if target.is_dir() else []
    order = {name: i for i, name in enumerate(GROUPS["all"])}
    inside = [folder for folder in there if (folder / STUDY).exists()]
    inside.sort(key=lambda folder: order.get(folder.name, len(order)))
    if not inside:
        raise InvalidSetting(f"{target} holds no results, and no folders of results. Expected one that `run` wrote.")
    return inside
