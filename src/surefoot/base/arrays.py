"""Types of the arrays used in the library. Shapes are documented where a function takes an
array.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
Indices: TypeAlias = int | Ints  # one index, or an array of them
