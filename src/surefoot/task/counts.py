"""Counts: everything a plan may depend on. They are the whole state of an agent: saving them saves the agent."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.aliases import alias
from surefoot.base.arrays import AnyArray, Ints
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.validation import (
    REWARD_UNITS,
    as_array,
    either,
    require_bool,
    require_integer,
    require_size,
    where,
)
from surefoot.errors import InvalidCounts, InvalidEpisode, InvalidFile
from surefoot.task.episode import Episode, require_indices
from surefoot.task.problem import LONGEST, Problem, require_problem

LARGEST_SUM = 2**62  # of rewards; a run may double it, see MOST_STEPS in simulation/setup.py
LARGEST_COUNT = 2**53  # up to here a count is exact as a float64
# In a file some fields have the names that they had when the format was fixed.
IN_A_FILE = {
    "baseline_returns": "record",
    "returns_of": "record_of",
    "account": "ledger",
    "account_of": "ledger_of",
}
OPTIONAL = ("H", "s1", "n_start", "logged", "basis", "x_sa", *IN_A_FILE.values())
PLANNED = ("planned_n_sas", *(f"planned_{name}" for name in OPTIONAL))

_Steps = TypeVar("_Steps", int, Ints)


class Counts:
    """How often each next state followed each pair: n_sas (H, S, A, S), or (1, S, A, S) when pooled over steps.

    Beside it is what other certificates read: sums of rewards (x_sa) where rewards are unknown, first states (n_start),
    and the number and the sum of the returns of whole baseline episodes. Rewards are summed in whole multiples of
    2^-20, so no sum depends on the order of its parts. An agent that keeps a sum above the floor, not each episode,
    counts in the account what it has played; one that plans by a linear program keeps the basis of the last solution.

    `add` changes these counts in place (they are the state of an agent); all other methods leave them unchanged.
    """

    __slots__ = ("H", "account", "account_of", "baseline_returns", "basis", "logged", "n_sas", "n_start", "planned",
                 "pooled", "returns_of", "s1", "x_sa")  # fmt: skip
    n_sas: Ints
    x_sa: Ints | None  # (H or 1, S, A) sums of rewards, in units of 2^-20; None where rewards are known
    n_start: Ints  # (S,) how often each state was the first
    baseline_returns: Ints  # (2,) whole baseline episodes, and the sum of their returns in units of 2^-20
    returns_of: str | None  # fingerprint of the baseline and the rewards that the returns belong to; None: unknown
    account: Ints  # (3,) episodes on the baseline, other episodes, and the sum of their certified values, in 2^-20
    account_of: str | None  # fingerprint of the agent, floor, bounds and baseline whose account it is
    basis: Ints | None  # of the solution of the last linear program; None: none was solved
    planned: "Counts | None"  # the counts from which the plan in force was made; None: no plan is in force
    logged: bool  # do they include episodes of a log, which may be older than the choice of the baseline?
    pooled: bool  # one row for all steps?
    H: int | None  # steps in an episode; None where pooled counts were made without H
    s1: int | None  # where episodes start; None: unknown

    record = alias("baseline_returns")
    record_of = alias("returns_of")
    ledger = alias("account")
    ledger_of = alias("account_of")

    def __init__(
        self,
        n_sas: ArrayLike,
        H: int | None = None,
        s1: int | None = None,
        *,
        x_sa: ArrayLike | None = None,
        n_start: ArrayLike | None = None,
        baseline_returns: ArrayLike | None = None,
        returns_of: str | None = None,
        logged: bool = False,
        account: ArrayLike | None = None,
        account_of: str | None = None,
        basis: ArrayLike | None = None,
        copy: bool = True,
        record: ArrayLike | None = None,
        record_of: str | None = None,
        ledger: ArrayLike | None = None,
        ledger_of: str | None = None,
    ) -> None:
        """Take n_sas (H, S, A, S) counted per step, or (S, A, S) pooled over the H steps of each episode. It is copied,
        unless copy=False.

        With H > 1 given, (1, S, A, S) is pooled, too. `record`, `record_of`, `ledger` and `ledger_of` are former names
        of `baseline_returns`, `returns_of`, `account` and `account_of`.
        """
        baseline_returns = either("baseline_returns", baseline_returns, "record", record)
        returns_of = either("returns_of", returns_of, "record_of", record_of)
        account = either("account", account, "ledger", ledger)
        account_of = either("account_of", account_of, "ledger_of", ledger_of)
        given = as_array("n_sas", n_sas, "fiu", "whole numbers", InvalidCounts)
        if given.ndim not in (3, 4) or 0 in given.shape or given.shape[-1] != given.shape[-3]:
            raise InvalidCounts(
                f"n_sas has shape {given.shape}, expected (H, S, A, S), or (S, A, S) pooled over steps."
            )
        given = _whole("n_sas", given, given.shape, LARGEST_COUNT, copy)
        if H is not None:
            H = require_integer("H", H, 1, InvalidCounts)
            if given.ndim == 4 and given.shape[0] == 1:
                given = given if H == 1 else given[0]
            if given.ndim == 4 and given.shape[0] != H:
                raise InvalidCounts(f"H is {H}, but n_sas has {given.shape[0]} steps (shape {given.shape}).")
        self.pooled = given.ndim == 3
        self.H = H if self.pooled else given.shape[0]
        self.s1 = None if s1 is None else require_integer("s1", s1, 0, InvalidCounts)
        self.n_sas = given[None] if self.pooled else given
        rows, S, A, _ = self.n_sas.shape
        self.x_sa = None
        if x_sa is not None:
            sums = np.asarray(x_sa)
            sums = sums[None] if sums.ndim == 2 else sums
            self.x_sa = _whole("x_sa", sums, (rows, S, A), LARGEST_SUM)
            if (-(-self.x_sa // REWARD_UNITS) > self.n_sas.sum(axis=-1)).any():
                raise InvalidCounts(
                    "x_sa says more than one unit of reward per visit: they are not sums of these visits."
                )
        self.n_start = _whole("n_start", np.zeros(S) if n_start is None else n_start, (S,), LARGEST_COUNT)
        self.baseline_returns = _sums("baseline_returns", baseline_returns, 2)
        if self.H is not None and int(self.baseline_returns[1]) > int(self.baseline_returns[0]) * self.H * REWARD_UNITS:
            raise InvalidCounts(
                f"baseline_returns is {self.baseline_returns}: more than {self.H} in an episode of {self.H} steps."
            )
        self.account = _sums("account", account, 3)
        if self.H is not None and int(self.account[2]) > int(self.account[1]) * self.H * REWARD_UNITS:
            raise InvalidCounts(
                f"account is {self.account}: values of more than {self.H} in episodes of {self.H} steps."
            )
        self.account_of = account_of
        self.basis = None if basis is None else _basis(basis)
        self.returns_of = returns_of
        self.logged = require_bool("logged", logged)
        self.planned = None

    @classmethod
    def zeros(cls, problem: Problem, pooled: bool = False) -> Self:
        """The counts of no episodes. `pooled` requires a problem that is stationary."""
        require_problem(problem)
        if require_bool("pooled", pooled):
            require_stationary(problem)
        steps = () if pooled else (problem.H,)
        sums = None if problem.unknown_rows is None else np.zeros((*steps, problem.S, problem.A), dtype=np.int64)
        start = problem.s1 if problem.one_start else None
        shape = (*steps, problem.S, problem.A, problem.S)
        require_size("The counts", shape, InvalidCounts)
        n_sas = np.zeros(shape, dtype=np.int64)
        return cls(n_sas, problem.H, start, x_sa=sums)

    @classmethod
    def from_log(cls, problem: Problem, episodes: Iterable[Episode], pooled: bool = False) -> Self:
        """Counts of logged episodes, to start an agent warm. By calling this you assert four things:

        - the log is complete: no episode was left out because of how it went;
        - whoever chose the actions used no information about the next state that is not in the recorded state;
        - the process is still the one that wrote the log;
        - alpha, support and the coding of states were not chosen by looking at it.

        KL certificates then hold for any baseline, also one made from the same log. The paper's bounds do not cover
        that, so agents with Bernstein refuse these counts. `baseline` of the logged episodes is ignored.
        """
        counts = cls.zeros(problem, pooled)
        for episode in episodes:
            if not isinstance(episode, Episode):
                raise InvalidEpisode(f"Expected sf.Episode(states, actions), found {type(episode).__name__}.")
            counts.add(Episode(episode.states, episode.actions, episode.rewards))
        counts.logged = True
        return counts

    @property
    def n_sa(self) -> Ints:
        """The number of visits of each pair, (H or 1, S, A)."""
        return np.asarray(self.n_sas.sum(axis=-1))

    def row(self, h: _Steps) -> _Steps:
        """The row of these counts in which step h is counted: h, or 0 where all steps are pooled."""
        return h % len(self.n_sas)

    @property
    def episodes(self) -> int:
        """The number of episodes counted so far."""
        if self.H is None:
            raise InvalidCounts("These pooled counts do not say how long an episode is: use Counts(n_sas, H=...).")
        return int(self.n_sas.sum()) // self.H

    def add(self, episode: Episode) -> Self:
        """Count one episode, in place, and return these counts. An invalid episode leaves them unchanged."""
        if not isinstance(episode, Episode):
            raise InvalidEpisode(f"Expected sf.Episode(states, actions), found {type(episode).__name__}.")
        _, S, A, _ = self.n_sas.shape
        H = episode.actions.size
        if self.H is not None and self.H != H:
            raise InvalidEpisode(f"The episode has {H} steps, these counts have {self.H}. Episodes must be complete.")
        for name, values, size in (("states", episode.states, S), ("actions", episode.actions, A)):
            require_indices(name, values, size)
        if self.s1 is not None and episode.states[0] != self.s1:
            raise InvalidEpisode(
                f"states[0] is {episode.states[0]}, expected s1 = {self.s1}. The episode was not counted: the promise "
                "is about episodes that start there."
            )
        paid = None
        if self.x_sa is not None or episode.baseline:
            paid = self._paid(episode)
        pairs = self.row(np.arange(H)), episode.states[:-1], episode.actions
        np.add.at(self.n_sas, (*pairs, episode.states[1:]), 1)
        self.n_start[episode.states[0]] += 1
        if paid is not None:
            if self.x_sa is not None:
                np.add.at(self.x_sa, pairs, paid)
            if episode.baseline:
                self.baseline_returns += np.array([1, paid.sum()])
        if episode.entry is not None:
            self.account += entered(episode.baseline, episode.entry)
        return self

    def _paid(self, episode: Episode) -> Ints:
        """The rewards in whole multiples of 2^-20, rounded down."""
        if episode.rewards is None:
            why = "its rewards are unknown" if self.x_sa is not None else "it was played by the baseline"
            raise InvalidEpisode(
                f"The episode has no rewards, but {why}: build it with sf.Episode.of(problem, states, actions, "
                "rewards). The episode was not counted."
            )
        bad = np.flatnonzero((episode.rewards < 0.0) | (episode.rewards > 1.0))
        if bad.size:
            raise InvalidEpisode(
                f"rewards[{bad[0]}] is {episode.rewards[bad[0]]:g}, expected a reward in [0, 1]. Use "
                "sf.Episode.of(problem, ...) for rewards in your own units. The episode was not counted."
            )
        return np.floor(episode.rewards * REWARD_UNITS).astype(np.int64)

    def merge(self, other: "Counts") -> "Counts":
        """New counts of both. Sound only for complete logs: no episode may be selected by its outcome."""
        if (self.n_sas.shape, self.pooled, self.H) != (other.n_sas.shape, other.pooled, other.H) or (
            self.x_sa is None
        ) != (other.x_sa is None):
            raise InvalidCounts(f"{self} and {other} do not belong together.")
        both = self.copy()
        both.n_sas += other.n_sas
        both.n_start += other.n_start
        whose = [counts.returns_of for counts in (self, other) if counts.baseline_returns[0]]
        accounts = [counts.account_of for counts in (self, other) if counts.account.any()]
        entries = all(counts.account[1] for counts in (self, other))  # proved on two events: together at 2 delta
        if len(set(whose)) > 1 or len(set(accounts)) > 1 or entries:
            raise InvalidCounts(
                "These counts hold returns of different baselines, or accounts of two agents. Use "
                "forget_returns() on one of them."
            )
        both.baseline_returns += other.baseline_returns
        both.account += other.account
        both.returns_of = whose[0] if whose else self.returns_of
        both.account_of = accounts[0] if accounts else self.account_of
        both.basis = None
        both.logged |= other.logged
        if both.x_sa is not None and other.x_sa is not None:
            both.x_sa += other.x_sa
        return both

    def pool(self) -> "Counts":
        """New counts with all steps added up: for stationary worlds only."""
        return self._like(self.n_sas.sum(axis=0), None if self.x_sa is None else self.x_sa.sum(axis=0))

    def copy(self) -> "Counts":
        """New counts with the same numbers, and no plan in force."""
        if self.pooled:
            return self._like(self.n_sas[0], None if self.x_sa is None else self.x_sa[0])
        return self._like(self.n_sas, self.x_sa)

    def copy_for(self, problem: Problem) -> "Counts":
        """New counts with the same numbers, for a run in this problem: with its start and horizon.

        They hold sums of rewards if, and only if, the problem does not know all rewards.
        """
        mine = self.copy()
        mine.H = problem.H
        mine.s1 = problem.s1 if problem.one_start else None
        if problem.unknown_rows is None:
            mine.x_sa = None
        elif mine.x_sa is None:
            mine.x_sa = np.zeros(mine.n_sas.shape[:3], dtype=np.int64)
        return mine

    def forget_returns(self) -> "Counts":
        """New counts without the returns of baseline episodes, and without the account: for another baseline."""
        kept = self.copy()
        kept.baseline_returns[:] = 0
        kept.account[:] = 0
        kept.returns_of = kept.account_of = None
        return kept

    def _like(self, n_sas: Ints, x_sa: Ints | None) -> "Counts":
        return Counts(
            n_sas,
            self.H,
            self.s1,
            x_sa=x_sa,
            n_start=self.n_start,
            baseline_returns=self.baseline_returns,
            returns_of=self.returns_of,
            logged=self.logged,
            account=self.account,
            account_of=self.account_of,
            basis=self.basis,
        )

    def save(self, path: str | Path) -> None:
        """Write as .npz: plain arrays and a line of JSON, nothing that runs when it is read.

        The counts of the plan in force are part of it, so that an agent continues with the same plan.
        """
        write_arrays(path, "counts", self.arrays())

    def arrays(self) -> dict[str, AnyArray]:
        """The content of these counts as named arrays."""
        known = {name: np.int64(value) for name, value in (("H", self.H), ("s1", self.s1)) if value is not None}
        arrays = {"n_sas": self.n_sas[0] if self.pooled else self.n_sas, **known}
        arrays |= {"n_start": self.n_start, "logged": np.bool_(self.logged)}
        for name, key in IN_A_FILE.items():
            value = getattr(self, name)
            if value is not None:
                arrays[key] = np.asarray(value)
        if self.basis is not None:
            arrays["basis"] = self.basis
        if self.x_sa is not None:
            arrays["x_sa"] = self.x_sa[0] if self.pooled else self.x_sa
        if self.planned is not None:
            arrays |= {f"planned_{name}": array for name, array in self.planned.arrays().items()}
        return {name: np.asarray(array) for name, array in arrays.items()}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; validated like any other input."""
        return cls.from_arrays(path, read_arrays(path, {"counts": ("n_sas",)}, (*OPTIONAL, *PLANNED))[1])

    @classmethod
    def from_arrays(cls, path: str | Path, arrays: Mapping[str, AnyArray]) -> Self:
        """Build counts from what `arrays` returned."""
        kinds = {"H": "i", "s1": "i", "logged": "b", "record_of": "U", "ledger_of": "U"}
        for name, kind in kinds.items():
            if name in arrays and (arrays[name].ndim != 0 or arrays[name].dtype.kind != kind):
                meaning = "text" if kind == "U" else "one whole number"
                raise InvalidFile(f"{path}: {name} is not {meaning}: the file is damaged. Restore a copy.")
        H, s1 = (int(arrays[name]) if name in arrays else None for name in ("H", "s1"))
        _require_small(path, arrays, H)
        whose = {name: arrays[IN_A_FILE[name]] for name in ("returns_of", "account_of") if IN_A_FILE[name] in arrays}
        counts = cls(
            arrays["n_sas"],
            H,
            s1,
            x_sa=arrays.get("x_sa"),
            n_start=arrays.get("n_start"),
            baseline_returns=arrays.get(IN_A_FILE["baseline_returns"]),
            logged=bool(arrays.get("logged", False)),
            account=arrays.get(IN_A_FILE["account"]),
            basis=arrays.get("basis"),
        )
        for name, fingerprint in whose.items():
            setattr(counts, name, str(fingerprint))
        before = {name.removeprefix("planned_"): array for name, array in arrays.items() if name.startswith("planned_")}
        if "n_sas" in before:
            counts.planned = Counts.from_arrays(path, before)
            if counts.planned.n_sas.shape != counts.n_sas.shape or (counts.planned.n_sas > counts.n_sas).any():
                raise InvalidFile(f"{path}: its plan is of other counts: the file is damaged. Restore a copy.")
        if counts.s1 is not None and counts.s1 >= counts.n_sas.shape[-1]:
            raise InvalidFile(f"{path}: s1 is {counts.s1}, no state of these counts: the file is damaged.")
        return counts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        same = (self.pooled, self.H, self.logged) == (other.pooled, other.H, other.logged)
        same = same and (self.account_of == other.account_of or not (self.account.any() or other.account.any()))
        mine, its = (np.zeros(0) if counts.x_sa is None else counts.x_sa for counts in (self, other))
        pairs = [
            (self.n_sas, other.n_sas),
            (self.n_start, other.n_start),
            (self.baseline_returns, other.baseline_returns),
            (mine, its),
        ]
        end, its_end = (np.zeros(0) if counts.basis is None else counts.basis for counts in (self, other))
        pairs += [(self.account, other.account), (end, its_end)]
        return same and all(np.array_equal(x, y) for x, y in pairs)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        _, S, A, _ = self.n_sas.shape
        over = "pooled over " if self.pooled else ""
        steps = "?" if self.H is None else self.H
        return f"Counts({over}{steps} steps, S={S}, A={A}, transitions={int(self.n_sas.sum())})"


def require_stationary(problem: Problem) -> None:
    """Refuse to pool counts over steps unless the problem says that the dynamics do not depend on the step."""
    if not problem.stationary:
        raise InvalidCounts(
            "Counts pooled over steps need dynamics that are the same at every step; this problem does not claim so. "
            "If they are, use TabularMDP(P, r, H=...) with P of shape (S, A, S), or Problem(..., stationary=True)."
        )


def check_counts(counts: Counts, problem: Problem, pooled: bool) -> None:
    """Refuse counts that do not belong to this problem, or are not pooled as the agent expects."""
    if not isinstance(counts, Counts):
        raise InvalidCounts(f"Expected Counts, found {type(counts).__name__}. Use sf.Counts(n_sas).")
    expected = (1 if pooled else problem.H, problem.S, problem.A, problem.S)
    if problem.unknown_rows is not None and counts.x_sa is None and counts.n_sas.any():
        raise InvalidCounts(
            "The rewards of this problem are unknown, but these counts hold no sums of rewards. "
            "Begin with Counts.zeros(problem) and add episodes with their rewards."
        )
    if counts.n_sas.shape == expected and counts.pooled == pooled and counts.H not in (None, problem.H):
        raise InvalidCounts(f"Found {counts}: of episodes with {counts.H} steps, but the problem has {problem.H}.")
    if counts.n_sas.shape != expected or counts.pooled != pooled:
        raise InvalidCounts(
            f"Found {counts} of shape {counts.n_sas.shape}, expected {expected} for {problem} with pooled={pooled}. "
            "Use Counts.zeros(problem, pooled=...), or give the agent pooled=True for pooled counts."
        )
    _require_possible(counts, problem)


def _require_possible(counts: Counts, problem: Problem) -> None:
    """Refuse counts with a transition that the user asserted to be impossible: the premise is false."""
    if problem.support_rows is None:
        return
    bad = np.argwhere((counts.n_sas > 0) & ~problem.support)
    if bad.size:
        row, s, a, s_next = bad[0]
        raise InvalidCounts(
            f"Action {a} in state {s} (step {row}) led to state {s_next}, which the problem's support "
            "says is impossible. The premise is false: correct the mask, or leave it out."
        )


def _require_small(path: str | Path, arrays: Mapping[str, AnyArray], H: int | None) -> None:
    """Refuse a file whose totals would overflow int64, before anything is added up in it."""
    if H is not None and H > LONGEST:
        raise InvalidFile(f"{path}: H is {H}, expected at most {LONGEST} steps: the file is damaged. Restore a copy.")
    n_sas = arrays["n_sas"]
    total = float(n_sas.sum(dtype=np.float64)) if n_sas.dtype.kind in "iu" else np.nan
    # In returns and accounts the first numbers count episodes, which are worth at most H each.
    sums = [IN_A_FILE[name] for name in ("baseline_returns", "account")]
    of_episodes = [arrays[name].reshape(-1)[:-1] for name in sums if name in arrays]
    most = max((int(n.max()) for n in of_episodes if n.size and n.dtype.kind in "iu"), default=0)
    if not total <= LARGEST_SUM or most * (H or 1) * REWARD_UNITS >= 2 * LARGEST_SUM:
        raise InvalidFile(f"{path}: its numbers are too large for any episodes that were played: the file is damaged.")


def _whole(name: str, values: ArrayLike, shape: tuple[int, ...], most: int, copy: bool = True) -> Ints:
    """Return whole numbers of this shape in 0..most as int64. With copy=False they are not copied if they are that."""
    given = as_array(name, values, "fiu", "whole numbers", InvalidCounts)
    if given.shape != shape:
        raise InvalidCounts(f"{name} has shape {given.shape}, expected {shape}.")
    if given.dtype.kind == "f":
        bad = np.argwhere(~(np.isfinite(given) & (given == np.floor(given))))
        if bad.size:
            raise InvalidCounts(f"{where(name, bad[0])} is {given[tuple(bad[0])]}, expected a whole number.")
    if given.size and (given.min() < 0 or given.max() > most):
        bad = np.argwhere((given < 0) | (given > most))
        limit = "2^53" if most == LARGEST_COUNT else "2^62"
        raise InvalidCounts(f"{where(name, bad[0])} is {given[tuple(bad[0])]}, expected a count in 0..{limit}.")
    return np.array(given, dtype=np.int64, order="C", copy=True if copy else None)


def _sums(name: str, values: ArrayLike | None, size: int) -> Ints:
    """Return numbers of episodes and sums; zeros where none are given."""
    return _whole(name, np.zeros(size) if values is None else values, (size,), LARGEST_SUM)


def entered(baseline: bool, entry: float) -> Ints:
    """Return what one episode adds to an account; values are rounded down."""
    if baseline:
        return np.array([1, 0, 0])
    return np.array([0, 1, int(np.floor(entry * REWARD_UNITS))])


def _basis(given: ArrayLike) -> Ints:
    """Return a basis: a plain list of HiGHS's five kinds of status."""
    kinds = as_array("basis", given, "iu", "numbers in 0..4", InvalidCounts)
    if kinds.ndim != 1 or ((kinds < 0) | (kinds > 4)).any():
        raise InvalidCounts("basis is damaged, expected a plain list of numbers in 0..4. Leave it out.")
    return kinds.astype(np.int8)
