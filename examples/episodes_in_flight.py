"""Several episodes at once: plan once, hand the policy to many, and count them when ALL of them
have ended.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import surefoot as sf

world = sf.world("dosing")  # stands for your process
problem, patients_at_once = world.problem, 20
agent = sf.EpsMix(problem, world.baseline, floor=4.2, delta=0.05, pooled=True)
counts = sf.Counts.zeros(problem, pooled=True)
rng = np.random.default_rng(0)  # for the coins


def treat(number, policy):
    """Play one episode; it may take as long as it likes."""
    return sf.play(world, policy, np.random.default_rng([7, number]))


played = 0
with ThreadPoolExecutor(patients_at_once) as pool:
    for _ in range(100):
        plan = agent.plan(counts)  # certified for every episode that it is played in, now or later
        # a coin for each
        drawn = [plan.draw(rng, episode=played + i) for i in range(patients_at_once)]
        under_way = [pool.submit(treat, played + i, policy) for i, (policy, _) in enumerate(drawn)]
        # Wait for all. Counting those that end first would select by how they went, and void the
        # promise.
        for (_, by_baseline), episode in zip(drawn, under_way, strict=True):
            seen = episode.result()
            counts.add(sf.Episode.of(problem, seen.states, seen.actions, baseline=by_baseline))
        played += patients_at_once

plan = agent.plan(counts)
print(f"{played:,} episodes, {patients_at_once} at once: {plan}")
assert plan.safety == "certified"
# Outcomes that come weeks late, or never? A guard counts in the order of dispatch:
# examples/guard_a_model.py.
