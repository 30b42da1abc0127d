"""The plan in force: how long it is played, what continues it, and when the agent replans.

Every loop that plays episodes asks here, in Python or around compiled code. The fused loop in the kernels has a version
of its own, which is tested against this one.
"""

from dataclasses import dataclass

from surefoot.agents.base import CountingAgent
from surefoot.agents.plan import Plan
from surefoot.agents.replanning import block_length, is_due, limits
from surefoot.base.arrays import Ints
from surefoot.task.counts import Counts


@dataclass(frozen=True)
class PlanInForce:
    """A plan, the counts that it was computed from, and since when it has been played.

    `since` is how many episodes were counted when it came into force: when it was computed, or when it continued
    another plan. None: nobody remembers, after a restart; then the agent is asked at every episode what continues it.
    """

    agent: CountingAgent
    plan: Plan
    computed_from: Counts
    since: int | None

    def next(self, counts: Counts) -> "PlanInForce | None":
        """Return the plan of the next episode: this one, or what continues it. None: the agent must replan."""
        return None if must_replan(self.agent, self.computed_from, counts) else self.continued(counts)

    def continued(self, counts: Counts) -> "PlanInForce | None":
        """Do the same where the rule of replanning has been asked already."""
        most = self.plan.max_episodes
        if most is None:
            return self
        now = self._episodes(counts)
        if self.since is not None and now < self.since + most:
            return self
        plan = self.agent.continue_plan(self.plan, counts)
        if plan is not None:
            return PlanInForce(self.agent, plan, self.computed_from, now)
        if self.since is None and now < self._episodes(self.computed_from) + most:
            return self
        return None

    def episodes_left(self, counts: Counts) -> int | None:
        """Return for how many more episodes it is in force, unless visits end it before; None: that is not fixed."""
        now, computed = self._episodes(counts), self._episodes(self.computed_from)
        ends = []
        block = block_length(self.agent.replan_rule, computed)
        if block is not None:
            ends.append(computed + block)
        if self.plan.max_episodes is not None:
            ends.append((computed if self.since is None else self.since) + self.plan.max_episodes)
        return min(ends) - now if ends else None

    @property
    def visit_limits(self) -> Ints:
        """The visits of each pair that end it; of size 0 where they do not matter."""
        return limits(self.agent.replan_rule, self.computed_from.n_sa)

    def _episodes(self, counts: Counts) -> int:
        """Return how many episodes are counted; counts made by hand need not say how long one is."""
        return int(counts.n_sas.sum()) // self.agent.problem.H


def must_replan(agent: CountingAgent, computed_from: Counts | None, counts: Counts) -> bool:
    """Does the agent's rule ask for a new plan? It does where there is none."""
    return computed_from is None or is_due(agent.replan_rule, computed_from, counts, agent.problem.H)
