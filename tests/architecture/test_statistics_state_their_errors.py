"""A test that draws at random says how often it errs, both ways: calls broken what is not, and lets
pass what is.

Every module of statistical tests, and those elsewhere that judge by chance, must speak of both in
their docstrings.
"""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ELSEWHERE = [
    "agreement/test_blocks.py",
    "agreement/test_learn.py",
    "agreement/test_gymnasium_models.py",
]
MODULES = sorted((TESTS / "statistical").glob("test_*.py")) + [TESTS / name for name in ELSEWHERE]
BOTH = {"false alarm": r"\bfalse[ -]alarms?\b", "miss": r"\bmiss(es|ed)?\b"}


def docstrings(source):
    """Of the module and of its tests, in lower case, each run of blanks a single one."""
    tree = ast.parse(source)
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    texts = [ast.get_docstring(node) or "" for node in (tree, *tests)]
    return " ".join(" ".join(texts).lower().split())


def unsaid(source):
    """Which of the two errors no docstring speaks of."""
    text = docstrings(source)
    return [name for name, pattern in BOTH.items() if not re.search(pattern, text)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_both_errors_are_stated(path):
    assert unsaid(path.read_text()) == [], (
        f"{path.relative_to(TESTS)}: say in a docstring how likely these errors are"
    )


def test_there_are_modules_to_look_at():
    assert len(MODULES) >= 12


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ('"""A False\nalarm has probability 0.01; a defect is missed with 0.02."""', []),
        ('def test_it():\n    """False-alarm rate 1e-6. Misses: none."""', []),
        ('"""A false alarm is rare."""', ["miss"]),
        ('"""A defect is missed with 0.02."""', ["false alarm"]),
        ('"""Permission to dismiss an alarm."""', ["false alarm", "miss"]),
        ("# false alarm, miss\nx = 'false alarm, miss'", ["false alarm", "miss"]),
        ('def helper():\n    """False alarm, miss."""', ["false alarm", "miss"]),
    ],
)
def test_control_what_is_not_a_statement(source, missing):
    """Comments, strings in the code and helpers do not count, nor words that contain the word."""
    assert unsaid(source) == missing
