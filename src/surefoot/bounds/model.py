"""Model: what a bound may use. The estimate of the dynamics, how often it was tried, and the delta of its events."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surefoot.arrays import Floats, Ints
from surefoot.checks import Record, freeze
from surefoot.counts import Counts, check_counts, require_stationary
from surefoot.problem import Problem

QBounds = Callable[["Model", int, Floats, Floats], tuple[Floats, Floats]]


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


def evaluate(q_bounds: QBounds, model: Model, pi: Floats) -> Values:
    """PolicyEva for any family of bounds: V_up = <pi, Q_up>, V_low = <pi, Q_low> (Eq. ucbV, lcbV), backwards in h."""
    V_up, V_low = np.zeros((model.H + 1, model.problem.S)), np.zeros((model.H + 1, model.problem.S))
    for h in reversed(range(model.H)):
        Q_up, Q_low = q_bounds(model, h, V_up[h + 1], V_low[h + 1])
        V_up[h], V_low[h] = (pi[h] * Q_up).sum(axis=1), (pi[h] * Q_low).sum(axis=1)
    return Values(pi, V_up, V_low)
