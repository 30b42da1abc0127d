"""Long ways to a distant reward."""

import numpy as np

from surefoot.base.validation import require_integer
from surefoot.errors import InvalidModel
from surefoot.worlds.exact import with_baseline
from surefoot.worlds.tabular_mdp import TabularMDP

LEFT, RIGHT = 0, 1


def river_swim(S: int = 6, H: int = 20) -> TabularMDP:
    """Swimming up a river: the current is against you, the big reward is at the far end.

        [0] <──> [1] <──> ... <──> [S-1] left in [0] pays 0.005                 right in [S-1] pays
        1 right: forward 0.35, stay 0.6, back 0.05 (first: 0.6, 0.4; last: stay 0.6, back 0.4);
        left: always one back

    V* = 3.3972639592 at S = 6, H = 20, start in [0]. Baseline: right with probability 0.9.
    """
    require_integer("S", S, 2, InvalidModel)
    require_integer("H", H, 1, InvalidModel)
    P = np.zeros((S, 2, S))
    for s in range(S):
        P[s, LEFT, max(s - 1, 0)] = 1.0
    P[0, RIGHT, [0, 1]] = 0.4, 0.6
    for s in range(1, S - 1):
        P[s, RIGHT, [s - 1, s, s + 1]] = 0.05, 0.6, 0.35
    P[S - 1, RIGHT, [S - 2, S - 1]] = 0.4, 0.6
    r = np.zeros((S, 2))
    r[0, LEFT] = 0.005
    r[S - 1, RIGHT] = 1.0
    return with_baseline("river-swim", P, r, H, np.broadcast_to([0.1, 0.9], (H, S, 2)))


def deep_sea(N: int = 8) -> TabularMDP:
    """A dive of N steps: one wrong turn, and the treasure is out of reach.

        step 1: [0]
        step 2: [0] [1]            left:  column - 1, pays 0.01 / N
        ...                        right: column + 1, pays 0
        step N: [0] ... [N-1]      right from the last column at step N pays 1

    State = column, step = row, H = N. V* = 1 (right N times). Baseline: right with probability
    0.97.
    """
    require_integer("N", N, 1, InvalidModel)
    P = np.zeros((N, 2, N))
    for s in range(N):
        P[s, LEFT, max(s - 1, 0)] = 1.0
        P[s, RIGHT, min(s + 1, N - 1)] = 1.0
    r = np.zeros((N, N, 2))
    r[:, :, LEFT] = 0.01 / N
    r[N - 1, N - 1, RIGHT] = 1.0
    return with_baseline("deep-sea", P, r, N, np.broadcast_to([0.03, 0.97], (N, N, 2)))
