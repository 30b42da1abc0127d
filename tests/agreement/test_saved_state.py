"""Saved runs are recognised by digests of what decides how they continue, in the words of the first files.

The digests below were computed by commit 68af267, when they were of `repr(agent)` and `repr(problem)`. They are part of
the file format: never change one. Every number here is a sum of few powers of 2, so they are the same on any machine.
"""

from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.agents.base import adapted
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.identity import TEXTS
from surefoot.agents.rivals.lp_agent import LPAgent
from surefoot.bounds.certificate import fingerprint_of
from surefoot.live.saved_state import RunIdentity
from surefoot.task.episode import Episode

RUNS = {
    "kl": "67331f6edeaa55646291de1db12f458efe7f30f20a96862b6ebfc848fe9473eb",
    "kl, settings": "3c2217e82c32240ba93eb5b3e2a54875ba56fe0ecd2e0288c324de3f8c0e4ea0",
    "paper": "8c1d6f541f3379a19a42f0407df5a68ceb4c322e651f05f987469c7f3624b47a",
    "scaled": "51a80e984c6da06b0c2afce4ab06921acc89f9d9a06a788551ddd300d8bbd0b0",
    "relative": "5d5158eb61592391cfbca29e1191025d83fdb85343a893322f1f84c2b10a0e77",
    "asserted": "dfe7e196f7c3a681b52e408a349913e0739003175273527d04276d2e998f1401",
    "explorer": "321b2217e3b3f5d0f4d07647bc0fdc5699dfa1c627a1f41f9860eef09a469acb",
    "thompson": "e624c0c8d60a96db890b32f97a4bf53e438cf219ea7861a424bd0df42eb7848d",
    "certificate": "d73922521bf708be2e703732002a9405b278d18d60fa98552dbe4f90a93a74c3",
    "unknown": "a0f2780101bd86cfc603602b8ee38e4116387e1f8205730284c45b438bea9326",
    "units": "6d23e8bdf440ca1d7c027ccd7ed6ebe2b7a6f5dafe73f6c48609ac281a7707db",
    "epsmix": "0496f7bf8d2cab5cc5402259af0fd8b399db04b9c3421682012ae14a26485d1f",
    "step-no-mix": "057bbc90094582a6be995d34cb14db19faebe215d8890386d2d0b8516f8af562",
    "bpi-ucbvi": "7eb0aeb686b1f24811dff5e8701fc6290cd1b30f249b407986a44fdabc30ba54",
    "ucbvi": "6774b904ff7d86ee34b5bcff58355506087905c284a30666b7c2f0dfbd70f4ba",
    "dope": "79ff859cd33c68f5e3d45b1f3453c6782e327639527934f9a4a5b8dc6eaca292",
    "optpess-lp": "39bf6a1581622cee252979b579d27cbf51ca6341cecb49093650393b1ab220ea",
    "budget-exploration": "a2a961e5943a6c4a8bc5e69002768f61e7df5b5c7673084bac19ccb714ea1b7d",
    "conservative-ucbvi": "b60ac2e7ad801b9eb57e6022ca738be4bbf9a306ae87faae1cf68baee36826a3",
    "plain": "32d812f5165255db496722c87b71056d23bc6cfe34ca4fd8e70fb81b3418758c",
    "named": "4ad4b4d185b844abb08f1fcee6ba4cc7bcf2a4fddab743e096957e70b0fc2df7",
    "kl, warm": "08c8443edfaec34485e1e3c3f6545fe947f2314145e7cda9d0fc2dfd252c0c2d",
    "kl, watched": "c0ace230abd424537e1a83b5f6b4967747f77a8206308f9d297696884c0366ad",
    "kl, no model": "830db75383ba849bb6c0f42c2e32930e150718d423cc56b52806c7ffbcfb4cc2",
}
BY_COIN = "03b453fd43ec8a47c88ebe63ee296f701e7b29e852d86b99597d008e473c8f3e"  # "returns": while a coin bounded them
ACCOUNTS = {
    "budget-exploration": "d62c74b5588f19f4",
    "conservative-ucbvi": "44cfbfce03f5e0c6",
}
ACCOUNT_BY_COIN = "fa18186883d18d35"  # likewise: of budget-exploration with Returns(0.25)

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
    prior = {"bounds": sf.KL(0.5)} | rule
    mix, former = sf.StepMix, prior | without  # the defaults of 68af267
    certificate = sf.Certificate(0.75, 0.01, fingerprint_of(BASELINE, PROBLEM))
    return {
        "kl": mix(PROBLEM, BASELINE, 0.5, **former),
        "kl, settings": mix(
            PROBLEM,
            BASELINE,
            0.5,
            delta=0.1234567,
            bounds=sf.KL("1/S", 0.5),
            replan=sf.Growth(1.3),
            pooled=True,
            **without,
        ),
        "paper": mix.paper(PROBLEM, BASELINE, 0.5),
        "scaled": mix(PROBLEM, BASELINE, 0.5, bounds=sf.Bernstein(0.1), replan=sf.Blocks(0.1)),
        "relative": mix(PROBLEM, BASELINE, sf.Relative(0.05), **former),
        "returns": mix(PROBLEM, BASELINE, 0.5, returns=sf.Returns(0.3, 0.0, 3.0), **prior),
        "asserted": mix(PROBLEM, BASELINE, 0.5, baseline_at_least=0.75, **former),
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
    """Every run of `RUNS`."""
    known = agents()
    del known["returns"]
    warm = sf.Counts.zeros(PROBLEM).add(sf.Episode([0, 1, 1, 0], [1, 0, 1]))
    return {name: identity(agent) for name, agent in known.items()} | {
        "kl, warm": identity(known["kl"], warm),
        "kl, watched": identity(known["kl"], watchdog=sf.Watchdog(0.02)),
        "kl, no model": identity(known["kl"], floor=None, dynamics=None),
    }


def test_fingerprints_of_runs_are_those_of_the_first_files():
    assert {name: run.fingerprint for name, run in identities().items()} == RUNS
    assert len(set(RUNS.values())) == len(RUNS)


def test_a_run_with_returns_is_another_since_their_bound_is_another(monkeypatch):
    """Its evidence proves something else. The text of the bound is all that differs (control)."""
    now = identity(agents()["returns"]).fingerprint
    assert now not in (BY_COIN, *RUNS.values())
    assert len(now) == len(BY_COIN)
    others = [replace(agents()["returns"], returns=returns) for returns in (sf.Returns(0.3), sf.Returns(0.2, 0.0, 3.0))]
    assert len({now, *(identity(other).fingerprint for other in others)}) == 3  # control
    former = "Returns(share={0.share!r}, low={0.low!r}, high={0.high!r})"
    monkeypatch.setitem(TEXTS, sf.Returns, former)
    assert identity(agents()["returns"]).fingerprint == BY_COIN


def test_an_account_with_returns_is_another_since_their_bound_is_another(monkeypatch):
    agent = replace(agents()["budget-exploration"], returns=sf.Returns(0.25))
    now = agent.account_fingerprint
    monkeypatch.setitem(TEXTS, sf.Returns, "Returns(share={0.share!r}, low={0.low!r}, high={0.high!r})")
    assert replace(agent).account_fingerprint == ACCOUNT_BY_COIN != now


@pytest.mark.parametrize("name", ["kl", "epsmix", "step-no-mix", "bpi-ucbvi"])
def test_the_defaults_of_now_are_another_run(name):
    """Nobody goes on with another prior, another rule of replanning, or with returns as evidence, than a run began
    with: by default that was something else at 68af267. Beside what the defaults stand for, nothing is new (control).
    """
    agent = agents()[name]
    default = type(agent)(PROBLEM) if name == "bpi-ucbvi" else type(agent)(PROBLEM, BASELINE, agent.floor)
    said = {"bounds": sf.KL(0.5), "replan": sf.Growth(1.1)} | ({} if name == "bpi-ucbvi" else {"returns": None})
    for left_out in said:
        others = {setting: value for setting, value in said.items() if setting != left_out}
        assert identity(replace(default, **others)).fingerprint != RUNS[name]
    assert identity(replace(default, **said)).fingerprint == RUNS[name]


NEWER = {
    "bpi-ucbvi-menard": "f8d5fb3f339ce0570529a985f3198ded2ea4c1e0c2f650cb7067978b0181bbf6",
    "reward-free-safe": "afedbe72fccd6cc70deacc7d0084cfd94203aaf387ea0ad9ae6fe22ee3ccb220",
}


@pytest.mark.parametrize("name", NEWER)
def test_fingerprints_of_newer_agents(name, monkeypatch):
    """Each setting is part of it, and the words for people are not."""
    agent, *changes = newer_agents()[name]
    assert identity(agent).fingerprint == NEWER[name]
    others = {identity(replace(agent, **change)).fingerprint for change in changes}
    assert len({NEWER[name], *others}) == 1 + len(changes)
    monkeypatch.setattr(type(agent), "__repr__", lambda agent: "in other words")
    type(agent).__repr__.__module__ = "surefoot.somewhere"
    assert identity(agent).fingerprint == NEWER[name]


def test_fingerprints_of_accounts_are_those_of_the_first_files():
    known = agents()
    assert {name: known[name].account_fingerprint for name in ACCOUNTS} == ACCOUNTS


def test_rewording_a_repr_changes_no_fingerprint(monkeypatch):
    """A user's own agent that has a repr is known by that: its words are the user's."""
    records = (sf.KL, sf.Bernstein, sf.MaurerPontilBox, sf.BernsteinBox, sf.Returns, sf.Relative, sf.Certificate)
    rules = (sf.Growth, sf.Blocks, sf.EveryEpisode, sf.Thompson, sf.Problem, sf.Units, sf.Watchdog)
    for kind in (FloorAgent, LPAgent, sf.BPIUCBVI, sf.UCBVI, *records, *rules):
        monkeypatch.setattr(kind, "__repr__", lambda record: "in other words")
        monkeypatch.setattr(kind, "__str__", lambda record: "in other words", raising=False)
        kind.__repr__.__module__ = "surefoot.somewhere"
    assert str(agents()["kl"]) == repr(PROBLEM) == repr(sf.KL()) == "in other words"  # control
    assert {name: run.fingerprint for name, run in identities().items()} == RUNS
    known = agents()
    assert {name: known[name].account_fingerprint for name in ACCOUNTS} == ACCOUNTS
    monkeypatch.setattr(Named, "__repr__", lambda agent: "Named(otherwise)")
    assert identity(Named()).fingerprint != RUNS["named"]


@pytest.mark.parametrize(
    "changes",
    [{"seed": 4}, {"episodes": 11}, {"floor": 0.25}, {"environment": ("Walk-v1", "Walk")}, {"dynamics": None}],
    ids=lambda changes: next(iter(changes)),
)
def test_another_run_has_another_fingerprint(changes):
    assert identity(agents()["kl"], **changes).fingerprint not in RUNS.values()


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
