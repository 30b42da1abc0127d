"""Rows as users give them: arrays, or matrices of scipy of shape (S*A, S), one for all steps or one
for each; and the refusal of what does not fit.

Matrices are read as lists and never become dense. scipy is not imported: whatever has `tocsr` is a
sparse matrix.
"""

from typing import Any

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.base.validation import (
    LARGEST_ARRAY,
    LONGEST,
    NEARLY,
    ROUNDED,
    ROW_SUM_TOLERANCE,
    mask_of,
    require_integer,
    require_rewards,
    require_size,
    where,
)
from surefoot.errors import InvalidModel, SurefootError
from surefoot.model.rows import NO_VALUES, Rows, first_outside, offsets
from surefoot.model.units import Rescaled, Units, rescaled_rewards

# numbers of a dense table that is still made of lists, where somebody reads it
SMALL = 2**24
TABLES = 12  # arrays (H, S, A) that a plan and its values need at once, at least
# numbers of rewards by next state that are written out at each step, for each next state: every
# backup reads them
MOST_WRITTEN = 2**15


def is_sparse(given: object) -> bool:
    """Is this a sparse matrix or array of scipy, or a list of them?"""
    many = given if isinstance(given, list | tuple) else (given,)
    return any(hasattr(one, "tocsr") for one in many)


def as_lists(given: object) -> bool:
    """Is this kept as lists: a sparse matrix, one for each step, or lists already?"""
    table = given.table if isinstance(given, Rescaled) else given
    return isinstance(table, Rows) or is_sparse(table)


def require_room(H: int, S: int, A: int) -> None:
    """Refuse sizes whose policies, rewards and values, which are dense in (H, S, A), would not
    fit into memory.
    """
    needed = TABLES * H * S * A
    if needed > LARGEST_ARRAY:
        raise InvalidModel(
            f"With H = {H}, S = {S} and A = {A}, policies, rewards and values would take about "
            f"{8 * needed / 1e9:.3g} GB ({TABLES} arrays of H x S x A numbers), expected at most "
            f"{8 * LARGEST_ARRAY / 1e9:.3g} GB. Choose smaller sizes."
        )


def require_small(what: str, shape: tuple[int, ...], instead: str) -> None:
    """Refuse to make a dense table of lists where it is large."""
    numbers = int(np.prod([int(size) for size in shape], dtype=object))
    if numbers > SMALL:
        sizes = " x ".join(str(int(size)) for size in shape)
        raise InvalidModel(
            f"{what} would be {sizes} = {numbers:.3g} numbers as a dense array, which is made of a "
            f"sparse table up to {SMALL:,} numbers only. Read {instead} instead."
        )


def sparse_rows(name: str, given: Any, H: int | None, keep_zeros: bool = False) -> tuple[Rows, int]:
    """Return the lists of a sparse matrix (S*A, S) for all H steps, or of a list of one for each;
    and H.

    Entries that occur twice are added up, as scipy means them. Stored zeros are left out, unless
    they are kept.
    """
    by_step = isinstance(given, list | tuple)
    matrices = list(given) if by_step else [given]
    if H is not None and require_integer("H", H, 1, InvalidModel) > LONGEST:
        raise InvalidModel(f"H is {H}, expected at most {LONGEST} steps.")
    if by_step and H not in (None, len(matrices)):
        raise InvalidModel(
            f"{name} has {len(matrices)} matrices, expected one for each of the H = {H} steps, "
            "(S*A, S): row s*A + a is of state s and action a. Matrices of one action each must be "
            "put together so."
        )
    if not by_step and H is None:
        raise InvalidModel(
            f"{name} is one sparse matrix for all steps: give their number with H=..."
        )
    S, A = _sizes(name, matrices)
    steps = len(matrices) if by_step else int(H or 0)
    require_room(steps, S, A)
    require_size(
        f"{name}, its stored entries,", (sum(int(one.nnz) for one in matrices),), InvalidModel
    )
    parts = [
        _entries(where(name, [h]) if by_step else name, one, A, keep_zeros)
        for h, one in enumerate(matrices)
    ]
    sizes, states, values = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Rows(offsets(sizes), states, values, S, A).frozen(), steps


def _sizes(name: str, matrices: list[Any]) -> tuple[int, int]:
    """Return S and A, if all matrices have the same shape (S*A, S)."""
    expected = (
        "expected scipy.sparse matrices of shape (S*A, S): a row for each state and action, s*A + a"
    )
    for h, one in enumerate(matrices):
        if not hasattr(one, "tocsr"):
            raise InvalidModel(f"{name}[{h}] is of type {type(one).__name__}, {expected}.")
    shapes = [tuple(int(size) for size in one.shape) for one in matrices]
    shape = shapes[0]
    other = next((h for h, found in enumerate(shapes) if found != shape), None)
    if other is not None:
        raise InvalidModel(
            f"{name}[{other}] has shape {shapes[other]} and {name}[0] {shape}, expected the same "
            "for every step."
        )
    if len(shape) != 2 or 0 in shape or shape[0] % shape[1] != 0:
        raise InvalidModel(f"{name} has shape {shape}, {expected}.")
    return shape[1], shape[0] // shape[1]


def _entries(
    name: str, matrix: Any, A: int, keep_zeros: bool
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return how many entries each row has, their columns in ascending order, and their numbers."""
    if matrix.dtype.kind not in "fiub":
        raise InvalidModel(f"{name} has dtype {matrix.dtype}, expected real numbers.")
    _require_sound(name, matrix)
    # first floats: entries of the same place are added up in them
    rows = matrix.astype(np.float64).tocsr(copy=True)
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if bad.size:
        place = _place(name, rows, int(bad[0]), A)
        raise InvalidModel(
            f"{place} is {rows.data[bad[0]]}, expected a finite number. Remove NaN and inf at "
            "their source."
        )
    rows.sum_duplicates()
    if not keep_zeros:
        rows.eliminate_zeros()
    return np.diff(rows.indptr), rows.indices.astype(np.int64), rows.data


def _require_sound(name: str, matrix: Any) -> None:
    """Refuse a matrix whose indices lead out of it: scipy takes them as they are, and what reads
    them would read the memory beside it.
    """
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
    except ValueError as reason:
        raise InvalidModel(
            f"{name} is no sound sparse matrix ({reason}), expected rows and columns counted from "
            f"0 within its shape {tuple(matrix.shape)}. Build it again: scipy.sparse.coo_array("
            "(values, (rows, columns)), shape=...)."
        ) from None


def _place(name: str, rows: Any, entry: int, A: int) -> str:
    """Return how an entry of a matrix in rows is named: by state, action and next state."""
    row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
    return f"{where(name, [row, rows.indices[entry]])} (state {row // A}, action {row % A})"


def require_rows_sum_to_one(
    name: str, table: Rows, meaning: str, error: type[SurefootError]
) -> None:
    """Refuse a table unless each pair has numbers >= 0 that sum to 1 within 1e-9."""
    bad = np.flatnonzero(table.value < 0.0)
    if bad.size:
        pair = _pair(table, int(table.places[bad[0]]))
        raise error(
            f"{name} is {table.value[bad[0]]:.6g} for {pair}, next state "
            f"{table.state[bad[0]]}, expected a probability >= 0. Rows must be {meaning}."
        )
    sums = np.bincount(table.places, table.value, minlength=len(table.first) - 1)
    bad = np.flatnonzero(~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE))
    if bad.size:
        nearly = ROUNDED if np.abs(sums - 1.0).max() <= NEARLY else ""
        raise error(
            f"{name} sums to {sums[bad[0]]:.10g} for {_pair(table, int(bad[0]))}, expected 1 "
            f"within {ROW_SUM_TOLERANCE:g}. Rows must be {meaning}.{nearly}"
        )


def _pair(table: Rows, i: int) -> str:
    """Return which pair has list i, in words."""
    h, pair = divmod(i, table.pairs)
    s, a = divmod(pair, table.A)
    return f"state {s}, action {a}" + (f" at step {h}" if table.rows > 1 else "")


def mask_from(given: Any, S: int, A: int, H: int) -> Rows | None:
    """Return the lists of possible next states of a mask: an array, a sparse one (entries other
    than 0), or lists. An empty list says nothing of its pair: every next state is possible.
    """
    if given is None:
        return None
    if isinstance(given, Rows):
        return _checked("support", given, S, A, H)
    if not is_sparse(given):
        mask = mask_of("support", given, (S, A, S), H)
        if mask is None:
            return None
        none = np.argwhere(~mask.any(axis=-1))
        if none.size:
            raise InvalidModel(
                f"{where('support', none[0][-2:])} allows no next state, expected at least one."
            )
        free = mask.all(axis=-1, keepdims=True) & (S > 1)  # of a single state, that one follows
        return Rows.of_keys(np.flatnonzero(mask & ~free), (len(mask), S, A))
    lists, _ = sparse_rows("support", given, H)
    if (lists.S, lists.A) != (S, A):
        raise InvalidModel(
            f"support has shape {(lists.pairs, lists.S)}, expected (S*A, S) = {(S * A, S)}, "
            "one matrix for all steps or one for each."
        )
    empty = np.flatnonzero(lists.sizes == 0)
    if empty.size:
        s, a = divmod(int(empty[0]) % lists.pairs, A)
        raise InvalidModel(
            f"support of state {s}, action {a} allows no next state, expected at least one."
        )
    return lists._replace(value=NO_VALUES)


def _checked(name: str, given: Rows, S: int, A: int, H: int) -> Rows:
    """Return a copy of lists that fit these sizes, as a mask; refuse others."""
    first, state = (np.asarray(part) for part in (given.first, given.state))
    whole = (
        all(part.dtype.kind in "iu" and part.ndim == 1 for part in (first, state))
        and (given.S, given.A) == (S, A)
        and len(first) - 1 in (S * A, H * S * A)
        and first[0] == 0
    )
    if not (whole and first[-1] == len(state) and (np.diff(first) >= 0).all()):
        raise InvalidModel(
            f"{name} has lists that do not fit, expected S*A = {S * A} of them, or H times as many."
        )
    first, state = first.astype(np.int64), state.astype(np.int64)
    lists = Rows(first, state, NO_VALUES, S, A).frozen()
    if (np.diff(lists.keys) <= 0).any() or (state < 0).any() or (state >= S).any():
        raise InvalidModel(f"{name} has lists that are not states 0..{S - 1} in ascending order.")
    return lists


def paid_from(given: Any, units: Units, H: int | None) -> tuple[Rows, int]:
    """Return rewards by next state as lists, rescaled; and H.

    An entry that is not stored pays 0 in the user's units; in a `Rescaled` table, the lowest.
    """
    table = given.table if isinstance(given, Rescaled) else given
    if isinstance(table, Rows):
        if H is None:
            raise InvalidModel("r_next is given as lists: give the number of steps with H=...")
        require_room(H, table.S, table.A)
        lists = _checked("r_next", table, table.S, table.A, H)
        require_rewards("r_next, as lists,", np.append(table.value, table.elsewhere), 1)
        if table.value.shape != lists.state.shape:
            raise InvalidModel(
                f"r_next has {table.value.shape} rewards in lists, expected {lists.state.shape}."
            )
        paid = lists._replace(value=table.value.copy(), elsewhere=table.elsewhere)
        return paid.frozen(), H
    found, steps = sparse_rows("r_next", table, H, keep_zeros=True)
    inside = Units() if isinstance(given, Rescaled) else units
    _require_in_range(found, inside)
    if isinstance(given, Rescaled):
        return found, steps
    others = 0.0 if units.admits(0.0) else units.low
    rewards = np.append(found.value, others)
    read = np.asarray(rescaled_rewards("r_next", rewards, units, None))
    return found._replace(value=read[:-1], elsewhere=float(read[-1])).frozen(), steps


def written_out(paid: Rows) -> Rows:
    """Return the same rewards, with every next state listed where these are few: of those that are
    not listed nothing is known but the least and the largest value of all states.
    """
    numbers = (len(paid.first) - 1) * paid.S
    if paid.full or paid.pairs * paid.S > MOST_WRITTEN:
        return paid
    values = np.full(numbers, paid.elsewhere)
    values[paid.keys] = paid.value
    return Rows.of_keys(np.arange(numbers), paid.shape, values)


def _require_in_range(found: Rows, units: Units) -> None:
    """Refuse a reward outside the units' range, with its place."""
    bad = np.flatnonzero(units.range.outside(found.value))
    if bad.size:
        s, a = divmod(int(found.places[bad[0]]) % found.pairs, found.A)
        raise InvalidModel(
            f"r_next of state {s}, action {a}, next state {found.state[bad[0]]} is "
            f"{found.value[bad[0]]:.10g}, outside the units' range of {units.low:g} to "
            f"{units.amount(units.high)} a step. Declare the range of all rewards that are "
            "possible."
        )


def require_all_paid(paid: Rows, mask: Rows | None, units: Units) -> None:
    """Refuse entries that are not stored where 0 is no reward in the user's units: nobody says
    what they pay.
    """
    if units.admits(0.0):
        return
    every = (paid.sizes == paid.S).reshape(-1, paid.pairs)
    if mask is not None and first_outside(mask, paid) is None:
        every = every | (mask.sizes > 0).reshape(-1, paid.pairs)
    if not every.all():
        raise InvalidModel(
            "r_next does not store a reward for every next state that is possible, and those left "
            f"out cannot pay 0, which is outside the units' range of {units.low:g} to "
            f"{units.amount(units.high)} a step. Store them all, or say with `support` which next "
            "states are possible."
        )
