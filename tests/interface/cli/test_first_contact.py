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
from typer.testing import CliRunner

import surefoot as sf
from surefoot.cli.main import app, main
from surefoot.run import by_name
from surefoot.studies.analysis import summary

RUNNER = CliRunner()
OFFERS = ("--reward-range", "-1", "10", "--states", "4", "--actions", "3")
KNOWN = ("--rewards", "as-logged", "--start", "0", "--stationary", "--pooled")


def surefoot(*arguments, **settings):
    return RUNNER.invoke(app, list(map(str, arguments)), **settings)


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
    assert found["baseline"] == mine.baseline == pytest.approx(log.mean_return, rel=0.02)
    other = forecast_of(folder / "counts.npz", "--floor", 100, *KNOWN)
    # control: a floor that is nearer is another forecast
    assert other["outlooks"] != found["outlooks"]
    margin = forecast_of(folder / "counts.npz", "--kappa", 10, *KNOWN)
    assert margin["kappa"] == pytest.approx(10) and margin["floor"] == pytest.approx(
        margin["baseline"] - 10
    )


def test_a_forecast_for_counts_that_were_saved_needs_the_problem(folder, tmp_path):
    refused = surefoot("forecast", folder / "bare.npz", "--floor", 90)
    assert "holds counts, and does not say what they are of. Give --baseline FILE" in str(
        refused.exception
    )
    found = forecast_of(folder / "bare.npz", "--baseline", folder / "baseline.npz", "--floor", 90)
    assert found["baseline"] > 90
    baseline = sf.load_baseline(folder / "baseline.npz")
    learner = sf.Learner(
        sf.StepMix(baseline.problem, baseline.policy, 90.0), 0, sf.Counts.load(folder / "bare.npz")
    )
    sf.save_learner(learner, tmp_path / "learner.npz")
    again = forecast_of(
        tmp_path / "learner.npz", "--baseline", folder / "baseline.npz", "--floor", 90
    )
    assert {**again, "world": ""} == {**found, "world": ""}


def test_a_forecast_for_an_environment(tmp_path):
    """With its model, for a uniform baseline or that of a file; without one, from a guess."""
    lake = ("FrozenLake-v1", "--horizon", 12, "--pooled")
    found = forecast_of(*lake, "--kappa", 0.001)
    world = sf.from_gymnasium("FrozenLake-v1", horizon=12)
    assert found["baseline"] == pytest.approx(
        sf.value(world, sf.uniform(world.H, world.S, world.A))
    )
    sf.save_policy(tmp_path / "best.npz", sf.solve(world).policy)
    best = forecast_of(*lake, "--kappa", 0.001, "--baseline", tmp_path / "best.npz")
    assert best["baseline"] == pytest.approx(sf.solve(world).value)
    for arguments, words in (
        (("FrozenLake-v1", "--kappa", 1), "give the steps of an episode: --horizon"),
        (lake, "Give --floor, in the units of the rewards, or --kappa"),
        ((*lake, "--kappa", 1, "--rewards", "as-logged"), "--rewards is for logs"),
        (("Nowhere-v0", "--horizon", 3, "--kappa", 1), "cannot make 'Nowhere-v0'"),
        (("trap", "--horizon", 3), "--horizon is for logs and environments"),
        (("nothing.csv", "--floor", 1), "does not exist"),
    ):
        assert words in str(surefoot("forecast", *arguments).exception)


def test_a_baseline_is_never_overwritten_without_being_told_to(folder, tmp_path):
    out = tmp_path / "mine.npz"
    out.write_text("months of work")
    command = (
        "baseline",
        folder / "counts.npz",
        "--out",
        out,
        "--rewards",
        "as-logged",
        "--start",
        "0",
    )
    refused = surefoot(*command)
    assert isinstance(refused.exception, sf.InvalidSetting)
    assert (
        "exists: nothing is overwritten. Choose another file with --out, or replace it with --force"
        in str(refused.exception)
    )
    assert out.read_text() == "months of work"
    assert surefoot(*command, "--force").exit_code == 0
    assert sf.load_baseline(out).episodes == 300
    # control: a new file
    assert surefoot(*command[:3], tmp_path / "new.npz", *command[4:]).exit_code == 0


# ---- what a study says first

STUDY = {
    "name": "tiny",
    "title": "A tiny study",
    "question": "Does it run?",
    "trials": 3,
    "episodes": 400,
    "scenarios": [{"id": "trap", "world": {"name": "trap"}}],
    "agents": [
        {"id": "tenth", "agent": "stepmix", "bounds": "kl", "replan": 0.1},
        {"id": "blocks", "agent": "stepmix", "bounds": "kl", "replan": 0.01},
        {"id": "each", "agent": "bpi-ucbvi", "bounds": "kl", "replan": 0},
    ],
}
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


def test_counts_are_never_overwritten_without_force(folder, tmp_path):
    out = tmp_path / "counts.npz"
    count = ("logs", "count", folder / "log.parquet", "--out", out, *OFFERS)
    assert surefoot(*count).exit_code == 0
    before = out.read_bytes()
    again = surefoot(*count, "--seed", 1)
    assert isinstance(
        again.exception, sf.InvalidSetting
    ) and "exists: nothing is overwritten" in str(again.exception)
    assert out.read_bytes() == before
    assert surefoot(*count, "--seed", 1, "--force").exit_code == 0
    assert out.read_bytes() != before


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
    given = ("--horizon", 3, "--reward-range", 0, 5, "--kappa", 0.5)
    found = surefoot("forecast", "my_shop:Shop", *given, "--unit", "EUR")
    assert found.exit_code == 0, found.exception
    assert "kappa = 0.5 EUR" in found.output
    missing = surefoot("forecast", "no_such_shop:Shop", *given)
    assert "names the module no_such_shop, which cannot be imported" in str(missing.exception)
    assert str(tmp_path) not in sys.path
    assert (
        forecast_of("CliffWalking-v1", "--horizon", 3, "--floor", -20, "--unit", "steps")["unit"]
        == "steps"
    )
    refused = surefoot("forecast", "trap", "--unit", "EUR")
    assert "--unit is for logs and environments" in str(refused.exception)


# ---- how commands end


def test_a_run_that_broke_its_promise_says_so():
    world = sf.world("trap")
    kept = sf.simulate(world, sf.StepMix(world.problem, world.baseline, 0.6), 50, seed=0)
    assert not kept.promise_broken  # control
    assert replace(kept, violations=1).promise_broken
    scaled = sf.simulate(
        world, sf.StepMix(world.problem, world.baseline, 0.6, bounds=sf.KL(scale=0.5)), 50, seed=0
    )
    assert not replace(scaled, violations=1).promise_broken  # NOT CERTIFIED: nothing was promised
    assert not replace(
        sf.simulate(world, sf.BPIUCBVI(world.problem), 50, seed=0), violations=1
    ).promise_broken
    in_sum = replace(kept, in_sum=True, violations=3, min_cumulative=-0.5)
    assert in_sum.promise_broken and not replace(in_sum, min_cumulative=0.0).promise_broken


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
