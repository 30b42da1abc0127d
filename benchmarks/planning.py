"""What StepMix's H+1 candidates cost beside BPI-UCBVI's one: a full backward pass, nothing
skipped.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numba
import numpy as np
from budget import best_of, rounds
from layout import is_aligned, splices_of
from settings import LARGE, MIDDLE, SIZES, SMALL, Setting, agent_of, head_start, label, setting
from table import Row, at_most, plain

import surefoot as sf
from surefoot import kernels
from surefoot.agents import SpliceAgent
from surefoot.kernels.splices import Splices

# Many short turns: a virtual core can run at half speed for some tenths of a second without any
# sign of it in the scheduler's counters, and the smallest of many short samples is the only one
# that repeats between runs.
TURNS, SECONDS = (10, 60), 8.0  # at least and at most, and what those of one size may take
PASSES = {SMALL: 2_000, MIDDLE: 60, LARGE: 1}  # of StepMix in one turn: a few milliseconds
SCALE = 1e-6
EPISODES_OF_KL = 300
# enough to unclip every candidate's lower value
EPISODES_KNOWN = {SMALL: 10**5, MIDDLE: 10**7, LARGE: 10**9}

bound_splices = kernels.bound_splices


class Pass(NamedTuple):
    """The arguments of one pass."""

    evidence: kernels.Evidence
    splices: Splices
    states: np.ndarray
    first_lo: int
    first_hi: int


# Compiled as the kernels are, but not cached: numba would not notice that bound_splices, in another
# file, has changed.
@numba.njit(error_model="numpy", nogil=True, _nrt=False)
def full_passes(evidence, splices, states, first_lo, first_hi, passes):
    for _ in range(passes):
        bound_splices(evidence, splices, states, first_lo, first_hi)


def cost_of_candidates() -> Iterator[Row]:
    for size in SIZES:
        where = setting(size)
        n_sas = head_start(where, EPISODES_KNOWN[size])
        lines = {}
        for aligned in (True, False):
            # One scratch for both, or the ratio would compare two addresses.
            scratch = splices_of(agent_of("StepMix", where, SCALE), aligned).scratch
            for name in ("StepMix", "BPIUCBVI"):
                lines[name, aligned] = ready(name, where, n_sas, scratch)
        micros = in_turns(size, lines)
        yield from rows_of(size, lines, micros)


def cost_of_kl() -> Iterator[Row]:
    """Plans with the KL certificates, after as many baseline episodes as an agent has when it
    matters: a pass of the fused loop where counts are tables, and what an agent is asked for where
    they are lists.
    """
    note = f"{EPISODES_OF_KL} baseline episodes known"
    where = setting(SMALL)
    agent, counts = with_kl("StepMix", where)
    evidence, _, _ = agent.evidence(counts)
    kernels.refresh_all(evidence)
    s1 = where.world.s1
    splices = kernels.empty_splices(agent.h0, agent.pi_b)
    line = Pass(evidence, splices, np.zeros(0, dtype=np.int64), s1, s1 + 1)
    full_passes(*line, 1)
    took = best_of(lambda: full_passes(*line, 200), least=20) / 200
    yield at_most("StepMix, a plan with KL", label(SMALL), 1e6 * took, "us", 40.0, note)
    where = setting(LARGE)
    for name, target in (("BPIUCBVI", 60.0), ("StepMix", 700.0)):
        agent, counts = with_kl(name, where)
        agent.plan(counts)  # compiles
        took = best_of(
            lambda agent=agent, counts=counts: agent.plan(counts), SECONDS, least=3, most=20
        )
        yield at_most(
            f"{name}, KL: a plan from counts", label(LARGE), 1e3 * took, "ms", target, note
        )


def with_kl(name: str, where: Setting) -> tuple[SpliceAgent, sf.Counts]:
    agent = replace(agent_of(name, where, 1.0), bounds=sf.KL())
    return agent, sf.Counts(head_start(where, EPISODES_OF_KL)).claimed_for(agent.problem)


def ready(name: str, where: Setting, n_sas: np.ndarray, scratch: np.ndarray) -> Pass:
    """An empty `states` makes the kernel evaluate everything."""
    agent = agent_of(name, where, SCALE)
    evidence, _, _ = agent.evidence(sf.Counts(n_sas))
    kernels.refresh_all(evidence)
    splices = kernels.empty_splices(agent.h0, agent.pi_b)._replace(scratch=scratch)
    s1 = where.world.s1
    line = Pass(evidence, splices, np.zeros(0, dtype=np.int64), s1, s1 + 1)
    full_passes(*line, 2)
    return line


def in_turns(
    size: tuple[int, int, int], lines: dict[tuple[str, bool], Pass]
) -> dict[tuple[str, bool], float]:
    """Microseconds a pass, the smallest of all turns."""
    best = dict.fromkeys(lines, float("inf"))
    for _ in rounds(SECONDS, *TURNS):
        for key, line in lines.items():
            passes = PASSES[size] * (1 if key[0] == "StepMix" else (size[2] + 1) // 2)
            started = time.perf_counter()
            full_passes(*line, passes)
            best[key] = min(best[key], (time.perf_counter() - started) / passes * 1e6)
    return best


def rows_of(
    size: tuple[int, int, int], lines: dict[tuple[str, bool], Pass], micros: dict
) -> list[Row]:
    H = size[2]
    line = lines["StepMix", False]
    # Once the library aligns by itself there is one layout, timed twice: what differs then is
    # noise.
    first, second = ("first", "second") if is_aligned(line.splices) else ("aligned", "not aligned")
    ratios = [micros["StepMix", aligned] / micros["BPIUCBVI", aligned] for aligned in (True, False)]
    lowest = line.splices.V_low[0, :, line.first_lo].min()
    note = (
        f"worse of {ratios[0]:.2f} ({first}), {ratios[1]:.2f} ({second}); lowest candidate "
        f"worth {lowest:.3g}"
    )
    times = "; ".join(
        f"{name} {micros[name, True]:.4g} us {first}, {micros[name, False]:.4g} {second}"
        for name in ("StepMix", "BPIUCBVI")
    )
    again = micros["StepMix", False] / micros["StepMix", True]
    item = (
        "the same pass timed twice (noise)"
        if is_aligned(line.splices)
        else "a pass, not aligned / aligned"
    )
    return [
        at_most(
            "StepMix's pass / BPI-UCBVI's", label(size), max(ratios), "", 1 + (H + 1) / 2, note
        ),
        plain(item, label(size), again, "", times),
    ]
