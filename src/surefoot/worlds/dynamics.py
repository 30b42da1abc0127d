"""How a world's transition probabilities are given: as an array over all next states, or as a
sparse table.
"""

from typing import Any

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.validation import as_floats
from surefoot.errors import InvalidModel
from surefoot.model.listed import aligned, as_lists
from surefoot.model.problem import Problem
from surefoot.model.sparse import SparseTable, is_sparse, require_rows_sum_to_one, sparse_table
from surefoot.model.successors import list_of
from surefoot.model.units import Rescaled

MEANING = "distributions over next states"
AXES = {"r": 2, "r_next": 3}  # of rewards that hold for all steps


def given_sparse(P: object) -> bool:
    """Is P a sparse matrix, a list of them, or a table made of one?"""
    return isinstance(P, SparseTable) or is_sparse(P)


def sparse_dynamics(
    P: Any, rewards: Any, word: str, H: int | None
) -> tuple[SparseTable, int, bool]:
    """Return the sparse table of P, the number of steps, and whether they all share it."""
    stationary = not isinstance(P, list | tuple) or (isinstance(P, SparseTable) and P.rows == 1)
    if isinstance(P, SparseTable):
        assert H is not None
        require_rows_sum_to_one("P", P, MEANING, InvalidModel)
        return P, H, stationary
    if H is None and not stationary:
        H = len(P)
    elif H is None and rewards_by_step(rewards, word):
        H = len(table_of(rewards))
    table, steps = sparse_table("P", P, H)
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


def paid_by_entry(problem: Problem, table: SparseTable) -> Floats | None:
    """Return what each entry of the table pays, (steps, entries), as `aligned` does; None where
    r says it.
    """
    if problem.paid_lists is None:
        return None
    return aligned(problem.paid_lists, table.lists, table.S, table.S * table.A)


def mean_rewards(problem: Problem, table: SparseTable) -> Floats:
    """Return mean rewards (rows, S*A), rescaled."""
    paid = paid_by_entry(problem, table)
    if paid is None:
        return problem.r_rows
    place, lists = list_of(table.lists), len(table.lists.first) - 1
    return np.array(
        [np.bincount(place, table.value * row, minlength=lists) for row in paid]
    ).reshape(-1, table.S * table.A)
