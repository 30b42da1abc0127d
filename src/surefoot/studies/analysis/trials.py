"""What trials show: what each promised and whether it was kept, moments, pairs with the same seed,
differences.

Trial i of all cells draws from the same seed, so agents and scenarios are compared trial by trial.
Trials are rows of a table: `column`, `mean`, `median` and `count` take the name of a field, or a
function of a trial.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from surefoot.agents.promise import UNCERTIFIED
from surefoot.base.arrays import Bools, Floats
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.stats import count_in_words, paired
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.claims import CLAIMS
from surefoot.studies.spec.study import Cell, Scenario

FLAT = 1e-9  # how far a mean of equal values may be from them
END = 0.05  # the last part of a run
MIXERS = ("stepmix", "epsmix")
IN_SUM = tuple(name for name, agent in AGENTS.items() if agent.in_sum)

Trials = Sequence[Trial]
Family = TypeVar("Family")
Of = str | Callable[[Trial], Any]  # a field, or a function of a trial


# -- rows of a table -------------------------------------------------------------------------------


def column(trials: Trials, of: Of) -> list[Any]:
    """Return one value per trial."""
    return [getattr(trial, of) if isinstance(of, str) else of(trial) for trial in trials]


def mean(trials: Trials, of: Of) -> float:
    """Return the mean over trials."""
    return statistics.fmean(column(trials, of))


def median(trials: Trials, of: Of) -> float:
    """Return the median over trials."""
    return float(statistics.median(column(trials, of)))


def count(trials: Trials, of: Of) -> int:
    """Return in how many trials something is so, or is above 0."""
    return sum(map(bool, column(trials, of)))


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the values of each key, in the order in which they come."""
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


# -- what one trial shows --------------------------------------------------------------------------


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


def sum_is_below(trial: Trial) -> bool:
    """Was the sum of the episodes below the floor? What rounding adds up to over so many
    episodes is not a loss.
    """
    return trial.min_cumulative < -VIOLATION_TOLERANCE * trial.episodes


def breaks_promise(trial: Trial) -> bool:
    """Did a run do what it promised not to?

    An agent that keeps the sum of all episodes may be below the floor in some of them: of it the
    sum is judged.
    """
    in_sum = trial.promise.scope == "the sum of all episodes so far"
    return is_promised(trial) and (sum_is_below(trial) if in_sum else trial.violations > 0)


def is_proved(trial: Trial) -> bool:
    """Did the promise rest on proof? It does off the baseline, and on one that a log certified
    above the floor.
    """
    cleared = trial.log_lower is not None and trial.log_lower >= trial.floor
    left = trial.off_baseline is not None or breaks_promise(trial)
    return trial.promise.certified and (left or cleared)


def is_on_trust(trial: Trial) -> bool:
    """Does the run rest on trust: in a baseline that it never left and nothing certifies, or in
    its given value?
    """
    return is_promised(trial) and not is_proved(trial)


def certificate_is_false(trial: Trial) -> bool:
    """Is the true value of the baseline below what a log certified?"""
    return trial.log_lower is not None and trial.log_lower > trial.baseline + VIOLATION_TOLERANCE


def promise_of(trial: Trial) -> str:
    """Return the promise in words, without numbers that differ from trial to trial: all that the
    agent knows.
    """
    return str(trial.promise.in_general())


def promise_beside_truth(trial: Trial) -> str:
    """Return the same, and that its premise is true: a study knows the world, and the agent does
    not.
    """
    return (
        promise_of(trial)
        if baseline_is_below(trial)
        else trial.promise.in_general().where_premise_is_true()
    )


def promises_of(trials: Trials, said: Callable[[Trial], str] = promise_of) -> dict[str, int]:
    """Return the promises in words, and how many trials have each."""
    return dict(Counter(map(said, trials)))


def left_at(trial: Trial) -> float:
    """Return the first episode off the baseline; never is later than everything."""
    return math.inf if trial.off_baseline is None else trial.off_baseline


def optimistic_at(trial: Trial) -> float:
    """Return the first episode of the optimistic policy; never is later than everything."""
    return math.inf if trial.first_optimistic is None else trial.first_optimistic


def ends_of(trial: Trial) -> Any:
    """Return where the bins of a curve end."""
    return trial.curve_episode + trial.curve_episodes


def is_optimal(trial: Trial) -> bool:
    """Is the baseline already optimal?"""
    return trial.optimum - trial.baseline <= FLAT * max(1.0, abs(trial.optimum))


def is_flat(trial: Trial) -> bool:
    """Is every policy the baseline until the run leaves it?"""
    before = ends_of(trial) <= min(left_at(trial), trial.episodes)
    off = abs(trial.curve_mean[before] - trial.baseline)
    return bool((off <= FLAT * max(1.0, abs(trial.baseline))).all())


def at_the_end(trial: Trial) -> float:
    """Return the mean return over the last twentieth of a run, or over its last bin."""
    last = trial.curve_episode >= min((1.0 - END) * trial.episodes, trial.curve_episode[-1])
    return float(
        (trial.curve_mean[last] @ trial.curve_episodes[last]) / trial.curve_episodes[last].sum()
    )


def share_of_gap_closed(trial: Trial) -> float:
    """Return how much of the gap between baseline and optimum a run has closed at its end."""
    if is_optimal(trial):
        return 0.0
    return (at_the_end(trial) - trial.baseline) / (trial.optimum - trial.baseline)


def in_hundredths(trial: Trial) -> Floats:
    """Return the mean return over each hundredth of the episodes: bins are as many as the
    simulation made.
    """
    ends = np.append(0, ends_of(trial))
    sums = np.append(0.0, np.cumsum(trial.curve_mean * trial.curve_episodes))
    cuts = np.linspace(0.0, trial.episodes, 101)
    returns: Floats = np.diff(np.interp(cuts, ends, sums)) / np.diff(cuts)
    return returns


def is_lower(returns: Floats, than: Floats | float) -> Bools:
    """Return which of these returns are lower, by more than rounding."""
    return returns < than - FLAT * np.maximum(1.0, np.abs(than))


# -- cells -----------------------------------------------------------------------------------------


class CellTrials(NamedTuple):
    """The trials of a cell, of which there is at least one."""

    scenario: Scenario
    label: str
    trials: tuple[Trial, ...]
    cell: Cell

    @property
    def heading(self) -> str:
        """The scenario and the agent, in words."""
        return f"{self.scenario.heading}, {self.label}"


def cells_of(results: Results, agents: Sequence[str]) -> list[CellTrials]:
    """Return the cells of these algorithms that have trials, scenario by scenario."""
    return [
        CellTrials(cell.scenario, label_of(trials), trials, cell)
        for cell in results.study.cells
        if cell.agent.agent in agents and (trials := results.trials.get(cell.id, ()))
    ]


def agent_by_agent(results: Results, agents: Sequence[str]) -> list[CellTrials]:
    """Return the same cells, all of an agent together."""
    order = [agent.id for agent in results.study.agents]
    return sorted(cells_of(results, agents), key=lambda one: order.index(one.cell.agent.id))


def by_agent(results: Results, agents: Sequence[str]) -> list[list[CellTrials]]:
    """Return, for each agent of these algorithms, its cells that have trials."""
    cells = agent_by_agent(results, agents)
    return list(grouped((one.cell.agent.id, one) for one in cells).values())


def in_one_scenario(
    results: Results, ones: Sequence[str], others: Sequence[str]
) -> list[tuple[CellTrials, CellTrials]]:
    """Return each cell of the first algorithms with each of the second ones in the same scenario,
    where they have trials in common.
    """
    return [
        (one, other)
        for one, other in product(cells_of(results, ones), cells_of(results, others))
        if one.scenario is other.scenario and common(one.trials, other.trials)
    ]


def label_of(trials: Trials) -> str:
    """Return the agent's label, and that it is NOT CERTIFIED, where a bonus was scaled by hand."""
    label = trials[0].label
    return f"{label} ({UNCERTIFIED})" if any(map(is_uncertified, trials)) else label


def like(scenario: Scenario, but: dict[str, Any] | None = None) -> Scenario:
    """Return a scenario without its names and its floor, and perhaps with something else, to
    compare with others.
    """
    world = dict(sorted(scenario.world.items()))
    return replace(scenario, **{"id": "", "title": "", "floor": 0.0, "world": world, **(but or {})})


def families(
    ones: Iterable[Family], x_of: Callable[[Family], float], rest: Callable[[Family], Any]
) -> list[list[Family]]:
    """Return those that are alike in the rest, by x, which is nan where one is of no family."""
    known = [one for one in ones if not math.isnan(x_of(one))]
    alike = grouped((repr(rest(one)), one) for one in known)
    return [sorted(some, key=x_of) for some in alike.values()]


# -- trial by trial --------------------------------------------------------------------------------


def common(first: Trials, second: Trials) -> list[tuple[Trial, Trial]]:
    """Return the pairs of trials of the same number, which had the same seed."""
    others = {trial.trial: trial for trial in second}
    return [(trial, others[trial.trial]) for trial in first if trial.trial in others]


def _sooner(early: Trials, late: Trials, of: Callable[[Trial], float]) -> list[bool]:
    """Return of each common trial whether the first is earlier."""
    return [of(one) < min(of(other), other.episodes) for one, other in common(early, late)]


def but_in(early: Trials, late: Trials, of: Callable[[Trial], float]) -> str:
    """Return in how many of the common trials the second is later, in words; nothing where it is
    in all of them.
    """
    sooner = _sooner(early, late, of)
    return "" if all(sooner) else f" (in {sum(sooner)} of {len(sooner)} trials)"


def later(early: Trials, late: Trials, of: Callable[[Trial], float]) -> bool:
    """Return whether, in every common trial, the second is later."""
    sooner = _sooner(early, late, of)
    return bool(sooner) and all(sooner)


def more_of(less: Trials, more: Trials, of: Of) -> bool | None:
    """Return whether the second is larger on average over common trials; None where the
    difference may be chance.
    """
    first, second = zip(*common(less, more), strict=True)
    interval = paired(column(first, of), column(second, of)).difference
    if math.isnan(interval.high):
        return interval.mean < 0.0  # one trial: how much that shows is decided in claims.py
    if interval.high < 0.0:
        return True
    return False if interval.low >= 0.0 else None


# -- what is found, in words -----------------------------------------------------------------------


class Found(NamedTuple):
    """What one scenario, or one agent in it, shows."""

    holds: bool | None  # None: a difference that may be chance
    numbers: str
    trials: Trials  # whose number of episodes decides it; none where that decides nothing


Judge = Callable[[Results], Iterator[Found]]
JUDGES: dict[str, Judge] = {}  # by the claim's name


def judges(name: str) -> Callable[[Judge], Judge]:
    """Register the function that judges a claim: `@judges("its-name")` above it."""

    def register(function: Judge) -> Judge:
        if name not in CLAIMS or name in JUDGES:
            reason = "is judged twice" if name in CLAIMS else "is not in spec/claims.py"
            raise ValueError(f"The claim {name!r} {reason}.")
        JUDGES[name] = function
        return function

    return register


def judged(holds: bool | None, numbers: str, trials: Trials, what: str = "the difference") -> Found:
    """Return what was found; of what may be chance that is said."""
    chance = "" if holds is not None else f" ({what} may be chance)"
    return Found(holds, f"{numbers}{chance}", trials)


def number(value: float) -> str:
    """Return a number for people, in millions where it is that large, or in billions."""
    if math.isinf(value):
        return "never"
    for unit, word in ((1e9, "billion"), (1e6, "million")):
        if abs(value) >= unit:
            return f"{value / unit:.3g} {word}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def middle(trials: Trials, of: Of) -> str:
    """Return the median over trials, for people."""
    return number(median(trials, of))


def medians(one: Trials, other: Trials, of: Of) -> str:
    """Return the medians of two cells, for people."""
    return f"{middle(one, of)} and {middle(other, of)}"


def at(episode: float) -> str:
    """Return an episode in words."""
    return "never" if math.isinf(episode) else f"at {number(episode)}"


def off_at(trials: Trials) -> str:
    """Return when the median trial left the baseline, in words."""
    return at(median(trials, left_at))


def hundredths_in_words(which: Bools) -> str:
    """Return how many of the hundredths are meant."""
    return f"{count_in_words(int(which.sum()), len(which), 'hundredth')} of the episodes"
