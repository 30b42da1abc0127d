"""Returns of several kinds, and what bets on them come to: W of the returns themselves."""

from fractions import Fraction

import mpmath
import numpy as np

from surefoot.base.nodes import STAKES, WEIGHTS

UNITS = 2**20
LAWS = {
    "coin": lambda rng, n: rng.random(n) < 0.7,
    "rare": lambda rng, n: rng.random(n) < 0.05,
    "smooth": lambda rng, n: rng.beta(30, 13, n),
    "low": lambda rng, n: rng.beta(1, 60, n),
    "few": lambda rng, n: rng.choice([0.1, 0.35, 0.36, 0.9], n),
    "constant": lambda rng, n: np.full(n, 0.3),
    "zeros": lambda rng, n: np.zeros(n),
    "ones": lambda rng, n: np.ones(n),
}


def in_units(law, n):
    """As many draws of this law, in units of 2^-20."""
    drawn = np.asarray(LAWS[law](np.random.default_rng(0), n), dtype=np.float64)
    return np.floor(drawn * UNITS).astype(np.int64)


def exactly(x):
    """A float or a fraction in as many digits as are at work."""
    return mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator


def wealth(values, times, m):
    """W(m) = sum_j weight_j prod_x (1 - theta_j + theta_j x / m) of returns that have each of these
    values so often, in 60 digits.
    """
    with mpmath.workdps(60):
        shares = [exactly(x) / exactly(m) for x in values]
        return sum(
            weight
            * mpmath.fprod(
                (1 - theta + theta * x) ** n for x, n in zip(shares, times, strict=True) if n > 0
            )
            for theta, weight in zip(STAKES, WEIGHTS, strict=True)
        )
