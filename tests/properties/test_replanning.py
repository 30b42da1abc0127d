"""A plan is made when what it rests on has changed: by default, only after some pair has a tenth more visits than when
the last plan was made, or its first, or the baseline has a tenth more returns. Planning every episode, the control,
does not wait for that."""

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf

SHAPES = [
    (1, 3, 1, False),
    (3, 2, 4, False),
    (4, 3, 6, True),
    (10, 3, 18, True),  # StepMix plans in blocks
    (20, 2, 12, True),  # above 18 states, next states that were seen count
    (70, 2, 5, True),  # lists
]


def agents_of(world):
    given = world.problem, world.baseline, world.suggested_floor
    settings = {"delta": 0.2, "pooled": world.stationary}
    yield sf.EpsMix(*given, **settings)
    yield sf.StepMix(*given[:2], sf.Relative(0.2), **settings)
    yield sf.EpsMix(*given, explorer=sf.Thompson(world.problem), **settings)
    yield sf.UCBVI(world.problem, episodes=1000, **settings)
    yield sf.OptPessLP(*given, baseline_value=world.suggested_floor + 0.1, episodes=1000, **settings)


def plans_of(world, agent, episodes):
    """Play, and yield the counts of every plan and of the next one."""
    learner, rng = sf.Learner(agent, seed=1), np.random.default_rng(0)
    before = None
    for _ in range(episodes):
        learner.begin()
        if learner.counts.planned is not before:
            if before is not None:
                yield before, learner.counts.planned
            before = learner.counts.planned
        for h in range(world.H):
            s = world.s1 if h == 0 else learner.state
            a = learner.act()
            s_next = world.draw_next(h, s, a, rng)
            learner.observe(s_next, float(world.mean_reward(h, s, a, s_next)))
        learner.end()


def has_changed(then, now):
    """In integers: a tenth more of n, or a first one, is 10 now >= 11 n and now > n."""
    pairs = [*zip(then.played.flat, now.played.flat, strict=True), (then.baseline_returns[0], now.baseline_returns[0])]
    return any(10 * int(n_now) >= 11 * int(n) and n_now > n for n, n_now in pairs)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plan_is_made_when_what_it_rests_on_has_changed(shape):
    S, A, H, stationary = shape
    world = sf.world("random", S=S, A=A, H=H, stationary=stationary)
    episodes = 120 if S < 20 else 400
    for agent in agents_of(world):
        plans = list(plans_of(world, agent, episodes))
        assert plans, agent.replan_rule  # it did replan
        assert all(has_changed(*plan) for plan in plans), agent.replan_rule
    control = replace(next(agents_of(world)), replan=sf.EveryEpisode())
    plans = list(plans_of(world, control, episodes))
    assert len(plans) == episodes - 1
    assert not all(has_changed(*plan) for plan in plans)
