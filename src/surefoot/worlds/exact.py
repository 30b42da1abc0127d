"""Exact values in a known world: no randomness. Everything else is compared with them.

A world's usual baseline and floor are made of them, too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.base.arrays import Floats
from surefoot.base.validation import FrozenRecord
from surefoot.model.policy import EpisodicMixture, boltzmann, check_policy, greedy
from surefoot.model.rows import Rows
from surefoot.model.units import Rescaled, Units
from surefoot.worlds.tabular_mdp import TabularMDP, require_world

USUAL_SHARE = 0.9  # the default floor is nine tenths of what the baseline is worth


@dataclass(frozen=True, eq=False, repr=False)
class Solution(FrozenRecord):
    """An optimal policy (H, S, A), with values in the user's units: Q (H, S, A), V (H+1, S), value
    = V[0, s1], or V[0] averaged over the start.
    """

    policy: Floats
    Q: Floats
    V: Floats
    value: float

    def __repr__(self) -> str:
        return f"Solution(value={self.value:.10g}, shape={self.policy.shape})"


def policy_value(world: TabularMDP, policy: ArrayLike | EpisodicMixture) -> Floats:
    """Return V (H+1, S) of a policy: V[h, s] is the expected return from state s at step h on; V[0,
    s1] is its value (`world.at_start(V[0])` where there are several first states). In the user's
    units. `value` returns that one number.

    For an EpisodicMixture, the coin-averaged values.
    """
    return _to_user(world, rescaled_policy_value(world, policy))


def rescaled_policy_value(world: TabularMDP, policy: ArrayLike | EpisodicMixture) -> Floats:
    """`policy_value` on the rescaled scale, 0..H."""
    require_world(world)
    if isinstance(policy, EpisodicMixture):
        V_first, V_second = (
            rescaled_policy_value(world, policy.first),
            rescaled_policy_value(world, policy.second),
        )
        return (1.0 - policy.rho) * V_first + policy.rho * V_second
    pi = check_policy(policy, world.problem)
    V = np.zeros((world.H + 1, world.S))
    kernels.policy_value(world.for_kernels(), pi, -1, np.zeros(world.S * world.A), V)
    return V


def value_of(world: TabularMDP, policy: ArrayLike | EpisodicMixture) -> float:
    """Return the rescaled value (0..H) of a policy at the start: one number, averaged over a
    coin if there is one.
    """
    if isinstance(policy, EpisodicMixture):
        first, second = (value_of(world, side) for side in (policy.first, policy.second))
        return (1.0 - policy.rho) * first + policy.rho * second
    return world.at_start(rescaled_policy_value(world, policy)[0])


def value(world: TabularMDP, policy: ArrayLike | EpisodicMixture) -> float:
    """Return what a policy is worth: the expected return of an episode, in the user's units.

    It is one number: averaged over the first states where there are several, and over the coin of
    an EpisodicMixture. `policy_value` has the values of all steps and states.
    """
    require_world(world)
    return world.problem.units.to_user(value_of(world, policy))


def cost_of(world: TabularMDP, policy: ArrayLike | EpisodicMixture, cost: Floats) -> float:
    """Return the expected cost of a policy in this world, by a table of costs (H, S, A) in [0,
    1].
    """
    d = occupancy(world, policy)
    return float((d * cost).sum())


def solve(world: TabularMDP) -> Solution:
    """Solve by backward induction: Q[h] = r[h] + P[h] V[h+1], V[h] = max_a Q[h]; the first action
    wins a tie.

    Sums run in the same order for every pair: a matrix product may round equal rows differently and
    so break ties.
    """
    best = rescaled_solve(world)
    if not world.problem.units.own:
        return best
    V = _to_user(world, best.V)
    return Solution(
        best.policy, _to_user(world, best.Q), V, world.problem.units.to_user(best.value)
    )


def rescaled_solve(world: TabularMDP) -> Solution:
    """`solve` on the rescaled scale, 0..H."""
    require_world(world)
    Q = np.zeros((world.H, world.S, world.A))
    V = np.zeros((world.H + 1, world.S))
    for h in reversed(range(world.H)):
        Q[h] = world.r_rescaled[h] + world.mean_next(h, V[h + 1])
        V[h] = Q[h].max(axis=1)
    return Solution(policy=greedy(Q), Q=Q, V=V, value=world.at_start(V[0]))


def _to_user(world: TabularMDP, V: Floats) -> Floats:
    """Return rescaled values by step in the user's units."""
    return world.problem.units.to_go(V) if world.problem.units.own else V


def occupancy(world: TabularMDP, policy: ArrayLike | EpisodicMixture) -> Floats:
    """Return d[h, s, a]: the probability of being in s at step h and taking a. Each step sums to
    1.
    """
    require_world(world)
    if isinstance(policy, EpisodicMixture):
        d_first, d_second = occupancy(world, policy.first), occupancy(world, policy.second)
        return (1.0 - policy.rho) * d_first + policy.rho * d_second
    pi = check_policy(policy, world.problem)
    d = np.zeros((world.H, world.S, world.A))
    reach = np.asarray(world.start)
    for h in range(world.H):
        d[h] = reach[:, None] * pi[h]
        reach = world.spread(h, d[h])
    return d


def with_soft_optimum(name: str, P: Floats, r: Floats, H: int, eta: float) -> TabularMDP:
    """Return the world with the baseline Boltzmann on Q* with eta, and nine tenths of its value
    as the floor.
    """
    bare = TabularMDP(P, r, H=H)
    return with_baseline(name, P, r, H, boltzmann(solve(bare).Q, eta))


def with_baseline(
    name: str,
    P: Floats | Rows,
    r: Floats,
    H: int,
    baseline: Floats,
    floor: float | None = None,
    cost: Floats | None = None,
    units: Units = Units(),  # noqa: B008  (frozen)
    s1: int = 0,
) -> TabularMDP:
    """Return the world with this baseline; r is rescaled. Unless another floor is given, it is nine
    tenths of the way from the lowest return up to the baseline's value.
    """
    if floor is None:
        bare = TabularMDP(P, r, s1=s1, H=H)
        floor = units.to_user(USUAL_SHARE * float(policy_value(bare, baseline)[0, s1]))
    return TabularMDP(
        P,
        Rescaled(r),
        s1=s1,
        H=H,
        units=units,
        name=name,
        cost=cost,
        baseline=baseline,
        suggested_floor=floor,
    )


def lean(rule: Floats, slip: float) -> Floats:
    """Return the policy that follows the rule (H, S, A) with probability 1 - slip, and else
    takes a uniform action.
    """
    return np.asarray((1.0 - slip) * rule + slip / rule.shape[-1])
