"""DOPE: Doubly Optimistic and Pessimistic Exploration (Bura et al. 2022)."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.bounds.boxes import BernsteinBox, MaurerPontilBox
from surefoot.bounds.lp import Occupancy, best_in_box, cheapest_in_box
from surefoot.bounds.model import Model
from surefoot.rivals.lp_agent import LPAgent, LPResult, settle


@final
@dataclass(frozen=True, eq=False, repr=False)
class DOPE(LPAgent):
    """The best policy in the best model of the box, by pessimistic costs and optimistic rewards;
    else the baseline.

    Promise (scale 1): with probability at least 1 - delta EVERY episode's expected cost is within
    the budget, or its value at or above the floor, provided the baseline's is. It must know what
    the baseline is worth. Constants are as printed, but with every union counted: what the
    published code leaves out of the logarithm, the box or the fallback is put back. It plays no
    fixed number of baseline episodes first; an infeasible linear program plays the baseline.
    """

    name = "DOPE"
    boxes = (BernsteinBox, MaurerPontilBox)

    _: KW_ONLY
    bounds: BernsteinBox | MaurerPontilBox = BernsteinBox()  # noqa: RUF009  (frozen)

    def find(self, model: Model, basis: Ints | None) -> LPResult:
        """Return the policy that is played next, and why its cost is within the budget.

        P and P' are both in the box, so |P - P'| <= 2b; centring a value at half its range gives
        |(P - P') V| <= H sum b (`across` is H, or what is left of it after step h). Step by step,
        then, V_c(pi; P) <= V_{c_bar}(pi; P') with c_bar = c + H b_bar, for EVERY P' of the box. The
        best policy in the best such P' therefore costs at most C in the true world if its
        pessimistic cost does in P'.
        """
        H, r, start = model.H, self.problem.r_rescaled, self.start
        b, across = self.bounds.b(model, self.episodes), self.bounds.across(H)
        l, u = np.maximum(model.P_hat - b, 0.0), np.minimum(model.P_hat + b, 1.0)  # noqa: E741
        b_bar = b.sum(axis=-1)
        c_bar = self.c + across * b_bar  # pessimistic
        # optimistic, and more so the less slack the baseline leaves
        r_bar = r + (H / self.kappa) * across * b_bar
        more = self.slack(c_bar)

        def prove(pi: Floats) -> float:
            return cheapest_in_box(l, u, start, c_bar, pi) + more

        def solve(budget: float) -> Occupancy:
            return best_in_box(l, u, start, r_bar, c_bar, budget, basis)

        cheapest = cheapest_in_box(l, u, start, c_bar) + more
        if cheapest > self.C:  # too little data: what is left is trust in pi_b
            why = (
                "The linear program is infeasible: no policy's pessimistic cost is below "
                f"{cheapest:.6g}, and the budget is {self.C:.6g}."
            )
            return LPResult(self.baseline, "baseline", prove(self.baseline), why, basis)
        return settle(solve, prove, self.baseline, self.C, cheapest, more, basis)
