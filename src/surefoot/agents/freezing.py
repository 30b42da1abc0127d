"""After an alarm: the baseline alone, whatever a plan would have been."""

from surefoot.agents.base import CountingAgent
from surefoot.agents.explanation import SpliceGrounds
from surefoot.agents.plan import Plan
from surefoot.model.policy import EpisodicMixture


def frozen(plan: Plan, agent: CountingAgent, alarm: str) -> Plan:
    """Return the plan after this alarm: only the baseline. One that is frozen already stays as
    it is.
    """
    if plan.frozen:
        return plan
    grounds, policy = plan.grounds, agent.pi_b
    proved = 0.0
    # else nothing was bounded of a baseline
    if isinstance(grounds, SpliceGrounds) and agent.floor is not None:
        proved = max(grounds.by_model, grounds.by_returns, grounds.agent.proved_before)
        grounds = grounds._replace(lower=proved)
    coin = isinstance(plan.policy, EpisodicMixture)
    return Plan(
        policy=EpisodicMixture(policy, plan.policy.second, 0.0) if coin else policy,  # type: ignore[union-attr]
        source="baseline",
        h=agent.problem.H,
        rho=0.0,
        lower=agent.problem.units.to_user(proved),
        upper=plan.upper,
        candidates=plan.candidates,
        label=plan.label,
        safety=plan.safety if plan.safety in ("NOT CERTIFIED", "no floor") else "trusted",
        grounds=grounds,
        alarm=alarm,
    )
