"""Episode: what happened once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import (
    FrozenRecord,
    as_array,
    as_floats,
    freeze,
    require_bool,
    require_finite,
    require_number,
)
from surefoot.errors import InvalidCounts, InvalidEpisode
from surefoot.task.problem import Problem

ENTRY = "the certified value of a policy, between 0 and the number of steps"


@dataclass(frozen=True, init=False, eq=False)
class Episode(FrozenRecord):
    """What happened once: H+1 states, H actions, and the rewards in [0, 1] if they were recorded.

    `baseline` marks an episode that was played by the baseline from its first step to its last, and that was destined
    to be BEFORE it began (a plan's `draw` says so): its return is then evidence of the baseline's value. `entry` is
    the value that was certified for its policy before it began, where the learner keeps a ledger of those.
    """

    states: Ints
    actions: Ints
    rewards: Floats | None = None
    baseline: bool = False
    entry: float | None = None

    def __init__(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike | None = None,
        baseline: bool = False,
        entry: float | None = None,
    ) -> None:
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
        marked = require_bool("baseline", baseline)
        if entry is not None and not 0.0 <= require_number("entry", entry, ENTRY, InvalidEpisode) <= a.size:
            raise InvalidEpisode(f"entry is {entry:g}, expected {ENTRY}.")
        freeze(self, states=s, actions=a, rewards=None if x is None else x.copy(), baseline=marked, entry=entry)

    @classmethod
    def of(
        cls,
        problem: Problem,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike | None = None,
        baseline: bool = False,
        entry: float | None = None,
    ) -> "Episode":
        """An episode as a learner of this problem counts it: rewards are in the user's units, and read where unknown.

        Where the problem knows the reward, what it knows is taken: a certificate speaks of the declared means.
        """
        paid = cls(states, actions, rewards).rewards
        if paid is not None and problem.unknown_rows is not None:
            units = problem.units
            bad = [i for i, x in enumerate(paid) if not units.admits(float(x))]
            if bad:
                raise InvalidEpisode(
                    f"rewards[{bad[0]}] is {paid[bad[0]]:g}, outside the declared range ({units.low:g}, "
                    f"{units.high:g}). Bounds for a narrower range prove nothing: declare a wider one."
                )
            paid = units.of_a_step(paid)
        return cls(states, actions, paid).as_learnt(problem, baseline, entry)

    def as_learnt(self, problem: Problem, baseline: bool, entry: float | None = None) -> "Episode":
        """The same episode with the rewards that a learner of this problem goes by, in [0, 1]; its mark and entry."""
        require_problem(problem)
        for name, values, size in (("states", self.states, problem.S), ("actions", self.actions, problem.A)):
            require_indices(name, values, size)
        h = np.arange(self.actions.size)
        if h.size != problem.H:
            raise InvalidEpisode(f"The episode has {h.size} steps, the problem has {problem.H}. It must be complete.")
        s, a, s_next = self.states[:-1], self.actions, self.states[1:]
        learnt = problem.reward_of(h, s, a, s_next)
        if problem.unknown_rows is not None:
            unknown = problem.reward_unknown(h, s, a)
            if self.rewards is None and unknown.any():
                raise InvalidEpisode("This problem's rewards are unknown: an episode must bring the rewards seen.")
            learnt = np.where(unknown, 0.0 if self.rewards is None else self.rewards, learnt)
        return Episode(self.states, self.actions, learnt, baseline, entry)


def require_problem(problem: object) -> None:
    """What it is about must be a Problem, not a world."""
    if not isinstance(problem, Problem):
        raise InvalidCounts(f"Expected a Problem, found {type(problem).__name__}. Of a world that is world.problem.")


def require_indices(name: str, values: Ints, size: int) -> None:
    """All of them numbers of states or actions that there are."""
    bad = np.flatnonzero((values < 0) | (values >= size))
    if bad.size:
        raise InvalidEpisode(
            f"{name}[{bad[0]}] is {values[bad[0]]}, expected one of 0..{size - 1}. The episode was not counted."
        )


def _integers(name: str, values: ArrayLike) -> Ints:
    given = as_array(name, values, "iuf", f"integers: indices of {name}", InvalidEpisode)
    if given.ndim != 1:
        raise InvalidEpisode(f"{name} has shape {given.shape}, expected a plain list.")
    if given.size and given.dtype.kind == "f":  # an empty list is of floats, for numpy
        raise InvalidEpisode(f"{name} has dtype {given.dtype}, expected integers: indices of {name}.")
    return np.minimum(given, np.iinfo(np.int64).max).astype(np.int64)
