"""When an agent replans. The promise does not depend on it: a policy certified once is certified permanently.

The good event holds for all counts at once and speaks of the world alone, so on it a policy whose lower value reached
the floor when it was planned is above the floor in every later episode, whatever the moment of the next plan depends
on. (The paper's event, too, is about all episodes at once.)
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

import numpy as np

from surefoot.agents.work import STEPS_OF_AN_EPISODE, PlanWork
from surefoot.base.arrays import Ints
from surefoot.base.validation import freeze, require_integer, require_number
from surefoot.errors import InvalidSetting
from surefoot.numerics import kernels
from surefoot.task.counts import Counts
from surefoot.task.problem import Problem
from surefoot.task.transitions import LARGEST_COUNT

MOST_FACTOR = 1000.0  # times any number of visits that can be counted, it is still an integer of 64 bits
MOST_MORE = 10_000.0  # episodes, for each thing that makes a plan longer
LONG_BACKUPS, LONG_STEPS = 300, 19  # for each step of an episode: where a plan takes more of either, it is long
EVERY = "To plan before every episode, say sf.EveryEpisode()."


@dataclass(frozen=True)
class EveryEpisode:
    """Plan before every episode, as the paper does."""

    @property
    def rule(self) -> "kernels.ReplanRule":
        """The rule of blocks of one episode."""
        return kernels.ReplanRule(0.0, math.inf, 1, 0.0)


@dataclass(frozen=True)
class Growth:
    """Plan when the visits of some pair have grown by this factor since the last plan (a first visit counts), or the
    number of the baseline's returns, where these are evidence; but not before `at_least` episodes, and `per_successor`
    more for each next state of a pair that was seen, because a plan takes longer then."""

    factor: float = 1.1
    at_least: int = 1
    per_successor: float = 0.0

    def __post_init__(self) -> None:
        meaning = f"a number above 1, up to {MOST_FACTOR:g}, such as 1.1"
        factor = require_number("factor", self.factor, meaning)
        if not 1.0 < factor <= MOST_FACTOR:
            raise InvalidSetting(f"factor is {factor:g}, expected {meaning}. {EVERY}")
        freeze(self, factor=factor, **_waiting(self.at_least, self.per_successor))

    @property
    def rule(self) -> "kernels.ReplanRule":
        """The rule of growth alone."""
        return kernels.ReplanRule(math.inf, self.factor, self.at_least, self.per_successor)

    @property
    def identity(self) -> str:
        """The rule as a text, for people."""
        return f"Growth(factor={self.factor!r}{_waiting_text(self.at_least, self.per_successor)})"

    def __repr__(self) -> str:
        return self.identity.replace("Growth", type(self).__qualname__)


@dataclass(frozen=True)
class Blocks:
    """Plan after a block of episodes whose length, a share of those so far, is fixed when it begins.

    Only this rule lets a simulation draw a whole block at once with the law of the loop: nothing that happens in a
    block decides when it ends. `at_least` is the smallest number of episodes in a block, where a plan takes so much
    longer than an episode that many early plans would not pay (docs/scaling.md); `per_successor` is how many more for
    each next state of a pair that was seen, and `per_iteration` for each iteration of the linear programs that the plan
    took.
    """

    share: float = 0.01
    at_least: int = 1
    per_successor: float = 0.0
    per_iteration: float = 0.0

    def __post_init__(self) -> None:
        meaning = "a number in (0, 1], such as 0.01"
        share = require_number("share", self.share, meaning)
        if not 0.0 < share <= 1.0:
            raise InvalidSetting(f"share is {share:g}, expected {meaning}. {EVERY}")
        more = _more("per_iteration", self.per_iteration)
        freeze(self, share=share, per_iteration=more, **_waiting(self.at_least, self.per_successor))

    @property
    def rule(self) -> "kernels.ReplanRule":
        """The rule of blocks alone."""
        return kernels.ReplanRule(self.share, math.inf, self.at_least, self.per_successor)

    @property
    def identity(self) -> str:
        """The rule as a text, for people."""
        more = "" if self.per_iteration == 0.0 else f", per_iteration={self.per_iteration!r}"
        return f"Blocks(share={self.share!r}{_waiting_text(self.at_least, self.per_successor)}{more})"

    def __repr__(self) -> str:
        return self.identity.replace("Blocks", type(self).__qualname__)


Replan = EveryEpisode | Growth | Blocks


def _waiting(at_least: object, per_successor: object) -> dict[str, float]:
    """Return the smallest number of episodes of a plan, checked."""
    least = require_integer("at_least", at_least, 1, InvalidSetting)
    if least > LARGEST_COUNT:
        raise InvalidSetting(f"at_least is {least}, expected a number of episodes up to 2^53.")
    return {"at_least": least, "per_successor": _more("per_successor", per_successor)}


def _more(name: str, value: object) -> float:
    """Return how many episodes more a plan is in force, for each thing that makes it longer."""
    meaning = f"a number of episodes from 0 to {MOST_MORE:g}"
    more = require_number(name, value, meaning)
    if not 0.0 <= more <= MOST_MORE:
        raise InvalidSetting(f"{name} is {more:g}, expected {meaning}.")
    return more


def _waiting_text(at_least: int, per_successor: float) -> str:
    """Return the settings that are not as usual, for people."""
    least = "" if at_least == 1 else f", at_least={at_least!r}"
    return least if per_successor == 0.0 else f"{least}, per_successor={per_successor!r}"


def usual(problem: Problem, work: PlanWork, pooled: bool) -> Replan:
    """Return the default rule: a plan is in force for at least as many episodes as take as long as it takes to make,
    and then until the visits of some pair have grown by a tenth; where a plan is long, or solves linear programs, until
    there are a tenth more episodes, which is rarer: at most 24 plans are made while their number grows tenfold.

    Either way some pair that was played since the last plan has a tenth more visits, or its first, or the baseline has
    a tenth more returns: a plan is made when what it rests on has changed. Work is counted, not timed (`PlanWork`). An
    episode counts for what it takes a Learner; whatever the process itself takes comes on top. So about half of the
    time at most is spent planning, and less and less: what must grow by a tenth takes ever longer.
    """
    H, rows = problem.H, 1 if pooled else problem.H
    at_least = math.ceil(work.steps(problem, rows) / (STEPS_OF_AN_EPISODE + H))
    per_successor = min(work.episodes_per_successor(problem, rows), MOST_MORE)
    per_iteration = min(work.episodes_per_iteration(problem), MOST_MORE)
    long = work.made(problem) > LONG_BACKUPS * H or work.once(problem, rows) > LONG_STEPS * H or per_iteration > 0.0
    return Blocks(0.1, at_least, per_successor, per_iteration) if long else Growth(1.1, at_least, per_successor)


def by_iterations(replan: Replan) -> TypeGuard[Blocks]:
    """Does it matter how many iterations the linear programs of a plan took?"""
    return isinstance(replan, Blocks) and replan.per_iteration > 0.0


def episodes_of(replan: Replan, counts: Counts, iterations: int) -> int:
    """Return for how many episodes a plan from these counts, of so many iterations, is in force, at least."""
    more = int(replan.per_iteration * iterations) if by_iterations(replan) else 0
    return more + fewest_episodes(replan, counts.transitions.seen if replan.rule.per_successor > 0.0 else 0)


def fewest_episodes(replan: Replan, seen: float) -> int:
    """Return for how many episodes a plan is in force, at least, where so many next states were seen."""
    return replan.rule.at_least + int(replan.rule.per_successor * seen)


def block_length(replan: Replan, episodes: int, at_least: int) -> int | None:
    """Return how many episodes the plan made now is in force; None where that is not fixed."""
    share = replan.rule.share
    return max(at_least, math.ceil(share * episodes)) if share < math.inf else None


def limits(replan: Replan, played: Ints) -> Ints:
    """Return the visits of each pair that end a plan made now; an array of size 0 where they do not matter."""
    growth = replan.rule.growth
    if growth == math.inf:
        return np.zeros((0, 0), dtype=np.int64)
    return np.asarray(np.maximum(played + 1, np.ceil(growth * played)).astype(np.int64))


class Deadline(NamedTuple):
    """When a plan ends by the rule of replanning. It is fixed when the plan is computed."""

    episodes: int | None  # when so many episodes are counted; None: that is not fixed
    visits: Ints  # else when some pair has been visited so often
    returns: int | None  # or when the baseline has played so many episodes; None: that does not matter
    earliest: int  # but not before so many episodes are counted


def deadline(replan: Replan, counts: Counts, by_returns: bool = False, iterations: int = 0) -> Deadline:
    """Return when a plan from these counts ends. `by_returns`: are the baseline's returns evidence, too?
    `iterations`: of the linear programs that the plan took."""
    counted, at_least = counts.episodes, episodes_of(replan, counts, iterations)
    length = block_length(replan, counted, at_least)
    returns = None
    if by_returns and replan.rule.growth < math.inf:
        n = int(counts.baseline_returns[0])
        returns = max(n + 1, math.ceil(replan.rule.growth * n))
    ends = None if length is None else counted + length
    return Deadline(ends, limits(replan, counts.played), returns, counted + at_least)


def is_due(end: Deadline, now: Counts) -> bool:
    """Is it time to replan?"""
    counted = now.episodes
    if end.episodes is not None:
        return counted >= end.episodes
    if counted < end.earliest:
        return False
    if end.returns is not None and int(now.baseline_returns[0]) >= end.returns:
        return True
    return bool((now.played >= end.visits).any())


def require_replan(replan: object) -> None:
    """Refuse what is not one of the three rules."""
    if not isinstance(replan, EveryEpisode | Growth | Blocks):
        raise InvalidSetting(
            f"replan is {replan!r}, expected sf.EveryEpisode(), sf.Growth(1.1) or sf.Blocks(0.01): when to replan."
        )
