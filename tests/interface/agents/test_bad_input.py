"""Every refusal is one sentence with the index, the expectation and the remedy. Nothing is
repaired or clipped.
"""

import math
import tracemalloc

import numpy as np
import pytest

import surefoot as sf
from process import python


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(3), size=(2, 3, 2)), rng.random((2, 3, 2))


def spoil(array, index, value):
    out = np.array(array, dtype=float)
    out[index] = value
    return out


def test_worlds(parts, assert_refused):
    P, r = parts
    refused = [
        (
            dict(P=spoil(P, (1, 0, 1), [0.5, 0.2, 0.24])),
            r"P\[1, 0, 1\] sums to 0.94, expected 1 within 1e-09",
        ),
        (
            dict(P=spoil(P, (0, 2, 1), [1.2, -0.2, 0.0])),
            r"P\[0, 2, 1, 1\] is -0.2, expected a probability >= 0",
        ),
        (
            dict(P=spoil(P, (0, 2, 1, 0), math.nan)),
            r"P\[0, 2, 1, 0\] is nan, expected a finite number",
        ),
        (
            dict(r=spoil(r, (1, 2, 0), 1.5)),
            r"r\[1, 2, 0\] is 1.5, expected a reward in \[0, 1\].*declare their",
        ),
        (
            dict(r=spoil(r, (1, 2, 0), -0.1)),
            r"r\[1, 2, 0\] is -0.1, expected a reward in \[0, 1\]",
        ),
        (dict(r=spoil(r, (1, 2, 0), math.nan)), r"r\[1, 2, 0\] is nan"),
        (dict(r=spoil(r, (1, 2, 0), math.inf)), r"r\[1, 2, 0\] is inf"),
        (dict(r=r[:1]), r"r has 1 steps"),
        (dict(r=r[:, :2]), r"r is for S = 2, A = 2, but P is for S = 3, A = 2"),
        (dict(P=P[..., :2]), r"3 states, but rows over 2 next states"),
        (dict(P=P[0], r=r[0]), r"give their number with H="),
        (dict(P=P[0, 0]), r"P has shape \(2, 3\), expected \(H, S, A, S\)"),
        (dict(s1=3), r"s1 is 3, expected a state in 0..2"),
        (dict(s1=-1), r"s1 is -1"),
        (dict(s1=0.5), r"s1 is 0.5, expected an integer"),
        (dict(H=5), r"H is 5, but P has 2 steps"),
        (dict(P=np.array([["a"]])), r"dtype"),
        (dict(P=[[1.0], [0.5, 0.5]]), r"P is ragged"),
        (dict(P=np.zeros((0, 3, 2, 3))), r"at least one step"),
    ]
    for arguments, message in refused:
        assert_refused(sf.InvalidModel, message, sf.TabularMDP, **{"P": P, "r": r} | arguments)


def test_small_errors_of_rounding_are_accepted_and_larger_ones_are_not(parts, assert_refused):
    P, r = parts
    sf.TabularMDP(P * (1 + 5e-10), r)
    assert_refused(sf.InvalidModel, "sums to", sf.TabularMDP, P * (1 + 5e-9), r)
    sf.TabularMDP(P, np.ones_like(r))
    assert sf.TabularMDP(P, r, H=np.int64(2)).H == 2
    assert_refused(
        sf.InvalidModel,
        "expected a reward",
        sf.TabularMDP,
        P,
        np.ones_like(r) * np.nextafter(1.0, 2.0),
    )


def test_policies(parts, assert_refused):
    world = sf.TabularMDP(*parts)
    good = sf.uniform(2, 3, 2)
    refused = [
        (good[0], r"shape \(3, 2\), expected \(H, S, A\) = \(2, 3, 2\).*np.broadcast_to"),
        (np.zeros((2, 3)), r"shape \(2, 3\), expected .*np.eye\(A\)\[actions\]"),
        (sf.uniform(2, 3, 3), r"shape \(2, 3, 3\), expected"),
        (spoil(good, (1, 2), [0.5, 0.4]), r"\[1, 2\] sums to 0.9, expected 1"),
        (spoil(good, (1, 2), [1.5, -0.5]), r"\[1, 2, 1\] is -0.5, expected a probability"),
        (spoil(good, (0, 0, 0), math.nan), r"\[0, 0, 0\] is nan"),
        (good.astype(str), r"dtype"),
    ]
    for policy, message in refused:
        assert_refused(sf.InvalidPolicy, message, sf.policy_value, world, policy)
        assert_refused(
            sf.InvalidPolicy, r"baseline.*" + message, sf.StepMix.paper, world.problem, policy, 0.1
        )
    assert_refused(sf.InvalidPolicy, "shapes", sf.step_mixture, good, sf.uniform(2, 3, 3), 0.5)
    for rho in (-0.1, 1.1, math.nan):
        assert_refused(sf.InvalidSetting, "rho", sf.step_mixture, good, good, rho)
    assert_refused(sf.InvalidSetting, "h0 is 3", sf.splice, good, good, 3)
    assert_refused(sf.InvalidSetting, "eta", sf.boltzmann, sf.solve(world).Q, -1.0)
    assert_refused(sf.InvalidPolicy, r"Q has shape \(3,\)", sf.greedy, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix, sf.StepNoMix])
def test_floor_and_delta(parts, kind, assert_refused):
    problem = sf.TabularMDP(*parts).problem
    baseline = sf.uniform(2, 3, 2)
    for floor, message in (
        (-0.01, "no policy can miss it"),
        (2.01, "returns lie in 0..2 per episode: no policy can reach it"),
        (math.nan, "floor is nan"),
        ("2", "expected a number"),
    ):
        assert_refused(sf.InvalidSetting, message, kind, problem, baseline, floor)
    for floor in (0.0, 2.0, 1):
        assert kind(problem, baseline, floor).floor == floor
    for delta in (0.0, 1.0, -0.1, 1.1, math.nan, "0.1", None):
        assert_refused(
            sf.InvalidSetting,
            r"delta is .*strictly between 0 and 1",
            kind,
            problem,
            baseline,
            0.5,
            delta=delta,
        )
    assert_refused(sf.InvalidSetting, "bounds is", kind, problem, baseline, 0.5, bounds="bernstein")
    assert_refused(sf.InvalidCounts, "stationary=True", kind, problem, baseline, 0.5, pooled=True)
    for scale in (-1.0, math.nan, math.inf):
        assert_refused(sf.InvalidSetting, "scale is", sf.Bernstein, scale)


def test_counts(assert_refused):
    good = np.zeros((2, 3, 2, 3), dtype=int)
    refused = [
        (spoil(good, (1, 2, 0, 1), -1), r"n_sas\[1, 2, 0, 1\] is -1.*expected a count"),
        (spoil(good, (1, 2, 0, 1), 0.5), r"n_sas\[1, 2, 0, 1\] is 0.5, expected a whole number"),
        (spoil(good, (1, 2, 0, 1), math.nan), r"is nan, expected a whole number"),
        (spoil(good, (1, 2, 0, 1), 2.0**60), r"expected a count in 0..2\^53"),
        (good[0, 0], r"shape \(2, 3\), expected \(H, S, A, S\)"),
        (np.zeros((2, 3, 2, 4), dtype=int), r"shape \(2, 3, 2, 4\), expected"),
        (good.astype(bool), "n_sas has dtype bool"),
        (good.astype(str), "dtype"),
    ]
    for n_sas, message in refused:
        assert_refused(sf.InvalidCounts, message, sf.Counts, n_sas)
    assert_refused(
        sf.InvalidCounts,
        "stationary=True",
        sf.Model,
        sf.Problem(np.full((3, 2, 2), 0.5)),
        sf.Counts(np.ones((2, 2, 2), dtype=int), H=3),
        0.1,
    )
    assert_refused(
        sf.InvalidCounts,
        "expected \\(3, 2, 2, 2\\)",
        sf.Model,
        sf.Problem(np.full((3, 2, 2), 0.5)),
        sf.Counts(good),
        0.1,
    )
    assert_refused(
        sf.InvalidCounts,
        "do not belong together",
        sf.Counts(good).merge,
        sf.Counts(np.zeros((1, 3, 2, 3), dtype=int)),
    )


def test_episodes_leave_counts_unchanged_when_refused(assert_refused):
    counts = sf.Counts(np.zeros((2, 3, 2, 3), dtype=int))
    before = counts.copy()
    refused = [
        (sf.Episode([0, 1], [0, 1]), "2 states and 2 actions, expected H\\+1 states"),
        (sf.Episode([], []), "expected H\\+1 states"),
        (sf.Episode([0, 1, 2], [0.0, 1.0]), "dtype float64, expected integers"),
        (sf.Episode([[0, 1, 2]], [0, 1]), "expected a plain list"),
        (sf.Episode([0, 1, 2], [0, 1], [0.5]), "one per action"),
        (sf.Episode([0, 1, 2], [0, 1], [0.5, math.nan]), r"rewards\[1\] is nan"),
        (
            sf.Episode([0, 1, 3], [0, 1]),
            r"states\[2\] is 3, expected one of 0..2. The episode was not counted",
        ),
        (sf.Episode([-1, 1, 2], [0, 1]), r"states\[0\] is -1"),
        (sf.Episode([0, 1, 2], [0, 2]), r"actions\[1\] is 2, expected one of 0..1"),
        (sf.Episode([0, 1, 2, 0], [0, 1, 0]), "3 steps, these counts have 2"),
    ]
    for episode, message in refused:
        assert_refused(sf.InvalidEpisode, message, counts.add, episode)
        assert counts == before
    counts.add(sf.Episode([0, 1, 2], [0, 1]))
    assert counts.n_sas.sum() == 2


def test_odd_types_are_refused_in_words(parts, assert_refused):
    """Each of these was once accepted silently, or ended in an error that was not ours."""
    P, r = parts
    world = sf.TabularMDP(P, r)
    baseline = sf.uniform(2, 3, 2)
    masked = np.ma.masked_array(P, mask=P > 0.9)
    refused = [
        (lambda: sf.TabularMDP(masked, r), sf.InvalidModel, "masked array"),
        (lambda: sf.TabularMDP(P, r, H=2.0), sf.InvalidModel, "H is 2.0, expected an integer"),
        (
            lambda: sf.TabularMDP(P[0], r[0], H=10**30),
            sf.InvalidModel,
            "expected at most 1000000 steps",
        ),
        (
            lambda: sf.TabularMDP(P[0], spoil(r[0], (2, 1), math.nan), H=3),
            sf.InvalidModel,
            r"r\[2, 1\] is nan",
        ),
        (lambda: sf.Problem(0.5), sf.InvalidModel, r"shape \(\)"),
        (
            lambda: sf.random_mdp(10**6, 10, 10, seed=0),
            sf.InvalidModel,
            "numbers, expected at most",
        ),
        (
            lambda: sf.StepMix.paper(world, baseline, 0.5),
            sf.InvalidSetting,
            "found a TabularMDP|is a TabularMDP, expected a Problem",
        ),
        (lambda: sf.Bernstein(True), sf.InvalidSetting, "scale is True"),
        (lambda: sf.step_mixture(baseline, baseline, "half"), sf.InvalidSetting, "rho is 'half'"),
        (lambda: sf.boltzmann([[[1e308, -1e308]]], 0.0), sf.InvalidPolicy, "as large as 1e\\+308"),
        (lambda: sf.Counts([[1], [1, 2]]), sf.InvalidCounts, "ragged"),
        (
            lambda: sf.Counts.zeros(world.problem).add(sf.Episode([[0], [1, 2]], [0])),
            sf.InvalidEpisode,
            "ragged",
        ),
        (
            lambda: sf.play(world, np.zeros((2, 3, 2)), np.random.default_rng(0)),
            sf.InvalidPolicy,
            "sums to 0",
        ),
        (lambda: sf.solve(world.problem), sf.InvalidModel, "Expected a TabularMDP, found Problem"),
        (lambda: sf.simulate(world, "stepmix", 5, seed=0), sf.InvalidSetting, "Expected an agent"),
        (
            lambda: sf.BPIUCBVI.paper(world.problem).plan(np.zeros((2, 3, 2, 3))),
            sf.InvalidCounts,
            "found ndarray",
        ),
        (
            lambda: sf.simulate_many(world, sf.BPIUCBVI.paper(world.problem), 5, seeds=5),
            sf.InvalidSetting,
            "seeds is 5",
        ),
        (
            lambda: sf.simulate_many(world, sf.BPIUCBVI.paper(world.problem), 5, range(2), jobs=0),
            sf.InvalidSetting,
            "jobs is 0",
        ),
        (
            lambda: sf.simulate(world, sf.BPIUCBVI.paper(world.problem), 10**23, seed=0),
            sf.InvalidSetting,
            "episodes is",
        ),
    ]
    for attempt, error, message in refused:
        assert_refused(error, message, attempt)
    assert sf.Bernstein(np.float32(1)) == sf.Bernstein(1) == sf.Bernstein()


def test_episodes_of_pooled_counts_have_the_right_length_too(assert_refused):
    problem = sf.random_mdp(3, 2, 4, seed=0, stationary=True).problem
    counts = sf.Counts.zeros(problem, pooled=True)
    assert_refused(
        sf.InvalidEpisode,
        "3 steps, these counts have 4",
        counts.add,
        sf.Episode([0, 1, 2, 0], [0, 1, 0]),
    )
    assert counts.n_sas.sum() == 0
    one = sf.Counts.zeros(sf.random_mdp(3, 2, 1, seed=0).problem)
    assert_refused(
        sf.InvalidEpisode,
        "3 steps, these counts have 1",
        one.add,
        sf.Episode([0, 1, 2, 0], [0, 1, 0]),
    )
    assert_refused(
        sf.InvalidEpisode, r"states\[0\] is 1, expected s1 = 0", one.add, sf.Episode([1, 0], [0])
    )
    assert_refused(sf.InvalidEpisode, r"Expected sf.Episode", one.add, ([0, 1], [0]))
    assert_refused(
        sf.InvalidEpisode,
        r"states\[0\] is 9223372036854775807",
        one.add,
        sf.Episode(np.array([2**64 - 1, 0], dtype=np.uint64), [0]),
    )


def test_simulate(parts, assert_refused):
    world = sf.TabularMDP(*parts)
    agent = sf.BPIUCBVI.paper(world.problem)
    for episodes in (0, -1, 1.5, True):
        assert_refused(
            sf.InvalidSetting, "episodes is", sf.simulate, world, agent, episodes, seed=0
        )
    for seed in (-1, None, "a", 0.5):
        assert_refused(sf.InvalidSetting, "seed is", sf.simulate, world, agent, 5, seed=seed)
    assert_refused(sf.InvalidSetting, "floor is 7", sf.simulate, world, agent, 5, seed=0, floor=7.0)
    assert_refused(
        sf.InvalidModel,
        r"Build the agent from world.problem",
        sf.simulate,
        sf.random_mdp(S=2, A=2, H=2, seed=0),
        agent,
        5,
        seed=0,
    )
    assert_refused(
        sf.InvalidModel,
        "other rewards",
        sf.simulate,
        sf.TabularMDP(parts[0], parts[1] * 0.5),
        agent,
        5,
        seed=0,
    )


def test_a_floor_above_the_baseline_is_said_by_who_knows_it(parts):
    world = sf.TabularMDP(*parts)
    baseline = sf.uniform(2, 3, 2)
    value = sf.value(world, baseline)
    with pytest.warns(sf.FloorAboveBaseline, match="below the floor") as caught:
        run = sf.simulate(
            world, sf.StepMix.paper(world.problem, baseline, value + 0.01), 10, seed=0
        )
    assert run.violations == 10
    assert caught[0].filename == __file__  # it points at the caller
    assert str(run.promise).startswith("no promise: its premise is false")
    with pytest.warns(sf.FloorAboveBaseline, match="no policy reaches it"):
        sf.simulate(world, sf.StepMix.paper(world.problem, baseline, 2.0), 10, seed=0)
    # the agent's own floor counts, whatever else is counted
    with pytest.warns(sf.FloorAboveBaseline) as caught:
        sf.simulate_many(
            world,
            sf.StepMix.paper(world.problem, baseline, value + 0.01),
            10,
            seeds=range(3),
            floor=0.1,
        )
    assert len(caught) == 1
    run = sf.simulate(
        world, sf.StepMix.paper(world.problem, baseline, value - 0.01), 10, seed=0
    )  # warnings are errors here
    assert run.violations == 0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: sf.Counts.zeros(sf.Problem(np.zeros((100_000, 2)), H=100_000)), sf.InvalidCounts),
        (lambda: sf.uniform(10**6, 10**6, 10), sf.InvalidPolicy),
        (lambda: sf.random_mdp(10**5, 2, 10, seed=0), sf.InvalidModel),
        (lambda: sf.random_mdp(3, 2, 10**9, seed=0, stationary=True), sf.InvalidModel),
        *(
            (lambda name=name: sf.world(name, H=10**9), sf.InvalidModel)
            for name in ("trap-long", "dosing", "queue")
        ),
        (lambda: sf.world("random-sparse", S=100_000), sf.InvalidModel),
        (lambda: sf.world("river-swim", S=5000, H=10**9), sf.InvalidModel),
    ],
)
def test_what_would_not_fit_is_refused_before_memory_is_asked_for(make, error, assert_refused):
    """10^9 numbers are 8 GB. (A problem of 100,000 states is small: only its counts are not.)"""
    tracemalloc.start()
    assert_refused(error, "expected at most 1e", make)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


def test_sums_that_overflow_a_machine_word_are_compared_as_they_are(assert_refused):
    """2^62 episodes earn up to 2^83 units: nothing is wrong with the first; the second earned
    more than it could.
    """
    held = sf.Counts(np.zeros((2, 1, 1, 1), int), baseline_returns=[2**62, 5])
    assert held.baseline_returns.tolist() == [2**62, 5]
    assert_refused(
        sf.InvalidCounts,
        "baseline_returns",
        sf.Counts,
        np.zeros((2, 1, 1, 1), int),
        baseline_returns=[1, 2**61],
    )


def test_a_floor_is_checked_also_without_assertions():
    """`python -O` once let any floor through."""
    code = (
        "import numpy as np, surefoot as sf\n"
        "p = sf.Problem(np.zeros((1, 1)), H=1)\n"
        "for floor in (999.0, float('nan')):\n"
        "    try:\n        sf.StepMix(p, np.ones((1, 1, 1)), floor)\n"
        "    except sf.InvalidSetting:\n        continue\n"
        "    raise SystemExit('accepted')\n"
    )
    assert python("-O", "-c", code) == ""
