"""A number that rounding puts outside its range is in it, and proves no more than exact arithmetic
does.

Three rewards of 0.1, each paid with probability 4/5: all 125 equally likely episodes are listed, so
the mean return is known, 0.24. Of the 125 returns 64 are 0.1 + 0.1 + 0.1, which is above 0.3 in
floats. Exact arithmetic is a guard whose returns are whole numbers of tenths (values are compared
as parts of the range). The wrong rule beside the right one is a range without slack.
"""

import itertools
import math
from fractions import Fraction

import gymnasium
import numpy as np
import pytest

import surefoot as sf
from surefoot.base import nodes, ranges

PAID = list(itertools.product([1, 1, 1, 1, 0], repeat=3))  # in tenths
TENTHS = [sum(paid) for paid in PAID]
RETURNS = [sum(0.1 * x for x in paid) for paid in PAID]
TRUE_MEAN = float(Fraction(sum(TENTHS), 10 * len(TENTHS)))
OUTSIDE = sum(ret > 0.3 for ret in RETURNS)
SINGLE = float(np.float32(0.1))  # above 0.1
FAR = 0.1 * (1.0 + 1e-6)  # no rounding error
FLOORS = {"absolute": 0.1, "share": sf.Relative(0.1), "amount": sf.Below(0.05)}


def settled(guard, returns):
    """The state after these returns of the baseline, and how many were refused."""
    state, refused = guard.begin(run="ulp"), 0
    for ret in returns:
        state, ticket = guard.dispatch(state, 0)
        try:
            state = guard.settle(state, ticket, ret)
        except sf.InvalidEpisode:
            refused += 1
    return state, refused


def strict(monkeypatch):
    """The wrong rule: a range without slack."""
    monkeypatch.setattr(ranges, "SLACK", 0.0)


def counted(state):
    """The mean return as it is counted, as a part of the range, exactly."""
    weights = state.policies[0].settled.tolist()[: len(nodes.NODES)]
    total = sum(n * node for n, node in zip(weights, nodes.NODES, strict=True))
    return Fraction(total, sum(weights) * nodes.FINE)


def mean_shown(guard, state):
    """The mean that `explain` shows of the baseline."""
    return float(
        guard.plan(state).explain().split("mean ")[1].split(",")[0].split(";")[0].split("\n")[0]
    )


def test_the_truth_is_known():
    assert (len(PAID), OUTSIDE) == (125, 64)
    assert pytest.approx(0.24) == TRUE_MEAN
    assert max(RETURNS) == 0.30000000000000004


@pytest.mark.parametrize("floor", FLOORS.values(), ids=FLOORS)
def test_returns_that_are_sums_are_all_counted(floor):
    guard = sf.Guard(floor=floor, low=0.0, high=0.3)
    state, refused = settled(guard, RETURNS)
    assert (refused, state.alarm, state.open_tickets) == (0, "", 0)
    assert mean_shown(guard, state) == pytest.approx(TRUE_MEAN, abs=1e-4)
    again = guard.settle(state, RETURNS.index(max(RETURNS)), 0.1 + 0.1 + 0.1)
    assert again is state  # the same return once more


def test_without_slack_half_of_them_are_refused_and_the_mean_is_wrong(monkeypatch):
    strict(monkeypatch)
    guard = sf.Guard(floor=0.1, low=0.0, high=0.3)
    state, refused = settled(guard, RETURNS)
    assert refused == OUTSIDE
    kept = [ret for ret in RETURNS if ret <= 0.3]
    shown = mean_shown(guard, state)
    assert shown == pytest.approx(math.fsum(kept) / len(kept), abs=1e-4)
    assert shown < TRUE_MEAN - 0.05


@pytest.mark.parametrize("floor", [FLOORS["share"], FLOORS["amount"]], ids=["share", "amount"])
def test_without_slack_a_relative_guard_is_frozen_for_ever(monkeypatch, floor):
    strict(monkeypatch)
    state, _ = settled(sf.Guard(floor=floor, low=0.0, high=0.3), RETURNS)
    assert "outside the declared range 0 to 0.3" in state.alarm


@pytest.mark.parametrize("sign", [1, -1], ids=["above", "below"])
def test_nothing_is_proved_that_exact_arithmetic_does_not_prove(sign):
    """Also of all returns at one end, where clipping decides everything; and hardly less is
    proved.
    """
    span = (0, 3) if sign > 0 else (-3, 0)
    exact = sf.Guard(floor=span[0], low=span[0], high=span[1])
    rounded = sf.Guard(floor=0.1 * span[0], low=span[0] / 10, high=span[1] / 10)
    for tenths in (TENTHS, [3] * 300):
        whole = exact.begin([sign * x for x in tenths])
        sums = rounded.begin([sign * sum([0.1] * x) for x in tenths])
        part = (
            Fraction(sum(tenths), 3 * len(tenths))
            if sign > 0
            else 1 - Fraction(sum(tenths), 3 * len(tenths))
        )
        assert part - Fraction(nodes.LOST) <= counted(sums) <= part
        (lower, upper), (below, above) = (
            (plan.bounds[0].lower.proved.value, plan.bounds[0].upper.proved.value)
            for plan in (exact.plan(whole), rounded.plan(sums))
        )
        assert lower - 1e-6 < below <= lower
        assert upper - 1e-6 < above <= upper + ranges.SLACK


def test_what_is_outside_by_more_is_no_rounding_error():
    guard = sf.Guard(floor=sf.Relative(0.1), low=0.0, high=0.1)
    assert settled(guard, [SINGLE])[0].alarm == ""
    assert "outside the declared range" in settled(guard, [FAR])[0].alarm
    assert "outside the declared range" in settled(guard, [-1e-6 * 0.1])[0].alarm
    for given in (FAR, -1e-7, math.nan, math.inf):
        with pytest.raises(sf.SurefootError, match=r"outside the declared range|NaN"):
            guard.begin(logged=[given])
    assert guard.begin(logged=[SINGLE]).policies[0].heard == 1
    assert sf.Guard(floor=0.1 + 0.1 + 0.1, low=0.0, high=0.3).floor == 0.3
    with pytest.raises(sf.InvalidSetting, match="expected a number in the range"):
        sf.Guard(floor=FAR, low=0.0, high=0.1)


# ---- float32, wherever rewards come in


def problem(**more):
    return sf.Problem(np.zeros((1, 2)), H=3, units=sf.Units(0.0, 0.1), unknown=True, **more)


def learnt(reward):
    """The sums that a learner counts of an episode with these rewards."""
    learner = sf.Learner(sf.EpsMix(problem(), sf.uniform(3, 1, 2), 0.01), seed=0)
    learner.begin()
    for _ in range(3):
        learner.act(0)
        learner.observe(0, reward)
    learner.end()
    return learner.counts.x_sa.sum()


def of_episode(reward):
    return (
        sf.Counts.zeros(problem())
        .add(sf.Episode.of(problem(), [0] * 4, [0] * 3, [reward] * 3))
        .x_sa.sum()
    )


def of_bare_episodes(reward):
    return sf.Counts.from_log(problem(), [sf.Episode([0] * 4, [0] * 3, [reward] * 3)]).x_sa.sum()


def of_log(reward, folder, kind="csv"):
    rows = [[1, h, "a", "x", reward, "a"] for h in range(3)]
    names = ["episode", "step", "state", "action", "reward", "next_state"]
    if kind == "csv":
        path = folder / "log.csv"
        path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    else:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        columns["reward"] = arrow.array(columns["reward"], arrow.float32())
        path = folder / "log.parquet"
        parquet.write_table(arrow.table(columns), path)
    log = sf.count_log(path, reward_range=(0.0, 0.1), states="as logged")
    return log.problem().forget(rewards=True).units, log.counts.x_sa.sum()


WAYS = {"learner": learnt, "Episode.of": of_episode, "bare episodes": of_bare_episodes}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    "reward", [SINGLE, np.float32(0.1), 0.1], ids=["float", "float32", "exact"]
)
def test_a_reward_of_float32_counts_as_the_highest(way, reward):
    assert way(reward) == 3 * 2**20
    with pytest.raises(sf.InvalidEpisode, match="outside the declared range"):
        way(FAR)
    with pytest.raises(sf.InvalidEpisode, match="outside the declared range"):
        way(-1e-7)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_without_slack_such_a_reward_is_refused(way, monkeypatch):
    strict(monkeypatch)
    with pytest.raises(sf.InvalidEpisode, match="outside the declared range"):
        way(SINGLE)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_log_of_float32_is_counted(kind, tmp_path, monkeypatch):
    assert of_log(SINGLE, tmp_path, kind)[1] == 3 * 2**20
    with pytest.raises(sf.InvalidLog, match="outside the declared range"):
        of_log(FAR, tmp_path, kind)
    strict(monkeypatch)
    with pytest.raises(sf.InvalidLog, match="outside the declared range"):
        of_log(SINGLE, tmp_path, kind)


def test_tables_of_float32_are_read():
    table = np.full((1, 2), SINGLE)
    assert sf.Problem(table, H=3, units=sf.Units(0.0, 0.1)).highest == 3 * 0.1
    with pytest.raises(sf.InvalidModel, match="outside the units' range"):
        sf.Problem(np.full((1, 2), FAR), H=3, units=sf.Units(0.0, 0.1))


# ---- environments


class Pays(gymnasium.Env):
    """Ten steps that all pay the same."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, reward):
        self.reward = reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_number = 0
        return 0, {}

    def step(self, action):
        self.step_number += 1
        return 0, self.reward, self.step_number == 10, False, {}


@pytest.mark.parametrize(
    "reward", [0.1, np.float32(0.1), np.float32(0.3)], ids=["float", "float32", "0.3"]
)
@pytest.mark.parametrize("floor", [0.5, sf.Relative(0.1)], ids=["absolute", "relative"])
def test_a_guarded_environment_that_pays_the_most(reward, floor):
    high = 10 * round(float(reward), 2)
    guard = sf.Guard(floor=floor, low=0.0, high=high)
    watchdog = sf.Watchdog() if floor == 0.5 else None
    given = {
        "baseline": lambda o: 0,
        "candidate": lambda o: 1,
        "episodes": 30,
        "seed": 0,
        "progress": False,
    }
    run = sf.guard_env(Pays(reward), guard, **given, watchdog=watchdog)
    assert (run.alarm, run.refused, run.failed) == ("", 0, 0)
    assert run.mean_return["baseline"] == pytest.approx(high, rel=1e-6)
    above = Pays(float(reward) + 0.01)  # control
    assert (
        sf.guard_env(above, guard, **given).refused > 0
        or "outside" in sf.guard_env(above, guard, **given).alarm
    )


def test_simulated_returns_are_the_same():
    guard = sf.Guard(floor=0.1, low=0.0, high=0.3)
    law = sf.Outcomes(RETURNS, np.full(len(RETURNS), 1 / len(RETURNS)))
    run = sf.simulate_guard(guard, law, law, episodes=50, seed=0)
    assert np.nanmax(run.state.tickets.columns.ret) == 0.3
    with pytest.raises(sf.InvalidModel, match="outside the guard's range"):
        sf.simulate_guard(guard, sf.Outcomes([0.3001], [1.0]), law, episodes=5, seed=0)


@pytest.mark.parametrize("low, high", [(20.3, 25.0), (98.6, 99.9), (-25.0, -20.3)])
def test_rounding_far_from_zero_is_larger_than_a_part_of_a_narrow_range(low, high, monkeypatch):
    """The ends of a range, rounded to float32, are in it; a thousandth of its width beyond them is
    not. The control: with slack by the width alone one end froze the guard.
    """
    guard = sf.Guard(floor=sf.Below(0.2), low=low, high=high)
    for end in (low, high):
        state, refused = settled(guard, [float(np.float32(end))] * 3)
        assert (refused, state.alarm) == (0, "")
    beyond = low - 1.1e-3 * (high - low)
    state, _ = settled(guard, [beyond])
    assert "outside the declared range" in state.alarm
    monkeypatch.setattr(ranges, "MOST_WIDTHS", 0.0)
    frozen = [
        bool(
            settled(sf.Guard(floor=sf.Below(0.2), low=low, high=high), [float(np.float32(end))])[
                0
            ].alarm
        )
        for end in (low, high)
    ]
    assert any(frozen)
