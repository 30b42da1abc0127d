"""KL certificates: outside values to 1e-9, the dual against its primal, and the kernel against the readable version."""

import math

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents import SpliceAgent
from surefoot.bounds.kl import worst_mean as readable
from surefoot.numerics.kernels import kl as kernel

SPLICES = sorted(name for name, kind in sf.AGENTS.items() if issubclass(kind, SpliceAgent))

CASES = range(9)


def built(case):
    return sf.Problem(case["r"], s1=case["s1"]), np.array(case["baseline"]), sf.Counts(case["n_sas"])


@pytest.mark.parametrize("i", CASES)
def test_check_values(check_values, i):
    case = check_values[i]
    problem, baseline, counts = built(case)
    model = sf.Model(problem, counts, case["delta"])
    pi_bar = np.eye(problem.A)[np.array(case["bernstein"]["optimistic_actions"])]
    found = [sf.KL().lower(model, sf.splice(baseline, pi_bar, h0)) for h0 in range(problem.H + 1)]
    np.testing.assert_allclose(found, case["kl"]["lower_by_h0_for_bernstein_optimistic_splices"], atol=1e-9, rtol=0)
    sparse = sf.KL("1/S").lower(model, baseline)
    assert sparse == pytest.approx(case["kl"]["lower_baseline_alpha_1_over_S"], abs=1e-9)


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


def test_kernel_is_readable():
    """500 balls: clipped, wide, narrow, with unseen worst states, with constant V."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        p_hat, eps, V = random_ball(rng)
        for sign in (1.0, -1.0):
            found = kernel.worst_mean(p_hat, V, len(V), sign, eps, 0.0)
            assert found == pytest.approx(readable(p_hat, eps, sign * V), abs=1e-10 * max(1.0, V.max()))


def kl(p_hat, rows):
    """KL(p_hat, p) of each row p, along the last axis."""
    seen = p_hat > 0
    p = rows[..., seen]
    apart = (p_hat[seen] * np.log(p_hat[seen] / np.where(p > 0, p, 1.0))).sum(axis=-1)
    return np.where((p <= 0).any(axis=-1), math.inf, apart)


def test_no_row_in_the_ball_is_worse_and_some_row_is_as_bad():
    """The primal: random rows inside the ball are never below the bound; on the way to the worst one they reach it."""
    rng = np.random.default_rng(1)
    for _ in range(120):
        p_hat, eps, V = random_ball(rng)
        bound = readable(p_hat, eps, V)
        # Rows of the optimal form p_i ~ p_hat_i / (t + d_i), with what is missing given to a worst state.
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
    assert readable(np.full(3, 1 / 3), math.inf, np.array([0.5, 0.2, 0.9])) == 0.2
    problem = sf.random_mdp(3, 2, 2, seed=0).problem
    empty = sf.Counts.zeros(problem)
    plan = sf.StepMix(problem, sf.uniform(2, 3, 2), 0.0, bounds=sf.KL()).plan(empty)
    assert (plan.source, plan.safety) == ("optimistic", "certified")
    worst = problem.r[0, 0].min() + problem.r[1].min()
    assert plan.lower >= worst - 1e-15  # known rewards: even the worst world pays this
    best = problem.r[0, 0].max() + problem.r[1].max()
    assert plan.upper == pytest.approx(best, abs=1e-11)


@pytest.mark.parametrize("name", SPLICES)
@pytest.mark.parametrize("alpha", [0.5, "1/S", pytest.param(1.0, marks=pytest.mark.full)])
def test_plan_is_by_the_book(name, alpha, counts_of):
    for seed, episodes, pooled in ((0, 0, False), (1, 40, False), (2, 3000, False), (3, 300, True), (4, 10**6, True)):
        world = sf.random_mdp(3, 2, 3, seed, stationary=True)
        pi_b = sf.boltzmann(sf.solve(world).Q, 3.0)
        value = sf.policy_value(world, pi_b)[0, 0]
        counts = counts_of(world, pi_b, episodes, seed, pooled=pooled)
        settings = {"bounds": sf.KL(alpha), "delta": 0.1, "pooled": pooled}
        floor = value - 0.02
        agent = (
            sf.BPIUCBVI(world.problem, **settings)
            if name == "bpi-ucbvi"
            else sf.AGENTS[name](world.problem, pi_b, floor, **settings)
        )
        plan, book = agent.plan(counts), agent.plan_reference(counts)
        assert (plan.source, plan.h, plan.safety) == (book.source, book.h, book.safety)
        np.testing.assert_allclose(plan.candidates, book.candidates, atol=1e-8, rtol=0)
        assert (plan.candidates <= np.array(book.candidates) + 1e-13).all()  # rounded down, never up
        assert plan.upper == pytest.approx(book.upper, abs=1e-8)
        assert plan.rho == pytest.approx(book.rho, abs=1e-5)


def test_pooling_has_its_own_union(counts_of):
    """delta_0 = delta / (SA) when pooled, delta / (SAH) when not: one row of counts, two radii."""
    world = sf.random_mdp(3, 2, 4, seed=0, stationary=True)
    counts = counts_of(world, sf.uniform(4, 3, 2), 500, seed=0)
    pooled = sf.Model(world.problem, counts.pool(), 0.1)
    n = pooled.n_sa[0]
    S, A, H = 3, 2, 4
    same = sf.Counts(np.broadcast_to(counts.pool().n_sas, (H, S, A, S)))
    per_step = sf.Model(world.problem, same, 0.1)
    gap = (sf.KL().radius(per_step)[0] - sf.KL().radius(pooled)[0]) * n
    np.testing.assert_allclose(gap, math.log(H), atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0"),
        ({"alpha": "1/2"}, "alpha is '1/2'"),
        ({"alpha": math.nan}, "alpha"),
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
