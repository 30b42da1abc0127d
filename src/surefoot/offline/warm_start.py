"""From a log to a learner: the learnt policy as its baseline, its certificate, and the counts to start warm with.

How delta is split (the paper's offline theorem): the policy was certified at learnt.delta, the learner works at a delta
of its own, by default the same. With probability at least 1 - (learnt.delta + delta) both hold; then every episode's
policy is at or above the floor, provided the certificate clears it. Where it does not, the baseline is played on trust.
"""

from typing import NamedTuple

from surefoot.agents import EpsMix, StepMix
from surefoot.agents.floors import Relative
from surefoot.base.validation import require_bool, require_delta
from surefoot.bounds import KL, Bernstein, Bounds
from surefoot.errors import InvalidSetting
from surefoot.offline.methods.learnt import Learnt
from surefoot.task.counts import Counts


class HandOver(NamedTuple):
    """A learner and the counts it begins with: for `learn(..., counts=)`, `simulate(..., counts=)` or `Learner`."""

    agent: StepMix | EpsMix
    counts: Counts


def hand_over(
    learnt: Learnt,
    floor: float,
    kind: type[StepMix] | type[EpsMix] = StepMix,
    *,
    delta: float | None = None,
    bounds: Bounds = KL(),  # noqa: B008  (frozen)
    counts: Counts | None = None,
) -> HandOver:
    """A learner that starts from what was learnt.

    - floor: as learners take it, between 0 and H (`problem.from_user_units` turns one of yours into it)
    - kind: `sf.StepMix` or `sf.EpsMix`; delta: its own, learnt.delta if left out, on top of the certificate's
    - counts: of the log, to start warm (`log.counts`, or pooled); left out, the learner starts with nothing. The
      paper's bounds cannot use them: their proof needs a baseline that was fixed before the data.
    """
    if not isinstance(learnt, Learnt):
        raise InvalidSetting(f"Expected what was learnt from a log, such as sf.robust_vi(...), found {learnt!r}.")
    if kind not in (StepMix, EpsMix):
        raise InvalidSetting(f"kind is {kind!r}, expected sf.StepMix or sf.EpsMix.")
    if isinstance(floor, Relative):
        raise InvalidSetting(
            "A policy learnt from a log is held against a floor in units of return, not a relative one."
        )
    if counts is not None and isinstance(bounds, Bernstein):
        raise InvalidSetting(
            "The paper's bounds do not cover counts from the log that the baseline was made of. Leave counts out, or "
            "use bounds=sf.KL()."
        )
    problem = learnt.problem
    pooled = counts is not None and require_bool("pooled", counts.pooled)
    agent = kind(
        problem,
        learnt.policy,
        floor,
        delta=learnt.delta if delta is None else require_delta(delta),
        bounds=bounds,
        pooled=pooled,
        certificate=learnt.certificate if learnt.certified else None,
    )
    begin = Counts.zeros(problem) if counts is None else counts.copy()
    if problem.unknown_rows is None:
        begin.x_sa = None  # or every episode that is added would have to bring rewards that nobody reads
    agent.check_counts(begin)
    return HandOver(agent, begin)
