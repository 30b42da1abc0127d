"""One file an algorithm: the readable version, then the learner that plans with the kernel.

Registering a learner here enrols it in the interface tests.
"""

from surefoot.agents.bpi_ucbvi import BPIUCBVI as BPIUCBVI
from surefoot.agents.epsmix import EpsMix as EpsMix
from surefoot.agents.explorers import Thompson as Thompson
from surefoot.agents.floors import Relative as Relative
from surefoot.agents.planning import Agent as Agent
from surefoot.agents.planning import Plan as Plan
from surefoot.agents.planning import SpliceAgent as SpliceAgent
from surefoot.agents.replanning import Blocks as Blocks
from surefoot.agents.replanning import EveryEpisode as EveryEpisode
from surefoot.agents.replanning import Growth as Growth
from surefoot.agents.returns import Returns as Returns
from surefoot.agents.step_no_mix import StepNoMix as StepNoMix
from surefoot.agents.stepmix import StepMix as StepMix

AGENTS: dict[str, type[SpliceAgent]] = {
    "stepmix": StepMix,
    "epsmix": EpsMix,
    "bpi-ucbvi": BPIUCBVI,
    "step-no-mix": StepNoMix,
}
