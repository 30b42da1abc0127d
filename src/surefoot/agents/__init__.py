"""One file an algorithm: the readable version, then the learner that plans with the kernel.

Registering a learner here enrols it in the interface tests.
"""

from surefoot.agents.bpi_ucbvi import BPIUCBVI as BPIUCBVI
from surefoot.agents.budget_exploration import BudgetExploration as BudgetExploration
from surefoot.agents.conservative_ucbvi import ConservativeUCBVI as ConservativeUCBVI
from surefoot.agents.counting import Agent as Agent
from surefoot.agents.counting import CountingAgent as CountingAgent
from surefoot.agents.dope import DOPE as DOPE
from surefoot.agents.epsmix import EpsMix as EpsMix
from surefoot.agents.explorers import Thompson as Thompson
from surefoot.agents.floors import Relative as Relative
from surefoot.agents.optpess_lp import OptPessLP as OptPessLP
from surefoot.agents.planning import SpliceAgent as SpliceAgent
from surefoot.agents.plans import Plan as Plan
from surefoot.agents.replanning import Blocks as Blocks
from surefoot.agents.replanning import EveryEpisode as EveryEpisode
from surefoot.agents.replanning import Growth as Growth
from surefoot.agents.returns import Returns as Returns
from surefoot.agents.step_no_mix import StepNoMix as StepNoMix
from surefoot.agents.stepmix import StepMix as StepMix
from surefoot.agents.ucbvi import UCBVI as UCBVI

AGENTS: dict[str, type[CountingAgent]] = {
    "stepmix": StepMix,
    "epsmix": EpsMix,
    "bpi-ucbvi": BPIUCBVI,
    "step-no-mix": StepNoMix,
    "dope": DOPE,
    "optpess-lp": OptPessLP,
    "budget-exploration": BudgetExploration,
    "conservative-ucbvi": ConservativeUCBVI,
}
