"""One backward pass for pi_bar and its splices with pi_b, under whatever bounds the evidence
brings.

A splice follows pi_b before row h0 and pi_bar from row h0 on. Below row h0 all splices share
pi_bar's values, so a backward pass needs one table of Q per DISTINCT next value function, and slot
0 (pi_bar, h0 = 0) serves every splice whose tail has begun. What has not changed since the last
pass is not evaluated again: values are compared bit by bit, so an incremental pass gives exactly
the values of a full one.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.kernels.evidence import Evidence, look_ahead, q_bounds
from surefoot.kernels.jit import compiled
from surefoot.kernels.kl import BEST, BOTH, LOWER, best_action

# pairs backed up together: their slice of P_hat stays in the nearest cache for all candidates
BLOCK = 128


class Splices(NamedTuple):
    """The candidates h0 (ascending, h0[0] = 0) and their bounds. Slot c holds the splice h0[c]."""

    h0: Ints  # (C,)
    pi_b: Floats  # (H, S, A)
    # (H, S, A): a policy in place of the optimistic one; of size 0: the optimistic one
    explorer: Floats
    pi_bar: Ints  # (H, S) the optimistic action
    V_up: Floats  # (H+1, C, S)
    V_low: Floats  # (H+1, C, S)
    changed: Bools  # (H+1, C): has this value function changed in the present pass?
    scratch: Floats  # (5, BLOCK or more)


@compiled
def read_optimistic(
    Q_up: Floats,
    Q_low: Floats,
    A: int,
    tie: float,
    s_lo: int,
    s_hi: int,
    pi_bar: Ints,
    V_up: Floats,
    V_low: Floats,
) -> tuple[bool, bool]:
    """Compute pi_bar(s) = argmax_a Q_up (the first index wins a tie) and its values. Return whether
    the policy changed, and whether the values did.

    V_up is the largest Q_up, also where that of another action is larger by less than the tie.
    """
    policy_moved = False
    values_moved = False
    for s in range(s_lo, s_hi):
        first = (s - s_lo) * A
        best, up = best_action(Q_up[first : first + A], tie), Q_up[first]
        for a in range(1, A):
            up = max(up, Q_up[first + a])
        low = Q_low[first + best]
        if pi_bar[s] != best:
            pi_bar[s] = best
            policy_moved = True
        if V_up[s] != up or V_low[s] != low:
            V_up[s] = up
            V_low[s] = low
            values_moved = True
    return policy_moved, values_moved


@compiled
def read_policy(
    Q_up: Floats,
    Q_low: Floats,
    pi: Floats,
    s_lo: int,
    s_hi: int,
    margin: float,
    V_up: Floats,
    V_low: Floats,
) -> bool:
    """Compute V_up(s) = <pi(.|s), Q_up(s,.)> and V_low(s) = <pi(.|s), Q_low(s,.)> (Eq. ucbV, lcbV).
    Return whether they changed.

    A margin for the rounding of the sum is taken off the lower value, which never falls below the
    smallest Q_low of an action that is played; and the other way round for the upper one.
    """
    A = pi.shape[1]
    moved = False
    for s in range(s_lo, s_hi):
        up, low = 0.0, 0.0
        most, least = -math.inf, math.inf
        for a in range(A):
            q_up, q_low = Q_up[(s - s_lo) * A + a], Q_low[(s - s_lo) * A + a]
            up += pi[s, a] * q_up
            low += pi[s, a] * q_low
            if pi[s, a] > 0.0:
                most = max(most, q_up)
                least = min(least, q_low)
        up = min(up + margin, most)
        low = max(low - margin, least)
        if V_up[s] != up or V_low[s] != low:
            V_up[s] = up
            V_low[s] = low
            moved = True
    return moved


@compiled
def bound_splices(
    evidence: Evidence, splices: Splices, states: Ints, first_lo: int, first_hi: int
) -> bool:
    """One backward pass: pi_bar, and V_up, V_low of every candidate (`optimistic` and PolicyEva of
    all splices).

    `states` are those of the episode counted since the last pass; empty means that anything may
    have changed. At the first step the states first_lo <= s < first_hi are evaluated: with one
    first state nothing else is read there. Return whether pi_bar changed.
    """
    h0, pi_b = splices.h0, splices.pi_b
    V_up, V_low, changed = splices.V_up, splices.V_low, splices.changed
    H, S, A = pi_b.shape
    C = h0.shape[0]
    pooled = evidence.n_sa.shape[0] == 1 and H > 1
    policy_moved = False
    for h in range(H - 1, -1, -1):
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
            up, low = V_up[h + 1, slot, :next_states], V_low[h + 1, slot, :next_states]
            look_ahead(evidence, up, low, (s_hi - s_lo) * A, slot == 0)
            policy_moved |= bound_states(evidence, splices, h, slot, s_lo, s_hi)
    return policy_moved


@compiled
def bound_states(
    evidence: Evidence, splices: Splices, h: int, slot: int, s_lo: int, s_hi: int
) -> bool:
    """Bound one slot in the states s_lo <= s < s_hi of one step, after those of the next step.
    Return whether pi_bar changed.
    """
    h0, pi_b, pi_bar, explorer = splices.h0, splices.pi_b, splices.pi_bar, splices.explorer
    V_up, V_low, changed, scratch = splices.V_up, splices.V_low, splices.changed, splices.scratch
    H, S, A = pi_b.shape
    C = h0.shape[0]
    row = h % evidence.n_sa.shape[0]  # 0 where counts are pooled over steps
    per_block = max(1, BLOCK // A)
    next_states = S if h < H - 1 else 0
    policy_moved = False
    wanted = LOWER
    if slot == 0:
        wanted = BEST if explorer.shape[0] == 0 else BOTH
        for c in range(1, C):
            if h + 1 == h0[c]:  # read below by pi_b, too
                wanted = BOTH
    for s in range(s_lo, s_hi, per_block):
        end = min(s + per_block, s_hi)
        q_bounds(
            evidence,
            row,
            h,
            s * A,
            end * A,
            H,
            V_up[h + 1, slot, :next_states],
            V_low[h + 1, slot, :next_states],
            scratch,
            wanted,
            pi_b[h, : S if slot > 0 else 0],
        )
        Q_up, Q_low = scratch[0], scratch[1]
        if slot > 0:
            changed[h, slot] |= read_policy(
                Q_up, Q_low, pi_b[h], s, end, evidence.margin, V_up[h, slot], V_low[h, slot]
            )
            continue
        if explorer.shape[0] > 0:
            changed[h, 0] |= read_policy(
                Q_up, Q_low, explorer[h], s, end, evidence.margin, V_up[h, 0], V_low[h, 0]
            )
        else:
            moved, values = read_optimistic(
                Q_up, Q_low, A, evidence.tie, s, end, pi_bar[h], V_up[h, 0], V_low[h, 0]
            )
            policy_moved |= moved
            changed[h, 0] |= values
        for c in range(1, C):
            # it leaves pi_b right after this row, so its next values are pi_bar's
            if h0[c] == h + 1:
                changed[h, c] |= read_policy(
                    Q_up, Q_low, pi_b[h], s, end, evidence.margin, V_up[h, c], V_low[h, c]
                )
    return policy_moved


def empty_splices(h0: Ints, pi_b: Floats, explorer: Floats | None = None) -> Splices:
    """Arrays for the bounds of the candidates; with an explorer, for it and its splices with
    pi_b.
    """
    H, S, A = pi_b.shape
    instead = np.zeros((0, 0, 0)) if explorer is None else np.array(explorer)
    instead.flags.writeable = False  # like pi_b: what reads both is compiled once
    return Splices(
        h0=h0,
        pi_b=pi_b,
        explorer=instead,
        pi_bar=np.zeros((H, S), dtype=np.int64),
        V_up=np.zeros((H + 1, h0.shape[0], S)),
        V_low=np.zeros((H + 1, h0.shape[0], S)),
        changed=np.zeros((H + 1, h0.shape[0]), dtype=np.bool_),
        scratch=cache_aligned(5, max(BLOCK, A)),
    )


def cache_aligned(rows: int, columns: int) -> Floats:
    """Zeros that begin on a cache line: the sums of a pass, which are read and written most, run
    half again as fast.
    """
    line = 64
    memory = np.zeros(rows * columns * 8 + line, dtype=np.uint8)
    start = -memory.ctypes.data % line
    return memory[start : start + rows * columns * 8].view(np.float64).reshape(rows, columns)
