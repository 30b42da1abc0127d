"""The drivers of a simulation: who plays what, episode by episode, and where it is entered.

A plain loop for any agent, readable aloud; one that plays each plan in compiled code; one that plans there, too, for
StepMix and its kin; and whole blocks at once. All but the blocks draw the same numbers in the same order.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from surefoot.agents import Agent, Plan, SpliceAgent
from surefoot.agents.base import CostBudget, CountingAgent, continue_plan, plan_next, replan_rule_of
from surefoot.agents.plan import SOURCES
from surefoot.agents.replanning import Blocks, block_length, is_due, limits
from surefoot.assurance.ledger import Ledger
from surefoot.base.arrays import Floats, read_only
from surefoot.errors import InvalidSetting
from surefoot.numerics import kernels
from surefoot.simulation.blocks import draw_block
from surefoot.task.counts import Counts, entered
from surefoot.task.episode import Episode
from surefoot.task.policy import EpisodicMixture, check_policy, draw
from surefoot.task.problem import Problem
from surefoot.worlds.exact import cost_of, value_of
from surefoot.worlds.tabular_mdp import TabularMDP, require_world

CHUNK_SECONDS = 0.1  # how long the fused loop runs before it looks up: for progress and Ctrl-C
STRETCH = 200_000  # steps of one plan before Ctrl-C is listened for


class RunContext(NamedTuple):
    """What a driver is given: who plays where, from what, and where the account is kept."""

    world: TabularMDP
    agent: Agent
    counts: Counts
    rng: np.random.Generator
    tally: "kernels.Tally"
    floor: float  # violations are counted against it; nan: none are
    episodes: int
    costs: CostBudget | None  # given: what is held against the floor is minus the expected cost
    checkpoints: tuple[int, ...] = ()  # episodes after which a driver stops to be looked at; blocks are not cut
    ledger: Ledger | None = None  # where every plan is written before it is played

    def until_checkpoint(self, done: int) -> int:
        """Episodes from here to the next checkpoint, or to the end."""
        return min((k for k in self.checkpoints if k > done), default=self.episodes) - done

    def plan(self) -> Plan:
        """The agent's plan from the counts as they are; written down, where somebody keeps a ledger."""
        plan = plan_next(self.agent, self.counts, self.rng)
        self.counts.basis = plan.basis
        if self.ledger is not None:
            self.ledger.write(plan)
        return plan

    def measure(self, policy: Floats | EpisodicMixture) -> tuple[float, float]:
        """The exact value of a policy, and what is held against the floor."""
        value = value_of(self.world, policy)
        return value, value if self.costs is None else -cost_of(self.world, policy, self.costs.cost)


Driver = Callable[[RunContext], Iterator[None]]


def play(world: TabularMDP, policy: Floats | EpisodicMixture, rng: np.random.Generator) -> Episode:
    """One episode in the world, with the rewards it pays.

    Draws the coin if there is one, the first state if there are several, then for each step the action, the next state,
    and the reward if it is random.
    """
    require_world(world)
    pi = policy.draw(rng) if isinstance(policy, EpisodicMixture) else policy
    pi = check_policy(pi, world.problem)
    states, actions, rewards = [world.s1 if world.problem.one_start else draw(world.start, rng)], [], []
    for h in range(world.H):
        s = states[-1]
        a = draw(pi[h, s], rng)
        states.append(draw(world.P[h, s, a], rng))
        actions.append(a)
        x = float(world.mean_reward(h, s, a, states[-1]))
        rewards.append(float(rng.random() < x) if world.random_rewards else x)
    return Episode(states, actions, rewards)


def reference_loop(context: RunContext) -> Iterator[None]:
    """Plan, evaluate, play, count. Yields after every episode."""
    world, agent, counts, rng, tally, floor, episodes, *_ = context
    replan = replan_rule_of(agent)
    plan, value, kept, then, since = None, math.nan, math.nan, counts, 0
    for _ in range(episodes):
        new = None if plan is None or is_due(replan, then, counts, world.H) else plan
        if new is not None and new.max_episodes is not None and counts.episodes >= since + new.max_episodes:
            new = continue_plan(agent, new, counts)
        if new is None:
            new, then = context.plan(), counts.copy()
        if new is not plan:
            plan, since = new, counts.episodes
            value, kept = context.measure(plan.policy)
        drawn = plan.draw(rng)
        episode = play(world, drawn.policy, rng)
        counts.add(episode.as_learnt(agent.problem, drawn.baseline, plan.entry))
        add_episode(tally, value, kept, plan, floor)
        yield


def add_episode(tally: "kernels.Tally", value: float, kept: float, plan: Plan, floor: float) -> None:
    """Enter one planned episode. The kernel trusts its numbers, so they are looked at here."""
    check_step(plan, len(tally.by_h) - 1)
    kernels.add_episode(tally, value, kept, SOURCES.index(plan.source), plan.h, floor)


def check_step(plan: Plan, H: int) -> None:
    """Does the plan's h exist?"""
    if plan.h > H:
        raise InvalidSetting(f"The plan says h = {plan.h}, expected a step in 0..{H}.")


def _held(context: RunContext) -> Iterator[None]:
    """Any agent: it plans in Python, and each plan is played in compiled code for as long as it is in force.

    The same bits as the plain loop. Yields after every stretch.
    """
    world, agent, counts, rng, tally, floor, episodes, *_ = context
    problem, replan = agent.problem, replan_rule_of(agent)
    known_rewards, true_world = (
        kernels.known_rewards_from(problem.r_rows, problem.r_next_rows, problem.unknown_rows),
        the_world(world),
    )
    rows, pairs = len(counts.n_sas), world.S * world.A
    episode = kernels.empty_episode(world.H)
    x_sa = np.zeros((0, 0), dtype=np.int64) if counts.x_sa is None else counts.x_sa.reshape(rows, pairs)
    done = 0
    while done < episodes:
        plan: Plan | None = context.plan()
        assert plan is not None
        n_sa = counts.n_sas.sum(axis=-1).reshape(rows, pairs)
        arrays = kernels.CountArrays(
            n_sas=counts.n_sas.reshape(rows, pairs, world.S),
            n_sa=n_sa,
            x_sa=x_sa,
            n_start=counts.n_start,
            baseline_returns=counts.baseline_returns,
            account=counts.account,
            limits=limits(replan, n_sa),
        )
        block = block_length(replan, counts.episodes)
        left = episodes - done if block is None else min(block, episodes - done)
        either: dict[
            object, tuple[Plan, kernels.ActivePlan]
        ] = {}  # who goes on switches between the policies of its plan
        while left > 0 and plan is not None:
            check_step(plan, world.H)
            key = (plan.source, plan.h, plan.entry, _address(plan.policy))
            if key not in either:
                either[key] = plan, active_plan_from(plan, *context.measure(plan.policy), problem)
            held = either[key][1]
            stretch = left if plan.max_episodes is None else min(left, plan.max_episodes)
            while stretch > 0:
                n = min(stretch, max(1, STRETCH // world.H), context.until_checkpoint(done))
                n = kernels.play_on(true_world, known_rewards, held, arrays, tally, floor, n, rng, episode)
                done, left, stretch = done + n, left - n, stretch - n
                if _reached(arrays):
                    left = stretch = 0
                yield
            plan = continue_plan(agent, plan, counts) if left > 0 else None


def _address(policy: Floats | EpisodicMixture) -> int:
    """The same policy, as long as it lives, has the same address."""
    return id(policy) if isinstance(policy, EpisodicMixture) else int(policy.ctypes.data)


def _reached(arrays: "kernels.CountArrays") -> bool:
    """Did the visits of some pair reach the limit that ends the plan?"""
    return bool(arrays.limits.size and (arrays.n_sa >= arrays.limits).any())


def active_plan_from(plan: Plan, value: float, kept: float, problem: Problem) -> "kernels.ActivePlan":
    """A plan as the kernels read it."""
    policy: Any = plan.policy
    coin = isinstance(policy, EpisodicMixture)
    sides, rho = ((policy.first, policy.second), policy.rho) if coin else ((policy, policy), 0.0)
    first, second = (read_only(np.ascontiguousarray(check_policy(side, problem))) for side in sides)
    return kernels.ActivePlan(
        first=first,
        second=second,
        rho=rho,
        baseline=coin or plan.source == "baseline",
        entry=-1 if plan.entry is None else int(entered(False, plan.entry)[2]),
        value=value,
        kept=kept,
        source=SOURCES.index(plan.source),
        h=plan.h,
    )


def _fused(context: RunContext) -> Iterator[None]:
    """The same work inside one compiled call. Yields about ten times a second."""
    world, agent, counts, rng, tally, floor, episodes, *_ = context
    assert isinstance(agent, SpliceAgent)
    problem, replan_rule = agent.problem, agent.replan_rule.rule
    known_rewards = kernels.known_rewards_from(problem.r_rows, problem.r_next_rows, problem.unknown_rows)
    evidence, start, returns_b = agent.evidence(counts)
    splices = kernels.empty_splices(agent.h0, agent.pi_b)
    work = kernels.empty_workspace(world.H, world.S, world.A, len(agent.h0))
    rows, pairs = evidence.n_sa.shape
    value_b = value_of(world, agent.pi_b)
    loop_state = kernels.empty_loop_state(replan_rule.growth < math.inf, rows, pairs, counts.episodes, value_b)
    kernels.refresh_all(evidence)
    true_world = the_world(world)
    inputs = kernels.PlanInputs(evidence, splices, start, returns_b, agent.rule, replan_rule)
    done, chunk = 0, 1  # one episode first, so that compiling does not count as its speed
    while done < episodes:
        started = time.perf_counter()
        kernels.run_episodes(true_world, known_rewards, inputs, tally, floor, chunk, rng, work, loop_state)
        speed = CHUNK_SECONDS / max(time.perf_counter() - started, 1e-9)
        growth = min(10.0, speed) if done else 1.0
        done += chunk
        chunk = max(1, min(context.until_checkpoint(done), int(chunk * growth)))
        yield


def the_world(world: TabularMDP) -> "kernels.TrueWorld":
    """The world as the kernels read it."""
    several = not world.problem.one_start
    return kernels.TrueWorld(
        world.P_rows, world.P_pairs, world.r_rows, world.paid_rows, world.start, several, world.random_rewards
    )


def _blocks(context: RunContext) -> Iterator[None]:
    """Whole blocks at once: the length of a block is fixed when it is planned, so its episodes are i.i.d. and their
    counts are multinomial, step by step. The law of the loop, not its bits. Yields after every block."""
    _, agent, counts, _, _, _, episodes, *_ = context
    replan, done = replan_rule_of(agent), 0
    while done < episodes:
        plan: Plan | None = context.plan()
        assert plan is not None
        block = block_length(replan, counts.episodes)
        left = episodes - done if block is None else min(block, episodes - done)
        while left > 0 and plan is not None:
            n = left if plan.max_episodes is None else min(left, plan.max_episodes)
            _play_block(context, plan, n)
            done, left = done + n, left - n
            yield
            plan = continue_plan(agent, plan, counts) if left > 0 else None


def _play_block(context: RunContext, plan: Plan, n: int) -> None:
    """n episodes of one plan at once, counted and entered."""
    world, agent, counts, rng, tally, floor, *_ = context
    check_step(plan, world.H)
    policy = plan.policy
    value, kept = context.measure(policy)
    by_baseline = n if plan.source == "baseline" else 0
    if isinstance(policy, EpisodicMixture):
        by_baseline = n - int(rng.binomial(n, policy.rho))
        draw_block(world, agent.problem, policy.second, n - by_baseline, counts, rng, baseline=False)
        draw_block(world, agent.problem, policy.first, by_baseline, counts, rng, baseline=True)
    else:
        draw_block(world, agent.problem, policy, n, counts, rng, baseline=by_baseline > 0)
    if plan.entry is not None:
        counts.account += by_baseline * entered(True, plan.entry) + (n - by_baseline) * entered(False, plan.entry)
    kernels.add_block(tally, value, kept, SOURCES.index(plan.source), plan.h, floor, n)


def driver_of(agent: Agent, written: bool = False) -> Driver:
    """The fused loop plans as SpliceAgent does; an agent with a plan or an explorer of its own is asked for it, and so
    is one whose plans are written down."""
    if isinstance(agent, CountingAgent) and isinstance(agent.replan_rule, Blocks):
        return _blocks
    if isinstance(agent, SpliceAgent) and agent.plans_itself and agent.explorer is None and not written:
        return _fused
    return _held
