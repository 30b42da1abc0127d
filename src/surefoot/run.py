"""Run: what happened when a learner met a world. Exact totals over ALL episodes, and a thinned curve."""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.agents.planning import SOURCES, Source
from surefoot.arrays import Floats, Ints
from surefoot.checks import Record, freeze
from surefoot.counts import Counts


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Curve(Record):
    """One point per bin of consecutive episodes (at most about 2,000): exact means, minima and shares, not samples."""

    episode: Ints  # the first episode of each bin
    episodes: Ints  # how many episodes are in it
    mean: Floats  # mean exact value of the policies played
    min: Floats  # smallest of them
    below: Floats  # share of them below the floor; nan without a floor
    regret: Floats  # cumulative regret at the END of the bin

    def __init__(self, episode: Ints, episodes: Ints, mean: Floats, min: Floats, below: Floats, regret: Floats) -> None:
        """Fields as named; arrays become read-only."""
        freeze(self, episode=episode, episodes=episodes, mean=mean, min=min, below=below, regret=regret)

    def __len__(self) -> int:
        return len(self.episode)


@dataclass(frozen=True, eq=False, repr=False)
class Run(Record):
    """The account of one run. Values are exact expected returns in the true world, in units of return (0..H).

    Episode numbers start at 0; what never happened is None. `promise` is the learner's label and belongs beside every
    number shown: certified, NOT CERTIFIED, or no floor promised.
    """

    agent: str
    promise: str
    episodes: int
    seed: object
    floor: float | None
    optimum: float  # V*
    baseline: float | None  # V^{pi_b}, where the learner has a baseline
    violations: int | None  # episodes with value < floor - 1e-12
    regret: float  # sum over episodes of V* - V^{pi_k}
    min_value: float
    first_mixture: int | None
    first_optimistic: int | None
    sources: dict[Source, int]  # episodes per exit; they sum to `episodes`
    by_h: Ints  # episodes per h = 0..H
    curve: Curve
    counts: Counts  # the learner's state after the last episode
    seconds: float
    interrupted: bool  # Ctrl-C was heard: `episodes` is what was played

    @property
    def off_baseline(self) -> int | None:
        """The first episode that was not the baseline alone."""
        firsts = [k for k in (self.first_mixture, self.first_optimistic) if k is not None]
        return min(firsts) if firsts else None

    @property
    def mean_value(self) -> float:
        """Mean exact value per episode."""
        return self.optimum - self.regret / self.episodes if self.episodes else math.nan

    def __repr__(self) -> str:
        violations = "no floor" if self.violations is None else f"{self.violations} violations of {self.floor:g}"
        return f"Run({self.agent}, {self.episodes} episodes, {violations}, regret={self.regret:.6g}, {self.promise})"


def curve_from(
    done: int, width: int, bin_sum: Floats, bin_min: Floats, bin_below: Ints, optimum: float, floor: float | None
) -> Curve:
    """The bins that were reached, and the regret at the end of each."""
    bins = math.ceil(done / width)
    start = np.arange(bins, dtype=np.int64) * width
    size = np.minimum(start + width, done) - start
    losses = optimum * size - bin_sum[:bins]
    return Curve(
        episode=start,
        episodes=size,
        mean=bin_sum[:bins] / size,
        min=bin_min[:bins].copy(),
        below=bin_below[:bins] / size if floor is not None else np.full(bins, np.nan),
        regret=np.cumsum(losses),
    )


def by_source(counts: Ints) -> dict[Source, int]:
    """The kernels' numbers under their names."""
    return {source: int(counts[i]) for i, source in enumerate(SOURCES)}
