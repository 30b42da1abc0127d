"""Sparse worlds against dense ones with the same numbers, against scipy's matrix product, and
against enumeration.

Exact values, start values and simulated runs have the same bits. `solve` and `occupancy` add over
all next states in numpy's order, which differs: they agree to 1e-13. Blocks follow the same law.
"""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf
from surefoot.model.successors import Successors, listed
from surefoot.run.blocks import listed_multinomial
from surefoot.run.loops import known_rewards_in, play
from surefoot.run.sample_log import draw_episodes
from surefoot.worlds.exact import value_of

S, A, H = 70, 3, 5


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
    """The same world twice: dense and sparse, with rewards by state and action."""
    rng, P = drawn(seed, stationary)
    r = rng.random((S, A) if stationary else (H, S, A))
    first = rng.dirichlet(np.ones(S)) if start == "several" else None
    settings = {"H": H, "start": first, "random_rewards": random_rewards}
    return sf.TabularMDP(P[0] if stationary else P, r, **settings), sf.TabularMDP(
        matrices(P), r, **settings
    )


def twins_by_next(seed, stationary=True, reward_steps=1, units=None):
    """The same with rewards by next state, which not all successors pay; two successors, whose
    sums have one order.
    """
    rng, P = drawn(seed, stationary, branch=2)
    units = units or sf.Units()
    shape = (reward_steps, S, A, S)
    r = np.where(rng.random(shape) < 0.7, units.low + units.scale * rng.random(shape), 0.0) * (
        P.sum(axis=0) > 0
    )
    by_step = [scipy.sparse.csr_array(rows.reshape(S * A, S)) for rows in r]
    settings = {"H": H, "units": units}
    dense = sf.TabularMDP(P[0] if stationary else P, r_next=r[0] if len(r) == 1 else r, **settings)
    return dense, sf.TabularMDP(
        matrices(P), r_next=by_step[0] if len(r) == 1 else by_step, **settings
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
def test_a_sparse_world_is_the_dense_one(kind):
    dense, sparse = WORLDS[kind]()
    assert sparse.sparse
    assert not dense.sparse
    assert_array_equal(sparse.P, dense.P)
    assert_array_equal(sparse.P_rows, dense.P_rows)
    assert_array_equal(sparse.P_pairs, dense.P_pairs)
    for mine, its in zip(sparse.successors, dense.successors, strict=True):
        assert_array_equal(mine, its)
    assert_array_equal(sparse.p_list, dense.p_list)
    assert_array_equal(sparse.r_rescaled, dense.r_rescaled)
    states = np.arange(S)
    s, a, s_next = np.meshgrid(states, np.arange(A), states, indexing="ij")
    for h in range(H):
        assert_array_equal(sparse.mean_reward(h, s, a, s_next), dense.mean_reward(h, s, a, s_next))
        assert_array_equal(sparse.problem.r_next_at(h), dense.problem.r_next_at(h))


@all_worlds
def test_exact_values(kind):
    dense, sparse = WORLDS[kind]()
    for seed in range(3):
        pi = some_policy(seed)
        assert_array_equal(sf.policy_value(sparse, pi), sf.policy_value(dense, pi))
        mixture = sf.EpisodicMixture(pi, some_policy(seed + 9), 0.3)
        assert value_of(sparse, mixture) == value_of(dense, mixture)
        assert_allclose(sf.occupancy(sparse, pi), sf.occupancy(dense, pi), rtol=0, atol=1e-13)
    best, its = sf.solve(sparse), sf.solve(dense)
    assert_allclose(best.Q, its.Q, rtol=0, atol=1e-12)
    assert_array_equal(best.policy, its.policy)


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
def test_runs_have_the_same_bits(agent, kind, assert_same_run):
    """The fused loop and the loop plan by plan, in the dense and in the sparse world: counts,
    curve and violations.
    """
    dense, sparse = WORLDS[kind]()
    floor = 0.5 * sf.value(dense, sf.uniform(H, S, A))
    runs = [
        sf.simulate(world, AGENTS[agent](dense.problem, floor), episodes=400, seed=7)
        for world in (dense, sparse)
    ]
    assert_same_run(*runs)


@all_worlds
def test_runs_of_agents_that_know_the_lists(kind, assert_same_run):
    """Agents that know rewards and mask as lists, and as arrays: the same plans, counts and
    values.
    """
    runs = []
    for world in (world.with_support() for world in WORLDS[kind]()):
        value = sf.value(world, sf.uniform(H, S, A))
        floor = world.problem.lowest + 0.5 * (value - world.problem.lowest)
        agent = replace(mixing(sf.EpsMix)(world.problem, floor), pooled=world.stationary)
        runs.append(sf.simulate(world, agent, episodes=300, seed=1))
    assert_same_run(*runs)


@all_worlds
def test_episodes_and_logs_draw_the_same(kind):
    dense, sparse = WORLDS[kind]()
    pi = some_policy()
    rngs = [np.random.default_rng(5) for _ in range(2)]
    for _ in range(20):
        mine, its = (play(world, pi, rng) for world, rng in zip((sparse, dense), rngs, strict=True))
        for one, other in (
            (mine.states, its.states),
            (mine.actions, its.actions),
            (mine.rewards, its.rewards),
        ):
            assert_array_equal(one, other)
    mine, its = (
        draw_episodes(world, pi, 200, np.random.default_rng(6)) for world in (sparse, dense)
    )
    assert_array_equal(mine[0], its[0])
    assert_array_equal(mine[1], its[1])


@all_worlds
def test_what_the_support_says(kind):
    dense, sparse = (world.with_support() for world in WORLDS[kind]())
    assert sparse.problem.knows_support
    assert sparse.problem.support_rows is None
    assert_array_equal(sparse.problem.support, dense.problem.support)
    for h, s, a, s_next in itertools.product(range(H), range(0, S, 3), range(A), range(S)):
        assert sparse.problem.allows(h, s, a, s_next) == dense.problem.allows(h, s, a, s_next)
    assert sparse.problem.absorbing_state == dense.problem.absorbing_state
    bounds = sf.KL()
    assert bounds.events(sparse.problem, False) == bounds.events(dense.problem, False)
    baseline = sf.uniform(H, S, A)
    for known in (True, False):  # also where every next state is possible
        problems = [world.problem.forget(support=not known) for world in (sparse, dense)]
        returns = [sf.StepMix(p, baseline, floor=p.lowest).possible_returns for p in problems]
        assert returns[0] == returns[1]


@all_worlds
def test_copies_are_equal(kind):
    _, world = WORLDS[kind]()
    for one in (world, world.with_support()):
        copy = pickle.loads(pickle.dumps(one))
        assert copy.sparse
        assert copy.problem.same_as(one.problem)
        assert copy.problem.fingerprint == one.problem.fingerprint
        assert_array_equal(copy.p_list, one.p_list)
        assert copy.problem.origin == one.problem.origin
    assert world.with_support().problem.fingerprint != world.problem.fingerprint
    assert not world.with_support().problem.same_as(world.problem)


def test_blocks_follow_the_same_law():
    """Multinomial counts over lists have the right means, and add up.

    Error rates: the largest of 108 differences of a mean over 40,000 trials, in units of its
    standard error, is above 5 with probability 6e-5 if the law is right; a probability that is
    wrong by 0.015 is missed with less than 1e-3.
    """
    dense, sparse = WORLDS["stationary"]()
    pair, _, p = sparse.entries(0)
    first = np.searchsorted(pair, np.arange(S * A))
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
    assert dense.S == S


@all_worlds
def test_kernels_read_what_an_agent_knows(kind):
    """Known rewards beside the lists of successors are those of the dense table."""
    dense, sparse = WORLDS[kind]()
    mine, its = (known_rewards_in(world, world.problem) for world in (sparse, dense))
    assert_array_equal(np.broadcast_to(mine.r, its.r.shape), its.r)
    if its.r_next.size == 0:
        assert mine.r_next.size == 0
        return
    for h in range(H):
        first = 0 if sparse.stationary else int(sparse.successors.first[h * S * A])
        pair, state, _ = sparse.entries(h)
        found = mine.r_next[h % len(mine.r_next), first : first + len(pair)]
        assert_array_equal(found, its.r_next[h % len(its.r_next), pair, state])


def test_a_dense_table_that_does_not_fit_is_refused_before_it_is_copied():
    """Arrays of 16 GB that are one number in memory: a copy would be noticed."""
    import tracemalloc

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
    mask = np.zeros((1, 2, 3), dtype=bool)
    mask[0, 0, [0, 2]] = mask[0, 1, 1] = True
    found = listed(mask)
    assert isinstance(found, Successors)
    assert found.of(0).tolist() == [0, 2]
    assert found.of(1).tolist() == [1]
