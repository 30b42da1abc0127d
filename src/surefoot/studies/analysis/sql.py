"""Results queried in SQL. Tables: `summary`, one row per cell; `trials`, one per trial; `curves`,
one per bin of episodes; `traces`, one per checkpoint.

DuckDB reads the Parquet files where they are. The summary comes from Python: it is the one that is
printed. A query can only read: files of others, and the network, are out of its reach.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.base.files import replacing, require_place
from surefoot.base.sql import quote_text
from surefoot.errors import InvalidFile, InvalidSetting, printable
from surefoot.studies.analysis import summary
from surefoot.studies.run.store import (
    PROMISE_COLUMNS,
    READING,
    STUDY,
    TRIAL_COLUMNS,
    TRIALS,
    Folder,
    fill,
    listed,
    quiet_connection,
    read_results,
)

if TYPE_CHECKING:
    import duckdb

FORMATS = {
    ".parquet": "FORMAT PARQUET",
    ".csv": "FORMAT CSV, HEADER",
    ".json": "FORMAT JSON, ARRAY true",
}
MOST_ROWS, WIDEST = 200, 10_000
KEYS = ("study", "scenario", "agent", "label", "trial")
PLAIN = tuple(name for name, kind in TRIAL_COLUMNS.items() if not kind.endswith("[]"))
CURVES = ("episode", "episodes", "mean", "min", "below", "regret")
TRACES = ("episode", "lower", "upper", "rho", "h")


@contextmanager
def tables(
    folders: Sequence[Path], target: Path | None = None
) -> "Iterator[duckdb.DuckDBPyConnection]":
    """Open a connection in which the results are tables, and which can write at most this one
    file.
    """
    import duckdb

    everything = [read_results(folder) for folder in folders]
    places = [
        Folder(results.path, results.study).place(trial.cell, trial.trial)
        for results in everything
        for trial in results.every
    ]
    if not places:
        raise InvalidFile(f"{folders[0]} holds no finished trial yet. Run the study first.")
    rows = [
        {
            "study": results.study.name,
            **row,
            "promises": json.dumps(row["promises"], ensure_ascii=False),
        }
        for results in everything
        for row in summary.summary(results)
        if row["trials"]
    ]
    keys = ", ".join(KEYS)
    try:
        with quiet_connection() as con:
            con.execute(
                f"CREATE TABLE everything AS SELECT * FROM read_parquet({listed(places)}, "
                f"{READING}, filename = true)"
            )
            if target is not None:
                con.execute(f"SET allowed_paths = [{quote_text(target)}]")
            con.execute("SET enable_external_access = false")
            con.execute("SET lock_configuration = true")
            plain = ", ".join((*PLAIN, "by_h", *PROMISE_COLUMNS))
            con.execute(f"CREATE VIEW trials AS SELECT {plain} FROM everything")
            for table, prefix, columns in (
                ("curves", "curve", CURVES),
                ("traces", "trace", TRACES),
            ):
                lists = ", ".join(f"unnest({prefix}_{name}) AS {name}" for name in columns)
                con.execute(f"CREATE VIEW {table} AS SELECT {keys}, {lists} FROM everything")
            fill(con, "summaries", {"study": "VARCHAR", **summary.COLUMNS}, rows)
            con.execute(
                "CREATE VIEW summary AS SELECT * FROM summaries ORDER BY study, scenario, agent"
            )
            yield con
    except duckdb.Error as reason:
        raise InvalidSetting(
            f"{str(reason).splitlines()[0].rstrip('.')}. The tables are trials, curves, traces "
            f"and summary; "
            '"DESCRIBE trials" lists columns.'
        ) from None


def answer(folders: Sequence[Path], sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names of the columns and the rows that answer a query."""
    with tables(folders) as con:
        if not con.extract_statements(sql):
            raise InvalidSetting(
                'The question is empty. Write one, such as --sql "SELECT * FROM summary".'
            )
        found = con.execute(sql)
        names = [column[0] for column in found.description or []]
        return names, found.fetchall() if names else []


def save_answer(folders: Sequence[Path], sql: str, path: str | Path) -> Path:
    """Write the answer of a query to a file, completely or not at all, and return its path."""
    target = require_place(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidFile(
            f"{target}: its ending says nothing about its kind. Expected one of "
            f"{', '.join(FORMATS)}."
        )
    inside = [folder for folder in folders if target.absolute().is_relative_to(folder.absolute())]
    if any(
        target.name == STUDY or target.absolute().is_relative_to((one / TRIALS).absolute())
        for one in inside
    ):
        raise InvalidFile(f"{target} is where the results themselves are. Choose another place.")
    with replacing(target) as partial, tables(folders, partial) as con:
        con.execute(f"CREATE TEMP TABLE answer AS {sql}")
        con.execute(f"COPY answer TO {quote_text(partial)} ({FORMATS[target.suffix.lower()]})")
    return target


def print_rows(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Print rows as a plain table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(_shown(name), no_wrap=True)
    for row in rows[:MOST_ROWS]:
        table.add_row(*map(_format_value, row))
    # As wide as it is: a number that is broken into two lines, or shortened, is another number.
    console = Console(width=WIDEST, soft_wrap=True)
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(
            f"... and {len(rows) - MOST_ROWS:,} more rows: --save FILE writes all of them."
        )


def _format_value(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.10g}" if isinstance(value, float) else _shown(str(value))


def _shown(text: str) -> str:
    """Return a text as it is: its brackets are no markup, and nothing of it moves the cursor."""
    from rich.markup import escape

    return escape(printable(text))
