"""Bounds of the mean of an unknown reward by a coin and by bets, written to be read.

Rewards x in [0, 1] are independent draws with mean mu. If mu = m, three kinds of capital, each of
which starts at 1, are non-negative supermartingales:

    the coin      M(m) = m(n-X, X) / ((1-m)^(n-X) m^X),  X = sum x  (bounds/kl.py)
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
"""

import math

from surefoot.base.bets import COIN, STAKES, WEIGHTS

SEARCH = 200  # bisections


def log_average(m: float, n: float, X: float, Z: float) -> float:
    """Return at most the logarithm of the average of coin and bets above, for a mean m in (0,
    X/n].
    """
    tails = n - X
    log_mixture = (
        math.lgamma(X + 0.5) + math.lgamma(tails + 0.5) - 2 * math.lgamma(0.5) - math.lgamma(n + 1)
    )
    log_coin = log_mixture - X * math.log(m) - (tails * math.log1p(-m) if tails > 0 else 0.0)
    logs = [math.log(COIN) + log_coin]
    for theta, weight in zip(STAKES, WEIGHTS, strict=True):
        c = -math.log1p(-theta) - theta
        u = min(1 / m, (theta / (2 * c) + 1) * X / (X - Z))
        log_W = theta * (X * u - n) - c * ((X - Z) * u**2 - 2 * X * u + n)
        logs.append(math.log(weight) + log_W)
    most = max(logs)
    return most + math.log(sum(math.exp(x - most) for x in logs))


def mean_lower(n: float, X: float, Z: float, log_inverse: float) -> float:
    """Return the largest m <= X/n that is found whose average reaches exp(log_inverse); 0 if
    there is none.
    """
    if X <= 0.0:
        return 0.0
    below, above = 0.0, X / n
    for _ in range(SEARCH):
        m = 0.5 * (below + above)
        if not below < m < above:
            break
        below, above = (m, above) if log_average(m, n, X, Z) >= log_inverse else (below, m)
    return below


def mean_bounds(n: float, X: float, Z: float, log_inverse: float) -> tuple[float, float]:
    """Return bounds of the mean of n rewards, for all n at once; for 1 - x the sum of x (1 - x)
    is the same.
    """
    return mean_lower(n, X, Z, log_inverse), 1.0 - mean_lower(n, n - X, Z, log_inverse)
