"""The public surface: complete, lazy, and with no name that hides a module."""

import ast
import pkgutil
from pathlib import Path

import pytest

import surefoot as sf
from process import python
from surefoot import kernels

SOURCE = Path(sf.__file__).parent


@pytest.mark.parametrize("package", [sf, kernels])
def test_every_name_of_the_stub_is_served(package):
    """The stub is all that is read: a name in it that its module does not have would be found by
    users alone.
    """
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = package.nonsense


def test_no_public_name_hides_a_module():
    """Importing `surefoot.x` sets the attribute x: a function of that name would come and go
    with import order.
    """
    modules = {module.name for module in pkgutil.iter_modules([str(SOURCE)])}
    assert modules
    assert not modules & set(sf.__all__)


def test_importing_is_quick_because_nothing_heavy_is_loaded():
    heavy = ("numba", "matplotlib", "gymnasium", "duckdb", "highspy", "joblib", "pydantic")
    loaded = f"print([name for name in {heavy!r} if name in sys.modules]); "
    control = "w = sf.world('trap'); sf.policy_value(w, w.baseline); "
    code = "import sys, surefoot as sf; " + loaded + control + loaded
    assert python("-c", code).splitlines() == ["[]", "['numba']"]


def trees():
    for path in SOURCE.rglob("*.py"):
        yield path.relative_to(SOURCE), ast.parse(path.read_text())


def test_no_global_randomness_and_no_catch_all_arguments():
    # fields; sizes of a family, refused if unknown; options
    checked_by_name = {"freeze", "world", "build", "command"}
    found = []
    for path, tree in trees():
        for node in ast.walk(tree):
            above = node.value if isinstance(node, ast.Attribute) else None
            drawn = isinstance(above, ast.Attribute) and ast.unparse(above) == "np.random"
            if drawn and node.attr not in ("Generator", "SeedSequence", "Philox", "default_rng"):
                found.append(f"{path}:{node.lineno} np.random.{node.attr}")
            if (
                isinstance(node, ast.FunctionDef)
                and node.args.kwarg is not None
                and node.name not in checked_by_name
            ):
                found.append(f"{path}:{node.lineno} **{node.args.kwarg.arg}")
    assert found == []


def test_every_kernel_refuses_to_allocate():
    """`_nrt=False` is what makes "nothing is allocated in the loop" more than a hope: numba
    refuses to compile it.
    """
    import numpy as np
    from numba.core.errors import NumbaError

    from surefoot.kernels.jit import compiled

    def allocates(n):
        return np.zeros(n).sum()

    with pytest.raises(NumbaError):
        compiled(allocates)(3)
