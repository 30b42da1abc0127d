"""Statistics of few trials: intervals for means, exact bounds for shares, and agents compared trial by trial.

Everything rests on one function, the regularised incomplete beta function I_x(a, b): Student's t and the binomial are
both special cases of it. Quantiles are found by bisection, with a relative error of about 1e-12.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.validation import as_floats, require_finite, require_integer, require_number
from surefoot.errors import InvalidSetting

TINY = 1e-300  # stands for 0 in a denominator of the continued fraction
LARGE = 30.0  # from here on Stirling's series is as good as lgamma
MOST_TERMS = 100_000  # of it; about sqrt(max(a, b)) are needed

NOISE = 1e-6  # sums of rounding errors over all episodes stay below


class Interval(NamedTuple):
    """A mean over n trials and a confidence interval of the expectation; one trial has none: nan."""

    mean: float
    low: float
    high: float
    n: int


class Paired(NamedTuple):
    """Two agents over the same seeds: smaller is better, `wins` are the first one's."""

    difference: Interval  # of first - second
    wins: int
    losses: int
    ties: int
    p: float  # the exact sign test: the probability of so unequal wins and losses, or more, if neither is better


def t_quantile(p: float, dof: int) -> float:
    """Return the quantile of Student's t: the value that is not exceeded with probability p, to 1e-10 of itself."""
    p = _share("p", p)
    n = float(require_integer("dof", dof, 1, InvalidSetting))
    if p == 0.5:
        return 0.0
    tail = min(p, 1.0 - p)

    def in_body(t: float) -> float:  # the negative of the tail: grows with t, and keeps the digits of a small tail
        return -0.5 * beta_share(0.5 * n, 0.5, n / (n + t * t), t * t / (n + t * t))

    high = 1.0
    while in_body(high) < -tail:
        high *= 2.0
    t = _bisect(in_body, -tail, 0.0, high)
    return t if p > 0.5 else -t


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Return the mean over trials with its t interval. One trial has none; equal values have one of width 0."""
    given = as_floats("values", values, InvalidSetting)
    if given.ndim != 1:
        raise InvalidSetting(f"values has shape {given.shape}, expected one number per trial.")
    require_finite("values", given, InvalidSetting)
    mean, low, high = (float(side[0]) for side in band(given[:, None], level))
    return Interval(mean, low, high, len(given))


def band(curves: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Return mean, low and high at every point of curves (trials, points): a t interval for each point by itself.

    nan where there is one trial only, and where a curve is nan.
    """
    given = as_floats("curves", curves, InvalidSetting)
    level = _share("level", level)
    if given.ndim != 2 or len(given) == 0:
        raise InvalidSetting(f"curves has shape {given.shape}, expected (trials, points) with at least one trial.")
    n = len(given)
    # The mean of equal numbers can miss them by an ulp: then they are the mean, and nothing is in doubt.
    equal = (given == given[0]).all(axis=0)
    mean = np.where(equal, given[0], given.mean(axis=0))
    if n == 1:
        nothing = np.full_like(mean, np.nan)
        return mean, nothing, nothing.copy()
    half = t_quantile(0.5 + 0.5 * level, n - 1) * given.std(axis=0, ddof=1) / math.sqrt(n)
    half = np.where(equal, 0.0, half)
    return mean, mean - half, mean + half


def binomial_bounds(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of Clopper and Pearson for a share of which k of n were seen.

    It covers the truth with probability `level` at least, whatever the truth is.
    """
    k, n = _of(k, n)
    miss = 0.5 * (1.0 - _share("level", level))
    low = 0.0 if k == 0 else _beta_quantile(miss, k, n - k + 1)
    high = 1.0 if k == n else _beta_quantile(1.0 - miss, k + 1, n - k)
    return low, high


def at_most(k: int, n: int, level: float = 0.95) -> float:
    """Return the exact one-sided upper bound of a share of which k of n were seen. 0 of 10 gives 0.2589."""
    k, n = _of(k, n)
    level = _share("level", level)
    return 1.0 if k == n else _beta_quantile(level, k + 1, n - k)


def count_in_words(k: int, n: int, what: str) -> str:
    """Return "k of n runs" of whatever is counted."""
    k, n = _of(k, n)
    return f"{k:,} of {n:,} {what if n == 1 else f'{what}s'}"


def bound_in_words(k: int, n: int) -> str:
    """Return the 95 % bounds of a share. None, or all, of those seen bound it on one side only."""
    k, n = _of(k, n)
    if k == 0:
        return f"at most {_percent(at_most(0, n))} at 95 % confidence"
    if k == n:
        return f"at least {_percent(1.0 - at_most(0, n))} at 95 % confidence"
    low, high = binomial_bounds(k, n)
    return f"between {_percent(low)} and {_percent(high)}"


def paired(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Paired:
    """Return by how much the first is larger, trial by trial, and how often it is smaller (a win).

    Trials of the same number have the same random numbers, so their difference says more than two means would.
    """
    one, two = (as_floats(name, some, InvalidSetting) for name, some in (("first", first), ("second", second)))
    if one.shape != two.shape or one.ndim != 1 or len(one) == 0:
        raise InvalidSetting(
            f"first has shape {one.shape} and second {two.shape}, expected one number per trial, of the same trials."
        )
    difference = mean_interval((one - two).tolist(), level)
    wins, losses = int((one < two).sum()), int((one > two).sum())
    fewer, decided = min(wins, losses), wins + losses
    # P(X <= fewer) for a fair coin is I_1/2(decided - fewer, fewer + 1); both sides of it count.
    p = 1.0 if wins == losses else min(1.0, 2.0 * beta_share(decided - fewer, fewer + 1, 0.5, 0.5))
    return Paired(difference, wins, losses, len(one) - decided, p)


def summarise_optional(values: Sequence[int | None]) -> tuple[float | None, int]:
    """Return the median of when something happened, and in how many trials it never did (None: later than everything).

    The median is None where it lies among those; of two in the middle, both must have happened.
    """
    if not values:
        raise InvalidSetting("values is empty, expected one entry per trial: a number, or None for never.")
    happened = sorted(value for value in values if value is not None)
    low, high = (len(values) - 1) // 2, len(values) // 2
    median = 0.5 * (happened[low] + happened[high]) if high < len(happened) else None
    return median, len(values) - len(happened)


def beta_share(a: float, b: float, x: float, y: float) -> float:
    """Return I_x(a, b), where y is 1 - x: both are given, since neither follows from the other without loss of digits.

    It is computed by the continued fraction (DLMF 8.17.22), on the side where that converges fast.
    """
    if x <= 0.0 or y <= 0.0:
        return float(y <= 0.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - beta_share(b, a, y, x)
    log_x, log_y = (math.log(u) if u < 0.5 else math.log1p(-v) for u, v in ((x, y), (y, x)))
    return math.exp(a * log_x + b * log_y - _log_beta(min(a, b), max(a, b))) / a * _fraction(a, b, x)


def _log_beta(a: float, b: float) -> float:
    """Return the logarithm of B(a, b) for a <= b."""
    if b < LARGE:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    # lgamma(b) - lgamma(a + b) by Stirling's series: as a difference of two large numbers it would lose ten digits.
    main = math.lgamma(a) - a * math.log(a + b) + a - (b - 0.5) * math.log1p(a / b)
    return main + _stirling_error(b) - _stirling_error(a + b)


def _stirling_error(z: float) -> float:
    """Return lgamma(z) minus Stirling's formula, to 1e-15 for z >= LARGE."""
    w = 1.0 / (z * z)
    return (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w / 1680.0))) / z


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of I_x, evaluated from the front (Lentz)."""
    c, d = 1.0, 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _not_zero(1.0 + term * d)
            c = _not_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            return value
    raise InvalidSetting(f"I_x({a:g}, {b:g}) did not settle at x = {x:g}. Expected fewer than 10^9 trials.")


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def _beta_quantile(p: float, a: float, b: float) -> float:
    return _bisect(lambda x: beta_share(a, b, x, 1.0 - x), p, 0.0, 1.0)


def _bisect(grows: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return where a growing function reaches its target, by bisection until no number lies between."""
    while low < (middle := 0.5 * (low + high)) < high:
        if grows(middle) < target:
            low = middle
        else:
            high = middle
    return high


def _of(k: int, n: int) -> tuple[int, int]:
    n = require_integer("n", n, 1, InvalidSetting)
    k = require_integer("k", k, 0, InvalidSetting)
    if k > n:
        raise InvalidSetting(f"k is {k} and n is {n}, expected k of n: at most n.")
    return k, n


def _share(name: str, value: float) -> float:
    meaning = "a number strictly between 0 and 1"
    number = require_number(name, value, meaning)
    if not 0.0 < number < 1.0:
        raise InvalidSetting(f"{name} is {number:g}, expected {meaning}.")
    return number


def _percent(share: float) -> str:
    """Return the share with two digits; near 1, with two digits of its distance to 1: 99.97 % is not 100 %."""
    percent = 100.0 * (1.0 - share if share > 0.99 else share)
    digits = max(0, 1 - math.floor(math.log10(percent))) if percent > 0.0 else 0
    return f"{100.0 * share:.{digits}f} %"


def amount(value: float | None) -> str:
    """Return a number for people: whole from a thousand on, four digits below."""
    if value is None:
        return "–"
    value = 0.0 if abs(value) < NOISE else value
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
