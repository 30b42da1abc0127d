"""Occupancy-measure programmes, solved by HiGHS: arrays in, arrays out.

A policy is the same as how often it visits each pair at each step, q(h,s,a), and values are linear in q. Which entries
of a programme are not zero depends on its sizes alone, so that pattern is made once; a plan writes its numbers into
their places and starts from the basis in which the last plan ended.
"""

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Floats, Ints, read_only

Status = Literal["optimal", "infeasible", "failed"]
Ints32 = NDArray[np.int32]
FEASIBLE = 1e-8  # how far a row of an answer may be off before it counts as failed
ROW_WISE, MAXIMISE = 2, -1  # HiGHS's numbers


class Pattern(NamedTuple):
    """Where a programme's coefficients stand, row by row, and those that never change."""

    columns: int
    rows: int
    begins: Ints32  # (rows,): where each row begins
    columns_of: Ints32  # (entries,): the columns of its entries
    fixed: Floats  # (entries,): coefficients that do not change; 0 where one is to be written
    places: dict[str, Ints]  # the places of each block's entries, in the block's own order


class Answer(NamedTuple):
    """What a programme came to."""

    status: Status
    words: str  # the solver's own
    x: Floats  # (columns,)
    basis: Ints | None  # (columns + rows,) int8: where the next programme of this pattern may begin


class Occupancy(NamedTuple):
    """An answer as visits of pairs."""

    status: Status
    words: str
    q: Floats  # (H, S, A)
    basis: Ints | None


class Block(NamedTuple):
    """Entries of the matrix that are written together."""

    name: str
    row: Ints
    column: Ints
    value: float  # 0: written anew for every programme


def assemble(columns: int, rows: int, blocks: list[Block]) -> Pattern:
    """Sort all blocks' entries by row."""
    row, column, value = (
        np.concatenate([np.broadcast_to(block[i], np.shape(block.row)).ravel() for block in blocks]) for i in (1, 2, 3)
    )
    order = np.lexsort((column, row))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ends = np.cumsum([np.size(block.row) for block in blocks])[:-1]
    places = {block.name: read_only(part) for block, part in zip(blocks, np.split(place, ends), strict=True)}
    start = np.searchsorted(row[order], np.arange(rows)).astype(np.int32)
    return Pattern(
        columns,
        rows,
        _locked(start),
        _locked(column[order].astype(np.int32)),
        read_only(value[order].astype(np.float64)),
        places,
    )


def _locked(array: Ints32) -> Ints32:
    array.flags.writeable = False  # shared by all who solve programmes of this size
    return array


@lru_cache(maxsize=1)
def _kinds() -> list[Any]:
    """HiGHS's five kinds of status, by number."""
    import highspy

    return [highspy.HighsBasisStatus(kind) for kind in range(5)]


def maximise(
    pattern: Pattern, values: Floats, objective: Floats, low: Floats, high: Floats, basis: Ints | None
) -> Answer:
    """max objective . x subject to low <= M x <= high and x >= 0.

    The solver is made anew each time: what it finds depends on what it is given, never on what it solved before. Its
    answer counts as optimal only if it says so AND its rows hold when they are added up here. Where it does not get
    there from the basis it tries without one, at last with presolve and looser tolerances.
    """
    # Of moderate size whatever the bonuses: the solver's tolerances are absolute.
    objective = objective / max(1.0, float(np.abs(objective).max()))
    given = (pattern, values, objective, low, high)
    answer = _tried(*given, basis, "off", 1e-10)
    if answer.status != "optimal" and basis is not None:
        answer = _tried(*given, None, "off", 1e-10)
    if answer.status == "failed":
        answer = _tried(*given, None, "on", 1e-9)
    return answer


def _tried(
    pattern: Pattern,
    values: Floats,
    objective: Floats,
    low: Floats,
    high: Floats,
    basis: Ints | None,
    presolve: str,
    tolerance: float,
) -> Answer:
    """One run of the solver."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, setting in (
        ("output_flag", False),
        ("presolve", presolve),  # on, it would throw the basis away
        ("solver", "simplex"),
        ("parallel", "off"),  # not threads=1: HiGHS refuses to run if somebody else in the process chose otherwise
        ("small_matrix_value", 1e-12),  # smaller coefficients are dropped
        ("primal_feasibility_tolerance", tolerance),
        ("dual_feasibility_tolerance", tolerance),
    ):
        solver.setOptionValue(option, setting)
    solver.passModel(
        pattern.columns,
        pattern.rows,
        len(values),
        ROW_WISE,
        MAXIMISE,
        0.0,
        objective,
        np.zeros(pattern.columns),
        np.full(pattern.columns, np.inf),
        low,
        high,
        pattern.begins,
        pattern.columns_of,
        values,
        np.zeros(pattern.columns, dtype=np.int32),
    )
    if basis is not None and len(basis) == pattern.columns + pattern.rows:  # another's would be of no use
        begin = highspy.HighsBasis()
        kinds = _kinds()
        begin.col_status = [kinds[kind] for kind in basis[: pattern.columns].tolist()]
        begin.row_status = [kinds[kind] for kind in basis[pattern.columns :].tolist()]
        begin.valid = True
        solver.setBasis(begin)
    solver.run()
    status = solver.getModelStatus()
    words = solver.modelStatusToString(status)
    nothing = np.zeros(pattern.columns)
    if status == highspy.HighsModelStatus.kInfeasible:
        return Answer("infeasible", words, nothing, None)
    if status != highspy.HighsModelStatus.kOptimal:
        return Answer("failed", words, nothing, None)
    x = np.maximum(np.array(solver.getSolution().col_value), 0.0)
    sums = np.add.reduceat(values * x[pattern.columns_of], pattern.begins)
    missed = float(np.maximum(low - sums, sums - high).max())
    if missed > FEASIBLE:
        return Answer("failed", f"{words}, but a row misses {missed:.1e}", nothing, None)
    end = solver.getBasis()
    found = [*map(int, end.col_status), *map(int, end.row_status)]
    return Answer("optimal", words, x, np.array(found, dtype=np.int8))


@lru_cache(maxsize=16)
def occupancy_pattern(H: int, S: int, A: int) -> Pattern:
    """Columns q(h,s,a). Rows: one of flow for every (h,s), then the budget."""
    q = np.arange(H * S * A).reshape(H, S, A)
    flow = np.arange(H * S).reshape(H, S)
    budget = np.array(H * S)
    here = np.broadcast_to(flow[:, :, None], (H, S, A))
    into = np.broadcast_to(flow[1:, None, None, :], (H - 1, S, A, S))
    back = np.broadcast_to(q[:-1, :, :, None], (H - 1, S, A, S))
    blocks = [
        Block("here", here, q, 1.0),  # sum_a q(h,s,a) ...
        Block("before", into, back, 0.0),  # ... - sum_{s',a'} P(s | s',a') q(h-1,s',a') = 0, or the start's share
        Block("cost", np.broadcast_to(budget, q.shape), q, 0.0),  # sum q(h,s,a) c(h,s,a) <= budget
    ]
    return assemble(H * S * A, H * S + 1, blocks)


def best_occupancy(
    P: Floats, start: Floats, reward: Floats, cost: Floats, budget: float, basis: Ints | None = None
) -> Occupancy:
    """max sum q r subject to sum q c <= budget, over the visits q of a model P (H, S, A, S) that is known.

    With the true model this is the constrained optimum; with estimates and bonuses in r and c, OptPess-LP's programme.
    """
    H, S, A = reward.shape
    pattern = occupancy_pattern(H, S, A)
    values = pattern.fixed.copy()
    values[pattern.places["before"]] = -P[:-1].ravel()
    values[pattern.places["cost"]] = cost.ravel()
    high = np.zeros(pattern.rows)
    high[:S] = start
    low = high.copy()
    low[-1], high[-1] = -np.inf, budget
    answer = maximise(pattern, values, reward.ravel(), low, high, basis)
    return Occupancy(answer.status, answer.words, answer.x.reshape(H, S, A), answer.basis)


@lru_cache(maxsize=16)
def extended_pattern(H: int, S: int, A: int) -> Pattern:
    """Columns q(h,s,a), then w(h,s,a,s') for every step but the last, whose next state does not matter.

    DOPE's variables are z(h,s,a,s') = q(h,s,a) P'(s' | s,a) with l <= P' <= u. We write z = l q + w with w >= 0, which
    leaves one row of the box for each, not two.
    """
    q = np.arange(H * S * A).reshape(H, S, A)
    w = (H * S * A + np.arange((H - 1) * S * A * S)).reshape(H - 1, S, A, S)
    flow = np.arange(H * S).reshape(H, S)
    mass = (H * S + np.arange((H - 1) * S * A)).reshape(H - 1, S, A)
    box = (H * S + mass.size + np.arange(w.size)).reshape(w.shape)
    budget = np.array(H * S + mass.size + w.size)
    here = np.broadcast_to(flow[:, :, None], (H, S, A))
    into = np.broadcast_to(flow[1:, None, None, :], w.shape)
    back = np.broadcast_to(q[:-1, :, :, None], w.shape)
    blocks = [
        Block("here", here, q, 1.0),  # flow: sum_a q(h,s,a) ...
        Block("certain", into, back, 0.0),  # ... - sum_{s',a'} l(s | s',a') q(h-1,s',a') ...
        Block("free", into, w, -1.0),  # ... - sum_{s',a'} w(h-1,s',a',s) = 0, or the start's share
        Block("given", np.broadcast_to(mass[..., None], w.shape), w, 1.0),  # sum_s' z = q: sum_s' w(h,s,a,s') ...
        Block("left", mass, q[:-1], 0.0),  # ... - (1 - sum_s' l) q(h,s,a) = 0
        Block("part", box, w, 1.0),  # z <= u q: w(h,s,a,s') ...
        Block("width", box, back, 0.0),  # ... - (u - l) q(h,s,a) <= 0
        Block("cost", np.broadcast_to(budget, q.shape), q, 0.0),  # sum q(h,s,a) c(h,s,a) <= budget
    ]
    return assemble(q.size + w.size, H * S + mass.size + w.size + 1, blocks)


def best_in_box(
    l: Floats,  # noqa: E741
    u: Floats,
    start: Floats,
    reward: Floats,
    cost: Floats,
    budget: float,
    basis: Ints | None = None,
) -> Occupancy:
    """DOPE's extended programme: the best of all policies in all models with l <= P' <= u (H, S, A, S), under a budget.

    max sum z(h,s,a,s') r(h,s,a) subject to sum z(h,s,a,s') c(h,s,a) <= budget, the flow from step to step, and
    l sum_y z(h,s,a,y) <= z(h,s,a,s') <= u sum_y z(h,s,a,y) (Bura et al. 2022).
    """
    H, S, A = reward.shape
    pattern = extended_pattern(H, S, A)
    values, places = pattern.fixed.copy(), pattern.places
    values[places["certain"]] = -l[:-1].ravel()
    values[places["left"]] = (l[:-1].sum(axis=-1) - 1.0).ravel()
    values[places["width"]] = (l[:-1] - u[:-1]).ravel()
    values[places["cost"]] = cost.ravel()
    low, high = np.zeros(pattern.rows), np.zeros(pattern.rows)
    low[:S] = high[:S] = start
    boxes = slice(H * S + (H - 1) * S * A, pattern.rows)
    low[boxes] = -np.inf
    high[-1] = budget
    objective = np.zeros(pattern.columns)
    objective[: H * S * A] = reward.ravel()
    answer = maximise(pattern, values, objective, low, high, basis)
    return Occupancy(answer.status, answer.words, answer.x[: H * S * A].reshape(H, S, A), answer.basis)


def cheapest_in_box(l: Floats, u: Floats, start: Floats, cost: Floats, pi: Floats | None = None) -> float:  # noqa: E741
    """The smallest expected cost in any model of the box, of any policy or of pi: backward induction, no programme.

    The cheapest model gives each next state its least, l, and what is left to the cheapest states first, u at most. A
    budget below this is out of reach of every policy, and the programme infeasible.
    """
    H, S, _ = cost.shape
    V = np.zeros(S)
    for h in reversed(range(H)):
        Q = cost[h]
        if h < H - 1:  # after the last step nothing follows
            order = V.argsort()
            width = (u[h] - l[h])[..., order]
            left = 1.0 - l[h].sum(axis=-1, keepdims=True)
            given = np.minimum(np.maximum(left - (width.cumsum(axis=-1) - width), 0.0), width)
            Q = Q + l[h] @ V + given @ V[order]
        V = Q.min(axis=1) if pi is None else (pi[h] * Q).sum(axis=1)
    return float(start @ V)


def expected(P: Floats, start: Floats, signal: Floats, pi: Floats) -> float:
    """The expected sum of a signal (H, S, A) under pi in the model P (H, S, A, S)."""
    V = np.zeros(signal.shape[1])
    for h in reversed(range(len(signal))):
        V = (pi[h] * (signal[h] + (P[h] * V).sum(axis=-1))).sum(axis=1)
    return float(start @ V)


def policy_from(q: Floats, elsewhere: Floats) -> Floats:
    """pi(a|s) = q(h,s,a) / sum_a q(h,s,a); where the programme never goes, what `elsewhere` does."""
    visits = q.sum(axis=-1, keepdims=True)
    seen = visits > 1e-12
    return np.asarray(np.where(seen, q / np.where(seen, visits, 1.0), elsewhere))
