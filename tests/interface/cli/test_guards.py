"""`surefoot guard`: a ramp forecast from past returns, and what tickets in a file prove."""

import json
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from command import surefoot

RANGE = ("--low", "0", "--high", "1")


def told(*arguments):
    return surefoot("guard", *arguments)


def values_of(*arguments):
    """What it says to a program."""
    return json.loads(told(*arguments, "--json").output)


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
    file, out = past(tmp_path / "past.csv"), tmp_path / "ramp.svg"
    done = told("plan", file, *RANGE, "--floor", 0.65, "--out", out, "--unit", "EUR")
    assert done.exit_code == 0, done.output
    assert "2,000 returns" in done.output
    assert "Floor 0.65 EUR\n" in done.output
    assert "true value of the candidate (EUR)" in out.read_text()


@pytest.mark.parametrize(("more", "logged"), [((), 2000), (("--no-evidence",), 0)])
def test_the_forecast_is_near_what_a_simulation_shows(tmp_path, more, logged):
    """Episodes to full adoption, warm and cold: from the median of 15 runs to twice as many."""
    file = past(tmp_path / "past.csv")
    rows = values_of("plan", file, *RANGE, "--floor", 0.6, "--stages", "none", *more)["rows"]
    episodes = [row["episodes"][0] for row in rows]
    assert episodes == sorted(episodes, reverse=True)
    guard = sf.Guard(floor=0.6, low=0.0, high=1.0, stages=())
    truths = sf.Outcomes.coin(0.7), sf.Outcomes.coin(rows[-3]["value"])
    found = []
    for seed in range(15):
        run = sf.simulate_guard(guard, *truths, 4000, seed, logged=logged)
        adopted = run.adopted["candidate"]
        found.append(4000 if adopted is None else adopted)
    assert 0.8 * np.median(found) < episodes[-3] < 2.0 * np.median(found)


def test_tickets_are_replayed(tmp_path):
    file = tickets(tmp_path / "rows.csv", drawn())
    given = ("replay", file, *RANGE, "--baseline", "old")
    done = told(*given, "--floor", 0.6)
    assert done.exit_code == 0, done.output
    assert "without a return, counted as the worst return" in done.output
    values = values_of(*given, "--floor", 0.6)
    guard = sf.Guard(floor=0.6, low=0.0, high=1.0)
    state = guard.replay(list(drawn()), baseline="old")
    plan = guard.plan(state)
    expected = {
        "share": plan.share,
        "lower": plan.lower,
        "tickets": 900,
        "safety": "certified",
        "open": state.open_tickets,
        "alarm": None,
    }
    assert {key: values[key] for key in expected} == expected
    assert state.open_tickets > 5
    assert values_of(*given, "--below", 0.1)["premise"] == "none needed"


def test_a_range_that_is_false_is_an_alarm(tmp_path):
    rows = [("baseline", 1.0)] * 5 + [("c", -1.0)]
    given = ("replay", tickets(tmp_path / "rows.csv", rows), *RANGE, "--max-loss", 0.1)
    done = told(*given)
    assert done.exit_code == 1
    assert "ALARM" in done.output
    assert "ertified" not in done.output
    values = values_of(*given)
    assert (values["safety"], values["frozen"], values["lower"]) == ("trusted", True, {})


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
    with pytest.raises(sf.SurefootError, match=words):
        raise told("replay", tmp_path / "rows.csv", *RANGE, "--baseline", "baseline").exception


def test_replay_knows_the_baseline_by_its_name(tmp_path):
    file = tickets(tmp_path / "rows.csv", [("old", 1.0), ("c", 1.0)])
    assert "the baseline is 'old'" in told("replay", file, *RANGE, "--baseline", "old").output
    file = tickets(tmp_path / "rows.csv", [("old", 1.0), ("baseline", 1.0)])
    refused = told("replay", file, *RANGE, "--baseline", "old")
    assert "no other policy may be called baseline" in str(refused.exception)


def test_replay_counts_logged_returns(tmp_path):
    file, before = tickets(tmp_path / "rows.csv", [("baseline", 1.0)]), past(tmp_path / "past.csv")
    assert values_of("replay", file, *RANGE)["lower"]["baseline"] < 0.1
    assert values_of("replay", file, *RANGE, "--logged", before)["lower"]["baseline"] > 0.6


def test_a_forecast_takes_the_returns_of_the_baseline_alone(tmp_path):
    """Those of a candidate would change the mean, and missing ones count as the worst."""
    rows = []
    for k in range(600):
        missing = k % 20 == 3
        rows.append(("old", None if missing else float(k % 10 > 2)))
        rows.append(("c", None if missing else float(k % 10 > 8)))
    file = tickets(tmp_path / "rows.csv", rows)
    assert "several policies: old, c" in str(told("plan", file, *RANGE).exception)
    assert "no return of 'new'" in str(told("plan", file, *RANGE, "--policy", "new").exception)
    given = (*RANGE, "--policy", "old", "--floor", 0.6)
    some = values_of("plan", file, *given)
    assert (some["returns"], some["missing"]) == (570, 30)
    there = [row for row in rows if row[1] is not None]
    whole = values_of("plan", tickets(tmp_path / "whole.csv", there), *given)
    assert whole["baseline"] == some["baseline"]
    for one, other in zip(some["rows"], whole["rows"], strict=True):
        assert other["episodes"][-1] is None or one["episodes"][-1] > other["episodes"][-1]


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (b"return\n1\n", ("--floor", "0.5", "--below", "0.1"), "Give one of"),
        (b"return\n1\n", ("--stages", "a,b"), "--stages is"),
        (b"return\n1\n", ("--floor", "3"), "in the range"),
        (b"return\n", (), "no return"),
        (b"return\n\xff\xfe\n", (), "UTF-8"),
    ],
)
def test_settings_that_are_refused(tmp_path, content, more, words):
    file = tmp_path / "past.csv"
    file.write_bytes(content)
    assert words in str(told("plan", file, *RANGE, *more).exception)
    assert told("plan", file).exit_code == 2  # the range is never inferred


def test_a_replay_goes_on_from_a_saved_state(tmp_path):
    """The same as all tickets at once. The numbers of tickets go on, and the guard must be the
    same.
    """
    rows = [("baseline" if name == "old" else name, ret) for name, ret in drawn(400)]
    guard = sf.Guard(floor=sf.Below(0.1), low=0.0, high=1.0)
    guard.save(guard.replay(rows[:250]), tmp_path / "state.npz")
    saved = ("--state", tmp_path / "state.npz")
    whole, rest = tmp_path / "all.csv", tmp_path / "rest.csv"
    head, *lines = Path(tickets(whole, rows)).read_text().splitlines()
    rest.write_text("\n".join([head, *lines[250:]]))
    below = (*RANGE, "--below", 0.1)
    assert values_of("replay", rest, *below, *saved) == values_of("replay", whole, *below)
    logged = ("--logged", past(tmp_path / "past.csv"))
    for file, more, words in (
        (whole, below, "expected 250"),
        (rest, (*RANGE, "--below", 0.2), "another guard"),
        (rest, (*below, *logged), "not both"),
    ):
        refused = told("replay", file, *more, *saved)
        assert refused.exit_code != 0
        assert words in str(refused.exception) + refused.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("return, policy\n0,baseline\n1,new\n", "called ' policy', with spaces around its name"),
        ("return,policy\n0,baseline \n1,baseline\n", "row 1: the policy is 'baseline '"),
    ],
)
def test_no_return_is_lost_by_a_space(tmp_path, text, words):
    """The column was not found, or half of the returns were another policy's: a mean of 0.9
    where 0.2 is true.
    """
    path = tmp_path / "past.csv"
    given = ("plan", path, *RANGE, "--floor", 0.1, "--policy", "baseline")
    path.write_text(text)
    assert words in str(told(*given).exception)
    path.write_text(text.replace(", ", ",").replace("baseline ", "baseline"))
    assert told(*given).exit_code == 0  # the control
