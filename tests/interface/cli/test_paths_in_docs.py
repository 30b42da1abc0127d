"""Files, folders and headings that the pages name exist, and the page about the architecture
names every file.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "surefoot"
TOP = ("README.md", "NOTATION.md", "CONTRIBUTING.md", "ALGORITHMS.md")
PAGES = [ROOT / name for name in TOP] + sorted((ROOT / "docs").rglob("*.md"))
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# A path in backticks: one that ends in a file of ours, or a folder of the package.
FILE = re.compile(r"`(?:\w+ )?((?:[\w.-]+/)*[\w.-]+\.(?:py|md|toml|json|lock))`")
FOLDER = re.compile(r"`((?:[\w-]+/)+[\w-]*)`")
# files that users have, and the name of a cell
NOT_OURS = {"study.json", "my.toml", "high/stepmix"}


def unfenced(text):
    """The text without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def exists(name, page):
    """Is it there, seen from the top, from the package or from the page? A bare name may be
    anywhere in the package.
    """
    places = (ROOT, ROOT / "tests", PACKAGE, PACKAGE / "studies", page.parent)
    if any((place / name).exists() for place in places):
        return True
    return "/" not in name and any(PACKAGE.rglob(name))


def missing(page):
    """Paths of a page that lead nowhere."""
    text = unfenced(page.read_text())
    named = {*FILE.findall(text), *FOLDER.findall(text)} - NOT_OURS
    return sorted(name for name in named if not exists(name, page))


def anchor(heading):
    """The anchor that GitHub gives a heading."""
    plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return plain.strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_paths_exist(page):
    assert missing(page) == []


def test_a_path_that_does_not_exist_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "See `agents/planning.py`, `no/such/folder/`, `gone.py` and `agents/plan.py`.\n"
    )
    assert missing(page) == ["agents/planning.py", "gone.py", "no/such/folder/"]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_to_headings_lead_somewhere(page):
    for target, name in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        text = unfenced((page.parent / target if target else page).read_text())
        headings = {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
        assert name in headings, f"{page.name}: {target}#{name}"


def test_the_page_about_the_architecture_names_every_file():
    """Each file beside its package; the kernels are one line. A file that is moved or added
    fails here.
    """
    block = re.search(
        r"^src/surefoot/\n(.*?)^```",
        (ROOT / "docs" / "architecture.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    listed: dict[str, set[str]] = {}
    package = ""
    for line in block.group(1).splitlines():
        entry = re.match(r"  (  )?(\w+)/ ", line)
        if entry:
            package = (
                f"{package.split('/', maxsplit=1)[0]}/{entry.group(2)}"
                if entry.group(1)
                else entry.group(2)
            )
        where = package if package and not line.startswith(("  __init__", "  errors")) else ""
        listed.setdefault(where, set()).update(re.findall(r"\b(\w+\.py)\b", line))
    there: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        folder = path.parent.relative_to(PACKAGE).as_posix().removeprefix(".")
        if folder != "kernels" and (path.name != "__init__.py" or not folder):
            there.setdefault(folder, set()).add(path.name)
    assert {name: files for name, files in listed.items() if files} == there
