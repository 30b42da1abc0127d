"""How kernels are compiled: strictly, once, and without holding the interpreter's lock."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import config
from numba.core.caching import FunctionCache

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Kernels inline each other across files, but numba looks for changes in a function's own file only: a changed bound
# would remain in the old machine code of the loop. So the sources of all kernels are part of every cache key.
_SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


OPTIONS: Any = {"error_model": "numpy", "nogil": True, "_nrt": False}


class _Cache(FunctionCache):
    """Machine code on disk, found again only while no kernel's source has changed."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _SOURCES)  # type: ignore[no-untyped-call]


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile `function` on first use and keep the machine code on disk.

    - No fastmath: additions keep their order, so a run has the same bits in every loop and on every machine whose
      C library gives the same logarithms.
    - `error_model="numpy"` lets x / 0 follow IEEE instead of raising, without which loops do not use SIMD.
    - `_nrt=False` (see numba.extending.register_jitable) switches off numba's allocator and with it the atomic
      reference counts around every array argument and slice, which cost more than the arithmetic on small worlds.
      A kernel that allocates then fails to compile, so callers pass the scratch arrays that kernels work in.
    """
    dispatcher: Any = numba.njit(**OPTIONS)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        # What cache=True does, with the longer key. Where no folder can be written to (a container without a home),
        # each process compiles for itself.
        with suppress(RuntimeError):
            dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast(Callable[_Arguments, _Result], dispatcher)
