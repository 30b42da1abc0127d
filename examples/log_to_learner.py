"""A log of past episodes becomes a baseline with a certificate, and an agent goes on from there."""

import surefoot as sf

world = sf.world("offers")  # stands for your process
sf.sample_log(world, world.baseline, 2000, "past.parquet", seed=0)  # stands for your log

# Count the log: DuckDB reads it, no row is held in memory. Declare what you know, and nothing that
# you only saw.
log = sf.count_log("past.parquet", states=4, actions=3, reward_range=(-1, 10), seed=0)
problem = log.problem(rewards="as logged", start=0, stationary=True, unit="EUR")
counts = log.counts.pool()

# The policy with the highest certificate. Half of delta is for it, half for the agent that begins
# with it.
learnt = sf.robust_vi(counts, problem, delta=0.025)
floor = 92.9
print(learnt.explain(floor, log))
assert learnt.clears(floor)

# The agent begins where the log ends: its counts are evidence, too.
start = sf.hand_over(learnt, floor=floor, kind=sf.EpsMix, counts=counts)
print(start.agent.promise)
run = sf.simulate(world, start.agent, episodes=3000, seed=1, counts=start.counts)
print(run)
assert run.violations == 0

run.counts.save("after.npz")  # go on from here next time: sf.Counts.load("after.npz")
