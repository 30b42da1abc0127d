"""One page of HTML with the results of studies: no scripts, nothing loaded, the same bytes for the same results.

Pictures come first: the verdict, then of each study its first figure, its claims (a line each, the numbers
folded), its other figures and its tables; then what the promise presumes, how to run the studies again, and their
files. Here is what it says; page.html.jinja and style.css say how it looks.
"""

import re
from collections.abc import Sequence
from importlib.resources import files
from operator import methodcaller
from pathlib import Path
from typing import NamedTuple

from surefoot.agents.promise import UNCERTIFIED
from surefoot.base.files import write_whole
from surefoot.errors import InvalidSetting
from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.claims import VERDICTS, Analysis, Verdict, analyse, tallies
from surefoot.studies.analysis.summary import promised_runs
from surefoot.studies.analysis.verdict import CERTIFIED, OverallVerdict, overall_verdict
from surefoot.studies.report.tables import (
    Note,
    RowGroup,
    StudyView,
    Table,
    TableCell,
    TableRow,
    agents_table,
    comparisons_table,
    plural,
    results_table,
    scenarios_table,
)
from surefoot.studies.run.store import Results
from surefoot.studies.spec.claims import DRAFT, OURS, PAPER
from surefoot.studies.spec.library import GROUPS, packaged
from surefoot.studies.spec.study import Study

COIN = "every episode's coin-averaged value"  # the scope of a promise that one episode's policy may miss
HOLDS = {True: ("✓", "holds"), False: ("✗", "fails"), None: ("?", "unsure")}  # symbol and class of a claim's verdict
CLAIMED_BY = {  # the headings of claims, by their source
    PAPER: "What must come out if the paper is right",
    DRAFT: "What must come out if drafts of the paper are right, which it leaves out",
    OURS: "What we claim, and the paper does not",
}
SYMBOLS = {CERTIFIED: ("certified", "✓"), UNCERTIFIED: ("uncertified", "✗")}  # kind and symbol of a badge
COLOURS = {
    "certified": "good",
    "uncertified": "bad",
    "broken": "bad",
    "nothing": "",
}  # of the verdict, by its last badge
BROKEN = "PROMISE BROKEN"
ALWAYS_PRESUMED = (
    "States, actions and steps are finite, and every episode has the same number H of steps.",
    "The same state and action at the same step have the same transition probabilities in every episode.",
    "Rewards are known, and lie in the range that the world states.",
    "Floor and delta were fixed before the first episode.",
)
MEANING_OF_NUMBERS = (
    "The floor is on the expected return of what is played, not on the return that one episode happens to bring.",
    "delta is for each run of each agent by itself: of many runs together, more may fail.",
    "Violations, regret and returns are exact because the simulator knows the world. Agents never see it: they see "
    "counts.",
)
WORDS = (
    "The floor is the lowest expected return that an episode may have.",
    "The baseline is the policy that is there before learning, and is played until something better is known to be "
    "above the floor.",
    "Regret is how much more the best policy would have brought. V^b is the value of the baseline, V* that of the best "
    "policy.",
    "The optimistic policy is the one that is best if all that is not known yet is good.",
    "A candidate plays the baseline for h0 steps, then the optimistic policy; a mixture combines two neighbouring "
    "candidates.",
)
HOW_COMPUTED = (
    "What the paper leaves open, what was chosen here, and what changes with another choice is a page of surefoot's "
    "documentation, docs/reproduction/choices.md.",
    "Trial i draws from child i of the study's seed and from nothing else: the number of workers, their order, and "
    "more trials change nothing of what is here. The digest is of all that decides the numbers.",
    "Intervals of means are Student's t intervals over trials at 95 %; of one trial there is none. They say how sure "
    "the mean is, not how far single runs lie apart.",
    "Shares of runs have exact bounds (Clopper and Pearson) at 95 %: one-sided where none or all of the runs count, "
    "two-sided otherwise. That 0 of 10 runs went below the floor shows a share of at most 26 %; that it is at most "
    "delta is proved, not measured.",
    "An episode is below the floor if its exact expected return is more than 1e-12 (in units of 0 to H) below it.",
    "A median is over all trials of a cell; what never happened counts as later than everything.",
)


class Badge(NamedTuple):
    """A word of the verdict, in a colour and with a symbol."""

    kind: str
    symbol: str
    word: str


class Figure(NamedTuple):
    """A picture on the page."""

    number: str
    svg: str
    caption: str


class JudgedClaim(NamedTuple):
    """A claim in one line, and the numbers that decide it."""

    symbol: str
    kind: str  # of the verdict, a class of the style sheet
    words: str
    sentence: str
    at_K: str
    numbers: list[str]


class ClaimGroup(NamedTuple):
    """The claims of one source."""

    heading: str
    claims: list[JudgedClaim]


class StudySection(NamedTuple):
    """What the page shows of one study, in the order of the page."""

    anchor: str
    name: str
    title: str
    question: str
    badges: list[Badge]
    found: str
    tallies: list[str]  # of its claims
    figures: list[Figure]  # the first stands before the claims
    claims: list[ClaimGroup]
    results: Table
    comparisons: Table | None
    setting: str
    scenarios: Table
    agents: Table
    toml: str


def write_report(studies: Sequence[Results | Analysis], path: str | Path) -> Path:
    """Write the page to a file, whole or not at all. Results that are not analysed yet are analysed here."""
    write_whole(path, methodcaller("write", page(studies).encode()))
    return Path(path)


def page(studies: Sequence[Results | Analysis]) -> str:
    """Return everything on one page, as HTML."""
    import jinja2

    if not studies:
        raise InvalidSetting("There are no results to report. Give at least one folder that `run` wrote.")
    analysed = [one if isinstance(one, Analysis) else analyse(one) for one in studies]
    results = [one.results for one in analysed]
    views = [
        StudyView(f"study-{i}", one.results.study, one.results, one.results.study.cells, one.rows, one.verdicts)
        for i, one in enumerate(analysed, 1)
    ]
    alone = len(views) == 1
    verdict = overall_verdict(results, [one.rows for one in analysed])
    badges = _badges(verdict)
    here = files("surefoot.studies.report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.from_string(here.joinpath("page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        style=here.joinpath("style.css").read_text(encoding="utf-8"),
        title=results[0].study.title if alone else f"{len(results)} studies of learning above a floor",
        alone=alone,
        verdict=verdict,
        badges=badges,
        colour=COLOURS[badges[-1].kind],
        meaning_first=verdict.word == UNCERTIFIED,  # what is not certified is said before anything that was found
        tallies=tallies([one for view in views for one in view.verdicts]),
        index=_index(views),
        studies=[_section(view) for view in views],
        after=_after(alone),
        premises=_premises(views),
        words=WORDS,
        provenance=_provenance(views),
        how_computed=HOW_COMPUTED,
    )


def _badges(verdict: OverallVerdict) -> list[Badge]:
    """Return the word of a verdict with its symbol, and whether a promise was broken."""
    kind, symbol = SYMBOLS.get(verdict.word, ("nothing", "○"))
    return [Badge(kind, symbol, verdict.word), *([Badge("broken", "✗", BROKEN)] if verdict.alarms else [])]


def _after(alone: bool) -> dict[str, str]:
    """Return the headings of what follows the studies, by anchor."""
    return {
        "premises": "What the promise presumes",
        "words": "What the words mean",
        "again": "To run it again",
        "files": "The study's file" if alone else "The studies' files",
    }


def _section(view: StudyView) -> StudySection:
    """Return what the page shows of one study: its verdict, its figures, its claims, its tables."""
    study = view.study
    verdict = overall_verdict([view.results], [view.rows])
    return StudySection(
        anchor=view.anchor,
        name=study.name,
        title=study.title,
        question=study.question,
        badges=_badges(verdict),
        found=" ".join(verdict.found),
        tallies=tallies(view.verdicts),
        figures=_figures(view),
        claims=_claims(view.verdicts),
        results=results_table(view),
        comparisons=comparisons_table(view),
        setting=_setting(view),
        scenarios=scenarios_table(view),
        agents=agents_table(view),
        toml=as_toml(study),
    )


def _claims(verdicts: Sequence[Verdict]) -> list[ClaimGroup]:
    """Return the claims by who says them, each in a line."""
    groups = {
        heading: [
            JudgedClaim(*HOLDS[one.holds], VERDICTS[one.holds], one.claim, one.at_K, one.numbers.split("; "))
            for one in verdicts
            if one.source == source
        ]
        for source, heading in CLAIMED_BY.items()
    }
    return [ClaimGroup(heading, claims) for heading, claims in groups.items() if claims]


def _index(views: Sequence[StudyView]) -> Table:
    """Return each study in a line, which leads to it."""
    rows: list[TableRow] = []
    for view in views:
        verdict = overall_verdict([view.results], [view.rows])
        tags = [] if verdict.word == CERTIFIED else [Note(verdict.word, bad=verdict.word == UNCERTIFIED)]
        if verdict.alarms:
            tags.append(Note(BROKEN, bad=True))
        promised, broken = sum(map(promised_runs, view.rows)), sum(row["broken"] or 0 for row in view.rows)
        claims = tallies(view.verdicts)
        others = [row for row in view.rows if row["no_floor"] or row["not_certified"]]
        below, runs = (sum(row[key] for row in others) for key in ("runs_below", "trials"))
        rows.append(
            [
                TableCell(view.study.title, tags=tuple(tags), anchor=view.anchor),
                TableCell(claims[0], small=tuple(claims[1:]), anchor=f"{view.anchor}-claims") if claims else "–",
                f"{broken:,} of {promised:,}" if promised else "–",
                f"{below:,} of {runs:,}" if runs else "–",
            ]
        )
    headings = ("study", "claims", "promises broken", "others below the floor")
    return Table(
        "The studies. Others are runs that promise no floor, or are NOT CERTIFIED.",
        headings,
        frozenset({2, 3}),
        [RowGroup("", rows)],
        frozenset({1}),
    )


def _setting(view: StudyView) -> str:
    """Return who runs where, how often and how long."""
    study = view.study
    lengths = sorted({cell.episodes for cell in view.cells})
    spans = " to ".join(f"{episodes:,}" for episodes in dict.fromkeys((lengths[0], lengths[-1])))
    agents, scenarios, runs = len(study.agents), len(study.scenarios), len(view.cells) * study.trials
    return (
        f"{agents} {plural('agent', agents)} in {scenarios} {plural('scenario', scenarios)}, {study.trials} "
        f"{plural('trial', study.trials)} each: {runs:,} {plural('run', runs)} of {spans} episodes. Trials of "
        "a scenario differ in their draws only, and trial i of every agent draws from the same random stream. "
        f"delta = {study.delta:g}: each run's promise may fail with that probability at most. "
        "Returns are in the world's units; values are exact, not sampled. Episodes count from 0."
    )


def _figures(view: StudyView) -> list[Figure]:
    """Draw the figures. A screen reader reads the beginning of each caption."""
    if not any(row["trials"] for row in view.rows) or not view.study.figures:
        return []
    from surefoot.studies.report.plots import FIGURES, save_svg  # matplotlib is slow to import

    drawn = []
    for i, name in enumerate(view.study.figures, 1):
        salt = f"{view.anchor.replace('study-', 's')}f{i}"  # ids begin with it, and are many: short
        caption = FIGURES[name].caption
        short = re.split(r"[.:;] ", caption, maxsplit=1)[0].rstrip(".")
        drawn.append(Figure(f"Figure {i}.", save_svg(FIGURES[name].draw(view.results), salt, short), caption))
    return drawn


def _premises(views: Sequence[StudyView]) -> list[str]:
    """Return what the promise rests on. What concerns one kind of agent is said where there is one."""
    specs = [spec for view in views for spec in view.study.agents]
    scenarios = [scenario for view in views for scenario in view.study.scenarios]
    agents = [AGENTS[spec.agent] for spec in specs]
    in_sum = ", ".join(dict.fromkeys(agent.name for agent in agents if agent.in_sum))
    lines = list(ALWAYS_PRESUMED)
    if any(scenario.log is None for scenario in scenarios):
        lines.append(
            "The baseline is above the floor. That is trusted, not proved, until data certify it: before that an "
            "agent plays the baseline alone. Beside each promise stands how well the agent knows it beforehand: "
            "certified by data, given to the agent (with the baseline's value), or unknown. Whether it is true is "
            "known here, because the simulator knows the world; no promise rests on that."
        )
    if any(scenario.log is not None for scenario in scenarios):
        lines.append(
            "A baseline that was learnt from a log is trusted to be above the floor wherever the log's certificate "
            "does not prove it. Half of delta is for that certificate, half for the agent; the log's episodes are "
            "independent draws of one policy in the same world."
        )
    if any(agent.floor_scope == COIN for agent in agents):
        lines.append(
            "EpsMix tosses a coin at the start of an episode, and promises the coin-averaged value: the policy that "
            "the coin selects may be below the floor."
        )
    if in_sum:
        lines.append(
            f"{in_sum}: what is promised is the sum of all episodes so far. Single episodes may be below the floor."
        )
    if any(row["knows_baseline_value"] for view in views for row in view.rows):
        lines.append(
            "Knows V^b: the agent was given the true value of the baseline. A promise that rests on this value is "
            "trusted, not certified."
        )
    if any(spec.pooled is not False for spec in specs):
        lines.append("Where counts are pooled over steps, the dynamics do not depend on the step.")
    return [*lines, *MEANING_OF_NUMBERS]


def _provenance(views: Sequence[StudyView]) -> Table:
    """Return where the numbers come from."""
    rows: list[TableRow] = []
    for view in views:
        study = view.study
        versions = ", ".join(f"{name} {version}" for name, version in view.results.versions.items())
        rows.append(
            [
                study.name,
                TableCell(command(study), kind="command"),
                str(study.seed),
                study.size,
                versions,
                TableCell(study.digest, kind="code"),
            ]
        )
    headings = ("study", "command", "seed", "size", "made with", "digest of the study (SHA-256)")
    return Table("Where the numbers come from.", headings, frozenset({2}), [RowGroup("", rows)], frozenset({4, 5}))


def command(study: Study) -> str:
    """Return what makes these results again. A study that does not come with the package is run from its file."""
    known = False
    if study.name in GROUPS["all"]:
        ours = packaged(study.name)
        known = (ours.made_quick() if study.size == "quick" else ours).digest == study.digest
    what = study.name if known else f"{study.name}.toml"
    quick = " --quick" if study.size == "quick" else ""
    return f"surefoot run {what}{quick} --trials {study.trials}"


def as_toml(study: Study) -> str:
    """Return the study as its file would say it: `read_study` reads it back."""
    import tomli_w

    return tomli_w.dumps(study.as_table())
