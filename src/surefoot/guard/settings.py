"""Settings of a guard: the range, the floor, delta and its shares, stages."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from surefoot.agents.floors import BaselineFloor, Below, Floor, Relative
from surefoot.agents.plan import premise_status
from surefoot.agents.promise import Promise
from surefoot.base.digest import digest
from surefoot.base.ranges import DeclaredRange
from surefoot.base.validation import (
    freeze,
    require_delta,
    require_integer,
    require_number,
    require_range,
    require_unit,
    told,
)
from surefoot.errors import InvalidSetting
from surefoot.guard.comparison import RUNGS, UNSTAKED
from surefoot.guard.ramp import FloorRule

STAGES = (
    "shares of the coin such as 0.01, or pairs such as (0.5, 200): a share, and settled "
    "episodes it needs"
)
FOR_BASELINE, FOR_FIRST, FOR_OTHERS = 0.45, 0.40, 0.15  # shares of delta
# of the first candidate with the baseline, which then needs no share of its own
FOR_COMPARISON = 0.85
# the probability that a candidate at or above the floor is ever withdrawn: it costs no delta
WITHDRAWAL = 0.1
Stage = float | tuple[float, int]
BY_DEFAULT = Relative(0.05)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a guard is given, fixed before the first episode, and what follows from it."""

    low: float
    high: float
    floor: Floor = BY_DEFAULT
    delta: float = 0.05
    stages: tuple[Stage, ...] = (0.01, 0.1, 0.5, 1.0)
    unit: str = ""

    def __post_init__(self) -> None:
        meaning = "the lowest and the highest return that is possible, low < high"
        low, high = (require_number(name, getattr(self, name), meaning) for name in ("low", "high"))
        require_range("The range of returns is", low, high, meaning, InvalidSetting)
        freeze(self, low=low + 0.0, high=high + 0.0, delta=require_delta(self.delta))
        if isinstance(self.floor, Relative) and low < 0.0:
            raise InvalidSetting(
                "A share of the baseline's value needs returns that are never negative, but they "
                f"may be as low as {low:g}. Use sf.Below(amount), or a floor in units of return."
            )
        if not isinstance(self.floor, BaselineFloor):
            floor = require_number(
                "floor", self.floor, "a number, sf.Relative(0.05) or sf.Below(2.0)"
            )
            if not self.range.admits(floor):
                raise InvalidSetting(
                    f"The floor is {floor:g}, expected a number in the range {low:g} to {high:g}."
                )
            freeze(self, floor=float(self.range.clipped(floor)))
        elif isinstance(self.floor, Below) and self.floor.amount > high - low:
            raise InvalidSetting(
                f"The floor is {self.floor}, expected at most {high - low:g}, the width of the "
                f"range {low:g} to {high:g}: no policy could lose more."
            )
        require_unit("unit", self.unit, InvalidSetting)
        if not isinstance(self.stages, Iterable):
            raise InvalidSetting(f"stages is {told(self.stages)}, expected {STAGES}; () for none.")
        freeze(self, stages=tuple(_stage(stage) for stage in self.stages))
        shares = [share for share, _ in self.ladder]
        if sorted(set(shares)) != shares:
            raise InvalidSetting(
                f"The stages are {shares}, expected shares that rise, such as (0.01, 0.1, 0.5, "
                "1.0)."
            )

    @cached_property
    def ladder(self) -> tuple[tuple[float, int], ...]:
        """The stages, each with the number of settled episodes that it needs."""
        return tuple(stage if isinstance(stage, tuple) else (stage, 0) for stage in self.stages)

    @cached_property
    def range(self) -> DeclaredRange:
        """The range in which every return lies, as it was declared."""
        return DeclaredRange(self.low, self.high)

    @cached_property
    def fingerprint(self) -> str:
        """By what states and tickets of this guard are known."""
        floor = [self.rule.relative, *(str(part) for part in self.rule[1:])]
        settings = [floor, self.low.hex(), self.high.hex(), self.delta.hex(), self.ladder]
        settings += [[RUNGS, *UNSTAKED]] if self.rule.relative else []
        return digest(settings)

    @cached_property
    def rule(self) -> FloorRule:
        """The floor as plans use it."""
        return FloorRule.of(self.floor)

    @property
    def promise(self) -> Promise:
        """What is promised before the first return. `plan.promise` knows what the returns say of
        the premise.
        """
        return self.promise_after(-math.inf)

    def promise_after(self, lower: float) -> Promise:
        """Return the promise, if the baseline is proved to be worth at least this."""
        floor = 0.0 if isinstance(self.floor, BaselineFloor) else self.floor - self.low
        status = premise_status(floor, lower - self.low)
        return Promise("certified", self.delta, "every episode's coin-averaged value", status)

    def share_of_delta(self, p: int) -> float:
        """Return the share of delta of policy p: the baseline, the first candidate, the k-th
        after it.
        """
        if p < 2:
            return ((0.0, FOR_COMPARISON) if self.rule.relative else (FOR_BASELINE, FOR_FIRST))[p]
        k = p - 1
        return FOR_OTHERS / (k * (k + 1))

    def levels(self, p: int) -> tuple[float, float]:
        """Return the levels of the lower and of the upper bound of policy p.

        A bound that plans rest on has its share of delta: for a relative floor the lower one of a
        candidate, which is compared with the baseline. The others are used only to withdraw
        candidates.
        """
        share = self.delta * self.share_of_delta(p)
        other = WITHDRAWAL / 2 if self.rule.relative else WITHDRAWAL
        return (share or other, other)


def _stage(given: object) -> Stage:
    """Return a stage: a share of the coin, or a share with the number of settled episodes that
    it needs.
    """
    share, needed = given if isinstance(given, tuple) and len(given) == 2 else (given, 0)
    number = require_number("A stage", share, STAGES)
    if not 0.0 < number <= 1.0:
        raise InvalidSetting(f"A stage is {number:g}, expected {STAGES}.")
    least = require_integer("What a stage needs", needed, 0, InvalidSetting)
    return (number, least) if least else number
