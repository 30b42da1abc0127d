"""Evidence beside known rewards and one start: returns of the baseline, unknown rewards, unknown
starts.

Lower and upper values are held against exact ones in runs of a learner, and the share of runs in
which one of them is ever wrong must be below its delta by an exact binomial test at level 1 %.
Deltas are large (0.25 and 0.5) so that few runs say much. Miss: a defect that makes the share delta
or more is missed by 100 runs with probability at most 1 %. False alarm: bounds that are sound fail
with probability 0.26 at a true share of delta/2 and 0.02 at delta/3 (delta = 0.25), 0.003 and 1e-9
(delta = 0.5); seeds are fixed, so neither happens by chance.

Each case has one kind of ball where it can (dynamics known, rewards unknown; only the start
unknown), so that a defect in that ball is not diluted by others. Controls: the same runs with a
small radius, and episodes marked after the fact.
"""

import math

import numpy as np
import pytest

import surefoot as sf
from surefoot import kernels
from surefoot.run.blocks import draw_block

RUNS = 100


def lengths(episodes, share):
    done = 0
    while done < episodes:
        length = max(2, math.ceil(share * done))
        yield length
        done += length


# --- returns --------------------------------------------------------------------------------------


# this floor needs an upper bound of the baseline's value, the other one a lower bound
RELATIVE = sf.Relative(0.1)
FLOORS = [0.62, RELATIVE]


def returns_learner(scale=1.0, floor=0.62):
    """EpsMix on the trap. Of delta = 0.5 returns have one half; the baseline is worth 0.685, the
    floor is 0.62.
    """
    world = sf.world("trap")
    settings = {"delta": 0.5, "bounds": sf.KL(scale=scale), "returns": sf.Returns(share=0.5)}
    return world, sf.EpsMix(world.problem, world.baseline, floor, **settings)


def wrong_about_the_baseline(agent, counts, value):
    low, up = kernels.returns_bounds(agent.evidence(counts)[2])
    # it says something
    assert counts.spread_episodes == 0 or math.isfinite(up if agent.floor is RELATIVE else low)
    return low > value + 1e-12 or up < value - 1e-12


def runs_with_wrong_returns(scale, floor, control=False):
    """The learner tosses its coin and marks what the coin sends to the baseline; it is looked at
    again and again. Of a control, a run ends where it has failed.
    """
    world, agent = returns_learner(scale, floor)
    value = world.at_start(sf.policy_value(world, world.baseline)[0])
    wrong = partly = 0
    for run in range(RUNS):
        counts, spoilt = None, False
        for i, length in enumerate(lengths(400, 0.5)):
            seed = np.random.SeedSequence([run, i])
            counts = sf.simulate(world, agent, length, seed, counts=counts, progress=False).counts
            spoilt |= wrong_about_the_baseline(agent, counts, value)
            if control and spoilt:
                break
        wrong += spoilt
        partly += bool(0 < counts.baseline_returns[0] < counts.episodes)
    return wrong, partly


@pytest.mark.parametrize("floor", FLOORS, ids=str)
def test_returns_bound_the_baseline(is_below, floor):
    """Their share of delta is 0.25; about half of the runs toss the coin for some episodes."""
    wrong, partly = runs_with_wrong_returns(1.0, floor)
    assert is_below(wrong, RUNS, 0.25)
    assert partly >= 0.3 * RUNS


def test_control_returns_with_a_tenth_of_the_radius(is_below, is_above):
    """Of the lower bound. (The control of the other one is below: a learner leaves the baseline
    before it is seen.)
    """
    wrong, _ = runs_with_wrong_returns(0.1, 0.62, control=True)
    assert not is_below(wrong, RUNS, 0.25)
    assert is_above(wrong, RUNS, 0.25)


@pytest.mark.parametrize("floor", FLOORS, ids=str)
@pytest.mark.parametrize(("marked_late", "breaks"), [(False, False), (True, True)])
def test_control_marks_after_the_fact(is_above, is_below, marked_late, breaks, floor):
    """Baseline episodes, each marked with the same chance: sound. Good ones always, bad ones half
    of the time (or the other way round, where the bound is an upper one), decided when the outcome
    is known: the bound passes the truth in nearly every run. A run ends where it has failed.
    """
    world, agent = returns_learner(floor=floor)
    value = world.at_start(sf.policy_value(world, world.baseline)[0])
    wrong = 0
    for run in range(60):
        rng = np.random.default_rng(run)
        counts, spoilt = sf.Counts.zeros(world.problem), False
        for k in range(300):
            marked = bool(rng.random() < 0.8)
            episode = sf.play(world, world.baseline, rng)
            if marked_late:
                good = episode.rewards.sum() > 0.5
                marked = bool(good != (floor is RELATIVE) or rng.random() < 0.5)
            counts.add(episode.as_learnt(world.problem, agent.whose(marked)))
            if k % 25 == 24 and wrong_about_the_baseline(agent, counts, value):
                spoilt = True
                break
        wrong += spoilt
        assert counts.spread_episodes == counts.baseline_returns[0] > 0
    assert is_above(wrong, 60, 0.25) == breaks
    assert is_below(wrong, 60, 0.25) != breaks


# --- unknown rewards, unknown start, rewards by next state ----------------------------------------

STAY_OR_LEAVE = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
REWARDS = np.array([[0.6, 0.4], [0.7, 0.3]])


def unknown_rewards():
    """Random rewards of unknown mean, dynamics known: two steps, three pairs that matter, reward
    balls alone.
    """
    world = sf.TabularMDP(STAY_OR_LEAVE, REWARDS, H=2, random_rewards=True).with_support()
    return world, world.problem.forget(rewards=True)


def unknown_rewards_and_dynamics():
    world = sf.TabularMDP(0.8 * STAY_OR_LEAVE + 0.1, REWARDS, H=2, random_rewards=True)
    return world, world.problem.forget(rewards=True)


def unknown_start():
    """Two first states, one much better: the ball of the start alone."""
    world = sf.TabularMDP(
        STAY_OR_LEAVE, [[0.9, 0.6], [0.1, 0.3]], H=2, start=[0.5, 0.5]
    ).with_support()
    return world, world.problem.forget(start=True)


def rewards_by_next_state():
    """What is paid depends on where one arrives, so the last step has its ball, too."""
    P = np.zeros((2, 2, 2))
    P[:, 0], P[:, 1] = [0.7, 0.3], [0.4, 0.6]
    r_next = np.zeros((2, 2, 2))
    r_next[..., 0], r_next[1, :, 1] = 1.0, 0.3
    world = sf.TabularMDP(P, r_next=r_next, H=2)
    return world, world.problem


KINDS = [unknown_rewards, unknown_rewards_and_dynamics, unknown_start, rewards_by_next_state]


def runs_with_wrong_values(kind, scale, delta=0.5, control=False):
    """Runs in which a lower value of a splice was above the truth or the upper one below V*; and
    which left pi_b. Of a control, a run ends where it has failed.
    """
    world, problem = kind()
    baseline = np.broadcast_to([0.8, 0.2], (2, 2, 2))
    floor = 0.8 * world.at_start(sf.policy_value(world, baseline)[0])
    agent = sf.StepMix(
        problem, baseline, floor, delta=delta, bounds=sf.KL(scale=scale), pooled=True, returns=None
    )
    best, truth = sf.solve(world).value, {}
    wrong = left = 0
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        counts = sf.Counts.zeros(problem, pooled=True)
        spoilt = moved = False
        for length in lengths(800, 0.25):
            decision = agent.decide(agent.evidence(counts))
            key = decision.explorer.tobytes()
            if key not in truth:
                splices = [sf.splice(baseline, decision.explorer, int(h)) for h in agent.h0]
                truth[key] = np.array(
                    [world.at_start(sf.policy_value(world, pi)[0]) for pi in splices]
                )
            spoilt |= bool((truth[key] + 1e-12 < decision.L).any()) or decision.upper < best - 1e-12
            moved |= decision.h < world.H or decision.rho > 0.0
            if control and spoilt:
                break
            draw_block(
                world, problem, agent.policy_of(decision), length, counts, rng, baseline=False
            )
        wrong += spoilt
        left += moved
    return wrong, left


@pytest.mark.parametrize("kind", KINDS)
def test_values_without_rewards_or_start(is_below, kind):
    wrong, left = runs_with_wrong_values(kind, 1.0)
    assert is_below(wrong, RUNS, 0.5)
    assert left >= 0.9 * RUNS


@pytest.mark.parametrize("kind", KINDS)
def test_control_values_with_a_radius_of_nearly_nothing(is_below, is_above, kind):
    wrong, _ = runs_with_wrong_values(kind, 0.02, control=True)
    assert not is_below(wrong, RUNS, 0.5)
    assert is_above(wrong, RUNS, 0.5)


# --- FrozenLake -----------------------------------------------------------------------------------

OPTIMUM = 0.5459


@pytest.fixture(scope="module")
def lake():
    """Slippery, 50 steps; the baseline is the optimum with a fifth of its actions at random,
    worth 0.224.
    """
    world = sf.from_gymnasium("FrozenLake-v1", horizon=50).with_support()
    return world, 0.8 * sf.solve(world).policy + 0.2 / 4


def on_the_lake(lake, floor, seeds, episodes):
    world, baseline = lake
    agent = sf.EpsMix(world.problem, baseline, floor, delta=0.1, pooled=True, returns=sf.Returns())
    return sf.simulate_many(world, agent, episodes, seeds=seeds, progress=False)


def test_the_lake_is_what_it_says(lake):
    world, baseline = lake
    assert sf.solve(world).value == pytest.approx(OPTIMUM, abs=5e-5)
    assert world.at_start(sf.policy_value(world, baseline)[0]) == pytest.approx(0.2242, abs=5e-5)


@pytest.mark.parametrize(
    ("floor", "soon"), [(0.13, 2000), pytest.param(0.18, 2500, marks=pytest.mark.full)]
)
def test_returns_certify_the_lake(lake, floor, soon):
    """No violation, fully optimistic soon, near the optimum after 3,000 episodes.

    2 trials say little about delta = 0.1: a defect that spoils a share p of the trials is missed
    with (1-p)^2. They see a learner that has become slow (measured: optimistic at 274 to 2,109) and
    one that breaks often. False alarm, from 24 other trials each: none at floor 0.13 (the latest at
    905); at 0.18 four were later than 2,500 and one ended short of 95 %, so two fresh trials would
    be red with probability 0.37. Seeds are fixed.
    """
    for run in on_the_lake(lake, floor, range(2), 3000):
        assert run.violations == 0
        assert run.first_optimistic <= soon
        assert run.curve.mean[-100:].mean() >= 0.95 * OPTIMUM


def test_control_the_optimist_violates_on_the_lake(lake):
    world, _ = lake
    agent = sf.BPIUCBVI(world.problem, delta=0.1, pooled=True)
    for run in sf.simulate_many(world, agent, 1000, seeds=range(2), floor=0.13, progress=False):
        assert run.violations > 0


@pytest.mark.full
@pytest.mark.parametrize(("floor", "median", "all_by"), [(0.13, 2000, 2000), (0.18, 2000, 6000)])
def test_returns_certify_the_lake_in_twenty_trials(lake, floor, median, all_by):
    """0 of 20 trials may violate: at delta = 0.1 used up that would be luck (0.12); a defect that
    spoils 0.2 of the trials is missed with probability 0.01. The certificates are not that tight:
    none was ever seen to violate.
    """
    runs = on_the_lake(lake, floor, range(20), 20_000)
    first = [run.first_optimistic for run in runs]
    assert [run.violations for run in runs] == [0] * 20
    assert np.median(first) <= median
    assert max(first) <= all_by
    assert min(run.curve.mean[-100:].mean() for run in runs) >= 0.98 * OPTIMUM
