"""Model: what a bound may use. The estimate of the dynamics, how often it was tried, and the delta of its events."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surefoot.arrays import Floats, Ints
from surefoot.checks import Record, freeze
from surefoot.counts import Counts, check_counts, require_stationary
from surefoot.problem import Problem


class Values(NamedTuple):
    """Bounds for one policy: V_up and V_low are (H+1, S)."""

    policy: Floats
    V_up: Floats
    V_low: Floats


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Model(Record):
    """The estimated world of one plan, written out per step for reading: n_sa (H, S, A), P_hat (H, S, A, S).

    P_hat is n_sas / n_sa where n_sa >= 1 and 1/S elsewhere (Eq. p, with n >= 1 as in the paper's notation table).
    """

    problem: Problem
    n_sas: Ints
    n_sa: Ints
    P_hat: Floats
    delta_prime: float
    pooled: bool

    def __init__(self, problem: Problem, counts: Counts, delta_prime: float) -> None:
        """Pooled counts are repeated for every step, which needs a stationary problem."""
        check_counts(counts, problem, counts.pooled)
        if counts.pooled:
            require_stationary(problem)
        n_sas = np.broadcast_to(counts.n_sas, (problem.H, problem.S, problem.A, problem.S))
        n_sa = n_sas.sum(axis=-1)
        P_hat = np.where(n_sa[..., None] >= 1, n_sas / np.maximum(n_sa, 1)[..., None], 1.0 / problem.S)
        fields = {"problem": problem, "n_sas": n_sas, "n_sa": n_sa, "P_hat": P_hat}
        freeze(self, **fields, delta_prime=delta_prime, pooled=counts.pooled)

    @property
    def H(self) -> int:
        """Steps in an episode."""
        return self.problem.H
