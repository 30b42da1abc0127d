"""Successor lists: which next states follow each pair, without a table over all states.

Kernels read these tuples of arrays as they are. Pair i of row h is list h * S * A + i; within a
list, states ascend.
"""

from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Bools, Floats, Ints


class Successors(NamedTuple):
    """Lists of states, one for each pair of each row, one after another."""

    first: Ints  # (rows*S*A + 1,): where each list begins, and the end of the last
    state: Ints  # (all lists,): ascending within a list

    def of(self, i: int) -> Ints:
        """The states of one list."""
        return self.state[self.first[i] : self.first[i + 1]]


class PaidLists(NamedTuple):
    """Rewards by next state: those of listed states, and one for all others. Rescaled."""

    first: Ints  # as in Successors
    state: Ints
    paid: Floats  # (all lists,)
    elsewhere: float  # what every next state pays that is not listed


def listed(mask: Bools) -> Successors:
    """The lists of a mask (rows, S*A, S)."""
    rows, pairs, _ = mask.shape
    return Successors(
        offsets(mask.reshape(rows * pairs, -1).sum(axis=-1)), np.nonzero(mask)[2].astype(np.int64)
    )


def paid_lists(r_next: Floats) -> PaidLists:
    """The lists of rewards by next state (rows, S*A, S): every state is listed, so that nothing
    is looser.
    """
    first, state = listed(np.ones(r_next.shape, dtype=np.bool_))
    return PaidLists(first, state, r_next.reshape(-1), 0.0)


def offsets(sizes: AnyArray) -> Ints:
    """Where lists of these sizes begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])


def list_of(successors: Successors) -> Ints:
    """For each entry, the number of the list that it stands in."""
    return np.repeat(np.arange(len(successors.first) - 1), np.diff(successors.first))


def keys_of(first: Ints, state: Ints, S: int) -> Ints:
    """For each entry one number, list * S + state: they ascend, so that entries can be looked
    up.
    """
    return list_of(Successors(first, state)) * S + state


def looked_up(keys: Ints, wanted: AnyArray) -> tuple[Ints, Bools]:
    """Where each of the wanted keys stands among these ascending ones, and whether it does."""
    if not len(keys):
        return np.zeros(np.shape(wanted), dtype=np.int64), np.zeros(
            np.shape(wanted), dtype=np.bool_
        )
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def masked(successors: Successors, shape: tuple[int, int, int]) -> Bools:
    """The mask (rows, S*A, S) of lists. An empty list says nothing: every state is possible."""
    mask = np.zeros(shape, dtype=np.bool_).reshape(-1, shape[2])
    mask[list_of(successors), successors.state] = True
    mask[np.diff(successors.first) == 0] = True
    return mask.reshape(shape)
