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

from surefoot.cli.main import app
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


def end_of_a_run(place, *names, said="agents CERTIFIED. Claims of ours: 1 of 1 holds."):
    """The last lines that `run` prints: one for each study, then where the results and the page
    are.
    """
    results = f"Results: {place} (as tables: surefoot results {place})"
    return [*(f"{name}: {said}" for name in names), results, f"Report: {place / 'report.html'}"]


def asked(folder, sql):
    """What `results` answers, as a program reads it."""
    return json.loads(surefoot("results", folder, "--sql", sql, "--json").stdout)


def test_the_studies_are_listed_and_described():
    listed = surefoot("studies").stdout
    assert all(name in listed for name in GROUPS["all"])
    one = surefoot("studies", "rivals").stdout
    assert "scenarios x agents x trials = 1 x 6 x 10" in one
    assert tomllib.loads(surefoot("studies", "online", "--toml").stdout)["name"] == "online"
    table = json.loads(surefoot("studies", "online", "--json").stdout)
    assert parse_study(table, "x").name == "online"
    assert "NOT CERTIFIED" in surefoot("studies", "--fields").stdout


def test_a_run_ends_with_a_folder_a_report_and_a_table(folder):
    assert read_results(folder).missing == 0
    assert "A tiny study" in (folder / "report.html").read_text()
    shown = surefoot("results", folder)
    assert shown.exit_code == 0, shown.output
    assert "floor 0.6, baseline 0.685" in shown.stdout
    rows = json.loads(surefoot("results", folder, "--json").stdout)["tiny"]
    trials = read_results(folder).of("trap", "stepmix")
    assert rows[0]["regret"] == pytest.approx(sum(trial.regret for trial in trials) / 2)


def test_results_answer_questions(folder, tmp_path):
    results = read_results(folder)
    rows = asked(folder, "SELECT violations, regret FROM trials WHERE agent = 'bpi' ORDER BY trial")
    assert rows == [
        {"violations": trial.violations, "regret": trial.regret}
        for trial in results.of("trap", "bpi")
    ]
    assert asked(folder, "SELECT sum(episodes) AS k FROM curves") == [{"k": 4 * 1500}]
    (lower,) = asked(folder, "SELECT max(lower) AS low FROM traces WHERE agent = 'stepmix'")
    assert lower["low"] == max(one.trace_lower.max() for one in results.of("trap", "stepmix"))
    query = "SELECT agent, regret FROM trials ORDER BY ALL; -- all"
    for ending in ("csv", "parquet", "json"):
        target = tmp_path / f"answer.{ending}"
        saved = surefoot("results", folder, "--sql", query, "--save", target)
        assert saved.exit_code == 0, saved.output
        assert len(duckdb.sql(f"FROM '{target}'").fetchall()) == 4
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("table", ["trials", "curves", "traces", "summary"])
def test_columns_that_tables_share(folder, table):
    pairs = asked(folder, f"SELECT DISTINCT scenario, agent FROM {table} ORDER BY ALL")
    assert pairs == [{"scenario": "trap", "agent": agent} for agent in ("bpi", "stepmix")]


def test_the_summary_in_sql_is_the_one_that_is_printed(folder):
    printed = json.loads(surefoot("results", folder, "--json").stdout)["tiny"]
    rows = asked(folder, "SELECT * FROM summary")
    assert [row["agent"] for row in rows] == ["bpi", "stepmix"]  # by study, scenario and agent
    for row, mine in zip(rows, sorted(printed, key=lambda one: one["agent"]), strict=True):
        row["promises"] = json.loads(row["promises"])
        assert row.pop("study") == "tiny"
        assert row == mine
        assert list(mine) == list(COLUMNS)


def test_a_bad_study_is_one_sentence_and_leaves_no_trials(tmp_path):
    (tmp_path / "tiny.toml").write_text(STUDY.replace("trials = 2", "trails = 2"))
    command = [sys.executable, "-m", "surefoot", "run", "tiny.toml", "--out", "res"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "surefoot: InvalidStudy: tiny.toml has no field 'trails'. Did you mean 'trials'?"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "res").exists()


def test_a_study_that_reads_well_is_refused_before_it_runs(tmp_path):
    pooled = STUDY.replace('agent = "bpi-ucbvi"', 'agent = "bpi-ucbvi"\npooled = true')
    (tmp_path / "tiny.toml").write_text(pooled)
    refused = surefoot("run", tmp_path / "tiny.toml", "--out", tmp_path / "res")
    assert "counts cannot be pooled" in str(refused.exception)
    assert not (tmp_path / "res").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run onlin", "There is no study 'onlin'"),
        ("run online online --out {new}/x", "asked for twice"),
        ("results {new}", "holds no results"),
        ("results {old} --sql FROM^nothing", "The tables are trials, curves, traces and summary"),
        ("results {old} --sql FROM^read_csv('{toml}')", "disabled by configuration"),
        ("results {old} --sql COPY^trials^TO^'{new}/leak.csv'", "disabled by configuration"),
        ("results {old} --sql ^", "The question is empty"),
        ("results {old} --save {old}/study.json", "where the results themselves are"),
        ("results {old} --save {old}/trials/x.csv", "where the results themselves are"),
        ("results {old} --save {new}/a.xlsx", "Expected one of .parquet, .csv, .json"),
        ("run {toml} --out {old}", "Give --resume"),
        ("run {toml} --out {new}/y --backend ray", "no back end 'ray'"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(folder, tmp_path, arguments, words):
    """A caret stands for a space within an argument."""
    given = arguments.format(new=tmp_path, old=folder, toml=folder.parent / "tiny.toml")
    result = surefoot(*(part.replace("^", " ") for part in given.split()))
    assert result.exit_code != 0
    assert words in str(result.exception)
    assert not list(tmp_path.iterdir())


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
    claim does not hold, and the command ends with 3. Control: without it, 0.
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
    assert first == "tiny: agents CERTIFIED. Claims of ours: 0 of 1 holds, 1 does not."
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
    small = STUDY.replace("1500", "100").replace('["return"]', "[]")
    files = [tmp_path / "one.toml", tmp_path / "two.toml"]
    for path in files:
        path.write_text(small.replace("tiny", path.stem))
    out = tmp_path / "both"
    done = surefoot("run", *files, "--trials", 2, "--out", out, "--jobs", 1)
    assert done.exit_code == 0, done.output
    # nobody leaves in 100 episodes
    said = "agents ON TRUST. Claims of ours: 0 of 1 holds, 1 cannot be judged."
    assert done.output.splitlines()[-4:] == end_of_a_run(out, "one", "two", said=said)
    page = (out / "report.html").read_text()
    assert "A one study" in page
    assert "A two study" in page
    assert sorted(path.name for path in out.iterdir()) == ["one", "report.html", "two"]
