"""EpsMix (Li et al. 2023, Algorithm 4): two candidates, h0 = 0 and h0 = H, in the kernels that
agents/stepmix.py names. L_b = <pi_b(.|s), Q_low(s,.)>, so that pi_b may be stochastic.

    L_opt >= floor: pi_bar;   else L_b < floor: pi_b;   else
    rho = (L_b - floor) / (L_b - L_opt)

The coin is tossed before the episode, so on the good event its average is worth

    V^pi = (1-rho) V^b + rho V^bar >= (1-rho) L_b + rho L_opt = floor.
"""

from dataclasses import dataclass
from typing import final

from surefoot.agents.floor_agent import FloorAgent


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
