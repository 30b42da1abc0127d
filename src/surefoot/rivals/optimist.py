"""Optimism without a floor, with a bonus of its own: what UCBVI and Menard's BPI-UCBVI have in
common.
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from surefoot.agents.base import WithoutFloor, check_problem, require_known
from surefoot.agents.plan import Plan, Safety
from surefoot.agents.promise import NO_FLOOR, Promise
from surefoot.base.arrays import Floats
from surefoot.base.validation import freeze, require_delta
from surefoot.bounds.boxes import check_scale
from surefoot.bounds.model import margin, require_model
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem


class Optimism(NamedTuple):
    """The optimistic policy, and bounds of its value and of every policy's."""

    policy: Floats
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Optimist(WithoutFloor):
    """An agent that always plays its optimistic policy. `scale` multiplies its bonus; any other
    than 1 is NOT CERTIFIED.
    """

    problem: Problem
    _: KW_ONLY
    delta: float = 0.05
    scale: float = 1.0
    pooled: bool = False
    replan: float | None = None

    def __post_init__(self) -> None:
        require_known(check_problem(self.problem, self.pooled, self.replan), self.name)
        require_model(self.problem, self.name)
        freeze(self, delta=require_delta(self.delta))
        check_scale(self, self.scale)

    @property
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""
        return NO_FLOOR if self.scale == 1.0 else Promise("not certified", scale=self.scale)

    @abstractmethod
    def optimism(self, counts: Counts, start: Floats) -> Optimism:
        """Return the optimistic policy and its bounds, where episodes start like this. Nothing is
        added for rounding.
        """

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """Return the optimistic policy, with what is proved of its value."""
        self.check_counts(counts)
        start, H = self.problem.start, self.problem.H
        assert start is not None
        found = self.optimism(counts, start)
        slack = H * margin(H, abs(float(start.sum()) - 1.0))
        lower, upper = max(found.lower - slack, 0.0), min(found.upper + slack, float(H))
        safety: Safety = "no floor" if self.scale == 1.0 else "NOT CERTIFIED"
        return self.with_user_units(
            Plan(found.policy, "optimistic", 0, 1.0, lower, upper, [lower], safety)
        )

    def __repr__(self) -> str:
        number = "" if self.most_episodes is None else f"episodes={self.most_episodes}, "
        settings = (
            f"{number}delta={self.delta:g}, scale={self.scale:g}, pooled={self.pooled}, "
            f"replan={self.replan_share:g}"
        )
        return f"{type(self).__name__}({self.problem}, {settings})"
