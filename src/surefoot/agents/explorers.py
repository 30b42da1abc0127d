"""What is mixed with the baseline. Safety rests on the certificate; only how fast one learns
depends on this choice.

An explorer is a function of counts and a generator that gives a policy (H, S, A). None is the
optimistic policy.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.validation import REWARD_UNITS, freeze, require_number
from surefoot.bounds.frequencies import Frequencies
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.count_lists import Entries
from surefoot.model.given_rows import SMALL
from surefoot.model.policy import greedy
from surefoot.model.problem import Problem
from surefoot.model.transitions import Transitions

Explorer = Callable[[Counts, np.random.Generator], ArrayLike]


@dataclass(frozen=True, eq=False)
class Thompson:
    """Draws a world from the posterior, a Dirichlet for each pair and a Beta for each unknown
    reward, and plays its best policy. `prior` is the weight of every possible next state before any
    data.
    """

    problem: Problem
    prior: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise InvalidSetting(
                f"The first argument is a {type(self.problem).__name__}, expected a Problem."
            )
        meaning = "a finite number > 0"
        prior = require_number("prior", self.prior, meaning)
        if not 0.0 < prior < np.inf:
            raise InvalidSetting(f"prior is {prior:g}, expected {meaning}.")
        freeze(self, prior=prior)
        self._require_few(1 if self.problem.stationary else self.problem.H)

    def _require_few(self, rows: int) -> None:
        """Refuse a problem in which too many next states are possible to draw a weight for each
        of them.
        """
        weights = self._weights(rows)
        if weights > SMALL:
            raise InvalidSetting(
                f"Thompson draws a weight for each possible next state of each pair: {weights:.3g} "
                f"for a plan in {self.problem}, expected at most {SMALL:,}. Say which next states "
                "are possible (support=...), or leave the explorer out: the optimistic policy "
                "needs only those that were seen."
            )

    def _weights(self, rows: int) -> int:
        """Return how many weights are drawn: one for each possible next state of each pair, in
        each row of counts.
        """
        return self.problem.limits.possible(rows)

    def __call__(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Return the best policy of one sampled world."""
        p = self.problem
        drawn, r = self._drawn(counts, rng), self._rewards(counts, rng)
        Q, V = np.zeros((p.H, p.S, p.A)), np.zeros(p.S)
        for h in reversed(range(p.H)):
            there = drawn[counts.row(h)]
            paid = there.rewards(p, counts, h) if p.pays_by_next else r[h]
            Q[h] = paid + there.ahead(V)
            V = Q[h].max(axis=1)
        return greedy(Q)

    def _drawn(self, counts: Counts, rng: np.random.Generator) -> list[Frequencies]:
        """Return a weight for each possible next state of each pair, row by row: in place of the
        counts.
        """
        p, (rows, S, A) = self.problem, counts.shape
        self._require_few(rows)
        place, state, n = counts.entries
        possible = p.limits.filled(rows, S)
        visits = np.zeros(len(possible.state))
        at, listed = possible.find(place, state)
        visits[at[listed]] = n[listed]
        # Gamma(0.05) may underflow to 0 everywhere; then any row is as good
        weights = rng.standard_gamma(visits + self.prior) + 1e-300
        return Frequencies.of(
            Transitions.of(Entries(possible.places, possible.state, weights), (rows, S, A))
        )

    def _rewards(self, counts: Counts, rng: np.random.Generator) -> Floats:
        p = self.problem
        if p.unknown_rows is None or counts.x_sa is None:
            return p.r_rescaled
        heads = counts.x_sa / REWARD_UNITS
        drawn = rng.beta(heads + self.prior, np.maximum(counts.played - heads, 0.0) + self.prior)
        return np.where(p.unknown, drawn, p.r_rescaled)

    def __repr__(self) -> str:
        return f"Thompson(prior={self.prior:g})"
