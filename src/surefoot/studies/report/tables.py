"""The tables of a study on the page: its places, its learners, what came of them, and learners side by side."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from surefoot.agents import AGENTS
from surefoot.studies.analysis.promises import UNCERTIFIED
from surefoot.studies.analysis.stats import Interval, Paired, paired, shown
from surefoot.studies.analysis.summary import amount
from surefoot.studies.report.html import Html, Table, inside, said, small
from surefoot.studies.report.phrases import (
    baseline_in_words,
    constants_in_words,
    floor_in_words,
    plainly,
    plural,
    replan_in_words,
    sizes_of,
)
from surefoot.studies.report.study_view import StudyView, tag
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Cell
from surefoot.worlds.registry import family

MOST_TO_PAIR = 3  # learners of which all pairs are compared; of more, each with the first
MINUS = "−"


def places_table(told: StudyView) -> Table:
    """Each scenario: its world, its baseline, its floor."""
    rows = []
    for scenario in told.study.scenarios:
        row = next((row for row in told.rows if row["panel"] == scenario.id and row["trials"]), None)
        sizes = ", ".join(f"{key} = {plainly(value)}" for key, value in sizes_of(scenario).items())
        about = family(scenario.world["name"]).summary
        lengths = dict.fromkeys(f"{cell.episodes:,}" for cell in told.study.cells if cell.scenario.id == scenario.id)
        rows.append(
            [
                said(scenario.heading),
                Html(f"{said(scenario.world['name'])}{small(sizes)}{small(about)}"),
                Html(f"{said(baseline_in_words(scenario))}"),
                said("–" if row is None else _worth(row)),
                Html(said(_four(row, "floor")) + small(floor_in_words(scenario))),
                said(_four(row, "optimum")),
                said(" or ".join(lengths)),
            ]
        )
    headings = ("place", "world", "baseline", "baseline's return", "floor", "best return", "episodes a run")
    return Table("The places.", headings, frozenset({3, 4, 5, 6}), [("", rows)], frozenset({1, 2}))


def _four(row: Mapping[str, Any] | None, key: str) -> str:
    return "–" if row is None else f"{row[key]:.4f}"


def _worth(row: Mapping[str, Any]) -> str:
    low, high = (f"{row[key]:.4f}" for key in ("baseline_low", "baseline_high"))
    return low if low == high else f"{low} to {high}"


def learners_table(told: StudyView) -> Table:
    """Each learner: how it plans, and what it promises."""
    rows = []
    for learner in told.study.agents:
        cells = [cell for cell in told.study.cells if cell.agent.id == learner.id]
        promises: dict[str, int] = {}
        for row in told.rows:
            for words, times in (row["promises"] or {}).items() if row["learner"] == learner.id else ():
                promises[words] = promises.get(words, 0) + times
        several = len(promises) > 1
        shown_promises = [
            inside("span" if not several else "div", _promise(words, times if several else None))
            for words, times in promises.items()
        ]
        pooled = {"True": "pooled over steps", "False": "step by step"}.get(str(learner.pooled), str(learner.pooled))
        scaled = Html(f'<small class="tag bad">bonus times {learner.scale:g}: NOT CERTIFIED</small>')
        rows.append(
            [
                said(cells[0].label),
                said(AGENTS[learner.agent].name),
                Html(said(constants_in_words(learner)) + (scaled if learner.scale != 1.0 else "")),
                said(pooled if pooled != "if stationary" else "pooled where the world allows it"),
                said(" or ".join(dict.fromkeys(replan_in_words(cell.replan) for cell in cells))),
                Html("".join(shown_promises)) or said("–"),
            ]
        )
    headings = ("learner", "algorithm", "constants", "counts", "plans anew", "what it promises")
    return Table("The learners.", headings, frozenset(), [("", rows)], frozenset({5}))


def _promise(words: str, times: int | None) -> Html:
    kind = "tag bad" if words.startswith((UNCERTIFIED, "no promise")) else ""
    count = "" if times is None else f" ({times:,} {plural('run', times)})"
    return inside("span", said(words + count), kind)


def results_table(told: StudyView) -> Table:
    """Each learner in each place, in numbers."""
    headings = (
        *("learner", "told V^b", "trials", "episodes below the floor, mean a run", "runs ever below the floor"),
        *("regret, mean (units of return)", "return an episode, mean", "first episode off the baseline, median"),
        "first optimistic episode, median",
    )
    groups = []
    for scenario in told.study.scenarios:
        rows = [_result(row) for row in told.rows if row["panel"] == scenario.id]
        groups.append((scenario.heading, rows))
    caption = (
        "What came of each learner in each place. Below moments: from the earliest to the latest trial. Below regret "
        "and return: the 95 % t interval of the mean over "
        "trials, and what the baseline alone would have had in the same trials."
    )
    return Table(caption, headings, frozenset({2, 3, 5, 6, 7, 8}), groups, frozenset({4}))


def _result(row: Mapping[str, Any]) -> list[Html]:
    trials, wanted = row["trials"], row["trials_wanted"]
    if not trials:
        return [said(row["label"]), said("–"), said(f"0 of {wanted}"), *[said("–")] * 6]
    alone = row["baseline_violations"]
    runs, _, bound = shown(row["runs_below"], trials).partition(":")
    of_return = _interval(row, "mean_return", "{:.4f}".format)
    return [
        Html(said(row["label"]) + _mark(row)),
        said("yes" if row["told"] else "no"),
        said(trials if trials == wanted else f"{trials} of {wanted}"),
        Html(f"{said(amount(row['violations']))}{small(f'baseline {amount(alone)}')}"),
        Html(said(runs) + small(bound.strip())),
        Html(_interval(row, "regret", amount) + small(f"baseline {amount(row['baseline_regret'])}")),
        Html(of_return + small(f"baseline {row['baseline_return']:.4f}")),
        said("has no baseline") if row["no_floor"] else _moment(row, "off_baseline"),
        _moment(row, "first_optimistic"),
    ]


def _mark(row: Mapping[str, Any]) -> Html:
    """What the numbers of this row are worth as a promise."""
    marks = []
    if row["broken"]:
        marks.append(f"PROMISE BROKEN in {row['broken']} of {row['certified']} runs")
    elif row["certified"]:
        some = "" if row["certified"] == row["trials"] else f" in {row['certified']} of {row['trials']} runs"
        marks.append(f"certified{some}" + ", in the sum of all episodes" * row["in_sum"])
    if row["on_trust"]:
        some = "" if row["on_trust"] == row["trials"] else f" in {row['on_trust']} of {row['trials']} runs"
        marks.append(f"on trust{some}: never left the baseline")
    if row["not_certified"]:
        marks.append(UNCERTIFIED)
    elif row["no_floor"]:
        marks.append("promises no floor")
    if row["premise_false"]:
        marks.append(f"no promise in {row['premise_false']} of {row['trials']} runs")
    return Html("".join(map(tag, marks)))


def _interval(row: Mapping[str, Any], key: str, show: Callable[[float], str]) -> Html:
    mean, low, high = row[key], row[f"{key}_low"], row[f"{key}_high"]
    span = "one trial: no interval" if low is None else f"{show(low)} to {show(high)}"
    return Html(said(show(mean)) + small(span))


def _moment(row: Mapping[str, Any], key: str) -> Html:
    never, trials = row[f"{key}_never"], row["trials"]
    if never == trials:
        return said("never")
    low, high = (amount(row[f"{key}_{end}"]) for end in ("earliest", "latest"))
    median = "later than the run" if row[key] is None else amount(row[key])
    span = small(f"{low} to {high}") if low != high else Html("")
    return Html(said(median) + span + (small(f"never in {never} of {trials}") if never else Html("")))


def comparisons(told: StudyView) -> list[Html]:
    """Two learners in the same place, trial by trial."""
    learners = told.study.agents
    pairs = (
        list(combinations(learners, 2))
        if len(learners) <= MOST_TO_PAIR
        else [(learners[0], other) for other in learners[1:]]
    )
    cells = {cell.id: cell for cell in told.study.cells}
    groups = []
    for scenario in told.study.scenarios:
        rows = []
        for one, two in pairs:
            sides = cells[f"{scenario.id}/{one.id}"], cells[f"{scenario.id}/{two.id}"]
            row = _comparison(sides, told.results)
            if row is not None:
                rows.append(row)
        groups.append((scenario.heading, rows))
    if not any(rows for _, rows in groups):
        return []
    headings = (
        *(
            "first against second",
            "regret, first less second",
            "smaller regret in",
            "left the baseline, first less second",
        ),
        "earlier in",
    )
    caption = (
        "Learners side by side. Trial i of both meets the same chances, so their difference says more than two means. "
        "Mean difference with its 95 % t interval; then in how many trials the first is ahead, and p of the exact sign "
        "test. Who never left the baseline counts as leaving at the end of the run."
    )
    return [inside("h3", said("Side by side")), Table(caption, headings, frozenset({1, 3}), groups).html()]


def _comparison(sides: tuple[Cell, Cell], results: Results) -> list[Html] | None:
    """None where there is nothing to compare: runs of different lengths, or no trial that both have."""
    first, second = sides
    ones, twos = ({trial.trial: trial for trial in results.of(cell.scenario.id, cell.agent.id)} for cell in sides)
    common = sorted(ones.keys() & twos.keys())
    if first.episodes != second.episodes or not common:
        return None
    mine, its = [ones[i] for i in common], [twos[i] for i in common]
    regret = paired([trial.regret for trial in mine], [trial.regret for trial in its])
    row = [said(f"{first.label} against {second.label}"), _difference(regret.difference), _wins(regret)]
    if any("no floor promised" in trial.promise for trial in (*mine, *its)):
        return [*row, said("–"), said("one has no baseline")]
    left = paired(_left(mine), _left(its))
    return [*row, _difference(left.difference), _wins(left)]


def _left(trials: Sequence[Trial]) -> list[float]:
    return [float(trial.episodes if trial.off_baseline is None else trial.off_baseline) for trial in trials]


def _difference(interval: Interval) -> Html:
    span = "one trial: no interval" if interval.n == 1 else f"{_signed(interval.low)} to {_signed(interval.high)}"
    return Html(said(_signed(interval.mean)) + small(span))


def _signed(value: float) -> str:
    words = amount(value).replace("-", MINUS)
    return words if words[0] in f"{MINUS}0" and not words.startswith("0.") else f"+{words}"


def _wins(found: Paired) -> Html:
    trials = found.wins + found.losses + found.ties
    ties = f", {found.ties} equal" if found.ties else ""
    return Html(said(f"{found.wins} of {trials}{ties}") + small(f"p = {found.p:.2g}"))
