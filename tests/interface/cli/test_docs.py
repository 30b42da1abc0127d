"""Every Python block of the README and of docs/ runs. One marked `python continuation` goes on
from the last.
"""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from surefoot.studies.run.trial import check_study_cells
from surefoot.studies.spec.study import parse_study

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "ALGORITHMS.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
BLOCK = re.compile(r"^```python( continuation)?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def scripts(page):
    joined = []
    for continuation, code in BLOCK.findall(page.read_text()):
        if continuation:
            joined[-1] += code
        else:
            joined.append(code)
    return joined


FIRST = "README.md-0"  # the README's own example has a test of its own
CASES = [
    (f"{page.relative_to(ROOT)}-{i}", code)
    for page in PAGES
    for i, code in enumerate(scripts(page))
]


@pytest.mark.parametrize(
    "code", [pytest.param(code, id=name) for name, code in CASES if name != FIRST]
)
def test_block_runs(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {"__name__": "__main__"})
    assert "Traceback" not in capsys.readouterr().err


def test_the_readme_has_its_example_and_it_prints_what_it_says(tmp_path, monkeypatch, capsys):
    first = scripts(ROOT / "README.md")[0]
    code = [line for line in first.splitlines() if line.strip() and not line.startswith("#")]
    assert len(code) <= 10
    monkeypatch.chdir(tmp_path)
    exec(compile(first, "block", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Run(EpsMix, 4000 episodes, 0 violations of 0.179348")
    assert lines[1].startswith("Next: the optimistic policy")
    assert "Taken on trust, checked by nobody:" in lines
    assert (tmp_path / "run.png").exists()


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize(
    ("script", "written"), [("worlds_page", "worlds.md"), ("study_fields", "study-fields.md")]
)
def test_pages_made_from_the_code_are_what_it_says(script, written):
    """`make docs` writes them; a family or a field that changes without its page fails here."""
    spec = importlib.util.spec_from_file_location(script, ROOT / "tools" / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / written).read_text() == module.page()


def test_the_study_of_the_docs_is_one():
    block = re.search(
        r"^```toml\n(.*?)^```", (ROOT / "docs" / "studies.md").read_text(), re.DOTALL | re.MULTILINE
    )
    study = parse_study(tomllib.loads(block.group(1)), "docs")
    check_study_cells(study.cells)
    assert len(study.cells) == 2
