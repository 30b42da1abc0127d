"""StepMix (Li et al. 2023, Algorithm 1)."""

from dataclasses import dataclass
from typing import final

import numpy as np

from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.plan import Plan, at_most_trusted, exit_taken, safety
from surefoot.base.arrays import Floats
from surefoot.bounds import Bounds, Model
from surefoot.evidence.counts import Counts
from surefoot.model.policy import splice, step_mixture


def stepmix(model: Model, pi_b: Floats, floor: float, bounds: Bounds, L_b: float = -np.inf) -> Plan:
    """Return the policy StepMix plays next, and why it is safe; values are rescaled to 0..H.

    The two neighbours differ at step h alone, and V is linear in the rule of one step, so on the
    good event
        V^pi = (1-rho) V^h + rho V^{h-1} >= (1-rho) L[h] + rho L[h-1] = floor.
    """
    pi_bar, V_up, V_low = bounds.optimistic(model)  # the optimistic policy
    pi = [splice(pi_b, pi_bar, h0) for h0 in range(model.H + 1)]  # pi_b up to h0, then pi_bar
    L = [bounds.lower(model, candidate) for candidate in pi]  # certified values
    L[-1] = max(L[-1], L_b)  # pi_b: what else is known of it, from its returns or a certificate
    upper = bounds.at_start(model, V_low[0], V_up[0])[1]

    reached = [h0 for h0, low in enumerate(L) if low >= floor]
    if not reached:  # too little data: what is left is trust in pi_b
        return Plan(
            pi_b, "baseline", model.H, 0.0, L[-1], upper, L, safety(bounds.certified, floor, False)
        )
    h = reached[0]
    if h == 0:
        return Plan(
            pi_bar, "optimistic", 0, 1.0, L[0], upper, L, safety(bounds.certified, floor, True)
        )
    # Eq. stepmix1; the kernel takes off a few ulp, towards safety
    rho = (L[h] - floor) / (L[h] - L[h - 1])
    policy = step_mixture(pi[h], pi[h - 1], rho)  # Eq. stepmix2
    return Plan(
        policy,
        exit_taken(h, rho, model.H),
        h,
        rho,
        floor,
        upper,
        L,
        safety(bounds.certified, floor, True),
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class StepMix(FloorAgent):
    """Plays the boldest certified policy "pi_b up to step h, then pi_bar", mixed at one step with
    its bolder neighbour.

    Promise (scale 1): with probability at least 1 - delta EVERY episode's policy has value >=
    floor, provided the baseline has. The baseline's value is not needed; until data certify it, it
    is played on trust.
    """

    name = "StepMix"

    def plan_reference(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """`plan`, by the readable version above: with the optimistic policy."""
        model = self.model(counts)
        floor, L_b = self.standard(model, counts)
        plan = at_most_trusted(
            stepmix(model, self.baseline, floor, self.bounds, L_b), self.doubts(counts)
        )
        return self.with_user_units(plan)
