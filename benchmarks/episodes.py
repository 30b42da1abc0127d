"""Microseconds per episode of the fused loop, exact evaluation included."""

import math
import time
from typing import NamedTuple

import numpy as np
from layout import splices_of
from settings import AGENTS, PHASES, SIZES, SMALL, Phase, Setting, agent_of, head_start, label, setting
from table import Row, at_most, plain

import surefoot as sf
from surefoot.numerics import kernels

ROUNDS = (4, 8)  # at least, at most
SETTLED = 0.98  # a worst window that fell by less than 2 % in a round did not move
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


def time_of_episodes() -> list[Row]:
    rows = []
    for size in SIZES:
        where = setting(size)
        for phase in PHASES[size]:
            rows += rows_of(size, phase, side_by_side(where, AGENTS, phase, ROUNDS))
    return rows


def side_by_side(where: Setting, names: tuple[str, ...], phase: Phase, rounds: tuple[int, int]) -> dict[str, Windows]:
    """The agents take turns, and a round does the same work again, so the smallest time of each window is the one
    least disturbed. A worst window is the one place where a disturbance survives: go on until it has been still for
    two rounds."""
    n_sas = head_start(where, phase.head_start)
    best: dict[str, Windows] = {}
    still = 0
    least, most = rounds
    for done in range(1, most + 1):
        before = {name: run.micros.max() for name, run in best.items()}
        for name in names:
            again = play(where, name, phase, n_sas.copy())
            known = best.get(name, again)
            best[name] = Windows(np.minimum(known.micros, again.micros), again.sources)
        moved = any(best[name].micros.max() < SETTLED * before.get(name, np.inf) for name in names)
        still = 0 if moved else still + 1
        if done >= least and still >= 2:
            break
    return best


def play(where: Setting, name: str, phase: Phase, n_sas: np.ndarray) -> Windows:
    """What `simulate` does for a splice agent, with a look at the clock after every window."""
    world, agent = where.world, agent_of(name, where, phase.scale)
    problem, replan_rule, counts = agent.problem, agent.replan_rule.rule, sf.Counts(n_sas)
    known_rewards = kernels.known_rewards_from(problem.r_rows, problem.r_next_rows, problem.unknown_rows)
    evidence, start, returns_b = agent.evidence(counts)
    splices = splices_of(agent, aligned=False)  # the unlucky layout
    value_b = world.at_start(sf.policy_value(world, agent.pi_b)[0])
    pairs = evidence.n_sa.shape
    loop_state = kernels.empty_loop_state(replan_rule.growth < math.inf, *pairs, counts.episodes, value_b)
    kernels.refresh_all(evidence)
    inputs = kernels.PlanInputs(evidence, splices, start, returns_b, agent.rule, replan_rule)
    work = kernels.empty_workspace(world.H, world.S, world.A, len(agent.h0))
    # Two episodes that are not counted: loading the compiled code is not an episode's work.
    tally = kernels.empty_tally(world.H, 2 + phase.windows * phase.window, 2000)
    given = (world.for_kernels(), known_rewards, inputs, tally, math.nan if agent.floor is None else agent.floor)
    rng = np.random.default_rng(0)
    uniforms = kernels.uniforms_from(rng)
    kernels.run_episodes(*given, 2, uniforms, work, loop_state)

    micros, sources = [], [tally.by_source.copy()]
    for _ in range(phase.windows):
        started = time.perf_counter()
        kernels.run_episodes(*given, phase.window, uniforms, work, loop_state)
        micros.append((time.perf_counter() - started) / phase.window * 1e6)
        sources.append(tally.by_source.copy())
    return Windows(np.array(micros), np.diff(sources, axis=0))


def rows_of(size: tuple[int, int, int], phase: Phase, measured: dict[str, Windows]) -> list[Row]:
    """The worst window of each agent; what it played there says which part of learning that was."""
    rows = []
    optimist = measured["BPIUCBVI"].micros.mean()
    for name, run in measured.items():
        worst = int(run.micros.argmax())
        shares = run.sources[worst] / phase.window
        mix = ", ".join(
            f"{kind} {share:.0%}"
            for kind, share in zip(("baseline", "mixture", "optimist"), shares, strict=True)
            if share >= 0.005
        )
        note = f"mean {run.micros.mean():.3g} = {run.micros.mean() / optimist:.2f} x BPI-UCBVI; worst window: {mix}"
        if (size, name) in PROTOTYPE:
            note += f"; prototype {PROTOTYPE[size, name]}"
        item, where = f"{name}, per episode", f"{label(size)} {phase.name}"
        if (size, name) in TARGETS:
            rows.append(at_most(item, where, run.micros[worst], "us", TARGETS[size, name], note))
        else:
            rows.append(plain(item, where, run.micros[worst], "us", note))
    return rows
