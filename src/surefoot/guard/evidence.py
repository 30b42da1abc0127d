"""What the returns of a policy prove, when some of them are late or never come.

Take any prefix of a policy's tickets in dispatch order, and count a ticket without a return as the LOWEST return for a
lower bound, as the HIGHEST for an upper one. The capital W (bounds/portfolio.py) of what is counted is at most that of
the true returns, and Ville's inequality holds for all prefixes at once: so the best prefix counts, however it is found.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Ints
from surefoot.base.nodes import EPISODE, FINE, LOST, NODES, OUTSIDE, PLACES, spread
from surefoot.bounds import portfolio
from surefoot.guard.state import GuardState
from surefoot.numerics import kernels

STEP = 2 * EPISODE  # a code is the node below a return times this, plus what counts for the node above


def code_of(ret: float, low: float, high: float) -> int:
    """Return the code of a return within its range: rounded down, by less than LOST of the range."""
    place = math.floor((Fraction(ret) - Fraction(low)) * FINE / (Fraction(high) - Fraction(low)))
    node, above = spread(place, 0, FINE)
    assert node != OUTSIDE
    return node * STEP + above


def weights_of(codes: Sequence[int]) -> Ints:
    """Return how returns with these codes are spread over the nodes."""
    weights = np.zeros(PLACES, dtype=np.int64)
    for code in codes:
        node, above = divmod(code, STEP)
        weights[node] += EPISODE - above
        weights[node + 1] += above
    return weights


class Bound(NamedTuple):
    """A bound of a policy's value, in the user's units, and how many of its tickets (logged ones first) prove it."""

    value: float
    tickets: int


def log_inverse(level: float) -> float:
    """Return log(1/level), rounded up."""
    return math.nextafter(-math.log(level), math.inf) * (1.0 + 2.0**-50)


def lower_bound(state: GuardState, p: int, level: float, low: float, high: float) -> Bound:
    """Return a lower bound of the value of policy p that fails with probability at most `level`, ever."""
    found, tickets = _best_prefix(state, p, 1, level)
    return Bound(rounded(Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(found), -math.inf), tickets)


def upper_bound(state: GuardState, p: int, level: float, low: float, high: float) -> Bound:
    """Return an upper bound of the value of policy p that fails with probability at most `level`, ever."""
    found, tickets = _best_prefix(state, p, -1, level)
    below = max(Fraction(found) - Fraction(LOST), Fraction(0))
    return Bound(rounded(Fraction(high) - (Fraction(high) - Fraction(low)) * below, math.inf), tickets)


def rounded(value: Fraction, towards: float) -> float:
    """Return a fraction as a float that is not above it (towards -inf), or not below it (towards inf)."""
    near = float(value)
    wrong = Fraction(near) > value if towards < 0 else Fraction(near) < value
    return math.nextafter(near, towards) if wrong else near


def _best_prefix(state: GuardState, p: int, sign: int, level: float) -> tuple[float, int]:
    tickets = state.tickets.columns() if state.policies[p].unheard else None
    none = np.zeros(0, dtype=np.int64)
    known = kernels.Tickets(
        none if tickets is None else tickets.policy,
        none if tickets is None else tickets.code,
        np.array([policy.settled for policy in state.policies]),
        *(np.array([getattr(policy, name) for policy in state.policies]) for name in ("heard", "unheard", "missing")),
    )
    weights, size = np.zeros(PLACES, dtype=np.int64), np.zeros(1, dtype=np.int64)
    found = kernels.best_prefix(
        kernels.portfolio_from(), known, len(known.policy), p, sign, log_inverse(level), weights, size
    )
    return float(found), int(size[0])


# ---- the readable version


def prefixes(codes: Sequence[int | None]) -> Iterator[int]:
    """Yield how long the prefixes are that are tried: all tickets, then those before an open ticket, from the end.

    Of 64 open tickets or more, not every one ends a prefix that is tried: a prefix with a few more of them than the
    best is nearly as good, and 10^6 of them need only some hundred prefixes.
    """
    yield len(codes)
    open_tickets = [i for i, code in enumerate(codes) if code is None]
    dropped, left = 1, len(open_tickets) - 1
    while left > 0:
        yield open_tickets[left]
        step = max(1, min(dropped, left) // 16)
        dropped, left = dropped + step, left - step
    if open_tickets:
        yield open_tickets[0]


def best_prefix(before: Ints, missing: int, codes: Sequence[int | None], sign: int, level: float) -> float:
    """Return the best bound of a policy's mean (sign 1), or of one minus it (-1), rescaled; None: no return came.

    `before` are logged returns, spread over the nodes; `missing` is how many a log lacks.
    """
    worst = 0 if sign > 0 else len(NODES) - 1
    found = 0.0
    for n in prefixes(codes):
        weights = before + weights_of([code for code in codes[:n] if code is not None])
        weights[worst] += (missing + sum(code is None for code in codes[:n])) * EPISODE
        shown = weights[: len(NODES)]
        found = max(found, portfolio.mean_lower(shown if sign > 0 else shown[::-1], log_inverse(level)))
    return found
