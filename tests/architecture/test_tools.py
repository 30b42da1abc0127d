"""What is in tools/ runs: walks through the package are counted, and every writer of pages finds what it imports."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = sorted((ROOT / "tools").glob("*.py"))
MOST = {"simulate": 73, "study": 159}  # hops; each may go down


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counted(*options):
    tool = [sys.executable, str(ROOT / "tools" / "walks.py"), "--src", str(ROOT / "src"), "--json", *options]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_walk_is_counted():
    """With the edges: a simulation goes through the plan of its agent and ends in a run."""
    found = counted("--walk", "simulate", "--list", "--imports")
    walk = found["walks"]["simulate"]
    assert 10 < walk["files"] < walk["hops"] <= MOST["simulate"]
    assert walk["hops"] == len(walk["edges"])
    pairs = {(edge["caller"], edge["callee"]) for edge in walk["edges"]}
    assert ("simulation/simulate.py", "simulation/setup.py") in pairs
    assert all(caller != callee for caller, callee in pairs)
    assert found["imports"]["modules"] > 100


@pytest.mark.full
def test_a_study_becomes_a_page_in_few_hops():
    walk = counted("--walk", "study")["walks"]["study"]
    assert walk["hops"] <= MOST["study"]


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_a_tool_finds_what_it_imports(path):
    """Pages that take long to measure are not written by any test: their tools are loaded at least."""
    module = loaded(path.stem)
    assert hasattr(module, "main") or hasattr(module, "page")
    assert module.__doc__.split()[0] in ("Write", "Count", "Measure")


@pytest.mark.full
def test_the_pages_of_a_reproduction_are_written(tmp_path, monkeypatch):
    """A tiny study stands for those that take hours."""
    tool, walks = loaded("reproduction"), loaded("walks")
    (tmp_path / "tiny.toml").write_text(walks.STUDY)
    walks.command("run", tmp_path / "tiny.toml", "--out", tmp_path / "results" / "tiny", "--jobs", "1")
    monkeypatch.setattr(tool, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(sys, "argv", ["reproduction.py", str(tmp_path / "results")])
    tool.main()
    page = (tmp_path / "pages" / "README.md").read_text()
    assert "| scenario | agent | violations per run |" in page
    rows = (tmp_path / "pages" / "tiny" / "trials.csv").read_text().splitlines()
    assert rows[0].startswith("scenario,agent,trial,episodes,floor")  # the columns of the files that are kept
    assert len(rows) == 1 + 3 * 2
    assert (tmp_path / "pages" / "tiny" / "report.html").exists()
    assert page.endswith("\n".join(tool.choices()) + "\n")
    assert "(-0)" not in page
    assert "1 minutes" not in page
    # Another study is added, and this one is left as it is, to the byte; then this one alone is written again.
    before = {path.name: path.read_bytes() for path in (tmp_path / "pages" / "tiny").iterdir()}
    other = (tmp_path / "tiny.toml").read_text().replace('name = "tiny"', 'name = "other"')
    (tmp_path / "other.toml").write_text(other)
    walks.command("run", tmp_path / "other.toml", "--out", tmp_path / "others" / "other", "--jobs", "1")
    monkeypatch.setattr(sys, "argv", ["reproduction.py", str(tmp_path / "others")])
    tool.main()
    both = (tmp_path / "pages" / "README.md").read_text()
    assert list(tool.sections(both)) == ["tiny", "other"]
    assert tool.sections(both)["tiny"].strip() == tool.sections(page)["tiny"].strip()
    assert {path.name: path.read_bytes() for path in (tmp_path / "pages" / "tiny").iterdir()} == before
    (tmp_path / "pages" / "tiny" / "left-over.png").write_text("of a figure that is drawn no more")
    monkeypatch.setattr(sys, "argv", ["reproduction.py", str(tmp_path / "results")])
    tool.main()
    assert (tmp_path / "pages" / "README.md").read_text() == both
    assert {path.name for path in (tmp_path / "pages" / "tiny").iterdir()} == before.keys()


def test_the_page_of_the_reproduction_has_today_s_table_of_choices():
    """`python tools/reproduction.py` writes it again, and nothing else."""
    tool = loaded("reproduction")
    page = (ROOT / "docs" / "reproduction" / "README.md").read_text()
    assert tool.with_choices(page) == page
    assert tool.with_choices(page.replace("Section 7.2 gives no gamma.", "")) == page  # control: it is compared
    assert tool.with_choices("# The paper\n") == "# The paper\n\n" + "\n".join(tool.choices()) + "\n"


def test_what_got_slower_is_named():
    """The kept table of the benchmarks: times by a yardstick, the rest as it is, each row with its own tolerance."""
    spec = importlib.util.spec_from_file_location("kept", ROOT / "benchmarks" / "kept.py")
    kept = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kept)

    def row(item, value, unit="us", target="", where="small"):
        return SimpleNamespace(item=item, where=where, value=value, unit=unit, target=target)

    now = kept.ratios(
        [
            row("loop", 3.0),
            row("pass", 2.0, "x"),
            row("ours", 4.0, "x", ">= 2", ""),
            row("broken", None),
            row("cold start", 12.0, "s"),
        ],
        seconds=1e-3,
    )
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
    assert kept.slower(now, {"loop | small": kept.Kept(0.002, 0.6)}) == []  # control: the tolerance decides
    after = kept.updated(now, before)
    assert after["loop | small"] == (pytest.approx(0.003), 0.3)  # its tolerance stays
    assert after["gone"] == before["gone"]
    assert kept.slower(now, after) == []


def test_the_kept_table_is_read_as_it_was_written(tmp_path):
    spec = importlib.util.spec_from_file_location("kept", ROOT / "benchmarks" / "kept.py")
    kept = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kept)
    table = {"b | (5, 5, 3)": kept.Kept(1.5, 0.25), "a": kept.Kept(0.125)}
    kept.write(table, tmp_path / "kept.json")
    assert kept.read(tmp_path / "kept.json") == table
    assert kept.read(tmp_path / "nothing.json") == {}
    assert "first simulate, compiling | empty cache" in kept.read()  # cold start is one of the rows
