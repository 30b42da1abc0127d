"""Bounds of the mean of an unknown reward by a coin and by bets.

Rewards x in [0, 1] are independent draws with mean mu. If mu = m, three kinds of capital, each of
which starts at 1, are non-negative supermartingales:

    the coin      M(m) = m(n-X, X) / ((1-m)^(n-X) m^X),  X = sum x
    bets above    W(m) = 8 sum_j weight_j prod_x (1 - theta_j + theta_j x / m)
    bets below    the same of 1 - x, 1 - X/n and 1 - m

and so is their average with weights that were fixed beforehand. By Ville's inequality the average
at mu stays below 1/delta_0 for any number of rewards at once, with probability 1 - delta_0: ONE
event for both ends of the interval.

Where m <= X/n, coin and bets above fall in m; bets below are not negative, and are left out. So one
m <= X/n at which these two reach 1/delta_0 shows that mu is above m. The upper end is one minus the
lower end of 1 - x.

W would take every reward. But (log(1+y) - y) / y^2 grows in y, so that with y = theta (x/m - 1) >=
-theta

    log(1 + y) >= y + (log(1-theta) + theta) (x/m - 1)^2,
    log W_theta(m) >= theta (X u - n) - c ((X-Z) u^2 - 2X u + n),
    c = -log(1-theta) - theta,    Z = sum x (1-x),

at u = 1/m, which takes n, X and Z, and no more than that. W_theta falls in m, so the same holds at
every u <= 1/m; the right side grows up to u = (theta/(2c) + 1) X/(X-Z), where it is taken if 1/m is
beyond that.

Only the side on which an m is tested matters: what is computed of the average is rounded down, so
an m that reaches 1/delta_0 here does so exactly. How m is found does not matter.
"""

import math

from surefoot.base.bets import COIN, COSTS, STAKES, WEIGHTS
from surefoot.kernels.jit import compiled

# of everything summed: more than the rounding errors of lgamma, logarithms, exponentials and sums
SLACK = 2.0**-48
LOG_COIN, LOG_WEIGHTS = math.log(COIN), tuple(math.log(weight) for weight in WEIGHTS)
PEAKS = tuple(theta / (2.0 * cost) + 1.0 for theta, cost in zip(STAKES, COSTS, strict=True))
J = len(STAKES)
HALVINGS, STEPS = 60, 60  # of a search, at most
CLOSE = 1e-12  # how near both ends of the bracket are when the search ends


@compiled
def log_mixture(n: float, x: float) -> float:
    """log of the Dirichlet(1/2, 1/2) mixture's likelihood of n - x tails and x heads, whole or
    not; rounded down.
    """
    heads, tails, either = math.lgamma(x + 0.5), math.lgamma(n - x + 0.5), math.lgamma(n + 1.0)
    size = 2.0 + abs(heads) + abs(tails) + either
    return heads + tails - math.log(math.pi) - either - SLACK * size


@compiled
def log_average(m: float, n: float, x: float, z: float, log_m: float) -> float:
    """At most the logarithm of the average of coin and bets above, for a mean m in (0, x/n]."""
    tails = n - x
    heads = -x * math.log(m)
    missed = -tails * math.log1p(-m)
    most = LOG_COIN + log_m + heads + missed - SLACK * (abs(log_m) + heads + missed + 1.0)
    total, square = 1.0, x - z
    for j in range(J):
        theta, cost = STAKES[j], COSTS[j]
        u = min(1.0 / m, PEAKS[j] * x / square)
        paid = x * u
        bet = LOG_WEIGHTS[j] + theta * (paid - n) - cost * (square * u * u - 2.0 * paid + n)
        bet -= SLACK * (theta * (paid + n) + cost * (square * u * u + 2.0 * paid + n) + 1.0)
        if bet > most:
            total = total * math.exp(most - bet) + 1.0
            most = bet
        else:
            total += math.exp(bet - most)
    found = most + math.log(total)
    return found - SLACK * (1.0 + abs(found))


@compiled
def average_lower(n: float, x: float, z: float, log_inverse: float) -> float:
    """The largest m <= x/n that is found whose average reaches exp(log_inverse); 0 where there is
    none.

    A bracket by halving, then false positions in it, of which those that stay at one end are moved
    (Illinois).
    """
    if x <= 0.0:
        return 0.0
    log_m = log_mixture(n, x)
    above, less = x / n, -log_inverse  # the average is at most 1 where m = x/n
    below, more = 0.5 * above, 0.0
    for _ in range(HALVINGS):
        more = log_average(below, n, x, z, log_m) - log_inverse
        if more >= 0.0:
            break
        above, less = below, more
        below *= 0.5
    if more < 0.0:
        return 0.0
    last = 0
    for _ in range(STEPS):
        if above - below <= CLOSE:
            break
        m = below + (above - below) * (more / (more - less))
        if not below < m < above:
            m = 0.5 * (below + above)
        value = log_average(m, n, x, z, log_m) - log_inverse
        if value >= 0.0:
            below, more = m, value
            less = 0.5 * less if last > 0 else less
            last = 1
        else:
            above, less = m, value
            more = 0.5 * more if last < 0 else more
            last = -1
    return below


@compiled
def average_bounds(
    n: float, x: float, z: float, log_inverse: float, scale: float, margin: float
) -> tuple[float, float]:
    """Lower and upper bound, for all n at once, of the mean of [0, 1]-valued rewards: x is their
    sum, z that of x (1 - x). A `scale` of the squared distances from x/n other than 1 is NOT
    CERTIFIED.
    """
    if n <= 0.0:
        return 0.0, 1.0
    heads = min(max(x, 0.0), n)
    tails, wide = n - heads, math.sqrt(scale)
    low = heads / n - wide * (heads / n - average_lower(n, heads, z, log_inverse))
    up = tails / n - wide * (tails / n - average_lower(n, tails, z, log_inverse))
    return max(low - margin, 0.0), 1.0 - max(up - margin, 0.0)
