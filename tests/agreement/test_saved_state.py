"""Saved runs are recognised by digests of what decides how they continue."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.base import adapted
from surefoot.agents.floor_agent import FloorAgent
from surefoot.base.digest import digest
from surefoot.bounds.certificate import fingerprint_of
from surefoot.evidence.episode import Episode
from surefoot.rivals.lp_agent import LPAgent
from surefoot.run.saved_state import RunIdentity

ACCOUNTS = ("budget-exploration", "conservative-ucbvi")
H, S, A = 3, 2, 2
P = np.array([[[0.75, 0.25], [0.5, 0.5]], [[0.125, 0.875], [1.0, 0.0]]])
r = np.array([[0.5, 0.25], [0.125, 1.0]])
WORLD = sf.TabularMDP(P, r, H=H)
PROBLEM = WORLD.problem
UNKNOWN = PROBLEM.forget(rewards=True, start=True)
UNITS = sf.TabularMDP(P, sf.Rescaled(r), H=H, units=sf.Units(1.0, 3.0)).problem
BASELINE = np.broadcast_to(np.array([[0.75, 0.25], [0.5, 0.5]]), (H, S, A)).copy()
COST = np.broadcast_to(np.array([[0.5, 0.0], [0.25, 0.125]]), (H, S, A)).copy()


def explorer(counts, rng):
    """Play the baseline again."""
    return BASELINE


class Plain:
    """A user's agent without a repr of its own."""

    problem, floor, pooled, promise = PROBLEM, 0.25, False, "nothing"

    def plan(self, counts):
        return sf.Plan.plain(BASELINE)


class Named(Plain):
    def __repr__(self):
        return "Named(by its user)"


def agents():
    """An agent of each kind, and each of its settings once."""
    box, without, rule = sf.MaurerPontilBox(0.5), {"returns": None}, {"replan": 0.1}
    prior = {"bounds": sf.KL(full_support=True)} | rule
    mix, said = sf.StepMix, prior | without
    certificate = sf.Certificate(0.75, 0.01, fingerprint_of(BASELINE, PROBLEM))
    return {
        "kl": mix(PROBLEM, BASELINE, 0.5, **said),
        "kl, settings": mix(
            PROBLEM,
            BASELINE,
            0.5,
            delta=0.1234567,
            bounds=sf.KL(scale=0.5),
            replan=0.3,
            pooled=True,
            **without,
        ),
        "paper": mix.paper(PROBLEM, BASELINE, 0.5),
        "scaled": mix(PROBLEM, BASELINE, 0.5, bounds=sf.Bernstein(0.1), replan=0.1),
        "relative": mix(PROBLEM, BASELINE, sf.Relative(0.05), **said),
        "returns": mix(PROBLEM, BASELINE, 0.5, returns=sf.Returns(0.3), **prior),
        "explorer": mix(PROBLEM, BASELINE, 0.5, explorer=explorer, **said),
        "thompson": mix(PROBLEM, BASELINE, 0.5, explorer=sf.Thompson(PROBLEM, 0.5), **said),
        "certificate": mix(PROBLEM, BASELINE, 0.5, certificate=certificate, **said),
        "unknown": mix(UNKNOWN, BASELINE, 0.5, pooled=True, **said),
        "units": mix(UNITS, BASELINE, 4.0, **said),
        "epsmix": sf.EpsMix(PROBLEM, BASELINE, sf.Relative(0.25), **said),
        "step-no-mix": sf.StepNoMix(PROBLEM, BASELINE, 0.5, **said),
        "bpi-ucbvi": sf.BPIUCBVI(PROBLEM, **prior),
        "menard": sf.BPIUCBVIMenard(PROBLEM, scale=0.5, **rule),
        "ucbvi": sf.UCBVI(PROBLEM, episodes=100, scale=0.25, **rule),
        "dope": sf.DOPE(
            PROBLEM, BASELINE, cost=COST, budget=1.75, baseline_cost=1.5, episodes=50, **rule
        ),
        "optpess-lp": sf.OptPessLP(
            PROBLEM,
            BASELINE,
            sf.Relative(0.5),
            baseline_value=1.25,
            episodes=50,
            bounds=box,
            pooled=True,
            **rule,
        ),
        "budget-exploration": sf.BudgetExploration(
            PROBLEM, BASELINE, 0.5, learner=sf.UCBVI(PROBLEM, episodes=100, **rule), **prior
        ),
        "conservative-ucbvi": sf.ConservativeUCBVI(
            PROBLEM,
            BASELINE,
            0.5,
            baseline_value=1.25,
            learner=sf.BPIUCBVI(PROBLEM, delta=0.01, **prior),
            **prior,
        ),
        "plain": Plain(),
        "named": Named(),
    }


def identity(agent, counts=None, **changes):
    counts = sf.Counts.zeros(agent.problem, agent.pooled) if counts is None else counts
    run = RunIdentity(adapted(agent), ("Walk-v0", "Walk"), 0.5, 10, 3, counts, WORLD.P_rows)
    return replace(run, **changes)


def identities():
    """Runs, each of which differs from the others."""
    known = agents()
    warm = sf.Counts.zeros(PROBLEM).add(sf.Episode([0, 1, 1, 0], [1, 0, 1]))
    return {name: identity(agent) for name, agent in known.items()} | {
        "kl, warm": identity(known["kl"], warm),
        "kl, watched": identity(known["kl"], watchdog=sf.Watchdog(0.02)),
        "kl, no model": identity(known["kl"], floor=None, dynamics=None),
        "kl, seed": identity(known["kl"], seed=4),
        "kl, floor": identity(known["kl"], floor=0.25),
        "kl, name": identity(known["kl"], environment=("Walk-v1", "Walk")),
        "kl, hidden": identity(known["kl"], dynamics=None),
        "returns, settings": identity(replace(known["returns"], returns=sf.Returns(0.25))),
        **{
            f"menard, {change}": identity(replace(known["menard"], **change))
            for change in ({"scale": 0.25}, {"delta": 0.01}, {"pooled": True})
        },
    }


def test_no_two_runs_have_one_fingerprint():
    found = {name: run.fingerprint for name, run in identities().items()}
    assert len(set(found.values())) == len(found)
    # all is built again: control
    assert found == {name: run.fingerprint for name, run in identities().items()}


def test_when_to_replan_is_part_of_a_run_and_of_no_account():
    """That of an agent inside is, too."""
    outer = agents()["budget-exploration"]
    inside = replace(outer, learner=replace(outer.learner, replan=0.7))
    changed = [replace(outer, replan=0.7), inside]
    assert len({identity(agent).fingerprint for agent in (outer, *changed)}) == 3
    assert len({agent.account_fingerprint for agent in (outer, *changed)}) == 1
    assert replace(outer, delta=0.01).account_fingerprint != outer.account_fingerprint  # control


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.1, np.nextafter(0.1, 1)),
        (1, 1.0),
        (1, True),
        (1, "1"),
        (None, "None"),
        ([1, [2]], [[1], 2]),
        (np.zeros(2), np.zeros((1, 2))),
        (np.zeros(2), np.zeros(2, dtype=np.int64)),
        (np.zeros(2), [0.0, 0.0]),
        (sf.Relative(0.1), sf.Below(0.1)),
        (sf.Units(0, 1), sf.Units(0, 2)),
        (explorer, agents),
        (sf.KL(), sf.KL(full_support=True)),
    ],
)
def test_digests_differ(one, other):
    assert digest(one) != digest(other)
    assert (digest(one), digest(other)) == (
        digest(copy.deepcopy(one)),
        digest(copy.deepcopy(other)),
    )


def test_digests_that_are_equal(assert_refused):
    """By content alone: the order of keys, of bytes, and in memory does not matter; nor does a
    name for people.
    """
    table = np.arange(6.0).reshape(2, 3)
    assert digest({"a": 1, "b": 2.0}) == digest({"b": np.float64(2.0), "a": np.int64(1)})
    assert digest(table) == digest(np.asfortranarray(table)) == digest(table.astype(">f8"))
    assert digest(sf.Units(0, 1, name="EUR")) == digest(sf.Units(0, 1))
    assert digest(Plain()) == digest(Plain()) != digest(Named())
    assert_refused(sf.InvalidSetting, "A set identifies nothing", digest, {"a": {1, 2}})


def test_rewording_a_repr_changes_no_fingerprint(monkeypatch):
    """A user's own agent that has a repr is known by that: its words are the user's."""
    records = (
        sf.KL,
        sf.Bernstein,
        sf.MaurerPontilBox,
        sf.BernsteinBox,
        sf.Returns,
        sf.Relative,
        sf.Certificate,
    )
    rules = (sf.Thompson, sf.Problem, sf.Units, sf.Watchdog)
    known = {name: run.fingerprint for name, run in identities().items()}
    accounts = {name: agents()[name].account_fingerprint for name in ACCOUNTS}
    for kind in (FloorAgent, LPAgent, sf.BPIUCBVI, sf.UCBVI, *records, *rules):
        monkeypatch.setattr(kind, "__repr__", lambda record: "in other words")
        monkeypatch.setattr(kind, "__str__", lambda record: "in other words", raising=False)
        kind.__repr__.__module__ = "surefoot.somewhere"
    assert str(agents()["kl"]) == repr(PROBLEM) == repr(sf.KL()) == "in other words"  # control
    assert {name: run.fingerprint for name, run in identities().items()} == known
    assert {name: agents()[name].account_fingerprint for name in ACCOUNTS} == accounts
    monkeypatch.setattr(Named, "__repr__", lambda agent: "Named(otherwise)")
    assert identity(Named()).fingerprint != known["named"]


def test_a_run_may_go_on():
    kl = agents()["kl"]
    assert identity(kl, episodes=11).fingerprint == identity(kl).fingerprint


@pytest.mark.parametrize("problem", [PROBLEM, UNKNOWN], ids=["known", "unknown"])
def test_a_live_episode_is_built_once(problem, monkeypatch):
    built, real = [], Episode.__init__

    def init(episode, *arguments):
        built.append(episode)
        real(episode, *arguments)

    monkeypatch.setattr(Episode, "__init__", init)
    learner = sf.Learner(sf.StepMix(problem, BASELINE, 0.5), seed=0)
    for k in range(3):
        learner.begin()
        for _ in range(H):
            learner.act(0 if learner.step == 0 else None)
            learner.observe(1, 0.5)
        assert built == [] if k == 0 else len(built) == k
        assert learner.end() is built[-1]
        assert len(built) == k + 1


def test_a_users_agent_stays_the_one_that_was_given(assert_refused):
    """It is adapted inside: neither its identity nor its name changes."""
    plain = Plain()
    learner = sf.Learner(plain, seed=0)
    assert learner.agent is plain
    assert adapted(plain).as_given is plain
    assert sf.simulate(WORLD, plain, 3, seed=0).agent == "Plain"
    own = agents()["kl"]
    assert adapted(own) is own
    assert_refused(
        sf.InvalidSetting,
        r"Expected an agent such as sf.StepMix\(...\), found str",
        adapted,
        "StepMix",
    )
