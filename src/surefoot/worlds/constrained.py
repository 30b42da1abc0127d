"""The best policy whose costs are within a budget, in a known world. Agents with costs are
compared with it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.validation import FrozenRecord, require_number
from surefoot.bounds.lp import Moves, best_occupancy_of, policy_from
from surefoot.errors import InvalidModel, InvalidSetting
from surefoot.model.signal import signal
from surefoot.worlds import exact
from surefoot.worlds.exact import cost_of, rescaled_solve
from surefoot.worlds.tabular_mdp import TabularMDP, require_world


@dataclass(frozen=True, eq=False, repr=False)
class ConstrainedOptimum(FrozenRecord):
    """The best policy (H, S, A) whose expected cost is within the budget; it may have to mix
    actions.

    Where no policy is that cheap, `feasible` is False, the value -inf and the policy None.
    """

    value: float  # its exact value, in the user's units
    policy: Floats | None
    cost: float  # its exact expected cost; where there is no such policy, that of the cheapest one
    budget: float
    feasible: bool

    def __repr__(self) -> str:
        if not self.feasible:
            return (
                f"ConstrainedOptimum(infeasible: the cheapest policy costs {self.cost:.10g}, "
                f"budget {self.budget:g})"
            )
        return (
            f"ConstrainedOptimum(value={self.value:.10g}, cost={self.cost:.10g}, "
            f"budget={self.budget:g})"
        )


def constrained_optimum(
    world: TabularMDP, budget: float, cost: ArrayLike | None = None
) -> ConstrainedOptimum:
    """Maximise V^pi over the policies whose expected cost is at most `budget`, by linear
    programming over visits.

    Where no policy is that cheap the answer is not an error: `feasible` is False, value -inf,
    policy None. `cost` is (H, S, A) or (S, A), in [0, 1]; the world's own if left out.
    """
    require_world(world)
    limit = require_number("budget", budget, "a number: the expected cost of an episode")
    table = world.cost if cost is None else signal("cost", cost, world.problem, InvalidSetting)
    if table is None:
        raise InvalidModel(
            "This world has no cost signal: give constrained_optimum(world, budget, cost=...)."
        )
    cheapest = _cheapest(world, table)
    if cheapest > limit + 1e-9:
        return ConstrainedOptimum(-np.inf, None, cheapest, limit, feasible=False)
    answer = best_occupancy_of(
        _moves(world), np.asarray(world.start), world.r_rescaled, table, max(limit, cheapest)
    )
    if answer.status == "optimal":
        policy = policy_from(answer.q, rescaled_solve(world).policy)
        return ConstrainedOptimum(
            exact.value(world, policy), policy, cost_of(world, policy, table), limit, feasible=True
        )
    raise InvalidSetting(
        f"The solver failed on this linear program: {answer.words}. Try a slightly different "
        "budget."
    )


def _cheapest(world: TabularMDP, cost: Floats) -> float:
    """Return the smallest expected cost of any policy, by backward induction."""
    V = np.zeros(world.S)
    for h in reversed(range(world.H)):
        V = (cost[h] + world.mean_next(h, V)).min(axis=1)
    return world.at_start(V)


def _moves(world: TabularMDP) -> Moves:
    """Return the transitions that are possible before the last step."""
    none, pairs = np.zeros(0, dtype=np.int64), world.S * world.A
    steps = [(none, none, np.zeros(0))]  # where there is one step alone
    for h in range(world.H - 1):
        pair, state, p = world.entries(h)
        steps.append((h * pairs + pair, state, p))
    return Moves(*map(np.concatenate, zip(*steps, strict=True)))
