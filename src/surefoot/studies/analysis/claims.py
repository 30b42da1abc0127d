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

from surefoot.agents import AGENTS
from surefoot.studies.analysis import table_1, theory
from surefoot.studies.analysis.judges import JUDGES, MIXERS, judges
from surefoot.studies.analysis.stats import bound_in_words, count_in_words
from surefoot.studies.analysis.summary import Rows, summary
from surefoot.studies.analysis.trials import (
    Found,
    at,
    at_the_end,
    baseline_of,
    both,
    breaks_promise,
    but_in,
    but_length,
    cells_of,
    certificate_is_false,
    common,
    eta_of,
    is_flat,
    is_optimal,
    is_promised,
    is_uncertified,
    kind_of,
    label_of,
    later,
    left_at,
    like,
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
    tightness,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.claims import CLAIMS
from surefoot.studies.spec.study import AgentSpec, Scenario

FAR = 0.9  # of the gap between baseline and optimum, median over trials: who closed that much has risen to the optimum


class Verdict(NamedTuple):
    """A claim, and what the results show of it."""

    claim: str  # a sentence
    holds: bool | None  # None: these results cannot tell
    numbers: str  # what was found, with the numbers


class Analysis(NamedTuple):
    """The results of a study, their summary, and the verdicts on its claims."""

    results: Results
    rows: Rows
    verdicts: list[Verdict]


def judge(results: Results) -> list[Verdict]:
    """Judge the claims that the study names, in its order."""
    return [_verdict(results, name) for name in results.study.claims]


def analyse(results: Results) -> Analysis:
    """Summarise the results, and judge the study's claims."""
    return Analysis(results, summary(results), judge(results))


def _verdict(results: Results, name: str) -> Verdict:
    """Judge one claim."""
    found = list(JUDGES[name](results))
    sentence = f"{CLAIMS[name].sentence} ({CLAIMS[name].source})"
    if not found:
        return Verdict(sentence, None, "There are no trials here that could tell.")
    numbers = "; ".join(one.numbers for one in found) + "."
    if any(one.holds is False for one in found):
        return Verdict(sentence, False, numbers)
    if any(one.holds is None for one in found):
        return Verdict(sentence, None, numbers)
    # What is not refuted is not shown either by a part of the trials, or by one of each.
    if results.missing:
        lacking = "1 trial is" if results.missing == 1 else f"{results.missing:,} trials are"
        return Verdict(sentence, None, f"{lacking} missing; so far: {numbers}")
    if results.study.trials == 1:
        return Verdict(sentence, None, f"one trial of each cannot tell; it says: {numbers}")
    return Verdict(sentence, True, numbers)


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
    judged, who = (left, " that left the baseline") if of_those else (everyone, "")
    k, n = (len({trial.trial for trial in some}) for some in (broken, judged))
    scenarios = len({trial.panel for trial in judged})
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
    return Found(not broken and not disproved, numbers)


@judges("optimist-violates")
def _optimist_violates(results: Results) -> Iterator[Found]:
    for scenario, label, trials in cells_of(results, ("bpi-ucbvi",)):
        mean = statistics.fmean(trial.violations for trial in trials)
        numbers = f"{scenario.heading}: {label} is below the floor in {number(mean)} episodes a run"
        yield Found(all(trial.violations > 0 for trial in trials), numbers)


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
        yield Found(stays and not down and closed >= FAR, numbers)


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
        yield both(later(eps, step, optimistic_at), more_of(eps, step, regret_of), numbers)


@judges("epsmix-sooner")
def _epsmix_sooner(results: Results) -> Iterator[Found]:
    for scenario, eps, step in _epsmix_and_stepmix(results):
        mine, its = median(eps, left_at), median(step, left_at)
        off = f"{label_of(eps)} {at(mine)}, {label_of(step)} {at(its)}"
        yield Found(later(eps, step, left_at), f"{scenario.heading}: {off}{but_in(eps, step, left_at)}")


# -- scenarios compared with each other -------------------------------------------------------------------------------


def _compared(results: Results, easier: Scenario, harder: Scenario, agents: Sequence[str]) -> Iterator[Found]:
    """Judge whether agents leave the baseline later, with more regret, in the harder scenario."""
    for agent in results.study.agents:
        if agent.agent not in agents:
            continue
        one, other = results.of(easier.id, agent.id), results.of(harder.id, agent.id)
        if not common(one, other) or one[0].episodes != other[0].episodes:
            continue
        off = f"off the baseline at {number(median(one, left_at))} and {number(median(other, left_at))}"
        regret = f"regret {number(median(one, regret_of))} and {number(median(other, regret_of))}"
        where = f"{easier.heading} and {harder.heading}"
        numbers = f"{label_of(one)}, {where}: {off}{but_in(one, other, left_at)}, {regret}"
        yield both(later(one, other, left_at), more_of(one, other, regret_of), numbers)


@judges("higher-floor-delays")
def _higher_floor_delays(results: Results) -> Iterator[Found]:
    for easier in results.study.scenarios:
        for harder in results.study.scenarios:
            same = like(easier) == like(harder)
            floors = easier.floor, harder.floor
            if same and all(isinstance(floor, float) for floor in floors) and floors[0] < floors[1]:  # type: ignore[operator]
                yield from _compared(results, easier, harder, MIXERS)


@judges("better-baseline-helps")
def _better_baseline_helps(results: Results) -> Iterator[Found]:
    for better in results.study.scenarios:
        for worse in results.study.scenarios:
            etas = eta_of(better), eta_of(worse)
            same = like(better, but_baseline=True) == like(worse, but_baseline=True) and better.floor == worse.floor
            if same and better.log is None and etas[0] is not None and etas[1] is not None and etas[0] > etas[1]:
                yield from _compared(results, better, worse, MIXERS)


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
            yield from _compared(results, looser, min(tighter, key=tightness), MIXERS)


# -- rivals -----------------------------------------------------------------------------------------------------------


@judges("dope-leaves-first")
def _dope_leaves_first(results: Results) -> Iterator[Found]:
    for scenario, label, dope in cells_of(results, ("dope",)):
        for _, other, trials in (
            cell for cell in cells_of(results, (*MIXERS, "optpess-lp")) if cell.scenario is scenario
        ):
            numbers = f"{label} at {number(median(dope, left_at))}, {other} {at(median(trials, left_at))}"
            yield Found(later(dope, trials, left_at), numbers)


@judges("dope-regrets-more")
def _dope_regrets_more(results: Results) -> Iterator[Found]:
    for scenario, label, dope in cells_of(results, ("dope",)):
        for _, other, trials in (cell for cell in cells_of(results, MIXERS) if cell.scenario is scenario):
            if trials[0].episodes != dope[0].episodes or math.isinf(median(trials, left_at)):
                continue  # of runs of different lengths, or too short to leave the baseline, regret says nothing
            numbers = f"{label} {number(median(dope, regret_of))}, {other} {number(median(trials, regret_of))}"
            yield both(True, more_of(trials, dope, regret_of), numbers)


@judges("optpess-stays")
def _optpess_stays(results: Results) -> Iterator[Found]:
    for scenario, label, trials in cells_of(results, ("optpess-lp",)):
        left = sum(trial.off_baseline is not None for trial in trials)
        numbers = f"{scenario.heading}: {label} left it in {left} of {len(trials)} runs"
        others = [one for one in results.study.agents if one.agent != "optpess-lp"]
        # That it stays shows nothing where nobody leaves.
        if left or any(trial.off_baseline is not None for one in others for trial in results.of(scenario.id, one.id)):
            yield Found(left == 0, f"{numbers} of {number(trials[0].episodes)} episodes")


# -- the drafts -------------------------------------------------------------------------------------------------------


@judges("finite-mixtures")
def _finite_mixtures(results: Results) -> Iterator[Found]:
    for scenario, label, trials in cells_of(results, ("stepmix",)):
        late = [trial.curve_by_h[trial.curve_episode >= 0.75 * trial.episodes] for trial in trials]
        still = max(int(rows[:, 1:].sum()) for rows in late)
        spent = ", ".join(
            f"h0 = {h}: {number(statistics.fmean(int(trial.by_h[h]) for trial in trials))}"
            for h in range(trials[0].H + 1)
        )
        numbers = f"{scenario.heading}, {label}: {spent} episodes; {number(still)} with h0 > 0 in the last quarter"
        yield Found(still == 0, numbers)


@judges("mixing-leaves-sooner")
def _mixing_leaves_sooner(results: Results) -> Iterator[Found]:
    for scenario, label, without in cells_of(results, ("step-no-mix",)):
        for _, other, trials in (cell for cell in cells_of(results, ("stepmix",)) if cell.scenario is scenario):
            off = f"{other} {at(median(trials, left_at))}, {label} {at(median(without, left_at))}"
            regret = f"regret {number(median(trials, regret_of))} and {number(median(without, regret_of))}"
            yield Found(later(trials, without, left_at), f"{scenario.heading}: {off} ({regret})")


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
            yield both(when[1] < when[0], more_of(one, other, baseline_of), numbers)


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
            yield Found(false == 0 and worst >= wrote[0], numbers)


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
            yield Found(falls, f"{label_of(alike[0][2])}, runs below the floor: {shares}")


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
                early, late = median(mine, left_at), median(its, left_at)
                bound = "more than " if math.isinf(late) else ""
                factor = (its[0].episodes if math.isinf(late) else late) / max(early, 1.0)
                numbers = f"at {number(early)} instead of {number(late)}, {bound}{factor:,.0f} times sooner"
                yield Found(later(mine, its, left_at), f"{scenario.heading}, {label_of(mine)} {numbers}")


for _name, _function in (*theory.JUDGED.items(), *table_1.JUDGED.items()):
    judges(_name)(_function)
if CLAIMS.keys() != JUDGES.keys():
    raise ValueError(f"No function judges {', '.join(sorted(CLAIMS.keys() - JUDGES.keys()))}: add one, with @judges.")
