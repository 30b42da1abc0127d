"""What the paper says must come out: each claim judged by code from the results, with the numbers that decide it.

A claim holds when it holds in every scenario it speaks of. Agents are compared trial by trial: trial i of all cells
draws from the same seed. What the results cannot tell, because trials or agents are missing, is not judged. The claims
themselves, a sentence each, are in spec/claims.py.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis import compared, table_1, theorem, theory  # noqa: F401 (their judges register)
from surefoot.studies.analysis.judges import JUDGES, MIXERS, judges
from surefoot.studies.analysis.stats import bound_in_words, count_in_words
from surefoot.studies.analysis.summary import Rows, summary
from surefoot.studies.analysis.trials import (
    Found,
    at,
    at_the_end,
    both,
    breaks_promise,
    but_in,
    but_length,
    cells_of,
    certificate_is_false,
    common,
    hundredths_in_words,
    in_hundredths,
    in_one_scenario,
    is_flat,
    is_lower,
    is_optimal,
    is_promised,
    is_uncertified,
    judged,
    label_of,
    later,
    left_at,
    median,
    method_of,
    more_of,
    number,
    optimistic_at,
    premise_is_false,
    regret_of,
    runs,
    share_of_gap_closed,
    stays_at_first,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.claims import CLAIMS, SOURCES
from surefoot.studies.spec.study import AgentSpec, Scenario

VERDICTS = {True: "holds", False: "does not hold", None: "cannot be judged"}
FAR = 0.9  # of the gap between baseline and optimum, median over trials: who closed that much has risen to the optimum


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
    """Return how many claims of the paper, of its drafts and of ours hold, do not, and cannot be judged."""
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


# -- the promise ------------------------------------------------------------------------------------------------------


@judges("promise")
def _promise(results: Results) -> Iterator[Found]:
    """Judge every agent that promises. That there is no violation means little where nobody left the baseline."""
    for agent in results.study.agents:
        mine = [results.trials.get(cell.id, ()) for cell in results.study.cells if cell.agent is agent]
        found = _kept(agent, [trial for trials in mine for trial in trials], len(mine) > 1)
        if found is not None:
            yield found


def _kept(agent: AgentSpec, everyone: Sequence[Trial], several: bool) -> Found | None:
    """Return whether an agent kept its promise; None where its trials cannot tell. `several`: of several scenarios?

    Trial i of all scenarios has the same seed, so its runs are not independent: trials are counted, not runs, and one
    in which any scenario breaks the promise is broken.
    """
    promised = [trial for trial in everyone if is_promised(trial)]
    broken = [trial for trial in everyone if breaks_promise(trial, agent)]
    left = [trial for trial in promised if trial.off_baseline is not None]
    false = [trial for trial in everyone if premise_is_false(trial)]
    disproved = [trial for trial in (*promised, *false) if certificate_is_false(trial)]
    if not left and not broken and not disproved:
        return None
    # Who never left cannot break it by exploring; one of them that did is counted among all.
    of_those = bool(left) and all(one in left for one in broken)
    those, who = (left, " that left the baseline") if of_those else (everyone, "")
    k, n = (len({trial.trial for trial in some}) for some in (broken, those))
    scenarios = len({trial.scenario for trial in those})
    where = ""
    if several:
        where = " in 1 scenario" if scenarios == 1 else f" in {scenarios} scenarios"
    what = "broke the sum's floor" if AGENTS[agent.agent].in_sum else "fell below the floor"
    count, bound = count_in_words(k, n, "trial"), bound_in_words(k, n)
    numbers = f"{label_of(everyone)}: {count}{where}{who} {what} ({bound})"
    if len(left) < len(promised):
        numbers += f", {runs(len(promised) - len(left))} never left it"
    if false:
        numbers += f", {runs(len(false))} had a baseline below the floor"
    if disproved:
        numbers += f", in {runs(len(disproved))} the log's certificate was false"
    return Found(not broken and not disproved, numbers, those)


@judges("optimist-violates")
def _optimist_violates(results: Results) -> Iterator[Found]:
    for scenario, label, trials in cells_of(results, ("bpi-ucbvi",)):
        mean = statistics.fmean(trial.violations for trial in trials)
        numbers = f"{scenario.heading}: {label} is below the floor in {number(mean)} episodes a run"
        yield Found(all(trial.violations > 0 for trial in trials), numbers, trials)


# -- the shape of learning --------------------------------------------------------------------------------------------


@judges("flat-then-rise")
def _flat_then_rise(results: Results) -> Iterator[Found]:
    for scenario, label, trials in cells_of(results, MIXERS):
        ends = statistics.fmean(at_the_end(trial) for trial in trials)
        best, start = (statistics.fmean(getattr(trial, of) for trial in trials) for of in ("optimum", "baseline"))
        numbers = f"{scenario.heading}, {label}: {start:.4g} at first, {ends:.4g} at the end, V* = {best:.4g}"
        down = sum(at_the_end(trial) <= trial.baseline for trial in trials)
        closed = statistics.median(map(share_of_gap_closed, trials))
        if down:
            numbers += f" ({down} of {len(trials)} do not end above their baseline)"
        elif closed < FAR:
            numbers += f" ({100 * closed:.0f} % of the way)"
        stays = all(is_flat(trial) and stays_at_first(trial) for trial in trials)
        yield Found(stays and not down and closed >= FAR, numbers + _dip(trials), trials)


def _dip(trials: Sequence[Trial]) -> str:
    """Return where the mean return is below the baseline's, above or below the floor: what a rise leaves unsaid."""
    returns = np.mean([in_hundredths(trial) for trial in trials], axis=0)
    start, floor = (statistics.fmean(getattr(trial, of) for trial in trials) for of in ("baseline", "floor"))
    below = is_lower(returns, start)
    if not below.any():
        return ""
    lowest = f"down to {returns.min():.4g} (the floor is {floor:.4g})"
    return f", below the baseline in {hundredths_in_words(below)}, {lowest}"


def _epsmix_and_stepmix(results: Results) -> Iterator[tuple[Scenario, tuple[Trial, ...], tuple[Trial, ...]]]:
    """Yield the trials of EpsMix and of StepMix with the same bounds and counts, in each scenario."""
    steps, others = ([one for one in results.study.agents if one.agent == agent] for agent in MIXERS)
    for scenario in results.study.scenarios:
        for one, other in ((one, other) for one in steps for other in others if method_of(one) == method_of(other)):
            step, eps = results.of(scenario.id, one.id), results.of(scenario.id, other.id)
            if common(step, eps):
                yield scenario, eps, step


@judges("epsmix-faster")
def _epsmix_faster(results: Results) -> Iterator[Found]:
    """Judge the paper's sentence as it is worded: convergence, by regret and by the first optimistic episode."""
    for scenario, eps, step in _epsmix_and_stepmix(results):
        regret = " and ".join(number(median(trials, regret_of)) for trials in (eps, step))
        optimistic = " and ".join(number(median(trials, optimistic_at)) for trials in (eps, step))
        numbers = (
            f"{label_of(eps)} and {label_of(step)}, {scenario.heading}: regret {regret}, optimistic at {optimistic}"
        )
        numbers += but_in(eps, step, optimistic_at)
        yield both(later(eps, step, optimistic_at), more_of(eps, step, regret_of), numbers, (*eps, *step))


@judges("epsmix-sooner")
def _epsmix_sooner(results: Results) -> Iterator[Found]:
    for scenario, eps, step in _epsmix_and_stepmix(results):
        mine, its = median(eps, left_at), median(step, left_at)
        off = f"{label_of(eps)} {at(mine)}, {label_of(step)} {at(its)}"
        yield Found(later(eps, step, left_at), f"{scenario.heading}: {off}{but_in(eps, step, left_at)}", (*eps, *step))


# -- rivals -----------------------------------------------------------------------------------------------------------


@judges("dope-leaves-first")
def _dope_leaves_first(results: Results) -> Iterator[Found]:
    for (_, label, dope), (_, other, trials) in in_one_scenario(results, ("dope",), (*MIXERS, "optpess-lp")):
        numbers = f"{label} at {number(median(dope, left_at))}, {other} {at(median(trials, left_at))}"
        yield Found(later(dope, trials, left_at), numbers, (*dope, *trials))


@judges("dope-regrets-more")
def _dope_regrets_more(results: Results) -> Iterator[Found]:
    for (_, label, dope), (_, other, trials) in in_one_scenario(results, ("dope",), MIXERS):
        if trials[0].episodes != dope[0].episodes or math.isinf(median(trials, left_at)):
            continue  # of runs of different lengths, or too short to leave the baseline, regret says nothing
        numbers = f"{label} {number(median(dope, regret_of))}, {other} {number(median(trials, regret_of))}"
        yield judged(more_of(trials, dope, regret_of), numbers, (*dope, *trials))


@judges("optpess-stays")
def _optpess_stays(results: Results) -> Iterator[Found]:
    for scenario, label, trials in cells_of(results, ("optpess-lp",)):
        left = sum(trial.off_baseline is not None for trial in trials)
        numbers = f"{scenario.heading}: {label} left it in {left} of {runs(len(trials))}"
        others = [one for one in results.study.agents if one.agent != "optpess-lp"]
        # That it stays shows nothing where nobody leaves.
        if left or any(trial.off_baseline is not None for one in others for trial in results.of(scenario.id, one.id)):
            yield Found(left == 0, numbers, trials)


# -- the drafts -------------------------------------------------------------------------------------------------------


@judges("finite-mixtures")
def _finite_mixtures(results: Results) -> Iterator[Found]:
    """Judge how the episodes with h0 > 0 grow from 3K/4 to K, in the run in which most are added."""
    for scenario, label, trials in cells_of(results, ("stepmix",)):
        grown = [_late_mixtures(trial) for trial in trials]
        most = max(grown, key=lambda one: one.added)
        spent = ", ".join(
            f"h0 = {h}: {number(statistics.fmean(int(trial.by_h[h]) for trial in trials))}"
            for h in range(trials[0].H + 1)
        )
        by = f"{100 * most.added / most.before:.2g} %" if most.before else "from none"
        numbers = (
            f"{scenario.heading}, {label}: {spent} episodes; {number(most.added)} with h0 > 0 in the last quarter "
            f"({by}), in which log^2(K+1) grows by {100 * most.allowed:.2g} %"
        )
        yield Found(all(one.added <= one.allowed * one.before for one in grown), numbers, trials)


class LateMixtures(NamedTuple):
    """Episodes with h0 > 0: those before the last quarter of a run, those in it, and by what part they may grow."""

    before: int
    added: int
    allowed: float


def _late_mixtures(trial: Trial) -> LateMixtures:
    """Return them by whole bins."""
    late = trial.curve_episode >= 0.75 * trial.episodes
    mixed = trial.curve_by_h[:, 1:].sum(axis=1)
    k = int(trial.curve_episodes[~late].sum())
    allowed = theorem.growth_of_squared_logarithm(k, trial.episodes)
    return LateMixtures(int(mixed[~late].sum()), int(mixed[late].sum()), allowed)


@judges("mixing-leaves-sooner")
def _mixing_leaves_sooner(results: Results) -> Iterator[Found]:
    for (scenario, label, without), (_, other, trials) in in_one_scenario(results, ("step-no-mix",), ("stepmix",)):
        off = f"{other} {at(median(trials, left_at))}, {label} {at(median(without, left_at))}"
        regret = f"regret {number(median(trials, regret_of))} and {number(median(without, regret_of))}"
        yield Found(later(trials, without, left_at), f"{scenario.heading}: {off} ({regret})", (*trials, *without))


# -- logs -------------------------------------------------------------------------------------------------------------


def _by_log(results: Results) -> Iterator[tuple[Scenario, Scenario]]:
    """Yield pairs of scenarios that differ only in the length of the log, each with the next longer one."""
    with_log = [(scenario, scenario.log) for scenario in results.study.scenarios if scenario.log is not None]
    for less, mine in with_log:
        longer = [
            (its.episodes, more.id, more)
            for more, its in with_log
            if its.episodes > mine.episodes and more.floor == less.floor and but_length(more) == but_length(less)
        ]
        if longer:
            yield less, min(longer)[2]


@judges("more-trajectories-help")
def _more_trajectories_help(results: Results) -> Iterator[Found]:
    for less, more in _by_log(results):
        for agent in results.study.agents:
            if agent.agent not in MIXERS:
                continue
            one, other = results.of(less.id, agent.id), results.of(more.id, agent.id)
            if not common(one, other):
                continue
            start = [statistics.fmean(trial.baseline for trial in trials) for trials in (one, other)]
            when = [median(trials, optimistic_at) for trials in (one, other)]
            numbers = (
                f"{label_of(one)}, {less.heading} and {more.heading}: baseline {start[0]:.4f} and {start[1]:.4f}, "
                f"optimistic at {number(when[0])} and {number(when[1])}"
            )
            best = [sum(map(is_optimal, trials)) for trials in (one, other)]
            if any(best):
                numbers += f" (already optimal in {best[0]} and {best[1]} of {len(one)} logs)"
            yield both(when[1] < when[0], more_of(one, other, lambda trial: trial.baseline), numbers, (*one, *other))


@judges("log-is-enough")
def _log_is_enough(results: Results) -> Iterator[Found]:
    for scenario, label, trials in cells_of(results, MIXERS):
        wrote = [trial.log_behaviour for trial in trials if trial.log_behaviour is not None]
        if len(wrote) == len(trials):
            worst = min(trial.baseline for trial in trials)
            false = sum(premise_is_false(trial) for trial in trials)
            numbers = (
                f"{scenario.heading}, {label}: learnt {worst:.4f} at the least, the log's own policy {wrote[0]:.4f}"
            )
            yield Found(false == 0 and worst >= wrote[0], numbers, ())  # of what is learnt before the first episode


@judges("fewer-violations-with-more-data")
def _fewer_violations(results: Results) -> Iterator[Found]:
    """Compare scenarios that differ only in the length of the log, from short to long."""
    for agent in results.study.agents:
        there = [(scenario, scenario.log, results.of(scenario.id, agent.id)) for scenario in results.study.scenarios]
        with_log = [(log.episodes, scenario, trials) for scenario, log, trials in there if log is not None and trials]
        for _, first, _ in with_log:
            alike = [one for one in with_log if (but_length(one[1]), one[1].floor) == (but_length(first), first.floor)]
            if first is not alike[0][1] or len(alike) < 2:
                continue  # each family once
            alike.sort(key=lambda one: one[0])
            below = [sum(trial.violations > 0 for trial in trials) / len(trials) for _, _, trials in alike]
            shares = ", ".join(
                f"{scenario.heading}: {sum(trial.violations > 0 for trial in trials)} of {len(trials)}"
                for _, scenario, trials in alike
            )
            falls = all(later <= earlier for earlier, later in pairwise(below)) and below[-1] < below[0]
            yield Found(
                falls,
                f"{label_of(alike[0][2])}, runs below the floor: {shares}",
                [trial for _, _, trials in alike for trial in trials],
            )


# -- ours -------------------------------------------------------------------------------------------------------------


@judges("sharp-leaves-sooner")
def _sharp_leaves_sooner(results: Results) -> Iterator[Found]:
    agents = results.study.agents
    for scenario in results.study.scenarios:
        for sharp in (agent for agent in agents if agent.bounds == "kl"):
            alike = method_of(sharp)._replace(bounds="paper")
            for printed in (one for one in agents if one.agent == sharp.agent and method_of(one) == alike):
                mine, its = results.of(scenario.id, sharp.id), results.of(scenario.id, printed.id)
                if not common(mine, its) or sharp.agent not in MIXERS or any(map(is_uncertified, (*mine, *its))):
                    continue
                numbers = f"{scenario.heading}, {label_of(mine)} {_how_much_sooner(mine, its)}"
                yield Found(later(mine, its, left_at), numbers, (*mine, *its))


def _how_much_sooner(mine: Sequence[Trial], its: Sequence[Trial]) -> str:
    """Return both moments, and how many times sooner one is. Of the first episode, which is 0, there is no such number.

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
    raise ValueError(f"No function judges {', '.join(sorted(CLAIMS.keys() - JUDGES.keys()))}: add one, with @judges.")
