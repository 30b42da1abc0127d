"""Counts in lists of the next states that were seen: against a dictionary, against numpy, and in
plans.

- Lists: what is added, in any order and beyond any room, is what a dictionary holds; compiled or
  not, and also where lists become full.
- Plans: the same counts give the same plan to the bit, however their lists are laid out.
- The closed form of a worst mean: against the dual in 50 digits. Control: the lowest value among
  those seen.
"""

import bisect
import itertools

import mpmath
import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import surefoot as sf
from layouts import A, H, S, compact, full, problem_of, small_world
from plain_loop import simulate_plainly
from surefoot import kernels
from surefoot.audit import verifier
from surefoot.errors import InvalidCounts, InvalidFile
from surefoot.kernels import lists as compiled_lists
from surefoot.kernels.kl import worst_mean_at_once
from surefoot.model import count_lists
from surefoot.model.count_lists import (
    Entries,
    added,
    entries_of,
    lists_from,
    lists_have_room,
    with_room,
)
from surefoot.model.transitions import Transitions

NONE = np.zeros(0, dtype=np.int64)


def empty(rows=2, pairs=6, S=3):
    return lists_from(Entries(NONE, NONE, NONE), (rows, pairs), S)


@pytest.mark.parametrize("S", [1, 2, 3, 5, 40, 1000])
@pytest.mark.parametrize(
    "add", [count_lists.add_to_list, compiled_lists.add_to_list], ids=["plain", "compiled"]
)
def test_lists_hold_what_a_dictionary_holds(add, S):
    """With few states all lists become full; with many none does."""
    rng, expected = np.random.default_rng(1), {}
    lists = empty(S=S)
    for _ in range(2000):
        row, pair, s_next, more = (int(rng.integers(n)) for n in (2, 6, S, 5))
        if not add(lists, row, pair, s_next, more + 1):
            assert not lists_have_room(lists, 1)
            lists = with_room(lists, 1)
            assert add(lists, row, pair, s_next, more + 1)
        expected[row * 6 + pair, s_next] = expected.get((row * 6 + pair, s_next), 0) + more + 1
    place, state, n = entries_of(lists)
    assert list(
        zip(zip(place.tolist(), state.tolist(), strict=True), n.tolist(), strict=True)
    ) == sorted(expected.items())
    assert lists.visits.sum() == sum(expected.values())
    assert set((lists.size == S).reshape(-1).tolist()) == {S < 1000}


@pytest.mark.parametrize("S", [2, 40, 1000])
def test_many_are_counted_at_once_as_far_as_there_is_room(S):
    """What is left is counted in a larger arena."""
    rng, pairs = np.random.default_rng(3), 6
    given = Entries(rng.integers(0, 2 * pairs, 500), rng.integers(0, S, 500), np.full(500, 3))
    lists, done, arenas = empty(S=S), 0, 0
    while done < 500:
        done = compiled_lists.count_entries(lists, *given, done)
        expected = added(Entries(*(part[:done] for part in given)), S)
        assert all(map(np.array_equal, entries_of(lists), expected))
        lists, arenas = with_room(lists, 1), arenas + 1
    assert arenas > 1


@pytest.mark.parametrize("S", [3, 70])
def test_counts_are_taken_from_sparse_matrices(S):
    """One for all steps, which is pooled, or one for each; of any kind; equal places are added
    up, zeros left out.
    """
    rng, A, H = np.random.default_rng(4), 2, 2
    table = rng.integers(0, 3, (H, S, A, S)) * (rng.random((H, S, A, S)) < 0.2)
    matrices = [scipy.sparse.csc_array(step.reshape(S * A, S)) for step in table]
    assert sf.Counts(matrices) == sf.Counts(table) and not sf.Counts(matrices).pooled
    pooled = sf.Counts(table.sum(axis=0), H=H)
    assert sf.Counts(sum(matrices), H=H) == pooled and sf.Counts(sum(matrices), H=H).pooled
    step, one = scipy.sparse.csr_array(table[0].reshape(S * A, S)), table[:1]
    assert sf.Counts([step]) == sf.Counts(one) and sf.Counts(step, H=1) == sf.Counts(one[0], H=1)
    assert (sf.Counts([step]).pooled, sf.Counts(step, H=1).pooled) == (False, True)
    often = np.zeros(300, dtype=int)
    for dtype in (bool, np.uint8, np.int8, np.int64):
        assert (
            sf.Counts(
                scipy.sparse.coo_matrix((np.ones(300, dtype), (often, often)), (S * A, S)), H=H
            ).total
            == 300
        )
    pair, state = np.nonzero(table[0].reshape(S * A, S))
    twice = np.ones(2 * len(pair), dtype=int), (np.tile(pair, 2), np.tile(state, 2))
    given = scipy.sparse.coo_matrix(twice, shape=(S * A, S))
    assert sf.Counts(given, H=H) == sf.Counts(2 * (table[0] > 0), H=H)
    with pytest.raises(InvalidCounts, match="Say how many steps an episode has"):
        sf.Counts(given)
    many, none = np.zeros((S * A, S)), np.zeros((S * A, S))
    many[A + 1, 2] = 2.0**53 + 2
    whole = r"n_sas\[\d+, [01], \d+\] is {}, expected a whole number from 0 to 2\^53"
    wrong = (
        (0.25 * matrices[0], "0.(25|5)"),
        (-matrices[0], "-[12]"),
        (scipy.sparse.csr_array(many), "9.*"),
    )
    for counts, found in wrong:
        with pytest.raises(InvalidCounts, match=whole.format(found)):
            sf.Counts(counts, H=H)
    with pytest.raises(InvalidCounts, match=r"n_sas\[1, 1, 1, 2\] is 9.*, expected a whole number"):
        sf.Counts([scipy.sparse.csr_array(none), scipy.sparse.csr_array(many)])
    with pytest.raises(
        InvalidCounts,
        match=r"n_sas has shape .*, expected scipy.sparse matrices of shape \(S\*A, S\)",
    ):
        sf.Counts(scipy.sparse.csr_array(np.ones((S, S + 1))))
    with pytest.raises(
        InvalidCounts, match="n_sas has 2 matrices, expected one for each of the H = 3 steps"
    ):
        sf.Counts(matrices, H=3)


def smallest(lists, H):
    """The same lists in the smallest arena that has room for H more transitions, it is said."""

    def cut(length):
        return lists._replace(state=lists.state[:length].copy(), n=lists.n[:length].copy())

    lengths = range(len(lists.state))
    return cut(bisect.bisect_left(lengths, True, key=lambda n: lists_have_room(cut(n), H)))


@pytest.mark.parametrize("S", [1, 2, 3, 5, 40, 63, 1000])
@pytest.mark.parametrize("way", ["one pair", "each pair", "any"])
def test_room_for_an_episode_is_enough(S, way):
    """Whichever pairs and states it visits: nothing is refused after `lists_have_room`, in lists
    of any size, also those that become full. The dearest is a list at its last doubling.
    """
    rng, H, pairs = np.random.default_rng(2), 8, 8
    for seen in range(min(S, 40) + 1):
        lists = with_room(empty(rows=1, pairs=pairs, S=S), 2000)
        for pair, s_next in itertools.product(range(pairs), range(seen)):
            assert count_lists.add_to_list(lists, 0, pair, s_next, 1)
        lists = smallest(lists, H)
        assert lists_have_room(lists, H) and not lists_have_room(lists, H + 1)
        assert lists_have_room(with_room(lists, H), H)
        for step in range(H):
            pair, s_next = {
                "one pair": (0, (seen + step) % S),
                "each pair": (step, seen % S),
                "any": (int(rng.integers(pairs)), int(rng.integers(S))),
            }[way]
            assert count_lists.add_to_list(lists, 0, pair, s_next, 1), (seen, step)


@pytest.mark.parametrize("S", [5, 12])
def test_transitions_answer_as_numpy(S):
    """In lists that are full, and in others."""
    table, more = np.random.default_rng(0).poisson(0.2, (2, 3, S, 2, S))[:2]
    counts, others = Transitions.of_table(table), Transitions.of_table(more)
    size = counts.lists.size
    assert (size == S).any() and ((size > 0) & (size < S)).any()
    grown = counts.copy()
    grown.add_entries(others.entries)
    for found, expected in (
        (counts, table),
        (counts.copy(), table),
        (counts.as_floats(), table),
        (counts.pooled(), table[:-1].sum(axis=0, keepdims=True)),
        (grown, table + more),
    ):
        assert found.shape == expected.shape[:3] and found.total == expected.sum() > 0
        assert_array_equal(found.n_sas, expected)
        assert_array_equal(found.n_sa, expected.sum(axis=-1))
        assert_array_equal(found.into, expected.sum(axis=(1, 2)))
        assert found == Transitions.of_table(expected)
    place, state, n = counts.beyond(others)
    less = (table - more).reshape(-1, S)
    assert_array_equal(np.transpose([place, state]), np.argwhere(less))
    assert_array_equal(n, less[place, state])
    assert counts != others
    assert counts != grown


def test_a_copy_is_not_changed_with_its_origin():
    lists = Transitions.of_table(np.random.default_rng(0).poisson(0.5, (2, 5, 2, 5)))
    before, kept = lists.total, lists.copy()
    lists.add(*(np.array([x]) for x in (0, 1, 1, 4)))
    assert lists.total == before + 1 and kept.total == before


def test_a_large_table_is_not_made():
    counts = sf.Counts(Transitions.of(Entries(NONE, NONE, NONE), (1, 20_000, 4)), H=3)
    with pytest.raises(InvalidCounts, match=r"Use counts\.entries"):
        counts.n_sas  # noqa: B018
    small = sf.Counts(Transitions.of(Entries(NONE, NONE, NONE), (1, 70, 2)), H=1)
    with pytest.raises(ValueError, match="read-only"):
        small.n_sas[0, 0, 0, 0] = 1


WORDS = (
    "plain | mask | next | next mask | starts | unknown | unknown starts mask | nostart | by "
    "step | by step next mask | full support | full support mask | relative"
)


def agent_of(word, kind, problem, bounds):
    floor = sf.Relative(0.3) if word == "relative" else 0.3
    known = {"delta": 0.1, "pooled": "by step" not in word, "bounds": bounds, "returns": None}
    return kind(problem, sf.uniform(H, S, A), floor, **known)


def laid_out(counts):
    """The same counts: as they are, compact, and full."""
    found = counts, compact(counts), full(counts)
    sizes = [other.transitions.lists.size for other in found]
    assert (sizes[1] < S).all()
    assert set(sizes[2].reshape(-1).tolist()) in ({S}, {0, S})
    assert all(other == counts for other in found)
    return found


@pytest.mark.parametrize("word", WORDS.split(" | "))
@pytest.mark.parametrize("kind", [sf.EpsMix, sf.StepMix])
def test_a_plan_does_not_depend_on_the_layout_of_lists(word, kind):
    """To the bit, whether lists are full or not."""
    made = small_world(word)
    problem = problem_of(word, made)
    agent = agent_of(word, kind, problem, sf.KL(full_support="full support" in word))
    counts = sf.simulate(made, sf.BPIUCBVI(problem, pooled=agent.pooled), 3000, seed=3).counts
    one, *others = map(agent.plan, laid_out(counts))
    for other in others:
        assert_same_plan(other, one)
    assert one.source != "baseline" or word == "relative"


@pytest.mark.parametrize("word", ["plain", "by step"])
@pytest.mark.parametrize("kind", [sf.EpsMix, sf.StepMix])
def test_the_papers_plan_has_the_same_bits_with_and_without_a_copy(
    word, kind, counts_of, monkeypatch
):
    """A copy of the frequencies with the pairs last, and the lists themselves, in any layout."""
    made = small_world(word)
    agent = agent_of(word, kind, made.problem, sf.Bernstein(scale=1e-6))
    counts = counts_of(made, sf.uniform(H, S, A), 30_000, 3, agent.pooled)
    plans = []
    for most, other in itertools.product((0, 10**9), laid_out(counts)):
        monkeypatch.setattr("surefoot.kernels.bernstein.MOST_COPIED", most)
        monkeypatch.setattr("surefoot.kernels.bernstein.IN_CACHE", 0)
        assert (agent.evidence(other).model.P_hat.size > 0) == (most > 0)
        plans.append(agent.plan(other))
    for found in plans[1:]:
        assert_same_plan(found, plans[0])
    assert plans[0].source != "baseline"


def assert_same_plan(found, expected):
    assert_array_equal(found.candidates, expected.candidates)
    for name in ("source", "h", "rho", "lower", "upper"):
        assert getattr(found, name) == getattr(expected, name), name
    mixed = isinstance(expected.policy, sf.EpisodicMixture)
    for name in ("first", "second") if mixed else ():
        assert_array_equal(getattr(found.policy, name), getattr(expected.policy, name))
    assert mixed or (found.policy == expected.policy).all()


def dual(p, d, eps, t):
    return t * mpmath.expm1(
        -eps + sum(p_i * mpmath.log1p(d_i / t) for p_i, d_i in zip(p, d, strict=True))
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_worst_mean_of_a_list(seed):
    """It is the dual's largest value, in 50 digits, or a little less. With the lowest of those
    seen it is not.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 5, 50, 500, 5000]))
    k = rng.multinomial(n, rng.dirichlet(np.ones(3)))
    p, V, low = (
        k[k > 0] / n,
        rng.uniform(1.0, 3.0, int((k > 0).sum())),
        float(rng.choice([0.0, 0.9])),
    )
    eps, high = float(rng.uniform(5.0, 30.0)) / n, 4.0
    found = worst_mean_at_once(p, V, len(p), 1.0, eps, 1e-13, low, high)
    with mpmath.workdps(50):
        d = [mpmath.mpf(float(v)) - low for v in V]
        grid = [mpmath.mpf(10) ** x for x in np.linspace(-14, 3, 2000)]
        best = max(dual([mpmath.mpf(float(x)) for x in p], d, mpmath.mpf(eps), t) for t in grid)
        limit = mpmath.exp(
            -eps + sum(float(x) * mpmath.log(d_i) for x, d_i in zip(p, d, strict=True))
        )
        assert (
            low + max(best, limit) * (1 - 1e-4) - 1e-9
            <= found
            <= low + max(best, limit) * (1 + 1e-4)
        )
    without_unseen = worst_mean_at_once(p, V, len(p), 1.0, eps, 1e-13, float(V.min()), high)
    # with many visits nothing is left to fear
    assert without_unseen > found if n <= 5 else without_unseen >= found - 1e-12


def large(S=70, A=2, H=3):
    rng = np.random.default_rng(0)
    P = np.zeros((S, A, S))
    for s, a in itertools.product(range(S), range(A)):
        P[s, a, rng.choice(S, 2, replace=False)] = [0.75, 0.25]
    made = sf.TabularMDP(P, rng.random((S, A)), H=H)
    pi_b = sf.uniform(H, S, A)
    value = sf.value(made, pi_b)
    return made, sf.EpsMix(made.problem, pi_b, 0.9 * value, delta=0.2, pooled=True, replan=0.1)


@pytest.fixture(scope="module")
def run():
    made, agent = large()
    return made, agent, sf.simulate(made, agent, 2000, seed=1)


def test_many_states_are_counted_in_lists(run):
    _, agent, found = run
    size = found.counts.transitions.lists.size
    assert ((size > 0) & (size < 70)).any() and agent.replan_share == 0.1
    assert (
        found.counts.total == 2000 * 2 and found.counts.episodes == 2000 and found.violations == 0
    )
    assert found.first_mixture is not None and found.first_mixture < 2000


def test_counts_in_lists_are_saved_exactly(run, tmp_path):
    _, agent, found = run
    path = tmp_path / "counts.npz"
    found.counts.save(path)
    loaded = sf.Counts.load(path)
    assert loaded == found.counts and agent.plan(loaded).lower == agent.plan(found.counts).lower
    arrays = dict(np.load(path, allow_pickle=False))
    for spoil in ("order", "range", "shape"):
        bad = {name: array.copy() for name, array in arrays.items()}
        if spoil == "order":
            bad["n_sas"] = bad["n_sas"][:, ::-1]
        elif spoil == "range":
            bad["n_sas"][1, -1] = 70
        else:
            bad["list_shape"] = np.array([0, 70])
        np.savez(tmp_path / "bad.npz", **bad)
        with pytest.raises((InvalidCounts, InvalidFile)):
            sf.Counts.load(tmp_path / "bad.npz")


def test_counts_in_lists_merge_and_pool(run):
    made, agent, found = run
    other = sf.simulate(made, agent, 100, seed=9).counts
    merged = found.counts.forget_returns().merge(other.forget_returns())
    assert merged.total == found.counts.total + other.total
    assert_array_equal(merged.n_sa, found.counts.n_sa + other.n_sa)
    by_step = sf.Counts.zeros(made.problem)
    by_step.add(sf.Episode.of(made.problem, [0, 1, 2, 3], [0, 1, 0]))
    assert (
        by_step.shape == (3, 70, 2)
        and by_step.pool().shape == (1, 70, 2)
        and by_step.pool().total == 2
    )


def test_the_ledger_of_many_states_is_verified(tmp_path):
    made, agent = large()
    path = tmp_path / "ledger"
    sf.simulate(made, agent, 300, seed=2, ledger=path)
    lines = path.read_bytes().splitlines(keepends=True)
    verdict = verifier.verify(lines)
    assert verdict.refusals == [] and verdict.closed and verdict.certified > 0
    spoilt = [line.replace(b'"visits":[[0,', b'"visits":[[1,', 1) for line in lines]
    assert verifier.verify(spoilt).refusals


def test_loops_agree_with_the_reference_loop():
    """Plan by plan in compiled code, and step by step in Python: the same counts, with room made
    on the way.
    """
    made, agent = large()
    agent = sf.StepMix(made.problem, agent.pi_b, agent.floor, delta=0.2, pooled=True, replan=0.0)
    quick = sf.simulate(made, agent, 150, seed=4)
    slow = simulate_plainly(made, agent, 150, seed=4)
    assert quick.counts == slow.counts and quick.regret == slow.regret


@pytest.mark.parametrize("bounds", [sf.KL(), sf.Bernstein(scale=1e-4)], ids=["kl", "paper"])
def test_a_pass_in_parts_has_the_bits_of_one(run, bounds):
    """In one pass by the kernel, by one thread and by three; every candidate that is bounded."""
    made, _, found = run
    agent = sf.StepMix(
        made.problem, sf.uniform(3, 70, 2), 0.5, pooled=True, bounds=bounds, returns=None
    )
    passes, values = [], []
    for parts in (None, 1, 3):
        known, L = agent.evidence(found.counts), np.zeros(4)
        splices = kernels.empty_splices(agent.slots(known), agent.pi_b)
        kernels.refresh_all(known.model)
        given = known.model, splices, known.start, known.returns, agent.rule, L
        kernels.bound_candidates(*given) if parts is None else kernels.bound_in_parts(*given, parts)
        passes.append(splices)
        values.append(L)
    for other, L in zip(passes[1:], values[1:], strict=True):
        assert_array_equal(values[0], L)
        for name in ("pi_bar", "V_up", "V_low"):
            assert_array_equal(getattr(passes[0], name), getattr(other, name))
    assert passes[0].V_up[0].any()


def test_an_explanation_of_many_states(run):
    _, agent, found = run
    text = agent.plan(found.counts).explain()
    assert "certified" in text and "state" in text


@pytest.mark.parametrize("as_matrices", [False, True])
def test_counts_that_no_integer_holds_together_are_refused(as_matrices):
    """Each is small enough, and their sum would be negative. Control: half as many are taken."""
    S, A = 40, 32
    for often, refused in ((2**53, True), (2**46, False)):
        table = np.full((S, A, S), often)
        given = scipy.sparse.csr_array(table.reshape(S * A, S)) if as_matrices else table
        if refused:
            with pytest.raises(InvalidCounts, match=r"expected at most 2\^62 in all"):
                sf.Counts(given, H=2)
        else:
            assert sf.Counts(given, H=2).total == often * S * A * S
