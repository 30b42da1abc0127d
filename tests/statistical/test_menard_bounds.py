"""Both bounds of BPI-UCBVI (Menard) hold the optimum.

Exact values, fixed seeds. Error rates: the promise is that at most a share delta of tables has a
bound that fails, and the test asks for none of 200. False alarm: at a share of 1e-4, which these
do not reach, 0.02; bounds that used up delta = 0.1 would nearly always fail the test.
Missed alarm: a defect that breaks 5 % of the tables is missed with probability 3e-5. How large a
defect that is, the control says: beta must shrink by a factor of 10^6.
"""

import pytest

import surefoot as sf
from surefoot.bounds import Bernstein, Model
from surefoot.rivals.bpi_ucbvi_menard import bpi_ucbvi_menard

DELTA = 0.1
WORLDS = {
    "trap": lambda: sf.world("trap"),
    "random": lambda: sf.world("random", S=4, A=2, H=3, seed=0, stationary=True),
}


def tables(counts_of, name, each):
    """Counts of few episodes and of many, of a policy that tries everything."""
    world = WORLDS[name]()
    tries = 0.5 * world.baseline + 0.5 / world.A
    for size in (10, 1000, 10**5, 10**7):
        for seed in range(each):
            yield world, counts_of(world, tries, size, seed=seed, pooled=world.stationary)


def outside(counts_of, name, scale, each):
    """How many tables have V* outside of Menard's bounds, and of how many the upper one is not
    simply H.
    """
    left = informative = 0
    for world, counts in tables(counts_of, name, each):
        found = bpi_ucbvi_menard(Model(world.problem, counts, DELTA / 3), Bernstein(scale))
        upper, lower = (float(world.start @ V[0]) for V in (found.V_up, found.V_low))
        left += not lower - 1e-12 <= sf.solve(world).value <= upper + 1e-12
        informative += upper < world.H
    return left, informative


@pytest.mark.parametrize("name", WORLDS)
def test_both_bounds_of_menard_hold(name, counts_of):
    left, informative = outside(counts_of, name, 1.0, 25)
    assert left == 0
    assert informative >= 25
    assert outside(counts_of, name, 1e-6, 25)[0] >= 10  # control
