"""One reader of files of rows, for logs and for guards: CSV, TSV, JSON lines and Parquet. Nothing
is guessed.

What separates the fields of a CSV is declared, by the ending of its name or by `delimiter`. No
column comes from the name of a folder, and none is there twice. Python looks at every line of a
text first (`text.py`). What it does not refuse can be read in one way only. DuckDB then reads it
with all detection off, and must find as many rows. Values stay texts.
"""

import glob
import re
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from surefoot.base.sql import quote_name, quote_text
from surefoot.errors import InvalidLog, InvalidSetting
from surefoot.logs.text import (
    BLOCK,
    LONGEST,
    Look,
    Torn,
    has_mark,
    is_compressed,
    look_at_csv,
    look_at_json,
    without_mark,
    without_torn,
)

if TYPE_CHECKING:
    import duckdb

Paths = str | Path | Sequence[str | Path]
ENDINGS = {  # of each format; a text may be compressed
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
}
# what may be declared, and what it means
DELIMITERS = {",": ",", ";": ";", "|": "|", "\t": "\t", "tab": "\t"}
MEMORY = "256MB"
# bytes of CSV at a time: with DuckDB's default of 32 MB, small limits of memory are exceeded
BUFFER = 8_000_000
ROW_GROUP = 61_440  # rows, for the same reason
FAR = 10**12  # rows of one file, at most
CHUNK = 10_000  # rows at a time
MOST_BYTES = 4 * (LONGEST + BLOCK)  # of a row
# else a folder called action=mail takes the place of the column action
NO_FOLDERS = "hive_partitioning = false"
# One core at a time: in parallel, rows have been read twice (duckdb#25164). What ends a line is not
# said: all lines end alike, and where it was said to be \r\n, DuckDB 2.0.0 read no row.
STRICT = (
    "auto_detect = false, header = true, quote = '\"', escape = '\"', comment = '', nullstr = '', "
    "strict_mode = true, null_padding = false, ignore_errors = false, encoding = 'utf-8', parallel "
    f"= false, max_line_size = {MOST_BYTES}, buffer_size = {BUFFER}, {NO_FOLDERS}"
)
OBJECTS = (
    "format = 'newline_delimited', ignore_errors = false, maximum_object_size = "
    f"{MOST_BYTES}, {NO_FOLDERS}"
)

# ---- Which files are meant -----------------------------------------------------------------------


class Files(NamedTuple):
    """Files of one format, in order."""

    names: tuple[str, ...]
    form: str  # a key of ENDINGS
    delimiters: tuple[str, ...]  # of each

    @property
    def where(self) -> str:
        """What they are called."""
        return (
            self.names[0]
            if len(self.names) == 1
            else f"{self.names[0]} and {len(self.names) - 1} more"
        )

    def place(self, row: int) -> str:
        """What a row of `raw` is called."""
        return f"{self.names[row // FAR]}, row {row % FAR:,}"

    def places(self, rows: Iterable[int]) -> tuple[int | str, ...]:
        """Return rows of `raw` by their numbers; of several files with their names."""
        several = len(self.names) > 1
        return tuple(
            f"{Path(self.names[row // FAR]).name} {row % FAR}" if several else int(row % FAR)
            for row in rows
        )


def find_files(paths: Paths, delimiter: str | None = None) -> Files:
    """Return the files that are meant, those of a glob in sorted order. The delimiter is that of
    all of them.
    """
    given = list(paths) if isinstance(paths, list | tuple) else [paths]
    odd = next((path for path in given if not isinstance(path, str | Path)), None)
    if odd is not None:
        raise InvalidSetting(
            "Expected the path of a log, several in a list, or a glob, found "
            f"{type(odd).__name__}. Write a data frame to a file first: "
            "frame.to_parquet('log.parquet')."
        )
    names = [name for path in given for name in _meant(str(path))]
    if not names:
        raise InvalidLog("No file is given. Expected at least one.")
    repeated, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InvalidLog(f"{repeated} is given {times} times. Give each file once.")
    forms = [_form(name) for name in names]
    other = next((name for name, form in zip(names, forms, strict=True) if form != forms[0]), None)
    if other is not None:
        raise InvalidLog(f"{names[0]} and {other} have different formats. Read them separately.")
    return Files(tuple(names), forms[0], tuple(_delimiter(name, delimiter) for name in names))


def _meant(path: str) -> list[str]:
    """Return the file that a path names, or the files that a glob means."""
    if Path(path).is_dir():
        ends = [
            end
            for endings in ENDINGS.values()
            for end in endings
            if any(Path(path).glob(f"*{end}"))
        ]
        some = f"{path.rstrip('/')}/*{(ends or ['.parquet'])[0]}"
        raise InvalidLog(f"{path} is a folder. Name the files in it: '{some}'.")
    found = [path] if Path(path).is_file() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207  (absolute patterns)
    if not found:
        raise InvalidLog(
            f"{path} does not exist. Expected a log as Parquet, CSV or JSON lines: a file or a "
            "glob."
        )
    return found


def _form(name: str) -> str:
    for form, endings in ENDINGS.items():
        if name.lower().endswith(endings):
            return form
    known = ", ".join(ending for endings in ENDINGS.values() for ending in endings)
    raise InvalidLog(f"{name}: its ending names no known format. Expected one of {known}.")


def _delimiter(name: str, declared: str | None) -> str:
    """Return what separates the fields of a file: what was declared, or what its ending says."""
    if declared is None:
        return "\t" if name.lower().removesuffix(".gz").endswith(".tsv") else ","
    if declared not in DELIMITERS:
        known = ", ".join(repr(each) for each in DELIMITERS)
        raise InvalidSetting(
            f"delimiter is {declared!r}, expected what separates the fields of a CSV: one of "
            f"{known}."
        )
    if _form(name) != "csv":
        raise InvalidSetting(f"delimiter is for CSV: {name} has another format. Leave it out.")
    return DELIMITERS[declared]


# ---- What DuckDB makes of them -------------------------------------------------------------------


class Wanted(NamedTuple):
    """Columns that are wanted: their names in the files, by their meanings."""

    names: Mapping[str, str]
    needed: Sequence[str]  # the meanings of those that must be there
    advice: str  # for who lacks {0}


class Raw(NamedTuple):
    """Files that were opened. Where there are rows, the view `raw` has the wanted columns, each by
    its meaning.

    It also has `row`: the number of the row, from 1 in each file, and FAR more for each file before
    it.
    """

    rows: int
    # DuckDB's type of each wanted column that is there; VARCHAR of all that is text
    kinds: Mapping[str, str]
    torn: int  # how many rows have not the fields of the header
    first_torn: tuple[Torn, ...]  # with the numbers that rows have in `raw`


def open_raw(
    con: "duckdb.DuckDBPyConnection",
    files: Files,
    wanted: Wanted,
    folder: Path,
    *,
    keep_torn: bool = False,
) -> Raw:
    """Open files as the view `raw`, if there are rows.

    A text is written to the folder first, as Parquet. With `keep_torn` a torn row is one without
    values; else a file that has some is refused.
    """
    meant = frozenset(name.lower() for name in wanted.names.values())
    looks = [_look(con, files, i, meant) for i in range(len(files.names))]
    for name, look in zip(files.names, looks, strict=True):
        _require_plain(name, look.columns)
    rows = sum(look.rows for look in looks)
    if not rows:
        return Raw(0, {}, 0, ())
    there = {name.lower(): name for look in looks for name in look.columns}
    _require_needed(files, wanted, there)
    torn = sum(look.torn for look in looks)
    first_torn = tuple(
        each._replace(row=i * FAR + each.row)
        for i, look in enumerate(looks)
        for each in look.first_torn
    )
    if torn and not keep_torn:
        raise InvalidLog(_about_torn(files, torn, first_torn[0]))
    held = {
        meaning: there[name.lower()]
        for meaning, name in wanted.names.items()
        if name.lower() in there
    }
    if files.form == "parquet":
        _require_equal_kinds(con, files, [name.lower() for name in held.values()])
        con.execute(f"CREATE VIEW raw AS {_of_parquet(files, held)}")
    else:
        con.execute(f"CREATE VIEW raw AS {_of_text(con, files, looks, held, folder)}")
    kinds = {
        str(name): str(kind)
        for name, kind, *_ in con.execute("DESCRIBE raw").fetchall()
        if name in held
    }
    return Raw(rows, kinds, torn, first_torn)


def _look(con: "duckdb.DuckDBPyConnection", files: Files, i: int, wanted: frozenset[str]) -> Look:
    """Look at a whole text, or at what a Parquet file says of itself."""
    name = files.names[i]
    if files.form == "csv":
        return look_at_csv(name, files.delimiters[i])
    if files.form == "json":
        return look_at_json(name, wanted)
    place = quote_text(_pattern(name))
    columns, inside = list[str](), 0  # the parts of a column follow it
    for column, parts in con.execute(
        f"SELECT name, num_children FROM parquet_schema({place})"
    ).fetchall()[1:]:
        columns += [] if inside else [str(column)]
        inside = max(0, inside - 1) + int(parts or 0)
    ((rows,),) = con.execute(f"SELECT num_rows FROM parquet_file_metadata({place})").fetchall()
    return Look(tuple(columns), int(rows))


def _require_plain(name: str, columns: Sequence[str]) -> None:
    """Refuse a column with spaces around its name, which would not be found, and one that is there
    twice: DuckDB would read the second one under another name.
    """
    spaced = next((column for column in columns if column != column.strip()), None)
    if spaced is not None:
        raise InvalidLog(
            f"{name} has a column that is called {spaced[:60]!r}, with spaces around its name. "
            "Expected none: correct the header."
        )
    times = Counter(column.lower() for column in columns)
    repeated = next((column for column in columns if times[column.lower()] > 1), None)
    if repeated is not None:
        what = (
            f"{times[repeated.lower()]} columns that are called {repeated[:60]!r}, in upper or "
            "lower case"
        )
        raise InvalidLog(
            f"{name} has {what}. Expected each name once: rename them, or leave out all but one."
        )


def _require_needed(files: Files, wanted: Wanted, there: Mapping[str, str]) -> None:
    """Refuse files that lack a column."""
    missing = [meaning for meaning in wanted.needed if wanted.names[meaning].lower() not in there]
    if not missing:
        return
    lacking = ", ".join(column_called(wanted.names[meaning], meaning) for meaning in missing)
    found, advice = ", ".join(map(_shown, there.values())), wanted.advice.format(missing[0])
    header = "".join(there.values())
    other = next(
        (name for name, sign in DELIMITERS.items() if sign in header and name != "\t"), None
    )
    if files.form == "csv" and len(there) == 1 and other is not None:
        advice = (
            f"Are fields separated by {other!r}? Declare it: delimiter={other!r}, or "
            f"--delimiter {other!r}."
        )
    raise InvalidLog(f"{files.where} has no column {lacking}. Found: {found or 'none'}. {advice}")


def column_called(name: str, meaning: str) -> str:
    """Return what a column is called, and what it means where that is another word."""
    return repr(name) if name == meaning else f"{name!r} ({meaning})"


def _shown(name: str) -> str:
    """Return a column's name, in quotes if it begins or ends with spaces, which nobody would
    see.
    """
    return name if name == name.strip() else repr(name)


def _about_torn(files: Files, torn: int, first: Torn) -> str:
    others = f" {torn - 1:,} more are torn like that." if torn > 1 else ""
    delimiter = files.delimiters[first.row // FAR]
    return (
        f"{files.place(first.row)} (line {first.line:,}) has {first.fields} fields, expected "
        f"{first.expected}, as in the header.{others} Correct this where the file is made: a value "
        f"that holds the delimiter, {delimiter!r}, needs quotes around it, and no line is empty."
    )


def _require_equal_kinds(
    con: "duckdb.DuckDBPyConnection", files: Files, columns: Sequence[str]
) -> None:
    """Refuse files of which one has numbers, and another text or true and false, in one column:
    DuckDB would turn true into 1, and 1 into the text of it.
    """
    shown: dict[str, tuple[str, str]] = {}  # of each column: its kind, and a file that shows it
    for name in files.names if len(files.names) > 1 else ():
        for column, kind, *_ in con.execute(f"DESCRIBE FROM {_alone(name)}").fetchall():
            wanted = column.lower()
            if wanted not in columns:
                continue
            family = kind if kind in ("VARCHAR", "BOOLEAN") else "numbers"
            known, first = shown.setdefault(wanted, (family, name))
            if family == known or _is_empty(con, name, column):
                continue
            if not _is_empty(con, first, column):
                raise InvalidLog(
                    f"{name}: column {column!r} is {kind}, and in {first} it is {known}. Expected "
                    "one kind in all files: cast it where the log is made."
                )
            shown[wanted] = (family, name)


def _alone(name: str) -> str:
    """Return how DuckDB reads one Parquet file."""
    return f"read_parquet({quote_text(_pattern(name))}, {NO_FOLDERS})"


def _is_empty(con: "duckdb.DuckDBPyConnection", name: str, column: str) -> bool:
    """Has a column no values? Then its kind says nothing."""
    (n,) = con.execute(f"SELECT count({quote_name(column)}) FROM {_alone(name)}").fetchone() or (0,)
    return not n


def _of_parquet(files: Files, held: Mapping[str, str]) -> str:
    """Return the query of the wanted columns of Parquet files."""
    chosen = [f"{quote_name(name)} AS {quote_name(meaning)}" for meaning, name in held.items()]
    names = _listed(map(_absolute, files.names))
    chosen.append(_numbered(f"list_position({names}, surefoot_file) - 1"))
    return (
        f"SELECT {', '.join(chosen)} FROM read_parquet({_listed(map(_pattern, files.names))}, "
        f"union_by_name = true, {NO_FOLDERS}, filename = 'surefoot_file', file_row_number = true)"
    )


def _numbered(file: str) -> str:
    """Return the column `row` of Parquet files, of which each has this number."""
    return f"({file}) * {FAR} + file_row_number + 1 AS row"


def _of_text(
    con: "duckdb.DuckDBPyConnection",
    files: Files,
    looks: Sequence[Look],
    held: Mapping[str, str],
    folder: Path,
) -> str:
    """Write the wanted columns of each text as Parquet, in the order of rows; return the query
    of all of them.
    """
    places = [
        _as_parquet(con, files, i, look, held, folder) for i, look in enumerate(looks) if look.rows
    ]
    chosen = [*map(quote_name, held), _numbered("file")]
    return (
        f"SELECT {', '.join(chosen)} FROM read_parquet({_listed(places)}, file_row_number = "
        f"true, {NO_FOLDERS})"
    )


def _as_parquet(
    con: "duckdb.DuckDBPyConnection",
    files: Files,
    i: int,
    look: Look,
    held: Mapping[str, str],
    folder: Path,
) -> str:
    """Write one text; as many rows must be read as were seen. Nothing, and an empty text, are
    missing values.
    """
    wanted = [name.lower() for name in held.values()]
    if files.form == "csv":
        source, cells = _csv(files, i, look, folder)
    else:
        source, cells = _json(
            files.names[i], i, [name for name in look.columns if name.lower() in wanted], folder
        )
    read = zip(held, [cells.get(name, "NULL") for name in wanted], strict=True)
    chosen = [f"nullif({cell}, '')::VARCHAR AS {quote_name(meaning)}" for meaning, cell in read]
    place = str(folder / f"{i}.parquet")
    rows = f"SELECT {', '.join(chosen)}, {i} AS file FROM {source}"
    ((n,),) = con.execute(
        f"COPY ({rows}) TO {quote_text(place)} (FORMAT PARQUET, ROW_GROUP_SIZE {ROW_GROUP})"
    ).fetchall()
    if n != look.rows:
        raise InvalidLog(
            f"{files.names[i]} has {look.rows:,} rows, and {n:,} were read. Write it as Parquet."
        )
    return place


def _csv(files: Files, i: int, look: Look, folder: Path) -> tuple[str, Mapping[str, str]]:
    """Return how DuckDB reads a CSV, and what it calls each column, by position: names may be
    any.
    """
    name, delimiter = files.names[i], files.delimiters[i]
    if look.torn:
        name = str(without_torn(name, delimiter, look, folder / f"{i}.csv"))
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(look.columns)))
    dialect = f"delim = {quote_text(delimiter)}, {_compression(name)}"
    cells = {column.lower(): f"c{place}" for place, column in enumerate(look.columns)}
    return (
        f"read_csv({quote_text(_pattern(name))}, columns = {{{columns}}}, {dialect}, {STRICT})",
        cells,
    )


def _json(name: str, i: int, keys: Sequence[str], folder: Path) -> tuple[str, Mapping[str, str]]:
    """Return how DuckDB reads these keys of JSON lines, and what it calls them. It knows no mark
    of UTF-8 there.
    """
    if has_mark(name):
        name = str(without_mark(name, folder / f"{i}.json"))
    columns = ", ".join(f"{quote_text(key)}: 'VARCHAR'" for key in keys)
    cells = {key.lower(): quote_name(key) for key in keys}
    return (
        f"read_json({quote_text(_pattern(name))}, columns = {{{columns}}}, {_compression(name)}, "
        f"{OBJECTS})",
        cells,
    )


def _compression(name: str) -> str:
    return f"compression = '{'gzip' if is_compressed(name) else 'none'}'"


def _absolute(name: str) -> str:
    """Return a path that is nothing else to DuckDB, such as a folder of the user (~) or an
    address.
    """
    return str(Path(name).absolute())


def _pattern(name: str) -> str:
    """Return a path as a pattern: DuckDB reads every name as one."""
    return re.sub(r"[*?\[]", r"[\g<0>]", _absolute(name))


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quote_text, texts))}]"


# ---- Row by row ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """A row as it is written."""

    place: str  # the file, and the number of the row in it
    cells: Mapping[str, str | None]  # by the names of columns; None: there is nothing


def rows_of(
    path: Path, needed: Sequence[str], also: Sequence[str], delimiter: str | None
) -> Generator[Row, None, None]:
    """Yield the rows of a file in their order, with these columns; those of `also` may be
    lacking.
    """
    files, names = find_files(path, delimiter), {name: name for name in (*needed, *also)}
    wanted = Wanted(names, needed, f"Expected the columns {', '.join(needed)}.")
    with connected(MEMORY) as (con, folder), readable(files.where):
        raw = open_raw(con, files, wanted, folder)
        if not raw.rows:
            return
        cells = ", ".join(f"{quote_name(name)}::VARCHAR" for name in raw.kinds)
        con.execute(f"SELECT row, {cells} FROM raw ORDER BY row")
        while some := con.fetchmany(CHUNK):
            for row, *values in some:
                yield Row(files.place(row), dict(zip(raw.kinds, values, strict=True)))


# ---- DuckDB --------------------------------------------------------------------------------------


@contextmanager
def connected(memory: str) -> Iterator[tuple["duckdb.DuckDBPyConnection", Path]]:
    """Open DuckDB with so much memory, and a temporary folder for what does not fit."""
    import duckdb

    plain = isinstance(memory, str) and memory.replace(".", "").replace(" ", "").isalnum()
    with tempfile.TemporaryDirectory(prefix="surefoot-") as spill, duckdb.connect() as con:
        try:
            con.execute(f"SET memory_limit = '{memory if plain else ''}'")
        except duckdb.Error:
            raise InvalidSetting(
                f"memory is {memory!r}, expected a size such as '512MB' or '4GB'."
            ) from None
        con.execute(f"SET temp_directory = {quote_text(spill)}")
        # bits of keys: small tables are filled by index, not by hash
        con.execute("SET perfect_ht_threshold = 18")
        # a progress bar would mix with the output of a command
        con.execute("SET enable_progress_bar = false")
        yield con, Path(spill)


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Turn DuckDB's errors about a file into ours."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as reason:
        raise InvalidLog(
            f"{where} does not fit into memory: {_first_line(reason)} Increase memory=."
        ) from None
    except duckdb.Error as reason:
        raise InvalidLog(
            f"{where} cannot be read: {_first_line(reason)} Is the file complete, and is its "
            "ending right?"
        ) from None


def _first_line(reason: Exception) -> str:
    """Return the first lines of DuckDB's message without its hints; they name file, line and
    value.
    """
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    kept = [
        line.rstrip(".")
        for line in lines[:4]
        if not line.lower().startswith(("possible", "candidate", "line 1"))
    ]
    text = ". ".join(kept or lines[:1]) or type(reason).__name__
    return f"{text[:400]}."
