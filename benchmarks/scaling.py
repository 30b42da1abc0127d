"""Worlds of many states: plan, episode and memory against S, as ratios to one sparse sweep in the same run.

A sweep is H backups with scipy's CSR matrix of the true world: what an exact solver would need. Every pair has three
successors and was visited 30 times, so that no pair is skipped; of 500 states also less and more often.
"""

import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import time

import numpy as np
from cores import on_cores
from table import Row, at_least, at_most, plain

import surefoot as sf
from surefoot.base.count_lists import Entries
from surefoot.simulation.blocks import listed_multinomial
from surefoot.task.transitions import Lists

A, H, SUCCESSORS, VISITS = 5, 20, 3, 30
SIZES = (100, 500, 1_000, 5_000, 10_000, 50_000, 100_000)
REPEATS = 5  # at every size: the best of more would be quicker
TURNS = {2_500: 5, 5_000: 5, 10_000: 5, 50_000: 3, 100_000: 2}  # of one core and all of them, by S
MOST_SWEEPS = {"EpsMix": 100, "StepMix": 400}
MOST_SECONDS = {"EpsMix": 30.0, "StepMix": 70.0}  # of a plan with 100,000 states
MOST_MEMORY = 2_000.0  # MB, of the process
MOST_GROWTH = 0.05  # exponent in S of a plan in sweeps: no more than noise


def world_of(S: int, visits=VISITS):
    """A sparse world, its matrix, and counts of so many visits of every pair, or of each."""
    import scipy.sparse

    rng = np.random.default_rng(0)
    states, p = rng.integers(0, S, (S * A, SUCCESSORS)), rng.dirichlet(np.ones(SUCCESSORS), S * A)
    pairs = np.repeat(np.arange(S * A), SUCCESSORS)
    P = scipy.sparse.csr_array((p.ravel(), (pairs, states.ravel())), shape=(S * A, S))
    world = sf.TabularMDP(P, rng.random((S, A)), H=H)
    pair, state, chance = world.entries(0)
    n_sa, first = np.broadcast_to(visits, S * A).copy(), np.searchsorted(pair, np.arange(S * A))
    went = listed_multinomial(n_sa, first, chance, rng)
    seen = went > 0
    lists = Lists.of(Entries(pair[seen], state[seen], went[seen]), (1, S, A))
    return world, P, sf.Counts(lists, H=H, problem=world.problem)


def sweep(P, r, S: int) -> None:
    V = np.zeros(S)
    for _ in range(H):
        V = (r + P @ V).reshape(S, A).max(axis=1)


def best_of(repeats: int, work) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def agents_of(world) -> dict:
    """EpsMix and StepMix, whose floor is the optimum: nothing is proved to reach it, and plans of all sizes bound the
    same candidates. (With a lower floor some worlds play the optimistic policy, and bound no others.)"""
    pi_b, floor = sf.uniform(H, world.S, A), sf.solve(world).value
    return {
        kind.name: kind(world.problem, pi_b, floor, delta=0.1, pooled=True, returns=None)
        for kind in (sf.EpsMix, sf.StepMix)
    }


def measured(S: int) -> dict:
    """Seconds of a sweep, of a plan of each agent, of an episode; and the peak of memory in MB."""
    import resource

    world, P, counts = world_of(S)
    r = np.asarray(world.r_rescaled[0]).reshape(-1)
    found = {"S": S, "sweep": best_of(REPEATS, lambda: sweep(P, r, S))}
    agents = agents_of(world)
    for name, agent in agents.items():
        agent.decide(agent.evidence(counts))  # compiles
        found[name] = best_of(REPEATS, lambda agent=agent: agent.decide(agent.evidence(counts)))
    agent = dataclasses.replace(agents["EpsMix"], returns=sf.Returns())
    if S <= 10_000:
        sf.simulate(world, agent, 40, seed=0)  # compiles: blocks of several episodes, too
        found["episode"] = best_of(1, lambda: sf.simulate(world, agent, 300, seed=1)) / 300
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def apart(S: int) -> dict:
    """`measured` in a process of its own, so that its memory is its own."""
    code = f"import json, scaling\nprint(json.dumps(scaling.measured({S})))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=__file__.rpartition("/")[0], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def exponent(found: list[dict], name: str) -> float:
    """The slope of log seconds against log S, from 500 states on."""
    large = [one for one in found if one["S"] >= 500]
    return float(np.polyfit(np.log([one["S"] for one in large]), np.log([one[name] for one in large]), 1)[0])


def time_of_large_worlds() -> list[Row]:
    found = [apart(S) for S in SIZES]
    rows = []
    for one in found:
        where = f"({one['S']:,}, {A}, {H}), three successors"
        for name, most in MOST_SWEEPS.items():
            item, ratio = f"{name}, KL: a plan in sparse sweeps", one[name] / one["sweep"]
            note = f"{one[name]:.3g} s; a sweep {1e3 * one['sweep']:.3g} ms"
            rows.append(at_most(item, where, ratio, "sweeps", most, note))
            if one["S"] == SIZES[-1]:
                rows.append(at_most(f"{name}, KL: a plan", where, one[name], "s", MOST_SECONDS[name]))
        if "episode" in one:
            rows.append(plain("EpsMix: an episode, plans included", where, one["episode"] / one["sweep"], "sweeps"))
        rows.append(at_most("memory of the process", where, one["memory"], "MB", MOST_MEMORY))
    slopes, sizes = {name: exponent(found, name) for name in ("sweep", *MOST_SWEEPS)}, f"S = 500 .. {SIZES[-1]:,}"
    rows.append(plain("sweep: exponent in S", sizes, slopes["sweep"], ""))
    for name in MOST_SWEEPS:
        note = f"seconds S^{slopes[name]:.2f}"
        item = f"{name}: exponent in S, in sweeps"
        rows.append(at_most(item, sizes, slopes[name] - slopes["sweep"], "", MOST_GROWTH, note))
    return rows + time_by_visits() + time_of_mixtures()


def time_by_visits() -> list[Row]:
    """A plan of 500 states: with more visits the closed form of a backup holds less often, and is searched for."""
    rows = []
    for visits in (3, 300, 3_000, 30_000):
        world, P, counts = world_of(500, visits)
        r = np.asarray(world.r_rescaled[0]).reshape(-1)
        seconds = best_of(REPEATS, lambda P=P, r=r: sweep(P, r, 500))
        for name, agent in agents_of(world).items():
            agent.decide(agent.evidence(counts))  # compiles
            took = best_of(REPEATS, lambda agent=agent, counts=counts: agent.decide(agent.evidence(counts)))
            where, item = f"(500, {A}, {H}), {visits:,} visits", f"{name}, KL: a plan in sparse sweeps"
            rows.append(at_most(item, where, took / seconds, "sweeps", MOST_SWEEPS[name], f"{1e3 * took:.3g} ms"))
    return rows


def time_of_mixtures() -> list[Row]:
    """A plan of StepMix that mixes at a step between the first and the last, which is found by halving: the baseline's
    pairs were visited 300 times, the others three times; the floor is a tenth below what is proved of the baseline."""
    rows = []
    for S in (5_000, 50_000):
        often = np.where(np.arange(S * A) % A == 0, 300, 3)
        world, P, counts = world_of(S, often)
        r = np.asarray(world.r_rescaled[0]).reshape(-1)
        seconds = best_of(REPEATS, lambda P=P, r=r, S=S: sweep(P, r, S))
        pi_b = np.full((H, S, A), 0.2 / A)
        pi_b[..., 0] += 0.8
        agent = dataclasses.replace(agents_of(world)["StepMix"], baseline=pi_b)
        agent = dataclasses.replace(agent, floor=0.9 * agent.decide(agent.evidence(counts)).by_model)
        found = agent.decide(agent.evidence(counts))
        took = best_of(REPEATS, lambda agent=agent, counts=counts: agent.decide(agent.evidence(counts)))
        where, note = f"({S:,}, {A}, {H}), visits 300 and 3", f"{took:.3g} s, h = {found.h}"
        item = "StepMix, KL: a plan in sparse sweeps, mixture"
        rows.append(at_most(item, where, took / seconds, "sweeps", MOST_SWEEPS["StepMix"], note))
    return rows


def gain_of_all_cores() -> list[Row]:
    """A plan with one core and with all of them, in turns in one process: the best of each, divided."""
    cores, rows = os.cpu_count() or 1, []
    for S, turns in TURNS.items():
        world, _, counts = world_of(S)
        for name, agent in agents_of(world).items():
            agent.decide(agent.evidence(counts))  # compiles
            times = {1: math.inf, cores: math.inf}
            for _, n in itertools.product(range(turns), times):
                with on_cores(n):
                    times[n] = min(
                        times[n], best_of(1, lambda agent=agent, counts=counts: agent.decide(agent.evidence(counts)))
                    )
            where, note = f"({S:,}, {A}, {H}), three successors", f"{times[1]:.3g} s and {times[cores]:.3g} s"
            item = f"{name}, KL: a plan with one core / with {cores}"
            rows.append(at_least(item, where, times[1] / times[cores], "times", 1.0, note))
    return rows
