"""A live process of two states, and a learner that plays in one."""

import gymnasium
from gymnasium.spaces import Discrete


class TwoStates(gymnasium.Env):
    """State 1 pays 1, and each episode starts in state 0. `chance` says how likely state 1 follows.

    `k` counts the episodes from 0, `h` the steps of an episode.
    """

    observation_space = action_space = Discrete(2)
    k = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.k, self.h, self.state = self.k + 1, 0, 0
        return self.state, {}

    def step(self, action):
        reward = float(self.state)
        self.state = int(self.np_random.random() < self.chance(action))
        self.h += 1
        return self.state, reward, False, False, {}


def play(learner, env, episodes):
    """Play so many episodes, each with a seed of its own, and return the learner."""
    for _ in range(episodes):
        learner.begin()
        state, _ = env.reset(seed=learner.episodes)
        for _ in range(learner.agent.problem.H):
            state, reward, *_ = env.step(learner.act(state))
            learner.observe(state, reward)
        learner.end()
    return learner
