"""What may be said over all results, in one word and a few plain sentences."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from surefoot.studies.analysis.promises import UNCERTIFIED, is_uncertified
from surefoot.studies.analysis.summary import NOISE, amount, summary
from surefoot.studies.run.store import Results

CERTIFIED, TRUSTED, NOTHING = "CERTIFIED", "ON TRUST", "NO PROMISE"
COUNTS = ("trials", "runs_below", "certified", "on_trust", "not_certified", "no_floor", "broken", "off_baseline_never")


class OverallVerdict(NamedTuple):
    """What may be said over all results: one word, what it means, and what must be said beside it."""

    word: str  # CERTIFIED, NOT CERTIFIED, ON TRUST or NO PROMISE
    meaning: str
    alarms: tuple[str, ...]  # promises that were broken, by how many runs
    found: tuple[str, ...]
    caveats: tuple[str, ...]  # what is missing, made smaller, or rests on a false premise


def overall_verdict(several: Sequence[Results]) -> OverallVerdict:
    """The verdict. A single bonus scaled by hand makes it NOT CERTIFIED; a learner that promises no floor does not."""
    table = [(results, row) for results in several for row in summary(results)]
    return OverallVerdict(
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
        f"{cell.label} (bonus times {cell.agent.scale:g})": None
        for results in several
        for cell in results.study.cells
        if cell.agent.scale != 1.0 or any(map(is_uncertified, results.of(cell.scenario.id, cell.agent.id)))
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
            "No run ever left its baseline, and nothing was certified: that the baseline is above the floor is taken "
            "on trust."
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
    false: dict[str, None] = {}  # said once, though every learner of a place met the same log
    for results, row in table:
        if row["false_logs"]:
            where = f"{results.study.name}, " * named + row["panel_title"]
            false[
                f"{where}: what the log certified of the baseline is more than it is worth, in {row['false_logs']:,} "
                f"of {row['trials']:,} trials. Its delta of {row['delta'] / 2:g} allows for {50 * row['delta']:g} %."
            ] = None
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
    for learner in results.study.agents:
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
