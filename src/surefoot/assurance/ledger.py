"""Ledger: every plan of a learner in a file, so that a stranger can check what was certified (format: docs/ledger.md).

`verifier.py` reads it. That file shares no code with this one, nor with anything else here: whoever doubts the library
need not trust it to be told so.
"""

import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from surefoot.__about__ import __version__
from surefoot.agents.explanation import SpliceGrounds
from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.floors import Relative, user_zero
from surefoot.agents.plan import Plan
from surefoot.agents.returns import returns_range
from surefoot.agents.splice_agent import SpliceAgent
from surefoot.assurance import verifier
from surefoot.base.arrays import AnyArray, Floats
from surefoot.base.files import require_place
from surefoot.bounds import KL
from surefoot.errors import InvalidFile, InvalidSetting
from surefoot.task.counts import Counts

FORMAT = 1
ROWS = 1e-12  # what rows of a policy may miss of summing to 1
BEFORE_THE_FIRST = "0" * 64
NOT_THE_LEARNERS = ("software", "warm", "logged")  # what of a first record a learner's settings do not decide

Entry = dict[str, Any]


class Ledger:
    """A file with every plan of one learner, each record under a digest chained to the one before.

        with sf.Ledger("offers.ledger", agent) as ledger:
            plan = agent.plan(counts)
            ledger.write(plan)          # before the plan is played

    It begins with the first plan, never overwrites a file, and is closed with a last record; whoever reads it before
    sees that it is still being written. `sf.check_ledger(path)` re-derives it.
    """

    def __init__(self, path: str | Path, agent: SpliceAgent) -> None:
        """For plans of this learner, into a new file."""
        self.path = require_place(path)
        self.agent = require_floor_agent(agent)
        if self.path.exists():
            raise InvalidFile(f"{self.path} exists. Choose another file for the ledger: nothing is overwritten.")
        self._last = Last(BEFORE_THE_FIRST, 0, None)
        self._closed = False

    @classmethod
    def resume(cls, path: str | Path, agent: SpliceAgent, episodes: int) -> Self:
        """Go on with a ledger after so many episodes: what was written of later ones is played, and written, again.

        A record that was cut off by a crash goes, too. A ledger that does not exist begins.
        """
        target = require_place(path)
        if not target.exists():
            return cls(target, agent)
        known = cls.__new__(cls)
        known.path, known.agent, known._closed = target, require_floor_agent(agent), False
        known._last = _kept(target, known.agent, episodes)
        return known

    def __repr__(self) -> str:
        return f"Ledger({self.path}, {self._last.plans} plans{', closed' * self._closed})"

    def write(self, plan: Plan) -> None:
        """Append this plan. The same plan from the same counts, asked for again, is not written twice."""
        if self._closed:
            raise InvalidSetting(f"The ledger {self.path} is closed. Begin another one.")
        grounds = plan.grounds
        if not isinstance(grounds, SpliceGrounds) or grounds.agent is not self.agent:
            raise InvalidSetting("A ledger takes the plans of the learner that it was begun with, and no others.")
        before, counts = self._last.counts, grounds.counts
        if before is None:
            self._append(first_record(self.agent, counts), self._last._replace(counts=_none_of(counts)), "xb")
            before = _none_of(counts)
        if (counts.n_sas < before.n_sas).any() or (counts.baseline_returns < before.baseline_returns).any():
            raise InvalidSetting("These counts hold less than those of the plan before. Begin another ledger for them.")
        record = plan_record(plan, grounds, before, self._last.plans)
        said = _said(record)
        if said == self._last.said and _same(before, counts):
            return
        kept = counts.copy()
        self._append(record, self._last._replace(plans=self._last.plans + 1, counts=kept, said=said))

    def close(self, episodes: int | None = None) -> None:
        """The last record: how many plans there are, and how many episodes were counted in the end."""
        if self._closed or self._last.counts is None:
            self._closed = True
            return
        total = self._last.counts.episodes if episodes is None else episodes
        self._append({"kind": "end", "plans": self._last.plans, "episodes": total}, self._last)
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:  # after an error it stays open: somebody may go on
            self.close()

    def _append(self, record: Entry, after: "Last", mode: str = "ab") -> None:
        """One more line, handed to the system before the plan is."""
        line, digest = chained(record, self._last.digest)
        try:
            with self.path.open(mode) as stream:
                stream.write(line)
        except FileExistsError:
            raise InvalidFile(
                f"{self.path} exists. Choose another file for the ledger: nothing is overwritten."
            ) from None
        self._last = after._replace(digest=digest)


class Last(NamedTuple):
    """Where a ledger stands."""

    digest: str
    plans: int
    counts: Counts | None  # of the last plan; None: nothing was written yet
    said: str = ""  # a digest of what the last plan plays


def check_ledger(path: str | Path) -> "verifier.Verdict":
    """Re-derive every plan of a ledger with the separate verifier."""
    try:
        with Path(path).open("rb") as stream:
            return verifier.verify(iter(lambda: stream.readline(verifier.LONGEST + 1), b""))
    except OSError as reason:
        raise InvalidFile(f"{path} cannot be read: {reason.strerror}. Expected a ledger of plans.") from None


def require_floor_agent(agent: object) -> SpliceAgent:
    """Ledgers are about floors kept by mixing: StepMix and its kin."""
    if not isinstance(agent, FloorAgent) or not agent.plans_itself:
        raise InvalidSetting(
            f"A ledger holds certificates of sf.StepMix, sf.EpsMix or sf.StepNoMix, not of {type(agent).__name__}."
        )
    problem = agent.problem
    work = len(agent.h0) * problem.H * problem.S * problem.A * problem.S
    if work > verifier.MOST_WORK:
        raise InvalidSetting(
            f"A ledger of this problem could not be checked in reasonable time: {work:.3g} steps a plan, expected at "
            f"most {verifier.MOST_WORK:.0e}. Leave the ledger out."
        )
    missing = float(np.abs(agent.pi_b.sum(axis=-1) - 1.0).max())
    if missing > ROWS:
        raise InvalidSetting(
            f"Rows of the baseline miss a sum of 1 by {missing:.3g}. In a ledger, where policies are compared exactly, "
            f"they may by {ROWS:g}: divide them by their sums."
        )
    return agent


def canonical(record: Entry) -> bytes:
    """A record as its line, without the newline."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def chained(record: Entry, before: str) -> tuple[bytes, str]:
    """The line of a record that follows the digest `before`, and its own digest."""
    digest = hashlib.sha256(before.encode("ascii") + canonical(record)).hexdigest()
    return canonical({**record, "digest": digest}) + b"\n", digest


def hexes(values: AnyArray | list[Any] | float) -> Any:
    """Floats as nested lists of hexadecimal strings: nothing is rounded."""
    nested = values.tolist() if isinstance(values, np.ndarray) else values
    return [hexes(value) for value in nested] if isinstance(nested, list) else float(nested).hex()


def first_record(agent: SpliceAgent, counts: Counts) -> Entry:
    """What all plans of a learner have in common."""
    problem, bounds, returns = agent.problem, agent.bounds, agent.returns
    family: Entry = {"family": type(bounds).__name__, "scale": hexes(bounds.scale)}
    if isinstance(bounds, KL):
        family["alpha"] = bounds.alpha if isinstance(bounds.alpha, str) else hexes(bounds.alpha)
    evidence = None
    if returns is not None:
        lowest, span, rounding = returns_range(problem, agent.pi_b, returns)
        ends = {"lowest": hexes(lowest), "span": hexes(span), "rounding": hexes(rounding)}
        evidence = {"share": hexes(returns.share), "declared": returns.declared, **ends}
    after, unknown, mask = problem.r_next_rows, problem.unknown_rows, problem.support_rows
    relative = agent.floor if isinstance(agent.floor, Relative) else None
    proof = agent.certificate
    return {
        "kind": "ledger",
        "format": FORMAT,
        "software": f"surefoot {__version__}",
        "learner": type(agent).__name__,
        "H": problem.H,
        "S": problem.S,
        "A": problem.A,
        "pooled": agent.pooled,
        "stationary": problem.stationary,
        "rewards": hexes(problem.r_rows),
        "rewards_by_next": None if after is None else hexes(after),
        "unknown_rewards": None if unknown is None else unknown.astype(int).tolist(),
        "support": None if mask is None else [[np.flatnonzero(pair).tolist() for pair in row] for row in mask],
        "start": None if problem.start is None else hexes(problem.start),
        "units": {
            "low": hexes(problem.units.low),
            "high": hexes(problem.units.high),
            "steps": problem.units.steps,
        },
        "baseline": hexes(agent.pi_b),
        "floor": None if relative is not None else hexes(agent.rule.floor),
        "relative": None
        if relative is None
        else {"give": hexes(relative.max_loss), "offset": hexes(user_zero(problem))},
        "delta": hexes(agent.delta),
        "spending": {
            "model": hexes(agent.delta_model),
            "returns": hexes(0.0 if returns is None else agent.delta * returns.share),
            "delta_prime": hexes(agent.delta_prime),
            "events": bounds.events(problem, agent.pooled),
        },
        "bounds": family,
        "returns": evidence,
        "vouched": None if agent.baseline_at_least is None else hexes(agent.baseline_at_least),
        "certificate": None
        if proof is None
        else {"value": hexes(proof.value), "delta": hexes(proof.delta), "mark": proof.fingerprint},
        "warm": bool(counts.n_sas.any()),
        "logged": counts.logged,
    }


def plan_record(plan: Plan, grounds: SpliceGrounds, before: Counts, number: int) -> Entry:
    """A plan, and what has changed in the counts since the one before."""
    agent, counts = grounds.agent, grounds.counts
    relative = isinstance(agent.floor, Relative)
    evidence = np.isfinite(grounds.by_returns)
    rows, S, A, _ = counts.n_sas.shape
    visits = (counts.n_sas - before.n_sas).reshape(rows, S * A, S)
    sums = np.zeros((rows, S * A), dtype=np.int64)
    if counts.x_sa is not None and before.x_sa is not None:
        sums = (counts.x_sa - before.x_sa).reshape(rows, S * A)
    return {
        "kind": "plan",
        "number": number,
        "episodes": int(counts.n_sas.sum()) // agent.problem.H,
        "visits": changes(visits),
        "rewards": changes(sums),
        "starts": changes(counts.n_start - before.n_start),
        "baseline_returns": counts.baseline_returns.tolist(),
        "explorer": actions_of(grounds.explorer),
        "candidates": hexes(plan.candidates),
        "by_model": hexes(grounds.by_model),
        "by_returns": hexes(grounds.by_returns) if evidence else None,
        "floor": hexes(grounds.floor),
        "upper": hexes(grounds.U) if relative else None,
        "h": plan.h,
        "rho": hexes(plan.rho),
        "source": plan.source,
        "safety": plan.safety,
        "lower": hexes(plan.lower),
        "policy": hexes(plan.policy) if isinstance(plan.policy, np.ndarray) else None,
        "frozen": plan.frozen,
    }


def changes(grown: AnyArray) -> list[list[int]]:
    """Where something was added, and how much."""
    return [[*(int(i) for i in place), int(grown[tuple(place)])] for place in np.argwhere(grown)]


def actions_of(policy: Floats) -> list[Any]:
    """A policy that leaves nothing to chance as its actions (H, S), any other as hexadecimal floats (H, S, A)."""
    chosen = policy.argmax(axis=-1)
    certain = np.array_equal(np.eye(policy.shape[-1])[chosen], policy)
    return list(chosen.tolist()) if certain else list(hexes(policy))


def _none_of(counts: Counts) -> Counts:
    """The same, with nothing counted."""
    none = counts.copy()
    for array in (none.n_sas, none.x_sa, none.n_start, none.baseline_returns):
        if array is not None:
            array[...] = 0
    return none


def _same(before: Counts, now: Counts) -> bool:
    """Has nothing been counted in between?"""
    pairs = ((before.n_sas, now.n_sas), (before.n_start, now.n_start), (before.baseline_returns, now.baseline_returns))
    return all(np.array_equal(a, b) for a, b in pairs)


def _said(record: Entry) -> str:
    """A digest of what is played; an explorer may draw another policy from the same counts."""
    played = {key: record[key] for key in ("explorer", "policy", "h", "rho", "source", "frozen")}
    return hashlib.sha256(canonical(played)).hexdigest()


def _kept(path: Path, agent: SpliceAgent, episodes: int) -> Last:
    """Cut the ledger after the last plan made before the episode with this number was over; where it then stands."""
    damaged = f"{path} is not this learner's ledger, or a damaged one"
    last, end = Last(BEFORE_THE_FIRST, 0, None), 0
    try:
        with path.open("rb") as stream:
            for line in stream:
                record = json.loads(line)
                digest = record.pop("digest")
                if chained(record, last.digest) != (line, digest):
                    raise InvalidFile(f"{damaged}: record {last.plans + 1} was changed. Begin another one.")
                if record["kind"] == "end" or record.get("episodes", 0) > episodes:
                    break
                last = _after(record, last, agent)._replace(digest=digest)
                end += len(line)
    except InvalidFile:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as reason:
        if not _is_cut_off(path, end):
            raise InvalidFile(
                f"{damaged} ({type(reason).__name__} in record {last.plans + 1}). Begin another one."
            ) from None
    with path.open("rb+") as stream:
        stream.truncate(end)
        os.fsync(stream.fileno())
    if end == 0:
        path.unlink()
    return last


def _is_cut_off(path: Path, end: int) -> bool:
    """Is what follows one line that a crash has cut off?"""
    with path.open("rb") as stream:
        stream.seek(end)
        rest = stream.read()
    return b"\n" not in rest


def _after(record: Entry, last: Last, agent: SpliceAgent) -> Last:
    """Where a ledger stands after one more record."""
    if last.counts is None:
        mine = first_record(agent, Counts.zeros(agent.problem, agent.pooled))
        if {**record, **{key: mine[key] for key in NOT_THE_LEARNERS}} != mine:
            raise InvalidFile("The ledger is of another learner, problem, floor or delta. Begin another one.")
        counts = Counts.zeros(agent.problem, agent.pooled)
        counts.logged = bool(record["logged"])
        return last._replace(counts=counts)
    counts = last.counts.copy()
    rows, S, A, _ = counts.n_sas.shape
    for row, pair, s_next, more in record["visits"]:
        counts.n_sas.reshape(rows, S * A, S)[row, pair, s_next] += more
    for s, more in record["starts"]:
        counts.n_start[s] += more
    if counts.x_sa is not None:
        for row, pair, more in record["rewards"]:
            counts.x_sa.reshape(rows, S * A)[row, pair] += more
    counts.baseline_returns[:] = record["baseline_returns"]
    return last._replace(plans=last.plans + 1, counts=counts, said=_said(record))
