"""Mutation testing: change one thing in one file, run that file's tests, and see whether any of them notices.

    python faults/mutants/run.py                          # all modules, 2 at a time; goes on where it was stopped
    python faults/mutants/run.py numerics/kernels/kl.py   # some modules
    python faults/mutants/run.py --restart --workers 1    # from the beginning

modules.toml says which files are changed and which tests are theirs, equivalents.toml which changes no test can notice,
and why; operators.py, which changes are made. Kernels run as plain Python (NUMBA_DISABLE_JIT=1): a mutant is then a
changed file and nothing else. Each one runs in a child of a process that has imported everything but surefoot; the
child reads the changed file in place of the one on disk, which is never touched.

A mutant is killed by the first test that fails, or by using three times the processor time of the whole list and ten
seconds ("timeout": a loop that does not end). Ends with 1 if a mutant survives that is not listed, if one that is
listed is killed, or if one that is listed does not exist.
"""

import os

os.environ |= {
    "NUMBA_DISABLE_JIT": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}  # before numpy is imported

import argparse
import gc
import hashlib
import importlib.abc
import importlib.machinery
import json
import math
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import flint  # noqa: F401  (imported here so that no child has to)
import hypothesis.extra.numpy
import hypothesis.strategies  # noqa: F401
import numba.core.caching
import numba.extending  # noqa: F401
import numpy as np  # noqa: F401
import pytest
import scipy.optimize  # noqa: F401
from operators import Mutant, mutants_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCE = ROOT / "src" / "surefoot"
KILLED, TIMEOUT, SURVIVED = "killed", "timeout", "survived"
PYTEST = ("-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:unraisableexception")
PYTEST += ("-p", "no:threadexception", "-m", "not full", "-W", "ignore::pytest.PytestAssertRewriteWarning")


class Module(NamedTuple):
    """A file that is changed, and the tests that must notice."""

    path: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it is imported."""
        return "surefoot." + self.path.removesuffix(".py").replace("/", ".")

    @property
    def state(self) -> str:
        """A hash of the file, its tests and the operators. Where another file has changed: --restart."""
        files = [SOURCE / self.path, HERE / "operators.py"]
        tests = {ROOT / test.split("::")[0] for test in self.tests}
        files += sorted(tests | {folder / "conftest.py" for test in tests for folder in test.parents})
        parts = [file.read_bytes() for file in files if file.is_file()]
        return hashlib.sha256(b"\0".join([*parts, " ".join(self.tests).encode()])).hexdigest()[:16]


class Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Gives one module another source than that on disk."""

    def __init__(self, module: Module, source: str) -> None:
        """`source` is the whole file."""
        self.module, self.source = module, source

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Of this module alone."""
        if name != self.module.name:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=str(SOURCE / self.module.path))

    def get_source(self, name: str) -> str:
        """The changed file."""
        return self.source

    def exec_module(self, module: ModuleType) -> None:
        """As from the file itself."""
        module.__file__ = str(SOURCE / self.module.path)
        super().exec_module(module)


def start(module: Module, source: str | None, seconds: int) -> int:
    """Run the module's tests in a child; the file on disk, or this source in its place. Its process id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    if source is not None:
        sys.meta_path.insert(0, Changed(module, source))
    code = 0
    try:
        for test in module.tests:  # one after the other: what the first one kills need not read the rest
            code = code or int(pytest.main([*PYTEST, str(ROOT / test)]))
    except BaseException:  # a mutant may raise anything, anywhere
        code = 1
    os._exit(min(code, 100))


def outcome(status: int) -> str:
    """Of a child's exit status."""
    if os.WIFSIGNALED(status):
        return TIMEOUT if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else KILLED
    return SURVIVED if os.waitstatus_to_exitcode(status) == 0 else KILLED


def baseline(module: Module) -> float:
    """Processor seconds of the unchanged module's tests, which must pass."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _, status = os.waitpid(start(module, None, 600), 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if outcome(status) != SURVIVED:
        raise SystemExit(
            f"The tests of {module.path} fail without any change. "
            f"See: NUMBA_DISABLE_JIT=1 pytest -m 'not full' {' '.join(module.tests)}"
        )
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(module: Module, mutants: list[Mutant], workers: int, seconds: int, results: "Results") -> None:
    """All these mutants, so many at a time. A child that waits for something is ended, too."""
    waiting, running = list(reversed(mutants)), {}
    while waiting or running:
        while waiting and len(running) < workers:
            mutant = waiting.pop()
            running[start(module, mutant.source, seconds)] = mutant, time.monotonic() + 20 * seconds
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            mutant, _ = running.pop(child)
            results.add(module, mutant, outcome(status))
            continue
        for late, (_, end) in running.items():
            if time.monotonic() > end:
                os.killpg(late, signal.SIGKILL)
        time.sleep(0.005)


class Results:
    """What became of each mutant, on disk: a run that was stopped goes on."""

    def __init__(self, path: Path, restart: bool, survivors: bool) -> None:
        """`survivors`: what was killed before counts, whatever has changed since."""
        self.path, self.survivors = path, survivors
        self.states: dict[str, str] = {}
        self.found: dict[str, dict[str, str]] = {}
        if path.exists() and not restart:
            saved = json.loads(path.read_text())
            self.states, self.found = saved["states"], saved["found"]
        self.saved = time.monotonic()

    def open(self, module: Module) -> dict[str, str]:
        """What is known of a module's mutants; nothing, if anything has changed."""
        known = self.found.get(module.path, {})
        if self.survivors:
            known = {key: result for key, result in known.items() if result != SURVIVED}
        elif self.states.get(module.path) != module.state:
            known = {}
        self.states[module.path], self.found[module.path] = "" if self.survivors else module.state, known
        return known

    def add(self, module: Module, mutant: Mutant, result: str) -> None:
        """One more."""
        self.found[module.path][mutant.key] = result
        if result == SURVIVED:
            say(f"  survived  {mutant.path}:{mutant.number}  {mutant.line}   ->   {mutant.becomes}")
        if time.monotonic() > self.saved + 5.0:
            self.save()

    def save(self) -> None:
        """Whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"states": self.states, "found": self.found}, indent=1))
        part.replace(self.path)
        self.saved = time.monotonic()


def read_modules(only: list[str]) -> list[Module]:
    """The list, or these of it."""
    listed = tomllib.loads((HERE / "modules.toml").read_text())["module"]
    modules = [Module(entry["path"], tuple(entry["tests"])) for entry in listed]
    unknown = set(only) - {module.path for module in modules}
    if unknown:
        raise SystemExit(
            f"{', '.join(sorted(unknown))}: not in modules.toml. Expected paths such as numerics/kernels/kl.py."
        )
    return [module for module in modules if not only or module.path in only]


def read_equivalents() -> dict[str, str]:
    """Keys and reasons. An entry may name several changes of a line: they share the reason."""
    keys = {}
    for entry in tomllib.loads((HERE / "equivalents.toml").read_text()).get("equivalent", []):
        for becomes in entry["becomes"] if isinstance(entry["becomes"], list) else [entry["becomes"]]:
            for nth in entry.get("nth", [1]):
                parts = (entry["path"], entry["function"], entry["line"], becomes, str(nth))
                keys[" | ".join(parts)] = entry["why"]
    return keys


def say(text: str) -> None:
    """To the terminal, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def judge(module: Module, mutants: list[Mutant], found: dict[str, str], equivalents: dict[str, str]) -> tuple[str, int]:
    """The module's row of the table, and how many things are wrong."""
    wrong = 0
    sums = Counter[str]()
    for mutant in mutants:
        result = found[mutant.key]
        listed = mutant.key in equivalents
        sums["equivalent" if listed and result == SURVIVED else result] += 1
        if listed and result != SURVIVED:
            wrong += 1
            say(f"WRONG: listed as equivalent, but a test notices: {mutant.key}")
        if not listed and result == SURVIVED:
            wrong += 1
            say(f"SURVIVED: {mutant.path}:{mutant.number} in {mutant.function}: {mutant.line}   ->   {mutant.becomes}")
    there = {mutant.key for mutant in mutants}
    for key in equivalents:
        if key.startswith(module.path + " | ") and key not in there:
            wrong += 1
            say(f"WRONG: listed as equivalent, but there is no such change: {key}")
    columns = (len(mutants), sums[KILLED], sums[TIMEOUT], sums["equivalent"], sums[SURVIVED])
    return f"{module.path:26}" + "".join(f"{x:11}" for x in columns), wrong


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Change one thing at a time and see whether a test notices.")
    parser.add_argument("modules", nargs="*", help="paths below src/surefoot; all of modules.toml if none is given")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--restart", "--anew", action="store_true", help="forget earlier results")
    parser.add_argument("--survivors", action="store_true", help="only what was not killed before")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="where results are kept")
    given = parser.parse_args()
    os.chdir(ROOT)
    gc.freeze()  # what is here stays: no child need look through it
    results = Results(given.out / "results.json", given.restart, given.survivors)
    equivalents = read_equivalents()
    rows, wrong, began = [], 0, time.monotonic()
    for module in read_modules(given.modules):
        mutants = mutants_of(module.path, (SOURCE / module.path).read_text())
        known = results.open(module)
        left = [mutant for mutant in mutants if mutant.key not in known]
        since = time.monotonic()
        if left:
            cost = baseline(module)
            say(f"{module.path}: {len(left)} of {len(mutants)} mutants, tests of {cost:.1f} s")
            run(module, left, given.workers, math.ceil(3 * cost + 10), results)
            results.save()
        row, bad = judge(module, mutants, results.found[module.path], equivalents)
        rows.append(f"{row}{time.monotonic() - since:10.0f}")
        wrong += bad
    names = ("mutants", "killed", "timeout", "equivalent", "SURVIVED")
    say(f"\n{'module':26}" + "".join(f"{name:>11}" for name in names) + f"{'seconds':>10}")
    say("\n".join(rows))
    verdict = f"{wrong} wrong." if wrong else "Nothing survived that is not listed."
    say(f"{time.monotonic() - began:.0f} s. {verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
