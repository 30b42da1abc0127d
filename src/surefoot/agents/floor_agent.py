"""FloorAgent: a baseline and a floor, with all that StepMix, EpsMix and StepNoMix can be given."""

import inspect
from dataclasses import KW_ONLY, dataclass, replace
from typing import Self

from surefoot.agents.explorers import Explorer
from surefoot.agents.floors import BaselineFloor, Floor, Relative, require_share
from surefoot.agents.returns import BY_DEFAULT, Returns
from surefoot.agents.splice_agent import SpliceAgent, check_settings
from surefoot.base.arrays import Floats
from surefoot.base.validation import freeze, require_delta
from surefoot.bounds import KL, Bernstein, Bounds, Certificate
from surefoot.bounds.certificate import fingerprint_of
from surefoot.errors import InvalidSetting
from surefoot.model.origin import Origin
from surefoot.model.policy import check_policy
from surefoot.model.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class FloorAgent(SpliceAgent):
    """A splice agent with a baseline and a floor: the fields that StepMix, EpsMix and StepNoMix
    share.

    `problem`, `baseline` (H, S, A) and `floor` come first; the rest are keywords. Floors and values
    are in the units of the rewards, per episode. A floor above the baseline's true value is the
    user's risk: then playing the baseline already breaks it. The baseline cannot break
    `Relative(a)` or `Below(x)`.

    - delta: how likely the promise may fail; bounds: `KL()`, or the paper's `Bernstein()`
    - replan: by which share the episodes grow between two plans; 0 plans before every episode,
      which is the default with the paper's bounds. With KL it is 0.02 (docs/scaling.md)
    - pooled: one set of counts for all steps, in a stationary problem
    - returns: returns of whole baseline episodes are evidence, for a share of delta: `Returns()`,
      the default with KL; None: they are not, the default with the paper's bounds, and where
      StepMix has a floor relative to the baseline, which it never plays alone
    - certificate: what was proved of the baseline before, by a log say (`learnt.certificate`):
      certified at its own delta, which comes on top
    - explorer: what is mixed with the baseline instead of the optimistic policy:
      `Thompson(problem)`, or any function of counts and a generator that gives a policy (KL only)
    """

    problem: Problem
    baseline: Floats
    floor: Floor
    _: KW_ONLY
    delta: float = 0.05
    bounds: Bounds = KL()  # noqa: RUF009  (frozen)
    pooled: bool = False
    replan: float | None = None
    returns: Returns | None = BY_DEFAULT
    certificate: Certificate | None = None
    explorer: Explorer | None = None

    def __post_init__(self) -> None:
        check_settings(self.problem, self.bounds, self.pooled, self.replan)
        freeze(
            self,
            baseline=check_policy(self.baseline, self.problem, "baseline").copy(),
            floor=self._checked_floor(),
            delta=require_delta(self.delta),
        )
        # The paper's agents as the paper has them; and no share of delta where no episode is the
        # baseline's alone.
        idle = isinstance(self.floor, BaselineFloor) and not self.by_coin
        if self.returns is BY_DEFAULT and (isinstance(self.bounds, Bernstein) or idle):
            freeze(self, returns=None)
        if self.returns is not None and not isinstance(self.returns, Returns):
            raise InvalidSetting(f"returns is {self.returns!r}, expected sf.Returns(), or None.")
        if self.certificate is not None:
            self._check_certificate()
        if self.explorer is not None:
            try:
                inspect.signature(self.explorer).bind(None, None)
            except TypeError:
                raise InvalidSetting(
                    f"explorer is {self.explorer!r}, expected a function of counts and a "
                    "generator, f(counts, rng)."
                ) from None
            if isinstance(self.bounds, Bernstein):
                raise InvalidSetting(
                    "The paper's bounds are proved for its own optimistic policy alone, not for "
                    "another explorer. Use bounds=sf.KL()."
                )

    def _check_certificate(self) -> None:
        """Refuse a certificate of another baseline, or one that does not go together with the
        other settings.
        """
        if not isinstance(self.certificate, Certificate):
            raise InvalidSetting(
                f"certificate is {self.certificate!r}, expected learnt.certificate, or None."
            )
        if self.certificate.fingerprint != fingerprint_of(self.baseline, self.problem):
            raise InvalidSetting(
                "The certificate is of another policy than the baseline, or for another problem "
                "(rewards, start, units): it says nothing here. Give the policy and the problem "
                "that it was made for."
            )
        if Origin(coding=self.certificate.coding).differing(self.problem.origin):
            raise InvalidSetting(
                f"The certificate is of a policy for other labels ({self.certificate.coding}, "
                f"expected {self.problem.origin.coding}). Give the problem that it was learnt for, "
                "such as learnt.problem; or leave the certificate out."
            )
        level = self.problem.level(self.certificate.value, "The certificate's value")
        if self.certificate.rescaled is None:
            freeze(self, certificate=replace(self.certificate, rescaled=level))
        elif abs(self.certificate.rescaled - level) > 1e-9 * self.problem.H:
            raise InvalidSetting(
                f"The certificate says {self.certificate.value:g} and, rescaled, "
                f"{self.certificate.rescaled:g}, expected {level:g}. Use learnt.certificate as it "
                "is."
            )
        if isinstance(self.floor, BaselineFloor):
            raise InvalidSetting(
                "A relative floor is measured from the baseline: a certificate adds nothing."
            )
        if self.delta_in_all >= 1.0:
            raise InvalidSetting(
                f"delta and the certificate's add up to {self.delta_in_all:g}, expected less than "
                "1."
            )

    def _checked_floor(self) -> Floor:
        if not isinstance(self.floor, BaselineFloor):
            self.problem.level(self.floor)
            return float(self.floor)
        if isinstance(self.floor, Relative):
            require_share(self.problem)
        elif self.floor.amount >= self.problem.highest - self.problem.lowest:
            within = f"{self.problem.lowest:g}..{self.problem.highest:g}"
            raise InvalidSetting(
                f"amount is {self.floor.amount:g}, but returns lie in {within}: no policy can lose "
                "as much. Give a smaller amount."
            )
        if self.problem.rewards_at_least:
            raise InvalidSetting(
                "A floor relative to the baseline needs an upper bound of its value, but these "
                "rewards are only what is paid at least (pairs that a log never tried). Use a "
                "floor in units of return, or unknown rewards."
            )
        return self.floor

    @classmethod
    def paper(
        cls,
        problem: Problem,
        baseline: Floats,
        floor: Floor,
        *,
        delta: float = 0.05,
        pooled: bool = False,
    ) -> Self:
        """Build the agent with the paper's settings: its bounds at scale 1, a plan before every
        episode.
        """
        return cls(
            problem, baseline, floor, delta=delta, bounds=Bernstein(), pooled=pooled, replan=0.0
        )

    def __repr__(self) -> str:
        problem, units, floor = self.problem, self.problem.units, self.floor_text
        if isinstance(self.floor, float) and (units.own or units.name):
            floor += f" of {problem.lowest:g}..{problem.highest:g}"
        settings = [
            f"floor={floor}, delta={self.delta:g}, bounds={self.bounds}, pooled={self.pooled}"
        ]
        settings += [f"replan={self.replan_share:g}"]
        extras = ("returns", "certificate", "explorer", "learner", "baseline_value")
        # A function's own repr holds its address, which is another one in every process.
        shown = {name: getattr(self, name, None) for name in extras}
        # 0.0 is a value
        given = {name: value for name, value in shown.items() if value or isinstance(value, float)}
        settings += [
            f"{name}={getattr(value, '__qualname__', value)}" for name, value in given.items()
        ]
        return f"{type(self).__name__}({self.problem}, {', '.join(settings)})"
