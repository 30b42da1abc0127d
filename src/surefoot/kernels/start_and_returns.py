"""What is known beside the dynamics: where episodes start, and bounds of the baseline's value
from its own returns.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.nodes import LOST, OUTSIDE
from surefoot.base.validation import REWARD_UNITS
from surefoot.kernels.jit import compiled
from surefoot.kernels.kl import mixture_radius, worst_mean
from surefoot.kernels.portfolio import Portfolio, SeenReturns, mean_lower

ONE, KNOWN, UNKNOWN = 0, 1, 2


class Start(NamedTuple):
    """The distribution of the first state: one state, known weights, or a ball around the
    frequencies seen.
    """

    kind: int
    first: int  # the one state
    weights: Floats  # (S,) known, or the frequencies seen
    n: Ints  # (S,) how often each state was the first
    eps: Floats  # (1,)
    log_union: float
    full_support: bool  # as in `Balls`
    scale: float
    margin: float
    # taken off a lower value at the very end, where no backup has taken off a margin of its own
    final: float

    @property
    def one(self) -> bool:
        """Is there just one first state?"""
        return self.kind == ONE


class BaselineReturns(NamedTuple):
    """Returns of whole baseline episodes, and the range they lie in."""

    seen: SeenReturns
    portfolio: Portfolio
    rounding: float  # how much a return may have lost because rewards are rounded down
    upper: bool  # is an upper bound of the baseline's value needed, and not a lower one?
    log_inverse: float  # log(1 / the share of delta), times the scale
    margin: float
    before: float  # what a certificate proves that the baseline is worth at least; -inf: none


@compiled
def refresh_start(start: Start) -> None:
    """Bring the frequencies and the radius of an unknown start up to date."""
    if start.kind != UNKNOWN:
        return
    S = start.n.shape[0]
    n = 0
    for s in range(S):
        n += start.n[s]
    if n == 0:
        start.eps[0] = math.inf
        return
    start.eps[0] = start.scale * mixture_radius(
        start.n, S, n, start.full_support, start.log_union, start.weights
    )


@compiled
def start_bound(start: Start, V: Floats, sign: float) -> float:
    """A lower bound of the start's mean of sign V: the value there, the average, or the worst
    mean over the ball.
    """
    if start.kind == ONE:
        return float(sign * V[start.first])
    S = V.shape[0]
    if start.kind == UNKNOWN:
        return worst_mean(start.weights, V, S, sign, start.eps[0], start.margin)
    total, least = 0.0, math.inf
    for s in range(S):
        if start.weights[s] > 0.0:
            total += start.weights[s] * sign * V[s]
            least = min(least, sign * V[s])
    return max(total - start.margin, least)


@compiled
def returns_bounds(returns: BaselineReturns) -> tuple[float, float]:
    """A lower or an upper bound of the baseline's value from its returns, for any number of
    episodes at once.
    """
    weights, any_seen = returns.seen.weights, False
    for k in range(weights.shape[0] - 1):
        any_seen |= weights[k] > 0
    if not any_seen or weights[OUTSIDE] > 0:  # a return outside its range: the premise is false
        return -math.inf, math.inf
    lowest, span = returns.seen.low / REWARD_UNITS, returns.seen.width / REWARD_UNITS
    if returns.upper:
        mean = 1.0 - mean_lower(returns.portfolio, weights, -1, returns.log_inverse)
        return -math.inf, lowest + span * (mean + LOST) + returns.rounding + returns.margin
    low = lowest + span * mean_lower(returns.portfolio, weights, 1, returns.log_inverse)
    return low - returns.margin * (low > lowest), math.inf


def start_from(
    weights: Floats | None,
    n: Ints,
    log_union: float,
    full_support: bool,
    scale: float,
    margin: float,
    final: float,
) -> Start:
    """Where episodes start. Without weights the distribution is unknown, and n, whose memory it
    shares, counts the first states seen.
    """
    known = weights is not None
    one = weights is not None and int(np.count_nonzero(weights)) == 1
    own = np.zeros(len(n)) if weights is None else np.array(weights)
    kind = ONE if one else KNOWN if known else UNKNOWN
    eps = np.full(1, np.inf)
    return Start(
        kind, int(own.argmax()), own, n, eps, log_union, full_support, scale, margin, final
    )
