"""Count the files and the hops of four walks through the package, traced at run time, and the edges of its imports.

    .venv/bin/python tools/walks.py                         # the table of this tree
    .venv/bin/python tools/walks.py --src ../before/src     # the table of another tree
    .venv/bin/python tools/walks.py --walk study --list     # the edges, grouped by the file that calls
    .venv/bin/python tools/walks.py --imports               # which package imports which, by the import statements

A *file* counts when at least one function of it is called. A *hop* is a distinct pair (caller file, callee file) of two
different files of the package. The caller is the nearest function of the package on the stack: a call that goes through
typer, joblib, matplotlib, a context manager or the generated `__init__` of a dataclass is a hop from whoever made it.
Methods, properties, generators, comprehensions and lambdas count as functions of the file they stand in. What does not
count: module bodies and imports (neither as caller nor as callee), calls within a file, and compiled kernels. Each walk
is walked once before it is traced, so that nothing is imported or compiled while the profiler listens. Everything runs
in one process, with one job.

The four walks use public entry points alone, so that they are the same before and after files move:

- simulate: `random_mdp`, `solve`, `boltzmann`, `StepMix.paper` and `simulate`.
- log: `surefoot baseline LOG --floor ... --reward-range ... --stationary`: check, count, learn, certify, write.
- study: `surefoot run FILE.toml --out DIR --jobs 1`: read, run a tiny study, judge, print and write the HTML report.
- learn: `from_gymnasium`, `solve`, `StepMix` and live episodes of FrozenLake with `learn`.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

PACKAGE = "surefoot"
STUDY = """
name = "tiny"
title = "A tiny study"
question = "Does it run?"
trials = 2
episodes = 300
replan = { growth = 1.2 }

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

Edges = dict[tuple[str, str], set[tuple[str, str]]]


class Walk(NamedTuple):
    """What one walk went through: the files, and for each pair of files the calls (caller, callee) by name."""

    files: set[str]
    edges: Edges


class Graph(NamedTuple):
    """The import statements of a tree: modules, edges between modules, and the same between packages."""

    modules: set[str]
    edges: set[tuple[str, str]]
    packages: dict[tuple[str, str], int]  # (importer, imported): how many edges between modules it stands for


def command(*arguments: object, fine: tuple[int, ...] = (0,)) -> None:
    """Run the command in this process, as `python -m surefoot` does; what it prints is shown only if it fails."""
    before, printed = sys.argv, io.StringIO()
    sys.argv = [PACKAGE, *map(str, arguments)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            sys.modules.pop(f"{PACKAGE}.__main__", None)
            import_module(f"{PACKAGE}.__main__")
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    if code not in fine:
        raise RuntimeError(f"surefoot {' '.join(map(str, arguments))} ended with {code!r}:\n{printed.getvalue()}")


def say(text: str) -> None:
    """A line on standard output."""
    sys.stdout.write(f"{text}\n")


def simulate(_place: Path) -> None:
    """An agent with the paper's bounds meets a known world."""
    import surefoot as sf

    world = sf.random_mdp(S=5, A=5, H=3, seed=1)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=10.0)
    agent = sf.StepMix.paper(world.problem, baseline, floor=0.5)
    run = sf.simulate(world, agent, episodes=500, seed=0, progress=False)
    assert run.violations == 0


def log(place: Path) -> None:
    """A log becomes a baseline on file; exit code 3 says that the floor is not certified, which is no failure here."""
    path = place.parent / "log.parquet"
    ends = ("--floor", "92.9", "--reward-range", "-1", "10", "--stationary", "--out", place / "baseline.npz")
    command("baseline", path, *ends, fine=(0, 3))


def study(place: Path) -> None:
    """A study's file becomes a page."""
    path = place / "tiny.toml"
    path.write_text(STUDY)
    command("run", path, "--out", place / "out", "--jobs", "1")
    assert (place / "out" / "report.html").exists()


def learn(_place: Path) -> None:
    """Live episodes in a Gymnasium environment that shows its model."""
    import surefoot as sf

    world = sf.from_gymnasium("FrozenLake-v1", horizon=20)
    assert isinstance(world, sf.TabularMDP)
    baseline = 0.8 * sf.solve(world).policy + 0.2 / world.A
    agent = sf.StepMix(world.problem, baseline, floor=0.01, pooled=True)
    run = sf.learn("FrozenLake-v1", agent, episodes=5, seed=0, progress=False)
    assert str(run)


WALKS: dict[str, Callable[[Path], None]] = {"simulate": simulate, "log": log, "study": study, "learn": learn}
TITLES = {
    "simulate": "simulate",
    "log": "a log row to a baseline",
    "study": "TOML to HTML",
    "learn": "learn, live",
}


def compiled_code() -> set[CodeType]:
    """The code of functions that numba has compiled: their Python text is never run."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == PACKAGE]
    values = [value for module in modules for value in vars(module).values()]
    return {value.py_func.__code__ for value in values if hasattr(value, "py_func")}


@contextlib.contextmanager
def listening(root: Path, walk: Walk, ignored: set[CodeType]) -> Iterator[None]:
    """While this is open, every call of a function below `root` is entered into `walk`."""
    start = f"{root}{os.sep}"

    def ours(frame: FrameType) -> bool:
        code = frame.f_code
        named = code.co_filename.startswith(start) and code.co_name != "<module>"
        return named and code not in ignored and frame.f_back is not None  # numba shows a frame without a caller

    def hear(frame: FrameType, event: str, _value: Any) -> None:
        if event != "call" or not ours(frame):
            return
        callee = frame.f_code.co_filename[len(start) :]
        walk.files.add(callee)
        above = frame.f_back
        while above is not None and not ours(above):
            above = above.f_back
        if above is None:
            return
        caller = above.f_code.co_filename[len(start) :]
        if caller != callee:
            walk.edges.setdefault((caller, callee), set()).add((above.f_code.co_qualname, frame.f_code.co_qualname))

    threading.setprofile(hear)
    sys.setprofile(hear)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def trace(root: Path, names: list[str]) -> dict[str, Walk]:
    """Walk each of these twice, and listen to the second time."""
    found = {}
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = Path(temporary)
        if "log" in names:
            command("logs", "example", "offers", "--out", top / "log.parquet", "--episodes", "500")
        for name in names:
            for time in ("warm", "traced"):
                (top / f"{name}-{time}").mkdir()
            WALKS[name](top / f"{name}-warm")
            walk = Walk(set(), {})
            with listening(root, walk, compiled_code()):
                WALKS[name](top / f"{name}-traced")
            found[name] = walk
    return found


def import_graph(root: Path) -> Graph:
    """Who imports whom, by every import statement: at the top, within functions and for type checkers alike.

    A package here is the first name below the top package: a folder, or a file that stands on its own. The top
    `__init__.py` also loads names by a table when they are first used; those it repeats for type checkers.
    """
    paths = {path: _module(root, path) for path in sorted(root.rglob("*.py"))}
    modules = set(paths.values())
    edges: set[tuple[str, str]] = set()
    for path, module in paths.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            edges |= {(module, other) for other in _imported(node, module, path, modules) if other != module}
    packages: dict[tuple[str, str], int] = defaultdict(int)
    for one, other in edges:
        pair = (_package(one), _package(other))
        if pair[0] != pair[1]:
            packages[pair] += 1
    return Graph(modules, edges, dict(packages))


def _module(root: Path, path: Path) -> str:
    parts = (PACKAGE, *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package(module: str) -> str:
    """The first name below the top package; the top package itself is `surefoot`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else PACKAGE


def _imported(node: ast.AST, module: str, path: Path, modules: set[str]) -> Iterator[str]:
    """The modules of this tree that one statement imports; other names belong to where they come from."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    elif isinstance(node, ast.ImportFrom):
        home = node.module or ""
        if node.level:
            up = node.level - (path.name == "__init__.py")
            base = module.split(".")[: len(module.split(".")) - up]
            home = ".".join([*base, *([home] if home else [])])
        for alias in node.names:
            inner = f"{home}.{alias.name}"
            if inner in modules:
                yield inner
            elif home in modules:
                yield home


def print_edges(walk: Walk) -> None:
    """The edges by caller file, each with the functions that are called through it."""
    for caller in sorted({one for one, _ in walk.edges}):
        say(f"  {caller}")
        for callee in sorted(other for one, other in walk.edges if one == caller):
            names = sorted({called for _, called in walk.edges[caller, callee]})
            say(f"    -> {callee}: {', '.join(names)}")


def print_imports(graph: Graph) -> None:
    """The edges between packages, with how many edges between modules each stands for."""
    say(
        f"\nimports: {len(graph.modules)} modules, {len(graph.edges)} edges between modules, "
        f"{len({_package(module) for module in graph.modules})} packages, {len(graph.packages)} edges between packages"
    )
    for one in sorted({one for one, _ in graph.packages}):
        names = (f"{other} ({n})" if n > 1 else other for (a, other), n in sorted(graph.packages.items()) if a == one)
        say(f"  {one} -> {', '.join(names)}")


def as_json(found: dict[str, Walk], graph: Graph | None, listed: bool) -> str:
    """What would be printed, as JSON."""
    walks: dict[str, Any] = {}
    for name, walk in found.items():
        walks[name] = {"files": len(walk.files), "hops": len(walk.edges)}
        if listed:
            walks[name]["edges"] = [
                {"caller": one, "callee": other, "calls": sorted(calls)}
                for (one, other), calls in sorted(walk.edges.items())
            ]
    table: dict[str, Any] = {"walks": walks}
    if graph is not None:
        table["imports"] = {
            "modules": len(graph.modules),
            "module_edges": len(graph.edges),
            "package_edges": len(graph.packages),
            "edges": [[one, other, n] for (one, other), n in sorted(graph.packages.items())],
        }
    return json.dumps(table, indent=2)


def main() -> None:
    """Parse, trace, print."""
    parser = argparse.ArgumentParser(description="Files and hops of four walks through the package.")
    parser.add_argument(
        "--walk", action="append", choices=list(WALKS), help="only this walk; may be given several times"
    )
    parser.add_argument("--list", action="store_true", help="print the edges, grouped by the file that calls")
    parser.add_argument("--src", type=Path, help="another tree: the folder that holds the package")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.add_argument("--imports", action="store_true", help="print the import graph instead; with --walk, as well")
    given = parser.parse_args()
    sys.dont_write_bytecode = True  # another tree is left as it was
    if given.src is not None:
        sys.path.insert(0, str(given.src.resolve()))
    import surefoot as sf

    root = Path(str(sf.__file__)).parent
    if given.src is not None and root.parent.resolve() != given.src.resolve():
        raise SystemExit(f"There is no package {PACKAGE} in {given.src}: {root} was found instead.")
    graph = import_graph(root) if given.imports else None
    wanted = given.walk or ([] if given.imports else list(WALKS))
    found = trace(root, wanted)
    if given.json:
        say(as_json(found, graph, given.list))
        return
    say(f"{root}")
    if found:
        say(f"{'walk':10s} {'':25s} {'files':>5s} {'hops':>5s}")
    for name, walk in found.items():
        say(f"{name:10s} {TITLES[name]:25s} {len(walk.files):5d} {len(walk.edges):5d}")
    for name, walk in found.items() if given.list else ():
        say(f"\n{name}: {TITLES[name]}, {len(walk.files)} files, {len(walk.edges)} hops")
        print_edges(walk)
    if graph is not None:
        print_imports(graph)


if __name__ == "__main__":
    main()
