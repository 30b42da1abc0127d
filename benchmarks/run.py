"""Speed and memory of surefoot, measured side by side in one run: `make bench`, or `make bench PEERS=1`.

Prints a table with the target of every item, writes out/bench.json, and always exits 0: on a busy machine a missed
target is news, not a failure. The numbers that carry over to other machines are the ratios. At the end it names the
rows that are slower than in benchmarks/kept.json, which --keep writes.
"""

import argparse
import os
import tempfile

LONG = ("instructions",)  # a quarter of an hour: only where it is asked for
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="also rlberry, in its own venv .venv-peers")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="ITEM",
        help="compile, start, memory, taxi, planning, kl, replanning, live, scaling, instructions, "
        "cores, linear-programs, episodes, logs, peers",
    )
    parser.add_argument("--keep", action="store_true", help="write the ratios of this run into benchmarks/kept.json")
    options = parser.parse_args()
    one_core()
    with tempfile.TemporaryDirectory() as cache:
        # An empty cache of our own: it shows what compiling costs, and leaves the user's alone.
        os.environ["NUMBA_CACHE_DIR"] = cache
        measure(options.peers, options.only, options.keep)


def one_core() -> None:
    """Pin this process, and all it starts, to one CPU and one thread. Must come before numpy is imported."""
    for name in ONE_THREAD:
        os.environ[name] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measure(with_peers: bool, only: list[str] | None, keep: bool) -> None:
    """Every item in turn. One that breaks is reported and does not stop the others."""
    import kept
    import table

    sources = table.sources()
    rows = []
    yardstick = kept.yardstick()
    for name, item in items(with_peers).items():
        # Compiling comes first whatever is asked for: it fills the cache.
        if (only and name not in only and name != "compile") or (not only and name in LONG):
            continue
        print(f"{name} ...", flush=True)
        yardstick = min(yardstick, kept.yardstick())  # the least disturbed one of the run
        try:
            rows += item()
        except Exception as error:
            rows.append(table.broken(name, f"{type(error).__name__}: {error}"))
    table.show(rows)
    table.write(rows, sources)
    kept.compare(rows, yardstick, keep)


def items(with_peers: bool) -> dict:
    """Name -> function that returns rows, in the order they are measured."""
    import episodes
    import instructions
    import linear_programs
    import live
    import logs
    import peers
    import planning
    import processes
    import replanning
    import scaling

    return {
        "compile": processes.compile_time,
        "start": processes.start_time,
        "memory": processes.memory,
        "taxi": processes.taxi,
        "planning": planning.cost_of_candidates,
        "kl": planning.cost_of_kl,
        "replanning": replanning.time_of_replanning,
        "live": live.time_of_live_episodes,
        "scaling": scaling.time_of_large_worlds,
        "instructions": instructions.instructions_of_large_worlds,
        "cores": scaling.gain_of_all_cores,
        "linear-programs": linear_programs.time_of_linear_programs,
        "episodes": episodes.time_of_episodes,
        "logs": logs.time_of_logs,
        "peers": peers.against_rlberry if with_peers else peers.not_asked_for,
    }


if __name__ == "__main__":
    main()
