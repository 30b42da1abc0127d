"""The tables that counts are made of, and what they are evidence about. `Counts` adds episodes
to them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.nodes import EPISODE, OUTSIDE, PLACES
from surefoot.base.validation import (
    LONGEST,
    REWARD_UNITS,
    as_array,
    require_bool,
    require_integer,
    where,
)
from surefoot.errors import InvalidCounts, InvalidFile
from surefoot.model.by_step import StepCounts
from surefoot.model.count_lists import Entries
from surefoot.model.given_rows import is_sparse
from surefoot.model.origin import (
    DYNAMICS,
    NUMBERS,
    SUMS,
    UNKNOWN,
    Origin,
    Range,
    shown,
    still_usable,
)
from surefoot.model.problem import Problem, require_problem
from surefoot.model.transitions import LARGEST_COUNT, Transitions, transitions_in_matrices

# the random numbers of learners that begin now: see run/streams.py
STREAM = "surefoot live stream 1"
LARGEST_SUM = 2**62  # of rewards; a run may double it, see MOST_STEPS in run/setup.py

_Steps = TypeVar("_Steps", int, Ints)


class CountTables:
    """The tables of counts: checked, copied, compared; and what they are evidence about. See
    `Counts`.
    """

    __slots__ = ("H", "account", "account_of", "alarm", "baseline_returns", "basis",
                 "episodes", "logged", "logged_returns", "n_start", "origin",
                 "planned", "played", "playing", "pooled", "ranges", "refused",
                 "return_range", "return_weights", "returns_of", "s1", "steps",
                 "stream", "table_bets", "transitions", "unlike_table", "x_sa", "z_sa")  # fmt: skip
    # how often each next state followed each pair; of shared rows, without the last step
    transitions: Transitions
    # (H or 1, S, A) how often each pair was played, at the last step, too: sums of rewards rest on
    # it
    played: Ints
    episodes: int  # how many episodes are counted
    # (H or 1, S, A) sums of rewards, in units of 2^-20; None where rewards are known
    x_sa: Ints | None
    # (H or 1, S, A) sums of x (1 - x) of rewards x, in units of 2^-20, each rounded down; like x_sa
    z_sa: Ints | None
    n_start: Ints  # (S,) how often each state was the first
    # (2,) whole baseline episodes, and the sum of their returns in units of 2^-20
    baseline_returns: Ints
    # (PLACES,) how the returns of labelled episodes are spread over nodes: see base/nodes.py
    return_weights: Ints
    # the least return and the span, in 2^-20; None: returns are not spread
    return_range: tuple[int, int] | None
    # how many returns are of a log: the user asserts that this baseline wrote it
    logged_returns: int
    # fingerprint of the baseline and the rewards that the returns belong to; None: unclaimed
    returns_of: str | None
    # (3,) episodes on the baseline, other episodes, and the sum of their certified values, in 2^-20
    account: Ints
    # fingerprint of the agent, floor, bounds and baseline whose account it is
    account_of: str | None
    basis: Ints | None  # of the solution of the last linear program; None: none was solved
    # the counts from which the plan in force was made; None: no plan is in force
    planned: "Self | None"
    # do they include episodes of a log, which may be older than the choice of the baseline?
    logged: bool
    pooled: bool  # one row for all steps?
    H: int  # steps in an episode
    s1: int | None  # where episodes start; None: unknown
    origin: Origin | None  # what they are evidence about; None: unclaimed
    # the numbers of the episodes that they hold; not of those that have no number
    ranges: tuple[Range, ...]
    # why an alarm was raised over them: nothing of them is certified any more; "": none was
    alarm: str
    # rewards that a learner observed, and that were not those of the problem's table
    unlike_table: int
    # the state of bets against that table (bounds/declared_rewards.py); None: no bets
    table_bets: Floats | None
    # episodes that were dropped after they had begun, or changed after an outcome of them was
    # refused
    refused: int
    # is an episode played that is not counted yet? Copied, not saved: a crash leaves what was
    # counted
    playing: bool
    # What was seen at each step, to compare steps that share a row; None: it is not kept. Counts
    # with a row for each step keep it only where they are not as they were seen: where first visits
    # are taken off.
    steps: StepCounts | None
    stream: str  # the name of what a learner draws from

    def __init__(
        self,
        n_sas: "ArrayLike | Transitions",
        H: int | None = None,
        s1: int | None = None,
        *,
        played: ArrayLike | None = None,
        episodes: int | None = None,
        x_sa: ArrayLike | None = None,
        z_sa: ArrayLike | None = None,
        n_start: ArrayLike | None = None,
        baseline_returns: ArrayLike | None = None,
        returns_of: str | None = None,
        logged: bool = False,
        account: ArrayLike | None = None,
        account_of: str | None = None,
        basis: ArrayLike | None = None,
        problem: Problem | None = None,
    ) -> None:
        """Take n_sas (H, S, A, S) counted per step, or (S, A, S) pooled over the H steps of each
        episode. For many states it may be a list of sparse matrices of scipy, (S*A, S) with the
        row s*A + a for each pair, one for each step; or one matrix, pooled.

        Where x_sa holds sums of rewards, z_sa are those of x (1 - x): what is left out of them
        makes bounds looser. `problem` claims counts that were made by hand: see above for what you
        assert by it.

        Pooled rows need H, and hold no next state of step H (see `counts_next`), while `played` (S,
        A) holds all steps: left out, it is the visits of n_sas, which is less than there were.
        `episodes`: left out, as few as they can be. To count by hand, count per step, and call
        `pool()`.

        With H > 1 given, (1, S, A, S) is pooled, too.
        """
        H = problem.H if H is None and problem is not None else H
        H = None if H is None else require_integer("H", H, 1, InvalidCounts)
        if isinstance(n_sas, Transitions):
            self.transitions, rows = n_sas, n_sas.shape[0]
            self.pooled = rows == 1 != H
            if H not in (None, rows) and not self.pooled:
                raise InvalidCounts(f"H is {H}, but n_sas has {rows} steps.")
        elif is_sparse(n_sas):
            self.transitions = transitions_in_matrices(n_sas, H)
            self.pooled = not isinstance(n_sas, list | tuple)
        else:
            table, self.pooled = table_of(n_sas, H)
            self.transitions = Transitions.of_table(table)
        total = float(self.transitions.lists.n.sum(dtype=np.float64))
        if total > LARGEST_SUM:
            raise InvalidCounts(
                f"n_sas adds up to {total:.3g} transitions, expected at most 2^62 in all."
            )
        rows, S, A = self.transitions.shape
        if self.pooled and H is None:
            raise InvalidCounts(
                "These counts are pooled over steps. Say how many steps an episode has: "
                "Counts(n_sas, H=...)."
            )
        self.H = H if self.pooled and H is not None else rows
        self.played = self._played_from(played)
        self.episodes = self._episodes_from(episodes)
        self.s1 = None if s1 is None else require_integer("s1", s1, 0, InvalidCounts)
        self.x_sa = self.z_sa = None
        if x_sa is not None:
            zeros = np.zeros((rows, S, A), dtype=np.int64)
            self.x_sa, self.z_sa = (
                whole(name, sums[None] if sums.ndim == 2 else sums, (rows, S, A), LARGEST_SUM)
                for name, sums in (
                    ("x_sa", np.asarray(x_sa)),
                    ("z_sa", zeros if z_sa is None else np.asarray(z_sa)),
                )
            )
            require_sums(self.played, self.x_sa, self.z_sa)
        elif z_sa is not None:
            raise InvalidCounts(
                "z_sa is given without x_sa, the sums of rewards. Give both, or x_sa alone."
            )
        self.n_start = whole(
            "n_start", np.zeros(S) if n_start is None else n_start, (S,), LARGEST_COUNT
        )
        self.baseline_returns = sums_of("baseline_returns", baseline_returns, 2)
        if int(self.baseline_returns[1]) > int(self.baseline_returns[0]) * self.H * REWARD_UNITS:
            raise InvalidCounts(
                f"baseline_returns is {self.baseline_returns}: more than {self.H} in an episode of "
                f"{self.H} steps."
            )
        self.return_range, self.return_weights = None, np.zeros(PLACES, dtype=np.int64)
        self.account = sums_of("account", account, 3)
        if int(self.account[2]) > int(self.account[1]) * self.H * REWARD_UNITS:
            raise InvalidCounts(
                f"account is {self.account}: values of more than {self.H} in episodes of {self.H} "
                "steps."
            )
        self.account_of = account_of
        self.basis = None if basis is None else basis_of(basis)
        self.returns_of = returns_of
        self.logged = require_bool("logged", logged)
        self.planned, self.stream, self.playing = None, STREAM, False
        self.origin, self.ranges, self.refused, self.logged_returns, self.alarm = None, (), 0, 0, ""
        self.unlike_table, self.table_bets, self.steps = 0, None, None
        if problem is not None:
            self._claim(problem)

    def _played_from(self, given: ArrayLike | None) -> Ints:
        """How often each pair was played; left out, as often as its next state was counted."""
        n_sa = self.n_sa
        if given is None:
            return n_sa
        table = np.asarray(given)
        played = whole("played", table[None] if table.ndim == 2 else table, n_sa.shape, LARGEST_SUM)
        bad = np.argwhere((played < n_sa) | (not self.shared and (played > n_sa)))
        if bad.size:
            at = tuple(bad[0])
            meaning = "at least" if self.shared else "exactly"
            raise InvalidCounts(
                f"{where('played', bad[0])} is {played[at]}, expected {meaning} the {n_sa[at]} of "
                "which the next state was counted."
            )
        return played

    def _episodes_from(self, given: int | None) -> int:
        """How many episodes are counted; left out, as few as have so many visits in one step."""
        if given is not None:
            return require_integer("episodes", given, 0, InvalidCounts)
        by_step = self.n_sa.sum(axis=(1, 2))
        return -(-int(by_step[0]) // (self.H - 1)) if self.shared else int(by_step.max())

    @property
    def shared(self) -> bool:
        """Do several steps share a row?"""
        return self.shape[0] < self.H

    def counts_next(self, h: int) -> bool:
        """Is the next state of step h counted? In rows that steps share, never that of the last
        step, however an episode ended: V_{H+1} = 0 needs none, and what a process does with its
        last state is no move of the others.
        """
        return h + 1 < self.H or not self.shared

    @property
    def n_sas(self) -> Ints:
        """How often each next state followed each pair, (H or 1, S, A, S): a copy. With very many
        states it is refused: use `entries`.
        """
        return self.transitions.n_sas

    @property
    def entries(self) -> Entries:
        """The counts above 0 one by one: place = row * S * A + state * A + action, next state,
        how often.
        """
        return self.transitions.entries

    @property
    def n_sa(self) -> Ints:
        """How often the next state of each pair was counted, (H or 1, S, A): at most as often as
        it was `played`.
        """
        return self.transitions.n_sa

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows (one for each step, or one for all), states, actions."""
        return self.transitions.shape

    @property
    def total(self) -> int:
        """The number of transitions counted so far."""
        return self.transitions.total

    def row(self, h: _Steps) -> _Steps:
        """The row of these counts in which step h is counted: h, or 0 where all steps are
        pooled.
        """
        return h % self.shape[0]

    @property
    def numbered(self) -> int:
        """How many of their episodes have a number."""
        return sum(one.last - one.first + 1 for one in self.ranges)

    @property
    def claimed(self) -> bool:
        """Do they say what they are evidence about? Where nothing is counted, there is nothing
        to say.
        """
        return self.origin is not None or not (self.episodes or self.return_weights.any())

    def require_unselected(self) -> None:
        """Refuse counts from which episodes were dropped, or in which one was changed."""
        if self.refused:
            raise InvalidCounts(
                f"{self.refused:,} episode(s) were dropped from these counts, because a reward, a "
                "state or an end was refused or for another reason, or a refused reward was "
                "replaced by another: what is left was selected by its outcome. Begin with new "
                "counts, and a problem that allows what was seen: a wider range, say."
            )

    def require_of(self, problem: Problem) -> None:
        """Refuse counts of which something that this problem would read is evidence about
        something else.
        """
        self.require_unselected()
        if self.origin is None or not self.episodes:
            return
        needed = (*DYNAMICS, *(("start",) if self.n_start.any() else ()))
        differ = self.origin.differing(problem.origin, needed)
        if self.x_sa is not None and problem.unknown_rows is not None:
            of_sums = self.origin.differing(problem.origin, SUMS)
            # every reward was seen: a table that says more harms nothing
            if self.origin.rewards == UNKNOWN:
                of_sums = tuple(part for part in of_sums if part != "rewards")
            differ += of_sums
        if differ:
            raise InvalidCounts(
                "These counts are evidence about something else "
                f"({shown(differ, self.origin, problem.origin)}). "
                f"{still_usable(differ, NUMBERS in (self.origin.coding, problem.origin.coding))}"
            )

    def claimed_for(self, problem: Problem) -> Self:
        """New counts with the same numbers and plan, claimed for this problem: for counts that were
        made by hand.

        By calling this YOU assert that they are of this problem (its coding of states and actions,
        its start, and, where rewards are unknown, its range and table), that they hold each episode
        once, and that none was left out because of how it went. `plan.explain()` lists that among
        the premises. What they are known not to be is refused.
        """
        claimed = self.copy()
        claimed.planned = None if self.planned is None else self.planned.copy()
        claimed._claim(problem)
        return claimed

    def _claim(self, problem: Problem) -> None:
        """Say, in place, what these counts are evidence about."""
        require_problem(problem)
        rows, S, A = self.shape
        if (S, A) != (problem.S, problem.A) or rows not in (1, problem.H) or self.H != problem.H:
            raise InvalidCounts(f"Found {self}, which are not of {problem}.")
        self.require_of(problem)
        if self.origin is None:
            self.origin = replace(problem.origin, asserted=self.episodes > 0)
        self.adopt(problem)

    def adopt(self, problem: Problem) -> None:
        """Go on, in place, as counts of this problem: what they hold was held against it.
        Unclaimed ones stay so.
        """
        if self.claimed:
            self.origin = (
                problem.origin if self.origin is None else problem.origin.filled(self.origin)
            )
        if self.planned is not None:
            self.planned.origin = self.origin

    def pool(self) -> Self:
        """New counts in which all steps share a row: for stationary worlds only. No next state of
        the last step is in it (see `counts_next`).
        """
        pooled = self._like(self.transitions.pooled())
        pooled.played = self.played.sum(axis=0, keepdims=True)
        if self.x_sa is not None and self.z_sa is not None:
            pooled.x_sa, pooled.z_sa = (
                x.sum(axis=0, keepdims=True) for x in (self.x_sa, self.z_sa)
            )
        pooled.pooled = True
        if not self.pooled and self.steps is None:
            pooled.steps = StepCounts.of_rows(self.entries, self.n_sa, self.x_sa)
        return pooled

    def copy(self) -> Self:
        """New counts with the same numbers, and no plan in force."""
        same = self._like(self.transitions.copy())
        same.played = self.played.copy()
        if self.x_sa is not None and self.z_sa is not None:
            same.x_sa, same.z_sa = self.x_sa.copy(), self.z_sa.copy()
        return same

    def copy_for(self, problem: Problem) -> Self:
        """New counts with the same numbers, for a run in this problem: with its start and horizon.

        They hold sums of rewards if, and only if, the problem does not know all rewards.
        """
        mine = self.copy()
        if self.origin is not None and self.origin.differing(problem.origin, SUMS):
            mine.unlike_table, mine.table_bets = 0, None  # it was another table
        mine.adopt(problem)
        mine.stream = STREAM
        mine.s1 = problem.s1 if problem.one_start else None
        if problem.unknown_rows is None:
            mine.drop_rewards()
        elif mine.x_sa is None:
            mine.x_sa, mine.z_sa = (np.zeros(mine.shape, dtype=np.int64) for _ in range(2))
        return mine

    def forget_returns(self) -> Self:
        """New counts without the returns of baseline episodes, and without the account: for
        another baseline.
        """
        kept = self.copy()
        kept.drop_returns()
        kept.account[:] = 0
        kept.account_of = None
        return kept

    def drop_returns(self) -> None:
        """Forget, in place, the returns of baseline episodes, whose they were, and their range."""
        self.baseline_returns[:] = 0
        self.return_weights[:] = 0
        self.logged_returns = 0
        self.returns_of = self.return_range = None

    def hold_returns(self, weights: ArrayLike, within: tuple[int, int]) -> None:
        """Hold, in place, returns that are spread like this over the nodes of the range
        `within`, all of it checked.
        """
        low, span = within
        self.return_weights = weights_of_returns(weights, int(self.baseline_returns[0]))
        self.return_range = (
            require_integer("The least return", low, -LARGEST_SUM, InvalidCounts),
            require_integer("The span of returns", span, 0, InvalidCounts),
        )

    @property
    def spread_episodes(self) -> int:
        """How many baseline episodes have their return spread over the nodes: those that are
        evidence.
        """
        return int(self.return_weights[:OUTSIDE].sum()) // EPISODE

    def forget_rewards(self) -> Self:
        """New counts without sums of rewards and returns: what was seen of the dynamics, and of
        first states.

        They are evidence for problems that know all their rewards, whatever these are.
        """
        kept = self.forget_returns()
        kept.drop_rewards()
        kept.unlike_table, kept.table_bets = 0, None
        kept.origin = None if self.origin is None else self.origin.without(*SUMS)
        return kept

    def drop_rewards(self) -> None:
        """Forget, in place, the sums of rewards."""
        self.x_sa = self.z_sa = None
        self.steps = None if self.steps is None else self.steps.without_rewards()

    def forget_start(self) -> Self:
        """New counts without first states and returns: for episodes that start elsewhere."""
        kept = self.forget_returns()
        kept.n_start[:] = 0
        kept.s1 = None
        kept.origin = None if self.origin is None else self.origin.without("start")
        return kept

    def _like(self, transitions: Transitions) -> Self:
        """New counts of these transitions; what else was counted of pairs is for the caller to
        set.
        """
        same = type(self)(
            transitions,
            self.H,
            self.s1,
            episodes=self.episodes,
            n_start=self.n_start,
            baseline_returns=self.baseline_returns,
            returns_of=self.returns_of,
            logged=self.logged,
            account=self.account,
            account_of=self.account_of,
            basis=self.basis,
        )
        same.pooled = self.pooled
        same.origin, same.ranges, same.refused, same.playing = (
            self.origin,
            self.ranges,
            self.refused,
            self.playing,
        )
        same.stream, same.logged_returns, same.alarm = self.stream, self.logged_returns, self.alarm
        same.unlike_table, same.table_bets = self.unlike_table, self.table_bets
        same.steps = None if self.steps is None else self.steps.copy()
        same.return_range, same.return_weights = self.return_range, self.return_weights.copy()
        return same

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CountTables):
            return NotImplemented
        same = (self.pooled, self.H, self.episodes) == (other.pooled, other.H, other.episodes)
        same = same and self.logged == other.logged
        same = same and self.transitions == other.transitions
        same = same and (
            self.account_of == other.account_of or not (self.account.any() or other.account.any())
        )
        sums = [
            tuple(np.zeros(0) if x is None else x for x in both)
            for both in ((self.x_sa, other.x_sa), (self.z_sa, other.z_sa))
        ]
        pairs = [
            (self.played, other.played),
            (self.n_start, other.n_start),
            (self.baseline_returns, other.baseline_returns),
            (self.return_weights, other.return_weights),
            *sums,
        ]
        end, its_end = (
            np.zeros(0) if counts.basis is None else counts.basis for counts in (self, other)
        )
        pairs += [(self.account, other.account), (end, its_end)]
        return same and all(np.array_equal(x, y) for x, y in pairs)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        over = f"{'pooled over ' if self.pooled else ''}{self.H} steps"
        lacking = f", {self.refused:,} episodes DROPPED" if self.refused else ""
        return (
            f"Counts({over}, S={self.shape[1]}, A={self.shape[2]}, "
            f"episodes={self.episodes:,}{lacking})"
        )


def table_of(n_sas: ArrayLike, H: int | None) -> tuple[Ints, bool]:
    """Return a table of counts as (rows, S, A, S), checked, and whether it is pooled over steps."""
    given = as_array("n_sas", n_sas, "fiu", "whole numbers", InvalidCounts)
    if given.ndim not in (3, 4) or 0 in given.shape or given.shape[-1] != given.shape[-3]:
        raise InvalidCounts(
            f"n_sas has shape {given.shape}, expected (H, S, A, S), or (S, A, S) pooled over steps."
        )
    given = whole("n_sas", given, given.shape, LARGEST_COUNT)
    if H is not None:
        if given.ndim == 4 and given.shape[0] == 1:
            given = given if H == 1 else given[0]
        if given.ndim == 4 and given.shape[0] != H:
            raise InvalidCounts(
                f"H is {H}, but n_sas has {given.shape[0]} steps (shape {given.shape})."
            )
    return (given[None], True) if given.ndim == 3 else (given, False)


def require_small(
    path: str | Path, arrays: Mapping[str, AnyArray], H: int | None, sums: Iterable[str]
) -> None:
    """Refuse a file whose totals would overflow int64, before anything is added up in it."""
    if H is not None and H > LONGEST:
        raise InvalidFile(
            f"{path}: H is {H}, expected at most {LONGEST} steps: the file is damaged. Restore a "
            "copy."
        )
    n_sas = np.atleast_1d(arrays["n_sas"])[-1:]  # how often
    total = float(n_sas.sum(dtype=np.float64)) if n_sas.dtype.kind in "iu" else np.nan
    # In returns and accounts (`sums`) the first numbers count episodes, which are worth at most H
    # each.
    of_episodes = [arrays[name].reshape(-1)[:-1] for name in sums if name in arrays]
    most = max((int(n.max()) for n in of_episodes if n.size and n.dtype.kind in "iu"), default=0)
    if not total <= LARGEST_SUM or most * (H or 1) * REWARD_UNITS >= 2 * LARGEST_SUM:
        raise InvalidFile(
            f"{path}: its numbers are too large for any episodes that were played: the file is "
            "damaged."
        )


def require_sums(n: Ints, x_sa: Ints, z_sa: Ints) -> None:
    """Refuse sums of rewards x in [0, 1], and of x (1 - x), that cannot be those of n visits."""
    if (-(-x_sa // REWARD_UNITS) > n).any():
        raise InvalidCounts(
            "x_sa says more than one unit of reward per visit: they are not sums of these visits."
        )
    # n sum x^2 >= (sum x)^2, so sum x (1 - x) is at most sum x (1 - sum x / n); floats may round
    # that
    x, most = x_sa.astype(np.float64), n * float(REWARD_UNITS)
    too_large = z_sa * np.maximum(most, 1.0) > x * (most - x) * (1.0 + 1e-12)
    # x (1 - x) is below x and below 1 - x
    too_large |= (z_sa > 0) & (z_sa >= np.minimum(x, most - x))
    if too_large.any():
        raise InvalidCounts(
            "z_sa is larger than sums of x (1 - x) can be for rewards x that add up to x_sa: they "
            "are not of these visits. Leave z_sa out."
        )


def weights_of_returns(given: ArrayLike, episodes: int) -> Ints:
    """Return how so many returns are spread over the nodes, checked: whole episodes, and no more
    than there are.
    """
    weights = whole("return_weights", given, (PLACES,), LARGEST_SUM)
    total = sum(weights[:OUTSIDE].tolist())
    if total % EPISODE or total // EPISODE + int(weights[OUTSIDE]) > episodes:
        raise InvalidCounts(
            f"return_weights add up to {total / EPISODE:g} episodes, expected a whole number, and "
            f"at most the {episodes:,} of baseline_returns."
        )
    return weights


def whole(name: str, values: ArrayLike, shape: tuple[int, ...], most: int) -> Ints:
    """Return whole numbers of this shape in 0..most as int64: a copy."""
    given = as_array(name, values, "fiu", "whole numbers", InvalidCounts)
    if given.shape != shape:
        raise InvalidCounts(f"{name} has shape {given.shape}, expected {shape}.")
    if given.dtype.kind == "f":
        bad = np.argwhere(~(np.isfinite(given) & (given == np.floor(given))))
        if bad.size:
            raise InvalidCounts(
                f"{where(name, bad[0])} is {given[tuple(bad[0])]}, expected a whole number."
            )
    if given.size and (given.min() < 0 or given.max() > most):
        bad = np.argwhere((given < 0) | (given > most))
        limit = "2^53" if most == LARGEST_COUNT else "2^62"
        raise InvalidCounts(
            f"{where(name, bad[0])} is {given[tuple(bad[0])]}, expected a count in 0..{limit}."
        )
    return np.array(given, dtype=np.int64, order="C")


def sums_of(name: str, values: ArrayLike | None, size: int) -> Ints:
    """Return numbers of episodes and sums; zeros where none are given."""
    return whole(name, np.zeros(size) if values is None else values, (size,), LARGEST_SUM)


def basis_of(given: ArrayLike) -> Ints:
    """Return a basis: a plain list of HiGHS's five kinds of status."""
    kinds = as_array("basis", given, "iu", "numbers in 0..4", InvalidCounts)
    if kinds.ndim != 1 or ((kinds < 0) | (kinds > 4)).any():
        raise InvalidCounts(
            "basis is damaged, expected a plain list of numbers in 0..4. Leave it out."
        )
    return kinds.astype(np.int8)
