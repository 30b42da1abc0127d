"""The file of a guard's state: its tickets, the baseline's logged returns, and who was admitted
when. No pickle.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.files import read_arrays, strict_json, write_arrays
from surefoot.base.nodes import EPISODE, FINE, NODES, OUTSIDE, PLACES
from surefoot.errors import InvalidFile
from surefoot.guard.evidence import STEP, weights_of
from surefoot.guard.state import OPEN, Columns, GuardState, PolicyRecord, Proved, Tickets

KIND = "guard-state"
ARRAYS = ("policy", "code", "ret", "mark", "logged", "proved", "proved_by", "about_guard")
MOST = 2**40  # of whatever is counted: sums of weights are below 2^62


def write_state(path: str | Path, state: GuardState) -> None:
    """Write a state, whole or not at all."""
    write_arrays(path, KIND, state_arrays(state))


def state_arrays(state: GuardState) -> dict[str, Any]:
    """Return a state as it is stored."""
    logged = state.logged
    about = {
        "guard": state.guard,
        "run": state.run,
        "alarm": state.alarm,
        "logged": 0 if logged is None else logged.heard,
        "missing": 0 if logged is None else logged.missing,
        "policies": [
            [p.name, p.fingerprint, p.admitted, p.withdrawn, p.reason] for p in state.policies
        ],
    }
    return {
        **state.tickets.columns._asdict(),
        "logged": np.zeros(PLACES, dtype=np.int64) if logged is None else logged.settled,
        "proved": np.array([[p.lower.value, p.upper.value] for p in state.policies]),
        "proved_by": np.array([[p.lower.tickets, p.upper.tickets] for p in state.policies]),
        "about_guard": json.dumps(about),
    }


def read_state(path: str | Path, guard: str, low: float, high: float) -> GuardState:
    """Return the state in a file, if it is of this guard and whole."""
    _, arrays = read_arrays(path, {KIND: ARRAYS}, ())
    return state_from(path, arrays, guard, low, high)


def state_from(
    path: str | Path, arrays: dict[str, AnyArray], guard: str, low: float, high: float
) -> GuardState:
    """Return the state that is stored in these arrays of a file."""
    try:
        about = strict_json(str(arrays["about_guard"]))
        columns = Columns(arrays["policy"], arrays["code"], arrays["ret"], arrays["mark"])
        state = None
        if about["guard"] == guard:
            state = _state(about, columns, arrays["logged"], low, high)
            state = _with_proofs(state, arrays["proved"], arrays["proved_by"])
    except (ValueError, KeyError, TypeError, IndexError) as reason:
        raise InvalidFile(
            f"{path}: its content is impossible ({reason}). The file is damaged: restore a copy."
        ) from None
    if state is None:
        raise InvalidFile(f"{path} belongs to another guard: floor, range, delta or stages differ.")
    return state


def _state(
    about: dict[str, Any], columns: Columns, logged: Ints, low: float, high: float
) -> GuardState:
    """Return the state, or raise ValueError if these cannot be of one."""
    names = about["policies"]
    policy, code, ret, _ = columns
    _require(len({name[0] for name in names}) == len(names) > 0, "two policies of one name")
    _require(
        names[0][2:4] == [0, None] and isinstance(about["alarm"], str),
        "no baseline, or no text of an alarm",
    )
    numbers = [
        about["logged"],
        about["missing"],
        *(name[2] for name in names),
        *(name[3] or 0 for name in names),
    ]
    _require(
        all(type(number) is int and 0 <= number < MOST for number in numbers),
        "a number that counts nothing",
    )
    admissions = [name[2] for name in names]
    _require(admissions == sorted(admissions), "policies are not in the order of their admission")
    shown = [(column.ndim, len(column), column.dtype.str) for column in columns]
    wanted = [(1, len(policy), kind) for kind in ("<i8", "<i8", "<f8", "<i8")]
    _require(shown == wanted, "columns of tickets differ in length, or have other types")
    _require(
        logged.shape == (PLACES,) and logged.dtype == np.int64,
        "logged returns are not spread over nodes",
    )
    _require(
        bool(((logged >= 0) & (logged < MOST * EPISODE)).all())
        and sum(logged.tolist()) == about["logged"] * EPISODE,
        "logged returns are lost",
    )
    _require(bool(((policy >= 0) & (policy < len(names))).all()), "a ticket of nobody")
    known = code != OPEN
    node, above = code[known] // STEP, code[known] % STEP
    _require(
        bool(((node >= 0) & (node < OUTSIDE - 1) & (above <= EPISODE)).all()), "a return at no node"
    )
    nodes = np.array(NODES) / FINE
    near = nodes[node] + (nodes[node + 1] - nodes[node]) * (above / EPISODE)
    _require(
        bool((np.abs(near - (ret[known] - low) / (high - low)) < 1e-6).all()),
        "a return at another node",
    )
    _require(bool(np.isnan(ret[~known]).all()), "a return of an open ticket")
    records = []
    for p, (name, fingerprint, admitted, withdrawn, reason) in enumerate(names):
        mine = policy == p
        codes = code[mine & known]
        last = len(policy) if withdrawn is None else withdrawn
        _require(
            0 <= admitted <= last <= len(policy), "a policy was withdrawn before it was admitted"
        )
        first = int(np.argmax(mine)) if mine.any() else admitted
        _require(
            admitted <= first and not mine[last:].any(),
            "a ticket of a policy that was not admitted",
        )
        _require(
            all(isinstance(text, str) for text in (name, reason, fingerprint or "")),
            "a name that is no text",
        )
        records.append(
            PolicyRecord(
                name,
                fingerprint,
                admitted,
                withdrawn,
                reason,
                weights_of(codes),
                len(codes),
                int(mine.sum()) - len(codes),
            )
        )
    before = PolicyRecord(
        names[0][0], names[0][1], 0, None, "", logged, about["logged"], 0, about["missing"]
    )
    b = records[0]
    records[0] = replace(
        b, settled=b.settled + logged, heard=b.heard + before.heard, missing=before.missing
    )
    run = about["run"]
    _require(isinstance(run, str), "a run that is no text")
    return GuardState(
        about["guard"], tuple(records), Tickets.of(columns), before, about["alarm"], run
    )


def _with_proofs(state: GuardState, proved: Floats, proved_by: Ints) -> GuardState:
    """Return the state that remembers these bounds; whether they hold is for the guard to say."""
    _require(
        proved.shape == proved_by.shape == (len(state.policies), 2), "bounds of other policies"
    )
    _require(proved.dtype == np.float64 and proved_by.dtype == np.int64, "bounds of other types")
    _require(
        bool((np.isfinite(proved) & (proved >= 0.0)).all()),
        "bounds that are no numbers, or below nothing",
    )
    rows = zip(state.policies, proved.tolist(), proved_by.tolist(), strict=True)
    policies = [
        p.with_proofs(*(Proved(v, n) for v, n in zip(values, by, strict=True)))
        for p, values, by in rows
    ]
    return replace(state, policies=tuple(policies))


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)
