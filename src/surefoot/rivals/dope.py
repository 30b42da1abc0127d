"""DOPE: Doubly Optimistic and Pessimistic Exploration (Bura et al. 2022)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from surefoot.agents.plan import Plan
from surefoot.base.arrays import Floats, Ints
from surefoot.bounds.boxes import BernsteinBox, MaurerPontilBox
from surefoot.bounds.lp import best_in_box, cheapest_in_box
from surefoot.bounds.model import Model
from surefoot.evidence.counts import Counts
from surefoot.rivals.lp_agent import LPAgent, LPResult, settle


def dope(
    model: Model,
    pi_b: Floats,
    c: Floats,
    C: float,
    kappa: float,
    b: Floats,
    across: Floats,
    slack: Callable[[Floats], float],
    basis: Ints | None,
) -> LPResult:
    """Return the policy DOPE plays next, and why its cost is within the budget.

    P and P' are both in the box, so |P - P'| <= 2b; centring a value at half its range gives |(P -
    P') V| <= H sum b (`across` is H, or what is left of it after step h). Step by step, then,
    V_c(pi; P) <= V_{c_bar}(pi; P') with c_bar = c + H b_bar, for EVERY P' of the box. The best
    policy in the best such P' therefore costs at most C in the true world if its pessimistic cost
    does in P'. `slack` is what rounding may add.
    """
    H, r, start = model.H, model.problem.r_rescaled, model.problem.start
    assert start is not None
    l, u = np.maximum(model.P_hat - b, 0.0), np.minimum(model.P_hat + b, 1.0)  # noqa: E741
    b_bar = b.sum(axis=-1)
    c_bar = c + across * b_bar  # pessimistic
    # optimistic, and more so the less slack the baseline leaves
    r_bar = r + (H / kappa) * across * b_bar

    more = slack(c_bar)

    def prove(pi: Floats) -> float:
        return cheapest_in_box(l, u, start, c_bar, pi) + more

    cheapest = cheapest_in_box(l, u, start, c_bar) + more
    if cheapest > C:  # too little data: what is left is trust in pi_b
        why = (
            "The linear program is infeasible: no policy's pessimistic cost is below "
            f"{cheapest:.6g}, and the budget is {C:.6g}."
        )
        return LPResult(pi_b, "baseline", prove(pi_b), why, basis)
    return settle(
        lambda budget: best_in_box(l, u, start, r_bar, c_bar, budget, basis),
        prove,
        pi_b,
        C,
        cheapest,
        more,
        basis,
    )


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

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode."""
        model = self.model(counts)
        b, across = self.bounds.b(model, self.episodes), self.bounds.across(model.H)
        found = dope(
            model, self.baseline, self.c, self.C, self.kappa, b, across, self.slack, counts.basis
        )
        return self.make_plan(found._replace(claimed=counts.claimed))
