"""A log counted in a warehouse is the log counted from files: DuckDB and Spark run the same ibis
expression.
"""

import hashlib
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from log_rows import assert_same
from surefoot.errors import InvalidLog, InvalidSetting, MissingExtra
from surefoot.logs import count_log, count_table, warehouse
from surefoot.logs.folds import Keys, folds_of, keys_of
from surefoot.logs.warehouse import count_expression

# ibis and pyspark warn about versions newer than they know; that is between them.
pytestmark = pytest.mark.filterwarnings("ignore")

H, S, A, EPISODES = 4, 5, 3, 400


def episodes(seed, ids=None, end=0.0, varied=None):
    """A log of random walks: its columns. `end`: the chance to terminate at a step; `varied`: a
    range of rewards.
    """
    rng = np.random.default_rng(seed)
    state = rng.integers(2, size=EPISODES)
    paid, running = rng.random((H, S, A)), np.ones(EPISODES, dtype=bool)
    parts = []
    for h in range(H):
        action, next_state = rng.integers(A, size=EPISODES), rng.integers(S, size=EPISODES)
        reward = paid[h, state, action] if varied is None else rng.uniform(*varied, size=EPISODES)
        terminated = rng.random(EPISODES) < end
        columns = {
            "episode": np.arange(EPISODES) if ids is None else ids,
            "step": np.full(EPISODES, h),
            "state": state,
        }
        columns |= {
            "action": action,
            "reward": reward,
            "next_state": next_state,
            "terminated": terminated,
        }
        parts.append({name: values[running] for name, values in columns.items()})
        running, state = running & ~terminated, next_state
    order = rng.permutation(sum(len(part["step"]) for part in parts))
    log = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
    if not end:
        del log["terminated"]
    return log


def far_ids():
    """Beyond 2^31 and below 0, to both ends of what 64 bits hold."""
    rng = np.random.default_rng(5)
    ids = rng.integers(-(2**63), 2**63 - 1, size=EPISODES, endpoint=True)
    ids[:8] = [-(2**63), 2**63 - 1, -1, 0, 2**31 - 1, 2**31, -(2**31), 2**62]
    assert len(np.unique(ids)) == EPISODES
    return ids


def as_text(values, words):
    return np.array(words, dtype=object)[values]


def in_words():
    """Ids, states and actions that are text."""
    log = episodes(3, ids=np.array([f"user-{i} é" for i in range(EPISODES)], dtype=object), end=0.1)
    for name in ("state", "next_state"):
        log[name] = as_text(log[name], ["b", "a", "Ü", "z z", "'"])
    return log | {"action": as_text(log["action"], ["keep", "ring", "write"])}


def from_one():
    """Steps 1, 2, ..., small integers, and another name."""
    log = episodes(8)
    return log | {
        "step": (log["step"] + 1).astype(np.int16),
        "Segment": log.pop("state").astype(np.int8),
    }


LOGS = {  # a log, and how it is to be counted
    "integers": (episodes(1), {"seed": 3}),
    "far ids": (episodes(2, ids=far_ids()), {"states": S + 1, "actions": A}),
    "text": (in_words(), {"seed": 8}),
    "random rewards": (episodes(4, varied=(-0.1, 0.1 + 0.2)), {"reward_range": (-0.1, 0.1 + 0.2)}),
    "early ends": (episodes(5, end=0.2), {"seed": 1}),
    "early ends, random rewards": (
        episodes(6, end=0.2, varied=(-1.0, 2.0)),
        {"seed": 2, "reward_range": (-1.5, 2.0)},
    ),
    "undeclared range": (episodes(7, varied=(3.0, 4.0)), {}),
    "ends that pay": (
        episodes(5, end=0.2, varied=(3.0, 4.0)),
        {"reward_range": (3.0, 5.0), "after_end": 4.5},
    ),
    "states as logged": (episodes(5, end=0.2), {"states": "as logged", "reward_range": (0.0, 1.0)}),
    "steps from 1, cut, renamed": (from_one(), {"horizon": H - 1, "columns": {"state": "segment"}}),
}


def write(log, path):
    pq.write_table(pa.table(log), path)
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Each kind of log as a Parquet file."""
    folder = tmp_path_factory.mktemp("logs")
    return {
        kind: write(log, folder / f"log{i}.parquet")
        for i, (kind, (log, _)) in enumerate(LOGS.items())
    }


def duckdb_with(path):
    import ibis

    con = ibis.duckdb.connect()
    con.read_parquet(path, table_name="log")
    return con


@pytest.fixture(scope="module")
def spark():
    """One session for all: it takes ten seconds to start."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no java, which Spark runs on")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2]").appName(
        f"surefoot with {pyspark.__version__}"
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def spark_with(session, path):
    import ibis

    session.read.parquet(path).createOrReplaceTempView("log")
    return ibis.pyspark.connect(session)


@pytest.mark.parametrize("kind", LOGS)
def test_duckdb_counts_a_table_as_we_count_a_file(kind, files):
    settings = LOGS[kind][1]
    assert_same(
        count_log(files[kind], **settings), count_table(duckdb_with(files[kind]), "log", **settings)
    )


def test_spark_counts_a_table_as_we_count_a_file(files, spark):
    """The two that ask most of an engine. One test: workers would start a session each."""
    for kind in ("text", "early ends, random rewards"):
        settings = LOGS[kind][1]
        assert_same(
            count_log(files[kind], **settings),
            count_table(spark_with(spark, files[kind]), "log", **settings),
        )


@pytest.mark.full
@pytest.mark.parametrize("kind", LOGS)
def test_spark_counts_every_kind(kind, files, spark):
    settings = LOGS[kind][1]
    assert_same(
        count_log(files[kind], **settings),
        count_table(spark_with(spark, files[kind]), "log", **settings),
    )


@pytest.mark.parametrize("kind", ["far ids", "text"])
def test_control_other_multipliers_make_other_folds(kind, files, monkeypatch):
    """The comparison sees the folds: with another k1 or k2 in the expression alone, it fails."""
    settings = LOGS[kind][1]
    ours, con = count_log(files[kind], **settings), duckdb_with(files[kind])
    for wrong in (Keys(2, 0, 0), Keys(0, 2**20, 0)):  # k2 meets but 21 bits of a digest
        altered = Keys(
            *(a + b for a, b in zip(keys_of(settings.get("seed", 0)), wrong, strict=True))
        )
        monkeypatch.setattr(warehouse, "keys_of", lambda seed, keys=altered: keys)
        theirs = count_table(con, "log", **settings)
        np.testing.assert_array_equal(ours.n, theirs.n)
        with pytest.raises(AssertionError, match="n_fold"):
            assert_same(ours, theirs)


@pytest.mark.full
def test_one_expression_bound_to_no_engine_runs_on_both(files, spark):
    """And counts what numpy counts from the rows."""
    import ibis

    kind = "text"
    log, _ = LOGS[kind]
    names = {name: "string" for name in ("episode", "state", "action", "next_state")}
    schema = names | {"step": "int64", "reward": "float64", "terminated": "boolean"}
    expression = count_expression(ibis.table(schema, name="log"), H=H, seed=8)
    keys = ["step", "state", "action", "next_state", "terminated"]
    tables = [
        con.execute(expression).sort_values(keys, ignore_index=True)
        for con in (duckdb_with(files[kind]), spark_with(spark, files[kind]))
    ]
    assert list(tables[0].columns) == [
        *keys,
        "n",
        "n_fold",
        "low",
        "high",
        "x_sa",
        "x_fold",
        "rest_of_sum",
        "z_sa",
        "z_fold",
    ]
    for name in tables[0].columns:
        np.testing.assert_array_equal(tables[0][name].to_numpy(), tables[1][name].to_numpy())
    digests = [hashlib.md5(text.encode()).digest() for text in log["episode"]]
    numbers = [int.from_bytes(digest[:8], "little") >> 12 for digest in digests]
    at = folds_of(np.array(numbers), 8, H) == log["step"]
    assert tables[0].n_fold.sum() == at.sum()
    whole = np.floor(log["reward"] * 2**20)
    assert tables[0].x_sa.sum() == whole.sum()
    assert tables[0].x_fold.sum() == whole[at].sum()
    assert tables[0].rest_of_sum.sum() == np.floor((log["reward"] * 2**20 - whole) * 2**20).sum()


# --- what is refused


def refused(log, tmp_path, **settings):
    """Both refuse it; what the warehouse says of it."""
    path = write(log, tmp_path / "bad.parquet")
    with pytest.raises(InvalidLog):
        count_log(path, **settings)
    with pytest.raises(InvalidLog) as found:
        count_table(duckdb_with(path), "log", **settings)
    return str(found.value)


def at(log, episode, step):
    return int(np.flatnonzero((log["episode"] == episode) & (log["step"] == step))[0])


def without(log, row):
    return {name: np.delete(values, row) for name, values in log.items()}


def test_a_missing_column_is_named_with_those_found(tmp_path):
    log = episodes(1)
    del log["action"]
    text = refused(log, tmp_path)
    assert "'action'" in text
    assert "Found: episode, step, state, reward, next_state" in text


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("step", lambda x: x.astype(float), "whole numbers: 0, 1, 2"),
        ("reward", lambda x: x.astype(str).astype(object), "expected numbers"),
        ("episode", lambda x: x.astype(float), "whole numbers or text"),
        ("next_state", lambda x: x.astype(str).astype(object), "one type for both"),
        ("terminated", lambda x: x.astype(str).astype(object), "true or false"),
    ],
)
def test_wrong_types_are_named(name, values, words, tmp_path):
    log = episodes(1, end=0.1)
    text = refused(log | {name: values(log[name])}, tmp_path)
    assert name in text
    assert words in text


@pytest.mark.parametrize("name", ["episode", "state", "reward", "terminated"])
def test_values_that_are_missing_are_counted(name, tmp_path):
    log = episodes(1, end=0.1)
    holes = log[name].astype(object)
    holes[at(log, 7, 0)] = None
    assert f"1 row without {name}" in refused(log | {name: holes}, tmp_path)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_rewards_that_are_no_numbers(strange, tmp_path):
    log = episodes(1)
    log["reward"][at(log, 7, 2)] = strange
    assert "1 infinite or NaN reward (such as in episode 7)" in refused(log, tmp_path)


def test_what_does_not_add_up_is_said_with_an_episode(tmp_path):
    log = episodes(1)
    repeated = {name: np.append(values, values[at(log, 9, 0)]) for name, values in log.items()}
    assert "1 repeated step (such as in episode 9)" in refused(repeated, tmp_path)
    assert "1 gap in the steps (such as in episode 11)" in refused(
        without(log, at(log, 11, 1)), tmp_path
    )
    short = refused(without(log, at(log, 12, H - 1)), tmp_path)
    assert f"1 incomplete episode (such as in episode 12): step {H - 1} is missing" in short
    cut = without(
        log | {"truncated": (log["episode"] == 12) & (log["step"] == H - 2)}, at(log, 12, H - 1)
    )
    assert f"1 episode cut off (truncated) before step {H - 1} (such as in episode 12)" in refused(
        cut, tmp_path
    )
    broken = {name: values.copy() for name, values in log.items()}
    broken["next_state"][at(log, 13, 1)] = (broken["next_state"][at(log, 13, 1)] + 1) % S
    assert "1 broken chain (such as in episode 13)" in refused(broken, tmp_path)
    after = log | {"terminated": (log["episode"] == 14) & (log["step"] == 1)}
    assert "1 row after the end of an episode (such as in episode 14)" in refused(after, tmp_path)


def test_the_same_episodes_twice(tmp_path):
    """All totals add up; only that ids are there twice shows it."""
    log = episodes(1)
    text = refused(
        {name: np.concatenate([values, values]) for name, values in log.items()}, tmp_path
    )
    assert f"{EPISODES * H:,} repeated steps" in text


def test_what_else_no_table_can_be_made_of(tmp_path):
    log = episodes(1)
    assert "is empty" in refused({name: values[:0] for name, values in log.items()}, tmp_path)
    assert "numbered from 2" in refused(log | {"step": log["step"] + 2}, tmp_path)
    assert "outside the declared range" in refused(log, tmp_path, reward_range=(0.0, 0.5))
    early = episodes(1, end=0.2, varied=(3.0, 4.0))
    assert "declare a range that holds 0" in refused(early, tmp_path, reward_range=(3.0, 4.0))
    assert "not declared" in refused(log, tmp_path, states=S - 1)


@pytest.mark.full
def test_spark_refuses_in_the_same_words(spark, tmp_path):
    """The expression that looks for offending episodes has windows, and Spark its own ideas of
    NaN.
    """
    log = episodes(1)
    path = write(without(log, at(log, 11, 1)), tmp_path / "gap.parquet")
    with pytest.raises(InvalidLog, match=r"1 gap in the steps \(such as in episode 11\)"):
        count_table(spark_with(spark, path), "log")
    log["reward"][at(log, 7, 2)] = np.nan
    path = write(log, tmp_path / "nan.parquet")
    with pytest.raises(InvalidLog, match=r"1 infinite or NaN reward \(such as in episode 7\)"):
        count_table(spark_with(spark, path), "log")


def test_tables_and_connections_that_are_none(files):
    con = duckdb_with(files["integers"])
    with pytest.raises(InvalidLog, match=r"Table 'lgo' cannot be read: .*lgo"):
        count_table(con, "lgo")
    with pytest.raises(InvalidSetting, match="expected an ibis connection"):
        count_table(con.con, "log")
    assert count_table(con, "main.log").rows == EPISODES * H


@pytest.mark.parametrize("name", warehouse.NEEDED)
def test_without_ibis_it_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf'needs .*{name}.*pip install "surefoot\[warehouse\]"'):
        count_table(None, "log")
