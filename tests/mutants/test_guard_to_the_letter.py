"""What returns prove in a guard, line by line: codes, roundings, prefixes, ladders, proofs that are a hair too bold."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import surefoot as sf
from surefoot.base.nodes import EPISODE, FINE, LOST, NODES, OUTSIDE, PLACES
from surefoot.bounds import portfolio
from surefoot.guard import comparison, evidence
from surefoot.guard.ramp import FloorRule
from surefoot.guard.state import Proved

F = Fraction
LAST = 64
STEP = 2 * EPISODE
GUARD = sf.Guard(floor=0.5, low=0.0, high=1.0, delta=0.5)
RATIO = sf.Guard(floor=sf.Relative(0.2), low=1.0, high=3.0, delta=0.5)
BELOW = sf.Guard(floor=sf.Below(0.2), low=-1.0, high=3.0, delta=0.5)


def weights(**at):
    """Episodes at nodes: n0=2 is two of the lowest return."""
    found = np.zeros(PLACES, dtype=np.int64)
    for node, n in at.items():
        found[int(node[1:])] = n * EPISODE
    return found


def state_of(guard, rows, logged=None):
    """Tickets of these policies with these returns, in parts of the range; None: open."""
    state = guard.begin(logged=logged)
    state = guard.admit(guard.admit(state, "c"), "d")
    for p, part in rows:
        state, ticket = guard.dispatch(state, p)
        if part is not None:
            state = guard.settle(state, ticket, guard.low + (guard.high - guard.low) * part)
    return state


# ---- codes and weights


def test_the_code_of_a_return():
    """The node below it, and what counts for the node above: whole numbers, rounded down, in any range."""
    assert evidence.STEP == STEP and evidence.code_of(0.0, 0.0, 1.0) == 0
    assert evidence.code_of(1.0, 0.0, 1.0) == 63 * STEP + EPISODE
    for low, high in ((0.0, 1.0), (-2.0, 3.0), (1.0, 1.5)):
        for part in (F(1, 7), F(1, 2), F(99, 100)):
            ret = low + (high - low) * float(part)
            place = math.floor((F(ret) - F(low)) * FINE / (F(high) - F(low)))
            k = max(i for i in range(64) if NODES[i] <= place)
            above = (place - NODES[k]) * EPISODE // (NODES[k + 1] - NODES[k])
            assert evidence.code_of(ret, low, high) == k * STEP + above
    with pytest.raises(AssertionError):
        evidence.code_of(1.5, 0.0, 1.0)


def test_weights_are_counted_at_both_nodes():
    found = evidence.weights_of([5 * STEP + 3, 5 * STEP, 6 * STEP + EPISODE])
    expected = np.zeros(PLACES, dtype=np.int64)
    expected[5], expected[6], expected[7] = 2 * EPISODE - 3, 3, EPISODE
    assert found.tolist() == expected.tolist() and found.shape == (PLACES,)
    assert not evidence.weights_of([]).any() and OUTSIDE == 65


# ---- numbers that are rounded to the safe side


def test_the_logarithm_of_a_level_is_rounded_up():
    for level in (0.5, 0.02, 1e-3):
        assert evidence.log_inverse(level) == math.nextafter(-math.log(level), math.inf) * (1.0 + 2.0**-50)


def test_a_fraction_is_rounded_to_its_side():
    for value in (F(1, 3), F(2, 3), F(-1, 3), F(-2, 3), F(1, 10), F(7, 10)):
        down, up = evidence.rounded(value, -math.inf), evidence.rounded(value, math.inf)
        assert F(down) < value < F(up) and math.nextafter(down, math.inf) == up
    for value in (0.0, 0.75, -2.5):
        assert evidence.rounded(F(value), -math.inf) == value == evidence.rounded(F(value), math.inf)


def test_bounds_in_the_units_of_the_user():
    assert evidence.lower_value(Proved(0.25, 1), -2.0, 3.0) == -0.75
    assert evidence.lower_value(Proved(), -2.0, 3.0) == -2.0
    exact = F(3) - 5 * (F(0.25) - F(LOST))
    found = evidence.upper_value(Proved(0.25, 1), -2.0, 3.0)
    assert F(found) >= exact > F(math.nextafter(found, -9.0))
    assert evidence.upper_value(Proved(LOST / 2, 1), -2.0, 3.0) == 3.0 == evidence.upper_value(Proved(), -2.0, 3.0)
    assert F(evidence.lower_value(Proved(0.3, 1), 0.1, 0.8)) <= F(0.1) + (F(0.8) - F(0.1)) * F(0.3)


# ---- bounds of one policy


ROWS = [(0, 1.0), (1, 1.0), (1, 1.0), (0, 0.0), (1, None), (1, 1.0), (2, 0.0), (1, 0.0), (0, None), (1, 1.0), (1, None)]


def of_prefix(codes, n, sign, level, before=0, missing=0):
    """The bound of the first n outcomes of 0 or 1, None counted as the worst, by the readable portfolio."""
    worst = 0.0 if sign > 0 else 1.0
    ones = sum(worst if x is None else x for x in codes[:n]) + missing * worst
    counted = np.zeros(PLACES, dtype=np.int64) + before
    counted[0] += int((n + missing - ones) * EPISODE)
    counted[LAST] += int(ones * EPISODE)
    return portfolio.mean_lower(counted[:65][::sign], evidence.log_inverse(level))


@pytest.mark.parametrize("level", [0.2, 0.45])
def test_a_bound_is_that_of_the_best_prefix(level):
    """Of policy 1 of three, with two open tickets, and of the baseline with a log that lacks two returns."""
    state = state_of(GUARD, ROWS, [1.0, None, 1.0, 0.0, None])
    mine = [part for p, part in ROWS if p == 1]
    for bound, sign in ((evidence.lower_bound, 1), (evidence.upper_bound, -1)):
        tried = {n: of_prefix(mine, n, sign, level) for n in (2, 6, 7)}
        best = max(tried, key=tried.get)
        found = bound(state, 1, level, 0.0, 1.0)
        assert found.proved.value == pytest.approx(tried[best], rel=1e-7) and found.proved.tickets == best
        value = found.proved.value if sign > 0 else 1.0 - (found.proved.value - LOST)
        assert found.value == pytest.approx(value, rel=1e-12)
        theirs = [part for p, part in ROWS if p == 0]
        log = weights(n0=1, n64=2)
        tried = {3 + n: of_prefix(theirs, n, sign, level, log, 2) for n in (2, 3)}
        found = bound(state, 0, level, 0.0, 1.0).proved
        assert found.value == pytest.approx(max(tried.values()), rel=1e-7) and found.value < 0.9


def test_a_bound_that_was_proved_before_stays():
    state = state_of(GUARD, ROWS)
    for side, bound in (("lower", evidence.lower_bound), ("upper", evidence.upper_bound)):
        known = state.with_policy(1, replace(state.policies[1], **{side: Proved(0.9375, 3)}))
        assert bound(known, 1, 0.2, 0.0, 1.0).proved == Proved(0.9375, 3)
        known = state.with_policy(1, replace(state.policies[1], **{side: Proved(1e-9, 3)}))
        assert bound(known, 1, 0.2, 0.0, 1.0) == bound(state, 1, 0.2, 0.0, 1.0)


def test_without_open_tickets_all_are_counted():
    state = state_of(GUARD, [(0, 1.0), (1, 1.0), (1, 0.0), (1, 1.0), (2, None)])
    found = evidence.lower_bound(state, 1, 0.5, 0.0, 1.0).proved
    assert found.tickets == 3 and found.value == pytest.approx(of_prefix([1.0, 0.0, 1.0], 3, 1, 0.5), rel=1e-7)


def test_which_prefixes_are_tried():
    """All tickets, then those before an open one from the end; of many open ones, finely at both ends."""
    assert list(evidence.prefixes([1, 2, 3])) == [3] and list(evidence.prefixes([])) == [0]
    assert list(evidence.prefixes([1, None, 2, None, 3])) == [5, 3, 1] and list(evidence.prefixes([None])) == [1, 0]
    dropped = [100 - n for n in list(evidence.prefixes([None] * 100))[1:]]
    slowly, wide = [*range(1, 33)], [34, 36, 38, 40, 42, 44, 46, 48, 51, 54, 56, 58, 60, 62, 64, 66, 68, 70]
    assert dropped == [*slowly, *wide, *range(71, 101)]


def test_the_readable_best_prefix():
    code = {0.0: 0, 1.0: 63 * STEP + EPISODE, None: None}
    outcomes = [1.0, 1.0, None, 1.0, 0.0, None, 1.0]
    codes = [code[x] for x in outcomes]
    before = weights(n64=2)
    for sign in (1, -1):
        expected = max(of_prefix(outcomes, n, sign, 0.3, before, 1) for n in (2, 5, 7))
        assert evidence.best_prefix(before, 1, codes, sign, 0.3) == pytest.approx(expected, rel=1e-12)
        assert before.tolist() == weights(n64=2).tolist()
        others = [of_prefix(outcomes, n, sign, 0.3, before, missing) for n in (2, 5, 7) for missing in (0, 2)]
        assert all(abs(expected - other) > 1e-6 for other in others)
    assert evidence.best_prefix(before * 0, 0, [code[0.0]], 1, 0.3) == 0.0


LOGGED = [1.0, None, 1.0, 0.0, None, 1.0, 1.0]


@pytest.mark.parametrize(("p", "sign"), [(0, 1), (0, -1), (1, 1), (1, -1)])
def test_what_tickets_prove_of_a_bound(p, sign):
    """The bound itself, not a hair more, nor by fewer tickets that do not prove it; nothing outside 0..1."""
    rows = [(0, 1.0 - p), (1, 0.0), (0, None), (1, 1.0), (1, None), (1, 1.0), (0, 0.0), (1, 1.0), (0, 1.0), (1, 0.0)]
    rows *= 2
    state = state_of(GUARD, rows, LOGGED)
    bound = (evidence.lower_bound if sign > 0 else evidence.upper_bound)(state, p, 0.4, 0.0, 1.0).proved
    value, size = bound
    assert 0.02 < value < 0.9 and evidence.proves(state, p, sign, 0.4, bound)
    before, count = (5, 8) if p == 0 else (0, 12)
    mine = [part for who, part in rows if who == p]
    for n in range(-1, before + count + 2):
        fits = before <= n <= before + count
        log, missing = (weights(n0=1, n64=4), 2) if p == 0 else (0, 0)
        exact = of_prefix(mine, n - before, sign, 0.4, log, missing) if fits else 0.0
        for claim in (1e-6, exact - 1e-6, exact + 1e-3, exact + 0.01):
            if 0.0 < claim < 1.0:
                assert evidence.proves(state, p, sign, 0.4, Proved(claim, n)) == (fits and claim < exact)
    assert not evidence.proves(state, p, sign, 0.3, bound)
    for wrong in (Proved(0.0, size), Proved(-0.5, size), Proved(1.0, size), Proved(1.5, size), Proved(math.nan, size)):
        assert not evidence.proves(state, p, sign, 0.4, wrong)
    assert evidence.proves(state, p, sign, 0.4, Proved()) and evidence.proves(state, p, sign, 1e-9, Proved())


# ---- comparisons


@pytest.mark.parametrize("level", [0.0425, 0.5, 1e-4])
def test_the_ladder(level):
    """log of (z_{k+1} - 1/2) / (1/2) and of (1/(level z_k) - 1/8) / (7/8), z from 1/2 to 8/level in equal ratios."""
    found = comparison.ladder(level)
    assert found.shape == (16, 2) and not found.flags.writeable and comparison.UNSTAKED == (0.5, 0.125)
    assert comparison.RUNGS == 16 and comparison.WORST == (64, 0)
    z = [0.5 * (16.0 / level) ** (k / 16) for k in range(17)]
    for k in range(16):
        for log, need in ((found[k, 0], 2.0 * z[k + 1] - 1.0), (found[k, 1], (8.0 / (level * z[k]) - 1.0) / 7.0)):
            exact = math.log(need)
            assert log == pytest.approx(exact + 2.0**-40 * (1.0 + abs(exact)), rel=2e-14, abs=2e-14)
    assert found[15, 0] == pytest.approx(math.log(16.0 / level - 1.0), rel=1e-11)


def test_what_is_compared():
    for floor, ratio, zero in ((sf.Relative(0.2), True, 0.5), (sf.Below(0.2), False, 0.0)):
        rule = FloorRule.of(floor)
        assert comparison.is_ratio(rule) is ratio and comparison.zero_of(rule, 1.0, 3.0) == zero
    assert comparison.zero_of(FloorRule.of(sf.Relative(0.2)), 3.0, 4.0) == 3.0


def test_a_comparison_in_the_units_of_the_user():
    """Of a ratio, the range alone proves low / high."""
    ratio, below = (FloorRule.of(floor) for floor in (sf.Relative(0.2), sf.Below(0.2)))
    assert comparison.compared_value(Proved(0.75, 1), ratio, 1.0, 4.0) == 0.75
    assert comparison.compared_value(Proved(0.125, 1), ratio, 1.0, 4.0) == 0.25
    third = comparison.compared_value(Proved(), ratio, 1.0, 3.0)
    assert F(third) < F(1, 3) < F(math.nextafter(third, 1.0))
    assert comparison.compared_value(Proved(0.75, 1), below, -1.0, 3.0) == -1.0
    assert comparison.compared_value(Proved(1.25, 1), below, -1.0, 3.0) == 1.0
    found = comparison.compared_value(Proved(0.7, 1), below, 0.1, 0.4)
    exact = (F(0.4) - F(0.1)) * (F(0.7) - 1)
    assert F(found) <= exact < F(math.nextafter(found, 1.0))


def by_hand(b, c, level, zero, ratio):
    """min_k L_k / U_{k+1}, or one plus min_k (L_k - U_{k+1}), from the numbers of the ladder."""
    z = [0.5 * (16.0 / level) ** (k / 16) for k in range(17)]
    found = []
    for k in range(16):
        needs = math.log(2.0 * z[k + 1] - 1.0), math.log((8.0 / (level * z[k]) - 1.0) / 7.0)
        U = 1.0 - max(portfolio.mean_lower(b[:65][::-1], needs[0]) - LOST, 0.0)
        L = portfolio.mean_lower(c[:65], needs[1])
        found.append((zero + L) / (zero + U) if ratio else 1.0 + L - U)
    return max(min(found), 0.0)


@pytest.mark.parametrize(("zero", "ratio"), [(0.0, True), (0.5, True), (0.0, False)])
def test_the_readable_comparison(zero, ratio):
    b, c = weights(n0=30, n30=9, n64=4), weights(n0=3, n40=6, n64=25)
    found = comparison.compared(b, c, 0.3, zero, ratio)
    assert found == pytest.approx(by_hand(b, c, 0.3, zero, ratio), rel=1e-9) and found > 1.05
    assert comparison.compared(b, c, 0.3, 0.25, True) != pytest.approx(found, rel=1e-3)
    assert comparison.compared(b * 0, c * 0, 0.3, zero, ratio) == pytest.approx(0.5 / 1.5 if zero else 0.0, abs=1e-12)
    assert comparison.compared(weights(n64=50), weights(n0=50), 0.3, 0.0, False) >= 0.0


COMPARED = [(1, 1.0), (0, 0.0), (2, 1.0), (1, None), (0, None), (1, 1.0), (0, 0.0), (1, 1.0), (0, 0.25), (1, 0.75)] * 4
COMPARED += [(1, None), (2, 1.0), (0, None), (2, 0.0), (1, 0.0), (0, 1.0)]


def counted_until(rows, size, log, missing):
    """The weights of the baseline and of policy 1 among the first tickets, open ones at the worst node."""
    found = []
    for p, worst in ((0, 1.0), (1, 0.0)):
        codes = [evidence.code_of(worst if x is None else x, 0.0, 1.0) for who, x in rows[:size] if who == p]
        found.append(evidence.weights_of(codes))
    found[0] += log
    found[0][LAST] += missing * EPISODE
    return found


@pytest.mark.parametrize("guard", [RATIO, BELOW])
def test_a_comparison_is_that_of_the_best_prefix_of_all_tickets(guard):
    """With a log that lacks a return, open tickets of both, and those of another candidate between them."""
    ratio, zero = guard is RATIO, 0.5 if guard is RATIO else 0.0
    logged = [guard.low, guard.low, None]
    state = state_of(guard, COMPARED, logged)
    opens = [i for i, (p, part) in enumerate(COMPARED) if part is None and p != 2]
    sizes = (len(COMPARED), *opens[-3:])
    tried = {n: by_hand(*counted_until(COMPARED, n, weights(n0=2), 1), 0.4, zero, ratio) for n in sizes}
    best = max(tried, key=tried.get)
    assert best == 40 and tried[best] > 0.3
    found = comparison.compare(state, 1, 0.4, guard.rule, guard.low, guard.high)
    assert found.proved.tickets == best and found.proved.value == pytest.approx(tried[best], rel=1e-8)
    assert found.value == comparison.compared_value(found.proved, guard.rule, guard.low, guard.high)


@pytest.mark.parametrize("guard", [RATIO, BELOW])
def test_a_comparison_without_open_tickets(guard):
    """All tickets count; and one that was withdrawn keeps what was proved of it."""
    rows = [row for row in COMPARED if row[1] is not None] + [(2, None)]
    state = state_of(guard, rows)
    ratio, zero = guard is RATIO, 0.5 if guard is RATIO else 0.0
    found = comparison.compare(state, 1, 0.4, guard.rule, guard.low, guard.high)
    expected = by_hand(*counted_until(rows, len(rows), 0, 0), 0.4, zero, ratio)
    assert found.proved.value == pytest.approx(expected, rel=1e-8) and found.proved.tickets == len(rows)
    for kept in (Proved(0.9, 7), Proved(0.001, 7)):
        known = state.with_policy(1, replace(state.policies[1], lower=kept))
        best = kept if kept.value > expected else found.proved
        assert comparison.compare(known, 1, 0.4, guard.rule, guard.low, guard.high).proved == best
        gone = known.with_policy(1, replace(known.policies[1], withdrawn=3))
        assert comparison.compare(gone, 1, 0.4, guard.rule, guard.low, guard.high) == (
            comparison.compared_value(kept, guard.rule, guard.low, guard.high),
            kept,
        )


@pytest.mark.parametrize("guard", [RATIO, BELOW])
def test_what_tickets_prove_of_a_comparison(guard):
    """What their prefix proves, and not a hair more; no number that is none, and no prefix that is not there."""
    ratio, zero = guard is RATIO, 0.5 if guard is RATIO else 0.0
    for logged, log, missing in (([guard.low, None, None], weights(n0=1), 2), (None, 0, 0)):
        state = state_of(guard, COMPARED, logged)
        n = state.tickets.n
        for size in (0, 17, n):
            exact = by_hand(*counted_until(COMPARED, size, log, missing), 0.4, zero, ratio)
            for claim, proved in ((exact, True), (exact + 1e-7, False)):
                assert comparison.proves_comparison(state, 1, 0.4, zero, ratio, Proved(claim, size)) is proved
        for wrong in (Proved(0.01, -1), Proved(0.01, n + 1), Proved(math.nan, 4), Proved(-math.inf, 4)):
            assert not comparison.proves_comparison(state, 1, 0.4, zero, ratio, wrong)
        assert comparison.proves_comparison(state, 1, 0.4, zero, ratio, Proved())
