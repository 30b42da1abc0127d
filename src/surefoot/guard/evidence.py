"""What the returns of a policy prove, when some of them are late or never come.

Take any prefix of a policy's tickets in dispatch order, and count a ticket without a return as the
LOWEST return for a lower bound, as the HIGHEST for an upper one. The capital W of what is counted
(kernels/portfolio.py) is at most that of the true returns, and Ville's inequality holds for all
prefixes at once: so the best prefix counts, however it is found.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Ints
from surefoot.base.nodes import EPISODE, FINE, LOST, NODES, OUTSIDE, PLACES, spread
from surefoot.guard.state import OPEN, GuardState, Proved

# a code is the node below a return times this, plus what counts for the node above
STEP = 2 * EPISODE


@lru_cache(2**14)  # returns are often the same few
def code_of(ret: float, low: float, high: float) -> int:
    """Return the code of a return within its range: rounded down, by less than LOST of the
    range.
    """
    place = math.floor((Fraction(ret) - Fraction(low)) * FINE / (Fraction(high) - Fraction(low)))
    node, above = spread(place, 0, FINE)
    assert node != OUTSIDE
    return node * STEP + above


def weights_of(codes: Sequence[int] | Ints) -> Ints:
    """Return how returns with these codes are spread over the nodes."""
    weights = np.zeros(PLACES, dtype=np.int64)
    node, above = np.divmod(np.array(codes, dtype=np.int64), STEP)
    np.add.at(weights, node, EPISODE - above)
    np.add.at(weights, node + 1, above)
    return weights


def counted(state: GuardState, p: int, codes: Ints, worst: int) -> Ints:
    """Return what counts for policy p, by so many of its tickets and by what was logged before: a
    return that is not known is at the node `worst`.
    """
    known = codes[codes != OPEN]
    weights = weights_of(known)
    weights[worst] += (len(codes) - len(known) + state.policies[p].missing) * EPISODE
    if p == 0 and state.logged is not None:
        weights += state.logged.settled
    return weights


class Bound(NamedTuple):
    """A bound of a policy's value, in the user's units, and what proves it."""

    value: float
    proved: Proved


def log_inverse(level: float) -> float:
    """Return log(1/level), rounded up."""
    return math.nextafter(-math.log(level), math.inf) * (1.0 + 2.0**-50)


def lower_bound(state: GuardState, p: int, level: float, low: float, high: float) -> Bound:
    """Return a lower bound of the value of policy p that fails with probability at most `level`,
    ever.
    """
    found = _best_prefix(state, p, 1, level, state.policies[p].lower)
    return Bound(lower_value(found, low, high), found)


def upper_bound(state: GuardState, p: int, level: float, low: float, high: float) -> Bound:
    """Return an upper bound of the value of policy p that fails with probability at most
    `level`, ever.
    """
    found = _best_prefix(state, p, -1, level, state.policies[p].upper)
    return Bound(upper_value(found, low, high), found)


def lower_value(proved: Proved, low: float, high: float) -> float:
    """Return a lower bound in the user's units, not rounded up."""
    return rounded(
        Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(proved.value), -math.inf
    )


def upper_value(proved: Proved, low: float, high: float) -> float:
    """Return an upper bound in the user's units, not rounded down. Returns were counted by up to
    LOST too low.
    """
    below = max(Fraction(proved.value) - Fraction(LOST), Fraction(0))
    return rounded(Fraction(high) - (Fraction(high) - Fraction(low)) * below, math.inf)


def rounded(value: Fraction, towards: float) -> float:
    """Return a fraction as a float that is not above it (towards -inf), or not below it (towards
    inf).
    """
    near = float(value)
    wrong = Fraction(near) > value if towards < 0 else Fraction(near) < value
    return math.nextafter(near, towards) if wrong else near


def proves(state: GuardState, p: int, sign: int, level: float, proved: Proved) -> bool:
    """Do so many tickets of policy p prove this bound? With a hair for rounding errors."""
    policy, columns = state.policies[p], state.tickets.columns
    before = 0 if state.logged is None or p else state.logged.heard
    if (
        not 0.0 < proved.value < 1.0
        or not before <= proved.tickets <= policy.heard + policy.unheard
    ):
        return proved == Proved()
    codes = columns.code[columns.policy == p][: proved.tickets - before]
    weights = counted(state, p, codes, 0 if sign > 0 else len(NODES) - 1)
    found = kernels.mean_lower(kernels.portfolio_from(), weights, sign, log_inverse(level))
    return found >= proved.value - 1e-9


def _best_prefix(state: GuardState, p: int, sign: int, level: float, before: Proved) -> Proved:
    policy = state.policies[p]
    columns = state.columns_if(policy.unheard > 0)
    known = kernels.Tickets(
        np.where(columns.policy == p, 0, 1),
        columns.code,
        policy.settled[None],
        *(np.array([count]) for count in (policy.heard, policy.unheard, policy.missing)),
    )
    weights, size = np.zeros(PLACES, dtype=np.int64), np.array([before.tickets])
    n, inverse = len(columns.code), log_inverse(level)
    found = kernels.best_prefix(
        kernels.portfolio_from(), known, n, 0, sign, inverse, before.value, weights, size
    )
    return Proved(float(found), int(size[0]))
