"""The premise of every promise is that the baseline is above the floor. How well that is known is its status."""

from typing import Literal

PremiseStatus = Literal["certified by data", "asserted by the user", "unknown", "none needed"]


def premise_status(floor: float, proved: float, asserted: float) -> PremiseStatus:
    """Return how well it is known that the baseline is worth the floor, by what is `proved` or `asserted` of it.

    -inf stands for nothing. A floor of 0 needs no premise, and a relative floor is one of 0 here: it is measured from
    the baseline, which cannot be below it.
    """
    if floor <= 0.0:
        return "none needed"
    if proved >= floor:
        return "certified by data"
    return "asserted by the user" if asserted >= floor else "unknown"
