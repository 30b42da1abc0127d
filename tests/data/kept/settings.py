"""The runs whose bits are kept, in the words of the public interface.

Everything here goes through `surefoot`'s public names, but for the plain loop of
tests/shared/plain_loop.py. If one of them, or an attribute, gets
another name, this file is the only one to change; the numbers in bits.json stay as they are.
"""

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import gymnasium
import llvmlite.binding
import numpy as np
from gymnasium.spaces import Discrete

import surefoot as sf
from plain_loop import simulate_plainly

LIBRARIES = ("numpy", "numba", "highspy", "duckdb", "gymnasium")

# Said, because the defaults are others.
PRIOR = sf.KL(full_support=True)
DEFAULTS: dict[str, Any] = {"bounds": PRIOR, "returns": None}  # of the StepMix family
# a plan before every episode; others name a share, and play blocks
EVERY: dict[str, Any] = {"replan": 0.0}
SHARE = 0.2  # of delta, for returns


# ---- digests


def machine() -> dict[str, Any]:
    """What last bits may depend on beside our code: libraries, and what the processor can do."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    libraries = {name: version(name) for name in LIBRARIES}
    return {
        **libraries,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": llvmlite.binding.get_host_cpu_name(),
        "simd": sorted(found),
    }


def digest(parts: dict[str, Any]) -> str:
    """A hash of labels, kinds, shapes and every byte. Labels are ours: they are not read from
    the library.
    """
    total = hashlib.sha256()
    for label in sorted(parts):
        value = parts[label]
        if value is None or isinstance(value, str):
            total.update(f"{label} {value!r} ".encode())
            continue
        array = np.asarray(value)
        total.update(f"{label} {array.dtype.str} {array.shape} ".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def sha256(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def of_ledger(path: Path) -> dict[str, Any]:
    """The records of a ledger; not their chain, nor the version that wrote them."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [
        {name: value for name, value in line.items() if name not in ("digest", "software")}
        for line in lines
    ]
    return {"records": json.dumps(kept, sort_keys=True)}


def in_file(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file, read by numpy alone; not the header, which names the version
    that wrote it.
    """
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files if name != "about"}


class Made(NamedTuple):
    """What came of a run: groups of labelled numbers, and some of them to compare where last
    bits may differ.
    """

    groups: dict[str, dict[str, Any]]
    numbers: dict[str, float | None]

    def as_json(self) -> dict[str, Any]:
        """As expected.json and bits.json have it."""
        return {
            "digests": {name: digest(group) for name, group in self.groups.items()},
            "numbers": {
                name: None if value is None else float(value)
                for name, value in self.numbers.items()
            },
        }


def of_counts(counts: sf.Counts | None) -> dict[str, Any]:
    """Everything that counts hold, the counts of the plan in force included."""
    if counts is None:
        return {"none": None}
    spread = {"return weights": counts.return_weights, "return range": counts.return_range}
    return {
        **(spread if counts.return_weights.any() else {}),
        "n_sas": counts.n_sas,
        "sums of rewards": counts.x_sa,
        "starts": counts.n_start,
        "returns": counts.baseline_returns,
        "returns of": counts.returns_of is not None,
        "account": counts.account,
        "account of": counts.account_of is not None,
        "basis": counts.basis,
        "logged": counts.logged,
        "pooled": counts.pooled,
        "H": counts.H,
        "s1": counts.s1,
        "planned": digest(of_counts(counts.planned)),
    }


def of_run(run: sf.Run) -> Made:
    """All numbers of a run; not its words, nor how long it took."""
    curve, trace = run.curve, run.trace
    totals = {
        "episodes": run.episodes,
        "floor": run.floor,
        "optimum": run.optimum,
        "baseline": run.baseline,
        "violations": run.violations,
        "regret": run.regret,
        "smallest value": run.min_value,
        "smallest sum": run.min_cumulative,
        "mean value": run.mean_value,
        "mean return": run.mean_return,
        "first mixture": run.first_mixture,
        "first optimist": run.first_optimistic,
        "budget": run.budget,
        "baseline's cost": run.baseline_cost,
        "largest cost": run.max_cost,
    }
    alarm: tuple[Any, ...] = ()
    if run.alarm is not None:
        alarm = (run.alarm.episodes, run.alarm.mean_return, run.alarm.mean_of_last)
    groups = {
        "counts": of_counts(run.counts),
        "totals": totals,
        "exits": {"sources": list(run.sources.values()), "by h": run.by_h, "alarm": alarm},
        "curve": {
            "episode": curve.episode,
            "episodes": curve.episodes,
            "mean": curve.mean,
            "min": curve.min,
            "below": curve.below,
            "regret": curve.regret,
            "sources": curve.sources,
            "by h": curve.by_h,
        },
    }
    if trace is not None:
        groups["trace"] = {
            "episode": trace.episode,
            "lower": trace.lower,
            "upper": trace.upper,
            "rho": trace.rho,
            "h": trace.h,
            "candidates": trace.candidates,
        }
    return Made(groups, {**totals, **{f"exit {i}": n for i, n in enumerate(run.sources.values())}})


def of_plan(plan: sf.Plan) -> dict[str, Any]:
    """The numbers of a plan."""
    coin = isinstance(plan.policy, sf.EpisodicMixture)
    return {
        "policy": np.stack([plan.policy.first, plan.policy.second]) if coin else plan.policy,
        "h": plan.h,
        "rho": plan.rho,
        "lower": plan.lower,
        "upper": plan.upper,
        "candidates": plan.candidates,
        "cost": plan.cost,
    }


def of_learnt(learnt: sf.Learnt) -> dict[str, Any]:
    """What was learnt from a log."""
    return {
        "policy": learnt.policy,
        "lower": learnt.rescaled_lower,
        "estimate": learnt.estimate,
        "certified": learnt.certified,
    }


def of_log(log: sf.LogCounts) -> dict[str, Any]:
    """What was counted in a log."""
    paid = log.rewards
    return {
        "counts": digest(of_counts(log.counts)),
        "folds": log.folds,
        "starts": log.starts,
        "mean": paid.mean,
        "min": paid.min,
        "max": paid.max,
        "n": paid.n,
        "episodes": log.episodes,
        "rows": log.rows,
        "rest": log.absorbing_state,
        "mean return": log.mean_return,
    }


def of_trials(folder: Path) -> dict[str, Any]:
    """Every number of every trial in a folder of results, read by DuckDB alone; no words."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("trials/**/*.parquet")):
        table = duckdb.sql(f"SELECT * FROM read_parquet('{path}', hive_partitioning = false)")
        values = dict(zip(table.columns, table.fetchall()[0], strict=True))
        where = path.relative_to(folder).as_posix()
        found |= {
            f"{where} {name}": value
            for name, value in values.items()
            if not isinstance(value, str) and not name.startswith("promise_")
        }
    return found


# ---- a toy environment


class Walk(gymnasium.Env):
    """Two places, numbered 1 and 2, and two starts. Action 3 waits and earns 0; action 4 wins 5 and
    ends with probability 1/2, else pays 1 and moves to the other place. The end is on the
    transition, not on the state.
    """

    observation_space = Discrete(2, start=1)
    action_space = Discrete(2, start=3)

    def __init__(self, shown: bool = True) -> None:
        """`shown`: does the environment show its model?"""
        self.table = {
            s: {3: [(1.0, s, 0.0, False)], 4: [(0.5, 3 - s, 5.0, True), (0.5, 3 - s, -1.0, False)]}
            for s in (1, 2)
        }
        if shown:
            self.P, self.initial_state_distrib = self.table, np.array([0.25, 0.75])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = 1 + int(self.np_random.random() >= 0.25)
        return self.s, {}

    def step(self, action):
        outcomes = self.table[self.s][action]
        i = int(len(outcomes) > 1 and self.np_random.random() >= 0.5)
        _, self.s, reward, terminated = outcomes[i]
        return self.s, reward, terminated, False, {}


def walk_world() -> sf.TabularMDP:
    """The toy, by its model."""
    return sf.from_gymnasium(Walk(), horizon=4)


def walk_live() -> sf.Problem:
    """The toy without its model: rewards are unknown."""
    return sf.from_gymnasium(Walk(shown=False), horizon=4, reward_range=(-1, 5), stationary=True)


def half(problem: sf.Problem) -> np.ndarray:
    """The baseline of the toy: either action with probability 1/2."""
    return sf.embed_policy(problem, np.full((2, 2), 0.5))


# ---- saved runs of `learn`


def stepmix_kl() -> sf.StepMix:
    world = walk_world()
    floor = 1.5
    return sf.StepMix(
        world.problem, half(world.problem), floor, pooled=True, replan=0.3, **DEFAULTS
    )


def epsmix_live() -> sf.EpsMix:
    """Unknown rewards, returns as evidence, and a certificate from before."""
    problem = walk_live()
    baseline = half(problem)
    nothing = sf.certify(
        baseline, sf.Counts.zeros(problem, pooled=True), problem, 0.01, PRIOR
    ).certificate
    proof = replace(nothing, value=0.25, rescaled=None)
    settings = {
        "pooled": True,
        "replan": 1.0,
        "returns": sf.Returns(share=0.5),
        "certificate": proof,
    }
    return sf.EpsMix(problem, baseline, -0.5, delta=0.1, bounds=PRIOR, **settings)


def worth(world: sf.TabularMDP, policy: np.ndarray, less: float = 0.0) -> float:
    """The value of a policy less so much, which is rescaled."""
    units = world.problem.units
    return units.to_user(units.from_user(world.at_start(sf.policy_value(world, policy)[0])) - less)


# ---- counts, a watch and a loop of one's own


def veiled_world() -> sf.TabularMDP:
    """Random rewards, several starts, and a mask of what is possible."""
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    P[0, 0] = [0.0, 0.4, 0.6]
    return sf.TabularMDP(
        P, rng.random((3, 2)), H=3, start=[0.5, 0.2, 0.3], random_rewards=True
    ).with_support()


def baseline_of(world: sf.TabularMDP) -> np.ndarray:
    return sf.boltzmann(sf.solve(world).Q, eta=3.0)


def share_of(world: sf.TabularMDP, share: float) -> float:
    """A floor at this share of what the baseline is worth."""
    return share * worth(world, baseline_of(world))


# ---- logs


SHOP_COLUMNS = {
    "episode": "customer",
    "step": "week",
    "state": "segment",
    "action": "offer",
    "reward": "margin",
}
SHOP_COLUMNS |= {"next_state": "next", "terminated": "left"}
SHOP = {"columns": SHOP_COLUMNS, "reward_range": (-3.0, 8.0), "seed": 5, "states": "as logged"}
PLAIN = {"states": "as logged", "reward_range": (0.0, 1.0)}


def shop_rows(customers: int = 60) -> str:
    """A log with labels, early ends and rewards that vary, as a user would export it."""
    rng = np.random.default_rng(1)
    rows = ["customer,week,segment,offer,margin,next,left"]
    for i in range(customers):
        segment = "new"
        for week in (1, 2, 3):
            offer = ("mail", "call")[int(rng.integers(2))]
            left = rng.random() < 0.1
            after = "" if left else "loyal" if rng.random() < 0.6 else "new"
            margin = (1.0 if offer == "mail" else -2.0) + (6.0 if segment == "loyal" else 0.0)
            margin += 0.5 * int(rng.integers(2))
            rows.append(f"c{i},{week},{segment},{offer},{margin},{after},{int(left)}")
            if left:
                break
            segment = after
    return "\n".join(rows) + "\n"


# ---- a study of a user's own: most of the fields that there are

SMALL_STUDY = """\
name = "small"
title = "One place"
question = "Is the trap avoided?"
trials = 1
episodes = 300
replan = 0.05

[[scenarios]]
id = "trap"
world = { name = "trap" }
floor = { of_baseline = 0.75 }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"
"""


# ---- configured runs


def simulated(
    build: Callable[[], tuple[sf.TabularMDP, sf.Agent]], episodes: int, looks: tuple[int, ...] = ()
):
    """A run in a known world."""

    def run(seed: int, folder: Path) -> Made:
        world, agent = build()
        return of_run(sf.simulate(world, agent, episodes, seed, progress=False, checkpoints=looks))

    return run


def dosing(kind: Any, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    world = sf.world("dosing")
    return world, kind(world.problem, world.baseline, 4.2, pooled=True, **settings)


def five_by_optimism() -> tuple[sf.TabularMDP, sf.Agent]:
    """The same without baseline and floor."""
    world = sf.random_mdp(S=5, A=5, H=3, seed=1)
    return world, sf.BPIUCBVI(world.problem, bounds=PRIOR, **EVERY)


def trap(kind: Any, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    world = sf.world("trap")
    return world, kind(world.problem, world.baseline, world.suggested_floor, **settings)


def told(kind: Any, below: float, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    """A stationary world, and a learner that is told what the baseline is worth."""
    world = sf.random_mdp(S=3, A=2, H=3, seed=0, stationary=True)
    value = worth(world, baseline_of(world))
    return world, kind(
        world.problem,
        baseline_of(world),
        value - below,
        baseline_value=value,
        pooled=True,
        **settings,
    )


def relative() -> tuple[sf.TabularMDP, sf.Agent]:
    world = sf.world("dosing")
    return world, sf.StepMix(
        world.problem, world.baseline, sf.Relative(0.1), pooled=True, delta=0.1, **DEFAULTS, **EVERY
    )


def veiled(kind: Any, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    """Unknown rewards and an unknown start."""
    world = veiled_world()
    problem = world.problem.forget(rewards=True, start=True)
    return world, kind(problem, baseline_of(world), share_of(world, 0.5), pooled=True, **settings)


def costly() -> tuple[sf.TabularMDP, sf.Agent]:
    """Costs and a budget instead of a floor."""
    world = sf.random_mdp(S=3, A=2, H=3, seed=0, stationary=True)
    cost = np.random.default_rng(8).random((3, 3, 2))
    baseline = sf.uniform(3, 3, 2)
    spent = float((sf.occupancy(world, baseline) * cost).sum())
    settings = {
        "cost": cost,
        "budget": spent + 0.4,
        "baseline_cost": spent,
        "bounds": sf.MaurerPontilBox(),
    }
    return world, sf.DOPE(
        world.problem, baseline, episodes=3000, pooled=True, replan=0.5, **settings
    )


def warm(seed: int, folder: Path) -> Made:
    """Counts of one run start the next; several seeds at once; and the plan that would come
    next.
    """
    world, agent = trap(
        sf.StepMix,
        delta=0.1,
        replan=0.1,
        explorer=sf.Thompson(sf.world("trap").problem),
        **DEFAULTS,
    )
    first = sf.simulate(world, agent, 500, seed, progress=False)
    runs = sf.simulate_many(
        world, agent, 500, [seed, seed + 1], jobs=1, counts=first.counts, progress=False
    )
    plain = simulate_plainly(world, agent, 100, seed, progress=False)
    made = [of_run(run) for run in (first, *runs, plain)]
    groups = {
        f"{i} {name}": group for i, one in enumerate(made) for name, group in one.groups.items()
    }
    groups["plan"] = of_plan(agent.plan(runs[-1].counts, np.random.default_rng(seed)))
    return Made(groups, made[0].numbers)


def learning(seed: int, folder: Path) -> Made:
    """`learn` in the toy, by its model and live, with a watchdog and a ledger."""
    shown = sf.learn(Walk(), stepmix_kl(), 200, seed, progress=False, ledger=folder / "toy.ledger")
    live = sf.learn(
        Walk(shown=False), epsmix_live(), 150, seed, progress=False, watchdog=sf.Watchdog()
    )
    groups = {f"shown {name}": group for name, group in of_run(shown).groups.items()}
    groups |= {f"live {name}": group for name, group in of_run(live).groups.items()}
    groups["ledger"] = of_ledger(folder / "toy.ledger")
    return Made(groups, of_run(shown).numbers)


def from_log(seed: int, folder: Path) -> Made:
    """A log is written, counted and learnt from in every way there is; then a learner goes on."""
    world = sf.random_mdp(S=4, A=3, H=3, seed=6)
    mu = sf.boltzmann(sf.solve(world).Q, eta=2.0)
    path = sf.sample_log(world, mu, 3000, folder / "log.parquet", seed=seed)
    log = sf.count_log(path, seed=seed, **PLAIN)
    problem = log.problem(rewards=world.r, start="as logged")
    unknown = log.problem(start="as logged")
    robust = sf.robust_vi(log.counts, problem, 0.05, PRIOR)
    found = {
        "robust": robust,
        "vi-lcb": sf.vi_lcb(log.folds, problem, 0.05),
        "clone": sf.clone(log.counts, problem, 0.05, PRIOR),
        "spibb": sf.spibb(log.counts, problem, 0.05, n_wedge=10, bounds=PRIOR),
        "certify": sf.certify(mu, log.counts, problem, 0.05, PRIOR),
        "unknown": sf.robust_vi(log.counts, unknown, 0.05, PRIOR),
    }
    start = sf.hand_over(
        robust, 0.9 * robust.lower, kind=sf.StepMix, bounds=PRIOR, counts=log.counts
    )
    agent = replace(start.agent, returns=None)
    run = of_run(sf.simulate(world, agent, 500, seed, counts=start.counts, progress=False))
    groups = {"log": of_log(log), **{name: of_learnt(one) for name, one in found.items()}}
    groups |= {f"after {name}": group for name, group in run.groups.items()}
    return Made(groups, {**run.numbers, **{name: one.lower for name, one in found.items()}})


def shop_log(seed: int, folder: Path) -> Made:
    """Labels, early ends, rewards that vary and have a range of their own."""
    (folder / "shop.csv").write_text(shop_rows(400))
    log = sf.count_log(folder / "shop.csv", **{**SHOP, "seed": seed})
    problem = log.problem(start="as logged")
    learnt = sf.robust_vi(log.counts, problem, 0.1, PRIOR)
    lcb = sf.vi_lcb(log.fold_counts, problem, 0.1)
    sf.Baseline.of(learnt, log.codebook).save(folder / "baseline.npz")
    groups = {"log": of_log(log), "robust": of_learnt(learnt), "vi-lcb": of_learnt(lcb)}
    groups["file"] = in_file(folder / "baseline.npz")
    return Made(
        groups,
        {
            "robust": learnt.rescaled_lower,
            "vi-lcb": lcb.rescaled_lower,
            "mean return": log.mean_return,
        },
    )


PAPER_LOOKS = (1000, 100_000, 5_000_000, 20_000_000)
RUNS: dict[str, Callable[[int, Path], Made]] = {
    "stepmix, KL": simulated(
        lambda: dosing(sf.StepMix, **DEFAULTS, **EVERY), 4000, (1, 100, 1000, 4000)
    ),
    "stepmix, as in the paper": simulated(
        lambda: trap(sf.StepMix.paper, delta=0.1), 700_000, (700_000,)
    ),
    "stepmix, the paper's bounds, blocks": simulated(
        lambda: trap(sf.StepMix, bounds=sf.Bernstein(), replan=0.05), 20_000_000, PAPER_LOOKS
    ),
    "epsmix, KL, returns": simulated(
        lambda: dosing(sf.EpsMix, bounds=PRIOR, returns=sf.Returns(0.3), **EVERY), 4000, (10, 4000)
    ),
    "epsmix, the paper's bounds, blocks": simulated(
        lambda: trap(sf.EpsMix, bounds=sf.Bernstein(), replan=0.05), 1_000_000, (1_000_000,)
    ),
    "step-no-mix": simulated(lambda: trap(sf.StepNoMix, **DEFAULTS, **EVERY), 3000, (3000,)),
    "bpi-ucbvi, KL": simulated(five_by_optimism, 3000),
    "bpi-ucbvi, as in the paper": simulated(
        lambda: (sf.world("trap"), sf.BPIUCBVI.paper(sf.world("trap").problem)), 20_000
    ),
    "relative floor": simulated(relative, 8000, (8000,)),
    "unknown rewards and start": simulated(
        lambda: veiled(sf.StepMix, replan=0.2, **DEFAULTS), 6000, (6000,)
    ),
    "unknown rewards, returns, epsmix": simulated(
        lambda: veiled(sf.EpsMix, bounds=PRIOR, returns=sf.Returns(SHARE), **EVERY), 6000, (6000,)
    ),
    "dope": simulated(
        lambda: told(sf.DOPE, 0.4, episodes=3000, bounds=sf.MaurerPontilBox(), replan=0.3), 3000
    ),
    "dope, costs": simulated(costly, 3000),
    "optpess-lp": simulated(
        lambda: told(
            sf.OptPessLP, 0.4, episodes=2000, bounds=sf.MaurerPontilBox(scale=0.2), replan=0.5
        ),
        2000,
    ),
    "budget-exploration": simulated(
        lambda: told(sf.BudgetExploration, 0.2, replan=0.2, **DEFAULTS), 2000
    ),
    "conservative-ucbvi": simulated(
        lambda: told(sf.ConservativeUCBVI, 0.2, episodes=1000, replan=0.1, **DEFAULTS), 1000
    ),
    "warm, Thompson, several seeds": warm,
    "learn": learning,
    "log": from_log,
    "shop log": shop_log,
}


def study_text(seed: int) -> str:
    """The small study with another seed."""
    return f"seed = {seed}\n{SMALL_STUDY}"


def as_text(found: Any) -> str:
    """JSON as bits.json has it."""
    return json.dumps(found, indent=1, sort_keys=True) + "\n"
