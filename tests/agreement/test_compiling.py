"""Kernels as wholes and kernels as numba compiles them by itself: the same bits."""

import pytest

from process import python
from surefoot.kernels.jit import as_wholes

RUN = """
import surefoot as sf
from surefoot.kernels import jit
world = sf.random_mdp(5, 5, 3, seed=1)
pi_b = sf.boltzmann(sf.solve(world).Q, 5.0)
for agent in (sf.StepMix.paper(world.problem, pi_b, 2.0), sf.EpsMix(world.problem, pi_b, 2.0)):
    run = sf.simulate(world, agent, 3000, 3, progress=False)
    print(run.regret.hex(), run.counts.n_sas.tobytes().hex())
print("pipeline_class" in jit.WHOLE)
"""
UNTRIED = "import numba\nnumba.__version__ = '9.9.0'\n"


@pytest.mark.parametrize(
    ("version", "tried"),
    [
        ("0.60.0", False),
        ("0.61.2", True),
        ("0.68.1", True),
        ("0.69.0rc1", False),
        ("0.69rc1", False),
        ("1.0.0", False),
    ],
)
def test_only_versions_that_were_tried_compile_wholes(version, tried):
    assert as_wholes(version) is tried


@pytest.mark.full
def test_another_version_of_numba_gives_the_same_bits(tmp_path):
    found = []
    for code in (RUN, UNTRIED + RUN):
        cache = str(tmp_path / str(len(found)))
        found.append(python("-c", code, NUMBA_CACHE_DIR=cache).split())
    assert (found[0].pop(), found[1].pop()) == ("True", "False")
    assert len(found[0]) == 4
    assert found[0] == found[1]
