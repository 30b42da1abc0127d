"""A log of 50 million rows to counts, against a bare GROUP BY by the same engine in the same run,
on two cores.

The log: 2.5 million episodes of 20 steps, about 300,000 different transitions (step, state, action,
next state), and rewards that are fixed by state and action, as in the paper. What the bare query
does not do: read episodes and rewards, split into folds, look for duplicates and broken totals, and
lay the counts out as an array.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cores import on_cores
from processes import PEAK, python
from table import Row, at_most, plain

ROWS = 50_000_000
STEPS = 20
ROUNDS = 3
RATIO = 1.8
MEMORY_MB = 500

GENERATE = """
COPY (
    SELECT episode, step, state, action, next_state,
        ((state * 7 + action * 3) % 11) / 10.0::DOUBLE AS reward
    FROM (
        SELECT episode, step, ((hash(episode * 32 + step) >> 40) % 10)::BIGINT AS action,
            CASE WHEN step = 0 THEN 0
                ELSE ((hash(episode * 32 + step) >> 20) % 40 + step * 13) % 300
                END::BIGINT AS state,
            (((hash(episode * 32 + step + 1) >> 20) % 40 + (step + 1) * 13) % 300)::BIGINT
                AS next_state
        FROM (SELECT range AS episode FROM range({episodes})),
            (SELECT range AS step FROM range({steps}))
    )
) TO '{path}' (FORMAT {form})
"""
BARE = """
with duckdb.connect() as con:
    con.execute("SET threads = 2")
    con.execute("SET enable_progress_bar = false")
    con.execute("SET memory_limit = '256MB'")
    counted = "SELECT step, state, action, next_state, count(*) FROM '{path}' GROUP BY ALL"
    con.execute(counted).fetchnumpy()
"""
OURS = """
counts = sf.count_log("{path}", seed=0, threads=2, states="as logged", reward_range=(0, 1)).counts
"""
IN_TURN = """
import json, time
import duckdb
import surefoot as sf
sf.count_log
times = []
for _ in range({rounds}):
    started = time.perf_counter()
{bare}
    between = time.perf_counter()
{ours}
    times.append((between - started, time.perf_counter() - between))
print(json.dumps(times))
"""
LIMITED = """
import surefoot as sf
log = sf.count_log("{path}", memory="{memory}", threads=2)
assert log.rows == {rows}
"""
CHECKED = """
import surefoot as sf
report = sf.check_log("{path}", memory="{memory}", threads=2)
assert report.usable and report.rows == {rows}
"""


def indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.strip().splitlines())


def time_of_logs() -> Iterator[Row]:
    """The ratio, the peak of memory, and a log ten times larger than the memory allowed."""
    with on_cores(os.cpu_count() or 1), tempfile.TemporaryDirectory() as folder:
        yield from measured(Path(folder))


def generate(path: Path, rows: int, form: str) -> None:
    query = GENERATE.format(episodes=rows // STEPS, steps=STEPS, path=path, form=form)
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import duckdb; duckdb.execute('SET enable_progress_bar = false'); "
            f"duckdb.execute('''{query}''')",
        ],
        check=True,
    )


def measured(folder: Path) -> Iterator[Row]:
    path = folder / "log.parquet"
    generate(path, ROWS, "parquet")
    where = f"{ROWS:,} rows of Parquet"
    code = {"bare": indented(BARE.format(path=path)), "ours": indented(OURS.format(path=path))}
    times = python(IN_TURN.format(rounds=ROUNDS, **code))
    ratio = statistics.median(ours / bare for bare, ours in times)
    best_bare, best_ours = (min(pair[i] for pair in times) for i in (0, 1))
    size = path.stat().st_size / 1e6
    note = (
        f"median of {ROUNDS} rounds in turn; best {best_ours:.2f} s over {best_bare:.2f} s; "
        f"{size:.0f} MB"
    )
    yield at_most("counting a log / bare GROUP BY", where, ratio, "times", RATIO, note)
    peak = python("import surefoot as sf\n" + OURS.format(path=path) + PEAK)["peak"] / 1e6
    yield at_most(
        "counting a log, peak of memory", where, peak, "MB", MEMORY_MB, "the whole process"
    )
    path.unlink()
    yield from ten_times(folder)


def ten_times(folder: Path) -> Iterator[Row]:
    """A CSV ten times as large as what DuckDB may use: counted, and checked episode by episode."""
    path, n = folder / "log.csv", ROWS // 2
    generate(path, n, "csv")
    size = path.stat().st_size
    limit = f"{size // 10 // 10**6}MB"
    for what, code in (("counting", LIMITED), ("checking", CHECKED)):
        started = time.perf_counter()
        peak = python(code.format(path=path, memory=limit, rows=n) + PEAK)["peak"] / 1e6
        seconds = time.perf_counter() - started
        note = f"{size / 1e6:.0f} MB, memory={limit}, peak {peak:.0f} MB in all"
        yield plain(f"{what} a log ten times the limit", f"{n:,} rows of CSV", seconds, "s", note)
