"""Whole runs, planned after a share of the episodes so far; and what a Learner takes beside its
plans and its process.

The world is drawn from in the same loop, and that time is left out.
"""

import time
from collections.abc import Iterator

import gymnasium
import numpy as np
from budget import rounds
from scaling import A, H, world_of
from settings import SMALL, label
from table import Row, at_most

import surefoot as sf
from surefoot.audit.premises import Premises

SHARE, RARELY = 0.05, 1.0
MANY, MANY_SECONDS = 100_000_000, 60.0
SIMULATED_EPISODES, SIMULATED_SECONDS = 300, {"EpsMix": 2.0, "StepMix": 5.0}
TAXI_EPISODES, TAXI_SECONDS = 10_000, 120.0
# memory is slower than caches
STEP_SIZES, STEP_EPISODES, MOST_GROWTH_OF_A_STEP = (100, 1_000, 10_000), 200, 3.0
CHECKED_EPISODES, CHECKED_SECONDS, CHECKED_ROUNDS, MOST_FOR_CHECKS = 200, 5.0, (3, 6), 1.1
CHECKED = (
    ("random", {"S": 5, "A": 5, "H": 3, "stationary": True}),
    ("river-swim", {}),
    ("random", {"S": 30, "A": 2, "H": 50, "stationary": True}),  # every state may follow every pair
    ("grid-traps", {"rows": 8, "columns": 8, "H": 50}),
)


def time_of_runs() -> Iterator[Row]:
    yield in_blocks()
    yield from simulated()
    yield taxi()


def time_of_learners() -> Iterator[Row]:
    yield from steps_of_a_learner()
    yield from what_checks_take()


def in_blocks() -> Row:
    """10^8 episodes with the paper's constants: a plan lasts for 1 % of them, and its episodes
    are drawn at once.
    """
    world = sf.random_mdp(*SMALL, seed=0)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=10.0)
    agent = sf.StepMix(world.problem, baseline, 2.2, delta=0.1, bounds=sf.Bernstein(), replan=0.01)
    sf.simulate(world, agent, 2, seed=0)  # compiles
    seconds, run = min((timed(world, agent, MANY) for _ in range(3)), key=lambda pair: pair[0])
    note = f"{run.violations} below the floor, optimistic at {run.first_optimistic:,}"
    item = "StepMix, paper, blocks of 1 %: 10^8 episodes"
    return at_most(item, label(SMALL), seconds, "s", MANY_SECONDS, note)


def timed(world: sf.TabularMDP, agent: sf.Agent, episodes: int) -> tuple[float, sf.Run]:
    started = time.perf_counter()
    run = sf.simulate(world, agent, episodes, seed=0)
    return time.perf_counter() - started, run


def simulated() -> Iterator[Row]:
    """The first episodes of a run, plans included."""
    world = world_of(500)[0]
    pi_b = sf.uniform(world.H, world.S, world.A)
    floor = 0.9 * world.at_start(sf.policy_value(world, pi_b)[0])
    for kind in (sf.EpsMix, sf.StepMix):
        agent = kind(world.problem, pi_b, floor, delta=0.1, pooled=True, replan=SHARE)
        sf.simulate(world, agent, 40, seed=0)  # compiles
        seconds = min(timed(world, agent, SIMULATED_EPISODES)[0] for _ in range(3))
        item = f"{kind.name}: {SIMULATED_EPISODES} episodes, simulated"
        yield at_most(
            item, f"(500, {A}, {H}), three successors", seconds, "s", SIMULATED_SECONDS[kind.name]
        )


def taxi() -> Row:
    env = gymnasium.make("Taxi-v4", max_episode_steps=30)
    world = sf.from_gymnasium(env, horizon=30)
    pi_b = sf.uniform(world.H, world.S, world.A)
    floor = world.at_start(sf.policy_value(world, pi_b)[0]) - 20.0
    agent = sf.EpsMix(world.problem, pi_b, floor, delta=0.1, pooled=True, replan=SHARE)
    sf.learn(env, agent, 30, seed=0, progress=False)  # compiles
    started = time.perf_counter()
    run = sf.learn(env, agent, TAXI_EPISODES, seed=1, progress=False)
    seconds = time.perf_counter() - started
    note = f"{run.violations} below the floor, first mixture at {run.first_mixture}"
    where = f"({world.S}, {world.A}, {world.H})"
    return at_most(
        f"EpsMix: {TAXI_EPISODES:,} episodes of Taxi-v4, live",
        where,
        seconds,
        "s",
        TAXI_SECONDS,
        note,
    )


def steps_of_a_learner() -> Iterator[Row]:
    """A step of a Learner without its plans, against the number of states: in one of the
    smallest world.
    """
    first = None
    for S in STEP_SIZES:
        world = world_of(S)[0]
        pi_b = sf.uniform(world.H, world.S, world.A)
        agent = sf.EpsMix(world.problem, pi_b, 0.0, delta=0.1, pooled=True, replan=RARELY)
        seconds = step_seconds(world, agent)
        where, note = f"({S:,}, {A}, {H}), three successors", f"{1e6 * seconds:.0f} us"
        if first is None:
            first = seconds
            yield at_most("a step of a Learner, without plans", where, 1e6 * seconds, "us", 100.0)
        else:
            item = "a step of a Learner, without plans, in one of 100 states"
            yield at_most(item, where, seconds / first, "", MOST_GROWTH_OF_A_STEP, note)


def step_seconds(world: sf.TabularMDP, agent: sf.Agent) -> float:
    """Mean seconds of a step in the episodes that begin without a new plan."""
    learner, rng = sf.Learner(agent, seed=1), np.random.default_rng(0)
    total, episodes, plan = 0.0, 0, None
    for _ in range(STEP_EPISODES):
        acting = -time.perf_counter()
        learner.begin()
        acting += time.perf_counter()
        for h in range(world.H):
            s = learner.state
            acting -= time.perf_counter()
            a = learner.act()
            acting += time.perf_counter()
            s_next = world.draw_next(h, s, a, rng)
            x = paid(world, h, s, a, s_next)
            acting -= time.perf_counter()
            learner.observe(s_next, x)
            acting += time.perf_counter()
        acting -= time.perf_counter()
        learner.end()
        acting += time.perf_counter()
        if learner.counts.planned is plan:
            total, episodes = total + acting, episodes + 1
        plan = learner.counts.planned
    return total / episodes / world.H


def paid(world: sf.TabularMDP, h: int, s: int, a: int, s_next: int) -> float:
    """The reward in the world's own units, as a process would pay it: held against the table, it
    is that.
    """
    return float(world.problem.units.step_to_user(np.array(world.mean_reward(h, s, a, s_next))))


def what_checks_take() -> Iterator[Row]:
    """An episode, its plans included, with the checks of premises in one without: by turns, in
    seconds of this process. Steps that share counts are kept apart and compared, and rewards are
    held against the table.
    """
    for name, settings in CHECKED:
        world = sf.world(name, **settings)
        given = world.problem, world.baseline, world.suggested_floor
        agent = sf.EpsMix(*given, delta=0.1, pooled=world.stationary, replan=SHARE)
        episode_seconds(world, agent, 5, checked=True)  # compiles
        best = {True: float("inf"), False: float("inf")}
        for _ in rounds(CHECKED_SECONDS, *CHECKED_ROUNDS):
            for checked, known in best.items():
                best[checked] = min(known, episode_seconds(world, agent, CHECKED_EPISODES, checked))
        note = f"{1e6 * best[True]:.0f} us, without checks {1e6 * best[False]:.0f} us"
        where, ratio = f"({world.S:,}, {world.A}, {world.H}) {name}", best[True] / best[False]
        yield at_most(
            "an episode with its checks in one without", where, ratio, "", MOST_FOR_CHECKS, note
        )


def episode_seconds(world: sf.TabularMDP, agent: sf.Agent, episodes: int, checked: bool) -> float:
    learner, rng, total = sf.Learner(agent, seed=1), np.random.default_rng(0), 0.0
    if not checked:
        learner.counts.steps, learner.premises = None, Premises(None)
    for _ in range(episodes):
        started = time.process_time()
        learner.begin()
        total += time.process_time() - started
        for h in range(world.H):
            s, started = learner.state, time.process_time()
            a = learner.act()
            total += time.process_time() - started
            s_next = world.draw_next(h, s, a, rng)
            x, started = paid(world, h, s, a, s_next), time.process_time()
            learner.observe(s_next, x)
            total += time.process_time() - started
        started = time.process_time()
        learner.end()
        total += time.process_time() - started
    return total / episodes
