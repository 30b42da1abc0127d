"""Your own Gymnasium environment, paid in euros: learn in it live, with a saved run, a ledger and a picture."""

import gymnasium
import numpy as np

import surefoot as sf


class Shop(gymnasium.Env):
    """A week in a shop. The state is how many customers come: few, some, many. Actions: no discount, a discount."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)
    state_names, action_names = ("few", "some", "many"), ("no discount", "discount")  # answers speak of these

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # obey the seed: then a run that was stopped goes on with the same bits
        self.customers, self.day = 1, 0
        return self.customers, {}

    def step(self, action):
        sold = self.np_random.binomial(4, (0.2, 0.5, 0.8)[self.customers])
        euros = sold * (5.0 if action == 0 else 4.0) - (5.0 if action == 1 and sold == 0 else 0.0)  # -5..20
        more = self.np_random.random() < (0.35 if action == 0 else 0.65)  # a discount is told to friends
        self.customers = int(np.clip(self.customers + (1 if more else -1), 0, 2))
        self.day += 1
        return self.customers, euros, self.day == 7, False, {}


# Only the range of what ONE step can pay is declared. Rewards and dynamics are learnt.
problem = sf.from_gymnasium(Shop(), horizon=7, reward_range=(-5, 20), start=1, stationary=True, unit="EUR")
never = np.zeros((3, 2))
never[:, 0] = 1.0  # the policy in use: no discount
baseline = sf.embed_policy(problem, never)

agent = sf.EpsMix(problem, baseline, floor=sf.Below(15.0), delta=0.05, pooled=True)  # at most 15 EUR a week less
files = {"save": "shop.npz", "ledger": "shop.ledger"}
sf.learn(Shop(), agent, episodes=300, seed=0, **files)
run = sf.learn(Shop(), agent, episodes=600, seed=0, resume=True, **files)  # it goes on, also after a stop
print(run)
print(agent.plan(run.counts).explain())
sf.plot_run(run, "shop.png")
