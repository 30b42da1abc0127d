"""Compiled kernels: arrays in, arrays out. They load on first use, because importing numba takes longer than the rest.

`kernels.run_episodes(...)` works without further ado; the module behind a name is imported when the name is first read.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.kernels.bernstein import estimate_from as estimate_from
    from surefoot.kernels.episodes import Rule as Rule
    from surefoot.kernels.episodes import Tally as Tally
    from surefoot.kernels.episodes import TrueWorld as TrueWorld
    from surefoot.kernels.episodes import empty_desk as empty_desk
    from surefoot.kernels.episodes import empty_tally as empty_tally
    from surefoot.kernels.episodes import record as record
    from surefoot.kernels.episodes import run_episodes as run_episodes
    from surefoot.kernels.evidence import Evidence as Evidence
    from surefoot.kernels.evidence import refresh_all as refresh_all
    from surefoot.kernels.kl import balls_from as balls_from
    from surefoot.kernels.mixing import choose as choose
    from surefoot.kernels.mixing import exit_taken as exit_taken
    from surefoot.kernels.mixing import mix_splices as mix_splices
    from surefoot.kernels.splices import bound_splices as bound_splices
    from surefoot.kernels.splices import empty_splices as empty_splices
    from surefoot.kernels.values import pairs_last as pairs_last
    from surefoot.kernels.values import policy_value as policy_value

_MODULES = {
    "bernstein": ("estimate_from",),
    "evidence": ("Evidence", "refresh_all"),
    "kl": ("balls_from",),
    "splices": ("bound_splices", "empty_splices"),
    "episodes": ("Rule", "Tally", "TrueWorld", "empty_desk", "empty_tally", "record", "run_episodes"),
    "mixing": ("choose", "exit_taken", "mix_splices"),
    "values": ("pairs_last", "policy_value"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import the module that holds `name`, once."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
