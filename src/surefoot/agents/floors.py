"""Floors: a number, or a share of what the baseline is worth."""

from dataclasses import dataclass

from surefoot.base.aliases import alias
from surefoot.base.validation import either, freeze, require_number
from surefoot.errors import InvalidSetting
from surefoot.task.problem import Problem


@dataclass(frozen=True, init=False)
class Relative:
    """A floor relative to the baseline: never below 1 - `max_loss` of what it is worth, though nobody knows how much
    that is. `Relative(0.05)` is "95 % of what we have today". The user's units must have no negative rewards."""

    max_loss: float

    def __init__(self, max_loss: float | None = None, *, give: float | None = None) -> None:
        """Make the floor; `give` is the former name of `max_loss`."""
        meaning = "a share strictly between 0 and 1 that may be given up, such as 0.05"
        max_loss = require_number("max_loss", either("max_loss", max_loss, "give", give), meaning)
        if not 0.0 < max_loss < 1.0:
            raise InvalidSetting(f"max_loss is {max_loss:g}, expected {meaning}.")
        freeze(self, max_loss=max_loss)

    give = alias("max_loss")

    def of(self, value: float, problem: Problem) -> float:
        """Return the floor, if this is the baseline's value. Shares are of values in the user's units."""
        return max(0.0, (1.0 - self.max_loss) * value - self.max_loss * user_zero(problem))

    def __str__(self) -> str:
        return f"{100 * (1 - self.max_loss):g} % of the baseline"


Floor = float | Relative


def require_share(problem: Problem) -> None:
    """Refuse a problem with negative rewards: a share of a value is below it only where values are not negative."""
    if problem.units.low < 0.0:
        raise InvalidSetting(
            f"A share of the baseline's value needs rewards that are never negative, but they may be as low as "
            f"{problem.units.low:g}. Use a floor in units of return."
        )


def user_zero(problem: Problem) -> float:
    """Return what a return of 0 in this library's units is in the user's units, measured in this library's."""
    return problem.units.steps * problem.units.low / problem.units.scale
