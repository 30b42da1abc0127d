"""A log on disk, opened with DuckDB: one flat table with one row for each step of each episode.

The columns are episode, step, state, action, reward, next_state, and terminated and truncated where they are known. The
probabilities with which actions were chosen need not be known. Whatever the names and types of the columns are, all
other modules read one view, `log`: id, episode, step BIGINT, state, action, next_state (BIGINT or VARCHAR), reward
DOUBLE, terminated, truncated BOOLEAN.
"""

import glob
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.base.sql import quote_name, quote_text
from surefoot.base.validation import require_integer, require_mapping
from surefoot.errors import InvalidLog, InvalidSetting

if TYPE_CHECKING:
    import duckdb

Paths = str | Path | Sequence[str | Path]
COLUMNS = ("episode", "step", "state", "action", "reward", "next_state")  # all of them are needed
FLAGS = ("terminated", "truncated")  # false where the log does not have them
READERS = {  # DuckDB's readers, and the endings of their files
    "read_parquet": (".parquet", ".pq"),
    "read_csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "read_json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
}
BUFFER = 8_000_000  # bytes of CSV at a time: with DuckDB's default of 32 MB, small limits of memory are exceeded
ROW_GROUP = 61_440  # rows, for the same reason
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
TEXT = ("VARCHAR", "UUID", "ENUM")
NUMBERS = (*WHOLE, "FLOAT", "DOUBLE", "DECIMAL")
MEMORY = "256MB"


@dataclass(frozen=True)
class OpenLog:
    """A log that can be queried; `log` is the view to query."""

    con: "duckdb.DuckDBPyConnection"
    where: str  # for messages
    text: frozenset[str]  # which of episode, state, action are text
    flags: frozenset[str]  # which of terminated, truncated exist

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
        return dict(zip(asked, self.row(f"SELECT {', '.join(asked.values())} FROM log"), strict=True))

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
) -> Iterator[OpenLog]:
    """Open one file, several files, or a glob. What does not fit into `memory` goes to a temporary folder."""
    _, patterns, reader, where = files_as_patterns(paths)
    names = column_names(columns)
    cores = None if threads is None else require_integer("threads", threads, 1, InvalidSetting)
    with tempfile.TemporaryDirectory(prefix="surefoot-") as spill, connected(memory, spill) as con:
        con.execute("SET preserve_insertion_order = false")
        if cores is not None:
            con.execute(f"SET threads = {cores}")
        with readable(where):
            folder = None if reader == "read_parquet" else Path(spill)
            kinds = _typed(con, patterns) if folder is None else _as_text(con, reader, patterns, names, folder)
            if con.execute("SELECT 1 FROM raw LIMIT 1").fetchone() is None:
                raise InvalidLog(f"{where} is empty: it has no rows. Expected one row for each step of each episode.")
            require_columns(where, names, kinds)
            text, flags = _view(con, where, names, kinds, folder)
        yield OpenLog(con, where, text, flags)


def files_as_patterns(paths: Paths) -> tuple[list[str], list[str], str, str]:
    """Return the files of a log, as names and as DuckDB's patterns, their reader, and what the log is called."""
    files, reader = find_files(paths)
    patterns = [re.sub(r"[*?\[]", r"[\g<0>]", file) for file in files]  # DuckDB reads a name as a pattern again
    return files, patterns, reader, files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


@contextmanager
def connected(memory: str, spill: str) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open DuckDB with so much memory, and a folder for what does not fit."""
    import duckdb

    with duckdb.connect() as con:
        try:
            con.execute(f"SET memory_limit = '{_size(memory)}'")
        except duckdb.Error:
            raise InvalidSetting(f"memory is {memory!r}, expected a size such as '512MB' or '4GB'.") from None
        con.execute(f"SET temp_directory = {quote_text(spill)}")
        con.execute("SET perfect_ht_threshold = 18")  # bits of keys: small tables are filled by index, not by hash
        con.execute("SET enable_progress_bar = false")  # a progress bar would mix with the output of a command
        yield con


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Turn DuckDB's errors about a file into ours."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as reason:
        raise InvalidLog(f"{where} does not fit into memory: {_first_line(reason)} Increase memory=.") from None
    except duckdb.Error as reason:
        raise InvalidLog(
            f"{where} cannot be read: {_first_line(reason)} Is the file complete, and is its ending right?"
        ) from None


def _first_line(reason: Exception) -> str:
    """Return the first lines of DuckDB's message without its hints; they name file, line and value."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    kept: list[str] = []
    for line in lines[:4]:
        hint = line.lower().startswith(("possible", "candidate", "line 1"))
        if hint or ("sniff" in line.lower() and len(lines) > 1):
            continue
        kept.append(line.rstrip("."))
    text = ". ".join(kept or lines[:1]) or type(reason).__name__
    return f"{text[:400]}."


def find_files(paths: Paths) -> tuple[list[str], str]:
    """Return the files, in sorted order, and DuckDB's reader for their ending."""
    given = list(paths) if isinstance(paths, list | tuple) else [paths]
    files: list[str] = []
    odd = next((path for path in given if not isinstance(path, str | Path)), None)
    if odd is not None:
        raise InvalidSetting(
            f"Expected the path of a log, several in a list, or a glob, found {type(odd).__name__}. Write a data "
            "frame to a file first: frame.to_parquet('log.parquet')."
        )
    for path in given:
        text = str(path)
        if Path(text).is_dir():
            ends = [end for endings in READERS.values() for end in endings if any(Path(text).glob(f"*{end}"))]
            some = f"{text.rstrip('/')}/*{(ends or ['.parquet'])[0]}"
            raise InvalidLog(f"{text} is a folder. Name the files in it: '{some}'.")
        found = [text] if Path(text).is_file() else sorted(glob.glob(text, recursive=True))  # noqa: PTH207  (absolute patterns)
        if not found:
            raise InvalidLog(f"{text} does not exist. Expected a log as Parquet, CSV or JSON: a file or a glob.")
        files += found
    if not files:
        raise InvalidLog("No file is given. Expected at least one.")
    repeated, times = Counter(files).most_common(1)[0]
    if times > 1:
        raise InvalidLog(f"{repeated} is given {times} times. Give each file once.")
    readers = {file: _reader(file) for file in files}
    first = readers[files[0]]
    other = next((file for file, reader in readers.items() if reader != first), None)
    if other is not None:
        raise InvalidLog(f"{files[0]} and {other} have different formats. Read them separately.")
    return files, first


def _reader(file: str) -> str:
    for name, endings in READERS.items():
        if file.lower().endswith(endings):
            return name
    known = ", ".join(ending for endings in READERS.values() for ending in endings)
    raise InvalidLog(f"{file}: its ending names no known format. Expected one of {known}.")


def column_names(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the name of each of our columns in the log."""
    require_mapping("columns", columns, "the names in the log by ours, such as {'state': 'segment'}")
    given = dict(columns or {})
    strange = [name for name in given if name not in (*COLUMNS, *FLAGS)]
    if strange:
        raise InvalidSetting(
            f"columns names {strange[0]!r}, expected some of {', '.join((*COLUMNS, *FLAGS))}: the meaning first, then "
            "the name in the log, as in {'state': 'segment'}."
        )
    return {name: given.get(name, name) for name in (*COLUMNS, *FLAGS)}


def _typed(con: "duckdb.DuckDBPyConnection", patterns: list[str]) -> dict[str, str]:
    """Open Parquet files as the view `raw`. Return the columns and their types, which must hold for all files."""
    relation = con.read_parquet(patterns, union_by_name=True)
    relation.create_view("raw")
    return {str(name): str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


def _as_text(
    con: "duckdb.DuckDBPyConnection", reader: str, patterns: Any, names: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """Open CSV or JSON as the view `raw`, every value as it is written. Return the columns and the types of all values.

    By default DuckDB decides by the first rows and converts what does not fit: 0.4 becomes 0, and 01 becomes 1.
    """
    if reader == "read_csv":
        relation = con.read_csv(patterns, union_by_name=True, all_varchar=True, buffer_size=BUFFER)
    else:
        first = [str(name) for name in con.read_json(patterns, union_by_name=True).columns]
        there = {name.lower() for name in first}
        later = [name for name in names.values() if name.lower() not in there]  # a key may first occur late, or never
        relation = con.read_json(patterns, columns=dict.fromkeys([*first, *later], "VARCHAR"))
    columns = [str(name) for name in relation.columns]
    wanted = {called.lower() for called in names.values()}
    read = [name for name in columns if name.lower() in wanted]
    relation.create_view("written")
    if not read:
        con.execute("CREATE VIEW raw AS FROM written")
        return dict.fromkeys(columns, "VARCHAR")
    path = quote_text(folder / "written.parquet")
    chosen = ", ".join(quote_name(name) for name in read)
    con.execute(f"COPY (SELECT {chosen} FROM written) TO {path} (FORMAT PARQUET, ROW_GROUP_SIZE {ROW_GROUP})")
    con.execute(f"CREATE VIEW raw AS FROM {path}")
    tests = (
        ("BIGINT", "try_cast({0} AS BIGINT)::VARCHAR = {0}"),
        ("BOOLEAN", "lower({0}) IN ('true', 'false')"),
        ("DOUBLE", "try_cast({0} AS DOUBLE) IS NOT NULL"),
    )
    asked = [f"count(*) FILTER ({test.format(quote_name(name))})" for name in read for _, test in tests]
    answer = con.execute(
        f"SELECT {', '.join([*(f'count({quote_name(name)})' for name in read), *asked])} FROM raw"
    ).fetchone()
    assert answer is not None
    kinds = dict.fromkeys(columns, "VARCHAR")
    filled, fitting = answer[: len(read)], iter(answer[len(read) :])
    for name, n in zip(read, filled, strict=True):
        fits = [kind for kind, _ in tests if next(fitting) == n > 0]
        kinds[name] = fits[0] if fits else "VARCHAR"
        if not n and reader == "read_json":
            del kinds[name]  # no row has it
    return kinds


def require_columns(where: str, names: Mapping[str, str], kinds: Mapping[str, str]) -> None:
    """Refuse a log that lacks a column."""
    there = {name.lower() for name in kinds}
    missing = [name for name in COLUMNS if names[name].lower() not in there]
    if len(kinds) == 1 and len(missing) > 1:
        raise InvalidLog(
            f"{where} is read as a single column, {next(iter(kinds))!r}. Is a line damaged, or the file cut off? "
            "sf.check_log (`surefoot logs check`) names rows that do not have the fields of the header."
        )
    if missing:
        lacking = " and ".join(f"{names[name]!r} ({name})" for name in missing)
        raise InvalidLog(
            f"{where} has no column {lacking}. Found: {', '.join(kinds)}. Give its name in the log: "
            f"columns={{'{missing[0]}': ...}}, or --column {missing[0]}=NAME."
        )


def _view(
    con: "duckdb.DuckDBPyConnection",
    where: str,
    names: Mapping[str, str],
    kinds: Mapping[str, str],
    folder: Path | None,
) -> tuple[frozenset[str], frozenset[str]]:
    """Make the view `log`. Return which columns are text, and which flags exist.

    A log that is slow to read is written to the folder once, as Parquet: several queries follow.
    """
    there = {name.lower(): (name, kind) for name, kind in kinds.items()}

    def kind(name: str) -> str:
        return there[names[name].lower()][1]

    def quoted(name: str) -> str:
        return quote_name(there[names[name].lower()][0])

    def require(name: str, *families: tuple[str, ...], meaning: str) -> None:
        if not any(kind(name).startswith(family) for family in sum(families, ())):
            strange = con.execute(
                f"SELECT {quoted(name)} FROM raw WHERE try_cast({quoted(name)} AS DOUBLE) IS NULL AND {quoted(name)} "
                "IS NOT NULL LIMIT 1"
            ).fetchone()
            such = f", such as {str(strange[0])[:60]!r}" if strange is not None and name in ("step", "reward") else ""
            raise InvalidLog(f"{where}: column {names[name]!r} ({name}) is {kind(name)}{such}, expected {meaning}.")

    whole_or_text = "whole numbers or text. Cast it where the log is made"
    require("step", WHOLE, meaning="whole numbers: 0, 1, 2, ... within each episode")
    require("reward", NUMBERS, meaning="numbers")
    for name in ("episode", "state", "action", "next_state"):
        require(name, WHOLE, TEXT, ("BOOLEAN",), meaning=whole_or_text)
    text = {name for name in ("episode", "state", "action", "next_state") if kind(name).startswith(TEXT)}
    if ("state" in text) != ("next_state" in text):
        raise InvalidLog(
            f"{where}: state is {kind('state')}, but next_state is {kind('next_state')}, expected one type for "
            "both. Look for rows that differ."
        )
    flags = {name for name in FLAGS if names[name].lower() in there}
    for name in flags:
        require(name, WHOLE, ("BOOLEAN",), meaning="true or false, or 1 or 0")

    def cast(name: str) -> str:
        if kind(name) == "BOOLEAN":
            return f"CASE WHEN {quoted(name)}::BOOLEAN THEN 1 WHEN NOT {quoted(name)}::BOOLEAN THEN 0 END::BIGINT"
        return f"{quoted(name)}::{'VARCHAR' if name in text else 'BIGINT'}"

    flag = {name: f"{quoted(name)}::BOOLEAN" if name in flags else "false" for name in FLAGS}
    chosen = [f"{cast(name)} AS {name}" for name in ("episode", "step", "state", "action")]
    # An episode that has ended needs no next state, and none is read.
    chosen += [
        f"CASE WHEN {flag['terminated']} THEN coalesce({cast('next_state')}, {cast('state')}) "
        f"ELSE {cast('next_state')} END AS next_state"
        if "terminated" in flags
        else f"{cast('next_state')} AS next_state"
    ]
    chosen += [f"{quoted('reward')}::DOUBLE AS reward", *(f"{flag[name]} AS {name}" for name in FLAGS)]
    rows = f"SELECT {', '.join(chosen)} FROM raw"
    if folder is not None:
        path = quote_text(folder / "log.parquet")
        con.execute(f"COPY ({rows}) TO {path} (FORMAT PARQUET, ROW_GROUP_SIZE {ROW_GROUP})")
        (folder / "written.parquet").unlink()
        rows = f"SELECT * FROM {path}"
    number = "(md5_number_upper(episode) >> 12)::BIGINT" if "episode" in text else "episode"
    con.execute(f"CREATE VIEW log AS SELECT *, {number} AS id FROM ({rows})")
    return frozenset(text - {"next_state"}), frozenset(flags)


def _size(memory: object) -> str:
    """Check that a size of memory is text without quotes."""
    if not isinstance(memory, str) or not memory.replace(".", "").replace(" ", "").isalnum():
        raise InvalidSetting(f"memory is {memory!r}, expected a size such as '512MB' or '4GB'.")
    return memory
