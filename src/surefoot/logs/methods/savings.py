"""What each declaration would save: the certified value of the same policy if one more thing
were declared.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from surefoot.base.validation import at_least
from surefoot.bounds.alike import unlike
from surefoot.errors import InvalidLog, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.logs.codebook import AS_LOGGED
from surefoot.logs.log_counts import BY_NEXT_STATE, LogCounts
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows
from surefoot.model.units import with_rescaled

# their axes
OF_STATES = {"r": (-2,), "r_next": (-3, -1), "unknown": (-2,), "support": (-3, -1), "start": (-1,)}


class Saving(NamedTuple):
    """A thing that was not declared, how to declare it, and what would be certified then."""

    what: str
    python: str
    option: str
    lower: float | None  # None: it cannot be said from the log

    def text(self, now: float, unit: str) -> str:
        """Say it beside what is certified now, in this unit."""
        made = " or ".join(way for way in (self.python, self.option) if way)
        if self.lower is None:
            return f"- {self.what}: declared by {made}"
        then, present = map(at_least, (self.lower, now))
        return (
            f"- {self.what}: with {made} the certificate would be {then} instead of {present}{unit}"
        )


def savings(
    problem: Problem,
    counts: Counts,
    log: LogCounts,
    lower_with: Callable[[Counts, Problem], float],
    now: float,
) -> Iterator[Saving]:
    """For each thing that this problem of the log does not know, what declaring it alone would
    certify.

    All values are rescaled. `lower_with` certifies the policy by other counts and another problem;
    if that has no unseen state, nor has the policy. That nothing depends on the step is named only
    where it would certify more than `now`: where steps differ, the certificate of the pooled counts
    is mostly lower.
    """
    if (problem.H, problem.S, problem.A) != (log.H, log.S, log.A):
        raise InvalidSetting(
            f"{log} is not the log of {problem}. Give the log that the policy was learnt from."
        )
    known, lower_with = problem.arguments(), _with_labels(lower_with)

    def declared(more: Mapping[str, Any], counts: Counts = counts) -> float:
        """Certify the policy for the problem with these arguments changed."""
        return lower_with(counts, Problem(**with_rescaled({**known, **more})))

    if problem.unseen_state is not None:
        yield Saving(
            "states that are not in the log",
            f'count_log(..., states="{AS_LOGGED}")',
            "--states as-logged",
            lower_with(_without_unseen(counts, log), _all_seen(problem)),
        )
    if problem.start is None:
        yield _start(log, declared)
    if problem.unknown_rows is not None and problem.unknown[:, : len(log.codebook.states)].any():
        yield _rewards(log, problem.stationary, declared)
    own = len(log.codebook.states)
    if problem.unseen_state is None and problem.limits.says_nothing(own):
        seen = log.problem(support=AS_LOGGED, stationary=problem.stationary).arguments()["support"]
        more = declared({"support": seen, "ended_state": log.absorbing_state})
        yield Saving(
            "which transitions are possible",
            f'problem(support="{AS_LOGGED}")',
            "--support as-logged",
            more,
        )
    steady = not (problem.stationary or _of_folds(counts, log)) and problem.H > 1
    one_mask = problem.limits.rows == 1
    if steady and one_mask and (problem.unknown_rows is None or len(problem.unknown_rows) == 1):
        pooled = counts.pool()
        contradicted = pooled.steps is not None and unlike(pooled.steps, problem) is not None
        more = now if contradicted else declared({"stationary": True}, pooled)
        if more > now:
            yield Saving(
                "that nothing depends on the step", "problem(stationary=True)", "--stationary", more
            )


def _with_labels(
    lower_with: Callable[[Counts, Problem], float],
) -> Callable[[Counts, Problem], float]:
    """Certify for problems whose numbers stand for the same labels as those of the counts."""

    def lower(counts: Counts, problem: Problem) -> float:
        coding = None if counts.origin is None else counts.origin.coding
        return lower_with(counts, problem if coding is None else problem.with_coding(coding))

    return lower


def _of_folds(counts: Counts, log: LogCounts) -> bool:
    """Is each episode counted at one step only?"""
    return int(counts.played.sum()) < log.episodes * log.H


def _start(log: LogCounts, declared: Callable[[Mapping[str, Any]], float]) -> Saving:
    seen = np.flatnonzero(log.starts)
    weights = log.starts / log.starts.sum()
    more = declared({"start": weights})
    if len(seen) == 1:
        label = log.codebook.state_label(int(seen[0]))
        return Saving("the start", f"problem(start={label!r})", f"--start {label}", more)
    said = (
        "problem(start=[...]), the probabilities of the first states (if they are as often as "
        "in the log),"
    )
    return Saving("the start", said, "", more)


def _rewards(
    log: LogCounts, stationary: bool, declared: Callable[[Mapping[str, Any]], float]
) -> Saving:
    for word in (AS_LOGGED, BY_NEXT_STATE):
        try:
            told = log.problem(word, stationary=stationary).arguments()
        except InvalidLog:  # they vary
            continue
        given = {name: told[name] for name in ("r", "r_next", "rewards_at_least")}
        more = declared({**given, "unknown": None})
        python, option = f'problem(rewards="{word}")', f"--rewards {word.replace(' ', '-')}"
        return Saving("what each pair pays", python, option, more)
    return Saving(
        "what each pair pays, which varies in the log",
        "problem(rewards=table), a table of means",
        "",
        None,
    )


def _all_seen(problem: Problem) -> Problem:
    """The same problem without its unseen state, which is the last."""
    known = problem.arguments()
    for name, axes in OF_STATES.items():
        given = known[name]
        if given is None or isinstance(given, str):
            continue
        if isinstance(given, Rows):
            known[name] = given.without_last()
            continue
        for axis in axes:
            given = np.delete(given, problem.S - 1, axis=axis)
        known[name] = given
    return Problem(**with_rescaled({**known, "unseen_state": None}))


def _without_unseen(counts: Counts, log: LogCounts) -> Counts:
    """The same counts of the log for somebody who knows all states: as these are, pooled or of
    folds.
    """
    whole = log.with_all_states()
    if _of_folds(counts, log):
        return whole.fold_counts
    return whole.counts.pool() if counts.pooled else whole.counts
