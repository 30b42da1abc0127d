"""The twin: StepMix, EpsMix and StepNoMix once more, plainly and in exact arithmetic.

Written from the paper (Li et al. 2023) and the statement in docs/certificates.md alone; it shares
no line with src/surefoot. Every number that comes out is an enclosure: the exact value of the
formula lies between lo and hi, which are about 1e-20 apart or closer. What goes in are floats, read
as the rationals that they are; policies are read as distributions: their rows are divided by their
exact sums.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .enclosures import (
    MP,
    SMALL,
    ZERO,
    Between,
    as_fraction,
    as_mpf,
    between,
    dirichlet_mixture,
    down,
    exp,
    largest,
    log,
    log_dirichlet_mixture,
    log_supports_mixture,
    sqrt,
    supports_mixture,
    total,
)

UNITS = 2**20  # sums of rewards are counted in multiples of 1 / UNITS
Row = list[Fraction]
Policy = list[list[Row]]  # pi[h][s][a]
Values = list[Between]  # V[s]


@dataclass(frozen=True)
class Task:
    """What a learner is told and has counted. Arrays have all H steps, counts one row when
    pooled.
    """

    H: int
    S: int
    A: int
    delta: float
    pooled: bool
    n_sas: np.ndarray  # (H or 1, S, A, S)
    r: np.ndarray | None  # (H, S, A)
    r_next: np.ndarray | None = None  # (H, S, A, S) instead of r
    unknown: np.ndarray | None = None  # (H, S, A): where rewards are unknown
    # (H or 1, S, A): visits of all steps, where rewards are unknown
    played: np.ndarray | None = None
    x_sa: np.ndarray | None = None  # (H or 1, S, A)
    z_sa: np.ndarray | None = None  # (H or 1, S, A)
    support: np.ndarray | None = None  # (H, S, A, S)
    start: np.ndarray | None = None  # (S,); None: unknown
    n_start: np.ndarray | None = None  # (S,)

    def row(self, h: int) -> int:
        """Where the counts of step h are."""
        return 0 if self.pooled else h

    def is_unknown(self, h: int, s: int, a: int) -> bool:
        return self.unknown is not None and bool(self.unknown[h, s, a])

    def begins(self, s: int) -> bool:
        """May an episode start here?"""
        return self.start is None or bool(self.start[s] > 0)

    def next_states(self, h: int, s: int, a: int) -> list[int]:
        """Next states that the owner did not rule out."""
        return [i for i in range(self.S) if self.support is None or self.support[h, s, a, i]]


def exact_policy(pi: np.ndarray) -> Policy:
    """The distributions that these floats stand for: each row over its exact sum."""
    rows = [[[Fraction(float(x)) for x in row] for row in step] for step in pi]
    return [[[x / sum(row) for x in row] for row in step] for step in rows]


def splice(pi_b: Policy, pi_bar: Policy, h0: int) -> Policy:
    """pi^{h0}: pi_b for the first h0 steps, then pi_bar."""
    return [*pi_b[:h0], *pi_bar[h0:]]


def step_mixture(first: Policy, second: Policy, rho: Fraction) -> Policy:
    """(1-rho) first + rho second at every step."""
    return [
        [
            [(1 - rho) * x + rho * y for x, y in zip(*rows, strict=True)]
            for rows in zip(*steps, strict=True)
        ]
        for steps in zip(first, second, strict=True)
    ]


def mean(weights: Row, values: Sequence[Between]) -> Between:
    """sum_i w_i v_i of weights >= 0."""
    return total([v * w for w, v in zip(weights, values, strict=True) if w])


# ---- sharp certificates --------------------------------------------------------------------------


class Ball(NamedTuple):
    """Rows p over `states` with KL(p_hat, p) <= eps; all of them where eps is None."""

    states: list[int]
    p_hat: Row
    eps: Between | None


def radius(counts: Sequence[Fraction], alpha: Fraction | None, delta_0: Fraction) -> Between | None:
    """eps = ( log(1/delta_0) + sum_i n_i log p_hat_i - log m(n_1..n_S) ) / n; None without data.

    Few whole counts: a logarithm of one rational. alpha None is a mixture over unknown supports.
    """
    n = sum(counts, Fraction(0))
    if n == 0:
        return None
    if n <= SMALL and all(x.denominator == 1 for x in counts):
        likelihood = math.prod(((x / n) ** int(x) for x in counts if x), start=Fraction(1))
        whole = [int(x) for x in counts]
        m = supports_mixture(whole) if alpha is None else dirichlet_mixture(whole, alpha)
        most = log(likelihood / m / delta_0)
    else:
        likelihood = total([log(x / n) * x for x in counts if x])
        log_m = (
            log_supports_mixture(counts) if alpha is None else log_dirichlet_mixture(counts, alpha)
        )
        most = likelihood - log_m - log(delta_0)
    return (most * (1 / n)).rounded()


def ball(
    counts: Sequence[Fraction], states: list[int], alpha: Fraction | None, delta_0: Fraction
) -> Ball:
    """The ball of these counts. The prior is Dirichlet(alpha), or without alpha a mixture over
    unknown supports.
    """
    n = sum(counts, Fraction(0))
    p_hat = [x / n for x in counts] if n else [Fraction(1, len(states))] * len(states)
    return Ball(states, p_hat, radius(counts, alpha, delta_0))


def worst_mean(p_hat: Row, values: Sequence[Between], eps: Between | None) -> Between:
    """The least mean of V over the ball, enclosed.

    With d_i = V_i - min V, t >= 0 and lam = exp(-eps + sum_i p_hat_i log(d_i + t)):
    - from below: the dual value min V + lam - t, for ANY t;
    - from above: p_i = lam p_hat_i / (d_i + t) has KL(p_hat, p) = eps. If its sum is at most 1,
      what is missing may be
      given to the least V without leaving the ball, and the mean of V is min V + sum_i p_i d_i.
    Both meet where that sum is 1. Of values that are enclosures the lower ends are taken, and the
    largest width added above: the least mean grows with V, and by no more than V does.
    """
    low = [v.lo for v in values]
    least, slack = min(low), max(v.width for v in values)
    seen = [(p, x - least) for p, x in zip(p_hat, low, strict=True) if p]
    widest = max(low) - least
    # nothing seen, or only the worst: it may be all there is
    if eps is None or all(d == 0 for _, d in seen):
        return Between(least, least + slack)
    if widest < Fraction(1, 2**150):
        return Between(least, least + widest + slack)

    def tilted(t: Fraction) -> tuple[Between, Fraction]:
        """lam, and sum_i p_hat_i / (d_i + t)."""
        exponent = mean([p for p, _ in seen], [log(d + t) for _, d in seen]) - eps
        return exp(exponent), sum((p / (d + t) for p, d in seen), Fraction(0))

    if all(d for _, d in seen):  # the worst state is unseen: t = 0 is possible
        t = Fraction(0)
        lam, slope = tilted(t)
    if not all(d for _, d in seen) or lam.hi * slope > 1:
        close, nudge = stationary_point(seen, widest, eps), Fraction(1, 2**60)
        while True:
            t = close * (1 + nudge)
            lam, slope = tilted(t)
            if lam.hi * slope <= 1:
                break
            nudge *= 2**8
    above = least + lam.hi * (1 - t * slope)
    return Between(max(least, least + lam.lo - t), min(above, max(low)) + slack).rounded()


def stationary_point(
    seen: list[tuple[Fraction, Fraction]], widest: Fraction, eps: Between
) -> Fraction:
    """About the t where the tilted row sums to 1. Nothing rests on it: any t gives valid bounds.

    With t <= widest / expm1(eps), in floats first and then, from there, with 260 bits.
    """
    rows = [(float(p), float(d / widest)) for p, d in seen]
    radius = float(eps.lo)
    most = -math.log(math.expm1(radius)) if radius < 500.0 else -500.0
    u = newton(rows, radius, most, (-600.0, most), (math.exp, math.log, math.log1p), 1e-6)
    rows = [(as_mpf(p), as_mpf(d / widest)) for p, d in seen]
    functions = MP.exp, MP.log, lambda x: MP.log(1 + x)
    u = newton(rows, as_mpf(eps.lo), MP.mpf(u), (MP.mpf(-700), MP.mpf(most + 1)), functions, 1e-11)
    return widest * as_fraction(MP.exp(u))


def newton(
    rows: list[tuple],
    radius: float,
    u: float,
    ends: tuple[float, float],
    functions: tuple[Callable, ...],
    step: float,
) -> float:
    """The root u = log t of the logarithm of that sum, which with x_i = d_i / (d_i + t) is
        f = -eps + sum_i p_i log(1 + d_i / t) + log sum_i p_i (1 - x_i),
        f' = -Var_p(x) / sum_i p_i (1 - x_i) < 0,
    by Newton's steps between two ends until they are small; halving where a step would leave the
    ends.
    """
    left, right = ends
    exp, log, log1p = functions
    for _ in range(200):
        t = exp(u)
        share, rest = sum(p * d / (d + t) for p, d in rows), sum(p * t / (d + t) for p, d in rows)
        f = sum(p * log1p(d / t) for p, d in rows) - radius
        f += log1p(-share) if share < 0.5 else log(rest)
        slope = sum(p * (d / (d + t) - share) ** 2 for p, d in rows) / rest
        left, right = (u, right) if f > 0 else (left, u)
        new = u + f / slope if slope > 0 else right + 1
        new = new if left <= new <= right else (left + right) / 2
        if abs(new - u) < step:
            return new
        u = new
    return u


def best_mean(p_hat: Row, values: Sequence[Between], eps: Between | None) -> Between:
    return -worst_mean(p_hat, [-v for v in values], eps)


# ---- unknown rewards: a coin, and bets beside it

STAKES = [Fraction(x, 128) for x in (124, 96, 48, 16, 4, 1)]
# 1/8 in all; 1/8 is for the other side, 3/4 for the coin
WEIGHTS = [Fraction(x, 128) for x in (3, 3, 3, 3, 2, 2)]


def mean_ends(n: Fraction, X: Fraction, Z: Fraction, delta_0: Fraction) -> tuple[Between, Between]:
    """Both ends of the mean of n rewards x with sum X, enclosed; Z is the sum of x (1 - x)."""
    if n == 0:
        return ZERO, between(1)
    return lower_end(n, X, Z, delta_0), -lower_end(n, n - X, Z, delta_0) + 1


def lower_end(n: Fraction, X: Fraction, Z: Fraction, delta_0: Fraction) -> Between:
    """The m at which 3/4 coin + sum_j w_j W_j = 1/delta_0: it falls in m. Guessed with 260 bits,
    and then enclosed.
    """
    if X == 0:
        return ZERO
    tails, least = n - X, log_dirichlet_mixture([n - X, X], Fraction(1, 2)) + log(delta_0)

    def average(m: Fraction, end: str) -> Fraction:
        """The lower or the upper end of delta_0 times the average."""
        coin = least - log(m) * X
        parts = [exp((coin - log(1 - m) * tails if tails else coin).rounded()) * Fraction(3, 4)]
        for theta, weight in zip(STAKES, WEIGHTS, strict=True):
            c = -log(1 - theta) - theta
            u = min(1 / m, down((theta / (2 * c.lo) + 1) * X / (X - Z)))
            square = (X - Z) * u * u - 2 * X * u + n
            parts.append(exp((log(delta_0) + theta * (X * u - n) - c * square).rounded()) * weight)
        return getattr(total(parts), end)

    guess, wide = (
        Fraction(about_lower_end(float(n), float(X), float(Z), float(delta_0))),
        Fraction(1, 2**44),
    )
    while True:
        below, above = max(Fraction(0), guess - wide), min(X / n, guess + wide)
        if (below == 0 or average(below, "lo") >= 1) and (
            above == X / n or average(above, "hi") < 1
        ):
            break
        wide *= 2**8
    while above - below > Fraction(1, 2**64):
        m = Fraction(round((below + above) * 2**79), 2**80)
        if average(m, "lo") >= 1:
            below = m
        elif average(m, "hi") < 1:
            above = m
        else:
            break
    return Between(below, above)


def about_lower_end(n: float, X: float, Z: float, delta_0: float) -> float:
    """The same m in floats, by bisection. Nothing rests on it."""
    coin = (
        math.lgamma(X + 0.5)
        + math.lgamma(n - X + 0.5)
        - math.log(math.pi)
        - math.lgamma(n + 1)
        + math.log(0.75)
    )
    below, above = 0.0, X / n
    for _ in range(80):
        m = (below + above) / 2
        if not below < m < above:
            break
        logs = [coin - X * math.log(m) - (n - X) * math.log1p(-m)]
        for theta, weight in zip(map(float, STAKES), map(float, WEIGHTS), strict=True):
            c = -math.log1p(-theta) - theta
            u = min(1 / m, (theta / (2 * c) + 1) * X / (X - Z))
            logs.append(
                math.log(weight) + theta * (X * u - n) - c * ((X - Z) * u * u - 2 * X * u + n)
            )
        found = max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs))
        below, above = (m, above) if found >= -math.log(delta_0) else (below, m)
    return below


class Sharp:
    """KL certificates of one task."""

    def __init__(self, task: Task, alpha: Fraction | None) -> None:
        """Every ball has the same share of delta; by a mask a pair with one possible next state
        needs none.
        """
        self.task = task
        H, S, A = task.H, task.S, task.A
        rows = 1 if task.pooled else H
        pairs = [(h, s, a) for h in range(rows) for s in range(S) for a in range(A)]
        self.events = sum(
            task.support is None or len(task.next_states(*pair)) > 1 for pair in pairs
        )
        self.events += sum(task.is_unknown(*pair) for pair in pairs) + (task.start is None)
        self.events = max(1, self.events)
        delta_0 = Fraction(task.delta) / self.events
        self.balls, self.means = {}, {}
        for h, s, a in pairs:
            states = task.next_states(h, s, a)
            counts = [Fraction(int(task.n_sas[h, s, a, i])) for i in states]
            self.balls[h, s, a] = ball(counts, states, alpha, delta_0)
            if task.is_unknown(h, s, a):
                X, Z = (Fraction(int(sums[h, s, a]), UNITS) for sums in (task.x_sa, task.z_sa))
                n = Fraction(int(task.played[h, s, a]))
                self.means[h, s, a] = mean_ends(n, X, Z, delta_0)
        if task.start is None:
            self.first = ball(
                [Fraction(int(n)) for n in task.n_start], list(range(S)), alpha, delta_0
            )

    def _after(self, h: int, s: int, a: int, V: Values) -> Values:
        """What may come: V, and rewards by next state."""
        states = self.balls[self.task.row(h), s, a].states
        if self.task.r_next is None:
            return [V[i] for i in states]
        return [V[i] + Fraction(float(self.task.r_next[h, s, a, i])) for i in states]

    def Q_low(self, h: int, s: int, a: int, V: Values) -> Between:
        """r + the worst mean; an unknown reward is at least the lower end of its mean."""
        pair = (self.task.row(h), s, a)
        found = worst_mean(self.balls[pair].p_hat, self._after(h, s, a, V), self.balls[pair].eps)
        if self.task.is_unknown(h, s, a):
            return found + self.means[pair][0]
        return found if self.task.r is None else found + Fraction(float(self.task.r[h, s, a]))

    def Q_up(self, h: int, s: int, a: int, V: Values) -> Between:
        """Likewise with the best mean. Rewards were rounded down by up to 2^-20 each before they
        were summed, so their mean may be that much larger than its upper end.
        """
        pair = (self.task.row(h), s, a)
        found = best_mean(self.balls[pair].p_hat, self._after(h, s, a, V), self.balls[pair].eps)
        if self.task.is_unknown(h, s, a):
            most = self.means[pair][1] + Fraction(1, UNITS)
            return found + Between(min(most.lo, Fraction(1)), min(most.hi, Fraction(1)))
        return found if self.task.r is None else found + Fraction(float(self.task.r[h, s, a]))

    def at_start(self, V: Values, extreme: Callable[..., Between] = worst_mean) -> Between:
        """The value averaged over the first state, or its extreme mean where that law is
        unknown.
        """
        if self.task.start is None:
            return extreme(self.first.p_hat, V, self.first.eps)
        weights = [Fraction(float(x)) for x in self.task.start]
        return mean([w / sum(weights) for w in weights], V)

    def _step(self, h: int, rule: list[Row], V: Values) -> Values:
        """V_low[h](s) = sum_a pi_h(a|s) Q_low_h(s,a). At the first step only where episodes
        start.
        """
        return [
            total([self.Q_low(h, s, a, V) * w for a, w in enumerate(rule[s]) if w]).rounded()
            if h or self.task.begins(s)
            else ZERO
            for s in range(self.task.S)
        ]

    def lower(self, policy: Policy) -> Between:
        """The certified value of a policy."""
        V = [ZERO] * self.task.S
        for h in reversed(range(self.task.H)):
            V = self._step(h, policy[h], V)
        return self.at_start(V)

    def candidates(self, pi_b: Policy, pi_bar: Policy, splices: Sequence[int]) -> list[Between]:
        """L(h0) of pi^{h0}, boldest first. From row h0 on it is pi_bar that counts: those values
        are computed once.
        """
        H = self.task.H
        tail = {H: [ZERO] * self.task.S}
        for h in reversed(range(H)):
            tail[h] = self._step(h, pi_bar[h], tail[h + 1])
        L = []
        for h0 in splices:
            V = tail[h0]
            for h in reversed(range(h0)):
                V = self._step(h, pi_b[h], V)
            L.append(self.at_start(V))
        return L

    def upper(self, policy: Policy) -> Between:
        """What a policy is worth at most."""
        V = [ZERO] * self.task.S
        for h in reversed(range(self.task.H)):
            V = [
                total(
                    [self.Q_up(h, s, a, V) * w for a, w in enumerate(policy[h][s]) if w]
                ).rounded()
                for s in range(self.task.S)
            ]
        return self.at_start(V, best_mean)

    def optimist(self, pi_bar: Policy) -> tuple[list[list[list[Between]]], Between]:
        """Q_up[h][s][a] and the upper value. V_up is the largest Q_up, whichever action pi_bar
        takes.
        """
        task, V, tables = self.task, [ZERO] * self.task.S, []
        for h in reversed(range(task.H)):
            Q = [[self.Q_up(h, s, a, V) for a in range(task.A)] for s in range(task.S)]
            V = [largest(row).rounded() for row in Q]
            tables.append(Q)
        return tables[::-1], self.at_start(V, best_mean)


# ---- the paper's bounds --------------------------------------------------------------------------


class Literal:
    """The paper's bounds (Eq. q, ucbQ, lcbQ) of one task: rewards r(s,a), one start; a mask is
    not used.
    """

    def __init__(self, task: Task, delta_prime: Fraction) -> None:
        self.task = task
        self.s1 = int(np.flatnonzero(task.start)[0])
        self.base = log(task.S * task.A * task.H / delta_prime)

    def Q(self, h: int, s: int, a: int, V_up: Values, V_low: Values) -> tuple[Between, Between]:
        """Q_up  = min(H, r + 3 sqrt(Var V_up beta*/n) + 14 H^2 beta/n + (1/H) p_hat(V_up - V_low) +
        p_hat V_up) Q_low = max(0, r - 3 sqrt(Var V_up beta*/n) - 22 H^2 beta/n - (2/H) p_hat(V_up -
        V_low) + p_hat V_low). At the last step of shared rows both are r.
        """
        task, H = self.task, self.task.H
        if task.pooled and h + 1 == H and H > 1:
            r = Fraction(float(task.r[h, s, a]))
            return Between(r, r), Between(r, r)
        counts = [int(x) for x in task.n_sas[task.row(h), s, a]]
        n = sum(counts)
        if n == 0:
            return between(H), ZERO
        p_hat = [Fraction(x, n) for x in counts]
        grows = log(Fraction(8 * (n + 1))) + 1  # log(8 e (n+1))
        beta, beta_star = self.base + grows * task.S, self.base + grows
        centre, low = mean(p_hat, V_up), mean(p_hat, V_low)
        variance = total(
            [(v - centre) * (v - centre) * p for p, v in zip(p_hat, V_up, strict=True)]
        )
        variance = Between(max(Fraction(0), variance.lo), variance.hi)
        bonus = sqrt(variance * beta_star * Fraction(9, n))
        r = Fraction(float(task.r[h, s, a]))
        Q_up = bonus + beta * Fraction(14 * H * H, n) + (centre - low) * Fraction(1, H) + centre + r
        Q_low = low + r - bonus - beta * Fraction(22 * H * H, n) - (centre - low) * Fraction(2, H)
        return Between(min(Q_up.lo, Fraction(H)), min(Q_up.hi, Fraction(H))).rounded(), largest(
            [Q_low, ZERO]
        ).rounded()

    def _step(self, h: int, rule: list[Row], V_up: Values, V_low: Values) -> tuple[Values, Values]:
        """PolicyEva: V_up(s) = sum_a pi(a|s) Q_up(s,a), V_low likewise with Q_low. At the first
        step only in s_1.
        """
        both = [
            self.average(
                row,
                [self.Q(h, s, a, V_up, V_low) if w else (ZERO, ZERO) for a, w in enumerate(row)],
            )
            if h or s == self.s1
            else (ZERO, ZERO)
            for s, row in enumerate(rule)
        ]
        return [x.rounded() for x, _ in both], [x.rounded() for _, x in both]

    def average(self, row: Row, pairs: list[tuple[Between, Between]]) -> tuple[Between, Between]:
        return mean(row, [Q_up for Q_up, _ in pairs]), mean(row, [Q_low for _, Q_low in pairs])

    def evaluate(self, policy: Policy) -> tuple[Between, Between]:
        """V_up_1(s_1) and V_low_1(s_1)."""
        V_up = V_low = [ZERO] * self.task.S
        for h, rule in reversed(list(enumerate(policy))):
            V_up, V_low = self._step(h, rule, V_up, V_low)
        return V_up[self.s1], V_low[self.s1]

    def candidates(self, pi_b: Policy, pi_bar: Policy, splices: Sequence[int]) -> list[Between]:
        """L(h0) = V_low_1(s_1) of pi^{h0}, boldest first."""
        return [self.evaluate(splice(pi_b, pi_bar, h0))[1] for h0 in splices]

    def upper(self, policy: Policy) -> Between:
        """What a policy is worth at most."""
        return self.evaluate(policy)[0]

    def optimist(self, pi_bar: Policy) -> tuple[list[list[list[Between]]], Between]:
        """Q_up[h][s][a] and V_up_1(s_1); V_up and V_low are read at the actions of pi_bar."""
        task, tables = self.task, []
        V_up = V_low = [ZERO] * task.S
        for h in reversed(range(task.H)):
            tables.append(
                [[self.Q(h, s, a, V_up, V_low)[0] for a in range(task.A)] for s in range(task.S)]
            )
            V_up, V_low = self._step(h, pi_bar[h], V_up, V_low)
        return tables[::-1], V_up[self.s1]


# ---- plans ---------------------------------------------------------------------------------------


def parts_of(learner: str, H: int) -> int:
    """delta' = delta / (3(H+1)) for StepMix and its ablation, delta / 4 for EpsMix."""
    return 4 if learner == "EpsMix" else 3 * (H + 1)


def splices_of(learner: str, H: int) -> list[int]:
    """EpsMix knows pi_bar and pi_b alone, the others every h0."""
    return [0, H] if learner == "EpsMix" else list(range(H + 1))


def chosen(L: Sequence[Fraction], floor: Fraction) -> int | None:
    """The boldest candidate that reaches the floor; None: no one does."""
    return next((c for c, low in enumerate(L) if low >= floor), None)


def policy_value(P: list[list[list[Row]]], r: list[list[Row]], policy: Policy, s1: int) -> Fraction:
    """V_1^pi(s_1) in a world with rational P[h][s][a][s'] and r[h][s][a]: a rational."""
    V = [Fraction(0)] * len(r[0])
    for h in reversed(range(len(r))):
        V = [
            sum(
                w * (r[h][s][a] + sum(p * v for p, v in zip(P[h][s][a], V, strict=True)))
                for a, w in enumerate(policy[h][s])
            )
            for s in range(len(V))
        ]
    return V[s1]
