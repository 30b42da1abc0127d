"""Conservative UCBVI (Garcelon et al. 2020): the same switch, with the lower values of the agent
inside.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Self, final

import numpy as np

from surefoot.agents.bpi_ucbvi import BPIUCBVI
from surefoot.agents.promise import Promise
from surefoot.agents.settings import AgentSettings
from surefoot.base.validation import freeze
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem
from surefoot.rivals.budget_agent import BudgetAgent, Proposal
from surefoot.rivals.ucbvi import UCBVI


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConservativeUCBVI(BudgetAgent):
    """Plays the optimistic policy where lower values so far, and V^b for the rest, keep the sum
    above the floor.

    Promise (scale 1): with probability at least 1 - delta, for EVERY k the sum of the first k
    episodes' values is at least k times the floor, provided the baseline's value is. A single
    episode may fall below.

    - baseline_value: V^b, which the method knows; what rests on it is trusted, not certified. Left
      out, the lower value from data is used, and the rule is that of Budget-Exploration. `floor`
      may be `Relative(a)`: (1-a) V^b
    - episodes: given, UCBVI is inside, with its own bonus as printed, in whose logarithm the number
      is. Left out, it is BPI-UCBVI with `bounds`, sharp by default
    - learner: instead, the agent inside, any `UCBVI(...)` or `BPIUCBVI(...)`. Its own lower values
      need baseline_value
    """

    name = "conservative UCBVI"
    not_given = ("episodes", "certificate")

    _: KW_ONLY
    episodes: int | None = None
    learner: UCBVI | BPIUCBVI | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episodes is not None:
            if self.learner is not None:
                raise InvalidSetting("Give either episodes=, for UCBVI inside, or learner=.")
            K, delta, pooled = self.episodes, self.delta, self.pooled
            freeze(
                self,
                learner=UCBVI(self.problem, episodes=K, delta=delta, pooled=pooled),
                episodes=None,
            )
        if self.learner is None:
            return
        if type(self.learner) not in (UCBVI, BPIUCBVI):
            raise InvalidSetting(
                f"learner is {self.learner!r}, expected sf.UCBVI(...) or sf.BPIUCBVI(...): the "
                "switch relies on what its plans prove. For another agent, whose policy is then "
                "certified here, use BudgetExploration."
            )
        if self.learner.delta > self.delta:
            raise InvalidSetting(
                f"The delta of the agent inside is {self.learner.delta:g}, above delta = "
                f"{self.delta:g}."
            )
        if self.baseline_value is None:
            raise InvalidSetting(
                "An agent inside with lower values of its own spends all of delta: give "
                "baseline_value=, which this method must know, or use BudgetExploration."
            )
        self._check_inner(self.learner)

    @classmethod
    def from_settings(cls, problem: Problem, settings: AgentSettings) -> Self:
        """Build the agent: it is given the baseline's value. With the printed constants UCBVI is
        inside.
        """
        given = cls.settings_taken(settings)
        if not settings.sharp:
            own = ("episodes", "delta", "scale", "pooled")
            inside = {name: getattr(settings, name) for name in own}
            given["learner"] = UCBVI(problem, **inside)
        return cls(problem, **given)

    @property
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""
        inner = None if self.learner is None else self.learner.promise
        if inner is not None and inner.kind == "not certified":
            return replace(inner, scope=self.floor_scope)
        return super().promise

    def propose(self, counts: Counts, rng: np.random.Generator | None) -> Proposal:
        """Take the lower value from the plan of the agent inside, or from `bounds`."""
        if self.learner is None:
            return self.propose_by_bounds(counts, self.explored(counts, rng))
        own = self.plan_inside(self.learner, counts, rng)
        assert self.baseline_value is not None
        return Proposal(
            policy=own.policy,
            lower=self.problem.units.from_user(own.lower),
            upper=self.problem.units.from_user(own.upper),
            lower_b=0.0,  # nothing of delta is left to prove anything of the baseline
            v_b=self.given_level,
            certified=own.safety != "NOT CERTIFIED",
            trusts="given value",
        )
