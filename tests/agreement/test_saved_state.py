"""Saved runs are recognised by digests of what decides how they continue."""

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.base import adapted
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.rivals.lp_agent import LPAgent
from surefoot.bounds.certificate import fingerprint_of
from surefoot.live.saved_state import RunIdentity
from surefoot.task.episode import Episode

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
    box, without, rule = sf.MaurerPontilBox(0.5), {"returns": None}, {"replan": sf.Growth(1.1)}
    prior = {"bounds": sf.KL(full_support=True)} | rule
    mix, former = sf.StepMix, prior | without
    certificate = sf.Certificate(0.75, 0.01, fingerprint_of(BASELINE, PROBLEM))
    return {
        "kl": mix(PROBLEM, BASELINE, 0.5, **former),
        "kl, settings": mix(
            PROBLEM,
            BASELINE,
            0.5,
            delta=0.1234567,
            bounds=sf.KL(scale=0.5),
            replan=sf.Growth(1.3),
            pooled=True,
            **without,
        ),
        "paper": mix.paper(PROBLEM, BASELINE, 0.5),
        "scaled": mix(PROBLEM, BASELINE, 0.5, bounds=sf.Bernstein(0.1), replan=sf.Blocks(0.1)),
        "relative": mix(PROBLEM, BASELINE, sf.Relative(0.05), **former),
        "returns": mix(PROBLEM, BASELINE, 0.5, returns=sf.Returns(0.3), **prior),
        "explorer": mix(PROBLEM, BASELINE, 0.5, explorer=explorer, **former),
        "thompson": mix(PROBLEM, BASELINE, 0.5, explorer=sf.Thompson(PROBLEM, 0.5), **former),
        "certificate": mix(PROBLEM, BASELINE, 0.5, certificate=certificate, **former),
        "unknown": mix(UNKNOWN, BASELINE, 0.5, pooled=True, **former),
        "units": mix(UNITS, BASELINE, 4.0, **former),
        "epsmix": sf.EpsMix(PROBLEM, BASELINE, sf.Relative(0.25), **former),
        "step-no-mix": sf.StepNoMix(PROBLEM, BASELINE, 0.5, **former),
        "bpi-ucbvi": sf.BPIUCBVI(PROBLEM, **prior),
        "ucbvi": sf.UCBVI(PROBLEM, episodes=100, scale=0.25, **rule),
        "dope": sf.DOPE(PROBLEM, BASELINE, cost=COST, budget=1.75, baseline_cost=1.5, episodes=50, **rule),
        "optpess-lp": sf.OptPessLP(
            PROBLEM, BASELINE, sf.Relative(0.5), baseline_value=1.25, episodes=50, bounds=box, pooled=True, **rule
        ),
        "budget-exploration": sf.BudgetExploration(
            PROBLEM, BASELINE, 0.5, learner=sf.UCBVI(PROBLEM, episodes=100, **rule), **prior
        ),
        "conservative-ucbvi": sf.ConservativeUCBVI(
            PROBLEM, BASELINE, 0.5, baseline_value=1.25, learner=sf.BPIUCBVI(PROBLEM, delta=0.01, **prior), **prior
        ),
        "plain": Plain(),
        "named": Named(),
    }


def newer_agents():
    """Agents that came after the first files, and settings that tell their runs apart."""
    rule = {"replan": sf.Growth(1.1)}  # when they came, nobody had to say it
    given = {"baseline_value": 1.25, "scale": 0.5} | rule
    return {
        "bpi-ucbvi-menard": (
            sf.BPIUCBVIMenard(PROBLEM, scale=0.5, **rule),
            {"scale": 0.25},
            {"delta": 0.01},
            {"pooled": True},
        ),
        "reward-free-safe": (
            sf.RewardFreeSafeRL(PROBLEM, BASELINE, 0.5, **given),
            *({"scale": 0.25}, {"delta": 0.01}, {"pooled": True}, {"floor": 0.25}, {"baseline_value": 1.5}),
            {"accuracy": 0.2},
        ),
    }


def identity(agent, counts=None, **changes):
    counts = sf.Counts.zeros(agent.problem, agent.pooled) if counts is None else counts
    run = RunIdentity(adapted(agent), ("Walk-v0", "Walk"), 0.5, 10, 3, counts, WORLD.P_rows)
    return replace(run, **changes)


def identities():
    """A run of each agent, and of one agent with other data and watched."""
    known = agents()
    warm = sf.Counts.zeros(PROBLEM).add(sf.Episode([0, 1, 1, 0], [1, 0, 1]))
    return {name: identity(agent) for name, agent in known.items()} | {
        "kl, warm": identity(known["kl"], warm),
        "kl, watched": identity(known["kl"], watchdog=sf.Watchdog(0.02)),
        "kl, no model": identity(known["kl"], floor=None, dynamics=None),
    }


def test_every_setting_makes_another_run():
    fingerprints = [run.fingerprint for run in identities().values()]
    assert len({*fingerprints}) == len(fingerprints)


@pytest.mark.parametrize("name", newer_agents())
def test_fingerprints_of_newer_agents(name, monkeypatch):
    """Each setting is part of it, and the words for people are not."""
    agent, *changes = newer_agents()[name]
    fingerprint = identity(agent).fingerprint
    others = {identity(replace(agent, **change)).fingerprint for change in changes}
    assert len({fingerprint, *others}) == 1 + len(changes)
    monkeypatch.setattr(type(agent), "__repr__", lambda agent: "in other words")
    type(agent).__repr__.__module__ = "surefoot.somewhere"
    assert identity(agent).fingerprint == fingerprint


def test_rewording_a_repr_changes_no_fingerprint(monkeypatch):
    """A user's own agent that has a repr is known by that: its words are the user's."""
    before = {name: run.fingerprint for name, run in identities().items()}
    records = (sf.KL, sf.Bernstein, sf.MaurerPontilBox, sf.BernsteinBox, sf.Returns, sf.Relative, sf.Certificate)
    rules = (sf.Growth, sf.Blocks, sf.EveryEpisode, sf.Thompson, sf.Problem, sf.Units, sf.Watchdog)
    for kind in (FloorAgent, LPAgent, sf.BPIUCBVI, sf.UCBVI, *records, *rules):
        monkeypatch.setattr(kind, "__repr__", lambda record: "in other words")
        monkeypatch.setattr(kind, "__str__", lambda record: "in other words", raising=False)
        kind.__repr__.__module__ = "surefoot.somewhere"
    assert str(agents()["kl"]) == repr(PROBLEM) == repr(sf.KL()) == "in other words"  # control
    assert {name: run.fingerprint for name, run in identities().items()} == before
    monkeypatch.setattr(Named, "__repr__", lambda agent: "Named(otherwise)")
    assert identity(Named()).fingerprint != before["named"]


@pytest.mark.parametrize(
    "changes",
    [{"seed": 4}, {"episodes": 11}, {"floor": 0.25}, {"environment": ("Walk-v1", "Walk")}, {"dynamics": None}],
    ids=lambda changes: next(iter(changes)),
)
def test_another_run_has_another_fingerprint(changes):
    assert identity(agents()["kl"], **changes).fingerprint != identity(agents()["kl"]).fingerprint


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


def test_a_users_agent_stays_the_one_that_was_given():
    """It is adapted inside: neither its identity nor its name changes."""
    plain = Plain()
    learner = sf.Learner(plain, seed=0)
    assert learner.agent is plain
    assert adapted(plain).as_given is plain
    assert sf.simulate(WORLD, plain, 3, seed=0).agent == "Plain"
    own = agents()["kl"]
    assert adapted(own) is own
    with pytest.raises(sf.InvalidSetting, match=r"Expected an agent such as sf.StepMix\(...\), found str"):
        adapted("StepMix")
