"""About how long a study will take, before it is run: from times that were noted, or from short runs that are timed.

It is an estimate. A short run is a trial with fewer episodes. Two of them, with a plan before every episode, show what
a plan takes; two with hardly any plans show what an episode takes between plans; the rule of replanning says how many
plans there will be. (For `growth` that is a bound: a plan for each time that some pair's visits grow by the factor.)
Time is that of the processor: other work on the machine makes it longer.
"""

import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from surefoot.studies.run.store import Folder, noted_times
from surefoot.studies.run.trial import build_scenario, checkpoints, run_trial
from surefoot.studies.spec.study import Cell, Choice

PLANNED = (32, 512)  # episodes of the two runs with a plan before each
BETWEEN = (1_000, 20_000)  # and of the two with hardly any
BLOCKS = (100, 5_000)  # and of two with blocks
RARELY: Choice = ("growth", 1000.0)
SLOW = 0.5  # seconds: after a run that took longer, no longer one is timed
AT_MOST = 15.0  # seconds for all timed runs of a study; cells that are left are taken to be like the others


class Estimate(NamedTuple):
    """What is to be run, and about how long that takes one trial after the other."""

    trials: int
    seconds: float


def estimate(folder: Folder) -> Estimate:
    """Estimate how long the missing trials of a folder take, on one worker."""
    cells = {(cell.scenario.id, cell.agent.id): cell for cell in folder.study.cells}
    left = [cells[scenario, agent] for scenario, agent, _ in folder.missing()]
    noted: dict[str, list[float]] = {}
    for (scenario, agent, _), seconds in noted_times(folder.path).items():
        noted.setdefault(f"{scenario}/{agent}", []).append(seconds)
    each = {cell: sum(times) / len(times) for cell, times in noted.items()}
    started, of_plan = time.perf_counter(), 0.0
    for cell in {cell.id: cell for cell in left}.values():
        if cell.id in each:
            continue
        if time.perf_counter() - started < AT_MOST:
            each[cell.id] = seconds_of(cell)
            of_plan = max(of_plan, each[cell.id] / plans_of(cell))
        else:
            each[cell.id] = of_plan * plans_of(cell)
    return Estimate(len(left), sum(each[cell.id] for cell in left))


def seconds_of(cell: Cell) -> float:
    """Return about how long one trial of this cell takes."""
    plans, between = plans_of(cell), 0.0
    if cell.replan[0] == "blocks":  # whole blocks are drawn at once: what a plan takes, with its block
        few, many = (replace(cell, episodes=min(size, cell.episodes)) for size in BLOCKS)
        rate, constant = _rate(cell, BLOCKS)
        planned = rate * (many.episodes - few.episodes) / max(1.0, plans_of(many) - plans_of(few))
    else:
        planned, constant = _rate(replace(cell, replan="every episode"), PLANNED)
    if cell.replan[0] == "growth":
        between = _rate(replace(cell, replan=RARELY), BETWEEN)[0]
    return constant + planned * plans + between * cell.episodes + _recording(cell)


def _recording(cell: Cell) -> float:
    """Return what the certificates take that are recorded at checkpoints."""
    few = min(PLANNED[0], cell.episodes)
    at = checkpoints(few)
    with_them, without = _timed(cell, few, at), _timed(cell, few)
    return max(0.0, with_them - without) / len(at) * len(checkpoints(cell.episodes))


def plans_of(cell: Cell) -> float:
    """Return how many plans a trial makes by its rule of replanning: about, or at most."""
    K = cell.episodes
    if isinstance(cell.replan, str):
        return K
    kind, value = cell.replan
    if kind == "blocks":
        return min(K, 1.0 / value + math.log(max(1.0, K * value)) / math.log1p(value))
    problem = build_scenario(cell.scenario, cell.delta, cell.seed, 0).world.problem
    rows = 1 if cell.agent.pooled and problem.stationary else problem.H
    return min(K, rows * problem.S * problem.A * math.log(max(2, K)) / math.log(value))


def _rate(cell: Cell, sizes: tuple[int, int]) -> tuple[float, float]:
    """Return seconds per episode, and those that a trial takes however short it is."""
    few, many = (min(size, cell.episodes) for size in sizes)
    _timed(cell, 1)  # it may compile
    first = _timed(cell, few)
    if first > SLOW or many <= few:
        return first / few, 0.0
    rate = max(0.0, _timed(cell, many) - first) / (many - few)
    return rate, max(0.0, first - rate * few)


def _timed(cell: Cell, episodes: int, recorded: Sequence[int] = (1,)) -> float:
    """Return how long a trial of so many episodes takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the study itself will warn
        started = time.process_time()
        run_trial(replace(cell, episodes=episodes), 0, recorded)
        return time.process_time() - started


def workers_of(jobs: int, backend: str, address: str) -> int | None:
    """Return how many trials run at a time; None: a cluster, or what joblib was told, decides."""
    if backend == "configured" or address:
        return None
    return (os.cpu_count() or 1) if jobs == -1 else jobs


def about(seconds: float) -> str:
    """Write a time as people say it."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
