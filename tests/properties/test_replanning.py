"""A plan is made when what it rests on has changed: by default, only after some pair that was played has a tenth more
visits than when the last plan was made, or its first, or the baseline has a tenth more returns. Planning every episode,
as a control, does not wait for that."""

import math

import numpy as np
import pytest

import surefoot as sf

SHAPES = [
    (1, 3, 1, False),
    (3, 2, 4, False),
    (4, 3, 6, True),
    (20, 2, 12, True),  # above 18 states, next states that were seen count
    (40, 3, 9, False),  # in blocks
    (70, 2, 5, True),  # lists
]


def world_of(S, A, H, stationary):
    return sf.world("random", S=S, A=A, H=H, stationary=stationary)


def agents_of(world):
    given = world.problem, world.baseline, world.suggested_floor
    settings = {"delta": 0.2, "pooled": world.stationary}
    yield sf.EpsMix(*given, **settings)
    yield sf.StepMix(*given[:2], sf.Relative(0.2), **settings)
    yield sf.EpsMix(*given, explorer=sf.Thompson(world.problem), **settings)
    yield sf.UCBVI(world.problem, episodes=1000, **settings)
    yield sf.OptPessLP(*given, baseline_value=world.suggested_floor + 0.1, episodes=1000, **settings)


def plans_of(world, agent, episodes):
    """Play, and yield for every plan but the first: counts at the last plan, counts now, and which pairs (rows, S, A)
    that plan plays at all."""
    learner, rng = sf.Learner(agent, seed=1), np.random.default_rng(0)
    before = None
    for _ in range(episodes):
        last = learner.plan
        plan = learner.begin()
        if learner.counts.planned is not before:
            if before is not None:
                policy = last.policy
                parts = [policy] if isinstance(policy, np.ndarray) else [policy.first, policy.second]
                plays = np.sum(parts, axis=0) > 0.0
                rows = before.n_sa.shape[0]
                yield before, learner.counts.planned, plays.any(axis=0, keepdims=True) if rows == 1 else plays
            before = learner.counts.planned
        assert plan is learner.plan
        for h in range(world.H):
            s = world.s1 if h == 0 else learner.state
            a = learner.act()
            s_next = world.draw_next(h, s, a, rng)
            learner.observe(s_next, float(world.mean_reward(h, s, a, s_next)))
        learner.end()


def has_changed(then, now, plays):
    grown = [n_now >= max(n + 1, math.ceil(1.1 * n)) for n, n_now in zip(then.n_sa.flat, now.n_sa.flat, strict=True)]
    returns, returns_now = int(then.baseline_returns[0]), int(now.baseline_returns[0])
    return bool((np.array(grown) & plays.ravel()).any()) or returns_now >= max(returns + 1, math.ceil(1.1 * returns))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plan_is_made_when_what_it_rests_on_has_changed(shape):
    world = world_of(*shape)
    for agent in agents_of(world):
        plans = list(plans_of(world, agent, 120))
        assert plans, agent.replan_rule  # it did replan
        assert all(has_changed(*plan) for plan in plans), agent.replan_rule


def test_planning_every_episode_does_not_wait_for_that():
    """The control: pairs that were visited more than ten times change by less than a tenth in one episode."""
    world = world_of(3, 2, 4, False)
    agent = sf.EpsMix(
        world.problem, world.baseline, world.suggested_floor, delta=0.2, pooled=False, replan=sf.EveryEpisode()
    )
    plans = list(plans_of(world, agent, 120))
    assert len(plans) == 119
    assert not all(has_changed(*plan) for plan in plans)
