"""The package as it is installed: built by `python -m build`, put into an empty environment, and
run from there.
"""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import surefoot as sf
from surefoot.studies.report.plots import save_svg
from surefoot.studies.spec.library import GROUPS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surefoot"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOWEST = tuple(int(part) for part in PROJECT["requires-python"].removeprefix(">=").split("."))
CLASSIFIED = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
COMPILED = {".pyc", ".nbi", ".nbc"}  # what Python and numba leave beside the sources
# What is checked with the package in an empty environment: published values, and runs to the last
# bit.
CHECKED = (
    "tests/conftest.py",
    "tests/data",
    "tests/shared",
    "tests/reference/test_check_values.py",
    "tests/agreement/conftest.py",
    "tests/agreement/test_same_bits.py",
)
# The module of a distribution, where it has another name.
MODULES = {"ibis-framework": "ibis", "dask": "distributed", "hdf5": "h5py"}
# What no file of ours imports, and why an extra names it all the same.
PLUGINS = {
    "pandas": "ibis runs nothing without it, and asks for it late",
    "pyarrow": "ibis runs nothing without it, and asks for it late",
    "pyarrow-hotfix": "ibis runs nothing without it, and asks for it late",
    "pyspark": "only our tests of the warehouse run on Spark",
}
SHOWN = """
import json
from importlib.resources import files
import surefoot as sf
from surefoot.studies.spec.library import GROUPS, packaged
report = files("surefoot.studies.report")
page = [report.joinpath(name).read_text() for name in ("page.html.jinja", "style.css")]
studies = [packaged(name).name for name in GROUPS["all"]]
print(json.dumps([sf.__file__, sf.__version__, studies, [len(text) for text in page]]))
"""


def run(command, where, **more):
    """Run a command in a folder, without what this process adds to the search path."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "NUMBA_"))
    }
    return subprocess.run(
        [str(part) for part in command],
        cwd=where,
        env={**kept, **more},
        capture_output=True,
        text=True,
        check=False,
    )


def told(command, where, **more):
    """What a command prints, which must end well."""
    done = run(command, where, **more)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it, by what `make setup` installed: no index
    is asked.
    """
    out = tmp_path_factory.mktemp("dist")
    known = {} if "PYTHONPATH" not in os.environ else {"PYTHONPATH": os.environ["PYTHONPATH"]}
    told([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT], out, **known)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def files_of(root):
    """What belongs to the package."""
    return {path for path in root.rglob("*") if path.is_file() and path.suffix not in COMPILED}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {f"surefoot/{path.relative_to(SOURCE).as_posix()}" for path in files_of(SOURCE)}
    assert found == expected
    assert {"surefoot/py.typed", "surefoot/studies/report/page.html.jinja"} <= found
    assert {Path(name).suffix for name in found} >= {".py", ".pyi", ".toml", ".css", ".jinja"}


def test_its_metadata_are_those_of_the_project(built):
    with zipfile.ZipFile(built[1]) as wheel:
        read = {Path(name).name: wheel.read(name) for name in wheel.namelist() if "-info/" in name}
    about = email.message_from_string(read["METADATA"].decode())
    assert (about["Name"], about["Version"]) == ("surefoot", sf.__version__)
    assert about["Requires-Python"] == PROJECT["requires-python"]
    assert about["License-Expression"] == "MIT"
    assert set(about.get_all("License-File")) == set(PROJECT["license-files"])
    assert read["LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert about.get_all("Classifier") == PROJECT["classifiers"]
    assert set(about.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    needed = {line for line in about.get_all("Requires-Dist") if "extra" not in line}
    assert needed == {name.replace(" ", "") for name in PROJECT["dependencies"]}


def test_the_sdist_holds_what_its_tests_read(built):
    with tarfile.open(built[0]) as sdist:
        found = {name.partition("/")[2] for name in sdist.getnames()}
    for path in (
        "pyproject.toml",
        "src/surefoot/py.typed",
        "tests/conftest.py",
        "tests/data/check-values.json",
        "docs",
    ):
        assert path in found or any(name.startswith(f"{path}/") for name in found)
    assert not any(Path(name).suffix in COMPILED for name in found)


def pip(python, *arguments):
    """Install into another environment, by the pip of this one."""
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *arguments]
    return run(command, ROOT)


def installed(folder, wheel, python):
    """An empty environment with the wheel alone in it."""
    told([python, "-m", "venv", "--without-pip", folder], folder.parent)
    mine = folder / "bin" / "python"
    done = pip(mine, "--no-index", "--no-deps", wheel)
    assert done.returncode == 0, done.stderr
    return mine


def test_it_runs_from_an_environment_of_its_own(built, tmp_path):
    """Its libraries are those of this environment; the next test installs them, too."""
    python = installed(tmp_path / "env", built[1], sys.executable)
    alone = run([python, "-c", "import surefoot as sf; sf.world('trap')"], tmp_path)
    assert (
        "No module named" in alone.stderr
    )  # the control: nothing of this environment is there by itself
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    # A path in such a file is added as it is: what is installed in it for editing is not followed.
    (site / "libraries.pth").write_text(str(Path(np.__file__).parents[1]))
    where, version, studies, page = json.loads(told([python, "-c", SHOWN], tmp_path))
    assert Path(where).is_relative_to(tmp_path)
    assert version == sf.__version__
    assert studies == list(GROUPS["all"])
    assert min(page) > 1000
    command = python.with_name("surefoot")
    assert sf.__version__ in told([command, "--version"], tmp_path)
    assert "online-worlds" in told([command, "studies"], tmp_path)


@cache
def candidates():
    """Where each Python from the lowest version on may be: this one, those on the path, those of
    pyenv.
    """
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    found = {f"3.{sys.version_info.minor}": [Path(sys.executable)]}
    for path in (
        path
        for folder in (*folders, *sorted(root.glob("versions/*/bin")))
        for path in folder.glob("python3.*")
    ):
        minor = path.name.removeprefix("python3.")
        if minor.isdigit() and int(minor) >= LOWEST[1]:
            found.setdefault(f"3.{minor}", []).append(path)
    return found


def interpreter(version):
    """The first of them that runs and can make environments; None: a shim may lead nowhere."""
    code = "import ensurepip, sys; print(*sys.version_info[:2], sep='.')"
    return next(
        (
            path
            for path in candidates()[version]
            if run([path, "-c", code], ROOT).stdout.strip() == version
        ),
        None,
    )


def test_classifiers_begin_with_the_lowest_version_and_leave_none_out():
    lowest = LOWEST[1]
    assert [f"3.{lowest + i}" for i in range(len(CLASSIFIED))] == CLASSIFIED


@pytest.mark.full
def test_every_version_that_is_named_is_on_this_machine():
    """Else `make test-full` did not test it, and the classifiers say more than anybody saw."""
    assert [
        version
        for version in CLASSIFIED
        if version not in candidates() or interpreter(version) is None
    ] == []


@pytest.mark.full
@pytest.mark.parametrize("version", sorted(candidates(), key=lambda version: int(version[2:])))
def test_it_is_installed_with_its_libraries_and_works(version, built, tmp_path):
    """As a user does it, from the index that pip is set to ask; for each Python that is found."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"none of {candidates()[version]} runs Python {version}")
    python = installed(tmp_path / "env", built[1], found)
    done = pip(python, "--only-binary", ":all:", built[1], "pytest", "hypothesis", "mpmath")
    if done.returncode and version not in CLASSIFIED:
        pytest.skip(
            f"Python {version} is not named in the classifiers, and its libraries are not there: "
            f"{done.stderr}"
        )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "demo"
    folder.mkdir()
    assert "StepMix" in told([python.with_name("surefoot"), "demo", "--out", "demo.png"], folder)
    assert (folder / "demo.png").stat().st_size > 10_000
    copied = tmp_path / "tests"
    for name in CHECKED:
        source, target = ROOT / name, copied / Path(name).relative_to("tests")
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    options = ["-m", "not full", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path]
    command = [python, "-m", "pytest", "-q", *options, "-p", "no:cacheprovider", copied]
    assert " passed" in told(command, tmp_path)


@cache
def imported(root=SOURCE):
    """What the package imports when its files are imported, and what it imports in functions."""
    found = re.findall(
        r"^( *)(?:import|from) (\w+)",
        "\n".join(path.read_text() for path in root.rglob("*.py")),
        re.MULTILINE,
    )
    return {name for space, name in found if not space}, {name for space, name in found if space}


def distributions(requirement):
    """The names in a requirement: the distribution, and those of its own extras that stand for a
    module.
    """
    name, extras = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement).groups()
    return [name, *(extra for extra in (extras or "").split(",") if extra in MODULES)]


def test_each_extra_imports_what_it_names():
    ours = {
        name: list_ for name, list_ in PROJECT["optional-dependencies"].items() if name != "dev"
    }
    named = {
        each
        for list_ in ours.values()
        for requirement in list_
        for each in distributions(requirement)
    }
    assert len(named) > 5
    at_once, later = imported()
    modules = {each: MODULES.get(each, each.replace("-", "_")) for each in named}
    assert not set(modules.values()) & at_once  # only those need them who call what does
    assert {each for each, module in modules.items() if module not in later} == set(PLUGINS)
    assert "numpy" in at_once  # the controls: both kinds are found
    assert "torch" not in later
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for name in set(ours) - {"spark"}:
        assert f"surefoot[{name}]" in text, f"no message says how to install the extra {name}"


def test_the_licence_of_what_is_in_a_page_is_in_the_package():
    """Nothing is bundled but letters: outlines of the font that matplotlib brings along."""
    page = (SOURCE / "studies" / "report" / "page.html.jinja").read_text()
    style = (SOURCE / "studies" / "report" / "style.css").read_text()
    for foreign in ("<script", "<link", "@import", "@font-face", "src="):
        assert foreign not in page + style
    assert "url(" not in style
    assert "DejaVu Sans" in page
    assert "studies/report/LICENSE_DEJAVU" in page
    mine = (SOURCE / "studies" / "report" / "LICENSE_DEJAVU").read_text()
    assert (
        mine == (Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "LICENSE_DEJAVU").read_text()
    )


@pytest.mark.parametrize("family", ["DejaVu Sans", "STIXGeneral"])
def test_letters_of_pages_are_of_that_font_whatever_is_configured(family):
    with matplotlib.rc_context({"font.sans-serif": [family]}):
        figure = Figure()
        figure.text(0.5, 0.5, "Episode 12 €")
        svg = save_svg(figure)
    letters = set(re.findall(r'<path id="figure-(\w+?)-', svg))
    assert letters == {"DejaVuSans"}
