"""The fused loop is the plain loop to the last bit: for every kind of knowledge, every setting; and
so is the loop that plays each plan in compiled code, for as long as it is in force. (Blocks are
drawn at once, with the same law and other bits: see test_blocks.py.)
"""

from itertools import product

import numpy as np
import pytest

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.bounds.certificate import fingerprint_of
from surefoot.run import loops, simulate

EPISODES = 100
# here the first mixture may come later, in episode 125 at most
MORE = {"one-start-unknown": 130, "all-together": 130}
SHARES = (0.0, 0.1, 1.0)


def certificate(case, value):
    """What was proved of the baseline before."""
    return sf.Certificate(value, 0.01, fingerprint_of(case.baseline, case.problem))


SETTINGS = {
    "no returns": lambda case: {"returns": None},
    "a small share for returns": lambda case: {"returns": sf.Returns(0.1)},
    "certificate": lambda case: {"certificate": certificate(case, 1.1 * case.floor)},
    "relative": lambda case: {"floor": sf.Relative(0.1), "returns": None},
    "below": lambda case: {"floor": sf.Below(0.1)},
    "relative and returns": lambda case: {"floor": sf.Relative(0.3), "returns": sf.Returns()},
    "full support": lambda case: {"bounds": sf.KL(full_support=True)},
}


def build(kind, case, pooled, replan, **changes):
    """A learner that knows what the case's problem says."""
    settings = {"delta": 0.3, "pooled": pooled, "replan": replan, **changes}
    if kind is sf.BPIUCBVI:
        return kind(case.problem, **settings)
    return kind(case.problem, case.baseline, settings.pop("floor", case.floor), **settings)


def one_by_one(world, agent, episodes, **settings):
    """A run whose episodes are played one by one in compiled code: planned there, too, before
    every episode.
    """
    loop = loops.plan_by_plan if agent.replan_share > 0.0 else loops.fused
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate, "loop_for", lambda agent, ledger=None: loop)
        return sf.simulate(world, agent, episodes, seed=3, **settings)


def assert_loops_agree(world, agent, assert_same_run, episodes=EPISODES, **settings):
    """The run, after comparing both; counts are compared array by array, beyond their ==."""
    fused = one_by_one(world, agent, episodes, **settings)
    plain = simulate_plainly(world, agent, episodes, seed=3, **settings)
    assert_same_run(fused, plain)
    one, other = fused.counts.arrays(), plain.counts.arrays()
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    return fused


LEARNERS = (sf.StepMix, sf.EpsMix, sf.StepNoMix, sf.BPIUCBVI)
PAIRS = [(i, j) for i in range(len(SHARES)) for j in range(len(LEARNERS))]


def assert_plain_is_fused(kind, pooled, pairs, case_of, assert_same_run):
    """With these pairs of a share and a learner."""
    case, episodes = case_of(kind, pooled), MORE.get(kind, EPISODES)
    seen = dict.fromkeys(("baseline", "mixture", "optimistic"), 0)
    for i, j in pairs:
        replan, learner = SHARES[i], LEARNERS[j]
        agent = build(learner, case, pooled, replan)
        run = assert_loops_agree(case.world, agent, assert_same_run, episodes, floor=case.floor)
        if learner in (sf.StepMix, sf.EpsMix):
            assert run.sources["mixture"] > 0, (learner, replan)
            seen = {source: n + run.sources[source] for source, n in seen.items()}
        counts = run.counts
        assert counts.n_start.sum() == counts.episodes == episodes
        assert (counts.x_sa is not None) == (case.problem.unknown_rows is not None)
        if learner is not sf.BPIUCBVI:
            assert counts.baseline_returns[0] == counts.spread_episodes >= run.sources["baseline"]
    assert min(seen.values()) > 0


@pytest.mark.parametrize("pooled", [False, True])
def test_plain_is_fused(kind, pooled, case_of, assert_same_run):
    """All learners and shares, for what this learner knows; all three exits are taken. Half of the
    pairs of share and learner are played step by step, the other half pooled.
    """
    half = [(i, j) for i, j in PAIRS if (i + j) % 2 == pooled]
    assert {i for i, _ in half} == set(range(len(SHARES)))
    assert {j for _, j in half} == set(range(len(LEARNERS)))
    assert_plain_is_fused(kind, pooled, half, case_of, assert_same_run)


@pytest.mark.full
@pytest.mark.parametrize("pooled", [False, True])
def test_plain_is_fused_for_every_pair(kind, pooled, case_of, assert_same_run):
    """Every share with every learner, step by step and pooled."""
    assert_plain_is_fused(kind, pooled, PAIRS, case_of, assert_same_run)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", ["plain", "by-next-state", "all-together"])
def test_plain_is_fused_with_every_setting(kind, setting, every, case_of, assert_same_run):
    """What else is known of the baseline, other floors, other weights: and each of them does change
    the run. Learner, share and pooling are met in every pair of two of them; all three together, if
    `every`.
    """
    changed = []
    for j, (learner, i, pooled) in enumerate(
        product((sf.StepMix, sf.EpsMix), (0, 1), (False, True))
    ):
        if not every and j.bit_count() % 2:
            continue
        case, replan = case_of(kind, pooled), SHARES[i]
        agent = build(learner, case, pooled, replan, **SETTINGS[setting](case))
        run = assert_loops_agree(case.world, agent, assert_same_run)
        without = one_by_one(case.world, build(learner, case, pooled, replan), EPISODES)
        changed.append(run.regret != without.regret and run.off_baseline is not None)
    assert any(changed)


@pytest.mark.parametrize("replan", SHARES)
def test_plain_is_fused_with_the_papers_bounds(replan, case_of, assert_same_run):
    case = case_of("plain", False)
    for learner in (sf.StepMix, sf.EpsMix, sf.StepNoMix, sf.BPIUCBVI):
        agent = build(learner, case, False, replan, bounds=sf.Bernstein(1e-4))
        run = assert_loops_agree(case.world, agent, assert_same_run, episodes=600, floor=case.floor)
        assert run.off_baseline is not None


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("replan", SHARES)
def test_plain_is_fused_from_warm_counts(replan, pooled, case_of, assert_same_run):
    """Counts to start from are copied, and both loops go on from all of them: visits, rewards,
    starts, returns.
    """
    case = case_of("all-together", pooled)
    agent = build(sf.EpsMix, case, pooled, replan, returns=sf.Returns())
    first = sf.simulate(case.world, agent, 60, seed=8)
    before = first.counts.copy()
    run = assert_loops_agree(case.world, agent, assert_same_run, episodes=60, counts=first.counts)
    assert first.counts == before
    assert run.counts.episodes == 120
    assert before.baseline_returns[0] > 0
    assert before.spread_episodes == before.baseline_returns[0]
    assert (run.counts.return_weights >= before.return_weights).all()
    assert (run.counts.x_sa >= before.x_sa).all()
    # control: warmth matters
    assert run.counts != one_by_one(case.world, agent, 60).counts.merge(before)


def test_shares_and_seeds_tell_runs_apart(case_of):
    """Control: what is compared above differs between shares, between seeds, and between kinds
    of knowledge.
    """
    case = case_of("all-together", False)
    runs = [
        one_by_one(case.world, build(sf.StepMix, case, False, share), EPISODES) for share in SHARES
    ]
    runs.append(
        sf.simulate(case.world, build(sf.StepMix, case, False, SHARES[0]), EPISODES, seed=4)
    )
    for i, one in enumerate(runs):
        for other in runs[:i]:
            assert one.counts != other.counts
            assert one.regret != other.regret
    told = case._replace(problem=case.world.problem)
    knows = sf.simulate(case.world, build(sf.StepMix, told, False, SHARES[0]), EPISODES, seed=3)
    assert not np.array_equal(knows.counts.n_sas, runs[0].counts.n_sas)


def test_a_reward_that_is_known_is_drawn_all_the_same(case_of):
    """Random rewards cost a random number whoever looks: without them the same seed gives
    another run.
    """
    case = case_of("by-next-state-random", False)
    agent = build(sf.StepMix, case, False, SHARES[0])
    paid = np.array([case.world.problem.r_next_at(h) for h in range(3)])
    known = sf.TabularMDP(case.world.P, r_next=paid, s1=1)
    one, other = (sf.simulate(world, agent, EPISODES, seed=3) for world in (case.world, known))
    assert one.counts != other.counts
