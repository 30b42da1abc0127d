"""Checks of users' own worlds and agents. They report what they find, and change nothing."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surefoot.agents import Agent, SpliceAgent
from surefoot.agents.base import CountingAgent, adapted, promise_of
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.plan import Plan
from surefoot.base.arrays import Floats
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.errors import InvalidModel, InvalidSetting, SurefootError
from surefoot.evidence.counts import Counts
from surefoot.model.policy import EpisodicMixture, check_policy, uniform
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows
from surefoot.rivals.registry import AGENTS
from surefoot.run.forecast import world_like
from surefoot.run.loops import play
from surefoot.worlds import exact
from surefoot.worlds.environments import Env, make, time_limit
from surefoot.worlds.exact import cost_of, rescaled_solve, value_of
from surefoot.worlds.gymnasium import Coder, TabularEnv, from_gymnasium
from surefoot.worlds.tabular_mdp import TabularMDP

Level = Literal["error", "note"]
ROLLOUT_STEPS = 2000
SUCCESSORS = 3  # of a pair, where any state may follow
SURE = 1e-9  # how likely a sound environment may be called faulty, all its outcomes together


@dataclass(frozen=True)
class Finding:
    """One thing found. An error must be corrected; a note is good to know."""

    level: Level
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.text}"


@dataclass(frozen=True)
class Findings:
    """What a check found, in the order in which it looked."""

    subject: str
    found: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Are there no errors?"""
        return all(finding.level != "error" for finding in self.found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        verdict = "fine" if self.ok else "not usable as it is"
        return "\n".join(
            [f"{self.subject}: {verdict}", *(f"  {finding}" for finding in self.found)]
        )


def check_world(world: TabularMDP | Env | str, seed: int = 0) -> Findings:
    """Check that a world, or Gymnasium environment, can be learnt in and behaves as its model
    says.
    """
    if isinstance(world, TabularMDP):
        return _findings(repr(world), _of_model(world))
    try:
        env = make(world)
    except SurefootError as refusal:
        return Findings(repr(world), (Finding("error", str(refusal)),))
    return _findings(str(env), _of_env(env, seed))


def check_agent(agent: object, seed: int = 0) -> Findings:
    """Check that an agent plans from counts alone, with valid policies and true labels, and
    leaves counts unchanged.
    """
    return _findings(repr(agent), _of_agent(agent, seed))


def _findings(subject: str, checks: Iterator[Finding]) -> Findings:
    """Collect what checks find. One that raises leaves nothing to check after it."""
    found = []
    try:
        for finding in checks:
            found.append(finding)
    except SurefootError as refusal:
        found.append(Finding("error", str(refusal)))
    return Findings(subject, tuple(found))


def _of_model(world: TabularMDP) -> Iterator[Finding]:
    """Compare the floor of a world with its baseline."""
    if world.baseline is None or world.suggested_floor is None:
        return
    value, floor = exact.value(world, world.baseline), world.suggested_floor
    if value < floor - VIOLATION_TOLERANCE:
        yield Finding(
            "error", f"The baseline is worth {value:.6g}, below the floor of {floor:.6g}."
        )


def _of_env(env: Env, seed: int) -> Iterator[Finding]:
    coder, P = Coder(env), None
    if isinstance(env.unwrapped, TabularEnv):
        yield Finding("note", f"One of our worlds: the horizon is {env.unwrapped.model.H}.")
    else:
        limit, P = time_limit(env), getattr(env.unwrapped, "P", None)
        horizon = (
            "No time limit: any horizon can be chosen."
            if limit is None
            else f"A time limit of {limit} steps: the horizon can be at most that."
        )
        yield Finding("note", horizon)
        if P is None:
            yield Finding("note", "No model `P`: learning live needs a declared range of rewards.")
        else:
            from_gymnasium(env, horizon=1)
    yield from _of_rollouts(env, coder, P, seed)


def _of_rollouts(env: Env, coder: Coder, P: object, seed: int) -> Iterator[Finding]:
    """Play at random, twice with the same seed, and compare with P if there is one."""
    first, second = (_rollout(env, coder, seed) for _ in range(2))
    if first != second:
        yield Finding(
            "error",
            "The same seed and actions gave two different histories: reset(seed=...) does not seed "
            "everything.",
        )
    starts = {s for s, _, _, _, _, begins in first if begins}
    if len(starts) > 1:
        yield Finding(
            "note",
            f"Episodes start in several states ({len(starts)} seen): the problem gets a common "
            "start.",
        )
    rewards = [reward for _, _, _, reward, _, _ in first]
    yield Finding(
        "note", f"Rewards from {min(rewards):g} to {max(rewards):g} seen in {len(first)} steps."
    )
    if P is not None:
        _require_as_modelled(first, coder, P)


Step = tuple[int, int, int, float, bool, bool]


def _rollout(env: Env, coder: Coder, seed: int) -> list[Step]:
    # Not the environment's stream: actions that move with its draws would make a fair die look
    # loaded.
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    history: list[Step] = []
    begins = True
    try:
        observation, _ = env.reset(seed=seed)
        for _ in range(ROLLOUT_STEPS):
            a = int(rng.integers(coder.A))
            s = coder.state(observation)
            observation, reward, terminated, truncated, _ = env.step(coder.action(a))
            history.append(
                (s, a, coder.state(observation), float(reward), bool(terminated), begins)
            )
            if not np.isfinite(float(reward)):
                pair = f"action {coder.action(a)} in state {s + coder.first_state}"
                raise InvalidModel(
                    f"The reward after {pair} is {reward}, expected a finite number."
                )
            begins = bool(terminated or truncated)
            if begins:
                observation, _ = env.reset()
    except SurefootError:
        raise
    except Exception as reason:  # the point is to report whatever a stranger's code raises
        raise InvalidModel(f"reset() or step() raised {type(reason).__name__}: {reason}") from None
    return history


def chernoff(times: int, n: int, p: float) -> float:
    """Bound the probability of a frequency as far from p as times / n, in n draws (both tails)."""
    q = times / n
    divergence = sum(
        x * math.log(x / y) if x > 0 else 0.0 for x, y in ((q, p), (1 - q, max(1 - p, 1e-15)))
    )
    return 2.0 * math.exp(-n * divergence)


def _require_as_modelled(history: list[Step], coder: Coder, P: object) -> None:
    """Refuse a history with an outcome that P says is impossible, or too unlikely."""
    pairs = Counter(step[:2] for step in history)
    seen = Counter(step[:5] for step in history)
    for (s, a, s_next, reward, terminated), times in seen.items():
        outcome = s_next, reward, terminated
        n, p = pairs[s, a], 0.0
        for chance, to, paid, ends in P[s + coder.first_state][coder.action(a)]:  # type: ignore[index]
            if (coder.state(to), float(paid), bool(ends)) == outcome:
                p += chance
        if p > 0.0 and chernoff(times, n, p) >= SURE / ROLLOUT_STEPS:
            continue
        end = " and an end" if terminated else ""
        led = (
            f"Action {coder.action(a)} in state {s + coder.first_state} led to state "
            f"{s_next + coder.first_state} with reward {reward:g}{end}"
        )
        if p > 0.0:
            raise InvalidModel(f"{led} {times} times of {n}, but P says {p:.3g}.")
        raise InvalidModel(f"{led}, which P says is impossible.")


def _of_agent(given: object, seed: int) -> Iterator[Finding]:
    agent = _sound(given)
    problem = agent.problem
    rng = np.random.default_rng(seed)
    # Any world of these sizes fills the counts; the agent does not know which one it is.
    P, paid, start = (
        _some_dynamics(problem, rng),
        rng.random((problem.S, problem.A)),
        rng.dirichlet(np.ones(problem.S)),
    )
    world = world_like(problem, P, paid, start)
    mine = adapted(agent)
    counts, most = Counts.zeros(problem, mine.pooled), mine.most_episodes
    for episodes in (0, 1, 30 if most is None else max(0, min(30, most - 1))):
        for _ in range(episodes):
            episode = play(world, uniform(problem.H, problem.S, problem.A), rng)
            counts.add(episode.as_learnt(problem, baseline=False))
        for fault in _of_planning(mine, counts, world, seed):
            yield Finding("error", f"The plan after {counts.episodes} episodes {fault}.")
    promise = promise_of(agent)
    if promise.kind == "not certified":
        yield Finding("note", str(promise))
    if (
        isinstance(mine, SpliceAgent)
        and not mine.plans_itself
        and type(mine) not in AGENTS.values()
    ):
        yield Finding(
            "note",
            "It plans by itself, in Python; simulate plays each of its plans in compiled code.",
        )


def _sound(agent: object) -> Agent:
    """Return what is an agent, or refuse it."""
    if not isinstance(agent, Agent):
        parts = ("problem", "floor", "pooled", "promise", "plan")
        missing = ", ".join(name for name in parts if not hasattr(agent, name))
        raise InvalidSetting(f"It is not an agent: it lacks {missing}. See surefoot.Agent.")
    problem: object = agent.problem
    if not isinstance(problem, Problem):
        raise InvalidSetting(
            f"Its problem is a {type(problem).__name__}, expected a Problem: what it may know."
        )
    if agent.pooled and not problem.stationary:
        raise InvalidSetting(
            "It pools its counts over steps, but its problem does not say it is stationary."
        )
    return agent


def _of_planning(
    agent: CountingAgent, counts: Counts, world: TabularMDP, seed: int
) -> Iterator[str]:
    """Plan twice from these counts, and say what is wrong with the plan."""
    before = counts.copy()
    try:
        plan, again = (agent.next_plan(counts, np.random.default_rng(seed)) for _ in range(2))
        for policy in _policies(plan):
            check_policy(policy, agent.problem)
        worth = agent.problem.units.to_user(value_of(world, plan.policy))
        same = _fields(plan) == _fields(again)
    except Exception as reason:  # the point is to report whatever a stranger's code raises
        raise InvalidSetting(f"plan() raised {type(reason).__name__}: {reason}") from None
    yield from _of_plan(agent, plan)
    if counts != before:
        raise InvalidSetting(
            "plan() changed the counts. They hold what was seen, and are not a workspace."
        )
    if not same:
        raise InvalidSetting(
            "Two plans from the same counts differ: a plan must depend on the counts alone."
        )
    if plan.certified:
        yield from _of_proof(agent, plan, world, worth)


def _of_proof(agent: CountingAgent, plan: Plan, world: TabularMDP, worth: float) -> Iterator[str]:
    """Compare what is certified with the world that the data came from. By chance it fails once
    in 1/delta checks.
    """
    there = "in the world its data came from"
    if worth < plan.lower - VIOLATION_TOLERANCE:
        yield f"is certified to be worth {plan.lower:g}, but is worth {worth:g} {there}"
    costs = agent.cost_budget
    if costs is not None and plan.cost is not None:
        paid = cost_of(world, plan.policy, costs.cost)
        if paid > plan.cost + VIOLATION_TOLERANCE:
            yield f"is certified to cost {plan.cost:g}, but costs {paid:g} {there}"
    best = agent.problem.units.to_user(rescaled_solve(world).value)
    if best > plan.upper + 1e-9:
        yield f"says no policy is worth more than {plan.upper:g}: {best:g} is"


def _some_dynamics(problem: Problem, rng: np.random.Generator) -> Rows:
    """Return transition probabilities that the mask allows: of many states, a few successors
    where any may follow.
    """
    lists = problem.limits.filled(problem.limits.rows, SUCCESSORS)
    drawn = rng.standard_gamma(1.0, size=len(lists.state))
    sums = np.add.reduceat(drawn, lists.first[:-1])
    return lists._replace(value=drawn / sums[lists.places])


def _fields(plan: Plan) -> tuple[object, ...]:
    """Return a plan as something that can be compared."""
    arrays = [*_policies(plan), plan.candidates, plan.basis]
    more = (plan.cost, plan.max_episodes, plan.entry)
    whole = [None if array is None else array.tobytes() for array in arrays]
    return plan.source, plan.h, plan.rho, plan.lower, plan.upper, plan.safety, *more, whole


def _policies(plan: Plan) -> list[Floats]:
    """Return the policy, or the two that a coin chooses from."""
    policy = plan.policy
    return [policy.first, policy.second] if isinstance(policy, EpisodicMixture) else [policy]


def _of_plan(agent: CountingAgent, plan: Plan) -> Iterator[str]:
    """Compare what a plan says with itself, and with what the agent promises."""
    if plan.h > agent.problem.H:
        yield f"has h = {plan.h}, expected a step in 0..{agent.problem.H}"
    if not plan.lower <= plan.upper + 1e-9:
        yield f"has lower {plan.lower:g} above upper {plan.upper:g}"
    # a floor that is a share of a value nobody knows is not compared
    if not plan.certified or isinstance(agent.floor, BaselineFloor):
        return
    costs = agent.cost_budget
    if costs is not None:
        if plan.cost is None or plan.cost > costs.budget + VIOLATION_TOLERANCE:
            yield f"is labelled certified, but its cost is {plan.cost}"
    elif agent.floor is None or plan.lower < agent.floor - VIOLATION_TOLERANCE:
        yield f"is labelled certified, but its lower value is {plan.lower:g}"
