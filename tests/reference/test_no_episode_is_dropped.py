"""An episode that was begun is counted, or it leaves its mark: whatever refused it, and however it was dropped.

Three steps pay 0 or 1, the latter with probability 0.51: by enumeration of the eight episodes the policy is worth 1.53.
Here whoever plays drops every episode at its first 0, in each of the ways that there are. Only episodes that pay 3 are
left, and more than 2.5 is certified: the wrong rule, which is to leave no mark, is run beside the right one.
"""

import itertools
import math

import numpy as np
import pytest

import surefoot as sf
from surefoot.task.tables import CountTables

P, H, FLOOR, EPISODES = 0.51, 3, 2.0, 3000
PROBLEM = sf.Problem(np.zeros((1, 2)), H=H, unknown=True)
AGENT = sf.StepMix(PROBLEM, np.broadcast_to([0.5, 0.5], (H, 1, 2)), FLOOR, replan=sf.Blocks(1.0))
TRUE = sum(math.prod(P if x else 1.0 - P for x in paid) * sum(paid) for paid in itertools.product((0, 1), repeat=H))


class Broken:
    """Whether it was cut raises an error that is not ours."""

    def __bool__(self):
        raise RuntimeError("no answer")


REFUSED = {
    "an end too early": lambda learner: learner.end(),
    "no reward": lambda learner: learner.observe(0, None),
    "a bool": lambda learner: learner.observe(0, False),
    "a text": lambda learner: learner.observe(0, "0"),
    "an array": lambda learner: learner.observe(0, np.zeros(2)),
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


def test_the_truth_is_known():
    assert pytest.approx(1.53) == TRUE < FLOOR


@pytest.mark.parametrize("drop", DROPPED.values(), ids=DROPPED)
def test_nothing_is_proved_where_an_episode_was_dropped(drop, tmp_path):
    counts = attack(drop)
    assert counts.refused == 1
    assert "1 episodes DROPPED" in repr(counts)
    counts.save(tmp_path / "counts.npz")
    for held in (counts, counts.copy(), sf.Counts.load(tmp_path / "counts.npz")):
        for use in (AGENT.plan, lambda held: sf.Learner(AGENT, 2, held)):
            with pytest.raises(sf.InvalidCounts, match="selected by its outcome"):
                use(held)


@pytest.mark.parametrize("drop", [refused("no reward"), refused("an end too early"), abandoned])
def test_without_a_mark_a_false_value_is_certified(drop, monkeypatch):
    """The control. 2.9 where 1.53 is true, by whatever was dropped without a word."""
    monkeypatch.setattr(CountTables, "require_unselected", lambda self: None)
    plan = AGENT.plan(attack(drop))
    assert plan.certified
    assert plan.lower > 2.5 > TRUE


@pytest.mark.parametrize("way", REFUSED)
def test_a_refusal_is_marked_at_once_and_the_right_answer_takes_the_mark_off(way):
    """Not where a reward was refused that is learnt from: another one in its place changes the data."""
    learner, honest = sf.Learner(AGENT, 0), sf.Learner(AGENT, 0)
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(30):
        played_whole(honest, same)
        learner.begin()
        for h in range(H):
            learner.act(0)
            for _ in range(2 if h + 1 < H else 0):  # it is refused again, and counts once; the last step may be cut
                with pytest.raises((sf.InvalidEpisode, RuntimeError)):
                    REFUSED[way](learner)
                assert learner.counts.refused == 1
            learner.observe(0, float(rng.random() < P))
            assert learner.counts.refused == (way == "not a number")
        learner.end()
        if way == "not a number":
            break
    if way != "not a number":
        assert learner.counts == honest.counts
        assert AGENT.plan(learner.counts).candidates.max() <= TRUE


def played_whole(learner, rng):
    learner.begin()
    for _ in range(H):
        learner.act(0)
        learner.observe(0, float(rng.random() < P))
    learner.end()


def test_what_is_dropped_before_it_is_played_changes_nothing():
    """Nobody knows yet what comes out. And nothing is under way after the end, whatever is called then."""
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


@pytest.mark.parametrize("call", [lambda it: it.end(), lambda it: it.act(), lambda it: it.observe(0, 1.0)])
def test_a_call_after_an_abandoned_episode_leaves_its_mark(call):
    learner = sf.Learner(AGENT, 0)
    learner.begin()
    learner.act(0)
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
            for _ in range(min(stop, H)):
                learner.act(0)
                learner.observe(0, float(rng.random() < P))
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
    with pytest.raises(sf.InvalidEpisode, match="was rewound, to be played again, but after 0 steps"):
        learner.act(0)
    assert learner.counts.refused == 1


def test_a_process_that_is_killed_leaves_the_counts_before_its_episode(tmp_path):
    """Whoever goes on from them says that the outcome had nothing to do with it."""
    learner = sf.Learner(AGENT, 0)
    played_whole(learner, np.random.default_rng(0))
    learner.begin()
    learner.act(0)
    learner.counts.save(tmp_path / "counts.npz")
    loaded = sf.Counts.load(tmp_path / "counts.npz")
    assert (loaded.episodes, loaded.refused, loaded.playing) == (1, 0, False)
    played_whole(sf.Learner(AGENT, 0, loaded), np.random.default_rng(1))


# ---- loops without a learner


def added(refuse, keep_trying=True):
    """Add bare episodes, and leave out those that are refused: those with a 0 are reported as impossible."""
    counts, rng = sf.Counts.zeros(PROBLEM), np.random.default_rng(0)
    for _ in range(EPISODES):
        paid = (rng.random(H) < P).astype(np.float64)
        episode = sf.Episode([0] * (H + 1), [0] * H, paid) if paid.all() else refuse(paid)
        try:
            counts.add(episode)
        except sf.InvalidEpisode:
            if not keep_trying:
                break
    return counts


IMPOSSIBLE = {
    "a reward": lambda paid: sf.Episode([0] * (H + 1), [0] * H, paid + 7.0),
    "no rewards": lambda paid: sf.Episode([0] * (H + 1), [0] * H),
    "a state": lambda paid: sf.Episode([0] * H + [1], [0] * H, paid),
    "a start": lambda paid: sf.Episode([1] + [0] * H, [0] * H, paid),
    "too short": lambda paid: sf.Episode([0] * H, [0] * (H - 1), paid[1:]),
}


@pytest.mark.parametrize("refuse", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_counts_that_refused_an_episode_prove_nothing(refuse, monkeypatch):
    counts = added(refuse, keep_trying=False)
    assert counts.refused == 1
    with pytest.raises(sf.InvalidCounts, match="selected by its outcome"):
        AGENT.plan(counts)
    monkeypatch.setattr(CountTables, "require_unselected", lambda self: None)
    plan = AGENT.plan(added(refuse))  # the control
    assert plan.certified
    assert plan.lower > 2.5 > TRUE


def test_an_episode_that_is_held_already_was_not_dropped():
    counts = sf.Counts.zeros(PROBLEM)
    episode = sf.Episode.of(PROBLEM, [0] * (H + 1), [0] * H, [1.0] * H)
    counts.add(episode, number=("here", 0))
    with pytest.raises(sf.InvalidCounts, match="already"):
        counts.add(episode, number=("here", 0))
    elsewhere = sf.Problem(np.zeros((1, 2)), H=H, unknown=True, units=sf.Units(0.0, 2.0))
    with pytest.raises(sf.InvalidEpisode, match="another problem"):
        counts.add(sf.Episode.of(elsewhere, [0] * (H + 1), [0] * H, [1.0] * H))
    assert counts.refused == 0
