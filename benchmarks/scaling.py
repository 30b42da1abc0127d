"""Worlds of many states: plan, episode and memory against S, as ratios to one sparse sweep in the
same run.

A sweep is H backups with scipy's CSR matrix of the true world: what an exact solver would need.
Every pair has three successors and was visited 30 times, so that no pair is skipped; of 500 states
also less and more often.
"""

import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from budget import best_of
from cores import on_cores
from table import Row, at_least, at_most, plain

import surefoot as sf
from surefoot.model.count_lists import Entries
from surefoot.model.transitions import Transitions
from surefoot.run.blocks import listed_multinomial

A, H, SUCCESSORS, VISITS = 5, 20, 3, 30
SIZES = (100, 500, 2_000, 10_000)
REPEATS = 5  # at every size: the best of more would be quicker
# with one core and all of them; below 5,000 states there are no threads
CORES_SIZES, TURNS = (5_000, 10_000), 5
MOST_SWEEPS = {"EpsMix": 100, "StepMix": 400}
MOST_SECONDS = {"EpsMix": 3.0, "StepMix": 7.0}  # of a plan with 10,000 states
MOST_MEMORY = 2_000.0  # MB, of the process
MOST_EXPONENT = 1.1  # of the seconds of a plan in S: linear, but for caches


def world_of(S: int, visits=VISITS):
    """A sparse world, its matrix, and counts of so many visits of every pair, or of each."""
    import scipy.sparse

    rng = np.random.default_rng(0)
    states, p = rng.integers(0, S, (S * A, SUCCESSORS)), rng.dirichlet(np.ones(SUCCESSORS), S * A)
    pairs = np.repeat(np.arange(S * A), SUCCESSORS)
    P = scipy.sparse.csr_array((p.ravel(), (pairs, states.ravel())), shape=(S * A, S))
    world = sf.TabularMDP(P, rng.random((S, A)), H=H)
    pair, state, chance = world.entries(0)
    n_sa, first = np.broadcast_to(visits, S * A).copy(), np.searchsorted(pair, np.arange(S * A + 1))
    went = listed_multinomial(n_sa, first, chance, rng)
    seen = went > 0
    counted = Transitions.of(Entries(pair[seen], state[seen], went[seen]), (1, S, A))
    return world, P, sf.Counts(counted, H=H, problem=world.problem)


def sweep(P, r, S: int) -> None:
    V = np.zeros(S)
    for _ in range(H):
        V = (r + P @ V).reshape(S, A).max(axis=1)


def agents_of(world) -> dict:
    """EpsMix and StepMix, whose floor is the optimum: nothing is proved to reach it, and plans of
    all sizes bound the same candidates. (With a lower floor some worlds play the optimistic policy,
    and bound no others.)
    """
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
    found = {"S": S, "sweep": best_of(lambda: sweep(P, r, S), least=REPEATS)}
    agents = agents_of(world)
    for name, agent in agents.items():
        agent.decide(agent.evidence(counts))  # compiles
        found[name] = best_of(
            lambda agent=agent: agent.decide(agent.evidence(counts)), least=REPEATS
        )
    agent = dataclasses.replace(agents["EpsMix"], returns=sf.Returns(), replan=0.05)
    if S <= 10_000:
        sf.simulate(world, agent, 40, seed=0)  # compiles: blocks of several episodes, too
        found["episode"] = best_of(lambda: sf.simulate(world, agent, 300, seed=1)) / 300
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def apart(S: int) -> dict:
    """`measured` in a process of its own, so that its memory is its own."""
    code = f"import json, scaling\nprint(json.dumps(scaling.measured({S})))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=__file__.rpartition("/")[0],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def exponent(found: list[dict], name: str) -> float:
    """The slope of log seconds against log S, from 500 states on."""
    large = [one for one in found if one["S"] >= 500]
    return float(
        np.polyfit(np.log([one["S"] for one in large]), np.log([one[name] for one in large]), 1)[0]
    )


def time_of_large_worlds() -> Iterator[Row]:
    found = []
    for S in SIZES:
        one = apart(S)
        found.append(one)
        where = f"({S:,}, {A}, {H}), three successors"
        for name, most in MOST_SWEEPS.items():
            item, ratio = f"{name}, KL: a plan in sparse sweeps", one[name] / one["sweep"]
            note = f"{one[name]:.3g} s; a sweep {1e3 * one['sweep']:.3g} ms"
            yield at_most(item, where, ratio, "sweeps", most, note)
            if SIZES[-1] == S:
                yield at_most(f"{name}, KL: a plan", where, one[name], "s", MOST_SECONDS[name])
        yield plain(
            "EpsMix: an episode, plans included", where, one["episode"] / one["sweep"], "sweeps"
        )
        yield at_most("memory of the process", where, one["memory"], "MB", MOST_MEMORY)
    sizes = f"S = 500 .. {SIZES[-1]:,}"
    slope = exponent(found, "sweep")
    for name in MOST_SWEEPS:
        yield at_most(
            f"{name}: exponent in S",
            sizes,
            exponent(found, name),
            "",
            MOST_EXPONENT,
            f"sweep S^{slope:.2f}",
        )
    yield from time_by_visits()
    yield time_of_mixtures()


def time_by_visits() -> Iterator[Row]:
    """A plan of 500 states: with more visits the closed form of a backup holds less often, and
    is searched for.
    """
    for visits in (3, 300, 30_000):
        world, P, counts = world_of(500, visits)
        r = np.asarray(world.r_rescaled[0]).reshape(-1)
        seconds = best_of(lambda P=P, r=r: sweep(P, r, 500), least=REPEATS)
        for name, agent in agents_of(world).items():
            agent.decide(agent.evidence(counts))  # compiles
            took = best_of(
                lambda agent=agent, counts=counts: agent.decide(agent.evidence(counts)),
                least=REPEATS,
            )
            where, item = (
                f"(500, {A}, {H}), {visits:,} visits",
                f"{name}, KL: a plan in sparse sweeps",
            )
            yield at_most(
                item, where, took / seconds, "sweeps", MOST_SWEEPS[name], f"{1e3 * took:.3g} ms"
            )


def time_of_mixtures() -> Row:
    """A plan of StepMix that mixes at a step between the first and the last, which is found by
    halving: the baseline's pairs were visited 300 times, the others three times; the floor is a
    tenth below what is proved of the baseline.
    """
    S = 5_000
    often = np.where(np.arange(S * A) % A == 0, 300, 3)
    world, P, counts = world_of(S, often)
    r = np.asarray(world.r_rescaled[0]).reshape(-1)
    seconds = best_of(lambda: sweep(P, r, S), least=REPEATS)
    pi_b = np.full((H, S, A), 0.2 / A)
    pi_b[..., 0] += 0.8
    agent = dataclasses.replace(agents_of(world)["StepMix"], baseline=pi_b)
    agent = dataclasses.replace(agent, floor=0.9 * agent.decide(agent.evidence(counts)).by_model)
    found = agent.decide(agent.evidence(counts))
    took = best_of(lambda: agent.decide(agent.evidence(counts)), least=REPEATS)
    where, note = f"({S:,}, {A}, {H}), visits 300 and 3", f"{took:.3g} s, h = {found.h}"
    item = "StepMix, KL: a plan in sparse sweeps, mixture"
    return at_most(item, where, took / seconds, "sweeps", MOST_SWEEPS["StepMix"], note)


def gain_of_all_cores() -> Iterator[Row]:
    """A plan with one core and with all of them, in turns in one process: the best of each,
    divided.
    """
    cores = os.cpu_count() or 1
    for S in CORES_SIZES:
        world, _, counts = world_of(S)
        for name, agent in agents_of(world).items():
            agent.decide(agent.evidence(counts))  # compiles
            times = {1: math.inf, cores: math.inf}
            for _, n in itertools.product(range(TURNS), times):
                with on_cores(n):
                    took = best_of(
                        lambda agent=agent, counts=counts: agent.decide(agent.evidence(counts))
                    )
                times[n] = min(times[n], took)
            where, note = (
                f"({S:,}, {A}, {H}), three successors",
                f"{times[1]:.3g} s and {times[cores]:.3g} s",
            )
            item = f"{name}, KL: a plan with one core / with {cores}"
            yield at_least(item, where, times[1] / times[cores], "times", 1.0, note)
