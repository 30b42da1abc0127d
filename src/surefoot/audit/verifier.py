"""Re-derive every plan of a ledger, and refuse whatever is not proved: `python verifier.py FILE`.

One file, the standard library alone, no code shared with what writes ledgers. It is in the order of
the proof: records and digests, the first record and how delta is spent, evidence, bounds, values, a
plan's claims, the summary. The format, and what is checked: docs/ledger.md. The proof:
docs/certificates.md (KL); Li et al. 2023, Eq. q, ucbQ, lcbQ (Bernstein). The symbols: NOTATION.md.

Arithmetic: claims are compared as fractions, exactly. Bounds are decimals of 30 digits, each
operation right to its last digit; a HAIR in proportion to all that was added up is taken off, at
least 100 times more than rounding can add. Floats only guess (`best_gain`), and a guess is proved
before it is used (`is_proved`). So a lower bound is at most the exact one. Whatever takes a `sign`
returns a lower bound of sign times a value: with sign = -1, minus an upper bound. Where nothing was
seen, what is proved is a sum of rewards, and nothing is taken off: it is added in 1100 digits
(EXACT), as many as floats can have.
"""

import decimal
import hashlib
import json
import math
import os
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict, namedtuple
from collections.abc import Callable, Generator, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain, compress, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

TABLES, LISTS = 1, 2  # formats: rewards of all next states, or of the possible ones alone
# stakes on how often a coin falls: by them its odds are exp(tilt) times as high
TILTS = [sign * 2.0**k for k in range(-10, 4) for sign in (1, -1)]
# of a capital that is reached with probability 1e-9, ever, if what is declared is true
IMPOSSIBLE = 9 * math.log(10)
# bytes of a record; a whole number; steps of the proof of a plan
LONGEST, MOST, MOST_WORK = 2**26, 2**62, 10**9
FEW = 64  # next states of a pair that are counted as steps: of more, most were never seen
UNIT = Fraction(1, 2**20)  # of sums of rewards and returns
# each refuses a record
TRAPS = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow, decimal.Underflow]
DIGITS, EXACT = (
    decimal.Context(digits, decimal.ROUND_FLOOR, decimal.MIN_EMIN, decimal.MAX_EMAX, traps=TRAPS)
    for digits in (30, 1100)
)
SHORT = decimal.Context(2, traps=TRAPS)
exact = lru_cache(2**16)(Decimal)  # of floats: the same ones come with every plan
HAIR, ZERO, HALF, ONE = Decimal("1e-24"), Decimal(0), Decimal("0.5"), Decimal(1)
STIRLING = [
    DIGITS.divide(691, x) for x in (107796, -360360, 820908, -1160880, 870660, -248760, 8292)
]
ARTANH = [DIGITS.divide(1, k) for k in range(15, 0, -2)]  # of y^15, y^13, ..., y
FIELDS = {  # of each record, and of each record in a record
    "ledger": "kind digest format software agent H S A pooled stationary rewards rewards_by_next "
    "unknown_rewards support start units baseline floor relative delta spending bounds "
    "returns certificate warm logged",
    "plan": "kind digest number episodes visits played rewards between starts baseline_returns "
    "returns explorer candidates by_model by_returns floor upper h rho source safety lower "
    "policy frozen",
    "end": "kind digest plans episodes",
    "units": "low high steps",
    "relative": "max_loss offset below",
    "spending": "model returns delta_prime events",
    "bounds": "family full_support scale",
    "returns": "share lowest span rounding",
    "certificate": "value delta fingerprint",
}
# of words
TEXTS = ("kind", "digest", "software", "agent", "family", "fingerprint", "source", "safety")
# fields of true or false
FLAGS = ("pooled", "stationary", "warm", "logged", "full_support", "frozen")
# by_certificate: by an earlier one, which nobody can check here; trusted: the baseline without a
# proof, or counts that nobody claimed
KINDS = ("certified", "by_certificate", "trusted", "not_certified")
NAMES = ("certified", "by certificate", "trusted", "NOT CERTIFIED")
Verdict = namedtuple(
    "Verdict",
    "plans certified by_certificate trusted not_certified closed digest promise refusals "
    "off_baseline frozen_after assumed",
)


def require(holds: Any, reason: str) -> None:
    """Refuse the record unless this holds."""
    if not holds:
        raise ValueError(reason)


def shown(text: str, most: int = 500) -> str:
    """Return what a file says as a person may see it: one line, in which what cannot be printed is
    written out, and not too long. A file must not write on a terminal what this program did not
    find.
    """
    line = "".join(
        x if x.isprintable() and x != "\\" else x.encode("unicode_escape").decode() for x in text
    )
    return line if len(line) <= most else line[: most - 3] + "..."


def at_least(value: Fraction) -> str:
    """Return a number that is promised from below: six digits, never rounded up."""
    return six_digits(value, decimal.ROUND_FLOOR)


def at_most(value: Fraction) -> str:
    """Return a number that is promised from above: six digits, never rounded down."""
    return six_digits(value, decimal.ROUND_CEILING)


def six_digits(value: Fraction, rounding: str) -> str:
    """Return six digits. The nearest float to 0.3 is a little below it, and still 0.3: 1e-12 of a
    number is no difference.
    """
    if not value:
        return "0"
    given = Decimal(value.numerator) / Decimal(value.denominator)
    slack = abs(given) * Decimal("1e-12")
    near = given + slack if rounding == decimal.ROUND_FLOOR else given - slack
    last_digit = Decimal(1).scaleb(near.adjusted() - 5)
    return f"{float(near.quantize(last_digit, rounding=rounding)):.6g}"


# ---- 1. Records, digests, fields (docs/ledger.md, The format)


def read_record(line: bytes, before: str) -> Any:
    """Return the record of a line that is canonical, and whose digest follows the digest
    `before`.
    """
    require(
        len(line) <= LONGEST and line.endswith(b"\n") and line.isascii(),
        "the line is cut off, or no text",
    )
    record = json.loads(line.decode("ascii"))
    body = canonical({key: value for key, value in record.items() if key != "digest"})
    fits = record["digest"] == hashlib.sha256(before.encode() + body).hexdigest()
    require(
        fits and canonical(record) + b"\n" == line,
        "the digest does not fit, or the line is not canonical",
    )
    return plain(record, record["kind"])


def canonical(record: Any) -> bytes:
    """Return a record as a line: keys sorted, no spaces."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def plain(value: Any, name: str) -> Any:
    """Return a field's value: records have exactly their fields, floats are canonical, whole
    numbers not negative.
    """
    if type(value) is dict:
        expected = set(FIELDS[name].split()) - (
            {"full_support"} if value.get("family") == "Bernstein" else set()
        )
        require(value.keys() == expected, f"{name}: other fields")
        return SimpleNamespace(**{key: plain(inner, key) for key, inner in value.items()})
    if type(value) is list:
        return [
            inner if type(inner) is int and 0 <= inner < MOST else plain(inner, name)
            for inner in value
        ]
    if type(value) is str and value[:2] in ("0x", "-0"):
        number = from_hex(value)
        most = 1e300 if name in ("low", "high") else 1e9  # units may be of any size
        require(abs(number) <= most, f"{name}: too large")
        return number
    whole = type(value) is int and 0 <= value < MOST
    fits = (type(value) is str and name in TEXTS) or (type(value) is bool and name in FLAGS)
    require(whole or value is None or fits, f"{name}: found {value!r:.20}")
    return value


@lru_cache(2**16)
def from_hex(text: str) -> float:
    """Return a float from its canonical hexadecimal text: nothing is rounded."""
    number = float.fromhex(text)
    require(number.hex() == text, "a number: not canonical")
    return number


# ---- 2. The first record: the problem, the promise, and how delta is spent


class Head:
    """What all plans have in common. Each check is named after what it is about, in
    docs/ledger.md, First record.
    """

    def __init__(self, given: Any) -> None:
        """Check each part of the first record."""
        self.given = given
        self.check_sizes()
        self.H, self.S, self.A, self.pairs = given.H, given.S, given.A, given.S * given.A
        self.rows = 1 if given.pooled else self.H  # of counts
        self.is_KL, self.is_EpsMix = given.bounds.family == "KL", given.agent == "EpsMix"
        self.h0 = [0, self.H] if self.is_EpsMix else [*range(self.H + 1)]  # of the candidates
        self.baseline = self.policy(given.baseline)
        self.baseline_rules = rules(self.baseline)
        self.support = self.table(self.check_support())
        self.unknown = self.table(given.unknown_rewards or [[0] * self.pairs])
        self.check_tables()
        self.first_states = self.check_start()
        self.check_spending()
        self.common_start = self.check_units()
        self.zero = self.check_floor()
        self.check_certificate()
        self.range = self.check_range_of_returns()

    def check_sizes(self) -> None:
        """The format and the agent are known, the proof takes reasonable time, only what is
        stationary is pooled.
        """
        given = self.given
        agents, flags = (
            ("StepMix", "EpsMix", "StepNoMix"),
            (given.pooled, given.stationary, given.warm, given.logged),
        )
        known = (
            given.kind == "ledger"
            and given.format in (TABLES, LISTS)
            and given.agent in agents
            and given.software
        )
        require(
            known and all(type(flag) is bool for flag in flags),
            "kind, format, agent, software or a flag",
        )
        require(given.warm or not given.logged, "logged: a log, though the counts began with none")
        for part in (given.returns, given.relative, given.certificate):
            require(
                part is None or type(part) is SimpleNamespace,
                "returns, relative or certificate: not a record",
            )
        for table in (given.support, given.rewards_by_next, given.unknown_rewards):
            require(
                table is None or (type(table) is list and table), "support or rewards: not a table"
            )
        require(
            all(type(size) is int and size > 0 for size in (given.H, given.S, given.A)),
            "H, S or A: not a size",
        )
        work = (
            (2 if given.agent == "EpsMix" else given.H + 1)
            * given.H
            * given.S
            * given.A
            * min(given.S, FEW)
        )
        require(
            work <= MOST_WORK and (given.stationary or not given.pooled),
            "too large; or pooled, not stationary",
        )

    def policy(self, given: Any) -> Any:
        """Return probabilities (H, S, A) whose rows sum to 1 within 1e-12; actions (H, S) become
        probabilities.
        """
        actions = range(self.A)
        policy = [
            [[float(a == x) for a in actions] if type(x) is int else x for x in step]
            for step in given
        ]
        require(
            len(policy) == self.H and all(len(step) == self.S for step in policy),
            "a policy: other sizes",
        )
        for row in (row for step in policy for row in step):
            good = len(row) == self.A and min(row) >= 0 and abs(math.fsum(row) - 1) <= 1e-12
            require(good, "a policy: a row is not one of probabilities")
        return policy

    def check_support(self) -> Any:
        """Return the possible next states of each pair, ascending: all, unless the ledger says
        which; a number n stands for the first n states.
        """
        if not self.given.support:
            return [[range(self.S)] * self.pairs]
        support = [
            [range(states) if type(states) is int else tuple(states) for states in row]
            for row in self.given.support
        ]
        for states in (states for row in support for states in row):
            require(states, "support: no next state")
            first_n = type(states) is range
            in_order = [states[-1], self.S] if first_n else [-1, *states, self.S]
            ascending = all(a < b for a, b in pairwise(in_order))
            require(ascending, "support: not ascending states")
        return support

    def table(self, given: Any) -> Any:
        """Return a table with a row for each row of counts: one row is for all of them."""
        require(len(given) in (1, self.rows), "support or unknown_rewards: neither one row nor all")
        return [given[row % len(given)] for row in range(self.rows)]

    def check_tables(self) -> None:
        """Unknown rewards are marked by 0 or 1; known ones are in [0, 1], in one row or H, and
        said once.
        """
        given, after = self.given, self.given.rewards_by_next or []
        for row in (*self.support, *self.unknown, *given.rewards, *after):
            require(
                len(row) == self.pairs,
                "support, unknown_rewards, rewards: not one entry for each pair",
            )
        require(
            {mark for row in self.unknown for mark in row} <= {0, 1},
            "unknown_rewards: neither 0 nor 1",
        )
        require(
            len(given.rewards) in (1, self.H) and len(after) in (0, 1, self.H),
            "rewards: neither one row nor H",
        )
        require(
            given.format == TABLES or not len(given.support or [0]) > len(after) > 0,
            "rewards_by_next: fewer than masks",
        )
        states = [
            self.paid_states(h, pair) for h in range(len(after)) for pair in range(self.pairs)
        ]
        require(
            [len(x) for row in after for x in row] == [len(y) for y in states],
            "rewards_by_next: other sizes",
        )
        for entry in (*given.rewards, *(entry for row in after for entry in row)):
            require(min(entry) >= 0 and max(entry) <= 1, "rewards: not in 0..1")
        for h in range(self.H):
            rewards, unknown = given.rewards[h % len(given.rewards)], self.unknown[h % self.rows]
            require(
                not any(rewards if after else compress(rewards, unknown)),
                "rewards: not 0 where others are paid",
            )
            require(not (after and any(unknown)), "rewards_by_next: some are unknown")

    def paid(self, row: int, pair: int, after: Iterable[int]) -> list[int]:
        """Return what a visit of this pair may pay that leads to one of these states, in units
        of 2^-20.
        """
        steps = range(row, self.H, self.rows)  # those that this row of counts is about
        return [math.floor(2**20 * self.reward(h, pair, s_next)) for h in steps for s_next in after]

    def reward(self, h: int, pair: int, s_next: int) -> float:
        """Return the known reward of a transition; 0 where it is unknown."""
        table = self.given.rewards_by_next or self.given.rewards
        known = table[h % len(table)][pair]
        if self.given.rewards_by_next:
            known = known[bisect_left(self.paid_states(h, pair), s_next)]
        return 0.0 if self.unknown[h % self.rows][pair] else float(known)

    def paid_states(self, h: int, pair: int) -> Any:
        """Return the next states whose rewards are given: all of them; in LISTS, those that are
        possible.
        """
        return self.support[h % self.rows][pair] if self.given.format == LISTS else range(self.S)

    def check_start(self) -> list[int]:
        """Return the states in which an episode may start: those of positive probability, or all
        if it is unknown.
        """
        start = self.given.start
        good = start is None or (
            len(start) == self.S and min(start) >= 0 and abs(math.fsum(start) - 1) <= 1e-9
        )
        require(good, "start: not probabilities")
        return [s for s in range(self.S) if start is None or start[s] > 0]

    def events(self) -> Any:
        """Return how many balls share delta: of pairs with several next states, unknown rewards,
        an unknown start.
        """
        if not self.is_KL:
            return self.pairs * self.H
        several = sum(len(states) > 1 for row in self.support for states in row)
        return max(
            1,
            several
            + sum(mark == 1 for row in self.unknown for mark in row)
            + (self.given.start is None),
        )

    def check_spending(self) -> None:
        """Delta is spent once: (1 - share) delta on the model, equally on its events, and share
        delta on the returns.

        The paper's delta' is delta_model / (3(H+1)), for EpsMix delta_model / 4.
        """
        given, spending = self.given, self.given.spending
        delta, share = Fraction(given.delta), Fraction(given.returns.share if given.returns else 0)
        require(0 < share < 1 or not given.returns, "returns: no share of delta")
        spent = {
            "model": (1 - share) * delta,
            "returns": share * delta,
            "delta_prime": (1 - share) * delta,
        }
        if not self.is_KL:
            self.check_paper()
            spent["delta_prime"] /= 4 if self.is_EpsMix else 3 * (self.H + 1)
        for name, x in spent.items():
            near = abs(Fraction(getattr(spending, name)) - x) <= x / 2**40
            require(near, f"spending: {name} is not its part of delta")
        delta_prime = spent["delta_prime"]
        require(0 < delta_prime <= delta < 1, "delta: not between 0 and 1")
        require(self.events() <= spending.events, "spending: there are more events")
        self.full_support = self.is_KL and given.bounds.full_support
        require(type(self.full_support) is bool, "bounds: full_support is neither true nor false")
        # delta_0 of an event, of the returns
        shares = (delta_prime / spending.events, spent["returns"] or delta_prime)
        self.log_share, self.log_share_of_returns = (
            (Decimal(x.denominator) / x.numerator).ln() for x in shares
        )

    def check_paper(self) -> None:
        """The paper's bounds are proved for one first state, known rewards r(s, a), no log
        (certificates.md).
        """
        given = self.given
        other = (
            given.rewards_by_next
            or any(map(any, self.unknown))
            or given.logged
            or len(self.first_states) > 1
        )
        require(
            given.bounds.family == "Bernstein" and not other, "bounds: not proved for this problem"
        )

    def check_units(self) -> int | None:
        """All H steps pay low to high, or all but that of a common start. As low is 0, 0 steps may
        be said, too.

        Return the common start: the last and only first state, whose actions all lead to the same
        states and are known to pay nothing. By the support nothing leads to it, however many states
        there are.
        """
        units, first = self.given.units, self.first_states
        require(units.low < units.high, "units: low is not below high")
        if units.steps == self.H or (units.steps == 0 and units.low == 0):
            return None
        added = 0 < units.steps == self.H - 1 and self.given.start and len(first) == 1
        require(added, "units: other steps pay than all, or all but that of a common start")
        back = any(first[0] in states for row in self.support for states in row)
        require(not back, "units: a common start that can be reached again")
        for pair in range(first[0] * self.A, (first[0] + 1) * self.A):
            paid = [self.reward(0, pair, s_next) for s_next in self.support[0][pair]]
            require(not any(paid) and not self.unknown[0][pair], "units: a common start that pays")
            same = tuple(self.support[0][pair]) == tuple(self.support[0][first[0] * self.A])
            require(same, "units: a common start whose actions differ")
        require(first[0] == self.S - 1, "units: a common start that is not the last state")
        return first[0]

    def check_floor(self) -> Fraction:
        """A value v is (high - low)(v + zero) to the user; with a share of the baseline zero >=
        0. Return zero.
        """
        given, units, relative = self.given, self.given.units, self.given.relative
        require(
            (given.floor is None) == bool(relative), "floor: neither a number nor relative, or both"
        )
        require(relative or 0 <= given.floor <= self.H, "floor: no value of an episode")
        scale = Fraction(units.high) - Fraction(units.low)
        zero: Fraction = units.steps * Fraction(units.low) / scale
        self.below = Fraction(relative.below if relative else 0)
        if self.below:
            require(
                self.below > 0 and not (relative.max_loss or relative.offset),
                "relative: an amount and a share",
            )
            floor = f"{at_most(scale * self.below)} below the baseline"
        elif relative:
            near = 2**40 * abs(Fraction(relative.offset) - zero) <= zero
            require(
                near and 0 < relative.max_loss < 1,
                "relative: max_loss, or offset is not the user's zero",
            )
            floor = f"{at_least(1 - Fraction(relative.max_loss))} of the baseline"
        else:
            floor = at_least(scale * (zero + Fraction(given.floor)))
        earlier = given.certificate
        risk = Fraction(given.delta) + Fraction(earlier.delta if earlier else 0)
        agent = f"{given.agent}, {given.bounds.family}"
        self.promise = (
            f"Claimed by {agent}: {floor} or more in expectation, at delta = {at_most(risk)}\n"
        )
        if earlier:
            # what is assumed is not told as less
            value, delta = scale * (zero + Fraction(earlier.value)), Fraction(earlier.delta)
            self.promise += (
                f"Assumes a certificate of {at_most(value)} at delta = {at_least(delta)}, which "
                "nobody can check here\n"
            )
        self.promise += self.declared()
        return zero

    def declared(self) -> str:
        """Return what nobody can check here: the promise is about processes of which this is
        true.
        """
        given, units = self.given, self.given.units
        said = (
            f"Declared: rewards of {units.low:g} to {units.high:g} in each of "
            f"{units.steps or self.H} steps"
        )
        said += "" if self.common_start is None else " after a common start"
        said += "; the same dynamics at every step" if given.pooled else ""
        said += "; no next states but those listed" if given.support else ""
        said += "" if all(map(all, self.unknown)) else "; the rewards that are listed"
        if given.start is None:
            said += "; first states that nobody knows"
        elif len(self.first_states) > 1:
            said += "; the probabilities of first states that are listed"
        elif self.common_start is None:
            said += f"; every episode starts in state {self.first_states[0]}"
        return said + ("; counts from before the first plan" if given.warm else "")

    def check_certificate(self) -> None:
        """An earlier certificate has its own fingerprint and delta; it is for absolute floors."""
        given, earlier = self.given, self.given.certificate
        good = not earlier or (
            earlier.fingerprint
            and 0 < earlier.delta < 1 - given.delta
            and 0 <= earlier.value <= self.H
        )
        require(
            good and not (given.relative and earlier),
            "certificate: of no value, or of a relative floor",
        )

    def check_range_of_returns(self) -> tuple[Fraction, Fraction, Fraction]:
        """Return (rounding, lowest, span) of the baseline's returns: all that is possible."""
        returns = self.given.returns
        if not returns:
            return Fraction(0), Fraction(0), Fraction(self.H)
        lost, low, span = (
            Fraction(returns.rounding),
            Fraction(returns.lowest),
            Fraction(returns.span),
        )
        require(span >= 0, "returns: span")
        require(
            lost >= self.extreme(max, UNIT, lambda reward: reward % UNIT),
            "returns: rounding takes off more",
        )
        least = self.extreme(min, Fraction(0), lambda reward: reward // UNIT * UNIT)
        most = self.extreme(max, Fraction(1), lambda reward: reward // UNIT * UNIT)
        require(low <= least <= most <= low + span, "returns: too narrow a range")
        return lost, low, span

    def extreme(self, choose: Any, unknown: Fraction, worth: Callable[[Fraction], Fraction]) -> Any:
        """Return the smallest or largest sum of what rewards are worth, over what is possible
        under the baseline.
        """
        V = [Fraction(0)] * self.S
        for h in reversed(range(self.H)):
            row, ends, after = h % self.rows, [], dict[Any, Fraction]()
            for pair, states in enumerate(self.support[row]):
                if self.given.rewards_by_next and not self.unknown[row][pair]:
                    ends.append(
                        choose(V[j] + worth(Fraction(self.reward(h, pair, j))) for j in states)
                    )
                    continue
                if states not in after:
                    after[states] = choose(V[j] for j in states)
                paid = (
                    unknown if self.unknown[row][pair] else worth(Fraction(self.reward(h, pair, 0)))
                )
                ends.append(after[states] + paid)
            V = [
                choose(ends[s * self.A + a] for a in range(self.A) if self.baseline[h][s][a])
                for s in range(self.S)
            ]
        return choose(V[s] for s in self.first_states)


def weights(row: list[float]) -> tuple[list[int], list[Decimal]]:
    """Return those of positive probability, and their probabilities, divided by the sum."""
    chosen = [i for i, p in enumerate(row) if p > 0]
    total = sum([exact(row[i]) for i in chosen], ZERO)
    return chosen, [exact(row[i]) / total for i in chosen]


def rules(policy: Any) -> list[list[tuple[list[int], list[Decimal]]]]:
    """Return of each step and state the actions that are played, and how often."""
    return [[weights(row) for row in step] for step in policy]


# ---- 3. The evidence: counts and returns (docs/ledger.md, One record for each plan)


class Evidence:
    """What was counted up to a plan."""

    def __init__(self, head: Head) -> None:
        """Begin with nothing."""
        self.head, self.plans, self.episodes = head, 0, 0
        self.played = Counter[tuple[int, int]]()  # (row, pair) -> how often, at the last step, too
        # (row, pair) -> next state -> how many
        self.visits = defaultdict[tuple[int, int], Counter[int]](Counter)
        # of unknown rewards; of first states
        self.sums, self.starts = Counter[tuple[int, int]](), Counter[int]()
        self.between = Counter[tuple[int, int]]()  # sums of x (1 - x) of these rewards
        # whole baseline episodes, and the sum of their returns in units of 2^-20
        self.returns = [0, 0]
        # how these returns are spread over the nodes, in units of 2^-20 episodes
        self.spread = [0] * len(NODES)
        self.log_bets = [0.0] * len(TILTS)  # on how often the coins of mixtures fell
        self.u: dict[tuple[int, int], dict[int, float]] = {}  # where searches ended (see Ball)
        self.balls: dict[tuple[int, int], Ball] = {}  # of the visits as they are now

    def add(self, plan: Any, before: "Played | None") -> None:
        """Add what is new: whole numbers, in ascending order.

        `before`: what the plan before plays; None: there is none.
        """
        head = self.head
        shared = head.rows < head.H  # then no next state of the last step is counted
        require(
            plan.kind == "plan" and plan.number == self.plans, "kind or number: not the next plan"
        )
        grown = (plan.visits, plan.played, plan.rewards, plan.between, plan.starts, plan.returns)
        for changes in (*grown, [plan.baseline_returns]):
            require(
                {*map(type, chain.from_iterable(changes))} <= {int}, "counts: not whole numbers"
            )
            require(
                all(a[:-1] < b[:-1] for a, b in pairwise(changes)), "counts: not in ascending order"
            )
        # what new visits paid, at least and at most, in units of 2^-20, and how many of them
        earned = defaultdict[tuple[int, int], list[tuple[int, int, int]]](list)
        # how often pairs were played of which no next state is counted
        last = Counter[tuple[int, int]]()
        for row, pair, s_next, more in plan.visits:
            require(
                s_next in head.support[row][pair] and more,
                "visits: an impossible transition, or none",
            )
            self.visits[row, pair][s_next] += more
            self.balls.pop((row, pair), None)
            paid = head.paid(row, pair, [s_next])
            earned[row, pair].append((min(paid), max(paid), more))
            last[row, pair] -= more
        for row, pair, more in plan.played:
            require(more, "played: nothing")
            self.played[row, pair] += more
            last[row, pair] += more
        for (row, pair), more in last.items():
            require(
                more >= 0 if shared else more == 0,
                "played: not as often as next states were counted",
            )
            paid = head.paid(row, pair, head.support[row][pair]) if more else [0]
            earned[row, pair].append((min(paid), max(paid), more))
        for row, pair, more in plan.rewards:
            require(head.unknown[row][pair], "rewards: of what is known")
            require(pair // head.A != head.common_start, "rewards: of the common start")
            self.sums[row, pair] += more
        for row, pair, more in plan.between:
            self.between[row, pair] += more
        self.check_sums(plan)
        for row, pair, more in plan.rewards:
            earned[row, pair] = most_unequal(more, sum([n for *_, n in earned[row, pair]]))
        for s, more in plan.starts:
            require(s in head.first_states and more, "starts: no episode starts there")
            self.starts[s] += more
        self.check_starts()
        new, self.episodes = plan.episodes - self.episodes, plan.episodes
        visits, played = (
            sum([more for *_, more in changes]) for changes in (plan.visits, plan.played)
        )
        require(played == new * head.H, "episodes: not of H visits each")
        require(visits == new * (head.H - shared), "episodes: not of as many next states")
        if before:
            self.check_flow(plan, new)
            self.check_played(plan, earned, before)
            self.check_coin(plan, new, before)
        else:  # a warm ledger, and no other, begins with counts, which are of other episodes
            begun = bool(plan.episodes or plan.starts)
            require(
                begun == head.given.warm, "warm: episodes or starts before the first plan, or none"
            )
        self.check_returns(plan)
        self.plans += 1

    def check_sums(self, plan: Any) -> None:
        """What is new are sums X of x, and Z of x (1 - x), of n rewards x in 0..1: then X <= n, and
        Z <= X - X^2 / n.

        That is Cauchy and Schwarz; rounding each x (1 - x) down makes Z smaller. n is the number of
        new visits, so where there are none, both are 0. What holds of every record's new rewards
        holds of all rewards so far, as X - X^2 / n is concave.
        """
        new_visits, new_x, new_z = (
            {(row, pair): more for row, pair, more in changes}
            for changes in (plan.played, plan.rewards, plan.between)
        )
        for place in sorted(new_x.keys() | new_z.keys()):
            x, z = new_x.get(place, 0), new_z.get(place, 0)
            n = 2**20 * new_visits.get(place, 0)  # sums are in units of 2^-20
            require(x <= n, "rewards: more than 1 for each visit")
            most = x * (n - x) // n if n else 0
            require(z <= most, "between: more than x (1 - x) can add up to")

    def check_starts(self) -> None:
        """The first states do not contradict their declared probabilities p, for which this has
        probability 1e-9:

        KT(n) / prod_s p_s^n_s >= 1e9 ever,  KT(n) = Gamma(k/2) / Gamma(N + k/2) prod_s Gamma(n_s +
        1/2) / Gamma(1/2)
        """
        declared, states = self.head.given.start, self.head.first_states
        if declared is None:
            return
        half, k, N = math.lgamma(0.5), len(states), sum(self.starts.values())
        log_KT = math.lgamma(k / 2) - math.lgamma(N + k / 2)
        for s in states:
            n = self.starts[s]
            log_KT += math.lgamma(n + 0.5) - half - n * math.log(declared[s])
        require(log_KT < IMPOSSIBLE, "starts: others than their declared probabilities")

    def check_flow(self, plan: Any, episodes: int) -> None:
        """What arrives in a state at one step is played there at the next, and each episode starts
        somewhere.

        Where steps share a row, that holds for all steps together: what arrives at the last step is
        played, and what follows it is not counted.
        """
        head, flow = self.head, Counter[tuple[int, int]]()
        for s, more in plan.starts:
            flow[0, s] += more
        for row, _, s_next, more in plan.visits:
            flow[row + (head.rows == head.H), s_next] += more
        for row, pair, more in plan.played:
            flow[row, pair // head.A] -= more
        even = all(x == 0 for (h, _), x in flow.items() if h < head.rows)
        whole = episodes == sum([more for _, more in plan.starts])
        require(even and whole, "visits or starts: they do not flow from step to step")

    def check_played(self, plan: Any, earned: Any, before: "Played") -> None:
        """What was played since is what the plan before plays. New returns are of the episodes that
        the baseline played, and they are what visits paid that the baseline can have made.

        Each of n such episodes has one visit at each step. What others never play, the baseline
        played; what it never plays, others did. Of what both play it made as many visits as are
        left: the sum of the returns is no less than if these paid least of all, and no more than if
        they paid most.
        """
        head = self.head
        n, x = (now - then for now, then in zip(plan.baseline_returns, self.returns, strict=True))
        least = most = 0
        of_row = defaultdict[int, list[tuple[int, int]]](list)
        for row, pair, more in plan.played:
            of_row[row].append((pair, more))
        for row in range(head.rows):
            steps = range(row, head.H, head.rows)
            left, either = n * len(steps), []
            for pair, more in of_row[row]:
                by_baseline, by_others = (
                    any(policy[h][pair // head.A][pair % head.A] for h in steps)
                    for policy in (before.baseline, before.others)
                )
                never = not by_baseline and not by_others
                require(not never, "played: an action that the plan before never plays")
                if by_baseline and by_others:
                    either += earned[row, pair]
                elif by_baseline:
                    left -= more
                    least += sum([low * times for low, _, times in earned[row, pair]])
                    most += sum([high * times for _, high, times in earned[row, pair]])
            enough = 0 <= left <= sum([times for *_, times in either])
            require(enough, "baseline_returns: of other episodes")
            least += first_of(sorted([(low, times) for low, _, times in either]), left)
            most += first_of(sorted([(high, times) for _, high, times in either])[::-1], left)
        require(least <= x <= most, "baseline_returns: other sums than were earned")

    def check_coin(self, plan: Any, episodes: int, before: "Played") -> None:
        """The coin of the plan before fell as its rho says: bets that it did not reach 1e9 with
        probability 1e-9, ever.

        The coin of EpsMix fell for the baseline in the episodes that were the baseline's. That of a
        mixture is seen in the actions at its step: of each the baseline has the probability b, the
        explorer e. A bet with the tilt t multiplies its stake by ((1-rho) b + rho exp(t) e) / z /
        ((1-rho) b + rho e), with z = 1 - rho + rho exp(t): if the coin falls as rho says, by 1 on
        average. Where steps share a row, nobody can see which step an action was taken at.
        """
        head, rho = self.head, before.rho
        if not 0 < rho < 1 or not (head.is_EpsMix or head.rows == head.H):
            return
        if head.is_EpsMix:
            n = plan.baseline_returns[0] - self.returns[0]
            seen = [(n, 1.0, 0.0), (episodes - n, 0.0, 1.0)]
        else:
            h = before.h - 1
            step = [(*divmod(pair, head.A), more) for row, pair, more in plan.played if row == h]
            seen = [(m, head.baseline[h][s][a], before.explorer[h][s][a]) for s, a, m in step]
        for j, tilt in enumerate(TILTS):
            log_z = math.log1p(rho * math.expm1(tilt))
            for times, b, e in seen:
                safe, bold = (1 - rho) * b, rho * e
                require(safe + bold > 0, "played: an action that the plan before never plays")
                self.log_bets[j] += times * (
                    math.log((safe + math.exp(tilt) * bold) / (safe + bold)) - log_z
                )
        most = max(self.log_bets)
        mean = math.fsum(math.exp(x - most) for x in self.log_bets) / len(TILTS)
        fell_so = most + math.log(mean) < IMPOSSIBLE
        require(fell_so, "played: not by the coin that rho says")

    def check_returns(self, plan: Any) -> None:
        """New returns lie in their range, and are spread over the nodes as their sum says: each may
        lose up to LOST.

        Of those that a ledger begins with, some may not be spread: they prove nothing, and lie in
        the range, too.
        """
        (n, x), (_, low, span), given = self.returns, self.head.range, self.head.given
        new, total = plan.baseline_returns[0] - n, (plan.baseline_returns[1] - x) * UNIT
        self.returns, changes = plan.baseline_returns, plan.returns
        require(
            0 <= new <= plan.episodes - n,
            "baseline_returns: more than episodes, or fewer than before",
        )
        require(new * low <= total <= new * (low + span), "baseline_returns: outside their range")
        for place, more in changes:
            require(
                place < len(NODES) and more and given.returns,
                "returns: outside their range, or none",
            )
            self.spread[place] += more
        spread, rest = divmod(sum([more for _, more in changes]), 2**20)
        require(
            rest == 0 and spread <= new,
            "returns: not of whole episodes, or of more than there were",
        )
        if given.returns:
            require(spread == new or self.plans == 0, "returns: not all of them are spread")
            by_nodes = new * low + span * sum(
                [Fraction(more * NODES[place], 2**42) for place, more in changes]
            )
            require(
                0 <= total - by_nodes <= span * (spread * LOST + new - spread),
                "returns: not as their sum says",
            )

    def ball(self, row: int, pair: int) -> "Ball":
        """Return the ball of a pair's next states."""
        if (row, pair) not in self.balls:
            n_i, size = self.visits[row, pair], len(self.head.support[row][pair])
            u = self.u.setdefault((row, pair), {})
            self.balls[row, pair] = Ball(n_i, size, self.head.full_support, self.head.log_share, u)
        return self.balls[row, pair]

    def mean_reward(self, row: int, pair: int, sign: int) -> Decimal:
        """Bound the mean of an unknown reward in 0..1; rounding took off up to 2^-20."""
        n = self.played[row, pair]
        heads, log_share = self.sums[row, pair] * UNIT, self.head.log_share
        mean = coin_and_bets(n, heads, self.between[row, pair] * UNIT, log_share, sign)
        return mean if sign > 0 else max(mean - Decimal(2) ** -20, Decimal(-1))

    def mean_return(self, sign: int, claim: float | None) -> Fraction | None:
        """Bound the baseline's value by its returns: the claim itself, if it is proved.

        The claim is lowest + span m, for a mean m of the nodes; for a relative floor it is lowest +
        span (1 - m + LOST) + rounding, for a mean m of the nodes in reverse. Only this side is
        bounded: it has the whole share.
        """
        n, (rounding, low, span), given = self.returns[0], self.head.range, self.head.given
        if not given.returns or not n:
            return None
        if claim is None or (sign > 0) == bool(given.relative) or not any(self.spread):
            return None
        value = Fraction(claim)
        m = (
            (value - low) / (span or 1)
            if sign > 0
            else 1 + LOST - (value - rounding - low) / (span or 1)
        )
        n_k = [Decimal(w) / 2**20 for w in self.spread[::sign]]
        sure = m <= 0 or (
            span and m < 1 and portfolio_proves(m, n_k, self.head.log_share_of_returns)
        )
        return sign * value if sure else None


def most_unequal(total: int, n: int) -> list[tuple[int, int, int]]:
    """Return n rewards in 0..1 of this sum, in units of 2^-20: some of 1, one between, others of 0.

    No others of this sum have k among them that pay less in all, or more, whatever k is.
    """
    ones, rest = divmod(total, 2**20)
    between = int(rest > 0)
    return [(2**20, 2**20, ones), (rest, rest, between), (0, 0, n - ones - between)]


def first_of(amounts: list[tuple[int, int]], n: int) -> int:
    """Return the sum of the first n of these amounts, each of which is there so many times."""
    total = 0
    for amount, times in amounts:
        taken = min(times, n)
        total, n = total + amount * taken, n - taken
    return total


# ---- 4. The bounds: radius, worst mean, coin (docs/certificates.md, Statement and Proof)


@lru_cache(2**16)
def log(x: Decimal) -> Decimal:
    """Return log x = log c + 2 artanh y, where c is x in two digits, and y = (x - c) / (x + c) is
    below 1/40.

    Much quicker than `ln`, as there are few c. The series y + y^3/3 + ... misses less than y^17 / 8
    < 1e-28.
    """
    c = SHORT.plus(x)
    if c == x:
        return x.ln()
    y = (x - c) / (x + c)
    square, series = y * y, ZERO
    for term in ARTANH:
        series = series * square + term
    return log(c) + 2 * y * series


@lru_cache(2**16)
def log_gamma(z: Decimal) -> Decimal:
    """Return log Gamma(z) - log(2 pi) / 2; the constant cancels in log m.

    Gamma(z) = Gamma(z + m) / (z .. (z + m - 1)), then Stirling's series, B_2k / (2k (2k-1)
    z^(2k-1)). It misses by less than the first term left out, 0.03 / z^15 < 1e-28 where z >= 60.
    """
    product, series = ONE, ZERO
    while 0 < z < 60:
        product, z = product * z, z + 1
    per_square = 1 / (z * z)
    for term in STIRLING:
        series = series * per_square + term
    return (z - HALF) * log(z) - z + series / z - product.ln()


@lru_cache(2**16)
def log_ratio(count: Decimal, alpha: Decimal) -> Decimal:
    """Return n_i log n_i - log Gamma(n_i + alpha) + log Gamma(alpha)."""
    return count * log(count) - log_gamma(count + alpha) + log_gamma(alpha)


@lru_cache(2**16)
def log_supports(n: Decimal, d: int, size: int) -> Decimal:
    """Return log of sum_k w_k C(size-d, k-d) / C(size, k) n^n Gamma(k/2) / Gamma(n + k/2), k <
    4d + 64 and k = size.
    """
    last, sets, total = (
        log_ratio(n, Decimal(size) / 2) - log(Decimal(size)),
        ONE / math.comb(size, d),
        ONE,
    )
    for k in range(d, min(size, 4 * d + 64)):
        total += (log_ratio(n, Decimal(k) / 2) - last).exp() * sets / (k * (k + 1))
        sets *= Decimal(k + 1) / (k + 1 - d)
    return last + log(total)


def log_factor(n_i: list[Decimal], size: int, full_support: bool, log_share: Decimal) -> Decimal:
    """Return n eps, or a hair more: log(1/delta_0) + sum_i n_i log(n_i / n) - log m(n_1 .. n_size).

    All that is added up is below 1000 (n + 3/2 size + log(1/delta_0)), as counts are below 10^30.
    So the hair covers the roundings and, with its part n HAIR, those of the n factors in
    `is_proved`.
    """
    n = sum(n_i, ZERO)
    whole = log_ratio(n, size * HALF) if full_support else log_supports(n, len(n_i), size)
    total = log_share - whole + sum([log_ratio(count, HALF) for count in n_i])
    return total + (n + size * (1 + HALF) + log_share) * HAIR


class Ball:
    """{p : KL(p_hat, p) <= eps}, of what was seen n_i times among `size` that are possible."""

    def __init__(
        self, n_i: dict[int, Any], size: int, full_support: bool, log_share: Decimal, u: Any
    ) -> None:
        """Compute the radius. `u`: by step, where the search for t begins."""
        self.u = u
        n = sum(n_i.values())
        self.n_i = {i: Decimal(count) for i, count in n_i.items()}
        exponent = log_factor([*self.n_i.values()], size, full_support, log_share) if n else ZERO
        self.factor = exponent.exp()  # exp(n eps)
        self.eps = float(exponent) / float(n) if n else math.inf
        self.p_hat = [float(count / n) for count in n_i.values()]


class Spread:
    """Values V of all that is possible: the least of them, and d, how far each is above it."""

    def __init__(self, V: dict[int, Decimal]) -> None:
        """Compute the distances once for all balls."""
        self.least = min(V.values())
        self.d = {i: x - self.least for i, x in V.items()}
        self.floats = {i: float(d) for i, d in self.d.items()}
        self.most = max(self.floats.values())


def worst_mean(ball: Ball, V: Spread, h: int = 0) -> Decimal:
    """Return at most min {p V : KL(p_hat, p) <= eps} (docs/certificates.md, The backup).

    Weak duality: nu + exp(-eps) prod (V_i - nu)^{n_i/n} is a lower bound for EVERY nu = least - t,
    t >= 0; so is least. t and the gain over least are guessed in floats; then a little less than
    that gain is proved.
    """
    if ball.eps > 100 or V.most < 1e-24:
        return V.least
    d = [V.floats[i] for i in ball.n_i]
    most = max(d)
    if most < 1e-24:
        return V.least
    t, guess = best_gain(ball, d, most, h)
    for less in (2**-50, 2**-46, 2**-36):  # what is taken off the guess, so that it can be proved
        gain = Decimal(guess - less * most)
        if gain > 0 and is_proved(gain, Decimal(t), ball, V):
            return V.least + gain
    return V.least


def best_gain(ball: Ball, d: list[float], most: float, h: int) -> tuple[float, float]:
    """Guess the best t, and the gain: t + gain = exp(-eps) prod (t + d)^p. A bad guess makes a
    bound looser, not wrong.

    The best t has log(sum p w) - sum p log w = eps with w = t/(t+d): Newton's method in u = log(t /
    most), from where the last search ended. The left side grows as t falls; where it is below eps
    even at t = 0, that is the best.
    """
    pd, eps, u = [*zip(ball.p_hat, d, strict=True)], ball.eps, ball.u.get(h, 0.0)
    for _ in range(40):
        if u < -6 and min(d) > 0:
            mean_log = sum([p * math.log(x) for p, x in pd])
            if math.log(sum([p / x for p, x in pd])) + mean_log <= eps:
                ball.u[h] = -7.0
                return 0.0, math.exp(mean_log - eps)
        a = b = c = 0.0
        scale = math.exp(-u) / most
        for p, x in pd:
            w = 1.0 / (1.0 + x * scale)
            pw = p * w
            a += pw
            b += pw * w
            c += p * math.log(w)
        gap, variance = math.log(a) - c, b - a * a
        step = (
            math.log(gap / eps) * gap * a / variance if gap > 1e-15 and variance > 1e-15 else -2.0
        )
        u += min(max(step, -2.0), 2.0)
        if abs(step) < 5e-4 or abs(u) > 40:
            break
    ball.u[h] = u if abs(u) < 10 else 0.0  # far out, steps are too short to come back from
    t = most * math.exp(u)
    return t, t * math.expm1(sum([p * math.log1p(x / t) for p, x in pd]) - eps)


def is_proved(gain: Decimal, t: Decimal, ball: Ball, V: Spread) -> bool:
    """Return whether exp(n eps) <= prod ((d_i + t) / (t + gain))^{n_i}: then least + gain = nu + t
    + gain is a bound.

    Each of the n factors is within 1e-28 of its size; n HAIR in n eps covers that, and what
    fractional counts lack.
    """
    total, product, d = t + gain, ONE, V.d
    for i, count in ball.n_i.items():
        product *= ((t + d[i]) / total) ** count
    return product >= ball.factor


# stakes (docs/ledger.md, What is re-derived)
BETS = [Decimal(x) / 128 for x in (124, 96, 48, 16, 4, 1)]
# weights of the coin and of the stakes, of 128; 16 are for bets on the other side
AVERAGE = (96, 3, 3, 3, 3, 2, 2)


@lru_cache(2**12)
def coin_and_bets(
    n: int, heads: Fraction, between: Fraction, log_share: Decimal, sign: int
) -> Decimal:
    """Bound the mean of n draws x in [0, 1]: `heads` is the sum of x, `between` that of x (1 - x).

    The lower end of 1 - x, whose sum of x (1 - x) is the same, is one minus the upper end.
    """
    require(0 <= heads <= n, "rewards: a sum beyond its range")
    X, Z = (
        Decimal(x.numerator) / x.denominator for x in (heads if sign > 0 else n - heads, between)
    )
    low = ZERO
    if X:
        m = guess_mean(float(n), float(X), float(Z), float(log_share))
        # what is taken off the guess, so that it can be proved
        for less in (2**-50, 2**-46, 2**-40, 2**-30):
            tried = Decimal(m - less)
            if 0 < tried <= X / n and average_proves(tried, n, X, Z, log_share):
                low = tried
                break
    return low if sign > 0 else low - 1


def guess_mean(n: float, X: float, Z: float, log_share: float) -> float:
    """Guess the largest m <= X/n that `average_proves`, by bisection."""
    coin = math.lgamma(X + 0.5) + math.lgamma(n - X + 0.5) - math.log(math.pi) - math.lgamma(n + 1)
    stakes = [(float(theta), -math.log1p(-float(theta)) - float(theta)) for theta in BETS]
    below, above = 0.0, X / n
    for _ in range(64):
        m = (below + above) / 2
        if m == 0 or not below < m < above:
            break
        logs = [coin - X * math.log(m) - ((n - X) * math.log1p(-m) if n > X else 0.0)]
        for theta, c in stakes:
            u = min(1 / m, (theta / (2 * c) + 1) * X / (X - Z))
            logs.append(theta * (X * u - n) - c * ((X - Z) * u * u - 2 * X * u + n))
        most = max(logs)
        total = sum([weight * math.exp(x - most) for weight, x in zip(AVERAGE, logs, strict=True)])
        below, above = (m, above) if most + math.log(total / 128) >= log_share else (below, m)
    return below


def average_proves(m: Decimal, n: int, X: Decimal, Z: Decimal, log_share: Decimal) -> bool:
    """Return whether coin and bets, averaged, reach 1/delta_0 at this m <= X/n: then the mean is
    above m.

    A bet has at least exp(theta (X u - n) - c ((X-Z) u^2 - 2X u + n)) with c = -log(1-theta) -
    theta, for every u <= 1/m: docs/certificates.md, Unknown and random rewards.
    """
    sides = [(count, p) for count, p in ((n - X, 1 - m), (X, m)) if count]
    coin = sum([count * (log(count / n) - log(p)) for count, p in sides], ZERO)
    size = n + sum([count * (abs(log(count / n)) + abs(log(p))) for count, p in sides], ZERO)
    logs = [coin - log_factor([count for count, _ in sides], 2, True, log_share) - size * HAIR]
    for theta in BETS:
        c = -log(1 - theta) - theta
        u = min(1 / m, (theta / (2 * c) + 1) * X / (X - Z))  # the context rounds down
        size = 1 + log_share + X * u + n + 8 * (X * u * u + 2 * X * u + n)
        logs.append(
            theta * (X * u - n) - c * ((X - Z) * u * u - 2 * X * u + n) - log_share - size * HAIR
        )
    return (
        sum([weight * x.exp() for weight, x in zip(AVERAGE, logs, strict=True) if x > -100], ZERO)
        >= 128
    )


# docs/ledger.md, How returns are spread
NODES = [round(2**22 * math.sin(math.pi * k / 128) ** 2) for k in range(33)]
NODES += [2**22 - node for node in reversed(NODES[:-1])]
# a return is rounded down by this
LOST = Fraction(1, 2**22) + Fraction(max(b - a for a, b in pairwise(NODES)), 2**42)
STAKES = [
    Decimal(x) / 8192
    for x in (312, 1200, 2528, 4096, 5664, 6992, 7880, 8192, 128, 64, 32, 16, 8, 4, 2, 1)
]


def portfolio_proves(m: Fraction, n_k: list[Decimal], log_share: Decimal) -> bool:
    """Return whether sum_j weight_j prod_k (1 - theta_j + theta_j x_k / m)^n_k >= 1/delta_0: then
    the mean is above m.

    Weights are 3/32 for the first eight stakes, 1/32 for the others; floats guess which of them
    matter.
    """
    x = [Decimal(node) / 2**22 * m.denominator / m.numerator for node in NODES]
    seen = [(n, y) for n, y in zip(n_k, x, strict=True) if n]
    guesses = []
    for stake in map(float, STAKES):
        ruined = stake == 1 and n_k[0] > 0
        guesses.append(
            -math.inf
            if ruined
            else sum([float(n) * math.log1p(stake * (float(y) - 1)) for n, y in seen])
        )
    total = ZERO
    for j, theta in enumerate(STAKES):
        if guesses[j] > max(guesses) - 40:
            logs = [n * log(1 - theta + theta * y) for n, y in seen]
            hair = HAIR * (1 + sum([abs(x) for x in logs], ZERO) + sum(n_k, ZERO))
            total += (3 if j < 8 else 1) * (sum(logs, ZERO) - hair - log_share).exp() / 32
    return total >= 1


# ---- 5. The values: from the last step to the first


class KLValues:
    """Bounds of the values of any policy (docs/certificates.md, Statement)."""

    nothing: Any = ZERO

    def __init__(self, evidence: Evidence, sign: int = 1) -> None:
        """Compute them from these counts."""
        self.evidence, self.head, self.sign = evidence, evidence.head, sign
        self.end = dict.fromkeys(range(self.head.S), self.nothing)  # V_{H+1} = 0
        self.of_pair: dict[tuple[int, int], Any] = {}
        self.room = self.head.H * HAIR

    def known(self, h: int, pair: int) -> Any:
        """Return what Q_h(s,a) depends on besides V: the ball, its states, and what is paid, or
        paid by state.
        """
        head, row, sign = self.head, h % self.head.rows, self.sign
        states, by_state = head.support[row][pair], None
        if head.unknown[row][pair]:
            paid = self.evidence.mean_reward(row, pair, sign)
        elif head.given.rewards_by_next:
            paid, by_state = ZERO, {j: exact(sign * head.reward(h, pair, j)) for j in states}
        else:
            paid = exact(sign * head.reward(h, pair, 0))
        self.of_pair[h, pair] = self.evidence.ball(row, pair), states, paid, by_state
        return self.of_pair[h, pair]

    def Q(self, h: int, pair: int, V: Any, spreads: dict[Any, Spread]) -> Any:
        """Q_h(s,a) = r + min over the ball of p V_{h+1}; a reward by next state is inside the
        minimum.

        `spreads` keeps the spread of V, which is the same for all pairs with the same possible next
        states.
        """
        ball, states, paid, by_state = self.of_pair.get((h, pair)) or self.known(h, pair)
        if by_state:
            return worst_mean(ball, Spread({j: EXACT.add(V[j], by_state[j]) for j in states}), h)
        if states not in spreads:
            spreads[states] = Spread({j: V[j] for j in states})
        return EXACT.add(paid, worst_mean(ball, spreads[states], h))

    def mean(self, weights: list[Decimal], values: list[Any]) -> Any:
        """Return at most the weighted mean, a hair less than what was summed; at least the
        smallest value.
        """
        return max(
            min(values), sum([p * x for p, x in zip(weights, values, strict=True)]) - self.room
        )

    def back(self, h: int, rules: Any, V: Any) -> Any:
        """V_h(s) = sum_a pi_h(a|s) Q_h(s,a)."""
        new, spreads, A = {}, dict[Any, Spread](), self.head.A
        for s in self.head.first_states if h == 0 else range(self.head.S):
            actions, weights = rules[s]
            Q = [self.Q(h, s * A + a, V, spreads) for a in actions]
            new[s] = self.mean(weights, Q) if len(Q) > 1 else Q[0]
        return new

    def tails(self, explorer: Any) -> list[Any]:
        """Return the bounds of the explorer from each step on; the last are those of V_{H+1}."""
        tails = [self.end]
        for h in reversed(range(self.head.H)):
            tails.insert(0, self.back(h, explorer[h], tails[0]))
        return tails

    def value(self, policy: Any, V: Any) -> Any:
        """Return the bound of a policy for the first steps, followed by what V bounds, averaged
        over the start.
        """
        for h in reversed(range(len(policy))):
            V = self.back(h, policy[h], V)
        head = self.head
        if head.given.start is not None:
            states, probabilities = weights(head.given.start)
            return self.mean(probabilities, [V[s] for s in states])
        return worst_mean(
            Ball(self.evidence.starts, head.S, head.full_support, head.log_share, {}), Spread(V)
        )


class PaperValues(KLValues):
    """The paper's bounds, V_low and -V_up of each state (Li et al. 2023)."""

    nothing: Any = (ZERO, ZERO)

    def known(self, h: int, pair: int) -> Any:
        """Return what Q_h(s,a) depends on besides V: p_hat, 9 beta* / n, and all that is added
        without V (Eq. q).

        beta* = log(SAH/delta') + log(8e(n+1)), and beta: NOTATION.md. In rows that steps share, Q_H
        is r: their counts hold no next state of the last step, and none is needed.
        """
        head, n_j = self.head, self.evidence.visits[h % self.head.rows, pair]
        n, r = max(sum(n_j.values()), 1), exact(head.reward(h, pair, 0))
        if head.rows < head.H and h + 1 == head.H:
            self.of_pair[h, pair] = [], ZERO, r, r
            return self.of_pair[h, pair]
        log_n = log(Decimal(8 * (sum(n_j.values()) + 1))) + 1
        bonus = head.H * head.H * (head.log_share + head.S * log_n) / n  # H^2 beta / n
        p_hat = [(j, Decimal(m) / n) for j, m in n_j.items()]
        self.of_pair[h, pair] = (
            p_hat,
            9 * (head.log_share + log_n) / n,
            r - 22 * bonus,
            r + 14 * bonus,
        )
        return self.of_pair[h, pair]

    def Q(self, h: int, pair: int, V: Any, spreads: Any = None) -> Any:
        """Return Q_low and -Q_up (Eq. ucbQ, lcbQ).

        Q_up = r + 3 sqrt(Var(V_up) beta* / n) + 14 H^2 beta / n + p_hat (V_up - V_low) / H + p_hat
        V_up <= H, and Q_low = r - 3 sqrt(Var(V_up) beta* / n) - 22 H^2 beta / n - 2 p_hat (V_up -
        V_low) / H + p_hat V_low >= 0.
        """
        H, (p_hat, per_variance, less, more) = (
            self.head.H,
            self.of_pair.get((h, pair)) or self.known(h, pair),
        )
        if less <= -H and more >= H:  # whatever V in 0..H is
            return ZERO, Decimal(-H)
        low = sum([p * V[j][0] for j, p in p_hat], ZERO)
        up = -sum([p * V[j][1] for j, p in p_hat], ZERO)
        variance = sum([p * (V[j][1] + up) ** 2 for j, p in p_hat], ZERO)
        bonus, gap = (variance * per_variance).sqrt(), (up - low) / H
        Q_low, Q_up = less - bonus - 2 * gap + low, more + bonus + gap + up
        return max(ZERO, Q_low - H * HAIR), max(Decimal(-H), -Q_up - H * HAIR)

    def mean(self, weights: list[Decimal], values: list[Any]) -> Any:
        """Return the means of both bounds."""
        return tuple(
            super(PaperValues, self).mean(weights, [*column])
            for column in zip(*values, strict=True)
        )

    def tails(self, explorer: Any) -> list[Any]:
        """The explorer must be an argmax of Q_up, ties within 1e-12 H: the bounds are proved for
        nothing else.
        """
        tails, A = super().tails(explorer), self.head.A
        for h, step in enumerate(explorer):
            for s in self.head.first_states if h == 0 else range(self.head.S):
                Q = [self.Q(h, s * A + a, tails[h + 1])[1] for a in range(A)]  # minus Q_up
                short = max(Q[a] for a in step[s][0]) - min(Q)
                require(
                    short <= self.head.H * Decimal("1e-12"),
                    "explorer: not the paper's optimistic policy",
                )
        return tails


# ---- 6. A plan: what it plays, and what it claims (docs/ledger.md, Then, for each plan)


# what a plan plays: by the baseline alone, in episodes whose returns count as the baseline's; in
# all others; and what it was made of
Played = namedtuple("Played", "baseline others h rho explorer")


class Book:
    """A ledger as far as it was read: the first record, the evidence, facts about the plan
    before, and about all.
    """

    def __init__(self, first: Any) -> None:
        """Check the first record."""
        self.head = Head(first)
        self.evidence = Evidence(self.head)
        self.played: Played | None = None  # by the plan before
        self.was_frozen, self.off_baseline, self.frozen_after = False, 0, None

    def judge(self, plan: Any) -> str:
        """Return of what kind a plan is, after every claim in it was re-derived; "closed" for
        the last record.
        """
        if plan.kind == "end":
            good = plan.plans == self.evidence.plans and plan.episodes >= self.evidence.episodes
            require(
                good,
                "plans or episodes: other plans than were read, or fewer episodes than were "
                "counted",
            )
            return "closed"
        self.evidence.add(plan, self.played)
        plan.is_baseline = plan.h == self.head.H and plan.rho == 0
        explorer = self.head.policy(plan.explorer)
        self.played = self.check_policy(plan, explorer)
        self.check_choice(plan)
        self.was_frozen = plan.frozen
        self.off_baseline += not plan.is_baseline
        self.frozen_after = (
            plan.episodes if plan.frozen and self.frozen_after is None else self.frozen_after
        )
        return (
            "not_certified" if plan.safety == "NOT CERTIFIED" else self.check_claims(plan, explorer)
        )

    def check_policy(self, plan: Any, explorer: Any) -> "Played":
        """The policy is the mixture to within 1e-15 in every entry: baseline, then rho of the
        explorer, then explorer. Return what is played.

        EpsMix has none: its coin comes before the episode.
        """
        require(
            0 <= plan.rho <= 1 and (plan.policy is None) == self.head.is_EpsMix,
            "rho or policy: not as expected",
        )
        policy = [] if self.head.is_EpsMix else self.head.policy(plan.policy)
        for h, (played, safe, bold) in enumerate(
            zip(policy, self.head.baseline, explorer, strict=False)
        ):
            rho = Fraction(plan.rho) if h == plan.h - 1 else Fraction(h >= plan.h)
            if rho in (0, 1) and played == (bold if rho else safe):
                continue
            for x, b, e in zip(chain(*played), chain(*safe), chain(*bold), strict=True):
                near = abs(Fraction(x) - (1 - rho) * Fraction(b) - rho * Fraction(e)) <= 1e-15
                require(near, "policy: not the mixture")
        if self.head.is_EpsMix:
            by_coin = (self.head.baseline, plan.rho < 1), (explorer, plan.rho > 0)
        else:
            by_coin = (policy, plan.is_baseline), (policy, not plan.is_baseline)
        nobody = [[[0.0] * self.head.A] * self.head.S] * self.head.H
        baseline, others = (played if any_of_them else nobody for played, any_of_them in by_coin)
        return Played(baseline, others, plan.h, plan.rho, explorer)

    def check_choice(self, plan: Any) -> None:
        """h is the smallest with L(h) >= floor, and the baseline is played where there is none, or
        by a frozen agent.

        The floor is the ledger's; with a relative one the baseline always reaches it. StepNoMix
        does not mix.
        """
        given, H, baseline = self.head.given, self.head.H, plan.is_baseline
        require(given.relative or plan.floor == given.floor, "floor: not that of the ledger")
        require((plan.upper is None) == (not given.relative), "upper: it is for relative floors")
        require(
            plan.frozen is True or plan.frozen is self.was_frozen, "frozen: an agent that thaws"
        )
        candidates = zip(self.head.h0, plan.candidates, strict=True)
        reached = [h0 for h0, L in candidates if plan.floor <= L or (given.relative and h0 == H)]
        chosen = reached and plan.h == reached[0] and (plan.h > 0 or plan.rho == 1)
        require(
            baseline if plan.frozen or not reached else chosen,
            "h or rho: not the choice by the candidates",
        )
        require(
            given.agent != "StepNoMix" or plan.rho == (plan.h == 0), "rho: StepNoMix does not mix"
        )
        source = "baseline" if baseline else "mixture" if plan.h > 0 else "optimistic"
        require(plan.source == source, "source: not what h and rho say")
        require(plan.safety in ("certified", "trusted", "NOT CERTIFIED"), "safety: unknown")
        scaled = given.bounds.scale != 1
        require(
            (plan.safety == "NOT CERTIFIED") == scaled,
            "safety: scaled bounds, and no others, are NOT CERTIFIED",
        )
        require(
            not (plan.frozen and plan.safety == "certified"),
            "safety: of a frozen agent nothing is certified",
        )

    def check_claims(self, plan: Any, explorer: Any) -> str:
        """Candidates, by_model, by_returns and upper are proved; then lower, and the label.
        Return the kind.
        """
        claims = [*plan.candidates[:-1], plan.by_model]
        lower, minus_upper = self.values(explorer, claims)
        proved = all(claim <= bound for claim, bound in zip(claims, lower, strict=True))
        require(proved, "candidates or by_model: not proved")
        here = self.proved_here(plan, lower[-1])
        earlier = self.head.given.certificate
        known = max(here, Fraction(earlier.value)) if earlier else here
        require(plan.candidates[-1] <= known, "candidates: the baseline's is not proved")
        require(plan.lower <= self.worth(plan, known), "lower: not proved")
        if self.head.given.relative:
            here = known = self.checked_upper(plan, minus_upper)
        return self.check_safety(plan, self.kind(plan, here, known))

    def values(self, explorer: Any, claims: Any) -> tuple[list[Decimal], Decimal]:
        """Return lower values of "baseline for the first h0 steps, then explorer"; minus an upper
        one of the last.

        Every policy is worth 0 at least: of one of which no more is claimed, that is the value.
        """
        baseline, is_KL = self.head.baseline_rules, self.head.is_KL
        values = KLValues(self.evidence) if is_KL else PaperValues(self.evidence)
        tails, wanted = values.tails(rules(explorer)), zip(self.head.h0, claims, strict=True)
        found: list[Any] = [
            values.value(baseline[:h0], tails[h0]) if claim > 0 or not is_KL else ZERO
            for h0, claim in wanted
        ]
        if not is_KL:
            return [low for low, _ in found], found[-1][1]
        upper = KLValues(self.evidence, sign=-1)  # only a relative floor needs it
        return found, upper.value(baseline, upper.end) if self.head.given.relative else ZERO

    def proved_here(self, plan: Any, by_model: Decimal) -> Fraction:
        """Return what the baseline is worth at least, by the model or by its returns."""
        by_returns = self.evidence.mean_return(1, plan.by_returns)
        proved = plan.by_returns is None or (
            by_returns is not None and plan.by_returns <= by_returns
        )
        require(proved, "by_returns: not proved")
        return Fraction(by_model) if by_returns is None else max(Fraction(by_model), by_returns)

    def checked_upper(self, plan: Any, minus_upper: Decimal) -> Fraction:
        """U >= an upper value, and floor >= (1 - give) U - give zero - below: U may stand for
        the baseline's value.
        """
        given, U, by_model = (
            self.head.given,
            Fraction(plan.upper),
            -Fraction(minus_upper) <= Fraction(plan.upper),
        )
        by_returns, give = (
            self.evidence.mean_return(-1, plan.upper),
            Fraction(given.relative.max_loss),
        )
        require(by_model or (by_returns is not None and -by_returns <= U), "upper: too low")
        require(
            plan.floor >= (1 - give) * U - give * self.head.zero - self.head.below, "floor: too low"
        )
        return U

    def worth(self, plan: Any, baseline: Fraction) -> Fraction:
        """Return (1 - rho) L(h) + rho L(h-1), exactly, where the baseline, the last candidate,
        has this value.
        """
        L = [*map(Fraction, plan.candidates[:-1]), baseline]
        i, rho = self.head.h0.index(plan.h), Fraction(plan.rho)
        return (1 - rho) * L[i] + rho * L[max(i - 1, 0)]

    def kind(self, plan: Any, here: Fraction, known: Fraction) -> str:
        """Return the strongest kind of which a plan is, if what it plays reaches the floor; "" if
        it does not.

        `here` is what the baseline is proved to be worth here, `known` with an earlier certificate,
        too: of a plan that is certified all that is claimed is proved here. The baseline is not
        below a relative floor by definition.
        """
        if self.head.given.relative and plan.is_baseline:
            return "certified"
        proved_here = self.worth(plan, here)
        if proved_here >= plan.floor and (proved_here >= plan.lower or here == known):
            return "certified"
        return "by_certificate" if self.worth(plan, known) >= plan.floor else ""

    def check_safety(self, plan: Any, kind: str) -> str:
        """What is certified is proved to reach the floor; what is trusted is, too, or it is the
        baseline.
        """
        on_trust = plan.is_baseline and plan.safety == "trusted"
        require(kind or on_trust, "safety: not proved, and not the baseline on trust")
        return kind if plan.safety == "certified" else "trusted"


# ---- 7. The ledger, and the summary


def verify(lines: Iterable[bytes]) -> Verdict:
    """Re-derive a ledger, line by line, up to the first record that does not hold."""
    kinds, refusals, digest, book = Counter[str](), list[tuple[int, str]](), "0" * 64, None
    with decimal.localcontext(DIGITS):
        try:
            for line in lines:
                record = read_record(line, digest)
                require(not kinds["closed"], "there is more after the last record")
                if book is None:
                    book = Book(record)
                else:
                    kinds[book.judge(record)] += 1
                digest = record.digest
            require(book, "the file is empty")
        except Exception as reason:  # whatever it is, this is not a record that holds
            refusals.append((1 + (book is not None) + kinds.total(), str(reason) or repr(reason)))
    closed = bool(kinds.pop("closed", 0))
    promise = book.head.promise if book else "No promise was read"
    counts = [kinds[kind] for kind in KINDS]
    facts: list[Any] = [0, None, False]
    if book:
        facts = [book.off_baseline, book.frozen_after, bool(book.head.given.certificate)]
    return Verdict._make([sum(counts), *counts, closed, digest, promise, refusals, *facts])


def watched(stream: BinaryIO) -> Generator[bytes, None, None]:
    """Return the lines of a ledger; a terminal shows how many plans are checked, at most five
    times a second.
    """
    shown, due, done = sys.stderr.isatty(), 0.0, 0
    size = max(os.fstat(stream.fileno()).st_size, 1)
    try:
        for plans, line in enumerate(iter(lambda: stream.readline(LONGEST + 1), b"")):
            yield line
            done += len(line)
            if shown and time.monotonic() >= due:
                sys.stderr.write(f"\r{plans} plans checked, {100 * done // size} % of the file")
                sys.stderr.flush()
                due = time.monotonic() + 0.2
    finally:
        sys.stderr.write("\r" + " " * 60 + "\r" if shown else "")


def summary(verdict: Verdict) -> str:
    """Return the verdict in five lines, and one more for each of three things that nobody should
    overlook.
    """
    counts = ", ".join(f"{n} {name}" for name, n in zip(NAMES, verdict[1:5], strict=True) if n)
    result = "ACCEPTED" if verdict.closed else "ACCEPTED so far"
    if verdict.assumed:
        result += ", if the certificate holds that nobody can check here"
    if verdict.refusals:
        record, why = verdict.refusals[0]
        result = f"REFUSED: record {record}: {shown(why)}"
    elif verdict.not_certified:
        result = "consistent, NOT CERTIFIED"
    end = "closed" if verdict.closed else "open: still being written, or cut off"
    plans = f"{verdict.plans} plans: {counts or 'none'}"
    if verdict.plans and not verdict.off_baseline:
        plans += (
            "\nEvery"
            if verdict.certified or verdict.by_certificate
            else "\nNothing was certified: every"
        )
        plans += " plan is the baseline"
    if verdict.frozen_after is not None:
        plans += (
            f"\nALARM after {verdict.frozen_after} episodes: what was certified before rests "
            "on a premise that is"
        )
        plans += " most likely false; from then on the baseline alone was played"
    return f"{verdict.promise}\n{plans}\n{end}, last digest {verdict.digest}\n{result}\n"


def main(argv: list[str]) -> int:
    """Print the verdict. Return 0 if every plan holds, 4 if that assumes a certificate which nobody
    can check here, 3 if a plan does not hold, 2 if no file can be read.
    """
    if len(argv) != 1:
        sys.stderr.write("usage: python verifier.py FILE\n")
        return 2
    try:
        with Path(argv[0]).open("rb") as stream:
            lines = watched(stream)
            verdict = verify(lines)
            lines.close()
    except OSError as reason:
        place = shown(argv[0], 1000)
        sys.stderr.write(
            f"{place} cannot be read: {reason.strerror}. Expected a ledger of plans.\n"
        )
        return 2
    sys.stdout.write(summary(verdict))
    if verdict.refusals or verdict.not_certified:
        return 3
    return 4 if verdict.assumed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
