"""Formulas of the paper and of docs/certificates.md in double precision, rounded to nearest.

The twin (tests/twin) has them exactly, for few states. Here is what some tests need of many, and
what the controls of rounding and of the paper's misprint are made of.
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


def radius(n_i, full_support, log_union):
    """eps = (log(1/delta_0) + sum_i n_i log p_hat_i - log m) / n of counts (.., S) of a pair that
    was seen, of which each state may follow.

    log m = lgamma(S/2) - lgamma(n + S/2) + sum_i [ lgamma(n_i + 1/2) - lgamma(1/2) ], or, of
    unknown supports with d outcomes seen, the logarithm of

        sum_{k=d}^{S} w_k C(S-d, k-d) / C(S, k) Gamma(k/2) / Gamma(n + k/2) prod_i (as above),
        w_k = 1/(k(k+1)) for k < S, w_S = 1/S.
    """
    n_i = np.asarray(n_i, dtype=np.float64)
    S, n, d = n_i.shape[-1], n_i.sum(axis=-1), (n_i > 0).sum(axis=-1)[..., None]
    k = np.array([S]) if full_support else np.arange(1, S + 1)
    log_T = _lgamma(k / 2) - _lgamma(n[..., None] + k / 2)
    if not full_support:
        more, fewer = np.maximum(k - d, 0), S - d
        log_sets = _lgamma(k + 1.0) - _lgamma(more + 1.0) + _lgamma(fewer + 1.0) - _lgamma(S + 1.0)
        log_w = -np.log(np.where(k < S, k * (k + 1.0), S))
        log_T = np.where(d <= k, log_w + log_sets + log_T, -np.inf)
    ratios = _lgamma(n_i + 0.5) - math.lgamma(0.5)
    log_m = np.logaddexp.reduce(log_T, axis=-1) + ratios.sum(axis=-1)
    log_p = (n_i * np.log(np.where(n_i > 0, n_i / n[..., None], 1.0))).sum(axis=-1)
    return (log_union + log_p - log_m) / n


def rising(x, k):
    """Gamma(x + k) / Gamma(x)."""
    return math.prod((x + j for j in range(k)), start=Fraction(1))


def mixture(n_i, full_support):
    """m(n_1..n_S) from its definition, in rational numbers: draw the size k of the support with
    weight w_k (or take all S), then one of the sets of k outcomes, then Dirichlet(1/2) within.
    """
    S, n, half = len(n_i), sum(n_i), Fraction(1, 2)
    seen = {i for i, x in enumerate(n_i) if x > 0}
    m = Fraction(0)
    for k in [S] if full_support else range(1, S + 1):
        w = Fraction(1, k * (k + 1) if k < S else 1 if full_support else S)
        sets = sum(seen <= {*support} for support in combinations(range(S), k))
        within = math.prod(rising(half, x) for x in n_i) / rising(k * half, n)
        m += w * Fraction(sets, math.comb(S, k)) * within
    return m


def as_printed(problem, counts, delta_prime, pi, scale=1.0):
    """The value at s1 by Eq. Xd to the letter, V_low = <pi, Q_up>, in which V_up - V_low is 0: it
    bounds nothing from below.
    """
    H, S, A = problem.H, problem.S, problem.A
    n_sas = np.broadcast_to(counts.n_sas, (H, S, A, S))
    assert not counts.shared
    V = np.zeros(S)
    for h in reversed(range(H)):
        n = n_sas[h].sum(axis=-1)
        seen = np.maximum(n, 1)
        P_hat = n_sas[h] / seen[..., None]
        grows = np.log(8 * math.e * (n + 1))
        beta, beta_star = (
            scale * (math.log(S * A * H / delta_prime) + x) for x in (S * grows, grows)
        )
        ahead = P_hat @ V
        Var = (P_hat * (V - ahead[..., None]) ** 2).sum(axis=-1)
        Q_up = problem.r_rescaled[h] + 3 * np.sqrt(Var * beta_star / seen)
        Q_up += 14 * H**2 * beta / seen + ahead
        V = (pi[h] * np.where(n >= 1, np.minimum(H, Q_up), H)).sum(axis=-1)
    return V[problem.s1]
