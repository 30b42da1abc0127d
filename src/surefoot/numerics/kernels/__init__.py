"""Compiled kernels: arrays in, arrays out. They load on first use, because importing numba takes longer than the rest.

`kernels.run_episodes(...)` works directly: the module behind a name is imported when the name is first read.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.numerics.kernels.bernstein import estimate_from as estimate_from
    from surefoot.numerics.kernels.episodes import ActivePlan as ActivePlan
    from surefoot.numerics.kernels.episodes import CountArrays as CountArrays
    from surefoot.numerics.kernels.episodes import EpisodeArrays as EpisodeArrays
    from surefoot.numerics.kernels.episodes import KnownRewards as KnownRewards
    from surefoot.numerics.kernels.episodes import PlanInputs as PlanInputs
    from surefoot.numerics.kernels.episodes import ReplanRule as ReplanRule
    from surefoot.numerics.kernels.episodes import TrueWorld as TrueWorld
    from surefoot.numerics.kernels.episodes import empty_episode as empty_episode
    from surefoot.numerics.kernels.episodes import empty_loop_state as empty_loop_state
    from surefoot.numerics.kernels.episodes import empty_workspace as empty_workspace
    from surefoot.numerics.kernels.episodes import known_rewards_from as known_rewards_from
    from surefoot.numerics.kernels.episodes import play_on as play_on
    from surefoot.numerics.kernels.episodes import run_episodes as run_episodes
    from surefoot.numerics.kernels.episodes import uniforms_from as uniforms_from
    from surefoot.numerics.kernels.evidence import Evidence as Evidence
    from surefoot.numerics.kernels.evidence import q_bounds as q_bounds
    from surefoot.numerics.kernels.evidence import refresh_all as refresh_all
    from surefoot.numerics.kernels.kl import RewardArrays as RewardArrays
    from surefoot.numerics.kernels.kl import balls_from as balls_from
    from surefoot.numerics.kernels.mixing import Rule as Rule
    from surefoot.numerics.kernels.mixing import candidate_values as candidate_values
    from surefoot.numerics.kernels.mixing import choose as choose
    from surefoot.numerics.kernels.mixing import exit_taken as exit_taken
    from surefoot.numerics.kernels.mixing import larger_weight as larger_weight
    from surefoot.numerics.kernels.mixing import mix_splices as mix_splices
    from surefoot.numerics.kernels.pessimism import lower_values as lower_values
    from surefoot.numerics.kernels.pessimism import pessimistic as pessimistic
    from surefoot.numerics.kernels.splices import bound_splices as bound_splices
    from surefoot.numerics.kernels.splices import empty_splices as empty_splices
    from surefoot.numerics.kernels.start_and_returns import BaselineReturns as BaselineReturns
    from surefoot.numerics.kernels.start_and_returns import Start as Start
    from surefoot.numerics.kernels.start_and_returns import refresh_start as refresh_start
    from surefoot.numerics.kernels.start_and_returns import returns_bounds as returns_bounds
    from surefoot.numerics.kernels.start_and_returns import start_bound as start_bound
    from surefoot.numerics.kernels.start_and_returns import start_from as start_from
    from surefoot.numerics.kernels.tally import Tally as Tally
    from surefoot.numerics.kernels.tally import add_block as add_block
    from surefoot.numerics.kernels.tally import add_episode as add_episode
    from surefoot.numerics.kernels.tally import empty_tally as empty_tally
    from surefoot.numerics.kernels.values import pairs_last as pairs_last
    from surefoot.numerics.kernels.values import policy_value as policy_value
    from surefoot.numerics.kernels.values import start_value as start_value

_MODULES = {
    "bernstein": ("estimate_from",),
    "episodes": (
        "ActivePlan",
        "CountArrays",
        "EpisodeArrays",
        "KnownRewards",
        "PlanInputs",
        "ReplanRule",
        "TrueWorld",
        "empty_episode",
        "empty_loop_state",
        "empty_workspace",
        "known_rewards_from",
        "play_on",
        "run_episodes",
        "uniforms_from",
    ),
    "evidence": ("Evidence", "q_bounds", "refresh_all"),
    "kl": ("RewardArrays", "balls_from"),
    "mixing": ("Rule", "candidate_values", "choose", "exit_taken", "larger_weight", "mix_splices"),
    "pessimism": ("lower_values", "pessimistic"),
    "splices": ("bound_splices", "empty_splices"),
    "start_and_returns": ("BaselineReturns", "Start", "refresh_start", "returns_bounds", "start_bound", "start_from"),
    "tally": ("Tally", "empty_tally", "add_block", "add_episode"),
    "values": ("pairs_last", "policy_value", "start_value"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import the module that holds `name`, once."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
