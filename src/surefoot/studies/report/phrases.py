"""A study in words: its setting, places, learners and floors, the command that runs it, and its file."""

import json
from collections.abc import Mapping
from typing import Any

from surefoot.studies.spec.study import AgentSpec, Choice, Scenario, Study


def setting_in_words(study: Study) -> str:
    """Who runs where, how often, how long."""
    lengths = sorted({cell.episodes for cell in study.cells})
    spans = " to ".join(f"{episodes:,}" for episodes in dict.fromkeys((lengths[0], lengths[-1])))
    learners, places = len(study.agents), len(study.scenarios)
    runs = len(study.cells) * study.trials
    each = f"{learners} {plural('learner', learners)} in {places} {plural('place', places)}, {study.trials} "
    return (
        f"{each}{plural('trial', study.trials)} each: {runs:,} {plural('run', runs)} of {spans} episodes. Trials of "
        "a place differ in their draws only, and trial i meets the same chances with every learner. "
        f"delta = {study.delta:g}: each run's promise may fail with that probability at most. "
        "Returns are in the world's units; values are exact, not sampled. Episodes count from 0."
    )


def sizes_of(scenario: Scenario) -> dict[str, Any]:
    """A world's sizes; that of its usual baseline where that is used."""
    used = scenario.baseline if scenario.log is None else scenario.log.behaviour
    hidden = ("name",) if used == "usual" else ("name", "eta")
    return {key: value for key, value in scenario.world.items() if key not in hidden}


def policy_in_words(choice: Choice) -> str:
    """A baseline, or who wrote a log."""
    return "the world's usual one" if isinstance(choice, str) else f"Boltzmann policy on Q*, eta = {choice[1]:g}"


def baseline_in_words(scenario: Scenario) -> str:
    """Where the baseline comes from."""
    if scenario.log is None:
        return policy_in_words(scenario.baseline)
    methods = {"vi-lcb": "VI-LCB", "robust": "KL-robust learning", "clone": "cloning", "spibb": "SPIBB"}
    return (
        f"learnt by {methods[scenario.log.method]} from a log of {scenario.log.episodes:,} episodes of another policy "
        f"({policy_in_words(scenario.log.behaviour)}); a new log in every trial"
    )


def floor_in_words(scenario: Scenario) -> str:
    """How the floor was chosen."""
    if scenario.floor == "usual":
        return "the world's usual one"
    if isinstance(scenario.floor, tuple):
        kind, value = scenario.floor
        return f"{value:g} times the baseline's" if kind == "of_baseline" else f"the baseline's less {value:g}"
    return "as given"


def replan_in_words(choice: Choice) -> str:
    """When a learner plans."""
    if isinstance(choice, str):
        return "before every episode"
    kind, value = choice
    if kind == "growth":
        return f"when some pair's visits have grown by {100 * (value - 1):g} %"
    return f"in blocks of {100 * value:g} % of the episodes so far"


def constants_in_words(learner: AgentSpec) -> str:
    """With which constants a learner plans."""
    return {"paper": "as its paper prints them", "kl": "KL (sharp)"}[learner.bounds]


def plural(word: str, n: int) -> str:
    """The word for one, or for several."""
    return word if n == 1 else f"{word}s"


def plainly(value: object) -> str:
    """A setting as a reader writes it: yes, not True."""
    return (
        {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def command(study: Study) -> str:
    """What makes these results again. A study that does not come with the package is run from its file."""
    from surefoot.studies.spec.library import GROUPS, packaged

    name = study.name
    if name in GROUPS["all"]:
        ours = packaged(name)
        known = (ours.made_quick() if study.size == "quick" else ours).digest == study.digest
    else:
        known = False
    what = name if known else f"{name}.toml"
    return f"surefoot run {what}{' --quick' * (study.size == 'quick')} --trials {study.trials}"


def as_toml(study: Study) -> str:
    """The study as its file would say it: `read_study` reads it back."""
    table = study.as_table()
    plain = {key: value for key, value in table.items() if key not in ("quick", "scenarios", "agents")}
    blocks = [_fields(plain)]
    if "quick" in table:
        blocks.append(f"[quick]\n{_fields(table['quick'])}")
    for kind in ("scenarios", "agents"):
        blocks += [f"[[{kind}]]\n{_fields(entry)}" for entry in table[kind]]
    return "\n\n".join(blocks) + "\n"


def _fields(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{key} = {_as_value(value)}" for key, value in table.items())


def _as_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_as_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_as_value(entry) for entry in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace(
            "\x7f", "\\u007f"
        )  # TOML's strings are JSON's, but for DEL
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
