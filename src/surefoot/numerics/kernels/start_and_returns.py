"""What is known beside the dynamics: where episodes start, and bounds of the baseline's value from its own returns."""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.numerics.kernels.jit import compiled
from surefoot.numerics.kernels.kl import coin_bounds, mixture_radius, worst_mean

ONE, KNOWN, UNKNOWN = 0, 1, 2


class Start(NamedTuple):
    """The distribution of the first state: one state, known weights, or a ball around the frequencies seen."""

    kind: int
    first: int  # the one state
    weights: Floats  # (S,) known, or the frequencies seen
    n: Ints  # (S,) how often each state was the first
    states: Ints  # (S,) all of them
    eps: Floats  # (1,)
    log_union: float
    alpha: float
    scale: float
    margin: float
    final: float  # taken off a lower value at the very end, where no backup has taken off a margin of its own

    @property
    def one(self) -> bool:
        """Is there just one first state?"""
        return self.kind == ONE


class BaselineReturns(NamedTuple):
    """Returns of whole baseline episodes, and the range they lie in: tosses of a coin, whole or fractional."""

    seen: Ints  # (2,) episodes, and the sum of their returns in units of 2^-20
    lowest: float  # no episode of the baseline can return less, or more than lowest + span
    span: float
    rounding: float  # how much a return may have lost because rewards are rounded down
    log_union: float  # infinite: returns are not used as evidence
    scale: float
    margin: float
    asserted: float  # the least value of the baseline that the user asserts; -inf: none
    scratch: Floats  # (4,)


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
        start.n, start.states, S, n, start.alpha, start.log_union, start.weights
    )


@compiled
def start_bound(start: Start, V: Floats, sign: float) -> float:
    """A lower bound of the start's mean of sign V: the value there, the average, or the worst mean over the ball."""
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
    """Lower and upper bound of the baseline's value from its returns, for any number of episodes at once."""
    n = float(returns.seen[0])
    if n == 0.0 or not returns.log_union < math.inf:
        return -math.inf, math.inf
    if returns.span <= 0.0:
        return returns.lowest, returns.lowest + returns.rounding
    x = (returns.seen[1] / REWARD_UNITS - n * returns.lowest) / returns.span
    p, V = returns.scratch[:2], returns.scratch[2:]
    low, up = coin_bounds(n, x, returns.log_union, returns.scale, returns.margin, p, V)
    low = returns.lowest + returns.span * low
    up = returns.lowest + returns.span * up + returns.rounding
    return low - returns.margin * (low > 0.0), up + returns.margin


def start_from(
    weights: Floats | None, n: Ints, log_union: float, alpha: float, scale: float, margin: float, final: float
) -> Start:
    """Where episodes start. Without weights the distribution is unknown, and n, whose memory it shares, counts the
    first states seen."""
    known = weights is not None
    one = weights is not None and int(np.count_nonzero(weights)) == 1
    own = np.zeros(len(n)) if weights is None else np.array(weights)
    kind = ONE if one else KNOWN if known else UNKNOWN
    states, eps = np.arange(len(n)), np.full(1, np.inf)
    return Start(kind, int(own.argmax()), own, n, states, eps, log_union, alpha, scale, margin, final)
