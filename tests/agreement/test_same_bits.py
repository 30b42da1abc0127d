"""Configured runs come to the bits that are kept.

A failure means that numbers have changed: another order of additions, another draw, another
constant. If that was meant, the commit says so, and `python tests/data/kept/write.py` writes
bits.json anew; a change of names alone is never a reason.

Digests are of every byte of every number, kinds and shapes included. They hold on a machine like
the one that made them; elsewhere (another numpy or numba, another processor) totals are compared to
1e-9 instead.
"""

import importlib.util
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

KEPT = Path(__file__).parents[1] / "data" / "kept"
SPEC = importlib.util.spec_from_file_location("kept_settings_of_bits", KEPT / "settings.py")
kept = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kept)
BITS = json.loads((KEPT / "bits.json").read_text())
ALIKE = BITS["machine"] == kept.machine()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each run once for all tests."""
    known = {}

    def make(name):
        if name not in known:
            known[name] = kept.RUNS[name](0, tmp_path_factory.mktemp("run"))
        return known[name]

    return make


def study(seed, folder, monkeypatch):
    """A tiny study, by the command."""
    (folder / f"{seed}.toml").write_text(kept.study_text(seed))
    out = folder / f"out-{seed}"
    arguments = ["run", folder / f"{seed}.toml", "--out", out, "--jobs", "1", "--no-report"]
    monkeypatch.setattr(sys, "argv", ["surefoot", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("surefoot", run_name="__main__")
    assert not ended.value.code
    return kept.of_trials(out)


def test_every_run_has_its_bits():
    """None is left out on either side."""
    assert BITS["runs"].keys() == {*kept.RUNS, "study"}


@pytest.mark.parametrize("name", kept.RUNS)
def test_a_run_has_the_same_bits(name, made):
    """The groups that differ say what has changed: counts (other draws), curve and totals (other
    values), trace (other certificates).
    """
    found, expected = made(name).as_json(), BITS["runs"][name]
    assert found["numbers"].keys() == expected["numbers"].keys()
    for number, value in expected["numbers"].items():
        same = None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)
        assert found["numbers"][number] == same, number
    if ALIKE:
        assert found["digests"] == expected["digests"]


@pytest.mark.parametrize("name", kept.RUNS)
def test_another_seed_has_other_bits(name, tmp_path):
    """Control: what was drawn decides the digests."""
    found, expected = (
        kept.RUNS[name](1, tmp_path).as_json()["digests"],
        BITS["runs"][name]["digests"],
    )
    assert found.keys() == expected.keys()
    drawn = [group for group in expected if group.endswith(("counts", "log"))]
    assert drawn
    assert all(found[group] != expected[group] for group in drawn)


@pytest.mark.parametrize("name", kept.RUNS)
def test_the_smallest_change_of_any_number_is_seen(name, made):
    """Control: of each array one number is changed by the least that its kind knows."""
    for group in made(name).groups.values():
        before = kept.digest(group)
        for label, value in group.items():
            if value is None or isinstance(value, str):
                assert kept.digest({**group, label: "other"}) != before
                continue
            bent = np.array(value)
            if bent.dtype.kind == "f" and bent.size:
                bent.flat[-1] = (
                    np.nextafter(bent.flat[-1], np.inf) if np.isfinite(bent.flat[-1]) else 0.5
                )
            elif bent.dtype.kind in "bi" and bent.size:
                bent.flat[-1] ^= 1
            else:
                continue
            assert kept.digest({**group, label: bent}) != before, label


def test_a_study_has_the_same_bits(tmp_path, monkeypatch):
    """Other digests mean that trials draw, or are accounted for, in another way."""
    expected = BITS["runs"]["study"]["digests"]["trials"]
    found, other = (kept.digest(study(seed, tmp_path, monkeypatch)) for seed in (0, 1))
    assert other != expected  # control
    if not ALIKE:
        pytest.skip("made on another machine or with other libraries: last bits may differ")
    assert found == expected
