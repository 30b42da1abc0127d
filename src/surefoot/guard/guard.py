"""Guard: play any new policy as often as the returns prove that a floor is kept, and no more often.

Baseline and candidates are anything that can act: a function, a model, a service. A coin at the
START of each episode says who plays it, and only its return is seen. Every method returns a new
state; nothing else is remembered.

Every bound that a plan may rest on has a share of delta of its own: for an absolute floor the lower
bounds of the baseline and of each candidate, for a floor relative to the baseline the comparison of
each candidate with it.
"""

import math
import secrets
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.coins import coin_generator
from surefoot.base.validation import (
    as_floats,
    as_number,
    require_integer,
    told,
)
from surefoot.errors import InvalidEpisode, InvalidFile, InvalidLog, InvalidSetting
from surefoot.guard import comparison, evidence
from surefoot.guard.plan import GuardPlan, PolicyBounds
from surefoot.guard.ramp import keeps, share_out, stage_below
from surefoot.guard.saved import read_state, write_state
from surefoot.guard.settings import Settings
from surefoot.guard.state import OPEN, GuardState, PolicyRecord, Proved, Ticket

BASELINE = "baseline"
GROWTH = 256  # a plan is in force until the returns of some policy have grown by 1/256, or by one
BELOW = "its returns show that it is below the floor"


class Guard(Settings):
    """The settings of a guard, which are fixed before the first episode.

    - floor: what the expected return of every episode must not be below, the coin averaged: a
      number, `sf.Relative(a)` (a share of the baseline's value may be lost) or `sf.Below(x)` (an
      amount of it), in the user's units
    - low, high: the range in which every return must lie, declared and never inferred from data
    - delta: how likely the promise may fail, ever
    - stages: what is played is the largest stage at or below the share that is certified. (0.5,
      200) is a stage that also needs 200 settled episodes of its candidate. Without stages the
      certified share is played
    - unit: the name of the user's units, for people
    """

    def begin(
        self,
        logged: Iterable[float | None] | None = None,
        fingerprint: str | None = None,
        run: str | None = None,
    ) -> GuardState:
        """Return the state before the first episode. `fingerprint` is the baseline's: a hash of its
        file.

        `logged` are returns of the baseline from before, None where one is missing. They count on a
        premise that nobody can check: they are ALL returns of a period that was chosen before they
        were looked at, of the very baseline that is played now.

        `run` is a name of this run that no other one has, by which its tickets are known and its
        coins tossed; None: a random one. A simulation names its run, so that it comes out the same
        again.
        """
        record = PolicyRecord(BASELINE, _fingerprint(fingerprint), 0)
        token = (
            secrets.token_hex(16)
            if run is None
            else _text("run", run, "a name that no other run has")
        )
        if logged is None:
            return GuardState(self.fingerprint, (record,), logged=record, run=token)
        returns, missing = _logged(logged)
        outside = returns[self.range.outside(returns)]
        if len(outside):
            raise InvalidLog(
                f"A logged return is {outside[0]:g}, outside the declared range {self.low:g} to "
                f"{self.high:g}. Declare the range of all returns that are possible."
            )
        codes = [
            evidence.code_of(ret, self.low, self.high)
            for ret in self.range.clipped(returns).tolist()
        ]
        record = replace(
            record, settled=evidence.weights_of(codes), heard=len(codes), missing=missing
        )
        return GuardState(self.fingerprint, (record,), logged=record, run=token)

    def admit(self, state: GuardState, name: str, fingerprint: str | None = None) -> GuardState:
        """Return the state with one more candidate, which may have been trained on whatever was
        seen so far.

        Only episodes that are drawn from now on count for it. A model that is trained again is
        another candidate: give it another name, and a fingerprint (a hash of its file) where there
        is one. Without a fingerprint the user asserts that the name always stands for the same
        policy.
        """
        self._require_mine(state)
        _text("The name of a candidate", name, "a word such as 'ppo-7'")
        if state.place(name) is not None:
            raise InvalidSetting(
                f"There is a policy {name!r} already, and its returns are kept for it. Choose "
                "another name: a model that was trained again is another candidate."
            )
        if len(state.policies) > 1000:
            raise InvalidSetting(
                "A guard has at most 1,000 candidates: the shares of delta are used up. Begin anew."
            )
        record = PolicyRecord(name, _fingerprint(fingerprint), state.tickets.n)
        return replace(state, policies=(*state.policies, record))

    def withdraw(
        self, state: GuardState, name: str, reason: str = "withdrawn by the user"
    ) -> GuardState:
        """Return the state in which this candidate is never played again. Its open tickets may
        still be settled.
        """
        self._require_mine(state)
        p = state.place(name)
        if p is None or p == 0:
            known = ", ".join(state.candidates) or "none"
            raise InvalidSetting(
                f"There is no candidate {name!r}. Those that may be withdrawn: {known}."
            )
        if not state.policies[p].active:
            return state
        return state.with_policy(
            p, replace(state.policies[p], withdrawn=state.tickets.n, reason=reason)
        )

    def freeze(self, state: GuardState, why: str) -> GuardState:
        """Return the state after an alarm: only the baseline is played, permanently, and nothing
        is promised.
        """
        self._require_mine(state)
        return state if state.alarm else replace(state, alarm=why)

    def plan(self, state: GuardState) -> GuardPlan:
        """Return how the next episodes' coin is shared out, and why that is safe. It draws
        nothing.
        """
        self._require_mine(state)
        bounds = tuple(self._bounds(state, p) for p in range(len(state.policies)))
        rule, b = self.rule, bounds[0]
        least = rule.level(Fraction(b.lower.value))
        below = tuple(
            policy.name
            for policy, bound in zip(state.policies[1:], bounds[1:], strict=True)
            if policy.active and Fraction(bound.upper.value) < least and not state.alarm
        )
        base = rule.base(b.lower.value)
        level = rule.level(base)
        lower = tuple(
            Fraction(bound.lower.value)
            if policy.active and policy.name not in below and not state.alarm
            else None
            for policy, bound in zip(state.policies[1:], bounds[1:], strict=True)
        )

        def stage(i: int, share: Fraction) -> Fraction:
            return stage_below(self.ladder, share, state.policies[i].heard)

        shares = share_out(base, level, lower, stage)
        certified = keeps(base, level, lower, shares.played)
        return GuardPlan(self, state, bounds, shares, certified and not state.alarm, below)

    def next_plan(self, state: GuardState, plan: GuardPlan | None) -> GuardPlan:
        """Return the same plan while it is in force: until some policy's returns have grown by
        1/256, or by one.

        A plan stays as safe as it was: its bounds hold at all times at once. Only an alarm, an
        admission or a withdrawal ends it at once. A plan of another state is never in force.
        """
        if plan is None or not self._in_force(state, plan):
            return self.plan(state)
        return plan

    def _in_force(self, state: GuardState, plan: GuardPlan) -> bool:
        before = plan.state.policies
        if len(before) != len(state.policies) or plan.state.alarm != state.alarm:
            return False
        grown = any(
            now.active != then.active or now.heard >= then.heard + max(1, then.heard // GROWTH)
            for then, now in zip(before, state.policies, strict=True)
        )
        return not grown and state.follows(plan.state)

    def draw(
        self, state: GuardState, plan: GuardPlan, rng: np.random.Generator
    ) -> tuple[GuardState, Ticket]:
        """Toss the coin of one episode, and return the state in which it is recorded, with the
        ticket.

        Keep the state before the episode begins: a ticket that was drawn is never left out. The
        coin is made of the run's name, the ticket's number and a number of `rng` (`base/coins.py`):
        no generator of the process draws it.
        """
        self._require_mine(state)
        self._require_playable(state, plan)
        for p, bound in enumerate(plan.bounds):
            state = state.with_policy(
                p, state.policies[p].with_proofs(bound.lower.proved, bound.upper.proved)
            )
        for name in plan.below:
            state = self.withdraw(state, name, BELOW)
        tossed = float(coin_generator(rng, f"run {state.run}", state.tickets.n).random())
        coin, p = tossed, 0
        for i in range(1, len(plan.shares.played)):
            # a whole multiple of 2^-53, as the coin is: nothing is rounded
            share = float(plan.shares.played[i])
            if coin < share:
                p = i
                break
            coin -= share
        return self.dispatch(state, p, tossed)

    def dispatch(self, state: GuardState, p: int, coin: float = 0.0) -> tuple[GuardState, Ticket]:
        """Return the state with one more ticket of policy p, and the ticket: for coins that were
        tossed elsewhere.

        `coin` is the random number that decided. Without it, two states that were forked from one
        and dispatched the same policies cannot tell their tickets apart.
        """
        self._require_mine(state)
        if require_integer("The place of a policy", p, 0, InvalidSetting) >= len(state.policies):
            raise InvalidSetting(
                f"There is no policy {p}: expected a place in state.policies, 0 for the baseline."
            )
        policy = state.policies[p]
        if not policy.active:
            raise InvalidSetting(
                f"{policy.name!r} was withdrawn, and has no more tickets. Dispatch another policy."
            )
        after = replace(state, tickets=state.tickets.drawn(p, state.next_mark(p, coin)))
        after = after.with_policy(p, replace(policy, unheard=policy.unheard + 1))
        return after, after.ticket(state.tickets.n)

    def settle(self, state: GuardState, ticket: Ticket | int, ret: float) -> GuardState:
        """Return the state that knows this ticket's return, in the user's units.

        A ticket of another run is refused, and so is one of a state that was forked from this one.
        A number alone says whose ticket it is only where one process draws from one state: do not
        settle by number where states are forked.

        The same return once more changes nothing. A return below `low`, or, of a baseline from
        which the floor is measured, above `high`, shows that the declared range is false: the state
        is frozen to the baseline, with an alarm. On the other side it is refused. The ticket stays
        open in both cases. Only rounding is forgiven (`base/ranges.py`): a return that is outside
        by that little counts as the end of the range.
        """
        self._require_mine(state)
        number = self._number(state, ticket)
        p, code, before = state.tickets.row(number)
        given = as_number(
            f"The return of ticket {number}",
            ret,
            "a number in the declared range. It stays open",
            InvalidEpisode,
        )
        admitted = self.range.admits(given)
        value = float(self.range.clipped(given)) if admitted else given
        if code != OPEN:
            if value == before:
                return state
            raise InvalidEpisode(
                f"Ticket {number} was settled with {before:g} before, found {value:g} now. The "
                "first one counts; nothing was changed."
            )
        name, inside = state.policies[p].name, f"the declared range {self.low:g} to {self.high:g}"
        if not admitted and (value < self.low or (p == 0 and self.rule.relative)):
            return self.freeze(
                state,
                f"ticket {number} ({name}) returned {value:g}, outside {inside}: the premise is "
                "false. Only the baseline is played from now on. Declare the range of all returns "
                "that are possible, and begin anew",
            )
        if not admitted:
            raise InvalidEpisode(
                f"Ticket {number} ({name}) returned {value:g}, above {inside}. It was not counted, "
                "and the ticket stays open: it counts as the lowest return. Begin anew with the "
                "range of all returns."
            )
        code = evidence.code_of(value, self.low, self.high)
        after = replace(state, tickets=state.tickets.settled(number, code, value))
        return after.with_policy(p, state.policies[p].with_return(code))

    def replay(
        self,
        tickets: Iterable[tuple[str, float | None]],
        baseline: str = BASELINE,
        logged: Iterable[float | None] | None = None,
        state: GuardState | None = None,
    ) -> GuardState:
        """Return the state after tickets that were drawn elsewhere: ALL of them, in dispatch order,
        by name and return.

        None: no return came. `logged` is as in `begin`. A candidate is admitted with its first
        ticket. A return outside the range is an alarm, or is refused, as in `settle`. `state` is
        one that these tickets follow, in place of `logged`: its open tickets stay open.
        """
        if state is not None and logged is not None:
            raise InvalidSetting("Give logged returns, or a state, which has its own: not both.")
        state = self.begin(logged) if state is None else state
        if state.place(baseline):
            raise InvalidSetting(
                f"{baseline!r} is a candidate of the state, expected the baseline's name."
            )
        names = {baseline: 0, **{policy.name: p for p, policy in enumerate(state.policies) if p}}
        for name, ret in tickets:
            if name not in names:
                names[name] = len(names)
                state = self.admit(state, name)
            state, ticket = self.dispatch(state, names[name])
            state = state if ret is None else self.settle(state, ticket, ret)
        return state

    def save(self, state: GuardState, path: str | Path) -> None:
        """Write a state to a file, whole or not at all; `load` reads it."""
        self._require_mine(state)
        write_state(path, state)

    def load(self, path: str | Path) -> GuardState:
        """Return the state in a file that `save` of this very guard wrote."""
        return self.checked(path, read_state(path, self.fingerprint, self.low, self.high))

    def checked(self, path: str | Path, state: GuardState) -> GuardState:
        """Return a state that was read from a file, if its tickets prove the bounds that it
        remembers.
        """
        for p, policy in enumerate(state.policies):
            for sign, level, proved in zip(
                (1, -1), self.levels(p), (policy.lower, policy.upper), strict=True
            ):
                if not self._proves(state, p, sign, level, proved):
                    raise InvalidFile(
                        f"{path}: its tickets do not prove its bounds. The file is damaged: "
                        "restore a copy."
                    )
        return state

    def _proves(self, state: GuardState, p: int, sign: int, level: float, proved: Proved) -> bool:
        """Do the tickets prove a bound that a state remembers?"""
        if not (self._compares(p) and sign > 0):
            return evidence.proves(state, p, sign, level, proved)
        zero = comparison.zero_of(self.rule, self.low, self.high)
        return comparison.proves_comparison(
            state, p, level, zero, comparison.is_ratio(self.rule), proved
        )

    def _bounds(self, state: GuardState, p: int) -> PolicyBounds:
        below, above = self.levels(p)
        upper = evidence.upper_bound(state, p, above, self.low, self.high)
        if self._compares(p):
            return PolicyBounds(
                comparison.compare(state, p, below, self.rule, self.low, self.high), upper
            )
        return PolicyBounds(evidence.lower_bound(state, p, below, self.low, self.high), upper)

    def _compares(self, p: int) -> bool:
        """Is the lower bound of policy p a comparison with the baseline?"""
        return self.rule.relative and p > 0

    def _require_mine(self, state: object) -> None:
        if not isinstance(state, GuardState):
            raise InvalidSetting(
                f"Expected a state, as guard.begin() returns it, found {type(state).__name__}."
            )
        if state.guard != self.fingerprint:
            raise InvalidSetting(
                "This state belongs to another guard: floor, range, delta or stages differ. "
                "Nothing was changed."
            )

    def _require_playable(self, state: GuardState, plan: GuardPlan) -> None:
        """Refuse a plan of another guard, and one that plays what may not be played any more."""
        if not isinstance(plan, GuardPlan) or plan.guard.fingerprint != self.fingerprint:
            raise InvalidSetting(
                "This plan was not made by this guard. Make one with guard.plan(state)."
            )
        if not state.follows(plan.state):
            raise InvalidSetting(
                "This plan was made from another state. Make one with guard.plan(state)."
            )
        stopped = [
            policy.name
            for policy, share in zip(state.policies, plan.shares.played, strict=False)
            if share and not (policy.active and (policy.name == BASELINE or not state.alarm))
        ]
        if stopped:
            raise InvalidSetting(
                f"This plan plays {stopped[0]!r}, which was withdrawn, or stopped by an alarm, "
                "after it was made. Make another one with guard.plan(state)."
            )

    def _number(self, state: GuardState, ticket: object) -> int:
        """Return the number of a ticket that was drawn from this state or one before it."""
        if isinstance(ticket, Ticket):
            number = ticket.number
            known = 0 <= number < state.tickets.n and state.ticket(number) == ticket
        else:
            number = require_integer("The number of a ticket", ticket, 0, InvalidEpisode)
            known = number < state.tickets.n
        if not known:
            raise InvalidEpisode(
                f"Ticket {number} is unknown: it is not one of the {state.tickets.n:,} tickets "
                "that were drawn in this run, from this state. Nothing was changed."
            )
        return number


def require_guard(guard: object) -> None:
    """Refuse what is no guard."""
    if not isinstance(guard, Guard):
        raise InvalidSetting(f"guard is {told(guard)}, expected sf.Guard(floor, low, high).")


def _fingerprint(given: object) -> str | None:
    return (
        None
        if given is None
        else _text("fingerprint", given, "a text such as a hash of the model's file, or None")
    )


def _text(name: str, given: object, meaning: str) -> str:
    if not (isinstance(given, str) and given and given.isprintable()):
        raise InvalidSetting(f"{name} is {given!r}, expected {meaning}.")
    return given


def _logged(logged: Iterable[float | None]) -> tuple[Floats, int]:
    """Return logged returns, and how many are missing."""
    if not isinstance(logged, Iterable):
        raise InvalidLog(
            f"logged is {told(logged)}, expected a list of returns, None where one is missing."
        )
    given = logged.tolist() if isinstance(logged, np.ndarray) else list(logged)
    known = [ret for ret in given if ret is not None]
    odd = next((ret for ret in known if isinstance(ret, bool | np.bool_)), None)
    if odd is not None:
        raise InvalidLog(
            f"A logged return is {odd}, expected a number, or None where a return is missing."
        )
    if any(isinstance(ret, float) and math.isnan(ret) for ret in known):
        raise InvalidLog(
            "A logged return is NaN, expected a number, or None where a return is missing."
        )
    returns = as_floats("logged", known, InvalidLog) if known else np.zeros(0)
    if returns.ndim != 1:
        raise InvalidLog(f"logged has shape {returns.shape}, expected one return per episode.")
    return returns, len(given) - len(known)
