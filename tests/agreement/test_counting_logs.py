"""What DuckDB counts in a log is what a plain loop over its rows counts: any file, labels, order
and threads.
"""

import hashlib
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import surefoot as sf
from log_rows import NAMES, assert_same, simulate, write
from surefoot.logs.folds import folds_of

UNIT = 2**20
KINDS = ("pair", "next", "random")


# ---------------------------------------------------------------- the plain loop


def fold_of(episode, seed, H):
    """The documented integer arithmetic, in Python's unbounded integers."""
    if isinstance(episode, str):
        episode = int(bytes(reversed(hashlib.md5(episode.encode()).digest()[:8])).hex(), 16) // 4096
    k1, k2, k3 = (int(word) % 2**30 for word in np.random.SeedSequence(seed).generate_state(3))
    mask = 2**31 - 1
    u = (episode & mask) * (k1 | 1) + ((episode >> 31) & mask) * (k2 | 1) + k3
    assert 0 <= u < 2**63
    return (((u ^ (u >> 30)) & mask) * H) >> 31


def labels_of(values):
    """Integers that fill at least half of 0..max are their own numbers; other labels are
    numbered in order.
    """
    found = sorted(set(values))
    if not isinstance(found[0], str) and found[0] >= 0 and found[-1] < 2 * len(found):
        return list(range(found[-1] + 1))
    return found


def count_log(path, states="as logged", reward_range=(0.0, 1.0), **settings):
    """With declarations, so that there is no unseen state; TestUnseen counts without them."""
    return sf.count_log(path, states=states, reward_range=reward_range, **settings)


def by_hand(rows, seed=0, horizon=None, states=None, actions=None, reward_range=(0.0, 1.0)):
    """Everything `count_log` says, row by row."""
    first = min(row[1] for row in rows)
    H = horizon or max(row[1] for row in rows) - first + 1
    rows = [(row[0], row[1] - first, *row[2:]) for row in rows if row[1] - first < H]
    states = states or labels_of([row[2] for row in rows] + [row[5] for row in rows])
    actions = actions or labels_of([row[3] for row in rows])
    low, high = reward_range
    may_end = H > 1 and low <= 0.0 <= high  # an end at the last step may be the process's own
    absorbing = len(states) if any(row[6] and (may_end or row[1] < H - 1) for row in rows) else None
    S, A = len(states) + (absorbing is not None), len(actions)
    n, folds = (np.zeros((H, S, A, S), dtype=np.int64) for _ in range(2))
    x_sa, starts, paid = (
        np.zeros((H, S, A), dtype=np.int64),
        np.zeros(S, dtype=np.int64),
        defaultdict(list),
    )
    histories = defaultdict(list)
    for row in rows:
        histories[row[0]].append(row)
    episodes, total = [], 0.0
    for episode, steps in histories.items():
        path, done, earned = [], [], []
        for _, _, s, a, r, _, _, _ in sorted(steps):
            path, done, earned = [*path, states.index(s)], [*done, actions.index(a)], [*earned, r]
        last = max(steps, key=lambda row: row[1])
        path.append(absorbing if last[6] and absorbing is not None else states.index(last[5]))
        while len(done) < H:
            path, done, earned = [*path, absorbing], [*done, 0], [*earned, 0.0]
        starts[path[0]] += 1
        for h in range(H):
            place = h, path[h], done[h], path[h + 1]
            n[place] += 1
            folds[place] += fold_of(episode, seed, H) == h
            x_sa[place[:3]] += int(
                np.floor(min(max((earned[h] - low) / (high - low), 0.0), 1.0) * UNIT)
            )
            paid[place[:3]].append(earned[h])
        episodes.append((path, done, earned))
        total += sum(earned)
    return SimpleNamespace(
        H=H, S=S, A=A, absorbing=absorbing, states=tuple(states), actions=tuple(actions),
        n=n, folds=folds, starts=starts,
        x_sa=x_sa, paid=paid, episodes=episodes, mean_return=total / len(episodes),
    )  # fmt: skip


def assert_counted(log, hand, precision=1e-11):
    assert (log.H, log.S, log.A, log.absorbing_state) == (hand.H, hand.S, hand.A, hand.absorbing)
    assert log.episodes == len(hand.episodes)
    assert (log.codebook.states, log.codebook.actions) == (hand.states, hand.actions)
    np.testing.assert_array_equal(log.counts.n_sas, hand.n)
    np.testing.assert_array_equal(log.folds, hand.folds)
    np.testing.assert_array_equal(log.starts, hand.starts)
    np.testing.assert_array_equal(log.counts.n_start, hand.starts)
    np.testing.assert_array_equal(log.rewards.n, hand.n.sum(axis=-1))
    for place in np.ndindex(hand.H, hand.S, hand.A):
        given = hand.paid[place]
        if not given:
            assert np.isnan(
                [log.rewards.mean[place], log.rewards.min[place], log.rewards.max[place]]
            ).all()
            continue
        assert (log.rewards.min[place], log.rewards.max[place]) == (min(given), max(given))
        assert log.rewards.mean[place] == pytest.approx(np.mean(given), abs=precision, rel=0)
    assert log.mean_return == pytest.approx(hand.mean_return, abs=precision * hand.H, rel=0)
    if log.declared:
        np.testing.assert_array_equal(log.counts.x_sa, hand.x_sa)
    else:
        assert log.counts.x_sa is None
    assert log.counts.logged


# ---------------------------------------------------------------- logs


def shuffled(rows, seed=0):
    return [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]


# ---------------------------------------------------------------- agreement


@pytest.mark.parametrize("seed", [0, 1, 2**70])
def test_the_folds_are_the_documented_arithmetic(seed):
    rng = np.random.default_rng(0)
    ids = [0, 1, -1, 2**31 - 1, 2**31, 2**31 + 1, -(2**31), 2**52, 2**63 - 1, -(2**63)]
    ids += rng.integers(-(2**63), 2**63 - 1, size=300).tolist()
    for H in (1, 2, 7, 1000):
        assert folds_of(np.array(ids), seed, H).tolist() == [fold_of(i, seed, H) for i in ids]
    sizes = np.bincount(folds_of(np.arange(30_000), seed, 3), minlength=3)
    assert (np.abs(sizes - 10_000) < 600).all()  # 7 standard deviations of a fair split


@pytest.mark.parametrize("kind", KINDS)
def test_threads_order_and_memory_change_nothing(tmp_path, kind):
    rows = simulate(n=2000, ends=0.1, kind=kind)
    one = count_log(write(tmp_path / "one.parquet", rows), threads=1)
    for i, threads in enumerate((1, 2, 2)):
        path = write(tmp_path / f"{i}.parquet", shuffled(rows, i))
        other = count_log(path, threads=threads, memory=("256MB", "100MB", "1GB")[i])
        assert_same(one, other)
        assert one.rewards.mean.tobytes() == other.rewards.mean.tobytes()
    assert (one.sums is None) == (kind != "random")


def test_several_files_and_a_glob(tmp_path):
    rows = simulate(n=90, ends=0.2, kind="random")
    for i in range(3):
        write(tmp_path / f"part-{i}.parquet", [row for row in rows if row[0] % 3 == i])
    hand = by_hand(rows)
    assert_counted(count_log(str(tmp_path / "part-*.parquet")), hand)
    assert_counted(count_log([tmp_path / f"part-{i}.parquet" for i in (2, 0, 1)]), hand)
    assert_counted(
        count_log([str(tmp_path / "part-[01].parquet"), tmp_path / "part-2.parquet"]), hand
    )
    # episodes lie across files
    split = [write(tmp_path / f"cut-{i}.csv", rows[i::4]) for i in range(4)]
    assert_counted(count_log(split), hand)


@pytest.mark.parametrize("kind", ["TINYINT", "UTINYINT", "SMALLINT", "UINTEGER", "UBIGINT"])
def test_every_width_of_integer(tmp_path, kind):
    rows = simulate(kind="random")
    whole = ", ".join(f"{name}::{kind} AS {name}" for name in NAMES[:6] if name != "reward")
    query = f"SELECT * REPLACE ({whole}, reward::FLOAT AS reward) FROM given"
    rows = [(*row[:4], float(np.float32(row[4])), *row[5:]) for row in rows]
    assert_counted(count_log(write(tmp_path / "log.parquet", rows, query=query)), by_hand(rows))


def test_flags_as_numbers_and_flags_left_out(tmp_path):
    rows = simulate(ends=0.2, kind="random")
    query = (
        "SELECT * REPLACE (terminated::INT AS terminated, truncated::INT AS truncated) FROM given"
    )
    path = write(tmp_path / "log.csv", rows, query=query)
    assert_counted(count_log(path), by_hand(rows))
    rows = simulate(kind="random")
    path = write(tmp_path / "bare.csv", [row[:6] for row in rows], NAMES[:6])
    assert_counted(count_log(path), by_hand(rows))


def test_other_names_and_columns_nobody_asked_for(tmp_path):
    rows = simulate(kind="random", ends=0.2)
    # `state` is something else
    names = ("visit", "t", "segment", "offer", "margin", "segment after", "over", "state")
    path = write(tmp_path / "log.parquet", rows, names)
    mapping = dict(zip(NAMES[:7], names[:7], strict=True))
    assert_counted(count_log(path, columns=mapping), by_hand(rows))
    assert sf.check_log(path, columns=mapping).usable


def test_all_episodes_end_before_a_longer_horizon(tmp_path):
    rows = [(*row[:6], row[1] == 2, False) for row in simulate()]
    path = write(tmp_path / "log.parquet", rows)
    found = count_log(path, horizon=5)
    assert_counted(found, by_hand(rows, horizon=5))
    assert (
        found.counts.n_sas[4].sum()
        == found.counts.n_sas[4, found.absorbing_state, 0, found.absorbing_state]
        == 60
    )


def test_without_a_range_nothing_is_known_of_the_sums_of_rewards(tmp_path):
    rows = simulate(n=300, kind="random", span=(-3.0, 5.0))
    found = count_log(write(tmp_path / "log.parquet", rows), reward_range=None)
    seen = min(row[4] for row in rows), max(row[4] for row in rows)
    assert (found.declared, found.reward_range) == (False, seen)
    np.testing.assert_array_equal(found.counts.n_sas, by_hand(rows).n)
    assert found.counts.x_sa is None


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    ends=st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3)),
    shares=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8),
)
def test_sums_of_rewards_are_exact_at_the_ends_of_any_range(tmp_path, ends, shares):
    """A reward at the very top of its range is 2^20 units, not one less: DuckDB must divide as
    Python does.
    """
    low, high = ends[0], ends[0] + ends[1]
    rewards = [low, high, *(min(max(low + share * (high - low), low), high) for share in shares)]
    rows = [(i, 0, 0, 0, reward, 0, False, False) for i, reward in enumerate(rewards)]
    found = count_log(write(tmp_path / "log.parquet", rows), reward_range=(low, high))
    hand = by_hand(rows, reward_range=(low, high))
    np.testing.assert_array_equal(found.counts.x_sa, hand.x_sa)
    assert int(hand.x_sa.sum()) >= UNIT


def some(of, most):
    return st.lists(of, min_size=1, max_size=most, unique=True)


NUMBERS = st.one_of(
    st.integers(0, 4), st.integers(-5, 20), st.integers(2**31, 2**33), st.integers(2**60, 2**60 + 9)
)
TEXTS = st.sampled_from(["gold", "new", "größer", "'quoted'", 'a "b", c', "去", "∅"])
# Text and numbers are no ids of one log.
IDS = (
    st.integers(0, 60),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 99).map("visit {}".format),
)
SPANS = ((0.0, 1.0), (-3.0, 5.0), (0.0, 1e6), (-1.0, 0.0), (-0.1, 0.30000000000000004))


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_small_log(tmp_path, data):
    """Files, episodes, labels that are declared or not, ids, rewards and horizons at random."""

    def one_of(*choices):
        return data.draw(st.sampled_from(choices))

    H, first = data.draw(st.integers(1, 4)), one_of(0, 1)
    states, actions = (data.draw(some(one_of(NUMBERS, TEXTS), 4)) for _ in range(2))
    ids = data.draw(some(one_of(*IDS), 12))
    span, seed = one_of(*SPANS), data.draw(st.integers(0, 2**32))
    rows = simulate(
        H=H,
        states=tuple(states),
        actions=tuple(actions),
        ids=ids,
        kind=one_of(*KINDS),
        ends=one_of(0.0, 0.3),
        seed=seed,
        first=first,
        span=span,
    )
    known = {"horizon": one_of(None, *range(1, H + 1)), "reward_range": span, "seed": seed}
    longest = max(row[1] for row in rows) - first + 1
    if known["horizon"] is not None:
        known["horizon"] = min(known["horizon"], longest)
    labels = {"states": states[::-1], "actions": actions[::-1]} if one_of(True, False) else {}
    path = tmp_path / f"log.{one_of('parquet', 'csv', 'jsonl', 'csv.gz')}"
    found = count_log(write(path, shuffled(rows)), **known, **labels)
    hand = by_hand(rows, **known, **labels)
    assert_counted(found, hand, precision=1e-11 * (span[1] - span[0]))
    assert any(note.startswith("Episodes are cut after") for note in found.notes) == (
        longest > hand.H
    )


# ---------------------------------------------------------------- the same as an agent would count


@pytest.mark.parametrize("ends", [0.0, 0.2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("span", [(0.0, 1.0), (-3.0, 5.0)])
def test_episode_by_episode_it_is_the_same(tmp_path, kind, ends, span):
    rows = simulate(n=200, kind=kind, ends=ends, span=span)
    log, hand = (
        count_log(write(tmp_path / "log.parquet", rows), reward_range=span),
        by_hand(rows, reward_range=span),
    )
    problem = log.problem()
    episodes = [sf.Episode.of(problem, *episode) for episode in hand.episodes]
    assert sf.Counts.from_log(problem, episodes) == log.counts
    assert sf.Counts.from_log(problem, episodes[1:]) != log.counts  # the control
    if kind == "random":
        for words in ("as logged", "as logged by next state"):
            with pytest.raises(sf.InvalidLog, match="paid"):
                log.problem(words)
        return
    known = log.problem("as logged" if kind == "pair" else "as logged by next state")
    assert known.unknown_rows is None
    counted = sf.Counts.from_log(
        known, [sf.Episode.of(known, *episode) for episode in hand.episodes]
    )
    assert counted.x_sa is None  # nothing needs to be learnt of rewards that are known
    np.testing.assert_array_equal(counted.n_sas, log.counts.n_sas)
    np.testing.assert_array_equal(counted.n_start, log.counts.n_start)
    assert (counted.H, counted.s1, counted.logged) == (log.counts.H, log.counts.s1, True)
    for path, done, earned in hand.episodes:  # and what is known is what was paid
        learnt = sf.Episode.of(known, path, done).rewards
        np.testing.assert_allclose(learnt, earned, atol=1e-12)


def test_a_start_is_known_if_it_is_declared(tmp_path):
    rows = [(i, 0, 1, 0, 0.0, i % 2, False, False) for i in range(6)]
    one = count_log(write(tmp_path / "one.parquet", rows))
    assert one.counts.s1 == 1
    assert one.problem().start is None
    assert (
        one.problem(start="as logged").s1
        == one.problem(start=1).s1
        == one.problem(start=[0, 1]).s1
        == 1
    )
    with pytest.raises(
        sf.InvalidLog, match=r"no episode starts in state 1, but 6 episodes of the log do"
    ):
        one.problem(start=0)
    rows[0] = (0, 0, 0, 0, 0.0, 0, False, False)
    several = count_log(write(tmp_path / "several.parquet", rows))
    assert several.counts.s1 is None
    assert several.problem().start is None
    assert several.problem(start=[0.5, 0.5]).start.tolist() == [0.5, 0.5]
    with pytest.raises(sf.InvalidLog, match="episodes of the log start in 2 states"):
        several.problem(start="as logged")


@pytest.mark.parametrize("ends", [0.0, 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_declaration_there_is_one_more_state(tmp_path, kind, ends):
    """The same numbers, but that the first time of each transition, and of each start, counts as
    unseen.
    """
    path = write(tmp_path / "log.parquet", simulate(n=60, kind=kind, ends=ends))
    log, declared = count_log(path, states=None), count_log(path)
    S, labels = declared.S, len(declared.codebook.states)
    assert (log.S, log.unseen_state, log.absorbing_state) == (S + 1, S, declared.absorbing_state)
    assert log.codebook.state_label(S) == "(unseen)"
    assert log.codebook.state(12345) == S
    given, n = declared.counts, log.counts
    first = (given.n_sas > 0).astype(int)
    first[:, labels:] = 0  # the absorbing state leads to itself, as everybody knows
    np.testing.assert_array_equal(n.n_sas[:, :S, :, :S], given.n_sas - first)
    np.testing.assert_array_equal(n.n_sas[:, :S, :, S], first.sum(axis=-1))
    assert n.n_sas[:, S].sum() == 0
    assert n.n_start.sum() == given.n_start.sum()
    np.testing.assert_array_equal(
        n.n_start[:labels], given.n_start[:labels] - (given.n_start[:labels] > 0)
    )
    np.testing.assert_array_equal(n.x_sa[:, :S], given.x_sa)
    # VI-LCB's proof needs no such thing
    np.testing.assert_array_equal(log.folds[:, :S, :, :S], declared.folds)
    np.testing.assert_array_equal(log.rewards.mean[:, :S], declared.rewards.mean)
    assert log.mean_return == declared.mean_return
    problem = log.problem()
    assert (problem.unseen_state, problem.absorbing_state, problem.rewards_at_least) == (
        S,
        log.absorbing_state,
        True,
    )
    assert problem.support[0, :labels, :, S].all()
    log.save(tmp_path / "counts.npz")
    again = sf.LogCounts.load(tmp_path / "counts.npz")
    assert again.counts == n
    assert again.problem().same_as(problem)
    assert again.with_all_states().counts == given
