"""Plan: what an agent will play next, and why that is safe."""

from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.agents.promise import PremiseStatus
from surefoot.base.arrays import Floats, Ints
from surefoot.base.coins import coin_generator
from surefoot.base.validation import (
    FrozenRecord,
    at_least,
    at_most,
    freeze,
    require_integer,
    require_number,
)
from surefoot.errors import InvalidSetting
from surefoot.evidence.episode import BaselineLabel
from surefoot.model.policy import EpisodicMixture
from surefoot.model.units import Units

Source = Literal["baseline", "mixture", "optimistic"]
Safety = Literal["certified", "certified in total", "trusted", "NOT CERTIFIED", "no floor"]

UNCLAIMED = (
    "nobody says what these counts are evidence about: counts = "
    "counts.claimed_for(agent.problem) asserts it"
)

# in the order of the kernels' numbers
SOURCES: tuple[Source, ...] = ("baseline", "mixture", "optimistic")
ROUNDING = 2.0**-51  # of a sum of two products: more than it may have been rounded up by


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Plan(FrozenRecord):
    """The next episode's policy.

    - source: which of the paper's three exits was taken; h and rho are the paper's (baseline: h =
      H, rho = 0; optimistic: h = 0, rho = 1; a mixture with h mixes at row h-1 and rho is the
      weight of the LESS conservative side)
    - lower: the value proved for this policy (the floor for a mixture; below the floor for a
      trusted baseline)
    - upper: no policy at all is worth more
    - candidates: the lower values L(h0) from which h was chosen, boldest first (these three in the
      user's units)
    - safety: "certified" is proved from data at level delta. "certified in total" is proved of the
      sum over all episodes so far, not of this one. "trusted" presumes that the baseline is above
      the floor, which these data do not prove (`explain` says how well that is known). "NOT
      CERTIFIED" is computed with a bonus scaled by hand. "no floor" comes from an agent without
      one.
    - cost: of an agent that keeps costs within a budget, the expected cost proved for this policy
    - max_episodes: how many episodes it may be played at most; None: until the agent replans
    - entry: what each of its episodes enters in the counts' account of certified values (rescaled);
      None: nothing
    - basis: where the next linear program may begin
    - label: what `draw` gives an episode that the agent's baseline plays, by which its returns are
      recognised as evidence; None: nobody says
    - alarm: why the baseline alone is played, whatever is certified, where a watchdog raised an
      alarm
    """

    policy: Floats | EpisodicMixture
    source: Source
    h: int
    rho: float
    lower: float
    upper: float
    candidates: Floats
    safety: Safety
    grounds: Any  # what the plan was made from, which `explain` puts into words
    cost: float | None
    max_episodes: int | None
    entry: float | None
    basis: Ints | None
    alarm: str | None
    label: str | None

    def __init__(
        self,
        policy: ArrayLike | EpisodicMixture,
        source: Source,
        h: int,
        rho: float,
        lower: float,
        upper: float,
        candidates: ArrayLike,
        safety: Safety,
        grounds: Any = None,
        *,
        cost: float | None = None,
        max_episodes: int | None = None,
        entry: float | None = None,
        basis: Ints | None = None,
        alarm: str | None = None,
        label: str | None = None,
    ) -> None:
        """Make a plan of these fields; arrays become read-only."""
        if source not in SOURCES:
            raise InvalidSetting(f"source is {source!r}, expected one of {', '.join(SOURCES)}.")
        if safety not in get_args(Safety):
            raise InvalidSetting(
                f"safety is {safety!r}, expected one of {', '.join(get_args(Safety))}."
            )
        require_integer("h", h, 0, InvalidSetting)
        if not 0.0 <= require_number("rho", rho, "a weight in [0, 1]") <= 1.0:
            raise InvalidSetting(f"rho is {rho}, expected a weight in [0, 1].")
        freeze(
            self,
            policy=policy
            if isinstance(policy, EpisodicMixture)
            else np.asarray(policy, dtype=np.float64),
            source=source,
            h=h,
            rho=rho,
            lower=lower,
            upper=upper,
            candidates=np.asarray(candidates, dtype=np.float64),
            safety=safety,
            grounds=grounds,
            cost=cost,
            max_episodes=None
            if max_episodes is None
            else require_integer("max_episodes", max_episodes, 1, InvalidSetting),
            entry=entry,
            basis=basis,
            alarm=alarm,
            label=label,
        )

    @property
    def baseline_of(self) -> str | None:
        """The fingerprint of the agent's baseline. It is no label: what is played decides, and
        `draw` knows that.
        """
        return None if self.label is None else BaselineLabel.read(self.label).fingerprint

    @classmethod
    def plain(cls, policy: ArrayLike) -> "Plan":
        """Return a plan of a policy (H, S, A) of which nothing is proved or promised: for agents
        of your own.
        """
        return cls(policy, "optimistic", 0, 1.0, -np.inf, np.inf, [-np.inf], "no floor")

    def in_units(self, units: Units, floor: float | None = None) -> "Plan":
        """Return this plan, made with rescaled values (0..H), with its values in the user's units.

        What reaches the floor (in the user's units) still does: no rounding error is between them.
        """

        def to_user(value: float) -> float:
            shown = units.to_user(value)
            if floor is None or not np.isfinite(value):
                return shown
            return max(shown, floor) if value >= units.from_user(floor) else min(shown, floor)

        made = copy(self)
        candidates = np.array([to_user(float(value)) for value in self.candidates])
        freeze(
            made, lower=to_user(self.lower), upper=units.to_user(self.upper), candidates=candidates
        )
        return made

    def draw(self, rng: np.random.Generator, *, episode: int) -> "Drawn":
        """Return the policy (H, S, A) of one episode, any coin tossed, and whose baseline it is, if
        it is that alone.

        Only an episode that was labelled so before it began may later count as evidence of the
        baseline's value.

        `episode` is its number, another one for each: the coin is made of it and of a number of
        `rng` (`base/coins.py`). So a generator that is made anew for each episode will do, and the
        process may use the same. Who draws an episode again, with a generator in the same state,
        has the same coin; one that was tossed twice until it fell as somebody liked is no coin.
        """
        number = require_integer("episode", episode, 0, InvalidSetting)
        has_coin = isinstance(self.policy, EpisodicMixture) and 0.0 < self.policy.rho < 1.0
        return self.toss(coin_generator(rng, "plan", number) if has_coin else rng)

    def toss(self, rng: np.random.Generator) -> "Drawn":
        """`draw`, with a generator that is nobody else's: for loops that have one, such as that
        of a simulation.
        """
        whose = True if self.label is None else self.label
        if isinstance(self.policy, EpisodicMixture):
            chosen = self.policy.draw(rng)
            return Drawn(chosen, whose if chosen is self.policy.first else "")
        return Drawn(self.policy, whose if self.source == "baseline" else "")

    def explain(self) -> str:
        """Explain why this policy is played, and what its safety rests on.

        That is: how delta is spent, the evidence, the pairs that bind, and every premise that
        nobody checks.
        """
        if self.alarm is not None:
            label = (
                "NOT CERTIFIED, and frozen"
                if self.safety == "NOT CERTIFIED"
                else "Frozen, no promise is made"
            )
            return f"{self.alarm}\nNext: the baseline (h = {self.h}, rho = 0). {label}."
        if self.grounds is None:
            return f"{self!r}: the agent that made this plan says no more about it."
        text: str = self.grounds.explain(self)
        return text

    @property
    def frozen(self) -> bool:
        """Is the baseline played because a watchdog raised an alarm, whatever is certified?"""
        return self.alarm is not None

    @property
    def certified(self) -> bool:
        """Is the floor proved from data for this very policy?"""
        return self.safety == "certified"

    def __repr__(self) -> str:
        values = ", ".join(at_least(float(value)) for value in self.candidates)
        frozen = ", frozen after an ALARM" if self.frozen else ""
        return (
            f"Plan({self.source}, {self.safety}{frozen}, h={self.h}, rho={self.rho:.6g}, "
            f"lower={at_least(self.lower)}, upper={at_most(self.upper)}, candidates=[{values}]"
            + (")" if self.cost is None else f", cost={at_most(self.cost)})")
        )


class Drawn(NamedTuple):
    """What is played in one episode."""

    policy: Floats
    # The fingerprint of the baseline, if that alone is played from the first step to the last, else
    # "": for Episode.of. True: it is a baseline's, and the plan does not say whose.
    baseline: bool | str


def proved(L: Floats, c: int, rho: float, floor: float, mixed: bool) -> float:
    """Return the value proved for a plan: that of the candidate, or the floor where two are mixed
    at it.

    `mixed`: the floor itself is not what is proved, and the mixed lower values are. (A mixture with
    pi_b under a relative floor is above a share of what pi_b IS worth.)
    """
    if c == 0 or rho == 0.0:
        return float(L[c])
    value = (1.0 - rho) * L[c] + rho * L[c - 1]
    return float(value * (1.0 - ROUNDING)) if mixed else floor


def exit_taken(h: int, rho: float, H: int) -> Source:
    """Return which of the three exits (h, rho) is. With h = H and rho = 0 pi_b is played,
    certified or not.
    """
    return SOURCES[kernels.exit_taken(h, rho, H)]


def safety(certified: bool, floor: float, reached: bool, doubted: bool = False) -> Safety:
    """Return the label of a plan: what its safety rests on. `doubted`: nobody says what the counts
    are evidence about.

    `certified`: are the bounds proved ones, at scale 1?
    """
    if not certified:
        return "NOT CERTIFIED"
    if floor == -np.inf:
        return "no floor"
    return "certified" if reached and not doubted else "trusted"


def premise_status(floor: float, proved: float, asserted: float = -np.inf) -> PremiseStatus:
    """Return how well it is known that the baseline is worth the floor, by what is `proved` or
    `asserted` of it.

    -inf stands for nothing. A floor of 0 needs no premise, and a relative floor is one of 0 here:
    it is measured from the baseline, which cannot be below it.
    """
    if floor <= 0.0:
        return "none needed"
    if proved >= floor:
        return "certified by data"
    return "asserted by the user" if asserted >= floor else "unknown"
