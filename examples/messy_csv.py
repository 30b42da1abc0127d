"""Your own CSV with semicolons, other column names and mistakes in it: find them, then learn a
certified policy.

Nothing about the file is guessed: that semicolons separate its fields is declared, and a decimal
comma is a mistake.
"""

import csv
from pathlib import Path

import numpy as np

import surefoot as sf

# The log of a shop, as it may come out of a database: one row for each contact with each customer.
world = sf.world("offers")  # stands for your process
rng = np.random.default_rng(0)
segments, offers = ("new", "regular", "lapsed", "gone"), ("none", "mail", "discount")
rows = []
for customer in range(400):
    seen = sf.play(world, world.baseline, rng)
    for week, (s, a) in enumerate(zip(seen.states, seen.actions, strict=False)):
        paid = world.r[week, s, a]
        rows.append(
            [f"c{customer}", week, segments[s], offers[a], paid, segments[seen.states[week + 1]]]
        )

clean = [list(row) for row in rows]
rows.append(rows[17])  # a row that occurs twice
rows[40][3] = ""  # an offer that nobody wrote down
del rows[100]  # a week that is missing
rows[150][4] = str(rows[150][4]).replace(".", ",")  # 1,5 for 1.5, as some countries write it
rows[175].append("see letter")  # a field that the header has not
# a customer who is suddenly in another segment
rows[200][5] = "regular" if rows[200][5] != "regular" else "new"


def write(path, table):
    """Write the rows with the column names of the database."""
    with Path(path).open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(
            [["customer", "week", "segment", "offer", "euros", "next_segment"], *table]
        )


columns = {
    "episode": "customer",
    "step": "week",
    "state": "segment",
    "action": "offer",
    "reward": "euros",
    "next_state": "next_segment",
}
write("messy.csv", rows)
# every kind of mistake, how often, and where
print(sf.check_log("messy.csv", columns=columns, delimiter=";"))

# corrected at the source: a row left out because of how it went would be a false log
write("clean.csv", clean)
declared = {"states": segments, "actions": offers, "reward_range": (-1, 10)}
log = sf.count_log("clean.csv", columns=columns, delimiter=";", seed=0, **declared)
problem = log.problem(rewards="as logged", start="new", stationary=True, unit="EUR")
learnt = sf.robust_vi(log.counts.pool(), problem, delta=0.05)
floor = 90.0  # EUR per customer: what the shop can live with
print(learnt.explain(floor, log))
print(
    "certified" if learnt.clears(floor) else "not certified yet",
    f"to be worth {learnt.lower:.2f} EUR or more",
)
