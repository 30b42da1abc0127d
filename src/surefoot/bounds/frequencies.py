"""What the counts suggest about the dynamics: means over the next states that were seen, without
any certificate.
"""

from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem
from surefoot.model.transitions import Transitions

# what a pair pays that was never visited, and of which nothing is known: the middle of the range
UNSEEN = 0.5


class Frequencies(NamedTuple):
    """The frequencies of next states in one row of counts, or of other weights. Where a pair was
    never visited, nothing is said.
    """

    pair: Ints  # s * A + a of each transition that was seen
    state: Ints
    n: AnyArray  # how often
    p: Floats  # the frequency: n / n_sa
    n_sa: Ints  # (S, A)

    @classmethod
    def of(cls, transitions: Transitions) -> "list[Frequencies]":
        """Those of each row."""
        visits, (place, state, n) = transitions.n_sa, transitions.entries
        pairs, p, found = visits[0].size, n / visits.reshape(-1)[place], list[Frequencies]()
        ends = np.searchsorted(place, np.arange(len(visits) + 1) * pairs)
        for row, n_sa in enumerate(visits):
            here = slice(ends[row], ends[row + 1])
            found.append(cls(place[here] - row * pairs, state[here], n[here], p[here], n_sa))
        return found

    def mean(self, values: Floats, without: Floats | float) -> Floats:
        """Return the mean (S, A) of a value for each transition that was seen; `without` where
        nothing was.
        """
        return np.where(self.n_sa > 0, self._total(self.p * values), without)

    def ahead(self, V: Floats) -> Floats:
        """Return the mean of V(s') after each pair (S, A); 0 where nothing was seen."""
        return self.mean(V[self.state], 0.0)

    def reached(self, taken: Floats) -> Floats:
        """Return how likely each state comes next after visited pairs, if pairs are taken like
        this (S, A).
        """
        weights = taken.reshape(-1)[self.pair] * self.p
        return np.asarray(
            np.bincount(self.state, weights, minlength=len(self.n_sa)), dtype=np.float64
        )

    def rewards(
        self,
        problem: Problem,
        counts: Counts,
        h: int,
        by_next: float = UNSEEN,
        unknown: float = UNSEEN,
    ) -> Floats:
        """Return mean rewards (S, A) of step h as known or as seen.

        Where a pair was never visited: `by_next` if its reward depends on the next state, `unknown`
        if it is unknown.
        """
        if not problem.pays_by_next:
            return rewards_of_pairs(problem, counts, h, unknown)
        return self.mean(self._paid(problem, h), by_next)

    def paid(self, problem: Problem, counts: Counts, h: int) -> Floats:
        """Return the total rewards of the pairs (S, A), by the rewards of step h."""
        if problem.pays_by_next:
            return self._total(self.n * self._paid(problem, h))
        paid = counts.played[counts.row(h)] * problem.r_rescaled[h]
        if problem.unknown_rows is not None and counts.x_sa is not None:
            paid = np.where(problem.unknown_at(h), counts.x_sa[counts.row(h)] / REWARD_UNITS, paid)
        return np.asarray(paid)

    def _paid(self, problem: Problem, h: int) -> Floats:
        """What each transition that was seen pays at step h."""
        s, a = np.divmod(self.pair, problem.A)
        return problem.reward_of(h, s, a, self.state)

    def _total(self, values: Floats) -> Floats:
        """The sum of these values over the transitions of each pair, (S, A)."""
        total = np.bincount(self.pair, values, minlength=self.n_sa.size)
        return np.asarray(total.reshape(self.n_sa.shape), dtype=np.float64)


def rewards_of_pairs(problem: Problem, counts: Counts, h: int, unseen: float) -> Floats:
    """Return rewards (S, A) of step h that do not depend on the next state: known, or the mean of
    those seen; `unseen` where nothing was seen.
    """
    r = np.asarray(problem.r_rescaled[h])
    if problem.unknown_rows is None or counts.x_sa is None:
        return r
    n, x = counts.played[counts.row(h)], counts.x_sa[counts.row(h)] / REWARD_UNITS
    seen = np.where(n > 0, x / np.maximum(n, 1), unseen)
    return np.asarray(np.where(problem.unknown_at(h), seen, r))
