"""The tables of results, for the page and for the terminal: agents in a scenario, and agents side
by side.

A cell is its text and the lines in small letters below it. The page's other tables are in
page.html.jinja.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from surefoot.agents.promise import GIVEN_VALUE, UNCERTIFIED
from surefoot.studies.analysis.claims import Analysis
from surefoot.studies.analysis.stats import (
    Interval,
    amount,
    bound_in_words,
    count_in_words,
    paired,
    span_in_words,
)
from surefoot.studies.analysis.summary import Row, Rows, on_given_value, promised_runs
from surefoot.studies.analysis.trials import Of, column, common
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Scenario

MOST_TO_PAIR = 3  # agents of which all pairs are compared; of more, each with the first
MINUS = "−"
RESULTS = {  # headings of the results, and the class of the style sheet: numbers, or sentences
    "episodes below the floor": "n",
    "runs ever below the floor": "w",
    "regret": "n",
    "return per episode": "n",
    "off the baseline at": "n",
    "optimistic at": "n",
}
Lines = tuple[str, ...]  # of a cell: its text, and what stands below it
Tag = tuple[str, bool]  # a few words below a name; is it bad? Then it is red


def sizes_of(scenario: Scenario) -> dict[str, Any]:
    """Return the sizes of a world, with that of its usual baseline only where that is used."""
    sizes = {key: value for key, value in scenario.world.items() if key != "name"}
    if scenario.known_policy != "usual":
        sizes.pop("eta", None)
    if scenario.world_seeds:
        del sizes["seed"]
        sizes["seeds"] = ", ".join(map(str, scenario.world_seeds))
    return sizes


def columns(rows: Rows) -> dict[str, str]:
    """Return the headings of the results with their classes. Who knows V^b is a column where
    somebody does.
    """
    knows = {"knows V^b": ""} if any(row["knows_baseline_value"] for row in rows) else {}
    return {"agent": "", **knows, **RESULTS}


def result(row: Row, columns: dict[str, str]) -> list[Lines]:
    """Return the cells of an agent in a scenario, below these headings."""
    trials, label = row["trials"], (row["label"],)
    if not trials:
        return [label, *[("–",)] * (len(columns) - 1)]
    knows = [("yes" if row["knows_baseline_value"] else "no",)] if "knows V^b" in columns else []
    return [
        label,
        *knows,
        (amount(row["violations"]), f"baseline {amount(row['baseline_violations'])}"),
        (
            count_in_words(row["runs_below"], trials, "run"),
            bound_in_words(row["runs_below"], trials),
        ),
        (*_interval(row, "regret", amount), f"baseline {amount(row['baseline_regret'])}"),
        (*_interval(row, "mean_return", "{:.4f}".format), f"baseline {row['baseline_return']:.4f}"),
        ("has no baseline",) if row["no_floor"] else _moment(row, "off_baseline"),
        _moment(row, "first_optimistic"),
    ]


def tags(row: Row) -> Iterator[Tag]:
    """Return what the numbers of this row are worth as a promise, and how many trials there are
    of those wanted.
    """

    def share(key: str) -> str:
        return "" if row[key] == row["trials"] else f" in {row[key]} of {row['trials']} runs"

    given = on_given_value(row)
    if row["broken"]:
        yield f"PROMISE BROKEN in {row['broken']} of {promised_runs(row)} runs", True
    elif promised_runs(row):
        word, key = (GIVEN_VALUE, "on_trust") if given else ("certified", "certified")
        yield f"{word}{share(key)}{', in the sum of all episodes' if row['in_sum'] else ''}", False
    if row["on_trust"] and not given:
        yield f"on trust{share('on_trust')}: never left the baseline", False
    if row["not_certified"]:
        yield UNCERTIFIED, True
    elif row["no_floor"]:
        yield "promises no floor", False
    if row["premise_false"]:
        yield f"no promise in {row['premise_false']} of {row['trials']} runs", True
    if row["trials"] < row["trials_wanted"]:
        yield f"{row['trials']} of {row['trials_wanted']} trials", False


def _interval(row: Row, key: str, show: Callable[[float], str]) -> Lines:
    known = Interval(row[key], row[f"{key}_low"], row[f"{key}_high"], row["trials"])
    return show(known.mean), span_in_words(known, show)


def _moment(row: Row, key: str) -> Lines:
    never, trials = row[f"{key}_never"], row["trials"]
    if never == trials:
        return ("never",)
    low, high = (amount(row[f"{key}_{end}"]) for end in ("earliest", "latest"))
    median = "later than the run" if row[key] is None else amount(row[key])
    span = [f"{low} to {high}"] if low != high else []
    return (median, *span, *([f"never in {never} of {trials}"] if never else []))


def comparisons(one: Analysis) -> list[tuple[str, list[list[Lines]]]]:
    """Return two agents in the same scenario, trial by trial: rows below each scenario that has
    any.
    """
    agents = one.results.study.agents
    few = len(agents) <= MOST_TO_PAIR
    pairs = list(combinations(agents, 2)) if few else [(agents[0], other) for other in agents[1:]]
    rows = {(row["scenario"], row["agent"]): row for row in one.rows}
    groups = []
    for scenario in one.results.study.scenarios:
        lines = []
        for first, second in pairs:
            both = common(
                one.results.of(scenario.id, first.id), one.results.of(scenario.id, second.id)
            )
            mine, its = rows[scenario.id, first.id], rows[scenario.id, second.id]
            # of runs of different lengths nothing is said
            if both and mine["episodes"] == its["episodes"]:
                lines.append(_comparison(mine, its, both))
        groups.append((scenario.heading, lines))
    return [group for group in groups if group[1]]


def _comparison(first: Row, second: Row, pairs: list[tuple[Trial, Trial]]) -> list[Lines]:
    ones, twos = zip(*pairs, strict=True)

    def against(of: Of) -> list[Lines]:
        found = paired(column(ones, of), column(twos, of))
        difference = found.difference
        ties = f", {found.ties} equal" if found.ties else ""
        wins = f"{found.wins} of {found.wins + found.losses + found.ties}{ties}"
        mean = (_signed(difference.mean), span_in_words(difference, _signed))
        return [mean, (wins, f"p = {found.p:.2g}")]

    def left(trial: Trial) -> int:
        return trial.episodes if trial.off_baseline is None else trial.off_baseline

    no_baseline = first["no_floor"] or second["no_floor"]
    off = [("–",), ("one has no baseline",)] if no_baseline else against(left)
    return [(f"{first['label']} against {second['label']}",), *against("regret"), *off]


def _signed(value: float) -> str:
    words = amount(value).replace("-", MINUS)
    return words if words[0] in f"{MINUS}0" and not words.startswith("0.") else f"+{words}"
