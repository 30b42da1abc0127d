"""One rule of replanning: a plan made after n episodes is in force for max(1, ceil(share n)) of
them, whoever plays.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.agents.replanning import block_length

EPISODES = 130
SHARES = (0.0, 0.02, 0.1, 1 / 3, 1.0)


def planned_at(share, episodes, first=0):
    """Before which episodes a plan is made, by the formula."""
    found, k = [], first
    while k < first + episodes:
        found.append(k)
        k += max(1, math.ceil(share * k))
    return found


def agents_of(world):
    """The agents that plan in other ways, each with its default."""
    settings = (world.problem, world.baseline, world.suggested_floor)
    same = {"delta": 0.2, "pooled": world.stationary}
    yield sf.EpsMix(*settings, **same)
    yield sf.StepMix(*settings[:2], sf.Relative(0.2), **same)
    yield sf.EpsMix(*settings, explorer=sf.Thompson(world.problem), **same)
    yield sf.UCBVI(world.problem, episodes=1000, **same)
    yield sf.OptPessLP(*settings, baseline_value=world.suggested_floor + 0.1, episodes=1000, **same)


def by_learner(world, agent, episodes):
    """Play with a `Learner`, and return the episodes before which it planned."""
    learner, rng, found = sf.Learner(agent, seed=1), np.random.default_rng(0), []
    before = None
    for k in range(episodes):
        learner.begin()
        if learner.counts.planned is not before:
            before = learner.counts.planned
            found.append(k)
        for h in range(world.H):
            s = world.s1 if h == 0 else learner.state
            a = learner.act()
            s_next = world.draw_next(h, s, a, rng)
            learner.observe(s_next, float(world.mean_reward(h, s, a, s_next)))
        learner.end()
    return found


def by_simulation(simulate, world, agent, episodes, **settings):
    """Simulate, and return the episodes before which the agent was asked for a plan."""
    found, plan = [], type(agent).plan

    def spy(self, counts, rng=None):
        if self is agent:
            found.append(counts.episodes)
        return plan(self, counts, rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(agent), "plan", spy)
        simulate(world, agent, episodes, seed=1, **settings)
    return found


@pytest.mark.parametrize("share", SHARES)
def test_everybody_plans_at_the_same_episodes(share):
    """A learner, blocks, and the plain loop, for five agents and whatever comes out. (The fused
    loop plans before every episode: tests/agreement/test_loops.py.)
    """
    world = sf.world("random", S=3, A=2, H=4)
    expected = planned_at(share, EPISODES)
    for default in agents_of(world):
        agent = replace(default, replan=share)
        assert by_learner(world, agent, EPISODES) == expected, agent
        assert by_simulation(simulate_plainly, world, agent, EPISODES) == expected, agent
        if share > 0.0:
            assert by_simulation(sf.simulate, world, agent, EPISODES) == expected, agent


def test_a_run_that_goes_on_counts_all_episodes():
    """The share is of all that are counted; a simulation begins with a plan."""
    world = sf.world("trap")
    agent = sf.EpsMix(world.problem, world.baseline, 0.6, replan=0.1)
    first = sf.simulate(world, agent, 95, seed=0).counts
    for simulate in (sf.simulate, simulate_plainly):
        assert by_simulation(simulate, world, agent, 60, counts=first) == planned_at(
            0.1, 60, first=95
        )


@pytest.mark.parametrize(
    ("share", "episodes", "plans"), [(0.02, 10_000, 297), (0.05, 10_000, 140), (0.1, 10_000, 79)]
)
def test_how_many_plans_there_are(share, episodes, plans):
    """1/share at first, and then log(n share) / log(1 + share), about: of a run ten times as long
    not ten times as many.
    """
    made = len(planned_at(share, episodes))
    assert made == plans
    assert made == pytest.approx(
        1 / share + math.log(episodes * share) / math.log1p(share), rel=0.15
    )
    assert len(planned_at(share, 10 * episodes)) < made + math.log(10.0) / math.log1p(share) + 1


@given(st.floats(0.0, 1.0), st.integers(0, 2**53))
def test_a_block_is_at_least_one_episode_and_at_most_as_many_as_there_were(share, episodes):
    length = block_length(share, episodes)
    assert isinstance(length, int)
    assert max(1, share * episodes) <= length <= max(1, episodes)


def test_the_default_plans_every_episode_with_the_papers_bounds_alone():
    world = sf.world("trap")
    settings = (world.problem, world.baseline, 0.6)
    for kind in (sf.StepMix, sf.EpsMix, sf.StepNoMix, sf.BudgetExploration):
        assert kind(*settings, bounds=sf.Bernstein()).replan_share == 0.0
        assert kind(*settings).replan_share == 0.02


def test_an_agent_of_ones_own_may_have_a_share():
    """Without one it plans before every episode; one that is none is refused."""
    world = sf.world("trap")

    class Own:
        problem, floor, pooled, promise = world.problem, None, False, "nothing"

        def plan(self, counts, rng):
            return sf.Plan.plain(world.baseline)

    class Sharing(Own):
        replan = 0.5

    class Wrong(Own):
        replan = 2

    for kind, share in ((Own, 0.0), (Sharing, 0.5)):
        for simulate in (sf.simulate, simulate_plainly):
            assert by_simulation(simulate, world, kind(), 40) == planned_at(share, 40)
    with pytest.raises(sf.InvalidSetting, match="replan is 2, expected a number from 0 to 1"):
        sf.simulate(world, Wrong(), 3, seed=0)
