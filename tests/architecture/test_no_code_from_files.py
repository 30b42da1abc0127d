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
    "yaml": {"load", "load_all", "unsafe_load", "unsafe_load_all", "full_load", "full_load_all"},
    "os": {"system", "popen", "execvp"},
    "numpy": {"fromfile", "memmap"},
    "builtins": BUILTINS,
}
SHELLS = {"getoutput", "getstatusoutput", "create_subprocess_shell"}
TEST = (
    "test_"  # tests themselves run our own pages, and copy objects in memory as worker processes do
)


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


def meant(node, known):
    """What a name stands for, in parts: joblib, load for what `from joblib import load` gave."""
    first, _, rest = dotted(node).partition(".")
    return ".".join(part for part in (known.get(first, first), rest) if part).split(".")


def forbidden(node, known):
    """Is this part of a program something that it must not do?"""
    if any(module.split(".")[0] in MODULES for module in imported(node)):
        return True
    if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell"):
        return not (isinstance(node.value, ast.Constant) and node.value.value is False)
    if isinstance(node, ast.Call):
        full = meant(node.func, known)
        named = {word.arg for word in node.keywords}
        reads = full[0] == "numpy" and full[-1] in ("load", "read_array")
        return full[-1] in SHELLS or (reads and "allow_pickle" not in named)
    if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
        name, full = dotted(node), meant(node, known)
        if name.split(".")[0] in known and full[0] in MODULES:
            return True
        return name in BUILTINS or full[-1] in METHODS.get(full[0], ())
    return False


def complaints(source):
    """The lines of a text of Python that do what they must not."""
    tree = ast.parse(source)
    known = aliases(tree)
    for node in ast.walk(tree):
        if forbidden(node, known):
            yield node.lineno


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
    found = [f"{p.relative_to(ROOT)}:{line}" for p in read for line in complaints(p.read_text())]
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
    assert max(found) == len(source.splitlines())


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
