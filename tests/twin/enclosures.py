"""Real numbers between two rationals, and logarithm, exponential and root of them.

Rational arithmetic is exact and is rounded outwards to multiples of 2^-220 where numbers would grow
without end. For logarithms, exponentials and roots mpmath computes with 260 bits (78 digits); its
functions are then right within a few units of the last place, and 2^-220 is added on both sides,
absolutely and relatively: 2^40 times as much. That one premise is checked against mpmath's own
interval arithmetic in test_twin.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations

import mpmath
from mpmath.libmp import from_rational, to_fixed, to_rational

GRID = 2**220
SHORT = 2**128
MP = mpmath.MPContext()  # a context of our own: the precision of nobody else is touched
MP.prec = 260
SMALL = 200  # up to this many visits a Dirichlet mixture is multiplied out as a rational
LARGE = 64  # Stirling's series is used from here on


def down(x: Fraction) -> Fraction:
    """x, if it has few digits, as floats do, also tiny ones; else the next multiple of 2^-220 at
    or below it.
    """
    return x if abs(x.numerator) < SHORT else Fraction(x.numerator * GRID // x.denominator, GRID)


def up(x: Fraction) -> Fraction:
    """Likewise, at or above x."""
    return -down(-x)


@dataclass(frozen=True, slots=True)
class Between:
    """A real number of which it is known that lo <= it <= hi."""

    lo: Fraction
    hi: Fraction

    def __add__(self, other: "Between | Fraction | int") -> "Between":
        y = between(other)
        return Between(self.lo + y.lo, self.hi + y.hi)

    def __neg__(self) -> "Between":
        return Between(-self.hi, -self.lo)

    def __sub__(self, other: "Between | Fraction | int") -> "Between":
        return self + -between(other)

    def __mul__(self, other: "Between | Fraction | int") -> "Between":
        if not isinstance(other, Between) and other >= 0:
            return Between(self.lo * other, self.hi * other)
        y = between(other)
        corners = (self.lo * y.lo, self.lo * y.hi, self.hi * y.lo, self.hi * y.hi)
        return Between(min(corners), max(corners))

    __radd__ = __add__
    __rmul__ = __mul__

    def rounded(self) -> "Between":
        """Hardly wider, with short ends."""
        return Between(down(self.lo), up(self.hi))

    @property
    def width(self) -> Fraction:
        return self.hi - self.lo


ZERO = Between(Fraction(0), Fraction(0))


def between(x: "Between | Fraction | int") -> Between:
    """A rational is between itself and itself."""
    return x if isinstance(x, Between) else Between(Fraction(x), Fraction(x))


def total(parts: Sequence[Between]) -> Between:
    return Between(sum((x.lo for x in parts), Fraction(0)), sum((x.hi for x in parts), Fraction(0)))


def largest(parts: Sequence[Between]) -> Between:
    return Between(max(x.lo for x in parts), max(x.hi for x in parts))


def as_mpf(x: Fraction) -> mpmath.mpf:
    return MP.make_mpf(from_rational(x.numerator, x.denominator, MP.prec))


def as_fraction(y: mpmath.mpf) -> Fraction:
    """The very number, which is a whole number times a power of two."""
    return Fraction(*to_rational(y._mpf_))


def _around(y: mpmath.mpf) -> Between:
    """What mpmath computed at 260 bits, with 2^-220 for its error."""
    fixed = to_fixed(y._mpf_, 220)  # in multiples of 2^-220, within one
    slack = 2 + (abs(fixed) >> 220)
    return Between(Fraction(fixed - slack, GRID), Fraction(fixed + slack, GRID))


def log(x: Fraction) -> Between:
    return ZERO if x == 1 else _around(MP.log(as_mpf(x)))


def exp(x: Between) -> Between:
    """exp grows, so the ends suffice."""
    return Between(
        max(Fraction(0), _around(MP.exp(as_mpf(x.lo))).lo), _around(MP.exp(as_mpf(x.hi))).hi
    )


def sqrt(x: Between) -> Between:
    """Of what is not negative; an end below 0 comes from rounding outwards."""
    lo = _around(MP.sqrt(as_mpf(x.lo))).lo if x.lo > 0 else Fraction(0)
    return Between(
        max(Fraction(0), lo), _around(MP.sqrt(as_mpf(x.hi))).hi if x.hi > 0 else Fraction(0)
    )


@cache
def _bernoulli(k: int) -> mpmath.mpf:
    return as_mpf(Fraction(*mpmath.bernfrac(k)))


@lru_cache(maxsize=2**14)
def log_gamma(x: Fraction) -> Between:
    """log Gamma(x) for x > 0.

    Gamma(x) = Gamma(x + N) / (x (x+1) .. (x+N-1)), and for z >= 64 Stirling's series
        log Gamma(z) = (z - 1/2) log z - z + log(2 pi)/2 + sum_k B_2k / (2k (2k-1) z^(2k-1)),
    of which the error is at most the first term left out (its terms alternate and envelop the sum):
    less than 2^-224, a part of the 2^-219 that is allowed around the series.
    """
    shift = max(0, LARGE - math.floor(x))
    z = x + shift
    series, power, k = MP.mpf(0), 1 / as_mpf(z), 1
    square = power * power
    while True:
        term = _bernoulli(2 * k) * power / (2 * k * (2 * k - 1))
        if abs(term) < 2.0**-224:
            break
        series, power, k = series + term, power * square, k + 1
    found = log(z) * (z - Fraction(1, 2)) - z + _around(MP.log(2 * MP.pi) / 2) + _around(series)
    return (found - log(rising(x, shift))).rounded()


def rising(x: Fraction, n: int) -> Fraction:
    """x (x+1) .. (x+n-1) = Gamma(x+n) / Gamma(x)."""
    return math.prod((x + j for j in range(n)), start=Fraction(1))


def dirichlet_mixture(counts: Sequence[int], alpha: Fraction) -> Fraction:
    """m(n_1..n_S) = Gamma(S alpha) / Gamma(n + S alpha) prod_i Gamma(n_i + alpha) /
    Gamma(alpha), a rational.
    """
    each = math.prod((rising(alpha, n) for n in counts), start=Fraction(1))
    return each / rising(len(counts) * alpha, sum(counts))


def supports_mixture(counts: Sequence[int]) -> Fraction:
    """m(n_1..n_S) with unknown supports: w_k spread evenly over the sets of k outcomes,
    Dirichlet(1/2) within each.

    A set that lacks an outcome that was seen has likelihood 0.
    """
    S, seen, half = len(counts), {i for i, n in enumerate(counts) if n}, Fraction(1, 2)
    m = Fraction(0)
    for k in range(1, S + 1):
        weight = Fraction(1, S if k == S else k * (k + 1)) / math.comb(S, k)
        for support in combinations(range(S), k):
            if seen <= set(support):
                m += weight * dirichlet_mixture([counts[i] for i in support], half)
    return m


def log_supports_mixture(counts: Sequence[Fraction]) -> Between:
    """log m, also for large counts: the likeliest support, and the others in proportion to it."""
    S, seen, half = len(counts), {i for i, n in enumerate(counts) if n}, Fraction(1, 2)
    logs = []
    for k in range(max(1, len(seen)), S + 1):
        sets = sum(seen <= set(support) for support in combinations(range(S), k))
        weight = Fraction(sets, math.comb(S, k) * (S if k == S else k * (k + 1)))
        here = [counts[i] for i in seen] + [Fraction(0)] * (k - len(seen))
        logs.append(log(weight) + log_dirichlet_mixture(here, half))
    most = max(logs, key=lambda x: x.lo).lo
    sums = total([exp((x - most).rounded()) for x in logs])
    return Between(log(sums.lo).lo, log(sums.hi).hi) + most


def log_dirichlet_mixture(counts: Sequence[Fraction], alpha: Fraction) -> Between:
    """log m, also for large and for fractional counts."""
    S = len(counts)
    each = [log_gamma(n + alpha) for n in counts if n > 0]
    seen = len(each)
    return (
        total(each)
        - log_gamma(alpha) * seen
        + log_gamma(S * alpha)
        - log_gamma(sum(counts, S * alpha))
    )
