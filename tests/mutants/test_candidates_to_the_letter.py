"""Which candidates are bounded: the search against all values, passes over many splices against each of them."""

import itertools

import numpy as np
import pytest

import surefoot as sf
from surefoot.base.count_lists import Entries
from surefoot.numerics.kernels import candidates
from surefoot.numerics.kernels.candidates import (
    SLACK,
    TABLE,
    begin_range,
    bound_candidates,
    bound_range,
    bound_some,
    first_range,
    next_range,
    values_of_slots,
    widen_range,
)
from surefoot.numerics.kernels.evidence import refresh_all
from surefoot.numerics.kernels.mixing import Rule, candidate_values, choose
from surefoot.numerics.kernels.parts import bound_in_parts
from surefoot.numerics.kernels.sparse import SparseBalls
from surefoot.numerics.kernels.splices import bound_splices, empty_splices
from surefoot.numerics.kernels.start_and_returns import refresh_start
from surefoot.task import transitions
from surefoot.task.transitions import Lists

NOTHING = np.zeros(0, dtype=np.int64)


# ---- The search -----------------------------------------------------------------------------------------------------


def searched(values, floor, excess=0.0, H=0):
    """Run the search over known values. Return L and what was asked. A range is worth `excess` more than its best."""
    L = np.zeros(len(values))
    L[0], L[1], L[-1] = values[0], values[1], values[-1]
    asked = []
    lo, hi = first_range(L, floor)
    while hi > 0:
        asked.append((lo, hi))
        assert len(asked) < 100 and 1 <= lo <= hi <= len(values) - 2
        lo, hi = next_range(L, floor, H, lo, hi, max(values[lo : hi + 1]) + excess * (lo < hi))
    return L, asked


@pytest.mark.parametrize("C", [4, 5, 6, 9])
@pytest.mark.parametrize(("excess", "H"), [(0.0, 0), (0.5, 0), (10.0, 0), (0.0, 500_000), (-0.25, 500_000)])
def test_the_search_chooses_as_all_values_do(C, excess, H):
    """For every pattern of above and below. The neighbour is bounded last, since its table is read afterwards."""
    for above in itertools.product([False, True], repeat=C):
        values = np.where(above, 1.5, 0.25) + np.arange(C) / 64
        L, asked = searched(values, 1.0, excess, H)
        c, rho, reached = choose(values, 1.0, True)
        assert choose(L, 1.0, True) == (c, rho, reached)
        bounded = {lo for lo, hi in asked if lo == hi} | {0, 1, C - 1}
        assert {c, max(c - 1, 0)} <= bounded
        for other in range(C):
            assert L[other] == (values[other] if other in bounded else 0.0)
        if c > 1:
            assert asked[-1] == (c - 1, c - 1)
        else:
            assert asked == []


def test_what_the_search_asks():
    """By hand, of twenty splices: none is above, the last is, one in the middle is, and the first is."""
    low, high = np.full(22, 0.25), np.full(22, 0.25)
    low[-1] = 1.5
    assert searched(low, 1.0)[1] == [(2, 20), (20, 20)]
    high[20:] = 1.5
    assert searched(high, 1.0)[1] == [
        (2, 20),
        (2, 11),
        (12, 20),
        (12, 16),
        (17, 20),
        (17, 18),
        (19, 20),
        (19, 19),
        (20, 20),
        (19, 19),
    ]
    high[7:] = 1.5
    assert searched(high, 1.0)[1] == [(2, 20), (2, 11), (2, 6), (7, 20), (7, 13), (7, 10), (7, 8), (7, 7), (6, 6)]
    assert searched(np.full(22, 1.0), 1.0)[1] == []
    assert searched(np.array([0.0, 1.0, 0.0, 0.0]), 1.0)[1] == []
    assert searched(np.array([1.0, 0.0, 0.0, 0.0]), 1.0)[1] == []
    assert searched(np.array([0.0, 0.0, 1.0, 1.0]), 1.0)[1] == [(2, 2), (1, 1)]


def test_the_search_ends():
    """After the last splice that is below the floor, and after the neighbour of the one that is above."""
    assert first_range(np.array([1.0, 0.0, 0.0, 0.0]), 1.0) == (0, 0)
    assert next_range(np.zeros(5), 1.0, 0, 3, 3, 0.5) == (0, 0)
    assert next_range(np.zeros(6), 1.0, 0, 2, 4, 1.0) == (2, 3)  # one may be just at the floor
    assert next_range(np.array([0.0, 0.0, 0.0, 1.0, 0.0]), 1.0, 0, 2, 2, 0.5) == (0, 0)


def test_a_range_within_the_slack_is_looked_into():
    values = np.array([0.0, 0.0, 0.75, 0.75, 0.75, 2.0])
    assert searched(values, 1.0, H=125_000)[1] == [(2, 4), (4, 4)]
    assert searched(values, 1.0, H=250_001)[1] == [(2, 4), (2, 3), (2, 2), (3, 4), (3, 3), (4, 4)]


@pytest.mark.parametrize("C", [1, 2, 3])
def test_few_candidates_have_slots_of_their_own(C):
    assert first_range(np.zeros(C), 1.0) == (0, 0)


# ---- Passes ---------------------------------------------------------------------------------------------------------


def problem(seed, S=7, A=2, H=6):
    rng = np.random.default_rng(seed)
    P = np.zeros((S, A, S))
    for s, a in itertools.product(range(S), range(A)):
        P[s, a, rng.choice(S, 2, replace=False)] = rng.dirichlet(np.ones(2))
    return sf.TabularMDP(P, rng.random((S, A)) * [1.0, 0.5], H=H)


def listed(world, agent, rng):
    """Counts in lists, and what kernels read of them: 20,000 visits of each pair with action 0, 6 of others."""
    S, A = world.S, world.A
    n = np.array([rng.multinomial(6 if a else 20_000, world.P[0, s, a]) for s in range(S) for a in range(A)])
    pair, state = np.nonzero(n)
    counts = sf.Counts(
        Lists.of(Entries(pair, state, n[pair, state]), (1, S, A)), H=world.H, problem=agent.problem, n_start=None
    )
    return agent.evidence(counts)


@pytest.fixture
def lists(monkeypatch):
    monkeypatch.setattr(transitions, "MOST_IN_A_TABLE", 1)


def made(seed, floor=0.5, kind=sf.StepMix, **settings):
    world = problem(seed)
    rng = np.random.default_rng(seed)
    pi_b = rng.dirichlet([9.0, 1.0], (world.H, world.S))
    agent = kind(world.problem, pi_b, floor, delta=0.1, pooled=True, returns=None, **settings)
    known = listed(world, agent, rng)
    refresh_all(known.model)
    refresh_start(known.start)
    return agent, known


def in_full(agent, known):
    """Every candidate in a slot of its own."""
    splices = empty_splices(agent.h0, agent.pi_b)
    bound_splices(known.model, splices, NOTHING, 0, agent.problem.S)
    L = np.zeros(len(agent.h0))
    return splices, L, candidate_values(splices, known.start, known.returns, agent.rule, L)


@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("seed", range(4))
def test_a_range_is_worth_at_least_each_of_its_splices(seed):
    """A single splice has its own bits, and, with the upper values that a relative floor needs, their bits, too."""
    agent, known = made(seed, sf.Relative(0.2))
    splices, _, _ = in_full(agent, known)
    H, S = agent.problem.H, agent.problem.S
    found = empty_splices(np.array([0, 1, H]), agent.pi_b)
    bound_splices(known.model, found, NOTHING, 0, S)
    ends = found.V_low[:, [0, 2]].copy(), found.V_up[:, [0, 2]].copy()
    for lo, hi in itertools.combinations_with_replacement(range(1, H), 2):
        bound_range(known.model, found, lo, hi)
        W = found.V_low[:hi, TABLE]
        if lo == hi:
            np.testing.assert_array_equal(W, splices.V_low[:hi, hi])
            np.testing.assert_array_equal(found.V_up[:hi, TABLE], splices.V_up[:hi, hi])
            continue
        for h in range(hi):
            splice = [splices.V_low[h, c if h < c else 0] for c in range(lo, hi + 1)]
            assert (W[h] >= np.max(splice, axis=0) - 1e-9).all()
        assert (W[:lo] <= np.max(splices.V_low[:lo, lo:], axis=1) + 0.5).all()
    np.testing.assert_array_equal(found.V_low[:, [0, 2]], ends[0])
    np.testing.assert_array_equal(found.V_up[:, [0, 2]], ends[1])


@pytest.mark.usefixtures("lists")
def test_a_range_without_pi_bar_on_its_way_is_no_bound():
    """The control: the last splice of a range alone may be worth less than another one."""
    for seed in (0, 1, 4, 7):
        agent, known = made(seed)
        values = in_full(agent, known)[0].V_low[0, 1:-1]
        assert (values.max(axis=0) > values[-1] + 1e-6).any()


def test_a_table_begins_with_pi_bar_and_is_widened_by_it():
    splices = empty_splices(np.array([0, 1, 3]), np.full((3, 2, 1), 1.0))
    splices.V_low[:] = np.arange(splices.V_low.size).reshape(splices.V_low.shape)
    splices.V_up[:] = 100 + splices.V_low
    low, up = splices.V_low.copy(), splices.V_up.copy()
    begin_range(splices, 2)
    low[2, TABLE], up[2, TABLE] = low[2, 0], up[2, 0]
    np.testing.assert_array_equal(splices.V_low, low)
    np.testing.assert_array_equal(splices.V_up, up)
    splices.V_low[1, TABLE] = [low[1, 0, 0] - 1, low[1, 0, 1] + 1]
    widen_range(splices, 1, 2)  # a splice begins at step 2 at the earliest
    assert splices.V_low[1, TABLE, 0] == low[1, 0, 0] - 1
    widen_range(splices, 1, 1)
    assert splices.V_low[1, TABLE].tolist() == [low[1, 0, 0], low[1, 0, 1] + 1]


FLOORS = (0.05, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0, 1.02, 1.5)


@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("seed", [0, 1, 4, 7, 11])
def test_a_plan_is_the_one_of_all_candidates(seed):
    """For floors between and beyond the values of all candidates: the same choice and the same bits, also in parts."""
    agent, known = made(seed)
    splices, all_values, _ = in_full(agent, known)
    model, start, returns = known.model, known.start, known.returns
    assert isinstance(model, SparseBalls)
    chosen = set()
    between = np.sort(all_values[1:]) - 1e-3
    for floor in (*np.multiply(FLOORS, all_values.max()), *between, *all_values):
        rule = Rule(float(floor), True, False)
        expected = all_values.copy()
        found = empty_splices(agent.slots(model), agent.pi_b)
        L = np.full(len(expected), -1.0)
        assert bound_some(model, found, start, returns, rule, L) == floor
        c, rho, reached = choose(expected, floor, True)
        assert choose(L, floor, True) == (c, rho, reached)
        assert all(mine in (0.0, theirs) for mine, theirs in zip(L, expected, strict=True))
        bolder = max(c - 1, 0)
        np.testing.assert_array_equal(found.V_low[:bolder, min(bolder, 1)], splices.V_low[:bolder, bolder])
        again = empty_splices(agent.slots(model), agent.pi_b)
        in_parts = np.full(len(expected), -1.0)
        assert bound_in_parts(model, again, start, returns, rule, in_parts, 3) == floor
        np.testing.assert_array_equal(in_parts, L)
        np.testing.assert_array_equal(again.V_low, found.V_low)
        chosen.add(c)
    assert {0, 6} < chosen


@pytest.mark.usefixtures("lists")
def test_the_paper_s_bounds_bound_all(monkeypatch):
    """Their lower values depend on upper ones. So do tables bound all."""
    agent, known = made(2, bounds=sf.Bernstein(scale=1e-5))
    splices, L, floor = in_full(agent, known)
    found, mine = empty_splices(agent.slots(known.model), agent.pi_b), np.zeros(7)
    monkeypatch.setattr(candidates, "bound_some", None)
    assert bound_candidates(known.model, found, known.start, known.returns, agent.rule, mine) == floor
    np.testing.assert_array_equal(mine, L)
    np.testing.assert_array_equal(found.V_low, splices.V_low)
    assert L[1:-1].all() and agent.slots(known.model).tolist() == list(range(7))


@pytest.mark.usefixtures("lists")
def test_slots_of_agents():
    agent, known = made(2)
    assert agent.slots(known.model).tolist() == [0, 1, 6]
    assert made(2, kind=sf.EpsMix)[0].slots(known.model).tolist() == [0, 6]
    assert SLACK == 1e-6 and TABLE == 1


def test_values_of_slots_stand_where_their_candidates_do():
    """The first ones in the first places, pi_b's in the last, and 0 between."""
    agent, known = made(3)
    H = agent.problem.H
    splices = empty_splices(np.array([0, 1, H]), agent.pi_b)
    splices.V_low[0] = np.array([1.0, 2.0, 3.0])[:, None]
    L = np.full(H + 1, 9.0)
    assert values_of_slots(splices, known.start, known.returns, Rule(0.5, True, False), L) == 0.5
    assert L.tolist() == [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0]
    full = empty_splices(np.arange(H + 1), agent.pi_b)
    full.V_low[0] = np.arange(H + 1.0)[:, None]
    assert values_of_slots(full, known.start, known.returns, Rule(0.5, True, False), L) == 0.5
    assert L.tolist() == list(range(H + 1))
