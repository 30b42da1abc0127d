"""The paper's theorems beside what was measured: the bounds in numbers, and exponents fitted on
logarithms; Table 1.

What the paper claims is a bound with its constants, and that is what is judged in its name. An
exponent fitted over a few sizes cannot refute a bound: exponents are claims of ours.

|N|, the episodes in which something else than the optimistic policy is played, is what Lemma finite
bounds. How it grows is known only of runs that became optimistic: one that did not is too short to
tell.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis import theorem
from surefoot.studies.analysis.stats import (
    Interval,
    PowerLaw,
    mean_interval,
    paired,
    power_law,
    span_in_words,
)
from surefoot.studies.analysis.trials import (
    FLAT,
    IN_SUM,
    MIXERS,
    CellTrials,
    Found,
    Trials,
    agent_by_agent,
    breaks_promise,
    by_agent,
    cells_of,
    column,
    common,
    count,
    ends_of,
    families,
    grouped,
    in_one_scenario,
    is_promised,
    judged,
    judges,
    like,
    mean,
    median,
    middle,
    more_of,
    number,
    off_at,
    optimistic_at,
    sum_is_below,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Scenario
from surefoot.worlds.registry import world as build_world

SAME = 0.1  # numbers that differ by less than this part of them are called the same
POINTS = 20  # of a curve of regret, by equal factors
LEAST_BINS = 10  # a curve is known where bins end: from fewer than so many no exponent is fitted
SIZES = {
    "H": 3.0,
    "S": 2.0,
    "A": 1.0,
}  # exponents of H^3 S^2 A, the larger of Lemma finite's two terms in each
OPTIMIST = ("bpi-ucbvi",)


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
    def span(self) -> str:
        """How long the first point waited, and the last, in words."""
        return f"{number(self.points[0].waited)} to {number(self.points[-1].waited)} episodes"

    @property
    def fit(self) -> PowerLaw:
        """The power law of |N| in x."""
        return self.fit_over(lambda point: 1.0)

    def fit_over(self, factor: Callable[[Point], float]) -> PowerLaw:
        """Return the power law in x of |N| divided by a factor."""
        return power_law(
            [point.x for point in self.points],
            [point.waited / factor(point) for point in self.points],
        )

    @property
    def ends(self) -> tuple[float, float]:
        """The exponents between the first two different x, and between the last two."""
        by_x = grouped((point.x, math.log(point.waited)) for point in self.points)
        slopes = np.diff([np.mean(some) for some in by_x.values()]) / np.diff(np.log(list(by_x)))
        return float(slopes[0]), float(slopes[-1])


def so_far(trial: Trial) -> float:
    """Return |N| of the episodes that were played: those on the baseline or on mixtures."""
    return float(trial.on_baseline + trial.on_mixture)


def not_optimistic(trial: Trial) -> float:
    """Return |N|, however long the run goes on; inf where it never became optimistic."""
    return math.inf if trial.first_optimistic is None else so_far(trial)


def scale_of(one: CellTrials) -> float:
    """Return what a reward of 1 on the paper's scale is in the world's own unit."""
    return float(build_world(**one.scenario.world).problem.units.scale)


def setting_of(one: CellTrials) -> theorem.Setting:
    """Return what the theorems speak of, on the paper's scale."""
    scale, first, cell = scale_of(one), one.trials[0], one.cell
    kappa, gap = (first.baseline - first.floor) / scale, (first.optimum - first.baseline) / scale
    share = cell.delta / theorem.delta_parts(cell.agent.agent, first.H)
    return theorem.Setting(first.H, first.S, first.A, first.episodes, kappa, gap, share)


def _families(
    results: Results, x_of: Callable[[CellTrials], float], rest: Callable[[CellTrials], Scenario]
) -> Iterator[Series]:
    """Yield the cells of StepMix, and of EpsMix, that are alike in the rest, by x.

    Fewer than three different x are no family.
    """
    for cells in by_agent(results, MIXERS):
        for alike in families(cells, x_of, rest):
            points = tuple(
                Point(x_of(one), median(one.trials, not_optimistic), one.trials, setting_of(one))
                for one in alike
            )
            if len({point.x for point in points}) >= 3:
                first = alike[0].scenario
                eta = f", eta = {first.baseline[1]:g}" if isinstance(first.baseline, tuple) else ""
                yield Series(f"{first.world['name']}{eta}", alike[0].label, points)


def by_kappa(results: Results) -> Iterator[Series]:
    """Yield the cells that differ in their floor only, by 1/kappa."""

    def inverse(one: CellTrials) -> float:
        kappa = setting_of(one).kappa
        return 1.0 / kappa if kappa > 0.0 else math.nan

    return _families(results, inverse, lambda one: like(one.scenario))


def by_size(results: Results) -> Iterator[tuple[str, Series]]:
    """Yield the cells that differ in one size of the world, and in the seed that it was drawn
    with.
    """
    for size in SIZES:

        def rest(one: CellTrials, size: str = size) -> Scenario:
            world = {
                key: value
                for key, value in sorted(one.scenario.world.items())
                if key not in (size, "seed")
            }
            return like(one.scenario, {"world": world, "episodes": one.cell.episodes})

        def value(one: CellTrials, size: str = size) -> float:
            return float(one.scenario.world.get(size, math.nan))

        for series in _families(results, value, rest):
            yield size, series


def _at_most(limit: float, known: PowerLaw | Interval) -> bool | None:
    """Return whether a number is at most so large; None where its interval has the limit inside,
    or it has none.
    """
    if known.high <= limit:
        return True
    return False if known.low > limit else None


def _grows(limit: float, known: PowerLaw | Interval, numbers: str, trials: Trials) -> Found:
    return judged(_at_most(limit, known), numbers, trials, f"the difference to {limit:g}")


def _too_short(series: Series) -> Found:
    never = sum(math.isinf(point.waited) for point in series.points)
    numbers = (
        f"{series.title}, {series.label}: not optimistic by the end in {never} of "
        f"{len(series.points)}"
    )
    return Found(None, numbers, series.trials)


def scientific(value: float) -> str:
    """Return a number that may be very large."""
    return f"{value:.1e}"


# -- the theorems' bounds --------------------------------------------------------------------------


def _bounded(
    results: Results,
    measured: Callable[[CellTrials], list[float]],
    allowed: Callable[[theorem.Setting], float],
    most: Callable[[theorem.Setting], int],
    words: str,
) -> Iterator[Found]:
    """Compare every run with what is allowed, and tell of each agent the scenario that is nearest
    to it.

    `most` is what nothing exceeds, whatever is played: a bound above it cannot be broken.
    """
    for cells in by_agent(results, MIXERS):
        there = [(one, it) for one in cells if (it := setting_of(one)).kappa > 0.0]
        if not there:
            continue
        # What was measured at the most, what is allowed, and where.
        found = [(max(measured(one)), allowed(it), one) for one, it in there]
        largest, bound, nearest = max(found, key=lambda one: one[0] / one[1])
        empty = sum(allowed(it) > most(it) for _, it in there)
        numbers = (
            f"{nearest.label}: nearest to it in {nearest.scenario.heading}, "
            f"{number(largest)} of {scientific(bound)}"
        )
        if empty:
            numbers += (
                f"; the bound is above {words} in {empty} of {len(there)} scenarios, where "
                "nothing can break it"
            )
        trials = [trial for one, _ in there for trial in one.trials]
        yield Found(all(value <= limit for value, limit, _ in found), numbers, trials)


@judges("regret-bound")
def _regret_bound(results: Results) -> Iterator[Found]:
    def measured(one: CellTrials) -> list[float]:
        return [regret / scale_of(one) for regret in column(one.trials, "regret")]

    return _bounded(results, measured, theorem.regret_bound, lambda it: it.K * it.H, "K H")


@judges("waiting-bound")
def _waiting_bound(results: Results) -> Iterator[Found]:
    """Judge |N| of the episodes that were played: the lemma bounds it for every K, whether or
    not the run is done.
    """
    return _bounded(
        results,
        lambda one: column(one.trials, so_far),
        theorem.most_not_optimistic,
        lambda it: it.K,
        "K",
    )


# -- regret in K -----------------------------------------------------------------------------------


class Added(NamedTuple):
    """What a run's regret grows by after the bin of its first optimistic episode: curves are
    exact where bins end.
    """

    k: np.ndarray  # episodes since then, by about equal factors
    regret: np.ndarray  # added since then


def regret_at(trials: Trials, k: np.ndarray) -> np.ndarray:
    """Return the regret of the first k episodes of each trial (trials, k)."""
    return np.array(
        [
            np.interp(k, np.append(0, ends_of(trial)), np.append(0.0, trial.curve_regret))
            for trial in trials
        ]
    )


def added(trial: Trial) -> Added:
    """Return what is added after the first optimistic episode; nothing is known where too few
    bins follow it.
    """
    ends = ends_of(trial)
    first = int(np.searchsorted(ends, optimistic_at(trial), side="right"))
    after = len(ends) - 1 - first
    if after < LEAST_BINS:
        return Added(np.empty(0), np.empty(0))
    chosen = first + np.unique(np.geomspace(1, after, POINTS).round().astype(int))
    return Added(ends[chosen] - ends[first], trial.curve_regret[chosen] - trial.curve_regret[first])


def total_added(trials: Trials) -> float | None:
    """Return the median of all that is added; None where it is not known of every trial."""
    every = [added(trial) for trial in trials]
    if not all(len(one.k) for one in every):
        return None
    return float(np.median([one.regret[-1] for one in every]))


def _exponent(trial: Trial) -> float | None:
    """Return the exponent of what is added; None where nothing is, or at fewer than three
    points.
    """
    k, regret = added(trial)
    there = regret > FLAT * max(1.0, trial.regret)  # less is what rounding adds up to
    return power_law(k[there], regret[there]).exponent if there.sum() >= 3 else None


@judges("regret-root-k")
def _regret_root_k(results: Results) -> Iterator[Found]:
    """Fit what each run adds after its first optimistic episode. All before is the additive
    constant, not sqrt(K).
    """
    for one in agent_by_agent(results, MIXERS):
        trials, later, regret = one.trials, total_added(one.trials), median(one.trials, "regret")
        exponents = [exponent for exponent in map(_exponent, trials) if exponent is not None]
        nothing = len(trials) - len(exponents)
        if later is None:
            words = "optimistic too late, or never, to see the regret grow after it"
            yield Found(None, f"{one.heading}: {words}", trials)
        elif nothing:
            numbers = (
                f"{one.heading}: nothing is added after the first optimistic episode in "
                f"{nothing} of {len(trials)} runs; the additive constant is all of the regret of "
                f"{number(regret)}"
            )
            yield Found(None, numbers, trials)
        else:
            known = mean_interval(exponents)
            numbers = (
                f"{one.heading}: {number(later)} of the regret of {number(regret)} "
                f"({later / regret:.1%}) are added after the first optimistic episode, the rest is "
                f"the additive constant; exponent {_interval(known)} in K, one fit per run"
            )
            yield _grows(0.5, known, numbers, trials)


def _interval(known: Interval, show: Callable[[float], str] = "{:.2f}".format) -> str:
    return f"{show(known.mean)} ({span_in_words(known, show)})"


def _beside_optimist(results: Results) -> Iterator[tuple[CellTrials, Trials, Trials]]:
    """Yield each cell of StepMix and EpsMix, and its trials and those of BPI-UCBVI, seed by
    seed.
    """
    free = {one.scenario.id: one.trials for one in cells_of(results, OPTIMIST)}
    for one in agent_by_agent(results, MIXERS):
        pairs = common(one.trials, free.get(one.scenario.id, ()))
        if pairs and pairs[0][0].episodes == pairs[0][1].episodes:
            mine, its = zip(*pairs, strict=True)
            yield one, mine, its


@judges("additive-constant")
def _additive_constant(results: Results) -> Iterator[Found]:
    """Compare the difference to BPI-UCBVI at K/10 and at K, trial by trial; it must not grow.

    Where a run is not optimistic by K/10, the constant is not complete by then: these results
    cannot tell.
    """
    for one, mine, its in _beside_optimist(results):
        K = mine[0].episodes
        moments = np.array([K / 10, K])
        early, late = (regret_at(mine, moments) - regret_at(its, moments)).T
        numbers = (
            f"{one.heading}: {number(float(early.mean()))} more than BPI-UCBVI by "
            f"K/10, {number(float(late.mean()))} by K = {number(K)}, on average"
        )
        slow = sum(10 * optimistic_at(trial) > K for trial in mine)
        if slow:
            numbers += f"; not optimistic by K/10 in {slow} of {len(mine)} runs, too late to tell"
            yield Found(None, numbers, (*mine, *its))
            continue
        grew, it = mean_interval(late - early), setting_of(one)
        numbers += (
            f", a growth of {_interval(grew, number)}; |N| Delta_0 = "
            f"{number(median(mine, not_optimistic) * it.Delta_0)}, of which the "
            f"theorem allows {scientific(theorem.most_not_optimistic(it) * it.Delta_0)}"
        )
        yield judged(_at_most(SAME * abs(float(early.mean())), grew), numbers, (*mine, *its))


# -- kappa -----------------------------------------------------------------------------------------


def _in_kappa(series: Series) -> str:
    first, last = (series.points[i].setting for i in (0, -1))
    kappas = f"kappa {first.kappa:.3g} to {last.kappa:.3g}, Delta_0 = {first.Delta_0:.3g}"
    ends = "from {:.2f} at the large to {:.2f} at the small end".format(*series.ends)
    return (
        f"{series.title}, {series.label}, {kappas}: {series.span}, exponent of 1/kappa "
        f"{series.fit}, {ends}"
    )


@judges("waiting-in-kappa")
def _waiting_in_kappa(results: Results) -> Iterator[Found]:
    for series in by_kappa(results):
        if series.known:
            yield _grows(2.0, series.fit, _in_kappa(series), series.trials)
        else:
            yield _too_short(series)


def _parts(results: Results, keep: Callable[[theorem.Setting], bool]) -> Iterator[Series]:
    """Yield of each family the points that are kept, where three different x are, and none was
    too short.
    """
    for series in by_kappa(results):
        points = tuple(point for point in series.points if keep(point.setting))
        part = series._replace(points=points)
        if len({point.x for point in points}) >= 3 and part.known:
            yield part


@judges("waiting-between")
def _waiting_between(results: Results) -> Iterator[Found]:
    """Judge floors whose kappa is at least Delta_0: there the baseline is certified before the
    optimistic policy is.

    The exponent is judged by its interval: inside 1 to 2, outside, or across a limit.
    """
    for part in _parts(results, lambda it: it.kappa >= it.Delta_0):
        fit = part.fit
        outside = fit.high < 1.0 or fit.low > 2.0
        inside = True if fit.low >= 1.0 and fit.high <= 2.0 else None
        holds = False if outside else inside
        yield judged(holds, _in_kappa(part), part.trials, "whether it is between 1 and 2")


@judges("waiting-saturates")
def _waiting_saturates(results: Results) -> Iterator[Found]:
    for part in _parts(results, lambda it: 2.0 * it.kappa <= it.Delta_0):
        waits = [point.waited for point in part.points]
        yield Found(max(waits) <= (1.0 + SAME) * min(waits), _in_kappa(part), part.trials)


# -- sizes -----------------------------------------------------------------------------------------


def logarithm(point: Point) -> float:
    """Return beta / S at K = |N|: what is logarithmic in the bonuses when the optimistic policy
    is certified.
    """
    return theorem.beta(point.setting._replace(K=round(point.waited))) / point.setting.S


@judges("waiting-in-sizes")
def _waiting_in_sizes(results: Results) -> Iterator[Found]:
    """Judge the exponent with the logarithm divided out, which H^3 S^2 A leaves out; print it as
    measured, too.
    """
    for size, series in by_size(results):
        if not series.known:
            yield _too_short(series)
            continue
        first, last = (series.points[i].x for i in (0, -1))
        fit = series.fit_over(logarithm)
        numbers = (
            f"{size} = {first:g} to {last:g}, {series.label}: {series.span}, exponent "
            f"{series.fit}, with the logarithm divided out {fit}"
        )
        if size == "H":
            both = series.fit_over(
                lambda point: logarithm(point) * (1.0 + 3.0 / point.x) ** point.x
            )
            numbers += f", with (1 + 3/H)^H as well {both}"
        numbers += f"; Lemma finite has {SIZES[size]:g}; Delta_0 = {_gaps(series, size, first)}, "
        numbers += _gaps(series, size, last)
        yield _grows(SIZES[size], fit, numbers, series.trials)


def _gaps(series: Series, size: str, x: float) -> str:
    """Return Delta_0 of the worlds of one size."""
    gaps = " and ".join(f"{point.setting.Delta_0:.2g}" for point in series.points if point.x == x)
    return f"{gaps} at {size} = {x:g}"


# -- floor 0 ---------------------------------------------------------------------------------------


@judges("gamma-zero")
def _gamma_zero(results: Results) -> Iterator[Found]:
    """Judge that nothing but the optimistic policy is ever played; the regret beside BPI-UCBVI's
    is told.
    """
    for one, mine, its in _beside_optimist(results):
        if one.scenario.floor != 0.0:
            continue
        others = max(map(so_far, mine))
        more = paired(column(mine, "regret"), column(its, "regret")).difference
        numbers = (
            f"{one.heading}: {number(others)} episodes not optimistic, regret "
            f"{middle(mine, 'regret')}, BPI-UCBVI {middle(its, 'regret')}, trial by trial "
            f"{_interval(more, number)} more; the corollary's bound is "
            f"{scientific(theorem.optimistic_regret_bound(setting_of(one)))}"
        )
        # What floors above 0 cost the same agent.
        for scenario in results.study.scenarios:
            trials = results.of(scenario.id, one.cell.agent.id)
            if scenario.floor != 0.0 and trials:
                waited = f"{middle(trials, not_optimistic)} episodes"
                numbers += f"; {scenario.heading}: {waited}, regret {middle(trials, 'regret')}"
        yield Found(others == 0.0, numbers, mine)


# -- Table 1, measured: what each algorithm promises, whether it kept it, and its regret -----------


@judges("table-1-constraints")
def _table_1_constraints(results: Results) -> Iterator[Found]:
    """Judge whether each agent promises what Table 1 states, and kept it; count what it does to
    the other.
    """
    for one in agent_by_agent(results, tuple(AGENTS)):
        trials, agent = one.trials, one.cell.agent.agent
        stated = theorem.TABLE_1.get(agent)
        scope = theorem.CUMULATIVE if agent in IN_SUM else theorem.EPISODIC
        promised = scope if all(map(is_promised, trials)) else theorem.NONE
        numbers = f"{one.label} promises {promised}"
        if stated is not None:
            numbers += f" (Table 1: {stated.constraint})"
        kept = len(trials) - count(trials, breaks_promise)
        if promised != theorem.NONE:
            numbers += (
                f" and kept it in {kept} of {len(trials)} runs, off the baseline {off_at(trials)}"
            )
        numbers += (
            f"{', knows V^b' if trials[0].knows_baseline_value else ''}: single episodes below in "
            f"{count(trials, 'violations')} of {len(trials)} runs, the sum in "
            f"{count(trials, sum_is_below)}; regret {middle(trials, 'regret')} of K = "
            f"{number(trials[0].episodes)}"
        )
        if stated is not None:
            order = number(theorem.stated_order(agent, setting_of(one)))
            numbers += f", Table 1: {stated.order} = {order} (without constants and logarithms)"
        yield Found(
            kept == len(trials) and (stated is None or stated.constraint == promised),
            numbers,
            trials,
        )


@judges("sums-fall-below")
def _sums_fall_below(results: Results) -> Iterator[Found]:
    """Judge every one of them in every run: it keeps what it promises, and is below in single
    episodes all the same.
    """
    for scenario, label, trials, _ in cells_of(results, IN_SUM):
        left = [trial for trial in trials if trial.off_baseline is not None]
        if left:
            below, episodes = count(left, "violations"), number(mean(left, "violations"))
            words = f"{label} in {below} of {len(left)} runs, {episodes} episodes each on average"
            yield Found(below == len(left), f"{scenario.heading}: {words}", trials)


@judges("table-1-regret")
def _table_1_regret(results: Results) -> Iterator[Found]:
    """Compare neighbours in the order of Table 1's terms, among agents of runs of the same
    length.
    """
    ranks: Sequence[Sequence[str]] = (("budget-exploration",), MIXERS, ("dope",), ("optpess-lp",))
    for less, more in pairwise(ranks):
        for (_, one, mine, _), (_, other, its, _) in in_one_scenario(results, less, more):
            if mine[0].episodes == its[0].episodes:
                numbers = f"{one} {middle(mine, 'regret')}, {other} {middle(its, 'regret')}"
                yield judged(more_of(mine, its, "regret"), numbers, (*mine, *its))
