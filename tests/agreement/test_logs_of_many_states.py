"""Logs whose states are many: what is counted, declared and learnt, against the rows of the log,
read one by one; and that no table over next states is made on the way.
"""

import tracemalloc

import duckdb
import mpmath
import numpy as np
import pytest
import scipy.sparse

import surefoot as sf
from layouts import full
from surefoot.base.files import read_arrays, write_arrays
from surefoot.bounds.undeclared import undeclared_radii
from surefoot.errors import InvalidFile
from surefoot.logs.baseline_file import Baseline, learn_baseline, load_baseline, report
from surefoot.logs.methods import METHODS
from surefoot.logs.methods.learnt import logged_value
from surefoot.model.rows import Rows


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log of whole episodes, and one in which every eighth step, about, is the last one of its
    episode.
    """
    folder = tmp_path_factory.mktemp("logs")
    world = sf.world("grid-traps", rows=4, columns=4, H=4)
    behaviour = 0.5 * sf.boltzmann(sf.solve(world).Q, eta=5.0) + 0.5 * sf.uniform(4, 16, 4)
    whole, ends = folder / "whole.parquet", folder / "ends.parquet"
    sf.sample_log(world, behaviour, 500, whole, seed=3)
    seldom = "CASE WHEN hash(10 * episode + step) % 8 = 0 THEN step ELSE 3 END"
    steps = f"SELECT *, min({seldom}) OVER (PARTITION BY episode) AS last FROM '{whole}'"
    columns = (
        "episode, step, state, action, reward, next_state, step = last AND last < 3 AS terminated"
    )
    rows = f"SELECT {columns} FROM ({steps}) WHERE step <= last ORDER BY episode, step"
    duckdb.sql(f"COPY ({rows}) TO '{ends}'")
    return {"whole": whole, "ends": ends}


DECLARED = {
    "nothing": {},
    "rewards": {"rewards": "as logged", "start": "as logged"},
    "by next state": {"rewards": "as logged by next state"},
    "steady": {"rewards": "as logged by next state", "stationary": True},
    "mask": {"support": "as logged", "start": "as logged"},
    "mask and rewards": {
        "rewards": "as logged by next state",
        "support": "as logged",
        "stationary": True,
    },
}
CASES = [
    (kind, states, name)
    for kind in ("whole", "ends")
    for states in ("as logged", None)
    for name, declared in DECLARED.items()
    if states is not None or "support" not in declared
]


def counted(path, states, after_end=0.25):
    return sf.count_log(path, seed=1, states=states, reward_range=(0, 2), after_end=after_end)


@pytest.mark.parametrize(("kind", "states", "name"), CASES)
def test_methods_and_files_make_no_tables(files, kind, states, name, no_tables, tmp_path):
    """Whatever is declared: all methods learn, and what they learnt is reported, saved and read.
    Robust values have the same bits where every list is full.
    """
    log = counted(files[kind], states)
    in_full = full(log.counts)
    no_tables()
    problem = log.problem(**DECLARED[name])
    learnt = {method: learn_baseline(log, problem, 0.05, method) for method in METHODS}
    assert sum(one.rescaled_lower > 0 for one in learnt.values()) >= 3  # of five
    for method in ("robust", "vi-lcb"):
        found = report(log, learnt[method], learnt[method].missing(3.0, log))
        assert found["certified_value"] == learnt[method].lower and found["savings"]
    again = sf.robust_vi(in_full, problem, 0.05)
    assert again.rescaled_lower == sf.robust_vi(log.counts, problem, 0.05).rescaled_lower
    made = Baseline.of(learnt["robust"], log.codebook)
    made.save(tmp_path / "baseline.npz")
    read = load_baseline(tmp_path / "baseline.npz")
    assert read.problem.same_as(problem) and read.certificate == made.certificate
    log.save(tmp_path / "log.npz")
    assert sf.LogCounts.load(tmp_path / "log.npz").counts == log.counts


@pytest.mark.parametrize("states", ["as logged", None])
def test_transitions_are_numbered_among_all_states(files, states):
    """By hand, row by row of the log; the first visit of each transition counts for the unseen
    state, which is last.
    """
    log = counted(files["whole"], states)
    S, A, expected = log.S, log.A, dict[tuple[int, int], int]()
    rows = duckdb.sql(f"SELECT step, action, state, next_state FROM '{files['whole']}'").fetchall()
    for step, a, *labels in rows:
        s, s_next = (log.codebook.states.index(label) for label in labels)
        place = (step * S + s) * A + a
        new = states is None and (place, s_next) not in expected
        expected.setdefault((place, s_next), 0)
        key = (place, S - 1 if new else s_next)
        expected[key] = expected.get(key, 0) + 1
    place, state, n = (part.tolist() for part in log.counts.entries)
    assert dict(zip(zip(place, state, strict=True), n, strict=True)) == {
        key: n for key, n in expected.items() if n
    }


def test_rewards_and_masks_as_logged_by_hand(files):
    """Of every step and transition of the log, row by row; what does not occur pays the lowest,
    and is impossible.
    """
    log = counted(files["ends"], "as logged", after_end=0.5)
    rows = duckdb.sql(
        f"SELECT step, action, reward, terminated, state, next_state FROM '{files['ends']}'"
    ).fetchall()
    S, A, H = log.S, log.A, log.H
    paid, possible = np.zeros((H, S, A, S)), np.zeros((H, S, A, S), dtype=bool)
    for step, a, reward, ended, *labels in rows:
        s, s_next = (log.codebook.states.index(label) for label in labels)
        s_next = S - 1 if ended else s_next
        paid[step, s, a, s_next], possible[step, s, a, s_next] = reward / 2, True
    paid[:, S - 1], possible[:, S - 1, :, S - 1] = 0.25, True
    possible[~possible.any(axis=-1)] = True
    h, s, a, s_next = np.ogrid[:H, :S, :A, :S]
    problem = log.problem("as logged by next state", support="as logged")
    assert problem.rewards_at_least and problem.absorbing_state == S - 1
    np.testing.assert_array_equal(problem.reward_of(h, s, a, s_next)[possible], paid[possible])
    np.testing.assert_array_equal(problem.mask.dense_mask(), possible)


def test_a_mask_of_the_users_own(files, no_tables):
    """As an array, as sparse matrices, for all steps and for each, with and without the
    absorbing state: what is left out of the mask is possible, but the absorbing state leads
    nowhere.
    """
    rng = np.random.default_rng(0)
    log = counted(files["ends"], "as logged")
    S, A, H = len(log.codebook.states), log.A, log.H
    seen = log.counts.n_sas[:, :S, :, :S].astype(bool)
    by_step = seen | (rng.random((H, S, A, S)) < 0.3)
    by_step[:, 2] = True
    whole = log.counts.n_sas.any(axis=0) | (rng.random((S + 1, A, S + 1)) < 0.3)
    given = {
        "own": seen.any(axis=0),
        "all": whole,
        "by step": by_step,
        "free": np.ones((S, A, S), dtype=bool),
    }
    lower = {}
    for name, mask in given.items():
        expected = np.ones((*mask.shape[:-3], S + 1, A, S + 1), dtype=bool)
        expected[..., : mask.shape[-1], :, : mask.shape[-1]] = mask
        expected[..., S, :, :S], expected[..., S, :, S] = False, True
        rows = mask.reshape(-1, mask.shape[-1])
        by_steps = [scipy.sparse.csr_array(part) for part in np.split(rows, H)]
        sparse = by_steps if name == "by step" else scipy.sparse.csr_array(rows)
        problems = [log.problem("as logged", support=support) for support in (mask, sparse)]
        for problem in problems:
            np.testing.assert_array_equal(problem.support, expected.reshape(-1, S + 1, A, S + 1))
        one, other = (sf.robust_vi(log.counts, problem, 0.05).lower for problem in problems)
        assert one == other
        lower[name] = one
    assert lower["by step"] > lower["free"] and lower["own"] > lower["free"]
    no_tables()
    for support in (given["free"], scipy.sparse.csr_array(given["free"].reshape(-1, S))):
        sizes = log.problem("as logged", support=support).mask.sizes
        assert set(sizes.tolist()) == {0, 1}  # nothing is said, but of the absorbing state


def test_masks_that_cannot_be_are_refused(files):
    log = counted(files["whole"], "as logged")
    S, A = log.S, log.A
    mask = np.ones((S, A, S), dtype=bool)
    pair, s_next = divmod(int(log.place[5]) % (S * A * S), S)
    mask[pair // A, pair % A, s_next] = False
    with pytest.raises(
        sf.InvalidLog, match=f"cannot lead to state {s_next}.*but in the log it did"
    ):
        log.problem("as logged", support=mask)
    mask[0, 0] = False
    with pytest.raises(sf.InvalidModel, match=r"support\[0, 0\] allows no next state"):
        log.problem("as logged", support=mask)
    with pytest.raises(sf.InvalidModel, match=r"support has shape \(3, 2, 3\), expected"):
        log.problem("as logged", support=np.ones((3, 2, 3), dtype=bool))
    with pytest.raises(sf.InvalidModel, match=r"support\[0, 0\] allows no next state"):
        log.problem("as logged", support=scipy.sparse.csr_array(mask.reshape(S * A, S)))


def test_rewards_that_differ_between_steps_are_named(tmp_path):
    path = tmp_path / "log.parquet"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES (0, 0, 0, 0, 0.0, 0), (0, 1, 0, 0, 1.0, 0)) "
               f"t(episode, step, state, "
               f"action, reward, next_state)) TO '{path}'")  # fmt: skip
    log = sf.count_log(path, states=2, reward_range=(0, 1))
    assert log.problem("as logged by next state").rewards_at_least
    for rewards in ("as logged", "as logged by next state"):
        with pytest.raises(
            sf.InvalidLog, match="Action 0 in state 0 paid differently at different steps"
        ):
            log.problem(rewards, stationary=True)


def test_what_a_damaged_file_of_a_baseline_says_is_refused(files, tmp_path):
    log = counted(files["ends"], "as logged")
    problem = log.problem("as logged by next state", support="as logged")
    path = tmp_path / "baseline.npz"
    Baseline.of(sf.robust_vi(log.counts, problem, 0.05), log.codebook).save(path)
    _, arrays = read_arrays(path, {"policy": ()})
    spoil = {
        "out of order": {"problem_support": arrays["problem_support"][:, ::-1]},
        "array of shape": {"problem_support": arrays["problem_support"][:1]},
        "for 2 steps": {
            "learnt": np.array(str(arrays["learnt"]).replace('_steps": 4', '_steps": 2'))
        },
        "expected a reward in": {"problem_r_next": arrays["problem_r_next"] + [[0], [0], [1]]},
        "not states 0": {"problem_support": arrays["problem_support"] + [[0], [log.S]]},
    }
    for text, changed in spoil.items():
        write_arrays(tmp_path / "bad.npz", "policy", {**arrays, **changed})
        with pytest.raises(InvalidFile, match=text):
            load_baseline(tmp_path / "bad.npz")


def radius_by_hand(n_i, is_unseen, log_union):
    """(log 1/delta_0 + log n! - sum log k! + sum k log k/m) / m in 50 digits, at least 0, where k
    are the n_x - 1 of labels, m is their sum, and n counts first visits, too.
    """
    k = [int(x) for x, new in zip(n_i, is_unseen, strict=True) if x > 0 and not new]
    n, m = int(n_i.sum()), sum(k)
    if not m:
        return np.inf
    with mpmath.workdps(50):
        coded = log_union + mpmath.loggamma(n + 1) - sum(mpmath.loggamma(x + 1) for x in k)
        return max(0, (coded + sum(x * mpmath.log(mpmath.mpf(x) / m) for x in k)) / m)


@pytest.mark.parametrize("seed", range(5))
def test_radii_of_undeclared_states_all_at_once(seed):
    """The formula of each pair, rounded up."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 6, 200)
    place = np.repeat(np.arange(200), sizes)
    n_i = rng.integers(0, 10 ** rng.integers(1, 6), len(place))
    is_unseen = rng.random(len(place)) < 0.3
    visits = np.bincount(place, n_i, minlength=200).astype(np.int64)
    found = undeclared_radii(place, n_i, is_unseen, visits, 3.0)
    for i in range(200):
        one = radius_by_hand(n_i[place == i], is_unseen[place == i], 3.0)
        assert one <= found[i] <= one + 1e-9
    assert np.isinf(found).any() and np.isfinite(found).any()


def test_lists_of_a_mask_by_hand():
    """Three states, one action: the first may lead anywhere, the second to state 2, the third to
    itself.
    """
    mask, nothing = Rows.of_keys(np.array([5, 8]), (1, 3, 1)), Rows.none(3, 1)
    assert mask.first.tolist() == [0, 0, 1, 2] and mask.state.tolist() == [2, 2]
    assert mask.filled(1, 9).state.tolist() == [0, 1, 2, 2, 2]
    assert mask.filled(2, 2).state.tolist() == [0, 1, 2, 2, 0, 1, 2, 2]
    evenly = Rows.none(4, 1).filled(1, 2).state.reshape(4, 2)
    assert evenly.tolist() == [[0, 2], [1, 3], [0, 2], [1, 3]]
    assert mask.possible(2) == 3 + 1 + 1 + 3 + 1 + 1 and Rows.none(1, 2).possible(7) == 14
    assert mask.says_nothing(1) and not mask.says_nothing(2) and nothing.says_nothing(3)
    assert mask.absorbing.tolist() == [2] and nothing.absorbing.tolist() == []
    fewer = Rows.of_keys(np.array([4, 5, 8]), (1, 3, 1)).without_last()
    assert fewer.first.tolist() == [0, 0, 1] and fewer.state.tolist() == [1]
    less = Rows.of_keys(np.arange(18), (2, 3, 1), np.arange(18) / 18, 0.5).without_last()
    assert (less.S, less.elsewhere) == (2, 0.5)
    assert (18 * less.value).round().tolist() == [0, 1, 3, 4, 9, 10, 12, 13]
    assert less.first.tolist() == [0, 2, 4, 6, 8]


def wide(S, A, H, episodes, path):
    """A log of a world with three successors of each pair, all over the states."""
    rng = np.random.default_rng(0)
    states, p = rng.integers(0, S, (S * A, 3)), rng.dirichlet(np.ones(3), S * A)
    P = scipy.sparse.csr_array(
        (p.ravel(), (np.repeat(np.arange(S * A), 3), states.ravel())), shape=(S * A, S)
    )
    world = sf.TabularMDP(P, 0.5 + 0.5 * rng.random((S, A)), H=H)
    sf.sample_log(world, sf.uniform(H, S, A), episodes, path, seed=0)
    return world


def test_a_log_of_five_thousand_states_takes_little_memory(tmp_path):
    """A table of it would have 2.5e9 numbers. The certificate holds; the policy is worth what it
    says, and more.
    """
    path = tmp_path / "log.parquet"
    world = wide(5_000, 5, 20, 1_000, path)
    tracemalloc.start()
    log = sf.count_log(path, states=5_000, reward_range=(0, 1))
    assert log.S == 5_000 and log.counts.shape == (20, 5_000, 5)
    place, state, _ = world.entries(0)
    mask = scipy.sparse.csr_array((np.ones(len(state)), (place, state)), shape=(25_000, 5_000))
    problem = log.problem("as logged", start="as logged", support=mask, stationary=True)
    for method in METHODS:
        learnt = learn_baseline(log, problem, 0.05, method)
        assert learnt.rescaled_lower <= sf.policy_value(world, learnt.policy)[0, 0]
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 400 * 10**6
    robust = learn_baseline(log, problem, 0.05)
    assert robust.lower > 5.0  # lowest rewards of 20 steps are 10: not everything is unseen
    assert "certified" in robust.explain(5.0, log) and logged_value(problem, log.counts) > 10.0
    with pytest.raises(sf.InvalidCounts, match=r"Use counts\.entries"):
        _ = log.folds


def test_sizes_that_would_not_fit_are_refused(tmp_path):
    path = tmp_path / "log.parquet"
    wide(100, 2, 3, 5, path)
    with pytest.raises(sf.InvalidLog, match=r"S = 1,000,000, A = 80\) would take more than 2 GiB"):
        sf.count_log(path, states=10**6, actions=80, reward_range=(0, 1))
    with pytest.raises(sf.InvalidSetting, match="expected at most 1,048,576"):
        sf.count_log(path, states=10**7, reward_range=(0, 1))
