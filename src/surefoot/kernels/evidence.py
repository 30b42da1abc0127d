"""Evidence: what a family of bounds reads of the data. Its type selects the family when a kernel is
compiled.

`q_bounds` and `refresh_pair` are one name for several kernels; numba picks one by the type of the
evidence. So the backward pass and the fused loop are written once and compiled once per family,
with no flag tested inside.
"""

from typing import Any, TypeAlias

from numba.extending import overload

from surefoot.base.arrays import Floats
from surefoot.kernels.bernstein import Estimate, q_bernstein, refresh_bernstein
from surefoot.kernels.jit import PART, compiled
from surefoot.kernels.kl import Balls, look_ahead_balls, q_kl, refresh_kl

Evidence: TypeAlias = Estimate | Balls

_TABLES: dict[type, Any] = {Estimate: q_bernstein, Balls: q_kl}
_REFRESHERS: dict[type, Any] = {Estimate: refresh_bernstein, Balls: refresh_kl}


def q_bounds(
    evidence: Evidence,
    row: int,
    h: int,
    lo: int,
    hi: int,
    H: int,
    V_up: Floats,
    V_low: Floats,
    scratch: Floats,
    wanted: int,
    pi: Floats,
) -> None:
    """Write Q_up into scratch[0] and Q_low into scratch[1] for the pairs lo <= i < hi of one step,
    by these bounds.

    `wanted` is BOTH, LOWER or BEST (kl.py), of the pairs that `pi` (S, A) plays; of all, where it
    has no rows. `look_ahead` comes before the first pair of a step.
    """
    _TABLES[type(evidence)](evidence, row, h, lo, hi, H, V_up, V_low, scratch, wanted, pi)


@overload(q_bounds, jit_options=PART)
def _q_bounds(evidence, row, h, lo, hi, H, V_up, V_low, scratch, wanted, pi):  # type: ignore[no-untyped-def]
    table = _TABLES[evidence.instance_class]

    def call(evidence, row, h, lo, hi, H, V_up, V_low, scratch, wanted, pi):  # type: ignore[no-untyped-def]
        table(evidence, row, h, lo, hi, H, V_up, V_low, scratch, wanted, pi)

    return call


def look_ahead(evidence: Evidence, V_up: Floats, V_low: Floats, pairs: int, uppers: bool) -> None:
    """Find, once for so many pairs of a step, what these bounds need of the next step's values.
    `uppers`: are upper values wanted?
    """
    if isinstance(evidence, Balls):
        look_ahead_balls(evidence, V_up, V_low, pairs, uppers)


@overload(look_ahead, jit_options=PART)
def _look_ahead(evidence, V_up, V_low, pairs, uppers):  # type: ignore[no-untyped-def]
    if evidence.instance_class is Balls:

        def at_balls(evidence, V_up, V_low, pairs, uppers):  # type: ignore[no-untyped-def]
            look_ahead_balls(evidence, V_up, V_low, pairs, uppers)

        return at_balls
    return lambda evidence, V_up, V_low, pairs, uppers: None


def refresh_pair(evidence: Evidence, row: int, pair: int) -> None:
    """Bring up to date what depends on the counts of one pair, for these bounds."""
    _REFRESHERS[type(evidence)](evidence, row, pair)


@overload(refresh_pair, jit_options=PART)
def _refresh_pair(evidence, row, pair):  # type: ignore[no-untyped-def]
    refresh = _REFRESHERS[evidence.instance_class]

    def call(evidence, row, pair):  # type: ignore[no-untyped-def]
        refresh(evidence, row, pair)

    return call


@compiled
def refresh_all(evidence: Evidence) -> None:
    """Call `refresh_pair` for every pair."""
    rows, pairs = evidence.n_sa.shape
    for row in range(rows):
        for pair in range(pairs):
            refresh_pair(evidence, row, pair)


@compiled
def refresh_moved(evidence: Evidence) -> None:
    """Call `refresh_pair` for the pairs that were played since they were last refreshed."""
    rows, pairs = evidence.n_sa.shape
    for row in range(rows):
        for pair in range(pairs):
            if evidence.played[row, pair] != evidence.n_fresh[row, pair]:
                refresh_pair(evidence, row, pair)
