"""Instructions of a plan against S, counted by callgrind: without the noise and the caches that
seconds depend on.

Valgrind is needed (Debian's package of that name), and a quarter of an hour: it is measured by
--only instructions.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
from scaling import MOST_SWEEPS, A, H, agents_of, exponent, sweep, world_of
from table import Row, at_most, broken, plain

SIZES = (500, 1_000, 5_000, 10_000, 50_000)
MOST_EXPONENT = 1.005  # linear, but for the third decimal
# valgrind does not know the newest instructions
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def instructions_of_large_worlds() -> Iterator[Row]:
    if shutil.which("valgrind") is None:
        yield broken("instructions", "valgrind is not installed")
        return
    nothing = counted(SIZES[0], "nothing")  # what counting itself takes
    found = []
    for S in SIZES:
        one = {"S": S, **{name: counted(S, name) - nothing for name in ("sweep", *MOST_SWEEPS)}}
        found.append(one)
        where = f"({S:,}, {A}, {H}), three successors"
        for name, most in MOST_SWEEPS.items():
            note = f"{one[name]:.4g}; a sweep {one['sweep']:.4g}"
            item = f"{name}, KL: instructions of a plan, in sparse sweeps"
            yield at_most(item, where, one[name] / one["sweep"], "sweeps", most, note)
    sizes = f"S = {SIZES[0]:,} .. {SIZES[-1]:,}"
    yield plain("sweep: exponent of instructions in S", sizes, exponent(found, "sweep"), "")
    for name in MOST_SWEEPS:
        yield at_most(
            f"{name}: exponent of instructions in S",
            sizes,
            exponent(found, name),
            "",
            MOST_EXPONENT,
        )


def counted(S: int, name: str) -> int:
    """Instructions of one plan, one sweep, or nothing. What is compiled outside valgrind first
    is in the cache then.
    """
    plan = [sys.executable, __file__, str(S), name]
    tool = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        f"--callgrind-out-file={os.devnull}",
    ]
    for command in (plan, [*tool, *plan, "counted"]):
        done = subprocess.run(
            command, env=os.environ | GENERIC, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"callgrind counted nothing: {done.stderr[-200:]!r}")
    return int(found[1])


def work(S: int, name: str, is_counted: bool) -> None:
    """Plan once; where it is counted, twice, and callgrind counts the second plan."""
    world, P, counts = world_of(S)
    r = np.asarray(world.r_rescaled[0]).reshape(-1)
    agent = agents_of(world).get(name)

    def once() -> None:
        if agent is not None:
            agent.decide(agent.evidence(counts))
        elif name == "sweep":
            sweep(P, r, S)

    once()
    if is_counted:
        counting("on")
        once()
        counting("off")


def counting(switch: str) -> None:
    """Tell callgrind, under which this process runs, to begin or to end."""
    subprocess.run(
        ["callgrind_control", "-i", switch, str(os.getpid())], check=True, capture_output=True
    )


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2], "counted" in sys.argv[3:])
