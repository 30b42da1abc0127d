"""Counts of transitions in lists of the next states that were seen: for worlds with many states.

The lists of all pairs lie in one arena. A list that is full moves to the end of the arena, where it
has twice the room; `lists_have_room` says whether the arena has enough for another episode, and
`with_room` makes a larger one. States ascend within a list, so sums over it run in the order of a
dense row and have its bits.
"""

from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Ints
from surefoot.model.successors import Successors, offsets

USED, LONGEST, TOTAL = 0, 1, 2  # of CountLists.sizes
FIRST_ROOM = 2
# H more transitions use at most H (4 longest + 6) of the arena: k of them in a list of size s use 4
# (s + k) + 2, because its room doubles.
EACH, FIRST = 4, 6


class CountLists(NamedTuple):
    """How often each next state followed each pair (rows, S*A): those that did. Kernels read it
    as it is.
    """

    at: Ints  # (rows, S*A): where the list of a pair begins
    size: Ints  # (rows, S*A): how many next states it has
    room: Ints  # (rows, S*A): how many it can have there
    visits: AnyArray  # (rows, S*A): the sum of its counts
    state: Ints  # (arena,)
    n: AnyArray  # (arena,) how often; expected counts, in a forecast, are floats
    # (3,): how much of the arena is used, the size of the longest list, and the sum of all counts
    sizes: Ints
    S: int


class Entries(NamedTuple):
    """Counts of transitions one by one, in the order of rows, pairs, next states."""

    place: Ints  # row * S * A + pair
    state: Ints
    n: AnyArray


def add_to_list(lists: CountLists, row: int, pair: int, s_next: int, more: int) -> bool:
    """Add to the count of one transition; False, and nothing is changed, where the arena is
    full.
    """
    at, size = lists.at[row, pair], lists.size[row, pair]
    j = size
    while j > 0 and lists.state[at + j - 1] >= s_next:
        j -= 1
    if j < size and lists.state[at + j] == s_next:
        lists.n[at + j] += more
        lists.visits[row, pair] += more
        lists.sizes[TOTAL] += more
        return True
    if size == lists.room[row, pair]:
        room = max(FIRST_ROOM, 2 * size)
        new = lists.sizes[USED]
        if new + room > lists.state.shape[0]:
            return False
        for i in range(size):
            lists.state[new + i] = lists.state[at + i]
            lists.n[new + i] = lists.n[at + i]
        at = new
        lists.at[row, pair] = at
        lists.room[row, pair] = room
        lists.sizes[USED] = new + room
    for i in range(size, j, -1):
        lists.state[at + i] = lists.state[at + i - 1]
        lists.n[at + i] = lists.n[at + i - 1]
    lists.state[at + j] = s_next
    lists.n[at + j] = more
    lists.size[row, pair] = size + 1
    lists.visits[row, pair] += more
    lists.sizes[TOTAL] += more
    lists.sizes[LONGEST] = max(lists.sizes[LONGEST], size + 1)
    return True


def lists_have_room(lists: CountLists, H: int) -> bool:
    """Is there room for H more transitions, whichever they are?"""
    return bool(
        lists.sizes[USED] + H * (EACH * lists.sizes[LONGEST] + FIRST) <= lists.state.shape[0]
    )


def with_room(lists: CountLists, H: int) -> CountLists:
    """The same lists in an arena with room for at least H more transitions, and for twice as
    many as there are.
    """
    return lists_from(entries_of(lists), lists.at.shape, lists.S, H)


def entries_of(lists: CountLists) -> Entries:
    """The counts one by one."""
    sizes = lists.size.reshape(-1)
    first = offsets(sizes)
    places = np.repeat(lists.at.reshape(-1) - first[:-1], sizes) + np.arange(first[-1])
    return Entries(np.repeat(np.arange(sizes.size), sizes), lists.state[places], lists.n[places])


def lists_from(entries: Entries, shape: tuple[int, int], S: int, H: int = 0) -> CountLists:
    """Lists (rows, S*A) of these counts, in an arena with room for at least H more transitions, and
    for twice as many as there are.
    """
    place, state, n = entries
    size = np.bincount(place, minlength=shape[0] * shape[1])
    visits = np.zeros(shape[0] * shape[1], dtype=n.dtype)
    np.add.at(visits, place, n)
    longest = int(size.max(initial=0))
    length = max(1, 2 * len(state), len(state) + H * (EACH * longest + FIRST))
    arena, counts = np.zeros(length, dtype=np.int64), np.zeros(length, dtype=n.dtype)
    arena[: len(state)], counts[: len(state)] = state, n
    at, size = offsets(size)[:-1].reshape(shape), size.reshape(shape)
    sizes = np.array([len(state), longest, int(n.sum())])
    return CountLists(
        at.copy(), size.copy(), size.copy(), visits.reshape(shape), arena, counts, sizes, S
    )


def added(entries: Entries, S: int) -> Entries:
    """The same counts in order, with those of the same transition added up, and without zeros."""
    place, state, n = (np.asarray(x) for x in entries)
    keys = place * S + state
    # quick where parts are in order, as they are here, one after the other
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    new = np.diff(keys, prepend=-1) != 0
    total, keys = np.zeros(np.count_nonzero(new), dtype=n.dtype), keys[new]
    np.add.at(total, np.cumsum(new) - 1, n[order])
    kept = total != 0
    return Entries(keys[kept] // S, keys[kept] % S, total[kept])


def joined(one: Entries, other: Entries) -> Entries:
    """Both, one after the other."""
    return Entries(*(np.concatenate(both) for both in zip(one, other, strict=True)))


def as_successors(entries: Entries, lists: int) -> Successors:
    """The next states alone, of so many lists."""
    return Successors(offsets(np.bincount(entries.place, minlength=lists)), entries.state)
