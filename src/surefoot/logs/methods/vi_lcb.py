"""VI-LCB (the paper's Algorithm 5; Xie et al. 2021, Algorithm 3)."""

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.validation import require_delta, require_number
from surefoot.bounds.binding import Binding, largest
from surefoot.bounds.frequencies import Frequencies
from surefoot.bounds.kl import KL
from surefoot.bounds.model import MARGIN
from surefoot.bounds.undeclared import more_events
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.logs.methods.learnt import Learnt, require_log
from surefoot.model.problem import Problem

VI_LCB = {
    "most-visited": "VI-LCB",
    "first": "VI-LCB with first-index ties",
}  # in `Learnt.method`, by how ties are broken
TIE = 1e-12  # values closer than this are equal
PROVED = math.sqrt(0.5)  # Hoeffding, one-sided: V is a lower bound for this c and larger ones


def vi_lcb(
    folds: ArrayLike | Counts,
    problem: Problem,
    delta: float,
    c: float = 1.0,
    ties: str = "most-visited",
) -> Learnt:
    """Value iteration with lower confidence bounds, from folds: step h uses the episodes of fold h
    only.

        b_h(s,a) = c sqrt(H^2 iota / max(1, n_h(s,a))),        iota = log(HSA/delta)
        Q_h      = max(0, r_h + p_hat_h V_{h+1} - b_h),        p_hat = n(s,a,.) / max(1, n(s,a))
        pi_hat   = argmax_a Q_h,                               V_h = max_a Q_h

    The paper leaves ties open. They are many: Q = 0 for every action that was seen too rarely.
    `ties="most-visited"`, the default, takes the action that the log took most often, then the
    first; `ties="first"` takes the first index, as argmax is mostly read. V and the certificate are
    the same; the policy is not (docs/logs.md has what that changes).

    Why V_1 <= V^{pi_hat} with probability at least 1 - delta. V_{h+1} comes from the folds after h,
    which are other episodes: given the visits of (h,s,a), the next states are i.i.d. and V_{h+1} is
    a fixed function into [0, H]. By Hoeffding P(p_hat V > P V + t) <= exp(-2 n t^2 / H^2), so t = H
    sqrt(iota / (2n)) fails for one of the HSA pairs with probability at most delta, and any c >=
    1/sqrt(2) makes b >= t. Then Q_h <= r + P V_{h+1}, and by induction V_h <= V_h^{pi_hat}. The
    paper leaves c open; c = 1 is the default. A value below 1/sqrt(2) is NOT CERTIFIED.

    Premises beside those of every certificate from a log: the episodes are i.i.d., from one
    behaviour policy that did not change with what it saw, and neither their number nor their ids
    depend on how they went.

    Rewards that do not vary may have been read from the same log: a pair that was not seen in its
    own fold has Q = 0 whatever its reward (b >= 1 there), so the episodes of other folds do not
    enter V_{h+1} through r.

    `folds` are n_sas (H, S, A, S), such as `count_log(...).folds`; where rewards are unknown,
    `fold_counts`, which has their sums (then r + V is averaged, which lies in [0, H] as well).
    Where the problem allows only one next state nothing is estimated: p_hat is that state and b = 0
    (for known rewards). An unknown start has a confidence ball of its own, and iota = log((HSA +
    1)/delta).
    """
    if not isinstance(problem, Problem):
        raise InvalidSetting(
            f"problem is a {type(problem).__name__}, expected a Problem, such as log.problem()."
        )
    by_hand = not isinstance(folds, Counts)
    counts = folds if isinstance(folds, Counts) else Counts(folds, logged=True)
    if counts.pooled:
        raise InvalidCounts(
            "VI-LCB needs a fold of its own for each step, found counts pooled over steps."
        )
    if problem.unknown_rows is not None and counts.x_sa is None and counts.total:
        raise InvalidCounts(
            "Rewards of this problem are unknown, and an array holds no rewards. Give "
            "log.fold_counts instead."
        )
    if problem.start is None and by_hand and counts.total:
        raise InvalidCounts(
            "The start of this problem is unknown, and an array holds no first states. Give "
            "log.fold_counts instead."
        )
    # an array is of the problem that it is given with: so says the user
    require_log(counts.claimed_for(problem) if by_hand else counts, problem)
    if counts.total > max(int(counts.n_start.sum()), 1) > 1:
        raise InvalidCounts(
            f"These are counts of all steps of {int(counts.n_start.sum()):,} episodes. VI-LCB is "
            "proved for folds, in which each episode is counted at one step only: give log.folds, "
            "or log.fold_counts."
        )
    level = require_delta(delta)
    weight = require_number("c", c, "a number >= 0; 1 is proved")
    if not 0.0 <= weight < math.inf:
        raise InvalidSetting(f"c is {c}, expected a number >= 0; 1 is proved.")
    if ties not in VI_LCB:
        raise InvalidSetting(f"ties is {ties!r}, expected {' or '.join(map(repr, VI_LCB))}.")
    policy, V, b = backward(counts, problem, level, weight, ties)
    return Learnt(
        method=VI_LCB[ties],
        policy=policy,
        rescaled_lower=at_start(counts, problem, level, V[0]),
        delta=level,
        certified=weight >= PROVED,
        problem=problem,
        counts=counts,
        episodes=counts.total,  # each episode is in one fold
        binding=_binding(counts, problem, policy, b),
        recompute_lower=partial(_lower, problem=problem, delta=level, c=weight),
        lower_with=partial(_lower, delta=level, c=weight),
    )


def _lower(counts: Counts, problem: Problem, delta: float, c: float) -> float:
    return at_start(counts, problem, delta, backward(counts, problem, delta, c)[1][0])


def backward(
    counts: Counts, problem: Problem, delta: float, c: float, ties: str = "most-visited"
) -> tuple[Floats, Floats, Floats]:
    """Return pi_hat (H, S, A), V (H+1, S) and b (H, S, A), by the formulas of `vi_lcb`."""
    H, S, A = problem.H, problem.S, problem.A
    iota = math.log(_events(problem) / delta)
    policy, V, b = np.zeros((H, S, A)), np.zeros((H + 1, S)), np.zeros((H, S, A))
    seen = Frequencies.of(counts.transitions)
    for h in reversed(range(H)):
        n_sa = seen[h].n_sa
        sure, s_next = _sure(problem, h)
        b[h] = c * np.sqrt(H**2 * iota / np.maximum(1, n_sa))
        b[h][sure] = 0.0
        r = seen[h].rewards(problem, counts, h, by_next=0.0, unknown=0.0)
        r = np.where(sure, problem.reward_of(h, np.arange(S)[:, None], np.arange(A), s_next), r)
        Q = np.maximum(0.0, r + np.where(sure, V[h + 1][s_next], seen[h].ahead(V[h + 1])) - b[h])
        a = most_visited_best(Q, 0 * n_sa if ties == "first" else n_sa)
        policy[h, np.arange(S), a] = 1.0
        V[h] = Q[np.arange(S), a]
    return policy, V, b


def _events(problem: Problem) -> int:
    """Return how many bounds must hold together: one for each pair, and one for an unknown start.

    Where the states are those that the log happens to show, they are more (see
    bounds/undeclared.py). V comes from other folds and is 0 in a state that they do not hold, so it
    is fixed for this one, whatever appears in it.
    """
    events = problem.H * problem.S * problem.A + (problem.start is None)
    return events if problem.unseen_state is None else events * more_events(problem)


def _sure(problem: Problem, h: int) -> tuple[Bools, Ints]:
    """Return for which pairs (S, A) nothing is estimated, because one next state alone is possible
    and the reward is known; and that next state. There p_hat is sure, and b is 0.

    Known means before the log: rewards read from it would carry other folds into V. With such
    rewards only the absorbing state is sure.
    """
    S, A, mask = problem.S, problem.A, problem.limits.at(h)
    sure = (mask.sizes == 1).reshape(S, A) & ~problem.unknown_at(h)
    if problem.rewards_at_least:
        sure &= np.arange(S)[:, None] == (
            -1 if problem.absorbing_state is None else problem.absorbing_state
        )
    s_next = np.zeros((S, A), dtype=np.int64)
    s_next[sure] = mask.state[mask.first[:-1].reshape(S, A)[sure]]
    return sure, s_next


def most_visited_best(Q: Floats, n_sa: Ints) -> Ints:
    """Return the best action of each state; among those within 1e-12 of it the most visited one,
    then the first.
    """
    ties = Q.max(axis=1, keepdims=True) - TIE <= Q
    return np.asarray(np.where(ties, n_sa, -1).argmax(axis=1))


def at_start(counts: Counts, problem: Problem, delta: float, V: Floats) -> float:
    """Return V_1 at the start, rounded down; an unknown start has its share of delta."""
    safe = np.maximum(0.0, V - problem.H**2 * MARGIN)
    log_union = math.log(_events(problem) / delta)
    bounds, undeclared = KL(full_support=True), problem.unseen_state is not None
    return bounds.lower_at_start(problem, counts.n_start, safe, log_union, undeclared)


def _binding(counts: Counts, problem: Problem, policy: Floats, b: Floats) -> tuple[Binding, ...]:
    """Return the pairs whose b costs most, by how often the policy visits them in the estimated
    world.
    """
    H, S, A = problem.H, problem.S, problem.A
    reach = (
        np.asarray(problem.start)
        if problem.start is not None
        else counts.n_start / max(1, counts.n_start.sum())
    )
    costs = np.zeros((H, S, A))
    for h, there in enumerate(Frequencies.of(counts.transitions)):
        taken = reach[:, None] * policy[h]
        costs[h] = taken * np.minimum(b[h], float(H))
        reach = there.reached(taken)
    return tuple(largest(problem, costs, counts.n_sa))
