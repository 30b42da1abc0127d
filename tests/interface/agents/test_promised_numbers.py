"""No text promises more than what is proved: of a number that is promised from below the six digits
that people see are never above it, of one that is promised from above never below it.
"""

import re

import numpy as np
import pytest

import surefoot as sf

# each is nearer to the next number of six digits than to the one before
FLOOR, LARGE, LOST, DELTA = 0.9999996, 1234565.6, 1.0000004, 0.10000004
WORLD = sf.TabularMDP(np.ones((1, 1, 1, 1)), np.ones((1, 1, 1)))
LARGE_WORLD = sf.TabularMDP(
    np.ones((1, 1, 1, 1)), np.full((1, 1, 1), 3e6), units=sf.Units(0.0, 3e6)
)
SURE = sf.TabularMDP(np.ones((1, 1, 1, 1)), np.full((1, 1, 1), FLOOR))  # every episode pays that
ALONE = np.ones((1, 1, 1))
NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"


def agent_of(world=WORLD, floor=FLOOR, **settings):
    return sf.StepMix(world.problem, ALONE, floor, **{"delta": DELTA, "returns": None} | settings)


def verdict_of(tmp_path, world, floor):
    sf.simulate(world, agent_of(world, floor), 3, seed=0, ledger=tmp_path / "one")
    return sf.check_ledger(tmp_path / "one").promise


def guard_of(**settings):
    guard = sf.Guard(**{"low": 0.0, "high": 2.0, "floor": FLOOR, "delta": DELTA} | settings)
    return guard, guard.plan(guard.begin(logged=[2.0] * 200))


def guards_verdict(tmp_path, **settings):
    guard, plan = guard_of(**settings)
    with sf.GuardLedger(tmp_path / "one", guard) as ledger:
        ledger.write(plan)
    return sf.check_ledger(tmp_path / "one").promise


def explained(agent):
    return agent.plan(sf.Counts.zeros(agent.problem)).explain()


# who says it, the words around the number, and the number that is promised from below
FROM_BELOW = {
    "a verdict": (
        lambda path: verdict_of(path, WORLD, FLOOR),
        f"KL: {NUMBER} or more",
        FLOOR,
    ),
    "a verdict of large units": (
        lambda path: verdict_of(path, LARGE_WORLD, LARGE),
        f"KL: {NUMBER} or more",
        LARGE,
    ),
    "a verdict of a share": (
        lambda path: verdict_of(path, WORLD, sf.Relative(4e-7)),
        f"KL: {NUMBER} of the baseline or more",
        1 - 4e-7,
    ),
    "a guard's verdict": (guards_verdict, f"the floor is {NUMBER},", FLOOR),
    "a guard's verdict of a share": (
        lambda path: guards_verdict(path, floor=sf.Relative(4e-7)),
        f"the floor is {NUMBER} of the baseline",
        1 - 4e-7,
    ),
    "an agent": (lambda _: repr(agent_of()), f"floor={NUMBER}", FLOOR),
    "an explanation": (lambda _: explained(agent_of()), f"the floor of {NUMBER}", FLOOR),
    "how likely it is": (
        lambda _: explained(agent_of(delta=1e-9, floor=0.0)),
        f"of probability at least {NUMBER}",
        1 - 1e-9,
    ),
    "a guard's plan": (lambda _: repr(guard_of()[1]), f"floor: {NUMBER}", FLOOR),
    "a guard's explanation": (
        lambda _: guard_of()[1].explain(),
        f"keeps the floor of {NUMBER}",
        FLOOR,
    ),
    "how likely a guard is": (
        lambda _: guard_of(delta=1e-9, floor=0.5)[1].explain(),
        f"of probability at least {NUMBER}",
        1 - 1e-9,
    ),
    "a run": (
        lambda _: repr(sf.simulate(WORLD, agent_of(), 3, seed=0)),
        f"violations of {NUMBER}",
        FLOOR,
    ),
    "a share": (lambda _: str(sf.Relative(4e-7)), f"{NUMBER} %", 99.99996),
    "a plan": (
        lambda _: repr(agent_of(SURE, 0.5).plan(sf.Counts.zeros(SURE.problem))),
        f"lower={NUMBER}",
        FLOOR,
    ),
}
FROM_ABOVE = {
    "an amount": (lambda _: str(sf.Below(LOST)), f"{NUMBER} below", LOST),
    "a verdict of an amount": (
        lambda path: guards_verdict(path, floor=sf.Below(LOST)),
        f"value less {NUMBER}",
        LOST,
    ),
    "a verdict's delta": (
        lambda path: verdict_of(path, WORLD, FLOOR),
        f"at delta = {NUMBER}",
        DELTA,
    ),
    "a guard's delta": (guards_verdict, f"at delta = {NUMBER}", DELTA),
    "a promise's delta": (lambda _: str(agent_of().promise), f"at delta = {NUMBER}", DELTA),
    "a plan's delta": (lambda _: explained(agent_of()), f"How delta = {NUMBER} is spent", DELTA),
}


def shown_of(promised, folder):
    """The number that is shown, and the one that is promised."""
    say, words, true = promised
    return float(re.search(words, say(folder))[1]), true


@pytest.mark.parametrize("who", FROM_BELOW)
def test_a_number_that_is_promised_from_below_is_not_rounded_up(tmp_path, who):
    """The control: to six digits, as numbers are rounded, it would be."""
    shown, true = shown_of(FROM_BELOW[who], tmp_path)
    assert true * (1 - 1e-5) < shown <= true <= float(f"{true:.6g}")


@pytest.mark.parametrize("who", FROM_ABOVE)
def test_a_number_that_is_promised_from_above_is_not_rounded_down(tmp_path, who):
    """The control: to six digits, as numbers are rounded, it would be."""
    shown, true = shown_of(FROM_ABOVE[who], tmp_path)
    assert float(f"{true:.6g}") < true <= shown < true * (1 + 1e-5)


@pytest.mark.parametrize("x", [0.3, 0.1 + 0.2, 2.1999999999999997, 95.0, 0.05, 1e-12, 0.0, 3e6])
def test_a_number_of_few_digits_is_shown_as_it_is(x):
    """Though the float that stands for it may be a hair below or above it."""
    assert float(sf.Units().at_least(x)) == float(sf.Units().at_most(x)) == float(f"{x:.6g}")
