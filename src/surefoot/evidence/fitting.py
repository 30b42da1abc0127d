"""Which counts fit which problem, and are counts of whole episodes at all."""

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.errors import InvalidCounts
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows, first_outside


def check_counts(counts: Counts, problem: Problem, pooled: bool) -> None:
    """Refuse counts that do not belong to this problem, or are not pooled as the agent expects."""
    if not isinstance(counts, Counts):
        raise InvalidCounts(
            f"Expected Counts, found {type(counts).__name__}. Use sf.Counts(n_sas)."
        )
    counts.require_unselected()
    expected = (1 if pooled else problem.H, problem.S, problem.A)
    if problem.unknown_rows is not None and counts.x_sa is None and counts.episodes:
        raise InvalidCounts(
            "The rewards of this problem are unknown, but these counts hold no sums of rewards. "
            "Begin with Counts.zeros(problem) and add episodes with their rewards."
        )
    if counts.shape == expected and counts.pooled == pooled and counts.H != problem.H:
        raise InvalidCounts(
            f"Found {counts}: of episodes with {counts.H} steps, but the problem has {problem.H}."
        )
    if counts.shape != expected or counts.pooled != pooled:
        found, wanted = ((*shape, shape[1]) for shape in (counts.shape, expected))
        raise InvalidCounts(
            f"Found {counts} of shape {found}, expected {wanted} for {problem} with "
            f"pooled={pooled}. Use Counts.zeros(problem, pooled=...), counts.pool() for an agent "
            "with pooled=True, or give the agent pooled=True for pooled counts."
        )
    counts.require_of(problem)
    _require_possible(counts, problem)


def _require_possible(counts: Counts, problem: Problem) -> None:
    """Refuse counts with a transition that the user asserted to be impossible: the premise is
    false.
    """
    if problem.mask is None:
        return
    bad = _outside(counts, problem.mask)
    if bad is not None:
        row, s, a, s_next = bad
        names = problem.names
        led = (
            f"Action {names.action(a)} in state {names.state(s)} (step {row}) led to state "
            f"{names.state(s_next)}"
        )
        raise InvalidCounts(
            f"{led}, which the problem's support says is impossible. The premise is false: correct "
            "the mask, or leave it out."
        )


def _outside(counts: Counts, mask: Rows) -> AnyArray | None:
    """Return row, state, action and next state of the first transition that was seen outside the
    mask.
    """
    _, S, A = counts.shape
    place, s_next, _ = counts.entries
    found = first_outside(Rows.of_keys(place * S + s_next, counts.shape), mask)
    if found is None:
        return None
    first = found[1]
    return np.array(
        [place[first] // (S * A), place[first] % (S * A) // A, place[first] % A, s_next[first]]
    )


def require_claimed(counts: Counts) -> None:
    """Refuse to go on from counts of which nobody says what they are evidence about."""
    if not counts.claimed:
        raise InvalidCounts(
            "These counts do not say what they are evidence about: they were made by hand. If they "
            "are of the agent's problem, assert that: counts = counts.claimed_for(agent.problem)."
        )


def require_no_alarm(counts: Counts) -> None:
    """Refuse to begin with counts over which an alarm was raised: a premise of what they prove
    is false.
    """
    if counts.alarm:
        raise InvalidCounts(
            "An alarm was raised over these counts: what was certified from them is void. Begin "
            f"without them. ({counts.alarm})"
        )


def check_flow(counts: Counts) -> None:
    """Refuse claimed counts that cannot be of whole episodes: what goes into a state at one step
    leaves it at the next.

    First states that are not counted (`forget_start`, counts made by hand) may be any.
    """
    if counts.origin is None or not counts.episodes:
        return
    into = counts.transitions.into
    if counts.shared:
        out = counts.played.sum(axis=2)
        unseen = counts.episodes - int(counts.n_start.sum())
        first = out[0] - into[0]  # as often as a state was the first
        early = np.flatnonzero(first < counts.n_start)
        whole = (
            int(out.sum()) == counts.episodes * counts.H
            and int(first.sum()) == counts.episodes
            and unseen >= 0
        )
        if whole and not early.size:
            return
        place = (
            "" if not early.size else f": state {early[0]} is entered more often than it is left"
        )
        place = place or (
            f": {counts.episodes:,} episodes of {counts.H} steps have "
            f"{counts.episodes * counts.H:,} visits, of which those of the last step are counted "
            f"in `played` alone; found {int(out.sum()):,} visits, and {int(into.sum()):,} next "
            "states"
        )
    else:
        out = counts.n_sa.sum(axis=2)
        bad = np.argwhere(out[1:] != into[:-1])
        first = np.flatnonzero(counts.n_start > out[0])
        if not bad.size and not first.size:
            return
        if bad.size:
            h, s = bad[0]
            place = (
                f": at step {h} state {s} is entered {into[h, s]:,} times, at step {h + 1} it is "
                f"left {out[h + 1, s]:,} times"
            )
        else:
            s = first[0]
            place = (
                f": {counts.n_start[s]:,} episodes start in state {s}, which is left "
                f"{out[0, s]:,} times at step 0"
            )
    raise InvalidCounts(
        f"These are not counts of whole episodes{place}. Count whole episodes, each once."
    )
