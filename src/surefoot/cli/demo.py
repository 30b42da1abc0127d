"""A first demonstration: the same agents with sharp certificates and with the paper's bounds, side by side."""

from collections.abc import Iterator
from typing import NamedTuple

from surefoot.agents import BPIUCBVI, Agent, EpsMix, StepMix
from surefoot.bounds import KL, Bernstein, Bounds
from surefoot.run.run import Run
from surefoot.run.simulate import simulate
from surefoot.worlds.registry import world

DELTA = 0.1
SETTING = "dosing: 5 states, 3 doses, 8 steps"
STORY = (
    "A patient's dose is adjusted eight times. The present rule of the clinic works. The agent may improve on it, but "
    "no patient may be treated by a rule whose expected return is below the floor."
)


class Side(NamedTuple):
    """One of the two sides: the agents with one family of bounds."""

    title: str
    runs: list[Run]


def demo(seed: int, episodes: int, paper_episodes: int, scale: float) -> Iterator[Side]:
    """Run StepMix, EpsMix and BPI-UCBVI with KL certificates, then with the paper's bounds. Ctrl-C ends the sequence.

    Plans are kept for blocks of 1 % of the episodes so far, so that the simulation can draw whole blocks at once.
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
        agents: tuple[Agent, ...] = (
            StepMix(problem, baseline, floor, delta=DELTA, bounds=bounds, pooled=True, replan=0.01),
            EpsMix(problem, baseline, floor, delta=DELTA, bounds=bounds, pooled=True, replan=0.01),
            BPIUCBVI(problem, delta=DELTA, bounds=bounds, pooled=True, replan=0.01),
        )
        side = Side(title, [])
        # One episode first, so that the time of compiling is not counted.
        if simulate(dosing, agents[0], 1, seed, progress=False).interrupted:
            return
        for agent in agents:
            side.runs.append(simulate(dosing, agent, K, seed, floor=floor))
            if side.runs[-1].interrupted:
                break
        yield side
        if side.runs[-1].interrupted:
            return
