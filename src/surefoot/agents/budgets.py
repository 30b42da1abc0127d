"""The switch between baseline and learner that keeps a SUM of returns above the floor, not each episode's."""

import math
from fractions import Fraction
from typing import NamedTuple

from surefoot.agents.plans import Plan, Safety
from surefoot.arrays import Floats, Ints
from surefoot.checks import REWARD_UNITS
from surefoot.policy import EpisodicMixture


class Switch(NamedTuple):
    """Who plays, and for how many episodes that holds as things are; None: for ever."""

    learner: bool
    lasts: int | None
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


class Offer(NamedTuple):
    """What a learner has to offer for the next episode, and the baseline beside it."""

    policy: Floats | EpisodicMixture
    lower: float  # proved of the learner's policy
    upper: float
    lower_b: float  # what is proved of the baseline from data
    v_b: float  # what the switch takes the baseline to be worth: proved, or somebody's word
    certified: bool  # are the bounds the proved ones?


class Account(NamedTuple):
    """What a plan of a budget was made from."""

    name: str
    promise: str
    floor: float
    offer: Offer
    decision: Switch
    ledger: tuple[int, int, float]  # episodes on the baseline, other episodes, the sum of what was proved of those
    told: bool

    def explain(self, plan: Plan) -> str:
        """In words."""
        who = "the learner" if self.decision.learner else "the baseline"
        N_b, N, total = self.ledger
        span = "" if plan.lasts is None else f", for at most {plan.lasts:,} episodes"
        source = "told" if self.told else "proved from data"
        return "\n".join(
            [
                f"Next: {who} ({self.name}){span}.",
                f"So far {N_b:,} episodes on the baseline, each worth at least {self.offer.v_b:.6g} ({source}), and "
                f"{N:,} of the learner, proved to be worth {total:.6g} together: {self.decision.saved:.6g} beyond the "
                f"floor of {self.floor:.6g} an episode.",
                f"The learner's policy is worth at least {self.offer.lower:.6g}; it may play if that, with what was "
                "saved, reaches the floor.",
                f"Safety of this plan: {plan.safety}. {self.promise[0].upper()}{self.promise[1:]}.",
                "The sum over all episodes is kept above the floor; a single episode may fall below it.",
            ]
        )


def budget_plan(name: str, promise: str, pi_b: Floats, floor: float, ledger: Ints, offer: Offer, told: bool) -> Plan:
    """The plan that follows from the switch."""
    decision = switch(ledger, offer.lower, offer.v_b, floor)
    N_b, N, total = (int(number) for number in ledger)
    account = Account(name, promise, floor, offer, decision, (N_b, N, total / REWARD_UNITS), told)
    lower = offer.lower if decision.learner else offer.lower_b
    mark: Safety = "certified"
    if lower < floor:
        mark = "trusted" if told or not decision.learner else "certified in total"
    return Plan(
        policy=offer.policy if decision.learner else pi_b,
        source="optimistic" if decision.learner else "baseline",
        h=0 if decision.learner else len(pi_b),
        rho=1.0 if decision.learner else 0.0,
        lower=lower,
        upper=offer.upper,
        candidates=[offer.lower, offer.lower_b],
        safety=mark if offer.certified else "NOT CERTIFIED",
        grounds=account,
        lasts=decision.lasts,
        entry=max(offer.lower, 0.0),
    )
