"""The coin of an episodic mixture: of the episode's number and of the user's generator, and of
no number of theirs.
"""

import copy
import hashlib
import json
import pickle

import numpy as np
import pytest

import surefoot as sf
from saved import reloaded
from surefoot.bounds.certificate import fingerprint_of

FIRST, SECOND = (np.broadcast_to(np.eye(2)[a], (2, 2, 2)) for a in (0, 1))
KINDS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.MT19937, np.random.SFC64)


def coin(rho=0.5):
    return sf.Plan(
        sf.EpisodicMixture(FIRST, SECOND, rho), "mixture", 2, rho, 0.0, 2.0, [0.0], "no floor"
    )


def eps_agent(**changes):
    world = sf.random_mdp(S=3, A=3, H=3, seed=2)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=3.0)
    certificate = sf.Certificate(1.98, 0.01, fingerprint_of(baseline, world.problem))
    agent = sf.EpsMix(world.problem, baseline, 1.95, certificate=certificate, **changes)
    return world, agent, sf.Counts.zeros(world.problem)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_number_and_generator_are_the_same_coin(kind):
    """From plan to plan and process to process. Another number, or another seed, is another
    coin.
    """
    sides = [
        [bool(coin().draw(np.random.Generator(kind(seed)), episode=k).baseline) for k in range(200)]
        for seed in (0, 1)
    ]
    again = [
        bool(coin().draw(np.random.Generator(kind(0)), episode=k).baseline) for k in range(200)
    ]
    assert again == sides[0] != sides[1]
    # 100 expected; 40 are more than 5 standard deviations
    assert all(60 < sum(each) < 140 for each in sides)


def test_the_coin_is_the_one_that_is_written_down():
    """In docs/gymnasium.md: SHA-256 of a text, which is a key of Philox."""
    for k in range(50):
        u = np.random.default_rng([7, k]).random()
        text = json.dumps(["surefoot coin 1", "plan", k, u.hex()])
        key = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype="<u8").astype(
            np.uint64
        )
        tossed = np.random.Generator(np.random.Philox(key=key)).random()
        assert bool(coin(0.3).draw(np.random.default_rng([7, k]), episode=k).baseline) == (
            tossed >= 0.3
        )


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_a_coin_with_one_side_is_not_tossed(rho):
    """No number of the generator is drawn."""
    plan, rng = coin(rho), np.random.default_rng(0)
    for k in range(3):
        assert bool(plan.draw(rng, episode=k).baseline) == (rho == 0.0)
    assert rng.random() == np.random.default_rng(0).random()


def test_a_plan_without_a_coin_takes_any_generator():
    plan = sf.Plan.plain(FIRST)
    assert plan.draw(None, episode=0).policy is plan.policy


@pytest.mark.parametrize("episode", [-1, 0.5, True, None, "0"])
def test_an_episode_has_a_number(episode):
    with pytest.raises(sf.InvalidSetting, match=r"episode is .*, expected an integer >= 0"):
        coin().draw(np.random.default_rng(0), episode=episode)
    assert coin().draw(np.random.default_rng(0), episode=np.int64(2**62)) is not None
    with pytest.raises(TypeError, match="episode"):
        coin().draw(np.random.default_rng(0))


def test_what_is_no_generator_is_refused():
    class Heads:
        def random(self):
            return 0.9

    assert coin().draw(Heads(), episode=0) is not None  # anything that draws
    for rng in (0, None):
        with pytest.raises(sf.InvalidSetting, match=r"rng is .*, expected a generator such as"):
            coin().draw(rng, episode=0)


def test_plans_and_counts_can_still_be_copied():
    """As workers do."""
    _, agent, counts = eps_agent()
    plan = agent.plan(counts)
    for again in (copy.copy, copy.deepcopy, lambda some: pickle.loads(pickle.dumps(some))):
        assert again(plan).rho == plan.rho
        assert again(counts) == counts


@pytest.mark.parametrize("drop", ["abandon", "rewind"])
def test_a_learner_may_play_an_episode_again(drop, tmp_path):
    """From the very same numbers, also after a restart. Control: another seed."""
    world, agent, _ = eps_agent()

    def played(learner):
        assert 0.0 < learner.begin().rho < 1.0
        actions = []
        for s in range(world.H):
            actions.append(learner.act())
            learner.observe(s)
        learner.rewind()
        return actions

    first, learner = played(sf.Learner(agent, 0)), sf.Learner(agent, 0)
    learner.begin()
    getattr(learner, drop)()
    assert played(learner) == first
    again = sf.Learner(agent, 0, reloaded(learner.counts, tmp_path))
    assert played(again) == first
    assert any(played(sf.Learner(agent, seed)) != first for seed in range(1, 5))
