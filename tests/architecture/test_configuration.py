"""What pyproject.toml and the Makefile name is there: folders, files, Python versions."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LEFT_OUT = {".ci", ".gitignore"}  # of the sdist: what belongs to the repository, not to a release


def missing(patterns, root=ROOT):
    """The patterns that match nothing."""
    return [pattern for pattern in patterns if not any(root.glob(pattern))]


def test_linters_name_only_what_is_there(tmp_path):
    ruff = PROJECT["tool"]["ruff"]
    named = [
        *ruff["src"],
        *ruff["lint"]["per-file-ignores"],
        *ruff.get("format", {}).get("exclude", ()),
    ]
    named += [
        *PROJECT["tool"]["mypy"]["files"],
        *PROJECT["tool"]["pytest"]["ini_options"]["testpaths"],
    ]
    assert len(named) > 5
    assert missing(named) == []
    assert missing(["examples/**", "src"], tmp_path) == ["examples/**", "src"]  # the control


def test_python_versions_agree():
    """The tests run on the lowest that is allowed and checked. test_package.py tries the others."""
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["mypy"]["python_version"] == lowest
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + lowest.replace(".", "")


def test_a_release_has_all_that_its_tests_read():
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert missing(included) == []
    if not (ROOT / ".git").exists():
        pytest.skip("not a repository: what is kept cannot be listed")
    kept = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    top = {path.split("/")[0] for path in kept if path}
    assert top - LEFT_OUT - {"pyproject.toml"} == set(included)  # pyproject.toml always comes along


def test_make_runs_files_that_exist():
    text = (ROOT / "Makefile").read_text()
    scripts = re.findall(r"\$\(BIN\)/python ([\w/]+\.py)", text)
    assert "tools/worlds_page.py" in scripts
    assert missing(scripts) == []
    assert {path.name for path in (ROOT / "tools").glob("*.py")} == {
        Path(script).name for script in scripts if script.startswith("tools/")
    }, "each tool has a target"
