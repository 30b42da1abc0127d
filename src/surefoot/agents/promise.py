"""Promise: what is promised of the episodes of a run, as data. Its text is made here, in one
place.
"""

from dataclasses import dataclass, replace
from typing import Literal

from surefoot.base.validation import at_most

Kind = Literal["certified", "not certified", "no floor", "another floor", "false premise", "stated"]
Scope = Literal[
    "every episode's policy",
    "every episode's coin-averaged value",
    "the sum of all episodes so far",
]
# Every promise presumes that the baseline is above the floor. How well that is known is the status
# of the premise.
PremiseStatus = Literal["certified by data", "asserted by the user", "unknown", "none needed"]


@dataclass(frozen=True)
class Promise:
    """What an agent promises. Code decides by these fields; `str(promise)` is for people.

    - kind: "certified" is proved at level delta, given the premise; if it also rests on a value of
      the baseline that was given (`knows_baseline_value`), it is trusted, not certified. "not
      certified": a bonus was scaled by hand, which no proof covers. "no floor": nothing is
      promised. "another floor": the agent keeps a floor, but not the one that is counted against.
      "false premise": the baseline is truly below the floor. "stated": the words of a user's own
      agent, which nobody here has checked.
    - scope: whose value is at or above the floor; None where no floor is kept
    """

    kind: Kind
    delta: float | None = None  # how likely the promise may fail
    scope: Scope | None = None
    # how well it is known that the baseline is above the floor
    premise: PremiseStatus | None = None
    # of a promise about costs: the expected cost of an episode stays at or below it
    budget: float | None = None
    # was the agent given the baseline's value, and does the promise rest on it?
    knows_baseline_value: bool = False
    baseline_value: float | None = None  # that value, in the user's units
    scale: float | None = None  # of a bonus scaled by hand
    # another floor: the one that is kept; a false premise: why; words of a user's own agent
    details: str = ""
    # why what was observed does not support the promise; empty while no alarm was raised
    alarm: str = ""

    @property
    def certified(self) -> bool:
        """Is it proved from data at level delta, with no alarm against it?"""
        return self.stands and not self.knows_baseline_value

    @property
    def trusted(self) -> bool:
        """Does it hold at level delta if the baseline is worth what was given, with no alarm
        against it?
        """
        return self.stands and self.knows_baseline_value

    @property
    def stands(self) -> bool:
        """Is the floor promised, certified or trusted, with no alarm against it?"""
        return self.kind == "certified" and not self.alarm

    @property
    def keeps_floor(self) -> bool:
        """Is there a floor that the agent keeps, or tries to keep, at all?"""
        return self.kind != "no floor" and not (self.kind == "not certified" and self.scope is None)

    @property
    def why_uncertified(self) -> str:
        """Why it is NOT CERTIFIED: by how much the bonus was scaled, or the words of a user's
        own agent.
        """
        if self.details:
            return self.details
        scaled = f"bonus scaled by {self.scale:g}"
        return scaled if self.scope is not None else f"{scaled}, and no floor promised at any scale"

    def for_another_floor(self, kept: str) -> "Promise":
        """Return the promise for when violations of another floor are counted. NOT CERTIFIED is
        never lost.
        """
        return self if self.kind == "not certified" else Promise("another floor", details=kept)

    def with_false_premise(self, why: str) -> "Promise":
        """Return the promise for when its premise turned out to be false. NOT CERTIFIED is never
        lost.
        """
        return self if self.kind == "not certified" else Promise("false premise", details=why)

    def after_alarm(self, why: str) -> "Promise":
        """Return the promise after an alarm: what was observed does not support it."""
        return replace(self, alarm=why)

    def in_general(self) -> "Promise":
        """Return the same promise without the numbers that differ from run to run."""
        details = (
            "the baseline is below the floor" if self.kind == "false premise" else self.details
        )
        return replace(self, details=details, baseline_value=None)

    def __str__(self) -> str:
        return self._text(str(self.premise))

    def where_premise_is_true(self) -> str:
        """Return the text for where true values are shown, and the baseline's is seen to be above
        the floor.

        What the agent knew of it is said beside: it may have been unknown to the agent.
        """
        if self.premise is None or self.premise == "none needed":
            return str(self)
        to_agent = {"unknown": "unknown to the agent", "asserted by the user": "given to the agent"}
        return self._text(f"true in this world, {to_agent.get(self.premise, self.premise)}")

    def _text(self, premise: str) -> str:
        text = self._without_alarm(premise)
        if not self.alarm:
            return text
        return (
            f"{text}; and the floor is {self.alarm}"
            if self.kind == "not certified"
            else f"{self.alarm}: {text}"
        )

    def _without_alarm(self, premise: str) -> str:
        if self.kind == "certified":
            where = "above the floor" if self.budget is None else "within the budget"
            value = "" if self.baseline_value is None else f" of {self.baseline_value:g}"
            word = f"{GIVEN_VALUE}{value}," if self.knows_baseline_value else "certified"
            assert self.delta is not None
            delta = at_most(self.delta)
            return f"{word} at delta = {delta} for {self._what()}; baseline {where}: {premise}"
        if self.kind == "not certified":
            return self.details or f"NOT CERTIFIED: {self.why_uncertified}"
        if self.kind == "no floor":
            return "no floor promised"
        if self.kind == "another floor":
            return f"no promise for this floor: the agent keeps {self.details}"
        if self.kind == "false premise":
            return f"no promise: its premise is false, {self.details}"
        return self.details

    @property
    def footnote(self) -> str:
        """What a word of the text means, to be printed beside it; empty where all words are
        plain.
        """
        return COIN if self.scope == "every episode's coin-averaged value" else ""

    def _what(self) -> str:
        """Return what is at or above the floor, or within the budget."""
        return (
            str(self.scope)
            if self.budget is None
            else f"the cost of {self.scope}, at most {at_most(self.budget)}"
        )


COIN = (
    "coin-averaged: a coin chooses one of two policies before each episode; the floor is kept on "
    "average over the coin, and one of the two may be below it"
)
NO_FLOOR = Promise("no floor")
UNCERTIFIED = "NOT CERTIFIED"
# what holds only if the baseline is worth what was given
GIVEN_VALUE = "trusted, given the baseline's value"


def by_given_value(value: float) -> str:
    """Return the sentence about a plan that rests on the value of the baseline that was given."""
    return f"{GIVEN_VALUE.capitalize()} of {value:g}: not certified."


def stated(words: str) -> Promise:
    """Return what a user's own agent says of itself, as a promise.

    The label NOT CERTIFIED is never lost: an agent that says it of itself is taken at its word.
    """
    if UNCERTIFIED in words:
        return Promise("not certified", scope="every episode's policy", details=words)
    return Promise("stated", details=words)
