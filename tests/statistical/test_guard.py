"""Does a guard keep its promise, with returns that are late, lost, many in flight; and do faulty
guards break theirs?

Runs have fixed seeds. A run fails if the true coin-averaged value of ANY of its episodes is below
the floor. Where the promise is delta = 0.001, no run of n may fail: a false alarm has probability
at most n/1000 by the promise itself, and far less in truth (a bound fails less often than its
level). A guard that fails in a fraction q of runs is missed with (1-q)^n: q = 0.2 % and n = 3,000
give 0.25 %; the quick versions, n = 48, miss only faults as gross as the controls (q > 20 %: 2e-5).
Where delta = 0.2, an exact binomial test at 0.1 %: that is the false alarm; a true rate of 40 % is
missed with probability 1 % in 150 runs, a rate of 25 % with 6 % in 1,500.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

import surefoot as sf

COIN, BETA = sf.Outcomes.coin, sf.Outcomes.beta
LATE = {"delays": [300, 0]}  # failures are reported 300 episodes late, successes at once
LOST = {"lost": [0.5, 0.0]}  # half of the failures are never reported
BOTH = {"delays": [150, 20], "lost": [0.3, 0.01]}


def failed(runs):
    return sum(run.violations > 0 for run in runs)


# name: floor, baseline, candidate, episodes, logged returns
SAFE = {
    "late failures": (0.5, COIN(0.7), COIN(0.65, **LATE), 1500, 1000),
    "lost failures": (0.5, COIN(0.7), COIN(0.75, **LOST), 2000, 1000),
    "late and lost, both": (sf.Relative(0.3), COIN(0.7, **BOTH), COIN(0.75, **BOTH), 2500, 0),
    "400 in flight": (sf.Relative(0.3), COIN(0.7, delays=400), COIN(0.75, delays=400), 4000, 0),
    "smooth": (sf.Below(0.1), BETA(0.7, 0.15), BETA(0.68, 0.15), 1500, 0),
    "rare conversions": (sf.Below(0.05), COIN(0.05), COIN(0.06, delays=[0, 50]), 4000, 0),
}


def safe_runs(case, n, seed=0):
    floor, baseline, candidate, episodes, logged = SAFE[case]
    guard = sf.Guard(floor=floor, low=0.0, high=1.0, delta=0.001)
    return [
        sf.simulate_guard(guard, baseline, candidate, episodes, seed + s, logged=logged)
        for s in range(n)
    ]


@pytest.mark.parametrize("case", SAFE)
def test_no_run_is_below_the_floor_quickly(case):
    """8 runs each, 48 in all. A false alarm has probability 0.048 at most by the promise;
    misses: above.
    """
    runs = safe_runs(case, 8)
    assert failed(runs) == 0
    assert np.mean([run.off_baseline for run in runs]) >= 0.2  # it was not kept by doing nothing


@pytest.mark.full
@pytest.mark.parametrize("case", SAFE)
def test_no_run_is_below_the_floor(case):
    """500 runs each, 3,000 in all, at delta 0.001. False alarms and misses: above."""
    runs = safe_runs(case, 500, seed=1000)
    assert failed(runs) == 0
    assert np.mean([run.off_baseline for run in runs]) >= 0.2


# V_c is just below the floor: every adoption is a failure.
TEMPTING = {
    "absolute": (0.65, COIN(0.7), COIN(0.645), 3000, 2000),
    "absolute, late": (0.65, COIN(0.7), COIN(0.645, delays=[200, 0]), 3000, 2000),
    "relative": (sf.Relative(0.1), COIN(0.7), COIN(0.625), 3000, 0),
    "relative, both": (
        sf.Relative(0.1),
        COIN(0.7, delays=[0, 150]),
        COIN(0.625, delays=[150, 0]),
        3000,
        0,
    ),
}


def tempted(case, n, seed=0):
    floor, baseline, candidate, episodes, logged = TEMPTING[case]
    guard = sf.Guard(floor=floor, low=0.0, high=1.0, delta=0.2, stages=())
    return failed(
        [
            sf.simulate_guard(guard, baseline, candidate, episodes, seed + s, logged=logged)
            for s in range(n)
        ]
    )


def test_a_tempting_candidate_is_adopted_no_more_often_than_promised_quickly():
    """150 runs. False alarm 0.1 %; a true rate of 40 % is missed with probability 1 %."""
    assert binomtest(tempted("relative", 150), 150, 0.2, alternative="greater").pvalue > 0.001


@pytest.mark.full
@pytest.mark.parametrize("case", TEMPTING)
def test_a_tempting_candidate_is_adopted_no_more_often_than_promised(case):
    """1,500 runs. False alarm 0.1 %; a true rate of 25 % is missed with probability 6 %."""
    found = tempted(case, 1500, seed=5000)
    assert binomtest(found, 1500, 0.2, alternative="greater").pvalue > 0.001
    assert found > 0  # the test looks where failures happen


# ---- controls: each must fall below the floor in most runs, where the guard itself does not


def played(guard, laws, episodes, seed, rule, logged=1000):
    """A run in plain Python: is some episode's true coin-averaged value below the floor?

    `rule` says what is done with a return: "ours", or one of the faults.
    """
    rng = np.random.default_rng(seed)
    base = laws["baseline"]
    before = rng.choice(base.returns, logged, p=base.probabilities).tolist() if logged else None
    state = guard.admit(guard.begin(logged=before, run=f"run {seed}"), "c")
    floor, plan, due = float(guard.rule.level(base.mean)), None, {}
    for t in range(episodes):
        for recorded, p, ret in due.pop(t, []):
            if recorded is None:  # counted when it arrives
                state, late = guard.dispatch(state, p)
            state = guard.settle(state, late if recorded is None else recorded, ret)
        plan = guard.next_plan(state, plan)
        if sum(share * laws[name].mean for name, share in plan.share.items()) < floor - 1e-12:
            return True
        after, ticket = guard.draw(state, plan, rng)
        law = laws[ticket.policy]
        v = rng.choice(len(law.returns), p=law.probabilities)
        p, ret, lost = after.place(ticket.policy), float(law.returns[v]), rng.random() < law.lost[v]
        hidden = rule == "on arrival" or (rule == "coin not recorded" and lost)
        state = state if hidden else after
        if rule == "lowest in U" and p == 0 and (lost or law.delays[v]):
            state = guard.settle(state, ticket, guard.low)
        elif not lost:
            due.setdefault(t + 1 + int(law.delays[v]), []).append(
                (None if hidden else ticket, p, ret)
            )
    return False


FAULTS = {
    "on arrival": (0.5, COIN(0.7), COIN(0.4, delays=[400, 0]), 300, 1000),
    "coin not recorded": (0.5, COIN(0.7), COIN(0.4, lost=[0.9, 0.0]), 300, 1000),
    "lowest in U": (sf.Relative(0.2), COIN(0.7, lost=[0.0, 0.7]), COIN(0.5), 400, 0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_guards_fall_below_the_floor(fault):
    """At delta 0.05, 4 runs each: all fail with the fault, at most one without (in 200 runs 2 do).

    False alarm of the second part: 1.4 % at most by the promise; misses: a fault that does not
    break nearly every run is none of these.
    """
    floor, baseline, candidate, episodes, logged = FAULTS[fault]
    guard = sf.Guard(floor=floor, low=0.0, high=1.0, stages=())
    laws = {"baseline": baseline, "c": candidate}
    assert sum(played(guard, laws, episodes, s, fault, logged) for s in range(4)) == 4
    assert sum(played(guard, laws, episodes, s, "ours", logged) for s in range(4)) <= 1


def retrained(seed, kept):
    """A good model is adopted, then trained again, for the worse: is its name kept, or is it
    another candidate?
    """
    guard = sf.Guard(floor=0.5, low=0.0, high=1.0, stages=())
    rng = np.random.default_rng(seed)
    state = guard.admit(
        guard.begin(logged=(rng.random(1000) < 0.7).astype(float), run=f"run {seed}"), "model"
    )
    values, plan = {"baseline": 0.7, "model": 0.9, "model-2": 0.2}, None
    for t in range(300):
        plan = guard.next_plan(state, plan)
        if t == 150:
            assert plan.rho == 1.0
            values["model"] = 0.2
            if not kept:
                state = guard.admit(guard.withdraw(state, "model"), "model-2")
                plan = guard.plan(state)
        if sum(share * values[name] for name, share in plan.share.items()) < 0.5 - 1e-12:
            return True
        state, ticket = guard.draw(state, plan, rng)
        state = guard.settle(state, ticket, float(rng.random() < values[ticket.policy]))
    return False


def test_returns_of_a_model_that_was_trained_again_must_not_be_kept():
    """3 runs each way: a false alarm has probability 0.15 at most by the promise; the fault is
    never missed.
    """
    assert [retrained(seed, kept=True) for seed in range(3)] == [True] * 3
    assert [retrained(seed, kept=False) for seed in range(3)] == [False] * 3


@pytest.mark.parametrize("clip", [True, False])
def test_returns_below_the_range_must_not_be_clipped(clip):
    """A candidate that pays 1, or now and then -3, is worth 0.2; counted as 0 or 1 it is worth 0.8.

    With clipping it is adopted for good, in 3 of 3 runs; without it the guard is frozen, with an
    alarm. (Until the first -3 nothing protects anybody: the declared range is a premise.) False
    alarm: 3 x 0.8^200; a miss: as rare.
    """
    for seed in range(3):
        guard = sf.Guard(floor=0.5, low=0.0, high=1.0, stages=())
        rng = np.random.default_rng(seed)
        state, plan = (
            guard.admit(
                guard.begin(logged=(rng.random(1000) < 0.7).astype(float), run=f"run {seed}"), "c"
            ),
            None,
        )
        for _ in range(250):
            plan = guard.next_plan(state, plan)
            state, ticket = guard.draw(state, plan, rng)
            ret = (
                float(rng.random() < 0.7)
                if ticket.policy == "baseline"
                else float(rng.choice([-3.0, 1.0], p=[0.2, 0.8]))
            )
            state = guard.settle(state, ticket, max(ret, 0.0) if clip else ret)
        assert guard.plan(state).rho == (1.0 if clip else 0.0)
        assert bool(state.alarm) != clip
