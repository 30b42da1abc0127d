"""What was seen at each step, beside counts that the steps share: the evidence of whether they
are alike.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from surefoot.base.arrays import AnyArray, Ints
from surefoot.errors import InvalidFile
from surefoot.model.count_lists import Entries

MOST_NUMBERS = 10**6  # H * S * A * S: above, steps are not compared
IN_A_FILE = ("steps_next", "steps_visits", "steps_paid", "steps_looked_at")


def _are_compared(H: int, S: int, A: int) -> bool:
    """Are steps of a problem of this size compared?"""
    return H > 1 and H * S * A * S <= MOST_NUMBERS


class StepCounts:
    """Counts by step of pooled counts. The next state of step H is not counted, the reward of
    step H is.
    """

    __slots__ = ("looked_at", "n_next", "n_visits", "shape", "x_paid")
    shape: tuple[int, int, int]  # H, S*A, S
    # how often each next state followed each pair at each step; what was not seen is left out
    n_next: dict[int, int]
    n_visits: Ints  # (H, S*A)
    x_paid: Ints | None  # (H, S*A) sums of rewards, in units of 2^-20; None where rewards are known
    looked_at: int  # how many visits there were when the steps were last compared, and seemed alike

    def __init__(self, S: int, n_next: dict[int, int], n_visits: Ints, x_paid: Ints | None) -> None:
        """Take these numbers; n_next by (step * S*A + pair) * S + next state."""
        self.shape = (*n_visits.shape, S)
        self.n_next, self.n_visits, self.x_paid, self.looked_at = n_next, n_visits, x_paid, 0

    @classmethod
    def of(cls, n_next: Ints, n_visits: Ints, x_paid: Ints | None) -> Self:
        """Take a table (H-1, S*A, S)."""
        keys = np.flatnonzero(n_next)
        return cls(
            n_next.shape[-1],
            dict(zip(keys.tolist(), n_next.ravel()[keys].tolist(), strict=True)),
            n_visits,
            x_paid,
        )

    @classmethod
    def zeros(cls, H: int, S: int, A: int, rewards: bool) -> Self | None:
        """The counts of no episodes; None where nothing is shared, or where it would be too many
        to compare.
        """
        if not _are_compared(H, S, A):
            return None
        n_visits = np.zeros((H, S * A), dtype=np.int64)
        return cls(S, {}, n_visits, np.zeros_like(n_visits) if rewards else None)

    @classmethod
    def of_rows(cls, seen: Entries, n_sa: Ints, x_sa: Ints | None) -> Self | None:
        """Make it of counts that have a row for each step: what was seen, visits (H, S, A), and
        sums of rewards.
        """
        H, S, A = n_sa.shape
        if not _are_compared(H, S, A):
            return None
        shared = seen.place < (H - 1) * S * A
        keys = (seen.place * S + seen.state)[shared]
        followed = dict(zip(keys.tolist(), seen.n[shared].tolist(), strict=True))
        return cls(
            S,
            followed,
            n_sa.reshape(H, S * A).copy(),
            None if x_sa is None else x_sa.reshape(H, S * A).copy(),
        )

    @property
    def total(self) -> int:
        """The number of visits."""
        return int(self.n_visits.sum())

    @property
    def table(self) -> Ints:
        """How often each next state followed each pair at each step but the last, (H-1, S*A, S)."""
        H, Z, S = self.shape
        dense = np.zeros((H - 1) * Z * S, dtype=np.int64)
        dense[list(self.n_next)] = list(self.n_next.values())
        return dense.reshape(H - 1, Z, S)

    def add(self, pairs: Ints, after: Ints, paid: Ints | None) -> None:
        """Count one episode: its H pairs s*A + a, the states after them, and what they paid, in
        2^-20.
        """
        H, Z, S = self.shape
        visits = np.arange(0, H * Z, Z) + pairs
        for key in (visits * S + after)[:-1].tolist():
            self.n_next[key] = self.n_next.get(key, 0) + 1
        self.n_visits.reshape(-1)[visits] += 1
        if self.x_paid is not None and paid is not None:
            self.x_paid.reshape(-1)[visits] += paid

    def copy(self) -> Self:
        """New counts with the same numbers."""
        paid = None if self.x_paid is None else self.x_paid.copy()
        same = type(self)(self.shape[2], self.n_next.copy(), self.n_visits.copy(), paid)
        same.looked_at = self.looked_at
        return same

    def merged(self, other: "StepCounts | None") -> Self | None:
        """New counts of both; None where one of them was not kept."""
        if other is None or (self.x_paid is None) != (other.x_paid is None):
            return None
        both = self.copy()
        both.looked_at = 0  # together they were never compared
        for key, n in other.n_next.items():
            both.n_next[key] = both.n_next.get(key, 0) + n
        both.n_visits += other.n_visits
        if both.x_paid is not None and other.x_paid is not None:
            both.x_paid += other.x_paid
        return both

    def without_rewards(self) -> Self:
        """The same without sums of rewards."""
        return type(self)(self.shape[2], self.n_next, self.n_visits, None)

    def arrays(self) -> dict[str, AnyArray]:
        """What is written to a file: keys in order and how often, visits, and sums of rewards."""
        held = np.array(sorted(self.n_next.items()), dtype=np.int64).reshape(-1, 2)
        paid = {} if self.x_paid is None else {"steps_paid": self.x_paid}
        looked_at = np.asarray(self.looked_at, dtype=np.int64)
        return {
            "steps_next": held,
            "steps_visits": self.n_visits,
            "steps_looked_at": looked_at,
            **paid,
        }

    @classmethod
    def from_arrays(
        cls, path: str | Path, arrays: Mapping[str, AnyArray], shape: tuple[int, int, int]
    ) -> Self | None:
        """Read what `arrays` returned, of counts with H, S and A; None: there is nothing."""
        if "steps_next" not in arrays:
            return None
        H, S, A = shape
        held, visits, paid, looked_at = (arrays.get(name) for name in IN_A_FILE)
        tables = [visits] if paid is None else [visits, paid]
        sound = (
            held is not None
            and looked_at is not None
            and looked_at.shape == ()
            and looked_at.dtype == np.int64
            and held.dtype == np.int64
            and held.ndim == 2
            and held.shape[1] == 2
            and bool((np.diff(held[:, 0]) > 0).all() and (held[:, 1] > 0).all())
            and (not len(held) or bool(held[0, 0] >= 0 and held[-1, 0] < (H - 1) * S * A * S))
            and all(
                table is not None and table.shape == (H, S * A) and table.dtype == np.int64
                for table in tables
            )
            and all(table is not None and bool((table >= 0).all()) for table in tables)
        )
        if sound and held is not None and visits is not None and looked_at is not None:
            counts = cls(
                S, dict(held.tolist()), visits.copy(), None if paid is None else paid.copy()
            )
            counts.looked_at = int(looked_at)
            compared = 0 <= counts.looked_at <= counts.total
            if compared and np.array_equal(counts.table.sum(axis=2), visits[:-1]):
                return counts
        raise InvalidFile(
            f"{path}: its counts by step are not as they were written. Restore a copy."
        )
