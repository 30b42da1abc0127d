"""Every Python block of the README and of docs/ runs. One marked `python continuation` goes on from the last."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ALGORITHMS.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python( continuation)?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def scripts(page):
    joined = []
    for continuation, code in BLOCK.findall(page.read_text()):
        if continuation:
            joined[-1] += code
        else:
            joined.append(code)
    return joined


CASES = [pytest.param(code, id=f"{page.name}-{i}") for page in PAGES for i, code in enumerate(scripts(page))]


@pytest.mark.parametrize("code", CASES)
def test_block_runs(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {"__name__": "__main__"})
    assert "Traceback" not in capsys.readouterr().err


def test_the_readme_has_its_example_and_it_prints_what_it_says(tmp_path, monkeypatch, capsys):
    first = scripts(ROOT / "README.md")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 12
    monkeypatch.chdir(tmp_path)
    exec(compile(first, "block", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0"
    assert lines[1].startswith("{'baseline': ")
    assert lines[2].startswith("Next: ")
    assert "Taken on trust, checked by nobody:" in lines


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_page_of_worlds_is_what_the_registry_says():
    """`make docs` writes it; a family that changes without its page fails here."""
    spec = importlib.util.spec_from_file_location("worlds_page", ROOT / "docs" / "worlds_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "worlds.md").read_text() == module.page()
