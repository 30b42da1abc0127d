"""A first look: the same learners with sharp certificates and with the paper's bounds, side by side."""

from collections.abc import Iterator
from typing import NamedTuple

from surefoot.agents import BPIUCBVI, Agent, Blocks, EpsMix, StepMix
from surefoot.bounds import KL, Bernstein, Bounds
from surefoot.simulation.run import Run
from surefoot.simulation.simulate import simulate
from surefoot.worlds.registry import world

DELTA = 0.1
SETTING = "dosing: 5 states, 3 doses, 8 steps"
STORY = (
    "A patient's dose is adjusted eight times. The clinic's present rule works; the learner may improve on it, but no "
    "patient may be treated by a rule whose expected return is below the floor."
)


class Side(NamedTuple):
    """One of the two sides: the learners with one family of bounds."""

    title: str
    runs: list[Run]


def demo(seed: int, episodes: int, paper_episodes: int, scale: float) -> Iterator[Side]:
    """StepMix, EpsMix and BPI-UCBVI with KL certificates, then with the paper's bounds. Ctrl-C ends the sequence.

    Plans are made in blocks of 1 % of the episodes so far, which lets a simulation draw whole blocks at once.
    """
    sides: tuple[tuple[str, Bounds, int], ...] = (
        ("sharp certificates (KL)", KL(), episodes),
        ("the paper's bounds", Bernstein(scale), paper_episodes),
    )
    dosing = world("dosing")
    assert dosing.baseline is not None
    assert dosing.suggested_floor is not None
    problem, baseline, floor = dosing.problem, dosing.baseline, dosing.suggested_floor
    for title, bounds, K in sides:
        learners: tuple[Agent, ...] = (
            StepMix(problem, baseline, floor, delta=DELTA, bounds=bounds, pooled=True, replan=Blocks()),
            EpsMix(problem, baseline, floor, delta=DELTA, bounds=bounds, pooled=True, replan=Blocks()),
            BPIUCBVI(problem, delta=DELTA, bounds=bounds, pooled=True, replan=Blocks()),
        )
        side = Side(title, [])
        # One episode first, so that compiling is not counted as a learner's time.
        if simulate(dosing, learners[0], 1, seed, progress=False).interrupted:
            return
        for learner in learners:
            side.runs.append(simulate(dosing, learner, K, seed, floor=floor))
            if side.runs[-1].interrupted:
                break
        yield side
        if side.runs[-1].interrupted:
            return
