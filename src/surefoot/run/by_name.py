"""Build worlds, bounds and agents by name and try them: what commands and studies need, without
printing anything.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from surefoot.agents import AgentByName, AgentSettings, CountingAgent
from surefoot.agents.floor_agent import FloorAgent
from surefoot.base.arrays import Floats
from surefoot.bounds import BOUNDS, Bounds
from surefoot.errors import InvalidSetting
from surefoot.model.problem import Problem
from surefoot.rivals.registry import AGENTS
from surefoot.run.run import Run
from surefoot.run.simulate import simulate
from surefoot.worlds import exact
from surefoot.worlds.exact import solve
from surefoot.worlds.registry import FAMILIES, Family, Size, family
from surefoot.worlds.tabular_mdp import TabularMDP


@dataclass(frozen=True)
class Facts:
    """What `surefoot worlds` shows of a family at its default sizes."""

    name: str
    summary: str
    S: int
    A: int
    H: int
    optimum: float
    baseline: float
    floor: float
    lowest: float  # what an episode can return at the least and at the most
    highest: float


def facts(chosen: Family, world: TabularMDP) -> Facts:
    """Return a world's sizes, and its optimum, usual baseline and floor in its own units."""
    assert world.baseline is not None
    assert world.suggested_floor is not None
    problem = world.problem
    baseline, optimum = exact.value(world, world.baseline), solve(world).value
    values = (optimum, baseline, world.suggested_floor, problem.lowest, problem.highest)
    return Facts(chosen.name, chosen.summary, world.S, world.A, world.H, *values)


def all_facts() -> list[Facts]:
    """Return the facts of every family at its default sizes."""
    return [facts(chosen, chosen.build()) for chosen in FAMILIES.values()]


def parse_sizes(name: str, given: list[str]) -> dict[str, Size]:
    """Return sizes such as S=5, share=0.3, stationary=true as the family's function takes them."""
    known = family(name).sizes
    sizes: dict[str, Size] = {}
    for text in given:
        size, separator, value = text.partition("=")
        if not separator and size in known:
            raise InvalidSetting(
                f"{size} has no value. Expected one, such as {size}={known[size]}."
            )
        if size not in known:
            can = ", ".join(f"{key}={default}" for key, default in known.items()) or "nothing"
            raise InvalidSetting(f"{text!r} is not a size of {name}. What can be chosen: {can}.")
        kind = type(known[size])
        try:
            sizes[size] = (
                {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
            )
        except (ValueError, KeyError):
            raise InvalidSetting(
                f"{size} is {value!r}, expected {kind.__name__} such as {known[size]}."
            ) from None
    return sizes


def build_bounds(name: str, scale: float) -> Bounds:
    """Build bounds by their name."""
    if name not in BOUNDS:
        raise InvalidSetting(f"There are no bounds {name!r}. There are: {', '.join(BOUNDS)}.")
    return BOUNDS[name](scale=scale)


def _kind(name: str) -> type[AgentByName]:
    kind = AGENTS.get(name.lower())
    if kind is None:
        raise InvalidSetting(f"There is no agent {name!r}. There are: {', '.join(AGENTS)}.")
    return kind


def forecast_agent(
    problem: Problem,
    baseline: Floats,
    name: str,
    floor: float,
    delta: float,
    pooled: bool,
    returns: bool,
) -> FloorAgent:
    """Return an agent by name to forecast for."""
    kind = _kind(name)
    if not issubclass(kind, FloorAgent) or kind.in_sum:
        raise InvalidSetting(
            f"There is no forecast for {name}: it is for stepmix, epsmix and step-no-mix."
        )
    agent = kind(problem, baseline, floor, delta=delta, pooled=pooled)
    return agent if returns else replace(agent, returns=None)


def build_agent(name: str, problem: Problem, settings: AgentSettings) -> CountingAgent:
    """Build an agent by name. Each takes those of the settings that it can use.

    Agents that must know the baseline's value are given it. With KL the rivals have the sharpest
    certificate that is theirs; with the paper's bounds, their printed constants.
    """
    return _kind(name).from_settings(problem, settings)


def try_agents(
    world: TabularMDP,
    names: list[str],
    floor: float | None,
    delta: float,
    bounds: Bounds,
    pooled: bool,
    episodes: int,
    seed: int,
    ledger: Path | None = None,
    replan: float | None = None,
) -> list[Run]:
    """Simulate the agents one after the other, and BPI-UCBVI last, for comparison. Ctrl-C ends the
    sequence.

    Where a ledger is asked for, it holds the plans of the agent; then only one may be named.
    """
    if ledger is not None and len(set(names)) > 1:
        raise InvalidSetting(
            f"A ledger holds the plans of one agent, but {len(set(names))} are asked for."
        )
    level = world.suggested_floor if floor is None else floor
    assert level is not None
    if pooled and not world.stationary:
        raise InvalidSetting(
            f"The dynamics of {world.name} are not the same at every step: leave out --pooled."
        )
    assert world.baseline is not None
    settings = AgentSettings(
        baseline=world.baseline,
        floor=level,
        baseline_value=exact.value(world, world.baseline),
        episodes=episodes,
        delta=delta,
        bounds=bounds,
        pooled=pooled,
        replan=replan,
    )
    runs: list[Run] = []
    for name in dict.fromkeys([*names, "bpi-ucbvi"]):
        agent = build_agent(name, world.problem, settings)
        runs.append(
            simulate(world, agent, episodes, seed, floor=level, ledger=None if runs else ledger)
        )
        if runs[-1].interrupted:
            break
    return runs


def with_own_bounds(names: list[str]) -> list[str]:
    """Return how those of the agents are called for which bounds cannot be chosen."""
    return [_kind(name).name for name in dict.fromkeys(names) if _kind(name).own_bounds]


def values_of(runs: list[Run]) -> dict[str, float | None]:
    """Return floor, baseline and optimum."""
    baseline = next((run.baseline for run in runs if run.baseline is not None), None)
    return {"floor": runs[0].floor, "baseline": baseline, "optimum": runs[0].optimum}
