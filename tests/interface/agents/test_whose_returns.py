"""Returns are evidence of one baseline, summed by one table of rewards; and no draw is counted
twice.
"""

import warnings

import numpy as np
import pytest

import surefoot as sf
from saved import reloaded
from surefoot.evidence.episode import BaselineLabel
from surefoot.worlds.gymnasium import TabularEnv


@pytest.fixture
def trap():
    return sf.world("trap")


def other(baseline):
    return np.ascontiguousarray(baseline[..., ::-1])


def test_returns_of_another_baseline_are_refused(trap, assert_refused):
    good = sf.EpsMix(trap.problem, trap.baseline, 0.6, returns=sf.Returns())
    counts = sf.simulate(trap, good, 300, seed=0).counts
    assert counts.baseline_returns[0] > 0
    assert good.plan(counts).grounds.by_returns > 0.5  # control: its own
    bad = sf.EpsMix(trap.problem, other(trap.baseline), 0.5, returns=sf.Returns())
    for ask in (
        bad.plan,
        lambda c: sf.Learner(bad, 0, c),
        lambda c: sf.simulate(trap, bad, 5, 0, counts=c),
    ):
        assert_refused(sf.InvalidCounts, r"another baseline.*forget_returns", ask, counts)
    assert bad.plan(counts.forget_returns()).grounds.by_returns == -np.inf
    assert np.array_equal(counts.forget_returns().n_sas, counts.n_sas)


def test_an_agent_that_does_not_use_them_does_not_mix_them_up(trap, assert_refused):
    """Its own returns replace the other's, so that nobody reads a sum of both."""
    good = sf.StepMix(trap.problem, trap.baseline, 0.6, returns=None)
    counts = sf.simulate(trap, good, 300, seed=0).counts
    assert counts.baseline_returns[0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.FloorAboveBaseline)
        bad = sf.StepMix(trap.problem, other(trap.baseline), 0.6, returns=None)
        after = sf.simulate(trap, bad, 50, seed=0, counts=counts).counts
    assert after.baseline_returns[0] <= 50
    assert not after.return_weights.any()
    assert after.returns_of == bad.fingerprint != good.fingerprint
    assert_refused(
        sf.InvalidCounts,
        "different baselines",
        after.merge,
        sf.simulate(trap, good, 300, seed=1).counts,
    )


def test_the_mark_survives_saving(trap, tmp_path):
    agent = sf.StepMix(trap.problem, trap.baseline, 0.6)
    counts = sf.simulate(trap, agent, 20, seed=0).counts
    assert counts.spread_episodes > 0
    for same in (reloaded(counts, tmp_path), counts.copy()):
        assert same.returns_of == agent.fingerprint
        assert same.return_range == agent.return_range
        np.testing.assert_array_equal(same.return_weights, counts.return_weights)


def test_returns_outside_their_range_show_that_it_is_false(trap, assert_refused):
    """Those in the range alone would prove too little or too much: nothing is planned any more."""
    agent = sf.EpsMix(trap.problem, trap.baseline, 0.6)
    counts = sf.Counts.zeros(trap.problem)
    agent.claim(counts)
    for paid in (0, 0, 2**18):
        counts.count_return(paid)
    agent.plan(counts)  # control: so far it may be true
    counts.count_return(2**21)
    assert counts.baseline_returns[0] == 4 == counts.spread_episodes + counts.return_weights[-1]
    assert_refused(
        sf.InvalidCounts,
        r"1 returns of the baseline are outside the range \(0, 1\) that is",
        agent.plan,
        counts,
    )


def test_returns_in_another_range_are_refused(trap, assert_refused):
    """What is spread in one range says nothing in another; those of an agent that does not read
    them are not spread.
    """
    agent, narrow = sf.EpsMix(trap.problem, trap.baseline, 0.6, replan=0.0), (0, 7 * 2**17)
    own = sf.simulate(trap, agent, 200, seed=0).counts
    agent.plan(own)  # control
    counts = own.copy()
    counts.return_range = narrow
    for ask in (
        agent.plan,
        lambda c: sf.Learner(agent, 0, c),
        lambda c: sf.simulate(trap, agent, 5, 0, counts=c),
    ):
        assert_refused(
            sf.InvalidCounts,
            r"another range than this agent's \(0, 1\).*forget_returns",
            ask,
            counts,
        )
    assert agent.plan(counts.forget_returns()).grounds.by_returns == -np.inf
    deaf = sf.EpsMix(trap.problem, trap.baseline, 0.6, returns=None)
    unread = sf.simulate(trap, deaf, 200, seed=0).counts
    assert unread.returns_of == agent.fingerprint
    assert agent.plan(unread).grounds.by_returns == -np.inf
    assert_refused(
        sf.InvalidCounts,
        "they cannot be added",
        counts.merge,
        sf.simulate(trap, agent, 200, seed=1).counts,
    )
    label = str(BaselineLabel(agent.fingerprint, narrow))
    episode = sf.Episode.of(trap.problem, [0, 1, 1], [0, 0], baseline=label)
    assert_refused(sf.InvalidEpisode, "says that its returns have another range", own.add, episode)


def test_going_on_with_the_same_seed_draws_other_numbers(trap):
    """Data counted twice would prove what is not so."""
    agent = sf.StepMix(trap.problem, trap.baseline, 0.6)
    first = sf.simulate(trap, agent, 100, seed=0)
    second = sf.simulate(trap, agent, 100, seed=0, counts=first.counts)
    assert not np.array_equal(second.counts.n_sas, 2 * first.counts.n_sas)
    assert sf.simulate(trap, agent, 100, seed=0, counts=first.counts).counts == second.counts
    env = TabularEnv(trap)
    live = sf.learn(env, agent, 60, seed=0)
    more = sf.learn(env, agent, 60, seed=0, counts=live.counts)
    whole = sf.learn(env, agent, 120, seed=0)
    assert not np.array_equal(more.counts.n_sas, 2 * live.counts.n_sas)
    assert more.counts.n_sas.sum() == whole.counts.n_sas.sum()


def test_sums_of_rewards_do_not_overflow(trap, assert_refused):
    """10^11 episodes in blocks, and the sums are still right."""
    agent = sf.StepMix(trap.problem, trap.baseline, 0.68, replan=0.5)
    run = sf.simulate(trap, agent, 10**11, seed=0)
    n, total = (int(x) for x in run.counts.baseline_returns)
    assert n == 0 or abs(total / 2**20 / n - 0.685) < 0.01
    assert run.counts.n_sas.sum() == 2 * 10**11
    assert_refused(
        sf.InvalidSetting, "sums of rewards end", sf.simulate, trap, agent, 10**13, seed=0
    )


def test_units_are_checked(assert_refused):
    r = np.full((1, 1), -0.5)
    problem = sf.Problem(r, H=10, units=sf.Units(-1.0, 1.0))
    assert (problem.lowest, problem.highest) == (-10.0, 10.0)
    assert (problem.r[0, 0, 0], problem.r_rescaled[0, 0, 0]) == (-0.5, 0.25)
    assert problem.level(-5.0) == 2.5
    for units, message in (
        ((-1, 1), "expected sf.Units"),
        (sf.Units(-1.0, 1.0, 7), "7 steps, but the problem has 10"),
    ):
        assert_refused(sf.InvalidModel, message, sf.Problem, r, H=10, units=units)
    assert_refused(sf.InvalidModel, "lowest and the highest", sf.Units, 1.0, -1.0)


def test_rows_that_do_not_quite_sum_to_one_prove_no_more():
    """A start or an explorer off by 9e-10 is within what is accepted, and is paid for."""
    problem = sf.Problem(np.full((2, 1), 0.5), H=100, start=[0.5, 0.5 + 9e-10])
    plan = sf.StepMix(problem, sf.uniform(100, 2, 1), 0.0).plan(sf.Counts.zeros(problem))
    assert plan.lower <= 50.0
    one = sf.Problem(np.full((1, 2), 0.5), H=100)
    off = np.broadcast_to(np.array([0.5, 0.5 + 9e-10]), (100, 1, 2))
    agent = sf.StepMix(one, sf.uniform(100, 1, 2), 0.0, explorer=lambda counts, rng: off)
    assert agent.plan(sf.Counts.zeros(one), np.random.default_rng(0)).lower <= 50.0
