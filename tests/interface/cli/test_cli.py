"""The command: what it prints, what it writes, how it ends."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.base.progress import check_ctrl_c, ctrl_c, ctrl_c_while_compiling
from surefoot.cli.main import main

COMMAND = [sys.executable, "-c", "from surefoot.cli.main import main; main()"]


def surefoot(*arguments, cwd=None):
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=cwd
    )


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """The same in this process, in an empty folder: a process costs seconds, and `main` is all
    that it would run.
    """

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["surefoot", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, out, err)

    return run


def test_version_and_help(command):
    said = surefoot("--version").stdout
    module = [sys.executable, "-m", "surefoot", "--version"]
    assert subprocess.run(module, capture_output=True, text=True, check=True).stdout == said
    assert said.strip() == f"surefoot {sf.__version__}"
    for arguments in (("--help",), ("-h",), ("demo", "--help")):
        result = command(*arguments)
        assert result.returncode == 0
        assert "Usage" in result.stdout


SHORTER = ("--episodes", "2000", "--paper-episodes", "50")
SHORTEST = ("--episodes", "20", "--paper-episodes", "20")
KL, PAPER = "sharp certificates (KL)", "the paper's bounds"


def rows_of_demo(command, *arguments):
    """What the demonstration found, by the bounds and the agent."""
    rows = json.loads(command("demo", *arguments, "--json").stdout)["rows"]
    return {(row["bounds"], row["agent"]): row for row in rows}


def test_demo_for_programs(command, tmp_path):
    """Both families side by side: the sharp one leaves the baseline, the paper's cannot yet,
    BPI-UCBVI falls.
    """
    found = rows_of_demo(command, *SHORTER, "--seed", "5", "--out", "f.png")
    assert len(found) == 8
    for name in ("StepMix", "EpsMix"):
        assert found[KL, name]["promise"].startswith("certified at delta = 0.1")
        assert found[KL, name]["violations"] == found[PAPER, name]["violations"] == 0
        assert found[KL, name]["first_off_baseline"] < 2000
        assert found[PAPER, name]["first_off_baseline"] is None
    assert found[KL, "BPI-UCBVI (EpsMix form)"]["violations"] > 0
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_a_scaled_bonus_is_not_certified_in_table_and_figure(command, tmp_path):
    found = rows_of_demo(command, *SHORTEST, "--scale", "0.01", "--out", "f.svg")
    assert found[PAPER, "StepMix"]["promise"].startswith("NOT CERTIFIED")
    assert found[KL, "StepMix"]["promise"].startswith("certified")
    assert "NOT CERTIFIED" in (tmp_path / "f.svg").read_text()


def test_forecast_for_people_and_programs(command):
    result = command("forecast", "dosing", "--pooled")
    assert result.returncode == 0, result.stderr
    assert "held back by state" in result.stdout
    small = ["forecast", "--set", "S=3", "--set", "H=2", "--kappa", "0.2", "--json"]
    found = json.loads(command(*small).stdout)
    assert abs(found["kappa"] - 0.2) < 1e-9
    bounds = [outlook["bounds"] for outlook in found["outlooks"]]
    assert bounds == ["KL certificates", "the paper's bounds"]


@pytest.mark.parametrize(
    "arguments",
    [
        "demo --episodes 0",
        "demo --seed -1",
        "demo --out x.doc",
        "demo --scale -1",
        "demo --paper-episodes 0",
        "forecast dosing --agent nobody",
        "forecast dosing --agent bpi-ucbvi",
        "forecast dosing --floor 0.1 --kappa 0.1",
        "nope",
    ],
)
def test_wrong_usage_ends_with_2_and_no_traceback(arguments, command, tmp_path):
    result = command(*arguments.split())
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_figure_is_said_at_once(command, tmp_path):
    (tmp_path / "file").write_text("")
    result = command("demo", "--episodes", "200", "--out", "file/figure.png")
    assert result.returncode == 1
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""  # said before any time was spent


def test_bad_data_ends_with_1(monkeypatch, capsys):
    def refuse():
        raise sf.InvalidModel("P[0, 0, 0] sums to 0.9")

    monkeypatch.setattr("surefoot.cli.main.app", refuse)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "surefoot: InvalidModel: P[0, 0, 0] sums to 0.9\n"


def read_until(file, pattern, seconds=120):
    """What a process has written on its terminal, once the pattern is there."""
    text, end = "", time.monotonic() + seconds
    while not re.search(pattern, text):
        assert time.monotonic() < end, text
        if select.select([file], [], [], 1.0)[0]:
            text += os.read(file, 10_000).decode(errors="replace")
    return text


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_cleanly(tmp_path):
    """10^9 episodes, interrupted once the progress bar counts them: what was played is shown,
    and nothing is torn.
    """
    import pty

    arguments = [*COMMAND, "try", "dosing", "--episodes", "1000000000", "--json", "--out", "f.png"]
    ours, theirs = pty.openpty()
    wide = {**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=theirs, text=True, cwd=tmp_path, env=wide
    )
    os.close(theirs)
    try:
        said = read_until(ours, r"[1-9][0-9,]* of 1,000,000,000 episodes")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(ours)
    assert process.returncode == 130
    assert "Traceback" not in said
    row = json.loads(out)["rows"][1]
    assert row["interrupted"]
    assert 0 < row["episodes"] < 10**9


def interrupted_while_compiling(folder):
    """Its exit code and what it said, with an empty cache: Ctrl-C as soon as it says that it
    compiles.
    """
    arguments = [*COMMAND, "try", "dosing", "--episodes", "1000", "--json", "--out", "f.png"]
    cold = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=cold
    )
    said = process.stderr.readline()
    assert "compiling" in said  # one line, where nobody watches a progress bar
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == ""
    return process.returncode, err


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_while_compiling_ends_with_one_sentence(tmp_path):
    code, said = interrupted_while_compiling(tmp_path)
    assert code == 130
    assert len(said.splitlines()) == 1, said
    assert said.startswith("Interrupted")


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_after_ctrl_c_while_compiling_the_next_run_works(tmp_path):
    interrupted_while_compiling(tmp_path)
    cold = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    again = subprocess.run(
        [*COMMAND, "try", "dosing", "--episodes", "10", "--json", "--out", "f.png"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=cold,
    )
    assert json.loads(again.stdout)["rows"][1]["episodes"] == 10


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("played", [False, True])
def test_compiling_asks_for_ctrl_c(asked, played):
    """A Ctrl-C ends what is compiled before the first episode. What is compiled later is
    finished: a run is kept.
    """
    ends = asked and not played
    with ctrl_c() as stop:
        assert not (played and stop())  # a loop asks after it has played
        with (
            pytest.raises(KeyboardInterrupt, match="compiling") if ends else nullcontext(),
            ctrl_c_while_compiling(),
        ):
            if asked:
                os.kill(os.getpid(), signal.SIGINT)
        assert stop() == (asked and played)
    check_ctrl_c()  # once the run has ended, nothing waits


def test_an_interrupted_run_is_a_run(paper_world):
    """The first Ctrl-C is heard between episodes: totals, curve and counts agree on how many
    were played.
    """
    baseline = sf.boltzmann(sf.solve(paper_world).Q, eta=10.0)
    agent = sf.StepMix.paper(paper_world.problem, baseline, 2.0)
    # Ctrl-C while kernels are compiled or loaded is another matter
    for drive in (sf.simulate, simulate_plainly):
        drive(paper_world, agent, 1, seed=0)
    for drive in (sf.simulate, simulate_plainly):
        before = signal.getsignal(signal.SIGINT)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        run = drive(paper_world, agent, 10**8, seed=0)
        assert run.interrupted
        assert 0 < run.episodes < 10**8
        assert sum(run.sources.values()) == run.curve.episodes.sum() == run.episodes
        assert run.counts.episodes == run.episodes
        assert signal.getsignal(signal.SIGINT) is before
