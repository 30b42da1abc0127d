"""Files of guards that an earlier version wrote are still read, and a run that was stopped then goes on as before.

tests/data/kept/guards/README.md says what each file is. Nothing here may be mended by writing a kept file anew.
"""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from surefoot.assurance.records import chained
from surefoot.base.files import read_arrays, write_arrays

KEPT = Path(__file__).parents[1] / "data" / "kept" / "guards"
SPEC = importlib.util.spec_from_file_location("kept_guards", KEPT / "settings.py")
kept = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kept)
EXPECTED = json.loads((KEPT / "expected.json").read_text())


def assert_near(found, expected):
    """The same but for last bits, which may differ on another machine."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == (pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, dict) else value), name


@pytest.mark.parametrize("name", kept.GUARDS)
def test_a_kept_state_is_read_and_plans_as_before(name, tmp_path):
    """Control: another guard's state, and one that knows a ticket less, are told apart."""
    guard = kept.GUARDS[name]
    state = guard.load(KEPT / f"{name}.npz")
    assert_near(kept.of_plan(guard.plan(state)), EXPECTED["states"][name])
    assert state.run == "kept" and 5 < len(state.unsettled()) < 40 and state.policies[2].reason == "too slow"
    assert state == kept.state_of(name) and state.ticket(299) == kept.state_of(name).ticket(299)
    guard.save(state, tmp_path / "again.npz")
    again, before = (
        read_arrays(path, {"guard-state": ()})[1] for path in (tmp_path / "again.npz", KEPT / f"{name}.npz")
    )
    assert again.keys() == before.keys() and all(
        np.array_equal(again[key], before[key], equal_nan=again[key].dtype.kind == "f") for key in again
    )
    number = state.unsettled()[0].number
    assert guard.settle(state, number, 20.0) != state
    for other, another in kept.GUARDS.items():
        if other != name:
            with pytest.raises(sf.InvalidFile, match="another guard"):
                another.load(KEPT / f"{name}.npz")


@pytest.mark.parametrize("name", kept.GUARDS)
@pytest.mark.parametrize(
    ("more", "tickets"), [(0.02, 0), (0.0, -60), (np.nan, 0), (np.inf, 0), (-5.0, 0), (0.0, 2**40)]
)
def test_a_state_that_remembers_more_than_its_tickets_prove_is_refused(name, more, tickets, tmp_path):
    """Control: as it was, it is read."""
    _, arrays = read_arrays(KEPT / f"{name}.npz", {"guard-state": ()})
    arrays = {key: np.array(array) for key, array in arrays.items() if key != "about"}
    write_arrays(tmp_path / "same.npz", "guard-state", arrays)
    kept.GUARDS[name].load(tmp_path / "same.npz")
    arrays["proved"][1, 0] += more
    arrays["proved_by"][1, 0] += tickets
    write_arrays(tmp_path / "other.npz", "guard-state", arrays)
    with pytest.raises(sf.InvalidFile, match="damaged"):
        kept.GUARDS[name].load(tmp_path / "other.npz")


@pytest.fixture
def folder(tmp_path):
    """A copy of the run: nothing that is kept is written to."""
    for file in ("run.npz", "run.ledger"):
        shutil.copy(KEPT / file, tmp_path)
    return tmp_path


def test_a_kept_run_and_its_ledger_go_on(folder):
    """Control: with another seed it is another run, which is refused, and nothing is changed."""
    before = {file: (KEPT / file).read_bytes() for file in ("run.npz", "run.ledger")}
    assert not sf.check_ledger(folder / "run.ledger").closed
    with pytest.raises(sf.InvalidFile, match="another run"):
        kept.go_on(folder, resume=True, seed=4)
    assert (folder / "run.npz").read_bytes() == before["run.npz"]
    run = kept.go_on(folder, resume=True)
    assert_near(kept.of_run(run), EXPECTED["run"])
    assert kept.STOPPED in EXPECTED["run"]["open"] and run.failed > 0 and run.played["offer-2"] > 50
    verdict = sf.check_ledger(folder / "run.ledger")
    assert verdict.closed and verdict.refusals == () and verdict.episodes == kept.EPISODES and verdict.certified == 3
    assert (folder / "run.ledger").read_bytes().startswith(before["run.ledger"])


def in_format(path, number, target):
    """Write a ledger with another number of its format, and good digests."""
    digest, lines = "0" * 64, []
    for before in path.read_bytes().splitlines():
        record = json.loads(before) | ({} if lines else {"format": number})
        line, digest = chained({key: value for key, value in record.items() if key != "digest"}, digest)
        lines.append(line)
    target.write_bytes(b"".join(lines))
    return target


def test_a_ledger_from_before_comparisons_is_verified_if_its_floor_is_absolute():
    verdict = sf.check_ledger(KEPT / "absolute.ledger")
    assert verdict.refusals == () and verdict.closed and verdict.episodes == 60
    assert (verdict.certified, verdict.trusted) == (3, 1)


def test_a_ledger_of_two_bounds_is_refused_and_says_why(tmp_path):
    """Control: in a ledger of today's format a bound too many is a bound too many."""
    ((record, reason),) = sf.check_ledger(KEPT / "two-bounds.ledger").refusals
    assert record == 1 and "the version of surefoot that wrote it" in reason and "separate bounds" in reason
    of_today = in_format(KEPT / "two-bounds.ledger", 2, tmp_path / "new.ledger")
    assert sf.check_ledger(of_today).refusals == ((1, "bounds of other policies"),)


@pytest.mark.parametrize(("name", "number"), [("absolute", 1), ("relative", 2), ("below", 2)])
def test_the_format_says_what_a_floor_rests_on(name, number, tmp_path):
    """An absolute floor has the format that it always had, and no other one. No format is later than these."""
    guard, path = kept.GUARDS[name], tmp_path / "g.ledger"
    state = guard.begin()
    sf.GuardLedger(path, guard).write(guard.plan(state))
    assert json.loads(path.read_bytes().splitlines()[0])["format"] == number and sf.check_ledger(path).refusals == ()
    for other in (1, 2, 3):
        changed = in_format(path, other, tmp_path / f"{other}.ledger")
        allowed = other == number or (other, number) == (1, 2)
        assert (sf.check_ledger(changed).refusals == ()) == allowed
        if allowed:
            assert sf.GuardLedger.resume(changed, guard, state).place.plans == 1
        else:
            with pytest.raises(sf.InvalidFile, match="another guard"):
                sf.GuardLedger.resume(changed, guard, state)
