"""What the paper says must come out, each claim judged by code from the results, with the numbers that decide it.

A claim holds when it holds in every panel that it speaks of. Learners are compared trial by trial: trial i of all cells
draws from the same seed. What the results cannot tell, because trials or learners are missing, is not judged.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from surefoot.agents import AGENTS
from surefoot.studies.spec import Learner, Panel
from surefoot.studies.stats import paired, shown
from surefoot.studies.store import Results
from surefoot.studies.summary import breaks_promise, certificate_is_false, is_uncertified, premise_is_false, title_of
from surefoot.studies.trial import Trial

FLAT = 1e-9  # how far a mean of equal values may be from them
FAR = 0.9  # of the way from the baseline to the optimum, median over trials: has risen to it
END = 0.05  # the last part of a run
MIXERS = ("stepmix", "epsmix")


class Verdict(NamedTuple):
    """A claim, and what the results say to it."""

    claim: str  # a sentence
    holds: bool | None  # None: these results cannot tell
    numbers: str  # what was found, with the numbers


class Claim(NamedTuple):
    """A sentence, who says it, and how it is judged."""

    sentence: str
    source: str
    judge: "Judge"


class Found(NamedTuple):
    """What one panel, or one learner in it, says."""

    holds: bool | None  # None: a difference that may be chance
    numbers: str


Judge = Callable[[Results], Iterator[Found]]


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


# -- looking things up ------------------------------------------------------------------------------------------------


def _cells(results: Results, agents: Sequence[str]) -> Iterator[tuple[Panel, str, str, tuple[Trial, ...]]]:
    """Panel, learner's id, label and trials of the cells of these algorithms, where there are trials."""
    for panel in results.study.panels:
        for learner in results.study.learners:
            trials = results.of(panel.id, learner.id)
            if learner.agent in agents and trials:
                yield panel, learner.id, _label(trials), trials


def _label(trials: Sequence[Trial]) -> str:
    """Who it is, and that nothing is proved of it, where that is so."""
    return trials[0].label + " (NOT CERTIFIED)" * any(map(is_uncertified, trials))


def _like(panel: Panel, but_baseline: bool = False) -> Panel:
    """All of a place but its names and its floor, and perhaps its baseline."""
    baseline = "usual" if but_baseline else panel.baseline
    return replace(panel, id="", title="", floor=0.0, baseline=baseline)


def _way(learner: Learner) -> tuple[object, ...]:
    """How a learner counts and bounds, whatever its algorithm."""
    return learner.bounds, learner.scale, learner.pooled


def _common(first: Sequence[Trial], second: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    """Trials of the same number: they had the same seed."""
    others = {trial.trial: trial for trial in second}
    return [(trial, others[trial.trial]) for trial in first if trial.trial in others]


def _when(trial: Trial) -> float:
    """The first episode off the baseline; never is later than everything."""
    return math.inf if trial.off_baseline is None else trial.off_baseline


def _optimistic(trial: Trial) -> float:
    return math.inf if trial.first_optimistic is None else trial.first_optimistic


def _regret(trial: Trial) -> float:
    return trial.regret


def _median(trials: Sequence[Trial], of: Callable[[Trial], float]) -> float:
    return statistics.median(of(trial) for trial in trials)


def number(value: float) -> str:
    """For people: millions where there are some."""
    if math.isinf(value):
        return "never"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} million"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def _at(episode: float) -> str:
    return "never" if math.isinf(episode) else f"at {number(episode)}"


def _later(early: Sequence[Trial], late: Sequence[Trial], of: Callable[[Trial], float]) -> bool:
    """In every common trial."""
    pairs = _common(early, late)
    return bool(pairs) and all(of(one) < min(of(other), other.episodes) for one, other in pairs)


def _more(less: Sequence[Trial], more: Sequence[Trial], of: Callable[[Trial], float]) -> bool | None:
    """On average over common trials; None where chance may have done it, either way."""
    pairs = _common(less, more)
    compared = paired([of(one) for one, _ in pairs], [of(other) for _, other in pairs])
    interval = compared.difference
    if math.isnan(interval.high):
        return interval.mean < 0.0  # one trial: what it can show is judged elsewhere
    if interval.high < 0.0:
        return True
    return False if interval.low >= 0.0 else None


def _both(certain: bool, likely: bool | None, numbers: str) -> Found:
    """Two conditions, the second of which may be a matter of chance."""
    if not certain or likely is not None:
        return Found(certain and bool(likely), numbers)
    return Found(None, f"{numbers} (the difference may be chance)")


# -- the promise ------------------------------------------------------------------------------------------------------


def _promise(results: Results) -> Iterator[Found]:
    """Every learner that promises. No violation means little where nobody left the baseline.

    Trial i of all panels has the same seed, so its runs are not independent: trials are counted, not runs, and one in
    which any panel breaks the promise is broken.
    """
    for learner in results.study.learners:
        everyone = [trial for panel in results.study.panels for trial in results.of(panel.id, learner.id)]
        certified = [trial for trial in everyone if trial.certified]
        broken = [trial for trial in everyone if breaks_promise(trial, learner)]
        left = [trial for trial in certified if trial.off_baseline is not None]
        if not left and not broken and not any(map(certificate_is_false, certified)):
            continue
        # Who never left cannot break it by exploring; one of them that did is counted among all.
        judged, who = (left, " that left the baseline") if all(one in left for one in broken) else (everyone, "")
        k, n = (len({trial.trial for trial in some}) for some in (broken, judged))
        trials, bound = shown(k, n).replace("run", "trial", 1).split(": ")
        panels = len({trial.panel for trial in judged})
        places = f" in {panels} panel{'s' * (panels > 1)}" * (len(results.study.panels) > 1)
        what = "broke the sum's floor" if AGENTS[learner.agent].in_sum else "fell below the floor"
        numbers = f"{_label(everyone)}: {trials}{places}{who} {what} ({bound})"
        if len(left) < len(certified):
            numbers += f", {_runs(len(certified) - len(left))} never left it"
        false, bad = (sum(map(is_so, everyone)) for is_so in (premise_is_false, certificate_is_false))
        numbers += f", {_runs(false)} had a baseline below the floor" * (false > 0)
        numbers += f", in {_runs(bad)} the log's certificate was false" * (bad > 0)
        yield Found(not broken and not bad, numbers)


def _runs(n: int) -> str:
    return "1 run" if n == 1 else f"{n:,} runs"


def _optimist_violates(results: Results) -> Iterator[Found]:
    for panel, _, label, trials in _cells(results, ("bpi-ucbvi",)):
        mean = statistics.fmean(trial.violations for trial in trials)
        numbers = f"{title_of(panel)}: {label} is below the floor in {number(mean)} episodes a run"
        yield Found(all(trial.violated for trial in trials), numbers)


# -- the shape of learning --------------------------------------------------------------------------------------------


def is_flat(trial: Trial) -> bool:
    """Until it leaves the baseline, every policy is the baseline."""
    end = trial.episodes if trial.off_baseline is None else trial.off_baseline
    before = trial.curve_episode + trial.curve_episodes <= end
    return bool((abs(trial.curve_mean[before] - trial.baseline) <= FLAT * max(1.0, abs(trial.baseline))).all())


def at_the_end(trial: Trial) -> float:
    """The mean return over the last twentieth of a run, or over its last bin."""
    last = trial.curve_episode >= min((1.0 - END) * trial.episodes, trial.curve_episode[-1])
    return float((trial.curve_mean[last] @ trial.curve_episodes[last]) / trial.curve_episodes[last].sum())


def _flat_then_rise(results: Results) -> Iterator[Found]:
    for panel, _, label, trials in _cells(results, MIXERS):
        ends = statistics.fmean(at_the_end(trial) for trial in trials)
        best, start = trials[0].optimum, statistics.fmean(trial.baseline for trial in trials)
        numbers = f"{title_of(panel)}, {label}: {start:.4g} at first, {ends:.4g} at the end, V* = {best:.4g}"
        down = sum(at_the_end(trial) <= trial.baseline for trial in trials)
        closed = statistics.median(map(closed_of_the_way, trials))
        if down:
            numbers += f" ({down} of {len(trials)} do not end above their baseline)"
        elif closed < FAR:
            numbers += f" ({100 * closed:.0f} % of the way)"
        stays = all(is_flat(trial) and _stays(trial) for trial in trials)
        yield Found(stays and not down and closed >= FAR, numbers)


def _stays(trial: Trial) -> bool:
    """Is there a time, of a bin at least, in which it has not left?"""
    return trial.off_baseline is None or trial.off_baseline >= trial.curve_episodes[0]


def closed_of_the_way(trial: Trial) -> float:
    """The share of the way from the baseline to the optimum that is behind a run at its end."""
    return 0.0 if _is_optimal(trial) else (at_the_end(trial) - trial.baseline) / (trial.optimum - trial.baseline)


def _epsmix_sooner(results: Results) -> Iterator[Found]:
    steps, others = ([one for one in results.study.learners if one.agent == agent] for agent in MIXERS)
    for panel in results.study.panels:
        for one, other in ((one, other) for one in steps for other in others if _way(one) == _way(other)):
            step, eps = results.of(panel.id, one.id), results.of(panel.id, other.id)
            if not _common(step, eps):
                continue
            mine, its = _median(eps, _when), _median(step, _when)
            optimistic = " and ".join(number(_median(trials, _optimistic)) for trials in (eps, step))
            off = f"{_label(eps)} at {number(mine)}, {_label(step)} at {number(its)}"
            yield Found(_later(eps, step, _when), f"{title_of(panel)}: {off} (optimistic at {optimistic})")


# -- panels held against each other -----------------------------------------------------------------------------------


def _eta(panel: Panel) -> float | None:
    choice = panel.baseline if panel.log is None else panel.log.behaviour
    return float(choice[1]) if isinstance(choice, tuple) else None


def _compared(results: Results, easier: Panel, harder: Panel, agents: Sequence[str]) -> Iterator[Found]:
    """Later off the baseline, and more regret, in the harder place."""
    for learner in results.study.learners:
        if learner.agent not in agents:
            continue
        one, other = results.of(easier.id, learner.id), results.of(harder.id, learner.id)
        if not _common(one, other) or one[0].episodes != other[0].episodes:
            continue
        off = f"off the baseline at {number(_median(one, _when))} and {number(_median(other, _when))}"
        regret = f"regret {number(_median(one, _regret))} and {number(_median(other, _regret))}"
        places = f"{title_of(easier)} and {title_of(harder)}"
        numbers = f"{_label(one)}, {places}: {off}, {regret}"
        yield _both(_later(one, other, _when), _more(one, other, _regret), numbers)


def _higher_floor_delays(results: Results) -> Iterator[Found]:
    for easier in results.study.panels:
        for harder in results.study.panels:
            same = _like(easier) == _like(harder)
            floors = easier.floor, harder.floor
            if same and all(isinstance(floor, float) for floor in floors) and floors[0] < floors[1]:  # type: ignore[operator]
                yield from _compared(results, easier, harder, MIXERS)


def _better_baseline_helps(results: Results) -> Iterator[Found]:
    for better in results.study.panels:
        for worse in results.study.panels:
            etas = _eta(better), _eta(worse)
            same = _like(better, but_baseline=True) == _like(worse, but_baseline=True) and better.floor == worse.floor
            if same and better.log is None and etas[0] is not None and etas[1] is not None and etas[0] > etas[1]:
                yield from _compared(results, better, worse, MIXERS)


def _tighter_floor_delays(results: Results) -> Iterator[Found]:
    """Floors that are shares of the baseline's value, from loose to tight."""
    shares = [panel for panel in results.study.panels if isinstance(panel.floor, tuple)]
    for looser in sorted(shares, key=_tightness):
        tighter = [
            panel
            for panel in shares
            if (_like(panel), _kind(panel)) == (_like(looser), _kind(looser)) and _tightness(panel) > _tightness(looser)
        ]
        if tighter:
            yield from _compared(results, looser, min(tighter, key=_tightness), MIXERS)


def _kind(panel: Panel) -> str:
    return panel.floor[0] if isinstance(panel.floor, tuple) else ""


def _tightness(panel: Panel) -> float:
    """Of relative floors of one kind."""
    assert isinstance(panel.floor, tuple)
    kind, share = panel.floor
    return share if kind == "of_baseline" else -share


# -- rivals -----------------------------------------------------------------------------------------------------------


def _dope_leaves_first(results: Results) -> Iterator[Found]:
    for panel, _, label, dope in _cells(results, ("dope",)):
        for _, _, other, trials in (cell for cell in _cells(results, (*MIXERS, "optpess-lp")) if cell[0] is panel):
            numbers = f"{label} at {number(_median(dope, _when))}, {other} {_at(_median(trials, _when))}"
            yield Found(_later(dope, trials, _when), numbers)


def _dope_regrets_more(results: Results) -> Iterator[Found]:
    for panel, _, label, dope in _cells(results, ("dope",)):
        for _, _, other, trials in (cell for cell in _cells(results, MIXERS) if cell[0] is panel):
            if trials[0].episodes != dope[0].episodes or math.isinf(_median(trials, _when)):
                continue  # of runs of different lengths, or too short to leave the baseline, regret says nothing
            numbers = f"{label} {number(_median(dope, _regret))}, {other} {number(_median(trials, _regret))}"
            yield _both(True, _more(trials, dope, _regret), numbers)


def _optpess_stays(results: Results) -> Iterator[Found]:
    for panel, _, label, trials in _cells(results, ("optpess-lp",)):
        left = sum(trial.off_baseline is not None for trial in trials)
        numbers = f"{title_of(panel)}: {label} left it in {left} of {len(trials)} runs"
        others = [one for one in results.study.learners if one.agent != "optpess-lp"]
        # To stay where nobody can leave yet says nothing.
        if left or any(trial.off_baseline is not None for one in others for trial in results.of(panel.id, one.id)):
            yield Found(left == 0, f"{numbers} of {number(trials[0].episodes)} episodes")


# -- the drafts -------------------------------------------------------------------------------------------------------


def _finite_mixtures(results: Results) -> Iterator[Found]:
    for panel, _, label, trials in _cells(results, ("stepmix",)):
        late = [trial.curve_by_h[trial.curve_episode >= 0.75 * trial.episodes] for trial in trials]
        still = max(int(rows[:, 1:].sum()) for rows in late)
        spent = ", ".join(
            f"h0 = {h}: {number(statistics.fmean(int(trial.by_h[h]) for trial in trials))}"
            for h in range(trials[0].H + 1)
        )
        numbers = f"{title_of(panel)}, {label}: {spent} episodes; {number(still)} with h0 > 0 in the last quarter"
        yield Found(still == 0, numbers)


def _mixing_leaves_sooner(results: Results) -> Iterator[Found]:
    for panel, _, label, without in _cells(results, ("step-no-mix",)):
        for _, _, other, trials in (cell for cell in _cells(results, ("stepmix",)) if cell[0] is panel):
            off = f"{other} {_at(_median(trials, _when))}, {label} {_at(_median(without, _when))}"
            regret = f"regret {number(_median(trials, _regret))} and {number(_median(without, _regret))}"
            yield Found(_later(trials, without, _when), f"{title_of(panel)}: {off} ({regret})")


# -- logs -------------------------------------------------------------------------------------------------------------


def _but_length(panel: Panel) -> Panel:
    """A place with a log of no matter what length."""
    return replace(_like(panel), log=None if panel.log is None else replace(panel.log, episodes=0))


def _by_log(results: Results) -> Iterator[tuple[Panel, Panel]]:
    """Panels that differ in the length of the log alone, each with the next longer one."""
    with_log = [(panel, panel.log) for panel in results.study.panels if panel.log is not None]
    for less, mine in with_log:
        longer = [
            (its.episodes, more.id, more)
            for more, its in with_log
            if its.episodes > mine.episodes and more.floor == less.floor and _but_length(more) == _but_length(less)
        ]
        if longer:
            yield less, min(longer)[2]


def _more_trajectories_help(results: Results) -> Iterator[Found]:
    for less, more in _by_log(results):
        for learner in results.study.learners:
            if learner.agent not in MIXERS:
                continue
            one, other = results.of(less.id, learner.id), results.of(more.id, learner.id)
            if not _common(one, other):
                continue
            start = [statistics.fmean(trial.baseline for trial in trials) for trials in (one, other)]
            when = [_median(trials, _optimistic) for trials in (one, other)]
            numbers = (
                f"{_label(one)}, {title_of(less)} and {title_of(more)}: baseline {start[0]:.4f} and {start[1]:.4f}, "
                f"optimistic at {number(when[0])} and {number(when[1])}"
            )
            best = [sum(map(_is_optimal, trials)) for trials in (one, other)]
            numbers += f" (already optimal in {best[0]} and {best[1]} of {len(one)} logs)" * (max(best) > 0)
            yield _both(when[1] < when[0], _more(one, other, _worth), numbers)


def _worth(trial: Trial) -> float:
    return trial.baseline


def _is_optimal(trial: Trial) -> bool:
    """Is there nothing to rise to?"""
    return trial.optimum - trial.baseline <= FLAT * max(1.0, abs(trial.optimum))


def _log_is_enough(results: Results) -> Iterator[Found]:
    for panel, _, label, trials in _cells(results, MIXERS):
        wrote = [trial.log_behaviour for trial in trials if trial.log_behaviour is not None]
        if len(wrote) == len(trials):
            worst = min(trial.baseline for trial in trials)
            false = sum(premise_is_false(trial) for trial in trials)
            numbers = (
                f"{title_of(panel)}, {label}: learnt {worst:.4f} at the least, the log's own policy {wrote[0]:.4f}"
            )
            yield Found(false == 0 and worst >= wrote[0], numbers)


def _fewer_violations(results: Results) -> Iterator[Found]:
    """Panels that differ in the length of the log alone, from short to long."""
    for learner in results.study.learners:
        there = [(panel, panel.log, results.of(panel.id, learner.id)) for panel in results.study.panels]
        with_log = [(log.episodes, panel, trials) for panel, log, trials in there if log is not None and trials]
        for _, first, _ in with_log:
            alike = [
                one for one in with_log if (_but_length(one[1]), one[1].floor) == (_but_length(first), first.floor)
            ]
            if first is not alike[0][1] or len(alike) < 2:
                continue  # each family once
            alike.sort(key=lambda one: one[0])
            below = [sum(trial.violated for trial in trials) / len(trials) for _, _, trials in alike]
            said = ", ".join(
                f"{title_of(panel)}: {sum(trial.violated for trial in trials)} of {len(trials)}"
                for _, panel, trials in alike
            )
            falls = all(later <= earlier for earlier, later in pairwise(below)) and below[-1] < below[0]
            yield Found(falls, f"{_label(alike[0][2])}, runs below the floor: {said}")


# -- ours -------------------------------------------------------------------------------------------------------------


def _sharp_leaves_sooner(results: Results) -> Iterator[Found]:
    learners = results.study.learners
    for panel in results.study.panels:
        for sharp in (learner for learner in learners if learner.bounds == "kl"):
            alike = ("paper", *_way(sharp)[1:])
            for printed in (one for one in learners if one.agent == sharp.agent and _way(one) == alike):
                mine, its = results.of(panel.id, sharp.id), results.of(panel.id, printed.id)
                if not _common(mine, its) or sharp.agent not in MIXERS or any(map(is_uncertified, (*mine, *its))):
                    continue
                early, late = _median(mine, _when), _median(its, _when)
                bound = "more than " * math.isinf(late)
                factor = (its[0].episodes if math.isinf(late) else late) / max(early, 1.0)
                numbers = f"at {number(early)} instead of {number(late)}, {bound}{factor:,.0f} times sooner"
                yield Found(_later(mine, its, _when), f"{title_of(panel)}, {_label(mine)} {numbers}")


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
