"""Folders of results: the study, and one Parquet file per trial, each written completely or not at
all.

DIR/study.json                              the study, its hash, its seed and the versions that made
the results DIR/trials/SCENARIO/AGENT/0007.parquet      one row: the trial's numbers, its curve and
its trace as lists

A trial's file has the promise as data, in columns promise_kind, promise_delta and so on, beside the
sentence in `promise`, which is for people.
"""

import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from surefoot.__about__ import __version__
from surefoot.agents.promise import Kind, PremiseStatus, Promise, Scope
from surefoot.base.arrays import Floats, Ints
from surefoot.base.files import read_json, replacing, write_json
from surefoot.base.sql import quote_text
from surefoot.base.validation import told
from surefoot.errors import InvalidFile, InvalidSetting, InvalidStudy
from surefoot.studies.run.trial import Trial, check_study_cells
from surefoot.studies.spec.library import GROUPS
from surefoot.studies.spec.study import Cell, Study, parse_study

if TYPE_CHECKING:
    import duckdb

STUDY, TRIALS = "study.json", "trials"
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
    Promise: "VARCHAR",  # its sentence
    Kind: "VARCHAR",
    Scope | None: "VARCHAR",
    PremiseStatus | None: "VARCHAR",
}
FORMAT = 1  # of a trial's file
TRIAL_COLUMNS = {field.name: SQL_TYPES[field.type] for field in fields(Trial)}
PROMISE_COLUMNS = {f"promise_{field.name}": SQL_TYPES[field.type] for field in fields(Promise)}
COLUMNS = {**TRIAL_COLUMNS, **PROMISE_COLUMNS, "format": "BIGINT"}
MAY_BE_NONE = {field.name for field in fields(Trial) if field.type in (int | None, float | None)}
MAY_BE_NONE |= {f"promise_{field.name}" for field in fields(Promise) if field.default is None}
PROMISE_WORDS = {
    "promise_kind": get_args(Kind),
    "promise_scope": (*get_args(Scope), None),
    "promise_premise": (*get_args(PremiseStatus), None),
}
PYTHON_TYPES = {"VARCHAR": str, "BOOLEAN": bool, "BIGINT": int, "DOUBLE": float}
MOST_VALUES = 5_000_000  # numbers of a trial, its curve and trace included
MEMORY = "2GB"  # for DuckDB, which would take nearly all there is
Key = tuple[Cell, int]  # and the number of its trial
READING = "hive_partitioning = false"  # a folder that is called floor=9 is not a column


def versions() -> dict[str, str]:
    """Return the versions of all that the numbers depend on beside the study."""
    return {
        "surefoot": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }


@contextmanager
def explain_disk_errors(path: Path) -> Iterator[None]:
    """Turn the error of a full or protected disk into a message that says what to do."""
    try:
        yield
    except OSError as reason:
        raise InvalidFile(
            f"{path} cannot be written ({reason.strerror}). What was finished before is complete; "
            "free some space, or get permission, and go on with --resume."
        ) from None


@dataclass(frozen=True)
class Folder:
    """A folder of results of one study."""

    path: Path
    study: Study

    def place(self, cell: str, trial: int) -> Path:
        """Return the path of a trial's file. The id of its cell is scenario/agent."""
        return self.path / TRIALS / cell / f"{trial:04d}.parquet"

    def wanted(self) -> list[Key]:
        """Return every trial that the study asks for, trial 0 of all cells first."""
        return [(cell, i) for i in range(self.study.trials) for cell in self.study.cells]

    def there(self) -> list[Key]:
        """Return the trials that are finished."""
        return [(cell, i) for cell, i in self.wanted() if self.place(cell.id, i).exists()]

    def missing(self) -> list[Key]:
        """Return the trials that are not there yet."""
        return [(cell, i) for cell, i in self.wanted() if not self.place(cell.id, i).exists()]

    def write(self, trial: Trial) -> None:
        """Write a trial's file, completely or not at all."""
        target = self.place(trial.cell, trial.trial)
        with explain_disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_trial(target, trial)


def begin(path: str | Path, study: Study, resume: bool) -> Folder:
    """Prepare a folder for the results of this study, and write it: a new one, or one to
    `resume`.
    """
    folder = prepare(path, study, resume)
    create(folder)
    return folder


def prepare(path: str | Path, study: Study, resume: bool) -> Folder:
    """Return the folder with what would be run in it. All checks are made here, and nothing is
    written.

    More trials than were asked for before are added; fewer leave those that are there.
    """
    check_study_cells(study.cells)
    target = Path(path)
    if (target / STUDY).exists():
        return Folder(target, _resumed(target, study, resume))
    if (target.parent / STUDY).exists():
        raise InvalidStudy(
            f"{target.parent} holds the results of one study, not of several. Choose another --out."
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidStudy(
            f"{target} is there and holds something other than a study's results. Choose another "
            "--out."
        )
    return Folder(target, study)


def create(folder: Folder) -> None:
    """Write the folder and its study, and remove what killed processes left half written."""
    if folder.path.is_dir():
        for partial in folder.path.rglob(".*.partial"):
            if not _is_alive(partial):
                partial.unlink(missing_ok=True)
    with explain_disk_errors(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
        study = folder.study
        about = {
            "study": study.as_table(),
            "size": study.size,
            "digest": study.digest,
            "seed": study.seed,
        }
        write_json(folder.path / STUDY, "study", {**about, "versions": versions()})


def _is_alive(partial: Path) -> bool:
    """Return whether the process that writes the file is still there."""
    try:
        os.kill(int(partial.name.split(".")[-2]), 0)
    except PermissionError:
        return True
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    return True


def _resumed(path: Path, study: Study, resume: bool) -> Study:
    """Return the study whose trials are to be in this folder, if it continues the one that is
    there.
    """
    before, about = _read_study(path)
    if before.digest != study.digest:
        raise InvalidStudy(
            f"{path} holds results of another study: {_difference(before, study)}. Nothing was "
            "changed. Choose another folder with --out."
        )
    folder = Folder(path, before)
    done = len(folder.there())
    if not resume and done:
        raise InvalidStudy(
            f"{path} holds {done} of {len(folder.wanted())} trials of this study already. Give "
            "--resume to keep them and go on, or choose another folder with --out."
        )
    now = versions()
    for name, made_by in about["versions"].items():
        if done and now.get(name) != made_by:
            raise InvalidStudy(
                f"{path} was begun with {name} {made_by}, this is {now.get(name)}: trials of both "
                "would not be of one study. Choose another folder with --out."
            )
    # Full and quick studies of the same digest differ only in their trials: what was asked for in
    # full stays so.
    size = "full" if "full" in (before.size, study.size) else study.size
    return replace(study, trials=max(before.trials, study.trials), size=size)


def _difference(before: Study, now: Study) -> str:
    """Return the first difference, in words."""
    if before.name != now.name:
        return f"{before.name!r}, not {now.name!r}"
    mine, its = now.identity()["cells"], before.identity()["cells"]
    for cell in {**its, **mine}:
        if cell not in mine or cell not in its:
            return f"cell {cell} is only in the {'new' if cell in mine else 'old'} one"
        for key, value in mine[cell].items():
            if its[cell][key] != value:
                return f"in cell {cell}, {key} was {its[cell][key]!r} and is {value!r}"
    return "their hashes differ"


def _read_study(path: Path) -> tuple[Study, dict[str, Any]]:
    about = read_json(path / STUDY, "study")
    try:
        study = replace(parse_study(about["study"], str(path / STUDY)), size=str(about["size"]))
        if study.digest != about["digest"] or not isinstance(about["versions"], dict):
            raise InvalidFile(
                f"{path / STUDY} is damaged: its hash is not that of its study. Restore it from a "
                "copy."
            )
    except KeyError as reason:
        raise InvalidFile(
            f"{path / STUDY} lacks {reason}: the file is damaged. Restore it from a copy."
        ) from None
    return study, about


def write_trial(target: Path, trial: Trial) -> None:
    """Write one row of Parquet, to a neighbour that is then renamed."""
    import duckdb

    with replacing(target) as partial, quiet_connection() as con:
        fill(con, "trial", COLUMNS, [_row_of(trial)])
        try:
            con.execute(f"COPY trial TO {quote_text(partial)} (FORMAT PARQUET, COMPRESSION ZSTD)")
        except duckdb.Error as reason:
            raise OSError(0, str(reason).splitlines()[0]) from None
        except RuntimeError:  # how DuckDB says Ctrl-C
            raise KeyboardInterrupt from None


def _row_of(trial: Trial) -> dict[str, Any]:
    """Return the values of a trial by column."""
    row = {name: getattr(trial, name) for name in TRIAL_COLUMNS}
    row |= {
        name: value.ravel().tolist() for name, value in row.items() if isinstance(value, np.ndarray)
    }
    promise = {
        name: getattr(trial.promise, name.removeprefix("promise_")) for name in PROMISE_COLUMNS
    }
    return {**row, "promise": str(trial.promise), **promise, "format": FORMAT}


def fill(
    con: "duckdb.DuckDBPyConnection",
    table: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Create a table of these columns, with their SQL types, from rows by column: at least one."""
    con.execute(
        f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"
    )
    con.executemany(
        f"INSERT INTO {table} VALUES ({', '.join('?' for _ in columns)})",
        [[row[name] for name in columns] for row in rows],
    )


@contextmanager
def quiet_connection() -> "Iterator[duckdb.DuckDBPyConnection]":
    """Open a connection with one thread, so that the bytes of a file do not depend on their
    number, and no bar.
    """
    import duckdb

    with duckdb.connect(config={"threads": 1, "memory_limit": MEMORY}) as con:
        con.execute("SET enable_progress_bar = false")
        yield con


def listed(paths: Sequence[Path]) -> str:
    """Return a list of files as SQL writes it. Their names are taken literally, not as patterns."""
    names = (re.sub(r"[*?\[]", r"[\g<0>]", str(path)) for path in paths)
    return "[" + ", ".join(map(quote_text, names)) + "]"


@dataclass(frozen=True)
class Results:
    """A study and the trials of it that are there."""

    path: Path
    study: Study
    versions: dict[str, str]
    trials: dict[str, tuple[Trial, ...]]  # by cell, in order of trial

    @property
    def every(self) -> list[Trial]:
        """The trials of all cells."""
        return [trial for some in self.trials.values() for trial in some]

    @property
    def missing(self) -> int:
        """How many trials are not there yet."""
        return len(self.study.cells) * self.study.trials - len(self.every)

    def of(self, scenario: str, agent: str) -> tuple[Trial, ...]:
        """Return the trials of one cell."""
        return self.trials.get(f"{scenario}/{agent}", ())


def read_results(path: str | Path) -> Results:
    """Read a folder of results."""
    target = Path(path)
    if not (target / STUDY).exists():
        raise InvalidFile(
            f"{target} holds no results: there is no {STUDY} in it. Expected a folder that `run` "
            "wrote."
        )
    study, about = _read_study(target)
    folder = Folder(target, study)
    there = folder.there()
    places = [folder.place(cell.id, i) for cell, i in there]
    found: dict[str, list[Trial]] = {cell.id: [] for cell in study.cells}
    for (cell, i), place, trial in zip(there, places, read_trials(places), strict=True):
        if (trial.cell, trial.trial, trial.digest) != (cell.id, i, cell.digest):
            raise InvalidFile(
                f"{place} holds trial {trial.trial} of {trial.cell[:80]} of the study "
                f"{trial.study[:80]}, not what its place says. Remove it and go on with --resume."
            )
        # The study may have got another label since.
        found[cell.id].append(replace(trial, label=cell.label))
    return Results(
        target, study, about["versions"], {cell: tuple(some) for cell, some in found.items()}
    )


def read_trials(paths: Sequence[Path]) -> list[Trial]:
    """Read the trial in each of these files."""
    import duckdb

    if not paths:
        return []
    try:
        with quiet_connection() as con:
            require_small(con, paths)
            rows = _rows(con, paths)
    except (duckdb.Error, UnicodeDecodeError, OverflowError) as reason:
        raise InvalidFile(
            f"A trial's file cannot be read: {(str(reason) or '?').splitlines()[0][:400]} Restore "
            "it, or remove it and go on with --resume."
        ) from None
    return [_trial(path, rows.get(str(path), {})) for path in paths]


def _rows(con: "duckdb.DuckDBPyConnection", paths: Sequence[Path]) -> dict[str, Any]:
    """Return the row of each file, by file."""
    found = con.execute(
        f"SELECT filename, {', '.join(COLUMNS)} FROM read_parquet({listed(paths)}, {READING}, "
        "filename = true)"
    ).fetchall()
    rows = {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in found}
    if len(rows) < len(found):
        raise InvalidFile(
            "A trial's file has more than one row. Restore it, or remove it and go on with "
            "--resume."
        )
    return rows


def require_small(con: "duckdb.DuckDBPyConnection", paths: Sequence[Path]) -> None:
    """Refuse a file by the size that it declares, before it is read: a few bytes may stand for
    very many numbers.
    """
    found = con.execute(
        f"SELECT file_name, sum(num_values) AS n FROM parquet_metadata({listed(paths)}) GROUP BY "
        "file_name ORDER BY n DESC LIMIT 1"
    ).fetchone()
    if found is not None and not 0 <= found[1] <= MOST_VALUES:
        raise InvalidFile(
            f"{found[0]} says that it holds {found[1]:,} numbers, expected at most {MOST_VALUES:,} "
            "of a trial. Restore it, or remove it and go on with --resume."
        )


def _trial(path: Path, row: dict[str, Any]) -> Trial:
    """Return the trial in a row."""
    if row and row.get("format") != FORMAT:
        raise InvalidFile(
            f"{path} has format {told(row.get('format'))}; this version of surefoot reads format "
            f"{FORMAT} of a trial. Update surefoot."
        )
    try:
        if not row:
            raise ValueError("it has no row")
        strange = [name for name, value in row.items() if not _fits(name, value)]
        if strange:
            raise TypeError(f"{strange[0]} is not {COLUMNS[strange[0]]}")
        trial = Trial(**{**{name: row[name] for name in TRIAL_COLUMNS}, "promise": _promise(row)})
        trial.require_whole()
    except (TypeError, ValueError, AttributeError, OverflowError) as reason:
        raise InvalidFile(
            f"{path} is not what a trial's file is ({reason}). Restore it, or remove it and go on "
            "with --resume."
        ) from None
    return trial


def _promise(row: dict[str, Any]) -> Promise:
    """Return the promise in a row."""
    for name, words in PROMISE_WORDS.items():
        if row[name] not in words:
            raise ValueError(f"{name} is {row[name]!r}")
    promise = Promise(**{name.removeprefix("promise_"): row[name] for name in PROMISE_COLUMNS})
    if promise.kind == "certified" and None in (promise.delta, promise.scope, promise.premise):
        raise ValueError("its promise lacks delta, scope or premise")
    if promise.kind == "not certified" and promise.scale is None:
        raise ValueError("its promise lacks the scale")
    return promise


def _fits(name: str, value: Any) -> bool:
    """Return whether a value is of its column's kind. What never happened is None."""
    if value is None:
        return name in MAY_BE_NONE
    kind = COLUMNS[name]
    return type(value) is (list if kind.endswith("[]") else PYTHON_TYPES[kind])


def study_folders(path: str | Path) -> list[Path]:
    """Return the folders of results: this one, or those in it; studies of the package in their
    order, then by name.
    """
    target = Path(path)
    if (target / STUDY).exists():
        return [target]
    there = sorted(target.iterdir()) if target.is_dir() else []
    order = {name: i for i, name in enumerate(GROUPS["all"])}
    inside = [folder for folder in there if (folder / STUDY).exists()]
    inside.sort(key=lambda folder: order.get(folder.name, len(order)))
    if not inside:
        raise InvalidSetting(
            f"{target} holds no results, and no folders of results. Expected one that `run` wrote."
        )
    return inside
