"""Records of a ledger: what its first line says of the agent, and what one line says of a plan
(docs/ledger.md).
"""

import hashlib
import json
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from surefoot.__about__ import __version__
from surefoot.agents.explanation import SpliceGrounds
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.plan import Plan
from surefoot.agents.splice_agent import SpliceAgent
from surefoot.base.arrays import AnyArray, Floats
from surefoot.bounds import KL
from surefoot.evidence.counts import Counts
from surefoot.model.given_rows import require_small
from surefoot.model.problem import Problem
from surefoot.model.steps import added_steps

FORMAT = 1  # of ledgers
OF_LISTS = 2  # of ledgers of problems that keep next states as lists

Entry = dict[str, Any]


def canonical(record: Entry) -> bytes:
    """Return a record as its line, without the newline."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode(
        "ascii"
    )


def chained(record: Entry, before: str) -> tuple[bytes, str]:
    """Return the line of a record that follows the digest `before`, and the digest of the
    record.
    """
    digest = hashlib.sha256(before.encode("ascii") + canonical(record)).hexdigest()
    return canonical({**record, "digest": digest}) + b"\n", digest


def hexes(values: AnyArray | list[Any] | float) -> Any:
    """Return floats as nested lists of hexadecimal strings: nothing is rounded."""
    nested = values.tolist() if isinstance(values, np.ndarray) else values
    return [hexes(value) for value in nested] if isinstance(nested, list) else float(nested).hex()


def first_record(agent: SpliceAgent, counts: Counts, form: int = FORMAT) -> Entry:
    """Return what all plans of an agent have in common. Format 2 is of problems that keep next
    states as lists.
    """
    problem, bounds, returns = agent.problem, agent.bounds, agent.returns
    family: Entry = {"family": type(bounds).__name__, "scale": hexes(bounds.scale)}
    if isinstance(bounds, KL):
        family["full_support"] = bounds.full_support
    evidence = None
    if returns is not None:
        possible = agent.possible_returns
        ends = {name: hexes(getattr(possible, name)) for name in ("lowest", "span", "rounding")}
        evidence = {"share": hexes(returns.share), **ends}
    unknown = problem.unknown_rows
    relative = None
    if isinstance(agent.floor, BaselineFloor):
        loss, offset, below = agent.rule.max_loss, agent.rule.offset, agent.rule.amount
        relative = {"max_loss": hexes(loss), "offset": hexes(offset), "below": hexes(below)}
    proof = agent.certificate
    return {
        "kind": "ledger",
        "format": form,
        "software": f"surefoot {__version__}",
        "agent": type(agent).__name__,
        "H": problem.H,
        "S": problem.S,
        "A": problem.A,
        "pooled": agent.pooled,
        "stationary": problem.stationary,
        "rewards": hexes(problem.r_rows),
        "rewards_by_next": _by_next(problem, form),
        "unknown_rewards": None if unknown is None else unknown.astype(int).tolist(),
        "support": _possible(problem, form),
        "start": None if problem.start is None else hexes(problem.start),
        "units": {
            "low": hexes(problem.units.low),
            "high": hexes(problem.units.high),
            "steps": problem.units.steps,
        },
        "baseline": hexes(agent.pi_b),
        "floor": None if relative is not None else hexes(agent.rule.floor),
        "relative": relative,
        "delta": hexes(agent.delta),
        "spending": {
            "model": hexes(agent.delta_model),
            "returns": hexes(0.0 if returns is None else agent.delta * returns.share),
            "delta_prime": hexes(agent.delta_prime),
            "events": bounds.events(problem, agent.pooled),
        },
        "bounds": family,
        "returns": evidence,
        "certificate": None
        if proof is None
        else {
            "value": hexes(agent.proved_before),
            "delta": hexes(proof.delta),
            "fingerprint": proof.fingerprint,
        },
        "warm": counts.episodes > 0,
        "logged": counts.logged and counts.episodes > 0,
    }


def format_of(problem: Problem) -> int:
    """Return the format of a ledger: of lists, if the problem keeps next states as such."""
    return FORMAT if problem.mask is None and problem.paid is None else OF_LISTS


def rows_of_ledger(problem: Problem) -> int:
    """Return how many steps have a mask or rewards by next state of their own: H, or 1."""
    return max(1 if one is None else one.rows for one in (problem.mask, problem.paid))


def _by_next(problem: Problem, form: int) -> list[list[list[str]]] | None:
    """Return rewards by next state, rows x pairs: of all next states; in OF_LISTS, of those that
    are possible.
    """
    if not problem.pays_by_next:
        return None
    S, A, pairs = problem.S, problem.A, problem.S * problem.A
    if form < OF_LISTS:
        rows = 1 if problem.paid is None else problem.paid.rows
        require_small("r_next", (rows, pairs, S), "problem.paid (a ledger holds them all)")
        return list(hexes(np.array([problem.r_next_at(h).reshape(pairs, S) for h in range(rows)])))
    lists = problem.limits.filled(rows_of_ledger(problem), come_back_to(problem))
    h, pair = np.divmod(lists.places, pairs)
    paid = hexes(problem.reward_of(h, pair // A, pair % A, lists.state))
    ends = lists.first.tolist()
    each = [paid[first:last] for first, last in pairwise(ends)]
    return [each[i : i + pairs] for i in range(0, len(each), pairs)]


def come_back_to(problem: Problem) -> int:
    """Return how many states an episode may come back to: the first of them. That is all of them,
    but for a common start, which was added as the last one: nothing leads to it.
    """
    return problem.S - added_steps(problem)


def _possible(problem: Problem, form: int) -> list[list[Any]] | None:
    """Return the possible next states of each pair, row by row: a list, or a number n, which stands
    for the first n states where nobody knows which are possible. None: all are, in every row.
    """
    lists, pairs = problem.mask, problem.S * problem.A
    most = come_back_to(problem)
    if lists is None:
        return None if most == problem.S else [[most] * pairs]
    if form < OF_LISTS:
        free = int((lists.sizes == 0).sum())
        require_small(
            "The mask",
            (free, problem.S),
            "problem.mask (a ledger holds every possible next state)",
        )
        lists = lists.filled(lists.rows, most)
    found = [lists.of(i).tolist() or most for i in range(len(lists.first) - 1)]
    return [found[i : i + pairs] for i in range(0, len(found), pairs)]


def plan_record(plan: Plan, grounds: SpliceGrounds, before: Counts, number: int) -> Entry:
    """Return the record of a plan, with the changes of the counts since the plan before."""
    agent, counts = grounds.agent, grounds.counts
    relative = isinstance(agent.floor, BaselineFloor)
    evidence = np.isfinite(grounds.by_returns)
    rows, S, A = counts.shape
    place, state, grown = counts.transitions.beyond(before.transitions)
    visits = np.stack([place // (S * A), place % (S * A), state, grown], axis=-1).tolist()
    unknown = agent.problem.unknown.reshape(-1, S * A)  # counts hold the sums of known rewards, too
    sums, between = (
        np.where(
            unknown, 0 if now is None or then is None else (now - then).reshape(rows, S * A), 0
        )
        for now, then in ((counts.x_sa, before.x_sa), (counts.z_sa, before.z_sa))
    )
    return {
        "kind": "plan",
        "number": number,
        "episodes": counts.episodes,
        "visits": visits,
        "played": changes((counts.played - before.played).reshape(rows, S * A)),
        "rewards": changes(sums),
        "starts": changes(counts.n_start - before.n_start),
        "baseline_returns": counts.baseline_returns.tolist(),
        "returns": changes(counts.return_weights - before.return_weights),
        "between": changes(between),
        "explorer": actions_of(grounds.explorer),
        "candidates": hexes(grounds.L),
        "by_model": hexes(grounds.by_model),
        "by_returns": hexes(grounds.by_returns) if evidence else None,
        "floor": hexes(grounds.floor),
        "upper": hexes(grounds.U) if relative else None,
        "h": plan.h,
        "rho": hexes(plan.rho),
        "source": plan.source,
        "safety": plan.safety,
        "lower": hexes(claimed_lower(plan, grounds)),
        "policy": hexes(plan.policy) if isinstance(plan.policy, np.ndarray) else None,
        "frozen": plan.frozen,
    }


def claimed_lower(plan: Plan, grounds: SpliceGrounds) -> float:
    """Return the value proved for what is played, not rounded up.

    Where it is the mean of two lower values (see `proved`), floats may round that mean up, and the
    verifier, which computes it exactly, would be right to refuse it.
    """
    agent = grounds.agent
    if plan.source != "mixture" or not isinstance(agent.floor, BaselineFloor):
        return grounds.lower
    L = [*grounds.L[:-1].tolist(), max(grounds.by_model, grounds.by_returns, agent.proved_before)]
    c, rho = int(np.flatnonzero(agent.h0 == plan.h)[0]), Fraction(plan.rho)
    exact = (1 - rho) * Fraction(L[c]) + rho * Fraction(L[c - 1])
    rounded = float(exact)
    return min(
        grounds.lower, math.nextafter(rounded, -math.inf) if Fraction(rounded) > exact else rounded
    )


def changes(grown: AnyArray) -> list[list[int]]:
    """Return the indices at which something was added, each followed by how much."""
    return [[*(int(i) for i in index), int(grown[tuple(index)])] for index in np.argwhere(grown)]


def actions_of(policy: Floats) -> list[Any]:
    """Return a deterministic policy as its actions (H, S), any other as hexadecimal floats (H,
    S, A).
    """
    chosen = policy.argmax(axis=-1)
    certain = np.array_equal(np.eye(policy.shape[-1])[chosen], policy)
    return list(chosen.tolist()) if certain else list(hexes(policy))
