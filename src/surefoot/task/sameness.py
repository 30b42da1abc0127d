"""When two problems are equal, to the last number: their arguments are compared, or hashed."""

import hashlib
from typing import Any

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.base.successors import PaidLists, Successors
from surefoot.task.listed import SizedLists
from surefoot.task.origin import digest_of
from surefoot.task.units import Units

LATER = ("ended_state", "unseen_state")  # files of earlier versions have no such words


def fingerprint_of(arguments: dict[str, Any]) -> str:
    """Return a hash of these arguments of a problem."""
    digest = hashlib.sha256()
    for word, value in sorted(arguments.items()):
        if word in LATER and value is None:
            continue
        if isinstance(value, Successors | SizedLists):
            digest.update(f"{word} {digest_of(*parts(value))} ".encode())
            continue
        text = value.identity if isinstance(value, Units) else repr(value)
        plain = value.tobytes() if isinstance(value, np.ndarray) else text.encode()
        digest.update(f"{word} {np.shape(value)} ".encode() + plain)
    return digest.hexdigest()[:16]


def alike(mine: Any, its: Any) -> bool:
    """Are these arguments of two problems equal?"""
    if isinstance(mine, Successors | SizedLists) or isinstance(its, Successors | SizedLists):
        return type(mine) is type(its) and all(
            np.array_equal(x, y) for x, y in zip(parts(mine), parts(its), strict=True)
        )
    return np.array_equal(np.asarray(mine), np.asarray(its))


def parts(lists: Successors | PaidLists | SizedLists) -> list[AnyArray]:
    """Return the arrays of lists; a number as an array of one."""
    inner: tuple[Any, ...] = lists.paid if isinstance(lists, SizedLists) else lists
    return [np.atleast_1d(np.asarray(part)) for part in inner]


def arrays_of(rows: AnyArray | None, lists: Successors | PaidLists | None) -> list[AnyArray | None]:
    """Return a table by its rows, or, where it is kept as lists, by the arrays of those: what is hashed."""
    return [rows] if lists is None else [*parts(lists)]
