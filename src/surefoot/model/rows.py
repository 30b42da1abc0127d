"""Rows: one layout for all numbers on (step, pair, next state) that do not grow.

A world's transition probabilities, a problem's rewards by next state and its mask of possible next
states are lists of next states, one for each pair of each row, without a table over all states.
Kernels read them as they are. Pair i of row h is list h * S * A + i; within a list, states ascend.
"""

from typing import NamedTuple, Self

import numpy as np

from surefoot.base.arrays import AnyArray, Bools, Floats, Indices, Ints
from surefoot.base.validation import read_only

NO_VALUES = read_only(np.zeros(0))  # of a mask


class Rows(NamedTuple):
    """Lists of next states, one after another, and a number for each entry.

    In a mask an empty list says nothing of its pair: every next state is possible.
    """

    first: Ints  # (rows*S*A + 1,): where each list begins, and the end of the last
    state: Ints  # (all lists,): ascending within a list
    value: Floats  # (all lists,); of size 0 in a mask
    S: int
    A: int
    elsewhere: float = 0.0  # the number of every next state that is not listed

    @classmethod
    def of_keys(
        cls,
        keys: Ints,
        shape: tuple[int, int, int],
        value: Floats = NO_VALUES,
        elsewhere: float = 0.0,
    ) -> Self:
        """Return lists (rows, S, A) of entries, each given as list * S + next state, ascending.
        They cannot be written to.
        """
        rows, S, A = shape
        sizes = np.bincount(keys // S, minlength=rows * S * A)
        return cls(offsets(sizes), keys % S, value, S, A, elsewhere).frozen()

    @classmethod
    def none(cls, S: int, A: int) -> Self:
        """Return lists that are empty at every step: as a mask, they say nothing."""
        return cls.of_keys(np.zeros(0, dtype=np.int64), (1, S, A))

    def frozen(self) -> Self:
        """Return the same lists, whose arrays cannot be written to."""
        return self._replace(
            first=read_only(self.first), state=read_only(self.state), value=read_only(self.value)
        )

    @property
    def pairs(self) -> int:
        """The number of pairs, S * A."""
        return self.S * self.A

    @property
    def rows(self) -> int:
        """How many steps have lists of their own: H, or 1 where all steps share them."""
        return (len(self.first) - 1) // self.pairs

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, states, actions."""
        return self.rows, self.S, self.A

    @property
    def full(self) -> bool:
        """Does every list hold every state?"""
        return len(self.state) == (len(self.first) - 1) * self.S

    @property
    def sizes(self) -> Ints:
        """How many next states each list has."""
        return np.diff(self.first)

    @property
    def places(self) -> Ints:
        """For each entry, the number of the list that it stands in."""
        return np.repeat(np.arange(len(self.first) - 1), self.sizes)

    @property
    def keys(self) -> Ints:
        """For each entry, list * S + next state: they ascend."""
        return self.places * self.S + self.state

    def list_at(self, h: Indices, pair: Indices) -> Ints:
        """Return the number of the list of a pair at step h, or of each of these."""
        return np.asarray(h % self.rows * self.pairs + pair)

    def of(self, i: int) -> Ints:
        """Return the states of one list."""
        return self.state[self.first[i] : self.first[i + 1]]

    def values_of(self, i: int) -> Floats:
        """Return the numbers of one list."""
        return self.value[self.first[i] : self.first[i + 1]]

    def at(self, h: int) -> Self:
        """Return the lists of one step."""
        if self.rows == 1:
            return self
        begin = h % self.rows * self.pairs
        first = self.first[begin : begin + self.pairs + 1]
        own = slice(first[0], first[-1])
        return self._replace(first=first - first[0], state=self.state[own], value=self.value[own])

    def find(self, i: Indices, s_next: Indices) -> tuple[Ints, Bools]:
        """Return where a next state stands in list i, and whether it does; or where each of these
        stands in its list.
        """
        lists, wanted = np.broadcast_arrays(i, s_next)
        if len(self.state) == 0:
            return np.zeros(lists.shape, dtype=np.int64), np.zeros(lists.shape, dtype=np.bool_)
        if self.full:
            return lists * self.S + wanted, np.broadcast_to(np.True_, lists.shape)
        left, end = self.first[lists], self.first[lists + 1]
        right, last = end, len(self.state) - 1
        while (left < right).any():  # bisection, in all lists at once
            middle = (left + right) // 2
            before = (left < right) & (self.state[np.minimum(middle, last)] < wanted)
            right = np.where(before, right, np.minimum(middle, right))
            left = np.where(before, middle + 1, left)
        place = np.minimum(left, last)
        return place, (left < end) & (self.state[place] == wanted)

    def number(self, i: Indices, s_next: Indices) -> Floats:
        """Return the number of a next state in list i, or of each of these in its list."""
        if self.full:
            return np.asarray(self.value[np.asarray(i) * self.S + s_next])
        place, held = self.find(i, s_next)
        if len(self.state) == 0:
            return np.full(place.shape, self.elsewhere)
        return np.where(held, self.value[place], self.elsewhere)

    def dense(self) -> Floats:
        """Return the table (rows, S, A, S)."""
        table = np.full((len(self.first) - 1, self.S), self.elsewhere)
        table[self.places, self.state] = self.value
        return table.reshape(*self.shape, self.S)

    def dense_mask(self) -> Bools:
        """Return the mask (rows, S, A, S)."""
        mask = np.zeros((len(self.first) - 1, self.S), dtype=np.bool_)
        mask[self.places, self.state] = True
        mask[self.sizes == 0] = True
        return mask.reshape(*self.shape, self.S)

    @property
    def same_at_every_step(self) -> bool:
        """Are the lists and their numbers the same at every step?"""
        sizes = self.sizes.reshape(self.rows, -1)
        if (sizes != sizes[0]).any():
            return False
        states, values = self.state.reshape(self.rows, -1), self.value.reshape(self.rows, -1)
        return bool((states == states[0]).all() and (values == values[0]).all())

    @property
    def absorbing(self) -> Ints:
        """The states from which the lists of every step and action lead to the state itself
        alone.
        """
        only, alone = np.full(len(self.first) - 1, -1), self.sizes == 1
        only[alone] = self.state[self.first[:-1][alone]]
        same = only.reshape(self.shape) == np.arange(self.S)[:, None]
        return np.flatnonzero(same.all(axis=(0, 2)))

    def says_nothing(self, states: int) -> bool:
        """May every state follow each pair of the first so many states, at each step?"""
        sizes = self.sizes.reshape(self.shape)[:, :states]
        return bool(((sizes == 0) | (sizes == self.S)).all())

    def possible(self, rows: int) -> int:
        """Return how many transitions a mask allows, in so many rows."""
        sizes = np.where(self.sizes == 0, self.S, self.sizes)
        return int(sizes.sum()) * (rows // self.rows)

    def filled(self, rows: int, most: int) -> Self:
        """Return so many rows of a mask, in which no list is empty: one that allows every state
        holds them all, or, if these are more than `most`, so many of them, evenly spread from
        another state on in each list.
        """
        times, most = rows // self.rows, min(most, self.S)
        sizes = np.tile(self.sizes, times)
        free = sizes == 0
        first = offsets(np.where(free, most, sizes))
        state, spread = np.empty(first[-1], dtype=np.int64), np.repeat(free, np.diff(first))
        state[~spread] = np.tile(self.state, times)
        evenly = np.flatnonzero(free)[:, None] + np.arange(most) * self.S // most
        state[spread] = np.sort(evenly % self.S, axis=1).reshape(-1)
        return self._replace(first=first, state=state).frozen()

    def without_last(self) -> Self:
        """Return what the lists say of all states but the last one, which no list holds alone but
        its own.
        """
        place, fewer = self.places, self.S - 1
        kept = (place // self.A % self.S < fewer) & (self.state < fewer)
        place = place[kept] - place[kept] // self.pairs * self.A  # each row has A lists less
        value = self.value[kept] if len(self.value) else self.value
        shape = (self.rows, fewer, self.A)
        return self.of_keys(place * fewer + self.state[kept], shape, value, self.elsewhere)


def offsets(sizes: AnyArray) -> Ints:
    """Return where lists of these sizes begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])


def rows_from(pair: AnyArray, state: AnyArray, value: AnyArray, S: int, A: int) -> Rows:
    """Return the lists, for all steps, with these numbers for these pairs and next states.

    Those of equal places are added up, in the order given. What adds up to 0 is left out.
    """
    keys, entry = np.unique(pair * S + state, return_inverse=True)
    values = np.asarray(np.bincount(entry, value, len(keys)), dtype=np.float64)
    kept = values != 0.0
    return Rows.of_keys(keys[kept], (1, S, A), values[kept])


def first_outside(inner: Rows, outer: Rows) -> tuple[int, int] | None:
    """Return step and place of the first entry of the inner lists that a mask does not allow, or
    None.
    """
    for h in range(max(inner.rows, outer.rows)):
        mine, mask = inner.at(h), outer.at(h)
        place = mine.places
        allowed = mask.find(place, mine.state)[1] | (mask.sizes == 0)[place]
        bad = np.flatnonzero(~allowed)
        if bad.size:
            begin = inner.first[inner.list_at(h, 0)]
            return h, int(begin + bad[0])
    return None


def aligned(numbers: Rows, lists: Rows) -> Floats:
    """Return the numbers of the entries of these lists, (steps, entries): one row for all steps,
    but where the numbers alone depend on the step, one for each.
    """
    place = lists.places
    row, pair = np.divmod(place, lists.pairs)
    steps = range(numbers.rows) if lists.rows == 1 else (row,)
    return np.array([numbers.number(numbers.list_at(h, pair), lists.state) for h in steps])
