"""How claims look at results: cells by algorithm, trials with the same seed side by side, moments, differences.

Trial i of all cells draws from the same seed, so learners and places are compared trial by trial.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from surefoot.studies.analysis.promises import is_uncertified
from surefoot.studies.analysis.stats import paired
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import AgentSpec, Scenario

FLAT = 1e-9  # how far a mean of equal values may be from them
END = 0.05  # the last part of a run


class Found(NamedTuple):
    """What one scenario, or one learner in it, says."""

    holds: bool | None  # None: a difference that may be chance
    numbers: str


Judge = Callable[[Results], Iterator[Found]]


def cells_of(results: Results, agents: Sequence[str]) -> Iterator[tuple[Scenario, str, str, tuple[Trial, ...]]]:
    """Scenario, learner's id, label and trials of the cells of these algorithms, where there are trials."""
    for scenario in results.study.scenarios:
        for learner in results.study.agents:
            trials = results.of(scenario.id, learner.id)
            if learner.agent in agents and trials:
                yield scenario, learner.id, label_of(trials), trials


def label_of(trials: Sequence[Trial]) -> str:
    """Who it is, and that nothing is proved of it, where that is so."""
    return trials[0].label + " (NOT CERTIFIED)" * any(map(is_uncertified, trials))


def like(scenario: Scenario, but_baseline: bool = False) -> Scenario:
    """All of a place but its names and its floor, and perhaps its baseline."""
    baseline = "usual" if but_baseline else scenario.baseline
    return replace(scenario, id="", title="", floor=0.0, baseline=baseline)


def way_of(learner: AgentSpec) -> tuple[object, ...]:
    """How a learner counts and bounds, whatever its algorithm."""
    return learner.bounds, learner.scale, learner.pooled


def common(first: Sequence[Trial], second: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    """Trials of the same number: they had the same seed."""
    others = {trial.trial: trial for trial in second}
    return [(trial, others[trial.trial]) for trial in first if trial.trial in others]


def left_at(trial: Trial) -> float:
    """The first episode off the baseline; never is later than everything."""
    return math.inf if trial.off_baseline is None else trial.off_baseline


def optimistic_at(trial: Trial) -> float:
    """The first episode of the optimist; never is later than everything."""
    return math.inf if trial.first_optimistic is None else trial.first_optimistic


def regret_of(trial: Trial) -> float:
    """What was lost against the optimum."""
    return trial.regret


def worth_of(trial: Trial) -> float:
    """What the baseline is worth."""
    return trial.baseline


def median(trials: Sequence[Trial], of: Callable[[Trial], float]) -> float:
    """The median over trials."""
    return statistics.median(of(trial) for trial in trials)


def number(value: float) -> str:
    """For people: millions where there are some."""
    if math.isinf(value):
        return "never"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} million"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def at(episode: float) -> str:
    """When, in words."""
    return "never" if math.isinf(episode) else f"at {number(episode)}"


def later(early: Sequence[Trial], late: Sequence[Trial], of: Callable[[Trial], float]) -> bool:
    """In every common trial."""
    pairs = common(early, late)
    return bool(pairs) and all(of(one) < min(of(other), other.episodes) for one, other in pairs)


def more_of(less: Sequence[Trial], more: Sequence[Trial], of: Callable[[Trial], float]) -> bool | None:
    """On average over common trials; None where chance may have done it, either way."""
    pairs = common(less, more)
    compared = paired([of(one) for one, _ in pairs], [of(other) for _, other in pairs])
    interval = compared.difference
    if math.isnan(interval.high):
        return interval.mean < 0.0  # one trial: what it can show is judged elsewhere
    if interval.high < 0.0:
        return True
    return False if interval.low >= 0.0 else None


def both(certain: bool, likely: bool | None, numbers: str) -> Found:
    """Two conditions, the second of which may be a matter of chance."""
    if not certain or likely is not None:
        return Found(certain and bool(likely), numbers)
    return Found(None, f"{numbers} (the difference may be chance)")


def is_optimal(trial: Trial) -> bool:
    """Is there nothing to rise to?"""
    return trial.optimum - trial.baseline <= FLAT * max(1.0, abs(trial.optimum))


def eta_of(scenario: Scenario) -> float | None:
    """How sharp the Boltzmann policy is that is the baseline, or wrote the log."""
    choice = scenario.baseline if scenario.log is None else scenario.log.behaviour
    return float(choice[1]) if isinstance(choice, tuple) else None


def kind_of(scenario: Scenario) -> str:
    """Relative to the baseline in which way; "" for a floor that is not."""
    return scenario.floor[0] if isinstance(scenario.floor, tuple) else ""


def tightness(scenario: Scenario) -> float:
    """Of relative floors of one kind."""
    assert isinstance(scenario.floor, tuple)
    kind, share = scenario.floor
    return share if kind == "of_baseline" else -share


def but_length(scenario: Scenario) -> Scenario:
    """A place with a log of no matter what length."""
    return replace(like(scenario), log=None if scenario.log is None else replace(scenario.log, episodes=0))


def runs(n: int) -> str:
    """So many runs, in words."""
    return "1 run" if n == 1 else f"{n:,} runs"


def is_flat(trial: Trial) -> bool:
    """Until it leaves the baseline, every policy is the baseline."""
    end = trial.episodes if trial.off_baseline is None else trial.off_baseline
    before = trial.curve_episode + trial.curve_episodes <= end
    return bool((abs(trial.curve_mean[before] - trial.baseline) <= FLAT * max(1.0, abs(trial.baseline))).all())


def at_the_end(trial: Trial) -> float:
    """The mean return over the last twentieth of a run, or over its last bin."""
    last = trial.curve_episode >= min((1.0 - END) * trial.episodes, trial.curve_episode[-1])
    return float((trial.curve_mean[last] @ trial.curve_episodes[last]) / trial.curve_episodes[last].sum())


def stays_at_first(trial: Trial) -> bool:
    """Is there a time, of a bin at least, in which it has not left?"""
    return trial.off_baseline is None or trial.off_baseline >= trial.curve_episodes[0]


def closed_of_the_way(trial: Trial) -> float:
    """The share of the way from the baseline to the optimum that is behind a run at its end."""
    return 0.0 if is_optimal(trial) else (at_the_end(trial) - trial.baseline) / (trial.optimum - trial.baseline)
