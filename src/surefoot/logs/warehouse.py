"""The same counts from a log that is stored in a warehouse: one ibis expression, run where the rows
are.

Only smallest and largest values, counts and sums leave the warehouse, and, in a refusal, the id of
one episode for each kind of error. The expression contains no SQL of one engine: it is tested on
DuckDB and on Spark.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.base.arrays import AnyArray
from surefoot.base.validation import REWARD_UNITS
from surefoot.errors import InvalidLog, InvalidSetting, MissingExtra
from surefoot.logs.cells import column_called
from surefoot.logs.checking import described
from surefoot.logs.codebook import Declared
from surefoot.logs.counting import KEYS, Glance, assemble
from surefoot.logs.folds import MASK, PLACES, keys_of
from surefoot.logs.log_counts import LogCounts
from surefoot.logs.log_tables import Sums
from surefoot.logs.reading import COLUMNS, FLAGS, column_names

if TYPE_CHECKING:
    from ibis.backends import BaseBackend  # type: ignore[import-untyped]
    from ibis.expr.types import Column, Table  # type: ignore[import-untyped]

# ibis needs the others to run anything, and says so late
NEEDED = ("pandas", "pyarrow", "pyarrow_hotfix", "ibis")
HEXADECIMAL = "0123456789abcdef"


def count_table(
    con: "BaseBackend",
    table: str,
    *,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    horizon: int | None = None,
    states: Declared = None,
    actions: Declared = None,
    reward_range: tuple[float, float] | None = None,
    after_end: float | None = None,
) -> LogCounts:
    """Count a log that is a table of a warehouse. `count_log` returns the same LogCounts for the
    same rows in a file.

    - con: any ibis connection: `ibis.duckdb.connect(...)`, `ibis.pyspark.connect(session)`
    - table: its name there, or `database.name`

    Everything else is as in `count_log`. Beside `count_expression` two or three short queries are
    run: smallest and largest values, how many episodes there are, and which ended early.
    """
    ibis = _ibis()
    if not isinstance(con, import_module("ibis.backends").BaseBackend):
        raise InvalidSetting(
            f"con is {type(con).__name__}, expected an ibis connection, such as "
            "ibis.duckdb.connect('file.duckdb')."
        )
    where = f"Table {table!r}"
    source = Warehouse(con, where, _typed(ibis, where, _found(con, table), columns))
    glance = source.glance(horizon, reward_range, after_end)
    expression = _counted(ibis, source.log, glance.H, glance.first, glance.reward_range, seed)
    source = replace(source, table=source.ask(expression))
    return assemble(source, glance, source.table, None, seed, states, actions)


def count_expression(
    table: "Table",
    *,
    H: int,
    first: int = 0,
    reward_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
) -> "Table":
    """Return the expression that counts, for those who want to read it or to run it themselves.

        log = ibis.table({"episode": "int64", ...}, name="log")  # bound to no engine
        con.execute(count_expression(log, H=3))  # on any

    - H: the steps of an episode; later rows are left out
    - first: the number of the first step in the table; it becomes 0
    - reward_range: rewards are rescaled from this range to [0, 1]

    There is one row for each step, state, action, next_state and terminated that occurred, with the
    columns:

    - n, n_fold: how often it occurred, and how often in the episodes of fold `step`
      (`surefoot.logs.folds`)
    - low, high: the lowest and highest reward
    - x_sa, x_fold: rescaled rewards in whole multiples of 2^-20, each rounded down, summed over the
      same rows as n and n_fold. They are whole numbers, so the order in which an engine adds them
      does not matter.
    - rest_of_sum: what was rounded off, in whole multiples of 2^-40
    - z_sa, z_fold: x (1 - x) of these rewards x, in whole multiples of 2^-20, each rounded down,
      summed likewise
    """
    ibis = _ibis()
    return _counted(ibis, _typed(ibis, "The table", table, columns), H, first, reward_range, seed)


def _ibis() -> ModuleType:
    try:
        *_, ibis = [import_module(name) for name in NEEDED]
    except ModuleNotFoundError as reason:
        raise MissingExtra(
            f"Counting in a warehouse needs {reason.name}, which is not installed: pip install "
            f'"surefoot[warehouse]".'
        ) from None
    return ibis


def _found(con: "BaseBackend", table: str) -> "Table":
    """Return the table of this name."""
    *database, name = table.split(".")
    try:
        return con.table(name, database=".".join(database) or None)
    except Exception as reason:  # each engine raises its own
        raise InvalidLog(
            f"Table {table!r} cannot be read: {_first_line(reason)} Expected a name that "
            "con.table() knows, or 'database.name'."
        ) from reason


def _typed(
    ibis: ModuleType, where: str, table: "Table", columns: Mapping[str, str] | None
) -> "Table":
    """Give the columns our names and types: step int64, labels int64 or text, reward float64,
    flags boolean.
    """
    names, kinds = column_names(columns), dict(table.schema().items())
    there = {name.lower(): name for name in kinds}
    called = {name: there[said.lower()] for name, said in names.items() if said.lower() in there}
    missing = [name for name in COLUMNS if name not in called]
    if missing:
        lacking = column_called(names[missing[0]], missing[0])
        raise InvalidLog(
            f"{where} has no column {lacking}. Found: {', '.join(kinds)}. Give its name in the "
            f"table: columns={{'{missing[0]}': ...}}."
        )
    chosen: dict[str, Any] = {}
    for name in (*COLUMNS, *FLAGS):
        if name not in called:
            chosen[name] = ibis.literal(False)
            continue
        kind = kinds[called[name]]
        whole = kind.is_integer() or (kind.is_decimal() and kind.scale == 0)
        text, flag = kind.is_string() or kind.is_uuid(), kind.is_boolean()
        if name == "step":
            ours, fits, meaning = "int64", whole, "whole numbers: 0, 1, 2, ... within each episode"
        elif name == "reward":
            ours, fits, meaning = "float64", kind.is_numeric() and not flag, "numbers"
        elif name in FLAGS:
            ours, fits, meaning = "boolean", whole or flag, "true or false, or 1 or 0"
        else:
            ours, fits = "string" if text else "int64", whole or text or flag
            meaning = "whole numbers or text. Cast it where the log is made"
        if not fits:
            raise InvalidLog(
                f"{where}: column {column_called(called[name], name)} is {kind}, expected "
                f"{meaning}."
            )
        chosen[name] = table[called[name]].cast(ours)
    if chosen["state"].type() != chosen["next_state"].type():
        raise InvalidLog(
            f"{where}: state is {kinds[called['state']]}, but next_state is "
            f"{kinds[called['next_state']]}, expected one type for both. Look for rows that differ."
        )
    return table.select(**chosen)


def _counted(
    ibis: ModuleType, log: "Table", H: int, first: int, reward_range: tuple[float, float], seed: int
) -> "Table":
    """Return `count_expression` of a table that already has our names and types."""
    low, high = reward_range
    rows = _with_folds(ibis, log.filter(log.step < first + H), H, seed)
    rows = rows.mutate(step=rows.step - first)
    rows = rows.mutate(
        in_fold=rows.fold == rows.step,
        x=ibis.least(ibis.greatest((rows.reward - low) / (high - low), 0.0), 1.0)
        * float(REWARD_UNITS),
    )
    rows = rows.mutate(whole=rows.x.floor())
    rows = rows.mutate(
        rounded_off=((rows.x - rows.whole) * float(REWARD_UNITS)).floor(),
        inner=(rows.whole * (float(REWARD_UNITS) - rows.whole) / float(REWARD_UNITS)).floor(),
    )
    return rows.group_by(*KEYS).aggregate(
        n=rows.count(),
        n_fold=rows.count(where=rows.in_fold),
        low=rows.reward.min(),
        high=rows.reward.max(),
        x_sa=rows.whole.sum(),
        x_fold=ibis.coalesce(rows.whole.sum(where=rows.in_fold), 0),
        rest_of_sum=rows.rounded_off.sum(),
        z_sa=rows.inner.sum(),
        z_fold=ibis.coalesce(rows.inner.sum(where=rows.in_fold), 0),
    )


def _with_folds(ibis: ModuleType, rows: "Table", H: int, seed: int) -> "Table":
    """Return the rows with the fold of their episodes. An id that is text is hashed once, not at
    each of its steps.
    """
    if not rows.episode.type().is_string():
        return _folded(rows.mutate(id=rows.episode), H, seed)
    ids = rows.select("episode").distinct()
    ids = ids.mutate(digest=ids.episode.hexdigest("md5").lower())
    ids = ids.mutate(id=_number(ibis, ids.digest))
    return rows.join(_folded(ids, H, seed).select("episode", "fold"), "episode")


def _folded(table: "Table", H: int, seed: int) -> "Table":
    """Add the fold of the column id, as `surefoot.logs.folds` defines it."""
    keys, low, high = keys_of(seed), table.id & MASK, (table.id >> 31) & MASK
    # Each in a step of its own: otherwise an engine is sent the expression of u twice, and so on.
    table = table.mutate(u=low * keys.k1 + high * keys.k2 + keys.k3)
    table = table.mutate(v=(table.u ^ (table.u >> 30)) & MASK)
    return table.mutate(fold=(table.v * H) >> 31)


def _number(ibis: ModuleType, digest: "Column") -> "Column":
    """Return the first digits of a digest as a number. All engines write hexadecimal digits, not
    all read them.
    """
    # ibis assumes that `find` returns 64 bits and leaves out a cast to 64, but Spark returns 32,
    # which overflow.
    digits = [
        ibis.literal(HEXADECIMAL).find(digest.left(place + 1).right(1)).cast("int32").cast("int64")
        * 16 ** (len(PLACES) - 1 - i)
        for i, place in enumerate(PLACES)
    ]
    return sum(digits[1:], digits[0])


@dataclass(frozen=True)
class Warehouse:
    """A log in a warehouse as a source of counts."""

    con: "BaseBackend"
    where: str
    log: "Table"  # with our names and types
    table: Mapping[str, AnyArray] = field(default_factory=dict)  # the result of `count_expression`

    def ask(self, expression: "Table") -> dict[str, AnyArray]:
        """Return the answer as named numpy arrays."""
        try:
            found = self.con.execute(expression)
        except Exception as reason:  # each engine raises its own
            raise InvalidLog(f"{self.where} cannot be read: {_first_line(reason)}") from reason
        return {name: found[name].to_numpy() for name in found.columns}

    def glance(
        self, horizon: int | None, reward_range: tuple[float, float] | None, after_end: float | None
    ) -> Glance:
        """Ask for the smallest and largest step and reward, and whether any value is missing."""
        log = self.log
        found = self.ask(
            log.aggregate(
                **{name: log[name].count() for name in log.columns},
                rows=log.count(),
                first=log.step.min(),
                last=log.step.max(),
                low=log.reward.min(),
                high=log.reward.max(),
            )
        )
        rows = int(found["rows"][0])
        if not rows:
            raise InvalidLog(
                f"{self.where} is empty: it has no rows. Expected one row for each step of each "
                "episode."
            )
        if min(int(found[name][0]) for name in log.columns) < rows:
            raise InvalidLog(self.complaint(None))
        steps, rewards = (
            tuple(found[name][0] for name in pair) for pair in (("first", "last"), ("low", "high"))
        )
        return Glance.of(self, rows, steps, rewards, horizon, reward_range, after_end)

    def each_started_once(self, glance: Glance, started: int) -> bool:
        """Compare the number of ids with the number of first steps."""
        first = self.log.filter(self.log.step == glance.first)
        return bool(self.ask(first.aggregate(n=first.episode.nunique()))["n"][0] == started)

    def early_ends(self, glance: Glance, seed: int) -> list[tuple[int, int, int]]:
        """One query; the answer is a short table."""
        last = glance.first + glance.H - 1
        ended = _with_folds(
            _ibis(), self.log.filter(self.log.terminated, self.log.step < last), glance.H, seed
        )
        found = self.ask(ended.group_by(["step", "fold"]).aggregate(n=ended.count()))
        step, fold, n = (found[name].astype(np.int64).tolist() for name in ("step", "fold", "n"))
        return list(zip([x - glance.first for x in step], fold, n, strict=True))

    def faults_of_cuts(self, glance: Glance) -> str:
        """One query; every episode is looked at only where some are cut."""
        early = self.log.step < glance.first + glance.H - 1
        cut = self.log.filter(self.log.truncated, ~self.log.terminated, early)
        n = int(self.ask(cut.aggregate(n=cut.count()))["n"][0])
        return " ".join(self._chains(glance.H)) if n else ""

    def sums_of_rewards(self, glance: Glance, seed: int) -> Mapping[str, AnyArray]:
        """Return the sums by transition, as they were counted."""
        return {name: self.table[name] for name in (*KEYS[:3], *Sums._fields)}

    def complaint(self, H: int | None) -> str:
        """Return each kind of error, with how often it occurs and one episode that has it."""
        texts = (
            self._missing()
            or [*self._rewards(), *self._chains(H)]
            or ["The totals of its counts do not add up."]
        )
        return f"{self.where}: {' '.join(texts)}"

    def _missing(self) -> list[str]:
        """Find values that are missing."""
        # Compared as text, because on Spark ibis treats NaN as null; NaN has a message of its own.
        tests = {name: self.log[name].cast("string").isnull() for name in (*COLUMNS, *FLAGS)}
        return [
            described("missing", n, some, name=name)
            for name, n, some in self._tested(self.log, tests)
        ]

    def _rewards(self) -> list[str]:
        """Find rewards that are not finite numbers."""
        # Not isnan(): DuckDB 2.0 answers it from the extremes stored in Parquet, which leave NaN
        # out (duckdb#25521).
        strange = self.log.reward - self.log.reward != 0.0
        return [
            described(what, n, some)
            for what, n, some in self._tested(self.log, {"reward": strange})
        ]

    def _chains(self, H: int | None) -> list[str]:
        """Check steps, states and ends within each episode, by one pass in the order of steps."""
        ibis, log = _ibis(), self.log
        found = self.ask(log.aggregate(first=log.step.min(), last=log.step.max()))
        start = 1 if found["first"][0] == 1 else 0
        final = int(found["last"][0]) if H is None else start + H - 1
        log = log.filter(log.step <= final)
        order = ibis.window(group_by=log.episode, order_by=log.step)
        rows = log.mutate(
            before=log.step.lag().over(order),
            after=log.step.lead().over(order),
            arrived=log.next_state.lag().over(order),
            ended=ibis.coalesce(log.terminated.lag().over(order), False),
        )
        short = rows.after.isnull() & ~rows.terminated & (rows.step < final)
        tests = {
            "duplicate": rows.before == rows.step,
            "gap": (rows.before.isnull() & (rows.step != start)) | (rows.before < rows.step - 1),
            "chain": (rows.before == rows.step - 1) & (rows.arrived != rows.state) & ~rows.ended,
            "after": rows.ended,
            "short": short & ~rows.truncated,
            "truncated": short & rows.truncated,
        }
        return [
            described(what, n, some, final=final) for what, n, some in self._tested(rows, tests)
        ]

    def _tested(
        self, rows: "Table", tests: Mapping[str, "Column"]
    ) -> Iterator[tuple[str, int, str]]:
        """For each test that some row meets, yield its name, how many rows meet it, and one
        episode.
        """
        asked = {f"n_{name}": rows.count(where=test) for name, test in tests.items()}
        asked |= {f"some_{name}": rows.episode.min(where=test) for name, test in tests.items()}
        found = self.ask(rows.aggregate(**asked))
        for name in tests:
            n, some = int(found[f"n_{name}"][0]), found[f"some_{name}"][0]
            if n:
                # unknown where the id itself is missing
                known = isinstance(some, str | int | np.integer)
                yield name, n, f" (such as in episode {some})" if known else ""


def _first_line(reason: Exception) -> str:
    line = (str(reason).strip() or type(reason).__name__).splitlines()[0]
    return line if line.endswith(".") else f"{line}."
