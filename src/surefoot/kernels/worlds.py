"""The true world as the kernels read it: lists of successors.

An *outcome* is the place of a next state in the lists.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.kernels.jit import compiled
from surefoot.kernels.uniforms import Uniforms, uniform
from surefoot.kernels.values import draw, listed_policy_backup, policy_backup
from surefoot.model.rows import Rows


class World(NamedTuple):
    """The world in which episodes are played: pair i of step h has list (h % rows) * S * A + i."""

    rows: Rows  # the transition probabilities
    # (rows, S, S*A): the same numbers with the pairs last; of size 0 where few of many states
    # follow a pair
    P_pairs: Floats
    r: Floats  # (rows, S*A): mean rewards
    r_next: Floats  # (steps, all lists): rewards by next state; of size 0 where there are none
    start: Floats  # (S,)
    several: bool  # is the first state drawn?
    random: bool  # is each reward 1 with the probability given by r or r_next, else 0?


class KnownRewards(NamedTuple):
    """The rewards an agent knows, in units of 2^-20. Where they are unknown, it counts what was
    paid.
    """

    r: Ints  # (rows, S*A)
    # (steps, all lists), in the order of the world's; of size 0 where rewards do not depend on the
    # next state
    r_next: Ints
    unknown: Bools  # (rows, S*A); of size 0 where all are known


@compiled
def draw_outcome(world: World, h: int, pair: int, u: float) -> int:
    """The outcome of a pair that the uniform number u selects."""
    rows, pairs = world.rows, world.r.shape[1]
    i = pair if rows.first.shape[0] == pairs + 1 else h * pairs + pair
    first, end = rows.first[i], rows.first[i + 1]
    return int(first + draw(rows.value[first:end], u))


@compiled
def reward(
    world: World,
    known_rewards: KnownRewards,
    h: int,
    pair: int,
    outcome: int,
    uniforms: Uniforms,
) -> int:
    """What this outcome pays, as the agent counts it. A random reward is drawn even where the agent
    knows the mean: the numbers drawn in a run do not depend on what the agent knows.
    """
    x = world.r[h % world.r.shape[0], pair]
    if world.r_next.shape[0] > 0:
        x = world.r_next[h % world.r_next.shape[0], outcome]
    if world.random:
        x = 1.0 if uniform(uniforms) < x else 0.0
    unknown, r, r_next = known_rewards.unknown, known_rewards.r, known_rewards.r_next
    if unknown.shape[0] > 0 and unknown[h % unknown.shape[0], pair]:
        return int(math.floor(x * REWARD_UNITS))  # noqa: RUF046  (numba gives a float)
    if r_next.shape[0] > 0:
        return int(r_next[h % r_next.shape[0], outcome])
    return int(r[h % r.shape[0], pair])


@compiled
def policy_value(world: World, pi: Floats, s_first: int, q: Floats, V: Floats) -> None:
    """Fill V (H+1, S) with the exact values of pi (H, S, A); of the first step only that of the
    state s_first, unless it is negative. q (S*A,) is scratch.
    """
    H, S, A = pi.shape
    lists = world.rows
    rows = (lists.first.shape[0] - 1) // (S * A)
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        lo, hi = (s_first, s_first + 1) if h == 0 and s_first >= 0 else (0, S)
        r = world.r[h % world.r.shape[0]]
        if world.P_pairs.shape[0] > 0:
            policy_backup(world.P_pairs[h % rows], r, pi[h], V[h + 1], lo, hi, q, V[h])
        else:
            first = lists.first[(h % rows) * S * A :]
            listed_policy_backup(first, lists.state, lists.value, r, pi[h], V[h + 1], lo, hi, V[h])


@compiled
def start_value(world: World, pi: Floats, q: Floats, V: Floats) -> float:
    """The value of pi at the start, with the same bits as `policy_value`; with one first state the
    others are left out.
    """
    s_first = 0
    for s in range(world.start.shape[0]):
        if world.start[s] > world.start[s_first]:
            s_first = s
    policy_value(world, pi, -1 if world.several else s_first, q, V)
    if not world.several:
        return float(V[0, s_first])
    total = 0.0
    for s in range(world.start.shape[0]):
        total += world.start[s] * V[0, s]
    return total


def known_rewards_from(r: Floats, r_next: Floats, unknown: Bools | None) -> KnownRewards:
    """The known rewards in units of 2^-20, rounded down; r_next (steps, all lists)."""
    return KnownRewards(
        np.floor(r * REWARD_UNITS).astype(np.int64),
        np.floor(r_next * REWARD_UNITS).astype(np.int64),
        np.zeros((0, 0), dtype=np.bool_) if unknown is None else np.array(unknown),
    )
