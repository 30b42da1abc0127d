"""The saved state of `learn`: what a run must remember, the file it is in, and by what a file is
recognised.
"""

import math
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from surefoot import kernels
from surefoot.agents.base import CountingAgent
from surefoot.audit.history import Groups
from surefoot.audit.ledger import Ledger
from surefoot.audit.premises import Premises
from surefoot.audit.watchdog import Watch, Watchdog
from surefoot.base.arrays import AnyArray
from surefoot.base.digest import digest
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.validation import REWARD_UNITS
from surefoot.errors import InvalidCounts, InvalidFile, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.evidence.fitting import check_counts
from surefoot.run.kept_ledger import Remembered, ledger_arrays, remembered

SAVE_SECONDS = 30.0
PREFIX = "counts_"
# of these, the bins that are in use
CURVE = ("bin_sum", "bin_min", "bin_below", "bin_source", "bin_h")
TALLY = ("totals", "by_h", "smallest", "surplus", *CURVE)
NEEDED = (
    *TALLY,
    "counts_n_sas",
    "counts_n_start",
    "counts_baseline_returns",
    "counts_H",
    "earned",
    "width",
    "run",
)


@dataclass(frozen=True)
class RunIdentity:
    """Everything that decides how a run continues."""

    agent: CountingAgent
    environment: tuple[str, str]  # what it is called
    floor: float | None  # rescaled
    episodes: int
    seed: int
    counts: Counts  # those that it started from
    dynamics: str | None  # a digest of the true ones, where they are known
    watchdog: Watchdog | None = None
    source: str = ""  # of the episodes that it numbers

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all but the number of episodes, which is in every saved file: a run may go
        on.
        """
        inside = getattr(self.agent, "learner", None)
        shares = [
            one.replan_share for one in (self.agent, inside) if isinstance(one, CountingAgent)
        ]
        begun = self.counts.arrays(claims=False)
        who = [self.agent.settings, _said(self.agent.as_given), shares, self.watchdog]
        return digest([self.environment, who, self.floor, self.seed, begun, self.dynamics])


def _said(agent: object) -> str | None:
    """Return what a user's own agent says of itself, where it has words of its own: its settings
    are not known here.
    """
    words = type(agent).__repr__
    ours = words is object.__repr__ or str(getattr(words, "__module__", "")).startswith("surefoot.")
    return None if ours else repr(agent)


@dataclass
class State:
    """What a run must remember: all of it is saved."""

    counts: Counts
    tally: "kernels.Tally"
    premises: Premises
    earned: float = 0.0  # sum of observed returns, in the environment's units
    watch: Watch | None = None  # what a watchdog has seen
    history: Groups = field(default_factory=Groups)  # what was observed, for people
    complete: bool = True  # False while an episode is being entered: then it is not saved
    ledger: Ledger | None = None  # the one that is written
    remembered: Remembered | None = None  # the one that the file speaks of

    def save(self, path: str | Path, run: str) -> None:
        """Write the file, complete or not at all."""
        bins = math.ceil(self.tally.done / self.tally.width)
        arrays = {
            name: getattr(self.tally, name)[: bins if name in CURVE else None] for name in TALLY
        }
        about = {"width": np.int64(self.tally.width), "earned": self.earned, "run": run}
        # What the counts are evidence about is what the run is about: its fingerprint says that of
        # them.
        counts = counts_arrays(self.counts, claims=False)
        watch = {} if self.watch is None else self.watch.arrays()
        kept = ledger_arrays(self.ledger, path)  # on disk before the state that remembers it
        beside = {**watch, **self.premises.arrays(), **self.history.arrays(), **kept, **about}
        write_arrays(path, "learning", {**arrays, **counts, **beside})

    def load(self, path: str | Path, run: RunIdentity) -> "State":
        """Return the state in this file, if it is of the same run; this one is the state before
        the first episode.
        """
        _, arrays = read_arrays(path, {"learning": NEEDED})
        if str(arrays["run"]) != run.fingerprint:
            raise InvalidFile(
                f"{path} belongs to another run: the agent, its problem, the environment, the seed "
                "or the watchdog differ. Resume with what it was begun with, or choose another "
                "file."
            )
        tally = self._tally_from(path, arrays)
        problem, done, before = run.agent.problem, tally.done, self.counts.episodes
        if done > run.episodes:
            raise InvalidFile(
                f"{path} holds {done:,} episodes, found episodes={run.episodes:,}. A run goes on, "
                f"never back: resume with {done:,} or more."
            )
        try:
            counts = counts_from(path, arrays)
            counts.origin, counts.ranges = self.counts.origin, self.counts.ranges
            counts.adopt(problem)
            if done > 0:
                counts.number(run.source, before, before + done - 1)
            if not counts.refused:  # else the learner says what that means
                check_counts(counts, problem, run.agent.pooled)
        except InvalidCounts as reason:
            raise InvalidFile(f"{path}: the file is damaged ({reason}) Restore a copy.") from None
        both = [(counts, done + before)]
        if counts.planned is not None:
            both.append((counts.planned, counts.planned.episodes))
        fit = (_are_of(some, episodes, before) for some, episodes in both)
        if done < 0 or not all(fit):
            raise InvalidFile(
                f"{path}: its counts are not those of {done} episodes: the file is damaged."
            )
        earned = arrays["earned"]
        if earned.shape != () or earned.dtype != np.float64 or not np.isfinite(earned):
            raise InvalidFile(
                f"{path}: earned is not one finite number: the file is damaged. Restore a copy."
            )
        watch = None if self.watch is None else _watch_from(self.watch, path, arrays, done)
        try:
            history = Groups.from_arrays(arrays, done)
        except ValueError as reason:
            raise InvalidFile(
                f"{path}: its history is damaged ({reason}). Restore a copy."
            ) from None
        premises = Premises.of(run.agent, counts).restored(path, arrays)
        return State(
            counts,
            tally,
            premises,
            float(earned),
            watch,
            history,
            remembered=remembered(path, arrays),
        )

    def _tally_from(self, path: str | Path, arrays: dict[str, AnyArray]) -> "kernels.Tally":
        """Return the tally in this file."""
        damaged = f"{path}: %s is not as it was written: the file is damaged. Restore a copy."
        width = arrays["width"]
        if width.ndim or width.dtype != np.int64 or width < 1:
            raise InvalidFile(damaged % "width")
        tally = self.tally._replace(width=int(width))
        for name in TALLY:
            mine, its = getattr(tally, name), arrays[name]
            bins = math.ceil(tally.done / tally.width)
            shape = (bins, *mine.shape[1:]) if name in CURVE else mine.shape
            if its.shape != shape or its.dtype != mine.dtype or len(its) > len(mine):
                raise InvalidFile(damaged % name)
            mine[: len(its)] = its
        return tally


def _are_of(counts: Counts, episodes: int, before: int) -> bool:
    """Can these counts be of so many episodes, of which those `before` may have come without
    their first states?
    """
    H, starts = counts.H, int(counts.n_start.sum())
    counted = H - 1 if counts.shared else H  # steps of which the next state is counted
    by_baseline, earned = (int(number) for number in counts.baseline_returns)
    return (
        counts.episodes == episodes
        and counts.total == episodes * counted
        and int(counts.played.sum()) == episodes * H
        and episodes - before <= starts <= episodes
        and by_baseline <= episodes
        and earned <= by_baseline * H * REWARD_UNITS
    )


def _watch_from(fresh: Watch, path: str | Path, arrays: dict[str, AnyArray], done: int) -> Watch:
    """Return what the watchdog had seen after `done` episodes."""
    watch = fresh.restored(path, arrays)
    if watch.episodes > done or not (watch.alarmed or watch.episodes == done):
        raise InvalidFile(
            f"{path}: its watchdog has not seen {done} episodes: the file is damaged."
        )
    return watch


def counts_arrays(counts: Counts, claims: bool = True) -> dict[str, AnyArray]:
    """Return counts as arrays of a file that holds more than these."""
    return {f"{PREFIX}{name}": array for name, array in counts.arrays(claims).items()}


def counts_from(path: str | Path, arrays: dict[str, AnyArray]) -> Counts:
    """Return the counts among the arrays of a file."""
    mine = {name: array for name, array in arrays.items() if name.startswith(PREFIX)}
    return Counts.from_arrays(
        path, {name.removeprefix(PREFIX): array for name, array in mine.items()}
    )


def require_file(save: str | Path | None, resume: bool) -> None:
    """Refuse to go on with a run that has no file."""
    if resume and save is None:
        raise InvalidSetting("resume=True continues from a file. Say which with save=...")


def goes_on(path: str | Path, resume: bool) -> bool:
    """Is there a file to go on with? One that is there is never overwritten."""
    there = Path(path).exists()
    if there and not resume:
        raise InvalidFile(
            f"{path} exists. Continue it with resume=True, or choose another file: nothing is "
            "overwritten."
        )
    return there


class StateFile:
    """The file that the state of a run is saved in, now and then; or no file, where none is
    asked for.
    """

    def __init__(self, path: str | Path | None, run: RunIdentity) -> None:
        """Save this run there."""
        self.path = path
        self.run = run
        # Computed now, because the counts that the run starts from will change.
        self._mark = None if path is None else run.fingerprint
        self._saved = time.perf_counter()

    def begin(self, fresh: State, resume: bool) -> State:
        """Return the state to start from: that in the file, or the fresh one."""
        if self.path is None or not goes_on(self.path, resume):
            return fresh
        return fresh.load(self.path, self.run)

    def save(self, state: State) -> None:
        """Save the state, unless an episode is just being entered."""
        if self.path is not None and self._mark is not None and state.complete:
            state.save(self.path, self._mark)
            self._saved = time.perf_counter()

    def save_now_and_then(self, state: State) -> None:
        """Save the state if that was last done some time ago."""
        if time.perf_counter() - self._saved > SAVE_SECONDS:
            self.save(state)
