"""GuardPlan: how the coin is shared out, and why that is safe. Its texts are made here."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

from surefoot.agents.floors import Below, Relative
from surefoot.agents.promise import NO_FLOOR, Promise
from surefoot.base.text import how_many
from surefoot.base.validation import at_least, at_most
from surefoot.errors import printable_lines
from surefoot.guard.comparison import is_ratio
from surefoot.guard.evidence import Bound
from surefoot.guard.forecast import X, episodes_to_stages, expected_of
from surefoot.guard.ramp import Shares, on_grid
from surefoot.guard.settings import Settings
from surefoot.guard.state import GuardState, PolicyRecord


class PolicyBounds(NamedTuple):
    """What is proved of a policy, each side at its own level."""

    # of its value; of a candidate, where the floor is relative to the baseline, compared with that
    lower: Bound
    upper: Bound


@dataclass(frozen=True, eq=False)
class GuardPlan:
    """How the next episodes' coin is shared out. It is safe for any number of episodes from now on.

    Values are in the user's units. `explain()` says why, what is missing, and what is taken on
    trust.
    """

    guard: Settings
    state: GuardState  # what it was made from
    bounds: tuple[PolicyBounds, ...]
    shares: Shares
    certified: bool  # is it proved, at level delta, that what is PLAYED keeps the floor?
    # candidates that are proved to be below the floor: `draw` withdraws them
    below: tuple[str, ...]

    def __repr__(self) -> str:
        played = ", ".join(f"{name} {share:.4g}" for name, share in self.share.items() if share)
        if self.frozen:
            return f"GuardPlan({played}; frozen after an ALARM, no promise is made)"
        floor = self.guard.floor
        kept = str(floor) if isinstance(floor, Relative | Below) else _amount(self, at_least(floor))
        everyone = list(enumerate(self.state.policies))
        told = (
            [(p, each) for p, each in everyone[1:] if each.active]
            if self.guard.rule.relative
            else everyone[:1]
        )
        known = "".join(f"; {each.name}: {_proved(self, p)}" for p, each in told)
        return f"GuardPlan({played}; {self.safety}; floor: {kept}{known})"

    @property
    def frozen(self) -> bool:
        """Is the baseline played because of an alarm? Then nothing is certified, and no promise
        is made.
        """
        return bool(self.state.alarm)

    def _named(self, values: Iterable[Fraction | float], first: int = 0) -> dict[str, float]:
        """Return values by the names of policies, from the first one on."""
        named = zip(self.state.policies[first:], values, strict=False)
        return {policy.name: float(value) for policy, value in named}

    @property
    def share(self) -> dict[str, float]:
        """The probability with which each policy plays an episode."""
        return self._named(self.shares.played)

    @property
    def rho(self) -> float:
        """The probability that an episode is not the baseline's."""
        return float(1 - self.shares.played[0])

    @property
    def certified_share(self) -> dict[str, float]:
        """What is certified for each candidate, before it is rounded down to a stage."""
        return self._named(self._certified[1:], first=1)

    @property
    def _certified(self) -> tuple[Fraction, ...]:
        """The shares that are certified. An anchor may have all of the coin."""
        anchor = self.shares.anchor
        alone = len(self.state.candidates) == 1
        return tuple(
            Fraction(1) if anchor == i > 0 and alone else share
            for i, share in enumerate(self.shares.certified)
        )

    @property
    def stage(self) -> dict[str, float]:
        """The largest stage that each candidate has reached; 0: none."""
        reached = [
            max((s for s, _ in self.guard.ladder if on_grid(Fraction(s)) <= share), default=0.0)
            for share in self.shares.played[1:]
        ]
        return self._named(reached, first=1)

    @property
    def lower(self) -> dict[str, float]:
        """The value that each policy has at least. After an alarm nothing is proved: it is empty.

        For an absolute floor all are proved within delta. For a relative one it is that of the
        baseline alone, not within delta: see `compared`.
        """
        told = self.bounds[: 1 if self.guard.rule.relative else None]
        return {} if self.frozen else self._named(bound.lower.value for bound in told)

    @property
    def compared(self) -> dict[str, float]:
        """What each candidate is worth at least, compared with the baseline: proved within delta,
        for a relative floor.

        For `sf.Relative` as a share of the baseline's value, for `sf.Below` how much more than that
        (below 0: less).
        """
        if self.frozen or not self.guard.rule.relative:
            return {}
        return self._named((bound.lower.value for bound in self.bounds[1:]), first=1)

    @property
    def upper(self) -> dict[str, float]:
        """The value that each policy has at most, not within delta; empty after an alarm."""
        return {} if self.frozen else self._named(bound.upper.value for bound in self.bounds)

    @property
    def safety(self) -> Literal["certified", "trusted"]:
        """Is what is played proved to keep the floor, or is the baseline (or a stage) played on
        trust?

        After an alarm it is never certified, and no promise is made: see `frozen`.
        """
        return "certified" if self.certified else "trusted"

    @property
    def floor(self) -> float:
        """The floor; of one relative to the baseline, what it is at most (NaN after an alarm: that
        is not known).

        The latter is not within delta: it rests on `upper`.
        """
        if self.frozen and self.guard.rule.relative:
            return math.nan
        return float(self.guard.rule.level(Fraction(self.bounds[0].upper.value)))

    @property
    def promise(self) -> Promise:
        """What is promised of every episode, and how well its premise is known. After an alarm:
        nothing.
        """
        if self.frozen:
            return NO_FLOOR.after_alarm(self.state.alarm)
        return self.guard.promise_after(self.bounds[0].lower.value)

    @cached_property
    def episodes_to_go(self) -> int | None:
        """About how many more episodes until a candidate reaches its next stage, if returns go on
        as they are.

        Rather too many than too few: half of all runs are there earlier, often in two thirds of the
        time. None: nothing more to reach, no return of it is known yet, or not within 10^9
        episodes.
        """
        found = [
            self._to_go(p) for p in range(1, len(self.state.policies)) if p != self.shares.anchor
        ]
        return min((n for n in found if n is not None), default=None)

    def _to_go(self, p: int) -> int | None:
        policies, share = self.state.policies, self.shares.played[p]
        ahead = [s for s, _ in self.guard.ladder if on_grid(Fraction(s)) > share] or [1.0]
        mine = policies[p]
        if share == 1 or not mine.active or mine.name in self.below or self.frozen:
            return None
        if not (mine.heard and policies[0].heard):
            return None
        others = [
            i
            for i, each in enumerate(policies)
            if i not in (0, p) and each.active and each.name not in self.below
        ]
        baseline = expected_of(self.state, 0, self.bounds[0].lower.proved, self.guard.rule.relative)
        candidates = [
            expected_of(self.state, i, self.bounds[i].lower.proved, False) for i in (p, *others)
        ]
        return episodes_to_stages(self.guard, baseline, candidates, ahead[:1])[0]

    @property
    def why(self) -> str:
        """One sentence: why what is played is safe, or on what condition."""
        if self.frozen:
            return f"Frozen, no promise is made. ALARM: {self.state.alarm}."
        floor = _floor(self)
        if self.certified and self.rho == 0.0 and self.guard.rule.relative:
            return (
                "Certified, and no data are needed for it: only the baseline is played, and the "
                "floor is measured from the baseline itself."
            )
        if self.certified:
            return (
                "Certified: on an event of probability at least "
                f"{at_least(1 - self.guard.delta)} the coin-averaged value of every episode keeps "
                f"{floor}."
            )
        if self.rho == 0.0:
            return (
                f"Trusted, not certified: the returns do not prove {floor} yet; the baseline is "
                f"proved to be worth {_proved(self, 0)}. It rests on the premise that the baseline "
                "is above the floor."
            )
        return (
            f"Trusted, not certified: the candidate alone is proved to keep {floor}, but the "
            "baseline is not, and a stage below 1 plays it, too."
        )

    @property
    def missing(self) -> str:
        """One sentence: what is missing for more."""
        if self.frozen:
            return (
                "What is missing: a guard that begins anew, with a range or a process that is as "
                "declared."
            )
        open_ = [p for p in range(1, len(self.state.policies)) if self.state.policies[p].active]
        open_ = [p for p in open_ if self.state.policies[p].name not in self.below]
        if not open_:
            return "What is missing: a candidate. Admit one with guard.admit(state, name)."
        lines = []
        for p in open_:
            policy, share = self.state.policies[p], float(self.shares.played[p])
            if p == self.shares.anchor:
                lines.append(f"  {policy.name}: nothing, it is certified to be above the floor")
                continue
            line = (
                f"  {policy.name} plays {share:.4g} of the episodes (certified: "
                f"{float(self.shares.certified[p]):.4g}); for all of them it must be proved to be "
                f"worth {_goal(self)}, and is proved to be worth {_proved(self, p)}"
            )
            needs = [need for _, need in self.guard.ladder if need > policy.heard]
            lines.append(
                f"{line}; a stage also needs {needs[0]:,} settled episodes of it" if needs else line
            )
        go = self.episodes_to_go
        if go is not None:
            lines.append(
                f"  about {go:,} more episodes until the next stage, if returns go on as they are"
            )
        return "\n".join(["What is missing:", *lines])

    def explain(self) -> str:
        """Return the whole explanation, paragraph by paragraph."""
        parts = [_verdict(self), _evidence(self), _delta(self), self.missing, _premises(self)]
        if self.frozen:
            parts = [_verdict(self), _seen(self), self.missing]
        return printable_lines("\n\n".join(part for part in parts if part))


def _amount(plan: GuardPlan, value: str) -> str:
    return f"{value} {plan.guard.unit}".rstrip()


def _proved(plan: GuardPlan, p: int) -> str:
    """Return the bound of policy p that is proved within delta."""
    value = plan.bounds[p].lower.value
    if not plan.guard.rule.relative:
        return f"at least {_amount(plan, at_least(value))}"
    if is_ratio(plan.guard.rule):
        return f"at least {at_least(value)} of the baseline's value"
    more = (
        f"less {_amount(plan, at_most(-value))}"
        if value < 0
        else f"plus {_amount(plan, at_least(value))}"
    )
    return f"at least the baseline's value {more}"


def _other(plan: GuardPlan, p: int) -> str:
    """Return the bound of policy p that is not proved within delta."""
    bound, name = plan.bounds[p], plan.state.policies[p].name
    if p == 0 and plan.guard.rule.relative:
        return f"  {name}: at least {_amount(plan, at_least(bound.lower.value))}"
    return f"  {name}: at most {_amount(plan, at_most(bound.upper.value))}"


def _floor(plan: GuardPlan) -> str:
    floor = plan.guard.floor
    if isinstance(floor, Relative | Below):
        return f"{floor}'s value"
    return f"the floor of {_amount(plan, at_least(floor))}"


def _goal(plan: GuardPlan) -> str:
    """Return what a candidate must be proved to be worth for all of the coin."""
    rule = plan.guard.rule
    if not rule.relative:
        return _amount(plan, at_most(plan.floor))
    if is_ratio(rule):
        return f"{at_most(float(rule.keep))} of the baseline's value"
    return f"the baseline's value less {_amount(plan, at_least(float(rule.amount)))}"


def _verdict(plan: GuardPlan) -> str:
    played = [f"{name} with probability {share:.4g}" for name, share in plan.share.items() if share]
    lines = [f"Next: {', '.join(played)}, for the whole episode.", plan.why]
    lines += [
        f"{name} is withdrawn: its returns show that it is below the floor (wrongly with "
        "probability 0.1 at most)."
        for name in plan.below
    ]
    return "\n".join(lines if plan.frozen else [*lines, _premise(plan)])


def _premise(plan: GuardPlan) -> str:
    """Say how well it is known that the baseline is above the floor."""
    if plan.promise.premise == "certified by data":
        return "That the baseline is above the floor is certified by data."
    if plan.promise.premise != "none needed":
        return "That the baseline is above the floor is not proved yet."
    relative = plan.guard.rule.relative
    why = (
        "it is measured from the baseline" if relative else "no return that is possible is below it"
    )
    return f"The baseline cannot be below the floor: {why}."


def _evidence(plan: GuardPlan) -> str:
    policies = plan.state.policies
    lines = [
        "What the returns prove of the expected return, within delta, after "
        f"{plan.state.tickets.n:,} episodes:"
    ]
    for p, policy in enumerate(policies):
        alone = p == 0 and plan.guard.rule.relative  # it is what others are compared with
        proved = "what the others are compared with" if alone else _proved(plan, p)
        lines.append(f"  {policy.name}: {proved}, by {_returns(plan, policy)}")
    level = plan.guard.levels(1)[1]
    lines.append(
        "Not within delta, and used only to withdraw candidates (each is wrong with probability "
        f"{level:g} at most):"
    )
    return "\n".join([*lines, *(_other(plan, p) for p in range(len(policies)))])


def _seen(plan: GuardPlan) -> str:
    """Say what was paid. After an alarm that proves nothing."""
    lines = [f"What was seen, after {plan.state.tickets.n:,} episodes. It proves nothing:"]
    return "\n".join(
        [*lines, *(f"  {policy.name}: {_returns(plan, policy)}" for policy in plan.state.policies)]
    )


def _returns(plan: GuardPlan, policy: PolicyRecord) -> str:
    """Return how many returns of a policy are known, their mean, and how many did not come."""
    seen = how_many(policy.heard, "return")
    mean = ""
    if policy.heard:
        settled, guard = policy.settled[: len(X)], plan.guard
        share = float(settled @ X) / float(settled.sum())
        mean = f", mean {_amount(plan, f'{guard.low + (guard.high - guard.low) * share:.4g}')}"
    unknown = policy.unheard + policy.missing
    worst = "" if plan.frozen else f", counted as the worst return{'' if unknown == 1 else 's'}"
    lost = f"; {unknown:,} without a return{worst}" if unknown else ""
    gone = (
        "" if policy.active else f"; withdrawn before episode {policy.withdrawn:,}: {policy.reason}"
    )
    return f"{seen}{mean}{lost}{gone}"


def _delta(plan: GuardPlan) -> str:
    guard = plan.guard
    lines = [f"How delta = {at_most(guard.delta)} is spent, for all episodes at once:"]
    for p, policy in enumerate(plan.state.policies):
        of = f"the lower bound of {policy.name}"
        if guard.rule.relative:
            of = f"comparing {policy.name} with the baseline"
        if guard.share_of_delta(p):
            lines.append(f"  {guard.delta * guard.share_of_delta(p):.4g} on {of}")
    left = 1.0 - sum(guard.share_of_delta(p) for p in range(len(plan.state.policies)))
    lines.append(f"  {guard.delta * left:.4g} is left for candidates that are admitted later")
    return "\n".join(lines)


def _premises(plan: GuardPlan) -> str:
    guard, state = plan.guard, plan.state
    lines = [
        "Taken on trust, checked by nobody:",
        "  every return lies in the declared range, "
        f"{_amount(plan, f'{guard.low:g} to {guard.high:g}')}",
        "  an episode has no effect on the return of another one: the coin is tossed for what a "
        "return belongs to, such as a customer or a session",
        "  a policy's expected return does not change: under drift what is proved is that some "
        "past mean was as high",
    ]
    named = [policy.name for policy in state.policies if policy.fingerprint is None]
    if named:
        names = ", ".join(named)
        lines.append(
            "  a name stands for one policy only (asserted by the user, without a fingerprint: "
            f"{names})"
        )
    if state.logged is not None and state.logged.heard + state.logged.missing:
        lines.append(
            f"  the {state.logged.heard + state.logged.missing:,} logged returns are all of a "
            "period that was chosen before they were looked at, and of the baseline that is played "
            "now"
        )
    if not plan.certified:
        lines.append("  the baseline is at or above the floor")
    return "\n".join(lines)
