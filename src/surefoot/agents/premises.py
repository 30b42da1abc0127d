"""The premise of every promise here, that the baseline is above the floor, and how well it is known: its grade."""

from typing import Literal

Grade = Literal["certified by data", "vouched for", "unknown", "none needed"]


def grade(floor: float, proved: float, word: float) -> Grade:
    """What is known of a baseline: `proved` by data, or by somebody's word (-inf: nothing); a floor of 0 asks nothing.

    A relative floor is one of 0 here: it is measured from the baseline, which cannot be below it.
    """
    if floor <= 0.0:
        return "none needed"
    if proved >= floor:
        return "certified by data"
    return "vouched for" if word >= floor else "unknown"
