"""A name that is a link stands for the file that it leads to: the link stays, and both names
have one lock.
"""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf

WORLD = sf.random_mdp(S=3, A=2, H=2, seed=0)
AGENT = sf.StepMix(WORLD.problem, sf.uniform(2, 3, 2), floor=0.1)
GUARD = sf.Guard(floor=0.4, low=0.0, high=1.0, stages=())


class Coin(gymnasium.Env):
    """One step that pays 0.5; `during` is called in it."""

    observation_space, action_space = Discrete(1), Discrete(2)

    def __init__(self, during=lambda: None):
        self.during = during

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        self.during()
        return 0, 0.5, True, False, {}


PROBLEM = sf.from_gymnasium(Coin(), horizon=1, reward_range=(0, 1), start=0)
LIVE = sf.EpsMix(PROBLEM, sf.uniform(1, PROBLEM.S, 2), floor=0.1)


def learn(path, during=lambda: None, resume=False):
    sf.learn(Coin(during), LIVE, episodes=5, seed=0, save=path, resume=resume)


def guard(path, during=lambda: None, resume=False):
    policies = {"baseline": lambda _: 0, "candidate": lambda _: 1}
    sf.guard_env(Coin(during), GUARD, **policies, episodes=5, seed=0, save=path, resume=resume)


def plans(path):
    with sf.Ledger(path, AGENT) as ledger:
        ledger.write(AGENT.plan(sf.Counts.zeros(WORLD.problem)))


def plans_of_a_guard(path):
    state = GUARD.begin()
    with sf.GuardLedger(path, GUARD) as ledger:
        ledger.write(GUARD.plan(state))
        ledger.close(state)


WRITERS = {
    "counts": lambda path: sf.Counts.zeros(WORLD.problem).save(path),
    "policy": lambda path: sf.save_policy(path, sf.uniform(1, 1, 1)),
    "learner": lambda path: sf.save_learner(sf.Learner(AGENT, seed=0), path),
    "guard": lambda path: GUARD.save(GUARD.begin(), path),
    "learn": learn,
    "guard_env": guard,
    "picture": lambda path: sf.plot_returns(sf.simulate(WORLD, AGENT, 3, 0), path),
    "ledger": plans,
    "ledger of a guard": plans_of_a_guard,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_link_stays_a_link_and_the_file_it_leads_to_is_written(tmp_path, write):
    (tmp_path / "there").mkdir()
    there, link, name = (
        tmp_path / "there" / "file.png",
        tmp_path / "link.png",
        Path("there") / "file.png",
    )
    link.symlink_to(name)
    write(link)
    assert link.is_symlink() and link.readlink() == name
    assert there.stat().st_size > 0 and not there.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.png", "there"]
    # no lock, no journal, no half of a file
    assert [path.name for path in there.parent.iterdir()] == ["file.png"]


@pytest.mark.parametrize("run", [learn, guard])
def test_two_names_of_one_file_have_one_lock(tmp_path, run):
    file, link = tmp_path / "run.npz", tmp_path / "link.npz"
    link.symlink_to(file)
    refused = []

    def other():
        if not refused:
            with pytest.raises(sf.InvalidFile, match="another process") as refusal:
                run(file, resume=True)
            refused.append(refusal)

    run(link, other)
    assert len(refused) == 1
    run(file, resume=True)  # and both go on with the same run


def test_a_run_goes_on_by_its_other_name_with_its_ledger(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("run.npz", "run.ledger"):
        (tmp_path / name).symlink_to(tmp_path / "there" / name)
    settings = {"episodes": 5, "seed": 0}
    sf.learn(Coin(), LIVE, **settings, save=tmp_path / "run.npz", ledger=tmp_path / "run.ledger")
    settings["episodes"] = 9
    run = sf.learn(Coin(), LIVE, **settings, save=tmp_path / "there" / "run.npz", resume=True)
    assert run.episodes == 9 and not sf.check_ledger(tmp_path / "run.ledger").refusals
    assert all((tmp_path / name).is_symlink() for name in ("run.npz", "run.ledger"))


def test_links_in_a_circle_are_refused(tmp_path, assert_refused):
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    one.symlink_to(other)
    other.symlink_to(one)
    assert_refused(
        sf.InvalidFile,
        r"one\.npz is a link that leads in a circle",
        sf.save_policy,
        one,
        np.ones((1, 1, 1)),
    )


def test_a_file_that_is_moved_to_the_name_of_a_link_replaces_it(tmp_path):
    """The control: written beside and moved there, as whole files are written, but to the name
    that was given.
    """
    there, link, new = (tmp_path / name for name in ("there.npz", "link.npz", "new.npz"))
    there.write_bytes(b"old")
    link.symlink_to(there)
    new.write_bytes(b"new")
    new.replace(link)
    assert not link.is_symlink() and there.read_bytes() == b"old"
