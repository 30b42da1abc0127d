"""A flat log written to disk: .parquet or .csv, whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.base.arrays import AnyArray
from surefoot.base.files import replacing, require_place
from surefoot.base.sql import quote_text
from surefoot.errors import InvalidFile

if TYPE_CHECKING:
    import duckdb

FORMATS = {".parquet": "PARQUET", ".pq": "PARQUET", ".csv": "CSV"}


def require_log_place(path: str | Path) -> Path:
    """Can a log be written here, and in which format?"""
    target = require_place(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidFile(f"{target}: its ending says nothing about its kind. Expected one of {', '.join(FORMATS)}.")
    return target


def write_log(path: str | Path, columns: Mapping[str, AnyArray]) -> Path:
    """Columns of equal length as a log; returns where."""
    import duckdb

    target = require_log_place(path)
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.register("log", dict(columns))
        copy_out(con, target)
    return target


def copy_out(con: "duckdb.DuckDBPyConnection", target: Path) -> None:
    """What the connection calls `log`, to a neighbour of `target` that is then renamed."""
    import duckdb

    with replacing(target) as partial:
        try:
            con.execute(f"COPY (SELECT * FROM log) TO {quote_text(partial)} (FORMAT {FORMATS[target.suffix.lower()]})")
        except duckdb.Error as reason:
            raise InvalidFile(f"{target} cannot be written: {str(reason).splitlines()[0]}") from None
