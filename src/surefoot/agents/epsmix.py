"""EpsMix (Li et al. 2023, Algorithm 4)."""

from dataclasses import dataclass
from typing import final

import numpy as np

from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.plan import Plan, at_most_trusted, exit_taken, safety
from surefoot.base.arrays import Floats
from surefoot.bounds import Bounds, Model
from surefoot.evidence.counts import Counts
from surefoot.model.policy import EpisodicMixture


def epsmix(model: Model, pi_b: Floats, floor: float, bounds: Bounds, L_b: float = -np.inf) -> Plan:
    """Return the policy EpsMix plays next, and why it is safe; values are rescaled to 0..H.

    The coin is tossed before the episode, so on the good event its average is worth
        V^pi = (1-rho) V^b + rho V^bar >= (1-rho) L_b + rho L_opt = floor.
    """
    pi_bar, V_up, V_low = bounds.optimistic(model)
    L_opt = bounds.lower(model, pi_bar)
    L_b = max(L_b, bounds.lower(model, pi_b))  # <pi_b(.|s), Q(s,.)>, so that pi_b may be stochastic
    upper = bounds.at_start(model, V_low[0], V_up[0])[1]
    L = [L_opt, L_b]

    if L_opt >= floor:
        return Plan(
            EpisodicMixture(pi_b, pi_bar, 1.0),
            "optimistic",
            0,
            1.0,
            L_opt,
            upper,
            L,
            safety(bounds.certified, floor, True),
        )
    if L_b < floor:
        policy = EpisodicMixture(pi_b, pi_bar, 0.0)
        return Plan(
            policy, "baseline", model.H, 0.0, L_b, upper, L, safety(bounds.certified, floor, False)
        )
    rho = (L_b - floor) / (L_b - L_opt)
    policy = EpisodicMixture(pi_b, pi_bar, rho)
    return Plan(
        policy,
        exit_taken(model.H, rho, model.H),
        model.H,
        rho,
        floor,
        upper,
        L,
        safety(bounds.certified, floor, True),
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class EpsMix(FloorAgent):
    """Tosses a coin at the START of each episode: the optimistic policy with probability rho, else
    the baseline.

    Promise (scale 1): with probability at least 1 - delta, for EVERY episode the coin-averaged
    value is >= floor, provided the baseline's is. The policy the coin selects may be below the
    floor: that is what `floor_scope` says. Where each single journey must be played by a policy
    above the floor, use StepMix.
    """

    name = "EpsMix"

    floor_scope = "every episode's coin-averaged value"
    spliced = False
    by_coin = True

    def plan_reference(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """`plan`, by the readable version above: with the optimistic policy."""
        model = self.model(counts)
        floor, L_b = self.standard(model, counts)
        plan = at_most_trusted(
            epsmix(model, self.baseline, floor, self.bounds, L_b), self.doubts(counts)
        )
        return self.with_user_units(plan)
