"""A second signal beside the reward, such as a cost."""

import numpy as np
from numpy.typing import ArrayLike

from surefoot.base.arrays import Floats
from surefoot.base.validation import as_floats, require_finite, where
from surefoot.errors import SurefootError
from surefoot.model.problem import Problem


def signal(name: str, values: ArrayLike, problem: Problem, error: type[SurefootError]) -> Floats:
    """Return a second signal, given as (H, S, A) or (S, A) with entries in [0, 1], for every
    step: (H, S, A).
    """
    array = as_floats(name, values, error)
    require_finite(name, array, error)
    shape = (problem.H, problem.S, problem.A)
    if array.shape not in (shape, shape[1:]):
        raise error(f"{name} has shape {array.shape}, expected {shape} or {shape[1:]}.")
    bad = np.argwhere((array < 0.0) | (array > 1.0))
    if bad.size:
        raise error(
            f"{where(name, bad[0])} is {array[tuple(bad[0])]:.10g}, expected a number in [0, 1]."
        )
    return np.broadcast_to(array.copy(), shape)
