"""The portfolio bound, line by line: small portfolios of round numbers, and the real one beside plain logarithms."""

import math

import numpy as np
import pytest

from surefoot.base.nodes import EPISODE, FINE, NODES, OUTSIDE, PLACES, STAKES, WEIGHTS, spread
from surefoot.numerics.kernels.portfolio import (
    Portfolio,
    count_return,
    log_capitals,
    log_mean,
    mean_lower,
    portfolio_from,
    portfolio_tables,
    reaches,
    seen_returns_from,
)

SLACK = 2.0**-45
LAST = len(NODES) - 1


# ---- Counting


def seen(low, width, total=(0, 0)):
    return seen_returns_from(np.array(total), np.zeros(PLACES, dtype=np.int64), (low, width))


@pytest.mark.parametrize(("low", "width"), [(0, 12), (-5, 700), (3, 1), (-40, 2**20), (7, 0)])
def test_a_return_is_counted_where_it_belongs(low, width):
    """As `spread` says, at every return that is possible, or at 700 of them, and just outside."""
    nodes = [low + width * node // FINE + more for node in NODES for more in (-1, 0, 1)]
    some = sorted({*nodes, *range(low - 2, low + min(width, 700) + 3), low + width, low + width + 1})
    for x in some:
        counted = seen(low, width, (4, 9))
        count_return(counted, np.array([x - 6, 6]))
        k, above = spread(x, low, width)
        expected = np.zeros(PLACES, dtype=np.int64)
        if k == OUTSIDE:
            expected[OUTSIDE] = 1
        else:
            expected[k], expected[k + 1] = EPISODE - above, above
        assert counted.total.tolist() == [5, 9 + x]
        assert counted.weights.tolist() == expected.tolist()
        count_return(counted, np.array([x]))
        assert counted.weights.tolist() == (2 * expected).tolist()


def test_without_a_range_only_number_and_sum_are_counted():
    weights, total = np.zeros(PLACES, dtype=np.int64), np.array([2, 10])
    counted = seen_returns_from(total, weights, None)
    assert (counted.weights.size, counted.low, counted.width) == (0, 0, 0)
    count_return(counted, np.array([3, 4]))
    assert total.tolist() == [3, 17] and not weights.any()


def test_what_is_counted_shares_the_arrays():
    weights, total = np.zeros(PLACES, dtype=np.int64), np.array([0, 0])
    counted = seen_returns_from(total, weights, (5, 8))
    assert (counted.low, counted.width, counted.nodes.tolist()) == (5, 8, list(NODES))
    assert counted.total is total and np.shares_memory(counted.weights, weights) and counted.weights.shape == (PLACES,)


# ---- Capital


def small(logs, weights=(0.5, 0.5), inverse=None):
    """A portfolio of two stakes and three nodes with these logarithms, one table for each mean."""
    table = np.array(logs, dtype=float)
    means = np.array([4.0, 2.0, 1.0][: len(table)] if inverse is None else inverse)
    return Portfolio(means, table, np.log(weights), np.full((3, table.shape[2]), 77.0))


def test_capital_is_the_sum_over_the_nodes():
    """Weights 1, 1/2 and 0 of an episode; what was not seen does not count, were it the logarithm of 0."""
    portfolio = small([[[9.0, 9.0]] * 3, [[2.0, -1.0], [4.0, -8.0], [-math.inf, 3.0]]])
    weights, out = np.array([EPISODE, EPISODE // 2, 0, 5]), np.zeros(2)
    log_capitals(portfolio, weights, 1, 1, out)
    assert out.tolist() == [4.0 - SLACK * 4.0, -5.0 - SLACK * 5.0]
    expected = math.log(0.5 * math.exp(4.0) + 0.5 * math.exp(-5.0))
    assert expected - 1e-12 < log_mean(portfolio, out, out, 0.0) < expected
    log_capitals(portfolio, np.array([0, EPISODE, 0, 0]), 1, 1, out)  # what was there before is gone
    assert out.tolist() == [4.0 - SLACK * 4.0, -8.0 - SLACK * 8.0]
    log_capitals(portfolio, np.array([1, 0, 0, 0]), 1, 1, out)  # the least that a return counts anywhere
    assert out.tolist() == [2.0**-19 * (1.0 - SLACK), -(2.0**-20) * (1.0 + SLACK)]


def test_the_other_side_has_the_weights_in_reverse():
    portfolio = small([[[1.0, 2.0], [4.0, 8.0], [-16.0, 32.0]]])
    out = np.zeros(2)
    log_capitals(portfolio, np.array([EPISODE, 0, 3 * EPISODE, 9]), -1, 0, out)
    assert out.tolist() == [-13.0 - SLACK * 19.0, 38.0 - SLACK * 38.0]
    log_capitals(portfolio, np.array([0, EPISODE, 0, 9]), -1, 0, out)
    assert out.tolist() == [4.0 - SLACK * 4.0, 8.0 - SLACK * 8.0]


def test_signs_cancel_in_the_sum_and_not_in_what_is_taken_off():
    portfolio = small([[[2.0, -2.0], [-2.0, 2.0], [0.0, 0.0]]])
    out = np.zeros(2)
    log_capitals(portfolio, np.array([EPISODE, EPISODE, 0, 0]), 1, 0, out)
    assert out.tolist() == [-SLACK * 4.0, -SLACK * 4.0]


def test_the_mean_of_exponentials_on_the_line():
    """One stake: the line itself. What is taken off is 2^-45 of 1 + its size."""
    alone = small([[[0.0]]], (1.0,))
    first, last = np.array([-3.0]), np.array([5.0])
    for t, x in ((0.0, -3.0), (0.25, -1.0), (1.0, 5.0)):
        assert log_mean(alone, first, last, t) == x - SLACK * (1.0 + abs(x))
    two = small([[[0.0, 0.0]]], (0.25, 0.75))
    first, last = np.array([1.0, 2.0]), np.array([3.0, -2.0])
    for t in (0.0, 0.5, 1.0):
        x, y = 1.0 + 2.0 * t, 2.0 - 4.0 * t
        expected = math.log(0.25 * math.exp(x) + 0.75 * math.exp(y))
        assert expected - 1e-12 < log_mean(two, first, last, t) < expected
    far = np.array([5000.0, -5000.0])  # beyond what an exponential can be
    assert log_mean(two, far, far, 0.0) == pytest.approx(5000.0 + math.log(0.25), rel=1e-13)


def test_a_level_is_reached_where_the_mean_is_not_below_it():
    """The same answer as the mean's, far from the level and to the last bit: at both shortcuts, too."""
    for weights in ((1.0,), (0.25, 0.75), (2.0**-30, 1.0 - 2.0**-30)):
        portfolio = small([[[0.0] * len(weights)]], weights)
        for first, last in (((-3.0, 9.0), (5.0, -9.0)), ((40.0, -700.0), (40.0, 2.0)), ((0.0, 0.0), (0.0, 0.0))):
            ends = np.array(first[: len(weights)]), np.array(last[: len(weights)])
            for t in (0.0, 0.25, 1.0):
                line = ends[0] + t * (ends[1] - ends[0])
                mean, parts = log_mean(portfolio, *ends, t), np.log(weights) + line
                at = [mean, *line, *parts, *(parts - SLACK * (1.0 + abs(parts))), mean - 50.0, mean + 50.0, -2.0, 2.0]
                for level in [*at, *np.nextafter(at, -1e9), *np.nextafter(at, 1e9)]:
                    assert reaches(portfolio, *ends, t, float(level)) == (mean >= level)


# ---- The tables


def test_the_tables():
    inverse, logs, log_weights = portfolio_tables()
    assert inverse.shape == (255,) and logs.shape == (255, 65, 16) and log_weights.shape == (16,)
    assert log_weights.tolist() == pytest.approx([math.log(w) for w in WEIGHTS], abs=1e-15)
    for i in (0, 1, 100, 254):
        assert inverse[i] == pytest.approx(1.0 / math.sin(math.pi * (i + 1) / 512) ** 2, rel=1e-14)
        for k in (0, 1, 32, 64):
            for j, theta in enumerate(STAKES):
                factor = 1.0 - theta + theta * NODES[k] / FINE * inverse[i]
                if factor == 0.0:
                    assert logs[i, k, j] == -(2.0**60) - 2.0**-50 * (1.0 + 2.0**60)
                    continue
                assert logs[i, k, j] == pytest.approx(
                    math.log(factor) - 2.0**-50 * (1.0 + abs(math.log(factor))), abs=3e-16, rel=3e-16
                )
    assert portfolio_tables()[1] is logs and not any(table.flags.writeable for table in (inverse, logs, log_weights))
    made, other = portfolio_from(), portfolio_from()
    assert made.logs is logs and made.scratch.shape == (3, 16) and not made.scratch.any()
    assert not np.shares_memory(made.scratch, other.scratch)


# ---- The bound


def line(*capitals, weights=(1.0,)):
    """A portfolio in which one episode at the only node makes these capitals at means 1/4, 1/2, 1."""
    return small([[list(stakes)] for stakes in capitals], weights)


ONE = np.array([EPISODE, 0])


def test_the_bound_between_two_means():
    """Capitals of one stake 8, 4 and -4 at u = 1/m = 4, 2, 1: the line reaches 6 at u = 3, and 0 at 1.5."""
    portfolio = line([8.0], [4.0], [-4.0])
    for log_inverse, u in ((6.0, 3.0), (5.0, 2.5), (0.0, 1.5), (-2.0, 1.25)):
        assert mean_lower(portfolio, ONE, 1, log_inverse) == pytest.approx(1.0 / u, rel=1e-12)
        assert mean_lower(portfolio, ONE, 1, log_inverse) <= 1.0 / u


def test_the_bound_at_the_ends():
    """Nothing at a level above all capitals; at one below all, the largest mean, less 2^-45 of it."""
    portfolio = line([8.0], [4.0], [-4.0])
    assert mean_lower(portfolio, ONE, 1, 8.5) == 0.0
    assert mean_lower(portfolio, ONE, 1, -4.5) == 1.0 - SLACK
    assert mean_lower(portfolio, ONE, 1, 7.9999) > 0.25 and mean_lower(portfolio, ONE, 1, 8.0) == 0.0
    assert mean_lower(line([8.0], [4.0]), ONE, 1, 1.0) == 0.5 * (1.0 - SLACK)
    assert mean_lower(line([8.0]), ONE, 1, 1.0) == 0.25 * (1.0 - SLACK)


def test_two_stakes_that_meet_the_level_on_a_curve():
    """exp(6 - 4t) / 2 + exp(3 - t) / 2 = exp(3) at t = 0.829: u = 4 - 2t."""
    portfolio = line([6.0, 3.0], [2.0, 2.0], [-50.0, -50.0], weights=(0.5, 0.5))
    below, above = 0.0, 1.0
    for _ in range(100):
        t = (below + above) / 2
        below, above = (t, above) if (math.exp(6 - 4 * t) + math.exp(3 - t)) / 2 >= math.exp(3) else (below, t)
    found = mean_lower(portfolio, ONE, 1, 3.0)
    assert found == pytest.approx(1.0 / (4.0 - 2.0 * below), rel=1e-9) and found <= 1.0 / (4.0 - 2.0 * below)


def exact_bound(spread_over, log_inverse, sign):
    """By bisection in 1/m, with the lines between fixed means: W of the returns at these nodes, in plain floats."""
    inverse = [1.0 / math.sin(math.pi * i / 512) ** 2 for i in range(1, 256)]
    returns = {(NODES[k] if sign > 0 else FINE - NODES[k]) / FINE: n for k, n in spread_over.items()}

    def capitals(u):
        found = []
        for theta in STAKES:
            factors = {x: 1.0 - theta + theta * x * u for x in returns}
            ruined = any(factor <= 0.0 for factor in factors.values())
            found.append(-(2.0**60) if ruined else sum(n * math.log(factors[x]) for x, n in returns.items()))
        return found

    def log_wealth(found):
        most = max(found)
        return most + math.log(sum(w * math.exp(c - most) for w, c in zip(WEIGHTS, found, strict=True)))

    reached = [i for i, u in enumerate(inverse) if log_wealth(capitals(u)) >= log_inverse]
    if not reached:
        return 0.0
    if reached[-1] == 254:
        return 1.0 / inverse[-1]
    u, ahead = inverse[reached[-1]], inverse[reached[-1] + 1]
    left, right = capitals(u), capitals(ahead)
    low, high = 0.0, 1.0
    for _ in range(60):
        t = (low + high) / 2
        enough = log_wealth([a + t * (b - a) for a, b in zip(left, right, strict=True)]) >= log_inverse
        low, high = (t, high) if enough else (low, t)
    return 1.0 / (u + low * (ahead - u))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "episodes", [{0: 8, LAST: 12}, {LAST: 3}, {0: 300, LAST: 20}, {40: 50}, {10: 4, 30: 90, 50: 6}, {1: 10**6}]
)
def test_the_bound_of_the_real_portfolio(episodes, sign):
    weights = np.zeros(PLACES, dtype=np.int64)
    for node, n in episodes.items():
        weights[node] = n * EPISODE
    for log_inverse in (0.5, 3.0, 12.0):
        expected, found = (
            exact_bound(episodes, log_inverse, sign),
            mean_lower(portfolio_from(), weights, sign, log_inverse),
        )
        assert found == pytest.approx(expected, rel=1e-8) and found <= expected * (1 + 1e-12)
