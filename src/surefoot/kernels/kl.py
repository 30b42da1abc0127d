"""KL certificates: the worst and best mean of V over a ball around P_hat that holds P for all counts at once.

Both are one-dimensional problems; any point of the search gives a valid bound (weak duality), so stopping early is
looser, never wrong.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.arrays import Floats, Ints
from surefoot.kernels.jit import compiled

ITERATIONS = 30
CLOSE = 1e-5  # relative step in t at which to stop: the value is flat there, so its error is about the square of this
MARGIN = 1e-12  # per step and unit of H, taken off every lower value: more than all rounding errors of a backup
SLACK = 2.0**-49  # of everything summed, added to the radius: more than the rounding errors of lgamma and log


class Balls(NamedTuple):
    """The balls of all pairs. Rows: one per step, or one for all steps when counts are pooled."""

    n_sas: Ints  # (rows, S*A, S)
    n_sa: Ints  # (rows, S*A)
    P_hat: Floats  # (rows, S, S*A), pairs last
    eps: Floats  # (rows, S*A): KL(P_hat, P) <= eps; infinite where n = 0
    log_union: float  # log(1 / delta_0): fixed before the data
    alpha: float  # of the Dirichlet mixture: fixed before the data
    scale: float  # of the radius: 1.0 is proved; anything else is NOT CERTIFIED
    tie: float  # upper values closer than this tie; the first action wins


@compiled
def refresh_kl(balls: Balls, row: int, pair: int) -> None:
    """eps = (log(1/delta_0) + sum_i n_i log p_hat_i - log m(n_1..n_S)) / n, and P_hat, of one pair."""
    S = balls.n_sas.shape[2]
    n = balls.n_sa[row, pair]
    if n == 0:
        for s_next in range(S):
            balls.P_hat[row, s_next, pair] = 1.0 / S
        balls.eps[row, pair] = math.inf
        return
    alpha = balls.alpha
    log_m = math.lgamma(S * alpha) - math.lgamma(n + S * alpha)
    log_p = 0.0
    size = abs(log_m)
    for s_next in range(S):
        n_i = balls.n_sas[row, pair, s_next]
        balls.P_hat[row, s_next, pair] = n_i / n
        log_m += math.lgamma(n_i + alpha) - math.lgamma(alpha)
        if n_i > 0:
            log_p += n_i * math.log(n_i / n)
            size += abs(math.lgamma(n_i + alpha))
    balls.eps[row, pair] = balls.scale * (balls.log_union + log_p - log_m + SLACK * (size + abs(log_p))) / n


@compiled
def worst_mean(P_hat: Floats, pair: int, V: Floats, sign: float, eps: float) -> float:
    """min over the ball of sum_i p_i (sign V_i): min V + max over t > 0 of t expm1(-eps + sum p_hat_i log1p(d_i / t)).

    The maximiser solves u(t) + log(1 - w(t)) = 0 with u the exponent and w = sum p_hat_i d_i / (t + d_i), a decreasing
    function of t; Newton in log t inside a bracket. The limit t -> 0 matters when the worst state was never seen.
    """
    S = V.shape[0]
    low, high = sign * V[0], sign * V[0]
    for s in range(1, S):
        v = sign * V[s]
        low = v if v < low else low
        high = v if v > high else high
    span = high - low
    if not eps < math.inf or span <= 0.0:
        return float(low)
    mean, square, at_zero = 0.0, 0.0, -eps
    for s in range(S):
        p = P_hat[s, pair]
        if p > 0.0:
            d = sign * V[s] - low
            mean += p * d
            square += p * d * d
            at_zero += p * math.log(d) if d > 0.0 else -math.inf
    best = math.exp(at_zero)
    left, right = 0.0, span / math.expm1(eps)
    t = math.sqrt(max(square - mean * mean, 0.0) / (2.0 * eps))
    if not 0.0 < t < right:
        t = 0.5 * right
    for _ in range(ITERATIONS):
        u, kept, bend = -eps, 0.0, 0.0
        for s in range(S):
            p = P_hat[s, pair]
            if p > 0.0:
                d = sign * V[s] - low
                share = 1.0 / (t + d)
                u += p * math.log1p(d / t)
                kept += p * t * share
                bend += p * d * share * share
        value = t * math.expm1(u)
        best = value if value > best else best
        g = u + math.log(kept)
        if g > 0.0:
            left = t
        else:
            right = t
        slope = t * bend / kept - (1.0 - kept)
        new = t * math.exp(min(max(-g / slope, -4.0), 4.0)) if slope < 0.0 else 0.5 * (left + right)
        if not left < new < right:
            new = 0.5 * (left + right) if left > 0.0 else 0.1 * right
        if abs(new - t) <= CLOSE * t or new < 1e-14 * span:
            break
        t = new
    return float(low + best)


@compiled
def q_kl(
    balls: Balls, row: int, r: Floats, lo: int, hi: int, H: int, V_up: Floats, V_low: Floats, scratch: Floats, slot: int
) -> None:
    """Q_up = r + max over the ball of p V_up, Q_low = r + min over the ball of p V_low, into scratch[0] and scratch[1].

    The margin is taken off before clipping at what holds without data, r + min V_low, so that a floor of 0 is still
    certified. An empty V_up stands for V_{H+1} = 0. Nobody reads the upper values of other slots than 0: they are 0.
    """
    Q_up, Q_low = scratch[0], scratch[1]
    S = V_up.shape[0]
    if S == 0:
        for i in range(hi - lo):
            Q_up[i] = r[lo + i]
            Q_low[i] = r[lo + i]
        return
    floor, ceiling = V_low[0], V_up[0]
    for s in range(1, S):
        floor = min(floor, V_low[s])
        ceiling = max(ceiling, V_up[s])
    margin = MARGIN * H
    for i in range(hi - lo):
        eps = balls.eps[row, lo + i]
        Q_up[i] = 0.0
        if slot == 0:
            best = -worst_mean(balls.P_hat[row], lo + i, V_up, -1.0, eps) + margin
            Q_up[i] = r[lo + i] + (best if best < ceiling else ceiling)
        worst = worst_mean(balls.P_hat[row], lo + i, V_low, 1.0, eps) - margin
        Q_low[i] = r[lo + i] + (worst if worst > floor else floor)


def balls_from(n_sas: Ints, log_union: float, alpha: float, scale: float, tie: float) -> Balls:
    """Room for the balls of the counts n_sas (rows, S, A, S), which it shares; `refresh_all` fills the rest."""
    rows, S, A, _ = n_sas.shape
    return Balls(
        n_sas=n_sas.reshape(rows, S * A, S),
        n_sa=np.zeros((rows, S * A), dtype=np.int64),
        P_hat=np.zeros((rows, S, S * A)),
        eps=np.zeros((rows, S * A)),
        log_union=log_union,
        alpha=alpha,
        scale=scale,
        tie=tie,
    )
