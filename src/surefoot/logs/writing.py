"""Write a flat log to disk, as .parquet or .csv: the whole file or nothing."""

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
    """Check that a log can be written here, and that the ending of the path names a format."""
    target = require_place(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidFile(
            f"{target}: its ending names no known format. Expected one of {', '.join(FORMATS)}."
        )
    return target


def write_log(path: str | Path, columns: Mapping[str, AnyArray]) -> Path:
    """Write columns of equal length as a log, and return its path."""
    import duckdb

    target = require_log_place(path)
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        con.register("log", dict(columns))
        copy_out(con, target)
    return target


def copy_out(con: "duckdb.DuckDBPyConnection", target: Path) -> None:
    """Write the table `log` of the connection to a file beside `target`, which is then renamed."""
    import duckdb

    with replacing(target) as partial:
        try:
            con.execute(
                f"COPY (SELECT * FROM log) TO {quote_text(partial)} (FORMAT "
                f"{FORMATS[target.suffix.lower()]})"
            )
        except duckdb.Error as reason:
            raise InvalidFile(
                f"{target} cannot be written: {str(reason).splitlines()[0]}"
            ) from None
