"""What is staked on an unknown reward, beside the coin: the same for everybody.

A bet that the mean is above m, with a stake theta, multiplies its capital by 1 - theta + theta x /
m at a reward x (kernels/bets.py). Beside the sum of rewards x it takes the sum of z = x (1 - x),
which is 0 for rewards of 0 and 1, and which is kept rounded down: where it is too small, or was
never counted, a bound is looser, not wrong.

Weights and stakes were chosen by measurement (docs/certificates.md). A run keeps those that it
began with: never change them.
"""

import math
from typing import TypeVar

from surefoot.base.arrays import Ints
from surefoot.base.validation import REWARD_UNITS

COIN = 3 / 4  # the weight of the coin; bets on either side have 1/8
STAKES = (31 / 32, 3 / 4, 3 / 8, 1 / 8, 1 / 32, 1 / 128)
WEIGHTS = (*(3 / 128,) * 4, *(1 / 64,) * 2)  # of the stakes: they add up to 1/8
# -log(1 - theta) - theta, what the square of a gain costs at most: as a series, which loses no
# digits, and rounded up
COSTS = tuple(
    math.fsum(theta**k / k for k in range(2, 2000)) * (1.0 + 2.0**-50) for theta in STAKES
)

_Whole = TypeVar("_Whole", int, Ints)


def between(x: _Whole) -> _Whole:
    """Return x (1 - x) of a reward x, or of each; all are in whole multiples of 2^-20, rounded
    down.
    """
    return x * (REWARD_UNITS - x) // REWARD_UNITS
