"""Certified values of one policy, or of the policy with the largest certified value."""

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.kernels.evidence import Evidence, look_ahead, q_bounds
from surefoot.kernels.jit import compiled
from surefoot.kernels.kl import LOWER
from surefoot.kernels.splices import BLOCK, cache_aligned, read_policy


@compiled
def read_pessimistic(
    Q_low: Floats, n_sa: Ints, A: int, tie: float, s_lo: int, s_hi: int, pi_hat: Ints, V_low: Floats
) -> None:
    """Compute pi_hat(s) = argmax_a Q_low and its value. Of the actions within `tie` of the best
    one, the most visited is taken, then the first.
    """
    for s in range(s_lo, s_hi):
        first = (s - s_lo) * A
        most = Q_low[first]
        for a in range(1, A):
            most = max(most, Q_low[first + a])
        best = -1
        for a in range(A):
            if Q_low[first + a] >= most - tie and (
                best < 0 or n_sa[s * A + a] > n_sa[s * A + best]
            ):
                best = a
        pi_hat[s] = best
        V_low[s] = Q_low[first + best]


@compiled
def worst_values(
    evidence: Evidence,
    n_sa: Ints,
    pi: Floats,
    pi_hat: Ints,
    V_low: Floats,
    V_up: Floats,
    scratch: Floats,
) -> None:
    """One backward pass of lower values V_low (H+1, S): of the policy pi, or, if that is (H, 0, 0),
    of the best pi_hat.

    n_sa (rows, S*A) are all visits of the pairs, of which the evidence may leave some out
    (undeclared.py). It is not for evidence whose lower values depend on upper ones: V_up (S,) is
    only written, never read. `scratch` is as for the splices.
    """
    H, S = V_low.shape[0] - 1, V_low.shape[1]
    A = evidence.n_sa.shape[1] // S
    pooled = evidence.n_sa.shape[0] == 1 and H > 1
    per_block = max(1, BLOCK // A)
    for s in range(S):
        V_low[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        row = 0 if pooled else h
        ahead = V_low[h + 1, : S if h < H - 1 else 0]
        look_ahead(evidence, ahead, ahead, S * A, False)
        for s in range(0, S, per_block):
            end = min(s + per_block, S)
            q_bounds(evidence, row, h, s * A, end * A, H, ahead, ahead, scratch, LOWER, pi[h])
            if pi.shape[1] > 0:
                read_policy(scratch[0], scratch[1], pi[h], s, end, evidence.margin, V_up, V_low[h])
            else:
                read_pessimistic(
                    scratch[1], n_sa[row], A, evidence.tie, s, end, pi_hat[h], V_low[h]
                )


def pessimistic(evidence: Evidence, n_sa: Ints, H: int) -> tuple[Ints, Floats]:
    """The actions (H, S) with the largest certified value, and their lower values (H+1, S); n_sa
    (rows, S, A).
    """
    pi_hat = np.zeros((H, n_sa.shape[1]), dtype=np.int64)
    return pi_hat, _values(evidence, n_sa.reshape(evidence.n_sa.shape), np.zeros((H, 0, 0)), pi_hat)


def lower_values(evidence: Evidence, pi: Floats) -> Floats:
    """The lower values (H+1, S) of a policy (H, S, A)."""
    return _values(
        evidence, evidence.n_sa, np.array(pi, order="C"), np.zeros(pi.shape[:2], dtype=np.int64)
    )


def _values(evidence: Evidence, n_sa: Ints, pi: Floats, pi_hat: Ints) -> Floats:
    H, S = pi_hat.shape
    V_low = np.zeros((H + 1, S))
    scratch = cache_aligned(5, max(BLOCK, evidence.n_sa.shape[1] // S))
    worst_values(evidence, n_sa, pi, pi_hat, V_low, np.zeros(S), scratch)
    return V_low
