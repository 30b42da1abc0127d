"""Statistics of few trials: intervals for means, exact bounds for shares, and agents compared
trial by trial.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.validation import as_floats, require_finite, require_integer, require_number
from surefoot.errors import InvalidSetting

NOISE = 1e-6  # sums of rounding errors over all episodes stay below


class Interval(NamedTuple):
    """A mean over n trials and a confidence interval of the expectation; one trial has none:
    nan.
    """

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
    # the exact sign test: the probability of so unequal wins and losses, or more, if neither is
    # better
    p: float


class PowerLaw(NamedTuple):
    """y = factor x^exponent, fitted to n points, with a confidence interval of the exponent; two
    points have none: nan.

    The interval is that of a straight line through logarithms: it is wide where the points do not
    lie on one.
    """

    exponent: float
    low: float
    high: float
    factor: float
    n: int

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.exponent:.2f}"
        return f"{self.exponent:.2f} ({self.low:.2f} to {self.high:.2f})"


def power_law(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> PowerLaw:
    """Fit y = factor x^exponent by ordinary least squares on logarithms, with Student's interval
    of the exponent.
    """
    one, two = (as_floats(name, some, InvalidSetting) for name, some in (("x", x), ("y", y)))
    if one.shape != two.shape or one.ndim != 1 or len(np.unique(one)) < 2:
        raise InvalidSetting(
            f"x has shape {one.shape} and y {two.shape}, expected points of at least two different "
            "x."
        )
    if not ((one > 0.0) & (two > 0.0)).all():
        raise InvalidSetting("x or y has numbers that are not above 0, which have no logarithm.")
    u, v, n = np.log(one), np.log(two), len(one)
    spread = float(((u - u.mean()) ** 2).sum())
    exponent = float(((u - u.mean()) * (v - v.mean())).sum()) / spread
    at_0 = float(v.mean()) - exponent * float(u.mean())
    half = math.nan
    if n > 2:
        left = float(((v - at_0 - exponent * u) ** 2).sum())
        half = t_quantile(0.5 + 0.5 * _share("level", level), n - 2) * math.sqrt(
            left / (n - 2) / spread
        )
    return PowerLaw(exponent, exponent - half, exponent + half, math.exp(at_0), n)


def t_quantile(p: float, dof: int) -> float:
    """Return the quantile of Student's t: the value that is not exceeded with probability p."""
    from scipy.special import stdtrit

    return float(stdtrit(require_integer("dof", dof, 1, InvalidSetting), _share("p", p)))


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Return the mean over trials with its t interval. One trial has none; equal values have one
    of width 0.
    """
    given = as_floats("values", values, InvalidSetting)
    if given.ndim != 1:
        raise InvalidSetting(f"values has shape {given.shape}, expected one number per trial.")
    require_finite("values", given, InvalidSetting)
    mean, low, high = (float(side[0]) for side in band(given[:, None], level))
    return Interval(mean, low, high, len(given))


def band(curves: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Return mean, low and high at every point of curves (trials, points): a t interval for each
    point by itself.

    nan where there is one trial only, and where a curve is nan.
    """
    given = as_floats("curves", curves, InvalidSetting)
    level = _share("level", level)
    if given.ndim != 2 or len(given) == 0:
        raise InvalidSetting(
            f"curves has shape {given.shape}, expected (trials, points) with at least one trial."
        )
    n = len(given)
    # The mean of equal numbers can miss them by an ulp: then they are the mean, and nothing is in
    # doubt.
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
    """Return the exact one-sided upper bound of a share of which k of n were seen. 0 of 10 gives
    0.2589.
    """
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


def paired(first: ArrayLike, second: ArrayLike, level: float = 0.95) -> Paired:
    """Return by how much the first is larger, trial by trial, and how often it is smaller (a win).

    Trials of the same number have the same random numbers, so their difference says more than two
    means would.
    """
    from scipy.special import bdtr

    one, two = (
        as_floats(name, some, InvalidSetting)
        for name, some in (("first", first), ("second", second))
    )
    if one.shape != two.shape or one.ndim != 1 or len(one) == 0:
        raise InvalidSetting(
            f"first has shape {one.shape} and second {two.shape}, expected one number per trial, "
            "of the same trials."
        )
    difference = mean_interval(one - two, level)
    wins, losses = int((one < two).sum()), int((one > two).sum())
    fewer, decided = min(wins, losses), wins + losses
    # both sides of a fair coin count
    p = 1.0 if wins == losses else min(1.0, 2.0 * float(bdtr(fewer, decided, 0.5)))
    return Paired(difference, wins, losses, len(one) - decided, p)


def span_in_words(known: Interval, show: Callable[[float], str]) -> str:
    """Return the ends of an interval. One of no width is none: all trials are equal."""
    if known.n == 1:
        return "one trial: no interval"
    if known.low == known.high:
        return f"the same in all {known.n} trials"
    low, high = show(known.low), show(known.high)
    return f"{low} to {high}" if low != high else "the same to these digits"


def summarise_optional(values: Sequence[int | None]) -> tuple[float | None, int]:
    """Return the median of when something happened, and in how many trials it never did (None:
    later than everything).

    The median is None where it lies among those; of two in the middle, both must have happened.
    """
    if not values:
        raise InvalidSetting(
            "values is empty, expected one entry per trial: a number, or None for never."
        )
    median = float(statistics.median(math.inf if k is None else k for k in values))
    return None if math.isinf(median) else median, sum(k is None for k in values)


def _beta_quantile(p: float, a: float, b: float) -> float:
    from scipy.special import betaincinv

    return float(betaincinv(a, b, p))


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
    """Return the share with two digits; near 1, with two digits of its distance to 1: 99.97 % is
    not 100 %.
    """
    percent = 100.0 * (1.0 - share if share > 0.99 else share)
    digits = max(0, 1 - math.floor(math.log10(percent))) if percent > 0.0 else 0
    return f"{100.0 * share:.{digits}f} %"


def amount(value: float | None) -> str:
    """Return a number for people: whole from a thousand on, four digits below."""
    if value is None:
        return "–"
    value = 0.0 if abs(value) < NOISE else value
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
