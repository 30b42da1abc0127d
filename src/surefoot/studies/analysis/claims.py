"""What the paper says must come out: each claim judged by code from the results, with the numbers
that decide it.

A claim holds when it holds in every scenario it speaks of. Agents are compared trial by trial:
trial i of all cells draws from the same seed. What the results cannot tell, because trials or
agents are missing, is not judged. The claims themselves, a sentence each, are in spec/claims.py;
those of the theorems are judged in theory.py.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from surefoot.base.text import how_many
from surefoot.studies.analysis import theorem, theory  # noqa: F401 (its judges register)
from surefoot.studies.analysis.stats import band, bound_in_words, count_in_words
from surefoot.studies.analysis.summary import Rows, summary
from surefoot.studies.analysis.trials import (
    IN_SUM,
    JUDGES,
    MIXERS,
    Found,
    Trials,
    at,
    at_the_end,
    breaks_promise,
    but_in,
    cells_of,
    certificate_is_false,
    column,
    common,
    count,
    families,
    hundredths_in_words,
    in_hundredths,
    in_one_scenario,
    is_flat,
    is_lower,
    is_optimal,
    is_promised,
    is_uncertified,
    judged,
    judges,
    label_of,
    later,
    left_at,
    like,
    mean,
    median,
    medians,
    middle,
    more_of,
    number,
    off_at,
    optimistic_at,
    premise_is_false,
    share_of_gap_closed,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.claims import CLAIMS, SOURCES
from surefoot.studies.spec.study import AgentSpec, Scenario

VERDICTS = {True: "holds", False: "does not hold", None: "cannot be judged"}
OF_THE_PAPER = ("stepmix", "epsmix", "step-no-mix")
# of the gap between baseline and optimum, median over trials: who closed that much has risen to the
# optimum
FAR = 0.9


class Verdict(NamedTuple):
    """A claim, and what the results show of it."""

    claim: str  # a sentence
    source: str  # who says it
    holds: bool | None  # None: these results cannot tell
    K: tuple[int, ...]  # episodes of the runs that it was judged by; none where they decide nothing
    numbers: str  # what was found, with the numbers

    @property
    def at_K(self) -> str:
        """For which K it was judged, in words: what holds for one may not hold for a larger one."""
        if not self.K:
            return ""
        ends = dict.fromkeys((min(self.K), max(self.K)))
        return f"at K = {' to '.join(map(number, ends))}"


class Analysis(NamedTuple):
    """The results of a study, their summary, and the verdicts on its claims."""

    results: Results
    rows: Rows
    verdicts: list[Verdict]


def judge(results: Results) -> list[Verdict]:
    """Judge the claims that the study names, in its order."""
    return [_verdict(results, name) for name in results.study.claims]


def tallies(verdicts: Sequence[Verdict]) -> list[str]:
    """Return how many claims of the paper, of its drafts and of ours hold, do not, and cannot be
    judged.
    """
    return [
        f"{words}: {_tally([one.holds for one in verdicts if one.source == source])}"
        for source, words in SOURCES.items()
        if any(one.source == source for one in verdicts)
    ]


def _tally(all_of_them: Sequence[bool | None]) -> str:
    holds, fails, unsure = (sum(one is what for one in all_of_them) for what in VERDICTS)
    n = len(all_of_them)
    words = [f"{holds} of {n} {'holds' if n == 1 else 'hold'}"]
    if fails:
        words.append(f"{fails} {'does' if fails == 1 else 'do'} not")
    if unsure:
        words.append(f"{unsure} cannot be judged")
    return ", ".join(words)


def analyse(results: Results) -> Analysis:
    """Summarise the results, and judge the study's claims."""
    return Analysis(results, summary(results), judge(results))


def _verdict(results: Results, name: str) -> Verdict:
    """Judge one claim."""
    claim, found = CLAIMS[name], list(JUDGES[name](results))
    holds, numbers = _together(results, found)
    K = {trial.episodes for one in found for trial in one.trials}
    return Verdict(claim.sentence, claim.source, holds, tuple(sorted(K)), numbers)


def _together(results: Results, found: Sequence[Found]) -> tuple[bool | None, str]:
    """Return what scenarios and agents show together, and the numbers of all of them."""
    if not found:
        return None, "There are no trials here that could tell."
    numbers = "; ".join(one.numbers for one in found) + "."
    if any(one.holds is False for one in found):
        return False, numbers
    if any(one.holds is None for one in found):
        return None, numbers
    # What is not refuted is not shown either by a part of the trials, or by one of each.
    if results.missing:
        lacking = "1 trial is" if results.missing == 1 else f"{results.missing:,} trials are"
        return None, f"{lacking} missing; so far: {numbers}"
    if results.study.trials == 1:
        return None, f"one trial of each cannot tell; it says: {numbers}"
    return True, numbers


# -- the promise -----------------------------------------------------------------------------------


@judges("promise")
def _promise(results: Results) -> Iterator[Found]:
    """Judge all agents."""
    return _kept_by(results, results.study.agents)


@judges("paper-promise")
def _paper_promise(results: Results) -> Iterator[Found]:
    """Judge the paper's algorithms, with the paper's bounds."""
    agents = results.study.agents
    the_papers = (one for one in agents if one.agent in OF_THE_PAPER and one.bounds == "paper")
    return _kept_by(results, list(the_papers))


def _kept_by(results: Results, agents: Sequence[AgentSpec]) -> Iterator[Found]:
    """Judge those of these agents that promise. That there is no violation means little where
    nobody left the baseline.
    """
    for agent in agents:
        mine = [trial for trial in results.every if trial.agent == agent.id]
        found = _kept(agent, mine, len(results.study.scenarios) > 1)
        if found is not None:
            yield found


def _kept(agent: AgentSpec, everyone: Trials, several: bool) -> Found | None:
    """Return whether an agent kept its promise; None where its trials cannot tell. `several`: of
    several scenarios?

    Trial i of all scenarios has the same seed, so its runs are not independent: trials are counted,
    not runs, and one in which any scenario breaks the promise is broken.
    """
    promised = list(filter(is_promised, everyone))
    broken = list(filter(breaks_promise, everyone))
    left = [trial for trial in promised if trial.off_baseline is not None]
    false = list(filter(premise_is_false, everyone))
    disproved = count((*promised, *false), certificate_is_false)
    if not left and not broken and not disproved:
        return None
    # Who never left cannot break it by exploring; one of them that did is counted among all.
    of_those = bool(left) and all(one in left for one in broken)
    those, who = (left, " that left the baseline") if of_those else (everyone, "")
    k, n = (len(set(column(some, "trial"))) for some in (broken, those))
    scenarios = len(set(column(those, "scenario")))
    where = ""
    if several:
        where = f" in {how_many(scenarios, 'scenario')}"
    what = "broke the sum's floor" if agent.agent in IN_SUM else "fell below the floor"
    numbers = (
        f"{label_of(everyone)}: {count_in_words(k, n, 'trial')}{where}{who} {what} "
        f"({bound_in_words(k, n)})"
    )
    if len(left) < len(promised):
        numbers += f", {how_many(len(promised) - len(left), 'run')} never left it"
    if false:
        numbers += f", {how_many(len(false), 'run')} had a baseline below the floor"
    if disproved:
        numbers += f", in {how_many(disproved, 'run')} the log's certificate was false"
    return Found(not broken and not disproved, numbers, those)


@judges("optimist-violates")
def _optimist_violates(results: Results) -> Iterator[Found]:
    for scenario, label, trials, _ in cells_of(results, ("bpi-ucbvi",)):
        below = number(mean(trials, "violations"))
        numbers = f"{scenario.heading}: {label} is below the floor in {below} episodes a run"
        yield Found(all(column(trials, "violations")), numbers, trials)


# -- the shape of learning -------------------------------------------------------------------------


@judges("flat-then-rise")
def _flat_then_rise(results: Results) -> Iterator[Found]:
    for one in cells_of(results, MIXERS):
        trials = one.trials
        start, ends, best = (mean(trials, of) for of in ("baseline", at_the_end, "optimum"))
        numbers = f"{one.heading}: {start:.4g} at first, {ends:.4g} at the end, V* = {best:.4g}"
        down = count(trials, lambda trial: at_the_end(trial) <= trial.baseline)
        closed = median(trials, share_of_gap_closed)
        if down:
            numbers += f" ({down} of {len(trials)} do not end above their baseline)"
        elif closed < FAR:
            numbers += f" ({100 * closed:.0f} % of the way)"
        # It stays there for its first bin at least.
        stays = all(
            is_flat(trial) and left_at(trial) >= trial.curve_episodes[0] for trial in trials
        )
        yield Found(stays and not down and closed >= FAR, numbers + _dip(trials), trials)


def _dip(trials: Trials) -> str:
    """Return where the mean return is below the baseline's, above or below the floor: what a
    rise leaves unsaid.
    """
    returns = np.mean(column(trials, in_hundredths), axis=0)
    below = is_lower(returns, mean(trials, "baseline"))
    if not below.any():
        return ""
    lowest = f"down to {returns.min():.4g} (the floor is {mean(trials, 'floor'):.4g})"
    return f", below the baseline in {hundredths_in_words(below)}, {lowest}"


def _epsmix_and_stepmix(results: Results) -> Iterator[tuple[str, Trials, Trials]]:
    """Yield the trials of EpsMix and of StepMix with the same bounds and counts, in each
    scenario.
    """
    for step, eps in in_one_scenario(results, ("stepmix",), ("epsmix",)):
        alike = attrgetter("bounds", "scale", "pooled")
        if alike(step.cell.agent) == alike(eps.cell.agent):
            yield step.scenario.heading, eps.trials, step.trials


@judges("epsmix-faster")
def _epsmix_faster(results: Results) -> Iterator[Found]:
    """Judge the paper's sentence as it is worded: convergence, by regret and by the first
    optimistic episode.
    """
    for where, eps, step in _epsmix_and_stepmix(results):
        numbers = (
            f"{label_of(eps)} and {label_of(step)}, {where}: regret "
            f"{medians(eps, step, 'regret')}, optimistic at "
            f"{medians(eps, step, optimistic_at)}{but_in(eps, step, optimistic_at)}"
        )
        faster = later(eps, step, optimistic_at) and more_of(eps, step, "regret")
        yield judged(faster, numbers, (*eps, *step))


@judges("epsmix-sooner")
def _epsmix_sooner(results: Results) -> Iterator[Found]:
    for where, eps, step in _epsmix_and_stepmix(results):
        off = (
            f"{label_of(eps)} {off_at(eps)}, {label_of(step)} "
            f"{off_at(step)}{but_in(eps, step, left_at)}"
        )
        yield Found(later(eps, step, left_at), f"{where}: {off}", (*eps, *step))


# -- scenarios compared with each other, agent by agent --------------------------------------------

# an agent in two scenarios, in runs of the same length; and both in words
Compared = tuple[Trials, Trials, str]


def _compared(results: Results, easier: Scenario, harder: Scenario) -> Iterator[Compared]:
    """Yield StepMix and EpsMix in two scenarios."""
    for agent in results.study.agents:
        one, other = results.of(easier.id, agent.id), results.of(harder.id, agent.id)
        if agent.agent in MIXERS and common(one, other) and one[0].episodes == other[0].episodes:
            yield one, other, f"{label_of(one)}, {easier.heading} and {harder.heading}"


def _delayed(easier: Trials, harder: Trials, heading: str) -> Found:
    """Judge whether an agent leaves the baseline later, with more regret, in the harder
    scenario.
    """
    off = f"off the baseline at {medians(easier, harder, left_at)}{but_in(easier, harder, left_at)}"
    delayed = later(easier, harder, left_at) and more_of(easier, harder, "regret")
    numbers = f"{heading}: {off}, regret {medians(easier, harder, 'regret')}"
    return judged(delayed, numbers, (*easier, *harder))


@judges("higher-floor-delays")
def _higher_floor_delays(results: Results) -> Iterator[Found]:
    def height(scenario: Scenario) -> float:
        return scenario.floor if isinstance(scenario.floor, float) else math.nan

    for family in families(results.study.scenarios, height, like):
        for easier, harder in combinations(family, 2):
            if height(easier) < height(harder):
                yield from (_delayed(*pair) for pair in _compared(results, easier, harder))


def _by_baseline(results: Results) -> Iterator[Compared]:
    """Yield scenarios that differ only in their baseline, the better one first."""

    def worse_by(scenario: Scenario) -> float:
        return -scenario.baseline[1] if isinstance(scenario.baseline, tuple) else math.nan

    def rest(scenario: Scenario) -> tuple[Scenario, Any]:
        return like(scenario, {"baseline": ""}), scenario.floor

    for family in families(results.study.scenarios, worse_by, rest):
        for better, worse in combinations(family, 2):
            if worse_by(better) < worse_by(worse):
                yield from _compared(results, better, worse)


@judges("better-baseline-helps")
def _better_baseline_helps(results: Results) -> Iterator[Found]:
    return (_delayed(*pair) for pair in _by_baseline(results))


@judges("better-baseline-throughout")
def _better_baseline_throughout(results: Results) -> Iterator[Found]:
    """Judge every hundredth of the episodes. Where it is lower, chance is excluded at 95 % for
    all of them together.
    """
    for better, worse, heading in _by_baseline(results):
        ones, others = (
            column(side, in_hundredths) for side in zip(*common(better, worse), strict=True)
        )
        less = np.mean(others, axis=0) - np.mean(ones, axis=0)
        lower = is_lower(np.mean(ones, axis=0), np.mean(others, axis=0))
        by = f", by at most {less.max():.2g}" if lower.any() else ""
        numbers = f"{heading}: a lower return in {hundredths_in_words(lower)}{by}"
        _, _, high = band(np.subtract(ones, others), 1.0 - 0.05 / len(lower))
        by_chance = len(ones) > 1 and not (high[lower] < 0.0).any()
        if_lower = None if by_chance else False
        yield judged(if_lower if lower.any() else True, numbers, (*better, *worse))


@judges("tighter-floor-delays")
def _tighter_floor_delays(results: Results) -> Iterator[Found]:
    """Compare floors that are shares of the baseline's value, each with the next tighter one."""

    def tightness(scenario: Scenario) -> float:
        if not isinstance(scenario.floor, tuple):
            return math.nan
        of, share = scenario.floor
        return share if of == "of_baseline" else -share

    def rest(scenario: Scenario) -> tuple[Scenario, str]:
        return like(scenario), str(scenario.floor[0])  # type: ignore[index]

    for family in families(results.study.scenarios, tightness, rest):
        for looser, tighter in pairwise(family):
            if tightness(looser) < tightness(tighter):
                yield from (_delayed(*pair) for pair in _compared(results, looser, tighter))


# -- rivals ----------------------------------------------------------------------------------------


@judges("dope-leaves-first")
def _dope_leaves_first(results: Results) -> Iterator[Found]:
    for (_, label, dope, _), (_, other, trials, _) in in_one_scenario(
        results, ("dope",), (*MIXERS, "optpess-lp")
    ):
        numbers = f"{label} at {middle(dope, left_at)}, {other} {off_at(trials)}"
        yield Found(later(dope, trials, left_at), numbers, (*dope, *trials))


@judges("dope-regrets-more")
def _dope_regrets_more(results: Results) -> Iterator[Found]:
    for (_, label, dope, _), (_, other, trials, _) in in_one_scenario(results, ("dope",), MIXERS):
        if trials[0].episodes != dope[0].episodes or math.isinf(median(trials, left_at)):
            # of runs of different lengths, or too short to leave the baseline, regret says nothing
            continue
        numbers = f"{label} {middle(dope, 'regret')}, {other} {middle(trials, 'regret')}"
        yield judged(more_of(trials, dope, "regret"), numbers, (*dope, *trials))


@judges("optpess-stays")
def _optpess_stays(results: Results) -> Iterator[Found]:
    leavers = [trial for trial in results.every if trial.off_baseline is not None]
    for scenario, label, trials, cell in cells_of(results, ("optpess-lp",)):
        left = sum(trial.cell == cell.id for trial in leavers)
        # That it stays shows nothing where nobody leaves.
        if any(trial.scenario == scenario.id for trial in leavers):
            numbers = f"{label} left it in {left} of {how_many(len(trials), 'run')}"
            yield Found(left == 0, f"{scenario.heading}: {numbers}", trials)


# -- the drafts ------------------------------------------------------------------------------------


@judges("finite-mixtures")
def _finite_mixtures(results: Results) -> Iterator[Found]:
    """Judge how the episodes with h0 > 0 grow from 3K/4 to K, in the run in which most are
    added.
    """
    for one in cells_of(results, ("stepmix",)):
        trials = one.trials
        grown = [_late_mixtures(trial) for trial in trials]
        before, added, allowed = max(grown, key=lambda one: one[1])
        by_h = np.mean(column(trials, "by_h"), axis=0)
        spent = ", ".join(f"h0 = {h}: {number(float(episodes))}" for h, episodes in enumerate(by_h))
        by = f"{100 * added / before:.2g} %" if before else "from none"
        numbers = (
            f"{one.heading}: {spent} episodes; {number(added)} with h0 > 0 in the "
            f"last quarter ({by}), in which log^2(K+1) grows by {100 * allowed:.2g} %"
        )
        yield Found(all(late <= most * early for early, late, most in grown), numbers, trials)


def _late_mixtures(trial: Trial) -> tuple[int, int, float]:
    """Return the episodes with h0 > 0 before the last quarter of a run and in it, by whole bins,
    and by what part they may grow.
    """
    late = trial.curve_episode >= 0.75 * trial.episodes
    mixed = trial.curve_by_h[:, 1:].sum(axis=1)
    k = int(trial.curve_episodes[~late].sum())
    allowed = theorem.growth_of_squared_logarithm(k, trial.episodes)
    return int(mixed[~late].sum()), int(mixed[late].sum()), allowed


@judges("mixing-leaves-sooner")
def _mixing_leaves_sooner(results: Results) -> Iterator[Found]:
    for (scenario, label, without, _), (_, other, trials, _) in in_one_scenario(
        results, ("step-no-mix",), ("stepmix",)
    ):
        numbers = (
            f"{scenario.heading}: {other} {off_at(trials)}, {label} {off_at(without)} "
            f"(regret {medians(trials, without, 'regret')})"
        )
        yield Found(later(trials, without, left_at), numbers, (*trials, *without))


# -- logs ------------------------------------------------------------------------------------------


def _length(scenario: Scenario) -> float:
    """Return the length of the log, where there is one."""
    return math.nan if scenario.log is None else scenario.log.episodes


def _by_log(results: Results) -> list[list[Scenario]]:
    """Return the scenarios that differ only in the length of the log, from short to long."""

    def rest(scenario: Scenario) -> tuple[Any, Scenario]:
        assert scenario.log is not None
        return scenario.floor, like(scenario, {"log": replace(scenario.log, episodes=0)})

    return families(results.study.scenarios, _length, rest)


@judges("more-trajectories-help")
def _more_trajectories_help(results: Results) -> Iterator[Found]:
    """Compare each log with the next longer one."""
    pairs = [pair for family in _by_log(results) for pair in pairwise(family)]
    for (less, more), agent in product(pairs, results.study.agents):
        one, other = results.of(less.id, agent.id), results.of(more.id, agent.id)
        longer = _length(less) < _length(more)
        if agent.agent not in MIXERS or not longer or not common(one, other):
            continue
        start = " and ".join(f"{mean(trials, 'baseline'):.4f}" for trials in (one, other))
        numbers = (
            f"{label_of(one)}, {less.heading} and {more.heading}: baseline {start}, "
            f"optimistic at {medians(one, other, optimistic_at)}"
        )
        best = [count(trials, is_optimal) for trials in (one, other)]
        if any(best):
            numbers += f" (already optimal in {best[0]} and {best[1]} of {len(one)} logs)"
        sooner = median(other, optimistic_at) < median(one, optimistic_at)
        yield judged(sooner and more_of(one, other, "baseline"), numbers, (*one, *other))


@judges("log-is-enough")
def _log_is_enough(results: Results) -> Iterator[Found]:
    for one in cells_of(results, MIXERS):
        wrote = one.trials[0].log_behaviour
        if wrote is not None:
            worst = min(column(one.trials, "baseline"))
            numbers = (
                f"{one.heading}: learnt {worst:.4f} at the least, the log's own policy {wrote:.4f}"
            )
            holds = not any(map(premise_is_false, one.trials)) and worst >= wrote
            yield Found(holds, numbers, ())  # of what is learnt before the first episode


@judges("fewer-violations-with-more-data")
def _fewer_violations(results: Results) -> Iterator[Found]:
    """Compare scenarios that differ only in the length of the log, from short to long."""
    for agent, family in product(results.study.agents, _by_log(results)):
        there = [(one, trials) for one in family if (trials := results.of(one.id, agent.id))]
        if len(there) < 2:
            continue
        below = [count(trials, "violations") / len(trials) for _, trials in there]
        shares = ", ".join(
            f"{scenario.heading}: {count(trials, 'violations')} of {len(trials)}"
            for scenario, trials in there
        )
        falls = all(later <= earlier for earlier, later in pairwise(below)) and below[-1] < below[0]
        numbers = f"{label_of(there[0][1])}, runs below the floor: {shares}"
        yield Found(falls, numbers, [trial for _, trials in there for trial in trials])


# -- ours ------------------------------------------------------------------------------------------


@judges("sharp-leaves-sooner")
def _sharp_leaves_sooner(results: Results) -> Iterator[Found]:
    for sharp, printed in in_one_scenario(results, MIXERS, MIXERS):
        alike, both = attrgetter("agent", "scale", "pooled"), (*sharp.trials, *printed.trials)
        mine, its = sharp.cell.agent, printed.cell.agent
        compared = (mine.bounds, its.bounds) == ("kl", "paper") and alike(mine) == alike(its)
        if compared and not any(map(is_uncertified, both)):
            numbers = f"{sharp.heading} {_how_much_sooner(sharp.trials, printed.trials)}"
            yield Found(later(sharp.trials, printed.trials, left_at), numbers, both)


def _how_much_sooner(mine: Trials, its: Trials) -> str:
    """Return both moments, and how many times sooner one is. Of the first episode, which is 0,
    there is no such number.

    It is rounded down to two digits: plans in blocks leave no more of a moment.
    """
    early, late = median(mine, left_at), median(its, left_at)
    moments = f"{'from the first episode' if early == 0.0 else at(early)} instead of {at(late)}"
    lasted = its[0].episodes if math.isinf(late) else late
    if early < 1.0 or lasted < early:
        return moments
    factor = lasted / early
    unit = 10 ** max(0, math.floor(math.log10(factor)) - 1)
    bound = "more than " if math.isinf(late) else ""
    return f"{moments}, {bound}{math.floor(factor / unit) * unit:,} times sooner"


if CLAIMS.keys() != JUDGES.keys():
    raise ValueError(
        f"No function judges {', '.join(sorted(CLAIMS.keys() - JUDGES.keys()))}: add one, with "
        "@judges."
    )
