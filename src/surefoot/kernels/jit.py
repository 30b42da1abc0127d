"""How kernels are compiled: strictly, once, as wholes, and without holding the interpreter's
lock.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import config, types
from numba.core.caching import FunctionCache, NullCache

from surefoot.base.progress import ctrl_c_while_compiling, say_compiling
from surefoot.model import count_lists

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
# both ends of the versions of numba were tried with wholes
OLDEST_TRIED, NEWEST_TRIED = (0, 61), (0, 68)


def as_wholes(version: str) -> bool:
    """Return whether this version of numba lies between two that were tried. With others each
    kernel is a unit: slower, the same bits.
    """
    found = re.match(r"(\d+)\.(\d+)\.", version)
    return found is not None and OLDEST_TRIED <= (int(found[1]), int(found[2])) <= NEWEST_TRIED


_OPTIONS: Any = {"error_model": "numpy", "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
WHOLE: Any = dict(_OPTIONS)  # of a kernel that Python calls
PART: Any = dict(_OPTIONS)  # of one that another kernel calls
if as_wholes(numba.__version__):
    from surefoot.kernels import whole

    WHOLE |= whole.WHOLE
    PART |= whole.PART

# Kernels inline each other across files, but numba looks for changes in a function's own file only:
# a changed bound would remain in the old machine code of the loop. So the sources of all kernels
# are part of every cache key.
_FILES = [*sorted(Path(__file__).parent.glob("*.py")), Path(count_lists.__file__)]
_SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in _FILES) + str(sorted(WHOLE)).encode()
).hexdigest()


class _Cache(FunctionCache):
    """Machine code on disk, found again only while no kernel's source has changed."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _SOURCES)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code. Where there is none, say that it will be compiled.

        What other sources left there may name types that are no longer where they were: it is
        dropped.
        """
        try:
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):
            self.flush()  # type: ignore[no-untyped-call]
            found = None
        if found is None:
            say_compiling()
        return found


class _NoCache(NullCache):
    """No folder to keep machine code in can be written to (a container without a home): each
    process compiles.
    """

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Say that it will be compiled."""
        say_compiling()


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile `function` on first use and keep the machine code on disk.

    - Called by Python, it is compiled as a whole (whole.py); called by another kernel, it is a part
      of that one.
    - No fastmath: additions keep their order, so a run has the same bits in every loop and on every
      machine whose C library gives the same logarithms.
    - `error_model="numpy"` lets x / 0 follow IEEE instead of raising, without which loops do not
      use SIMD.
    - `_nrt=False` (see numba.extending.register_jitable) switches off numba's allocator and with it
      the atomic reference counts around every array argument and slice, which cost more than the
      arithmetic on small worlds. A kernel that allocates then fails to compile, so callers pass the
      scratch arrays that kernels work in.
    """
    dispatcher: Any = numba.njit(**WHOLE)(function)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return cast(Callable[_Arguments, _Result], dispatcher)
    if PART != WHOLE:
        part: Any = numba.njit(**PART)(function)

        def as_part(arguments: Any, keywords: Any) -> Any:
            # A constant is a number like any other: numba would compile f(0) and f(n) apart.
            return part.get_call_template(tuple(map(types.unliteral, arguments)), keywords)

        dispatcher.get_call_template, dispatcher.get_overload = as_part, part.get_overload
    compile_now = dispatcher.compile

    def compile_interruptibly(signature: Any) -> Any:
        with ctrl_c_while_compiling():
            return compile_now(signature)

    dispatcher.compile = compile_interruptibly
    try:
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]  # cache=True, with the longer key
    except RuntimeError:
        dispatcher._cache = _NoCache()
    return cast(Callable[_Arguments, _Result], dispatcher)
