"""GuardLedger: every plan of a guard in a file, with the tickets it rests on (format:
docs/ledger.md).

`guard_verifier.py` checks it, and shares no code with this file, nor with the rest of the library.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from surefoot.__about__ import __version__
from surefoot.audit import guard_verifier
from surefoot.audit.ledger import (
    BEFORE_THE_FIRST,
    NOT_OF_THIS_RUN,
    Place,
    PlanFile,
    require_nothing_written,
)
from surefoot.audit.records import Entry, hexes
from surefoot.base.files import require_place
from surefoot.errors import InvalidFile, InvalidSetting
from surefoot.guard import Guard, GuardPlan, GuardState
from surefoot.guard.ramp import GRID
from surefoot.guard.state import OPEN, Columns, PolicyRecord, Tickets

# formats: a floor measured from the baseline rests on comparisons, others on bounds
COMPARED, BOUNDED = 2, 1


class GuardLedger(PlanFile):
    """A file with every plan of one guard. The digest of each record is chained to the one before.

        with sf.GuardLedger("ramp.ledger", guard) as ledger:
            plan = guard.plan(state)
            ledger.write(plan)                       # before an episode is drawn from it
            state, ticket = guard.draw(state, plan, rng)
            ...
            ledger.close(state)

    A record holds what was drawn and settled since the record before. A plan that shares out the
    coin as the last one is not written again. The file never replaces another one.
    `sf.check_ledger(path)` re-derives every plan.
    """

    def __init__(self, path: str | Path, guard: Guard) -> None:
        """Write plans of this guard to a new file."""
        self.guard = guard
        self._begin(path, Written(BEFORE_THE_FIRST, 0, None, []))

    @classmethod
    def resume(
        cls, path: str | Path, guard: Guard, state: GuardState, place: Place | None = None
    ) -> Self:
        """Continue a ledger where this state stands. Later records, and one that was cut off, are
        removed.

        With the `place` that a saved run remembers, a ledger that never was at that place is
        refused, left as it is.
        """
        target = require_place(path)
        if not target.exists():
            require_nothing_written(target, place)
            return cls(target, guard)
        known = cls.__new__(cls)
        known.path, known.guard = target, guard
        known._last = _kept(target, guard, state, place)
        return known

    def write(self, plan: GuardPlan) -> None:
        """Append this plan, unless the coin is shared out as before."""
        self._require_open()
        if not isinstance(plan, GuardPlan) or plan.guard.fingerprint != self.guard.fingerprint:
            raise InvalidSetting(
                "This plan was not made by the guard of the ledger. Start a ledger for each guard."
            )
        if self._last.state is None:
            begun = _begun(plan.state)
            self._append(
                first_record(self.guard, plan.state), self._last._replace(state=begun), "xb"
            )
        record = {
            "kind": "plan",
            "number": self._last.plans,
            **self._since(plan.state),
            **_claims(plan),
        }
        if _terms(record) != self._last.terms:
            self._append(record, Written("", self._last.plans + 1, plan.state, _terms(record)))

    def close(self, state: GuardState) -> None:
        """Write the last record: what was drawn and settled since the last plan."""
        if self._closed or self._last.state is None:
            self._closed = True
            return
        self._end(self._since(state))

    def __exit__(self, *_: object) -> None:
        """Leave the file as it is: `close` needs the last state."""

    def _since(self, state: GuardState) -> Entry:
        assert self._last.state is not None
        return changes(self._last.state, state)


class Written(NamedTuple):
    """The state of a ledger after its last record."""

    digest: str
    plans: int
    state: GuardState | None  # up to which it tells; None: nothing was written yet
    terms: list[Any]  # how the last plan shares out the coin; empty: there is none


def first_record(guard: Guard, state: GuardState) -> Entry:
    """Return what all plans of a guard have in common."""
    rule, logged = guard.rule, state.logged
    return {
        "kind": "guard",
        "format": COMPARED if rule.relative else BOUNDED,
        "software": f"surefoot {__version__}",
        "low": hexes(guard.low),
        "high": hexes(guard.high),
        "floor": None if rule.relative else hexes(float(rule.floor)),
        "max_loss": hexes(float(1 - rule.keep)) if rule.relative and not rule.amount else None,
        "below": hexes(float(rule.amount)) if rule.amount else None,
        "delta": hexes(guard.delta),
        "stages": [hexes(share) for share, _ in guard.ladder],
        "logged": [] if logged is None else [int(weight) for weight in logged.settled[:-1]],
        "missing": 0 if logged is None else logged.missing,
        "baseline": state.policies[0].fingerprint or "",
    }


def changes(before: GuardState, state: GuardState) -> Entry:
    """Return what happened between two states of one guard."""
    then, now = before.tickets.columns, state.tickets.columns
    open_before = np.ones(state.tickets.n, dtype=np.bool_)
    open_before[: before.tickets.n] = then.code == OPEN
    known = len(before.policies)
    gone = [
        [p, policy.withdrawn]
        for p, policy in enumerate(state.policies)
        if policy.withdrawn is not None and (p >= known or before.policies[p].withdrawn is None)
    ]
    return {
        "admitted": [[p.name, p.fingerprint or "", p.admitted] for p in state.policies[known:]],
        "withdrawn": gone,
        "drawn": now.policy[before.tickets.n :].tolist(),
        "settled": [
            [int(i), hexes(float(now.ret[i]))]
            for i in np.flatnonzero(open_before & (now.code != OPEN))
        ],
        "alarm": state.alarm,
    }


def _claims(plan: GuardPlan) -> Entry:
    """Return what a plan claims."""
    used = [bound.lower for bound in plan.bounds[1 if plan.guard.rule.relative else 0 :]]
    return {
        "bounds": [[hexes(bound.value), bound.proved.tickets] for bound in used],
        "shares": [int(share * GRID) for share in plan.shares.played],
        "safety": plan.safety,
    }


def _terms(record: Entry) -> list[Any]:
    return [record["shares"], record["safety"], record["alarm"]]


def _begun(state: GuardState) -> GuardState:
    """Return the state before the first ticket and the first candidate."""
    logged = state.logged
    first = (
        PolicyRecord(state.policies[0].name, state.policies[0].fingerprint, 0)
        if logged is None
        else logged
    )
    return GuardState(state.guard, (first,), Tickets(), logged)


def _kept(path: Path, guard: Guard, state: GuardState, place: Place | None) -> Written:
    """Remove what follows this state, and return the ledger's own state after what is kept."""
    digest, kept, told = BEFORE_THE_FIRST, 0, Told()
    seen, lines = place is None or place.plans == 0, path.read_bytes().splitlines(keepends=True)
    # a crash cut off its first record
    if not lines or (len(lines) == 1 and not lines[0].endswith(b"\n")):
        require_nothing_written(path, place)
        path.unlink()
        return Written(BEFORE_THE_FIRST, 0, None, [])
    for line in lines:
        try:
            record = guard_verifier.read_record(line, digest)
        except (ValueError, KeyError, TypeError):
            break
        if record["kind"] == "guard":
            mine = {
                **first_record(guard, state),
                "software": record["software"],
                "digest": record["digest"],
            }
            if mine != record:
                raise InvalidFile(f"{path} is the ledger of another guard. Choose another file.")
        elif record["kind"] == "end" or not told.fits(record, state):
            break
        else:
            told.add(record)
        digest, kept = record["digest"], kept + len(line)
        seen = seen or place == (told.plans, digest)
    if digest == BEFORE_THE_FIRST:
        raise InvalidFile(
            f"{path} is not the ledger of a guard, or a damaged one. Choose another file."
        )
    if not seen:
        raise InvalidFile(NOT_OF_THIS_RUN.format(path))
    with path.open("r+b") as stream:
        stream.truncate(kept)
    return Written(digest, told.plans, told.part_of(state), told.terms)


class Told:
    """What the records of a ledger say, up to some plan."""

    def __init__(self) -> None:
        """Begin before the first plan."""
        self.tickets, self.policies, self.plans, self.alarm = 0, 1, 0, ""
        self.settled: list[int] = []
        self.withdrawn: dict[int, int] = {}
        self.terms: list[Any] = []

    def fits(self, record: Entry, state: GuardState) -> bool:
        """Did all that a record tells happen before this state?"""
        columns, last = state.tickets.columns, self.tickets + len(record["drawn"])
        happened = last <= state.tickets.n and self.policies + len(record["admitted"]) <= len(
            state.policies
        )
        happened = happened and record["drawn"] == columns.policy[self.tickets : last].tolist()
        happened = happened and record["alarm"] in ("", state.alarm)
        happened = happened and all(
            state.policies[p].withdrawn == at for p, at in record["withdrawn"]
        )
        return happened and all(hexes(float(columns.ret[i])) == ret for i, ret in record["settled"])

    def add(self, record: Entry) -> None:
        """Take in one more plan."""
        self.tickets += len(record["drawn"])
        self.policies += len(record["admitted"])
        self.plans += 1
        self.settled += [number for number, _ in record["settled"]]
        self.withdrawn |= {p: at for p, at in record["withdrawn"]}
        self.alarm, self.terms = record["alarm"], _terms(record)

    def part_of(self, now: GuardState) -> GuardState:
        """Return the part of a later state that was told."""
        all_, n = now.tickets.columns, self.tickets
        known = np.zeros(n, dtype=np.bool_)
        known[self.settled] = True
        code, ret = np.where(known, all_.code[:n], OPEN), np.where(known, all_.ret[:n], np.nan)
        columns = Columns(all_.policy[:n], code, ret, all_.mark[:n])
        policies = tuple(
            replace(each, withdrawn=self.withdrawn.get(p))
            for p, each in enumerate(now.policies[: self.policies])
        )
        return replace(now, policies=policies, tickets=Tickets.of(columns), alarm=self.alarm)
