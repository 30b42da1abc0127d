"""The text of `explain` for splice agents.

It says how delta is spent, what was proved by what, which pairs bind, and what is taken on trust.
Decisions are made by the fields of a plan and of its grounds; here they are only put into
sentences.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.plan import UNCLAIMED, Plan, premise_status
from surefoot.agents.promise import PremiseStatus
from surefoot.agents.returns import returns_range
from surefoot.base.arrays import Floats
from surefoot.base.nodes import OUTSIDE
from surefoot.base.validation import at_least, at_most
from surefoot.bounds import KL
from surefoot.bounds.alike import compared
from surefoot.bounds.binding import binding_pairs
from surefoot.bounds.declared_rewards import ALPHA
from surefoot.evidence.counts import Counts
from surefoot.model.policy import splice
from surefoot.model.problem import Problem
from surefoot.model.steps import common_start, step_name


class PlanEvidence(NamedTuple):
    """What the kernels read when they plan. The arrays are the counts' own."""

    model: "kernels.Evidence"  # balls or estimates of the dynamics and rewards
    start: "kernels.Start"
    returns: "kernels.BaselineReturns"


class SpliceGrounds(NamedTuple):
    """What a plan of a splice agent was made from."""

    agent: Any  # the splice agent that made the plan
    counts: Counts  # as they were
    # what lower values were compared with, if need be for a relative floor; values are rescaled
    floor: float
    lower: float  # what is proved of the policy
    L: Floats  # (C,) lower values of the candidates
    by_model: float  # the baseline's lower value by the model
    by_returns: float  # by its returns; -inf where these are not evidence
    # the splice that was just not certified (that which is played, if it is the boldest)
    h_bolder: int
    V_low: Floats  # (H+1, S): its lower values
    explorer: Floats  # (H, S, A): what is mixed with the baseline
    U: float  # of a relative floor: the baseline's value is at most this

    @property
    def premise(self) -> PremiseStatus:
        """How well it is known that the baseline is above the floor, these data included."""
        agent = self.agent
        given: PremiseStatus = agent.premise
        if not (agent.bounds.certified and self.counts.claimed):
            return given
        proved = max(self.by_model, self.by_returns, agent.proved_before)
        return premise_status(agent.rule.floor, proved)

    @property
    def bolder(self) -> Floats:
        """The policy of the candidate that was just not certified."""
        return splice(self.agent.pi_b, self.explorer, self.h_bolder)

    def explain(self, plan: Plan) -> str:
        """Explain the plan."""
        return explanation(plan, self)


def explanation(plan: Plan, grounds: SpliceGrounds) -> str:
    """Return the whole explanation, paragraph by paragraph; values are in the user's own units."""
    parts = [_verdict(plan, grounds)]
    if plan.safety != "NOT CERTIFIED":
        parts += [
            _evidence(grounds),
            _delta(grounds),
            _binding(plan, grounds),
            _sooner(plan, grounds),
        ]
    parts.append(_premises(plan, grounds))
    return "\n\n".join(part for part in parts if part)


def _user(grounds: SpliceGrounds, value: float) -> float:
    """Return a rescaled value in the user's units."""
    problem: Problem = grounds.agent.problem
    return problem.units.to_user(value)


def _proved(grounds: SpliceGrounds, value: float) -> str:
    """Return a rescaled lower value as text, in the user's units and not rounded up."""
    return at_least(_user(grounds, value))


def _with_unit(grounds: SpliceGrounds, number: str) -> str:
    """Return a number with the name of its unit, if it has one."""
    return f"{number} {grounds.agent.problem.units.name}".rstrip()


def _verdict(plan: Plan, grounds: SpliceGrounds) -> str:
    agent, what = grounds.agent, _next(plan, grounds)
    if agent.rule.floor == -np.inf:
        scaled = "" if agent.bounds.certified else f" {_scaled(grounds)}."
        return f"Next: {what}.{scaled} This agent keeps no floor."
    first = (
        f"Next: {what} (in the paper's symbols: h = {plan.h} of {agent.problem.H}, rho = "
        f"{plan.rho:.4g})."
    )
    if plan.safety == "NOT CERTIFIED":
        return (
            f"{first}\n{_scaled(grounds)}. Nothing is proved, neither of this policy nor of "
            f"any "
            "other."
        )
    top = f"No policy is worth more than {_with_unit(grounds, at_most(plan.upper))}."
    return f"{first}\n{_safety(plan, grounds)}. {top}\nBaseline above the floor: {grounds.premise}."


def _next(plan: Plan, grounds: SpliceGrounds) -> str:
    """Return which policy is played."""
    if plan.source == "baseline":
        return "the baseline"
    if plan.source == "optimistic":
        return (
            "the optimistic policy" if grounds.agent.explorer is None else "the explorer's policy"
        )
    if grounds.agent.rule.by_coin:
        return (
            f"the explorer with probability {plan.rho:.4g}, else the baseline, for the whole "
            "episode"
        )
    at = step_name(grounds.agent.problem, plan.h - 1)
    return (
        f"the baseline before {at}, the explorer after it; at {at} the explorer with probability "
        f"{plan.rho:.4g}, else the baseline"
    )


def _scaled(grounds: SpliceGrounds) -> str:
    return (
        f"NOT CERTIFIED: the bonus was scaled by {grounds.agent.bounds.scale:g}, which no "
        f"proof "
        "covers"
    )


def _safety(plan: Plan, grounds: SpliceGrounds) -> str:
    """Return why the floor is kept, or on what condition."""
    agent, relative = grounds.agent, isinstance(grounds.agent.floor, BaselineFloor)
    level = _user(grounds, grounds.floor)
    floor = (
        f"{agent.floor_text}'s value (a floor of at most {_with_unit(grounds, at_most(level))})"
        if relative
        else f"the floor of {_with_unit(grounds, at_least(level))}"
    )
    proved = _with_unit(grounds, _proved(grounds, grounds.lower))
    if plan.safety == "certified":
        if relative and plan.source == "baseline":
            return "Certified by definition: the floor is measured from the baseline itself"
        worth = f"{proved}, and {floor} is kept"
        if relative and grounds.lower < grounds.floor:
            worth += (
                ": what is lost against the baseline is bounded itself, whatever both are worth"
            )
        if not relative and grounds.lower == grounds.floor:  # in six digits it might be below it
            worth = floor
        likely = at_least(1 - agent.delta_in_all)
        return (
            f"Certified: on an event of probability at least {likely} this is worth at least "
            f"{worth}"
        )
    if not grounds.counts.claimed:
        return (
            f"Trusted, not certified: {UNCLAIMED}. If they are of this problem, this is worth "
            f"at least {proved}"
        )
    return (
        f"Trusted, not certified: nothing in the data proves {floor} yet; what is proved is "
        f"{proved}. It rests on the premise that the baseline is above the floor"
    )


def _evidence(grounds: SpliceGrounds) -> str:
    agent = grounds.agent
    if len(agent.h0) == 1:  # no baseline among the candidates
        return ""
    unit = f" (in {agent.problem.units.name})" if agent.problem.units.name else ""
    lines = [
        f"The baseline is worth at least{unit}, after {grounds.counts.episodes:,} episodes:",
        f"  {_proved(grounds, grounds.by_model):>10}  by the model of the dynamics "
        f"({type(agent.bounds).__name__})",
    ]
    if agent.returns is not None:
        lines.append(_by_returns(grounds))
    if agent.certificate is not None:
        lines.append(
            f"  {_proved(grounds, agent.proved_before):>10}  by the certificate it came with"
        )
    return "\n".join(lines)


def _by_returns(grounds: SpliceGrounds) -> str:
    """Return what the returns of the baseline prove of its value."""
    agent, counts = grounds.agent, grounds.counts
    possible = returns_range(agent.problem, agent.pi_b)
    low, high = (f"{_user(grounds, edge):.6g}" for edge in (possible.lowest, possible.highest))
    by = (
        f"by the returns of {counts.spread_episodes:,} whole baseline episodes, which lie in "
        f"[{low}, {high}]"
    )
    unlabelled = (
        int(counts.baseline_returns[0])
        - counts.spread_episodes
        - int(counts.return_weights[OUTSIDE])
    )
    if unlabelled:
        by += f" ({unlabelled:,} more are no evidence: they were not labelled before they began)"
    if isinstance(agent.floor, BaselineFloor):
        top = at_most(_user(grounds, grounds.U))
        return f"  and at most {top}, by the model and {by}: the floor is measured from there"
    value = "nothing" if grounds.by_returns == -np.inf else _proved(grounds, grounds.by_returns)
    return f"  {value:>10}  {by}"


def _that_hold(lines: Iterable[tuple[object, str]]) -> list[str]:
    """Return the lines whose condition is true."""
    return [f"  {line}" for holds, line in lines if holds]


def _sooner(plan: Plan, grounds: SpliceGrounds) -> str:
    """Return what would prove more from the same episodes, if it is true of the process."""
    agent, problem, counts = grounds.agent, grounds.agent.problem, grounds.counts
    if plan.source == "optimistic" or len(agent.h0) == 1:
        return ""
    by_coin, returns = agent.rule.by_coin, agent.returns
    sharp = isinstance(agent.bounds, KL) and (by_coin or not isinstance(agent.floor, BaselineFloor))
    learnt = agent.certificate is not None  # from a log, which another policy wrote
    lines = _that_hold(
        (
            (
                returns is None and sharp,
                "returns=sf.Returns(): the returns of the baseline's own episodes are evidence, "
                "too",
            ),
            (
                returns and counts.logged and not (counts.logged_returns or learnt),
                "agent.with_logged_returns(counts, sf.log_returns(...)), if this baseline wrote "
                "the log",
            ),
            (
                returns and counts.episodes and not (counts.logged or counts.spread_episodes),
                "Episode.of(..., baseline=drawn.baseline): no episode says that the baseline "
                "played it",
            ),
            (
                problem.stationary and not agent.pooled and problem.H > 1,
                "pooled=True: one set of counts for all steps, because the dynamics do not depend "
                "on the step",
            ),
            (
                not problem.knows_support and problem.S > 2,
                "Problem(..., support=mask): next states that are impossible need no evidence",
            ),
            (
                not by_coin,
                "sf.EpsMix, if the floor need only hold on average over a coin at the start of "
                "each episode",
            ),
        )
    )
    if not lines:
        return ""
    first = (
        "What would prove more from as many episodes, in a run that begins with it, if it is "
        "true (docs/choosing.md):"
    )
    return "\n".join([first, *lines])


def _delta(grounds: SpliceGrounds) -> str:
    agent, problem = grounds.agent, grounds.agent.problem
    events = agent.bounds.events(problem, agent.pooled)
    lines = [f"How delta = {at_most(agent.delta_in_all)} is spent:"]
    if agent.certificate is not None:
        lines.append(
            f"  {agent.certificate.delta:.4g} on the certificate that the baseline came with"
        )
    if isinstance(agent.bounds, KL):
        parts = ["dynamics"]
        if problem.unknown_rows is not None:
            parts.append("rewards")
        if problem.start is None:
            parts.append("start")
        lines.append(
            f"  {agent.delta_model:.4g} on {events:,} balls, {agent.delta_model / events:.3g} "
            f"each: the sets of all probabilities that fit what was counted ({', '.join(parts)}), "
            "for all episodes and policies at once"
        )
    else:
        lines.append(
            f"  {agent.delta_model:.4g} on the paper's events: delta' = {agent.delta_prime:.3g} in "
            f"beta, of which each of {events:,} triples (h, s, a) has an equal share"
        )
    if agent.returns is not None:
        lines.append(f"  {agent.delta * agent.returns.share:.4g} on the returns of the baseline")
    return "\n".join(lines)


def _binding(plan: Plan, grounds: SpliceGrounds) -> str:
    if not isinstance(grounds.agent.bounds, KL):
        return ""
    found = binding_pairs(
        grounds.agent.problem,
        grounds.counts,
        grounds.agent.evidence(grounds.counts).model,
        grounds.bolder,
        grounds.V_low,
    )
    if not found:
        return ""
    who = "this policy" if plan.source == "optimistic" else "the next bolder policy"
    unit = grounds.agent.problem.units.name or "units of return"
    lines = [f"What keeps the certified value of {who} low (its cost, in {unit}):"]
    lines += [f"  {binding.cost:10.4g}  {binding}" for binding in found]
    return "\n".join(lines)


def _premises(plan: Plan, grounds: SpliceGrounds) -> str:
    agent, problem, counts = grounds.agent, grounds.agent.problem, grounds.counts
    sharp, certificate, origin = isinstance(agent.bounds, KL), agent.certificate, counts.origin
    by_next = ", by next state," if problem.pays_by_next else ""
    known = "known" if problem.start is not None else "unknown but fixed"
    made = "" if counts.logged_returns else " (the baseline may have been made from it)"
    steps = f"the dynamics do not depend on the step (counts are pooled{_alike(problem, counts)})"
    table = (
        f"the known rewards of each state and action{by_next} are as "
        f"declared{_unlike_table(counts)}"
    )
    held = bool(_held_against_table(counts))
    checked = _that_hold(
        (
            (agent.pooled and counts.steps is not None, steps),
            (_declared_rewards(problem) and held, table),
        )
    )
    lines = _that_hold(
        (
            (
                True,
                "the same state and action (and step) always have the same transition "
                "probabilities",
            ),
            (agent.pooled and counts.steps is None, steps),
            (
                problem.knows_support,
                f"the mask of possible next states{'' if sharp else ' (not used by these bounds)'}",
            ),
            (
                True,
                "every episode played is counted once, in order, and none is left out because of "
                "how it went",
            ),
            (
                sharp,
                "the prior, mask, ranges and coding of states were not chosen by looking at the "
                "data",
            ),
            (not sharp and len(agent.h0) > 1, "the baseline was fixed before the counted episodes"),
            (
                problem.unknown_rows is not None,
                f"every reward lies in [{problem.units.low:g}, {problem.units.high:g}] and has a "
                "fixed mean for its pair",
            ),
            (_declared_rewards(problem) and not held, table),
            (
                problem.pays_by_next and problem.absorbing_state is not None,
                "an end at the last step, where rewards depend on the next state, is the process's "
                "own",
            ),
            (
                not problem.one_start,
                f"first states are drawn independently from one distribution, {known}",
            ),
            (
                agent.returns is not None,
                "baseline episodes were labelled as such before they began, and are of this "
                "baseline",
            ),
            (plan.safety == "trusted", "the baseline is at or above the floor"),
            (not counts.claimed, "the counts are of this problem (no one claimed them)"),
            (
                counts.claimed and origin and origin.asserted,
                "the counts are of this problem and hold each episode once, as the user asserts",
            ),
            (
                origin and origin.world is not None,
                "the process behaves like the simulated world that (some of) the counts are from",
            ),
            (
                counts.logged_returns,
                f"this baseline played all {counts.logged_returns:,} logged episodes, and was "
                "fixed before anybody looked at them",
            ),
            (counts.logged, f"the log is complete and of the same process{made}"),
            (
                certificate is not None,
                "what the baseline's certificate rests on: a complete log of this process "
                "(docs/logs.md)",
            ),
        )
    )
    if agent.rule.by_coin and agent.rule.floor > -np.inf:
        lines.append(
            "The floor is on the average over the coin: the policy it selects may be below."
        )
    lines = ["Taken on trust, checked by nobody:", *lines]
    if checked:
        lines += [
            "Assumed, and checked as data come (an alarm falls back to the baseline):",
            *checked,
        ]
    return "\n".join(lines)


def _alike(problem: Problem, counts: Counts) -> str:
    """Return whether the steps that share counts are compared with each other."""
    said = compared(counts)
    return (
        f"{said}, but for what follows the last step"
        if problem.pays_by_next and counts.steps is not None
        else said
    )


def _unlike_table(counts: Counts) -> str:
    """Return how many rewards were not those of the table, which may hold means, and what was
    held against it.
    """
    differ, world = counts.unlike_table, None if counts.origin is None else counts.origin.world
    said = f" ({differ:,} rewards observed were others: it may hold means)" if differ else ""
    if world is not None or not counts.episodes:
        return said
    held = _held_against_table(counts)
    if not held:
        return f"{said}; not checked"
    return (
        f"{said}; held against what was paid in {held:,} of {counts.episodes:,} episodes, at "
        f"alpha = {ALPHA:g}"
    )


def _held_against_table(counts: Counts) -> int:
    """Return of how many episodes what was paid was held against the table."""
    return 0 if counts.table_bets is None else int(counts.table_bets[0])


def _declared_rewards(problem: Problem) -> bool:
    """Is some reward known that is paid by the process, and not by a state that was added to it?"""
    if problem.unknown_rows is None:
        return True
    known = np.flatnonzero(~problem.unknown_rows.reshape(-1, problem.S, problem.A).all(axis=(0, 2)))
    return bool(
        {*known.tolist()} - {problem.absorbing_state, problem.unseen_state, common_start(problem)}
    )
