"""The worlds, the agents and the phases of learning that are measured."""

from typing import NamedTuple

import numpy as np

import surefoot as sf
from surefoot.agents import SpliceAgent

SMALL, MIDDLE, LARGE = (5, 5, 3), (20, 5, 10), (100, 5, 20)  # (S, A, H)
SIZES = (SMALL, MIDDLE, LARGE)
AGENTS = ("BPIUCBVI", "EpsMix", "StepNoMix", "StepMix")
DELTA = 0.1
EVERY_EPISODE = 0.0


class Phase(NamedTuple):
    """A stretch of learning. The kernel skips what has not changed, so an early stretch flatters
    it.
    """

    name: str
    scale: float
    head_start: int  # episodes of the baseline already counted
    windows: int
    window: int  # episodes in each


PHASES = {
    SMALL: (
        # Unscaled, StepMix plays nothing but the baseline here for the first 10^6 episodes and
        # more.
        Phase("from scratch, scale 1", 1.0, 0, 50, 20_000),
        # From about 3 to 6 million it plays mixtures: the dearest part of a run with the paper's
        # own constants.
        Phase("scale 1, 3.5 10^6 episodes known", 1.0, 3_500_000, 20, 20_000),
        # Baseline, then mixture, then optimist, with all bounds unclipped at the end.
        Phase("from scratch, scale 0.01", 0.01, 0, 50, 20_000),
    ),
    MIDDLE: (
        Phase("from scratch, scale 1", 1.0, 0, 10, 2_000),
        # Informative bounds, so a visit moves values everywhere and little is skipped; and so many
        # episodes known that the agent stays where it is, playing (and evaluating) a new mixture
        # every time.
        Phase("dense: scale 0.01, 10^9 episodes known", 1e-2, 10**9, 10, 1_000),
    ),
    # above 64 states counts are lists, and `simulate` plans in Python: an episode takes
    # milliseconds
    LARGE: (
        Phase("from scratch, scale 1", 1.0, 0, 3, 100),
        Phase("dense: scale 0.001, 10^10 episodes known", 1e-3, 10**10, 2, 12),
    ),
}


class Setting(NamedTuple):
    """A world with its baseline and floor."""

    world: sf.TabularMDP
    baseline: np.ndarray
    floor: float


def setting(size: tuple[int, int, int]) -> Setting:
    """random_mdp with seed 1, a Boltzmann baseline with eta 10. The floor is 2 in the small
    world, else 90 % of it.
    """
    world = sf.random_mdp(*size, seed=1)
    baseline = sf.boltzmann(sf.solve(world).Q, 10)
    floor = 2.0 if size == SMALL else 0.9 * float(sf.policy_value(world, baseline)[0, world.s1])
    return Setting(world, baseline, floor)


def agent_of(name: str, where: Setting, scale: float) -> SpliceAgent:
    bounds = sf.Bernstein(scale)
    if name == "BPIUCBVI":
        return sf.BPIUCBVI(where.world.problem, delta=DELTA, bounds=bounds, replan=EVERY_EPISODE)
    given = where.world.problem, where.baseline, where.floor
    return getattr(sf, name)(*given, delta=DELTA, bounds=bounds, replan=EVERY_EPISODE)


def head_start(where: Setting, episodes: int) -> np.ndarray:
    """n_sas (H, S, A, S) after so many episodes of the baseline: those that are in a state
    choose actions and go on.
    """
    world = where.world
    rng = np.random.default_rng(0)
    n_sas = np.zeros((world.H, world.S, world.A, world.S), dtype=np.int64)
    n_s = np.zeros(world.S, dtype=np.int64)
    n_s[world.s1] = episodes
    for h in range(world.H):
        n_sas[h] = rng.multinomial(rng.multinomial(n_s, where.baseline[h]), world.P[h])
        n_s = n_sas[h].sum(axis=(0, 1))
    return n_sas


def label(size: tuple[int, int, int]) -> str:
    return "({}, {}, {})".format(*size)
