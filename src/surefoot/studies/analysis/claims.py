"""What the paper says must come out, each claim judged by code from the results, with the numbers that decide it.

A claim holds when it holds in every scenario it speaks of. Agents are compared trial by trial: trial i of all cells
draws from the same seed. What the results cannot tell, because trials or learners are missing, is not judged.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from surefoot.agents import AGENTS
from surefoot.studies.analysis.pairing import (
    Found,
    at,
    at_the_end,
    both,
    but_length,
    cells_of,
    closed_of_the_way,
    common,
    eta_of,
    is_flat,
    is_optimal,
    kind_of,
    label_of,
    later,
    left_at,
    like,
    median,
    more_of,
    number,
    optimistic_at,
    regret_of,
    runs,
    stays_at_first,
    tightness,
    way_of,
    worth_of,
)
from surefoot.studies.analysis.promises import breaks_promise, certificate_is_false, is_uncertified, premise_is_false
from surefoot.studies.analysis.stats import shown
from surefoot.studies.run.store import Results
from surefoot.studies.spec.study import Scenario

FAR = 0.9  # of the way from the baseline to the optimum, median over trials: has risen to it
MIXERS = ("stepmix", "epsmix")


class Verdict(NamedTuple):
    """A claim, and what the results say to it."""

    claim: str  # a sentence
    holds: bool | None  # None: these results cannot tell
    numbers: str  # what was found, with the numbers


Judge = Callable[[Results], Iterator[Found]]


class Claim(NamedTuple):
    """A sentence, who says it, and how it is judged."""

    sentence: str
    source: str
    judge: Judge


def judge(results: Results) -> list[Verdict]:
    """The claims that the study names, in its order."""
    return [_verdict(results, CLAIMS[name]) for name in results.study.claims]


def _verdict(results: Results, claim: Claim) -> Verdict:
    found = list(claim.judge(results))
    sentence = f"{claim.sentence} ({claim.source})"
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


def _promise(results: Results) -> Iterator[Found]:
    """Every learner that promises. No violation means little where nobody left the baseline.

    Trial i of all panels has the same seed, so its runs are not independent: trials are counted, not runs, and one in
    which any scenario breaks the promise is broken.
    """
    for learner in results.study.agents:
        everyone = [trial for scenario in results.study.scenarios for trial in results.of(scenario.id, learner.id)]
        certified = [trial for trial in everyone if trial.certified]
        broken = [trial for trial in everyone if breaks_promise(trial, learner)]
        left = [trial for trial in certified if trial.off_baseline is not None]
        false = [trial for trial in everyone if premise_is_false(trial)]
        disproved = [trial for trial in (*certified, *false) if certificate_is_false(trial)]
        if not left and not broken and not disproved:
            continue
        # Who never left cannot break it by exploring; one of them that did is counted among all.
        of_those = bool(left) and all(one in left for one in broken)
        judged, who = (left, " that left the baseline") if of_those else (everyone, "")
        k, n = (len({trial.trial for trial in some}) for some in (broken, judged))
        trials, bound = shown(k, n).replace("run", "trial", 1).split(": ")
        panels = len({trial.panel for trial in judged})
        places = f" in {panels} scenario{'s' * (panels > 1)}" * (len(results.study.scenarios) > 1)
        what = "broke the sum's floor" if AGENTS[learner.agent].in_sum else "fell below the floor"
        numbers = f"{label_of(everyone)}: {trials}{places}{who} {what} ({bound})"
        if len(left) < len(certified):
            numbers += f", {runs(len(certified) - len(left))} never left it"
        numbers += f", {runs(len(false))} had a baseline below the floor" * bool(false)
        numbers += f", in {runs(len(disproved))} the log's certificate was false" * bool(disproved)
        yield Found(not broken and not disproved, numbers)


def _optimist_violates(results: Results) -> Iterator[Found]:
    for scenario, _, label, trials in cells_of(results, ("bpi-ucbvi",)):
        mean = statistics.fmean(trial.violations for trial in trials)
        numbers = f"{scenario.heading}: {label} is below the floor in {number(mean)} episodes a run"
        yield Found(all(trial.violated for trial in trials), numbers)


# -- the shape of learning --------------------------------------------------------------------------------------------


def _flat_then_rise(results: Results) -> Iterator[Found]:
    for scenario, _, label, trials in cells_of(results, MIXERS):
        ends = statistics.fmean(at_the_end(trial) for trial in trials)
        best, start = trials[0].optimum, statistics.fmean(trial.baseline for trial in trials)
        numbers = f"{scenario.heading}, {label}: {start:.4g} at first, {ends:.4g} at the end, V* = {best:.4g}"
        down = sum(at_the_end(trial) <= trial.baseline for trial in trials)
        closed = statistics.median(map(closed_of_the_way, trials))
        if down:
            numbers += f" ({down} of {len(trials)} do not end above their baseline)"
        elif closed < FAR:
            numbers += f" ({100 * closed:.0f} % of the way)"
        stays = all(is_flat(trial) and stays_at_first(trial) for trial in trials)
        yield Found(stays and not down and closed >= FAR, numbers)


def _epsmix_sooner(results: Results) -> Iterator[Found]:
    steps, others = ([one for one in results.study.agents if one.agent == agent] for agent in MIXERS)
    for scenario in results.study.scenarios:
        for one, other in ((one, other) for one in steps for other in others if way_of(one) == way_of(other)):
            step, eps = results.of(scenario.id, one.id), results.of(scenario.id, other.id)
            if not common(step, eps):
                continue
            mine, its = median(eps, left_at), median(step, left_at)
            optimistic = " and ".join(number(median(trials, optimistic_at)) for trials in (eps, step))
            off = f"{label_of(eps)} at {number(mine)}, {label_of(step)} at {number(its)}"
            yield Found(later(eps, step, left_at), f"{scenario.heading}: {off} (optimistic at {optimistic})")


# -- panels held against each other -----------------------------------------------------------------------------------


def _compared(results: Results, easier: Scenario, harder: Scenario, agents: Sequence[str]) -> Iterator[Found]:
    """Later off the baseline, and more regret, in the harder place."""
    for learner in results.study.agents:
        if learner.agent not in agents:
            continue
        one, other = results.of(easier.id, learner.id), results.of(harder.id, learner.id)
        if not common(one, other) or one[0].episodes != other[0].episodes:
            continue
        off = f"off the baseline at {number(median(one, left_at))} and {number(median(other, left_at))}"
        regret = f"regret {number(median(one, regret_of))} and {number(median(other, regret_of))}"
        places = f"{easier.heading} and {harder.heading}"
        numbers = f"{label_of(one)}, {places}: {off}, {regret}"
        yield both(later(one, other, left_at), more_of(one, other, regret_of), numbers)


def _higher_floor_delays(results: Results) -> Iterator[Found]:
    for easier in results.study.scenarios:
        for harder in results.study.scenarios:
            same = like(easier) == like(harder)
            floors = easier.floor, harder.floor
            if same and all(isinstance(floor, float) for floor in floors) and floors[0] < floors[1]:  # type: ignore[operator]
                yield from _compared(results, easier, harder, MIXERS)


def _better_baseline_helps(results: Results) -> Iterator[Found]:
    for better in results.study.scenarios:
        for worse in results.study.scenarios:
            etas = eta_of(better), eta_of(worse)
            same = like(better, but_baseline=True) == like(worse, but_baseline=True) and better.floor == worse.floor
            if same and better.log is None and etas[0] is not None and etas[1] is not None and etas[0] > etas[1]:
                yield from _compared(results, better, worse, MIXERS)


def _tighter_floor_delays(results: Results) -> Iterator[Found]:
    """Floors that are shares of the baseline's value, from loose to tight."""
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


def _dope_leaves_first(results: Results) -> Iterator[Found]:
    for scenario, _, label, dope in cells_of(results, ("dope",)):
        for _, _, other, trials in (cell for cell in cells_of(results, (*MIXERS, "optpess-lp")) if cell[0] is scenario):
            numbers = f"{label} at {number(median(dope, left_at))}, {other} {at(median(trials, left_at))}"
            yield Found(later(dope, trials, left_at), numbers)


def _dope_regrets_more(results: Results) -> Iterator[Found]:
    for scenario, _, label, dope in cells_of(results, ("dope",)):
        for _, _, other, trials in (cell for cell in cells_of(results, MIXERS) if cell[0] is scenario):
            if trials[0].episodes != dope[0].episodes or math.isinf(median(trials, left_at)):
                continue  # of runs of different lengths, or too short to leave the baseline, regret says nothing
            numbers = f"{label} {number(median(dope, regret_of))}, {other} {number(median(trials, regret_of))}"
            yield both(True, more_of(trials, dope, regret_of), numbers)


def _optpess_stays(results: Results) -> Iterator[Found]:
    for scenario, _, label, trials in cells_of(results, ("optpess-lp",)):
        left = sum(trial.off_baseline is not None for trial in trials)
        numbers = f"{scenario.heading}: {label} left it in {left} of {len(trials)} runs"
        others = [one for one in results.study.agents if one.agent != "optpess-lp"]
        # To stay where nobody can leave yet says nothing.
        if left or any(trial.off_baseline is not None for one in others for trial in results.of(scenario.id, one.id)):
            yield Found(left == 0, f"{numbers} of {number(trials[0].episodes)} episodes")


# -- the drafts -------------------------------------------------------------------------------------------------------


def _finite_mixtures(results: Results) -> Iterator[Found]:
    for scenario, _, label, trials in cells_of(results, ("stepmix",)):
        late = [trial.curve_by_h[trial.curve_episode >= 0.75 * trial.episodes] for trial in trials]
        still = max(int(rows[:, 1:].sum()) for rows in late)
        spent = ", ".join(
            f"h0 = {h}: {number(statistics.fmean(int(trial.by_h[h]) for trial in trials))}"
            for h in range(trials[0].H + 1)
        )
        numbers = f"{scenario.heading}, {label}: {spent} episodes; {number(still)} with h0 > 0 in the last quarter"
        yield Found(still == 0, numbers)


def _mixing_leaves_sooner(results: Results) -> Iterator[Found]:
    for scenario, _, label, without in cells_of(results, ("step-no-mix",)):
        for _, _, other, trials in (cell for cell in cells_of(results, ("stepmix",)) if cell[0] is scenario):
            off = f"{other} {at(median(trials, left_at))}, {label} {at(median(without, left_at))}"
            regret = f"regret {number(median(trials, regret_of))} and {number(median(without, regret_of))}"
            yield Found(later(trials, without, left_at), f"{scenario.heading}: {off} ({regret})")


# -- logs -------------------------------------------------------------------------------------------------------------


def _by_log(results: Results) -> Iterator[tuple[Scenario, Scenario]]:
    """Panels that differ in the length of the log alone, each with the next longer one."""
    with_log = [(scenario, scenario.log) for scenario in results.study.scenarios if scenario.log is not None]
    for less, mine in with_log:
        longer = [
            (its.episodes, more.id, more)
            for more, its in with_log
            if its.episodes > mine.episodes and more.floor == less.floor and but_length(more) == but_length(less)
        ]
        if longer:
            yield less, min(longer)[2]


def _more_trajectories_help(results: Results) -> Iterator[Found]:
    for less, more in _by_log(results):
        for learner in results.study.agents:
            if learner.agent not in MIXERS:
                continue
            one, other = results.of(less.id, learner.id), results.of(more.id, learner.id)
            if not common(one, other):
                continue
            start = [statistics.fmean(trial.baseline for trial in trials) for trials in (one, other)]
            when = [median(trials, optimistic_at) for trials in (one, other)]
            numbers = (
                f"{label_of(one)}, {less.heading} and {more.heading}: baseline {start[0]:.4f} and {start[1]:.4f}, "
                f"optimistic at {number(when[0])} and {number(when[1])}"
            )
            best = [sum(map(is_optimal, trials)) for trials in (one, other)]
            numbers += f" (already optimal in {best[0]} and {best[1]} of {len(one)} logs)" * (max(best) > 0)
            yield both(when[1] < when[0], more_of(one, other, worth_of), numbers)


def _log_is_enough(results: Results) -> Iterator[Found]:
    for scenario, _, label, trials in cells_of(results, MIXERS):
        wrote = [trial.log_behaviour for trial in trials if trial.log_behaviour is not None]
        if len(wrote) == len(trials):
            worst = min(trial.baseline for trial in trials)
            false = sum(premise_is_false(trial) for trial in trials)
            numbers = (
                f"{scenario.heading}, {label}: learnt {worst:.4f} at the least, the log's own policy {wrote[0]:.4f}"
            )
            yield Found(false == 0 and worst >= wrote[0], numbers)


def _fewer_violations(results: Results) -> Iterator[Found]:
    """Panels that differ in the length of the log alone, from short to long."""
    for learner in results.study.agents:
        there = [(scenario, scenario.log, results.of(scenario.id, learner.id)) for scenario in results.study.scenarios]
        with_log = [(log.episodes, scenario, trials) for scenario, log, trials in there if log is not None and trials]
        for _, first, _ in with_log:
            alike = [one for one in with_log if (but_length(one[1]), one[1].floor) == (but_length(first), first.floor)]
            if first is not alike[0][1] or len(alike) < 2:
                continue  # each family once
            alike.sort(key=lambda one: one[0])
            below = [sum(trial.violated for trial in trials) / len(trials) for _, _, trials in alike]
            said = ", ".join(
                f"{scenario.heading}: {sum(trial.violated for trial in trials)} of {len(trials)}"
                for _, scenario, trials in alike
            )
            falls = all(later <= earlier for earlier, later in pairwise(below)) and below[-1] < below[0]
            yield Found(falls, f"{label_of(alike[0][2])}, runs below the floor: {said}")


# -- ours -------------------------------------------------------------------------------------------------------------


def _sharp_leaves_sooner(results: Results) -> Iterator[Found]:
    learners = results.study.agents
    for scenario in results.study.scenarios:
        for sharp in (learner for learner in learners if learner.bounds == "kl"):
            alike = ("paper", *way_of(sharp)[1:])
            for printed in (one for one in learners if one.agent == sharp.agent and way_of(one) == alike):
                mine, its = results.of(scenario.id, sharp.id), results.of(scenario.id, printed.id)
                if not common(mine, its) or sharp.agent not in MIXERS or any(map(is_uncertified, (*mine, *its))):
                    continue
                early, late = median(mine, left_at), median(its, left_at)
                bound = "more than " * math.isinf(late)
                factor = (its[0].episodes if math.isinf(late) else late) / max(early, 1.0)
                numbers = f"at {number(early)} instead of {number(late)}, {bound}{factor:,.0f} times sooner"
                yield Found(later(mine, its, left_at), f"{scenario.heading}, {label_of(mine)} {numbers}")


PAPER, DRAFT, OURS = "the paper", "a draft of the paper", "ours"
CLAIMS: dict[str, Claim] = {
    "promise": Claim("Learners that promise the floor keep it in every episode", PAPER, _promise),
    "optimist-violates": Claim("BPI-UCBVI, which has no floor, falls below it", PAPER, _optimist_violates),
    "flat-then-rise": Claim(
        "StepMix and EpsMix stay on the baseline at first, then rise to the optimum", PAPER, _flat_then_rise
    ),
    "epsmix-sooner": Claim("EpsMix leaves the baseline slightly sooner than StepMix", PAPER, _epsmix_sooner),
    "higher-floor-delays": Claim(
        "A higher floor delays both: later off the baseline, more regret", PAPER, _higher_floor_delays
    ),
    "better-baseline-helps": Claim(
        "A better baseline helps: sooner off it, less regret", PAPER, _better_baseline_helps
    ),
    "dope-leaves-first": Claim("DOPE leaves the baseline first", PAPER, _dope_leaves_first),
    "dope-regrets-more": Claim("DOPE ends with more regret than StepMix and EpsMix", PAPER, _dope_regrets_more),
    "optpess-stays": Claim("OptPess-LP stays on the baseline throughout", PAPER, _optpess_stays),
    "more-trajectories-help": Claim(
        "More offline trajectories give a better baseline, and the optimum sooner", PAPER, _more_trajectories_help
    ),
    "log-is-enough": Claim(
        "A baseline learnt from the log is no worse than the policy that wrote it", OURS, _log_is_enough
    ),
    "tighter-floor-delays": Claim(
        "A smaller alpha, a tighter floor, delays StepMix: later off the baseline, more regret",
        DRAFT,
        _tighter_floor_delays,
    ),
    "finite-mixtures": Claim("The episodes that StepMix spends at h0 > 0 stop growing with K", DRAFT, _finite_mixtures),
    "mixing-leaves-sooner": Claim(
        "StepNoMix stays on the baseline for more episodes than StepMix", DRAFT, _mixing_leaves_sooner
    ),
    "fewer-violations-with-more-data": Claim(
        "The more offline trajectories, the fewer runs are below the floor", DRAFT, _fewer_violations
    ),
    "sharp-leaves-sooner": Claim(
        "With KL certificates the same learner leaves the baseline sooner, under the same promise",
        OURS,
        _sharp_leaves_sooner,
    ),
}
