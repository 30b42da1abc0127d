"""`surefoot guard`: a ramp forecast from past returns, and what tickets in a file prove."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot as sf
from surefoot.cli.main import app

RANGE = ("--low", "0", "--high", "1")


def told(*arguments):
    return CliRunner().invoke(app, ["guard", *arguments])


def past(path, mean=0.7, n=2000):
    returns = (np.random.default_rng(0).random(n) < mean).astype(int)
    path.write_text("\n".join(["return", *map(str, returns)]) + "\n")
    return str(path)


def tickets(path, rows):
    lines = [f"{i},{policy},{'' if ret is None else ret}" for i, (policy, ret) in enumerate(rows)]
    path.write_text("\n".join(["ticket,policy,return", *lines]) + "\n")
    return str(path)


def drawn(n=900):
    rng = np.random.default_rng(1)
    for _ in range(n):
        name = "c" if rng.random() < 0.2 else "old"
        yield (
            name,
            None if rng.random() < 0.02 else float(rng.random() < {"c": 0.85, "old": 0.7}[name]),
        )


def test_a_ramp_is_forecast_and_drawn(tmp_path):
    file = past(tmp_path / "past.csv")
    done = told(
        "plan",
        file,
        *RANGE,
        "--floor",
        "0.65",
        "--out",
        str(tmp_path / "ramp.svg"),
        "--unit",
        "EUR",
    )
    assert done.exit_code == 0, done.output
    assert (
        "2,000 returns" in done.output
        and "Floor 0.65 EUR\n" in done.output
        and "100%" in done.output
    )
    assert "value (EUR)" in done.output and "missing" not in done.output
    assert "true value of the candidate (EUR)" in (tmp_path / "ramp.svg").read_text()


def test_the_forecast_is_near_what_a_simulation_shows(tmp_path):
    """Episodes to full adoption, warm and cold: from the median of 15 runs to twice as many."""
    file = past(tmp_path / "past.csv")
    for more, logged in (((), 2000), (("--no-evidence",), 0)):
        done = told("plan", file, *RANGE, "--floor", "0.6", "--stages", "none", "--json", *more)
        rows = json.loads(done.output)["rows"]
        assert [row["episodes"][0] for row in rows] == sorted(
            (row["episodes"][0] for row in rows), reverse=True
        )
        row = rows[-3]
        guard = sf.Guard(floor=0.6, low=0.0, high=1.0, stages=())
        coin = sf.Outcomes.coin
        runs = [
            sf.simulate_guard(guard, coin(0.7), coin(row["value"]), 4000, s, logged=logged)
            for s in range(15)
        ]
        found = np.median(
            [4000 if run.adopted["candidate"] is None else run.adopted["candidate"] for run in runs]
        )
        assert 0.8 * found < row["episodes"][0] < 2.0 * found


def test_tickets_are_replayed(tmp_path):
    file = tickets(tmp_path / "rows.csv", drawn())
    done = told("replay", file, *RANGE, "--floor", "0.6", "--baseline", "old")
    assert done.exit_code == 0, done.output
    assert (
        "Certified" in done.output
        and "without a return, counted as the worst return" in done.output
    )
    values = json.loads(
        told("replay", file, *RANGE, "--floor", "0.6", "--baseline", "old", "--json").output
    )
    guard = sf.Guard(floor=0.6, low=0.0, high=1.0)
    state = guard.replay(list(drawn()), baseline="old")
    plan = guard.plan(state)
    assert (
        values["share"] == plan.share and values["lower"] == plan.lower and values["tickets"] == 900
    )
    assert (
        values["safety"] == "certified"
        and values["open"] == state.open_tickets > 5
        and values["alarm"] is None
    )
    relative = json.loads(
        told("replay", file, *RANGE, "--below", "0.1", "--baseline", "old", "--json").output
    )
    assert relative["premise"] == "none needed"


def test_a_range_that_is_false_is_an_alarm(tmp_path):
    rows = [("baseline", 1.0)] * 5 + [("c", -1.0)]
    done = told("replay", tickets(tmp_path / "rows.csv", rows), *RANGE, "--max-loss", "0.1")
    assert done.exit_code == 1 and "ALARM" in done.output and "ertified" not in done.output
    told_ = told("replay", str(tmp_path / "rows.csv"), *RANGE, "--max-loss", "0.1", "--json")
    values = json.loads(told_.output)
    assert (values["safety"], values["frozen"], values["premise"]) == (
        "trusted",
        True,
        None,
    ) and values["lower"] == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ticket,policy,return\n0,a,1\n2,a,1\n", "never left out"),
        ("ticket,policy,return\n0,a,1\n0,a,1\n", "rows.csv, row 2: ticket 0 comes twice"),
        (
            "ticket,policy,return\n0,a,1\n1,a,1\n2,a,1\n1,a,1\n",
            "rows.csv, row 4: ticket 1 comes twice, or too late: expected 3",
        ),
        ("ticket,policy,return\n0,a,1\n3,a,1\n", "rows.csv, row 2: the ticket is 3, expected 1"),
        ("ticket,policy,return\n0,,1\n", "rows.csv, row 1: the policy is ''"),
        ("ticket,policy,return\n0,old,1\n1,c,1\n", "Its policies: old, c. Say which"),
        ("ticket,policy,return\nx,a,1\n", "a whole number"),
        ("ticket,policy,return\n7,a,1\n8,a,1\n", "expected 0"),
        ("ticket,policy\n0,a\n", "no column 'return'"),
        ("ticket,policy,return\n0,a,nan\n", "expected a number"),
        ("ticket,policy,return\n0,a,good\n", "expected a number"),
        ("ticket,policy,return\n0,baseline,1\n1,c,1.5\n", "stays open"),
    ],
)
def test_files_that_are_refused(tmp_path, text, words):
    (tmp_path / "rows.csv").write_text(text)
    done = told("replay", str(tmp_path / "rows.csv"), *RANGE, "--baseline", "baseline")
    assert isinstance(done.exception, sf.SurefootError) and words in str(done.exception)


def test_replay_knows_the_baseline_by_its_name(tmp_path):
    file = tickets(tmp_path / "rows.csv", [("old", 1.0), ("c", 1.0)])
    assert "the baseline is 'old'" in told("replay", file, *RANGE, "--baseline", "old").output
    file = tickets(tmp_path / "rows.csv", [("old", 1.0), ("baseline", 1.0)])
    assert "no other policy may be called baseline" in str(
        told("replay", file, *RANGE, "--baseline", "old").exception
    )


def test_replay_counts_logged_returns(tmp_path):
    file, before = tickets(tmp_path / "rows.csv", [("baseline", 1.0)]), past(tmp_path / "past.csv")
    values = [
        json.loads(told("replay", file, *RANGE, *more, "--json").output)
        for more in ((), ("--logged", before))
    ]
    assert values[0]["lower"]["baseline"] < 0.1 and values[1]["lower"]["baseline"] > 0.6
    assert "2,000 logged returns" in told("replay", file, *RANGE, "--logged", before).output


def test_a_forecast_takes_the_returns_of_the_baseline_alone(tmp_path):
    """Those of a candidate would change the mean, and missing ones count as the worst."""
    rows = [
        (name, None if k % 20 == 3 else float(k % 10 > (2 if name == "old" else 8)))
        for k in range(600)
        for name in ("old", "c")
    ]
    file = tickets(tmp_path / "rows.csv", rows)
    assert "several policies: old, c" in str(told("plan", file, *RANGE).exception)
    assert "no return of 'new'" in str(told("plan", file, *RANGE, "--policy", "new").exception)
    done = told("plan", file, *RANGE, "--policy", "old", "--max-loss", "0.1")
    assert (
        "570 returns" in done.output and "; 30 missing, counted as the worst returns" in done.output
    )
    assert "which is 90 % of the baseline if it is worth that mean" in done.output
    some = json.loads(
        told("plan", file, *RANGE, "--policy", "old", "--floor", "0.6", "--json").output
    )
    assert (some["returns"], some["missing"]) == (570, 30)
    whole = tickets(tmp_path / "whole.csv", [row for row in rows if row[1] is not None])
    all_ = json.loads(
        told("plan", whole, *RANGE, "--policy", "old", "--floor", "0.6", "--json").output
    )
    later = [
        (a["episodes"][-1], b["episodes"][-1])
        for a, b in zip(some["rows"], all_["rows"], strict=True)
    ]
    assert all_["baseline"] == some["baseline"] and all(a > b for a, b in later if b is not None)


def test_settings_that_are_refused(tmp_path):
    file = past(tmp_path / "past.csv", n=5)
    for more, words in (
        (("--floor", "0.5", "--below", "0.1"), "Give one of"),
        (("--stages", "a,b"), "--stages is"),
        (("--floor", "3"), "in the range"),
    ):
        assert words in str(told("plan", file, *RANGE, *more).exception)
    assert told("plan", file).exit_code == 2  # the range is never inferred
    assert "does not exist" in str(told("plan", str(tmp_path / "none.csv"), *RANGE).exception)
    (tmp_path / "empty.csv").write_text("return\n")
    assert "no return" in str(told("plan", str(tmp_path / "empty.csv"), *RANGE).exception)
    (tmp_path / "bytes.csv").write_bytes(b"return\n\xff\xfe\n")
    assert "UTF-8" in str(told("plan", str(tmp_path / "bytes.csv"), *RANGE).exception)
    assert Path(file).exists()


def test_a_replay_goes_on_from_a_saved_state(tmp_path):
    """The same as all tickets at once. The numbers of tickets go on, and the guard must be the
    same.
    """
    rows = [("baseline" if name == "old" else name, ret) for name, ret in drawn(400)]
    guard = sf.Guard(floor=sf.Below(0.1), low=0.0, high=1.0)
    guard.save(guard.replay(rows[:250]), tmp_path / "state.npz")
    saved, file = ("--state", str(tmp_path / "state.npz")), tmp_path / "rest.csv"
    file.write_text(
        "\n".join(
            [
                "ticket,policy,return",
                *(f"{i},{p},{'' if x is None else x}" for i, (p, x) in enumerate(rows) if i >= 250),
            ]
        )
    )
    part = told("replay", str(file), *RANGE, "--below", "0.1", *saved, "--json")
    whole = told("replay", tickets(tmp_path / "all.csv", rows), *RANGE, "--below", "0.1", "--json")
    assert part.exit_code == 0 and json.loads(part.output) == json.loads(whole.output)
    refused = told("replay", str(tmp_path / "all.csv"), *RANGE, "--below", "0.1", *saved)
    assert refused.exit_code != 0 and "expected 250" in str(refused.exception or refused.output)
    other = told("replay", str(file), *RANGE, "--below", "0.2", *saved)
    assert other.exit_code != 0 and "another guard" in str(other.exception or other.output)
    both = told(
        "replay",
        str(file),
        *RANGE,
        "--below",
        "0.1",
        *saved,
        "--logged",
        past(tmp_path / "past.csv"),
    )
    assert both.exit_code != 0 and "not both" in str(both.exception or both.output)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "return, policy\n0,baseline\n1,new\n",
            (),
            "called ' policy', with spaces around its name",
        ),
        (
            "return,policy\n0,baseline \n1,baseline\n",
            ("--policy", "baseline"),
            "row 1: the policy is 'baseline '",
        ),
    ],
)
def test_no_return_is_lost_by_a_space(tmp_path, text, options, words):
    """The column was not found, or half of the returns were another policy's: a mean of 0.9
    where 0.2 is true.
    """
    path = tmp_path / "past.csv"
    path.write_text(text)
    found = told("plan", str(path), *RANGE, "--floor", "0.1", *options)
    assert found.exit_code != 0
    assert words in " ".join((found.output + str(found.exception)).split())
    path.write_text(text.replace(", ", ",").replace("baseline ", "baseline"))
    # the control
    assert "spaces" not in told("plan", str(path), *RANGE, "--floor", "0.1", *options).output
