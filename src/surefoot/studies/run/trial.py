"""One trial of a cell: its world, its baseline, its learner, and what came of it.

Trial i draws from child i of the study's seed, and from nothing else: the children of that child are for the log, if
there is one, and for the run. So trial i of every cell of a study meets the same chances, the number and order of
workers change nothing, and more trials leave those that are there as they are.
"""

import warnings
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import FrozenRecord, freeze, require_floor
from surefoot.bounds import Certificate
from surefoot.errors import FloorAboveBaseline, InvalidSetting, InvalidStudy, SurefootError
from surefoot.offline import Learnt, clone, robust_vi, spibb, vi_lcb
from surefoot.offline.logs.folds import folds_of
from surefoot.simulation.by_name import build_agent, build_bounds
from surefoot.simulation.run import Run
from surefoot.simulation.sample_log import draw_episodes
from surefoot.simulation.simulate import simulate
from surefoot.studies.spec.study import Cell, Choice, Log, Scenario, replan_of
from surefoot.task.counts import Counts
from surefoot.task.policy import boltzmann
from surefoot.worlds.exact import solve, value_of
from surefoot.worlds.registry import world as build_world
from surefoot.worlds.tabular_mdp import TabularMDP

CHECKPOINTS = 80  # evenly spaced, and as many by equal factors
LOG, RUN = 0, 1  # children of a trial's seed


@dataclass(frozen=True, eq=False)
class Trial(FrozenRecord):
    """What came of one trial. Returns are in the world's units; episodes count from 0; what never happened is None.

    A curve has one entry per bin of consecutive episodes, a trace one per checkpoint; tables are laid out row by row.
    """

    study: str
    panel: str
    learner: str
    trial: int
    label: str  # what legends call the learner
    digest: str  # of the cell's identity
    promise: str
    told: bool  # does the learner know what the baseline is worth?
    H: int
    S: int
    A: int
    episodes: int
    floor: float
    baseline: float  # what the baseline is truly worth
    optimum: float
    violations: int  # episodes whose policy is truly below the floor
    regret: float
    min_value: float
    mean_value: float
    first_mixture: int | None
    first_optimistic: int | None
    off_baseline: int | None
    on_baseline: int  # episodes per exit
    on_mixture: int
    on_optimistic: int
    min_cumulative: float  # the smallest sum over the episodes so far of what is above the floor
    log_episodes: int | None  # of the log that the baseline was learnt from
    log_lower: float | None  # what it certifies of that baseline; None: nothing
    log_behaviour: float | None  # what the policy that wrote the log is worth
    by_h: Ints  # (H+1,) episodes per h
    curve_episode: Ints  # the first episode of each bin
    curve_episodes: Ints
    curve_mean: Floats
    curve_min: Floats
    curve_below: Floats  # share of episodes below the floor
    curve_regret: Floats  # at the end of the bin
    curve_sources: Ints  # (bins, 3): episodes per exit
    curve_by_h: Ints  # (bins, H+1)
    trace_episode: Ints  # episodes before the checkpoint
    trace_lower: Floats  # the value then proved of what would be played
    trace_upper: Floats
    trace_rho: Floats
    trace_h: Ints
    trace_candidates: Floats  # (checkpoints, candidates): lower values, boldest first
    n_sa: Ints  # (H or 1, S, A): visits at the end

    def __post_init__(self) -> None:
        shapes = {"curve_sources": 3, "curve_by_h": self.H + 1, "n_sa": self.S * self.A}
        rows = {"trace_candidates": len(self.trace_episode)}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | tuple | np.ndarray):
                array = np.asarray(value, dtype=np.int64 if field.type is Ints else np.float64)
                if field.name in shapes:
                    array = array.reshape(-1, shapes[field.name])
                elif field.name in rows:
                    array = array.reshape(rows[field.name], -1) if len(array) else array.reshape(0, 0)
                freeze(self, **{field.name: array})
        freeze(self, n_sa=self.n_sa.reshape(-1, self.S, self.A))

    def require_whole(self) -> None:
        """Numbers that cannot be of one trial are refused: called for what is read from disk."""
        curves = {len(getattr(self, f"curve_{name}")) for name in ("episode", "episodes", "mean", "min", "regret")}
        curves |= {len(self.curve_below), len(self.curve_sources), len(self.curve_by_h)}
        traces = {len(getattr(self, f"trace_{name}")) for name in ("episode", "lower", "upper", "rho", "h")}
        numbers = (self.floor, self.baseline, self.optimum, self.regret, self.min_value, self.mean_value)
        if len(curves) != 1 or curves == {0} or len(traces) != 1 or len(self.by_h) != self.H + 1:
            raise ValueError("its lists are not of equal length")
        if not np.isfinite(numbers).all() or not np.isfinite(self.curve_mean).all():
            raise ValueError("some of its numbers are not numbers")
        moments = (self.first_mixture, self.first_optimistic, self.off_baseline)
        if self.episodes != int(self.curve_episodes.sum()) or not 0 <= self.violations <= self.episodes:
            raise ValueError("its episodes do not add up")
        if not all(moment is None or 0 <= moment < self.episodes for moment in moments):
            raise ValueError("something happened in none of its episodes")
        if not isinstance(self.promise, str) or not isinstance(self.label, str):
            raise TypeError("its words are not text")

    @property
    def cell(self) -> str:
        """panel/learner."""
        return f"{self.panel}/{self.learner}"

    @property
    def certified(self) -> bool:
        """Does the learner promise this floor, without a bonus scaled by hand and with a true premise?"""
        return self.promise.startswith("certified")

    @property
    def violated(self) -> bool:
        """Was any episode below the floor?"""
        return self.violations > 0


def run_trial(cell: Cell, trial: int) -> Trial:
    """Trial number `trial` of this cell."""
    built = build_scenario(cell.scenario, cell.delta, cell.seed, trial)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloorAboveBaseline)  # what was learnt from a log may be: it is counted
        agent = build_agent(
            cell.agent.agent,
            built.world,
            built.baseline,
            built.floor,
            delta=built.delta,
            bounds=build_bounds(cell.agent.bounds, cell.agent.scale),
            pooled=built.world.stationary if cell.agent.pooled == "if stationary" else bool(cell.agent.pooled),
            episodes=cell.episodes,
            replan=replan_of(cell.replan),
            certificate=built.certificate,
        )
        run = simulate(
            built.world,
            agent,
            cell.episodes,
            child(cell.seed, trial, RUN),
            floor=built.floor,
            progress=False,
            checkpoints=checkpoints(cell.episodes),
        )
    if run.interrupted:
        raise KeyboardInterrupt
    return trial_from(cell, trial, built, run)


def child(seed: int, trial: int, purpose: int) -> np.random.SeedSequence:
    """A stream of its own for every trial and purpose."""
    return np.random.SeedSequence(seed, spawn_key=(trial, purpose))


def checkpoints(episodes: int) -> list[int]:
    """Where certificates are looked at: for axes of both kinds."""
    evenly = np.linspace(1, episodes, CHECKPOINTS)
    by_factors = np.geomspace(1, episodes, CHECKPOINTS)
    return sorted({int(k) for k in np.rint([*evenly, *by_factors])})


@dataclass(frozen=True, eq=False)
class BuiltScenario:
    """A panel, built: what a learner meets in one trial. Values are this library's, in 0..H."""

    world: TabularMDP
    baseline: Floats
    floor: float
    delta: float  # that is left for the learner
    certificate: Certificate | None = None
    log: Log | None = None
    log_lower: float | None = None
    log_behaviour: float | None = None


def build_scenario(scenario: Scenario, delta: float, seed: int, trial: int) -> BuiltScenario:
    """Build a panel. Where there is a log it is this trial's own."""
    try:
        world = build_world(scenario.world["name"], **{k: v for k, v in scenario.world.items() if k != "name"})
        policy = policy_of(world, scenario.baseline if scenario.log is None else scenario.log.behaviour)
        floor = _floor_of(world, scenario, value_of(world, policy))
    except SurefootError as reason:
        raise InvalidStudy(f"Scenario {scenario.id!r}: {reason}") from None
    if scenario.log is None:
        return BuiltScenario(world, policy, floor, delta)
    learnt = learn_from_log(world, policy, scenario.log, delta / 2, child(seed, trial, LOG))
    certificate = learnt.certificate if learnt.certified else None
    lower = learnt.lower if learnt.certified else None
    behaviour = value_of(world, policy)
    return BuiltScenario(world, learnt.policy, floor, delta / 2, certificate, scenario.log, lower, behaviour)


def policy_of(world: TabularMDP, choice: Choice) -> Floats:
    """The world's usual baseline, or the Boltzmann policy on Q*."""
    if choice == "usual":
        if world.baseline is None:
            raise InvalidSetting(f"{world.name} has no usual baseline. Write baseline = {{ eta = 5.0 }}.")
        return world.baseline
    return boltzmann(solve(world).Q, float(choice[1]))


def _floor_of(world: TabularMDP, scenario: Scenario, baseline: float) -> float:
    """The floor in 0..H; one that the baseline, or the log's behaviour, does not reach is refused."""
    given = scenario.floor
    if isinstance(given, str):
        if world.suggested_floor is None:
            raise InvalidSetting(f"{world.name} has no usual floor. Write a number.")
        floor = world.suggested_floor
    elif isinstance(given, tuple):
        kind, share = given
        worth = world.in_user_units(baseline)
        floor = world.from_user_units(share * worth if kind == "of_baseline" else worth - share)
    else:
        floor = world.from_user_units(float(given))
    floor = require_floor(floor, world.H)
    if floor > baseline:
        asked, found = (f"{world.in_user_units(value):.6g}" for value in (floor, baseline))
        whose = "baseline" if scenario.log is None else "policy that writes the log"
        raise InvalidSetting(
            f"the floor is {asked}, but the {whose} is worth {found}: the promise presumes one above the floor. "
            "Lower the floor, or choose a better baseline."
        )
    return floor


def learn_from_log(world: TabularMDP, mu: Floats, log: Log, delta: float, seed: np.random.SeedSequence) -> Learnt:
    """Draw a log of the policy mu and learn a baseline from it, certified at this delta."""
    rng = np.random.default_rng(seed)
    states, actions = draw_episodes(world, mu, log.episodes, rng)
    if log.method == "vi-lcb":
        folds = folds_of(np.arange(log.episodes), int(rng.integers(2**31)), world.H)
        return vi_lcb(_counted(world, states, actions, folds), world.problem, delta)
    counts = _counted(world, states, actions)
    if log.method == "robust":
        return robust_vi(counts, world.problem, delta)
    if log.method == "clone":
        return clone(counts, world.problem, delta)
    return spibb(counts, world.problem, delta)


def _counted(world: TabularMDP, states: Ints, actions: Ints, folds: Ints | None = None) -> Counts:
    """Counts of the log; where each step has a fold of its own, of that alone."""
    n_sas = np.zeros((world.H, world.S, world.A, world.S), dtype=np.int64)
    for h in range(world.H):
        rows = slice(None) if folds is None else folds == h
        np.add.at(n_sas[h], (states[rows, h], actions[rows, h], states[rows, h + 1]), 1)
    starts = np.bincount(states[:, 0], minlength=world.S)
    s1 = world.s1 if world.problem.one_start else None
    return Counts(n_sas, s1=s1, n_start=starts, logged=True)


def trial_from(cell: Cell, trial: int, built: BuiltScenario, run: Run) -> Trial:
    """The account of a run in the world's units."""
    units, curve, trace = built.world.problem.units, run.curve, run.trace
    assert trace is not None
    assert run.violations is not None
    assert run.regret is not None
    assert run.min_value is not None
    assert run.min_cumulative is not None
    assert run.optimum is not None

    def of(value: Any) -> Any:
        return units.to_user(value)

    return Trial(
        study=cell.study,
        panel=cell.scenario.id,
        learner=cell.agent.id,
        trial=trial,
        label=cell.label,
        digest=cell.digest,
        promise=str(run.promise),
        told=run.told,
        H=built.world.H,
        S=built.world.S,
        A=built.world.A,
        episodes=run.episodes,
        floor=of(built.floor),
        baseline=of(value_of(built.world, built.baseline)),
        optimum=of(run.optimum),
        violations=run.violations,
        regret=units.scale * run.regret,
        min_value=of(run.min_value),
        mean_value=of(run.mean_value),
        first_mixture=run.first_mixture,
        first_optimistic=run.first_optimistic,
        off_baseline=run.off_baseline,
        on_baseline=run.sources["baseline"],
        on_mixture=run.sources["mixture"],
        on_optimistic=run.sources["optimistic"],
        min_cumulative=units.scale * run.min_cumulative,
        log_episodes=None if built.log is None else built.log.episodes,
        log_lower=None if built.log_lower is None else of(built.log_lower),
        log_behaviour=None if built.log_behaviour is None else of(built.log_behaviour),
        by_h=run.by_h,
        curve_episode=curve.episode,
        curve_episodes=curve.episodes,
        curve_mean=of(curve.mean),
        curve_min=of(curve.min),
        curve_below=curve.below,
        curve_regret=units.scale * curve.regret,
        curve_sources=curve.sources,
        curve_by_h=curve.by_h,
        trace_episode=trace.episode,
        trace_lower=of(trace.lower),
        trace_upper=of(trace.upper),
        trace_rho=trace.rho,
        trace_h=trace.h,
        trace_candidates=of(trace.candidates),
        n_sa=run.counts.n_sa.reshape(-1, built.world.S, built.world.A),
    )


def check_study_cells(cells: tuple[Cell, ...]) -> None:
    """Build everything once, before hours are spent: what does not fit is said now."""
    seen: set[str] = set()
    for cell in cells:
        if cell.scenario.id not in seen:
            built = build_scenario(cell.scenario, cell.delta, cell.seed, 0)
            seen.add(cell.scenario.id)
        pooled = cell.agent.pooled
        if pooled is True and not built.world.stationary:
            raise InvalidStudy(
                f"Cell {cell.id}: the dynamics of {built.world.name} depend on the step, so counts cannot be pooled. "
                'Write pooled = false, or "if stationary".'
            )
