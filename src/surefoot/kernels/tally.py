"""The tally of a run: exact totals over all episodes, and one bin per point of the curve."""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.kernels.jit import compiled
from surefoot.kernels.mixing import MIXTURE, OPTIMISTIC

# Indices of Tally.totals.
DONE, VIOLATIONS, FIRST_MIXTURE, FIRST_OPTIMISTIC, EPISODES_BY_SOURCE = 0, 1, 2, 3, 4
TOTALS = EPISODES_BY_SOURCE + 3


class Tally(NamedTuple):
    """Exact totals over all episodes, and one bin per point of the curve."""

    totals: Ints  # (TOTALS,)
    by_h: Ints  # (H+1,) episodes per h
    smallest: (
        # (2,) the smallest value, and the smallest of what is compared with the floor (of budgets:
        # minus cost)
        Floats
    )
    # (2,) the sum so far of what was above the floor minus what was below it, and its smallest
    # value
    surplus: Floats
    bin_sum: Floats
    bin_min: Floats
    bin_below: Ints
    bin_source: Ints  # (bins, 3) episodes per source
    bin_h: Ints  # (bins, H+1) episodes per h
    width: int  # episodes per bin

    @property
    def done(self) -> int:
        """The number of episodes so far."""
        return int(self.totals[DONE])

    @property
    def violations(self) -> int:
        """The number of episodes below the floor."""
        return int(self.totals[VIOLATIONS])

    @property
    def first_mixture(self) -> int | None:
        """The number of the first episode that played a mixture; None: there was none."""
        return int(self.totals[FIRST_MIXTURE]) if self.totals[FIRST_MIXTURE] >= 0 else None

    @property
    def first_optimistic(self) -> int | None:
        """The number of the first episode that played the optimistic policy; None: there was
        none.
        """
        return int(self.totals[FIRST_OPTIMISTIC]) if self.totals[FIRST_OPTIMISTIC] >= 0 else None

    @property
    def by_source(self) -> Ints:
        """The number of episodes per source, in the order of the sources' numbers."""
        return self.totals[EPISODES_BY_SOURCE:]


@compiled
def add_episode(tally: Tally, value: float, kept: float, source: int, h: int, floor: float) -> None:
    """Add one episode; `kept` is compared with the floor. With a floor of nan no violations are
    counted.
    """
    k = tally.totals[DONE]
    if source == MIXTURE and tally.totals[FIRST_MIXTURE] < 0:
        tally.totals[FIRST_MIXTURE] = k
    if source == OPTIMISTIC and tally.totals[FIRST_OPTIMISTIC] < 0:
        tally.totals[FIRST_OPTIMISTIC] = k
    tally.totals[EPISODES_BY_SOURCE + source] += 1
    tally.by_h[h] += 1
    tally.smallest[0] = min(tally.smallest[0], value)
    tally.smallest[1] = min(tally.smallest[1], kept)
    tally.surplus[0] += kept - floor
    tally.surplus[1] = min(tally.surplus[1], tally.surplus[0])
    b = k // tally.width
    tally.bin_sum[b] += value
    tally.bin_min[b] = min(tally.bin_min[b], value)
    tally.bin_source[b, source] += 1
    tally.bin_h[b, h] += 1
    if kept < floor - VIOLATION_TOLERANCE:
        tally.totals[VIOLATIONS] += 1
        tally.bin_below[b] += 1
    tally.totals[DONE] = k + 1


@compiled
def add_block(
    tally: Tally, value: float, kept: float, source: int, h: int, floor: float, episodes: int
) -> None:
    """Do what `add_episode` does, for so many episodes of the same value."""
    k, left = tally.totals[DONE], episodes
    if source == MIXTURE and tally.totals[FIRST_MIXTURE] < 0:
        tally.totals[FIRST_MIXTURE] = k
    if source == OPTIMISTIC and tally.totals[FIRST_OPTIMISTIC] < 0:
        tally.totals[FIRST_OPTIMISTIC] = k
    tally.totals[EPISODES_BY_SOURCE + source] += episodes
    tally.by_h[h] += episodes
    tally.smallest[0] = min(tally.smallest[0], value)
    tally.smallest[1] = min(tally.smallest[1], kept)
    # linear within a block
    tally.surplus[1] = min(tally.surplus[1], tally.surplus[0] + (kept - floor))
    tally.surplus[0] += episodes * (kept - floor)
    tally.surplus[1] = min(tally.surplus[1], tally.surplus[0])
    while left > 0:
        b = k // tally.width
        n = min(left, (b + 1) * tally.width - k)
        tally.bin_sum[b] += n * value
        tally.bin_min[b] = min(tally.bin_min[b], value)
        tally.bin_source[b, source] += n
        tally.bin_h[b, h] += n
        if kept < floor - VIOLATION_TOLERANCE:
            tally.totals[VIOLATIONS] += n
            tally.bin_below[b] += n
        k += n
        left -= n
    tally.totals[DONE] = k


def coarser(tally: Tally) -> Tally:
    """Return the tally with two bins of consecutive episodes in one: as many bins, of which half
    are in use.
    """
    bins = len(tally.bin_sum)
    half = (bins + 1) // 2

    def paired(array: AnyArray, merge: np.ufunc, empty: float) -> AnyArray:
        even = np.full((2 * half, *array.shape[1:]), empty, dtype=array.dtype)
        even[:bins] = array
        merged = np.full_like(array, empty)
        merged[:half] = merge(even[::2], even[1::2])
        return merged

    return tally._replace(
        bin_sum=paired(tally.bin_sum, np.add, 0.0),
        bin_min=paired(tally.bin_min, np.minimum, np.inf),
        bin_below=paired(tally.bin_below, np.add, 0),
        bin_source=paired(tally.bin_source, np.add, 0),
        bin_h=paired(tally.bin_h, np.add, 0),
        width=2 * tally.width,
    )


def empty_tally(H: int, episodes: int, points: int) -> Tally:
    """An empty tally for a run of `episodes` episodes, with at most `points` bins of equal
    width.
    """
    width = max(1, math.ceil(episodes / points))
    bins = math.ceil(episodes / width)
    totals = np.zeros(TOTALS, dtype=np.int64)
    totals[FIRST_MIXTURE] = totals[FIRST_OPTIMISTIC] = -1
    return Tally(
        totals=totals,
        by_h=np.zeros(H + 1, dtype=np.int64),
        smallest=np.full(2, np.inf),
        surplus=np.array([0.0, np.inf]),
        bin_sum=np.zeros(bins),
        bin_min=np.full(bins, np.inf),
        bin_below=np.zeros(bins, dtype=np.int64),
        bin_source=np.zeros((bins, 3), dtype=np.int64),
        bin_h=np.zeros((bins, H + 1), dtype=np.int64),
        width=width,
    )
