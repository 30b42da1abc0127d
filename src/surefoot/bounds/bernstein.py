"""The paper's Bernstein-type bounds: what they are proved for. Eq. ucbQ and lcbQ are `q_bernstein`
in kernels/bernstein.py, PolicyEva (Eq. ucbV, lcbV) is kernels/splices.py.
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Floats
from surefoot.base.validation import freeze, require_number
from surefoot.bounds.model import Model
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem


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
        return kernels.estimate_from(
            counts.transitions.lists, counts.played, problem.r_rows, log_union, self.scale
        )
