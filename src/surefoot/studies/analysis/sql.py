"""Results asked in SQL. The tables: `trials`, one row a trial; `curves`, one row a bin; `traces`, one row a checkpoint.

DuckDB reads the Parquet files where they lie. A question can only read: files of others, and the network, are out of
its reach.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.base.files import replacing, require_place
from surefoot.errors import InvalidFile, InvalidSetting
from surefoot.offline.logs.writing import quoted
from surefoot.studies.run.store import (
    COLUMNS,
    READING,
    STUDY,
    TRIALS,
    listed,
    quiet_connection,
    require_small,
    trial_files,
)

if TYPE_CHECKING:
    import duckdb

FORMATS = {".parquet": "FORMAT PARQUET", ".csv": "FORMAT CSV, HEADER", ".json": "FORMAT JSON, ARRAY true"}
MOST_ROWS, WIDEST = 200, 10_000
KEYS = ("study", "panel", "learner", "label", "trial")
PLAIN = tuple(name for name, kind in COLUMNS.items() if not kind.endswith("[]"))
CURVES = ("episode", "episodes", "mean", "min", "below", "regret")
TRACES = ("episode", "lower", "upper", "rho", "h")


@contextmanager
def tables(folders: Sequence[Path], target: Path | None = None) -> "Iterator[duckdb.DuckDBPyConnection]":
    """A connection in which the results are tables, and which can write at most this one file."""
    import duckdb

    there = [path for folder in folders for path in trial_files(folder)]
    if not there:
        raise InvalidFile(f"{folders[0]} holds no finished trial yet. Run the study first.")
    keys = ", ".join(KEYS)
    try:
        with quiet_connection() as con:
            require_small(con, there)
            con.execute(f"CREATE TABLE everything AS SELECT * FROM read_parquet({listed(there)}, {READING})")
            if target is not None:
                con.execute(f"SET allowed_paths = [{quoted(target)}]")
            con.execute("SET enable_external_access = false")
            con.execute("SET lock_configuration = true")
            con.execute(f"CREATE VIEW trials AS SELECT {', '.join(PLAIN)}, by_h FROM everything")
            for table, prefix, columns in (("curves", "curve", CURVES), ("traces", "trace", TRACES)):
                lists = ", ".join(f"unnest({prefix}_{name}) AS {name}" for name in columns)
                con.execute(f"CREATE VIEW {table} AS SELECT {keys}, {lists} FROM everything")
            con.execute(
                "CREATE VIEW summary AS SELECT study, panel, learner, label, count(*) AS trials, "
                "any_value(floor) AS floor, any_value(optimum) AS optimum, avg(baseline) AS baseline, "
                "avg(violations) AS violations, count(*) FILTER (violations > 0) AS runs_below, "
                "avg(regret) AS regret, avg(mean_value) AS mean_return, "
                f"{_median('off_baseline')}, {_median('first_optimistic')}, "
                "count(*) FILTER (off_baseline IS NULL) AS never_left "
                "FROM everything GROUP BY ALL ORDER BY ALL"
            )
            yield con
    except duckdb.Error as reason:
        raise InvalidSetting(
            f"{str(reason).splitlines()[0]} The tables are trials, curves, traces and summary; "
            '"DESCRIBE trials" lists columns.'
        ) from None


def _median(column: str) -> str:
    """Never is later than every episode; where half never got there the median is NULL."""
    return f"nullif(median(coalesce({column}, 'inf'::DOUBLE)), 'inf'::DOUBLE) AS {column}"


def answer(folders: Sequence[Path], sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names of columns, and rows."""
    with tables(folders) as con:
        if not con.extract_statements(sql):
            raise InvalidSetting('The question is empty. Write one, such as --sql "SELECT * FROM summary".')
        found = con.execute(sql)
        names = [column[0] for column in found.description or []]
        return names, found.fetchall() if names else []


def save_answer(folders: Sequence[Path], sql: str, path: str | Path) -> Path:
    """The answer as a file, written whole or not at all; returns where."""
    target = require_place(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidFile(f"{target}: its ending says nothing about its kind. Expected one of {', '.join(FORMATS)}.")
    inside = [folder for folder in folders if target.absolute().is_relative_to(folder.absolute())]
    if any(target.name == STUDY or target.absolute().is_relative_to((one / TRIALS).absolute()) for one in inside):
        raise InvalidFile(f"{target} is where the results themselves are. Choose another place.")
    with replacing(target) as partial, tables(folders, partial) as con:
        con.execute(f"CREATE TEMP TABLE answer AS {sql}")
        con.execute(f"COPY answer TO {quoted(partial)} ({FORMATS[target.suffix.lower()]})")
    return target


def print_rows(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """A plain table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=True)
    for row in rows[:MOST_ROWS]:
        table.add_row(*map(_shown, row))
    # As wide as it is: a number that is broken in two, or cut, is another number.
    console = Console(width=WIDEST, soft_wrap=True)
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"... and {len(rows) - MOST_ROWS:,} more rows: --save FILE writes all of them.")


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
