"""The studies of the package, by name and in groups, and how a study is found."""

import tomllib
from importlib.resources import files
from pathlib import Path

from surefoot.errors import InvalidStudy
from surefoot.studies.spec.study import Study, parse_study, read_study

# In the order of the paper: its figures, then those of its drafts.
PAPER = (
    "online",
    "online-worlds",
    "offline",
    "rivals",
    "relative-floors",
    "episodes-per-step",
    "step-no-mix",
    "offline-violations",
)
OURS = ("sharp",)
THEORY = ("regret-in-K", "regret-in-kappa", "scaling", "gamma-zero", "budgets")
GROUPS = {"paper": PAPER, "ours": OURS, "theory": THEORY, "all": (*PAPER, *OURS, *THEORY)}


def packaged(name: str) -> Study:
    """Return a study of the package by name."""
    return parse_study(tomllib.loads(source(name)), f"{name}.toml")


def source(name: str) -> str:
    """Return the file of a study of the package, to copy and change."""
    if name not in GROUPS["all"]:
        raise InvalidStudy(f"There is no study {name!r}. There are: {', '.join(GROUPS['all'])}.")
    return (
        files("surefoot.studies.spec")
        .joinpath("packaged", f"{name}.toml")
        .read_text(encoding="utf-8")
    )


def find_studies(asked: str) -> tuple[Study, ...]:
    """Return the studies of this name, of the group of this name, or of the file at this path."""
    if asked in GROUPS:
        return tuple(packaged(name) for name in GROUPS[asked])
    if asked in GROUPS["all"]:
        return (packaged(asked),)
    if asked.endswith(".toml") or Path(asked).is_file():
        return (read_study(asked),)
    there = ", ".join([*GROUPS["all"], *GROUPS])
    raise InvalidStudy(
        f"There is no study {asked!r}. There are: {there}; or give the path of a .toml file."
    )
