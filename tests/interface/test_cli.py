"""The command: what it prints, what it writes, how it ends."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import surefoot as sf
from surefoot.cli import app, main

COMMAND = [sys.executable, "-c", "from surefoot.cli import main; main()"]


def surefoot(*arguments, cwd=None):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


def test_the_module_is_the_command():
    result = subprocess.run([sys.executable, "-m", "surefoot", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"surefoot {sf.__version__}"


def test_version_and_help():
    assert surefoot("--version").stdout.strip() == f"surefoot {sf.__version__}"
    for arguments in (("--help",), ("-h",), ("demo", "--help")):
        result = surefoot(*arguments)
        assert result.returncode == 0
        assert "Usage" in result.stdout
    assert "NOT CERTIFIED" in surefoot("demo", "--help").stdout


def test_demo_for_people(tmp_path):
    result = surefoot("demo", "--episodes", "3000", "--out", "figure.svg", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""  # silent where nobody watches
    for word in (
        "StepMix",
        "EpsMix",
        "BPI-UCBVI",
        "baseline alone",
        "NOT CERTIFIED",
        "floor 2",
        "surefoot demo --scale 1",
    ):
        assert word in result.stdout
    figure = (tmp_path / "figure.svg").read_text()
    assert figure.startswith("<?xml")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_demo_for_programs(tmp_path):
    result = surefoot("demo", "--episodes", "3000", "--seed", "5", "--out", "f.png", "--json", cwd=tmp_path)
    table = json.loads(result.stdout)
    assert table["seed"] == 5
    assert [row["learner"] for row in table["rows"]] == ["baseline alone", "StepMix", "EpsMix", "BPI-UCBVI"]
    assert all("NOT CERTIFIED" in row["promise"] for row in table["rows"][1:])
    assert table["rows"][3]["violations"] > 0
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_the_papers_constants_are_certified_and_the_optimist_is_not(tmp_path):
    result = surefoot("demo", "--scale", "1", "--episodes", "500", "--json", cwd=tmp_path)
    promises = {row["learner"]: row["promise"] for row in json.loads(result.stdout)["rows"]}
    assert promises["StepMix"].startswith("certified at delta = 0.1")
    assert promises["BPI-UCBVI"] == "no floor promised"
    assert "NOT CERTIFIED" not in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "--episodes", "0"),
        ("demo", "--seed", "-1"),
        ("demo", "--out", "x.doc"),
        ("demo", "--scale", "-1"),
        ("nope",),
    ],
)
def test_wrong_usage_ends_with_2_and_no_traceback(arguments, tmp_path):
    result = surefoot(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_figure_is_said_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    result = surefoot("demo", "--episodes", "200", "--out", "file/figure.png", cwd=tmp_path)
    assert result.returncode == 1
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""  # said before any time was spent


def test_bad_data_ends_with_1(monkeypatch, capsys):
    def refuse():
        raise sf.InvalidModel("P[0, 0, 0] sums to 0.9")

    monkeypatch.setattr("surefoot.cli.app", refuse)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "surefoot: InvalidModel: P[0, 0, 0] sums to 0.9\n"


def test_the_same_seed_prints_the_same(tmp_path):
    """Times aside."""
    runner = CliRunner()
    rows = []
    for _ in range(2):
        result = runner.invoke(app, ["demo", "--episodes", "800", "--json", "--out", str(tmp_path / "f.png")])
        table = json.loads(result.stdout)
        rows.append([{k: v for k, v in row.items() if k != "seconds"} for row in table["rows"]])
    assert rows[0] == rows[1]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_cleanly(tmp_path):
    """10^9 episodes, interrupted after the kernels are loaded: what was played is shown, and nothing is torn."""
    surefoot("demo", "--episodes", "1", cwd=tmp_path)  # compiles, if nobody has yet
    arguments = [*COMMAND, "demo", "--episodes", "1000000000", "--json", "--out", "f.png"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    row = json.loads(out)["rows"][1]
    assert row["interrupted"]
    assert 0 < row["episodes"] < 10**9


def test_an_interrupted_run_is_a_run(paper_world):
    """The first Ctrl-C is heard between episodes: totals, curve and counts agree on how many were played."""
    baseline = sf.boltzmann(sf.solve(paper_world).Q, eta=10.0)
    agent = sf.StepMix(paper_world.problem, baseline, 2.0)
    sf.simulate(paper_world, agent, 1, seed=0)
    for drive in (sf.simulate, sf.simulate_plainly):
        before = signal.getsignal(signal.SIGINT)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        run = drive(paper_world, agent, 10**8, seed=0)
        assert run.interrupted
        assert 0 < run.episodes < 10**8
        assert sum(run.sources.values()) == run.curve.episodes.sum() == run.episodes
        assert run.counts.n_sas.sum() == run.episodes * paper_world.H
        assert signal.getsignal(signal.SIGINT) is before
