"""Linear programs over occupancy measures, solved by HiGHS: arrays in, arrays out.

A policy is given by how often it visits each pair at each step, q(h,s,a), and values are linear in
q. Which entries of a linear program are not zero depends on its sizes alone, so that pattern is
made once; a plan writes its numbers into it and starts from the basis of the last solution.
"""

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.validation import read_only

Status = Literal["optimal", "infeasible", "failed"]
Ints32 = NDArray[np.int32]
FEASIBLE = 1e-8  # how far a row of an answer may be off before it counts as failed
ROW_WISE, MAXIMISE = 2, -1  # HiGHS's numbers


class Pattern(NamedTuple):
    """The positions of the coefficients of a linear program, row by row, and those coefficients
    that never change.
    """

    columns: int
    rows: int
    begins: Ints32  # (rows,): where each row begins
    columns_of: Ints32  # (entries,): the columns of its entries
    fixed: Floats  # (entries,): coefficients that do not change; 0 where one is to be written
    # the positions of the entries of each block that are kept, in the order of the block
    places: dict[str, Ints]
    # which entries of a block are kept: none of states where no episode can be
    taken: dict[str, Ints]
    alive: Ints  # (columns,): which of the columns of the whole linear program these are
    bound: Ints  # (rows,): and which of its rows


class Answer(NamedTuple):
    """The result of a linear program."""

    status: Status
    words: str  # the status in the solver's own words
    x: Floats  # (columns,)
    # (columns + rows,) int8: where the next linear program of this pattern may begin
    basis: Ints | None


class Occupancy(NamedTuple):
    """The result of a linear program as visits of pairs."""

    status: Status
    words: str
    q: Floats  # (H, S, A)
    basis: Ints | None


class Block(NamedTuple):
    """Entries of the matrix that are written together."""

    name: str
    row: Ints
    column: Ints
    value: float  # 0: written for every linear program


def assemble(blocks: list[Block], columns: Bools, rows: Bools) -> Pattern:
    """Sort the entries of all blocks by row, and leave out the columns and rows that are not
    needed (False).
    """
    row_of, column_of = np.cumsum(rows) - 1, np.cumsum(columns) - 1
    row, column, value, taken = [], [], [], {}
    for block in blocks:
        rows_here, columns_here = np.asarray(block.row).ravel(), np.asarray(block.column).ravel()
        kept = np.flatnonzero(rows[rows_here] & columns[columns_here])
        row.append(row_of[rows_here[kept]])
        column.append(column_of[columns_here[kept]])
        value.append(np.full(kept.size, block.value))
        taken[block.name] = read_only(kept)
    all_rows, all_columns = np.concatenate(row), np.concatenate(column)
    order = np.lexsort((all_columns, all_rows))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ends = np.cumsum([kept.size for kept in taken.values()])[:-1]
    places = {
        name: read_only(part) for name, part in zip(taken, np.split(place, ends), strict=True)
    }
    n = int(rows.sum())
    return Pattern(
        columns=int(columns.sum()),
        rows=n,
        begins=_locked(np.searchsorted(all_rows[order], np.arange(n)).astype(np.int32)),
        columns_of=_locked(all_columns[order].astype(np.int32)),
        fixed=read_only(np.concatenate(value)[order]),
        places=places,
        taken=taken,
        alive=read_only(np.flatnonzero(columns)),
        bound=read_only(np.flatnonzero(rows)),
    )


def fill(pattern: Pattern, numbers: dict[str, Floats]) -> Floats:
    """Return the coefficients, with the numbers of these blocks in their positions."""
    values = pattern.fixed.copy()
    for name, block in numbers.items():
        values[pattern.places[name]] = block.ravel()[pattern.taken[name]]
    return values


def _first(start: Floats) -> tuple[int, ...]:
    """Return the states in which an episode can begin."""
    return tuple(np.flatnonzero(start).tolist())


def _begun(shape: tuple[int, ...], first: tuple[int, ...]) -> Bools:
    """Return which entries (h, s, ...) an episode can visit: at the first step, only those of
    first states.
    """
    here = np.ones(shape, dtype=np.bool_)
    here[0] = False
    here[0, list(first)] = True
    return here


def _locked(array: Ints32) -> Ints32:
    array.flags.writeable = False  # shared by all linear programs of this size
    return array


@lru_cache(maxsize=1)
def _kinds() -> list[Any]:
    """Return HiGHS's five kinds of status, by number."""
    import highspy

    return [highspy.HighsBasisStatus(kind) for kind in range(5)]


def maximise(
    pattern: Pattern,
    values: Floats,
    objective: Floats,
    low: Floats,
    high: Floats,
    basis: Ints | None,
) -> Answer:
    """Solve max objective . x subject to low <= M x <= high and x >= 0.

    A new solver is made each time: its result depends on its input, never on what it solved before.
    A result counts as optimal only if the solver says so AND its rows hold when they are added up
    here. If that fails from the basis, the solver is run without one, and at last with presolve and
    looser tolerances.
    """
    # Keep the objective of moderate size, whatever the bonuses: the solver's tolerances are
    # absolute.
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
    """Run the solver once."""
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, setting in (
        ("output_flag", False),
        ("presolve", presolve),  # "on" would discard the basis
        ("solver", "simplex"),
        # not threads=1: HiGHS refuses to run if another part of the process chose differently
        ("parallel", "off"),
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
    # that of another is of no use
    if basis is not None and len(basis) == pattern.columns + pattern.rows:
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
def occupancy_pattern(H: int, S: int, A: int, first: tuple[int, ...]) -> Pattern:
    """Return the pattern of visits where every state may follow every pair."""
    into = np.arange(S, H * S).reshape(H - 1, 1, 1, S)
    back = np.arange((H - 1) * S * A).reshape(H - 1, S, A, 1)
    return _visits_pattern((H, S, A), first, *np.broadcast_arrays(into, back))


def _visits_pattern(
    shape: tuple[int, int, int], first: tuple[int, ...], into: Ints, back: Ints
) -> Pattern:
    """Return the pattern with columns q(h,s,a) and rows of flow for every (h,s), then the budget.

    The transitions that are possible lead from the columns `back` into the rows `into`.
    """
    H, S, A = shape
    q = np.arange(H * S * A).reshape(H, S, A)
    flow = np.arange(H * S).reshape(H, S)
    budget = np.array(H * S)
    here = np.broadcast_to(flow[:, :, None], (H, S, A))
    blocks = [
        Block("here", here, q, 1.0),  # sum_a q(h,s,a) ...
        # ... - sum_{s',a'} P(s | s',a') q(h-1,s',a') = 0, or the start's share
        Block("before", into, back, 0.0),
        Block("cost", np.broadcast_to(budget, q.shape), q, 0.0),  # sum q(h,s,a) c(h,s,a) <= budget
    ]
    return assemble(
        blocks, _begun(q.shape, first).ravel(), np.append(_begun(flow.shape, first), True)
    )


def best_occupancy(
    P: Floats, start: Floats, reward: Floats, cost: Floats, budget: float, basis: Ints | None = None
) -> Occupancy:
    """Solve max sum q r subject to sum q c <= budget, over the visits q of a model P (H, S, A, S)
    that is known.

    With estimates and bonuses in r and c, this is OptPess-LP's linear program.
    """
    pattern = occupancy_pattern(*reward.shape, _first(start))
    return _within(budget, pattern, P[:-1], start, reward, cost, basis)


class Moves(NamedTuple):
    """The transitions that are possible in a known model: from the pair (h,s,a), all but those
    of the last step.
    """

    place: Ints  # of the pair among H * S * A
    state: Ints  # the next one
    p: Floats


def best_occupancy_of(
    moves: Moves, start: Floats, reward: Floats, cost: Floats, budget: float
) -> Occupancy:
    """Solve the same over the transitions that are possible. With the true model this is the
    constrained optimum.
    """
    H, S, A = reward.shape
    into = (moves.place // (S * A) + 1) * S + moves.state
    pattern = _visits_pattern((H, S, A), _first(start), into, moves.place)
    return _within(budget, pattern, moves.p, start, reward, cost, None)


def _within(
    budget: float,
    pattern: Pattern,
    p: Floats,
    start: Floats,
    reward: Floats,
    cost: Floats,
    basis: Ints | None,
) -> Occupancy:
    """Write the probabilities and costs into the pattern, and solve."""
    H, S, _ = reward.shape
    values = fill(pattern, {"before": -p, "cost": cost})
    high = np.zeros(H * S + 1)
    high[:S] = start
    low = high.copy()
    low[-1], high[-1] = -np.inf, budget
    return _visits(pattern, values, reward, low, high, basis)


@lru_cache(maxsize=16)
def extended_pattern(H: int, S: int, A: int, first: tuple[int, ...]) -> Pattern:
    """Return the pattern with columns q(h,s,a), then w(h,s,a,s') for every step but the last, whose
    next state does not matter.

    DOPE's variables are z(h,s,a,s') = q(h,s,a) P'(s' | s,a) with l <= P' <= u. We write z = l q + w
    with w >= 0, which leaves one row of the box for each, not two.
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
        # sum_s' z = q: sum_s' w(h,s,a,s') ...
        Block("given", np.broadcast_to(mass[..., None], w.shape), w, 1.0),
        Block("left", mass, q[:-1], 0.0),  # ... - (1 - sum_s' l) q(h,s,a) = 0
        Block("part", box, w, 1.0),  # z <= u q: w(h,s,a,s') ...
        Block("width", box, back, 0.0),  # ... - (u - l) q(h,s,a) <= 0
        Block("cost", np.broadcast_to(budget, q.shape), q, 0.0),  # sum q(h,s,a) c(h,s,a) <= budget
    ]
    moves = (
        [_begun(part.shape, first).ravel() for part in (mass, w)]
        if H > 1
        else [np.zeros(0, dtype=np.bool_)] * 2
    )
    columns = np.concatenate([_begun(q.shape, first).ravel(), moves[1]])
    rows = np.concatenate([_begun(flow.shape, first).ravel(), *moves, np.ones(1, dtype=np.bool_)])
    return assemble(blocks, columns, rows)


def best_in_box(
    l: Floats,  # noqa: E741
    u: Floats,
    start: Floats,
    reward: Floats,
    cost: Floats,
    budget: float,
    basis: Ints | None = None,
) -> Occupancy:
    """Solve DOPE's extended linear program: the best policy in any model with l <= P' <= u (H, S,
    A, S) under a budget.

    max sum z(h,s,a,s') r(h,s,a) subject to sum z(h,s,a,s') c(h,s,a) <= budget, the flow from step
    to step, and l sum_y z(h,s,a,y) <= z(h,s,a,s') <= u sum_y z(h,s,a,y) (Bura et al. 2022).
    """
    H, S, A = reward.shape
    pattern = extended_pattern(H, S, A, _first(start))
    certain, width = l[:-1], u[:-1] - l[:-1]
    numbers = {
        "certain": -certain,
        "left": certain.sum(axis=-1) - 1.0,
        "width": -width,
        "cost": cost,
    }
    low = np.zeros(H * S + certain[..., 0].size + certain.size + 1)
    high = low.copy()
    low[:S] = high[:S] = start
    low[H * S + certain[..., 0].size :] = -np.inf
    high[-1] = budget
    return _visits(pattern, fill(pattern, numbers), reward, low, high, basis)


def _visits(
    pattern: Pattern, values: Floats, reward: Floats, low: Floats, high: Floats, basis: Ints | None
) -> Occupancy:
    """Solve, and read the visits of pairs, which are the first columns of both linear programs."""
    pairs = pattern.alive[pattern.alive < reward.size]
    objective = np.zeros(pattern.columns)
    objective[: pairs.size] = reward.ravel()[pairs]
    answer = maximise(pattern, values, objective, low[pattern.bound], high[pattern.bound], basis)
    q = np.zeros(reward.shape)
    q.ravel()[pairs] = answer.x[: pairs.size]
    return Occupancy(answer.status, answer.words, q, answer.basis)


def cheapest_in_box(
    l: Floats,  # noqa: E741
    u: Floats,
    start: Floats,
    cost: Floats,
    pi: Floats | None = None,
) -> float:
    """Return the smallest expected cost in any model of the box, of any policy or of pi, by
    backward induction.

    The cheapest model gives each next state its least probability, l, and what is left to the
    cheapest states first, u at most. No policy can meet a budget below this, and the linear program
    is infeasible.
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
    """Return the expected sum of a signal (H, S, A) under pi in the model P (H, S, A, S)."""
    V = np.zeros(signal.shape[1])
    for h in reversed(range(len(signal))):
        V = (pi[h] * (signal[h] + (P[h] * V).sum(axis=-1))).sum(axis=1)
    return float(start @ V)


def policy_from(q: Floats, elsewhere: Floats) -> Floats:
    """Return pi(a|s) = q(h,s,a) / sum_a q(h,s,a); where q has no visits, the policy `elsewhere`."""
    visits = q.sum(axis=-1, keepdims=True)
    seen = visits > 1e-12
    return np.asarray(np.where(seen, q / np.where(seen, visits, 1.0), elsewhere))
