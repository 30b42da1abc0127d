"""One page of HTML with the results of studies: no scripts, nothing loaded, the same bytes for the same results.

The page begins with the verdict and the claims, then shows each study, and ends with what the promise presumes, how to
run the studies again, and their files.
"""

import json
from collections.abc import Mapping, Sequence
from operator import methodcaller
from pathlib import Path
from typing import Any

from surefoot.agents import AGENTS
from surefoot.base.files import write_whole
from surefoot.errors import InvalidSetting
from surefoot.studies.analysis.claims import Analysis, Verdict, analyse
from surefoot.studies.analysis.trials import UNCERTIFIED
from surefoot.studies.analysis.verdict import CERTIFIED, OverallVerdict, glance, overall_verdict
from surefoot.studies.report.html import (
    STYLE,
    Html,
    Table,
    bullets,
    element,
    escape,
    figure,
    link,
    section,
    tag,
    with_shared_letters,
)
from surefoot.studies.report.tables import (
    StudyView,
    agents_table,
    comparisons_table,
    plural,
    results_table,
    scenarios_table,
)
from surefoot.studies.run.store import Results
from surefoot.studies.spec.study import GROUPS, Study, packaged

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
COIN = "every episode's coin-averaged value"  # the scope of a promise that one episode's policy may miss
BADGES = {CERTIFIED: ("certified", "✓", "good"), UNCERTIFIED: ("uncertified", "✗", "bad")}  # class, symbol, colour
HOLDS = {
    True: Html('<span class="holds">✓ holds</span>'),
    False: Html('<span class="fails">✗ does not hold</span>'),
    None: Html('<span class="unsure">? cannot be judged</span>'),
}
BROKEN = "PROMISE BROKEN"
MEANING_OF_CERTIFIED = (
    "Certified means: proved from data, on an event of probability at least 1 − delta, if all of this is so. "
    "NOT CERTIFIED means: computed with a bonus that somebody scaled by hand, which no proof covers."
)
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
HOW_COMPUTED = (
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


def write_report(studies: Sequence[Results | Analysis], path: str | Path) -> Path:
    """Write the page to a file, whole or not at all. Results that are not analysed yet are analysed here."""
    write_whole(path, methodcaller("write", page(studies).encode()))
    return Path(path)


def page(studies: Sequence[Results | Analysis]) -> str:
    """Return everything on one page, as HTML."""
    if not studies:
        raise InvalidSetting("There are no results to report. Give at least one folder that `run` wrote.")
    analysed = [one if isinstance(one, Analysis) else analyse(one) for one in studies]
    results = [one.results for one in analysed]
    views = [
        StudyView(f"study-{i}", one.results.study, one.results, one.results.study.cells, one.rows, one.verdicts)
        for i, one in enumerate(analysed, 1)
    ]
    verdict = overall_verdict(results, [one.rows for one in analysed])
    title = results[0].study.title if len(results) == 1 else f"{len(results)} studies of learning above a floor"
    body = [
        _header(title, verdict, views),
        Html("<main>"),
        _contents(views) if len(views) > 1 else "",
        _claims(views),
        *(_study(view, len(views) == 1) for view in views),
        _premises(views),
        _provenance(views),
        _files(views),
        Html("</main>"),
        Html(
            "<footer><p>Made by surefoot from the results alone: the same results give the same page, to the byte. It "
            "loads nothing and runs no scripts.</p></footer>"
        ),
    ]
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{verdict.word}: {escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    return with_shared_letters(head + "\n".join(part for part in body if part) + "\n</body>\n</html>\n")


def _header(title: str, verdict: OverallVerdict, views: Sequence[StudyView]) -> Html:
    """Return the title and the verdict: what a reader sees first."""
    kind, symbol, colour = BADGES.get(verdict.word, ("nothing", "○", ""))
    badges = [_badge(kind, symbol, verdict.word)]
    if verdict.alarms:
        badges.append(_badge("broken", "✗", BROKEN))
        colour = "bad"
    one = views[0] if len(views) == 1 else None
    found = [escape(line) for line in verdict.found]
    judged = [verdict for view in views for verdict in view.verdicts]
    if judged:
        found.append(Html(f"{link('claims', _counted(judged))}."))
    finds = element("p", Html(" ".join(found)), "found")
    means = element("p", Html(f"{escape(verdict.meaning)} {link('premises', 'What it presumes')}."))
    parts = [
        element("p", badges, "badges"),
        *(element("p", escape(line), "alarm") for line in verdict.alarms),
        # What is not certified is said before anything that was found.
        *([means, finds] if verdict.word == UNCERTIFIED else [finds, means]),
        bullets([escape(line) for line in verdict.caveats], "caveats"),
        (_agents_at_a_glance(one) if one else _studies_at_a_glance(views)).html(),
    ]
    question = element("p", escape(one.study.question), "question") if one else ""
    return Html(
        f'<header>\n<p class="kicker">surefoot: report</p>\n<h1>{escape(title)}</h1>\n{question}\n'
        f'<section class="verdict {colour}" aria-label="Verdict">\n' + "\n".join(filter(None, parts)) + "\n</section>\n"
        '<p class="words">The floor is the lowest expected return that an episode may have. The baseline is the policy '
        "that is there before learning, and is played until something better is known to be above the floor. Regret is "
        "how much more the best policy would have brought. V^b is the value of the baseline, V* that of the best "
        "policy. The optimistic policy is the one that is best if all that is not known yet is good. A candidate plays "
        "the baseline for h0 steps, then the optimistic policy; a mixture combines two neighbouring candidates.</p>\n"
        "</header>"
    )


def _badge(kind: str, symbol: str, word: str) -> Html:
    return Html(f'<strong class="badge {kind}"><span aria-hidden="true">{symbol}</span> {escape(word)}</strong>')


def _agents_at_a_glance(view: StudyView) -> Table:
    """Return the agents over all scenarios: what a reader with a minute needs."""
    by_agent = (
        [row for row in view.rows if row["learner"] == agent.id and row["trials"]] for agent in view.study.agents
    )
    rows = [
        [
            Html(escape(one.label) + tag(one.promise, bad=any(row["not_certified"] or row["broken"] for row in mine))),
            escape(one.below),
            escape(one.regret),
            escape(one.left),
        ]
        for one, mine in zip(glance(view.results, view.rows), filter(None, by_agent), strict=True)
    ]
    headings = (
        *("agent", "runs ever below the floor"),
        *("regret against the baseline alone", "runs that left the baseline"),
    )
    scenarios = len(view.study.scenarios)
    over = "1 scenario" if scenarios == 1 else f"all {scenarios} scenarios together"
    return Table(f"The agents over {over}.", headings, frozenset({1, 2, 3}), [("", rows)])


def _studies_at_a_glance(views: Sequence[StudyView]) -> Table:
    """Return each study in a line of the verdict."""
    rows = []
    for view in views:
        verdict = overall_verdict([view.results], [view.rows])
        tags = [] if verdict.word == CERTIFIED else [tag(verdict.word, bad=verdict.word == UNCERTIFIED)]
        if verdict.alarms:
            tags.append(tag(BROKEN, bad=True))
        certified, broken = (sum(row[key] or 0 for row in view.rows) for key in ("certified", "broken"))
        holds = sum(verdict.holds is True for verdict in view.verdicts)
        others = [row for row in view.rows if row["no_floor"] or row["not_certified"]]
        below, runs = (sum(row[key] for row in others) for key in ("runs_below", "trials"))
        rows.append(
            [
                Html(link(view.anchor, view.study.title) + "".join(tags)),
                escape(f"{holds} of {len(view.verdicts)}" if view.verdicts else "–"),
                escape(f"{broken:,} of {certified:,}" if certified else "–"),
                escape(f"{below:,} of {runs:,}" if runs else "–"),
            ]
        )
    headings = ("study", "claims that hold", "promises broken", "below the floor without a promise")
    return Table("The studies.", headings, frozenset({1, 2, 3}), [("", rows)])


def _counted(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims hold, how many do not, and how many cannot be judged."""
    holds, fails, unsure = (sum(verdict.holds is what for verdict in verdicts) for what in (True, False, None))
    n = len(verdicts)
    words = [f"{holds} of {n} {plural('claim', n)} {'holds' if n == 1 else 'hold'}"]
    if fails:
        words.append(f"{fails} {'does' if fails == 1 else 'do'} not")
    if unsure:
        words.append(f"{unsure} cannot be judged")
    return ", ".join(words)


def _contents(views: Sequence[StudyView]) -> Html:
    """Return links to all parts of the page."""
    parts = [("claims", "What was claimed")] if any(view.verdicts for view in views) else []
    parts += [(view.anchor, view.study.title) for view in views]
    parts += [("premises", "What the promise presumes"), ("again", "To run it again"), ("files", "The studies' files")]
    entries = "".join(element("li", link(anchor, text)) for anchor, text in parts)
    return Html(f'<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n<ol>{entries}</ol>\n</nav>')


def _claims(views: Sequence[StudyView]) -> Html:
    """Return each claim with its verdict and numbers; nothing where nothing was claimed."""
    groups = []
    for view in views:
        rows = [[escape(one.claim), HOLDS[one.holds], _found(one.numbers)] for one in view.verdicts]
        groups.append((view.study.title if len(views) > 1 else "", rows))
    if not any(rows for _, rows in groups):
        return Html("")
    caption = (
        "What must come out if the paper (Li, Huang, Shen and Yang, Near-optimal Conservative Exploration in "
        "Reinforcement Learning under Episode-wise Constraints, 2023) is right, each judged by code from these results."
    )
    table = Table(caption, ("claim", "verdict", "what was found"), frozenset(), groups, stacks=True)
    return section("claims", "What was claimed", table.html())


def _found(numbers: str) -> Html:
    """Return a line for each thing that was found."""
    return Html("".join(element("div", escape(part)) for part in numbers.split("; ")))


def _study(view: StudyView, alone: bool) -> Html:
    """Return one study: its setting, its results, its figures. Alone, its title and question are on top already."""
    study = view.study
    compared = comparisons_table(view)
    parts = [
        *([] if alone else [element("p", escape(study.question), "question"), _agents_at_a_glance(view).html()]),
        element("h3", escape("Setting")),
        element("p", escape(_setting(view))),
        scenarios_table(view).html(),
        agents_table(view).html(),
        element("h3", escape("Results")),
        results_table(view).html(),
        *_figures(view),
        *([] if compared is None else [element("h3", escape("Side by side")), compared.html()]),
    ]
    return section(view.anchor, "What was done" if alone else study.title, "\n".join(parts))


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


def _figures(view: StudyView) -> list[Html]:
    if not any(row["trials"] for row in view.rows) or not view.study.figures:
        return []
    from surefoot.studies.report.plots import FIGURES, save_svg  # matplotlib is slow to import

    drawn = [element("h3", escape("Figures"))]
    for i, name in enumerate(view.study.figures, 1):
        salt = f"{view.anchor.replace('study-', 's')}f{i}"  # ids begin with it, and are many: short
        drawn.append(figure(save_svg(FIGURES[name].draw(view.results), salt), FIGURES[name].caption, f"Figure {i}."))
    return drawn


def _premises(views: Sequence[StudyView]) -> Html:
    """Return what the promise rests on. What concerns one kind of agent is said where there is one."""
    specs = [spec for view in views for spec in view.study.agents]
    scenarios = [scenario for view in views for scenario in view.study.scenarios]
    agents = [AGENTS[spec.agent] for spec in specs]
    in_sum = ", ".join(dict.fromkeys(agent.name for agent in agents if agent.in_sum))
    lines = list(ALWAYS_PRESUMED)
    if any(scenario.log is None for scenario in scenarios):
        lines.append(
            "The baseline is above the floor. That is trusted, not proved, until data certify it: before that an "
            "agent plays the baseline alone. Beside each promise stands how well it is known beforehand: certified "
            "by data, asserted by the user (somebody gave its value), or unknown."
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
    if any(row["told"] for view in views for row in view.rows):
        lines.append(
            "Knows V^b: the agent was given the true value of the baseline, and its promise presumes that value."
        )
    if any(spec.pooled is not False for spec in specs):
        lines.append("Where counts are pooled over steps, the dynamics do not depend on the step.")
    lines += MEANING_OF_NUMBERS
    content = f"{element('p', escape(MEANING_OF_CERTIFIED))}\n{bullets([escape(line) for line in lines])}"
    return section("premises", "What the promise presumes", content)


def _provenance(views: Sequence[StudyView]) -> Html:
    """Return where the numbers come from, and how they were computed."""
    rows = []
    for view in views:
        study = view.study
        versions = ", ".join(f"{name} {version}" for name, version in view.results.versions.items())
        rows.append(
            [
                escape(study.name),
                element("code", escape(command(study)), "line"),
                escape(study.seed),
                escape(study.size),
                escape(versions),
                element("code", escape(study.digest)),
            ]
        )
    headings = ("study", "command", "seed", "size", "made with", "digest of the study (SHA-256)")
    table = Table("Where the numbers come from.", headings, frozenset({2}), [("", rows)], frozenset({4, 5}))
    return section("again", "To run it again", f"{table.html()}\n{bullets([escape(line) for line in HOW_COMPUTED])}")


def command(study: Study) -> str:
    """Return what makes these results again. A study that does not come with the package is run from its file."""
    known = False
    if study.name in GROUPS["all"]:
        ours = packaged(study.name)
        known = (ours.made_quick() if study.size == "quick" else ours).digest == study.digest
    what = study.name if known else f"{study.name}.toml"
    quick = " --quick" if study.size == "quick" else ""
    return f"surefoot run {what}{quick} --trials {study.trials}"


def _files(views: Sequence[StudyView]) -> Html:
    """Return the studies as TOML, to be saved and run."""
    parts = [
        f"<details>\n<summary>{escape(view.study.name)}.toml</summary>\n"
        f"<pre><code>{escape(as_toml(view.study))}</code></pre>\n</details>"
        for view in views
    ]
    studies, heading = ("study", "The study's file") if len(views) == 1 else ("studies", "The studies' files")
    words = f"The {studies} as data. Saved as a file, it can be run: surefoot run FILE.toml"
    return section("files", heading, "\n".join([element("p", escape(words)), *parts]))


def as_toml(study: Study) -> str:
    """Return the study as its file would say it: `read_study` reads it back."""
    table = study.as_table()
    plain = {key: value for key, value in table.items() if key not in ("quick", "scenarios", "agents")}
    blocks = [_fields(plain)]
    if "quick" in table:
        blocks.append(f"[quick]\n{_fields(table['quick'])}")
    for kind in ("scenarios", "agents"):
        blocks += [f"[[{kind}]]\n{_fields(entry)}" for entry in table[kind]]
    return "\n\n".join(blocks) + "\n"


def _fields(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{key} = {_as_value(value)}" for key, value in table.items())


def _as_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_as_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_as_value(entry) for entry in value) + "]"
    if isinstance(value, str):  # the strings of TOML are those of JSON, but for DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
