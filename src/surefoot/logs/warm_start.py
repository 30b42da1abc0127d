"""From a log to an agent: the learnt policy as its baseline, its certificate, and the counts for a
warm start.

How delta is split (the paper's offline theorem): the policy was certified at learnt.delta, the
agent works at a delta of its own, by default the same. With probability at least 1 - (learnt.delta
+ delta) both hold; then every episode's policy is at or above the floor, provided the certificate
clears it. Where it does not, the baseline is trusted.
"""

from typing import NamedTuple

from surefoot.agents import EpsMix, StepMix
from surefoot.agents.floors import BaselineFloor
from surefoot.base.validation import require_bool, require_delta
from surefoot.bounds import KL, Bernstein, Bounds
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.logs.methods.learnt import Learnt


class HandOver(NamedTuple):
    """An agent and the counts that it starts with: for `learn(..., counts=)`, `simulate(...,
    counts=)` or `Learner`.
    """

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
    """Return an agent whose baseline is the learnt policy, and its counts: a warm start.

    - floor: in the units of the rewards, per episode
    - kind: `sf.StepMix` or `sf.EpsMix`
    - delta: the agent's own, in addition to the certificate's; the default is learnt.delta
    - counts: those of the log (`log.counts`, or pooled). Without them the agent starts with no
      data. The paper's bounds cannot use them: their proof needs a baseline that was fixed before
      the data.
    """
    if not isinstance(learnt, Learnt):
        raise InvalidSetting(
            f"learnt is {learnt!r}, expected a policy learnt from a log, such as sf.robust_vi(...)."
        )
    if kind not in (StepMix, EpsMix):
        raise InvalidSetting(f"kind is {kind!r}, expected sf.StepMix or sf.EpsMix.")
    if isinstance(floor, BaselineFloor):
        raise InvalidSetting(
            "A policy learnt from a log needs a floor in units of return, not a relative floor."
        )
    if counts is not None and isinstance(bounds, Bernstein):
        raise InvalidSetting(
            "The paper's bounds do not cover counts of the log that the baseline was learnt from. "
            "Leave counts out, or use bounds=sf.KL()."
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
        begin.drop_rewards()  # otherwise each added episode would need rewards that nothing reads
    # where all episodes of the log began proves nothing
    begin.s1 = problem.s1 if problem.one_start else None
    agent.check_counts(begin)
    return HandOver(agent, begin)
