"""An episode that was begun is counted, or it leaves its mark: whatever refused it, and however it
was dropped.

Three steps pay 0 or 1, the latter with probability 0.51: by enumeration of the eight episodes the
policy is worth 1.53. Here whoever plays drops every episode at its first 0, in each of the ways
that there are. Only episodes that pay 3 are left, and more than 2.5 is certified: the wrong rule,
which is to leave no mark, is run beside the right one.
"""

import itertools
import math
import threading
import time

import gymnasium
import numpy as np
import pytest

import surefoot as sf
from learners import begun, play
from saved import reloaded
from surefoot.evidence.tables import CountTables
from surefoot.run import marks
from threads import in_threads

P, H, FLOOR, EPISODES = 0.51, 3, 2.0, 3000
PROBLEM = sf.Problem(np.zeros((1, 2)), H=H, unknown=True)
AGENT = sf.StepMix(PROBLEM, np.broadcast_to([0.5, 0.5], (H, 1, 2)), FLOOR, replan=1.0)
TRUE = sum(
    math.prod(P if x else 1.0 - P for x in paid) * sum(paid)
    for paid in itertools.product((0, 1), repeat=H)
)


class Broken:
    """Whether it was cut raises an error that is not ours."""

    def __bool__(self):
        raise RuntimeError("no answer")


REFUSED = {
    "an end too early": lambda learner: learner.end(),
    "no reward": lambda learner: learner.observe(0, None),
    "a bool": lambda learner: learner.observe(0, False),
    "a text": lambda learner: learner.observe(0, "0"),
    "an array of one": lambda learner: learner.observe(0, np.zeros(1)),
    "an array": lambda learner: learner.observe(0, np.zeros(2)),
    "a text that is no number": lambda learner: learner.observe(0, "0,0"),
    "not a number": lambda learner: learner.observe(0, math.nan),
    "another state": lambda learner: learner.observe(1, 0.0),
    "no state": lambda learner: learner.observe(None, 0.0),
    "a cut": lambda learner: learner.observe(0, 0.0, truncated=True),
    "an early end": lambda learner: learner.observe(0, 0.0, terminated=True),
    "an error that is not ours": lambda learner: learner.observe(0, 0.0, truncated=Broken()),
    "a state that was not observed": lambda learner: learner.act(1),
}


def refused(way):
    """Let this be refused, and drop the episode."""

    def drop(learner):
        with pytest.raises((sf.InvalidEpisode, RuntimeError)):
            REFUSED[way](learner)
        learner.abandon()
        return learner

    return drop


def abandoned(learner):
    """Drop the episode before anything of this step is said."""
    learner.abandon()
    return learner


def rewound(learner):
    """Play it again, but not to the same outcome."""
    learner.observe(0, 0.0)
    learner.rewind()
    return learner


DROPPED = {
    **{way: refused(way) for way in REFUSED},
    "abandoned": abandoned,
    "rewound, then something else": rewound,
    "another learner": lambda learner: sf.Learner(AGENT, 1, learner.counts),
    "another learner with a copy": lambda learner: sf.Learner(AGENT, 1, learner.counts.copy()),
}


def attack(drop):
    """Drop every episode at its first 0; return the counts."""
    learner, rng = sf.Learner(AGENT, 0), np.random.default_rng(0)
    for _ in range(EPISODES):
        try:
            learner.begin()
            learner = played(learner, rng, drop)
        except sf.InvalidEpisode:
            learner.abandon()
        except sf.InvalidCounts:
            break
    return learner.counts


def played(learner, rng, drop):
    """Play one episode to its end, or to its first 0."""
    for _ in range(H):
        learner.act(0)
        reward = float(rng.random() < P)
        if not reward:
            return drop(learner)
        learner.observe(0, reward)
    learner.end()
    return learner


def assert_falsely_certified(agent, counts):
    """2.9 or so where 1.53 is true."""
    plan = agent.plan(counts)
    assert plan.certified
    assert plan.lower > 2.5 > TRUE


@pytest.fixture
def without_marks(monkeypatch):
    """The wrong rule: counts that lack an episode are taken like any others."""
    monkeypatch.setattr(CountTables, "require_unselected", lambda self: None)


def test_the_truth_is_known():
    assert pytest.approx(1.53) == TRUE < FLOOR


@pytest.mark.parametrize("drop", DROPPED.values(), ids=DROPPED)
def test_nothing_is_proved_where_an_episode_was_dropped(drop, tmp_path, assert_refused):
    counts = attack(drop)
    assert counts.refused == 1
    assert "1 episodes DROPPED" in repr(counts)
    for held in (counts, counts.copy(), reloaded(counts, tmp_path)):
        for use in (AGENT.plan, lambda held: sf.Learner(AGENT, 2, held)):
            assert_refused(sf.InvalidCounts, "selected by its outcome", use, held)


@pytest.mark.parametrize("drop", [refused("no reward"), refused("an end too early"), abandoned])
def test_without_a_mark_a_false_value_is_certified(drop, without_marks):
    """The control. 2.9 where 1.53 is true, by whatever was dropped without a word."""
    assert_falsely_certified(AGENT, attack(drop))


# What says nothing of the outcome: it may be told afterwards.
SAY_NOTHING = ("an end too early", "no reward", "a state that was not observed")
# What says the reward, so that it may be told again, and no other one.
SAY_A_REWARD = ("a bool", "a text", "an array of one", "no state")


@pytest.mark.parametrize("way", REFUSED)
def test_a_refusal_is_marked_at_once_and_what_was_left_out_takes_the_mark_off(way):
    """Not where another reward, state or end is given than was told with what was refused: that
    changes the data.
    """
    for paid in (1.0, 0.0):
        learner = begun(AGENT)
        for _ in range(2):  # it is refused again, and counts once
            with pytest.raises((sf.InvalidEpisode, RuntimeError)):
                REFUSED[way](learner)
            assert learner.counts.refused == 1
        learner.observe(0, paid)
        right = way in SAY_NOTHING or (way in SAY_A_REWARD and paid == 0.0)
        assert learner.counts.refused == (not right)
        play(learner, [1.0] * (H - 1))
        learner.end()
        assert learner.counts.refused == (not right)
        if right:
            learner.begin()
        else:
            with pytest.raises(sf.InvalidCounts, match="selected by its outcome"):
                learner.begin()


def told_another(learner):
    """A reward is refused with a false state, and the best one is given in its place."""
    with pytest.raises(sf.InvalidEpisode):
        learner.observe(1, 0.0)
    while True:
        learner.observe(0, 1.0)
        if learner.step == H:
            break
        learner.act(0)
    learner.end()
    return learner


def told_then_rewound(learner):
    """A reward is told, refused with a false state, and the episode is rewound, to be played to
    another one.
    """
    with pytest.raises(sf.InvalidEpisode):
        learner.observe(1, 0.0)
    learner.rewind()
    learner.begin()
    play(learner, [1.0])
    learner.abandon()
    return learner


@pytest.mark.parametrize("told", [True, False])
def test_what_was_told_stands_after_rewinding(told):
    """A reward of 0 is told, refused with a false state, and the episode is played again to a
    reward of 1. Control: where nothing was told, nothing is another one.
    """
    learner = begun(AGENT)
    if told:
        with pytest.raises(sf.InvalidEpisode):
            learner.observe(1, 0.0)
    learner.rewind()
    learner.begin()
    play(learner, [1.0] * H)
    learner.end()
    assert learner.counts.refused == told


def rewound_for_another(learner):
    """The episode was seen, is rewound, and another learner takes the counts."""
    learner.observe(0, 0.0)
    learner.rewind()
    return sf.Learner(AGENT, 0, learner.counts)


def merged_under_way(learner):
    """The episode is under way while its counts are joined with others."""
    return sf.Learner(
        AGENT, 0, sf.Counts.zeros(PROBLEM, learner.counts.pooled).merge(learner.counts)
    )


ROUND = {"told another": told_another, "told, then rewound": told_then_rewound}
ROUND |= {"rewound for another": rewound_for_another, "merged under way": merged_under_way}


@pytest.mark.parametrize("drop", ROUND.values(), ids=ROUND)
def test_no_way_round_the_mark(drop, monkeypatch):
    """Each dropped every episode with a 0 from the evidence. The control: without marks a false
    value is certified.
    """
    counts = attack(drop)
    assert counts.refused or counts.playing
    with pytest.raises(sf.InvalidCounts):
        sf.Learner(AGENT, 2, counts).begin()
    monkeypatch.setattr(CountTables, "require_unselected", lambda self: None)
    monkeypatch.setattr(marks.Mark, "require_none", lambda self: None)
    monkeypatch.setattr(marks.Mark, "require_as_before", lambda self, i, now: None)
    assert_falsely_certified(AGENT, attack(drop))


def test_a_first_state_is_an_outcome_where_there_are_several():
    """Whoever drops the episodes that start in one of them has selected: 1 is certified, where 0.5
    is true. With one start nothing was seen before the first action.
    """
    problem = sf.Problem(np.array([[0.0], [1.0]]), H=1, start="unknown")
    agent = sf.EpsMix(problem, np.ones((1, 2, 1)), 0.6, delta=0.05)
    learner, rng = sf.Learner(agent, seed=0), np.random.default_rng(0)
    with pytest.raises(sf.InvalidCounts, match="selected by its outcome"):
        for _ in range(200):
            learner.begin()
            first = int(rng.random() < 0.5)
            if first:
                learner.act(first)
                learner.observe(first)
                learner.end()
            else:
                learner.abandon()


def played_whole(learner, rng):
    learner.begin()
    play(learner, (rng.random(H) < P).astype(np.float64))
    learner.end()


def test_what_is_dropped_before_it_is_played_changes_nothing():
    """Nobody knows yet what comes out. And nothing is under way after the end, whatever is
    called then.
    """
    learner, honest = sf.Learner(AGENT, 0), sf.Learner(AGENT, 0)
    for k in range(20):
        for _ in range(k % 3):
            learner.begin()
            learner.abandon()
        for each in (learner, honest):
            played_whole(each, np.random.default_rng(k))
        for call in (learner.end, learner.act, lambda: learner.observe(0, 1.0)):
            with pytest.raises(sf.InvalidEpisode):
                call()
    assert learner.counts == honest.counts
    assert learner.counts.refused == 0


@pytest.mark.parametrize(
    "call", [lambda it: it.end(), lambda it: it.act(), lambda it: it.observe(0, 1.0)]
)
def test_a_call_after_an_abandoned_episode_leaves_its_mark(call):
    learner = begun(AGENT)
    learner.abandon()
    with pytest.raises(sf.InvalidEpisode, match=r"No episode is under way|no action to observe"):
        call(learner)
    learner.rewind()
    assert learner.counts.refused == 1


def test_an_episode_that_is_played_again_to_the_same_outcome_was_not_dropped():
    """From the same seed, rewound anywhere, also twice, and after a refusal."""
    learner, honest = sf.Learner(AGENT, 0), sf.Learner(AGENT, 0)
    for k in range(30):
        played_whole(honest, np.random.default_rng(k))
        for stop in (k % 4, (k + 1) % 3):
            rng = np.random.default_rng(k)
            learner.begin()
            play(learner, (rng.random(min(stop, H)) < P).astype(np.float64))
            if k % 5 == 0:
                with pytest.raises(sf.InvalidEpisode):
                    learner.observe(0, 1.0)  # nobody asked
            learner.rewind()
            assert learner.counts.refused == 0
        played_whole(learner, np.random.default_rng(k))
    assert learner.counts == honest.counts


@pytest.mark.parametrize("again", [1.0, 0.5])
def test_a_refused_reward_is_not_replaced_by_rewinding(again):
    learner = sf.Learner(AGENT, 0)
    for reward in (7.0, again):
        learner.begin()
        learner.act(0)
        with pytest.raises(sf.InvalidEpisode, match=r"outside the declared range|was rewound"):
            learner.observe(0, reward)
        assert learner.counts.refused == 1
        learner.rewind()


def test_another_first_state_after_rewinding_is_refused():
    problem = sf.Problem(np.zeros((2, 1)), H=1, start="unknown", unknown=True)
    learner = sf.Learner(sf.StepMix(problem, np.ones((1, 2, 1)), 0.1), seed=0)
    learner.begin()
    learner.act(1)
    learner.rewind()
    learner.begin()
    with pytest.raises(
        sf.InvalidEpisode, match="was rewound, to be played again, but after 0 steps"
    ):
        learner.act(0)
    assert learner.counts.refused == 1


def test_a_process_that_is_killed_leaves_the_counts_before_its_episode(tmp_path):
    """Whoever goes on from them says that the outcome had nothing to do with it."""
    learner = sf.Learner(AGENT, 0)
    played_whole(learner, np.random.default_rng(0))
    learner.begin()
    learner.act(0)
    loaded = reloaded(learner.counts, tmp_path)
    assert (loaded.episodes, loaded.refused, loaded.playing) == (1, 0, False)
    played_whole(sf.Learner(AGENT, 0, loaded), np.random.default_rng(1))


# ---- loops without a learner


def added(refuse, keep_trying=True):
    """Add bare episodes, and leave out those that are refused: those with a 0 are reported as
    impossible.
    """
    counts, rng = sf.Counts.zeros(PROBLEM), np.random.default_rng(0)
    AGENT.take_over(counts)  # its baseline's returns, and no other's
    for _ in range(EPISODES):
        paid = (rng.random(H) < P).astype(np.float64)
        episode = sf.Episode([0] * (H + 1), [0] * H, paid) if paid.all() else refuse(paid)
        try:
            counts.add(episode)
        except sf.InvalidEpisode:
            if not keep_trying:
                break
    return counts


TOLD = {  # how an episode that has a 0 is told so that it is refused
    "rewards out of range": lambda paid: sf.Episode.of(PROBLEM, [0] * 4, [0] * 3, paid + 7.0),
    "no numbers": lambda paid: sf.Episode([0] * 4, [0] * 3, [math.nan] * 3),
    "too short": lambda paid: sf.Episode.of(PROBLEM, [0] * 2, [0], paid[:1]),
    "another state": lambda paid: sf.Episode.of(PROBLEM, [0, 1, 0, 0], [0] * 3, paid),
}
IMPOSSIBLE = {
    **TOLD,
    "a reward": lambda paid: sf.Episode([0] * (H + 1), [0] * H, paid + 7.0),
    "no rewards": lambda paid: sf.Episode([0] * (H + 1), [0] * H),
    "a state": lambda paid: sf.Episode([0] * H + [1], [0] * H, paid),
    "a start": lambda paid: sf.Episode([1] + [0] * H, [0] * H, paid),
    "too short": lambda paid: sf.Episode([0] * H, [0] * (H - 1), paid[1:]),
    "another problem": lambda paid: sf.Episode.of(ELSEWHERE, [0] * (H + 1), [0] * H, paid),
    "another baseline": lambda paid: sf.Episode([0] * (H + 1), [0] * H, paid, baseline="another"),
    "no episode": lambda paid: None,
}
ELSEWHERE = sf.Problem(np.zeros((1, 2)), H=H, unknown=True, units=sf.Units(0.0, 2.0))


@pytest.mark.parametrize("refuse", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_counts_that_refused_an_episode_prove_nothing(refuse, monkeypatch):
    counts = added(refuse, keep_trying=False)
    assert counts.refused == 1
    with pytest.raises(sf.InvalidCounts, match="selected by its outcome"):
        AGENT.plan(counts)
    monkeypatch.setattr(CountTables, "require_unselected", lambda self: None)
    assert_falsely_certified(AGENT, added(refuse))  # the control


@pytest.mark.parametrize("way", TOLD)
def test_an_episode_is_refused_where_it_is_counted(way):
    """To make one that cannot be raises nothing: who leaves it out would leave no mark."""
    assert "REFUSED" in repr(TOLD[way](np.zeros(H)))
    counts = added(TOLD[way])
    assert counts.refused > 2000
    with pytest.raises(sf.InvalidCounts, match="selected by its outcome"):
        AGENT.plan(counts)


def test_an_episode_that_is_held_already_was_not_dropped():
    counts = sf.Counts.zeros(PROBLEM)
    episode = sf.Episode.of(PROBLEM, [0] * (H + 1), [0] * H, [1.0] * H)
    counts.add(episode, number=("here", 0))
    with pytest.raises(sf.InvalidCounts, match="already"):
        counts.add(episode, number=("here", 0))
    assert counts.refused == 0


# ---- The same process behind other doors


ODD = {  # how an outcome of 0 is told so that it is refused
    "a reward out of range": lambda: (0, -7.0, False, False, {}),
    "not a number": lambda: (0, math.nan, False, False, {}),
    "a state that is not there": lambda: (5, 0.0, False, False, {}),
    "a cut": lambda: (0, 0.0, False, True, {}),
}


class Coin(gymnasium.Env):
    """Three steps that pay 0 or 1, and obey their seed; a 0 is told in one of these ways."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, odd):
        self.odd = odd

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        won = self.np_random.random() < P
        return (0, 1.0, False, False, {}) if won else ODD[self.odd]()


def learnt_one_by_one(odd, episodes=1500):
    """Call `learn` for each episode, with the counts so far; leave out what it refuses."""
    env = Coin(odd)
    problem = sf.from_gymnasium(env, horizon=H, reward_range=(0, 1), start=0, stationary=True)
    baseline = np.full((H, problem.S, 2), 0.5)
    agent = sf.StepMix(problem, baseline, FLOOR, replan=1.0)
    counts = sf.Counts.zeros(problem)
    for seed in range(episodes):
        try:
            counts = sf.learn(env, agent, 1, seed=seed, counts=counts, progress=False).counts
        except sf.InvalidCounts:
            return agent, counts
        except sf.SurefootError:
            continue
    return agent, counts


@pytest.mark.parametrize("odd", ODD)
def test_learn_marks_what_it_refused_in_the_counts_that_it_was_given(odd):
    agent, counts = learnt_one_by_one(odd)
    assert counts.refused
    with pytest.raises(sf.InvalidCounts, match="selected by its outcome"):
        agent.plan(counts)


def test_without_that_a_false_value_is_certified(without_marks):
    """The control."""
    assert_falsely_certified(*learnt_one_by_one("a reward out of range"))


# ---- states, threads and ends


PAYS_LATE = np.zeros((2, 3, 1))
PAYS_LATE[1, 1] = 1.0
MASK = np.array([[[True, True, False]], [[True, True, False]], [[True, True, True]]])


@pytest.mark.parametrize("outcome", [2, 3], ids=["masked", "none"])
def test_an_episode_that_is_dropped_because_of_a_refused_state_marks_the_counts(
    outcome, assert_refused
):
    """States outside the list or the mask: 0.8 was certified where 0.7 is true (50 of 50 each)."""
    agent = sf.StepMix(sf.Problem(PAYS_LATE, support=MASK), np.ones((2, 3, 1)), 0.5)
    learner = begun(agent)
    learner.observe(1)
    learner.act(1)
    learner.observe(1)
    learner.end()
    assert agent.plan(learner.counts).lower >= 0.0  # the control
    learner.begin()
    learner.act(0)
    for _ in range(2):  # the same again is refused again, and counts once
        with pytest.raises(sf.InvalidEpisode):
            learner.observe(outcome)
    learner.abandon()
    for use in (learner.begin, lambda: agent.plan(learner.counts)):
        assert_refused(
            sf.InvalidCounts,
            r"1 episode.*a state or an end was refused.*selected by its outcome",
            use,
        )


def test_an_impossible_first_state_marks_the_counts(assert_refused):
    agent = sf.StepMix(sf.Problem(PAYS_LATE, start=[0.5, 0.5, 0.0]), np.ones((2, 3, 1)), 0.5)
    learner = sf.Learner(agent, seed=0)
    for first in (2, 7):
        learner.begin()
        assert_refused(sf.InvalidEpisode, f"The first state is {first}", learner.act, first)
        learner.rewind()  # the control: it will be played again
        assert learner.counts.refused == 0
    learner.begin()
    assert_refused(sf.InvalidEpisode, "impossible", learner.act, 2)
    learner.abandon()
    assert_refused(sf.InvalidCounts, "selected by its outcome", learner.begin)


def test_two_threads_do_not_begin_the_same_episode():
    """Planning takes a while, and both passed the check together: 9 of 47 episodes held what
    both had seen.
    """
    problem, even = sf.Problem(np.zeros((1, 2)), H=3, unknown=True), np.full((3, 1, 2), 0.5)

    def slow(counts, rng):
        time.sleep(0.002)
        return even

    agent = sf.StepMix(problem, even, 1.2, explorer=slow, replan=0.0)
    learner, together, seen = sf.Learner(agent, seed=0), threading.Barrier(2, timeout=30), []

    def play_all():
        for _ in range(20):
            together.wait()
            try:
                learner.begin()
            except sf.InvalidEpisode as reason:
                seen.append(str(reason))
                continue
            for h in range(3):
                learner.act(0)
                time.sleep(0.0002)
                learner.observe(0, 1.0 if h == 0 else 0.0)
            seen.append(learner.end().rewards.tolist())

    in_threads(play_all)
    assert {str(one) for one in seen} <= {
        "[1.0, 0.0, 0.0]",
        *(one for one in seen if "under way" in str(one)),
    }
    assert len(seen) == 40
    assert seen.count([1.0, 0.0, 0.0]) == learner.counts.episodes >= 20


def test_an_absorbing_state_is_no_ordinary_one(assert_refused):
    """A process that ends early, kept in a state that pays 1: 1.4 was certified, and false (10
    of 10).
    """
    paid, ones = np.array([[0.0], [1.0], [0.0]]), np.ones((4, 3, 1))
    agent = sf.StepMix(sf.Problem(paid, H=4), ones, 1.4)
    assert_refused(
        sf.InvalidSetting,
        r"absorbing_state is 1, which pays 1 a step.*a state of its own",
        sf.Learner,
        agent,
        0,
        absorbing_state=1,
    )
    mask = np.ones((3, 1, 3), dtype=bool)
    assert_refused(
        sf.InvalidSetting,
        r"absorbing_state is 2.*by the problem's `support`.*can be left",
        sf.Learner,
        sf.StepMix(sf.Problem(paid, H=4, support=mask), ones, 1.4),
        0,
        absorbing_state=2,
    )
    learner = sf.Learner(agent, 0, absorbing_state=2)
    learner.begin()
    learner.act(0)
    assert_refused(sf.InvalidEpisode, "came to state 2 without an end", learner.observe, 2)
    learner.observe(1, terminated=True)  # controls
    assert learner.end().states.tolist() == [0, 2, 2, 2, 2]
    mask[2] = [[False, False, True]]
    masked = sf.StepMix(sf.Problem(paid, H=4, support=mask), ones, 1.4)
    learner = sf.Learner(masked, 0, absorbing_state=2)
    learner.begin()
    play(learner, [None], state=2)  # never left: whether this is called an end makes no difference
    unknown = sf.StepMix(sf.Problem(paid, H=4, unknown=True), ones, 1.4)
    assert sf.Learner(unknown, 0, absorbing_state=1).after_end == 0.0
