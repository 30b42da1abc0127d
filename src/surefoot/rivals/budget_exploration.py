"""Budget-Exploration (Yang et al. 2022), its adaptive form: lower values earn and spend a
budget.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from surefoot.agents.base import Agent
from surefoot.agents.splice_agent import SpliceAgent
from surefoot.base.arrays import Floats
from surefoot.bounds import KL
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.policy import EpisodicMixture, check_policy
from surefoot.rivals.budget_agent import BudgetAgent, Proposal


@final
@dataclass(frozen=True, eq=False, repr=False)
class BudgetExploration(BudgetAgent):
    """Plays the baseline until it has saved enough for an episode of the explorer, spends that, and
    saves again.

    Promise (scale 1): with probability at least 1 - delta, for EVERY k the sum of the first k
    episodes' values is at least k times the floor, provided the baseline's value is. A single
    episode may fall below: such episodes are counted as violations, and expected.

    - learner: the agent inside, any that plans from counts; its policy is certified here, by
      `bounds`. By default BPI-UCBVI with these bounds
    - baseline_value: what the baseline is worth, if that is known; else its lower value from data
      is used. What rests on a value asserted by the user is trusted, not certified
    - delta, bounds, pooled, replan, returns: as for every agent with a floor. A `Relative` floor
      needs baseline_value
    """

    name = "Budget-Exploration"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learner is None:
            return
        if not isinstance(self.learner, Agent):
            raise InvalidSetting(
                f"learner is {self.learner!r}, expected an agent such as sf.UCBVI(...)."
            )
        if not isinstance(self.bounds, KL):
            raise InvalidSetting(
                "The paper's bounds are proved for its own optimistic policy alone, not for "
                "another agent's. Use bounds=sf.KL()."
            )
        self._check_inner(self.learner)
        if isinstance(self.learner, SpliceAgent) and self.learner.rule.by_coin:
            raise InvalidSetting(
                f"{self.learner.name} tosses a coin for whole episodes, which is no Markov policy."
            )

    def propose(self, counts: Counts, rng: np.random.Generator | None) -> Proposal:
        """Bound the explorer's policy by `bounds`."""
        return self.propose_by_bounds(counts, self._explorer_policy(counts, rng))

    def _explorer_policy(self, counts: Counts, rng: np.random.Generator | None) -> Floats | None:
        """Return the policy of the agent inside; None for the optimistic policy, which the
        kernels find themselves.
        """
        if self.learner is None:
            return self.explored(counts, rng)
        inside = self.plan_inside(self.learner, counts, rng)
        if isinstance(inside.policy, EpisodicMixture):
            raise InvalidSetting(
                "The agent inside tosses a coin for whole episodes: that is no policy that can be "
                "bounded."
            )
        return check_policy(inside.policy, self.problem, "the policy of the agent inside")
