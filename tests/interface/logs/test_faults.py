"""A messy log: all kinds of faults at once, each with its number and its first rows, and none
that is not there.
"""

import json

import pytest
from typer.testing import CliRunner

import surefoot as sf
from log_rows import ENDS, HEAD, write_lines
from surefoot.cli.main import app

MESSY = """\
1,0,a,0,1,b,false
1,1,b,1,2,c,false
1,2,c,0,3,a,false
2,0,a,0,,b,false
2,1,b,1,2,c,false
2,2,c,0,3,a,false
3,0,a,0,1,b,false
3,0,a,0,1,b,false
3,1,b,1,2,c,false
3,2,c,0,3,a,false
4,0,a,0,1,b,false
4,2,c,0,3,a,false
5,0,a,0,lots,b,false
5,1,b,1,2,c,false
5,2,c,0,none,a,false
6,0,a,0,1,b,false
6,1,a,1,2,c,false
6,2,c,0,3,a,false
7,0,a,0,1,b,false
7,1,b,1,99,c,false
7,2,c,0,inf,a,false
8,0,a,0,1,b,true
8,1,b,1,2,c,false
8,2,c,0,3,a,false
9,0,a,0,1,b,false
10,zero,a,0,1,b,false
10,1,b,1,2,c,maybe
10,2,c,0,3,a,false
,0,a,0,1,b,false
11,0,a,7,1,z,false
11,1,z,1,1,b,false
11,2,b,1,1,b,false
"""
FAULTS = {  # what: (how many, the first rows), counted by hand
    "missing episode": (1, (29,)),
    "missing reward": (1, (4,)),
    "word step": (1, (26,)),
    "word reward": (2, (13, 15)),
    "word terminated": (1, (27,)),
    "reward": (1, (21,)),
    "range": (1, (20,)),
    "undeclared states": (2, (30, 31)),
    "undeclared actions": (1, (30,)),
    "duplicate": (1, (8,)),
    "gap": (1, (12,)),
    "chain": (1, (17,)),
    "after": (1, (23,)),
    "short": (1, (25,)),
}
DECLARED = {"reward_range": (0, 10), "states": ["a", "b", "c"], "actions": 2}


def written(path, rows=MESSY):
    return write_lines(path, rows.splitlines(), ENDS)


def faults(report):
    """What was found, by its kind and, where there are several, its column."""
    before = {"missing": "without ", "word": "value of ", "undeclared": "The log has 1 "}
    found = {}
    for finding in report.errors:
        name = finding.what
        if name in before:
            name += " " + finding.text.partition(before[name])[2].split()[0].rstrip(".")
        found[name] = (finding.count, finding.rows)
    return found


def test_all_kinds_of_faults_are_found_at_once(tmp_path):
    report = sf.check_log(written(tmp_path / "messy.csv"), **DECLARED)
    assert not report.usable
    assert faults(report) == FAULTS
    assert "such as 'lots'" in str(report)
    assert (report.rows, report.episodes) == (32, 11)


def test_a_fault_that_is_mended_is_gone(tmp_path):
    """Control: one kind less each time, and no other comes or goes; without all of them the log
    is good.
    """
    mended = {
        "missing reward": ("2,0,a,0,,b", "2,0,a,0,1,b"),
        "duplicate": ("3,0,a,0,1,b,false\n3,0", "3,0"),
        "gap": ("4,2,c", "4,1,b,1,1,c,false\n4,2,c"),
        "chain": ("6,1,a", "6,1,b"),
        "range": ("1,99,c", "1,9,c"),
        "short": ("9,0,a,0,1,b,false\n", ""),
    }
    for what, (old, new) in mended.items():
        assert MESSY.count(old) == 1
        report = sf.check_log(written(tmp_path / "messy.csv", MESSY.replace(old, new)), **DECLARED)
        assert set(faults(report)) == set(FAULTS) - {what}
    good = "".join(line + "\n" for line in MESSY.splitlines() if line.startswith("1,"))
    assert sf.check_log(written(tmp_path / "good.csv", good), **DECLARED).usable


def test_rows_of_several_files_are_named_with_them(tmp_path):
    lines = MESSY.splitlines(keepends=True)
    files = [
        written(tmp_path / "a.csv", "".join(lines[:15])),
        written(tmp_path / "b.csv", "".join(lines[15:])),
    ]
    found = faults(sf.check_log(files, **DECLARED))
    assert found["word reward"] == (2, ("a.csv 13", "a.csv 15"))
    assert found["chain"] == (1, ("b.csv 2",))
    assert set(found) == set(FAULTS)


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_other_formats(tmp_path, ending):
    """The same rows, typed or not: rows have the same numbers."""
    import duckdb

    csv, path = written(tmp_path / "messy.csv"), tmp_path / f"messy.{ending}"
    form = "PARQUET" if ending == "parquet" else "JSON"
    duckdb.sql(f"COPY (FROM read_csv('{csv}', all_varchar = true)) TO '{path}' (FORMAT {form})")
    assert faults(sf.check_log(path, **DECLARED)) == FAULTS


def test_states_of_two_kinds_are_found_by_their_rows(tmp_path):
    rows = "1,0,0,0,1,1,false\n1,1,1,1,1,0,false\n2,0,0,0,1,one,false\n2,1,1,1,1,0,false\n"
    found, *_ = sf.check_log(written(tmp_path / "log.csv", rows)).errors
    assert "next_state that is not a whole number, as states are elsewhere" in found.text
    assert found.rows == (3,)
    assert sf.check_log(written(tmp_path / "log.csv", rows.replace("one", "1"))).usable  # control


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_command_prints_them_all_and_ends_with_1(tmp_path, form):
    options = ["--reward-range", "0", "10", "--states", "a,b,c", "--actions", "2", *form]
    path = written(tmp_path / "messy.csv")
    done = CliRunner().invoke(app, ["logs", "check", str(path), *options])
    assert done.exit_code == 1
    if form:
        found = json.loads(done.output)["findings"]
        assert [(f["count"], tuple(f["rows"])) for f in found] == list(FAULTS.values())
    else:
        assert done.output.count("error: ") == len(FAULTS)


def test_rows_with_another_number_of_fields_are_one_fault_and_the_others_are_found(tmp_path):
    """`count_log` refuses such a file. Line 21 is row 20, below the header; its episode is in no
    other finding.
    """
    rows = [f"{e};{h};a;x;1.0;a" for e in range(20) for h in range(3)]
    head = HEAD.replace(",", ";")
    bad = [*rows]
    bad[19] += ";17"
    bad[30] = "10;0;a;x;1.0"
    bad[40] = "13;1;a;x;lots;a"
    one, other = (tmp_path / name for name in ("log.csv", "other.csv"))
    for path in (one, other):
        path.write_text("\n".join([head, *bad]))
    report = sf.check_log(one, reward_range=(0, 1), delimiter=";")
    found = [(found.what, found.count, found.rows) for found in report.errors]
    assert found == [("fields", 2, (20, 31)), ("word", 1, (41,))]
    assert f"than the 6 of the header: line 21 of {one} has 7." in report.errors[0].text
    both = sf.check_log([one, other], delimiter=";")
    assert both.errors[0].rows == ("log.csv 20", "log.csv 31", "other.csv 20", "other.csv 31")
    assert "surefoot-" not in str(report) + str(both)  # no name of a copy
    one.write_text("\n".join([head, *rows]))
    assert sf.check_log(one, reward_range=(0, 1), delimiter=";").usable  # control


def test_what_is_advised_agrees_with_what_is_presumed(tmp_path):
    """Certificates presume that no episode was left out because of how it went: no fault advises
    it without that.
    """
    path = written(tmp_path / "log.csv")
    texts = [found.text for found in sf.check_log(path, reward_range=(0, 10)).errors]
    assert any(
        "Leaving episodes out is sound only if it has nothing to do with how they went" in text
        for text in texts
    )
    assert not any("leave out these episodes" in text for text in texts)
