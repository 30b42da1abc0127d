"""Counts in lists (model/count_lists.py), compiled."""

from surefoot.kernels.jit import compiled
from surefoot.model import count_lists
from surefoot.model.count_lists import CountLists

_add_to_list = compiled(count_lists.add_to_list)
lists_have_room = compiled(count_lists.lists_have_room)


@compiled
def count_next(lists: CountLists, row: int, pair: int, s_next: int) -> None:
    """Count one transition, in lists that have room."""
    if lists.size[row, pair] == lists.S:
        lists.n[lists.at[row, pair] + s_next] += 1
        lists.visits[row, pair] += 1
    else:
        _add_to_list(lists, row, pair, s_next, 1)
