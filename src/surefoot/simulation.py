"""A learner meets a known world, episode by episode: a plain loop for any agent, a fused one for splice agents."""

import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.agents import Agent, Plan, SpliceAgent
from surefoot.agents.planning import SOURCES
from surefoot.arrays import Floats
from surefoot.checks import VIOLATION_TOLERANCE, require_floor, require_integer
from surefoot.counts import Counts, Episode
from surefoot.errors import FloorAboveBaseline, InvalidModel, InvalidSetting
from surefoot.exact import policy_value, solve
from surefoot.mdp import TabularMDP, require_world
from surefoot.policy import EpisodicMixture, check_policy, draw
from surefoot.run import Run, run_from

CURVE_POINTS = 2000
CHUNK_SECONDS = 0.1  # how long the fused loop runs before it looks up: for progress and Ctrl-C
MOST_EPISODES = 10**15

Seed = int | np.random.SeedSequence
Stop = Callable[[], bool]
Report = Callable[[int], None]
Driver = Callable[[TabularMDP, Agent, Counts, np.random.Generator, "kernels.Tally", float, int], Iterator[None]]


class Setting(NamedTuple):
    """What every run of a call shares, checked."""

    world: TabularMDP | None  # None: no true model is known (live learning)
    agent: Agent
    episodes: int
    floor: float | None  # what violations are counted against
    baseline: float | None
    optimum: float | None
    promise: str


def simulate(
    world: TabularMDP, agent: Agent, episodes: int, seed: Seed, floor: float | None = None, progress: bool | None = None
) -> Run:
    """Play `episodes` episodes and keep the account.

    `floor` counts violations of another floor than the agent's own (for which there is then no promise), or of any
    floor for an agent without one. Values are exact, not sampled. Splice agents run in compiled code, to the same
    last bit as `simulate_plainly`. Ctrl-C is heard about ten times a second, between episodes, and ends the run:
    what was played is returned, with `run.interrupted`. A second one, after the first was heard, is Python's own.
    """
    setting = check_setting(world, agent, episodes, floor)
    with ctrl_c() as stop, progress_bar(name_of(agent), setting.episodes, progress) as report:
        return _account(world, setting, _driver(agent), _check_seed(seed), report, stop)


def simulate_plainly(
    world: TabularMDP, agent: Agent, episodes: int, seed: Seed, floor: float | None = None, progress: bool | None = None
) -> Run:
    """`simulate` by the plain loop: slower, and readable aloud."""
    setting = check_setting(world, agent, episodes, floor)
    with ctrl_c() as stop, progress_bar(name_of(agent), setting.episodes, progress) as report:
        return _account(world, setting, _plain, _check_seed(seed), report, stop)


def simulate_many(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seeds: Iterable[Seed],
    floor: float | None = None,
    jobs: int = 1,
    progress: bool | None = None,
) -> list[Run]:
    """`simulate` once per seed, in `jobs` threads (-1: one per core; the compiled loop leaves the interpreter free).

    The number of jobs changes nothing but the time: run i depends on seeds[i] alone. After Ctrl-C the runs that had
    begun are returned.
    """
    import joblib

    setting = check_setting(world, agent, episodes, floor)
    if require_integer("jobs", jobs, -1, InvalidSetting) == 0:
        raise InvalidSetting("jobs is 0, expected a number of threads, or -1 for one per core.")
    try:
        checked = [_check_seed(seed) for seed in seeds]
    except TypeError:
        raise InvalidSetting(f"seeds is {seeds!r}, expected several seeds, such as range(10).") from None
    done = [0] * len(checked)
    # Threads, whatever back end a caller has configured: runs share the world's arrays and one ear for Ctrl-C.
    parallel = joblib.Parallel(n_jobs=jobs, require="sharedmem")
    with (
        ctrl_c() as stop,
        progress_bar(f"{name_of(agent)}, {len(checked)} runs", setting.episodes * len(checked), progress) as report,
    ):

        def one(i: int) -> Run | None:
            def report_one(episodes_done: int) -> None:
                done[i] = episodes_done
                report(sum(done))

            return None if stop() else _account(world, setting, _driver(agent), checked[i], report_one, stop)

        runs: list[Run | None] = parallel(joblib.delayed(one)(i) for i in range(len(checked)))
    return [run for run in runs if run is not None]


def play(world: TabularMDP, policy: Floats | EpisodicMixture, rng: np.random.Generator) -> Episode:
    """One episode in the world. Draws the coin if there is one, then for each step the action and the next state."""
    require_world(world)
    pi = policy.draw(rng) if isinstance(policy, EpisodicMixture) else policy
    pi = check_policy(pi, world.problem)
    states, actions, rewards = [world.s1], [], []
    for h in range(world.H):
        s = states[-1]
        a = draw(pi[h, s], rng)
        states.append(draw(world.P[h, s, a], rng))
        actions.append(a)
        rewards.append(world.r[h, s, a])
    return Episode(states, actions, rewards)


def _plain(
    world: TabularMDP,
    agent: Agent,
    counts: Counts,
    rng: np.random.Generator,
    tally: "kernels.Tally",
    floor: float,
    episodes: int,
) -> Iterator[None]:
    """Plan, evaluate, play, count. Yields after every episode."""
    for _ in range(episodes):
        plan = agent.plan(counts)
        value = float(policy_value(world, plan.policy)[0, world.s1])
        episode = play(world, plan.policy, rng)
        counts.add(episode)
        record(tally, value, plan, floor)
        yield


def record(tally: "kernels.Tally", value: float, plan: Plan, floor: float) -> None:
    """Enter one planned episode. The kernel trusts its numbers, so they are looked at here."""
    H = len(tally.by_h) - 1
    if plan.h > H:
        raise InvalidSetting(f"The plan says h = {plan.h}, expected a step in 0..{H}.")
    kernels.record(tally, value, SOURCES.index(plan.source), plan.h, floor)


def _fused(
    world: TabularMDP,
    agent: Agent,
    counts: Counts,
    rng: np.random.Generator,
    tally: "kernels.Tally",
    floor: float,
    episodes: int,
) -> Iterator[None]:
    """The same work inside one compiled call. Yields about ten times a second."""
    assert isinstance(agent, SpliceAgent)
    true_world = kernels.TrueWorld(world.P_rows, world.P_pairs, world.problem.r_rows, world.s1)
    evidence = agent.bounds.evidence(agent.problem, counts, agent.delta_prime)
    splices = kernels.empty_splices(agent.h0, agent.problem.r_rows, agent.pi_b)
    desk = kernels.empty_desk(world.H, world.S, world.A, len(agent.h0))
    rule = agent.rule
    done, chunk = 0, 1  # one episode first, so that compiling does not count as its speed
    while done < episodes:
        started = time.perf_counter()
        kernels.run_episodes(true_world, evidence, splices, rule, tally, floor, chunk, rng, desk)
        pace = CHUNK_SECONDS / max(time.perf_counter() - started, 1e-9)
        growth = min(10.0, pace) if done else 1.0
        done += chunk
        chunk = max(1, min(episodes - done, int(chunk * growth)))
        yield


def _driver(agent: Agent) -> Driver:
    """The fused loop plans as SpliceAgent does; an agent with a plan of its own is asked for it."""
    own_plan = isinstance(agent, SpliceAgent) and type(agent).plan is SpliceAgent.plan
    return _fused if own_plan else _plain


def name_of(agent: Agent) -> str:
    """As the literature writes it, or as its class is called."""
    return agent.name if isinstance(agent, SpliceAgent) else type(agent).__name__


def _check_seed(seed: Seed) -> Seed:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        raise InvalidSetting(
            "seed is a Generator, expected an integer >= 0 or a SeedSequence: a run starts from a seed."
        )
    return require_integer("seed", seed, 0, InvalidSetting)


def promise_for(agent: Agent, floor: float | None) -> str:
    """The agent's label, or that it says nothing about this other floor."""
    if agent.floor is None or floor == agent.floor or agent.promise.startswith("NOT CERTIFIED"):
        return agent.promise
    return f"no promise for this floor: the learner keeps {agent.floor:g}"


def check_setting(world: TabularMDP, agent: Agent, episodes: int, floor: float | None) -> Setting:
    """Check what comes in, and warn of a floor that the baseline does not reach. Called by the public functions."""
    require_world(world)
    if not isinstance(agent, Agent):
        raise InvalidSetting(f"Expected an agent such as sf.StepMix(...), found {type(agent).__name__}. See sf.Agent.")
    K = require_integer("episodes", episodes, 1, InvalidSetting)
    if K > MOST_EPISODES:
        raise InvalidSetting(f"episodes is {K}, expected at most {MOST_EPISODES}.")
    _require_same_problem(world, agent)
    level = agent.floor if floor is None else require_floor(floor, world.H)
    baseline = _baseline_value(world, agent)
    optimum = solve(world).value
    promise = promise_for(agent, level)
    for at_stake in {level, agent.floor} - {None}:
        if baseline is not None and at_stake is not None and baseline < at_stake - VIOLATION_TOLERANCE:
            reach = (
                f"no policy reaches it, the best is worth {optimum:.6g}" if optimum < at_stake else "find a better one"
            )
            warnings.warn(
                f"The baseline is worth {baseline:.6g}, below the floor of {at_stake:.6g}: the promise presumes a "
                f"baseline above it, and episodes on the baseline will violate it. Lower the floor ({reach}).",
                FloorAboveBaseline,
                stacklevel=3,
            )
            if at_stake == agent.floor and not promise.startswith("NOT CERTIFIED"):
                promise = f"no promise: its premise is false, the baseline is worth {baseline:.6g}"
    return Setting(world, agent, K, level, baseline, optimum, promise)


def _account(world: TabularMDP, setting: Setting, driver: Driver, seed: Seed, report: Report, stop: Stop) -> Run:
    """Drive, and add up."""
    _, agent, K, floor, baseline, optimum, promise = setting
    tally = kernels.empty_tally(world.H, K, CURVE_POINTS)
    started = time.perf_counter()
    rng = np.random.default_rng(seed)
    counts = Counts.zeros(agent.problem, agent.pooled)
    for _ in driver(world, agent, counts, rng, tally, math.nan if floor is None else floor, K):
        report(tally.done)
        if stop():
            break
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
    )


def _require_same_problem(world: TabularMDP, agent: Agent) -> None:
    """An agent planned for other sizes, rewards or another start would not be the one its bounds speak about."""
    mine, its = world.problem, agent.problem
    if (mine.H, mine.S, mine.A, mine.s1) != (its.H, its.S, its.A, its.s1):
        raise InvalidModel(f"The agent is for {its}, the world is {world}. Build the agent from world.problem.")
    if not np.array_equal(mine.r, its.r):
        raise InvalidModel("The agent knows other rewards than the world pays. Build the agent from world.problem.")
    if agent.pooled and not mine.stationary:
        raise InvalidModel("The agent pools its counts over steps, but the dynamics of this world depend on the step.")


def _baseline_value(world: TabularMDP, agent: Agent) -> float | None:
    """What only the simulator knows: the true value of the baseline."""
    if agent.floor is None or not isinstance(agent, SpliceAgent):
        return None
    return float(policy_value(world, agent.pi_b)[0, world.s1])


@contextmanager
def ctrl_c() -> Iterator[Stop]:
    """The first Ctrl-C is a wish, heard between episodes; the second is Python's own. Only the main thread hears it."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def hear(_signal: int, _frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, hear)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(name: str, episodes: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, silence elsewhere."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} episodes, left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{name} (compiling, the first time)", total=episodes)

        def report(done: int) -> None:
            bar.update(task, completed=done, description=name if done else None)

        yield report
