"""Exact values of policies in a known world.

Transition arrays are laid out with the pair (s, a) last: P[h, s', s*A + a]. The innermost loop then
runs over independent pairs, which a compiler may do several at a time without changing the order of
any sum.
"""

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.kernels.jit import compiled


@compiled
def policy_backup(
    P: Floats, r: Floats, pi: Floats, V_next: Floats, lo: int, hi: int, q: Floats, V: Floats
) -> None:
    """Compute V(s) = sum_a pi(a|s) (r(s,a) + sum_s' P(s'|s,a) V_next(s')) for the states lo <= s
    < hi of one step.
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
def policy_value(P: Floats, r: Floats, pi: Floats, q: Floats, V: Floats) -> None:
    """Fill V (H+1, S) with the exact values of pi (H, S, A). P and r may have one row for all
    steps.
    """
    H, S, _ = pi.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        policy_backup(P[h % P.shape[0]], r[h % r.shape[0]], pi[h], V[h + 1], 0, S, q, V[h])


@compiled
def start_value(
    P: Floats, r: Floats, pi: Floats, start: Floats, several: bool, q: Floats, V: Floats
) -> float:
    """The value at the start, with the same bits as `policy_value`; with one first state the others
    are left out.

    `start` (S,) are the probabilities of the first state.
    """
    H, S, _ = pi.shape
    first = 0
    for s in range(S):
        if start[s] > start[first]:
            first = s
    for h in range(H - 1, -1, -1):
        lo, hi = (0, S) if several or h > 0 else (first, first + 1)
        policy_backup(P[h % P.shape[0]], r[h % r.shape[0]], pi[h], V[h + 1], lo, hi, q, V[h])
    if not several:
        return float(V[0, first])
    total = 0.0
    for s in range(S):
        total += start[s] * V[0, s]
    return total


@compiled
def sparse_policy_backup(
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
    """`policy_backup` over lists of successors: the same sums in the same order, without those
    that add 0.
    """
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
def sparse_policy_value(
    first: Ints, state: Ints, p: Floats, r: Floats, pi: Floats, V: Floats
) -> None:
    """Fill V (H+1, S) with the exact values of pi (H, S, A), over lists of successors."""
    H, S, A = pi.shape
    rows = (first.shape[0] - 1) // (S * A)
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        lists = first[(h % rows) * S * A :]
        sparse_policy_backup(lists, state, p, r[h % r.shape[0]], pi[h], V[h + 1], 0, S, V[h])


@compiled
def sparse_start_value(
    first: Ints,
    state: Ints,
    p: Floats,
    r: Floats,
    pi: Floats,
    start: Floats,
    several: bool,
    V: Floats,
) -> float:
    """`start_value` over lists of successors."""
    H, S, A = pi.shape
    rows = (first.shape[0] - 1) // (S * A)
    begin = 0
    for s in range(S):
        if start[s] > start[begin]:
            begin = s
    for h in range(H - 1, -1, -1):
        lo, hi = (0, S) if several or h > 0 else (begin, begin + 1)
        lists = first[(h % rows) * S * A :]
        sparse_policy_backup(lists, state, p, r[h % r.shape[0]], pi[h], V[h + 1], lo, hi, V[h])
    if not several:
        return float(V[0, begin])
    total = 0.0
    for s in range(S):
        total += start[s] * V[0, s]
    return total


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


def pairs_last(P: Floats) -> Floats:
    """P (rows, S, A, S') as (rows, S', S*A), contiguous: the layout the kernels read."""
    rows, S, A, _ = P.shape
    return np.ascontiguousarray(P.transpose(0, 3, 1, 2).reshape(rows, S, S * A))
