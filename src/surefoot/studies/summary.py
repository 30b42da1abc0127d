"""What came of a study in a few numbers and words: for a terminal, for the page, for programs.

`summary` has one row a cell, `standing` says what may be claimed: by the trials that are there.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.agents import AGENTS
from surefoot.checks import VIOLATION_TOLERANCE
from surefoot.studies.spec import Cell, Learner, Panel
from surefoot.studies.stats import at_most, mean_interval, summarise_optional
from surefoot.studies.store import Results
from surefoot.studies.trial import Trial

if TYPE_CHECKING:
    from rich.console import Console

NOISE = 1e-6  # sums of rounding errors over all episodes stay below
UNCERTIFIED, CERTIFIED, TRUSTED, NOTHING = "NOT CERTIFIED", "CERTIFIED", "ON TRUST", "NO PROMISE"


def summary(results: Results) -> list[dict[str, Any]]:
    """One row a cell, in the order of the study. A cell without trials has None for what only they can tell.

    Returns and regret are in the world's units, means over trials; `low` and `high` are 95 % t intervals (None of one
    trial). Beside each is what the baseline alone would have had in the same trials. Episodes count from 0: the median
    over trials is None where half of them never got there.
    """
    return [
        _row(cell, results.of(cell.panel.id, cell.learner.id), results.study.trials) for cell in results.study.cells
    ]


def _row(cell: Cell, trials: Sequence[Trial], wanted: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "panel": cell.panel.id,
        "panel_title": title_of(cell.panel),
        "learner": cell.learner.id,
        "label": cell.label,
        "in_sum": AGENTS[cell.learner.agent].in_sum,
        "delta": cell.delta,
        "episodes": cell.episodes,
        "trials": len(trials),
        "trials_wanted": wanted,
    }
    if not trials:
        return {**row, **dict.fromkeys(OF_TRIALS)}
    regret, returns = (mean_interval([getattr(trial, of) for trial in trials]) for of in ("regret", "mean_value"))
    below = sum(trial.violated for trial in trials)
    return {
        **row,
        "told": any(trial.told for trial in trials),
        "floor": trials[0].floor,
        "optimum": trials[0].optimum,
        "baseline": _mean([trial.baseline for trial in trials]),
        "baseline_low": min(trial.baseline for trial in trials),
        "baseline_high": max(trial.baseline for trial in trials),
        "baseline_below": sum(baseline_is_below(trial) for trial in trials),
        "violations": _mean([trial.violations for trial in trials]),
        "baseline_violations": _mean([trial.episodes * baseline_is_below(trial) for trial in trials]),
        "runs_below": below,
        "runs_below_at_most": at_most(below, len(trials)),
        "certified": sum(is_proved(trial, cell.learner) for trial in trials),
        "on_trust": sum(is_on_trust(trial, cell.learner) for trial in trials),
        "false_logs": sum(certificate_is_false(trial) for trial in trials),
        "broken": sum(breaks_promise(trial, cell.learner) for trial in trials),
        "premise_false": sum(premise_is_false(trial) for trial in trials),
        "not_certified": sum(is_uncertified(trial) for trial in trials),
        "no_floor": sum("no floor promised" in trial.promise for trial in trials),
        "promises": promises_of(trials),
        "regret": regret.mean,
        "regret_low": _finite(regret.low),
        "regret_high": _finite(regret.high),
        "baseline_regret": _mean([trial.episodes * (trial.optimum - trial.baseline) for trial in trials]),
        "mean_return": returns.mean,
        "mean_return_low": _finite(returns.low),
        "mean_return_high": _finite(returns.high),
        "baseline_return": _mean([trial.baseline for trial in trials]),
        **_first("off_baseline", [trial.off_baseline for trial in trials]),
        **_first("first_optimistic", [trial.first_optimistic for trial in trials]),
    }


def _first(name: str, when: Sequence[int | None]) -> dict[str, Any]:
    """Median, earliest, latest, and how many never."""
    median, never = summarise_optional(when)
    happened = [k for k in when if k is not None]
    return {
        name: median,
        f"{name}_earliest": min(happened, default=None),
        f"{name}_latest": max(happened, default=None),
        f"{name}_never": never,
    }


OF_TRIALS = (
    *("told", "floor", "optimum", "baseline", "baseline_low", "baseline_high", "baseline_below", "violations"),
    *("baseline_violations", "runs_below", "runs_below_at_most", "certified", "on_trust", "false_logs"),
    *("broken", "premise_false", "not_certified", "no_floor", "promises"),
    *("regret", "regret_low", "regret_high", "baseline_regret"),
    *("mean_return", "mean_return_low", "mean_return_high", "baseline_return"),
    *_first("off_baseline", [None]),
    *_first("first_optimistic", [None]),
)


def _mean(values: Sequence[float]) -> float:
    return mean_interval([float(value) for value in values]).mean


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else value


def title_of(panel: Panel) -> str:
    """What a panel is called."""
    return panel.heading


def baseline_is_below(trial: Trial) -> bool:
    """Is the baseline truly below the floor?"""
    return trial.baseline < trial.floor - VIOLATION_TOLERANCE


def premise_is_false(trial: Trial) -> bool:
    """Was there a promise that presumed what is not so?"""
    return trial.promise.startswith("no promise: its premise is false")


def is_uncertified(trial: Trial) -> bool:
    """Was a bonus scaled by hand?"""
    return trial.promise.startswith(UNCERTIFIED)


def breaks_promise(trial: Trial, learner: Learner) -> bool:
    """Did a run do what it promised not to?

    A learner that keeps the sum of all episodes may be below the floor in some of them: of it the sum is judged.
    """
    if not trial.certified:
        return False
    if AGENTS[learner.agent].in_sum:
        # What rounding adds up to over so many episodes is not a loss.
        return trial.min_cumulative < -VIOLATION_TOLERANCE * trial.episodes
    return trial.violated


def is_proved(trial: Trial, learner: Learner) -> bool:
    """Did the promise rest on proof? It does off the baseline, and on one that a log certified above the floor."""
    cleared = trial.log_lower is not None and trial.log_lower >= trial.floor
    left = trial.off_baseline is not None or breaks_promise(trial, learner)
    return trial.certified and (left or cleared)


def is_on_trust(trial: Trial, learner: Learner) -> bool:
    """Was nothing ever played but a baseline that nothing certifies? Then its owner's word is all there is."""
    return trial.certified and not is_proved(trial, learner)


def certificate_is_false(trial: Trial) -> bool:
    """Is the baseline truly worth less than a log certified?"""
    return trial.log_lower is not None and trial.log_lower > trial.baseline + VIOLATION_TOLERANCE


def promises_of(trials: Sequence[Trial]) -> dict[str, int]:
    """What is promised, without the numbers that differ from trial to trial, and in how many trials."""
    counted: dict[str, int] = {}
    for trial in trials:
        words = re.sub(r"value of \S+, which was told", "value, which was told", trial.promise)
        words = re.sub(r"(its premise is false), .*", r"\1, the baseline is below the floor", words)
        counted[words] = counted.get(words, 0) + 1
    return counted


class Standing(NamedTuple):
    """What may be said over all results: one word, what it means, and what must be said beside it."""

    word: str  # CERTIFIED, NOT CERTIFIED, ON TRUST or NO PROMISE
    meaning: str
    alarms: tuple[str, ...]  # promises that were broken, by how many runs
    found: tuple[str, ...]
    caveats: tuple[str, ...]  # what is missing, made smaller, or rests on a false premise


def standing(several: Sequence[Results]) -> Standing:
    """The verdict. A single bonus scaled by hand makes it NOT CERTIFIED; a learner that promises no floor does not."""
    table = [(results, row) for results in several for row in summary(results)]
    return Standing(
        *_word(several, [row for _, row in table]),
        alarms=_alarms(table, len(several) > 1),
        found=_found([row for _, row in table]),
        caveats=(
            *_of_which([(results.study.name, words) for results in several for words in _caveats(results)]),
            *_shared(several),
        )
        if len(several) > 1
        else tuple(_caveats(several[0])),
    )


def _shared(several: Sequence[Results]) -> list[str]:
    """Cells of different studies may be the same, and then so are their runs."""
    runs = [(trial.digest, trial.trial) for results in several for some in results.trials.values() for trial in some]
    twice = len(runs) - len(set(runs))
    if not twice:
        return []
    return [f"{twice:,} {_runs(twice)} stand in two studies (the same cell, the same seed), and are counted in both."]


def _word(several: Sequence[Results], rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
    # By the study as well as by its trials: those that are not there yet would have said so.
    scaled = {
        f"{cell.label} (bonus times {cell.learner.scale:g})": None
        for results in several
        for cell in results.study.cells
        if cell.learner.scale != 1.0 or any(map(is_uncertified, results.of(cell.panel.id, cell.learner.id)))
    }
    certified = sum(row["certified"] or 0 for row in rows)
    if scaled:
        rest = " The other learners with a floor ran with unscaled constants: their promise is proved." * (
            certified > 0
        )
        return UNCERTIFIED, (
            f"A bonus was scaled by hand, which no proof covers: {', '.join(scaled)}. What came of it was measured "
            f"here and is promised nowhere.{rest}"
        )
    if not certified and any(row["on_trust"] for row in rows):
        return TRUSTED, (
            "No run ever left its baseline, and nothing was certified: that the baseline is above the floor is its "
            "owner's word."
        )
    if not certified:
        none = not any(row["trials"] for row in rows)
        why = "There are no trials yet" if none else "No run here comes with a promise of a floor whose premise is true"
        return NOTHING, f"{why}: there is nothing to certify."
    deltas = " or ".join(f"{delta:g}" for delta in sorted({row["delta"] for row in rows if row["certified"]}))
    return CERTIFIED, (
        "Every learner with a floor ran with unscaled constants: its promise is proved at level "
        f"delta = {deltas}, under its premises."
    )


def _alarms(table: Sequence[tuple[Results, dict[str, Any]]], named: bool) -> tuple[str, ...]:
    """Where a certified learner did not keep what it promised."""
    broken = [(results, row) for results, row in table if row["broken"]]
    false = {
        f"{results.study.name}, "
        * named
        + f"{row['panel_title']}: what the log certified of the baseline is more than "
        f"it is worth, in {row['false_logs']:,} of {row['trials']:,} trials. Its delta of {row['delta'] / 2:g} allows "
        f"for {50 * row['delta']:g} % of them.": None
        for results, row in table
        if row["false_logs"]
    }
    if not broken:
        return tuple(false)
    runs, of = (sum(row[key] or 0 for _, row in table) for key in ("broken", "certified"))
    lines = [f"PROMISE BROKEN in {runs:,} of {of:,} runs that came with one."]
    for results, row in broken:
        where = f"{results.study.name}, " * named + row["panel_title"]
        what = (
            "the sum of the episodes fell below the floor"
            if row["in_sum"]
            else f"below the floor in {amount(row['violations'])} episodes a run on average"
        )
        lines.append(
            f"{row['label']} in {where}: {row['broken']:,} of {row['certified']:,} runs, {what}. Its delta of "
            f"{row['delta']:g} allows for {100 * row['delta']:g} % of runs."
        )
    return (*lines, *false)


def _found(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """What happened, in plain words."""
    lines = []
    certified, broken = (sum(row[key] or 0 for row in rows) for key in ("certified", "broken"))
    if certified:
        each = all(not row["in_sum"] for row in rows if row["certified"])
        what = "ever had an episode whose expected return was below the floor" if each else "broke its promise"
        who = f"{broken:,} of" if broken else "None of"
        lines.append(f"{who} the {certified:,} certified {_runs(certified)} {what}.")
    trusted = sum(row["on_trust"] or 0 for row in rows)
    if trusted:
        lines.append(f"{trusted:,} {_runs(trusted)} never left the baseline: trusted throughout, not certified.")
    # A scaled learner without a floor is under its scale alone.
    free = [row for row in rows if row["no_floor"] and not row["not_certified"]]
    scaled = [row for row in rows if row["not_certified"]]
    for some, whose in ((free, "promising no floor"), (scaled, "with a bonus scaled by hand")):
        if some:
            who = ", ".join(dict.fromkeys(row["label"] for row in some))
            lines.append(f"{who}, {whose}, went below the floor in {_below(some)}.")
    return tuple(lines)


def _below(rows: Sequence[dict[str, Any]]) -> str:
    """In how many runs, and in how many episodes of them."""
    runs, below = (sum(row[key] for row in rows) for key in ("trials", "runs_below"))
    if not below:
        return f"none of {runs:,} {_runs(runs)}"
    words = f"{below:,} of {runs:,} {_runs(runs)}"
    if len({row["episodes"] for row in rows}) == 1:  # of runs of different lengths a mean says nothing
        mean = sum(row["violations"] * row["trials"] for row in rows) / runs
        words += f", on average in {amount(mean)} of {rows[0]['episodes']:,} episodes"
    return words


def _of_which(said: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """What is said of several studies, once, with their names."""
    names: dict[str, list[str]] = {}
    for name, words in said:
        names.setdefault(words, []).append(name)
    return tuple(f"{', '.join(those)}: {words}" for words, those in names.items())


def _caveats(results: Results) -> list[str]:
    """What a reader must know of one study before believing it."""
    study, lines = results.study, []
    if results.missing:
        wanted = len(study.cells) * study.trials
        lines.append(f"incomplete: {wanted - results.missing:,} of {wanted:,} trials.")
    if study.size == "quick":
        blocks = all(isinstance(cell.replan, tuple) and cell.replan[0] == "blocks" for cell in study.cells)
        trials = f"{study.trials} trial{'s' * (study.trials != 1)}"
        lines.append(f"quick: {'plans in blocks, so that moments are known to 1 % only; ' * blocks}{trials}.")
    rows = summary(results)
    false, true = (sum(row[key] or 0 for row in rows) for key in ("premise_false", "certified"))
    true += sum(row["on_trust"] or 0 for row in rows)
    if false:
        lines.append(
            f"no promise in {false:,} of {false + true:,} trials of learners with a floor: the baseline was truly "
            "below the floor, and the promise presumes that it is not."
        )
    return lines


def _runs(n: int) -> str:
    return "run" if n == 1 else "runs"


class Glance(NamedTuple):
    """A learner over all panels of a study, in a few words."""

    label: str
    promise: str
    below: str  # in how many runs it ever was below the floor
    regret: str  # in parts of what the baseline alone would have had
    left: str  # in how many runs it left the baseline


def glance(results: Results) -> list[Glance]:
    """Each learner that has trials."""
    lines, table = [], summary(results)
    for learner in results.study.learners:
        rows = [row for row in table if row["learner"] == learner.id and row["trials"]]
        if rows:
            lines.append(_glance(rows))
    return lines


def _glance(rows: Sequence[dict[str, Any]]) -> Glance:
    total = {key: sum(row[key] for row in rows) for key in COUNTS}
    runs = total["trials"]
    if total["not_certified"]:
        promise = UNCERTIFIED
    elif total["no_floor"]:
        promise = "promises no floor"
    elif total["broken"]:
        promise = f"PROMISE BROKEN in {total['broken']:,} of {total['certified']:,} runs"
    else:
        promise = "certified" if total["certified"] == runs else f"certified in {total['certified']:,} of {runs:,} runs"
        promise += ", in the sum of all episodes" * rows[0]["in_sum"]
        promise += f", on trust in {total['on_trust']:,}" * (total["on_trust"] > 0)
    shares = [100 * row["regret"] / row["baseline_regret"] for row in rows if row["baseline_regret"] > NOISE]
    ends = (
        dict.fromkeys(f"{share:.0f}" if share >= 1 else "<1" for share in (min(shares), max(shares))) if shares else {}
    )
    return Glance(
        rows[0]["label"],
        promise,
        f"{total['runs_below']:,} of {runs:,}",
        f"{' to '.join(ends)} %" if ends else "–",
        "no baseline" if total["no_floor"] else f"{runs - total['off_baseline_never']:,} of {runs:,}",
    )


COUNTS = ("trials", "runs_below", "certified", "on_trust", "not_certified", "no_floor", "broken", "off_baseline_never")


def amount(value: float | None) -> str:
    """A number for people: whole from a thousand on, four digits below."""
    if value is None:
        return "–"
    value = 0.0 if abs(value) < NOISE else value
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def moment(row: dict[str, Any], name: str) -> str:
    """When something first happened: the median over trials, and in how many it never did."""
    never, trials = row[f"{name}_never"], row["trials"]
    if never == trials:
        return "never"
    median = "–" if row[name] is None else amount(row[name])
    return f"{median} ({never} never)" if never else median


COLUMNS = (  # headings that fit, with their numbers, in eighty columns
    ("learner", "learner"),
    ("told", "told\nV^b"),
    ("violations", "episodes\nbelow\nfloor"),
    ("runs_below", "runs\nbelow\nfloor"),
    ("regret", "regret\n(return)"),
    ("mean_return", "return\nan\nepisode"),
    ("off_baseline", "off the\nbaseline\nat"),
    ("first_optimistic", "opti-\nmistic\nat"),
)


def print_summary(results: Results) -> None:
    """A table a panel on standard output, the baseline alone on top of each; then what is promised, and the verdict."""
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    rows = summary(results)
    for panel in results.study.panels:
        mine = [row for row in rows if row["panel"] == panel.id]
        there = [row for row in mine if row["trials"]]
        console.print(escape(title_of(panel)), style="bold", highlight=False)
        if not there:
            console.print("no trials yet\n", highlight=False)
            continue
        _print_panel(console, mine)
    promises: dict[str, dict[str, None]] = {}
    for row in rows:
        for words in row["promises"] or {}:
            promises.setdefault(words, {})[row["label"]] = None
    for words, labels in promises.items():
        console.print(f"{', '.join(labels)}: {words}.", highlight=False, markup=False, soft_wrap=True)
    if any(row["told"] for row in rows):
        console.print("told V^b: does the learner know what the baseline is worth?", soft_wrap=True)
    said = standing([results])
    styles = {UNCERTIFIED: "bold red"}
    console.print()
    console.print(said.word, style=styles.get(said.word, "bold"), highlight=False)
    for line in (said.meaning, *said.found, *said.caveats):
        console.print(line, highlight=False, markup=False)
    for line in said.alarms:
        console.print(line, style="bold red", highlight=False, markup=False)


def _print_panel(console: "Console", rows: Sequence[dict[str, Any]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    there = [row for row in rows if row["trials"]]
    first = there[0]
    low, high = (f"{worth:.4g}" for worth in (first["baseline_low"], first["baseline_high"]))
    worth = low if low == high else f"{low} to {high}"
    console.print(
        f"floor {first['floor']:.4g}, baseline worth {worth}, optimum {first['optimum']:.4g} an episode",
        highlight=False,
    )
    told = any(row["told"] for row in there)
    columns = [column for column in COLUMNS if told or column[0] != "told"]
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for key, heading in columns:
        left = key == "learner"
        table.add_column(heading, justify="left" if left else "right", overflow="fold", min_width=12 if left else None)
    # What the baseline alone would have had depends on how many episodes there were.
    lengths = {row["episodes"]: row for row in reversed(there)}
    for episodes, row in lengths.items():
        alone = {
            "learner": "baseline alone" + f", {episodes:,}" * (len(lengths) > 1),
            "violations": amount(row["baseline_violations"]),
            "runs_below": f"{row['baseline_below']} of {row['trials']}",
            "regret": amount(row["baseline_regret"]),
            "mean_return": f"{row['baseline_return']:.4f}",
        }
        table.add_row(*(alone.get(key, "–") for key, _ in columns))
    for row in rows:
        if not row["trials"]:
            table.add_row(*(escape(row["label"]) if key == "learner" else "–" for key, _ in columns))
            continue
        shown = {
            "learner": escape(row["label"]),
            "told": "yes" if row["told"] else "no",
            "violations": amount(row["violations"]),
            "runs_below": f"{row['runs_below']} of {row['trials']}",
            "regret": amount(row["regret"]),
            "mean_return": f"{row['mean_return']:.4f}",
            "off_baseline": "has none" if row["no_floor"] else moment(row, "off_baseline"),
            "first_optimistic": moment(row, "first_optimistic"),
        }
        table.add_row(*(shown[key] for key, _ in columns))
    console.print(table)
    spans = " or ".join(f"{episodes:,}" for episodes in sorted(lengths))
    means = f"Means over runs of {spans} episodes; moments are medians, counted from 0.\n"
    console.print(means, highlight=False)
