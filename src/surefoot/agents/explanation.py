"""Why a plan, in words: how delta is spent, what was proved by what, which pairs bind, and what is taken on trust."""

from typing import NamedTuple, Protocol

import numpy as np

from surefoot.agents.explorers import Explorer
from surefoot.agents.floors import Floor, Relative
from surefoot.agents.plan import Plan
from surefoot.agents.premises import PremiseStatus, premise_status
from surefoot.agents.returns import Returns, returns_range
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import at_least, at_most
from surefoot.bounds import KL, Bounds, Certificate
from surefoot.bounds.binding import binding_pairs
from surefoot.numerics import kernels
from surefoot.task.counts import Counts
from surefoot.task.problem import Problem


class Planner(Protocol):
    """What an explanation asks of the agent that made a plan."""

    @property
    def problem(self) -> Problem: ...  # noqa: D102
    @property
    def pi_b(self) -> Floats: ...  # noqa: D102
    @property
    def floor(self) -> Floor | None: ...  # noqa: D102
    @property
    def bounds(self) -> Bounds: ...  # noqa: D102
    @property
    def pooled(self) -> bool: ...  # noqa: D102
    @property
    def explorer(self) -> Explorer | None: ...  # noqa: D102
    @property
    def returns(self) -> Returns | None: ...  # noqa: D102
    @property
    def certificate(self) -> Certificate | None: ...  # noqa: D102
    @property
    def h0(self) -> Ints: ...  # noqa: D102
    @property
    def rule(self) -> "kernels.Rule": ...  # noqa: D102
    @property
    def premise(self) -> PremiseStatus: ...  # noqa: D102
    @property
    def proved_before(self) -> float: ...  # noqa: D102
    @property
    def delta(self) -> float: ...  # noqa: D102
    @property
    def delta_in_all(self) -> float: ...  # noqa: D102
    @property
    def delta_model(self) -> float: ...  # noqa: D102
    @property
    def delta_prime(self) -> float: ...  # noqa: D102
    def evidence(self, counts: Counts, explorer_policy: Floats | None = None) -> "Known": ...  # noqa: D102


Known = tuple["kernels.Evidence", "kernels.Start", "kernels.BaselineReturns"]


class Grounds(NamedTuple):
    """What a plan was made from."""

    agent: "Planner"
    counts: Counts  # as they were
    floor: float  # what lower values were held against; of a relative floor, what it came to
    by_model: float  # the baseline's lower value by the model
    by_returns: float  # by its returns; -inf where these are not evidence
    asserted: float  # by the owner's word; -inf where there is none
    bolder: Floats  # the policy of the candidate that was just not certified (of the one played, if it is the boldest)
    V_low: Floats  # (H+1, S): its lower values
    explorer: Floats  # (H, S, A): what is mixed with the baseline
    U: float  # of a relative floor: the baseline's value is at most this

    @property
    def premise(self) -> PremiseStatus:
        """How well it is known that the baseline is above the floor, these data included."""
        agent = self.agent
        declared = agent.returns is not None and agent.returns.declared  # then returns lean on somebody's word
        by_data, by_word = (-np.inf, self.by_returns) if declared else (self.by_returns, -np.inf)
        if not agent.bounds.certified:
            return agent.premise
        return premise_status(
            agent.rule.floor, max(self.by_model, by_data, agent.proved_before), max(self.asserted, by_word)
        )

    def explain(self, plan: Plan) -> str:
        """In words."""
        return explanation(plan, self)


def explanation(plan: Plan, grounds: Grounds) -> str:
    """The whole of it, paragraph by paragraph; values in the user's own units."""
    parts = [_verdict(plan, grounds)]
    if plan.safety != "NOT CERTIFIED":
        parts += [_evidence(grounds), _delta(grounds), _binding(plan, grounds)]
    parts.append(_premises(plan, grounds))
    return "\n\n".join(part for part in parts if part)


def _shown(grounds: Grounds, value: float) -> str:
    return f"{grounds.agent.problem.in_user_units(value):.6g}"


def _proved(grounds: Grounds, value: float) -> str:
    """A lower value, not rounded up."""
    return at_least(grounds.agent.problem.in_user_units(value))


def _verdict(plan: Plan, grounds: Grounds) -> str:
    agent, H = grounds.agent, grounds.agent.problem.H
    what = {
        "optimistic": "the explorer's policy" if agent.explorer is not None else "the optimistic policy",
        "baseline": "the baseline",
        "mixture": f"the explorer with probability {plan.rho:.4g}, else the baseline, for the whole episode"
        if agent.rule.by_coin
        else f"the baseline before step {plan.h}, the explorer after it; at step {plan.h} the explorer with chance "
        f"{plan.rho:.4g}, else the baseline",
    }[plan.source]
    if agent.rule.floor == -np.inf:
        scaled = f"NOT CERTIFIED: the bonus was scaled by {agent.bounds.scale:g}, which no proof covers. "
        return f"Next: {what}. {scaled * (not agent.bounds.certified)}This learner keeps no floor."
    kept = "the floor"
    relative = agent.floor if isinstance(agent.floor, Relative) else None
    if relative is not None:
        kept = f"{relative}'s value (a floor of at most {_shown(grounds, grounds.floor)})"
    floor = f"{kept} of {_shown(grounds, grounds.floor)}" if kept == "the floor" else kept
    why = {
        "certified": f"Certified: on an event of probability at least {1 - agent.delta_in_all:g} this is worth at "
        f"least {_proved(grounds, plan.lower)}, and {floor} is kept",
        "trusted": f"Trusted, not certified: nothing in the data proves {floor} yet; what is proved is "
        f"{_proved(grounds, plan.lower)}. It rests on the baseline being above the floor",
        "NOT CERTIFIED": f"NOT CERTIFIED: the bonus was scaled by {agent.bounds.scale:g}, which no proof covers",
        "no floor": "No floor is kept",
    }[plan.safety]
    if plan.safety == "trusted" and grounds.asserted > -np.inf and grounds.asserted >= grounds.floor:
        why = (
            f"Trusted, not certified: {floor} is kept if the baseline is worth at least "
            f"{_shown(grounds, grounds.asserted)}, for which the owner vouches"
        )
    if plan.source == "baseline" and relative is not None and plan.safety == "certified":
        why = "Certified by definition: the floor is measured from the baseline itself"
    top = f"No policy is worth more than {at_most(agent.problem.in_user_units(plan.upper))}."
    if plan.safety == "NOT CERTIFIED":
        top = "Nothing is proved, neither of this policy nor of any other."
    premise = "" if plan.safety == "NOT CERTIFIED" else f"\nBaseline above the floor: {grounds.premise}."
    return f"Next: {what} (h = {plan.h} of {H}, rho = {plan.rho:.4g}).\n{why}. {top}{premise}"


def _evidence(grounds: Grounds) -> str:
    agent = grounds.agent
    if len(agent.h0) == 1:  # no baseline among the candidates
        return ""
    counted = grounds.counts
    lines = [f"The baseline is worth at least, after {counted.n_sas.sum() // agent.problem.H:,} episodes:"]
    lines.append(
        f"  {_proved(grounds, grounds.by_model):>10}  by the model of the dynamics ({type(agent.bounds).__name__})"
    )
    if agent.returns is not None:
        n = int(counted.baseline_returns[0])
        value = "nothing" if grounds.by_returns == -np.inf else _proved(grounds, grounds.by_returns)
        low, span, _ = returns_range(agent.problem, agent.pi_b, agent.returns)
        within = f"which lie in [{_shown(grounds, low)}, {_shown(grounds, low + span)}]"
        lines.append(f"  {value:>10}  by the returns of {n:,} whole baseline episodes, {within}")
    if agent.certificate is not None:
        lines.append(f"  {_proved(grounds, agent.certificate.value):>10}  by the certificate it came with")
    if grounds.asserted > -np.inf:
        lines.append(f"  {_shown(grounds, grounds.asserted):>10}  by the owner's word (trusted)")
    return "\n".join(lines)


def _delta(grounds: Grounds) -> str:
    agent, problem = grounds.agent, grounds.agent.problem
    events = agent.bounds.events(problem, agent.pooled)
    lines = [f"How delta = {agent.delta_in_all:g} is spent:"]
    if agent.certificate is not None:
        lines.append(f"  {agent.certificate.delta:.4g} on the certificate that the baseline came with")
    if isinstance(agent.bounds, KL):
        parts = ["dynamics"]
        parts += ["rewards"] if problem.unknown_rows is not None else []
        parts += ["start"] if problem.start is None else []
        lines.append(
            f"  {agent.delta_model:.4g} on {events:,} balls ({', '.join(parts)}), {agent.delta_model / events:.3g} "
            "each: for all episodes and policies at once"
        )
    else:
        lines.append(
            f"  {agent.delta_model:.4g} on the paper's events: delta' = {agent.delta_prime:.3g} in beta, of which each "
            f"of {events:,} triples (h, s, a) has an equal share"
        )
    if agent.returns is not None:
        lines.append(f"  {agent.delta * agent.returns.share:.4g} on the returns of the baseline")
    return "\n".join(lines)


def _binding(plan: Plan, grounds: Grounds) -> str:
    if not isinstance(grounds.agent.bounds, KL):
        return ""
    found = binding_pairs(
        grounds.agent.problem,
        grounds.counts,
        grounds.agent.evidence(grounds.counts)[0],
        grounds.bolder,
        grounds.V_low,
    )
    if not found:
        return ""
    scale = grounds.agent.problem.units.scale
    who = "this policy" if plan.source == "optimistic" else "the next bolder policy"
    lines = [f"What keeps the certified value of {who} low (cost in units of return):"]
    lines += [f"  {scale * binding.cost:10.4g}  {binding}" for binding in found]
    return "\n".join(lines)


def _premises(plan: Plan, grounds: Grounds) -> str:
    agent, problem = grounds.agent, grounds.agent.problem
    lines = ["Taken on trust, checked by nobody:"]
    lines.append("  the same state and action (and step) always have the same transition probabilities")
    if agent.pooled:
        lines.append("  the dynamics do not depend on the step (counts are pooled)")
    if problem.support_rows is not None:
        used = "" if isinstance(agent.bounds, KL) else " (not used by these bounds)"
        lines.append(f"  the mask of possible next states{used}")
    lines += _of_data(agent)
    if not problem.one_start:
        known = "known" if problem.start is not None else "unknown but fixed"
        lines.append(f"  first states are drawn independently from one distribution, {known}")
    if agent.returns is not None:
        lines.append("  baseline episodes were marked as such before they began, and are of this baseline")
        if agent.returns.declared:
            lines.append("  returns lie in the range declared for them")
    if grounds.asserted > -np.inf:
        lines.append(f"  the baseline is worth at least {_shown(grounds, grounds.asserted)}: the owner's word")
    if plan.safety == "trusted" and grounds.asserted < grounds.floor:
        lines.append("  the baseline is at or above the floor")
    if grounds.counts.logged:
        lines.append("  the log is complete and of the same process (the baseline may have been made from it)")
    if agent.certificate is not None:
        lines.append("  what the baseline's certificate rests on: a complete log of this process (docs/logs.md)")
    if agent.rule.by_coin and agent.rule.floor > -np.inf:
        lines.append("The floor is on the average over the coin: the policy it selects may be below.")
    return "\n".join(lines)


def _of_data(agent: Planner) -> list[str]:
    """Premises about how data were collected and what rewards are."""
    problem = agent.problem
    range_ = f"[{problem.units.low:g}, {problem.units.high:g}]"
    lines = []
    lines.append("  every episode played is counted once, in order, and none is left out because of how it went")
    if isinstance(agent.bounds, KL):
        lines.append("  alpha, mask, ranges and the coding of states were not chosen by looking at the data")
    elif len(agent.h0) > 1:
        lines.append("  the baseline was fixed before the counted episodes")
    if problem.unknown_rows is not None:
        lines.append(f"  every reward lies in {range_} and has a fixed mean for its pair")
    if problem.unknown_rows is None or not problem.unknown_rows.all():
        by_next = ", by next state," if problem.r_next_rows is not None else ""
        lines.append(f"  the known rewards of each state and action{by_next} are as declared")
    return lines
