"""A new model in place of an old rule: its share of the traffic grows as returns prove that a
floor is kept.
"""

import numpy as np

import surefoot as sf

visitors = np.random.default_rng(1)  # stands for your traffic
coin = np.random.default_rng(2)


def earned(policy):
    """What a visit brings: 0..50 EUR, most often nothing. Only the simulation knows the chances."""
    bought = visitors.random() < {"baseline": 0.30, "model-2": 0.36}[policy]
    return float(visitors.uniform(10, 50)) if bought else 0.0


# never 15 % below the rule
guard = sf.Guard(floor=sf.Relative(0.15), low=0, high=50, delta=0.05, unit="EUR")
print(guard)
# named: it comes out the same every time
state = guard.begin(fingerprint="rule of March", run="simulated")
state = guard.admit(state, "model-2", fingerprint="sha256:9c41")

waiting = []
for visit in range(2000):
    # recorded before the visitor sees anything
    state, ticket = guard.draw(state, guard.plan(state), coin)
    waiting.append((ticket.number, earned(ticket.policy)))  # the sale is known later ...
    if len(waiting) > 20:
        number, euros = waiting.pop(0)
        state = guard.settle(state, number, euros)  # ... and is settled by the number of its ticket
    if visit % 500 == 499:
        guard.save(state, "guard.npz")
        print(f"after {visit + 1:,} visits: {guard.plan(state)}")

print(guard.plan(state).explain())
assert guard.load("guard.npz") == state
