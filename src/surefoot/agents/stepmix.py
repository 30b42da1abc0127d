"""StepMix (Li et al. 2023, Algorithm 1). One kernel plans for the whole family; line by line:

    kernels/splices.py
    pi_bar = argmax_a Q_up, with V_up and V_low                `read_optimistic`
    pi^{h0}: pi_b up to h0, then pi_bar                        `bound_splices`
    L(h0) = V_low of pi^{h0} at the start (PolicyEva)          `read_policy`

    kernels/mixing.py
    L(H): what else is known of pi_b, if that is more          `candidate_values`
    h = the least h0 with L(h0) >= floor; without one, pi_b    `choose`
    h = 0: pi_bar                                              `choose`
    rho = (L(h) - floor) / (L(h) - L(h-1))     Eq. stepmix1    `weight`
    (1-rho) pi^h + rho pi^{h-1}                Eq. stepmix2    `mix_splices`

The two neighbours differ at step h alone, and V is linear in the rule of one step, so on the good
event

    V^pi = (1-rho) V^h + rho V^{h-1} >= (1-rho) L(h) + rho L(h-1) = floor.
"""

from dataclasses import dataclass
from typing import final

from surefoot.agents.floor_agent import FloorAgent


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
