"""Reward-free safe RL in every episode, the error that it allows for, and both bounds of BPI-UCBVI
(Menard).

Exact values, fixed seeds: deterministic. Error rates, where runs or tables are counted: the promise
is that at most a share delta of them ever fails, and the tests ask for none. False alarm: a method
that used up all of delta = 0.1 would fail 8 runs with probability 0.57; at a share of 1e-4, which
these do not reach, 8e-4 (60 runs: 0.006). Missed alarm: a defect that breaks the promise in half of
the runs is missed by 8 with probability 0.004, one that breaks it in 5 % of them by 60 (in full)
with 0.05. How large a defect that is, the controls say: beta must shrink by a factor of 10^7 before
half of the runs fail, and without the coin every run does.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import surefoot as sf
from surefoot.bounds import Bernstein, Model
from surefoot.rivals.bpi_ucbvi_menard import bpi_ucbvi_menard
from surefoot.rivals.reward_free_safe import bonus, value_in_model
from surefoot.worlds.exact import value_of

DELTA = 0.1
WORLDS = {
    "trap": lambda: sf.world("trap"),
    "trap-pit": lambda: sf.world("trap-pit"),
    "random": lambda: sf.world("random", S=4, A=2, H=3, seed=0, stationary=True),
}


def learner(name, **settings):
    """The world, and the agent with the world's floor and what its baseline is worth."""
    world = WORLDS[name]()
    settings = {
        "baseline_value": value_of(world, world.baseline),
        "pooled": world.stationary,
        **settings,
    }
    return world, sf.RewardFreeSafeRL(
        world.problem, world.baseline, world.suggested_floor, delta=DELTA, **settings
    )


# ---- every episode


def assert_keeps(name, episodes, seeds):
    world, agent = learner(name)
    runs = sf.simulate_many(world, agent, episodes, seeds=seeds)
    assert sum(run.violations for run in runs) == 0, [run.violations for run in runs]
    assert all(
        str(run.promise).startswith("trusted, given the baseline's value of") for run in runs
    )
    assert all(run.sources["mixture"] > episodes / 2 for run in runs)  # not by idleness


@pytest.mark.parametrize("name", ["trap", "trap-pit"])
def test_no_violation_and_not_by_idleness(name):
    assert_keeps(name, 1500, range(4))


@pytest.mark.full
@pytest.mark.parametrize("name", WORLDS)
def test_no_violation_in_sixty_runs(name):
    assert_keeps(name, 50_000, range(1000, 1060))


@pytest.mark.parametrize("name", ["trap", "trap-pit"])
def test_control_thresholds_of_nearly_nothing(name):
    """With the fifth of ten runs that violates it has failed, and the others are not played."""
    world, agent = learner(name, scale=1e-7, accuracy=1.0)
    failed = 0
    for seed in range(10):
        run = sf.simulate(world, agent, 300, seed=seed)
        assert str(run.promise).startswith("NOT CERTIFIED")
        failed += run.violations > 0
        if failed == 5:
            break
    assert failed == 5


@dataclass(frozen=True)
class WithoutCoin:
    """The policy that explores, alone: what the coin is there for."""

    inside: sf.RewardFreeSafeRL
    promise = "nothing"
    replan = 0.0

    def __getattr__(self, name):
        if name in ("problem", "floor", "pooled"):
            return getattr(self.inside, name)
        raise AttributeError(name)

    def plan(self, counts):
        return sf.Plan.plain(self.inside.plan(counts).policy.second)


@pytest.mark.parametrize("name", ["trap", "trap-pit"])
def test_control_without_the_coin(name):
    """In the estimated model the explorer keeps the floor; in the world it does not. Of 16 runs
    14 and 16 violate.
    """
    world, agent = learner(name)
    runs = sf.simulate_many(world, WithoutCoin(agent), 300, seeds=range(16))
    assert sum(run.violations > 0 for run in runs) >= 12, [run.violations for run in runs]


def test_a_value_that_is_too_high_is_no_premise():
    """Its safety rests on the value that it is given: where that is false, the run says so."""
    world = WORLDS["trap"]()
    _, agent = learner("trap", baseline_value=value_of(world, world.baseline) + 0.1)
    with pytest.warns(UserWarning, match="what rests on that is not safe"):
        run = sf.simulate(world, agent, 10, seed=0)
    assert str(run.promise).startswith("no promise: its premise is false")


# ---- the error that is allowed for, and both bounds of V*


def tables(counts_of, name, each):
    """Counts of few episodes and of many, of a policy that tries everything."""
    world = WORLDS[name]()
    tries = 0.5 * world.baseline + 0.5 / world.A
    for size in (10, 1000, 10**5, 10**7):
        for seed in range(each):
            yield world, counts_of(world, tries, size, seed=seed, pooled=world.stationary)


def errors_beyond(counts_of, name, scale, each):
    """How many (table, policy) have an error beyond Delta, and of how many Delta is not simply
    H.
    """
    rng = np.random.default_rng(1)
    beyond = informative = 0
    for world, counts in tables(counts_of, name, each):
        model = Model(world.problem, counts, DELTA / 2)
        b = bonus(model, Bernstein(scale))
        for pi in (
            world.baseline,
            *np.eye(world.A)[rng.integers(world.A, size=(4, world.H, world.S))],
        ):
            found = value_in_model(model, b, pi)
            beyond += abs(found.V_hat - value_of(world, pi)) > found.Delta
            informative += found.Delta < world.H
    return beyond, informative


@pytest.mark.parametrize("name", WORLDS)
def test_no_error_is_beyond_what_is_allowed_for(name, counts_of):
    beyond, informative = errors_beyond(counts_of, name, 1.0, 10)
    assert beyond == 0
    assert informative >= 10
    assert errors_beyond(counts_of, name, 1e-8, 10)[0] >= 10  # control


def outside(counts_of, name, scale, each):
    """How many tables have V* outside of Menard's bounds, and of how many the upper one is not
    simply H.
    """
    left = informative = 0
    for world, counts in tables(counts_of, name, each):
        found = bpi_ucbvi_menard(Model(world.problem, counts, DELTA / 3), Bernstein(scale))
        upper, lower = (float(world.start @ V[0]) for V in (found.V_up, found.V_low))
        left += not lower - 1e-12 <= sf.solve(world).value <= upper + 1e-12
        informative += upper < world.H
    return left, informative


@pytest.mark.parametrize("name", ["trap", "random"])
def test_both_bounds_of_menard_hold(name, counts_of):
    left, informative = outside(counts_of, name, 1.0, 25)
    assert left == 0
    assert informative >= 25
    assert outside(counts_of, name, 1e-6, 25)[0] >= 10  # control
