"""simulate: a learner meets a known world, and an exact account is kept."""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from surefoot.agents import Agent, Plan
from surefoot.agents.base import CountingAgent, plan_next
from surefoot.assurance.ledger import Ledger, require_floor_agent
from surefoot.base.progress import Report, Stop, ctrl_c, progress_bar
from surefoot.base.validation import require_integer
from surefoot.errors import InvalidSetting
from surefoot.numerics import kernels
from surefoot.simulation.loops import Driver, RunContext, driver_of, reference_loop
from surefoot.simulation.run import Run, run_from, trace_of
from surefoot.simulation.setup import RunSetup, begin, carry_on, check_setup, knows_baseline_value, name_of
from surefoot.task.counts import Counts
from surefoot.worlds.tabular_mdp import TabularMDP

CURVE_POINTS = 2000

Seed = int | np.random.SeedSequence


def simulate(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seed: Seed,
    floor: float | None = None,
    counts: Counts | None = None,
    progress: bool | None = None,
    checkpoints: Iterable[int] = (),
    ledger: str | Path | None = None,
) -> Run:
    """Play `episodes` episodes and keep the account.

    `counts` starts the learner warm (they are copied): those of an earlier run, or of a log, on the conditions that
    `Counts.from_log` states. It then draws other numbers than a run that starts cold with the same seed. With
    `replan=Blocks(...)` whole blocks are drawn at once, with the law of the loop but other bits.

    `floor` counts violations of another floor than the agent's own (for which there is then no promise), or of any
    floor for an agent without one. Values are exact, not sampled. StepMix and its kin run in compiled code, others
    plan in Python and are played in it; to the same last bit as `simulate_reference`.

    `checkpoints` are numbers of episodes: what a plan made after so many would say goes into `run.trace` (with blocks:
    at the end of the block), and changes nothing in the run. `ledger` is a new file for every plan, which
    `check_ledger` re-derives; plans are then made one by one in Python: the same bits, more slowly. Ctrl-C is heard
    about ten times a second, between episodes, and ends the run: what was played is returned, with `run.interrupted`. A
    second one, after the first was heard, is Python's own.
    """
    setup = check_setup(world, agent, episodes, floor)
    with ctrl_c() as stop, progress_bar(name_of(agent), setup.episodes, progress) as report:
        begun = begin(agent, counts, setup.episodes)
        marks = _check_checkpoints(checkpoints, setup.episodes)
        with _ledger(ledger, agent) as book:
            driver = driver_of(agent, written=book is not None)
            return _account(world, setup, driver, _check_seed(seed), begun, report, stop, marks, book)


def simulate_reference(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seed: Seed,
    floor: float | None = None,
    counts: Counts | None = None,
    progress: bool | None = None,
    checkpoints: Iterable[int] = (),
    ledger: str | Path | None = None,
) -> Run:
    """`simulate` by the plain loop: slower, and readable aloud."""
    setup = check_setup(world, agent, episodes, floor)
    with ctrl_c() as stop, progress_bar(name_of(agent), setup.episodes, progress) as report:
        begun = begin(agent, counts, setup.episodes)
        marks = _check_checkpoints(checkpoints, setup.episodes)
        with _ledger(ledger, agent) as book:
            return _account(world, setup, reference_loop, _check_seed(seed), begun, report, stop, marks, book)


simulate_plainly = simulate_reference  # its former name


def simulate_many(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seeds: Iterable[Seed],
    floor: float | None = None,
    jobs: int = 1,
    counts: Counts | None = None,
    progress: bool | None = None,
) -> list[Run]:
    """`simulate` once per seed, in `jobs` threads (-1: one per core; the compiled loop leaves the interpreter free).

    The number of jobs changes nothing but the time: run i depends on seeds[i] alone. After Ctrl-C the runs that had
    begun are returned.
    """
    import joblib

    setup = check_setup(world, agent, episodes, floor)
    if require_integer("jobs", jobs, -1, InvalidSetting) == 0:
        raise InvalidSetting("jobs is 0, expected a number of threads, or -1 for one per core.")
    try:
        checked = [_check_seed(seed) for seed in seeds]
    except TypeError:
        raise InvalidSetting(f"seeds is {seeds!r}, expected several seeds, such as range(10).") from None
    done, driver = [0] * len(checked), driver_of(agent)
    begin(agent, counts, setup.episodes)  # what does not fit is said once
    # Threads, whatever back end a caller has configured: runs share the world's arrays and one ear for Ctrl-C.
    parallel = joblib.Parallel(n_jobs=jobs, require="sharedmem")
    with (
        ctrl_c() as stop,
        progress_bar(f"{name_of(agent)}, {len(checked)} runs", setup.episodes * len(checked), progress) as report,
    ):

        def one(i: int) -> Run | None:
            def report_one(episodes_done: int) -> None:
                done[i] = episodes_done
                report(sum(done))

            begun = begin(agent, counts, setup.episodes)
            return None if stop() else _account(world, setup, driver, checked[i], begun, report_one, stop)

        runs: list[Run | None] = parallel(joblib.delayed(one)(i) for i in range(len(checked)))
    return [run for run in runs if run is not None]


def _account(
    world: TabularMDP,
    setup: RunSetup,
    driver: Driver,
    seed: Seed,
    counts: Counts,
    report: Report,
    stop: Stop,
    checkpoints: tuple[int, ...] = (),
    ledger: Ledger | None = None,
) -> Run:
    """Drive, and add up."""
    _, agent, K, floor, baseline, optimum, promise, costs, baseline_cost = setup
    tally = kernels.empty_tally(world.H, K, CURVE_POINTS)
    carry_on(tally, setup, counts)
    started = time.perf_counter()
    rng = np.random.default_rng(_after(seed, counts.episodes))
    looks: list[tuple[int, Plan]] = []
    left = list(reversed(checkpoints))
    for _ in driver(RunContext(world, agent, counts, rng, tally, setup.level, K, costs, checkpoints, ledger)):
        report(tally.done)
        if left and left[-1] <= tally.done:
            looks.append((tally.done, _look(agent, counts)))
            while left and left[-1] <= tally.done:
                left.pop()
        if stop():
            break
    if ledger is not None:
        ledger.close(counts.episodes)
    return run_from(
        tally,
        counts,
        agent=name_of(agent),
        promise=promise,
        seed=seed,
        floor=floor,
        optimum=optimum,
        baseline=baseline,
        seconds=time.perf_counter() - started,
        interrupted=stop(),
        units=world.problem.units,
        costs=costs,
        baseline_cost=baseline_cost,
        told=knows_baseline_value(agent),
        in_sum=isinstance(agent, CountingAgent) and agent.in_sum,
        trace=trace_of(looks) if checkpoints else None,
    )


def _ledger(path: str | Path | None, agent: Agent) -> AbstractContextManager[Ledger | None]:
    """A new ledger for the plans of this agent, if one is asked for."""
    return nullcontext() if path is None else Ledger(path, require_floor_agent(agent))


def _look(agent: Agent, counts: Counts) -> Plan:
    """The plan that would be made now. What an explorer draws for it is not the run's."""
    return plan_next(agent, counts, np.random.default_rng(0))


def _check_checkpoints(checkpoints: Iterable[int], episodes: int) -> tuple[int, ...]:
    """Ascending, each once, none beyond the end."""
    try:
        given = {require_integer("a checkpoint", k, 1, InvalidSetting) for k in checkpoints}
    except TypeError:
        raise InvalidSetting(f"checkpoints is {checkpoints!r}, expected numbers of episodes.") from None
    if given and max(given) > episodes:
        raise InvalidSetting(f"A checkpoint is at {max(given)}, expected at most the {episodes} episodes of the run.")
    return tuple(sorted(given))


def _check_seed(seed: Seed) -> Seed:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        raise InvalidSetting(
            "seed is a Generator, expected an integer >= 0 or a SeedSequence: a run starts from a seed."
        )
    return require_integer("seed", seed, 0, InvalidSetting)


def _after(seed: Seed, held: int) -> np.random.SeedSequence:
    """The stream of a run that goes on after `held` episodes: another one than theirs, though the seed be the same.

    Data drawn twice would count double, and what they prove would be false.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return root if held == 0 else np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, held))
