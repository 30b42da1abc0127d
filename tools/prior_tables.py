"""Write docs/prior-tables.md: what each prior of the KL balls costs, and when the baseline is certified with it.

    python tools/prior_tables.py

A few minutes on two cores.
"""

import math
from pathlib import Path

import numpy as np

import surefoot as sf

DOCS = Path(__file__).parents[1] / "docs"
DELTA = 0.1
MOST = 2**40  # episodes
PRIORS = (0.5, "1/S", "supports")
SUCCESSORS = {"three successors, 600, 300, 100 times": (600, 300, 100), "one successor": (1000,)}
SUCCESSORS["ten successors, 100 times each"] = (100,) * 10
SUCCESSORS["five successors, 889, 100, 9, 1, 1 times"] = (889, 100, 9, 1, 1)


def nats(n_i, S, prior):
    """What the ball of these counts costs beside log(1/delta_0): n eps, with S possible next states."""
    counted = np.zeros(S, dtype=np.int64)
    counted[: len(n_i)] = n_i
    eps = sf.KL(prior).radius_of(counted, np.ones(S, dtype=np.bool_), 0.0)
    return float(eps) * sum(n_i)


def in_expectation(world, baseline, episodes, pooled):
    """The expected counts of so many episodes of the baseline, rounded to whole numbers."""
    n_sas = episodes * sf.occupancy(world, baseline)[..., None] * world.P
    n_sas = n_sas.sum(axis=0) if pooled else n_sas
    n_start = np.rint(episodes * world.start).astype(np.int64)
    return sf.Counts(np.rint(n_sas).astype(np.int64), world.H, n_start=n_start)


def least(holds):
    """The least number of episodes from which on this holds, by bisection."""
    fails, k = 0, 1
    while not holds(k):
        fails, k = k, 2 * k
        if k > MOST:
            return math.inf
    while k - fails > 1:
        middle = (fails + k) // 2
        fails, k = (fails, middle) if holds(middle) else (middle, k)
    return k


def episodes_until(world, baseline, floor, prior):
    """After how many episodes of the baseline its floor is certified by the model, and those until anything is."""
    pooled = world.stationary
    agent = sf.EpsMix(world.problem, baseline, floor, delta=DELTA, bounds=sf.KL(prior), pooled=pooled, returns=None)

    def decision(episodes):
        return agent.decide(agent.evidence(in_expectation(world, baseline, episodes, pooled)))

    def of_baseline(episodes):
        found = decision(episodes)
        return found.by_model >= found.floor

    return least(of_baseline), least(lambda episodes: decision(episodes).reached)


def worlds():
    """Every packaged world with its suggested floor, and FrozenLake with nine tenths of its baseline's value."""
    for name in sf.FAMILIES:
        world = sf.world(name)
        yield name, world, world.baseline, world.suggested_floor
    lake = sf.from_gymnasium("FrozenLake-v1", horizon=50)
    baseline = 0.8 * sf.solve(lake).policy + 0.2 / lake.A
    yield "FrozenLake", lake, baseline, 0.9 * lake.at_start(sf.policy_value(lake, baseline)[0])


def row(*cells):
    """A row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def page():
    """The page, line by line."""
    yield "# Priors of the KL balls, measured\n"
    yield "Written by `python tools/prior_tables.py`. `sf.KL(alpha)` with each alpha.\n"
    yield "## Nats per pair\n"
    yield "n eps of one pair at n = 1,000, without log(1/delta_0), with S possible next states.\n"
    yield row("seen", "S", *PRIORS)
    yield row(*["---"] * (2 + len(PRIORS)))
    for seen, n_i in SUCCESSORS.items():
        for S in (10, 50, 500, 5000, 100_000):
            yield row(seen, f"{S:,}", *(f"{nats(n_i, S, prior):.1f}" for prior in PRIORS))
    for known in (False, True):
        given = "which next states are possible is known" if known else "every next state is possible"
        yield f"\n## Episodes of the baseline until its floor is certified; {given}\n"
        yield (
            f"By the model alone, EpsMix, delta = {DELTA}, counts pooled where the world is stationary, expected "
            "counts in place of drawn ones. *off*: until the floor is certified of the baseline or of the optimistic "
            "policy.\n"
        )
        yield row("world", "S", *PRIORS, *(f"off, {prior}" for prior in PRIORS))
        yield row(*["---"] * (2 + 2 * len(PRIORS)))
        for name, world, baseline, floor in worlds():
            known_world = world.with_support() if known else world
            found = [episodes_until(known_world, baseline, floor, prior) for prior in PRIORS]
            shown = ["never" if k == math.inf else f"{k:,}" for which in zip(*found, strict=True) for k in which]
            yield row(name, world.S, *shown)


if __name__ == "__main__":
    lines = []
    for line in page():
        print(line, flush=True)
        lines.append(line)
    (DOCS / "prior-tables.md").write_text("\n".join(lines) + "\n")
