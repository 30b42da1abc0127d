"""The one place where a number of the user's is let into a range that was declared.

Rounding may put a number outside: 0.1 + 0.1 + 0.1 is above 0.3, and the 0.1 of float32 is above
0.1. Such a number is admitted, and counts as the end of the range that it stands for: what is
counted was then possible, and a number that is above the range proves no more than its highest one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Bools, Floats

# Of the width of a range. Rounding to float32 changes a number, and a sum of numbers of one sign,
# by 2^-24 of it; half of the slack is for what adding adds. Rewards are rounded down by eight times
# as much.
SLACK = 2.0**-23
# where a range is far from 0, and rounding changes more than a part of its width: 2^-10 of it
MOST_WIDTHS = 2.0**13


@dataclass(frozen=True)
class DeclaredRange:
    """The lowest and the highest number that is possible, as the user declares it."""

    low: float
    high: float

    @property
    def slack(self) -> float:
        """How far outside a number may be because it was rounded."""
        width, largest = self.high - self.low, max(abs(self.low), abs(self.high))
        return SLACK * max(width, min(largest / 2.0, MOST_WIDTHS * width))

    @cached_property
    def admitted(self) -> tuple[float, float]:
        """The lowest and the highest number that is admitted."""
        return self.low - self.slack, self.high + self.slack

    def outside(self, values: ArrayLike) -> Bools:
        """Say of each number whether it is refused. NaN is."""
        lowest, highest = self.admitted
        x = np.asarray(values, dtype=np.float64)
        return np.asarray(~((x >= lowest) & (x <= highest)))

    def admits(self, value: float) -> bool:
        """Is this number in the range, up to rounding errors?"""
        lowest, highest = self.admitted
        return lowest <= float(value) <= highest

    def clipped(self, values: ArrayLike) -> Floats:
        """Return numbers that are admitted, those outside as the end that they stand for."""
        # Of one number faster than np.clip.
        return np.asarray(np.minimum(np.maximum(values, self.low), self.high))
