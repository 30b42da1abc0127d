"""The switch between baseline and learner that keeps a SUM of returns above the floor, not each episode's."""

import hashlib
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from surefoot.agents.base import Agent
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.floors import Relative
from surefoot.agents.plan import Plan, Safety
from surefoot.agents.premises import PremiseStatus, premise_status
from surefoot.agents.promise import Promise
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import REWARD_UNITS, freeze, require_floor
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.numerics import kernels
from surefoot.task.counts import Counts
from surefoot.task.policy import EpisodicMixture
from surefoot.task.problem import Problem


class Switch(NamedTuple):
    """Who plays, and for how many episodes that holds as things are; None: for ever."""

    learner: bool
    max_episodes: int | None
    saved: float  # what past episodes are proved to have earned beyond the floor, in units of return


def switch(ledger: Ints, L: float, v_b: float, floor: float) -> Switch:
    """May the learner, whose policy is worth at least L, play episode k?

        sum over its past episodes of their L  +  L  +  N_b v_b  >=  floor k

    with N_b episodes on the baseline, each worth at least v_b. If so, the sum of all values up to k is above k times
    the floor, whatever this episode brings. A learner's episode takes floor - L from what was saved, one on the
    baseline adds v_b - floor; so it is known now for how long the answer holds. Exact fractions: at an equality a
    rounded sum would decide either way.
    """
    N_b, N, total = (int(number) for number in ledger)
    worth, value_b, level = Fraction(math.floor(L * REWARD_UNITS), REWARD_UNITS), Fraction(v_b), Fraction(floor)
    saved = Fraction(total, REWARD_UNITS) + N_b * value_b - (N_b + N) * level
    takes, adds = level - worth, value_b - level
    if saved >= takes:
        return Switch(True, None if takes <= 0 else int(saved / takes), float(saved))
    return Switch(False, None if adds <= 0 else max(1, math.ceil((takes - saved) / adds)), float(saved))


Word = Literal["", "told", "floor", "range", "account"]


class Offer(NamedTuple):
    """What a learner has to offer for the next episode, and the baseline beside it."""

    policy: Floats | EpisodicMixture
    lower: float  # proved of the learner's policy
    upper: float
    lower_b: float  # what data say of the baseline
    v_b: float  # what the switch takes the baseline to be worth
    certified: bool  # are the bounds the proved ones?
    word: Word  # what v_b, and so what was saved, leans on beside data
    lower_b_trusts: bool = False  # does lower_b lean on a declared range of returns?
    claimed: bool = True  # does the account say whose it is?

    def leans_on(self, ledger: Sequence[float] | Ints) -> Word:
        """What is taken on somebody's word in this account.

        The baseline's worth matters only where it holds episodes on it; entries that nobody has claimed may be of any
        bounds.
        """
        if ledger[0] and self.word:
            return self.word
        return "account" if not self.claimed and any(ledger) else ""


class Account(NamedTuple):
    """What a plan of a budget was made from."""

    agent: "BudgetAgent"
    offer: Offer
    decision: Switch
    ledger: tuple[int, int, float]  # episodes on the baseline, other episodes, the sum of what was proved of those

    @property
    def premise(self) -> PremiseStatus:
        """How well it is known that the baseline is above the floor, these data included."""
        agent, offer = self.agent, self.offer
        by_data, by_word = (-math.inf, offer.lower_b) if offer.lower_b_trusts else (offer.lower_b, -math.inf)
        if not offer.certified:
            return agent.premise
        return premise_status(agent.level, by_data, max(agent.known_before, by_word))

    def explain(self, plan: Plan) -> str:
        """In words."""
        agent, offer, decision = self.agent, self.offer, self.decision
        unit, scale = agent.problem.in_user_units, agent.problem.units.scale
        who = "the learner" if decision.learner else "the baseline"
        word, (N_b, N, total) = offer.leans_on(self.ledger), self.ledger
        together, saved = scale * total + N * unit(0.0), scale * decision.saved
        span = (
            ""
            if plan.max_episodes is None
            else f", for at most {plan.max_episodes:,} episode{'s' * (plan.max_episodes > 1)}"
        )
        proved = "proved" if offer.certified else "computed with a scaled bonus, NOT CERTIFIED,"
        source = {"": proved.rstrip(","), "told": "told"}.get(offer.word, "your word")
        worth, floor, v_b = unit(offer.lower), unit(agent.level), unit(offer.v_b)
        lines = [
            f"Next: {who} ({agent.name}){span}.",
            f"Its account: {N_b:,} episodes on the baseline, at least {v_b:.6g} each ({source}), and {N:,} of the "
            f"learner, {proved} to be worth {together:.6g} together: {saved:.6g} beyond the floor of {floor:.6g} an "
            "episode.",
            f"The learner's policy is {proved} to be worth {worth:.6g}; with what was saved it "
            + ("may play." if decision.learner else "may not play yet."),
        ]
        lower = worth if decision.learner else unit(offer.lower_b)
        lines.append(
            {
                "certified": f"Certified at delta = {agent.delta:g}: this policy alone is worth at least {lower:.6g}.",
                "certified in total": f"Certified in total, not by itself: at delta = {agent.delta:g} the sum of all "
                "episodes of this account stays above the floor, though this policy is only proved to be worth "
                f"{lower:.6g}.",
                "trusted": "Trusted, not certified: it leans on "
                + {
                    "told": f"the told value of the baseline, {v_b:.6g}.",
                    "range": "the declared range of the baseline's returns.",
                    "account": "an account that no learner has claimed: agent.claim(counts) says whose it is.",
                }.get(
                    word,
                    f"your word that the baseline is above the floor; data prove {unit(offer.lower_b):.6g}.",
                ),
            }.get(plan.safety, f"{agent.promise}.")
        )
        if offer.certified:
            lines.append(f"Baseline above the floor: {self.premise}.")
        lines.append("A single episode may fall below the floor: what is kept above it is the sum.")
        known = f"worth {v_b:.6g}, as told" if agent.baseline_value is not None else "worth at least the floor"
        same = ", the same at every step." if agent.pooled else "."
        lines.append(
            f"Premises that nobody checks: the baseline is {known}; rewards and start as declared; dynamics that "
            f"do not change{same}"
        )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class BudgetAgent(FloorAgent):
    """What learners with this switch share: a baseline, a floor for the sum, perhaps the baseline's value."""

    floor_scope = "the sum of all episodes so far"
    in_sum = True

    _: KW_ONLY
    baseline_value: float | None = None

    def __post_init__(self) -> None:
        if self.baseline_value is not None and isinstance(self.problem, Problem):
            value = require_floor(self.baseline_value, self.problem.H, "baseline_value")
            if self.baseline_at_least not in (None, value):
                raise InvalidSetting("Give baseline_value alone: it is what the switch counts an episode as.")
            freeze(self, baseline_value=value, baseline_at_least=value)
            if isinstance(self.floor, Relative):
                self._checked_floor()
                freeze(self, floor=self.floor.of(value, self.problem))
        if isinstance(self.floor, Relative):
            raise InvalidSetting("A floor relative to the baseline needs baseline_value=: the sum is held against it.")
        super().__post_init__()
        if self.certificate is not None:
            raise InvalidSetting(f"{self.name} counts baseline episodes by baseline_value: it takes no certificate.")
        if self.baseline_value is not None and self.baseline_value < self.level:
            raise InvalidSetting(
                f"baseline_value is {self.baseline_value:g}, below the floor of {self.level:g}: then episodes on the "
                "baseline break it. Lower the floor, or find a better baseline."
            )
        if self.baseline_value is None and self.baseline_at_least is not None:
            raise InvalidSetting("Give baseline_value, not baseline_at_least: the switch counts episodes by it.")

    def _check_learner(self, learner: Agent) -> None:
        """Is it for this problem, and does it count alike?"""
        if isinstance(learner, BudgetAgent):
            raise InvalidSetting(f"{learner.name} keeps an account of its own: it cannot be the learner of another.")
        if self.explorer is not None:
            raise InvalidSetting("Give either a learner or an explorer: both say what is played off the baseline.")
        if not learner.problem.same_as(self.problem) or learner.pooled != self.pooled:
            raise InvalidSetting(
                f"The learner is for {learner.problem} with pooled={learner.pooled}, this one for {self.problem} with "
                f"pooled={self.pooled}, or for other rewards. Build both from the same problem."
            )

    @property
    def level(self) -> float:
        """The floor as a number."""
        assert isinstance(self.floor, float)
        return self.floor

    @property
    def account_fingerprint(self) -> str:
        """By this an account is known to be this learner's: entries made by other bounds, at another delta or for
        another floor prove something else."""
        digest = hashlib.sha256()
        self.describe(digest)
        return digest.hexdigest()[:16]

    def check_counts(self, counts: Counts) -> None:
        """Do these counts fit, and is the account in them this learner's?"""
        super().check_counts(counts)
        if counts.account.any() and counts.account_of not in (None, self.account_fingerprint):
            raise InvalidCounts(
                "These counts hold the account of another learner, floor, delta or bounds: it proves nothing here. Use "
                "counts.forget_returns(): what was seen of the dynamics stays."
            )

    def saved_before(self, counts: Counts, baseline: float) -> float:
        """What this learner's account has beyond the floor, the baseline being worth so much."""
        N_b, N, proved = (int(number) for number in counts.account)
        return N_b * (baseline - self.level) + proved / REWARD_UNITS - N * self.level

    def claim(self, counts: Counts) -> None:
        """From now on returns and the account in these counts are this learner's."""
        super().claim(counts)
        counts.account_of = self.account_fingerprint

    @property
    def h0(self) -> Ints:
        """The learner's policy and the baseline."""
        return np.array([0, self.problem.H])

    @property
    def rule(self) -> "kernels.Rule":
        """The kernels only bound the candidates; the switch decides."""
        return self.make_rule(mixes=False, by_coin=False)

    @property
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""
        if not self.bounds.certified:
            return Promise("not certified", scope=self.floor_scope, scale=self.bounds.scale)
        promise = Promise("certified", self.delta, self.floor_scope, self.premise)
        if self.baseline_value is None:
            return promise
        value = self.problem.in_user_units(self.baseline_value)
        return replace(promise, knows_baseline_value=True, baseline_value=value)

    @property
    def known_baseline_value(self) -> float | None:
        """Of the baseline."""
        return self.baseline_value

    @abstractmethod
    def offer(self, counts: Counts, rng: np.random.Generator | None) -> Offer:
        """What the learner has to offer for the next episode, and what the baseline is worth beside it."""

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode. Depends on the counts, with their ledger, and on nothing else."""
        self.check_counts(counts)
        return self.follow(self._of_account(self.offer(counts, rng), counts), counts.account)

    def _of_account(self, offer: Offer, counts: Counts) -> Offer:
        """Says whether the account in these counts was claimed."""
        return offer._replace(claimed=counts.account_of is not None)

    def continue_plan(self, plan: Plan, counts: Counts) -> Plan | None:
        """The switch again, with the lower values of the last plan and the account as it is now."""
        if not isinstance(plan.grounds, Account):
            return None
        return self.follow(self._of_account(plan.grounds.offer, counts), counts.account)

    def baseline_worth(self, by_data: float) -> float:
        """What the switch counts an episode on the baseline as: what was told, or proved, or promised of it.

        The promise presumes that the baseline is worth the floor. Counting it as less would call every episode on it a
        loss, and make the sum harder to keep than each episode.
        """
        return max(by_data, self.level) if self.baseline_value is None else self.baseline_value

    def word_for(self, by_data: float, by_range: bool) -> Word:
        """What is taken on somebody's word where an episode on the baseline is counted; `by_range`: so are data."""
        if self.baseline_worth(by_data) > by_data:
            return "floor" if self.baseline_value is None else "told"
        return "range" if by_range else ""

    def offer_by_bounds(self, counts: Counts, explorer_policy: Floats | None) -> Offer:
        """Both sides by `bounds`; `explorer_policy` is another's policy in the optimist's place."""
        decision = self.decide(self.evidence(counts.copy(), explorer_policy), explorer_policy)
        by_data = max(decision.by_model, decision.by_returns)
        leans = self.returns is not None and self.returns.declared and decision.by_returns > decision.by_model
        return Offer(
            policy=decision.explorer,
            lower=float(decision.L[0]),
            upper=decision.upper,
            lower_b=by_data,
            v_b=self.baseline_worth(by_data),
            certified=self.bounds.certified,
            word=self.word_for(by_data, leans),
            lower_b_trusts=leans,
        )

    def offer_reference(self, counts: Counts, explorer_policy: Floats | None) -> Offer:
        """`offer_by_bounds`, with bounds by the readable versions."""
        model = self.model(counts)
        pi_bar, V_up, V_low = self.bounds.optimistic(model)
        pi = pi_bar if explorer_policy is None else explorer_policy
        by_model, by_returns = self.bounds.lower(model, self.baseline), self.by_returns(counts)[0]
        leans = self.returns is not None and self.returns.declared and by_returns > by_model
        return Offer(
            policy=pi,
            lower=self.bounds.lower(model, pi),
            upper=self.bounds.at_start(model, V_low[0], V_up[0])[1],
            lower_b=max(by_model, by_returns),
            v_b=self.baseline_worth(max(by_model, by_returns)),
            certified=self.bounds.certified,
            word=self.word_for(max(by_model, by_returns), leans),
            lower_b_trusts=leans,
        )

    def follow(self, offer: Offer, ledger: Ints) -> Plan:
        """The plan that follows from the switch."""
        decision = switch(ledger, offer.lower, offer.v_b, self.level)
        N_b, N, total = (int(number) for number in ledger)
        account = Account(self, offer, decision, (N_b, N, total / REWARD_UNITS))
        return Plan(
            policy=offer.policy if decision.learner else self.baseline,
            source="optimistic" if decision.learner else "baseline",
            h=0 if decision.learner else self.problem.H,
            rho=1.0 if decision.learner else 0.0,
            lower=offer.lower if decision.learner else offer.lower_b,
            upper=offer.upper,
            candidates=[offer.lower, offer.lower_b],
            safety=self.safety_of(offer, decision, ledger),
            grounds=account,
            max_episodes=decision.max_episodes,
            entry=max(offer.lower, 0.0),
        )

    def safety_of(self, offer: Offer, decision: Switch, ledger: Ints) -> Safety:
        """What the safety of the plan rests on."""
        if not offer.certified:
            return "NOT CERTIFIED"
        if not decision.learner:
            return "certified" if offer.lower_b >= self.level and not offer.lower_b_trusts else "trusted"
        if offer.lower >= self.level:
            return "certified"
        return "trusted" if offer.leans_on(ledger) else "certified in total"
