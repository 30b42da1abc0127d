"""StepNoMix: StepMix without the mixing, an ablation from the paper's drafts."""

from dataclasses import dataclass
from typing import final

import numpy as np

from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.plan import Plan, at_most_trusted, exit_taken, safety
from surefoot.base.arrays import Floats
from surefoot.bounds import Bounds, Model
from surefoot.evidence.counts import Counts
from surefoot.model.policy import splice


def step_no_mix(
    model: Model, pi_b: Floats, floor: float, bounds: Bounds, L_b: float = -np.inf
) -> Plan:
    """Return the boldest splice whose lower value reaches the floor, as it is."""
    pi_bar, V_up, V_low = bounds.optimistic(model)
    pi = [splice(pi_b, pi_bar, h0) for h0 in range(model.H + 1)]
    L = [bounds.lower(model, candidate) for candidate in pi]
    L[-1] = max(L[-1], L_b)
    upper = bounds.at_start(model, V_low[0], V_up[0])[1]

    reached = [h0 for h0, low in enumerate(L) if low >= floor]
    if not reached:
        return Plan(
            pi_b, "baseline", model.H, 0.0, L[-1], upper, L, safety(bounds.certified, floor, False)
        )
    h = reached[0]
    if h == 0:
        return Plan(
            pi_bar, "optimistic", 0, 1.0, L[0], upper, L, safety(bounds.certified, floor, True)
        )
    return Plan(
        pi[h],
        exit_taken(h, 0.0, model.H),
        h,
        0.0,
        L[h],
        upper,
        L,
        safety(bounds.certified, floor, True),
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class StepNoMix(FloorAgent):
    """Plays the first certified splice without mixing: StepMix's promise, reached in H+1 jumps
    instead of smoothly.
    """

    name = "StepNoMix"
    mixes = False

    def plan_reference(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """`plan`, by the readable version above: with the optimistic policy."""
        model = self.model(counts)
        floor, L_b = self.standard(model, counts)
        plan = at_most_trusted(
            step_no_mix(model, self.baseline, floor, self.bounds, L_b), self.doubts(counts)
        )
        return self.with_user_units(plan)
