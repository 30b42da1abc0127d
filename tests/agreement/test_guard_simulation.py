"""A simulated guard is the guard itself: compiled, and step by step with the same random
numbers.
"""

import numpy as np
import pytest

import surefoot as sf

COIN = sf.Outcomes.coin
SKEWED = sf.Outcomes([-1.0, 0.25, 2.0], [0.2, 0.3, 0.5], delays=[40, 0, 3], lost=[0.1, 0.0, 0.0])
BETTER = sf.Outcomes([-1.0, 0.25, 2.0], [0.1, 0.2, 0.7], delays=[25, 0, 0], lost=[0.3, 0.0, 0.01])


def step_by_step(guard, laws, episodes, seed, logged, admitted):
    """The same run by the methods of the guard, in plain Python."""
    rng = np.random.default_rng(seed)
    names = list(laws)
    before = None
    if logged:
        law = laws["baseline"]
        place = np.searchsorted(np.cumsum(law.probabilities)[:-1], rng.random(logged), side="right")
        before = law.returns[place].tolist()
    state, plan, due = guard.begin(logged=before, run="r"), None, {}
    for t in range(episodes + 1):
        for ticket, ret in due.pop(t, []):
            state = guard.settle(state, ticket, ret)
        if t == episodes:
            return state
        for name in names[1:]:
            if admitted.get(name, 0) == t:
                state = guard.admit(state, name)
        plan = guard.next_plan(state, plan)
        state, ticket = guard.draw(state, plan, rng)
        law = laws[ticket.policy]
        v = int(np.searchsorted(np.cumsum(law.probabilities)[:-1], rng.random(), side="right"))
        if rng.random() >= law.lost[v]:
            due.setdefault(t + 1 + int(law.delays[v]), []).append((ticket, float(law.returns[v])))
    raise AssertionError


CASES = {
    "absolute": (sf.Guard(floor=0.5, low=0.0, high=1.0), {"c": COIN(0.9)}, {}, 60, COIN(0.8)),
    "relative": (
        sf.Guard(floor=sf.Relative(0.25), low=0.0, high=1.0, stages=()),
        {"c": COIN(0.9), "d": COIN(0.1)},
        {"d": 450},
        200,
        COIN(0.6),
    ),
    "below, late and lost": (
        sf.Guard(floor=sf.Below(0.5), low=-1.0, high=2.0, stages=(0.05, (0.5, 30), 1.0)),
        {"c": BETTER, "d": SKEWED},
        {},
        10,
        SKEWED,
    ),
    "relative in units": (
        sf.Guard(floor=sf.Relative(0.3), low=5.0, high=15.0, delta=0.2),
        {"c": sf.Outcomes([5.0, 9.5, 15.0], [0.1, 0.4, 0.5], delays=[30, 2, 0])},
        {"c": 50},
        0,
        sf.Outcomes([6.0, 11.0], [0.5, 0.5], delays=7),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_compiled_and_step_by_step(case, monkeypatch):
    """The same tickets, returns, admissions, withdrawals and bounds, to the last bit of what is
    stored.

    A simulation has one generator for all, and its coins are numbers of it: here `draw` is given
    these.
    """
    monkeypatch.setattr("surefoot.guard.guard.coin_generator", lambda rng, what, number: rng)
    guard, candidates, admitted, logged, baseline = CASES[case]
    run = sf.simulate_guard(guard, baseline, candidates, 700, 3, logged=logged, admitted=admitted)
    state = step_by_step(guard, {"baseline": baseline, **candidates}, 700, 3, logged, admitted)
    assert run.state == state
    assert run.played["c"] > 60 and run.off_baseline > 0.08
    plan = guard.plan(state)
    assert plan.explain() == guard.plan(run.state).explain() and run.promise == plan.promise
    assert run.violations == 0 and run.worst >= run.floor - 1e-12
    if case == "relative":
        assert run.withdrawn["d"] is not None and run.adopted["c"] is not None
        assert run.reached("c", 1.0) == run.adopted["c"] and run.reached("c", 0.2) == 0
        assert run.reached("d", 0.9) is None


def test_another_seed_is_another_run_and_the_same_one_is_the_same():
    guard, candidates, *_ = CASES["absolute"]
    runs = [sf.simulate_guard(guard, COIN(0.8), candidates, 300, seed) for seed in (1, 1, 2)]
    assert runs[0].state == runs[1].state != runs[2].state
    assert "300 episodes" in repr(runs[0])


def test_what_is_refused(assert_refused):
    guard = sf.Guard(floor=0.5, low=0.0, high=1.0)
    assert_refused(
        sf.InvalidModel,
        "outside the guard's range",
        sf.simulate_guard,
        guard,
        sf.Outcomes([2.0], [1.0]),
        COIN(0.5),
        10,
        0,
    )
    assert_refused(
        sf.InvalidSetting,
        "admitted",
        sf.simulate_guard,
        guard,
        COIN(0.9),
        {"a": COIN(0.5), "b": COIN(0.5)},
        10,
        0,
        admitted={"a": 5},
    )
    assert_refused(sf.InvalidModel, "probabilities", sf.Outcomes, [0.0, 1.0], [0.5, 0.6])
    assert_refused(sf.InvalidModel, "expected as many", sf.Outcomes, [0.0, 1.0], [1.0])
    assert_refused(sf.InvalidModel, "whole numbers", COIN, 0.5, delays=-1)
    assert_refused(sf.InvalidModel, "one for each", COIN, 0.5, lost=[0.1, 0.1, 0.1])
    assert_refused(sf.InvalidModel, "No Beta", sf.Outcomes.beta, 0.5, 0.6)
    with pytest.warns(sf.FloorAboveBaseline):
        sf.simulate_guard(guard, COIN(0.4), COIN(0.5), 10, 0)
    beta = sf.Outcomes.beta(0.7, 0.15)
    assert beta.mean == pytest.approx(0.7, abs=1e-5)
    assert np.sqrt(beta.probabilities @ (beta.returns - beta.mean) ** 2) == pytest.approx(
        0.15, abs=1e-4
    )
