"""OptPess-LP (Liu et al. 2021)."""

from dataclasses import KW_ONLY, dataclass
from typing import final

from surefoot.base.arrays import Floats, Ints
from surefoot.bounds.boxes import HoeffdingBox, MaurerPontilBox
from surefoot.bounds.lp import Occupancy, best_occupancy, expected
from surefoot.bounds.model import Model
from surefoot.rivals.lp_agent import LPAgent, LPResult, settle


@final
@dataclass(frozen=True, eq=False, repr=False)
class OptPessLP(LPAgent):
    """The best policy of the estimated model, by pessimistic costs and optimistic rewards; else the
    baseline.

    Promise (scale 1): with probability at least 1 - delta EVERY episode's expected cost is within
    the budget, or its value at or above the floor, provided the baseline's is. It must know what
    the baseline is worth.
    """

    name = "OptPess-LP"
    boxes = (HoeffdingBox, MaurerPontilBox)

    _: KW_ONLY
    bounds: HoeffdingBox | MaurerPontilBox = HoeffdingBox()  # noqa: RUF009  (frozen)

    def find(self, model: Model, basis: Ints | None) -> LPResult:
        """Return the policy that is played next, and why its cost is within the budget.

        Everything is evaluated in P_hat. |(P - P_hat) V| <= H sum b (`from_centre` is H, or half of
        what is left of it after step h), so step by step V_c(pi; P) <= V_{c_bar}(pi; P_hat) with
        c_bar = c + S H beta. The linear program is solved only once pi_b itself looks cheap enough.
        """
        H, r, start, P_hat = model.H, self.problem.r_rescaled, self.start, model.P_hat
        b, from_centre = self.bounds.b(model, self.episodes), self.bounds.from_centre(H)
        D = from_centre * b.sum(axis=-1)  # S H beta, with the printed box
        c_bar = self.c + D  # pessimistic
        # optimistic: alpha_r beta = (S H + 4 H S H/(C - C_b)) beta
        r_bar = r + (1.0 + 4.0 * H / self.kappa) * D
        more = self.slack(c_bar)

        def prove(pi: Floats) -> float:
            return expected(P_hat, start, c_bar, pi) + more

        def solve(budget: float) -> Occupancy:
            return best_occupancy(P_hat, start, r_bar, c_bar, budget, basis)

        cost_b, limit = prove(self.baseline), self.C - self.kappa / 2.0  # (C + C_b)/2
        if cost_b >= limit:
            why = (
                f"The baseline's pessimistic cost is {cost_b:.6g}; the linear program needs one "
                f"below {limit:.6g}."
            )
            return LPResult(self.baseline, "baseline", cost_b, why, basis)
        return settle(solve, prove, self.baseline, self.C, cost_b, more, basis)
