"""Learners that plan by a linear programme, for costs within a budget: what DOPE and OptPess-LP have in common."""

import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from surefoot.agents.base import CostBudget, CountingAgent, check_problem, require_known
from surefoot.agents.floors import Floor, Relative, require_share
from surefoot.agents.plan import Plan, Safety, Source
from surefoot.agents.premises import PremiseStatus
from surefoot.agents.promise import Promise
from surefoot.agents.replanning import Replan
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import freeze, require_delta, require_floor, require_integer, require_number
from surefoot.bounds.boxes import Box
from surefoot.bounds.model import Model, margin
from surefoot.errors import InvalidSetting, SolverTrouble
from surefoot.numerics.lp import Occupancy, policy_from
from surefoot.task.counts import Counts
from surefoot.task.policy import check_policy
from surefoot.task.problem import Problem, signal

TRIES = 4  # programmes, each with a little less to spend, until the policy found is proved to be within the budget
NEARLY = 1e-6  # a programme with less room than that may be called infeasible
SOLVER = 1e-9  # what the programme's budget is tightened by, for the solver's tolerance


class Found(NamedTuple):
    """What a method found for the next episode."""

    policy: Floats
    source: Source
    cost: float  # pessimistic: proved of this policy
    why: str
    basis: Ints | None  # where the next programme may begin
    failed: bool = False  # did the solver give up on a programme that has a solution?


def settle(
    solve: Callable[[float], Occupancy],
    prove: Callable[[Floats], float],
    pi_b: Floats,
    C: float,
    cheapest: float,
    more: float,
    basis: Ints | None,
) -> Found:
    """The policy of the best programme whose cost is proved to be within C, by `prove` and not by the solver's word.

    The programme gets a little less to spend, and again less if the solver's tolerance let it spend too much. `more`
    is what rounding may add to a proved cost. Without a solution: pi_b; and the solver is to blame if some policy is
    known to cost less than C, `cheapest`.
    """
    less = max(SOLVER, 2.0 * more)
    for _ in range(TRIES):
        answer = solve(C - less)
        if answer.status != "optimal":
            break
        pi = policy_from(answer.q, pi_b)
        cost = prove(pi)
        if cost <= C:
            return Found(pi, "optimistic", cost, f"The best of its programme: {answer.words.lower()}.", answer.basis)
        less += 2.0 * (cost - C)
    why = f"The programme has no solution that can be used; the solver says {answer.words!r}."
    failed = answer.status != "infeasible" or C - cheapest > NEARLY
    return Found(pi_b, "baseline", prove(pi_b), why, basis, failed)


@dataclass(frozen=True, eq=False, repr=False)
class LPAgent(CountingAgent):
    """A learner whose expected cost stays within a budget in every episode, given a baseline that is within it.

    The paper's mapping: `floor`, which is cost = 1 - r with budget H - floor; `baseline_value` is what the baseline is
    worth. Or any cost in [0, 1] (H, S, A): `cost`, `budget`, and `baseline_cost`, what the baseline costs. One of the
    two is told to the learner: these methods scale their optimism by the room it leaves. Safety does not lean on it.

    - episodes: how many there will be at most; the number is inside the logarithm of the bounds
    - bounds: the method's own box, as printed; or `MaurerPontilBox()`, sharper, same promise
    - scale: of the box, for experiments; other than 1 is NOT CERTIFIED
    - delta, pooled, replan: as for every learner; by default it plans at growth 1.1

    A mask of possible transitions is not used: the methods do not know one.
    """

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
    replan: Replan | None = None

    def __post_init__(self) -> None:
        self._require_box()
        problem = check_problem(self.problem, self.pooled, self.replan)
        require_known(problem, self.name)
        freeze(
            self,
            baseline=check_policy(self.baseline, problem, "baseline").copy(),
            episodes=require_integer("episodes", self.episodes, 1, InvalidSetting),
            delta=require_delta(self.delta),
        )
        H = problem.H
        given = (self.cost, self.budget, self.baseline_cost)
        if self.floor is None and self.cost is None and (self.budget, self.baseline_cost) != (None, None):
            raise InvalidSetting("cost is None, expected costs (H, S, A) in [0, 1]. Does the world have a cost signal?")
        if (self.floor is None) == (self.cost is None):
            raise InvalidSetting(
                f"{self.name} takes either floor= and baseline_value= (the paper's mapping, cost = 1 - r), or cost=, "
                "budget= and baseline_cost=."
            )
        if self.floor is not None:
            if self.baseline_value is None or given != (None, None, None):
                raise InvalidSetting(
                    f"{self.name} with a floor needs baseline_value=, what the baseline is worth, and no costs: the "
                    "method is told that value. StepMix and EpsMix are not."
                )
            value = require_floor(self.baseline_value, H, "baseline_value")
            if isinstance(self.floor, Relative):
                require_share(problem)
            floor = self.floor.of(value, problem) if isinstance(self.floor, Relative) else require_floor(self.floor, H)
            freeze(self, floor=floor, baseline_value=value)
        else:
            if self.budget is None or self.baseline_cost is None or self.baseline_value is not None:
                raise InvalidSetting(
                    f"{self.name} with costs needs budget= and baseline_cost=, what the baseline costs, and no "
                    "baseline_value: the method is told that cost."
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
                f"baseline_value is {self.baseline_value:g}, expected more than the floor of {self.floor:g}"
                if self.floor is not None
                else f"baseline_cost is {self.baseline_cost:g}, expected less than the budget of {self.budget:g}"
            )
            advice = "Lower the floor" if self.floor is not None else "Raise the budget"
            raise InvalidSetting(
                f"{what}: {self.name} divides by the room between them. {advice}, or find a better baseline."
            )

    def _require_box(self) -> None:
        if type(self.bounds) not in self.boxes:
            names = " or ".join(f"sf.{kind.__name__}()" for kind in self.boxes)
            raise InvalidSetting(f"bounds is {self.bounds!r}, expected {names}, and not a subclass.")
        if self.scale != 1.0:
            if self.bounds.scale != 1.0:
                raise InvalidSetting("Give the scale once: either scale= or that of the box.")
            freeze(self, bounds=replace(self.bounds, scale=self.scale))

    @property
    def pi_b(self) -> Floats:
        """The baseline."""
        return self.baseline

    @property
    def c(self) -> Floats:
        """Costs (H, S, A): 1 - r for a floor."""
        return 1.0 - self.problem.r if self.cost is None else self.cost

    @property
    def C(self) -> float:
        """The budget: H - floor for a floor."""
        if self.budget is not None:
            return self.budget
        return self.problem.H - self.level

    @property
    def kappa(self) -> float:
        """C - C_b: what the baseline leaves of the budget. For a floor that is V^b - floor."""
        if self.baseline_value is not None:
            return self.baseline_value - self.level
        assert self.baseline_cost is not None
        return self.C - self.baseline_cost

    @property
    def level(self) -> float:
        """The floor as a number."""
        assert isinstance(self.floor, float)
        return self.floor

    def slack(self, c_bar: Floats) -> float:
        """What rounding, and rows of the baseline or the start that miss 1, can add to a pessimistic cost."""
        return self._rounding * max(1.0, float(c_bar.max()))

    @cached_property
    def _rounding(self) -> float:
        """The same for costs of 1 at most."""
        assert self.problem.start is not None
        row_sum_error = max(
            float(np.abs(rows.sum(axis=-1) - 1.0).max()) for rows in (self.baseline, self.problem.start)
        )
        return self.problem.H * margin(self.problem.H, row_sum_error)

    @cached_property
    def _returns(self) -> tuple[float, float]:
        """What an episode can return at the least and at the most."""
        return float(self.problem.r.min(axis=(1, 2)).sum()), float(self.problem.r.max(axis=(1, 2)).sum())

    @property
    def known_baseline_value(self) -> float | None:
        """Of the baseline: its value, or H minus its cost."""
        if self.baseline_cost is not None:
            return self.problem.H - self.baseline_cost
        return self.baseline_value

    @property
    def most_episodes(self) -> int:
        """The number inside the logarithm."""
        return self.episodes

    @property
    def cost_budget(self) -> CostBudget | None:
        """Where the promise is about costs."""
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
        """It is told what the baseline is worth, or costs, and that there is room."""
        return "none needed" if self.C >= self.problem.H else "asserted by the user"

    def model(self, counts: Counts) -> Model:
        """Estimates and visits."""
        self.check_counts(counts)
        return Model(self.problem, counts, self.delta)

    def make_plan(self, found: Found) -> Plan:
        """The plan that follows from what was found, with its marks."""
        H = self.problem.H
        least, most = self._returns
        cost = min(found.cost, float(H))
        # Of returns nothing is proved where costs are something else.
        lower = least if self.cost is not None else min(max(H - cost, least), most)
        baseline = found.source == "baseline"
        mark: Safety = "certified" if cost <= self.C else "trusted"
        if found.failed:
            warnings.warn(f"{self.name}: {found.why} The baseline is played.", SolverTrouble, stacklevel=3)
        return Plan(
            policy=found.policy,
            source=found.source,
            h=H if baseline else 0,
            rho=0.0 if baseline else 1.0,
            lower=lower,
            upper=most,
            candidates=[lower],
            safety=mark if self.bounds.certified else "NOT CERTIFIED",
            grounds=Reasons(self, found),
            cost=cost,
            basis=found.basis,
        )

    def __repr__(self) -> str:
        told = (
            f"floor={self.level:g}, baseline_value={self.baseline_value:g}"
            if self.cost is None
            else f"budget={self.budget:g}, baseline_cost={self.baseline_cost:g}"
        )
        settings = f"{told}, episodes={self.episodes}, delta={self.delta:g}, bounds={self.bounds}, pooled={self.pooled}"
        return f"{type(self).__name__}({self.problem}, {settings}, replan={self.replan_rule})"


class Reasons(NamedTuple):
    """What a plan of theirs was made from."""

    agent: LPAgent
    found: Found

    def explain(self, plan: Plan) -> str:
        """In words."""
        agent, found = self.agent, self.found
        what = "the baseline" if found.source == "baseline" else "the programme's policy"
        unit = agent.problem.in_user_units
        proved, asked = f"costs at most {plan.cost:.6g} in expectation", f"the budget is {agent.C:.6g}"
        if agent.cost is None:
            proved, asked = f"returns at least {unit(plan.lower):.6g}", f"the floor is {unit(agent.level):.6g}"
        told = f"costs, {agent.baseline_cost:.6g}" if agent.baseline_cost is not None else ""
        if agent.baseline_value is not None:
            told = f"is worth, {unit(agent.baseline_value):.6g}"
        if plan.safety == "certified":
            safety = f"Certified at delta = {agent.delta:g}: it {proved}; {asked}."
        elif plan.safety == "trusted":
            safety = f"Trusted, not certified: data prove that it {proved}; {asked}. The rest is the owner's word."
        else:
            safety = f"{agent.promise}."
        where = "above the floor" if agent.cost is None else "within the budget"
        by_data = found.source == "baseline" and plan.safety == "certified" and agent.premise == "asserted by the user"
        known = "certified by data" if by_data else agent.premise
        lines = [
            f"Next: {what} ({agent.name}). {found.why}",
            safety,
            *([] if plan.safety == "NOT CERTIFIED" else [f"Baseline {where}: {known}."]),
            f"Given: what the baseline {told}. Only how boldly {agent.name} explores depends on that; safety does not.",
            f"Premises that nobody checks: at most {agent.episodes:,} episodes; rewards, costs and start as declared; "
            "dynamics that do not change" + (", the same at every step." if agent.pooled else "."),
        ]
        H = agent.problem.H
        lines.append(
            f"Costs lie in 0..{H} an episode; pessimistic ones hold a bonus and may be above."
            + f" Here they are 1 - r, and the floor is a budget of {agent.C:.6g}." * (agent.cost is None)
        )
        return "\n".join(lines)


def _require_cost(name: str, value: object) -> float:
    """An expected cost: a number that is not negative. One above H is never reached."""
    number = require_number(name, value, "the expected cost of an episode, a number >= 0")
    if not 0.0 <= number < math.inf:
        raise InvalidSetting(f"{name} is {number:g}, expected the expected cost of an episode, a number >= 0.")
    return number
