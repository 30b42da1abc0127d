"""Rows of a CSV that do not have the fields of its header. DuckDB reads no such file: they are found row by row."""

import csv
import gzip
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from surefoot.offline.logs.checking import Finding, described

SEPARATORS = (",", ";", "\t", "|")  # those that DuckDB tries
FIRST = 5  # rows that are named


class Torn(NamedTuple):
    """A row with another number of fields than the header of its file."""

    file: str
    row: int  # from 1, below the header
    line: int
    fields: int
    expected: int


def with_equal_fields(files: Sequence[str], wanted: Collection[str], folder: Path) -> tuple[list[str], list[Torn]]:
    """Write copies of CSV files in which torn rows have no values, and all else is as it was; return the torn rows.

    Where rows cannot be told apart, no copies are made.
    """
    torn: list[Torn] = []
    copies = []
    for i, file in enumerate(files):
        copy = folder / str(i) / Path(file).name.removesuffix(".gz")
        copy.parent.mkdir()
        try:
            torn += list(_copied(file, wanted, copy))
        except (csv.Error, OSError, StopIteration, RuntimeError):
            return [], []
        copies.append(str(copy))
    return copies, torn


def finding_of(torn: Sequence[Torn], several: bool) -> Finding:
    """Say how many rows are torn, and where the first one is."""
    first = torn[0]
    of_header = f"{first.expected} of the header: line {first.line} of {first.file} has {first.fields}"
    rows = tuple(f"{Path(one.file).name} {one.row}" if several else one.row for one in torn[:FIRST])
    return Finding("error", "fields", described("fields", len(torn), "", name=of_header), count=len(torn), rows=rows)


def _copied(file: str, wanted: Collection[str], copy: Path) -> Iterator[Torn]:
    """Write the copy, and yield the torn rows."""
    separator = _separator(file, wanted)
    with _opened(file) as given, copy.open("w", newline="", encoding="utf-8") as made:
        rows, kept = csv.reader(given, delimiter=separator), csv.writer(made, delimiter=separator)
        header = next(rows)
        kept.writerow(header)
        number = 0
        for row in rows:
            if not row:
                continue  # an empty line is no row
            number += 1
            same = len(row) == len(header)
            kept.writerow(row if same else [""] * len(header))
            if not same:
                yield Torn(file, number, rows.line_num, len(row), len(header))


def _separator(file: str, wanted: Collection[str]) -> str:
    """Return the separator by which the header has most of the columns that are wanted."""
    with _opened(file) as given:
        header = given.readline()
    found = {sep: [name.strip().lower() for name in next(csv.reader([header], delimiter=sep))] for sep in SEPARATORS}
    return max(SEPARATORS, key=lambda sep: sum(name.lower() in found[sep] for name in wanted))


@contextmanager
def _opened(file: str) -> Iterator[IO[str]]:
    """Open a file as text, compressed or not."""
    how = {"newline": "", "encoding": "utf-8-sig", "errors": "replace"}
    with gzip.open(file, "rt", **how) if file.endswith(".gz") else Path(file).open(**how) as stream:  # type: ignore[call-overload]
        yield stream
