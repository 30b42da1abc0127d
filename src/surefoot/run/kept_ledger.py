"""What the file of a run remembers of its ledger: where it is, and how far it was. Both go on
together, or neither.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surefoot.agents.splice_agent import SpliceAgent
from surefoot.audit.ledger import Ledger, Place, PlanFile
from surefoot.base.arrays import AnyArray
from surefoot.errors import InvalidFile


class Remembered(NamedTuple):
    """A ledger that a file remembers."""

    path: Path
    place: Place


def ledger_arrays(ledger: PlanFile | None, path: str | Path) -> dict[str, AnyArray]:
    """Return what the file at `path` remembers of a ledger, which is on disk when this returns."""
    if ledger is None:
        return {}
    ledger.sync()
    plans, digest = ledger.place
    # from the folder of the other file, so that both may be moved together
    beside = os.path.relpath(ledger.path.resolve(), Path(path).resolve().parent)
    known = {
        "plans_file": Path(beside).as_posix(),
        "plans_written": np.int64(plans),
        "plans_digest": digest,
    }
    return {name: np.asarray(value) for name, value in known.items()}


def place_beside(path: str | Path, arrays: dict[str, AnyArray]) -> Path | None:
    """Return where the ledger is that the file at `path` remembers; None: it has none."""
    name = arrays.get("plans_file")
    if name is None:
        return None
    if name.ndim != 0 or name.dtype.kind != "U" or not str(name):
        raise InvalidFile(
            f"{path}: plans_file is not the name of a file: the file is damaged. Restore a copy."
        )
    return Path(path).resolve().parent / str(name)


def remembered(path: str | Path, arrays: dict[str, AnyArray]) -> Remembered | None:
    """Return what `ledger_arrays` wrote."""
    where = place_beside(path, arrays)
    if where is None:
        return None
    plans, digest = (
        arrays.get("plans_written", np.zeros(0)),
        arrays.get("plans_digest", np.zeros(0)),
    )
    if (
        plans.ndim
        or plans.dtype.kind != "i"
        or plans < 0
        or digest.ndim
        or digest.dtype.kind != "U"
    ):
        raise InvalidFile(
            f"{path}: the place in its ledger is not as written: the file is damaged. Restore a "
            "copy."
        )
    return Remembered(where, Place(int(plans), str(digest)))


def ledger_to_write(
    given: str | Path | None, known: Remembered | None, agent: SpliceAgent, episodes: int | None
) -> Ledger | None:
    """Return the ledger at this place, or the one that is remembered; `episodes` says after how
    many it continues.
    """
    path = known.path if given is None and known is not None else given
    if path is None:
        return None
    if episodes is None:
        return Ledger(path, agent)
    return Ledger.resume(path, agent, episodes, None if known is None else known.place)
