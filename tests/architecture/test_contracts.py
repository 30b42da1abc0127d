"""The import contracts of pyproject.toml, each seen to refuse: forbidden imports are planted in a
copy of the package.

What is planted is derived from two tables here, `LAYERS` and `ALLOWED`, not from pyproject.toml: a
contract that is loosened there fails here. Every folder of the package is tried with a NEW file, so
that a file of tomorrow is guarded.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surefoot"

LAYERS = (  # highest first; a package imports only what is below its line, never its neighbour
    {"cli"},
    {"studies"},
    {"show"},
    {"run"},
    {"audit", "logs"},
    {"guard", "rivals"},
    {"agents", "worlds"},
    {"bounds"},
    {"evidence", "kernels"},
    {"model"},
    {"base"},
    {"errors"},
)
# who may import which third-party library: a new pair is a decision, made here and in
# pyproject.toml
ALLOWED = {
    "distributed": {"studies.run.runner"},
    "duckdb": {"logs", "studies.run.store", "studies.analysis.sql"},
    "gymnasium": {"worlds.gymnasium", "worlds.environments", "logs.minari"},
    "h5py": {"logs"},
    "highspy": {"bounds.lp"},
    "ibis": {"logs"},
    "jinja2": {"studies.report.report"},
    "joblib": {"run.simulate", "studies.run.runner"},
    "matplotlib": {"show.figures", "show.live_figures", "show.plan_figure", "studies.report"},
    "lazy_loader": {"", "kernels"},  # whose names are imported when they are first used
    "minari": {"logs"},
    "numba": {"kernels"},
    "numpy": {
        "agents",
        "audit.history",
        "audit.ledger",
        "audit.premises",
        "audit.records",
        "audit.watchdog",
        "base",
        "bounds",
        "evidence",
        "guard",
        "kernels",
        "logs",
        "model",
        "rivals",
        "run",
        "show",
        "studies",
        "worlds",
    },
    "scipy": {"studies.analysis.stats"},
    "tomli_w": {"studies.report.report"},
    "rich": {"base.progress", "studies.analysis.sql", "studies.report.terminal", "cli"},
    "typer": {"cli"},
}
# by an import statement
NOWHERE = {"dask", "flint", "hypothesis", "mpmath", "pandas", "pyarrow", "pyspark"}
BY_CONTRACT = ALLOWED.keys() - {"numpy"}  # the others are refused by the tables above alone
WORLDS = {  # who may see the true worlds
    "run.blocks",
    "run.by_name",
    "run.conformance",
    "run.forecast",
    "run.guard_env",
    "run.learn",
    "run.loops",
    "run.sample_log",
    "run.setup",
    "run.simulate",
    "studies",
    "cli",
}
DYNAMIC = {  # who imports by a name that is computed
    "cli.forecasts": "the user's own environment, MODULE:CLASS on the command line",
    "logs.warehouse": "ibis with pandas and pyarrow: all of them or a message that names the extra",
    "studies.run.runner": "whether Dask is installed",
}
VERIFIERS = ("audit.verifier", "audit.guard_verifier")


def module_of(path, root):
    """`agents.stepmix` for agents/stepmix.py; a package for its __init__; '' for the package
    itself.
    """
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(text):
    """The full names of all that is imported by a statement, wherever it stands: modules, and
    names within them.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"imports are absolute, found: {ast.unparse(node)}"
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(found)


def within(module, packages):
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def strangers(root):
    """Every (module, library) that the tables do not allow; the verifier may not even import its
    own package.
    """
    for path in sorted(root.rglob("*.py")):
        module = module_of(path, root)
        for name in imports(path.read_text()):
            library = name.split(".")[0]
            ours = library == "surefoot" and module not in VERIFIERS
            if (
                not ours
                and library not in sys.stdlib_module_names
                and not within(module, ALLOWED.get(library, ()))
            ):
                yield module, library


@cache
def computes(text):
    """Whether a file imports by a computed name."""
    names = {"import_module", "__import__", "find_spec", "spec_from_file_location", "exec_module"}
    return any(
        (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.Name) and node.id in names)
        for node in ast.walk(ast.parse(text))
    )


def computed(root):
    """The modules that import by a computed name."""
    return {module_of(path, root) for path in root.rglob("*.py") if computes(path.read_text())}


def folders(root):
    """Every package below the top one, by its dotted name."""
    return sorted(
        module_of(path, root) for path in root.rglob("__init__.py") if path.parent != root
    )


def run_contracts(copy):
    """What `make check` runs, on a copy of the package: whether all are kept, and the report."""
    code = "from importlinter.cli import lint_imports_command as run; run()"
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "--no-cache",
            "--no-logo",
            "--config",
            str(ROOT / "pyproject.toml"),
        ],
        cwd=copy.parent,
        env={**os.environ, "PYTHONPATH": str(copy.parent), "COLUMNS": "400", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts: " in told.stdout, told.stdout + told.stderr
    return told.returncode == 0, told.stdout


def refused(report):
    """Every import (who, what) that the report shows to break a contract."""
    importer = None
    for line in report.splitlines():
        if found := re.match(r"\s*(?:-\s+)?(surefoot[\w.]*) -> ([\w.]+) \(l\.", line):
            importer = found[1]
            yield importer, found[2]
        elif found := re.match(r"\s*& ([\w.]+) \(l\.", line):
            yield importer, found[1]


def broken(report):
    """The names of the contracts that are broken."""
    return set(re.findall(r"^(.*?) BROKEN", report, re.MULTILINE))


def copied(folder):
    place = folder / "surefoot"
    shutil.copytree(SOURCE, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture
def copy(tmp_path):
    return copied(tmp_path)


def plant(copy, module, *statements):
    """Add statements to a module; one that is not there is made, with a docstring."""
    path = copy.joinpath(*module.split(".")).with_suffix(".py")
    text = path.read_text() if path.exists() else '"""A new file."""\n'
    path.write_text(text + "\n".join(statements) + "\n")
    return f"surefoot.{module}"


def test_nothing_is_refused_as_it_is(copy):
    kept, report = run_contracts(copy)
    assert kept, report
    assert not broken(report)
    assert list(strangers(SOURCE)) == []
    assert computed(SOURCE) == set(DYNAMIC)


def test_the_tables_name_what_there_is():
    """A library that nobody imports any more, or a module that is gone, does not stay in a
    table.
    """
    packages = {
        path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert set().union(*LAYERS) == packages | {"errors"}
    modules = {module_of(path, SOURCE) for path in SOURCE.rglob("*.py")}
    for library, places in ALLOWED.items():
        users = {
            module_of(path, SOURCE)
            for path in SOURCE.rglob("*.py")
            if any(name.split(".")[0] == library for name in imports(path.read_text()))
        }
        for place in places:
            assert place in modules, f"{library}: there is no {place}"
            assert any(within(user, {place}) for user in users), (
                f"{library}: {place} does not import it"
            )
    assert modules >= WORLDS
    assert set(DYNAMIC) <= modules


def test_what_is_allowed_is_not_refused(copy):
    """The control of the reader of reports: the same plants where they are allowed leave every
    contract kept.
    """
    for folder in folders(copy):
        # a new file there needs a line in a contract: the test below
        if folder in ("studies", "logs"):
            continue
        module = f"{folder}.new_file"
        rank = next(i for i, layer in enumerate(LAYERS) if folder.split(".")[0] in layer)
        below = [
            f"import surefoot.{other}" for layer in LAYERS[rank + 1 :] for other in sorted(layer)
        ]
        seen = [line for line in below if "worlds" not in line]
        libraries = [f"import {library}" for library in ALLOWED if within(module, ALLOWED[library])]
        plant(copy, module, *(below if within(module, WORLDS) else seen), *libraries)
    kept, report = run_contracts(copy)
    assert kept, report
    assert list(strangers(copy)) == []


def forbidden(folder):
    """What a new file of a folder may not import: what the contracts refuse of it, and what the
    tables do.
    """
    name = f"{folder}.new_file"
    top = folder.split(".")[0]
    rank = next(i for i, layer in enumerate(LAYERS) if top in layer)
    libraries = {library for library in ALLOWED if not within(name, ALLOWED[library])}
    above = {f"surefoot.{other}" for layer in LAYERS[: rank + 1] for other in layer if other != top}
    worlds = set()
    if not within(name, WORLDS) and top != "worlds":
        worlds = {"surefoot.worlds.tabular_mdp", "surefoot.worlds.exact"}
    return (libraries & BY_CONTRACT) | above | worlds | {"surefoot"}, libraries | NOWHERE


@pytest.fixture(scope="module")
def in_every_folder(tmp_path_factory):
    """A new file in each, which imports all that it may not: nobody imports the file, so that
    each is by itself.
    """
    copy = copied(tmp_path_factory.mktemp("folders"))
    for folder in folders(SOURCE):
        plant(
            copy,
            f"{folder}.new_file",
            *(f"import {what}" for what in sorted(set.union(*forbidden(folder)))),
        )
    kept, report = run_contracts(copy)
    assert not kept
    return set(refused(report)), set(strangers(copy))


@pytest.mark.parametrize("folder", folders(SOURCE))
def test_a_new_file_may_import_only_what_its_folder_may(in_every_folder, folder):
    """Every library that its folder may not know, the true worlds, the public names, and every
    layer above.
    """
    by_contract, by_table = forbidden(folder)
    found, strange = in_every_folder
    assert {(f"surefoot.{folder}.new_file", what) for what in by_contract} <= found
    assert {(f"{folder}.new_file", library) for library in by_table} <= strange


def test_a_new_file_of_a_package_whose_parts_are_layers_needs_a_line(copy):
    """At the top, in studies and in logs every part is listed: nobody adds one without saying
    where it stands.
    """
    for module in ("new_file", "studies.new_file", "logs.new_file"):
        plant(copy, module, "import os")
    _, report = run_contracts(copy)
    for module in ("new_file", "studies.new_file", "logs.new_file"):
        assert f"- surefoot.{module}\n" in report


TAKES_A_WORLD = "from surefoot.worlds.tabular_mdp import TabularMDP"
ONE_BY_ONE = (
    # What a list of who is forbidden would miss.
    ("logs.methods.vi_lcb", "import numba, highspy", {"numba", "highspy"}),
    ("run.learner", TAKES_A_WORLD, {"surefoot.worlds.tabular_mdp"}),
    ("audit.ledger", TAKES_A_WORLD, {"surefoot.worlds.tabular_mdp"}),
    ("audit.watchdog", TAKES_A_WORLD, {"surefoot.worlds.tabular_mdp"}),
    # Ways around.
    ("agents.stepmix", TAKES_A_WORLD, {"surefoot.worlds.tabular_mdp"}),
    ("run.learner", "from surefoot import TabularMDP", {"surefoot"}),
    (
        "run.learner",
        "def late():\n    import surefoot as sf\n    return sf.TabularMDP",
        {"surefoot"},
    ),
    ("run.learner", "from surefoot.run.setup import TabularMDP", {"surefoot.run.setup"}),
    ("run.saved_learner", "from surefoot.run.setup import TabularMDP", {"surefoot.run.setup"}),
    ("run.streams", "from surefoot.run.setup import TabularMDP", {"surefoot.run.setup"}),
    ("audit.ledger", f"def late():\n    {TAKES_A_WORLD}", {"surefoot.worlds.tabular_mdp"}),
    ("logs.warm_start", "from surefoot.worlds import exact", {"surefoot.worlds.exact"}),
    (
        "bounds.kl",
        "if TYPE_CHECKING:\n    from surefoot.worlds import exact",
        {"surefoot.worlds.exact"},
    ),
    # Layers within a package.
    ("studies.spec.study", "import surefoot.studies.run.trial", {"surefoot.studies.run.trial"}),
    (
        "studies.run.store",
        "import surefoot.studies.analysis.stats",
        {"surefoot.studies.analysis.stats"},
    ),
    (
        "studies.analysis.claims",
        "import surefoot.studies.report.axes",
        {"surefoot.studies.report.axes"},
    ),
    ("logs.reading", "import surefoot.logs.methods.robust", {"surefoot.logs.methods.robust"}),
    ("logs.methods.robust", "import surefoot.logs.baseline_file", {"surefoot.logs.baseline_file"}),
    ("logs.warm_start", "import surefoot.logs.baseline_file", {"surefoot.logs.baseline_file"}),
)


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory):
    """Whether each is refused, by its number. Those that the report could not tell apart have a
    copy each.
    """
    found, left = {}, dict(enumerate(ONE_BY_ONE))
    while left:
        copy, here, seen = copied(tmp_path_factory.mktemp("one")), [], set()
        for i, (name, statement, what) in list(left.items()):
            if not seen & {(name, each) for each in what}:
                seen |= {(name, each) for each in what}
                plant(copy, name, statement)
                here.append(i)
                del left[i]
        kept, report = run_contracts(copy)
        assert not kept
        shown = set(refused(report))
        found |= {
            i: {(f"surefoot.{ONE_BY_ONE[i][0]}", each) for each in ONE_BY_ONE[i][2]} <= shown
            for i in here
        }
    return found


@pytest.mark.parametrize(
    "i", range(len(ONE_BY_ONE)), ids=[f"{name}-{line}" for name, line, _ in ONE_BY_ONE]
)
def test_one_planted_import_is_refused(one_by_one, i):
    assert one_by_one[i]


def test_two_files_of_one_folder_that_import_each_other_are_refused(copy):
    for folder in folders(copy):
        plant(copy, f"{folder}.new_one", f"import surefoot.{folder}.new_other")
        plant(copy, f"{folder}.new_other", f"def late():\n    import surefoot.{folder}.new_one")
    _, report = run_contracts(copy)
    found = set(
        re.findall(r"^No cycles are allowed in surefoot\.([\w.]+)\.$", report, re.MULTILINE)
    )
    assert found == set(folders(copy))


@pytest.mark.parametrize("verifier", VERIFIERS)
def test_the_verifier_imports_the_standard_library_alone(copy, verifier):
    """Each of our packages is refused by its contract; a library, and a new file beside it, by
    the table.
    """
    ours = {f"surefoot.{package}" for layer in LAYERS for package in layer if package != "audit"}
    beside = ("guard_ledger", "history", "ledger", "premises", "records", "watchdog")
    ours |= {f"surefoot.audit.{name}" for name in beside} | {"surefoot"}
    libraries = ALLOWED.keys() | NOWHERE
    plant(copy, "audit.new_file", "import os")
    planted = sorted({*ours, *libraries, "surefoot.audit.new_file"})
    module = plant(copy, verifier, *(f"import {what}" for what in planted))
    _, report = run_contracts(copy)
    assert {(module, what) for what in ours} <= set(refused(report))
    assert "The verifiers share no code with the package" in broken(report)
    found = [library for name, library in strangers(copy) if name == verifier]
    assert set(found) == libraries | {"surefoot"}
    assert found.count("surefoot") == len(ours) + 1


def test_an_import_by_a_computed_name_is_noticed(copy):
    plant(
        copy,
        "agents.new_file",
        "from importlib import import_module",
        "import_module('surefoot.' + 'worlds')",
    )
    plant(copy, "bounds.new_file", "def late():\n    return __import__('numba')")
    assert computed(copy) == {*DYNAMIC, "agents.new_file", "bounds.new_file"}
