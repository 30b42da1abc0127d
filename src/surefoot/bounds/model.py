"""Model: what a bound may use: the estimated dynamics, the numbers of visits, and the delta of
its events.
"""

from dataclasses import dataclass

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import FrozenRecord, freeze
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts, require_stationary
from surefoot.evidence.fitting import check_counts, require_no_alarm
from surefoot.model.problem import Problem

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
    notation table). Rows that steps share hold no next state of the last step, and V_{H+1} = 0
    needs none: there n_sa is how often a pair was played, as the formulas mean it. A pair of the
    last step alone would otherwise stay unseen for ever.
    """

    problem: Problem
    n_sa: Ints
    P_hat: Floats
    delta_prime: float

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
        if counts.shared:
            n_sa[-1] = counts.played[0]
        freeze(
            self,
            problem=problem,
            n_sa=n_sa,
            P_hat=P_hat,
            delta_prime=delta_prime,
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
