"""The coin of an episodic mixture, tossed again with the same numbers: noticed where it can be, and only then."""

import copy
import pickle

import numpy as np
import pytest

import surefoot as sf

FIRST, SECOND = (np.broadcast_to(np.eye(2)[a], (2, 2, 2)) for a in (0, 1))
KINDS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.MT19937, np.random.SFC64)


def coin(rho=0.5):
    return sf.Plan(sf.EpisodicMixture(FIRST, SECOND, rho), "mixture", 2, rho, 0.0, 2.0, [0.0], "no floor")


def eps_agent(**changes):
    world = sf.random_mdp(S=3, A=3, H=3, seed=2)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=3.0)
    agent = sf.EpsMix(world.problem, baseline, 1.95, baseline_at_least=1.98, **changes)
    return world, agent, sf.Counts.zeros(world.problem)


def is_refused(plan, rng):
    with pytest.raises(sf.InvalidSetting, match=r"rng is in the state .* last coin .*expected new numbers .*Make one"):
        plan.draw(rng)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_state_twice_is_refused(kind):
    """Whatever was refused is refused again; new numbers are taken, and go on."""
    plan = coin()
    first = plan.draw(np.random.Generator(kind(0))).baseline
    for _ in range(2):
        is_refused(plan, np.random.Generator(kind(0)))
    plan.draw(np.random.Generator(kind(1)))
    again = plan.draw(np.random.Generator(kind(0))).baseline  # not the last one: that cannot be told from chance
    assert again == first
    is_refused(plan, np.random.Generator(kind(0)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_generator_that_goes_on_is_never_refused(kind):
    plan, rng = coin(), np.random.Generator(kind(0))
    sides = [bool(plan.draw(rng).baseline) for _ in range(300)]
    assert 100 < sum(sides) < 200  # 150 expected; 50 are more than 5 standard deviations


def test_generators_of_the_seed_and_the_episode_are_never_refused():
    plan = coin()
    sides = {bool(plan.draw(np.random.default_rng([0, k])).baseline) for k in range(100)}
    assert sides == {False, True}


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_a_coin_with_one_side_is_not_tossed(rho):
    plan = coin(rho)
    for _ in range(3):
        assert bool(plan.draw(np.random.default_rng(0)).baseline) == (rho == 0.0)


def test_a_plan_without_a_coin_takes_any_generator():
    plan = sf.Plan.plain(FIRST)
    for _ in range(3):
        assert plan.draw(np.random.default_rng(0)).policy is plan.policy


def test_the_loop_of_the_readme_with_a_generator_made_anew():
    """Each episode has another plan, all from the same counts."""
    world, agent, counts = eps_agent()
    rng = np.random.default_rng(1)
    plan = agent.plan(counts)
    assert 0.0 < plan.rho < 1.0
    counts.add(sf.play(world, plan.draw(np.random.default_rng(0)).policy, rng))
    is_refused(agent.plan(counts), np.random.default_rng(0))
    going_on = np.random.default_rng(0)
    going_on.random()
    for _ in range(20):
        counts.add(sf.play(world, agent.plan(counts).draw(going_on).policy, rng))


def test_a_process_for_each_episode_tosses_with_new_numbers(tmp_path):
    """It loads, plans, tosses with default_rng(0), plays, adds and saves: the coin always fell the same way."""
    world, agent, counts = eps_agent()
    counts.save(tmp_path / "counts.npz")
    rng, sides = np.random.default_rng(1), set()
    for k in range(3):
        loaded = sf.Counts.load(tmp_path / "counts.npz")
        plan = agent.plan(loaded)
        assert 0.0 < plan.rho < 1.0
        if k:
            is_refused(plan, np.random.default_rng(0))
            continue
        loaded.add(sf.play(world, plan.draw(np.random.default_rng(0)).policy, rng))
        loaded.save(tmp_path / "counts.npz")
    for k in range(1, 30):  # the control: numbers of the episode
        loaded = sf.Counts.load(tmp_path / "counts.npz")
        drawn = agent.plan(loaded).draw(np.random.default_rng([0, k]))
        loaded.add(sf.play(world, drawn.policy, rng))
        loaded.save(tmp_path / "counts.npz")
        sides.add(bool(drawn.baseline))
    assert sides == {False, True}
    assert sf.Counts.load(tmp_path / "counts.npz").copy().last_toss == []


def test_what_is_remembered_is_neither_copied_nor_saved_before_the_episode_counts(tmp_path):
    """A process that was restarted may play its episode again; so may one that goes on from a copy."""
    _, agent, counts = eps_agent()
    agent.plan(counts).draw(np.random.default_rng(0))
    assert counts == sf.Counts.zeros(agent.problem)
    counts.save(tmp_path / "counts.npz")
    for other in (counts.copy(), sf.Counts.load(tmp_path / "counts.npz"), counts.copy_for(agent.problem)):
        agent.plan(other).draw(np.random.default_rng(0))
    is_refused(agent.plan(counts), np.random.default_rng(0))  # control


def test_plans_and_counts_can_still_be_copied():
    """As workers do."""
    _, agent, counts = eps_agent()
    plan = agent.plan(counts)
    for again in (copy.copy, copy.deepcopy, lambda some: pickle.loads(pickle.dumps(some))):
        assert again(plan).rho == plan.rho
        assert again(counts) == counts


def test_what_is_no_numpy_generator_is_not_judged():
    class Heads:
        def random(self):
            return 0.9

    plan = coin()
    assert plan.draw(Heads()).baseline
    assert plan.draw(Heads()).baseline


@pytest.mark.parametrize("drop", ["abandon", "rewind"])
def test_a_learner_may_play_an_episode_again(drop, tmp_path):
    """From the very same numbers, also after a restart."""
    _, agent, _ = eps_agent()
    learner = sf.Learner(agent, 0)
    for _ in range(3):
        assert 0.0 < learner.begin().rho < 1.0
        getattr(learner, drop)()
    learner.counts.save(tmp_path / "counts.npz")
    sf.Learner(agent, 0, sf.Counts.load(tmp_path / "counts.npz")).begin()
    assert learner.plan.draw(np.random.default_rng(0)) is not None


def test_loops_that_have_their_own_generator_remember_nothing():
    """They go on with one generator, so there is nothing to notice, and nothing to pay for."""
    world, agent, _ = eps_agent()
    one, other = (run(world, agent, 50, seed=0) for run in (sf.simulate, sf.simulate_reference))
    assert one.sources["mixture"] > 10
    assert one.counts.last_toss == other.counts.last_toss == []
