"""KL certificates, written to be read: the same promise as the paper's bounds, from far fewer
episodes.

One event covers everything. Fix a pair; the next states drawn at its successive visits are i.i.d.
from p = P_h(.|s,a), whatever the agent does. The Dirichlet mixture of likelihoods over the
likelihood of p,

    M_n = E_{q ~ Dirichlet(1/2)}[ prod_i q_i^{n_i} ] / prod_i p_i^{n_i},

is a non-negative supermartingale that starts at 1, so by Ville's inequality it stays below
1/delta_0 for ALL n at once with probability 1 - delta_0. Taking logarithms, that is n KL(P_hat, p)
<= n eps with eps as in `radius`. The event is about p alone: it holds for every policy, also one
chosen from the data, and no union over policies is needed. Any other mixture that is fixed in
advance does the same: by default `supports_radius` averages over unknown supports.
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import AnyArray, Bools, Floats, Ints
from surefoot.base.validation import REWARD_UNITS, freeze, require_bool, require_number
from surefoot.bounds import bets
from surefoot.bounds.model import Model, Values, evaluate, margin
from surefoot.bounds.undeclared import undeclared_ball
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.count_lists import CountLists
from surefoot.model.policy import greedy
from surefoot.model.problem import Problem

TIE = 1e-12  # upper values closer than this count as equal: they are found by a search
SEARCH = 200  # golden-section steps: the bracket shrinks by 0.618 each time

_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


@dataclass(frozen=True, kw_only=True)
class KL:
    """Bounds by the worst and the best transition row in a KL ball around the estimate: valid for
    ANY Markov policy.

    On the event above (probability at least 1 - delta, for all episodes and pairs at once) V_low <=
    V^pi <= V* <= V_up. What is proved is safety; the paper's regret theorem is about its own
    bounds. The mixture of likelihoods is one over unknown supports, which adapts to the number of
    successors that each pair has. `full_support` is for a mask that is tight: every next state that
    it allows does occur. The mixture is then Dirichlet(1/2) over these states; it must be chosen
    before the data are seen, and costs much where the mask is wide (docs/certificates.md). Any
    `scale` of the radius other than 1 is NOT CERTIFIED. An unknown reward is bounded by a coin and
    by bets (bounds/bets.py).
    """

    scale: float = 1.0
    full_support: bool = False

    def __post_init__(self) -> None:
        scale = require_number("scale", self.scale, "a finite number >= 0; 1 is the proved radius")
        if not 0.0 <= scale < math.inf:
            raise InvalidSetting(
                f"scale is {self.scale}, expected a finite number >= 0; 1 is the proved radius."
            )
        freeze(self, scale=scale, full_support=require_bool("full_support", self.full_support))

    @property
    def certified(self) -> bool:
        """Are these bounds the proved ones? A subclass may compute anything, so it is not
        certified.
        """
        return type(self) is KL and self.scale == 1.0

    def share_of(self, delta: float, parts: int) -> float:
        """Return all of delta: one event covers every candidate and every episode."""
        return delta

    def events(self, problem: Problem, pooled: bool) -> int:
        """Return how many balls share delta: none for a pair with one possible next state, one for
        an unknown reward.

        Without a mask and with known rewards that is SAH, or SA when counts are pooled over steps.
        """
        steps = 1 if pooled else problem.H
        pairs = steps * problem.S * problem.A
        if problem.support_rows is not None:
            moving = problem.support_rows.sum(axis=-1) > 1
            pairs = int(moving.sum()) * (steps if len(moving) == 1 else 1)
        if problem.mask_lists is not None:
            sizes = np.diff(problem.mask_lists.first)
            pairs = int((sizes != 1).sum()) * (steps if len(sizes) == problem.S * problem.A else 1)
        rewards = 0
        if problem.unknown_rows is not None:
            rewards = int(problem.unknown_rows.sum()) * (
                steps if len(problem.unknown_rows) == 1 else 1
            )
        return max(1, pairs + rewards + (problem.start is None))

    def require(self, problem: Problem) -> None:
        """Refuse nothing: the event is about the dynamics alone, and rewards and start have
        balls of their own.
        """

    def radius(self, model: Model) -> Floats:
        """Return the radius eps (H, S, A) of all pairs."""
        return np.stack([self.radius_at(model, h) for h in range(model.H)])

    def radius_at(self, model: Model, h: int) -> Floats:
        """Return eps (S, A) = (log(1/delta_0) + sum_i n_i log p_hat_i - log m(n_1..n_S)) / n,
        infinite where n = 0.

        delta_0 = delta / (SAH), or delta / (SA) when counts are pooled over steps: see `events`. S
        is the number of possible next states.
        """
        return self.radius_of(model.n_sas[h], model.support[h], self.log_union(model))

    def radius_of(self, n_i: AnyArray, support: Bools, log_union: float) -> Floats:
        """Return the radius of counts n_i (.., S)."""
        mixture = dirichlet_radius if self.full_support else supports_radius
        return self.scale * mixture(n_i, support, log_union)

    def log_union(self, model: Model) -> float:
        """Return log(1/delta_0)."""
        return math.log(self.events(model.problem, model.pooled) / model.delta_prime)

    def rewards_at(self, model: Model, h: int) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of the mean rewards (S, A) of step h; both are r where it
        is known.

        An unknown reward x in [0, 1] is a coin with fractional counts (n - sum x, sum x) for the
        outcomes (0, 1): its likelihood ratio is convex in x, so the mixture is a supermartingale.
        It is one part of an average of supermartingales: see bounds/bets.py.
        """
        p = model.problem
        r_low, r_up = p.r_rescaled[h].copy(), p.r_rescaled[h].copy()
        if p.unknown_rows is None:
            return r_low, r_up
        for place in np.argwhere(p.unknown_at(h)):
            s, a = (int(i) for i in place)
            seen = model.played[h, s, a], model.x_sa[h, s, a], model.z_sa[h, s, a]
            low, up = self.mean_bounds(*seen, self.log_union(model))
            r_low[s, a], r_up[s, a] = low, min(1.0, up + 1.0 / REWARD_UNITS)
        return r_low, r_up

    def mean_bounds(self, n: float, x: float, z: float, log_union: float) -> tuple[float, float]:
        """Return bounds of the mean of n unknown rewards with sum x; z is the sum of x (1 - x)
        over the rewards.
        """
        if n == 0:
            return 0.0, 1.0
        mean, wide = x / n, math.sqrt(self.scale)
        low, up = bets.mean_bounds(n, x, z, log_union)
        return max(mean - wide * (mean - low), 0.0), min(mean + wide * (up - mean), 1.0)

    def q_bounds(self, model: Model, h: int, V_up: Floats, V_low: Floats) -> tuple[Floats, Floats]:
        """Return Q_up = r + max over the ball of p V_up, and Q_low = r + min over the ball of p
        V_low (S, A).

        A reward that depends on the next state belongs inside: V(s') becomes r(s,a,s') + V(s').
        """
        p = model.problem
        eps, P_hat = self.radius_at(model, h), model.P_hat[h]
        r_low, r_up = self.rewards_at(model, h)
        Q_up, Q_low = r_up.copy(), r_low.copy()
        for s, a in np.ndindex(*Q_up.shape):
            at = model.support[h, s, a]
            after = 0.0
            if p.pays_by_next:
                after = p.r_next_at(h)[s, a][at]
            Q_up[s, a] += -worst_mean(P_hat[s, a][at], float(eps[s, a]), -(after + V_up[at]))
            Q_low[s, a] += worst_mean(P_hat[s, a][at], float(eps[s, a]), after + V_low[at])
        return Q_up, Q_low

    def at_start(self, model: Model, V_low: Floats, V_up: Floats) -> tuple[float, float]:
        """Return the bounds at the start: at s1, averaged over known weights, or over a ball of
        its own.
        """
        p = model.problem
        if p.one_start:
            return float(V_low[p.s1]), float(V_up[p.s1])
        if p.start is not None:
            return float(p.start @ V_low), float(p.start @ V_up)
        eps = float(
            self.radius_of(model.n_start, np.ones(p.S, dtype=np.bool_), self.log_union(model))
        )
        frequencies = model.n_start / max(int(model.n_start.sum()), 1)
        return worst_mean(frequencies, eps, V_low), -worst_mean(frequencies, eps, -V_up)

    def lower_at_start(
        self, problem: Problem, n_start: Ints, V: Floats, log_union: float, undeclared: bool = False
    ) -> float:
        """Return a lower bound, rounded to safety, of the value of V (S,) at the start of a log's
        problem: the value there, the known average, or the worst mean over the ball around the
        first states seen. `undeclared`: the states are those of the log, and the first visit of
        each is taken off.
        """
        row_sum_error = 0.0 if problem.start is None else abs(float(problem.start.sum()) - 1.0)
        rounding = margin(problem.H, row_sum_error)
        start = kernels.start_from(
            problem.start, n_start.copy(), log_union, self.full_support, self.scale, rounding, 0.0
        )
        kernels.refresh_start(start)
        if undeclared and problem.unseen_state is not None and problem.start is None:
            eps, start.weights[:] = undeclared_ball(n_start, problem.unseen_state, log_union)
            start.eps[0] = self.scale * eps
        return float(max(kernels.start_bound(start, V, 1.0), 0.0))

    def optimistic(self, model: Model) -> Values:
        """Return pi_bar = argmax_a Q_up, the first action within 1e-12 of the best, and its
        bounds; V_up bounds V*.
        """
        H, S = model.H, model.problem.S
        chosen = np.zeros((H, S, model.problem.A))
        V_up, V_low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
        for h in reversed(range(H)):
            Q_up, Q_low = self.q_bounds(model, h, V_up[h + 1], V_low[h + 1])
            a = first_best(Q_up)
            chosen[h][np.arange(S), a] = 1.0
            V_up[h], V_low[h] = Q_up.max(axis=1), Q_low[np.arange(S), a]
        return Values(greedy(chosen), V_up, V_low)

    def evaluate(self, model: Model, pi: Floats) -> Values:
        """Return V_up = <pi, Q_up> and V_low = <pi, Q_low>: V_low <= V^pi <= V_up for any Markov
        policy.
        """
        return evaluate(self.q_bounds, model, pi)

    def lower(self, model: Model, pi: Floats) -> float:
        """Return the certified lower value of pi at the start."""
        values = self.evaluate(model, pi)
        return self.at_start(model, values.V_low[0], values.V_up[0])[0]

    def evidence(
        self,
        problem: Problem,
        counts: Counts,
        delta_prime: float,
        rounding: float,
        uppers: bool = False,
    ) -> "kernels.Evidence":
        """Return what the kernels read. It shares the counts' arrays."""
        rewards = kernels.RewardArrays(
            problem.r_rows,
            problem.r_next_rows,
            problem.unknown_rows,
            counts.x_sa,
            counts.z_sa,
        )
        level = kernels.BallSettings(
            log_union=math.log(self.events(problem, counts.pooled) / delta_prime),
            full_support=self.full_support,
            scale=self.scale,
            tie=TIE,
            margin=rounding,
            uppers=uppers,
        )
        lists = counts.transitions.for_kernels
        if isinstance(lists, CountLists):
            mask, paid = problem.as_mask, problem.as_paid
            return kernels.sparse_balls_from(
                lists, counts.played, problem.H, rewards, mask, paid, level
            )
        return kernels.balls_from(
            counts.n_sas,
            counts.played,
            problem.H,
            rewards=rewards,
            support=problem.support_rows,
            log_union=level.log_union,
            full_support=level.full_support,
            scale=level.scale,
            tie=level.tie,
            margin=level.margin,
            uppers=level.uppers,
        )


def mean_bounds(n: float, x: float, log_union: float, scale: float) -> tuple[float, float]:
    """Return bounds, for all n at once, of the mean of n observations in [0, 1] with sum x: the
    ball of a coin.
    """
    if n == 0:
        return 0.0, 1.0
    heads = min(max(float(x), 0.0), float(n))
    outcomes = np.array([n - heads, heads])
    eps = scale * float(dirichlet_radius(outcomes, np.ones(2, dtype=np.bool_), log_union))
    return worst_mean(outcomes / n, eps, np.array([0.0, 1.0])), -worst_mean(
        outcomes / n, eps, np.array([0.0, -1.0])
    )


def dirichlet_radius(n_i: AnyArray, support: Bools, log_union: float) -> Floats:
    """eps = (log(1/delta_0) + sum_i n_i log p_hat_i - log m(n_1..n_S)) / n over the last axis,
    infinite where n = 0;

        log m = lgamma(S/2) - lgamma(n + S/2) + sum_i [ lgamma(n_i + 1/2) - lgamma(1/2) ].

    S is the number of possible outcomes. Counts need not be whole.
    """
    n, S = n_i.sum(axis=-1), support.sum(axis=-1)
    ratios = np.where(support, _lgamma(n_i + 0.5) - math.lgamma(0.5), 0.0)
    log_m = _lgamma(S / 2) - _lgamma(n + S / 2) + ratios.sum(axis=-1)
    return mixture_radius(n_i, log_m, log_union)


def supports_radius(n_i: AnyArray, support: Bools, log_union: float) -> Floats:
    """The same eps with a mixture over unknown supports: k of the S possible outcomes with weight
    w_k, each set of k outcomes with the same weight, and Dirichlet(1/2) within. With d distinct
    outcomes seen,

        m = sum_{k=d}^{S} w_k C(S-d, k-d) / C(S, k) DirMult_k,
        w_k = 1/(k(k+1)) for k < S, w_S = 1/S,
        DirMult_k = Gamma(k/2) / Gamma(n + k/2) prod_i Gamma(n_i + 1/2) / Gamma(1/2).

    The weights add up to 1. Of the C(S, k) sets, C(S-d, k-d) hold all that was seen; in the others
    its likelihood is 0.
    """
    n, d, S = (x.sum(axis=-1)[..., None] for x in (n_i, n_i > 0, support))
    k = np.arange(1, n_i.shape[-1] + 1)
    holds = (d <= k) & (k <= S)
    more, fewer = np.where(holds, k - d, 0), np.where(holds, S - d, 0)
    log_w = -np.log(np.where(k < S, k * (k + 1.0), S))
    log_sets = _lgamma(k + 1.0) - _lgamma(more + 1.0) + _lgamma(fewer + 1.0) - _lgamma(S + 1.0)
    log_T = np.where(holds, log_w + log_sets + _lgamma(k / 2) - _lgamma(n + k / 2), -np.inf)
    log_m = np.logaddexp.reduce(log_T, axis=-1) + (_lgamma(n_i + 0.5) - math.lgamma(0.5)).sum(
        axis=-1
    )
    return mixture_radius(n_i, log_m, log_union)


def mixture_radius(n_i: AnyArray, log_m: Floats, log_union: float) -> Floats:
    """eps = (log(1/delta_0) + sum_i n_i log p_hat_i - log m) / n over the last axis, infinite
    where n = 0.
    """
    n = n_i.sum(axis=-1)
    p_hat = n_i / np.where(n > 0, n, 1)[..., None]
    log_p = (n_i * np.log(np.where(n_i > 0, p_hat, 1.0))).sum(axis=-1)
    return np.where(n > 0, (log_union + log_p - log_m) / np.where(n > 0, n, 1), np.inf)


def worst_mean(p_hat: Floats, eps: float, V: Floats) -> float:
    """min of sum_i p_i V_i over KL(p_hat, p) <= eps, by its dual: min V + max over t > 0 of

        t expm1(-eps + sum_i p_hat_i log1p(d_i / t)),
        d_i = V_i - min V,  t <= (max V - min V) / expm1(eps).

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
    """Return for each state the first action that no later one exceeds by more than 1e-12, in
    the kernel's order.
    """
    best = np.zeros(len(Q_up), dtype=np.int64)
    for a in range(1, Q_up.shape[1]):
        better = Q_up[:, a] > Q_up[np.arange(len(Q_up)), best] + TIE
        best[better] = a
    return best
