"""The tables of a study on the page: its scenarios, its agents, their results, and agents side by side."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from surefoot.agents.promise import GIVEN_VALUE, UNCERTIFIED
from surefoot.logs.methods import METHODS
from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.claims import Verdict
from surefoot.studies.analysis.stats import (
    Interval,
    Paired,
    amount,
    bound_in_words,
    count_in_words,
    paired,
    span_in_words,
)
from surefoot.studies.analysis.summary import Row, on_given_value, promised_runs
from surefoot.studies.analysis.trials import (
    is_uncertified,
    premise_is_false,
    promise_beside_truth,
    promises_of,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import AgentSpec, Cell, Choice, Scenario, Study
from surefoot.worlds.registry import family

MOST_TO_PAIR = 3  # agents of which all pairs are compared; of more, each with the first
MINUS = "−"
CONSTANTS = {"paper": "as its paper prints them", "kl": "KL (sharp)"}
COUNTS: dict[bool | str, str] = {
    True: "pooled over steps",
    False: "step by step",
    "if stationary": "pooled where the world allows it",
}


class Note(NamedTuple):
    """A few words in a cell; bad ones are red."""

    text: str
    bad: bool = False


class TableCell(NamedTuple):
    """What stands in a cell of a table. A cell of plain text is a string."""

    text: str = ""
    small: tuple[str, ...] = ()  # lines in small letters below
    tags: tuple[Note, ...] = ()  # what the row is worth as a promise, below its name
    lines: tuple[Note, ...] = ()  # several findings, each on a line of its own
    kind: str = ""  # "code", "command" (code on one line), or a class of the style sheet
    anchor: str = ""  # the part of the page that the text leads to


TableRow = Sequence[str | TableCell]


class RowGroup(NamedTuple):
    """Rows below a heading of their own; "": none."""

    heading: str
    rows: Sequence[TableRow]


class Table(NamedTuple):
    """A table with a caption; the first cell of a row names it."""

    caption: str
    headings: Sequence[str]
    numeric: frozenset[int]  # columns of numbers
    groups: Sequence[RowGroup]
    wide: frozenset[int] = frozenset()  # columns of sentences


class StudyView(NamedTuple):
    """The results of a study as the page reads them: what several sections need, computed once."""

    anchor: str  # of the study's section
    study: Study
    results: Results
    cells: tuple[Cell, ...]
    rows: Sequence[Row]  # the summary: one row per cell
    verdicts: Sequence[Verdict]  # on its claims


def scenarios_table(view: StudyView) -> Table:
    """Return each scenario with its world, its baseline and its floor."""
    rows: list[TableRow] = []
    for scenario in view.study.scenarios:
        mine = [row for row in view.rows if row["scenario"] == scenario.id]
        known = next((row for row in mine if row["trials"]), None)
        sizes = ", ".join(f"{key} = {setting_in_words(value)}" for key, value in sizes_of(scenario).items())
        about = family(scenario.world["name"]).summary
        lengths = dict.fromkeys(f"{row['episodes']:,}" for row in mine)
        rows.append(
            [
                mine[0]["scenario_title"],
                TableCell(scenario.world["name"], small=(sizes, about)),
                baseline_in_words(scenario),
                "–" if known is None else _baseline_return(known),
                TableCell(_four_digits(known, "floor"), small=(floor_in_words(scenario),)),
                _four_digits(known, "optimum"),
                " or ".join(lengths),
            ]
        )
    headings = ("scenario", "world", "baseline", "baseline's return", "floor", "best return", "episodes per run")
    return Table("The scenarios.", headings, frozenset({3, 4, 5, 6}), [RowGroup("", rows)], frozenset({1, 2}))


def _four_digits(row: Row | None, key: str) -> str:
    return "–" if row is None else f"{row[key]:.4f}"


def _baseline_return(row: Row) -> str:
    low, high = (f"{row[key]:.4f}" for key in ("baseline_low", "baseline_high"))
    return low if low == high else f"{low} to {high}"


def sizes_of(scenario: Scenario) -> dict[str, Any]:
    """Return the sizes of a world, with that of its usual baseline only where that is used."""
    used = scenario.baseline if scenario.log is None else scenario.log.behaviour
    hidden = {"name"} | ({"eta"} if used != "usual" else set()) | ({"seed"} if scenario.world_seeds else set())
    sizes = {key: value for key, value in scenario.world.items() if key not in hidden}
    return {**sizes, "seeds": ", ".join(map(str, scenario.world_seeds))} if scenario.world_seeds else sizes


def setting_in_words(value: object) -> str:
    """Return a setting as a reader writes it: yes, not True."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def policy_in_words(choice: Choice) -> str:
    """Return what a baseline is, or the policy that wrote a log."""
    return "the world's usual one" if isinstance(choice, str) else f"Boltzmann policy on Q*, eta = {choice[1]:g}"


def baseline_in_words(scenario: Scenario) -> str:
    """Return where the baseline comes from."""
    if scenario.log is None:
        return policy_in_words(scenario.baseline)
    return (
        f"learnt by {METHODS[scenario.log.method].words} from a log of {scenario.log.episodes:,} episodes of another "
        f"policy ({policy_in_words(scenario.log.behaviour)}); a new log in every trial"
    )


def floor_in_words(scenario: Scenario) -> str:
    """Return how the floor was chosen."""
    if scenario.floor == "usual":
        return "the world's usual one"
    if isinstance(scenario.floor, tuple):
        kind, value = scenario.floor
        return f"{value:g} times the baseline's" if kind == "of_baseline" else f"the baseline's less {value:g}"
    return "as given"


def agents_table(view: StudyView) -> Table:
    """Return each agent with how it plans and what it promises."""
    rows: list[TableRow] = []
    for agent in view.study.agents:
        mine = [(cell, row) for cell, row in _by_cell(view) if cell.agent is agent]
        trials = [trial for _, row in mine for trial in _trials(view, row)]
        rows.append(
            [
                mine[0][1]["label"],
                AGENTS[agent.agent].name,
                _constants(agent),
                COUNTS[agent.pooled],
                " or ".join(dict.fromkeys(replan_in_words(cell) for cell, _ in mine)),
                _promises(trials) if trials else "–",
            ]
        )
    headings = ("agent", "algorithm", "constants", "counts", "replans", "what it promises")
    return Table("The agents.", headings, frozenset(), [RowGroup("", rows)], frozenset({5}))


def _trials(view: StudyView, row: Row) -> tuple[Trial, ...]:
    """Return the trials of the cell that a row of the summary is about."""
    return view.results.trials.get(f"{row['scenario']}/{row['agent']}", ())


def _constants(agent: AgentSpec) -> TableCell:
    scaled = () if agent.scale == 1.0 else (Note(f"bonus times {agent.scale:g}: {UNCERTIFIED}", bad=True),)
    words = "its own" if AGENTS[agent.agent].own_bounds else CONSTANTS[agent.bounds]
    return TableCell(words, tags=scaled)


def replan_in_words(cell: Cell) -> str:
    """Return when an agent replans."""
    if cell.block is None:
        return "before every episode"
    return f"in blocks of {100 * cell.block:g} % of the episodes so far"


def _promises(trials: Sequence[Trial]) -> TableCell:
    """Return each promise once, with the number of its runs where there are several; red where nothing is promised."""
    promises = promises_of(trials, promise_beside_truth)
    withdrawn = {promise_beside_truth(trial) for trial in trials if is_uncertified(trial) or premise_is_false(trial)}
    lines = []
    for promise, times in promises.items():
        count = f" ({times:,} {plural('run', times)})" if len(promises) > 1 else ""
        lines.append(Note(f"{promise}{count}", bad=promise in withdrawn))
    return TableCell(lines=tuple(lines))


def results_table(view: StudyView) -> Table:
    """Return the numbers of each agent in each scenario. Who knows V^b is a column where somebody does."""
    somebody_knows = any(row["knows_baseline_value"] for row in view.rows)
    headings = (
        *(
            "agent",
            *(("knows V^b",) if somebody_knows else ()),
            "episodes below the floor",
            "runs ever below the floor",
        ),
        *("regret", "return per episode", "off the baseline at", "optimistic at"),
    )
    caption = (
        "The results of each agent in each scenario: means per run, in units of return; of first episodes the median "
        "over trials, and below it the earliest to the latest. Below regret and return: the 95 % t interval of the "
        "mean over trials, and what the baseline alone would have had in the same trials."
    )
    groups = []
    for scenario in view.study.scenarios:
        mine = [row for cell, row in _by_cell(view) if cell.scenario is scenario]
        groups.append(RowGroup(scenario.heading, [_result(row, somebody_knows) for row in mine]))
    below = headings.index("runs ever below the floor")
    return Table(caption, headings, frozenset(range(below - 1, len(headings))) - {below}, groups, frozenset({below}))


def _by_cell(view: StudyView) -> list[tuple[Cell, Row]]:
    """Return each cell with its row of the summary."""
    return list(zip(view.cells, view.rows, strict=True))


def _result(row: Row, somebody_knows: bool) -> TableRow:
    trials, wanted = row["trials"], row["trials_wanted"]
    missing = (Note(f"{trials} of {wanted} trials"),) if trials < wanted else ()
    if not trials:
        return [TableCell(row["label"], tags=missing), *(["–"] if somebody_knows else []), *["–"] * 6]
    return [
        TableCell(row["label"], tags=(*_tags(row), *missing)),
        *(["yes" if row["knows_baseline_value"] else "no"] if somebody_knows else []),
        TableCell(amount(row["violations"]), small=(f"baseline {amount(row['baseline_violations'])}",)),
        TableCell(count_in_words(row["runs_below"], trials, "run"), small=(bound_in_words(row["runs_below"], trials),)),
        _interval(row, "regret", amount, f"baseline {amount(row['baseline_regret'])}"),
        _interval(row, "mean_return", "{:.4f}".format, f"baseline {row['baseline_return']:.4f}"),
        "has no baseline" if row["no_floor"] else _moment(row, "off_baseline"),
        _moment(row, "first_optimistic"),
    ]


def _tags(row: Row) -> tuple[Note, ...]:
    """Return what the numbers of this row are worth as a promise."""
    tags = []
    given = on_given_value(row)
    if row["broken"]:
        tags.append(Note(f"PROMISE BROKEN in {row['broken']} of {promised_runs(row)} runs", bad=True))
    elif promised_runs(row):
        scope = ", in the sum of all episodes" if row["in_sum"] else ""
        word, key = (GIVEN_VALUE, "on_trust") if given else ("certified", "certified")
        tags.append(Note(f"{word}{_share(row, key)}{scope}"))
    if row["on_trust"] and not given:
        tags.append(Note(f"on trust{_share(row, 'on_trust')}: never left the baseline"))
    if row["not_certified"]:
        tags.append(Note(UNCERTIFIED, bad=True))
    elif row["no_floor"]:
        tags.append(Note("promises no floor"))
    if row["premise_false"]:
        tags.append(Note(f"no promise in {row['premise_false']} of {row['trials']} runs", bad=True))
    return tuple(tags)


def _share(row: Row, key: str) -> str:
    """Return in how many of the runs, where it is not all of them."""
    return "" if row[key] == row["trials"] else f" in {row[key]} of {row['trials']} runs"


def _interval(row: Row, key: str, show: Callable[[float], str], beside: str) -> TableCell:
    known = Interval(row[key], row[f"{key}_low"], row[f"{key}_high"], row["trials"])
    return TableCell(show(known.mean), small=(span_in_words(known, show), beside))


def _moment(row: Row, key: str) -> str | TableCell:
    never, trials = row[f"{key}_never"], row["trials"]
    if never == trials:
        return "never"
    low, high = (amount(row[f"{key}_{end}"]) for end in ("earliest", "latest"))
    median = "later than the run" if row[key] is None else amount(row[key])
    span = f"{low} to {high}" if low != high else ""
    return TableCell(median, small=tuple(filter(None, (span, f"never in {never} of {trials}" if never else ""))))


def comparisons_table(view: StudyView) -> Table | None:
    """Return two agents in the same scenario, trial by trial; None where there is nothing to compare."""
    agents = view.study.agents
    few = len(agents) <= MOST_TO_PAIR
    pairs = list(combinations(agents, 2)) if few else [(agents[0], other) for other in agents[1:]]
    rows = {cell.id: row for cell, row in _by_cell(view)}
    groups = []
    for scenario in view.study.scenarios:
        lines = [
            _comparison(view, rows[f"{scenario.id}/{first.id}"], rows[f"{scenario.id}/{second.id}"])
            for first, second in pairs
        ]
        groups.append(RowGroup(scenario.heading, [line for line in lines if line is not None]))
    if not any(group.rows for group in groups):
        return None
    headings = (
        *("first against second", "regret, first less second", "smaller regret in"),
        *("left the baseline, first less second", "earlier in"),
    )
    caption = (
        "Agents side by side. Trial i of both draws from the same random stream, so their difference says more than "
        "two means. Mean difference with its 95 % t interval; then in how many trials the first is ahead, and p of the "
        "exact sign test. A run that never left the baseline counts as leaving at its end."
    )
    return Table(caption, headings, frozenset({1, 3}), groups)


def _comparison(view: StudyView, first: Row, second: Row) -> TableRow | None:
    """Return None where there is nothing to compare: runs of different lengths, or no trial that both have."""
    ones, twos = ({trial.trial: trial for trial in _trials(view, row)} for row in (first, second))
    common = sorted(ones.keys() & twos.keys())
    if first["episodes"] != second["episodes"] or not common:
        return None
    mine, its = [ones[i] for i in common], [twos[i] for i in common]
    regret = paired([trial.regret for trial in mine], [trial.regret for trial in its])
    line: list[str | TableCell] = [
        f"{first['label']} against {second['label']}",
        _difference(regret.difference),
        _wins(regret),
    ]
    if first["no_floor"] or second["no_floor"]:
        return [*line, "–", "one has no baseline"]
    left = paired(_left(mine), _left(its))
    return [*line, _difference(left.difference), _wins(left)]


def _left(trials: Sequence[Trial]) -> list[float]:
    """Return when each trial left the baseline."""
    return [float(trial.episodes if trial.off_baseline is None else trial.off_baseline) for trial in trials]


def _difference(known: Interval) -> TableCell:
    return TableCell(_signed(known.mean), small=(span_in_words(known, _signed),))


def _signed(value: float) -> str:
    words = amount(value).replace("-", MINUS)
    return words if words[0] in f"{MINUS}0" and not words.startswith("0.") else f"+{words}"


def _wins(found: Paired) -> TableCell:
    trials = found.wins + found.losses + found.ties
    ties = f", {found.ties} equal" if found.ties else ""
    return TableCell(f"{found.wins} of {trials}{ties}", small=(f"p = {found.p:.2g}",))


def plural(word: str, n: int) -> str:
    """Return the word for one, or for several."""
    return word if n == 1 else f"{word}s"
