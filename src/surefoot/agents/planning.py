"""Plan: what a learner will play next, and why that is safe. And the shape that learners have in common."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.arrays import Floats, Ints
from surefoot.bounds import KL, Bernstein, Bounds, Model
from surefoot.checks import Record, freeze, require_bool, require_delta, require_floor, require_integer, require_number
from surefoot.counts import Counts, check_counts, require_stationary
from surefoot.errors import InvalidSetting
from surefoot.policy import EpisodicMixture, check_policy
from surefoot.problem import Problem

Source = Literal["baseline", "mixture", "optimistic"]
Safety = Literal["certified", "trusted", "NOT CERTIFIED", "no floor"]

SOURCES: tuple[Source, ...] = ("baseline", "mixture", "optimistic")  # in the order of the kernels' numbers


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Plan(Record):
    """The next episode's policy.

    - source: which of the paper's three exits was taken; h and rho are the paper's (baseline: h = H, rho = 0;
      optimistic: h = 0, rho = 1; a mixture with h mixes at row h-1 and rho is the weight of the LESS conservative side)
    - lower: the value proved for this policy (the floor for a mixture; below the floor for a trusted baseline)
    - upper: no policy at all is worth more
    - candidates: the lower values L(h0) from which h was chosen, boldest first
    - safety: "certified" is proved from data at level delta. "trusted" is the owner's word that the baseline is above
      the floor. "NOT CERTIFIED" is computed with a bonus scaled by hand. "no floor" comes from a learner without one.
    """

    policy: Floats | EpisodicMixture
    source: Source
    h: int
    rho: float
    lower: float
    upper: float
    candidates: Floats
    safety: Safety

    def __init__(
        self,
        policy: ArrayLike | EpisodicMixture,
        source: Source,
        h: int,
        rho: float,
        lower: float,
        upper: float,
        candidates: ArrayLike,
        safety: Safety,
    ) -> None:
        """Fields as named; arrays become read-only."""
        if source not in SOURCES:
            raise InvalidSetting(f"source is {source!r}, expected one of {', '.join(SOURCES)}.")
        if safety not in get_args(Safety):
            raise InvalidSetting(f"safety is {safety!r}, expected one of {', '.join(get_args(Safety))}.")
        require_integer("h", h, 0, InvalidSetting)
        if not 0.0 <= require_number("rho", rho, "a weight in [0, 1]") <= 1.0:
            raise InvalidSetting(f"rho is {rho}, expected a weight in [0, 1].")
        freeze(
            self,
            policy=policy if isinstance(policy, EpisodicMixture) else np.asarray(policy, dtype=np.float64),
            source=source,
            h=h,
            rho=rho,
            lower=lower,
            upper=upper,
            candidates=np.asarray(candidates, dtype=np.float64),
            safety=safety,
        )

    @property
    def certified(self) -> bool:
        """Is the floor proved from data for this very policy?"""
        return self.safety == "certified"

    def __repr__(self) -> str:
        values = ", ".join(f"{value:.6g}" for value in self.candidates)
        return (
            f"Plan({self.source}, {self.safety}, h={self.h}, rho={self.rho:.6g}, lower={self.lower:.6g}, "
            f"upper={self.upper:.6g}, candidates=[{values}])"
        )


@runtime_checkable
class Agent(Protocol):
    """What `simulate` asks of a learner: it plans from counts, and from nothing else."""

    @property
    def problem(self) -> Problem: ...  # noqa: D102
    @property
    def floor(self) -> float | None: ...  # noqa: D102
    @property
    def pooled(self) -> bool: ...  # noqa: D102
    @property
    def promise(self) -> str: ...  # noqa: D102
    def plan(self, counts: Counts) -> Plan: ...  # noqa: D102


class SpliceAgent(Record, ABC):
    """A learner that chooses among splices of its baseline with the optimistic policy.

    Its whole configuration is the properties below, so one kernel plans for all of them and one fused loop plays them.
    """

    name: ClassVar[str]  # as the literature writes it
    floor_scope: ClassVar[str] = "every episode's policy"  # whose value is promised
    problem: Problem
    bounds: Bounds
    delta: float
    pooled: bool

    @property
    @abstractmethod
    def pi_b(self) -> Floats:
        """The policy before row h0 of each candidate."""

    @property
    @abstractmethod
    def h0(self) -> Ints:
        """The candidates, ascending, h0[0] = 0."""

    @property
    @abstractmethod
    def rule(self) -> "kernels.Rule":
        """How a plan follows from the candidates' lower values."""

    @property
    @abstractmethod
    def delta_prime(self) -> float:
        """The share of delta inside beta and beta*."""

    @abstractmethod
    def plan_by_the_book(self, counts: Counts) -> Plan:
        """`plan`, by the readable version of the algorithm."""

    @property
    def promise(self) -> str:
        """The label of everything this learner produces."""
        scaled = "" if self.bounds.certified else f"NOT CERTIFIED: bonus scaled by {self.bounds.scale:g}"
        if self.rule.floor == -np.inf:
            return f"{scaled}, and no floor promised at any scale" if scaled else "no floor promised"
        return scaled or f"certified at delta = {self.delta:g} for {self.floor_scope}, or the baseline on trust"

    def model(self, counts: Counts) -> Model:
        """What the readable version reads of the counts."""
        check_counts(counts, self.problem, self.pooled)
        return Model(self.problem, counts, self.delta_prime)

    def plan(self, counts: Counts) -> Plan:
        """The policy of the next episode. Depends on the counts and on nothing else; the counts stay as they are."""
        check_counts(counts, self.problem, self.pooled)
        pi_bar, L, upper = plan_splices(self, counts)
        floor, mixes, by_coin = self.rule
        c, rho, reached = kernels.choose(L, floor, mixes)
        h = int(self.h0[c])
        optimist = np.eye(self.problem.A)[pi_bar]
        policy: Floats | EpisodicMixture
        if by_coin:
            policy = EpisodicMixture(self.pi_b, optimist, rho)
        else:
            policy = np.zeros_like(optimist)
            kernels.mix_splices(self.pi_b, optimist, h, rho, policy)
        return Plan(
            policy=policy,
            source=exit_taken(h, rho, self.problem.H),
            h=h,
            rho=rho,
            lower=float(L[c]) if c == 0 or rho == 0.0 else floor,
            upper=upper,
            candidates=L,
            safety=safety(self.bounds, floor, reached),
        )


def plan_splices(agent: SpliceAgent, counts: Counts) -> tuple[Ints, Floats, float]:
    """One pass of the kernel: the optimistic actions (H, S), the candidates' lower values, the upper value."""
    problem = agent.problem
    evidence = agent.bounds.evidence(problem, counts, agent.delta_prime)
    splices = kernels.empty_splices(agent.h0, problem.r_rows, agent.pi_b)
    kernels.refresh_all(evidence)
    kernels.bound_splices(evidence, splices, np.zeros(0, dtype=np.int64), 0, problem.S)
    return splices.pi_bar, splices.V_low[0, :, problem.s1].copy(), float(splices.V_up[0, 0, problem.s1])


def exit_taken(h: int, rho: float, H: int) -> Source:
    """Which of the three exits (h, rho) is. With h = H and rho = 0 it is pi_b that is played, certified or not."""
    return SOURCES[kernels.exit_taken(h, rho, H)]


def safety(bounds: Bounds, floor: float, reached: bool) -> Safety:
    """The mark of a plan: what its safety rests on."""
    if not bounds.certified:
        return "NOT CERTIFIED"
    if floor == -np.inf:
        return "no floor"
    return "certified" if reached else "trusted"


def check_settings(problem: object, bounds: object, pooled: object) -> None:
    """What every learner's constructor asks."""
    if not isinstance(problem, Problem):
        raise InvalidSetting(
            f"The first argument is a {type(problem).__name__}, expected a Problem: what a learner may know. "
            "Of a world that is world.problem."
        )
    if type(bounds) not in (Bernstein, KL):
        raise InvalidSetting(f"bounds is {bounds!r}, expected sf.KL() or sf.Bernstein(), and not a subclass.")
    if require_bool("pooled", pooled):
        require_stationary(problem)


@dataclass(frozen=True, eq=False, repr=False)
class FloorAgent(SpliceAgent):
    """A splice agent with a baseline and a floor: the fields that StepMix, EpsMix and StepNoMix share.

    `problem`, `baseline` (H, S, A) and `floor` come first; `delta`, `bounds` and `pooled` are keywords. A floor above
    the baseline's true value is the owner's risk: then playing the baseline already breaks it.
    """

    problem: Problem
    baseline: Floats
    floor: float
    _: KW_ONLY
    delta: float = 0.05
    bounds: Bounds = Bernstein()  # noqa: RUF009  (frozen)
    pooled: bool = False

    def __post_init__(self) -> None:
        check_settings(self.problem, self.bounds, self.pooled)
        freeze(
            self,
            baseline=check_policy(self.baseline, self.problem, "baseline").copy(),
            floor=require_floor(self.floor, self.problem.H),
            delta=require_delta(self.delta),
        )

    @property
    def pi_b(self) -> Floats:
        """The baseline."""
        return self.baseline

    def __repr__(self) -> str:
        settings = f"floor={self.floor:g}, delta={self.delta:g}, bounds={self.bounds}, pooled={self.pooled}"
        return f"{type(self).__name__}({self.problem}, {settings})"
