"""make faults: plant each fault of planted.toml in a scratch copy, run the tests that should
notice, say who did.

The named tests come first and stop at the first failure; where none of them fails, the whole quick
suite has its turn. Exit code 1 if a fault was not caught, or not by its named tests.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 600  # seconds for the named tests of one fault: a hang is no catch


class Fault(NamedTuple):
    """One thing done wrong."""

    name: str
    file: str  # under src/surefoot
    old: str
    new: str
    tests: list[str]
    jit: bool = False


class Outcome(NamedTuple):
    """What became of it."""

    fault: Fault
    by: str  # the test that failed; empty: none
    named: bool  # was it one of those that were named?
    seconds: float


def read_faults(path: Path = ROOT / "faults" / "planted.toml") -> list[Fault]:
    """The kept list."""
    return [Fault(**fault) for fault in tomllib.loads(path.read_text())["fault"]]


def planted(fault: Fault, root: Path = ROOT) -> str:
    """The file with the fault in it. What is to be replaced must be there, once."""
    source = (root / "src" / "surefoot" / fault.file).read_text()
    old, new = fault.old.removeprefix("\n"), fault.new.removeprefix("\n")
    if source.count(old) != 1 or old == new:
        raise SystemExit(
            f"{fault.name}: {fault.file} has {source.count(old)} times\n{old}\nexpected once. Mend "
            "the list."
        )
    return source.replace(old, new)


def scratch(folder: Path, fault: Fault | None) -> Path:
    """A copy of the project, as git knows it or would, with the fault in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    if fault is not None:
        (folder / "src" / "surefoot" / fault.file).write_text(planted(fault))
    return folder


def first_failure(folder: Path, tests: list[str], jit: bool, patience: float) -> str:
    """The first test that fails in this copy; empty: none does."""
    settings = {
        "PYTHONPATH": str(folder / "src"),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "NUMBA_DISABLE_JIT": "0" if jit else "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-m",
        "not full",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SystemExit(
            f"After {patience:.0f} s there is no answer from {' '.join(tests)}."
        ) from None
    if done.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if found is None or done.returncode != 1:
        raise SystemExit(
            f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-2000:]}"
        )
    return found.group(1)


def look(fault: Fault) -> Outcome:
    """Plant one fault and see who notices."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="surefoot-fault-") as folder:
        copy = scratch(Path(folder), fault)
        by = first_failure(copy, fault.tests, fault.jit, PATIENCE)
        named = bool(by)
        if not by:
            by = first_failure(copy, ["tests"], True, 3 * PATIENCE)
    return Outcome(fault, by, named, time.perf_counter() - started)


def control(faults: list[Fault]) -> None:
    """The named tests pass where nothing was planted: a test that always fails catches nothing."""
    for jit in (False, True):
        tests = sorted({test for fault in faults if fault.jit == jit for test in fault.tests})
        with tempfile.TemporaryDirectory(prefix="surefoot-fault-") as folder:
            by = (
                first_failure(scratch(Path(folder), None), tests, jit, 3 * PATIENCE)
                if tests
                else ""
            )
        if by:
            raise SystemExit(f"{by} fails although nothing was planted.")


def main() -> int:
    """All of them, or those whose name holds a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only faults whose name holds one of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--no-control", action="store_true", help="do not run the named tests without a fault first"
    )
    asked = parser.parse_args()
    faults = [
        fault
        for fault in read_faults()
        if not asked.words or any(word in fault.name for word in asked.words)
    ]
    started = time.perf_counter()
    with ThreadPoolExecutor(asked.jobs) as pool:
        clean = None if asked.no_control else pool.submit(control, faults)
        outcomes = []
        for outcome in pool.map(look, faults):
            outcomes.append(outcome)
            verdict = (
                "caught    "
                if outcome.named
                else "CAUGHT, BUT NOT BY ITS TESTS"
                if outcome.by
                else "NOT CAUGHT"
            )
            print(
                f"{verdict} {outcome.fault.name}  [{outcome.by or '-'}, {outcome.seconds:.0f} s]",
                flush=True,
            )
        if clean is not None:
            clean.result()
    caught = sum(outcome.named for outcome in outcomes)
    minutes = (time.perf_counter() - started) / 60
    print(
        f"{caught} of {len(outcomes)} faults caught by their named tests, in {minutes:.1f} minutes."
    )
    return 0 if caught == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
