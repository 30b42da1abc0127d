"""Counts say what they are evidence about: what is refused, what stays usable, and who can
change it.
"""

import time

import numpy as np
import pytest

import surefoot as sf
from edited import edit
from learners import begun
from plain_loop import simulate_plainly
from saved import reloaded
from surefoot.base.files import write_arrays
from surefoot.model.origin import Origin, Range, ranges_from, with_range
from surefoot.run import learner as live
from threads import in_threads

R = np.array([[0.2, 0.8], [0.5, 0.1]])
PROBLEM = sf.Problem(R, H=2)
UNIFORM = sf.uniform(2, 2, 2)
HAND = np.zeros((2, 2, 2, 2), dtype=int)
HAND[0, 0, 0] = HAND[1, 0, 0] = [3, 1]
HAND[1, 1, 1] = [0, 1]
HAND[1, 0, 0] = [2, 1]  # three come to state 0, one to state 1


def hand(**more):
    return sf.Counts(HAND, n_start=[4, 0], **more)


def agent(problem=PROBLEM, floor=0.1, **more):
    return sf.StepMix(problem, UNIFORM, floor, **more)


# --- claims ---------------------------------------------------------------------------------------


def test_unclaimed_counts_are_trusted_at_most(assert_refused):
    plan = agent().plan(hand())
    assert plan.lower >= 0.1
    assert plan.safety == "trusted"
    assert "counts = counts.claimed_for(agent.problem)" in plan.explain()
    for go_on in (
        lambda counts: sf.Learner(agent(), 0, counts),
        lambda counts: sf.simulate(
            sf.TabularMDP(np.full((2, 2, 2), 0.5), R, H=2), agent(), 5, 0, counts=counts
        ),
    ):
        assert_refused(
            sf.InvalidCounts, r"counts = counts\.claimed_for\(agent\.problem\)", go_on, hand()
        )
    for counts in (hand().claimed_for(PROBLEM), hand(problem=PROBLEM)):
        plan = agent().plan(counts)
        assert plan.safety == "certified"
        assert "hold each episode once, as the user asserts" in plan.explain()
        sf.Learner(agent(), 0, counts)
    # control: nothing is asserted here
    counted = sf.Counts.zeros(PROBLEM).add(sf.Episode([0, 1, 1], [0, 1]))
    assert "as the user asserts" not in agent().plan(counted).explain()
    assert agent().plan(counted).safety == "certified"


def test_rivals_do_not_certify_by_unclaimed_counts():
    for kind, more in (
        (sf.BudgetExploration, {}),
        (sf.DOPE, {"baseline_value": 0.9, "episodes": 10**10}),
    ):
        rival = kind(PROBLEM, UNIFORM, 0.01, **more)
        counts = sf.Counts(10**9 * HAND, n_start=[4 * 10**9, 0])
        assert rival.plan(counts).safety == "trusted"
        assert "claimed_for" in rival.plan(counts).explain()
        assert rival.plan(counts.claimed_for(PROBLEM)).safety == "certified"


def test_returns_and_accounts_that_nobody_claimed_become_nobodys(assert_refused):
    reads, does_not = agent(), agent(returns=None)
    weights = np.zeros(66, dtype=int)
    weights[20] = 4 * 2**20
    for spread in (False, True):
        counts = hand(problem=PROBLEM, baseline_returns=[4, 2**22])
        if spread:
            counts.hold_returns(weights, reads.return_range)
        for mine in (reads, does_not):
            begun = sf.Learner(mine, 0, counts.copy()).counts
            assert begun.baseline_returns.tolist() == [0, 0]
            assert not begun.return_weights.any()
            assert begun.returns_of == mine.fingerprint
        reads.claim(counts)  # the user's word
        begun = sf.Learner(reads, 0, counts).counts
        assert begun.baseline_returns.tolist() == [4, 2**22]
        assert begun.spread_episodes == (4 if spread else 0)
    account = hand(problem=PROBLEM, account=[3, 1, 5])
    assert_refused(
        sf.InvalidCounts,
        r"account of another agent.*or of nobody.*agent\.claim\(counts\)",
        sf.Learner,
        sf.BudgetExploration(PROBLEM, UNIFORM, 0.1),
        0,
        account,
    )


def test_a_claim_does_not_overrule_what_is_known(assert_refused):
    counts = hand(problem=PROBLEM)
    assert_refused(
        sf.InvalidCounts,
        r"start: state 0 in these counts, state 1 expected",
        counts.claimed_for,
        sf.Problem(R, H=2, s1=1),
    )
    assert_refused(
        sf.InvalidCounts, "not of Problem", hand, problem=sf.Problem(np.zeros((3, 2)), H=2)
    )


def test_what_is_said_survives_saving(tmp_path):
    counts = sf.Counts.zeros(PROBLEM).add(sf.Episode([0, 1, 1], [0, 1]), number=("here", 7))
    counts.refused = 3
    loaded = reloaded(counts, tmp_path)
    assert (loaded.origin, loaded.ranges, loaded.refused) == (
        counts.origin,
        (Range("here", 7, 7),),
        3,
    )
    assert loaded.origin == PROBLEM.origin
    assert reloaded(hand(problem=PROBLEM), tmp_path).origin.asserted
    assert reloaded(hand(), tmp_path).origin is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"asserted": 1}',
        '{"asserted": true, "more": "x"}',
        '{"asserted": true, "units": "[1, 0]"}',
    ],
)
def test_damaged_claims(text, tmp_path, assert_refused):
    with pytest.raises((ValueError, TypeError)):
        Origin.from_text(text)
    write_arrays(tmp_path / "counts.npz", "counts", {"n_sas": HAND, "origin": np.asarray(text)})
    assert_refused(sf.InvalidFile, "damaged", sf.Counts.load, tmp_path / "counts.npz")
    for ranges in (
        "[1]",
        '[["a", 2, 1]]',
        '[["a", 0, true]]',
        '[["a", 0.5, 1]]',
        "{",
        '[["a", -1, 1]]',
    ):
        with pytest.raises((ValueError, TypeError)):
            ranges_from(ranges)


# --- which part differs, and what stays -----------------------------------------------------------


def test_dynamics_survive_a_change_of_rewards_and_sums_do_not(assert_refused):
    unknown = PROBLEM.forget(rewards=True)
    counts = sf.Counts.zeros(unknown)
    for _ in range(20):
        counts.add(sf.Episode([0, 1, 1], [0, 1], [0.5, 0.5]))
    wider = sf.Problem(R, H=2, unknown=True, units=sf.Units(0, 2))
    assert_refused(
        sf.InvalidCounts,
        r"units: \[0\.0, 1\.0\] in these counts.*counts\.forget_rewards\(\)",
        agent(wider).plan,
        counts,
    )
    for known in (PROBLEM, sf.Problem.rescaled(R, sf.Units(0, 2), H=2), sf.Problem(R / 2, H=2)):
        for kept in (counts, counts.forget_rewards()):
            assert agent(known).plan(kept).grounds.counts.played.sum() == 40
    assert counts.forget_rewards().x_sa is None
    assert_refused(
        sf.InvalidCounts, "hold no sums of rewards", agent(wider).plan, counts.forget_rewards()
    )


def test_an_episode_of_another_problem_is_refused(assert_refused):
    counts = sf.Counts.zeros(PROBLEM)
    other = sf.Problem(R / 2, H=2)
    assert_refused(
        sf.InvalidEpisode,
        r"another problem \(rewards: .*not counted",
        counts.add,
        sf.Episode.of(other, [0, 1, 1], [0, 1]),
    )
    assert_refused(
        sf.InvalidEpisode,
        "another problem",
        sf.Episode.of(other, [0, 1, 1], [0, 1]).as_learnt,
        PROBLEM,
        False,
    )
    assert not counts.n_sas.any()
    # control: an equal one
    assert counts.add(sf.Episode.of(sf.Problem(R, H=2), [0, 1, 1], [0, 1])).episodes == 1


def test_rewards_of_an_episode_are_in_the_users_units(assert_refused):
    problem = sf.Problem.rescaled(R, sf.Units(-1, 10), H=2, unknown=[[True, False], [True, True]])
    episode = sf.Episode.of(problem, [0, 0, 1], [0, 1], [0.3, 5.0])
    assert episode.rewards[0] == 0.3
    assert episode.rewards[1] == pytest.approx(-1 + 11 * 0.8)  # known: the table's
    assert episode.learnt == pytest.approx([1.3 / 11, 0.8])
    counts = [sf.Counts.zeros(problem) for _ in range(2)]
    counts[0].add(episode)
    counts[1].add(sf.Episode([0, 0, 1], [0, 1], [0.3, 5.0]))
    assert counts[0].x_sa[0, 0, 0] == counts[1].x_sa[0, 0, 0] == int(1.3 / 11 * 2**20)
    assert_refused(
        sf.InvalidEpisode,
        r"rewards\[0\] is 11, outside the declared range \(-1, 10\)",
        counts[1].add,
        sf.Episode([0, 0, 1], [0, 1], [11, 0]),
    )
    table = sf.Problem(R, H=2)
    # in [0, 1] nothing changes
    assert sf.Episode.of(table, [0, 0, 1], [0, 1]).rewards.tolist() == [0.2, 0.8]


# --- numbers --------------------------------------------------------------------------------------


def test_ranges_join_and_never_overlap(assert_refused):
    held = with_range(with_range((), Range("a", 0, 4)), Range("a", 10, 12))
    held = with_range(held, Range("b", 0, 4))
    assert set(with_range(held, Range("a", 5, 9))) == {Range("a", 0, 12), Range("b", 0, 4)}
    for again in (Range("a", 4, 4), Range("a", 3, 11), Range("a", 12, 20), Range("b", 0, 0)):
        assert_refused(sf.InvalidCounts, "in these counts already", with_range, held, again)


def test_runs_and_learners_number_their_episodes(assert_refused):
    world = sf.world("trap")
    mine = sf.StepMix(world.problem, world.baseline, 0.6)
    first = sf.simulate(world, mine, 30, seed=0).counts
    (one,) = first.ranges
    assert (one.first, one.last) == (0, 29)
    more = simulate_plainly(world, mine, 20, seed=0, counts=first).counts
    assert more.ranges == (Range(one.source, 0, 49),)
    assert_refused(sf.InvalidCounts, "Episodes 0 to 29", more.merge, first)
    other = sf.simulate(world, mine, 30, seed=1).counts
    assert len(first.merge(other).ranges) == 2
    assert_refused(
        sf.InvalidCounts,
        "evidence counts once",
        first.merge,
        sf.simulate(world, mine, 30, seed=0).counts,
    )


# --- rewards that were refused --------------------------------------------------------------------


def refused():
    learner = begun(agent(PROBLEM.forget(rewards=True)))
    with pytest.raises(sf.InvalidEpisode, match="begin with new counts and a wider range"):
        learner.observe(1, 7.0)
    return learner


def test_counts_that_lack_an_episode_because_of_its_reward_are_refused(tmp_path, assert_refused):
    learner = refused()
    learner.abandon()
    assert learner.counts.refused == 1
    for counts in (learner.counts, learner.counts.copy(), reloaded(learner.counts, tmp_path)):
        for use in (
            agent(PROBLEM.forget(rewards=True)).plan,
            lambda counts: sf.Learner(agent(PROBLEM.forget(rewards=True)), 0, counts),
            lambda counts: agent().plan(counts.forget_rewards()),
            lambda counts: counts.merge(sf.Counts.zeros(PROBLEM.forget(rewards=True))),
            lambda counts: counts.claimed_for(PROBLEM),
        ):
            assert_refused(sf.InvalidCounts, "selected by its outcome", use, counts)
    assert_refused(sf.InvalidCounts, "selected by its outcome", learner.begin)


def test_a_reward_that_was_refused_is_not_replaced_by_another():
    """Only by playing the episode again, from its seed: another reward in its place is clipped,
    say.
    """
    learner = refused()
    learner.observe(1, 0.5)
    assert learner.counts.refused == 1
    again = refused()
    again.rewind()  # it will be played again
    assert again.counts.refused == 0


# --- who changes what -----------------------------------------------------------------------------


@pytest.mark.parametrize("pooled", [False, True])
def test_counts_that_cannot_be_of_whole_episodes_are_refused(pooled, assert_refused):
    problem = sf.Problem(R, H=2, stationary=True)
    good = hand(problem=problem)
    # Pooled, what follows the last step is not counted.
    for change in ((1, 1, 0, 0, 10), (1, 0, 0, 0, -1), (0, 0, 0, 1, 1))[2 if pooled else 0 :]:
        *place, more = change
        edited = edit(good.copy(), lambda n_sas, at=tuple(place), n=more: np.add.at(n_sas, at, n))
        counts = edited.pool() if pooled else edited
        assert_refused(
            sf.InvalidCounts,
            "not counts of whole episodes",
            agent(problem, pooled=pooled).plan,
            counts,
        )
    starts = good.copy()
    starts.n_start[:] = [2, 2]
    assert_refused(
        sf.InvalidCounts,
        "not counts of whole episodes",
        agent(problem, pooled=pooled).plan,
        bad_starts() if pooled else starts,
    )
    assert agent(problem, pooled=pooled).plan(good.pool() if pooled else good).certified  # control


def bad_starts():
    """Pooled: five episodes are said to start, of four."""
    counts = hand(problem=sf.Problem(R, H=2, stationary=True)).pool()
    counts.n_start[:] = [5, 0]
    return counts


def test_an_explorer_that_changes_what_it_is_given_harms_nobody():
    def vandal(counts, rng):
        counts.played[:] = 10**6
        counts.baseline_returns[:] = 10**6
        counts.origin = None
        return UNIFORM

    counts = hand(problem=PROBLEM)
    before = counts.copy()
    plan = agent(explorer=vandal).plan(counts, np.random.default_rng(0))
    assert counts == before == plan.grounds.counts
    assert counts.origin == before.origin
    quiet = agent(explorer=lambda counts, rng: UNIFORM).plan(counts, np.random.default_rng(0))
    assert plan.candidates.tolist() == quiet.candidates.tolist()


def test_arrays_that_change_later_change_nothing():
    r, start, support = R.copy(), np.array([0.5, 0.5]), np.ones((2, 2, 2), dtype=bool)
    problem = sf.Problem(r, H=2, start=start, support=support)
    baseline, states, rewards = np.full((2, 2, 2), 0.5), np.array([0, 1, 1]), np.array([0.5, 0.5])
    mine, mixture = (
        sf.StepMix(problem, baseline, 0.1),
        sf.EpisodicMixture(baseline, baseline, 0.5),
    )
    episode = sf.Episode(states, states[1:], rewards)
    n_sas, x_sa, n_start = (
        HAND.copy(),
        np.ones((2, 2, 2), dtype=int) * (HAND.sum(-1) > 0),
        np.array([4, 0]),
    )
    counts = sf.Counts(n_sas, x_sa=x_sa, n_start=n_start, problem=problem)
    before = problem.fingerprint, problem.origin, mine.fingerprint, counts.copy()
    for array in (r, start, support, baseline, rewards, n_sas, x_sa, n_start):
        array[:] = 0
    states[:] = 0
    assert (
        problem.fingerprint,
        sf.Problem(**problem.arguments()).origin,
        mine.fingerprint,
        counts,
    ) == before
    assert (episode.states.tolist(), episode.actions.tolist(), episode.rewards.tolist()) == (
        [0, 1, 1],
        [1, 1],
        [0.5] * 2,
    )
    assert (mixture.first == 0.5).all()
    for frozen in (
        problem.r,
        problem.start,
        problem.support,
        mine.baseline,
        episode.states,
        episode.rewards,
    ):
        with pytest.raises(ValueError, match="read-only"):
            frozen[...] = 0


def test_two_threads_do_not_count_an_episode_twice(monkeypatch):
    learner = sf.Learner(agent(), 0)
    learner.begin()
    for _ in range(2):
        learner.act()
        learner.observe(0)
    slow = live.Episode.of

    def of(*given):
        time.sleep(0.05)
        return slow(*given)

    monkeypatch.setattr(live.Episode, "of", of)
    refusals = []

    def end():
        try:
            learner.end()
        except sf.SurefootError as reason:
            refusals.append(str(reason))

    in_threads(end)
    assert learner.counts.episodes == learner.episodes == 1
    assert len(refusals) == 1
    assert "No episode is under way" in refusals[0]
