"""Evidence: what a family of bounds reads of the data. Its type selects the family when a kernel is compiled.

`q_bounds` and `refresh_pair` are one name for several kernels; numba picks one by the type of the evidence. So the
backward pass and the fused loop are written once and compiled once per family, with no flag tested inside.
"""

from typing import Any, TypeAlias

from numba.extending import overload

from surefoot.base.arrays import Floats
from surefoot.numerics.kernels.bernstein import Estimate, q_bernstein, refresh_bernstein
from surefoot.numerics.kernels.jit import PART, compiled
from surefoot.numerics.kernels.kl import Balls, q_kl, refresh_kl

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
    slot: int,
) -> None:
    """Write Q_up into scratch[0] and Q_low into scratch[1] for the pairs lo <= i < hi of one step, by these bounds.

    Slot 0 is the table of the optimistic policy; upper values of other slots are needed only where the lower ones
    depend on them.
    """
    _TABLES[type(evidence)](evidence, row, h, lo, hi, H, V_up, V_low, scratch, slot)


@overload(q_bounds, jit_options=PART)
def _q_bounds(evidence, row, h, lo, hi, H, V_up, V_low, scratch, slot):  # type: ignore[no-untyped-def]
    table = _TABLES[evidence.instance_class]

    def call(evidence, row, h, lo, hi, H, V_up, V_low, scratch, slot):  # type: ignore[no-untyped-def]
        table(evidence, row, h, lo, hi, H, V_up, V_low, scratch, slot)

    return call


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
    """Sum n_sa from n_sas, and call `refresh_pair` for every pair."""
    rows, pairs, S = evidence.n_sas.shape
    for row in range(rows):
        for pair in range(pairs):
            n = evidence.n_sas[row, pair, 0]
            for s_next in range(1, S):
                n += evidence.n_sas[row, pair, s_next]
            evidence.n_sa[row, pair] = n
            refresh_pair(evidence, row, pair)


@compiled
def refresh_moved(evidence: Evidence) -> None:
    """Call `refresh_pair` for the pairs whose counts have grown since they were last refreshed."""
    rows, pairs = evidence.n_sa.shape
    for row in range(rows):
        for pair in range(pairs):
            if evidence.n_sa[row, pair] != evidence.n_fresh[row, pair]:
                refresh_pair(evidence, row, pair)
