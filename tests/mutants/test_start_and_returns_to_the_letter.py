"""Where episodes start and what returns say, line by line: short fractions, and a coin's ball by bisection."""

import math

import numpy as np
import pytest

from surefoot.numerics.kernels.kl import SUPPORTS
from surefoot.numerics.kernels.start_and_returns import (
    BaselineReturns,
    refresh_start,
    returns_bounds,
    start_bound,
    start_from,
)

NOTHING_SEEN = (0, 0, 0)


def start(weights, n=NOTHING_SEEN, log_union=2.0, alpha=0.5, scale=1.0, margin=0.0, final=0.0):
    own = None if weights is None else np.array(weights)
    return start_from(own, np.array(n), log_union, alpha, scale, margin, final)


def test_three_kinds_of_start():
    """0 one state, 1 known weights, 2 unknown."""
    one, known, unknown = start([0.0, 1.0, 0.0]), start([0.25, 0.0, 0.75]), start(None)
    assert (one.kind, known.kind, unknown.kind) == (0, 1, 2)
    assert (one.one, known.one, unknown.one) == (True, False, False)
    assert (one.first, known.first) == (1, 2)
    assert known.weights.tolist() == [0.25, 0.0, 0.75] and unknown.weights.tolist() == [0.0, 0.0, 0.0]
    assert unknown.states.tolist() == [0, 1, 2] and unknown.eps.tolist() == [math.inf]
    full = start_from(None, np.zeros(3, dtype=np.int64), 1.0, 2.0, 3.0, 4.0, 5.0)
    assert (full.log_union, full.alpha, full.scale, full.margin, full.final) == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert start_from(np.array([1.0]), np.zeros(1, dtype=np.int64), 1.0, 1.0, 1.0, 0.0, 0.0).kind == 0


def test_it_shares_what_was_seen():
    n = np.zeros(3, dtype=np.int64)
    assert np.shares_memory(start_from(None, n, 1.0, 1.0, 1.0, 0.0, 0.0).n, n)


def test_the_value_at_one_state():
    V = np.array([4.0, 2.0, 1.0])
    assert start_bound(start([0.0, 1.0, 0.0], margin=0.5), V, 1.0) == 2.0
    assert start_bound(start([0.0, 1.0, 0.0], margin=0.5), V, -1.0) == -2.0
    assert start_bound(start([0.0, 1.0 - 2.0**-31, 0.0]), V, -1.0) == -2.0  # one state is one state


def test_the_average_of_known_weights():
    """1/4 * 4 + 3/4 * 1 = 7/4, less the margin, and not below the smallest value of a state that is a start."""
    V = np.array([4.0, -50.0, 1.0])
    for margin, low, high in ((0.0, 1.75, -1.75), (0.5, 1.25, -2.25), (8.0, 1.0, -4.0)):
        known = start([0.25, 0.0, 0.75], margin=margin)
        assert start_bound(known, V, 1.0) == low
        assert start_bound(known, V, -1.0) == high


def test_known_starts_have_no_ball():
    for weights in ([0.0, 1.0, 0.0], [0.25, 0.0, 0.75]):
        known = start(weights, (3, 4, 5))
        refresh_start(known)
        assert known.eps[0] == math.inf and known.weights.tolist() == weights


def test_the_ball_of_an_unknown_start():
    """(2, 0, 1) seen, alpha = 1: m = 2! 1! / (3*4*5) = 1/30, likelihood (2/3)^2 (1/3) = 4/27, so the ratio is 40/9."""
    unknown = start(None, (2, 0, 1), alpha=1.0, scale=0.5)
    refresh_start(unknown)
    assert unknown.eps[0] == pytest.approx(0.5 * (2.0 + math.log(40 / 9)) / 3, rel=1e-13)
    assert unknown.weights.tolist() == [2 / 3, 0.0, 1 / 3]


def test_the_ball_of_an_unknown_start_with_unknown_supports():
    """(2, 0, 1) seen: two states with weight 1/6, one set of three with 1/16 each; three with 1/3, and 1/35. So m is
    1/288 + 1/105 = 131/10080, and the ratio 4/27 / m = 4480/393."""
    unknown = start(None, (2, 0, 1), alpha=SUPPORTS, scale=0.5)
    refresh_start(unknown)
    assert unknown.eps[0] == pytest.approx(0.5 * (2.0 + math.log(4480 / 393)) / 3, rel=1e-13)
    assert unknown.weights.tolist() == [2 / 3, 0.0, 1 / 3]


def test_an_unknown_start_before_the_first_episode():
    """Anywhere: the smallest value, or with the other sign the largest; and a ball that was there is gone."""
    unknown = start(None, margin=0.25)
    unknown.eps[0] = 1.0
    refresh_start(unknown)
    assert unknown.eps[0] == math.inf
    V = np.array([2.0, 0.5, 1.0])
    assert (start_bound(unknown, V, 1.0), start_bound(unknown, V, -1.0)) == (0.5, -2.0)


def test_the_worst_mean_over_an_unknown_start():
    """Half and half of 1 and 2, eps given: 1 + p with p (1-p) = exp(-2 eps) / 4, less the margin."""
    seen = start(None, (5, 5), margin=0.0625)
    refresh_start(seen)
    low = 0.5 - 0.5 * math.sqrt(-math.expm1(-2 * 0.01))
    seen.eps[0] = 0.01
    V = np.array([1.0, 2.0])
    assert start_bound(seen, V, 1.0) == pytest.approx(1 + low - 0.0625, abs=1e-9)
    assert start_bound(seen, V, -1.0) == pytest.approx(-2 + low - 0.0625, abs=1e-9)


# ---- Returns --------------------------------------------------------------------------------------------------------


def record(n, total, lowest=0.0, span=1.0, rounding=0.0, log_union=3.0, scale=1.0, margin=0.0):
    return BaselineReturns(
        np.array([n, int(total * 2**20)]), lowest, span, rounding, log_union, scale, margin, -math.inf, np.zeros(4)
    )


def ends(n, x, log_union, scale):
    """Of the ball of a coin with x heads in n tosses: rising factorials for the radius, bisection for the ends."""
    tails, heads = [math.lgamma(k + 0.5) - math.lgamma(0.5) for k in (n - x, x)]
    p = x / n
    log_p = sum(k * math.log(k / n) for k in (x, n - x) if k > 0)
    eps = scale * (log_union + log_p - tails - heads + math.lgamma(n + 1)) / n

    def divergence(q):
        return sum(u * math.log(u / v) for u, v in ((p, q), (1 - p, 1 - q)) if u > 0)

    found = []
    for outside in (1e-300, 1 - 1e-16):
        inside, out = p, outside
        for _ in range(200):
            middle = (inside + out) / 2
            inside, out = (middle, out) if divergence(middle) <= eps else (inside, middle)
        found.append(inside)
    return found


def test_no_episodes_or_no_evidence():
    assert returns_bounds(record(0, 0)) == (-math.inf, math.inf)
    assert returns_bounds(record(5, 2, log_union=math.inf)) == (-math.inf, math.inf)
    assert returns_bounds(record(1, 0.5))[0] > 0.0  # the control: one is something


def test_returns_that_are_all_the_same():
    assert returns_bounds(record(5, 2, lowest=0.25, span=0.0, rounding=0.125, margin=9.0)) == (0.25, 0.375)
    assert returns_bounds(record(5, 2, lowest=0.25, span=-1.0, rounding=0.125)) == (0.25, 0.375)
    assert returns_bounds(record(5, 2, span=0.5))[1] > 0.2  # the control: half a unit is a range


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_the_bounds_of_returns(scale):
    """20 episodes with returns in [1/2, 5/2] that sum to 25: x = (25 - 20/2) / 2 = 7.5 heads."""
    low, up = ends(20, 7.5, 3.0, scale)
    plain = returns_bounds(record(20, 25, 0.5, 2.0, scale=scale))
    assert plain == pytest.approx((0.5 + 2 * low, 0.5 + 2 * up), abs=1e-8)
    rounded = returns_bounds(record(20, 25, 0.5, 2.0, rounding=0.25, scale=scale))
    assert rounded == pytest.approx((plain[0], plain[1] + 0.25), abs=1e-12)
    # The margin is taken off inside, of the coin's mean, and once more outside.
    margin = 2.0**-10
    found = returns_bounds(record(20, 25, 0.5, 2.0, scale=scale, margin=margin))
    assert found == pytest.approx((plain[0] - 3 * margin, plain[1] + 3 * margin), abs=1e-12)


def test_a_bound_of_nothing_stays_nothing():
    """Returns that are never negative are worth at least 0, whatever the margin; all of them 0 say no more."""
    assert returns_bounds(record(20, 0, margin=0.125))[0] == 0.0
    assert returns_bounds(record(20, 0, lowest=-1.0, span=1.5, margin=0.125))[0] < -0.125
    assert returns_bounds(record(20, 20, span=1.0, margin=0.125))[1] == 1.125
    low = returns_bounds(record(20, -20, lowest=-1.0, span=1.5, margin=0.125))[0]
    assert low == -1.0  # not positive: nothing more is taken off
