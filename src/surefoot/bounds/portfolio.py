"""The portfolio bound of the mean of returns, written to be read.

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
"""

from bisect import bisect_left

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.nodes import EPISODE, FINE, NODES, STAKES, WEIGHTS

THETA = np.array(STAKES)[:, None]
X = np.array(NODES) / FINE  # the nodes
MEANS = 256
M = np.sin(np.pi * np.arange(1, MEANS) / (2 * MEANS)) ** 2  # the means at which W is computed


def log_capitals(n: Floats, m: float) -> Floats:
    """Return log prod_k (1 - theta_j + theta_j x_k / m)^n_k of each stake."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(1.0 - THETA + THETA * X / m)
        return np.asarray(np.where(n > 0.0, n * logs, 0.0).sum(axis=1))


def log_wealth(capitals: Floats) -> float:
    """Return log W = log sum_j weight_j exp(capitals_j)."""
    return float(np.logaddexp.reduce(np.log(WEIGHTS) + capitals))


def mean_lower(weights: Ints, log_inverse: float) -> float:
    """Return a lower bound of the mean of returns spread like this: m with W(m) >=
    exp(log_inverse), 0 if none is.

    The largest of the fixed means is found; from there to the next one, in u = 1/m, the capitals of
    each stake are at least on the straight line between their ends.
    """
    n = np.asarray(weights[: len(NODES)], dtype=np.float64) / EPISODE
    above = bisect_left(
        range(len(M)), True, key=lambda i: log_wealth(log_capitals(n, float(M[i]))) < log_inverse
    )
    if above == 0:
        return 0.0
    if above == len(M):
        return float(M[-1])
    left, right = (log_capitals(n, float(M[i])) for i in (above - 1, above))
    u, u_next = 1.0 / M[above - 1], 1.0 / M[above]
    # a stake of 1 may have lost everything
    left, right = (np.maximum(capitals, -1e300) for capitals in (left, right))
    low, high = 0.0, 1.0
    for _ in range(60):
        t = 0.5 * (low + high)
        line = left + t * (right - left)
        low, high = (t, high) if log_wealth(line) >= log_inverse else (low, t)
    return float(1.0 / (u + low * (u_next - u)))


def mean_upper(weights: Ints, log_inverse: float) -> float:
    """Return an upper bound of the mean: one minus the lower bound of 1 - x, whose weights are
    in reverse order.
    """
    return 1.0 - mean_lower(weights[: len(NODES)][::-1], log_inverse)
