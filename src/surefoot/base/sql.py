"""Names and texts as SQL writes them. Every query that holds a path or a user's column name is
built with these.
"""

from pathlib import Path


def quote_text(text: str | Path) -> str:
    """A text or a path as an SQL string: in single quotes, each single quote within doubled."""
    return "'" + str(text).replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """The name of a column or a table: in double quotes, each double quote within doubled."""
    return '"' + name.replace('"', '""') + '"'
