"""A guard in Gymnasium environments: policies of three kinds, failures, resuming, the watchdog."""

import os
import shutil
import subprocess
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import surefoot as sf

GUARD = sf.Guard(floor=0.4, low=0.0, high=1.0, stages=())


class Contextual(gymnasium.Env):
    """One step: action 1 pays with probability `observation[0]`, action 0 with 0.5. All from the
    seed.
    """

    observation_space = Box(0.0, 1.0, (2,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = self.np_random.random(2)
        return self.seen, {}

    def step(self, action):
        chance = self.seen[0] if action == 1 else 0.5
        return self.seen, float(self.np_random.random() < chance), True, False, {}


class Pushing(gymnasium.Env):
    """A Dict observation and a Box action; truncated after three steps. Each step pays what was
    pushed, over 3.
    """

    observation_space = Dict({"left": Discrete(5), "force": Box(-1.0, 1.0, (2,), np.float32)})
    action_space = Box(0.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 3
        return self.shown(), {}

    def shown(self):
        return {"left": self.left, "force": np.zeros(2, dtype=np.float32)}

    def step(self, action):
        self.left -= 1
        return self.shown(), float(np.mean(action)) / 3, False, self.left == 0, {}


def always(action):
    return lambda observation: action


def informed(observation):
    return int(observation[0] > 0.5)


class LikeStableBaselines:
    """`predict` returns (action, state), the action as an array without axes."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert observation.shape == (2,)
        return np.asarray(informed(observation)), None


class LikeScikitLearn:
    """`predict` takes a batch, refuses a single observation, and returns a batch."""

    def predict(self, X):
        if np.ndim(X) != 2:
            raise ValueError(f"Expected 2D array, got {np.ndim(X)}D array instead")
        return (np.asarray(X)[:, 0] > 0.5).astype(np.int64)


class WithPredict:
    """`predict` returns an action."""

    def predict(self, observation):
        return informed(observation)


def played(candidate=informed, episodes=600, guard=GUARD, env=None, **settings):
    made = Contextual() if env is None else env
    settings = {"baseline": always(0), "seed": 5, "progress": False, **settings}
    return sf.guard_env(made, guard, candidate=candidate, episodes=episodes, **settings)


def test_three_kinds_of_policies_play_the_same():
    runs = [
        played(policy, 300, logged=[1.0, 0.0, 1.0] * 100)
        for policy in (informed, LikeStableBaselines(), LikeScikitLearn(), WithPredict())
    ]
    assert all(run.state == runs[0].state for run in runs)
    run = runs[0]
    assert run.plan.rho == 1.0 and run.failed == run.refused == 0 and run.played["candidate"] > 100
    assert run.mean_return["candidate"] == pytest.approx(0.625, abs=0.12)
    assert (
        run.promise.certified and "Next: candidate" in run.explain() and "300 episodes" in repr(run)
    )


def test_dict_and_box_spaces_and_truncation():
    """A return is what an episode paid, though it was truncated."""
    half, full = np.full(2, 0.5), [1.0, 1.0]
    run = sf.guard_env(
        Pushing(), GUARD, baseline=always(half), candidate=always(full), episodes=150, seed=0
    )
    returns = run.state.tickets.columns.ret
    assert set(np.round(returns, 6)) == {0.5, 1.0}
    assert run.played["candidate"] > 10


def test_a_policy_that_raises_counts_as_the_worst_return():
    def fragile(observation):
        if observation[1] > 0.5:
            raise ZeroDivisionError("of a model")
        return informed(observation)

    run = played(fragile, 200, logged=[1.0] * 200)
    assert (
        run.failed == run.state.policies[1].unheard > 5
        and "ZeroDivisionError: of a model" in run.last_failure
    )
    good = played(informed, 200, logged=[1.0] * 200)
    assert run.plan.lower["candidate"] < good.plan.lower["candidate"] and run.episodes == 200


def test_a_policy_that_fails_is_told_of(caplog):
    def broken(observation):
        raise ValueError("no weights")

    run = played(broken, 60, logged=[1.0] * 200)
    [record] = caplog.records
    assert record.name == "surefoot" and "of policy 'candidate' failed" in record.getMessage()
    assert f"{run.failed} whose policy FAILED (of 60 episodes)" in repr(run) and run.failed > 5
    assert (
        run.explain().startswith(f"{run.failed} whose policy FAILED")
        and "ValueError: no weights" in run.explain()
    )
    caplog.clear()
    good = played(informed, 60, logged=[1.0] * 200)
    assert not caplog.records and "FAILED" not in repr(good) + good.explain()


def test_an_episode_that_was_broken_off_is_not_played_again(tmp_path):
    """The second Ctrl-C interrupts a policy: its ticket was drawn, stays open, and counts as the
    worst return.
    """
    calls = []

    def patient(observation):
        calls.append(observation)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return informed(observation)

    settings = {"episodes": 100, "save": tmp_path / "run.npz", "logged": [1.0] * 200}
    with pytest.raises(KeyboardInterrupt):
        played(patient, **settings)
    run = played(patient, **settings, resume=True)
    assert run.episodes == 100 and run.state.open_tickets == 1 and run.failed == 0
    assert "1 without a return, counted as the worst return" in run.explain()


@pytest.mark.parametrize("action", [7, 0.5, "left", None, [0, 1]])
def test_what_is_no_action_is_a_failure_of_the_policy(action):
    run = played(always(action), episodes=60, logged=[1.0] * 200)
    assert run.failed == run.played["candidate"] > 5 and run.plan.lower["candidate"] == 0.0


def paying(candidate):
    """An environment that pays this to action 1."""

    class Paying(Contextual):
        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, candidate if action else 0.5, *rest

    return Paying()


def test_a_return_that_is_refused_stays_open():
    run = played(always(1), episodes=60, env=paying(1.5), logged=[1.0] * 200)
    assert run.refused == run.played["candidate"] > 5
    assert "above the declared range" in run.last_failure


def test_a_return_below_the_range_freezes_the_guard():
    run = played(always(1), episodes=60, env=paying(-2.0), logged=[1.0] * 200)
    assert run.played["candidate"] == 1 and not run.promise.certified
    assert "premise is false" in run.alarm


def test_an_environment_that_fails_ends_the_run_with_its_ticket_recorded(tmp_path):
    class Broken(Contextual):
        calls = 0

        def step(self, action):
            self.calls += 1
            if self.calls == 30:
                raise ConnectionError("lost")
            return super().step(action)

    env = Broken()
    with pytest.raises(ConnectionError):
        played(episodes=100, env=env, save=tmp_path / "run.npz")
    run = played(episodes=100, env=env, save=tmp_path / "run.npz", resume=True)
    # the episode is not played again: it was drawn
    assert run.episodes == 100 and run.state.open_tickets == 1


def test_saving_changes_nothing(tmp_path, monkeypatch):
    """Saved after every episode, or not at all: the same run, and the same ledger."""
    from surefoot.run import guard_env as module

    settings = {"episodes": 80, "watchdog": sf.Watchdog(), "logged": [1.0] * 200}
    whole = played(**settings, ledger=tmp_path / "a.ledger")
    monkeypatch.setattr(module, "SAVE_SECONDS", -1.0)
    saved = played(**settings, ledger=tmp_path / "b.ledger", save=tmp_path / "b.npz")
    assert saved.state == whole.state
    assert (tmp_path / "a.ledger").read_bytes() == (tmp_path / "b.ledger").read_bytes()


def interrupted_after(n):
    """An environment that asks for an interruption, as Ctrl-C does, in its episode n."""
    import signal

    class Interrupting(Contextual):
        __qualname__ = Contextual.__qualname__  # by which a saved run knows its environment

        def reset(self, *, seed=None, options=None):
            self.count = getattr(self, "count", 0) + 1
            if self.count == n:
                signal.raise_signal(signal.SIGINT)
            return super().reset(seed=seed, options=options)

    return Interrupting()


WATCHED = {"watchdog": sf.Watchdog(), "logged": [1.0, None, 0.0]}
GUARDS = {"fine": GUARD, "alarmed": sf.Guard(floor=0.75, low=0.0, high=1.0)}


def files(folder):
    folder.mkdir()
    return {"save": folder / "a.npz", "ledger": folder / "a.ledger"}


@pytest.mark.parametrize("name", GUARDS)
@pytest.mark.parametrize(
    ("stop", "interrupted"), [(1, False), (60, False), (83, True), (149, False)]
)
def test_a_run_that_was_stopped_is_one_that_was_not(name, stop, interrupted, tmp_path):
    """Its file and its ledger, which it remembers; with and without an alarm on the way."""
    settings = {"guard": GUARDS[name], **WATCHED}
    one, other = files(tmp_path / "whole"), files(tmp_path / "parts")
    whole = played(episodes=150, **settings, **one)
    assert (whole.alarm != "") == (name == "alarmed")
    env, episodes = (interrupted_after(stop), 150) if interrupted else (None, stop)
    part = played(episodes=episodes, env=env, **settings, **other)
    assert (part.interrupted, part.episodes) == (interrupted, stop)
    run = played(episodes=150, **settings, save=other["save"], resume=True)
    for field in ("state", "mean_return", "alarm", "interrupted"):
        assert getattr(run, field) == getattr(whole, field)
    for file in one:
        assert other[file].read_bytes() == one[file].read_bytes()
    verdict = sf.check_ledger(other["ledger"])
    assert verdict.closed and not verdict.refusals and verdict.episodes == 150


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"resume": False}, "exists"),
        *(
            (changed, r"another run.*fingerprints|other logged")
            for changed in (
                {"seed": 6},
                {"watchdog": None},
                {"logged": [1.0]},
                {"candidate": {"x": informed}},
                {"fingerprints": {"candidate": "7f"}},
            )
        ),
        ({"episodes": 29}, r"holds 30 episodes, found episodes=29\..*30 or more"),
        ({"episodes": 31, "ledger": None}, "plans were written to it"),
    ],
)
def test_another_run_does_not_go_on_with_a_file(other, words, tmp_path, assert_refused):
    mine = files(tmp_path / "mine")
    played(episodes=30, **WATCHED, **mine)
    before = mine["save"].read_bytes()
    if "ledger" in other:
        mine["ledger"].unlink()
    assert_refused(
        sf.InvalidFile,
        words,
        played,
        **{"episodes": 30, **WATCHED, "save": mine["save"], "resume": True, **other},
    )
    assert mine["save"].read_bytes() == before


class Fifth:
    """A policy that does something in its fifth episode."""

    def __init__(self, act):
        self.act, self.count = act, 0

    def __call__(self, observation):
        self.count += 1
        return self.act() if self.count == 5 else informed(observation)


def broken():
    raise ZeroDivisionError


SETTINGS = {"episodes": 120, "watchdog": sf.Watchdog(), "logged": [1.0] * 200}


def killed(folder):
    """In another process: the candidate's fifth episode ends it, and nothing can be done about
    it.
    """
    files = {"save": f"{folder}/b.npz", "ledger": f"{folder}/b.ledger"}
    played(Fifth(lambda: os._exit(9)), **SETTINGS, **files)


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A folder with what a process left that was killed: copy it."""
    folder = tmp_path_factory.mktemp("left")
    code = "import runpy, sys; runpy.run_path(sys.argv[1])['killed'](sys.argv[2])"
    assert (
        subprocess.run([sys.executable, "-c", code, __file__, str(folder)], check=False).returncode
        == 9
    )
    return folder


@pytest.mark.parametrize("more", [b"", b'["drawn", 9'])
def test_an_episode_in_which_the_process_is_killed_is_an_open_ticket(tmp_path, left, more):
    """Resumed, the run is the one in which that episode failed. A line that was cut off: no
    episode had begun.
    """
    whole = played(Fifth(broken), **SETTINGS, ledger=tmp_path / "a.ledger")
    shutil.copytree(left, tmp_path, dirs_exist_ok=True)
    with (tmp_path / "b.npz.journal").open("ab") as stream:
        stream.write(more)
    run = played(
        informed, **SETTINGS, save=tmp_path / "b.npz", ledger=tmp_path / "b.ledger", resume=True
    )
    assert run.state.open_tickets == 1 and run.played["candidate"] > 20
    assert run.state == whole.state
    assert (tmp_path / "b.ledger").read_bytes() == (tmp_path / "a.ledger").read_bytes()
    assert not (tmp_path / "b.npz.journal").exists()
    # as if killed after the run was saved, before this was removed
    shutil.copy(left / "b.npz.journal", tmp_path)
    assert played(informed, **SETTINGS, save=tmp_path / "b.npz", resume=True).state == whole.state


def test_a_journal_that_does_not_fit_is_refused_and_kept(tmp_path, left, assert_refused):
    shutil.copytree(left, tmp_path, dirs_exist_ok=True)
    journal = tmp_path / "b.npz.journal"
    text = journal.read_text()
    resumed = partial(played, informed, **SETTINGS, save=tmp_path / "b.npz", resume=True)
    for changed, words in (
        (text.replace('"candidate"', '"baseline"'), "played episode"),
        (text.replace("journal of", "journal off", 1), "another run"),
        (text.replace('"drawn"', '"lost"', 1), "impossible"),
    ):
        journal.write_text(changed)
        for _ in range(2):
            assert_refused(sf.InvalidFile, words, resumed)
        assert journal.read_text() == changed
    (tmp_path / "b.npz").unlink()
    assert_refused(sf.InvalidFile, "does not exist", resumed)


def test_one_process_at_a_time_goes_on_with_a_run(tmp_path):
    """Else both would play the same tickets, and whoever saved last would choose which returns
    count.
    """
    file, refusals = tmp_path / "run.npz", []

    def meddling(observation):
        for more in ({}, {"resume": True}):
            with pytest.raises(sf.InvalidFile) as found:
                played(meddling, 40, save=file, **more)
            refusals.append(str(found.value))
        return informed(observation)

    logged = [1.0, 0.0, 1.0] * 100
    first = played(meddling, 40, save=file, logged=logged)
    assert first.failed == 0 and first.played["candidate"] > 3
    assert len(refusals) == 2 * first.played["candidate"] and all(
        "by another process" in text for text in refusals
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    assert played(meddling, 40, save=file, resume=True, logged=logged).state == first.state


def test_the_watchdog_freezes_a_guard_whose_promise_is_not_supported(assert_refused):
    """The baseline is below the floor, and that it is not is a premise: the returns show it."""
    high = sf.Guard(floor=0.75, low=0.0, high=1.0)
    run = played(episodes=150, guard=high, watchdog=sf.Watchdog())
    assert "ALARM after" in run.alarm and not run.promise.certified
    assert_refused(
        sf.InvalidSetting,
        "relative",
        played,
        guard=sf.Guard(low=0.0, high=1.0),
        watchdog=sf.Watchdog(),
    )


def test_several_candidates_by_name_with_fingerprints():
    run = played(
        {"good": informed, "bad": lambda o: int(o[0] < 0.2)},
        episodes=300,
        fingerprints={"good": "9c"},
    )
    assert (
        set(run.played) == {"baseline", "good", "bad"} and run.state.policies[1].fingerprint == "9c"
    )


def test_what_is_refused(assert_refused):
    assert_refused(sf.InvalidPolicy, "predict", played, 3)
    assert_refused(sf.InvalidSetting, "which is no policy", played, fingerprints={"other": "1"})
    assert_refused(sf.InvalidSetting, "Say which with save", played, resume=True)
    assert_refused(sf.InvalidSetting, "watchdog", played, watchdog=0.01)


@pytest.mark.full
def test_a_ppo_policy_of_stable_baselines():
    """The real library, where it is installed: it is no dependency, and torch takes gigabytes."""
    sb3 = pytest.importorskip("stable_baselines3")
    env = gymnasium.make("CartPole-v1", max_episode_steps=100)
    model = sb3.PPO("MlpPolicy", env, seed=0, device="cpu").learn(5000)
    guard = sf.Guard(floor=sf.Relative(0.2), low=0, high=100, stages=())
    run = sf.guard_env(
        env, guard, baseline=lambda o: int(o[2] > 0), candidate={"ppo": model}, episodes=100, seed=0
    )
    assert run.failed == 0 and run.played["ppo"] > 10


@pytest.mark.full
def test_a_model_of_scikit_learn():
    """The real library, where it is installed."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    X = np.random.default_rng(0).random((500, 2))
    model = linear_model.LogisticRegression().fit(X, X[:, 0] > 0.5)
    run = played(model, 100, logged=[1.0, 0.0, 1.0] * 100)
    assert run.failed == 0 and run.played["candidate"] > 10


def test_a_run_never_cuts_the_ledger_of_another_one_and_knows_its_own(tmp_path, assert_refused):
    """A mistyped file is refused, and so is a ledger that lost plans which the run remembers.
    Not a byte changes.
    """
    plans = {"ledger": tmp_path / "plans.ledger", "logged": [1.0, 0.0, 1.0] * 100}
    played(informed, 60, save=tmp_path / "run.npz", **plans)
    before = plans["ledger"].read_bytes()
    resumed = partial(played, informed, 80, resume=True, **plans)
    assert_refused(sf.InvalidFile, "exists", resumed, save=tmp_path / "rum.npz")
    assert plans["ledger"].read_bytes() == before
    fewer = b"".join(before.splitlines(keepends=True)[:-2])
    plans["ledger"].write_bytes(fewer)
    words = "not the ledger that this run wrote"
    assert_refused(sf.InvalidFile, words, resumed, save=tmp_path / "run.npz")
    assert plans["ledger"].read_bytes() == fewer
    plans["ledger"].write_bytes(before)  # the control
    resumed(save=tmp_path / "run.npz")
    assert sf.check_ledger(plans["ledger"]).closed


def test_a_ledger_whose_first_record_was_cut_off_begins_anew(tmp_path):
    state = GUARD.begin()
    for left in (b"", b'{"delta":'):
        (tmp_path / "a.ledger").write_bytes(left)
        sf.GuardLedger.resume(tmp_path / "a.ledger", GUARD, state).write(GUARD.plan(state))
        assert not sf.check_ledger(tmp_path / "a.ledger").refusals
