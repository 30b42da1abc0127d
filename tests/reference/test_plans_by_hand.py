"""Plans in a world of which nothing was seen, where each number is a short fraction.

Two steps, two states, two actions, start in state 0. At the first step action 0 leads to state 0
for sure and pays 1/4; action 1 leads anywhere and pays 1/2. At the second step state 0 pays 5/8 or
3/4, state 1 nothing. The baseline always takes action 0. Without data:

    L(0) = 1/2: pi_bar takes action 1 (1/2 + 3/4 at best), then the 3/4, and is worth 1/2 + 0
    L(1) = 1:   pi_b first, then pi_bar: 1/4 + 3/4
    L(2) = 7/8: pi_b: 1/4 + 5/8, and no more
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf

R = np.array([[[0.25, 0.5], [0.0, 0.0]], [[0.625, 0.75], [0.0, 0.0]]])
ANYWHERE = np.ones((2, 2, 2, 2), dtype=bool)
SUPPORT = ANYWHERE.copy()
SUPPORT[0, 0, 0, 1] = False
PI_B = np.eye(2)[np.zeros((2, 2), dtype=int)]
PI_BAR = np.eye(2)[[[1, 0], [1, 0]]]


def planned(kind, floor, support=SUPPORT, pi_b=PI_B, units=None):
    problem = (
        sf.Problem(R, support=support)
        if units is None
        else sf.Problem.rescaled(R, units, support=support)
    )
    return kind(problem, pi_b, floor).plan(sf.Counts.zeros(problem))


@pytest.mark.parametrize(
    ("floor", "source", "h", "rho", "lower", "safety"),
    [
        (0.0, "optimistic", 0, 1.0, 0.5, "certified"),
        (0.5, "optimistic", 0, 1.0, 0.5, "certified"),
        (0.75, "mixture", 1, 0.5, 0.75, "certified"),  # rho = (1 - 3/4) / (1 - 1/2)
        (0.9375, "mixture", 1, 0.125, 0.9375, "certified"),
        (1.0, "mixture", 1, 0.0, 1.0, "certified"),
        (1.125, "baseline", 2, 0.0, 0.875, "trusted"),
    ],
)
def test_stepmix_and_step_no_mix(floor, source, h, rho, lower, safety):
    """The first candidate at the floor, mixed at one step with its neighbour; StepNoMix plays
    the candidate itself.
    """
    for kind in (sf.StepMix, sf.StepNoMix):
        share = rho if kind is sf.StepMix or source != "mixture" else 0.0
        plan = planned(kind, floor)
        assert (plan.source, plan.h, plan.safety) == (source, h, safety)
        assert plan.rho == pytest.approx(share, abs=1e-11) and plan.rho <= share
        assert plan.candidates.tolist() == [0.5, 1.0, 0.875] and plan.upper == 1.25
        assert plan.lower == pytest.approx(lower if share == rho else 1.0, abs=1e-14)
        expected = np.concatenate([PI_B[:h], PI_BAR[h:]])
        if h:
            expected[h - 1] = (1 - share) * PI_B[h - 1] + share * PI_BAR[h - 1]
        assert_allclose(plan.policy, expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize(
    ("floor", "support", "source", "rho", "lower", "safety"),
    [
        (0.5, SUPPORT, "optimistic", 1.0, 0.5, "certified"),
        (0.75, SUPPORT, "mixture", 1 / 3, 0.75, "certified"),  # rho = (7/8 - 3/4) / (7/8 - 1/2)
        (0.875, SUPPORT, "baseline", 0.0, 0.875, "certified"),
        (1.0, SUPPORT, "baseline", 0.0, 0.875, "trusted"),
        # U = 7/8, of which 3/4 is 21/32: rho = (7/8 - 21/32) / (7/8 - 1/2), and rho / 2 + (1 - rho)
        # L_b is proved.
        (sf.Relative(0.25), SUPPORT, "mixture", 7 / 12, 5 / 12 * 0.875 + 7 / 24, "certified"),
        # L_b = 1/4, U = 7/8
        (sf.Relative(0.25), ANYWHERE, "mixture", 7 / 12, 5 / 12 * 0.25 + 7 / 24, "certified"),
    ],
)
def test_epsmix(floor, support, source, rho, lower, safety):
    """One coin between the baseline and pi_bar. A relative floor reads the baseline's UPPER
    value.
    """
    plan = planned(sf.EpsMix, floor, support)
    assert (plan.source, plan.safety) == (source, safety)
    assert plan.rho == pytest.approx(rho, abs=1e-11) and plan.lower == pytest.approx(
        lower, abs=1e-11
    )
    assert_array_equal(plan.policy.first, PI_B)
    assert_array_equal(plan.policy.second, PI_BAR)


@pytest.mark.parametrize(
    ("floor", "low", "high", "expected"),
    [
        (sf.Relative(0.25), 0.0, 1.0, 21 / 32),  # 3/4 of 7/8
        # in the user's units 2 + 2 * 7/8, of which 3/4, less 2, halved
        (sf.Relative(0.25), 1.0, 3.0, 13 / 32),
        (sf.Below(0.125), 0.0, 1.0, 3 / 4),
        (sf.Below(0.5), 1.0, 3.0, 5 / 8),  # half as much here
        (sf.Relative(0.25), 10.0, 11.0, 0.0),  # 3/4 of 20 7/8 is below all that is possible
        (sf.Below(1.5), 0.0, 1.0, 0.0),
    ],
)
def test_a_floor_that_depends_on_the_baseline(floor, low, high, expected):
    """Rounded up: never below the exact number."""
    found = planned(sf.StepMix, floor, units=sf.Units(low, high)).grounds.floor
    assert expected <= found <= expected + 1e-14


# ---- Which returns are possible ------------------------------------------------------------------

SIXTEENTH, UNITS = 2**16, 2**20  # of the multiples of 2^-20 in which returns are summed
# two steps, two states, two actions
HALF = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]]])
PAID = np.array([[[2.0, 8.0], [1.0, 3.0]], [[4.0, 6.0], [9.0, 5.0]]]) / 16
TO_1 = np.broadcast_to(np.array([False, True]), (2, 2, 2, 2))
BY_NEXT = np.zeros((2, 2, 2, 2))
BY_NEXT[0] = np.array([2, 1]) / 16
BY_NEXT[1, :, :, 0] = np.array([[4, 6], [9, 5]]) / 16
BY_NEXT[1, 1, :, 1] = 1 / 16
HIDDEN = np.zeros((2, 2, 2), dtype=bool)
HIDDEN[1, 0, 0] = True


@pytest.mark.parametrize(
    ("known", "lowest", "width"),
    [
        # From state 0: 2, and then the worst or best that is played anywhere: 4 or 6 in state 0, 5
        # in state 1.
        ({"r": PAID}, 6 * SIXTEENTH, 2 * SIXTEENTH),
        ({"r": PAID, "s1": 1}, 5 * SIXTEENTH, 4 * SIXTEENTH),  # 1 to 3, and then the same
        ({"r": PAID, "start": [0.5, 0.5]}, 5 * SIXTEENTH, 4 * SIXTEENTH),
        ({"r": PAID, "start": "unknown"}, 5 * SIXTEENTH, 4 * SIXTEENTH),
        ({"r": PAID, "support": TO_1}, 7 * SIXTEENTH, 0),
        # To state 0: 2 and 0 to 6; to state 1: 1 and 1 or 5.
        ({"r_next": BY_NEXT}, 2 * SIXTEENTH, 6 * SIXTEENTH),
        # where a reward is unknown it is 0 to 1
        ({"r": PAID, "unknown": HIDDEN}, 2 * SIXTEENTH, UNITS),
        # each reward is rounded down to a multiple
        ({"r": np.full((2, 2, 2), 0.1)}, 2 * 104857, 0),
    ],
)
def test_the_range_of_the_returns_of_a_baseline(known, lowest, width):
    agent = sf.EpsMix(sf.Problem(known.pop("r", None), **known), HALF, 0.0)
    assert agent.return_range == (lowest, width)


# ---- ties between actions


def twin_actions(copies, seed, S):
    """Every action `copies` times over: the same rewards and the same data."""
    rng = np.random.default_rng(seed)
    n_sas = np.tile(rng.integers(10**6, 10**8, size=(3, S, 2, S)), (1, 1, copies, 1))
    return sf.Problem(np.tile(rng.random((3, S, 2)), (1, 1, copies))), sf.Counts(n_sas)


@pytest.mark.parametrize("S", [2, 3, 8, 9])
@pytest.mark.parametrize("bounds", [sf.KL(), sf.Bernstein()], ids=str)
def test_the_first_of_twin_actions_is_taken(bounds, S):
    """Matrix products round equal rows by their place, which broke ties here once, at S = 8, 9."""
    for copies, seed in ((2, 0), (3, 1), (5, 2), (5, 3)):
        problem, counts = twin_actions(copies, seed, S)
        bold = sf.BPIUCBVI(problem, bounds=bounds).plan(counts).policy
        assert (bold.argmax(axis=2) < 2).all()  # the first two are the originals
        world = sf.random_mdp(S, 2, 3, seed)
        twins = sf.TabularMDP(np.tile(world.P, (1, 1, copies, 1)), np.tile(world.r, (1, 1, copies)))
        assert (sf.solve(twins).policy.argmax(axis=2) < 2).all()
