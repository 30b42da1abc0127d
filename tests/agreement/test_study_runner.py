"""Same study, same bytes: one worker or two, this machine or a cluster, interrupted or not."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import duckdb
import joblib
import pytest

from surefoot.agents.promise import NO_FLOOR, Promise, stated
from surefoot.errors import InvalidFile, InvalidSetting, InvalidStudy, MissingExtra
from surefoot.studies.analysis.sql import answer
from surefoot.studies.run.runner import run_study
from surefoot.studies.run.store import begin, read_results, versions
from surefoot.studies.run.trial import run_trial
from surefoot.studies.spec.study import parse_study

SCOPE = "every episode's coin-averaged value"
SMALL = """
name = "small"
title = "A small study"
question = "Does it run?"
trials = 3
episodes = 400

[[scenarios]]
id = "trap"
world = { name = "trap" }

[[scenarios]]
id = "log"
world = { name = "random", S = 3, A = 2, H = 2, seed = 1 }
floor = 0.8
log = { episodes = 300, behaviour = { eta = 5.0 }, method = "robust" }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"

[[agents]]
id = "epsmix"
agent = "epsmix"
bounds = "kl"
replan = 0.05
"""


@pytest.fixture(scope="module")
def study():
    return parse_study(tomllib.loads(SMALL), "small.toml")


def contents(folder):
    """A hash of every file, but for the report."""
    files = (
        path for path in Path(folder).rglob("*") if path.is_file() and path.name != "report.html"
    )
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.fixture
def folder(study, tmp_path):
    """A folder of the study without a trial."""
    return begin(tmp_path / "small", study, resume=False)


@pytest.fixture
def short_folder(study, tmp_path):
    """The same, for the first trial of each cell."""
    return begin(tmp_path / "small", replace(study, trials=1), resume=False)


@pytest.fixture(scope="module")
def one_worker(study, tmp_path_factory):
    folder = begin(tmp_path_factory.mktemp("one") / "small", study, resume=False)
    assert run_study(folder, jobs=1) == 12
    found = contents(folder.path)
    assert len(found) == 13
    return found


@pytest.fixture(scope="module")
def first_trials(study, tmp_path_factory):
    """A folder with the first trial of each cell. It is not written to: `one_trial` is a copy."""
    folder = begin(
        tmp_path_factory.mktemp("first") / "small", replace(study, trials=1), resume=False
    )
    assert run_study(folder, jobs=1) == 4
    return folder.path


@pytest.fixture
def one_trial(study, first_trials, tmp_path):
    """A folder with the first trial of each cell, to do with as one likes."""
    shutil.copytree(first_trials, tmp_path / "small")
    return begin(tmp_path / "small", replace(study, trials=1), resume=True)


def trials_in(folder):
    """As `contents`, of the trials alone."""
    return {name: digest for name, digest in contents(folder).items() if name.endswith(".parquet")}


def workers_of(monkeypatch, place):
    """The processes that run trials: a function that returns those seen so far."""
    place.mkdir()

    def noting(cell, trial):
        (place / str(os.getpid())).touch()
        return run_trial(cell, trial)

    monkeypatch.setattr("surefoot.studies.run.runner.run_trial", noting)
    return lambda: {path.name for path in place.iterdir()}


def test_two_workers_change_nothing(study, folder, one_worker, tmp_path, monkeypatch):
    told, workers = [], workers_of(monkeypatch, tmp_path / "workers")
    run_study(folder, jobs=2, tell=told.append)
    assert contents(folder.path) == one_worker
    assert [progress.done for progress in told] == list(range(13))
    assert [progress.last for progress in told[:1]] == [""] and told[-1].last in {
        cell.id for cell in study.cells
    }
    assert len(workers()) == 2  # both did work: else this shows nothing


def test_another_seed_changes_everything(study, one_worker, tmp_path):
    """The control: were results of different draws alike, equal bytes would show nothing."""
    folder = begin(tmp_path / "small", replace(study, seed=1, trials=1), resume=False)
    run_study(folder, jobs=1)
    other = contents(folder.path)
    assert len(other) == 5
    assert other.keys() < one_worker.keys()
    assert not {name for name in other if other[name] == one_worker[name]}


def test_a_cluster_of_processes_changes_nothing(short_folder, one_worker, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    workers = workers_of(monkeypatch, tmp_path / "workers")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        assert run_study(short_folder, backend="dask", address=cluster.scheduler_address) == 4
    assert len(trials_in(short_folder.path)) == 4
    assert trials_in(short_folder.path).items() < one_worker.items()
    assert workers() and str(os.getpid()) not in workers()


def test_a_back_end_that_joblib_was_told_changes_nothing(
    short_folder, one_worker, tmp_path, monkeypatch
):
    """What Ray's users do, here with threads."""
    workers = workers_of(monkeypatch, tmp_path / "workers")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run_study(short_folder, backend="configured") == 4
    assert len(trials_in(short_folder.path)) == 4
    assert trials_in(short_folder.path).items() < one_worker.items()
    assert workers() == {str(os.getpid())}


def test_nobody_at_the_address_is_said(folder):
    pytest.importorskip("distributed")
    with pytest.raises(InvalidSetting, match="No Dask scheduler answers at 'no-such-scheme"):
        run_study(folder, backend="dask", address="no-such-scheme://127.0.0.1:1")
    assert len(folder.missing()) == 12


def test_without_dask_what_to_install_is_said(folder, monkeypatch):
    monkeypatch.setattr("surefoot.studies.run.runner.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'pip install "surefoot\[dask\]"'):
        run_study(folder, backend="dask")


def test_wishes_that_cannot_be_are_said(folder):
    for wish, words in (
        ({"jobs": 0}, "jobs is 0"),
        ({"backend": "ray"}, "There is no back end 'ray'"),
        ({"address": "tcp://x:1"}, "give --backend dask"),
    ):
        with pytest.raises(InvalidSetting, match=words):
            run_study(folder, **wish)


LONGER = SMALL.replace("episodes = 400", "episodes = 3000")


def command(tmp_path, *arguments, jobs=2, limit=None):
    """`surefoot run my.toml ...` in a process group of its own."""
    (tmp_path / "my.toml").write_text(LONGER)

    run = [
        sys.executable,
        "-m",
        "surefoot",
        "run",
        "my.toml",
        "--out",
        "res",
        "--no-report",
        *arguments,
    ]
    run += ["--jobs", str(jobs)]
    return subprocess.Popen(
        run if limit is None else ["bash", "-c", f'ulimit -f {limit}; exec "$@"', "bash", *run],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(folder):
    return sorted(folder.glob("trials/*/*/[!.]*.parquet"))


@pytest.mark.parametrize("moments", [(3,), pytest.param((1, 5), marks=pytest.mark.full)])
def test_killed_at_any_moment_and_gone_on_with_it_is_as_if_never_stopped(moments, tmp_path):
    """kill -9 of the whole group, several times; what was there stays as it was; the end is that
    of one go.
    """
    folder = begin(tmp_path / "whole", parse_study(tomllib.loads(LONGER), "my.toml"), resume=False)
    assert run_study(folder, jobs=1) == 12
    whole = contents(folder.path)
    broken = tmp_path / "broken"
    broken.mkdir()
    for wanted in moments:
        process = command(broken, "--resume")
        deadline = time.monotonic() + 240
        while (
            len(finished(broken / "res")) < wanted
            and time.monotonic() < deadline
            and process.poll() is None
        ):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        there = finished(broken / "res")
        assert len(there) >= wanted
        kept = contents(broken / "res")
        assert all(
            kept[name] == whole[name]
            for name in kept
            if name.endswith(".parquet") and "/." not in name
        )
    assert len(there) < 12  # else nothing was interrupted
    written = {path: path.stat().st_mtime_ns for path in there}
    last = command(broken, "--resume")
    out, err = last.communicate(timeout=300)
    assert last.returncode == 0, out + err
    assert contents(broken / "res") == whole
    # Trials that were there before the end were not written again.
    assert {path: path.stat().st_mtime_ns for path in there} == written


def test_a_full_disk_is_said_and_nothing_is_half_written(tmp_path):
    """No file may be larger than 9 kB: the study's own is written, a trial's is not."""
    process = command(tmp_path, jobs=1, limit=9)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, out + err
    assert "cannot be written" in err
    assert "--resume" in err
    assert "Traceback" not in err
    assert finished(tmp_path / "res") == []
    assert list((tmp_path / "res").rglob("*.partial")) == []
    assert json.loads((tmp_path / "res" / "study.json").read_text())["about"]["kind"] == "study"


def test_a_folder_is_never_overwritten(study, folder):
    run_study(folder, jobs=1)
    before, trials = contents(folder.path), trials_in(folder.path)
    with pytest.raises(
        InvalidStudy, match=r"holds 12 of 12 trials of this study already\. Give --resume"
    ):
        begin(folder.path, study, resume=False)
    other = replace(study, scenarios=(replace(study.scenarios[0], floor=0.5), study.scenarios[1]))
    with pytest.raises(
        InvalidStudy,
        match=r"in cell trap/stepmix, floor was 'usual' and is 0\.5\. Nothing was changed",
    ):
        begin(folder.path, other, resume=True)
    with pytest.raises(InvalidStudy, match=r"'small', not 'large'"):
        begin(folder.path, replace(study, name="large"), resume=True)
    with pytest.raises(InvalidStudy, match=r"cell log/stepmix is only in the old one"):
        begin(folder.path, replace(study, scenarios=study.scenarios[:1]), resume=True)
    assert contents(folder.path) == before
    # More trials are more of the same.
    more = begin(folder.path, replace(study, trials=4), resume=True)
    assert run_study(more, jobs=1) == 4
    assert trials_in(folder.path).items() > trials.items()
    assert len(read_results(folder.path).of("trap", "stepmix")) == 4


def test_folders_of_something_else_are_left_alone(study, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(InvalidStudy, match="holds something other than a study's results"):
        begin(tmp_path / "mine", study, resume=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidStudy, match="Choose another --out"):
        begin(tmp_path / "file", study, resume=True)
    with pytest.raises(InvalidFile, match="cannot be written"):
        begin(tmp_path / "file" / "below", study, resume=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


def test_damage_is_said(one_trial, tmp_path):
    with pytest.raises(InvalidFile, match="holds no results"):
        read_results(tmp_path)
    record = one_trial.path / "study.json"
    whole = record.read_text()
    record.write_text(whole.replace('"seed": 0', '"seed": 1'))
    with pytest.raises(InvalidFile, match="damaged"):
        read_results(one_trial.path)
    record.write_text(whole)
    place = one_trial.place("trap/stepmix", 0)
    good = place.read_bytes()
    place.write_bytes(good[:-50])
    with pytest.raises(InvalidFile, match="A trial's file cannot be read"):
        read_results(one_trial.path)
    place.write_bytes(one_trial.place("trap/epsmix", 0).read_bytes())
    with pytest.raises(InvalidFile, match="trial"):
        read_results(one_trial.path)
    place.write_bytes(good)
    assert read_results(one_trial.path).missing == 0


@pytest.mark.parametrize("library", ["surefoot", "numpy", "numba"])
def test_another_version_does_not_go_on(library, monkeypatch, study, one_trial):
    now = {**versions(), library: "99.0"}
    monkeypatch.setattr("surefoot.studies.run.store.versions", lambda: now)
    with pytest.raises(InvalidStudy, match=rf"was begun with {library} .*, this is 99\.0"):
        begin(one_trial.path, study, resume=True)


def test_fewer_trials_leave_those_that_are_there(study, tmp_path):
    folder = begin(tmp_path / "small", replace(study, trials=2), resume=False)
    run_study(folder, jobs=1)
    again = begin(folder.path, replace(study, trials=1, size="quick"), resume=True)
    assert (again.study.trials, again.study.size, again.missing()) == (2, "full", [])
    assert len(read_results(folder.path).of("trap", "stepmix")) == 2
    more = begin(folder.path, replace(study, trials=3), resume=True)
    assert (more.study.trials, len(more.missing())) == (3, 4)


def test_a_folder_without_a_trial_is_begun_again(study, folder):
    """Nothing would be lost."""
    assert len(begin(folder.path, study, resume=False).missing()) == 12


def test_names_of_folders_are_names(one_trial, tmp_path):
    """DuckDB would take floor=9 for a column, and st*r for a pattern."""
    for name in ("floor=9", "trial=7", "violations=0", "st*r", "st[a]r", "it's", "a b", "ü"):
        shutil.copytree(one_trial.path, tmp_path / name / "res")
        trial = read_results(tmp_path / name / "res").of("trap", "stepmix")[0]
        assert (trial.floor, trial.trial) == (pytest.approx(0.6), 0)
    shutil.copytree(one_trial.path, tmp_path / "stXr" / "res")
    _, rows = answer([tmp_path / "st*r" / "res"], "SELECT count(*), max(floor) FROM trials")
    assert rows[0][0] == 4


def test_the_file_of_a_living_process_is_left_alone(study, folder):
    mine, dead = (folder.path / f".x.parquet.{pid}.partial" for pid in (os.getpid(), 2**22 + 1))
    mine.write_text("")
    dead.write_text("")
    begin(folder.path, study, resume=True)
    assert mine.exists()
    assert not dead.exists()


HOSTILE = {
    "no row": "SELECT * FROM t WHERE false",
    "two rows": "SELECT * FROM t UNION ALL SELECT * FROM t",
    "no H": "SELECT * REPLACE (NULL::BIGINT AS H) FROM t",
    "another H": "SELECT * REPLACE (7 AS H) FROM t",
    "no promise": "SELECT * REPLACE (NULL::VARCHAR AS promise) FROM t",
    "no kind of promise": "SELECT * REPLACE (NULL::VARCHAR AS promise_kind) FROM t",
    "an unknown kind of promise": "SELECT * REPLACE ('sworn' AS promise_kind) FROM t",
    "certified at no delta": "SELECT * REPLACE (NULL::DOUBLE AS promise_delta) FROM t",
    "certified of nothing": "SELECT * REPLACE ('nothing' AS promise_scope) FROM t",
    "no format": "SELECT * REPLACE (NULL::BIGINT AS format) FROM t",
    "words for numbers": "SELECT * REPLACE ('soon' AS off_baseline) FROM t",
    "nan": "SELECT * REPLACE ('nan'::DOUBLE AS regret) FROM t",
    "no curve": "SELECT * REPLACE ([]::DOUBLE[] AS curve_mean) FROM t",
    "a short curve": "SELECT * REPLACE (curve_regret[:3] AS curve_regret) FROM t",
    "negative episodes": "SELECT * REPLACE (-5 AS episodes) FROM t",
    "more violations than episodes": "SELECT * REPLACE (episodes + 1 AS violations) FROM t",
    "left after the end": "SELECT * REPLACE (episodes AS off_baseline) FROM t",
    "a column less": "SELECT * EXCLUDE (regret) FROM t",
    "another trial": "SELECT * REPLACE (9 AS trial) FROM t",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_files_that_are_no_trials_are_refused(case, short_folder, good_trial):
    place = short_folder.place("trap/stepmix", 0)
    place.parent.mkdir(parents=True)
    place.write_bytes(good_trial)
    assert len(read_results(short_folder.path).of("trap", "stepmix")) == 1
    rewritten(place, HOSTILE[case])
    with pytest.raises(InvalidFile):
        read_results(short_folder.path)


@pytest.fixture(scope="module")
def good_trial(study, tmp_path_factory):
    folder = begin(
        tmp_path_factory.mktemp("good") / "small", replace(study, trials=1), resume=False
    )
    folder.write(run_trial(study.cells[0], 0))
    return folder.place("trap/stepmix", 0).read_bytes()


# ---- the promise in a trial's file


def rewritten(path, query):
    """The file of a trial, through a query."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS FROM '{path}'")
        con.execute(f"COPY ({query}) TO '{path}' (FORMAT PARQUET)")


def test_a_later_format_is_refused(one_trial):
    rewritten(one_trial.place("trap/stepmix", 0), "SELECT * REPLACE (2::BIGINT AS format) FROM t")
    with pytest.raises(
        InvalidFile, match=r"has format 2; this version of surefoot reads format 1.*Update"
    ):
        read_results(one_trial.path)


PROMISES = (
    NO_FLOOR,
    Promise("not certified", scope=SCOPE, scale=0.001),
    Promise("not certified", scale=1e-05),
    Promise("certified", 0.1, "every episode's policy", "unknown"),
    Promise("false premise", details="the baseline is worth 0.5"),
    Promise("another floor", details="0.4"),
    stated("certified by a friend"),
    Promise("certified", 0.1, SCOPE, "unknown", 2.0, True, 3.5, 0.5, "details", "alarm"),
)


def test_what_is_written_is_read(one_trial):
    """Every field of a promise, of every kind."""
    (trial,) = read_results(one_trial.path).of("trap", "stepmix")
    for promise in PROMISES:
        one_trial.write(replace(trial, promise=promise))
        assert read_results(one_trial.path).of("trap", "stepmix")[0].promise == promise
