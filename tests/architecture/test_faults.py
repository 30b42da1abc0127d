"""The kept lists of faults and mutants stay fit for use: each can still be planted, and the tests named are there."""

import ast
import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "faults" / "planted.toml"

if not LIST.exists():
    pytest.skip("the list of faults is not part of this copy", allow_module_level=True)

SPEC = importlib.util.spec_from_file_location("planted_faults", ROOT / "faults" / "run.py")
RUN = importlib.util.module_from_spec(SPEC)
sys.modules["planted_faults"] = RUN
SPEC.loader.exec_module(RUN)
FAULTS = RUN.read_faults()


def test_there_are_at_least_25_and_no_two_alike():
    assert len(FAULTS) >= 25
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({(fault.file, RUN.planted(fault)) for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_can_be_planted(fault):
    """The line is still there, once; the file with the fault in it is still Python; and it names tests that exist."""
    ast.parse(RUN.planted(fault))
    assert fault.tests
    for test in fault.tests:
        path, _, function = test.partition("::")
        assert (ROOT / path).is_file(), path
        defined = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if hasattr(node, "name")}
        assert not function or function.partition("[")[0] in defined, test


def lines_by_function(path):
    """The lines of a file without comments, by the function (after its class) in which they stand; '' for the rest."""
    source = (ROOT / "src" / "surefoot" / path).read_text()
    lines = [line.partition("  #")[0].strip() for line in source.splitlines()]
    found = {"": set(lines)}

    def enter(node, names):
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            inside = (*names, child.name) if named else names
            if isinstance(child, ast.FunctionDef):
                found[".".join(inside)] = set(lines[child.lineno - 1 : child.end_lineno])
            enter(child, inside)

    enter(ast.parse(source), ())
    return found


def stale(equivalents):
    """Entries whose line no longer stands in their function."""
    known = {path: lines_by_function(path) for path in {entry["path"] for entry in equivalents}}
    return [entry for entry in equivalents if entry["line"] not in known[entry["path"]].get(entry["function"], ())]


def test_changes_that_no_test_can_notice_are_of_lines_that_are_there():
    """`make mutants` would say so after an hour: this says it at once, without making a mutant."""
    folder = ROOT / "faults" / "mutants"
    entries = tomllib.loads((folder / "equivalents.toml").read_text())["equivalent"]
    assert len(entries) > 100
    assert stale(entries) == []
    gone = [{**entries[0], "line": "no such line"}, {**entries[0], "function": "no_such_function"}]
    assert stale([*gone, entries[0]]) == gone  # the control
    for module in tomllib.loads((folder / "modules.toml").read_text())["module"]:
        assert (ROOT / "src" / "surefoot" / module["path"]).is_file(), module["path"]
        assert all((ROOT / test.partition("::")[0]).is_file() for test in module["tests"]), module["tests"]


def test_a_line_that_is_gone_is_noticed():
    gone = FAULTS[0]._replace(old="no such line")
    with pytest.raises(SystemExit, match="expected once"):
        RUN.planted(gone)
