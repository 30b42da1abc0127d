"""How a world's transition probabilities are given: as an array over all next states, or as a sparse table."""

from typing import Any

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.sparse import SparseTable, is_sparse, require_rows_sum_to_one, sparse_table
from surefoot.base.successors import list_of
from surefoot.base.validation import as_floats, per_step, require_distributions
from surefoot.errors import InvalidModel
from surefoot.task.listed import aligned, as_lists
from surefoot.task.problem import Problem
from surefoot.task.units import Rescaled

MEANING = "distributions over next states"


def given_sparse(P: object) -> bool:
    """Is P a sparse matrix, a list of them, or a table made of one?"""
    return isinstance(P, SparseTable) or is_sparse(P)


def dense_dynamics(P: Any, rewards: Any, word: str, H: int | None) -> tuple[Floats, int, bool]:
    """Return P (rows, S, A, S) of a dense array, the number of steps, and whether they all share the dynamics."""
    given_P = as_floats("P", P, InvalidModel)
    if as_lists(rewards):
        raise InvalidModel(f"{word} is sparse, but P is a dense array. Give both as sparse matrices, or none.")
    H = _steps(given_P.shape[0] if given_P.ndim == 4 else H, rewards, word)
    transitions, steps = per_step("P", given_P, ("S", "A", "S"), H)
    _require_steps(rewards, word, steps)
    _, S, _, S_next = transitions.shape
    if S_next != S:
        raise InvalidModel(
            f"P has shape {given_P.shape}: {S} states, but rows over {S_next} next states. They must agree."
        )
    require_distributions("P", given_P, MEANING, InvalidModel)
    return transitions.copy(), steps, given_P.ndim == 3


def sparse_dynamics(P: Any, rewards: Any, word: str, H: int | None) -> tuple[SparseTable, int, bool]:
    """Return the sparse table of P, the number of steps, and whether they all share it."""
    stationary = not isinstance(P, list | tuple) or (isinstance(P, SparseTable) and P.rows == 1)
    if isinstance(P, SparseTable):
        assert H is not None
        require_rows_sum_to_one("P", P, MEANING, InvalidModel)
        return P, H, stationary
    if H is None and not stationary:
        H = len(P)
    elif not as_lists(rewards):
        H = _steps(H, rewards, word)
    elif H is None and isinstance(_table(rewards), list | tuple):
        H = len(_table(rewards))
    table, steps = sparse_table("P", P, H)
    if not as_lists(rewards):
        _require_steps(rewards, word, steps)
    require_rows_sum_to_one("P", table, MEANING, InvalidModel)
    return table, steps, stationary


def _table(rewards: Any) -> Any:
    return rewards.table if isinstance(rewards, Rescaled) else rewards


def _rewards(rewards: Any, word: str) -> tuple[Floats, int]:
    """Return the table of rewards as it is given, and how many axes it has where it holds for all steps."""
    return as_floats(word, _table(rewards), InvalidModel), 2 if word == "r" else 3


def _steps(H: int | None, rewards: Any, word: str) -> int | None:
    """Return the number of steps: as given, or as many as the rewards have."""
    table, axes = _rewards(rewards, word)
    return table.shape[0] if H is None and table.ndim == axes + 1 else H


def _require_steps(rewards: Any, word: str, steps: int) -> None:
    """Refuse rewards for another number of steps."""
    table, axes = _rewards(rewards, word)
    if table.ndim == axes + 1 and len(table) != steps:
        raise InvalidModel(f"{word} has {len(table)} steps, but P has {steps}. Make them agree.")


def paid_by_entry(problem: Problem, table: SparseTable) -> Floats | None:
    """Return what each entry of the table pays, (steps, entries), as `aligned` does; None where r says it."""
    S, pairs = table.S, table.S * table.A
    if problem.paid_lists is not None:
        return aligned(problem.paid_lists, table.lists, S, pairs)
    after = problem.r_next_rows
    if after is None:
        return None
    row, pair = np.divmod(list_of(table.lists), pairs)
    if table.rows == 1:
        return np.asarray(after[:, pair, table.lists.state])
    return np.asarray(after[row % len(after), pair, table.lists.state])[None]


def mean_rewards(problem: Problem, table: SparseTable) -> Floats:
    """Return mean rewards (rows, S*A), rescaled."""
    paid = paid_by_entry(problem, table)
    if paid is None:
        return problem.r_rows
    place, lists = list_of(table.lists), len(table.lists.first) - 1
    return np.array([np.bincount(place, table.value * row, minlength=lists) for row in paid]).reshape(
        -1, table.S * table.A
    )
