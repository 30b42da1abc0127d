"""What was stopped and went on is what was never stopped: every kind of agent, through `learn` and
in a loop of one's own, torn at every kind of moment. Alarms and ledgers are of it.

The worlds are those of the tests of each subject.
"""

import itertools
import signal
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import surefoot as sf
from modules import loaded
from surefoot.worlds.gymnasium import TabularEnv

HERE = Path(__file__).parent


LEARN, RIVALS, SHELL, WORLDS = (
    loaded(HERE / f"{name}.py")
    for name in ("test_learn", "test_rivals", "test_learner_shell", "conftest")
)
WATCHED, TABLE, STEPS = (
    loaded(HERE.parent / "interface" / "audit" / f"test_{name}.py")
    for name in ("watchdog", "false_tables", "unlike_steps")
)


class Fickle:
    """An agent of somebody's own. It has no repr: Python's holds an address, which is another one
    in the next process.
    """

    floor, pooled, promise = None, False, "no floor promised"

    def __init__(self, problem):
        self.problem = problem

    def plan(self, counts):
        a = int(counts.n_sas.sum()) % 2
        policy = np.broadcast_to(np.eye(2)[a], (5, 4, 2))
        return sf.Plan(policy, "optimistic", 0, 1.0, 0.0, 5.0, [0.0], "no floor")


class Kind(NamedTuple):
    """What is played, stopped after some episodes and again."""

    env: object  # a function of the episodes that were played before
    agent: object  # a function: each process makes its own
    stops: tuple = (25, 37)
    episodes: int = 60
    floor: float | None = None  # that is counted, where it is not the agent's own
    ledger: bool = True
    watchdog: sf.Watchdog | None = None
    absorbing_state: int | None = None
    alarm: bool = False  # between the stops


def everywhere(name, floor, absorbing_state=2, **settings):
    """The worlds of learn; the floor that is counted is another one than the agent's."""
    build = partial(LEARN.EVERYWHERE[name], **settings)
    return Kind(
        lambda _: build()[0], lambda: build()[2], floor=floor, absorbing_state=absorbing_state
    )


def rival(name, replan):
    """Off the baseline within the episodes that are played."""
    slow = name not in ("budget-exploration", "conservative-ucbvi")
    return Kind(
        lambda _: TabularEnv(RIVALS.setting(False)[0]),
        lambda: RIVALS.build(name, replan=replan),
        *((190, 223), 230) if slow else ((17, 53), 60),
        ledger=False,
    )


def knowing(kind, explorer):
    """Some of what may be known, and how it explores."""
    case = WORLDS.make(kind, False)
    return Kind(lambda _: TabularEnv(case.world), lambda: SHELL.build(case, explorer), (30, 47), 90)


def violating():
    world = sf.world("trap")
    return sf.BPIUCBVI(world.problem, bounds=sf.Bernstein(1e-3))


def changing(kind):
    """The process changes when the agent is off its baseline: the watchdog sees it."""
    return Kind(
        lambda played: WATCHED.Coin(changes=300, played=played),
        lambda: WATCHED.agent(kind, returns=sf.Returns()),
        (310, 420),
        500,
        watchdog=sf.Watchdog(),
        alarm=True,
    )


KINDS = {
    "trap": everywhere("trap", 0.65, None),
    "lake": everywhere("lake", 0.4, 4),
    "walk": everywhere("walk", 1.1, bounds=sf.KL()),
    "live": everywhere("live", 1.1, bounds=sf.KL()),
    "violations": Kind(lambda _: LEARN.trap()[0], violating, floor=0.6, ledger=False),
    "own": Kind(
        lambda _: LEARN.walk()[0],
        lambda: Fickle(LEARN.walk()[1].problem),
        ledger=False,
        absorbing_state=2,
    ),
    **{
        f"{name}, replan {replan}": rival(name, replan)
        for name in ("dope", "optpess-lp", "budget-exploration", "conservative-ucbvi")
        for replan in (0.0, 0.3)
    },
    "linear inside, replan 0.3": rival("linear inside", 0.3),
    **{
        f"{kind}, {explorer}": knowing(kind, explorer)
        for kind in ("plain", "unknown-random", "unknown-start", "all-together")
        for explorer in SHELL.EXPLORERS
    },
    "no model, thompson": Kind(
        lambda _: SHELL.Slots(), lambda: SHELL.slots("thompson"), (80, 90), 150
    ),
    "alarm of StepMix": changing(sf.StepMix),
    "alarm of EpsMix": changing(sf.EpsMix),
    "alarm of the table": Kind(
        lambda _: TABLE.Shop([0.7, 0.75], random=True), TABLE.agent, (5, 50), alarm=True
    ),
    "alarm of the steps": Kind(lambda _: STEPS.Tide(0.15), STEPS.agent, (7, 390), 400, alarm=True),
}


def files(folder, kind):
    folder.mkdir()
    ledger = {"ledger": folder / "run.ledger"} if kind.ledger else {}
    return {"save": folder / "run.npz", **ledger}


def learnt(kind, env, episodes, seed=3, **settings):
    more = {"floor": kind.floor, "watchdog": kind.watchdog, **settings}
    return sf.learn(env, kind.agent(), episodes, seed, **more)


def stopped(moment, kind, before, stop, written):
    """A part of a run, up to this episode."""
    env, more = kind.env(before), {"resume": before > 0, **written}
    if moment == "the end":
        part = learnt(kind, env, stop, **more)
        assert part.episodes == stop and not part.interrupted
        again = learnt(kind, kind.env(stop), stop, **{**more, "resume": True})
        assert again.counts == part.counts  # nothing left to do
    elif moment == "Ctrl-C":
        trip, heard = (
            LEARN.Trip(env, stop - before - 1, LEARN.ctrl_c),
            signal.getsignal(signal.SIGINT),
        )
        part = learnt(kind, trip, kind.episodes, **more)
        assert (part.interrupted, part.episodes, part.counts.episodes) == (True, stop, stop)
        assert signal.getsignal(signal.SIGINT) is heard
        assert sum(part.sources.values()) == part.curve.episodes.sum() == stop
    else:
        happens = LEARN.ctrl_c_twice if moment == "a second Ctrl-C" else LEARN.power_cut
        with pytest.raises((LEARN.PowerCut, KeyboardInterrupt)):
            learnt(kind, LEARN.Trip(env, stop - before, happens), kind.episodes, **more)
    assert LEARN.saved_episodes(written["save"], kind.agent().problem.H) == stop
    if moment == "a crash after the last file":
        crashed(kind, stop, written)


def crashed(kind, stop, written):
    """The episodes after the last file are lost; the ledger has half of what it said of them."""
    before = {name: path.read_bytes() for name, path in written.items()}
    with pytest.raises(LEARN.PowerCut):
        trip = LEARN.Trip(kind.env(stop), 3, LEARN.power_cut)
        learnt(kind, trip, kind.episodes, resume=True, **written)
    assert written["save"].read_bytes() != before["save"]
    written["save"].write_bytes(before["save"])
    if kind.ledger:
        known, text = len(before["ledger"]), written["ledger"].read_bytes()
        written["ledger"].write_bytes(text[: (known + len(text)) // 2])


MOMENTS = ("the end", "Ctrl-C", "a second Ctrl-C", "a power cut", "a crash after the last file")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", KINDS)
def test_a_run_that_was_stopped_is_one_that_was_not(name, moment, tmp_path, assert_same_run):
    """To the bytes of its files, before and after an alarm; whoever forgets the ledger has it
    continued all the same.
    """
    kind = KINDS[name]
    one, other = (files(tmp_path / folder, kind) for folder in ("whole", "parts"))
    whole = learnt(kind, kind.env(0), kind.episodes, **one)
    for before, stop in itertools.pairwise((0, *kind.stops)):
        stopped(moment, kind, before, stop, other)
    assert (whole.alarm is not None) == kind.alarm
    assert whole.off_baseline is not None and (name != "violations" or whole.violations > 0)
    assert not kind.alarm or kind.stops[0] < whole.alarm.episodes < kind.stops[1]
    run = learnt(kind, kind.env(stop), kind.episodes, resume=True, save=other["save"])
    assert_same_run(run, whole)
    assert run.alarm == whole.alarm
    for written in one:
        assert one[written].read_bytes() == other[written].read_bytes()
    if kind.ledger:
        verdict = sf.check_ledger(other["ledger"])
        assert verdict.closed and not verdict.refusals
    # Control: the comparison can tell two runs apart.
    assert learnt(kind, kind.env(0), kind.episodes, seed=4).counts != whole.counts


def learner(kind, folder, seed=5):
    agent = kind.agent()
    folder.mkdir()
    ledger = sf.Ledger(folder / "plans.ledger", agent) if kind.ledger else None
    return sf.Learner(
        agent, seed, absorbing_state=kind.absorbing_state, ledger=ledger, watchdog=kind.watchdog
    )


def going_on(learner, kind, path):
    """By its file, which was written before episodes that are lost; or by its counts alone."""
    if kind.ledger:
        sf.save_learner(learner, path)
        LEARN.drive(learner, kind.env(learner.episodes), 3)
        return sf.load_learner(path, kind.agent())
    learner.counts.save(path)
    counts = sf.Counts.load(path)
    assert counts == learner.counts and counts.planned == learner.counts.planned
    return sf.Learner(kind.agent(), learner.seed, counts, absorbing_state=kind.absorbing_state)


@pytest.mark.parametrize("name", KINDS)
def test_a_learner_that_was_stopped_is_one_that_was_not(name, tmp_path):
    """In the middle of a plan and of an episode."""
    kind = KINDS[name]
    whole, part = (learner(kind, tmp_path / folder) for folder in ("whole", "parts"))
    LEARN.drive(whole, kind.env(0), kind.episodes)
    middles = 0
    for stop in (1, *kind.stops):
        LEARN.drive(part, kind.env(part.episodes), stop - part.episodes)
        part.begin()
        if part.agent.problem.one_start:
            part.act()
        part.rewind()
        middles += part.counts.planned.episodes < stop
        part = going_on(part, kind, tmp_path / "saved.npz")
        assert part.episodes == stop
    LEARN.drive(part, kind.env(stop), kind.episodes - stop)
    assert (part.counts, part.watch, part.alarm) == (whole.counts, whole.watch, whole.alarm)
    assert (whole.alarm is not None) == kind.alarm
    for one in (part, whole):
        one.counts.save(tmp_path / f"{one is part}.npz")
    assert (tmp_path / "True.npz").read_bytes() == (tmp_path / "False.npz").read_bytes()
    if kind.ledger:
        for one in (part, whole):
            one.ledger.close(kind.episodes)
        assert part.ledger.path.read_bytes() == whole.ledger.path.read_bytes()
        assert not sf.check_ledger(part.ledger.path).refusals
    assert middles > 0 or (getattr(part.agent, "replan", None) or 0.0) < 0.1
    control = learner(kind, tmp_path / "control", seed=6)
    LEARN.drive(control, kind.env(0), kind.episodes)
    assert control.counts != whole.counts
