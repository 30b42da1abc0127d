"""Small worlds in which a wrong guess hurts: this is where safety is tested."""

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.validation import require_integer, require_number
from surefoot.errors import InvalidModel
from surefoot.worlds.exact import with_baseline
from surefoot.worlds.tabular_mdp import TabularMDP

START, GOOD, BAD = 0, 1, 2


def _gate(good: tuple[float, float]) -> tuple[Floats, Floats]:
    """Start, good, bad; two steps; each action's chance of good; good pays 1 at the second step."""
    P = np.zeros((2, 3, 2, 3))
    for a, chance in enumerate(good):
        P[0, :, a, GOOD] = chance
        P[0, :, a, BAD] = 1.0 - chance
        P[1, :, a] = np.eye(3)
    r = np.zeros((2, 3, 2))
    r[1, GOOD] = 1.0
    return P, r


def trap() -> TabularMDP:
    """One choice between two doors, and one of them is below the floor.

                 ┌─ action 0: 0.70 ─> good ── pays 1
        start ──┤
                 └─ action 1: 0.55 ─> good ── pays 1      (else: bad, pays 0)

    S = 3, H = 2. The baseline takes action 0 with probability 0.9 and is worth 0.685; V* = 0.7; the
    floor is 0.6, which action 1 alone (0.55) breaks.
    """
    P, r = _gate((0.7, 0.55))
    return with_baseline("trap", P, r, 2, np.broadcast_to([0.9, 0.1], (2, 3, 2)), floor=0.6)


def trap_near_tie(gap: float = 0.01) -> TabularMDP:
    """The trap with two actions that are hard to tell apart, and a floor between them.

                 ┌─ action 0: 0.70       ─> good ── pays 1
        start ──┤
                 └─ action 1: 0.70 - gap ─> good ── pays 1

    The floor lies halfway between the two, at 0.7 - gap/2; the baseline (action 0 with 0.9) is
    above it.
    """
    if not 0.0 < require_number("gap", gap, "a number in (0, 0.7]", InvalidModel) <= 0.7:
        raise InvalidModel(f"gap is {gap}, expected a number in (0, 0.7].")
    P, r = _gate((0.7, 0.7 - gap))
    return with_baseline(
        "trap-near-tie", P, r, 2, np.broadcast_to([0.9, 0.1], (2, 3, 2)), floor=0.7 - gap / 2
    )


def trap_long(H: int = 6) -> TabularMDP:
    """A row of gates: whoever takes the wrong turn once stands at the side of the road until the
    end.

        road ──0: 0.98──> road ──0: 0.98──> road ── ... ──> pays 1 at the last step
          └────1: 0.80──> road,   else ──> roadside, pays 0

    Action 0 keeps the road with 0.98, action 1 with 0.80; the last step pays 1 on the road.
    Baseline: action 0 with probability 0.95.
    """
    require_integer("H", H, 2, InvalidModel)
    P = np.zeros((2, 2, 2))
    P[0, 0], P[0, 1] = [0.98, 0.02], [0.80, 0.20]
    P[1, :, 1] = 1.0
    r = np.zeros((H, 2, 2))
    r[-1, 0] = 1.0
    return with_baseline("trap-long", P, r, H, np.broadcast_to([0.95, 0.05], (H, 2, 2)))


def trap_pit(H: int = 6) -> TabularMDP:
    """A field with a pit: a little more pay now, nothing for the rest of the episode if it goes
    wrong.

        field ──0: pays 0.5, always back to the field
          └────1: pays 0.6, falls into the pit with 0.3
        pit ── pays 0 for the rest of the episode

    Greedy for one step is wrong at all steps but the last. Baseline: action 0 with 0.95.
    """
    require_integer("H", H, 2, InvalidModel)
    P = np.zeros((2, 2, 2))
    P[0, 0], P[0, 1] = [1.0, 0.0], [0.7, 0.3]
    P[1, :, 1] = 1.0
    r = np.array([[0.5, 0.6], [0.0, 0.0]])
    return with_baseline("trap-pit", P, r, H, np.broadcast_to([0.95, 0.05], (H, 2, 2)))
