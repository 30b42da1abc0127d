"""`simulate` episode by episode, in Python: what every loop of a simulation is held against.

It plans through the public agent, plays by `sf.play`, and counts. The compiled loops draw the same
numbers in the same order, so a run has the same bits.
"""

import math
from unittest import mock

import surefoot as sf
from surefoot.run import run, simulate
from surefoot.run.setup import Measured


def plain_loop(context):
    """Plan, evaluate, play, count. Yields after every episode."""
    setup, counts, rng = context.setup, context.counts, context.rng
    in_force, measured = None, Measured(math.nan, math.nan)
    for k in range(setup.episodes):
        following = None if in_force is None else in_force.next(counts)
        if following is None:
            following = context.replan()
        if following is not in_force:
            in_force = following
            measured = setup.measure(in_force.plan.policy)
        plan = in_force.plan
        drawn = plan.toss(rng)
        episode = sf.play(context.world, drawn.policy, rng)
        label = setup.agent.whose(drawn.baseline)
        counts.add_unnumbered(episode.as_learnt(setup.agent.problem, label, plan.entry))
        run.add_episode(context.tally, measured, plan, setup.level)
        yield k + 1


def simulate_plainly(*given, **settings):
    """`sf.simulate` by this loop."""
    with mock.patch.object(simulate, "loop_for", lambda agent, ledger=None: plain_loop):
        return sf.simulate(*given, **settings)
