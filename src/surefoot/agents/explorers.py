"""What is mixed with the baseline. Safety rests on the certificate; only how fast one learns depends on this choice.

An explorer is a function of counts and a generator that gives a policy (H, S, A). None is the optimistic policy.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.validation import REWARD_UNITS, freeze, require_number
from surefoot.errors import InvalidSetting
from surefoot.task.counts import Counts
from surefoot.task.policy import greedy
from surefoot.task.problem import Problem

Explorer = Callable[[Counts, np.random.Generator], ArrayLike]


@dataclass(frozen=True, eq=False)
class Thompson:
    """Draws a world from the posterior, a Dirichlet for each pair and a Beta for each unknown reward, and plays its
    best policy. `prior` is the weight of every possible next state before any data."""

    problem: Problem
    prior: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise InvalidSetting(f"The first argument is a {type(self.problem).__name__}, expected a Problem.")
        meaning = "a finite number > 0"
        prior = require_number("prior", self.prior, meaning)
        if not 0.0 < prior < np.inf:
            raise InvalidSetting(f"prior is {prior:g}, expected {meaning}.")
        freeze(self, prior=prior)

    def __call__(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Return the best policy of one sampled world."""
        p = self.problem
        S, A = p.S, p.A
        weights = np.where(p.support, rng.standard_gamma(counts.n_sas + self.prior), 0.0)
        # Gamma(0.05) may underflow to 0 everywhere; then any row is as good
        P = (weights + 1e-300) / (weights + 1e-300).sum(axis=-1, keepdims=True)
        r = self._rewards(counts, rng)
        Q, V = np.zeros((p.H, S, A)), np.zeros(S)
        for h in reversed(range(p.H)):
            row = P[counts.row(h)]
            after = 0.0
            if p.pays_by_next:
                after = (row * p.r_next_at(h)).sum(axis=-1)
            Q[h] = r[h] + after + row @ V
            V = Q[h].max(axis=1)
        return greedy(Q)

    def _rewards(self, counts: Counts, rng: np.random.Generator) -> Floats:
        p = self.problem
        if p.unknown_rows is None or counts.x_sa is None:
            return p.r_rescaled
        heads = counts.x_sa / REWARD_UNITS
        drawn = rng.beta(heads + self.prior, np.maximum(counts.n_sa - heads, 0.0) + self.prior)
        return np.where(p.unknown, drawn, p.r_rescaled)

    def __repr__(self) -> str:
        return f"Thompson(prior={self.prior:g})"
