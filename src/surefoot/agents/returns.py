"""Returns of whole baseline episodes as evidence, and the range they lie in."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.validation import REWARD_UNITS, freeze, require_number
from surefoot.errors import InvalidSetting
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows, aligned


@dataclass(frozen=True)
class Returns:
    """Returns of whole baseline episodes as evidence of its value, with their own share of delta.

    They are i.i.d. in the range that is possible by what the problem says: the portfolio bound
    (kernels/portfolio.py) holds for any number of them at once. A floor in units of return needs a
    lower bound of the baseline's value, one relative to the baseline an upper bound: that one is
    computed, with the whole share.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        meaning = "a share of delta strictly between 0 and 1, such as 0.2"
        share = require_number("share", self.share, meaning)
        if not 0.0 < share < 1.0:
            raise InvalidSetting(f"share is {share:g}, expected {meaning}.")
        freeze(self, share=share)


BY_DEFAULT = Returns()  # this very object: nobody said anything


class ReturnsRange(NamedTuple):
    """The range in which the return of one episode lies, as returns are summed: in whole
    multiples of 2^-20.
    """

    low: int
    width: int  # from the lowest to the highest
    rounding: float  # what rounding down may have taken off a return, rescaled

    @property
    def lowest(self) -> float:
        """The lowest return, rescaled."""
        return self.low / REWARD_UNITS

    @property
    def span(self) -> float:
        """From the lowest to the highest return, rescaled."""
        return self.width / REWARD_UNITS

    @property
    def highest(self) -> float:
        """The highest return, rescaled."""
        return self.lowest + self.span


def _least(problem: Problem, h: int, sign: float, unseen: float, V: Floats) -> Floats:
    """Return the least of sign * reward + V (S, A) over the next states that are possible at
    step h, where rewards are whole multiples of 2^-20, rounded down.
    """
    limits, (S, A) = problem.limits.at(h), (problem.S, problem.A)
    free = limits.sizes == 0
    if problem.paid is None:
        least = np.where(free, V.min(), _least_in_lists(limits, V[limits.state])).reshape(S, A)
        r = np.floor(problem.r_rescaled[h] * REWARD_UNITS)
        return np.asarray(np.where(problem.unknown_at(h), unseen, sign * r) + least)
    paid = problem.paid.at(h)

    def worth(rewards: Floats) -> Floats:
        return np.asarray(sign * np.floor(rewards * REWARD_UNITS))

    allowed = _least_in_lists(limits, worth(aligned(paid, limits)[0]) + V[limits.state])
    stored = _least_in_lists(paid, worth(paid.value) + V[paid.state])
    others = worth(np.array(paid.elsewhere)) + _least_unlisted(paid, V)
    return np.where(free, np.minimum(stored, others), allowed).reshape(S, A)


def _least_in_lists(lists: Rows, numbers: Floats) -> Floats:
    """Return the least of the numbers of each list; infinite for an empty one."""
    least = np.full(len(lists.first) - 1, np.inf)
    some = np.flatnonzero(lists.sizes > 0)
    if some.size:
        least[some] = np.minimum.reduceat(numbers, lists.first[some])
    return least


def _least_unlisted(lists: Rows, V: Floats) -> Floats:
    """Return the least V(s') of each list over the states that it does not hold; infinite if it
    holds all.
    """
    least, left = np.full(len(lists.first) - 1, np.inf), np.arange(len(lists.first) - 1)
    for s in np.argsort(V, kind="stable"):
        _, held = lists.find(left, s)
        least[left[~held]] = V[s]
        left = left[held]
        if not left.size:
            break
    return least


def returns_range(problem: Problem, pi: Floats) -> ReturnsRange:
    """Return the range of an episode's return under pi.

    It is found by going through what is possible: the rewards, the actions that pi plays, the next
    states of the mask. Rewards count as they are summed, in whole multiples of 2^-20, rounded down.
    """
    H, S = problem.H, problem.S
    rounding = H / REWARD_UNITS
    known = problem.r_rows
    if problem.paid is not None:
        known = np.append(problem.paid.value, problem.paid.elsewhere)
    if (
        np.array_equal(np.floor(known * REWARD_UNITS), known * REWARD_UNITS)
        and problem.unknown_rows is None
    ):
        rounding = 0.0
    ends = []
    for sign, unseen in ((1.0, 0.0), (-1.0, -float(REWARD_UNITS))):
        V = np.zeros(S)
        for h in reversed(range(H)):
            Q = _least(problem, h, sign, unseen, V)
            V = np.where(pi[h] > 0.0, Q, np.inf).min(axis=-1)
        first = np.ones(S, dtype=np.bool_) if problem.start is None else problem.start > 0.0
        ends.append(round(sign * float(V[first].min())))
    return ReturnsRange(ends[0], ends[1] - ends[0], rounding)
