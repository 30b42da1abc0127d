"""The agents by their names.

`AGENTS` is the one place where an agent is registered. From there the command and studies build it
by its name (`from_settings`), and the interface tests enrol it.
"""

from surefoot.agents import BPIUCBVI, AgentByName, EpsMix, StepMix, StepNoMix
from surefoot.rivals.bpi_ucbvi_menard import BPIUCBVIMenard
from surefoot.rivals.budget_exploration import BudgetExploration
from surefoot.rivals.conservative_ucbvi import ConservativeUCBVI
from surefoot.rivals.dope import DOPE
from surefoot.rivals.optpess_lp import OptPessLP

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
}
