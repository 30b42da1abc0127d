"""What a problem knows of next states, as lists: for problems whose tables over next states
would not fit.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from surefoot.base.arrays import Bools, Floats, Indices, Ints
from surefoot.base.validation import mask_of, read_only, require_rewards, where
from surefoot.errors import InvalidModel
from surefoot.model.sparse import SparseTable, is_sparse, require_room, require_small, sparse_table
from surefoot.model.successors import (
    PaidLists,
    Successors,
    keys_of,
    list_of,
    listed,
    looked_up,
    masked,
    offsets,
)
from surefoot.model.units import Rescaled, Units, rescaled_rewards


class SizedLists(NamedTuple):
    """Rewards by next state as a problem keeps them, with its sizes: what builds an equal
    problem.
    """

    paid: PaidLists
    S: int
    A: int


def as_lists(given: object) -> bool:
    """Is this kept as lists: a sparse matrix, one for each step, or lists already?"""
    table = given.table if isinstance(given, Rescaled) else given
    return isinstance(table, Successors | SizedLists) or is_sparse(table)


def rows_of(lists: Successors | PaidLists, pairs: int) -> int:
    """Return how many steps have lists of their own: H, or 1."""
    return (len(lists.first) - 1) // pairs


def mask_lists_of(given: Any, S: int, A: int, H: int) -> Successors | None:
    """Return the lists of possible next states of a mask: an array, a sparse one (entries other
    than 0), or lists. An empty list says nothing of its pair: every next state is possible.
    """
    if given is None:
        return None
    if isinstance(given, Successors):
        lists = _checked("support", given, S, A, H)
        return Successors(*map(read_only, lists))
    if not is_sparse(given):
        mask = mask_of("support", given, (S, A, S), H)
        if mask is None:
            return None
        none = np.argwhere(~mask.any(axis=-1))
        if none.size:
            raise InvalidModel(
                f"{where('support', none[0][-2:])} allows no next state, expected at least one."
            )
        free = mask.all(axis=-1, keepdims=True) & (S > 1)  # of a single state, that one follows
        limited = mask & ~free
        return Successors(*map(read_only, listed(limited.reshape(len(mask), S * A, S))))
    table, _ = sparse_table("support", given, H)
    if (table.S, table.A) != (S, A):
        raise InvalidModel(
            f"support has shape {(table.S * table.A, table.S)}, expected (S*A, S) = {(S * A, S)}, "
            "one matrix for all steps or one for each."
        )
    empty = np.flatnonzero(np.diff(table.lists.first) == 0)
    if empty.size:
        s, a = divmod(int(empty[0]) % (S * A), A)
        raise InvalidModel(
            f"support of state {s}, action {a} allows no next state, expected at least one."
        )
    return Successors(*map(read_only, table.lists))


def _checked(name: str, lists: Successors, S: int, A: int, H: int) -> Successors:
    """Return a copy of lists that fit these sizes; refuse others."""
    whole = all(np.asarray(part).dtype.kind in "iu" for part in lists)
    first, state = (np.array(part, dtype=np.int64) for part in lists)
    whole = (
        whole
        and first.ndim == state.ndim == 1
        and len(first) - 1 in (S * A, H * S * A)
        and first[0] == 0
    )
    if not (whole and first[-1] == len(state) and (np.diff(first) >= 0).all()):
        raise InvalidModel(
            f"{name} has lists that do not fit, expected S*A = {S * A} of them, or H times as many."
        )
    keys = keys_of(first, state, S)
    if (np.diff(keys) <= 0).any() or (state < 0).any() or (state >= S).any():
        raise InvalidModel(f"{name} has lists that are not states 0..{S - 1} in ascending order.")
    return Successors(first, state)


def paid_lists_of(given: Any, units: Units, H: int | None) -> tuple[SizedLists, int]:
    """Return rewards by next state as lists, rescaled; and H.

    An entry that is not stored pays 0 in the user's units; in a `Rescaled` table, the lowest.
    """
    table = given.table if isinstance(given, Rescaled) else given
    if isinstance(table, SizedLists):
        if H is None:
            raise InvalidModel("r_next is given as lists: give the number of steps with H=...")
        paid, S, A = table
        require_room(H, S, A)
        lists = _checked("r_next", Successors(paid.first, paid.state), S, A, H)
        require_rewards("r_next, as lists,", np.append(paid.paid, paid.elsewhere), 1)
        if paid.paid.shape != lists.state.shape:
            raise InvalidModel(
                f"r_next has {paid.paid.shape} rewards in lists, expected {lists.state.shape}."
            )
        return SizedLists(
            read_only_lists(PaidLists(*lists, paid.paid.copy(), paid.elsewhere)), S, A
        ), H
    found, steps = sparse_table("r_next", table, H, keep_zeros=True)
    values, elsewhere = found.value, 0.0
    inside = Units() if isinstance(given, Rescaled) else units
    _require_in_range(found, inside)
    if not isinstance(given, Rescaled):
        others = 0.0 if units.admits(0.0) else units.low
        read = np.asarray(rescaled_rewards("r_next", np.append(values, others), units, None))
        values, elsewhere = read[:-1], float(read[-1])
    return SizedLists(
        read_only_lists(PaidLists(*found.lists, values, elsewhere)), found.S, found.A
    ), steps


def _require_in_range(found: SparseTable, units: Units) -> None:
    """Refuse a reward outside the units' range, with its place."""
    bad = np.flatnonzero(units.range.outside(found.value))
    if bad.size:
        s, a = divmod(int(list_of(found.lists)[bad[0]]) % (found.S * found.A), found.A)
        raise InvalidModel(
            f"r_next of state {s}, action {a}, next state {found.lists.state[bad[0]]} is "
            f"{found.value[bad[0]]:.10g}, outside the units' range of {units.low:g} to "
            f"{units.amount(units.high)} a step. Declare the range of all rewards that are "
            "possible."
        )


def require_all_paid(sized: SizedLists, mask: Successors | None, units: Units) -> None:
    """Refuse entries that are not stored where 0 is no reward in the user's units: nobody says
    what they pay.
    """
    paid, S, A = sized
    if units.admits(0.0):
        return
    stored = Successors(paid.first, paid.state)
    every = (np.diff(paid.first) == S).reshape(-1, S * A)
    if mask is not None and first_outside(mask, stored, S, S * A) is None:
        every = every | (np.diff(mask.first) > 0).reshape(-1, S * A)
    if not every.all():
        raise InvalidModel(
            "r_next does not store a reward for every next state that is possible, and those left "
            f"out cannot pay 0, which is outside the units' range of {units.low:g} to "
            f"{units.amount(units.high)} a step. Store them all, or say with `support` which next "
            "states are possible."
        )


def row_keys(lists: Successors | PaidLists, h: int, S: int, pairs: int) -> tuple[Ints, int]:
    """Return one number for each entry of the lists of step h, pair * S + state; and the place
    of the first entry.
    """
    row = h % rows_of(lists, pairs)
    first = lists.first[row * pairs : (row + 1) * pairs + 1]
    return keys_of(first - first[0], lists.state[first[0] : first[-1]], S), int(first[0])


def first_outside(
    inner: Successors, outer: Successors, S: int, pairs: int
) -> tuple[int, int] | None:
    """Return step and place of the first entry of the inner lists that the outer ones do not
    hold, or None.
    """
    for h in range(max(rows_of(inner, pairs), rows_of(outer, pairs))):
        keys, begin = row_keys(inner, h, S, pairs)
        row = h % rows_of(outer, pairs)
        free = np.diff(outer.first[row * pairs : (row + 1) * pairs + 1]) == 0  # these say nothing
        bad = np.flatnonzero(
            ~(looked_up(row_keys(outer, h, S, pairs)[0], keys)[1] | free[keys // S])
        )
        if bad.size:
            return h, begin + int(bad[0])
    return None


def aligned(paid: PaidLists, lists: Successors, S: int, pairs: int) -> Floats:
    """Return what the entries of these lists pay, (steps, entries): one row for all steps, but
    where the rewards alone depend on the step, one for each.
    """
    steps = rows_of(paid, pairs) if rows_of(lists, pairs) == 1 else 1
    return np.array([_paid_row(paid, lists, h, S, pairs, steps) for h in range(steps)])


def _paid_row(paid: PaidLists, lists: Successors, h: int, S: int, pairs: int, steps: int) -> Floats:
    """Return what every entry of the lists pays; where they are for each step, step by step."""
    found: list[Floats] = []
    for row in range(rows_of(lists, pairs)):
        step = h if steps > 1 else row
        keys, begin = row_keys(paid, step, S, pairs)
        place, held = looked_up(keys, row_keys(lists, step, S, pairs)[0])
        row_paid = np.full(len(held), paid.elsewhere)
        row_paid[held] = paid.paid[begin + place[held]]
        found.append(row_paid)
    return np.concatenate(found)


def left_never(lists: Successors, S: int, A: int) -> Iterator[int]:
    """Yield the states from which the lists of every step and action lead to the state itself
    alone.
    """
    only, alone = np.full(len(lists.first) - 1, -1), np.diff(lists.first) == 1
    only[alone] = lists.state[lists.first[:-1][alone]]
    same = only.reshape(-1, S, A) == np.arange(S)[:, None]
    yield from (int(s) for s in np.flatnonzero(same.all(axis=(0, 2))))


def anything_follows(lists: Successors | None, S: int, A: int, states: int) -> bool:
    """May every state follow each pair of the first so many states, at each step?"""
    if lists is None:
        return True
    sizes = np.diff(lists.first).reshape(-1, S, A)[:, :states]
    return bool(((sizes == 0) | (sizes == S)).all())


def allowed(mask: Successors | None, lists: int, S: int) -> Ints:
    """Return how many next states each of so many lists allows: one that is empty allows all."""
    if mask is None:
        return np.full(lists, S)
    sizes = np.tile(np.diff(mask.first), lists // (len(mask.first) - 1))
    return np.where(sizes == 0, S, sizes)


def filled(mask: Successors | None, lists: int, S: int, most: int) -> Successors:
    """Return so many lists of possible next states, in which none is empty: one that allows every
    state holds them all, or, if these are more than `most`, so many of them, evenly spread from
    another state on in each list.
    """
    if mask is None:
        mask = Successors(np.zeros(lists + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    times, most = lists // (len(mask.first) - 1), min(most, S)
    sizes = np.tile(np.diff(mask.first), times)
    free = sizes == 0
    first = offsets(np.where(free, most, sizes))
    state, spread = np.empty(first[-1], dtype=np.int64), np.repeat(free, np.diff(first))
    state[~spread] = np.tile(mask.state, times)
    state[spread] = np.sort(
        (np.flatnonzero(free)[:, None] + np.arange(most) * S // most) % S, axis=1
    ).reshape(-1)
    return Successors(first, state)


def without_last(given: Successors | SizedLists, S: int, A: int) -> Successors | SizedLists:
    """Return what these lists say of all states but the last one, which no list holds alone but
    its own.
    """
    lists = given.paid if isinstance(given, SizedLists) else given
    place, state = list_of(Successors(lists.first, lists.state)), lists.state
    kept = (place // A % S < S - 1) & (state < S - 1)
    rows = rows_of(lists, S * A)
    place = place[kept] - place[kept] // (S * A) * A  # each row has A lists less
    others = Successors(offsets(np.bincount(place, minlength=rows * (S - 1) * A)), state[kept])
    if isinstance(given, SizedLists):
        return SizedLists(PaidLists(*others, given.paid.paid[kept], given.paid.elsewhere), S - 1, A)
    return others


def mean_over_lists(lists: Successors, h: int, V: Floats, pairs: int) -> Floats:
    """Return for each pair the mean V(s') over the next states that the lists allow at step h,
    if all are alike.
    """
    keys, _ = row_keys(lists, h, len(V), pairs)
    sizes = np.bincount(keys // len(V), minlength=pairs)
    total = np.bincount(keys // len(V), V[keys % len(V)], minlength=pairs)
    return np.where(sizes > 0, total / np.maximum(sizes, 1), V.mean())


def spread_over_lists(lists: Successors, h: int, taken: Floats, S: int) -> Floats:
    """Return how likely each state comes next, if pairs (S*A,) are taken like this and all that
    is allowed is alike.
    """
    keys, _ = row_keys(lists, h, S, len(taken))
    sizes = np.bincount(keys // S, minlength=len(taken))
    share = taken / np.where(sizes > 0, sizes, S)
    reached = np.bincount(keys % S, share[keys // S], minlength=S) + share[sizes == 0].sum()
    return np.asarray(reached, dtype=np.float64)


def read_only_lists(lists: Any) -> Any:
    """Return the same lists, whose arrays cannot be written to; None of None."""
    return lists and type(lists)(
        *(read_only(part) if isinstance(part, np.ndarray) else part for part in lists)
    )


def dense_mask(lists: Successors, S: int, A: int) -> Bools:
    """Return the mask (S, A, S) of lists, or (H, S, A, S), if it is small."""
    shape = (rows_of(lists, S * A), S * A, S)
    require_small("The mask", shape, "problem.mask_lists")
    mask = read_only(masked(lists, (rows_of(lists, S * A), S * A, S)).reshape(-1, S, A, S))
    return np.asarray(mask[0] if len(mask) == 1 else mask)


def dense_rewards(paid: PaidLists, h: int, S: int, A: int) -> Floats:
    """Return rewards by next state (S, A, S) of step h, if they are few."""
    require_small("r_next", (S, A, S), "problem.paid_lists")
    first, state, values, elsewhere = paid
    table = SparseTable(Successors(first, state), values, S, A).dense(elsewhere)
    return np.asarray(table[h % len(table)].reshape(S, A, S))


def same_at_every_step(paid: PaidLists, pairs: int) -> bool:
    """Are the lists the same at every step?"""
    rows = rows_of(paid, pairs)
    sizes = np.diff(paid.first).reshape(rows, pairs)
    if (sizes != sizes[0]).any():
        return False
    states, numbers = paid.state.reshape(rows, -1), paid.paid.reshape(rows, -1)
    return bool((states == states[0]).all() and (numbers == numbers[0]).all())


def reward_at(paid: PaidLists, i: Indices, s_next: Indices, S: int) -> Floats:
    """Return what list i pays for this next state, or each of these lists for its own."""
    if len(paid.state) == (len(paid.first) - 1) * S:  # every state is listed
        return np.asarray(paid.paid[np.asarray(i) * S + s_next])
    lists, wanted = np.broadcast_arrays(i, s_next)
    left, end = paid.first[lists], paid.first[lists + 1]
    right = end
    while (left < right).any():  # bisection, in all lists at once
        middle = (left + right) // 2
        before = (left < right) & (paid.state[np.minimum(middle, len(paid.state) - 1)] < wanted)
        left, right = (
            np.where(before, middle + 1, left),
            np.where(before, right, np.minimum(middle, right)),
        )
    if not len(paid.state):
        return np.full(lists.shape, paid.elsewhere)
    place = np.minimum(left, len(paid.state) - 1)
    return np.where((left < end) & (paid.state[place] == wanted), paid.paid[place], paid.elsewhere)


def allows(lists: Successors, h: int, pair: int, s_next: int, pairs: int) -> bool:
    """Do the lists allow this next state of a pair? An empty list allows every state."""
    states = lists.of((h % rows_of(lists, pairs)) * pairs + pair)
    return len(states) == 0 or bool((states == s_next).any())


def least_over_lists(
    mask: Successors | None, paid: PaidLists | None, h: int, scale: float, V: Floats, pairs: int
) -> Floats:
    """Return for each pair the least V(s') (S,) over the next states that the mask allows at step
    h.

    With rewards by next state, of `scale` times the reward plus V(s'), where the product is rounded
    towards a lower reward: whole multiples of 1/|scale|.
    """
    S = len(V)
    if mask is None:
        mask = Successors(np.zeros(pairs + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    row = h % rows_of(mask, pairs)
    first = mask.first[row * pairs : (row + 1) * pairs + 1]
    here = Successors(first - first[0], mask.state[first[0] : first[-1]])
    free = np.diff(here.first) == 0
    if paid is None:
        return np.where(free, V.min(), _least_in_lists(here, V[here.state]))
    row = h % rows_of(paid, pairs)
    begin = paid.first[row * pairs : (row + 1) * pairs + 1]
    values = paid.paid[begin[0] : begin[-1]]
    now = PaidLists(begin - begin[0], paid.state[begin[0] : begin[-1]], values, paid.elsewhere)

    def worth(rewards: Floats) -> Floats:
        return np.asarray(np.sign(scale) * np.floor(rewards * abs(scale)))

    allowed = _least_in_lists(here, worth(aligned(now, here, S, pairs)[0]) + V[here.state])
    stored = _least_in_lists(Successors(now.first, now.state), worth(now.paid) + V[now.state])
    others = worth(np.array(now.elsewhere)) + _least_unlisted(Successors(now.first, now.state), V)
    return np.where(free, np.minimum(stored, others), allowed)


def _least_in_lists(lists: Successors, numbers: Floats) -> Floats:
    """Return the least of the numbers of each list; infinite for an empty one."""
    least = np.full(len(lists.first) - 1, np.inf)
    some = np.flatnonzero(np.diff(lists.first) > 0)
    if some.size:
        least[some] = np.minimum.reduceat(numbers, lists.first[some])
    return least


def _least_unlisted(lists: Successors, V: Floats) -> Floats:
    """Return the least V(s') of each list over the states that it does not hold; infinite if it
    holds all.
    """
    S, keys = len(V), keys_of(*lists, len(V))
    least, left = np.full(len(lists.first) - 1, np.inf), np.arange(len(lists.first) - 1)
    for s in np.argsort(V, kind="stable"):
        held = looked_up(keys, left * S + s)[1]
        least[left[~held]] = V[s]
        left = left[held]
        if not left.size:
            break
    return least
