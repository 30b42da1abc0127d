"""The rule of a plan, line by line: weights in fractions, every exit, relative floors, bisection."""

import math
from fractions import Fraction

import numpy as np
import pytest

from surefoot.base.nodes import EPISODE, PLACES
from surefoot.numerics.kernels.evidence import refresh_all
from surefoot.numerics.kernels.kl import RewardArrays, balls_from
from surefoot.numerics.kernels.mixing import (
    Rule,
    candidate_values,
    choose,
    exit_taken,
    mix_splices,
    weight,
)
from surefoot.numerics.kernels.portfolio import portfolio_from, seen_returns_from
from surefoot.numerics.kernels.splices import bound_splices, empty_splices
from surefoot.numerics.kernels.start_and_returns import BaselineReturns, start_from

ULP = Fraction(1, 2**53)


# ---- The weight -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("safe", "bold", "floor"),
    [(1.0, 0.0, 0.5), (1.0, 0.5, 0.75), (4.0, 2.0, 3.5), (2.0, 1.0, 1.75), (0.75, 0.25, 0.5)],
)
def test_what_a_weight_gives_up(safe, bold, floor):
    """8 units of 2^-53 of rho and 2 of floor / (safe - bold), which short binary fractions make exact."""
    apart = Fraction(safe) - Fraction(bold)
    rho = (Fraction(safe) - Fraction(floor)) / apart
    assert Fraction(weight(safe, bold, floor)) == rho - 8 * ULP * rho - 2 * ULP * Fraction(floor) / apart


def test_a_weight_keeps_the_exact_mixture_at_the_floor():
    """For any floats; the plain quotient would not, in hundreds of 2,000 cases: the control."""
    rng = np.random.default_rng(0)
    plain = 0
    for _ in range(2000):
        bold, floor, safe = np.sort(rng.random(3) * 10.0 ** rng.integers(-3, 2)).tolist()
        gap, slack = Fraction(safe) - Fraction(bold), Fraction(safe) - Fraction(floor)
        rho = weight(safe, bold, floor)
        assert 0.0 <= rho <= 1.0
        assert Fraction(rho) * gap <= slack
        plain += Fraction((safe - floor) / (safe - bold)) * gap > slack
    assert plain > 200


def test_neighbours_that_are_hardly_apart_are_not_mixed():
    """2^-40 or less: the safe one. A hair more: a weight, of nearly 1 for a floor at the bold one."""
    for apart in (0.0, 2.0**-41, 2.0**-40, -0.5):
        assert weight(1.0, 1.0 - apart, 1.0 - apart) == 0.0
    assert weight(1.0, 1.0 - 1.5 * 2.0**-40, 1.0 - 1.5 * 2.0**-40) > 0.99


def test_a_weight_is_a_weight():
    assert weight(1.0, 0.5, 1.0) == 0.0  # 0, less what is given up
    assert weight(1.0, 0.5, 0.25) == 1.0  # the bold one is above the floor, too


@pytest.mark.parametrize(
    ("L", "floor", "mixes", "found"),
    [
        ([0.5, 0.75, 1.0], 0.5, True, (0, 1.0, True)),
        ([0.5, 0.75, 1.0], 0.25, False, (0, 1.0, True)),
        ([0.5, 0.75, 1.0], 0.625, False, (1, 0.0, True)),
        ([0.5, 0.75, 1.0], 1.0, False, (2, 0.0, True)),
        ([0.5, 0.75, 1.0], 1.125, True, (2, 0.0, False)),
        ([0.25], 0.5, True, (0, 0.0, False)),
        ([0.25], -math.inf, False, (0, 1.0, True)),
    ],
)
def test_the_first_candidate_at_the_floor_is_taken(L, floor, mixes, found):
    assert choose(np.array(L), floor, mixes) == found


def test_a_candidate_is_mixed_with_its_bolder_neighbour():
    """Of (1/8, 1/2, 1, 3/4) and a floor of 3/4 the third: rho = (1 - 3/4) / (1 - 1/2) = 1/2, less 7 units."""
    c, rho, reached = choose(np.array([0.125, 0.5, 1.0, 0.75]), 0.75, True)
    assert (c, Fraction(rho), reached) == (2, Fraction(1, 2) - 7 * ULP, True)


# ---- What the candidates are held against ---------------------------------------------------------------------------


def record(lowest=0.0, rounding=0.0, asserted=-math.inf, episodes=0, upper=False):
    """Returns that are all the same, so that their bounds are exact: lowest, or lowest + rounding."""
    weights = np.zeros(PLACES, dtype=np.int64)
    weights[0] = episodes * EPISODE
    seen = seen_returns_from(np.array([episodes, 0]), weights, (int(lowest * 2**20), 0))
    return BaselineReturns(seen, portfolio_from(), rounding, upper, 1.0, 0.0, asserted)


def standing(h0, final=0.0, first=1):
    """Splices of 3 candidates or fewer over 2 steps and 3 states, with values that tell all places apart."""
    splices = empty_splices(np.array(h0), np.full((2, 3, 2), 0.5))
    splices.V_low[:] = np.arange(splices.V_low.size).reshape(splices.V_low.shape) / 8
    splices.V_up[:] = splices.V_low + 2.125
    weights = np.zeros(3)
    weights[first] = 1.0
    return splices, start_from(weights, np.zeros(3, dtype=np.int64), 1.0, 0.5, 1.0, 0.0, final)


def test_lower_values_are_read_at_the_start():
    """V_low[0, c, s1] with s1 = 1: 1/8, 4/8, 7/8; less the final margin, where there is one, and then not below 0."""
    L = np.zeros(3)
    for final, expected in ((0.0, [1, 4, 7]), (0.25, [0, 2, 5]), (2.0, [0, 0, 0])):
        floor = candidate_values(*standing([0, 1, 2], final), record(), Rule(0.5, True, False), L)
        assert (L * 8).tolist() == expected
        assert floor == 0.5


def test_without_a_final_margin_values_are_as_they_are():
    splices, start = standing([0, 1, 2])
    splices.V_low[:] -= 1.0
    L = np.zeros(3)
    candidate_values(splices, start, record(), Rule(0.5, True, False), L)
    assert (L * 8).tolist() == [-7, -4, -1]


def test_other_evidence_speaks_of_the_baseline_alone():
    """The last candidate's value is the largest of model, returns and the owner's word; the others stay."""
    for other, expected in (
        (record(asserted=1.5), 1.5),
        (record(lowest=1.25, episodes=3), 1.25),
        (record(lowest=1.25, asserted=1.5, episodes=3), 1.5),
        (record(lowest=0.5, asserted=0.25, episodes=3), 0.875),
    ):
        L = np.zeros(3)
        assert candidate_values(*standing([0, 1, 2]), other, Rule(0.75, True, False), L) == 0.75
        assert L.tolist() == [0.125, 0.5, expected]


def test_where_no_candidate_is_the_baseline_no_evidence_speaks_of_it():
    L = np.zeros(1)
    assert candidate_values(*standing([0]), record(asserted=1.5), Rule(0.25, False, False, 0.5), L) == 0.25
    assert L.tolist() == [0.125]


def test_a_baseline_of_one_step_is_the_baseline():
    L = np.zeros(2)
    candidate_values(*standing([0, 1]), record(asserted=1.5), Rule(0.25, True, False), L)
    assert L.tolist() == [0.125, 1.5]


@pytest.mark.parametrize(
    ("max_loss", "offset", "final", "up", "U"),
    [
        (0.25, 1.0, 0.0, math.inf, 3.0),  # V_up[0, 2, 1] = 7/8 + 17/8
        (0.25, 1.0, 1.0, math.inf, 4.0),  # and the final margin
        (0.5, 0.5, 0.0, 2.0, 2.0),  # the returns say less
        (0.25, 1.0, 0.125, 0.5, 0.5),
        (0.5, 0.0, 0.0, math.inf, 3.0),
        (0.0, 1.0, 0.0, 2.0, 2.0),  # nothing may be given up, but that is relative, too
    ],
)
def test_a_relative_floor(max_loss, offset, final, up, U):
    """(1 - max_loss) U - max_loss offset - amount, rounded up by 4 units of 2^-53 of U; U stands for the baseline."""
    returns = record() if up == math.inf else record(lowest=up - 0.25, rounding=0.25, episodes=1, upper=True)
    for amount in (0.0, 0.125):
        L = np.zeros(3)
        rule = Rule(9.0, True, False, max_loss, offset, 0, amount)
        floor = candidate_values(*standing([0, 1, 2], final), returns, rule, L)
        exact = (1 - Fraction(max_loss)) * Fraction(U) - Fraction(max_loss) * Fraction(offset) - Fraction(amount)
        assert Fraction(floor) == max(exact + 4 * ULP * Fraction(U), 0)
        assert L[2] == U


def test_a_relative_floor_is_not_negative():
    L = np.zeros(3)
    for rule in (Rule(9.0, True, False, 0.5, 50.0), Rule(9.0, True, False, 0.0, 0.0, 0, 50.0)):
        assert candidate_values(*standing([0, 1, 2]), record(), rule, L) == 0.0


def test_a_rule_says_nothing_of_what_it_is_not_told():
    """No relative floor (negative), no offset, no bisection, no amount."""
    assert Rule(0.5, True, False) == (0.5, True, False, -1.0, 0.0, 0, 0.0)


# ---- A larger weight ------------------------------------------------------------------------------------------------


def untried(pi_b, explorer, r):
    """No data at all: a backup is r + min V, so lower values of mixtures are lines, and exact."""
    H, S, A = pi_b.shape
    evidence = balls_from(
        np.zeros((H, S, A, S), dtype=np.int64),
        H,
        rewards=RewardArrays(r.reshape(H, S * A)),
        support=None,
        log_union=1.0,
        alpha=0.5,
        scale=1.0,
        tie=0.0,
        margin=0.0,
        uppers=False,
    )
    refresh_all(evidence)
    splices = empty_splices(np.arange(H + 1), pi_b, explorer)
    bound_splices(evidence, splices, np.zeros(0, dtype=np.int64), 0, S)
    return evidence, splices


def certain(H, S, action):
    pi = np.zeros((H, S, 2))
    pi[..., action] = 1.0
    return pi


# ---- Exits and policies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("h", "rho", "number"),
    [
        (0, 1.0, 2),
        (0, 0.0, 2),
        (3, 0.0, 0),
        (3, 0.5, 1),
        (2, 0.0, 1),
        (1, 0.0, 1),
        (1, 0.5, 1),
        (3, 1.0, 1),
        (4, 0.0, 1),
    ],
)
def test_the_three_exits_of_three_steps(h, rho, number):
    """0 the baseline, 1 a mixture, 2 the optimistic policy."""
    assert exit_taken(h, rho, 3) == number


@pytest.mark.parametrize("h", [1, 2, 3, 4])
def test_one_row_is_mixed(h):
    """Rows before h-1 are pi_b's, row h-1 is (1-rho) x + rho y, rows from h on are pi_bar's."""
    rng = np.random.default_rng(h)
    pi_b, pi_bar = (rng.integers(1, 8, size=(4, 3, 2)) / 8 for _ in range(2))
    pi_bar[pi_bar == pi_b] += 1.0
    out = np.full((4, 3, 2), np.nan)
    mix_splices(pi_b, pi_bar, h, 0.25, out)
    np.testing.assert_array_equal(out[: h - 1], pi_b[: h - 1])
    np.testing.assert_array_equal(out[h - 1], 0.75 * pi_b[h - 1] + 0.25 * pi_bar[h - 1])
    np.testing.assert_array_equal(out[h:], pi_bar[h:])


def test_equal_entries_are_copied():
    """The formula would move 0.1 at rho = 0.3: the control. The others of the row are mixed."""
    pi_b = np.array([[[0.1, 0.2, 0.7], [0.1, 0.5, 0.4]]])
    pi_bar = np.array([[[0.1, 0.7, 0.2], [0.1, 0.3, 0.6]]])
    moved = 0.7 * 0.1 + 0.3 * 0.1
    assert moved != 0.1
    out = np.zeros((1, 2, 3))
    mix_splices(pi_b, pi_bar, 1, 0.3, out)
    assert out[0, :, 0].tolist() == [0.1, 0.1]
    np.testing.assert_allclose(out[0, :, 1:], [[0.35, 0.55], [0.44, 0.46]], atol=1e-15, rtol=0)
