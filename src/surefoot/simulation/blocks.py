"""Whole blocks of episodes at once: i.i.d. episodes of one policy have multinomial counts, step by step."""

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.bets import between
from surefoot.base.validation import REWARD_UNITS
from surefoot.task.counts import Counts
from surefoot.task.problem import Problem
from surefoot.worlds.tabular_mdp import TabularMDP


def draw_block(
    world: TabularMDP,
    problem: Problem,
    pi: Floats,
    n: int,
    counts: Counts,
    rng: np.random.Generator,
    baseline: bool,
) -> None:
    """Count n episodes of pi: how many are in each state, of those how many take each action, and so on.

    That gives the sum of their returns, but not each return.
    """
    if n == 0:
        return
    here = rng.multinomial(n, _normalised(world.start))
    counts.n_start += here
    earned = 0
    for h in range(world.H):
        taken = rng.multinomial(here, _normalised(pi[h]))  # (S, A)
        went = rng.multinomial(taken, _normalised(world.P[h]))  # (S, A, S)
        counts.n_sas[counts.row(h)] += went
        paid = _paid(world, problem, h, went, rng)
        if counts.x_sa is not None and counts.z_sa is not None:
            counts.x_sa[counts.row(h)] += paid
            counts.z_sa[counts.row(h)] += _between(world, problem, h, went)
        earned += int(paid.sum())
        here = went.sum(axis=(0, 1))
    if baseline:
        counts.baseline_returns += np.array([n, earned])


def _normalised(p: Floats) -> Floats:
    """Return rows that sum to 1 as closely as numpy's multinomial requires."""
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def _paid(world: TabularMDP, problem: Problem, h: int, went: Ints, rng: np.random.Generator) -> Ints:
    """Return sums of rewards (S, A) as the agent learns them, in units of 2^-20, of these transitions (S, A, S)."""
    mean = world.problem.r_next_at(h)
    if world.random_rewards:
        true = rng.binomial(went, mean).sum(axis=-1) * REWARD_UNITS
    else:
        true = (went * np.floor(mean * REWARD_UNITS).astype(np.int64)).sum(axis=-1)
    known = (went * np.floor(problem.r_next_at(h) * REWARD_UNITS).astype(np.int64)).sum(axis=-1)
    return np.asarray(np.where(problem.unknown_at(h), true, known))


def _between(world: TabularMDP, problem: Problem, h: int, went: Ints) -> Ints:
    """Return sums of x (1 - x) (S, A) of the same rewards x, in units of 2^-20: 0 of random ones, which are 0 or 1."""
    true, known = (between(np.floor(r.r_next_at(h) * REWARD_UNITS).astype(np.int64)) for r in (world.problem, problem))
    true = np.zeros_like(true) if world.random_rewards else true
    return np.asarray((went * np.where(problem.unknown_at(h)[..., None], true, known)).sum(axis=-1))
