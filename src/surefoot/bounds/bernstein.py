"""The paper's Bernstein-type bounds, written to be read. The kernel of that name evaluates all
candidates at once.
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Floats
from surefoot.base.validation import freeze, require_number
from surefoot.bounds.model import Model, Values, evaluate
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.count_lists import CountLists
from surefoot.model.policy import greedy
from surefoot.model.problem import Problem


def mean(P_hat: Floats, V: Floats) -> Floats:
    """Return p_hat V for every pair, summed in the same order: a matrix product may round equal
    rows differently.
    """
    return np.asarray((P_hat * V).sum(axis=-1))


@dataclass(frozen=True)
class Bernstein:
    """The paper's bounds (Eq. q, ucbQ, lcbQ): valid for pi_bar and for "pi_b up to h0, then
    pi_bar", nothing else.

    On the paper's good event (probability at least 1 - delta for all episodes at once) V_low <=
    V^pi and V* <= V_up, provided pi_b was fixed before the counted data. `scale` multiplies beta
    and beta*. Any scale other than 1 is not covered by the proof: whatever is computed with it is
    NOT CERTIFIED.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        scale = require_number("scale", self.scale, "a finite number >= 0; 1 is the paper's")
        if not 0 <= scale < math.inf:
            raise InvalidSetting(
                f"scale is {self.scale}, expected a finite number >= 0; 1 is the paper's."
            )
        freeze(self, scale=scale)

    @property
    def certified(self) -> bool:
        """Are these bounds the proved ones? A subclass may compute anything, so it is not
        certified.
        """
        return type(self) is Bernstein and self.scale == 1.0

    def share_of(self, delta: float, parts: int) -> float:
        """Return delta' = delta / parts: each of the paper's events has its share."""
        return delta / parts

    def beta(self, model: Model) -> Floats:
        """Return beta(n) = log(SAH/delta') + S log(8e(n+1)), shape (H, S, A)."""
        p = model.problem
        log_union = math.log(p.S * p.A * p.H / model.delta_prime)
        return np.asarray(self.scale * (log_union + p.S * np.log(8 * math.e * (model.n_sa + 1))))

    def beta_star(self, model: Model) -> Floats:
        """Return beta*(n) = log(SAH/delta') + log(8e(n+1)), shape (H, S, A)."""
        p = model.problem
        log_union = math.log(p.S * p.A * p.H / model.delta_prime)
        return np.asarray(self.scale * (log_union + np.log(8 * math.e * (model.n_sa + 1))))

    def q_bounds(self, model: Model, h: int, V_up: Floats, V_low: Floats) -> tuple[Floats, Floats]:
        """Return Q_up and Q_low (S, A) of step h, from V_up and V_low (S,) of the next step (Eq.
        ucbQ, lcbQ).
        """
        H, r, P_hat, n = model.H, model.problem.r_rescaled[h], model.P_hat[h], model.n_sa[h]
        seen = np.maximum(n, 1)
        beta, beta_star = self.beta(model)[h], self.beta_star(model)[h]
        mean_up, mean_low = mean(P_hat, V_up), mean(P_hat, V_low)
        Var = (P_hat * (V_up - mean_up[..., None]) ** 2).sum(axis=-1)

        Q_up = np.minimum(
            H,
            r
            + 3 * np.sqrt(Var * beta_star / seen)
            + 14 * H**2 * beta / seen
            + (1 / H) * (mean_up - mean_low)
            + mean_up,
        )
        Q_low = np.maximum(
            0,
            r
            - 3 * np.sqrt(Var * beta_star / seen)
            - 22 * H**2 * beta / seen
            - (2 / H) * (mean_up - mean_low)
            + mean_low,
        )
        return np.where(n >= 1, Q_up, H), np.where(n >= 1, Q_low, 0.0)

    def optimistic(self, model: Model) -> Values:
        """Return pi_bar = argmax_a Q_up, the first index winning ties, and its bounds (Algorithm
        1, first loop).
        """
        H, S = model.H, model.problem.S
        Q_up = np.zeros((H, S, model.problem.A))
        V_up, V_low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
        for h in reversed(range(H)):
            Q_up[h], Q_low = self.q_bounds(model, h, V_up[h + 1], V_low[h + 1])
            a = Q_up[h].argmax(axis=1)
            V_up[h], V_low[h] = Q_up[h][np.arange(S), a], Q_low[np.arange(S), a]
        return Values(greedy(Q_up), V_up, V_low)

    def evaluate(self, model: Model, pi: Floats) -> Values:
        """Return the bounds of PolicyEva: V_up = <pi, Q_up>, V_low = <pi, Q_low> (Eq. ucbV,
        lcbV).
        """
        return evaluate(self.q_bounds, model, pi)

    def at_start(self, model: Model, V_low: Floats, V_up: Floats) -> tuple[float, float]:
        """Return both bounds at s1: the paper's setting has one first state."""
        return float(V_low[model.problem.s1]), float(V_up[model.problem.s1])

    def lower(self, model: Model, pi: Floats) -> float:
        """Return the lower value of pi at the start: V_low_1(s1) of PolicyEva."""
        return float(self.evaluate(model, pi).V_low[0, model.problem.s1])

    def events(self, problem: Problem, pooled: bool) -> int:
        """Return SAH: the size of the union bound in beta, also when counts are pooled."""
        return problem.S * problem.A * problem.H

    def require(self, problem: Problem) -> None:
        """Refuse a problem that the paper's proof does not cover."""
        if not problem.plain:
            missing = (
                "several first states"
                if not problem.one_start
                else "rewards that depend on the next state"
                if problem.pays_by_next
                else "unknown rewards"
            )
            hint = ""
            if problem.pays_by_next:
                hint = (
                    " For rewards by next state, world.averaged() gives agents their means instead."
                )
            raise InvalidSetting(
                f"The paper's bounds are not proved for {missing}. Use bounds=sf.KL().{hint}"
            )

    def evidence(
        self,
        problem: Problem,
        counts: Counts,
        delta_prime: float,
        rounding: float,
        uppers: bool = False,
    ) -> "kernels.Evidence":
        """Return what the kernels read; SAH in the union also when counts are pooled. It shares
        the counts' array.
        """
        log_union = math.log(self.events(problem, counts.pooled) / delta_prime)
        lists = counts.transitions.for_kernels
        if isinstance(lists, CountLists):
            return kernels.sparse_estimate_from(
                lists, counts.played, problem.r_rows, log_union, self.scale
            )
        return kernels.estimate_from(
            counts.n_sas, counts.played, problem.r_rows, log_union, self.scale
        )
