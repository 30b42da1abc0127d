"""OptPess-LP (Liu et al. 2021)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from surefoot.agents.plan import Plan
from surefoot.base.arrays import Floats, Ints
from surefoot.bounds.boxes import HoeffdingBox, MaurerPontilBox
from surefoot.bounds.lp import best_occupancy, expected
from surefoot.bounds.model import Model
from surefoot.evidence.counts import Counts
from surefoot.rivals.lp_agent import LPAgent, LPResult, settle


def optpess_lp(
    model: Model,
    pi_b: Floats,
    c: Floats,
    C: float,
    kappa: float,
    b: Floats,
    from_centre: Floats,
    slack: Callable[[Floats], float],
    basis: Ints | None,
) -> LPResult:
    """Return the policy OptPess-LP plays next, and why its cost is within the budget.

    Everything is evaluated in P_hat. |(P - P_hat) V| <= H sum b (`from_centre` is H, or half of
    what is left of it after step h), so step by step V_c(pi; P) <= V_{c_bar}(pi; P_hat) with c_bar
    = c + S H beta. The linear program is solved only once pi_b itself looks cheap enough. `slack`
    is what rounding may add.
    """
    H, r, start, P_hat = model.H, model.problem.r_rescaled, model.problem.start, model.P_hat
    assert start is not None
    D = from_centre * b.sum(axis=-1)  # S H beta, with the printed box
    c_bar = c + D  # pessimistic
    # optimistic: alpha_r beta = (S H + 4 H S H/(C - C_b)) beta
    r_bar = r + (1.0 + 4.0 * H / kappa) * D
    more = slack(c_bar)

    def prove(pi: Floats) -> float:
        return expected(P_hat, start, c_bar, pi) + more

    cost_b, limit = prove(pi_b), C - kappa / 2.0  # (C + C_b)/2
    if cost_b >= limit:
        why = (
            f"The baseline's pessimistic cost is {cost_b:.6g}; the linear program needs one "
            f"below {limit:.6g}."
        )
        return LPResult(pi_b, "baseline", cost_b, why, basis)
    return settle(
        lambda budget: best_occupancy(P_hat, start, r_bar, c_bar, budget, basis),
        prove,
        pi_b,
        C,
        cost_b,
        more,
        basis,
    )


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

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode."""
        model = self.model(counts)
        b, centre = self.bounds.b(model, self.episodes), self.bounds.from_centre(model.H)
        found = optpess_lp(
            model, self.baseline, self.c, self.C, self.kappa, b, centre, self.slack, counts.basis
        )
        return self.make_plan(found._replace(claimed=counts.claimed))
