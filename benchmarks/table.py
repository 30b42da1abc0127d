"""What was measured: rows for the eye and for out/bench.json."""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "bench.json"


class Row(NamedTuple):
    """One number. `reached` is None where there is no target, or no number."""

    item: str
    where: str
    value: float | None
    unit: str
    target: str
    reached: bool | None
    note: str


def at_most(item: str, where: str, value: float, unit: str, target: float, note: str = "") -> Row:
    """Smaller is better."""
    return Row(item, where, float(value), unit, f"<= {target:g}", bool(value <= target), note)


def at_least(item: str, where: str, value: float, unit: str, target: float, note: str = "") -> Row:
    """Larger is better."""
    return Row(item, where, float(value), unit, f">= {target:g}", bool(value >= target), note)


def plain(item: str, where: str, value: float, unit: str, note: str = "") -> Row:
    """No target: the number is there to compare others with."""
    return Row(item, where, float(value), unit, "", None, note)


def broken(item: str, why: str, where: str = "", target: str = "") -> Row:
    """No number, and why."""
    return Row(item, where, None, "", target, None, why)


def line(row: Row) -> str:
    """The row as one line of text: item, where, value, unit, target, and a note."""
    value = "no number" if row.value is None else f"{shown(row.value)} {row.unit}".rstrip()
    target = f"[{row.target}: {verdict(row)}]" if row.target else ""
    parts = [f"{row.item} | {row.where}".rstrip(" |"), value, target, row.note]
    return "  ".join(part for part in parts if part)


def shown(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def verdict(row: Row) -> str:
    if row.reached is None:
        return "no number"
    return "reached" if row.reached else "NOT REACHED"


def sources() -> str:
    """A hash of the library's code: what the numbers are about."""
    files = sorted((ROOT / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def write(rows: list[Row], measured: str) -> None:
    """Numbers without the versions behind them mean nothing next month. `measured`: the sources
    at the start.
    """
    changed = sources() != measured
    if changed:
        print(
            "The library's sources changed during this run: its rows may be about different code."
        )
    record = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("surefoot", "numpy", "numba")},
        "sources": measured,
        "sources_changed": changed,
        "rows": [row._asdict() for row in rows],
    }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(record, indent=1) + "\n")
    print(f"written to {OUT.parent.name}/{OUT.name}")
