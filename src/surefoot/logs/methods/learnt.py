"""What a method learnt from a log: a policy, its certified value, and how much data is missing."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.nodes import EPISODE, FINE, INTERVALS, NODES, PLACES
from surefoot.base.validation import REWARD_UNITS, FrozenRecord, at_least, at_most, freeze
from surefoot.bounds.alike import compared, require_alike
from surefoot.bounds.binding import Binding
from surefoot.bounds.certificate import Certificate
from surefoot.bounds.frequencies import Frequencies
from surefoot.errors import InvalidCounts, InvalidSetting, printable_lines
from surefoot.evidence.counts import Counts
from surefoot.evidence.fitting import check_counts, require_no_alarm
from surefoot.logs.codebook import Codebook
from surefoot.logs.log_counts import LogCounts
from surefoot.logs.methods.savings import Saving, savings
from surefoot.model.count_lists import Entries
from surefoot.model.problem import Problem
from surefoot.model.transitions import LARGEST_COUNT, Transitions

MOST = 2.0**30  # the search for the episodes needed stops at so many times the data
CLOSE = 1.02  # the precision of that search, as a factor


class Missing(NamedTuple):
    """How much data and which declarations a floor lacks: it takes many passes over the counts,
    so it is asked once.
    """

    floor: float | None  # None: none was given
    episodes: float | None  # that the floor needs
    savings: tuple[Saving, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Learnt(FrozenRecord):
    """A policy learnt from a log.

    On an event of probability at least 1 - delta its value is at least `lower`, whatever the data
    are. Floors and values are in the units of the rewards. This is *certified*, under the premises
    of the problem and of the log (`docs/logs.md`). With a bonus or radius scaled by hand nothing is
    certified, and `certified` is False.
    """

    method: str
    policy: Floats  # (H, S, A)
    rescaled_lower: float  # the certified value, rescaled to 0..H
    delta: float
    certified: bool  # is the bound proved?
    problem: Problem
    counts: Counts  # what it was learnt from
    episodes: int  # how many the log has
    binding: tuple[Binding, ...]  # the pairs that keep the lower value low, the worst first
    # the rescaled lower value from other counts
    recompute_lower: Callable[[Counts], float] = field(repr=False)
    # and from another problem
    lower_with: Callable[[Counts, Problem], float] = field(repr=False)

    def __post_init__(self) -> None:
        freeze(self, policy=np.array(self.policy))

    @property
    def certificate(self) -> Certificate:
        """What is proved about the policy, and at which delta: for the agent that takes it as
        its baseline.
        """
        if not self.certified:
            raise InvalidSetting(
                "The bonus was scaled by hand: nothing is certified, and there is no certificate."
            )
        return Certificate.of(self.policy, self.problem, self.rescaled_lower, self.delta)

    @property
    def lower(self) -> float:
        """The certified lower value."""
        return self.problem.units.to_user(self.rescaled_lower)

    @property
    def estimate(self) -> float:
        """The value of the policy in the world that the counts suggest. It is not certified.

        Where nothing was seen, the worst is assumed.
        """
        problem = self.problem
        V, seen = np.zeros(problem.S), Frequencies.of(self.counts.transitions)
        for h in reversed(range(problem.H)):
            there = seen[self.counts.row(h)]
            ahead = np.where(there.n_sa > 0, there.ahead(V), V.min())
            Q = there.rewards(problem, self.counts, h, by_next=0.0) + ahead
            V = (self.policy[h] * Q).sum(axis=-1)
        first = self.counts.n_start / max(1, int(self.counts.n_start.sum()))
        return problem.units.to_user(float((first if problem.start is None else problem.start) @ V))

    def clears(self, floor: float) -> bool:
        """Return whether the policy is certified to be worth the floor."""
        return self.certified and self.rescaled_lower >= self.problem.level(floor)

    def episodes_needed(self, floor: float) -> float:
        """Estimate how many episodes like these would certify this floor: the same frequencies,
        seen more often.

        The answer is infinite if no number would. It is an estimate from what was seen, not a
        promise.
        """
        level = self.problem.level(floor)
        n, low, high = float(self.episodes), 1.0, 1.0
        if self.rescaled_lower >= level:
            return n
        most = min(MOST, LARGEST_COUNT / max(1, int(self.counts.entries.n.max(initial=0))) / 2)
        while self.recompute_lower(times(self.counts, high, self.problem.unseen_state)) < level:
            low, high = high, 2.0 * high
            if high > most:
                return math.inf
        while high > CLOSE * low:
            middle = math.sqrt(low * high)
            too_few = (
                self.recompute_lower(times(self.counts, middle, self.problem.unseen_state)) < level
            )
            low, high = (middle, high) if too_few else (low, middle)
        return math.ceil(n * high)

    def corollary(self, floor: float) -> "Corollary":
        """Return how many episodes the paper's Corollary asks for, if the logged policy is worth
        its mean return.

        Its numbers are for a delta of twice `delta`: half of it for the certificate of this log,
        the other half for the agent that begins with this policy.
        """
        return corollary(
            self.problem,
            self.delta,
            logged_value(self.problem, self.counts) - self.problem.level(floor),
        )

    def explain(
        self, floor: float | None = None, codebook: Codebook | LogCounts | None = None
    ) -> str:
        """Say what is certified, and, with a floor, whether it is cleared and how much data is
        missing.

        States and actions have the names of the problem, or the labels of a codebook. With the log
        itself in its place, it is also said what each thing that you did not declare costs, and how
        to declare it.
        """
        if isinstance(codebook, LogCounts):
            return self.told(self.missing(floor, codebook), codebook.codebook)
        return self.told(self.missing(floor), codebook)

    def missing(self, floor: float | None = None, log: LogCounts | None = None) -> Missing:
        """Return how many episodes the floor needs, and what each thing costs that this log does
        not declare.
        """
        needed = None if floor is None else self.episodes_needed(float(floor))
        undeclared = self.savings(log) if log is not None and self.certified else ()
        return Missing(None if floor is None else float(floor), needed, undeclared)

    def told(self, missing: Missing, book: Codebook | None = None) -> str:
        """Say what `explain` says, of what is known to be missing."""
        user = self.problem.units.to_user
        unit = f" {self.problem.units.name}".rstrip()
        worth, sure = f"{at_least(self.lower)}{unit}", at_least(1.0 - self.delta)
        learnt = f"{self.method} from {self.episodes:,} episodes"
        lines = [
            f"{learnt}: certified to be worth at least {worth} per episode with probability {sure}"
            + (
                " (which proves nothing: no return is lower)."
                if self.rescaled_lower == 0.0
                else "."
            )
            if self.certified
            else f"{learnt}: NOT CERTIFIED, because the bonus was scaled by hand. Its number is "
            f"{worth}."
        ]
        logged = logged_value(self.problem, self.counts)
        estimates = (
            "Estimates, not certified: this policy is worth about "
            f"{self.estimate:.6g}{unit} per episode"
        )
        if not math.isnan(logged):
            estimates += f", the logged policy {user(logged):.6g}{unit}"
        lines.append(f"{estimates}.")
        if missing.floor is not None and missing.episodes is not None:
            lines += self._against(missing.floor, missing.episodes)
        if self.binding:
            names = self.problem.names if book is None else book.names
            pairs = [
                f"{names.pair(pair.state, pair.action)}"
                f"{'' if pair.step_name is None else f', {pair.step_name}'}: {pair.visited}"
                for pair in self.binding
            ]
            lines.append(
                f"These pairs keep the certificate low, the worst first: {'; '.join(pairs)}."
            )
        if self.problem.stationary and self.problem.H > 1 and not self.counts.pooled:
            lines.append(
                "Counted step by step. The problem is stationary: counts.pool() counts all steps "
                "together."
            )
        elif self.counts.shared:
            lines.append(f"All steps share counts: declared by you{compared(self.counts)}.")
        if missing.savings:
            lines.append(
                "You did not declare these, so they are unknown. Declare what you know to be true, "
                "not what helps:"
            )
            lines += [saving.text(self.lower, unit) for saving in missing.savings]
        return printable_lines("\n".join(lines))

    def savings(self, log: LogCounts) -> tuple[Saving, ...]:
        """Return what each thing that was not declared costs: what would be certified of this
        policy if it were.

        Declare what is true, not what helps: a false declaration makes the certificate false.
        """
        user = self.problem.units.to_user
        found = savings(self.problem, self.counts, log, self.lower_with, self.rescaled_lower)
        return tuple(
            each if each.lower is None else each._replace(lower=user(each.lower)) for each in found
        )

    def _against(self, floor: float, needed: float) -> list[str]:
        shown, level = self.problem.units.at_least(floor), self.problem.level(floor)
        if not self.certified:
            return [
                f"The floor of {shown} is NOT certified: with a bonus scaled by hand nothing is."
            ]
        if self.rescaled_lower >= level:
            return [
                f"The floor of {shown} is CLEARED: this policy is certified to be at or above it."
            ]
        missing = f"About {needed:,.0f} episodes like these would be enough (an estimate)"
        if needed == math.inf:
            missing = (
                "No number of episodes like these would be enough: too many pairs that the policy "
                "needs were never tried, or it is not worth the floor"
            )
        return [
            f"The floor of {shown} is NOT cleared: it is not proved that this policy is above it. "
            f"{missing}."
        ]

    def __repr__(self) -> str:
        word = "certified" if self.certified else "NOT CERTIFIED"
        lower, delta = at_least(self.lower), at_most(self.delta)
        return f"Learnt({self.method}, lower={lower} ({word} at delta={delta}), {self.problem})"


def logged_value(problem: Problem, counts: Counts) -> float:
    """Return the rescaled mean return (0..H) of the logged episodes: an estimate of the logged
    policy's value.

    It is NaN if counts are pooled over steps at which rewards differ: they do not say what was paid
    when. So it is if rewards depend on the next state: that of the last step is not in pooled
    counts.
    """
    rows, paid = counts.shape[0], problem.paid
    known = (problem.r_rows, problem.unknown_rows)
    by_step = any(some is not None and len(some) > 1 for some in known)
    by_step |= paid is not None and paid.rows > 1
    if counts.shared and (by_step or problem.pays_by_next):
        return math.nan
    total = 0.0
    for row, there in enumerate(Frequencies.of(counts.transitions)):
        n = max(1, int(counts.played[row].sum()))
        at = range(problem.H) if rows == 1 else (row,)
        total += sum(float(there.paid(problem, counts, h).sum()) for h in at) / n
    return total


def logged_lower(problem: Problem, counts: Counts, delta: float) -> float:
    """Return a certified lower bound of the LOGGED policy's value, from the returns of its
    episodes, rescaled to 0..H.

    Returns lie between 0 and H, and are i.i.d. if a single policy wrote the whole log. Counts by
    step are needed.
    """
    n = float(counts.n_start.sum())
    share = max(0.0, logged_value(problem, counts) - 1e-9) / problem.H
    return max(0.0, problem.H * (coin_lower(n, n * share, math.log(1.0 / delta)) - 1e-9))


def coin_lower(n: float, x: float, log_inverse: float) -> float:
    """Return a lower bound, for all n at once, of the mean of n observations in [0, 1] with sum
    x: the KL ball of a coin.

    Its likelihood ratio with fractional counts is convex in x, so the mixture is a
    supermartingale, whatever the observations are.
    """
    if n == 0:
        return 0.0
    heads = min(max(x, 0.0), n)
    p_hat = np.zeros(2)
    outcomes = np.array([n - heads, heads])
    eps = kernels.mixture_radius(outcomes, 2, n, True, log_inverse, p_hat)
    return float(kernels.worst_mean(p_hat, np.array([0.0, 1.0]), 2, 1.0, eps, 0.0))


def returns_lower(problem: Problem, returns: Floats, delta: float) -> float:
    """Return the same from what each episode was paid, in the user's units: by the portfolio bound.

    It adapts to how much returns vary; `logged_lower` knows their mean alone, and takes them for
    coins.
    """
    span = problem.H * REWARD_UNITS
    level = span * (returns - problem.lowest) / (problem.highest - problem.lowest)
    if not ((level > -1.0) & (level < span + 1.0)).all():
        raise InvalidCounts(
            f"The returns of this log lie in {returns.min():g}..{returns.max():g}, expected "
            f"{problem.lowest:g}..{problem.highest:g}: they are not those of the episodes that "
            "were counted."
        )
    earned = np.clip(np.floor(level + 1e-6), 0, span).astype(np.int64)
    mean = kernels.mean_lower(
        kernels.portfolio_from(), spread_all(earned, span), 1, math.log(1.0 / delta)
    )
    return max(0.0, problem.H * (mean - 1e-9))


def spread_all(x: Ints, span: int) -> Ints:
    """Return how returns in 0..span are spread over the nodes: `spread` of each, all at once."""
    nodes = np.array(NODES)
    place = x * FINE // span
    k = np.minimum(np.searchsorted(nodes, place, side="right") - 1, INTERVALS - 1)
    above = (place - nodes[k]) * EPISODE // (nodes[k + 1] - nodes[k])
    weights = np.zeros(PLACES, dtype=np.int64)
    np.add.at(weights, k, EPISODE - above)
    np.add.at(weights, k + 1, above)
    return weights


class Corollary(NamedTuple):
    """How many trajectories the paper's Corollary (coro:off) asks for; infinite where kappa is
    not positive.
    """

    printed: float  # with the constant of the paper, 16
    sound: float  # with 32, which its proof needs


def corollary(problem: Problem, delta: float, kappa: float, c: float = 1.0) -> Corollary:
    """n >= 16 c^2 iota'^2 H^5 S A / kappa^2, iota' = log(2HSA/delta), kappa = V^mu - floor; and the
    same with 32.

    The paper's delta is that of log and agent together, half of it for each: log(2HSA/delta) =
    log(HSA/(delta/2)). Here `delta` is the log's half. The proof uses the event 1/max(1, n_h) <= H
    iota'/(n d_h). It is proved with 2 H iota' on its right side only, and so 32 takes the place of
    16.
    """
    if not kappa > 0.0:
        return Corollary(math.inf, math.inf)
    H, S, A = problem.H, problem.S, problem.A
    iota = math.log(H * S * A / delta)
    printed, sound = (
        float(math.ceil(k * c**2 * iota**2 * H**5 * S * A / kappa**2)) for k in (16.0, 32.0)
    )
    return Corollary(printed, sound)


def times(counts: Counts, factor: float, unseen: int | None = None) -> Counts:
    """Return counts with the same frequencies, each seen `factor` times as often. What is new at
    first is new once.
    """

    def more(n: Ints, at_unseen: Bools | bool = False) -> Ints:
        return np.asarray(np.where(at_unseen, n, np.rint(n * factor)), dtype=np.int64)

    place, state, n = counts.entries
    unseen_state = -1 if unseen is None else unseen
    seen, n_start = Transitions.none_yet(counts.shape), counts.n_start
    seen.add_entries(Entries(place, state, more(n, state == unseen_state)))
    n_sa = seen.n_sa
    played = np.maximum(more(counts.played), n_sa) if counts.shared else n_sa
    x_sa = z_sa = None
    if counts.x_sa is not None and counts.z_sa is not None:
        x_sa = np.minimum(more(counts.x_sa), played * REWARD_UNITS)
        # of x (1 - x), which rounding may pass
        most = x_sa * (1.0 - x_sa / np.maximum(played, 1) / REWARD_UNITS)
        z_sa = np.floor(np.minimum(counts.z_sa * factor, most)).astype(np.int64)
    more_often = Counts(
        seen,
        counts.H,
        counts.s1,
        played=played,
        x_sa=x_sa,
        z_sa=z_sa,
        n_start=more(n_start, np.arange(len(n_start)) == unseen_state),
        logged=True,
    )
    more_often.origin, more_often.pooled = counts.origin, counts.pooled
    return more_often


def require_log(counts: Counts, problem: Problem) -> None:
    """Check that these counts belong to the problem."""
    if not isinstance(counts, Counts):
        raise InvalidCounts(
            f"counts is a {type(counts).__name__}, expected Counts, such as log.counts."
        )
    check_counts(counts, problem, counts.pooled)
    require_no_alarm(counts)
    if counts.shared:
        require_alike(counts.steps, problem)
    if not counts.claimed:
        raise InvalidCounts(
            "These counts do not say what they are evidence about, so nothing is certified by "
            "them. If they are of this problem, say so: counts.claimed_for(problem), or "
            "Counts(n_sas, ..., problem=problem)."
        )
