"""Logs of known worlds: to try things out, and to compare what a log shows with the true world."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import require_integer
from surefoot.errors import InvalidSetting
from surefoot.logs.writing import write_log
from surefoot.model.policy import check_policy
from surefoot.worlds.tabular_mdp import TabularMDP


def sample_log(
    world: TabularMDP, policy: ArrayLike, episodes: int, path: str | Path, seed: int = 0
) -> Path:
    """Write a log of so many episodes of this policy in this world, .parquet or .csv; return its
    path.

    Rewards are the world's, in the user's units. The same seed gives the same rows.
    """
    if not isinstance(world, TabularMDP):
        raise InvalidSetting(
            f"world is a {type(world).__name__}, expected a TabularMDP, such as sf.world('offers')."
        )
    pi = check_policy(policy, world.problem)
    n = require_integer("episodes", episodes, 1, InvalidSetting)
    rng = np.random.default_rng(require_integer("seed", seed, 0, InvalidSetting))
    states, actions = draw_episodes(world, pi, n, rng)
    H = world.H
    rewards = np.zeros((n, H))
    for h in range(H):
        s, a, s_next = states[:, h], actions[:, h], states[:, h + 1]
        paid = world.mean_reward(h, s, a, s_next)
        rewards[:, h] = world.problem.units.low + world.problem.units.scale * paid
    columns = {
        "episode": np.repeat(np.arange(n), H),
        "step": np.tile(np.arange(H), n),
        "state": states[:, :-1].reshape(-1),
        "action": actions.reshape(-1),
        "reward": rewards.reshape(-1),
        "next_state": states[:, 1:].reshape(-1),
    }
    return write_log(path, columns)


def draw_episodes(
    world: TabularMDP, pi: Floats, n: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return states (n, H+1) and actions (n, H) of n episodes of pi, drawn step by step for all
    at once.
    """
    states, actions = (
        np.zeros((n, world.H + 1), dtype=np.int64),
        np.zeros((n, world.H), dtype=np.int64),
    )
    states[:, 0] = _drawn(np.broadcast_to(world.start, (n, world.S)), rng)
    for h in range(world.H):
        s = states[:, h]
        a = actions[:, h] = _drawn(pi[h][s], rng)
        states[:, h + 1] = _next(world, h, s, a, rng)
    return states, actions


def _next(world: TabularMDP, h: int, s: Ints, a: Ints, rng: np.random.Generator) -> Ints:
    """Draw the next state of each of these pairs."""
    rows = world.transitions
    lists = rows.list_at(h, s * world.A + a)
    begin, size = rows.first[lists], rows.sizes[lists]
    place = begin[:, None] + np.minimum(np.arange(size.max()), size[:, None] - 1)
    weights = np.where(np.arange(size.max()) < size[:, None], rows.value[place], 0.0)
    return np.asarray(rows.state[begin + _drawn(weights, rng)])


def _drawn(weights: Floats, rng: np.random.Generator) -> Ints:
    """Draw an index for each row of weights; never one without weight."""
    found = (rng.random((len(weights), 1)) >= weights.cumsum(axis=-1)).sum(axis=-1)
    last = weights.shape[1] - 1 - (weights[:, ::-1] > 0.0).argmax(axis=1)
    return np.asarray(np.minimum(found, last))
