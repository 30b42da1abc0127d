"""What a run is about, checked: the learner, its world, what violations are counted against, and its label."""

import math
import warnings
from typing import NamedTuple

import numpy as np

from surefoot.agents import Agent
from surefoot.agents.base import CostBudget, CountingAgent, promise_of
from surefoot.agents.floors import Relative
from surefoot.agents.promise import Promise
from surefoot.base.validation import REWARD_UNITS, VIOLATION_TOLERANCE, require_floor, require_integer
from surefoot.errors import FloorAboveBaseline, InvalidModel, InvalidSetting
from surefoot.numerics import kernels
from surefoot.task.counts import Counts, check_counts
from surefoot.worlds.constrained import constrained_optimum
from surefoot.worlds.exact import cost_of, solve, value_of
from surefoot.worlds.tabular_mdp import TabularMDP, require_world

MOST_STEPS = 2**62 // REWARD_UNITS  # sums of rewards are exact up to here


class RunSetup(NamedTuple):
    """What every run of a call shares, checked."""

    world: TabularMDP | None  # None: no true model is known (live learning)
    agent: Agent
    episodes: int
    floor: float | None  # what violations are counted against
    baseline: float | None
    optimum: float | None
    promise: Promise
    costs: CostBudget | None = None  # violations are of this budget, not of a floor
    baseline_cost: float | None = None

    @property
    def level(self) -> float:
        """What kept values are held against; nan: nothing is."""
        if self.costs is not None:
            return -self.costs.budget
        return math.nan if self.floor is None else self.floor


def check_setup(world: TabularMDP, agent: Agent, episodes: int, floor: float | None) -> RunSetup:
    """Check what comes in, and warn of a floor that the baseline does not reach. Called by the public functions."""
    require_world(world)
    if not isinstance(agent, Agent):
        raise InvalidSetting(f"Expected an agent such as sf.StepMix(...), found {type(agent).__name__}. See sf.Agent.")
    K = require_integer("episodes", episodes, 1, InvalidSetting)
    if K > MOST_STEPS // world.H:
        raise InvalidSetting(f"episodes is {K}, expected at most {MOST_STEPS // world.H}, where sums of rewards end.")
    check_same_problem(world, agent)
    baseline = _baseline_value(world, agent)
    own = floor_of(agent, baseline)
    level = own if floor is None else require_floor(floor, world.H)
    optimum = solve(world).value
    promise = promise_for(agent, level, own)
    for at_stake in {level, own} - {None}:
        if baseline is not None and at_stake is not None and baseline < at_stake - VIOLATION_TOLERANCE:
            worth, asked, best = (f"{world.in_user_units(value):.6g}" for value in (baseline, at_stake, optimum))
            advice = (
                f"Lower the floor: no policy reaches it, the best is worth {best}."
                if optimum < at_stake
                else "Lower the floor, or find a better baseline."
            )
            warnings.warn(
                f"The baseline is worth {worth}, below the floor of {asked}: the promise presumes a baseline above it, "
                f"and episodes on the baseline will violate it. {advice}",
                FloorAboveBaseline,
                stacklevel=3,
            )
            if at_stake == own:
                promise = promise.with_false_premise(f"the baseline is worth {worth}")
    word = agent.asserted if isinstance(agent, CountingAgent) else None
    if word is not None and baseline is not None and baseline < word - VIOLATION_TOLERANCE:
        said, worth = (f"{world.in_user_units(value):.6g}" for value in (word, baseline))
        warnings.warn(
            f"The owner's word is {said}, but the baseline is worth {worth}: what leans on that word is not safe.",
            FloorAboveBaseline,
            stacklevel=3,
        )
        promise = promise.with_false_premise(f"the baseline is worth {worth}")
    costs = agent.cost_budget if isinstance(agent, CountingAgent) and floor is None else None
    baseline_cost = None
    if costs is not None and isinstance(agent, CountingAgent):
        baseline_cost = cost_of(world, agent.pi_b, costs.cost)
        within = constrained_optimum(world, costs.budget, costs.cost)
        optimum = within.value if within.feasible else optimum
        if baseline_cost > costs.budget + VIOLATION_TOLERANCE:
            warnings.warn(
                f"The baseline costs {baseline_cost:.6g}, above the budget of {costs.budget:.6g}: the promise presumes "
                "a baseline within it. Raise the budget, or find a cheaper baseline.",
                FloorAboveBaseline,
                stacklevel=3,
            )
            promise = promise.with_false_premise(f"the baseline costs {baseline_cost:.6g}")
    return RunSetup(world, agent, K, level, baseline, optimum, promise, costs, baseline_cost)


def _baseline_value(world: TabularMDP, agent: Agent) -> float | None:
    """What only the simulator knows: the true value of the baseline."""
    if not isinstance(agent, CountingAgent) or (agent.floor is None and agent.cost_budget is None):
        return None
    return value_of(world, agent.pi_b)


def check_same_problem(world: TabularMDP, agent: Agent) -> None:
    """An agent planned for other sizes, rewards or another start would not be the one its bounds speak about.

    It may know less than the world's own problem tells, and it may be told which transitions are possible.
    """
    mine, its = world.problem, agent.problem
    if (mine.H, mine.S, mine.A) != (its.H, its.S, its.A):
        raise InvalidModel(f"The agent is for {its}, the world is {world}. Build the agent from world.problem.")
    if its.start is not None and not np.array_equal(its.start, world.start):
        raise InvalidModel(f"The agent is for {its}, which starts elsewhere than {world}. Use world.problem.")
    unknown = np.broadcast_to(its.unknown, its.r.shape)
    if its.r_next_rows is not None:
        same = mine.r_next_rows is not None and np.array_equal(its.r_next_rows, mine.r_next_rows)
    elif mine.r_next_rows is not None:  # told the means
        same = np.allclose(its.r[~unknown], world.r[~unknown], rtol=0.0, atol=1e-12)
    else:
        same = np.array_equal(mine.r[~unknown], its.r[~unknown])
    if not same:
        raise InvalidModel("The agent knows other rewards than the world pays. Build the agent from world.problem.")
    if ((world.P > 0.0) & ~its.support).any():
        raise InvalidModel("The agent's support excludes transitions that happen in this world: its mask is false.")
    if agent.pooled and (np.ptp(world.r, axis=0) > 1e-12)[unknown.any(axis=0)].any():
        raise InvalidModel(
            "The agent pools rewards that it does not know over steps, but in this world they depend on the step."
        )
    if agent.pooled and not mine.stationary:
        raise InvalidModel("The agent pools its counts over steps, but the dynamics of this world depend on the step.")


def floor_of(agent: Agent, baseline: float | None) -> float | None:
    """The agent's floor as a number; a relative one is known only where the baseline's value is."""
    if isinstance(agent.floor, Relative):
        return None if baseline is None else agent.floor.of(baseline, agent.problem)
    return agent.floor


def promise_for(agent: Agent, floor: float | None, own: float | None) -> Promise:
    """What the agent promises, or that it promises nothing about this other floor."""
    promise = promise_of(agent)
    if isinstance(agent, CountingAgent) and agent.cost_budget is not None and floor is not None:
        return promise.for_another_floor(f"costs within {agent.cost_budget.budget:g}")
    if agent.floor is None or floor == own:
        return promise
    return promise.for_another_floor(str(agent.floor) if isinstance(agent.floor, Relative) else f"{agent.floor:g}")


def begin(agent: Agent, counts: Counts | None, episodes: int) -> Counts:
    """The counts a run of so many episodes starts from."""
    counts = Counts.zeros(agent.problem, agent.pooled) if counts is None else counts
    if isinstance(agent, CountingAgent):
        agent.check_counts(counts)
        agent.check_episodes(counts, episodes)
    else:
        check_counts(counts, agent.problem, agent.pooled)
    mine = counts.copy()
    mine.H = agent.problem.H
    mine.s1 = agent.problem.s1 if agent.problem.one_start else None
    if isinstance(agent, CountingAgent):
        agent.claim(mine)
    if agent.problem.unknown_rows is None:
        mine.x_sa = None  # sums of rewards that this learner knows: neither loop goes on with them
    elif mine.x_sa is None:
        mine.x_sa = np.zeros(mine.n_sas.shape[:3], dtype=np.int64)
    return mine


def carry_on(tally: "kernels.Tally", setup: RunSetup, counts: Counts) -> None:
    """An account that warm counts brought along: the sum begins with what is known of its episodes."""
    agent = setup.agent
    if isinstance(agent, CountingAgent) and setup.baseline is not None and setup.floor == agent.floor:
        tally.surplus[0] = agent.saved_before(counts, setup.baseline)


def name_of(agent: Agent) -> str:
    """As the literature writes it, or as its class is called."""
    return agent.name if isinstance(agent, CountingAgent) else type(agent).__name__


def knows_baseline_value(agent: Agent) -> bool:
    """Does the learner know what its baseline is worth, or at least, and not only we?"""
    return isinstance(agent, CountingAgent) and (agent.known_baseline_value is not None or agent.asserted is not None)
