"""What was seen at each step, beside counts that the steps share: the evidence of whether they are alike."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np

from surefoot.base.arrays import AnyArray, Bools, Floats, Ints
from surefoot.errors import InvalidFile

MOST_NUMBERS = 10**6  # H * S * A * S: above, steps are not kept apart
IN_A_FILE = {"steps_next": "n_next", "steps_visits": "n_visits", "steps_paid": "x_paid"}


class StepCounts:
    """Counts by step of pooled counts. The next state of step H is not counted, the reward of step H is."""

    __slots__ = ("changed", "log_E", "n_next", "n_visits", "x_paid")
    n_next: Ints  # (H-1, S*A, S)
    n_visits: Ints  # (H, S*A)
    x_paid: Ints | None  # (H, S*A) sums of rewards, in units of 2^-20; None where rewards are known
    changed: Bools  # (S*A,) the pairs that were seen since their evidence was computed
    log_E: Floats  # (S*A,) that evidence (bounds/alike.py)

    def __init__(self, n_next: Ints, n_visits: Ints, x_paid: Ints | None) -> None:
        """Take these arrays; nothing was computed from them yet."""
        self.n_next, self.n_visits, self.x_paid = n_next, n_visits, x_paid
        self.changed, self.log_E = n_visits.sum(axis=0) > 0, np.zeros(n_visits.shape[1])

    @classmethod
    def zeros(cls, H: int, S: int, A: int, rewards: bool) -> Self | None:
        """The counts of no episodes; None where nothing is shared, or where it would take too many numbers."""
        if H == 1 or H * S * A * S > MOST_NUMBERS:
            return None
        n_next, n_visits = np.zeros((H - 1, S * A, S), dtype=np.int64), np.zeros((H, S * A), dtype=np.int64)
        return cls(n_next, n_visits, np.zeros_like(n_visits) if rewards else None)

    @property
    def total(self) -> int:
        """The number of visits."""
        return int(self.n_visits.sum())

    def add(self, pairs: Ints, after: Ints, paid: Ints | None) -> None:
        """Count one episode: its H pairs s*A + a, the states after them, and what they paid, in 2^-20."""
        H = len(pairs)
        step = np.arange(H)
        self.n_next[step[:-1], pairs[:-1], after[:-1]] += 1
        self.n_visits[step, pairs] += 1
        if self.x_paid is not None and paid is not None:
            self.x_paid[step, pairs] += paid
        self.changed[pairs] = True

    def copy(self) -> Self:
        """New counts with the same numbers."""
        same = type(self)(self.n_next.copy(), self.n_visits.copy(), None if self.x_paid is None else self.x_paid.copy())
        same.changed, same.log_E = self.changed.copy(), self.log_E.copy()
        return same

    def merged(self, other: "StepCounts | None") -> Self | None:
        """New counts of both; None where one of them was not kept."""
        if other is None or (self.x_paid is None) != (other.x_paid is None):
            return None
        paid = None if self.x_paid is None or other.x_paid is None else self.x_paid + other.x_paid
        return type(self)(self.n_next + other.n_next, self.n_visits + other.n_visits, paid)

    def without_rewards(self) -> Self:
        """The same without sums of rewards."""
        return type(self)(self.n_next, self.n_visits, None)

    def arrays(self) -> dict[str, AnyArray]:
        """What is written to a file."""
        held = {key: getattr(self, name) for key, name in IN_A_FILE.items()}
        return {key: array for key, array in held.items() if array is not None}

    @classmethod
    def from_arrays(cls, path: str | Path, arrays: Mapping[str, AnyArray], shape: tuple[int, int, int]) -> Self | None:
        """Read what `arrays` returned, of counts with H, S and A; None: there is nothing."""
        if "steps_next" not in arrays:
            return None
        H, S, A = shape
        shapes = {"steps_next": (H - 1, S * A, S), "steps_visits": (H, S * A), "steps_paid": (H, S * A)}
        for key, expected in shapes.items():
            if key == "steps_paid" and key not in arrays:
                continue
            found = arrays.get(key, np.zeros(0))
            if found.shape != expected or found.dtype != np.int64 or (found < 0).any():
                raise InvalidFile(f"{path}: {key} is not as it was written: the file is damaged. Restore a copy.")
        if (arrays["steps_next"].sum(axis=2) != arrays["steps_visits"][:-1]).any():
            raise InvalidFile(f"{path}: steps_next and steps_visits differ: the file is damaged. Restore a copy.")
        return cls(arrays["steps_next"], arrays["steps_visits"], arrays.get("steps_paid"))
