"""learn: any agent in any Gymnasium environment with Discrete spaces, through reset and step."""

import hashlib
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.agents import Agent, CountingAgent
from surefoot.agents.base import CostBudget
from surefoot.assurance.ledger import Ledger, require_floor_agent
from surefoot.assurance.watchdog import Watch, Watchdog, begin_watch
from surefoot.base.arrays import Floats
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.progress import ctrl_c, progress_bar
from surefoot.base.validation import REWARD_UNITS, require_floor, require_integer
from surefoot.errors import InvalidCounts, InvalidEpisode, InvalidFile, InvalidModel, InvalidSetting
from surefoot.live.learner import Learner
from surefoot.numerics import kernels
from surefoot.simulation.loops import add_episode
from surefoot.simulation.run import Run, run_from
from surefoot.simulation.setup import (
    RunSetup,
    begin,
    carry_on,
    check_setup,
    floor_of,
    knows_baseline_value,
    name_of,
    promise_for,
)
from surefoot.simulation.simulate import CURVE_POINTS
from surefoot.task.counts import Counts, check_counts
from surefoot.task.policy import EpisodicMixture
from surefoot.task.problem import Problem
from surefoot.worlds.exact import cost_of, value_of
from surefoot.worlds.gymnasium import Coder, Env, EnvOrId, TabularEnv, from_gymnasium, make, require_time, shown_model
from surefoot.worlds.tabular_mdp import TabularMDP

SAVE_SECONDS = 30.0
TALLY = ("totals", "by_h", "smallest", "surplus", "bin_sum", "bin_min", "bin_below", "bin_source", "bin_h")


def learn(
    env: EnvOrId,
    agent: Agent,
    episodes: int,
    seed: int,
    *,
    floor: float | None = None,
    save: str | Path | None = None,
    resume: bool = False,
    counts: Counts | None = None,
    progress: bool | None = None,
    ledger: str | Path | None = None,
    watchdog: Watchdog | None = None,
) -> Run:
    """Play `episodes` episodes in the environment and keep the same account as `simulate`.

    The agent's problem is the one `from_gymnasium` made of this environment (or of one of our worlds). If the
    environment shows its model, values, violations and regret are exact; else they are None and the curve shows
    observed returns. Episode k draws from (seed, k) alone, the environment included (`reset(seed=...)`), so with
    `save` a run can be interrupted at any time and taken up again with `resume=True`: it ends with the same bits.

    `counts` starts the learner warm (they are copied), on the conditions that `Counts.from_log` states. Episodes are
    then numbered on from those they hold, so that no draw comes twice.

    `ledger` is a file for every plan, which `check_ledger` re-derives; with resume=True it goes on, too.

    A `watchdog` holds every episode's return against the agent's floor. If returns are too low for the promise to be
    true, it gives alarm: `run.alarm` says why, and from then on the baseline alone is played. Episodes are still
    counted, as the record of what happened: begin anew without them.

    A reward outside the declared range, an unknown state, or an episode cut before the horizon ends the call with an
    error; the episode in hand is not counted. Going on after an error is sound because the same episode is played again
    from the same seeds. An environment that does not obey its seed and fails because of what came out selects its data,
    and no promise survives that.
    """
    if resume and save is None:
        raise InvalidSetting("resume=True goes on from a file. Say which with save=...")
    made = make(env)
    table = Table.of(made, agent)
    seed = require_integer("seed", seed, 0, InvalidSetting)
    world = table.world
    if world is not None:
        setup = check_setup(world, agent, episodes, floor)
    else:
        K = require_integer("episodes", episodes, 1, InvalidSetting)
        own = floor_of(agent, None)
        level = own if floor is None else require_floor(floor, agent.problem.H)
        setup = RunSetup(world, agent, K, level, None, None, promise_for(agent, level, own))
    begun = begin(agent, counts, setup.episodes)
    held = begun.episodes
    if watchdog is not None and not isinstance(watchdog, Watchdog):
        raise InvalidSetting(f"watchdog is {watchdog!r}, expected sf.Watchdog(alpha=0.01), or None.")
    mark = fingerprint(setup, made, seed, begun, watchdog)
    state = State.fresh(agent, setup.episodes, begun, begin_watch(watchdog, agent))
    carry_on(state.tally, setup, begun)
    if save is not None and Path(save).exists():
        if not resume:
            raise InvalidFile(
                f"{save} exists. Go on from it with resume=True, or choose another file: nothing is overwritten."
            )
        state = State.load(save, agent, setup.episodes, mark, held, state.watch)
    book = None
    if ledger is not None:
        mine = require_floor_agent(agent)
        book = Ledger.resume(ledger, mine, state.counts.episodes) if resume else Ledger(ledger, mine)
    return _play(table, setup, seed, state, mark, save, progress, book)


@dataclass(frozen=True)
class Table:
    """How the environment's states lie in the agent's problem."""

    env: Env
    agent: Agent
    coder: Coder
    rest: int | None  # the state after an early end
    start: int | None  # the common start of several first states
    world: TabularMDP | None  # the true model, where the environment shows it

    @classmethod
    def of(cls, env: Env, agent: Agent) -> "Table":
        """Refuses an agent that was made for another environment."""
        if not isinstance(agent, Agent):
            raise InvalidSetting(
                f"Expected an agent such as sf.StepMix(...), found {type(agent).__name__}. See sf.Agent."
            )
        coder, problem = Coder(env), agent.problem
        extra = problem.S - coder.n
        if coder.A != problem.A or extra not in (0, 1, 2):
            raise InvalidModel(
                f"The agent is for {problem}, the environment has {coder.n} states and {coder.A} actions. "
                "Make the problem with sf.from_gymnasium(env, horizon=...)."
            )
        steps = problem.H - (extra == 2)
        if steps < 1:
            raise InvalidModel(f"{problem} has no step left after its common start. Make it with sf.from_gymnasium.")
        require_time(env, steps)
        return cls(
            env,
            agent,
            coder,
            rest=coder.absorbing_state if extra >= 1 else None,
            start=coder.start if extra == 2 else None,
            world=true_model(env, problem, steps),
        )

    def play(self, learner: Learner, seed: int) -> float:
        """One episode up to its last step; `end` is left to the caller. Returns what it earned, in the env's units."""
        learner.begin()
        observation, _ = self.env.reset(seed=seed)
        first = self.coder.state(observation)
        if self.start is not None:
            learner.act(self.start)
            learner.observe(first)
        elif not self.agent.problem.one_start:
            pass  # the first act says where the episode starts
        elif first != self.agent.problem.s1:
            raise InvalidEpisode(
                f"The environment started in state {first}, the problem says s1 = {self.agent.problem.s1}. Several "
                "first states need a common start: make the problem with from_gymnasium, without `start`."
            )
        earned = 0.0
        while learner.step < self.agent.problem.H and not learner.over:
            a = learner.act(first) if learner.step == 0 else learner.act()
            h, s = learner.step, learner.state
            observation, reward, terminated, truncated, _ = self.env.step(self.coder.action(a))
            learner.observe(self.coder.state(observation), reward, bool(terminated), bool(truncated))  # type: ignore[arg-type]
            if self.world is not None and self.world.P[h, s, a, learner.state] == 0.0:
                raise InvalidEpisode(
                    f"Action {a} in state {s} led to state {learner.state}, which the environment's own model says is "
                    "impossible. The episode was not counted; sf.check_world says more."
                )
            earned += float(reward)
        return earned


def true_model(env: Env, problem: Problem, steps: int) -> TabularMDP | None:
    """The world behind the environment, where it shows one."""
    P = shown_model(env)
    if P is None:
        return env.unwrapped.model if isinstance(env.unwrapped, TabularEnv) else None
    world = from_gymnasium(env, horizon=steps, reward_range=(problem.units.low, problem.units.high))
    assert isinstance(world, TabularMDP)
    if problem.unknown_rows is not None or world.P.shape[:3] != problem.r.shape:
        return world  # the agent knows less, or was made for something else: check_setup says so
    S, A, after = problem.S, problem.A, problem.r_next_rows
    settings: dict[str, Any] = {"s1": world.s1, "H": world.H, "units": problem.units, "name": world.name}
    if after is None:  # told the rewards of each pair: means, where they depend on the next state
        r = problem.r_rows.reshape(-1, S, A)
        if not np.allclose(world.r, r, rtol=0.0, atol=1e-8):
            return world
        return TabularMDP(world.P_rows[0], r[0] if len(r) == 1 else r, **settings)
    shown = world.problem.r_next_rows
    alike = shown is not None and after.shape == shown.shape and np.allclose(shown, after, rtol=0.0, atol=1e-8)
    return TabularMDP(world.P_rows[0], r_next=after.reshape(-1, S, A, S)[0], **settings) if alike else world


@dataclass
class State:
    """What a run must remember: all of it is saved."""

    counts: Counts
    tally: "kernels.Tally"
    earned: float  # sum of observed returns, in the environment's units
    watch: Watch | None = None  # what a watchdog has seen
    whole: bool = True  # False while an episode is being entered: then it is not saved

    @classmethod
    def fresh(cls, agent: Agent, episodes: int, counts: Counts, watch: Watch | None) -> "State":
        """Before the first episode."""
        return cls(counts, kernels.empty_tally(agent.problem.H, episodes, CURVE_POINTS), 0.0, watch)

    def save(self, path: str | Path, mark: str) -> None:
        """Written whole or not at all."""
        arrays = {name: getattr(self.tally, name) for name in TALLY}
        counts = {f"counts_{name}": array for name, array in self.counts.arrays().items()}
        watch = {} if self.watch is None else self.watch.arrays()
        write_arrays(path, "learning", {**arrays, **counts, **watch, "earned": self.earned, "mark": mark})

    @classmethod
    def load(
        cls, path: str | Path, agent: Agent, episodes: int, mark: str, held: int, watch: Watch | None = None
    ) -> "State":
        """What `save` wrote, if it is of the same agent, seed and number of episodes; `held` were there before."""
        needed = (*TALLY, "counts_n_sas", "counts_n_start", "counts_record", "counts_H", "earned", "mark")
        _, arrays = read_arrays(path, {"learning": needed})
        if str(arrays["mark"]) != mark:
            raise InvalidFile(
                f"{path} belongs to another run: the agent, its problem, the seed, the watchdog or the number of "
                "episodes differ. "
                "Resume with what it was begun with, or choose another file. After a finished run, go on with counts=."
            )
        tally = kernels.empty_tally(agent.problem.H, episodes, CURVE_POINTS)
        for name in TALLY:
            room = getattr(tally, name)
            if arrays[name].shape != room.shape or arrays[name].dtype != room.dtype:
                raise InvalidFile(
                    f"{path}: {name} has shape {arrays[name].shape}: the file is damaged. Restore a copy."
                )
            room[...] = arrays[name]
        kept = {name.removeprefix("counts_"): array for name, array in arrays.items() if name.startswith("counts_")}
        try:
            counts = Counts.from_arrays(path, kept)
            check_counts(counts, agent.problem, agent.pooled)
        except InvalidCounts as reason:
            raise InvalidFile(f"{path}: the file is damaged ({reason}) Restore a copy.") from None
        earned, done = arrays["earned"], tally.done
        if not 0 <= done <= episodes or not all(
            _are_of(some, total, held, agent.problem.H)
            for some, total in ((counts, done + held), (counts.planned, None))
            if some is not None
        ):
            raise InvalidFile(f"{path}: its counts are not those of {done} episodes: the file is damaged.")
        if earned.shape != () or earned.dtype != np.float64 or not np.isfinite(earned):
            raise InvalidFile(f"{path}: earned is not one finite number: the file is damaged. Restore a copy.")
        if watch is not None:
            nothing = np.zeros(0)
            watch = watch.restored(path, *(arrays.get(name, nothing) for name in watch.arrays()))
            if watch.episodes > done or not (watch.alarmed or watch.episodes == done):
                raise InvalidFile(f"{path}: its watchdog has not seen {done} episodes: the file is damaged.")
        return cls(counts, tally, float(earned), watch)


def _are_of(counts: Counts, episodes: int | None, held: int, H: int) -> bool:
    """Can these counts be of so many episodes, of which `held` may have come without their first states?"""
    n = int(counts.n_sas.sum())
    total = n // H if episodes is None else episodes
    starts, by_baseline, earned = (
        int(counts.n_start.sum()),
        int(counts.baseline_returns[0]),
        int(counts.baseline_returns[1]),
    )
    return (
        n == total * H
        and total - held <= starts <= total
        and by_baseline <= total
        and earned <= by_baseline * H * REWARD_UNITS
    )


def fingerprint(setup: RunSetup, env: Env, seed: int, counts: Counts, watchdog: Watchdog | None = None) -> str:
    """A digest of everything that decides how a run goes on."""
    agent = setup.agent
    # Python's own repr holds an address, which is another one in every process; ours rounds floor and delta.
    name = type(agent).__qualname__ if type(agent).__repr__ is object.__repr__ else repr(agent)
    numbers = (setup.floor, agent.floor, *(getattr(agent, name, None) for name in ("delta", "baseline_at_least")))
    where = [env.spec.id if env.spec is not None else "", type(env.unwrapped).__qualname__]
    about = [*where, name, type(agent).__name__, repr(agent.problem), repr(agent.problem.units), repr(numbers)]
    digest = hashlib.sha256(json.dumps([*about, seed, setup.episodes]).encode())
    problem = agent.problem
    for array in (problem.r_rows, problem.r_next_rows, problem.unknown_rows, problem.support_rows, problem.start):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    if counts.n_sas.any():
        for held in (counts.n_sas, counts.x_sa, counts.n_start, counts.baseline_returns, counts.account, counts.basis):
            digest.update(b"-" if held is None else held.tobytes())
    if setup.world is not None:
        digest.update(setup.world.P_rows.tobytes())
    if isinstance(agent, CountingAgent):
        agent.describe(digest)
    if watchdog is not None:
        digest.update(repr(watchdog).encode())
    return digest.hexdigest()


def episode_seed(seed: int, k: int) -> int:
    """The environment's seed in episode k: of (seed, k) alone, and not the learner's own. 62 bits: no two are alike."""
    return int(np.random.SeedSequence(seed, spawn_key=(k, 1)).generate_state(1, np.uint64)[0] >> np.uint64(2))


class Yardstick:
    """The exact value of what is played; computed again only when the policy changes."""

    def __init__(self, world: TabularMDP, costs: CostBudget | None) -> None:
        """In this world; with costs, those are what is held against the floor."""
        self.world = world
        self.costs = costs
        self.kept = math.nan
        self._policy: Floats | EpisodicMixture | None = None
        self._value = math.nan

    def value(self, policy: Floats | EpisodicMixture) -> float:
        """V_1(s1) of this policy."""
        if not self._same(policy):
            self._policy, self._value = policy, value_of(self.world, policy)
            self.kept = self._value
            if self.costs is not None:
                self.kept = -cost_of(self.world, policy, self.costs.cost)
        return self._value

    def _same(self, policy: Floats | EpisodicMixture) -> bool:
        last = self._policy
        if isinstance(policy, EpisodicMixture) or isinstance(last, EpisodicMixture) or last is None:
            return False
        return np.array_equal(policy, last)


def _play(
    table: Table,
    setup: RunSetup,
    seed: int,
    state: State,
    mark: str,
    save: str | Path | None,
    progress: bool | None,
    ledger: Ledger | None,
) -> Run:
    agent, problem = setup.agent, setup.agent.problem
    yardstick = None if setup.world is None else Yardstick(setup.world, setup.costs)
    level = math.nan if yardstick is None else setup.level
    learner = Learner(agent, seed, state.counts, state.counts.episodes, table.rest, ledger, state.watch)
    started = saved = time.perf_counter()
    if save is not None:
        state.save(save, mark)  # a folder that does not exist is heard of now, not after the last episode
    try:
        with ctrl_c() as stop, progress_bar(name_of(agent), setup.episodes, progress) as report:
            while state.tally.done < setup.episodes and not stop():
                earned = table.play(learner, episode_seed(seed, learner.episodes))
                plan = learner.plan
                assert plan is not None
                value = problem.from_user_units(earned) if yardstick is None else yardstick.value(plan.policy)
                kept = value if yardstick is None else yardstick.kept
                state.whole = False
                add_episode(state.tally, value, kept, plan, level)
                learner.end()
                state.watch = learner.watch
                state.earned += earned
                state.whole = True
                report(state.tally.done)
                if save is not None and time.perf_counter() - saved > SAVE_SECONDS:
                    state.save(save, mark)
                    saved = time.perf_counter()
            interrupted = stop()
        if ledger is not None and not interrupted:  # an interrupted run may be gone on with
            ledger.close(state.counts.episodes)
    finally:
        learner.rewind()
        if save is not None and state.whole:
            state.save(save, mark)
    alarm = None if state.watch is None else state.watch.alarm
    return run_from(
        state.tally,
        state.counts,
        agent=name_of(agent),
        promise=setup.promise if alarm is None else setup.promise.after_alarm(alarm.label),
        seed=seed,
        floor=setup.floor,
        optimum=setup.optimum,
        baseline=setup.baseline,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        units=problem.units,
        mean_return=problem.from_user_units(state.earned / state.tally.done) if state.tally.done else None,
        costs=setup.costs,
        baseline_cost=setup.baseline_cost,
        told=knows_baseline_value(agent),
        in_sum=isinstance(agent, CountingAgent) and agent.in_sum,
        alarm=alarm,
    )
