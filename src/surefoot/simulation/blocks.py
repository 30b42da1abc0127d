"""Whole blocks of episodes at once: i.i.d. episodes of one policy have multinomial counts, step by step."""

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.numerics import kernels
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
    """n episodes of pi, counted: how many are in each state, of those how many take each action, and so on."""
    if n == 0:
        return
    known_rewards = kernels.known_rewards_from(problem.r_rows, problem.r_next_rows, problem.unknown_rows)
    here = rng.multinomial(n, _exactly(world.start))
    counts.n_start += here
    rows = len(counts.n_sas)
    earned = 0
    for h in range(world.H):
        taken = rng.multinomial(here, _exactly(pi[h]))  # (S, A)
        went = rng.multinomial(taken, _exactly(world.P[h]))  # (S, A, S)
        counts.n_sas[h % rows] += went
        paid = _paid(world, known_rewards, h, went, rng)
        if counts.x_sa is not None:
            counts.x_sa[h % rows] += paid
        earned += int(paid.sum())
        here = went.sum(axis=(0, 1))
    if baseline:
        counts.baseline_returns += np.array([n, earned])


def _exactly(p: Floats) -> Floats:
    """Rows that sum to 1 as closely as numpy's multinomial asks."""
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def _paid(
    world: TabularMDP, known_rewards: "kernels.KnownRewards", h: int, went: Ints, rng: np.random.Generator
) -> Ints:
    """Sums of rewards (S, A) as the learner goes by them, in units of 2^-20, of these transitions (S, A, S)."""
    S, A = world.S, world.A
    after = world.problem.r_next_rows
    mean = world.r[h][..., None] if after is None else after[h % len(after)].reshape(S, A, S)
    mean = np.broadcast_to(mean, (S, A, S))
    if world.random_rewards:
        true = rng.binomial(went, mean).sum(axis=-1) * REWARD_UNITS
    else:
        true = (went * np.floor(mean * REWARD_UNITS).astype(np.int64)).sum(axis=-1)
    known = (went * known_rewards.r[h % len(known_rewards.r)].reshape(S, A, 1)).sum(axis=-1)
    if len(known_rewards.r_next):
        known = (went * known_rewards.r_next[h % len(known_rewards.r_next)].reshape(S, A, S)).sum(axis=-1)
    if not len(known_rewards.unknown):
        return np.asarray(known)
    return np.asarray(np.where(known_rewards.unknown[h % len(known_rewards.unknown)].reshape(S, A), true, known))
