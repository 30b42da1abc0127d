"""The exact probability that a bound ever fails, by dynamic programming over counts. Nothing is
drawn.
"""

from collections import defaultdict


def crossing_probability(draws, crosses, dropped=0.0):
    """The probability that the counts of independent outcomes are, after some draw, where
    `crosses(counts)` says.

    `draws` has the probability of each outcome, draw by draw. Counts that are no more likely than
    `dropped` are left out.
    """
    alive, crossed = {(0,) * len(draws[0]): 1.0}, 0.0
    for shares in draws:
        after = defaultdict(float)
        for counts, p in alive.items():
            for i, share in enumerate(shares):
                if share > 0.0:
                    after[*counts[:i], counts[i] + 1, *counts[i + 1 :]] += p * share
        crossing = {counts for counts in after if crosses(counts)}
        crossed += sum(after[counts] for counts in crossing)
        alive = {c: p for c, p in after.items() if p > dropped and c not in crossing}
    return crossed
