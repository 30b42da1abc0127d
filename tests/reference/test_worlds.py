"""The families: reference values to 1e-8 (worlds of the literature), values by hand for the
small ones.
"""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surefoot as sf
from surefoot.worlds.registry import family

VALUES = {  # name: (V*, usual baseline's value or None)
    "trap": (0.7, 0.685),
    "river-swim": (3.3972639592, None),
    "deep-sea": (1.0, None),
    "inventory": (7.0, None),
    "media-buffer": (4.6068616477, None),
    "three-rooms": (4.0, None),
    "random": (2.6716774539, 2.5925387329),
}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_reference_values(name):
    world = sf.world(name)
    optimum, baseline = VALUES[name]
    assert sf.solve(world).value == pytest.approx(optimum, abs=1e-8)
    if baseline is not None:
        assert sf.value(world, world.baseline) == pytest.approx(baseline, abs=1e-8)


@pytest.mark.parametrize("name", sorted(sf.FAMILIES))
def test_every_family_is_dressed(name):
    """Name, description with a picture, baseline above the floor, and something to learn."""
    world, chosen = sf.world(name), family(name)
    assert world.name == name == chosen.name
    assert len(chosen.summary) > 20
    assert chosen.story.count("\n") > 3
    value = sf.value(world, world.baseline)
    assert world.suggested_floor < value < sf.solve(world).value
    assert sf.check_world(world).ok


@pytest.mark.parametrize("name", sorted(sf.FAMILIES))
def test_the_floor_means_something(name):
    """Some deterministic policy is below it: a world in which nothing can go wrong tests
    nothing.
    """
    world = sf.world(name)
    constant = [
        np.broadcast_to(np.eye(world.A)[a], (world.H, world.S, world.A)) for a in range(world.A)
    ]
    worst = min(sf.value(world, policy) for policy in constant)
    assert worst < world.suggested_floor


def test_random_is_random_mdp():
    world, plain = (
        sf.world("random", S=4, A=2, H=3, seed=0, stationary=True),
        sf.random_mdp(4, 2, 3, 0, stationary=True),
    )
    assert_array_equal(world.P, plain.P)
    assert_array_equal(world.r, plain.r)
    assert world.stationary
    assert sf.solve(world).value == pytest.approx(1.6925636810, abs=1e-9)


def test_random_sparse_is_sparse():
    sizes = {"S": 30, "A": 4, "H": 6, "branch": 3, "share": 0.25}
    world, again, other = (sf.world("random-sparse", **sizes, seed=seed) for seed in (2, 2, 3))
    assert (np.count_nonzero(world.P, axis=-1) == 3).all()
    share = np.count_nonzero(world.r) / world.r.size
    assert 0.2 < share < 0.3  # 720 pairs at 0.25: within 3 standard deviations (0.016)
    np.testing.assert_array_equal(world.P, again.P)
    assert not np.array_equal(world.P, other.P)


def test_trap_variants_by_hand():
    tie = sf.world("trap-near-tie", gap=0.2)
    assert sf.value(tie, tie.baseline) == pytest.approx(0.9 * 0.7 + 0.1 * 0.5, abs=1e-15)
    assert tie.suggested_floor == pytest.approx(0.6)
    long = sf.world("trap-long", H=4)
    assert sf.solve(long).value == pytest.approx(0.98**3, abs=1e-15)
    assert sf.value(long, long.baseline) == pytest.approx(
        (0.95 * 0.98 + 0.05 * 0.8) ** 3, abs=1e-15
    )
    pit = sf.world("trap-pit", H=3)
    # The last step is greedy (0.6); before it, 0.5 and stay beats 0.6 and a pit that costs 0.3 of
    # what follows.
    assert sf.solve(pit).value == pytest.approx(0.5 + 0.5 + 0.6, abs=1e-15)


def test_deep_sea_by_hand():
    """Right N times: 1. Any left turn loses the treasure: the best of those is left N times,
    0.01.
    """
    world = sf.world("deep-sea", N=4)
    best = 0.0
    for turns in itertools.product((0, 1), repeat=4):
        policy = np.stack([np.broadcast_to(np.eye(2)[turn], (4, 2)) for turn in turns])
        value = sf.value(world, policy)
        if all(turns):
            assert value == 1.0
        else:
            best = max(best, value)
    assert best == pytest.approx(0.01, abs=1e-15)


def test_costs_are_where_they_belong():
    with_cost = {name for name in sf.FAMILIES if sf.world(name).cost is not None}
    assert with_cost == {"inventory", "media-buffer", "three-rooms"}
    inventory = sf.world("inventory")
    assert inventory.cost.shape == (7, 6, 6)
    assert inventory.cost.max() == 1.0
    # an empty shop that fills up: 4 + 10 + 5 = 19, the most there is
    assert inventory.cost[0, 0, 5] == 1.0
    assert inventory.cost[0, 2, 0] == pytest.approx(2 / 19)


def test_offers_speak_euros():
    world = sf.world("offers")
    euros = sf.value(world, world.baseline)
    rescaled = sf.TabularMDP(world.P, world.r_rescaled)
    assert euros == pytest.approx(12 * -1.0 + 11.0 * sf.value(rescaled, world.baseline))
    assert world.r[0, 0].tolist() == pytest.approx([10.0, 9.0, 6.0])  # loyal: 10, less the coupon
    assert 0 < euros < 120


def test_the_registry_speaks_plainly():
    with pytest.raises(
        sf.InvalidSetting, match=r"There is no world 'nowhere'. There are: random, "
    ):
        sf.world("nowhere")
    with pytest.raises(
        sf.InvalidSetting, match=r"World 'river-swim' has no K. What can be chosen: S=6, H=20"
    ):
        sf.world("river-swim", K=3)
    assert sf.world("River Swim").name == "river-swim"
    with pytest.raises(sf.InvalidModel, match="S is 1, expected an integer >= 2"):
        sf.world("river-swim", S=1)
    with pytest.raises(sf.InvalidModel, match="branch is 7"):
        sf.world("random-sparse", S=5, branch=7)
