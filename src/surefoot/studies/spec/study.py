# ruff: noqa: RUF009 (a field of a record says how it is read)
"""Study: what is asked, as data. A TOML file, checked field by field; its cells are scenarios times
agents.

A scenario is a world, its baseline (or a log to learn one from) and a floor. An agent is an
algorithm with its settings. Each pair of the two is a cell, `scenario/agent`, which is its
permanent name. Trials of a cell differ in their draws only.
"""

import re
import stat
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from surefoot.base.digest import digest
from surefoot.base.validation import LONGEST
from surefoot.bounds import BOUNDS
from surefoot.errors import InvalidSetting, InvalidStudy
from surefoot.logs.methods import METHODS
from surefoot.rivals.registry import AGENTS
from surefoot.studies.spec.claims import CLAIMS
from surefoot.studies.spec.fields import (
    Field,
    a_table,
    as_written,
    between,
    entries,
    entry,
    identifier,
    legend,
    number,
    one_of,
    read_table,
    refusal,
    several,
    text,
    usual_or_one_key,
    whole,
    yes_or_no,
)
from surefoot.worlds.registry import family

# What each figure is: plots.py in the report, where a figure of every name is drawn and of no other
# (a test compares).
FIGURES = (
    "return",
    "regret",
    "ribbon",
    "certificates",
    "coverage",
    "by-h",
    "violations",
    "growth",
    "exponents",
)
USUAL_FIGURES = ("return", "regret", "ribbon", "certificates", "coverage")
AXES = ("linear", "log")
LARGEST_FILE = 1_000_000  # bytes of a study's file: it is written by hand
MOST_RUNS = 1_000_000  # cells times trials: a file each
LARGEST_WORLD = 2**27  # transitions (H, S, A, S) to count: 1 GiB
# Python's reader of TOML takes quadratic time in the number of parts of a.dotted.name; a study
# needs three.
MANY_DOTS = re.compile(
    r"""(?<![\w"'-])(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
    r"""(?:[ \t]*+\.[ \t]*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')){8}"""
)

Choice = str | tuple[str, float]  # "usual", or ("eta", 5.0)


def _world(where: str, value: object) -> dict[str, Any]:
    """Read a family by name, and all its sizes."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise refusal(where, value, 'a table such as { name = "random", S = 5, seed = 1 }')
    try:
        chosen = family(text(f"{where}: name", value["name"])[:60])
    except InvalidSetting as reason:
        raise InvalidStudy(f"{where}: {reason}") from None
    sizes: dict[str, Field] = {}
    for size, default in chosen.sizes.items():
        read = (
            yes_or_no
            if isinstance(default, bool)
            else whole(0)
            if isinstance(default, int)
            else number
        )
        sizes[size] = Field(read, f"a size of {chosen.name}", default)
    given = {key: entry for key, entry in value.items() if key != "name"}
    found = read_table(where, given, sizes)
    _require_size(where, found)
    return {"name": chosen.name, **found}


def _require_size(where: str, sizes: Mapping[str, Any]) -> None:
    """Refuse a world that is too large before any array is made: an agent counts H S A S
    transitions.
    """
    S = max(sizes.get("S", 1), sizes.get("N", 1), sizes.get("places", 1))
    H = max(sizes.get("H", 1), sizes.get("N", 1))
    numbers = H * S * sizes.get("A", 1) * S
    if numbers > LARGEST_WORLD or H > LONGEST:
        raise InvalidStudy(
            f"{where} is a world of {numbers:,} transitions over {H:,} steps, expected at most "
            f"{LARGEST_WORLD:,} over {LONGEST:,}. Choose smaller sizes."
        )


_POSITIVE = between(0.0, float("inf"), "a number above 0")
_SHARE = between(0.0, 1.0, "a number strictly between 0 and 1")
_baseline = usual_or_one_key({"eta": _POSITIVE})
_floor_of_baseline = usual_or_one_key(
    {"of_baseline": _SHARE, "below_baseline": _POSITIVE}, " or a number in the world's units"
)


def _replan(where: str, value: object) -> float:
    """Read when an agent replans: a share of the episodes so far."""
    share = number(where, value)
    if not 0.0 <= share <= 1.0:
        raise refusal(where, value, "a share from 0 to 1, such as 0.01")
    return share


def _floor(where: str, value: object) -> float | Choice:
    """Read a floor: a number, or a choice."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    floor: float | Choice = (number if is_number else _floor_of_baseline)(where, value)
    return floor


@dataclass(frozen=True)
class Log:
    """A log of past episodes from which the baseline is learnt. Every trial draws its own."""

    episodes: int = entry(whole(1, 10_000_000), "how many episodes are in the log")
    behaviour: Choice = entry(
        _baseline, 'who wrote it: "usual" or { eta = 10.0 }, as for baseline', "usual"
    )
    method: str = entry(
        one_of(METHODS), f"how the baseline is learnt from it: {', '.join(METHODS)}", "vi-lcb"
    )


@dataclass(frozen=True)
class Scenario:
    """A world, its baseline and a floor."""

    id: str = entry(identifier, "its permanent name in cells and files")
    title: str = entry(
        text, "what is written above its picture; what is particular about it, if left out", ""
    )
    world: dict[str, Any] = entry(
        _world,
        'a family (`surefoot worlds` lists them) and its sizes: { name = "random", S = 5, A = 5, '
        "H = 3, seed = 1 }",
    )
    world_seeds: tuple[int, ...] = entry(
        several(whole(0)),
        "seeds of several worlds: trial i is in the i-th of them, in place of the world's seed",
        (),
    )
    baseline: Choice = entry(
        _baseline, '"usual" (the world\'s own) or { eta = 5.0 } (Boltzmann on Q*)', "usual"
    )
    floor: float | Choice = entry(
        _floor,
        "a number in the world's units, \"usual\", { of_baseline = 0.9 } (times the baseline's "
        "value) or { below_baseline = 0.2 }",
        "usual",
    )
    log: Log | None = entry(
        a_table(Log),
        'instead of a baseline: { episodes = 5000, behaviour = { eta = 10 }, method = "vi-lcb" }',
        None,
    )
    episodes: int | None = entry(whole(1), "episodes of a run here; the study's, if left out", None)

    def world_of(self, trial: int) -> dict[str, Any]:
        """Return the world of a trial: the one there is, or, with several seeds, that of its
        own; then they repeat.
        """
        if not self.world_seeds:
            return self.world
        return {**self.world, "seed": self.world_seeds[trial % len(self.world_seeds)]}

    @property
    def known_policy(self) -> Choice:
        """The policy that is known of it: the baseline, or the one that wrote the log."""
        return self.baseline if self.log is None else self.log.behaviour

    @cached_property
    def heading(self) -> str:
        """The title, or, without one, what is particular about the scenario."""
        if self.title:
            return self.title
        who = self.known_policy
        words = [f"eta = {who[1]:g}"] if isinstance(who, tuple) else []
        if self.log is not None:
            words.append(f"n = {self.log.episodes:,}")
        elif isinstance(self.floor, tuple):
            kind, value = self.floor
            words.append(
                f"floor = {value:g} V^b" if kind == "of_baseline" else f"floor = V^b - {value:g}"
            )
        elif not isinstance(self.floor, str):
            words.append(f"floor = {self.floor}")
        return ", ".join(words) or str(self.world["name"])


def _scenario(where: str, value: object) -> Scenario:
    if isinstance(value, dict) and "log" in value and "baseline" in value:
        raise InvalidStudy(
            f"{where} has a log and a baseline. With a log, the baseline is what is learnt from it."
        )
    scenario: Scenario = a_table(Scenario)(where, value)
    if scenario.world_seeds and "seed" not in scenario.world:
        raise InvalidStudy(
            f"{where} has world_seeds, but {scenario.world['name']} has no seed: there is one such "
            "world."
        )
    if scenario.log is not None and isinstance(scenario.floor, tuple):
        raise InvalidStudy(
            f'{where}: with a log the floor is a number or "usual": what is learnt is not known '
            f"before."
        )
    return scenario


@dataclass(frozen=True)
class AgentSpec:
    """An algorithm with its settings."""

    id: str = entry(identifier, "its permanent name in cells and files")
    label: str = entry(legend, "what legends call it; its algorithm's name, if left out", "")
    agent: str = entry(one_of(AGENTS), f"the algorithm: {', '.join(AGENTS)}")
    bounds: str = entry(one_of(BOUNDS), "paper: constants as printed; kl: sharp certificates")
    scale: float = entry(_POSITIVE, "of the bonus or radius. Anything but 1 is NOT CERTIFIED", 1.0)
    pooled: bool | str = entry(
        lambda where, value: (
            value if value == "if stationary" else yes_or_no(where, value, ' or "if stationary"')
        ),
        'are counts pooled over steps? true, false or "if stationary"',
        False,
    )
    replan: float | None = entry(
        _replan,
        "when it replans, as a share of the episodes so far; 0: every episode; the study's, if "
        "left out",
        None,
    )
    episodes: int | None = entry(
        whole(1), "episodes of its runs; the scenario's, if left out", None
    )


@dataclass(frozen=True)
class Quick:
    """What is different with --quick; None: nothing."""

    trials: int | None = entry(whole(1, 100_000), "trials of a quick run", None)
    episodes: int | None = entry(whole(1), "episodes of every cell in a quick run", None)
    replan: float | None = entry(
        _replan, "when every agent replans in a quick run, as a share of the episodes so far", None
    )


@dataclass(frozen=True)
class Cell:
    """An agent in a scenario: all that decides its runs, as plain data."""

    study: str
    scenario: Scenario
    agent: AgentSpec
    seed: int
    delta: float
    episodes: int
    replan: float

    @cached_property
    def id(self) -> str:
        """The permanent name, scenario/agent."""
        return f"{self.scenario.id}/{self.agent.id}"

    @cached_property
    def label(self) -> str:
        """What legends call the agent."""
        return self.agent.label or AGENTS[self.agent.agent].name

    @property
    def block(self) -> float | None:
        """The share of the episodes so far that is a block, where plans are made in blocks."""
        return self.replan if self.replan > 0.0 else None

    def identity(self) -> dict[str, Any]:
        """Return what decides the numbers: no titles, no labels, and the values that are used,
        wherever they stood.
        """
        scenario, agent = asdict(self.scenario), asdict(self.agent)
        where = {key: scenario[key] for key in ("world", "world_seeds", "baseline", "floor", "log")}
        who = {key: agent[key] for key in ("agent", "bounds", "scale", "pooled")}
        how = {key: getattr(self, key) for key in ("seed", "delta", "episodes", "replan")}
        return {**where, **who, **how}

    @cached_property
    def digest(self) -> str:
        """The hash of the identity."""
        return digest(self.identity())


@dataclass(frozen=True)
class Study:
    """A question. `read_study` reads one from a file."""

    name: str = entry(identifier, "the study's name; the folder's, where several are run")
    title: str = entry(text, "one line")
    question: str = entry(text, "what is asked, in a sentence or two")
    seed: int = entry(whole(0), "of all draws. Trial i draws from child i of it", 0)
    trials: int = entry(whole(1, 100_000), "runs of each cell; they differ in their draws only", 10)
    delta: float = entry(_SHARE, "how likely the promise may fail", 0.1)
    episodes: int | None = entry(
        whole(1), "episodes of a run, where scenario and agent do not say", None
    )
    replan: float = entry(
        _replan,
        "when agents replan, where they do not say: a share of the episodes so far; 0: every "
        "episode",
        0.0,
    )
    axis: str = entry(one_of(AXES), "of episodes in pictures: linear or log", "linear")
    figures: tuple[str, ...] = entry(
        several(one_of(FIGURES)), f"which to draw: {', '.join(FIGURES)}", USUAL_FIGURES
    )
    claims: tuple[str, ...] = entry(
        several(one_of(CLAIMS)), f"which claims to judge: {', '.join(CLAIMS)}", ("promise",)
    )
    quick: Quick | None = entry(
        a_table(Quick),
        "what is different with --quick; 3 trials and plans in blocks, if left out",
        None,
    )
    scenarios: tuple[Scenario, ...] = entry(
        several(_scenario), "where agents learn, [[scenarios]] each"
    )
    agents: tuple[AgentSpec, ...] = entry(
        several(a_table(AgentSpec)), "who learns, [[agents]] each"
    )
    size: str = "full"

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every agent in every scenario."""
        return tuple(
            Cell(
                study=self.name,
                scenario=scenario,
                agent=agent,
                seed=self.seed,
                delta=self.delta,
                episodes=agent.episodes or scenario.episodes or self.episodes or 0,
                replan=self.replan if agent.replan is None else agent.replan,
            )
            for scenario in self.scenarios
            for agent in self.agents
        )

    def made_quick(self) -> "Study":
        """Return the same question, made so small that it takes minutes."""
        less = self.quick or Quick(min(self.trials, 3), None, 0.01)
        agents, scenarios = self.agents, self.scenarios
        if less.replan is not None:
            agents = tuple(replace(agent, replan=less.replan) for agent in agents)
        if less.episodes is not None:
            agents = tuple(replace(agent, episodes=None) for agent in agents)
            scenarios = tuple(replace(scenario, episodes=less.episodes) for scenario in scenarios)
        trials = less.trials or self.trials
        return replace(
            self, agents=agents, scenarios=scenarios, trials=trials, quick=None, size="quick"
        )

    def as_table(self) -> dict[str, Any]:
        """Return the study as its file has it; `parse_study` reads it. What has its default is
        left out.
        """
        written: dict[str, Any] = as_written(self)
        return written

    def identity(self) -> dict[str, Any]:
        """Return what decides the numbers of every cell.

        The number of trials is not part of it: more trials change none of those that are there.
        """
        return {"name": self.name, "cells": {cell.id: cell.identity() for cell in self.cells}}

    @cached_property
    def digest(self) -> str:
        """The hash of the identity."""
        return digest(self.identity())


TABLES = {
    "": entries(Study),
    "quick": entries(Quick),
    "scenarios": entries(Scenario),
    "scenarios.log": entries(Log),
    "agents": entries(AgentSpec),
}


def parse_study(given: object, where: str) -> Study:
    """Return a study from a table as TOML or JSON gives it; `where` is named in messages."""
    study: Study = a_table(Study)(where, given)
    runs = len(study.scenarios) * len(study.agents) * study.trials
    if runs > MOST_RUNS:
        raise InvalidStudy(
            f"{where} asks for {runs:,} runs ({len(study.scenarios):,} scenarios, "
            f"{len(study.agents):,} agents, {study.trials:,} trials), expected at most "
            f"{MOST_RUNS:,}. Make several studies of it."
        )
    for kind, given_ones in (("scenarios", study.scenarios), ("agents", study.agents)):
        if not given_ones:
            raise InvalidStudy(f"{where} has no {kind}. Give at least one [[{kind}]].")
        ids = [one.id.lower() for one in given_ones]  # files of some systems do not tell A from a
        twice = sorted(one for one, times in Counter(ids).items() if times > 1)
        if twice:
            raise InvalidStudy(
                f"{where}: two {kind} have the id {twice[0]!r}. Ids name cells: each must be its "
                "own."
            )
    if any(cell.episodes == 0 for cell in study.cells):
        raise InvalidStudy(
            f"{where} does not say how many episodes a run has. Write episodes = ... at its top."
        )
    return study


def read_study(path: str | Path) -> Study:
    """Return a study from a TOML file."""
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device has no size, and may have no end
            raise InvalidStudy(
                f"{path} cannot be read: it is not a file. Expected a study's TOML file."
            )
        if found.st_size > LARGEST_FILE:
            raise InvalidStudy(
                f"{path} has more than {LARGEST_FILE:,} bytes, expected a study's TOML file."
            )
        words = Path(path).read_bytes().decode()
        if MANY_DOTS.search(words):
            raise ValueError("a name has more than eight parts with dots between")
        given = tomllib.loads(words)
    except InvalidStudy:
        raise
    except FileNotFoundError:
        raise InvalidStudy(f"{path} does not exist. Expected a study's TOML file.") from None
    except OSError as reason:
        raise InvalidStudy(
            f"{path} cannot be read ({reason.strerror}). Expected a study's TOML file."
        ) from None
    # among them tomllib's own, and numbers of thousands of digits
    except (ValueError, RecursionError) as reason:
        raise InvalidStudy(f"{path} is not TOML: {reason}") from None
    return parse_study(given, str(path))
