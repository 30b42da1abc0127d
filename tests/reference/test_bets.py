"""The bound of an unknown reward by a coin and bets: against exact arithmetic, and how likely it is
ever wrong.

With weights that are fixed beforehand, 3/4 coin + 1/8 bets above m + 1/8 bets below m stays below
1/delta_0 for all numbers of rewards at once with probability at least 1 - delta_0, if the mean is
m: one event for both ends.

- Safe side: at both ends the average of the REWARDS THEMSELVES, factor by factor in 60 digits, is
  at least 1/delta_0.
- Coverage: for rewards of 0 and 1, and for three values, the probability that an end ever passes
  the mean is computed by dynamic programming over counts. Nothing is drawn. Controls that fail: a
  stake that is chosen in hindsight, sums of x (1 - x) that are too large, and the coin and the bets
  each at the full level.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surefoot as sf
from crossing import crossing_probability
from plain_loop import simulate_plainly
from returns import LAWS, UNITS, in_units
from saved import reloaded
from surefoot.audit import verifier
from surefoot.base.bets import COIN, COSTS, STAKES, WEIGHTS, between
from surefoot.kernels import bets as kernel
from surefoot.logs.methods.learnt import coin_lower


def sums(x):
    return float(len(x)), x.sum() / UNITS, between(x).sum() / UNITS


# ---- what is kept, and what is staked


def test_the_weights_add_up_to_one_with_both_sides():
    assert COIN + 2 * sum(WEIGHTS) == 1.0 and len(STAKES) == len(WEIGHTS) == len(COSTS)
    assert all(0 < theta < 1 for theta in STAKES)
    with mpmath.workdps(60):
        for theta, cost in zip(STAKES, COSTS, strict=True):
            exact = -mpmath.log(1 - mpmath.mpf(theta)) - theta
            assert exact <= cost <= exact * (1 + 2**-48)


def test_between_is_rounded_down_and_symmetric():
    for x in (0, 1, 2, 1023, 1024, UNITS // 2, UNITS - 1, UNITS):
        assert between(x) == math.floor(x * (UNITS - x) / UNITS) == between(UNITS - x)
    assert between(0) == between(UNITS) == between(1) == 0 and between(UNITS // 2) == UNITS // 4


@pytest.mark.parametrize("theta", STAKES)
def test_the_inequality(theta):
    """log(1 + y) >= y + (log(1-theta) + theta) (y/theta)^2 for y >= -theta; and it is not so for
    a smaller cost.
    """
    c = -math.log1p(-theta) - theta
    y = np.concatenate([np.linspace(-theta, 10, 4001), np.geomspace(1e-9, 1e6, 2000)])
    assert (np.log1p(y) >= y - c * (y / theta) ** 2 - 1e-12 * (1 + np.abs(y))).all()
    assert (np.log1p(y) < y - 0.99 * c * (y / theta) ** 2).any()


# ---- the bound


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [1, 7, 100, 3000])
def test_both_ends_come_from_one_side_less_a_margin(law, n):
    n, x, z = sums(in_units(law, n))
    for level in (0.5, 0.02, 1e-6):
        log_inverse = math.log(1 / level)
        low, up = (kernel.average_lower(n, end, z, log_inverse) for end in (x, n - x))
        for margin in (0.0, 0.125):
            found = kernel.average_bounds(n, x, z, log_inverse, 1.0, margin)
            expected = max(low - margin, 0.0), min(1.0 - up + margin, 1.0)
            assert found == pytest.approx(expected, abs=1e-15)


def average(x, m):
    """3/4 coin + bets above m, of the rewards themselves, in 60 digits."""
    values, times = np.unique(x, return_counts=True)
    with mpmath.workdps(60):
        n, X, m = len(x), mpmath.mpf(int(x.sum())) / UNITS, mpmath.mpf(m)
        mixture = (
            mpmath.gamma(X + 0.5) * mpmath.gamma(n - X + 0.5) / mpmath.pi / mpmath.gamma(n + 1)
        )
        whole = COIN * mixture / (m**X * (1 - m) ** (n - X))
        for theta, weight in zip(STAKES, WEIGHTS, strict=True):
            product = mpmath.mpf(weight)
            for value, k in zip(values.tolist(), times.tolist(), strict=True):
                product *= (1 - theta + theta * mpmath.mpf(value) / UNITS / m) ** k
            whole += product
        return whole


def of_sums(m, x):
    """The logarithm of what the sums of these rewards say of that."""
    n, X, Z = sums(x)
    return kernel.log_average(m, n, X, Z, kernel.log_mixture(n, X))


# How much of the way from an end to the mean rewards themselves would prove beyond it, at most,
# from 400 rewards on: nothing is lost of rewards of 0 and 1, which the coin bounds; of others, what
# (n, X, Z) do not say
LOST = {"coin": 0.05, "rare": 0.05, "zeros": 0.05, "ones": 0.05, "low": 0.2}


@pytest.mark.parametrize("law", LAWS)
def test_both_ends_are_on_the_safe_side(law):
    """At an end the average is at least 1/delta_0. A little nearer to the mean it is not."""
    for n in (1, 20, 400, 3000):
        x = in_units(law, n)
        for seen in (x, UNITS - x):
            found, mean = kernel.average_lower(*sums(seen), math.log(50.0)), seen.mean() / UNITS
            if found == 0.0:  # 50 is reached below 2^-60, if at all
                assert mean == 0.0 or (n == 1 and of_sums(2.0**-60 * mean, seen) < math.log(50.0))
                continue
            assert 0.0 < found < mean and average(seen, found) >= 50
            assert n < 400 or average(seen, found + LOST.get(law, 0.4) * (mean - found)) < 50


@pytest.mark.parametrize("law", LAWS)
def test_the_verifier_believes_what_is_proved(law):
    """Its bound is proved by the rewards themselves and no looser than ours; what is a little
    above it is refused.
    """
    with localcontext(verifier.DIGITS):
        for n in (20, 400, 3000):
            x, log_share = in_units(law, n), Decimal(50).ln()
            for seen in (x, UNITS - x):
                X, Z = Fraction(int(seen.sum()), UNITS), Fraction(int(between(seen).sum()), UNITS)
                found = verifier.coin_and_bets(n, X, Z, log_share, 1)
                ours = kernel.average_lower(*sums(seen), math.log(50.0))
                assert abs(float(found) - ours) <= 1e-11 and (
                    found == 0 or average(seen, str(found)) >= 50
                )
                X, Z = Decimal(int(seen.sum())) / UNITS, Decimal(int(between(seen).sum())) / UNITS
                for share in (Decimal("1e-9"), verifier.HALF):
                    above = found + share * (X / n - found)
                    assert X == 0 or not verifier.average_proves(above, n, X, Z, log_share)


def test_a_bound_that_is_too_large_is_noticed():
    """Control of the safe side: rewards of 0 and 1, counted as if all were the same."""
    x = in_units("coin", 400)
    n, X, _ = sums(x)
    assert average(x, kernel.average_lower(n, X, X * (1 - X / n), math.log(50.0))) < 50


def test_less_of_z_is_looser():
    """Half of it, or none, as of counts that do not hold it: never a larger lower end."""
    n, X, Z = sums(in_units("smooth", 400))
    ends = [kernel.average_lower(n, X, share * Z, 3.0) for share in (0.0, 0.5, 1.0)]
    assert ends == sorted(ends) and ends[0] < ends[2] - 0.01


def test_what_is_gained_and_lost_beside_the_coin():
    """Constant 1/2, 100 rewards, level 1/20: 0.46 instead of 0.33. Rewards of 0 and 1 lose
    log(4/3) at most.
    """
    log_inverse = math.log(20.0)
    assert coin_lower(100.0, 50.0, log_inverse) < 0.38
    assert kernel.average_lower(100.0, 50.0, 25.0, log_inverse) > 0.45
    for n, X in ((10, 3), (1000, 700), (5000, 100)):
        worst = coin_lower(float(n), float(X), log_inverse + math.log(4 / 3))
        assert kernel.average_lower(float(n), float(X), 0.0, log_inverse) >= worst - 1e-9


def test_the_average_falls_in_m():
    """Of the kernel, too: there is one m to be found. (Without the peaks of its bets it would
    not fall.)
    """
    for law in LAWS:
        for n in (5, 60, 61, 1000):
            seen = sums(in_units(law, n))
            if seen[1] == 0:
                continue
            means = np.linspace(0.02, 1.0, 400) * seen[1] / n
            means = means[means < 1.0]
            log_m = kernel.log_mixture(*seen[:2])
            logs = np.array([kernel.log_average(m, *seen, log_m) for m in means])
            assert (np.diff(logs) <= 1e-9 * np.abs(logs[1:]) + 1e-9).all()


# ---- exact probabilities

VALUES = {"0/1": (0, UNITS), "three": (0, UNITS * 3 // 8, UNITS)}


def crossed(counts, values, mean, log_inverse, rule):
    """Does an end of the interval of so many rewards of each value pass the mean?"""
    n = float(sum(counts))
    X = sum(k * x for k, x in zip(counts, values, strict=True)) / UNITS
    Z = sum(k * between(x) for k, x in zip(counts, values, strict=True)) / UNITS
    if rule == "z too large":  # by as much as it may be at most
        Z = X * (1 - X / n)
    # of capitals of bets on either side, factor by factor
    if rule in ("hindsight", "each at the full level"):
        sides = ((mean, values), (1 - mean, [UNITS - x for x in values]))
        logs = [
            [
                sum(
                    k * math.log(1 - t + t * x / UNITS / m)
                    for k, x in zip(counts, paid, strict=True)
                )
                for t in STAKES
            ]
            for m, paid in sides
        ]
        if rule == "hindsight":  # the best stake
            return max(map(max, logs)) >= log_inverse
        low, up = coin_lower(n, X, log_inverse), 1.0 - coin_lower(n, n - X, log_inverse)
        capitals = [
            sum(w / sum(WEIGHTS) * math.exp(x) for w, x in zip(WEIGHTS, side, strict=True))
            for side in logs
        ]
        return low > mean or up < mean or math.log(max(capitals)) >= log_inverse
    low, up = kernel.average_bounds(n, X, Z, log_inverse, 1.0, 0.0)
    return low > mean or up < mean


def missing_probability(values, shares, level, visits, rule="ours"):
    """The probability that the interval of rewards with these shares ever misses their mean
    within so many visits.
    """
    mean = sum(x * p for x, p in zip(values, shares, strict=True)) / UNITS
    return crossing_probability(
        [shares] * visits,
        lambda counts: crossed(counts, values, mean, math.log(1 / level), rule),
        dropped=1e-15,
    )


@pytest.mark.parametrize("level", [0.5, 0.05])
@pytest.mark.parametrize("mean", [0.05, 0.5, 0.9])
def test_rewards_of_0_and_1(mean, level):
    """Both ends, one level, 120 visits; what was dropped, less than 1e-9 in all, is within the
    comparison.
    """
    found = missing_probability(VALUES["0/1"], (1 - mean, mean), level, 120)
    assert 0.001 * level < found <= level + 1e-9


@pytest.mark.parametrize(
    ("shares", "least"),
    [((0.2, 0.6, 0.2), 0.002), ((0.02, 0.96, 0.02), 1e-7), ((0.05, 0.0, 0.95), 0.05)],
)
def test_three_values(shares, least):
    """0, 3/8 and 1; the less they vary, the less of the level is used in so few visits. Of rewards
    of 0 and 1 it is a third: the test is not passed by bounds that never miss.
    """
    assert least < missing_probability(VALUES["three"], shares, 0.2, 35) <= 0.2


def test_a_stake_that_is_chosen_in_hindsight_fails():
    """Control: the best stake with all of the capital."""
    assert missing_probability(VALUES["0/1"], (0.5, 0.5), 0.5, 120, "hindsight") > 0.5


def test_sums_that_are_too_large_fail():
    """Control: x (1 - x) as large as it can be for their sum, as if all rewards were the same."""
    assert missing_probability(VALUES["0/1"], (0.5, 0.5), 0.05, 120, "z too large") > 0.05


def test_coin_and_bets_at_the_full_level_each_fail():
    """Control: "whichever is better" is not an average."""
    assert missing_probability(VALUES["0/1"], (0.5, 0.5), 0.5, 120, "each at the full level") > 0.5


# ---- in counts and plans


def test_every_way_of_counting_counts_the_same():
    """One by one, in the fused loop, plan by plan, in blocks; pooled, merged, saved."""
    rng = np.random.default_rng(0)
    P, r = rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2))
    world = sf.TabularMDP(P, r, H=4)
    problem = world.problem.forget(rewards=True)
    agent = sf.EpsMix(problem, sf.uniform(4, 3, 2), sf.Relative(0.1), pooled=True, replan=0.0)
    fast, plain = (
        run(world, agent, 40, 3, progress=False).counts for run in (sf.simulate, simulate_plainly)
    )
    assert fast == plain and fast.z_sa.any()
    inner = between(np.floor(r * UNITS).astype(np.int64))
    assert_array_equal(fast.z_sa[0], fast.played[0] * inner)
    blocks = sf.EpsMix(problem, sf.uniform(4, 3, 2), sf.Relative(0.1), pooled=True, replan=0.1)
    drawn = sf.simulate(world, blocks, 40, 3, progress=False).counts
    assert_array_equal(drawn.z_sa[0], drawn.played[0] * inner)
    other = sf.simulate(world, agent, 25, 4, progress=False).counts
    assert_array_equal(fast.merge(other).z_sa, fast.z_sa + other.z_sa)
    per_step = sf.EpsMix(problem, sf.uniform(4, 3, 2), sf.Relative(0.1))
    steps = sf.simulate(world, per_step, 30, 3, progress=False).counts
    assert_array_equal(steps.pool().z_sa[0], steps.z_sa.sum(axis=0))
    coins = sf.simulate(
        sf.TabularMDP(P, r, H=4, random_rewards=True), agent, 40, 3, progress=False
    ).counts
    assert coins.x_sa.any() and not coins.z_sa.any()


def test_counts_keep_z_and_refuse_what_it_cannot_be(tmp_path):
    counts = sf.Counts([[[5]]], H=1, x_sa=[[3 * UNITS]], z_sa=[[UNITS]])
    assert reloaded(counts, tmp_path) == counts == counts.copy()
    assert counts != sf.Counts([[[5]]], H=1, x_sa=[[3 * UNITS]])
    most = int(3 * UNITS * (1 - 3 / 5))  # where all five rewards are 3/5
    sf.Counts([[[5]]], H=1, x_sa=[[3 * UNITS]], z_sa=[[most]])
    with pytest.raises(sf.InvalidCounts, match="z_sa is larger"):
        sf.Counts([[[5]]], H=1, x_sa=[[3 * UNITS]], z_sa=[[most + 2]])
    # by a 10^12th, which floats would not show
    with pytest.raises(sf.InvalidCounts, match="z_sa is larger"):
        sf.Counts([[[2_000_000]]], H=1, x_sa=[[1]], z_sa=[[1]])
    with pytest.raises(sf.InvalidCounts, match="without x_sa"):
        sf.Counts([[[5]]], H=1, z_sa=[[0]])
