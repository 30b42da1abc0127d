"""Run: what happened when an agent played in a world. Exact totals over ALL episodes, and a
thinned curve.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot import kernels
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.plan import SOURCES, Plan, Source
from surefoot.agents.promise import Promise
from surefoot.audit.history import History
from surefoot.audit.premises import Contradiction
from surefoot.audit.watchdog import Alarm
from surefoot.base.arrays import Floats, Ints
from surefoot.base.text import how_many
from surefoot.base.validation import VIOLATION_TOLERANCE, FrozenRecord
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.units import Units
from surefoot.run.setup import Measured, RunSetup


@dataclass(frozen=True, eq=False, repr=False)
class Curve(FrozenRecord):
    """One point per bin of consecutive episodes (at most about 2,000): exact means, minima and
    shares, not samples.
    """

    episode: Ints  # the first episode of each bin
    episodes: Ints  # how many episodes are in it
    mean: Floats  # mean exact value of the policies played
    min: Floats  # smallest of them
    below: Floats  # share of them below the floor; nan without a floor
    regret: Floats  # cumulative regret at the END of the bin
    sources: Ints  # (bins, 3) episodes per exit: baseline, mixture, optimistic
    by_h: Ints  # (bins, H+1) episodes per h

    def __len__(self) -> int:
        return len(self.episode)


@dataclass(frozen=True, eq=False, repr=False)
class Trace(FrozenRecord):
    """What a plan made at each checkpoint would say: what the data of the episodes before it
    prove. (n,) each.
    """

    episode: Ints  # episodes played before
    lower: Floats  # the value proved for the policy that would be played
    upper: Floats  # no policy is worth more
    rho: Floats
    h: Ints
    candidates: Floats  # (n, number of candidates) their lower values, boldest first

    def __len__(self) -> int:
        return len(self.episode)


@dataclass(frozen=True, eq=False, repr=False)
class Run(FrozenRecord):
    """The account of one run. Values are exact expected returns in the true world, in the units of
    its rewards.

    Where no true model is known (`learn` in an environment that does not show one) optimum,
    violations, regret and min_value are None, and the curve shows observed returns.

    Episode numbers start at 0; what never happened is None. `promise` belongs beside every number
    shown: certified, NOT CERTIFIED, or no floor promised.

    `knows_baseline_value`: was the agent given the baseline's value? `min_cumulative` is what the
    sum of all episodes was above the floor at its lowest (with a budget: below the budget), which
    is what agents that keep the sum promise (`in_sum`). Where an agent keeps costs within a
    `budget`, violations are of that, and `max_cost`, `baseline_cost` are expected costs of an
    episode.
    """

    agent: str  # the agent's name
    promise: Promise
    episodes: int
    seed: object
    floor: float | None
    # V*, where the true model is known; with a budget of cost, the best within it
    optimum: float | None
    baseline: float | None  # V^{pi_b}, where the agent has a baseline
    violations: int | None  # episodes with value < floor - 1e-12 (of values rescaled to 0..H)
    regret: float | None  # sum over episodes of optimum - V^{pi_k}
    min_value: float | None  # the smallest exact value of a policy played
    first_mixture: int | None
    first_optimistic: int | None
    sources: dict[Source, int]  # episodes per exit; they sum to `episodes`
    by_h: Ints  # episodes per h = 0..H
    curve: Curve
    counts: Counts  # the agent's state after the last episode
    seconds: float
    interrupted: bool  # stopped by Ctrl-C: `episodes` is what was played
    # mean observed return, where episodes were played in a live environment
    mean_return: float | None = None
    units: Units = Units()  # noqa: RUF009  (frozen) those of the rewards
    # The smallest, over k, of the sum of V^{pi_j} - floor over j <= k. Where warm counts brought an
    # account along, its episodes count as what was proved of them.
    min_cumulative: float | None = None
    knows_baseline_value: bool = False  # was the agent given the baseline's value?
    in_sum: bool = False  # does it keep the sum of all episodes above the floor, and not each?
    # of an agent that keeps costs, not returns: then violations are of this budget
    budget: float | None = None
    baseline_cost: float | None = None
    max_cost: float | None = None  # the largest exact cost of a policy played
    trace: Trace | None = None  # where checkpoints were asked for
    # why an alarm was raised: the baseline alone was played from then on
    alarm: Alarm | Contradiction | None = None
    # where the floor is measured from a value that nobody knows
    relative_floor: BaselineFloor | None = None
    # what was observed, where episodes were played in a live environment
    history: History | None = None

    @property
    def off_baseline(self) -> int | None:
        """The first episode that was not the baseline alone."""
        firsts = [k for k in (self.first_mixture, self.first_optimistic) if k is not None]
        return min(firsts) if firsts else None

    @property
    def promise_in_words(self) -> str:
        """The promise for people. Where the true model is known, so is whether its premise is
        true: it says that.
        """
        return str(self.promise) if self.optimum is None else self.promise.where_premise_is_true()

    @property
    def promise_broken(self) -> bool:
        """Did the run do what it promised not to? False where violations are not known.

        An agent that keeps the sum of all episodes may be below the floor in some of them: of it
        the sum is judged.
        """
        if not self.promise.stands or self.violations is None:
            return False
        if self.in_sum:
            # What rounding adds up to over so many episodes is not a loss.
            return (
                self.min_cumulative is not None
                and self.min_cumulative < -VIOLATION_TOLERANCE * self.episodes
            )
        return self.violations > 0

    @property
    def mean_value(self) -> float:
        """Mean exact value per episode; without a true model, the mean observed return."""
        return (
            float(np.average(self.curve.mean, weights=self.curve.episodes))
            if self.episodes
            else math.nan
        )

    def __repr__(self) -> str:
        floor = None if self.floor is None else self.units.at_least(self.floor)
        if self.budget is not None:
            floor = f"the budget of {self.budget:g}"
        violations = (
            (
                "no floor"
                if self.relative_floor is None
                else f"violations unknown of a floor of {self.relative_floor.text(self.units)}'s "
                "value"
            )
            if floor is None
            else f"{'unknown' if self.violations is None else self.violations} violations of "
            f"{floor}"
        )
        regret = "unknown" if self.regret is None else self.units.amount(self.regret)
        knows = ", knows the baseline's value" if self.knows_baseline_value else ""
        earned = ""
        if self.mean_return is not None and self.optimum is None:
            earned = f"{self.units.amount(float(f'{self.mean_return:.6g}'))} per episode, "
        numbers = (
            f"{self.episodes} episodes, {earned}{violations}, regret={regret}{self._unlike_table}"
        )
        footnote = f" ({self.promise.footnote})" if self.promise.footnote else ""
        return (
            f"Run({self._alarm_first}{self.agent}{knows}, {numbers}, "
            f"{self.promise}{self.so_far}{footnote})"
        )

    @property
    def so_far(self) -> str:
        """What must be said beside a promise of which nothing was used yet; else nothing."""
        played = self.first_mixture is None and self.first_optimistic is None
        return (
            "; so far the baseline alone was played"
            if played and self.promise.kind == "certified"
            else ""
        )

    @property
    def _unlike_table(self) -> str:
        differ = self.counts.unlike_table
        return f", {differ:,} rewards observed were not those of the table" if differ else ""

    @property
    def _alarm_first(self) -> str:
        if self.alarm is None:
            return ""
        follow = self.episodes - self.alarm.episodes
        return f"{self.alarm} {how_many(follow, 'episode')} followed, on the baseline alone. "


def add_episode(tally: "kernels.Tally", measured: Measured, plan: Plan, level: float) -> None:
    """Enter one planned episode. The kernel trusts its numbers, so they are checked here."""
    check_step(plan, len(tally.by_h) - 1)
    kernels.add_episode(
        tally, measured.value, measured.kept, SOURCES.index(plan.source), plan.h, level
    )


def check_step(plan: Plan, H: int) -> None:
    """Refuse a plan whose h does not exist."""
    if plan.h > H:
        raise InvalidSetting(f"The plan says h = {plan.h}, expected a step in 0..{H}.")


def trace_of(plans: Sequence[tuple[int, Plan]]) -> Trace:
    """Return the trace of plans made at checkpoints, each after so many episodes."""
    numbers = [(plan.lower, plan.upper, plan.rho) for _, plan in plans]
    lower, upper, rho = np.array(numbers, dtype=np.float64).reshape(-1, 3).T.copy()
    candidates = np.array([plan.candidates for _, plan in plans], dtype=np.float64)
    return Trace(
        episode=np.array([k for k, _ in plans], dtype=np.int64),
        lower=lower,
        upper=upper,
        rho=rho,
        h=np.array([plan.h for _, plan in plans], dtype=np.int64),
        candidates=candidates.reshape(len(plans), -1),
    )


def run_from(
    setup: RunSetup,
    tally: "kernels.Tally",
    counts: Counts,
    *,
    seed: object,
    seconds: float,
    interrupted: bool,
    mean_return: float | None = None,
    trace: Trace | None = None,
    alarm: Alarm | Contradiction | None = None,
    history: History | None = None,
) -> Run:
    """Close the account, in the user's units. Without an optimum there was no true model to measure
    by.

    `mean_return` is in the user's units, too.
    """
    to_user, scale, own = setup.units.to_user, setup.units.scale, setup.agent.floor
    optimum, costs, bins = setup.optimum, setup.costs, math.ceil(tally.done / tally.width)
    start = np.arange(bins, dtype=np.int64) * tally.width
    size = np.minimum(start + tally.width, tally.done) - start
    losses = (math.nan if optimum is None else optimum) * size - tally.bin_sum[:bins]
    counted = (setup.floor is not None or costs is not None) and optimum is not None
    curve = Curve(
        episode=start,
        episodes=size,
        mean=setup.units.all_to_user(tally.bin_sum[:bins] / size),
        min=setup.units.all_to_user(tally.bin_min[:bins].copy()),
        below=tally.bin_below[:bins] / size if counted else np.full(bins, np.nan),
        regret=scale * np.cumsum(losses),
        sources=tally.bin_source[:bins].copy(),
        by_h=tally.bin_h[:bins].copy(),
    )
    return Run(
        agent=setup.agent.name,
        promise=setup.promise if alarm is None else setup.promise.after_alarm(alarm.label),
        episodes=tally.done,
        seed=seed,
        floor=setup.floor_shown,
        optimum=None if optimum is None else to_user(optimum),
        baseline=None if setup.baseline is None else to_user(setup.baseline),
        violations=tally.violations if counted else None,
        regret=None if optimum is None else scale * math.fsum(losses),
        min_value=None if optimum is None else to_user(float(tally.smallest[0])),
        first_mixture=tally.first_mixture,
        first_optimistic=tally.first_optimistic,
        sources={source: int(n) for source, n in zip(SOURCES, tally.by_source, strict=True)},
        by_h=tally.by_h.copy(),
        curve=curve,
        counts=counts,
        seconds=seconds,
        interrupted=interrupted,
        mean_return=mean_return,
        units=setup.units,
        min_cumulative=(1.0 if costs is not None else scale) * float(tally.surplus[1])
        if counted and tally.done
        else None,
        knows_baseline_value=setup.knows_baseline_value,
        in_sum=setup.agent.in_sum,
        budget=None if costs is None else costs.budget,
        baseline_cost=setup.baseline_cost,
        max_cost=-float(tally.smallest[1]) if counted and costs is not None else None,
        trace=trace,
        alarm=alarm,
        relative_floor=own
        if isinstance(own, BaselineFloor) and setup.floor_shown is None
        else None,
        history=history,
    )
