"""StepNoMix: StepMix without the mixing, an ablation from the paper's drafts. Its plan is that of
StepMix (agents/stepmix.py) up to the last two lines: pi^h is played as it is.
"""

from dataclasses import dataclass
from typing import final

from surefoot.agents.floor_agent import FloorAgent


@final
@dataclass(frozen=True, eq=False, repr=False)
class StepNoMix(FloorAgent):
    """Plays the first certified splice without mixing: StepMix's promise, reached in H+1 jumps
    instead of smoothly.
    """

    name = "StepNoMix"
    mixes = False
