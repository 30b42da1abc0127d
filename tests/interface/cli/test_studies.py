"""`surefoot studies`, `run`, `report` and `results`."""

import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace

import duckdb
import pytest
from typer.testing import CliRunner

from surefoot.cli.main import app, main
from surefoot.studies.analysis.summary import COLUMNS
from surefoot.studies.run.store import begin, read_results
from surefoot.studies.spec.library import GROUPS
from surefoot.studies.spec.study import parse_study

RUNNER = CliRunner()
STUDY = """
name = "tiny"
title = "A tiny study"
question = "Does it run?"
trials = 2
episodes = 1500
figures = ["return"]
replan = 0.1

[quick]
trials = 1

[[scenarios]]
id = "trap"
world = { name = "trap" }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"

[[agents]]
id = "bpi"
agent = "bpi-ucbvi"
bounds = "kl"
"""


def surefoot(*arguments):
    return RUNNER.invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of the tiny study."""
    place = tmp_path_factory.mktemp("cli")
    (place / "tiny.toml").write_text(STUDY)
    result = surefoot("run", place / "tiny.toml", "--out", place / "out", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "tiny (full): 0 of 4 trials done" in result.stdout
    assert result.stdout.splitlines()[-3:] == end_of_a_run(place / "out", "tiny")
    return place / "out"


def end_of_a_run(place, *names, said="agents CERTIFIED. Claims of the paper: 1 of 1 holds."):
    """The last lines that `run` prints: one for each study, then where the results and the page
    are.
    """
    results = f"Results: {place} (as tables: surefoot results {place})"
    return [*(f"{name}: {said}" for name in names), results, f"Report: {place / 'report.html'}"]


def test_the_studies_are_listed_and_described():
    listed = surefoot("studies").stdout
    for name in GROUPS["all"]:
        assert name in listed
    one = surefoot("studies", "rivals").stdout
    assert "stationary/optpess-lp" in one
    assert "scenarios x agents x trials = 1 x 6 x 10" in one
    assert tomllib.loads(surefoot("studies", "online", "--toml").stdout)["name"] == "online"
    table = json.loads(surefoot("studies", "online", "--json").stdout)
    assert parse_study(table, "x").name == "online"
    assert {"scenarios", "agents"} <= table.keys()  # keys that programs read
    fields = surefoot("studies", "--fields").stdout
    assert "[agents]" in fields
    assert "NOT CERTIFIED" in fields


def test_a_run_ends_with_a_folder_and_a_report(folder):
    results = read_results(folder)
    assert results.missing == 0
    page = (folder / "report.html").read_text()
    assert "A tiny study" in page
    assert "CERTIFIED" in page


def test_results_are_a_table(folder):
    shown = surefoot("results", folder)
    assert shown.exit_code == 0, shown.output
    assert "StepMix" in shown.stdout
    assert "floor 0.6, baseline 0.685" in shown.stdout
    rows = json.loads(surefoot("results", folder, "--json").stdout)["tiny"]
    trials = read_results(folder).of("trap", "stepmix")
    assert rows[0]["regret"] == pytest.approx(sum(trial.regret for trial in trials) / 2)
    assert all(line == line.rstrip() or len(line) <= 100 for line in shown.stdout.splitlines())


def test_results_answer_questions(folder, tmp_path):
    ask = ("results", folder, "--sql")
    rows = json.loads(
        surefoot(
            *ask, "SELECT trial, violations, regret FROM trials WHERE agent = 'bpi'", "--json"
        ).stdout
    )
    trials = read_results(folder).of("trap", "bpi")
    assert [row["violations"] for row in rows] == [trial.violations for trial in trials]
    assert [row["regret"] for row in rows] == [trial.regret for trial in trials]
    counted = json.loads(
        surefoot(*ask, "SELECT count(*) AS n, sum(episodes) AS k FROM curves", "--json").stdout
    )[0]
    assert counted["n"] == sum(
        len(t.curve_mean) for cell in read_results(folder).trials.values() for t in cell
    )
    assert counted["k"] == 4 * 1500
    lower = json.loads(
        surefoot(
            *ask, "SELECT max(lower) AS low FROM traces WHERE agent = 'stepmix'", "--json"
        ).stdout
    )
    assert lower[0]["low"] == max(
        t.trace_lower.max() for t in read_results(folder).of("trap", "stepmix")
    )
    assert "off_baseline" in surefoot(*ask, "DESCRIBE trials").stdout
    for ending in ("csv", "parquet", "json"):
        target = tmp_path / f"answer.{ending}"
        saved = surefoot(
            *ask, "SELECT agent, regret FROM trials ORDER BY ALL; -- all", "--save", target
        )
        assert saved.exit_code == 0, saved.output
        assert len(duckdb.sql(f"FROM '{target}'").fetchall()) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "answer.csv",
        "answer.json",
        "answer.parquet",
    ]


def test_columns_that_tables_share(folder):
    def ask(sql):
        return json.loads(surefoot("results", folder, "--sql", sql, "--json").stdout)

    for table in ("trials", "curves", "traces", "summary"):
        pairs = ask(f"SELECT DISTINCT scenario, agent FROM {table} ORDER BY ALL")
        assert pairs == [{"scenario": "trap", "agent": agent} for agent in ("bpi", "stepmix")]
    for table in ("trials", "summary"):
        assert ask(f"SELECT DISTINCT knows_baseline_value FROM {table}") == [
            {"knows_baseline_value": False}
        ]
    kinds = ask(
        "SELECT agent, promise_kind, promise_delta FROM trials WHERE trial = 0 ORDER BY ALL"
    )
    assert kinds == [
        {"agent": "bpi", "promise_kind": "no floor", "promise_delta": None},
        {"agent": "stepmix", "promise_kind": "certified", "promise_delta": 0.1},
    ]


def test_the_summary_in_sql_is_the_one_that_is_printed(folder):
    printed = json.loads(surefoot("results", folder, "--json").stdout)["tiny"]
    assert all(list(row) == list(COLUMNS) for row in printed)
    rows = json.loads(
        surefoot("results", folder, "--sql", "SELECT * FROM summary", "--json").stdout
    )
    assert [row["agent"] for row in rows] == ["bpi", "stepmix"]  # by study, scenario and agent
    for row in rows:
        (mine,) = [one for one in printed if one["agent"] == row["agent"]]
        assert {name: row[name] for name in COLUMNS} == {**mine, "promises": row["promises"]}
        assert json.loads(row["promises"]) == mine["promises"]
        assert row["study"] == "tiny"


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (
            ("trials = 2", "trails = 2"),
            "InvalidStudy: tiny.toml has no field 'trails'. Did you mean 'trials'?",
            1,
        ),
        (('agent = "stepmix"', 'agent = "stepmax"'), "Did you mean 'stepmix'?", 1),
        (
            ('{ name = "trap" }', '{ name = "trap" }\nfloor = 0.69'),
            "but the baseline is worth 0.685",
            1,
        ),
        (
            ('agent = "bpi-ucbvi"', 'agent = "bpi-ucbvi"\npooled = true'),
            "counts cannot be pooled",
            1,
        ),
    ],
)
def test_bad_studies_are_one_sentence_and_leave_no_trials(
    change, words, code, tmp_path, monkeypatch, capsys
):
    assert change[0] in STUDY
    (tmp_path / "tiny.toml").write_text(STUDY.replace(*change))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["surefoot", "run", "tiny.toml", "--out", "res"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("surefoot: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "res").exists()


def test_a_bad_study_in_a_process_of_its_own(tmp_path):
    (tmp_path / "tiny.toml").write_text(STUDY.replace("trials = 2", "trails = 2"))
    command = [sys.executable, "-m", "surefoot", "run", "tiny.toml", "--out", "res"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "surefoot: InvalidStudy: tiny.toml has no field 'trails'. Did you mean 'trials'?"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "res").exists()


def test_what_cannot_be_is_said(folder, tmp_path):
    for arguments, words in (
        (("run", "onlin"), "There is no study 'onlin'"),
        (("run", "online", "online", "--out", tmp_path / "x"), "asked for twice"),
        (("results", tmp_path), "holds no results"),
        (("report", tmp_path / "none"), "holds no results"),
        (
            ("results", folder, "--sql", "SELECT * FROM nothing"),
            "The tables are trials, curves, traces and summary",
        ),
        (
            ("results", folder, "--sql", f"SELECT * FROM read_csv('{__file__}')"),
            "disabled by configuration",
        ),
        (
            ("results", folder, "--sql", f"COPY trials TO '{tmp_path}/leak.csv'"),
            "disabled by configuration",
        ),
        (("results", folder, "--sql", "  "), "The question is empty"),
        (("results", folder, "--save", folder / "study.json"), "where the results themselves are"),
        (
            ("results", folder, "--save", folder / "trials" / "x.csv"),
            "where the results themselves are",
        ),
        (
            ("results", folder, "--save", tmp_path / "a.xlsx"),
            "Expected one of .parquet, .csv, .json",
        ),
        (("run", folder.parent / "tiny.toml", "--out", folder), "Give --resume"),
        (
            ("run", folder.parent / "tiny.toml", "--out", tmp_path / "y", "--backend", "ray"),
            "no back end 'ray'",
        ),
    ):
        result = surefoot(*arguments)
        assert result.exit_code != 0, arguments
        assert words in str(result.exception), arguments
    assert not list(tmp_path.rglob("leak.csv"))
    for name in ("x", "y"):  # nothing was written that would have to be resumed
        assert not (tmp_path / name).exists()


def test_more_trials_are_added_and_quick_is_another_study(folder, tmp_path):
    (tmp_path / "tiny.toml").write_text(STUDY)
    again = ("run", tmp_path / "tiny.toml", "--out", tmp_path / "r", "--jobs", 1, "--no-report")
    assert surefoot(*again, "--trials", 1).exit_code == 0
    more = surefoot(*again, "--trials", 2, "--resume")
    assert "2 of 4 trials done" in more.stdout
    same = (tmp_path / "r" / "trials" / "trap" / "bpi" / "0001.parquet").read_bytes()
    assert same == (folder / "trials" / "trap" / "bpi" / "0001.parquet").read_bytes()
    assert not (tmp_path / "r" / "report.html").exists()
    several = surefoot(
        "run", tmp_path / "tiny.toml", "sharp", "--trials", 1, "--out", tmp_path / "r", "--resume"
    )
    assert "holds the results of one study, not of several" in str(several.exception)


def test_certified_agents_and_claims_that_hold_are_told_apart(folder, tmp_path):
    """A run that broke its promise, beside three of BPI-UCBVI and StepMix that are as they were: a
    claim of the paper does not hold, and the command ends with 3. Control: without it, 0.
    """
    shutil.copytree(folder, tmp_path / "out")
    (tmp_path / "tiny.toml").write_text(STUDY)
    again = ("run", tmp_path / "tiny.toml", "--out", tmp_path / "out", "--resume", "--no-report")
    assert surefoot(*again).exit_code == 0
    results = read_results(tmp_path / "out")
    there = begin(tmp_path / "out", results.study, resume=True)
    there.write(replace(results.of("trap", "stepmix")[1], violations=5))
    done = surefoot(*again)
    assert done.exit_code == 3
    first, alarm, *_ = done.stdout.splitlines()[-4:]
    assert first == "tiny: agents CERTIFIED. Claims of the paper: 0 of 1 holds, 1 does not."
    assert alarm == "PROMISE BROKEN in 1 of 2 runs that came with one."
    assert "a promise was broken" in done.stderr


def test_where_there_is_no_terminal_progress_is_a_line_a_minute(folder, tmp_path, monkeypatch):
    """Of runs of seconds there is none. Control: with one at the start and after every trial
    there are five.
    """
    (tmp_path / "tiny.toml").write_text(STUDY)
    for name, every, lines in (("none", 60.0, 0), ("all", 0.0, 5)):
        monkeypatch.setattr("surefoot.cli.studies.NEWS_EVERY", every)
        done = surefoot(
            "run", tmp_path / "tiny.toml", "--out", tmp_path / name, "--jobs", 1, "--no-report"
        )
        assert done.stderr.count(" of 4 trials") == lines


def test_several_studies_are_one_report(tmp_path):
    for name in ("one", "two"):
        own = (
            STUDY.replace('"tiny"', f'"{name}"')
            .replace("A tiny", f"Study {name},")
            .replace("1500", "100")
        )
        (tmp_path / f"{name}.toml").write_text(own.replace('["return"]', "[]"))
    arguments = (
        "run",
        tmp_path / "one.toml",
        tmp_path / "two.toml",
        "--trials",
        2,
        "--out",
        tmp_path / "both",
    )
    done = surefoot(*arguments, "--jobs", 1)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    # nobody leaves in 100 episodes
    said = "agents ON TRUST. Claims of the paper: 0 of 1 holds, 1 cannot be judged."
    assert lines[-4:] == end_of_a_run(tmp_path / "both", "one", "two", said=said)
    assert len(lines) < 10  # before that, what will be run and how long it takes
    page = (tmp_path / "both" / "report.html").read_text()
    assert "Study one" in page
    assert "Study two" in page
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == [
        "one",
        "report.html",
        "two",
    ]
