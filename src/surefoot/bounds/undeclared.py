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
from surefoot.model.count_lists import Entries, entries_of, frequencies_of, lists_from
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
    here = np.zeros(len(n_i), dtype=np.int64)
    radius = undeclared_radii(here, n_i, is_unseen, n_i.sum(keepdims=True), log_union)
    return float(radius[0]), p_hat


def set_undeclared(balls: "kernels.Balls", problem: Problem, log_union: float) -> "kernels.Balls":
    """Give the balls of all pairs, brought up to date before, the radius and the frequencies of
    undeclared states: the unseen state is in none of their lists, and n is the number of other
    visits.

    A pair with a single possible next state (of the absorbing and the unseen state) needs none.
    """
    assert problem.unseen_state is not None
    lists, eps = balls.n_sas, balls.eps.copy()
    place, state, n = entries_of(lists)
    unseen = state == problem.unseen_state
    sizes = problem.limits.sizes  # a pair with one possible next state keeps its list
    alone = sizes[np.arange(lists.at.size) % len(sizes)] == 1
    kept = ~unseen | alone[place]
    others = lists_from(Entries(place[kept], state[kept], n[kept]), lists.at.shape, lists.S)
    radius = balls.scale * undeclared_radii(place, n, unseen, lists.visits.reshape(-1), log_union)
    eps.reshape(-1)[~alone] = radius[~alone]
    return balls._replace(n_sas=others, p=frequencies_of(others), n_sa=others.visits, eps=eps)


def undeclared_radii(
    place: Ints, n_i: Ints, is_unseen: Bools, visits: Ints, log_union: float
) -> Floats:
    """Return eps, rounded up, of all pairs at once: n_i are n_x - 1 for each label x, and d for the
    unseen state; `place` says to which pair each count belongs, `visits` are the sums n.
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
