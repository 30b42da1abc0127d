"""LogTables: what was counted in a log, as tables, and what follows from them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.bets import between
from surefoot.base.validation import REWARD_UNITS, FrozenRecord, freeze, read_only
from surefoot.errors import InvalidLog
from surefoot.evidence.counts import Counts
from surefoot.logs.codebook import Codebook, coding_of
from surefoot.model.by_step import StepCounts
from surefoot.model.count_lists import Entries
from surefoot.model.given_rows import TABLES as ARRAYS
from surefoot.model.origin import TAKEN_OFF, UNKNOWN, Origin
from surefoot.model.transitions import Transitions
from surefoot.model.units import Units

LARGEST = 2**28  # numbers: 2 GiB
MOST_STEPS = 2**42  # up to so many steps of a log, sums of rewards in units of 2^-20 are exact
TABLES = ("place", "n", "n_fold", "low", "high")


class Rewards(NamedTuple):
    """The rewards of each pair in the log's units: arrays (H, S, A), NaN where the pair was
    never seen.
    """

    mean: Floats
    min: Floats
    max: Floats
    n: Ints


class Sums(NamedTuple):
    """The sums of random rewards of each pair (H, S, A), rescaled to [0, 1], in whole multiples
    of 2^-20.
    """

    x_sa: Ints
    x_fold: Ints  # at step h over the episodes of fold h only
    rest_of_sum: Ints  # what was rounded off, in multiples of 2^-40
    z_sa: Ints  # of x (1 - x), rounded down
    z_fold: Ints


@dataclass(frozen=True, eq=False, repr=False)
class LogTables(FrozenRecord):
    """The tables of a log. `LogCounts` is made of them; it can be saved, and makes a problem.

    They have no row for the unseen state, which has no transitions of its own: it is added where
    counts are made.
    """

    H: int
    codebook: Codebook
    episodes: int
    rows: int
    seed: int
    reward_range: tuple[float, float]  # rewards are rescaled to [0, 1] by it
    declared: bool  # is it the range of all possible rewards, and not only of those that were seen?
    notes: tuple[str, ...]  # what the user of the log should know
    place: Ints  # which transitions occurred: flat indices into (H, S, A, S), ascending
    n: Ints  # how often
    n_fold: Ints  # how often in the episodes of fold h
    low: Floats  # the lowest reward of each transition
    high: Floats
    sums: Sums | None  # None: each transition always paid the same
    last_ends: int = 0  # episodes that terminated at the last step
    after_end: float = 0.0  # what is paid at each step after an early end, in the log's units

    @property
    def S(self) -> int:
        """The number of states, the absorbing and the unseen one included."""
        return self.codebook.S

    @property
    def occurring(self) -> int:
        """The number of states that can occur in the tables: all but the unseen one."""
        return self.codebook.S - self.codebook.unseen

    @property
    def A(self) -> int:
        """The number of actions."""
        return self.codebook.A

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape (H, S, A, S) of the tables, in which there is no unseen state."""
        return self.H, self.occurring, self.A, self.occurring

    @property
    def units(self) -> Units:
        """The units that rewards were rescaled from, to [0, 1]."""
        return Units(*self.reward_range)

    @property
    def zero_reward(self) -> float:
        """The reward of the absorbing state, rescaled to [0, 1]: zero in the user's units, or
        what was declared.
        """
        return float(self.units.of_a_step(np.asarray(self.after_end)))

    @property
    def absorbing_state(self) -> int | None:
        """The number of the absorbing state, in which episodes stay after an early end; None if
        there is none.
        """
        return self.codebook.absorbing_state

    @property
    def unseen_state(self) -> int | None:
        """The number of the state that stands for all states that were never seen; None if the
        states were declared.
        """
        return self.codebook.unseen_state

    @property
    def counts(self) -> Counts:
        """The counts of the whole log. Each call makes new ones, because an agent adds to its
        counts.

        They hold the sums of rewards if the range of rewards was declared. Where the states were
        not, the FIRST time that a pair led to a state counts as a visit of the unseen state, and so
        does the first episode that started in a state: before it, this state was one of those that
        nobody had seen. Without that, many rare states would look as if they were all there are.
        """
        found = self._counts(self.n, "x_sa", "z_sa")
        if self.unseen_state is not None:
            # as they were seen
            found.steps = StepCounts.of_rows(found.entries, found.n_sa, found.x_sa)
            place, state, _ = found.entries
            # an absorbing state leads nowhere else
            first = (place // self.A) % self.S < len(self.codebook.states)
            once = first.astype(np.int64)
            found.transitions.add_entries(Entries(place, state, -once))
            found.transitions.add_entries(
                Entries(place, np.full_like(state, self.unseen_state), once)
            )
            found.origin = replace(self.origin, first_visits=TAKEN_OFF)
        found.number_as_log()
        return found

    @property
    def fold_counts(self) -> Counts:
        """The counts of step h in the episodes of fold h only, with the sums of their rewards.

        Nothing is taken off here: values come from other folds, and are fixed for this one.
        """
        return self._counts(self.n_fold, "x_fold", "z_fold")

    @property
    def folds(self) -> Ints:
        """The array (H, S, A, S) of `fold_counts`: step h counted in the episodes of fold h only.
        With very many states it is refused: use `fold_counts`.
        """
        return self.fold_counts.n_sas

    def _counts(self, n: Ints, *sums: str) -> Counts:
        starts = np.flatnonzero(self.starts)
        s1 = int(starts[0]) if len(starts) == 1 else None
        x_sa, z_sa = (
            self._widened(self._sums(n, name), 1) if self.declared else None for name in sums
        )
        s1 = None if self.codebook.unseen else s1  # where states are unknown, so is the start
        n_start = self.starts.copy()
        if self.unseen_state is not None:
            first = n_start > 0
            n_start -= first
            n_start[self.unseen_state] += first.sum()
        seen = Transitions.none_yet((self.H, self.S, self.A))
        seen.add_entries(Entries(*np.divmod(self.keys(self.place), self.S), n))
        # in folds, each episode is counted at one step
        episodes = self.episodes if n is self.n else int(n.sum())
        counts = Counts(
            seen,
            self.H,
            episodes=episodes,
            x_sa=x_sa,
            z_sa=z_sa,
            n_start=n_start,
            s1=s1,
            logged=True,
        )
        counts.origin = self.origin
        return counts

    @property
    def origin(self) -> Origin:
        """What the counts of this log are evidence about. Every reward was seen, and none was
        read from a table.
        """
        return Origin(
            sizes=f"{self.S} states and {self.A} actions",
            horizon=f"{self.H} steps",
            coding=coding_of(self.codebook),
            units=self.units.range_text if self.declared else None,
            rewards=UNKNOWN,
        )

    def keys(self, place: Ints) -> Ints:
        """Return the numbers of these transitions among all states, the unseen one too: flat
        indices into (H, S, A, S), as `place` is one without it.
        """
        pair, s_next = np.divmod(place, self.occurring)
        h, pair = np.divmod(pair, self.occurring * self.A)
        return np.asarray((h * self.S * self.A + pair) * self.S + s_next)

    def _widened(self, table: AnyArray, *axes: int, fill: float = 0) -> AnyArray:
        """Add the unseen state at these axes, if there is one."""
        for axis in axes if self.codebook.unseen else ():
            shape = [1 if i == axis else size for i, size in enumerate(table.shape)]
            table = np.concatenate([table, np.full(shape, fill, dtype=table.dtype)], axis=axis)
        return table

    def _by_pair(self, values: AnyArray, dtype: type = np.int64) -> AnyArray:
        """Return the sums over next states, always added in the same order."""
        total: AnyArray = np.zeros(self.H * self.occurring * self.A, dtype=dtype)
        np.add.at(total, self.place // self.occurring, values)
        return total.reshape(self.H, self.occurring, self.A)

    def _sums(self, n: Ints, name: str) -> Ints:
        if self.sums is not None:
            return np.asarray(getattr(self.sums, name))
        # as agents sum rewards
        whole = np.floor(self.units.of_a_step(self.low) * REWARD_UNITS).astype(np.int64)
        return np.asarray(self._by_pair(n * (between(whole) if name.startswith("z") else whole)))

    @cached_property
    def starts(self) -> Ints:
        """How often each state was the first, (S,)."""
        return read_only(self._widened(self._by_pair(self.n)[0].sum(axis=-1), 0))

    @cached_property
    def rewards(self) -> Rewards:
        """The mean, min, max and n of each pair."""
        n = self._by_pair(self.n)
        shape = self.H, self.occurring, self.A
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        np.minimum.at(low.reshape(-1), self.place // self.occurring, self.low)
        np.maximum.at(high.reshape(-1), self.place // self.occurring, self.high)
        seen = n > 0
        if self.sums is None:
            total = self._by_pair(self.n * self.low, np.float64)
            mean = total / np.maximum(n, 1)
        else:
            share = (
                (self.sums.x_sa + self.sums.rest_of_sum / REWARD_UNITS)
                / REWARD_UNITS
                / np.maximum(n, 1)
            )
            mean = self.units.low + self.units.scale * share
        mean = np.where(low == high, low, mean)
        mean, low, high = (
            read_only(self._widened(np.where(seen, values, np.nan), 1, fill=np.nan))
            for values in (mean, low, high)
        )
        return Rewards(mean, low, high, read_only(self._widened(n, 1)))

    @property
    def mean_return(self) -> float:
        """The mean return per episode of the logged policy, in the log's units."""
        paid = self.rewards
        return float(np.where(paid.n > 0, paid.mean * paid.n, 0.0).sum()) / self.episodes

    @property
    def by_pair(self) -> bool:
        """True if every pair, at each step, always paid the same. False if most pairs were seen
        only once.
        """
        n = self.rewards.n
        return bool(((n == 0) | (self.rewards.min == self.rewards.max)).all()) and _repeated(n)

    @property
    def by_transition(self) -> bool:
        """True if every transition, at each step, always paid the same. False if most were seen
        only once.
        """
        return self.sums is None and _repeated(self.n)

    @property
    def coverage(self) -> float:
        """The share of the pairs (step, state, action) that occur."""
        return self.pairs_seen / self.pairs

    @property
    def pairs_seen(self) -> int:
        """How many pairs (step, state, action) occur, those of the absorbing state apart."""
        return int((self.rewards.n[:, : len(self.codebook.states)] > 0).sum())

    @property
    def pairs(self) -> int:
        """How many pairs (step, state, action) there are. At the first step only first states
        are possible.
        """
        H, S, A = self.rewards.n[:, : len(self.codebook.states)].shape
        first = int((self.starts[:S] > 0).sum())
        return int(A * ((H - 1) * S + first))

    def __post_init__(self) -> None:
        freeze(self, **{name: getattr(self, name) for name in TABLES})


def _repeated(n: Ints) -> bool:
    """Return whether most rows are of places that were seen twice or more: only there can
    rewards be seen to vary.
    """
    return 2 * int(n[n > 1].sum()) >= int(n.sum())


def fits(H: int, S: int, A: int) -> bool:
    """Do counts fit into memory: arrays over the pairs?"""
    return H * S * A * ARRAYS <= LARGEST


def require_size(H: int, S: int, A: int) -> None:
    """Refuse counts that would not fit into memory."""
    if not fits(H, S, A):
        sizes = ", ".join(f"{name} = {size:,}" for name, size in {"H": H, "S": S, "A": A}.items())
        raise InvalidLog(
            f"Counts of ({sizes}) would take more than {LARGEST * 8 / 2**30:.0f} GiB. Use coarser "
            "states, or a shorter horizon."
        )
