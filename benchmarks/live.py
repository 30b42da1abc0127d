"""A process that answers for itself: how much of the time is planning, and how long episodes of larger worlds take.

Share: of the time that a Learner and its plans take, while the process itself takes none. Any process takes some, and
the share is smaller then. The world is drawn from in the same loop, and that time is left out.
"""

import time

import gymnasium
import numpy as np
from scaling import world_of
from table import Row, at_most

import surefoot as sf

WORLDS = (  # tables up to 64 states, lists above
    ("random", {"S": 1, "A": 4, "H": 1}),
    ("random", {"S": 5, "A": 5, "H": 3}),
    ("dosing", {}),
    ("offers", {}),
    ("river-swim", {}),
    ("grid-traps", {"rows": 4, "columns": 4, "H": 20}),
    ("random", {"S": 30, "A": 2, "H": 50, "stationary": True}),  # every state may follow every pair
    ("grid-traps", {"rows": 6, "columns": 6, "H": 12}),
    ("grid-traps", {"rows": 8, "columns": 8, "H": 50}),
    ("grid-traps", {"rows": 23, "columns": 22, "H": 20}),
    ("grid-traps", {"rows": 71, "columns": 71, "H": 20}),
    ("call-centre", {"lines": 40, "desks": 20, "hours": 12, "H": 12}),
)
MOST_SHARE = 0.5
AT_LEAST = 100  # episodes, and those of three plans: at first plans are made most often
TAXI_EPISODES, TAXI_SECONDS = 10_000, 120.0
SIMULATED_EPISODES, SIMULATED_SECONDS = 300, {"EpsMix": 2.0, "StepMix": 5.0}


def time_of_live_episodes() -> list[Row]:
    return [*shares(), *simulated(), taxi()]


def shares() -> list[Row]:
    rows = []
    for name, settings in WORLDS:
        world = sf.world(name, **settings)
        for kind in (sf.EpsMix, sf.StepMix):
            agent = kind(world.problem, world.baseline, world.suggested_floor, delta=0.1, pooled=world.stationary)
            rule = agent.replan_rule
            episodes = max(AT_LEAST, 3 * getattr(rule, "at_least", 1))
            timed(world, agent, 3)  # compiles
            planning, acting, plans = timed(world, agent, episodes)
            where = f"({world.S:,}, {world.A}, {world.H}), {name}"
            note = (
                f"{episodes} episodes, {plans} plans of {1e3 * planning / plans:.2g} ms, "
                f"{1e6 * acting / episodes / world.H:.0f} us a step, {rule}"
            )
            item = f"{kind.name}: share of planning, live"
            rows.append(at_most(item, where, planning / (planning + acting), "", MOST_SHARE, note))
    return rows


def timed(world: sf.TabularMDP, agent: sf.StepMix, episodes: int) -> tuple[float, float, int]:
    """Seconds of planning and of acting after the first plan, which begins a run, and how many plans there were."""
    learner, rng = sf.Learner(agent, seed=1), np.random.default_rng(0)
    planning = acting = 0.0
    plans, before = 0, None
    for k in range(episodes + 1):
        started = time.perf_counter()
        plan = learner.begin()
        took = time.perf_counter() - started
        new, before = plan is not before, plan
        for h in range(world.H):
            started = time.perf_counter()
            s = world.s1 if h == 0 else learner.state
            a = learner.act()
            took_here = time.perf_counter() - started
            s_next = world.draw_next(h, s, a, rng)
            x = float(world.mean_reward(h, s, a, s_next))
            started = time.perf_counter()
            learner.observe(s_next, x)
            acting += (took_here + time.perf_counter() - started) if k else 0.0
        started = time.perf_counter()
        learner.end()
        acting += (time.perf_counter() - started) if k else 0.0
        if k and new:
            planning, plans = planning + took, plans + 1
        elif k:
            acting += took
    return planning, acting, plans


def simulated() -> list[Row]:
    """The first episodes of a run, plans included."""
    world = world_of(500)[0]
    pi_b = sf.uniform(world.H, world.S, world.A)
    floor = 0.9 * world.at_start(sf.policy_value(world, pi_b)[0])
    rows = []
    for kind in (sf.EpsMix, sf.StepMix):
        agent = kind(world.problem, pi_b, floor, delta=0.1, pooled=True)
        sf.simulate(world, agent, 40, seed=0)  # compiles
        started = time.perf_counter()
        sf.simulate(world, agent, SIMULATED_EPISODES, seed=1)
        seconds = time.perf_counter() - started
        item = f"{kind.name}: {SIMULATED_EPISODES} episodes, simulated"
        rows.append(at_most(item, "(500, 5, 20), three successors", seconds, "s", SIMULATED_SECONDS[kind.name]))
    return rows


def taxi() -> Row:
    env = gymnasium.make("Taxi-v4", max_episode_steps=30)
    world = sf.from_gymnasium(env, horizon=30)
    pi_b = sf.uniform(world.H, world.S, world.A)
    floor = world.at_start(sf.policy_value(world, pi_b)[0]) - 20.0
    agent = sf.EpsMix(world.problem, pi_b, floor, delta=0.1, pooled=True)
    sf.learn(env, agent, 30, seed=0, progress=False)  # compiles
    started = time.perf_counter()
    run = sf.learn(env, agent, TAXI_EPISODES, seed=1, progress=False)
    seconds = time.perf_counter() - started
    note = f"{run.violations} below the floor, first mixture at {run.first_mixture}, {agent.replan_rule}"
    where = f"({world.S}, {world.A}, {world.H})"
    return at_most(f"EpsMix: {TAXI_EPISODES:,} episodes of Taxi-v4, live", where, seconds, "s", TAXI_SECONDS, note)
