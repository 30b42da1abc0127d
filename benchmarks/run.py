"""Speed and memory of surefoot, measured side by side in one run: `make bench`, or `make bench
PEERS=1`.

Prints each row when it is measured, with its target, writes out/bench.json, and always exits 0: on
a busy machine a missed target is news, not a failure. The numbers that carry over to other machines
are the ratios. At the end it names the rows that nothing was compared with, and those that are
slower than in benchmarks/kept.json, which --keep writes.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

ITEMS = (
    *(
        "compile",
        "start",
        "memory",
        "taxi",
        "planning",
        "kl",
        "runs",
        "learners",
        "scaling",
        "instructions",
    ),
    *("cores", "linear-programs", "episodes", "logs", "peers"),
)
LONG = ("instructions",)  # a quarter of an hour: only where it is asked for
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peers", action="store_true", help="also rlberry, in its own venv .venv-peers"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="ITEM",
        choices=ITEMS,
        help=f"{', '.join(ITEMS)}; compile is always measured, because it fills the cache",
    )
    parser.add_argument(
        "--keep", action="store_true", help="write the ratios of this run into benchmarks/kept.json"
    )
    options = parser.parse_args()
    one_core()
    with tempfile.TemporaryDirectory() as cache:
        # An empty cache of our own: it shows what compiling costs, and leaves the user's alone.
        os.environ["NUMBA_CACHE_DIR"] = cache
        measure(options.peers, options.only, options.keep)


def one_core() -> None:
    """Pin this process, and all it starts, to one CPU and one thread. Must come before numpy is
    imported.
    """
    for name in ONE_THREAD:
        os.environ[name] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measure(with_peers: bool, only: list[str] | None, keep: bool) -> None:
    """Every item in turn; each row is printed when it is measured."""
    import kept
    import table

    sources, started = table.sources(), time.perf_counter()
    rows: list[table.Row] = []
    yardstick = kept.yardstick()
    by_name = items()
    for name in chosen(with_peers, only):
        print(f"{name} ...", flush=True)
        yardstick = min(yardstick, kept.yardstick())  # the least disturbed one of the run
        began = time.perf_counter()
        for row in rows_of(name, by_name[name]):
            rows.append(row)
            print(f"  {table.line(row)}", flush=True)
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)
    table.write(rows, sources)
    print(f"{len(rows)} rows in {(time.perf_counter() - started) / 60:.1f} minutes")
    kept.compare(rows, yardstick, whole=not only, keep=keep)


def chosen(with_peers: bool, only: list[str] | None) -> list[str]:
    """The items to measure, in their order. Compiling comes first whatever is asked for: it
    fills the cache.
    """
    if only:
        return [name for name in ITEMS if name in only or name == "compile"]
    return [name for name in ITEMS if name not in LONG and (with_peers or name != "peers")]


def rows_of(name: str, item: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """The rows of an item, one by one. One that breaks is reported, after the rows it had, and
    does not stop others.
    """
    import table

    try:
        yield from item()
    except Exception as error:
        yield table.broken(name, f"{type(error).__name__}: {error}")


def items() -> dict[str, Callable[[], Iterable[Any]]]:
    """Name -> function that yields rows."""
    import episodes
    import instructions
    import linear_programs
    import live
    import peers
    import planning
    import processes
    import scaling

    import logs

    return {
        "compile": processes.compile_time,
        "start": processes.start_time,
        "memory": processes.memory,
        "taxi": processes.taxi,
        "planning": planning.cost_of_candidates,
        "kl": planning.cost_of_kl,
        "runs": live.time_of_runs,
        "learners": live.time_of_learners,
        "scaling": scaling.time_of_large_worlds,
        "instructions": instructions.instructions_of_large_worlds,
        "cores": scaling.gain_of_all_cores,
        "linear-programs": linear_programs.time_of_linear_programs,
        "episodes": episodes.time_of_episodes,
        "logs": logs.time_of_logs,
        "peers": peers.against_rlberry,
    }


if __name__ == "__main__":
    main()
