"""The paper's theorems beside what was measured: exponents fitted on logarithms, and the bounds in numbers.

|N|, the episodes in which something else than the optimistic policy is played, is what Lemma finite bounds. It is known
only of runs that became optimistic: one that did not is too short to tell. A theorem bounds from above: growing more
slowly is as claimed.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from surefoot.agents import AGENTS
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.studies.analysis import theorem
from surefoot.studies.analysis.judges import MIXERS, judges
from surefoot.studies.analysis.stats import PowerLaw, power_law
from surefoot.studies.analysis.trials import (
    CellTrials,
    Found,
    breaks_promise,
    cells_of,
    common,
    is_certified,
    label_of,
    left_at,
    like,
    median,
    more_of,
    number,
    optimistic_at,
    regret_of,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import AgentSpec, Cell
from surefoot.worlds.registry import world as build_world

SAME = 0.1  # numbers that differ by less than this part of them are called the same
POINTS = 20  # of a curve of regret, by equal factors
FIRST_BINS = 5  # a curve is known in bins: earlier than so many of them its logarithm is not
SIZES = {"H": 3.0, "S": 2.0, "A": 1.0}  # exponents of H^3 S^2 A, the larger of Lemma finite's two terms in each
IN_SUM = ("budget-exploration", "conservative-ucbvi")


class Point(NamedTuple):
    """A cell of a family, at the number that the family varies."""

    x: float
    waited: float  # |N|, the median over trials; inf where the median never became optimistic
    trials: tuple[Trial, ...]
    setting: theorem.Setting


class Series(NamedTuple):
    """Cells of one agent that differ in one thing."""

    title: str
    label: str
    points: tuple[Point, ...]  # in the order of x

    @property
    def known(self) -> bool:
        """Did all of them become optimistic?"""
        return all(math.isfinite(point.waited) for point in self.points)

    @property
    def fit(self) -> PowerLaw:
        """The power law of |N| in x."""
        return power_law([point.x for point in self.points], [point.waited for point in self.points])

    @property
    def ends(self) -> tuple[float, float]:
        """The exponents between the first two different x, and between the last two."""
        by_x: dict[float, list[float]] = {}
        for point in self.points:
            by_x.setdefault(point.x, []).append(math.log(point.waited))
        x, y = np.log(list(by_x)), np.array([np.mean(some) for some in by_x.values()])
        return float((y[1] - y[0]) / (x[1] - x[0])), float((y[-1] - y[-2]) / (x[-1] - x[-2]))


def not_optimistic(trial: Trial) -> float:
    """Return |N|: the episodes on the baseline or on mixtures; inf where the run never became optimistic."""
    return math.inf if trial.first_optimistic is None else float(trial.on_baseline + trial.on_mixture)


def setting_of(cell: Cell, trials: Sequence[Trial]) -> theorem.Setting:
    """Return what the theorems speak of, on the paper's scale."""
    sizes = {key: value for key, value in cell.scenario.world.items() if key != "name"}
    scale = build_world(cell.scenario.world["name"], **sizes).problem.units.scale
    one = trials[0]
    kappa, gap = (one.baseline - one.floor) / scale, (one.optimum - one.baseline) / scale
    share = cell.delta / theorem.delta_parts(cell.agent.agent, one.H)
    return theorem.Setting(one.H, one.S, one.A, one.episodes, kappa, gap, share)


def _series(results: Results, title: str, agent: AgentSpec, chosen: Sequence[tuple[float, Cell]]) -> Series | None:
    """Return the cells of an agent in these scenarios; None where fewer than three different x have trials."""
    points = []
    for x, cell in chosen:
        trials = results.trials.get(cell.id, ())
        if trials:
            points.append(Point(x, median(trials, not_optimistic), trials, setting_of(cell, trials)))
    points.sort(key=lambda point: point.x)
    if len({point.x for point in points}) < 3:
        return None
    return Series(title, label_of(points[0].trials), tuple(points))


def _cells(results: Results, agents: Sequence[str]) -> Iterator[tuple[AgentSpec, list[Cell]]]:
    """Yield each agent of these algorithms with its cells that have trials."""
    for agent in results.study.agents:
        if agent.agent in agents:
            there = [cell for cell in results.study.cells if cell.agent is agent and results.trials.get(cell.id)]
            yield agent, there


def by_kappa(results: Results) -> Iterator[Series]:
    """Yield the cells that differ in their floor only, by 1/kappa."""
    for agent, cells in _cells(results, MIXERS):
        alike: dict[str, list[Cell]] = {}
        for cell in cells:
            alike.setdefault(json.dumps(asdict(like(cell.scenario)), sort_keys=True), []).append(cell)
        for some in alike.values():
            above = [(cell, setting_of(cell, results.trials[cell.id]).kappa) for cell in some]
            chosen = [(1.0 / kappa, cell) for cell, kappa in above if kappa > 0.0]
            first = some[0].scenario
            title = str(first.world["name"])
            if isinstance(first.baseline, tuple):
                title += f", eta = {first.baseline[1]:g}"
            series = _series(results, title, agent, chosen)
            if series is not None:
                yield series


def by_size(results: Results) -> Iterator[tuple[str, Series]]:
    """Yield the cells that differ in one size of the world, and in the seed that it was drawn with."""
    for agent, cells in _cells(results, MIXERS):
        for size in SIZES:
            alike: dict[str, list[tuple[float, Cell]]] = {}
            for cell in cells:
                world = {key: value for key, value in cell.scenario.world.items() if key not in (size, "seed")}
                if size in cell.scenario.world:
                    rest = [world, cell.scenario.baseline, cell.scenario.floor, cell.episodes]
                    alike.setdefault(json.dumps(rest), []).append((cell.scenario.world[size], cell))
            for chosen in alike.values():
                series = _series(results, str(chosen[0][1].scenario.world["name"]), agent, chosen)
                if series is not None:
                    yield size, series


def _at_most(limit: float, fit: PowerLaw) -> bool | None:
    """Return whether an exponent is at most so large; None where its interval has the limit inside, or it has none."""
    if fit.high <= limit:
        return True
    return False if fit.low > limit else None


def _grows(limit: float, fit: PowerLaw, numbers: str) -> Found:
    holds = _at_most(limit, fit)
    return Found(holds, numbers if holds is not None else f"{numbers} (the difference to {limit:g} may be chance)")


def _too_short(series: Series) -> Found:
    never = sum(math.isinf(point.waited) for point in series.points)
    return Found(None, f"{series.title}, {series.label}: not optimistic by the end in {never} of {len(series.points)}")


def scientific(value: float) -> str:
    """Return a number that may be very large."""
    return f"{value:.1e}"


# -- regret in K ------------------------------------------------------------------------------------------------------


class Growth(NamedTuple):
    """How the regret of an agent grows with K: in one world, or in the worst of several of one family at each K."""

    title: str
    label: str
    k: np.ndarray
    regret: np.ndarray  # medians over trials
    setting: theorem.Setting  # of the world that is worst at the end

    @property
    def fit(self) -> PowerLaw:
        """The power law of the regret in K."""
        return power_law(self.k.tolist(), self.regret.tolist())


def regret_at(trials: Sequence[Trial], k: np.ndarray) -> np.ndarray:
    """Return the regret of the first k episodes, the median over trials; curves are exact where a bin ends."""
    ends = [trial.curve_episode + trial.curve_episodes for trial in trials]
    curves = [
        np.interp(k, np.append(0, end), np.append(0.0, trial.curve_regret))
        for end, trial in zip(ends, trials, strict=True)
    ]
    return np.asarray(np.median(curves, axis=0))


def by_k(results: Results) -> Iterator[Growth]:
    """Yield each agent in each family of worlds, from where the first of them is optimistic in the median trial."""
    for _, cells in _cells(results, MIXERS):
        families: dict[tuple[str, int], list[Cell]] = {}
        for cell in cells:
            K = results.trials[cell.id][0].episodes
            families.setdefault((str(cell.scenario.world["name"]), K), []).append(cell)
        for (name, K), some in families.items():
            several = [results.trials[cell.id] for cell in some]
            width = int(several[0][0].curve_episodes[0])
            begins = max(FIRST_BINS * width, min(median(trials, optimistic_at) for trials in several))
            if begins >= K / 2:
                continue
            k = np.geomspace(begins, K, POINTS)
            curves = np.array([regret_at(trials, k) for trials in several])
            worst = int(curves[:, -1].argmax())
            title = name if len(some) == 1 else f"{name}, the worst of {len(some)} at each K"
            setting = setting_of(some[worst], several[worst])
            yield Growth(title, label_of(several[0]), k, curves.max(axis=0), setting)


@judges("regret-root-k")
def _regret_root_k(results: Results) -> Iterator[Found]:
    for one in by_k(results):
        if not (one.regret > 0.0).all():
            continue
        it = one.setting
        bound = theorem.regret_bound(it)
        numbers = (
            f"{one.title}, {one.label}: exponent {one.fit} from K = {number(float(one.k[0]))} to {number(it.K)}, where "
            f"the regret is {number(float(one.regret[-1]))}; sqrt(H^3 S A K) = {number(theorem.leading_order(it))}; "
            f"the theorem's bound is {scientific(bound)}{_void(bound, it)}"
        )
        yield _grows(0.5, one.fit, numbers)


def _void(bound: float, it: theorem.Setting) -> str:
    most = it.K * it.H
    return f", above K H = {scientific(most)}, which nothing exceeds" if bound > most else ""


@judges("additive-constant")
def _additive_constant(results: Results) -> Iterator[Found]:
    """Compare the difference to BPI-UCBVI at K/10 and at K, where everybody was optimistic before K/10."""
    free = {cell.scenario.id: cell.trials for cell in cells_of(results, ("bpi-ucbvi",))}
    for _, cells in _cells(results, MIXERS):
        for cell in cells:
            other = free.get(cell.scenario.id, ())
            pairs = common(results.trials[cell.id], other)
            K = results.trials[cell.id][0].episodes
            if not pairs or other[0].episodes != K or any(10 * optimistic_at(mine) > K for mine, _ in pairs):
                continue
            mine, its = ([pair[i] for pair in pairs] for i in (0, 1))
            early, late = (regret_at(mine, np.array([K / 10, K])) - regret_at(its, np.array([K / 10, K]))).tolist()
            it = setting_of(cell, mine)
            waits = median(mine, not_optimistic)
            numbers = (
                f"{cell.scenario.heading}, {label_of(mine)}: {number(early)} more than BPI-UCBVI by K/10, "
                f"{number(late)} by K = {number(K)}; |N| Delta_0 = {number(waits * it.Delta_0)}, of which the theorem "
                f"allows {scientific(theorem.most_not_optimistic(it) * it.Delta_0)}"
            )
            yield Found(late - early <= SAME * abs(early), numbers)


# -- kappa ------------------------------------------------------------------------------------------------------------


def _in_kappa(series: Series) -> str:
    first, last = series.points[0], series.points[-1]
    kappas = f"kappa {first.setting.kappa:.3g} to {last.setting.kappa:.3g}, Delta_0 = {first.setting.Delta_0:.3g}"
    waits = f"{number(first.waited)} to {number(last.waited)} episodes"
    ends = "from {:.2f} at the large to {:.2f} at the small end".format(*series.ends)
    return f"{series.title}, {series.label}, {kappas}: {waits}, exponent of 1/kappa {series.fit}, {ends}"


@judges("waiting-in-kappa")
def _waiting_in_kappa(results: Results) -> Iterator[Found]:
    for series in by_kappa(results):
        if not series.known:
            yield _too_short(series)
            continue
        bound = scientific(theorem.most_not_optimistic(series.points[-1].setting))
        yield _grows(2.0, series.fit, f"{_in_kappa(series)}; Lemma finite allows {bound}")


def _part(series: Series, keep: Sequence[bool]) -> Series | None:
    """Return the points that are kept; None where fewer than three different x are, or some were too short."""
    points = tuple(point for point, kept in zip(series.points, keep, strict=True) if kept)
    part = series._replace(points=points)
    return part if len({point.x for point in points}) >= 3 and part.known else None


@judges("waiting-between")
def _waiting_between(results: Results) -> Iterator[Found]:
    """Judge floors whose kappa is at least Delta_0: there the baseline is certified before the optimistic policy is."""
    for series in by_kappa(results):
        part = _part(series, [point.setting.kappa >= point.setting.Delta_0 for point in series.points])
        if part is not None:
            yield Found(1.0 - SAME <= part.fit.exponent <= 2.0 + SAME, _in_kappa(part))


@judges("waiting-saturates")
def _waiting_saturates(results: Results) -> Iterator[Found]:
    for series in by_kappa(results):
        part = _part(series, [2.0 * point.setting.kappa <= point.setting.Delta_0 for point in series.points])
        if part is not None:
            waits = [point.waited for point in part.points]
            yield Found(max(waits) <= (1.0 + SAME) * min(waits), _in_kappa(part))


# -- sizes ------------------------------------------------------------------------------------------------------------


@judges("waiting-in-sizes")
def _waiting_in_sizes(results: Results) -> Iterator[Found]:
    for size, series in by_size(results):
        if not series.known:
            yield _too_short(series)
            continue
        first, last = series.points[0], series.points[-1]
        numbers = (
            f"{size} = {first.x:g} to {last.x:g}, {series.label}: {number(first.waited)} to {number(last.waited)} "
            f"episodes, exponent {series.fit}, Lemma finite's is {SIZES[size]:g}; it allows "
            f"{scientific(theorem.most_not_optimistic(last.setting))}"
        )
        yield _grows(SIZES[size], series.fit, numbers)


# -- floor 0 ----------------------------------------------------------------------------------------------------------


@judges("gamma-zero")
def _gamma_zero(results: Results) -> Iterator[Found]:
    free = {cell.scenario.id: cell for cell in cells_of(results, ("bpi-ucbvi",))}
    for agent, cells in _cells(results, MIXERS):
        for cell in (one for one in cells if one.scenario.floor == 0.0 and one.scenario.id in free):
            mine, its = results.trials[cell.id], free[cell.scenario.id].trials
            if not common(mine, its) or mine[0].episodes != its[0].episodes:
                continue
            others = max(int(trial.on_baseline + trial.on_mixture) for trial in mine)
            regret, free_regret = median(mine, regret_of), median(its, regret_of)
            it = setting_of(cell, mine)
            numbers = (
                f"{cell.scenario.heading}, {label_of(mine)}: {number(others)} episodes not optimistic, regret "
                f"{number(regret)}, BPI-UCBVI {number(free_regret)}; the corollary's bound is "
                f"{scientific(theorem.optimistic_regret_bound(it))}{_beside(results, agent)}"
            )
            same = abs(regret - free_regret) <= SAME * free_regret
            yield Found(others == 0 and bool(same), numbers)


def _beside(results: Results, agent: AgentSpec) -> str:
    """Return what floors above 0 cost the same agent, in words."""
    words = [
        f"; {scenario.heading}: {number(median(trials, not_optimistic))} episodes, regret "
        f"{number(median(trials, regret_of))}"
        for scenario in results.study.scenarios
        if scenario.floor != 0.0 and (trials := results.of(scenario.id, agent.id))
    ]
    return "".join(words)


# -- Table 1 ----------------------------------------------------------------------------------------------------------


@judges("table-1-constraints")
def _table_1_constraints(results: Results) -> Iterator[Found]:
    """Judge each agent by its own constraint, and count what it does to the other."""
    for agent, cells in _cells(results, tuple(AGENTS)):
        stated = theorem.TABLE_1.get(agent.agent)
        for cell in cells:
            trials = results.trials[cell.id]
            scope = theorem.CUMULATIVE if AGENTS[agent.agent].in_sum else theorem.EPISODIC
            keeps = scope if any(map(is_certified, trials)) else theorem.NONE
            below = sum(trial.violations > 0 for trial in trials)
            in_sum = sum(trial.min_cumulative < -VIOLATION_TOLERANCE * trial.episodes for trial in trials)
            numbers = (
                f"{label_of(trials)} keeps {keeps}{'' if stated is None else f' (Table 1: {stated.constraint})'}"
                f"{', knows V^b' if trials[0].told else ''}: single episodes below in {below} of {len(trials)} runs, "
                f"the sum in {in_sum}; off the baseline {_when(trials)}; regret {number(median(trials, regret_of))} "
                f"of K = {number(trials[0].episodes)}"
            )
            if stated is not None:
                order = theorem.stated_order(agent.agent, setting_of(cell, trials))
                numbers += f", Table 1: {stated.order} = {number(order)}"
            broken = any(breaks_promise(trial, agent) for trial in trials)
            yield Found(not broken and (stated is None or stated.constraint == keeps), numbers)


def _when(trials: Sequence[Trial]) -> str:
    episode = median(trials, left_at)
    return "never" if math.isinf(episode) else f"at {number(episode)}"


@judges("sums-fall-below")
def _sums_fall_below(results: Results) -> Iterator[Found]:
    """Judge whether there is one that does so in every run: it keeps what it promises, and is below all the same."""
    for scenario in results.study.scenarios:
        found = []
        for cell in (one for one in cells_of(results, IN_SUM) if one.scenario is scenario):
            left = [trial for trial in cell.trials if trial.off_baseline is not None]
            if left:
                below = sum(trial.violations > 0 for trial in left)
                mean = sum(trial.violations for trial in left) / len(left)
                words = f"{cell.label} in {below} of {len(left)} runs, {number(mean)} episodes each on average"
                found.append(Found(below == len(left), words))
        if found:
            words = ", ".join(one.numbers for one in found)
            yield Found(any(one.holds for one in found), f"{scenario.heading}: {words}")


@judges("table-1-regret")
def _table_1_regret(results: Results) -> Iterator[Found]:
    """Compare neighbours in the order of Table 1's terms, among agents of runs of the same length."""
    ranks = (("budget-exploration",), MIXERS, ("dope",), ("optpess-lp",))
    for less, more in pairwise(ranks):
        for one in cells_of(results, less):
            for other in (cell for cell in cells_of(results, more) if cell.scenario is one.scenario):
                if common(one.trials, other.trials) and one.trials[0].episodes == other.trials[0].episodes:
                    yield _less_regret(one, other)


def _less_regret(one: CellTrials, other: CellTrials) -> Found:
    numbers = f"{one.label} {number(median(one.trials, regret_of))}, {other.label} "
    numbers += number(median(other.trials, regret_of))
    holds = more_of(one.trials, other.trials, regret_of)
    return Found(holds, numbers if holds is not None else f"{numbers} (the difference may be chance)")
