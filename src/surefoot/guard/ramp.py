"""The rule by which a guard shares out its coin, in exact arithmetic.

Policy 0 is the baseline. With lower bounds L_i of the candidates and a number `base` for the
baseline, shares w_0, w_1, ... of the coin keep the floor if

    w_0 base + sum_i w_i L_i >= level.

- An absolute floor f: L_i are of the candidates' values, base = L_b and level = f. What is played
  is worth at least the left side.
- `Relative`, keep V_b with keep = 1 - max_loss: L_i are shares of the baseline's value, V_i >= L_i
  V_b; base = 1 and level = keep. What is played is worth at least the left side times V_b, which is
  not negative.
- `Below`, V_b - amount: L_i are amounts above the baseline's value, V_i >= V_b + L_i; base = 0 and
  level = -amount.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from surefoot.agents.floors import Below, Floor, Relative

# shares are whole multiples of 1/GRID, as uniform numbers are: a coin has exactly its probability
GRID = 2**53


class FloorRule(NamedTuple):
    """A floor: keep V_b - amount, where it is relative to the baseline; else the number `floor`."""

    relative: bool
    floor: Fraction
    keep: Fraction
    amount: Fraction

    @classmethod
    def of(cls, floor: Floor) -> "FloorRule":
        """Return the rule of this floor; nothing is rounded."""
        if isinstance(floor, Relative):
            return cls(True, Fraction(0), 1 - Fraction(floor.max_loss), Fraction(0))
        if isinstance(floor, Below):
            return cls(True, Fraction(0), Fraction(1), Fraction(floor.amount))
        return cls(False, Fraction(floor), Fraction(0), Fraction(0))

    def base(self, lower: float) -> Fraction:
        """Return what the baseline counts for, if it is worth at least this."""
        return Fraction(lower) if not self.relative else Fraction(0 if self.amount else 1)

    def level(self, value: Fraction) -> Fraction:
        """Return the floor, if this is the baseline's value, or what it counts for."""
        return self.keep * value - self.amount if self.relative else self.floor


class Shares(NamedTuple):
    """How the coin is shared out."""

    # before rounding to a stage; 0 for the anchor, which has the rest
    certified: tuple[Fraction, ...]
    played: tuple[Fraction, ...]
    # who has what is left: the baseline, or a candidate that is certified to be above the floor
    anchor: int


def share_out(
    base: Fraction,
    level: Fraction,
    lower: Sequence[Fraction | None],
    stage: Callable[[int, Fraction], Fraction],
) -> Shares:
    """Return the shares of the baseline and of candidates with these lower bounds; None: one that
    has no share.

    A candidate with L >= level that may be played fully (`stage`) is the anchor: the one with the
    largest L. Otherwise the anchor is the baseline. The others have equal shares r: the largest
    with r sum_i (L_anchor - L_i) <= L_anchor - level, and no more than the anchor has.
    """
    bound = {i: L for i, L in enumerate(lower, 1) if L is not None}
    above = [i for i in bound if bound[i] >= level and stage(i, Fraction(1)) == 1]
    anchor = max(above, key=lambda i: (bound[i], -i), default=0)
    most = bound[anchor] if anchor else base
    others = [i for i in bound if i != anchor]
    prices = sum((max(most - bound[i], Fraction(0)) for i in others), Fraction(0))
    room, cap = most - level, Fraction(1, max(len(bound), 1))
    share = Fraction(0)
    if room >= 0:
        share = cap if prices * cap <= room else room / prices
    certified, played = ([Fraction(0)] * (len(lower) + 1) for _ in range(2))
    for i in others:
        # Where the baseline is not certified but candidate i is, any share but the whole is
        # trusted: the plan says so.
        certified[i] = cap if room < 0 and bound[i] >= level else share
        played[i] = on_grid(stage(i, certified[i]))
    played[anchor] = 1 - sum(played, Fraction(0))
    return Shares(tuple(certified), tuple(played), anchor)


def on_grid(share: Fraction) -> Fraction:
    """Return the largest probability at or below this share that a coin can have."""
    return Fraction(int(share * GRID), GRID)


def keeps(
    base: Fraction, level: Fraction, lower: Sequence[Fraction | None], shares: Sequence[Fraction]
) -> bool:
    """Do these shares keep the floor for certain? A candidate without a bound must have no
    share.
    """
    values = [base, *lower]
    worth = sum(
        (w * v for w, v in zip(shares, values, strict=True) if w and v is not None), Fraction(0)
    )
    return worth >= level and all(v is not None for w, v in zip(shares, values, strict=True) if w)


def stage_below(stages: Sequence[tuple[float, int]], share: Fraction, settled: int) -> Fraction:
    """Return the largest stage at or below a certified share; below the first stage the share
    itself.

    A stage may need a number of settled episodes of its candidate: without them those before it are
    played.
    """
    if not stages:
        return share
    played = min(share, Fraction(stages[0][0]))
    for stage, needed in stages:
        if Fraction(stage) > share or settled < needed:
            break
        played = Fraction(stage)
    return played
