"""Re-derive every plan of a guard's ledger, and refuse whatever is not proved: `python
guard_verifier.py FILE`.

One file, the standard library alone, no code shared with what writes ledgers. It is in the order of
the proof: records and digests, the first record and how delta is spent, tickets, bounds, a plan's
claims, the summary. The format, and what is checked: docs/ledger.md. The proof: docs/guard.md.

Arithmetic: shares and floors are compared as fractions, exactly. A bound m is proved if the capital
W(m) of the tickets is at least one over its level. Its logarithm is a sum of n log(1 - theta +
theta x / m): floats, each right to 2^-50 of itself, from which 2^-48 of all that was added up is
taken off. Bounds that nothing rests on are not in the ledger.

A floor that is measured from the baseline rests on comparisons: a candidate is worth at least so
much of the baseline's value, or so much more than it. One is proved if E(b, c) >= 1/level wherever
c is below what is claimed for b. E rises in b and falls in c, so E(b, c') bounds it over an
interval b..b' and all c up to what is claimed for b', which is c'.
"""

import hashlib
import json
import math
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, namedtuple
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

LONGEST = 2**26  # bytes of a record
GRID = 2**53  # shares of the coin are whole multiples of 1/GRID
FINE, EPISODE, INTERVALS = 2**22, 2**20, 64
HALF = [
    round(FINE * math.sin(math.pi * k / (2 * INTERVALS)) ** 2) for k in range(INTERVALS // 2 + 1)
]
# where returns are counted, in 1/FINE of the range
NODES = [*HALF, *(FINE - node for node in reversed(HALF[:-1]))]
STAKES = [
    x / 8192 for x in (312, 1200, 2528, 4096, 5664, 6992, 7880, 8192, 128, 64, 32, 16, 8, 4, 2, 1)
]
WEIGHTS = [3 / 32] * 8 + [1 / 32] * 8
# by rounding down, at most
LOST = Fraction(1, FINE) + Fraction(max(b - a for a, b in pairwise(NODES)), EPISODE * FINE)
HAIR = 2.0**-48
# of the capital in a comparison: against the baseline, and against the candidate
UNSTAKED = (1 / 2, 1 / 8)
# of the baseline's value, for one comparison: those that guards make need about 100 at most
MOST_INTERVALS = 256
MOST_CANDIDATES = 1000
# stakes on how often a policy is drawn: by them the odds of its share are exp(tilt) times as high
TILTS = [sign * 2.0**k for k in range(-10, 4) for sign in (1, -1)]
IMPOSSIBLE = 9 * math.log(10)  # of a capital that a true coin reaches with probability 1e-9, ever
FIELDS = {
    "guard": "kind digest format software low high floor max_loss below delta stages logged "
    "missing baseline",
    "plan": "kind digest number admitted withdrawn drawn settled alarm bounds shares safety",
    "end": "kind digest plans admitted withdrawn drawn settled alarm",
}
Verdict = namedtuple(
    "Verdict", "plans certified trusted episodes closed digest promise refusals off_baseline alarm"
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
    return six_digits(value, ROUND_FLOOR)


def at_most(value: Fraction) -> str:
    """Return a number that is promised from above: six digits, never rounded down."""
    return six_digits(value, ROUND_CEILING)


def six_digits(value: Fraction, rounding: str) -> str:
    """Return six digits. The nearest float to 0.3 is a little below it, and still 0.3: 1e-12 of a
    number is no difference.
    """
    if not value:
        return "0"
    given = Decimal(value.numerator) / Decimal(value.denominator)
    slack = abs(given) * Decimal("1e-12")
    near = given + slack if rounding == ROUND_FLOOR else given - slack
    last_digit = Decimal(1).scaleb(near.adjusted() - 5)
    return f"{float(near.quantize(last_digit, rounding=rounding)):.6g}"


# ---- 1. Records and digests


def read_record(line: bytes, before: str) -> dict[str, Any]:
    """Return the record of a line that is canonical, and whose digest follows the digest
    `before`.
    """
    require(
        len(line) <= LONGEST and line.endswith(b"\n") and line.isascii(),
        "the line is cut off, or no text",
    )
    record: dict[str, Any] = json.loads(line.decode("ascii"))
    require(type(record) is dict, "no record")
    body = canonical({key: value for key, value in record.items() if key != "digest"})
    fits = record["digest"] == hashlib.sha256(before.encode() + body).hexdigest()
    require(
        fits and canonical(record) + b"\n" == line,
        "the digest does not fit, or the line is not canonical",
    )
    require(set(record) == set(FIELDS[record["kind"]].split()), "other fields")
    return record


def canonical(record: Any) -> bytes:
    """Return a record as a line: keys sorted, no spaces."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def number(text: Any) -> float:
    """Return a finite float from its canonical hexadecimal text: nothing is rounded."""
    require(type(text) is str, "a number is not a text")
    value = float.fromhex(text)
    require(value.hex() == text and math.isfinite(value), "a number is not canonical")
    return value


def whole(value: Any, most: float = math.inf) -> int:
    """Return a whole number that is not negative."""
    require(
        type(value) is int and 0 <= value <= most, f"found {value!r:.20}, expected a whole number"
    )
    return int(value)


# ---- 2. The first record: the floor, the range, and how delta is spent


class Head:
    """What all plans have in common."""

    def __init__(self, given: dict[str, Any]) -> None:
        """Check each part of the first record."""
        require(given["kind"] == "guard", "not the ledger of a guard")
        texts = type(given["software"]) is str and type(given["baseline"]) is str
        require(texts and given["software"], "software or baseline: no text")
        self.low, self.high = number(given["low"]), number(given["high"])
        self.delta = number(given["delta"])
        require(self.low < self.high and 0 < self.delta < 1, "the range, or delta")
        floors = [given["floor"], given["max_loss"], given["below"]]
        require(sum(floor is not None for floor in floors) == 1, "a guard has one floor")
        self.relative = given["floor"] is None
        require(
            whole(given["format"]) == 1 + self.relative, "format: 1 for bounds, 2 for comparisons"
        )
        self.floor, loss, amount = (
            None if floor is None else Fraction(number(floor)) for floor in floors
        )
        require(
            self.floor is None or self.low <= self.floor <= self.high, "a floor outside the range"
        )
        self.keep, self.amount = 1 - (loss or Fraction(0)), amount or Fraction(0)
        self.ratio = loss is not None  # is it V_c / V_b that is compared, or V_c - V_b?
        if loss is not None:
            require(
                0 < loss < 1 and self.low >= 0,
                "a share of the baseline's value needs returns that are >= 0",
            )
        fits = amount is None or 0 < amount <= self.high - self.low
        require(fits, "an amount that may be lost is above 0, and no more than the range")
        self.stages = [Fraction(number(stage)) for stage in given["stages"]]
        require(self.stages == sorted(set(self.stages)), "stages that do not rise")
        require(all(0 < stage <= 1 for stage in self.stages), "a stage outside 0..1")
        self.logged = [whole(weight) for weight in given["logged"]] or [0] * len(NODES)
        self.missing = whole(given["missing"])
        require(
            len(self.logged) == len(NODES) and sum(self.logged) % EPISODE == 0, "logged returns"
        )

    def level(self, p: int) -> float:
        """Return the share of delta of policy p: the baseline, the first candidate, the k-th
        after it.
        """
        if p > 1:
            return self.delta * 0.15 / ((p - 1) * p)
        return self.delta * (0.85 if self.relative else (0.45, 0.40)[p])

    def told(self) -> str:
        """Return what was declared, or logged before: nobody can check it here."""
        if self.floor is not None:
            floor = f"the floor is {at_least(self.floor)}"
        else:
            kept, lost = at_least(self.keep), at_most(self.amount)
            floor = f"the floor is {kept} of the baseline's value less {lost}"
        logged = (
            f"{sum(self.logged) // EPISODE} logged returns of the baseline, {self.missing} missing"
        )
        return f"{floor}, returns lie in {self.low:g} to {self.high:g}, {logged}"

    def floor_of(self, value: Fraction) -> Fraction:
        """Return the floor, if the baseline is worth this, or counts for this in comparisons."""
        return self.keep * value - self.amount if self.floor is None else self.floor


# ---- 3. Tickets


class Coin:
    """How often policies were drawn, against their shares of the coin: the capital of bets.

    A policy has the share q of a ticket. A bet with the tilt t multiplies its stake by exp(t) / z
    if the policy is drawn, else by 1 / z, where z = 1 - q + q exp(t). If the coin falls as the
    shares say, that is 1 on average, whatever q is. The stakes are fixed before the first ticket:
    policy p has 1/((p+1)(p+2)) of all, and each tilt as much of it. So the capital of all bets is a
    martingale that begins with 1, and ever reaches 1e9 with a probability of at most 1e-9 (Ville).
    """

    def __init__(self) -> None:
        """Begin before the first ticket."""
        self.logs: dict[int, list[float]] = {}  # of each policy, for each tilt

    def fell(self, drawn: list[int], shares: list[int]) -> None:
        """Take in the tickets of one plan, whose shares these are."""
        times = Counter(drawn)
        for p, share in enumerate(shares):
            if drawn and 0 < share < GRID:
                logs = self.logs.setdefault(p, [0.0] * len(TILTS))
                for j, tilt in enumerate(TILTS):
                    log_z = math.log1p(share / GRID * math.expm1(tilt))
                    logs[j] += tilt * times[p] - log_z * len(drawn)

    def log_capital(self) -> float:
        """Return the logarithm of what the bets are worth. Those that were not made yet are left
        out.
        """
        found = [
            x - math.log((p + 1) * (p + 2) * len(TILTS))
            for p, logs in self.logs.items()
            for x in logs
        ]
        most = max(found, default=0.0)
        return most + math.log(math.fsum(math.exp(x - most) for x in found) or 1.0)


class Tickets:
    """Every ticket in dispatch order: whose it is, and its return."""

    def __init__(self, head: Head) -> None:
        """Begin with what was logged of the baseline."""
        self.head = head
        self.policy: list[int] = []
        self.coin = Coin()
        # the node below a return, what counts for the next; None: open
        self.code: list[tuple[int, int] | None] = []
        self.mine: list[list[int]] = [[]]  # the tickets of each policy
        self.withdrawn: dict[int, int] = {}
        self.names = {"baseline"}
        self.alarm = ""
        self.proved: dict[int, tuple[Fraction, int]] = {}  # the last comparison of each candidate

    def add(self, record: dict[str, Any], shares: list[int] | None) -> None:
        """Take in what happened since the plan before, whose shares of the coin these are."""
        n = len(self.policy)
        drawn = record["drawn"]
        require(not drawn or shares is not None, "tickets were drawn before there was a plan")
        for p in drawn:
            require(
                whole(p) < len(shares or []) and (shares or [])[p] > 0,
                "a ticket of a policy that has no share",
            )
            self.mine[p].append(len(self.policy))
            self.policy.append(p)
            self.code.append(None)
        self.coin.fell(drawn, shares or [])
        fell_so = self.coin.log_capital() < IMPOSSIBLE
        require(fell_so, "policies were drawn that the shares do not draw")
        for p, at in record["withdrawn"]:
            require(
                0 < whole(p) < len(self.mine) + len(record["admitted"]),
                "a policy is withdrawn that is not there",
            )
            require(
                p not in self.withdrawn and n <= whole(at) <= len(self.policy),
                "a policy is withdrawn again, or late",
            )
            late = p < len(self.mine) and any(i >= at for i in self.mine[p])
            require(not late, "a ticket of a policy that is withdrawn")
            self.withdrawn[p] = at
        for name, fingerprint, at in record["admitted"]:
            texts = type(name) is str and type(fingerprint) is str
            require(texts and name not in self.names, "a name that is no text, or is used again")
            require(n <= whole(at) <= len(self.policy), "an admission at another time")
            self.names.add(name)
            self.mine.append([])
        require(len(self.mine) <= 1 + MOST_CANDIDATES, "more candidates than a guard has")
        for i, ret in record["settled"]:
            known = whole(i) < len(self.policy) and self.code[i] is None
            require(known, "a ticket is settled that is unknown, or again")
            self.code[i] = self.spread(number(ret))
        require(type(record["alarm"]) is str, "an alarm that is no text")
        require(self.alarm in ("", record["alarm"]), "an alarm is taken back, or is another one")
        require(not self.alarm or not any(drawn), "a candidate played after an alarm")
        self.alarm = record["alarm"]

    def spread(self, ret: float) -> tuple[int, int]:
        """Return the node below a return, and how much of an episode counts for the next one."""
        low, high = Fraction(self.head.low), Fraction(self.head.high)
        require(low <= Fraction(ret) <= high, "a return outside its range")
        place = math.floor((Fraction(ret) - low) * FINE / (high - low))
        k = min(bisect_right(NODES, place) - 1, INTERVALS - 1)
        return k, (place - NODES[k]) * EPISODE // (NODES[k + 1] - NODES[k])

    def first(self, p: int, size: int) -> list[int]:
        """Return the first tickets of a policy: of `size` ones, logged returns first, which all
        count.
        """
        logged = sum(self.head.logged) // EPISODE if p == 0 else 0
        require(
            logged <= size <= logged + len(self.mine[p]), "a bound by more tickets than there are"
        )
        return self.mine[p][: size - logged]

    def until(self, p: int, size: int) -> list[int]:
        """Return the tickets of a policy among the first of all policies."""
        require(size <= len(self.policy), "a comparison by more tickets than there are")
        return self.mine[p][: bisect_left(self.mine[p], size)]

    def counted(self, p: int, numbers: list[int], worst: int) -> list[int]:
        """Return how these tickets of a policy are spread over the nodes, open ones counted at the
        worst node.

        Logged returns of the baseline are among them.
        """
        weights = list(self.head.logged) if p == 0 else [0] * len(NODES)
        weights[worst] += self.head.missing * EPISODE if p == 0 else 0
        for i in numbers:
            k, above = self.code[i] or (worst, 0)
            weights[k] += EPISODE - above
            if above:
                weights[k + 1] += above
        return weights


# ---- 4. Bounds


def log_capital(weights: list[int], m: float) -> float:
    """Return at most log W(m), W(m) = sum_j weight_j prod_k (1 - theta_j + theta_j x_k / m)^n_k."""
    seen = [
        (weight / EPISODE, node / FINE)
        for weight, node in zip(weights, NODES, strict=True)
        if weight
    ]
    found = []
    for theta, share in zip(STAKES, WEIGHTS, strict=True):
        factors = [(n, 1.0 - theta + theta * x / m) for n, x in seen]
        if all(factor > 0.0 for _, factor in factors):
            terms = [n * math.log(factor) for n, factor in factors]
            # A factor is right to about 2^-51 of itself, or of 1 + theta x/m where theta is nearly
            # 1.
            size = math.fsum(abs(term) + n for term, (n, _) in zip(terms, factors, strict=True))
            found.append(math.log(share) + math.fsum(terms) - HAIR * size)
    most = max(found, default=-math.inf)
    if most == -math.inf:
        return most
    return most + math.log(math.fsum(math.exp(x - most) for x in found)) - HAIR * (1.0 + abs(most))


def check_bound(head: Head, tickets: Tickets, p: int, claim: list[Any]) -> Fraction:
    """Return the lower bound that a plan claims of policy p, if its tickets prove it."""
    value, size = claimed(claim)
    low, high = Fraction(head.low), Fraction(head.high)
    if value == low:
        return value
    require(low < value < high, "a bound outside the range of returns")
    m = above((value - low) / (high - low))
    require(m < 1.0, "a bound outside the range of returns")
    proved = log_capital(tickets.counted(p, tickets.first(p, size), 0), m)
    enough = -math.log(head.level(p)) * (1 + 2.0**-50)
    require(proved >= enough, f"the bound of policy {p} is not proved by its tickets")
    return value


def claimed(claim: list[Any]) -> tuple[Fraction, int]:
    """Return the value of a bound or of a comparison, and by how many tickets it is proved."""
    value, size = claim
    return Fraction(number(value)), whole(size)


def check_comparison(head: Head, tickets: Tickets, p: int, claim: list[Any]) -> Fraction:
    """Return what candidate p is worth at least, compared with the baseline, if the tickets of
    both prove it.
    """
    value, size = claimed(claim)
    require(value >= 0 or not head.ratio, "a share of the baseline's value that is below 0")
    if tickets.proved.get(p, (Fraction(0), -1)) == (value, size):
        # what prefixes prove is proved for good: returns that came since only add to it
        return value
    c = tickets.counted(p, tickets.until(p, size), 0)
    b = tickets.counted(0, tickets.until(0, size), len(NODES) - 1)
    proved = comparison_proves(head, b, c, value, head.level(p))
    require(proved, f"the comparison of policy {p} is not proved by its tickets")
    tickets.proved[p] = (value, size)
    return value


def comparison_proves(
    head: Head, b: list[int], c: list[int], value: Fraction, level: float
) -> bool:
    """Return whether returns of the baseline and of a candidate, spread so, prove this value at
    this level.

    It is proved interval by interval, and an interval that is too long is halved. A claim that is
    true by less and less would need more and more of them, so their number is limited.
    """
    low, high = Fraction(head.low), Fraction(head.high)
    enough = -math.log(level) * (1 + 2.0**-50)
    intervals = [(0.0, 1.0)]
    for _ in range(MOST_INTERVALS):
        left, right = intervals.pop()
        # Counted returns of the baseline are too low by up to LOST; rounded up, the claim is the
        # stricter.
        V_b = min(low + (high - low) * (Fraction(right) + LOST), high)
        V_c = value * V_b if head.ratio else V_b + value
        mean = (V_c - low) / (high - low)
        found = log_bracket(b[::-1], math.nextafter(1.0 - left, 1.0), UNSTAKED[0])
        found += log_bracket(c, above(mean), UNSTAKED[1]) if mean > 0 else math.inf
        if not found >= enough:
            middle = (left + right) / 2
            intervals += [(left, middle), (middle, right)]
        if not intervals:
            return True
    return False


def above(value: Fraction) -> float:
    """Return a float that is not below this."""
    near = float(value)
    return math.nextafter(near, math.inf) if Fraction(near) < value else near


def log_bracket(weights: list[int], m: float, unstaked: float) -> float:
    """Return at most log(unstaked + (1 - unstaked) W(m)). No mean is above 1."""
    won = log_capital(weights, min(m, 1.0)) if m > 0.0 else -math.inf
    most = max(won, 0.0)
    return (
        most
        + math.log(unstaked * math.exp(-most) + (1.0 - unstaked) * math.exp(won - most))
        - HAIR * (1.0 + most)
    )


# ---- 5. A plan's claims


def check_plan(head: Head, tickets: Tickets, record: dict[str, Any]) -> str:
    """Check how a plan shares out the coin; return "certified" or "trusted"."""
    shares, claims = [whole(share, GRID) for share in record["shares"]], record["bounds"]
    P = len(tickets.mine)
    require(len(shares) == P and sum(shares) == GRID, "shares that do not add up to the coin")
    require(len(claims) == P - head.relative, "bounds of other policies")
    if head.relative:
        compared = [check_comparison(head, tickets, p, claim) for p, claim in enumerate(claims, 1)]
        values = [Fraction(1 if head.ratio else 0), *compared]
    else:
        values = [check_bound(head, tickets, p, claim) for p, claim in enumerate(claims)]
    gone = any(share and p in tickets.withdrawn for p, share in enumerate(shares))
    require(not gone, "a withdrawn policy has a share")
    require(not tickets.alarm or shares[0] == GRID, "a candidate has a share after an alarm")
    level = head.floor_of(values[0])
    worth = sum(
        (Fraction(share, GRID) * value for share, value in zip(shares, values, strict=True)),
        Fraction(0),
    )
    above = [p for p in range(1, P) if values[p] >= level]
    for p, share in enumerate(shares[1:], 1):
        rounded = [int(stage * GRID) for stage in head.stages]
        fits = not share or not rounded or share < rounded[0] or share in rounded
        require(fits or (p in above and share == max(shares)), "a share that is no stage")
    if record["safety"] == "certified":
        require(worth >= level, "what is played is not proved to keep the floor")
        require(not tickets.alarm, "certified, though an alarm was raised")
        return "certified"
    require(
        record["safety"] == "trusted" and (tickets.alarm or not head.relative),
        "a label that no plan has",
    )
    proved = all(p in above for p, share in enumerate(shares) if share and p)
    require(proved, "trusted, but a candidate has a share that is not proved to be above the floor")
    return "trusted"


# ---- 6. The summary


class Check:
    """What is known of a ledger, record after record."""

    def __init__(self) -> None:
        """Begin before the first record."""
        self.digest, self.closed = "0" * 64, False
        self.found = {"certified": 0, "trusted": 0}
        self.tickets: Tickets | None = None
        self.shares: list[int] | None = None  # of the plan in force
        self.off_baseline = 0  # plans in which a candidate has a share

    def add(self, line: bytes) -> None:
        """Check one more record."""
        require(not self.closed, "a record after the last one")
        record = read_record(line, self.digest)
        if self.tickets is None:
            self.tickets = Tickets(Head(record))
        else:
            require(record["kind"] in ("plan", "end"), "a second first record")
            self.closed = record["kind"] == "end"
            plans = whole(record["plans" if self.closed else "number"])
            require(plans == sum(self.found.values()), "a plan is missing")
            self.tickets.add(record, self.shares)
            if not self.closed:
                self.found[check_plan(self.tickets.head, self.tickets, record)] += 1
                self.shares = record["shares"]
                self.off_baseline += self.shares[0] != GRID
        self.digest = record["digest"]


def verify(lines: Iterable[bytes]) -> Any:
    """Check every record up to the first that is refused, because what follows rests on it;
    return the verdict.
    """
    check, refusals, at = Check(), [], -1
    for at, line in enumerate(lines):
        try:
            check.add(line)
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            OverflowError,
            RecursionError,
        ) as reason:
            refusals.append((at, str(reason)))
            break
    if check.tickets is None and not refusals:
        refusals.append((0, "the file is empty"))
    promise, episodes = "no guard", 0
    if check.tickets is not None:
        head, episodes = check.tickets.head, len(check.tickets.policy)
        promise = f"A guard: certified at delta = {at_most(Fraction(head.delta))} for every "
        promise += "episode's coin-averaged value\n"
        promise += f"Declared: {head.told()}"
    plans = sum(check.found.values())
    return Verdict(
        plans,
        check.found["certified"],
        check.found["trusted"],
        episodes,
        check.closed,
        check.digest,
        promise,
        tuple(refusals),
        check.off_baseline,
        "" if check.tickets is None else check.tickets.alarm,
    )


def summary(verdict: Any) -> str:
    """Return the verdict in five lines, and one more for each of two things that nobody should
    overlook.
    """
    result = "ACCEPTED" if verdict.closed else "ACCEPTED so far"
    if verdict.refusals:
        record, why = verdict.refusals[0]
        result = f"REFUSED: record {record}: {shown(why)}"
    end = "closed" if verdict.closed else "open: still being written, or cut off"
    plans = (
        f"{verdict.plans} plans over {verdict.episodes} episodes: {verdict.certified} certified, "
    )
    plans += f"{verdict.trusted} trusted"
    if verdict.plans and not verdict.off_baseline:
        plans += (
            f"\n{'Every' if verdict.certified else 'Nothing was certified: every'} plan is "
            "the baseline"
        )
    if verdict.alarm:
        plans += "\nThe guard is frozen, and plays its baseline"
        # of a file that is refused no word is passed on
        plans += "" if verdict.refusals else f": {shown(verdict.alarm)}"
    return f"{verdict.promise}\n{plans}\n{end}, last digest {verdict.digest}\n{result}\n"


def main(argv: list[str]) -> int:
    """Print the verdict. Return 0 if every plan holds, 3 if not, 2 if no file can be read."""
    if len(argv) != 1:
        sys.stderr.write("usage: python guard_verifier.py FILE\n")
        return 2
    try:
        with Path(argv[0]).open("rb") as stream:
            verdict = verify(iter(lambda: stream.readline(LONGEST + 1), b""))
    except OSError as reason:
        place = shown(argv[0], 1000)
        sys.stderr.write(
            f"{place} cannot be read: {reason.strerror}. Expected a ledger of plans.\n"
        )
        return 2
    sys.stdout.write(summary(verdict))
    return 3 if verdict.refusals else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
