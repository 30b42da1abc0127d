"""surefoot: learn online in a running process without ever falling below a floor.

    import surefoot as sf

The public names. Nothing is computed here, and each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surefoot.__about__ import __version__ as __version__

if TYPE_CHECKING:
    from surefoot.agents import AGENTS as AGENTS
    from surefoot.agents import BPIUCBVI as BPIUCBVI
    from surefoot.agents import DOPE as DOPE
    from surefoot.agents import UCBVI as UCBVI
    from surefoot.agents import Agent as Agent
    from surefoot.agents import Blocks as Blocks
    from surefoot.agents import BudgetExploration as BudgetExploration
    from surefoot.agents import ConservativeUCBVI as ConservativeUCBVI
    from surefoot.agents import CountingAgent as CountingAgent
    from surefoot.agents import EpsMix as EpsMix
    from surefoot.agents import EveryEpisode as EveryEpisode
    from surefoot.agents import Growth as Growth
    from surefoot.agents import OptPessLP as OptPessLP
    from surefoot.agents import Plan as Plan
    from surefoot.agents import Promise as Promise
    from surefoot.agents import Relative as Relative
    from surefoot.agents import Returns as Returns
    from surefoot.agents import StepMix as StepMix
    from surefoot.agents import StepNoMix as StepNoMix
    from surefoot.agents import Thompson as Thompson
    from surefoot.assurance.ledger import Ledger as Ledger
    from surefoot.assurance.ledger import check_ledger as check_ledger
    from surefoot.assurance.watchdog import Alarm as Alarm
    from surefoot.assurance.watchdog import Watch as Watch
    from surefoot.assurance.watchdog import Watchdog as Watchdog
    from surefoot.bounds import KL as KL
    from surefoot.bounds import Bernstein as Bernstein
    from surefoot.bounds import BernsteinBox as BernsteinBox
    from surefoot.bounds import Certificate as Certificate
    from surefoot.bounds import HoeffdingBox as HoeffdingBox
    from surefoot.bounds import MaurerPontilBox as MaurerPontilBox
    from surefoot.bounds import Model as Model
    from surefoot.errors import FloorAboveBaseline as FloorAboveBaseline
    from surefoot.errors import InvalidCounts as InvalidCounts
    from surefoot.errors import InvalidEpisode as InvalidEpisode
    from surefoot.errors import InvalidFile as InvalidFile
    from surefoot.errors import InvalidLog as InvalidLog
    from surefoot.errors import InvalidModel as InvalidModel
    from surefoot.errors import InvalidPolicy as InvalidPolicy
    from surefoot.errors import InvalidSetting as InvalidSetting
    from surefoot.errors import InvalidStudy as InvalidStudy
    from surefoot.errors import MissingExtra as MissingExtra
    from surefoot.errors import SolverTrouble as SolverTrouble
    from surefoot.errors import SurefootError as SurefootError
    from surefoot.live.learn import learn as learn
    from surefoot.live.learner import Learner as Learner
    from surefoot.offline import Codebook as Codebook
    from surefoot.offline import Learnt as Learnt
    from surefoot.offline import LogCounts as LogCounts
    from surefoot.offline import LogReport as LogReport
    from surefoot.offline import certify as certify
    from surefoot.offline import check_log as check_log
    from surefoot.offline import clone as clone
    from surefoot.offline import count_log as count_log
    from surefoot.offline import count_table as count_table
    from surefoot.offline import from_minari as from_minari
    from surefoot.offline import robust_vi as robust_vi
    from surefoot.offline import spibb as spibb
    from surefoot.offline import to_minari as to_minari
    from surefoot.offline import vi_lcb as vi_lcb
    from surefoot.offline.baseline_file import Baseline as Baseline
    from surefoot.offline.baseline_file import load_baseline as load_baseline
    from surefoot.offline.warm_start import HandOver as HandOver
    from surefoot.offline.warm_start import hand_over as hand_over
    from surefoot.simulation.conformance import check_agent as check_agent
    from surefoot.simulation.conformance import check_world as check_world
    from surefoot.simulation.figures import plot_returns as plot_returns
    from surefoot.simulation.forecast import Forecast as Forecast
    from surefoot.simulation.forecast import forecast as forecast
    from surefoot.simulation.loops import play as play
    from surefoot.simulation.run import Curve as Curve
    from surefoot.simulation.run import Run as Run
    from surefoot.simulation.run import Trace as Trace
    from surefoot.simulation.sample_log import sample_log as sample_log
    from surefoot.simulation.simulate import simulate as simulate
    from surefoot.simulation.simulate import simulate_many as simulate_many
    from surefoot.simulation.simulate import simulate_plainly as simulate_plainly
    from surefoot.simulation.simulate import simulate_reference as simulate_reference
    from surefoot.task.counts import Counts as Counts
    from surefoot.task.episode import Episode as Episode
    from surefoot.task.policy import EpisodicMixture as EpisodicMixture
    from surefoot.task.policy import boltzmann as boltzmann
    from surefoot.task.policy import check_policy as check_policy
    from surefoot.task.policy import greedy as greedy
    from surefoot.task.policy import load_policy as load_policy
    from surefoot.task.policy import save_policy as save_policy
    from surefoot.task.policy import splice as splice
    from surefoot.task.policy import step_mixture as step_mixture
    from surefoot.task.policy import uniform as uniform
    from surefoot.task.problem import Problem as Problem
    from surefoot.task.problem import Units as Units
    from surefoot.worlds.constrained import ConstrainedOptimum as ConstrainedOptimum
    from surefoot.worlds.constrained import constrained_optimum as constrained_optimum
    from surefoot.worlds.exact import Solution as Solution
    from surefoot.worlds.exact import occupancy as occupancy
    from surefoot.worlds.exact import policy_value as policy_value
    from surefoot.worlds.exact import solve as solve
    from surefoot.worlds.gymnasium import embed_policy as embed_policy
    from surefoot.worlds.gymnasium import from_gymnasium as from_gymnasium
    from surefoot.worlds.registry import FAMILIES as FAMILIES
    from surefoot.worlds.registry import world as world
    from surefoot.worlds.tabular_mdp import TabularMDP as TabularMDP
    from surefoot.worlds.tabular_mdp import random_mdp as random_mdp

_MODULES = {
    "agents": (
        "AGENTS",
        "BPIUCBVI",
        "Agent",
        "Blocks",
        "BudgetExploration",
        "ConservativeUCBVI",
        "CountingAgent",
        "DOPE",
        "EpsMix",
        "EveryEpisode",
        "Growth",
        "OptPessLP",
        "Plan",
        "Promise",
        "Relative",
        "Returns",
        "StepMix",
        "StepNoMix",
        "Thompson",
        "UCBVI",
    ),
    "offline.baseline_file": ("Baseline", "load_baseline"),
    "bounds": ("Bernstein", "BernsteinBox", "Certificate", "HoeffdingBox", "KL", "MaurerPontilBox", "Model"),
    "simulation.conformance": ("check_agent", "check_world"),
    "worlds.constrained": ("ConstrainedOptimum", "constrained_optimum"),
    "task.counts": ("Counts",),
    "simulation.loops": ("play",),
    "worlds.registry": ("FAMILIES", "world"),
    "worlds.gymnasium": ("embed_policy", "from_gymnasium"),
    "task.episode": ("Episode",),
    "errors": (
        "FloorAboveBaseline",
        "InvalidCounts",
        "InvalidEpisode",
        "InvalidFile",
        "InvalidLog",
        "InvalidModel",
        "InvalidPolicy",
        "InvalidSetting",
        "InvalidStudy",
        "MissingExtra",
        "SolverTrouble",
        "SurefootError",
    ),
    "worlds.exact": ("Solution", "occupancy", "policy_value", "solve"),
    "simulation.figures": ("plot_returns",),
    "simulation.forecast": ("Forecast", "forecast"),
    "offline.warm_start": ("HandOver", "hand_over"),
    "live.learner": ("Learner",),
    "live.learn": ("learn",),
    "assurance.ledger": ("Ledger", "check_ledger"),
    "worlds.tabular_mdp": ("TabularMDP", "random_mdp"),
    "offline": (
        "Codebook",
        "Learnt",
        "LogCounts",
        "LogReport",
        "certify",
        "check_log",
        "clone",
        "count_log",
        "count_table",
        "from_minari",
        "robust_vi",
        "spibb",
        "to_minari",
        "vi_lcb",
    ),
    "task.policy": (
        "EpisodicMixture",
        "boltzmann",
        "check_policy",
        "greedy",
        "load_policy",
        "save_policy",
        "splice",
        "step_mixture",
        "uniform",
    ),
    "task.problem": ("Problem", "Units"),
    "simulation.run": ("Curve", "Run", "Trace"),
    "simulation.sample_log": ("sample_log",),
    "simulation.simulate": ("simulate", "simulate_many", "simulate_plainly", "simulate_reference"),
    "assurance.watchdog": ("Alarm", "Watch", "Watchdog"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import the module that holds `name`, once."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
