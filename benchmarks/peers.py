"""rlberry 0.6.0's UCBVI, the nearest relative, in a venv of its own and on the same core, taking
turns with ours.

It plans from full backward passes in compiled code and plays in Python. It neither keeps a floor
nor evaluates what it plays; our time includes the exact evaluation.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from episodes import side_by_side
from processes import last_line
from settings import LARGE, MIDDLE, PHASES, SIZES, SMALL, label, setting
from table import Row, at_least

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv-peers"
STAMP = VENV / ".ready"
# rlberry 0.6.0 names no upper bounds. It needs a gymnasium that still has logger.set_level (< 1.0)
# and a numpy < 2, which has wheels up to Python 3.12. Without numba its backward induction would
# run in Python.
REQUIREMENTS = ("rlberry==0.6.0", "numpy<2", "gymnasium<1", "numba")

TURNS = 6
THEIR_EPISODES = {SMALL: 3_000, MIDDLE: 1_000, LARGE: 300}
TARGETS = {
    "BPIUCBVI": {SMALL: 50, MIDDLE: 5, LARGE: 1},
    "StepMix": {SMALL: 40, MIDDLE: 3},
}


def against_rlberry() -> Iterator[Row]:
    install()
    with rlberry() as ask:
        for size in SIZES:
            theirs, ours = in_turns(size, ask)
            for name, micros in ours.items():
                note = (
                    f"theirs {theirs:.4g} us per episode, ours {micros:.3g} us (worst window "
                    f"of "
                    "the worst phase)"
                )
                yield at_least(
                    f"rlberry's UCBVI / {name}",
                    label(size),
                    theirs / micros,
                    "x",
                    TARGETS[name][size],
                    note,
                )


def in_turns(size: tuple[int, int, int], ask) -> tuple[float, dict[str, float]]:
    """Their best time, and our worst window of the worst phase: every doubt counts against us."""
    where = setting(size)
    names = tuple(name for name, targets in TARGETS.items() if size in targets)
    theirs: list[float] = []
    windows: dict[tuple[str, str], list] = {}
    for _ in range(TURNS):
        theirs.append(ask(*size, THEIR_EPISODES[size]))
        for phase in PHASES[size]:
            for name, measured in side_by_side(where, names, phase, 0.0, (1, 1)).items():
                windows.setdefault((name, phase.name), []).append(measured.micros)
    ours = dict.fromkeys(names, 0.0)
    for (name, _), repeats in windows.items():
        undisturbed = [min(times) for times in zip(*repeats, strict=True)]
        ours[name] = max(ours[name], *undisturbed)
    return min(theirs), ours


def install() -> None:
    """Once; again when the requirements change. PEERS_PYTHON names another interpreter than the
    one running.
    """
    wanted = "\n".join(REQUIREMENTS)
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    print("peers: installing rlberry into .venv-peers ...", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    run(os.environ.get("PEERS_PYTHON", sys.executable), "-m", "venv", str(VENV))
    # A numpy without a wheel would be built from source for minutes, and then fail: refuse it at
    # once.
    options = (
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        "numpy,numba,scipy,pandas",
    )
    run(str(VENV / "bin" / "python"), "-m", "pip", "install", *options, *REQUIREMENTS)
    STAMP.write_text(wanted)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        hint = "numpy < 2 needs Python 3.12 or older; PEERS_PYTHON names one."
        raise RuntimeError(f"rlberry's venv: {last_line(done.stderr)} ({hint})")


@contextmanager
def rlberry():
    """A process that waits, without using the core, until it is asked for its time."""
    script = str(Path(__file__).with_name("rlberry_ucbvi.py"))
    with subprocess.Popen(
        [str(VENV / "bin" / "python"), script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:

        def ask(S: int, A: int, H: int, episodes: int) -> float:
            process.stdin.write(json.dumps([S, A, H, episodes]) + "\n")
            answer = process.stdout.readline()
            if not answer:
                raise RuntimeError("rlberry's process ended; its message is above.")
            return json.loads(answer)

        yield ask
        process.stdin.close()
