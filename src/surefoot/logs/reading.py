"""A log on disk, opened with DuckDB: one flat table with one row for each step of each episode.

The columns are episode, step, state, action, reward, next_state, and terminated and truncated where
they are known. The probabilities with which actions were chosen need not be known. Whatever the
names and types of the columns are, all other modules read one view, `log`: id, episode, step
BIGINT, state, action, next_state (BIGINT or VARCHAR), reward DOUBLE, terminated, truncated BOOLEAN,
and row BIGINT (`Files.places` names it).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.base.sql import quote_text
from surefoot.base.validation import require_integer, require_mapping
from surefoot.errors import InvalidLog, InvalidSetting
from surefoot.logs.cells import (
    MEMORY,
    ROW_GROUP,
    Files,
    Paths,
    Raw,
    Wanted,
    column_called,
    connected,
    find_files,
    open_raw,
    readable,
)
from surefoot.logs.text import PLAINLY, is_number, is_truth, is_whole

if TYPE_CHECKING:
    import duckdb

COLUMNS = ("episode", "step", "state", "action", "reward", "next_state")  # all of them are needed
FLAGS = ("terminated", "truncated")  # false where the log does not have them
WHOLE = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
)
TEXT = ("VARCHAR", "UUID", "ENUM")
NUMBERS = (*WHOLE, "FLOAT", "DOUBLE", "DECIMAL")
# of text, in this order
TEXT_KINDS = (("BIGINT", is_whole), ("BOOLEAN", is_truth), ("DOUBLE", is_number))
LABELS = ("episode", "state", "action", "next_state")


@dataclass(frozen=True)
class OpenLog:
    """A log that can be queried; `log` is the view to query."""

    con: "duckdb.DuckDBPyConnection"
    files: Files
    text: frozenset[str]  # which of episode, state, action are text
    flags: frozenset[str]  # which of terminated, truncated exist

    @property
    def where(self) -> str:
        """The names of the files, for messages."""
        return self.files.where

    def ask(self, query: str) -> dict[str, Any]:
        """Return the answer as named numpy arrays."""
        with readable(self.where):
            return dict(self.con.execute(query).fetchnumpy())

    def row(self, query: str) -> tuple[Any, ...]:
        """Return an answer that is one row."""
        with readable(self.where):
            found = self.con.execute(query).fetchone()
        assert found is not None
        return found

    def values(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return one value for each expression that is asked, by its name."""
        return dict(
            zip(asked, self.row(f"SELECT {', '.join(asked.values())} FROM log"), strict=True)
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a short answer."""
        with readable(self.where):
            return self.con.execute(query).fetchall()


@contextmanager
def open_log(
    paths: Paths,
    columns: Mapping[str, str] | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
    delimiter: str | None = None,
) -> Iterator[OpenLog]:
    """Open one file, several files, or a glob. What does not fit into `memory` goes to a
    temporary folder.
    """
    files, names = find_files(paths, delimiter), column_names(columns)
    cores = None if threads is None else require_integer("threads", threads, 1, InvalidSetting)
    with connected(memory) as (con, folder):
        if cores is not None:
            con.execute(f"SET threads = {cores}")
        with readable(files.where):
            raw = open_rows(con, files, names, folder)
            con.execute("SET preserve_insertion_order = false")
            is_text = files.form != "parquet"
            kinds = kinds_of_text(con, "raw", raw.kinds) if is_text else raw.kinds
            text, flags = _view(con, files, names, kinds, folder)
        yield OpenLog(con, files, text, flags)


def open_rows(
    con: "duckdb.DuckDBPyConnection",
    files: Files,
    names: Mapping[str, str],
    folder: Path,
    *,
    keep_torn: bool = False,
) -> Raw:
    """Open the files of a log as the view `raw`; torn rows are refused, or kept without values."""
    said = [
        meaning for meaning, name in names.items() if name != meaning and meaning not in COLUMNS
    ]
    wanted = Wanted(
        names,
        (*COLUMNS, *said),
        "Names of columns stand in line 1, and nothing above them. Give its name in the log: "
        "columns={{'{0}': ...}}, or --column {0}=NAME.",
    )
    raw = open_raw(con, files, wanted, folder, keep_torn=keep_torn)
    if not raw.rows:
        raise InvalidLog(
            f"{files.where} is empty: it has no rows. Expected one row for each step of each "
            "episode."
        )
    return raw


def column_names(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the name of each of our columns in the log."""
    require_mapping(
        "columns", columns, "the names in the log by ours, such as {'state': 'segment'}"
    )
    given = dict(columns or {})
    strange = [name for name in given if name not in (*COLUMNS, *FLAGS)]
    if strange:
        raise InvalidSetting(
            f"columns names {strange[0]!r}, expected some of {', '.join((*COLUMNS, *FLAGS))}: the "
            "meaning first, then the name in the log, as in {'state': 'segment'}."
        )
    return {name: given.get(name, name) for name in (*COLUMNS, *FLAGS)}


def kinds_of_text(
    con: "duckdb.DuckDBPyConnection", view: str, columns: Iterable[str]
) -> dict[str, str]:
    """Return the type of each column of a view of texts: what all its values can be."""
    kinds = dict.fromkeys(columns, "VARCHAR")
    for kind, fits in TEXT_KINDS:
        left = [name for name in kinds if kinds[name] == "VARCHAR"]
        asked = [f"count({name}) > 0 AND bool_and({fits(name)})" for name in left]
        (answer,) = con.execute(f"SELECT {', '.join([*asked, 'count(*)'])} FROM {view}").fetchall()
        kinds |= {name: kind for name, fit in zip(left, answer, strict=False) if fit}
    for name in LABELS:
        # true and TRUE are two labels
        if kinds.get(name) == "BOOLEAN" and not _one_way(con, view, name):
            kinds[name] = "VARCHAR"
    return kinds


def _one_way(con: "duckdb.DuckDBPyConnection", view: str, name: str) -> bool:
    """Are true and false each written in one way?"""
    ((ways, values),) = con.execute(
        f"SELECT count(DISTINCT {name}), count(DISTINCT lower({name})) FROM {view}"
    ).fetchall()
    return bool(ways == values)


def _first_unfit(
    con: "duckdb.DuckDBPyConnection", files: Files, name: str, kinds: Sequence[str]
) -> tuple[str, str]:
    """Return where the first text is that is of none of these types, and what it is; or where the
    first is that is of another type than those above it.
    """
    tests = [fit(name) for kind, fit in TEXT_KINDS if kind in kinds]
    written = f"SELECT row, {name} FROM raw WHERE {name} IS NOT NULL"
    query = f"{written} AND NOT ({' OR '.join(tests)}) ORDER BY row LIMIT 1"
    for row, value in con.execute(query).fetchall():
        return files.place(row), repr(value[:60])
    for row, first in con.execute(f"{written} ORDER BY row LIMIT 1").fetchall():
        alike = next(
            test
            for test in tests
            if con.execute(f"{written} AND {test} AND row = {row}").fetchall()
        )
        query = f"{written} AND NOT {alike} ORDER BY row LIMIT 1"
        ((other_row, other),) = con.execute(query).fetchall()
        above = f"{first[:60]!r} in {files.place(row)}"
        return files.place(other_row), f"{other[:60]!r}, of another kind than {above}"
    return files.where, "nowhere written"


def columns_of_log(
    labels: Mapping[str, str], flags: Collection[str], cast: str = "CAST", written: str = "{}"
) -> list[str]:
    """Return the columns of the view `log`, for labels of these types and the flags that are there;
    `written` is what each is called where it is read.
    """

    def read(name: str, kind: str) -> str:
        value = f"{cast}({written.format(name)} AS {kind})"
        return f"{value}::INT::BIGINT" if name in LABELS and kind == "BOOLEAN" else value

    flag = {name: read(name, "BOOLEAN") if name in flags else "false" for name in FLAGS}
    values = {name: read(name, kind) for name, kind in labels.items()}
    if "terminated" in flags:  # An episode that has ended needs no next state, and none is read.
        after, here = values["next_state"], values["state"]
        values["next_state"] = (
            f"CASE WHEN {flag['terminated']} THEN coalesce({after}, {here}) ELSE {after} END"
        )
    values |= {"step": read("step", "BIGINT"), "reward": read("reward", "DOUBLE"), **flag}
    return [*(f"{value} AS {name}" for name, value in values.items()), "row"]


def _require_types(
    con: "duckdb.DuckDBPyConnection",
    files: Files,
    names: Mapping[str, str],
    kinds: Mapping[str, str],
) -> None:
    """Refuse columns of other types than ours, and flags that are other numbers than 0 and 1."""
    plainly, cast = "", "Cast it where the log is made"
    if files.form != "parquet":
        plainly = f". {PLAINLY}"
        cast = "A code of digits that is no number, such as 01, needs a letter: write it as s01"
    expected = {
        "step": (WHOLE, "whole numbers: 0, 1, 2, ... within each episode"),
        "reward": (NUMBERS, f"numbers{plainly}"),
        **dict.fromkeys(LABELS, ((*WHOLE, *TEXT, "BOOLEAN"), f"whole numbers or text. {cast}")),
        **dict.fromkeys(FLAGS, ((*WHOLE, "BOOLEAN"), "true or false, or 1 or 0")),
    }
    for name, (fitting, meaning) in expected.items():
        kind = kinds.get(name, "BOOLEAN")
        place, found = files.where, ""
        if kind.endswith("]") or (name in kinds and not kind.startswith(fitting)):
            found = kind
            if files.form != "parquet":
                place, found = _first_unfit(con, files, name, fitting)
        elif name in FLAGS and kind != "BOOLEAN":
            odd = f"SELECT row, {name} FROM raw WHERE {name}::VARCHAR NOT IN ('0', '1')"
            for row, value in con.execute(f"{odd} ORDER BY row LIMIT 1").fetchall():
                place, found = files.place(row), str(value)
        if found:
            called = column_called(names[name], name)
            raise InvalidLog(f"{place}: column {called} is {found}, expected {meaning}.")


def _view(
    con: "duckdb.DuckDBPyConnection",
    files: Files,
    names: Mapping[str, str],
    kinds: Mapping[str, str],
    folder: Path,
) -> tuple[frozenset[str], frozenset[str]]:
    """Make the view `log`. Return which columns are text, and which flags exist.

    A text is written to the folder once more, with its types: several queries follow.
    """
    _require_types(con, files, names, kinds)
    flags = {name for name in FLAGS if name in kinds}
    text = {name for name in LABELS if kinds[name].startswith(TEXT)}
    if ("state" in text) != ("next_state" in text):
        raise InvalidLog(
            f"{files.where}: state is {kinds['state']}, but next_state is {kinds['next_state']}, "
            "expected one type for both. Look for rows that differ."
        )
    labels = {
        name: "BOOLEAN" if kinds[name] == "BOOLEAN" else "VARCHAR" if name in text else "BIGINT"
        for name in LABELS
    }
    chosen = columns_of_log(labels, flags)
    rows = f"SELECT {', '.join(chosen)} FROM raw"
    if files.form != "parquet":
        path = quote_text(folder / "log.parquet")
        con.execute(f"COPY ({rows}) TO {path} (FORMAT PARQUET, ROW_GROUP_SIZE {ROW_GROUP})")
        for written in folder.glob("[0-9]*"):
            written.unlink()
        rows = f"SELECT * FROM {path}"
    number = "(md5_number_upper(episode) >> 12)::BIGINT" if "episode" in text else "episode"
    con.execute(f"CREATE VIEW log AS SELECT *, {number} AS id FROM ({rows})")
    return frozenset(text - {"next_state"}), frozenset(flags)
