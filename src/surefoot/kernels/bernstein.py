"""The paper's Bernstein-type bounds (Eq. q, ucbQ, lcbQ)."""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.kernels.jit import compiled
from surefoot.model.count_lists import CountLists

# A copy of the frequencies with the pairs last is made where it has at most so many numbers for
# each next state in the lists, or stays in a cache: with it, several pairs are summed at a time.
MOST_COPIED, IN_CACHE = 4, 2**15


class Estimate(NamedTuple):
    """What these bounds read of the data. Rows: one per step, or one for all steps when counts
    are pooled.
    """

    n_sas: CountLists
    n_sa: Ints  # (rows, S*A): the visits of n_sas
    played: Ints  # (rows, S*A): how often each pair was played, at the last step, too
    n_fresh: Ints  # (rows, S*A): `played` when the pair was last brought up to date
    # (rows, S, S*A), pairs last: a copy for most of the lists; of size 0 where few next states
    # were seen of many
    P_hat: Floats
    beta_n: Floats  # (rows, S*A)  beta(n) / n, infinite where n = 0
    beta_star_n: Floats  # (rows, S*A)  beta*(n) / n, 0 where n = 0 (beta_n is infinite there)
    r: Floats  # (H or 1, S*A)
    x_sa: Ints  # of size 0: these bounds require known rewards
    z_sa: Ints  # of size 0 likewise
    log_union: float  # log(SAH / delta'): fixed before the data
    scale: float  # of beta and beta*: 1.0 is the paper; anything else is NOT CERTIFIED
    tie: float  # upper values closer than this tie; the first action wins
    # of a backup: 0; the formula is the paper's, and a margin for rounding is taken off at the
    # start
    margin: float


@compiled
def refresh_bernstein(estimate: Estimate, row: int, pair: int) -> None:
    """Recompute P_hat, beta/n and beta*/n of one pair from its counts (Eq. p; beta and beta* of
    the notation table).
    """
    lists, n = estimate.n_sas, estimate.n_sa[row, pair]
    estimate.n_fresh[row, pair] = estimate.played[row, pair]
    if n == 0:
        estimate.beta_n[row, pair] = math.inf
        estimate.beta_star_n[row, pair] = 0.0
        return
    if estimate.P_hat.shape[0] > 0:
        at = lists.at[row, pair]
        for j in range(at, at + lists.size[row, pair]):
            estimate.P_hat[row, lists.state[j], pair] = lists.n[j] / n
    growth = math.log(8.0 * math.e * (n + 1))
    estimate.beta_n[row, pair] = estimate.scale * (estimate.log_union + lists.S * growth) / n
    estimate.beta_star_n[row, pair] = estimate.scale * (estimate.log_union + growth) / n


@compiled
def q_bernstein(
    estimate: Estimate,
    row: int,
    h: int,
    lo: int,
    hi: int,
    H: int,
    V_up: Floats,
    V_low: Floats,
    scratch: Floats,
    wanted: int,
    pi: Floats,
) -> None:
    """Write Q_up into scratch[0] and Q_low into scratch[1] for the pairs lo <= i < hi of one step
    (Eq. ucbQ, lcbQ).

    An empty V_up stands for V_{H+1} = 0: nothing to sum. In rows that steps share, whose counts
    hold no next state of the last step, Q_H = r then needs none: a pair that is seen at the last
    step alone would otherwise stay as good as unseen for ever. Whatever is wanted, both are
    computed, because the lower bound depends on V_up; and of all pairs, because to look which ones
    `pi` plays would take longer.
    """
    m = hi - lo
    Q_up, Q_low = scratch[0], scratch[1]
    mean_up, mean_low, var = scratch[2], scratch[3], scratch[4]
    reward = estimate.r[h % estimate.r.shape[0], lo:hi]
    b = estimate.beta_n[row, lo:hi]
    b_star = estimate.beta_star_n[row, lo:hi]
    if V_up.shape[0] == 0:
        shared = estimate.n_sa.shape[0] < H
        for i in range(m):
            upper = reward[i] + (0.0 if shared else 14.0 * H * H * b[i])
            lower = reward[i] - (0.0 if shared else 22.0 * H * H * b[i])
            Q_up[i] = upper if upper < H else float(H)
            Q_low[i] = lower if lower > 0.0 else 0.0
        return
    if estimate.P_hat.shape[0] > 0:
        moments_of_copy(estimate.P_hat[row], lo, hi, V_up, V_low, scratch)
    else:
        moments_of_lists(estimate, row, lo, hi, V_up, V_low, scratch)
    for i in range(m):
        deviation = 3.0 * math.sqrt(var[i] * b_star[i])
        spread = (1.0 / H) * (mean_up[i] - mean_low[i])
        upper = reward[i] + deviation + 14.0 * H * H * b[i] + spread + mean_up[i]
        lower = reward[i] - deviation - 22.0 * H * H * b[i] - 2.0 * spread + mean_low[i]
        Q_up[i] = upper if upper < H else float(H)
        Q_low[i] = lower if lower > 0.0 else 0.0


@compiled
def moments_of_copy(
    P_hat: Floats, lo: int, hi: int, V_up: Floats, V_low: Floats, scratch: Floats
) -> None:
    """Write the means of V_up and of V_low, and the variance of V_up, into scratch[2], [3], [4]:
    of several pairs at a time.
    """
    m = hi - lo
    mean_up, mean_low, var = scratch[2], scratch[3], scratch[4]
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


@compiled
def moments_of_lists(
    estimate: Estimate, row: int, lo: int, hi: int, V_up: Floats, V_low: Floats, scratch: Floats
) -> None:
    """The same sums in the same order, without what is zero: pair by pair."""
    lists = estimate.n_sas
    for i in range(hi - lo):
        n, at = estimate.n_sa[row, lo + i], lists.at[row, lo + i]
        end = at + lists.size[row, lo + i]
        mean_up, mean_low, var = 0.0, 0.0, 0.0
        for j in range(at, end):
            p = lists.n[j] / n
            mean_up += p * V_up[lists.state[j]]
            mean_low += p * V_low[lists.state[j]]
        for j in range(at, end):
            up = V_up[lists.state[j]]
            var += lists.n[j] / n * (up - mean_up) * (up - mean_up)
        scratch[2, i], scratch[3, i], scratch[4, i] = mean_up, mean_low, var


def estimate_from(
    lists: CountLists, played: Ints, r: Floats, log_union: float, scale: float
) -> Estimate:
    """The estimate for these counts, and `played` (rows, S, A), whose memory it shares;
    `refresh_all` fills it.
    """
    rows, pairs = lists.at.shape
    copied = rows * lists.S * pairs <= max(MOST_COPIED * int(lists.size.sum()), IN_CACHE)
    return Estimate(
        n_sas=lists,
        n_sa=lists.visits,
        played=played.reshape(rows, pairs),
        n_fresh=np.full((rows, pairs), -1, dtype=lists.n.dtype),
        P_hat=np.zeros((rows, lists.S, pairs) if copied else (0, 0, 0)),
        beta_n=np.zeros((rows, pairs)),
        beta_star_n=np.zeros((rows, pairs)),
        r=np.array(r),
        x_sa=np.zeros((0, 0), dtype=np.int64),
        z_sa=np.zeros((0, 0), dtype=np.int64),
        log_union=log_union,
        scale=scale,
        tie=0.0,
        margin=0.0,
    )
