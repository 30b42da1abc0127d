"""tools/walks.py runs: it walks through the package and counts files and hops. Long chains of files have a limit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = {"simulate": 70, "study": 202}  # hops; each may go down


def counted(*options):
    tool = [sys.executable, str(ROOT / "tools" / "walks.py"), "--src", str(ROOT / "src"), "--json", *options]
    told = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_a_walk_is_counted():
    """With the edges: a simulation goes through the plan of its agent and ends in a run."""
    found = counted("--walk", "simulate", "--list", "--imports")
    walk = found["walks"]["simulate"]
    assert 10 < walk["files"] < walk["hops"] <= MOST["simulate"]
    assert walk["hops"] == len(walk["edges"])
    pairs = {(edge["caller"], edge["callee"]) for edge in walk["edges"]}
    assert ("simulation/simulate.py", "simulation/setup.py") in pairs
    assert all(caller != callee for caller, callee in pairs)
    assert found["imports"]["modules"] > 100


@pytest.mark.full
def test_a_study_becomes_a_page_in_few_hops():
    walk = counted("--walk", "study")["walks"]["study"]
    assert walk["hops"] <= MOST["study"]
