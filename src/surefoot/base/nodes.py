"""Where the returns of whole episodes are counted, and what is staked on them: the same for
everybody.

A return x between two nodes counts partly for each, in proportion to how near it is: what is spread
over the nodes has the mean of the returns. Whole numbers throughout, so that counts can be added in
any order. The nodes are closer to each other near both ends of the range, where a bet can tell
returns apart best; the ends are nodes, so returns of 0 and 1 lose nothing.

The stakes of the portfolio bound (kernels/portfolio.py) were chosen by measurement, over the
returns of all our worlds and of conversions of 1 to 5 %. A run keeps the nodes and the stakes that
it began with, and they are part of file formats: never change them.
"""

import math
from bisect import bisect_right
from itertools import pairwise

FINE = 2**22  # the range of a return, as nodes divide it
INTERVALS = 64
HALF = [
    round(FINE * math.sin(math.pi * k / (2 * INTERVALS)) ** 2) for k in range(INTERVALS // 2 + 1)
]
# symmetric: FINE - node is a node, too
NODES = (*HALF, *(FINE - node for node in reversed(HALF[:-1])))
EPISODE = 2**20  # what one episode counts in all
OUTSIDE = len(NODES)  # the place in which returns outside their range are counted
PLACES = OUTSIDE + 1
STAKES = tuple(
    x / 8192 for x in (312, 1200, 2528, 4096, 5664, 6992, 7880, 8192, 128, 64, 32, 16, 8, 4, 2, 1)
)
WEIGHTS = (*(3 / 32,) * 8, *(1 / 32,) * 8)  # of the stakes: they add up to 1
LOST = (1.0 + max(b - a for a, b in pairwise(NODES)) / EPISODE) / FINE  # by rounding down


def spread(x: int, low: int, span: int) -> tuple[int, int]:
    """Return the node below a return x in low..low + span, and how much of an episode counts for
    the node above it.

    The rest counts for the node below. What is counted is below x by at most LOST of the span.
    OUTSIDE: x is not in its range.
    """
    if not low <= x <= low + span:
        return OUTSIDE, 0
    place = (x - low) * FINE // span if span > 0 else 0
    k = min(bisect_right(NODES, place) - 1, INTERVALS - 1)
    return k, (place - NODES[k]) * EPISODE // (NODES[k + 1] - NODES[k])
