"""The optima of the three worlds with costs under a budget, by Lagrangian duality: no linear
program is needed.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

import surefoot as sf
from constrained import REFERENCE


def best(world, price):
    """max over policies of reward - price * cost: backward induction."""
    V = np.zeros(world.S)
    for h in reversed(range(world.H)):
        V = (world.r[h] - price * world.cost[h] + (world.P[h] * V).sum(axis=-1)).max(axis=1)
    return V[world.s1]


def constrained(world, budget):
    """min over prices of max over policies of reward + price (budget - cost): convex in the
    price, no gap.
    """
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
    # a budget nobody needs
    assert constrained(world, float(world.H)) == pytest.approx(sf.solve(world).value, abs=1e-8)


@pytest.mark.parametrize("by_step", [False, True])
def test_constrained_optimum_over_successors(by_step):
    """Of a sparse world of 80 states, against duality over the whole table. A policy within the
    budget is found.
    """
    S, A, H, rng = 80, 3, 4, np.random.default_rng(by_step)
    P = (
        rng.dirichlet(np.ones(S), (H, S, A)) * (rng.random((H, S, A, S)) < 0.05)
        + 1e-3 * np.eye(S)[:, None]
    )
    P = (P / P.sum(axis=-1, keepdims=True))[: H if by_step else 1]
    matrices = [scipy.sparse.csr_array(step.reshape(S * A, S)) for step in P]
    r, cost = rng.random((2, H, S, A))
    world = sf.TabularMDP(matrices if by_step else matrices[0], r, H=H, cost=cost)
    table = SimpleNamespace(P=np.broadcast_to(P, (H, S, A, S)), r=r, cost=cost, S=S, H=H, s1=0)
    cheapest = -best(SimpleNamespace(**{**vars(table), "r": 0.0 * r}), 1.0)
    values = []
    for budget in (cheapest + 0.1, cheapest + 0.3):
        found = sf.constrained_optimum(world, budget)
        assert found.value == pytest.approx(constrained(table, budget), abs=1e-8)
        spent = (sf.occupancy(world, found.policy) * cost).sum()
        assert found.cost == pytest.approx(spent) and spent == pytest.approx(budget, abs=1e-8)
        values.append(found.value)
    # control: the budget matters
    assert values[0] < values[1] - 1e-3 < sf.solve(world).value - 2e-3
    assert not sf.constrained_optimum(world, cheapest - 1e-6).feasible
