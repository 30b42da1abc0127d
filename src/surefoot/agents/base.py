"""What every learner of ours has in common: a problem, counts to plan from, a promise, a moment to plan anew."""

import hashlib
import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from surefoot.agents.floors import Floor
from surefoot.agents.plan import Plan
from surefoot.agents.premises import PremiseStatus
from surefoot.agents.promise import Promise, Scope, stated
from surefoot.agents.replanning import Blocks, EveryEpisode, Growth, Replan, require_replan
from surefoot.base.aliases import alias
from surefoot.base.arrays import Floats, read_only
from surefoot.base.validation import FrozenRecord, require_bool
from surefoot.bounds import KL, Bernstein
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.task.counts import Counts, check_counts, require_stationary
from surefoot.task.policy import uniform
from surefoot.task.problem import Problem


@runtime_checkable
class Agent(Protocol):
    """What `simulate` asks of a learner: it plans from counts, and from nothing else.

    A learner that draws at random takes `plan(counts, rng)`; one that does not plan before every episode has `replan`.
    """

    @property
    def problem(self) -> Problem: ...  # noqa: D102
    @property
    def floor(self) -> "Floor | None": ...  # noqa: D102
    @property
    def pooled(self) -> bool: ...  # noqa: D102
    @property
    def promise(self) -> Promise | str: ...  # noqa: D102
    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan: ...  # noqa: D102


class CountingAgent(FrozenRecord, ABC):
    """A learner of ours: frozen configuration, and a plan that depends on counts alone."""

    name: ClassVar[str]  # as the literature writes it
    floor_scope: ClassVar[Scope] = "every episode's policy"  # whose value is promised
    in_sum: ClassVar[bool] = False  # is the floor kept in the sum of all episodes, and not in each?
    problem: Problem
    delta: float
    pooled: bool
    replan: Replan | None

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def floor(self) -> "Floor | None": ...  # noqa: D102

    @property
    @abstractmethod
    def pi_b(self) -> Floats:
        """The baseline; of a learner without one, any policy."""

    @property
    @abstractmethod
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""

    @property
    def premise(self) -> PremiseStatus:
        """How well it is known, before any data, that the baseline is above the floor."""
        return "unknown"

    @abstractmethod
    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode. Depends on the counts (and what is drawn from rng) and on nothing else."""

    @property
    def replan_rule(self) -> Replan:
        """The rule of replanning in force."""
        return Growth() if self.replan is None else self.replan

    def continue_plan(self, plan: Plan, counts: Counts) -> Plan | None:
        """What follows a plan that has lasted its episodes, where nothing need be computed again; None: plan anew."""
        return None

    @property
    def known_baseline_value(self) -> float | None:
        """What the learner was told of the baseline's value, where it was told at all."""
        return None

    @property
    def asserted(self) -> float | None:
        """What the owner says the baseline is worth at least, where safety leans on it."""
        return None

    when = alias("replan_rule")
    told_value = alias("known_baseline_value")
    vouched = alias("asserted")
    ledger_mark = alias("account_fingerprint")
    mark = alias("fingerprint")
    go_on = alias("continue_plan")

    @property
    def most_episodes(self) -> int | None:
        """How many episodes its proof covers; None: any number."""
        return None

    @property
    def cost_budget(self) -> "CostBudget | None":
        """The costs that it keeps within a budget, where its promise is about those."""
        return None

    def check_counts(self, counts: Counts) -> None:
        """Do these counts fit, and does the proof cover them?"""
        check_counts(counts, self.problem, self.pooled)
        held = self.held(counts)
        if self.most_episodes is not None and held > self.most_episodes:
            raise InvalidCounts(
                f"These counts hold {held:,} episodes, but the bounds of {self.name} are for {self.most_episodes:,} in "
                "all: that number is inside their logarithm. Give it a larger episodes=."
            )

    def held(self, counts: Counts) -> int:
        """How many episodes these counts hold; of counts made by hand, the most that any step has."""
        by_step = counts.n_sas.sum(axis=(1, 2, 3))
        return -(-int(by_step[0]) // self.problem.H) if counts.pooled else int(by_step.max())

    def check_episodes(self, counts: Counts, episodes: int) -> None:
        """Does the proof cover so many more?"""
        most, held = self.most_episodes, self.held(counts)
        if most is not None and held + episodes > most:
            raise InvalidSetting(
                f"{episodes:,} episodes are asked for"
                + f" after {held:,}" * (held > 0)
                + f", but the bounds of {self.name} are for {most:,} in all: that number is inside their logarithm. "
                "Give it a larger episodes=."
            )

    @property
    def fingerprint(self) -> str:
        """By this returns are known to be of this baseline, summed by these rewards."""
        digest = hashlib.sha256(np.ascontiguousarray(self.pi_b).tobytes())
        known = self.problem
        for rows in (known.r_rows, known.r_next_rows, known.unknown_rows, known.start):
            digest.update(b"-" if rows is None else np.ascontiguousarray(rows).tobytes())
        return digest.hexdigest()[:16]

    def describe(self, digest: "hashlib._Hash") -> None:
        """Every setting that certificates depend on, exactly, and those of a learner inside. Not when to plan."""
        known = self.problem
        digest.update(f"{type(self).__name__} {known.H} {known.S} {known.A} {known.stationary}".encode())
        arrays = (self.pi_b, known.r_rows, known.r_next_rows, known.unknown_rows, known.support_rows, known.start)
        for rows in arrays:
            digest.update(b"-" if rows is None else np.ascontiguousarray(rows).tobytes())
        for name in getattr(self, "__dataclass_fields__", ()):  # a user's own learner need not be a dataclass
            value = getattr(self, name)
            digest.update(name.encode())
            if isinstance(value, CountingAgent):
                value.describe(digest)
            elif isinstance(value, np.ndarray):
                digest.update(np.ascontiguousarray(value).tobytes())
            elif name not in ("problem", "replan"):
                # Reprs of what is not ours may hold an address, which is another one in every process.
                kind = type(value)
                ours = kind.__module__.split(".")[0] in ("surefoot", "builtins") and not callable(value)
                called = getattr(value, "__qualname__", kind.__qualname__)
                digest.update((repr(value) if ours else f"{kind.__module__}.{called}").encode())

    def saved_before(self, counts: Counts, baseline: float) -> float:
        """What this learner's account in these counts has beyond the floor, the baseline being worth so much."""
        return 0.0

    def claim(self, counts: Counts) -> None:
        """From now on returns in these counts are of this baseline; another's are dropped, and its plan with them."""
        if counts.returns_of not in (None, self.fingerprint):
            counts.baseline_returns[:] = 0
            counts.planned = None
        counts.returns_of = self.fingerprint


class WithoutFloor(CountingAgent):
    """A learner that has neither floor nor baseline."""

    @property
    def floor(self) -> None:
        """None: give `simulate` a floor to count violations of."""
        return None

    @property
    def premise(self) -> PremiseStatus:
        """Nothing is promised, and nothing presumed."""
        return "none needed"

    @property
    def pi_b(self) -> Floats:
        """It plays no baseline; who asks for one learns the shape."""
        return read_only(uniform(self.problem.H, self.problem.S, self.problem.A))


class CostBudget(NamedTuple):
    """A promise about costs."""

    cost: Floats  # (H, S, A)
    budget: float  # the expected cost of an episode stays at or below it


def promise_of(agent: Agent) -> Promise:
    """What the agent promises; the words of a user's own agent are taken as they are."""
    return agent.promise if isinstance(agent.promise, Promise) else stated(agent.promise)


def plan_next(agent: Agent, counts: Counts, rng: np.random.Generator) -> Plan:
    """The agent's plan; one that draws at random is handed the generator."""
    draws = "rng" in inspect.signature(agent.plan).parameters
    plan = agent.plan(counts, rng) if draws else agent.plan(counts)
    if not isinstance(plan, Plan):
        raise InvalidSetting(
            f"The plan of {type(agent).__name__} is a {type(plan).__name__}, expected an sf.Plan: "
            "sf.Plan.plain(policy) for a policy of which nothing is proved."
        )
    return plan


def continue_plan(agent: Agent, plan: Plan, counts: Counts) -> Plan | None:
    """What follows a plan that has lasted, without a new one being computed; None: plan anew."""
    return agent.continue_plan(plan, counts) if isinstance(agent, CountingAgent) else None


def replan_rule_of(agent: Agent) -> Replan:
    """The agent's rule of replanning; every episode where it has none."""
    if isinstance(agent, CountingAgent):
        return agent.replan_rule
    rule = getattr(agent, "replan", None)
    if rule is None:
        return EveryEpisode()
    require_replan(rule)
    assert isinstance(rule, EveryEpisode | Growth | Blocks)
    return rule


def check_settings(problem: object, bounds: object, pooled: object, replan: object) -> None:
    """What the constructor of a learner with KL or the paper's bounds asks."""
    known = check_problem(problem, pooled, replan)
    if type(bounds) not in (Bernstein, KL):
        raise InvalidSetting(f"bounds is {bounds!r}, expected sf.KL() or sf.Bernstein(), and not a subclass.")
    assert isinstance(bounds, Bernstein | KL)
    bounds.require(known)


def check_problem(problem: object, pooled: object, replan: object) -> Problem:
    """What every learner's constructor asks."""
    if not isinstance(problem, Problem):
        raise InvalidSetting(
            f"The first argument is a {type(problem).__name__}, expected a Problem: what a learner may know. "
            "Of a world that is world.problem."
        )
    if require_bool("pooled", pooled):
        require_stationary(problem)
    if replan is not None:
        require_replan(replan)
    return problem


def require_known(problem: Problem, name: str) -> None:
    """Refuse what methods for known rewards r(s,a) and a known start do not cover."""
    missing = (
        "unknown rewards"
        if problem.unknown_rows is not None
        else "rewards that are only known to be at least so much"
        if problem.rewards_at_least
        else "rewards that depend on the next state (world.averaged() tells the means instead)"
        if problem.r_next_rows is not None
        else "an unknown start"
        if problem.start is None
        else ""
    )
    if missing:
        raise InvalidSetting(f"{name} is built for known rewards r(s,a) and a known start, not for {missing}.")
