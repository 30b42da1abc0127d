"""Counts in lists (model/count_lists.py), compiled; one name for counting in a table or in
lists, chosen by type.
"""

import numpy as np
from numba.core import types
from numba.extending import overload

from surefoot.base.arrays import AnyArray, Ints
from surefoot.kernels.jit import PART, compiled
from surefoot.model import count_lists
from surefoot.model.count_lists import CountLists

add_to_list = compiled(count_lists.add_to_list)
lists_have_room = compiled(count_lists.lists_have_room)


def add_one(store: Ints | CountLists, row: int, pair: int, s_next: int) -> None:
    """Count one transition, in a table n_sas (rows, S*A, S) or in lists that have room."""
    if isinstance(store, CountLists):
        add_to_list(store, row, pair, s_next, 1)
    else:
        store[row, pair, s_next] += 1


@overload(add_one, jit_options=PART)
def _add_one(store, row, pair, s_next):  # type: ignore[no-untyped-def]
    if isinstance(store, types.BaseNamedTuple):

        def lists(store, row, pair, s_next):  # type: ignore[no-untyped-def]
            add_to_list(store, row, pair, s_next, 1)

        return lists

    def table(store, row, pair, s_next):  # type: ignore[no-untyped-def]
        store[row, pair, s_next] += 1

    return table


def has_room(store: Ints | CountLists, H: int) -> bool:
    """Can an episode of H steps be counted without a larger arena? A table has room for
    everything.
    """
    return lists_have_room(store, H) if isinstance(store, CountLists) else True


@overload(has_room, jit_options=PART)
def _has_room(store, H):  # type: ignore[no-untyped-def]
    if isinstance(store, types.BaseNamedTuple):

        def lists(store, H):  # type: ignore[no-untyped-def]
            return lists_have_room(store, H)

        return lists
    return lambda store, H: True


def row_total(store: AnyArray | CountLists, row: int, pair: int) -> int:
    """How often the next state of one pair was counted."""
    if isinstance(store, CountLists):
        return store.visits[row, pair]  # type: ignore[no-any-return]
    return np.asarray(store)[row, pair].sum()  # type: ignore[no-any-return]


@overload(row_total, jit_options=PART)
def _row_total(store, row, pair):  # type: ignore[no-untyped-def]
    if isinstance(store, types.BaseNamedTuple):
        return lambda store, row, pair: store.visits[row, pair]

    def table(store, row, pair):  # type: ignore[no-untyped-def]
        n = store[row, pair, 0]
        for s_next in range(1, store.shape[2]):
            n += store[row, pair, s_next]
        return n

    return table
