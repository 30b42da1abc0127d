"""How often each next state followed each pair, in lists of those that were seen."""

from typing import Any, Self, TypeAlias

import numpy as np

from surefoot.base.arrays import AnyArray, Ints
from surefoot.base.validation import require_size, where
from surefoot.errors import InvalidCounts, InvalidModel
from surefoot.model.count_lists import (
    CountLists,
    Entries,
    add_to_list,
    added,
    entries_of,
    joined,
    lists_from,
    lists_have_room,
    with_room,
)
from surefoot.model.given_rows import sparse_rows

LARGEST_COUNT = 2**53  # up to here a count is exact as a float64
MOST_SHOWN = 2**27  # numbers of a table that is made of lists: a gigabyte

AHEAD = 32  # episodes for which there is room in a new arena
Shape: TypeAlias = tuple[int, int, int]  # rows, S, A


class Transitions:
    """Counts of transitions, in lists that kernels read and change. Expected counts, in a
    forecast, are floats.
    """

    __slots__ = ("A", "lists")

    def __init__(self, lists: CountLists, A: int) -> None:
        """Take the lists as they are."""
        self.lists, self.A = lists, A

    @classmethod
    def none_yet(cls, shape: Shape) -> Self:
        """Nothing was seen."""
        none = np.zeros(0, dtype=np.int64)
        return cls.of(Entries(none, none, none), shape)

    @classmethod
    def of(cls, entries: Entries, shape: Shape) -> Self:
        """These counts, which are in order."""
        rows, S, A = shape
        return cls(lists_from(entries, (rows, S * A), S), A)

    @classmethod
    def of_table(cls, n_sas: AnyArray) -> Self:
        """Those of a table n_sas (rows, S, A, S)."""
        rows, S, A, _ = n_sas.shape
        table = n_sas.reshape(rows * S * A, S)
        place, state = np.nonzero(table)
        return cls.of(Entries(place, state, table[place, state]), (rows, S, A))

    @property
    def shape(self) -> Shape:
        """Rows, states, actions."""
        return self.lists.at.shape[0], self.lists.S, self.A

    @property
    def total(self) -> int:
        """The number of transitions."""
        return int(self.lists.visits.sum())

    @property
    def n_sa(self) -> Ints:
        """The visits of each pair, (rows, S, A)."""
        return self.lists.visits.reshape(self.shape).copy()

    @property
    def into(self) -> Ints:
        """How often each state was the next one, (rows, S)."""
        rows, S, A = self.shape
        place, state, n = self.entries
        came = np.zeros((rows, S), dtype=n.dtype)
        np.add.at(came, (place // (S * A), state), n)
        return came

    @property
    def entries(self) -> Entries:
        """The counts above 0, one by one."""
        return entries_of(self.lists)

    @property
    def n_sas(self) -> Ints:
        """The table of these counts: a copy, and not of too many states."""
        rows, S, A = self.shape
        if rows * S * A * S > MOST_SHOWN:
            raise InvalidCounts(
                f"A table n_sas of {rows} x {S} x {A} x {S} numbers is not made. Use "
                "counts.entries (place, state, n: place is row * S * A + state * A + action), or "
                "counts.n_sa."
            )
        place, state, n = self.entries
        table = np.zeros((rows * S * A, S), dtype=n.dtype)
        table[place, state] = n
        table.flags.writeable = False  # to change it would change nothing
        return table.reshape(rows, S, A, S)

    def make_room(self, steps: int) -> bool:
        """Take an arena with room for many more, in place, where there is no room for so many
        transitions. Return whether that was so.
        """
        if lists_have_room(self.lists, steps):
            return False
        self.lists = with_room(self.lists, AHEAD * steps)
        return True

    def add(self, row: Ints, states: Ints, actions: Ints, states_next: Ints) -> None:
        """Count these transitions, in place."""
        self.make_room(len(states))
        for h, s, a, s_next in zip(
            row.tolist(), states.tolist(), actions.tolist(), states_next.tolist(), strict=True
        ):
            add_to_list(self.lists, h, s * self.A + a, s_next, 1)

    def add_entries(self, more: Entries) -> None:
        """Add these counts, in place."""
        self.lists = self.of(added(joined(self.entries, more), self.lists.S), self.shape).lists

    def copy(self) -> "Transitions":
        """The same numbers."""
        mine = CountLists._make(
            part.copy() if isinstance(part, np.ndarray) else part for part in self.lists
        )
        return Transitions(mine, self.A)

    def as_floats(self) -> "Transitions":
        """The same numbers as floats: for expected counts."""
        place, state, n = self.entries
        return self.of(Entries(place, state, n.astype(np.float64)), self.shape)

    def pooled(self) -> "Transitions":
        """All steps but the last added up; a single row as it is."""
        rows, S, A = self.shape
        place, state, n = self.entries
        shared = place < max(rows - 1, 1) * S * A
        entries = Entries(place[shared] % (S * A), state[shared], n[shared])
        return self.of(added(entries, S), (1, S, A))

    def beyond(self, other: "Transitions") -> Entries:
        """What these hold beyond the other; negative where they hold less."""
        place, state, n = other.entries
        return added(joined(self.entries, Entries(place, state, -n)), self.lists.S)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transitions):
            return NotImplemented
        return self.shape == other.shape and all(
            np.array_equal(x, y) for x, y in zip(self.entries, other.entries, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # mutable


def read_lists(given: AnyArray, shape: AnyArray) -> Transitions:
    """Build lists from what a file holds: (3, transitions) place, state, how often; and (rows,
    S, A).
    """
    whole = all(x.dtype.kind in "iu" for x in (given, shape))
    if (
        not whole
        or shape.shape != (3,)
        or not (shape > 0).all()
        or given.ndim != 2
        or len(given) != 3
    ):
        raise InvalidCounts(
            "Counts in lists need whole numbers: place, state and count, and rows, S and A."
        )
    rows, S, A = (int(x) for x in shape)
    require_size("Counts in lists", (rows, S, A, 4), InvalidCounts)
    place, state, n = (np.asarray(x, dtype=np.int64) for x in given)
    inside = (
        (place >= 0)
        & (place < rows * S * A)
        & (state >= 0)
        & (state < S)
        & (n >= 1)
        & (n <= LARGEST_COUNT)
    )
    if not inside.all() or (np.diff(place * S + state) <= 0).any():
        raise InvalidCounts(
            f"Counts in lists must be in order, each transition once, of {rows} x {S} x {A} pairs "
            f"and {S} states, with counts in 1..2^53."
        )
    return Transitions.of(Entries(place, state, n), (rows, S, A))


def transitions_in_matrices(given: Any, H: int | None) -> Transitions:
    """Return the counts in a sparse matrix (S*A, S), pooled, or in a list of one for each step."""
    by_step = isinstance(given, list | tuple)
    try:
        table, _ = sparse_rows("n_sas", given, H if by_step else H or 1)
    except InvalidModel as reason:
        raise InvalidCounts(str(reason)) from None
    n, place = table.value, table.places
    bad = np.flatnonzero((n < 0) | (n > LARGEST_COUNT) | (n != np.floor(n)))
    if bad.size:
        row, pair = divmod(int(place[bad[0]]), table.pairs)
        at = where(
            "n_sas",
            [*([row] if by_step else []), *divmod(pair, table.A), table.state[bad[0]]],
        )
        raise InvalidCounts(f"{at} is {n[bad[0]]:g}, expected a whole number from 0 to 2^53.")
    return Transitions.of(Entries(place, table.state, n.astype(np.int64)), table.shape)
