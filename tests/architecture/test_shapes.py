"""Sizes and shapes that readers stumble over have limits; each limit was seen to be exceeded by a planted example.

What exceeds a limit today is listed in shapes.toml. `python tools/shapes.py --write` writes the list again: it gets
shorter, never longer.
"""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surefoot"
SPEC = importlib.util.spec_from_file_location("shapes", ROOT / "tools" / "shapes.py")
SHAPES = importlib.util.module_from_spec(SPEC)
sys.modules["shapes"] = SHAPES
SPEC.loader.exec_module(SHAPES)
LIMITS = tomllib.loads((ROOT / "tests" / "architecture" / "shapes.toml").read_text())

MODULES = {"__init__", "errors"}  # at the top, besides __main__ and __about__
MOST_MODULES = 4
PACKAGES = {
    "base",
    "numerics",
    "task",
    "bounds",
    "agents",
    "guard",
    "worlds",
    "assurance",
    "offline",
    "simulation",
    "live",
    "studies",
    "cli",
}


def planted(tmp_path, text):
    """A package with one file of this text."""
    (tmp_path / "new_file.py").write_text(text)
    return tmp_path


def above(found, limits):
    """What is more often there than its limit allows, by file."""
    return {file: (n, limits.get(file, 0)) for file, n in found.items() if n > limits.get(file, 0)}


def loose(found, limits):
    """Limits that could be lower."""
    return {file: n for file, n in limits.items() if found.get(file, 0) < n}


def top(root):
    modules = {path.stem for path in root.glob("*.py")} - {"__main__", "__about__"}
    packages = {path.parent.name for path in root.glob("*/__init__.py")}
    folders = {path.name for path in root.iterdir() if path.is_dir() and path.name != "__pycache__"}
    return modules, packages, folders


def test_the_top_is_few_packages_and_few_modules(tmp_path):
    modules, packages, folders = top(SOURCE)
    assert packages == folders == PACKAGES
    assert modules <= MODULES
    assert len(modules) <= MOST_MODULES
    (tmp_path / "utils").mkdir()
    (tmp_path / "helpers.py").write_text("")
    assert top(tmp_path) == ({"helpers"}, set(), {"utils"})  # the control: both are seen


def test_the_documented_packages_are_these():
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = {name for name in PACKAGES if re.search(rf"\b{name}/", page)}
    assert named == PACKAGES


@pytest.fixture(scope="module")
def today():
    """What `tools/shapes.py --write` would write: all that is found in the package, looked for once."""
    known = {entry["function"]: entry for entry in LIMITS["parameters"]}
    return tomllib.loads(SHAPES.limits(SOURCE, known))


def test_functions_have_few_parameters(today):
    """Ten are enough, but for those that are listed with the reason why."""
    listed, found = ({entry["function"]: entry["most"] for entry in limits["parameters"]} for limits in (LIMITS, today))
    assert above(found, listed) == {}
    assert loose(found, listed) == {}, "lower the limits: python tools/shapes.py --write"
    assert all(entry["reason"] for entry in LIMITS["parameters"])


@pytest.mark.parametrize(
    ("text", "name", "n"),
    [
        ("def f(a, b, c, d, e, f, g, h, i, j, k): ...", "f", 11),
        ("def f(a, b, c, d, e, /, f, g, h, *, i, j, k, l): ...", "f", 12),
        ("class A:\n    def f(self, a, b, c, d, e, f, g, h, i, j, *k): ...", "A.f", 11),
        ("def outer():\n    async def f(a, b, c, d, e, f, g, h, i, j, **k): ...", "outer.f", 11),
    ],
)
def test_many_parameters_are_noticed(tmp_path, text, name, n):
    assert SHAPES.many_parameters(planted(tmp_path, text)) == {f"new_file.py::{name}": n}


def test_ten_parameters_are_fine(tmp_path):
    text = "class A:\n    def f(self, a, b, c, d, e, f, g, h, i, *, j): ..."
    assert SHAPES.many_parameters(planted(tmp_path, text)) == {}


def test_no_text_is_multiplied_by_a_truth_value(today):
    found = today["strings_times_booleans"]
    assert above(found, LIMITS["strings_times_booleans"]) == {}
    assert loose(found, LIMITS["strings_times_booleans"]) == {}, "lower the limits: python tools/shapes.py --write"


@pytest.mark.parametrize(
    "text",
    [
        "'s' * (n != 1)",
        "', closed' * self.closed",
        "flag * ' x'",
        "f' in {n}' * bool(n)",
        "' a' * (not b)",
        "' a' * (b and c)",
        "' a' * any(b)",
        "(' a' + b) * c",
        "' a' * True",
        "' a' * rows[0]['b']",
    ],
)
def test_a_text_times_a_truth_value_is_noticed(tmp_path, text):
    assert len(SHAPES.multiplied_strings(planted(tmp_path, f"x = {text}"))) == 1


@pytest.mark.parametrize("text", ["'-' * 80", "'=' * len(t)", "' ' * (n - 3)", "3 * 'a'", "n * m", "'a' if b else ''"])
def test_a_text_times_a_number_is_fine(tmp_path, text):
    assert SHAPES.multiplied_strings(planted(tmp_path, f"x = {text}")) == []


def test_no_code_decides_by_a_sentence(today):
    """A promise is data: rewording a label changes no verdict."""
    found = today["decisions_by_sentence"]
    assert above(found, LIMITS["decisions_by_sentence"]) == {}
    assert loose(found, LIMITS["decisions_by_sentence"]) == {}, "lower the limits: python tools/shapes.py --write"


@pytest.mark.parametrize(
    "text",
    [
        "trial.promise.startswith('certified')",
        "str(run.promise).startswith('certified')",
        "'no floor promised' in trial.promise",
        "NO_FLOOR not in self.trials[0].promise",
        "row['label'].endswith('CERTIFIED')",
        "label.lower().startswith(('no', 'not'))",
        "words.startswith((UNCERTIFIED, 'no promise'))",
        "re.sub('a', 'b', trial.promise)",
        "trial.promise == 'certified'",
        "agent.label in ('a', 'b')",
        "promise.partition(': ')[0] == 'certified'",
    ],
)
def test_a_decision_by_a_sentence_is_noticed(tmp_path, text):
    assert len(SHAPES.by_sentence(planted(tmp_path, f"x = {text}"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "promise.kind == 'certified'",
        "path.startswith('out')",
        "label in known",
        "f'{promise}'",
        "words.startswith('0.')",
    ],
)
def test_a_decision_by_data_is_fine(tmp_path, text):
    assert SHAPES.by_sentence(planted(tmp_path, f"x = {text}")) == []


def test_limits_are_written_as_they_are_read(today, tmp_path):
    """`tools/shapes.py --write` keeps the reasons and writes what the tests read."""
    assert today == LIMITS
    empty = tomllib.loads(SHAPES.limits(tmp_path, {}))
    assert empty == {"strings_times_booleans": {}, "decisions_by_sentence": {}}
