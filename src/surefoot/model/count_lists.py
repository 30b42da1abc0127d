"""Counts of transitions in lists of the next states that were seen, whatever the number of states.

The lists of all pairs lie in one arena. A list that has no room left moves to the end of the arena,
where it has twice the room; one whose doubling would pass half of all states becomes full: it holds
every state, zeros too, and is addressed directly. So few or dense states are a table, and many
never pay for one. `lists_have_room` says whether the arena has enough for another episode, and
`with_room` makes a larger one. States ascend within a list, so sums over it run in the order of a
dense row and have its bits.
"""

from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.model.rows import offsets

USED, LONGEST = 0, 1  # of CountLists.sizes
FIRST_ROOM = 2
# H more transitions use at most H (6 longest + 8) of the arena: k of them in a list of size s use 4
# (s + k) + 2, because its room doubles, and S < 4 (s + k) more where it becomes full.
EACH, FIRST = 6, 8


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
    # (2,): how much of the arena is used, and the size of the longest list that can still move
    sizes: Ints
    S: int


class Entries(NamedTuple):
    """Counts of transitions one by one, in the order of rows, pairs, next states."""

    place: Ints  # row * S * A + pair
    state: Ints
    n: AnyArray


def add_to_list(lists: CountLists, row: int, pair: int, s_next: int, more: int) -> bool:
    """Add to the count of one transition; False, and nothing is changed, where the arena has no
    room for a list that must move.

    It is one function, because it is also compiled (kernels/lists.py), with all that it calls.
    """
    at, size = lists.at[row, pair], lists.size[row, pair]
    j = s_next if size == lists.S else size
    while size < lists.S and j > 0 and lists.state[at + j - 1] >= s_next:
        j -= 1
    if j == size or lists.state[at + j] != s_next:
        if size == lists.room[row, pair]:
            room = max(FIRST_ROOM, 2 * size)
            if 2 * room > lists.S:
                room = lists.S
            new = lists.sizes[USED]
            if new + room > lists.state.shape[0]:
                return False
            if room == lists.S:  # full: each state stands at its own place
                for s in range(room):
                    lists.state[new + s], lists.n[new + s] = s, 0
                for i in range(size):
                    lists.n[new + lists.state[at + i]] = lists.n[at + i]
                j, size = s_next, room
            else:
                for i in range(size):
                    lists.state[new + i], lists.n[new + i] = lists.state[at + i], lists.n[at + i]
            at = new
            lists.at[row, pair] = at
            lists.room[row, pair] = room
            lists.sizes[USED] = new + room
        if size < lists.S:
            for i in range(size, j, -1):
                lists.state[at + i], lists.n[at + i] = lists.state[at + i - 1], lists.n[at + i - 1]
            lists.state[at + j], lists.n[at + j] = s_next, 0
            size += 1
            lists.sizes[LONGEST] = max(lists.sizes[LONGEST], size)
        lists.size[row, pair] = size
    lists.n[at + j] += more
    lists.visits[row, pair] += more
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
    """The counts other than 0 one by one."""
    sizes = lists.size.reshape(-1)
    first = offsets(sizes)
    places = np.repeat(lists.at.reshape(-1) - first[:-1], sizes) + np.arange(first[-1])
    n = lists.n[places]
    seen = np.flatnonzero(n)
    return Entries(
        np.repeat(np.arange(sizes.size), sizes)[seen], lists.state[places[seen]], n[seen]
    )


def lists_from(entries: Entries, shape: tuple[int, int], S: int, H: int = 0) -> CountLists:
    """Lists (rows, S*A) of these counts, in an arena with room for at least H more transitions, and
    for twice as many as there are.
    """
    place, state, n = entries
    seen = np.bincount(place, minlength=shape[0] * shape[1])
    visits = np.zeros(len(seen), dtype=n.dtype)
    np.add.at(visits, place, n)
    full = (seen > 0) & (2 * np.maximum(FIRST_ROOM, 2 * seen) > S)  # as by `move_list`
    longest, size = int(seen[~full].max(initial=0)), np.where(full, S, seen)
    first = offsets(size)
    at, used = first[:-1], int(first[-1])
    length = max(1, 2 * used, used + H * (EACH * longest + FIRST))
    arena, counts = np.zeros(length, dtype=np.int64), np.zeros(length, dtype=n.dtype)
    rank = np.arange(len(place)) - offsets(seen)[place]
    to = at[place] + np.where(full[place], state, rank)
    arena[(at[full, None] + np.arange(S)).reshape(-1)] = np.tile(np.arange(S), int(full.sum()))
    arena[to], counts[to] = state, n
    sizes = np.array([used, longest])
    at, size = at.reshape(shape), size.reshape(shape)
    return CountLists(
        at.copy(), size.copy(), size.copy(), visits.reshape(shape), arena, counts, sizes, S
    )


def frequencies_of(lists: CountLists) -> Floats:
    """The share of each count in those of its list, in the order of the arena."""
    sizes = lists.size.reshape(-1)
    first = offsets(sizes)
    places = np.repeat(lists.at.reshape(-1) - first[:-1], sizes) + np.arange(first[-1])
    p = np.zeros(len(lists.n))
    p[places] = lists.n[places] / np.repeat(np.maximum(lists.visits.reshape(-1), 1), sizes)
    return p


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
