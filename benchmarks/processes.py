"""What needs a fresh process: compiling, starting, and the peak of memory."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from table import Row, at_most, broken, plain

STARTS = 7
START_SECONDS = 0.3
COLD_SECONDS = 12
EPISODES = 10_000_000
MEMORY_MB = 150
MINUTE = 60

A_RUN = """
import time
import surefoot as sf
world = sf.random_mdp(5, 5, 3, seed=1)
agent = sf.StepMix.paper(world.problem, sf.boltzmann(sf.solve(world).Q, 10), 2.0, delta=0.1)
started, before = time.perf_counter(), time.process_time()
sf.simulate(world, agent, {episodes}, seed=0, progress=False)
seconds, cpu = time.perf_counter() - started, time.process_time() - before
"""

# VmHWM and not ru_maxrss where there is a choice: on Linux the latter starts at the size of the
# process that called exec, which here is a benchmark with everything loaded.
PEAK = """
import json, resource, sys
from pathlib import Path
status = Path("/proc/self/status")
if status.exists():
    peak = int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
else:
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps({"peak": peak, "seconds": globals().get("seconds"), "cpu": globals().get("cpu")}))
"""


# A dense (H, S, A, S) array of this world would take 375 MB; the stationary one takes 12 MB.
TAXI = """
import time
import surefoot as sf
started = time.perf_counter()
world = sf.from_gymnasium("Taxi-v4", horizon=30)
converted = time.perf_counter()
best = sf.solve(world)
solved = time.perf_counter()
agent = sf.EpsMix.paper(world.problem, sf.uniform(world.H, world.S, world.A), 0.1, pooled=True)
counts = sf.Counts.zeros(world.problem, pooled=True)
agent.plan(counts)  # loads the kernels
before = time.perf_counter()
agent.plan(counts)
planned = time.perf_counter()
seconds = {
    "converting": converted - started,
    "solving": solved - converted,
    "planning": planned - before,
}
"""


def python(code: str) -> dict:
    """Run `code` in a fresh interpreter; its last line is JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(last_line(done.stderr))
    return json.loads(done.stdout.splitlines()[-1])


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


def compile_time() -> Iterator[Row]:
    """The first `simulate` with an empty cache, and then with the cache that it left: CPU time,
    which a busy machine disturbs less than the clock on the wall.
    """
    empty = python(A_RUN.format(episodes=1) + PEAK)
    note = f"solve and boltzmann came before it; on the wall: {empty['seconds']:.3g} s"
    yield at_most("first simulate, compiling", "empty cache", empty["cpu"], "s", COLD_SECONDS, note)
    filled = python(A_RUN.format(episodes=1) + PEAK)
    yield plain(
        "first simulate, loading",
        "filled cache",
        filled["cpu"],
        "s",
        f"on the wall: {filled['seconds']:.3g} s",
    )


def taxi() -> list[Row]:
    """A Gymnasium environment with 500 states: convert, solve, plan with pooled counts."""
    imports = python("import gymnasium, numba, numpy, surefoot\n" + PEAK)["peak"] / 1e6
    done = python(TAXI + PEAK)
    where = "(502, 6, 31), Taxi-v4"
    dense = 31 * 502 * 6 * 502 * 8 / 1e6
    note = f"a dense (H, S, A, S) array alone would take {dense:.0f} MB"
    return [
        at_most(
            "Taxi-v4, memory above imports", where, done["peak"] / 1e6 - imports, "MB", dense, note
        ),
        *(
            plain(f"Taxi-v4, {what}", where, seconds, "s")
            for what, seconds in done["seconds"].items()
        ),
    ]


def start_time() -> Iterator[Row]:
    """Whole processes, the interpreter's own start included."""
    command = str(Path(sys.executable).parent / "surefoot")
    yield start("import surefoot", [sys.executable, "-c", "import surefoot"])
    yield start("surefoot --help", [command, "--help"])


def start(item: str, command: list[str]) -> Row:
    times = []
    for _ in range(STARTS):
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        times.append(time.perf_counter() - started)
        if done.returncode != 0:
            return broken(
                item,
                f"exit {done.returncode}: {last_line(done.stderr)}",
                target=f"<= {START_SECONDS:g}",
            )
    note = f"best; median of {STARTS}: {statistics.median(times):.3f} s"
    return at_most(item, "", min(times), "s", START_SECONDS, note)


def memory() -> list[Row]:
    """Peak memory of a long run above that of an interpreter with its imports."""
    imports = python("import numba, numpy, surefoot\n" + PEAK)["peak"] / 1e6
    run = python(A_RUN.format(episodes=EPISODES) + PEAK)
    where = f"(5, 5, 3), {EPISODES:.0e} episodes"
    peak = run["peak"] / 1e6
    note = f"peak {peak:.0f} MB, interpreter with numpy, numba and surefoot {imports:.0f} MB"
    pace = f"{run['seconds'] / EPISODES * 1e6:.3g} us per episode through simulate, single run"
    return [
        at_most("StepMix, memory above imports", where, peak - imports, "MB", MEMORY_MB, note),
        at_most("StepMix, wall time", where, run["seconds"], "s", MINUTE, pace),
    ]
