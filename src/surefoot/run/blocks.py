"""Whole blocks of episodes at once: i.i.d. episodes of one policy have multinomial counts, step
by step.
"""

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.bets import between
from surefoot.base.validation import REWARD_UNITS
from surefoot.evidence.counts import Counts
from surefoot.model.count_lists import Entries
from surefoot.model.problem import Problem
from surefoot.model.transitions import Table
from surefoot.worlds.tabular_mdp import TabularMDP


def draw_block(
    world: TabularMDP,
    problem: Problem,
    pi: Floats,
    n: int,
    counts: Counts,
    rng: np.random.Generator,
    baseline: bool,
) -> None:
    """Count n episodes of pi: how many are in each state, of those how many take each action, and
    so on.

    That gives the sum of their returns, but not each return.
    """
    if n == 0:
        return
    here = rng.multinomial(n, _normalised(world.start))
    counts.n_start += here
    counts.episodes += n
    earned, gone = 0, list[Entries]()
    for h in range(world.H):
        taken = rng.multinomial(here, _normalised(pi[h]))  # (S, A)
        counts.played[counts.row(h)] += taken
        if world.sparse:
            here, paid, between_sums, went_listed = _draw_listed(
                world, problem, h, taken, counts.row(h), rng
            )
            if counts.counts_next(h):
                gone.append(went_listed)
            earned += int(paid.sum())
            _add_sums(counts, h, paid, between_sums)
            continue
        went = rng.multinomial(taken, _normalised(world.P[h]))  # (S, A, S)
        if not counts.counts_next(h):
            pass
        elif isinstance(counts.transitions, Table):
            counts.n_sas[counts.row(h)] += went
        else:
            s, a, s_next = np.nonzero(went)
            gone.append(
                Entries((counts.row(h) * world.S + s) * world.A + a, s_next, went[s, a, s_next])
            )
        paid = _paid(world, problem, h, went, rng)
        if counts.x_sa is not None:
            _add_sums(counts, h, paid, _between(world, problem, h, went))
        earned += int(paid.sum())
        here = went.sum(axis=(0, 1))
    if gone:
        counts.transitions.add_entries(
            Entries(*(np.concatenate(parts) for parts in zip(*gone, strict=True)))
        )
    if baseline:
        counts.baseline_returns += np.array([n, earned])


def _add_sums(counts: Counts, h: int, paid: Ints, between_sums: Ints) -> None:
    """Add sums of rewards x (S, A) and of x (1 - x), where they are counted."""
    if counts.x_sa is not None and counts.z_sa is not None:
        counts.x_sa[counts.row(h)] += paid
        counts.z_sa[counts.row(h)] += between_sums


def _draw_listed(
    world: TabularMDP, problem: Problem, h: int, taken: Ints, row: int, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints, Entries]:
    """Draw where those who took each pair (S, A) went, over lists of successors.

    Return how many are in each state, the sums of x and of x (1 - x) (S, A) of the rewards x, as
    the agent learns them, and the transitions, to be counted in this row.
    """
    S, A = world.S, world.A
    pair, state, p = world.entries(h)
    first = np.searchsorted(pair, np.arange(S * A))
    went = listed_multinomial(taken.reshape(-1), first, p, rng)
    seen = np.flatnonzero(went)
    times = went[seen]
    s, a, s_next = pair[seen] // A, pair[seen] % A, state[seen]
    mean = world.problem.reward_of(h, s, a, s_next)
    true = np.floor(mean * REWARD_UNITS).astype(np.int64) * times
    true_between = between(np.floor(mean * REWARD_UNITS).astype(np.int64)) * times
    if world.random_rewards:
        true, true_between = rng.binomial(times, mean) * REWARD_UNITS, np.zeros_like(times)
    units = np.floor(problem.reward_of(h, s, a, s_next) * REWARD_UNITS).astype(np.int64)
    unknown = problem.reward_unknown(h, s, a)
    sums = []
    for hidden, known in ((true, units * times), (true_between, between(units) * times)):
        total = np.zeros(S * A, dtype=np.int64)
        np.add.at(total, pair[seen], np.where(unknown, hidden, known))
        sums.append(total.reshape(S, A))
    here = np.zeros(S, dtype=np.int64)
    np.add.at(here, state[seen], times)
    return here, sums[0], sums[1], Entries(row * S * A + pair[seen], state[seen], times)


def listed_multinomial(n: Ints, first: Ints, p: Floats, rng: np.random.Generator) -> Ints:
    """Return multinomial counts of n[i] trials over the probabilities of each list i, which begins
    at first[i].

    As numpy draws them: entry by entry, each binomial given what is left. Lists that nobody took
    draw nothing.
    """
    went = np.zeros(len(p), dtype=np.int64)
    sizes = np.diff(first, append=len(p))
    left, rest = n.copy(), np.ones(len(n))
    whole = np.add.reduceat(p, first)
    active = np.flatnonzero(left > 0)
    for j in range(int(sizes.max())):
        last = active[sizes[active] == j + 1]
        went[first[last] + j] = left[last]
        active = active[(sizes[active] > j + 1) & (left[active] > 0)]
        if not active.size:
            break
        place = first[active] + j
        share = p[place] / whole[active]
        drawn = rng.binomial(left[active], np.clip(share / rest[active], 0.0, 1.0))
        went[place] = drawn
        left[active] -= drawn
        rest[active] = np.maximum(rest[active] - share, 0.0)
    return went


def _normalised(p: Floats) -> Floats:
    """Return rows that sum to 1 as closely as numpy's multinomial requires."""
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def _paid(
    world: TabularMDP, problem: Problem, h: int, went: Ints, rng: np.random.Generator
) -> Ints:
    """Return sums of rewards (S, A) as the agent learns them, in units of 2^-20, of these
    transitions (S, A, S).
    """
    mean = world.problem.r_next_at(h)
    if world.random_rewards:
        true = rng.binomial(went, mean).sum(axis=-1) * REWARD_UNITS
    else:
        true = (went * np.floor(mean * REWARD_UNITS).astype(np.int64)).sum(axis=-1)
    known = (went * np.floor(problem.r_next_at(h) * REWARD_UNITS).astype(np.int64)).sum(axis=-1)
    return np.asarray(np.where(problem.unknown_at(h), true, known))


def _between(world: TabularMDP, problem: Problem, h: int, went: Ints) -> Ints:
    """Return sums of x (1 - x) (S, A) of the same rewards x, in units of 2^-20: 0 of random
    ones, which are 0 or 1.
    """
    true, known = (
        between(np.floor(r.r_next_at(h) * REWARD_UNITS).astype(np.int64))
        for r in (world.problem, problem)
    )
    true = np.zeros_like(true) if world.random_rewards else true
    return np.asarray((went * np.where(problem.unknown_at(h)[..., None], true, known)).sum(axis=-1))
