"""All faults of a log at once: one that cannot be used is read again as it is written, value by
value and row by row.

A good log never comes here. Of one that is refused, people want to know everything that is wrong,
how often, and in which rows first: so words among numbers, values that are missing and episodes
that are torn are found side by side. A fault that only follows from another one is left out: an
episode of which a step cannot be read has a gap, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surefoot.base.sql import quote_text
from surefoot.errors import InvalidLog
from surefoot.logs.cells import FAR, MEMORY, Paths, Raw, connected, find_files, readable
from surefoot.logs.checking import (
    FIRST,
    NO_AMOUNT,
    Fault,
    Finding,
    LogReport,
    audit,
    chain_faults,
    described,
    ends_of,
    findings_of,
    in_order,
)
from surefoot.logs.codebook import Declared, coded
from surefoot.logs.counting import counted, declared_units, glanced, require_horizon
from surefoot.logs.reading import (
    COLUMNS,
    FLAGS,
    LABELS,
    OpenLog,
    column_names,
    columns_of_log,
    kinds_of_text,
    open_log,
    open_rows,
)
from surefoot.logs.text import is_number, is_truth, is_whole

if TYPE_CHECKING:
    import duckdb

MOST_UNKNOWN = 100  # labels that were not declared, whose rows are looked for


def is_flag(column: str) -> str:
    """Write the test in SQL of whether a text is true, false or a whole number."""
    return f"({is_truth(column)} OR {is_whole(column)})"


# what can be read
READS = {"step": is_whole, "reward": is_number, "terminated": is_flag, "truncated": is_flag}
EXPECTED = {
    "step": "a whole number",
    "reward": "a number such as 1250.75",
    "terminated": "true or false",
    "truncated": "true or false",
}


class Written(NamedTuple):
    """A log as it is written, opened: `log` has the columns of every log, and the number of each
    row.
    """

    log: OpenLog
    raw: Raw
    # are states whole numbers in one of state and next_state, and not all in the other?
    mixed: bool
    # is there a value in the column that can be read as it should?
    legible: Mapping[str, bool]


class Asked(NamedTuple):
    """What a log is held against."""

    columns: Mapping[str, str] | None
    horizon: int | None
    states: Declared
    actions: Declared
    reward_range: tuple[float, float] | None
    memory: str
    delimiter: str | None


def all_faults(paths: Paths, asked: Asked) -> LogReport:
    """Return every kind of fault that is found in the rows of a log, each with its number and
    its first rows.
    """
    with _as_written(paths, asked) as written:
        log = written.log
        rows, episodes = log.row("SELECT count(*), count(DISTINCT episode) FROM log")
        found = [
            *_torn(written),
            *_missing(written),
            *_words(written),
            *_rewards(written, asked.reward_range),
            *_undeclared(written, "state", ("state", "next_state"), asked.states),
            *_undeclared(written, "action", ("action",), asked.actions),
            *_chains(written, asked.horizon),
        ]
        return LogReport(log.where, int(rows), int(episodes), tuple(found))


@contextmanager
def _as_written(paths: Paths, asked: Asked) -> Iterator[Written]:
    """Open a log with every value as text, in the order of its rows. Torn rows have no values."""
    files, names = find_files(paths, asked.delimiter), column_names(asked.columns)
    with connected(asked.memory) as (con, folder):
        with readable(files.where):
            raw = open_rows(con, files, names, folder, keep_torn=True)
            held = list(raw.kinds)
            words = ", ".join(f"{name}::VARCHAR AS {name}" for name in held)
            con.execute(f"CREATE VIEW words AS SELECT {words}, row FROM raw")
            labels, mixed = _labels(con, held)
            legible = _is_legible(con, held)
            flags = frozenset(flag for flag in FLAGS if flag in held)
            # `_w`: as it is written; `_r`: what of it can be read
            both = [f"{name} AS {name}_w" for name in held]
            for name in held:
                fits = READS[name](name) if name in READS else "true"
                both.append(f"CASE WHEN {fits} THEN {name} END AS {name}_r")
            con.execute(f"CREATE VIEW beside AS SELECT {', '.join(both)}, row FROM words")
            log = columns_of_log(labels, flags, "TRY_CAST", "{}_r")
            con.execute(f"CREATE VIEW log AS SELECT {', '.join(log)}, COLUMNS('.*_w') FROM beside")
        text = frozenset(name for name in LABELS[:3] if labels[name] == "VARCHAR")
        yield Written(OpenLog(con, files, text, flags), raw, mixed, legible)


def _labels(con: "duckdb.DuckDBPyConnection", held: Sequence[str]) -> tuple[dict[str, str], bool]:
    """Return the type that labels are read as, and whether states are of two kinds."""
    found = kinds_of_text(con, "words", held)
    exact = ", ".join(f"bool_and({_is_exact(name)})" for name in LABELS)
    (answer,) = con.execute(f"SELECT {exact} FROM words").fetchall()
    kinds = {}
    for name, is_exact in zip(LABELS, answer, strict=True):
        is_empty, is_inexact = is_exact is None, found[name] == "DOUBLE" and not is_exact
        kinds[name] = "BIGINT" if is_empty else "VARCHAR" if is_inexact else found[name]
    both = {kinds["state"], kinds["next_state"]}
    if len(both) > 1:
        kinds["state"] = kinds["next_state"] = (
            "DOUBLE" if both == {"BIGINT", "DOUBLE"} else "VARCHAR"
        )
    return kinds, both == {"BIGINT", "VARCHAR"}


def _is_legible(con: "duckdb.DuckDBPyConnection", held: Sequence[str]) -> dict[str, bool]:
    """Return whether a value of each column that is no label can be read, or there is none."""
    names = [name for name in READS if name in held]
    asked = ", ".join(f"coalesce(bool_or({READS[name](name)}), true)" for name in names)
    (answer,) = con.execute(f"SELECT {asked} FROM words").fetchall()
    return dict(zip(names, answer, strict=True))


def _is_exact(column: str) -> str:
    """Write the test of whether a text is a number that is not mistaken for another one when it
    is read.
    """
    return f"({is_number(column)} AND abs(try_cast({column} AS DOUBLE)) < {2**53})"


def _torn(written: Written) -> Iterator[Finding]:
    """Find rows of a CSV that have not the fields of the header."""
    torn, some = written.raw.torn, written.raw.first_torn[:FIRST]
    if torn:
        first, files = some[0], written.log.files
        where = f"line {first.line} of {files.names[first.row // FAR]} has {first.fields}"
        text = described("fields", torn, "", name=f"{first.expected} of the header: {where}")
        rows = files.places(each.row for each in some)
        yield Finding("error", "fields", text, count=torn, rows=rows)


def _missing(written: Written) -> list[Finding]:
    """Find values that are missing. An episode that has ended needs no next state."""
    tests = {
        name: f"{name}_w IS NULL"
        for name in (*COLUMNS, *FLAGS)
        if name in COLUMNS or name in written.log.flags
    }
    tests["next_state"] += " AND NOT coalesce(terminated, false)"
    if written.raw.torn:
        some = " OR ".join(f"{name}_w IS NOT NULL" for name in tests)
        tests = {name: f"{test} AND ({some})" for name, test in tests.items()}
    return findings_of(
        written.log, "log", [Fault("missing", test, name) for name, test in tests.items()]
    )


def _words(written: Written) -> Iterator[Finding]:
    """Find values that are written, and cannot be read, with the first of them; states, too, that
    are text where the others are whole numbers.

    A column of which none can be read is of another kind, row by row.
    """
    reads = {
        name: (READS[name], EXPECTED[name]) for name, legible in written.legible.items() if legible
    }
    for name in ("state", "next_state") if written.mixed else ():
        reads[name] = (is_whole, "a whole number, as states are elsewhere")
    for name, (fits, expected) in reads.items():
        word = f"{name}_w"
        test = f"{word} IS NOT NULL AND NOT {fits(word)}"
        fault = Fault("word", test, f"{name} that is not {expected}")
        for finding in findings_of(written.log, "log", [fault]):
            (such,) = written.log.row(f"SELECT {word} FROM log WHERE {test} ORDER BY row LIMIT 1")
            yield replace(finding, text=finding.text.replace("{such}", repr(such[:60])))


def _rewards(written: Written, reward_range: tuple[float, float] | None) -> Iterator[Finding]:
    """Find rewards that are not finite, or outside the declared range."""
    yield from findings_of(written.log, "log", [Fault("reward", NO_AMOUNT)])
    if reward_range is None:
        return
    units = declared_units(reward_range)
    lowest, highest = units.range.admitted
    test = f"isfinite(reward) AND NOT (reward BETWEEN {lowest!r} AND {highest!r})"
    for finding in findings_of(written.log, "log", [Fault("range", test)]):
        low, high = written.log.row(
            "SELECT min(reward), max(reward) FROM log WHERE isfinite(reward)"
        )
        text = (
            f"{written.log.where}: rewards lie in {low:g}..{high:g}, outside the declared range "
            f"({units.low:g}, {units.high:g}): {finding.text} Bounds for a narrower range prove "
            "nothing: declare a wider one."
        )
        yield replace(finding, text=text, episodes=())


def _undeclared(
    written: Written, name: str, columns: Sequence[str], declared: Declared
) -> Iterator[Finding]:
    """Find labels that are not among those that were declared."""
    if declared is None or isinstance(declared, str) or written.mixed:
        return
    every = " UNION ".join(
        f"SELECT {column} AS label FROM log WHERE {column} IS NOT NULL" for column in columns
    )
    seen = [label for (label,) in written.log.rows(f"{every} ORDER BY label")]
    try:
        coded(name, np.array(seen), declared)
    except InvalidLog as refusal:
        labels = range(declared) if isinstance(declared, int) else {*declared}
        unknown = [label for label in seen if label not in labels][:MOST_UNKNOWN]
        listed = ", ".join(
            quote_text(label) if isinstance(label, str) else str(label) for label in unknown
        )
        test = " OR ".join(f"{column} IN ({listed})" for column in columns)
        for finding in findings_of(written.log, "log", [Fault("undeclared", test)]):
            yield replace(finding, text=str(refusal), episodes=())


def _chains(written: Written, horizon: int | None) -> Iterator[Finding]:
    """Check steps, states and ends within each episode, but for those of which some step or
    episode is not known.
    """
    (first, last) = written.log.row("SELECT min(step), max(step) FROM log")
    if first is None:
        return
    start, final = ends_of(int(first), int(last), horizon)
    torn = (
        "(SELECT episode FROM log WHERE step IS NULL AND episode IS NOT NULL UNION SELECT beside "
        "FROM (SELECT episode, unnest([lag(episode) OVER r, lead(episode) OVER r]) AS beside FROM "
        "log WINDOW r AS (ORDER BY row)) WHERE episode IS NULL AND beside IS NOT NULL)"
    )
    whole = f"episode IS NOT NULL AND episode NOT IN {torn}"
    yield from findings_of(written.log, in_order(final, whole), chain_faults(start, final), final)


def check_log(
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
) -> LogReport:
    """Look at every episode of a log: is it complete, does each state follow from the one before,
    what is missing?

    The arguments are those of `count_log`; its result is in `report.counted`. A log that cannot be
    read at all raises InvalidLog; everything else is a finding. A log that cannot be used is read
    once more, row by row, so that all kinds of faults are found at once, each with its number and
    its first rows.
    """
    steps = None if horizon is None else require_horizon(horizon)
    refused: InvalidLog | None = None
    report = None
    try:
        with open_log(paths, columns, memory, threads, delimiter) as log:
            report = audit(log, steps)
            if report.usable:
                source, glance = glanced(log, horizon, reward_range, after_end)
                return report.with_counts(counted(source, glance, seed, states, actions))
    except InvalidLog as refusal:
        refused = refusal
        report = None if report is None else report.with_error(str(refusal))
    asked = Asked(columns, steps, states, actions, reward_range, memory, delimiter)
    every: LogReport | None
    try:
        every = all_faults(paths, asked)
    except InvalidLog:  # not even its values can be read one by one
        every = None
    if every is not None and every.findings:
        why = {found.what for found in every.errors} & {"word", "fields"}  # it cannot be opened
        return every if why or report is not None else every.with_error(str(refused))
    if report is None:
        assert refused is not None
        raise refused
    return report
