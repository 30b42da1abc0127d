"""Learners within an episode, and the episodes they play."""

import surefoot as sf


def begun(agent, state=0):
    """A learner that has begun an episode, and acted in its first state."""
    learner = sf.Learner(agent, seed=0)
    learner.begin()
    learner.act(state)
    return learner


def play(learner, rewards, state=0):
    """Act in state 0, then observe this state and a reward, for each of the rewards."""
    for reward in rewards:
        learner.act(0)
        learner.observe(state, reward)
