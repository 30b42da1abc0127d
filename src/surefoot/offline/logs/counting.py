"""From a log to counts: one aggregation that DuckDB does in bounded memory. No row is ever seen by Python.

The log is glanced at first (its smallest and largest values, which Parquet files hold ready), so that steps, states and
actions can be packed into one number; then rewards are looked at, by pairs; then all of it is read once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.validation import REWARD_UNITS, require_integer
from surefoot.errors import InvalidLog, InvalidSetting
from surefoot.offline.logs.checking import LogReport, audit, first_problem
from surefoot.offline.logs.codebook import Codebook, Label, coded
from surefoot.offline.logs.folds import keys_of, mixed_in_sql
from surefoot.offline.logs.log_counts import LogCounts, Sums, require_size
from surefoot.offline.logs.reading import MEMORY, OpenLog, Paths, open_log
from surefoot.task.problem import LONGEST, Units

TEXT_IDS = (0, 2**52 - 1)  # in which the numbers of ids that are text lie
PACKED = 2**62  # keys up to here are packed into one integer
KEYS = ("step", "state", "action", "next_state", "terminated")
Declared = Sequence[Label] | int | None


def count_log(
    paths: Paths,
    *,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    horizon: int | None = None,
    states: Declared = None,
    actions: Declared = None,
    reward_range: tuple[float, float] | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
) -> LogCounts:
    """Count a log: Parquet, CSV or JSON; a file, several, or a glob.

    - seed: of the split into H folds (`surefoot.offline.logs.folds` says which episode goes where)
    - columns: what the log calls them, as in {"state": "segment"}
    - horizon: steps of an episode, counted from its first; left out, those of the longest. Longer ones are cut.
    - states, actions: all labels there are, or how many (0, 1, 2, ...). Left out, those in the log are taken for all:
      a state that exists and never occurred is then unknown to every certificate.
    - reward_range: the lowest and highest reward that is POSSIBLE; (0, 1) if left out and no other occurs
    - memory: what DuckDB may use before it writes to a temporary folder

    An episode that ended early must say so in the column terminated; the steps that are left are spent in a state of
    rest, where nothing is paid. Steps may be numbered from 1. What does not add up raises InvalidLog with the offending
    episodes. What is looked at here are totals: `check_log` looks at every episode.
    """
    with open_log(paths, columns, memory, threads) as log:
        source, glance = glanced(log, horizon, reward_range)
        return counted(source, glance, seed, states, actions)


class Source(Protocol):
    """Where a log lies, as `assemble` asks it: the counts themselves are handed over, the rest is asked if needed."""

    @property
    def where(self) -> str:
        """Its name, for messages."""
        ...

    def complaint(self, H: int | None) -> str:
        """What is wrong with the log, in words: its totals do not add up. H: as many steps are looked at."""
        ...

    def each_started_once(self, glance: "Glance", started: int, seed: int) -> bool:
        """Are the `started` rows of the first step of as many episodes?"""
        ...

    def early_ends(self, glance: "Glance", seed: int) -> list[tuple[int, int, int]]:
        """(step, fold, how many episodes of that fold terminated there), before the last step."""
        ...

    def sums_of_rewards(self, glance: "Glance", seed: int) -> Mapping[str, AnyArray]:
        """step, state, action and the columns of `Sums`; a pair may be there several times."""
        ...


@dataclass(frozen=True)
class Glance:
    """Smallest and largest values, and what follows from them."""

    rows: int
    first: int  # the number of the first step: 0 or 1
    H: int
    cut: bool  # are there longer episodes?
    reward_range: tuple[float, float]
    declared: bool  # is the range the one that is possible?
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        source: Source,
        rows: int,
        steps: tuple[int, int],
        rewards: tuple[float, float],
        horizon: int | None,
        reward_range: tuple[float, float] | None,
    ) -> "Glance":
        """From the smallest and largest step and reward. Refuses what no table could be made of."""
        first, last = (int(x) for x in steps)
        if first not in (0, 1):
            raise InvalidLog(
                f"{source.where}: steps are numbered from {first}, expected from 0 (or 1) in every episode. If earlier "
                "steps are missing, the episodes are not whole."
            )
        notes: tuple[str, ...] = ("Steps are numbered from 1: taken as 0, 1, 2, ...",) if first == 1 else ()
        longest = last - first + 1
        H = longest if horizon is None else require_horizon(horizon)
        if longest > H:
            notes += (f"Episodes are cut after {H} of at most {longest} steps.",)
        bounds, declared = _range(source, rewards, reward_range)
        return cls(int(rows), first, H, longest > H, bounds, declared, notes)


def require_horizon(horizon: object) -> int:
    """Steps of an episode, as many as can be."""
    H = require_integer("horizon", horizon, 1, InvalidSetting)
    if H > LONGEST:
        raise InvalidSetting(f"horizon is {H}, expected at most {LONGEST} steps.")
    return H


def _range(
    source: Source, seen: tuple[float, float], given: tuple[float, float] | None
) -> tuple[tuple[float, float], bool]:
    """The range rewards are rescaled by; and whether it is the one that is possible."""
    low, high = (float(x) for x in seen)
    if not -np.inf < low <= high < np.inf:
        raise InvalidLog(source.complaint(None))
    if given is None:
        return ((0.0, 1.0), True) if low >= 0.0 and high <= 1.0 else ((low, high if high > low else low + 1.0), False)
    try:
        low_end, high_end = given
        declared = Units(low_end, high_end)
    except (TypeError, ValueError):
        raise InvalidSetting(
            f"reward_range is {given!r}, expected (low, high), the rewards that are possible."
        ) from None
    if not (declared.admits(low) and declared.admits(high)):
        raise InvalidLog(
            f"{source.where}: rewards lie in {low:g}..{high:g}, outside the declared range ({declared.low:g}, "
            f"{declared.high:g}). Bounds for a narrower range prove nothing: declare a wider one."
        )
    return (declared.low, declared.high), True


@dataclass(frozen=True)
class Files:
    """A log on disk, read by DuckDB."""

    log: OpenLog
    ends: Mapping[str, tuple[int, int]]  # of id, and of state, action and next_state where those are integers

    @property
    def where(self) -> str:
        """The files."""
        return self.log.where

    def complaint(self, H: int | None) -> str:
        """All errors, with the offending episodes."""
        return first_problem(self.log, H)

    def aggregated(self, glance: Glance, keys: Sequence[str], values: str) -> dict[str, AnyArray]:
        """GROUP BY these keys. Integer keys are packed into one, which is quicker."""
        low, size = self._box(glance, keys)
        if size is None:
            found = self.log.ask(f"SELECT {', '.join(keys)}, {values} FROM {_rows(glance)} GROUP BY ALL")
            found["step"] = found["step"] - glance.first
        else:
            packed, lowest = "", 0
            for name, start, width in zip(keys, low, size, strict=True):
                column = f"{name}::INT" if name == "terminated" else name
                packed, lowest = f"({packed}) * {width} + {column}" if packed else column, lowest * width + start
            found = self.log.ask(f"SELECT {packed} AS packed, {values} FROM {_rows(glance)} GROUP BY ALL")
            left = found.pop("packed").astype(np.int64) - lowest
            for name, start, width in reversed(list(zip(keys, low, size, strict=True))):
                found[name] = left % width + (0 if name == "step" else start)
                left //= width
        found.setdefault("terminated", np.zeros(len(found["step"]), dtype=np.bool_))
        found["terminated"] = found["terminated"].astype(np.bool_)
        return found

    def _box(self, glance: Glance, keys: Sequence[str]) -> tuple[list[int], list[int] | None]:
        """The smallest value of each key and how many there can be; None where they do not fit into one integer."""
        if self.log.text & {"state", "action"}:
            return [], None
        ends = {"step": (glance.first, glance.first + glance.H - 1), "terminated": (0, 1), **self.ends}
        low, size = [ends[name][0] for name in keys], [ends[name][1] - ends[name][0] + 1 for name in keys]
        far = 0  # the largest number that packing meets on its way
        for name, width in zip(keys, size, strict=True):
            far = far * width + max(abs(end) for end in ends[name])
        return low, size if far < PACKED else None

    def fold(self, glance: Glance, seed: int) -> str:
        """The fold of a row's episode, in SQL."""
        return f"(({mixed_in_sql(keys_of(seed), *self.ends['id'])} * {glance.H}) >> 31)"

    def each_started_once(self, glance: Glance, started: int, seed: int) -> bool:
        """Two files may hold the same episode, or the same ids."""
        first = f"FROM log WHERE step = {glance.first}"
        low, high = self.ends["id"]
        if "episode" not in self.log.text and high - low + 1 == started:
            # Then each id in between must be there, once. A sum of hashes says so, and is quick.
            every = f"SELECT sum(hash(range)) FROM range({low}, {high + 1})"
            if self.log.row(f"SELECT (SELECT sum(hash(id)) {first}) = ({every})")[0]:
                return True
        for name in ("id", "episode"):  # numbers first: where those differ, so do the texts behind them
            (distinct,) = self.log.row(f"SELECT count(*) FROM (SELECT DISTINCT {name} {first})")
            if distinct == started:
                return True
        return False

    def early_ends(self, glance: Glance, seed: int) -> list[tuple[int, int, int]]:
        """A short table."""
        last = glance.first + glance.H - 1
        rows = self.log.rows(
            f"SELECT step - {glance.first}, {self.fold(glance, seed)} AS fold, count(*) FROM log "
            f"WHERE terminated AND step < {last} GROUP BY ALL"
        )
        return [(int(step), int(fold), int(n)) for step, fold, n in rows]

    def sums_of_rewards(self, glance: Glance, seed: int) -> Mapping[str, AnyArray]:
        """By pair. Each term is a whole number below 2^21, so a float64 holds the sum exactly."""
        low, high = glance.reward_range
        x = f"least(greatest((reward - {low!r}) / {high - low!r}, 0.0), 1.0) * {REWARD_UNITS}.0"
        return self.log.ask(
            f"SELECT step - {glance.first} AS step, state, action, sum(whole) AS x_sa, "
            f"coalesce(sum(whole) FILTER (in_fold), 0.0) AS x_fold, "
            f"sum(floor((x - whole) * {REWARD_UNITS}.0)) AS rest_of_sum "
            f"FROM (SELECT *, floor(x) AS whole, {self.fold(glance, seed)} = step - {glance.first} AS in_fold "
            f"FROM (SELECT *, {x} AS x FROM {_rows(glance)})) GROUP BY ALL"
        )


def glanced(log: OpenLog, horizon: int | None, reward_range: tuple[float, float] | None) -> tuple[Files, Glance]:
    """Ask for the smallest and largest values."""
    asked = ["step", "reward", *(name for name in ("episode", "state", "action", "next_state") if _whole(log, name))]
    extremes = ", ".join(f"min({name}), max({name})" for name in asked)
    counted = ", ".join(f"count({name})" for name in ("episode", *KEYS[:4], "reward", *KEYS[4:], "truncated"))
    found = log.row(f"SELECT count(*), {counted}, {extremes} FROM log")
    rows, filled, ends = found[0], found[1:9], found[9:]
    if min(filled) < rows:
        raise InvalidLog(first_problem(log))
    pairs = {name: (ends[2 * i], ends[2 * i + 1]) for i, name in enumerate(asked)}
    whole = {name: (int(low), int(high)) for name, (low, high) in pairs.items() if name not in ("step", "reward")}
    source = Files(log, {**whole, "id": whole.get("episode", TEXT_IDS)})
    return source, Glance.of(source, rows, pairs["step"], pairs["reward"], horizon, reward_range)


def _whole(log: OpenLog, name: str) -> bool:
    """Is the column of integers?"""
    return {"next_state": "state"}.get(name, name) not in log.text


def _rows(glance: Glance) -> str:
    """The rows that count: all but those cut off."""
    return f"log WHERE step < {glance.first + glance.H}" if glance.cut else "log"


def counted(source: Files, glance: Glance, seed: int, states: Declared, actions: Declared) -> LogCounts:
    """The counts of an open log."""
    paid = source.aggregated(glance, KEYS[:3], "min(reward) AS low, max(reward) AS high")
    varied = bool((paid["low"] < paid["high"]).any())
    in_fold = f"{source.fold(glance, seed)} = step - {glance.first}"
    values = f"count(*) AS n, count(*) FILTER ({in_fold}) AS n_fold"
    if varied:
        values += ", min(reward) AS low, max(reward) AS high"  # a pair varies: does each of its transitions?
    keys = [name for name in KEYS if name != "terminated" or "terminated" in source.log.flags]
    table = source.aggregated(glance, keys, values)
    return assemble(source, glance, table, None if varied else paid, seed, states, actions)


def assemble(
    source: Source,
    glance: Glance,
    table: Mapping[str, AnyArray],
    paid: Mapping[str, AnyArray] | None,
    seed: int,
    states: Declared,
    actions: Declared,
) -> LogCounts:
    """Numbers for labels, the state of rest, and whether it all adds up.

    `paid` has what each pair was paid where that did not vary; else the table has the extremes of each transition.
    """
    seen = table if paid is None else paid
    if not (np.isfinite(seen["low"]).all() and np.isfinite(seen["high"]).all()):
        raise InvalidLog(source.complaint(None))  # a glance does not see NaN: extremes that Parquet holds leave it out
    H, ended, h = glance.H, np.asarray(table["terminated"]), np.asarray(table["step"], dtype=np.int64)
    n, n_fold = (np.asarray(table[name], dtype=np.int64) for name in ("n", "n_fold"))
    labels, numbers = coded("state", np.concatenate([table["state"], table["next_state"]]), states)
    s, s_next = numbers[: len(n)], numbers[len(n) :]
    action_labels, a = coded("action", np.asarray(table["action"]), actions)
    early, last_ends = ended & (h < H - 1), int(n[ended & (h == H - 1)].sum())
    codebook = Codebook(labels, action_labels, rest=bool(early.any()))
    require_size((H, codebook.S, codebook.A, codebook.S), {"H": H, "S": codebook.S, "A": codebook.A})
    _require_flow(source, glance, h, s, s_next, n, early, codebook.S)
    if not source.each_started_once(glance, int(n[h == 0].sum()), seed):
        raise InvalidLog(source.complaint(H))
    if paid is None:
        low, high = (np.asarray(table[name], dtype=np.float64) for name in ("low", "high"))
    else:
        by_pair = np.zeros((H, codebook.S, codebook.A))
        by_pair[_places(paid, codebook)] = paid["low"]
        low = high = by_pair[h, s, a]
    notes = glance.notes
    if codebook.rest:
        rest = codebook.S - 1
        s_next = np.where(ended, rest, s_next)
        ended_at, in_fold = _ends(source, glance, seed)
        if not glance.reward_range[0] <= 0.0 <= glance.reward_range[1]:
            raise InvalidLog(
                f"{source.where}: some episodes end early, and nothing is paid after that, but 0 is not in the range "
                f"of rewards {glance.reward_range}. Declare one that holds 0."
            )
        notes += (f"{int(ended_at.sum()):,} episodes end early; they rest in a state of its own to the last step.",)
        resting = np.flatnonzero(np.cumsum(ended_at)[:-1]) + 1  # steps at which some episode rests
        h = np.concatenate([h, resting])
        s, s_next = (np.concatenate([x, np.full(len(resting), rest)]) for x in (s, s_next))
        a = np.concatenate([a, np.zeros(len(resting), dtype=np.int64)])
        n = np.concatenate([n, np.cumsum(ended_at)[resting - 1]])
        n_fold = np.concatenate([n_fold, in_fold[resting]])
        low, high = (np.concatenate([x, np.zeros(len(resting))]) for x in (low, high))
    place, n, n_fold, low, high = _merged(
        ((h * codebook.S + s) * codebook.A + a) * codebook.S + s_next, n, n_fold, low, high
    )
    found = LogCounts(
        H=H,
        codebook=codebook,
        episodes=int(n[place < codebook.S * codebook.A * codebook.S].sum()),
        rows=glance.rows,
        seed=seed,
        reward_range=glance.reward_range,
        declared=glance.declared,
        notes=notes,
        place=place,
        n=n,
        n_fold=n_fold,
        low=low,
        high=high,
        sums=None,
        last_ends=0 if codebook.rest else last_ends,
    )
    if (low < high).any():
        return replace(found, sums=_sums(source, glance, seed, codebook, found))
    return found


def _merged(key: Ints, n: Ints, n_fold: Ints, low: Floats, high: Floats) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Each place once, in ascending order."""
    place, at = np.unique(key, return_inverse=True)
    whole = [np.zeros(len(place), dtype=np.int64) for _ in range(2)]
    least, most = np.full(len(place), np.inf), np.full(len(place), -np.inf)
    for total, part in zip(whole, (n, n_fold), strict=True):
        np.add.at(total, at, part)
    np.minimum.at(least, at, low)
    np.maximum.at(most, at, high)
    return place, whole[0], whole[1], least, most


def _require_flow(
    source: Source, glance: Glance, h: Ints, s: Ints, s_next: Ints, n: Ints, early: AnyArray, S: int
) -> None:
    """As many episodes must leave a state at step h + 1 as arrived there at step h and had not ended."""
    arrived, left = np.zeros((glance.H + 1, S), dtype=np.int64), np.zeros((glance.H + 1, S), dtype=np.int64)
    np.add.at(arrived, (np.where(early, 0, h + 1), s_next), np.where(early, 0, n))
    np.add.at(left, (h, s), n)
    if not np.array_equal(arrived[1:-1], left[1:-1]):
        raise InvalidLog(source.complaint(glance.H))


def _ends(source: Source, glance: Glance, seed: int) -> tuple[Ints, Ints]:
    """How many episodes ended early at each step; and how many of fold h had ended before step h."""
    at, in_fold = np.zeros(glance.H, dtype=np.int64), np.zeros(glance.H, dtype=np.int64)
    for step, fold, n in source.early_ends(glance, seed):
        at[step] += n
        if step < fold:
            in_fold[fold] += n
    return at, in_fold


def _sums(source: Source, glance: Glance, seed: int, codebook: Codebook, of: LogCounts) -> Sums:
    """Sums of random rewards by pair."""
    found = source.sums_of_rewards(glance, seed)
    places = _places(found, codebook)
    tables = []
    for name in Sums._fields:
        table = np.zeros((of.H, of.S, of.A), dtype=np.int64)
        np.add.at(table, places, np.asarray(found[name]).astype(np.int64))
        tables.append(table)
    if of.absorbing_state is not None:  # what is known of rest is summed, as a learner does
        nothing = int(np.floor(of.nothing * REWARD_UNITS))
        for table, counts in zip(tables, (of.n, of.n_fold), strict=False):
            resting = (of.place // of.S) % (of.S * of.A) == of.absorbing_state * of.A
            table[of.place[resting] // (of.S * of.A * of.S), of.absorbing_state, 0] = nothing * counts[resting]
    return Sums(*tables)


def _places(table: Mapping[str, AnyArray], codebook: Codebook) -> tuple[Ints, Ints, Ints]:
    """The numbers of step, state and action of each row."""
    s, a = coded("state", table["state"], codebook.states)[1], coded("action", table["action"], codebook.actions)[1]
    return np.asarray(table["step"], dtype=np.int64), s, a


def check_log(
    paths: Paths,
    *,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    horizon: int | None = None,
    states: Declared = None,
    actions: Declared = None,
    reward_range: tuple[float, float] | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
) -> LogReport:
    """Look at every episode of a log: is it whole, does each state follow from the last, what is there and what is not.

    Arguments as in `count_log`; what that would give is in `report.counted`. What cannot be read at all raises
    InvalidLog; everything else is a finding.
    """
    steps = None if horizon is None else require_horizon(horizon)
    with open_log(paths, columns, memory, threads) as log:
        report = audit(log, steps)
        if not report.usable:
            return report
        try:
            source, glance = glanced(log, horizon, reward_range)
            found = counted(source, glance, seed, states, actions)
        except InvalidLog as refusal:
            return report.with_error(str(refusal))
        return report.with_counts(found)
