"""The true world as the kernels read it: over all next states, or over lists of successors. Its
type selects which.

`draw_outcome`, `state_after`, `mean_reward` and `value_at_start` are one name for two kernels;
numba picks one by the type of the world, and `known_reward` by the type of what the agent knows. So
the loops are written once, with no flag tested inside. An *outcome* is a next state, or in a sparse
world the place of one in the lists.
"""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba.extending import overload

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.kernels.jit import PART, compiled
from surefoot.kernels.uniforms import Uniforms, uniform
from surefoot.kernels.values import draw, sparse_start_value, start_value


class TrueWorld(NamedTuple):
    """The world in which episodes are played. Its arrays have one row per step, or one for all
    steps.
    """

    P: Floats  # (rows, S, A, S)
    P_pairs: Floats  # (rows, S, S*A): the same numbers, pairs last
    r: Floats  # (rows, S*A): mean rewards
    r_next: Floats  # (rows, S*A, S): rewards by next state; of size 0 where there are none
    start: Floats  # (S,)
    several: bool  # is the first state drawn?
    random: bool  # is each reward 1 with the probability given by r or r_next, else 0?


class SparseWorld(NamedTuple):
    """The same with lists of successors: pair i of step h has list (h % rows) * S * A + i."""

    first: Ints  # (rows*S*A + 1,)
    state: Ints  # (all lists,)
    p: Floats  # (all lists,)
    r: Floats  # (rows, S*A): mean rewards
    r_next: Floats  # (steps, all lists): rewards by next state; of size 0 where there are none
    start: Floats  # (S,)
    several: bool
    random: bool


class KnownRewards(NamedTuple):
    """The rewards an agent knows, in units of 2^-20. Where they are unknown, it counts what was
    paid.
    """

    r: Ints  # (rows, S*A)
    r_next: Ints  # (rows, S*A, S); of size 0 where rewards do not depend on the next state
    unknown: Bools  # (rows, S*A); of size 0 where all are known


class ListedRewards(NamedTuple):
    """The same, with rewards by next state aligned with the lists of a sparse world."""

    r: Ints  # (rows, S*A)
    r_next: Ints  # (steps, all lists); of size 0 where rewards do not depend on the next state
    unknown: Bools  # (rows, S*A); of size 0 where all are known


World: TypeAlias = TrueWorld | SparseWorld


@compiled
def _draw_state(world: TrueWorld, h: int, s: int, a: int, pair: int, u: float) -> int:
    return draw(world.P[h % world.P.shape[0], s, a], u)


@compiled
def _draw_place(world: SparseWorld, h: int, s: int, a: int, pair: int, u: float) -> int:
    lists = world.first.shape[0] - 1
    i = (h * world.r.shape[1] + pair) % lists
    return int(world.first[i] + draw(world.p[world.first[i] : world.first[i + 1]], u))


@compiled
def _itself(world: TrueWorld, outcome: int) -> int:
    return outcome


@compiled
def _state_at(world: SparseWorld, outcome: int) -> int:
    return int(world.state[outcome])


@compiled
def _mean_of_state(world: TrueWorld, h: int, pair: int, outcome: int) -> float:
    if world.r_next.shape[0] > 0:
        return float(world.r_next[h % world.r_next.shape[0], pair, outcome])
    return float(world.r[h % world.r.shape[0], pair])


@compiled
def _mean_at(world: SparseWorld, h: int, pair: int, outcome: int) -> float:
    if world.r_next.shape[0] > 0:
        return float(world.r_next[h % world.r_next.shape[0], outcome])
    return float(world.r[h % world.r.shape[0], pair])


@compiled
def _known_of_state(known: KnownRewards, h: int, pair: int, outcome: int) -> int:
    if known.r_next.shape[0] > 0:
        return int(known.r_next[h % known.r_next.shape[0], pair, outcome])
    return int(known.r[h % known.r.shape[0], pair])


@compiled
def _known_at(known: ListedRewards, h: int, pair: int, outcome: int) -> int:
    if known.r_next.shape[0] > 0:
        return int(known.r_next[h % known.r_next.shape[0], outcome])
    return int(known.r[h % known.r.shape[0], pair])


@compiled
def _value_of_array(world: TrueWorld, pi: Floats, q: Floats, V: Floats) -> float:
    return start_value(world.P_pairs, world.r, pi, world.start, world.several, q, V)


@compiled
def _value_of_lists(world: SparseWorld, pi: Floats, q: Floats, V: Floats) -> float:
    return sparse_start_value(
        world.first, world.state, world.p, world.r, pi, world.start, world.several, V
    )


_DRAWN: dict[type, Any] = {TrueWorld: _draw_state, SparseWorld: _draw_place}
_STATES: dict[type, Any] = {TrueWorld: _itself, SparseWorld: _state_at}
_MEANS: dict[type, Any] = {TrueWorld: _mean_of_state, SparseWorld: _mean_at}
_KNOWN: dict[type, Any] = {KnownRewards: _known_of_state, ListedRewards: _known_at}
_VALUES: dict[type, Any] = {TrueWorld: _value_of_array, SparseWorld: _value_of_lists}


def draw_outcome(world: World, h: int, s: int, a: int, pair: int, u: float) -> int:
    """The outcome of action a in state s, of their pair, that the uniform number u selects."""
    return int(_DRAWN[type(world)](world, h, s, a, pair, u))


@overload(draw_outcome, jit_options=PART)
def _draw_outcome(world, h, s, a, pair, u):  # type: ignore[no-untyped-def]
    drawn = _DRAWN[world.instance_class]

    def call(world, h, s, a, pair, u):  # type: ignore[no-untyped-def]
        return drawn(world, h, s, a, pair, u)

    return call


def state_after(world: World, outcome: int) -> int:
    """The next state of an outcome."""
    return int(_STATES[type(world)](world, outcome))


@overload(state_after, jit_options=PART)
def _state_after(world, outcome):  # type: ignore[no-untyped-def]
    state = _STATES[world.instance_class]

    def call(world, outcome):  # type: ignore[no-untyped-def]
        return state(world, outcome)

    return call


def mean_reward(world: World, h: int, pair: int, outcome: int) -> float:
    """The mean reward of an outcome, rescaled."""
    return float(_MEANS[type(world)](world, h, pair, outcome))


@overload(mean_reward, jit_options=PART)
def _mean_reward(world, h, pair, outcome):  # type: ignore[no-untyped-def]
    mean = _MEANS[world.instance_class]

    def call(world, h, pair, outcome):  # type: ignore[no-untyped-def]
        return mean(world, h, pair, outcome)

    return call


def known_reward(known: KnownRewards | ListedRewards, h: int, pair: int, outcome: int) -> int:
    """The reward of an outcome as the agent knows it, in units of 2^-20."""
    return int(_KNOWN[type(known)](known, h, pair, outcome))


@overload(known_reward, jit_options=PART)
def _known_reward(known, h, pair, outcome):  # type: ignore[no-untyped-def]
    reward_of = _KNOWN[known.instance_class]

    def call(known, h, pair, outcome):  # type: ignore[no-untyped-def]
        return reward_of(known, h, pair, outcome)

    return call


def value_at_start(world: World, pi: Floats, q: Floats, V: Floats) -> float:
    """The exact value of pi (H, S, A) at the start; q (S*A,) and V (H+1, S) are scratch, whose
    last row is 0.
    """
    return float(_VALUES[type(world)](world, pi, q, V))


@overload(value_at_start, jit_options=PART)
def _value_at_start(world, pi, q, V):  # type: ignore[no-untyped-def]
    value = _VALUES[world.instance_class]

    def call(world, pi, q, V):  # type: ignore[no-untyped-def]
        return value(world, pi, q, V)

    return call


@compiled
def reward(
    world: World,
    known_rewards: KnownRewards | ListedRewards,
    h: int,
    pair: int,
    outcome: int,
    uniforms: Uniforms,
) -> int:
    """What this outcome pays, as the agent counts it. A random reward is drawn even where the agent
    knows the mean: the numbers drawn in a run do not depend on what the agent knows.
    """
    x = mean_reward(world, h, pair, outcome)
    if world.random:
        x = 1.0 if uniform(uniforms) < x else 0.0
    if (
        known_rewards.unknown.shape[0] > 0
        and known_rewards.unknown[h % known_rewards.unknown.shape[0], pair]
    ):
        return int(math.floor(x * REWARD_UNITS))  # noqa: RUF046  (numba gives a float)
    return int(known_reward(known_rewards, h, pair, outcome))


def listed_rewards_from(r: Floats, r_next: Floats, unknown: Bools | None) -> ListedRewards:
    """The known rewards in units of 2^-20, rounded down; r_next (steps, all lists) is aligned
    with a sparse world's.
    """
    return ListedRewards(
        np.floor(r * REWARD_UNITS).astype(np.int64),
        np.floor(r_next * REWARD_UNITS).astype(np.int64),
        np.zeros((0, 0), dtype=np.bool_) if unknown is None else np.array(unknown),
    )
