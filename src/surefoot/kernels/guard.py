"""A guard's bounds and shares (proved in guard/evidence.py, guard/comparison.py and
guard/ramp.py), and a simulated guard.

Tickets are in dispatch order. A ticket's outcome is a code: the node below its return, and how much
of an episode counts for the node above; OPEN where no return came.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.nodes import EPISODE, LOST, NODES, PLACES
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.kernels.jit import compiled
from surefoot.kernels.portfolio import Portfolio, log_capitals, mean_lower, reaches
from surefoot.kernels.uniforms import Uniforms, uniform

OPEN = -1
STEP = 2 * EPISODE  # a code is the node times this, plus what counts for the node above
LAST = len(NODES) - 1
SPARSER = 16  # of 64 open tickets or more, not every one ends a prefix that is tried
GROWTH = 256  # a plan is in force until the returns of some policy have grown by 1/256, or by one
# of a share: more than the rounding errors of the few operations that lead to it
SAFE = 1.0 - 2.0**-40
HAIR = 1e-9  # far more than the rounding errors of a bound
# shares are whole multiples of 2^-53, as uniform numbers are: a coin has exactly its probability
GRID = 2.0**53


class Tickets(NamedTuple):
    """Whose turn it was, and what came of it, in dispatch order; and what is known of each of P
    policies.
    """

    policy: Ints  # (N,)
    code: Ints  # (N,)
    settled: Ints  # (P, PLACES) returns, spread over nodes
    heard: Ints  # (P,) how many returns these are
    unheard: Ints  # (P,) open tickets
    # (P,) returns that a log lacks: they come before the first ticket, and never will be known
    missing: Ints


@compiled
def add_code(weights: Ints, code: int, sign: int) -> None:
    """Add (sign 1) or remove (-1) an outcome."""
    k, above = code // STEP, code % STEP
    weights[k] += sign * (EPISODE - above)
    weights[k + 1] += sign * above


@compiled
def next_drop(dropped: int, left: int) -> int:
    """How many open tickets are dropped by the next prefix that is tried: finely at both ends."""
    return dropped + max(1, min(dropped, left) // SPARSER)


@compiled
def may_be_better(
    portfolio: Portfolio, weights: Ints, sign: int, log_inverse: float, best: float
) -> bool:
    """Can `mean_lower` of these weights be above `best`? If it is, the answer is yes.

    Asked at `best` itself, less a hair, on the straight lines of `mean_lower`, along which the
    capital falls.
    """
    inverse, first, last = portfolio.inverse, portfolio.scratch[0], portfolio.scratch[1]
    below, above = -1, inverse.shape[0]
    while above - below > 1:
        middle = (below + above) // 2
        if inverse[middle] * best >= 1.0:
            below = middle
        else:
            above = middle
    if below < 0:
        return True
    log_capitals(portfolio, weights, sign, below, first)
    if above == inverse.shape[0]:
        return reaches(portfolio, first, first, 0.0, log_inverse)
    log_capitals(portfolio, weights, sign, above, last)
    t = (1.0 / best - inverse[below]) / (inverse[above] - inverse[below])
    return reaches(portfolio, first, last, max(t - HAIR, 0.0), log_inverse - HAIR)


@compiled
def best_prefix(
    portfolio: Portfolio,
    tickets: Tickets,
    n: int,
    p: int,
    sign: int,
    log_inverse: float,
    proved: float,
    weights: Ints,
    size: Ints,
) -> float:
    """The best bound over prefixes of the tickets of policy p, open ones counted as the worst
    return for this side.

    A lower bound of the mean (sign 1), or of one minus the mean (-1), rescaled. Tried are all n
    tickets and those before an open one, from the end; and `proved` is what earlier prefixes
    proved. Where a prefix is better, `size[0]` becomes how many tickets of p it has.
    """
    worst, best = 0 if sign > 0 else LAST, proved
    mine = tickets.heard[p] + tickets.unheard[p]  # the log's returns among them
    for k in range(PLACES):
        weights[k] = tickets.settled[p, k]
    weights[worst] += (tickets.unheard[p] + tickets.missing[p]) * EPISODE
    left, dropped, wanted, i = tickets.unheard[p], 0, 1, n
    while True:
        if may_be_better(portfolio, weights, sign, log_inverse, best):
            found = mean_lower(portfolio, weights, sign, log_inverse)
            if found > best:
                best = found
                size[0] = mine
        while left > 0:  # drop tickets from the end, up to the next prefix that is tried
            i -= 1
            if tickets.policy[i] != p:
                continue
            mine -= 1
            if tickets.code[i] != OPEN:
                add_code(weights, tickets.code[i], -1)
                continue
            weights[worst] -= EPISODE
            left -= 1
            dropped += 1
            if dropped == wanted or left == 0:
                wanted = next_drop(dropped, left)
                break
        else:
            return best


class Comparison(NamedTuple):
    """How a candidate is compared with the baseline (guard/comparison.py)."""

    ladder: Floats  # (K, 2) the logarithms of the capitals that U_{k+1} and L_k need
    zero: float
    ratio: bool  # is it V_c / V_b that is bounded? Else one plus V_c - V_b


@compiled
def compared(
    portfolio: Portfolio, how: Comparison, b: Ints, c: Ints, best: float, hint: Floats
) -> float:
    """min_k L_k / U_{k+1}, or one plus min_k (L_k - U_{k+1}), rounded down; `best` if that is not
    better.

    One rung that is not better is enough. Tried first is the one of the last time, `hint[0]`: it is
    not better if U is at least `hint[1]`, and L no more than would be enough for that U. Whatever
    they are, only the time depends on them.
    """
    first, least, split = int(hint[0]), math.inf, hint[1]
    enough = best * (how.zero + split) - how.zero if how.ratio else best + split - 1.0
    lower_U = may_be_better(portfolio, b, -1, how.ladder[first, 0], 1.0 - split)
    if not (lower_U or may_be_better(portfolio, c, 1, how.ladder[first, 1], enough)):
        return best
    for step in range(-1, how.ladder.shape[0]):
        k = first if step < 0 else step
        upper = 1.0 - max(mean_lower(portfolio, b, -1, how.ladder[k, 0]) - LOST, 0.0)
        lower = mean_lower(portfolio, c, 1, how.ladder[k, 1])
        found = (
            SAFE * (how.zero + lower) / (how.zero + upper) if how.ratio else SAFE + lower - upper
        )
        if found < least:
            least, hint[0], hint[1] = found, k, upper
        if least <= best:
            if best > 0.0:  # the next time, U may be lower by half of what is missing, and L higher
                enough_U = (how.zero + lower) / best - how.zero if how.ratio else 1.0 + lower - best
                hint[1] = 0.5 * (upper + enough_U)
            return best
    return float(least)


@compiled
def compared_prefix(
    portfolio: Portfolio,
    tickets: Tickets,
    n: int,
    p: int,
    how: Comparison,
    proved: float,
    weights: Ints,
    size: Ints,
    hint: Floats,
) -> float:
    """The best comparison over prefixes of all n tickets, in dispatch order.

    Open tickets of the baseline count as the highest return, those of candidate p as the lowest.
    Tried are all tickets and those before an open one, from the end; `size[0]` becomes how many
    tickets, of all policies, the best one has.
    """
    b, c, best = weights[0], weights[1], proved
    for k in range(PLACES):
        b[k], c[k] = tickets.settled[0, k], tickets.settled[p, k]
    b[LAST] += (tickets.unheard[0] + tickets.missing[0]) * EPISODE
    c[0] += (tickets.unheard[p] + tickets.missing[p]) * EPISODE
    left, dropped, wanted, i = tickets.unheard[0] + tickets.unheard[p], 0, 1, n
    while True:
        found = compared(portfolio, how, b, c, best, hint)
        if found > best:
            best = found
            size[0] = i
        while left > 0:  # drop tickets from the end, up to the next prefix that is tried
            i -= 1
            whose, code = tickets.policy[i], tickets.code[i]
            if whose not in (0, p):
                continue
            if code != OPEN:
                add_code(b if whose == 0 else c, code, -1)
                continue
            if whose == 0:
                b[LAST] -= EPISODE
            else:
                c[0] -= EPISODE
            left -= 1
            dropped += 1
            if dropped == wanted or left == 0:
                wanted = next_drop(dropped, left)
                break
        else:
            return best


class GuardRule(NamedTuple):
    """A floor, and how much is played: values are parts of the range of returns, plus `zero`."""

    relative: bool  # is the floor measured from the baseline?
    floor: float  # an absolute floor
    keep: float  # of a relative floor: it is keep times the baseline's value ...
    amount: float  # ... less this amount
    zero: float  # the user's zero: low / (high - low) for a share of the baseline's value, else 0
    stages: Floats  # (G,) ascending
    demands: Ints  # (G,) how many returns of a candidate a stage needs
    log_inverse: Floats  # (P, 2) of the levels of each policy's lower and upper bound
    ladders: Floats  # (P, K, 2) of each candidate's comparison with the baseline (Comparison)


class GuardScratch(NamedTuple):
    """What a plan is computed in."""

    # (P,) of the mean; for a relative floor, a candidate's comparison with the baseline
    lower: Floats
    upper: Floats  # (P,)
    # (P, 2) the best bounds of earlier plans: lower ones, and of one minus the mean, both from
    # below
    proved: Floats
    sizes: Ints  # (P, 2) how many tickets prove them
    weights: Ints  # (2, PLACES)
    hints: Floats  # (P, 2)


@compiled
def stage_below(rule: GuardRule, share: float, heard: int) -> float:
    """What is played of a certified share: the largest stage at or below it, below the first one
    the share itself.
    """
    stages = rule.stages
    if stages.shape[0] == 0:
        return share
    played, reached = min(share, stages[0]), 0
    while reached < stages.shape[0] and stages[reached] <= share and heard >= rule.demands[reached]:
        played = stages[reached]
        reached += 1
    return float(played)


@compiled
def choose_shares(
    rule: GuardRule, tickets: Tickets, active: Ints, lower: Floats, shares: Floats
) -> None:
    """Write the share of each policy's episodes (guard/ramp.py has the rule); none unless active
    is 1.
    """
    P = active.shape[0]
    base, level = lower[0], rule.floor
    if rule.relative:
        base = 0.0 if rule.amount > 0.0 else 1.0
        level = rule.keep * base - rule.amount
    anchor, most, several = 0, base, 0
    for i in range(P):
        shares[i] = 0.0
        if i > 0 and active[i] == 1:
            several += 1
            full = stage_below(rule, 1.0, tickets.heard[i]) == 1.0
            if full and lower[i] >= level and (anchor == 0 or lower[i] > most):
                anchor, most = i, lower[i]
    prices, rest = 0.0, 1.0
    for i in range(1, P):
        if active[i] == 1 and i != anchor:
            prices += max(most - lower[i], 0.0)
    room = most - level
    cap = 1.0 / max(several, 1)
    share = 0.0
    if room >= 0.0:
        share = cap if prices * cap <= room * SAFE else SAFE * room / prices
    for i in range(1, P):
        if active[i] == 1 and i != anchor:
            mine = cap if room < 0.0 and lower[i] >= level else share
            shares[i] = math.floor(stage_below(rule, mine, tickets.heard[i]) * GRID) / GRID
            rest -= shares[i]
    shares[anchor] = rest


@compiled
def plan_guard(
    portfolio: Portfolio,
    rule: GuardRule,
    tickets: Tickets,
    n: int,
    active: Ints,
    scratch: GuardScratch,
    shares: Floats,
) -> None:
    """Bound every policy from the first n tickets, withdraw (active 2) what is below the floor,
    choose the shares.
    """
    lower, upper, proved, sizes, weights, hints = scratch
    P, ratio = active.shape[0], rule.relative and not rule.amount > 0.0
    for p in range(P):
        compares = rule.relative and p > 0
        if p == 0 or active[p] == 1:
            for side in range(2):
                sign, level, size, known = (
                    1 - 2 * side,
                    rule.log_inverse[p, side],
                    sizes[p, side : side + 1],
                    proved[p],
                )
                if compares and side == 0:
                    how, hint = Comparison(rule.ladders[p], rule.zero, ratio), hints[p]
                    known[0] = compared_prefix(
                        portfolio, tickets, n, p, how, known[0], weights, size, hint
                    )
                else:
                    known[side] = best_prefix(
                        portfolio, tickets, n, p, sign, level, known[side], weights[0], size
                    )
        lower[p] = rule.zero + proved[p, 0]
        if compares:
            lower[p] = (
                max(proved[p, 0], rule.zero / (rule.zero + 1.0)) if ratio else proved[p, 0] - 1.0
            )
        upper[p] = rule.zero + 1.0 - max(proved[p, 1] - LOST, 0.0)
    least = rule.keep * lower[0] - rule.amount if rule.relative else rule.floor
    for p in range(1, P):
        if active[p] == 1 and upper[p] < least:
            active[p] = 2
    choose_shares(rule, tickets, active, lower, shares)


class Laws(NamedTuple):
    """The true distribution of each policy's return, over at most V values."""

    cumulative: Floats  # (P, V)
    code: Ints  # (P, V)
    delay: Ints  # (P, V) after how many more episodes this value is reported
    lost: Floats  # (P, V) the probability that it never is
    value: Floats  # (P,) the mean, in the units of GuardRule
    floor: float  # the true floor, in the same units


class Reports(NamedTuple):
    """Returns on their way: for each episode the last ticket that is reported before it, for
    each ticket another.
    """

    last: Ints  # (N + 1,)
    other: Ints  # (N,)
    drawn: Ints  # (N,) which value was drawn


class GuardLoop(NamedTuple):
    """Where a simulated guard stands."""

    admitted: Ints  # (P,) the episode before which a candidate is admitted
    active: Ints  # (P,) 0: not admitted yet, 1: admitted, 2: withdrawn
    planned: Ints  # (P,) returns heard at the last plan
    shares: Floats  # (P,) of the coin


class GuardAccount(NamedTuple):
    """What is counted of a simulated guard."""

    totals: Ints  # (3,) violations, plans, rows of the trace
    played: Ints  # (P,) episodes of each policy
    adopted: Ints  # (P,) the first episode in which a candidate has all of the coin; -1: none
    # (P, 2) the episode in which it was withdrawn, and its episodes before; -1: it was not
    withdrawn: Ints
    worst: Floats  # (1,) the least value of an episode less the floor
    at: Ints  # (R,) episodes at which shares changed
    trace: Floats  # (R, P) the shares from then on


@compiled
def hear(laws: Laws, tickets: Tickets, reports: Reports, t: int) -> None:
    """Settle every ticket whose return is reported before episode t."""
    i = reports.last[t]
    while i >= 0:
        p = tickets.policy[i]
        tickets.code[i] = laws.code[p, reports.drawn[i]]
        add_code(tickets.settled[p], tickets.code[i], 1)
        tickets.heard[p] += 1
        tickets.unheard[p] -= 1
        i = reports.other[i]


@compiled
def plan_is_due(tickets: Tickets, loop: GuardLoop, t: int) -> bool:
    """Admit who is to be admitted before episode t. Is it time to plan?"""
    due = False
    for p in range(loop.active.shape[0]):
        if p > 0 and loop.active[p] == 0 and loop.admitted[p] <= t:
            loop.active[p], due = 1, True
        planned = loop.planned[p]
        if tickets.heard[p] >= planned + max(1, planned // GROWTH):
            due = True
    return due


@compiled
def note_plan(
    laws: Laws, tickets: Tickets, loop: GuardLoop, account: GuardAccount, t: int
) -> float:
    """Enter a plan into the account, and return its true value."""
    P, row, value = loop.active.shape[0], account.totals[2], 0.0
    changed = row == 0
    for p in range(P):
        loop.planned[p] = tickets.heard[p]
        value += loop.shares[p] * laws.value[p]
        changed = changed or account.trace[row - 1, p] != loop.shares[p]
        if loop.active[p] == 2 and account.withdrawn[p, 0] < 0:
            account.withdrawn[p, 0], account.withdrawn[p, 1] = t, account.played[p]
        if p > 0 and loop.shares[p] == 1.0 and account.adopted[p] < 0:
            account.adopted[p] = t
    account.totals[1] += 1
    account.worst[0] = min(account.worst[0], value - laws.floor)
    if changed and row < account.at.shape[0]:
        account.at[row] = t
        for p in range(P):
            account.trace[row, p] = loop.shares[p]
        account.totals[2] += 1
    return value


@compiled
def toss(shares: Floats, coin: float) -> int:
    """Return whose episode it is: candidates in their order, then the baseline, as Guard.draw
    does.
    """
    for p in range(1, shares.shape[0]):
        if coin < shares[p]:
            return p
        coin -= shares[p]
    return 0


@compiled
def run_guard(
    portfolio: Portfolio,
    rule: GuardRule,
    laws: Laws,
    tickets: Tickets,
    reports: Reports,
    loop: GuardLoop,
    scratch: GuardScratch,
    account: GuardAccount,
    uniforms: Uniforms,
) -> None:
    """Play every episode: hear what is due, admit, plan if it is time, toss the coin, draw the
    return.
    """
    N, value = tickets.policy.shape[0], 0.0
    for t in range(N):
        hear(laws, tickets, reports, t)
        if plan_is_due(tickets, loop, t):
            plan_guard(portfolio, rule, tickets, t, loop.active, scratch, loop.shares)
            value = note_plan(laws, tickets, loop, account, t)
        if value < laws.floor - VIOLATION_TOLERANCE:
            account.totals[0] += 1
        p = toss(loop.shares, uniform(uniforms))
        place, fate, v = uniform(uniforms), uniform(uniforms), 0
        while v < laws.cumulative.shape[1] - 1 and place >= laws.cumulative[p, v]:
            v += 1
        tickets.policy[t], tickets.code[t], reports.drawn[t] = p, OPEN, v
        tickets.unheard[p] += 1
        account.played[p] += 1
        after = t + 1 + laws.delay[p, v]
        if fate >= laws.lost[p, v] and after <= N:
            reports.other[t] = reports.last[after]
            reports.last[after] = t
    hear(laws, tickets, reports, N)


def empty_tickets(n: int, P: int) -> Tickets:
    """Return arrays for n tickets of P policies."""
    heard, unheard, missing = (np.zeros(P, dtype=np.int64) for _ in range(3))
    codes, settled = np.full(n, OPEN, dtype=np.int64), np.zeros((P, PLACES), dtype=np.int64)
    return Tickets(np.zeros(n, dtype=np.int64), codes, settled, heard, unheard, missing)
