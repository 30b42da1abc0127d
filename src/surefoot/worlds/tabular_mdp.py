"""TabularMDP: the TRUE world. Agents never see one; simulation and exact evaluation do."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.base.arrays import AnyArray, Floats, Indices, Ints
from surefoot.base.digest import digest, one_row
from surefoot.base.validation import (
    FrozenRecord,
    as_floats,
    freeze,
    per_step,
    read_only,
    require_bool,
    require_distributions,
    require_integer,
    require_size,
    where,
)
from surefoot.errors import InvalidModel
from surefoot.model.given_rows import require_small
from surefoot.model.names import NO_NAMES, Name, Names
from surefoot.model.policy import check_policy, draw
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows, aligned, first_outside
from surefoot.model.signal import signal
from surefoot.model.units import Rescaled, Units, per_step_to_user, with_rescaled
from surefoot.worlds.dynamics import (
    MEANING,
    given_sparse,
    mean_rewards,
    require_steps,
    rewards_by_step,
    sparse_dynamics,
    table_of,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TabularMDP(FrozenRecord):
    """An episodic world with H steps, S states, A actions, and rewards in `units`. Frozen; arrays
    are read-only.

    P is (H, S, A, S), or (S, A, S) together with `H` when the dynamics are the same at every step:
    then they are stored once, and `P` is a view of that. r is (H, S, A) or (S, A); or `r_next` (H,
    S, A, S) or (S, A, S), where the reward depends on the next state, and then r is its mean. Every
    episode starts in s1, or in a state drawn from `start` (S,). With `random_rewards` each reward
    is the highest or the lowest of the units, with mean r or r_next. Rewards, floors and values are
    in `units`; without them, rewards lie in [0, 1]. `Rescaled(r)` is a table in [0, 1].

    For many states, P and r_next may be sparse matrices of scipy, (S*A, S) with the row s*A + a for
    each pair, together with `H`; or a list of one for each step. However P is given, it is kept as
    lists of next states: `transitions`.

    `problem` is what an agent knows: all but P. `problem.forget(rewards=True)` is a problem with
    less knowledge, and `with_support()` a world whose agents know which transitions are possible.
    """

    # the next states with P > 0 and their probabilities: one set of lists for all steps, or one
    # for each
    transitions: Rows
    r_rescaled: Floats  # (H, S, A): mean rewards, in 0..1
    r_rows: Floats  # (H or 1, S*A), rescaled
    start: Floats  # (S,)
    random_rewards: bool
    problem: Problem
    name: str
    cost: Floats | None  # (H, S, A): a second signal in [0, 1], where the world has one
    baseline: Floats | None  # (H, S, A): the usual baseline of this world
    suggested_floor: float | None  # a floor under that baseline, in the user's units

    def __init__(
        self,
        P: "ArrayLike | Rows | Any",
        r: "ArrayLike | Rescaled | None" = None,
        s1: int = 0,
        H: int | None = None,
        *,
        start: ArrayLike | None = None,
        r_next: "ArrayLike | Rescaled | None" = None,
        random_rewards: bool = False,
        support: ArrayLike | None = None,
        units: Units = Units(),  # noqa: B008  (frozen)
        name: str = "",
        cost: ArrayLike | None = None,
        baseline: ArrayLike | None = None,
        suggested_floor: float | None = None,
    ) -> None:
        """Validate the arguments once; nothing is repaired."""
        if (r is None) == (r_next is None):
            raise InvalidModel(
                "Give the rewards either as r or as r_next (where they depend on the next state)."
            )
        word, axes = ("r", 2) if r_next is None else ("r_next", 3)
        given = r if r_next is None else r_next
        found = sparse_dynamics if not isinstance(P, np.ndarray) and given_sparse(P) else _of_array
        transitions, steps, stationary = found(P, given, word, H)
        S, A = transitions.S, transitions.A
        if isinstance(start, str):
            raise InvalidModel(
                "The start of a true world is known. Use world.problem.forget(start=True) for "
                "agents."
            )
        problem = Problem(
            r if r_next is None else None,
            s1=s1,
            H=steps,
            stationary=stationary,
            units=units,
            start=start,
            r_next=r_next,
            support=support,
        )
        if (problem.S, problem.A) != (S, A):
            raise InvalidModel(
                f"{word} is for S = {problem.S}, A = {problem.A}, but P is for S = {S}, A = {A}. "
                f"Expected {word} of shape {(steps, S, A, S)[: axes + 1]}, or another P: (S, A, S) "
                "for every pair, or a sparse matrix (S*A, S) whose row s*A + a is of state s and "
                "action a."
            )
        mean = mean_rewards(problem, transitions)
        assert problem.start is not None
        freeze(
            self,
            transitions=transitions.frozen(),
            r_rescaled=np.broadcast_to(mean.reshape(-1, S, A), (steps, S, A)),
            r_rows=mean,
            start=problem.start,
            random_rewards=require_bool("random_rewards", random_rewards),
            problem=problem,
            name=name,
            cost=None if cost is None else signal("cost", cost, problem, InvalidModel),
            baseline=None
            if baseline is None
            else check_policy(baseline, problem, "baseline").copy(),
            suggested_floor=None
            if suggested_floor is None
            else _checked_floor(suggested_floor, problem),
        )
        if problem.knows_support:
            self._require_inside()

    def _require_inside(self) -> None:
        """Refuse a mask that is false in this true world."""
        bad = self.outside(self.problem)
        if bad is not None:
            h, entry = bad
            s, a, s_next, p = self.entry(entry)
            raise InvalidModel(
                f"{where('P', (h, s, a, s_next))} is {p:g}, but support says it is impossible."
            )

    def outside(self, problem: Problem) -> tuple[int, int] | None:
        """Return the first transition that happens here and that the mask of this problem excludes,
        as step and place in `transitions`; None if there is none.
        """
        return None if problem.mask is None else first_outside(self.transitions, problem.mask)

    def entry(self, i: int) -> tuple[int, int, int, float]:
        """Return state, action, next state and probability of an entry of `transitions`."""
        rows = self.transitions
        place = int(np.searchsorted(rows.first, i, side="right")) - 1
        s, a = divmod(place % rows.pairs, self.A)
        return s, a, int(rows.state[i]), float(rows.value[i])

    @cached_property
    def P_rows(self) -> Floats:
        """The transition probabilities (H or 1, S, A, S), made on first use, and refused where
        they are many.
        """
        require_small("P", (*self.transitions.shape, self.S), "world.transitions")
        return read_only(self.transitions.dense())

    @cached_property
    def P(self) -> Floats:
        """The transition probabilities (H, S, A, S), of stationary dynamics a view of those of
        one step.
        """
        return np.broadcast_to(self.P_rows, (self.H, self.S, self.A, self.S))

    @cached_property
    def dynamics(self) -> str:
        """A digest of the transition probabilities, which identifies them."""
        return f"dynamics {digest([one_row(array) for array in self.transitions[:3]])}"

    def next_states(self, h: int, s: int, a: int) -> tuple[Ints, Floats]:
        """Return the next states that are possible, and their probabilities."""
        rows = self.transitions
        i = int(rows.list_at(h, s * self.A + a))
        return rows.of(i), rows.values_of(i)

    @property
    def r(self) -> Floats:
        """Mean rewards (H, S, A) in the user's units."""
        return per_step_to_user(self.r_rescaled, self.problem.units)

    @property
    def H(self) -> int:
        """The number of steps in an episode."""
        return self.problem.H

    @property
    def S(self) -> int:
        """The number of states."""
        return self.problem.S

    @property
    def A(self) -> int:
        """The number of actions."""
        return self.problem.A

    @property
    def s1(self) -> int:
        """The state in which every episode starts, if there is just one."""
        return self.problem.s1

    @property
    def stationary(self) -> bool:
        """Are the dynamics the same at every step (and stored once)?"""
        return self.problem.stationary

    def can_follow(self, h: int, s: int, a: int, s_next: int) -> bool:
        """Is this next state possible?"""
        return bool((self.next_states(h, s, a)[0] == s_next).any())

    def draw_next(self, h: int, s: int, a: int, rng: np.random.Generator) -> int:
        """Draw the next state."""
        states, p = self.next_states(h, s, a)
        return int(states[draw(p, rng)])

    def mean_next(self, h: int, V: Floats) -> Floats:
        """Return sum_s' P(s'|s, a) V(s') (S, A) at step h."""
        place, state, p = self.entries(h)
        return np.asarray(
            np.bincount(place, p * V[state], self.S * self.A).reshape(self.S, self.A),
            dtype=np.float64,
        )

    def spread(self, h: int, d: Floats) -> Floats:
        """Return how many are in each state (S,) after step h, of as many as d (S, A) in each
        pair.
        """
        place, state, p = self.entries(h)
        return np.asarray(np.bincount(state, d.reshape(-1)[place] * p, self.S), dtype=np.float64)

    def entries(self, h: int) -> tuple[Ints, Ints, Floats]:
        """Return pair, next state and probability of every transition that is possible at step
        h.
        """
        rows = self.transitions.at(h)
        return rows.places, rows.state, rows.value

    def at_start(self, V: Floats) -> float:
        """Return the value at the start of values V (S,) of the first step: at s1, or averaged
        over the start.
        """
        return float(V[self.s1]) if self.problem.one_start else float(np.cumsum(self.start * V)[-1])

    def mean_reward(self, h: Indices, s: Indices, a: Indices, s_next: Indices) -> Floats:
        """Return the rescaled mean reward of this transition, or of each of these transitions."""
        return self.problem.reward_of(h, s, a, s_next)

    def with_support(self) -> "TabularMDP":
        """Return the same world, whose agents know which transitions are possible: those with P
        > 0.
        """
        return _rebuilt(self._arguments() | {"support": self.transitions}, self.problem.names)

    def averaged(self) -> "TabularMDP":
        """Return the same world, whose agents know the mean reward of each pair instead of r_next.

        It is for bounds that need r(s, a), such as the paper's. That the means are known is then a
        premise of its own.
        """
        # rounding may put a mean of ones above 1
        mean = np.clip(self.r_rows.reshape(-1, self.S, self.A), 0.0, 1.0)
        return _rebuilt(
            self._arguments() | {"r": self._short(mean), "r_next": None}, self.problem.names
        )

    def _short(self, rows: AnyArray) -> AnyArray:
        return rows[0] if len(rows) == 1 else rows

    def with_names(
        self, states: Sequence[Name] | None = None, actions: Sequence[Name] | None = None
    ) -> "TabularMDP":
        """Return the same world with these names of states and actions, for people; see
        `Problem.with_names`.
        """
        return _rebuilt(self._arguments(), self.problem.with_names(states, actions).names)

    @cached_property
    def P_pairs(self) -> Floats:
        """The probabilities with the pair (s, a) last, as the kernels read them; of size 0 where
        few of many states follow a pair.
        """
        return read_only(kernels.pairs_last(self.transitions))

    @cached_property
    def paid_list(self) -> Floats:
        """What each entry of `transitions` pays, (steps, entries): one row, or one for each step
        where only the rewards depend on it; of size 0 where rewards do not depend on the next
        state.
        """
        return read_only(self._paid_to(self.problem))

    def _paid_to(self, problem: Problem) -> Floats:
        """Return what each entry of `transitions` pays, as an agent of this problem knows it."""
        return np.zeros((0, 0)) if problem.paid is None else aligned(problem.paid, self.transitions)

    def for_kernels(self) -> "kernels.World":
        """Return the world as the kernels read it."""
        return kernels.World(
            self.transitions,
            self.P_pairs,
            self.r_rows,
            self.paid_list,
            self.start,
            not self.problem.one_start,
            self.random_rewards,
        )

    def rewards_for(self, problem: Problem) -> "kernels.KnownRewards":
        """Return the rewards that an agent of this problem knows, as the kernels read them."""
        after = self._paid_to(problem)
        return kernels.known_rewards_from(problem.r_rows, after, problem.unknown_rows)

    def _arguments(self) -> dict[str, Any]:
        known = self.problem.arguments()
        return {
            "P": self.transitions,
            **{word: known[word] for word in ("r", "r_next", "H", "start", "support", "units")},
            "random_rewards": self.random_rewards,
            "name": self.name,
            "cost": self.cost,
            "baseline": self.baseline,
            "suggested_floor": self.suggested_floor,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._arguments(), self.problem.names)

    def __repr__(self) -> str:
        random = ", random rewards)" if self.random_rewards else ")"
        return repr(self.problem).replace("Problem", "TabularMDP")[:-1] + random


def _rebuilt(arguments: dict[str, Any], names: Names = NO_NAMES) -> TabularMDP:
    """Build a copy (see `TabularMDP.__reduce__`)."""
    made = TabularMDP(**with_rescaled(arguments))
    if names != NO_NAMES:
        freeze(made, problem=made.problem.with_names(*names))
    return made


def _of_array(P: Any, rewards: Any, word: str, H: int | None) -> tuple[Rows, int, bool]:
    """Return the lists of an array P, the number of steps, and whether they all share the
    dynamics.
    """
    given_P = as_floats("P", P, InvalidModel)
    by_step = rewards_by_step(rewards, word)
    if H is None and given_P.ndim == 4:
        H = given_P.shape[0]
    if H is None and by_step:
        H = len(table_of(rewards))
    transitions, steps = per_step("P", given_P, ("S", "A", "S"), H)
    if by_step:
        require_steps(word, len(table_of(rewards)), steps)
    rows, S, A, S_next = transitions.shape
    if S_next != S:
        raise InvalidModel(
            f"P has shape {given_P.shape}: {S} states, but rows over {S_next} next states. They "
            "must agree."
        )
    require_distributions("P", given_P, MEANING, InvalidModel)
    keys = np.flatnonzero(transitions > 0.0)
    lists = Rows.of_keys(keys, (rows, S, A), transitions.reshape(-1)[keys])
    return lists, steps, given_P.ndim == 3


def _checked_floor(floor: float, problem: Problem) -> float:
    """Return the floor, if an episode can return it."""
    problem.level(floor, "suggested_floor")
    return float(floor)


def random_mdp(S: int, A: int, H: int, seed: int, stationary: bool = False) -> TabularMDP:
    """Return the paper's synthetic world: rewards uniform on [0, 1], transitions uniform on the
    simplex, start 0.

    rng = default_rng(seed) draws first all rewards, then all transition rows; `stationary` draws
    one step's worth.
    """
    sizes = [
        require_integer(name, size, 1, InvalidModel)
        for name, size in (("S", S), ("A", A), ("H", H))
    ]
    require_size("P", (1 if stationary else sizes[2], *sizes[:2], sizes[0]), InvalidModel)
    require_size("r", sizes, InvalidModel)
    rng = np.random.default_rng(require_integer("seed", seed, 0, InvalidModel))
    steps = () if stationary else (H,)
    r = rng.random((*steps, S, A))
    P = rng.dirichlet(np.ones(S), size=(*steps, S, A))
    return TabularMDP(P, r, s1=0, H=H)


def require_world(world: object) -> None:
    """Refuse what is not a TabularMDP: exact values need the true model."""
    if not isinstance(world, TabularMDP):
        raise InvalidModel(
            f"Expected a TabularMDP, found {type(world).__name__}. Exact values and simulation "
            "need the true transition probabilities, which a Problem does not have."
        )
