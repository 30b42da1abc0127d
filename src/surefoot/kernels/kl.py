"""KL certificates: the worst and best mean of V over a ball around P_hat that holds P for all
counts at once.

Both are one-dimensional problems; any point of the search gives a valid bound (weak duality), so
stopping early is looser, never wrong. The same ball with two outcomes bounds the mean of anything
in [0, 1]: rewards and returns.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.kernels.bets import average_bounds
from surefoot.kernels.jit import compiled
from surefoot.model.count_lists import CountLists
from surefoot.model.rows import Rows

ITERATIONS = 30
# a radius from which on nothing is proved (exp(-500) of the span, of a part of a visit in a
# forecast)
FAR = 500.0
# relative step in t at which to stop: the value is flat there, so its error is about the square of
# this
CLOSE = 1e-5
# of everything summed, for each term of a sum and 8 more: rounding errors of lgamma, log and sums
SLACK = 2.0**-52
ROUNDING = 2.0**-52
# of Balls.ahead; the last two say whether there are logarithms of the next step's values
LOW, HIGH, LOW_UP, HIGH_UP, LOGS, LOGS_UP = 0, 1, 2, 3, 4, 5
# What is wanted of a table of Q: both values; the lower ones (and upper ones, where `Balls.uppers`
# says so); or the upper ones, and of each state the lower one of its best action.
BOTH, LOWER, BEST = 0, 1, 2
# of the sum over supports: how many, and where terms no longer count
TERMS, TINY, HUGE = 64, 2.0**-60, 2.0**500


class Balls(NamedTuple):
    """The balls of all pairs, over lists of the next states that were seen. Rows: one per step, or
    one for all steps when counts are pooled.

    A next state that was never seen matters for the worst case only: without a mask it is the one
    with the lowest value (or highest), the same for all pairs of a step, which `look_ahead_balls`
    finds once.
    """

    n_sas: CountLists  # expected counts, in a forecast, are floats
    p: Floats  # (arena,): the frequencies of n_sas
    n_sa: Ints  # (rows, S*A): the visits of n_sas
    # (rows, S*A): how often each pair was played, at the last step, too; sums of rewards rest on it
    played: Ints
    n_fresh: Ints  # (rows, S*A): `played` when the pair was last brought up to date
    eps: Floats  # (rows, S*A): KL(P_hat, P) <= eps; infinite where n = 0
    # the possible next states; of size 0 where all states are, as they are after an empty list
    mask: Rows
    r_low: Floats  # (H or 1, S*A): rewards, or lower bounds of their means
    r_up: Floats  # (H or 1, S*A)
    paid: Rows  # rewards that depend on the next state; of size 0 where none do
    x_sa: Ints  # (rows, S*A): sums of rewards; of size 0 where all rewards are known
    z_sa: Ints  # (rows, S*A): sums of x (1 - x) of rewards x; of size 0 likewise
    unknown: Bools  # (rows or 1, S*A); of size 0 likewise
    gathered: Floats  # (S,) scratch: the values of one pair's next states
    p_hat: Floats  # (S,) scratch: their frequencies, in the order of a mask
    # (6,): the lowest and the highest of all lower values of the next step, and of all upper ones
    ahead: Floats
    # (4, S): log d and 1/d of the next step's values, d = V_low - min V_low, then max V_up - V_up
    logs: Floats
    log_union: float  # log(1 / delta_0): fixed before the data
    # is the mixture Dirichlet(1/2) over all that is possible, and not one over unknown supports?
    full_support: bool
    scale: float  # of the radius: 1.0 is proved; anything else is NOT CERTIFIED
    tie: float  # upper values closer than this tie; the first action wins
    # taken off every lower value, added to every upper one: more than all rounding errors of a
    # backup
    margin: float
    uppers: bool  # are upper values of the other candidates needed, too?


class BallSettings(NamedTuple):
    """What is fixed before the data, as in `Balls`."""

    log_union: float
    full_support: bool
    scale: float
    tie: float
    margin: float
    uppers: bool


class RewardArrays(NamedTuple):
    """What is known of the rewards, as `balls_from` takes it."""

    known: Floats  # (H or 1, S*A)
    unknown: Bools | None = None  # (H or 1, S*A)
    x_sa: Ints | None = None  # (rows, S, A): sums of the rewards seen, where they are unknown
    z_sa: Ints | None = None  # (rows, S, A): sums of x (1 - x) of these rewards


@compiled
def log_gamma_ratio(n: float) -> float:
    """log Gamma(n + 1/2) - log Gamma(1/2)."""
    return math.lgamma(n + 0.5) - math.lgamma(0.5)


@compiled
def refresh_kl(balls: Balls, row: int, pair: int) -> None:
    """Bring eps = (log(1/delta_0) + sum_i n_i log p_hat_i - log m(n_1..n_S)) / n and the rewards of
    one pair up to date.
    """
    n = balls.n_sa[row, pair]
    balls.n_fresh[row, pair] = balls.played[row, pair]
    refresh_reward(balls, row, pair)
    if n == 0:
        balls.eps[row, pair] = math.inf
        return
    lists = balls.n_sas
    at, size = lists.at[row, pair], lists.size[row, pair]
    m = lists.S
    if masked(balls, row, pair):
        i = mask_list(balls, row, pair)
        m = balls.mask.first[i + 1] - balls.mask.first[i]
    balls.eps[row, pair] = balls.scale * mixture_radius(
        lists.n[at : at + size],
        m,
        n,
        balls.full_support,
        balls.log_union,
        balls.p[at : at + size],
    )


@compiled
def masked(balls: Balls, row: int, pair: int) -> bool:
    """Are the possible next states of a pair listed? Where its list is empty, every state is
    possible.
    """
    if balls.mask.first.shape[0] == 0:
        return False
    i = mask_list(balls, row, pair)
    return bool(balls.mask.first[i + 1] > balls.mask.first[i])


@compiled
def mask_list(balls: Balls, row: int, pair: int) -> int:
    """The number of a pair's list in the mask, which may be the same at every step."""
    pairs = balls.n_sa.shape[1]
    return int((row * pairs + pair) % (balls.mask.first.shape[0] - 1))


@compiled
def refresh_reward(balls: Balls, row: int, pair: int) -> None:
    """Bring the bounds of a pair's unknown mean reward up to date."""
    if balls.unknown.shape[0] > 0 and balls.unknown[row % balls.unknown.shape[0], pair]:
        n = balls.played[row, pair]
        x = balls.x_sa[row, pair] / REWARD_UNITS
        z = balls.z_sa[row, pair] / REWARD_UNITS
        low, up = average_bounds(n, x, z, balls.log_union, balls.scale, balls.margin)
        for h in range(balls.r_low.shape[0]):
            if balls.n_sa.shape[0] == 1 or h == row:
                balls.r_low[h, pair] = low
                balls.r_up[h, pair] = min(1.0, up + 1.0 / REWARD_UNITS)  # sums were rounded down


@compiled
def mixture_radius(
    n_i: Ints, m: int, n: float, full_support: bool, log_union: float, p_hat: Floats
) -> float:
    """The radius under the mixture over unknown supports, or under Dirichlet(1/2) over the m
    possible outcomes. n_i are the counts of those that were seen, or of more.
    """
    if full_support:
        return dirichlet_radius(n_i, m, n, log_union, p_hat)
    return supports_radius(n_i, m, n, log_union, p_hat)


@compiled
def dirichlet_radius(n_i: Ints, m: int, n: float, log_union: float, p_hat: Floats) -> float:
    """The radius eps = (log(1/delta_0) + sum_i n_i log p_hat_i - log m(n_1..n_m)) / n over m
    outcomes, whose counts need not be whole;

        log m = lgamma(m/2) - lgamma(n + m/2) + sum_i [ lgamma(n_i + 1/2) - lgamma(1/2) ].

    It also fills p_hat, of those in n_i.
    """
    log_m = math.lgamma(m * 0.5) - math.lgamma(n + m * 0.5)
    log_p = 0.0
    size = log_union + abs(math.lgamma(m * 0.5)) + abs(math.lgamma(n + m * 0.5))
    for j in range(n_i.shape[0]):
        k = n_i[j]
        p_hat[j] = k / n
        log_m += log_gamma_ratio(k)
        if k > 0:
            log_p += k * math.log(k / n)
            size += abs(math.lgamma(k + 0.5)) + math.lgamma(0.5)
    slack = (m + 8) * SLACK * (size + abs(log_p))
    return (log_union + log_p - log_m + slack) / n


@compiled
def supports_radius(n_i: Ints, m: int, n: float, log_union: float, p_hat: Floats) -> float:
    """The same radius with a mixture over unknown supports, of which d outcomes were seen:

    m(n_1..n_m) = sum_{k=d}^{m} w_k C(m-d, k-d) / C(m, k) Gamma(k/2) / Gamma(n + k/2)
                  prod_i Gamma(n_i + 1/2) / Gamma(1/2).
    """
    d, log_m, log_p, size = 0, 0.0, 0.0, log_union
    for j in range(n_i.shape[0]):
        k = n_i[j]
        p_hat[j] = k / n
        if k > 0:
            d += 1
            log_m += log_gamma_ratio(k)
            log_p += k * math.log(k / n)
            size += abs(math.lgamma(k + 0.5)) + math.lgamma(0.5)
    log_sum, more = log_supports(d, m, n)
    slack = (d + 16) * SLACK * (size + more + abs(log_p))
    return (log_union + log_p - (log_m + log_sum) + slack) / n


@compiled
def log_supports(d: int, m: int, n: float) -> tuple[float, float]:
    """The logarithm of sum_{k=d}^{m} T_k, and the size of all that was summed into it, where

        T_k = w_k C(m-d, k-d) / C(m, k) Gamma(k/2) / Gamma(n + k/2),
        w_k = 1/(k(k+1)) for k < m, w_m = 1/m.

    Up to k = m - 1 the terms are multiples of the first, T_{k+2} / T_k = k^2 (k+1)^2 / ((k+1-d)
    (k+2-d) (k+3) (2n+k)). The sum ends where they no longer count, or at k = 4d + 64: what is left
    out makes the ball larger.
    """
    a, x = 0.5 * m, n + 0.5 * m
    last = math.lgamma(a) - math.lgamma(x) - math.log(m)
    size = abs(math.lgamma(a)) + abs(math.lgamma(x)) + math.log(m)
    if d == m:
        return last, size
    a, x = 0.5 * d, n + 0.5 * d
    sets = math.lgamma(d + 1.0) + math.lgamma(m - d + 1.0) - math.lgamma(m + 1.0)
    first = sets + math.lgamma(a) - math.lgamma(x) - math.log(d * (d + 1.0))
    size += (
        2.0 * math.lgamma(m + 1.0)
        + abs(math.lgamma(a))
        + abs(math.lgamma(x))
        + math.log(d * (d + 1.0))
    )
    # Gamma(a + 1/2) Gamma(x) / (Gamma(a) Gamma(x + 1/2)), which is below the root however lgamma
    # was rounded
    half = math.exp(math.lgamma(a + 0.5) - math.lgamma(a) + math.lgamma(x) - math.lgamma(x + 0.5))
    term, following, total = (
        1.0,
        d * (d + 1.0) / (d + 2.0) * min(half, math.sqrt(a / (x - 0.25))),
        0.0,
    )
    for i in range(min(m - d, 3 * d + TERMS)):
        total += term
        size += 1.0
        if term < TINY * total:
            break
        k = float(d + i)
        ratio = (
            k * k / ((i + 1.0) * (i + 2.0)) * ((k + 1.0) * (k + 1.0) / ((k + 3.0) * (2.0 * n + k)))
        )
        term, following = following, ratio * term
        if following > HUGE:
            term, following, total = term / HUGE, following / HUGE, total / HUGE
            first += math.log(HUGE)
            size += math.log(HUGE)
    front = first + math.log(total)
    most = max(front, last)
    return most + math.log1p(math.exp(min(front, last) - most)), size


@compiled
def worst_mean(p_hat: Floats, V: Floats, m: int, sign: float, eps: float, margin: float) -> float:
    """min over the ball of sum_i p_i (sign V_i): min V + max over t > 0 of t expm1(-eps + sum
    p_hat_i log1p(d_i / t)).

    The maximiser solves u(t) + log(1 - w(t)) = 0 with u the exponent and w = sum p_hat_i d_i / (t +
    d_i), a decreasing function of t: Newton's method in log t, within a bracket. The limit t -> 0
    matters when the worst state was never seen. The margin is taken off before clipping at min V,
    which holds without data: a floor of 0 is still certified.
    """
    low, high = extremes(V, m, sign)
    return worst_mean_within(p_hat, V, m, sign, eps, margin, low, high)


@compiled
def extremes(V: Floats, m: int, sign: float) -> tuple[float, float]:
    """The least and the largest of sign V over the first m values."""
    low, high = sign * V[0], sign * V[0]
    for i in range(1, m):
        v = sign * V[i]
        low = v if v < low else low
        high = v if v > high else high
    return low, high


@compiled
def worst_mean_within(
    p_hat: Floats,
    V: Floats,
    m: int,
    sign: float,
    eps: float,
    margin: float,
    low: float,
    high: float,
) -> float:
    """`worst_mean` where the m values are those of all outcomes that were seen, and sign V of
    any is in low..high.
    """
    span = high - low
    if not eps < FAR or span <= 0.0:
        return float(low)
    mean, square, at_zero = 0.0, 0.0, -eps
    for i in range(m):
        p = p_hat[i]
        if p > 0.0:
            d = sign * V[i] - low
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
        for i in range(m):
            p = p_hat[i]
            if p > 0.0:
                d = sign * V[i] - low
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
    return float(low + max(best - margin, 0.0))


@compiled
def worst_mean_at_once(
    p_hat: Floats,
    V: Floats,
    m: int,
    sign: float,
    eps: float,
    margin: float,
    low: float,
    high: float,
) -> float:
    """`worst_mean_within`, by its limit t -> 0 where that is the largest: min V + exp(-eps + sum
    p_hat_i log d_i).

    The dual is concave in t, and at 0 its slope has the sign of sum p_hat_i log d_i + log(sum
    p_hat_i / d_i) - eps. Most pairs end here, as long as their worst next state was never seen.
    Another t would be looser, never wrong.
    """
    if not eps < FAR or high - low <= 0.0:
        return float(low)
    at_zero, slope = -eps, 0.0
    for i in range(m):
        if p_hat[i] > 0.0:
            d = sign * V[i] - low
            # one that is the worst: there is no limit
            at_zero += p_hat[i] * math.log(d) if d > 0.0 else math.inf
            slope += p_hat[i] / d if d > 0.0 else 1.0
    if at_zero + math.log(slope) > 0.0:
        return worst_mean_within(p_hat, V, m, sign, eps, margin, low, high)
    return float(low + max(math.exp(at_zero) - margin, 0.0))


@compiled
def add(x: float, y: float, sign: float) -> float:
    """x + y of two numbers >= 0, not above the exact sum (sign 1) or not below it (sign -1); exact
    where floats can be.

    The rounding error of a sum is itself a float (Knuth): it says which way the sum was rounded.
    """
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    return total - sign * ROUNDING * total if sign * error < 0.0 else total


@compiled
def look_ahead_balls(balls: Balls, V_up: Floats, V_low: Floats, pairs: int, uppers: bool) -> None:
    """Find the lowest and the highest of the next step's values, and, where so many pairs read
    them, their logarithms, once for all; of the upper ones, if they are wanted. Empty ones stand
    for V_{H+1} = 0.
    """
    ahead = balls.ahead
    ahead[:] = 0.0
    if V_low.shape[0] > 0:
        ahead[LOW], ahead[HIGH] = V_low[0], V_low[0]
        ahead[LOW_UP], ahead[HIGH_UP] = V_up[0], V_up[0]
        for s in range(V_low.shape[0]):
            ahead[LOW] = min(ahead[LOW], V_low[s])
            ahead[HIGH] = max(ahead[HIGH], V_low[s])
            ahead[LOW_UP] = min(ahead[LOW_UP], V_up[s])
            ahead[HIGH_UP] = max(ahead[HIGH_UP], V_up[s])
    if V_low.shape[0] > 0 and pairs >= V_low.shape[0] and balls.paid.first.shape[0] == 0:
        ahead[LOGS] = 1.0
        logs_of(V_low, ahead[LOW], 1.0, balls.logs[0], balls.logs[1])
        if uppers or balls.uppers:
            ahead[LOGS_UP] = 1.0
            logs_of(V_up, ahead[HIGH_UP], -1.0, balls.logs[2], balls.logs[3])


@compiled
def logs_of(V: Floats, worst: float, sign: float, log_d: Floats, per_d: Floats) -> None:
    """Write log d and 1/d, d = sign (V - worst); of the worst value itself there is no limit."""
    for s in range(V.shape[0]):
        d = sign * (V[s] - worst)
        log_d[s] = math.log(d) if d > 0.0 else math.inf
        per_d[s] = 1.0 / d if d > 0.0 else 1.0


@compiled
def q_kl(
    balls: Balls,
    row: int,
    h: int,
    lo: int,
    hi: int,
    H: int,
    V_up: Floats,
    V_low: Floats,
    scratch: Floats,
    wanted: int,
    pi: Floats,
) -> None:
    """Write Q_up = r + max over the ball of p V_up into scratch[0], Q_low = r + min of p V_low into
    scratch[1], after `look_ahead` at the same values.

    `pi` (S, A) is the policy of which they are wanted: other actions' are left 0. With no rows: all
    are. Rewards that depend on the next state go inside the ball. An empty V_up stands for V_{H+1}
    = 0.
    """
    Q_up, Q_low = scratch[0], scratch[1]
    ahead = V_up.shape[0] > 0
    after = balls.paid.first.shape[0] > 0
    r_low, r_up = balls.r_low[h % balls.r_low.shape[0]], balls.r_up[h % balls.r_up.shape[0]]
    both = wanted != LOWER or balls.uppers
    if not (ahead or after):
        for i in range(hi - lo):
            Q_up[i] = r_up[lo + i]
            Q_low[i] = r_low[lo + i]
        return
    A = max(pi.shape[1], 1)
    best = 0
    for i in range(hi - lo):
        Q_up[i] = 0.0
        if both and plays(pi, lo + i):
            pair = lo + i
            Q_up[i] = add(
                r_up[pair], -worst_of_pair(balls, row, h, pair, V_up, -1.0, HIGH_UP, LOW_UP), -1.0
            )
    for i in range(hi - lo):
        Q_low[i] = 0.0
        if wanted == BEST and i % A == 0:
            best = i + best_action(Q_up[i : i + A], balls.tie)
        if plays(pi, lo + i) and (wanted != BEST or i == best):
            pair = lo + i
            Q_low[i] = add(
                r_low[pair], worst_of_pair(balls, row, h, pair, V_low, 1.0, LOW, HIGH), 1.0
            )


@compiled
def plays(pi: Floats, pair: int) -> bool:
    """Does a policy (S, A) play this pair? One with no rows stands for all of them."""
    return bool(pi.shape[0] == 0 or pi[pair // pi.shape[1], pair % pi.shape[1]] > 0.0)


@compiled
def best_action(Q_up: Floats, tie: float) -> int:
    """argmax_a Q_up of one state; the first index wins a tie."""
    best = 0
    for a in range(1, Q_up.shape[0]):
        if Q_up[a] > Q_up[best] + tie:
            best = a
    return best


@compiled
def worst_of_pair(
    balls: Balls, row: int, h: int, pair: int, V: Floats, sign: float, worst: int, best: int
) -> float:
    """The worst mean of sign V over the ball of one pair. `worst` and `best` are places in
    `ahead`.
    """
    if masked(balls, row, pair):
        return worst_of_mask(balls, row, h, pair, V, sign)
    lists, eps, W, paid = balls.n_sas, balls.eps[row, pair], balls.gathered, balls.paid
    at, size = lists.at[row, pair], lists.size[row, pair]
    after = paid.first.shape[0] > 0
    low, high = sign * balls.ahead[worst], sign * balls.ahead[best]
    if after:  # any next state may follow: one that is listed there, or any other
        i = (h * balls.n_sa.shape[1] + pair) % (paid.first.shape[0] - 1)
        low, high = math.inf, -math.inf
        if paid.first[i + 1] - paid.first[i] < lists.S:
            low = sign * add(paid.elsewhere, balls.ahead[worst], sign)
            high = sign * add(paid.elsewhere, balls.ahead[best], -sign)
        for k in range(paid.first[i], paid.first[i + 1]):
            v = sign * add(paid.value[k], V[paid.state[k]] if V.shape[0] > 0 else 0.0, sign)
            low, high = min(low, v), max(high, v)
    if balls.n_sa[row, pair] == 0:
        return float(low)
    if balls.ahead[LOGS if sign > 0.0 else LOGS_UP] > 0.0:
        return worst_mean_ahead(balls, row, pair, V, sign, low, high)
    if after:
        for j in range(size):
            W[j] = value_after(
                paid, h, pair, balls.n_sa.shape[1], lists.S, lists.state[at + j], V, sign
            )
    elif size < lists.S:
        for j in range(size):
            W[j] = V[lists.state[at + j]]
    else:  # its states are all of them, in their order
        W = V
    p = balls.p[at : at + size]
    return worst_mean_at_once(p, W, size, sign, eps, balls.margin, low, high)


@compiled
def worst_of_mask(balls: Balls, row: int, h: int, pair: int, V: Floats, sign: float) -> float:
    """The worst mean of sign V over the ball of a pair whose possible next states are listed."""
    lists, eps, paid = balls.n_sas, balls.eps[row, pair], balls.paid
    W, p_hat = balls.gathered, balls.p_hat
    at, size = lists.at[row, pair], lists.size[row, pair]
    i = mask_list(balls, row, pair)
    first, m = balls.mask.first[i], balls.mask.first[i + 1] - balls.mask.first[i]
    low, high = math.inf, -math.inf
    seen = 0
    for j in range(m):
        s_next = balls.mask.state[first + j]
        W[j] = value_after(paid, h, pair, balls.n_sa.shape[1], lists.S, s_next, V, sign)
        low, high = min(low, sign * W[j]), max(high, sign * W[j])
        p_hat[j] = 0.0
        place = s_next if size == lists.S else seen
        if place < size and lists.state[at + place] == s_next:
            p_hat[j] = balls.p[at + place]
            seen += 1
    return worst_mean_at_once(p_hat, W, m, sign, eps, balls.margin, low, high)


@compiled
def worst_mean_ahead(
    balls: Balls, row: int, pair: int, V: Floats, sign: float, low: float, high: float
) -> float:
    """`worst_mean_at_once` by the logarithms that `look_ahead_balls` wrote: the same sums."""
    lists, p, eps = balls.n_sas, balls.p, balls.eps[row, pair]
    at, size = lists.at[row, pair], lists.size[row, pair]
    if not eps < FAR or high - low <= 0.0:
        return float(low)
    k = 0 if sign > 0.0 else 2
    log_d, per_d = balls.logs[k], balls.logs[k + 1]
    at_zero, slope = -eps, 0.0
    for j in range(at, at + size):
        if p[j] > 0.0:
            at_zero += p[j] * log_d[lists.state[j]]
            slope += p[j] * per_d[lists.state[j]]
    top = math.exp(at_zero)
    if not top * slope > 1.0:
        return float(low + max(top - balls.margin, 0.0))
    W = balls.gathered
    for j in range(size):
        W[j] = V[lists.state[at + j]]
    return worst_mean_within(p[at : at + size], W, size, sign, eps, balls.margin, low, high)


@compiled
def value_after(
    paid: Rows, h: int, pair: int, pairs: int, S: int, s_next: int, V: Floats, sign: float
) -> float:
    """r(s,a,s') + V(s'), rounded to safety; V(s') where rewards do not depend on the next state."""
    v = V[s_next] if V.shape[0] > 0 else 0.0
    if paid.first.shape[0] == 0:
        return float(v)
    i = (h * pairs + pair) % (paid.first.shape[0] - 1)
    left, right = paid.first[i], paid.first[i + 1]
    if right - left == S:  # every state is listed
        left = right = left + s_next
    while left < right:
        middle = (left + right) // 2
        if paid.state[middle] < s_next:
            left = middle + 1
        else:
            right = middle
    listed = left < paid.first[i + 1] and paid.state[left] == s_next
    return add(paid.value[left] if listed else paid.elsewhere, v, sign)


def balls_from(
    lists: CountLists,
    played: Ints,
    H: int,
    rewards: RewardArrays,
    mask: Rows | None,
    paid: Rows | None,
    settings: BallSettings,
) -> Balls:
    """The balls for these counts, whose memory they share; `refresh_all` fills them."""
    rows, pairs = lists.at.shape
    none = np.zeros(0, dtype=np.int64)
    nothing = Rows(none, none, np.zeros(0), lists.S, 0).frozen()
    return Balls(
        n_sas=lists,
        p=np.zeros(len(lists.state)),
        n_sa=lists.visits,
        played=played.reshape(rows, pairs),
        n_fresh=np.full((rows, pairs), -1, dtype=lists.n.dtype),
        eps=np.zeros((rows, pairs)),
        mask=nothing if mask is None else mask,
        paid=nothing if paid is None else paid,
        gathered=np.zeros(max(lists.S, 4)),
        p_hat=np.zeros(max(lists.S, 4)),
        ahead=np.zeros(6),
        logs=np.zeros((4, lists.S)),
        **settings._asdict(),
        **reward_fields(rewards, H, rows, pairs),
    )


def reward_fields(rewards: RewardArrays, H: int, rows: int, pairs: int) -> dict[str, Any]:
    """The fields of Balls about the rewards of pairs. Sums are the counts' own."""
    known, unknown = rewards.known, rewards.unknown
    r_rows = H if unknown is not None and rows == H else len(known)
    nothing = np.zeros(
        (0 if unknown is None else rows, 0 if unknown is None else pairs), dtype=np.int64
    )
    x_sa, z_sa = (
        nothing.copy() if unknown is None or sums is None else sums.reshape(rows, pairs)
        for sums in (rewards.x_sa, rewards.z_sa)
    )
    return {
        # another order would be compiled anew
        "r_low": np.array(np.broadcast_to(known, (r_rows, pairs)), order="C"),
        "r_up": np.array(np.broadcast_to(known, (r_rows, pairs)), order="C"),
        "x_sa": x_sa,
        "z_sa": z_sa,
        "unknown": np.zeros((0, 0), dtype=np.bool_) if unknown is None else np.array(unknown),
    }
