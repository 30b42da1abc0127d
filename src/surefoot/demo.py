"""A first look: the paper's three learners on one of its worlds."""

from collections.abc import Iterator

from surefoot.agents import BPIUCBVI, Agent, EpsMix, StepMix
from surefoot.bounds import Bernstein
from surefoot.exact import solve
from surefoot.mdp import random_mdp
from surefoot.policy import boltzmann
from surefoot.run import Run
from surefoot.simulation import simulate

FLOOR = 2.0
DELTA = 0.1
SCALE = 0.01
SETTING = "random world S=5, A=5, H=3 (seed 1), Boltzmann baseline eta=10"
WHY_SCALED = (
    "A bonus scaled by hand proves nothing; it is scaled here so that there is something to see in few episodes. "
    "The paper's lower bound takes off 22 H^2 beta / n at every step, beta = log(SAH/delta') + S log(8e(n+1)) being "
    "about 80 here: a pair needs tens of thousands of visits before the bound says anything. With these constants "
    "StepMix plays the baseline alone for the first 2.79 million episodes of this world and is fully optimistic from "
    "6.06 million on. See it, certified, in under a minute:"
)


PAPER = "surefoot demo --scale 1 --episodes 10000000"


def demo(seed: int, episodes: int, scale: float) -> Iterator[Run]:
    """StepMix, EpsMix and BPI-UCBVI, one after the other, all with the same seed. Ctrl-C ends the sequence."""
    world = random_mdp(S=5, A=5, H=3, seed=1)
    baseline = boltzmann(solve(world).Q, eta=10.0)
    bounds = Bernstein(scale)
    learners: tuple[Agent, ...] = (
        StepMix(world.problem, baseline, FLOOR, delta=DELTA, bounds=bounds),
        EpsMix(world.problem, baseline, FLOOR, delta=DELTA, bounds=bounds),
        BPIUCBVI(world.problem, delta=DELTA, bounds=bounds),
    )
    # One episode first, so that compiling is not counted as a learner's time.
    if simulate(world, learners[0], 1, seed, progress=False).interrupted:
        return
    for learner in learners:
        run = simulate(world, learner, episodes, seed, floor=FLOOR)
        yield run
        if run.interrupted:
            return
