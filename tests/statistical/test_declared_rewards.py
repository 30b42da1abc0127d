"""Rewards beside a declared table: how often the check errs, both ways.

False alarms: at most ALPHA = 0.01 of runs in which the table holds the means, however long; the
exact binomial test at level 1 % would reject a check that keeps its word in 1 of 100 seeds, and
seeds are fixed. Misses: a table that is wrong by 2 of 4 an episode is found within 13 episodes, one
by 0.1 of a spread of 1 within 6,000 (median 1,400; no run of 200 took more than 5,000), one by 0.4
within 400.

The control is a z-test at the same level after every episode, as if it were the only one.
"""

import math

import gymnasium
import numpy as np
import pytest

import surefoot as sf
from surefoot.bounds.declared_rewards import ALPHA, TableBet

H, EPISODES = 4, 2_000
FAIR = sf.Problem(np.full((1, 1), 0.5), 0, H, stationary=True)
Z = 2.5758  # two-sided, level 0.01


def alarms_at(D, problem):
    """The episode of the alarm in each run of D (runs, episodes): the twin, in products; too
    many: none.
    """
    bet = TableBet.on(problem)
    W, first = np.ones((len(D), *bet.stake.shape)), np.full(len(D), math.inf)
    for k in range(D.shape[1]):
        W *= 1.0 + bet.stake * (bet.sign * D[:, k, None, None] - bet.margin)
        np.clip(W, 0.0, 1e200, out=W)
        crossed = W.mean(axis=(1, 2)) >= 1.0 / ALPHA
        first[crossed & np.isinf(first)] = k + 1
    return first


def coins(mean, runs, rng):
    """Return minus 4 * 0.5, of four rewards of 0 or 1."""
    return rng.binomial(H, mean, (runs, EPISODES)) - H * 0.5


def test_a_table_of_means_is_not_contradicted(binomial_tail, is_above):
    """2,000 runs of 2,000 episodes. Control: a z-test after every episode."""
    D = coins(0.5, 2_000, np.random.default_rng(1))
    alarms = int(np.isfinite(alarms_at(D, FAIR)).sum())
    assert 1.0 - binomial_tail(alarms - 1, len(D), ALPHA) > 0.01
    k = np.arange(1, EPISODES + 1)
    z = np.cumsum(D, axis=1) / np.sqrt(k * H * 0.25)
    assert is_above(int((np.abs(z[:, 9:]) >= Z).any(axis=1).sum()), len(D), ALPHA)


@pytest.mark.parametrize(("mean", "within"), [(0.475, 6_000), (0.4, 400), (0.0, 13)])
def test_a_false_table_is_found(mean, within):
    """Misses: none in 200 runs within so many episodes (0.025 a step is 0.1 an episode, whose
    spread is 1).
    """
    rng = np.random.default_rng(2)
    D = rng.binomial(H, mean, (200, within)) - H * 0.5
    assert np.isfinite(alarms_at(D, FAIR)).all()


def slippery(horizon, runs, episodes, rng):
    """D of Gymnasium's CliffWalkingSlippery under uniform actions: what was paid, less the
    table's return.
    """
    world = sf.from_gymnasium("CliffWalkingSlippery-v1", horizon=horizon)
    P = gymnasium.make("CliffWalkingSlippery-v1").unwrapped.P
    n, units = len(P), world.problem.units
    outcomes = [[P[s][a] for a in range(4)] for s in range(n)]
    chance = np.array([[[p for p, *_ in each] for each in row] for row in outcomes])
    after = np.array([[[i for _, i, *_ in each] for each in row] for row in outcomes])
    paid = np.array([[[r for *_, r, _ in each] for each in row] for row in outcomes], dtype=float)
    over = np.array([[[done for *_, done in each] for each in row] for row in outcomes])
    size, D = runs * episodes, np.zeros(runs * episodes)
    s, ended = np.full(size, int(world.problem.s1)), np.zeros(size, dtype=bool)
    for h in range(horizon):
        a = rng.integers(4, size=size)
        which = (
            (rng.random(size)[:, None] > chance.cumsum(axis=-1)[s, a])
            .sum(axis=1)
            .clip(max=chance.shape[-1] - 1)
        )
        done = over[s, a, which]
        following = np.where(done, n, after[s, a, which])
        x = (paid[s, a, which] - units.low) / units.scale
        D += np.where(ended, 0.0, x - world.problem.reward_of(np.full(size, h), s, a, following))
        ended |= done
        s = np.where(ended, s, after[s, a, which])
    return world.problem, D.reshape(runs, episodes)


def test_gymnasiums_table_of_means_is_not_contradicted(binomial_tail, is_above):
    """2,000 runs of 60 episodes of 20 steps; D differs from 0 in many of them. Control: a z-test
    after every episode, with the spread that was seen.
    """
    problem, D = slippery(20, 2_000, 60, np.random.default_rng(3))
    assert (np.abs(D) > 1e-3).mean() > 0.2 and abs(D.mean()) < 4.0 * D.std() / D.size**0.5
    alarms = int(np.isfinite(alarms_at(D, problem)).sum())
    assert 1.0 - binomial_tail(alarms - 1, len(D), ALPHA) > 0.01
    k = np.arange(1, D.shape[1] + 1)
    mean = np.cumsum(D, axis=1) / k
    spread = np.sqrt(np.maximum(np.cumsum(D**2, axis=1) / k - mean**2, 1e-9))
    z = np.sqrt(k) * mean / spread
    assert is_above(int((np.abs(z[:, 9:]) >= Z).any(axis=1).sum()), len(D), ALPHA)
