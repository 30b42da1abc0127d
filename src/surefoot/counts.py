"""Counts: everything a plan may depend on. It is the learner's whole state: saving it saves the learner."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Floats, Ints
from surefoot.checks import (
    Record,
    as_array,
    as_floats,
    freeze,
    require_bool,
    require_finite,
    require_integer,
    where,
)
from surefoot.errors import InvalidCounts, InvalidEpisode, InvalidFile
from surefoot.files import read_arrays, write_arrays
from surefoot.problem import Problem

LARGEST_COUNT = 2**53  # up to here a count is exact as a float64


@dataclass(frozen=True, init=False, eq=False)
class Episode(Record):
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
        freeze(self, states=s, actions=a, rewards=None if x is None else x.copy())


class Counts:
    """How often each next state followed each pair: n_sas (H, S, A, S), or (1, S, A, S) when pooled over steps.

    `add` changes these counts in place (they are the state of a learner); everything else leaves them alone.
    """

    __slots__ = ("H", "n_sas", "pooled", "s1")
    n_sas: Ints
    pooled: bool  # one row for all steps?
    H: int | None  # steps in an episode; None where pooled counts were made without saying
    s1: int | None  # where episodes start; None where nobody said

    def __init__(self, n_sas: ArrayLike, H: int | None = None, s1: int | None = None) -> None:
        """n_sas (H, S, A, S) counted per step, or (S, A, S) pooled over the H steps of each episode. It is copied.

        With H > 1 given, (1, S, A, S) is pooled, too.
        """
        given = as_array("n_sas", n_sas, "fiu", "whole numbers", InvalidCounts)
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
        if H is not None:
            H = require_integer("H", H, 1, InvalidCounts)
            if given.ndim == 4 and given.shape[0] == 1:
                given = given if H == 1 else given[0]
            if given.ndim == 4 and given.shape[0] != H:
                raise InvalidCounts(f"H is {H}, but n_sas has {given.shape[0]} steps (shape {given.shape}).")
        self.pooled = given.ndim == 3
        self.H = H if self.pooled else given.shape[0]
        self.s1 = None if s1 is None else require_integer("s1", s1, 0, InvalidCounts)
        self.n_sas = np.array(given[None] if self.pooled else given, dtype=np.int64, order="C")

    @classmethod
    def zeros(cls, problem: Problem, pooled: bool = False) -> Self:
        """No episode seen. `pooled` needs a problem that is stationary."""
        if require_bool("pooled", pooled):
            require_stationary(problem)
        steps = () if pooled else (problem.H,)
        return cls(np.zeros((*steps, problem.S, problem.A, problem.S), dtype=np.int64), problem.H, problem.s1)

    @property
    def n_sa(self) -> Ints:
        """Visits per pair, (H or 1, S, A)."""
        return np.asarray(self.n_sas.sum(axis=-1))

    def add(self, episode: Episode) -> Self:
        """Count one episode, in place; returns these counts. An episode that does not fit leaves them unchanged."""
        if not isinstance(episode, Episode):
            raise InvalidEpisode(f"Expected sf.Episode(states, actions), found {type(episode).__name__}.")
        rows, S, A, _ = self.n_sas.shape
        H = episode.actions.size
        if self.H is not None and self.H != H:
            raise InvalidEpisode(f"The episode has {H} steps, these counts have {self.H}. Episodes must be complete.")
        for name, values, size in (("states", episode.states, S), ("actions", episode.actions, A)):
            bad = np.flatnonzero((values < 0) | (values >= size))
            if bad.size:
                raise InvalidEpisode(
                    f"{name}[{bad[0]}] is {values[bad[0]]}, expected one of 0..{size - 1}. The episode was not counted."
                )
        if self.s1 is not None and episode.states[0] != self.s1:
            raise InvalidEpisode(
                f"states[0] is {episode.states[0]}, expected s1 = {self.s1}. The episode was not counted: the promise "
                "is about episodes that start there."
            )
        steps = np.arange(H) % rows
        np.add.at(self.n_sas, (steps, episode.states[:-1], episode.actions, episode.states[1:]), 1)
        return self

    def merge(self, other: "Counts") -> "Counts":
        """New counts of both. Sound only for complete logs: nothing selected by what came out."""
        if (self.n_sas.shape, self.pooled, self.H) != (other.n_sas.shape, other.pooled, other.H):
            raise InvalidCounts(f"{self} and {other} do not belong together.")
        return self._like(self.n_sas + other.n_sas)

    def pool(self) -> "Counts":
        """New counts with all steps added up: for stationary worlds only."""
        return Counts(self.n_sas.sum(axis=0), self.H, self.s1)

    def copy(self) -> "Counts":
        """New counts with the same numbers."""
        return self._like(self.n_sas)

    def _like(self, n_sas: Ints) -> "Counts":
        return Counts(n_sas[0] if self.pooled else n_sas, self.H, self.s1)

    def save(self, path: str | Path) -> None:
        """Write as .npz: plain arrays and a line of JSON, nothing that runs when it is read."""
        known = {name: np.int64(value) for name, value in (("H", self.H), ("s1", self.s1)) if value is not None}
        write_arrays(path, "counts", {"n_sas": self.n_sas[0] if self.pooled else self.n_sas, **known})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; validated like any other input."""
        arrays = read_arrays(path, {"counts": ("n_sas",)})[1]
        known = {name: arrays[name] for name in ("H", "s1") if name in arrays}
        for name, value in known.items():
            if value.ndim != 0 or value.dtype.kind != "i":
                raise InvalidFile(f"{path}: {name} is not one whole number: the file is damaged. Restore a copy.")
        H, s1 = (int(known[name]) if name in known else None for name in ("H", "s1"))
        return cls(arrays["n_sas"], H, s1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return (self.pooled, self.H) == (other.pooled, other.H) and np.array_equal(self.n_sas, other.n_sas)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        _, S, A, _ = self.n_sas.shape
        over = "pooled over " * self.pooled + f"{'?' if self.H is None else self.H} steps"
        return f"Counts({over}, S={S}, A={A}, transitions={int(self.n_sas.sum())})"


def require_stationary(problem: Problem) -> None:
    """Pooling counts over steps is sound only where the dynamics do not depend on the step."""
    if not problem.stationary:
        raise InvalidCounts(
            "Counts pooled over steps need dynamics that are the same at every step; this problem does not claim so. "
            "If they are, use TabularMDP(P, r, H=...) with P of shape (S, A, S), or Problem(..., stationary=True)."
        )


def check_counts(counts: Counts, problem: Problem, pooled: bool) -> None:
    """Do these counts belong to this problem, and are they pooled or not as the learner expects?"""
    if not isinstance(counts, Counts):
        raise InvalidCounts(f"Expected Counts, found {type(counts).__name__}. Use sf.Counts(n_sas).")
    expected = (1 if pooled else problem.H, problem.S, problem.A, problem.S)
    if counts.n_sas.shape != expected or counts.pooled != pooled or counts.H not in (None, problem.H):
        raise InvalidCounts(
            f"Found {counts} of shape {counts.n_sas.shape}, expected {expected} for {problem} with pooled={pooled}. "
            "Use Counts.zeros(problem, pooled=...), or give the learner pooled=True for pooled counts."
        )


def _integers(name: str, values: ArrayLike) -> Ints:
    given = as_array(name, values, "iuf", f"integers: indices of {name}", InvalidEpisode)
    if given.ndim != 1:
        raise InvalidEpisode(f"{name} has shape {given.shape}, expected a plain list.")
    if given.size and given.dtype.kind == "f":  # an empty list is of floats, for numpy
        raise InvalidEpisode(f"{name} has dtype {given.dtype}, expected integers: indices of {name}.")
    return np.minimum(given, np.iinfo(np.int64).max).astype(np.int64)
