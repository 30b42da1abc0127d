"""Wrappers that change the law, environments that belie their model, and results in the user's
own units.
"""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf
from learners import begun
from surefoot.run.conformance import chernoff


@pytest.fixture
def lake():
    world = sf.from_gymnasium("FrozenLake-v1", horizon=20).averaged()
    return sf.EpsMix.paper(world.problem, 0.8 * sf.solve(world).policy + 0.05, 0.0, pooled=True)


def test_a_wrapper_that_may_change_the_law_is_refused(lake, assert_refused):
    env = gymnasium.make("FrozenLake-v1")
    for wrapped in (
        gymnasium.wrappers.StickyAction(env, 0.5),
        gymnasium.wrappers.TransformReward(env, lambda r: 5 * r),
    ):
        assert_refused(sf.InvalidModel, "is wrapped in", sf.from_gymnasium, wrapped, horizon=20)
        assert_refused(sf.InvalidModel, "is wrapped in", sf.learn, wrapped, lake, 3, seed=0)
    watched = gymnasium.wrappers.RecordEpisodeStatistics(env)
    assert sf.learn(watched, lake, 3, seed=0).episodes == 3
    assert_refused(
        sf.InvalidModel,
        "fickle_passenger",
        sf.from_gymnasium,
        gymnasium.make("Taxi-v4", fickle_passenger=True),
        horizon=5,
    )


class Die(gymnasium.Env):
    """Six faces, fair, whatever the action; `P` says so. If loaded, most faces turn into 5."""

    observation_space = Discrete(6)
    action_space = Discrete(6)

    def __init__(self, loaded=False):
        self.loaded = loaded
        row = [(1 / 6, s, 0.0, False) for s in range(6)]
        self.P = {s: {a: row for a in range(6)} for s in range(6)}
        self.initial_state_distrib = np.eye(6)[0]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        face = int(self.np_random.integers(6))
        return (5 if self.loaded and face < 4 else face), 0.0, False, False, {}


@pytest.mark.parametrize("seed", range(4))
def test_a_fair_die_is_not_called_loaded(seed):
    """Its draws and our actions once came from one stream: a fair die then looked loaded."""
    assert sf.check_world(Die(), seed=seed).ok
    assert not sf.check_world(Die(loaded=True), seed=seed).ok  # control


def test_chernoff_is_a_bound():
    """Exact binomial tails are below it."""
    from math import comb

    for n, p, k in ((10, 0.1, 6), (50, 0.02, 5), (200, 0.5, 140), (30, 0.3, 1)):
        upper = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))
        lower = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
        assert min(upper, lower) <= chernoff(k, n, p)


class Liar(Die):
    """Says that face 5 never comes."""

    def __init__(self):
        super().__init__()
        row = [(1 / 5, s, 0.0, False) for s in range(5)]
        self.P = {s: {a: row for a in range(6)} for s in range(6)}


def test_an_impossible_transition_ends_learning(assert_refused):
    world = sf.from_gymnasium(Liar(), horizon=10, reward_range=(0, 1))
    agent = sf.StepMix.paper(world.problem, sf.uniform(10, world.S, 6), 0.0)
    assert_refused(
        sf.InvalidEpisode, "own model says is impossible", sf.learn, Liar(), agent, 50, seed=0
    )


def test_a_learner_is_given_counts_and_a_state_that_are_there(assert_refused):
    world = sf.world("trap")
    agent = sf.StepMix.paper(world.problem, world.baseline, 0.6)
    assert_refused(sf.InvalidCounts, "Counts", sf.Learner, agent, 0, counts=[1])
    assert_refused(
        sf.InvalidSetting, "absorbing_state is 9", sf.Learner, agent, 0, absorbing_state=9
    )


@pytest.mark.parametrize("reward", [1e9, -0.5, float("nan"), "x", None.__class__])
def test_a_reward_outside_the_range_is_refused_by_the_learner(reward, assert_refused):
    world = sf.world("trap")
    learner = begun(sf.StepMix.paper(world.problem, world.baseline, 0.6))
    assert_refused(sf.InvalidEpisode, "The reward is", learner.observe, 1, reward)
    assert learner.counts.n_sas.sum() == 0


def test_a_live_run_with_a_floor_does_not_say_that_it_has_none():
    env = Die()
    del env.P
    problem = sf.from_gymnasium(
        env, horizon=3, rewards=np.zeros((6, 6)), reward_range=(0, 1), start=0
    )
    run = sf.learn(env, sf.StepMix.paper(problem, sf.uniform(3, 7, 6), 0.5), 3, seed=0)
    assert "unknown violations of 0.5" in repr(run)
    assert run.violations is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"env": None}, "Expected a Gymnasium environment or its id, found NoneType"),
        ({"env": "Nowhere-v7"}, "Gymnasium cannot make 'Nowhere-v7'"),
        ({"reward_range": 5}, "reward_range is 5, expected two numbers"),
        ({"reward_range": ("a", "b")}, "reward_range is 'a', expected two numbers"),
        ({"reward_range": (0, 1, 2)}, "expected two numbers"),
    ],
)
def test_refusals(arguments, error, assert_refused):
    assert_refused(
        sf.InvalidModel,
        error,
        sf.from_gymnasium,
        **{"env": "FrozenLake-v1", "horizon": 5, **arguments},
    )


def test_a_table_that_is_no_table_is_said(assert_refused):
    env = Die()
    env.P = {s: {a: [("often", 0, 0.0, False)] for a in range(6)} for s in range(6)}
    assert_refused(
        sf.InvalidModel,
        r"P\[0\]\[0\] is missing or not a list of .*could not convert",
        sf.from_gymnasium,
        env,
        horizon=3,
    )
    assert not sf.check_world(5).ok
