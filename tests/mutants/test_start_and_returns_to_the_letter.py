"""Where episodes start and what returns say, line by line: short fractions, and a portfolio's capital by bisection."""

import math

import numpy as np
import pytest

from surefoot.base.nodes import EPISODE, LOST, OUTSIDE, PLACES, STAKES, WEIGHTS
from surefoot.numerics.kernels.kl import SUPPORTS
from surefoot.numerics.kernels.portfolio import portfolio_from, seen_returns_from
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

UNITS = 2**20
LAST = OUTSIDE - 1  # the node of the highest return


def record(spread, lowest=0.0, span=1.0, rounding=0.0, upper=False, log_inverse=3.0, margin=0.0, within=True):
    """So many episodes at each of these nodes. Their number and their sum are those of other episodes: not read."""
    weights = np.zeros(PLACES, dtype=np.int64)
    for node, episodes in spread.items():
        weights[node] = episodes * (1 if node == OUTSIDE else EPISODE)
    ends = (int(lowest * UNITS), int(span * UNITS)) if within else None
    seen = seen_returns_from(np.array([99, 77 * UNITS]), weights, ends)
    return BaselineReturns(seen, portfolio_from(), rounding, upper, log_inverse, margin, -math.inf)


def lower_mean(zeros, ones, log_inverse):
    """The m at which sum_j w_j (1 - theta_j)^zeros (1 - theta_j + theta_j / m)^ones is exp(log_inverse)."""
    below, above = 0.0, 1.0
    for _ in range(200):
        m = (below + above) / 2
        factors = zip(STAKES, WEIGHTS, strict=True)
        W = sum(w * (1 - theta) ** zeros * (1 - theta + theta / m) ** ones for theta, w in factors)
        below, above = (m, above) if math.exp(log_inverse) <= W else (below, m)
    return below


def test_no_episodes_or_no_evidence():
    nothing = (-math.inf, math.inf)
    for upper in (False, True):
        assert returns_bounds(record({}, upper=upper)) == nothing
        assert returns_bounds(record({0: 5, LAST: 5}, upper=upper, within=False)) == nothing
        assert returns_bounds(record({OUTSIDE: 5}, upper=upper)) == nothing
    assert returns_bounds(record({LAST: 1}, log_inverse=0.5))[0] > 0.0  # the control: one is something
    assert returns_bounds(record({0: 1}, log_inverse=0.5, upper=True))[1] < 1.0
    assert returns_bounds(record({0: 1}, lowest=-1.0))[0] == -1.0  # at the first node, too, a return is a return


def test_returns_that_are_all_the_same():
    """Of a range without width all are at the first node, and nothing is to be bet on."""
    same = {"lowest": 0.25, "span": 0.0, "rounding": 0.125}
    assert returns_bounds(record({0: 5}, **same, margin=9.0)) == (0.25, math.inf)
    assert returns_bounds(record({0: 5}, **same, upper=True)) == (-math.inf, 0.375)
    assert returns_bounds(record({0: 5}, **same, upper=True, margin=0.5)) == (-math.inf, 0.875)
    assert returns_bounds(record({0: 5}, span=0.5, upper=True))[1] > 0.2  # the control: half a unit is a range


@pytest.mark.parametrize(("zeros", "ones"), [(8, 12), (0, 20), (30, 10)])
def test_the_bounds_of_returns(zeros, ones):
    """So many episodes returned 1/2, and so many 5/2. A bound is found between two of 255 means: hardly below it."""
    spread = {0: zeros, LAST: ones}
    ends = {"lowest": 0.5, "span": 2.0, "log_inverse": 2.5}
    low, up = lower_mean(zeros, ones, 2.5), 1 - lower_mean(ones, zeros, 2.5) + LOST
    plain, top = returns_bounds(record(spread, **ends)), returns_bounds(record(spread, **ends, upper=True))
    assert (plain[1], top[0]) == (math.inf, -math.inf)
    assert plain[0] == pytest.approx(0.5 + 2 * low, abs=1e-3) and plain[0] <= 0.5 + 2 * low
    assert top[1] == pytest.approx(0.5 + 2 * up, abs=1e-3) and top[1] >= 0.5 + 2 * up
    assert 0.6 < plain[0] < 0.5 + 2 * ones / (zeros + ones) < top[1] + 1e-6
    # What rewards lost by rounding is added above, where it may be missing; the margin is on either side.
    for rounding, margin in ((0.25, 0.0), (0.0, 2.0**-10), (0.25, 2.0**-10)):
        more = {**ends, "rounding": rounding, "margin": margin}
        assert returns_bounds(record(spread, **more))[0] == plain[0] - margin
        found = returns_bounds(record(spread, **more, upper=True))[1]
        assert found == pytest.approx(top[1] + rounding + margin, abs=1e-15)


def test_a_smaller_share_of_delta_proves_less():
    lows = [returns_bounds(record({0: 8, LAST: 12}, log_inverse=x))[0] for x in (1.0, 3.0, 6.0)]
    ups = [returns_bounds(record({0: 12, LAST: 8}, log_inverse=x, upper=True))[1] for x in (1.0, 3.0, 6.0)]
    assert lows == sorted(lows, reverse=True) and ups == sorted(ups) and len({*lows, *ups}) == 6
    assert returns_bounds(record({0: 8, LAST: 12}, log_inverse=math.inf))[0] == 0.0


def test_a_bound_of_nothing_stays_nothing():
    """Returns are worth at least the lowest, whatever the margin; all of them the lowest say no more."""
    assert returns_bounds(record({0: 20}, margin=0.125))[0] == 0.0
    assert returns_bounds(record({0: 20}, lowest=-1.0, span=1.5, margin=0.125))[0] == -1.0
    assert returns_bounds(record({LAST: 20}, lowest=-1.0, span=1.5, margin=2.0**-20))[0] > -1.0
    top = returns_bounds(record({LAST: 20}, margin=0.125, upper=True))[1]
    assert top == pytest.approx(1.125 + LOST, abs=1e-15)
