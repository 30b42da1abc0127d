"""The paper's constants, unscaled, for 10^7 episodes: the episode numbers that were found apart
from this project.

World (5,5,3) seed 1, Boltzmann eta 10, floor 2.0, delta 0.1. The spread of these episodes from seed
to seed is about 0.1 %, so a tolerance of 2 % has no false alarms to speak of and sees any constant
that is off by a few per cent. What moves these episodes by less than 2 % is missed.
"""

import pytest

import surefoot as sf

pytestmark = pytest.mark.full
EPISODES = 10**7


@pytest.fixture(scope="module")
def setting():
    world = sf.random_mdp(S=5, A=5, H=3, seed=1)
    return world, sf.boltzmann(sf.solve(world).Q, eta=10.0)


@pytest.mark.parametrize(
    ("kind", "mixture", "optimistic"), [(sf.StepMix, 2.79e6, 6.06e6), (sf.EpsMix, 2.75e6, 5.45e6)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_when_the_baseline_is_left(setting, kind, mixture, optimistic, seed):
    world, baseline = setting
    run = sf.simulate(
        world, kind.paper(world.problem, baseline, 2.0, delta=0.1), EPISODES, seed=seed
    )
    assert run.violations == 0
    assert run.first_mixture == pytest.approx(mixture, rel=0.02)
    assert run.first_optimistic == pytest.approx(optimistic, rel=0.02)
    assert sum(run.sources.values()) == EPISODES


def test_the_optimist_violates(setting):
    world, _ = setting
    run = sf.simulate(
        world, sf.BPIUCBVI.paper(world.problem, delta=0.1), EPISODES, seed=0, floor=2.0
    )
    assert run.violations > 100_000


def test_control_a_constant_off_by_a_tenth_is_seen(setting):
    """22 -> 19.8 and 3 -> 2.85 (scale 0.9): the first mixture comes 10 % early, five tolerances
    away.
    """
    world, baseline = setting
    agent = sf.StepMix(world.problem, baseline, 2.0, delta=0.1, bounds=sf.Bernstein(0.9))
    run = sf.simulate(world, agent, 3 * 10**6, seed=0)
    assert run.first_mixture < 2.79e6 * 0.95
