"""What every agent has in common: a problem, counts to plan from, a promise, when it replans."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from surefoot.agents.floors import BaselineFloor, Floor
from surefoot.agents.plan import Plan
from surefoot.agents.promise import PremiseStatus, Promise, Scope, stated
from surefoot.agents.replanning import SHARE, require_replan
from surefoot.base.arrays import Floats
from surefoot.base.digest import digest
from surefoot.base.validation import FrozenRecord, read_only, require_bool
from surefoot.bounds.alike import require_alike
from surefoot.bounds.declared_rewards import require_as_declared
from surefoot.errors import InvalidCounts, InvalidSetting
from surefoot.evidence.counts import Counts, require_stationary
from surefoot.evidence.episode import BaselineLabel
from surefoot.evidence.fitting import check_counts, check_flow, require_claimed, require_no_alarm
from surefoot.model.policy import uniform
from surefoot.model.problem import Problem


@runtime_checkable
class Agent(Protocol):
    """What `simulate`, `learn` and `Learner` ask of an agent: it plans from counts, and from
    nothing else.

    An agent that draws at random takes `plan(counts, rng)`; one that does not plan before every
    episode has `replan`.
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


def _takes_rng(plan: Callable[..., Plan]) -> bool:
    """Does this function take a generator, by the name of rng?"""
    return "rng" in inspect.signature(plan).parameters


class CountingAgent(FrozenRecord, ABC):
    """An agent with frozen configuration, whose plan depends on counts alone."""

    name: str  # as the literature writes it
    takes_rng: ClassVar[bool] = True  # does `plan` take a generator?
    floor_scope: ClassVar[Scope] = "every episode's policy"  # whose value is promised
    in_sum: ClassVar[bool] = False  # is the floor kept in the sum of all episodes, and not in each?
    problem: Problem
    baseline: Floats
    delta: float
    pooled: bool
    replan: float | None

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def floor(self) -> "Floor | None": ...  # noqa: D102

    def __init_subclass__(cls) -> None:
        """Look once at how each class plans."""
        super().__init_subclass__()
        cls.takes_rng = _takes_rng(cls.plan)

    @property
    def pi_b(self) -> Floats:
        """The baseline; of an agent without one, any policy."""
        return self.baseline

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
        """Return the plan of the next episode. It depends on the counts, and on what is drawn
        from rng, alone.
        """

    def next_plan(self, counts: Counts, rng: np.random.Generator) -> Plan:
        """Return the plan of the next episode; an agent that draws at random is given the
        generator.
        """
        plan = self.plan(counts, rng) if self.takes_rng else self.plan(counts)
        if not isinstance(plan, Plan):
            raise InvalidSetting(
                f"The plan of {type(self.as_given).__name__} is a {type(plan).__name__}, expected "
                "an sf.Plan: sf.Plan.plain(policy) for a policy of which nothing is proved."
            )
        return plan

    @property
    def replan_share(self) -> float:
        """By which share the episodes grow between two plans; 0: it plans before every episode."""
        return SHARE if self.replan is None else float(self.replan)

    @property
    def draws_whole_blocks(self) -> bool:
        """May a simulation draw all the episodes of a plan at once?"""
        return self.replan_share > 0.0

    def continue_plan(self, plan: Plan, counts: Counts) -> Plan | None:
        """Return what follows a plan after its `max_episodes` without being computed again;
        None: replan.
        """
        return None

    @property
    def as_given(self) -> "Agent":
        """The agent as the user gave it."""
        return self

    @property
    def plays_baseline(self) -> bool:
        """Has it a baseline whose value matters: one that keeps a floor, or costs within a
        budget?
        """
        return self.floor is not None or self.cost_budget is not None

    @property
    def known_baseline_value(self) -> float | None:
        """The value of the baseline, where the agent was given it."""
        return None

    @property
    def asserted(self) -> float | None:
        """The value of the baseline, at least, as asserted by the user, where safety rests on
        it.
        """
        return None

    @property
    def knows_baseline_value(self) -> bool:
        """Was the agent given the baseline's value?"""
        return self.known_baseline_value is not None

    @property
    def level(self) -> float:
        """The floor, which is not a relative one, rescaled to 0..H."""
        assert not isinstance(self.floor, BaselineFloor)
        return self.problem.level(self.floor)

    def with_user_units(self, plan: Plan) -> Plan:
        """Return a plan with rescaled values as one in the user's units."""
        units = self.problem.units
        return (
            plan.in_units(units, self.floor if isinstance(self.floor, float) else None)
            if units.own
            else plan
        )

    def floor_value(self, baseline: float | None) -> float | None:
        """Return the floor, rescaled; a relative one is known only where the baseline's rescaled
        value is.
        """
        if isinstance(self.floor, BaselineFloor):
            return None if baseline is None else self.floor.of(baseline, self.problem)
        return None if self.floor is None else self.level

    def promise_for(self, floor: float | None, own: float | None) -> Promise:
        """Return the promise where violations of `floor` are counted; `own` is the agent's own.
        Both are rescaled.
        """
        promise = promise_of(self)
        if self.cost_budget is not None and floor is not None:
            return promise.for_another_floor(f"costs within {self.cost_budget.budget:g}")
        if self.floor is None or floor == own:
            return promise
        return promise.for_another_floor(self.floor_text)

    @property
    def floor_text(self) -> str:
        """The floor for people, with the name of its units; of an agent that has one."""
        assert self.floor is not None
        units = self.problem.units
        return (
            self.floor.text(units)
            if isinstance(self.floor, BaselineFloor)
            else units.at_least(float(self.floor))
        )

    @property
    def most_episodes(self) -> int | None:
        """The number of episodes that its proof covers; None: any number."""
        return None

    @property
    def cost_budget(self) -> "CostBudget | None":
        """The costs that it keeps within a budget, where its promise is about those."""
        return None

    def starting_counts(self, counts: Counts | None, episodes: int) -> Counts:
        """Return the counts that a run of so many episodes starts from: a copy of those given,
        or zeros.
        """
        given = Counts.zeros(self.problem, self.pooled) if counts is None else counts
        self.check_counts(given)
        require_claimed(given)
        require_no_alarm(given)
        self.check_episodes(given, episodes)
        mine = given.copy_for(self.problem)
        self._take_returns(mine)
        return mine

    def take_over(self, counts: Counts) -> None:
        """Make counts this agent's, in place; refuse those that do not fit."""
        self.check_counts(counts)
        require_claimed(counts)
        counts.adopt(self.problem)
        self._take_returns(counts)

    def _take_returns(self, counts: Counts) -> None:
        """Claim counts to go on from. Returns that nobody claimed are no evidence, and do not
        become its baseline's.
        """
        if counts.returns_of is None and counts.baseline_returns[0]:
            counts.drop_returns()
            counts.planned = None
        self.claim(counts)

    def check_counts(self, counts: Counts) -> None:
        """Refuse counts that do not fit, or that the proof does not cover."""
        check_counts(counts, self.problem, self.pooled)
        if counts.logged and self.problem.unseen_state is not None:
            raise InvalidCounts(
                "The states of this log were not declared: its counts leave room for others, so "
                "nothing can be added "
                'to them. Declare the states, count_log(..., states=[...]) or states="as logged", '
                "or begin without "
                "these counts: the certificate of a baseline that was learnt from them holds."
            )
        check_flow(counts)
        if counts.shared and not counts.alarm:
            require_alike(counts.steps, self.problem)
        if self.floor is not None and not counts.alarm:
            require_as_declared(counts.table_bets, self.problem)
        counted = counts.episodes
        if self.most_episodes is not None and counted > self.most_episodes:
            raise InvalidCounts(
                f"These counts hold {counted:,} episodes, but the bounds of {self.name} are for "
                f"{self.most_episodes:,} in all: that number is inside their logarithm. Give it a "
                "larger episodes=."
            )

    def check_episodes(self, counts: Counts, episodes: int) -> None:
        """Refuse more episodes than the proof covers."""
        most, counted = self.most_episodes, counts.episodes
        if most is not None and counted + episodes > most:
            asked = f"{episodes:,} episodes are asked for"
            if counted > 0:
                asked += f" after {counted:,}"
            raise InvalidSetting(
                f"{asked}, but the bounds of {self.name} are for {most:,} in all: that number is "
                "inside their logarithm. Give it a larger episodes=."
            )

    @property
    def fingerprint(self) -> str:
        """The fingerprint by which returns are recognised as those of this baseline, summed by
        these rewards.
        """
        known = self.problem
        return digest(
            [
                self.pi_b,
                known.r_rows,
                known.paid,
                known.unknown_rows,
                known.start,
            ]
        )

    @property
    def settings(self) -> dict[str, object]:
        """Every setting that certificates depend on, and those of an agent inside. Not when to
        replan.
        """
        # a user's own agent need not be a dataclass
        fields = getattr(self, "__dataclass_fields__", ())
        given = {name: getattr(self, name) for name in fields if name != "replan"}
        return {
            **given,
            "agent": type(self).__qualname__,
            "problem": self.problem,
            "pi_b": self.pi_b,
        }

    def saved_before(self, counts: Counts, baseline: float) -> float:
        """Return what this agent's account has beyond the floor, if the baseline is worth so
        much (rescaled).
        """
        return 0.0

    def whose(self, baseline: bool | str) -> bool | str:
        """Return the label of an episode that this agent plays: of the baseline, its own."""
        return str(self.label) if baseline is True else baseline

    @property
    def return_range(self) -> tuple[int, int] | None:
        """The least return of a baseline episode and the span, in 2^-20; None: returns are not
        evidence.
        """
        return None

    @property
    def label(self) -> BaselineLabel:
        """The label of an episode that its baseline plays."""
        return BaselineLabel(self.fingerprint, self.return_range)

    def claim(self, counts: Counts) -> None:
        """Make returns in these counts this baseline's; those of another are dropped, and its plan
        with them.

        Returns of which nobody says whose they are become this baseline's: by calling this you
        assert that they are.
        """
        if counts.returns_of not in (None, self.fingerprint):
            counts.drop_returns()
            counts.planned = None
        counts.returns_of = self.fingerprint
        if not counts.return_weights.any():
            counts.return_range = self.return_range


class WithoutFloor(CountingAgent):
    """An agent that has neither floor nor baseline."""

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
        """The uniform policy: it plays no baseline, and whoever asks for one learns the shape."""
        return read_only(uniform(self.problem.H, self.problem.S, self.problem.A))


class UserAgent(CountingAgent):
    """A user's own agent, which need not be a CountingAgent, in the form that the loops use.

    Of its baseline nothing is known here, and its plans are always played one by one.
    """

    def __init__(self, agent: Agent) -> None:
        """Look once at what the agent is and how it plans."""
        self._agent = agent
        self._plan_takes_rng = _takes_rng(agent.plan)
        self.problem = agent.problem
        self.pooled = agent.pooled
        self.name = type(agent).__name__

    @property
    def as_given(self) -> Agent:
        """The agent as the user gave it."""
        return self._agent

    @property
    def floor(self) -> "Floor | None":
        """The floor of the user's agent."""
        return self._agent.floor

    @property
    def promise(self) -> Promise:
        """What it promises, in the user's words."""
        return promise_of(self._agent)

    @property
    def pi_b(self) -> Floats:
        """The uniform policy: its baseline, if it has one, is not known here."""
        return read_only(uniform(self.problem.H, self.problem.S, self.problem.A))

    @property
    def plays_baseline(self) -> bool:
        """No: none is known here."""
        return False

    @property
    def replan_share(self) -> float:
        """Its share; where it has none, it plans before every episode."""
        share: object = getattr(self._agent, "replan", None)
        return 0.0 if share is None else require_replan(share)

    @property
    def draws_whole_blocks(self) -> bool:
        """No: its plans are always played one by one."""
        return False

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """Return the plan of the user's agent."""
        return self._agent.plan(counts, rng) if self._plan_takes_rng else self._agent.plan(counts)

    @property
    def settings(self) -> dict[str, object]:
        """Its class and its problem: what its settings are is not known here."""
        return {
            "agent": type(self._agent).__qualname__,
            "problem": self.problem,
            "pooled": self.pooled,
        }

    def _take_returns(self, counts: Counts) -> None:
        """Leave returns as they are."""

    def whose(self, baseline: bool | str) -> bool | str:
        """Return the label as it is: whose baseline it was is not known here."""
        return baseline

    def claim(self, counts: Counts) -> None:
        """Leave returns and plans as they are: whose they are is not known here."""


def adapted(agent: object) -> CountingAgent:
    """Return the agent as the loops use it. Public functions that take an agent call this once,
    when they begin.
    """
    if isinstance(agent, CountingAgent):
        return agent
    if not isinstance(agent, Agent):
        raise InvalidSetting(
            f"Expected an agent such as sf.StepMix(...), found {type(agent).__name__}. See "
            "sf.Agent."
        )
    return UserAgent(agent)


def plan_next(agent: Agent, counts: Counts, rng: np.random.Generator) -> Plan:
    """Return the plan of any agent; one that draws at random is given the generator."""
    return adapted(agent).next_plan(counts, rng)


class CostBudget(NamedTuple):
    """A promise about costs."""

    cost: Floats  # (H, S, A)
    budget: float  # the expected cost of an episode stays at or below it


def promise_of(agent: Agent) -> Promise:
    """Return what the agent promises; the words of a user's own agent are taken as they are."""
    return agent.promise if isinstance(agent.promise, Promise) else stated(agent.promise)


def check_problem(problem: object, pooled: object, replan: object) -> Problem:
    """Check what every agent's constructor is given; return the problem."""
    if not isinstance(problem, Problem):
        raise InvalidSetting(
            f"The first argument is a {type(problem).__name__}, expected a Problem: what an agent "
            "may know. Of a world that is world.problem."
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
        if problem.pays_by_next
        else "an unknown start"
        if problem.start is None
        else ""
    )
    if missing:
        raise InvalidSetting(
            f"{name} is built for known rewards r(s,a) and a known start, not for {missing}."
        )
