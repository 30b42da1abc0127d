"""The kernel of the paper's bounds, line by line: numbers worked out in fractions, windows of pairs, untried pairs."""

import math
from fractions import Fraction

import numpy as np
import pytest

from surefoot.numerics.kernels.bernstein import estimate_from, q_bernstein, refresh_bernstein

S, A, H = 2, 3, 4  # H is more than the rows of r below, and none of the three is another
LOG_UNION, SCALE = 3.0, 0.5
ALL = np.zeros((0, 0))  # every pair is needed


def counted():
    """Counts of S*A pairs in 2 rows; the pair 4 of row 1 was never tried."""
    n_sas = np.arange(2 * S * A * S, dtype=np.int64).reshape(2, S, A, S)
    n_sas[1, 1, 1] = 0
    estimate = estimate_from(n_sas, n_sas.sum(axis=-1), np.arange(3 * S * A).reshape(3, S * A) / 32, LOG_UNION, SCALE)
    for row, pair in np.ndindex(2, S * A):
        estimate.n_sa[row, pair] = n_sas.reshape(2, S * A, S)[row, pair].sum()
    return n_sas, estimate


def test_room_for_an_estimate():
    n_sas, estimate = counted()
    assert estimate.n_sas.shape == (2, 6, 2) and np.shares_memory(estimate.n_sas, n_sas)
    assert estimate.P_hat.shape == (2, 2, 6)
    assert (
        estimate.n_sa.shape == estimate.n_fresh.shape == estimate.beta_n.shape == estimate.beta_star_n.shape == (2, 6)
    )
    assert (estimate.n_fresh < 0).all()  # no count is: every pair is due
    assert estimate.n_sa.dtype == estimate.n_fresh.dtype == n_sas.dtype
    assert estimate.x_sa.shape == (0, 0)
    assert (estimate.log_union, estimate.scale, estimate.tie, estimate.margin) == (LOG_UNION, SCALE, 0.0, 0.0)


def test_a_pair_is_brought_up_to_date():
    """P_hat = n_sas / n, n beta_n = scale (log(SAH/delta') + S log(8e(n+1))), beta* without the factor S."""
    n_sas, estimate = counted()
    for row, pair in np.ndindex(2, S * A):
        refresh_bernstein(estimate, row, pair)
        seen = [int(x) for x in n_sas.reshape(2, S * A, S)[row, pair]]
        n = sum(seen)
        assert estimate.n_fresh[row, pair] == n
        if n == 0:
            assert estimate.P_hat[row, :, pair].tolist() == [0.5, 0.5]
            assert (estimate.beta_n[row, pair], estimate.beta_star_n[row, pair]) == (math.inf, 0.0)
            continue
        assert estimate.P_hat[row, :, pair].tolist() == [x / n for x in seen]
        growth = math.log(8) + 1 + math.log(n + 1)
        assert estimate.beta_n[row, pair] == pytest.approx(0.5 * (3 + 2 * growth) / n, rel=1e-14)
        assert estimate.beta_star_n[row, pair] == pytest.approx(0.5 * (3 + growth) / n, rel=1e-14)
    assert (estimate.n_sa == 0).sum() == 1 and (estimate.n_sa == 1).sum() == 1  # the control: both kinds were there


def dyadic(seed):
    """An estimate whose frequencies and radii are short binary fractions: sums are exact but for one root."""
    rng = np.random.default_rng(seed)
    _, estimate = counted()
    heads = rng.integers(0, 9, size=(2, S * A)) / 8
    estimate.P_hat[:, 0], estimate.P_hat[:, 1] = heads, 1 - heads
    estimate.beta_n[:] = rng.integers(0, 64, size=(2, S * A)) / 2**14
    estimate.beta_star_n[:] = rng.integers(0, 64, size=(2, S * A)) / 2**10
    return estimate


def formula(estimate, row, h, pair, V_up, V_low):
    """Eq. ucbQ and lcbQ of one pair, in fractions; the root in floats."""
    p = [Fraction(x) for x in estimate.P_hat[row, :, pair].tolist()]
    r, b, b_star = (
        Fraction(float(x))
        for x in (estimate.r[h % 3, pair], estimate.beta_n[row, pair], estimate.beta_star_n[row, pair])
    )
    up, low = [Fraction(v) for v in V_up], [Fraction(v) for v in V_low]
    mean_up, mean_low = (sum(q * v for q, v in zip(p, V, strict=True)) for V in (up, low))
    variance = sum(q * (v - mean_up) ** 2 for q, v in zip(p, up, strict=True))
    deviation = 3 * math.sqrt(variance * b_star)
    upper = r + 14 * H**2 * b + (mean_up - mean_low) / H + mean_up
    lower = r - 22 * H**2 * b - 2 * (mean_up - mean_low) / H + mean_low
    return min(float(H), float(upper) + deviation), max(0.0, float(lower) - deviation)


@pytest.mark.parametrize(("lo", "hi"), [(0, 6), (2, 5), (5, 6)])
@pytest.mark.parametrize("h", range(H))
def test_both_tables_of_a_window_of_pairs(lo, hi, h):
    clipped = 0
    for seed in range(6):
        estimate = dyadic(seed)
        rng = np.random.default_rng([seed, h])
        V_low = rng.integers(0, 17, size=S) / 16
        V_up = V_low + rng.integers(0, 33, size=S) / 16
        scratch = np.full((5, hi - lo), np.nan)
        q_bernstein(estimate, h % 2, h, lo, hi, H, V_up, V_low, scratch, 0, ALL)
        found = [formula(estimate, h % 2, h, pair, V_up.tolist(), V_low.tolist()) for pair in range(lo, hi)]
        np.testing.assert_allclose(scratch[:2].T, found, atol=1e-14, rtol=0)
        clipped += sum((up == H) + (low == 0.0) for up, low in found)
    assert 0 < clipped < 2 * 6 * (hi - lo)  # the control: some are clipped, some are not


@pytest.mark.parametrize(("lo", "hi"), [(0, 6), (3, 6)])
def test_the_last_step_has_nothing_ahead(lo, hi):
    """An empty V_up: Q = r +- bonus, clipped to [0, H]; exact, as nothing has a root."""
    for seed, h in np.ndindex(4, H):
        estimate = dyadic(seed)
        scratch = np.full((5, hi - lo), np.nan)
        q_bernstein(estimate, 1, h, lo, hi, H, np.zeros(0), np.zeros(0), scratch, 0, ALL)
        found = [formula(estimate, 1, h, pair, [0.0, 0.0], [0.0, 0.0]) for pair in range(lo, hi)]
        np.testing.assert_array_equal(scratch[:2].T, found)


def test_an_untried_pair_says_nothing():
    """Its beta/n is infinite: Q_up = H and Q_low = 0, at the last step and before."""
    _, estimate = counted()
    estimate.n_sa[:] = 0
    for pair in range(S * A):
        refresh_bernstein(estimate, 0, pair)
    for V in (np.zeros(0), np.array([1.0, 3.0])):
        scratch = np.full((5, S * A), np.nan)
        q_bernstein(estimate, 0, 2, 0, S * A, H, V, V, scratch, 0, ALL)
        np.testing.assert_array_equal(scratch[:2], [[H] * 6, [0] * 6])


def test_what_is_certain_has_no_variance():
    """V is the same everywhere, and only the last digits of a mean differ: 3 sqrt(var) stays below 1e-14.

    sum p V^2 - mean^2 would give a variance of a few 2^-53, of either sign: a root of 1e-8, or none.
    """
    rng = np.random.default_rng(0)
    inexact = 0
    for _ in range(50):
        estimate = dyadic(0)
        heads = rng.random(S * A)
        estimate.P_hat[0, 0], estimate.P_hat[0, 1] = heads, 1 - heads
        estimate.beta_n[:], estimate.beta_star_n[:] = 0.0, 1.0
        v = rng.random()
        scratch = np.zeros((5, S * A))
        q_bernstein(estimate, 0, 0, 0, S * A, H, np.full(S, v), np.full(S, v), scratch, 0, ALL)
        inexact += (scratch[2] != v).any()
        np.testing.assert_allclose(scratch[:2], [estimate.r[0] + v] * 2, atol=1e-14, rtol=0)
    assert inexact > 2  # the control
