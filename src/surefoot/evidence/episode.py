"""Episode: what happened once."""

import operator
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
from surefoot.model.origin import Origin
from surefoot.model.problem import Problem, require_problem
from surefoot.model.units import Units, per_step_to_user

ENTRY = "the certified value of a policy, rescaled to between 0 and the number of steps"


class BaselineLabel(NamedTuple):
    """Whose baseline played an episode, and the range of its returns: as a text, what
    `plan.draw` gives.
    """

    fingerprint: str
    # the least return and the span, in 2^-20; None: returns are not evidence
    returns: tuple[int, int] | None = None

    def __str__(self) -> str:
        return (
            self.fingerprint
            if self.returns is None
            else "{} {}+{}".format(self.fingerprint, *self.returns)
        )

    @classmethod
    def read(cls, text: str) -> "BaselineLabel":
        """Read the text of a label; one of any other form is a fingerprint as a whole."""
        found = re.fullmatch(r"(\S+) (-?\d{1,18})\+(\d{1,18})", text)
        return cls(text) if found is None else cls(found[1], (int(found[2]), int(found[3])))


@dataclass(frozen=True, init=False, eq=False)
class Episode(FrozenRecord):
    """What happened once: H+1 states, H actions, and the rewards in the user's units if they were
    recorded.

    `Episode.of(problem, ...)` also works out what an agent of that problem counts, and remembers
    which problem it was. States, actions or rewards that cannot be are refused where the episode is
    counted, because the refusal leaves its mark there: to drop an episode selects the data. The
    rewards of a bare `Episode(...)` are converted where it is counted, by
    the units of the counts: [0, 1] where these say nothing else. There it is refused if its rewards
    all lie in 0..1 and the units do not: they look rescaled.

    `baseline` says that the baseline played the episode from its first step to its last, if that
    was decided BEFORE it began: its return is then evidence of the baseline's value. A plan's
    `draw` gives the fingerprint of the baseline; True leaves open whose baseline it was, and such
    returns are no evidence. `entry` is the value that was certified for its policy before it began,
    where the agent keeps an account of those values.
    """

    states: Ints
    actions: Ints
    rewards: Floats | None = None
    baseline: bool | str = False
    entry: float | None = None
    # the rewards that an agent learns from, in [0, 1]
    learnt: Floats | None = field(default=None, repr=False)
    # of the problem for which they were worked out
    origin: Origin | None = field(default=None, repr=False)
    # why it cannot be; then there are neither states nor actions
    refusal: InvalidEpisode | None = field(default=None, repr=False)

    def __init__(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike | None = None,
        baseline: bool | str = False,
        entry: float | None = None,
    ) -> None:
        """Check lengths and numbers; whether the states exist is checked where the episode is
        counted.
        """
        try:
            s, a, x = _sequences(states, actions, rewards)
        except InvalidEpisode as refusal:
            freeze(self, refusal=refusal)
            return
        by_baseline = baseline if isinstance(baseline, str) else require_bool("baseline", baseline)
        if (
            entry is not None
            and not 0.0 <= require_number("entry", entry, ENTRY, InvalidEpisode) <= a.size
        ):
            raise InvalidEpisode(f"entry is {entry:g}, expected {ENTRY}.")
        freeze(
            self,
            states=s,
            actions=a,
            rewards=None if x is None else x.copy(),
            baseline=by_baseline,
            entry=entry,
        )

    @classmethod
    def of(
        cls,
        problem: Problem,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike | None = None,
        baseline: bool | str = False,
        entry: float | None = None,
    ) -> "Episode":
        """An episode as an agent counts it for this problem. Rewards are given in the user's units.

        They are read only where the problem does not know them: a certificate is about the declared
        means.
        """
        require_problem(problem)
        return Episode(states, actions, rewards, baseline, entry)._learnt_for(problem)

    def __getattr__(self, name: str) -> Any:
        """Say why there are no states and no actions, where the episode was refused."""
        refusal = self.__dict__.get("refusal")
        if refusal is None or name not in ("states", "actions"):
            raise AttributeError(f"An episode has no {name}.")
        raise refusal

    def __repr__(self) -> str:
        if self.refusal is not None:
            return f"Episode(REFUSED: {self.refusal})"
        return f"Episode(states={self.states}, actions={self.actions}, rewards={self.rewards})"

    def require_sound(self) -> "Episode":
        """Return the episode; refuse one that cannot be."""
        if self.refusal is not None:
            raise self.refusal
        return self

    @classmethod
    def paying(
        cls, units: Units, states: ArrayLike, actions: ArrayLike, learnt: ArrayLike
    ) -> "Episode":
        """An episode of which rewards are known in [0, 1] before they are known in the user's
        units.
        """
        x = np.asarray(learnt, dtype=np.float64)
        episode = Episode(states, actions, per_step_to_user(x, units))
        freeze(episode, learnt=x, origin=Origin(units=units.range_text))
        return episode

    def as_learnt(
        self, problem: Problem, baseline: bool | str, entry: float | None = None
    ) -> "Episode":
        """The same episode with the rewards that an agent counts for this problem; with these
        flags.
        """
        require_problem(problem)
        made_for = (
            self.origin
            if self.origin is not None and self.origin.rewards is not None
            else problem.origin
        )
        if made_for.differing(problem.origin):
            differ = ", ".join(made_for.differing(problem.origin))
            raise InvalidEpisode(
                f"The episode was made by Episode.of for another problem ({differ}). Make it anew "
                "from what was seen."
            )
        episode = Episode(self.states, self.actions, self.rewards, baseline, entry)
        freeze(episode, learnt=self.learnt)
        return episode._learnt_for(problem)

    def unlabelled(self) -> "Episode":
        """The same episode, of which nobody says who played it: as a log has it."""
        episode = Episode(self.states, self.actions, self.rewards)
        freeze(episode, learnt=self.learnt, origin=self.origin)
        return episode

    def _learnt_for(self, problem: Problem) -> "Episode":
        """Work out, in place, what an agent of this problem learns from it, and what that is in
        the user's units.
        """
        try:
            self._learn_for(problem)
        except InvalidEpisode as refusal:
            refused = object.__new__(Episode)
            freeze(refused, refusal=refusal)
            return refused
        return self

    def _learn_for(self, problem: Problem) -> None:
        """Set what is learnt."""
        units, given, paid = problem.units, self.rewards, self.learnt
        if paid is None and given is not None and problem.unknown_rows is not None:
            paid = rescaled(given, units)
        learnt = _learnt_rewards(problem, self.states, self.actions, paid)
        rewards = per_step_to_user(learnt, units)
        if given is not None and problem.unknown_rows is not None:
            seen = problem.reward_unknown(
                np.arange(self.actions.size), self.states[:-1], self.actions
            )
            rewards = np.where(seen, given, rewards)
        freeze(self, rewards=rewards, learnt=learnt, origin=problem.origin)


def rescaled(rewards: Floats, units: Units) -> Floats:
    """Return rewards of single steps in [0, 1]; refuse those outside the declared range."""
    bad = np.flatnonzero(units.range.outside(rewards))
    if bad.size:
        raise InvalidEpisode(
            f"rewards[{bad[0]}] is {rewards[bad[0]]:g}, outside the declared range ({units.low:g}, "
            f"{units.high:g}). The episode was not counted. To leave it out because of its reward "
            "would select the data: begin with new counts and a wider range."
        )
    return units.of_a_step(rewards)


def rescaled_bare(rewards: Floats, units: Units) -> Floats:
    """Return the rewards of a bare episode in [0, 1]; refuse those that look rescaled already."""
    x = rescaled(rewards, units)
    if (
        not units.inside_0_1
        and (rewards >= 0.0).all()
        and (rewards <= 1.0).all()
        and not np.array_equal(x, rewards)
    ):
        raise InvalidEpisode(
            "Every reward of this bare episode lies in 0..1, but the units are "
            f"{units.low:g}..{units.high:g}. The episode was not counted. If the rewards are in "
            "your units, build all episodes with sf.Episode.of(problem, states, actions, rewards). "
            "If they were rescaled to 0..1 before, put them into your units first: "
            "units.step_to_user(rewards)."
        )
    return x


def _sequences(
    states: ArrayLike, actions: ArrayLike, rewards: ArrayLike | None
) -> tuple[Ints, Ints, Floats | None]:
    """Return states, actions and rewards as arrays whose lengths fit; refuse others."""
    s, a = _integers("states", states), _integers("actions", actions)
    if a.size == 0 or s.size != a.size + 1:
        raise InvalidEpisode(
            f"The episode has {s.size} states and {a.size} actions, expected H+1 states for H "
            "actions: the state before every action, and the one after the last."
        )
    if rewards is None:
        return s, a, None
    x = as_floats("rewards", rewards, InvalidEpisode)
    if x.shape != a.shape:
        raise InvalidEpisode(
            f"The episode has rewards of shape {x.shape}, expected one per action: {a.shape}."
        )
    require_finite("rewards", x, InvalidEpisode)
    return s, a, x


def _learnt_rewards(problem: Problem, states: Ints, actions: Ints, paid: Floats | None) -> Floats:
    """Return the rewards in [0, 1] that an agent of this problem learns from: those it knows, or
    those paid.
    """
    for name, values, size in (("states", states, problem.S), ("actions", actions, problem.A)):
        require_indices(name, values, size)
    h = np.arange(actions.size)
    if h.size != problem.H:
        raise InvalidEpisode(
            f"The episode has {h.size} steps, the problem has {problem.H}. It must be complete."
        )
    known = problem.reward_of(h, states[:-1], actions, states[1:])
    if problem.unknown_rows is None:
        return known
    unknown = problem.reward_unknown(h, states[:-1], actions)
    if paid is None and unknown.any():
        raise InvalidEpisode(
            "This problem's rewards are unknown: an episode must bring the rewards seen."
        )
    return np.where(unknown, 0.0 if paid is None else paid, known)


def require_indices(name: str, values: Ints, size: int) -> None:
    """Refuse numbers of states or actions that do not exist."""
    bad = np.flatnonzero((values < 0) | (values >= size))
    if bad.size:
        raise InvalidEpisode(
            f"{name}[{bad[0]}] is {values[bad[0]]}, expected one of 0..{size - 1}. The episode was "
            "not counted."
        )


def require_state(given: object, S: int, name: str) -> int:
    """Return a state's number, which may be of any integer type."""
    try:
        s = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        s = -1
    if not 0 <= s < S:
        raise InvalidEpisode(f"{name} is {given}, expected one of 0..{S - 1}.")
    return s


def _integers(name: str, values: ArrayLike) -> Ints:
    given = as_array(name, values, "iuf", f"integers: indices of {name}", InvalidEpisode)
    if given.ndim != 1:
        raise InvalidEpisode(f"{name} has shape {given.shape}, expected a plain list.")
    if given.size and given.dtype.kind == "f":  # numpy makes an empty list an array of floats
        raise InvalidEpisode(
            f"{name} has dtype {given.dtype}, expected integers: indices of {name}."
        )
    return np.minimum(given, np.iinfo(np.int64).max).astype(np.int64)
