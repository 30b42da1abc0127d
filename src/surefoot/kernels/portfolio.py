"""The portfolio bound of the mean of returns, which are kept spread over nodes.

Returns x in [0, 1] are drawn under one policy, fixed before they are seen, and have mean mu. For a
hypothesis mu <= m and a stake theta in [0, 1] fixed beforehand, the factor 1 - theta + theta x / m
is not negative and has mean at most 1. So its product over the returns is a supermartingale, and so
is an average over stakes that are fixed beforehand:

    W(m) = sum_j weight_j prod_x (1 - theta_j + theta_j x / m).

By Ville's inequality W(mu) stays below 1/delta_0 for any number of returns at once, with
probability 1 - delta_0. W falls in m, so every m with W(m) >= 1/delta_0 is a lower bound of mu. An
upper bound is that of 1 - x, on an event of its own: each side that a plan uses has a share of
delta of its own.

What is kept of the returns is how they are spread over nodes (base/nodes.py). The logarithm of a
factor is concave in x, so a return between two nodes is worth at least what its parts at the nodes
are: W of what is kept is at most W.

The logarithms of all factors at fixed means are kept in a table, so a bound takes sums of products,
and no logarithm.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.nodes import EPISODE, FINE, NODES, OUTSIDE, STAKES, WEIGHTS
from surefoot.kernels.jit import compiled

MEANS = 256  # the fixed means are sin^2(pi i / 512), i = 1..255
NOTHING = -(2.0**60)  # stands for log 0: any number that is low enough
# of everything summed: more than the rounding errors of logarithms, exponentials and sums
SLACK = 2.0**-45
STEPS = 12  # of Newton's method: it stops much earlier


class SeenReturns(NamedTuple):
    """Returns of whole baseline episodes: their number, their sum, and how they are spread over
    the nodes.
    """

    total: Ints  # (2,) episodes, and the sum of their returns, in units of 2^-20
    weights: Ints  # (PLACES,); of size 0 where returns are not spread
    nodes: Ints  # (K,)
    low: int  # the least return, in units of 2^-20
    width: int  # from the least return to the largest


class Portfolio(NamedTuple):
    """The stakes' logarithms of factors, and scratch arrays."""

    inverse: Floats  # (M,) one over each fixed mean, descending
    logs: Floats  # (M, K, J): log(1 - theta_j + theta_j x_k / m_i), rounded down
    log_weights: Floats  # (J,)
    scratch: Floats  # (3, J)


@compiled
def count_return(seen: SeenReturns, paid: Ints) -> None:
    """Count the return of one episode, the sum of what was paid, as `spread` does."""
    x, nodes, weights = 0, seen.nodes, seen.weights
    for h in range(paid.shape[0]):
        x += paid[h]
    seen.total[0] += 1
    seen.total[1] += x
    if weights.shape[0] == 0:
        return
    if x < seen.low or x > seen.low + seen.width:
        weights[OUTSIDE] += 1
        return
    place = (x - seen.low) * FINE // seen.width if seen.width > 0 else 0
    k, after = 0, nodes.shape[0] - 1
    while after - k > 1:
        middle = (k + after) // 2
        if nodes[middle] <= place:
            k = middle
        else:
            after = middle
    above = (place - nodes[k]) * EPISODE // (nodes[k + 1] - nodes[k])
    weights[k] += EPISODE - above
    weights[k + 1] += above


@compiled
def log_capitals(portfolio: Portfolio, weights: Ints, sign: int, i: int, out: Floats) -> None:
    """Write sum_k n_k log(1 - theta_j + theta_j x_k / m_i) of each stake into `out`, rounded down.

    With sign -1 the returns are 1 - x: the weights in reverse order.
    """
    logs, size = portfolio.logs[i], portfolio.scratch[2]
    K, J = logs.shape
    for j in range(J):
        out[j], size[j] = 0.0, 0.0
    for k in range(K):
        weight = weights[k if sign > 0 else K - 1 - k]
        if weight > 0:
            n = weight / EPISODE
            for j in range(J):
                out[j] += n * logs[k, j]
                size[j] += n * abs(logs[k, j])
    for j in range(J):
        out[j] -= SLACK * size[j]


@compiled
def log_mean(portfolio: Portfolio, first: Floats, last: Floats, t: float) -> float:
    """log sum_j weight_j exp((1-t) first_j + t last_j), rounded down."""
    log_weights, most, total = portfolio.log_weights, -math.inf, 0.0
    for j in range(log_weights.shape[0]):
        most = max(most, log_weights[j] + first[j] + t * (last[j] - first[j]))
    for j in range(log_weights.shape[0]):
        total += math.exp(log_weights[j] + first[j] + t * (last[j] - first[j]) - most)
    found = most + math.log(total)
    return found - SLACK * (1.0 + abs(found))


@compiled
def reaches(
    portfolio: Portfolio, first: Floats, last: Floats, t: float, log_inverse: float
) -> bool:
    """Is `log_mean` at least log_inverse? Far from it, no exponential is needed.

    The weights add up to 1: the mean is at most the largest capital, and at least its largest part.
    """
    log_weights, most, largest = portfolio.log_weights, -math.inf, -math.inf
    for j in range(log_weights.shape[0]):
        most = max(most, log_weights[j] + first[j] + t * (last[j] - first[j]))
        largest = max(largest, first[j] + t * (last[j] - first[j]))
    if largest < log_inverse:
        return False
    if most - SLACK * (1.0 + abs(most)) >= log_inverse:
        return True
    return log_mean(portfolio, first, last, t) >= log_inverse


@compiled
def mean_lower(portfolio: Portfolio, weights: Ints, sign: int, log_inverse: float) -> float:
    """The largest mean m that is found with W(m) >= exp(log_inverse); 0 where there is none.

    W falls in m: bisection over the fixed means. Between two of them each stake's sum is concave in
    1/m, so it is at least on the straight line between its ends; the mean of exponentials of lines
    is convex, and Newton's method from its left end stays on the safe side.
    """
    first, last, inverse = portfolio.scratch[0], portfolio.scratch[1], portfolio.inverse
    below, above = -1, inverse.shape[0]
    while above - below > 1:
        middle = (below + above) // 2
        log_capitals(portfolio, weights, sign, middle, first)
        if reaches(portfolio, first, first, 0.0, log_inverse):
            below = middle
        else:
            above = middle
    if below < 0:
        return 0.0
    if above == inverse.shape[0]:
        return float((1.0 - SLACK) / inverse[below])
    log_capitals(portfolio, weights, sign, below, first)
    log_capitals(portfolio, weights, sign, above, last)
    t, excess = 0.0, log_mean(portfolio, first, last, 0.0) - log_inverse
    for _ in range(STEPS):
        slope, total = 0.0, 0.0
        for j in range(first.shape[0]):
            share = math.exp(
                portfolio.log_weights[j]
                + first[j]
                + t * (last[j] - first[j])
                - log_inverse
                - excess
            )
            slope += share * (last[j] - first[j])
            total += share
        if not slope < 0.0:
            break
        ahead = min(t - excess * total / slope, 1.0)
        if not ahead > t:
            break
        excess = log_mean(portfolio, first, last, ahead) - log_inverse
        if excess < 0.0:
            break
        near = ahead - t <= 1e-9
        t = ahead
        if near:
            break
    return float((1.0 - SLACK) / (inverse[below] + t * (inverse[above] - inverse[below])))


@functools.cache
def portfolio_tables() -> tuple[Floats, Floats, Floats]:
    """Return inverse means, logarithms of factors, and log weights: made once, and then only
    read.
    """
    x = np.array(NODES)[None, :, None] / FINE
    inverse = 1.0 / np.sin(np.pi * np.arange(1, MEANS) / (2 * MEANS)) ** 2
    theta = np.array(STAKES)
    factors = 1.0 - theta + theta * x * inverse[:, None, None]
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(factors), NOTHING)
    logs -= 2.0**-50 * (1.0 + np.abs(logs))
    tables = inverse, np.ascontiguousarray(logs), np.log(WEIGHTS)
    for table in tables:
        table.flags.writeable = False
    return tables


def portfolio_from() -> Portfolio:
    """Return the tables with scratch arrays of their own."""
    return Portfolio(*portfolio_tables(), np.zeros((3, len(STAKES))))


def seen_returns_from(total: Ints, weights: Ints, within: tuple[int, int] | None) -> SeenReturns:
    """Return what is counted of returns, whose memory it shares. `within`: least return and
    span; None: no weights.
    """
    low, width = (0, 0) if within is None else within
    return SeenReturns(
        total, weights[:0] if within is None else weights, np.array(NODES), low, width
    )
