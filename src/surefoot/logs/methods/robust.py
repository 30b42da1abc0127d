"""Learning from all of a log, with the KL certificate: robust value iteration, behaviour cloning,
SPIBB.

The KL event (docs/certificates.md) concerns the dynamics only, so it certifies ANY policy, also one
that was learnt from the same data, and needs neither folds nor independence.
"""

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.base.arrays import Floats
from surefoot.base.validation import require_delta, require_integer
from surefoot.bounds import KL
from surefoot.bounds.binding import binding_pairs
from surefoot.bounds.frequencies import Frequencies
from surefoot.bounds.model import margin
from surefoot.bounds.undeclared import more_events, set_undeclared
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.evidence.counts import Counts, require_stationary
from surefoot.evidence.fitting import check_flow
from surefoot.logs.methods.learnt import Learnt, require_log
from surefoot.logs.methods.vi_lcb import most_visited_best
from surefoot.model.origin import TAKEN_OFF
from surefoot.model.policy import check_policy, one_hot
from surefoot.model.problem import Problem


def robust_vi(counts: Counts, problem: Problem, delta: float, bounds: KL = KL()) -> Learnt:  # noqa: B008  (frozen)
    """KL-robust pessimistic value iteration: return the policy with the highest certified value.

        Q_h(s,a) = r_h(s,a) + min over the ball of p V_{h+1},
        pi_hat = argmax_a Q_h,   V_h = max_a Q_h

    On the KL event V_h <= V_h^{pi_hat} for all h and s, and no other policy has a higher
    certificate of this kind. Ties are broken as in VI-LCB. Counts may be pooled if the problem is
    stationary.
    """
    return _learnt("KL-robust value iteration", counts, problem, delta, bounds)


def certify(
    policy: ArrayLike,
    counts: Counts,
    problem: Problem,
    delta: float,
    bounds: KL = KL(),  # noqa: B008  (frozen)
    method: str = "A given policy",
) -> Learnt:
    """Certify the value of a policy of yours by the log alone. It may have been learnt from the
    same log.
    """
    pi = check_policy(policy, problem)
    return _learnt(method, counts, problem, delta, bounds, pi)


def clone(counts: Counts, problem: Problem, delta: float, bounds: KL = KL()) -> Learnt:  # noqa: B008  (frozen)
    """Behaviour cloning: play what the log played, pi(a|s) = n_h(s,a) / n_h(s), and its certified
    value.

    In a state that was not visited at a step, the policy plays what was played there at other
    steps; in a state that was never visited, what was played overall. So no action is played that
    the log never took.
    """
    require_log(counts, problem)
    return certify(cloned(counts, problem), counts, problem, delta, bounds, "Behaviour cloning")


def cloned(counts: Counts, problem: Problem) -> Floats:
    """Return the frequencies of actions, (H, S, A)."""
    n = np.broadcast_to(counts.played, (problem.H, problem.S, problem.A)).astype(np.float64)
    at_any_step, overall = n.sum(axis=0), n.sum(axis=(0, 1))
    if not overall.any():
        overall = np.ones(problem.A)
    at_any_step = np.where(at_any_step.any(axis=-1, keepdims=True), at_any_step, overall)
    weights = np.where(n.any(axis=-1, keepdims=True), n, at_any_step)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def spibb(
    counts: Counts,
    problem: Problem,
    delta: float,
    n_wedge: int = 20,
    bounds: KL = KL(),  # noqa: B008  (frozen)
    behaviour: ArrayLike | None = None,
) -> Learnt:
    """Safe policy improvement with baseline bootstrapping (Laroche et al. 2019, Pi_b-SPIBB), and
    its certified value.

    Where a pair was seen fewer than `n_wedge` times the policy plays what the log played (or
    `behaviour`, if you know it); the remaining probability of each state goes to the action that is
    best by the observed frequencies. The guarantee of the SPIBB paper limits the loss against the
    logged policy and needs a far larger n_wedge. What is certified here is the value of the policy,
    by KL.
    """
    require_log(counts, problem)
    least = require_integer("n_wedge", n_wedge, 1, InvalidSetting)
    pi_b = (
        cloned(counts, problem)
        if behaviour is None
        else check_policy(behaviour, problem, "behaviour")
    )
    pi = improved(counts, problem, pi_b, least)
    return certify(pi, counts, problem, delta, bounds, f"SPIBB (n_wedge = {least})")


def improved(counts: Counts, problem: Problem, pi_b: Floats, n_wedge: int) -> Floats:
    """Return the policy of Pi_b-SPIBB, computed backwards in h."""
    H, S, A = problem.H, problem.S, problem.A
    pi, V, seen = np.zeros((H, S, A)), np.zeros(S), Frequencies.of(counts.transitions)
    for h in reversed(range(H)):
        there = seen[counts.row(h)]
        n_sa = there.n_sa
        Q = there.rewards(problem, counts, h, by_next=0.0) + there.ahead(V)
        known = n_sa >= n_wedge
        pi[h] = np.where(known, 0.0, pi_b[h])  # bootstrapped
        best = most_visited_best(np.where(known, Q, -np.inf), n_sa)
        free = np.where(known.any(axis=-1), np.where(known, pi_b[h], 0.0).sum(axis=-1), 0.0)
        pi[h, np.arange(S), best] += free
        V = (pi[h] * Q).sum(axis=-1)
    return pi


def _evidence(
    counts: Counts, problem: Problem, delta: float, bounds: KL, pi: Floats | None = None
) -> tuple["kernels.Evidence", float]:
    """Return the confidence balls of all pairs, up to date, and the checked delta."""
    if not isinstance(problem, Problem):
        raise InvalidSetting(
            f"problem is a {type(problem).__name__}, expected a Problem, such as log.problem()."
        )
    if type(bounds) is not KL:
        raise InvalidSetting(
            f"bounds is {bounds!r}, expected sf.KL(): the paper's bounds do not cover logged data."
        )
    require_log(counts, problem)
    if counts.pooled:
        require_stationary(problem)
    level = require_delta(delta)
    rows = [np.ones((1, 1)) if problem.start is None else problem.start] + (
        [] if pi is None else [pi]
    )
    row_sum_error = max(float(np.abs(row.sum(axis=-1) - 1.0).max()) for row in rows)
    evidence = bounds.evidence(
        problem, counts, level / _more(counts, problem), margin(problem.H, row_sum_error)
    )
    kernels.refresh_all(evidence)
    if _leaves_room(counts, problem):
        assert isinstance(evidence, kernels.Balls)
        evidence = set_undeclared(evidence, problem, evidence.log_union)
    return evidence, level


def _leaves_room(counts: Counts, problem: Problem) -> bool:
    """Are these counts of a log whose states were not declared?

    Its first visits are then taken off. Whether other counts are of episodes that came after the
    list of states, or of the very log that the list was read from, cannot be told: they are
    refused.
    """
    if problem.unseen_state is None or not counts.episodes:
        return False
    if counts.origin is not None and counts.origin.first_visits == TAKEN_OFF:
        return True
    raise InvalidCounts(
        "The states of this problem were not declared, but the first visits of these counts are "
        "not taken off. Use log.counts, or declare the states: count_log(..., states=[...]). "
        "Agents alone read live episodes here."
    )


def _more(counts: Counts, problem: Problem) -> int:
    """Return by what the events are multiplied where the states are those that a log happens to
    show.
    """
    return more_events(problem) if _leaves_room(counts, problem) else 1


def _values(
    counts: Counts, problem: Problem, delta: float, bounds: KL, pi: Floats | None
) -> tuple[Floats, Floats, float, "kernels.Evidence"]:
    """Return a policy, the best one if none is given, and V_low; its value at the start, and the
    confidence balls.
    """
    evidence, level = _evidence(counts, problem, delta, bounds, pi)
    if pi is None:
        actions, V_low = kernels.pessimistic(evidence, counts.n_sa, problem.H)
        pi = one_hot(actions, problem.A)
    else:
        V_low = kernels.lower_values(evidence, pi)
    leaves_room = _leaves_room(counts, problem)
    log_union = math.log(bounds.events(problem, counts.pooled) * _more(counts, problem) / level)
    lower = bounds.lower_at_start(problem, counts.n_start, V_low[0], log_union, leaves_room)
    return pi, V_low, lower, evidence


def _lower(counts: Counts, problem: Problem, delta: float, bounds: KL, pi: Floats | None) -> float:
    """Return the lower value only. The problem may lack the last states of the policy."""
    among = None if pi is None else np.ascontiguousarray(pi[:, : problem.S])
    return _values(counts, problem, delta, bounds, among)[2]


def _learnt(
    method: str,
    counts: Counts,
    problem: Problem,
    delta: float,
    bounds: KL,
    pi: Floats | None = None,
) -> Learnt:
    """Certify a policy, the best one if none is given."""
    policy, V_low, lower, evidence = _values(counts, problem, delta, bounds, pi)
    if not _leaves_room(counts, problem):  # first visits that are taken off are missing in the flow
        check_flow(counts)
    level = require_delta(delta)
    return Learnt(
        method=method,
        policy=policy,
        rescaled_lower=lower,
        delta=level,
        certified=bounds.certified,
        problem=problem,
        counts=counts,
        episodes=counts.episodes,
        binding=tuple(binding_pairs(problem, counts, evidence, policy, V_low)),
        recompute_lower=partial(_lower, problem=problem, delta=level, bounds=bounds, pi=pi),
        lower_with=partial(_lower, delta=level, bounds=bounds, pi=policy),
    )
