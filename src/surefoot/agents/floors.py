"""Floors: a number, a share of what the baseline is worth, or an amount below it."""

import math
from dataclasses import dataclass

from surefoot.base.validation import at_least, freeze, require_number
from surefoot.errors import InvalidSetting
from surefoot.model.problem import Problem
from surefoot.model.units import Units


@dataclass(frozen=True)
class Relative:
    """A floor relative to the baseline: never below 1 - `max_loss` of what it is worth, though
    nobody knows how much that is. `Relative(0.05)` is "95 % of what we have today". The user's
    units must have no negative rewards.
    """

    max_loss: float

    def __post_init__(self) -> None:
        meaning = "a share strictly between 0 and 1 that may be given up, such as 0.05"
        max_loss = require_number("max_loss", self.max_loss, meaning)
        if not 0.0 < max_loss < 1.0:
            raise InvalidSetting(f"max_loss is {max_loss:g}, expected {meaning}.")
        freeze(self, max_loss=max_loss)

    def of(self, value: float, problem: Problem) -> float:
        """Return the floor, if this is the baseline's value. Shares are of values in the user's
        units.
        """
        return max(0.0, (1.0 - self.max_loss) * value - self.max_loss * user_zero(problem))

    def under(self, value: float, problem: Problem) -> float:
        """Return the floor, if this is the baseline's value; both are in the user's units."""
        require_share(problem)
        return max(self.below(value), problem.lowest)

    def below(self, value: float) -> float:
        """Return the same, whatever the lowest return is."""
        return (1.0 - self.max_loss) * value

    def text(self, units: Units) -> str:
        """Return the floor for people. A share has no units."""
        return str(self)

    def __str__(self) -> str:
        return f"{at_least(100 * (1 - self.max_loss))} % of the baseline"


@dataclass(frozen=True)
class Below:
    """A floor relative to the baseline: never more than `amount` below what it is worth, though
    nobody knows how much that is. The amount is in the units of the rewards, per episode, which may
    be of any sign.
    """

    amount: float

    def __post_init__(self) -> None:
        meaning = "an amount > 0, in the units of the rewards, that may be lost per episode"
        amount = require_number("amount", self.amount, meaning)
        if not 0.0 < amount < math.inf:
            raise InvalidSetting(f"amount is {amount:g}, expected {meaning}.")
        freeze(self, amount=amount)

    def rescaled(self, problem: Problem) -> float:
        """Return the amount as bounds use it, not rounded up."""
        return (
            math.nextafter(self.amount / problem.units.scale, 0.0)
            if problem.units.own
            else self.amount
        )

    def of(self, value: float, problem: Problem) -> float:
        """Return the floor, if this is the baseline's value; both are rescaled."""
        return max(0.0, value - self.rescaled(problem))

    def under(self, value: float, problem: Problem) -> float:
        """Return the floor, if this is the baseline's value; both are in the user's units."""
        return max(self.below(value), problem.lowest)

    def below(self, value: float) -> float:
        """Return the same, whatever the lowest return is."""
        return value - self.amount

    def text(self, units: Units) -> str:
        """Return the floor for people, with the name of its units."""
        return f"{units.at_most(self.amount)} below the baseline"

    def __str__(self) -> str:
        return self.text(Units())


BaselineFloor = Relative | Below  # measured from the baseline, which therefore cannot break it
Floor = float | BaselineFloor


def require_share(problem: Problem) -> None:
    """Refuse a problem with negative rewards: a share of a value is below it only where values
    are not negative.
    """
    if problem.units.low < 0.0:
        raise InvalidSetting(
            "A share of the baseline's value needs rewards that are never negative, but they may "
            f"be as low as {problem.units.low:g}. Use sf.Below(amount), or a floor in units of "
            "return."
        )


def user_zero(problem: Problem) -> float:
    """Return what a return of 0 in this library's units is in the user's units, measured in this
    library's.
    """
    return problem.units.steps * problem.units.low / problem.units.scale
