"""Shared pieces of the tests: the paper's world, and data that looks like the middle of a run."""

import json
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def check_values():
    """Nine worked planning cases, computed apart from this project."""
    return json.loads((DATA / "check-values.json").read_text())


@pytest.fixture(scope="session")
def paper_world():
    return sf.random_mdp(S=5, A=5, H=3, seed=1)


def visited_counts(world, policy, episodes, seed, pooled=False):
    """Counts of `episodes` episodes of a policy, drawn step by step with multinomials (fast, any
    size).
    """
    rng = np.random.default_rng(seed)
    n_sas = np.zeros((world.H, world.S, world.A, world.S), dtype=np.int64)
    at = np.zeros(world.S, dtype=np.int64)
    at[world.s1] = episodes
    for h in range(world.H):
        for s in np.flatnonzero(at):
            pairs = rng.multinomial(at[s], policy[h, s])
            for a in np.flatnonzero(pairs):
                n_sas[h, s, a] = rng.multinomial(pairs[a], world.P[h, s, a])
        at = n_sas[h].sum(axis=(0, 1))
    counts = sf.Counts(n_sas, problem=world.problem)
    return counts.pool() if pooled else counts


@pytest.fixture(scope="session")
def counts_of():
    return visited_counts


SAME = (
    "agent",
    "promise",
    "episodes",
    "seed",
    "floor",
    "optimum",
    "baseline",
    "violations",
    "regret",
    "min_value",
)
SAME += ("first_mixture", "first_optimistic", "sources", "interrupted", "mean_return", "units")


@pytest.fixture(scope="session")
def assert_same_run():
    """Two runs are the same to the last bit; how long they took aside."""

    def compare(one, other):
        for field in SAME:
            assert getattr(one, field) == getattr(other, field), field
        assert one.counts == other.counts
        np.testing.assert_array_equal(one.by_h, other.by_h)
        for field in ("episode", "episodes", "mean", "min", "below", "regret"):
            np.testing.assert_array_equal(getattr(one.curve, field), getattr(other.curve, field))

    return compare


@pytest.fixture(scope="session")
def assert_refused():
    """Refused, by this kind of error and in these words, is this call with what it is given."""

    def check(error, words, call, /, *given, **named):
        with pytest.raises(error, match=words):
            call(*given, **named)

    return check
