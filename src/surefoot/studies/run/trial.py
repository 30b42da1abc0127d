"""One trial of a cell: its world, its baseline, its agent, and its results.

Trial i draws from child i of the study's seed, and from nothing else: the children of that child
are for the log, if there is one, and for the run. So trial i of every cell of a study has the same
random numbers, the number and order of workers change nothing, and more trials leave those that are
there as they are.
"""

import warnings
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from surefoot.agents.promise import Promise
from surefoot.agents.settings import AgentSettings
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import FrozenRecord, freeze
from surefoot.bounds import Certificate
from surefoot.errors import FloorAboveBaseline, InvalidSetting, InvalidStudy, SurefootError
from surefoot.evidence.counts import Counts
from surefoot.logs.folds import folds_of
from surefoot.logs.methods import METHODS
from surefoot.logs.methods.learnt import Learnt
from surefoot.model.count_lists import Entries
from surefoot.model.policy import boltzmann
from surefoot.model.transitions import Transitions
from surefoot.run.by_name import build_agent, build_bounds
from surefoot.run.run import Run
from surefoot.run.sample_log import draw_episodes
from surefoot.run.simulate import simulate
from surefoot.studies.spec.study import Cell, Choice, Log, Scenario
from surefoot.worlds import exact
from surefoot.worlds.exact import rescaled_solve
from surefoot.worlds.registry import world as build_world
from surefoot.worlds.tabular_mdp import TabularMDP

CHECKPOINTS = 80  # evenly spaced, and as many by equal factors
LOG, RUN = 0, 1  # children of a trial's seed


@dataclass(frozen=True, eq=False)
class Trial(FrozenRecord):
    """The results of one trial. Returns are in the world's units; episodes count from 0; what never
    happened is None.

    A curve has one entry per bin of consecutive episodes, a trace one per checkpoint; tables are
    laid out row by row. Each field is a column of the trial's file.
    """

    study: str
    scenario: str  # its id
    agent: str  # its id
    trial: int
    label: str  # what legends call the agent
    digest: str  # of the cell's identity
    promise: Promise
    knows_baseline_value: bool  # does the agent know the baseline's value?
    H: int
    S: int
    A: int
    episodes: int
    floor: float
    baseline: float  # the true value of the baseline
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
    log_behaviour: float | None  # the value of the policy that wrote the log
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
        n = len(self.trace_episode)
        shapes = {
            "curve_sources": (-1, 3),
            "curve_by_h": (-1, self.H + 1),
            "trace_candidates": (n, -1) if n else (0, 0),
            "n_sa": (-1, self.S, self.A),
        }
        for field in fields(self):
            if field.type in (Ints, Floats):
                array = np.asarray(
                    getattr(self, field.name), dtype=np.int64 if field.type is Ints else np.float64
                )
                freeze(self, **{field.name: array.reshape(shapes.get(field.name, array.shape))})

    def require_whole(self) -> None:
        """Refuse numbers that cannot be of one trial. It is called for what is read from disk."""
        curves, traces = (
            {
                len(getattr(self, field.name))
                for field in fields(self)
                if field.name.startswith(kind)
            }
            for kind in ("curve_", "trace_")
        )
        numbers = [getattr(self, field.name) for field in fields(self) if field.type is float]
        if len(curves) != 1 or curves == {0} or len(traces) != 1 or len(self.by_h) != self.H + 1:
            raise ValueError("its lists are not of equal length")
        if not np.isfinite(numbers).all() or not np.isfinite(self.curve_mean).all():
            raise ValueError("some of its numbers are not numbers")
        if (
            self.episodes != int(self.curve_episodes.sum())
            or not 0 <= self.violations <= self.episodes
        ):
            raise ValueError("its episodes do not add up")
        moments = (self.first_mixture, self.first_optimistic, self.off_baseline)
        if not all(moment is None or 0 <= moment < self.episodes for moment in moments):
            raise ValueError("something happened in none of its episodes")

    @property
    def cell(self) -> str:
        """The id of the cell, scenario/agent."""
        return f"{self.scenario}/{self.agent}"


def run_trial(cell: Cell, trial: int) -> Trial:
    """Run trial number `trial` of this cell."""
    built = build_scenario(cell.scenario, cell.delta, cell.seed, trial)
    problem = built.world.problem
    with warnings.catch_warnings():
        # a baseline from a log may be below: that is counted
        warnings.simplefilter("ignore", FloorAboveBaseline)
        agent = build_agent(
            cell.agent.agent,
            problem,
            AgentSettings(
                baseline=built.baseline,
                floor=built.floor,
                baseline_value=built.baseline_value,
                episodes=cell.episodes,
                delta=built.delta,
                bounds=build_bounds(cell.agent.bounds, cell.agent.scale),
                pooled=problem.stationary
                if cell.agent.pooled == "if stationary"
                else bool(cell.agent.pooled),
                replan=cell.replan,
                certificate=built.certificate,
            ),
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
    """Return the random stream of a trial for one purpose, LOG or RUN."""
    return np.random.SeedSequence(seed, spawn_key=(trial, purpose))


def checkpoints(episodes: int) -> list[int]:
    """Return the episodes at which certificates are recorded, for linear and for logarithmic
    axes.
    """
    evenly = np.linspace(1, episodes, CHECKPOINTS)
    by_factors = np.geomspace(1, episodes, CHECKPOINTS)
    return sorted({int(k) for k in np.rint([*evenly, *by_factors])})


@dataclass(frozen=True, eq=False)
class BuiltScenario:
    """A scenario as it is in one trial: built, and with the trial's own log. Values are in the
    world's units.
    """

    world: TabularMDP
    baseline: Floats
    baseline_value: float
    floor: float
    delta: float  # what is left of it for the agent
    certificate: Certificate | None = None
    log_episodes: int | None = None
    log_lower: float | None = None
    log_behaviour: float | None = None


def build_scenario(scenario: Scenario, delta: float, seed: int, trial: int) -> BuiltScenario:
    """Build a scenario. Where there is a log, it is this trial's own."""
    try:
        world = build_world(**scenario.world_of(trial))
        policy = policy_of(world, scenario.known_policy)
        value = exact.value(world, policy)
        floor = _floor_of(world, scenario, value)
    except SurefootError as reason:
        raise InvalidStudy(f"Scenario {scenario.id!r}: {reason}") from None
    if scenario.log is None:
        return BuiltScenario(world, policy, value, floor, delta)
    learnt = learn_from_log(world, policy, scenario.log, delta / 2, child(seed, trial, LOG))
    return BuiltScenario(
        world,
        learnt.policy,
        exact.value(world, learnt.policy),
        floor,
        delta / 2,
        certificate=learnt.certificate if learnt.certified else None,
        log_episodes=scenario.log.episodes,
        log_lower=learnt.lower if learnt.certified else None,
        log_behaviour=value,
    )


def policy_of(world: TabularMDP, choice: Choice) -> Floats:
    """Return the world's usual baseline, or the Boltzmann policy on Q*."""
    if choice == "usual":
        if world.baseline is None:
            raise InvalidSetting(
                f"{world.name} has no usual baseline. Write baseline = {{ eta = 5.0 }}."
            )
        return world.baseline
    return boltzmann(rescaled_solve(world).Q, float(choice[1]))


def _floor_of(world: TabularMDP, scenario: Scenario, baseline: float) -> float:
    """Return the floor. One that the baseline, or the log's behaviour, does not reach is
    refused.
    """
    given, problem = scenario.floor, world.problem
    if isinstance(given, str):
        if world.suggested_floor is None:
            raise InvalidSetting(f"{world.name} has no usual floor. Write a number.")
        floor = world.suggested_floor
    elif isinstance(given, tuple):
        kind, share = given
        floor = share * baseline if kind == "of_baseline" else baseline - share
    else:
        floor = float(given)
    if problem.level(floor) > problem.level(baseline, "the baseline's value"):
        asked, found = f"{floor:.6g}", f"{baseline:.6g}"
        whose = "baseline" if scenario.log is None else "policy that writes the log"
        raise InvalidSetting(
            f"the floor is {asked}, but the {whose} is worth {found}: the promise presumes one "
            "above the floor. Lower the floor, or choose a better baseline."
        )
    return floor


def learn_from_log(
    world: TabularMDP, mu: Floats, log: Log, delta: float, seed: np.random.SeedSequence
) -> Learnt:
    """Draw a log of the policy mu and learn a baseline from it, certified at this delta."""
    rng = np.random.default_rng(seed)
    states, actions = draw_episodes(world, mu, log.episodes, rng)
    method = METHODS[log.method]
    counted = np.ones(actions.shape, dtype=np.int64)
    if method.by_folds:  # each step has a fold of its own: only that fold is counted
        folds = folds_of(np.arange(log.episodes), int(rng.integers(2**31)), world.H)
        counted = (folds[:, None] == np.arange(world.H)).astype(np.int64)
    return method.learn(_counts_of(world, states, actions, counted), world.problem, delta)


def _counts_of(world: TabularMDP, states: Ints, actions: Ints, counted: Ints) -> Counts:
    """Return the counts of the log, of the steps that are counted."""
    seen = Transitions.none_yet((world.H, world.S, world.A))
    place = (np.arange(world.H) * world.S + states[:, :-1]) * world.A + actions
    seen.add_entries(Entries(place.reshape(-1), states[:, 1:].reshape(-1), counted.reshape(-1)))
    starts = np.bincount(states[:, 0], minlength=world.S)
    s1 = world.s1 if world.problem.one_start else None
    return Counts(seen, world.H, s1, n_start=starts, logged=True, problem=world.problem)


def trial_from(cell: Cell, trial: int, built: BuiltScenario, run: Run) -> Trial:
    """Return the results of a run. What has the name of a number of the run, its curve or its
    trace is that number.
    """
    row: dict[str, Any] = {
        "study": cell.study,
        "scenario": cell.scenario.id,
        "agent": cell.agent.id,
        "trial": trial,
        "floor": built.floor,
        "baseline": built.baseline_value,
        "n_sa": run.counts.n_sa,
        **{f"on_{source}": episodes for source, episodes in run.sources.items()},
    }
    sources = (("", cell), ("", built.world.problem), ("", run), ("", built))
    for prefix, source in (*sources, ("curve_", run.curve), ("trace_", run.trace)):
        for column in fields(Trial):
            name = column.name.removeprefix(prefix)
            if column.name.startswith(prefix) and column.name not in row and hasattr(source, name):
                row[column.name] = getattr(source, name)
    return Trial(**row)


def check_study_cells(cells: tuple[Cell, ...]) -> None:
    """Build every scenario once, before hours are spent: what does not fit is refused now."""
    scenario: Scenario | None = None
    for cell in cells:  # those of one scenario stand together, and one world at a time is in memory
        if cell.scenario is not scenario:
            scenario = cell.scenario
            for trial in range(max(1, len(scenario.world_seeds))):
                world = build_scenario(scenario, cell.delta, cell.seed, trial).world
        if cell.agent.pooled is True and not world.problem.stationary:
            raise InvalidStudy(
                f"Cell {cell.id}: the dynamics of {world.name} depend on the step, so counts "
                f"cannot be pooled. "
                'Write pooled = false, or "if stationary".'
            )
