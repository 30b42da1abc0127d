"""A contextual bandit: customers of 12 kinds, 4 offers, one decision each. Which offer is taken,
nobody knows.
"""

import numpy as np

import surefoot as sf

KINDS, OFFERS = 12, 4
rng = np.random.default_rng(0)
taken = rng.uniform(0.1, 0.7, (KINDS, OFFERS))  # the truth, which only this simulation knows

# One step, so H = 1, and nothing comes after it: the next state is always called 0. Which rewards
# are paid is unknown (0 or 1; only the shape of this table is read), and so is how often each kind
# of customer comes.
over = np.zeros((KINDS, OFFERS, KINDS), dtype=bool)
over[:, :, 0] = True
problem = sf.Problem(
    np.zeros((KINDS, OFFERS)), H=1, stationary=True, start="unknown", unknown=True, support=over
)
baseline = sf.uniform(1, KINDS, OFFERS)  # the policy in use: any offer
agent = sf.EpsMix(problem, baseline, floor=sf.Relative(0.1), delta=0.05, pooled=True)

learner = sf.Learner(agent, seed=0)
returns = []
for _ in range(4000):
    learner.begin()  # the policy is fixed before the customer comes
    kind = int(rng.integers(KINDS))
    offer = learner.act(kind)
    paid = float(rng.random() < taken[kind, offer])
    learner.observe(0, paid)
    learner.end()
    returns.append(paid)

print(f"by the policy in use: {taken.mean():.3f}; at best: {taken.max(axis=1).mean():.3f}")
print(
    f"the first 1,000 customers: {np.mean(returns[:1000]):.3f}; the last: "
    f"{np.mean(returns[-1000:]):.3f}"
)
plan = agent.plan(learner.counts)
print(plan.explain())
assert plan.safety == "certified"
