"""Counts in lists (model/count_lists.py), compiled."""

from surefoot.base.arrays import AnyArray, Ints
from surefoot.kernels.jit import compiled
from surefoot.model import count_lists
from surefoot.model.count_lists import CountLists

add_to_list = compiled(count_lists.add_to_list)
lists_have_room = compiled(count_lists.lists_have_room)


@compiled
def count_next(lists: CountLists, row: int, pair: int, s_next: int) -> None:
    """Count one transition, in lists that have room."""
    if lists.size[row, pair] == lists.S:
        lists.n[lists.at[row, pair] + s_next] += 1
        lists.visits[row, pair] += 1
    else:
        add_to_list(lists, row, pair, s_next, 1)


@compiled
def count_entries(lists: CountLists, place: Ints, state: Ints, n: AnyArray, done: int) -> int:
    """Count transitions `done`, `done` + 1, ... as long as the arena has room. Return how many are
    counted.
    """
    pairs = lists.at.shape[1]
    for i in range(done, place.shape[0]):
        if not add_to_list(lists, place[i] // pairs, place[i] % pairs, state[i], n[i]):
            return i
    return int(place.shape[0])
