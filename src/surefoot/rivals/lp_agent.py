"""Agents that plan by a linear program, for costs within a budget: what DOPE and OptPess-LP have
in common.
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from surefoot.agents.base import CostBudget, check_problem, require_known
from surefoot.agents.floors import BaselineFloor, Floor
from surefoot.agents.plan import UNCLAIMED, Plan, Safety, Source
from surefoot.agents.promise import PremiseStatus, Promise
from surefoot.agents.settings import AgentByName, AgentSettings
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import (
    at_least,
    at_most,
    freeze,
    require_delta,
    require_integer,
    require_number,
)
from surefoot.bounds.boxes import Box, MaurerPontilBox
from surefoot.bounds.lp import Occupancy, policy_from
from surefoot.bounds.model import Model, margin, require_few
from surefoot.errors import InvalidSetting, SolverTrouble
from surefoot.evidence.counts import Counts
from surefoot.evidence.fitting import require_no_alarm
from surefoot.model.policy import check_policy
from surefoot.model.problem import Problem
from surefoot.model.signal import signal

MOST = 2**22  # entries of the linear program, one for every next state of every pair: a gigabyte
# linear programs, each with a little less to spend, until the policy found is proved to be within
# the budget
TRIES = 4
NEARLY = 1e-6  # a linear program with less slack than that may be called infeasible
SOLVER = 1e-9  # what the linear program's budget is tightened by, for the solver's tolerance


class LPResult(NamedTuple):
    """What a method found for the next episode."""

    policy: Floats
    source: Source
    cost: float  # pessimistic: proved of this policy
    why: str
    basis: Ints | None  # where the next linear program may begin
    failed: bool = False  # did the solver give up on a linear program that has a solution?
    claimed: bool = True  # do the counts say what they are evidence about?


def settle(
    solve: Callable[[float], Occupancy],
    prove: Callable[[Floats], float],
    pi_b: Floats,
    C: float,
    cheapest: float,
    more: float,
    basis: Ints | None,
) -> LPResult:
    """Return the policy of the best linear program whose cost is within C; `prove` decides that,
    not the solver.

    The linear program gets a little less to spend, and again less if the solver's tolerance let it
    spend too much. `more` is what rounding may add to a proved cost. Without a solution the result
    is pi_b; and the solver has failed if some policy is known to cost less than C, `cheapest`.
    """
    less = max(SOLVER, 2.0 * more)
    for _ in range(TRIES):
        answer = solve(C - less)
        if answer.status != "optimal":
            break
        pi = policy_from(answer.q, pi_b)
        cost = prove(pi)
        if cost <= C:
            why = f"It solves the linear program; the solver says {answer.words!r}."
            return LPResult(pi, "optimistic", cost, why, answer.basis)
        less += 2.0 * (cost - C)
    why = f"The linear program has no solution that can be used; the solver says {answer.words!r}."
    failed = answer.status != "infeasible" or C - cheapest > NEARLY
    return LPResult(pi_b, "baseline", prove(pi_b), why, basis, failed)


@dataclass(frozen=True, eq=False, repr=False)
class LPAgent(AgentByName):
    """An agent whose expected cost stays within a budget in every episode, given a baseline that is
    within it.

    The paper's mapping: `floor`, which is cost = 1 - r with budget H - floor; `baseline_value` is
    what the baseline is worth. Or any cost in [0, 1] (H, S, A): `cost`, `budget`, and
    `baseline_cost`, what the baseline costs. The agent must know one of the two: these methods
    scale their optimism by the slack it leaves. Safety does not depend on it.

    - episodes: how many there will be at most; the number is inside the logarithm of the bounds
    - bounds: the method's own box, as printed; or `MaurerPontilBox()`, sharper, same promise
    - scale: of the box, for experiments; other than 1 is NOT CERTIFIED
    - delta, pooled, replan: as for every agent; by default 0.02 (docs/scaling.md)

    A mask of possible transitions is not used: the methods do not know one.
    """

    not_given = ("scale",)  # it is the box's
    boxes: ClassVar[tuple[type[Box], ...]]  # those that the method's proof covers, its own first

    problem: Problem
    baseline: Floats
    floor: Floor | None = None
    _: KW_ONLY
    episodes: int
    cost: Floats | None = None
    budget: float | None = None
    baseline_value: float | None = None
    baseline_cost: float | None = None
    delta: float = 0.05
    scale: float = 1.0
    bounds: Box
    pooled: bool = False
    replan: float | None = None

    def __post_init__(self) -> None:
        self._require_box()
        problem = check_problem(self.problem, self.pooled, self.replan)
        require_known(problem, self.name)
        require_few(
            MOST,
            f"The linear program of {self.name} has",
            "StepMix, EpsMix",
            problem.H,
            problem.S,
            problem.A,
        )
        freeze(
            self,
            baseline=check_policy(self.baseline, problem, "baseline").copy(),
            episodes=require_integer("episodes", self.episodes, 1, InvalidSetting),
            delta=require_delta(self.delta),
        )
        given = (self.cost, self.budget, self.baseline_cost)
        if (
            self.floor is None
            and self.cost is None
            and (self.budget, self.baseline_cost) != (None, None)
        ):
            raise InvalidSetting(
                "cost is None, expected costs (H, S, A) in [0, 1]. Does the world have a cost "
                "signal?"
            )
        if (self.floor is None) == (self.cost is None):
            raise InvalidSetting(
                f"{self.name} takes either floor= and baseline_value= (the paper's mapping, cost = "
                "1 - r), or cost=, budget= and baseline_cost=."
            )
        if self.floor is not None:
            if self.baseline_value is None or given != (None, None, None):
                raise InvalidSetting(
                    f"{self.name} with a floor needs baseline_value=, what the baseline is worth, "
                    "and no costs: the method must know that value. StepMix and EpsMix need not."
                )
            problem.level(self.baseline_value, "baseline_value")
            value, floor = float(self.baseline_value), self.floor
            if isinstance(floor, BaselineFloor):
                floor = floor.under(value, problem)
            problem.level(floor)
            freeze(self, floor=float(floor), baseline_value=value)
        else:
            if self.budget is None or self.baseline_cost is None or self.baseline_value is not None:
                raise InvalidSetting(
                    f"{self.name} with costs needs budget= and baseline_cost=, what the baseline "
                    "costs, and no baseline_value: the method must know that cost."
                )
            assert self.cost is not None
            freeze(
                self,
                cost=np.array(signal("cost", self.cost, problem, InvalidSetting)),
                budget=_require_cost("budget", self.budget),
                baseline_cost=_require_cost("baseline_cost", self.baseline_cost),
            )
        if not self.kappa > 0.0:
            what = (
                f"baseline_value is {self.baseline_value:g}, expected more than the floor of "
                f"{self.floor:g}"
                if self.floor is not None
                else f"baseline_cost is {self.baseline_cost:g}, expected less than the budget of "
                f"{self.budget:g}"
            )
            advice = "Lower the floor" if self.floor is not None else "Raise the budget"
            raise InvalidSetting(
                f"{what}: {self.name} divides by the slack between them. {advice}, or find a "
                "better baseline."
            )

    @classmethod
    def from_settings(cls, problem: Problem, settings: AgentSettings) -> Self:
        """Build the agent: it is given the baseline's value. Sharp bounds are those of Maurer
        and Pontil.
        """
        box = MaurerPontilBox if settings.sharp else cls.boxes[0]
        given = {**cls.settings_taken(settings), "bounds": box(settings.scale)}
        return cls(problem, **given)

    def _require_box(self) -> None:
        if type(self.bounds) not in self.boxes:
            names = " or ".join(f"sf.{kind.__name__}()" for kind in self.boxes)
            raise InvalidSetting(
                f"bounds is {self.bounds!r}, expected {names}, and not a subclass."
            )
        if self.scale != 1.0:
            if self.bounds.scale != 1.0:
                raise InvalidSetting("Give the scale once: either scale= or that of the box.")
            freeze(self, bounds=replace(self.bounds, scale=self.scale))

    @property
    def start(self) -> Floats:
        """The probabilities of first states, which the method must know."""
        assert self.problem.start is not None
        return self.problem.start

    @property
    def c(self) -> Floats:
        """Costs (H, S, A): 1 - r for a floor."""
        return 1.0 - self.problem.r_rescaled if self.cost is None else self.cost

    @property
    def C(self) -> float:
        """The budget: H - floor for a floor."""
        if self.budget is not None:
            return self.budget
        return self.problem.H - self.level

    @property
    def kappa(self) -> float:
        """C - C_b: the slack that the baseline leaves in the budget. For a floor that is V^b -
        floor, rescaled.
        """
        if self.baseline_value is not None:
            return self.problem.level(self.baseline_value) - self.level
        assert self.baseline_cost is not None
        return self.C - self.baseline_cost

    def slack(self, c_bar: Floats) -> float:
        """Return what rounding, and rows of the baseline or the start that miss 1, can add to a
        pessimistic cost.
        """
        row_sum_error = max(
            float(np.abs(rows.sum(axis=-1) - 1.0).max()) for rows in (self.baseline, self.start)
        )
        largest_cost = max(1.0, float(c_bar.max()))
        return self.problem.H * margin(self.problem.H, row_sum_error) * largest_cost

    @property
    def known_baseline_value(self) -> float | None:
        """The baseline's value, or H minus its cost."""
        if self.baseline_cost is not None:
            return self.problem.H - self.baseline_cost
        return self.baseline_value

    @property
    def most_episodes(self) -> int:
        """The number inside the logarithm."""
        return self.episodes

    @property
    def cost_budget(self) -> CostBudget | None:
        """The costs and their budget, where the promise is about costs."""
        return None if self.cost is None else CostBudget(self.cost, self.C)

    @property
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""
        if not self.bounds.certified:
            return Promise("not certified", scope=self.floor_scope, scale=self.bounds.scale)
        budget = None if self.cost is None else self.C
        return Promise("certified", self.delta, self.floor_scope, self.premise, budget=budget)

    @property
    def premise(self) -> PremiseStatus:
        """The user asserts what the baseline is worth, or costs, and that there is slack."""
        return "none needed" if self.C >= self.problem.H else "asserted by the user"

    @abstractmethod
    def find(self, model: Model, basis: Ints | None) -> LPResult:
        """Return the policy that is played next, and why its cost is within the budget. A linear
        program may begin at this basis.
        """

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode."""
        self.check_counts(counts)
        require_no_alarm(counts)
        found = self.find(Model(self.problem, counts, self.delta), counts.basis)
        return self.make_plan(found._replace(claimed=counts.claimed))

    def make_plan(self, found: LPResult) -> Plan:
        """Return the plan that follows from what was found, and what its safety rests on."""
        H = self.problem.H
        r = self.problem.r_rescaled
        least, most = float(r.min(axis=(1, 2)).sum()), float(r.max(axis=(1, 2)).sum())
        cost = min(found.cost, float(H))
        # Where costs are not 1 - r, they prove nothing of returns.
        lower = least if self.cost is not None else min(max(H - cost, least), most)
        baseline = found.source == "baseline"
        safety: Safety = "certified" if cost <= self.C and found.claimed else "trusted"
        if found.failed:
            warnings.warn(
                f"{self.name}: {found.why} The baseline is played.", SolverTrouble, stacklevel=3
            )
        plan = Plan(
            policy=found.policy,
            source=found.source,
            h=H if baseline else 0,
            rho=0.0 if baseline else 1.0,
            lower=lower,
            upper=most,
            candidates=[lower],
            safety=safety if self.bounds.certified else "NOT CERTIFIED",
            grounds=LPGrounds(self, found),
            cost=cost,
            basis=found.basis,
            label=str(self.label),
        )
        return self.with_user_units(plan)

    def __repr__(self) -> str:
        known = (
            f"floor={self.floor:g}, baseline_value={self.baseline_value:g}"
            if self.cost is None
            else f"budget={self.budget:g}, baseline_cost={self.baseline_cost:g}"
        )
        settings = (
            f"{known}, episodes={self.episodes}, delta={self.delta:g}, "
            f"bounds={self.bounds}, pooled={self.pooled}"
        )
        return f"{type(self).__name__}({self.problem}, {settings}, replan={self.replan_share:g})"


class LPGrounds(NamedTuple):
    """What a plan of DOPE or OptPess-LP was made from. Its explanation is written here, in one
    place.
    """

    agent: LPAgent
    found: LPResult

    def explain(self, plan: Plan) -> str:
        """Explain the plan: what is played, what is certified, what was given, and the premises."""
        agent, baseline = self.agent, self.found.source == "baseline"
        what = "the baseline" if baseline else "the policy of the linear program"
        if agent.cost is None:
            assert isinstance(agent.floor, float)
            where, given = "above the floor", f"is worth, {agent.baseline_value:.6g}"
            floor = at_least(agent.floor)
            proved = f"returns at least {at_least(plan.lower)}; the floor is {floor}."
            mapping = f" Here they are 1 - r, and the floor is a budget of {agent.C:.6g}."
        else:
            where, given, mapping = "within the budget", f"costs, {agent.baseline_cost:.6g}", ""
            assert plan.cost is not None
            cost, budget = at_most(plan.cost), at_most(agent.C)
            proved = f"costs at most {cost} in expectation; the budget is {budget}."
        trusted = (
            f"data prove that it {proved} The rest is asserted by the user."
            if self.found.claimed
            else f"{UNCLAIMED}. If they are of this problem, it {proved}"
        )
        safety = {
            "certified": f"Certified at delta = {at_most(agent.delta)}: it {proved}",
            "trusted": f"Trusted, not certified: {trusted}",
        }
        known = agent.premise
        if baseline and plan.safety == "certified" and known == "asserted by the user":
            known = "certified by data"
        premise = "" if plan.safety == "NOT CERTIFIED" else f"Baseline {where}: {known}.\n"
        return (
            f"Next: {what} ({agent.name}). {self.found.why}\n"
            f"{safety.get(plan.safety, f'{agent.promise}.')}\n"
            f"{premise}"
            f"Given: what the baseline {given}. How boldly {agent.name} explores depends on it; "
            "safety does not.\n"
            f"Premises that nobody checks: at most {agent.episodes:,} episodes are played; "
            "rewards, costs and start are as declared; the dynamics do not change"
            f"{', the same at every step' * agent.pooled}.\n"
            f"Costs lie in 0..{agent.problem.H} per episode; pessimistic ones hold a bonus and may "
            f"be above.{mapping}"
        )


def _require_cost(name: str, value: object) -> float:
    """Return an expected cost: a number that is not negative. One above H is never reached."""
    number = require_number(name, value, "the expected cost of an episode, a number >= 0")
    if not 0.0 <= number < math.inf:
        raise InvalidSetting(
            f"{name} is {number:g}, expected the expected cost of an episode, a number >= 0."
        )
    return number
