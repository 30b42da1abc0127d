"""A process that has the learner's seed makes no certificate false: its numbers are not the
learner's.

Two actions that win with probability 0.45 and 0.6, and a uniform baseline. Where an action and its
outcome come from one number, the counts show 0.9 and 0.2, and the worse action is soon certified to
be worth more than it is. A run is false if ever a plan is certified to be worth more than its
policy is.

- False alarm: with independent numbers a run is false with probability at most delta = 0.05, so
  more than 9 of 40 are with probability at most 3e-5. Seeds are fixed.
- Misses: a stream that makes a run false with probability 0.5 or more is missed with probability at
  most 4e-4. A stream of children of the seed makes 40 of 40 false, and so does ours if the process
  reads it: both are controls.
"""

import numpy as np

import surefoot as sf
from surefoot.run import learner as live_learner
from surefoot.run.streams import FIRST_ACTION, CounterStream

DELTA, RUNS, EPISODES, MOST = 0.05, 40, 100, 9
WIN = np.array([0.45, 0.6])


def agent():
    """From state 0 to 1, which pays, or to 2, which does not."""
    P = np.zeros((3, 2, 3))
    P[0] = np.stack([0 * WIN, WIN, 1 - WIN], axis=1)
    P[1, :, 1] = P[2, :, 2] = 1.0
    world = sf.TabularMDP(P, np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), H=2)
    return sf.StepMix(world.problem, sf.uniform(2, 3, 2), floor=0.5, delta=DELTA, replan=0.2)


def is_false(seed, numbers):
    """Is any plan of this run certified to be worth more than it is?"""
    learner = sf.Learner(agent(), seed)
    for k in range(EPISODES):
        plan = learner.begin()
        if plan.certified and plan.lower > plan.policy[0, 0] @ WIN + 1e-9:
            return True
        u = numbers(seed, k)
        s = 1 if u < WIN[learner.act(0)] else 2
        learner.observe(s)
        learner.act()
        learner.observe(s)
        learner.end()
    return False


def false_runs(numbers):
    return sum(is_false(seed, numbers) for seed in range(RUNS))


def child(seed, k):
    """The first number of child k of the seed: one generator for each episode, by numpy's own
    advice.
    """
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(EPISODES)[k]).random()


def ours(seed, k):
    """The very number from which the learner draws its first action."""
    return CounterStream(seed).at(k, FIRST_ACTION).random()


def test_children_of_the_learners_seed_are_not_its_numbers():
    assert false_runs(child) <= MOST


class Children:
    """A stream that draws a whole episode from one child of the seed."""

    def __init__(self, seed):
        self.seed = seed

    def begin(self, episode):
        self.rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(episode,)))

    def planning(self, episode):
        return np.random.default_rng(episode)

    def coin(self):
        return self.rng

    def action(self, h):
        return self.rng


def test_control_a_stream_of_children_of_the_seed(monkeypatch):
    monkeypatch.setattr(live_learner, "stream_of", lambda counts, seed: Children(seed))
    assert false_runs(child) > 35


def test_control_a_process_that_reads_the_learners_own_numbers():
    """So the test has power against this stream, too."""
    assert false_runs(ours) > 35
