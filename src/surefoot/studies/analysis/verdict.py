"""The verdict over all results, in one word and a few plain sentences."""

from collections.abc import Sequence
from typing import NamedTuple

from surefoot.agents.promise import GIVEN_VALUE, UNCERTIFIED
from surefoot.base.text import how_many
from surefoot.studies.analysis.stats import amount
from surefoot.studies.analysis.summary import Rows, on_given_value, promised_runs, summary, total
from surefoot.studies.analysis.trials import grouped
from surefoot.studies.run.store import Results

CERTIFIED, TRUSTED, NOTHING = "CERTIFIED", "ON TRUST", "NO PROMISE"
Known = Sequence[tuple[Results, Rows]]  # of each study: its results, and their summary


class OverallVerdict(NamedTuple):
    """The verdict over all results: one word, what it means, and what must be said beside it."""

    word: str  # CERTIFIED, NOT CERTIFIED, ON TRUST or NO PROMISE
    meaning: str
    alarms: tuple[str, ...]  # promises that were broken, by how many runs
    found: tuple[str, ...]
    caveats: tuple[str, ...]  # what is missing, made smaller, or rests on a false premise


def overall_verdict(
    several: Sequence[Results], summaries: Sequence[Rows] | None = None
) -> OverallVerdict:
    """Return the verdict. `summaries` are the summaries of these results, where they are there
    already.

    A single bonus scaled by hand makes it NOT CERTIFIED; an agent that promises no floor does not.
    """
    known = list(zip(several, summaries or map(summary, several), strict=True))
    rows = [row for _, some in known for row in some]
    caveats = [
        (line, results.study.name) for results, some in known for line in _caveats(results, some)
    ]
    lines = [line for line, _ in caveats]
    if len(known) > 1:  # each once, with the names of its studies
        lines = [
            f"{', '.join(names)}: {line}" for line, names in grouped(caveats).items()
        ] + _shared(several)
    return OverallVerdict(*_word(known, rows), _alarms(known, rows), _found(rows), tuple(lines))


def _shared(several: Sequence[Results]) -> list[str]:
    """Return a caveat about runs that are counted twice: studies may have cells in common."""
    runs = [(trial.digest, trial.trial) for results in several for trial in results.every]
    twice = how_many(len(runs) - len(set(runs)), "run")
    line = f"{twice} stand in two studies (the same cell, the same seed), and are counted in both."
    return [line] if len(set(runs)) < len(runs) else []


def _word(known: Known, rows: Rows) -> tuple[str, str]:
    """Return the word, and what it means."""
    # By the study as well as by its trials: some of them may be missing.
    scaled = {
        f"{cell.label} (bonus times {cell.agent.scale:g})": None
        for results, some in known
        for cell, row in zip(results.study.cells, some, strict=True)
        if cell.agent.scale != 1.0 or row["not_certified"]
    }
    certified = total(rows, "certified")
    given = _labels([row for row in rows if on_given_value(row)])
    trusted = f"{given}: {GIVEN_VALUE}, not certified. " if given else ""
    other = " other" if given else ""
    if scaled:
        others = (
            "The other agents with a floor ran with unscaled constants: their promise is proved."
        )
        return UNCERTIFIED, (
            f"A bonus was scaled by hand, which no proof covers: {', '.join(scaled)}. What came of "
            "it was measured here and is promised nowhere. "
            f"{trusted}{others if certified else ''}".rstrip()
        )
    if certified:
        deltas = " or ".join(
            f"{delta:g}" for delta in sorted({row["delta"] for row in rows if row["certified"]})
        )
        return CERTIFIED, (
            f"{trusted}Every{other} agent with a floor ran with unscaled constants: its promise is "
            f"proved at level delta = {deltas}, under its premises."
        )
    on_trust = [row for row in rows if row["on_trust"]]
    if not on_trust:
        none = not total(rows, "trials")
        why = (
            "There are no trials yet"
            if none
            else "No run here comes with a promise of a floor whose premise is true"
        )
        return NOTHING, f"{why}: there is nothing to certify."
    if all(map(on_given_value, on_trust)):
        return TRUSTED, f"{trusted}Nothing was certified."
    return TRUSTED, (
        f"{trusted}No{other} run ever left its baseline, and nothing was certified: that the "
        "baseline is above the floor is taken on trust."
    )


def _alarms(known: Known, rows: Rows) -> tuple[str, ...]:
    """Return where an agent did not keep what it promised."""
    broken: list[str] = []
    false: list[str] = []
    for study, row in ((results.study, row) for results, some in known for row in some):
        where = f"{study.name}, " if len(known) > 1 else ""
        where += row["scenario_title"]
        if row["false_logs"]:
            false.append(
                f"{where}: what the log certified of the baseline is more than it is worth, in "
                f"{row['false_logs']:,} of {row['trials']:,} trials. Its delta of "
                f"{row['delta'] / 2:g} allows for {50 * row['delta']:g} %."
            )
        if row["broken"]:
            what = f"below the floor in {amount(row['violations'])} episodes per run on average"
            if row["in_sum"]:
                what = "the sum of the episodes fell below the floor"
            broken.append(
                f"{row['label']} in {where}: {row['broken']:,} of {promised_runs(row):,} runs, "
                f"{what}. Its delta of {row['delta']:g} allows for {100 * row['delta']:g} % of "
                "runs."
            )
    if broken:
        of = sum(map(promised_runs, rows))
        broken = [
            f"PROMISE BROKEN in {total(rows, 'broken'):,} of {of:,} runs that came with one.",
            *broken,
        ]
    # What a log certified is said once, though every agent of a scenario had the same log.
    return (*broken, *dict.fromkeys(false))


def _found(rows: Rows) -> tuple[str, ...]:
    """Return what happened, in plain words."""
    lines = []
    given = [row for row in rows if on_given_value(row)]
    others = [row for row in rows if not on_given_value(row)]
    for some, before, after in (
        (others, "certified ", ""),
        (given, "", f" that are {GIVEN_VALUE},"),
    ):
        runs, broken = sum(map(promised_runs, some)), total(some, "broken")
        if runs:
            in_sum = any(row["in_sum"] for row in some if promised_runs(row))
            what = (
                "broke its promise"
                if in_sum
                else "ever had an episode whose expected return was below the floor"
            )
            who = f"{broken:,} of" if broken else "None of"
            lines.append(f"{who} the {how_many(runs, f'{before}run')}{after} {what}.")
    trusted = total(others, "on_trust")
    if trusted:
        lines.append(
            f"{how_many(trusted, 'run')} never left the baseline: trusted throughout, not "
            "certified."
        )
    # A scaled agent without a floor is named once, for its scale.
    free = [row for row in rows if row["no_floor"] and not row["not_certified"]]
    scaled = [row for row in rows if row["not_certified"]]
    for some, whose in ((free, "promising no floor"), (scaled, "with a bonus scaled by hand")):
        if some:
            lines.append(f"{_labels(some)}, {whose}, went below the floor in {_below(some)}.")
    return tuple(lines)


def _labels(rows: Rows) -> str:
    return ", ".join(dict.fromkeys(row["label"] for row in rows))


def _below(rows: Rows) -> str:
    """Return in how many runs, and in how many episodes of them, something was below the floor."""
    runs, below = total(rows, "trials"), total(rows, "runs_below")
    words = f"{below:,} of {how_many(runs, 'run')}" if below else f"none of {how_many(runs, 'run')}"
    # of runs of different lengths a mean says nothing
    if below and len({row["episodes"] for row in rows}) == 1:
        mean = sum(row["violations"] * row["trials"] for row in rows) / runs
        words += f", on average in {amount(mean)} of {rows[0]['episodes']:,} episodes"
    return words


def _caveats(results: Results, rows: Rows) -> list[str]:
    """Return what a reader must know of one study before believing it."""
    study, lines = results.study, []
    there, wanted = total(rows, "trials"), total(rows, "trials_wanted")
    if there < wanted:
        lines.append(f"incomplete: {there:,} of {wanted:,} trials.")
    if study.size == "quick":
        lines.append(f"quick: {how_many(study.trials, 'trial')}.")
    block = max(cell.replan for cell in study.cells)
    if block > 0.0:
        share = f"{100 * block:g} %"
        lines.append(
            f"plans in blocks of {share} of the episodes so far: a moment is known to {share} "
            "only. Where all trials share it, an interval without width, or a narrow band, comes "
            "from the blocks."
        )
    false = total(rows, "premise_false")
    if false:
        of = false + total(rows, "certified") + total(rows, "on_trust")
        lines.append(
            f"no promise in {false:,} of {of:,} trials of agents with a floor: the baseline "
            "was truly below the floor, and the promise presumes that it is not."
        )
    return lines
