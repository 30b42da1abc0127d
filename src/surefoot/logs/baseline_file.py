"""From a log to a baseline: learn from counts, certify, report, save. `surefoot baseline` prints
what is made here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.base.arrays import AnyArray, Floats
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.validation import FrozenRecord, at_least, freeze
from surefoot.bounds import Certificate
from surefoot.bounds.alike import compared, require_alike
from surefoot.errors import InvalidFile, InvalidModel, InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.logs.codebook import Codebook, codebook_from, codebook_text, coding_of
from surefoot.logs.log_counts import LogCounts
from surefoot.logs.methods import METHODS
from surefoot.logs.methods.learnt import Learnt, Missing, logged_lower, returns_lower
from surefoot.logs.methods.vi_lcb import VI_LCB
from surefoot.model.names import NO_NAMES
from surefoot.model.policy import check_policy
from surefoot.model.problem import Problem
from surefoot.model.rows import NO_VALUES, Rows, offsets
from surefoot.model.units import Units, with_rescaled

PROBLEM = ("r", "r_next", "unknown", "support", "start")  # the arrays of a problem
ADDED = ("ended_state", "unseen_state")  # states that no row of a log names


def all_counts(log: LogCounts, problem: Problem) -> Counts:
    """Return all counts, pooled over steps if the problem is stationary; refuse a log whose
    steps are not alike.
    """
    if not problem.stationary:
        return log.counts
    pooled = log.counts.pool()
    require_alike(pooled.steps, problem)
    return pooled


@dataclass(frozen=True, eq=False, repr=False)
class Baseline(FrozenRecord):
    """A baseline in a file: the policy, its certificate, its problem, and the labels of states
    and actions.
    """

    policy: Floats
    certificate: Certificate | None  # None: nothing is certified about the policy
    problem: Problem
    codebook: Codebook
    method: str
    episodes: int  # how many the log has

    def __post_init__(self) -> None:
        freeze(self, policy=np.array(self.policy))

    @classmethod
    def of(cls, learnt: Learnt, codebook: Codebook) -> "Baseline":
        """Return the baseline that was learnt from a log, with the codebook of the log."""
        certificate = learnt.certificate if learnt.certified else None
        return cls(
            learnt.policy, certificate, learnt.problem, codebook, learnt.method, learnt.episodes
        )

    def save(self, path: str | Path) -> None:
        """Write an .npz file: plain arrays and JSON, with a version and a content hash.
        `load_policy` reads it, too.
        """
        problem = self.problem
        known = problem.arguments()
        lower = delta = None
        if self.certificate is not None:
            lower, delta = self.certificate.rescaled, self.certificate.delta
            lower = problem.level(self.certificate.value) if lower is None else lower
        about = {
            "method": self.method,
            "episodes": self.episodes,
            "lower": lower,
            "delta": delta,
            "H": problem.H,
            "stationary": problem.stationary,
            "rewards_at_least": problem.rewards_at_least,
            "units": [problem.units.low, problem.units.high, problem.units.steps],
        }
        if problem.units.name:
            about["unit"] = problem.units.name
        about |= {name: known[name] for name in ADDED if known[name] is not None}
        if problem.names not in (NO_NAMES, self.codebook.names):  # names of one's own
            about["names"] = list(problem.names)
        if problem.mask is not None:
            about["support_steps"] = problem.mask.rows
        if problem.paid is not None:
            about |= {"r_next_steps": problem.paid.rows, "elsewhere": problem.paid.elsewhere}
        arrays: dict[str, AnyArray] = {
            f"problem_{name}": _stored(name, known[name])
            for name in PROBLEM
            if known[name] is not None and not isinstance(known[name], str)
        }
        arrays |= {
            "policy": self.policy,
            "codebook": codebook_text(self.codebook),
            "learnt": np.array(json.dumps(about)),
        }
        write_arrays(path, "policy", arrays)

    @property
    def words(self) -> str:
        """What the baseline is, and what is certified about it, in the user's units."""
        learnt = f"{self.method}, from {self.episodes:,} episodes"
        if self.certificate is None:
            return f"{learnt}. Nothing is certified about it."
        worth = f"{at_least(self.certificate.value)} {self.problem.units.name}".rstrip()
        sure = at_least(1 - self.certificate.delta)
        return (
            f"{learnt}: certified to be worth at least {worth} per episode with probability {sure}."
        )

    def __repr__(self) -> str:
        return f"Baseline({self.method}, {self.certificate or 'nothing certified'}, {self.problem})"


def load_baseline(path: str | Path) -> Baseline:
    """Read what `Baseline.save` wrote, and validate it like any other input."""
    _, arrays = read_arrays(path, {"policy": ("policy", "codebook", "learnt")})
    codebook = codebook_from(path, arrays)
    try:
        about = json.loads(str(arrays["learnt"]))
        given: dict[str, Any] = {
            name: arrays[f"problem_{name}"] for name in PROBLEM if f"problem_{name}" in arrays
        }
        given.setdefault("start", "unknown")
        given |= _read_lists(given, arrays["policy"].shape, about)
        low, high, steps = about["units"]
        units = Units(float(low), float(high), int(steps), str(about.get("unit", "")))
        claims: dict[str, Any] = {
            name: bool(about[name]) for name in ("stationary", "rewards_at_least")
        }
        given |= {name: int(about[name]) for name in ADDED if name in about}
        problem = Problem(**with_rescaled(given), **claims, H=int(about["H"]), units=units)
        problem = problem.with_coding(coding_of(codebook), codebook.names)
        if "names" in about:
            problem = problem.with_names(*about["names"])
        policy = check_policy(arrays["policy"], problem, f"policy in {path}")
        certificate = None
        if about["lower"] is not None:
            certificate = Certificate.of(
                policy, problem, float(about["lower"]), float(about["delta"])
            )
        return Baseline(
            policy, certificate, problem, codebook, str(about["method"]), int(about["episodes"])
        )
    except (KeyError, TypeError, ValueError) as reason:
        if isinstance(reason, InvalidFile):
            raise
        raise InvalidFile(
            f"{path}: what it says about the baseline is damaged ({reason}). Restore a copy."
        ) from None


def _stored(name: str, given: Any) -> AnyArray:
    """Return an argument of a problem as one array; lists as one column for each entry: list,
    next state, reward.
    """
    if not isinstance(given, Rows):
        return np.asarray(given)
    columns = [given.places, given.state]
    return np.stack([*columns, given.value] if name == "r_next" else columns)


def _read_lists(
    given: dict[str, Any], shape: tuple[int, ...], about: dict[str, Any]
) -> dict[str, Any]:
    """Return those arguments that were stored as lists, for a policy of this shape."""
    H, S, A = shape
    read: dict[str, Any] = {}
    for name, columns in (("support", 2), ("r_next", 3)):
        if f"{name}_steps" not in about:
            continue
        table, steps = given[name], about[f"{name}_steps"]
        if (
            steps not in (1, H)
            or table.ndim != 2
            or len(table) != columns
            or (table[:2] != np.floor(table[:2])).any()
        ):
            raise InvalidModel(
                f"{name} has lists in an array of shape {table.shape}, for {steps} steps"
            )
        (place, state), lists = table[:2].astype(np.int64), steps * S * A
        if not ((place >= 0) & (place < lists)).all() or (np.diff(place * S + state) <= 0).any():
            raise InvalidModel(f"{name} has lists that are out of order")
        value, elsewhere = NO_VALUES, 0.0
        if columns == 3:
            value, elsewhere = table[2], float(about["elsewhere"])
        first = offsets(np.bincount(place, minlength=lists))
        read[name] = Rows(first, state, value, S, A, elsewhere)
    return read


def rules(baseline: Baseline) -> list[dict[str, Any]]:
    """Return, for each step (from 0, as in arrays) and state, the actions that are played, by
    their labels.
    """
    pi, book = baseline.policy, baseline.codebook
    return [
        {
            "step": h,
            "state": book.state_label(s),
            "actions": {str(book.actions[a]): float(pi[h, s, a]) for a in np.flatnonzero(pi[h, s])},
        }
        for h in range(len(pi))
        for s in range(len(book.states))
    ]


def learn_baseline(
    log: LogCounts, problem: Problem, delta: float, method: str = "robust"
) -> Learnt:
    """Learn from a log by one of METHODS: robust (the default), vi-lcb and vi-lcb-first (the
    paper's), clone, spibb.
    """
    if method not in METHODS:
        raise InvalidSetting(f"method is {method!r}, expected one of {', '.join(METHODS)}.")
    chosen = METHODS[method]
    # steps that are not alike are refused, whatever the method makes of them
    counts = all_counts(log, problem)
    return chosen.learn(log.fold_counts if chosen.by_folds else counts, problem, delta)


def report(
    log: LogCounts, learnt: Learnt, missing: Missing, returns: Floats | None = None
) -> dict[str, Any]:
    """Return the numbers of a report, in the user's units. `returns`: of each episode, where the
    log is there.
    """
    floor, needed = missing.floor, missing.episodes
    problem, delta = learnt.problem, learnt.delta
    user = problem.units.to_user
    logged = (
        logged_lower(problem, log.counts, delta)
        if returns is None
        else returns_lower(problem, returns, delta)
    )
    return {
        "method": learnt.method,
        "H": log.H,
        "S": log.S,
        "A": log.A,
        "coverage": log.coverage,
        "episodes": log.episodes,
        "delta": delta,
        "logged_mean_return": log.mean_return,
        "logged_certified": user(logged),
        "certified": learnt.certified,
        "certified_value": learnt.lower if learnt.certified else None,
        "estimated_value": learnt.estimate,
        "floor": floor,
        "cleared": None if floor is None else learnt.clears(floor),
        "episodes_needed": None if needed is None else _or_never(needed),
        "corollary": None if floor is None else [_or_never(n) for n in learnt.corollary(floor)],
        "premises": list(premises(log, learnt)),
        "savings": [
            {
                "what": saving.what,
                "python": saving.python,
                "option": saving.option,
                "certified_value": saving.lower,
            }
            for saving in missing.savings
        ],
    }


def _or_never(episodes: float) -> int | None:
    """Return None for infinity, which JSON does not have."""
    return None if episodes == np.inf else int(episodes)


def premises(log: LogCounts, learnt: Learnt) -> Iterator[str]:
    """Yield what a certificate from a log assumes without proof."""
    problem, unknown = learnt.problem, learnt.problem.unknown_rows is not None
    low, high = log.reward_range
    predicted = "the next state or the reward" if unknown else "the next state"
    yield "the log is complete: no episode was left out because of how it went"
    yield (
        "actions were chosen by the recorded state, not by further knowledge that predicts "
        f"{predicted}"
    )
    yield (
        "the process is still the one that wrote the log, and the same state, action and step "
        "always have the same transition probabilities"
    )
    yield f"every reward lies in {low:g}..{high:g} (declared by you)"
    yield from _states(log)
    if unknown:
        yield (
            "rewards are unknown: all that is used is that each state, action and step has a fixed "
            "mean"
        )
    else:
        yield (
            "each pair (or transition) always pays what it paid in the log, or what your table "
            "says (declared by you)"
        )
    if problem.one_start:
        yield (
            f"every episode starts in state {log.codebook.state_label(problem.s1)!r} (declared by "
            "you)"
        )
    elif problem.start is None:
        yield (
            "the start is unknown: all that is used is that first states are drawn from a fixed "
            "distribution"
        )
    else:
        yield ("first states are drawn with the probabilities you gave (declared by you)")
    if not problem.limits.says_nothing(len(log.codebook.states)):
        yield ("only the transitions of the mask are possible (declared by you)")
    if problem.stationary:
        yield (
            "dynamics and rewards do not depend on the step (declared by "
            f"you{compared(learnt.counts)})"
        )
    else:
        yield (
            "whether dynamics or rewards depend on the step is unknown: nothing is said about it"
        )
    if learnt.method in VI_LCB.values():
        yield (
            "a single policy wrote the whole log, and neither the number of episodes nor their ids "
            "depend on how they went"
        )


def _states(log: LogCounts) -> Iterator[str]:
    """Yield the premises about states and ends."""
    if log.unseen_state is not None:
        yield (
            "which states there are is unknown: what is not in the log counts as one more state, "
            "which is never left and pays the least"
        )
    else:
        yield (f"the {len(log.codebook.states)} states are all there are (declared by you)")
    if log.absorbing_state is not None:
        yield (
            f"after an early end each remaining step pays {log.after_end:g} (declared by you, or "
            "nothing)"
        )
    elif log.unseen_state is None:
        yield (
            f"no episode ends before its {log.H} steps (declared by you: an end would be one more "
            "state)"
        )
