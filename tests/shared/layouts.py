"""Small problems, and their counts in lists that are laid out in other ways."""

import numpy as np

import surefoot as sf
from surefoot.model.count_lists import CountLists
from surefoot.model.transitions import Transitions

S, A, H = 8, 2, 4


def small_world(word, seed=4):
    """Three successors of each pair; rewards by pair or by next state, a mask or none, steps
    alike or not, one start or several.
    """
    rng = np.random.default_rng(seed)
    P = np.zeros((H if "by step" in word else 1, S, A, S))
    for place in np.ndindex(P.shape[:3]):
        P[place][rng.choice(S, 3, replace=False)] = rng.dirichlet(np.ones(3))
    rewards = {"r_next": rng.random((S, A, S))} if "next" in word else {"r": rng.random((S, A))}
    start = rng.dirichlet(np.ones(S)) if "starts" in word else None
    world = sf.TabularMDP(P if "by step" in word else P[0], H=H, start=start, **rewards)
    return world.with_support() if "mask" in word else world


def problem_of(word, world):
    """What an agent knows of it."""
    return world.problem.forget(rewards="unknown" in word, start="nostart" in word)


def compact(counts):
    """The same counts, one list behind the other: none is full, and none has room."""
    place, state, n = counts.entries
    rows, S, A = counts.shape
    size = np.bincount(place, minlength=rows * S * A)
    return _with_lists(counts, np.cumsum(size) - size, size, state, n)


def full(counts):
    """The same counts, where each pair that was visited has a full list."""
    S = counts.shape[1]
    table = counts.n_sas.reshape(-1, S)
    seen = table.any(axis=1)
    at = S * (np.cumsum(seen) - seen)
    state = np.tile(np.arange(S), np.count_nonzero(seen))
    return _with_lists(counts, at, S * seen, state, table[seen].reshape(-1))


def _with_lists(counts, at, size, state, n):
    rows, S, A = counts.shape
    at, size = at.reshape(rows, S * A), size.reshape(rows, S * A)
    visits, sizes = counts.n_sa.reshape(rows, S * A), np.array([len(state), size.max()])
    found = counts.copy()
    found.transitions = Transitions(
        CountLists(at, size, size.copy(), visits, state.copy(), n.copy(), sizes, S), A
    )
    return found
