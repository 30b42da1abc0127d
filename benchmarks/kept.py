"""What got slower since the kept table: kept.json holds a ratio for each row, and how far it may
move by itself. A row that is not in it is named, so that none goes unseen.

Times of one machine say nothing on another, so a time is divided by a yardstick measured in the
same run: a fixed piece of Python, in which nothing of this library takes part. Ratios and megabytes
are kept as they are.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

KEPT = Path(__file__).parent / "kept.json"
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
# of a row in which nothing else is written: what a shared machine does to it by itself
TOLERANCE = 0.3


class Kept(NamedTuple):
    """A row of the kept table. Smaller is better."""

    ratio: float
    tolerance: float = TOLERANCE


class Slower(NamedTuple):
    """A row that is slower than it was by more than its tolerance."""

    name: str
    before: float
    now: float
    tolerance: float

    def __str__(self) -> str:
        change = f"{self.before:.3g} -> {self.now:.3g}, {self.tolerance:.0%} allowed"
        return f"{self.name}: {self.now / self.before - 1.0:.0%} more than kept ({change})"


def yardstick(repeats: int = 9) -> float:
    """Seconds of a fixed piece of Python: the smallest of several, a few milliseconds each."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        found: dict[int, float] = {}
        for i in range(40_000):
            found[i % 997] = found.get(i % 997, 0.0) + i * 0.5
        best = min(best, time.perf_counter() - started)
    return best


def name_of(row: Any) -> str:
    """What a row is called in the kept table."""
    return f"{row.item} | {row.where}".rstrip(" |")


def ratios(rows: Iterable[Any], seconds: float) -> dict[str, float]:
    """The ratio of each row that has a number, by its name; `seconds` is the yardstick. Smaller
    is better.
    """
    found = {}
    for row in rows:
        if row.value is None or row.value <= 0.0:
            continue
        value = row.value * SECONDS[row.unit] / seconds if row.unit in SECONDS else row.value
        found[name_of(row)] = 1.0 / value if row.target.startswith(">=") else value
    return found


def slower(now: dict[str, float], kept: dict[str, Kept]) -> list[Slower]:
    """The rows in both that are larger than kept by more than their tolerance, the worst first."""
    found = [
        Slower(name, kept[name].ratio, ratio, kept[name].tolerance)
        for name, ratio in now.items()
        if name in kept and ratio > kept[name].ratio * (1.0 + kept[name].tolerance)
    ]
    return sorted(found, key=lambda row: row.before / row.now)


def not_compared(rows: Iterable[Any], now: dict[str, float], kept: dict[str, Kept]) -> list[str]:
    """The rows that were held against nothing: not kept, or without a number above 0, or two of
    one name.
    """
    names = [name_of(row) for row in rows]
    return sorted(
        {name for name in names if name not in kept or name not in now or names.count(name) > 1}
    )


def not_measured(rows: Iterable[Any], kept: dict[str, Kept]) -> list[str]:
    """The rows of the kept table that a run has not."""
    return sorted(kept.keys() - {name_of(row) for row in rows})


def updated(now: dict[str, float], kept: dict[str, Kept]) -> dict[str, Kept]:
    """The table with these ratios. Tolerances stay, and so do rows that were not measured."""
    return kept | {
        name: Kept(ratio, kept[name].tolerance if name in kept else TOLERANCE)
        for name, ratio in now.items()
    }


def read(path: Path = KEPT) -> dict[str, Kept]:
    """The kept table; empty where nothing was kept."""
    if not path.exists():
        return {}
    return {
        name: Kept(row["ratio"], row["tolerance"])
        for name, row in json.loads(path.read_text()).items()
    }


def write(kept: dict[str, Kept], path: Path = KEPT) -> None:
    """Write the table, in the order of names: a change of one row is a change of one line."""
    lines = [
        f'  {json.dumps(name)}: {{"ratio": {row.ratio:.4g}, "tolerance": {row.tolerance:g}}}'
        for name, row in sorted(kept.items())
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compare(rows: list[Any], seconds: float, whole: bool, keep: bool) -> None:
    """Say what was not compared, and last what is slower than kept; keep these ratios if that is
    asked for. `whole`: was everything to be measured?
    """
    kept, now = read(), ratios(rows, seconds)
    listed("not compared", not_compared(rows, now, kept))
    if whole:
        listed("kept, but not measured", not_measured(rows, kept))
    if keep:
        write(updated(now, kept))
        print(f"kept in benchmarks/{KEPT.name}")
    found, compared = slower(now, kept), len(now.keys() & kept.keys())
    for row in found:
        print(f"slower: {row}")
    print(f"{len(found)} of {compared} compared rows are slower than kept")


def listed(what: str, names: list[str]) -> None:
    """Print how many rows these are, and which."""
    if names:
        print(f"{what}: {len(names)} rows:", *names, sep="\n  ")
