"""What trials show: what each promised and whether it was kept, moments, pairs with the same seed, differences.

Trial i of all cells draws from the same seed, so agents and scenarios are compared trial by trial.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Bools, Floats
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.stats import count_in_words, paired
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import AgentSpec, Scenario

UNCERTIFIED = "NOT CERTIFIED"
FLAT = 1e-9  # how far a mean of equal values may be from them
END = 0.05  # the last part of a run


def baseline_is_below(trial: Trial) -> bool:
    """Is the baseline truly below the floor?"""
    return trial.baseline < trial.floor - VIOLATION_TOLERANCE


def premise_is_false(trial: Trial) -> bool:
    """Did the promise presume what is not true?"""
    return trial.promise.kind == "false premise"


def is_uncertified(trial: Trial) -> bool:
    """Was a bonus scaled by hand?"""
    return trial.promise.kind == "not certified"


def is_promised(trial: Trial) -> bool:
    """Does the agent promise this floor, certified or trusted, unscaled and with a true premise?"""
    return trial.promise.stands


def breaks_promise(trial: Trial, agent: AgentSpec) -> bool:
    """Did a run do what it promised not to?

    An agent that keeps the sum of all episodes may be below the floor in some of them: of it the sum is judged.
    """
    if not is_promised(trial):
        return False
    if AGENTS[agent.agent].in_sum:
        # What rounding adds up to over so many episodes is not a loss.
        return trial.min_cumulative < -VIOLATION_TOLERANCE * trial.episodes
    return trial.violations > 0


def is_proved(trial: Trial, agent: AgentSpec) -> bool:
    """Did the promise rest on proof? It does off the baseline, and on one that a log certified above the floor."""
    cleared = trial.log_lower is not None and trial.log_lower >= trial.floor
    left = trial.off_baseline is not None or breaks_promise(trial, agent)
    return trial.promise.certified and (left or cleared)


def is_on_trust(trial: Trial, agent: AgentSpec) -> bool:
    """Does the run rest on trust: in a baseline that it never left and nothing certifies, or in its given value?"""
    return is_promised(trial) and not is_proved(trial, agent)


def certificate_is_false(trial: Trial) -> bool:
    """Is the true value of the baseline below what a log certified?"""
    return trial.log_lower is not None and trial.log_lower > trial.baseline + VIOLATION_TOLERANCE


def promise_of(trial: Trial) -> str:
    """Return the promise in words, without numbers that differ from trial to trial: all that the agent knows."""
    return str(trial.promise.in_general())


def promise_beside_truth(trial: Trial) -> str:
    """Return the same, and that its premise is true: a study knows the world, and the agent does not."""
    return promise_of(trial) if baseline_is_below(trial) else trial.promise.in_general().where_premise_is_true()


def promises_of(trials: Sequence[Trial], said: Callable[[Trial], str] = promise_of) -> dict[str, int]:
    """Return the promises in words, and how many trials have each."""
    return dict(Counter(map(said, trials)))


class Found(NamedTuple):
    """What one scenario, or one agent in it, shows."""

    holds: bool | None  # None: a difference that may be chance
    numbers: str
    trials: Sequence[Trial]  # whose number of episodes decides it; none where that decides nothing


Judge = Callable[[Results], Iterator[Found]]


class CellTrials(NamedTuple):
    """The trials of a cell, of which there is at least one."""

    scenario: Scenario
    label: str
    trials: tuple[Trial, ...]


def cells_of(results: Results, agents: Sequence[str]) -> Iterator[CellTrials]:
    """Yield the cells of these algorithms that have trials."""
    for cell in results.study.cells:
        trials = results.trials.get(cell.id, ())
        if cell.agent.agent in agents and trials:
            yield CellTrials(cell.scenario, label_of(trials), trials)


def in_one_scenario(
    results: Results, ones: Sequence[str], others: Sequence[str]
) -> Iterator[tuple[CellTrials, CellTrials]]:
    """Yield each cell of the first algorithms with each of the second ones in the same scenario."""
    for one in cells_of(results, ones):
        for other in cells_of(results, others):
            if other.scenario is one.scenario:
                yield one, other


def label_of(trials: Sequence[Trial]) -> str:
    """Return the agent's label, and that it is NOT CERTIFIED, where a bonus was scaled by hand."""
    label = trials[0].label
    return f"{label} ({UNCERTIFIED})" if any(map(is_uncertified, trials)) else label


def like(scenario: Scenario, but_baseline: bool = False) -> Scenario:
    """Return a scenario without its names and its floor, and perhaps without its baseline, to compare with others."""
    baseline = "usual" if but_baseline else scenario.baseline
    return replace(scenario, id="", title="", floor=0.0, baseline=baseline)


class Method(NamedTuple):
    """How an agent counts and bounds, whatever its algorithm."""

    bounds: str
    scale: float
    pooled: bool | str


def method_of(agent: AgentSpec) -> Method:
    """Return how an agent counts and bounds."""
    return Method(agent.bounds, agent.scale, agent.pooled)


def common(first: Sequence[Trial], second: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    """Return the pairs of trials of the same number, which had the same seed."""
    others = {trial.trial: trial for trial in second}
    return [(trial, others[trial.trial]) for trial in first if trial.trial in others]


def left_at(trial: Trial) -> float:
    """Return the first episode off the baseline; never is later than everything."""
    return math.inf if trial.off_baseline is None else trial.off_baseline


def optimistic_at(trial: Trial) -> float:
    """Return the first episode of the optimistic policy; never is later than everything."""
    return math.inf if trial.first_optimistic is None else trial.first_optimistic


def regret_of(trial: Trial) -> float:
    """Return the regret."""
    return trial.regret


def median(trials: Sequence[Trial], of: Callable[[Trial], float]) -> float:
    """Return the median over trials."""
    return statistics.median(of(trial) for trial in trials)


def number(value: float) -> str:
    """Return a number for people, in millions where it is that large, or in billions."""
    if math.isinf(value):
        return "never"
    if abs(value) >= 1e9:
        return f"{value / 1e9:.3g} billion"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} million"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def at(episode: float) -> str:
    """Return an episode in words."""
    return "never" if math.isinf(episode) else f"at {number(episode)}"


def but_in(early: Sequence[Trial], late: Sequence[Trial], of: Callable[[Trial], float]) -> str:
    """Return in how many of the common trials the second is later, in words; nothing where it is in all of them."""
    pairs = common(early, late)
    some = sum(of(one) < min(of(other), other.episodes) for one, other in pairs)
    return "" if some == len(pairs) else f" (in {some} of {len(pairs)} trials)"


def later(early: Sequence[Trial], late: Sequence[Trial], of: Callable[[Trial], float]) -> bool:
    """Return whether, in every common trial, the second is later."""
    pairs = common(early, late)
    return bool(pairs) and all(of(one) < min(of(other), other.episodes) for one, other in pairs)


def more_of(less: Sequence[Trial], more: Sequence[Trial], of: Callable[[Trial], float]) -> bool | None:
    """Return whether the second is larger on average over common trials; None where the difference may be chance."""
    pairs = common(less, more)
    compared = paired([of(one) for one, _ in pairs], [of(other) for _, other in pairs])
    interval = compared.difference
    if math.isnan(interval.high):
        return interval.mean < 0.0  # one trial: how much that shows is decided in claims.py
    if interval.high < 0.0:
        return True
    return False if interval.low >= 0.0 else None


def judged(holds: bool | None, numbers: str, trials: Sequence[Trial]) -> Found:
    """Return what was found; of a difference that may be chance that is said."""
    return Found(holds, numbers if holds is not None else f"{numbers} (the difference may be chance)", trials)


def both(certain: bool, likely: bool | None, numbers: str, trials: Sequence[Trial]) -> Found:
    """Return what two conditions together show. The second may be None: a difference that may be chance."""
    return judged(likely if certain else False, numbers, trials)


def is_optimal(trial: Trial) -> bool:
    """Is the baseline already optimal?"""
    return trial.optimum - trial.baseline <= FLAT * max(1.0, abs(trial.optimum))


def eta_of(scenario: Scenario) -> float | None:
    """Return eta of the Boltzmann policy that is the baseline, or wrote the log."""
    choice = scenario.baseline if scenario.log is None else scenario.log.behaviour
    return float(choice[1]) if isinstance(choice, tuple) else None


def kind_of(scenario: Scenario) -> str:
    """Return how the floor is relative to the baseline; "" for a floor that is not."""
    return scenario.floor[0] if isinstance(scenario.floor, tuple) else ""


def tightness(scenario: Scenario) -> float:
    """Return how tight a relative floor is, to order floors of one kind."""
    assert isinstance(scenario.floor, tuple)
    kind, share = scenario.floor
    return share if kind == "of_baseline" else -share


def but_length(scenario: Scenario) -> Scenario:
    """Return a scenario without its names, its floor and the length of its log, to compare with others."""
    return replace(like(scenario), log=None if scenario.log is None else replace(scenario.log, episodes=0))


def runs(n: int) -> str:
    """Return a number of runs in words."""
    return "1 run" if n == 1 else f"{n:,} runs"


def is_flat(trial: Trial) -> bool:
    """Is every policy the baseline until the run leaves it?"""
    end = trial.episodes if trial.off_baseline is None else trial.off_baseline
    before = trial.curve_episode + trial.curve_episodes <= end
    return bool((abs(trial.curve_mean[before] - trial.baseline) <= FLAT * max(1.0, abs(trial.baseline))).all())


def at_the_end(trial: Trial) -> float:
    """Return the mean return over the last twentieth of a run, or over its last bin."""
    last = trial.curve_episode >= min((1.0 - END) * trial.episodes, trial.curve_episode[-1])
    return float((trial.curve_mean[last] @ trial.curve_episodes[last]) / trial.curve_episodes[last].sum())


def stays_at_first(trial: Trial) -> bool:
    """Does the run stay on the baseline for at least its first bin?"""
    return trial.off_baseline is None or trial.off_baseline >= trial.curve_episodes[0]


def share_of_gap_closed(trial: Trial) -> float:
    """Return how much of the gap between baseline and optimum a run has closed at its end."""
    return 0.0 if is_optimal(trial) else (at_the_end(trial) - trial.baseline) / (trial.optimum - trial.baseline)


def in_hundredths(trial: Trial) -> Floats:
    """Return the mean return over each hundredth of the episodes: bins are as many as the simulation made."""
    ends = np.append(0, trial.curve_episode + trial.curve_episodes)
    sums = np.append(0.0, np.cumsum(trial.curve_mean * trial.curve_episodes))
    cuts = np.linspace(0.0, trial.episodes, 101)
    returns: Floats = np.diff(np.interp(cuts, ends, sums)) / np.diff(cuts)
    return returns


def is_lower(returns: Floats, than: Floats | float) -> Bools:
    """Return which of these returns are lower, by more than rounding."""
    return returns < than - FLAT * np.maximum(1.0, np.abs(than))


def hundredths_in_words(which: Bools) -> str:
    """Return how many of the hundredths are meant."""
    return f"{count_in_words(int(which.sum()), len(which), 'hundredth')} of the episodes"
