"""Mixtures of policies: the theorems behind StepMix and EpsMix, on worlds that hypothesis picks.

Hypothesis runs derandomised here, so every run tries the same examples: deterministic, no error
rates.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefoot as sf

examples = settings(max_examples=75, deadline=None, derandomize=True, database=None)

weights = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 1e-12, 1 - 1e-12]), st.floats(0.0, 1.0, allow_subnormal=False)
)


def rows(rng, shape, size):
    """Distributions: spread out, nearly certain, or certain, at random."""
    drawn = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0, 10.0])), size=shape)
    certain = np.eye(size)[rng.integers(size, size=shape)]
    return np.where(rng.random((*shape, 1)) < 0.3, certain, drawn)


@st.composite
def worlds(draw, max_steps=5):
    S, A, H = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, max_steps))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = () if draw(st.booleans()) else (H,)
    r = rng.random((*steps, S, A))
    r[rng.random(r.shape) < 0.2] = rng.choice([0.0, 1.0])
    return sf.TabularMDP(rows(rng, (*steps, S, A), S), r, s1=int(rng.integers(S)), H=H)


@st.composite
def worlds_with_policies(draw, how_many=2):
    world = draw(worlds())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return world, *(rows(rng, (world.H, world.S), world.A) for _ in range(how_many))


def tolerance(world):
    return 1e-12 * world.H


def blend(x, y, rho):
    return (1 - rho) * x + rho * y


def gaps(world, first, second, rho):
    """How far V and the occupancy of a step mixture are from the straight line between its two
    sides.
    """
    mixed = sf.step_mixture(first, second, rho)
    return tuple(
        np.abs(
            measure(world, mixed) - blend(measure(world, first), measure(world, second), rho)
        ).max()
        for measure in (sf.policy_value, sf.occupancy)
    )


# ---- Linearity in rho ----------------------------------------------------------------------------


@examples
@given(worlds_with_policies(), weights)
def test_neighbouring_splices_mix_linearly(case, rho):
    """They differ at one step, so V (from every state and step) and the occupancy are linear in
    rho, for every h0.
    """
    world, pi_b, pi_bar = case
    for h in range(1, world.H + 1):
        neighbours = sf.splice(pi_b, pi_bar, h), sf.splice(pi_b, pi_bar, h - 1)
        assert max(gaps(world, *neighbours, rho)) <= tolerance(world)


def test_two_steps_rarely_mix_linearly():
    """Control: in most random worlds, splices two apart miss the line by over 1e-3 (fixed seeds:
    deterministic).
    """
    missed = 0
    for seed in range(40):
        world = sf.random_mdp(3, 3, 3, seed)
        rng = np.random.default_rng(seed)
        pi_b, pi_bar = (np.eye(3)[rng.integers(3, size=(3, 3))] for _ in range(2))
        missed += gaps(world, sf.splice(pi_b, pi_bar, 2), sf.splice(pi_b, pi_bar, 0), 0.5)[0] > 1e-3
    assert missed >= 20


@examples
@given(worlds_with_policies(), weights)
def test_a_coin_is_always_linear(case, rho):
    """An EpisodicMixture's value and occupancy lie on the line, at however many steps its two
    sides differ.
    """
    world, first, second = case
    mixture = sf.EpisodicMixture(first, second, rho)
    for measure in (sf.policy_value, sf.occupancy):
        line = blend(measure(world, first), measure(world, second), rho)
        np.testing.assert_allclose(measure(world, mixture), line, atol=tolerance(world), rtol=0)
    lo, hi = sorted(sf.policy_value(world, pi)[0, world.s1] for pi in (first, second))
    value = sf.policy_value(world, mixture)[0, world.s1]
    assert lo - tolerance(world) <= value <= hi + tolerance(world)


# ---- What splices and mixtures are ---------------------------------------------------------------


@examples
@given(worlds_with_policies(), weights)
def test_a_step_mixture_is_a_policy(case, rho):
    world, first, second = case
    mixed = sf.step_mixture(first, second, rho)
    np.testing.assert_array_equal(sf.check_policy(mixed, world.problem), mixed)
    assert (mixed >= 0).all()
    np.testing.assert_allclose(mixed.sum(axis=2), 1.0, atol=1e-14, rtol=0)
    np.testing.assert_array_equal(sf.step_mixture(first, second, 0.0), first)
    np.testing.assert_array_equal(sf.step_mixture(first, second, 1.0), second)


@examples
@given(worlds_with_policies(), weights)
def test_a_step_mixture_copies_what_both_sides_share(case, rho):
    """Rounding must not move an entry on which the two sides agree."""
    world, pi_b, pi_bar = case
    for h in range(1, world.H + 1):
        first, second = sf.splice(pi_b, pi_bar, h), sf.splice(pi_b, pi_bar, h - 1)
        mixed, same = sf.step_mixture(first, second, rho), first == second
        np.testing.assert_array_equal(mixed[same], first[same])
        assert same[np.arange(world.H) != h - 1].all()


def test_the_plain_formula_would_move_them():
    """Control: (1-rho) x + rho x is not always x in floating point, so copying is not idle."""
    x = np.random.default_rng(0).random(1000)
    assert (blend(x, x, 0.3) != x).any()


@pytest.mark.parametrize("h0", [-1, 3, 1.5])
def test_there_is_no_splice_outside_the_steps(h0):
    pi = sf.uniform(2, 2, 2)
    with pytest.raises(sf.InvalidSetting):
        sf.splice(pi, pi, h0)


@pytest.mark.parametrize("rho", [-1e-9, 1 + 1e-9, float("nan")])
def test_there_is_no_weight_outside_0_and_1(rho):
    pi = sf.uniform(2, 2, 2)
    for mix in (sf.step_mixture, sf.EpisodicMixture):
        with pytest.raises(sf.InvalidSetting):
            mix(pi, pi, rho)


class Tossed:
    """A generator whose next number is known."""

    def __init__(self, u):
        self.u = u

    def random(self):
        return self.u


@pytest.mark.parametrize("rho", [0.25, 0.5, 0.9])
def test_the_coin_falls_on_the_second_with_probability_rho(rho):
    """u < rho is the second, u >= rho the first: of uniform numbers that is a share of rho,
    exactly.
    """
    first, second = np.eye(2)[np.zeros((1, 1), int)], np.eye(2)[np.ones((1, 1), int)]
    coin = sf.EpisodicMixture(first, second, rho)
    for u in (0.0, rho / 2, np.nextafter(rho, 0.0)):
        assert np.array_equal(coin.draw(Tossed(u)), second)
    for u in (rho, (1 + rho) / 2, np.nextafter(1.0, 0.0)):
        assert np.array_equal(coin.draw(Tossed(u)), first)
