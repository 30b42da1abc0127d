"""Microseconds per episode, exact evaluation included, in the loop that `simulate` takes for an
agent and its world.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from budget import rounds
from settings import (
    AGENTS,
    PHASES,
    SIZES,
    SMALL,
    Phase,
    Setting,
    agent_of,
    head_start,
    label,
    setting,
)
from table import Row, at_most, plain

import surefoot as sf
from surefoot.run.loops import RunContext, loop_for
from surefoot.run.setup import check_setup

SECONDS = 12.0  # of all rounds of a phase, but for the first ones; there are seven phases
ROUNDS = 2, 8  # at least, at most
SETTLED = 0.98  # a worst window that fell by less than 2 % in a round did not move
WARM_UP = 2  # episodes that are not counted: loading the compiled code is not an episode's work
TARGETS = {(SMALL, "StepMix"): 2.5}
PROTOTYPE = {  # an untuned compiled prototype, for scale
    (SMALL, "StepMix"): "4.3",
    (SMALL, "BPIUCBVI"): "1.6",
    (SMALL, "EpsMix"): "3-4",
}


class Windows(NamedTuple):
    """One entry per window of a run: microseconds per episode, and episodes by source."""

    micros: np.ndarray
    sources: np.ndarray  # (windows, 3): baseline, mixture, optimistic


def time_of_episodes() -> Iterator[Row]:
    for size in SIZES:
        where = setting(size)
        for phase in PHASES[size]:
            yield from rows_of(size, phase, side_by_side(where, AGENTS, phase, SECONDS, ROUNDS))


def side_by_side(
    where: Setting, names: tuple[str, ...], phase: Phase, seconds: float, repeats: tuple[int, int]
) -> dict[str, Windows]:
    """The agents take turns, and a round does the same work again, so the smallest time of each
    window is the one least disturbed. A worst window is the one place where a disturbance survives:
    go on until it has been still for two rounds, or the time is over.
    """
    n_sas = head_start(where, phase.head_start)
    best: dict[str, Windows] = {}
    still = 0
    for _ in rounds(seconds, *repeats):
        before = {name: run.micros.max() for name, run in best.items()}
        for name in names:
            again = play(where, name, phase, n_sas.copy())
            known = best.get(name, again)
            best[name] = Windows(np.minimum(known.micros, again.micros), again.sources)
        moved = any(best[name].micros.max() < SETTLED * before.get(name, np.inf) for name in names)
        still = 0 if moved else still + 1
        if still >= 2:
            break
    return best


def play(where: Setting, name: str, phase: Phase, n_sas: np.ndarray) -> Windows:
    """What `simulate` does, with a look at the clock after every window."""
    agent = agent_of(name, where, phase.scale)
    counts = sf.Counts(n_sas).claimed_for(agent.problem)
    ends = [WARM_UP + phase.window * i for i in range(phase.windows + 1)]
    context = RunContext.begin(
        check_setup(where.world, agent, ends[-1], None), 0, counts, tuple(ends)
    )
    at, sources = [], []
    for done in loop_for(agent)(context):
        if done == ends[len(at)]:
            at.append(time.perf_counter())
            sources.append(context.tally.by_source.copy())
    return Windows(np.diff(at) / phase.window * 1e6, np.diff(sources, axis=0))


def rows_of(
    size: tuple[int, int, int], phase: Phase, measured: dict[str, Windows]
) -> Iterator[Row]:
    """The worst window of each agent; what it played there says which part of learning that was."""
    optimist = measured["BPIUCBVI"].micros.mean()
    for name, run in measured.items():
        worst = int(run.micros.argmax())
        shares = run.sources[worst] / phase.window
        mix = ", ".join(
            f"{kind} {share:.0%}"
            for kind, share in zip(("baseline", "mixture", "optimist"), shares, strict=True)
            if share >= 0.005
        )
        note = (
            f"mean {run.micros.mean():.3g} = {run.micros.mean() / optimist:.2f} x BPI-UCBVI; "
            f"worst window: {mix}"
        )
        if (size, name) in PROTOTYPE:
            note += f"; prototype {PROTOTYPE[size, name]}"
        item, where = f"{name}, per episode", f"{label(size)} {phase.name}"
        if (size, name) in TARGETS:
            yield at_most(item, where, run.micros[worst], "us", TARGETS[size, name], note)
        else:
            yield plain(item, where, run.micros[worst], "us", note)
