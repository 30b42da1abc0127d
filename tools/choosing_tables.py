"""Write the measured tables of docs/choosing.md: how long agents wait, by agent, evidence, log,
floor and delta.

    python tools/choosing_tables.py [--runs 15]
    python tools/choosing_tables.py --only floors --worlds bandit   (these rows alone)

A table is what stands between `<!-- table: name -->` and `<!-- end -->`. About ten minutes.
"""

import argparse
import re
import statistics
from pathlib import Path

import numpy as np

import surefoot as sf
from surefoot.run.sample_log import draw_episodes

PAGE = Path(__file__).parents[1] / "docs" / "choosing.md"
DELTA = 0.1
EPISODES = 20_000
NAMES = ("dosing", "queue", "offers", "media-buffer", "river-swim", "deep-sea")
CONTEXTS, ACTIONS = 30, 4


def bandit():
    """A bandit of 30 contexts and 4 actions, H = 1: each reward is 0 or 1, with a mean of 0.05
    to 0.45.
    """
    rng = np.random.default_rng(0)
    r = rng.uniform(0.05, 0.45, (CONTEXTS, ACTIONS))
    P = np.zeros((CONTEXTS, ACTIONS, CONTEXTS))
    P[:, :, 0] = 1.0
    return sf.TabularMDP(P, r, H=1, start=np.full(CONTEXTS, 1 / CONTEXTS), random_rewards=True)


def cases():
    """Each world, the problem as agents know it, the baseline, its value, the floor, and the
    episodes of a run.
    """
    return (case for case in all_cases() if case[0] in Measured.worlds)


def all_cases():
    """The cases of all worlds."""
    for name in NAMES:
        world = sf.world(name)
        value = world.at_start(sf.policy_value(world, world.baseline)[0])
        yield name, world, world.problem, world.baseline, value, world.suggested_floor, EPISODES
    world = bandit()
    baseline = sf.uniform(1, CONTEXTS, ACTIONS)
    value = world.at_start(sf.policy_value(world, baseline)[0])
    yield "bandit", world, world.problem.forget(rewards=True), baseline, value, 0.9 * value, 50_000


def amount(x, problem):
    """An amount with its unit."""
    return f"{x:.4g} {problem.units.name}".rstrip()


def row(*cells):
    """A row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def heading(*cells):
    """The first two rows of a table."""
    return [row(*cells), row(*["---"] * len(cells))]


def median(values, most):
    """The median, where not all values need be known: None is beyond `most`."""
    middle = statistics.median(most + 1 if value is None else value for value in values)
    return f"> {most:,}" if middle > most else f"{middle:,.0f}"


class Measured:
    """Runs of one agent: medians, and all violations so far."""

    violations = 0
    runs = 0
    worlds = (*NAMES, "bandit")

    def __init__(self, world, agent, episodes, seeds, warm=None):
        """Play them, each with counts of its own where `warm` makes some."""
        self.episodes = episodes
        if warm is None:
            self.all = sf.simulate_many(world, agent, episodes, seeds)
        else:
            self.all = [
                sf.simulate(world, agent, episodes, seed, counts=warm(seed)) for seed in seeds
            ]
        Measured.violations += sum(run.violations for run in self.all)
        Measured.runs += len(self.all)

    @property
    def waiting(self):
        """Off the baseline / optimistic."""
        off = median([run.off_baseline for run in self.all], self.episodes)
        return f"{off} / {median([run.first_optimistic for run in self.all], self.episodes)}"

    @property
    def optimistic(self):
        """The first optimistic episode."""
        return median([run.first_optimistic for run in self.all], self.episodes)

    @property
    def regret(self):
        """The regret over all episodes."""
        return f"{statistics.median(run.regret for run in self.all):,.0f}"


def worlds(runs):
    """What the worlds are."""
    yield from heading("world", "S, A, H", "optimum", "baseline", "floor", "episodes of a run")
    for name, world, problem, _, value, floor, episodes in cases():
        shown = [amount(x, problem) for x in (sf.solve(world).value, value, floor)]
        yield row(name, f"{world.S}, {world.A}, {world.H}", *shown, f"{episodes:,}")


def agents(runs):
    """Agents and their evidence."""
    columns = {
        "EpsMix": (sf.EpsMix, {}),
        "StepMix": (sf.StepMix, {}),
        "EpsMix, `returns=None`": (sf.EpsMix, {"returns": None}),
        "EpsMix, mask known": (sf.EpsMix, {"mask": True}),
        "EpsMix, not pooled": (sf.EpsMix, {"pooled": False}),
    }
    waiting, regret = heading("world", *columns), heading("world", *columns)
    for name, world, problem, baseline, _, floor, episodes in cases():
        found = []
        for kind, more in columns.values():
            masked = "mask" in more
            known = world.with_support() if masked else world
            about = (
                (known.problem.forget(rewards=True) if name == "bandit" else known.problem)
                if masked
                else problem
            )
            settings = {
                "delta": DELTA,
                "pooled": True,
                **{key: more[key] for key in more if key != "mask"},
            }
            found.append(
                Measured(known, kind(about, baseline, floor, **settings), episodes, range(runs))
            )
        waiting.append(row(name, *(one.waiting for one in found)))
        regret.append(row(name, *(one.regret for one in found)))
        print(waiting[-1], regret[-1], sep="\n", flush=True)
    yield "Off the baseline / optimistic, in episodes:"
    yield ""
    yield from waiting
    yield ""
    yield "Regret over the run, in units of return:"
    yield ""
    yield from regret


def logs(runs):
    """Logs of the baseline, without and with their returns."""
    sizes = (0, 100, 500, 2000, 8000)
    yield from heading("world", "evidence of the log", *(f"{n:,} logged" for n in sizes))
    for name in (name for name in ("dosing", "queue", "offers") if name in Measured.worlds):
        world = sf.world(name)
        agent = sf.EpsMix(
            world.problem, world.baseline, world.suggested_floor, delta=DELTA, pooled=True
        )
        for with_returns in (False, True):
            cells = []
            for n in sizes:

                def warm(seed, n=n, agent=agent, world=world, with_returns=with_returns):
                    rng = np.random.default_rng([seed, n])
                    states, actions = draw_episodes(world, agent.pi_b, n, rng)
                    log = [
                        sf.Episode.of(world.problem, *each)
                        for each in zip(states, actions, strict=True)
                    ]
                    counts = sf.Counts.from_log(world.problem, log, pooled=True)
                    if not with_returns:
                        return counts
                    return agent.with_logged_returns(counts, [each.rewards.sum() for each in log])

                found = Measured(world, agent, EPISODES, range(runs), warm if n else None)
                cells.append(found.waiting)
            yield row(name, "steps and returns" if with_returns else "steps alone", *cells)


def floors(runs):
    """Floors of each kind, and what they cost."""
    yield from heading("world", "loss allowed", "a number", "`Relative`", "`Below`")
    for name in (
        name for name in ("dosing", "queue", "offers", "bandit") if name in Measured.worlds
    ):
        world, problem, baseline, value, episodes = next(
            (w, p, b, v, k) for found, w, p, b, v, _, k in cases() if found == name
        )
        for loss in (0.05, 0.1):
            share = "" if problem.units.low < 0.0 else sf.Relative(loss)
            cells = []
            for floor in ((1.0 - loss) * value, share, sf.Below(loss * value)):
                if floor == "":
                    cells.append("negative rewards")
                    continue
                agent = sf.EpsMix(problem, baseline, floor, delta=DELTA, pooled=True)
                found = Measured(world, agent, episodes, range(runs))
                cells.append(f"{found.waiting}; {found.regret}")
            yield row(name, f"{amount(loss * value, problem)} ({100 * loss:g} %)", *cells)


def deltas(runs):
    """What a smaller delta costs."""
    given = (0.3, 0.1, 0.05, 0.01, 0.001, 1e-6)
    yield from heading("world", *(f"delta {delta:g}" for delta in given))
    for name, world, problem, baseline, _, floor, episodes in cases():
        if name not in ("dosing", "queue", "offers", "bandit"):
            continue
        some = [sf.EpsMix(problem, baseline, floor, delta=delta, pooled=True) for delta in given]
        yield row(name, *(Measured(world, agent, episodes, range(runs)).waiting for agent in some))


TABLES = {"worlds": worlds, "agents": agents, "logs": logs, "floors": floors, "deltas": deltas}


def with_rows(before, measured):
    """The table as it was, with the rows of the worlds that were measured; of all worlds: what
    was measured.
    """
    names = tuple(f"| {name} |" for name in Measured.worlds)
    rows = iter([line for line in measured.splitlines() if line.startswith(names)])
    kept = [next(rows) if line.startswith(names) else line for line in before.splitlines()]
    return measured if len(names) == len(NAMES) + 1 else "\n".join(kept)


def main():
    """Measure every table, and write it into the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument(
        "--worlds", nargs="+", choices=Measured.worlds, default=list(Measured.worlds)
    )
    chosen = parser.parse_args()
    in_full = chosen.only == list(TABLES) and chosen.worlds == list(Measured.worlds)
    Measured.worlds = tuple(chosen.worlds)
    tables = {}
    for name in chosen.only:
        lines = []
        for line in TABLES[name](chosen.runs):
            print(line, flush=True)
            lines.append(line)
        tables[name] = "\n".join(lines)
    if in_full:
        seen = f"{Measured.violations:,}, in all episodes of {Measured.runs:,} runs"
        tables["violations"] = f"Episodes below the floor, in all tables of this page: {seen}."
    text = PAGE.read_text()
    for name, table in tables.items():
        place = rf"(?<=<!-- table: {name} -->\n).*?(?=\n<!-- end -->)"
        text = re.sub(
            place, lambda found, table=table: with_rows(found[0], table), text, flags=re.DOTALL
        )
    PAGE.write_text(text)
    print(Measured.violations, "violations in", Measured.runs, "runs")


if __name__ == "__main__":
    main()
