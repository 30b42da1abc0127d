"""Units: those of the user's rewards, and the scale inside, on which rewards lie in 0..1 and
returns in 0..H.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.ranges import DeclaredRange
from surefoot.base.validation import (
    as_floats,
    at_least,
    at_most,
    freeze,
    read_only,
    require_finite,
    require_integer,
    require_number,
    require_range,
    require_unit,
    where,
)
from surefoot.errors import InvalidModel


@dataclass(frozen=True)
class Units:
    """The user's own units: rewards of one step lie in [low, high], in units called `name` ("EUR",
    say).

    Every floor, value and return that a user gives or reads is in these units. Inside, a reward x
    of a step is *rescaled* to (x - low) / (high - low), so that rewards lie in 0..1 and returns in
    0..H.
    """

    low: float = 0.0
    high: float = 1.0
    steps: int = 0  # how many steps of an episode pay; 0: all that the problem has
    name: str = field(default="", compare=False)  # for people

    def __post_init__(self) -> None:
        low, high = (
            require_number("units", x, "two numbers, low < high", InvalidModel)
            for x in (self.low, self.high)
        )
        require_range(
            "units are", low, high, "the lowest and the highest reward of a step", InvalidModel
        )
        require_unit("The name of the units", self.name, InvalidModel)
        low, high = low + 0.0, high + 0.0  # -0.0 is 0
        freeze(
            self, low=low, high=high, steps=require_integer("steps", self.steps, 0, InvalidModel)
        )

    @property
    def scale(self) -> float:
        """What a rescaled 1 is worth in the user's units."""
        return self.high - self.low

    @cached_property
    def range(self) -> DeclaredRange:
        """The range that the reward of a step has, as it was declared."""
        return DeclaredRange(self.low, self.high)

    @property
    def range_text(self) -> str:
        """The range of a reward, to the last bit, by which evidence in other units is
        recognised.
        """
        return f"[{self.low!r}, {self.high!r}]"

    @property
    def own(self) -> bool:
        """Do the user's units differ from the rescaled ones?"""
        return self.scale != 1.0 or self.steps * self.low != 0.0

    @property
    def inside_0_1(self) -> bool:
        """Do all rewards lie in 0..1 anyway? Then none of them says whether it is rescaled."""
        return self.low >= 0.0 and self.high <= 1.0

    def to_user(self, value: float) -> float:
        """Return a rescaled value of a whole episode in the user's units, rounded once:
        `from_user` leads back.
        """
        if not (self.own and math.isfinite(value)):
            return value
        return float(
            self.steps * Fraction(self.low)
            + (Fraction(self.high) - Fraction(self.low)) * Fraction(value)
        )

    def from_user(self, value: float) -> float:
        """Return a value of a whole episode in the user's units, rescaled, rounded once."""
        if not (self.own and math.isfinite(value)):
            return value
        return float(
            (Fraction(value) - self.steps * Fraction(self.low))
            / (Fraction(self.high) - Fraction(self.low))
        )

    def all_to_user(self, values: Floats) -> Floats:
        """Return rescaled values of whole episodes in the user's units."""
        return np.asarray(self.steps * self.low + self.scale * values) if self.own else values

    def step_to_user(self, rewards: Floats) -> Floats:
        """Return rescaled rewards of single steps in the user's units."""
        return np.asarray(self.low + self.scale * rewards)

    def of_a_step(self, rewards: Floats) -> Floats:
        """Return rewards of single steps, which the range admits, rescaled to [0, 1]."""
        return (self.range.clipped(rewards) - self.low) / self.scale

    def to_go(self, V: Floats) -> Floats:
        """Return rescaled values V[h] of the steps from h on, (H, ...) or (H+1, ...), in the
        user's units.
        """
        H = len(V) if V.ndim == 3 else len(V) - 1  # Q has H rows, V has H + 1
        left = np.minimum(self.steps, H - np.arange(len(V)))
        return np.asarray(left.reshape(-1, *[1] * (V.ndim - 1)) * self.low + self.scale * V)

    def admits(self, reward: float) -> bool:
        """Is this reward of one step within the declared range, up to rounding errors?"""
        return self.range.admits(reward)

    def amount(self, value: float) -> str:
        """Return a value in the user's units as text, with the name of the units."""
        return f"{value:.6g} {self.name}".rstrip()

    def at_least(self, value: float) -> str:
        """Return a value that is promised from below, as text that is never above it."""
        return f"{at_least(value)} {self.name}".rstrip()

    def at_most(self, value: float) -> str:
        """Return a value that is promised from above, as text that is never below it."""
        return f"{at_most(value)} {self.name}".rstrip()


class Rescaled(NamedTuple):
    """A table of rewards that was rescaled to [0, 1] before: r' = (r - low) / (high - low)."""

    table: ArrayLike


def with_rescaled(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a problem or world with their tables of rewards, r and r_next,
    marked as rescaled.
    """
    tables = {name: arguments[name] for name in ("r", "r_next") if arguments.get(name) is not None}
    return arguments | {name: Rescaled(table) for name, table in tables.items()}


def require_units(units: object) -> Units:
    """Refuse what is not Units."""
    if not isinstance(units, Units):
        raise InvalidModel(
            f"units is {units!r}, expected sf.Units(low, high): the range that rewards came in."
        )
    return units


def units_for(given: object, H: int, by_user: bool) -> Units:
    """Return the user's units for episodes of H steps; of a table in them, all steps pay."""
    units = require_units(given)
    # one less where a common start was added
    if units.steps not in ((0, H) if by_user else (0, H, H - 1)):
        raise InvalidModel(
            f"units are for {units.steps} steps, but the problem has {H}. Leave steps out."
        )
    return replace(units, steps=H) if units.steps == 0 and units.low != 0.0 else units


def rescaled_rewards(
    name: str, given: "ArrayLike | Rescaled | None", units: Units, unknown: object
) -> ArrayLike | None:
    """Return rewards in the user's units rescaled to [0, 1], 0 where they are unknown; refuse
    what looks rescaled.
    """
    require_units(units)
    if isinstance(given, Rescaled):
        return given.table
    if given is None or (units.low, units.high) == (0.0, 1.0):
        return given
    table = as_floats(name, given, InvalidModel)
    hidden = (
        np.zeros((), dtype=np.bool_) if unknown is None else np.asarray(unknown, dtype=np.bool_)
    )
    try:
        shape = np.broadcast_shapes(table.shape, hidden.shape)
    except ValueError:
        return table  # the shape is refused where masks are checked
    known = ~np.broadcast_to(hidden, shape)
    full = np.where(known, table, units.low)
    require_finite(name, full, InvalidModel)
    bad = np.argwhere(units.range.outside(full))
    if bad.size:
        raise InvalidModel(
            f"{where(name, bad[0])} is {full[tuple(bad[0])]:.10g}, outside the units' range of "
            f"{units.low:g} to {units.amount(units.high)} a step. Declare the range of all rewards "
            "that are possible."
        )
    if (
        not units.inside_0_1
        and known.any()
        and (full[known] >= 0.0).all()
        and (full[known] <= 1.0).all()
    ):
        raise InvalidModel(
            f"Every reward in {name} lies in 0..1, but the units are "
            f"{units.low:g}..{units.amount(units.high)}. If {name} was rescaled to 0..1 before, "
            f"write Problem.rescaled({name}, units), or for a world sf.Rescaled({name}). If it is "
            "in your units, declare the range that it has, such as Units(0, 1), or write "
            f"sf.Rescaled(units.of_a_step({name}))."
        )
    return np.where(known, units.of_a_step(full), 0.0)


def per_step_to_user(rewards: Floats, units: Units) -> Floats:
    """Return rescaled rewards (H, ...) in the user's units. A first step that only leads to the
    start pays nothing.
    """
    if not units.own:
        return rewards
    unpaid = len(rewards) - units.steps if units.steps else 0
    given = units.step_to_user(rewards)
    given[:unpaid] = units.scale * rewards[:unpaid]
    return read_only(given)
