"""One kind of value in a column, in all files: nothing is cast in silence."""

import json

import duckdb
import pytest

import surefoot as sf
from log_rows import write_lines


def parquet(path, episodes, state, reward="0.5"):
    """Episodes of one step."""
    rows = f"SELECT s AS episode, 0 AS step, {state} AS state, 0 AS action, {reward} AS reward"
    source = f"{rows}, {state} AS next_state FROM range({episodes}) t(s)"
    duckdb.sql(f"COPY ({source}) TO '{path}' (FORMAT PARQUET)")
    return path


@pytest.mark.parametrize(
    ("second", "reward"),
    [("s % 2 = 0", "0.5"), ("(s % 2)::VARCHAR", "0.5"), ("s % 2", "true")],
    ids=["true and false", "text", "a reward that is true"],
)
def test_files_of_several_kinds_are_refused(second, reward, tmp_path):
    first = parquet(tmp_path / "one.parquet", "0, 10", "s % 2")
    other = parquet(tmp_path / "two.parquet", "10, 20", second, reward)
    alone = sf.check_log(first)
    assert alone.usable  # control: one kind
    with pytest.raises(sf.InvalidLog, match="Expected one kind in all files"):
        sf.count_log([first, other])


def test_a_column_without_values_has_no_kind(tmp_path):
    """As pandas writes it: all rewards of the second file are missing, which is the fault."""
    first = parquet(tmp_path / "one.parquet", "0, 10", "'a'")
    other = parquet(tmp_path / "two.parquet", "10, 20", "'a'", "NULL::VARCHAR")
    with pytest.raises(sf.InvalidLog, match="reward"):
        sf.count_log([first, other])
    third = parquet(tmp_path / "three.parquet", "10, 20", "'a'", "1")
    assert sf.count_log([first, third]).episodes == 20  # whole numbers and decimals are numbers


@pytest.mark.parametrize("value", [{"x": 1}, [1], ["new"]])
def test_a_value_of_json_that_holds_others_is_refused(value, tmp_path):
    row = {"episode": 0, "step": 0, "state": "a", "action": 0, "reward": 1, "next_state": "a"}
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({**row, "note": value}))
    assert sf.count_log(path).episodes == 1  # control: a column that nobody asked for
    path.write_text(json.dumps({**row, "state": value, "next_state": value}))
    with pytest.raises(sf.InvalidLog, match="'state' is a list or an object"):
        sf.count_log(path)


def test_codes_of_digits_are_refused_with_what_to_do(tmp_path):
    with pytest.raises(sf.InvalidLog, match="write it as s01"):
        sf.count_log(write_lines(tmp_path / "log.csv", ["1,0,01,0,1,02"]))
    path = write_lines(tmp_path / "log.csv", ["1,0,s01,0,1,s02"])
    assert len(sf.count_log(path).codebook.states) == 2
