"""What the returns of a candidate and of the baseline prove together, for a floor that is measured
from the baseline.

Two bounds, L_c and U_b, would each need evidence of its own. One bet on both needs less. With the
capital W_c(c) of the candidate's returns against V_c <= c, and W_b(b) of the baseline's (one minus
each) against V_b >= b,

    E(b, c) = (1/2 + 1/2 W_b(b)) (1/8 + 7/8 W_c(c))

is, at the true values, a supermartingale in the order of ALL tickets: a ticket multiplies one of
the two brackets by a factor of mean at most 1, and 1/2 and 1/8 are not staked. By Ville's
inequality E stays below 1/delta_0 for all prefixes at once. An open ticket counts as the highest
return of the baseline, or as the lowest of the candidate: E of what is counted is at most the true
one. The prefix is one of the common dispatch order: two prefixes, one for each policy, would need
two levels.

What follows for V_c / V_b, or V_c - V_b, is found on a ladder z_0 = 1/2 < z_1 < ... < z_K =
8/delta_0. Let U_k be such that the first bracket is at least z_k for every b >= U_k (U_0: any b),
and L_k such that the second one is at least 1/(delta_0 z_k) for every c <= L_k. If U_k <= V_b <
U_{k+1}, then V_c > L_k, because E < 1/delta_0; and V_b < U_K. So

    V_c / V_b >= min_k L_k / U_{k+1}   and   V_c - V_b >= min_k (L_k - U_{k+1}),   k = 0 .. K-1.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Floats
from surefoot.base.nodes import NODES, PLACES
from surefoot.base.validation import read_only
from surefoot.guard.evidence import Bound, counted, rounded
from surefoot.guard.ramp import FloorRule
from surefoot.guard.state import GuardState, Proved

RUNGS = 16  # K: with more of them little is gained
UNSTAKED = (1 / 2, 1 / 8)  # of the capital against the baseline, and against the candidate
WORST = (len(NODES) - 1, 0)  # where open tickets of the baseline and of the candidate are counted


@lru_cache(2**10)
def ladder(level: float) -> Floats:
    """Return the logarithms of the capitals that U_{k+1} and L_k need, k = 0 .. K-1, rounded up."""
    idle_b, idle_c = UNSTAKED
    first, last = idle_b, 1.0 / (level * idle_c)
    z = [first * (last / first) ** (k / RUNGS) for k in range(RUNGS)] + [last]
    needs = [
        [(z[k + 1] - idle_b) / (1.0 - idle_b), (1.0 / (level * z[k]) - idle_c) / (1.0 - idle_c)]
        for k in range(RUNGS)
    ]
    logs = np.log(np.array(needs))
    return read_only(logs + 2.0**-40 * (1.0 + np.abs(logs)))


def is_ratio(rule: FloorRule) -> bool:
    """Is it V_c / V_b that is bounded, or V_c - V_b?"""
    return not rule.amount


def zero_of(rule: FloorRule, low: float, high: float) -> float:
    """Return what a part of the range must be raised by to be in proportion to the user's
    values.
    """
    return low / (high - low) if is_ratio(rule) else 0.0


def compare(
    state: GuardState, p: int, level: float, rule: FloorRule, low: float, high: float
) -> Bound:
    """Return what candidate p is worth at least, compared with the baseline; wrong with probability
    `level`, ever.

    A share of the baseline's value, or how much more than it, in the user's units.
    """
    b, c = (state.policies[i] for i in (0, p))
    if not c.active:
        return Bound(compared_value(c.lower, rule, low, high), c.lower)
    columns = state.columns_if(b.unheard + c.unheard > 0)
    whose = columns.policy
    known = kernels.Tickets(
        np.where(whose == 0, 0, np.where(whose == p, 1, 2)),
        columns.code,
        np.array([b.settled, c.settled]),
        *(
            np.array(counts)
            for counts in ((b.heard, c.heard), (b.unheard, c.unheard), (b.missing, c.missing))
        ),
    )
    size, hint = np.array([c.lower.tickets]), np.zeros(2)
    found = kernels.compared_prefix(
        kernels.portfolio_from(),
        known,
        state.tickets.n,
        1,
        kernels.Comparison(ladder(level), zero_of(rule, low, high), is_ratio(rule)),
        c.lower.value,
        np.zeros((2, PLACES), dtype=np.int64),
        size,
        hint,
    )
    proved = Proved(float(found), int(size[0]))
    return Bound(compared_value(proved, rule, low, high), proved)


def compared_value(proved: Proved, rule: FloorRule, low: float, high: float) -> float:
    """Return a comparison in the user's units, not rounded up. Without any return the range
    alone proves something.
    """
    if is_ratio(rule):
        return rounded(max(Fraction(proved.value), Fraction(low) / Fraction(high)), -math.inf)
    return rounded((Fraction(high) - Fraction(low)) * (Fraction(proved.value) - 1), -math.inf)


def proves_comparison(
    state: GuardState, p: int, level: float, zero: float, ratio: bool, proved: Proved
) -> bool:
    """Do so many tickets, of all policies in dispatch order, prove this? With a hair for
    rounding errors.
    """
    if proved == Proved():
        return True
    if not 0 <= proved.tickets <= state.tickets.n or not math.isfinite(proved.value):
        return False
    whose, codes, *_ = (column[: proved.tickets] for column in state.tickets.columns)
    how = kernels.Comparison(ladder(level), zero, ratio)
    b, c = (
        counted(state, i, codes[whose == i], worst) for i, worst in zip((0, p), WORST, strict=True)
    )
    found = kernels.compared(kernels.portfolio_from(), how, b, c, 0.0, np.zeros(2))
    return found >= proved.value - 1e-9
