"""The paper's bounds: V_low <= V^pi and V* <= V_up, and what else must hold of them for any table
of counts.

Hypothesis runs derandomised and drawn counts have fixed seeds, so every test here is deterministic.
Each guard of the promise has a control beside it that must fail: the bonus left out, or the
misprint of Eq. Xd.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import surefoot as sf
from formulas import as_printed
from kernel_values import evidence_of, plan_values
from surefoot import kernels
from surefoot.kernels.kl import BOTH

examples = settings(max_examples=60, deadline=None, derandomize=True, database=None)

DELTA = 0.1
ROUNDING = 1e-12


@st.composite
def tables(draw, smallest=0):
    """A problem, a policy and ANY table of counts: untried pairs, a few visits and 10^8 of them
    side by side.
    """
    S, A, H = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    visits = st.one_of(
        st.just(smallest),
        st.integers(smallest, 10),
        st.integers(smallest, 10**5),
        st.integers(10**5, 10**8),
    )
    n_sas = draw(hnp.arrays(np.int64, (H, S, A, S), elements=visits))
    r = draw(hnp.arrays(np.float64, (H, S, A), elements=st.floats(0.0, 1.0, allow_subnormal=False)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    certain = np.eye(A)[rng.integers(A, size=(H, S))]
    pi = np.where(rng.random((H, S, 1)) < 0.3, certain, rng.dirichlet(np.ones(A), size=(H, S)))
    return sf.Problem(r, s1=int(rng.integers(S))), sf.Counts(n_sas), pi


# ---- Any table -----------------------------------------------------------------------------------


@examples
@given(tables(), st.sampled_from([1.0, 0.01, 0.0]), st.sampled_from([0.5, 0.05, 1e-9]))
def test_bounds_are_in_order_and_in_range(table, scale, delta):
    """0 <= V_low <= V_up <= H at every state and step, for pi_bar, every splice, and in
    plans.
    """
    problem, counts, pi_b = table
    bounds = sf.Bernstein(scale)
    agent = sf.StepMix(problem, pi_b, 0.0, delta=delta, bounds=bounds)
    for values in plan_values(bounds, problem, counts, agent.delta_prime, pi_b):
        assert (values.V_low >= 0).all()
        assert (values.V_low <= values.V_up + ROUNDING).all()
        assert (values.V_up <= problem.H + ROUNDING).all()
    plan = agent.plan(counts)
    assert (plan.candidates >= 0).all()
    assert (plan.candidates <= plan.upper + ROUNDING).all()
    assert plan.upper <= problem.H


@examples
@given(tables(), st.sampled_from([1.0, 0.01, 0.0]))
def test_untried_pairs_are_worth_anything(table, scale):
    """n = 0: exactly Q_up = H and Q_low = 0, whatever comes next; never nan."""
    problem, counts, _ = table
    H, S, A = problem.H, problem.S, problem.A
    n_sas = np.array(counts.n_sas)
    n_sas[:, :, 0] = 0
    bounds = sf.Bernstein(scale)
    evidence, rng = evidence_of(bounds, problem, sf.Counts(n_sas), DELTA), np.random.default_rng(S)
    for h in range(H):
        V_low, V_up = np.sort(rng.random((2, S)) * H, axis=0)
        scratch, everyone = np.zeros((5, S * A)), np.zeros((0, A))
        what = (evidence, h, h, 0, S * A, H, V_up, V_low, scratch, BOTH, everyone)
        kernels.q_bounds(*what)
        Q_up, Q_low = scratch[:2].reshape(2, S, A)
        assert np.isfinite(Q_up).all() and np.isfinite(Q_low).all()
        assert (Q_up[:, 0] == H).all() and (Q_low[:, 0] == 0).all()
    # In a plan the optimistic policy takes the untried action (the first of those at H); nothing
    # is proved.
    for untried in (sf.Counts(n_sas), sf.Counts.zeros(problem)):
        plan = sf.BPIUCBVI(problem, bounds=bounds).plan(untried)
        assert (plan.upper, plan.lower) == (H, 0.0)
        np.testing.assert_array_equal(plan.policy.argmax(axis=2), 0)


def test_one_visit_is_not_none():
    """Control: with a bonus of zero a single visit is believed, so the test above is about n = 0
    and nothing else.
    """
    problem = sf.Problem(np.full((2, 2, 2), 0.5))
    n_sas = np.zeros((2, 2, 2, 2), dtype=int)
    n_sas[..., 0] = 1
    plan = sf.BPIUCBVI(problem, bounds=sf.Bernstein(0.0)).plan(sf.Counts(n_sas))
    assert (plan.upper, plan.lower) == (
        pytest.approx(1.0, abs=1e-11),
        pytest.approx(1.0, abs=1e-11),
    )
    assert plan.lower < 1.0 < plan.upper  # by 1e-12 H: directed rounding


# ---- An estimate that is the truth ---------------------------------------------------------------


@examples
@given(tables(smallest=1), st.sampled_from([1.0, 0.01]))
def test_an_estimate_without_error_is_enclosed(table, scale):
    """If P_hat IS the truth, V_low <= V^pi <= V_up for any policy, by any amount of data."""
    problem, counts, pi = table
    world = sf.TabularMDP(sf.Model(problem, counts, DELTA).P_hat, problem.r, s1=problem.s1)
    V = sf.policy_value(world, pi)
    best, *_, values = plan_values(sf.Bernstein(scale), problem, counts, DELTA, pi)
    assert (V - values.V_low).min() >= -ROUNDING and (values.V_up - V).min() >= -ROUNDING
    assert sf.solve(world).V[0, world.s1] <= best.V_up[0, world.s1] + ROUNDING
    # Without a bonus the interval closes on it.
    exact = plan_values(sf.Bernstein(0.0), problem, counts, DELTA, pi)[-1]
    np.testing.assert_allclose(exact.V_low, V, atol=ROUNDING * problem.H, rtol=0)
    np.testing.assert_allclose(exact.V_up, V, atol=ROUNDING * problem.H, rtol=0)


# ---- The promise: bounds from data of the true world ---------------------------------------------

CASES = list(product(range(12), (10**4, 10**5, 10**6, 10**7, 10**8)))


def middle_of_a_run(seed, episodes, counts_of):
    """A random world of random size, its baseline, and counts of a policy that tries everything."""
    rng = np.random.default_rng(seed)
    S, A, H = (int(rng.integers(2, 5)) for _ in range(3))
    world = sf.random_mdp(S, A, H, seed)
    pi_b = sf.boltzmann(sf.solve(world).Q, 5.0)
    return world, pi_b, counts_of(world, 0.5 * pi_b + 0.5 * sf.uniform(H, S, A), episodes, seed)


def broken_promises(seed, episodes, counts_of, scale=1.0):
    """Which of the promised inequalities fail, and how many lower values say anything at all."""
    world, pi_b, counts = middle_of_a_run(seed, episodes, counts_of)
    bounds = sf.Bernstein(scale)
    agent = sf.StepMix(world.problem, pi_b, 0.0, delta=DELTA, bounds=bounds)
    plan, best = agent.plan(counts), sf.solve(world)
    broken, each = set(), plan_values(bounds, world.problem, counts, agent.delta_prime, pi_b)
    for h0, values in enumerate(each):
        V = sf.policy_value(world, values.policy)
        if plan.candidates[h0] > V[0, world.s1] + ROUNDING or (values.V_low > V + ROUNDING).any():
            broken.add("V_low <= V^pi")
        # V_up of a splice covers pi_b up to h0 and then the BEST there is.
        if (
            values.V_up < sf.policy_value(world, sf.splice(pi_b, best.policy, h0)) - ROUNDING
        ).any():
            broken.add("V_up >= V*")
    if plan.upper < best.value - ROUNDING or (each[0].V_up < best.V - ROUNDING).any():
        broken.add("V_up >= V*")
    return broken, (plan.candidates > 0).mean()


def test_the_bounds_hold_in_the_true_world(counts_of):
    """V_low <= V^pi for every splice, V* <= V_up. Fixed seeds: deterministic.

    For fresh seeds: a false alarm has probability at most delta = 0.1 a case by the theorem, and in
    truth far less, because the bounds are loose. A version without a bonus is missed with
    probability zero for all practical purposes (see the control: it breaks most of the 60 cases).
    """
    meant_something = []
    for seed, episodes in CASES:
        broken, informative = broken_promises(seed, episodes, counts_of)
        assert not broken, (seed, episodes, broken)
        meant_something.append(informative)
    assert np.mean(meant_something) > 0.4  # or else zeros would have passed


@pytest.mark.parametrize("promise", ["V_low <= V^pi", "V_up >= V*"])
def test_without_a_bonus_they_do_not(promise, counts_of):
    """Control: scale 0 breaks either promise in half of the same cases or more."""
    broken = sum(promise in broken_promises(*case, counts_of, scale=0.0)[0] for case in CASES)
    assert broken >= len(CASES) / 2


def test_a_bonus_far_too_small_is_noticed_too(counts_of):
    """Control: so does a bonus of a ten-thousandth, in a tenth of the cases at least."""
    broken = sum(bool(broken_promises(*case, counts_of, scale=1e-4)[0]) for case in CASES)
    assert broken >= len(CASES) / 10


def test_the_misprint_is_not_a_lower_bound(counts_of):
    """Control: V_low read from Q_up exceeds V^pi in all of the same cases, so Q_low is meant."""
    for seed, episodes in CASES:
        world, pi_b, counts = middle_of_a_run(seed, episodes, counts_of)
        agent = sf.StepMix.paper(world.problem, pi_b, 0.0, delta=DELTA)
        misprinted = as_printed(world.problem, counts, agent.delta_prime, pi_b)
        assert misprinted > sf.policy_value(world, pi_b)[0, world.s1]
        assert misprinted > agent.plan(counts).candidates[-1]


def test_pooled_bounds_hold_in_a_stationary_world(counts_of):
    """The same promise with counts pooled over steps. Fixed seeds: deterministic; error rates as
    above.
    """
    for seed, episodes in product(range(8), (10**5, 10**7)):
        world = sf.random_mdp(3, 3, 3, seed, stationary=True)
        pi_b = sf.boltzmann(sf.solve(world).Q, 5.0)
        counts = counts_of(world, sf.uniform(3, 3, 3), episodes, seed, pooled=True)
        agent = sf.StepMix.paper(world.problem, pi_b, 0.0, delta=DELTA, pooled=True)
        plan = agent.plan(counts)
        each = plan_values(sf.Bernstein(), world.problem, counts, agent.delta_prime, pi_b)
        V = [sf.policy_value(world, values.policy)[0, world.s1] for values in each]
        assert (plan.candidates <= np.array(V) + ROUNDING).all() and plan.upper >= sf.solve(
            world
        ).value


def test_pooled_bounds_fail_where_steps_differ(counts_of):
    """Control: state 0 leads to itself at step 1 and to state 1 at step 2, and only state 0 pays at
    step 4: worth 0.

    Pooled, each lead is followed by half of the visits, and an eighth of the reward is "certified".
    """
    P = np.zeros((4, 2, 1, 2))
    P[[0, 2, 3], 0, 0, 0] = P[1, 0, 0, 1] = 1.0
    P[:, 1, 0, 1] = 1.0
    r = np.zeros((4, 2, 1))
    r[3, 0, 0] = 1.0
    world, only = sf.TabularMDP(P, r), sf.uniform(4, 2, 1)
    assert sf.policy_value(world, only)[0, 0] == 0.0
    counts = counts_of(world, only, 10**8, seed=0)
    assert sf.StepMix.paper(world.problem, only, 0.0).plan(counts).lower == 0.0
    claims = sf.Problem(r, stationary=True)
    agent, pooled = sf.StepMix.paper(claims, only, 0.0, pooled=True), counts.pool()
    with pytest.raises(sf.PremiseContradicted, match="visits at step 1, and in 0 of"):
        agent.plan(pooled)
    pooled.steps = None  # nobody kept what was seen at each step
    assert agent.plan(pooled).lower > 0.1
