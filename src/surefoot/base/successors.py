"""Successor lists: which next states follow each pair, without a table over all states.

Kernels read these tuples of arrays as they are. Pair i of row h is list h * S * A + i; within a list, states ascend.
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
    return Successors(offsets(mask.reshape(rows * pairs, -1).sum(axis=-1)), np.nonzero(mask)[2].astype(np.int64))


def offsets(sizes: AnyArray) -> Ints:
    """Where lists of these sizes begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
