"""Nothing of ours runs what a file says: no pickles, nothing evaluated, no shell. Found by
walking syntax trees.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {
    "pickle",
    "_pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "jsonpickle",
    "code",
    "runpy",
}
BUILTINS = {"eval", "exec", "compile", "__import__"}
METHODS = {  # what is called of which library
    "joblib": {"load"},
    "torch": {"load"},
    "pandas": {"read_pickle", "eval"},
    "pd": {"read_pickle", "eval"},
    "yaml": {"load", "load_all", "unsafe_load", "unsafe_load_all", "full_load", "full_load_all"},
    "os": {"system", "popen"},
    "numpy": {"fromfile", "memmap"},
    "np": {"fromfile", "memmap"},
    "builtins": BUILTINS,
}
# tests themselves run our own pages, and copy objects in memory as worker processes do
TEST = "test_"


def files():
    """All of src, the tools, the benchmarks, what plants faults, and what the tests share."""
    for pattern in ("src/**/*.py", "tools/*.py", "benchmarks/**/*.py", "faults/**/*.py"):
        yield from sorted(ROOT.glob(pattern))
    yield from sorted(path for path in ROOT.glob("tests/**/*.py") if not path.name.startswith(TEST))


def dotted(node):
    """`np.lib.load` as text; '' for what is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else f"?.{node.attr}"
    return ""


def aliases(tree):
    """What a name that was imported stands for: `from joblib import load as l` makes l
    joblib.load.
    """
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return known


def imported(node):
    """Modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in (
        "import_module",
        "importorskip",
    ):
        return [
            arg.value
            for arg in node.args
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
        ]
    return []


def is_false(node):
    return isinstance(node, ast.Constant) and node.value is False


def complaints(source):
    """What a text of Python does that it must not, by line."""
    tree = ast.parse(source)
    known = aliases(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for module in imported(node):
            if module.split(".")[0] in MODULES:
                yield line, f"import of {module}"
        if isinstance(node, ast.Name) and node.id in BUILTINS and isinstance(node.ctx, ast.Load):
            yield line, node.id
        if (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and not is_false(node.value)
        ):
            yield node.value.lineno, "allow_pickle"
        if isinstance(node, ast.keyword) and node.arg == "shell" and not is_false(node.value):
            yield node.value.lineno, "shell"
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            name = dotted(node)
            first, _, rest = name.partition(".")
            full = ".".join(part for part in (known.get(first, first), rest) if part).split(".")
            if first in known and full[0] in MODULES:
                yield line, name
            if full[-1] in METHODS.get(full[0], ()) and len(full) > 1:
                yield line, name
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            first, _, rest = name.partition(".")
            full = ".".join(part for part in (known.get(first, first), rest) if part).split(".")
            if full[0] in ("np", "numpy") and full[-1] in ("load", "read_array"):
                given = [word for word in node.keywords if word.arg == "allow_pickle"]
                if not given:
                    yield line, f"{name} without allow_pickle=False"
            if full[-1] in ("getoutput", "getstatusoutput", "create_subprocess_shell") or full[
                :2
            ] == ["os", "execvp"]:
                yield line, name


def test_nothing_of_ours_runs_what_a_file_says():
    read = list(files())
    assert len(read) > 100
    for must in (
        "src/surefoot/base/files.py",
        "tools/worlds_page.py",
        "benchmarks/run.py",
        "tests/conftest.py",
    ):
        assert ROOT / must in read
    found = [
        f"{p.relative_to(ROOT)}:{line} {what}"
        for p in read
        for line, what in complaints(p.read_text())
    ]
    assert found == []


PLANTED = (
    "import pickle",
    "import pickle as harmless\nharmless.load(open('f', 'rb'))",
    "from pickle import loads",
    "import _pickle",
    "import marshal",
    "import shelve",
    "import dill",
    "import cloudpickle",
    "def late():\n    import pickle",
    "from importlib import import_module\nimport_module('pickle')",
    "import joblib\njoblib.load('f')",
    "from joblib import load\nload('f')",
    "from joblib import load as take\ntake('f')",
    "import torch\ntorch.load('f')",
    "import pandas as pd\npd.read_pickle('f')",
    "import pandas as q\nq.read_pickle('f')",
    "eval('1')",
    "exec('1')",
    "compile('1', 'f', 'exec')",
    "text = '1'\nrun = eval",
    "list(map(eval, ['1']))",
    "import builtins\nbuiltins.eval('1')",
    "__import__('os')",
    "import yaml\nyaml.load('a: 1', Loader=yaml.Loader)",
    "from yaml import unsafe_load\nunsafe_load('a: 1')",
    "import yaml\nyaml.full_load('a: 1')",
    "import numpy as np\nnp.load('f')",
    "import numpy\nnumpy.load('f')",
    "from numpy import load\nload('f')",
    "import numpy as np\nnp.load('f', allow_pickle=True)",
    "import numpy as np\nnp.load('f', allow_pickle=some)",
    "import numpy as np\nnp.savez('f', a=1, allow_pickle=True)",
    "import numpy as np\nnp.lib.format.read_array(stream)",
    "import numpy as np\nnp.fromfile('f', dtype=object)",
    "import subprocess\nsubprocess.run('ls', shell=True)",
    "import subprocess\nsubprocess.Popen('ls', shell=some)",
    "import subprocess\nsubprocess.getoutput('ls')",
    "import os\nos.system('ls')",
    "from os import system\nsystem('ls')",
)


@pytest.mark.parametrize("source", PLANTED)
def test_what_is_planted_is_found(source):
    """The control: each of these must be found, by line."""
    found = list(complaints(source))
    assert found
    assert max(line for line, _ in found) == len(source.splitlines())


HARMLESS = (
    '"""No pickle, no eval, no exec, no yaml.load."""',
    "# import pickle; eval('1')",
    "words = 'import pickle; np.load(f)'",
    "import numpy as np\nnp.load('f', allow_pickle=False)",
    "import subprocess\nsubprocess.run(['ls'], shell=False)",
    "import re\nre.compile('a')",
    "import yaml\nyaml.safe_load('a: 1')",
    "model.eval()",
    "store.load('f')",
    "import joblib\njoblib.Parallel(2)",
    "import os\nos.environ.get('A')",
    "from ast import literal_eval",
)


@pytest.mark.parametrize("source", HARMLESS)
def test_what_only_speaks_of_it_is_not(source):
    assert list(complaints(source)) == []
