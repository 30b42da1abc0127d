"""Write docs/sharp-tables.md: sharp certificates beside the paper's bounds and the optimistic policy without a floor.

    python tools/sharp_tables.py [--trials 20] [--only random lake hard]

About ten minutes on two cores.
"""

import argparse
import statistics
from pathlib import Path

import surefoot as sf

DOCS = Path(__file__).parents[1] / "docs"
DELTA = 0.1
LONG = 400_000_000  # episodes with the paper's bounds, drawn in blocks
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
                        world, kind(world.problem, baseline, floor, delta=DELTA), 3000, range(trials), jobs=2
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
        "| floor | agent | violating episodes | off baseline | optimistic | last value / V* | paper's bounds: off, "
        "optimistic |"
    )
    yield "|---|---|---|---|---|---|---|"
    best = sf.solve(world).value
    agents = (
        ("StepMix", sf.StepMix, {}),
        ("EpsMix", sf.EpsMix, {}),
        ("StepMix, returns", sf.StepMix, {"returns": sf.Returns()}),
        ("EpsMix, returns", sf.EpsMix, {"returns": sf.Returns()}),
    )
    for floor in floors:
        shown = f"{floor:.4g}"
        for name, kind, more in agents:
            agent = kind(world.problem, baseline, floor, delta=DELTA, pooled=pooled, **more)
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
                spread([run.off_baseline for run in runs]),
                spread([run.first_optimistic for run in runs]),
                f"{statistics.median(last):.3f} ({min(last):.3f}–{max(last):.3f})",
                literal,
            ]
            yield "| " + " | ".join(map(str, cells)) + " |"
        optimist = sf.BPIUCBVI(world.problem, delta=DELTA, pooled=pooled)
        runs = sf.simulate_many(world, optimist, episodes, range(trials), floor=floor, jobs=2)
        below = spread([run.violations for run in runs])
        yield f"| {shown} | the optimistic policy, no floor | {below} per trial | 0 | 0 | | |"
    yield ""


def lake(trials):
    """The tables of FrozenLake."""
    world = sf.from_gymnasium("FrozenLake-v1", horizon=50).with_support()
    best = sf.solve(world)
    baseline = 0.8 * best.policy + 0.2 / world.A
    value = world.at_start(sf.policy_value(world, baseline)[0])
    yield "## FrozenLake-v1, H = 50\n"
    yield (
        f"Known support, counts pooled, delta = {DELTA}, {trials} trials of 20,000 episodes; V* = {best.value:.4f}, "
        f"baseline (optimal action with 0.8, else any) {value:.4f}. StepMix's candidates differ from the baseline from "
        "some step on, and neighbours at one step only: of all its candidates returns say something about one, pi_b "
        "itself, so they help it to its first mixture and no further.\n"
    )
    yield from table(world, baseline, (0.13, 0.18), trials, 20_000, pooled=True)


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


PARTS = {"random": random_worlds, "lake": lake, "hard": hard}


def page(parts, trials):
    """The page as text; each line is printed when it is known."""
    lines = [
        "# Sharp certificates, measured",
        "",
        "Written by `python tools/sharp_tables.py`. All agents here are certified (scale 1). The paper's bounds are",
        "its own constants; where rewards depend on the next state they are given the means.",
        "",
    ]
    for part in parts:
        for line in PARTS[part](trials):
            print(line, flush=True)  # it takes minutes
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args()
    text = page(chosen.only, chosen.trials)
    if chosen.only == list(PARTS):
        (DOCS / "sharp-tables.md").write_text(text)
