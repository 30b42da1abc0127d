"""What a newcomer meets first at the command: forecasts of their own, files that are safe, what
a study says.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

import surefoot as sf
from command import surefoot
from surefoot.cli.main import main
from surefoot.run import by_name
from surefoot.studies.analysis import summary

OFFERS = ("--reward-range", "-1", "10", "--states", "4", "--actions", "3")
KNOWN = ("--rewards", "as-logged", "--start", "0", "--stationary", "--pooled")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log of offers, its counts, and a baseline learnt from it."""
    place = tmp_path_factory.mktemp("own")
    world = sf.world("offers")
    sf.sample_log(world, world.baseline, 300, place / "log.parquet", seed=0)
    log = sf.count_log(place / "log.parquet", reward_range=(-1, 10), states=4, actions=3)
    log.save(place / "counts.npz")
    log.counts.save(place / "bare.npz")
    problem = log.problem("as logged", start=0, stationary=True)
    sf.Baseline.of(sf.robust_vi(log.counts, problem, 0.05), log.codebook).save(
        place / "baseline.npz"
    )
    sf.save_policy(place / "policy.npz", world.baseline)
    return place


def forecast_of(*arguments):
    result = surefoot("forecast", *arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_a_forecast_for_a_log_and_for_its_counts(folder):
    """Both say the same, and what Python says of the same agent; the policy is the one that
    wrote the log.
    """
    found = forecast_of(folder / "log.parquet", "--floor", 90, *OFFERS, *KNOWN)
    again = forecast_of(folder / "counts.npz", "--floor", 90, *KNOWN)
    assert {**found, "world": ""} == {**again, "world": ""}
    log = sf.LogCounts.load(folder / "counts.npz")
    problem = log.problem("as logged", start=0, stationary=True)
    agent = sf.StepMix(problem, sf.clone(log.counts, problem, 0.05).policy, 90.0, pooled=True)
    mine = sf.forecast(agent, counts=log.counts.pool())
    assert found["outlooks"][0]["first_optimistic"] == mine.outlooks[0].first_optimistic
    assert found["baseline"] == mine.baseline
    margin = forecast_of(folder / "counts.npz", "--kappa", 10, *KNOWN)
    assert margin["floor"] == pytest.approx(margin["baseline"] - 10)


def test_a_forecast_for_counts_that_were_saved_needs_the_problem(folder):
    refused = surefoot("forecast", folder / "bare.npz", "--floor", 90)
    assert "does not say what they are of. Give --baseline FILE" in str(refused.exception)
    known = ("--baseline", folder / "baseline.npz", "--floor", 90)
    assert forecast_of(folder / "bare.npz", *known)["baseline"] > 90
    baseline = sf.load_baseline(folder / "baseline.npz")
    agent = sf.StepMix(baseline.problem, baseline.policy, 90.0)
    learner = sf.Learner(agent, 0, sf.Counts.load(folder / "bare.npz"))
    sf.save_learner(learner, folder / "learner.npz")
    assert forecast_of(folder / "learner.npz", *known)["baseline"] > 90


LAKE = ("FrozenLake-v1", "--horizon", 12, "--pooled")


def test_a_forecast_for_an_environment(tmp_path):
    """With its model, for a uniform baseline or that of a file."""
    world = sf.from_gymnasium("FrozenLake-v1", horizon=12)
    uniform = forecast_of(*LAKE, "--kappa", 0.001)
    worth = sf.value(world, sf.uniform(world.H, world.S, world.A))
    assert uniform["baseline"] == pytest.approx(worth)
    sf.save_policy(tmp_path / "best.npz", sf.solve(world).policy)
    best = forecast_of(*LAKE, "--kappa", 0.001, "--baseline", tmp_path / "best.npz")
    assert best["baseline"] == pytest.approx(sf.solve(world).value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("FrozenLake-v1", "--kappa", 1), "give the steps of an episode: --horizon"),
        (LAKE, "Give --floor, in the units of the rewards, or --kappa"),
        ((*LAKE, "--kappa", 1, "--rewards", "as-logged"), "--rewards is for logs"),
        (("Nowhere-v0", "--horizon", 3, "--kappa", 1), "cannot make 'Nowhere-v0'"),
        (("trap", "--horizon", 3), "--horizon is for logs and environments"),
        (("trap", "--unit", "EUR"), "--unit is for logs and environments"),
        (("nothing.csv", "--floor", 1), "does not exist"),
        (
            ("no_such_shop:Shop", "--horizon", 3, "--kappa", 1),
            "names the module no_such_shop, which cannot be imported",
        ),
    ],
)
def test_forecasts_that_are_refused(arguments, words):
    assert words in str(surefoot("forecast", *arguments).exception)


@pytest.mark.parametrize(
    "command",
    [
        ("baseline", "counts.npz", "--rewards", "as-logged", "--start", "0"),
        ("logs", "count", "log.parquet", *OFFERS),
    ],
)
def test_nothing_is_overwritten_without_force(folder, tmp_path, monkeypatch, command):
    monkeypatch.chdir(folder)
    out = tmp_path / "mine.npz"
    out.write_text("months of work")
    refused = surefoot(*command, "--out", out)
    assert isinstance(refused.exception, sf.InvalidSetting)
    assert "exists: nothing is overwritten" in str(refused.exception)
    assert out.read_text() == "months of work"
    assert surefoot(*command, "--out", out, "--force").exit_code == 0
    assert out.read_bytes().startswith(b"PK")
    assert surefoot(*command, "--out", tmp_path / "new.npz").exit_code == 0  # control: a new file


# ---- what a study says first

TOML = """
name = "tiny"
title = "A tiny study"
question = "Does it run?"
trials = 2
episodes = 300
replan = 0.1
[[scenarios]]
id = "trap"
world = { name = "trap" }
[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"
"""


@pytest.fixture
def tiny(tmp_path):
    (tmp_path / "tiny.toml").write_text(TOML)
    return ("run", tmp_path / "tiny.toml", "--jobs", 1, "--no-report", "--out", tmp_path / "out")


def test_how_many_trials_are_done_is_said_first(tiny):
    result = surefoot(*tiny)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "tiny (full): 0 of 2 trials done"
    again = surefoot(*tiny, "--resume")
    assert again.stdout.splitlines()[0] == "tiny (full): 2 of 2 trials done"


SHOP = """
import gymnasium

class Shop(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 1, 2.0, False, False, {}
"""


def test_a_forecast_for_an_environment_that_is_not_registered(tmp_path, monkeypatch):
    """By the names of its module, here a file of this folder, and of its class; and in its unit."""
    (tmp_path / "my_shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    given = ("--horizon", 3, "--reward-range", 0, 5, "--kappa", 0.5, "--unit", "EUR")
    assert forecast_of("my_shop:Shop", *given)["unit"] == "EUR"
    assert str(tmp_path) not in sys.path


# ---- how commands end


def test_a_run_that_broke_its_promise_says_so():
    world = sf.world("trap")

    def broken(agent, **fields):
        return replace(sf.simulate(world, agent, 50, seed=0), **fields).promise_broken

    given = (world.problem, world.baseline, 0.6)
    agent = sf.StepMix(*given)
    assert broken(agent, violations=1)
    assert not broken(agent, violations=0)  # control
    assert broken(agent, in_sum=True, violations=3, min_cumulative=-0.5)
    assert not broken(agent, in_sum=True, violations=3, min_cumulative=0.0)
    scaled = sf.StepMix(*given, bounds=sf.KL(scale=0.5))  # NOT CERTIFIED: nothing was promised
    assert not broken(scaled, violations=1)
    assert not broken(sf.BPIUCBVI(world.problem), violations=1)


def ended(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["surefoot", *map(str, arguments)])
    with pytest.raises(SystemExit) as ending:
        main()
    return ending.value.code or 0


def test_try_ends_with_3_if_a_promise_was_broken(monkeypatch, capsys):
    real, arguments = by_name.try_agents, ("try", "trap", "--episodes", 50)
    assert ended(monkeypatch, *arguments) == 0  # control
    monkeypatch.setattr(
        by_name, "try_agents", lambda *given: [replace(run, violations=1) for run in real(*given)]
    )
    assert ended(monkeypatch, *arguments) == 3
    assert "StepMix broke the promise" in capsys.readouterr().err


def test_studies_end_with_3_if_a_promise_was_broken(tiny, monkeypatch):
    """`run`, `report` and `results`: each that shows it."""
    folder = tiny[-1]
    assert surefoot(*tiny).exit_code == 0
    commands = [(*tiny, "--resume"), ("report", folder), ("results", folder)]
    assert [surefoot(*command).exit_code for command in commands] == [0, 0, 0]  # control
    monkeypatch.setitem(summary.COUNTS, "broken", lambda trial: True)
    results = [surefoot(*command) for command in commands]
    assert [result.exit_code for result in results] == [3, 3, 3]
    assert all("a promise was broken" in result.stderr for result in results)


# ---- the shell


def test_shells_are_given_a_script_that_completes(tmp_path):
    """The script is printed, and what it calls answers."""
    code = "import sys; sys.argv[0] = 'surefoot'; from surefoot.cli.main import main; main()"

    def called(**variables):
        given = {**os.environ, **variables}
        return subprocess.run(
            [sys.executable, "-c", code], env=given, capture_output=True, text=True, check=False
        )

    for shell in ("bash", "zsh", "fish"):
        script = called(_SUREFOOT_COMPLETE=f"source_{shell}").stdout
        assert "_SUREFOOT_COMPLETE" in script and "surefoot" in script
    asked = {"COMP_WORDS": "surefoot logs ch", "COMP_CWORD": "2"}
    assert called(_SUREFOOT_COMPLETE="complete_bash", **asked).stdout.split() == ["check"]
    assert re.search(
        r"--install-completion.*--show-completion", surefoot("--help").stdout, re.DOTALL
    )
