"""The optima of the three worlds with costs under a budget, by Lagrangian duality: no linear program is needed."""

import numpy as np
import pytest

import surefoot as sf

REFERENCE = {  # world: budget on the expected cost -> best expected reward
    "inventory": {3.5: 6.6653215273, 0.7: 1.5557105027},
    "media-buffer": {5.0: 3.2532957884, 1.0: 1.0165112816},
    "three-rooms": {3.0: 2.0, 0.6: 0.4},
}


def best(world, price):
    """max over policies of reward - price * cost: backward induction."""
    V = np.zeros(world.S)
    for h in reversed(range(world.H)):
        V = (world.r[h] - price * world.cost[h] + (world.P[h] * V).sum(axis=-1)).max(axis=1)
    return V[world.s1]


def constrained(world, budget):
    """min over prices of max over policies of reward + price (budget - cost): convex in the price, no gap."""
    low, high = 0.0, 100.0
    for _ in range(300):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if best(world, a) + a * budget < best(world, b) + b * budget:
            high = b
        else:
            low = a
    return best(world, low) + low * budget


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_constrained_optimum(name):
    world = sf.world(name)
    for budget, value in REFERENCE[name].items():
        assert constrained(world, budget) == pytest.approx(value, abs=1e-8)
    assert constrained(world, float(world.H)) == pytest.approx(sf.solve(world).value, abs=1e-8)  # a budget nobody needs
