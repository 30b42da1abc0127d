"""Scenarios compared with each other, agent by agent: floors, baselines, and shares of the baseline's value."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from surefoot.studies.analysis.judges import MIXERS, judges
from surefoot.studies.analysis.stats import band
from surefoot.studies.analysis.trials import (
    Found,
    both,
    but_in,
    common,
    eta_of,
    hundredths_in_words,
    in_hundredths,
    is_lower,
    judged,
    kind_of,
    label_of,
    later,
    left_at,
    like,
    median,
    more_of,
    number,
    regret_of,
    tightness,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Scenario


class Compared(NamedTuple):
    """The trials of an agent in two scenarios, in runs of the same length."""

    easier: tuple[Trial, ...]
    harder: tuple[Trial, ...]
    heading: str


def _compared(results: Results, easier: Scenario, harder: Scenario) -> Iterator[Compared]:
    """Yield StepMix and EpsMix in two scenarios."""
    for agent in results.study.agents:
        one, other = results.of(easier.id, agent.id), results.of(harder.id, agent.id)
        if agent.agent in MIXERS and common(one, other) and one[0].episodes == other[0].episodes:
            yield Compared(one, other, f"{label_of(one)}, {easier.heading} and {harder.heading}")


def _delayed(easier: Sequence[Trial], harder: Sequence[Trial], heading: str) -> Found:
    """Judge whether an agent leaves the baseline later, with more regret, in the harder scenario."""
    off = f"off the baseline at {number(median(easier, left_at))} and {number(median(harder, left_at))}"
    regret = f"regret {number(median(easier, regret_of))} and {number(median(harder, regret_of))}"
    numbers = f"{heading}: {off}{but_in(easier, harder, left_at)}, {regret}"
    more = more_of(easier, harder, regret_of)
    return both(later(easier, harder, left_at), more, numbers, (*easier, *harder))


@judges("higher-floor-delays")
def _higher_floor_delays(results: Results) -> Iterator[Found]:
    for easier in results.study.scenarios:
        for harder in results.study.scenarios:
            same = like(easier) == like(harder)
            floors = easier.floor, harder.floor
            if same and all(isinstance(floor, float) for floor in floors) and floors[0] < floors[1]:  # type: ignore[operator]
                yield from (_delayed(*pair) for pair in _compared(results, easier, harder))


def _by_baseline(results: Results) -> Iterator[Compared]:
    """Yield scenarios that differ only in their baseline, the better one first."""
    for better in results.study.scenarios:
        for worse in results.study.scenarios:
            etas = eta_of(better), eta_of(worse)
            same = like(better, but_baseline=True) == like(worse, but_baseline=True) and better.floor == worse.floor
            if same and better.log is None and etas[0] is not None and etas[1] is not None and etas[0] > etas[1]:
                yield from _compared(results, better, worse)


@judges("better-baseline-helps")
def _better_baseline_helps(results: Results) -> Iterator[Found]:
    return (_delayed(*pair) for pair in _by_baseline(results))


@judges("better-baseline-throughout")
def _better_baseline_throughout(results: Results) -> Iterator[Found]:
    return (_never_lower(*pair) for pair in _by_baseline(results))


def _never_lower(better: Sequence[Trial], worse: Sequence[Trial], heading: str) -> Found:
    """Judge every hundredth of the episodes. Where it is lower, chance is excluded at 95 % for all of them together."""
    pairs = common(better, worse)
    ones, others = ([in_hundredths(pair[i]) for pair in pairs] for i in (0, 1))
    mean, other = np.mean(ones, axis=0), np.mean(others, axis=0)
    lower = is_lower(mean, other)
    by = f", by at most {(other - mean).max():.2g}" if lower.any() else ""
    numbers = f"{heading}: a lower return in {hundredths_in_words(lower)}{by}"
    _, _, high = band(np.subtract(ones, others), 1.0 - 0.05 / len(lower))
    by_chance = len(pairs) > 1 and not (high[lower] < 0.0).any()
    if_lower = None if by_chance else False
    return judged(if_lower if lower.any() else True, numbers, (*better, *worse))


@judges("tighter-floor-delays")
def _tighter_floor_delays(results: Results) -> Iterator[Found]:
    """Compare floors that are shares of the baseline's value, from loose to tight."""
    shares = [scenario for scenario in results.study.scenarios if isinstance(scenario.floor, tuple)]
    for looser in sorted(shares, key=tightness):
        tighter = [
            scenario
            for scenario in shares
            if (like(scenario), kind_of(scenario)) == (like(looser), kind_of(looser))
            and tightness(scenario) > tightness(looser)
        ]
        if tighter:
            yield from (_delayed(*pair) for pair in _compared(results, looser, min(tighter, key=tightness)))
