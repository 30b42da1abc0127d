"""The switch between baseline and explorer that keeps a SUM of returns above the floor, not each
episode's.

The explorer is whatever plays off the baseline: an agent inside, an explorer function, or the
optimistic policy.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from surefoot.agents.base import Agent, adapted, plan_next
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.plan import UNCLAIMED, Plan, Safety, premise_status
from surefoot.agents.promise import PremiseStatus, Promise, by_given_value
from surefoot.agents.returns import Returns
from surefoot.base.arrays import Floats, Ints
from surefoot.base.digest import digest
from surefoot.base.text import how_many
from surefoot.base.validation import REWARD_UNITS, at_least, at_most, freeze
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.evidence.fitting import require_no_alarm
from surefoot.model.policy import EpisodicMixture
from surefoot.model.problem import Problem


class Switch(NamedTuple):
    """Who plays the next episode, and for how long that answer holds."""

    explores: bool  # does the explorer play, and not the baseline?
    max_episodes: int | None  # None: the answer holds until something else changes
    # what past episodes are proved to have earned beyond the floor, in units of return
    saved: float


def switch(account: Ints, L: float, v_b: float, floor: float) -> Switch:
    """May the explorer, whose policy is worth at least L, play episode k?

        sum over its past episodes of their L  +  L  +  N_b v_b  >=  floor k

    with N_b episodes on the baseline, each worth at least v_b. If so, the sum of all values up to k
    is above k times the floor, whatever this episode brings. An episode of the explorer takes floor
    - L from what was saved, one on the baseline adds v_b - floor; so it is known now for how long
    the answer holds. Exact fractions: at an equality a rounded sum would decide either way.
    """
    N_b, N, total = (int(number) for number in account)
    worth, value_b, level = (
        Fraction(math.floor(L * REWARD_UNITS), REWARD_UNITS),
        Fraction(v_b),
        Fraction(floor),
    )
    saved = Fraction(total, REWARD_UNITS) + N_b * value_b - (N_b + N) * level
    takes, adds = level - worth, value_b - level
    if saved >= takes:
        return Switch(True, None if takes <= 0 else int(saved / takes), float(saved))
    return Switch(
        False, None if adds <= 0 else max(1, math.ceil((takes - saved) / adds)), float(saved)
    )


TrustSource = Literal["given value", "floor premise"]


class Proposal(NamedTuple):
    """The explorer's policy for the next episode, and the baseline beside it."""

    policy: Floats | EpisodicMixture
    lower: float  # proved of the explorer's policy
    upper: float
    lower_b: float  # what data say of the baseline
    v_b: float  # what the switch takes the baseline to be worth
    certified: bool  # are the bounds the proved ones?
    trusts: TrustSource | None  # what v_b, and so what was saved, rests on beside data

    def trust_in(self, account: Sequence[float] | Ints) -> TrustSource | None:
        """Return what this account takes on trust; None if it rests on data alone.

        The baseline's worth matters only where the account holds episodes on it.
        """
        return self.trusts if account[0] else None


class BudgetGrounds(NamedTuple):
    """What a plan of a budget agent was made from. Its explanation is written here, in one
    place.
    """

    agent: "BudgetAgent"
    proposal: Proposal
    decision: Switch
    account: Ints
    claimed: bool  # do the counts say what they are evidence about?

    @property
    def premise(self) -> PremiseStatus:
        """How well it is known that the baseline is above the floor, these data included."""
        agent, proposal = self.agent, self.proposal
        proved = proposal.lower_b
        if not proposal.certified:
            return agent.premise
        return premise_status(agent.level, proved, agent.given_level)

    def explain(self, plan: Plan) -> str:
        """Explain the plan: who plays, the account, what is certified, and the premises. Values
        are in user units.
        """
        agent, proposal, explores = self.agent, self.proposal, self.decision.explores
        units, N_b, N = agent.problem.units, int(self.account[0]), int(self.account[1])

        def shown(value: float) -> str:
            return at_least(units.to_user(value))

        proved = "proved" if proposal.certified else "computed with a scaled bonus, NOT CERTIFIED,"
        source = {
            "given value": "the value that was given",
            "floor premise": "trusted",
            None: proved.removesuffix(","),
        }[proposal.trusts]
        lower, v_b = shown(proposal.lower), shown(proposal.v_b)
        own = lower if explores else shown(proposal.lower_b)
        by_others = int(self.account[2]) / REWARD_UNITS
        together = units.scale * by_others + N * agent.problem.lowest
        saved = units.scale * self.decision.saved
        who, may = ("explorer", "may play") if explores else ("baseline", "may not play yet")
        most = plan.max_episodes
        span = "" if most is None else f", for at most {how_many(most, 'episode')}"
        delta = f"at delta = {at_most(agent.delta)}"
        safety = {
            "certified": f"Certified {delta}: this policy alone is worth at least {own}.",
            "certified in total": f"Certified in total, not by itself: {delta} the sum of all "
            "episodes of this account stays above the floor, though this policy is only proved "
            f"to be worth {own}.",
            "trusted": self._trusted(shown(proposal.lower_b)),
        }
        premise = f"Baseline above the floor: {self.premise}.\n" if proposal.certified else ""
        given = agent.baseline_value is not None
        worth = f"worth {v_b}, as given" if given else "worth at least the floor"
        return (
            f"Next: the {who} ({agent.name}){span}.\n"
            f"Its account: {N_b:,} episodes on the baseline, each worth at least {v_b} ({source}), "
            f"and {N:,} of the explorer, {proved} to be worth {at_least(together)} together: "
            f"{at_least(saved)} beyond the floor of {shown(agent.level)} per episode.\n"
            f"The explorer's policy is {proved} to be worth {lower}; with what was saved it "
            f"{may}.\n"
            f"{safety.get(plan.safety, f'{agent.promise}.')}\n"
            f"{premise}"
            "A single episode may fall below the floor: what is kept above it is the sum.\n"
            f"Premises that nobody checks: the baseline is {worth}; rewards and start are as "
            f"declared; the dynamics do not change{', the same at every step' * agent.pooled}."
        )

    def _trusted(self, proved: str) -> str:
        """Return what a trusted plan rests on; `proved` is what data say of the baseline."""
        if self.claimed and self.proposal.trust_in(self.account) == "given value":
            return by_given_value(self.agent.problem.units.to_user(self.proposal.v_b))
        rests_on = f"counts that no one claimed: {UNCLAIMED}"
        if self.claimed:
            rests_on = f"the premise that the baseline is above the floor; data prove {proved}"
        return f"Trusted, not certified: it rests on {rests_on}."


@dataclass(frozen=True, eq=False, repr=False)
class BudgetAgent(FloorAgent):
    """What agents with this switch share: a baseline, a floor for the sum, perhaps the
    baseline's value.
    """

    floor_scope = "the sum of all episodes so far"
    not_given = ("baseline_value", "certificate")
    in_sum = True
    # the kernels only bound the explorer's policy and the baseline; the switch decides
    spliced = False
    mixes = False

    _: KW_ONLY
    returns: Returns | None = None  # as the literature has it
    baseline_value: float | None = None
    # the agent inside; the field's name is part of an account's fingerprint
    learner: Agent | None = None

    def __post_init__(self) -> None:
        if self.baseline_value is not None and isinstance(self.problem, Problem):
            self.problem.level(self.baseline_value, "baseline_value")
            value = float(self.baseline_value)
            freeze(self, baseline_value=value)
            if isinstance(self.floor, BaselineFloor):
                self._checked_floor()
                freeze(self, floor=self.floor.under(value, self.problem))
        if isinstance(self.floor, BaselineFloor):
            raise InvalidSetting(
                "A floor relative to the baseline needs baseline_value=: the sum is held against "
                "it."
            )
        super().__post_init__()
        if self.certificate is not None:
            raise InvalidSetting(
                f"{self.name} counts baseline episodes by baseline_value: it takes no certificate."
            )
        if self.baseline_value is not None and self.baseline_value < self.floor:
            raise InvalidSetting(
                f"baseline_value is {self.baseline_value:g}, below the floor of {self.floor:g}: "
                "then episodes on the baseline break it. Lower the floor, or find a better "
                "baseline."
            )

    @property
    def most_episodes(self) -> int | None:
        """The number of episodes that the proof of the agent inside covers."""
        return None if self.learner is None else adapted(self.learner).most_episodes

    def plan_inside(self, inner: Agent, counts: Counts, rng: np.random.Generator | None) -> Plan:
        """Return the plan of the agent inside."""
        return plan_next(inner, counts.copy(), np.random.default_rng(0) if rng is None else rng)

    def _check_inner(self, inner: Agent) -> None:
        """Refuse an agent inside that is for another problem, or counts in another way."""
        if isinstance(inner, BudgetAgent):
            raise InvalidSetting(
                f"{inner.name} keeps an account of its own: it cannot be inside another such agent."
            )
        if self.explorer is not None:
            raise InvalidSetting(
                "Give either learner= or explorer=: both say what is played off the baseline."
            )
        if not inner.problem.same_as(self.problem) or inner.pooled != self.pooled:
            raise InvalidSetting(
                f"The agent inside is for {inner.problem} with pooled={inner.pooled}, this one for "
                f"{self.problem} with pooled={self.pooled}, or for other rewards. Build both from "
                "the same problem."
            )

    @cached_property
    def level(self) -> float:
        """The floor, rescaled to 0..H."""
        return super().level

    @cached_property
    def account_fingerprint(self) -> str:
        """The fingerprint by which an account is known to be this agent's.

        Entries made by other bounds, at another delta or for another floor prove something else. It
        hashes all that the agent is given, and every plan asks for it.
        """
        return digest(self.settings)

    def check_counts(self, counts: Counts) -> None:
        """Refuse counts that do not fit, or that hold an account that is not this agent's."""
        super().check_counts(counts)
        if counts.account.any() and counts.account_of != self.account_fingerprint:
            raise InvalidCounts(
                "These counts hold the account of another agent, floor, delta or bounds, or of "
                "nobody: it proves nothing here. Use counts.forget_returns(): what was seen of the "
                "dynamics stays. In a loop of your own, call agent.claim(counts) before the first "
                "episode."
            )

    def saved_before(self, counts: Counts, baseline: float) -> float:
        """Return what this agent's account has beyond the floor, if the baseline is worth
        `baseline`.
        """
        N_b, N, proved = (int(number) for number in counts.account)
        return N_b * (baseline - self.level) + proved / REWARD_UNITS - N * self.level

    def claim(self, counts: Counts) -> None:
        """Write into these counts that their returns and their account are this agent's."""
        super().claim(counts)
        counts.account_of = self.account_fingerprint

    @property
    def known_baseline_value(self) -> float | None:
        """The baseline's value, where it was given."""
        return self.baseline_value

    @property
    def asserted(self) -> float | None:
        """The baseline's value, where it was given: safety rests on it."""
        return self.baseline_value

    @property
    def given_level(self) -> float:
        """The baseline's value as it was given, rescaled; -inf where it was not."""
        value = self.baseline_value
        return -math.inf if value is None else self.problem.level(value, "baseline_value")

    @property
    def premise(self) -> PremiseStatus:
        """How well the premise is known before any data: by the value that was given, or not at
        all.
        """
        return premise_status(self.rule.floor, -math.inf, self.given_level)

    @property
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""
        promise = super().promise
        rests_on_it = promise.kind == "certified" and self.given_level >= self.rule.floor > 0.0
        return (
            replace(promise, knows_baseline_value=True, baseline_value=self.asserted)
            if rests_on_it
            else promise
        )

    @abstractmethod
    def propose(self, counts: Counts, rng: np.random.Generator | None) -> Proposal:
        """Return the explorer's policy for the next episode, and what the baseline is worth
        beside it.
        """

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode. Depends on the counts, with their account, and on
        nothing else.
        """
        self.check_counts(counts)
        require_no_alarm(counts)
        return self.make_plan(self.propose(counts, rng), counts)

    def continue_plan(self, plan: Plan, counts: Counts) -> Plan | None:
        """Decide again, with the lower values of the last plan and the account as it is now."""
        if not isinstance(plan.grounds, BudgetGrounds):
            return None
        return self.make_plan(plan.grounds.proposal, counts)

    def baseline_worth(self, by_data: float) -> float:
        """Return what the switch counts an episode on the baseline as, rescaled: as given, proved
        or presumed.

        The promise presumes that the baseline is worth the floor. Counting it as less would call
        every episode on it a loss, and make the sum harder to keep than each episode.
        """
        return max(by_data, self.level) if self.baseline_value is None else self.given_level

    def propose_by_bounds(self, counts: Counts, explorer_policy: Floats | None) -> Proposal:
        """Bound both sides by `bounds`; `explorer_policy` takes the place of the optimistic
        policy.
        """
        decision = self.decide(self.evidence(counts.copy(), explorer_policy), explorer_policy)
        by_data = max(decision.by_model, decision.by_returns)
        v_b = self.baseline_worth(by_data)
        trusted: TrustSource = "floor premise" if self.baseline_value is None else "given value"
        return Proposal(
            policy=decision.explorer,
            lower=float(decision.L[0]),
            upper=decision.upper,
            lower_b=by_data,
            v_b=v_b,
            certified=self.bounds.certified,
            trusts=trusted if v_b > by_data else None,
        )

    def make_plan(self, proposal: Proposal, counts: Counts) -> Plan:
        """Return the plan that follows from the switch, with the account of these counts."""
        account = counts.account
        decision = switch(account, proposal.lower, proposal.v_b, self.level)
        explores = decision.explores
        plan = Plan(
            policy=proposal.policy if explores else self.baseline,
            source="optimistic" if explores else "baseline",
            h=0 if explores else self.problem.H,
            rho=1.0 if explores else 0.0,
            lower=proposal.lower if explores else proposal.lower_b,
            upper=proposal.upper,
            candidates=[proposal.lower, proposal.lower_b],
            safety=self.safety_of(proposal, decision, counts),
            grounds=BudgetGrounds(self, proposal, decision, account.copy(), counts.claimed),
            max_episodes=decision.max_episodes,
            entry=max(proposal.lower, 0.0),
            label=str(self.label),
        )
        return self.with_user_units(plan)

    def safety_of(self, proposal: Proposal, decision: Switch, counts: Counts) -> Safety:
        """Return what the safety of the plan rests on."""
        if not proposal.certified:
            return "NOT CERTIFIED"
        if not counts.claimed:
            return "trusted"
        if not decision.explores:
            return "certified" if proposal.lower_b >= self.level else "trusted"
        if proposal.lower >= self.level:
            return "certified"
        return "certified in total" if proposal.trust_in(counts.account) is None else "trusted"
