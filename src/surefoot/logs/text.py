"""What Python sees in a text: which lines are rows, and which values are numbers. Nothing is
guessed.

No line is a comment, and what separates fields is declared. A CSV has this form (RFC 4180), or is
refused:

    record = field (delimiter field)* newline
    field = text without quotes, or "text", each quote within doubled

What has this form can be read in one way only. Of JSON lines each is one object, in which no key is
there twice.
"""

import codecs
import csv
import gzip
import io
import json
import math
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from surefoot.errors import InvalidLog

LONGEST = 500_000  # characters of a row, within a block: DuckDB is told how long rows may be
BLOCK = 2**18  # characters that are looked at together
NAMED = 5  # torn rows that are named
NEVER_CLOSED = "a quote opens there that nothing closes"

# ---- Which texts are numbers ---------------------------------------------------------------------

WHOLE = "0|-?[1-9][0-9]{0,18}"
NUMBER = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(inf|infinity|nan))"
TRUTH = "(?i:true|false)"
PLAINLY = (
    "Write numbers with a decimal point, and with nothing else between the digits, as in 1250.75"
)
FURTHEST = 2**63  # whole numbers have 64 bits


def whole_number(text: str) -> int | None:
    """Return the whole number that a text is; None if it is none."""
    value = int(text) if re.fullmatch(WHOLE, text) else FURTHEST
    return value if -FURTHEST <= value < FURTHEST else None


def finite_number(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    value = float(text) if re.fullmatch(NUMBER, text) else math.nan
    return value if math.isfinite(value) else None


def is_whole(column: str) -> str:
    """Write the test in SQL of whether a text is a whole number of 64 bits. Of NULL it is NULL,
    as the others are.
    """
    small = f"len({column}) < 19 OR try_cast({column} AS BIGINT) IS NOT NULL"
    return f"(regexp_full_match({column}, '{WHOLE}') AND ({small}))"


def is_number(column: str) -> str:
    """Write the test in SQL of whether a text is a number, finite or not."""
    return f"regexp_full_match({column}, '{NUMBER}')"


def is_truth(column: str) -> str:
    """Write the test in SQL of whether a text is true or false."""
    return f"regexp_full_match({column}, '{TRUTH}')"


# ---- Which lines are rows ------------------------------------------------------------------------


class Torn(NamedTuple):
    """A row with another number of fields than the header of its file."""

    row: int  # from 1, below the header
    line: int
    fields: int
    expected: int


class Look(NamedTuple):
    """What is in a text."""

    columns: tuple[str, ...]
    rows: int
    newline: str = "\n"
    torn: int = 0  # how many rows have not the fields of the header
    first_torn: tuple[Torn, ...] = ()


QUOTED = re.compile('"[^"]*"')
ODD = re.compile('["\r\n\0]')  # what lines mostly have not
NOT_UTF_8 = re.compile("[\ud800-\udfff]")  # what other bytes are read as


def _records(
    file: str, newline: str, delimiter: str
) -> Generator[tuple[int, str, int], None, None]:
    """Yield of each record of a CSV the line at which it begins, its text, and how many fields
    it has.
    """
    d = re.escape(delimiter)
    field = f'(?:"(?:[^"\0]|"")*+"|[^{d}"\r\n\0]*+)'
    form = re.compile(f"{field}(?:{d}{field})*+")
    # within quotes a newline ends no record
    line, parts, length, is_open = 1, list[str](), 0, False
    for texts, is_plain in _lines(file, newline):
        for text in texts:
            if is_plain and not is_open:
                yield line, text, text.count(delimiter) + 1 if text else 0
                line += 1
                continue
            parts.append(text)
            length += len(text)
            is_open ^= text.count('"') % 2 == 1
            if not is_open:
                record = newline.join(parts)
                if not form.fullmatch(record):
                    raise InvalidLog(f"{file}, line {line:,}: {_what_is_wrong(record)}")
                yield line, record, QUOTED.sub("", record).count(delimiter) + 1 if record else 0
                line += 1 + record.count("\n")
                parts, length = [], 0
            elif length > LONGEST:
                raise InvalidLog(
                    f"{file}, line {line:,}: {NEVER_CLOSED} for {LONGEST:,} characters. Is it "
                    "meant?"
                )
    if is_open:
        raise InvalidLog(f"{file}, line {line:,}: {NEVER_CLOSED}. Is the file complete?")


def _what_is_wrong(record: str) -> str:
    """Say why a text is no record."""
    if "\0" in record:
        return "there is a NUL. Is the file text in UTF-8?"
    if re.search("[\r\n]", QUOTED.sub("", record)):
        return (
            "a carriage return or a newline is out of place. Expected lines that all end with "
            "\\n, or all with \\r\\n."
        )
    return (
        "there is a quote within a field that does not begin with one, or text after the quote "
        "that ends a field. Put the whole field in quotes, and write each quote within it twice."
    )


def _lines(file: str, newline: str) -> Generator[tuple[list[str], bool], None, None]:
    """Yield the lines of a text, many at a time, and whether all of them are plain."""
    line, rest = 1, ""
    with _opened(file) as stream:
        while block := stream.read(BLOCK):
            text = rest + block
            if not text.isascii() and (other := NOT_UTF_8.search(text)):
                line += text.count("\n", 0, other.start())
                raise InvalidLog(f"{file}, line {line:,} is not in UTF-8. Write the file in UTF-8.")
            lines = text.split(newline)
            rest = lines.pop()
            if len(rest) > LONGEST:
                raise InvalidLog(
                    f"{file}, line {line + len(lines):,} has more than {LONGEST:,} characters."
                )
            yield lines, not ODD.search("".join(lines))
            line += len(lines)
    if rest:
        yield [rest], not ODD.search(rest)


def _newline(file: str) -> str:
    """Return what ends the first line of a text."""
    with _opened(file) as stream:
        return "\r\n" if stream.readline(LONGEST).endswith("\r\n") else "\n"


@contextmanager
def _opened(file: str) -> Iterator[IO[str]]:
    """Open a text, compressed or not. The mark of UTF-8 at its beginning is no part of it."""
    try:
        with gzip.open(file) if is_compressed(file) else Path(file).open("rb") as stored:
            yield io.TextIOWrapper(
                stored, encoding="utf-8-sig", errors="surrogateescape", newline="\n"
            )
    except (OSError, EOFError, zlib.error) as reason:
        raise InvalidLog(
            f"{file} cannot be read: {reason}. Is the file complete, and is its ending right?"
        ) from None


def is_compressed(file: str) -> bool:
    """Return whether a text is compressed, as its ending says."""
    return file.lower().endswith(".gz")


def look_at_csv(file: str, delimiter: str) -> Look:
    """Look at every line of a CSV. Torn rows are told of; what is no row is refused."""
    newline = _newline(file)
    with closing(_records(file, newline, delimiter)) as records:
        _, header, expected = next(records, (1, "", -1))
        if expected < 0:
            return Look((), 0)
        if not header:
            raise InvalidLog(f"{file}, line 1 is empty. Expected the names of the columns.")
        try:
            columns = next(csv.reader([header], delimiter=delimiter, strict=True))
        except csv.Error as reason:  # a field of more than 131,072 characters
            raise InvalidLog(
                f"{file}: its header cannot be read: {reason}. Expected names of columns."
            ) from None
        _require_names(file, columns)
        row, torn, first_torn = 0, 0, list[Torn]()
        for row, (line, _, fields) in enumerate(records, 1):
            if fields != expected:
                torn += 1
                first_torn += [Torn(row, line, fields, expected)] if torn <= NAMED else []
    return Look(tuple(columns), row, newline, torn, tuple(first_torn))


def _require_names(file: str, columns: Iterable[str]) -> None:
    """Refuse names with control characters, and what stands for bytes that are no text."""
    unfit = next((name for name in columns if not name.replace("\t", " ").isprintable()), None)
    if unfit is not None:
        raise InvalidLog(
            f"{file}: a column is called {unfit[:60]!r}. Expected names without control characters."
        )


def without_torn(file: str, delimiter: str, look: Look, copy: Path) -> Path:
    """Write a copy of a CSV in which torn rows have no values, and all else is as it was."""
    expected, empty = len(look.columns), delimiter * (len(look.columns) - 1)
    with (
        closing(_records(file, look.newline, delimiter)) as records,
        copy.open("w", newline="", encoding="utf-8") as made,
    ):
        for _, record, fields in records:
            made.write((record if fields == expected else empty) + look.newline)
    return copy


def has_mark(file: str) -> bool:
    """Return whether a text, compressed or not, begins with the mark of UTF-8."""
    with gzip.open(file) if is_compressed(file) else Path(file).open("rb") as stored:
        return stored.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8


def without_mark(file: str, copy: Path) -> Path:
    """Write a copy of a text without the mark of UTF-8 at its beginning, and not compressed."""
    with _opened(file) as text, copy.open("w", newline="", encoding="utf-8") as made:
        shutil.copyfileobj(text, made)
    return copy


def look_at_json(file: str, wanted: frozenset[str]) -> Look:
    """Look at every line of a file of JSON lines. What is wanted of it is numbers, text, true,
    false and null.
    """
    columns: dict[str, None] = {}
    line = 0
    with closing(_lines(file, "\n")) as lines:
        for line, text in enumerate((text for texts, _ in lines for text in texts), 1):
            at, expected = f"{file}, line {line:,}", "Expected one JSON object on each line."
            try:
                found = json.loads(
                    text,
                    object_pairs_hook=_each_once,
                    parse_int=str,
                    parse_float=str,
                    parse_constant=_no_json,
                )
            except (ValueError, RecursionError) as reason:
                what = str(reason).partition(": line ")[0]
                raise InvalidLog(f"{at}: {what}. {expected}") from None
            if not isinstance(found, dict):
                raise InvalidLog(f"{at} is {text[:60].strip()!r}. {expected}")
            written = map(str, (*found, *found.values()))
            if "\\ud" in text.lower() and NOT_UTF_8.search("".join(written)):
                raise InvalidLog(f"{at} has half a character (\\ud800 to \\udfff). Write it whole.")
            for key, value in found.items():
                if isinstance(value, dict | list) and key.lower() in wanted:
                    raise InvalidLog(
                        f"{at}: {key[:60]!r} is a list or an object. Expected a number, text, "
                        "true, false or null."
                    )
            columns |= dict.fromkeys(found)
    _require_names(file, columns)
    return Look(tuple(columns), line)


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    times = Counter(key.lower() for key, _ in pairs)
    if len(times) < len(pairs):
        raise ValueError(f"the key {times.most_common(1)[0][0][:60]!r} is there twice")
    return dict(pairs)


def _no_json(word: str) -> object:
    raise ValueError(f"{word} is no JSON")
