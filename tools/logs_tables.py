"""Write docs/logs-tables.md: the paper's offline setting, and what each method makes of the same logs.

    python tools/logs_tables.py [--logs 10]

About five minutes on two cores.
"""

import argparse
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np

import surefoot as sf
from surefoot.offline.logs.folds import folds_of
from surefoot.offline.methods.learnt import corollary

DOCS = Path(__file__).parents[1] / "docs"
FLOOR = 2.2
TIES = 40  # logs in the table of ties
DELTA = 0.1  # in all: half for what is learnt from the log, half for the agent
EPISODES = 2_000
PAPER_EPISODES = 20_000_000
SEEDS = (1, 0)  # of the world; in the first known rewards alone are nearly enough


def a_log(world, mu, n, rng):
    """The states (n, H+1) and actions (n, H) of n episodes."""
    H, S, A = mu.shape
    states, actions = np.zeros((n, H + 1), dtype=int), np.zeros((n, H), dtype=int)
    states[:, 0] = world.s1
    for h in range(H):
        s = states[:, h]
        actions[:, h] = np.minimum((rng.random((n, 1)) > mu[h][s].cumsum(-1)).sum(-1), A - 1)
        rows = world.P[h][s, actions[:, h]].cumsum(-1)
        states[:, h + 1] = np.minimum((rng.random((n, 1)) > rows).sum(-1), S - 1)
    return states, actions


def counted(world, states, actions, fold=None):
    """The counts of the log; of step h in fold h alone, where folds are given."""
    n_sas = np.zeros((world.H, world.S, world.A, world.S), dtype=int)
    for h in range(world.H):
        rows = slice(None) if fold is None else fold == h
        np.add.at(n_sas[h], (states[rows, h], actions[rows, h], states[rows, h + 1]), 1)
    starts = np.bincount(states[:, 0], minlength=world.S)
    return sf.Counts(n_sas, s1=world.s1, n_start=starts, logged=True, problem=world.problem)


def spread(values):
    """The mean, the smallest and the largest value."""
    return f"{statistics.fmean(values):.3f} ({min(values):.3f}–{max(values):.3f})"


def methods(world, counts, folds):
    """What each method learns, at half of delta."""
    problem, delta = world.problem, DELTA / 2
    yield "VI-LCB (the paper's)", sf.vi_lcb(folds, problem, delta)
    yield "VI-LCB with first-index ties", sf.vi_lcb(folds, problem, delta, ties="first")
    yield "KL-robust value iteration", sf.robust_vi(counts, problem, delta)
    yield "behaviour cloning", sf.clone(counts, problem, delta)
    yield "SPIBB, n_wedge 20", sf.spibb(counts, problem, delta)


def settings():
    """The paper's four settings: the behaviour's eta and the number of trajectories."""
    return [(eta, n) for eta in (10.0, 15.0) for n in (5000, 8000)]


def learnt_in(world, eta, n, logs):
    """The behaviour policy, and for each method what it learnt from each log."""
    mu = sf.boltzmann(sf.solve(world).Q, eta)
    found = {}
    for seed in range(logs):
        states, actions = a_log(world, mu, n, np.random.default_rng([int(eta), n, seed]))
        folds = counted(world, states, actions, folds_of(np.arange(n), seed, world.H))
        counts = counted(world, states, actions)
        for name, learnt in methods(world, counts, folds):
            found.setdefault(name, []).append((learnt, counts))
    return mu, found


def values(logs):
    """The true and the certified value of each method's policy."""
    yield "## What is learnt, and what it is certified to be worth\n"
    yield (
        f"Worlds `random_mdp(5, 5, 3, seed)`, {logs} logs per row, delta = {DELTA / 2}: mean (smallest–largest). "
        f"*Cleared*: in how many logs the certificate is at or above the floor of {FLOOR}. *Corollary*: how many "
        "trajectories the paper asks for, as printed and with the constant that its proof needs.\n"
    )
    yield "| world | V* | behaviour | its value | episodes | method | true value | certified | cleared | corollary |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for world_seed in SEEDS:
        world = sf.random_mdp(5, 5, 3, seed=world_seed)
        for eta, n in settings():
            mu, found = learnt_in(world, eta, n, logs)
            V_mu = sf.policy_value(world, mu)[0, world.s1]
            asked = corollary(world.problem, DELTA / 2, V_mu - FLOOR)
            where = f"| {world_seed} | {sf.solve(world).value:.3f} | eta {eta:g} | {V_mu:.3f} | {n:,} "
            for name, pairs in found.items():
                true = [sf.policy_value(world, learnt.policy)[0, world.s1] for learnt, _ in pairs]
                lower = [learnt.lower for learnt, _ in pairs]
                assert all(low <= value for low, value in zip(lower, true, strict=True))
                cleared = sum(learnt.clears(FLOOR) for learnt, _ in pairs)
                row = f"| {name} | {spread(true)} | {spread(lower)} | {cleared} of {logs} "
                yield f"{where}{row}| {asked.printed / 1e6:.0f} and {asked.sound / 1e6:.0f} million |"


def ties():
    """The true value of what VI-LCB learns, by how it breaks ties: many logs, because it varies from log to log."""
    yield "\n## The ties of VI-LCB\n"
    yield f"World 1, {TIES} logs per row, delta = {DELTA / 2}: mean true value (smallest–largest).\n"
    yield "| log | the most visited action | the first index | the log's own policy |"
    yield "|---|---|---|---|"
    world = sf.random_mdp(5, 5, 3, seed=1)
    for eta, n in settings():
        mu, found = sf.boltzmann(sf.solve(world).Q, eta), {"most-visited": [], "first": []}
        for seed in range(TIES):
            states, actions = a_log(world, mu, n, np.random.default_rng([int(eta), n, seed]))
            folds = counted(world, states, actions, folds_of(np.arange(n), seed, world.H))
            for rule, values in found.items():
                learnt = sf.vi_lcb(folds, world.problem, DELTA / 2, ties=rule)
                values.append(sf.policy_value(world, learnt.policy)[0, world.s1])
        most, first = map(spread, found.values())
        yield f"| eta {eta:g}, {n:,} episodes | {most} | {first} | {sf.policy_value(world, mu)[0, world.s1]:.3f} |"


def agents(learnt, counts):
    """The ways in which an agent may start from it."""
    for kind in (sf.StepMix, sf.EpsMix):
        yield f"{kind.name}, KL, with the log's counts", EPISODES, sf.hand_over(learnt, FLOOR, kind, counts=counts)
        yield f"{kind.name}, KL, from nothing", EPISODES, sf.hand_over(learnt, FLOOR, kind)
        paper = sf.hand_over(learnt, FLOOR, kind, bounds=sf.Bernstein())
        yield f"{kind.name}, the paper's bounds", PAPER_EPISODES, paper


def started(logs):
    """StepMix and EpsMix from the policies of VI-LCB and of robust value iteration."""
    yield "\n## Agents that start from it\n"
    yield (
        f"Floor {FLOOR}, delta = {DELTA}: half for the log's certificate, half for the agent. Behaviour eta 10, "
        f"5,000 trajectories, {logs} logs, one run each; {EPISODES:,} episodes with KL (growth 1.1), "
        f"{PAPER_EPISODES:,} with the paper's bounds (planned in blocks). Where the certificate clears the floor, "
        "mixtures are certified from the first episode; VI-LCB's does not, so its policy is played on trust until data "
        "prove it. Regret: mean (smallest–largest); episodes: median (smallest–largest).\n"
    )
    yield "| world | baseline from | agent | first off the baseline | first optimistic | regret | violations |"
    yield "|---|---|---|---|---|---|---|"
    for world_seed in SEEDS:
        world = sf.random_mdp(5, 5, 3, seed=world_seed)
        _, found = learnt_in(world, 10.0, 5000, logs)
        for name in ("VI-LCB (the paper's)", "KL-robust value iteration"):
            for agent, played in runs_from(world, found[name]).items():
                off = [[x for x in (run.first_mixture, run.first_optimistic) if x is not None] for run in played]
                full = [run.first_optimistic for run in played]
                regret = [max(0.0, run.regret) for run in played]
                shown = f"{statistics.fmean(regret):,.1f} ({min(regret):,.1f}–{max(regret):,.1f})"
                fell = sum(run.violations for run in played)
                left = [min(some) if some else None for some in off]
                yield f"| {world_seed} | {name} | {agent} | {span(left)} | {span(full)} | {shown} | {fell} |"


def runs_from(world, pairs):
    """One run of each agent from each log."""
    runs = {}
    for seed, (learnt, counts) in enumerate(pairs):
        for name, episodes, start in agents(learnt, counts):
            agent = start.agent
            agent = replace(agent, replan=sf.Blocks() if isinstance(agent.bounds, sf.Bernstein) else sf.Growth(1.1))
            run = sf.simulate(world, agent, episodes, seed=seed, counts=start.counts, progress=False)
            runs.setdefault(name, []).append(run)
    return runs


def span(values):
    """The median, smallest and largest episode, and how many logs never have one."""
    known = [value for value in values if value is not None]
    if not known:
        return "never"
    never = f", {len(values) - len(known)} never" if len(known) < len(values) else ""
    return f"{statistics.median(known):,.0f} ({min(known):,}–{max(known):,}){never}"


def main():
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=10)
    options = parser.parse_args()
    lines = [
        "# Learning from logs, measured\n",
        "Written by `python tools/logs_tables.py`; what the methods are: logs.md.\n",
    ]
    lines += [*values(options.logs), *ties(), *started(options.logs)]
    (DOCS / "logs-tables.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
