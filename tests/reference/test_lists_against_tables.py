"""Methods that learn and explore over lists, against the same formulas written here over whole
tables.

Worlds of 66 to 80 states with one to four successors, of which nothing but arrays is used. Values
agree to 1e-8 and are never above those of the tables by more than 1e-12; policies are the same.
Controls: a radius, or a bonus, that is a twentieth smaller is above, and another draw is another
world.
"""

import math

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf
from formulas import radius

DELTA, H, A = 0.1, 3, 2
KINDS = ("known", "mask", "by next state")


class Case:
    """A world, a log of it, and the problem as a user declares it."""

    def __init__(self, seed, kind, episodes=4000):
        self.rng = rng = np.random.default_rng([seed, KINDS.index(kind)])
        self.S = S = int(rng.integers(66, 81))
        self.P = np.zeros((S * A, S))
        for row in self.P:
            row[rng.choice(S, int(rng.integers(1, 5)), replace=False)] = 1.0
        self.P *= rng.random(self.P.shape) + 0.05
        self.P = (self.P / self.P.sum(axis=1, keepdims=True)).reshape(S, A, S)
        self.masked, self.by_next = kind != "known", kind == "by next state"
        self.r = (
            np.where(self.P > 0, rng.random((S, A, S)), 0.0) if self.by_next else rng.random((S, A))
        )
        self.possible = self.P > 0 if self.masked else np.ones_like(self.P, dtype=bool)
        support = scipy.sparse.csr_array(self.possible.reshape(S * A, S)) if self.masked else None
        rewards = (
            {"r_next": scipy.sparse.csr_array(self.r.reshape(S * A, S))}
            if self.by_next
            else {"r": self.r}
        )
        self.problem = sf.Problem(**rewards, H=H, support=support)
        behaviour = rng.dirichlet(np.ones(A), (H, S))
        states, self.n, self.folds = (
            np.zeros(episodes, dtype=int),
            np.zeros((2, H, S, A, S), dtype=int),
            None,
        )
        fold = rng.integers(0, H, episodes)
        for h in range(H):
            actions = (rng.random(episodes) > behaviour[h, states, 0]).astype(int)
            after = (
                (rng.random((episodes, 1)) > self.P[states, actions].cumsum(axis=-1))
                .sum(axis=-1)
                .clip(max=S - 1)
            )
            np.add.at(self.n[0, h], (states, actions, after), 1)
            mine = fold == h
            np.add.at(self.n[1, h], (states[mine], actions[mine], after[mine]), 1)
            states = after
        start = np.bincount([0] * episodes, minlength=S)
        self.counts, self.folds = (
            sf.Counts(n_sas, n_start=start, logged=True).claimed_for(self.problem)
            for n_sas in self.n
        )

    def value_after(self, V):
        """r(s,a,s') + V(s'), or V(s')."""
        return self.r + V if self.by_next else np.broadcast_to(V, self.P.shape)

    def paid(self):
        """r(s,a), where it does not depend on the next state."""
        return 0.0 if self.by_next else self.r

    def true_value(self, policy):
        V = np.zeros(self.S)
        for h in reversed(range(H)):
            V = (policy[h] * (self.paid() + (self.P * self.value_after(V)).sum(axis=-1))).sum(
                axis=-1
            )
        return V[0]


def frequencies(n):
    return n / np.maximum(1, n.sum(axis=-1, keepdims=True))


def best(Q, visits):
    """Among the actions within 1e-12 of the best one the most visited, then the first."""
    return np.where(Q.max(axis=1, keepdims=True) - 1e-12 <= Q, visits, -1).argmax(axis=1)


def vi_lcb(case, c=1.0):
    """The paper's Algorithm 5, over tables; nothing is estimated where one next state alone is
    possible.
    """
    n, V, policy = case.n[1], np.zeros(case.S), np.zeros((H, case.S, A))
    b = c * np.sqrt(H**2 * math.log(H * case.S * A / DELTA) / np.maximum(1, n.sum(axis=-1)))
    sure = case.possible.sum(axis=-1) == 1
    for h in reversed(range(H)):
        p = np.where(sure[..., None], case.possible, frequencies(n[h]))
        Q = np.maximum(
            0.0, case.paid() + (p * case.value_after(V)).sum(axis=-1) - np.where(sure, 0.0, b[h])
        )
        a = best(Q, n[h].sum(axis=-1))
        policy[h, np.arange(case.S), a] = 1.0
        V = Q.max(axis=1)
    return policy, V[0]


def spibb(case, n_wedge):
    """Pi_b-SPIBB over tables: below n_wedge visits the log's own frequencies, the rest to the
    best by frequencies.
    """
    visits, V, policy = (
        case.n[0].sum(axis=-1).astype(float),
        np.zeros(case.S),
        np.zeros((H, case.S, A)),
    )
    for h in reversed(range(H)):
        Q = case.paid() + (frequencies(case.n[0, h]) * case.value_after(V)).sum(axis=-1)
        for s in range(case.S):
            played = next(
                n
                for n in (visits[h, s], visits[:, s].sum(axis=0), visits.sum(axis=(0, 1)))
                if n.any()
            )
            policy[h, s] = played / played.sum()
            known = np.flatnonzero(visits[h, s] >= n_wedge)
            if known.size:
                free, policy[h, s, known] = policy[h, s, known].sum(), 0.0
                policy[h, s, known[best(Q[s : s + 1, known], visits[h, s : s + 1, known])[0]]] += (
                    free
                )
        V = (policy[h] * Q).sum(axis=-1)
    return policy


def worst(n_i, W, eps):
    """min p W over the p with KL(p_hat, p) <= eps: the p = c p_hat / (t + W - low), and what is
    left to the lowest.

    c makes KL eps, and t is where nothing is left over; t = 0 where even then something is left,
    which the lowest, not seen, takes.
    """
    low, seen = W.min(), n_i > 0
    if not eps < math.inf:
        return low
    p_hat, d = n_i[seen] / n_i.sum(), W[seen] - low
    if not d.any():
        return low

    def mass(t):
        return math.exp(-eps + (p_hat * np.log(t + d)).sum()) * p_hat / (t + d)

    left, right = 0.0, float(d.max())
    while mass(right).sum() > 1.0:
        right *= 2.0
    if d.min() > 0.0 and mass(0.0).sum() <= 1.0:
        return low + (mass(0.0) * d).sum()
    for _ in range(200):
        t = 0.5 * (left + right)
        left, right = (t, right) if mass(t).sum() > 1.0 else (left, t)
    return low + (mass(right) * d).sum()


def certified(case, policy):
    """The KL lower value of a policy over tables: H S A events, but none where one next state
    alone is possible.
    """
    m = case.possible.sum(axis=-1)
    log_union = math.log(H * int((m > 1).sum()) / DELTA)
    V = np.zeros(case.S)
    for h in reversed(range(H)):
        W, Q = case.value_after(V), np.zeros((case.S, A))
        for s, a in np.ndindex(Q.shape):
            here = case.possible[s, a]
            n_i, values = case.n[0, h, s, a][here], W[s, a][here]
            Q[s, a] = (
                values[0]
                if m[s, a] == 1
                else worst(n_i, values, radius(n_i, False, log_union) if n_i.any() else math.inf)
            )
        V = (policy[h] * (case.paid() + Q)).sum(axis=-1)
    return V[0]


def thompson(case, seed, prior=1.0):
    """A weight for each possible next state of each pair, in order, and the best policy of the
    world drawn.
    """
    rng, V, policy = np.random.default_rng(seed), np.zeros(case.S), np.zeros((H, case.S, A))
    possible = np.broadcast_to(case.possible, case.n[0].shape)
    weights = np.zeros(possible.shape)
    weights[possible] = rng.standard_gamma(case.n[0][possible] + prior)
    for h in reversed(range(H)):
        p = weights[h] / weights[h].sum(axis=-1, keepdims=True)
        Q = case.paid() + (p * case.value_after(V)).sum(axis=-1)
        policy[h, np.arange(case.S), Q.argmax(axis=1)] = 1.0
        V = Q.max(axis=1)
    return policy


def not_above(found, expected):
    """Both sides: not above the table's value, and not far below it."""
    return expected - 1e-8 <= found <= expected + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_vi_lcb(kind, seed):
    case = Case(seed, kind, episodes=40_000)
    found = sf.vi_lcb(case.folds, case.problem, DELTA)
    policy, value = vi_lcb(case)
    assert_array_equal(found.policy, policy)
    assert not_above(found.lower, value) and 0.05 < found.lower <= case.true_value(policy)
    assert not not_above(sf.vi_lcb(case.folds, case.problem, DELTA, c=0.95).lower, value)  # control


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_spibb_and_its_certificate(kind, seed):
    case = Case(seed, kind)
    found = sf.spibb(case.counts, case.problem, DELTA, n_wedge=20)
    policy = spibb(case, 20)
    assert_allclose(found.policy, policy, atol=1e-12)
    value = certified(case, policy)
    assert not_above(found.lower, value) and 0.2 < found.lower <= case.true_value(policy)
    assert not np.allclose(found.policy, spibb(case, 1000))  # control: another n_wedge
    smaller = sf.spibb(case.counts, case.problem, DELTA, n_wedge=20, bounds=sf.KL(scale=0.95))
    # control: a smaller radius
    assert smaller.lower > value + 1e-12 and not not_above(smaller.lower, value)


@pytest.mark.parametrize("kind", KINDS)
def test_thompson(kind):
    case = Case(0, kind)
    explorer = sf.Thompson(case.problem)
    for seed in range(3):
        policy = explorer(case.counts, np.random.default_rng(seed))
        assert_array_equal(policy, thompson(case, seed))
        assert not np.array_equal(policy, thompson(case, seed + 1))  # control: another draw
