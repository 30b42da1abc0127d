"""Small problems whose counts are kept in tables, and in lists as those of many states are."""

import numpy as np

import surefoot as sf
from surefoot.model.transitions import Lists

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


def in_lists(counts, problem):
    """The same counts, with their transitions in lists."""
    sums = {name: getattr(counts, name) for name in ("played", "x_sa", "z_sa", "n_start")}
    lists = Lists.of(counts.entries, counts.shape)
    return sf.Counts(lists, counts.H, counts.s1, problem=problem, **sums)
