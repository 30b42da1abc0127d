"""The saved state of `learn`: what a run must remember, the file it is in, and by what a file is recognised."""

import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surefoot.agents.base import CountingAgent
from surefoot.agents.bpi_ucbvi import BPIUCBVI
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.identity import floor_text, rewards_text, text_of
from surefoot.agents.replanning import FORMER_DEFAULTS, Replan
from surefoot.agents.rivals.bpi_ucbvi_menard import BPIUCBVIMenard
from surefoot.agents.rivals.lp_agent import LPAgent
from surefoot.agents.rivals.reward_free_safe import RewardFreeSafeRL
from surefoot.agents.rivals.ucbvi import UCBVI
from surefoot.assurance.history import Groups
from surefoot.assurance.ledger import Ledger
from surefoot.assurance.premises import Premises
from surefoot.assurance.watchdog import Watch, Watchdog
from surefoot.base.arrays import AnyArray
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.validation import REWARD_UNITS
from surefoot.bounds import KL
from surefoot.errors import InvalidCounts, InvalidFile
from surefoot.live.kept_ledger import Remembered, ledger_arrays, remembered
from surefoot.numerics import kernels
from surefoot.task.counts import Counts
from surefoot.task.fitting import check_counts
from surefoot.task.sameness import arrays_of
from surefoot.task.transitions import Table

SAVE_SECONDS = 30.0
CURVE = ("bin_sum", "bin_min", "bin_below", "bin_source", "bin_h")  # of these, the bins that are in use
TALLY = ("totals", "by_h", "smallest", "surplus", *CURVE)
NEEDED = (*TALLY, "counts_n_sas", "counts_n_start", "counts_baseline_returns", "counts_H", "earned", "mark")


@dataclass(frozen=True)
class RunIdentity:
    """Everything that decides how a run continues."""

    agent: CountingAgent
    environment: tuple[str, str]  # what it is called
    floor: float | None  # rescaled
    episodes: int
    seed: int
    counts: Counts  # those that it started from
    dynamics: list[AnyArray | None] | None  # the arrays of the true ones, where they are known
    watchdog: Watchdog | None = None
    source: str = ""  # of the episodes that it numbers

    @cached_property
    def fingerprint(self) -> str:
        """A digest, which is in every saved file.

        What is hashed, and in which words, must never change: see agents/identity.py.
        """
        agent, counts = self.agent.as_given, self.counts
        problem = agent.problem
        own = self.agent.rescaled_setting
        delta = getattr(agent, "delta", None)
        numbers = (self.floor, own("floor"), delta, own("baseline_at_least"))
        exactly = f"({', '.join(text_of(number) for number in numbers)})"  # the agent's text rounds floor and delta
        about = [agent_text(agent), type(agent).__name__, text_of(problem), text_of(problem.units), exactly]
        digest = hashlib.sha256(json.dumps([*self.environment, *about, self.seed, self.episodes]).encode())
        after = arrays_of(problem.r_next_rows, problem.paid_lists)
        mask = arrays_of(problem.support_rows, problem.mask_lists)
        for array in (problem.r_rows, *after, problem.unknown_rows, *mask, problem.start):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        if counts.episodes:
            tables = [counts.n_sas] if isinstance(counts.transitions, Table) else counts.entries
            seen = [
                *tables,
                counts.played,
                counts.x_sa,
                counts.n_start,
                counts.baseline_returns,
                counts.account,
                counts.basis,
            ]
            if counts.z_sa is not None and counts.z_sa.any():
                seen.append(counts.z_sa)
            if counts.return_weights.any():
                seen += [counts.return_weights, np.array(counts.return_range)]
            for some in seen:
                digest.update(b"-" if some is None else some.tobytes())
        if self.dynamics is not None:
            for array in self.dynamics:
                digest.update(b"-" if array is None else array.tobytes())
        self.agent.describe(digest)
        if self.watchdog is not None:
            digest.update(f"Watchdog(alpha={self.watchdog.alpha!r})".encode())
        return digest.hexdigest()

    @cached_property
    def however_long(self) -> "RunIdentity":
        """The run without its number of episodes: it may go on. Files of earlier versions are of one number alone."""
        return replace(self, episodes=0)

    @property
    def fingerprints_before(self) -> dict[str, str]:
        """The fingerprints of the same run with the defaults of earlier versions in place of today's, and these."""
        before: dict[str, str] = {}
        for agent, words in _with_former_defaults(self.agent):
            before.setdefault(replace(self, agent=agent).fingerprint, words)  # not all defaults matter to every run
        return before


def begun_before(path: str | Path, what: str, defaults: str) -> str:
    """Return how to go on with what began with defaults of an earlier version."""
    return (
        f"{path} is of {what} that began with the defaults of an earlier version, and keeps those. Give the agent "
        f"{defaults} where you left them out, and resume."
    )


def _with_former_defaults(agent: Any) -> Iterator[tuple[CountingAgent, str]]:
    """Yield the agent with defaults of earlier versions in place of today's, and the words for these."""
    bounds: dict[str, dict[str, object]] = {"": {}}
    if isinstance(agent, FloorAgent):
        first = KL(0.5) if agent.bounds == KL() else agent.bounds
        bounds["bounds=sf.KL(0.5) and returns=None"] = {"bounds": first, "returns": None}
    if isinstance(agent, (FloorAgent, BPIUCBVI)) and agent.bounds == KL():
        bounds['bounds=sf.KL("supports", rewards="coin")'] = {"bounds": KL("supports", rewards="coin")}
    rules: dict[str, dict[str, object]] = {"": {}}
    rules |= {f"replan=sf.{rule}": {"replan": rule} for rule in _former_rules(agent)}
    inside: dict[str, dict[str, object]] = {"": {}}
    learner: Any = getattr(agent, "learner", None)
    for rule in _former_rules(learner):
        inside[f"its learner replan=sf.{rule}"] = {"learner": replace(learner, replan=rule)}
    for chosen in itertools.product(bounds, rules, inside):
        if any(chosen):
            evidence, when, inner = chosen
            changes = bounds[evidence] | rules[when] | inside[inner]
            yield replace(agent, **changes), " and ".join(filter(None, chosen))


def _former_rules(agent: Any) -> list[Replan]:
    """Return the former defaults of when to replan, where this is an agent and has today's."""
    by_default = isinstance(agent, CountingAgent) and hasattr(agent, "__dataclass_fields__") and agent.replan is None
    return [rule for rule in FORMER_DEFAULTS if rule != agent.replan_rule] if by_default else []


class Marks(NamedTuple):
    """By what the file of a run is recognised."""

    mark: str  # with the number of episodes: all that files of earlier versions have
    run: str  # without it


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
    former: bool = False  # is the file of a version that did not remember it?

    def save(self, path: str | Path, marks: "Marks") -> None:
        """Write the file, complete or not at all."""
        bins = math.ceil(self.tally.done / self.tally.width)
        arrays = {name: getattr(self.tally, name)[: bins if name in CURVE else None] for name in TALLY}
        about = {"width": np.int64(self.tally.width), "earned": self.earned, **marks._asdict()}
        # What the counts are evidence about is what the run is about: its fingerprint says that of them.
        counts = {f"counts_{name}": array for name, array in self.counts.arrays(claims=False).items()}
        watch = {} if self.watch is None else self.watch.arrays()
        kept = ledger_arrays(self.ledger, path)  # on disk before the state that remembers it
        beside = {**watch, **self.premises.arrays(), **self.history.arrays(), **kept, **about}
        write_arrays(path, "learning", {**arrays, **counts, **beside})

    def load(self, path: str | Path, run: RunIdentity) -> "State":
        """Return the state in this file, if it is of the same run; this one is the state before the first episode."""
        _, arrays = read_arrays(path, {"learning": NEEDED})
        former = "run" not in arrays  # of a version in which the number of episodes was fixed
        same, found = (run, str(arrays["mark"])) if former else (run.however_long, str(arrays["run"]))
        if found != same.fingerprint:
            defaults = same.fingerprints_before.get(found)
            if defaults is not None:
                raise InvalidFile(begun_before(path, "a run", defaults))
            earlier = (
                " An earlier version wrote it, for one number of episodes: resume with that number, and then with more "
                "if you like. (A run that used returns as evidence then cannot be resumed: they were bounded in "
                "another way.)"
            )
            raise InvalidFile(
                f"{path} belongs to another run: the agent, its problem, the environment, the seed or the watchdog "
                f"differ. Resume with what it was begun with, or choose another file.{earlier if former else ''}"
            )
        tally = self._tally_from(path, arrays, run)
        problem, done, before = run.agent.problem, tally.done, self.counts.episodes
        if done > run.episodes and not former:
            raise InvalidFile(
                f"{path} holds {done:,} episodes, found episodes={run.episodes:,}. A run goes on, never back: resume "
                f"with {done:,} or more."
            )
        kept = {name.removeprefix("counts_"): array for name, array in arrays.items() if name.startswith("counts_")}
        try:
            counts = Counts.from_arrays(path, kept)
            counts.origin, counts.ranges = self.counts.origin, self.counts.ranges
            counts.adopt(problem)
            if done > 0:
                counts.number(run.source, before, before + done - 1)
            check_counts(counts, problem, run.agent.pooled)
        except InvalidCounts as reason:
            raise InvalidFile(f"{path}: the file is damaged ({reason}) Restore a copy.") from None
        both = [(counts, done + before)]
        if counts.planned is not None:
            both.append((counts.planned, counts.planned.episodes))
        fit = (_are_of(some, episodes, before) for some, episodes in both)
        if not 0 <= done <= run.episodes or not all(fit):
            raise InvalidFile(f"{path}: its counts are not those of {done} episodes: the file is damaged.")
        earned = arrays["earned"]
        if earned.shape != () or earned.dtype != np.float64 or not np.isfinite(earned):
            raise InvalidFile(f"{path}: earned is not one finite number: the file is damaged. Restore a copy.")
        watch = None if self.watch is None else _watch_from(self.watch, path, arrays, done)
        try:
            history = Groups.from_arrays(arrays, done)
        except ValueError as reason:
            raise InvalidFile(f"{path}: its history is damaged ({reason}). Restore a copy.") from None
        premises = self.premises.restored(path, arrays)
        return State(
            counts, tally, premises, float(earned), watch, history, remembered=remembered(path, arrays), former=former
        )

    def _tally_from(self, path: str | Path, arrays: dict[str, AnyArray], run: RunIdentity) -> "kernels.Tally":
        """Return the tally in this file; of earlier versions it has all bins of the number of episodes."""
        damaged = f"{path}: %s is not as it was written: the file is damaged. Restore a copy."
        most = len(self.tally.bin_sum)
        before = kernels.empty_tally(len(self.tally.by_h) - 1, run.episodes, most)
        width, bins = arrays.get("width", np.int64(before.width)), len(before.bin_sum)
        if width.ndim or width.dtype != np.int64 or width < 1:
            raise InvalidFile(damaged % "width")
        tally = self.tally._replace(width=int(width))
        for name in TALLY:
            mine, its = getattr(tally, name), arrays[name]
            if name in CURVE and "width" in arrays:
                bins = math.ceil(tally.done / tally.width)
            shape = (bins, *mine.shape[1:]) if name in CURVE else mine.shape
            if its.shape != shape or its.dtype != mine.dtype or len(its) > len(mine):
                raise InvalidFile(damaged % name)
            mine[: len(its)] = its
        return tally


def _are_of(counts: Counts, episodes: int, before: int) -> bool:
    """Can these counts be of so many episodes, of which those `before` may have come without their first states?"""
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
    nothing = np.zeros(0)
    watch = fresh.restored(path, *(arrays.get(name, nothing) for name in fresh.arrays()))
    if watch.episodes > done or not (watch.alarmed or watch.episodes == done):
        raise InvalidFile(f"{path}: its watchdog has not seen {done} episodes: the file is damaged.")
    return watch


class StateFile:
    """The file that the state of a run is saved in, now and then; or no file, where none is asked for."""

    def __init__(self, path: str | Path | None, run: RunIdentity) -> None:
        """Save this run there."""
        self.path = path
        self.run = run
        # Computed now, because the counts that the run starts from will change.
        self._marks = None if path is None else Marks(run.fingerprint, run.however_long.fingerprint)
        self._saved = time.perf_counter()

    def begin(self, fresh: State, resume: bool) -> State:
        """Return the state to start from: that in the file, or the fresh one."""
        if self.path is None or not Path(self.path).exists():
            return fresh
        if not resume:
            raise InvalidFile(
                f"{self.path} exists. Continue it with resume=True, or choose another file: nothing is overwritten."
            )
        return fresh.load(self.path, self.run)

    def save(self, state: State) -> None:
        """Save the state, unless an episode is just being entered."""
        if self.path is not None and self._marks is not None and state.complete:
            state.save(self.path, self._marks)
            self._saved = time.perf_counter()

    def save_now_and_then(self, state: State) -> None:
        """Save the state if that was last done some time ago."""
        if time.perf_counter() - self._saved > SAVE_SECONDS:
            self.save(state)


def agent_text(agent: object) -> str:
    """Return an agent's class and settings in the words of the first saved files; of a user's own agent, its `repr`."""
    kind = type(agent)
    if kind.__repr__ is object.__repr__:  # it holds an address, which is another one in every process
        return kind.__qualname__
    ours = str(getattr(kind.__repr__, "__module__", "")).startswith("surefoot.")
    if ours and isinstance(agent, FloorAgent):
        return f"{kind.__name__}({text_of(agent.problem)}, {_floor_agent_settings(agent)})"
    if ours and isinstance(agent, LPAgent):
        return f"{kind.__name__}({text_of(agent.problem)}, {_lp_agent_settings(agent)})"
    if ours and isinstance(agent, BPIUCBVI):
        return f"BPIUCBVI({text_of(agent.problem)}, {_shared_settings(agent)})"
    if ours and isinstance(agent, UCBVI | BPIUCBVIMenard | RewardFreeSafeRL):
        return f"{kind.__name__}({text_of(agent.problem)}, {_scaled_agent_settings(agent)})"
    return repr(agent)


def _shared_settings(agent: FloorAgent | LPAgent | BPIUCBVI) -> str:
    bounds = f"{text_of(agent.bounds)}{rewards_text(agent.bounds, agent.problem)}"
    settings = f"delta={agent.delta:g}, bounds={bounds}, pooled={agent.pooled}"
    return f"{settings}, replan={text_of(agent.replan_rule)}"


def _floor_agent_settings(agent: FloorAgent) -> str:
    own = agent.rescaled_setting
    floor, at_least, value = own("floor"), own("baseline_at_least"), None
    if hasattr(agent, "baseline_value"):
        value = own("baseline_value")
    level = floor_text(floor) if isinstance(floor, BaselineFloor) else f"{floor:g}"
    settings = [f"floor={level}", _shared_settings(agent)]
    if agent.returns:
        settings.append(f"returns={text_of(agent.returns)}")
    if at_least and value is None:
        settings.append(f"baseline_at_least={at_least}")
    if agent.certificate:
        settings.append(f"certificate={text_of(agent.certificate)}")
    if agent.explorer:
        # A function's own repr holds its address, which is another one in every process.
        settings.append(f"explorer={getattr(agent.explorer, '__qualname__', text_of(agent.explorer))}")
    if agent.bisections:
        settings.append(f"bisections={agent.bisections}")
    inside = getattr(agent, "learner", None)
    if inside:
        settings.append(f"learner={getattr(inside, '__qualname__', agent_text(inside))}")
    if value:
        settings.append(f"baseline_value={value}")
    return ", ".join(settings)


def _scaled_agent_settings(agent: UCBVI | BPIUCBVIMenard | RewardFreeSafeRL) -> str:
    settings = f"delta={agent.delta:g}, scale={agent.scale:g}, pooled={agent.pooled}"
    if isinstance(agent, UCBVI):
        settings = f"episodes={agent.episodes}, {settings}"
    if isinstance(agent, RewardFreeSafeRL):
        value = agent.rescaled_setting("baseline_value")
        settings = f"floor={agent.level!r}, baseline_value={value!r}, accuracy={agent.accuracy!r}, {settings}"
    return f"{settings}, replan={text_of(agent.replan_rule)}"


def _lp_agent_settings(agent: LPAgent) -> str:
    limits = (
        f"floor={agent.level:g}, baseline_value={agent.rescaled_setting('baseline_value'):g}"
        if agent.cost is None
        else f"budget={agent.budget:g}, baseline_cost={agent.baseline_cost:g}"
    )
    return f"{limits}, episodes={agent.episodes}, {_shared_settings(agent)}"
