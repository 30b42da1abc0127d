"""The plan in force: how long it is played, what continues it, and when the agent replans.

Every loop that plays episodes asks here, in Python or around compiled code. The fused loop in the kernels has a version
of its own, which is tested against this one.
"""

from dataclasses import dataclass, replace
from typing import Self

from surefoot.agents.base import CountingAgent
from surefoot.agents.plan import Plan
from surefoot.agents.replanning import Deadline, by_iterations, deadline, is_due
from surefoot.task.counts import Counts


@dataclass(frozen=True)
class PlanInForce:
    """A plan, since when it has been played, and when the rule of replanning ends it.

    `since` is how many episodes were counted when it came into force: when it was computed, or when it continued
    another plan. None: nobody remembers, after a restart; then the agent is asked at every episode what continues it.
    """

    agent: CountingAgent
    plan: Plan
    computed: int  # how many episodes were counted when it, or the plan that it continues, was computed
    end: Deadline
    since: int | None

    @classmethod
    def begin(cls, agent: CountingAgent, plan: Plan, counts: Counts) -> Self:
        """Return a plan that was just computed from these counts."""
        now = counts.episodes
        return cls(agent, plan, now, _deadline(agent, counts, plan.iterations), now)

    @classmethod
    def remembered(cls, agent: CountingAgent, plan: Plan, computed_from: Counts) -> Self:
        """Return a plan of which only the counts that it was computed from are remembered."""
        return replace(cls.begin(agent, plan, computed_from), since=None)

    def next(self, counts: Counts) -> "PlanInForce | None":
        """Return the plan of the next episode: this one, or what continues it. None: the agent must replan."""
        if is_due(self.end, counts):
            return None
        most = self.plan.max_episodes
        if most is None:
            return self
        now = counts.episodes
        if self.since is not None and now < self.since + most:
            return self
        plan = self.agent.continue_plan(self.plan, counts)
        if plan is not None:
            return replace(self, plan=plan, since=now)
        return self if self.since is None and now < self.computed + most else None

    def episodes_left(self, counts: Counts) -> int | None:
        """Return for how many more episodes it is in force, unless visits end it before; None: that is not fixed."""
        ends = [] if self.end.episodes is None else [self.end.episodes]
        if self.plan.max_episodes is not None:
            ends.append((self.computed if self.since is None else self.since) + self.plan.max_episodes)
        return min(ends) - counts.episodes if ends else None

    def episodes_before_growth_counts(self, counts: Counts) -> int:
        """Return for how many more episodes nothing that grows ends it; 0 or less: it may."""
        return self.end.earliest - counts.episodes


def must_replan(agent: CountingAgent, computed_from: Counts, counts: Counts) -> bool:
    """Does the rule end a plan of which only the counts that it was computed from are remembered? False also where that
    depends on the plan, which must be computed again for it."""
    return not by_iterations(agent.replan_rule) and is_due(_deadline(agent, computed_from, 0), counts)


def _deadline(agent: CountingAgent, counts: Counts, iterations: int) -> Deadline:
    """Return when a plan from these counts, of so many iterations, ends."""
    return deadline(agent.replan_rule, counts, agent.return_range is not None, iterations)
