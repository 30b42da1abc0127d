"""One file per algorithm: what it promises, and which kernel is which of its lines."""

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
from surefoot.agents.settings import AgentByName as AgentByName
from surefoot.agents.settings import AgentSettings as AgentSettings
from surefoot.agents.splice_agent import SpliceAgent as SpliceAgent
from surefoot.agents.step_no_mix import StepNoMix as StepNoMix
from surefoot.agents.stepmix import StepMix as StepMix
