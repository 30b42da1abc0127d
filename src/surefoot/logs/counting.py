"""From a log to counts: one aggregation that DuckDB does in bounded memory. Python never sees a
single row.

A first query asks for the smallest and largest values (Parquet files store them), so that step,
state and action can be packed into one number. A second one looks at the rewards of each pair. Then
the whole log is read once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from surefoot.base.arrays import AnyArray, Floats, Ints
from surefoot.base.bets import between
from surefoot.base.validation import (
    LARGEST_NUMBER,
    LONGEST,
    REWARD_UNITS,
    require_integer,
    require_number,
)
from surefoot.errors import InvalidLog, InvalidSetting
from surefoot.logs.cells import MEMORY, Paths
from surefoot.logs.checking import audit, first_problem
from surefoot.logs.codebook import Codebook, Declared, coded
from surefoot.logs.folds import keys_of, mixed_in_sql
from surefoot.logs.log_counts import LogCounts
from surefoot.logs.log_tables import Sums, require_size
from surefoot.logs.reading import OpenLog, open_log
from surefoot.model.units import Units

TEXT_IDS = (0, 2**52 - 1)  # the range of the numbers that stand for ids that are text
PACKED = 2**62  # keys up to here are packed into one integer
KEYS = ("step", "state", "action", "next_state", "terminated")


def count_log(
    paths: Paths,
    *,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    horizon: int | None = None,
    states: Declared = None,
    actions: Declared = None,
    reward_range: tuple[float, float] | None = None,
    after_end: float | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
    delimiter: str | None = None,
) -> LogCounts:
    """Count a log: Parquet, CSV, TSV or JSON lines; one file, several files, or a glob.

    - seed: of the split into H folds (`surefoot.logs.folds` says which episode goes where)
    - columns: the names of the columns in the log, as in {"state": "segment"}
    - horizon: the steps of an episode, counted from its first one. Default: those of the longest
      episode. Longer episodes are cut.
    - states: all labels that exist, or how many (0, 1, 2, ...), or "as logged": you assert that
      those in the log are all. Default: there may be others. One more state stands for them, which
      pays the least that is possible.
    - actions: all labels that exist, or how many. Default: those in the log. (Others are never
      played.)
    - reward_range: the lowest and the highest reward that is POSSIBLE. Without it a log is counted,
      but nothing can be certified: the rewards that were seen are not all that are possible.
    - after_end: what is paid at each step after an early end. Default: nothing, which the range
      must then contain.
    - memory: what DuckDB may use before it writes to a temporary folder
    - delimiter: what separates the fields of a CSV: ",", ";", "|" or a tab. Default: what the
      ending says, a comma for .csv, a tab for .tsv

    An episode that ended early must say so in the column terminated; it spends the remaining steps
    in an absorbing state. Steps may be numbered from 1. Totals that do not add up raise InvalidLog,
    which names episodes and rows with errors. Only totals are checked here: `check_log` looks at
    every episode.
    """
    with open_log(paths, columns, memory, threads, delimiter) as log:
        source, glance = glanced(log, horizon, reward_range, after_end)
        return counted(source, glance, seed, states, actions)


class Source(Protocol):
    """Where a log is stored. `assemble` is given the counts, and asks the source for more where
    it needs it.
    """

    @property
    def where(self) -> str:
        """The name of the log, for messages."""
        ...

    def complaint(self, H: int | None) -> str:
        """Say what is wrong with a log whose totals do not add up. H: how many steps are looked
        at.
        """
        ...

    def each_started_once(self, glance: "Glance", started: int) -> bool:
        """Return whether the `started` rows of the first step belong to as many episodes."""
        ...

    def early_ends(self, glance: "Glance", seed: int) -> list[tuple[int, int, int]]:
        """Return (step, fold, how many episodes of that fold terminated there) for all steps
        before the last.
        """
        ...

    def faults_of_cuts(self, glance: "Glance") -> str:
        """Where rows before the last step say that they are cut, return what is wrong with the
        episodes. Totals may add up all the same, by rows of others whose first steps are missing.
        """
        ...

    def sums_of_rewards(self, glance: "Glance", seed: int) -> Mapping[str, AnyArray]:
        """Return step, state, action and the columns of `Sums`; a pair may occur several times."""
        ...


@dataclass(frozen=True)
class Glance:
    """The smallest and largest values of a log, and what follows from them."""

    rows: int
    first: int  # the number of the first step: 0 or 1
    H: int
    cut: bool  # are longer episodes cut?
    reward_range: tuple[float, float]
    declared: bool  # is this the range of all possible rewards?
    after_end: float | None  # what is paid after an early end; None: nothing was declared
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
        after_end: float | None,
    ) -> "Glance":
        """Make it from the smallest and largest step and reward. Refuse a log that no table
        could be made of.
        """
        first, last = (int(x) for x in steps)
        if first not in (0, 1):
            raise InvalidLog(
                f"{source.where}: steps are numbered from {first}, expected from 0 (or 1) in every "
                "episode. If earlier steps are missing, the episodes are incomplete."
            )
        notes: tuple[str, ...] = (
            ("Steps are numbered from 1. They are read as 0, 1, 2, ...",) if first == 1 else ()
        )
        longest = last - first + 1
        H = longest if horizon is None else require_horizon(horizon)
        if longest > H:
            notes += (f"Episodes are cut after {H} steps; the longest one has {longest}.",)
        bounds, declared = _range(source, rewards, reward_range)
        paid = None if after_end is None else _after_end(after_end, bounds, declared)
        return cls(int(rows), first, H, longest > H, bounds, declared, paid, notes)


def require_horizon(horizon: object) -> int:
    """Check the number of steps of an episode."""
    H = require_integer("horizon", horizon, 1, InvalidSetting)
    if H > LONGEST:
        raise InvalidSetting(f"horizon is {H}, expected at most {LONGEST} steps.")
    return H


def _range(
    source: Source, seen: tuple[float, float], given: tuple[float, float] | None
) -> tuple[tuple[float, float], bool]:
    """Return the range that rewards are rescaled by, and whether it is the range of all possible
    rewards.
    """
    low, high = (float(x) for x in seen)
    if not -np.inf < low <= high < np.inf:
        raise InvalidLog(source.complaint(None))
    if given is None:  # what was seen is not what is possible: this range only serves to count
        return (min(low, 0.0), max(high, 1.0)), False
    declared = declared_units(given)
    if not (declared.admits(low) and declared.admits(high)):
        raise InvalidLog(
            f"{source.where}: rewards lie in {low:g}..{high:g}, outside the declared range "
            f"({declared.low:g}, {declared.high:g}). Bounds for a narrower range prove nothing: "
            "declare a wider one."
        )
    return (declared.low, declared.high), True


def declared_units(given: object) -> Units:
    """Return the units of the range that was declared."""
    try:
        low_end, high_end = given  # type: ignore[misc]
        return Units(low_end, high_end)  # type: ignore[has-type]
    except (TypeError, ValueError):
        raise InvalidSetting(
            f"reward_range is {given!r}, expected (low, high), the lowest and the highest possible "
            "reward."
        ) from None


def _after_end(given: float, reward_range: tuple[float, float], declared: bool) -> float:
    """Check what is paid after an early end."""
    paid = require_number("after_end", given, "the reward of each step after an early end")
    if not declared:
        raise InvalidSetting(
            "after_end needs a declared reward_range: the lowest and the highest possible reward."
        )
    if not Units(*reward_range).admits(paid):
        low, high = reward_range
        raise InvalidSetting(
            f"after_end is {paid:g}, outside the declared reward_range ({low:g}, {high:g}). It is "
            "a reward like the others: declare a range that holds it."
        )
    return paid


@dataclass(frozen=True)
class Files:
    """A log in files, read by DuckDB."""

    log: OpenLog
    # lowest and highest id; also state, action, next_state if they are integers
    ends: Mapping[str, tuple[int, int]]

    @property
    def where(self) -> str:
        """The names of the files."""
        return self.log.where

    def complaint(self, H: int | None) -> str:
        """Return all errors, with the episodes concerned."""
        return first_problem(self.log, H)

    def aggregated(self, glance: Glance, keys: Sequence[str], values: str) -> dict[str, AnyArray]:
        """Aggregate by these keys. Integer keys are packed into one number, which is faster."""
        steps = (glance.first, glance.first + glance.H - 1)
        ends = {"step": steps, "terminated": (0, 1), **self.ends}
        packed, lowest, far = "0", 0, 0  # far: the largest number that packing reaches
        for name in keys if set(keys) <= set(ends) else ():
            low, high = ends[name]
            size = high - low + 1
            packed = f"({packed}) * {size} + {name}::BIGINT"
            lowest, far = lowest * size + low, far * size + max(abs(low), abs(high))
        fits = 0 < far < PACKED
        by = f"{packed} AS packed" if fits else ", ".join(keys)
        found = self.log.ask(f"SELECT {by}, {values} FROM {rows_of(glance)} GROUP BY ALL")
        if fits:
            sizes = [ends[name][1] - ends[name][0] + 1 for name in keys]
            places = np.unravel_index(found.pop("packed").astype(np.int64) - lowest, sizes)
            found |= {name: ends[name][0] + at for name, at in zip(keys, places, strict=True)}
        found["step"] = found["step"] - glance.first
        found.setdefault("terminated", np.zeros(len(found["step"])))
        found["terminated"] = found["terminated"].astype(np.bool_)
        return found

    def fold(self, glance: Glance, seed: int) -> str:
        """Return the SQL expression of the fold of a row's episode."""
        return f"(({mixed_in_sql(keys_of(seed), *self.ends['id'])} * {glance.H}) >> 31)"

    def each_started_once(self, glance: Glance, started: int) -> bool:
        """Two files may hold the same episode, or use the same ids."""
        first = f"FROM log WHERE step = {glance.first}"
        low, high = self.ends["id"]
        if "episode" not in self.log.text and high - low + 1 == started:
            # Then each id of the range must occur once. A sum of hashes shows it, and is fast.
            every = f"SELECT sum(hash(range)) FROM range({low}, {high + 1})"
            if self.log.row(f"SELECT (SELECT sum(hash(id)) {first}) = ({every})")[0]:
                return True
        # numbers first: if they differ, so do the texts they stand for
        for name in ("id", "episode"):
            (distinct,) = self.log.row(f"SELECT count(*) FROM (SELECT DISTINCT {name} {first})")
            if distinct == started:
                return True
        return False

    def early_ends(self, glance: Glance, seed: int) -> list[tuple[int, int, int]]:
        """One query; the answer is a short table."""
        last = glance.first + glance.H - 1
        rows = self.log.rows(
            f"SELECT step - {glance.first}, {self.fold(glance, seed)} AS fold, count(*) FROM log "
            f"WHERE terminated AND step < {last} GROUP BY ALL"
        )
        return [(int(step), int(fold), int(n)) for step, fold, n in rows]

    def faults_of_cuts(self, glance: Glance) -> str:
        """One query where the log has the column; every episode is looked at only where some are
        cut.
        """
        last = glance.first + glance.H - 1
        cut = f"SELECT count(*) FROM log WHERE truncated AND NOT terminated AND step < {last}"
        if "truncated" not in self.log.flags or self.log.row(cut)[0] == 0:
            return ""
        return " ".join(map(str, audit(self.log, glance.H).errors))

    def sums_of_rewards(self, glance: Glance, seed: int) -> Mapping[str, AnyArray]:
        """Sum by pair. Each term is a whole number below 2^21, so a float64 holds the sum
        exactly.
        """
        low, high = glance.reward_range
        x = f"least(greatest((reward - {low!r}) / {high - low!r}, 0.0), 1.0) * {REWARD_UNITS}.0"
        return self.log.ask(
            f"SELECT step - {glance.first} AS step, state, action, sum(whole) AS x_sa, "
            "coalesce(sum(whole) FILTER (in_fold), 0.0) AS x_fold, sum(floor((x - whole) * "
            f"{REWARD_UNITS}.0)) AS rest_of_sum, sum(inner_part) AS z_sa, coalesce(sum(inner_part) "
            f"FILTER (in_fold), 0.0) AS z_fold FROM (SELECT *, floor(whole * ({REWARD_UNITS}.0 - "
            f"whole) / {REWARD_UNITS}.0) AS inner_part FROM (SELECT *, floor(x) AS whole, "
            f"{self.fold(glance, seed)} = step - {glance.first} AS in_fold FROM (SELECT *, {x} AS "
            f"x FROM {rows_of(glance)}))) GROUP BY ALL"
        )


def glanced(
    log: OpenLog,
    horizon: int | None,
    reward_range: tuple[float, float] | None,
    after_end: float | None,
) -> tuple[Files, Glance]:
    """Ask for the smallest and largest values."""
    names = ("episode", *KEYS[:4], "reward", *KEYS[4:], "truncated")
    integers = [name for name in ("episode", "state", "action", "next_state") if _whole(log, name)]
    asked = {"rows": "count(*)", **{f"count of {name}": f"count({name})" for name in names}}
    for name in ("step", "reward", *integers):
        asked |= {f"least {name}": f"min({name})", f"largest {name}": f"max({name})"}
    found = log.values(asked)
    if min(found[f"count of {name}"] for name in names) < found["rows"]:
        raise InvalidLog(first_problem(log))
    whole = {
        name: (int(found[f"least {name}"]), int(found[f"largest {name}"])) for name in integers
    }
    source = Files(log, {**whole, "id": whole.get("episode", TEXT_IDS)})
    steps, rewards = (
        (found[f"least {name}"], found[f"largest {name}"]) for name in ("step", "reward")
    )
    return source, Glance.of(
        source, found["rows"], steps, rewards, horizon, reward_range, after_end
    )


def _whole(log: OpenLog, name: str) -> bool:
    """Return whether the column holds integers."""
    return {"next_state": "state"}.get(name, name) not in log.text


def rows_of(glance: Glance) -> str:
    """Return the rows that are counted: all but those cut off."""
    return f"log WHERE step < {glance.first + glance.H}" if glance.cut else "log"


def counted(
    source: Files, glance: Glance, seed: int, states: Declared, actions: Declared
) -> LogCounts:
    """Count an open log."""
    paid = source.aggregated(glance, KEYS[:3], "min(reward) AS low, max(reward) AS high")
    varied = bool((paid["low"] < paid["high"]).any())
    in_fold = f"{source.fold(glance, seed)} = step - {glance.first}"
    values = f"count(*) AS n, count(*) FILTER ({in_fold}) AS n_fold"
    if varied:
        # a pair varies: does each of its transitions?
        values += ", min(reward) AS low, max(reward) AS high"
    keys = [name for name in KEYS if name != "terminated" or "terminated" in source.log.flags]
    table = source.aggregated(glance, keys, values)
    return assemble(source, glance, table, None if varied else paid, seed, states, actions)


class Transitions(NamedTuple):
    """Counted transitions, one array per column."""

    h: Ints
    s: Ints
    a: Ints
    s_next: Ints
    n: Ints  # how often
    n_fold: Ints  # how often in the episodes of fold h
    low: Floats  # the lowest reward
    high: Floats


class Places(NamedTuple):
    """Counted transitions by their place in (H, S, A, S): each place occurs once, in ascending
    order.
    """

    place: Ints
    n: Ints
    n_fold: Ints
    low: Floats
    high: Floats


def assemble(
    source: Source,
    glance: Glance,
    table: Mapping[str, AnyArray],
    paid: Mapping[str, AnyArray] | None,
    seed: int,
    states: Declared,
    actions: Declared,
) -> LogCounts:
    """Number the labels, add the absorbing state where episodes end early, and check that the
    totals add up.

    `paid` has the reward of each pair where it did not vary. Otherwise the table has the lowest and
    highest reward of each transition.
    """
    seen = table if paid is None else paid
    largest = np.abs([seen["low"], seen["high"]])
    if not (largest <= LARGEST_NUMBER).all():
        # the glance misses NaN: the extremes stored in Parquet leave it out
        raise InvalidLog(source.complaint(None))
    H, ended, h = (
        glance.H,
        np.asarray(table["terminated"]),
        np.asarray(table["step"], dtype=np.int64),
    )
    n, n_fold = (np.asarray(table[name], dtype=np.int64) for name in ("n", "n_fold"))
    labels, numbers = coded("state", np.concatenate([table["state"], table["next_state"]]), states)
    s, s_next = numbers[: len(n)], numbers[len(n) :]
    action_labels, a = coded("action", np.asarray(table["action"]), actions)
    early, (least, most) = ended & (h < H - 1), glance.reward_range
    after_end = 0.0 if glance.after_end is None else glance.after_end
    # An end at the last step may be the process's own: it may come earlier, too.
    may_end = H > 1 and least <= after_end <= most
    absorbing = bool(early.any() or (may_end and ended.any()))
    codebook = Codebook(labels, action_labels, absorbing=absorbing, unseen=states is None)
    require_size(H, codebook.S, codebook.A)
    S = codebook.S - codebook.unseen  # the unseen state never occurs
    if paid is None:
        low, high = (np.asarray(table[name], dtype=np.float64) for name in ("low", "high"))
    else:
        by_pair = np.zeros((H, S, codebook.A))
        by_pair[_places(paid, codebook)] = paid["low"]
        low = high = by_pair[h, s, a]
    rows = Transitions(h, s, a, s_next, n, n_fold, low, high)
    _require_flow(source, glance, rows, early, S)
    if not source.each_started_once(glance, int(n[h == 0].sum())):
        raise InvalidLog(source.complaint(H))
    notes = glance.notes
    if codebook.absorbing:
        ended_at, in_fold = _ends(source, glance, seed)
        if not least <= after_end <= most:
            raise InvalidLog(
                f"{source.where}: some episodes end early, and nothing was said about what is paid "
                "after that. If it is nothing, 0 must be in the range of rewards "
                f"{glance.reward_range}: declare a range that holds 0. If it is something else, "
                "declare it: after_end=x, or --after-end X, the reward of each remaining step."
            )
        if early.any():
            many = f"{int(ended_at.sum()):,} episodes end early."
            notes += (f"{many} They stay in an absorbing state to the last step.",)
        rows = _absorbed(rows, ended, ended_at, in_fold, S - 1, after_end)
    places = _merged(rows, S, codebook.A)
    found = LogCounts(
        H=H,
        codebook=codebook,
        episodes=int(places.n[places.place < S * codebook.A * S].sum()),
        rows=glance.rows,
        seed=seed,
        reward_range=glance.reward_range,
        declared=glance.declared,
        notes=notes,
        sums=None,
        last_ends=int(n[ended & (h == H - 1)].sum()),
        after_end=after_end if absorbing else 0.0,
        **places._asdict(),
    )
    if (places.low < places.high).any():
        return replace(found, sums=_sums(source, glance, seed, codebook, found))
    return found


def _absorbed(
    rows: Transitions,
    ended: AnyArray,
    ended_at: Ints,
    in_fold: Ints,
    absorbing_state: int,
    after_end: float,
) -> Transitions:
    """Lead each terminated transition to the absorbing state, and add the steps that episodes
    spend there.
    """
    # those at which some episode is in the absorbing state
    steps = np.flatnonzero(np.cumsum(ended_at)[:-1]) + 1
    there, paid = np.full(len(steps), absorbing_state), np.full(len(steps), after_end)
    return Transitions(
        h=np.concatenate([rows.h, steps]),
        s=np.concatenate([rows.s, there]),
        a=np.concatenate([rows.a, np.zeros(len(steps), dtype=np.int64)]),
        s_next=np.concatenate([np.where(ended, absorbing_state, rows.s_next), there]),
        n=np.concatenate([rows.n, np.cumsum(ended_at)[steps - 1]]),
        n_fold=np.concatenate([rows.n_fold, in_fold[steps]]),
        low=np.concatenate([rows.low, paid]),
        high=np.concatenate([rows.high, paid]),
    )


def _merged(rows: Transitions, S: int, A: int) -> Places:
    """Add up the rows of each place."""
    place, at = np.unique(
        ((rows.h * S + rows.s) * A + rows.a) * S + rows.s_next, return_inverse=True
    )
    n, n_fold = np.zeros(len(place), dtype=np.int64), np.zeros(len(place), dtype=np.int64)
    low, high = np.full(len(place), np.inf), np.full(len(place), -np.inf)
    np.add.at(n, at, rows.n)
    np.add.at(n_fold, at, rows.n_fold)
    np.minimum.at(low, at, rows.low)
    np.maximum.at(high, at, rows.high)
    return Places(place, n, n_fold, low, high)


def _require_flow(
    source: Source, glance: Glance, rows: Transitions, early: AnyArray, S: int
) -> None:
    """As many episodes must leave a state at step h + 1 as arrived there at step h and had not
    ended.
    """
    arrived, left = (
        np.zeros((glance.H + 1, S), dtype=np.int64),
        np.zeros((glance.H + 1, S), dtype=np.int64),
    )
    np.add.at(arrived, (np.where(early, 0, rows.h + 1), rows.s_next), np.where(early, 0, rows.n))
    np.add.at(left, (rows.h, rows.s), rows.n)
    if not np.array_equal(arrived[1:-1], left[1:-1]):
        raise InvalidLog(source.complaint(glance.H))
    if faults := source.faults_of_cuts(glance):
        raise InvalidLog(f"{source.where}: {faults}")


def _ends(source: Source, glance: Glance, seed: int) -> tuple[Ints, Ints]:
    """Return how many episodes ended early at each step, and how many of fold h had ended before
    step h.
    """
    at, in_fold = np.zeros(glance.H, dtype=np.int64), np.zeros(glance.H, dtype=np.int64)
    for step, fold, n in source.early_ends(glance, seed):
        at[step] += n
        if step < fold:
            in_fold[fold] += n
    return at, in_fold


def _sums(source: Source, glance: Glance, seed: int, codebook: Codebook, of: LogCounts) -> Sums:
    """Return the sums of random rewards by pair."""
    found = source.sums_of_rewards(glance, seed)
    places = _places(found, codebook)
    tables = []
    for name in Sums._fields:
        table = np.zeros((of.H, of.occurring, of.A), dtype=np.int64)
        np.add.at(table, places, np.asarray(found[name]).astype(np.int64))
        tables.append(table)
    # the known reward of the absorbing state is summed as agents sum it
    if of.absorbing_state is not None:
        S, zero = of.occurring, int(np.floor(of.zero_reward * REWARD_UNITS))
        there = (of.place // S) % (S * of.A) == of.absorbing_state * of.A
        paid = zero, zero, 0, between(zero), between(zero)
        for table, each, counts in zip(
            tables, paid, (of.n, of.n_fold, of.n, of.n, of.n_fold), strict=True
        ):
            table[of.place[there] // (S * of.A * S), of.absorbing_state, 0] = each * counts[there]
    return Sums(*tables)


def _places(table: Mapping[str, AnyArray], codebook: Codebook) -> tuple[Ints, Ints, Ints]:
    """Return the numbers of step, state and action of each row."""
    s, a = (
        coded("state", table["state"], codebook.states)[1],
        coded("action", table["action"], codebook.actions)[1],
    )
    return np.asarray(table["step"], dtype=np.int64), s, a
