"""An alarm is loud: one line in the log, a call of the user's function, the first words of what is
said of a run.

Where there is no alarm nothing of this happens: that is the control of each test.
"""

import logging

import gymnasium
import numpy as np
import pytest

import surefoot as sf
from surefoot.run.alarms import what_follows
from two_states import TwoStates, play

H = 4
WORLD = sf.TabularMDP(
    np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.9, 0.1], [0.4, 0.6]]]),
    np.array([[0.0, 0.0], [1.0, 1.0]]),
    H=H,
)
BASELINE = np.full((H, 2, 2), 0.5)
VALUE = sf.value(WORLD, BASELINE)
HIGH, LOW = VALUE + 0.6, VALUE - 0.3  # floors: one that the baseline misses, and one that it keeps


class Stop(Exception):
    pass


class Env(TwoStates):
    def chance(self, action):
        return WORLD.P[0, self.state, action, 1]


def problem():
    return sf.from_gymnasium(Env(), horizon=H, rewards=WORLD.r[0], reward_range=(0, 1), start=0)


def agent(floor):
    known = problem()
    return sf.StepMix(known, sf.embed_policy(known, BASELINE[0]), floor)


def learnt(floor, episodes=150, **settings):
    return sf.learn(Env(), agent(floor), episodes, seed=0, watchdog=sf.Watchdog(), **settings)


def said(caplog):
    return [record.getMessage() for record in caplog.records if "ALARM" in record.getMessage()]


def test_learn_says_it_once_and_how_many_episodes_follow(caplog):
    heard = []
    run = learnt(HIGH, on_alarm=heard.append)
    (line,) = said(caplog)
    assert {(record.name, record.levelno) for record in caplog.records} == {
        ("surefoot", logging.WARNING)
    }
    assert heard == [run.alarm]
    at = run.alarm.episodes
    assert line.startswith(f"The watchdog raised an ALARM after {at} episodes: over ")
    assert f"the baseline alone is played in the {150 - at} episodes that follow." in line
    assert line.count(". ") == 0 and line.endswith(".")  # one sentence
    caplog.clear()
    fine = learnt(LOW, on_alarm=heard.append)
    assert fine.alarm is None and said(caplog) == [] and len(heard) == 1  # control


def test_the_number_that_follows_is_true_to_the_last_episode(caplog):
    at = learnt(HIGH).alarm.episodes
    for episodes, follows in (
        (at, "no episode follows"),
        (at + 1, "in the one episode that follows"),
    ):
        caplog.clear()
        assert learnt(HIGH, episodes).alarm.episodes == at
        assert follows in said(caplog)[0]
    caplog.clear()
    assert learnt(HIGH, at - 1).alarm is None and said(caplog) == []  # control
    assert what_follows(None).endswith("every episode that follows")


def test_a_run_that_goes_on_after_an_alarm_says_it_again(tmp_path, caplog):
    heard, save = [], {"save": tmp_path / "run.npz"}
    at = learnt(HIGH, 100, **save).alarm.episodes
    caplog.clear()
    learnt(HIGH, 100, **save, resume=True, on_alarm=heard.append)
    assert said(caplog) == [] and heard == []  # nothing is played, and nothing is said
    learnt(HIGH, 130, **save, resume=True, on_alarm=heard.append)
    (line,) = said(caplog)
    assert f"ALARM after {at} episodes" in line and "the 30 episodes that follow" in line
    assert len(heard) == 1


def test_a_function_that_raises_ends_the_run_and_nothing_is_lost(tmp_path, assert_same_run):
    """The episode of the alarm is counted and saved before the function is called."""
    heard = []

    def stop(alarm):
        heard.append(alarm)
        raise Stop

    path = tmp_path / "run.npz"
    with pytest.raises(Stop):
        learnt(HIGH, save=path, on_alarm=stop)
    with np.load(path) as file:
        assert file["totals"][0] == heard[0].episodes
    assert_same_run(learnt(HIGH, save=path, resume=True), learnt(HIGH))


def test_a_learner_says_it_too(caplog):
    heard = []
    learner = sf.Learner(
        agent(HIGH), seed=0, watchdog=sf.Watchdog(), on_alarm=heard.append, absorbing_state=2
    )
    play(learner, Env(), 120)
    (line,) = said(caplog)
    assert "the baseline alone is played in every episode that follows." in line
    assert heard == [learner.watch.alarm]
    caplog.clear()
    later = sf.Learner(
        agent(HIGH),
        0,
        learner.counts,
        watchdog=learner.watch,
        on_alarm=heard.append,
        absorbing_state=2,
    )
    assert said(caplog) == []
    play(later, Env(), 2)  # the alarm was raised before: it is told at the first `begin`
    assert len(said(caplog)) == 1 and len(heard) == 2
    caplog.clear()
    play(sf.Learner(agent(LOW), seed=0, watchdog=sf.Watchdog(), absorbing_state=2), Env(), 120)
    assert said(caplog) == []  # control


def test_a_learner_whose_function_raises_has_counted_the_episode():
    def stop(_):
        raise Stop

    learner = sf.Learner(
        agent(HIGH), seed=0, watchdog=sf.Watchdog(), on_alarm=stop, absorbing_state=2
    )
    with pytest.raises(Stop):
        play(learner, Env(), 150)
    assert learner.counts.episodes == learner.episodes == learner.watch.alarm.episodes
    play(learner, Env(), 3)  # told once: it goes on
    assert learner.plan.frozen


@pytest.mark.parametrize("kind", ["watchdog", "range"])
def test_guard_env_says_it_too(kind, caplog):
    """By the watchdog, and where a return shows that the declared range is false."""
    heard = []
    guard = (
        sf.Guard(floor=3.0, low=0.0, high=4.0)
        if kind == "watchdog"
        else sf.Guard(floor=1.5, low=1.0, high=4.0)
    )
    settings = {
        "baseline": lambda s: 0,
        "candidate": lambda s: 1,
        "episodes": 150,
        "seed": 0,
        "on_alarm": heard.append,
    }
    watchdog = {"watchdog": sf.Watchdog()} if kind == "watchdog" else {}
    env = gymnasium.wrappers.TimeLimit(Env(), H)
    run = sf.guard_env(env, guard, **settings, **watchdog)
    (line,) = said(caplog)
    follow = next(int(word) for word in line.split(" in the ")[-1].split() if word.isdigit())
    assert 0 < follow < 150 and "the baseline alone is played" in line
    assert [str(alarm) for alarm in heard] == [run.alarm]
    assert repr(run).startswith("GuardedRun(ALARM") and run.explain().startswith("ALARM")
    caplog.clear()
    wide = sf.Guard(floor=0.0, low=0.0, high=4.0)
    # control
    assert (
        sf.guard_env(env, wide, **settings).alarm == "" and said(caplog) == [] and len(heard) == 1
    )


def test_what_cannot_be_called_is_refused(assert_refused):
    wrong = {"on_alarm": "mail"}
    assert_refused(
        sf.InvalidSetting,
        "on_alarm is 'mail', expected a function of the alarm",
        learnt,
        LOW,
        1,
        **wrong,
    )
    assert_refused(sf.InvalidSetting, "on_alarm", sf.Learner, agent(LOW), seed=0, **wrong)
    assert_refused(
        sf.InvalidSetting,
        "on_alarm",
        sf.guard_env,
        Env(),
        sf.Guard(low=0, high=4),
        baseline=int,
        candidate=int,
        episodes=1,
        seed=0,
        **wrong,
    )


# ---- counts, watch and ledger as one


def saved(learner, path):
    sf.save_learner(learner, path)
    return path


def fresh(folder, floor=LOW, seed=7):
    known = agent(floor)
    ledger = sf.Ledger(folder / "plans.ledger", known)
    return sf.Learner(known, seed, absorbing_state=2, ledger=ledger, watchdog=sf.Watchdog())


def test_file_and_ledger_are_moved_together_or_the_ledger_is_named(tmp_path, assert_refused):
    (tmp_path / "a").mkdir()
    learner = fresh(tmp_path / "a")
    play(learner, Env(), 10)
    saved(learner, tmp_path / "a" / "learner.npz")
    moved = (tmp_path / "a").rename(tmp_path / "b")
    again = sf.load_learner(moved / "learner.npz", agent(LOW))
    assert again.ledger.path == moved / "plans.ledger"
    (moved / "plans.ledger").rename(tmp_path / "elsewhere.ledger")
    assert_refused(
        sf.InvalidFile,
        "plans were written to it",
        sf.load_learner,
        moved / "learner.npz",
        agent(LOW),
    )
    again = sf.load_learner(moved / "learner.npz", agent(LOW), ledger=tmp_path / "elsewhere.ledger")
    play(again, Env(), 5)
    again.ledger.close(15)
    assert not sf.check_ledger(tmp_path / "elsewhere.ledger").refusals


def test_a_learner_is_saved_between_episodes_and_loaded_for_its_agent(tmp_path, assert_refused):
    path = tmp_path / "learner.npz"
    learner = sf.Learner(agent(LOW), seed=2**70, absorbing_state=2, on_alarm=print)
    play(learner, Env(), 3)
    saved(learner, path)
    before = path.read_bytes()
    learner.begin()
    assert_refused(
        sf.InvalidEpisode,
        "An episode is under way: nothing was saved",
        sf.save_learner,
        learner,
        path,
    )
    assert path.read_bytes() == before
    again = sf.load_learner(path, agent(LOW))
    assert (again.seed, again.watch, again.ledger, again.absorbing_state) == (2**70, None, None, 2)
    for other in (agent(LOW + 0.01), sf.EpsMix(problem(), agent(LOW).baseline, LOW)):
        assert_refused(sf.InvalidFile, "belongs to another learner", sf.load_learner, path, other)
    learner.counts.save(tmp_path / "counts.npz")
    assert_refused(
        sf.InvalidFile,
        "holds counts, expected learner",
        sf.load_learner,
        tmp_path / "counts.npz",
        agent(LOW),
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("seed", lambda _: np.array("no number")),
        ("numbers", lambda n: n[:1]),
        ("numbers", lambda n: -n - 1),
        ("after_end", lambda x: np.array([x, x])),
        ("counts_n_sas", lambda n: -n),
        ("watch_about", lambda x: x[:2]),
        ("watch_state", lambda x: x * np.nan),
        ("plans_file", lambda _: np.array("")),
        ("plans_written", lambda n: n + 0.5),
        ("plans_digest", lambda _: np.array("0" * 64)),
    ],
)
def test_a_damaged_file_is_refused(name, change, tmp_path):
    learner, path = fresh(tmp_path), tmp_path / "learner.npz"
    play(learner, Env(), 12)
    saved(learner, path)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    np.savez_compressed(path, **arrays)
    assert sf.load_learner(path, agent(LOW)).episodes == 12  # control: rewritten as it was
    np.savez_compressed(path, **{**arrays, name: change(arrays[name])})
    with pytest.raises(sf.InvalidFile):
        sf.load_learner(path, agent(LOW))


def test_plans_from_the_counts_of_an_alarmed_run_say_so(tmp_path, assert_refused):
    """Also after they were saved, copied or added to others; nobody begins with them. Before, such
    a plan said that it was certified.
    """
    run = learnt(HIGH)
    run.counts.save(tmp_path / "counts.npz")
    more = sf.learn(Env(), agent(HIGH), 5, seed=1).counts
    for counts in (
        run.counts,
        sf.Counts.load(tmp_path / "counts.npz"),
        run.counts.copy(),
        more.merge(run.counts),
    ):
        plan = agent(HIGH).plan(counts)
        assert plan.frozen and plan.source == "baseline" and plan.safety == "trusted"
        assert plan.explain().startswith("ALARM after") and "ertified" not in plan.explain()
    for begin in (
        lambda: sf.Learner(agent(HIGH), 1, run.counts.copy()),
        lambda: sf.learn(Env(), agent(HIGH), 5, seed=1, counts=run.counts),
    ):
        assert_refused(
            sf.InvalidCounts, r"alarm was raised over these counts.*Begin without them", begin
        )
    fine = learnt(LOW)
    assert fine.counts.alarm == "" and not agent(LOW).plan(fine.counts).frozen  # control
    sf.Learner(agent(LOW), 1, fine.counts.copy())


def test_nothing_is_certified_from_the_counts_of_an_alarmed_run(assert_refused):
    """By no other agent, by no method for logs: each says why. Fine
    counts are taken.
    """
    world = sf.world("trap")
    problem, baseline, floor = world.problem, world.baseline, world.suggested_floor
    ours = sf.StepMix(problem, baseline, floor)
    fine = sf.simulate(world, ours, 50, seed=0).counts
    marked = fine.copy()
    marked.alarm = "ALARM after 50 episodes"
    asked = [
        sf.BudgetExploration(problem, baseline, floor).plan,
        sf.ConservativeUCBVI(problem, baseline, floor).plan,
        sf.DOPE(
            problem, baseline, floor, baseline_value=sf.value(world, baseline), episodes=1000
        ).plan,
        lambda counts: sf.robust_vi(counts, problem, 0.1),
        lambda counts: sf.certify(baseline, counts, problem, 0.1),
        lambda counts: sf.forecast(ours, counts=counts),
    ]
    for ask in asked:
        ask(fine)
        assert_refused(sf.InvalidCounts, "alarm was raised over these counts", ask, marked)
    plan = sf.BPIUCBVI(problem).plan(marked)
    assert plan.frozen and plan.safety == "no floor" and plan.lower == problem.lowest


def test_a_learner_from_before_the_mark_is_frozen_and_marked():
    """Counts alone do not say that there was an alarm: the watch does."""
    learner = sf.Learner(agent(HIGH), seed=0, watchdog=sf.Watchdog(), absorbing_state=2)
    play(learner, Env(), 120)
    learner.counts.alarm = ""
    later = sf.Learner(agent(HIGH), 0, learner.counts, watchdog=learner.watch, absorbing_state=2)
    assert later.counts.alarm == str(learner.watch.alarm)
    assert later.begin().frozen


def test_certify_says_that_the_run_was_frozen_and_that_nothing_was_certified(tmp_path, capsys):
    from surefoot.audit import verifier

    path, fine = tmp_path / "alarm.ledger", tmp_path / "fine.ledger"
    learnt(HIGH, ledger=path)
    verdict = sf.check_ledger(path)
    assert verdict.off_baseline == 0 and verdict.certified == 0
    assert verifier.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "\nNothing was certified: every plan is the baseline\n" in said
    assert f"\nALARM after {verdict.frozen_after} episodes" in said
    learnt(LOW, ledger=fine)
    verdict = sf.check_ledger(fine)
    assert verdict.frozen_after is None and verdict.off_baseline > 0  # control
    assert verifier.main([str(fine)]) == 0
    said = capsys.readouterr().out
    assert "ALARM" not in said and "plan is the baseline" not in said


def test_a_learner_that_is_killed_while_it_is_saved_leaves_the_file_before(tmp_path):
    """The process ends in the middle of writing; the half of a file that it leaves has another
    name.
    """
    import subprocess
    import sys

    path = tmp_path / "learner.npz"
    code = (
        "import os, sys, surefoot as sf\n"
        "from surefoot.base import files\n"
        "world = sf.world('trap')\n"
        "learner = sf.Learner(sf.StepMix(world.problem, world.baseline, 0.6), 7)\n"
        "sf.save_learner(learner, sys.argv[1])\n"
        "def killed(stream, **arrays):\n"
        "    stream.write(b'half of it')\n"
        "    stream.flush()\n"
        "    os._exit(9)\n"
        "files.np.savez_compressed = killed\n"
        "sf.save_learner(learner, sys.argv[1])\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    (half,) = [other for other in tmp_path.iterdir() if other != path]
    # control: it was under way
    assert half.read_bytes() == b"half of it" and half.name.endswith(".partial")
    world = sf.world("trap")
    assert sf.load_learner(path, sf.StepMix(world.problem, world.baseline, 0.6)).seed == 7


def test_a_relative_floor_is_refused_with_what_to_do(assert_refused):
    known = problem()
    relative = sf.EpsMix(known, sf.embed_policy(known, BASELINE[0]), sf.Below(0.5))
    words = (
        r"no number to compare returns with. Give it a number as its floor, in the units of "
        r"your rewards"
    )
    assert_refused(sf.InvalidSetting, words, sf.Watchdog().on, relative)
    assert_refused(
        sf.InvalidSetting,
        words,
        sf.Watchdog().on_guard,
        sf.Guard(low=0.0, high=1.0, floor=sf.Below(0.1)),
    )
