"""Reward-free safe RL (Ni and Kamgarpour 2026, Algorithm 2): explore what is least known, mixed
with the baseline.
"""

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, final

import numpy as np

from surefoot.agents.base import check_problem, require_known
from surefoot.agents.floors import BaselineFloor, Floor
from surefoot.agents.plan import UNCLAIMED, Plan, Safety
from surefoot.agents.promise import PremiseStatus, Promise, by_given_value
from surefoot.agents.settings import AgentByName, AgentSettings
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import freeze, require_delta, require_number
from surefoot.bounds import Bernstein, Model
from surefoot.bounds.boxes import check_scale
from surefoot.bounds.lp import best_occupancy, expected, policy_from
from surefoot.bounds.model import margin, require_model
from surefoot.errors import InvalidSetting, SolverTrouble
from surefoot.evidence.counts import Counts
from surefoot.model.policy import EpisodicMixture, check_policy
from surefoot.model.problem import Problem

EVENTS = 2  # KL, and counts, which only the number of episodes depends on: each has delta/2


class ValueInModel(NamedTuple):
    """What the estimated model says of a policy, and how far that may be off."""

    V_hat: float  # its value in the estimated model
    Delta: float  # |V - V_hat| <= Delta, for every policy at once

    @property
    def lower(self) -> float:
        """The value proved for it."""
        return self.V_hat - self.Delta


class Exploration(NamedTuple):
    """What is mixed with the baseline, and how much of it."""

    policy: Floats
    alpha: float  # its weight
    value: ValueInModel  # of that policy
    baseline: ValueInModel
    why: str
    basis: Ints | None  # where the next linear program may begin
    failed: bool = False  # did the solver give up on a linear program that has a solution?


def bonus(model: Model, thresholds: Bernstein) -> Floats:
    """Return b = min(11 H beta/max(n, 1), 1), beta = log(2SAH/delta) + S log(8e(n+1)) at delta'
    = delta/2.
    """
    return np.minimum(11 * model.H * thresholds.beta(model) / np.maximum(model.n_sa, 1), 1.0)


def value_in_model(model: Model, b: Floats, pi: Floats) -> ValueInModel:
    """Return V_r(pi; P_hat) and Delta = min(H, 3e sqrt(H V_b) + H V_b), their Lemma 3.1.

    V_b is the sum of (1 + 1/H)^(h-1) b over the steps h = 1..H, in P_hat.
    """
    H, start = model.H, model.problem.start
    assert start is not None
    V_b = expected(model.P_hat, start, growing(b), pi)
    Delta = min(H, 3 * math.e * math.sqrt(H * V_b) + H * V_b)
    return ValueInModel(expected(model.P_hat, start, model.problem.r_rescaled, pi), Delta)


def growing(b: Floats) -> Floats:
    """Return (1 + 1/H)^(h-1) b for the steps h = 1..H."""
    H = len(b)
    return np.asarray(((1 + 1 / H) ** np.arange(H))[:, None, None] * b)


def reward_free_safe(
    model: Model,
    pi_b: Floats,
    floor: float,
    kappa: float,
    eps: float,
    b: Floats,
    slack: float,
    basis: Ints | None,
) -> Exploration:
    """Return what is played next: pi with probability alpha, else pi_b, which is worth at least
    floor + kappa.

    pi is worth at least L = V_r(pi; P_hat) - Delta(pi), so alpha = kappa/(kappa + (floor - L)_+)
    keeps the average over the coin above the floor. While P_hat says too little good of pi_b, alpha
    = 0. Then pi maximises V_b among the policies with V_r(pi; P_hat) >= floor. Once even its Delta
    is at most eps/2, pi maximises V_r(pi; P_hat) subject to V_r(pi; P_hat) >= floor + eps/2.
    `slack` is what rounding may add.
    """
    H, r, start = model.H, model.problem.r_rescaled, model.problem.start
    assert start is not None

    def judged(pi: Floats) -> ValueInModel:
        V_hat, Delta = value_in_model(model, b, pi)
        return ValueInModel(V_hat, Delta + slack)

    of_baseline = judged(pi_b)
    if of_baseline.V_hat < floor + kappa / 2:
        why = (
            "By the estimated model, the baseline is above the floor by less than half of what "
            "was given."
        )
        return Exploration(pi_b, 0.0, of_baseline, of_baseline, why, basis)

    answer = best_occupancy(model.P_hat, start, growing(b), 1.0 - r, H - floor, basis)
    why = (
        "It explores what is least known, among the policies that the estimated model says are "
        "above the floor."
    )
    found = judged(policy_from(answer.q, pi_b))
    if answer.status == "optimal" and found.Delta <= eps / 2:
        answer = best_occupancy(model.P_hat, start, r, 1.0 - r, H - floor - eps / 2, answer.basis)
        why = "The model is known well enough: it plays the best policy of the estimated model."
    if answer.status != "optimal":
        why = (
            "The linear program has no solution that can be used; the solver says "
            f"{answer.words!r}."
        )
        return Exploration(pi_b, 0.0, of_baseline, of_baseline, why, basis, failed=True)
    pi = policy_from(answer.q, pi_b)
    found = judged(pi)
    alpha = kappa / (kappa + max(floor - found.lower, 0.0))
    return Exploration(pi, alpha, found, of_baseline, why, answer.basis)


@final
@dataclass(frozen=True, eq=False, repr=False)
class RewardFreeSafeRL(AgentByName):
    """Explores whatever is least known, by a coin with the baseline; then plays the best policy of
    its model.

    Promise (scale 1): with probability at least 1 - delta, for EVERY episode the coin-averaged
    value is >= floor, provided the baseline is worth `baseline_value`: safety rests on that value,
    which it is given. It is reward-free: while it explores, it does not look at which policy is
    best, and its paper bounds the number of episodes until it knows, not its regret.

    - baseline_value: what the baseline is worth, at least; more than the floor
    - accuracy: how far from the best the policy may be that it ends with, as a share of the range
      of returns
    - scale: of beta, for experiments; other than 1 is NOT CERTIFIED
    - delta, pooled, replan: as for every agent; by default 0.02 (docs/scaling.md)
    """

    name = "Reward-free safe RL"
    own_bounds = True
    floor_scope = "every episode's coin-averaged value"

    problem: Problem
    baseline: Floats
    floor: Floor
    _: KW_ONLY
    baseline_value: float
    accuracy: float = 0.1
    delta: float = 0.05
    scale: float = 1.0
    pooled: bool = False
    replan: float | None = None

    def __post_init__(self) -> None:
        problem = check_problem(self.problem, self.pooled, self.replan)
        require_known(problem, self.name)
        require_model(problem, self.name)
        problem.level(self.baseline_value, "baseline_value")
        value, floor = float(self.baseline_value), self.floor
        if isinstance(floor, BaselineFloor):
            floor = floor.under(value, problem)
        problem.level(floor)
        accuracy = require_number(
            "accuracy", self.accuracy, "a share of the range of returns, in (0, 1]"
        )
        if not 0.0 < accuracy <= 1.0:
            raise InvalidSetting(
                f"accuracy is {accuracy:g}, expected a share of the range of returns, in (0, 1]."
            )
        freeze(
            self,
            baseline=check_policy(self.baseline, problem, "baseline").copy(),
            floor=float(floor),
            baseline_value=value,
            accuracy=accuracy,
            delta=require_delta(self.delta),
        )
        check_scale(self, self.scale)
        if not self.kappa > 0.0:
            raise InvalidSetting(
                f"baseline_value is {value:g}, expected more than the floor of {floor:g}: "
                f"{self.name} mixes by the slack between them. Lower the floor, or find a better "
                "baseline."
            )

    @classmethod
    def from_settings(cls, problem: Problem, settings: AgentSettings) -> Self:
        """Build the agent: it is given the baseline's value, and has thresholds of its own."""
        return cls(
            problem,
            settings.baseline,
            settings.floor,
            baseline_value=settings.baseline_value,
            delta=settings.delta,
            scale=settings.bounds.scale,
            pooled=settings.pooled,
            replan=settings.replan,
        )

    @property
    def kappa(self) -> float:
        """V^b - floor, rescaled: their xi."""
        return self.problem.level(self.baseline_value) - self.level

    @property
    def known_baseline_value(self) -> float:
        """The baseline's value, as given."""
        return self.baseline_value

    @property
    def asserted(self) -> float:
        """The baseline's value, on which safety rests."""
        return self.baseline_value

    @property
    def premise(self) -> PremiseStatus:
        """The user asserts what the baseline is worth."""
        return "none needed" if self.level <= 0.0 else "asserted by the user"

    @property
    def promise(self) -> Promise:
        """What is promised, beside every number that this agent produces."""
        if self.scale != 1.0:
            return Promise("not certified", scope=self.floor_scope, scale=self.scale)
        promise = Promise("certified", self.delta, self.floor_scope, self.premise)
        if self.premise == "none needed":
            return promise
        return replace(promise, knows_baseline_value=True, baseline_value=self.baseline_value)

    @cached_property
    def _rounding(self) -> float:
        """What rounding, and rows of the baseline or the start that miss 1, can add to a value."""
        start = self.problem.start
        assert start is not None
        row_sum_error = max(
            float(np.abs(rows.sum(axis=-1) - 1.0).max()) for rows in (self.baseline, start)
        )
        return self.problem.H * margin(self.problem.H, row_sum_error)

    def plan(self, counts: Counts, rng: np.random.Generator | None = None) -> Plan:
        """The policy of the next episode."""
        self.check_counts(counts)
        model = Model(self.problem, counts, self.delta / EVENTS)
        b = bonus(model, Bernstein(self.scale))
        eps = self.kappa * self.accuracy / 2  # kappa epsilon/(2 H), with epsilon = accuracy H
        found = reward_free_safe(
            model, self.baseline, self.level, self.kappa, eps, b, self._rounding, counts.basis
        )
        return self._make_plan(found, counts.claimed)

    def _make_plan(self, found: Exploration, claimed: bool) -> Plan:
        """Return the plan that follows from what was found, and what its safety rests on."""
        if found.failed:
            warnings.warn(
                f"{self.name}: {found.why} The baseline is played.", SolverTrouble, stacklevel=3
            )
        H, alpha = self.problem.H, found.alpha
        r = self.problem.r_rescaled
        least, most = float(r.min(axis=(1, 2)).sum()), float(r.max(axis=(1, 2)).sum())
        L, L_b = (min(max(value.lower, least), most) for value in (found.value, found.baseline))
        proved = alpha * L + (1.0 - alpha) * L_b
        safety: Safety = "certified" if proved >= self.level and claimed else "trusted"
        plan = Plan(
            policy=EpisodicMixture(self.baseline, found.policy, alpha),
            source="baseline" if alpha == 0.0 else "optimistic" if alpha == 1.0 else "mixture",
            h=0 if alpha == 1.0 else H,
            rho=alpha,
            lower=proved,
            upper=most,
            candidates=[L, L_b],
            safety=safety if self.scale == 1.0 else "NOT CERTIFIED",
            grounds=RewardFreeGrounds(self, found, L, L_b, claimed),
            basis=found.basis,
            label=str(self.label),
        )
        return self.with_user_units(plan)

    def __repr__(self) -> str:
        known = (
            f"floor={self.floor:g}, baseline_value={self.baseline_value:g}, "
            f"accuracy={self.accuracy:g}"
        )
        settings = f"{known}, delta={self.delta:g}, scale={self.scale:g}, pooled={self.pooled}"
        return f"RewardFreeSafeRL({self.problem}, {settings}, replan={self.replan_share:g})"


class RewardFreeGrounds(NamedTuple):
    """What a plan was made from. Its explanation is written here, in one place."""

    agent: RewardFreeSafeRL
    found: Exploration
    L: float  # proved of the policy that explores, rescaled
    L_b: float  # and of the baseline
    claimed: bool  # do the counts say what they are evidence about?

    def explain(self, plan: Plan) -> str:
        """Explain the plan: what is played, what is certified, what was given, and the premises."""
        lines = [self._next(plan), self._values(), self._safety(plan)]
        if plan.safety != "NOT CERTIFIED":
            lines.append(self._premise())
        return "\n".join([*lines, self._premises(plan)])

    def _shown(self, value: float) -> str:
        return f"{self.agent.problem.units.to_user(value):.6g}"

    def _next(self, plan: Plan) -> str:
        if plan.source == "baseline":
            return f"Next: the baseline ({self.agent.name}). {self.found.why}"
        coin = f"with probability {plan.rho:.6g} the explorer, else the baseline"
        what = "the explorer alone" if plan.source == "optimistic" else coin
        return f"Next: {what} ({self.agent.name}). {self.found.why}"

    def _values(self) -> str:
        by = "by data" if self.agent.scale == 1.0 else "with a scaled bonus, NOT CERTIFIED"
        return (
            f"At least, {by}: {self._shown(self.L)} of the explorer's policy, "
            f"{self._shown(self.L_b)} of the baseline; the floor is {self.agent.floor:.6g}."
        )

    def _safety(self, plan: Plan) -> str:
        agent = self.agent
        if plan.safety == "certified":
            return (
                f"Certified at delta = {agent.delta:g}: the coin-averaged value is at least "
                f"{plan.lower:.6g}."
            )
        if plan.safety == "trusted" and not self.claimed:
            return f"Trusted, not certified: {UNCLAIMED}."
        if plan.safety == "trusted":
            return by_given_value(agent.baseline_value)
        return f"{agent.promise}."

    def _premise(self) -> str:
        known = self.agent.premise
        if known == "asserted by the user" and self.claimed and self.L_b >= self.agent.level:
            known = "certified by data"
        return f"Baseline above the floor: {known}."

    def _premises(self, plan: Plan) -> str:
        given = (
            ""
            if plan.safety == "certified"
            else f"the baseline is worth at least {self.agent.baseline_value:.6g}, as given; "
        )
        same = ", the same at every step" if self.agent.pooled else ""
        return (
            f"Premises that nobody checks: {given}rewards and start are as declared; the "
            f"dynamics do not change{same}."
        )
