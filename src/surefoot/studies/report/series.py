"""What of the results is drawn: cells that have trials, their curves with bins pooled, their traces, panels by log."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.errors import InvalidSetting
from surefoot.simulation.figures import COLOURS
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Scenario

MOST_POINTS = 300  # of a curve: more cannot be told apart in an axes of five inches
NO_FLOOR = "no floor promised"  # in the promise of a learner without one
NOT_CERTIFIED = "NOT CERTIFIED"


@dataclass(frozen=True)
class Shown:
    """A cell of which there are trials."""

    scenario: Scenario
    number: int  # of the learner in the study, which decides its colour
    label: str
    trials: tuple[Trial, ...]
    wanted: int  # trials

    @property
    def colour(self) -> str:
        """The same in every picture of a study."""
        return COLOURS[self.number % len(COLOURS)]

    @property
    def counted(self) -> str:
        """The label, and how many trials there are where some are missing."""
        there = len(self.trials)
        return self.label if there == self.wanted else f"{self.label} ({there} of {self.wanted} trials)"

    @property
    def line(self) -> Any:
        """A style, for studies of more learners than there are colours."""
        return "-" if self.number < len(COLOURS) else (0, (4, 1.2))

    @property
    def floor(self) -> bool:
        """Does the learner keep a floor?"""
        return NO_FLOOR not in self.trials[0].promise


def shown_cells(results: Results) -> list[Shown]:
    """The cells that have trials, in the study's order."""
    study = results.study
    labels = {cell.agent.id: cell.label for cell in study.cells}
    found = []
    for cell in study.cells:
        trials = results.of(cell.scenario.id, cell.agent.id)
        if not trials:
            continue
        label = labels[cell.agent.id]
        if list(labels.values()).count(label) > 1:
            label += f" ({cell.agent.id})"
        label += ", told V^b" * trials[0].told
        label += f", {NOT_CERTIFIED}" * any(trial.promise.startswith(NOT_CERTIFIED) for trial in trials)
        number = [learner.id for learner in study.agents].index(cell.agent.id)
        found.append(Shown(cell.scenario, number, label, trials, study.trials))
    if not found:
        raise InvalidSetting(f"There is no trial of study {study.name!r} to draw in {results.path}. Run it first.")
    return found


def by_panel(results: Results, cells: Sequence[Shown]) -> list[tuple[Scenario, list[Shown]]]:
    """By scenario, those that have something to show."""
    several = [
        (scenario, [cell for cell in cells if cell.scenario.id == scenario.id]) for scenario in results.study.scenarios
    ]
    return [(scenario, some) for scenario, some in several if some]


def one_world(results: Results) -> bool:
    """Are all panels of one world, so that their returns can be compared?"""
    return all(scenario.world == results.study.scenarios[0].world for scenario in results.study.scenarios)


def learnt(trials: Sequence[Trial]) -> bool:
    """Was the baseline learnt from a log, and so another one in every trial?"""
    return trials[0].log_episodes is not None


def baselines(trials: Sequence[Trial]) -> Floats:
    """What the baseline of each trial is worth; trials of the same number have the same one."""
    return np.array(list({trial.trial: trial.baseline for trial in trials}.values()))


def mean_baseline(trials: Sequence[Trial]) -> float:
    """What the baseline is worth; where it was learnt, the mean over trials."""
    values = baselines(trials)
    return float(values.mean()) if learnt(trials) else float(values[0])


def bins_of(trials: Sequence[Trial], axis: str) -> tuple[Ints, Ints, Ints]:
    """First episode and end of each point to draw, and the bin at which it begins: at most MOST_POINTS of them.

    Bins of the curve that are too many are pooled: equally many each, or, on an axis by factors, more and more.
    """
    trial = trials[0]
    n = len(trial.curve_episode)
    if n <= MOST_POINTS:
        groups = np.arange(n)
    elif axis == "log":
        groups = np.unique(np.geomspace(1, n, MOST_POINTS).astype(np.int64)) - 1
        groups = groups[:-1]  # the last bin belongs to the point before
    else:
        groups = np.arange(MOST_POINTS) * n // MOST_POINTS
    first = trial.curve_episode[groups]
    return first, np.append(first[1:], trial.episodes), groups


def pool(values: Floats, weights: Ints, groups: Ints) -> Floats:
    """Means of bins, pooled; a bin by itself stays what it is to the last bit."""
    if len(groups) == len(values):
        return values
    pooled: Floats = np.add.reduceat(values * weights, groups) / np.add.reduceat(weights, groups)
    return pooled


def traces(trials: Sequence[Trial]) -> tuple[Ints, Floats, Floats, Floats]:
    """Checkpoints, and the means of lower, upper and candidates (checkpoints, candidates) there.

    Trials whose checkpoints are not the same (blocks of other lengths) are interpolated at those of the first.
    """
    k = trials[0].trace_episode

    def at(trial: Trial, values: Floats) -> Floats:
        same = np.array_equal(trial.trace_episode, k)
        return values if same else np.interp(k, trial.trace_episode, values)

    lower = np.mean([at(trial, trial.trace_lower) for trial in trials], axis=0)
    upper = np.mean([at(trial, trial.trace_upper) for trial in trials], axis=0)
    columns = [
        np.mean([at(trial, trial.trace_candidates[:, c]) for trial in trials], axis=0)
        for c in range(trials[0].trace_candidates.shape[1])
    ]
    return k, lower, upper, np.column_stack(columns) if columns else np.zeros((len(k), 0))


def by_h0(candidates: Floats, H: int) -> dict[int, Floats]:
    """Each candidate by its h0. A single one is what is played, and is drawn as that."""
    n = candidates.shape[1]
    h0 = {H + 1: list(range(H + 1)), 2: [0, H]}.get(n, [])
    return dict(zip(h0, candidates.T, strict=True)) if h0 else {}


def h_of(cell: Shown) -> int | None:
    """H, where the learner has a candidate for every h0; None: it has two, or one."""
    trial = cell.trials[0]
    return trial.H if trial.trace_candidates.shape[1] == trial.H + 1 else None


def log_size(cell: Shown) -> int:
    """Episodes in the log; 0: there is none."""
    return 0 if cell.scenario.log is None else cell.scenario.log.episodes


def log_series(cells: Sequence[Shown]) -> dict[str, list[Shown]]:
    """Panels that differ in the size of their log only, by what they have in common and others have not."""

    def facts(scenario: Scenario) -> dict[str, str]:
        log = scenario.log
        assert log is not None
        world = ", ".join(f"{key} = {value}" for key, value in scenario.world.items() if key != "name")
        written = log.behaviour if isinstance(log.behaviour, str) else f"{log.behaviour[0]} = {log.behaviour[1]:g}"
        return {
            "world": f"{scenario.world['name']} ({world})" if world else str(scenario.world["name"]),
            "behaviour": f"behaviour {written}",
            "method": log.method,
            "floor": f"floor {scenario.floor if isinstance(scenario.floor, str) else format(scenario.floor, 'g')}",
            "episodes": f"{scenario.episodes:,} episodes" if scenario.episodes else "",
        }

    every = [facts(cell.scenario) for cell in cells]
    telling = [key for key in (every[0] if every else ()) if len({some[key] for some in every}) > 1]
    series: dict[str, list[Shown]] = {}
    for cell, some in zip(cells, every, strict=True):
        series.setdefault(", ".join(some[key] for key in telling if some[key]), []).append(cell)
    return series
