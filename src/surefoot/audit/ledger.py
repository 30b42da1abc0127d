"""Ledger: every plan of an agent in a file, so that anybody can check what was certified (format:
docs/ledger.md).

`verifier.py` checks it. That file shares no code with this one, nor with the rest of the library:
who doubts the library need not trust it to check a ledger.
"""

import json
import os
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from surefoot.agents.explanation import SpliceGrounds
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.plan import Plan
from surefoot.agents.splice_agent import SpliceAgent
from surefoot.audit import guard_verifier, verifier
from surefoot.audit.records import (
    OF_LISTS,
    Entry,
    chained,
    first_record,
    format_of,
    plan_record,
    rows_of_ledger,
)
from surefoot.base.arrays import AnyArray
from surefoot.base.digest import digest
from surefoot.base.files import as_path, require_place
from surefoot.errors import InvalidFile, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.count_lists import Entries
from surefoot.model.steps import added_steps

NUMBER = 24  # bytes of a float in a record, at most
ROWS = 1e-12  # how far the sum of a policy's row may be from 1
BEFORE_THE_FIRST = "0" * 64
NOT_OF_THIS_RUN = (
    "{} is not the ledger that this run wrote: its plans are others. Give the right one."
)
# fields of the first record that do not depend on the agent
NOT_OF_THE_AGENT = ("software", "warm", "logged")


class PlanFile:
    """A file of plans: what the ledgers of agents and of guards have in common."""

    path: Path
    _last: Any  # the state after the last record: with its digest, and the number of plans
    _closed = False

    def _begin(self, path: str | Path, last: Any) -> None:
        """Write to a new file."""
        self.path, self._last = require_place(path), last
        if self.path.exists():
            raise InvalidFile(
                f"{self.path} exists. Choose another file for the ledger: nothing is overwritten."
            )

    @property
    def place(self) -> "Place":
        """How far the ledger is: what a saved state remembers of it, beside its name."""
        return Place(self._last.plans, self._last.digest)

    def sync(self) -> None:
        """Have all that was written on disk: then a state that remembers it may be saved."""
        if self.path.exists():
            with self.path.open("rb") as stream:
                os.fsync(stream.fileno())

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return f"{type(self).__name__}({self.path}, {self._last.plans} plans{closed})"

    def __enter__(self) -> Self:
        return self

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidSetting(f"The ledger {self.path} is closed. Start another one.")

    def _append(self, record: Entry, after: Any, mode: str = "ab") -> None:
        """Write one more line, before the plan is played. Mode "xb": the file must be new."""
        line, digest = chained(record, self._last.digest)
        try:
            with self.path.open(mode) as stream:
                stream.write(line)
        except FileExistsError:
            raise InvalidFile(
                f"{self.path} exists. Choose another file for the ledger: nothing is overwritten."
            ) from None
        self._last = after._replace(digest=digest)

    def _end(self, facts: Entry) -> None:
        """Write the last record. The place stays that of the last plan: a run that goes on
        replaces this record.
        """
        last = self._last
        self._append({"kind": "end", "plans": last.plans, **facts}, last)
        self._last, self._closed = last, True


class Ledger(PlanFile):
    """A file with every plan of one agent. The digest of each record is chained to the one before.

        with sf.Ledger("offers.ledger", agent) as ledger:
            plan = agent.plan(counts)
            ledger.write(plan)          # before the plan is played

    The file is made with the first plan, and never replaces another file. A last record closes it;
    without this record a reader sees that it is still being written. `sf.check_ledger(path)`
    re-derives every plan.
    """

    def __init__(self, path: str | Path, agent: SpliceAgent) -> None:
        """Write plans of this agent to a new file."""
        self.agent = require_floor_agent(agent)
        self._begin(path, Last(BEFORE_THE_FIRST, 0, None))

    @classmethod
    def resume(
        cls, path: str | Path, agent: SpliceAgent, episodes: int, place: "Place | None" = None
    ) -> Self:
        """Continue a ledger after so many episodes. Later plans are removed: they are made and
        written again.

        A record that was cut off by a crash is removed, too. If the file does not exist, a new
        ledger begins. With the `place` that a saved state remembers, a ledger that never was at
        that place is refused, and left as it is.
        """
        target = require_place(path)
        if not target.exists():
            require_nothing_written(target, place)
            return cls(target, agent)
        known = cls.__new__(cls)
        known.path, known.agent = target, require_floor_agent(agent)
        known._last = _kept(target, known.agent, episodes, place)
        return known

    def write(self, plan: Plan) -> None:
        """Append this plan. The same plan from the same counts is not written twice."""
        self._require_open()
        grounds = plan.grounds if isinstance(plan, Plan) else None
        if not isinstance(grounds, SpliceGrounds) or grounds.agent is not self.agent:
            raise InvalidSetting(
                "This plan was not made by the agent of the ledger. Start a ledger for each agent."
            )
        if self.agent.returns is None and grounds.counts.return_weights.any():
            without = grounds.counts.copy()
            without.return_weights[:] = 0
            grounds = grounds._replace(counts=without)
        before, counts = self._last.counts, grounds.counts
        if before is None:
            before = Counts.zeros(self.agent.problem, self.agent.pooled)
            head = first_record(self.agent, counts, format_of(self.agent.problem))
            self._append(head, self._last._replace(counts=before), "xb")
        fewer = (counts.transitions.beyond(before.transitions).n < 0).any()
        if fewer or any((now < then).any() for then, now in _counted(before, counts)):
            raise InvalidSetting(
                "These counts hold less than those of the plan before. Start another ledger for "
                "them."
            )
        record = plan_record(plan, grounds, before, self._last.plans)
        played = _played_digest(record)
        if played == self._last.played and _same(before, counts):
            return
        kept = counts.copy()
        self._append(
            record, self._last._replace(plans=self._last.plans + 1, counts=kept, played=played)
        )

    def close(self, episodes: int | None = None) -> None:
        """Write the last record: how many plans there are, and how many episodes were counted in
        total.
        """
        if self._closed or self._last.counts is None:
            self._closed = True
            return
        total = self._last.counts.episodes if episodes is None else episodes
        self._end({"episodes": total})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None:  # after an error the ledger stays open: it can be continued
            self.close()


class Place(NamedTuple):
    """A place in a ledger: after so many plans, of which the last has this digest."""

    plans: int
    digest: str


class Last(NamedTuple):
    """The state of a ledger after its last record."""

    digest: str
    plans: int
    counts: Counts | None  # of the last plan; None: nothing was written yet
    played: str = ""  # a digest of what the last plan plays


def require_nothing_written(path: Path, place: Place | None) -> None:
    """Refuse to begin a ledger anew to which plans were written by the run that goes on."""
    if place is not None and place.plans:
        raise InvalidFile(
            f"{path} does not exist or is empty, but {place.plans:,} plans were written to it. "
            "Restore it, or give the place where it is: ledger=..."
        )


def check_ledger(path: str | Path) -> Any:
    """Re-derive every plan of a ledger, of an agent or of a guard, with its separate verifier."""
    file = as_path(path)
    try:
        with file.open("rb") as stream:
            return verifier_for(file).verify(
                iter(lambda: stream.readline(verifier.LONGEST + 1), b"")
            )
    except OSError as reason:
        raise InvalidFile(
            f"{path} cannot be read: {reason.strerror}. Expected a ledger of plans."
        ) from None


def verifier_for(path: str | Path) -> ModuleType:
    """Return the verifier of a ledger, by the kind of its first record."""
    with Path(path).open("rb") as stream:
        first = stream.readline(verifier.LONGEST + 1)
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        record = None
    return (
        guard_verifier if isinstance(record, dict) and record.get("kind") == "guard" else verifier
    )


def require_floor_agent(agent: object) -> SpliceAgent:
    """Refuse agents other than the StepMix family, which keeps floors by mixing, and problems
    too large to verify.
    """
    if not isinstance(agent, FloorAgent) or not agent.plans_itself:
        raise InvalidSetting(
            "A ledger holds certificates of sf.StepMix, sf.EpsMix or sf.StepNoMix, not of "
            f"{type(agent).__name__}."
        )
    problem = agent.problem
    work = len(agent.h0) * problem.H * problem.S * problem.A * min(problem.S, verifier.FEW)
    if work > verifier.MOST_WORK:
        raise InvalidSetting(
            f"A ledger of this problem could not be checked in reasonable time: {work:.3g} steps "
            f"per plan, expected at most {verifier.MOST_WORK:.0e}. Leave the ledger out."
        )
    if problem.pays_by_next and format_of(problem) == OF_LISTS:
        rewards = problem.limits.possible(rows_of_ledger(problem))
        if NUMBER * rewards > verifier.LONGEST:
            raise InvalidSetting(
                f"A ledger of this problem would begin with {rewards:.3g} rewards by next state, "
                f"expected at most {verifier.LONGEST // NUMBER:,}. Say which next states are "
                "possible (support=...), so that only their rewards are written, or leave the "
                "ledger out."
            )
    if problem.start is None and added_steps(problem):
        raise InvalidSetting(
            "The start of this problem is unknown, but by its units a common start was added, "
            "whose step pays nothing. A ledger of it could not be checked: leave start=True out of "
            "forget, or leave the ledger out."
        )
    missing = float(np.abs(agent.pi_b.sum(axis=-1) - 1.0).max())
    if missing > ROWS:
        raise InvalidSetting(
            f"Rows of the baseline differ from a sum of 1 by {missing:.3g}. In a ledger, where "
            f"policies are compared exactly, at most {ROWS:g} is allowed: divide the rows by their "
            "sums, sf.normalise(policy)."
        )
    return agent


def _same(before: Counts, now: Counts) -> bool:
    """Return whether nothing was counted in between."""
    return before.transitions == now.transitions and all(
        np.array_equal(a, b) for a, b in _counted(before, now)
    )


def _counted(before: Counts, now: Counts) -> list[tuple[AnyArray, AnyArray]]:
    """Return what is counted, before and now."""
    names = ("played", "n_start", "baseline_returns", "return_weights")
    return [(getattr(before, name), getattr(now, name)) for name in names]


def _played_digest(record: Entry) -> str:
    """Return a digest of what is played: an explorer may draw another policy from the same
    counts.
    """
    played = ("explorer", "policy", "h", "rho", "source", "frozen")
    return digest({key: record[key] for key in played})


def _kept(path: Path, agent: SpliceAgent, episodes: int, place: Place | None) -> Last:
    """Cut the ledger after the last plan that was made with at most so many episodes; return its
    state.
    """
    seen = place is None or place.plans == 0
    damaged = f"{path} is not a ledger of this agent, or it is damaged"
    last, end = Last(BEFORE_THE_FIRST, 0, None), 0
    try:
        with path.open("rb") as stream:
            for line in stream:
                record = json.loads(line)
                digest = record.pop("digest")
                if chained(record, last.digest) != (line, digest):
                    raise InvalidFile(
                        f"{damaged}: record {last.plans + 1} was changed. Start another one."
                    )
                if record["kind"] == "end" or record.get("episodes", 0) > episodes:
                    break
                last = _after(record, last, agent)._replace(digest=digest)
                seen = seen or place == (last.plans, digest)
                end += len(line)
    except InvalidFile:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as reason:
        if not _is_cut_off(path, end):
            raise InvalidFile(
                f"{damaged} ({type(reason).__name__} in record {last.plans + 1}). Start another "
                "one."
            ) from None
    if not seen:
        raise InvalidFile(NOT_OF_THIS_RUN.format(path))
    with path.open("rb+") as stream:
        stream.truncate(end)
        os.fsync(stream.fileno())
    if end == 0:
        path.unlink()
    return last


def _is_cut_off(path: Path, end: int) -> bool:
    """Return whether what follows is one line that a crash has cut off."""
    with path.open("rb") as stream:
        stream.seek(end)
        remainder = stream.read()
    return b"\n" not in remainder


def _after(record: Entry, last: Last, agent: SpliceAgent) -> Last:
    """Return the state of a ledger after one more record."""
    if last.counts is None:
        none = Counts.zeros(agent.problem, agent.pooled)
        mine = first_record(agent, none, format_of(agent.problem))
        if {**record, **{key: mine[key] for key in NOT_OF_THE_AGENT}} != mine:
            raise InvalidFile(
                "The ledger belongs to another agent, problem, floor or delta. Start another one."
            )
        return last._replace(counts=none)
    counts = last.counts.copy()
    rows, S, A = counts.shape
    visits = np.array(record["visits"], dtype=np.int64).reshape(-1, 4).T
    counts.transitions.add_entries(Entries(visits[0] * S * A + visits[1], visits[2], visits[3]))
    counts.episodes = record["episodes"]
    for row, pair, more in record["played"]:
        counts.played.reshape(rows, S * A)[row, pair] += more
    for s, more in record["starts"]:
        counts.n_start[s] += more
    for sums, field in ((counts.x_sa, "rewards"), (counts.z_sa, "between")):
        if sums is not None:
            for row, pair, more in record[field]:
                sums.reshape(rows, S * A)[row, pair] += more
    counts.baseline_returns[:] = record["baseline_returns"]
    for place, more in record["returns"]:
        counts.return_weights[place] += more
    return last._replace(plans=last.plans + 1, counts=counts, played=_played_digest(record))
