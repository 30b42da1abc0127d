"""Kernels compiled as wholes: a kernel that Python calls, together with all kernels that it calls,
as one unit.

By itself, numba makes every function a unit of its own, each of which is optimised, turned into
machine code, given an entry for Python and saved; and calls between units pass every array as seven
numbers or more, used or not. For the loop of a simulation with the paper's bounds that doubles the
time of compiling, and the time of an episode. The public way, `forceinline` on every part, was
measured in its place: 2.2 times the time of compiling, 1.8 times that of an episode.

This rests on how numba works inside, so `jit.py` uses it only with versions of numba that it was
tried with.
"""

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from surefoot.base.progress import check_ctrl_c


class _PartLibrary(JITCodeLibrary):
    """The code of a kernel that another kernel calls: kept as it is, until the whole is
    optimised.
    """

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
        """Optimise the whole. No other library calls its parts, so what they do not use need not be
        passed to them.

        Their names change, too: LLVM looks for a function by its name in all that the process has
        compiled, and would take a part in here, which has no address, for the one that another
        library means.
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
        """Do what numba's pass does, without machine code: the address that Python would call is
        0.
        """
        check_ctrl_c()
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        state.flags.no_compile = True
        super().run_pass(state)  # type: ignore[no-untyped-call]
        lowered, library = state["cr"], state.library
        description = lowered.fndesc
        name = description.qualname.split(".")[-1]
        entry = _dynfunc.make_function(
            description.lookup_module(), name, "", 0, lowered.env, (library,)
        )
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
            passes.passes = [
                (lowering if kind is NativeLowering else kind, text) for kind, text in passes.passes
            ]
            return [passes]

    return Pipeline


WHOLE: Any = {"pipeline_class": _pipeline_with(_LowerWhole)}
PART: Any = {"pipeline_class": _pipeline_with(_LowerPart), "no_cpython_wrapper": True}
