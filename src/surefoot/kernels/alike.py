"""Are the steps that share counts alike? The evidence against it (what it rests on:
bounds/alike.py).

Numbers of visits and outcomes are floats: sums of rewards in [0, 1] need not be whole. Logarithms
are good to about 1e-9 after 10^7 visits, which is far less than a check needs.
"""

import math

import numpy as np

from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.kernels.jit import compiled

LOG_PI = math.log(math.pi)
# of whole numbers below, the logarithms of Gamma are kept: they are asked for most often
SMALL = 1024
GAMMA_HALF = np.array([math.lgamma(k + 0.5) for k in range(SMALL)])
GAMMA_ONE = np.array([math.lgamma(k + 1.0) for k in range(SMALL)])


@compiled
def log_gamma_half(x: float) -> float:
    """log Gamma(x + 1/2)."""
    return float(GAMMA_HALF[int(x)]) if x < SMALL and x == int(x) else math.lgamma(x + 0.5)


@compiled
def log_kt(k: float, n: float) -> float:
    """log KT(k of n) = log B(k + 1/2, n - k + 1/2) / B(1/2, 1/2)."""
    total = GAMMA_ONE[int(n)] if n < SMALL else math.lgamma(n + 1.0)
    return log_gamma_half(k) + log_gamma_half(n - k) - float(total) - LOG_PI


@compiled
def log_largest_likelihood(k: float, n: float) -> float:
    """log p^k (1-p)^(n-k) at p = k/n, with 0^0 = 1."""
    hits = k * math.log(k / n) if k > 0.0 else 0.0
    misses = (n - k) * math.log((n - k) / n) if n - k > 0.0 else 0.0
    return hits + misses


@compiled
def log_against(k: float, n: float, all_k: float, all_n: float) -> float:
    """log KT(group 1) KT(group 2) / [p^n_i (1-p)^(n - n_i)], of k of n in group 1, and all_k of
    all_n in both.
    """
    return log_kt(k, n) + log_kt(all_k - k, all_n - n) - log_largest_likelihood(all_k, all_n)


@compiled
def log_mean_over_splits(k: Floats, n: Floats) -> float:
    """log of the mean over splits m, for the outcomes k of n at each step. The splits: the first c
    steps against the others, and each step against the others.
    """
    T = k.shape[0]
    all_k, all_n = 0.0, 0.0
    for h in range(T):
        all_k += k[h]
        all_n += n[h]
    most, total = -math.inf, 0.0
    early_k, early_n = 0.0, 0.0
    for h in range(T):
        early_k += k[h]
        early_n += n[h]
        for split in range(2):
            if split == 0 and h == T - 1:
                continue  # the others would be none
            one_k, one_n = (early_k, early_n) if split == 0 else (k[h], n[h])
            log_E = log_against(one_k, one_n, all_k, all_n)
            if log_E > most:
                total = total * math.exp(most - log_E) + 1.0
                most = log_E
            else:
                total += math.exp(log_E - most)
    return most + math.log(total) - math.log(2.0 * T - 1.0)


@compiled
def log_sum(x: float, y: float) -> float:
    """log(e^x + e^y)."""
    most = max(x, y)
    return most if most == -math.inf else most + math.log1p(math.exp(min(x, y) - most))


@compiled
def log_evidence(
    n_hzs: Ints, n_hz: Ints, x_hz: Floats, learnt: Bools, log_E: Floats, scratch: Floats
) -> None:
    """Write log E_z of every pair z: the mean over next states; where rewards are learnt, half of
    it is that of the rewards (the coin's). n_hzs has a step less than n_hz: no next state of the
    last step is counted.
    """
    T, Z, S = n_hzs.shape
    H = n_hz.shape[0]
    k, n = scratch[0], scratch[1]
    for z in range(Z):
        log_E[z] = 0.0
        visits = 0
        for h in range(H):
            n[h], k[h] = n_hz[h, z], x_hz[h, z]
            visits += n_hz[h, z]
        if visits == 0:
            continue
        rewards = log_mean_over_splits(k[:H], n[:H]) if learnt[z] else 0.0
        if T > 1:
            transitions, unseen = -math.inf, 0
            for i in range(S):
                seen = False
                for h in range(T):
                    k[h] = n_hzs[h, z, i]
                    seen = seen or k[h] > 0.0
                if seen:
                    transitions = log_sum(transitions, log_mean_over_splits(k[:T], n[:T]))
                else:
                    unseen += 1
            if unseen > 0:
                k[:] = 0.0
                transitions = log_sum(
                    transitions, math.log(unseen) + log_mean_over_splits(k[:T], n[:T])
                )
            log_E[z] = transitions - math.log(S)
        if learnt[z]:
            log_E[z] = log_sum(log_E[z], rewards) - math.log(2.0)


@compiled
def log_wealth(log_E: Floats) -> float:
    """log W, W = 1/2 prod_z (1 - 1/Z + E_z/Z) + 1/2 prod_z (1/2 + E_z/2)."""
    Z = log_E.shape[0]
    few, many = 0.0, 0.0
    for z in range(Z):
        if log_E[z] == 0.0:
            continue
        rest = math.log(1.0 - 1.0 / Z) if Z > 1 else -math.inf
        few += log_sum(rest, log_E[z] - math.log(Z))
        many += log_sum(0.0, log_E[z]) - math.log(2.0)
    return log_sum(few, many) - math.log(2.0)
