"""The kernels behind a guard's bounds and comparisons, line by line: every prefix that is tried, by hand."""

import math

import numpy as np
import pytest

from surefoot.base.nodes import EPISODE, LOST, PLACES
from surefoot.guard import comparison
from surefoot.numerics import kernels
from surefoot.numerics.kernels import guard as kernel
from surefoot.numerics.kernels.portfolio import mean_lower

STEP, LAST, OPEN = 2 * EPISODE, 64, -1
TABLES = kernels.portfolio_from()
ONE, ZERO, MIDDLE = 63 * STEP + EPISODE, 0, 32 * STEP + 5  # codes of returns 1, 0 and a little above 1/2


def spread(**at):
    found = np.zeros(PLACES, dtype=np.int64)
    for node, n in at.items():
        found[int(node[1:])] = n * EPISODE
    return found


def test_an_outcome_is_added_and_removed():
    found = np.zeros(PLACES, dtype=np.int64)
    kernel.add_code(found, 5 * STEP + 3, 1)
    kernel.add_code(found, 5 * STEP + 3, 1)
    assert (found[5], found[6], found.sum()) == (2 * (EPISODE - 3), 6, 2 * EPISODE)
    kernel.add_code(found, 5 * STEP + 3, -1)
    assert (found[5], found[6], found.sum()) == (EPISODE - 3, 3, EPISODE)


def test_how_many_open_tickets_are_dropped_next():
    assert kernel.SPARSER == 16
    for dropped, left, expected in ((1, 9, 2), (31, 99, 32), (32, 99, 34), (99, 31, 100), (99, 48, 102), (0, 0, 1)):
        assert kernel.next_drop(dropped, left) == expected


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seen", [spread(n0=9, n64=31), spread(n20=4, n40=4), spread(n0=1), spread(n64=3), spread()])
def test_a_bound_that_may_be_better(seen, sign):
    """Yes wherever the bound is above, no where it is below by more than a hair; at the fixed means, too."""
    assert kernel.HAIR == 1e-9
    for level in (0.5, 3.0):
        bound = mean_lower(TABLES, seen, sign, level)
        for best in (bound - 1e-12, bound * 0.9, bound - 0.003, 0.0, -0.5, *(1.0 / TABLES.inverse[[3, 200, 254]])):
            if best < bound:
                assert kernel.may_be_better(TABLES, seen, sign, level, best)
        for best in (bound + 1e-6, bound + 0.002, bound + 0.1, 0.9999999, 1.0, 1.5):
            if best > bound + 1e-7:
                assert not kernel.may_be_better(TABLES, seen, sign, level, best) or (bound == 0.0 and best < 4e-5)


ROWS = [(0, ZERO), (2, ONE), (1, ONE), (2, OPEN), (0, OPEN), (1, ONE), (2, ONE), (0, ZERO), (2, MIDDLE), (0, MIDDLE)]
ROWS *= 3
ROWS += [(2, OPEN), (1, OPEN), (2, ZERO), (0, OPEN), (0, ONE)]


def tickets_of(rows, logged=0, missing=(0, 0, 0)):
    """Tickets of three policies; the baseline has so many logged returns of 0."""
    found = kernels.empty_tickets(len(rows) + 3, 3)
    for i, (p, code) in enumerate(rows):
        found.policy[i], found.code[i] = p, code
        if code == OPEN:
            found.unheard[p] += 1
        else:
            kernel.add_code(found.settled[p], code, 1)
            found.heard[p] += 1
    found.settled[0, 0] += logged * EPISODE
    found.heard[0] += logged
    found.missing[:] = missing
    return found


def counted(rows, p, worst, logged=0, missing=0):
    """How the tickets of a policy are spread, open ones at the worst node."""
    found = spread(**{f"n{worst}": missing})
    found[0] += logged * EPISODE
    for who, code in rows:
        if who == p:
            kernel.add_code(found, code, 1) if code != OPEN else found.__setitem__(worst, found[worst] + EPISODE)
    return found


@pytest.mark.parametrize(("p", "sign"), [(0, 1), (0, -1), (2, 1), (2, -1)])
def test_the_best_prefix_of_a_policy(p, sign):
    """Of all prefixes that end before an open ticket of its own, the first best one; and what was proved before."""
    logged, missing, worst = (4, 2, 0 if sign > 0 else LAST) if p == 0 else (0, 1, 0 if sign > 0 else LAST)
    tickets = tickets_of(ROWS, logged, (2, 9, 1))
    tried = {}
    for i in (len(ROWS), *(i for i, row in enumerate(ROWS) if row == (p, OPEN))):
        size = logged + sum(who == p for who, _ in ROWS[:i])
        tried[size] = mean_lower(TABLES, counted(ROWS[:i], p, worst, logged, missing), sign, 0.7)
    best = max(tried, key=tried.get)
    assert tried[best] > 0.03
    for before, value, size in ((0.0, tried[best], best), (tried[best], tried[best], 77), (0.9, 0.9, 77)):
        place, scratch = np.array([77]), np.full(PLACES, 5)
        found = kernel.best_prefix(TABLES, tickets, len(ROWS), p, sign, 0.7, before, scratch, place)
        assert (found, int(place[0])) == (value, size)


@pytest.mark.parametrize(("zero", "ratio"), [(0.0, True), (0.5, True), (0.0, False)])
def test_the_lowest_rung_counts(zero, ratio):
    """Whatever the hint is; and only where it is better than what is known."""
    b, c = spread(n0=30, n30=9, n64=4), spread(n0=3, n40=6, n64=25)
    rungs = np.array([[0.2, 3.0], [1.0, 2.0], [2.5, 0.4]])
    how = kernels.Comparison(rungs, zero, ratio)
    values, uppers = [], []
    for need_b, need_c in rungs:
        U = 1.0 - (mean_lower(TABLES, b, -1, need_b) - LOST)
        L = mean_lower(TABLES, c, 1, need_c)
        uppers.append(U)
        values.append((1 - 2.0**-40) * (zero + L) / (zero + U) if ratio else (1 - 2.0**-40) + L - U)
    least = min(values)
    at = values.index(least)
    assert least > 1.0 and sorted(values)[1] > least + 1e-3
    for first in range(3):
        for split in (0.3, uppers[first], math.nan):
            for best in (0.0, least - 1e-9):
                hint = np.array([first, split])
                assert kernel.compared(TABLES, how, b, c, best, hint) == least
                assert hint.tolist() == [at, uppers[at]]
            for best in (least, least + 1e-7, 3.0):
                hint = np.array([first, split])
                assert kernel.compared(TABLES, how, b, c, best, hint) == best
                again = hint.copy()
                assert kernel.compared(TABLES, how, b, c, best, hint) == best
                assert best == least or hint.tolist() == again.tolist()  # the hint was good: nothing was computed
    nothing, known = spread(), zero / (zero + 1) if ratio else 0.0
    assert kernel.compared(TABLES, how, nothing, nothing, 0.0, np.zeros(2)) == pytest.approx(known)


def test_a_hint_is_half_way():
    """Where a rung is not better, U may be lower by half of what is missing before it is looked at again."""
    b, c = spread(n0=30, n64=4), spread(n0=3, n64=25)
    rungs = np.array([[1.0, 2.0]])
    U, L = 1.0 - (mean_lower(TABLES, b, -1, 1.0) - LOST), mean_lower(TABLES, c, 1, 2.0)
    for zero, ratio, best, enough in ((0.5, True, 4.0, (0.5 + L) / 4.0 - 0.5), (0.0, False, 1.9, 1.0 + L - 1.9)):
        hint = np.array([0.0, math.nan])
        assert kernel.compared(TABLES, kernels.Comparison(rungs, zero, ratio), b, c, best, hint) == best
        assert hint[0] == 0.0 and hint[1] == pytest.approx((U + enough) / 2, rel=1e-12)
    hint = np.array([0.0, 0.0])
    none = spread(n0=5)
    assert kernel.compared(TABLES, kernels.Comparison(rungs, 0.0, True), b, none, 0.0, hint) == 0.0
    assert hint.tolist() == [0.0, U]  # 0 of anything: there is no half way


@pytest.mark.parametrize("ratio", [True, False])
def test_the_best_prefix_of_a_comparison(ratio):
    """Of all prefixes of all tickets that end before an open one of either; those of policy 1 do not count."""
    tickets = tickets_of(ROWS, 3, (2, 9, 1))
    how = kernels.Comparison(comparison.ladder(0.4)[::5].copy(), 0.5 if ratio else 0.0, ratio)
    tried = {}
    for i in (len(ROWS), *(i for i, (p, code) in enumerate(ROWS) if code == OPEN and p != 1)):
        b, c = counted(ROWS[:i], 0, LAST, 3, 2), counted(ROWS[:i], 2, 0, 0, 1)
        tried[i] = kernel.compared(TABLES, how, b, c, 0.0, np.zeros(2))
    best = max(tried, key=tried.get)
    assert best < len(ROWS) and tried[best] > 0.5
    for before, value, size in ((0.0, tried[best], best), (tried[best], tried[best], 77), (2.0, 2.0, 77)):
        place, scratch = np.array([77]), np.full((2, PLACES), 5)
        found = kernel.compared_prefix(TABLES, tickets, len(ROWS), 2, how, before, scratch, place, np.zeros(2))
        assert (found, int(place[0])) == (value, size)
