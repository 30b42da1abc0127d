"""Labels, names of files and the like may come from anywhere: nothing of them acts on the
terminal that shows them.
"""

import random

import pytest

import surefoot as sf
from command import surefoot
from surefoot.cli.main import main as command
from surefoot.studies.analysis.sql import print_rows

ESC = "\x1b[31m"
STATES = (f"{ESC}red", "[red]x", "$a$\u202e", "old\r\x07new")
ACTIONS = ("_a", "b\x1b[2J")
DECLARED = ("--reward-range", "0", "1", "--floor", "0.1")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log whose labels hold ESC and the like."""
    rng, path = random.Random(0), tmp_path_factory.mktemp("odd") / f"log{ESC}.csv"
    with path.open("w", newline="") as file:
        print("episode,step,state,action,reward,next_state", file=file)
        for episode in range(300):
            state = STATES[0]
            for step in range(3):
                then = rng.choice(STATES)
                line = (
                    f'{episode},{step},"{state}",{rng.choice(ACTIONS)},{rng.random():.3f},"{then}"'
                )
                print(line, file=file)
                state = then
    return path


def said(capsys, monkeypatch, *arguments):
    """Return what the command says on both streams; all of it can be printed."""
    monkeypatch.setattr("sys.argv", ["surefoot", *map(str, arguments)])
    with pytest.raises(SystemExit):
        command()
    text = "".join(capsys.readouterr())
    assert text and all(line.isprintable() for line in text.split("\n"))
    return text


def test_logs_and_what_is_learnt_from_them(log, tmp_path, capsys, monkeypatch):
    def say(*arguments):
        return said(capsys, monkeypatch, *arguments)

    assert r"\x1b[31mred" in say("logs", "check", log)
    assert "[red]x" in say("baseline", log, *DECLARED, "--out", tmp_path / "policy.npz")
    shown = say("show", tmp_path / "policy.npz")
    assert r"\x1b[31mred" in shown and "[red]x" in shown and r"\u202e" in shown
    assert r"\x1b[31m.csv" in say("logs", "check", log, "--column", f"state={ESC}")
    say("logs", "count", log, "--reward-range", "0", "1", "--out", tmp_path / f"{ESC}.npz")
    say(
        "forecast", tmp_path / f"{ESC}.npz", "--baseline", tmp_path / "policy.npz", "--floor", "0.1"
    )


def test_a_study_with_such_a_title_is_refused(tmp_path, capsys, monkeypatch):
    file = tmp_path / "study.toml"
    text = surefoot("studies", "online", "--toml").output
    assert 'title = "' in text
    file.write_text(text.replace('title = "', 'title = "\\u001B[31m', 1))
    # never run: it holds the file
    assert "expected text" in said(capsys, monkeypatch, "run", file, "--out", tmp_path)


def test_answers_of_queries_show_what_is_there(capsys):
    print_rows([f"{ESC}column", "[red]"], [(f"{ESC}red", "[red]x")])
    text = capsys.readouterr().out
    assert all(line.isprintable() for line in text.split("\n"))
    assert r"\x1b[31mred" in text
    assert "[red]x" in text


def test_explanations_write_out_what_cannot_be_printed():
    world = sf.world("trap").with_names(states=[f"{ESC}{s}" for s in range(sf.world("trap").S)])
    agent = sf.EpsMix(world.problem, world.baseline, world.suggested_floor)
    text = agent.plan(sf.simulate(world, agent, 20, seed=0).counts).explain() + str(
        sf.forecast(agent, world=world)
    )
    assert r"\x1b[31m" in text and ESC[0] not in text
