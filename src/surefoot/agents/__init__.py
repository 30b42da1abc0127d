"""One file per algorithm: the readable version, then the agent that plans with the kernel.

`AGENTS` is the one place where an agent is registered. From there the command and studies build it by its name
(`from_settings`), and the interface tests enrol it.
"""

from surefoot.agents.base import Agent as Agent
from surefoot.agents.base import CountingAgent as CountingAgent
from surefoot.agents.bpi_ucbvi import BPIUCBVI as BPIUCBVI
from surefoot.agents.epsmix import EpsMix as EpsMix
from surefoot.agents.explorers import Thompson as Thompson
from surefoot.agents.floors import Below as Below
from surefoot.agents.floors import Relative as Relative
from surefoot.agents.plan import Plan as Plan
from surefoot.agents.promise import Promise as Promise
from surefoot.agents.returns import Returns as Returns
from surefoot.agents.rivals.bpi_ucbvi_menard import BPIUCBVIMenard as BPIUCBVIMenard
from surefoot.agents.rivals.budget_exploration import BudgetExploration as BudgetExploration
from surefoot.agents.rivals.conservative_ucbvi import ConservativeUCBVI as ConservativeUCBVI
from surefoot.agents.rivals.dope import DOPE as DOPE
from surefoot.agents.rivals.optpess_lp import OptPessLP as OptPessLP
from surefoot.agents.rivals.reward_free_safe import RewardFreeSafeRL as RewardFreeSafeRL
from surefoot.agents.rivals.ucbvi import UCBVI as UCBVI
from surefoot.agents.settings import AgentByName as AgentByName
from surefoot.agents.settings import AgentSettings as AgentSettings
from surefoot.agents.splice_agent import SpliceAgent as SpliceAgent
from surefoot.agents.step_no_mix import StepNoMix as StepNoMix
from surefoot.agents.stepmix import StepMix as StepMix

AGENTS: dict[str, type[AgentByName]] = {
    "stepmix": StepMix,
    "epsmix": EpsMix,
    "bpi-ucbvi": BPIUCBVI,
    "step-no-mix": StepNoMix,
    "dope": DOPE,
    "optpess-lp": OptPessLP,
    "budget-exploration": BudgetExploration,
    "conservative-ucbvi": ConservativeUCBVI,
    "bpi-ucbvi-menard": BPIUCBVIMenard,
    "reward-free-safe": RewardFreeSafeRL,
}
