"""Worlds of many states, given as arrays and as sparse matrices: against numpy, and against
enumeration.

Both are read as the same lists. Exact values agree with numpy's to 1e-12, and have the same bits
with and without a copy of the probabilities whose pairs are last.
"""

import itertools
import pickle
import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.base.validation import REWARD_UNITS
from surefoot.model.rows import Rows
from surefoot.run.blocks import listed_multinomial
from surefoot.run.loops import play
from surefoot.worlds.exact import value_of

S, A, H = 70, 3, 5


class Twins(NamedTuple):
    """One world, given twice, and its arrays."""

    dense: sf.TabularMDP
    sparse: sf.TabularMDP
    P: np.ndarray  # (H, S, A, S)
    r: np.ndarray  # (H, S, A, S) or (H, S, A, 1), rescaled


def drawn(seed, stationary=True, branch=3):
    rng = np.random.default_rng(seed)
    P = np.zeros((1 if stationary else H, S, A, S))
    for place in np.ndindex(P.shape[:3]):
        P[place][rng.choice(S, size=branch, replace=False)] = rng.dirichlet(np.ones(branch))
    return rng, P


def matrices(P):
    """The rows of P as one sparse matrix, or one for each step; entries in no order, some twice,
    zeros stored.
    """
    made = []
    for rows in P.reshape(len(P), S * A, S):
        pair, state = np.nonzero(rows)
        values = rows[pair, state]
        half = values.copy()
        half[:9] = values[:9] / 2  # exact
        pair, state = (np.concatenate([x[::-1], x[:9], x[:5]]) for x in (pair, state))
        state[-5:] = (state[-5:] + 1) % S
        values = np.concatenate([half[::-1], half[:9], np.zeros(5)])
        made.append(scipy.sparse.coo_array((values, (pair, state)), shape=(S * A, S)))
    return made[0] if len(made) == 1 else made


def twins(seed, stationary=True, start=None, random_rewards=False):
    """Rewards by state and action."""
    rng, P = drawn(seed, stationary)
    r = rng.random((S, A) if stationary else (H, S, A))
    first = rng.dirichlet(np.ones(S)) if start == "several" else None
    settings = {"H": H, "start": first, "random_rewards": random_rewards}
    return Twins(
        sf.TabularMDP(P[0] if stationary else P, r, **settings),
        sf.TabularMDP(matrices(P), r, **settings),
        np.broadcast_to(P, (H, S, A, S)),
        np.broadcast_to(r[..., None], (H, S, A, 1)),
    )


def twins_by_next(seed, stationary=True, reward_steps=1, units=None):
    """Rewards by next state, which not all successors pay."""
    rng, P = drawn(seed, stationary, branch=2)
    units = units or sf.Units()
    shape = (reward_steps, S, A, S)
    r = np.where(rng.random(shape) < 0.7, units.low + units.scale * rng.random(shape), 0.0) * (
        P.sum(axis=0) > 0
    )
    by_step = [scipy.sparse.csr_array(rows.reshape(S * A, S)) for rows in r]
    settings = {"H": H, "units": units}
    one = len(r) == 1
    return Twins(
        sf.TabularMDP(P[0] if stationary else P, r_next=r[0] if one else r, **settings),
        sf.TabularMDP(matrices(P), r_next=by_step[0] if one else by_step, **settings),
        np.broadcast_to(P, (H, S, A, S)),
        np.broadcast_to((r - units.low) / units.scale, (H, S, A, S)),
    )


WORLDS = {
    "stationary": lambda: twins(0),
    "by step": lambda: twins(1, stationary=False),
    "several starts": lambda: twins(2, start="several"),
    "random rewards": lambda: twins(3, random_rewards=True),
    "rewards by next state": lambda: twins_by_next(4),
    "both by step": lambda: twins_by_next(5, stationary=False, reward_steps=H),
    "rewards by step": lambda: twins_by_next(6, reward_steps=H),
    "in euros": lambda: twins_by_next(7, units=sf.Units(-5.0, 20.0, name="EUR")),
}
all_worlds = pytest.mark.parametrize("kind", WORLDS)


def some_policy(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(A), size=(H, S))


@all_worlds
def test_both_hold_what_was_given(kind):
    twins = WORLDS[kind]()
    s, a, s_next = np.ogrid[:S, :A, :S]
    for world in twins[:2]:
        assert_array_equal(world.P, twins.P)
        for h in range(H):
            expected = np.broadcast_to(twins.r[h], (S, A, S))
            found = np.broadcast_to(world.mean_reward(h, s, a, s_next), expected.shape)
            assert_array_equal(found, expected)
            assert_array_equal(world.problem.r_next_at(h), expected)
        means = (twins.P * twins.r).sum(axis=-1)
        assert_allclose(np.broadcast_to(world.r_rescaled, means.shape), means, rtol=0, atol=1e-14)
    dense, sparse = twins[:2]
    for mine, its in zip(sparse.transitions, dense.transitions, strict=True):
        assert_array_equal(mine, its)
    assert_array_equal(sparse.paid_list, dense.paid_list)
    assert_array_equal(sparse.r_rescaled, dense.r_rescaled)


def backed_up(twins, V, h):
    """In the user's units."""
    units = twins.sparse.problem.units
    return (twins.P[h] * (units.low + units.scale * twins.r[h] + V)).sum(axis=-1)


@all_worlds
def test_exact_values(kind):
    twins = WORLDS[kind]()
    world = twins.sparse
    d, V, best = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.zeros(S)
    pi, at = some_policy(), world.start
    for h in range(H):
        d[h] = at[:, None] * pi[h]
        at = np.einsum("sa,sat->t", d[h], twins.P[h])
    for h in reversed(range(H)):
        V[h] = (pi[h] * backed_up(twins, V[h + 1], h)).sum(axis=-1)
        best = backed_up(twins, best, h).max(axis=-1)
    assert_allclose(sf.policy_value(world, pi), V, rtol=0, atol=1e-12)
    assert_allclose(sf.occupancy(world, pi), d, rtol=0, atol=1e-13)
    other = some_policy(9)
    mixed = 0.7 * sf.value(world, pi) + 0.3 * sf.value(world, other)
    mixture = sf.EpisodicMixture(pi, other, 0.3)
    units = world.problem.units
    assert H * units.low + units.scale * value_of(world, mixture) == pytest.approx(mixed, abs=1e-11)
    assert world.at_start(sf.solve(world).V[0]) == pytest.approx(float(world.start @ best))


@all_worlds
def test_values_have_the_same_bits_with_and_without_a_copy(kind, monkeypatch):
    """Of the probabilities, with the pairs last."""
    found = []
    for most in (0, 10**9):
        monkeypatch.setattr("surefoot.kernels.values.MOST_COPIED", most)
        world = WORLDS[kind]().sparse
        assert (world.P_pairs.size > 0) == (most > 0)
        found.append([sf.policy_value(world, some_policy(seed)) for seed in range(3)])
    assert_array_equal(*found)


def test_values_by_enumeration():
    """A world of two states and three steps: every path, one by one."""
    P = np.array([[[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]])
    r = np.array([[0.0, 1.0], [0.5, 0.25]])
    world = sf.TabularMDP(scipy.sparse.csr_matrix(P.reshape(4, 2)), r, H=3)
    pi = np.array([[[0.5, 0.5], [0.25, 0.75]]] * 3)
    value = 0.0
    for states in itertools.product((0, 1), repeat=3):
        for actions in itertools.product((0, 1), repeat=3):
            path = (0, *states)
            chance = 1.0
            for h in range(3):
                chance *= pi[h, path[h], actions[h]] * P[path[h], actions[h], path[h + 1]]
            value += chance * sum(r[path[h], actions[h]] for h in range(3))
    assert sf.value(world, pi) == pytest.approx(value, abs=1e-15)


def mixing(kind):
    """An agent that replans by visits, so that episodes are played one by one."""
    return lambda problem, floor: kind(
        problem, sf.uniform(H, S, A), floor=floor, delta=0.1, replan=0.0
    )


AGENTS = {
    "StepMix": mixing(sf.StepMix),
    "EpsMix": mixing(sf.EpsMix),
    "unknown rewards": lambda problem, floor: mixing(sf.StepMix)(
        problem.forget(rewards=True), floor
    ),
    "BPI-UCBVI": lambda problem, _: sf.BPIUCBVI(problem, delta=0.1, replan=0.0),
    "paper": lambda problem, floor: sf.StepMix.paper(
        problem, sf.uniform(H, S, A), floor=floor, delta=0.1
    ),
}


MORE = [
    *itertools.product(("random rewards",), ("EpsMix", "BPI-UCBVI", "paper")),
    *itertools.product(("both by step", "rewards by step"), ("unknown rewards",)),
]
CASES = [
    *itertools.product(("stationary", "by step"), AGENTS),
    *itertools.product(("random rewards",), ("StepMix", "unknown rewards")),
    ("rewards by next state", "unknown rewards"),
    ("several starts", "StepMix"),
    *(pytest.param(*case, marks=pytest.mark.full) for case in MORE),
]


@pytest.mark.parametrize(("kind", "agent"), CASES)
def test_runs_have_the_bits_of_the_plain_loop(agent, kind, assert_same_run):
    """Counts, curve and violations of the fused loop, or of the loop plan by plan."""
    world = WORLDS[kind]().sparse
    floor = 0.5 * sf.value(world, sf.uniform(H, S, A))
    one, other = (
        run(world, AGENTS[agent](world.problem, floor), episodes=400, seed=7)
        for run in (sf.simulate, simulate_plainly)
    )
    assert_same_run(one, other)


@all_worlds
def test_runs_of_agents_that_know_the_lists(kind, assert_same_run):
    """Agents that know rewards and mask: played in compiled code, and by the plain loop."""
    world = WORLDS[kind]().sparse.with_support()
    value = sf.value(world, sf.uniform(H, S, A))
    floor = world.problem.lowest + 0.5 * (value - world.problem.lowest)
    agent = sf.EpsMix(
        world.problem,
        sf.uniform(H, S, A),
        floor,
        delta=0.1,
        replan=0.0,
        pooled=world.stationary,
    )
    one, other = (
        run(world, agent, episodes=300, seed=1) for run in (sf.simulate, simulate_plainly)
    )
    assert_same_run(one, other)


@all_worlds
def test_episodes_go_where_the_world_may(kind):
    """And are paid what the transition pays."""
    twins, rng = WORLDS[kind](), np.random.default_rng(5)
    units = twins.sparse.problem.units
    for _ in range(20):
        one = play(twins.sparse, some_policy(), rng)
        h, s, a, s_next = np.arange(H), one.states[:-1], one.actions, one.states[1:]
        assert (twins.P[h, s, a, s_next] > 0.0).all()
        paid = np.broadcast_to(twins.r, twins.P.shape)[h, s, a, s_next]
        if not twins.sparse.random_rewards:
            assert_allclose(one.rewards, units.low + units.scale * paid, rtol=0, atol=1e-12)


@all_worlds
def test_what_the_support_says(kind):
    """What may happen does, at this step or, in a stationary world, at any."""
    twins = WORLDS[kind]()
    possible, all_possible = twins.P > 0.0, twins.P[: 1 if twins.sparse.stationary else H] > 0.0
    problem = twins.sparse.with_support().problem
    assert problem.knows_support and not problem.forget(support=True).knows_support
    assert_array_equal(problem.support, all_possible)
    for h, s, a, s_next in itertools.product(range(H), range(0, S, 3), range(A), range(S)):
        assert problem.allows(h, s, a, s_next) == possible[h, s, a, s_next]
    several = np.count_nonzero(all_possible.sum(axis=-1) > 1)
    assert sf.KL().events(problem, problem.stationary) == several
    assert sf.KL().events(problem, False) == several * (H if problem.stationary else 1)


@all_worlds
def test_copies_are_equal(kind):
    world = WORLDS[kind]().sparse
    for one in (world, world.with_support()):
        copy = pickle.loads(pickle.dumps(one))
        assert copy.problem.same_as(one.problem)
        assert copy.problem.fingerprint == one.problem.fingerprint
        assert_array_equal(copy.transitions.value, one.transitions.value)
        assert copy.problem.origin == one.problem.origin
    assert world.with_support().problem.fingerprint != world.problem.fingerprint
    assert not world.with_support().problem.same_as(world.problem)


def test_blocks_follow_the_same_law():
    """Multinomial counts over lists have the right means, and add up.

    Error rates: the largest of 108 differences of a mean over 40,000 trials, in units of its
    standard error, is above 5 with probability 6e-5 if the law is right; a probability that is
    wrong by 0.015 is missed with less than 1e-3.
    """
    pair, _, p = WORLDS["stationary"]().sparse.entries(0)
    first = np.searchsorted(pair, np.arange(S * A + 1))
    n = np.full(S * A, 40_000)
    n[3] = 0
    went = listed_multinomial(n, first, p, np.random.default_rng(1))
    assert_array_equal(np.bincount(pair, went), n)
    assert (went[p == 0.0] == 0).all()
    expected = n[pair] * p
    error = np.abs(went - expected) / np.sqrt(np.maximum(expected * (1 - p), 1e-12))
    assert (error[n[pair] > 0] < 5.0).all()
    wrong = np.abs(went - n[pair] * np.clip(p + 0.015, 0, 1)) / np.sqrt(
        np.maximum(expected * (1 - p), 1e-12)
    )
    assert (wrong[n[pair] > 0] > 5.0).any()  # the control


@all_worlds
def test_kernels_read_what_an_agent_knows(kind):
    """Rewards in units of 2^-20, rounded down: of pairs, or beside the lists of successors."""
    twins = WORLDS[kind]()
    world = twins.sparse
    found, units = world.rewards_for(world.problem), np.floor(twins.r * REWARD_UNITS)
    if not world.problem.pays_by_next:
        assert found.r_next.size == 0
        assert_array_equal(np.broadcast_to(found.r, (H, S * A)), units.reshape(H, S * A))
        return
    for h in range(H):
        first = 0 if world.stationary else int(world.transitions.first[h * S * A])
        pair, state, _ = world.entries(h)
        paid = found.r_next[h % len(found.r_next), first : first + len(pair)]
        assert_array_equal(paid, units[h].reshape(S * A, S)[pair, state])


def test_a_dense_table_that_does_not_fit_is_refused_before_it_is_copied():
    """Arrays of 16 GB that are one number in memory: a copy would be noticed."""
    S, A = 20_000, 5
    whole, rows = np.broadcast_to(1 / S, (S, A, S)), np.arange(S * A)
    stay = scipy.sparse.csr_array((np.ones(S * A), (rows, rows // A)), shape=(S * A, S))
    for name, build in {
        "P": lambda: sf.TabularMDP(whole, np.zeros((S, A)), H=10),
        "r_next": lambda: sf.TabularMDP(stay, r_next=whole, H=10),
        "n_sas": lambda: sf.Counts(whole),
    }.items():
        tracemalloc.start()
        with pytest.raises(
            sf.SurefootError,
            match=rf"{name} is a dense array of 20000 x 5 x 20000 = .* sparse matrix",
        ):
            build()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 2**26
    with pytest.raises(sf.InvalidModel, match="r_next is a dense array"):
        sf.Problem(r_next=whole, H=10)


def test_lists_of_a_mask():
    mask = np.zeros((2, 1, 2), dtype=bool)
    mask[0, 0, 1] = mask[1, 0, 0] = True
    found = sf.Problem(np.zeros((2, 1)), H=1, support=mask).mask
    assert isinstance(found, Rows)
    assert found.of(0).tolist() == [1]
    assert found.of(1).tolist() == [0]
    assert_array_equal(found.dense_mask(), mask[None])
