"""What a run is about, checked: the agent, its world, what violations are counted against, and
what is promised.
"""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.agents.base import Agent, CostBudget, CountingAgent, adapted
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.promise import Promise
from surefoot.base.arrays import Floats
from surefoot.base.validation import REWARD_UNITS, VIOLATION_TOLERANCE, require_integer
from surefoot.errors import FloorAboveBaseline, InvalidModel, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.policy import EpisodicMixture
from surefoot.model.sameness import alike
from surefoot.model.units import Units
from surefoot.worlds.constrained import constrained_optimum
from surefoot.worlds.exact import cost_of, rescaled_solve, value_of
from surefoot.worlds.tabular_mdp import TabularMDP

CURVE_POINTS = 2000  # bins of a run's curve, at most about
MOST_STEPS = 2**62 // REWARD_UNITS  # sums of rewards are exact up to here

Seed = int | np.random.SeedSequence


class Measured(NamedTuple):
    """The exact value of a policy, and what is held against the floor: the same, or minus its
    expected cost.
    """

    value: float
    kept: float


@dataclass(frozen=True)
class RunSetup:
    """What all runs of one call share, checked. Floors and values are rescaled to 0..H."""

    agent: CountingAgent
    episodes: int
    floor: float | None  # what violations are counted against
    floor_shown: float | None  # the same in the user's units, as it was given
    promise: Promise
    units: Units
    knows_baseline_value: bool  # was the agent given the baseline's value?
    world: TabularMDP | None = None  # None: no true model is known (live learning)
    baseline: float | None = None  # V^{pi_b}
    optimum: float | None = None
    costs: CostBudget | None = None  # given: violations are of this budget, not of a floor
    baseline_cost: float | None = None

    @property
    def dynamics(self) -> str | None:
        """What simulated counts are evidence about: the true dynamics."""
        return None if self.world is None else self.world.dynamics

    @property
    def level(self) -> float:
        """What `Measured.kept` is held against; nan: nothing is."""
        if self.costs is not None:
            return -self.costs.budget
        return math.nan if self.floor is None else self.floor

    def measure(self, policy: Floats | EpisodicMixture) -> Measured:
        """Measure a policy in the true world."""
        assert self.world is not None
        value = value_of(self.world, policy)
        return Measured(
            value, value if self.costs is None else -cost_of(self.world, policy, self.costs.cost)
        )


def new_tally(setup: RunSetup, counts: Counts, episodes: int) -> "kernels.Tally":
    """Return an empty tally with bins for so many episodes.

    With warm counts the sum begins with what the agent's account proves of their episodes.
    """
    agent = setup.agent
    tally = kernels.empty_tally(agent.problem.H, episodes, CURVE_POINTS)
    if setup.baseline is not None and setup.floor == agent.floor_value(setup.baseline):
        tally.surplus[0] = agent.saved_before(counts, setup.baseline)
    return tally


def check_setup(world: TabularMDP, agent: Agent, episodes: int, floor: float | None) -> RunSetup:
    """Check what a public function was given, and warn of a baseline that is below the floor, or
    above the budget.
    """
    optimum = rescaled_solve(world).value  # which refuses what is not a world
    mine = adapted(agent)
    K = require_integer("episodes", episodes, 1, InvalidSetting)
    H = world.problem.H
    if K > MOST_STEPS // H:
        raise InvalidSetting(
            f"episodes is {K}, expected at most {MOST_STEPS // H}, where sums of rewards end."
        )
    check_same_problem(world, mine)
    baseline = value_of(world, mine.pi_b) if mine.plays_baseline else None
    own = mine.floor_value(baseline)
    level = own if floor is None else world.problem.level(floor)
    setup = RunSetup(
        agent=mine,
        episodes=K,
        floor=level,
        floor_shown=_shown(mine, level, floor),
        promise=mine.promise_for(level, own),
        units=world.problem.units,
        knows_baseline_value=mine.knows_baseline_value,
        world=world,
        baseline=baseline,
        optimum=optimum,
    )
    setup = _with_premise(setup, own)
    return _with_costs(setup) if floor is None else setup


def check_setup_without_model(agent: CountingAgent, episodes: int, floor: float | None) -> RunSetup:
    """Check what a public function was given, where the true model is not known."""
    K = require_integer("episodes", episodes, 1, InvalidSetting)
    own = agent.floor_value(None)
    level = own if floor is None else agent.problem.level(floor)
    promise = agent.promise_for(level, own)
    shown = _shown(agent, level, floor)
    return RunSetup(
        agent, K, level, shown, promise, agent.problem.units, agent.knows_baseline_value
    )


def _shown(agent: CountingAgent, level: float | None, floor: float | None) -> float | None:
    """Return a floor in the user's units: as it was given to the call, or to the agent; a
    relative one as it is.
    """
    given = agent.floor if floor is None else floor
    if given is None or level is None:
        return None
    return agent.problem.units.to_user(level) if isinstance(given, BaselineFloor) else float(given)


def _with_premise(setup: RunSetup, own: float | None) -> RunSetup:
    """Compare the baseline's true value with the floors, and with what the user asserts; `own`
    is the agent's floor.
    """
    world, baseline, optimum, promise = setup.world, setup.baseline, setup.optimum, setup.promise
    shown = setup.units.to_user
    if world is None or baseline is None or optimum is None:
        return setup
    for at_stake in {setup.floor, own} - {None}:
        if at_stake is not None and baseline < at_stake - VIOLATION_TOLERANCE:
            worth, asked, best = (f"{shown(value):.6g}" for value in (baseline, at_stake, optimum))
            advice = (
                f"Lower the floor: no policy reaches it, the best is worth {best}."
                if optimum < at_stake
                else "Lower the floor, or find a better baseline."
            )
            _warn(
                f"The baseline is worth {worth}, below the floor of {asked}: the promise presumes "
                f"a baseline above it, and episodes on the baseline will violate it. {advice}"
            )
            if at_stake == own:
                promise = promise.with_false_premise(f"the baseline is worth {worth}")
    asserted = setup.agent.asserted
    if asserted is not None and baseline < world.problem.level(asserted) - VIOLATION_TOLERANCE:
        claimed, worth = f"{asserted:.6g}", f"{shown(baseline):.6g}"
        _warn(
            f"The user asserts that the baseline is worth at least {claimed}, but it is worth "
            f"{worth}: what rests on that is not safe."
        )
        promise = promise.with_false_premise(f"the baseline is worth {worth}")
    return replace(setup, promise=promise)


def _with_costs(setup: RunSetup) -> RunSetup:
    """Count violations of the agent's budget of costs, where it keeps one."""
    world, costs, promise = setup.world, setup.agent.cost_budget, setup.promise
    if world is None or costs is None:
        return setup
    baseline_cost = cost_of(world, setup.agent.pi_b, costs.cost)
    within = constrained_optimum(world, costs.budget, costs.cost)
    if baseline_cost > costs.budget + VIOLATION_TOLERANCE:
        _warn(
            f"The baseline costs {baseline_cost:.6g}, above the budget of {costs.budget:.6g}: the "
            "promise presumes a baseline within it. Raise the budget, or find a cheaper baseline."
        )
        promise = promise.with_false_premise(f"the baseline costs {baseline_cost:.6g}")
    optimum = setup.units.from_user(within.value) if within.feasible else setup.optimum
    return replace(
        setup, promise=promise, costs=costs, baseline_cost=baseline_cost, optimum=optimum
    )


def _warn(text: str) -> None:
    """Warn whoever called the public function, which called `check_setup`."""
    warnings.warn(text, FloorAboveBaseline, stacklevel=5)


def check_same_problem(world: TabularMDP, agent: CountingAgent) -> None:
    """Refuse an agent that plans for other sizes, other rewards or another start: its bounds would
    not hold here.

    It may know less than the world's own problem tells, and it may know which transitions are
    possible.
    """
    mine, its = world.problem, agent.problem
    if (mine.H, mine.S, mine.A) != (its.H, its.S, its.A):
        raise InvalidModel(
            f"The agent is for {its}, the world is {world}. Build the agent from world.problem."
        )
    if its.start is not None and not np.array_equal(its.start, world.start):
        raise InvalidModel(
            f"The agent is for {its}, which starts elsewhere than {world}. Use world.problem."
        )
    unknown = np.broadcast_to(its.unknown, its.r_rescaled.shape)
    if its.pays_by_next:
        same = mine.pays_by_next and alike(*(one.arguments()["r_next"] for one in (mine, its)))
    else:  # means, which may have been rounded on the way
        same = np.allclose(
            its.r_rescaled[~unknown], world.r_rescaled[~unknown], rtol=0.0, atol=1e-12
        )
    if not same:
        raise InvalidModel(
            "The agent knows other rewards than the world pays. Build the agent from world.problem."
        )
    if its.knows_support and world.outside(its) is not None:
        raise InvalidModel(
            "The agent's support excludes transitions that happen in this world: its mask is false."
        )
    if agent.pooled and (np.ptp(world.r_rescaled, axis=0) > 1e-12)[unknown.any(axis=0)].any():
        raise InvalidModel(
            "The agent pools rewards that it does not know over steps, but in this world they "
            "depend on the step."
        )
    if agent.pooled and not mine.stationary:
        raise InvalidModel(
            "The agent pools its counts over steps, but the dynamics of this world depend on the "
            "step."
        )


def check_seed(seed: Seed) -> Seed:
    """Refuse what is not an integer >= 0 or a SeedSequence."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        raise InvalidSetting(
            "seed is a Generator, expected an integer >= 0 or a SeedSequence: a run starts from a "
            "seed."
        )
    return require_integer("seed", seed, 0, InvalidSetting)


def check_checkpoints(checkpoints: Iterable[int], episodes: int) -> tuple[int, ...]:
    """Return the checkpoints in ascending order, each once; refuse one beyond the end."""
    try:
        given = {require_integer("a checkpoint", k, 1, InvalidSetting) for k in checkpoints}
    except TypeError:
        raise InvalidSetting(
            f"checkpoints is {checkpoints!r}, expected numbers of episodes."
        ) from None
    if given and max(given) > episodes:
        raise InvalidSetting(
            f"A checkpoint is at {max(given)}, expected at most the {episodes} episodes of the run."
        )
    return tuple(sorted(given))
