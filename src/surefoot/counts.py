"""Counts: everything a plan may depend on. It is the learner's whole state: saving it saves the learner."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Floats, Ints
from surefoot.checks import as_floats, freeze, require_finite, where
from surefoot.errors import InvalidCounts, InvalidEpisode
from surefoot.files import read_arrays, write_arrays
from surefoot.problem import Problem

LARGEST_COUNT = 2**53  # up to here a count is exact as a float64


@dataclass(frozen=True, init=False, eq=False)
class Episode:
    """What happened once: H+1 states, H actions, and the rewards if they were recorded."""

    states: Ints
    actions: Ints
    rewards: Floats | None = None

    def __init__(self, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike | None = None) -> None:
        """Lengths are checked here; whether the states exist is checked where it is counted."""
        s, a = _integers("states", states), _integers("actions", actions)
        if a.size == 0 or s.size != a.size + 1:
            raise InvalidEpisode(
                f"The episode has {s.size} states and {a.size} actions, expected H+1 states for H actions: "
                "the state before every action, and the one after the last."
            )
        x = None
        if rewards is not None:
            x = as_floats("rewards", rewards, InvalidEpisode)
            if x.shape != a.shape:
                raise InvalidEpisode(f"The episode has rewards of shape {x.shape}, expected one per action: {a.shape}.")
            require_finite("rewards", x, InvalidEpisode)
        freeze(self, states=s, actions=a, rewards=x)


class Counts:
    """How often each next state followed each pair: n_sas (H, S, A, S), or (1, S, A, S) when pooled over steps.

    `add` changes these counts in place (they are the state of a learner); everything else leaves them alone.
    """

    __slots__ = ("n_sas",)
    n_sas: Ints

    def __init__(self, n_sas: ArrayLike) -> None:
        """n_sas (H, S, A, S) counted per step, or (S, A, S) pooled over steps. The array is copied."""
        given = np.asarray(n_sas)
        if given.dtype.kind not in "fiu":
            raise InvalidCounts(f"n_sas has dtype {given.dtype}, expected whole numbers.")
        if given.ndim not in (3, 4) or 0 in given.shape or given.shape[-1] != given.shape[-3]:
            raise InvalidCounts(
                f"n_sas has shape {given.shape}, expected (H, S, A, S), or (S, A, S) pooled over steps."
            )
        if given.dtype.kind == "f":
            bad = np.argwhere(~(np.isfinite(given) & (given == np.floor(given))))
            if bad.size:
                raise InvalidCounts(f"{where('n_sas', bad[0])} is {given[tuple(bad[0])]}, expected a whole number.")
        bad = np.argwhere((given < 0) | (given > LARGEST_COUNT))
        if bad.size:
            raise InvalidCounts(f"{where('n_sas', bad[0])} is {given[tuple(bad[0])]}, expected a count in 0..2^53.")
        self.n_sas = np.array(given if given.ndim == 4 else given[None], dtype=np.int64, order="C")

    @classmethod
    def zeros(cls, problem: Problem, pooled: bool = False) -> Self:
        """No episode seen. `pooled` needs a problem that is stationary."""
        if pooled:
            require_stationary(problem)
        return cls(np.zeros((1 if pooled else problem.H, problem.S, problem.A, problem.S), dtype=np.int64))

    @property
    def pooled(self) -> bool:
        """One row for all steps? (With H = 1 there is no difference.)"""
        return len(self.n_sas) == 1

    @property
    def n_sa(self) -> Ints:
        """Visits per pair, (H or 1, S, A)."""
        return np.asarray(self.n_sas.sum(axis=-1))

    def add(self, episode: Episode) -> Self:
        """Count one episode, in place; returns these counts. An episode that does not fit leaves them unchanged."""
        rows, S, A, _ = self.n_sas.shape
        H = episode.actions.size
        if rows not in (1, H):
            raise InvalidEpisode(f"The episode has {H} steps, these counts have {rows}. Episodes must be complete.")
        for name, values, size in (("states", episode.states, S), ("actions", episode.actions, A)):
            bad = np.flatnonzero((values < 0) | (values >= size))
            if bad.size:
                raise InvalidEpisode(
                    f"{name}[{bad[0]}] is {values[bad[0]]}, expected one of 0..{size - 1}. The episode was not counted."
                )
        steps = np.arange(H) % rows
        np.add.at(self.n_sas, (steps, episode.states[:-1], episode.actions, episode.states[1:]), 1)
        return self

    def merge(self, other: "Counts") -> "Counts":
        """New counts of both. Sound only for complete logs: nothing selected by what came out."""
        if self.n_sas.shape != other.n_sas.shape:
            raise InvalidCounts(f"Counts of shapes {self.n_sas.shape} and {other.n_sas.shape} do not belong together.")
        return Counts(self.n_sas + other.n_sas)

    def pool(self) -> "Counts":
        """New counts with all steps added up: for stationary worlds only."""
        return Counts(self.n_sas.sum(axis=0))

    def copy(self) -> "Counts":
        """New counts with the same numbers."""
        return Counts(self.n_sas)

    def save(self, path: str | Path) -> None:
        """Write as .npz: plain arrays and a line of JSON, nothing that runs when it is read."""
        write_arrays(path, "counts", {"n_sas": self.n_sas})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; validated like any other input."""
        return cls(read_arrays(path, {"counts": ("n_sas",)})[1]["n_sas"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and np.array_equal(self.n_sas, other.n_sas)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        rows, S, A, _ = self.n_sas.shape
        over = "pooled over steps" if self.pooled else f"{rows} steps"
        return f"Counts({over}, S={S}, A={A}, transitions={int(self.n_sas.sum())})"


def require_stationary(problem: Problem) -> None:
    """Pooling counts over steps is sound only where the dynamics do not depend on the step."""
    if not problem.stationary:
        raise InvalidCounts(
            "Counts pooled over steps need dynamics that are the same at every step; this problem does not claim so. "
            "Use Problem(..., stationary=True) if they are, or count per step."
        )


def check_counts(counts: Counts, problem: Problem, pooled: bool) -> None:
    """Do these counts belong to this problem, and are they pooled or not as the learner expects?"""
    steps = 1 if pooled else problem.H
    expected = (steps, problem.S, problem.A, problem.S)
    if counts.n_sas.shape != expected:
        raise InvalidCounts(
            f"The counts have shape {counts.n_sas.shape}, expected {expected} for {problem} with pooled={pooled}. "
            "Use Counts.zeros(problem, pooled=...), or give the learner pooled=True for pooled counts."
        )


def _integers(name: str, values: ArrayLike) -> Ints:
    given = np.asarray(values)
    if given.ndim != 1:
        raise InvalidEpisode(f"{name} has shape {given.shape}, expected a plain list.")
    if given.size and given.dtype.kind not in "iu":
        raise InvalidEpisode(f"{name} has dtype {given.dtype}, expected integers: indices of {name}.")
    return given.astype(np.int64)
