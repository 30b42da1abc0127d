"""Conservative UCBVI (Garcelon et al. 2020): the same switch, with the learner's own lower values and V^b known."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from surefoot.agents.budgets import Offer, budget_plan
from surefoot.agents.counting import CountingAgent, check_problem, plan_next
from surefoot.agents.floors import Relative
from surefoot.agents.plans import Plan
from surefoot.agents.replanning import Replan
from surefoot.agents.ucbvi import UCBVI
from surefoot.arrays import Floats
from surefoot.checks import freeze, require_delta, require_floor, require_integer
from surefoot.counts import Counts
from surefoot.errors import InvalidSetting
from surefoot.policy import check_policy
from surefoot.problem import Problem


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConservativeUCBVI(CountingAgent):
    """UCBVI whenever the lower values of what it has played, and V^b for the rest, keep the sum above the floor.

    Promise (scale 1): with probability at least 1 - delta, for EVERY k the sum of the first k episodes' values is at
    least k times the floor. The baseline's value is TOLD to it (`baseline_value`), and what leans on that is trusted,
    not certified. A single episode may fall below. `floor` is a number, or `Relative(a)` for (1-a) V^b, as in the
    paper.

    - learner: any learner whose plans say what is proved of their policies; by default `UCBVI(episodes=..., delta=...)`
    - episodes: how many there will be at most; it is inside UCBVI's logarithm
    """

    name = "conservative UCBVI"
    floor_scope = "the sum of all episodes so far"

    problem: Problem
    baseline: Floats
    floor: float | Relative
    _: KW_ONLY
    baseline_value: float
    episodes: int
    delta: float = 0.05
    scale: float = 1.0
    pooled: bool = False
    replan: Replan | None = None
    learner: CountingAgent | None = None

    def __post_init__(self) -> None:
        problem = check_problem(self.problem, self.pooled, self.replan)
        value = require_floor(self.baseline_value, problem.H, "baseline_value")
        if isinstance(self.floor, Relative):
            if problem.units.low < 0.0:
                raise InvalidSetting("A share of the baseline's value needs rewards that are never negative.")
            freeze(self, floor=self.floor.of(value, problem))
        freeze(
            self,
            baseline=check_policy(self.baseline, problem, "baseline").copy(),
            baseline_value=value,
            floor=require_floor(self.floor, problem.H),
            delta=require_delta(self.delta),
            episodes=require_integer("episodes", self.episodes, 1, InvalidSetting),
        )
        if self.learner is None:
            K, delta, scale, pooled = self.episodes, self.delta, self.scale, self.pooled
            freeze(self, learner=UCBVI(problem, episodes=K, delta=delta, scale=scale, pooled=pooled))
        elif not isinstance(self.learner, CountingAgent) or self.learner.floor is not None:
            raise InvalidSetting(
                f"learner is {self.learner!r}, expected one of ours without a floor, such as sf.UCBVI(...): the switch "
                "relies on what its plans prove."
            )
        elif self.learner.delta > self.delta:
            raise InvalidSetting(f"The learner's delta is {self.learner.delta:g}, above delta = {self.delta:g}.")
        elif repr(self.learner.problem) != repr(problem) or self.learner.pooled != self.pooled:
            raise InvalidSetting("The learner is for another problem, or pools its counts otherwise.")

    @property
    def inside(self) -> CountingAgent:
        """The learner."""
        assert self.learner is not None
        return self.learner

    @property
    def pi_b(self) -> Floats:
        """The baseline."""
        return self.baseline

    @property
    def told_value(self) -> float:
        """Of the baseline."""
        return self.baseline_value

    @property
    def vouched(self) -> float:
        """Safety leans on it."""
        return self.baseline_value

    @property
    def most_episodes(self) -> int | None:
        """What the learner's proof covers."""
        return self.inside.most_episodes

    @property
    def promise(self) -> str:
        """The label of everything this learner produces."""
        if "NOT CERTIFIED" in self.inside.promise:
            return self.inside.promise.split(",")[0]
        return f"certified at delta = {self.delta:g} for {self.floor_scope}, or on the owner's word for the baseline"

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode. Depends on the counts, with their ledger, and on nothing else."""
        self.check_counts(counts)
        own = plan_next(self.inside, counts.copy(), np.random.default_rng(0) if rng is None else rng)
        offer = Offer(
            policy=own.policy,
            lower=own.lower,
            upper=own.upper,
            lower_b=0.0,
            v_b=self.baseline_value,
            certified=own.safety != "NOT CERTIFIED",
        )
        assert isinstance(self.floor, float)
        return budget_plan(self.name, self.promise, self.baseline, self.floor, counts.ledger, offer, told=True)

    def __repr__(self) -> str:
        assert isinstance(self.floor, float)
        settings = f"floor={self.floor:g}, baseline_value={self.baseline_value:g}, delta={self.delta:g}"
        return f"ConservativeUCBVI({self.problem}, {settings}, learner={self.learner}, replan={self.when})"
