"""Rows of logs, files of them, and when two counted logs are the same."""

import duckdb
import numpy as np

from surefoot.logs.log_tables import TABLES

NAMES = ("episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated")
HEAD, ENDS = ",".join(NAMES[:6]), ",".join(NAMES[:7])
WRITER = duckdb.connect()  # one for all: to connect takes longer than to write
FORMS = {".parquet": "PARQUET", ".csv": "CSV, HEADER", ".gz": "CSV, HEADER", ".jsonl": "JSON"}
FACTS = ("H", "codebook", "episodes", "rows", "seed", "reward_range", "declared", "after_end")
FACTS += ("last_ends", "notes")


def simulate(
    n=60,
    H=3,
    seed=0,
    states=(0, 1, 2),
    actions=(0, 1),
    ids=None,
    kind="pair",
    ends=0.0,
    first=0,
    span=(0.0, 1.0),
    starts=2,
):
    """Rows of n episodes from the first `starts` states; those with `ends` may terminate before
    step H.
    """
    rng = np.random.default_rng(seed)
    S, A = len(states), len(actions)
    shape = (H, S, A) if kind == "pair" else (H, S, A, S)
    table = span[0] + (span[1] - span[0]) * rng.integers(0, 5, size=shape) / 4.0
    ids = list(range(n)) if ids is None else ids
    rows = []
    for episode in ids:
        s = int(rng.integers(min(S, starts)))
        for h in range(H):
            a, ended = int(rng.integers(A)), bool(rng.random() < ends)
            s_next = S - 1 if ended else int(rng.integers(S))
            r = {"pair": lambda: table[h, s, a], "next": lambda: table[h, s, a, s_next]}.get(kind)  # noqa: B023
            reward = float(rng.uniform(*span) if r is None else r())
            cut = h == H - 1 and not ended
            rows.append(
                (episode, h + first, states[s], actions[a], reward, states[s_next], ended, cut)
            )
            if ended:
                break
            s = s_next
    return rows


def write(path, rows, names=NAMES, query="FROM given"):
    """What a query makes of the rows in `given`, as the kind of file that the ending says."""
    columns = zip(names, zip(*rows, strict=True), strict=True)
    table = {
        name: np.array(column, dtype=object if isinstance(column[0], str) else None)
        for name, column in columns
    }
    WRITER.register("given", table)
    WRITER.execute(f"COPY ({query}) TO '{path}' (FORMAT {FORMS[path.suffix]})")
    return path


def write_lines(path, rows, head=HEAD):
    """A CSV of these lines below a header."""
    path.write_bytes("\n".join([head, *rows, ""]).encode())
    return path


def assert_same(one, other):
    """To the last bit."""
    for name in FACTS:
        assert getattr(one, name) == getattr(other, name), name
    for name in TABLES:
        mine, its = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(mine, its, err_msg=name, strict=True)
    assert (one.sums is None) == (other.sums is None)
    for mine, its in zip(one.sums or (), other.sums or (), strict=True):
        np.testing.assert_array_equal(mine, its, strict=True)
    assert one.counts == other.counts
    assert one.fold_counts == other.fold_counts
