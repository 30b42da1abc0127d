"""How many more episodes a ramp will take, if returns go on as they are.

The expected path: every policy's returns grow by its share of the coin, spread as they are expected
to be, and the shares follow. It is within a factor of two of the median of what happens, rather
late than early (a bound is the best of all times, and luck on the way brings it forward), and
proves nothing.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Floats, Ints
from surefoot.base.nodes import EPISODE, FINE, NODES, PLACES
from surefoot.guard.comparison import compared_value, is_ratio, ladder, zero_of
from surefoot.guard.evidence import log_inverse, lower_value
from surefoot.guard.ramp import on_grid, share_out, stage_below
from surefoot.guard.settings import Settings
from surefoot.guard.state import OPEN, GuardState, Proved

FARTHEST = 10**9  # episodes
STEP = 0.02  # of the path
POINTS = 9  # values of a candidate that a forecast is made for
X = np.array(NODES) / FINE


class Expected(NamedTuple):
    """A policy as it is expected to go on."""

    place: int  # in the order of admission: 0 is the baseline
    settled: Ints  # (PLACES,) what counts for it
    heard: int
    law: Floats  # (65,) how its returns are spread over the nodes, from now on; adds up to 1
    proved: float = 0.0  # the bound that it has now, as a state remembers it: it never gets worse

    @property
    def mean(self) -> float:
        """The expected return, as a part of the range."""
        return float(self.law @ X)


def law_of(settled: Ints) -> Floats:
    """Return how returns have been spread so far."""
    seen = settled[: len(NODES)]
    return np.asarray(seen / seen.sum())


def expected_of(state: GuardState, p: int, proved: Proved, upper: bool) -> Expected:
    """Return policy p as it goes on: its open tickets stay open, and as many of those to come do as
    of its older half.

    Tickets in flight are among the newer ones. `upper`: it is an upper bound that counts.
    """
    policy, worst = state.policies[p], len(NODES) - 1 if upper else 0
    codes = state.tickets.columns.code[state.tickets.columns.policy == p]
    older = codes[: len(codes) // 2]
    lost = float((older == OPEN).mean()) if len(older) else 0.0
    law = np.zeros(len(NODES))
    law[worst] = 1.0
    if policy.heard:
        law = lost * law + (1.0 - lost) * law_of(policy.settled)
    counted = policy.settled.copy()
    counted[worst] += (policy.unheard + policy.missing) * EPISODE
    return Expected(p, counted, policy.heard, law, proved.value)


def episodes_to_stages(
    guard: Settings, baseline: Expected, candidates: Sequence[Expected], goals: Sequence[float]
) -> list[int | None]:
    """Return after how many more episodes the first candidate's share of the coin reaches each goal
    (ascending).

    None: not within 10^9 episodes.
    """
    everyone = [baseline, *candidates]
    ahead = [0.0] * len(everyone)
    reached: list[int | None] = []
    T = 0
    while len(reached) < len(goals):
        shares = _shares(guard, everyone, ahead)
        while len(reached) < len(goals) and shares[1] >= on_grid(Fraction(goals[len(reached)])):
            reached.append(T)
        if T >= FARTHEST:
            break
        step = max(1, min(int(STEP * T), FARTHEST - T))
        ahead = [n + float(share) * step for n, share in zip(ahead, shares, strict=True)]
        T += step
    return reached + [None] * (len(goals) - len(reached))


def _shares(
    guard: Settings, everyone: Sequence[Expected], ahead: Sequence[float]
) -> tuple[Fraction, ...]:
    rule, tables = guard.rule, kernels.portfolio_from()
    weights = [_weights(policy, n) for policy, n in zip(everyone, ahead, strict=True)]
    bounds = []
    for policy, mine in zip(everyone, weights, strict=True):
        level = guard.delta * guard.share_of_delta(policy.place)
        if not rule.relative:
            found = max(kernels.mean_lower(tables, mine, 1, log_inverse(level)), policy.proved)
            value = Fraction(lower_value(Proved(found), guard.low, guard.high))
        elif policy.place:
            zero, hint = zero_of(rule, guard.low, guard.high), np.zeros(2)
            how = kernels.Comparison(ladder(level), zero, is_ratio(rule))
            found = kernels.compared(tables, how, weights[0], mine, policy.proved, hint)
            value = Fraction(compared_value(Proved(found), rule, guard.low, guard.high))
        else:
            value = rule.base(0.0)
        bounds.append(value)

    def stage(i: int, share: Fraction) -> Fraction:
        return stage_below(guard.ladder, share, everyone[i].heard + int(ahead[i]))

    return share_out(bounds[0], rule.level(bounds[0]), bounds[1:], stage).played


def _weights(policy: Expected, n: float) -> Ints:
    """Return how the returns of a policy are expected to be spread after n more of them."""
    weights = np.zeros(PLACES, dtype=np.int64)
    weights[: len(NODES)] = policy.settled[: len(NODES)] + np.round(
        n * policy.law * EPISODE
    ).astype(np.int64)
    return weights


class RampForecast(NamedTuple):
    """Episodes until a candidate reaches each stage, for several true values of it, in the
    user's units.
    """

    goals: tuple[float, ...]  # shares of the coin
    floor: float  # what the floor is, if the baseline is worth the mean of its returns
    baseline: float  # the mean of its returns
    # the candidate's value, and episodes to each goal
    rows: tuple[tuple[float, tuple[int | None, ...]], ...]


def forecast_ramp(guard: Settings, settled: Ints, evidence: bool, missing: int = 0) -> RampForecast:
    """Forecast the ramp of a candidate whose returns are like these of the baseline, tilted to
    another mean.

    `evidence`: do these returns count? Otherwise they only say how returns are spread. `missing` is
    how many returns are not known: they count as the worst.
    """
    law = law_of(settled)
    span = guard.high - guard.low
    mean = guard.low + span * float(law @ X)
    floor = float(guard.rule.level(Fraction(mean)))
    goals = tuple(share for share, _ in guard.ladder) or (1.0,)
    known = settled if evidence else np.zeros(PLACES, dtype=np.int64)
    heard = int(known.sum()) // EPISODE
    if evidence:
        known = known.copy()
        known[len(NODES) - 1 if guard.rule.relative else 0] += missing * EPISODE
    baseline = Expected(0, known, heard, law)
    top = guard.low + span * float(X[np.flatnonzero(law)[-1]])
    last = min(mean + 2.0 * max(mean - floor, 0.02 * span), floor + 0.98 * (top - floor))
    rows = []
    for i in range(1, POINTS + 1):
        value = floor + (last - floor) * i / POINTS
        candidate = Expected(
            1, np.zeros(PLACES, dtype=np.int64), 0, tilted(law, (value - guard.low) / span)
        )
        rows.append((value, tuple(episodes_to_stages(guard, baseline, [candidate], goals))))
    return RampForecast(goals, floor, mean, tuple(rows))


def tilted(law: Floats, mean: float) -> Floats:
    """Return the distribution p_k exp(t x_k) over the same nodes, with t such that its mean is
    this.
    """
    low, high = -1e4, 1e4
    for _ in range(100):
        t = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            logs = np.log(law) + t * X
        p = np.exp(logs - logs.max())
        p /= p.sum()
        low, high = (t, high) if float(p @ X) < mean else (low, t)
    return np.asarray(p)
