"""All faults of a log at once: one that cannot be used is read again as it is written, value by value and row by row.

A good log never comes here. Of one that is refused, people want to know everything that is wrong, how often, and in
which rows first: so words among numbers, values that are missing and episodes that are torn are found side by side. A
fault that only follows from another one is left out: an episode of which a step cannot be read has a gap, too.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.base.sql import quote_name, quote_text
from surefoot.errors import InvalidLog
from surefoot.offline.logs.checking import (
    Finding,
    LogReport,
    audit,
    chain_tests,
    described,
    ends_of,
    episodes_of,
    in_order,
    named,
    tested,
)
from surefoot.offline.logs.codebook import Declared, coded
from surefoot.offline.logs.counting import counted, declared_units, glanced, require_horizon
from surefoot.offline.logs.fields import finding_of, with_equal_fields
from surefoot.offline.logs.reading import (
    COLUMNS,
    FLAGS,
    MEMORY,
    OpenLog,
    Paths,
    column_names,
    connected,
    files_as_patterns,
    open_log,
    readable,
    require_columns,
)

if TYPE_CHECKING:
    import duckdb

LABELS = ("episode", "state", "action", "next_state")
FIRST = 5  # rows of a fault that are named
FAR = 10**12  # rows of one file, at most
MOST_UNKNOWN = 100  # labels that were not declared, whose rows are looked for
WHOLE = "try_cast({0} AS BIGINT)::VARCHAR = {0}"
TRUTH = "lower({0}) IN ('true', 'false')"
READS = {  # when a value that is written can be read
    "step": WHOLE,
    "reward": "try_cast({0} AS DOUBLE) IS NOT NULL",
    "terminated": f"({TRUTH} OR try_cast({{0}} AS BIGINT) IS NOT NULL)",
    "truncated": f"({TRUTH} OR try_cast({{0}} AS BIGINT) IS NOT NULL)",
}
EXPECTED = {"step": "a whole number", "reward": "a number", "terminated": "true or false", "truncated": "true or false"}


class Written(NamedTuple):
    """A log as it is written, opened: `log` has the columns of every log, and the number of each row."""

    log: OpenLog
    files: list[str]
    kinds: Mapping[str, str]  # of each label: "whole", "truth", "number" (not all of them are whole), or "text"
    mixed: bool  # are states whole numbers in one of state and next_state, and not all in the other?
    unlike: Mapping[str, bool]  # is there no value in the whole column that can be read as it should?
    emptied: bool = False  # are rows without any value those that had not the fields of the header?


class Asked(NamedTuple):
    """What a log is held against."""

    columns: Mapping[str, str] | None
    horizon: int | None
    states: Declared
    actions: Declared
    reward_range: tuple[float, float] | None
    memory: str


def all_faults(paths: Paths, asked: Asked, called: str = "") -> LogReport:
    """Return every kind of fault that is found in the rows of a log, each with its number and its first rows.

    `called`: what the log is called of which this is a copy, whose torn rows have no values.
    """
    with _as_written(paths, asked.columns, asked.memory) as written:
        if called:
            written = written._replace(log=replace(written.log, where=called), emptied=True)  # noqa: PLW2901
        log = written.log
        rows, episodes = log.row("SELECT count(*), count(DISTINCT episode) FROM log")
        found = [
            *_missing(written),
            *_words(written),
            *_mixed(written),
            *_rewards(written, asked.reward_range),
            *_undeclared(written, "state", ("state", "next_state"), asked.states),
            *_undeclared(written, "action", ("action",), asked.actions),
            *_chains(written, asked.horizon),
        ]
        return LogReport(log.where, int(rows), int(episodes), tuple(found))


@contextmanager
def _as_written(paths: Paths, columns: Mapping[str, str] | None, memory: str) -> Iterator[Written]:
    """Open a log with every value as text, in the order of its rows."""
    files, patterns, reader, where = files_as_patterns(paths)
    names = column_names(columns)
    with tempfile.TemporaryDirectory(prefix="surefoot-") as spill, connected(memory, spill) as con:
        con.execute("SET preserve_insertion_order = true")
        with readable(where):
            _rows_in_order(con, reader, patterns, Path(spill))
            there = {str(name).lower(): str(name) for name in con.sql("FROM raw").columns}
            require_columns(where, names, {name: "" for name in there.values()})
            held = {name: there[called.lower()] for name, called in names.items() if called.lower() in there}
            wide = ", ".join(f"nullif({quote_name(called)}::VARCHAR, '') AS {name}_w" for name, called in held.items())
            listed = f"[{', '.join(quote_text(file) for file in files)}]"
            row = f"coalesce(list_position({listed}, filename) - 1, 0)::BIGINT * {FAR} + number"
            con.execute(f"CREATE VIEW words AS SELECT {wide}, {row} AS row FROM raw")
            kinds, mixed, unlike = _kinds(con, held)
            con.execute(f"CREATE VIEW log AS SELECT {', '.join(_read(held, kinds))}, row FROM words")
        text = frozenset(name for name in LABELS[:3] if kinds[name] == "text")
        flags = frozenset(flag for flag in FLAGS if flag in held)
        yield Written(OpenLog(con, where, text, flags), files, kinds, mixed, unlike)


def _rows_in_order(con: "duckdb.DuckDBPyConnection", reader: str, patterns: Any, folder: Path) -> None:
    """Make the view `raw`: the columns, the name of the file, and the number of the row in it, from 1."""
    if reader == "read_parquet":
        relation = con.read_parquet(patterns, union_by_name=True, filename=True, file_row_number=True)
        relation.create_view("raw_files")
        numbered = "SELECT * EXCLUDE (file_row_number), file_row_number + 1 AS number"
        con.execute(f"CREATE VIEW raw AS {numbered} FROM raw_files")
        return
    if reader == "read_csv":
        con.read_csv(patterns, union_by_name=True, all_varchar=True, filename=True).create_view("raw_files")
    else:
        con.read_json(patterns, union_by_name=True, filename=True).create_view("raw_files")
    path = quote_text(folder / "rows.parquet")
    con.execute(f"COPY (FROM raw_files) TO {path} (FORMAT PARQUET)")
    con.execute(
        "CREATE VIEW raw AS SELECT * EXCLUDE (file_row_number), "
        "file_row_number - min(file_row_number) OVER (PARTITION BY filename) + 1 AS number "
        f"FROM read_parquet({path}, file_row_number = true)"
    )


def _kinds(con: "duckdb.DuckDBPyConnection", held: Mapping[str, str]) -> tuple[dict[str, str], bool, dict[str, bool]]:
    """Return of what kind labels are, whether states are of two kinds, and which columns are of another kind whole."""
    asked = []
    for name in held:
        tests = (READS.get(name, WHOLE), TRUTH, READS["reward"])
        asked += [f"count({name}_w)", *(f"count(*) FILTER ({test.format(f'{name}_w')})" for test in tests)]
    answer = con.execute(f"SELECT {', '.join(asked)} FROM words").fetchone()
    assert answer is not None
    counts = {name: answer[4 * i : 4 * i + 4] for i, name in enumerate(held)}
    kinds = {}
    for name in LABELS:
        n, whole, truth, number = counts[name]
        kinds[name] = "whole" if whole == n else "truth" if truth == n else "number" if number == n else "text"
    mixed = {kinds["state"], kinds["next_state"]} == {"whole", "text"}
    if kinds["state"] != kinds["next_state"]:
        both = {kinds["state"], kinds["next_state"]}
        kinds["state"] = kinds["next_state"] = "number" if both == {"whole", "number"} else "text"
    return kinds, mixed, {name: counts[name][0] > 0 == counts[name][1] for name in READS if name in held}


def _read(held: Mapping[str, str], kinds: Mapping[str, str]) -> list[str]:
    """Return the columns of `log`: what is written, and what can be read of it."""
    truth = "CASE WHEN try_cast({0} AS BOOLEAN) THEN 1 WHEN NOT try_cast({0} AS BOOLEAN) THEN 0 END::BIGINT"
    by_kind = {"whole": "try_cast({0} AS BIGINT)", "truth": truth, "number": "try_cast({0} AS DOUBLE)", "text": "{0}"}
    ends = "coalesce(try_cast(terminated_w AS BOOLEAN), try_cast(terminated_w AS BIGINT)::BOOLEAN)"
    cut = ends.replace("terminated_w", "truncated_w")
    parts = [f"{name}_w" for name in held]
    parts += [f"{by_kind[kinds[name]].format(f'{name}_w')} AS {name}" for name in LABELS[:3]]
    after = by_kind[kinds["next_state"]].format("next_state_w")
    here = by_kind[kinds["state"]].format("state_w")
    # An episode that has ended needs no next state.
    after = f"CASE WHEN {ends} THEN coalesce({after}, {here}) ELSE {after} END" if "terminated" in held else after
    parts.append(f"{after} AS next_state")
    parts.append(f"CASE WHEN {WHOLE.format('step_w')} THEN try_cast(step_w AS BIGINT) END AS step")
    parts.append("try_cast(reward_w AS DOUBLE) AS reward")
    parts += [f"{ends if 'terminated' in held else 'false'} AS terminated"]
    parts += [f"{cut if 'truncated' in held else 'false'} AS truncated"]
    return parts


class Fault(NamedTuple):
    """Something that may be wrong with a row, and the test of it."""

    what: str  # a key of MESSAGES
    test: str
    name: str = ""  # of the column


def _found(written: Written, rows: str, faults: Sequence[Fault], final: int = 0) -> Iterator[Finding]:
    """Yield a finding for each fault that some row has."""
    tests = {str(i): fault.test for i, fault in enumerate(faults)}
    for number, n, some in tested(written.log, rows, tests):
        fault = faults[int(number)]
        text = described(fault.what, n, named(some), final=final, name=fault.name)
        yield Finding("error", fault.what, text, episodes_of(some), n, _first_rows(written, rows, fault.test))


def _first_rows(written: Written, rows: str, test: str) -> tuple[int | str, ...]:
    """Return the first rows that meet a test, by their numbers; of several files with their names."""
    (some,) = written.log.row(f"SELECT min(row, {FIRST}) FILTER ({test}) FROM {rows}")
    places = [(Path(written.files[row // FAR]).name, int(row % FAR)) for row in some or ()]
    return tuple(f"{file} {row}" if len(written.files) > 1 else row for file, row in places)


def _missing(written: Written) -> Iterator[Finding]:
    """Find values that are missing. An episode that has ended needs no next state."""
    tests = {name: f"{name}_w IS NULL" for name in (*COLUMNS, *FLAGS) if name in COLUMNS or name in written.log.flags}
    tests["next_state"] += " AND NOT coalesce(terminated, false)"
    if written.emptied:
        some = " OR ".join(f"{name}_w IS NOT NULL" for name in tests)
        tests = {name: f"{test} AND ({some})" for name, test in tests.items()}
    return _found(written, "log", [Fault("missing", test, name) for name, test in tests.items()])


def _words(written: Written) -> Iterator[Finding]:
    """Find values that are written, and cannot be read. A column of which none can is of another kind, row by row."""
    for name in (name for name, unlike in written.unlike.items() if not unlike):
        test = f"{name}_w IS NOT NULL AND NOT coalesce({READS[name].format(f'{name}_w')}, false)"
        for finding in _found(written, "log", [Fault("word", test, f"{name} that is not {EXPECTED[name]}")]):
            yield _with_example(written, finding, f"{name}_w", test)


def _mixed(written: Written) -> Iterator[Finding]:
    """Find states that are text where the others are whole numbers."""
    if written.mixed:
        for name in ("state", "next_state"):
            word = f"{name}_w"
            test = f"{word} IS NOT NULL AND NOT coalesce({WHOLE.format(word)}, false)"
            what = f"{name} that is not a whole number, as states are elsewhere"
            for finding in _found(written, "log", [Fault("word", test, what)]):
                yield _with_example(written, finding, word, test)


def _with_example(written: Written, finding: Finding, word: str, test: str) -> Finding:
    """Return the finding with the first value that is meant."""
    (such,) = written.log.row(f"SELECT {word} FROM log WHERE {test} ORDER BY row LIMIT 1")
    return replace(finding, text=finding.text.replace("{such}", repr(such[:60])))


def _rewards(written: Written, reward_range: tuple[float, float] | None) -> Iterator[Finding]:
    """Find rewards that are not finite, or outside the declared range."""
    yield from _found(written, "log", [Fault("reward", "NOT isfinite(reward)")])
    if reward_range is None:
        return
    units = declared_units(reward_range)
    slack = 1e-9 * units.scale  # as `units.admits`
    test = f"isfinite(reward) AND NOT (reward BETWEEN {units.low - slack!r} AND {units.high + slack!r})"
    for finding in _found(written, "log", [Fault("range", test)]):
        low, high = written.log.row("SELECT min(reward), max(reward) FROM log WHERE isfinite(reward)")
        text = (
            f"{written.log.where}: rewards lie in {low:g}..{high:g}, outside the declared range ({units.low:g}, "
            f"{units.high:g}): {finding.text} Bounds for a narrower range prove nothing: declare a wider one."
        )
        yield replace(finding, text=text, episodes=())


def _undeclared(written: Written, name: str, columns: Sequence[str], declared: Declared) -> Iterator[Finding]:
    """Find labels that are not among those that were declared."""
    if declared is None or isinstance(declared, str) or written.mixed:
        return
    every = " UNION ".join(f"SELECT {column} AS label FROM log WHERE {column} IS NOT NULL" for column in columns)
    seen = [label for (label,) in written.log.rows(f"{every} ORDER BY label")]
    try:
        coded(name, np.array(seen), declared)
    except InvalidLog as refusal:
        labels = range(declared) if isinstance(declared, int) else {*declared}
        unknown = [label for label in seen if label not in labels][:MOST_UNKNOWN]
        listed = ", ".join(quote_text(label) if isinstance(label, str) else str(label) for label in unknown)
        test = " OR ".join(f"{column} IN ({listed})" for column in columns)
        for finding in _found(written, "log", [Fault("undeclared", test)]):
            yield replace(finding, text=str(refusal), episodes=())


def _chains(written: Written, horizon: int | None) -> Iterator[Finding]:
    """Check steps, states and ends within each episode, but for those of which some step or episode is not known."""
    (first, last) = written.log.row("SELECT min(step), max(step) FROM log")
    if first is None:
        return
    start, final = ends_of(int(first), int(last), horizon)
    torn = (
        "(SELECT episode FROM log WHERE step IS NULL AND episode IS NOT NULL UNION "
        "SELECT beside FROM (SELECT episode, unnest([lag(episode) OVER r, lead(episode) OVER r]) AS beside "
        "FROM log WINDOW r AS (ORDER BY row)) WHERE episode IS NULL AND beside IS NOT NULL)"
    )
    whole = f"episode IS NOT NULL AND episode NOT IN {torn}"
    faults = [Fault(what, test) for what, test in chain_tests(start, final).items()]
    yield from _found(written, in_order(final, whole), faults, final)


def _beside_torn_rows(paths: Paths, asked: Asked, refused: InvalidLog) -> LogReport | None:
    """Return the faults of a CSV of which some rows have not the fields of the header: these, and those of the others.

    None: it is another kind of file, or no row is like that.
    """
    files, _, reader, where = files_as_patterns(paths)
    if reader != "read_csv":
        return None
    with tempfile.TemporaryDirectory(prefix="surefoot-") as folder:
        copies, torn = with_equal_fields(files, column_names(asked.columns).values(), Path(folder))
        if not torn:
            return None
        first = finding_of(torn, len(files) > 1)
        try:
            others = all_faults(copies, asked, where)
        except InvalidLog:
            return LogReport(where, 0, 0, (first,)).with_error(str(refused))
    return replace(others, findings=(first, *others.findings))


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
) -> LogReport:
    """Look at every episode of a log: is it complete, does each state follow from the one before, what is missing?

    The arguments are those of `count_log`; its result is in `report.counted`. A log that cannot be read at all raises
    InvalidLog; everything else is a finding. A log that cannot be used is read once more, row by row, so that all kinds
    of faults are found at once, each with its number and its first rows.
    """
    steps = None if horizon is None else require_horizon(horizon)
    refused: InvalidLog | None = None
    report = None
    try:
        with open_log(paths, columns, memory, threads) as log:
            report = audit(log, steps)
            if report.usable:
                source, glance = glanced(log, horizon, reward_range, after_end)
                return report.with_counts(counted(source, glance, seed, states, actions))
    except InvalidLog as refusal:
        refused = refusal
        report = None if report is None else report.with_error(str(refusal))
    asked = Asked(columns, steps, states, actions, reward_range, memory)
    every: LogReport | None
    try:
        every = all_faults(paths, asked)
    except InvalidLog as refusal:  # not even its values can be read one by one
        every = _beside_torn_rows(paths, asked, refusal)
    if every is not None and every.findings:
        unlike = refused is not None and report is None and not any(found.what == "word" for found in every.errors)
        unlike = unlike and not any(found.what == "fields" for found in every.errors)
        return every.with_error(str(refused)) if unlike else every
    if report is None and refused is not None:
        raise refused
    assert report is not None
    return report
