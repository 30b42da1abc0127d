"""Problem: everything a learner may know before the first episode."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Floats
from surefoot.checks import Record, as_floats, freeze, require_bool, require_finite, require_integer, where
from surefoot.errors import InvalidModel

LONGEST = 10**6  # steps in an episode; more is a slip of the pen


@dataclass(frozen=True)
class Units:
    """The user's own units: rewards in [low, high] were rescaled to [0, 1] at each of `steps` steps."""

    low: float = 0.0
    high: float = 1.0
    steps: int = 0

    @property
    def scale(self) -> float:
        """What one unit of this library is worth."""
        return self.high - self.low

    @property
    def own(self) -> bool:
        """Do the user's units differ from this library's?"""
        return self.scale != 1.0 or self.steps * self.low != 0.0

    def to_user(self, value: float) -> float:
        """A value of this library in the user's units."""
        return self.steps * self.low + self.scale * value

    def from_user(self, value: float) -> float:
        """A value (a floor, say) in the user's units, as this library counts."""
        return (value - self.steps * self.low) / self.scale

    def admits(self, reward: float) -> bool:
        """Is this reward of one step within the declared range, an ulp or so forgiven?"""
        slack = 1e-9 * self.scale
        return self.low - slack <= reward <= self.high + slack


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem(Record):
    """Sizes, known rewards and start of an episodic task; no transition probabilities.

    r is (H, S, A), or (S, A) together with `H` when rewards are the same at every step. Rewards lie in [0, 1].
    `stationary` is a premise: the transition probabilities do not depend on the step. Only then may counts be pooled.
    """

    H: int
    S: int
    A: int
    r: Floats  # (H, S, A), read-only
    s1: int
    stationary: bool
    units: Units  # how values translate into the user's own units
    r_rows: Floats  # (H or 1, S*A): what the kernels read; one row when rewards are the same at every step

    def __init__(
        self,
        r: ArrayLike,
        s1: int = 0,
        H: int | None = None,
        stationary: bool = False,
        units: Units = Units(),  # noqa: B008  (frozen)
    ) -> None:
        """Validate once; nothing is repaired."""
        given = as_floats("r", r, InvalidModel)
        rewards, steps = per_step("r", given, ("S", "A"), H)
        require_finite("r", given, InvalidModel)
        bad = np.argwhere((rewards < 0.0) | (rewards > 1.0))
        if bad.size:
            raise InvalidModel(
                f"{where('r', bad[0][-given.ndim :])} is {rewards[tuple(bad[0])]:.10g}, expected a reward in [0, 1]. "
                "Rescale rewards and floor together: r' = (r - low) / (high - low) and "
                "floor' = (floor - H low) / (high - low)."
            )
        rows, S, A = rewards.shape
        start = require_integer("s1", s1, 0, InvalidModel)
        if start >= S:
            raise InvalidModel(f"s1 is {start}, expected a state in 0..{S - 1}.")
        r_rows = rewards.reshape(rows, S * A).copy()
        freeze(
            self,
            H=steps,
            S=S,
            A=A,
            r=np.broadcast_to(r_rows.reshape(rows, S, A), (steps, S, A)),
            s1=start,
            stationary=require_bool("stationary", stationary),
            units=units,
            r_rows=r_rows,
        )

    def in_user_units(self, value: float) -> float:
        """A value of this library (0..H) in the units the rewards came in."""
        return self.units.to_user(value)

    def from_user_units(self, value: float) -> float:
        """A floor in the units the rewards came in, as learners take it (0..H)."""
        return self.units.from_user(value)

    def __reduce__(self) -> tuple[Any, ...]:
        rows = self.r_rows.reshape(-1, self.S, self.A)
        return Problem, (rows if len(rows) == self.H else rows[0], self.s1, self.H, self.stationary, self.units)

    def __repr__(self) -> str:
        kind = "stationary" if self.stationary else "step-dependent"
        return f"Problem(S={self.S}, A={self.A}, H={self.H}, s1={self.s1}, {kind})"


def per_step(name: str, array: Floats, axes: tuple[str, ...], H: int | None) -> tuple[Floats, int]:
    """The array with a leading axis of H steps, or of 1 when it is the same at every step; and H."""
    shape = f"({', '.join(axes)})"
    if 0 in array.shape:
        raise InvalidModel(f"{name} has shape {array.shape}: at least one step, one state and one action are needed.")
    if H is not None:
        H = require_integer("H", H, 1, InvalidModel)
        if H > LONGEST:
            raise InvalidModel(f"H is {H}, expected at most {LONGEST} steps.")
    if array.ndim == len(axes):
        if H is None:
            raise InvalidModel(
                f"{name} has shape {array.shape}. An array {shape} holds for all steps: say how many with H=..."
            )
        return array[None], H
    if array.ndim == len(axes) + 1:
        if H is not None and array.shape[0] != H:
            raise InvalidModel(
                f"H is {H}, but {name} has {array.shape[0]} steps (shape {array.shape}). Leave H out, or make them "
                "agree."
            )
        return array, array.shape[0]
    raise InvalidModel(f"{name} has shape {array.shape}, expected (H, {shape[1:]}, or {shape} together with H=...")
