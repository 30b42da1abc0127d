"""Both families of bounds over lists of next states: for worlds with many states, of which few
follow any pair.

They compute what kl.py and bernstein.py do, in the same order, without what is zero. A next state
that was never seen matters for the worst case only: without a mask it is the one with the lowest
value (or highest), the same for all pairs of a step, which `look_ahead` finds once.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.kernels.jit import compiled
from surefoot.kernels.kl import (
    BEST,
    HIGH,
    HIGH_UP,
    LOW,
    LOW_UP,
    LOWER,
    RewardArrays,
    add,
    best_action,
    mixture_radius,
    plays,
    refresh_reward,
    reward_fields,
    worst_mean_at_once,
)
from surefoot.model.count_lists import CountLists
from surefoot.model.successors import PaidLists, Successors


class SparseBalls(NamedTuple):
    """The balls of all pairs, as `Balls`, over lists of the next states that were seen."""

    n_sas: CountLists
    n_sa: Ints  # (rows, S*A)
    played: Ints  # (rows, S*A)
    n_fresh: Ints  # (rows, S*A)
    eps: Floats  # (rows, S*A)
    # the possible next states; of size 0 where all states are, as they are after an empty list
    mask: Successors
    r_low: Floats  # (H or 1, S*A)
    r_up: Floats  # (H or 1, S*A)
    paid: PaidLists  # rewards that depend on the next state; of size 0 where none do
    x_sa: Ints  # (rows, S*A); of size 0 where all rewards are known
    z_sa: Ints
    unknown: Bools
    gathered: Floats  # (S or 4,) scratch: the values of one pair's next states
    p_hat: Floats  # (S or 4,) scratch: their frequencies
    places: Ints  # (S,) 0, 1, 2, ...
    # (4,): the lowest and the highest of all lower values of the next step, and of all upper ones
    ahead: Floats
    log_union: float
    full_support: bool
    scale: float
    tie: float
    margin: float
    uppers: bool


class BallSettings(NamedTuple):
    """What is fixed before the data, as in `Balls`."""

    log_union: float
    full_support: bool
    scale: float
    tie: float
    margin: float
    uppers: bool


class SparseEstimate(NamedTuple):
    """What the paper's bounds read of the data, as `Estimate`, over lists."""

    n_sas: CountLists
    n_sa: Ints  # (rows, S*A)
    played: Ints  # (rows, S*A)
    n_fresh: Ints  # (rows, S*A)
    beta_n: Floats  # (rows, S*A)
    beta_star_n: Floats  # (rows, S*A)
    r: Floats  # (H or 1, S*A)
    x_sa: Ints  # of size 0
    z_sa: Ints  # of size 0
    log_union: float
    scale: float
    tie: float
    margin: float


@compiled
def refresh_sparse_balls(balls: SparseBalls, row: int, pair: int) -> None:
    """Bring the radius and the rewards of one pair up to date, as `refresh_kl` does."""
    n = balls.n_sa[row, pair]
    balls.n_fresh[row, pair] = balls.played[row, pair]
    refresh_reward(balls, row, pair)
    if n == 0:
        balls.eps[row, pair] = math.inf
        return
    lists = balls.n_sas
    at, size = lists.at[row, pair], lists.size[row, pair]
    m = lists.S
    if masked(balls, row, pair):
        i = mask_list(balls, row, pair)
        m = balls.mask.first[i + 1] - balls.mask.first[i]
    balls.eps[row, pair] = balls.scale * mixture_radius(
        lists.n[at : at + size],
        balls.places[:size],
        m,
        n,
        balls.full_support,
        balls.log_union,
        balls.p_hat,
    )


@compiled
def masked(balls: SparseBalls, row: int, pair: int) -> bool:
    """Are the possible next states of a pair listed? Where its list is empty, every state is
    possible.
    """
    if balls.mask.first.shape[0] == 0:
        return False
    i = mask_list(balls, row, pair)
    return bool(balls.mask.first[i + 1] > balls.mask.first[i])


@compiled
def mask_list(balls: SparseBalls, row: int, pair: int) -> int:
    """The number of a pair's list in the mask, which may be the same at every step."""
    pairs = balls.n_sa.shape[1]
    return int((row * pairs + pair) % (balls.mask.first.shape[0] - 1))


@compiled
def q_sparse_balls(
    balls: SparseBalls,
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
    """Write Q_up and Q_low of the pairs lo <= i < hi, as `q_kl` does, after `look_ahead` at the
    same values.

    `pi` (S, A) is the policy of which they are wanted: other actions' are left 0. With no rows: all
    are.
    """
    Q_up, Q_low = scratch[0], scratch[1]
    ahead, after = V_up.shape[0] > 0, balls.paid.first.shape[0] > 0
    r_low, r_up = balls.r_low[h % balls.r_low.shape[0]], balls.r_up[h % balls.r_up.shape[0]]
    both = wanted != LOWER or balls.uppers
    if not (ahead or after):
        for i in range(hi - lo):
            Q_up[i] = r_up[lo + i]
            Q_low[i] = r_low[lo + i]
        return
    A = max(pi.shape[1], 1)
    best = 0
    for i in range(hi - lo):
        Q_up[i] = 0.0
        if both and plays(pi, lo + i):
            pair = lo + i
            Q_up[i] = add(
                r_up[pair], -worst_of_pair(balls, row, h, pair, V_up, -1.0, HIGH_UP, LOW_UP), -1.0
            )
    for i in range(hi - lo):
        Q_low[i] = 0.0
        if wanted == BEST and i % A == 0:
            best = i + best_action(Q_up[i : i + A], balls.tie)
        if plays(pi, lo + i) and (wanted != BEST or i == best):
            pair = lo + i
            Q_low[i] = add(
                r_low[pair], worst_of_pair(balls, row, h, pair, V_low, 1.0, LOW, HIGH), 1.0
            )


@compiled
def worst_of_pair(
    balls: SparseBalls, row: int, h: int, pair: int, V: Floats, sign: float, worst: int, best: int
) -> float:
    """The worst mean of sign V over the ball of one pair. `worst` and `best` are places in
    `ahead`.
    """
    lists, eps, n = balls.n_sas, balls.eps[row, pair], balls.n_sa[row, pair]
    W, p_hat = balls.gathered, balls.p_hat
    at, size = lists.at[row, pair], lists.size[row, pair]
    paid = balls.paid
    after = paid.first.shape[0] > 0
    if not masked(balls, row, pair):
        low, high = sign * balls.ahead[worst], sign * balls.ahead[best]
        if after:  # any next state may follow: one that is listed there, or any other
            i = (h * balls.n_sa.shape[1] + pair) % (paid.first.shape[0] - 1)
            low, high = math.inf, -math.inf
            if paid.first[i + 1] - paid.first[i] < lists.S:
                low = sign * add(paid.elsewhere, balls.ahead[worst], sign)
                high = sign * add(paid.elsewhere, balls.ahead[best], -sign)
            for k in range(paid.first[i], paid.first[i + 1]):
                v = sign * add(paid.paid[k], V[paid.state[k]] if V.shape[0] > 0 else 0.0, sign)
                low, high = min(low, v), max(high, v)
        if n == 0:
            return float(low)
        for j in range(size):
            W[j] = value_after(paid, h, pair, balls.n_sa.shape[1], lists.state[at + j], V, sign)
            p_hat[j] = lists.n[at + j] / n
        return worst_mean_at_once(p_hat, W, size, sign, eps, balls.margin, low, high)
    i = mask_list(balls, row, pair)
    first, m = balls.mask.first[i], balls.mask.first[i + 1] - balls.mask.first[i]
    low, high = math.inf, -math.inf
    seen = 0
    for j in range(m):
        s_next = balls.mask.state[first + j]
        W[j] = value_after(paid, h, pair, balls.n_sa.shape[1], s_next, V, sign)
        low, high = min(low, sign * W[j]), max(high, sign * W[j])
        p_hat[j] = 0.0
        if seen < size and lists.state[at + seen] == s_next:
            p_hat[j] = lists.n[at + seen] / n
            seen += 1
    return worst_mean_at_once(p_hat, W, m, sign, eps, balls.margin, low, high)


@compiled
def value_after(
    paid: PaidLists, h: int, pair: int, pairs: int, s_next: int, V: Floats, sign: float
) -> float:
    """r(s,a,s') + V(s'), rounded to safety; V(s') where rewards do not depend on the next state."""
    v = V[s_next] if V.shape[0] > 0 else 0.0
    if paid.first.shape[0] == 0:
        return float(v)
    i = (h * pairs + pair) % (paid.first.shape[0] - 1)
    left, right = paid.first[i], paid.first[i + 1]
    while left < right:
        middle = (left + right) // 2
        if paid.state[middle] < s_next:
            left = middle + 1
        else:
            right = middle
    listed = left < paid.first[i + 1] and paid.state[left] == s_next
    return add(paid.paid[left] if listed else paid.elsewhere, v, sign)


@compiled
def refresh_sparse_estimate(estimate: SparseEstimate, row: int, pair: int) -> None:
    """Recompute beta/n and beta*/n of one pair, as `refresh_bernstein` does."""
    n = estimate.n_sa[row, pair]
    estimate.n_fresh[row, pair] = estimate.played[row, pair]
    if n == 0:
        estimate.beta_n[row, pair] = math.inf
        estimate.beta_star_n[row, pair] = 0.0
        return
    growth = math.log(8.0 * math.e * (n + 1))
    estimate.beta_n[row, pair] = (
        estimate.scale * (estimate.log_union + estimate.n_sas.S * growth) / n
    )
    estimate.beta_star_n[row, pair] = estimate.scale * (estimate.log_union + growth) / n


@compiled
def q_sparse_estimate(
    estimate: SparseEstimate,
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
    """Write Q_up and Q_low of the pairs lo <= i < hi (Eq. ucbQ, lcbQ), as `q_bernstein` does.
    `pi` as above.
    """
    Q_up, Q_low = scratch[0], scratch[1]
    lists = estimate.n_sas
    A = max(pi.shape[1], 1)
    for i in range(hi - lo):
        pair = lo + i
        n = estimate.n_sa[row, pair]
        Q_up[i], Q_low[i] = float(H), 0.0  # what is known without data
        if n == 0 or (pi.shape[0] > 0 and pi[pair // A, pair % A] == 0.0):
            continue
        reward, b = estimate.r[h % estimate.r.shape[0], pair], estimate.beta_n[row, pair]
        mean_up, mean_low, var = 0.0, 0.0, 0.0
        at, size = lists.at[row, pair], lists.size[row, pair]
        if V_up.shape[0] == 0:
            upper = reward + 14.0 * H * H * b
            lower = reward - 22.0 * H * H * b
        else:
            for j in range(at, at + size):
                mean_up += lists.n[j] / n * V_up[lists.state[j]]
                mean_low += lists.n[j] / n * V_low[lists.state[j]]
            for j in range(at, at + size):
                up = V_up[lists.state[j]]
                var += lists.n[j] / n * (up - mean_up) * (up - mean_up)
            deviation = 3.0 * math.sqrt(var * estimate.beta_star_n[row, pair])
            spread = (1.0 / H) * (mean_up - mean_low)
            upper = reward + deviation + 14.0 * H * H * b + spread + mean_up
            lower = reward - deviation - 22.0 * H * H * b - 2.0 * spread + mean_low
        Q_up[i] = upper if upper < H else float(H)
        Q_low[i] = lower if lower > 0.0 else 0.0


def sparse_balls_from(
    lists: CountLists,
    played: Ints,
    H: int,
    rewards: RewardArrays,
    mask: Successors | None,
    paid: PaidLists | None,
    settings: BallSettings,
) -> SparseBalls:
    """The balls for these counts, whose memory they share; `refresh_all` fills them."""
    rows, pairs = lists.at.shape
    none = np.zeros(0, dtype=np.int64)
    return SparseBalls(
        n_sas=lists,
        n_sa=np.zeros((rows, pairs), dtype=lists.n.dtype),
        played=played.reshape(rows, pairs),
        n_fresh=np.full((rows, pairs), -1, dtype=lists.n.dtype),
        eps=np.zeros((rows, pairs)),
        mask=Successors(none, none) if mask is None else mask,
        paid=PaidLists(none, none, np.zeros(0), 0.0) if paid is None else paid,
        gathered=np.zeros(max(lists.S, 4)),
        p_hat=np.zeros(max(lists.S, 4)),
        places=np.arange(lists.S),
        ahead=np.zeros(4),
        **settings._asdict(),
        **reward_fields(rewards, H, rows, pairs),
    )


def sparse_estimate_from(
    lists: CountLists, played: Ints, r: Floats, log_union: float, scale: float
) -> SparseEstimate:
    """The estimate for these counts, whose memory it shares; `refresh_all` fills it."""
    shape, none = lists.at.shape, np.zeros((0, 0), dtype=np.int64)
    return SparseEstimate(
        n_sas=lists,
        n_sa=np.zeros(shape, dtype=lists.n.dtype),
        played=played.reshape(shape),
        n_fresh=np.full(shape, -1, dtype=lists.n.dtype),
        beta_n=np.zeros(shape),
        beta_star_n=np.zeros(shape),
        r=np.array(r),
        x_sa=none,
        z_sa=none.copy(),
        log_union=log_union,
        scale=scale,
        tie=0.0,
        margin=0.0,
    )
