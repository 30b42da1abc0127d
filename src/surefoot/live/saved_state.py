"""The saved state of `learn`: what a run must remember, the file it is in, and by what a file is recognised."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from surefoot.agents.bpi_ucbvi import BPIUCBVI
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.floors import Relative
from surefoot.agents.identity import text_of
from surefoot.agents.rivals.lp_agent import LPAgent
from surefoot.agents.rivals.ucbvi import UCBVI
from surefoot.assurance.watchdog import Watch, Watchdog
from surefoot.base.arrays import AnyArray
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.validation import REWARD_UNITS
from surefoot.errors import InvalidCounts, InvalidFile
from surefoot.numerics import kernels
from surefoot.simulation.run import new_tally
from surefoot.simulation.setup import RunSetup
from surefoot.task.counts import Counts, check_counts

SAVE_SECONDS = 30.0
TALLY = ("totals", "by_h", "smallest", "surplus", "bin_sum", "bin_min", "bin_below", "bin_source", "bin_h")
NEEDED = (*TALLY, "counts_n_sas", "counts_n_start", "counts_record", "counts_H", "earned", "mark")


@dataclass
class State:
    """What a run must remember: all of it is saved."""

    counts: Counts
    tally: "kernels.Tally"
    earned: float  # sum of observed returns, in the environment's units
    watch: Watch | None = None  # what a watchdog has seen
    complete: bool = True  # False while an episode is being entered: then it is not saved

    @classmethod
    def fresh(cls, setup: RunSetup, counts: Counts, watch: Watch | None) -> Self:
        """Return the state before the first episode."""
        return cls(counts, new_tally(setup, counts), 0.0, watch)

    def save(self, path: str | Path, fingerprint: str) -> None:
        """Write the file, complete or not at all."""
        arrays = {name: getattr(self.tally, name) for name in TALLY}
        counts = {f"counts_{name}": array for name, array in self.counts.arrays().items()}
        watch = {} if self.watch is None else self.watch.arrays()
        write_arrays(path, "learning", {**arrays, **counts, **watch, "earned": self.earned, "mark": fingerprint})

    def load(self, path: str | Path, fingerprint: str, setup: RunSetup) -> "State":
        """Return the state in this file, if it is of the same run; this one is the state before the first episode."""
        _, arrays = read_arrays(path, {"learning": NEEDED})
        if str(arrays["mark"]) != fingerprint:
            raise InvalidFile(
                f"{path} belongs to another run: the agent, its problem, the seed, the watchdog or the number of "
                "episodes differ. Resume with what it was begun with, or choose another file. After a finished run, "
                "continue with counts=."
            )
        for name in TALLY:
            empty = getattr(self.tally, name)
            if arrays[name].shape != empty.shape or arrays[name].dtype != empty.dtype:
                raise InvalidFile(
                    f"{path}: {name} has shape {arrays[name].shape}: the file is damaged. Restore a copy."
                )
            empty[...] = arrays[name]
        agent, done, before = setup.agent, self.tally.done, self.counts.episodes
        kept = {name.removeprefix("counts_"): array for name, array in arrays.items() if name.startswith("counts_")}
        try:
            counts = Counts.from_arrays(path, kept)
            check_counts(counts, agent.problem, agent.pooled)
        except InvalidCounts as reason:
            raise InvalidFile(f"{path}: the file is damaged ({reason}) Restore a copy.") from None
        both = [(counts, done + before)]
        if counts.planned is not None:
            both.append((counts.planned, int(counts.planned.n_sas.sum()) // agent.problem.H))
        fit = (_are_of(some, episodes, before, agent.problem.H) for some, episodes in both)
        if not 0 <= done <= setup.episodes or not all(fit):
            raise InvalidFile(f"{path}: its counts are not those of {done} episodes: the file is damaged.")
        earned = arrays["earned"]
        if earned.shape != () or earned.dtype != np.float64 or not np.isfinite(earned):
            raise InvalidFile(f"{path}: earned is not one finite number: the file is damaged. Restore a copy.")
        watch = None if self.watch is None else _watch_from(self.watch, path, arrays, done)
        return State(counts, self.tally, float(earned), watch)


def _are_of(counts: Counts, episodes: int, before: int, H: int) -> bool:
    """Can these counts be of so many episodes, of which those `before` may have come without their first states?"""
    starts = int(counts.n_start.sum())
    by_baseline, earned = (int(number) for number in counts.baseline_returns)
    return (
        int(counts.n_sas.sum()) == episodes * H
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

    def __init__(self, path: str | Path | None, fingerprint: str) -> None:
        """For the run with this fingerprint."""
        self.path = path
        self.fingerprint = fingerprint
        self._saved = time.perf_counter()

    def begin(self, fresh: State, setup: RunSetup, resume: bool) -> State:
        """Return the state to start from: that in the file, or the fresh one."""
        if self.path is None or not Path(self.path).exists():
            return fresh
        if not resume:
            raise InvalidFile(
                f"{self.path} exists. Continue it with resume=True, or choose another file: nothing is overwritten."
            )
        return fresh.load(self.path, self.fingerprint, setup)

    def save(self, state: State) -> None:
        """Save the state, unless an episode is just being entered."""
        if self.path is not None and state.complete:
            state.save(self.path, self.fingerprint)
            self._saved = time.perf_counter()

    def save_now_and_then(self, state: State) -> None:
        """Save the state if that was last done some time ago."""
        if time.perf_counter() - self._saved > SAVE_SECONDS:
            self.save(state)


def fingerprint(
    setup: RunSetup, environment: Sequence[str], seed: int, counts: Counts, watchdog: Watchdog | None = None
) -> str:
    """Return a digest of everything that decides how a run continues. `environment`: what it is called.

    It is in every saved file: what is hashed, and in which words, must never change (see agents/identity.py).
    """
    agent = setup.agent.as_given
    problem = agent.problem
    numbers = (setup.floor, agent.floor, getattr(agent, "delta", None), getattr(agent, "baseline_at_least", None))
    exactly = f"({', '.join(text_of(number) for number in numbers)})"  # the text of the agent rounds floor and delta
    about = [agent_text(agent), type(agent).__name__, text_of(problem), text_of(problem.units), exactly]
    digest = hashlib.sha256(json.dumps([*environment, *about, seed, setup.episodes]).encode())
    for array in (problem.r_rows, problem.r_next_rows, problem.unknown_rows, problem.support_rows, problem.start):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    if counts.n_sas.any():
        for some in (counts.n_sas, counts.x_sa, counts.n_start, counts.baseline_returns, counts.account, counts.basis):
            digest.update(b"-" if some is None else some.tobytes())
    if setup.world is not None:
        digest.update(setup.world.P_rows.tobytes())
    setup.agent.describe(digest)
    if watchdog is not None:
        digest.update(f"Watchdog(alpha={watchdog.alpha!r})".encode())
    return digest.hexdigest()


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
    if ours and isinstance(agent, UCBVI):
        settings = f"episodes={agent.episodes}, delta={agent.delta:g}, scale={agent.scale:g}, pooled={agent.pooled}"
        return f"UCBVI({text_of(agent.problem)}, {settings}, replan={text_of(agent.replan_rule)})"
    return repr(agent)


def _shared_settings(agent: FloorAgent | LPAgent | BPIUCBVI) -> str:
    settings = f"delta={agent.delta:g}, bounds={text_of(agent.bounds)}, pooled={agent.pooled}"
    return f"{settings}, replan={text_of(agent.replan_rule)}"


def _floor_agent_settings(agent: FloorAgent) -> str:
    floor = agent.floor
    level = f"{100 * (1 - floor.max_loss):g} % of the baseline" if isinstance(floor, Relative) else f"{floor:g}"
    settings = [f"floor={level}", _shared_settings(agent)]
    value = getattr(agent, "baseline_value", None)
    if agent.returns:
        settings.append(f"returns={text_of(agent.returns)}")
    if agent.baseline_at_least and value is None:
        settings.append(f"baseline_at_least={agent.baseline_at_least}")
    if agent.certificate:
        settings.append(f"certificate={text_of(agent.certificate)}")
    if agent.explorer:
        # A function's own repr holds its address, which is another one in every process.
        settings.append(f"explorer={getattr(agent.explorer, '__qualname__', text_of(agent.explorer))}")
    if getattr(agent, "bisections", None):
        settings.append(f"bisections={agent.bisections}")  # type: ignore[attr-defined]
    inside = getattr(agent, "learner", None)
    if inside:
        settings.append(f"learner={getattr(inside, '__qualname__', agent_text(inside))}")
    if value:
        settings.append(f"baseline_value={value}")
    return ", ".join(settings)


def _lp_agent_settings(agent: LPAgent) -> str:
    limits = (
        f"floor={agent.level:g}, baseline_value={agent.baseline_value:g}"
        if agent.cost is None
        else f"budget={agent.budget:g}, baseline_cost={agent.baseline_cost:g}"
    )
    return f"{limits}, episodes={agent.episodes}, {_shared_settings(agent)}"
