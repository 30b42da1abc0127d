"""What was run for the kept files and bits, in the words of the public interface.

Everything here goes through `surefoot`'s public names. If one of them, or an attribute, gets another name, this file is
the only one to change; the kept files and the numbers in expected.json and bits.json stay as they are.
"""

import hashlib
import json
import platform
from collections.abc import Callable, Iterable
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

LIBRARIES = ("numpy", "numba", "highspy", "duckdb", "gymnasium")
OUR_ENVIRONMENT = "surefoot.envs.gymnasium:Trap-v0"  # as documented at 68af267: users have this text in their files

# What nobody had to say at 68af267, and what has to be said since the defaults are others.
PRIOR = sf.KL(0.5)
DEFAULTS: dict[str, Any] = {"bounds": PRIOR, "returns": None}  # of the StepMix family
RULE: dict[str, Any] = {"replan": sf.Growth(1.1)}  # of all agents that can say when to replan
SHARE = 0.2  # of delta, for returns

# Kept files in which returns of the baseline were evidence. At 68af267 they were tosses of a coin, of which files hold
# the number and the sum. The bound that came after it reads each return (sf.Returns), so what these files hold of
# returns proves nothing any more: it is read and saved as it was, a saved run or an account that rests on it is
# refused, and what begins anew with these counts begins without returns as evidence.
BY_COIN = ("epsmix-live", "step-no-mix", "veiled", "account", "loop")


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
    """A hash of labels, kinds, shapes and every byte. Labels are ours: they are not read from the library."""
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


def in_format_1(path: Path) -> bytes:
    """A ledger in the words of its first format and of the version that kept it. It knows no returns but their number
    and their sum, and no bets on rewards.

    The records are chained again: each has the digest of all before it.
    """
    lines, before = [], "0" * 64
    for line in path.read_bytes().splitlines():
        record = {name: value for name, value in json.loads(line).items() if name != "digest"}
        if record["kind"] == "ledger":
            record["format"] = 1
            record["software"] = "surefoot 0.1.0"
            if record["bounds"].get("rewards") == "coin":
                del record["bounds"]["rewards"]
        for later in ("returns", "between"):  # of a plan
            if record.get(later) == []:
                del record[later]
        before = hashlib.sha256((before + in_one_line(record)).encode()).hexdigest()
        lines.append(in_one_line({**record, "digest": before}) + "\n")
    return "".join(lines).encode()


def in_one_line(record: dict[str, Any]) -> str:
    """JSON as in the lines of a ledger."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def in_file(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file, read by numpy alone. The header is left out: it names the version that wrote it. So
    are sums of x (1 - x) of rewards x, which 68af267 did not count, and the history of a run, what it needs to go on
    and the alarm over its counts, which it did not keep."""
    later = ("about", "history_at", "history_whole", "history_real")
    later += ("run", "width", "plans_file", "plans_written", "plans_digest", "counts_alarm")
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files if name not in later and not name.endswith("z_sa")}


class Made(NamedTuple):
    """What came of a run: groups of labelled numbers, and some of them to compare where last bits may differ."""

    groups: dict[str, dict[str, Any]]
    numbers: dict[str, float | None]

    def as_json(self) -> dict[str, Any]:
        """As expected.json and bits.json have it."""
        return {
            "digests": {name: digest(group) for name, group in self.groups.items()},
            "numbers": {name: None if value is None else float(value) for name, value in self.numbers.items()},
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
        "returns": counts.record,
        "returns of": counts.record_of,
        "account": counts.ledger,
        "account of": counts.ledger_of,
        "basis": counts.basis,
        "logged": counts.logged,
        "pooled": counts.pooled,
        "H": counts.H,
        "s1": counts.s1,
        "planned": digest(of_counts(counts.planned)),
    }


def rescaled(values: Any, units: sf.Units, whole: bool = True) -> Any:
    """Values in the units of 68af267, 0..H; `whole`: of whole episodes, else differences of such."""
    if values is None or not units.own:
        return values
    if isinstance(values, np.ndarray):
        return np.array([rescaled(float(value), units, whole) for value in values.flat]).reshape(values.shape)
    return units.from_user(values) if whole else values / units.scale


def of_run(run: sf.Run) -> Made:
    """All numbers of a run, values rescaled; not its words, nor how long it took."""
    curve, trace, units = run.curve, run.trace, run.units
    totals = {
        "episodes": run.episodes,
        "floor": rescaled(run.floor, units),
        "optimum": rescaled(run.optimum, units),
        "baseline": rescaled(run.baseline, units),
        "violations": run.violations,
        "regret": rescaled(run.regret, units, whole=False),
        "smallest value": rescaled(run.min_value, units),
        "smallest sum": rescaled(run.min_cumulative, units, whole=False),
        "mean value": rescaled(run.mean_value, units),
        "mean return": rescaled(run.mean_return, units),
        "first mixture": run.first_mixture,
        "first optimist": run.first_optimistic,
        "budget": run.budget,
        "baseline's cost": run.baseline_cost,
        "largest cost": run.max_cost,
    }
    alarm: tuple[Any, ...] = ()
    if run.alarm is not None:
        means = (rescaled(mean, units) for mean in (run.alarm.mean_return, run.alarm.mean_of_last))
        alarm = (run.alarm.episodes, *means)
    groups = {
        "counts": of_counts(run.counts),
        "totals": totals,
        "exits": {"sources": list(run.sources.values()), "by h": run.by_h, "alarm": alarm},
        "curve": {
            "episode": curve.episode,
            "episodes": curve.episodes,
            "mean": rescaled(curve.mean, units),
            "min": rescaled(curve.min, units),
            "below": curve.below,
            "regret": rescaled(curve.regret, units, whole=False),
            "sources": curve.sources,
            "by h": curve.by_h,
        },
    }
    if trace is not None:
        groups["trace"] = {
            "episode": trace.episode,
            "lower": rescaled(trace.lower, units),
            "upper": rescaled(trace.upper, units),
            "rho": trace.rho,
            "h": trace.h,
            "candidates": rescaled(trace.candidates, units),
        }
    return Made(groups, {**totals, **{f"exit {i}": n for i, n in enumerate(run.sources.values())}})


def of_plan(plan: sf.Plan) -> dict[str, Any]:
    """The numbers of a plan, values rescaled."""
    units = sf.Units() if plan.grounds is None else plan.grounds.agent.problem.units
    coin = isinstance(plan.policy, sf.EpisodicMixture)
    return {
        "policy": np.stack([plan.policy.first, plan.policy.second]) if coin else plan.policy,
        "h": plan.h,
        "rho": plan.rho,
        "lower": rescaled(plan.lower, units),
        "upper": rescaled(plan.upper, units),
        "candidates": rescaled(plan.candidates, units),
        "cost": plan.cost,
    }


def of_learnt(learnt: sf.Learnt) -> dict[str, Any]:
    """What was learnt from a log."""
    return {
        "policy": learnt.policy,
        "lower": learnt.rescaled_lower,
        "estimate": learnt.estimate,
        "certified": learnt.certified,
        "mark": learnt.certificate.mark if learnt.certified else None,
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
        "rest": log.rest,
        "mean return": log.mean_return,
    }


def of_watch(watch: sf.Watch) -> dict[str, Any]:
    """Where a watchdog stands."""
    return {
        "episodes": watch.episodes,
        "total": watch.total,
        "log wealth": watch.log_wealth,
        "last": watch.last,
        "total of last": watch.total_of_last,
        "streak": watch.streak,
        "alarmed": watch.alarmed,
    }


def of_learner(learner: sf.Learner) -> Made:
    """Where a loop of one's own stands."""
    return Made({"counts": of_counts(learner.counts), "watch": of_watch(learner.watch)}, {})


def added_columns(names: Iterable[str]) -> list[str]:
    """Those that format 2 of a trial's file added: the promise as data, and the format."""
    return [name for name in names if name.startswith("promise_") or name == "format"]


def of_trials(folder: Path) -> dict[str, Any]:
    """Every number of every trial in a folder of results, read by DuckDB alone; no words, and no column added since."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("trials/**/*.parquet")):
        table = duckdb.sql(f"SELECT * FROM read_parquet('{path}', hive_partitioning = false)")
        values = dict(zip(table.columns, table.fetchall()[0], strict=True))
        words = ("study", "panel", "learner", "label", "digest", "promise", *added_columns(values))
        where = path.relative_to(folder).as_posix()
        found |= {f"{where} {name}": value for name, value in values.items() if name not in words}
    return found


# ---- a toy environment


class Walk(gymnasium.Env):
    """Two places, numbered 1 and 2, and two starts. Action 3 waits and earns 0; action 4 wins 5 and ends with
    probability 1/2, else pays 1 and moves to the other place. The end is on the transition, not on the state."""

    observation_space = Discrete(2, start=1)
    action_space = Discrete(2, start=3)

    def __init__(self, shown: bool = True) -> None:
        """`shown`: does the environment show its model?"""
        self.table = {
            s: {3: [(1.0, s, 0.0, False)], 4: [(0.5, 3 - s, 5.0, True), (0.5, 3 - s, -1.0, False)]} for s in (1, 2)
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


class Stopped(Exception):
    """The environment went away."""


def stopping(env: gymnasium.Env, after: int) -> gymnasium.Env:
    """The same environment, which goes away after so many episodes: as in a crash, the run is saved by then."""
    inner = env.unwrapped
    reset, left = inner.reset, [after]

    def failing(*, seed=None, options=None):
        if left[0] == 0:
            raise Stopped
        left[0] -= 1
        return reset(seed=seed, options=options)

    inner.reset = failing
    return env


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


class Saved(NamedTuple):
    """A run of `learn` that was stopped in the middle, and how it goes on."""

    env: Callable[[], gymnasium.Env]
    agent: Callable[[], sf.Agent]
    episodes: int
    stopped: int
    seed: int
    ledger: bool = False
    watchdog: sf.Watchdog | None = None

    def learn(self, folder: Path, name: str, *, stop: bool = False, resume: bool = False, seed: int | None = None):
        """The run; its files are in this folder."""
        env = self.env()
        return sf.learn(
            stopping(env, self.stopped) if stop else env,
            self.agent(),
            self.episodes,
            self.seed if seed is None else seed,
            save=folder / f"{name}.npz",
            resume=resume,
            ledger=folder / f"{name}.ledger" if self.ledger else None,
            watchdog=self.watchdog,
            progress=False,
        )


def stepmix_kl() -> sf.StepMix:
    world = walk_world()
    floor = 1.5
    return sf.StepMix(world.problem, half(world.problem), floor, pooled=True, replan=sf.Growth(1.3), **DEFAULTS)


def epsmix_live() -> sf.EpsMix:
    """Unknown rewards, returns as evidence, and a certificate from before."""
    problem = walk_live()
    baseline = half(problem)
    nothing = sf.certify(baseline, sf.Counts.zeros(problem, pooled=True), problem, 0.01, PRIOR).certificate
    proof = replace(nothing, value=0.25, rescaled=None)
    settings = {"pooled": True, "replan": sf.Growth(3.0), "returns": sf.Returns(share=0.5), "certificate": proof}
    return sf.EpsMix(problem, baseline, -0.5, delta=0.1, bounds=PRIOR, **settings)


def too_high() -> sf.StepMix:
    """A floor that the baseline does not reach: its watchdog gives alarm."""
    problem = walk_live()
    return sf.StepMix(problem, half(problem), 7.0, pooled=True, **DEFAULTS, **RULE)


def thompson() -> sf.StepMix:
    """Another explorer than the optimist."""
    world = walk_world()
    explorer = sf.Thompson(world.problem, prior=0.5)
    floor = 1.5
    return sf.StepMix(world.problem, half(world.problem), floor, pooled=True, explorer=explorer, **DEFAULTS, **RULE)


def worth(world: sf.TabularMDP, policy: np.ndarray, less: float = 0.0) -> float:
    """The value of a policy less so much, which is rescaled: at 68af267 all of it was."""
    units = world.problem.units
    return units.to_user(units.from_user(world.at_start(sf.policy_value(world, policy)[0])) - less)


def budget_exploration() -> sf.BudgetExploration:
    world = walk_world().averaged()  # UCBVI inside takes rewards of pairs alone
    baseline = half(world.problem)
    value = worth(world, baseline)
    settings = {
        "pooled": True,
        "baseline_value": value,
        "learner": sf.UCBVI(world.problem, episodes=200, pooled=True, **RULE),
    }
    return sf.BudgetExploration(world.problem, baseline, worth(world, baseline, 0.15), **DEFAULTS, **RULE, **settings)


def conservative_ucbvi() -> sf.ConservativeUCBVI:
    world = walk_world()
    baseline = half(world.problem)
    value = worth(world, baseline)
    settings = {"pooled": True, "baseline_value": value, **DEFAULTS, **RULE}
    return sf.ConservativeUCBVI(world.problem, baseline, worth(world, baseline, 0.2), **settings)


def dope() -> sf.DOPE:
    world = walk_world().averaged()
    baseline = half(world.problem)
    value = worth(world, baseline)
    settings = {"episodes": 60, "baseline_value": value, "pooled": True, "replan": sf.Growth(1.5)}
    floor, box = worth(world, baseline, 1.0), sf.MaurerPontilBox(scale=0.01)
    return sf.DOPE(world.problem, baseline, floor, bounds=box, **settings)


def our_environment() -> gymnasium.Env:
    """One of our worlds; to touch `from_gymnasium` registers them, wherever its module lies."""
    assert sf.from_gymnasium is not None
    return gymnasium.make("Trap-v0")


def trap_every_episode() -> sf.StepMix:
    world = sf.world("trap")
    bounds = sf.Bernstein(scale=1e-4)
    return sf.StepMix(world.problem, world.baseline, world.suggested_floor, delta=0.1, bounds=bounds)


def relative_floor() -> sf.StepMix:
    world = sf.world("trap")
    settings = {"bounds": sf.KL(alpha="1/S"), "returns": None, "bisections": 2, "replan": sf.Blocks(0.05)}
    return sf.StepMix(world.problem, world.baseline, sf.Relative(0.3), delta=0.2, **settings)


def second_action(counts: sf.Counts, rng: np.random.Generator) -> np.ndarray:
    """An explorer of a user's own."""
    return np.broadcast_to([0.0, 1.0], (2, 3, 2))


def step_no_mix() -> sf.StepNoMix:
    world = sf.world("trap")
    settings = {"explorer": second_action, "baseline_at_least": 0.65, "returns": sf.Returns(SHARE, low=0.0, high=1.0)}
    return sf.StepNoMix(world.problem, world.baseline, 0.3, bounds=PRIOR, **RULE, **settings)


def optimist() -> sf.BPIUCBVI:
    return sf.BPIUCBVI(walk_world().problem, bounds=PRIOR, pooled=True, replan=sf.Growth(1.2))


def within_budget() -> sf.OptPessLP:
    """Costs and a budget instead of a floor."""
    world = sf.world("trap")
    cost = np.random.default_rng(8).random((2, 3, 2))
    spent = float((sf.occupancy(world, world.baseline) * cost).sum())
    settings = {"cost": cost, "budget": spent + 0.5, "baseline_cost": spent, "bounds": sf.HoeffdingBox(scale=0.0001)}
    return sf.OptPessLP(world.problem, world.baseline, episodes=60, replan=sf.Growth(1.5), **settings)


SAVED = {
    "stepmix-kl": Saved(Walk, stepmix_kl, 300, 78, seed=11, ledger=True),
    "epsmix-live": Saved(
        lambda: Walk(shown=False), epsmix_live, 300, 120, seed=12, ledger=True, watchdog=sf.Watchdog(alpha=0.05)
    ),
    "alarmed": Saved(lambda: Walk(shown=False), too_high, 120, 90, seed=13, watchdog=sf.Watchdog(alpha=0.01)),
    "thompson": Saved(Walk, thompson, 300, 150, seed=14),
    "budget-exploration": Saved(Walk, budget_exploration, 200, 90, seed=15),
    "conservative-ucbvi": Saved(Walk, conservative_ucbvi, 200, 90, seed=16),
    "dope": Saved(Walk, dope, 60, 30, seed=17),
    "our-environment": Saved(our_environment, trap_every_episode, 120, 50, seed=18),
    "relative-floor": Saved(our_environment, relative_floor, 300, 150, seed=19),
    "step-no-mix": Saved(our_environment, step_no_mix, 120, 50, seed=20),
    "bpi-ucbvi": Saved(Walk, optimist, 120, 50, seed=21),
    "optpess-lp": Saved(our_environment, within_budget, 60, 30, seed=22),
}


# ---- counts, a watch and a loop of one's own


def known_world() -> sf.TabularMDP:
    return sf.random_mdp(S=3, A=2, H=3, seed=2)


def veiled_world() -> sf.TabularMDP:
    """Random rewards, several starts, and a mask of what is possible."""
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    P[0, 0] = [0.0, 0.4, 0.6]
    return sf.TabularMDP(P, rng.random((3, 2)), H=3, start=[0.5, 0.2, 0.3], random_rewards=True).with_support()


def baseline_of(world: sf.TabularMDP) -> np.ndarray:
    return sf.boltzmann(sf.solve(world).Q, eta=3.0)


def share_of(world: sf.TabularMDP, share: float) -> float:
    """A floor at this share of what the baseline is worth."""
    return share * worth(world, baseline_of(world))


def plain_agent() -> sf.StepMix:
    world = known_world()
    return sf.StepMix(world.problem, baseline_of(world), share_of(world, 0.9), **DEFAULTS, **RULE)


def veiled_agent() -> sf.EpsMix:
    world = veiled_world()
    problem = world.problem.forget(rewards=True, start=True)
    settings = {"pooled": True, "bounds": PRIOR, "returns": sf.Returns(SHARE)}
    return sf.EpsMix(problem, baseline_of(world), share_of(world, 0.6), **RULE, **settings)


def account_agent() -> sf.BudgetExploration:
    world = known_world()
    settings = {"bounds": PRIOR, "returns": sf.Returns(share=0.3)}
    return sf.BudgetExploration(world.problem, baseline_of(world), share_of(world, 0.9), **RULE, **settings)


def basis_agent() -> sf.DOPE:
    world = known_world()
    value = worth(world, baseline_of(world))
    bounds = sf.MaurerPontilBox(scale=0.01)
    return sf.DOPE(
        world.problem, baseline_of(world), 0.8 * value, episodes=2000, baseline_value=value, bounds=bounds, **RULE
    )


COUNTS = {  # world, learner, episodes before it was saved
    "plain": (known_world, plain_agent, 300),
    "veiled": (veiled_world, veiled_agent, 3000),
    "account": (known_world, account_agent, 400),
    "basis": (known_world, basis_agent, 300),
}


def gone_on(name: str, counts: sf.Counts, seed: int = 4) -> sf.Run:
    """A run that starts warm with kept counts."""
    build, agent, _ = COUNTS[name]
    return sf.simulate(build(), agent(), 500, seed, counts=counts, progress=False)


LOOP = 30  # episodes before the loop was stopped, and as many after


def own_loop(learner: sf.Learner, episodes: int) -> sf.Learner:
    """A process of one's own: episode k draws from k alone."""
    world = known_world()
    for _ in range(episodes):
        rng = np.random.default_rng([7, learner.episodes])
        learner.begin()
        s = world.s1
        for h in range(world.H):
            s = int(rng.choice(world.S, p=world.P[h, s, learner.act(s)]))
            learner.observe(s)
        learner.end()
    return learner


def loop_agent() -> sf.StepMix:
    world = known_world()
    settings = {"bounds": PRIOR, "returns": sf.Returns(SHARE)}
    return sf.StepMix(world.problem, baseline_of(world), share_of(world, 0.9), delta=0.2, **RULE, **settings)


LOOP_WATCHDOG = sf.Watchdog(alpha=0.02)


# ---- a closed ledger


def ledger_run(path: Path, seed: int = 0) -> sf.Run:
    """A run that writes every plan."""
    world = sf.world("trap")
    settings = {"delta": 0.1, "replan": sf.Growth(3.0), **DEFAULTS}
    agent = sf.StepMix(world.problem, world.baseline, world.suggested_floor, **settings)
    return sf.simulate(world, agent, 3000, seed, progress=False, ledger=path)


# ---- logs


MINARI = "kept/log-v0"


def log_world() -> sf.TabularMDP:
    return sf.random_mdp(S=3, A=2, H=2, seed=3)


SHOP_COLUMNS = {"episode": "customer", "step": "week", "state": "segment", "action": "offer", "reward": "margin"}
SHOP_COLUMNS |= {"next_state": "next", "terminated": "left"}
SHOP = {"columns": SHOP_COLUMNS, "reward_range": (-3.0, 8.0), "seed": 5, "states": "as logged"}
PLAIN = {"states": "as logged", "reward_range": (0.0, 1.0)}  # what was taken for granted when the files were written


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

STUDY = """\
name = "shop"
title = "Two places, four ways"
question = "What does a floor cost, and what does a log bring?"
seed = 3
trials = 3
delta = 0.2
episodes = 400
replan = { growth = 1.5 }
axis = "log"
figures = ["return", "regret", "by-h", "violations"]
claims = ["promise", "optimist-violates", "higher-floor-delays"]

[quick]
trials = 2
episodes = 60
replan = { blocks = 0.1 }

[[panels]]
id = "fixed"
title = "A floor below the baseline"
world = { name = "random", S = 3, A = 2, H = 2, seed = 4, stationary = true }
baseline = { eta = 4.0 }
floor = { below_baseline = 0.4 }

[[panels]]
id = "logged"
world = { name = "trap" }
floor = 0.5
log = { episodes = 300, behaviour = "usual", method = "robust" }
episodes = 300

[[learners]]
id = "stepmix"
label = "ours"
agent = "stepmix"
bounds = "kl"
pooled = "if stationary"

[[learners]]
id = "scaled"
agent = "epsmix"
bounds = "paper"
scale = 0.001
replan = "every episode"

[[learners]]
id = "optimist"
agent = "bpi-ucbvi"
bounds = "kl"
episodes = 200
"""
SMALL_STUDY = """\
name = "small"
title = "One place"
question = "Is the trap avoided?"
trials = 1
episodes = 300
replan = { blocks = 0.05 }

[[panels]]
id = "trap"
world = { name = "trap" }
floor = { of_baseline = 0.75 }

[[learners]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"
"""
QUESTION = "SELECT panel, learner, trial, violations, regret, mean_value, off_baseline FROM trials ORDER BY ALL"
FINISHED_BEFORE = (  # the trials that were there when the kept study was stopped
    "trials/fixed/stepmix/0000.parquet",
    "trials/fixed/optimist/0000.parquet",
    "trials/logged/scaled/0000.parquet",
)


# ---- configured runs


def simulated(build: Callable[[], tuple[sf.TabularMDP, sf.Agent]], episodes: int, looks: tuple[int, ...] = ()):
    """A run in a known world."""

    def run(seed: int, folder: Path) -> Made:
        world, agent = build()
        return of_run(sf.simulate(world, agent, episodes, seed, progress=False, checkpoints=looks))

    return run


def dosing(kind: Any, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    world = sf.world("dosing")
    return world, kind(world.problem, world.baseline, 4.2, pooled=True, **settings)


def five(kind: Any, share: float, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    """The paper's random world."""
    world = sf.random_mdp(S=5, A=5, H=3, seed=1)
    return world, kind(world.problem, baseline_of(world), share_of(world, share), **settings)


def five_by_optimism() -> tuple[sf.TabularMDP, sf.Agent]:
    """The same without baseline and floor."""
    world = sf.random_mdp(S=5, A=5, H=3, seed=1)
    return world, sf.BPIUCBVI(world.problem, bounds=PRIOR, **RULE)


def trap(kind: Any, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    world = sf.world("trap")
    return world, kind(world.problem, world.baseline, world.suggested_floor, **settings)


def told(kind: Any, below: float, **settings: Any) -> tuple[sf.TabularMDP, sf.Agent]:
    """A stationary world, and a learner that is told what the baseline is worth."""
    world = sf.random_mdp(S=3, A=2, H=3, seed=0, stationary=True)
    value = worth(world, baseline_of(world))
    return world, kind(world.problem, baseline_of(world), value - below, baseline_value=value, pooled=True, **settings)


def relative() -> tuple[sf.TabularMDP, sf.Agent]:
    world = sf.world("dosing")
    return world, sf.StepMix(
        world.problem, world.baseline, sf.Relative(0.1), pooled=True, delta=0.1, **DEFAULTS, **RULE
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
    settings = {"cost": cost, "budget": spent + 0.4, "baseline_cost": spent, "bounds": sf.MaurerPontilBox()}
    return world, sf.DOPE(world.problem, baseline, episodes=3000, pooled=True, replan=sf.Growth(1.5), **settings)


def warm(seed: int, folder: Path) -> Made:
    """Counts of one run start the next; several seeds at once; and the plan that would come next."""
    world, agent = trap(sf.StepMix, delta=0.1, explorer=sf.Thompson(sf.world("trap").problem), **DEFAULTS, **RULE)
    first = sf.simulate(world, agent, 500, seed, progress=False)
    runs = sf.simulate_many(world, agent, 500, [seed, seed + 1], jobs=1, counts=first.counts, progress=False)
    plain = sf.simulate_plainly(world, agent, 100, seed, progress=False)
    made = [of_run(run) for run in (first, *runs, plain)]
    groups = {f"{i} {name}": group for i, one in enumerate(made) for name, group in one.groups.items()}
    groups["plan"] = of_plan(agent.plan(runs[-1].counts, np.random.default_rng(seed)))
    return Made(groups, made[0].numbers)


def learning(seed: int, folder: Path) -> Made:
    """`learn` in the toy, by its model and live, with a watchdog and a ledger."""
    shown = sf.learn(Walk(), stepmix_kl(), 200, seed, progress=False, ledger=folder / "toy.ledger")
    live = sf.learn(Walk(shown=False), epsmix_live(), 150, seed, progress=False, watchdog=sf.Watchdog())
    groups = {f"shown {name}": group for name, group in of_run(shown).groups.items()}
    groups |= {f"live {name}": group for name, group in of_run(live).groups.items()}
    groups["ledger"] = {"bytes": hashlib.sha256(in_format_1(folder / "toy.ledger")).hexdigest()}
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
    start = sf.hand_over(robust, 0.9 * robust.lower, kind=sf.StepMix, bounds=PRIOR, counts=log.counts)
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
    return Made(groups, {"robust": learnt.rescaled_lower, "vi-lcb": lcb.rescaled_lower, "mean return": log.mean_return})


PAPER_LOOKS = (1000, 100_000, 5_000_000, 20_000_000)
RUNS: dict[str, Callable[[int, Path], Made]] = {
    "stepmix, KL": simulated(lambda: dosing(sf.StepMix, **DEFAULTS, **RULE), 4000, (1, 100, 1000, 4000)),
    "stepmix, KL 1/S, bisections": simulated(
        lambda: dosing(sf.StepMix, bounds=sf.KL(alpha="1/S"), returns=None, bisections=3, replan=sf.Growth(1.3)),
        4000,
        (4000,),
    ),
    "stepmix, as in the paper": simulated(lambda: trap(sf.StepMix.paper, delta=0.1), 700_000, (700_000,)),
    "stepmix, the paper's bounds, blocks": simulated(
        lambda: trap(sf.StepMix, bounds=sf.Bernstein(), replan=sf.Blocks(0.05)), 20_000_000, PAPER_LOOKS
    ),
    "epsmix, KL, returns": simulated(
        lambda: dosing(sf.EpsMix, bounds=PRIOR, returns=sf.Returns(0.3), **RULE), 4000, (10, 4000)
    ),
    "epsmix, the paper's bounds, growth": simulated(
        lambda: trap(sf.EpsMix, bounds=sf.Bernstein(), replan=sf.Growth(1.05)), 1_000_000, (1_000_000,)
    ),
    "step-no-mix": simulated(lambda: trap(sf.StepNoMix, baseline_at_least=0.65, **DEFAULTS, **RULE), 3000, (3000,)),
    "bpi-ucbvi, KL": simulated(five_by_optimism, 3000),
    "bpi-ucbvi, as in the paper": simulated(
        lambda: (sf.world("trap"), sf.BPIUCBVI.paper(sf.world("trap").problem)), 20_000
    ),
    "relative floor": simulated(relative, 8000, (8000,)),
    "unknown rewards and start": simulated(
        lambda: veiled(sf.StepMix, replan=sf.Growth(1.2), **DEFAULTS), 6000, (6000,)
    ),
    "unknown rewards, returns, epsmix": simulated(
        lambda: veiled(sf.EpsMix, bounds=PRIOR, returns=sf.Returns(SHARE), **RULE), 6000, (6000,)
    ),
    "dope": simulated(
        lambda: told(sf.DOPE, 0.4, episodes=3000, bounds=sf.MaurerPontilBox(), replan=sf.Growth(1.3)), 3000
    ),
    "dope, costs": simulated(costly, 3000),
    "optpess-lp": simulated(
        lambda: told(sf.OptPessLP, 0.4, episodes=2000, bounds=sf.MaurerPontilBox(scale=0.2), replan=sf.Growth(1.5)),
        2000,
    ),
    "budget-exploration": simulated(lambda: told(sf.BudgetExploration, 0.2, replan=sf.Growth(1.2), **DEFAULTS), 2000),
    "conservative-ucbvi": simulated(lambda: told(sf.ConservativeUCBVI, 0.2, episodes=1000, **DEFAULTS, **RULE), 1000),
    "warm, Thompson, several seeds": warm,
    "learn": learning,
    "log": from_log,
    "shop log": shop_log,
}


def study_text(seed: int) -> str:
    """The small study with another seed."""
    return f"seed = {seed}\n{SMALL_STUDY}"


# New words of printed JSON and the words they had at 68af267, such as {"scenarios": "panels"}. What a file means is
# compared, not what its fields are called today; that old words are still read is tested by reading the old files.
RENAMED: dict[str, str] = {}


def in_old_words(found: Any) -> Any:
    """Printed JSON with the keys of 68af267."""
    if isinstance(found, dict):
        return {RENAMED.get(key, key): in_old_words(value) for key, value in found.items()}
    return [in_old_words(entry) for entry in found] if isinstance(found, list) else found


def as_text(found: Any) -> str:
    """JSON as the kept files have it."""
    return json.dumps(found, indent=1, sort_keys=True) + "\n"
