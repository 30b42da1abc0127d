"""What is in tools/ runs: every writer of pages finds what it imports."""

import importlib.util
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surefoot.cli.main import app

ROOT = Path(__file__).parents[2]
TOOLS = sorted((ROOT / "tools").glob("*.py"))
TINY = """
name = "tiny"
title = "A tiny study"
question = "Does it run?"
trials = 2
episodes = 300

[[scenarios]]
id = "random"
world = { name = "random", S = 3, A = 2, H = 2, seed = 1 }
baseline = { eta = 5.0 }
floor = { of_baseline = 0.9 }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"

[[agents]]
id = "epsmix"
agent = "epsmix"
bounds = "paper"

[[agents]]
id = "bpi-ucbvi"
agent = "bpi-ucbvi"
bounds = "kl"
"""


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_a_tool_finds_what_it_imports(path):
    """Pages that take long to measure are not written by any test: their tools are loaded at
    least.
    """
    module = loaded(path.stem)
    assert hasattr(module, "main") or hasattr(module, "page")
    assert module.__doc__.split()[0] in ("Write", "Measure")


def run_study(path, out):
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(out), "--jobs", "1"])
    assert done.exit_code == 0, done.output


@pytest.mark.full
def test_the_pages_of_a_reproduction_are_written(tmp_path, monkeypatch):
    """A tiny study stands for those that take hours."""
    tool, pages = loaded("reproduction"), tmp_path / "pages"
    monkeypatch.setattr(tool, "PAGES", pages)

    def written(name):
        """The page once the results of a study are added; each study has a folder of its own."""
        (tmp_path / "study.toml").write_text(TINY.replace('name = "tiny"', f'name = "{name}"'))
        out = tmp_path / f"of {name}"
        if not out.exists():
            run_study(tmp_path / "study.toml", out / name)
        monkeypatch.setattr(sys, "argv", ["reproduction.py", str(out)])
        tool.main()
        return (pages / "README.md").read_text()

    def files():
        return {path.name: path.read_bytes() for path in (pages / "tiny").iterdir()}

    page, before = written("tiny"), files()
    assert "| scenario | agent | violations per run |" in page
    rows = (pages / "tiny" / "trials.csv").read_text().splitlines()
    assert rows[0].startswith("scenario,agent,trial,episodes,floor")
    assert len(rows) == 1 + 3 * 2
    assert (pages / "tiny" / "report.html").exists()
    # Another study is added, and this one is left as it is; then this one alone is written again.
    both = written("other")
    assert list(tool.sections(both)) == ["tiny", "other"]
    assert files() == before
    (pages / "tiny" / "left-over.png").write_text("of a figure that is drawn no more")
    assert written("tiny") == both
    assert files().keys() == before.keys()
