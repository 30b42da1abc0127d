"""A learner meets a known world, episode by episode: a plain loop for any agent, a fused one for splice agents."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.agents import Agent, Plan, SpliceAgent
from surefoot.agents.counting import CostBudget, CountingAgent, go_on, plan_next, when_to_plan
from surefoot.agents.floors import Relative
from surefoot.agents.plans import SOURCES
from surefoot.agents.replanning import Blocks, block_length, is_due, limits
from surefoot.arrays import Floats, read_only
from surefoot.blocks import draw_block
from surefoot.checks import REWARD_UNITS, VIOLATION_TOLERANCE, require_floor, require_integer
from surefoot.constrained import constrained_optimum
from surefoot.counts import Counts, Episode, check_counts, entered
from surefoot.errors import FloorAboveBaseline, InvalidModel, InvalidSetting
from surefoot.exact import cost_of, solve, value_of
from surefoot.mdp import TabularMDP, require_world
from surefoot.policy import EpisodicMixture, check_policy, draw
from surefoot.problem import Problem
from surefoot.run import Run, run_from
from surefoot.watching import Report, Stop, ctrl_c, progress_bar

CURVE_POINTS = 2000
CHUNK_SECONDS = 0.1  # how long the fused loop runs before it looks up: for progress and Ctrl-C
STRETCH = 200_000  # steps of one plan before Ctrl-C is listened for
MOST_STEPS = 2**62 // REWARD_UNITS  # sums of rewards are exact up to here

Seed = int | np.random.SeedSequence


class Ride(NamedTuple):
    """What a driver is given: who plays where, from what, and where the account is kept."""

    world: TabularMDP
    agent: Agent
    counts: Counts
    rng: np.random.Generator
    tally: "kernels.Tally"
    floor: float  # violations are counted against it; nan: none are
    episodes: int
    costs: CostBudget | None  # given: what is held against the floor is minus the expected cost

    def measure(self, policy: Floats | EpisodicMixture) -> tuple[float, float]:
        """The exact value of a policy, and what is held against the floor."""
        value = value_of(self.world, policy)
        return value, value if self.costs is None else -cost_of(self.world, policy, self.costs.cost)


Driver = Callable[[Ride], Iterator[None]]


class Setting(NamedTuple):
    """What every run of a call shares, checked."""

    world: TabularMDP | None  # None: no true model is known (live learning)
    agent: Agent
    episodes: int
    floor: float | None  # what violations are counted against
    baseline: float | None
    optimum: float | None
    promise: str
    costs: CostBudget | None = None  # violations are of this budget, not of a floor
    baseline_cost: float | None = None

    @property
    def level(self) -> float:
        """What kept values are held against; nan: nothing is."""
        if self.costs is not None:
            return -self.costs.budget
        return math.nan if self.floor is None else self.floor


def simulate(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seed: Seed,
    floor: float | None = None,
    counts: Counts | None = None,
    progress: bool | None = None,
) -> Run:
    """Play `episodes` episodes and keep the account.

    `counts` starts the learner warm (they are copied): those of an earlier run, or of a log, on the conditions that
    `Counts.from_log` states. It then draws other numbers than a run that starts cold with the same seed. With
    `replan=Blocks(...)` whole blocks are drawn at once, with the law of the loop but other bits.

    `floor` counts violations of another floor than the agent's own (for which there is then no promise), or of any
    floor for an agent without one. Values are exact, not sampled. StepMix and its kin run in compiled code, others
    plan in Python and are played in it; to the same last bit as `simulate_plainly`. Ctrl-C is heard about ten times a
    second, between episodes, and ends the run: what was played is returned, with `run.interrupted`. A second one, after
    the first was heard, is Python's own.
    """
    setting = check_setting(world, agent, episodes, floor)
    with ctrl_c() as stop, progress_bar(name_of(agent), setting.episodes, progress) as report:
        return _account(
            world, setting, _driver(agent), _check_seed(seed), begin(agent, counts, setting.episodes), report, stop
        )


def simulate_plainly(
    world: TabularMDP,
    agent: Agent,
    episodes: int,
    seed: Seed,
    floor: float | None = None,
    counts: Counts | None = None,
    progress: bool | None = None,
) -> Run:
    """`simulate` by the plain loop: slower, and readable aloud."""
    setting = check_setting(world, agent, episodes, floor)
    with ctrl_c() as stop, progress_bar(name_of(agent), setting.episodes, progress) as report:
        return _account(world, setting, _plain, _check_seed(seed), begin(agent, counts, setting.episodes), report, stop)


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

    setting = check_setting(world, agent, episodes, floor)
    if require_integer("jobs", jobs, -1, InvalidSetting) == 0:
        raise InvalidSetting("jobs is 0, expected a number of threads, or -1 for one per core.")
    try:
        checked = [_check_seed(seed) for seed in seeds]
    except TypeError:
        raise InvalidSetting(f"seeds is {seeds!r}, expected several seeds, such as range(10).") from None
    done, driver = [0] * len(checked), _driver(agent)
    begin(agent, counts, setting.episodes)  # what does not fit is said once
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

            begun = begin(agent, counts, setting.episodes)
            return None if stop() else _account(world, setting, driver, checked[i], begun, report_one, stop)

        runs: list[Run | None] = parallel(joblib.delayed(one)(i) for i in range(len(checked)))
    return [run for run in runs if run is not None]


def play(world: TabularMDP, policy: Floats | EpisodicMixture, rng: np.random.Generator) -> Episode:
    """One episode in the world, with the rewards it pays.

    Draws the coin if there is one, the first state if there are several, then for each step the action, the next state,
    and the reward if it is random.
    """
    require_world(world)
    pi = policy.draw(rng) if isinstance(policy, EpisodicMixture) else policy
    pi = check_policy(pi, world.problem)
    after = world.problem.r_next_rows
    states, actions, rewards = [world.s1 if world.problem.one_start else draw(world.start, rng)], [], []
    for h in range(world.H):
        s = states[-1]
        a = draw(pi[h, s], rng)
        states.append(draw(world.P[h, s, a], rng))
        actions.append(a)
        x = world.r[h, s, a] if after is None else after[h % len(after), s * world.A + a, states[-1]]
        rewards.append(float(rng.random() < x) if world.random_rewards else x)
    return Episode(states, actions, rewards)


def _plain(ride: Ride) -> Iterator[None]:
    """Plan, evaluate, play, count. Yields after every episode."""
    world, agent, counts, rng, tally, floor, episodes, _ = ride
    replan = when_to_plan(agent)
    plan, value, kept, then, since = None, math.nan, math.nan, counts, 0
    for _ in range(episodes):
        new = None if plan is None or is_due(replan, then, counts, world.H) else plan
        if new is not None and new.lasts is not None and counts.episodes >= since + new.lasts:
            new = go_on(agent, new, counts)
        if new is None:
            new, then = plan_next(agent, counts, rng), counts.copy()
            counts.basis = new.basis
        if new is not plan:
            plan, since = new, counts.episodes
            value, kept = ride.measure(plan.policy)
        drawn = plan.draw(rng)
        episode = play(world, drawn.policy, rng)
        counts.add(episode.as_learnt(agent.problem, drawn.baseline, plan.entry))
        record(tally, value, kept, plan, floor)
        yield


def record(tally: "kernels.Tally", value: float, kept: float, plan: Plan, floor: float) -> None:
    """Enter one planned episode. The kernel trusts its numbers, so they are looked at here."""
    check_step(plan, len(tally.by_h) - 1)
    kernels.record(tally, value, kept, SOURCES.index(plan.source), plan.h, floor)


def check_step(plan: Plan, H: int) -> None:
    """Does the plan's h exist?"""
    if plan.h > H:
        raise InvalidSetting(f"The plan says h = {plan.h}, expected a step in 0..{H}.")


def _held(ride: Ride) -> Iterator[None]:
    """Any agent: it plans in Python, and each plan is played in compiled code for as long as it is in force.

    The same bits as the plain loop. Yields after every stretch.
    """
    world, agent, counts, rng, tally, floor, episodes, _ = ride
    problem, replan = agent.problem, when_to_plan(agent)
    told, true_world = kernels.told_from(problem.r_rows, problem.r_next_rows, problem.unknown_rows), the_world(world)
    rows, pairs = len(counts.n_sas), world.S * world.A
    states, actions, paid = (np.zeros(size, dtype=np.int64) for size in (world.H + 1, world.H, world.H))
    x_sa = np.zeros((0, 0), dtype=np.int64) if counts.x_sa is None else counts.x_sa.reshape(rows, pairs)
    done = 0
    while done < episodes:
        plan: Plan | None = plan_next(agent, counts, rng)
        assert plan is not None
        counts.basis = plan.basis
        n_sa = counts.n_sas.sum(axis=-1).reshape(rows, pairs)
        memory = kernels.Memory(
            n_sas=counts.n_sas.reshape(rows, pairs, world.S),
            n_sa=n_sa,
            x_sa=x_sa,
            n_start=counts.n_start,
            record=counts.record,
            ledger=counts.ledger,
            limits=limits(replan, n_sa),
        )
        block = block_length(replan, counts.episodes)
        left = episodes - done if block is None else min(block, episodes - done)
        either: dict[object, tuple[Plan, kernels.Held]] = {}  # who goes on switches between the policies of its plan
        while left > 0 and plan is not None:
            check_step(plan, world.H)
            key = (plan.source, plan.h, plan.entry, _address(plan.policy))
            if key not in either:
                either[key] = plan, held_from(plan, *ride.measure(plan.policy), problem)
            held = either[key][1]
            stretch = left if plan.lasts is None else min(left, plan.lasts)
            while stretch > 0:
                n = min(stretch, max(1, STRETCH // world.H))
                n = kernels.play_on(true_world, told, held, memory, tally, floor, n, rng, states, actions, paid)
                done, left, stretch = done + n, left - n, stretch - n
                if _reached(memory):
                    left = stretch = 0
                yield
            plan = go_on(agent, plan, counts) if left > 0 else None


def _address(policy: Floats | EpisodicMixture) -> int:
    """The same policy, as long as it lives, has the same address."""
    return id(policy) if isinstance(policy, EpisodicMixture) else int(policy.ctypes.data)


def _reached(memory: "kernels.Memory") -> bool:
    """Did the visits of some pair reach the limit that ends the plan?"""
    return bool(memory.limits.size and (memory.n_sa >= memory.limits).any())


def held_from(plan: Plan, value: float, kept: float, problem: Problem) -> "kernels.Held":
    """A plan as the kernels read it."""
    policy: Any = plan.policy
    coin = isinstance(policy, EpisodicMixture)
    sides, rho = ((policy.first, policy.second), policy.rho) if coin else ((policy, policy), 0.0)
    first, second = (read_only(np.ascontiguousarray(check_policy(side, problem))) for side in sides)
    return kernels.Held(
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


def _fused(ride: Ride) -> Iterator[None]:
    """The same work inside one compiled call. Yields about ten times a second."""
    world, agent, counts, rng, tally, floor, episodes, _ = ride
    assert isinstance(agent, SpliceAgent)
    problem, pace = agent.problem, agent.when.pace
    told = kernels.told_from(problem.r_rows, problem.r_next_rows, problem.unknown_rows)
    evidence, start, record_b = agent.evidence(counts)
    splices = kernels.empty_splices(agent.h0, agent.pi_b)
    desk = kernels.empty_desk(world.H, world.S, world.A, len(agent.h0))
    rows, pairs = evidence.n_sa.shape
    value_b = value_of(world, agent.pi_b)
    course = kernels.empty_course(pace.growth < math.inf, rows, pairs, counts.episodes, value_b)
    kernels.refresh_all(evidence)
    true_world = the_world(world)
    rule = agent.rule
    done, chunk = 0, 1  # one episode first, so that compiling does not count as its speed
    while done < episodes:
        started = time.perf_counter()
        kernels.run_episodes(
            true_world, told, evidence, splices, start, record_b, rule, pace, tally, floor, chunk, rng, desk, course
        )
        speed = CHUNK_SECONDS / max(time.perf_counter() - started, 1e-9)
        growth = min(10.0, speed) if done else 1.0
        done += chunk
        chunk = max(1, min(episodes - done, int(chunk * growth)))
        yield


def the_world(world: TabularMDP) -> "kernels.TrueWorld":
    """The world as the kernels read it."""
    several = not world.problem.one_start
    return kernels.TrueWorld(
        world.P_rows, world.P_pairs, world.r_rows, world.paid_rows, world.start, several, world.random_rewards
    )


def _blocks(ride: Ride) -> Iterator[None]:
    """Whole blocks at once: the length of a block is fixed when it is planned, so its episodes are i.i.d. and their
    counts are multinomial, step by step. The law of the loop, not its bits. Yields after every block."""
    _, agent, counts, rng, _, _, episodes, _ = ride
    replan, done = when_to_plan(agent), 0
    while done < episodes:
        plan: Plan | None = plan_next(agent, counts, rng)
        assert plan is not None
        counts.basis = plan.basis
        block = block_length(replan, counts.episodes)
        left = episodes - done if block is None else min(block, episodes - done)
        while left > 0 and plan is not None:
            n = left if plan.lasts is None else min(left, plan.lasts)
            _play_block(ride, plan, n)
            done, left = done + n, left - n
            yield
            plan = go_on(agent, plan, counts) if left > 0 else None


def _play_block(ride: Ride, plan: Plan, n: int) -> None:
    """n episodes of one plan at once, counted and entered."""
    world, agent, counts, rng, tally, floor, _, _ = ride
    check_step(plan, world.H)
    policy = plan.policy
    value, kept = ride.measure(policy)
    by_baseline = n if plan.source == "baseline" else 0
    if isinstance(policy, EpisodicMixture):
        by_baseline = n - int(rng.binomial(n, policy.rho))
        draw_block(world, agent.problem, policy.second, n - by_baseline, counts, rng, baseline=False)
        draw_block(world, agent.problem, policy.first, by_baseline, counts, rng, baseline=True)
    else:
        draw_block(world, agent.problem, policy, n, counts, rng, baseline=by_baseline > 0)
    if plan.entry is not None:
        counts.ledger += by_baseline * entered(True, plan.entry) + (n - by_baseline) * entered(False, plan.entry)
    kernels.record_block(tally, value, kept, SOURCES.index(plan.source), plan.h, floor, n)


def _driver(agent: Agent) -> Driver:
    """The fused loop plans as SpliceAgent does; an agent with a plan or an explorer of its own is asked for it."""
    if isinstance(agent, CountingAgent) and isinstance(agent.when, Blocks):
        return _blocks
    if isinstance(agent, SpliceAgent) and agent.plans_itself and agent.explorer is None:
        return _fused
    return _held


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


def name_of(agent: Agent) -> str:
    """As the literature writes it, or as its class is called."""
    return agent.name if isinstance(agent, CountingAgent) else type(agent).__name__


def _check_seed(seed: Seed) -> Seed:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        raise InvalidSetting(
            "seed is a Generator, expected an integer >= 0 or a SeedSequence: a run starts from a seed."
        )
    return require_integer("seed", seed, 0, InvalidSetting)


def floor_of(agent: Agent, baseline: float | None) -> float | None:
    """The agent's floor as a number; a relative one is known only where the baseline's value is."""
    if isinstance(agent.floor, Relative):
        return None if baseline is None else agent.floor.of(baseline, agent.problem)
    return agent.floor


def _after(seed: Seed, held: int) -> np.random.SeedSequence:
    """The stream of a run that goes on after `held` episodes: another one than theirs, though the seed be the same.

    Data drawn twice would count double, and what they prove would be false.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return root if held == 0 else np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, held))


def promise_for(agent: Agent, floor: float | None, own: float | None) -> str:
    """The agent's label, or that it says nothing about this other floor."""
    if agent.promise.startswith("NOT CERTIFIED"):
        return agent.promise
    if isinstance(agent, CountingAgent) and agent.cost_budget is not None and floor is not None:
        return f"no promise for this floor: the learner keeps costs within {agent.cost_budget.budget:g}"
    if agent.floor is None or floor == own:
        return agent.promise
    kept = str(agent.floor) if isinstance(agent.floor, Relative) else f"{agent.floor:g}"
    return f"no promise for this floor: the learner keeps {kept}"


def without_premise(promise: str, why: str) -> str:
    """A label whose premise turned out to be false; NOT CERTIFIED says as much already, and is never lost."""
    return promise if promise.startswith("NOT CERTIFIED") else f"no promise: its premise is false, {why}"


def check_setting(world: TabularMDP, agent: Agent, episodes: int, floor: float | None) -> Setting:
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
                promise = without_premise(promise, f"the baseline is worth {worth}")
    word = agent.vouched if isinstance(agent, CountingAgent) else None
    if word is not None and baseline is not None and baseline < word - VIOLATION_TOLERANCE:
        said, worth = (f"{world.in_user_units(value):.6g}" for value in (word, baseline))
        warnings.warn(
            f"The owner's word is {said}, but the baseline is worth {worth}: what leans on that word is not safe.",
            FloorAboveBaseline,
            stacklevel=3,
        )
        promise = without_premise(promise, f"the baseline is worth {worth}")
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
            promise = without_premise(promise, f"the baseline costs {baseline_cost:.6g}")
    return Setting(world, agent, K, level, baseline, optimum, promise, costs, baseline_cost)


def _account(
    world: TabularMDP, setting: Setting, driver: Driver, seed: Seed, counts: Counts, report: Report, stop: Stop
) -> Run:
    """Drive, and add up."""
    _, agent, K, floor, baseline, optimum, promise, costs, baseline_cost = setting
    tally = kernels.empty_tally(world.H, K, CURVE_POINTS)
    carry_on(tally, setting, counts)
    started = time.perf_counter()
    rng = np.random.default_rng(_after(seed, counts.episodes))
    for _ in driver(Ride(world, agent, counts, rng, tally, setting.level, K, costs)):
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
        costs=costs,
        baseline_cost=baseline_cost,
        told=was_told(agent),
        in_sum=isinstance(agent, CountingAgent) and agent.in_sum,
    )


def carry_on(tally: "kernels.Tally", setting: Setting, counts: Counts) -> None:
    """An account that warm counts brought along: the sum begins with what is known of its episodes."""
    agent = setting.agent
    if isinstance(agent, CountingAgent) and setting.baseline is not None and setting.floor == agent.floor:
        tally.surplus[0] = agent.saved_before(counts, setting.baseline)


def was_told(agent: Agent) -> bool:
    """Does the learner know what its baseline is worth, or at least, and not only we?"""
    return isinstance(agent, CountingAgent) and (agent.told_value is not None or agent.vouched is not None)


def check_same_problem(world: TabularMDP, agent: Agent) -> None:
    """An agent planned for other sizes, rewards or another start would not be the one its bounds speak about.

    It may know less than the world's own problem tells, and it may be told which transitions are possible.
    """
    mine, its = world.problem, agent.problem
    if (mine.H, mine.S, mine.A) != (its.H, its.S, its.A):
        raise InvalidModel(f"The agent is for {its}, the world is {world}. Build the agent from world.problem.")
    if its.start is not None and not np.array_equal(its.start, world.start):
        raise InvalidModel(f"The agent is for {its}, which starts elsewhere than {world}. Use world.problem.")
    hidden = np.broadcast_to(its.hidden, its.r.shape)
    if its.r_next_rows is not None:
        same = mine.r_next_rows is not None and np.array_equal(its.r_next_rows, mine.r_next_rows)
    elif mine.r_next_rows is not None:  # told the means
        same = np.allclose(its.r[~hidden], world.r[~hidden], rtol=0.0, atol=1e-12)
    else:
        same = np.array_equal(mine.r[~hidden], its.r[~hidden])
    if not same:
        raise InvalidModel("The agent knows other rewards than the world pays. Build the agent from world.problem.")
    if ((world.P > 0.0) & ~its.possible).any():
        raise InvalidModel("The agent's support excludes transitions that happen in this world: its mask is false.")
    if agent.pooled and (np.ptp(world.r, axis=0) > 1e-12)[hidden.any(axis=0)].any():
        raise InvalidModel(
            "The agent pools rewards that it does not know over steps, but in this world they depend on the step."
        )
    if agent.pooled and not mine.stationary:
        raise InvalidModel("The agent pools its counts over steps, but the dynamics of this world depend on the step.")


def _baseline_value(world: TabularMDP, agent: Agent) -> float | None:
    """What only the simulator knows: the true value of the baseline."""
    if not isinstance(agent, CountingAgent) or (agent.floor is None and agent.cost_budget is None):
        return None
    return value_of(world, agent.pi_b)
