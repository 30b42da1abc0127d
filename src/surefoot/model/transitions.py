"""How often each next state followed each pair: a table over all states, or, for many states, lists
of those seen.

Both kinds answer the same questions. `Counts` takes a table up to MOST_IN_A_TABLE states, and lists
above.
"""

from typing import Any, TypeAlias

import numpy as np

from surefoot.base.arrays import AnyArray, Ints
from surefoot.base.validation import require_size, where
from surefoot.errors import InvalidCounts, InvalidModel
from surefoot.model.count_lists import (
    TOTAL,
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
from surefoot.model.sparse import sparse_table
from surefoot.model.successors import list_of

MOST_IN_A_TABLE = 64  # states
LARGEST_COUNT = 2**53  # up to here a count is exact as a float64
MOST_SHOWN = 2**27  # numbers of a table that is made of lists: a gigabyte

AHEAD = 32  # episodes for which there is room in a new arena
Shape: TypeAlias = tuple[int, int, int]  # rows, S, A


class Table:
    """A table n_sas (rows, S, A, S)."""

    __slots__ = ("n_sas",)

    def __init__(self, n_sas: AnyArray) -> None:
        """Take the table as it is. Expected counts, in a forecast, are floats."""
        self.n_sas = n_sas

    @property
    def shape(self) -> Shape:
        """Rows, states, actions."""
        rows, S, A, _ = self.n_sas.shape
        return rows, S, A

    @property
    def total(self) -> int:
        """The number of transitions."""
        return int(self.n_sas.sum())

    @property
    def seen(self) -> int:
        """How many next states were seen, of all pairs."""
        return int(np.count_nonzero(self.n_sas))

    @property
    def n_sa(self) -> Ints:
        """The visits of each pair, (rows, S, A)."""
        return np.asarray(self.n_sas.sum(axis=-1))

    @property
    def into(self) -> Ints:
        """How often each state was the next one, (rows, S)."""
        return np.asarray(self.n_sas.sum(axis=(1, 2)))

    @property
    def for_kernels(self) -> Ints:
        """The counts as the kernels read and change them."""
        rows, S, A = self.shape
        return self.n_sas.reshape(rows, S * A, S)

    @property
    def entries(self) -> Entries:
        """The counts above 0, one by one."""
        rows, S, A = self.shape
        place, state = np.nonzero(self.n_sas.reshape(rows * S * A, S))
        return Entries(place, state, self.n_sas.reshape(rows * S * A, S)[place, state])

    def add(self, row: Ints, states: Ints, actions: Ints, states_next: Ints) -> None:
        """Count these transitions, in place."""
        np.add.at(self.n_sas, (row, states, actions, states_next), 1)

    def add_entries(self, more: Entries) -> None:
        """Add these counts, in place."""
        rows, S, A = self.shape
        np.add.at(self.n_sas.reshape(rows * S * A, S), (more.place, more.state), more.n)

    def copy(self) -> "Table":
        """The same numbers."""
        return Table(self.n_sas.copy())

    def pooled(self) -> "Table":
        """All steps but the last added up; a single row as it is."""
        shared = self.n_sas if len(self.n_sas) == 1 else self.n_sas[:-1]
        return Table(shared.sum(axis=0, keepdims=True))


class Lists:
    """Lists of the next states that were seen."""

    __slots__ = ("A", "lists")

    def __init__(self, lists: CountLists, A: int) -> None:
        """Take the lists as they are."""
        self.lists, self.A = lists, A

    @classmethod
    def empty(cls, shape: Shape) -> "Lists":
        """Nothing was seen."""
        none = np.zeros(0, dtype=np.int64)
        return cls.of(Entries(none, none, none), shape)

    @classmethod
    def of(cls, entries: Entries, shape: Shape) -> "Lists":
        """These counts, which are in order."""
        rows, S, A = shape
        return cls(lists_from(entries, (rows, S * A), S), A)

    @property
    def shape(self) -> Shape:
        """Rows, states, actions."""
        return self.lists.at.shape[0], self.lists.S, self.A

    @property
    def total(self) -> int:
        """The number of transitions."""
        return int(self.lists.sizes[TOTAL])

    @property
    def seen(self) -> int:
        """How many next states were seen, of all pairs."""
        return int(self.lists.size.sum())

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
    def for_kernels(self) -> CountLists:
        """The counts as the kernels read and change them."""
        return self.lists

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

    def make_room(self, steps: int) -> None:
        """Take an arena with room for many more, in place, where there is no room for so many
        transitions.
        """
        if not lists_have_room(self.lists, steps):
            self.lists = with_room(self.lists, AHEAD * steps)

    def add(self, row: Ints, states: Ints, actions: Ints, states_next: Ints) -> None:
        """Count these transitions, in place."""
        self.make_room(len(states))
        for h, s, a, s_next in zip(
            row.tolist(), states.tolist(), actions.tolist(), states_next.tolist(), strict=True
        ):
            add_to_list(self.lists, h, s * self.A + a, s_next, 1)

    def add_entries(self, more: Entries) -> None:
        """Add these counts, in place."""
        self.lists = Lists.of(added(joined(self.entries, more), self.lists.S), self.shape).lists

    def copy(self) -> "Lists":
        """The same numbers."""
        return Lists.of(self.entries, self.shape)

    def pooled(self) -> "Lists":
        """All steps but the last added up; a single row as it is."""
        rows, S, A = self.shape
        place, state, n = self.entries
        shared = place < max(rows - 1, 1) * S * A
        entries = Entries(place[shared] % (S * A), state[shared], n[shared])
        return Lists.of(added(entries, S), (1, S, A))


Transitions: TypeAlias = Table | Lists


def read_lists(given: AnyArray, shape: AnyArray) -> Lists:
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
    if S <= MOST_IN_A_TABLE:
        raise InvalidCounts(
            f"Counts in lists are of {S} states, expected more than {MOST_IN_A_TABLE}."
        )
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
    return Lists.of(Entries(place, state, n), (rows, S, A))


def transitions_in_matrices(given: Any, H: int | None) -> Lists:
    """Return the counts in a sparse matrix (S*A, S), pooled, or in a list of one for each step."""
    by_step = isinstance(given, list | tuple)
    try:
        table, _ = sparse_table("n_sas", given, H if by_step else H or 1)
    except InvalidModel as reason:
        raise InvalidCounts(str(reason)) from None
    n, place = table.value, list_of(table.lists)
    bad = np.flatnonzero((n < 0) | (n > LARGEST_COUNT) | (n != np.floor(n)))
    if bad.size:
        row, pair = divmod(int(place[bad[0]]), table.S * table.A)
        at = where(
            "n_sas",
            [*([row] if by_step else []), *divmod(pair, table.A), table.lists.state[bad[0]]],
        )
        raise InvalidCounts(f"{at} is {n[bad[0]]:g}, expected a whole number from 0 to 2^53.")
    return Lists.of(
        Entries(place, table.lists.state, n.astype(np.int64)), (table.rows, table.S, table.A)
    )


def as_floats(given: Transitions) -> Transitions:
    """The same numbers as floats: for expected counts."""
    if isinstance(given, Table):
        return Table(given.n_sas.astype(np.float64))
    place, state, n = given.entries
    return Lists.of(Entries(place, state, n.astype(np.float64)), given.shape)


def transitions_of(n_sas: Ints) -> Transitions:
    """A table (rows, S, A, S) as it is, or as lists where it has many states."""
    table = Table(n_sas)
    return table if n_sas.shape[1] <= MOST_IN_A_TABLE else Lists.of(table.entries, table.shape)


def by_size(given: Transitions) -> Transitions:
    """The same counts in a table where they have few states: loops over few states count in
    tables.
    """
    small = isinstance(given, Lists) and given.shape[1] <= MOST_IN_A_TABLE
    return Table(given.n_sas.copy()) if small else given


def none_yet(shape: Shape) -> Transitions:
    """Nothing was seen."""
    rows, S, A = shape
    if S <= MOST_IN_A_TABLE:
        return Table(np.zeros((rows, S, A, S), dtype=np.int64))
    return Lists.empty(shape)


def same_counts(one: Transitions, other: Transitions) -> bool:
    """Do both hold the same?"""
    return one.shape == other.shape and all(
        np.array_equal(x, y) for x, y in zip(one.entries, other.entries, strict=True)
    )


def more_than(one: Transitions, other: Transitions) -> Entries:
    """What one holds beyond the other; negative where it holds less."""
    place, state, n = other.entries
    return added(joined(one.entries, Entries(place, state, -n)), one.shape[1])
