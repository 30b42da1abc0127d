"""Small worlds of every kind of knowledge: what is possible, what is paid, where episodes start."""

from typing import NamedTuple

import numpy as np
import pytest

import surefoot as sf
from surefoot.model.rows import Rows
from surefoot.model.transitions import Transitions

S, A, H = 3, 2, 3
# seed, and floor as a share of the baseline's value, that make all three exits be taken; and when
# pooled
KINDS = {
    "plain": ((3, 0.5), (3, 0.7)),
    "support": ((0, 0.6), (2, 0.8)),
    "by-next-state": ((0, 0.6), (4, 0.8)),
    "by-next-state-random": ((4, 0.7), (0, 0.8)),
    "unknown-random": ((1, 0.4), (0, 0.3)),
    "unknown-deterministic": ((0, 0.3), (3, 0.4)),
    "unknown-in-places": ((2, 0.5), (4, 0.8)),
    "several-starts": ((4, 0.5), (1, 0.3)),
    "unknown-start": ((1, 0.7), (3, 0.3)),
    "one-start-unknown": ((1, 0.6), (1, 0.8)),
    "all-but-rewards": ((4, 0.7), (0, 0.6)),
    "all-together": ((0, 0.3), (3, 0.3)),
}
LATE = ("plain", "support", "several-starts", "unknown-start", "one-start-unknown")


class Case(NamedTuple):
    world: sf.TabularMDP
    problem: sf.Problem  # what its learner knows
    baseline: np.ndarray
    floor: float


def make(kind, pooled):
    """A sparse world of this kind. Dynamics (and rewards) depend on the step unless counts are
    to be pooled.
    """
    seed, share = KINDS[kind][pooled]
    rng = np.random.default_rng([list(KINDS).index(kind), pooled, seed])
    steps = () if pooled else (H,)
    P = rng.dirichlet(np.ones(S), size=(*steps, S, A)) * (rng.random((*steps, S, A, S)) < 0.7)
    P[..., 0] += P.sum(axis=-1) == 0.0
    P /= P.sum(axis=-1, keepdims=True)
    after = kind.startswith("by-next-state") or kind.startswith("all")
    r = rng.random((*steps, S, A, S) if after else (*steps, S, A))
    if kind in LATE:  # known rewards that the dynamics decide, or nothing is left to learn
        r = np.concatenate(
            [0.1 * rng.random((H - 1, S, A)), np.repeat(rng.random((1, S, 1)), A, axis=2)]
        )
    several = kind in ("several-starts", "unknown-start") or kind.startswith("all")
    world = sf.TabularMDP(
        P,
        None if after else r,
        s1=0 if several else 1,
        H=H,
        start=[0.5, 0.2, 0.3] if several else None,
        r_next=r if after else None,
        random_rewards=kind in ("by-next-state-random", "unknown-random", "all-together"),
    )
    if kind == "support" or kind.startswith("all"):
        world = world.with_support()
    problem = world.problem
    if kind in ("unknown-random", "unknown-deterministic", "all-together"):
        problem = problem.forget(rewards=True)
    if kind in ("unknown-start", "one-start-unknown") or kind.startswith("all"):
        problem = problem.forget(start=True)
    if kind == "unknown-in-places":
        hidden = rng.random((*steps, S, A)) < 0.5
        problem = sf.Problem(r, 1, H, stationary=pooled, unknown=hidden)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=3.0)
    return Case(
        world, problem, baseline, share * world.at_start(sf.policy_value(world, baseline)[0])
    )


@pytest.fixture(params=list(KINDS))
def kind(request):
    """The name of one kind."""
    return request.param


@pytest.fixture(scope="session")
def case_of():
    return make


@pytest.fixture
def no_tables(monkeypatch):
    """From the call on, no table over next states is made of lists: not for counts, a mask, rewards
    or a world.
    """

    def refused(*_):
        raise AssertionError("a table was made of lists")

    def forbid():
        monkeypatch.setattr(Transitions, "n_sas", property(refused))
        monkeypatch.setattr(Rows, "dense", refused)
        monkeypatch.setattr(Rows, "dense_mask", refused)

    return forbid
