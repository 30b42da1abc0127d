"""The three worlds of the experiments with DOPE (Bura et al. 2022): each has a cost beside its
reward.
"""

import numpy as np

from surefoot.worlds.exact import lean, with_baseline
from surefoot.worlds.tabular_mdp import TabularMDP

DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)


def inventory() -> TabularMDP:
    """A shop with five shelves, ordering every day for a week.

        stock 0..5 ──order a (at most what fits)──> stock + a
        stock + a ──demand 0..5──> clip(stock + a - demand, 0, 5)

    Cost: (4 + 2a if a > 0) + (stock + a), divided by its largest value. Reward: sum over the
    demands d that leave stock >= 0 of P(the next state d leads to) * 0.08 d, divided by its largest
    value. Larger orders than fit act like the largest that does. H = 7, start empty. Optimum 7;
    with cost <= 3.5: 6.6653215273; with cost <= 0.7: 1.5557105027. Baseline: order up to 4, with a
    slip of 0.1.
    """
    P = np.zeros((6, 6, 6))
    cost = np.zeros((6, 6))
    r = np.zeros((6, 6))
    for s, a in np.ndindex(6, 6):
        order = min(a, 5 - s)
        for d, p in enumerate(DEMAND):
            P[s, a, max(s + order - d, 0)] += p
        cost[s, a] = (4 + 2 * order if order > 0 else 0) + (s + order)
        for d in range(s + order + 1):
            r[s, a] += P[s, a, s + order - d] * 0.08 * d
    rule = np.zeros((7, 6, 6))
    for s in range(6):
        rule[:, s, max(4 - s, 0)] = 1.0
    return with_baseline(
        "inventory",
        P,
        r / r.max(),
        7,
        lean(rule, 0.1),
        cost=np.broadcast_to(cost / cost.max(), (7, 6, 6)),
    )


def media_buffer() -> TabularMDP:
    """A player that streams: fast service costs, an empty buffer hurts.

        buffer 0 <──> 1 <──> ... <──> 9
        up: mu * 0.2, down: (1 - mu) * 0.8, else stay; mu = 0.9 fast, 0.1 slow

    Reward 1 except in the empty buffer (0); cost 1 for fast service. H = 10, start empty. Optimum
    4.6068616477; with cost <= 5: 3.2532957884; with cost <= 1: 1.0165112816. Baseline: fast with
    probability 0.8.
    """
    P = np.zeros((10, 2, 10))
    for s in range(10):
        for a, mu in enumerate((0.9, 0.1)):
            P[s, a, s] += mu * 0.8 + (1 - mu) * 0.2
            P[s, a, min(s + 1, 9)] += mu * 0.2
            P[s, a, max(s - 1, 0)] += (1 - mu) * 0.8
    r = np.ones((10, 2))
    r[0] = 0.0
    cost = np.zeros((10, 10, 2))
    cost[:, :, 0] = 1.0
    return with_baseline(
        "media-buffer", P, r, 10, np.broadcast_to([0.8, 0.2], (10, 10, 2)), cost=cost
    )


def three_rooms() -> TabularMDP:
    """Three rooms in a ring: moving on pays, and costs.

        [0] ──> [1] ──> [2] ──> [0]
        action 0 stays, free, pays 0; action 1 moves on, costs 1, pays (room + 1) / 3

    H = 6, start in room 0. Optimum 4; with cost <= 3: 2; with cost <= 0.6: 0.4. Baseline: moves
    with probability 0.8.
    """
    P = np.zeros((3, 2, 3))
    r = np.zeros((3, 2))
    for s in range(3):
        P[s, 0, s] = 1.0
        P[s, 1, (s + 1) % 3] = 1.0
        r[s, 1] = (s + 1) / 3
    cost = np.zeros((6, 3, 2))
    cost[:, :, 1] = 1.0
    return with_baseline("three-rooms", P, r, 6, np.broadcast_to([0.2, 0.8], (6, 3, 2)), cost=cost)
