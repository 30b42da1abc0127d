"""The verdict over all results, in one word and a few plain sentences."""

from collections.abc import Sequence
from typing import NamedTuple

from surefoot.agents.promise import GIVEN_VALUE, UNCERTIFIED
from surefoot.studies.analysis.stats import amount
from surefoot.studies.analysis.summary import Row, Rows, on_given_value, promised_runs, summary
from surefoot.studies.run.store import Results

CERTIFIED, TRUSTED, NOTHING = "CERTIFIED", "ON TRUST", "NO PROMISE"


class OverallVerdict(NamedTuple):
    """The verdict over all results: one word, what it means, and what must be said beside it."""

    word: str  # CERTIFIED, NOT CERTIFIED, ON TRUST or NO PROMISE
    meaning: str
    alarms: tuple[str, ...]  # promises that were broken, by how many runs
    found: tuple[str, ...]
    caveats: tuple[str, ...]  # what is missing, made smaller, or rests on a false premise


def overall_verdict(several: Sequence[Results], summaries: Sequence[Rows] | None = None) -> OverallVerdict:
    """Return the verdict. `summaries` are the summaries of these results, where they are there already.

    A single bonus scaled by hand makes it NOT CERTIFIED; an agent that promises no floor does not.
    """
    tables = [summary(results) for results in several] if summaries is None else summaries
    table = [(results, row) for results, rows in zip(several, tables, strict=True) for row in rows]
    rows = [row for _, row in table]
    word, meaning = _word(several, tables)
    caveats = [(results.study.name, _caveats(results, some)) for results, some in zip(several, tables, strict=True)]
    if len(several) > 1:
        lines = (*_with_names(caveats), *_shared(several))
    else:
        lines = tuple(line for _, some in caveats for line in some)
    return OverallVerdict(word, meaning, alarms=_alarms(table, len(several) > 1), found=_found(rows), caveats=lines)


def _shared(several: Sequence[Results]) -> list[str]:
    """Return a caveat about runs that are counted twice: studies may have cells in common."""
    runs = [(trial.digest, trial.trial) for results in several for some in results.trials.values() for trial in some]
    twice = len(runs) - len(set(runs))
    if not twice:
        return []
    return [f"{twice:,} {_runs(twice)} stand in two studies (the same cell, the same seed), and are counted in both."]


def _word(several: Sequence[Results], tables: Sequence[Rows]) -> tuple[str, str]:
    """Return the word, and what it means."""
    rows = [row for some in tables for row in some]
    # By the study as well as by its trials: some of them may be missing.
    scaled = {
        f"{cell.label} (bonus times {cell.agent.scale:g})": None
        for results, some in zip(several, tables, strict=True)
        for cell, row in zip(results.study.cells, some, strict=True)
        if cell.agent.scale != 1.0 or row["not_certified"]
    }
    certified = sum(row["certified"] or 0 for row in rows)
    given = ", ".join(dict.fromkeys(row["label"] for row in rows if on_given_value(row)))
    trusted = f"{given}: {GIVEN_VALUE}, not certified. " if given else ""
    other = " other" if given else ""
    if scaled:
        others = "The other agents with a floor ran with unscaled constants: their promise is proved."
        return UNCERTIFIED, (
            f"A bonus was scaled by hand, which no proof covers: {', '.join(scaled)}. What came of it was measured "
            f"here and is promised nowhere. {trusted}{others if certified else ''}".rstrip()
        )
    if not certified and any(row["on_trust"] for row in rows):
        if all(on_given_value(row) for row in rows if row["on_trust"]):
            return TRUSTED, f"{trusted}Nothing was certified."
        return TRUSTED, (
            f"{trusted}No{other} run ever left its baseline, and nothing was certified: that the baseline is above the "
            "floor is taken on trust."
        )
    if not certified:
        none = not any(row["trials"] for row in rows)
        why = "There are no trials yet" if none else "No run here comes with a promise of a floor whose premise is true"
        return NOTHING, f"{why}: there is nothing to certify."
    deltas = " or ".join(f"{delta:g}" for delta in sorted({row["delta"] for row in rows if row["certified"]}))
    return CERTIFIED, (
        f"{trusted}Every{other} agent with a floor ran with unscaled constants: its promise is proved at level "
        f"delta = {deltas}, under its premises."
    )


def _alarms(table: Sequence[tuple[Results, Row]], named: bool) -> tuple[str, ...]:
    """Return where an agent did not keep what it promised."""
    broken = [(results, row) for results, row in table if row["broken"]]
    false: dict[str, None] = {}  # said once, though every agent of a scenario had the same log
    for results, row in table:
        if row["false_logs"]:
            where = _where(results, row, named)
            false[
                f"{where}: what the log certified of the baseline is more than it is worth, in {row['false_logs']:,} "
                f"of {row['trials']:,} trials. Its delta of {row['delta'] / 2:g} allows for {50 * row['delta']:g} %."
            ] = None
    if not broken:
        return tuple(false)
    runs, of = sum(row["broken"] for _, row in broken), sum(promised_runs(row) for _, row in table)
    lines = [f"PROMISE BROKEN in {runs:,} of {of:,} runs that came with one."]
    for results, row in broken:
        where = _where(results, row, named)
        what = (
            "the sum of the episodes fell below the floor"
            if row["in_sum"]
            else f"below the floor in {amount(row['violations'])} episodes per run on average"
        )
        lines.append(
            f"{row['label']} in {where}: {row['broken']:,} of {promised_runs(row):,} runs, {what}. Its delta of "
            f"{row['delta']:g} allows for {100 * row['delta']:g} % of runs."
        )
    return (*lines, *false)


def _where(results: Results, row: Row, named: bool) -> str:
    """Return the scenario of a row, with the study's name where there are several studies."""
    return f"{results.study.name}, {row['scenario_title']}" if named else str(row["scenario_title"])


def _found(rows: Rows) -> tuple[str, ...]:
    """Return what happened, in plain words."""
    lines = []
    given, others = ([row for row in rows if on_given_value(row) is is_given] for is_given in (True, False))
    for some, before, after in ((others, "certified ", ""), (given, "", f" that are {GIVEN_VALUE},")):
        runs, broken = sum(map(promised_runs, some)), sum(row["broken"] or 0 for row in some)
        if runs:
            each = all(not row["in_sum"] for row in some if promised_runs(row))
            what = "ever had an episode whose expected return was below the floor" if each else "broke its promise"
            who = f"{broken:,} of" if broken else "None of"
            lines.append(f"{who} the {runs:,} {before}{_runs(runs)}{after} {what}.")
    trusted = sum(row["on_trust"] or 0 for row in others)
    if trusted:
        lines.append(f"{trusted:,} {_runs(trusted)} never left the baseline: trusted throughout, not certified.")
    # A scaled agent without a floor is named once, for its scale.
    free = [row for row in rows if row["no_floor"] and not row["not_certified"]]
    scaled = [row for row in rows if row["not_certified"]]
    for some, whose in ((free, "promising no floor"), (scaled, "with a bonus scaled by hand")):
        if some:
            who = ", ".join(dict.fromkeys(row["label"] for row in some))
            lines.append(f"{who}, {whose}, went below the floor in {_below(some)}.")
    return tuple(lines)


def _below(rows: Rows) -> str:
    """Return in how many runs, and in how many episodes of them, something was below the floor."""
    runs, below = (sum(row[key] for row in rows) for key in ("trials", "runs_below"))
    if not below:
        return f"none of {runs:,} {_runs(runs)}"
    words = f"{below:,} of {runs:,} {_runs(runs)}"
    if len({row["episodes"] for row in rows}) == 1:  # of runs of different lengths a mean says nothing
        mean = sum(row["violations"] * row["trials"] for row in rows) / runs
        words += f", on average in {amount(mean)} of {rows[0]['episodes']:,} episodes"
    return words


def _with_names(caveats: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the caveats of several studies, each once, with the names of its studies."""
    names: dict[str, list[str]] = {}
    for name, lines in caveats:
        for line in lines:
            names.setdefault(line, []).append(name)
    return tuple(f"{', '.join(those)}: {line}" for line, those in names.items())


def _caveats(results: Results, rows: Rows) -> list[str]:
    """Return what a reader must know of one study before believing it."""
    study, lines = results.study, []
    there, wanted = (sum(row[key] for row in rows) for key in ("trials", "trials_wanted"))
    if there < wanted:
        lines.append(f"incomplete: {there:,} of {wanted:,} trials.")
    if study.size == "quick":
        lines.append(f"quick: {study.trials} {'trial' if study.trials == 1 else 'trials'}.")
    blocks = {cell.block for cell in study.cells if cell.block is not None}
    if blocks:
        share = f"{100 * max(blocks):g} %"
        lines.append(
            f"plans in blocks of {share} of the episodes so far: a moment is known to {share} only. Where all trials "
            "share it, an interval without width, or a narrow band, comes from the blocks."
        )
    false, certified, trusted = (
        sum(row[key] or 0 for row in rows) for key in ("premise_false", "certified", "on_trust")
    )
    if false:
        lines.append(
            f"no promise in {false:,} of {false + certified + trusted:,} trials of agents with a floor: the baseline "
            "was truly below the floor, and the promise presumes that it is not."
        )
    return lines


def _runs(n: int) -> str:
    return "run" if n == 1 else "runs"
