"""The loops of a simulation: what is played episode by episode, and where it is entered.

Where an agent plans before every episode, one loop plays each plan in compiled code, and the fused
loop plans there, too, for the StepMix family: they draw the same numbers in the same order as
`play`, episode by episode. Where plans are in force for longer, the last draws whole blocks at
once, with the same law. `agents/schedule.py` says when each of them replans.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from surefoot import kernels
from surefoot.agents import CountingAgent, Plan, SpliceAgent
from surefoot.agents.plan import SOURCES
from surefoot.agents.schedule import PlanInForce
from surefoot.audit.ledger import Ledger
from surefoot.base.arrays import Floats
from surefoot.base.digest import digest
from surefoot.base.validation import read_only
from surefoot.errors import InvalidCounts
from surefoot.evidence.counts import Counts, entered
from surefoot.evidence.episode import Episode
from surefoot.model.origin import Range, with_range
from surefoot.model.policy import EpisodicMixture, check_policy, draw
from surefoot.model.problem import Problem
from surefoot.run.blocks import draw_block
from surefoot.run.run import check_step
from surefoot.run.setup import Measured, RunSetup, Seed, new_tally
from surefoot.worlds.tabular_mdp import TabularMDP, require_world

CHUNK_SECONDS = 0.1  # how long the fused loop runs before it yields: for progress and Ctrl-C
STRETCH = 200_000  # steps of one plan that are played before Ctrl-C is handled


@dataclass(frozen=True)
class RunContext:
    """What a loop is given: the setup, the state that it changes, and where plans are written."""

    setup: RunSetup
    world: TabularMDP
    counts: Counts
    rng: np.random.Generator
    tally: "kernels.Tally"
    checkpoints: tuple[int, ...] = ()  # episodes after which a loop must yield; blocks are not cut
    ledger: Ledger | None = None  # where every plan is written before it is played

    @classmethod
    def begin(
        cls,
        setup: RunSetup,
        seed: Seed,
        counts: Counts | None,
        checkpoints: tuple[int, ...] = (),
        ledger: Ledger | None = None,
    ) -> Self:
        """Return the context of a run before its first episode."""
        assert setup.world is not None
        mine = setup.agent.starting_counts(counts, setup.episodes)
        _hold_world(setup, mine)
        # refused now, not at the end
        with_range(mine.ranges, _range(setup, seed, mine.episodes, setup.episodes))
        rng = np.random.default_rng(_stream(seed, mine.episodes))
        return cls(
            setup,
            setup.world,
            mine,
            rng,
            new_tally(setup, mine, setup.episodes),
            checkpoints,
            ledger,
        )

    def until_checkpoint(self, done: int) -> int:
        """Return the number of episodes from here to the next checkpoint, or to the end."""
        return min((k for k in self.checkpoints if k > done), default=self.setup.episodes) - done

    def replan(self) -> PlanInForce:
        """Return the agent's plan from the counts as they are, written to the ledger where there
        is one.
        """
        plan = self.setup.agent.next_plan(self.counts, self.rng)
        self.counts.basis = plan.basis
        if self.ledger is not None:
            self.ledger.write(plan)
        return PlanInForce.begin(self.setup.agent, plan, self.counts)

    def plan_at_checkpoint(self) -> Plan:
        """Return the plan that would be made now. What an explorer draws for it is not the
        run's.
        """
        return self.setup.agent.next_plan(self.counts, np.random.default_rng(0))


# yields how many episodes were played, after some of them
Loop = Callable[[RunContext], Iterator[int]]


def _hold_world(setup: RunSetup, counts: Counts) -> None:
    """Write the world's dynamics into what these counts are evidence about; refuse counts of
    another world.
    """
    assert counts.origin is not None
    held = counts.origin.world
    if held not in (None, setup.dynamics):
        raise InvalidCounts(
            f"These counts were simulated in a world with other transition probabilities ({held}; "
            f"this one has {setup.dynamics}). Nothing of them is usable here: begin with new "
            "counts."
        )
    counts.origin = replace(counts.origin, world=setup.dynamics)
    counts.steps = None  # a world whose steps share counts is stationary: there is nothing to check


def _range(setup: RunSetup, seed: Seed, before: int, episodes: int) -> Range:
    """Return the numbers of a run's episodes. The same seed draws the same numbers, whichever
    agent plays.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    source = f"simulated {digest([root.entropy, root.spawn_key, setup.dynamics])}"
    return Range(source, before, before + episodes - 1)


def number_run(context: RunContext, seed: Seed) -> None:
    """Number the episodes that were played, when a run has ended."""
    done = context.tally.done
    if done:
        played = _range(context.setup, seed, context.counts.episodes - done, done)
        context.counts.ranges = with_range(context.counts.ranges, played)


def _stream(seed: Seed, counted: int) -> np.random.SeedSequence:
    """Return the stream of a run that continues after `counted` episodes: another one than theirs
    for the same seed.

    Data drawn twice would count double, and what they prove would be false.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return (
        root
        if counted == 0
        else np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, counted))
    )


def play(world: TabularMDP, policy: Floats | EpisodicMixture, rng: np.random.Generator) -> Episode:
    """Play one episode in the world, with the rewards it pays.

    Draws the coin if there is one, the first state if there are several, then for each step the
    action, the next state, and the reward if it is random.
    """
    require_world(world)
    pi = policy.draw(rng) if isinstance(policy, EpisodicMixture) else policy
    pi = check_policy(pi, world.problem)
    states, actions, rewards = (
        [world.s1 if world.problem.one_start else draw(world.start, rng)],
        [],
        [],
    )
    for h in range(world.H):
        s = states[-1]
        a = draw(pi[h, s], rng)
        states.append(world.draw_next(h, s, a, rng))
        actions.append(a)
        x = float(world.mean_reward(h, s, a, states[-1]))
        rewards.append(float(rng.random() < x) if world.random_rewards else x)
    return Episode.paying(world.problem.units, states, actions, rewards)


def plan_by_plan(context: RunContext) -> Iterator[int]:
    """Any agent: it plans in Python, and each plan is played in compiled code for as long as it is
    in force.

    The same bits as `play`, episode by episode. Yields after every stretch.
    """
    setup, counts, world = context.setup, context.counts, context.world
    problem = setup.agent.problem
    known_rewards = world.rewards_for(problem)
    true_world = world.for_kernels()
    episode, uniforms = kernels.empty_episode(problem.H), kernels.uniforms_from(context.rng)
    in_force: PlanInForce | None = None
    done = 0
    while done < setup.episodes:
        following = None if in_force is None else in_force.next(counts)
        if following is None:
            following = context.replan()
            arrays = count_arrays(counts, setup.agent.return_range)
        if following is not in_force:
            in_force, plan = following, following.plan
            check_step(plan, problem.H)
            active = active_plan_from(plan, setup.measure(plan.policy), problem)
        n = min(setup.episodes - done, max(1, STRETCH // problem.H), context.until_checkpoint(done))
        n = min(n, in_force.episodes_left(counts))
        arrays = ready_to_count(arrays, counts, problem.H)
        played = kernels.play_on(
            true_world,
            known_rewards,
            active,
            arrays,
            context.tally,
            setup.level,
            n,
            uniforms,
            episode,
        )
        counts.episodes += played
        done += played
        yield done


def count_arrays(counts: Counts, within: tuple[int, int] | None) -> "kernels.CountArrays":
    """Return the arrays of these counts as the kernels read and change them; `within`: the range
    of returns.
    """
    rows, S, A = counts.shape
    x_sa, z_sa = (
        np.zeros((0, 0), dtype=np.int64) if sums is None else sums.reshape(rows, S * A)
        for sums in (counts.x_sa, counts.z_sa)
    )
    return kernels.CountArrays(
        n_sas=counts.transitions.lists,
        played=counts.played.reshape(rows, S * A),
        x_sa=x_sa,
        z_sa=z_sa,
        n_start=counts.n_start,
        returns=kernels.seen_returns_from(counts.baseline_returns, counts.return_weights, within),
        account=counts.account,
    )


def ready_to_count(arrays: "kernels.CountArrays", counts: Counts, H: int) -> "kernels.CountArrays":
    """Return the arrays of these counts with room for another episode of H steps."""
    counts.transitions.make_room(H)
    return arrays._replace(n_sas=counts.transitions.lists)


def active_plan_from(plan: Plan, measured: Measured, problem: Problem) -> "kernels.ActivePlan":
    """Return a plan as the kernels read it."""
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
        value=measured.value,
        kept=measured.kept,
        source=SOURCES.index(plan.source),
        h=plan.h,
    )


def fused(context: RunContext) -> Iterator[int]:
    """The StepMix family: planning, too, inside one compiled call. Yields about ten times a
    second.
    """
    setup, counts, world, agent = context.setup, context.counts, context.world, context.setup.agent
    assert isinstance(agent, SpliceAgent)
    problem = agent.problem
    known_rewards = world.rewards_for(problem)
    inputs = agent.plan_inputs(counts)
    work = kernels.empty_workspace(problem.H, problem.S, problem.A, len(inputs.h0))
    value_b = setup.measure(agent.pi_b).value if setup.baseline is None else setup.baseline
    loop_state = kernels.empty_loop_state(value_b)
    kernels.refresh_all(inputs.evidence)
    true_world, uniforms = world.for_kernels(), kernels.uniforms_from(context.rng)
    done, chunk = 0, 1  # one episode first, so that compiling does not count as its speed
    while done < setup.episodes:
        started = time.perf_counter()
        if counts.transitions.make_room(problem.H):
            inputs = inputs._replace(evidence=agent.evidence(counts).model)
            kernels.refresh_all(inputs.evidence)
        played = kernels.run_episodes(
            true_world,
            known_rewards,
            inputs,
            context.tally,
            setup.level,
            chunk,
            uniforms,
            work,
            loop_state,
        )
        speed = CHUNK_SECONDS / max(time.perf_counter() - started, 1e-9)
        growth = min(10.0, speed) if done else 1.0
        done += played
        counts.episodes += played
        chunk = max(1, min(context.until_checkpoint(done), int(chunk * growth)))
        yield done


def block_by_block(context: RunContext) -> Iterator[int]:
    """Whole blocks at once. Yields after every block, or part of one that a plan lasts.

    The length of a block is fixed when it is planned, so its episodes are i.i.d. and their counts
    are multinomial, step by step. The law of `play`, not its bits.
    """
    setup, counts = context.setup, context.counts
    in_force: PlanInForce | None = None
    done = 0
    while done < setup.episodes:
        in_force = None if in_force is None else in_force.next(counts)
        if in_force is None:
            in_force = context.replan()
        n = min(in_force.episodes_left(counts), setup.episodes - done)
        _play_block(context, in_force.plan, n)
        done += n
        yield done


def _play_block(context: RunContext, plan: Plan, n: int) -> None:
    """Draw n episodes of one plan at once, count and enter them."""
    setup, counts, rng = context.setup, context.counts, context.rng
    world, problem, policy = context.world, setup.agent.problem, plan.policy
    check_step(plan, problem.H)
    measured = setup.measure(policy)
    by_baseline = n if plan.source == "baseline" else 0
    if isinstance(policy, EpisodicMixture):
        by_baseline = n - int(rng.binomial(n, policy.rho))
        draw_block(world, problem, policy.second, n - by_baseline, counts, rng, baseline=False)
        _draw_baseline(context, policy.first, by_baseline)
    elif by_baseline:
        _draw_baseline(context, policy, n)
    else:
        draw_block(world, problem, policy, n, counts, rng, baseline=False)
    if plan.entry is not None:
        counts.account += by_baseline * entered(True, plan.entry) + (n - by_baseline) * entered(
            False, plan.entry
        )
    source = SOURCES.index(plan.source)
    kernels.add_block(context.tally, measured.value, measured.kept, source, plan.h, setup.level, n)


def _draw_baseline(context: RunContext, pi_b: Floats, n: int) -> None:
    """Draw n episodes of the baseline: one by one where each return is evidence, else at once."""
    agent = context.setup.agent
    if agent.return_range is None:
        draw_block(
            context.world, agent.problem, pi_b, n, context.counts, context.rng, baseline=True
        )
    else:
        draw_baseline(context.world, agent, context.counts, n, context.rng)


def draw_baseline(
    world: TabularMDP, agent: CountingAgent, counts: Counts, n: int, rng: np.random.Generator
) -> None:
    """Play and count n episodes of this agent's baseline, whose returns are evidence, one by one
    in compiled code.
    """
    problem = agent.problem
    true_world, arrays = world.for_kernels(), count_arrays(counts, agent.return_range)
    known_rewards = world.rewards_for(problem)
    pi_b, uniforms = read_only(np.ascontiguousarray(agent.pi_b)), kernels.uniforms_from(rng)
    episode, done = kernels.empty_episode(problem.H), 0
    while done < n:
        arrays = ready_to_count(arrays, counts, problem.H)
        played = kernels.play_baseline(
            true_world, known_rewards, pi_b, arrays, n - done, uniforms, episode
        )
        counts.episodes += played
        done += played


def loop_for(agent: CountingAgent, ledger: str | Path | None = None) -> Loop:
    """Return the fastest loop for this agent.

    The fused loop plans as SpliceAgent does: an agent with a plan or an explorer of its own is
    asked for its plans, and so is one whose plans are written to a ledger.
    """
    if agent.draws_whole_blocks:
        return block_by_block
    if (
        isinstance(agent, SpliceAgent)
        and agent.plans_itself
        and agent.explorer is None
        and ledger is None
    ):
        return fused
    return plan_by_plan
