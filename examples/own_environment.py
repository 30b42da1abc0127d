"""Your own Gymnasium environment, paid in euros, which ends by itself: learn in it live, stop,
go on, look at it.
"""

from pathlib import Path

import gymnasium
import numpy as np

import surefoot as sf


class Shop(gymnasium.Env):
    """A week of six days in a shop. The state is how many customers come; each day is at full
    price, or on sale.
    """

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)
    # answers speak of these
    state_names, action_names = ("few", "some", "many"), ("full price", "sale")

    def reset(self, *, seed=None, options=None):
        # obey the seed: then a run that was stopped goes on with the same bits
        super().reset(seed=seed)
        self.customers, self.day = 1, 0
        return self.customers, {}

    def step(self, action):
        sold = self.np_random.binomial(4, (0.15, 0.5, 0.85)[self.customers])
        euros = sold * (5.0, 2.0)[action]
        more = self.np_random.random() < (0.4, 0.9)[action]  # a sale is told to friends
        self.customers = int(np.clip(self.customers + (1 if more else -1), 0, 2))
        self.day += 1
        # terminated after the sixth day, and never before
        return self.customers, euros, self.day == 6, False, {}


# Only the range of what ONE step can pay is declared. Rewards and dynamics are learnt.
problem = sf.from_gymnasium(
    Shop(), horizon=6, reward_range=(0, 20), start=1, stationary=True, unit="EUR"
)
today = np.array([[0.9, 0.1]] * 3)  # the policy in use: one day in ten is a sale, however many come
baseline = sf.embed_policy(problem, today)

# No week's policy may be worth less than 90 % of that. (A sale every day would be worth 68 % of
# it.)
agent = sf.EpsMix(problem, baseline, floor=sf.Relative(0.1), delta=0.05, pooled=True)
files = {"save": "shop.npz", "ledger": "shop.ledger"}
for file in files.values():
    Path(file).unlink(missing_ok=True)  # a run never overwrites a file: this one begins anew
sf.learn(Shop(), agent, episodes=300, seed=0, **files)
# it goes on, also after a stop
run = sf.learn(Shop(), agent, episodes=3000, seed=0, resume=True, **files)
print(run)
print(agent.plan(run.counts).explain())

# What was gained. Nobody knows what the baseline is worth: its own weeks tell, within about 1.96
# standard errors.
weeks, told = run.history.baseline_episodes, np.nan_to_num(run.history.baseline_mean)
before = told @ weeks / weeks.sum()
squares = run.history.baseline_squares.sum() + weeks @ (told - before) ** 2
error = 1.96 * np.sqrt(squares) / weeks.sum()
last, gain = run.history.mean[-100:].mean(), run.mean_return - before
print(
    f"A week: {before:.2f} ± {error:.2f} EUR with the baseline ({weeks.sum()} weeks), {last:.2f} "
    "EUR in the last weeks"
)
print(
    f"In all: {run.episodes * gain:+,.0f} ± {run.episodes * error:,.0f} EUR beside the baseline's, "
    "with learning"
)
sf.plot_run(run, "shop.png")
sf.plot_plan(agent.plan(run.counts), "shop-plan.png")
