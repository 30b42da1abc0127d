"""GuardLedger: every plan of a guard in a file, with the tickets it rests on (format:
docs/ledger.md).

`guard_verifier.py` checks it, and shares no code with this file, nor with the rest of the library.
"""

from pathlib import Path
from typing import Any, NamedTuple, Self

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
from surefoot.guard.state import OPEN

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
        self._begin(path, Written())

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
        if not self._last.begun:
            self._append(first_record(self.guard, plan.state), self._last, "xb")
        record = {
            "kind": "plan",
            "number": self._last.plans,
            **self._last.changes(plan.state),
            **_claims(plan),
        }
        if _terms(record) != self._last.terms:
            self._append(record, self._last.after(record))

    def close(self, state: GuardState) -> None:
        """Write the last record: what was drawn and settled since the last plan."""
        if self._closed or not self._last.begun:
            self._closed = True
            return
        self._end(self._last.changes(state))

    def __exit__(self, *_: object) -> None:
        """Leave the file as it is: `close` needs the last state."""


class Written(NamedTuple):
    """What a ledger has told, up to its last record."""

    digest: str = BEFORE_THE_FIRST
    plans: int = 0
    terms: tuple[Any, ...] = ()  # how the last plan shares out the coin; empty: there is none
    tickets: int = 0
    open: frozenset[int] = frozenset()  # of which tickets it told no return
    policies: int = 1
    withdrawn: frozenset[int] = frozenset()

    @property
    def begun(self) -> bool:
        """Is there a first record?"""
        return self.digest != BEFORE_THE_FIRST

    def changes(self, state: GuardState) -> Entry:
        """Return what happened since then, up to this state."""
        policies, columns = state.policies, state.tickets.columns
        unsettled = sorted(self.open) + list(range(self.tickets, state.tickets.n))
        return {
            "admitted": [
                [p.name, p.fingerprint or "", p.admitted] for p in policies[self.policies :]
            ],
            "withdrawn": [
                [p, policy.withdrawn]
                for p, policy in enumerate(policies)
                if not policy.active and p not in self.withdrawn
            ],
            "drawn": columns.policy[self.tickets :].tolist(),
            "settled": [
                [i, hexes(float(columns.ret[i]))] for i in unsettled if columns.code[i] != OPEN
            ],
            "alarm": state.alarm,
        }

    def happened(self, record: Entry, state: GuardState) -> bool:
        """Did all that a record tells happen before this state?"""
        columns, last = state.tickets.columns, self.tickets + len(record["drawn"])
        return (
            last <= state.tickets.n
            and self.policies + len(record["admitted"]) <= len(state.policies)
            and record["drawn"] == columns.policy[self.tickets : last].tolist()
            and record["alarm"] in ("", state.alarm)
            and all(state.policies[p].withdrawn == at for p, at in record["withdrawn"])
            and all(hexes(float(columns.ret[i])) == ret for i, ret in record["settled"])
        )

    def after(self, record: Entry) -> "Written":
        """Return what is told after one more plan; its digest is not known yet."""
        tickets = self.tickets + len(record["drawn"])
        settled = {number for number, _ in record["settled"]}
        return Written(
            plans=self.plans + 1,
            terms=_terms(record),
            tickets=tickets,
            open=self.open.union(range(self.tickets, tickets)) - settled,
            policies=self.policies + len(record["admitted"]),
            withdrawn=self.withdrawn.union(p for p, _ in record["withdrawn"]),
        )


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


def _claims(plan: GuardPlan) -> Entry:
    """Return what a plan claims."""
    used = [bound.lower for bound in plan.bounds[1 if plan.guard.rule.relative else 0 :]]
    return {
        "bounds": [[hexes(bound.value), bound.proved.tickets] for bound in used],
        "shares": [int(share * GRID) for share in plan.shares.played],
        "safety": plan.safety,
    }


def _terms(record: Entry) -> tuple[Any, ...]:
    return record["shares"], record["safety"], record["alarm"]


def _kept(path: Path, guard: Guard, state: GuardState, place: Place | None) -> Written:
    """Remove what follows this state, and return what is told by what is kept."""
    last, kept = Written(), 0
    seen, lines = place is None or place.plans == 0, path.read_bytes().splitlines(keepends=True)
    # a crash cut off its first record
    if not lines or (len(lines) == 1 and not lines[0].endswith(b"\n")):
        require_nothing_written(path, place)
        path.unlink()
        return last
    for line in lines:
        try:
            record = guard_verifier.read_record(line, last.digest)
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
        elif record["kind"] == "end" or not last.happened(record, state):
            break
        else:
            last = last.after(record)
        last, kept = last._replace(digest=record["digest"]), kept + len(line)
        seen = seen or place == (last.plans, last.digest)
    if not last.begun:
        raise InvalidFile(
            f"{path} is not the ledger of a guard, or a damaged one. Choose another file."
        )
    if not seen:
        raise InvalidFile(NOT_OF_THIS_RUN.format(path))
    with path.open("r+b") as stream:
        stream.truncate(kept)
    return last
