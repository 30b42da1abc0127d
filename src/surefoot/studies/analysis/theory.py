"""The paper's theorems beside what was measured: the bounds in numbers, and exponents fitted on logarithms.

What the paper claims is a bound with its constants, and that is what is judged in its name. An exponent fitted over a
few sizes cannot refute a bound: exponents are claims of ours.

|N|, the episodes in which something else than the optimistic policy is played, is what Lemma finite bounds. How it
grows is known only of runs that became optimistic: one that did not is too short to tell.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from surefoot.studies.analysis import theorem
from surefoot.studies.analysis.judges import MIXERS, judges
from surefoot.studies.analysis.stats import Interval, PowerLaw, mean_interval, paired, power_law, span_in_words
from surefoot.studies.analysis.trials import (
    FLAT,
    Found,
    cells_of,
    common,
    judged,
    label_of,
    like,
    median,
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
LEAST_BINS = 10  # a curve is known where bins end: from fewer than so many no exponent is fitted
SIZES = {"H": 3.0, "S": 2.0, "A": 1.0}  # exponents of H^3 S^2 A, the larger of Lemma finite's two terms in each


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
    def trials(self) -> tuple[Trial, ...]:
        """Those of all points."""
        return tuple(trial for point in self.points for trial in point.trials)

    @property
    def fit(self) -> PowerLaw:
        """The power law of |N| in x."""
        return self.fit_over(lambda point: 1.0)

    def fit_over(self, factor: Callable[[Point], float]) -> PowerLaw:
        """Return the power law in x of |N| divided by a factor."""
        return power_law([point.x for point in self.points], [point.waited / factor(point) for point in self.points])

    @property
    def ends(self) -> tuple[float, float]:
        """The exponents between the first two different x, and between the last two."""
        by_x: dict[float, list[float]] = {}
        for point in self.points:
            by_x.setdefault(point.x, []).append(math.log(point.waited))
        x, y = np.log(list(by_x)), np.array([np.mean(some) for some in by_x.values()])
        return float((y[1] - y[0]) / (x[1] - x[0])), float((y[-1] - y[-2]) / (x[-1] - x[-2]))


def so_far(trial: Trial) -> float:
    """Return |N| of the episodes that were played: those on the baseline or on mixtures."""
    return float(trial.on_baseline + trial.on_mixture)


def not_optimistic(trial: Trial) -> float:
    """Return |N|, however long the run goes on; inf where it never became optimistic."""
    return math.inf if trial.first_optimistic is None else so_far(trial)


def scale_of(cell: Cell) -> float:
    """Return what a reward of 1 on the paper's scale is in the world's own unit."""
    sizes = {key: value for key, value in cell.scenario.world.items() if key != "name"}
    return float(build_world(cell.scenario.world["name"], **sizes).problem.units.scale)


def setting_of(cell: Cell, trials: Sequence[Trial]) -> theorem.Setting:
    """Return what the theorems speak of, on the paper's scale."""
    scale, one = scale_of(cell), trials[0]
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


def cells_by_agent(results: Results, agents: Sequence[str]) -> Iterator[tuple[AgentSpec, list[Cell]]]:
    """Yield each agent of these algorithms with its cells that have trials."""
    for agent in results.study.agents:
        if agent.agent in agents:
            there = [cell for cell in results.study.cells if cell.agent is agent and results.trials.get(cell.id)]
            yield agent, there


def by_kappa(results: Results) -> Iterator[Series]:
    """Yield the cells that differ in their floor only, by 1/kappa."""
    for agent, cells in cells_by_agent(results, MIXERS):
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
    for agent, cells in cells_by_agent(results, MIXERS):
        for size in SIZES:
            alike: dict[str, list[tuple[float, Cell]]] = {}
            for cell in cells:
                world = {key: value for key, value in cell.scenario.world.items() if key not in (size, "seed")}
                if size in cell.scenario.world:
                    rest = asdict(replace(cell.scenario, id="", title="", world=world, episodes=cell.episodes))
                    key = json.dumps(rest, sort_keys=True)
                    alike.setdefault(key, []).append((cell.scenario.world[size], cell))
            for chosen in alike.values():
                series = _series(results, str(chosen[0][1].scenario.world["name"]), agent, chosen)
                if series is not None:
                    yield size, series


def _at_most(limit: float, known: PowerLaw | Interval) -> bool | None:
    """Return whether a number is at most so large; None where its interval has the limit inside, or it has none."""
    if known.high <= limit:
        return True
    return False if known.low > limit else None


def _grows(limit: float, known: PowerLaw | Interval, numbers: str, trials: Sequence[Trial]) -> Found:
    holds = _at_most(limit, known)
    chance = "" if holds is not None else f" (the difference to {limit:g} may be chance)"
    return Found(holds, f"{numbers}{chance}", trials)


def _too_short(series: Series) -> Found:
    never = sum(math.isinf(point.waited) for point in series.points)
    numbers = f"{series.title}, {series.label}: not optimistic by the end in {never} of {len(series.points)}"
    return Found(None, numbers, series.trials)


def scientific(value: float) -> str:
    """Return a number that may be very large."""
    return f"{value:.1e}"


# -- the theorems' bounds ---------------------------------------------------------------------------------------------


def _bounded(
    results: Results,
    measured: Callable[[Cell, Trial], float],
    allowed: Callable[[theorem.Setting], float],
    most: Callable[[theorem.Setting], float],
    words: str,
) -> Iterator[Found]:
    """Compare every run with what is allowed, and tell of each agent the scenario that is nearest to it.

    `most` is what nothing exceeds, whatever is played: a bound above it cannot be broken.
    """
    for _, cells in cells_by_agent(results, MIXERS):
        there = [(cell, setting_of(cell, results.trials[cell.id])) for cell in cells]
        there = [(cell, it) for cell, it in there if it.kappa > 0.0]
        if not there:
            continue
        # What was measured at the most, what is allowed, and where.
        found = [(max(measured(cell, one) for one in results.trials[cell.id]), allowed(it), cell) for cell, it in there]
        largest, bound, cell = max(found, key=lambda one: one[0] / one[1])
        empty = sum(allowed(it) > most(it) for _, it in there)
        numbers = (
            f"{label_of(results.trials[cell.id])}: nearest to it in {cell.scenario.heading}, {number(largest)} of "
            f"{scientific(bound)}"
        )
        if empty:
            numbers += f"; the bound is above {words} in {empty} of {len(there)} scenarios, where nothing can break it"
        trials = [trial for cell, _ in there for trial in results.trials[cell.id]]
        yield Found(all(value <= limit for value, limit, _ in found), numbers, trials)


@judges("regret-bound")
def _regret_bound(results: Results) -> Iterator[Found]:
    return _bounded(
        results,
        lambda cell, trial: trial.regret / scale_of(cell),
        theorem.regret_bound,
        lambda it: float(it.K * it.H),
        "K H",
    )


@judges("waiting-bound")
def _waiting_bound(results: Results) -> Iterator[Found]:
    """Judge |N| of the episodes that were played: the lemma bounds it for every K, whether or not the run is done."""
    return _bounded(
        results, lambda cell, trial: so_far(trial), theorem.most_not_optimistic, lambda it: float(it.K), "K"
    )


# -- regret in K ------------------------------------------------------------------------------------------------------


class Added(NamedTuple):
    """What a run's regret grows by after the bin of its first optimistic episode: curves are exact where bins end."""

    k: np.ndarray  # episodes since then, by about equal factors
    regret: np.ndarray  # added since then

    @property
    def total(self) -> float:
        """All that is added."""
        return float(self.regret[-1]) if len(self.regret) else 0.0


def regret_at(trials: Sequence[Trial], k: np.ndarray) -> np.ndarray:
    """Return the regret of the first k episodes of each trial (trials, k)."""
    curves = [
        np.interp(k, np.append(0, trial.curve_episode + trial.curve_episodes), np.append(0.0, trial.curve_regret))
        for trial in trials
    ]
    return np.array(curves)


def added(trial: Trial) -> Added:
    """Return what is added after the first optimistic episode; nothing is known where too few bins follow it."""
    ends = trial.curve_episode + trial.curve_episodes
    first = int(np.searchsorted(ends, optimistic_at(trial), side="right"))
    after = len(ends) - 1 - first
    if after < LEAST_BINS:
        return Added(np.empty(0), np.empty(0))
    chosen = first + np.unique(np.geomspace(1, after, POINTS).round().astype(int))
    return Added(ends[chosen] - ends[first], trial.curve_regret[chosen] - trial.curve_regret[first])


def _exponent(trial: Trial) -> float | None:
    """Return the exponent of what is added; None where nothing is, or at fewer than three points."""
    k, regret = added(trial)
    there = regret > FLAT * max(1.0, trial.regret)  # less is what rounding adds up to
    return power_law(k[there].tolist(), regret[there].tolist()).exponent if there.sum() >= 3 else None


@judges("regret-root-k")
def _regret_root_k(results: Results) -> Iterator[Found]:
    """Fit what each run adds after its first optimistic episode. All before is the additive constant, not sqrt(K)."""
    for _, cells in cells_by_agent(results, MIXERS):
        for cell in cells:
            trials = results.trials[cell.id]
            who, all_of_it = f"{cell.scenario.heading}, {label_of(trials)}", median(trials, regret_of)
            exponents = [exponent for trial in trials if (exponent := _exponent(trial)) is not None]
            if any(not len(added(trial).k) for trial in trials):
                yield Found(None, f"{who}: optimistic too late, or never, to see the regret grow after it", trials)
                continue
            later = median(trials, lambda trial: added(trial).total)
            if len(exponents) < len(trials):
                numbers = (
                    f"{who}: nothing is added after the first optimistic episode in {len(trials) - len(exponents)} of "
                    f"{len(trials)} runs; the additive constant is all of the regret of {number(all_of_it)}"
                )
                yield Found(None, numbers, trials)
                continue
            known = mean_interval(exponents)
            numbers = (
                f"{who}: {number(later)} of the regret of {number(all_of_it)} ({later / all_of_it:.1%}) are added "
                f"after the first optimistic episode, the rest is the additive constant; exponent {_interval(known)} "
                f"in K, one fit per run"
            )
            yield _grows(0.5, known, numbers, trials)


def _interval(known: Interval, show: Callable[[float], str] = "{:.2f}".format) -> str:
    return f"{show(known.mean)} ({span_in_words(known, show)})"


@judges("additive-constant")
def _additive_constant(results: Results) -> Iterator[Found]:
    """Compare the difference to BPI-UCBVI at K/10 and at K, trial by trial; it must not grow.

    Where a run is not optimistic by K/10, the constant is not complete by then: these results cannot tell.
    """
    free = {cell.scenario.id: cell.trials for cell in cells_of(results, ("bpi-ucbvi",))}
    for _, cells in cells_by_agent(results, MIXERS):
        for cell in cells:
            other = free.get(cell.scenario.id, ())
            pairs = common(results.trials[cell.id], other)
            K = results.trials[cell.id][0].episodes
            if not pairs or other[0].episodes != K:
                continue
            mine, its = ([pair[i] for pair in pairs] for i in (0, 1))
            moments = np.array([K / 10, K])
            early, late = (regret_at(mine, moments) - regret_at(its, moments)).T
            it = setting_of(cell, mine)
            numbers = (
                f"{cell.scenario.heading}, {label_of(mine)}: {number(float(early.mean()))} more than BPI-UCBVI by "
                f"K/10, {number(float(late.mean()))} by K = {number(K)}, on average"
            )
            slow = sum(10 * optimistic_at(trial) > K for trial in mine)
            if slow:
                slow_in = f"not optimistic by K/10 in {slow} of {len(mine)} runs, too late to tell"
                yield Found(None, f"{numbers}; {slow_in}", (*mine, *its))
                continue
            grew = mean_interval((late - early).tolist())
            waits = median(mine, not_optimistic)
            numbers += (
                f", a growth of {_interval(grew, number)}; |N| Delta_0 = {number(waits * it.Delta_0)}, of which the "
                f"theorem allows {scientific(theorem.most_not_optimistic(it) * it.Delta_0)}"
            )
            yield judged(_at_most(SAME * abs(float(early.mean())), grew), numbers, (*mine, *its))


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
        yield _grows(2.0, series.fit, _in_kappa(series), series.trials)


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
            yield _is_between(1.0, 2.0, part)


def _is_between(least: float, most: float, part: Series) -> Found:
    """Judge an exponent by its interval: inside, outside, or across a limit."""
    fit, numbers = part.fit, _in_kappa(part)
    if least <= fit.low and fit.high <= most:
        return Found(True, numbers, part.trials)
    if fit.high < least or fit.low > most:
        return Found(False, numbers, part.trials)
    return Found(None, f"{numbers} (whether it is between {least:g} and {most:g} may be chance)", part.trials)


@judges("waiting-saturates")
def _waiting_saturates(results: Results) -> Iterator[Found]:
    for series in by_kappa(results):
        part = _part(series, [2.0 * point.setting.kappa <= point.setting.Delta_0 for point in series.points])
        if part is not None:
            waits = [point.waited for point in part.points]
            yield Found(max(waits) <= (1.0 + SAME) * min(waits), _in_kappa(part), part.trials)


# -- sizes ------------------------------------------------------------------------------------------------------------


def logarithm(point: Point) -> float:
    """Return beta / S at K = |N|: what is logarithmic in the bonuses when the optimistic policy is certified."""
    return theorem.beta(point.setting._replace(K=round(point.waited))) / point.setting.S


def unrolled(H: float) -> float:
    """Return (1 + 3/H)^H: what the recursion of the bounds multiplies by, over H steps. It is e^3 at most."""
    return math.pow(1.0 + 3.0 / H, H)


@judges("waiting-in-sizes")
def _waiting_in_sizes(results: Results) -> Iterator[Found]:
    """Judge the exponent with the logarithm divided out, which H^3 S^2 A leaves out; print it as measured, too."""
    for size, series in by_size(results):
        if not series.known:
            yield _too_short(series)
            continue
        first, last = series.points[0], series.points[-1]
        fit = series.fit_over(logarithm)
        numbers = (
            f"{size} = {first.x:g} to {last.x:g}, {series.label}: {number(first.waited)} to {number(last.waited)} "
            f"episodes, exponent {series.fit}, with the logarithm divided out {fit}"
        )
        if size == "H":
            both = series.fit_over(lambda point: logarithm(point) * unrolled(point.x))
            numbers += f", with (1 + 3/H)^H as well {both}"
        numbers += f"; Lemma finite has {SIZES[size]:g}; Delta_0 = {_gaps(series, first.x)} at {size} = {first.x:g}, "
        numbers += f"{_gaps(series, last.x)} at {size} = {last.x:g}"
        yield _grows(SIZES[size], fit, numbers, series.trials)


def _gaps(series: Series, x: float) -> str:
    """Return Delta_0 of the worlds of one size."""
    return " and ".join(f"{point.setting.Delta_0:.2g}" for point in series.points if point.x == x)


# -- floor 0 ----------------------------------------------------------------------------------------------------------


@judges("gamma-zero")
def _gamma_zero(results: Results) -> Iterator[Found]:
    """Judge that nothing but the optimistic policy is ever played; the regret beside BPI-UCBVI's is told."""
    free = {cell.scenario.id: cell for cell in cells_of(results, ("bpi-ucbvi",))}
    for agent, cells in cells_by_agent(results, MIXERS):
        for cell in (one for one in cells if one.scenario.floor == 0.0 and one.scenario.id in free):
            mine, its = results.trials[cell.id], free[cell.scenario.id].trials
            if not common(mine, its) or mine[0].episodes != its[0].episodes:
                continue
            others = max(map(so_far, mine))
            pairs = common(mine, its)
            more = paired([one.regret for one, _ in pairs], [other.regret for _, other in pairs]).difference
            numbers = (
                f"{cell.scenario.heading}, {label_of(mine)}: {number(others)} episodes not optimistic, regret "
                f"{number(median(mine, regret_of))}, BPI-UCBVI {number(median(its, regret_of))}, trial by trial "
                f"{_interval(more, number)} more; the corollary's bound is "
                f"{scientific(theorem.optimistic_regret_bound(setting_of(cell, mine)))}{_beside(results, agent)}"
            )
            yield Found(others == 0.0, numbers, mine)


def _beside(results: Results, agent: AgentSpec) -> str:
    """Return what floors above 0 cost the same agent, in words."""
    words = [
        f"; {scenario.heading}: {number(median(trials, not_optimistic))} episodes, regret "
        f"{number(median(trials, regret_of))}"
        for scenario in results.study.scenarios
        if scenario.floor != 0.0 and (trials := results.of(scenario.id, agent.id))
    ]
    return "".join(words)
