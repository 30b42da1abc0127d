"""Budget-Exploration (Yang et al. 2022), its adaptive form: lower values earn and spend a budget."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from surefoot import kernels
from surefoot.agents.budgets import Offer, budget_plan
from surefoot.agents.counting import Agent, CountingAgent, plan_next
from surefoot.agents.floors import Relative
from surefoot.agents.planning import FloorAgent
from surefoot.agents.plans import Plan
from surefoot.arrays import Floats, Ints
from surefoot.bounds import KL
from surefoot.checks import freeze, require_floor
from surefoot.counts import Counts
from surefoot.errors import InvalidSetting
from surefoot.policy import EpisodicMixture, check_policy
from surefoot.problem import Problem


@final
@dataclass(frozen=True, eq=False, repr=False)
class BudgetExploration(FloorAgent):
    """Plays the baseline until it has saved enough for an episode of the learner, spends that, and saves again.

    Promise (scale 1): with probability at least 1 - delta, for EVERY k the sum of the first k episodes' values is at
    least k times the floor, provided the baseline's value is. A single episode may fall below: such episodes are
    counted as violations, and expected.

    - learner: any counting learner; its policy is certified here, by `bounds`. By default BPI-UCBVI with these bounds
    - baseline_value: what the baseline is worth, if the method is told; else its lower value from data is used. What
      leans on somebody's word is trusted, not certified
    - delta, bounds, pooled, replan, returns: as for every learner with a floor. A `Relative` floor needs baseline_value
    """

    name = "Budget-Exploration"
    floor_scope = "the sum of all episodes so far"

    _: KW_ONLY
    learner: Agent | None = None
    baseline_value: float | None = None

    def __post_init__(self) -> None:
        if self.baseline_value is not None and isinstance(self.problem, Problem):
            value = require_floor(self.baseline_value, self.problem.H, "baseline_value")
            freeze(self, baseline_value=value, baseline_at_least=value)
            if isinstance(self.floor, Relative):
                self._checked_floor()
                freeze(self, floor=self.floor.of(value, self.problem))
        if isinstance(self.floor, Relative):
            raise InvalidSetting("A floor relative to the baseline needs baseline_value=: the sum is held against it.")
        super().__post_init__()
        if self.baseline_value is None and self.baseline_at_least is not None:
            raise InvalidSetting("Give baseline_value, not baseline_at_least: what the switch counts an episode as.")
        if self.learner is None:
            return
        if not isinstance(self.learner, Agent):
            raise InvalidSetting(f"learner is {self.learner!r}, expected a learner such as sf.UCBVI(...).")
        if not isinstance(self.bounds, KL):
            raise InvalidSetting(
                "The paper's bounds are proved for its own optimistic policy alone, not for another learner's. Use "
                "bounds=sf.KL()."
            )
        if self.explorer is not None:
            raise InvalidSetting("Give either a learner or an explorer: both say what is played off the baseline.")
        if repr(self.learner.problem) != repr(self.problem) or self.learner.pooled != self.pooled:
            raise InvalidSetting("The learner is for another problem, or pools its counts otherwise.")

    @property
    def h0(self) -> Ints:
        """The learner's policy and the baseline."""
        return np.array([0, self.problem.H])

    @property
    def rule(self) -> "kernels.Rule":
        """The kernels only bound the candidates; the switch decides."""
        return self.make_rule(mixes=False, by_coin=False)

    @property
    def told_value(self) -> float | None:
        """Of the baseline."""
        return self.baseline_value

    @property
    def most_episodes(self) -> int | None:
        """What the learner inside covers."""
        return self.learner.most_episodes if isinstance(self.learner, CountingAgent) else None

    def explored(self, counts: Counts, rng: np.random.Generator | None) -> Floats | None:
        """The learner's policy; None for the optimist's, which the kernels find themselves."""
        if self.learner is None:
            return super().explored(counts, rng)
        policy = plan_next(self.learner, counts.copy(), np.random.default_rng(0) if rng is None else rng).policy
        if isinstance(policy, EpisodicMixture):
            raise InvalidSetting("The learner tosses a coin for whole episodes: that is no policy that can be bounded.")
        return check_policy(policy, self.problem, "the learner's policy")

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode. Depends on the counts, with their ledger, and on nothing else."""
        self.check_counts(counts)
        bold = self.explored(counts, rng)
        decision = self.decide(self.evidence(counts.copy(), bold), bold)
        by_data = max(decision.by_model, decision.by_returns)
        told = self.baseline_value is not None
        offer = Offer(
            policy=decision.explorer,
            lower=float(decision.L[0]),
            upper=decision.upper,
            lower_b=by_data,
            v_b=by_data if self.baseline_value is None else self.baseline_value,
            certified=self.bounds.certified,
        )
        assert isinstance(self.floor, float)
        return budget_plan(self.name, self.promise, self.baseline, self.floor, counts.ledger, offer, told)

    def plan_by_the_book(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """`plan`, with bounds by the readable versions."""
        model = self.model(counts)
        bold = self.explored(counts, rng)
        pi_bar, V_up, V_low = self.bounds.optimistic(model)
        pi = pi_bar if bold is None else bold
        by_data = max(self.bounds.lower(model, self.baseline), self.by_returns(counts)[0])
        offer = Offer(
            policy=pi,
            lower=self.bounds.lower(model, pi),
            upper=self.bounds.at_start(model, V_low[0], V_up[0])[1],
            lower_b=by_data,
            v_b=by_data if self.baseline_value is None else self.baseline_value,
            certified=self.bounds.certified,
        )
        assert isinstance(self.floor, float)
        told = self.baseline_value is not None
        return budget_plan(self.name, self.promise, self.baseline, self.floor, counts.ledger, offer, told)
