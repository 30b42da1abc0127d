"""The kept list of faults stays fit for use: each can still be planted, and the tests named are
there.
"""

import ast
import importlib.util
import sys
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
    """The line is still there, once; the file with the fault in it is still Python; and it names
    tests that exist.
    """
    ast.parse(RUN.planted(fault))
    assert fault.tests
    for test in fault.tests:
        path, _, function = test.partition("::")
        assert (ROOT / path).is_file(), path
        defined = {
            node.name
            for node in ast.walk(ast.parse((ROOT / path).read_text()))
            if hasattr(node, "name")
        }
        assert not function or function.partition("[")[0] in defined, test


def test_a_line_that_is_gone_is_noticed():
    gone = FAULTS[0]._replace(old="no such line")
    with pytest.raises(SystemExit, match="expected once"):
        RUN.planted(gone)
