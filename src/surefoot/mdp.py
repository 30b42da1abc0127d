"""TabularMDP: the TRUE world. Learners never see one; simulation and exact evaluation do."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.arrays import Floats, read_only
from surefoot.checks import (
    Record,
    as_floats,
    freeze,
    require_distributions,
    require_finite,
    require_floor,
    require_integer,
    where,
)
from surefoot.errors import InvalidModel
from surefoot.policy import check_policy
from surefoot.problem import Problem, Units, per_step

LARGEST = 10**9  # probabilities in a random world: 8 GB


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TabularMDP(Record):
    """An episodic world with H steps, S states, A actions, and rewards in [0, 1]. Frozen; arrays are read-only.

    P is (H, S, A, S), or (S, A, S) together with `H` when the dynamics are the same at every step: then they are
    stored once, and `P` is a view of that. r is (H, S, A) or (S, A). Every episode starts in s1.
    """

    P: Floats  # (H, S, A, S)
    P_rows: Floats  # (H or 1, S, A, S)
    problem: Problem
    name: str
    cost: Floats | None  # (H, S, A): a second signal in [0, 1], where the world has one
    baseline: Floats | None  # (H, S, A): the policy people start from here
    suggested_floor: float | None  # a floor under that baseline

    def __init__(
        self,
        P: ArrayLike,
        r: ArrayLike,
        s1: int = 0,
        H: int | None = None,
        *,
        units: Units = Units(),  # noqa: B008  (frozen)
        name: str = "",
        cost: ArrayLike | None = None,
        baseline: ArrayLike | None = None,
        suggested_floor: float | None = None,
    ) -> None:
        """Validate once; nothing is repaired."""
        given_P, given_r = as_floats("P", P, InvalidModel), as_floats("r", r, InvalidModel)
        if H is None and given_P.ndim == 4:
            H = given_P.shape[0]
        if H is None and given_r.ndim == 3:
            H = given_r.shape[0]
        transitions, steps = per_step("P", given_P, ("S", "A", "S"), H)
        if given_r.ndim == 3 and len(given_r) != steps:
            raise InvalidModel(f"r has {len(given_r)} steps, but P has {steps}. Make them agree.")
        _, S, A, S_next = transitions.shape
        if S_next != S:
            raise InvalidModel(
                f"P has shape {given_P.shape}: {S} states, but rows over {S_next} next states. They must agree."
            )
        require_distributions("P", given_P, "distributions over next states", InvalidModel)
        problem = Problem(given_r, s1=s1, H=steps, stationary=given_P.ndim == 3, units=units)
        if (problem.S, problem.A) != (S, A):
            raise InvalidModel(
                f"r is for S = {problem.S}, A = {problem.A}, but P is for S = {S}, A = {A}. "
                f"Expected r of shape ({steps}, {S}, {A})."
            )
        own = transitions.copy()
        freeze(
            self,
            P=np.broadcast_to(own, (steps, S, A, S)),
            P_rows=own,
            problem=problem,
            name=name,
            cost=None if cost is None else _signal("cost", cost, problem),
            baseline=None if baseline is None else check_policy(baseline, problem, "baseline").copy(),
            suggested_floor=None if suggested_floor is None else require_floor(suggested_floor, steps),
        )

    @property
    def H(self) -> int:
        """Steps in an episode."""
        return self.problem.H

    @property
    def S(self) -> int:
        """States."""
        return self.problem.S

    @property
    def A(self) -> int:
        """Actions."""
        return self.problem.A

    @property
    def s1(self) -> int:
        """Where every episode starts."""
        return self.problem.s1

    @property
    def r(self) -> Floats:
        """Rewards (H, S, A)."""
        return self.problem.r

    @property
    def stationary(self) -> bool:
        """Are the dynamics the same at every step (and stored once)?"""
        return self.problem.stationary

    def in_user_units(self, value: float) -> float:
        """A value of this library (0..H) in the units the rewards came in."""
        return self.problem.in_user_units(value)

    def from_user_units(self, value: float) -> float:
        """A floor in the units the rewards came in, as learners take it (0..H)."""
        return self.problem.from_user_units(value)

    @cached_property
    def P_pairs(self) -> Floats:
        """P_rows with the pair (s, a) last, the layout of the kernels; made on first use."""
        return read_only(kernels.pairs_last(self.P_rows))

    def __reduce__(self) -> tuple[Any, ...]:
        r = self.problem.r_rows.reshape(-1, self.S, self.A)
        P = self.P_rows[0] if self.stationary else self.P_rows
        extras = (self.problem.units, self.name, self.cost, self.baseline, self.suggested_floor)
        return _rebuilt, (P, r if len(r) == self.H else r[0], self.s1, self.H, *extras)

    def __repr__(self) -> str:
        return repr(self.problem).replace("Problem", "TabularMDP")


def _rebuilt(
    P: Any, r: Any, s1: int, H: int, units: Units, name: str, cost: Any, baseline: Any, floor: Any
) -> TabularMDP:
    """What a copy is made with."""
    return TabularMDP(P, r, s1, H, units=units, name=name, cost=cost, baseline=baseline, suggested_floor=floor)


def _signal(name: str, values: ArrayLike, problem: Problem) -> Floats:
    """A second signal (H, S, A) or (S, A) with entries in [0, 1], for every step."""
    array = as_floats(name, values, InvalidModel)
    require_finite(name, array, InvalidModel)
    shape = (problem.H, problem.S, problem.A)
    if array.shape not in (shape, shape[1:]):
        raise InvalidModel(f"{name} has shape {array.shape}, expected {shape} or {shape[1:]}.")
    bad = np.argwhere((array < 0.0) | (array > 1.0))
    if bad.size:
        raise InvalidModel(f"{where(name, bad[0])} is {array[tuple(bad[0])]:.10g}, expected a number in [0, 1].")
    return np.broadcast_to(array.copy(), shape)


def random_mdp(S: int, A: int, H: int, seed: int, stationary: bool = False) -> TabularMDP:
    """The paper's synthetic world: rewards uniform on [0, 1], transitions uniform on the simplex, start in state 0.

    rng = default_rng(seed) draws first all rewards, then all transition rows; `stationary` draws one step's worth.
    """
    sizes = [require_integer(name, size, 1, InvalidModel) for name, size in (("S", S), ("A", A), ("H", H))]
    numbers = sizes[0] ** 2 * sizes[1] * (1 if stationary else sizes[2])
    if numbers > LARGEST:
        raise InvalidModel(f"S={S}, A={A}, H={H} make {numbers:.3g} probabilities, expected at most {LARGEST:.0e}.")
    rng = np.random.default_rng(require_integer("seed", seed, 0, InvalidModel))
    steps = () if stationary else (H,)
    r = rng.random((*steps, S, A))
    P = rng.dirichlet(np.ones(S), size=(*steps, S, A))
    return TabularMDP(P, r, s1=0, H=H)


def require_world(world: object) -> None:
    """Exact values need the true model."""
    if not isinstance(world, TabularMDP):
        raise InvalidModel(
            f"Expected a TabularMDP, found {type(world).__name__}. Exact values and simulation need the true "
            "transition probabilities, which a Problem does not have."
        )
