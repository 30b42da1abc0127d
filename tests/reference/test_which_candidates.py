"""Many states: which candidates are bounded does not change what is played.

In lists a plan bounds the optimistic policy, the first splice, the baseline, and what a search over
ranges of splices asks for. In tables all candidates are bounded: they say what the search has to
choose.
"""

import itertools

import numpy as np
import pytest

import surefoot as sf
from in_lists import in_lists
from surefoot.model import transitions

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
    lower value.
    """
    made = world(seed)
    pi_b = np.random.default_rng(seed).dirichlet([9.0, 1.0], (H, S))

    def plan(floor, counts):
        return sf.StepMix(made.problem, pi_b, floor, delta=0.1, pooled=True, returns=None).plan(
            counts
        )

    in_table = seen(made, seed)
    values = plan(0.5, in_table).candidates
    # the last splice of a range does not speak for the others
    assert (np.diff(values[1:-1]) < -1e-6).any()
    floors = [0.05, *(values - 1e-3), *(values[1:] + 1e-3)]
    expected = [plan(floor, in_table) for floor in floors]
    monkeypatch.setattr(transitions, "MOST_IN_A_TABLE", 1)
    listed = in_lists(in_table, made.problem)
    for floor, all_bounded in zip(floors, expected, strict=True):
        found = plan(floor, listed)
        assert (found.h, found.source) == (all_bounded.h, all_bounded.source)
        assert (found.rho, found.lower) == pytest.approx(
            (all_bounded.rho, all_bounded.lower), abs=1e-8
        )
        np.testing.assert_allclose(found.policy, all_bounded.policy, atol=1e-8, rtol=0)
        bounded = found.candidates != 0.0
        np.testing.assert_allclose(found.candidates[bounded], values[bounded], atol=1e-10, rtol=0)
    assert len({plan.h for plan in expected}) > 2
