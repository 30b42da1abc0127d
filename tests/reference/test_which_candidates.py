"""Many states: which candidates are bounded does not change what is played.

There a plan bounds the optimistic policy, the first splice, the baseline, and what a search over
ranges of splices asks for. Where states are few all candidates are bounded: they say what the
search has to choose.
"""

import itertools

import numpy as np
import pytest

import surefoot as sf

S, A, H = 7, 2, 6


def world(seed):
    rng = np.random.default_rng(seed)
    P = np.zeros((S, A, S))
    for s, a in itertools.product(range(S), range(A)):
        P[s, a, rng.choice(S, 2, replace=False)] = rng.dirichlet(np.ones(2))
    return sf.TabularMDP(P, rng.random((S, A)) * [1.0, 0.5], H=H)


def seen(made, seed):
    """Counts of 23,000 episodes in which action 1 was seldom taken: nothing reaches the floor,
    which is H.
    """
    rarely = np.broadcast_to([0.9997, 0.0003], (H, S, A))
    with pytest.warns(sf.FloorAboveBaseline):
        return sf.simulate(
            made, sf.StepMix(made.problem, rarely, H - 0.01, pooled=True), 23_000, seed
        ).counts


@pytest.mark.parametrize("seed", [0, 1, 11])
def test_a_plan_of_many_states_is_the_one_of_all_candidates(seed, monkeypatch):
    """For floors between and beyond the values of all candidates: the same h, rho, policy and
    lower value, to the bit.
    """
    made = world(seed)
    pi_b = np.random.default_rng(seed).dirichlet([9.0, 1.0], (H, S))
    counts = seen(made, seed)

    def plan(floor, most_values):
        monkeypatch.setattr("surefoot.kernels.candidates.MOST_VALUES", most_values)
        agent = sf.StepMix(made.problem, pi_b, floor, delta=0.1, pooled=True, returns=None)
        return agent.plan(counts)

    values = plan(0.5, 2**60).candidates
    # the last splice of a range does not speak for the others
    assert (np.diff(values[1:-1]) < -1e-6).any()
    chosen, left_out = set(), False
    for floor in (0.05, *(values - 1e-3), *(values[1:] + 1e-3)):
        expected, found = plan(floor, 2**60), plan(floor, 0)
        for name in ("h", "source", "rho", "lower"):
            assert getattr(found, name) == getattr(expected, name)
        np.testing.assert_array_equal(found.policy, expected.policy)
        bounded = found.candidates != 0.0
        np.testing.assert_array_equal(found.candidates[bounded], values[bounded])
        chosen.add(expected.h)
        left_out |= not bounded.all()
    assert len(chosen) > 2 and left_out
