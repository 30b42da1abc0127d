"""When two problems are equal, to the last number: their arguments are compared."""

from typing import Any

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.model.listed import SizedLists
from surefoot.model.successors import PaidLists, Successors


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
