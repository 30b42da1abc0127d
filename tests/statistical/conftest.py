"""The exact binomial test that the statistical tests share."""

import math

import pytest

LEVEL = 0.01


def chance_of_at_most(k, n, p):
    """P(at most k successes of n) at chance p, term by term."""
    constant = math.lgamma(n + 1)
    terms = (
        constant
        - math.lgamma(i + 1)
        - math.lgamma(n - i + 1)
        + i * math.log(p)
        + (n - i) * math.log1p(-p)
        for i in range(k + 1)
    )
    return min(1.0, math.fsum(math.exp(term) for term in terms))


@pytest.fixture(scope="session")
def binomial_tail():
    return chance_of_at_most


@pytest.fixture(scope="session")
def is_below():
    """Does an exact test at level 1 % reject "the share is delta or more", k of n having been
    seen?
    """

    def test(k, n, delta):
        return chance_of_at_most(k, n, delta) <= LEVEL

    return test


@pytest.fixture(scope="session")
def is_above():
    """Does one at level 1e-6 reject "the share is delta or less"? What a control has to show."""

    def test(k, n, delta):
        return 1.0 - chance_of_at_most(k - 1, n, delta) < 1e-6

    return test
