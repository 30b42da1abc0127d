"""The bounds of the paper, read a second time: in plain Python, not from this library's code."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction


@dataclass
class Reading:
    """The bounds as a reader of the paper would write them down: plain Python, 50 digits, one pair
    at a time.

    The constants are arguments so that a misreading can be tried (see test_by_hand.py).
    """

    n_sas: list
    r: list
    delta_prime: Decimal
    bonus: tuple = (14, 22)
    deviation: int = 3
    spread: tuple = (1, 2)
    variance_of: str = "upper"
    states_in_beta_star: bool = False
    seen_from: int = 1
    lower_reads: str = "Q_low"
    shared: bool = False  # do steps share a row? Then Q of the last step is r

    def __post_init__(self):
        self.H, self.S, self.A = len(self.r), len(self.r[0]), len(self.r[0][0])

    def log_terms(self, n):
        """log(SAH/delta') and log(8e(n+1))."""
        return (
            (Decimal(self.S * self.A * self.H) / self.delta_prime).ln(),
            (8 * Decimal(1).exp() * (n + 1)).ln(),
        )

    def q(self, h, s, a, V_up, V_low):
        """Q_up and Q_low of one pair."""
        next_counts = self.n_sas[h][s][a]
        n, H, r = sum(next_counts), self.H, decimal(self.r[h][s][a])
        if self.shared and h + 1 == H:
            return r, r
        if n < self.seen_from:
            return Decimal(H), Decimal(0)
        p_hat = [Decimal(x) / n for x in next_counts]
        union, growth = self.log_terms(n)
        beta = union + self.S * growth
        beta_star = union + (self.S if self.states_in_beta_star else 1) * growth

        def mean(values):
            return sum(p * v for p, v in zip(p_hat, values, strict=True))

        U = V_up if self.variance_of == "upper" else V_low
        variance = mean([(u - mean(U)) ** 2 for u in U])
        gap = mean([up - low for up, low in zip(V_up, V_low, strict=True)])
        wiggle = self.deviation * (variance * beta_star / n).sqrt()
        Q_up = r + wiggle + self.bonus[0] * H * H * beta / n + self.spread[0] * gap / H + mean(V_up)
        Q_low = (
            r - wiggle - self.bonus[1] * H * H * beta / n - self.spread[1] * gap / H + mean(V_low)
        )
        return min(Decimal(H), Q_up), max(Decimal(0), Q_low)

    def tables(self, h, V_up, V_low):
        pairs = [[self.q(h, s, a, V_up, V_low) for a in range(self.A)] for s in range(self.S)]
        Q_up = [[up for up, _ in row] for row in pairs]
        Q_low = [[low if self.lower_reads == "Q_low" else up for up, low in row] for row in pairs]
        return Q_up, Q_low

    def optimistic(self):
        """pi_bar as actions, and the upper value at the start."""
        V_up, V_low = [Decimal(0)] * self.S, [Decimal(0)] * self.S
        pi_bar = [None] * self.H
        for h in reversed(range(self.H)):
            Q_up, Q_low = self.tables(h, V_up, V_low)
            pi_bar[h] = [row.index(max(row)) for row in Q_up]  # the first index wins a tie
            V_up = [Q_up[s][pi_bar[h][s]] for s in range(self.S)]
            V_low = [Q_low[s][pi_bar[h][s]] for s in range(self.S)]
        return pi_bar, V_up[0]

    def lower(self, pi):
        """PolicyEva: V_low_1(s_1) of a policy."""
        V_up, V_low = [Decimal(0)] * self.S, [Decimal(0)] * self.S
        for h in reversed(range(self.H)):
            Q_up, Q_low = self.tables(h, V_up, V_low)
            V_up, V_low = (
                [sum(p * q for p, q in zip(pi[h][s], Q[s], strict=True)) for s in range(self.S)]
                for Q in (Q_up, Q_low)
            )
        return V_low[0]

    def candidates(self, pi_b, which):
        """L(h0): pi_b for the first h0 steps, then pi_bar."""
        actions, upper = self.optimistic()
        one_hot = [
            [[Decimal(int(a == row[s])) for a in range(self.A)] for s in range(self.S)]
            for row in actions
        ]
        weights = [[[decimal(p) for p in row] for row in step] for step in pi_b]
        return [self.lower(weights[:h0] + one_hot[h0:]) for h0 in which], upper


def decimal(number):
    """A float or a fraction in as many digits as are at work."""
    return Decimal(Fraction(number).numerator) / Decimal(Fraction(number).denominator)
