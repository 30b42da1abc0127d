"""Worlds so small that every policy and every trajectory can be listed: enumeration against
backward induction.

Probabilities are multiplied as fractions built from the very floats of the world, so the
enumeration has no rounding. Fixed seeds: deterministic.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surefoot as sf

SIZES = [(2, 2, 2), (2, 2, 3), (3, 2, 2), (2, 3, 2)]  # S, A, H
SEEDS = range(5)


def small_world(size, seed, s1=0, stationary=False):
    """A random world whose last step pays most, so that looking ahead matters."""
    S, A, H = size
    drawn = sf.random_mdp(S, A, H, seed, stationary=stationary)
    r = np.array(drawn.r)
    r[:-1] *= 0.25
    return sf.TabularMDP(drawn.P_rows[0] if stationary else drawn.P, r, s1=s1, H=H)


@pytest.fixture(params=product(SIZES, SEEDS), ids=lambda p: "x".join(map(str, p[0])) + f"-{p[1]}")
def world(request):
    size, seed = request.param
    return small_world(size, seed, s1=seed % size[0])


def deterministic_policies(world):
    """All A^(S*H) of them."""
    for choice in product(range(world.A), repeat=world.S * world.H):
        yield np.eye(world.A)[np.reshape(choice, (world.H, world.S))]


def random_policies(world, how_many, seed):
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        yield rng.dirichlet(np.ones(world.A), size=(world.H, world.S))


def fractions(array):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array))


def by_trajectories(P, r, policy, s1):
    """The value and the occupancy of a policy: the probability of every (s, a, s, a, ...) times
    what it earns.
    """
    H, S, A = r.shape
    pi = fractions(policy)
    value, d, total = Fraction(0), np.full((H, S, A), Fraction(0), dtype=object), Fraction(0)
    for pairs in product(product(range(S), range(A)), repeat=H):
        probability = Fraction(int(pairs[0][0] == s1))
        for h, (s, a) in enumerate(pairs):
            if probability == 0:
                break
            probability *= pi[h, s, a]
            if h + 1 < H:
                probability *= P[h, s, a, pairs[h + 1][0]]
        if probability == 0:
            continue
        total += probability
        value += probability * sum(r[h, s, a] for h, (s, a) in enumerate(pairs))
        for h, (s, a) in enumerate(pairs):
            d[h, s, a] += probability
    assert abs(total - 1) < Fraction(1, 10**14)  # nothing was forgotten, nothing listed twice
    return value, d


def agree(world, policy, P=None):
    """Do enumeration and the library give the same value and occupancy?"""
    value, d = by_trajectories(
        fractions(world.P) if P is None else P, fractions(world.r), policy, world.s1
    )
    same_value = abs(float(value) - sf.value(world, policy)) <= 1e-12
    return same_value and np.abs(d.astype(float) - sf.occupancy(world, policy)).max() <= 1e-12


def test_the_best_of_all_policies_is_the_optimum(world):
    values = [sf.value(world, pi) for pi in deterministic_policies(world)]
    best = sf.solve(world)
    assert len(values) == world.A ** (world.S * world.H)
    assert max(values) == pytest.approx(best.value, abs=1e-12)
    assert sf.value(world, best.policy) == pytest.approx(best.value, abs=1e-12)
    # The optimum is the best from EVERY state and step, not from the start alone.
    tables = np.array([sf.policy_value(world, pi) for pi in deterministic_policies(world)])
    assert_allclose(tables.max(axis=0), best.V, atol=1e-12, rtol=0)


def test_every_policy_by_all_its_trajectories(world):
    P, r = fractions(world.P), fractions(world.r)
    for pi in [*deterministic_policies(world), *random_policies(world, 5, seed=7)]:
        value, d = by_trajectories(P, r, pi, world.s1)
        assert sf.policy_value(world, pi)[0, world.s1] == pytest.approx(float(value), abs=1e-12)
        assert_allclose(sf.occupancy(world, pi), d.astype(float), atol=1e-12, rtol=0)


@pytest.mark.parametrize("size", SIZES)
def test_a_stationary_world_stored_once(size):
    world = small_world(size, seed=5, s1=1, stationary=True)
    assert world.stationary and len(world.P_rows) == 1
    policies = list(deterministic_policies(world))
    assert all(agree(world, pi) for pi in [*policies[:8], *random_policies(world, 5, seed=9)])
    values = [sf.value(world, pi) for pi in policies]
    assert max(values) == pytest.approx(sf.solve(world).value, abs=1e-12)


def test_an_episodic_mixture_by_all_its_trajectories(world):
    first, second = random_policies(world, 2, seed=10)
    mixture = sf.EpisodicMixture(first, second, 0.375)
    P, r = fractions(world.P), fractions(world.r)
    (v1, d1), (v2, d2) = (
        by_trajectories(P, r, first, world.s1),
        by_trajectories(P, r, second, world.s1),
    )
    rho = Fraction(3, 8)
    assert sf.policy_value(world, mixture)[0, world.s1] == pytest.approx(
        float((1 - rho) * v1 + rho * v2), abs=1e-12
    )
    d = ((1 - rho) * d1 + rho * d2).astype(float)
    assert_allclose(sf.occupancy(world, mixture), d, atol=1e-12, rtol=0)


# ---- Controls: what these comparisons would notice -----------------------------------------------


def test_taking_the_best_reward_now_is_not_the_optimum():
    """Control: a short-sighted policy would be caught in a good share of these worlds."""
    caught = 0
    for size, seed in product(SIZES, SEEDS):
        world = small_world(size, seed)
        caught += (sf.solve(world).V - sf.policy_value(world, sf.greedy(world.r))).max() > 1e-3
    assert caught >= 8


def test_the_wrong_steps_dynamics_are_noticed(world):
    """Control: the same enumeration with every step using the NEXT step's transitions disagrees."""
    (pi,) = random_policies(world, 1, seed=11)
    assert agree(world, pi)
    assert not agree(world, pi, P=fractions(np.roll(world.P, -1, axis=0)))


def test_the_comparison_is_sharp(world):
    """Control: one transition moved by a millionth is noticed."""
    P = np.array(world.P)
    shift = 1e-6 * P[0, world.s1, 0, 0]
    P[0, world.s1, 0, 0] -= shift
    P[0, world.s1, 0, 1] += shift
    (pi,) = random_policies(world, 1, seed=12)
    assert not agree(world, pi, P=fractions(P))
