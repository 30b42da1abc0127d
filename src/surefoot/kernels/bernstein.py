"""The paper's Bernstein-type bounds (Eq. q, ucbQ, lcbQ) for pi_bar and its splices with pi_b.

A splice follows pi_b before row h0 and pi_bar from row h0 on. Below row h0 all splices share pi_bar's values, so a
backward pass needs one table of Q per DISTINCT next value function, and slot 0 (pi_bar, h0 = 0) serves every splice
whose tail has begun. What has not changed since the last pass is not evaluated again: values are compared bit by
bit, so an incremental pass equals a full one exactly.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.arrays import Bools, Floats, Ints
from surefoot.kernels.jit import compiled

BLOCK = 128  # pairs backed up together: their slice of P_hat stays in the nearest cache for all candidates


class Radii(NamedTuple):
    """The numbers behind beta and beta*: fixed before the data."""

    log_union: float  # log(SAH / delta')
    scale: float  # 1.0 is the paper; anything else is NOT CERTIFIED


class Estimate(NamedTuple):
    """What the bounds read of the data. Rows: one per step, or one for all steps when counts are pooled."""

    n_sas: Ints  # (rows, S*A, S)
    n_sa: Ints  # (rows, S*A)
    P_hat: Floats  # (rows, S, S*A), pairs last
    beta_n: Floats  # (rows, S*A)  beta(n) / n, infinite where n = 0
    beta_star_n: Floats  # (rows, S*A)  beta*(n) / n, 0 where n = 0 (beta_n already says everything there)


class Splices(NamedTuple):
    """The candidates h0 (ascending, h0[0] = 0) and their bounds. Slot c holds the splice h0[c]."""

    h0: Ints  # (C,)
    r: Floats  # (H or 1, S*A)
    pi_b: Floats  # (H, S, A)
    pi_bar: Ints  # (H, S) the optimistic action
    V_up: Floats  # (H+1, C, S)
    V_low: Floats  # (H+1, C, S)
    changed: Bools  # (H+1, C): has this value function moved in the present pass?
    scratch: Floats  # (5, BLOCK or more)


@compiled
def refresh_pair(estimate: Estimate, radii: Radii, row: int, pair: int) -> None:
    """Recompute P_hat, beta/n and beta*/n of one pair from its counts (Eq. p; beta and beta* of the notation table)."""
    S = estimate.n_sas.shape[2]
    n = estimate.n_sa[row, pair]
    if n == 0:
        for s_next in range(S):
            estimate.P_hat[row, s_next, pair] = 1.0 / S
        estimate.beta_n[row, pair] = math.inf
        estimate.beta_star_n[row, pair] = 0.0
        return
    for s_next in range(S):
        estimate.P_hat[row, s_next, pair] = estimate.n_sas[row, pair, s_next] / n
    growth = math.log(8.0 * math.e * (n + 1))
    estimate.beta_n[row, pair] = radii.scale * (radii.log_union + S * growth) / n
    estimate.beta_star_n[row, pair] = radii.scale * (radii.log_union + growth) / n


@compiled
def refresh_all(estimate: Estimate, radii: Radii) -> None:
    """`refresh_pair` for every pair, after summing n_sa from n_sas."""
    rows, pairs, S = estimate.n_sas.shape
    for row in range(rows):
        for pair in range(pairs):
            n = 0
            for s_next in range(S):
                n += estimate.n_sas[row, pair, s_next]
            estimate.n_sa[row, pair] = n
            refresh_pair(estimate, radii, row, pair)


@compiled
def q_bounds(
    P_hat: Floats,
    beta_n: Floats,
    beta_star_n: Floats,
    r: Floats,
    lo: int,
    hi: int,
    H: int,
    V_up: Floats,
    V_low: Floats,
    scratch: Floats,
) -> None:
    """Q_up into scratch[0] and Q_low into scratch[1] for the pairs lo <= i < hi of one step (Eq. ucbQ, lcbQ).

    P_hat (S, S*A) and the rest are that step's. An empty V_up stands for V_{H+1} = 0: nothing to sum.
    """
    m = hi - lo
    Q_up, Q_low = scratch[0], scratch[1]
    mean_up, mean_low, var = scratch[2], scratch[3], scratch[4]
    reward = r[lo:hi]
    b = beta_n[lo:hi]
    b_star = beta_star_n[lo:hi]
    if V_up.shape[0] == 0:
        for i in range(m):
            upper = reward[i] + 14.0 * H * H * b[i]
            lower = reward[i] - 22.0 * H * H * b[i]
            Q_up[i] = upper if upper < H else float(H)
            Q_low[i] = lower if lower > 0.0 else 0.0
        return
    for i in range(m):
        mean_up[i] = 0.0
        mean_low[i] = 0.0
        var[i] = 0.0
    for s_next in range(V_up.shape[0]):
        p = P_hat[s_next, lo:hi]
        up = V_up[s_next]
        low = V_low[s_next]
        for i in range(m):
            mean_up[i] += p[i] * up
            mean_low[i] += p[i] * low
    for s_next in range(V_up.shape[0]):
        p = P_hat[s_next, lo:hi]
        up = V_up[s_next]
        for i in range(m):
            var[i] += p[i] * (up - mean_up[i]) * (up - mean_up[i])
    for i in range(m):
        deviation = 3.0 * math.sqrt(var[i] * b_star[i])
        spread = (1.0 / H) * (mean_up[i] - mean_low[i])
        upper = reward[i] + deviation + 14.0 * H * H * b[i] + spread + mean_up[i]
        lower = reward[i] - deviation - 22.0 * H * H * b[i] - 2.0 * spread + mean_low[i]
        Q_up[i] = upper if upper < H else float(H)
        Q_low[i] = lower if lower > 0.0 else 0.0


@compiled
def read_optimistic(
    Q_up: Floats, Q_low: Floats, A: int, s_lo: int, s_hi: int, pi_bar: Ints, V_up: Floats, V_low: Floats
) -> tuple[bool, bool]:
    """pi_bar(s) = argmax_a Q_up (the first index wins a tie) and its values: did the policy move, did they?"""
    policy_moved = False
    values_moved = False
    for s in range(s_lo, s_hi):
        first = (s - s_lo) * A
        best = 0
        for a in range(1, A):
            if Q_up[first + a] > Q_up[first + best]:
                best = a
        up, low = Q_up[first + best], Q_low[first + best]
        if pi_bar[s] != best:
            pi_bar[s] = best
            policy_moved = True
        if V_up[s] != up or V_low[s] != low:
            V_up[s] = up
            V_low[s] = low
            values_moved = True
    return policy_moved, values_moved


@compiled
def read_policy(Q_up: Floats, Q_low: Floats, pi: Floats, s_lo: int, s_hi: int, V_up: Floats, V_low: Floats) -> bool:
    """V_up(s) = <pi(.|s), Q_up(s,.)> and V_low(s) = <pi(.|s), Q_low(s,.)> (Eq. ucbV, lcbV): did they move?"""
    A = pi.shape[1]
    moved = False
    for s in range(s_lo, s_hi):
        up = 0.0
        low = 0.0
        for a in range(A):
            up += pi[s, a] * Q_up[(s - s_lo) * A + a]
            low += pi[s, a] * Q_low[(s - s_lo) * A + a]
        if V_up[s] != up or V_low[s] != low:
            V_up[s] = up
            V_low[s] = low
            moved = True
    return moved


@compiled
def bound_splices(estimate: Estimate, splices: Splices, states: Ints, first_lo: int, first_hi: int) -> bool:
    """One backward pass: pi_bar, and V_up, V_low of every candidate (`optimistic` and PolicyEva of all splices).

    `states` are those of the episode counted since the last pass; empty means that anything may have changed. At the
    first step the states first_lo <= s < first_hi are evaluated: whoever starts in s1 reads nothing else there.
    Returns whether pi_bar moved.
    """
    P_hat, beta_n, beta_star_n = estimate.P_hat, estimate.beta_n, estimate.beta_star_n
    h0, r, pi_b, pi_bar = splices.h0, splices.r, splices.pi_b, splices.pi_bar
    V_up, V_low, changed, scratch = splices.V_up, splices.V_low, splices.changed, splices.scratch
    H, S, A = pi_b.shape
    C = h0.shape[0]
    pooled = P_hat.shape[0] == 1 and H > 1
    per_block = max(1, BLOCK // A)
    policy_moved = False
    for h in range(H - 1, -1, -1):
        row = 0 if pooled else h
        r_row = h % r.shape[0]
        for c in range(C):
            changed[h, c] = False
        for slot in range(C):
            if slot > 0 and h0[slot] < h + 2:
                continue  # its tail has begun: slot 0's table serves it
            s_lo, s_hi = 0, S
            if h == 0:
                s_lo, s_hi = first_lo, first_hi
            elif states.shape[0] > 0 and not pooled and not changed[h + 1, slot]:
                s_lo, s_hi = states[h], states[h] + 1
            next_states = S if h < H - 1 else 0
            for s in range(s_lo, s_hi, per_block):
                end = min(s + per_block, s_hi)
                q_bounds(
                    P_hat[row],
                    beta_n[row],
                    beta_star_n[row],
                    r[r_row],
                    s * A,
                    end * A,
                    H,
                    V_up[h + 1, slot, :next_states],
                    V_low[h + 1, slot, :next_states],
                    scratch,
                )
                Q_up, Q_low = scratch[0], scratch[1]
                if slot > 0:
                    changed[h, slot] |= read_policy(Q_up, Q_low, pi_b[h], s, end, V_up[h, slot], V_low[h, slot])
                    continue
                moved, values = read_optimistic(Q_up, Q_low, A, s, end, pi_bar[h], V_up[h, 0], V_low[h, 0])
                policy_moved |= moved
                changed[h, 0] |= values
                for c in range(1, C):
                    if h0[c] == h + 1:  # it leaves pi_b right after this row, so its next values are pi_bar's
                        changed[h, c] |= read_policy(Q_up, Q_low, pi_b[h], s, end, V_up[h, c], V_low[h, c])
    return policy_moved


def estimate_from(n_sas: Ints) -> Estimate:
    """Room for the estimate of the counts n_sas (rows, S, A, S), which it shares; `refresh_all` fills the rest."""
    rows, S, A, _ = n_sas.shape
    return Estimate(
        n_sas=n_sas.reshape(rows, S * A, S),
        n_sa=np.zeros((rows, S * A), dtype=np.int64),
        P_hat=np.zeros((rows, S, S * A)),
        beta_n=np.zeros((rows, S * A)),
        beta_star_n=np.zeros((rows, S * A)),
    )


def empty_splices(h0: Ints, r: Floats, pi_b: Floats) -> Splices:
    """Room for the candidates' bounds."""
    H, S, A = pi_b.shape
    return Splices(
        h0=h0,
        r=r,
        pi_b=pi_b,
        pi_bar=np.zeros((H, S), dtype=np.int64),
        V_up=np.zeros((H + 1, h0.shape[0], S)),
        V_low=np.zeros((H + 1, h0.shape[0], S)),
        changed=np.zeros((H + 1, h0.shape[0]), dtype=np.bool_),
        scratch=cache_aligned(5, max(BLOCK, A)),
    )


def cache_aligned(rows: int, columns: int) -> Floats:
    """Zeros that begin on a cache line: the sums of a pass, which are read and written most, run half again as fast."""
    line = 64
    room = np.zeros(rows * columns * 8 + line, dtype=np.uint8)
    start = -room.ctypes.data % line
    return room[start : start + rows * columns * 8].view(np.float64).reshape(rows, columns)
