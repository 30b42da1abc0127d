"""KL certificates: outside values to 1e-9, the dual against its primal, and mixtures against their
definitions.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surefoot as sf
from formulas import mixture, radius
from kernel_values import evidence_of, plan_values
from planning_cases import CASES, built
from surefoot.kernels import kl as kernel


@pytest.mark.parametrize("i", CASES)
def test_check_values(check_values, i):
    case = check_values[i]
    problem, baseline, counts = built(case)
    pi_bar = np.eye(problem.A)[np.array(case["bernstein"]["optimistic_actions"])]
    bounds = sf.KL(full_support=True)
    values = plan_values(bounds, problem, counts, case["delta"], baseline, pi_bar)
    found = [each.V_low[0, problem.s1] for each in values]
    assert_allclose(
        found, case["kl"]["lower_by_h0_for_bernstein_optimistic_splices"], atol=1e-9, rtol=0
    )


def random_ball(rng):
    S = int(rng.integers(1, 9))
    p = rng.dirichlet(np.full(S, rng.choice([0.1, 1.0, 10.0])))
    n = rng.multinomial(int(10 ** rng.uniform(0, 7)), p)
    V = rng.random(S) * rng.choice([1.0, 20.0])
    if rng.random() < 0.3:
        V[rng.integers(S)] = 0.0
    if rng.random() < 0.2:
        V[:] = V[0]
    return n / n.sum(), float(10 ** rng.uniform(-7, 1.5)), V


# ---- The mixture over unknown supports -----------------------------------------------------------


def exact_radius(n_i, log_union):
    """(log(1/delta_0) + sum n_i log(n_i/n) - log m) / n, one logarithm of a rational."""
    n = sum(n_i)
    ratio = math.prod((Fraction(x, n) ** x for x in n_i), start=Fraction(1)) / mixture(n_i, False)
    return (log_union + math.log(ratio.numerator) - math.log(ratio.denominator)) / n


def both_radii(n_i, log_union):
    """By the kernel, which leaves out terms that do not count, and by the whole sum over k."""
    S, n = len(n_i), float(n_i.sum())
    compiled = kernel.supports_radius(n_i, S, n, log_union, np.zeros(S))
    return compiled, float(radius(n_i, False, log_union))


@pytest.mark.parametrize("S", range(1, 8))
def test_the_mixture_over_supports_is_its_definition(S):
    """All supports one by one, in exact fractions, against both sums over k."""
    rng = np.random.default_rng(S)
    for n in (1, 2, 3, 7, 30):
        n_i = rng.multinomial(n, rng.dirichlet(np.full(S, 0.5)))
        expected = exact_radius(n_i.tolist(), 2.5)
        assert both_radii(n_i, 2.5) == pytest.approx((expected, expected), rel=1e-12)


@pytest.mark.parametrize("S", [2, 4])
def test_the_mixture_over_supports_is_a_law(S):
    """Its weights add up to 1: m of nothing is 1, and m is the sum of m over what may come next."""
    assert mixture([0] * S, False) == 1
    n_i = [3, 1, 0, 0][:S]
    after = [[x + (i == j) for j, x in enumerate(n_i)] for i in range(S)]
    assert sum(mixture(each, False) for each in after) == mixture(n_i, False)


def test_the_kernel_sums_over_the_sizes_of_supports():
    """Whole and fractional counts, 10^9 visits, up to 300 states and as many of them seen; all
    terms count there.
    """
    rng = np.random.default_rng(3)
    for _ in range(200):
        S = int(rng.choice([2, 5, 20, 60, 300]))
        d = int(rng.integers(max(1, (S - 60) // 4), S + 1))
        n_i = np.zeros(S)
        n_i[rng.permutation(S)[:d]] = np.ceil(10 ** rng.uniform(0, rng.choice([0.1, 3, 9]), size=d))
        if rng.random() < 0.3:
            n_i *= rng.random(S)
        n_i = n_i if n_i.sum() % 1 else n_i.astype(np.int64)
        compiled, whole = both_radii(n_i, 5.0)
        n = float(n_i.sum())
        room = 1e-13 * (d + 16) * (n * math.log(n + S + 2) + S * math.log(S + 1) + 5) / n
        assert abs(compiled - whole) <= room + 1e-13


@pytest.mark.parametrize(("d", "n"), [(1, 1), (3, 3), (3, 1000), (40, 45), (50, 50)])
def test_what_is_left_out_of_the_sum_makes_the_ball_larger(d, n):
    """2,000 possible states: the terms beyond k = 4d + 64 are left out, all but the last. It
    costs log S at most.
    """
    n_i = np.zeros(2000, dtype=np.int64)
    n_i[:d] = 1
    n_i[0] += n - d
    compiled, whole = both_radii(n_i, 5.0)
    assert 0.0 < n * (compiled - whole) < math.log(2000)
    assert n * (compiled - whole) < 0.2 or (d, n) in ((40, 45), (50, 50))


def test_a_mixture_over_supports_needs_few_nats():
    """Three successors at n = 1,000: 14 nats with 10 possible states, 42 with 10^5;
    Dirichlet(1/2) 28 and 4,921.
    """
    found = []
    for S in (10, 50, 500, 5000, 10**5):
        n_i = np.zeros(S, dtype=np.int64)
        n_i[:3] = 600, 300, 100
        found.append(1000 * kernel.supports_radius(n_i, S, 1000.0, 0.0, np.zeros(S)))
    assert_allclose(found, [14.09, 19.19, 26.15, 33.06, 42.05], atol=0.01)
    dirichlet = kernel.dirichlet_radius(n_i, S, 1000.0, 0.0, np.zeros(S))
    assert 1000 * dirichlet == pytest.approx(4921, abs=1)


# ---- Balls ---------------------------------------------------------------------------------------


def kl(p_hat, rows):
    """KL(p_hat, p) of each row p, along the last axis."""
    seen = p_hat > 0
    p = rows[..., seen]
    apart = (p_hat[seen] * np.log(p_hat[seen] / np.where(p > 0, p, 1.0))).sum(axis=-1)
    return np.where((p <= 0).any(axis=-1), math.inf, apart)


def test_no_row_in_the_ball_is_worse_and_some_row_is_as_bad():
    """The primal: random rows inside the ball are never below the bound; on the way to the worst
    one they reach it.
    """
    rng = np.random.default_rng(1)
    for _ in range(120):
        p_hat, eps, V = random_ball(rng)
        bound = kernel.worst_mean(p_hat, V, len(V), 1.0, eps, 0.0)
        # Rows of the optimal form p_i ~ p_hat_i / (t + d_i), with what is missing given to a worst
        # state.
        t = np.geomspace(1e-9, 1e9, 400) * max(float(np.ptp(V)), 1e-6)
        q = p_hat / (t[:, None] + (V - V.min()))
        q /= q.sum(axis=-1, keepdims=True)
        share = np.array([0.0, 0.01, 0.1, 0.3, 0.6, 0.9, 1 - math.exp(-eps)])[:, None, None]
        rows = (1 - share) * q
        rows[..., V.argmin()] += share[..., 0]
        means = (rows @ V)[kl(p_hat, rows) <= eps]
        assert (means >= bound - 1e-9 * max(1.0, V.max())).all()
        closest = (means - bound).min(initial=math.inf)
        assert closest < 0.12 * max(np.ptp(V), 1e-12) + 1e-12


def test_no_data_says_what_is_known_without_data():
    V = np.array([0.5, 0.2, 0.9])
    assert kernel.worst_mean(np.full(3, 1 / 3), V, 3, 1.0, math.inf, 0.0) == 0.2
    problem = sf.random_mdp(3, 2, 2, seed=0).problem
    empty = sf.Counts.zeros(problem)
    plan = sf.StepMix(problem, sf.uniform(2, 3, 2), 0.0, bounds=sf.KL()).plan(empty)
    assert (plan.source, plan.safety) == ("optimistic", "certified")
    worst = problem.r[0, 0].min() + problem.r[1].min()
    assert plan.lower >= worst - 1e-15  # known rewards: even the worst world pays this
    best = problem.r[0, 0].max() + problem.r[1].max()
    assert plan.upper == pytest.approx(best, abs=1e-11)


def test_pooling_has_its_own_union(counts_of):
    """delta_0 = delta / (SA) when pooled, delta / (SAH) when not: one row of counts, two radii."""
    world = sf.random_mdp(3, 2, 4, seed=0, stationary=True)
    counts = counts_of(world, sf.uniform(4, 3, 2), 500, seed=0)
    S, A, H = 3, 2, 4
    same = sf.Counts(np.broadcast_to(counts.pool().n_sas, (H, S, A, S)))
    pooled, per_step = (
        evidence_of(sf.KL(), world.problem, each, 0.1) for each in (counts.pool(), same)
    )
    gap = (per_step.eps[0] - pooled.eps[0]) * pooled.n_sa[0]
    assert_allclose(gap, math.log(H), atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"full_support": 0.5}, "full_support"),
        ({"scale": -1}, "scale"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(sf.InvalidSetting, match=message):
        sf.KL(**settings)


def test_a_scaled_radius_is_not_certified():
    assert sf.KL().certified
    assert not sf.KL(scale=0.5).certified
    world = sf.world("trap")
    agent = sf.StepMix(world.problem, world.baseline, 0.6, bounds=sf.KL(scale=0.5))
    assert "NOT CERTIFIED" in str(agent.promise)
    assert agent.plan(sf.Counts.zeros(world.problem)).safety == "NOT CERTIFIED"


@pytest.mark.parametrize("S", [6, 70])
def test_an_explanation_knows_the_values_of_the_bolder_policy(S, counts_of):
    """Also after the step from which it is the optimistic one: as of the policy by itself."""
    rng = np.random.default_rng(2)
    P = np.zeros((S, 2, S))
    for s, a in np.ndindex(S, 2):
        P[s, a, rng.choice(S, 2, replace=False)] = rng.dirichlet(np.ones(2))
    world = sf.TabularMDP(P, rng.random((S, 2)), H=5)
    pi_b = np.tile([0.995, 0.005], (5, S, 1))
    counts = counts_of(world, pi_b, 30 * S, seed=0, pooled=True)
    values = plan_values(sf.KL(), world.problem, counts, 0.1, pi_b)
    L = np.array([each.V_low[0, world.s1] for each in values])
    h = 3
    assert L[h] > L[:h].max()
    floor = 0.5 * (L[h] + L[:h].max())
    agent = sf.StepMix(world.problem, pi_b, floor, delta=0.1, pooled=True, returns=None)
    plan = agent.plan(counts)
    assert plan.source == "mixture" and plan.h == h
    bolder = plan.grounds.bolder
    V_low = plan_values(sf.KL(), world.problem, counts, 0.1, pi_b, bolder)[0].V_low
    assert_allclose(plan.grounds.V_low, V_low, rtol=0, atol=1e-6)
    assert V_low[plan.h :].any()
