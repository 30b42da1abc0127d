"""DOPE: Doubly Optimistic and Pessimistic Exploration (Bura et al. 2022)."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from surefoot.agents.plans import Plan
from surefoot.agents.programmes import SOLVER, TRIES, Found, ProgrammeAgent
from surefoot.arrays import Floats, Ints
from surefoot.bounds.boxes import BernsteinBox, MaurerPontilBox
from surefoot.bounds.model import Model
from surefoot.counts import Counts
from surefoot.lp import best_in_box, cheapest_in_box, policy_from


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
) -> Found:
    """The policy DOPE plays next, and why its cost is within the budget.

    P and P' are both in the box, so |P - P'| <= 2b; centring a value at half its range gives |(P - P') V| <= H sum b
    (`across` is H, or what is left of it after step h). Step by step, then, V_c(pi; P) <= V_{c_bar}(pi; P') with c_bar
    = c + H b_bar, for EVERY P' of the box. The best policy in the best such P' therefore costs at most C in the true
    world if its pessimistic cost does in P'. `slack` is what rounding may add.
    """
    H, r, start = model.H, model.problem.r, model.problem.start
    assert start is not None
    l, u = np.maximum(model.P_hat - b, 0.0), np.minimum(model.P_hat + b, 1.0)  # noqa: E741
    b_bar = b.sum(axis=-1)
    c_bar = c + across * b_bar  # pessimistic
    r_bar = r + (H / kappa) * across * b_bar  # optimistic, and more so the less room the baseline leaves

    more = slack(c_bar)
    cheapest = cheapest_in_box(l, u, start, c_bar) + more
    if cheapest > C:  # too little data: what is left is trust in pi_b
        why = (
            f"The programme is infeasible: no policy's pessimistic cost is below {cheapest:.6g}, the budget is {C:.6g}."
        )
        return Found(pi_b, "baseline", cheapest_in_box(l, u, start, c_bar, pi_b) + more, why, basis)
    less = max(SOLVER, 2.0 * more)
    for _ in range(TRIES):  # what the solver's tolerance lets it spend too much is asked back
        answer = best_in_box(l, u, start, r_bar, c_bar, C - less, basis)
        pi = policy_from(answer.q, pi_b)
        cost = cheapest_in_box(l, u, start, c_bar, pi) + more  # proved without the solver
        if answer.status != "optimal" or cost <= C:
            break
        less += 2.0 * (cost - C)
    if answer.status != "optimal" or cost > C:
        why = f"The programme has no solution that can be used; the solver says {answer.words!r}."
        cost_b = cheapest_in_box(l, u, start, c_bar, pi_b) + more
        room = C - cheapest > 1e-6  # then there is a solution, whatever the solver says
        return Found(pi_b, "baseline", cost_b, why, basis, failed=room or answer.status != "infeasible")
    return Found(pi, "optimistic", cost, f"The best of its programme: {answer.words.lower()}.", answer.basis)


@final
@dataclass(frozen=True, eq=False, repr=False)
class DOPE(ProgrammeAgent):
    """The best policy in the best model of the box, by pessimistic costs and optimistic rewards; else the baseline.

    Promise (scale 1): with probability at least 1 - delta EVERY episode's expected cost is within the budget, or its
    value at or above the floor, provided the baseline's is. It is told what the baseline is worth. Constants as
    printed, but with every union counted: what the published code leaves out of the logarithm, the box or the fallback
    is put back. It plays no fixed number of baseline episodes first; an infeasible programme plays the baseline.
    """

    name = "DOPE"

    _: KW_ONLY
    bounds: BernsteinBox | MaurerPontilBox = BernsteinBox()  # noqa: RUF009  (frozen)

    def __post_init__(self) -> None:
        self._require_box(BernsteinBox, MaurerPontilBox)
        super().__post_init__()

    @property
    def published_baseline_episodes(self) -> int:
        """S^2 A H^3 / (C - C_b)^2: how many episodes the published code begins with on the baseline (not done here)."""
        S, A, H = self.problem.S, self.problem.A, self.problem.H
        return math.ceil(S**2 * A * H**3 / self.kappa**2)

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode."""
        model = self.model(counts)
        b, across = self.bounds.b(model, self.episodes), self.bounds.across(model.H)
        found = dope(model, self.baseline, self.c, self.C, self.kappa, b, across, self.slack, counts.basis)
        return self.make_plan(found)
