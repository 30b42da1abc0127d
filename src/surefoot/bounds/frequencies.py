"""What the counts suggest about the dynamics: means over the next states that were seen, without any certificate."""

from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.task.counts import Counts
from surefoot.task.problem import Problem


class Frequencies(NamedTuple):
    """The frequencies of next states in one row of counts. Where a pair was never visited, nothing is said."""

    pair: Ints  # s * A + a of each transition that was seen
    state: Ints
    p: Floats
    n_sa: Ints  # (S, A)

    @classmethod
    def of(cls, counts: Counts, row: int) -> "Frequencies":
        """Those of this row."""
        n_sa = counts.n_sa[row]
        first, last = np.searchsorted(counts.entries.place, [row * n_sa.size, (row + 1) * n_sa.size])
        place, state, n = (part[first:last] for part in counts.entries)
        pair = place - row * n_sa.size
        return cls(pair, state, n / n_sa.reshape(-1)[pair], n_sa)

    def mean(self, values: Floats, without: Floats | float) -> Floats:
        """Return the mean (S, A) of a value for each transition that was seen; `without` where nothing was."""
        total = np.bincount(self.pair, self.p * values, minlength=self.n_sa.size).reshape(self.n_sa.shape)
        return np.where(self.n_sa > 0, total, without)

    def reached(self, taken: Floats) -> Floats:
        """Return how likely each state comes next after visited pairs, if pairs are taken like this (S, A)."""
        weights = taken.reshape(-1)[self.pair] * self.p
        return np.asarray(np.bincount(self.state, weights, minlength=len(self.n_sa)), dtype=np.float64)

    def rewards(self, problem: Problem, counts: Counts, h: int) -> Floats:
        """Return mean rewards (S, A) of step h as known or as seen; the middle of the range where nothing was seen."""
        if problem.pays_by_next:
            s, a = np.divmod(self.pair, problem.A)
            return self.mean(problem.reward_of(h, s, a, self.state), 0.5)
        return rewards_of_pairs(problem, counts, h)


def rewards_of_pairs(problem: Problem, counts: Counts, h: int) -> Floats:
    """Return rewards (S, A) of step h that do not depend on the next state: known, or the mean of those seen; the
    middle of the range where nothing was seen."""
    r = np.asarray(problem.r_rescaled[h])
    if problem.unknown_rows is None or counts.x_sa is None:
        return r
    row = counts.row(h)
    n = counts.n_sa[row]
    seen = np.where(n > 0, counts.x_sa[row] / REWARD_UNITS / np.maximum(n, 1), 0.5)
    return np.asarray(np.where(problem.unknown_at(h), seen, r))
