"""Whole blocks of episodes at once: i.i.d. episodes of one policy have multinomial counts, step
by step.
"""

import numpy as np

from surefoot import kernels
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
        row = counts.row(h)
        counts.played[row] += taken
        pairs, seen = _draw_next(world, h, taken, rng)
        paid, between_sums = _learnt(world, problem, h, taken, seen, rng)
        if counts.x_sa is not None and counts.z_sa is not None:
            counts.x_sa[row] += paid
            counts.z_sa[row] += between_sums
        earned += int(paid.sum())
        if counts.counts_next(h):
            gone.append(seen._replace(place=row * pairs + seen.place))
        here = np.zeros(world.S, dtype=np.int64)
        np.add.at(here, seen.state, seen.n)
    if gone:
        _count(counts, Entries(*(np.concatenate(parts) for parts in zip(*gone, strict=True))))
    if baseline:
        counts.baseline_returns += np.array([n, earned])


def _draw_next(
    world: TabularMDP, h: int, taken: Ints, rng: np.random.Generator
) -> tuple[int, Entries]:
    """Draw where those who took each pair (S, A) went. Return the number of pairs, and how many
    went from which pair to which state.
    """
    rows = world.transitions.at(h)
    went = listed_multinomial(taken.reshape(-1), rows.first, rows.value, rng)
    seen = np.flatnonzero(went)
    pair = np.searchsorted(rows.first, seen, side="right") - 1
    return taken.size, Entries(pair, rows.state[seen], went[seen])


def _learnt(
    world: TabularMDP,
    problem: Problem,
    h: int,
    taken: Ints,
    seen: Entries,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Return sums of rewards x and of x (1 - x) of each pair (S, A) as the agent learns them, in
    units of 2^-20: as its problem says, or where that says nothing as they were paid. Of random
    rewards, which are 0 or 1, the second are 0.
    """
    known = _sums(problem, h, taken, seen)
    if world.random_rewards:
        heads = _heads(world, h, taken, seen, rng) * REWARD_UNITS
        paid = heads, np.zeros_like(heads)
    else:
        paid = known if problem.unknown_rows is None else _sums(world.problem, h, taken, seen)
    if problem.unknown_rows is None:
        return known
    unknown = problem.unknown_at(h)
    return np.where(unknown, paid[0], known[0]), np.where(unknown, paid[1], known[1])


def _sums(problem: Problem, h: int, taken: Ints, seen: Entries) -> tuple[Ints, Ints]:
    """Return sums of rewards x and of x (1 - x) of each pair, as this problem has them."""
    if not problem.pays_by_next:
        x = np.floor(problem.r_rescaled[h] * REWARD_UNITS).astype(np.int64)
        return taken * x, taken * between(x)
    x = np.floor(_reward_of(problem, h, seen) * REWARD_UNITS).astype(np.int64)
    return _by_pair(seen.place, x * seen.n, taken), _by_pair(seen.place, between(x) * seen.n, taken)


def _heads(world: TabularMDP, h: int, taken: Ints, seen: Entries, rng: np.random.Generator) -> Ints:
    """Draw how many rewards of each pair are 1."""
    if not world.problem.pays_by_next:
        return np.asarray(rng.binomial(taken, world.r_rescaled[h]))
    mean = _reward_of(world.problem, h, seen)
    return _by_pair(seen.place, rng.binomial(seen.n, mean), taken)


def _reward_of(problem: Problem, h: int, seen: Entries) -> Floats:
    """Return what each of these transitions pays."""
    s, a = np.divmod(seen.place, problem.A)
    return problem.reward_of(h, s, a, seen.state)


def _by_pair(pair: Ints, numbers: Ints, like: Ints) -> Ints:
    """Return the sums of these numbers over the transitions of each pair."""
    total = np.zeros(like.size, dtype=np.int64)
    np.add.at(total, pair, numbers)
    return total.reshape(like.shape)


def _count(counts: Counts, more: Entries) -> None:
    """Count these transitions, in place."""
    done = 0
    while True:
        done = kernels.count_entries(counts.transitions.lists, *more, done)
        if done == len(more.n):
            return
        counts.transitions.make_room(1)


def listed_multinomial(n: Ints, first: Ints, p: Floats, rng: np.random.Generator) -> Ints:
    """Return multinomial counts of n[i] trials over the probabilities of list i, first[i] to
    first[i + 1]: of all lists of one size at once. Lists that nobody took draw nothing.
    """
    went = np.zeros(len(p), dtype=np.int64)
    sizes, taken = np.diff(first), n > 0
    for size in sorted(set(sizes[taken].tolist())):
        lists = np.flatnonzero(taken & (sizes == size))
        places = first[lists, None] + np.arange(size)
        went[places] = rng.multinomial(n[lists], _normalised(p[places]))
    return went


def _normalised(p: Floats) -> Floats:
    """Return rows that sum to 1 as closely as numpy's multinomial requires."""
    return np.asarray(p / p.sum(axis=-1, keepdims=True))
