"""No import hides a cycle: the graph of ALL import statements, also those within functions and for type checkers."""

import ast
import importlib.util
import re
import shutil
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surefoot"
SPEC = importlib.util.spec_from_file_location("walks", ROOT / "tools" / "walks.py")
WALKS = importlib.util.module_from_spec(SPEC)
sys.modules["walks"] = WALKS
SPEC.loader.exec_module(WALKS)


def cycle(graph):
    """One cycle of modules, or None. The package's own __init__ is left out: nothing inside imports it."""
    before = {module: set() for module in graph.modules}
    for importer, imported in graph.edges:
        before[importer].add(imported)
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return error.args[1]
    return None


# A line that may import one of our modules, and begins with something else: only such files are looked into.
NOT_AT_THE_TOP = re.compile(r"^(?!from |import )(?=.*\bimport\b).*surefoot", re.MULTILINE)


def late(root):
    """Imports of our own modules within functions: (module, line). The command loads lazily and may."""
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] == "cli" or not NOT_AT_THE_TOP.search(path.read_text()):
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    ours = isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "surefoot"
                    named = isinstance(node, ast.Import) and any(a.name.split(".")[0] == "surefoot" for a in node.names)
                    if ours or named:
                        yield path.relative_to(root).as_posix(), node.lineno


# Each may stay while it has a reason other than a cycle: the graph above has none with it.
LATE = {
    "studies/report/report.py": "Matplotlib is loaded when figures are drawn",
    "studies/report/phrases.py": "the packaged studies are read when one of them is named",
}


def test_there_is_no_cycle():
    graph = WALKS.import_graph(SOURCE)
    assert len(graph.modules) > 100
    assert len(graph.edges) > 400
    assert cycle(graph) is None


@pytest.mark.parametrize(
    "statement",
    [
        "from surefoot.agents.new_file import x",
        "def late():\n    from surefoot.agents.new_file import x",
        "if TYPE_CHECKING:\n    from surefoot.agents.new_file import x",
        "def late():\n    import surefoot.agents.new_file",
        "class A:\n    def late(self):\n        from surefoot.agents import new_file",
    ],
)
def test_a_cycle_is_found_wherever_the_import_stands(tmp_path, statement):
    """The control: plan.py imports a new file that imports it, as several hid cycles before."""
    copy = tmp_path / "surefoot"
    shutil.copytree(SOURCE / "agents", copy / "agents", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "agents" / "new_file.py").write_text("from surefoot.agents.plan import Plan\n\nx = Plan\n")
    with (copy / "agents" / "plan.py").open("a") as stream:
        stream.write(f"\n{statement}\n")
    assert {"surefoot.agents.plan", "surefoot.agents.new_file"} <= set(cycle(WALKS.import_graph(copy)))


def test_our_own_modules_are_imported_at_the_top(tmp_path):
    assert {path for path, _ in late(SOURCE)} <= LATE.keys()
    control = tmp_path / "agents"
    control.mkdir()
    (control / "new_file.py").write_text("def f():\n    from surefoot.agents import plan\n    import surefoot.base\n")
    assert list(late(tmp_path)) == [("agents/new_file.py", 2), ("agents/new_file.py", 3)]
