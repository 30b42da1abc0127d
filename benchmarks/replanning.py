"""What replanning rules save: one episode with KL and growth 1.1, and 10^8 episodes in blocks."""

import time

from settings import SMALL, label
from table import Row, at_most

import surefoot as sf

EPISODES = 30_000
MANY = 100_000_000


def time_of_replanning() -> list[Row]:
    world = sf.random_mdp(*SMALL, seed=0)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=10.0)
    grown = sf.StepMix(world.problem, baseline, 2.2, delta=0.1)
    literal = sf.StepMix(world.problem, baseline, 2.2, delta=0.1, bounds=sf.Bernstein(), replan=sf.Blocks(0.01))
    rows = []
    for name, agent, episodes, unit, per, target in (
        ("StepMix, KL, growth 1.1: per episode", grown, EPISODES, "us", 1e6 / EPISODES, 1.0),
        ("StepMix, KL, growth 1.1: per episode", grown, 10 * EPISODES, "us", 1e5 / EPISODES, 1.0),
        ("StepMix, paper, blocks of 1 %: 10^8 episodes", literal, MANY, "s", 1.0, 60.0),
    ):
        sf.simulate(world, agent, 2, seed=0)
        best, run = min((_timed(world, agent, episodes) for _ in range(3)), key=lambda pair: pair[0])
        note = f"{episodes:,} episodes, {run.violations} below the floor, optimistic at {run.first_optimistic:,}"
        rows.append(at_most(name, label(SMALL), best * per, unit, target, note))
    return rows


def _timed(world: sf.TabularMDP, agent: sf.StepMix, episodes: int) -> tuple[float, sf.Run]:
    started = time.perf_counter()
    run = sf.simulate(world, agent, episodes, seed=0)
    return time.perf_counter() - started, run
