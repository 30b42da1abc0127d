"""The state of a guard, a plain value: every ticket in dispatch order, what policies were paid, who
was admitted when.

A new state shares with the one before it all but what changed: tickets are kept in chunks.
"""

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.nodes import EPISODE, PLACES
from surefoot.base.text import how_many
from surefoot.base.validation import read_only

OPEN = -1  # the code of a ticket without a return
CHUNK = 512
ROW = np.dtype([("policy", np.int64), ("code", np.int64), ("ret", np.float64), ("mark", np.int64)])


class Ticket(NamedTuple):
    """The right to report one return: drawn before the episode, in dispatch order."""

    number: int
    policy: str  # who plays the episode
    guard: str  # the fingerprint of the guard
    # a digest of all draws up to this one, with their coins: a ticket of another run has another
    # one
    mark: str


class Columns(NamedTuple):
    """All tickets as arrays."""

    policy: Ints  # whose episode it was, as a place in `state.policies`
    code: Ints  # how the return is spread over nodes (guard/evidence.py); OPEN: none came
    ret: Floats  # the return in the user's units; NaN: none came
    mark: Ints  # what makes a ticket this one; 0: of a simulation, or of a file without marks


@dataclass(frozen=True, eq=False)
class Tickets:
    """All tickets in dispatch order. `drawn` and `settled` return the next value; the former one
    stays as it is.
    """

    chunks: tuple[AnyArray, ...] = ()
    n: int = 0

    @classmethod
    def of(cls, columns: Columns) -> "Tickets":
        """Return tickets with this content."""
        rows = np.zeros(-(-len(columns.policy) // CHUNK) * CHUNK, dtype=ROW)
        for name, column in columns._asdict().items():
            rows[name][: len(column)] = column
        return cls(tuple(rows.reshape(-1, CHUNK)), len(columns.policy))

    @cached_property
    def columns(self) -> Columns:
        """All tickets as arrays."""
        rows = np.concatenate(self.chunks)[: self.n] if self.chunks else np.zeros(0, dtype=ROW)
        return Columns(*(read_only(np.ascontiguousarray(rows[name])) for name in Columns._fields))

    def row(self, number: int) -> tuple[int, int, float]:
        """Return the policy, the code and the return of a ticket."""
        policy, code, ret, _ = self.chunks[number // CHUNK][number % CHUNK]
        return int(policy), int(code), float(ret)

    def mark(self, number: int) -> int:
        """Return what makes a ticket this one; 0 before the first."""
        return int(self.chunks[number // CHUNK]["mark"][number % CHUNK]) if number >= 0 else 0

    def drawn(self, policy: int, mark: int) -> "Tickets":
        """Return the tickets with one more, which is open."""
        place = self.n % CHUNK
        chunk = self.chunks[-1].copy() if place else np.zeros(CHUNK, dtype=ROW)
        chunk[place] = (policy, OPEN, np.nan, mark)
        return Tickets((*(self.chunks[:-1] if place else self.chunks), chunk), self.n + 1)

    def follow(self, before: "Tickets") -> bool:
        """Are these the tickets `before`, some of the open ones settled since, and maybe more?
        Shared chunks are.
        """
        left = before.n
        for then, now in zip(before.chunks, self.chunks, strict=False):
            if then is not now:
                told, rows = then[:left], now[:left]
                known = told["code"] != OPEN
                drawn = all(np.array_equal(told[name], rows[name]) for name in ("policy", "mark"))
                if not drawn or not np.array_equal(told[known], rows[known]):
                    return False
            left -= CHUNK
        return before.n <= self.n

    def settled(self, number: int, code: int, ret: float) -> "Tickets":
        """Return the tickets with the return of one of them."""
        at, place = divmod(number, CHUNK)
        chunk = self.chunks[at].copy()
        chunk["code"][place], chunk["ret"][place] = code, ret
        return Tickets((*self.chunks[:at], chunk, *self.chunks[at + 1 :]), self.n)


class Proved(NamedTuple):
    """A bound that was proved, as a part of the range of returns, and by how many tickets
    (logged returns first).
    """

    # of a lower bound the value, of an upper one what is missing to the highest return
    value: float = 0.0
    tickets: int = 0


NOTHING = Proved()


@dataclass(frozen=True, eq=False)
class PolicyRecord:
    """A policy, and what was heard of it."""

    name: str
    fingerprint: str | None  # None: the user asserts that it stays what it is
    admitted: int  # the number of the first ticket that it could have
    withdrawn: int | None = None  # the number of the first ticket that it could not have any more
    reason: str = ""  # why it was withdrawn
    # returns spread over the nodes
    settled: Ints = field(default_factory=lambda: np.zeros(PLACES, dtype=np.int64))
    heard: int = 0  # how many returns these are
    unheard: int = 0  # tickets without a return
    missing: int = 0  # returns that a log lacks
    # the best bounds of the plans that were played: they hold for all times at once
    lower: Proved = NOTHING
    upper: Proved = NOTHING

    @property
    def active(self) -> bool:
        """May it still be played?"""
        return self.withdrawn is None

    def follows(self, before: "PolicyRecord") -> bool:
        """Can this be the same policy as `before`, at the same time or later?"""
        same = (self.name, self.fingerprint, self.admitted) == (
            before.name,
            before.fingerprint,
            before.admitted,
        )
        return same and before.withdrawn in (None, self.withdrawn)

    def with_return(self, code: int) -> "PolicyRecord":
        """Return the record after one of its open tickets was settled."""
        settled = self.settled.copy()
        node, above = divmod(code, 2 * EPISODE)
        settled[node] += EPISODE - above
        settled[node + 1] += above
        return replace(self, settled=settled, heard=self.heard + 1, unheard=self.unheard - 1)

    def with_proofs(self, lower: Proved, upper: Proved) -> "PolicyRecord":
        """Return the record that remembers these bounds, where they are better than those
        before.
        """
        return replace(self, lower=max(self.lower, lower), upper=max(self.upper, upper))


NOBODY = PolicyRecord("", None, 0)


@dataclass(frozen=True, eq=False)
class GuardState:
    """What a guard knows: a value that never changes. The methods of `sf.Guard` return the next
    one.
    """

    guard: str  # the fingerprint of the guard that it belongs to
    # the baseline first, then candidates in the order in which they were admitted
    policies: tuple[PolicyRecord, ...]
    tickets: Tickets = Tickets()
    logged: PolicyRecord | None = None  # what was known of the baseline before the first ticket
    alarm: str = ""  # why the guard is frozen to its baseline; empty: it is not
    run: str = ""  # by which tickets of this run are told from those of others

    def __repr__(self) -> str:
        names = ", ".join(policy.name for policy in self.policies[1:])
        alarm = ", ALARM" if self.alarm else ""
        tickets = how_many(self.tickets.n, "ticket")
        return (
            f"GuardState({tickets}, {self.open_tickets:,} open, candidates: "
            f"{names or 'none'}{alarm})"
        )

    def __eq__(self, other: object) -> bool:
        """Was the same drawn, paid and proved? Equal states plan alike.

        The name of the run and the marks of tickets are left out: a simulation has none, and a run
        that is repeated has others. So equal states need not take each other's tickets: `follows`
        says whether one came after another.
        """
        if not isinstance(other, GuardState):
            return NotImplemented
        return self._text == other._text and all(
            np.array_equal(mine, its, equal_nan=mine.dtype.kind == "f")
            for mine, its in zip(self._arrays, other._arrays, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def open_tickets(self) -> int:
        """How many tickets have no return."""
        return sum(policy.unheard for policy in self.policies)

    def unsettled(self, policy: str | None = None) -> tuple[Ticket, ...]:
        """Return the tickets without a return, in dispatch order: all of them, or those of one
        policy.
        """
        found = (self.ticket(int(i)) for i in np.flatnonzero(self.tickets.columns.code == OPEN))
        return tuple(ticket for ticket in found if policy in (None, ticket.policy))

    @property
    def candidates(self) -> tuple[str, ...]:
        """The names of the candidates that are not withdrawn."""
        return tuple(policy.name for policy in self.policies[1:] if policy.active)

    @property
    def _text(self) -> str:
        told = [
            (p.name, p.fingerprint, p.admitted, p.withdrawn, p.reason, p.missing, p.lower, p.upper)
            for p in self.policies
        ]
        return repr((self.guard, told, self.tickets.n, self.alarm))

    @property
    def _arrays(self) -> tuple[AnyArray, ...]:
        policy, code, ret, _ = self.tickets.columns
        return (policy, code, ret, *(policy.settled for policy in self.policies))

    def follows(self, before: "GuardState") -> bool:
        """Can this state be `before` itself, or one that came after it?"""
        logged = [record or NOBODY for record in (before.logged, self.logged)]
        return (
            before.guard == self.guard
            and len(before.policies) <= len(self.policies)
            and all(
                now.follows(then) for then, now in zip(before.policies, self.policies, strict=False)
            )
            and logged[0].missing == logged[1].missing
            and np.array_equal(logged[0].settled, logged[1].settled)
            and before.alarm in ("", self.alarm)
            and self.tickets.follow(before.tickets)
        )

    def columns_if(self, needed: bool) -> Columns:
        """Return all tickets as arrays, or those of no ticket where they are not needed."""
        return self.tickets.columns if needed else Tickets().columns

    def next_mark(self, p: int, coin: float) -> int:
        """Return the mark of the next ticket, if it is of policy p and was drawn with this coin."""
        n = self.tickets.n
        draw = json.dumps(
            [self.run, n, self.policies[p].name, self.tickets.mark(n - 1), coin.hex()]
        )
        return int.from_bytes(hashlib.sha256(draw.encode()).digest()[:8], signed=True)

    def ticket(self, number: int) -> Ticket:
        """Return a ticket that was drawn, by its number."""
        name = self.policies[self.tickets.row(number)[0]].name
        return Ticket(number, name, self.guard, f"{self.tickets.mark(number) % 2**64:016x}")

    def place(self, name: str) -> int | None:
        """Return the place of a policy in `policies`, or None."""
        return next((i for i, policy in enumerate(self.policies) if policy.name == name), None)

    def with_policy(self, p: int, policy: PolicyRecord) -> "GuardState":
        """Return the state with another record of policy p."""
        return replace(self, policies=(*self.policies[:p], policy, *self.policies[p + 1 :]))
