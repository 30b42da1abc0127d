"""What the file of a run remembers of its ledger: where it is, and how far it was. Both go on
together, or neither.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surefoot.agents.base import Agent
from surefoot.audit.ledger import Ledger, Place, PlanFile, require_floor_agent
from surefoot.base.arrays import AnyArray
from surefoot.errors import InvalidFile

NAMES = ("plans_file", "plans_written", "plans_digest")


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
    known = Path(beside).as_posix(), np.int64(plans), digest
    return {name: np.asarray(value) for name, value in zip(NAMES, known, strict=True)}


def remembered(path: str | Path, arrays: dict[str, AnyArray]) -> Remembered | None:
    """Return what `ledger_arrays` wrote; None: there was no ledger."""
    if "plans_file" not in arrays:
        return None
    name, plans, digest = (arrays.get(name, np.zeros(0)) for name in NAMES)
    kinds = [(array.ndim, array.dtype.kind) for array in (name, plans, digest)]
    if kinds != [(0, "U"), (0, "i"), (0, "U")] or not str(name) or plans < 0:
        raise InvalidFile(
            f"{path}: the name of its ledger, or the place in it, is not as written: the file is "
            "damaged. Restore a copy."
        )
    where = Path(path).resolve().parent / str(name)
    return Remembered(where, Place(int(plans), str(digest)))


def ledger_to_write(
    given: str | Path | None, known: Remembered | None, agent: Agent, episodes: int | None
) -> Ledger | None:
    """Return the ledger at this place, or the one that is remembered; `episodes` says after how
    many it continues.
    """
    path = known.path if given is None and known is not None else given
    if path is None:
        return None
    plans = require_floor_agent(agent)
    if episodes is None:
        return Ledger(path, plans)
    return Ledger.resume(path, plans, episodes, None if known is None else known.place)
