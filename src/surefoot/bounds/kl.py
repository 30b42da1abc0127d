"""KL certificates, readable: the same promise as the paper's bounds, from far fewer episodes.

One event covers everything. Fix a pair; the next states drawn at its successive visits are i.i.d. from p = P_h(.|s,a),
whatever the learner does. The Dirichlet mixture of likelihoods over the likelihood of p,

    M_n = E_{q ~ Dirichlet(alpha)}[ prod_i q_i^{n_i} ] / prod_i p_i^{n_i},

is a non-negative supermartingale that starts at 1, so by Ville's inequality it stays below 1/delta_0 for ALL n at once
with probability 1 - delta_0. Taking logarithms, that is n KL(P_hat, p) <= n eps with eps as in `radius`. The event
speaks of p alone: it holds for every policy, also one chosen from the data, and no union over policies is needed.
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot import kernels
from surefoot.arrays import Floats
from surefoot.bounds.model import Model, Values, evaluate
from surefoot.checks import freeze, require_number
from surefoot.counts import Counts
from surefoot.errors import InvalidSetting
from surefoot.policy import greedy
from surefoot.problem import Problem

TIE = 1e-12  # upper values closer than this are equal: they come out of a search
SEARCH = 200  # golden-section steps: the bracket shrinks by 0.618 each time

_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


@dataclass(frozen=True)
class KL:
    """Bounds by the worst and the best transition row in a KL ball around the estimate: valid for ANY Markov policy.

    On the event above (probability at least 1 - delta, for all episodes and pairs at once) V_low <= V^pi <= V* <= V_up.
    What is proved is safety; the paper's regret theorem is about its own bounds. `alpha` is the Dirichlet parameter: a
    number > 0, or "1/S", which adapts to sparse worlds; it must be chosen before the data are seen. Any `scale` of the
    radius other than 1 is NOT CERTIFIED.
    """

    alpha: float | str = 0.5
    scale: float = 1.0

    def __post_init__(self) -> None:
        meaning = 'a number > 0 such as 0.5, or "1/S"'
        if self.alpha != "1/S":
            freeze(self, alpha=require_number("alpha", self.alpha, meaning))
            if not 0.0 < float(self.alpha) < math.inf:
                raise InvalidSetting(f"alpha is {self.alpha}, expected {meaning}.")
        scale = require_number("scale", self.scale, "a finite number >= 0; 1 is the proved radius")
        if not 0.0 <= scale < math.inf:
            raise InvalidSetting(f"scale is {self.scale}, expected a finite number >= 0; 1 is the proved radius.")
        freeze(self, scale=scale)

    @property
    def certified(self) -> bool:
        """Are these bounds the proved ones? A subclass may compute anything, and is not."""
        return type(self) is KL and self.scale == 1.0

    def share_of(self, delta: float, parts: int) -> float:
        """All of delta: one event serves every candidate and every episode."""
        return delta

    def dirichlet(self, S: int) -> float:
        """alpha as a number."""
        return 1.0 / S if self.alpha == "1/S" else float(self.alpha)

    def radius(self, model: Model) -> Floats:
        """eps (H, S, A): (log(1/delta_0) + sum_i n_i log p_hat_i - log m(n_1..n_S)) / n, infinite where n = 0.

        delta_0 = delta / (SAH), or delta / (SA) when counts are pooled over steps.
        """
        p = model.problem
        delta_0 = model.delta_prime / (p.S * p.A * (1 if model.pooled else p.H))
        alpha, n, n_i = self.dirichlet(p.S), model.n_sa, model.n_sas
        log_m = (
            math.lgamma(p.S * alpha) - _lgamma(n + p.S * alpha) + (_lgamma(n_i + alpha) - math.lgamma(alpha)).sum(-1)
        )
        log_p = (n_i * np.log(np.where(n_i > 0, model.P_hat, 1.0))).sum(axis=-1)
        radius = self.scale * (math.log(1 / delta_0) + log_p - log_m)
        return np.where(n >= 1, radius / np.maximum(n, 1), np.inf)

    def q_bounds(self, model: Model, h: int, V_up: Floats, V_low: Floats) -> tuple[Floats, Floats]:
        """Q_up = r + max over the ball of p V_up, Q_low = r + min over the ball of p V_low (S, A)."""
        eps, P_hat, r = self.radius(model)[h], model.P_hat[h], model.problem.r[h]
        Q_up, Q_low = r.copy(), r.copy()
        for s, a in np.ndindex(*r.shape):
            Q_up[s, a] += -worst_mean(P_hat[s, a], eps[s, a], -V_up)
            Q_low[s, a] += worst_mean(P_hat[s, a], eps[s, a], V_low)
        return Q_up, Q_low

    def optimistic(self, model: Model) -> Values:
        """pi_bar = argmax_a Q_up, the first of those within 1e-12 of the best, and its bounds; V_up bounds V*."""
        H, S = model.H, model.problem.S
        chosen = np.zeros((H, S, model.problem.A))
        V_up, V_low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
        for h in reversed(range(H)):
            Q_up, Q_low = self.q_bounds(model, h, V_up[h + 1], V_low[h + 1])
            a = first_best(Q_up)
            chosen[h][np.arange(S), a] = 1.0
            V_up[h], V_low[h] = Q_up[np.arange(S), a], Q_low[np.arange(S), a]
        return Values(greedy(chosen), V_up, V_low)

    def evaluate(self, model: Model, pi: Floats) -> Values:
        """V_up = <pi, Q_up>, V_low = <pi, Q_low>: V_low <= V^pi <= V_up for any Markov policy."""
        return evaluate(self.q_bounds, model, pi)

    def lower(self, model: Model, pi: Floats) -> float:
        """The certified lower value of pi at the start."""
        return float(self.evaluate(model, pi).V_low[0, model.problem.s1])

    def evidence(self, problem: Problem, counts: Counts, delta_prime: float) -> "kernels.Evidence":
        """What the kernels need. It shares the counts' array."""
        steps = 1 if counts.pooled else problem.H
        log_union = math.log(problem.S * problem.A * steps / delta_prime)
        return kernels.balls_from(counts.n_sas, log_union, self.dirichlet(problem.S), self.scale, TIE)


def worst_mean(p_hat: Floats, eps: float, V: Floats) -> float:
    """min of sum_i p_i V_i over KL(p_hat, p) <= eps, by its dual: min V + max over t > 0 of

        t expm1(-eps + sum_i p_hat_i log1p(d_i / t)),     d_i = V_i - min V,  t <= (max V - min V) / expm1(eps).

    Concave in t: golden section. Any t gives a valid lower bound. n = 0 is eps = infinity: min V.
    """
    low, span = float(V.min()), float(V.max() - V.min())
    if not eps < math.inf or span <= 0.0:
        return low
    p, d = p_hat[p_hat > 0], (V - low)[p_hat > 0]

    def dual(t: float) -> float:
        return t * math.expm1(-eps + float((p * np.log1p(d / t)).sum()))

    limit = math.exp(-eps + float((p * np.log(d)).sum())) if (d > 0).all() else 0.0  # t -> 0
    left, right = 0.0, span / math.expm1(eps)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(SEARCH):
        a, b = right - ratio * (right - left), left + ratio * (right - left)
        if not 0.0 < a < b:
            break
        left, right = (a, right) if dual(a) < dual(b) else (left, b)
    return low + max(limit, dual(right), 0.0)


def first_best(Q_up: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """For each state the first action that no later one beats by more than 1e-12, as the kernel goes through them."""
    best = np.zeros(len(Q_up), dtype=np.int64)
    for a in range(1, Q_up.shape[1]):
        better = Q_up[:, a] > Q_up[np.arange(len(Q_up)), best] + TIE
        best[better] = a
    return best
