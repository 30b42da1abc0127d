"""How a world's transition probabilities are given: as an array over all next states, or sparse."""

from typing import Any

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.validation import as_floats
from surefoot.errors import InvalidModel
from surefoot.model.given_rows import as_lists, is_sparse, require_rows_sum_to_one, sparse_rows
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows, aligned
from surefoot.model.units import Rescaled

MEANING = "distributions over next states"
AXES = {"r": 2, "r_next": 3}  # of rewards that hold for all steps


def given_sparse(P: object) -> bool:
    """Is P a sparse matrix, a list of them, or lists of next states already?"""
    return isinstance(P, Rows) or is_sparse(P)


def sparse_dynamics(P: Any, rewards: Any, word: str, H: int | None) -> tuple[Rows, int, bool]:
    """Return the lists of P, the number of steps, and whether they all share them."""
    if isinstance(P, Rows):
        assert H is not None
        require_rows_sum_to_one("P", P, MEANING, InvalidModel)
        return P, H, P.rows == 1
    stationary = not isinstance(P, list | tuple)
    if H is None and not stationary:
        H = len(P)
    elif H is None and rewards_by_step(rewards, word):
        H = len(table_of(rewards))
    table, steps = sparse_rows("P", P, H)
    if rewards_by_step(rewards, word):
        require_steps(word, len(table_of(rewards)), steps)
    require_rows_sum_to_one("P", table, MEANING, InvalidModel)
    return table, steps, stationary


def table_of(rewards: Any) -> Any:
    """Return the rewards as they were given, without what says that they are rescaled."""
    return rewards.table if isinstance(rewards, Rescaled) else rewards


def rewards_by_step(rewards: Any, word: str) -> bool:
    """Are there rewards for each step?"""
    table = table_of(rewards)
    if as_lists(rewards):
        return isinstance(table, list | tuple)
    return as_floats(word, table, InvalidModel).ndim == AXES[word] + 1


def require_steps(word: str, found: int, steps: int) -> None:
    """Refuse rewards for another number of steps."""
    if found != steps:
        raise InvalidModel(f"{word} has {found} steps, but P has {steps}. Make them agree.")


def mean_rewards(problem: Problem, transitions: Rows) -> Floats:
    """Return mean rewards (rows, S*A), rescaled."""
    if problem.paid is None:
        return problem.r_rows
    place, lists = transitions.places, len(transitions.first) - 1
    paid = aligned(problem.paid, transitions)
    means = [np.bincount(place, transitions.value * row, minlength=lists) for row in paid]
    return np.array(means, dtype=np.float64).reshape(-1, transitions.pairs)
