"""AgentSettings: what an agent is given when it is built by its name, and how it is built from
that.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from surefoot.agents.base import CountingAgent
from surefoot.base.arrays import Floats
from surefoot.bounds import KL, Bounds, Certificate
from surefoot.model.problem import Problem


@dataclass(frozen=True, eq=False)
class AgentSettings:
    """The settings that a command or a study gives to every agent alike. Each agent takes those
    that it can use.
    """

    baseline: Floats  # (H, S, A)
    floor: float
    baseline_value: float  # V^b: for the methods that must know it, and for no others
    episodes: int  # how many will be played at most: inside the logarithm of some bounds
    delta: float
    bounds: Bounds
    pooled: bool
    replan: float | None = None
    certificate: Certificate | None = None  # of the baseline

    @property
    def scale(self) -> float:
        """The scale of the bounds, for agents with bounds of their own."""
        return self.bounds.scale

    @property
    def sharp(self) -> bool:
        """Are the sharpest bounds meant that an agent has a proof for, and not the printed
        constants?
        """
        return isinstance(self.bounds, KL)


class AgentByName(CountingAgent):
    """An agent that can be built by its name. `AGENTS` in `surefoot.agents` is the one place
    where it is registered.
    """

    # does it have one kind of bounds, of which it takes the scale alone?
    own_bounds: ClassVar[bool] = False

    not_given: ClassVar[tuple[str, ...]] = ()  # settings that it could take, and does not get

    @classmethod
    def from_settings(cls, problem: Problem, settings: AgentSettings) -> Self:
        """Build the agent with those of the settings that its `__init__` names."""
        build: Callable[..., Self] = cls
        return build(problem, **cls.settings_taken(settings))

    @classmethod
    def settings_taken(cls, settings: AgentSettings) -> dict[str, Any]:
        """Return the settings that the agent is built with, by their names."""
        return {
            name: getattr(settings, name)
            for name in inspect.signature(cls).parameters
            if hasattr(settings, name) and name not in cls.not_given
        }
