"""Measure what bets beside the coin are worth where rewards are unknown (docs/certificates.md has the table).

    python tools/rewards_tables.py [--runs 15]

Each row: a world, how its rewards vary, and for the coin alone and for coin and bets the first optimistic episode and
the regret, medians over the runs. About five minutes on two cores.
"""

import argparse
import statistics

import numpy as np

import surefoot as sf

DELTA = 0.1
RULE = sf.Growth(1.1)  # all were measured with it; the default plans less often at first (docs/scaling.md)
BOUNDS = (sf.KL("supports", rewards="coin"), sf.KL())


def bandit(means, sd):
    """A bandit of 30 contexts and 4 actions, H = 1, whose means lie between these two; sd None: rewards are 0 or 1.

    Otherwise a reward is sd above or below its mean: which, is told by the next state, of which agents know nothing.
    """
    rng = np.random.default_rng(0)
    r = rng.uniform(*means, (30, 4))
    P, r_next = np.zeros((30, 4, 30)), np.repeat(r[..., None], 30, axis=2)
    if sd is None:
        P[..., 0] = 1.0
        return sf.TabularMDP(P, r, H=1, start=np.full(30, 1 / 30), random_rewards=True)
    P[..., :2] = 0.5
    r_next[..., 0] -= sd
    r_next[..., 1] += sd
    return sf.TabularMDP(P, r_next=r_next, H=1, start=np.full(30, 1 / 30))


def cases():
    """Each world, how its rewards vary, its baseline, the floor, the agents, and the episodes of a run."""
    for name in ("dosing", "queue"):
        world = sf.world(name)
        yield name, "not at all", world, world.baseline, world.suggested_floor, (sf.EpsMix, sf.StepMix), 20_000
    even = sf.uniform(1, 30, 4)
    for sd in (0.02, 0.1):
        world = bandit((0.55, 0.85), sd)
        value = world.at_start(sf.policy_value(world, even)[0])
        yield "bandit, means 0.55 to 0.85", f"sd {sd:g}", world, even, 0.95 * value, (sf.EpsMix,), 20_000
    world = bandit((0.05, 0.45), None)
    value = world.at_start(sf.policy_value(world, even)[0])
    yield "bandit, means 0.05 to 0.45", "0 or 1", world, even, 0.9 * value, (sf.EpsMix,), 50_000


def measured(runs, most):
    """The first optimistic episode, and the regret."""
    first = statistics.median(most + 1 if run.first_optimistic is None else run.first_optimistic for run in runs)
    shown = f"> {most:,}" if first > most else f"{first:,.0f}"
    return shown, f"{statistics.median(run.regret for run in runs):,.0f}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    seeds, violations = range(parser.parse_args().runs), 0
    print("| world | rewards vary | agent | optimistic: coin | coin and bets | regret: coin | coin and bets |")
    print("|---|---|---|---|---|---|---|")
    for name, vary, world, baseline, floor, kinds, episodes in cases():
        problem = world.problem.forget(rewards=True)
        for kind in kinds:
            found = []
            for bounds in BOUNDS:
                agent = kind(problem, baseline, floor, delta=DELTA, bounds=bounds, pooled=True, replan=RULE)
                runs = sf.simulate_many(world, agent, episodes, seeds, jobs=2)
                violations += sum(run.violations for run in runs)
                found.append(measured(runs, episodes))
            waiting, regret = zip(*found, strict=True)
            print("|", " | ".join([name, vary, kind.__name__, *waiting, *regret]), "|", flush=True)
    print(violations, "episodes below the floor")


if __name__ == "__main__":
    main()
