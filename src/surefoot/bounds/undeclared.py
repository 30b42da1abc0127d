"""Balls for the rows of a log whose next states nobody declared: room is left for what was never
seen.

Fix a pair. Its next states are i.i.d. from p, over labels that nobody knows beforehand. Code each
as "new" if the pair never led there before, and otherwise by its label. At the t-th visit, with n_x
earlier visits of x, predict

    Q(new) = 1/t,   Q(x) = n_x/t,   so that   Q(all n visits) = prod_x (n_x - 1)! / n!,

whatever their order.

Under p a label x that was seen before comes with probability p(x), and something new with p(U),
where U are the labels not seen before. So M_n = Q / (prod_x p(x)^(n_x - 1) prod_new p(U)) is a
non-negative supermartingale that starts at 1. By Ville's inequality it stays below 1/delta_0 for
ALL n at once with probability 1 - delta_0; and p(U) <= 1. Hence

    sum_x (n_x - 1) log(1/p(x)) <= log(1/delta_0) + log n! - sum_x log (n_x - 1)!,

a KL ball around the frequencies of the n_x - 1, in which the probability of what was never seen is
free. Counts hold n_x - 1 for each label and, for the unseen state, the number d of labels: the
first visit of each (`LogTables`). Taking more first visits off than there were, as sums over steps
do, makes the ball larger.

How many balls are there, if the states, actions and steps are those of the log? The i-th state to
appear, the j-th action and the h-th step have a share of delta of their own, delta / (i(i+1) j(j+1)
h(h+1)): these add up to delta. The share used, delta / (events (S+1)(A+1)(H+1)), is at most that,
because i <= S, j <= A and h <= H at the end of the log.
"""

import math

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.model.count_lists import Entries, entries_of, lists_from
from surefoot.model.problem import Problem

SLACK = 2.0**-50  # of everything summed: more than the rounding errors of lgamma, log and the sums


def more_events(problem: Problem) -> int:
    """By what the number of events is multiplied, because the log says which states, actions and
    steps there are.
    """
    return (problem.S + 1) * (problem.A + 1) * (problem.H + 1)


def undeclared_ball(n_i: Ints, unseen: int, log_union: float) -> tuple[float, Floats]:
    """Return eps, rounded up, and the frequencies p_hat (S,) of one row: KL(p_hat, p) <= eps,
    infinite without data.

    n_i (S,) are n_x - 1 for each label x, and d for the unseen state: n = sum n_i.
    """
    is_unseen = np.arange(len(n_i)) == unseen
    again = np.where(is_unseen, 0, n_i)  # n_x - 1
    m = int(again.sum())
    p_hat = again / m if m else np.full(len(n_i), 1.0 / len(n_i))
    return undeclared_radius(n_i, is_unseen, log_union), p_hat


def set_undeclared(
    balls: "kernels.Balls | kernels.SparseBalls", problem: Problem, log_union: float
) -> "kernels.Balls | kernels.SparseBalls":
    """Give the balls of all pairs, brought up to date before, the radius and the frequencies of
    undeclared states.

    A pair with a single possible next state (of the absorbing and the unseen state) needs none.
    """
    assert problem.unseen_state is not None
    if isinstance(balls, kernels.SparseBalls):
        return _without_unseen(balls, problem.unseen_state, log_union)
    rows, pairs, _ = balls.n_sas.shape
    for row in range(rows):
        for pair in range(pairs):
            some = row % balls.m.shape[0], pair % balls.m.shape[1]
            m = int(balls.m[some])
            if m > 1:  # a mask takes rows out of the ball, and changes nothing in it
                eps, p_hat = undeclared_ball(
                    balls.n_sas[row, pair], problem.unseen_state, log_union
                )
                balls.eps[row, pair] = balls.scale * eps
                balls.P_hat[row, pair, :m] = p_hat[balls.succ[some][:m]]
    return balls


def _without_unseen(
    balls: "kernels.SparseBalls", unseen: int, log_union: float
) -> "kernels.SparseBalls":
    """The same of balls over lists: the unseen state is in none of them, and n is the number of
    other visits.
    """
    lists, eps = balls.n_sas, balls.eps.copy()
    place, state, n = entries_of(lists)
    sizes = np.diff(balls.mask.first)  # a pair with one possible next state keeps its list
    alone = (
        sizes[np.arange(lists.at.size) % len(sizes)] == 1
        if len(sizes)
        else np.zeros(lists.at.size, dtype=np.bool_)
    )
    kept = (state != unseen) | alone[place]
    others = lists_from(Entries(place[kept], state[kept], n[kept]), lists.at.shape, lists.S)
    radius = balls.scale * undeclared_radii(
        place, n, state == unseen, lists.visits.reshape(-1), log_union
    )
    eps.reshape(-1)[~alone] = radius[~alone]
    return balls._replace(n_sas=others, n_sa=others.visits.copy(), eps=eps)


def undeclared_radius(n_i: Ints, is_unseen: Bools, log_union: float) -> float:
    """Return eps, rounded up, of the counts n_i: n_x - 1 for each label x, and d for the unseen
    state.
    """
    n, seen = int(n_i.sum()), n_i[~is_unseen & (n_i > 0)].tolist()
    m = sum(seen)
    if m == 0:
        return math.inf
    log_p = sum(k * math.log(k / m) for k in seen)
    log_Q = sum(math.lgamma(k + 1.0) for k in seen) - math.lgamma(n + 1.0)
    size = (
        abs(log_union) + abs(log_p) + math.lgamma(n + 1.0) + sum(math.lgamma(k + 1.0) for k in seen)
    )
    return float(max(log_union + log_p - log_Q + (len(seen) + 8) * SLACK * size, 0.0) / m)


def undeclared_radii(
    place: Ints, n_i: Ints, is_unseen: Bools, visits: Ints, log_union: float
) -> Floats:
    """Return `undeclared_radius` of all pairs at once: `place` says to which of them each count
    belongs, `visits` are the sums n. The error of a sum of d logarithms is covered as there.
    """
    seen = (n_i > 0) & ~is_unseen
    place, k = place[seen], n_i[seen].astype(np.float64)
    d, m = (np.bincount(place, weights, minlength=len(visits)) for weights in (None, k))
    whole = np.maximum(m, 1.0)
    log_p = np.bincount(place, k * np.log(k / whole[place]), minlength=len(visits))
    # few numbers occur: lgamma once for each
    sizes, which = np.unique(np.append(k, visits), return_inverse=True)
    log_factorial = np.array([math.lgamma(x + 1.0) for x in sizes.tolist()])[which]
    log_n, log_k = (
        log_factorial[len(k) :],
        np.bincount(place, log_factorial[: len(k)], minlength=len(visits)),
    )
    slack = (d + 8) * SLACK * (abs(log_union) + np.abs(log_p) + log_n + log_k)
    return np.where(
        m > 0, np.maximum(log_union + log_p - (log_k - log_n) + slack, 0.0) / whole, np.inf
    )
