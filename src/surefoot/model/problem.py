"""Problem: everything an agent may know before the first episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import AnyArray, Bools, Floats, Indices
from surefoot.base.digest import digest, one_row
from surefoot.base.ranges import DeclaredRange
from surefoot.base.validation import (
    FrozenRecord,
    as_floats,
    freeze,
    mask_of,
    per_step,
    read_only,
    require_bool,
    require_integer,
    require_number,
    require_rewards,
    start_of,
)
from surefoot.errors import InvalidCounts, InvalidModel, InvalidSetting
from surefoot.model.given_rows import (
    as_lists,
    mask_from,
    paid_from,
    require_all_paid,
    require_small,
    written_out,
)
from surefoot.model.names import NO_NAMES, Name, Names, checked_names
from surefoot.model.origin import NUMBERS, UNKNOWN, Origin
from surefoot.model.rows import Rows
from surefoot.model.sameness import alike
from surefoot.model.units import (
    Rescaled,
    Units,
    per_step_to_user,
    require_units,
    rescaled_rewards,
    units_for,
    with_rescaled,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem(FrozenRecord):
    """What is known of an episodic task before it begins: sizes, rewards, start; no transition
    probabilities.

    - r: rewards (H, S, A), or (S, A) together with `H` when they are the same at every step, in
      `units`.
    - s1: the state in which every episode starts. Or `start`: the probabilities (S,) of several
      first states, or "unknown" where it is only known that first states are drawn independently
      from one distribution. Floors are then about the value averaged over the start.
    - units: the range of the rewards of a step, and what they are called: `Units(-5, 20,
      name="EUR")`; without it rewards lie in [0, 1]. Floors and values are in the same units, per
      episode.
    - r_next: instead of r, rewards (S, A, S) or (H, S, A, S) that depend on the next state.
    - unknown: where rewards are not known, only that they lie in the range and have a fixed mean
      for each pair: True (everywhere), or a mask (S, A) or (H, S, A). The entries of r there are
      ignored.
    - support: which next states are possible: a mask (S, A, S) or (H, S, A, S). None: all of them.
    - rewards_at_least: True where the rewards given are lower bounds of what is paid: lower values
      hold, upper ones do not. (A log says nothing about pairs that it never tried.)
    - stationary: the transition probabilities (and the means of unknown rewards) do not depend on
      the step. Only then may counts be pooled.
    - ended_state: the state in which an episode stays after an early end. It may be left out where
      just one state is never left and pays nothing (`absorbing_state`).
    - unseen_state: the state that stands for all states that nobody listed. It is never left and
      pays the least, so that lower values hold whatever is there.
    - state_names, action_names: what you call them, in the order of their numbers. They are for
      people: texts say them, and nothing else depends on them (`with_names`, `names`).

    For many states, `support` and `r_next` may be sparse matrices of scipy (S*A, S), one or a list
    of one per step. What is not stored in r_next pays 0. However they are given, they are kept as
    lists (`mask`, `paid`), and an array is made of them only where somebody asks for it
    (`support`, `r_next_at`).

    All of this is asserted by the user: certificates depend on it, and `plan.explain()` lists it
    beside them.
    """

    H: int
    S: int
    A: int
    # (H, S, A) in 0..1, read-only; 0 where rewards are unknown or depend on the next state
    r_rescaled: Floats
    start: Floats | None  # (S,) probabilities; None: unknown
    stationary: bool
    rewards_at_least: bool  # are the rewards given lower bounds of what is paid?
    units: Units  # the user's own
    # (H or 1, S*A), rescaled: what the kernels read; one row when rewards are the same at every
    # step
    r_rows: Floats
    unknown_rows: Bools | None  # (H or 1, S*A)
    # the possible next states; an empty list allows all of them. None: nothing is known
    mask: Rows | None
    paid: Rows | None  # rewards by next state, rescaled; None: they do not depend on it
    ended_state: int | None  # as given; `absorbing_state` also finds it
    unseen_state: int | None
    coding: str | None  # of a problem made of a log: which label each number stands for
    names: Names  # for people

    def __init__(
        self,
        r: "ArrayLike | Rescaled | None" = None,
        s1: int = 0,
        H: int | None = None,
        stationary: bool = False,
        units: Units = Units(),  # noqa: B008  (frozen)
        *,
        start: ArrayLike | str | None = None,
        r_next: "ArrayLike | Rescaled | None" = None,
        unknown: ArrayLike | bool | None = None,
        support: ArrayLike | Rows | None = None,
        rewards_at_least: bool = False,
        ended_state: int | None = None,
        unseen_state: int | None = None,
        state_names: Sequence[Name] | None = None,
        action_names: Sequence[Name] | None = None,
    ) -> None:
        """Validate the arguments once; nothing is repaired."""
        by_user = not any(isinstance(table, Rescaled) for table in (r, r_next))
        paid: Rows | None = None
        if r is None and as_lists(r_next):
            paid, H = paid_from(r_next, require_units(units), H)
            r, r_next = Rescaled(np.zeros((paid.S, paid.A))), None
        r, r_next = (
            rescaled_rewards(*given, units, unknown) for given in (("r", r), ("r_next", r_next))
        )
        if (r is None) == (r_next is None):
            raise InvalidModel(
                "Give the rewards either as r (they depend on state and action) or as r_next. "
                "Where they are unknown, give r=np.zeros((S, A)): only its shape is read."
            )
        if r_next is not None:
            given, steps = per_step(
                "r_next", as_floats("r_next", r_next, InvalidModel), ("S", "A", "S"), H
            )
            require_rewards("r_next", given, np.ndim(r_next))
            if given.shape[1] != given.shape[3]:
                raise InvalidModel(
                    f"r_next has shape {np.shape(r_next)}, expected rewards over as many next "
                    "states."
                )
            rewards: Floats = np.zeros(given.shape[:-1])
            # every state is listed, so that nothing is looser
            paid = Rows.of_keys(np.arange(given.size), given.shape[:3], given.reshape(-1).copy())
        else:
            table = as_floats("r", r, InvalidModel)
            rewards, steps = per_step("r", table, ("S", "A"), H)
            require_rewards("r", rewards, table.ndim)
        rows, S, A = rewards.shape
        unknown_mask = mask_of("unknown", unknown, (S, A), steps)
        mask = mask_from(support, S, A, steps)
        if paid is not None:
            if not rewards_at_least:
                require_all_paid(paid, mask, units)
            paid = written_out(paid)
        if unknown_mask is not None and paid is not None:
            raise InvalidModel(
                "Rewards are either unknown or given as r_next. Leave one of the two out."
            )
        stationary = require_bool("stationary", stationary)
        if stationary:
            of_mask = 1 if mask is None else mask.rows
            of_unknown = 1 if unknown_mask is None else len(unknown_mask)
            for name, found in (("support", of_mask), ("unknown", of_unknown)):
                if found > 1:
                    raise InvalidModel(
                        f"{name} has a mask for each step, but the problem is stationary: give one."
                    )
        if unknown_mask is not None:
            rewards = np.where(
                np.broadcast_to(unknown_mask, (max(rows, len(unknown_mask)), S, A)), 0.0, rewards
            )
            rows = len(rewards)
        r_rows = rewards.reshape(rows, S * A).copy()
        freeze(
            self,
            H=steps,
            S=S,
            A=A,
            r_rescaled=np.broadcast_to(r_rows.reshape(rows, S, A), (steps, S, A)),
            start=start_of(start, s1, S),
            stationary=stationary,
            rewards_at_least=require_bool("rewards_at_least", rewards_at_least),
            units=units_for(units, steps, by_user),
            r_rows=r_rows,
            unknown_rows=None
            if unknown_mask is None
            else unknown_mask.reshape(len(unknown_mask), S * A).copy(),
            mask=mask,
            paid=paid,
            ended_state=ended_state,
            unseen_state=unseen_state,
            coding=None,
            names=NO_NAMES
            if state_names is action_names is None
            else checked_names(state_names, action_names, S, A),
        )
        self._require_left_never("ended_state", ended_state)
        self._require_left_never("unseen_state", unseen_state)

    def _require_left_never(self, name: str, given: int | None) -> None:
        """Check that this state is never left and that what it pays is known: the least, where
        it is the unseen one.
        """
        if given is None:
            return
        s = require_integer(name, given, 0, InvalidModel)
        if s >= self.S:
            raise InvalidModel(f"{name} is {s}, expected a state in 0..{self.S - 1}.")
        if not self.never_left(s) or self.unknown[:, s].any():
            raise InvalidModel(
                f"{name} is {s}, but by `support` and `unknown` this state can be left, or what it "
                "pays is not known. Expected a mask that leads from there to itself alone, and a "
                "reward."
            )
        if name == "unseen_state" and not (
            self.rewards_at_least and (self.paid_in(s) == 0.0).all()
        ):
            raise InvalidModel(
                f"unseen_state is {s}, expected a state that pays 0 at every step, the least there "
                "is, together with rewards_at_least=True: nobody knows what is paid in states that "
                "were never seen."
            )

    def never_left(self, s: int) -> bool:
        """Does the mask allow no other next state?"""
        return self.mask is not None and s in self.mask.absorbing

    def paid_in(self, s: int) -> Floats:
        """What a state pays that is never left, for each step and action."""
        if not self.pays_by_next:
            return np.asarray(self.r_rescaled[:, s])
        steps, actions = np.ogrid[: self.H, : self.A]
        return self.reward_of(steps, np.full((1, 1), s), actions, np.full((1, 1), s))

    @classmethod
    def rescaled(
        cls,
        r: ArrayLike,
        units: Units,
        s1: int = 0,
        H: int | None = None,
        stationary: bool = False,
        *,
        start: ArrayLike | str | None = None,
        unknown: ArrayLike | bool | None = None,
        support: ArrayLike | None = None,
        rewards_at_least: bool = False,
    ) -> Self:
        """Make a problem of rewards that are rescaled to [0, 1] already, r' = (r - low) / (high
        - low).
        """
        known: dict[str, Any] = {"start": start, "unknown": unknown, "support": support}
        made = cls(
            Rescaled(r), s1, H, stationary, units, rewards_at_least=rewards_at_least, **known
        )
        units_for(units, made.H, by_user=True)
        return made

    @property
    def r(self) -> Floats:
        """Rewards (H, S, A) in the user's units; the lowest where they are unknown or depend on
        the next state.
        """
        return per_step_to_user(self.r_rescaled, self.units)

    @property
    def lowest(self) -> float:
        """The lowest return that an episode can have, in the user's units."""
        return self.units.to_user(0.0)

    @property
    def highest(self) -> float:
        """The highest return that an episode can have, in the user's units."""
        return self.units.to_user(float(self.units.steps or self.H))

    def level(self, value: object, name: str = "floor") -> float:
        """Return a floor (or another value of a whole episode) in the user's units, rescaled to
        0..H; refuse others.
        """
        possible = f"{self.lowest:g}..{self.units.amount(self.highest)}"
        number = require_number(name, value, f"a number in {possible}, what an episode can return")
        if not DeclaredRange(self.lowest, self.highest).admits(number):
            can = "reach" if number > self.highest else "miss"
            raise InvalidSetting(
                f"{name} is {number:g}, but returns lie in {possible} per episode: no policy can "
                f"{can} it. Choose one in this range, in the units of the rewards."
            )
        return min(max(self.units.from_user(number), 0.0), float(self.H))

    @cached_property
    def s1(self) -> int:
        """The state in which every episode starts, where there is just one."""
        if self.start is None or not self.one_start:
            raise InvalidModel(
                "Episodes of this problem start in several states; see problem.start."
            )
        return int(self.start.argmax())

    @cached_property
    def one_start(self) -> bool:
        """Does every episode start in the same state?"""
        return self.start is not None and int(np.count_nonzero(self.start)) == 1

    @property
    def plain(self) -> bool:
        """Is this the paper's setting: rewards known for each state and action, one start?"""
        return self.one_start and self.unknown_rows is None and not self.pays_by_next

    @property
    def knows_support(self) -> bool:
        """Is there a mask of possible next states?"""
        return self.mask is not None

    @cached_property
    def limits(self) -> Rows:
        """The mask; where nothing is known, one that says nothing."""
        return Rows.none(self.S, self.A) if self.mask is None else self.mask

    @property
    def pays_by_next(self) -> bool:
        """Do rewards depend on the next state?"""
        return self.paid is not None

    @cached_property
    def absorbing_state(self) -> int | None:
        """The absorbing state in which an episode remains after an early end: `ended_state`, or, if
        just one state can be it, that one: by the mask it leads nowhere else, and it pays nothing
        in the user's units.
        """
        if self.ended_state is not None:
            return self.ended_state
        if self.mask is None or not self.units.admits(0.0):
            return None
        nothing = float(self.units.of_a_step(np.zeros(())))
        found = [
            s
            for s in self.mask.absorbing.tolist()
            if s != self.unseen_state
            and not self.unknown[:, s].any()
            and bool((np.abs(self.paid_in(s) - nothing) < 1e-12).all())
        ]
        return found[0] if len(found) == 1 else None

    @property
    def support(self) -> Bools:
        """The mask of possible next states (H or 1, S, A, S); all True where nothing is known."""
        if self.mask is None:
            return np.broadcast_to(np.True_, (1, self.S, self.A, self.S))
        require_small("The mask", (*self.mask.shape, self.S), "problem.mask")
        return read_only(self.mask.dense_mask())

    def allows(self, h: int, s: int, a: int, s_next: int) -> bool:
        """Does the mask allow this transition?"""
        if self.mask is None:
            return True
        states = self.mask.of(int(self.mask.list_at(h, s * self.A + a)))
        return len(states) == 0 or s_next in states

    @property
    def unknown(self) -> Bools:
        """The mask of unknown rewards (H or 1, S, A); all False where all are known."""
        if self.unknown_rows is None:
            return np.zeros((1, self.S, self.A), dtype=np.bool_)
        return self.unknown_rows.reshape(-1, self.S, self.A)

    def support_at(self, h: int) -> Bools:
        """The mask of possible next states at step h, (S, A, S)."""
        support = self.support
        return np.asarray(support[h % len(support)])

    def unknown_at(self, h: int) -> Bools:
        """The mask of unknown rewards at step h, (S, A)."""
        unknown = self.unknown
        return np.asarray(unknown[h % len(unknown)])

    def r_next_at(self, h: int) -> Floats:
        """The rescaled rewards of step h by next state, (S, A, S), whether they depend on it or
        not, else 0.
        """
        shape = (self.S, self.A, self.S)
        if self.paid is None:
            return np.broadcast_to(self.r_rescaled[h][..., None], shape)
        require_small("r_next", shape, "problem.paid")
        return np.asarray(self.paid.at(h).dense()[0])

    def reward_of(self, h: Indices, s: Indices, a: Indices, s_next: Indices) -> Floats:
        """The rescaled reward that is known for this transition, or for each of these; 0 where
        it is unknown.
        """
        if self.paid is None:
            return np.asarray(self.r_rescaled[h, s, a])
        return self.paid.number(self.paid.list_at(h, s * self.A + a), s_next)

    def reward_unknown(self, h: Indices, s: Indices, a: Indices) -> Bools:
        """Is the reward of this pair unknown at this step? Or of each of these pairs?"""
        unknown = self.unknown
        return np.asarray(unknown[h % len(unknown), s, a])

    def forget(
        self, *, rewards: bool = False, start: bool = False, support: bool = False
    ) -> "Problem":
        """The same task for an agent that knows less: no rewards, no start distribution, no
        support.

        A problem that was stationary stays so without its rewards only if their table was the same
        at every step: that the dynamics do not depend on the step says nothing about the means of
        unknown rewards. That a common start, which was added before several first states, pays
        nothing stays known.
        """
        known = self.arguments()
        if rewards:
            same = bool((self.r_rows == self.r_rows[:1]).all())
            if self.paid is not None:
                same = self.paid.same_at_every_step
            known["stationary"] = self.stationary and same
            unknown = np.ones((self.S, self.A), dtype=np.bool_)
            if 0 < self.units.steps < self.H:
                unknown[self.s1] = False
            known |= {
                "r": np.zeros((self.S, self.A)),
                "r_next": None,
                "unknown": unknown,
                "rewards_at_least": False,
            }
            known |= {"ended_state": None, "unseen_state": None}
        if start:
            known |= {"start": "unknown"}
        if support:
            known |= {"support": None, "ended_state": None, "unseen_state": None}
        return _rebuilt(known, self.coding, self.names)

    def with_coding(self, coding: str, names: Names | None = None) -> "Problem":
        """The same problem, whose numbers of states and actions stand for the labels of this
        codebook: of a log, its `log.origin.coding`. `names` are these labels for people:
        `log.codebook.names`.
        """
        return _rebuilt(self.arguments(), coding, self.names if names is None else names)

    def with_names(
        self, states: Sequence[Name] | None = None, actions: Sequence[Name] | None = None
    ) -> "Problem":
        """The same problem with these names of states and actions; those that are left out stay
        as they are.
        """
        names = checked_names(states, actions, self.S, self.A).or_else(self.names)
        return _rebuilt(self.arguments(), self.coding, names)

    def same_as(self, other: "Problem") -> bool:
        """Are both problems equal, to the last number?"""
        mine, its = self.arguments(), other.arguments()
        return all(alike(mine[word], its[word]) for word in mine)

    @property
    def fingerprint(self) -> str:
        """A hash that identifies the problem, to the last number."""
        return digest(self.arguments())

    @property
    def settings(self) -> dict[str, Any]:
        """What a digest of the problem is made of. Names and coding are no part of it."""
        return self.arguments()

    @cached_property
    def origin(self) -> Origin:
        """What counts of this problem are evidence about."""
        start = (
            UNKNOWN
            if self.start is None
            else f"state {self.s1}"
            if self.one_start
            else digest(self.start)
        )
        if self.unknown_rows is not None and bool(self.unknown_rows.all()):
            rewards = UNKNOWN
        else:
            paid = self.paid
            by_next = [] if paid is None else [*paid[:3], np.array([paid.elsewhere])]
            rewards = digest([one_row(rows) for rows in (self.r_rows, *by_next, self.unknown_rows)])
        return Origin(
            sizes=f"{self.S} states and {self.A} actions",
            horizon=f"{self.H} steps",
            coding=NUMBERS if self.coding is None else self.coding,
            start=start,
            units=self.units.range_text,
            rewards=rewards,
        )

    def arguments(self) -> dict[str, Any]:
        """The arguments that build an equal problem; rewards are rescaled."""

        def given(rows: AnyArray | None, *shape: int) -> AnyArray | None:
            if rows is None:
                return None
            return rows.reshape(shape) if len(rows) == 1 else rows.reshape(len(rows), *shape)

        S, A = self.S, self.A
        return {
            "r": None if self.pays_by_next else given(self.r_rows, S, A),
            "H": self.H,
            "stationary": self.stationary,
            "units": self.units,
            "rewards_at_least": self.rewards_at_least,
            "start": "unknown" if self.start is None else self.start,
            "r_next": self.paid,
            "unknown": given(self.unknown_rows, S, A),
            "support": self.mask,
            "ended_state": self.ended_state,
            "unseen_state": self.unseen_state,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.arguments(), self.coding, self.names)

    def __repr__(self) -> str:
        kind = "stationary" if self.stationary else "step-dependent"
        start = (
            f"s1={self.s1}"
            if self.one_start
            else "start unknown"
            if self.start is None
            else "several starts"
        )
        more = [
            word
            for word, known in (
                ("rewards by next state", self.pays_by_next),
                ("rewards unknown", self.unknown_rows is not None),
                ("support known", self.knows_support),
                ("rewards at least as given", self.rewards_at_least),
            )
            if known
        ]
        if self.units.own or self.units.name:
            more.append(f"returns {self.lowest:g}..{self.units.amount(self.highest)}")
        return f"Problem({', '.join([f'S={self.S}, A={self.A}, H={self.H}', start, kind, *more])})"


def require_problem(problem: object) -> None:
    """Refuse what is not a Problem, such as a world."""
    if not isinstance(problem, Problem):
        raise InvalidCounts(
            f"Expected a Problem, found {type(problem).__name__}. Of a world that is world.problem."
        )


def _rebuilt(
    arguments: dict[str, Any], coding: str | None = None, names: Names = NO_NAMES
) -> Problem:
    """Build a copy (see `Problem.__reduce__`)."""
    made = Problem(**with_rescaled(arguments))
    freeze(made, coding=coding, names=names)
    return made
