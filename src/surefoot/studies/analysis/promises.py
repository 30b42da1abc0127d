"""What a trial promised, and whether it was kept: proved, on trust, false from the beginning, or broken."""

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
    """Did the promise presume what is not true?"""
    return trial.promise.kind == "false premise"


def is_uncertified(trial: Trial) -> bool:
    """Was a bonus scaled by hand?"""
    return trial.promise.kind == "not certified"


def is_certified(trial: Trial) -> bool:
    """Does the agent promise this floor, without a bonus scaled by hand and with a true premise?"""
    return trial.promise.certified


def breaks_promise(trial: Trial, agent: AgentSpec) -> bool:
    """Did a run do what it promised not to?

    An agent that keeps the sum of all episodes may be below the floor in some of them: of it the sum is judged.
    """
    if not is_certified(trial):
        return False
    if AGENTS[agent.agent].in_sum:
        # What rounding adds up to over so many episodes is not a loss.
        return trial.min_cumulative < -VIOLATION_TOLERANCE * trial.episodes
    return trial.violations > 0


def is_proved(trial: Trial, agent: AgentSpec) -> bool:
    """Did the promise rest on proof? It does off the baseline, and on one that a log certified above the floor."""
    cleared = trial.log_lower is not None and trial.log_lower >= trial.floor
    left = trial.off_baseline is not None or breaks_promise(trial, agent)
    return is_certified(trial) and (left or cleared)


def is_on_trust(trial: Trial, agent: AgentSpec) -> bool:
    """Was nothing ever played but a baseline that nothing certifies? Then the run rests on trust in it."""
    return is_certified(trial) and not is_proved(trial, agent)


def certificate_is_false(trial: Trial) -> bool:
    """Is the true value of the baseline below what a log certified?"""
    return trial.log_lower is not None and trial.log_lower > trial.baseline + VIOLATION_TOLERANCE


def promises_of(trials: Sequence[Trial]) -> dict[str, int]:
    """Return the promises in words, without numbers that differ from trial to trial, and how many trials have each."""
    counted: dict[str, int] = {}
    for trial in trials:
        words = str(trial.promise.in_general())
        counted[words] = counted.get(words, 0) + 1
    return counted


def keeps_floor(trial: Trial) -> bool:
    """Is there a floor that the agent keeps, or tries to keep, at all?"""
    return trial.promise.keeps_floor


def why_uncertified(trial: Trial) -> str:
    """Return why the promise of a trial is NOT CERTIFIED: by how much its bonus was scaled."""
    return trial.promise.why_uncertified
