"""Our own modules are imported at the top of a file: an import within a function has a reason,
which is listed.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surefoot"

# A line that may import one of our modules, and begins with something else: only such files are
# looked into.
NOT_AT_THE_TOP = re.compile(r"^(?!from |import )(?=.*\bimport\b).*surefoot", re.MULTILINE)


def late(root):
    """Imports of our own modules within functions: (module, line). The command loads lazily and
    may.
    """
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] == "cli" or not NOT_AT_THE_TOP.search(path.read_text()):
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    ours = (
                        isinstance(node, ast.ImportFrom)
                        and (node.module or "").split(".")[0] == "surefoot"
                    )
                    named = isinstance(node, ast.Import) and any(
                        a.name.split(".")[0] == "surefoot" for a in node.names
                    )
                    if ours or named:
                        yield path.relative_to(root).as_posix(), node.lineno


# Each may stay while it has a reason other than a cycle: an import contract refuses cycles.
LATE = {
    "studies/report/report.py": "Matplotlib is loaded when figures are drawn",
    "studies/report/phrases.py": "the packaged studies are read when one of them is named",
}


def test_our_own_modules_are_imported_at_the_top(tmp_path):
    assert {path for path, _ in late(SOURCE)} <= LATE.keys()
    control = tmp_path / "agents"
    control.mkdir()
    (control / "new_file.py").write_text(
        "def f():\n    from surefoot.agents import plan\n    import surefoot.base\n"
    )
    assert list(late(tmp_path)) == [("agents/new_file.py", 2), ("agents/new_file.py", 3)]
