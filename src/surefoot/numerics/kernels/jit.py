"""How kernels are compiled: strictly, once, as a whole, and without holding the interpreter's lock.

A kernel that Python calls is compiled together with all kernels that it calls, as one unit. By itself, numba makes
every function a unit of its own, each of which is optimised, turned into machine code, given an entry for Python and
saved; and calls between units pass every array as seven numbers or more, used or not. For the loop of a simulation that
doubles the time of compiling, and costs a third of the time of an episode.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import compiler, config, types
from numba.core.caching import FunctionCache, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from surefoot.base.progress import check_ctrl_c, say_compiling

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Kernels inline each other across files, but numba looks for changes in a function's own file only: a changed bound
# would remain in the old machine code of the loop. So the sources of all kernels are part of every cache key.
_SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


class _PartLibrary(JITCodeLibrary):
    """The code of a kernel that another kernel calls: kept as it is, until the whole is optimised."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the whole."""

    def finalize(self) -> None:
        """Link the parts of this part, but neither optimise nor make machine code."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No function here has an address: 0."""
        return 0


class _WholeLibrary(JITCodeLibrary):
    """The code of a kernel that Python calls, with all parts that it needs."""

    def _optimize_final_module(self) -> None:
        """Optimise the whole. No other library calls its parts, so what they do not use need not be passed to them.

        Their names change, too: LLVM looks for a function by its name in all that the process has compiled, and would
        take a part in here, which has no address, for the one that another library means.
        """
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
                function.name = f"{function.name}.part"
        super()._optimize_final_module()  # type: ignore[no-untyped-call]
        check_ctrl_c()


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _LowerPart(NativeLowering):
    """Translate a part to LLVM's language, and no further."""

    _name = "surefoot_lower_part"

    def run_pass(self, state: Any) -> bool:
        """Do what numba's pass does, without machine code: the address that Python would call is 0."""
        check_ctrl_c()
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        state.flags.no_compile = True
        super().run_pass(state)  # type: ignore[no-untyped-call]
        lowered, library = state["cr"], state.library
        description = lowered.fndesc
        name = description.qualname.split(".")[-1]
        entry = _dynfunc.make_function(description.lookup_module(), name, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(entry, description, [library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _LowerWhole(NativeLowering):
    """Translate a kernel that Python calls, into a library that takes its parts in."""

    _name = "surefoot_lower_whole"

    def run_pass(self, state: Any) -> bool:
        """Do what numba's pass does, in our library."""
        check_ctrl_c()
        state.library = _WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        state.library.enable_object_caching()
        return bool(super().run_pass(state))  # type: ignore[no-untyped-call]


def _pipeline_with(lowering: type[NativeLowering]) -> type[compiler.CompilerBase]:
    """Return numba's own compiler, with this way of lowering in place of its own."""

    class Pipeline(compiler.CompilerBase):
        def define_pipelines(self) -> list[Any]:
            builder = compiler.DefaultPassBuilder
            passes = builder.define_nopython_pipeline(self.state)  # type: ignore[no-untyped-call]
            passes.passes = [(lowering if kind is NativeLowering else kind, text) for kind, text in passes.passes]
            return [passes]

    return Pipeline


_OPTIONS: Any = {"error_model": "numpy", "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
WHOLE: Any = {**_OPTIONS, "pipeline_class": _pipeline_with(_LowerWhole)}
PART: Any = {**_OPTIONS, "pipeline_class": _pipeline_with(_LowerPart), "no_cpython_wrapper": True}


class _Cache(FunctionCache):
    """Machine code on disk, found again only while no kernel's source has changed."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _SOURCES)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code. Where there is none, say that it will be compiled."""
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            say_compiling()
        return found


class _NoCache(NullCache):
    """No folder to keep machine code in can be written to (a container without a home): each process compiles."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Say that it will be compiled."""
        say_compiling()


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile `function` on first use and keep the machine code on disk.

    - Called by Python, it is compiled as a whole; called by another kernel, it is a part of that one.
    - No fastmath: additions keep their order, so a run has the same bits in every loop and on every machine whose
      C library gives the same logarithms.
    - `error_model="numpy"` lets x / 0 follow IEEE instead of raising, without which loops do not use SIMD.
    - `_nrt=False` (see numba.extending.register_jitable) switches off numba's allocator and with it the atomic
      reference counts around every array argument and slice, which cost more than the arithmetic on small worlds.
      A kernel that allocates then fails to compile, so callers pass the scratch arrays that kernels work in.
    """
    dispatcher: Any = numba.njit(**WHOLE)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        part: Any = numba.njit(**PART)(function)

        def as_part(arguments: Any, keywords: Any) -> Any:
            # A constant is a number like any other: numba would compile f(0) and f(n) apart.
            return part.get_call_template(tuple(map(types.unliteral, arguments)), keywords)

        dispatcher.get_call_template, dispatcher.get_overload = as_part, part.get_overload
        try:
            dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]  # cache=True, with the longer key
        except RuntimeError:
            dispatcher._cache = _NoCache()
    return cast(Callable[_Arguments, _Result], dispatcher)
