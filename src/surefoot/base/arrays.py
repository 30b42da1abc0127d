"""Names for the arrays that travel through the library. Shapes are said where a function takes one."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
Indices: TypeAlias = int | Ints  # one index, or an array of them

_Array = TypeVar("_Array", bound=AnyArray)


def read_only(array: _Array) -> _Array:
    """A view that cannot be written through. Kernels are compiled anew for writable inputs, so they get these."""
    view = array.view()
    view.flags.writeable = False
    return view
