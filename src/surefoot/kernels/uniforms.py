"""The uniform numbers of a numpy Generator, for compiled kernels.

numba accepts a Generator as an argument, but keeps a reference to it that only its allocator gives
back, and kernels are compiled without the allocator (see `jit.py`): each Generator that was passed
would remain for ever, with 3 KB. So kernels are given the addresses of numpy's own function and of
its state: the same numbers, and no reference at all.
"""

import ctypes
from typing import Any, NamedTuple

from numba.core import types
from numba.extending import intrinsic, overload

from surefoot.kernels.jit import PART

_NextDouble = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class Uniforms(NamedTuple):
    """Where the next uniform number comes from. Valid for as long as the Generator it was made
    from.
    """

    function: int  # the address of `double next_double(void *state)`
    state: int  # the address of the state


def uniform(uniforms: Uniforms) -> float:
    """The next number: what `Generator.random` returns."""
    return float(_NextDouble(uniforms.function)(uniforms.state))


_POINTER = types.ExternalFunctionPointer(types.float64(types.int64), get_pointer=int)


@intrinsic
def _call(_typing, function, state):  # type: ignore[no-untyped-def]
    """double function(void *state), for two addresses."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, at = arguments
        return builder.call(builder.inttoptr(address, context.get_value_type(_POINTER)), (at,))

    return types.float64(function, state), code


@overload(uniform, jit_options=PART)
def _uniform(uniforms):  # type: ignore[no-untyped-def]
    def call(uniforms):  # type: ignore[no-untyped-def]
        return _call(uniforms.function, uniforms.state)  # type: ignore[call-arg]

    return call
