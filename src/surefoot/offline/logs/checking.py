"""Is a log what it should be? Every episode is looked at; findings name the offending ones."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.offline.logs.reading import COLUMNS, FLAGS, OpenLog

if TYPE_CHECKING:
    from surefoot.offline.logs.log_counts import LogCounts

NAMED = 3  # offending episodes that a finding names
ASKED = 30  # as many are asked for: one may offend in several rows


WORDS = {  # what is wrong -> what there is so many of, and the rest of the sentence
    "missing": ("row", " without {name}{some}. Fill it in, or leave those episodes out as a whole."),
    "reward": ("reward", " infinite or not a number{some}. Remove them at their source."),
    "duplicate": (
        "row",
        " repeating a step of their episode{some}. If files number their episodes anew, make the ids differ; if a row "
        "is there twice, count it once.",
    ),
    "gap": ("gap", " in the steps{some}: an episode must have each of its steps, from the first."),
    "chain": ("broken chain", "{some}: the next_state of a step is not the state of the step that follows."),
    "after": ("row", " after the end of their episode{some}: terminated is said of the last step alone."),
    "short": (
        "episode",
        " stopping before step {final} without saying why{some}. If they ended, say so in a column terminated; if all "
        "have fewer steps than the longest, give a shorter horizon.",
    ),
    "truncated": (
        "episode",
        " cut (truncated) before step {final}{some}: what would have come is unknown. Give a horizon that all of them "
        "reach. Leaving them out is sound only if the cut had nothing to do with how they went.",
    ),
}


def described(what: str, n: int, some: str, *, final: int = 0, name: str = "") -> str:
    """What is wrong, how often, and in which episodes."""
    noun, words = WORDS[what]
    return how_many(n, noun) + words.format(some=some, final=final, name=name)


def how_many(n: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


@dataclass(frozen=True)
class Finding:
    """One thing found in a log. An `error` makes it unusable, a `note` is worth knowing."""

    kind: str  # "error" or "note"
    what: str  # such as "gap"
    text: str
    episodes: tuple[int | str, ...] = ()  # some of those concerned
    count: int = 0  # how many rows or episodes are concerned


@dataclass(frozen=True)
class LogReport:
    """What `check_log` found."""

    where: str
    rows: int
    episodes: int
    findings: tuple[Finding, ...]
    counted: "LogCounts | None" = None  # None where the log is unusable

    @property
    def usable(self) -> bool:
        """Is there no error among the findings?"""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What makes it unusable."""
        return tuple(finding for finding in self.findings if finding.kind == "error")

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What is worth knowing."""
        return tuple(finding for finding in self.findings if finding.kind == "note")

    def with_error(self, text: str) -> "LogReport":
        """The same with one more error."""
        return replace(self, findings=(*self.findings, Finding("error", "unusable", text)))

    def with_counts(self, counted: "LogCounts") -> "LogReport":
        """The same with what a usable log holds."""
        return replace(self, counted=counted, findings=(*self.findings, *_about(counted)))

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        facts: dict[str, Any] = {"rows": self.rows, "episodes": self.episodes, "usable": self.usable}
        if self.counted is not None:
            log = self.counted
            facts |= {"H": log.H, "S": log.S, "A": log.A, "coverage": log.coverage, "mean_return": log.mean_return}
            facts |= {"reward_min": float(np.nanmin(log.rewards.min)), "reward_max": float(np.nanmax(log.rewards.max))}
        return {**facts, "findings": [asdict(finding) for finding in self.findings]}

    def __str__(self) -> str:
        lines = [f"{self.where}: {how_many(self.rows, 'row')}, {how_many(self.episodes, 'episode')}"]
        if self.counted is not None:
            log = self.counted
            seen = int((log.rewards.n > 0).sum())
            lines += [
                sizes(log),
                f"coverage {log.coverage:.1%}: {how_many(seen, 'pair')} (step, state, action) seen",
                f"rewards {np.nanmin(log.rewards.min):g}..{np.nanmax(log.rewards.max):g}, mean return of an episode "
                f"{log.mean_return:.6g}",
            ]
        for finding in self.findings:
            lines.append(f"{finding.kind}: {finding.text}")
        lines.append("The log can be used." if self.usable else "The log cannot be used as it is.")
        return "\n".join(lines)


def sizes(log: "LogCounts") -> str:
    """H, S and A in words."""
    rest = " (one of them to rest in after an early end)" * (log.absorbing_state is not None)
    return f"H = {how_many(log.H, 'step')}, S = {how_many(log.S, 'state')}{rest}, A = {how_many(log.A, 'action')}"


def audit(log: OpenLog, horizon: int | None = None) -> LogReport:
    """All findings that concern rows and episodes."""
    rows, episodes = log.row("SELECT count(*), count(DISTINCT episode) FROM log")
    found = _missing(log)
    if not found:
        found = [*_rewards(log), *_chains(log, horizon)]
    return LogReport(log.where, int(rows), int(episodes), tuple(found))


def first_problem(log: OpenLog, horizon: int | None = None) -> str:
    """The errors of a log in one message; for `count_log`, which saw only that totals do not add up."""
    report = audit(log, horizon)
    texts = [finding.text for finding in report.errors] or ["its totals do not add up."]
    return f"{log.where}: {' '.join(texts)}"


def _missing(log: OpenLog) -> list[Finding]:
    """Values that are not there."""
    found = []
    names = (*COLUMNS, *(flag for flag in FLAGS if flag in log.flags))
    lacks = [f"count(*) - count({name}), min(episode, {ASKED}) FILTER ({name} IS NULL)" for name in names]
    answer = log.row(f"SELECT {', '.join(lacks)} FROM log")
    for i, name in enumerate(names):
        n, some = answer[2 * i], answer[2 * i + 1]
        if n:
            text = described("missing", n, _named(some), name=name)
            found.append(Finding("error", "missing", text, _episodes(some), int(n)))
    return found


def _rewards(log: OpenLog) -> list[Finding]:
    """Rewards that are no numbers."""
    # A WHERE would be answered from the statistics of Parquet files, which may leave out NaN (duckdb#25521).
    bad = "NOT isfinite(reward)"
    n, some = log.row(f"SELECT count(*) FILTER ({bad}), min(episode, {ASKED}) FILTER ({bad}) FROM log")
    if not n:
        return []
    text = described("reward", n, _named(some))
    return [Finding("error", "reward", text, _episodes(some), int(n))]


def _chains(log: OpenLog, horizon: int | None) -> list[Finding]:
    """Steps, states and ends within each episode, by one pass in order of steps."""
    (first, last) = log.row("SELECT min(step), max(step) FROM log")
    start = 1 if first == 1 else 0
    H = int(last) - start + 1 if horizon is None else horizon
    final = start + H - 1
    tests = {
        "duplicate": "before = step",
        "gap": f"(before IS NULL AND step <> {start}) OR before < step - 1",
        "chain": "before = step - 1 AND arrived <> state AND NOT ended",
        "after": "ended",
        "short": f"after IS NULL AND NOT terminated AND NOT truncated AND step < {final}",
        "truncated": f"after IS NULL AND truncated AND NOT terminated AND step < {final}",
    }
    asked = ", ".join(f"count(*) FILTER ({test}), min(episode, {ASKED}) FILTER ({test})" for test in tests.values())
    found = log.row(
        f"SELECT {asked} FROM (SELECT *, lag(step) OVER w AS before, lead(step) OVER w AS after, "
        "lag(next_state) OVER w AS arrived, coalesce(lag(terminated) OVER w, false) AS ended "
        f"FROM log WHERE step <= {final} WINDOW w AS (PARTITION BY episode ORDER BY step))"
    )
    findings = []
    for i, what in enumerate(tests):
        n, some = found[2 * i], found[2 * i + 1]
        if n:
            text = described(what, n, _named(some), final=final)
            findings.append(Finding("error", what, text, _episodes(some), int(n)))
    return findings


def _about(counted: "LogCounts") -> list[Finding]:
    """What is worth knowing of a log that can be used."""
    found = [Finding("note", "log", note) for note in counted.notes]
    book, paid = counted.codebook, counted.rewards
    starts = np.flatnonzero(counted.starts)
    if len(starts) > 1:
        text = f"Episodes start in {len(starts)} states; a floor is then about the average over the start."
        found.append(Finding("note", "starts", text, count=len(starts)))
    if not counted.declared:
        low, high = counted.reward_range
        text = (
            f"Rewards lie in {low:g}..{high:g}. Say which are possible with reward_range (--reward-range LOW HIGH) "
            "before anything is certified."
        )
        found.append(Finding("note", "range", text))
    if counted.by_pair:
        text = "Every pair always paid the same. If that is how it is, rewards are known where they were seen."
    elif counted.by_transition:
        text = "Every transition always paid the same: rewards depend on the next state as well."
    else:
        varied = int((paid.min < paid.max).sum())
        text = "Too few pairs were seen twice to tell whether rewards vary: they will be certified as unknown."
    if not counted.by_transition and not counted.by_pair and varied:
        text = f"Rewards vary ({varied:,} of {int((paid.n > 0).sum()):,} pairs): they will be certified as unknown."
    found.append(Finding("note", "rewards", text))
    names = [how_many(len(labels), name) for name, labels in (("state", book.states), ("action", book.actions))]
    text = f"The {names[0]} and {names[1]} of the log are taken for all there are, unless you declare others."
    found.append(Finding("note", "labels", text))
    return found


def _episodes(some: Any) -> tuple[int | str, ...]:
    return tuple(dict.fromkeys(some or ()))[:NAMED]


def _named(some: Any) -> str:
    """`, such as in episodes 3, 17, 18`."""
    named, all_of = _episodes(some), len(set(some or ()))
    if not named:
        return ""
    return f" (episode{'s' * (len(named) > 1)} {', '.join(str(x) for x in named)}{', ...' * (all_of > NAMED)})"
