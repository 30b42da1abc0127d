"""Relative floors: never below 1 - a of what the baseline is worth, though nobody knows how much
that is.

Runs: exact values, fixed seeds, tripwire "no violation" at delta = 0.1. As a statistical test of
the 12 settings with 5 runs each: a defect that spoils a share p of the runs of one setting is
missed there with probability (1-p)^5 (p = 0.6: 1 %). False alarm: were delta used up everywhere,
the 60 runs would fail with probability 0.998, but no violation was ever seen. It is not kept by
idleness: every run is off the baseline from its FIRST episode, with no data at all. The rule itself
is an inequality, and is checked in exact fractions: no error rate. Controls: the same with the
lower bound of the baseline in the place of the upper one.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import surefoot as sf
from kernel_values import plan_values
from plain_loop import simulate_plainly
from surefoot import kernels

GIVE = 0.1
WORLDS = ["trap", "trap-long", "trap-pit", "three-rooms", "dosing", "inventory"]


def weight_of(give, U, L):
    """rho as the planner finds it: U stands for the baseline, and the floor is (1-a) U, rounded
    up.
    """
    floor = max((1.0 - give) * U + 4.0 * 2.0**-53 * U, 0.0)
    c, rho, _ = kernels.choose(np.array([L, U]), floor, True)
    return 1.0 if c == 0 else rho


def keeps_the_share(give, rho, L, value):
    """Exactly: is (1-rho) V^b + rho L >= (1-a) V^b?"""
    rho, L = Fraction(rho), Fraction(L)
    return (1 - rho) * value + rho * L >= (1 - Fraction(give)) * value


shares = st.floats(0.001, 0.999)
values = st.floats(1e-3, 50.0)


@settings(deadline=None)
@given(give=shares, U=values, part=st.floats(0.0, 1.0), at=st.fractions(0, 1))
def test_the_mixture_keeps_its_share_of_any_baseline_below_the_upper_bound(give, U, part, at):
    """rho <= a V^b / (V^b - L) for every V^b <= U; at V^b = U itself, and at any fraction of it."""
    L = part * U
    rho = weight_of(give, U, L)
    assert keeps_the_share(give, rho, L, Fraction(U))
    assert keeps_the_share(give, rho, L, at * Fraction(U))


@settings(deadline=None)
@given(give=shares, U=values, part=st.floats(0.0, 1.0))
def test_the_weight_is_the_formula(give, U, part):
    """min(1, a U / (U - L)) up to rounding, and so at least a."""
    L = part * U
    assume(U - L > 1e-9)
    expected = min(1.0, give * U / (U - L))
    assert weight_of(give, U, L) == pytest.approx(expected, rel=1e-12, abs=1e-12 * U / (U - L))
    assert weight_of(give, U, L) >= give * (1 - 1e-12)


@settings(deadline=None)
@given(give=st.floats(0.01, 0.9), U=values, part=st.floats(0.01, 0.5), loose=st.floats(0.6, 0.95))
def test_control_the_lower_bound_in_its_place(give, U, part, loose):
    """A rule that holds the baseline's LOWER bound for its value mixes too much where V^b = U and
    the explorer itself is below the share: exactly, in every case.
    """
    L = part * U
    assume(0.99 * (1 - give) * U > L)
    rho = weight_of(give, loose * U, L)
    assert not keeps_the_share(give, rho, L, Fraction(U))


def bounds_of(agent, counts):
    """Of the optimistic policy first, of the baseline last."""
    known = (agent.bounds, agent.problem, counts, agent.delta_prime, agent.baseline)
    return plan_values(*known)


def learner(name, kind, **more):
    world = sf.world(name)
    options = {"delta": 0.1, "pooled": world.stationary} | more
    return world, kind(world.problem, world.baseline, sf.Relative(GIVE), **options)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("give", [0.01, 0.1, 0.5])
def test_without_any_data_the_weight_is_at_least_a(name, give):
    """min(1, a U_b / (U_b - L_opt)) with U_b and L_opt of no data."""
    world = sf.world(name)
    options = {"delta": 0.1, "pooled": world.stationary}
    agent = sf.EpsMix(world.problem, world.baseline, sf.Relative(give), **options)
    counts = sf.Counts.zeros(world.problem, world.stationary)
    values = bounds_of(agent, counts)
    U, L = world.at_start(values[-1].V_up[0]), world.at_start(values[0].V_low[0])
    plan = agent.plan(counts)
    assert plan.rho == pytest.approx(min(1.0, give * U / (U - L)) if L < U else 1.0, rel=1e-9)
    assert plan.rho >= give * (1 - 1e-9)
    assert plan.certified
    assert sf.world(name).at_start(sf.policy_value(world, world.baseline)[0]) <= U


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
def test_never_below_the_share_and_never_idle(name, kind):
    world, agent = learner(name, kind)
    for run in sf.simulate_many(world, agent, 1000, seeds=range(5), progress=False):
        assert run.floor == pytest.approx((1 - GIVE) * run.baseline, rel=1e-12)
        assert run.violations == 0
        assert run.off_baseline == 0


def worst_policy(world):
    """Backward induction with min in the place of max."""
    pi, V = np.zeros((world.H, world.S, world.A)), np.zeros(world.S)
    for h in reversed(range(world.H)):
        Q = world.r[h] + world.P[h] @ V
        pi[h] = np.eye(world.A)[Q.argmin(axis=1)]
        V = Q.min(axis=1)
    return pi


class ByTheLowerBound:
    """The rule with L_b in the place of U_b: a floor of (1-a) L_b."""

    def __init__(self, agent):
        self.agent = agent
        self.problem, self.floor, self.pooled, self.promise = (
            agent.problem,
            agent.floor,
            agent.pooled,
            agent.promise,
        )

    def plan(self, counts, rng):
        a = self.agent
        L_b = float(a.problem.start @ bounds_of(a, counts)[-1].V_low[0])
        options = {"delta": a.delta, "pooled": a.pooled, "explorer": a.explorer}
        return type(a)(a.problem, a.pi_b, (1 - GIVE) * L_b, **options).plan(counts, rng)


@pytest.mark.parametrize(
    "name", ["trap", *(pytest.param(x, marks=pytest.mark.full) for x in ("trap-pit", "dosing"))]
)
@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
def test_the_worst_explorer_keeps_the_share_too(name, kind):
    """With the worst policy of the true world as the explorer: no violation, and the mixture
    really costs value.
    """
    world, _ = learner(name, kind)
    worst = worst_policy(world)
    world, agent = learner(name, kind, explorer=lambda counts, rng: worst, replan=0.1)
    for seed in range(2):
        run = sf.simulate(world, agent, 800, seed, progress=False)
        assert run.violations == 0
        assert run.off_baseline == 0
        assert run.min_value < run.baseline
    level = (1 - GIVE) * world.at_start(sf.policy_value(world, world.baseline)[0])
    broken = simulate_plainly(
        world, ByTheLowerBound(agent), 25, seed=0, floor=level, progress=False
    )
    assert broken.violations >= 10  # control: by the lower bound the same explorer breaks it


# ---- an amount below the baseline, for rewards of any sign


def shifted(name):
    """The same world in euros, from a loss of 3 to a gain of 2 per step."""
    world = sf.world(name)
    units = sf.Units(-3.0, 2.0, name="EUR")
    P = world.P[0] if world.stationary else world.P
    r = world.r_rescaled[0] if world.stationary else world.r_rescaled
    return sf.TabularMDP(P, sf.Rescaled(r), s1=world.s1, H=world.H, units=units), world.baseline


@pytest.mark.parametrize(
    ("name", "kind", "amount"),
    [("trap", sf.StepMix, 3.0), ("trap", sf.EpsMix, 0.6), ("dosing", sf.EpsMix, 0.6)],
)
def test_never_more_than_an_amount_below(name, kind, amount):
    """With the worst policy of the true world as the explorer: no violation, off the baseline from
    the first episode, and what is played costs value. Control: the same explorer breaks a tenth of
    the amount.
    """
    world, baseline = shifted(name)
    worst = worst_policy(world)
    floor = sf.Below(amount)
    agent = kind(
        world.problem,
        baseline,
        floor,
        delta=0.1,
        pooled=world.stationary,
        explorer=lambda counts, rng: worst,
    )
    for seed in range(2):
        run = sf.simulate(world, agent, 300, seed, progress=False)
        assert run.floor == pytest.approx(run.baseline - amount, rel=1e-9)
        assert (run.violations, run.off_baseline) == (0, 0)
        assert run.baseline - amount <= run.min_value < run.baseline - amount / 100
        plan = agent.plan(run.counts, np.random.default_rng(0))
        assert plan.certified and f"{amount:g} EUR below the baseline" in plan.explain()
    tight = sf.simulate(world, agent, 300, 0, floor=run.baseline - amount / 100, progress=False)
    assert tight.violations > 0


@settings(deadline=None)
@given(amount=st.floats(0.001, 5.0), U=values, part=st.floats(0.0, 1.0), at=st.fractions(0, 1))
def test_the_mixture_loses_no_more_than_the_amount(amount, U, part, at):
    """rho (V^b - L) <= amount for every V^b <= U, exactly, with the floor as the kernel rounds
    it.
    """
    L = part * U
    floor = max(U - amount + 4.0 * 2.0**-53 * U, 0.0)
    c, rho, _ = kernels.choose(np.array([L, U]), floor, True)
    rho = 1.0 if c == 0 else rho
    for value in (Fraction(U), at * Fraction(U)):
        assert Fraction(rho) * (value - Fraction(L)) <= Fraction(amount)


@pytest.mark.parametrize("amount", [0.0, -1.0, float("inf"), float("nan"), "x"])
def test_amounts_that_are_none(amount):
    with pytest.raises(
        sf.InvalidSetting, match="expected an amount > 0, in the units of the rewards"
    ):
        sf.Below(amount)


def test_an_amount_beyond_all_returns_is_refused():
    world, baseline = shifted("trap")
    with pytest.raises(sf.InvalidSetting, match="no policy can lose as much"):
        sf.StepMix(world.problem, baseline, sf.Below(1000.0))
    # a share needs rewards that are never negative
    with pytest.raises(sf.InvalidSetting, match=r"Use sf\.Below"):
        sf.StepMix(world.problem, baseline, sf.Relative(0.1))
    assert "floor=0.5 EUR below the baseline" in repr(
        sf.StepMix(world.problem, baseline, sf.Below(0.5))
    )
