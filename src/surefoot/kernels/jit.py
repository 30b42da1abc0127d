"""How kernels are compiled: strictly, once, and without holding the interpreter's lock."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile `function` on first use and keep the machine code on disk.

    - No fastmath: additions keep their order, so a run has the same bits in both drivers and on every machine whose
      C library gives the same logarithms.
    - `error_model="numpy"` lets x / 0 follow IEEE instead of raising, without which loops do not use SIMD.
    - `_nrt=False` (see numba.extending.register_jitable) switches off numba's allocator and with it the atomic
      reference counts around every array argument and slice, which cost more than the arithmetic on small worlds.
      A kernel that allocates then fails to compile, so callers bring the room that kernels work in.
    """
    return cast(
        Callable[_Arguments, _Result],
        numba.njit(cache=True, error_model="numpy", nogil=True, _nrt=False)(function),  # type: ignore[call-overload]
    )
