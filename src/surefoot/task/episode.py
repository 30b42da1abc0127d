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
from surefoot.errors import InvalidEpisode
from surefoot.task.problem import Problem, require_problem

ENTRY = "the certified value of a policy, between 0 and the number of steps"


@dataclass(frozen=True, init=False, eq=False)
class Episode(FrozenRecord):
    """What happened once: H+1 states, H actions, and the rewards in [0, 1] if they were recorded.

    `baseline` is True for an episode that the baseline played from its first step to its last, if that was decided
    BEFORE it began (a plan's `draw` says so): its return is then evidence of the baseline's value. `entry` is the value
    that was certified for its policy before it began, where the agent keeps an account of those values.
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
        """Check lengths and numbers; whether the states exist is checked where the episode is counted."""
        s, a, x = _sequences(states, actions, rewards)
        by_baseline = require_bool("baseline", baseline)
        if entry is not None and not 0.0 <= require_number("entry", entry, ENTRY, InvalidEpisode) <= a.size:
            raise InvalidEpisode(f"entry is {entry:g}, expected {ENTRY}.")
        freeze(self, states=s, actions=a, rewards=None if x is None else x.copy(), baseline=by_baseline, entry=entry)

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
        """An episode as an agent counts it for this problem. Rewards are given in the user's units.

        They are read only where the problem does not know them: a certificate is about the declared means.
        """
        s, a, paid = _sequences(states, actions, rewards)
        require_problem(problem)
        if paid is not None and problem.unknown_rows is not None:
            units = problem.units
            bad = [i for i, x in enumerate(paid) if not units.admits(float(x))]
            if bad:
                raise InvalidEpisode(
                    f"rewards[{bad[0]}] is {paid[bad[0]]:g}, outside the declared range ({units.low:g}, "
                    f"{units.high:g}). Bounds for a narrower range prove nothing: declare a wider one."
                )
            paid = units.of_a_step(paid)
        return Episode(s, a, _learnt_rewards(problem, s, a, paid), baseline, entry)

    def as_learnt(self, problem: Problem, baseline: bool, entry: float | None = None) -> "Episode":
        """The same episode with the rewards that an agent counts for this problem, in [0, 1]; with these flags."""
        require_problem(problem)
        learnt = _learnt_rewards(problem, self.states, self.actions, self.rewards)
        return Episode(self.states, self.actions, learnt, baseline, entry)


def _sequences(states: ArrayLike, actions: ArrayLike, rewards: ArrayLike | None) -> tuple[Ints, Ints, Floats | None]:
    """Return states, actions and rewards as arrays whose lengths fit; refuse others."""
    s, a = _integers("states", states), _integers("actions", actions)
    if a.size == 0 or s.size != a.size + 1:
        raise InvalidEpisode(
            f"The episode has {s.size} states and {a.size} actions, expected H+1 states for H actions: "
            "the state before every action, and the one after the last."
        )
    if rewards is None:
        return s, a, None
    x = as_floats("rewards", rewards, InvalidEpisode)
    if x.shape != a.shape:
        raise InvalidEpisode(f"The episode has rewards of shape {x.shape}, expected one per action: {a.shape}.")
    require_finite("rewards", x, InvalidEpisode)
    return s, a, x


def _learnt_rewards(problem: Problem, states: Ints, actions: Ints, paid: Floats | None) -> Floats:
    """Return the rewards in [0, 1] that an agent of this problem learns from: those it knows, or those paid."""
    for name, values, size in (("states", states, problem.S), ("actions", actions, problem.A)):
        require_indices(name, values, size)
    h = np.arange(actions.size)
    if h.size != problem.H:
        raise InvalidEpisode(f"The episode has {h.size} steps, the problem has {problem.H}. It must be complete.")
    known = problem.reward_of(h, states[:-1], actions, states[1:])
    if problem.unknown_rows is None:
        return known
    unknown = problem.reward_unknown(h, states[:-1], actions)
    if paid is None and unknown.any():
        raise InvalidEpisode("This problem's rewards are unknown: an episode must bring the rewards seen.")
    return np.where(unknown, 0.0 if paid is None else paid, known)


def require_indices(name: str, values: Ints, size: int) -> None:
    """Refuse numbers of states or actions that do not exist."""
    bad = np.flatnonzero((values < 0) | (values >= size))
    if bad.size:
        raise InvalidEpisode(
            f"{name}[{bad[0]}] is {values[bad[0]]}, expected one of 0..{size - 1}. The episode was not counted."
        )


def _integers(name: str, values: ArrayLike) -> Ints:
    given = as_array(name, values, "iuf", f"integers: indices of {name}", InvalidEpisode)
    if given.ndim != 1:
        raise InvalidEpisode(f"{name} has shape {given.shape}, expected a plain list.")
    if given.size and given.dtype.kind == "f":  # numpy makes an empty list an array of floats
        raise InvalidEpisode(f"{name} has dtype {given.dtype}, expected integers: indices of {name}.")
    return np.minimum(given, np.iinfo(np.int64).max).astype(np.int64)
