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
        here, paid, between_sums, went = _draw_step(world, problem, h, taken, counts.row(h), rng)
        if counts.counts_next(h):
            gone.append(went)
        _add_sums(counts, h, paid, between_sums)
        earned += int(paid.sum())
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


def _draw_step(
    world: TabularMDP, problem: Problem, h: int, taken: Ints, row: int, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints, Entries]:
    """Draw where those who took each pair (S, A) went.

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
    at first[i]: of all lists of one size at once. Lists that nobody took draw nothing.
    """
    went = np.zeros(len(p), dtype=np.int64)
    sizes = np.diff(first, append=len(p))
    taken = n > 0
    for size in np.unique(sizes[taken]).tolist():
        lists = np.flatnonzero(taken & (sizes == size))
        places = first[lists, None] + np.arange(size)
        went[places] = rng.multinomial(n[lists], _normalised(p[places]))
    return went


def _normalised(p: Floats) -> Floats:
    """Return rows that sum to 1 as closely as numpy's multinomial requires."""
    return np.asarray(p / p.sum(axis=-1, keepdims=True))
