"""CONTRIBUTING.md is true: its recipes are followed to the letter in a copy of the package, and its
index is complete.

A block `python file=...` is a new file below src/surefoot; a block `diff file=...` adds its + lines
after the one line that stands before them. Nothing else is done, and the new agent, world, log
method and claim are there.
"""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from process import python
from surefoot.logs.methods import METHODS
from surefoot.rivals.registry import AGENTS
from surefoot.studies.spec.claims import CLAIMS
from surefoot.worlds.registry import FAMILIES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surefoot"
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
BLOCK = re.compile(r"^```(python|diff) file=(\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)

STUDY = """
name = "followed"
title = "What CONTRIBUTING.md adds"
question = "Is it there?"
trials = 2
episodes = 50
claims = ["random-regrets"]
figures = []

[[scenarios]]
id = "coins"
world = { name = "coins", H = 3 }

[[agents]]
id = "random"
agent = "random-actions"
bounds = "kl"
"""
SCRIPT = """
import json, sys
from pathlib import Path
from typer.testing import CliRunner
import surefoot as sf
from surefoot.cli.main import app
from surefoot.studies import judge, read_results

def run(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, (arguments, done.exit_code, done.output, done.exception)
    return done.stdout

here = Path(sys.argv[1])
world = sf.world("coins", H=2)
tried = json.loads(run("try", "coins", "--agent", "random-actions", "--episodes", 20, "--json"))
run("logs", "example", "trap", "--episodes", 300, "--out", here / "log.parquet")
method = ("--method", "most-common", "--reward-range", 0, 1)
answer = run("baseline", here / "log.parquet", *method, "--out", here / "b.npz", "--json")
learnt = json.loads(answer)
run("run", here / "study.toml", "--out", here / "out", "--jobs", 1)
verdict = judge(read_results(here / "out"))[0]
print(json.dumps({
    "agent": sf.AGENTS["random-actions"].__name__,
    "agents": [row["agent"] for row in tried["rows"]],
    "world": [world.H, sf.solve(world).value],
    "worlds": [row["name"] for row in json.loads(run("worlds", "--json"))],
    "method": learnt["method"],
    "claim": [verdict.claim, verdict.holds],
}))
"""


def overlay(place):
    """The package as links to its files, so that what is compiled already is found; what is
    edited becomes a file.
    """
    shutil.copytree(
        SOURCE, place, copy_function=os.symlink, ignore=shutil.ignore_patterns("__pycache__")
    )
    compiled = SOURCE / "kernels" / "__pycache__"
    if compiled.is_dir():
        (place / "kernels" / "__pycache__").symlink_to(compiled)
    return place


def added(text, diff):
    """The text with the + lines of each hunk after the one line that stands before them."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines()
        context = [line[1:] for line in lines if line.startswith(" ")]
        assert len(context) == 1, f"a hunk has one line of context, found {context}"
        assert text.split("\n").count(context[0]) == 1, f"expected once: {context[0]!r}"
        new = "\n".join([context[0], *(line[1:] for line in lines if line.startswith("+"))])
        text = "\n".join(new if line == context[0] else line for line in text.split("\n"))
    return text


def follow(place, blocks):
    """Do what the page says, and nothing else."""
    for kind, name, text in blocks:
        path = place / name
        if kind == "diff":
            before = path.read_text()
            path.unlink()
            path.write_text(added(before, text))
        else:
            assert not path.exists(), f"{name} is there already"
            path.write_text(text)


def run(command, folder):
    """Run a command with the package of a folder."""
    return python("-W", "error", *command, folder=folder, PYTHONPATH=str(folder))


def test_the_recipes_can_be_followed(tmp_path):
    """Control: what they add is not there before."""
    assert "random-actions" not in AGENTS
    assert "coins" not in FAMILIES
    assert "most-common" not in METHODS
    assert "random-regrets" not in CLAIMS
    follow(overlay(tmp_path / "surefoot"), BLOCK.findall(PAGE))
    (tmp_path / "study.toml").write_text(STUDY)
    found = json.loads(run(["-c", SCRIPT, str(tmp_path)], tmp_path).splitlines()[-1])
    assert found["agent"] == "RandomActions"
    assert found["agents"] == ["Random actions", "BPI-UCBVI (EpsMix form)"]
    assert found["world"] == [2, pytest.approx(1.2)]
    assert "coins" in found["worlds"]
    assert found["method"] == "The most common action"
    assert found["claim"] == ["Random actions are worse than the optimum in every trial", True]


def test_the_new_files_pass_the_checks(tmp_path):
    """What the page shows is written as we write: ruff has nothing to say, nor have the import
    contracts.
    """
    place = tmp_path / "surefoot"
    shutil.copytree(SOURCE, place, ignore=shutil.ignore_patterns("__pycache__"))
    follow(place, BLOCK.findall(PAGE))
    new = [str(place / name) for kind, name, _ in BLOCK.findall(PAGE) if kind == "python"]
    rules = ["--config", str(ROOT / "pyproject.toml")]
    run(["-m", "ruff", "check", "--no-cache", *rules, *new], tmp_path)
    run(["-m", "ruff", "format", "--check", "--no-cache", *rules, *new], tmp_path)
    lint = "from importlinter.cli import lint_imports_command as run; run()"
    run(["-c", lint, "--no-cache", "--no-logo", *rules], tmp_path)


def indexed(page):
    """The patterns of the index, row by row: a folder stands for all its files."""
    table = page.partition("| subject | tests |")[2]
    for row in re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE):
        for pattern in re.findall(r"`([^`]+)`", row[1]):
            yield row[0], f"{pattern}**/*.py" if pattern.endswith("/") else pattern


def test_the_index_names_every_file_of_tests():
    rows = list(indexed(PAGE))
    assert len({subject for subject, _ in rows}) > 15
    assert [pattern for _, pattern in rows if not any(ROOT.glob(pattern))] == []
    named = {path for _, pattern in rows for path in ROOT.glob(pattern)}
    files = set((ROOT / "tests").rglob("test_*.py"))
    assert sorted(path.relative_to(ROOT).as_posix() for path in files - named) == []
    assert list(indexed("| subject | tests |\n|---|---|\n| a | `b/` `c.py` |")) == [
        ("a", "b/**/*.py"),
        ("a", "c.py"),
    ]


def test_every_make_target_that_the_page_names_is_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"^make ([a-z-]+)", PAGE, re.MULTILINE))
    assert len(named) > 8
    assert named <= targets
