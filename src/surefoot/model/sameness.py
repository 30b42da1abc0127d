"""When two problems are equal, to the last number: their arguments are compared."""

from typing import Any

import numpy as np

from surefoot.model.rows import Rows


def alike(mine: Any, its: Any) -> bool:
    """Are these arguments of two problems equal?"""
    if not (isinstance(mine, Rows) or isinstance(its, Rows)):
        return np.array_equal(np.asarray(mine), np.asarray(its))
    return type(mine) is type(its) and all(map(np.array_equal, mine, its))
