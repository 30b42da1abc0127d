"""The lower values of all candidates of a plan; over lists, of those that may be chosen.

A plan plays the first candidate at or above the floor, mixed with its bolder neighbour. Of the
splices between pi_bar and pi_b, all others need not be bounded, if it is known that they are below
the floor; and one backward pass shows that of many at once.
"""

from typing import Any

import numpy as np
from numba.extending import overload

from surefoot.base.arrays import Floats, Ints
from surefoot.kernels.bernstein import Estimate
from surefoot.kernels.evidence import Evidence, look_ahead
from surefoot.kernels.jit import PART, compiled
from surefoot.kernels.kl import Balls
from surefoot.kernels.mixing import Rule, candidate_values, lower_at_start
from surefoot.kernels.splices import Splices, bound_splices, bound_states
from surefoot.kernels.start_and_returns import BaselineReturns, Start

MOST_VALUES = 2**15  # of all candidates, of each step and state: so many are always computed
TABLE = 1  # the slot for splices between pi_bar and pi_b, where there is one slot for them all
SLACK = 1e-6  # per unit of H: far more than rounding makes of a value


def slots_of(evidence: Evidence, h0: Ints, H: int, S: int) -> Ints:
    """The candidates that have values of their own: all, where these are few numbers.

    With balls, splices between the first and the baseline share one place otherwise: most are not
    bounded at all. The paper's lower values depend on upper ones, so no pass bounds many splices at
    once: with them, all have values of their own.
    """
    few = len(h0) <= 3 or (H + 1) * len(h0) * S <= MOST_VALUES
    return h0 if few or not isinstance(evidence, Balls) else np.array([0, TABLE, H])


def bound_candidates(
    evidence: Evidence,
    splices: Splices,
    start: Start,
    returns: BaselineReturns,
    rule: Rule,
    L: Floats,
) -> float:
    """Bound the candidates of all states, in L, after anything may have changed. Return the floor.

    Where candidates share a slot, those are bounded that may be chosen; the rest of L is 0, which
    any policy is worth.
    """
    bound_splices(evidence, splices, splices.h0[:0], 0, splices.pi_b.shape[1])
    return values_of_candidates(evidence, splices, start, returns, rule, L)


def values_of_candidates(
    evidence: Evidence,
    splices: Splices,
    start: Start,
    returns: BaselineReturns,
    rule: Rule,
    L: Floats,
) -> float:
    """Write the lower values of the candidates into L, after `bound_splices`, and return the
    floor.
    """
    return float(_VALUES[type(evidence)](evidence, splices, start, returns, rule, L))


@overload(values_of_candidates, jit_options=PART)
def _values_of_candidates(evidence, splices, start, returns, rule, L):  # type: ignore[no-untyped-def]
    values = _VALUES[evidence.instance_class]

    def call(evidence, splices, start, returns, rule, L):  # type: ignore[no-untyped-def]
        return values(evidence, splices, start, returns, rule, L)

    return call


@compiled
def _each_by_its_slot(
    evidence: Evidence,
    splices: Splices,
    start: Start,
    returns: BaselineReturns,
    rule: Rule,
    L: Floats,
) -> float:
    return candidate_values(splices, start, returns, rule, L)


@compiled
def _those_needed(
    evidence: Evidence,
    splices: Splices,
    start: Start,
    returns: BaselineReturns,
    rule: Rule,
    L: Floats,
) -> float:
    """Of candidates that share a slot, bound those that may be chosen, as `next_range` asks."""
    if splices.h0.shape[0] == L.shape[0]:
        return candidate_values(splices, start, returns, rule, L)
    H = splices.pi_b.shape[0]
    floor = values_of_slots(splices, start, returns, rule, L)
    lo, hi = first_range(L, floor)
    while hi > 0:
        bound_range(evidence, splices, lo, hi)
        lo, hi = next_range(L, floor, H, lo, hi, lower_at_start(start, splices.V_low[0, TABLE]))
    return floor


_VALUES: dict[type, Any] = {Estimate: _each_by_its_slot, Balls: _those_needed}


@compiled
def values_of_slots(
    splices: Splices, start: Start, returns: BaselineReturns, rule: Rule, L: Floats
) -> float:
    """Write the lower values of the candidates that have a slot of their own into L, 0 for
    others; return the floor.
    """
    slots, last = splices.h0.shape[0], L.shape[0] - 1
    floor = candidate_values(splices, start, returns, rule, L[:slots])
    L[last] = L[slots - 1]
    for c in range(slots - 1, last):
        L[c] = 0.0
    return floor


@compiled
def first_range(L: Floats, floor: float) -> tuple[int, int]:
    """The splices of which a value is needed after those of pi_bar, the first splice and pi_b:
    all, or (0, 0), none.
    """
    if L.shape[0] < 4 or L[0] >= floor or L[1] >= floor:
        return 0, 0
    return 2, L.shape[0] - 2


@compiled
def next_range(L: Floats, floor: float, H: int, lo: int, hi: int, value: float) -> tuple[int, int]:
    """The splices to bound next, after lo..hi turned out to be worth at most `value`; (0, 0): no
    others are needed.

    All before lo are below the floor. What is looked for are the first at or above it, and its
    bolder neighbour, which is bounded last. The value of a single splice, lo = hi, is written into
    L.
    """
    last = L.shape[0] - 2
    if lo == hi:
        L[lo] = value
        if value >= floor:
            return lo - 1, lo - 1
        if lo == last or L[lo + 1] >= floor:
            return 0, 0
        return lo + 1, last
    if value < floor - SLACK * H:
        return (last, last) if hi == last else (hi + 1, last)
    return lo, (lo + hi) // 2


@compiled
def bound_range(evidence: Evidence, splices: Splices, lo: int, hi: int) -> None:
    """Write lower values into TABLE that are at least those of all splices lo..hi; for lo = hi, its
    own.

        V_most_hi = V_low of pi_bar,
        V_most_h = the backup of V_most_{h+1} by pi_b, or, from lo on, V_low of pi_bar if larger.

    A splice is pi_b before some step in lo..hi, and pi_bar from it on; and a backup is monotone in
    lower values.
    """
    _, S, A = splices.pi_b.shape
    begin_range(splices, hi)
    for h in range(hi - 1, -1, -1):
        up, low = splices.V_up[h + 1, TABLE], splices.V_low[h + 1, TABLE]
        look_ahead(evidence, up, low, S * A, False)
        bound_states(evidence, splices, h, TABLE, 0, S)
        widen_range(splices, h, lo)


@compiled
def begin_range(splices: Splices, hi: int) -> None:
    """Let TABLE begin with the values of pi_bar at step hi."""
    for s in range(splices.V_low.shape[2]):
        splices.V_up[hi, TABLE, s] = splices.V_up[hi, 0, s]
        splices.V_low[hi, TABLE, s] = splices.V_low[hi, 0, s]


@compiled
def widen_range(splices: Splices, h: int, lo: int) -> None:
    """Let TABLE be worth at least what pi_bar is from step h on, if a splice from lo on may
    begin there.
    """
    if h < lo:
        return
    V_most, V_low = splices.V_low[h, TABLE], splices.V_low[h, 0]
    for s in range(V_most.shape[0]):
        V_most[s] = max(V_most[s], V_low[s])
