"""Every script of examples/ runs, is short, and needs nothing but the package."""

import ast
import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.py"))
PRINTED = {  # a part of what each must say: what its reader came for
    "contextual_bandit": "the last: ",
    "episodes_in_flight": "certified",
    "guard_a_model": "model-2 1; certified",
    "log_to_learner": "0 violations",
    "messy_csv": "certified to be worth",
    "own_arrays": "0 of 20,000 episodes were below the floor",
    "own_environment": "In all: +",  # euros, beside the baseline's
    "own_study": "CERTIFIED",
}


def test_there_is_one_for_each_way_in():
    assert [path.stem for path in EXAMPLES] == sorted(PRINTED)
    page = (EXAMPLES[0].parent / "README.md").read_text()
    assert all(f"]({path.name})" in page for path in EXAMPLES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_what_it_should(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        runpy.run_path(str(path), run_name="__main__")
    assert PRINTED[path.stem] in capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_uses_the_public_interface_alone(path):
    text = path.read_text()
    assert sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(text))) < 50
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("surefoot"):
            assert node.module == "surefoot.studies"
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")
