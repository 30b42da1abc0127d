"""BPI-UCBVI in the form of EpsMix: its optimistic policy, always. `BPIUCBVIMenard` has Menard's
own constants.
"""

from dataclasses import KW_ONLY, dataclass
from typing import final

from surefoot.agents.base import WithoutFloor
from surefoot.agents.splice_agent import SpliceAgent, check_settings
from surefoot.base.validation import freeze, require_delta
from surefoot.bounds import KL, Bernstein, Bounds
from surefoot.model.problem import Problem


@final
@dataclass(frozen=True, eq=False)
class BPIUCBVI(WithoutFloor, SpliceAgent):
    """Optimism without a floor: what StepMix and EpsMix are compared with. It promises nothing
    about any episode.

    It is not Menard et al. 2021 to the letter. It is EpsMix's optimistic policy: with the paper's
    bounds delta' = delta/4, and a lower bound with 22 H^2 beta/n, 2/H and <pi, Q_low>, where Menard
    et al. have delta/3, 14 H^2 beta/n, 1/H and max_a Q_low; the lower bound enters the upper one.
    `BPIUCBVIMenard` is theirs. With KL bounds, the default, it is optimism over KL balls.
    """

    name = "BPI-UCBVI (EpsMix form)"
    spliced = False
    mixes = False

    problem: Problem
    _: KW_ONLY
    delta: float = 0.05
    bounds: Bounds = KL()  # noqa: RUF009  (frozen)
    pooled: bool = False
    replan: float | None = None

    def __post_init__(self) -> None:
        check_settings(self.problem, self.bounds, self.pooled, self.replan)
        freeze(self, delta=require_delta(self.delta))

    @classmethod
    def paper(cls, problem: Problem, *, delta: float = 0.05, pooled: bool = False) -> "BPIUCBVI":
        """Build the agent with the paper's settings: its bounds at scale 1, a plan before every
        episode.
        """
        return cls(problem, delta=delta, bounds=Bernstein(), pooled=pooled, replan=0.0)

    def __repr__(self) -> str:
        settings = (
            f"delta={self.delta:g}, bounds={self.bounds}, pooled={self.pooled}, "
            f"replan={self.replan_share:g}"
        )
        return f"BPIUCBVI({self.problem}, {settings})"
