"""Model: what a bound may use: the estimated dynamics, the numbers of visits, and the delta of
its events.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.validation import REWARD_UNITS, FrozenRecord, freeze
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts, require_stationary
from surefoot.evidence.fitting import check_counts, require_no_alarm
from surefoot.model.problem import Problem

QBounds = Callable[["Model", int, Floats, Floats], tuple[Floats, Floats]]


class Values(NamedTuple):
    """Bounds for one policy: V_up and V_low are (H+1, S)."""

    policy: Floats
    V_up: Floats
    V_low: Floats


MOST = 2**26  # numbers of P_hat: half a gigabyte, and bounds take several such arrays
# per step and unit of H, taken off every lower value: more than all rounding errors of a backup
MARGIN = 1e-12


def margin(H: int, row_sum_error: float) -> float:
    """Return the margin of each backup: for rounding errors, and for rows of a policy that do
    not sum to exactly 1.
    """
    return H * (MARGIN + row_sum_error)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Model(FrozenRecord):
    """The estimated world of one plan, with one row per step: n_sa (H, S, A), P_hat (H, S, A, S).

    P_hat is n_sas / n_sa where n_sa >= 1 and 1/S elsewhere (Eq. p, with n >= 1 as in the paper's
    notation table). x_sa (H, S, A) are sums of rewards x where those are unknown, over the visits
    `played`; z_sa those of x (1 - x). In rows that steps share, n_sa has no visits of the last
    step, and `played` has them all. `support` (H, S, A, S) is the mask of next states.
    """

    problem: Problem
    n_sas: Ints
    n_sa: Ints
    played: Ints
    P_hat: Floats
    x_sa: Floats
    z_sa: Floats
    n_start: Ints
    support: Bools
    delta_prime: float
    pooled: bool

    def __init__(self, problem: Problem, counts: Counts, delta_prime: float) -> None:
        """Estimate the model. Pooled counts are repeated for every step, which requires a
        stationary problem.
        """
        check_counts(counts, problem, counts.pooled)
        require_no_alarm(counts)
        if counts.pooled:
            require_stationary(problem)
        H, S, A = problem.H, problem.S, problem.A
        require_model(problem, "P_hat")
        n_sas = np.broadcast_to(counts.n_sas, (H, S, A, S))
        n_sa = n_sas.sum(axis=-1)
        P_hat = np.where(n_sa[..., None] >= 1, n_sas / np.maximum(n_sa, 1)[..., None], 1.0 / S)
        x_sa, z_sa = (
            np.zeros((1, S, A)) if sums is None else sums / REWARD_UNITS
            for sums in (counts.x_sa, counts.z_sa)
        )
        freeze(
            self,
            problem=problem,
            n_sas=n_sas,
            n_sa=n_sa,
            played=np.broadcast_to(counts.played, (H, S, A)),
            P_hat=P_hat,
            x_sa=np.broadcast_to(x_sa, (H, S, A)),
            z_sa=np.broadcast_to(z_sa, (H, S, A)),
            n_start=counts.n_start.copy(),
            support=np.broadcast_to(problem.support, (H, S, A, S)),
            delta_prime=delta_prime,
            pooled=counts.pooled,
        )

    @property
    def H(self) -> int:
        """The number of steps in an episode."""
        return self.problem.H


def require_model(problem: Problem, whose: str) -> None:
    """Refuse a problem with too many states for an estimated model, before any number of it is
    made.
    """
    instead = "StepMix, EpsMix, StepNoMix and BPI-UCBVI"
    require_few(MOST, f"{whose} has", instead, problem.H, problem.S, problem.A)


def require_few(most: int, what: str, instead: str, H: int, S: int, A: int) -> None:
    """Refuse a number for every next state of every pair where there are too many, before any is
    made.
    """
    numbers = H * S * A * S
    if numbers > most:
        raise InvalidSetting(
            f"{what} a number for every next state of every pair: H x S x A x S = {H} x {S} x {A} "
            f"x {S}, expected at most {most:,} in all. Use coarser states, or what runs over the "
            f"next states that were seen: {instead}."
        )


def evaluate(q_bounds: QBounds, model: Model, pi: Floats) -> Values:
    """Evaluate pi by any family of bounds (PolicyEva): V_up = <pi, Q_up>, V_low = <pi, Q_low>
    (Eq. ucbV, lcbV).
    """
    V_up, V_low = np.zeros((model.H + 1, model.problem.S)), np.zeros((model.H + 1, model.problem.S))
    for h in reversed(range(model.H)):
        Q_up, Q_low = q_bounds(model, h, V_up[h + 1], V_low[h + 1])
        V_up[h], V_low[h] = (pi[h] * Q_up).sum(axis=1), (pi[h] * Q_low).sum(axis=1)
    return Values(pi, V_up, V_low)
