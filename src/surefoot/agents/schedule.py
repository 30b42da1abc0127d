"""The plan in force: how long it is played, what continues it, and when the agent replans.

Every loop that plays episodes asks here, in Python or around compiled code.
"""

from dataclasses import dataclass, replace
from typing import Self

from surefoot.agents.base import CountingAgent
from surefoot.agents.plan import Plan
from surefoot.agents.replanning import block_length
from surefoot.evidence.counts import Counts


@dataclass(frozen=True)
class PlanInForce:
    """A plan, since when it has been played, and when the agent replans.

    `since` is how many episodes were counted when it came into force: when it was computed, or when
    it continued another plan. None: nobody remembers, after a restart; then the agent is asked at
    every episode what continues it.
    """

    agent: CountingAgent
    plan: Plan
    # how many episodes were counted when it, or the plan that it continues, was computed
    computed: int
    until: int  # how many are counted when the agent replans
    since: int | None

    @classmethod
    def begin(cls, agent: CountingAgent, plan: Plan, counts: Counts) -> Self:
        """Return a plan that was just computed from these counts."""
        return cls(agent, plan, counts.episodes, _until(agent, counts), counts.episodes)

    @classmethod
    def remembered(cls, agent: CountingAgent, plan: Plan, computed_from: Counts) -> Self:
        """Return a plan of which only the counts that it was computed from are remembered."""
        return replace(cls.begin(agent, plan, computed_from), since=None)

    def next(self, counts: Counts) -> "PlanInForce | None":
        """Return the plan of the next episode: this one, or what continues it. None: the agent
        must replan.
        """
        now, most = counts.episodes, self.plan.max_episodes
        if now >= self.until:
            return None
        if most is None:
            return self
        if self.since is not None and now < self.since + most:
            return self
        plan = self.agent.continue_plan(self.plan, counts)
        if plan is not None:
            return replace(self, plan=plan, since=now)
        return self if self.since is None and now < self.computed + most else None

    def episodes_left(self, counts: Counts) -> int:
        """Return for how many more episodes it is in force."""
        most = self.plan.max_episodes
        if most is None:
            return self.until - counts.episodes
        began = self.computed if self.since is None else self.since
        return min(self.until, began + most) - counts.episodes


def must_replan(agent: CountingAgent, computed_from: Counts, counts: Counts) -> bool:
    """Must the agent replan, whatever the plan is that it computed from the counts
    `computed_from`?
    """
    return counts.episodes >= _until(agent, computed_from)


def _until(agent: CountingAgent, counts: Counts) -> int:
    """Return how many episodes are counted when an agent that plans from these counts replans."""
    return counts.episodes + block_length(agent.replan_share, counts.episodes)
