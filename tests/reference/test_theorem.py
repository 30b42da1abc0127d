"""The theorems' bounds in numbers, against decimal arithmetic and hand; and power laws, against
exact lines.
"""

from decimal import Decimal, getcontext
from math import isclose, isnan, log

import pytest

from surefoot.errors import InvalidSetting
from surefoot.studies.analysis.stats import power_law
from surefoot.studies.analysis.theorem import (
    TABLE_1,
    Setting,
    beta,
    beta_star,
    delta_parts,
    leading_order,
    most_not_optimistic,
    optimistic_regret_bound,
    regret_bound,
    stated_order,
)

getcontext().prec = 40
IT = Setting(H=2, S=3, A=2, K=10**6 - 1, kappa=0.5, Delta_0=0.25, delta_prime=0.01)
E = Decimal(1).exp()
# SAH/delta' = 12/0.01
UNION, GROWS, LOG = Decimal(1200).ln(), (8 * E * 10**6).ln(), Decimal(10**6).ln()
HHHSA = 48  # 2^3 * 3 * 2


def test_beta_by_hand():
    """log 1200 = 7.0901, log(8e 10^6) = log 8 + 1 + 6 log 10 = 2.0794 + 1 + 13.8155 = 16.8950."""
    assert beta(IT) == pytest.approx(7.0901 + 3 * 16.8950, abs=1e-3)
    assert beta_star(IT) == pytest.approx(7.0901 + 16.8950, abs=1e-3)
    assert isclose(beta(IT), UNION + 3 * GROWS, rel_tol=1e-14)
    assert isclose(beta_star(IT), UNION + GROWS, rel_tol=1e-14)


def test_bounds_are_those_of_decimal_arithmetic():
    star, full = UNION + GROWS, UNION + 3 * GROWS
    waits = (
        4608 * E**26 * star * LOG / Decimal("0.25") + 2688 * E**13 * full * LOG / Decimal("0.5")
    ) * HHHSA
    free = (
        48 * E**13 * (HHHSA * (10**6 - 1) * star * LOG).sqrt() + 1344 * E**13 * HHHSA * full * LOG
    )
    assert isclose(most_not_optimistic(IT), waits, rel_tol=1e-13)
    assert isclose(optimistic_regret_bound(IT), free, rel_tol=1e-13)
    assert isclose(regret_bound(IT), free + waits / 4, rel_tol=1e-13)


def test_the_lemma_follows_from_the_line_before_it():
    """|N| kappa <= a sqrt(|N|) + b gives |N| <= 2 a^2/kappa^2 + 2 b/kappa: the larger root is
    below that.
    """
    log_K = log(IT.K + 1)
    a = 48 * 2.718281828459045**13 * (HHHSA * beta_star(IT) * log_K) ** 0.5
    b = 1344 * 2.718281828459045**13 * HHHSA * beta(IT) * log_K
    root = ((a + (a * a + 4 * IT.kappa * b) ** 0.5) / (2 * IT.kappa)) ** 2
    assert most_not_optimistic(IT) == pytest.approx(2 * a**2 / IT.kappa**2 + 2 * b / IT.kappa)
    assert root <= most_not_optimistic(IT)


@pytest.mark.parametrize(("agent", "parts"), [("stepmix", 12), ("epsmix", 4)])
def test_parts_of_delta(agent, parts):
    assert delta_parts(agent, 3) == parts


def test_without_a_gap_nothing_is_added():
    assert regret_bound(IT._replace(Delta_0=0.0)) == optimistic_regret_bound(IT)


def test_orders_of_table_1():
    """H = 2, S = 4, A = 1, K = 2, kappa = 1/2, Delta_0 = 1: H^3 S A K = 64, H^6 S^3 A K = 8192,
    H^6 S^2 A K = 2048.
    """
    it = Setting(2, 4, 1, 2, 0.5, 1.0, 0.01)
    assert leading_order(it) == 8.0
    expected = {
        "bpi-ucbvi": 8.0,
        "optpess-lp": 2 * 8192**0.5,
        "dope": 2 * 2048**0.5,
        "budget-exploration": 8.0 + 32 / 0.75,
        "stepmix": 8.0 + 32 * 4,
        "epsmix": 8.0 + 32 * 4,
    }
    assert {agent: stated_order(agent, it) for agent in TABLE_1} == pytest.approx(expected)


def test_a_power_law_is_found():
    fit = power_law([1.0, 2.0, 4.0, 8.0], [3.0, 12.0, 48.0, 192.0])
    assert fit.exponent == pytest.approx(2.0)
    assert fit.factor == pytest.approx(3.0)
    assert (fit.low, fit.high) == pytest.approx((2.0, 2.0))
    assert str(fit) == "2.00 (2.00 to 2.00)"


def test_the_interval_by_hand():
    """Logs (0, 1, 2) and (0, 2, 1): slope 1/2, residuals -1/2, 1, -1/2, so s^2 = 3/2 and the error
    sqrt(3/4).

    Student's 97.5 % quantile of one degree of freedom is 12.7062.
    """
    e = 2.718281828459045
    fit = power_law([1.0, e, e**2], [1.0, e**2, e])
    assert fit.exponent == pytest.approx(0.5)
    assert fit.high - fit.exponent == pytest.approx(12.7062 * 0.75**0.5, rel=1e-5)
    assert fit.exponent - fit.low == pytest.approx(12.7062 * 0.75**0.5, rel=1e-5)


def test_two_points_have_no_interval():
    fit = power_law([1.0, 10.0], [1.0, 10.0])
    assert isnan(fit.low)
    assert isnan(fit.high)
    assert str(fit) == "1.00"


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 1.0], [1.0, 2.0], "at least two different x"),
        ([1.0, 2.0], [1.0], "at least two different x"),
        ([0.0, 2.0], [1.0, 2.0], "not above 0"),
        ([1.0, 2.0], [1.0, -2.0], "not above 0"),
    ],
)
def test_what_has_no_power_law_is_refused(x, y, words):
    with pytest.raises(InvalidSetting, match=words):
        power_law(x, y)
