"""Every cell that is read from a CSV is the one that Python's own reader finds, in strict mode, or
the file is refused.

Most files are written by `csv.writer` and hold whatever hurts; some of those are damaged
afterwards. The others are put together without quotes. Two readers that guess are the controls:
DuckDB's with its detection, and with its own strict mode alone.
"""

import csv
import io
import random

import duckdb
import pytest

import surefoot as sf
from surefoot.logs.cells import rows_of

HOSTILE = (
    "#",
    ",",
    ";",
    "|",
    "\t",
    '"',
    '""',
    "\n",
    "\r\n",
    "\r",
    "\ufeff",
    "\0",
    "",
    " ",
    "\\",
    "'",
    "\x0b",
    "\x85",
)
HOSTILE += (
    "\u2028",
    "é",
    "去",
    "a",
    "1",
    "0.5",
    "0,83",
    "1,250",
    "NULL",
    "# no",
    "//",
    "-",
    "nan",
    "1_000",
    "=1+1",
)
DIALECTS = (
    (",", ".csv", None),
    ("\t", ".tsv", None),
    (";", ".csv", ";"),
    ("|", ".csv", "|"),
    ("\t", ".csv", "tab"),
)


def cell(draw, signs):
    return "".join(draw.choice(signs) for _ in range(draw.choice((0, 1, 1, 2, 3, 6))))


def written(draw, delimiter, signs, table):
    """What `csv.writer` makes of a table; some are damaged afterwards."""
    stream = io.StringIO()
    quoting = draw.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    csv.writer(
        stream, delimiter=delimiter, lineterminator=draw.choice(("\n", "\r\n")), quoting=quoting
    ).writerows(table)
    text = stream.getvalue()
    if draw.random() < 0.3:
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(signs) + text[at + draw.choice((0, 1)) :]
    if draw.random() < 0.1:
        text = text[: draw.randrange(len(text) + 1)]
    return text.rstrip("\r\n") if draw.random() < 0.2 else text


def put_together(draw, delimiter, signs, table):
    newline = draw.choice(("\n", "\r\n"))
    return newline.join(delimiter.join(row) for row in table) + draw.choice(
        (newline, newline, "", newline * 2)
    )


def file_of(draw, folder):
    """A file with its delimiter, as it is and as it is declared."""
    delimiter, ending, declared = draw.choice(DIALECTS)
    width, rows = draw.choice((1, 2, 2, 3, 6)), draw.choice((0, 1, 2, 5, 20))
    signs = draw.sample(HOSTILE, 8)
    names = [f"c{i}" if draw.random() < 0.97 else cell(draw, signs) for i in range(width)]
    table = [names, *([cell(draw, signs) for _ in range(width)] for _ in range(rows))]
    text = (written if draw.random() < 0.7 else put_together)(draw, delimiter, signs, table)
    content = draw.choice(("", "", "", "\ufeff")).encode() + text.encode()
    if draw.random() < 0.05:
        at = draw.randrange(len(content) + 1)
        content = content[:at] + draw.choice((b"\xff", b"\xe9", b"\xed\xa0\x80")) + content[at:]
    path = folder / f"file{ending}"
    path.write_bytes(content)
    return path, delimiter, declared


def by_python(path, delimiter):
    """The records that Python's reader finds, and none where it refuses the file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return list(csv.reader(stream, delimiter=delimiter, strict=True))
    except (csv.Error, UnicodeDecodeError):
        return None


def by_us(path, names, declared):
    """The rows below the header; None where the file is refused."""
    try:
        return [
            [row.cells[name] or "" for name in names] for row in rows_of(path, names, (), declared)
        ]
    except sf.InvalidLog:
        return None


def by_duckdb(path, options):
    try:
        found = duckdb.sql(f"FROM read_csv('{path}', all_varchar = true, {options})")
        return [["" if value is None else value for value in row] for row in found.fetchall()]
    except duckdb.Error:
        return None


TWO = "columns = {'c0': 'VARCHAR', 'c1': 'VARCHAR'}"
STRICT = (
    "auto_detect = false, header = true, quote = '\"', escape = '\"', strict_mode = true, "
    f"parallel = false, {TWO}"
)
SEEN = 10  # of each control: then it is not looked for any more


def outcomes(folder, files, seed):
    """How many files were read as Python reads them, with how many cells, and how many were
    refused, by whom.

    Then of the controls: how many files a guessing reader reads otherwise than Python, and how many
    that Python refuses DuckDB's strict mode reads.
    """
    draw = random.Random(seed)
    equal = cells = refused = by_both = guessed = lenient = 0
    for _ in range(files):
        path, delimiter, declared = file_of(draw, folder)
        oracle = by_python(path, delimiter)
        names = tuple((oracle or [()])[0]) or ("c0",)
        found = by_us(path, names, declared)
        if found is None:
            refused, by_both = refused + 1, by_both + (oracle is None)
        else:
            assert oracle is not None, path.read_bytes()
            assert found == oracle[1:], path.read_bytes()
            equal, cells = equal + 1, cells + sum(map(len, found))
        if oracle and guessed < SEEN:
            guessed += by_duckdb(path, "header = true") not in (None, oracle[1:])
        if oracle is None and lenient < SEEN:
            lenient += by_duckdb(path, f"delim = '{delimiter}', {STRICT}") is not None
    return equal, cells, refused, by_both, guessed, lenient


@pytest.mark.parametrize("files", [1_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_cells_are_those_of_pythons_reader_or_the_file_is_refused(tmp_path, files):
    equal, cells, refused, by_both, guessed, lenient = outcomes(tmp_path, files, seed=files)
    assert equal > files // 4
    assert cells > 2 * files
    assert refused > files // 4
    assert by_both > files // 10
    assert guessed == lenient == SEEN
