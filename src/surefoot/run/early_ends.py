"""What is paid after an early end: the absorbing state of a learner, and what nobody declared
about it.
"""

import numpy as np

from surefoot.base.validation import require_number
from surefoot.errors import InvalidSetting
from surefoot.model.problem import Problem


def paid_after_end(problem: Problem, absorbing_state: int | None, given: float | None) -> float:
    """Return what is paid at each step after an early end, in the user's units, or refuse what
    nobody declared.
    """
    units = problem.units
    paid = (
        None
        if given is None
        else require_number("after_end", given, "the reward of each step after an early end")
    )
    if paid is not None and not units.admits(paid):
        raise InvalidSetting(
            f"after_end is {paid:g}, outside the declared range ({units.low:g}, {units.high:g}). "
            "It is a reward like the others: declare a range that holds it."
        )
    if absorbing_state is None:
        if paid is not None:
            raise InvalidSetting(
                f"after_end is {paid:g}, but this problem has no absorbing state. Leave after_end "
                "out."
            )
        return units.low  # not read
    _require_absorbing(problem, absorbing_state, paid)
    if not problem.unknown[:, absorbing_state].any():  # the problem says what is paid
        return units.low  # not read
    if paid is None and not units.admits(0.0):
        raise InvalidSetting(
            "After an early end nothing is paid, but 0 is not in the declared range "
            f"({units.low:g}, {units.high:g}), and the problem does not say what state "
            f"{problem.names.state(absorbing_state)} pays. Declare a range that holds 0, or what "
            "is paid: Learner(..., after_end=x), in your units."
        )
    return 0.0 if paid is None else paid


def _require_absorbing(problem: Problem, s: int, after_end: float | None) -> None:
    """Refuse a state that can be left, or that pays by the problem what nobody declared to be
    paid after an end.
    """
    if s == problem.absorbing_state:  # so says the problem
        if after_end is not None:
            raise InvalidSetting(
                f"after_end is {after_end:g}, but the problem says what is paid. Leave after_end "
                "out."
            )
        return
    if problem.knows_support and not problem.never_left(s):
        raise InvalidSetting(
            f"absorbing_state is {s}, but by the problem's `support` this state can be left. "
            "Expected a state of its own for episodes that ended: a mask that leads from there to "
            "itself alone."
        )
    known = ~np.broadcast_to(problem.unknown[:, s], problem.paid_in(s).shape)
    paid = problem.units.step_to_user(problem.paid_in(s)[known])
    declared = 0.0 if after_end is None else after_end
    wrong = paid[np.abs(paid - declared) > problem.units.range.slack]
    if wrong.size:
        raise InvalidSetting(
            f"absorbing_state is {s}, which pays {wrong[0]:g} a step by the problem, but after an "
            f"early end {'nothing' if after_end is None else f'{after_end:g}'} is paid. Choose a "
            "state of its own for episodes that ended; or, if that is what is paid after an end, "
            "say so: Learner(..., after_end=x), or Problem(..., support=, ended_state=)."
        )
