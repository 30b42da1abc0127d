"""Run: what happened when a learner met a world. Exact totals over ALL episodes, and a thinned curve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.agents.base import CostBudget
from surefoot.agents.plan import SOURCES, Plan, Source
from surefoot.agents.promise import Promise
from surefoot.assurance.watchdog import Alarm
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import FrozenRecord, freeze
from surefoot.numerics import kernels
from surefoot.task.counts import Counts
from surefoot.task.problem import Units


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Curve(FrozenRecord):
    """One point per bin of consecutive episodes (at most about 2,000): exact means, minima and shares, not samples."""

    episode: Ints  # the first episode of each bin
    episodes: Ints  # how many episodes are in it
    mean: Floats  # mean exact value of the policies played
    min: Floats  # smallest of them
    below: Floats  # share of them below the floor; nan without a floor
    regret: Floats  # cumulative regret at the END of the bin
    sources: Ints  # (bins, 3) episodes per exit: baseline, mixture, optimistic
    by_h: Ints  # (bins, H+1) episodes per h

    def __init__(
        self,
        episode: Ints,
        episodes: Ints,
        mean: Floats,
        min: Floats,
        below: Floats,
        regret: Floats,
        sources: Ints,
        by_h: Ints,
    ) -> None:
        """Fields as named; arrays become read-only."""
        freeze(self, episode=episode, episodes=episodes, mean=mean, min=min)
        freeze(self, below=below, regret=regret, sources=sources, by_h=by_h)

    def __len__(self) -> int:
        return len(self.episode)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Trace(FrozenRecord):
    """What a plan made at each checkpoint would say: what the data of the episodes before it prove. (n,) each."""

    episode: Ints  # episodes played before
    lower: Floats  # the value proved for the policy that would be played
    upper: Floats  # no policy is worth more
    rho: Floats
    h: Ints
    candidates: Floats  # (n, number of candidates) their lower values, boldest first

    def __init__(self, episode: Ints, lower: Floats, upper: Floats, rho: Floats, h: Ints, candidates: Floats) -> None:
        """Fields as named; arrays become read-only."""
        freeze(self, episode=episode, lower=lower, upper=upper, rho=rho, h=h, candidates=candidates)

    def __len__(self) -> int:
        return len(self.episode)


@dataclass(frozen=True, eq=False, repr=False)
class Run(FrozenRecord):
    """The account of one run. Values are exact expected returns in the true world, in units of return (0..H).

    Tables, figures and repr show them in the user's own units (`units`), where those differ.

    Where no true model is known (`learn` in an environment that does not show one) optimum, violations, regret and
    min_value are None, and the curve shows observed returns.

    Episode numbers start at 0; what never happened is None. `promise` is the learner's label and belongs beside every
    number shown: certified, NOT CERTIFIED, or no floor promised.

    `told`: does the learner know what the baseline is worth? `min_cumulative` is what the sum of all episodes was above
    the floor at its lowest (with a budget: below the budget), which is what learners that keep the sum promise
    (`in_sum`). Where a learner keeps costs within a `budget`, violations are of that, and `max_cost`, `baseline_cost`
    are expected costs of an episode.
    """

    agent: str  # the learner's name
    promise: Promise
    episodes: int
    seed: object
    floor: float | None
    optimum: float | None  # V*, where the true model is known; with a budget of cost, the best within it
    baseline: float | None  # V^{pi_b}, where the learner has a baseline
    violations: int | None  # episodes with value < floor - 1e-12
    regret: float | None  # sum over episodes of optimum - V^{pi_k}
    min_value: float | None  # the smallest exact value of a policy played
    first_mixture: int | None
    first_optimistic: int | None
    sources: dict[Source, int]  # episodes per exit; they sum to `episodes`
    by_h: Ints  # episodes per h = 0..H
    curve: Curve
    counts: Counts  # the learner's state after the last episode
    seconds: float
    interrupted: bool  # Ctrl-C was heard: `episodes` is what was played
    mean_return: float | None = None  # mean observed return, where episodes were played in a live environment
    units: Units = Units()  # noqa: RUF009  (frozen) what values are in the user's own units
    # The smallest, over k, of the sum of V^{pi_j} - floor over j <= k. Where warm counts brought an account along, its
    # episodes count as what was proved of them.
    min_cumulative: float | None = None
    told: bool = False  # was the learner told what the baseline is worth?
    in_sum: bool = False  # does it keep the sum of all episodes above the floor, and not each?
    budget: float | None = None  # of a learner that keeps costs, not returns: then violations are of this budget
    baseline_cost: float | None = None
    max_cost: float | None = None  # the largest exact cost of a policy played
    trace: Trace | None = None  # where checkpoints were asked for
    alarm: Alarm | None = None  # why a watchdog gave alarm: the baseline alone was played from then on

    @property
    def off_baseline(self) -> int | None:
        """The first episode that was not the baseline alone."""
        firsts = [k for k in (self.first_mixture, self.first_optimistic) if k is not None]
        return min(firsts) if firsts else None

    @property
    def mean_value(self) -> float:
        """Mean exact value per episode; without a true model, the mean observed return."""
        return float(np.average(self.curve.mean, weights=self.curve.episodes)) if self.episodes else math.nan

    def __repr__(self) -> str:
        floor = None if self.floor is None else f"{self.units.to_user(self.floor):g}"
        if self.budget is not None:
            floor = f"the budget of {self.budget:g}"
        violations = (
            "no floor"
            if floor is None
            else f"{'unknown' if self.violations is None else self.violations} violations of {floor}"
        )
        regret = "unknown" if self.regret is None else f"{self.units.scale * self.regret:.6g}"
        told = ", told what the baseline is worth" * self.told
        alarm = "" if self.alarm is None else f", {self.alarm}"
        numbers = f"{self.episodes} episodes, {violations}, regret={regret}"
        return f"Run({self.agent}{told}, {numbers}, {self.promise}{alarm})"


def trace_of(looks: Sequence[tuple[int, Plan]]) -> Trace:
    """Plans made at checkpoints, after so many episodes each."""
    plans = [plan for _, plan in looks]
    return Trace(
        episode=np.array([k for k, _ in looks], dtype=np.int64),
        lower=np.array([plan.lower for plan in plans], dtype=np.float64),
        upper=np.array([plan.upper for plan in plans], dtype=np.float64),
        rho=np.array([plan.rho for plan in plans], dtype=np.float64),
        h=np.array([plan.h for plan in plans], dtype=np.int64),
        candidates=np.array([plan.candidates for plan in plans], dtype=np.float64).reshape(len(plans), -1),
    )


def run_from(
    tally: "kernels.Tally",
    counts: Counts,
    *,
    agent: str,
    promise: Promise,
    seed: object,
    floor: float | None,
    optimum: float | None,
    baseline: float | None,
    seconds: float,
    interrupted: bool,
    units: Units,
    mean_return: float | None = None,
    costs: CostBudget | None = None,
    baseline_cost: float | None = None,
    told: bool = False,
    in_sum: bool = False,
    trace: Trace | None = None,
    alarm: Alarm | None = None,
) -> Run:
    """Close the account. Without an optimum there was no true model to measure by."""
    bins = math.ceil(tally.done / tally.width)
    start = np.arange(bins, dtype=np.int64) * tally.width
    size = np.minimum(start + tally.width, tally.done) - start
    losses = (math.nan if optimum is None else optimum) * size - tally.bin_sum[:bins]
    counted = (floor is not None or costs is not None) and optimum is not None
    curve = Curve(
        episode=start,
        episodes=size,
        mean=tally.bin_sum[:bins] / size,
        min=tally.bin_min[:bins].copy(),
        below=tally.bin_below[:bins] / size if counted else np.full(bins, np.nan),
        regret=np.cumsum(losses),
        sources=tally.bin_source[:bins].copy(),
        by_h=tally.bin_h[:bins].copy(),
    )
    return Run(
        agent=agent,
        promise=promise,
        episodes=tally.done,
        seed=seed,
        floor=floor,
        optimum=optimum,
        baseline=baseline,
        violations=tally.violations if counted else None,
        regret=None if optimum is None else math.fsum(losses),
        min_value=None if optimum is None else float(tally.smallest[0]),
        first_mixture=tally.first_mixture,
        first_optimistic=tally.first_optimistic,
        sources={source: int(n) for source, n in zip(SOURCES, tally.by_source, strict=True)},
        by_h=tally.by_h.copy(),
        curve=curve,
        counts=counts,
        seconds=seconds,
        interrupted=interrupted,
        mean_return=mean_return,
        units=units,
        min_cumulative=float(tally.surplus[1]) if counted and tally.done else None,
        told=told,
        in_sum=in_sum,
        budget=None if costs is None else costs.budget,
        baseline_cost=baseline_cost,
        max_cost=-float(tally.smallest[1]) if counted and costs is not None else None,
        trace=trace,
        alarm=alarm,
    )
