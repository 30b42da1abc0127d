"""What a trial promised, and what became of it: proved, on trust, false from the beginning, or broken."""

import re
from collections.abc import Sequence

from surefoot.agents import AGENTS
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import AgentSpec

UNCERTIFIED = "NOT CERTIFIED"


def baseline_is_below(trial: Trial) -> bool:
    """Is the baseline truly below the floor?"""
    return trial.baseline < trial.floor - VIOLATION_TOLERANCE


def premise_is_false(trial: Trial) -> bool:
    """Was there a promise that presumed what is not so?"""
    return trial.promise.startswith("no promise: its premise is false")


def is_uncertified(trial: Trial) -> bool:
    """Was a bonus scaled by hand?"""
    return trial.promise.startswith(UNCERTIFIED)


def breaks_promise(trial: Trial, learner: AgentSpec) -> bool:
    """Did a run do what it promised not to?

    A learner that keeps the sum of all episodes may be below the floor in some of them: of it the sum is judged.
    """
    if not trial.certified:
        return False
    if AGENTS[learner.agent].in_sum:
        # What rounding adds up to over so many episodes is not a loss.
        return trial.min_cumulative < -VIOLATION_TOLERANCE * trial.episodes
    return trial.violated


def is_proved(trial: Trial, learner: AgentSpec) -> bool:
    """Did the promise rest on proof? It does off the baseline, and on one that a log certified above the floor."""
    cleared = trial.log_lower is not None and trial.log_lower >= trial.floor
    left = trial.off_baseline is not None or breaks_promise(trial, learner)
    return trial.certified and (left or cleared)


def is_on_trust(trial: Trial, learner: AgentSpec) -> bool:
    """Was nothing ever played but a baseline that nothing certifies? Then trust in it is all there is."""
    return trial.certified and not is_proved(trial, learner)


def certificate_is_false(trial: Trial) -> bool:
    """Is the baseline truly worth less than a log certified?"""
    return trial.log_lower is not None and trial.log_lower > trial.baseline + VIOLATION_TOLERANCE


def promises_of(trials: Sequence[Trial]) -> dict[str, int]:
    """What is promised, without the numbers that differ from trial to trial, and in how many trials."""
    counted: dict[str, int] = {}
    for trial in trials:
        words = re.sub(r"value of \S+, which was told", "value, which was told", trial.promise)
        words = re.sub(r"(its premise is false), .*", r"\1, the baseline is below the floor", words)
        counted[words] = counted.get(words, 0) + 1
    return counted


def keeps_floor(trial: Trial) -> bool:
    """Is there a floor that the agent keeps, or tries to keep, at all?"""
    return "no floor promised" not in str(trial.promise)


def why_uncertified(trial: Trial) -> str:
    """Return why the promise of a trial is NOT CERTIFIED: by how much its bonus was scaled."""
    return str(trial.promise).partition(": ")[2]
