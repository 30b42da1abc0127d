"""The bound of an unknown reward by coin and bets, line by line: the average written out once more, and searched."""

import math

import pytest

from surefoot.bounds import bets as readable
from surefoot.numerics.kernels import bets
from surefoot.numerics.kernels.bets import average_bounds, average_lower, log_average, log_mixture

STAKES = {31 / 32: 3 / 128, 3 / 4: 3 / 128, 3 / 8: 3 / 128, 1 / 8: 3 / 128, 1 / 32: 2 / 128, 1 / 128: 2 / 128}
SLACK = 2.0**-48
# n, X, Z: rewards of 0 and 1; all the same; in between; few; many
SEEN = [(10, 3, 0.0), (10, 10, 0.0), (40, 20, 10.0), (100, 70, 20.0), (3, 0.25, 0.2), (5000, 1000, 700.0), (1, 1, 0.0)]


def plain(kernel):
    """The kernel as plain Python, in which constants can be changed."""
    return getattr(kernel, "py_func", kernel)


def coin(n, X):
    return math.lgamma(X + 0.5) + math.lgamma(n - X + 0.5) - math.log(math.pi) - math.lgamma(n + 1)


def parts(m, n, X, Z):
    """The logarithms of coin and bets, with their weights."""
    found = [math.log(0.75) + coin(n, X) - X * math.log(m) - ((n - X) * math.log(1 - m) if n > X else 0.0)]
    for theta, weight in STAKES.items():
        c = -math.log(1 - theta) - theta
        peak = X / (X - Z) * (1 + theta / c / 2)
        u = 1 / m if 1 / m < peak else peak
        found.append(math.log(weight) + theta * (X * u - n) - c * ((X - Z) * u * u - 2 * X * u + n))
    return found


def by_hand(m, n, X, Z):
    logs = parts(m, n, X, Z)
    return max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs))


def lower_by_hand(n, X, Z, level):
    below, above = 0.0, X / n
    for _ in range(100):
        m = (below + above) / 2
        below, above = (m, above) if m > 0 and by_hand(m, n, X, Z) >= level else (below, m)
    return below


@pytest.mark.parametrize(("n", "X", "Z"), SEEN)
def test_the_mixture_of_the_coin(n, X, Z):
    found, exact = log_mixture(float(n), float(X)), coin(n, X)
    taken_off = SLACK * (2 + abs(math.lgamma(X + 0.5)) + abs(math.lgamma(n - X + 0.5)) + math.lgamma(n + 1))
    assert found == pytest.approx(exact - taken_off, abs=3e-15 * (1 + abs(exact)))
    assert found < exact


@pytest.mark.parametrize(("n", "X", "Z"), SEEN)
@pytest.mark.parametrize("share", [0.999, 0.8, 0.4, 0.1, 0.001])
def test_the_average(n, X, Z, share):
    """A little below what it is by hand: what is taken off is 2^-48 of all that was summed, at least and nearly."""
    m = share * X / n
    found, exact = log_average(m, n, X, Z, coin(n, X)), by_hand(m, n, X, Z)
    assert found == pytest.approx(exact, rel=1e-11, abs=1e-11)
    assert found < exact


def test_bets_that_win_by_far():
    """Rewards of 0.5, always: the coin's capital is smaller by a factor that is too large for a float."""
    n, X, Z = 50_000, 25_000, 12_500.0
    logs = parts(0.45, n, X, Z)
    assert max(logs[1:]) - logs[0] > 710.0
    assert log_average(0.45, n, X, Z, coin(n, X)) == pytest.approx(by_hand(0.45, n, X, Z), rel=1e-11)


@pytest.mark.parametrize(("n", "X", "Z"), SEEN)
@pytest.mark.parametrize("share", [0.999, 0.8, 0.4, 0.1])
def test_what_is_taken_off(monkeypatch, n, X, Z, share):
    """A part of all that was summed into each logarithm: here a 64th of it, so that every term shows."""
    monkeypatch.setattr(bets, "SLACK", 2.0**-6)
    m, some = share * X / n, 2.0**-6
    sizes = [abs(coin(n, X)) - X * math.log(m) - (n - X) * math.log(1 - m) + 1]
    for theta in STAKES:
        c = -math.log(1 - theta) - theta
        u = min(1 / m, X / (X - Z) * (1 + theta / c / 2))
        sizes.append(theta * (X * u + n) + c * ((X - Z) * u * u + 2 * X * u + n) + 1)
    logs = [x - some * size for x, size in zip(parts(m, n, X, Z), sizes, strict=True)]
    found = max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs))
    expected = found - some * (1 + abs(found))
    assert plain(log_average)(m, n, X, Z, coin(n, X)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    size = 2 + abs(math.lgamma(X + 0.5)) + abs(math.lgamma(n - X + 0.5)) + math.lgamma(n + 1)
    assert plain(log_mixture)(n, X) == pytest.approx(coin(n, X) - some * size, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("n", "X", "Z"), SEEN)
@pytest.mark.parametrize("level", [0.25, 3.0, 12.0])
def test_the_lower_end(n, X, Z, level):
    found, expected = average_lower(n, X, Z, level), lower_by_hand(n, X, Z, level)
    expected = expected if expected > X / n * 2.0**-60 else 0.0
    assert found == pytest.approx(expected, rel=1e-9, abs=2e-12) and found <= expected * (1 + 1e-12)


def test_nothing_is_proved_of_nothing():
    assert average_lower(5.0, 0.0, 0.0, 3.0) == 0.0
    assert average_lower(5.0, 2.0**-40, 0.0, 3.0) == 0.0  # reached only far below 2^-60
    assert average_lower(5.0, 2.0**-40, 0.0, 0.25) == 0.0
    assert average_lower(1.0, 0.5, 0.25, 12.0) > 0.0
    assert average_bounds(0.0, 0.0, 0.0, 3.0, 1.0, 0.25) == (0.0, 1.0)
    assert average_bounds(0.5, 0.25, 0.1, 1.0, 1.0, 0.0) != (0.0, 1.0)  # of half a visit, in a forecast


def test_the_search_is_short(monkeypatch):
    """So many evaluations of the average, at most: a bracket by halving, and thirty false positions."""
    seen, really = [], plain(log_average)

    def counted(*given):
        seen.append(given[0])
        return really(*given)

    monkeypatch.setattr(bets, "log_average", counted)
    for n, X, Z in SEEN:
        for level in (0.25, 3.0, 12.0):
            seen.clear()
            plain(average_lower)(n, X, Z, level)
            halvings = next((k for k, m in enumerate(seen) if k and m != seen[k - 1] / 2), len(seen))
            assert len(seen) - halvings <= 32


@pytest.mark.parametrize(("n", "X", "Z"), SEEN[:6])
def test_both_ends(n, X, Z):
    low, up = lower_by_hand(n, X, Z, 3.0), 1 - (lower_by_hand(n, n - X, Z, 3.0) if n > X else 0.0)
    assert average_bounds(n, X, Z, 3.0, 1.0, 0.0) == pytest.approx((low, up), abs=1e-11)
    margin = 2.0**-10
    expected = max(low - margin, 0.0), min(up + margin, 1.0)
    assert average_bounds(n, X, Z, 3.0, 1.0, margin) == pytest.approx(expected, abs=1e-11)
    assert average_bounds(n, X, Z, 3.0, 1.0, 5.0) == (0.0, 1.0)
    mean = X / n
    for scale in (0.0, 0.25, 4.0):
        wide = math.sqrt(scale)
        expected = max(mean - wide * (mean - low), 0.0), min(mean + wide * (up - mean), 1.0)
        assert average_bounds(n, X, Z, 3.0, scale, 0.0) == pytest.approx(expected, abs=1e-11)


def test_sums_beyond_their_range_are_cut():
    assert average_bounds(6.0, 6.5, 0.0, 3.0, 1.0, 0.0) == average_bounds(6.0, 6.0, 0.0, 3.0, 1.0, 0.0)
    assert average_bounds(6.0, -0.5, 0.0, 3.0, 1.0, 0.0) == average_bounds(6.0, 0.0, 0.0, 3.0, 1.0, 0.0)


@pytest.mark.parametrize(("n", "X", "Z"), SEEN)
def test_the_readable_version(n, X, Z):
    """The same average, and both of its ends; the search ends where floats do."""
    for share in (0.999, 0.8, 0.4, 0.1, 0.001):
        m = share * X / n
        assert readable.log_average(m, n, X, Z) == pytest.approx(by_hand(m, n, X, Z), rel=1e-12, abs=1e-12)
    for level in (0.25, 3.0, 12.0):
        low, up = (lower_by_hand(n, x, Z, level) if x else 0.0 for x in (X, n - X))
        assert readable.mean_lower(n, X, Z, level) == pytest.approx(low, rel=1e-11, abs=1e-30)
        assert readable.mean_bounds(n, X, Z, level) == pytest.approx((low, 1.0 - up), rel=1e-11, abs=1e-30)


def test_the_readable_version_of_nothing():
    assert readable.mean_bounds(0, 0.0, 0.0, 3.0) == (0.0, 1.0)
    assert readable.mean_bounds(0.5, 0.25, 0.1, 1.0) != (0.0, 1.0)
    assert readable.mean_lower(5, 0.0, 0.0, 0.25) == 0.0
    assert readable.mean_lower(1, 0.5, 0.25, 0.25) > 0.0


@pytest.mark.parametrize(("largest", "found"), [(2.0**-200, 2.0**-200), (2.0**-201, 0.0)])
def test_the_search_of_the_readable_version_has_200_steps(monkeypatch, largest, found):
    """Down from 1 by halves: the 200th is reached, and no further one."""
    monkeypatch.setattr(readable, "log_average", lambda m, n, X, Z: 0.0 if m <= largest else -1.0)
    assert readable.mean_lower(1.0, 1.0, 0.0, 0.0) == found


def test_the_readable_version_at_its_ends():
    """A mean of 1 where every reward was 1, and no reward at all."""
    assert readable.log_average(1.0, 10.0, 10.0, 0.0) == pytest.approx(by_hand(1.0, 10, 10, 0.0), rel=1e-12)
    assert readable.mean_bounds(0.0, 0.0, 0.0, 3.0) == (0.0, 1.0)
