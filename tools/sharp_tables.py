"""Write docs/sharp-tables.md: sharp certificates beside the paper's bounds and the optimistic policy without a floor.

    python tools/sharp_tables.py [--trials 20] [--only random lake hard limit]

About half an hour on two cores.
"""

import argparse
import math
import statistics
from pathlib import Path

import numpy as np
from scipy.optimize import brentq, minimize_scalar

import surefoot as sf
from surefoot.simulation.sample_log import draw_episodes
from surefoot.worlds.exact import value_of

DOCS = Path(__file__).parents[1] / "docs"
DELTA = 0.1
RULE = sf.Growth(1.1)  # all were measured with it; the default plans less often at first (docs/scaling.md)
WAIT = (20_000, 1_000_000)  # episodes, until an agent is off its baseline
LONG = 400_000_000  # episodes with the paper's bounds, drawn in blocks
SAMPLE = 200_000  # baseline episodes from which the distribution of returns is taken
HARD = ("trap", "trap-long", "trap-pit", "river-swim", "deep-sea", "inventory", "queue", "dosing", "offers")


def spread(values):
    """The median and range, or how many never."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return f"{len(values) - len(known)} of {len(values)} never"
    middle = round(statistics.median(known))
    return f"{middle:,}" if min(known) == max(known) else f"{middle:,} ({min(known):,}–{max(known):,})"


def paper(kind, world, baseline, floor, pooled):
    """One run with the literal constants, in blocks of 1 %."""
    settings = {"delta": DELTA, "pooled": pooled, "bounds": sf.Bernstein(), "replan": sf.Blocks(0.01)}
    return sf.simulate(world.averaged(), kind(world.averaged().problem, baseline, floor, **settings), LONG, 0)


def never(episode):
    """The number of an episode, or "never"."""
    return "never" if episode is None else f"{episode:,}"


def law_of_returns(world, agent):
    """Returns of the agent's baseline as parts of their range, their probabilities, and the floor in the same units.

    They are drawn, and then weighted by exp(c x), so that their mean is the exact one.
    """
    possible = agent.possible_returns
    states, actions = draw_episodes(world, agent.pi_b, SAMPLE, np.random.default_rng(0))
    paid = sum(world.mean_reward(h, states[:, h], actions[:, h], states[:, h + 1]) for h in range(world.H))
    exact, m = ((v - possible.lowest) / possible.span for v in (value_of(world, agent.pi_b), agent.level))
    x, counts = np.unique(np.clip((paid - possible.lowest) / possible.span, 0.0, 1.0), return_counts=True)

    def weighted(c):
        tilted = counts * np.exp(c * (x - exact))
        return tilted / tilted.sum()

    return x, weighted(brentq(lambda c: weighted(c) @ x - exact, -1.0, 1.0)), m


def limit(world, agent):
    """About how many returns any test needs at this level: log(1/(share delta)) / KL_inf."""
    x, weights, m = law_of_returns(world, agent)

    def lost(theta):
        return -float(weights @ np.log1p(theta * (x / m - 1.0)))

    kl_inf = -minimize_scalar(lost, bounds=(0.0, 1.0 - 1e-12), method="bounded", options={"xatol": 1e-10}).fun
    return -math.log(agent.returns.share * agent.delta) / kl_inf


def random_worlds(trials):
    """The paper's worlds: a row for each seed, eta and floor below the baseline."""
    yield "## The paper's worlds\n"
    yield (
        f"S = 5, A = 5, H = 3, delta = {DELTA}, {trials} trials of 3,000 episodes with KL (growth 1.1); the paper's "
        f"bounds: one run of {LONG:,} episodes in blocks. Episode of the first optimistic policy: median (range); "
        "violations over all trials. The ratio is of the paper's first optimistic episode to the latest with KL.\n"
    )
    yield (
        "| seed | eta | floor | baseline | StepMix, KL | EpsMix, KL | violations | StepMix, paper | EpsMix, paper | "
        "ratio |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for seed in (0, 1, 3):
        world = sf.random_mdp(5, 5, 3, seed)
        for eta in (5.0, 10.0):
            baseline = sf.boltzmann(sf.solve(world).Q, eta)
            value = float(sf.policy_value(world, baseline)[0, world.s1])
            for floor in (2.0, 2.2):
                if value <= floor:
                    continue
                runs = {
                    kind: sf.simulate_many(
                        world,
                        kind(world.problem, baseline, floor, delta=DELTA, replan=RULE),
                        3000,
                        range(trials),
                        jobs=2,
                    )
                    for kind in (sf.StepMix, sf.EpsMix)
                }
                late = [[run.first_optimistic for run in runs[kind]] for kind in runs]
                slow = [paper(kind, world, baseline, floor, False).first_optimistic for kind in runs]
                violations = sum(run.violations for kind in runs for run in runs[kind])
                worst = max(k for some in late for k in some)
                ratio = "" if slow[0] is None else f"{slow[0] / max(worst, 1):,.0f}"
                cells = [
                    seed,
                    f"{eta:g}",
                    floor,
                    f"{value:.4f}",
                    *map(spread, late),
                    violations,
                    *map(never, slow),
                    ratio,
                ]
                yield "| " + " | ".join(map(str, cells)) + " |"
    yield ""


def table(world, baseline, floors, trials, episodes, pooled):
    """The table of all agents in one world."""
    yield (
        "| floor | agent | violating episodes | limit | off baseline | optimistic | last value / V* | paper's bounds: "
        "off, optimistic |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    best = sf.solve(world).value
    agents = (
        ("StepMix, model alone", sf.StepMix, {"returns": None}),
        ("EpsMix, model alone", sf.EpsMix, {"returns": None}),
        ("StepMix", sf.StepMix, {}),
        ("EpsMix", sf.EpsMix, {}),
    )
    for floor in floors:
        shown = f"{floor:.4g}"
        for name, kind, more in agents:
            agent = kind(world.problem, baseline, floor, delta=DELTA, pooled=pooled, replan=RULE, **more)
            runs = sf.simulate_many(world, agent, episodes, range(trials), jobs=2)
            last = [float(run.curve.mean[-1]) / best for run in runs]
            literal = ""
            if not more:
                slow = paper(kind, world, baseline, floor, pooled)
                literal = f"{never(slow.off_baseline)}, {never(slow.first_optimistic)}"
            cells = [
                shown,
                name,
                sum(run.violations for run in runs),
                "" if more else f"{limit(world, agent):,.0f}",
                spread([run.off_baseline for run in runs]),
                spread([run.first_optimistic for run in runs]),
                f"{statistics.median(last):.3f} ({min(last):.3f}–{max(last):.3f})",
                literal,
            ]
            yield "| " + " | ".join(map(str, cells)) + " |"
        optimist = sf.BPIUCBVI(world.problem, delta=DELTA, pooled=pooled, replan=RULE)
        runs = sf.simulate_many(world, optimist, episodes, range(trials), floor=floor, jobs=2)
        below = spread([run.violations for run in runs])
        yield f"| {shown} | the optimistic policy, no floor | {below} per trial | | 0 | 0 | | |"
    yield ""


def lake(trials):
    """The tables of FrozenLake: half of the trials, because a plan of StepMix takes long."""
    trials, episodes = max(trials // 2, 1), 5000
    world = sf.from_gymnasium("FrozenLake-v1", horizon=50).with_support()
    best = sf.solve(world)
    baseline = 0.8 * best.policy + 0.2 / world.A
    value = world.at_start(sf.policy_value(world, baseline)[0])
    yield "## FrozenLake-v1, H = 50\n"
    yield (
        f"Known support, counts pooled, delta = {DELTA}, {trials} trials of {episodes:,} episodes; "
        f"V* = {best.value:.4f}, baseline (optimal action with 0.8, else any) {value:.4f}. "
        "StepMix's candidates differ from the baseline from some step on, and neighbours at one step only: of all its "
        "candidates returns say something about one, pi_b itself, so they help it to its first mixture and no "
        "further.\n"
    )
    yield from table(world, baseline, (0.13, 0.18), trials, episodes, pooled=True)


def hard(trials):
    """The tables of our hard worlds."""
    yield "## Worlds in which a wrong guess hurts\n"
    yield (
        f"Usual baselines and floors, counts pooled where the world is stationary, delta = {DELTA}, {trials} trials.\n"
    )
    for name in HARD:
        world = sf.world(name)
        value = world.at_start(sf.policy_value(world, world.baseline)[0])
        yield f"### {name}\n"
        yield f"V* = {sf.solve(world).value:.4f}, baseline {value:.4f}, 20,000 episodes.\n"
        yield from table(world, world.baseline, (world.suggested_floor,), trials, 20_000, pooled=world.stationary)


def until_off(world, agent, trials):
    """Runs that are long enough to leave the baseline."""
    for episodes in WAIT:
        runs = sf.simulate_many(world, agent, episodes, range(trials), jobs=2)
        if all(run.off_baseline is not None for run in runs):
            break
    return runs


def beside_the_limit(trials):
    """The table of all worlds: off the baseline, beside what the returns could prove at best."""
    yield "## Beside the information limit\n"
    yield (
        f"EpsMix, delta = {DELTA}, counts pooled where the world is stationary, {trials} trials: "
        "median (range). *By the model alone*: `returns=None`. *With KL(0.5)*: the default before, `returns=None` "
        "and `bounds=sf.KL(0.5)`. The ratio is of the median to the limit; an agent that is sooner than the limit has "
        "left its baseline by what the model proves.\n"
    )
    yield (
        "| world | margin, of the range | limit | off baseline | ratio | by the model alone | with KL(0.5) | "
        "violations |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name in sf.FAMILIES:
        world = sf.world(name)
        settings = {"delta": DELTA, "pooled": world.stationary, "replan": RULE}
        agents = [
            sf.EpsMix(world.problem, world.baseline, world.suggested_floor, **settings, **more)
            for more in ({}, {"returns": None}, {"returns": None, "bounds": sf.KL(0.5)})
        ]
        runs = [until_off(world, agent, trials) for agent in agents]
        off = [[run.off_baseline for run in some] for some in runs]
        x, weights, m = law_of_returns(world, agents[0])
        least = limit(world, agents[0])
        cells = [
            name,
            f"{100 * (weights @ x - m):.2g} %",
            f"{least:,.0f}",
            spread(off[0]),
            f"{statistics.median(off[0]) / least:.2f}",
            spread(off[1]),
            spread(off[2]),
            sum(run.violations for some in runs for run in some),
        ]
        yield "| " + " | ".join(map(str, cells)) + " |"
    yield ""


PARTS = {"random": random_worlds, "lake": lake, "hard": hard, "limit": beside_the_limit}


def introduction():
    """What stands above the tables."""
    return [
        "# Sharp certificates, measured",
        "",
        "Written by `python tools/sharp_tables.py`. All agents here are certified (scale 1): a run may have violations",
        "with probability delta. The paper's bounds are its own constants; where rewards depend on the next state they",
        "are given the means. *Model alone* is `returns=None`: no returns, and all of delta for the model.",
        "Plans are made at growth 1.1; by default they are made less often at first (scaling.md).",
        "",
        "*Limit*: about how many returns of the baseline any test needs that may be wrong with probability share",
        "times delta (0.05 here): log(1/(share delta)) / KL_inf episodes. KL_inf is the largest mean of",
        "log(1 - theta + theta x / m) over theta in [0, 1], for returns x as parts of their range and the floor m,",
        f"found from {SAMPLE:,} returns. It is a mean: half of the runs may be sooner. And the model may prove the",
        "floor sooner than any test of returns.",
        "",
    ]


def page(parts, trials, before):
    """The page as text. Parts that are not measured again stay as they are in the page before."""
    kept = {text.partition("\n")[0]: text for text in before.split("\n## ")[1:]}
    sections = []
    for part, measure in PARTS.items():
        lines = []
        for line in measure(trials) if part in parts else [next(measure(trials))]:
            print(line, flush=True)  # it takes minutes
            lines.append(line)
        title = lines[0].strip().removeprefix("## ")
        sections.append("\n".join(lines).strip() if part in parts else "## " + kept.get(title, title).strip())
    return "\n".join(introduction()) + "\n" + "\n\n".join(sections) + "\n"


def main():
    """Measure the parts that are asked for, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args()
    target = DOCS / "sharp-tables.md"
    target.write_text(page(chosen.only, chosen.trials, target.read_text()))


if __name__ == "__main__":
    main()
