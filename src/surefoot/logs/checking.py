"""Check whether a log is what it should be: every episode is looked at, and findings name those
with errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.base.text import how_many
from surefoot.base.validation import LARGEST_NUMBER
from surefoot.errors import printable, printable_lines
from surefoot.logs.reading import COLUMNS, FLAGS, OpenLog

if TYPE_CHECKING:
    from surefoot.logs.log_counts import LogCounts

NAMED = 3  # episodes with an error that a finding names
NO_AMOUNT = (
    # in SQL: sums may overflow, or are no numbers
    f"(NOT isfinite(reward) OR abs(reward) > {LARGEST_NUMBER!r})"
)
ASKED = 30  # so many are asked for: one episode may have errors in several rows
FIRST = 5  # rows with an error that a finding names

# Certificates presume a log from which no episode was left out because of how it went.
LEAVE_OUT = "Leaving episodes out is sound only if it has nothing to do with how they went."
MESSAGES = {  # what is wrong -> what is counted, and the sentences about it
    "missing": (
        "row",
        f"Found {{n}} without {{name}}{{some}}. Fill it in where the log is made. {LEAVE_OUT}",
    ),
    "word": (
        "row",
        "Found {n} with a value of {name}{some}, such as {{such}}. Correct it where the log is "
        "made. " + LEAVE_OUT,
    ),
    "fields": (
        "row",
        "Found {n} with another number of fields than the {name}. Correct this where the log is "
        f"made: a separator inside a value needs quotes around the value. {LEAVE_OUT}",
    ),
    "range": ("reward", "found {n}{some}."),
    "undeclared": ("row", "Found {n}{some} with a label that was not declared."),
    "reward": (
        "infinite or NaN reward",
        f"Found {{n}}{{some}}, or beyond {LARGEST_NUMBER:g}. Remove them at their source.",
    ),
    "duplicate": (
        "repeated step",
        "Found {n}{some}: the episode already has a row for this step. If each file numbers its "
        "episodes from the start, make the ids differ; if a row occurs twice, keep it once.",
    ),
    "gap": (
        "gap",
        "Found {n} in the steps{some}. An episode must have each of its steps, from the first.",
    ),
    "chain": (
        "broken chain",
        "Found {n}{some}: the next_state of a step is not the state of the following step.",
    ),
    "after": (
        "row",
        "Found {n} after the end of an episode{some}. Only the last step of an episode is "
        "terminated.",
    ),
    "short": (
        "incomplete episode",
        "Found {n}{some}: step {final} is missing, and no flag says why. If such an episode ended, "
        "say so in a column terminated; if all episodes are shorter than the longest one, give a "
        "shorter horizon.",
    ),
    "truncated": (
        "episode",
        "Found {n} cut off (truncated) before step {final}{some}. What would have followed is "
        "unknown: give a horizon that all episodes reach. " + LEAVE_OUT,
    ),
}


def described(what: str, n: int, some: str, *, final: int = 0, name: str = "") -> str:
    """Say what is wrong, how often, and in which episodes."""
    noun, sentences = MESSAGES[what]
    return sentences.format(n=how_many(n, noun), some=some, final=final, name=name)


@dataclass(frozen=True)
class Finding:
    """One thing found in a log. An `error` makes the log unusable, a `note` is worth knowing."""

    kind: str  # "error" or "note"
    what: str  # such as "gap": a key of MESSAGES, or the subject of a note
    text: str
    episodes: tuple[int | str, ...] = ()  # some of those concerned
    count: int = 0  # how many rows or episodes are concerned
    # the first of them, counted from 1 below a header; of several files with names
    rows: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable_lines(self.text))

    def __str__(self) -> str:
        rows = ", ".join(map(str, self.rows))
        return f"{self.text} First rows: {rows}." if rows else self.text


@dataclass(frozen=True)
class LogReport:
    """The result of `check_log`."""

    where: str
    rows: int
    episodes: int
    findings: tuple[Finding, ...]
    counted: "LogCounts | None" = None  # None where the log is unusable

    @property
    def usable(self) -> bool:
        """True if there is no error among the findings."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make the log unusable."""
        return tuple(finding for finding in self.findings if finding.kind == "error")

    @property
    def notes(self) -> tuple[Finding, ...]:
        """The findings that are worth knowing."""
        return tuple(finding for finding in self.findings if finding.kind == "note")

    def with_error(self, text: str) -> "LogReport":
        """Return the same report with one more error."""
        return replace(self, findings=(*self.findings, Finding("error", "unusable", text)))

    def with_counts(self, counted: "LogCounts") -> "LogReport":
        """Return the same report with the counts of a usable log."""
        return replace(self, counted=counted, findings=(*self.findings, *_about(counted)))

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values for programs."""
        facts: dict[str, Any] = {
            name: getattr(self, name) for name in ("rows", "episodes", "usable")
        }
        if self.counted is not None:
            log = self.counted
            names = ("H", "S", "A", "coverage", "mean_return")
            facts |= {name: getattr(log, name) for name in names}
            facts["reward_min"] = float(np.nanmin(log.rewards.min))
            facts["reward_max"] = float(np.nanmax(log.rewards.max))
        return {**facts, "findings": [asdict(finding) for finding in self.findings]}

    def __str__(self) -> str:
        size = f"{how_many(self.rows, 'row')}, {how_many(self.episodes, 'episode')}"
        lines = [f"{printable(self.where)}: {size}"]
        if self.counted is not None:
            log = self.counted
            seen = f"{log.pairs_seen:,} of {how_many(log.pairs, 'pair')} (step, state, action) seen"
            lines += [
                sizes(log),
                f"coverage {log.coverage:.1%}: {seen}",
                f"rewards {np.nanmin(log.rewards.min):g}..{np.nanmax(log.rewards.max):g}, mean "
                f"return per episode {log.mean_return:.6g}",
            ]
        lines += [f"{finding.kind}: {finding}" for finding in self.findings]
        lines.append("The log can be used." if self.usable else "The log cannot be used as it is.")
        return "\n".join(lines)


def sizes(log: "LogCounts") -> str:
    """Write H, S and A for the terminal."""
    states = how_many(log.S, "state")
    added = []
    if log.absorbing_state is not None:
        added.append("one of them absorbing, for episodes that end early")
    if log.unseen_state is not None:
        added.append("one of them for all states that were never seen")
    states += f" ({'; '.join(added)})" if added else ""
    return f"H = {how_many(log.H, 'step')}, S = {states}, A = {how_many(log.A, 'action')}"


def audit(log: OpenLog, horizon: int | None = None) -> LogReport:
    """Return all findings that concern rows and episodes."""
    rows, episodes = log.row("SELECT count(*), count(DISTINCT episode) FROM log")
    names = (*COLUMNS, *(flag for flag in FLAGS if flag in log.flags))
    findings = findings_of(
        log, "log", [Fault("missing", f"{name} IS NULL", name) for name in names]
    )
    if not findings:
        first, last = log.row("SELECT min(step), max(step) FROM log")
        start, final = ends_of(first, last, horizon)
        findings = findings_of(log, "log", [Fault("reward", NO_AMOUNT)])
        findings += findings_of(log, in_order(final), chain_faults(start, final), final)
    return LogReport(log.where, int(rows), int(episodes), tuple(findings))


def first_problem(log: OpenLog, horizon: int | None = None) -> str:
    """Return the errors of a log in one message, for `count_log`, which saw only that totals do
    not add up.
    """
    texts = [str(finding) for finding in audit(log, horizon).errors]
    texts = texts or ["The totals of its counts do not add up."]
    return f"{log.where}: {' '.join(texts)} All faults: sf.check_log, or `surefoot logs check`."


class Fault(NamedTuple):
    """Something that may be wrong with a row, and the test of it."""

    what: str  # a key of MESSAGES
    test: str
    name: str = ""  # of the column


def findings_of(log: OpenLog, rows: str, faults: Sequence[Fault], final: int = 0) -> list[Finding]:
    """Return a finding for each fault that some row has: how many rows, some of their episodes,
    and the first rows.
    """
    # A WHERE would be answered from the statistics of Parquet files, which may leave out NaN
    # (duckdb#25521).
    asked = [
        f"count(*) FILTER ({fault.test}), min(episode, {ASKED}) FILTER ({fault.test})"
        for fault in faults
    ]
    answer = iter(log.row(f"SELECT {', '.join(asked)} FROM {rows}"))
    found = []
    for fault, n, some in zip(faults, answer, answer, strict=True):
        if n:
            text = described(fault.what, n, named(some), final=final, name=fault.name)
            (first,) = log.row(f"SELECT min(row, {FIRST}) FILTER ({fault.test}) FROM {rows}")
            places = log.files.places(first)
            found.append(Finding("error", fault.what, text, episodes_of(some), int(n), places))
    return found


def ends_of(first: int, last: int, horizon: int | None) -> tuple[int, int]:
    """Return the numbers of the first step of an episode, and of the last."""
    start = 1 if first == 1 else 0
    H = int(last) - start + 1 if horizon is None else horizon
    return start, start + H - 1


def chain_faults(start: int, final: int) -> list[Fault]:
    """Return what may be wrong with a row of `in_order`, and when."""
    return [
        Fault("duplicate", "before = step"),
        Fault("gap", f"(before IS NULL AND step <> {start}) OR before < step - 1"),
        Fault("chain", "before = step - 1 AND arrived <> state AND NOT ended"),
        Fault("after", "ended"),
        Fault("short", f"after IS NULL AND NOT terminated AND NOT truncated AND step < {final}"),
        Fault("truncated", f"after IS NULL AND truncated AND NOT terminated AND step < {final}"),
    ]


def in_order(final: int, which: str = "true") -> str:
    """Return the rows up to the last step, each with the row before it and after it in its
    episode.
    """
    return (
        "(SELECT *, lag(step) OVER w AS before, lead(step) OVER w AS after, lag(next_state) OVER w "
        "AS arrived, coalesce(lag(terminated) OVER w, false) AS ended FROM log WHERE step <= "
        f"{final} AND {which} WINDOW w AS (PARTITION BY episode ORDER BY step))"
    )


def _about(counted: "LogCounts") -> Iterator[Finding]:
    """Yield notes about a log that can be used."""
    for note in counted.notes:
        yield Finding("note", "log", note)
    book, paid = counted.codebook, counted.rewards
    starts = np.flatnonzero(counted.starts)
    text = (
        f"All episodes start in state {book.state_label(int(starts[0]))!r}. The start is unknown "
        "unless you declare it: start=, or --start."
    )
    if len(starts) > 1:
        text = (
            f"Episodes start in {len(starts)} states. A floor then refers to the average over the "
            "first states."
        )
    yield Finding("note", "starts", text, count=len(starts))
    if not counted.declared:
        low, high = np.nanmin(paid.min), np.nanmax(paid.max)
        text = (
            f"Rewards in the log lie in {low:g}..{high:g}. Declare which rewards are possible with "
            "reward_range (--reward-range LOW HIGH) before anything is certified."
        )
        yield Finding("note", "range", text)
    declare = "Rewards are unknown unless you declare them: rewards=, or --rewards."
    unknown = "Certificates will treat them as unknown."
    if counted.by_pair:
        text = f"Every pair always paid the same. {declare}"
    elif counted.by_transition:
        text = (
            "Every transition always paid the same: rewards depend on the next state, too. "
            f"{declare}"
        )
    elif varied := int((paid.min < paid.max).sum()):
        text = f"Rewards vary ({varied:,} of {int((paid.n > 0).sum()):,} pairs). {unknown}"
    else:
        text = f"Too few pairs were seen twice to know whether rewards vary. {unknown}"
    yield Finding("note", "rewards", text)
    if counted.unseen_state is not None:
        text = (
            f"The states were not declared. There may be more than the {len(book.states)} in the "
            "log: one more state stands for them, and pays the least that is possible. If you know "
            "that there are no others, declare it: states=, or --states."
        )
        yield Finding("note", "labels", text)


def episodes_of(some: Any) -> tuple[int | str, ...]:
    """Return the first of these episodes, each once."""
    return tuple(dict.fromkeys(some or ()))[:NAMED]


def named(some: Any) -> str:
    """Write ` (episodes 3, 17, 18, ...)`."""
    some_of, all_of = episodes_of(some), len(set(some or ()))
    if not some_of:
        return ""
    noun = "episode" if len(some_of) == 1 else "episodes"
    more = ", ..." if all_of > NAMED else ""
    return f" ({noun} {', '.join(str(x) for x in some_of)}{more})"
