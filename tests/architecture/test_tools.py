"""What is in tools/ runs: every writer of pages finds what it imports."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from surefoot.cli.main import app

ROOT = Path(__file__).parents[2]
TOOLS = sorted((ROOT / "tools").glob("*.py"))
TINY = """
name = "tiny"
title = "A tiny study"
question = "Does it run?"
trials = 2
episodes = 300

[[scenarios]]
id = "random"
world = { name = "random", S = 3, A = 2, H = 2, seed = 1 }
baseline = { eta = 5.0 }
floor = { of_baseline = 0.9 }

[[agents]]
id = "stepmix"
agent = "stepmix"
bounds = "kl"

[[agents]]
id = "epsmix"
agent = "epsmix"
bounds = "paper"

[[agents]]
id = "bpi-ucbvi"
agent = "bpi-ucbvi"
bounds = "kl"
"""


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_a_tool_finds_what_it_imports(path):
    """Pages that take long to measure are not written by any test: their tools are loaded at
    least.
    """
    module = loaded(path.stem)
    assert hasattr(module, "main") or hasattr(module, "page")
    assert module.__doc__.split()[0] in ("Write", "Measure")


def run_study(path, out):
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(out), "--jobs", "1"])
    assert done.exit_code == 0, done.output


@pytest.mark.full
def test_the_pages_of_a_reproduction_are_written(tmp_path, monkeypatch):
    """A tiny study stands for those that take hours."""
    tool = loaded("reproduction")
    (tmp_path / "tiny.toml").write_text(TINY)
    run_study(tmp_path / "tiny.toml", tmp_path / "results" / "tiny")
    monkeypatch.setattr(tool, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(sys, "argv", ["reproduction.py", str(tmp_path / "results")])
    tool.main()
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "| scenario | agent | violations per run |" in page
    rows = (tmp_path / "pages" / "tiny" / "trials.csv").read_text().splitlines()
    # the columns of the files that are kept
    assert rows[0].startswith("scenario,agent,trial,episodes,floor")
    assert len(rows) == 1 + 3 * 2
    assert (tmp_path / "pages" / "tiny" / "report.html").exists()
    assert "(-0)" not in page
    assert "1 minutes" not in page
    # Another study is added, and this one is left as it is, to the byte; then this one alone is
    # written again.
    before = {path.name: path.read_bytes() for path in (tmp_path / "pages" / "tiny").iterdir()}
    other = (tmp_path / "tiny.toml").read_text().replace('name = "tiny"', 'name = "other"')
    (tmp_path / "other.toml").write_text(other)
    run_study(tmp_path / "other.toml", tmp_path / "others" / "other")
    monkeypatch.setattr(sys, "argv", ["reproduction.py", str(tmp_path / "others")])
    tool.main()
    both = (tmp_path / "pages" / "README.md").read_text()
    assert list(tool.sections(both)) == ["tiny", "other"]
    assert tool.sections(both)["tiny"].strip() == tool.sections(page)["tiny"].strip()
    assert {
        path.name: path.read_bytes() for path in (tmp_path / "pages" / "tiny").iterdir()
    } == before
    (tmp_path / "pages" / "tiny" / "left-over.png").write_text("of a figure that is drawn no more")
    monkeypatch.setattr(sys, "argv", ["reproduction.py", str(tmp_path / "results")])
    tool.main()
    assert (tmp_path / "pages" / "README.md").read_text() == both
    assert {path.name for path in (tmp_path / "pages" / "tiny").iterdir()} == before.keys()


def test_what_got_slower_is_named():
    """The kept table of the benchmarks: times by a yardstick, the rest as it is, each row with
    its own tolerance.
    """
    spec = importlib.util.spec_from_file_location("kept", ROOT / "benchmarks" / "kept.py")
    kept = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kept)

    def row(item, value, unit="us", target="", where="small"):
        return SimpleNamespace(item=item, where=where, value=value, unit=unit, target=target)

    rows = [
        row("loop", 3.0),
        row("pass", 2.0, "x"),
        row("ours", 4.0, "x", ">= 2", ""),
        row("broken", None),
        row("cold start", 12.0, "s"),
    ]
    now = kept.ratios(rows, seconds=1e-3)
    assert now == pytest.approx(
        {"loop | small": 0.003, "pass | small": 2.0, "ours": 0.25, "cold start | small": 12_000.0}
    )
    before = {
        "loop | small": kept.Kept(0.002, 0.3),  # 50 % slower: named
        "pass | small": kept.Kept(1.9, 0.1),  # 5 % slower: within its tolerance
        "ours": kept.Kept(0.1, 0.2),  # its advantage shrank from 10 to 4
        "gone": kept.Kept(1.0),
    }
    found = kept.slower(now, before)
    assert [slower.name for slower in found] == ["ours", "loop | small"]  # the worst first
    assert "50% more than kept" in str(found[1])
    # control: the tolerance decides
    assert kept.slower(now, {"loop | small": kept.Kept(0.002, 0.6)}) == []
    # none goes unseen
    assert kept.not_compared(rows, now, before) == ["broken | small", "cold start | small"]
    # two rows of one name
    assert kept.not_compared([*rows, row("loop", 1.0)], now, before)[-1] == "loop | small"
    assert kept.not_measured(rows, before) == ["gone"]
    after = kept.updated(now, before)
    assert kept.not_compared(rows, now, after) == ["broken | small"]
    assert after["loop | small"] == (pytest.approx(0.003), 0.3)  # its tolerance stays
    assert after["gone"] == before["gone"]
    assert kept.slower(now, after) == []


def test_a_benchmark_that_breaks_is_reported_after_the_rows_it_had(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    run, table = importlib.import_module("run"), importlib.import_module("table")

    def breaks():
        yield table.at_most("loop", "small", 2.0, "us", 2.5, "note")
        raise ValueError("no log")

    rows = list(run.rows_of("logs", breaks))
    assert [table.line(row) for row in rows] == [
        "loop | small  2 us  [<= 2.5: reached]  note",
        "logs  no number  ValueError: no log",
    ]
    assert run.chosen(False, ["episodes"]) == ["compile", "episodes"]
    assert set(run.ITEMS) - set(run.chosen(False, None)) == {"instructions", "peers"}


def test_the_kept_table_is_read_as_it_was_written(tmp_path):
    spec = importlib.util.spec_from_file_location("kept", ROOT / "benchmarks" / "kept.py")
    kept = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kept)
    table = {"b | (5, 5, 3)": kept.Kept(1.5, 0.25), "a": kept.Kept(0.125)}
    kept.write(table, tmp_path / "kept.json")
    assert kept.read(tmp_path / "kept.json") == table
    assert kept.read(tmp_path / "nothing.json") == {}
    assert "first simulate, compiling | empty cache" in kept.read()  # cold start is one of the rows
