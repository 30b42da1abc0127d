"""The premise of every promise: the baseline is above the floor. How well that is known is its status."""

from typing import Literal

PremiseStatus = Literal["certified by data", "asserted by the user", "unknown", "none needed"]


def premise_status(floor: float, proved: float, word: float) -> PremiseStatus:
    """What is known of a baseline: `proved` by data, or by somebody's word (-inf: nothing); a floor of 0 asks nothing.

    A relative floor is one of 0 here: it is measured from the baseline, which cannot be below it.
    """
    if floor <= 0.0:
        return "none needed"
    if proved >= floor:
        return "certified by data"
    return "asserted by the user" if word >= floor else "unknown"
