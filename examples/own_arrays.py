"""A world that you know, as arrays: a machine that wears out. Simulate an agent before you let
it run.
"""

import numpy as np

import surefoot as sf

# Three states of a machine: good, worn, broken. Two actions: run it gently, run it hard.
P = np.array(
    [  # P[state, action, next state]
        [[0.90, 0.10, 0.00], [0.70, 0.20, 0.10]],
        [[0.00, 0.80, 0.20], [0.00, 0.60, 0.40]],
        [[0.50, 0.00, 0.50], [0.50, 0.00, 0.50]],  # broken: repaired every other day
    ]
)
euros = np.array([[120.0, 160.0], [80.0, 120.0], [-40.0, -40.0]])  # what a day pays
# an episode has ten days
world = sf.TabularMDP(P, euros, s1=0, H=10, units=sf.Units(-40, 160, name="EUR"))

# the policy in use: gently, nine days of ten
gently = np.broadcast_to(np.array([0.9, 0.1]), (10, 3, 2))
today = float(sf.policy_value(world, gently)[0, world.s1])
best = sf.solve(world).value
print(f"The policy in use earns {today:.0f} EUR in ten days, the best one {best:.0f} EUR.")

# The agent never sees P. Ten per cent less than today is the floor; delta is the probability that
# it may fail at all.
agent = sf.EpsMix(world.problem, gently, floor=0.9 * today, delta=0.05, pooled=True)
run = sf.simulate(world, agent, episodes=20_000, seed=0)
print(f"{run.violations} of 20,000 episodes were below the floor of {0.9 * today:.0f} EUR.")
print(
    f"It left the policy in use at episode {run.off_baseline}, and explored alone from "
    f"{run.first_optimistic} on."
)
assert run.violations == 0

print(agent.plan(run.counts).explain())
sf.plot_returns(run, "own_arrays.png")
