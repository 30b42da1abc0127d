"""A first demonstration: the same agents with sharp certificates and with the paper's bounds,
side by side.
"""

from collections.abc import Iterator

from surefoot.bounds import Bounds
from surefoot.run import by_name
from surefoot.run.run import Run
from surefoot.worlds.registry import world

DELTA = 0.1
# plans are kept for blocks of 1 % of the episodes so far: the simulation can draw whole blocks at
# once
REPLAN = 0.01
SETTING = "dosing: 5 states, 3 doses, 8 steps"
STORY = (
    "A patient's dose is adjusted eight times. The present rule of the clinic works. The agent may "
    "improve on it, but no patient may be treated by a rule whose expected return is below the "
    "floor."
)


def demo(
    seed: int, episodes: int, paper_episodes: int, scale: float
) -> Iterator[tuple[str, list[Run]]]:
    """Run StepMix, EpsMix and BPI-UCBVI with KL certificates, then with the paper's bounds: titles
    with runs.

    Ctrl-C ends the sequence.
    """
    dosing = world("dosing")
    sides = (
        ("sharp certificates (KL)", "kl", 1.0, episodes),
        ("the paper's bounds", "paper", scale, paper_episodes),
    )
    for title, name, factor, K in sides:
        bounds = by_name.build_bounds(name, factor)

        def tried(names: list[str], episodes: int, bounds: Bounds = bounds) -> list[Run]:
            return by_name.try_agents(
                dosing, names, None, DELTA, bounds, True, episodes, seed, replan=REPLAN
            )

        if tried(["stepmix"], 1)[-1].interrupted:  # so that the time of compiling is not counted
            return
        runs = tried(["stepmix", "epsmix"], K)
        yield title, runs
        if runs[-1].interrupted:
            return
