"""A log that is not what it should be is refused with one message that names the episodes; a good
one is counted, saved and read back. `count_log` looks at totals, `check_log` at every episode.
"""

import json
import re
import zipfile

import numpy as np
import pytest

import log_rows
import surefoot as sf
from log_rows import NAMES, WRITER, assert_same
from surefoot.base.files import write_arrays
from surefoot.logs import log_tables

BOTH = (sf.count_log, sf.check_log)


def good(n=12, H=3, seed=0):
    """Rows of n whole episodes from state 0."""
    rows = log_rows.simulate(n, H, seed, kind="random", starts=1)
    return [(*row[:4], round(4 * row[4]) / 4, row[5], False, False) for row in rows]


def write(path, query="FROM given", rows=None):
    return log_rows.write(path, rows or good(), query=query)


def replaced(column, value, where="episode = 5 AND step = 1"):
    return (
        f"SELECT * REPLACE (CASE WHEN {where} THEN {value} ELSE {column} END AS {column}) FROM "
        "given"
    )


def assert_refused(path, words, episodes=(), **arguments):
    """Both refuse, in the same words, once; and a good log in its place is taken."""
    with pytest.raises(sf.InvalidLog, match=words) as refusal:
        sf.count_log(path, **arguments)
    assert len(re.findall(words, str(refusal.value))) == 1
    report = sf.check_log(path, **arguments)
    assert not report.usable
    assert report.counted is None
    assert [len(re.findall(words, finding.text)) for finding in report.errors] == [1]
    assert report.errors[0].episodes == episodes
    assert str(report).endswith("The log cannot be used as it is.")
    return report


# ---------------------------------------------------------------- a good log


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_good_log_is_good(tmp_path, ending):
    path = write(tmp_path / f"log.{ending}")
    log, report = sf.count_log(path), sf.check_log(path)
    assert report.usable
    assert report.errors == ()
    assert (report.rows, report.episodes, log.rows, log.episodes) == (36, 12, 36, 12)
    assert report.counted.counts == log.counts
    assert "36 rows, 12 episodes" in str(report)
    assert (
        "H = 3 steps, S = 4 states (one of them for all states that were never seen), A = 2 actions"
        in str(report)
    )
    assert str(report).endswith("The log can be used.")
    assert repr(log).startswith("LogCounts(H=3, S=4, A=2, 12 episodes, 36 rows")
    assert log.codebook == sf.Codebook(3, 2, unseen=True)
    assert sf.count_log(path, states="as logged").codebook == sf.Codebook(3, 2)


@pytest.mark.parametrize(
    ("query", "what", "words"),
    [
        ("FROM given", "rewards", "Certificates will treat them as unknown"),
        ("FROM given", "labels", "There may be more than the 3 in the log"),
        ("FROM given", "starts", "All episodes start in state 0. The start is unknown unless"),
        # although all of them lie in 0..1
        ("FROM given", "range", "Declare which rewards are possible with reward_range"),
        (
            "SELECT * REPLACE (episode % 3 AS state, 0.5 AS reward) FROM given WHERE step = 0",
            "starts",
            "Episodes start in 3 states",
        ),
        ("SELECT * REPLACE (0.5 AS reward) FROM given", "rewards", "Every pair always paid the"),
        (
            "SELECT * REPLACE (0 AS action, next_state / 2 AS reward) FROM given",
            "rewards",
            "Every transition always paid the same",
        ),
    ],
)
def test_what_a_report_says_of_a_good_log(tmp_path, query, what, words):
    path = write(tmp_path / "log.csv", query)
    assert words in {finding.what: finding.text for finding in sf.check_log(path).notes}[what]
    declared = sf.check_log(path, states=3, reward_range=(0, 1))
    assert {"labels", "range"}.isdisjoint(finding.what for finding in declared.notes)


# ---------------------------------------------------------------- broken rows


ROWS = {
    "gap": (
        "FROM given WHERE NOT (episode = 5 AND step = 1)",
        r"1 gap in the steps \(episode 5\)",
        (5,),
    ),
    "first step missing": (
        "FROM given WHERE NOT (episode = 5 AND step = 0)",
        r"1 gap in the steps \(episode 5\)",
        (5,),
    ),
    "steps from 1 in one": (
        replaced("step", "step + 1", "episode = 5") + " WHERE episode <> 5 OR step < 2",
        r"1 gap in the steps \(episode 5\)",
        (5,),
    ),
    "row twice": (
        "FROM given UNION ALL FROM given WHERE episode = 5 AND step = 1",
        r"1 repeated step \(episode 5\)",
        (5,),
    ),
    "episode twice": (
        "FROM given UNION ALL FROM given WHERE episode = 5",
        r"3 repeated steps \(episode 5\)",
        (5,),
    ),
    "last step twice": (
        "FROM given UNION ALL FROM given WHERE episode = 5 AND step = 2",
        r"1 repeated step \(episode 5\)",
        (5,),
    ),
    "chain": (
        replaced("next_state", "(next_state + 1) % 3"),
        r"1 broken chain \(episode 5\): the next_state",
        (5,),
    ),
    "short": (
        "FROM given WHERE NOT (episode = 5 AND step = 2)",
        r"1 incomplete episode \(episode 5\): step 2 is missing",
        (5,),
    ),
    "truncated": (
        "SELECT * REPLACE (step = 1 AND episode = 5 AS truncated) FROM given WHERE NOT (episode = "
        "5 AND step = 2)",
        r"1 episode cut off \(truncated\) before step 2 \(episode 5\)",
        (5,),
    ),
    "after": (
        replaced("terminated", "true"),
        r"1 row after the end of an episode \(episode 5\)",
        (5,),
    ),
    "nan": (replaced("reward", "'nan'::DOUBLE"), r"1 infinite or NaN reward \(episode 5\)", (5,)),
    "inf": (replaced("reward", "'-inf'::DOUBLE"), r"1 infinite or NaN reward \(episode 5\)", (5,)),
    "many": (
        "SELECT * REPLACE (CASE WHEN step = 0 THEN 3 - next_state ELSE next_state END AS "
        "next_state) FROM given",
        r"\d+ broken chains \(episodes 0, \d+, \d+, \.\.\.\)",
        None,
    ),
}


@pytest.mark.parametrize("what", ROWS)
def test_rows_that_do_not_belong_together(tmp_path, what):
    ending = ("parquet", "csv", "jsonl")[list(ROWS).index(what) % 3]
    ending = "parquet" if what in ("nan", "inf") else ending  # JSON knows neither
    query, words, episodes = ROWS[what]
    if what == "many":
        report = sf.check_log(write(tmp_path / f"log.{ending}", query))
        assert len(report.errors) == 1
        assert report.errors[0].count >= 4
        assert len(report.errors[0].episodes) == 3
        episodes = report.errors[0].episodes
    # mended, it is taken: the first test
    assert_refused(write(tmp_path / f"log.{ending}", query), words, episodes)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize(
    ("value", "words"), [("NULL", "rows without"), ("'inf'", "infinite or NaN")]
)
def test_a_refusal_of_rewards_names_the_first_rows(tmp_path, ending, value, words):
    path = tmp_path / f"log.{ending}"
    kind = "DOUBLE" if ending == "parquet" else "VARCHAR"  # JSON has no infinity
    where = "episode IN (2, 5) OR (episode = 1 AND step = 2)"
    reward = f"CASE WHEN {where} THEN {value} ELSE reward::VARCHAR END::{kind}"
    write(path, f"SELECT * REPLACE ({reward} AS reward) FROM given")
    first = rf"Found 7 .*{words}.* First rows: 6, 7, 8, 9, 16\."
    other = write(tmp_path / f"a.{ending}", "SELECT * REPLACE (episode + 90 AS episode) FROM given")
    for call in (sf.count_log, sf.log_returns):
        with pytest.raises(sf.InvalidLog, match=first):
            call(path)
        with pytest.raises(sf.InvalidLog, match=rf"First rows: log\.{ending} 6, log\.{ending} 7,"):
            call([other, path])
        call(other)  # control


@pytest.mark.parametrize("column", NAMES)
def test_nothing_may_be_missing(tmp_path, column):
    ending = ("parquet", "csv")[NAMES.index(column) % 2]
    path = write(tmp_path / f"log.{ending}", replaced(column, "NULL"))
    some = (
        r"1 row without episode\."
        if column == "episode"
        else rf"1 row without {column} \(episode 5\)\."
    )
    assert_refused(path, f"{some} Fill it in", () if column == "episode" else (5,))


def test_a_permutation_of_next_states_keeps_all_totals(tmp_path):
    """What one episode arrived at, another left: only `check_log` sees it."""
    rows = good()
    at = {row[:2]: i for i, row in enumerate(rows)}
    one = 0
    other = next(e for e in range(12) if rows[at[e, 0]][5] != rows[at[one, 0]][5])
    swapped = list(rows)
    for here, there in ((one, other), (other, one)):
        swapped[at[here, 0]] = (*rows[at[here, 0]][:5], rows[at[there, 0]][5], False, False)
    path = write(tmp_path / "log.parquet", rows=swapped)
    report = sf.check_log(path)
    assert [finding.what for finding in report.errors] == ["chain"]
    assert report.errors[0].episodes == (one, other)
    assert report.errors[0].count == 2
    sf.count_log(path)  # which says so: what is looked at there are totals
    assert sf.check_log(write(path)).usable


def test_the_same_episode_in_two_files(tmp_path):
    one = write(tmp_path / "one.parquet", "FROM given WHERE episode < 8")
    two = write(tmp_path / "two.parquet", "FROM given WHERE episode >= 7")
    words = r"one\.parquet and 1 more: Found 3 repeated steps"
    with pytest.raises(sf.InvalidLog, match=words):
        sf.count_log([one, two])
    report = sf.check_log([one, two])
    assert [(f.what, f.count, set(f.episodes)) for f in report.errors] == [("duplicate", 3, {7})]
    write(two, "FROM given WHERE episode >= 8")
    assert sf.count_log([one, two]).counts == sf.count_log(write(tmp_path / "all.parquet")).counts


def test_files_that_number_their_episodes_anew(tmp_path):
    """Ids 0..11 twice with gaps elsewhere: as many first steps as ids in between, but not each
    of them once.
    """
    one = write(tmp_path / "one.parquet", "FROM given WHERE episode < 6")
    two = write(tmp_path / "two.parquet", "SELECT * REPLACE (CASE WHEN episode = 6 THEN 5 ELSE "
                                          "episode END AS episode) "
                "FROM given WHERE episode >= 6")  # fmt: skip
    with pytest.raises(sf.InvalidLog, match=r"3 repeated steps .*make the ids differ"):
        sf.count_log([one, two])
    with pytest.raises(sf.InvalidLog, match=r"36 repeated steps .*make the ids differ"):
        sf.count_log(
            [write(tmp_path / "three.parquet"), write(tmp_path / "four.parquet", rows=good(seed=1))]
        )


@pytest.mark.parametrize("kind", ["text", "large"])
def test_offending_episodes_are_named_as_the_log_names_them(tmp_path, kind):
    name = {"text": "'visit ' || episode", "large": "episode + 5000000000"}[kind]
    shown = {"text": "visit 5", "large": 5000000005}[kind]
    query = f"SELECT * REPLACE ({name} AS episode) FROM given WHERE NOT (episode = 5 AND step = 1)"
    assert_refused(
        write(tmp_path / "log.csv", query), rf"1 gap in the steps \(episode {shown}\)", (shown,)
    )


def test_cuts_after_the_horizon_do_no_harm(tmp_path):
    path = write(tmp_path / "log.parquet", ROWS["truncated"][0])
    assert sf.check_log(path, horizon=2).usable
    assert sf.count_log(path, horizon=2).episodes == 12
    assert_refused(
        path, r"1 episode cut off \(truncated\) before step 2 \(episode 5\)", (5,), horizon=3
    )
    assert_refused(
        write(path), r"12 incomplete episodes .*: step 3 is missing", (0, 1, 2), horizon=4
    )


# ---------------------------------------------------------------- steps, rewards, labels


def test_steps_start_at_0_or_1(tmp_path):
    for first in (-1, 2):
        path = write(
            tmp_path / "log.parquet", f"SELECT * REPLACE (step + {first} AS step) FROM given"
        )
        with pytest.raises(
            sf.InvalidLog, match=rf"steps are numbered from {first}, expected from 0 \(or 1\)"
        ):
            sf.count_log(path)
        report = sf.check_log(path)
        assert not report.usable
        assert [finding.episodes for finding in report.errors] == [(0, 1, 2)]
    path = write(tmp_path / "log.parquet", "SELECT * REPLACE (step + 1 AS step) FROM given")
    assert sf.count_log(path).counts == sf.count_log(write(tmp_path / "zero.parquet")).counts
    assert any("numbered from 1" in finding.text for finding in sf.check_log(path).notes)


def test_rewards_outside_the_declared_range(tmp_path):
    path = write(tmp_path / "log.parquet", replaced("reward", "7.5"))
    words = r"rewards lie in 0\.\.7\.5, outside the declared range \(0, 1\).*declare a wider one"
    assert_refused(path, words, reward_range=(0.0, 1.0))
    assert_refused(
        write(path, replaced("reward", "-0.5")),
        "outside the declared range",
        reward_range=(0.0, 1.0),
    )
    assert sf.count_log(path, reward_range=(-1, 1)).declared
    for strange in ((1.0, 0.0), "ab", (0.0, np.inf), 3, (0.0,), (0.0, 2.0, 5), ()):
        for call in BOTH:
            with pytest.raises(sf.InvalidSetting, match=r"reward_range is .* expected"):
                call(path, reward_range=strange)


def test_without_a_range_nothing_is_certified(tmp_path):
    log = sf.count_log(write(tmp_path / "log.parquet", replaced("reward", "7.5")))
    assert not log.declared
    with pytest.raises(
        sf.InvalidSetting, match=r"Declare which rewards are possible when the log is counted"
    ):
        log.problem()


def test_an_early_end_pays_nothing_which_must_be_possible(tmp_path):
    query = (
        "SELECT * REPLACE (reward + 2 AS reward, step = 1 AND episode = 5 AS terminated) FROM "
        "given "
    )
    path = write(tmp_path / "log.parquet", query + "WHERE NOT (episode = 5 AND step = 2)")
    words = (
        r"some episodes end early, .* 0 must be in the range of rewards \(1\.0, 4\.0\).* "
        r"after_end=x"
    )
    assert_refused(path, words, reward_range=(1.0, 4.0))
    assert sf.count_log(path, reward_range=(0.0, 4.0)).absorbing_state == 3
    paid = sf.count_log(path, reward_range=(1.0, 4.0), after_end=2.5)
    assert (paid.after_end, paid.zero_reward) == (2.5, 0.5)
    assert paid.problem().r[:, paid.absorbing_state].tolist() == [[2.5, 2.5]] * 3
    assert paid.problem().absorbing_state == paid.absorbing_state
    free = sf.count_log(path, reward_range=(0.0, 4.0))
    # one of twelve episodes, one step
    assert paid.mean_return == pytest.approx(free.mean_return + 2.5 / 12)
    paid.save(tmp_path / "counts.npz")
    assert sf.LogCounts.load(tmp_path / "counts.npz").problem().same_as(paid.problem())
    with pytest.raises(
        sf.InvalidSetting, match=r"after_end is 5, outside the declared reward_range \(1, 4\)"
    ):
        sf.count_log(path, reward_range=(1.0, 4.0), after_end=5)
    with pytest.raises(sf.InvalidSetting, match="after_end needs a declared reward_range"):
        sf.count_log(path, after_end=2.5)
    assert not sf.count_log(path).declared  # it can be counted


def test_states_and_actions_that_were_not_declared(tmp_path):
    path = write(tmp_path / "log.parquet")
    assert_refused(
        path,
        r"The log has 1 states that were not declared, such as 2; declared are 2: 0, 1\.",
        states=2,
    )
    assert_refused(
        path, r"The log has 3 states that were not declared, such as 0", states=["a", "b"]
    )
    assert_refused(path, r"The log has 1 actions that were not declared, such as 0", actions=[1, 7])
    assert sf.count_log(path, states=4, actions=[1, 0]).codebook == sf.Codebook(4, [1, 0])
    for strange in (0, [], [0, 0], [0, "a"], "abc", 1.5, [True]):
        with pytest.raises(sf.InvalidSetting, match="states"):
            sf.count_log(path, states=strange)
    with pytest.raises(sf.InvalidSetting, match="actions"):
        sf.check_log(path, actions=[0, 0])


def test_a_log_too_large_for_its_counts(tmp_path, monkeypatch):
    path = write(tmp_path / "log.parquet", "SELECT * REPLACE (step = 2 AS terminated) FROM given")
    # only what occurs is counted
    assert sf.count_log(path, states=20_000).counts.shape == (3, 20_001, 2)
    monkeypatch.setattr(log_tables, "LARGEST", 2**20)
    assert_refused(
        path, r"Counts of \(H = 3, S = 100,001, A = 2\) would take more than", states=100_000
    )
    with pytest.raises(sf.InvalidSetting, match="expected at most 1000000 steps"):
        sf.count_log(path, horizon=10**10)


# ---------------------------------------------------------------- files


def kind(column, kind, words):
    """A column as another type, and what is said of it."""
    query = f"SELECT * REPLACE ({column}::{kind} AS {column}) FROM given"
    return "parquet", query, f"column '{column}' is {kind}, expected {words}"


# DuckDB takes the kinds of the first file (or of the first 20,480 rows of JSON and CSV) for all of
# them, and casts what comes later: 0.4 becomes 0 without a word. union_by_name=True and
# sample_size=-1 are the cure.
LATE = "CASE WHEN i < 30000 THEN '0'::JSON ELSE '0.4'::JSON END"
MANY = (
    "SELECT i AS episode, 0 AS step, {} AS state, 0 AS action, {} AS reward, 0 AS next_state "
    "FROM range(40000) AS t(i)"
)
WRONG = [
    kind("state", "DOUBLE", "whole numbers or text"),
    kind("action", "DOUBLE", "whole numbers or text"),
    kind("episode", "DOUBLE", "whole numbers or text"),
    kind("step", "VARCHAR", "whole numbers: 0, 1, 2"),
    kind("step", "DOUBLE", "whole numbers: 0, 1, 2"),
    kind("reward", "VARCHAR", "numbers"),
    kind("terminated", "VARCHAR", "true or false, or 1 or 0"),
    kind("truncated", "DOUBLE", "true or false, or 1 or 0"),
    (
        "parquet",
        "SELECT * REPLACE (state::VARCHAR AS state) FROM given",
        "state is VARCHAR, but next_state is BIGINT, expected one type for both",
    ),
    ("jsonl", MANY.format(LATE, 0.5), "expected whole numbers,? or text"),
    ("csv", MANY.format(LATE, 0.5), "expected whole numbers,? or text"),
    ("parquet", "FROM given WHERE false", r"log\.parquet is empty: it has no rows"),
    ("csv", "FROM given WHERE false", r"log\.csv is empty: it has no rows"),
    ("jsonl", "FROM given WHERE false", r"log\.jsonl is empty: it has no rows"),
]


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize(("ending", "query", "words"), WRONG)
def test_what_a_file_holds_is_no_log(tmp_path, ending, query, words, call):
    with pytest.raises(sf.InvalidLog, match=words):
        call(write(tmp_path / f"log.{ending}", query))


@pytest.mark.parametrize("column", NAMES[:6])
def test_a_missing_column(tmp_path, column):
    path = write(tmp_path / "log.parquet", f'SELECT * RENAME ({column} AS "its name") FROM given')
    for call in BOTH:
        call(path, columns={column: "its name"})
        with pytest.raises(sf.InvalidLog, match=rf"has no column '{column}'\. Found: .*Give its"):
            call(path)
        with pytest.raises(sf.InvalidLog, match=rf"has no column 'other' \({column}\)"):
            call(path, columns={column: "other"})


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ("{}/nothing.parquet", r"nothing\.parquet does not exist. Expected a log as Parquet, CSV"),
        ("{}/*.jsonl", r"\*\.jsonl does not exist"),
        ("{}", r"is a folder\. Name the files in it: '.*/\*\.parquet'"),
        ("", "No file is given"),
        ("{}/log.txt", r"log\.txt: its ending names no known format\. Expected one of \.parquet"),
        ("{}/a.parquet {}/b.csv", r"a\.parquet and .*b\.csv have different formats"),
        ("{}/a.parquet {}/a*.parquet", r"a\.parquet is given 2 times"),
        ("{}/text.parquet", r"text\.parquet cannot be read: .* is its ending right"),
        ("{}/none.csv", r"none\.csv is empty: it has no rows"),
        ("{}/log[1].parquet", r"log\[1\]\.parquet has no column"),
    ],
)
def test_what_is_no_file_of_a_log(tmp_path, files, words, call):
    write(tmp_path / "a.parquet")
    (tmp_path / "text.parquet").write_bytes(write(tmp_path / "b.csv").read_bytes())
    (tmp_path / "log.txt").write_text("episode")
    (tmp_path / "none.csv").write_text("")
    write(tmp_path / "log[1].parquet", "SELECT * EXCLUDE (state) FROM given")
    given = files.format(*[tmp_path] * 2).split()
    with pytest.raises(sf.InvalidLog, match=words):
        call(given[0] if len(given) == 1 else given)


@pytest.mark.parametrize("call", BOTH)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *(
            ({"memory": strange}, "memory is .*, expected a size such as '512MB' or '4GB'")
            for strange in ("much", "", "12", "-1GB", 256, None, "1GB'; SELECT 1; --", "10XB")
        ),
        ({"memory": "1KB"}, r"log\.parquet does not fit into memory: .* Increase memory="),
        ({"columns": {"status": "state"}}, "columns names 'status', expected some of episode"),
        *(
            ({"horizon": strange}, "horizon is .*, expected an integer >= 1")
            for strange in (0, -1, True, "x", 2.5)
        ),
        *(({"threads": strange}, "threads") for strange in (0, -1, "x", 1.5)),
    ],
)
def test_settings(tmp_path, settings, words, call):
    with pytest.raises((sf.InvalidSetting, sf.InvalidLog), match=words):
        call(write(tmp_path / "log.parquet"), **settings)


def test_damaged_parquet(tmp_path):
    path = write(tmp_path / "log.parquet", rows=good(n=2000))
    whole = path.read_bytes()
    for length in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        for call in BOTH:
            with pytest.raises(sf.InvalidLog, match=r"cannot be read: .* Is the file complete"):
                call(path)
    path.write_bytes(whole)
    sf.count_log(path)


def test_a_name_with_brackets_is_a_name(tmp_path):
    path = write(tmp_path / "log[1].parquet")
    write(tmp_path / "log1.parquet", "FROM given WHERE episode = 3")
    assert sf.count_log(path).episodes == sf.check_log(path).episodes == 12


def test_rewards_of_two_kinds_are_all_read(tmp_path):
    one = write(
        tmp_path / "1.parquet", "SELECT * REPLACE (0 AS reward) FROM given WHERE episode < 6"
    )
    paid = "SELECT * REPLACE (0.4::DOUBLE AS reward) FROM given WHERE episode >= 6"
    two = write(tmp_path / "2.parquet", paid)
    assert sf.count_log([one, two]).mean_return == pytest.approx(0.5 * 3 * 0.4)
    path = write(tmp_path / "log.jsonl", MANY.format(0, LATE))
    assert sf.check_log(path).counted.mean_return == pytest.approx(0.1)


def test_states_of_two_kinds_in_two_parquet_files(tmp_path):
    query = "SELECT * REPLACE ({0} AS state, {0} AS next_state) FROM given WHERE episode {1} 6"
    one = write(tmp_path / "1.parquet", query.format(0, "<"))
    two = write(tmp_path / "2.parquet", query.format("0.4::DOUBLE", ">="))
    for call in BOTH:
        with pytest.raises(sf.InvalidLog, match="expected whole numbers or text"):
            call([one, two])


@pytest.mark.parametrize("rewards", [(0.4, 0.4), (0.2, 0.6)])
def test_nan_in_parquet_of_other_makers(tmp_path, rewards):
    """The statistics of a Parquet file leave NaN out (as the format says), and DuckDB answers
    max(reward), and WHERE NOT isfinite(reward), from them. max(reward + 0), and count(*) FILTER
    (NOT isfinite(reward)), look at the values.
    """
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: np.zeros(10, dtype=np.int64) for name in NAMES[:6]}
    paid = np.resize(rewards, 10)
    paid[3] = np.nan
    columns |= {"episode": np.arange(10), "reward": paid}
    path = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    assert_refused(path, r"1 infinite or NaN reward \(episode 3\)", (3,))


def test_few_very_large_labels(tmp_path):
    large = 2 * 10**18
    query = f"SELECT * REPLACE ({large} AS state, {large} AS next_state, {large} AS action)"
    path = write(tmp_path / "log.parquet", f"{query} FROM given WHERE step = 0")
    assert sf.count_log(path).episodes == sf.check_log(path).counted.episodes == 12


def test_seeds(tmp_path):
    path = write(tmp_path / "log.parquet")
    for strange in (-1, "x", 1.5, True):
        with pytest.raises(sf.InvalidSetting, match=r"seed is .*, expected an integer >= 0"):
            sf.count_log(path, seed=strange)
    one, other = sf.count_log(path, seed=1), sf.count_log(path, seed=2)
    assert one.counts == other.counts
    assert not np.array_equal(one.folds, other.folds)


# ---------------------------------------------------------------- saving


def logs(tmp_path):
    """One with random rewards and early ends, and one whose rewards are known."""
    early = (
        "SELECT * REPLACE (step = 1 AND episode = 5 AS terminated) FROM given WHERE NOT "
        "(episode = 5 AND step = 2)"
    )
    yield sf.count_log(write(tmp_path / "random.parquet", early), seed=3, reward_range=(-1, 2))
    known = (
        "SELECT * REPLACE ('s' || state AS state, 's' || next_state AS next_state, 0.5 AS "
        "reward) FROM given"
    )
    yield sf.count_log(
        write(tmp_path / "known.csv", known), states="as logged", reward_range=(0, 1)
    )


def test_log_counts_round_trip(tmp_path):
    for log in logs(tmp_path):
        log.save(tmp_path / "counts.npz")
        again = sf.LogCounts.load(tmp_path / "counts.npz")
        assert_same(log, again)
        assert repr(again.problem()) == repr(log.problem())
        with pytest.raises(ValueError, match="read-only"):
            again.n[0] = 7
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["counts.npz", "known.csv", "random.parquet"]


def test_every_byte_of_a_table_matters(tmp_path):
    """Tables as they were stored but for one bit, in an archive that is whole."""
    log = next(logs(tmp_path))
    log.save(tmp_path / "counts.npz")
    with zipfile.ZipFile(tmp_path / "counts.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert {
        "n.npy",
        "place.npy",
        "n_fold.npy",
        "low.npy",
        "high.npy",
        "x_sa.npy",
        "codebook.npy",
    } <= set(members)
    for name, content in members.items():
        changed = {**members, name: content[:-1] + bytes([content[-1] ^ 1])}
        with zipfile.ZipFile(tmp_path / "changed.npz", "w") as archive:
            for member, stored in changed.items():
                archive.writestr(member, stored)
        with pytest.raises(sf.InvalidFile):
            sf.LogCounts.load(tmp_path / "changed.npz")
    with zipfile.ZipFile(tmp_path / "changed.npz", "w") as archive:
        for member, stored in members.items():
            archive.writestr(member, stored)
    assert_same(sf.LogCounts.load(tmp_path / "changed.npz"), log)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """The tables of a file of counts."""
    place = tmp_path_factory.mktemp("counts")
    next(logs(place)).save(place / "counts.npz")
    with np.load(place / "counts.npz", allow_pickle=False) as data:
        return {name: data[name] for name in data.files if name != "about"}


def tampered(tmp_path, untouched, change):
    """A file with a correct hash whose tables were changed before it was written."""
    arrays = {name: array.copy() for name, array in untouched.items()}
    change(arrays)
    write_arrays(tmp_path / "counts.npz", "log-counts", arrays)
    return tmp_path / "counts.npz"


def put(name, value):
    return lambda arrays: arrays.__setitem__(name, value(arrays[name]))


def about(key, value):
    def change(arrays):
        arrays["log"] = np.array(json.dumps({**json.loads(str(arrays["log"])), key: value}))

    return change


TAMPERED = {
    "order": put("place", lambda x: x[::-1].copy()),
    "place": put("place", lambda x: x + 10**6),
    "negative place": put("place", lambda x: x - 10),
    "nothing": put("n", lambda x: x * 0),
    "floats": put("n", lambda x: x.astype(np.float64)),
    "folds": put("n_fold", lambda x: x + 100),
    "negative folds": put("n_fold", lambda x: x - 100),
    "shape": put("low", lambda x: x[:-1]),
    "empty": lambda arrays: arrays.update(
        {name: arrays[name][:0] for name in ("place", "n", "n_fold", "low", "high")}
    ),
    "no table": lambda arrays: arrays.pop("n"),
    "codebook": put("codebook", lambda x: np.array("{")),
    "labels": put(
        "codebook",
        lambda x: np.array(
            json.dumps({"states": [0, 0], "actions": [0], "absorbing": False, "unseen": False})
        ),
    ),
    "fewer states": put(
        "codebook",
        lambda x: np.array(
            json.dumps({"states": [0], "actions": [0], "absorbing": False, "unseen": False})
        ),
    ),
    "H": about("H", 1),
    "log": put("log", lambda x: np.array("[]")),
    "range": about("reward_range", ["a", 1]),
    "some sums": lambda arrays: arrays.pop("x_fold"),
    "range backwards": about("reward_range", [2.0, 1.0]),
    "shape of sums": put("x_sa", lambda x: x[:-1]),
    "sums": put("x_sa", lambda x: x + 2**40),
    "low above high": put("low", lambda x: x + 10.0),
    "nan": put("low", lambda x: x * np.nan),
    "episodes": about("episodes", 7),
    "negative": about("rows", -1),
}


# The hash is right, so nobody wrote these by accident.
@pytest.mark.parametrize("what", TAMPERED)
def test_tables_that_do_not_belong_together_are_refused(tmp_path, untouched, what):
    with pytest.raises(sf.InvalidFile, match=r"counts\.npz"):
        sf.LogCounts.load(tampered(tmp_path, untouched, TAMPERED[what]))
    sf.LogCounts.load(tampered(tmp_path, untouched, lambda arrays: None))


# ---------------------------------------------------------------- codebooks


BOOKS = [
    sf.Codebook(3, 2, unseen=True),
    sf.Codebook(["gold", "größer", ""], [-1, 2**40], absorbing=True),
    sf.Codebook([5], ["x"]),
]


def test_codebooks(tmp_path):
    book = BOOKS[1]
    assert (book.S, book.A) == (4, 2)
    assert [book.state(label) for label in book.states] == [0, 1, 2]
    assert book.action(2**40) == 1
    assert book.state_label(3) == "(ended)"
    assert sf.Codebook(3, 2).states == (0, 1, 2)
    assert repr(book) == "Codebook(3 states, 2 actions, and an absorbing state)"
    with pytest.raises(
        sf.InvalidSetting, match=r"There is no state 'silver'. Expected one of 'gold', 'größer', ''"
    ):
        book.state("silver")
    with pytest.raises(sf.InvalidSetting, match=r"absorbing is 1, expected True or False"):
        sf.Codebook(3, 2, absorbing=1)


@pytest.mark.parametrize("strange", [None, 1, "yes"])
def test_a_codebook_of_another_kind_is_refused(strange):
    content = {"states": ["gold"], "actions": [0], "absorbing": strange, "unseen": False}
    with pytest.raises(sf.InvalidFile, match="codebook is damaged"):
        sf.Codebook.from_json("book.json", content)


@pytest.mark.parametrize("book", BOOKS)
def test_codebooks_round_trip(tmp_path, book):
    book.save(tmp_path / "book.json")
    assert sf.Codebook.load(tmp_path / "book.json") == book
    assert [path.name for path in tmp_path.iterdir()] == ["book.json"]
    # for others to read
    assert json.loads((tmp_path / "book.json").read_text())["states"] == list(book.states)


def test_a_codebook_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "book.json"
    BOOKS[1].save(path)
    path.write_text(path.read_text().replace("gold", "golf"))
    with pytest.raises(sf.InvalidFile, match="its content is not what was written"):
        sf.Codebook.load(path)


# ---------------------------------------------------------------- larger than memory


H, S, A = 4, 5, 3
FULL = {"states": S, "reward_range": (0, 1)}


def large(path, episodes):
    """A log of 50 bytes a row before it is compressed, made by DuckDB; and its counts, with
    nothing of ours.
    """
    rows = (
        f"SELECT i // {H} AS episode, i % {H} AS step, CASE WHEN i % {H} = 0 THEN 0 ELSE (hash(i) "
        f"% {S})::BIGINT END AS state, (hash(i + 7) % {A})::BIGINT AS action, (hash(i + 11) % "
        f"1024) / 1024 AS reward, (hash(i + 1) % {S})::BIGINT AS next_state, false AS terminated, "
        f"false AS truncated FROM range({episodes * H}) AS t(i)"
    )
    WRITER.execute(f"COPY ({rows}) TO '{path}'")
    found = WRITER.execute(
        f"SELECT step, state, action, next_state, count(*) AS n, sum(reward) AS paid FROM ({rows}) "
        "GROUP BY ALL"
    ).fetchnumpy()
    n, paid = np.zeros((H, S, A, S), dtype=np.int64), np.zeros((H, S, A))
    n[found["step"], found["state"], found["action"], found["next_state"]] = found["n"]
    np.add.at(paid, (found["step"], found["state"], found["action"]), found["paid"])
    return n, paid


def assert_counts(log, n, paid):
    np.testing.assert_array_equal(log.counts.n_sas, n)
    np.testing.assert_array_equal(log.counts.x_sa, paid * 2**20)  # multiples of 2^-10: exact


def test_ten_times_larger_than_memory_is_counted(tmp_path):
    n, paid = large(tmp_path / "log.parquet", 500_000)  # 100 MB
    assert_counts(sf.count_log(tmp_path / "log.parquet", memory="10MB", **FULL), n, paid)


@pytest.mark.full
def test_ten_times_larger_than_memory_is_checked(tmp_path):
    n, paid = large(tmp_path / "log.parquet", 2_000_000)  # 400 MB
    report = sf.check_log(tmp_path / "log.parquet", memory="40MB", **FULL)
    assert report.usable
    assert_counts(report.counted, n, paid)


@pytest.mark.full
def test_csv_larger_than_memory_is_counted(tmp_path):
    """DuckDB reads CSV in blocks of 32 MB for each thread: below some 100 MB it says that it
    does not fit.
    """
    n, paid = large(tmp_path / "log.csv", 2_000_000)
    assert_counts(sf.count_log(tmp_path / "log.csv", memory="100MB", **FULL), n, paid)
