"""Worlds built from bare arrays, with a usual baseline and a floor below it."""

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.task.policy import boltzmann
from surefoot.task.problem import Units
from surefoot.worlds.exact import policy_value, solve
from surefoot.worlds.tabular_mdp import TabularMDP

USUAL_SHARE = 0.9  # the default floor is nine tenths of what the baseline is worth


def with_soft_optimum(name: str, P: Floats, r: Floats, H: int, eta: float) -> TabularMDP:
    """Return the world with the baseline Boltzmann on Q* with eta, and nine tenths of its value as the floor."""
    bare = TabularMDP(P, r, H=H)
    return with_baseline(name, P, r, H, boltzmann(solve(bare).Q, eta))


def with_baseline(
    name: str,
    P: Floats,
    r: Floats,
    H: int,
    baseline: Floats,
    floor: float | None = None,
    cost: Floats | None = None,
    units: Units = Units(),  # noqa: B008  (frozen)
) -> TabularMDP:
    """Return the world with this baseline, and nine tenths of its value as the floor unless another is given."""
    bare = TabularMDP(P, r, H=H)
    if floor is None:
        floor = USUAL_SHARE * float(policy_value(bare, baseline)[0, 0])
    return TabularMDP(P, r, H=H, units=units, name=name, cost=cost, baseline=baseline, suggested_floor=floor)


def lean(rule: Floats, slip: float) -> Floats:
    """Return the policy that follows the rule (H, S, A) with probability 1 - slip, and else takes a uniform action."""
    return np.asarray((1.0 - slip) * rule + slip / rule.shape[-1])
