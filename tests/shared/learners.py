"""Learners within an episode, and the episodes they play."""

import surefoot as sf


def begun(agent, seed=0):
    """A learner that has begun an episode, and played action 0 as its first."""
    learner = sf.Learner(agent, seed)
    learner.begin()
    learner.act(0)
    return learner


def play(learner, rewards, state=0):
    """Play action 0, then observe this state and a reward, for each of the rewards."""
    for reward in rewards:
        learner.act(0)
        learner.observe(state, reward)
