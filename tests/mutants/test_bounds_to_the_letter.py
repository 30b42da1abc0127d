"""The readable bounds, line by line: the paper's formula in fractions, KL radii by rising factorials and worst means by
another search, and the model that both read."""

import math
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest

from surefoot.bounds import KL, Bernstein, Certificate, Model
from surefoot.bounds.certificate import fingerprint_of
from surefoot.bounds.kl import SEARCH, TIE, dirichlet_radius, first_best, mean_bounds, supports_radius, worst_mean
from surefoot.bounds.model import evaluate, margin
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.numerics import kernels
from surefoot.task.counts import Counts
from surefoot.task.problem import Problem

S, A, H = 2, 3, 4
UNITS = 2**20


def problem(**settings):
    r = np.arange(H * S * A).reshape(H, S, A) / 64
    return Problem(r, **{"s1": 1, **settings})


def stationary(**settings):
    return Problem(np.arange(S * A).reshape(S, A) / 8, **{"s1": 1, "H": H, "stationary": True, **settings})


def counted(seed=0, most=400, rows=H):
    """Any number of visits; some pairs have none, some have one."""
    rng = np.random.default_rng(seed)
    n_sas = rng.integers(0, most, size=(rows, S, A, S))
    n_sas[0, 0, 0] = 0
    n_sas[-1, 1, 1] = (0, 1)
    return n_sas


# ---- The model ------------------------------------------------------------------------------------------------------


def test_a_model_is_the_estimate():
    n_sas = counted()
    model = Model(problem(), Counts(n_sas), 0.125)
    np.testing.assert_array_equal(model.n_sas, n_sas)
    np.testing.assert_array_equal(model.n_sa, n_sas.sum(axis=-1))
    assert model.P_hat[0, 0, 0].tolist() == [0.5, 0.5] and model.P_hat[-1, 1, 1].tolist() == [0.0, 1.0]
    for place in np.ndindex(H, S, A):
        n = n_sas[place].sum()
        if n:
            assert model.P_hat[place].tolist() == [k / n for k in n_sas[place]]
    assert (model.H, model.delta_prime, model.pooled) == (H, 0.125, False)
    assert model.x_sa.shape == (H, S, A) and not model.x_sa.any()
    assert model.support.shape == (H, S, A, S) and model.support.all()
    assert model.n_start.tolist() == [0, 0]


def test_pooled_counts_are_repeated():
    n_sas = counted(rows=1)
    known = stationary(unknown=np.ones((S, A), dtype=bool))
    sums = np.arange(S * A).reshape(1, S, A) * UNITS // 2
    n_sas[0] += 5
    model = Model(known, Counts(n_sas[0], H, x_sa=sums[0]), 0.125)
    assert model.pooled
    for h in range(H):
        np.testing.assert_array_equal(model.n_sas[h], n_sas[0])
        np.testing.assert_array_equal(model.x_sa[h], np.arange(S * A).reshape(S, A) / 2)
    with pytest.raises(InvalidCounts, match="same at every step"):
        Model(Problem(np.zeros((H, S, A)), stationary=False), Counts(n_sas[0], H), 0.125)
    with pytest.raises(InvalidCounts):
        Model(problem(), Counts(np.zeros((H, 3, A, 3), dtype=np.int64)), 0.125)


def test_what_a_backup_gives_up():
    """H (1e-12 + what rows miss of 1)."""
    assert margin(3, 0.0) == pytest.approx(3e-12, rel=1e-15)
    assert margin(3, 0.5) == pytest.approx(1.5 + 3e-12, rel=1e-15)


def test_any_bounds_are_evaluated_backwards():
    """With Q_up = h + 1 + V_up and Q_low = h + V_low / 2 of every pair: short sums."""
    model = Model(problem(), Counts(counted()), 0.125)

    def q_bounds(model, h, V_up, V_low):
        return np.full((S, A), h + 1.0) + V_up[:, None], np.full((S, A), float(h)) + V_low[:, None] / 2

    pi = np.full((H, S, A), 0.0)
    pi[..., 0], pi[..., 2] = 0.25, 0.75
    values = evaluate(q_bounds, model, pi)
    assert values.policy is pi
    assert values.V_up[:, 0].tolist() == [10, 9, 7, 4, 0]
    assert values.V_low[:, 1].tolist() == [1.375, 2.75, 3.5, 3.0, 0.0]


# ---- The paper's bounds ---------------------------------------------------------------------------------------------


def paper(model, h, s, a, V_up, V_low, scale=1.0):
    """Eq. ucbQ and lcbQ of one pair: fractions where floats would be summed, logarithms in floats."""
    n_i = [int(k) for k in model.n_sas[h, s, a]]
    n = sum(n_i)
    if n == 0:
        return float(H), 0.0
    log_union, growth = math.log(S * A * H / model.delta_prime), math.log(8) + 1 + math.log(n + 1)
    beta, beta_star = scale * (log_union + S * growth), scale * (log_union + growth)
    p = [Fraction(k, n) for k in n_i]
    up, low = [Fraction(v) for v in V_up.tolist()], [Fraction(v) for v in V_low.tolist()]
    mean_up, mean_low = (sum(q * v for q, v in zip(p, V, strict=True)) for V in (up, low))
    variance = sum(q * (v - mean_up) ** 2 for q, v in zip(p, up, strict=True))
    deviation = 3 * math.sqrt(float(variance) * beta_star / n)
    r = float(model.problem.r[h, s, a])
    upper = r + deviation + 14 * H**2 * beta / n + float((mean_up - mean_low) / H + mean_up)
    lower = r - deviation - 22 * H**2 * beta / n + float(mean_low - 2 * (mean_up - mean_low) / H)
    return min(float(H), upper), max(0.0, lower)


SCALES = (1.0, 1e-3, 0.0)  # without any bonus one visit says something


@pytest.mark.parametrize("scale", SCALES)
def test_the_papers_tables(scale):
    rng = np.random.default_rng(1)
    clipped = 0
    for most in (4, 400, 10**7):
        model = Model(problem(), Counts(counted(most=most)), 0.125)
        for h in range(H):
            V_low = rng.random(S)
            V_up = V_low + rng.random(S)
            Q_up, Q_low = Bernstein(scale).q_bounds(model, h, V_up, V_low)
            for s, a in np.ndindex(S, A):
                up, low = paper(model, h, s, a, V_up, V_low, scale)
                assert Q_up[s, a] == pytest.approx(up, abs=1e-12)
                assert Q_low[s, a] == pytest.approx(low, abs=1e-12)
                clipped += (up == H) + (low == 0.0)
    assert 0 < clipped < 3 * H * S * A * 2  # the control


def test_beta_and_beta_star():
    model = Model(problem(), Counts(counted()), 0.125)
    growth = math.log(8) + 1 + np.log(model.n_sa + 1)
    np.testing.assert_allclose(Bernstein(0.5).beta(model), 0.5 * (math.log(192) + 2 * growth), rtol=1e-14)
    np.testing.assert_allclose(Bernstein(0.5).beta_star(model), 0.5 * (math.log(192) + growth), rtol=1e-14)


def test_the_optimist_and_its_bounds():
    """The first of the best actions, and both bounds of that action, backwards from nothing."""
    model = Model(problem(), Counts(counted(most=10**9) + 10**5), 0.125)
    bounds = Bernstein(0.01)
    values = bounds.optimistic(model)
    V_up, V_low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            found = [paper(model, h, s, a, V_up[h + 1], V_low[h + 1], 0.01) for a in range(A)]
            best = max(range(A), key=lambda a: found[a][0])
            V_up[h, s], V_low[h, s] = found[best]
            assert values.policy[h, s].tolist() == [float(a == best) for a in range(A)]
    np.testing.assert_allclose(values.V_up, V_up, atol=1e-12)
    np.testing.assert_allclose(values.V_low, V_low, atol=1e-12)
    assert not values.V_up[H].any() and values.V_low[0].max() > 0.1
    assert bounds.at_start(model, np.array([1.0, 2.0]), np.array([3.0, 4.0])) == (2.0, 4.0)  # s1 = 1
    assert bounds.lower(model, values.policy) == pytest.approx(V_low[0, 1], abs=1e-12)
    assert values.V_low[0, 0] != values.V_low[0, 1]
    again = bounds.evaluate(model, values.policy)
    np.testing.assert_allclose(again.V_up, V_up, atol=1e-12)
    np.testing.assert_allclose(again.V_low, V_low, atol=1e-12)


def test_equal_rows_have_equal_means():
    """The sum is over next states, in the same order for each pair: twins tie, and the first one is taken."""
    n_sas = np.broadcast_to(np.random.default_rng(0).integers(1, 10**6, size=(H, S, 1, S)), (H, S, A, S))
    model = Model(Problem(np.full((H, S, A), 0.5)), Counts(n_sas), 0.125)
    assert (Bernstein(0.01).optimistic(model).policy[..., 0] == 1.0).all()


def test_settings_of_the_papers_bounds():
    assert Bernstein() == Bernstein(1.0) and Bernstein().scale == 1.0
    assert Bernstein(0.0).scale == 0.0 and Bernstein(3).scale == 3.0
    for wrong in (-1e-9, math.inf, math.nan, "1"):
        with pytest.raises(InvalidSetting, match=r"scale is .* expected a finite number >= 0; 1 is the paper's"):
            Bernstein(wrong)
    assert Bernstein().certified and not Bernstein(0.5).certified and not Bernstein(2.0).certified
    assert not type("Mine", (Bernstein,), {})().certified
    assert Bernstein().share_of(0.75, 3) == 0.25
    assert Bernstein().events(problem(), False) == Bernstein().events(problem(), True) == S * A * H


def test_what_the_papers_proof_does_not_cover():
    Bernstein().require(problem())
    after = Problem(r_next=np.zeros((S, A, S)), H=H)
    for wrong, message in (
        (problem(start=[0.5, 0.5], s1=0), "several first states. Use bounds=sf.KL()."),
        (problem(start="unknown", s1=0), "several first states. Use bounds=sf.KL()."),
        (
            after,
            "rewards that depend on the next state. Use bounds=sf.KL(). For rewards by next state, world.averaged()",
        ),
        (problem().forget(rewards=True), "unknown rewards. Use bounds=sf.KL()."),
    ):
        with pytest.raises(InvalidSetting) as found:
            Bernstein().require(wrong)
        said = str(found.value)
        assert said.startswith("The paper's bounds are not proved for " + message)
        assert said.endswith("their means instead.") == (wrong is after)


def test_what_kernels_are_told_of_the_papers_bounds():
    counts = Counts(counted())
    told = Bernstein(0.5).evidence(problem(), counts, 0.125, margin(H, 0.0))
    assert told.log_union == pytest.approx(math.log(S * A * H * 8), rel=1e-15)
    assert told.scale == 0.5 and np.shares_memory(told.n_sas, counts.n_sas)
    pooled = Bernstein().evidence(stationary(), Counts(counted(rows=1)[0], H), 0.125, margin(H, 0.0))
    assert pooled.log_union == told.log_union  # SAH also when pooled
    np.testing.assert_array_equal(told.r, problem().r_rows)


# ---- KL: radii and means --------------------------------------------------------------------------------------------


def rising(x, k):
    """Gamma(x + k) / Gamma(x)."""
    return math.prod((x + i for i in range(k)), start=Fraction(1))


def radius(n_i, alpha, log_union):
    """(log(1/delta_0) + sum n_i log(n_i/n) - log m) / n, with m by rising factorials in fractions."""
    n, alpha = sum(n_i), Fraction(alpha)
    m = math.prod((rising(alpha, k) for k in n_i), start=Fraction(1)) / rising(len(n_i) * alpha, n)
    ratio = math.prod((Fraction(k, n) ** k for k in n_i), start=Fraction(1)) / m
    return (log_union + math.log(ratio.numerator) - math.log(ratio.denominator)) / n


def by_another_search(p_hat, eps, V):
    """min V + max over t of t expm1(-eps + sum p log1p(d/t)): by thirds, in log t."""
    low = min(V)
    seen = [(p, v - low) for p, v in zip(p_hat, V, strict=True) if p > 0]
    span = max(V) - low

    def dual(log_t):
        t = math.exp(log_t)
        return t * math.expm1(-eps + math.fsum(p * math.log1p(d / t) for p, d in seen))

    left, right = math.log(span) - 60, math.log(span) + 25
    for _ in range(120):
        a, b = left + (right - left) / 3, right - (right - left) / 3
        left, right = (a, right) if dual(a) < dual(b) else (left, b)
    return low + max(0.0, dual(left))


@pytest.mark.parametrize("alpha", [0.5, 0.25, 2.0])
def test_radii(alpha):
    """Of possible outcomes alone; infinite where nothing was seen."""
    n_i = np.array([[3, 0, 5, 0], [0, 0, 0, 0], [10, 20, 2, 1]])
    possible = np.array([[True, True, True, False], [True] * 4, [True] * 4])
    found = dirichlet_radius(n_i, possible, np.full(3, alpha), 2.5)
    assert found[0] == pytest.approx(radius([3, 0, 5], alpha, 2.5), rel=1e-12)
    assert found[1] == math.inf
    assert found[2] == pytest.approx(radius([10, 20, 2, 1], alpha, 2.5), rel=1e-12)
    assert dirichlet_radius(np.array([0, 1]), np.ones(2, dtype=bool), np.asarray(alpha), 1.0) == pytest.approx(
        radius([0, 1], alpha, 1.0), rel=1e-12
    )


def supports_mixture(n_i):
    """m(n_1..n_S) with unknown supports: sum_k w_k C(S-d, k-d) / C(S, k) DirMult_k, in fractions."""
    S, n, d = len(n_i), sum(n_i), sum(k > 0 for k in n_i)
    half = math.prod((rising(Fraction(1, 2), k) for k in n_i), start=Fraction(1))
    m = Fraction(0)
    for k in range(d, S + 1):
        w = Fraction(1, S if k == S else k * (k + 1))
        m += w * math.comb(S - d, k - d) / math.comb(S, k) * half / rising(Fraction(k, 2), n)
    return m


def radius_with_supports(n_i, log_union):
    """(log(1/delta_0) + sum n_i log(n_i/n) - log m) / n."""
    n = sum(n_i)
    ratio = math.prod((Fraction(k, n) ** k for k in n_i), start=Fraction(1)) / supports_mixture(n_i)
    return (log_union + math.log(ratio.numerator) - math.log(ratio.denominator)) / n


def test_radii_with_unknown_supports():
    """Of possible outcomes alone; infinite where nothing was seen. By hand: a first draw costs log S."""
    n_i = np.array([[3, 0, 5, 0], [0, 0, 0, 0], [10, 20, 2, 1], [0, 0, 6, 0], [0, 9, 0, 0]])
    possible = np.ones((5, 4), dtype=bool)
    possible[0, 3] = possible[4, 0] = possible[4, 2] = possible[4, 3] = False
    found = supports_radius(n_i, possible, 2.5)
    assert found[0] == pytest.approx(radius_with_supports([3, 0, 5], 2.5), rel=1e-12)
    assert found[1] == math.inf
    assert found[2] == pytest.approx(radius_with_supports([10, 20, 2, 1], 2.5), rel=1e-12)
    assert found[3] == pytest.approx(radius_with_supports([0, 0, 6, 0], 2.5), rel=1e-12)
    assert found[4] == pytest.approx(2.5 / 9, rel=1e-12)  # one possible outcome: m = 1
    assert supports_radius(n_i[2:3], possible[2:3], 2.5).tolist() == [found[2]]
    first = supports_radius(np.array([0, 1, 0]), np.ones(3, dtype=bool), 1.0)
    assert first == pytest.approx(1.0 + math.log(3), rel=1e-12)


def test_the_radius_of_less_than_one_count_with_unknown_supports():
    """n = 1/2 of one of two: m = Gamma(1) / Gamma(1/2) (w_1 / 2 Gamma(1/2) / Gamma(1) + w_2 Gamma(1) / Gamma(3/2))."""
    found = supports_radius(np.array([0.5, 0.0]), np.ones(2, dtype=bool), 1.5)
    root = math.sqrt(math.pi)
    assert found == pytest.approx((1.5 - math.log((root / 4 + 1 / root) / root)) / 0.5, rel=1e-13)


def test_the_radius_of_less_than_one_count():
    """n = 1/2 in two equal parts, alpha = 1: log m = -lgamma(5/2) + 2 lgamma(5/4), likelihood 2^(-1/2)."""
    found = dirichlet_radius(np.array([0.25, 0.25]), np.ones(2, dtype=bool), np.asarray(1.0), 1.5)
    log_m = -math.lgamma(2.5) + 2 * math.lgamma(1.25)
    assert found == pytest.approx((1.5 - 0.5 * math.log(2) - log_m) / 0.5, rel=1e-13)


def balls(how_many):
    rng = np.random.default_rng(0)
    for i in range(how_many):
        k = int(rng.integers(2, 7))
        n = rng.multinomial(int(10 ** rng.uniform(0, 7)), rng.dirichlet(np.full(k, [0.1, 1.0, 10.0][i % 3])))
        V = rng.random(k) * [1.0, 20.0, 1e-3][i % 3]
        if i % 4 == 0:
            V[n.argmin()] = 0.0
        yield n / n.sum(), float(10 ** rng.uniform(-7, 1.5)), V


def test_worst_means():
    for p_hat, eps, V in balls(60):
        exact = by_another_search(p_hat.tolist(), eps, V.tolist())
        assert abs(worst_mean(p_hat, eps, V) - exact) <= 1e-11 * np.ptp(V)


def test_worst_means_in_closed_form():
    for eps in (1e-3, 0.1, 1.0, 5.0):
        heads, tails, even = np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
        V = np.array([0.0, 1.0])
        assert worst_mean(heads, eps, V) == pytest.approx(math.exp(-eps), rel=1e-12)
        assert worst_mean(tails, eps, V) == 0.0
        assert -worst_mean(tails, eps, -V) == pytest.approx(-math.expm1(-eps), rel=1e-12)
        half = 0.5 - 0.5 * math.sqrt(-math.expm1(-2 * eps))
        assert worst_mean(even, eps, 3 + 2 * V) == pytest.approx(3 + 2 * half, rel=1e-12)
    # The worst state was never seen: exp(-eps + sum p log d), as t -> 0.
    unseen = worst_mean(np.array([0.0, 0.25, 0.75]), 4.0, np.array([1.0, 2.0, 5.0]))
    assert unseen == pytest.approx(1 + math.exp(-4) * 4**0.75, rel=1e-12)
    assert worst_mean(even, math.inf, np.array([0.5, 0.25])) == 0.25
    assert worst_mean(even, 0.1, np.array([0.3, 0.3])) == 0.3
    assert worst_mean(np.array([1.0]), 0.1, np.array([0.7])) == 0.7


def test_a_coin_in_the_readable_version():
    """Both ends of the ball of x heads in n tosses; sums out of range are clipped; no toss, no knowledge."""
    assert mean_bounds(0, 0.0, 3.0, 1.0) == (0.0, 1.0)
    for n, x, scale in ((10, 3, 1.0), (6, 6, 0.5), (6, 0, 1.0), (1, 1, 1.0)):
        eps, p = scale * radius([n - x, x], 0.5, 3.0), x / n
        low, up = mean_bounds(n, float(x), 3.0, scale)
        assert low == pytest.approx(by_another_search([1 - p, p], eps, [0.0, 1.0]), abs=1e-11)
        assert up == pytest.approx(-by_another_search([1 - p, p], eps, [0.0, -1.0]), abs=1e-11)
    assert mean_bounds(6, 6.5, 3.0, 1.0) == mean_bounds(6, 6.0, 3.0, 1.0)
    assert mean_bounds(6, -0.5, 3.0, 1.0) == mean_bounds(6, 0.0, 3.0, 1.0)


def test_the_first_of_the_best_within_the_tie():
    assert TIE == 1e-12
    Q = np.array([[1.0, 2.0, 2.0], [2.0, 2.0 + 5e-13, 1.0], [1.0, 1.0 + 4e-12, 3.0], [0.5, 0.5, 0.5 + 2e-12]])
    assert first_best(Q).tolist() == [1, 0, 2, 2]
    assert first_best(np.array([[0.0, TIE], [0.0, 2 * TIE]])).tolist() == [0, 1]  # exactly the tie is a tie


# ---- KL: tables and start -------------------------------------------------------------------------------------------


def test_radii_of_a_model():
    n_sas = counted(most=30)
    model = Model(problem(), Counts(n_sas), 0.125)
    log_union = math.log(S * A * H * 8)
    assert KL(0.5).log_union(model) == pytest.approx(log_union, rel=1e-15)
    for bounds, alpha in ((KL(0.5), 0.5), (KL(2.0, scale=0.25), 2.0), (KL("1/S"), 0.5)):
        eps = bounds.radius(model)
        for place in np.ndindex(H, S, A):
            n_i = n_sas[place].tolist()
            expected = bounds.scale * radius(n_i, alpha, log_union) if sum(n_i) else math.inf
            assert eps[place] == pytest.approx(expected, rel=1e-12)
    eps = KL("supports", scale=0.25).radius(model)
    for place in np.ndindex(H, S, A):
        n_i = n_sas[place].tolist()
        expected = 0.25 * radius_with_supports(n_i, log_union) if sum(n_i) else math.inf
        assert eps[place] == pytest.approx(expected, rel=1e-12)
    masked = problem(support=np.broadcast_to([[[True, False]] * A, [[True, True]] * A], (S, A, S)))
    n_sas[:, 0, :, 1] = 0
    model = Model(masked, Counts(n_sas), 0.125)
    n = int(n_sas[1, 0, 0, 0])
    union = KL("1/S").log_union(model)
    for alpha in ("1/S", "supports"):
        assert KL(alpha).radius(model)[1, 0, 0] == pytest.approx(union / n, rel=1e-12)  # one outcome: m = 1


def tables(bounds, model, h, V_up, V_low, after=None):
    """Q_up and Q_low, pair by pair."""
    r_low, r_up = bounds.rewards_at(model, h)
    union = math.log(bounds.events(model.problem, model.pooled) / model.delta_prime)
    Q_up, Q_low = np.zeros((S, A)), np.zeros((S, A))
    for s, a in np.ndindex(S, A):
        n_i = model.n_sas[h, s, a].tolist()
        n = sum(n_i)
        up, low = ((np.zeros(S) if after is None else after[h % len(after), s, a]) + V for V in (V_up, V_low))
        if n == 0:
            worst, best = low.min(), up.max()
        else:
            p, eps = [k / n for k in n_i], bounds.scale * radius(n_i, bounds.dirichlet(S), union)
            worst = by_another_search(p, eps, low.tolist())
            best = -by_another_search(p, eps, (-up).tolist())
        Q_up[s, a], Q_low[s, a] = r_up[s, a] + best, r_low[s, a] + worst
    return Q_up, Q_low


def test_tables_and_values():
    """q_bounds, optimistic, evaluate and lower agree with tables of our own, backwards from nothing."""
    model = Model(problem(), Counts(counted(most=60)), 0.125)
    bounds = KL(0.25, scale=0.5)
    V_up, V_low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
    expected = np.zeros((H, S, A))
    for h in reversed(range(H)):
        Q_up, Q_low = tables(bounds, model, h, V_up[h + 1] + [0.5, 0.25], V_low[h + 1] + [0.125, 0.25])
        found = bounds.q_bounds(model, h, V_up[h + 1] + [0.5, 0.25], V_low[h + 1] + [0.125, 0.25])
        np.testing.assert_allclose(found, (Q_up, Q_low), atol=1e-10)
        Q_up, Q_low = bounds.q_bounds(model, h, V_up[h + 1], V_low[h + 1])
        best = Q_up.argmax(axis=1)
        V_up[h], V_low[h] = Q_up.max(axis=1), Q_low[np.arange(S), best]
        expected[h] = np.eye(A)[best]
    values = bounds.optimistic(model)
    np.testing.assert_array_equal(values.policy, expected)
    np.testing.assert_array_equal(values.V_up, V_up)
    np.testing.assert_array_equal(values.V_low, V_low)
    again = bounds.evaluate(model, values.policy)
    np.testing.assert_allclose(again.V_low, V_low, atol=1e-15)
    np.testing.assert_allclose(again.V_up, V_up, atol=1e-15)
    assert bounds.lower(model, values.policy) == pytest.approx(V_low[0, 1], abs=1e-15)
    assert V_low[0, 0] != V_low[0, 1] and V_low[0, 1] != V_up[0, 1]


def test_rewards_by_next_state_go_inside():
    after = np.random.default_rng(0).random((H, S, A, S))
    model = Model(Problem(r_next=after), Counts(counted(most=60)), 0.125)
    for h in (0, 2):
        found = KL(0.5).q_bounds(model, h, np.array([0.5, 0.25]), np.array([0.125, 0.25]))
        expected = tables(KL(0.5), model, h, np.array([0.5, 0.25]), np.array([0.125, 0.25]), after)
        np.testing.assert_allclose(found, expected, atol=1e-10)
    same = after[0]
    model = Model(Problem(r_next=same, H=H), Counts(counted(most=60)), 0.125)
    found = KL(0.5).q_bounds(model, 2, np.zeros(S), np.zeros(S))
    np.testing.assert_allclose(found, tables(KL(0.5), model, 2, np.zeros(S), np.zeros(S), same[None]), atol=1e-10)


def test_unknown_rewards_are_coins():
    """Where the mask says so, at that step; the upper bound has a unit more, and is at most 1."""
    unknown = np.zeros((H, S, A), dtype=bool)
    unknown[1, 0, 2] = unknown[1, 1, 0] = unknown[2, 1, 1] = unknown[0, 0, 0] = True
    known = problem(unknown=unknown)
    n_sas = counted(most=20) * 0
    n_sas[1, 0, 2], n_sas[1, 1, 0], n_sas[2, 1, 1] = (3, 7), (2, 2), (1, 0)
    sums = np.zeros((H, S, A), dtype=np.int64)
    sums[1, 0, 2], sums[1, 1, 0], sums[2, 1, 1] = 3 * UNITS, 4 * UNITS, UNITS
    model = Model(known, Counts(n_sas, x_sa=sums), 0.125)
    bounds = KL(scale=0.5, rewards="coin")
    union = math.log((S * A * H + 4) * 8)
    for h in range(H):
        low, up = bounds.rewards_at(model, h)
        for s, a in np.ndindex(S, A):
            r = known.r[h, s, a]
            expected = (r, r)
            if unknown[h, s, a]:
                n, x = int(n_sas[h, s, a].sum()), int(sums[h, s, a]) // UNITS
                expected = (0.0, 1.0)
                if n:
                    eps, p = 0.5 * radius([n - x, x], 0.5, union), x / n
                    up_exact = -by_another_search([1 - p, p], eps, [0.0, -1.0])
                    expected = by_another_search([1 - p, p], eps, [0.0, 1.0]), min(1.0, up_exact + 1 / UNITS)
            assert (low[s, a], up[s, a]) == pytest.approx(expected, abs=1e-11)
    model = Model(
        stationary(unknown=np.ones((S, A), dtype=bool)), Counts(n_sas[1:2][0] + 5, H, x_sa=sums[1] * 0), 0.125
    )
    np.testing.assert_array_equal(KL().rewards_at(model, 3), KL().rewards_at(model, 0))


def test_where_episodes_start():
    V_low, V_up = np.array([0.5, 2.0]), np.array([1.0, 4.0])
    assert KL().at_start(Model(problem(), Counts(counted()), 0.125), V_low, V_up) == (2.0, 4.0)
    model = Model(problem(start=[0.25, 0.75], s1=0), Counts(counted()), 0.125)
    assert KL().at_start(model, V_low, V_up) == (1.625, 3.25)
    unknown = problem(start="unknown", s1=0)
    empty = Model(unknown, Counts.zeros(unknown), 0.125)
    assert KL().at_start(empty, V_low, V_up) == (0.5, 4.0)
    counts = Counts.zeros(unknown)
    counts.n_start[:] = (3, 9)
    model = Model(unknown, counts, 0.125)
    for bounds in (KL(scale=0.5), KL("1/S", scale=0.25), KL("supports", scale=0.25)):
        log_union = math.log((S * A * H + 1) * 8)
        own = radius_with_supports([3, 9], log_union) if bounds.alpha == "supports" else radius([3, 9], 0.5, log_union)
        eps = bounds.scale * own
        low, up = bounds.at_start(model, V_low, V_up)
        assert low == pytest.approx(by_another_search([0.25, 0.75], eps, [0.5, 2.0]), abs=1e-11)
        assert up == pytest.approx(-by_another_search([0.25, 0.75], eps, [-1.0, -4.0]), abs=1e-11)


def test_one_first_state_is_all_that_was_seen():
    unknown = problem(start="unknown", s1=0)
    counts = Counts.zeros(unknown)
    counts.n_start[:] = (0, 1)
    eps = radius([0, 1], 0.5, math.log((S * A * H + 1) * 8))
    low, _ = KL(0.5).at_start(Model(unknown, counts, 0.125), np.array([0.0, 4.0]), np.array([1.0, 4.0]))
    assert low == pytest.approx(4 * math.exp(-eps), rel=1e-12)  # all of it in state 1: p with -log p = eps


def test_a_lower_bound_at_the_start_rounded_to_safety():
    V = np.array([0.5, 2.0])
    n_start = np.array([3, 9])
    assert KL(0.5).lower_at_start(problem(), n_start, V, 3.0) == 2.0
    assert KL(0.5).lower_at_start(problem(), n_start, -V, 3.0) == 0.0
    known = problem(start=[0.25, 0.75], s1=0)
    assert KL(0.5).lower_at_start(known, n_start, V, 3.0) == pytest.approx(1.625 - 4e-12, abs=1e-15)
    off = problem(start=[0.25, 0.75 + 5e-10], s1=0)
    assert KL(0.5).lower_at_start(off, n_start, V, 3.0) == pytest.approx(1.625 + 1e-9 - 4e-12 - 2e-9, abs=1e-14)
    unknown = problem(start="unknown", s1=0)
    eps = 0.5 * radius([3, 9], 0.5, 3.0)
    found = KL(0.5, scale=0.5).lower_at_start(unknown, n_start, V, 3.0)
    assert found == pytest.approx(by_another_search([0.25, 0.75], eps, [0.5, 2.0]), abs=1e-9)
    eps = 0.5 * radius_with_supports([3, 9], 3.0)
    found = KL("supports", scale=0.5).lower_at_start(unknown, n_start, V, 3.0)
    assert found == pytest.approx(by_another_search([0.25, 0.75], eps, [0.5, 2.0]), abs=1e-9)


# ---- KL: settings ---------------------------------------------------------------------------------------------------


def test_settings_of_kl():
    assert (KL().alpha, KL().scale) == ("supports", 1.0)
    assert KL(1e-300).alpha == 1e-300 and KL(2).alpha == 2.0 and KL("1/S").alpha == "1/S"
    assert KL("supports").alpha == "supports"
    for wrong in (0.0, -1.0, math.inf, math.nan, "1/2", "support"):
        with pytest.raises(
            InvalidSetting, match=r'alpha is .* expected a number > 0 such as 0.5, or "1/S", or "supports"'
        ):
            KL(wrong)
    assert KL(scale=0).scale == 0.0 and KL(scale=3).scale == 3.0
    for wrong in (-1e-9, math.inf, math.nan, "1"):
        with pytest.raises(InvalidSetting, match=r"scale is .* expected a finite number >= 0; 1 is the proved radius"):
            KL(scale=wrong)
    assert KL(0.5).certified and KL("1/S").certified and KL("supports").certified
    assert not KL(scale=0.5).certified and not KL(scale=2.0).certified
    assert not type("Mine", (KL,), {})().certified
    assert KL(0.5).share_of(0.75, 3) == 0.75
    assert KL("1/S").dirichlet(4) == 0.25 and KL(0.75).dirichlet(4) == 0.75
    assert KL("supports").dirichlet(4) == kernels.SUPPORTS
    assert KL(0.5).require(problem().forget(rewards=True)) is None
    assert SEARCH == 200


def test_how_many_balls_share_delta():
    """Pairs with more than one possible next state, unknown rewards and an unknown start; one at least."""
    mask = np.zeros((S, A, S), dtype=bool)
    mask[..., 0] = True
    mask[0, 1, 1] = mask[1, 2, 1] = True
    hidden = np.zeros((S, A), dtype=bool)
    hidden[0, :2] = True
    per_step = np.zeros((H, S, A), dtype=bool)
    per_step[0, 0, 0] = per_step[2, 1, 1] = per_step[3, 1, 1] = True
    masks = np.repeat(mask[None], H, axis=0)
    masks[0] = True
    for known, pooled, balls_in_all in (
        (problem(), False, 24),
        (stationary(), True, 6),
        (stationary(), False, 24),
        (stationary(support=mask), True, 2),
        (stationary(support=mask), False, 8),
        (problem(support=masks), False, 6 + 3 * 2),
        (stationary(unknown=hidden), True, 6 + 2),
        (stationary(unknown=hidden), False, 24 + 8),
        (problem(unknown=per_step), False, 24 + 3),
        (problem(start="unknown", s1=0), False, 25),
        (problem(start=[0.5, 0.5], s1=0), False, 24),
        (stationary(support=mask & (np.arange(S) == 0)), True, 1),
    ):
        assert KL(0.5).events(known, pooled) == balls_in_all


def test_what_kernels_are_told_of_kl():
    counts = Counts(counted())
    told = KL(0.25, scale=0.5).evidence(problem(), counts, 0.125, margin(H, 0.5), True)
    assert told.log_union == pytest.approx(math.log(192), rel=1e-15)
    assert (told.alpha, told.scale, told.tie, told.uppers) == (0.25, 0.5, 1e-12, True)
    assert told.margin == pytest.approx(2.0 + 4e-12, rel=1e-15)
    plain = KL("1/S").evidence(problem(), counts, 0.125, margin(H, 0.0))
    assert (plain.alpha, plain.uppers) == (0.0, False)
    assert KL("supports").evidence(problem(), counts, 0.125, margin(H, 0.0)).alpha == kernels.SUPPORTS
    assert plain.margin == pytest.approx(4e-12, rel=1e-12)
    assert np.shares_memory(plain.n_sas, counts.n_sas)


# ---- Certificates ---------------------------------------------------------------------------------------------------


def test_a_certificate():
    assert Certificate(0.0, 0.1, "x").value == 0.0
    assert Certificate(-1.0, 0.1, "x").value == -1.0  # euros
    assert (Certificate(2, 0.1, "x").value, Certificate(2.5, 0.1, "x").delta) == (2.0, 0.1)
    for wrong in (-math.inf, math.inf, math.nan, None):
        with pytest.raises(InvalidSetting, match=r"value is .* expected a certified value, in the units"):
            Certificate(wrong, 0.1, "x")
    with pytest.raises(InvalidSetting, match="fingerprint is 5, expected the fingerprint of a policy"):
        Certificate(1.0, 0.1, 5)
    with pytest.raises(InvalidSetting, match="delta is 1"):
        Certificate(1.0, 1.0, "x")


def test_the_fingerprint_of_a_policy():
    """A hash of the problem's fingerprint, the shape and the numbers, to the last bit."""
    pi = np.full((H, S, A), 1 / 3)
    known = problem()
    text = f'["{known.fingerprint}",[[{H},{S},{A}],"<f8","{sha256(pi.tobytes()).hexdigest()}"]]'
    assert fingerprint_of(pi, known) == sha256(text.encode()).hexdigest()[:32]
    assert fingerprint_of(pi[..., ::-1], known) == fingerprint_of(pi, known)
    other = pi.copy()
    other[0, 0, 0] = math.nextafter(1 / 3, 1)
    assert fingerprint_of(other, known) != fingerprint_of(pi, known)
    assert fingerprint_of(pi, problem(s1=0)) != fingerprint_of(pi, known)
