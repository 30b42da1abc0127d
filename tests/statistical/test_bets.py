"""Coverage of unknown rewards by coin and bets: the share of runs in which an end of the interval
EVER passes the mean.

A run is a row of independent rewards. It is spoilt if after any number of them the mean is below
the lower end or above the upper one: both ends share ONE level delta_0. Where the average of coin
and bets is far below 1/delta_0 at the mean, by the formula written out here once more, no end can
have passed it: there the kernel is asked at some numbers of rewards only; at all others it is
asked. docs/certificates.md has the formula, tests/reference/test_bets.py exact probabilities of up
to 120 rewards.

The test passes where an exact binomial test rejects "the share is delta_0 or more" at level 1 %.
Error rates:

- Miss: a defect that makes the share delta_0 or more is missed with probability at most 1 %. The
  controls (coin and bets with a capital of 1 each, the best stake in hindsight, sums of x (1 - x)
  that are too large) have to be above delta_0 by a test at level 1e-6. Their shares at delta_0 =
  0.5 are 0.70, 0.93 and 1.00 of fair coins: a control that stays unnoticed has a probability below
  1e-6;
- False alarm: bounds that used up all of delta_0 would be called wrong in 99 cases of 100. The most
  is used by fair coins: shares of 0.40, 0.125 and 0.033 at delta_0 = 0.5, 0.2 and 0.05 (of 1,000,
  8,000 and 8,000 runs of 1,000, 2,500 and 2,500 rewards), 0.37 in `make test`. At these shares
  there is a false alarm with less than 1e-6, and at delta_0 = 0.05 with 1 %. All other laws use
  less.

`make test` has 750 runs of 200 rewards at delta_0 = 0.5, `make test-full` 3,000 of 1,500 at three
levels. Seeds are fixed: deterministic.
"""

import math

import numpy as np
import pytest
from scipy.special import gammaln

from surefoot.base.bets import between
from surefoot.kernels.bets import average_bounds

UNITS = 2**20
STAKES = np.array([31 / 32, 3 / 4, 3 / 8, 1 / 8, 1 / 32, 1 / 128])
SHARES = np.array([3, 3, 3, 3, 2, 2]) / 16  # of the stakes, in a capital of 1
LAWS = {  # values in units, and how likely each is
    "fair coin": ((0, UNITS), (0.5, 0.5)),
    "coin of 0.9": ((0, UNITS), (0.1, 0.9)),
    "three values": ((0, UNITS * 3 // 8, UNITS), (0.2, 0.6, 0.2)),
    "uniform": (range(512, UNITS, 1024), (1 / 1024,) * 1024),
    "rarely large": ((UNITS // 100, UNITS), (0.98, 0.02)),
    "rarely small": ((0, UNITS - 1000), (0.01, 0.99)),
    "nearly constant": ((UNITS // 2, UNITS // 2 + 1), (0.5, 0.5)),
    "constant": ((UNITS * 3 // 10,), (1.0,)),
}
QUICK = pytest.param((0.5,), 750, 200, id="quick")
FULL = pytest.param((0.5, 0.2, 0.05), 3000, 1500, id="full", marks=pytest.mark.full)
FULL_OF_CONTROLS = pytest.param((0.5,), 2000, 1000, id="full", marks=pytest.mark.full)
VARYING = ("three values", "uniform")
BLOCK = 250  # runs that are drawn at once


def blocks(law, runs, visits):
    """Rewards (BLOCK, visits) in units, and their mean."""
    values, shares = (np.array(some) for some in LAWS[law])
    rng = np.random.default_rng([runs, visits])
    for _ in range(runs // BLOCK):
        yield (
            values[rng.choice(len(values), size=(BLOCK, visits), p=shares)],
            float(values @ shares) / UNITS,
        )


def log_sum(logs):
    """log sum exp over the first axis."""
    most = np.max(logs, axis=0)
    return most + np.log(np.exp(logs - most).sum(axis=0))


def log_coin(m, n, X):
    mixture = gammaln(X + 0.5) + gammaln(n - X + 0.5) - math.log(math.pi) - gammaln(n + 1)
    return mixture - X * math.log(m) - (n - X) * math.log1p(-m)


def log_average(m, n, X, Z):
    """At most the logarithm of 3/4 coin + 1/8 bets above m; minus infinity where m > X/n."""
    logs = [math.log(3 / 4) + log_coin(m, n, X)]
    for theta, share in zip(STAKES, SHARES, strict=True):
        c = -math.log1p(-theta) - theta
        u = np.minimum(1 / m, (theta / (2 * c) + 1) * X / np.maximum(X - Z, 1e-9))
        logs.append(
            math.log(share / 8) + theta * (X * u - n) - c * ((X - Z) * u**2 - 2 * X * u + n)
        )
    return np.where(m <= X / n, log_sum(np.array(logs)), -np.inf)


def spoilt(x, mean, levels):
    """In how many runs does an end of the kernel's interval ever pass the mean, at each level?"""
    n, X, Z = (
        np.arange(1.0, x.shape[1] + 1),
        x.cumsum(axis=1) / UNITS,
        between(x).cumsum(axis=1) / UNITS,
    )
    found = np.maximum(log_average(mean, n, X, Z), log_average(1 - mean, n, n - X, Z))
    anyway = np.unique(np.geomspace(1, x.shape[1], 20).astype(int)) - 1
    spoilt_at = []
    for level in levels:
        asked = found > -math.log(level) - 0.01
        asked[:, anyway] = True
        spoilt_at.append(
            sum(
                passes(n, *run, mean, level, np.flatnonzero(at))
                for *run, at in zip(X, Z, asked, strict=True)
            )
        )
    return spoilt_at


def passes(n, X, Z, mean, level, places):
    for k in places:
        low, up = average_bounds(n[k], X[k], Z[k], -math.log(level), 1.0, 0.0)
        if low > mean + 1e-12 or up < mean - 1e-12:
            return True
    return False


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("levels", "runs", "visits"), [QUICK, FULL])
def test_both_ends_hold_the_mean_for_all_numbers_of_rewards(law, levels, runs, visits, is_below):
    seen = np.zeros(len(levels), dtype=int)
    for x, mean in blocks(law, runs, visits):
        seen += spoilt(x, mean, levels)
    assert all(is_below(k, runs, level) for k, level in zip(seen, levels, strict=True))
    assert "coin" not in law or (seen > 0).all()  # it does happen


def capitals(x, mean):
    """The logarithms of the capitals (2, stakes, runs, visits) of bets on either side, factor by
    factor.
    """
    sides = ((x / UNITS, mean), (1 - x / UNITS, 1 - mean))
    return np.array([[np.log1p(t * (y / m - 1)).cumsum(axis=1) for t in STAKES] for y, m in sides])


def one_each(x, mean):
    """Control: "whichever is better" of coin, bets above and bets below."""
    n, X = np.arange(1.0, x.shape[1] + 1), x.cumsum(axis=1) / UNITS
    bets = [log_sum(side + np.log(SHARES)[:, None, None]) for side in capitals(x, mean)]
    return np.maximum(np.maximum(*bets), log_coin(mean, n, X))


def hindsight(x, mean):
    """Control: the stake that was the best."""
    return capitals(x, mean).max(axis=(0, 1))


def as_if_constant(x, mean):
    """Control: sums of x (1 - x) as large as they can be."""
    n, X = np.arange(1.0, x.shape[1] + 1), x.cumsum(axis=1) / UNITS
    Z = X * (1 - X / n)
    return np.maximum(log_average(mean, n, X, Z), log_average(1 - mean, n, n - X, Z))


@pytest.mark.parametrize(
    "law", ["fair coin", *(pytest.param(law, marks=FULL.marks) for law in VARYING)]
)
@pytest.mark.parametrize("wrong", [one_each, hindsight, as_if_constant])
@pytest.mark.parametrize(("levels", "runs", "visits"), [QUICK, FULL_OF_CONTROLS])
def test_what_is_no_average_fixed_beforehand_fails(law, wrong, levels, runs, visits, is_above):
    seen = np.zeros(len(levels), dtype=int)
    for x, mean in blocks(law, runs, visits):
        highest = wrong(x, mean).max(axis=1)
        seen += [int((highest >= -math.log(level)).sum()) for level in levels]
    assert all(is_above(k, runs, level) for k, level in zip(seen, levels, strict=True))
