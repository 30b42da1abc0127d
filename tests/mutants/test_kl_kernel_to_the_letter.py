"""The kernel of KL certificates, line by line: radii by gamma functions of whole numbers, the worst mean by another
search, directed rounding in fractions, and backups without data, which are exact."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numba.core import config

from surefoot.numerics.kernels.bets import average_bounds
from surefoot.numerics.kernels.kl import (
    BEST,
    BOTH,
    FEW,
    HUGE,
    LOWER,
    SUPPORTS,
    TERMS,
    TINY,
    RewardArrays,
    add,
    balls_from,
    best_action,
    coin_bounds,
    coin_radius,
    dirichlet_radius,
    extremes,
    gather,
    log_gamma_ratio,
    log_supports,
    look_ahead_balls,
    mixture_radius,
    q_kl,
    refresh_kl,
    supports_radius,
    worst_mean,
    worst_mean_at_once,
    worst_mean_within,
)

UNITS = 2**20
ALL = np.zeros((0, 0))  # every pair is needed


# ---- Radii ----------------------------------------------------------------------------------------------------------


def rising(x, k):
    """Gamma(x + k) / Gamma(x) = x (x+1) ... (x+k-1), exactly."""
    product = Fraction(1)
    for i in range(k):
        product *= x + i
    return product


def radius(n_i, alpha, log_union):
    """(log(1/delta_0) + sum n_i log(n_i/n) - log m) / n, with m by rising factorials in fractions."""
    n, alpha = sum(n_i), Fraction(alpha)
    m = math.prod((rising(alpha, k) for k in n_i), start=Fraction(1)) / rising(len(n_i) * alpha, n)
    likelihood = math.prod((Fraction(k, n) ** k for k in n_i), start=Fraction(1))
    ratio = likelihood / m
    return (log_union + math.log(ratio.numerator) - math.log(ratio.denominator)) / n


def test_the_ratio_of_two_gammas():
    assert log_gamma_ratio(3.0, 0.5) == pytest.approx(math.log(0.5 * 1.5 * 2.5), rel=1e-14)
    assert log_gamma_ratio(0.0, 0.3) == 0.0


@pytest.mark.parametrize("alpha", [0.5, 0.25, 2.0])
@pytest.mark.parametrize("n_i", [(3, 0, 5), (1, 1, 1), (0, 0, 7), (10, 20, 2)])
def test_the_radius_of_whole_counts(n_i, alpha):
    """The outcomes are listed in another order, and among others that are not possible."""
    succ, counted, p_hat = np.array([4, 0, 2, 1]), np.full(5, 99), np.full(4, np.nan)
    counted[[4, 0, 2]] = n_i
    found = dirichlet_radius(counted, succ, 3, float(sum(n_i)), alpha, 2.5, p_hat)
    assert found == pytest.approx(radius(n_i, alpha, 2.5), rel=1e-13)
    assert p_hat[:3].tolist() == [k / sum(n_i) for k in n_i]
    assert np.isnan(p_hat[3])


def test_what_rounding_adds_to_a_radius():
    """(m + 8) 2^-52 of everything summed. One outcome alone has a radius of log(1/delta_0) and nothing more: the
    gammas cancel to the last bit, so what is left is that.
    """
    alpha, n = 1e6, 2.0**20
    for log_union in (0.0, 3.0, 1e9):
        found = dirichlet_radius(np.array([int(n)]), np.zeros(1, dtype=np.int64), 1, n, alpha, log_union, np.zeros(1))
        size = log_union + 2 * math.lgamma(alpha) + 2 * math.lgamma(n + alpha)
        exact = Fraction(log_union) + 9 * Fraction(1, 2**52) * Fraction(size)
        assert abs(Fraction(found) * Fraction(n) / exact - 1) < 1e-12


def test_what_rounding_adds_counts_the_likelihood():
    """Two tosses, one of each, alpha = 1: m = 1/6, likelihood 1/4. With log(1/delta_0) = log(2/3) all cancels but the
    slack, 10 * 2^-52 of (log(2/3) + lgamma(4) + 2 log 2), which is 2.77: 6.2e-15; errors are a tenth of that."""
    found = dirichlet_radius(np.array([1, 1]), np.arange(2), 2, 2.0, 1.0, math.log(2 / 3), np.zeros(2))
    assert 5.4e-15 < 2 * found < 7.0e-15


# ---- Unknown supports -----------------------------------------------------------------------------------------------


def term(k, d, m, n):
    """log of w_k C(m-d, k-d) / C(m, k) Gamma(k/2) / Gamma(n + k/2)."""
    w = Fraction(1, m if k == m else k * (k + 1)) * Fraction(math.comb(m - d, k - d), math.comb(m, k))
    return math.log(w.numerator) - math.log(w.denominator) + math.lgamma(k / 2) - math.lgamma(n + k / 2)


def log_sum(logs):
    most = max(logs)
    return most + math.log(math.fsum(math.exp(x - most) for x in logs))


@pytest.mark.parametrize(
    ("d", "m", "n"),
    [
        (1, 1, 5),
        (2, 2, 9),
        (1, 2, 1),
        (1, 2, 40),
        (1, 3, 1),
        (2, 3, 2),
        (2, 5, 3),
        (3, 7, 11),
        (5, 40, 6),
        (1, 60, 0.5),
    ],
)
def test_the_sum_over_supports(d, m, n):
    """All terms from k = d to m, of few and many visits, and of less than one."""
    expected = log_sum([term(k, d, m, n) for k in range(d, m + 1)])
    assert log_supports(d, m, float(n))[0] == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(("d", "n"), [(1, 1), (3, 3), (4, 5), (10, 10)])
def test_where_the_sum_over_supports_ends(d, n):
    """At k = 4d + 63, and with the last term. Each term matters here: few were seen, each of them once."""
    m = 500
    assert TERMS == 64
    expected = log_sum([term(k, d, m, n) for k in [*range(d, 4 * d + 64), m]])
    found, size = log_supports(d, m, float(n))
    assert found == pytest.approx(expected, abs=1e-12)
    assert size == pytest.approx(sizes(d, m, n) + 3 * d + 64, rel=1e-12)


def sizes(d, m, n):
    """All that is summed into log T_m, and into the logarithm of the first term."""
    last = abs(math.lgamma(m / 2)) + abs(math.lgamma(n + m / 2)) + math.log(m)
    if d == m:
        return last
    first = abs(math.lgamma(d / 2)) + abs(math.lgamma(n + d / 2)) + math.log(d * (d + 1))
    return last + first + 2 * math.lgamma(m + 1)


@pytest.mark.parametrize(("d", "n"), [(3, 1000), (60, 2000)])
def test_the_sum_over_supports_ends_where_terms_no_longer_count(d, n):
    """At the first that is below 2^-60 of the sum: of three states after 1,000 visits terms only fall, of 60 states
    after 2,000 they rise a hundredfold before they fall."""
    assert TINY == 2.0**-60
    logs = [term(k, d, 500, n) for k in range(d, 4 * d + 64)]
    found, size = log_supports(d, 500, float(n))
    assert found == pytest.approx(log_sum(logs), rel=1e-14)
    counted = round(size - sizes(d, 500, n))
    sums = [log_sum(logs[: i + 1]) for i in range(len(logs))]
    assert counted == 1 + next(i for i, x in enumerate(logs) if x - sums[i] < -60 * math.log(2))
    assert (max(logs) - logs[0] > math.log(100)) == (d == 60)


def test_the_size_of_a_sum_with_one_support():
    assert log_supports(2, 2, 7.0)[1] == pytest.approx(sizes(2, 2, 7), rel=1e-14)


@pytest.mark.parametrize(("d", "m"), [(300, 1200), (700, 2800)])
def test_a_sum_over_supports_beyond_what_floats_hold(d, m):
    """Every visit brought a new state: terms grow by more than 2^500, and by more than 2^1024 of the larger one."""
    assert HUGE == 2.0**500
    logs = [term(k, d, m, d) for k in range(d, m + 1)]
    grown = int((max(logs) - logs[0]) / math.log(HUGE))
    assert grown == (1 if d == 300 else 2)
    found, size = log_supports(d, m, float(d))
    assert found == pytest.approx(log_sum(logs), abs=1e-8)
    assert size == pytest.approx(sizes(d, m, d) + m - d + grown * math.log(HUGE), abs=1e-6)


def test_a_sum_over_supports_of_more_visits_than_floats_tell_apart():
    """Where lgamma is off by thousands, the second term is at most sqrt(a / (x - 1/4)) of what its weight allows."""
    for n in (2.0**56, 2.0**60, 2.0**62):
        for d, m in ((1, 2), (1, 5), (2, 9), (30, 40)):
            found, size = log_supports(d, m, n)
            most = max(term(d, d, m, n), term(m, d, m, n))
            assert math.isfinite(found) and abs(found - most) <= 2.0**-50 * size


@pytest.mark.parametrize("n_i", [(3, 0, 5), (1, 1, 1), (0, 0, 7), (10, 20, 2), (0, 1, 0)])
def test_the_radius_with_unknown_supports(n_i):
    """The outcomes are listed in another order, and among others that are not possible."""
    succ, counted, p_hat = np.array([4, 0, 2, 1]), np.full(5, 99), np.full(4, np.nan)
    counted[[4, 0, 2]] = n_i
    n, d = sum(n_i), sum(k > 0 for k in n_i)
    half = math.prod((rising(Fraction(1, 2), k) for k in n_i), start=Fraction(1))
    likelihood = math.prod((Fraction(k, n) ** k for k in n_i), start=Fraction(1))
    log_m = math.log(half) + log_sum([term(k, d, 3, n) for k in range(d, 4)])
    expected = (2.5 + math.log(likelihood) - log_m) / n
    for found in (
        supports_radius(counted, succ, 3, float(n), 2.5, p_hat),
        mixture_radius(counted, succ, 3, float(n), SUPPORTS, 2.5, p_hat),
    ):
        assert found == pytest.approx(expected, rel=1e-13)
        assert p_hat[:3].tolist() == [k / n for k in n_i]
        assert np.isnan(p_hat[3])


def test_which_mixture_alpha_stands_for():
    """A number above 0 itself, 0 for one over the possible outcomes, SUPPORTS for unknown supports."""
    n_i, succ, scratch = np.array([2, 1, 0, 0]), np.arange(4), np.zeros(4)
    assert SUPPORTS == -1.0
    for alpha, number in ((0.5, 0.5), (2.0, 2.0), (0.0, 0.25), (1e-9, 1e-9)):
        expected = dirichlet_radius(n_i, succ, 4, 3.0, number, 2.0, scratch)
        assert mixture_radius(n_i, succ, 4, 3.0, alpha, 2.0, scratch) == expected
    expected = supports_radius(n_i, succ, 4, 3.0, 2.0, scratch)
    assert mixture_radius(n_i, succ, 4, 3.0, SUPPORTS, 2.0, scratch) == expected


def test_what_rounding_adds_to_a_radius_with_unknown_supports():
    """(d + 16) 2^-52 of everything summed. One possible outcome: m = 1, all cancels but log(1/delta_0) and that."""
    one, n = np.zeros(1, dtype=np.int64), 2.0**40
    for visits in (1.0, 2.0, 5.0, n):
        size = 2 * math.lgamma(0.5) + 2 * abs(math.lgamma(visits + 0.5))
        found = supports_radius(np.array([int(visits)]), one, 1, visits, 0.0, np.zeros(1))
        assert found * visits == pytest.approx(17 * 2.0**-52 * size, rel=1e-12)
    for log_union in (3.0, 1e15):
        found = supports_radius(np.array([int(n)]), one, 1, n, log_union, np.zeros(1))
        size = log_union + 2 * math.lgamma(0.5) + 2 * math.lgamma(n + 0.5)
        assert found * n == pytest.approx(log_union + 17 * 2.0**-52 * size, rel=1e-9)
    # Two outcomes, each seen half of the time: the likelihood counts, too.
    half = int(n) // 2
    found = supports_radius(np.array([half, half]), np.arange(2), 2, n, 0.0, np.zeros(2))
    size = 2 * math.lgamma(half + 0.5) + 2 * math.lgamma(0.5) + math.lgamma(n + 1) + n * math.log(2) + math.log(2)
    exact = 0.5 * math.log(n * math.pi / 2) + math.log(2)  # log of 2^-n over half of the Dirichlet mixture, within 1/n
    assert found * n == pytest.approx(exact + 18 * 2.0**-52 * size, abs=2 * 2.0**-52 * size)


def test_what_rounding_adds_counts_the_likelihood_with_unknown_supports():
    """Two tosses, one of each: m = 1/16, likelihood 1/4. With log(1/delta_0) = -log 4 all cancels but the slack,
    18 * 2^-52 of 4 log 2: 1.1e-14; errors are a tenth of that."""
    found = supports_radius(np.array([1, 1]), np.arange(2), 2, 2.0, -math.log(4), np.zeros(2))
    assert 0.9e-14 < 2 * found < 1.3e-14


def test_a_backup_with_unknown_supports():
    """Of 2 possible states of 3, of all and of one."""
    n_sas = np.zeros((1, 3, 1, 3), dtype=np.int64)
    n_sas[0, :, 0] = [[0, 4, 2], [3, 1, 0], [0, 5, 0]]
    support = np.array([[[False, True, True], [True, True, True], [False, True, False]]])
    evidence = refreshed(evidence_of(n_sas, (np.zeros((1, 3)), None, None), support=support, alpha=SUPPORTS, scale=0.5))
    parts = ((np.array([4, 2]), 6.0), (np.array([3, 1, 0]), 4.0), (np.array([5]), 5.0))
    for pair, (n_i, n) in enumerate(parts):
        m = len(n_i)
        assert evidence.eps[0, pair] == 0.5 * supports_radius(n_i, np.arange(m), m, n, 2.0, np.zeros(m))


# ---- Coins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "x"), [(8, 3), (5, 5), (6, 0), (1, 1), (30, 29)])
def test_the_radius_of_a_coin(n, x):
    for log_union, scale in ((2.5, 1.0), (4.0, 0.25)):
        expected = scale * radius((n - x, x), 0.5, log_union)
        assert coin_radius(float(n), float(x), log_union, scale) == pytest.approx(expected, rel=1e-13)


def test_the_radius_of_a_coin_with_a_fraction_of_a_head():
    """n = 2, x = 1/2: log m = -log 2 + lgamma(1) - lgamma(1/2) + lgamma(2) - lgamma(1/2) = -log 2 - log pi."""
    log_p = 0.5 * math.log(0.25) + 1.5 * math.log(0.75)
    expected = (3.0 + log_p + math.log(2) + math.log(math.pi)) / 2
    assert coin_radius(2.0, 0.5, 3.0, 1.0) == pytest.approx(expected, rel=1e-13)


def test_what_rounding_adds_to_the_radius_of_a_coin():
    """10 * 2^-52 of everything summed. Next to nothing was tossed: all gammas are of 1 or of 1/2, whose logarithms add
    up to log(pi), and nothing else is left."""
    n = 2.0**-60
    for x in (n, 0.0):
        assert coin_radius(n, x, 0.0, 1.0) == pytest.approx(10 * 2.0**-52 * math.log(math.pi) / n, rel=1e-12)
    # Two tosses, one of each, and log(1/delta_0) = -log 2: all cancels but 10 * 2^-52 of 3 log 2 + 2 log(2/sqrt(pi)).
    assert 4e-15 < 2 * coin_radius(2.0, 1.0, -math.log(2), 1.0) < 7e-15


# ---- The worst mean -------------------------------------------------------------------------------------------------


def by_another_search(p_hat, eps, V):
    """min V + max over t of t expm1(-eps + sum p log1p(d/t)): by thirds, in log t; concave in t, so with one top."""
    low = min(V)
    d = [v - low for v in V]
    seen = [(p, x) for p, x in zip(p_hat, d, strict=True) if p > 0]

    def dual(log_t):
        t = math.exp(log_t)
        return t * math.expm1(-eps + math.fsum(p * math.log1p(x / t) for p, x in seen))

    span = max(d)
    left, right = math.log(span) - 60, math.log(span) + 25
    for _ in range(120):
        a, b = left + (right - left) / 3, right - (right - left) / 3
        left, right = (a, right) if dual(a) < dual(b) else (left, b)
    return low + max(0.0, dual(left))


def balls(how_many):
    """Wide and narrow balls, sparse and full rows, worst states that were never seen, values of any size."""
    rng = np.random.default_rng(0)
    for i in range(how_many):
        S = int(rng.integers(2, 7))
        p = rng.dirichlet(np.full(S, [0.1, 1.0, 10.0][i % 3]))
        n = rng.multinomial(int(10 ** rng.uniform(0, 7)), p)
        V = rng.random(S) * [1.0, 20.0, 1e-3][i % 3]
        if i % 4 == 0:
            V[n.argmin()] = 0.0
        yield n / n.sum(), float(10 ** rng.uniform(-7, 1.5)), V


def test_the_worst_mean_is_the_largest_dual_value():
    """No higher than 1e-13 above, no lower than 1e-9 below, of the span; and the best mean with the other sign."""
    for p_hat, eps, V in balls(150):
        for sign in (1.0, -1.0):
            found = worst_mean(p_hat, V, len(V), sign, eps, 0.0)
            exact = by_another_search(p_hat.tolist(), eps, (sign * V).tolist())
            assert -1e-9 * np.ptp(V) <= found - exact <= 1e-13 * np.ptp(V)


def test_the_worst_mean_of_a_coin_is_where_the_ball_ends():
    """KL(x/n, p) = eps at the bound: -log(1-p) for all tails, and so on. Without a search on our side."""
    for eps in (1e-3, 0.1, 1.0, 5.0):
        # All heads: the worst p has -log p = eps.
        assert worst_mean(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 2, 1.0, eps, 0.0) == pytest.approx(
            math.exp(-eps), rel=1e-9
        )
        # All tails: the best p has -log(1-p) = eps.
        best = -worst_mean(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 2, -1.0, eps, 0.0)
        assert best == pytest.approx(-math.expm1(-eps), rel=1e-9)
        low = worst_mean(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 2, 1.0, eps, 0.0)
        # 1/2 log(1/(2p)) + 1/2 log(1/(2(1-p))) = eps, so p (1-p) = exp(-2 eps) / 4
        assert low == pytest.approx(0.5 - 0.5 * math.sqrt(-math.expm1(-2 * eps)), rel=1e-7)


def test_balls_so_narrow_that_rounding_decides():
    """eps of 1e-12 to 1e-17: Newton's step may leave the bracket. The worst mean is the mean, but for 1e-5 of it."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        k = int(rng.integers(2, 5))
        n = rng.multinomial(10**6, rng.dirichlet(np.ones(k)))
        V, eps = rng.random(k) * 10.0 ** rng.integers(-4, 3), float(10 ** rng.uniform(-17, -12))
        p_hat = n / n.sum()
        mean, spread = float(p_hat @ V), math.sqrt(2 * eps * float(p_hat @ (V - p_hat @ V) ** 2))
        # To first order the worst mean is the mean less sqrt(2 eps variance).
        found = worst_mean(p_hat, V, k, 1.0, eps, 0.0)
        assert mean - 1.5 * spread - 1e-12 * V.max() <= found <= mean + 1e-12 * V.max()


def test_what_was_seen_is_all_the_same():
    """The variance is 0, or a rounding error below: the gain is d exp(-eps), as t -> 0."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        n = rng.integers(1, 50, size=4)
        n[3] = 0
        d, eps = float(rng.random()), float(rng.random())
        V = np.array([d, d, d, 0.0])
        assert worst_mean(n / n.sum(), V, 4, 1.0, eps, 0.0) == pytest.approx(d * math.exp(-eps), rel=1e-9)


def test_the_worst_state_that_nobody_saw():
    """t -> 0: the whole gain is exp(-eps + sum p log d), if that state takes all that is left."""
    p_hat, V = np.array([0.0, 0.25, 0.75]), np.array([1.0, 2.0, 5.0])
    assert worst_mean(p_hat, V, 3, 1.0, 4.0, 0.0) == pytest.approx(1 + math.exp(-4) * 4**0.75, rel=1e-12)


class Row:
    """A row that counts how often it is read."""

    def __init__(self, p_hat):
        self.p_hat, self.reads = p_hat.tolist(), 0

    def __getitem__(self, i):
        self.reads += 1
        return self.p_hat[i]


@pytest.mark.skipif(not config.DISABLE_JIT, reason="steps can be counted where kernels run as plain Python")
def test_the_search_is_short():
    """Newton's method in log t needs 6.4 steps on average for these 300 balls, by far the most of them for values so
    close to t = 0 that it goes on until the end; halving the bracket alone would need 17 or more each."""
    steps = []
    for p_hat, eps, V in balls(150):
        for sign in (1.0, -1.0):
            row = Row(p_hat)
            worst_mean(row, V, len(V), sign, eps, 0.0)
            steps.append(row.reads / len(V) - 1)  # once before the search
    assert sum(steps) <= 1930
    assert np.median(steps) <= 4
    assert max(steps) == 30  # it does end


def test_what_is_known_without_data():
    """No data, or values that are all the same: the smallest of them, exactly, and no margin."""
    V = np.array([0.5, 0.25, 0.75, -9.0])
    assert worst_mean(np.full(3, 1 / 3), V, 3, 1.0, math.inf, 0.5) == 0.25
    assert worst_mean(np.full(3, 1 / 3), V, 3, -1.0, math.inf, 0.5) == -0.75
    assert worst_mean(np.array([0.5, 0.5]), np.array([0.3, 0.3]), 2, 1.0, 0.1, 0.5) == 0.3
    assert worst_mean(np.array([1.0]), np.array([0.7]), 1, -1.0, 0.1, 0.5) == -0.7


def test_a_margin_is_taken_off_the_gain():
    """And never more than the gain: the smallest value is known without data."""
    p_hat, V = np.array([0.5, 0.5]), np.array([1.0, 2.0])
    plain = worst_mean(p_hat, V, 2, 1.0, 0.1, 0.0)
    assert 1.125 < plain < 1.5
    assert worst_mean(p_hat, V, 2, 1.0, 0.1, 0.0625) == pytest.approx(plain - 0.0625, abs=1e-15)
    assert worst_mean(p_hat, V, 2, 1.0, 0.1, 0.75) == 1.0


@pytest.mark.parametrize(("n", "x"), [(10.0, 3.0), (4.0, 0.0), (4.0, 4.0), (7.0, 2.5)])
def test_the_bounds_of_a_coin_are_the_ends_of_its_ball(n, x):
    """KL(x/n, bound) is the radius, by bisection on the KL divergence itself; and then the margin."""
    eps, p = coin_radius(n, x, 3.0, 1.0), x / n

    def divergence(q):
        return sum(u * math.log(u / v) for u, v in ((p, q), (1 - p, 1 - q)) if u > 0)

    def end(inside, outside):
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if divergence(middle) <= eps else (inside, middle)
        return inside

    low, up = (0.0 if p == 0 else end(p, 1e-300)), (1.0 if p == 1 else end(p, 1 - 1e-16))
    scratch = np.full(2, np.nan), np.full(2, np.nan)
    assert coin_bounds(n, x, 3.0, 1.0, 0.0, *scratch) == pytest.approx((low, up), abs=1e-9)
    taken = min(low, 0.125), min(1 - up, 0.125)  # a bound of 0 or 1 is known without data
    assert coin_bounds(n, x, 3.0, 1.0, 0.125, *scratch) == pytest.approx((low - taken[0], up + taken[1]), abs=1e-9)


def test_a_coin_that_nobody_tossed_and_sums_out_of_range():
    scratch = np.zeros(2), np.zeros(2)
    assert coin_bounds(0.0, 0.0, 3.0, 1.0, 0.0, *scratch) == (0.0, 1.0)
    assert coin_bounds(5.0, 5.5, 3.0, 1.0, 0.0, *scratch) == coin_bounds(5.0, 5.0, 3.0, 1.0, 0.0, *scratch)
    assert coin_bounds(5.0, -0.5, 3.0, 1.0, 0.0, *scratch) == coin_bounds(5.0, 0.0, 3.0, 1.0, 0.0, *scratch)
    assert coin_bounds(0.25, 0.25, 3.0, 1.0, 0.0, *scratch)[1] == 1.0
    assert 0.0 < coin_bounds(0.25, 0.25, 1e-9, 1.0, 0.0, *scratch)[0] < 1.0  # a quarter of a toss is one


# ---- Sums -----------------------------------------------------------------------------------------------------------


def test_a_sum_is_rounded_to_safety():
    """Never on the wrong side of the exact sum, never further than 2^-51 of it, and exact where floats can be."""
    rng = np.random.default_rng(0)
    exact = wrong = 0
    for i in range(3000):
        x, y = (rng.random(2) * 2.0 ** rng.integers(-30, 4, size=2)).tolist()
        if i % 3 == 0:
            x, y = round(x * 64) / 64, round(y * 64) / 64
        total = Fraction(x) + Fraction(y)
        for sign in (1.0, -1.0):
            found = Fraction(add(x, y, sign))
            off = Fraction(sign) * (total - found)
            assert 0 <= off <= Fraction(2, 2**52) * total
            if Fraction(x + y) == total:
                assert found == total
                exact += 1
        wrong += Fraction(x + y) > total
    assert exact > 500 and wrong > 300  # the control: plain sums are above in many cases


def test_a_sum_moves_by_one_unit():
    """1.5 + 2^-54 is rounded to 1.5, below the exact sum: as a lower bound it stays, as an upper one it moves up."""
    assert add(1.5, 2.0**-54, 1.0) == 1.5
    assert add(1.0, 2.0**-54, -1.0) == 1.0 + 2.0**-52
    assert 1.5 < add(1.5, 2.0**-54, -1.0) <= 1.5 + 2.0**-51
    assert add(1.5, 2.0**-52 - 2.0**-54, -1.0) >= 1.5 + 2.0**-52 - 2.0**-54
    assert add(1.5, 2.0**-52 - 2.0**-54, 1.0) < 1.5 + 2.0**-52 - 2.0**-54


# ---- Backups --------------------------------------------------------------------------------------------------------

S, A, H = 2, 3, 4


def evidence_of(
    n_sas=None, rewards=None, x_sa=None, support=None, alpha=0.5, margin=0.0, uppers=True, scale=1.0, log_union=2.0
):
    if n_sas is None:
        n_sas = np.zeros((H, S, A, S), dtype=np.int64)
    if rewards is None:
        rewards = (np.arange(H * S * A).reshape(H, S * A) / 32, None, None)
    return balls_from(
        n_sas,
        n_sas.sum(axis=-1),
        H,
        rewards=RewardArrays(*rewards, x_sa),
        support=support,
        log_union=log_union,
        alpha=alpha,
        scale=scale,
        tie=0.25,
        margin=margin,
        uppers=uppers,
    )


def refreshed(evidence):
    for row, pair in np.ndindex(*evidence.n_sa.shape):
        evidence.n_sa[row, pair] = evidence.n_sas[row, pair].sum()
        refresh_kl(evidence, row, pair)
    return evidence


def table(evidence, row, h, V_up, V_low, wanted=BOTH, lo=0, hi=S * A, pi=ALL):
    scratch = np.full((5, hi - lo), np.nan)
    look_ahead_balls(evidence, np.array(V_up), np.array(V_low))
    q_kl(evidence, row, h, lo, hi, H, np.array(V_up), np.array(V_low), scratch, wanted, pi)
    return scratch[0], scratch[1]


def test_the_arrays_of_balls():
    n_sas = np.zeros((H, S, A, S), dtype=np.int64)
    evidence = evidence_of(n_sas)
    assert np.shares_memory(evidence.n_sas, n_sas) and evidence.n_sas.shape == (H, S * A, S)
    assert evidence.n_sa.shape == evidence.n_fresh.shape == evidence.eps.shape == (H, S * A)
    assert (evidence.n_fresh < 0).all()
    assert evidence.P_hat.shape == (H, S * A, S)
    assert evidence.succ.tolist() == [[[0, 1]]] and evidence.m.tolist() == [[S]]
    assert evidence.r_low.shape == evidence.r_up.shape == (H, S * A)
    assert evidence.r_next.shape == (0, 0, 0)
    assert evidence.x_sa.shape == evidence.z_sa.shape == evidence.unknown.shape == (0, 0)
    assert evidence.bets is False
    assert evidence.gathered.shape == (4,)  # a coin and its outcomes
    assert (evidence.log_union, evidence.alpha, evidence.scale, evidence.tie) == (2.0, 0.5, 1.0, 0.25)
    assert (evidence.margin, evidence.uppers) == (0.0, True)
    assert evidence_of(np.zeros((1, 6, 1, 6), dtype=np.int64), (np.zeros((1, 6)), None, None)).gathered.shape == (6,)


def test_rows_of_rewards():
    """Known ones in as many rows as they came; unknown ones in one for each step, unless counts are pooled."""
    one, per_step = np.zeros((1, S * A)), np.zeros((H, S * A))
    unknown = np.ones((1, S * A), dtype=bool)
    pooled = np.zeros((1, S, A, S), dtype=np.int64)
    for n_sas, known, hidden, rows in (
        (None, one, None, 1),
        (None, one, unknown, H),
        (pooled, one, unknown, 1),
        (pooled, per_step, unknown, H),
        (pooled, per_step, None, H),
    ):
        evidence = evidence_of(n_sas, (known, None, hidden))
        assert len(evidence.r_low) == len(evidence.r_up) == rows
        sums = (0, 0) if hidden is None else (1 if n_sas is pooled else H, S * A)
        assert evidence.x_sa.shape == evidence.z_sa.shape == sums
        assert not evidence.z_sa.any() and not np.shares_memory(evidence.x_sa, evidence.z_sa)
    given = np.arange(S * A).reshape(1, S, A)
    assert evidence_of(pooled, (one, None, unknown), given).x_sa.tolist() == [list(range(S * A))]


def test_bets_on_unknown_rewards_read_n_x_and_z():
    """At the row and pair where they are; the upper end has a unit more. Without bets the coin reads no z."""
    unknown, n_sas = np.ones((1, S * A), dtype=bool), np.zeros((H, S, A, S), dtype=np.int64)
    n_sas[2, 1, 0], n_sas[1, 0, 2] = (30, 10), (3, 4)
    x_sa, z_sa = np.zeros((H, S, A), dtype=np.int64), np.zeros((H, S, A), dtype=np.int64)
    x_sa[2, 1, 0], z_sa[2, 1, 0], x_sa[1, 0, 2] = 20 * 2**20, 9 * 2**20, 5 * 2**20
    about = {"support": None, "log_union": 2.0, "alpha": 0.5, "scale": 0.25, "tie": 0.0, "margin": 2.0**-9}
    for bets in (True, False):
        rewards = RewardArrays(np.zeros((1, S * A)), None, unknown, x_sa, z_sa, bets=bets)
        evidence = refreshed(balls_from(n_sas, n_sas.sum(axis=-1), H, rewards=rewards, uppers=True, **about))
        assert evidence.bets is bets and np.shares_memory(evidence.z_sa, z_sa)
        for (h, pair), seen in {(2, 3): (40.0, 20.0, 9.0), (1, 2): (7.0, 5.0, 0.0), (0, 0): (0.0, 0.0, 0.0)}.items():
            low, up = average_bounds(*seen, 2.0, 0.25, 2.0**-9)
            if not bets:
                low, up = coin_bounds(*seen[:2], 2.0, 0.25, 2.0**-9, np.zeros(2), np.zeros(2))
            assert (evidence.r_low[h, pair], evidence.r_up[h, pair]) == (low, min(1.0, up + 2.0**-20))


def test_the_last_step_is_its_reward():
    """In another row of rewards than of counts, and of a window of pairs."""
    evidence = evidence_of()
    for h in range(H):
        up, low = table(evidence, 0, h, [], [], lo=2, hi=5)
        assert (up * 32).tolist() == (low * 32).tolist() == [6 * h + 2, 6 * h + 3, 6 * h + 4]


def test_a_backup_without_data_is_exact():
    """Q_up = r + max V_up, Q_low = r + min V_low; the margin is not taken off what is known without data."""
    evidence = refreshed(evidence_of(margin=0.125))
    assert np.isinf(evidence.eps).all() and (evidence.P_hat == 0.5).all() and (evidence.n_fresh == 0).all()
    for h in range(H):
        up, low = table(evidence, h, h, [1.0, 2.5], [0.75, 0.5], lo=1, hi=6)
        assert (up - 2.5).tolist() == (low - 0.5).tolist() == (evidence.r_low[h, 1:6]).tolist()


def test_upper_values_are_for_who_wants_them():
    for uppers, wanted, there in ((True, LOWER, True), (False, LOWER, False), (False, BOTH, True), (True, BOTH, True)):
        up, low = table(refreshed(evidence_of(uppers=uppers)), 0, 0, [1.0, 2.0], [1.0, 0.5], wanted)
        assert up.tolist() == [r / 32 + 2.0 if there else 0.0 for r in range(6)]
        assert low.tolist() == [r / 32 + 0.5 for r in range(6)]


def test_one_state_has_something_ahead():
    evidence = refreshed(evidence_of(np.zeros((H, 1, 1, 1), dtype=np.int64), (np.full((H, 1), 0.25), None, None)))
    up, low = table(evidence, 0, 0, [1.0], [0.5], hi=1)
    assert (up.tolist(), low.tolist()) == ([1.25], [0.75])


def test_a_backup_with_data():
    """Row and pair of the counts are those asked for: r + the worst mean of V_low in its ball, r + the best of V_up."""
    rng = np.random.default_rng(1)
    n_sas = rng.integers(0, 9, size=(H, S, A, S))
    n_sas[..., 0] += 1
    evidence = refreshed(evidence_of(n_sas, scale=0.25, margin=2.0**-30, alpha=0.25))
    V_up, V_low = [2.0, 1.25], [1.0, 0.25]
    for h in range(H):
        up, low = table(evidence, h, h, V_up, V_low, lo=1, hi=6)
        for i, pair in enumerate(range(1, 6)):
            n_i = n_sas[h, pair // A, pair % A].tolist()
            p, eps = [k / sum(n_i) for k in n_i], 0.25 * radius(n_i, 0.25, 2.0)
            assert evidence.eps[h, pair] == pytest.approx(eps, rel=1e-13)
            r, off = evidence.r_low[h, pair], 2.0**-30
            assert low[i] == pytest.approx(r + max(by_another_search(p, eps, V_low) - off, 0.25), abs=3e-10)
            assert up[i] == pytest.approx(r - max(by_another_search(p, eps, [-2, -1.25]) - off, -2.0), abs=3e-10)


def test_the_least_and_the_largest_value():
    V = np.array([0.5, 2.0, 0.25, 9.0])
    assert extremes(V, 3, 1.0) == (0.25, 2.0) and extremes(V, 3, -1.0) == (-2.0, -0.25)
    assert extremes(V, 1, 1.0) == (0.5, 0.5)


def test_only_pairs_that_a_policy_plays_are_backed_up():
    evidence = refreshed(evidence_of(np.full((H, S, A, S), 3)))
    pi = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    for V in ([1.0, 2.0], []):
        every = table(evidence, 1, 1, V, V, LOWER)
        for lo, hi in ((0, 6), (1, 5)):
            for some, all_pairs in zip(table(evidence, 1, 1, V, V, LOWER, lo, hi, pi), every, strict=True):
                plays = pi.reshape(-1) > 0.0 if V else np.ones(6, dtype=bool)  # the last step takes no time
                assert some.tolist() == np.where(plays, all_pairs, 0.0)[lo:hi].tolist()


def test_the_best_action():
    assert best_action(np.array([1.0, 3.0, 3.0, 2.0]), 0.0) == 1
    assert best_action(np.array([1.0, 1.25, 1.5]), 0.25) == 2  # from action to action: more than the tie above the best
    assert best_action(np.array([1.0, 1.25, 1.0]), 0.25) == 0
    assert best_action(np.array([0.5]), 0.0) == 0


def test_of_the_best_actions_the_lower_value_is_wanted():
    """Upper values are of all pairs, lower ones of the best of each state; of a window of states, too. In the last step
    all are known."""
    rng = np.random.default_rng(0)
    evidence = refreshed(evidence_of(rng.integers(1, 30, (H, S, A, S)), (rng.random((H, S * A)), None, None)))
    others = 0
    for h, (lo, hi) in product(range(H - 1), ((0, S * A), (A, S * A))):
        V_up, V_low = rng.uniform(1.0, 2.0, (2, S))
        up, low = table(evidence, h, h, V_up, V_low, BOTH, lo, hi)
        found = table(evidence, h, h, V_up, V_low, BEST, lo, hi, np.zeros((0, A)))
        best = np.zeros(hi - lo, dtype=bool)
        for first in range(0, hi - lo, A):
            best[first + best_action(up[first : first + A], evidence.tie)] = True
            others += best[first]
        assert found[0].tolist() == up.tolist() and found[1].tolist() == np.where(best, low, 0.0).tolist()
    assert 0 < others < 9  # control: another action than the first is the best one of some states, and not of all
    rewards = evidence.r_low[H - 1].tolist()
    for last in table(evidence, H - 1, H - 1, [], [], BEST, pi=np.zeros((0, A))):
        assert last.tolist() == rewards


def test_from_a_radius_of_500_on_nothing_is_proved():
    for kind, about in ((worst_mean, ()), (worst_mean_at_once, (0.0, 1.0))):
        one = np.array([0.0, 1.0])
        assert kind(one, one, 2, 1.0, 499.5, 0.0, *about) > 0.0
        assert kind(one, one, 2, 1.0, 500.0, 0.0, *about) == 0.0


def test_one_action_is_the_best():
    n_sas, r = np.full((1, 3, 1, 3), 4), np.arange(3).reshape(1, 3) / 4
    evidence = refreshed(evidence_of(n_sas, (r, None, None)))
    V = [1.0, 2.0, 3.0]
    best = table(evidence, 0, 0, V, V, BEST, hi=3, pi=np.zeros((0, 1)))
    assert [x.tolist() for x in best] == [x.tolist() for x in table(evidence, 0, 0, V, V, BOTH, hi=3)]
    assert (best[1] > 1.0).all()


def many(states, rng, masked, sign):
    """Balls of one pair in a table of so many states, of which five were seen, and values of which the worst was not.
    The radius is close to where the closed form begins to hold: there the last bits may differ from the search's."""
    n_sas = np.zeros((1, states, 1, states), dtype=np.int64)
    n_sas[0, 0, 0, 2:7] = rng.integers(1, 40, 5)
    V = rng.uniform(1.0, 3.0, states)
    V[0], V[1] = 0.5, 4.0
    mask = np.ones((1, states, states), dtype=bool)
    mask[:, :, states - 1] = False
    evidence = refreshed(evidence_of(n_sas, (np.zeros((1, states)), None, None), support=mask if masked else None))
    p, d = evidence.P_hat[0, 0, 2:7], V[2:7] - 0.5 if sign > 0 else 4.0 - V[2:7]
    begins = (p * np.log(d)).sum() + math.log((p / d).sum())
    evidence.eps[0, 0] = max(begins + rng.uniform(-0.02, 0.04), 1e-3)
    return evidence, V


def test_tables_of_more_than_a_few_states_are_backed_up_at_once():
    """Up to FEW by the search, to the bit; above by the closed form where it holds. Both are the readable search's."""
    rng, differ = np.random.default_rng(0), {FEW: 0, FEW + 1: 0}
    for states, masked, sign in product(differ, (False, True), [1.0, -1.0] * 150):
        evidence, V = many(states, rng, masked, sign)
        p, eps, m = evidence.P_hat[0, 0], float(evidence.eps[0, 0]), states - masked
        up, low = table(evidence, 0, 0, V, V, hi=1)
        found = low[0] if sign > 0 else -up[0]
        about = (p, V, m, sign, eps, 0.0, *extremes(V, m, sign))
        searched, at_once = worst_mean_within(*about), worst_mean_at_once(*about)
        assert found == (searched if states == FEW else at_once)
        assert at_once == pytest.approx(by_another_search(p[:m], eps, (sign * V[:m]).tolist()), abs=3e-9)
        assert at_once <= searched  # what differs by rounding does so on the safe side
        differ[states] += at_once != searched
    assert all(differ.values()), differ  # control: there is a difference to be seen


def test_alpha_may_be_one_over_the_possible_states():
    """0 stands for that; of 2 possible states of 3 it is 1/2, of one it is 1."""
    n_sas = np.zeros((1, 3, 1, 3), dtype=np.int64)
    n_sas[0, :, 0] = [[0, 4, 2], [3, 1, 1], [0, 5, 0]]
    support = np.array([[[False, True, True], [True, True, True], [False, True, False]]])
    evidence = refreshed(evidence_of(n_sas, (np.zeros((1, 3)), None, None), support=support, alpha=0.0))
    assert evidence.m.tolist() == [[2, 3, 1]]
    assert evidence.succ[0, 0].tolist() == [1, 2, 0] and evidence.succ[0, 2].tolist() == [1, 0, 2]
    expected = radius([4, 2], Fraction(1, 2), 2.0), radius([3, 1, 1], Fraction(1, 3), 2.0), radius([5], 1, 2.0)
    np.testing.assert_allclose(evidence.eps[0], expected, rtol=1e-12)
    np.testing.assert_allclose(evidence.P_hat[0, 0, :2], [4 / 6, 2 / 6])


def test_impossible_states_do_not_matter():
    """Minimum and maximum run over the mask's states; with one mask for all steps, or one for each."""
    support = np.zeros((1, S * A, S), dtype=bool)
    support[0, :, 0] = True
    support[0, 3, 1] = True
    for masks in (support, np.repeat(support, H, axis=0)):
        evidence = refreshed(evidence_of(support=masks))
        assert (evidence.P_hat[:, 3] == 0.5).all() and (evidence.P_hat[:, 0, 0] == 1.0).all()
        up, low = table(evidence, 2, 2, [1.0, 9.0], [0.5, 0.25])
        r = evidence.r_low[2]
        assert (up - r).tolist() == [1.0, 1.0, 1.0, 9.0, 1.0, 1.0]
        assert (low - r).tolist() == [0.5, 0.5, 0.5, 0.25, 0.5, 0.5]


def test_the_only_possible_state_may_be_any():
    """Not the first one: values are read in the order of the mask's list. Also of two pairs in all."""
    for states, actions in ((2, 3), (2, 1)):
        mask = np.zeros((1, states * actions, states), dtype=bool)
        mask[..., 1] = True
        n_sas, r = np.zeros((H, states, actions, states), dtype=np.int64), np.zeros((1, states * actions))
        for masks in (mask, np.repeat(mask, H, axis=0)):
            evidence = refreshed(evidence_of(n_sas, (r, None, None), support=masks))
            up, low = table(evidence, 2, 2, [1.0, 9.0], [0.25, 0.5], hi=states * actions)
            assert (up == 9.0).all() and (low == 0.5).all()


def test_rewards_by_next_state_of_one_state():
    after = np.full((1, 1, 1), 0.25)
    evidence = refreshed(evidence_of(np.zeros((H, 1, 1, 1), dtype=np.int64), (np.zeros((1, 1)), after, None)))
    assert table(evidence, 1, 1, [0.5], [0.125], hi=1) == (0.75, 0.375)


def test_rewards_by_next_state_go_inside():
    """r(s,a,s') + V(s') is what is worst or best, also at the last step, where V is nothing."""
    after = np.arange(3 * S * A * S).reshape(3, S * A, S) / 64
    evidence = refreshed(evidence_of(rewards=(np.zeros((1, S * A)), after, None)))
    for h in range(H):
        up, low = table(evidence, h, h, [1.0, 0.5], [0.5, 0.125], lo=1)
        W = after[h % 3, 1:]
        assert up.tolist() == np.maximum(W[:, 0] + 1.0, W[:, 1] + 0.5).tolist()
        assert low.tolist() == np.minimum(W[:, 0] + 0.5, W[:, 1] + 0.125).tolist()
        up, low = table(evidence, h, h, [], [])
        assert (up.tolist(), low.tolist()) == (after[h % 3, :, 1].tolist(), after[h % 3, :, 0].tolist())


def test_what_is_gathered_is_rounded_to_safety():
    after = np.full((1, S * A, S), 1.5)
    evidence = evidence_of(rewards=(np.zeros((1, S * A)), after, None))
    tiny = np.full(S, 2.0**-54)
    gather(evidence, 0, 0, S, np.arange(S), tiny, 1.0)
    assert evidence.gathered[:S].tolist() == [1.5, 1.5]
    gather(evidence, 0, 0, S, np.arange(S), tiny, -1.0)
    assert (evidence.gathered[:S] > 1.5).all()


def test_a_backup_is_rounded_to_safety():
    """1 + V with V of 2^-54: the lower value stays, the upper one moves up by one unit. With V of 3/4 of a unit the sum
    is rounded up: the lower value moves down by one, the upper one stays. Also of rewards by next state."""
    plain = refreshed(evidence_of(rewards=(np.ones((1, S * A)), None, None)))
    after = refreshed(evidence_of(rewards=(np.zeros((1, S * A)), np.ones((1, S * A, S)), None)))
    for evidence, part in product((plain, after), (2.0**-54, 0.75 * 2.0**-52)):
        up, low = table(evidence, 0, 0, [part] * S, [part] * S)
        assert (low == 1.0).all() and (up == 1.0 + 2.0**-52).all()


# ---- Unknown rewards ------------------------------------------------------------------------------------------------


def coin(n, x, scale=1.0):
    return coin_bounds(float(n), x, 2.0, scale, 0.0, np.zeros(2), np.zeros(2))


def test_an_unknown_reward_is_a_coin():
    """Of n visits and the sum x in units of 2^-20, rounded down: the upper bound has a unit more. Known ones stay."""
    n_sas = np.zeros((H, S, A, S), dtype=np.int64)
    n_sas[..., 0] = np.arange(H * S * A).reshape(H, S, A)
    unknown = np.zeros((H, S * A), dtype=bool)
    unknown[1, 2] = unknown[2, 5] = unknown[0, 0] = True
    x_sa = np.zeros((H, S * A), dtype=np.int64)
    x_sa[1, 2], x_sa[2, 5] = 3 * UNITS // 2, 15 * UNITS
    known = np.full((1, S * A), 0.5)
    evidence = refreshed(evidence_of(n_sas, (known, None, unknown), x_sa.reshape(H, S, A), scale=0.5))
    low, up = np.full((H, S * A), 0.5), np.full((H, S * A), 0.5)
    low[0, 0], up[0, 0] = 0.0, 1.0  # nobody tried it
    low[1, 2], up[1, 2] = coin(8, 1.5, 0.5)
    low[2, 5], up[2, 5] = coin(17, 15.0, 0.5)
    up[1, 2], up[2, 5] = up[1, 2] + 1 / UNITS, up[2, 5] + 1 / UNITS
    np.testing.assert_allclose(evidence.r_low, low, atol=1e-15)
    np.testing.assert_allclose(evidence.r_up, up, atol=1e-15)
    assert 0.0 < low[1, 2] < 1.5 / 8 < up[1, 2] < 1.0 and low[2, 5] > 0.5


def test_an_unknown_reward_is_at_most_1():
    n_sas = np.full((1, S, A, S), 5)
    x_sa = np.full((1, S, A), 10 * UNITS)
    evidence = refreshed(evidence_of(n_sas, (np.zeros((1, S * A)), None, np.ones((1, S * A), dtype=bool)), x_sa))
    assert (evidence.r_up == 1.0).all() and (evidence.r_low > 0.0).all()


def test_pooled_unknown_rewards_are_the_same_at_every_step():
    """One row of counts and a row of rewards for each step: all of them are written; one mask for all is read."""
    n_sas = np.full((1, S, A, S), 5)
    x_sa = np.full((1, S, A), 7 * UNITS)
    unknown = np.ones((1, S * A), dtype=bool)
    evidence = refreshed(evidence_of(n_sas, (np.zeros((H, S * A)), None, unknown), x_sa))
    low, up = coin(10, 7.0)
    np.testing.assert_allclose(evidence.r_low, np.full((H, S * A), low), atol=1e-15)
    np.testing.assert_allclose(evidence.r_up, np.full((H, S * A), up + 1 / UNITS), atol=1e-15)
    per_step = refreshed(
        evidence_of(np.full((H, S, A, S), 5), (np.zeros((1, S * A)), None, unknown), np.repeat(x_sa, H, 0))
    )
    np.testing.assert_array_equal(per_step.r_low, evidence.r_low)


def test_both_bounds_of_an_unknown_reward_are_used():
    """Q_up = r_up + ..., Q_low = r_low + ..., at the last step and before."""
    evidence = refreshed(evidence_of(rewards=(np.zeros((1, S * A)), None, np.ones((1, S * A), dtype=bool))))
    for V, ahead in (([], 0.0), ([0.25, 0.25], 0.25)):
        up, low = table(evidence, 1, 1, V, V)
        assert (up == 1.0 + ahead).all() and (low == ahead).all()
