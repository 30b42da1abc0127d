"""Exact values of policies in a known world, over lists of successors.

Where few next states are left out there is a copy of the probabilities with the pair (s, a) last:
P[h, s', s*A + a]. The innermost loop then runs over independent pairs, which a compiler may do
several at a time. Both add the same numbers in the same order, but for zeros.
"""

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.kernels.jit import compiled
from surefoot.model.rows import Rows

MOST_COPIED = 4  # numbers of the copy for each probability that is listed


@compiled
def policy_backup(
    P: Floats, r: Floats, pi: Floats, V_next: Floats, lo: int, hi: int, q: Floats, V: Floats
) -> None:
    """Compute V(s) = sum_a pi(a|s) (r(s,a) + sum_s' P(s'|s,a) V_next(s')) for the states lo <= s
    < hi of one step; P (S, S*A).
    """
    S, A = pi.shape
    reward = r[lo * A : hi * A]
    Q = q[: (hi - lo) * A]
    for i in range(Q.shape[0]):
        Q[i] = reward[i]
    for s_next in range(S):
        p = P[s_next, lo * A : hi * A]
        v = V_next[s_next]
        for i in range(Q.shape[0]):
            Q[i] += p[i] * v
    for s in range(lo, hi):
        total = 0.0
        for a in range(A):
            total += pi[s, a] * Q[(s - lo) * A + a]
        V[s] = total


@compiled
def listed_policy_backup(
    first: Ints,
    state: Ints,
    p: Floats,
    r: Floats,
    pi: Floats,
    V_next: Floats,
    lo: int,
    hi: int,
    V: Floats,
) -> None:
    """`policy_backup` over the lists themselves: the same sums without those that add 0."""
    A = pi.shape[1]
    for s in range(lo, hi):
        total = 0.0
        for a in range(A):
            i = s * A + a
            Q = r[i]
            for k in range(first[i], first[i + 1]):
                Q += p[k] * V_next[state[k]]
            total += pi[s, a] * Q
        V[s] = total


@compiled
def draw(weights: Floats, u: float) -> int:
    """The index that the uniform number u selects.

    Rounding can leave the sum of a row slightly below 1, and u above it: then it is the last index
    with any weight.
    """
    total = 0.0
    last = 0
    for i in range(weights.shape[0]):
        w = weights[i]
        total += w
        if u < total:
            return i
        if w > 0.0:
            last = i
    return last


def pairs_last(rows: Rows) -> Floats:
    """The copy (rows, S', S*A), contiguous; of size 0 where it would be much larger than the
    lists.
    """
    lists = len(rows.first) - 1
    if lists * rows.S > MOST_COPIED * len(rows.state):
        return np.zeros((0, 0, 0))
    P = np.zeros((rows.rows, rows.S, rows.pairs))
    h, pair = np.divmod(rows.places, rows.pairs)
    P[h, rows.state, pair] = rows.value
    return P
