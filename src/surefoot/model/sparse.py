"""Sparse tables over next states: scipy.sparse matrices of shape (S*A, S), one for all steps or one
for each.

They are read as lists and never become dense. scipy is not imported: whatever has `tocsr` is a
sparse matrix.
"""

from typing import Any, NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Floats
from surefoot.base.validation import (
    LARGEST_ARRAY,
    LONGEST,
    NEARLY,
    ROUNDED,
    ROW_SUM_TOLERANCE,
    require_integer,
    require_size,
    where,
)
from surefoot.errors import InvalidModel, SurefootError
from surefoot.model.successors import Successors, list_of, offsets

# numbers of a dense table that is still made of a sparse one, where somebody reads it
SMALL = 2**24
TABLES = 12  # arrays (H, S, A) that a plan and its values need at once, at least


class SparseTable(NamedTuple):
    """A number for some next states of each pair."""

    lists: Successors
    value: Floats  # one for each entry
    S: int
    A: int

    @property
    def rows(self) -> int:
        """How many steps have lists of their own: H, or 1 where all steps share them."""
        return (len(self.lists.first) - 1) // (self.S * self.A)

    def dense(self, elsewhere: float = 0.0) -> Floats:
        """The table (rows, S*A, S), `elsewhere` where nothing is listed."""
        table = np.full((self.rows * self.S * self.A, self.S), elsewhere)
        table[list_of(self.lists), self.lists.state] = self.value
        return table.reshape(self.rows, self.S * self.A, self.S)


def is_sparse(given: object) -> bool:
    """Is this a sparse matrix or array of scipy, or a list of them?"""
    many = given if isinstance(given, list | tuple) else (given,)
    return any(hasattr(one, "tocsr") for one in many)


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
    """Refuse to make a dense table of a large sparse one."""
    numbers = int(np.prod([int(size) for size in shape], dtype=object))
    if numbers > SMALL:
        sizes = " x ".join(str(int(size)) for size in shape)
        raise InvalidModel(
            f"{what} would be {sizes} = {numbers:.3g} numbers as a dense array, which is made of a "
            f"sparse table up to {SMALL:,} numbers only. Read {instead} instead."
        )


def sparse_table(
    name: str, given: Any, H: int | None, keep_zeros: bool = False
) -> tuple[SparseTable, int]:
    """Return the table of a sparse matrix (S*A, S) for all H steps, or of a list of one for each;
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
    return SparseTable(Successors(offsets(sizes), states), values, S, A), steps


def table_from(pair: AnyArray, state: AnyArray, value: AnyArray, S: int, A: int) -> SparseTable:
    """Return the table, for all steps, with these numbers for these pairs and next states.

    Those of equal places are added up, in the order given. What adds up to 0 is left out.
    """
    keys, entry = np.unique(pair * S + state, return_inverse=True)
    values = np.asarray(np.bincount(entry, value, len(keys)), dtype=np.float64)
    kept = values != 0.0
    keys = keys[kept]
    return SparseTable(
        Successors(offsets(np.bincount(keys // S, minlength=S * A)), keys % S), values[kept], S, A
    )


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


def _place(name: str, rows: Any, entry: int, A: int) -> str:
    """Return how an entry of a matrix in rows is named: by state, action and next state."""
    row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
    return f"{where(name, [row, rows.indices[entry]])} (state {row // A}, action {row % A})"


def require_rows_sum_to_one(
    name: str, table: SparseTable, meaning: str, error: type[SurefootError]
) -> None:
    """Refuse a table unless each pair has numbers >= 0 that sum to 1 within 1e-9."""
    bad = np.flatnonzero(table.value < 0.0)
    if bad.size:
        pair = _pair(table, int(list_of(table.lists)[bad[0]]))
        raise error(
            f"{name} is {table.value[bad[0]]:.6g} for {pair}, next state "
            f"{table.lists.state[bad[0]]}, expected a probability >= 0. Rows must be {meaning}."
        )
    sums = np.bincount(list_of(table.lists), table.value, minlength=len(table.lists.first) - 1)
    bad = np.flatnonzero(~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE))
    if bad.size:
        nearly = ROUNDED if np.abs(sums - 1.0).max() <= NEARLY else ""
        raise error(
            f"{name} sums to {sums[bad[0]]:.10g} for {_pair(table, int(bad[0]))}, expected 1 "
            f"within {ROW_SUM_TOLERANCE:g}. Rows must be {meaning}.{nearly}"
        )


def _pair(table: SparseTable, i: int) -> str:
    """Return which pair has list i, in words."""
    h, pair = divmod(i, table.S * table.A)
    s, a = divmod(pair, table.A)
    return f"state {s}, action {a}" + (f" at step {h}" if table.rows > 1 else "")
