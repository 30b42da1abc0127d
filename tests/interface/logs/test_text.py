"""What a file says is read, or the file is refused: nothing is guessed, left out, or taken for
something else.

Each test has the reader that guesses beside it, and a truth that is known: what it made of the same
file was false.
"""

import codecs
import csv
import gzip
import json
import random
import re

import duckdb
import pytest
from typer.testing import CliRunner

import surefoot as sf
from log_rows import ENDS, HEAD, write_lines
from surefoot.cli.main import app
from surefoot.logs.cells import rows_of

JSON = '{"episode":1,"step":0,"state":"s","action":"go","reward":1,"next_state":"s"}'


def written(path, head, *lines):
    return write_lines(path, lines, head)


def guessed(path, made):
    """What DuckDB's detection makes of a file, with the types of a log, as Parquet."""
    typed = "* REPLACE (step::BIGINT AS step, reward::DOUBLE AS reward)"
    duckdb.sql(f"COPY (SELECT {typed} FROM read_csv('{path}', all_varchar = true)) TO '{made}'")
    return made


def short_log(*rows):
    return [HEAD, *(rows or ("a,0,s,mail,0.5,s", "b,0,s,mail,1.5,s", "c,0,s,none,0,s"))]


BOTH = (sf.count_log, sf.check_log)


def refusal(path, words, **arguments):
    for call in BOTH:
        with pytest.raises(sf.InvalidLog, match=words):
            call(path, **arguments)


# ---------------------------------------------------------------- comments


def test_rows_that_begin_with_a_hash_are_rows(tmp_path):
    """600 customers: 440 paid 2, 160 paid nothing, and their ids begin with #. A visit is worth
    0.7 x 2 = 1.4.
    """
    rows = [f"#{i},0,s,go,0,s" for i in range(160)] + [f"{i},0,s,go,2,s" for i in range(440)]
    random.Random(0).shuffle(rows)
    path = written(tmp_path / "log.csv", HEAD, *rows)

    def certified(log):
        return sf.clone(log.counts, log.problem(start="s"), 0.05).lower

    log, wrong = (
        sf.count_log(each, states=["s", "t"], reward_range=(0, 2))
        for each in (path, guessed(path, tmp_path / "guessed.parquet"))
    )
    assert (log.episodes, log.rows) == (600, 600)
    assert 1.2 < certified(log) < 1.4
    assert sf.log_returns(path).sum() == 880.0
    assert wrong.episodes == 440  # the control
    assert certified(wrong) > 1.4


# ---------------------------------------------------------------- delimiters


@pytest.mark.parametrize(
    ("ending", "sign", "declared"),
    [
        ("csv", ",", None),
        ("tsv", "\t", None),
        ("csv", ";", ";"),
        ("csv", "|", "|"),
        ("csv", "\t", "tab"),
    ],
)
def test_the_delimiter_is_declared(tmp_path, ending, sign, declared):
    path = written(tmp_path / f"log.{ending}", *(line.replace(",", sign) for line in short_log()))
    assert sf.count_log(path, delimiter=declared).episodes == 3
    assert sf.check_log(path, delimiter=declared).usable
    assert len(sf.log_returns(path, delimiter=declared)) == 3
    if declared is not None:
        refusal(path, re.escape(f"Declare it: delimiter={declared!r}"))


@pytest.mark.parametrize("strange", ["", "::", "a", '"', "\n", "tabs"])
def test_delimiters_that_are_refused(tmp_path, strange):
    path = written(tmp_path / "log.csv", *short_log())
    with pytest.raises(sf.InvalidSetting, match=r"delimiter is .*, expected what separates the"):
        sf.count_log(path, delimiter=strange)
    other = path.rename(tmp_path / "log.jsonl")
    with pytest.raises(sf.InvalidSetting, match=r"delimiter is for CSV: .*log\.jsonl has another"):
        sf.count_log(other, delimiter=",")


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    "value",
    ["0,83", "1,250", "1_000", "1 000", "1'000", " 1", "1 ", "1e", "0x10", "١", "--1", "1.2.3"],
)
def test_a_number_is_written_plainly_or_the_log_is_refused(tmp_path, value):
    path = written(tmp_path / "log.csv", *short_log("a,0,s,go,1,s", f'b,0,s,go,"{value}",s'))
    with pytest.raises(sf.InvalidLog, match=r"log\.csv, row 2: column 'reward' is .*, ") as told:
        sf.count_log(path)
    assert repr(value) in str(told.value)
    (found,) = sf.check_log(path).errors
    assert (found.what, found.rows) == ("word", (2,))
    control = written(path, *short_log("a,0,s,go,1,s", "b,0,s,go,-1.25e1,s"))
    assert sf.count_log(control).mean_return == -5.75


def test_a_decimal_comma_in_a_log_without_quotes_is_a_row_with_a_field_too_many(tmp_path):
    path = written(tmp_path / "log.csv", *short_log("a,0,s,go,1,s", "b,0,s,go,0,83,s"))
    with pytest.raises(
        sf.InvalidLog,
        match=r"log\.csv, row 2 \(line 3\) has 7 fields, expected 6, as in the header",
    ):
        sf.count_log(path)
    (found,) = sf.check_log(path).errors
    assert (found.what, found.rows) == ("fields", (2,))


def replayed(path, *options):
    given = f"guard replay {path} --low 0 --high 1 --max-loss 0.1 --json".split()
    return CliRunner().invoke(app, [*given, *options])


def tickets(path, comma, sign=","):
    """The baseline pays 0.99. The candidate pays 1 in three cases of five: 61 % of that, where
    90 % are promised.
    """
    draw, rows = random.Random(1), ["ticket,policy,return".replace(",", sign)]
    for ticket in range(1500):
        name = "new" if ticket >= 300 and ticket % 2 else "baseline"
        paid = f"0{comma}99" if name == "baseline" else f"{int(draw.random() < 0.6)}{comma}0"
        rows.append(sign.join((str(ticket), name, paid)))
    return written(path, *rows)


def test_a_guard_refuses_decimal_commas(tmp_path):
    """The wrong rule takes what is before the comma: the baseline pays 0, and 90 % of it are
    soon certified.
    """
    path = tmp_path / "tickets.csv"
    said = str(replayed(tickets(path, ",")).exception)
    assert "row 1 (line 2) has 4 fields, expected 3" in said
    quoted = replayed(written(path, "ticket,policy,return", '0,baseline,"0,99"'))
    assert "row 1: the return is '0,99', expected a number" in str(quoted.exception)
    europe = tickets(path, ",", ";")
    assert "Declare it: delimiter=';', or --delimiter ';'" in str(replayed(europe).exception)
    assert "the return is '0,99'" in str(replayed(europe, "--delimiter", ";").exception)
    points = json.loads(replayed(tickets(path, ".")).output)
    assert points["certified_share"]["new"] < 0.5
    path.write_text(re.sub(r"\.\d+", "", path.read_text()))  # the control
    assert json.loads(replayed(path).output)["certified_share"]["new"] == 1.0


@pytest.mark.parametrize("digits", ["9" * 5000, "00", "+0", "0.0", "1e0", "٠"])
def test_a_ticket_of_many_digits_is_refused(tmp_path, digits):
    path = written(tmp_path / "tickets.csv", "ticket,policy,return", f"{digits},baseline,1")
    with pytest.raises(sf.InvalidLog, match="row 1: the ticket is") as refused:
        raise replayed(path).exception
    assert len(str(refused.value)) < 400
    plain = written(tmp_path / "plain.csv", "ticket,policy,return", "0,baseline,1")
    assert replayed(plain).exit_code == 0  # the control


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_name_of_a_folder_is_no_column(tmp_path, ending):
    plain = written(tmp_path / "log.csv", *short_log())
    path = tmp_path / "action=discount" / f"log.{ending}"
    path.parent.mkdir()
    form = {"csv": "CSV, HEADER", "jsonl": "JSON", "parquet": "PARQUET"}[ending]
    duckdb.sql(f"COPY (FROM '{plain}') TO '{path}' (FORMAT {form})")
    assert sf.count_log(path).codebook.actions == ("mail", "none")
    assert sf.check_log(path).counted.codebook.actions == ("mail", "none")
    # the control
    assert {a for (a,) in duckdb.sql(f"SELECT action FROM '{path}'").fetchall()} == {"discount"}


def test_spaces_around_the_name_of_a_column_are_refused(tmp_path):
    path = written(tmp_path / "log.csv", HEAD.replace(",", ", "), "a,0,s,go,1,s")
    refusal(path, r"has a column that is called ' step', with spaces around its name")


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    words = "columns that are called 'state', in upper or lower case. Expected each name once"
    for second in ("state", "State", "STATE"):
        path = written(tmp_path / "log.csv", f"{HEAD},{second}", "a,0,s,go,1,s,t", "b,0,s,go,1,s,t")
        refusal(path, words)
    assert {
        row["state"]
        for row in csv.DictReader(path.read_text().replace("STATE", "state").splitlines())
    } == {"t"}
    line = JSON.replace("}", ',"State":1}')
    path = written(tmp_path / "log.jsonl", JSON, line)
    refusal(path, "line 2: the key 'state' is there twice")
    assert json.loads(line.replace("State", "state"))["state"] == 1  # the controls take the last


def test_a_column_that_is_twice_in_parquet_is_refused(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    arrays = [pyarrow.array(["a", "b"]), *(pyarrow.array([0, 0]) for _ in range(6))]
    table = pyarrow.Table.from_arrays(arrays, names=[*HEAD.split(","), "state"])
    path = tmp_path / "log.parquet"
    parquet.write_table(table, path)
    refusal(path, r"log\.parquet has 2 columns that are called 'state'")
    assert "state_1" in duckdb.read_parquet(str(path)).columns  # the control
    # What is inside another column is none.
    nested = pyarrow.array([{"state": 1, "x": [{"state": 2}]}] * 2)
    parquet.write_table(table.select(range(6)).append_column("about", nested), path)
    assert sf.count_log(path).episodes == 2


# ---------------------------------------------------------------- lines


REFUSED = {  # what stands for the second row, and what is said of it
    "surplus": ("b,0,s,go,1,s,", r"row 2 \(line 3\) has 7 fields, expected 6"),
    "missing": ("b,0,s,go,1", r"row 2 \(line 3\) has 5 fields, expected 6"),
    "empty": ("", r"row 2 \(line 3\) has 0 fields, expected 6"),
    "blank": ("   ", r"row 2 \(line 3\) has 1 fields, expected 6"),
    "quotes inside": ('b,0,s"x",go,1,s', "line 3: there is a quote within a field"),
    "text after": ('b,0,"s"x,go,1,s', "line 3: there is a quote within a field"),
    "space after": ('b,0,"s" ,go,1,s', "line 3: there is a quote within a field"),
    "space before": ('b,0, "s",go,1,s', "line 3: there is a quote within a field"),
    "open": ('b,0,"s,go,1,s', "line 3: a quote opens there that nothing closes"),
    "return": ("b,0,s\r,go,1,s", "line 3: a carriage return or a newline is out of place"),
    "two returns": ("b,0,s,go,1,s\r\r", "line 3: a carriage return or a newline is out of place"),
    "other end": ("b,0,s,go,1,s\r", "line 3: a carriage return or a newline is out of place"),
    "nul": ("b,0,s\0,go,1,s", "line 3: there is a NUL"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_lines_that_are_no_rows_are_refused(tmp_path, what):
    line, words = REFUSED[what]
    path = written(
        tmp_path / "log.csv", *short_log("a,0,s,go,1,s", line, "c,0,s,go,1,s", "d,0,s,go,1,s")
    )
    with pytest.raises(sf.InvalidLog, match=rf"log\.csv, {words}"):
        sf.count_log(path)


@pytest.mark.parametrize(
    "content",
    [b"a,0,s\xff,go,1,s\n", "a,0,s,go,1,é\n".encode("latin-1"), b"a,0,\xed\xa0\x80,go,1,s\n"],
)
def test_text_is_utf_8(tmp_path, content):
    (tmp_path / "log.csv").write_bytes(HEAD.encode() + b"\nz,0,s,go,1,s\n" + content)
    refusal(tmp_path / "log.csv", r"log\.csv, line 3 is not in UTF-8\. Write the file in UTF-8")
    (tmp_path / "log.csv").write_text("\n".join(short_log()), encoding="utf-16")
    refusal(tmp_path / "log.csv", r"log\.csv, line 1 is not in UTF-8")


@pytest.mark.parametrize("text", ["1\n\n0.5\n", "1\n0.5\n\n"])
def test_a_single_column_keeps_its_missing_values(tmp_path, text):
    """A return that is missing counts as the worst one, so none may be lost: a line with nothing
    on it is refused.
    """
    path = written(tmp_path / "past.csv", "return", "1", '""', "0.5")
    assert [row.cells["return"] for row in rows_of(path, ("return",), (), None)] == [
        "1",
        None,
        "0.5",
    ]
    path.write_text(f"return\n{text}")
    with pytest.raises(sf.InvalidLog, match=r"has 0 fields, expected 1"):
        list(rows_of(path, ("return",), (), None))
    assert len(list(csv.DictReader(path.read_text().splitlines()))) == 2  # the control skips it


def test_a_row_longer_than_a_reader_can_take_is_refused(tmp_path):
    for cell in ('"' + "x" * 2_000_000 + '"', '"' + "x\n" * 500_000 + '"', '"' + "x\n" * 500_000):
        path = written(tmp_path / "log.csv", *short_log(), f"b,0,{cell},go,1,s")
        refusal(path, r"log\.csv, line 5.*500,000 characters")
    path = written(tmp_path / "log.csv", *short_log("a,0,s,go,1,s", f"b,0,{'x' * 400_000},go,1,s"))
    assert [len(label) for label in sf.count_log(path, states="as logged").codebook.states] == [
        1,
        400_000,
    ]


def test_a_file_of_many_blocks_is_read_whole(tmp_path):
    """Rows of 12 MB with newlines in quotes, so that some lie across the ends of what is read at
    a time.
    """
    draw = random.Random(0)
    cells = [
        f"{i}" + draw.choice(("", "\n", '"', ",", "é")) * draw.choice((1, 30))
        for i in range(400_000)
    ]
    with (tmp_path / "past.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(
            [["a", "b"], *([cell, "x"] for cell in cells)]
        )
    assert [row.cells["a"] for row in rows_of(tmp_path / "past.csv", ("a",), (), None)] == cells


# ---------------------------------------------------------------- JSON lines


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "line 2: Expecting value"),
        (JSON + JSON, "line 2: Extra data"),
        (JSON.replace("1,", "NaN,"), "line 2: NaN is no JSON"),
        (JSON[:-1] + ",}", "line 2: "),
        (f"[{JSON}]", "line 2 is "),
        ("7", "line 2 is '7'"),
        ("# no", "line 2: Expecting value"),
        ("[" * 100_000, "line 2: "),
    ],
)
def test_lines_that_are_no_objects_are_refused(tmp_path, line, words):
    path = written(tmp_path / "log.jsonl", JSON, line)
    refusal(path, rf"log\.jsonl, {words}.*Expected one JSON object on each line")


def test_a_number_of_any_length_is_text(tmp_path):
    path = written(tmp_path / "log.jsonl", JSON, JSON.replace("1", "9" * 5000, 1))
    found = [row.cells["episode"] for row in rows_of(path, ("episode",), (), None)]
    assert found == ["1", "9" * 5000]


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "jsonl", "json.gz", "parquet"])
def test_a_guard_reads_every_format_alike(tmp_path, ending):
    form = "PARQUET" if ending == "parquet" else "JSON" if "json" in ending else "CSV"
    options = {"tsv": ", DELIMITER '\t'"}.get(ending, "")
    packed = ", COMPRESSION gzip" if ".gz" in ending else ""
    path = tmp_path / f"tickets.{ending}"
    rows = "(VALUES (0, 'baseline', 1), (1, 'new', 0.25), (2, 'baseline', NULL))"
    query = f'FROM {rows} AS t(ticket, policy, "return") ORDER BY ticket'
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT {form}{options}{packed})")
    found = [row.cells for row in rows_of(path, ("ticket", "policy", "return"), (), None)]
    assert [cells["policy"] for cells in found] == ["baseline", "new", "baseline"]
    assert [cells["return"] and float(cells["return"]) for cells in found] == [1.0, 0.25, None]
    assert json.loads(replayed(path).output)["open"] == 1


def test_a_column_that_was_named_must_be_there(tmp_path):
    """A misspelt name of an optional column was ignored: a log that goes on after its ends was
    then accepted.
    """
    path = written(tmp_path / "log.csv", HEAD, "a,0,s,go,1,s")
    with pytest.raises(sf.InvalidLog, match="no column 'dnoe' \\(terminated\\)"):
        sf.count_log(path, columns={"terminated": "dnoe"})
    assert sf.count_log(path).episodes == 1  # the control: left out, it need not be there


def test_labels_that_are_written_in_two_ways_are_two(tmp_path):
    """Action TRUE pays 0, and true pays 1: together they would pay 0.5. The control: written in
    one way, true is 1.
    """
    two = short_log(*(f"{k},0,0,{('TRUE', 'true')[k % 2]},{k % 2},0" for k in range(20)))
    log = sf.count_log(written(tmp_path / "two.csv", *two), states=1, reward_range=(0, 1))
    assert log.codebook.actions == ("TRUE", "true")
    assert log.rewards.mean.ravel().tolist() == [0.0, 1.0]
    one = short_log(*(f"{k},0,0,{('False', 'True')[k % 2]},{k % 2},0" for k in range(20)))
    assert sf.count_log(
        written(tmp_path / "one.csv", *one), states=1, reward_range=(0, 1)
    ).codebook.actions == (0, 1)


@pytest.mark.parametrize("flag", ["2", "-1"])
def test_a_flag_is_0_or_1(tmp_path, flag):
    path, made = lines(tmp_path / "log.csv", flag, flag), tmp_path / "log.parquet"
    duckdb.sql(f"COPY (FROM read_csv('{path}')) TO '{made}'")
    for each in (path, made):
        with pytest.raises(sf.InvalidLog, match=f"row 1: column 'terminated' is {flag}"):
            sf.count_log(each)


def test_rewards_whose_sums_overflow_are_refused(tmp_path):
    path = written(tmp_path / "log.csv", HEAD, *(f"0,{h},0,0,9e307,0" for h in range(4)))
    for call in (sf.count_log, sf.log_returns):
        with pytest.raises(sf.InvalidLog, match=r"beyond 1e\+100"):
            call(path)
    assert not sf.check_log(path).usable


def lines(path, *values):
    """Episodes of one step, whose column `terminated` has these values."""
    rows = (f"{k},0,0,0,1,0,{value}" for k, value in enumerate(values))
    return written(path, ENDS, *rows)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("true", "false", "1"), "row 3: .* is '1', of another kind than 'true' in .*row 1"),
        (("", ""), "column 'terminated' is nowhere written"),
    ],
)
def test_flags_of_two_kinds_are_refused_with_both_rows(tmp_path, flags, words):
    with pytest.raises(sf.InvalidLog, match=words):
        sf.count_log(lines(tmp_path / "log.csv", *flags), reward_range=(0, 1))
    control = lines(tmp_path / "log.csv", "true", "FALSE")
    assert sf.count_log(control, reward_range=(0, 1)).episodes == 2


@pytest.mark.parametrize(("ending", "packed"), [(".jsonl", bytes), (".jsonl.gz", gzip.compress)])
def test_json_lines_may_have_the_mark_of_utf_8_and_no_half_characters(ending, packed, tmp_path):
    path = tmp_path / f"log{ending}"
    path.write_bytes(packed(codecs.BOM_UTF8 + JSON.encode()))
    assert sf.count_log(path).rows == sf.check_log(path).rows == 1
    path.write_bytes(packed(JSON.replace("go", "\\ud800").encode()))
    with pytest.raises(sf.InvalidLog, match="line 1 has half a character"):
        sf.count_log(path)


def test_bandit_logs_whose_episodes_end_may_be_stationary(tmp_path):
    """With one step nothing is shared. It was refused: "0 is not in the range of rewards (0.0,
    1.0)".
    """
    log = sf.count_log(
        lines(tmp_path / "log.csv", *["1"] * 99), states=1, actions=1, reward_range=(0, 1)
    )
    problem = log.problem(stationary=True)
    assert problem.stationary and sf.robust_vi(log.counts.pool(), problem, 0.05).lower > 0.6
