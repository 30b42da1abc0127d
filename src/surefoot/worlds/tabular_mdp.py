"""TabularMDP: the TRUE world. Agents never see one; simulation and exact evaluation do."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import AnyArray, Bools, Floats, Indices
from surefoot.base.validation import (
    FrozenRecord,
    as_floats,
    freeze,
    per_step,
    read_only,
    require_bool,
    require_distributions,
    require_integer,
    require_size,
    where,
)
from surefoot.errors import InvalidModel
from surefoot.numerics import kernels
from surefoot.task.policy import check_policy
from surefoot.task.problem import Problem, signal
from surefoot.task.units import Rescaled, Units, per_step_to_user, with_rescaled


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TabularMDP(FrozenRecord):
    """An episodic world with H steps, S states, A actions, and rewards in `units`. Frozen; arrays are read-only.

    P is (H, S, A, S), or (S, A, S) together with `H` when the dynamics are the same at every step: then they are
    stored once, and `P` is a view of that. r is (H, S, A) or (S, A); or `r_next` (H, S, A, S) or (S, A, S), where the
    reward depends on the next state, and then r is its mean. Every episode starts in s1, or in a state drawn from
    `start` (S,). With `random_rewards` each reward is the highest or the lowest of the units, with mean r or r_next.
    Rewards, floors and values are in `units`; without them, rewards lie in [0, 1]. `Rescaled(r)` is a table in [0, 1].

    `problem` is what an agent knows: all but P. `problem.forget(rewards=True)` is a problem with less knowledge, and
    `with_support()` a world whose agents know which transitions are possible.
    """

    P: Floats  # (H, S, A, S)
    P_rows: Floats  # (H or 1, S, A, S)
    r_rescaled: Floats  # (H, S, A): mean rewards, in 0..1
    r_rows: Floats  # (H or 1, S*A), rescaled
    start: Floats  # (S,)
    random_rewards: bool
    problem: Problem
    name: str
    cost: Floats | None  # (H, S, A): a second signal in [0, 1], where the world has one
    baseline: Floats | None  # (H, S, A): the usual baseline of this world
    suggested_floor: float | None  # a floor under that baseline, in the user's units

    def __init__(
        self,
        P: ArrayLike,
        r: "ArrayLike | Rescaled | None" = None,
        s1: int = 0,
        H: int | None = None,
        *,
        start: ArrayLike | None = None,
        r_next: "ArrayLike | Rescaled | None" = None,
        random_rewards: bool = False,
        support: ArrayLike | None = None,
        units: Units = Units(),  # noqa: B008  (frozen)
        name: str = "",
        cost: ArrayLike | None = None,
        baseline: ArrayLike | None = None,
        suggested_floor: float | None = None,
    ) -> None:
        """Validate the arguments once; nothing is repaired."""
        given_P = as_floats("P", P, InvalidModel)
        if (r is None) == (r_next is None):
            raise InvalidModel("Give the rewards either as r or as r_next (where they depend on the next state).")
        word, axes = ("r", 2) if r_next is None else ("r_next", 3)
        given = r if r_next is None else r_next
        rewards = as_floats(word, given.table if isinstance(given, Rescaled) else given, InvalidModel)
        if H is None and given_P.ndim == 4:
            H = given_P.shape[0]
        if H is None and rewards.ndim == axes + 1:
            H = rewards.shape[0]
        transitions, steps = per_step("P", given_P, ("S", "A", "S"), H)
        if rewards.ndim == axes + 1 and len(rewards) != steps:
            raise InvalidModel(f"{word} has {len(rewards)} steps, but P has {steps}. Make them agree.")
        _, S, A, S_next = transitions.shape
        if S_next != S:
            raise InvalidModel(
                f"P has shape {given_P.shape}: {S} states, but rows over {S_next} next states. They must agree."
            )
        require_distributions("P", given_P, "distributions over next states", InvalidModel)
        if isinstance(start, str):
            raise InvalidModel("The start of a true world is known. Use world.problem.forget(start=True) for agents.")
        stationary = given_P.ndim == 3
        problem = Problem(
            r if r_next is None else None,
            s1=s1,
            H=steps,
            stationary=stationary,
            units=units,
            start=start,
            r_next=r_next,
            support=support,
        )
        if (problem.S, problem.A) != (S, A):
            raise InvalidModel(
                f"{word} is for S = {problem.S}, A = {problem.A}, but P is for S = {S}, A = {A}. "
                f"Expected {word} of shape {(steps, S, A, S)[: axes + 1]}."
            )
        own = transitions.copy()
        mean = problem.r_rows
        if problem.r_next_rows is not None:
            mean = (own.reshape(len(own), S * A, S) * problem.r_next_rows).sum(axis=-1)
        _require_inside(own, problem.support)
        assert problem.start is not None
        freeze(
            self,
            P=np.broadcast_to(own, (steps, S, A, S)),
            P_rows=own,
            r_rescaled=np.broadcast_to(mean.reshape(-1, S, A), (steps, S, A)),
            r_rows=mean,
            start=problem.start,
            random_rewards=require_bool("random_rewards", random_rewards),
            problem=problem,
            name=name,
            cost=None if cost is None else signal("cost", cost, problem, InvalidModel),
            baseline=None if baseline is None else check_policy(baseline, problem, "baseline").copy(),
            suggested_floor=None if suggested_floor is None else _checked_floor(suggested_floor, problem),
        )

    @property
    def r(self) -> Floats:
        """Mean rewards (H, S, A) in the user's units."""
        return per_step_to_user(self.r_rescaled, self.problem.units)

    @property
    def H(self) -> int:
        """The number of steps in an episode."""
        return self.problem.H

    @property
    def S(self) -> int:
        """The number of states."""
        return self.problem.S

    @property
    def A(self) -> int:
        """The number of actions."""
        return self.problem.A

    @property
    def s1(self) -> int:
        """The state in which every episode starts, if there is just one."""
        return self.problem.s1

    @property
    def stationary(self) -> bool:
        """Are the dynamics the same at every step (and stored once)?"""
        return self.problem.stationary

    def at_start(self, V: Floats) -> float:
        """Return the value at the start of values V (S,) of the first step: at s1, or averaged over the start."""
        return float(V[self.s1]) if self.problem.one_start else float(np.cumsum(self.start * V)[-1])

    def mean_reward(self, h: Indices, s: Indices, a: Indices, s_next: Indices) -> Floats:
        """Return the rescaled mean reward of this transition, or of each of these transitions."""
        return self.problem.reward_of(h, s, a, s_next)

    def with_support(self) -> "TabularMDP":
        """Return the same world, whose agents know which transitions are possible: those with P > 0."""
        return _rebuilt(self._arguments() | {"support": self._short(self.P_rows > 0.0)})

    def averaged(self) -> "TabularMDP":
        """Return the same world, whose agents know the mean reward of each pair instead of r_next.

        It is for bounds that need r(s, a), such as the paper's. That the means are known is then a premise of its own.
        """
        mean = np.clip(self.r_rows.reshape(-1, self.S, self.A), 0.0, 1.0)  # rounding may put a mean of ones above 1
        return _rebuilt(self._arguments() | {"r": self._short(mean), "r_next": None})

    def _short(self, rows: AnyArray) -> AnyArray:
        return rows[0] if len(rows) == 1 else rows

    def in_user_units(self, value: float) -> float:
        """Refuse to convert: values are in the user's units already."""
        return self.problem.in_user_units(value)

    def from_user_units(self, value: float) -> float:
        """Refuse to convert: floors are in the user's units."""
        return self.problem.from_user_units(value)

    @cached_property
    def P_pairs(self) -> Floats:
        """P_rows with the pair (s, a) last, the layout of the kernels; made on first use."""
        return read_only(kernels.pairs_last(self.P_rows))

    @property
    def paid_rows(self) -> Floats:
        """r_next as the kernels read it, (H or 1, S*A, S); of size 0 where rewards do not depend on the next state."""
        after = self.problem.r_next_rows
        return read_only(np.zeros((0, 0, 0))) if after is None else after

    def for_kernels(self) -> "kernels.TrueWorld":
        """Return the world as the kernels read it."""
        return kernels.TrueWorld(
            self.P_rows,
            self.P_pairs,
            self.r_rows,
            self.paid_rows,
            self.start,
            not self.problem.one_start,
            self.random_rewards,
        )

    def _arguments(self) -> dict[str, Any]:
        known = self.problem.arguments()
        return {
            "P": self.P_rows[0] if self.stationary else self.P_rows,
            **{word: known[word] for word in ("r", "r_next", "H", "start", "support", "units")},
            "random_rewards": self.random_rewards,
            "name": self.name,
            "cost": self.cost,
            "baseline": self.baseline,
            "suggested_floor": self.suggested_floor,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._arguments(),)

    def __repr__(self) -> str:
        random = ", random rewards)" if self.random_rewards else ")"
        return repr(self.problem).replace("Problem", "TabularMDP")[:-1] + random


def _rebuilt(arguments: dict[str, Any]) -> TabularMDP:
    """Build a copy (see `TabularMDP.__reduce__`)."""
    return TabularMDP(**with_rescaled(arguments))


def _checked_floor(floor: float, problem: Problem) -> float:
    """Return the floor, if an episode can return it."""
    problem.level(floor, "suggested_floor")
    return float(floor)


def _require_inside(P: Floats, support: Bools) -> None:
    """Refuse a mask that is false in the true world."""
    P = np.broadcast_to(P, np.broadcast_shapes(P.shape, support.shape))
    bad = np.argwhere((P > 0.0) & ~support)
    if bad.size:
        raise InvalidModel(f"{where('P', bad[0])} is {P[tuple(bad[0])]:g}, but support says it is impossible.")


def random_mdp(S: int, A: int, H: int, seed: int, stationary: bool = False) -> TabularMDP:
    """Return the paper's synthetic world: rewards uniform on [0, 1], transitions uniform on the simplex, start 0.

    rng = default_rng(seed) draws first all rewards, then all transition rows; `stationary` draws one step's worth.
    """
    sizes = [require_integer(name, size, 1, InvalidModel) for name, size in (("S", S), ("A", A), ("H", H))]
    require_size("P", (1 if stationary else sizes[2], *sizes[:2], sizes[0]), InvalidModel)
    require_size("r", sizes, InvalidModel)
    rng = np.random.default_rng(require_integer("seed", seed, 0, InvalidModel))
    steps = () if stationary else (H,)
    r = rng.random((*steps, S, A))
    P = rng.dirichlet(np.ones(S), size=(*steps, S, A))
    return TabularMDP(P, r, s1=0, H=H)


def require_world(world: object) -> None:
    """Refuse what is not a TabularMDP: exact values need the true model."""
    if not isinstance(world, TabularMDP):
        raise InvalidModel(
            f"Expected a TabularMDP, found {type(world).__name__}. Exact values and simulation need the true "
            "transition probabilities, which a Problem does not have."
        )
