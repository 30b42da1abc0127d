"""Problem: everything an agent may know before the first episode."""

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.aliases import alias
from surefoot.base.arrays import AnyArray, Bools, Floats, Indices
from surefoot.base.validation import (
    FrozenRecord,
    as_array,
    as_floats,
    freeze,
    require_bool,
    require_distributions,
    require_finite,
    require_integer,
    require_number,
    where,
)
from surefoot.errors import InvalidCounts, InvalidModel, SurefootError

LONGEST = 10**6  # steps in an episode; more must be a typo


@dataclass(frozen=True)
class Units:
    """The user's own units: rewards in [low, high] were rescaled to [0, 1] at each of `steps` steps."""

    low: float = 0.0
    high: float = 1.0
    steps: int = 0  # 0: as many as the problem has

    def __post_init__(self) -> None:
        low, high = (require_number("units", x, "two numbers, low < high", InvalidModel) for x in (self.low, self.high))
        if not -math.inf < low < high < math.inf:
            raise InvalidModel(f"units are ({low:g}, {high:g}), expected the lowest and the highest reward of a step.")
        freeze(self, low=low, high=high, steps=require_integer("steps", self.steps, 0, InvalidModel))

    @property
    def scale(self) -> float:
        """What one unit of this library is worth in the user's units."""
        return self.high - self.low

    @property
    def identity(self) -> str:
        """The text by which units are recognised in saved files, whatever `repr` says."""
        return f"Units(low={self.low!r}, high={self.high!r}, steps={self.steps!r})"

    @property
    def own(self) -> bool:
        """Do the user's units differ from this library's?"""
        return self.scale != 1.0 or self.steps * self.low != 0.0

    def to_user(self, value: float) -> float:
        """A value of this library in the user's units."""
        return self.steps * self.low + self.scale * value

    def from_user(self, value: float) -> float:
        """A value (a floor, say) in the user's units, as this library counts."""
        return (value - self.steps * self.low) / self.scale

    def of_a_step(self, rewards: Floats) -> Floats:
        """Rewards of single steps rescaled to [0, 1]; a rounding error outside the range is clipped."""
        return np.clip((rewards - self.low) / self.scale, 0.0, 1.0)

    def admits(self, reward: float) -> bool:
        """Is this reward of one step within the declared range, up to rounding errors?"""
        slack = 1e-9 * self.scale
        return self.low - slack <= reward <= self.high + slack


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem(FrozenRecord):
    """What is known of an episodic task before it begins: sizes, rewards, start; no transition probabilities.

    - r: rewards (H, S, A), or (S, A) together with `H` when they are the same at every step; in [0, 1].
    - s1: the state in which every episode starts. Or `start`: the probabilities (S,) of several first states, or
      "unknown" where it is only known that first states are drawn independently from one distribution. Floors are then
      about the value averaged over the start.
    - r_next: instead of r, rewards (S, A, S) or (H, S, A, S) that depend on the next state.
    - unknown: where rewards are not known, only that they lie in [0, 1] and have a fixed mean for each pair: True
      (everywhere), or a mask (S, A) or (H, S, A). The entries of r there are ignored.
    - support: which next states are possible: a mask (S, A, S) or (H, S, A, S). None: all of them.
    - rewards_at_least: True where the rewards given are lower bounds of what is paid: lower values hold, upper ones do
      not. (A log says nothing about pairs that it never tried.)
    - stationary: the transition probabilities (and the means of unknown rewards) do not depend on the step. Only then
      may counts be pooled.

    All of this is asserted by the user: certificates depend on it, and `plan.explain()` lists it beside them.
    """

    H: int
    S: int
    A: int
    r: Floats  # (H, S, A), read-only; 0 where rewards are unknown or depend on the next state
    start: Floats | None  # (S,) probabilities; None: unknown
    stationary: bool
    rewards_at_least: bool  # are the rewards given lower bounds of what is paid?
    units: Units  # how values translate into the user's own units
    r_rows: Floats  # (H or 1, S*A): what the kernels read; one row when rewards are the same at every step
    r_next_rows: Floats | None  # (H or 1, S*A, S)
    unknown_rows: Bools | None  # (H or 1, S*A)
    support_rows: Bools | None  # (H or 1, S*A, S)

    def __init__(
        self,
        r: ArrayLike | None = None,
        s1: int = 0,
        H: int | None = None,
        stationary: bool = False,
        units: Units = Units(),  # noqa: B008  (frozen)
        *,
        start: ArrayLike | str | None = None,
        r_next: ArrayLike | None = None,
        unknown: ArrayLike | bool | None = None,
        support: ArrayLike | None = None,
        rewards_at_least: bool = False,
    ) -> None:
        """Validate the arguments once; nothing is repaired."""
        after = None
        if (r is None) == (r_next is None):
            raise InvalidModel(
                "Give the rewards either as r (they depend on state and action) or as r_next. Where they are unknown, "
                "give r=np.zeros((S, A)): only its shape is read."
            )
        if r_next is not None:
            given, steps = per_step("r_next", as_floats("r_next", r_next, InvalidModel), ("S", "A", "S"), H)
            _require_rewards("r_next", given, np.ndim(r_next))
            if given.shape[1] != given.shape[3]:
                raise InvalidModel(f"r_next has shape {np.shape(r_next)}, expected rewards over as many next states.")
            after, rewards = given, np.zeros_like(given[..., 0])
        else:
            table = as_floats("r", r, InvalidModel)
            rewards, steps = per_step("r", table, ("S", "A"), H)
            _require_rewards("r", rewards, table.ndim)
        rows, S, A = rewards.shape
        unknown_mask = _mask("unknown", unknown, (S, A), steps)
        support_mask = _mask("support", support, (S, A, S), steps)
        if support_mask is not None and not support_mask.any(axis=-1).all():
            place = np.argwhere(~support_mask.any(axis=-1))[0][-2:]
            raise InvalidModel(f"{where('support', place)} allows no next state, expected at least one.")
        if unknown_mask is not None and after is not None:
            raise InvalidModel("Rewards are either unknown or given as r_next. Leave one of the two out.")
        stationary = require_bool("stationary", stationary)
        if stationary:
            for name, mask in (("support", support_mask), ("unknown", unknown_mask)):
                if mask is not None and len(mask) > 1:
                    raise InvalidModel(f"{name} has a mask for each step, but the problem is stationary: give one.")
        if unknown_mask is not None:
            rewards = np.where(np.broadcast_to(unknown_mask, (max(rows, len(unknown_mask)), S, A)), 0.0, rewards)
            rows = len(rewards)
        r_rows = rewards.reshape(rows, S * A).copy()
        freeze(
            self,
            H=steps,
            S=S,
            A=A,
            r=np.broadcast_to(r_rows.reshape(rows, S, A), (steps, S, A)),
            start=_start(start, s1, S),
            stationary=stationary,
            rewards_at_least=require_bool("rewards_at_least", rewards_at_least),
            units=_checked_units(units, steps),
            r_rows=r_rows,
            r_next_rows=None if after is None else after.reshape(len(after), S * A, S).copy(),
            unknown_rows=None if unknown_mask is None else unknown_mask.reshape(len(unknown_mask), S * A).copy(),
            support_rows=None if support_mask is None else support_mask.reshape(len(support_mask), S * A, S).copy(),
        )

    @property
    def s1(self) -> int:
        """The state in which every episode starts, where there is just one."""
        if self.start is None or not self.one_start:
            raise InvalidModel("Episodes of this problem start in several states; see problem.start.")
        return int(self.start.argmax())

    @property
    def one_start(self) -> bool:
        """Does every episode start in the same state?"""
        return self.start is not None and int(np.count_nonzero(self.start)) == 1

    @property
    def plain(self) -> bool:
        """Is this the paper's setting: rewards known for each state and action, one start?"""
        return self.one_start and self.unknown_rows is None and self.r_next_rows is None

    @property
    def absorbing_state(self) -> int | None:
        """The absorbing state in which an episode remains after an early end, if just one state can be it: by the mask
        it leads nowhere else, and it pays nothing in the user's units."""
        if self.support_rows is None or (self.unknown_rows is not None and self.unknown.all()):
            return None
        S, A = self.S, self.A
        nothing = float(self.units.of_a_step(np.zeros(())))
        pays = self.r if self.r_next_rows is None else self.r_next_rows.reshape(-1, S, A, S)
        found = [
            s
            for s in range(S)
            if (self.support[:, s].sum(axis=-1) == 1).all()
            and self.support[:, s, :, s].all()
            and not self.unknown[:, s].any()
            and bool((np.abs((pays[:, s] if pays.ndim == 3 else pays[:, s, :, s]) - nothing) < 1e-12).all())
        ]
        return found[0] if len(found) == 1 else None

    @property
    def support(self) -> Bools:
        """The mask of possible next states (H or 1, S, A, S); all True where nothing is known."""
        if self.support_rows is None:
            return np.ones((1, self.S, self.A, self.S), dtype=np.bool_)
        return self.support_rows.reshape(-1, self.S, self.A, self.S)

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
        """The rewards of step h by next state, (S, A, S), whether they depend on it or not; 0 where unknown."""
        if self.r_next_rows is None:
            return np.broadcast_to(self.r[h][..., None], (self.S, self.A, self.S))
        return np.asarray(self.r_next_rows[h % len(self.r_next_rows)].reshape(self.S, self.A, self.S))

    def reward_of(self, h: Indices, s: Indices, a: Indices, s_next: Indices) -> Floats:
        """The reward that is known for this transition, or for each of these; 0 where it is unknown."""
        if self.r_next_rows is None:
            return np.asarray(self.r[h, s, a])
        return np.asarray(self.r_next_rows[h % len(self.r_next_rows), s * self.A + a, s_next])

    def reward_unknown(self, h: Indices, s: Indices, a: Indices) -> Bools:
        """Is the reward of this pair unknown at this step? Or of each of these pairs?"""
        unknown = self.unknown
        return np.asarray(unknown[h % len(unknown), s, a])

    hidden = alias("unknown")
    possible = alias("support")
    rest = alias("absorbing_state")
    mark = alias("fingerprint")

    def forget(self, *, rewards: bool = False, start: bool = False, support: bool = False) -> "Problem":
        """The same task for an agent that knows less: no rewards, no start distribution, no support."""
        known = self.arguments()
        if rewards:
            known |= {"r": np.zeros((self.S, self.A)), "r_next": None, "unknown": True, "rewards_at_least": False}
        if start:
            known |= {"start": "unknown"}
        if support:
            known |= {"support": None}
        return Problem(**known)

    def in_user_units(self, value: float) -> float:
        """A value of this library (0..H) in the units of the rewards."""
        return self.units.to_user(value)

    def from_user_units(self, value: float) -> float:
        """A floor given in the units of the rewards, as agents take it (0..H)."""
        return self.units.from_user(value)

    def same_as(self, other: "Problem") -> bool:
        """Are both problems equal, to the last number?"""
        mine, its = self.arguments(), other.arguments()
        return all(np.array_equal(np.asarray(mine[word]), np.asarray(its[word])) for word in mine)

    @property
    def fingerprint(self) -> str:
        """A hash that identifies the problem, to the last number."""
        digest = hashlib.sha256()
        for word, value in sorted(self.arguments().items()):
            text = value.identity if isinstance(value, Units) else repr(value)
            plain = value.tobytes() if isinstance(value, np.ndarray) else text.encode()
            digest.update(f"{word} {np.shape(value)} ".encode() + plain)
        return digest.hexdigest()[:16]

    def arguments(self) -> dict[str, Any]:
        """The arguments that build an equal problem."""

        def given(rows: AnyArray | None, *shape: int) -> AnyArray | None:
            if rows is None:
                return None
            return rows.reshape(shape) if len(rows) == 1 else rows.reshape(len(rows), *shape)

        S, A = self.S, self.A
        return {
            "r": None if self.r_next_rows is not None else given(self.r_rows, S, A),
            "H": self.H,
            "stationary": self.stationary,
            "units": self.units,
            "rewards_at_least": self.rewards_at_least,
            "start": "unknown" if self.start is None else self.start,
            "r_next": given(self.r_next_rows, S, A, S),
            "unknown": given(self.unknown_rows, S, A),
            "support": given(self.support_rows, S, A, S),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.arguments(),)

    def __repr__(self) -> str:
        kind = "stationary" if self.stationary else "step-dependent"
        start = f"s1={self.s1}" if self.one_start else "start unknown" if self.start is None else "several starts"
        more = [
            word
            for word, rows in (
                ("rewards by next state", self.r_next_rows),
                ("rewards unknown", self.unknown_rows),
                ("support known", self.support_rows),
                ("rewards at least as given", self.rewards_at_least or None),
            )
            if rows is not None
        ]
        return f"Problem({', '.join([f'S={self.S}, A={self.A}, H={self.H}', start, kind, *more])})"


def require_problem(problem: object) -> None:
    """Refuse what is not a Problem, such as a world."""
    if not isinstance(problem, Problem):
        raise InvalidCounts(f"Expected a Problem, found {type(problem).__name__}. Of a world that is world.problem.")


def _rebuilt(arguments: dict[str, Any]) -> Problem:
    """Build a copy (see `Problem.__reduce__`)."""
    return Problem(**arguments)


def _checked_units(units: object, H: int) -> Units:
    """Return the user's units for episodes of H steps."""
    if not isinstance(units, Units):
        raise InvalidModel(f"units is {units!r}, expected sf.Units(low, high): the range that rewards came in.")
    if units.steps not in (0, H, H - 1):  # one less where a common start was added
        raise InvalidModel(f"units are for {units.steps} steps, but the problem has {H}. Leave steps out.")
    return Units(units.low, units.high, H) if units.steps == 0 and units.low != 0.0 else units


def _require_rewards(name: str, rewards: Floats, ndim: int) -> None:
    """Refuse rewards that are not finite or not in [0, 1]; the index is that of the array as given (ndim axes)."""
    bad = np.argwhere(~np.isfinite(rewards))
    if bad.size:
        require_finite(name, rewards if rewards.ndim == ndim else rewards[0], InvalidModel)
    bad = np.argwhere((rewards < 0.0) | (rewards > 1.0))
    if bad.size:
        raise InvalidModel(
            f"{where(name, bad[0][-ndim:])} is {rewards[tuple(bad[0])]:.10g}, expected a reward in [0, 1]. "
            "Rescale rewards and floor together: r' = (r - low) / (high - low) and "
            "floor' = (floor - H low) / (high - low)."
        )


def _mask(name: str, given: ArrayLike | bool | None, shape: tuple[int, ...], H: int) -> Bools | None:
    """Return a mask (1 or H, ...), or None."""
    if given is None or given is False:
        return None
    if given is True:
        return np.ones((1, *shape), dtype=np.bool_)
    mask = as_array(name, given, "b", f"True or False for each of {shape}", InvalidModel)
    if mask.shape not in (shape, (H, *shape)):
        raise InvalidModel(f"{name} has shape {mask.shape}, expected {shape}, or {(H, *shape)} step by step.")
    return np.asarray(mask[None] if mask.ndim == len(shape) else mask, dtype=np.bool_)


def _start(start: ArrayLike | str | None, s1: object, S: int) -> Floats | None:
    """Return the probabilities of the first state; None where they are unknown."""
    first = require_integer("s1", s1, 0, InvalidModel)
    if start is not None and first != 0:
        raise InvalidModel(f"s1 is {first}, but start was given, too. Leave one of them out.")
    if start is None:
        if first >= S:
            raise InvalidModel(f"s1 is {first}, expected a state in 0..{S - 1}.")
        weights = np.zeros(S)  # a row of np.eye(S) would take S times the memory
        weights[first] = 1.0
        return weights
    if isinstance(start, str):
        if start != "unknown":
            raise InvalidModel(f'start is {start!r}, expected probabilities of the {S} states, or "unknown".')
        return None
    weights = as_floats("start", start, InvalidModel)
    if weights.shape != (S,):
        raise InvalidModel(f"start has shape {weights.shape}, expected probabilities of the {S} states.")
    require_distributions("start", weights, "a distribution over first states", InvalidModel)
    return weights.copy()


def per_step(name: str, array: Floats, axes: tuple[str, ...], H: int | None) -> tuple[Floats, int]:
    """Return the array with a leading axis of H steps, or of 1 when it is the same at every step; and H."""
    shape = f"({', '.join(axes)})"
    if 0 in array.shape:
        raise InvalidModel(f"{name} has shape {array.shape}: at least one step, one state and one action are needed.")
    if H is not None:
        H = require_integer("H", H, 1, InvalidModel)
        if H > LONGEST:
            raise InvalidModel(f"H is {H}, expected at most {LONGEST} steps.")
    if array.ndim == len(axes):
        if H is None:
            raise InvalidModel(
                f"{name} has shape {array.shape}. An array {shape} holds for all steps: give their number with H=..."
            )
        return array[None], H
    if array.ndim == len(axes) + 1:
        if H is not None and array.shape[0] != H:
            raise InvalidModel(
                f"H is {H}, but {name} has {array.shape[0]} steps (shape {array.shape}). Leave H out, or make them "
                "agree."
            )
        return array, array.shape[0]
    raise InvalidModel(f"{name} has shape {array.shape}, expected (H, {shape[1:]}, or {shape} together with H=...")


def signal(name: str, values: ArrayLike, problem: Problem, error: type[SurefootError]) -> Floats:
    """Return a second signal, given as (H, S, A) or (S, A) with entries in [0, 1], for every step: (H, S, A)."""
    array = as_floats(name, values, error)
    require_finite(name, array, error)
    shape = (problem.H, problem.S, problem.A)
    if array.shape not in (shape, shape[1:]):
        raise error(f"{name} has shape {array.shape}, expected {shape} or {shape[1:]}.")
    bad = np.argwhere((array < 0.0) | (array > 1.0))
    if bad.size:
        raise error(f"{where(name, bad[0])} is {array[tuple(bad[0])]:.10g}, expected a number in [0, 1].")
    return np.broadcast_to(array.copy(), shape)
