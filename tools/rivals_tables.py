"""Write docs/rivals-tables.md: the paper's last comparison, the DOPE paper's own worlds, sums kept above a floor, and
two forms of BPI-UCBVI.

    python tools/rivals_tables.py [--trials 3] [--only compare costs sums optimists]

About ten minutes on two cores.
"""

import argparse
import statistics
from pathlib import Path

import numpy as np

import surefoot as sf

DOCS = Path(__file__).parents[1] / "docs"
DELTA = 0.1
K = 5_000_000
LONG = 20_000_000  # for OptPess-LP, which does not leave the baseline before K
PROTOTYPE = {  # world seeds 0-5 of a prototype: first episode off the baseline, final regret, in millions
    "DOPE": ("0.21–0.44", "0.51–1.0"),
    "OptPess-LP": ("not by K", ""),
    "Reward-free safe RL": ("", ""),
    "StepMix, pooled": ("0.60–0.98", "0.07–0.33"),
    "StepMix": ("1.6–3.4", "0.07–0.33"),
}


def millions(values):
    """The median and range, in millions, and how many never."""
    known = [value / 1e6 for value in values if value is not None]
    if not known:
        return "not by K"
    never = "" if len(known) == len(values) else f", {len(values) - len(known)} never"
    return f"{statistics.median(known):.3f} ({min(known):.3f}–{max(known):.3f}){never}"


def agents(world, baseline, floor, value):
    """The paper's four agents, by the printed constants; StepMix and EpsMix with and without pooled counts."""
    given = {"baseline_value": value, "delta": DELTA, "pooled": True, "replan": sf.Growth(1.03)}
    yield "DOPE", sf.DOPE(world.problem, baseline, floor, episodes=K, **given)
    yield "OptPess-LP", sf.OptPessLP(world.problem, baseline, floor, episodes=K, **given)
    yield "Reward-free safe RL", sf.RewardFreeSafeRL(world.problem, baseline, floor, **given)
    for pooled in (True, False):
        settings = {"delta": DELTA, "pooled": pooled, "bounds": sf.Bernstein(), "replan": sf.Growth(1.03)}
        for kind in (sf.StepMix, sf.EpsMix):
            yield f"{kind.name}, pooled" if pooled else kind.name, kind(world.problem, baseline, floor, **settings)


def overtaken(dope, other):
    """The episode from which DOPE's regret is the larger one for good."""
    behind = np.flatnonzero(dope.curve.regret <= other.curve.regret)
    return int(dope.curve.episode[behind[-1]]) if behind.size else 0


def compare(trials):
    """The comparison in the paper's homogeneous world."""
    yield "## The paper's last comparison\n"
    yield (
        f"`random_mdp(4, 2, 3, seed, stationary=True)`, eta 5, floor V^b - 0.2, delta = {DELTA}, K = {K:,}, constants "
        f"as printed (certified), growth 1.03, {trials} trials per world. In millions: median (range). DOPE, "
        "OptPess-LP and reward-free safe RL pool their counts and know V^b; StepMix and EpsMix do not. The prototype's "
        "range is of world seeds 0-5. The last column: the episode from which DOPE's regret is the larger one "
        "(prototype: 1–1.25 pooled, 2–3.5 not). Reward-free safe RL mixes from the first episode on. It explores "
        "without looking for reward, so its regret is above that of the baseline alone, which is OptPess-LP's.\n"
    )
    yield (
        "| world | agent | knows V^b | off the baseline | prototype | regret at K | prototype | violations "
        "| behind it |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for seed in range(3):
        world = sf.random_mdp(4, 2, 3, seed, stationary=True)
        baseline = sf.boltzmann(sf.solve(world).Q, 5.0)
        value = float(sf.policy_value(world, baseline)[0, world.s1])
        first = None
        for name, agent in agents(world, baseline, value - 0.2, value):
            runs = sf.simulate_many(world, agent, K, range(trials), jobs=-1)
            first = runs if first is None else first
            behind = [overtaken(mine, its) for mine, its in zip(first, runs, strict=True)] if runs is not first else []
            left, regret = PROTOTYPE.get(name, PROTOTYPE.get(name.replace("Eps", "Step"), ("", "")))
            off, lost = millions([run.off_baseline for run in runs]), millions([run.regret for run in runs])
            below = sum(run.violations for run in runs)
            knows = "yes" if runs[0].knows_baseline_value else "no"
            after = millions(behind) if behind and name not in ("OptPess-LP", "Reward-free safe RL") else ""
            yield f"| {seed} | {name} | {knows} | {off} | {left} | {lost} | {regret} | {below} | {after} |"
    yield ""
    left = []
    for seed in range(3):
        world = sf.random_mdp(4, 2, 3, seed, stationary=True)
        baseline = sf.boltzmann(sf.solve(world).Q, 5.0)
        value = float(sf.policy_value(world, baseline)[0, world.s1])
        given = {"baseline_value": value, "delta": DELTA, "pooled": True, "replan": sf.Growth(1.03)}
        agent = sf.OptPessLP(world.problem, baseline, value - 0.2, episodes=LONG, **given)
        left.append(sf.simulate(world, agent, LONG, 0).off_baseline)
    when = ", ".join(f"{k / 1e6:.2f}" for k in left)
    yield f"OptPess-LP with K = {LONG:,} leaves at {when} million (prototype 6.5–8.4).\n"


def costs(trials):
    """Costs in the DOPE paper's own worlds."""
    episodes = 1_000_000
    yield "## Costs within a budget: the DOPE paper's own worlds\n"
    yield (
        "Budget H/2; the baseline is the best policy with a fifth of it, so it costs H/10, and the agent "
        f"knows that. delta = 0.05, {episodes:,} episodes, pooled counts, growth 1.1, one run each. `best` is the "
        "constrained optimum.\n"
    )
    yield (
        "| world | agent | constants | off the baseline | episodes over budget | largest cost | budget | return at "
        "the end | baseline | best |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name in ("three-rooms", "inventory", "media-buffer"):
        world = sf.world(name)
        budget = world.H / 2
        best, poor = sf.constrained_optimum(world, budget), sf.constrained_optimum(world, budget / 5)
        for kind, boxes in ((sf.DOPE, sf.BernsteinBox), (sf.OptPessLP, sf.HoeffdingBox)):
            for box in (boxes(), sf.MaurerPontilBox()):
                given = {"cost": world.cost, "budget": budget, "baseline_cost": budget / 5, "episodes": episodes}
                agent = kind(world.problem, poor.policy, bounds=box, pooled=True, replan=sf.Growth(1.1), **given)
                run = sf.simulate(world, agent, episodes, 0)
                left = "never" if run.off_baseline is None else f"{run.off_baseline:,}"
                end = f"{run.curve.mean[-1]:.4f} | {poor.value:.4f} | {best.value:.4f}"
                constants = "sharper" if isinstance(box, sf.MaurerPontilBox) else "as printed"
                yield (
                    f"| {name} | {kind.name} | {constants} | {left} | {run.violations} | {run.max_cost:.4f} | "
                    f"{budget:g} | {end} |"
                )
    yield ""


def sums(trials):
    """The agents that keep a cumulative constraint."""
    episodes = 5_000
    yield "## Sums kept above the floor\n"
    yield (
        "Budget-Exploration and conservative UCBVI promise the SUM of all episodes so far, not each. KL bounds, counts "
        f"pooled where the world is stationary, growth 1.1, delta = 0.05, {10 * trials} runs of {episodes:,} episodes. "
        "`smallest sum`: the worst over all runs and episodes k of the sum of V - floor over the first k; below 0 the "
        "constraint is broken. Episodes below the floor, and regret: means per run.\n"
    )
    yield "| world | agent | knows V^b | runs that kept the sum | smallest sum | episodes below | regret | off at |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in ("trap-long", "dosing", "river-swim"):
        world = sf.world(name)
        pi_b, floor = world.baseline, world.suggested_floor
        same = {"pooled": world.stationary, "replan": sf.Growth(1.1)}
        given = {"baseline_value": sf.policy_value(world, pi_b)[0] @ world.start, **same}
        agents = (
            sf.StepMix(world.problem, pi_b, floor, **same),
            sf.BudgetExploration(world.problem, pi_b, floor, **same),
            sf.BudgetExploration(world.problem, pi_b, floor, **given),
            sf.ConservativeUCBVI(world.problem, pi_b, floor, episodes=episodes, **given),
            sf.ConservativeUCBVI(world.problem, pi_b, floor, **given),
            sf.BPIUCBVI(world.problem, **same),
        )
        names = ("StepMix", "Budget-Exploration", "Budget-Exploration", "conservative UCBVI", "the same, KL inside")
        for label, agent in zip((*names, sf.BPIUCBVI.name), agents, strict=True):
            runs = sf.simulate_many(world, agent, episodes, range(10 * trials), floor=floor, jobs=-1)
            kept = sum(run.min_cumulative >= -1e-9 for run in runs)
            below, lost = (
                statistics.mean(values) for values in zip(*((r.violations, r.regret) for r in runs), strict=True)
            )
            left = [run.off_baseline for run in runs if run.off_baseline is not None]
            off = f"{round(statistics.median(left)):,}" if len(left) > len(runs) / 2 else "never"
            known = "yes" if runs[0].knows_baseline_value else "no"
            smallest = min(run.min_cumulative for run in runs)
            row = f"{kept} of {len(runs)} | {smallest:.2f} | {below:,.1f} | {lost:,.1f} | {off}"
            yield f"| {name} | {label} | {known} | {row} |"
    yield ""


def optimists(trials):
    """BPI-UCBVI in the paper's form, and with Menard's constants."""
    episodes = 5_000_000
    yield "## Two forms of BPI-UCBVI\n"
    yield (
        "The paper's world, `random_mdp(5, 5, 3, seed)`, constants as printed, delta = 0.05, floor 2.0, "
        f"{episodes:,} episodes, blocks of 1 %, {trials} trials per world: means per run.\n"
    )
    yield "| world | agent | episodes below the floor | regret | return at the end |"
    yield "|---|---|---|---|---|"
    for seed in range(3):
        world = sf.random_mdp(5, 5, 3, seed)
        for agent in (
            sf.BPIUCBVI(world.problem, bounds=sf.Bernstein(), replan=sf.Blocks(0.01)),
            sf.BPIUCBVIMenard(world.problem, replan=sf.Blocks(0.01)),
        ):
            runs = sf.simulate_many(world, agent, episodes, range(trials), floor=2.0, jobs=-1)
            below, lost, end = (
                statistics.mean(values)
                for values in zip(*((r.violations, r.regret, r.curve.mean[-1]) for r in runs), strict=True)
            )
            optimum = sf.solve(world).value
            yield f"| {seed} | {agent.name} | {below:,.0f} | {lost:,.0f} | {end:.4f} of {optimum:.4f} |"
    yield ""


PARTS = {"compare": compare, "costs": costs, "sums": sums, "optimists": optimists}


def main():
    """Write all parts, or print some of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    lines = ["# Rivals, measured\n", "Written by `python tools/rivals_tables.py`; what the agents are: rivals.md.\n"]
    for name in options.only:
        for line in PARTS[name](options.trials):
            print(line, flush=True)  # it takes minutes
            lines.append(line)
    if options.only == list(PARTS):
        (DOCS / "rivals-tables.md").write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
