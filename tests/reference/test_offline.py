"""VI-LCB and KL-robust value iteration against slow references that read a log row by row.

The references share no code with the library: folds, counts, radii and backups are written out here
from the formulas.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import surefoot as sf
from formulas import radius

ROWS = ("episode", "step", "state", "action", "reward", "next_state")


def fold_of(episode, seed, H):
    """The documented integer arithmetic, by Python's own integers."""
    words = [int(w) & (2**30 - 1) for w in np.random.SeedSequence(seed).generate_state(3)]
    k1, k2, k3 = words[0] | 1, words[1] | 1, words[2]
    mask = 2**31 - 1
    u = (episode & mask) * k1 + ((episode >> 31) & mask) * k2 + k3
    return (((u ^ (u >> 30)) & mask) * H) >> 31


def a_log(seed):
    """A random problem and a log of it, as rows; some pairs are never tried."""
    rng = np.random.default_rng([1, seed])
    H, S, A = (int(rng.integers(1, hi)) for hi in (4, 5, 4))
    r = np.round(rng.random((H, S, A)), 3)
    P = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
    mu = rng.dirichlet(np.full(A, 0.5), size=(H, S))
    rows = []
    for episode in range(int(rng.integers(1, 400))):
        s = 0
        for h in range(H):
            a = int(rng.choice(A, p=mu[h, s]))
            s_next = int(rng.choice(S, p=P[h, s, a]))
            rows.append((episode, h, s, a, r[h, s, a], s_next))
            s = s_next
    return (H, S, A), r, rows


def tables(sizes, rows, only=lambda episode, step: True):
    H, S, A = sizes
    n = [[[[0] * S for _ in range(A)] for _ in range(S)] for _ in range(H)]
    for episode, h, s, a, _, s_next in rows:
        if only(episode, h):
            n[h][s][a][s_next] += 1
    return n


def best(Q, visits):
    """The largest value; of ties the most visited, then the first."""
    top = max(Q)
    ties = [a for a, q in enumerate(Q) if q >= top - 1e-12]
    most = max(visits[a] for a in ties)
    return next(a for a in ties if visits[a] == most)


def first(Q, visits):
    """The largest value; of ties the first."""
    return next(a for a, q in enumerate(Q) if q >= max(Q) - 1e-12)


def slow_vi_lcb(sizes, r, rows, seed, delta, c, choose=best):
    H, S, A = sizes
    n = tables(sizes, rows, lambda episode, h: fold_of(episode, seed, H) == h)
    iota = math.log(H * S * A / delta)
    V, policy = [0.0] * S, np.zeros((H, S), dtype=int)
    for h in reversed(range(H)):
        ahead, V = V, []
        for s in range(S):
            Q, visits = [], []
            for a in range(A):
                m = sum(n[h][s][a])
                mean = sum(k * v for k, v in zip(n[h][s][a], ahead, strict=True)) / max(1, m)
                Q.append(max(0.0, r[h, s, a] + mean - c * math.sqrt(H * H * iota / max(1, m))))
                visits.append(m)
            policy[h, s] = choose(Q, visits)
            V.append(Q[policy[h, s]])
    return policy, V[0]


def slow_worst(k, eps, V):
    """The worst mean over the ball, by scipy's search for the dual's t."""
    m, low = sum(k), min(V)
    span = max(V) - low
    if span == 0.0:
        return low
    p, d = [x / m for x in k], [v - low for v in V]

    def dual(log_t):
        t = math.exp(log_t)
        return -t * math.expm1(
            -eps + sum(q * math.log1p(x / t) for q, x in zip(p, d, strict=True) if q > 0)
        )

    top = math.log(span / math.expm1(eps))
    found = minimize_scalar(
        dual, bounds=(top - 40.0, top), method="bounded", options={"xatol": 1e-12}
    )
    return low + max(0.0, -found.fun)


def slow_robust(sizes, r, rows, delta):
    H, S, A = sizes
    n = tables(sizes, rows)
    V, policy = [0.0] * S, np.zeros((H, S), dtype=int)
    for h in reversed(range(H)):
        ahead, V = V, []
        for s in range(S):
            Q, visits = [], []
            for a in range(A):
                k = n[h][s][a]
                m = sum(k)
                worst = min(ahead)
                if m > 0:
                    worst = slow_worst(k, radius(k, True, math.log(S * A * H / delta)), ahead)
                Q.append(r[h, s, a] + worst)
                visits.append(m)
            policy[h, s] = best(Q, visits)
            V.append(Q[policy[h, s]])
    return policy, V[0]


def counted(sizes, rows, folded_by=None):
    only = (
        (lambda e, h: True)
        if folded_by is None
        else (lambda e, h: fold_of(e, folded_by, sizes[0]) == h)
    )
    return np.array(tables(sizes, rows, only))


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(block, marks=pytest.mark.full) for block in (1, 2, 3))]
)
def test_two_hundred_random_logs(block):
    """50 of them, the others in test-full. Policies are the same, values within 1e-9; and some are
    above what holds without data, so this says something.
    """
    above, differ = [0, 0], 0
    for seed in range(50 * block, 50 * block + 50):
        sizes, r, rows = a_log(seed)
        problem, delta, c = sf.Problem(r), 0.1, 0.2 if seed % 2 else 1.0
        folds, policies = counted(sizes, rows, folded_by=seed), []
        for ties, choose in (("first", first), ("most-visited", best)):
            fast = sf.vi_lcb(folds, problem, delta, c=c, ties=ties)
            policy, value = slow_vi_lcb(sizes, r, rows, seed, delta, c, choose)
            assert np.array_equal(fast.policy.argmax(axis=-1), policy)
            assert fast.lower == pytest.approx(value, abs=1e-9)
            policies.append(policy)
        differ += not np.array_equal(*policies)
        counts = sf.Counts(counted(sizes, rows), logged=True, problem=problem)
        robust = sf.robust_vi(counts, problem, delta, sf.KL(full_support=True))
        policy, worst = slow_robust(sizes, r, rows, delta)
        assert np.array_equal(robust.policy.argmax(axis=-1), policy)
        assert robust.lower == pytest.approx(worst, abs=1e-8)
        assert robust.lower <= worst + 1e-12
        above[0] += value > 0.0
        above[1] += sizes[0] > 1 and worst > r[0, 0, policy[0, 0]] + 1e-6
    assert above[0] >= 5
    assert above[1] >= 20
    assert differ >= 10  # the two ways of breaking ties are two policies


def test_vi_lcb_by_hand():
    """H = 1, one state, two actions: Q = r - sqrt(log(2/delta) / n), with delta = 2/e^4 so that
    iota = 4.
    """
    problem = sf.Problem(np.array([[[0.9, 0.5]]]))
    delta = 2.0 * math.exp(-4.0)
    learnt = sf.vi_lcb(np.array([[[[100], [10_000]]]]), problem, delta)  # b = 0.2 and 0.02
    assert learnt.lower == pytest.approx(0.7, abs=1e-9)
    assert learnt.policy.tolist() == [[[1.0, 0.0]]]
    few = sf.vi_lcb(np.array([[[[10], [10_000]]]]), problem, delta)  # b = 0.63 and 0.02
    assert few.lower == pytest.approx(0.48, abs=1e-9)
    assert few.policy.tolist() == [[[0.0, 1.0]]]


def test_ties_go_to_the_more_visited_action():
    problem = sf.Problem(np.zeros((1, 2, 3)))
    n_sas = np.array([[[[1, 0], [0, 5], [5, 0]], [[0, 0]] * 3]])
    learnt = sf.vi_lcb(n_sas, problem, 0.1)
    assert learnt.policy.argmax(axis=-1).tolist() == [[1, 0]]  # the most visited, then the first
    literal = sf.vi_lcb(n_sas, problem, 0.1, ties="first")
    assert literal.policy.argmax(axis=-1).tolist() == [[0, 0]]
    with pytest.raises(sf.InvalidSetting, match="expected 'most-visited' or 'first'"):
        sf.vi_lcb(np.zeros((1, 2, 3, 2), dtype=int), problem, 0.1, ties="last")
    robust = sf.robust_vi(sf.Counts(n_sas, logged=True, problem=problem), problem, 0.1)
    assert robust.policy.argmax(axis=-1).tolist() == [[1, 0]]


def test_what_the_corollary_asks_for():
    """n >= 16 iota'^2 H^5 S A / kappa^2, iota' = log(2HSA/delta): H = 3, S = A = 5, delta = 0.1,
    kappa = 0.3.
    """
    from surefoot.logs.methods.learnt import corollary

    problem = sf.random_mdp(5, 5, 3, seed=0).problem
    asked = corollary(problem, 0.1 / 2, 0.3)  # the log has half of delta
    assert asked.printed == math.ceil(16 * math.log(150 / 0.1) ** 2 * 243 * 25 / 0.09)
    assert asked.sound == math.ceil(32 * math.log(150 / 0.1) ** 2 * 243 * 25 / 0.09)
    assert corollary(problem, 0.05, 0.0) == (math.inf, math.inf)


def random_log(problem, n, rng):
    """Counts of episodes in which everything that is possible is equally likely."""
    counts = sf.Counts.zeros(problem)
    for _ in range(n):
        states = [int(rng.integers(problem.S)) if problem.start is None else problem.s1]
        actions = rng.integers(problem.A, size=problem.H)
        for h, a in enumerate(actions):
            states.append(int(rng.choice(np.flatnonzero(problem.support_at(h)[states[-1], a]))))
        counts.add(sf.Episode.of(problem, states, actions, rng.random(problem.H)))
    counts.logged = True
    return counts


def test_a_certificate_is_of_the_best_certified_policy():
    """No deterministic policy has a higher certificate: all 64 of a small problem, each
    evaluated on its own.
    """
    rng = np.random.default_rng(3)
    problem = sf.Problem(rng.random((2, 3, 2)))
    counts = random_log(problem, 120, rng)
    learnt = sf.robust_vi(counts, problem, 0.1)
    every = [np.eye(2)[np.array(np.unravel_index(i, (2,) * 6)).reshape(2, 3)] for i in range(64)]
    assert learnt.lower == pytest.approx(
        max(sf.certify(pi, counts, problem, 0.1).lower for pi in every), abs=1e-10
    )
    assert sf.certify(learnt.policy, counts, problem, 0.1).lower == pytest.approx(
        learnt.lower, abs=1e-10
    )


def test_spibb_by_hand():
    """One step: a pair seen n_wedge times may take what the log gave to such pairs; the others
    keep theirs.
    """
    problem = sf.Problem(np.array([[[0.1, 0.9, 0.5, 1.0]]]))
    counts = sf.Counts(np.array([[[[50], [30], [15], [5]]]]), logged=True, problem=problem)
    learnt = sf.spibb(counts, problem, 0.1, n_wedge=15)
    assert learnt.policy[0, 0].tolist() == pytest.approx([0.0, 0.95, 0.0, 0.05])
    assert sf.clone(counts, problem, 0.1).policy[0, 0].tolist() == pytest.approx(
        [0.5, 0.3, 0.15, 0.05]
    )
