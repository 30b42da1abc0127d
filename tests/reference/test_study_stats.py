"""Statistics of studies: against Arb's enclosures, by hand, and exact sums in place of
simulations.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from surefoot.errors import InvalidSetting
from surefoot.studies.analysis import stats

DOFS = [1, 2, 3, 4, 9, 29, 30, 31, 99, 1000, 100_000]
CHANCES = [1e-9, 1e-4, 0.005, 0.025, 0.1, 0.3, 0.4999, 0.5, 0.55, 0.9, 0.95, 0.975, 0.995, 0.99999]
SEEN = [
    (k, n)
    for n in (1, 2, 3, 10, 37, 1000, 100_000)
    for k in sorted({0, 1, n // 3, n // 2, n - 1, n})
]


@pytest.fixture(autouse=True)
def forty_digits():
    with ctx.workdps(40):
        yield


def beta_share(a, b, x):
    """I_x(a, b), the regularised incomplete beta function: a number that is sure to lie within
    its error.
    """
    return arb(x).beta_lower(a, b, 1)


def student_tail(t, dof):
    """P(T > |t|) of Student's t."""
    return beta_share(arb(dof) / 2, arb(1) / 2, dof / (dof + arb(t) ** 2)) / 2


class TestStudent:
    @pytest.mark.parametrize("dof", DOFS)
    def test_quantiles_leave_the_right_tail(self, dof):
        """A control beside it: a quantile that is off by 1e-6 of itself does not."""
        for p in CHANCES:
            found = stats.t_quantile(p, dof)
            assert (found > 0.0) == (p > 0.5), p
            tail = arb(p) if p < 0.5 else 1 - arb(p)
            assert abs(student_tail(found, dof) - tail) < 1e-9 * tail, p
            if abs(p - 0.5) > 0.01:
                assert abs(student_tail(1.000001 * found, dof) - tail) > 1e-9 * tail, p

    def test_by_hand(self):
        """One degree: tan(pi (p - 1/2)). Two: (2p - 1) / sqrt(2 p (1 - p))."""
        for p in (0.01, 0.3, 0.75, 0.975, 0.9999):
            assert stats.t_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-11)
            assert stats.t_quantile(p, 2) == pytest.approx(
                (2 * p - 1) / math.sqrt(2 * p * (1 - p)), rel=1e-11
            )

    @pytest.mark.parametrize(
        ("p", "dof"), [(0.0, 3), (1.0, 3), (math.nan, 3), ("half", 3), (0.9, 0), (0.9, 2.5)]
    )
    def test_refuses_what_has_no_quantile(self, p, dof):
        with pytest.raises(InvalidSetting, match="expected"):
            stats.t_quantile(p, dof)


class TestMeans:
    @pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
    def test_interval_is_the_textbooks(self, level):
        values = [3.1, -2.0, 4.4, 4.5, 0.3]
        found = stats.mean_interval(values, level)
        half = stats.t_quantile((1 + level) / 2, 4) * np.std(values, ddof=1) / math.sqrt(5)
        assert found == pytest.approx(
            (np.mean(values), np.mean(values) - half, np.mean(values) + half, 5), rel=1e-10
        )

    def test_by_hand(self):
        """1 and 3: mean 2, standard error 1, t(0.975, 1) = 12.7062047."""
        found = stats.mean_interval([1.0, 3.0])
        assert found == pytest.approx((2.0, 2.0 - 12.706204736, 2.0 + 12.706204736, 2), rel=1e-9)

    def test_one_trial_says_nothing(self):
        found = stats.mean_interval([5.0])
        assert (found.mean, found.n) == (5.0, 1)
        assert math.isnan(found.low)
        assert math.isnan(found.high)

    def test_equal_values_have_no_width(self):
        assert np.mean([0.1] * 3) != 0.1  # what a plain mean makes of them
        assert stats.mean_interval([0.1] * 3) == (0.1, 0.1, 0.1, 3)

    def test_band_is_an_interval_at_every_point(self):
        curves = np.random.default_rng(0).normal(size=(4, 6))
        curves[:, 2] = 0.1
        mean, low, high = stats.band(curves, 0.9)
        for i in range(6):
            assert (mean[i], low[i], high[i], 4) == pytest.approx(
                stats.mean_interval(curves[:, i], 0.9), rel=1e-12
            )
        assert high[2] - low[2] == 0.0
        mean, low, high = stats.band(curves[:1])
        np.testing.assert_array_equal(mean, curves[0])
        assert np.isnan([low, high]).all()

    @pytest.mark.parametrize("values", [[], [1.0, math.nan], [[1.0], [2.0]], ["a"]])
    def test_refuses_what_has_no_mean(self, values):
        with pytest.raises(InvalidSetting, match="expected"):
            stats.mean_interval(values)

    @pytest.mark.parametrize("curves", [[1.0, 2.0], np.zeros((0, 3))])
    def test_refuses_what_is_not_curves(self, curves):
        with pytest.raises(InvalidSetting, match="trials, points"):
            stats.band(curves)


class TestShares:
    @pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
    def test_bounds_leave_the_right_tails(self, level):
        """The chance of k or more at the low end, and of k or fewer at the high one, is half of
        what is missed.
        """
        miss = (1 - arb(level)) / 2
        for k, n in SEEN:
            low, high = stats.binomial_bounds(k, n, level)
            one_sided = stats.at_most(k, n, level)
            if k > 0:
                assert abs(beta_share(k, n - k + 1, low) - miss) < 1e-9 * miss, (k, n)
            if k < n:
                assert abs(1 - beta_share(k + 1, n - k, high) - miss) < 1e-8 * miss, (k, n)
                assert abs(1 - beta_share(k + 1, n - k, one_sided) - 2 * miss) < 1e-8 * miss, (k, n)
            assert low == 0.0 or k > 0
            assert (high == one_sided == 1.0) == (k == n)

    def test_by_hand(self):
        """None of n: (1 - p)^n = 5 %. All of n: p^n = 2.5 %."""
        assert stats.at_most(0, 10) == pytest.approx(1 - 0.05**0.1, rel=1e-12)
        assert round(stats.at_most(0, 10), 4) == 0.2589
        assert stats.binomial_bounds(7, 7) == pytest.approx((0.025 ** (1 / 7), 1.0), rel=1e-12)
        assert stats.at_most(0, 100_000) == pytest.approx(
            -math.expm1(math.log(0.05) / 100_000), rel=1e-11
        )

    @pytest.mark.parametrize("n", [5, 10, 30])
    def test_they_cover_the_truth_whatever_it_is(self, n):
        """Exact: the chances of all k whose interval holds p, summed. The usual normal interval
        fails the same sum.
        """
        truths = np.linspace(0.005, 0.995, 199)
        k = np.arange(n + 1)
        ways = np.array([math.comb(n, int(i)) for i in k], dtype=np.float64)[:, None]
        chances = ways * truths ** k[:, None] * (1.0 - truths) ** (n - k[:, None])

        def coverage(bounds):
            low, high = np.array([bounds(i) for i in k]).T[:, :, None]
            return (chances * ((low <= truths) & (truths <= high))).sum(axis=0)

        def normal(i):
            half = 1.96 * math.sqrt(i / n * (1 - i / n) / n)
            return i / n - half, i / n + half

        assert coverage(lambda i: stats.binomial_bounds(int(i), n)).min() >= 0.95
        assert coverage(lambda i: (0.0, stats.at_most(int(i), n))).min() >= 0.95
        assert coverage(normal).min() < 0.5

    def test_one_sided_is_no_wider_than_it_must_be(self):
        """At the bound itself the chance of so few is 5 %: anything smaller would miss."""
        for k, n in [(0, 10), (3, 10), (40, 1000)]:
            p = Fraction(stats.at_most(k, n))
            so_few = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
            assert float(so_few) == pytest.approx(0.05, rel=1e-10)

    @pytest.mark.parametrize(("k", "n"), [(-1, 10), (11, 10), (0, 0), (1.0, 10), (True, 10)])
    def test_refuses_what_is_not_k_of_n(self, k, n):
        for asked in (stats.binomial_bounds, stats.at_most, stats.bound_in_words):
            with pytest.raises(InvalidSetting, match="expected"):
                asked(k, n)

    @pytest.mark.parametrize(
        ("k", "n", "words"),
        [
            (0, 10, "0 of 10 runs: at most 26 % at 95 % confidence"),
            (3, 10, "3 of 10 runs: between 6.7 % and 65 %"),
            (10, 10, "10 of 10 runs: at least 74 % at 95 % confidence"),
            (0, 1, "0 of 1 run: at most 95 % at 95 % confidence"),
            (999, 1000, "999 of 1,000 runs: between 99.44 % and 99.9975 %"),
            (0, 100_000, "0 of 100,000 runs: at most 0.0030 % at 95 % confidence"),
        ],
    )
    def test_in_words(self, k, n, words):
        assert f"{stats.count_in_words(k, n, 'run')}: {stats.bound_in_words(k, n)}" == words


class TestPairs:
    @pytest.mark.parametrize(
        ("wins", "losses"), [(5, 0), (0, 1), (3, 7), (7, 3), (5, 5), (6, 5), (100, 150)]
    )
    def test_sign_test_is_the_oracles(self, wins, losses):
        first, second = [0.0] * wins + [1.0] * losses + [2.0], [1.0] * wins + [0.0] * losses + [2.0]
        found = stats.paired(first, second)
        assert (found.wins, found.losses, found.ties) == (wins, losses, 1)
        n, fewer = wins + losses, min(wins, losses)
        exact = Fraction(2 * sum(math.comb(n, i) for i in range(fewer + 1)), 2**n)
        assert found.p == pytest.approx(min(1.0, float(exact)), rel=1e-11)

    def test_by_hand(self):
        """Five of five: 2 / 2^5."""
        found = stats.paired([1, 2, 3, 4, 5], [2, 4, 6, 8, 10])
        assert found.p == pytest.approx(2 / 32, rel=1e-12)
        assert found.difference == stats.mean_interval([-1, -2, -3, -4, -5])
        assert found.difference.high < 0 < stats.paired([2, 4, 6], [1, 2, 3]).difference.mean

    def test_pairing_sees_what_two_means_do_not(self):
        """Seeds matter much, the learner a little: the difference is sure, the two intervals
        overlap.
        """
        seeds = np.array([0.0, 50.0, 100.0, 150.0])
        first, second = seeds, seeds + np.array([1.0, 1.1, 0.9, 1.0])
        assert stats.paired(first, second).difference.high < 0
        assert stats.mean_interval(first).high > stats.mean_interval(second).low

    def test_nothing_but_ties(self):
        found = stats.paired([1.0, 1.0], [1.0, 1.0])
        assert found == ((0.0, 0.0, 0.0, 2), 0, 0, 2, 1.0)

    @pytest.mark.parametrize(("first", "second"), [([1.0], [1.0, 2.0]), ([], [])])
    def test_refuses_trials_without_a_partner(self, first, second):
        with pytest.raises(InvalidSetting, match="same trials"):
            stats.paired(first, second)


@pytest.mark.parametrize(
    ("values", "median", "never"),
    [
        ([3, 1, 2], 2, 0),
        ([3, 1], 2, 0),
        ([1, None, 5], 5, 1),
        ([None, 1, None], None, 2),
        ([1, None], None, 1),
        ([1, 2, None, None], None, 2),
        ([1, 2, 4, None], 3, 1),
        ([None], None, 1),
        ([0, 0], 0, 0),
    ],
)
def test_never_is_later_than_everything(values, median, never):
    assert stats.summarise_optional(values) == (median, never)


def test_an_empty_summary_is_refused():
    with pytest.raises(InvalidSetting, match="empty"):
        stats.summarise_optional([])
