"""One page of HTML that says what studies found: no scripts, nothing loaded, the same bytes for the same results.

Text becomes HTML in `said` alone, which escapes it; what is `Html` already was written here.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import IO, Any, NamedTuple, NewType

from surefoot.agents import AGENTS
from surefoot.envs.registry import family
from surefoot.errors import InvalidSetting
from surefoot.files import write_whole
from surefoot.studies.claims import Verdict, judge
from surefoot.studies.spec import Cell, Choice, Learner, Panel, Study
from surefoot.studies.stats import Interval, Paired, paired, shown
from surefoot.studies.store import Results
from surefoot.studies.summary import CERTIFIED, UNCERTIFIED, Standing, amount, glance, standing, summary, title_of
from surefoot.studies.trial import Trial

Html = NewType("Html", str)

MOST_TO_PAIR = 3  # learners of which all pairs are compared; of more, each with the first
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MINUS = "−"
NUMERIC, WIDE = ' class="n"', ' class="w"'

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --card: #f6f8fa; --link: #0550ae;
  --good: #0f5c2e; --good-card: #e6f4ea; --bad: #a40e26; --bad-card: #ffebe9; --plain: #3d444d; --plain-card: #eaeef2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181d; --ink: #e6edf3; --soft: #9da7b1; --line: #3d444d; --card: #1c2128; --link: #79c0ff;
    --good: #7ee2a0; --good-card: #12301e; --bad: #ff9a92; --bad-card: #3b1512; --plain: #c9d1d9; --plain-card: #262c34;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
  overflow-wrap: break-word;
}
header, main, footer { max-width: 74rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
h1 { font-size: clamp(1.5rem, 1.1rem + 1.6vw, 2.2rem); line-height: 1.2; margin: .2rem 0 .6rem; }
h2 {
  font-size: 1.45rem; line-height: 1.25; margin: 3rem 0 .6rem; padding-top: 1rem;
  border-top: 1px solid var(--line);
}
h3 { font-size: 1.08rem; margin: 2rem 0 .5rem; }
p, ul, ol { max-width: 46rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
code, pre { font: .88em/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace; }
code { overflow-wrap: anywhere; }
.kicker, .words { margin: 0; color: var(--soft); font-size: .9rem; }
.words { margin-top: .8rem; max-width: none; }
.question { font-size: 1.1rem; color: var(--soft); margin: 0 0 1.25rem; }
.verdict {
  border: 1px solid var(--line); border-left-width: .5rem; border-radius: .5rem;
  padding: 1.1rem 1.25rem .9rem;
}
.verdict.good { border-left-color: var(--good); }
.verdict.bad { border-left-color: var(--bad); }
.verdict > p { margin: .6rem 0; max-width: 62rem; }
.verdict .scroll { margin: .8rem 0 .2rem; }
.verdict table { min-width: 0; }
.badges { display: flex; flex-wrap: wrap; gap: .5rem; }
.badge {
  display: inline-block; padding: .3rem .8rem; border-radius: .4rem; border: 2px solid currentcolor;
  font-weight: 700; font-size: 1.15rem; letter-spacing: .03em;
}
.badge.certified { color: var(--good); background: var(--good-card); }
.badge.uncertified, .badge.broken { color: var(--bad); background: var(--bad-card); }
.badge.nothing { color: var(--plain); background: var(--plain-card); }
.alarm { color: var(--bad); font-weight: 650; }
.found { font-size: 1.15rem; }
.verdict ul { margin: .6rem 0; padding-left: 1.2rem; max-width: 62rem; }
.verdict li { margin: .3rem 0; }
.caveats { list-style: "⚠ "; }
nav ol { columns: 2 20rem; padding-left: 1.4rem; max-width: none; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; max-width: 100%; }
table {
  border-collapse: collapse; min-width: 100%;
  font-size: .9rem; line-height: 1.4; font-variant-numeric: tabular-nums;
}
caption { text-align: left; color: var(--soft); padding-bottom: .5rem; }
th, td { padding: .45rem .75rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; border-bottom: 2px solid var(--line); font-weight: 600; }
tbody th { font-weight: 600; }
th[scope=row] { position: sticky; left: 0; background: var(--paper); min-width: 8.5rem; }
th[scope=rowgroup] { background: var(--card); }
th[scope=rowgroup] span { position: sticky; left: .75rem; }
.n { text-align: right; white-space: nowrap; }
small { display: block; color: var(--soft); font-size: .82rem; font-weight: 400; white-space: normal; }
.n small { white-space: nowrap; }
thead .n { white-space: normal; }
td.w { min-width: 11rem; }
td.w:last-child { min-width: 15rem; }
caption span { position: sticky; left: 0; display: inline-block; max-width: min(60rem, 100vw - 4rem); }
.line { white-space: nowrap; }
.holds { color: var(--good); font-weight: 650; white-space: nowrap; }
.fails { color: var(--bad); font-weight: 650; white-space: nowrap; }
.unsure { color: var(--plain); font-weight: 650; white-space: nowrap; }
.tag.bad { color: var(--bad); font-weight: 650; }
figure { margin: 1.5rem 0; }
figure .scroll { background: #fff; border: 1px solid var(--line); border-radius: .4rem; padding: .5rem; margin: 0; }
figure svg { display: block; width: 100%; height: auto; min-width: 38rem; margin: 0 auto; }
.letters { position: absolute; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .5rem; max-width: 52rem; }
details { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .9rem; margin: .6rem 0; }
summary { cursor: pointer; font-weight: 600; }
pre { overflow-x: auto; max-width: 100%; padding: .75rem; background: var(--card); border-radius: .4rem; }
footer { color: var(--soft); font-size: .9rem; padding-top: 2rem; padding-bottom: 3rem; }
@media (max-width: 40rem) {
  header, main, footer { padding-left: .9rem; padding-right: .9rem; }
  header { padding-top: 1.2rem; }
  table { font-size: .84rem; }
  th, td { padding: .4rem .45rem; }
  th[scope=row] { min-width: 5.5rem; max-width: 9rem; }
  .verdict { padding: .8rem .8rem .6rem; }
  .verdict th, .verdict td { padding: .35rem .25rem; font-size: .8rem; }
  .verdict th[scope=row] { min-width: 8rem; }
  .stack table, .stack caption, .stack tbody, .stack tr, .stack th, .stack td { display: block; }
  .stack thead { position: absolute; clip-path: inset(50%); }
  .stack th[scope=row] { max-width: none; position: static; }
  .stack tbody th, .stack tbody td { border: 0; padding-bottom: 0; }
  .stack tr { border-bottom: 1px solid var(--line); padding-bottom: .4rem; }
}
@media print {
  :root { color-scheme: light; }
  body { font-size: 10pt; }
  header, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  .scroll { overflow: visible; }
  table { font-size: 7.5pt; }
  small { font-size: 6.5pt; }
  th, td { padding: .2rem .3rem; }
  td.w, td.w:last-child { min-width: 0; }
  .line, .n small { white-space: normal; }
  th[scope=row] { position: static; min-width: 0; }
  figure, tr, .verdict { break-inside: avoid; }
  figure svg { min-width: 0; }
  h2, h3, caption { break-after: avoid; }
}
"""


def write_report(results: Sequence[Results], path: str | Path) -> Path:
    """The page as a file, whole or not at all."""
    content = page(results).encode()
    write_whole(path, lambda stream: _write(stream, content))
    return Path(path)


def _write(stream: IO[bytes], content: bytes) -> None:
    stream.write(content)


def page(results: Sequence[Results]) -> str:
    """Everything on one page, as HTML."""
    if not results:
        raise InvalidSetting("There are no results to report. Give at least one folder that `run` wrote.")
    told = [Told(f"study-{i}", one, judge(one), summary(one)) for i, one in enumerate(results, 1)]
    verdict = standing(results)
    title = results[0].study.title if len(results) == 1 else f"{len(results)} studies of learning above a floor"
    body = [
        _header(title, verdict, told),
        Html("<main>"),
        _contents(told) if len(told) > 1 else Html(""),
        _claims(told),
        *(_study(one, len(told) == 1) for one in told),
        _premises(told),
        _provenance(told),
        _files(told),
        Html("</main>"),
        _footer(),
    ]
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{verdict.word}: {said(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    return with_shared_letters(head + "\n".join(part for part in body if part) + "\n</body>\n</html>\n")


class Told(NamedTuple):
    """A study's results, and what was made of them."""

    anchor: str
    results: Results
    verdicts: list[Verdict]
    rows: list[dict[str, Any]]

    @property
    def study(self) -> Study:
        """What was asked."""
        return self.results.study


# ---------------------------------------------------------------------------------------------- pieces of HTML


def said(text: object) -> Html:
    """Text, escaped."""
    return Html(escape(str(text)))


def inside(tag: str, content: Iterable[Html] | Html, kind: str = "") -> Html:
    """An element around what is there."""
    words = content if isinstance(content, str) else "".join(content)
    name = f' class="{kind}"' if kind else ""
    return Html(f"<{tag}{name}>{words}</{tag}>")


def listed(lines: Iterable[Html], kind: str = "") -> Html:
    """A list, or nothing."""
    entries = [inside("li", line) for line in lines]
    return inside("ul", entries, kind) if entries else Html("")


def link(anchor: str, text: str) -> Html:
    """To another place of the page."""
    return Html(f'<a href="#{anchor}">{said(text)}</a>')


def small(text: str) -> Html:
    """A line of its own below a number."""
    return inside("small", said(text.replace(" %", "\u00a0%")))


class Table(NamedTuple):
    """A table with a caption; the first cell of a row names it. Rows may come in groups, each with a heading."""

    caption: str
    headings: Sequence[str]
    numeric: frozenset[int]
    groups: Sequence[tuple[str, Sequence[Sequence[Html]]]]  # heading ("": none), rows
    wide: frozenset[int] = frozenset()  # columns of sentences
    stacks: bool = False  # cells below each other where the page is narrow

    def html(self) -> Html:
        """In a box of its own, which scrolls where the page is narrow."""
        top = "".join(self._cell("th", i, said(heading), ' scope="col"') for i, heading in enumerate(self.headings))
        bodies = []
        for heading, rows in self.groups:
            if not rows:
                continue
            span = f' colspan="{len(self.headings)}" scope="rowgroup"'
            first = f"<tr><th{span}><span>{said(heading)}</span></th></tr>\n" if heading else ""
            lines = "\n".join(
                "<tr>"
                + "".join(
                    self._cell("td" if i else "th", i, cell, "" if i else ' scope="row"') for i, cell in enumerate(row)
                )
                + "</tr>"
                for row in rows
            )
            bodies.append(f"<tbody>\n{first}{lines}\n</tbody>")
        table = (
            f"<table>\n<caption><span>{said(self.caption)}</span></caption>\n<thead><tr>{top}</tr></thead>\n"
            + "\n".join(bodies)
            + "\n</table>"
        )
        return scrolling(Html(table), self.caption, "scroll stack" if self.stacks else "scroll")

    def _cell(self, tag: str, i: int, content: Html, more: str) -> str:
        kind = NUMERIC if i in self.numeric else WIDE if i in self.wide else ""
        return f"<{tag}{more}{kind}>{content}</{tag}>"


def scrolling(content: Html, name: str, kind: str = "scroll") -> Html:
    """What may be wider than a phone, scrolls by itself; with the keyboard, too."""
    return Html(f'<div class="{kind}" tabindex="0" role="region" aria-label="{said(name)}">\n{content}\n</div>')


# ---------------------------------------------------------------------------------------------- the verdict


def _header(title: str, verdict: Standing, told: Sequence[Told]) -> Html:
    kinds = {CERTIFIED: ("certified", "✓", "good"), UNCERTIFIED: ("uncertified", "✗", "bad")}
    kind, symbol, colour = kinds.get(verdict.word, ("nothing", "○", ""))
    badges = [_badge(kind, symbol, verdict.word)]
    if verdict.alarms:
        badges.append(_badge("broken", "✗", "PROMISE BROKEN"))
        colour = "bad"
    one = told[0] if len(told) == 1 else None
    found = [said(line) for line in verdict.found]
    judged = [verdict for each in told for verdict in each.verdicts]
    if judged:
        found.append(Html(f"{link('claims', counted(judged))}."))
    finds = inside("p", Html(" ".join(found)), "found")
    means = inside("p", Html(f"{said(verdict.meaning)} {link('premises', 'What it presumes')}."))
    parts = [
        inside("p", badges, "badges"),
        *(inside("p", said(line), "alarm") for line in verdict.alarms),
        # What is not certified is said before anything that was found.
        *([means, finds] if verdict.word == UNCERTIFIED else [finds, means]),
        listed((said(line) for line in verdict.caveats), "caveats"),
        (_glances(one) if one else _lines(told)).html(),
    ]
    question = inside("p", said(one.study.question), "question") if one else Html("")
    return Html(
        f'<header>\n<p class="kicker">surefoot: report</p>\n<h1>{said(title)}</h1>\n{question}\n'
        f'<section class="verdict {colour}" aria-label="Verdict">\n' + "\n".join(filter(None, parts)) + "\n</section>\n"
        '<p class="words">The floor is the lowest expected return that an episode may have; the baseline is the policy '
        "that is there before learning, and is played until something better is known to be above the floor; regret is "
        "what the best policy would have brought more.</p>\n</header>"
    )


def _glances(told: Told) -> Table:
    """The learners over all places: what a reader with a minute needs."""
    rows = [
        [Html(said(one.label) + _tag(one.promise)), said(one.below), said(one.regret), said(one.left)]
        for one in glance(told.results)
    ]
    headings = (
        "learner",
        "runs ever below the floor",
        "regret against the baseline alone",
        "runs that left the baseline",
    )
    places = len(told.study.panels)
    caption = f"The learners over {'all ' * (places > 1)}{places} {_plural('place', places)} together."
    return Table(caption, headings, frozenset({1, 2, 3}), [("", rows)])


def _tag(words: str) -> Html:
    """A short mark below a learner's name."""
    bad = " bad" * words.startswith((UNCERTIFIED, "PROMISE BROKEN", "no promise"))
    return Html(f'<small class="tag{bad}">{said(words)}</small>')


def _badge(kind: str, symbol: str, word: str) -> Html:
    return Html(f'<strong class="badge {kind}"><span aria-hidden="true">{symbol}</span> {said(word)}</strong>')


def _lines(told: Sequence[Told]) -> Table:
    """Each study in a line of the verdict."""
    rows = []
    for each in told:
        verdict = standing([each.results])
        marks = [verdict.word] * (verdict.word != CERTIFIED) + ["PROMISE BROKEN"] * bool(verdict.alarms)
        certified, broken = (sum(row[key] or 0 for row in each.rows) for key in ("certified", "broken"))
        holds = sum(verdict.holds is True for verdict in each.verdicts)
        others = [row for row in each.rows if row["trials"] and not row["certified"] and not row["premise_false"]]
        below, runs = (sum(row[key] for row in others) for key in ("runs_below", "trials"))
        rows.append(
            [
                Html(link(each.anchor, each.study.title) + Html("".join(map(_tag, marks)))),
                said(f"{holds} of {len(each.verdicts)}" if each.verdicts else "–"),
                said(f"{broken:,} of {certified:,}" if certified else "–"),
                said(f"{below:,} of {runs:,}" if runs else "–"),
            ]
        )
    headings = ("study", "claims that hold", "promises broken", "below the floor without a promise")
    return Table("The studies.", headings, frozenset({1, 2, 3}), [("", rows)])


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many claims hold, how many do not, and of how many it cannot be said."""
    holds, fails, unsure = (sum(verdict.holds is what for verdict in verdicts) for what in (True, False, None))
    n = len(verdicts)
    words = [f"{holds} of {n} {_plural('claim', n)} {'holds' if n == 1 else 'hold'}"]
    words += [f"{fails} {'does' if fails == 1 else 'do'} not"] * (fails > 0)
    words += [f"{unsure} cannot be judged"] * (unsure > 0)
    return ", ".join(words)


def _contents(told: Sequence[Told]) -> Html:
    places = [("claims", "What was claimed")] * any(each.verdicts for each in told)
    places += [(each.anchor, each.study.title) for each in told]
    places += [("premises", "What the promise presumes"), ("again", "To run it again"), ("files", "The studies' files")]
    entries = "".join(inside("li", link(anchor, text)) for anchor, text in places)
    return Html(f'<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n<ol>{entries}</ol>\n</nav>')


HOLDS = {
    True: Html('<span class="holds">✓ holds</span>'),
    False: Html('<span class="fails">✗ does not hold</span>'),
    None: Html('<span class="unsure">? cannot be judged</span>'),
}


def _claims(told: Sequence[Told]) -> Html:
    groups = []
    for each in told:
        rows = [[said(verdict.claim), HOLDS[verdict.holds], _lines_of(verdict.numbers)] for verdict in each.verdicts]
        groups.append((each.study.title if len(told) > 1 else "", rows))
    if not any(rows for _, rows in groups):
        return Html("")
    caption = "What must come out if the paper is right, each judged by code from these results."
    table = Table(caption, ("claim", "verdict", "what was found"), frozenset(), groups, stacks=True).html()
    return Html(f'<section aria-labelledby="claims">\n<h2 id="claims">What was claimed</h2>\n{table}\n</section>')


def _lines_of(numbers: str) -> Html:
    """A line for each thing that was found."""
    return Html("".join(inside("div", said(part)) for part in numbers.split("; ")))


# ---------------------------------------------------------------------------------------------- a study


def _study(told: Told, alone: bool) -> Html:
    study = told.study
    heading = "What was done" if alone else study.title  # alone, title and question are on top already
    parts = [
        Html(f'<section aria-labelledby="{told.anchor}">\n<h2 id="{told.anchor}">{said(heading)}</h2>'),
        *([] if alone else [inside("p", said(study.question), "question"), _glances(told).html()]),
        inside("h3", said("Setting")),
        inside("p", said(setting_in_words(study))),
        _places(told).html(),
        _learners(told).html(),
        inside("h3", said("Results")),
        _results(told).html(),
        *_figures(told),
        *_comparisons(told),
        Html("</section>"),
    ]
    return Html("\n".join(parts))


def setting_in_words(study: Study) -> str:
    """Who runs where, how often, how long."""
    lengths = sorted({cell.episodes for cell in study.cells})
    spans = " to ".join(f"{episodes:,}" for episodes in dict.fromkeys((lengths[0], lengths[-1])))
    learners, places = len(study.learners), len(study.panels)
    runs = len(study.cells) * study.trials
    each = f"{learners} {_plural('learner', learners)} in {places} {_plural('place', places)}, {study.trials} "
    return (
        f"{each}{_plural('trial', study.trials)} each: {runs:,} {_plural('run', runs)} of {spans} episodes. Trials of "
        "a place differ in their draws only, and trial i meets the same chances with every learner. "
        f"delta = {study.delta:g}: each run's promise may fail with that probability at most. "
        "Returns are in the world's units; values are exact, not sampled. Episodes count from 0."
    )


def _plural(word: str, n: int) -> str:
    return word if n == 1 else f"{word}s"


def _places(told: Told) -> Table:
    rows = []
    for panel in told.study.panels:
        row = next((row for row in told.rows if row["panel"] == panel.id and row["trials"]), None)
        sizes = ", ".join(f"{key} = {_plainly(value)}" for key, value in sizes_of(panel).items())
        about = family(panel.world["name"]).summary
        lengths = dict.fromkeys(f"{cell.episodes:,}" for cell in told.study.cells if cell.panel.id == panel.id)
        rows.append(
            [
                said(title_of(panel)),
                Html(f"{said(panel.world['name'])}{small(sizes)}{small(about)}"),
                Html(f"{said(baseline_in_words(panel))}"),
                said("–" if row is None else _worth(row)),
                Html(said(_four(row, "floor")) + small(floor_in_words(panel))),
                said(_four(row, "optimum")),
                said(" or ".join(lengths)),
            ]
        )
    headings = ("place", "world", "baseline", "baseline's return", "floor", "best return", "episodes a run")
    return Table("The places.", headings, frozenset({3, 4, 5, 6}), [("", rows)], frozenset({1, 2}))


def sizes_of(panel: Panel) -> dict[str, Any]:
    """A world's sizes; that of its usual baseline where that is used."""
    used = panel.baseline if panel.log is None else panel.log.behaviour
    hidden = ("name",) if used == "usual" else ("name", "eta")
    return {key: value for key, value in panel.world.items() if key not in hidden}


def _four(row: Mapping[str, Any] | None, key: str) -> str:
    return "–" if row is None else f"{row[key]:.4f}"


def _worth(row: Mapping[str, Any]) -> str:
    low, high = (f"{row[key]:.4f}" for key in ("baseline_low", "baseline_high"))
    return low if low == high else f"{low} to {high}"


def _plainly(value: object) -> str:
    return (
        {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def policy_in_words(choice: Choice) -> str:
    """A baseline, or who wrote a log."""
    return "the world's usual one" if isinstance(choice, str) else f"Boltzmann policy on Q*, eta = {choice[1]:g}"


def baseline_in_words(panel: Panel) -> str:
    """Where the baseline comes from."""
    if panel.log is None:
        return policy_in_words(panel.baseline)
    methods = {"vi-lcb": "VI-LCB", "robust": "KL-robust learning", "clone": "cloning", "spibb": "SPIBB"}
    return (
        f"learnt by {methods[panel.log.method]} from a log of {panel.log.episodes:,} episodes of another policy "
        f"({policy_in_words(panel.log.behaviour)}); a new log in every trial"
    )


def floor_in_words(panel: Panel) -> str:
    """How the floor was chosen."""
    if panel.floor == "usual":
        return "the world's usual one"
    if isinstance(panel.floor, tuple):
        kind, value = panel.floor
        return f"{value:g} times the baseline's" if kind == "of_baseline" else f"the baseline's less {value:g}"
    return "as given"


def replan_in_words(choice: Choice) -> str:
    """When a learner plans."""
    if isinstance(choice, str):
        return "before every episode"
    kind, value = choice
    if kind == "growth":
        return f"when some pair's visits have grown by {100 * (value - 1):g} %"
    return f"in blocks of {100 * value:g} % of the episodes so far"


def constants_in_words(learner: Learner) -> str:
    """With which constants a learner plans."""
    return {"paper": "as its paper prints them", "kl": "KL (sharp)"}[learner.bounds]


def _learners(told: Told) -> Table:
    rows = []
    for learner in told.study.learners:
        cells = [cell for cell in told.study.cells if cell.learner.id == learner.id]
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
    count = "" if times is None else f" ({times:,} {_plural('run', times)})"
    return inside("span", said(words + count), kind)


def _results(told: Told) -> Table:
    headings = (
        *("learner", "told V^b", "trials", "episodes below the floor, mean a run", "runs ever below the floor"),
        *("regret, mean (units of return)", "return an episode, mean", "first episode off the baseline, median"),
        "first optimistic episode, median",
    )
    groups = []
    for panel in told.study.panels:
        rows = [_result(row) for row in told.rows if row["panel"] == panel.id]
        groups.append((title_of(panel), rows))
    caption = (
        "What came of each learner in each place. Below regret and return: the 95 % t interval of the mean over "
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
        marks.append("certified, in the sum of all episodes" if row["in_sum"] else "certified")
    if row["not_certified"]:
        marks.append(UNCERTIFIED)
    elif row["no_floor"]:
        marks.append("promises no floor")
    if row["premise_false"]:
        marks.append(f"no promise in {row['premise_false']} of {row['trials']} runs")
    return Html("".join(map(_tag, marks)))


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


def _figures(told: Told) -> list[Html]:
    if not any(row["trials"] for row in told.rows) or not told.study.figures:
        return []
    from surefoot.studies.plots import CAPTIONS, FIGURES, save_svg

    drawn = [inside("h3", said("Figures"))]
    for i, name in enumerate(told.study.figures, 1):
        svg = save_svg(
            FIGURES[name](told.results), salt=f"{told.anchor[0]}{told.anchor[6:]}f{i}"
        )  # ids are many: short
        drawn.append(figure(svg, CAPTIONS[name], f"Figure {i}."))
    return drawn


def figure(svg: str, caption: str, number: str) -> Html:
    """A picture on a white card; who cannot see it hears what it shows."""
    short = said(re.split(r"[.:;] ", caption, maxsplit=1)[0].rstrip("."))
    role = "" if ' role="img"' in svg[: svg.index(">")] else ' role="img"'
    named = Html(compact(svg).replace("<svg", f'<svg{role} aria-label="{short}"', 1))
    box = scrolling(named, number)
    return Html(f"<figure>\n{box}\n<figcaption><strong>{said(number)}</strong> {said(caption)}</figcaption>\n</figure>")


def compact(svg: str) -> str:
    """The same picture in half of the bytes: no names that nobody uses, no space that nobody sees, lines as steps.

    Places are rounded to a hundredth of a point. Letters must be paths: in text, space counts.
    """
    used = set(re.findall(r"#([\w.-]+)", svg))  # by a link, by url(), or by a style
    svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_shorter(path[1])}"', svg)
    places = r"(?:translate\([^)]*\)| [xy]=\"[^\"]*\")"
    svg = re.sub(places, lambda place: re.sub(r"-?\d+\.\d{3,}", lambda n: _hundredths(_cents(n[0])), place[0]), svg)
    return re.sub(r">\s+<", "><", svg.replace("xlink:href=", "href=")).strip()


def _shorter(path: str) -> str:
    """Lines to places become steps, counted in whole hundredths: no rounding adds up."""
    if not set(re.findall("[A-Za-z]", path)) <= set("MLz"):
        return re.sub(r"\s*([A-Za-z])\s*", r"\1", path.strip())
    parts, at, begun, tokens = [], (0, 0), (0, 0), iter(path.split())
    for token in tokens:
        if token == "z":
            parts.append("z")
            at = begun
            continue
        to = _cents(next(tokens)), _cents(next(tokens))
        if token == "M":
            parts.append(f"M{_hundredths(to[0])} {_hundredths(to[1])}")
            begun = to
        else:
            parts.append(f"l{_hundredths(to[0] - at[0])} {_hundredths(to[1] - at[1])}")
        at = to
    return "".join(parts).replace(" -", "-")


def with_shared_letters(text: str) -> str:
    """The page with each letter of its pictures drawn once, at the top: all of them have the same few."""
    drawn = r'<path id="([^"]+)" (d="[^"]*" transform="scale\(0\.015625\)")/>'  # as matplotlib defines a letter
    letters = {found[1]: found[2] for found in re.finditer(drawn, text)}
    names = {shape: f"L{i}" for i, shape in enumerate(dict.fromkeys(letters.values()))}
    if not names:
        return text
    text = re.sub(drawn, "", text)
    known = {name: names[shape] for name, shape in letters.items()}
    text = re.sub(r'href="#([^"]+)"', lambda found: f'href="#{known.get(found[1], found[1])}"', text)
    while (fewer := re.sub(r"<(g|defs)></\1>", "", text)) != text:
        text = fewer
    shapes = "".join(f'<path id="{name}" {shape}/>' for shape, name in names.items())
    box = f'<svg class="letters" width="0" height="0" aria-hidden="true"><defs>{shapes}</defs></svg>'
    return text.replace("<body>\n", f"<body>\n{box}\n", 1)


def _cents(number: str) -> int:
    return round(100 * float(number))


def _hundredths(cents: int) -> str:
    """Without what a number does not need: -0.50 is -.5."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", f"{cents / 100:.2f}".rstrip("0").rstrip("."))


def _comparisons(told: Told) -> list[Html]:
    """Two learners in the same place, trial by trial."""
    learners = told.study.learners
    pairs = (
        list(combinations(learners, 2))
        if len(learners) <= MOST_TO_PAIR
        else [(learners[0], other) for other in learners[1:]]
    )
    cells = {cell.id: cell for cell in told.study.cells}
    groups = []
    for panel in told.study.panels:
        rows = []
        for one, two in pairs:
            sides = cells[f"{panel.id}/{one.id}"], cells[f"{panel.id}/{two.id}"]
            row = _comparison(sides, told.results)
            if row is not None:
                rows.append(row)
        groups.append((title_of(panel), rows))
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
    ones, twos = ({trial.trial: trial for trial in results.of(cell.panel.id, cell.learner.id)} for cell in sides)
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


# ---------------------------------------------------------------------------------------------- the small print


def _premises(told: Sequence[Told]) -> Html:
    """What the promise rests on. Those of a kind of learner are said where there is one."""
    learners = [learner for each in told for learner in each.study.learners]
    agents = [AGENTS[learner.agent] for learner in learners]
    logs = any(panel.log is not None for each in told for panel in each.study.panels)
    given = any(panel.log is None for each in told for panel in each.study.panels)
    lines = [
        "States, actions and steps are finite, and every episode has the same number H of steps.",
        "The same state and action at the same step have the same transition probabilities in every episode.",
        "Rewards are known, and lie in the range that the world states.",
        "Floor and delta were fixed before the first episode.",
    ]
    if given:
        lines.append(
            "The baseline is above the floor. That is trusted, not proved, until data certify it: before that a "
            "learner plays the baseline alone."
        )
    if logs:
        lines.append(
            "A baseline that was learnt from a log is trusted to be above the floor wherever the log's certificate "
            "does not prove it. Half of delta is for that certificate, half for the learner; the log's episodes are "
            "independent draws of one policy in the same world."
        )
    if any(agent.floor_scope.startswith("every episode's coin") for agent in agents):
        lines.append(
            "EpsMix tosses a coin at the start of an episode, and promises the coin-averaged value: the policy that "
            "the coin selects may be below the floor."
        )
    if any(agent.in_sum for agent in agents):
        names = ", ".join(dict.fromkeys(agent.name for agent in agents if agent.in_sum))
        lines.append(
            f"{names}: what is promised is the sum of all episodes so far. Single episodes may be below the floor."
        )
    if any(row["told"] for each in told for row in each.rows):
        lines.append("Told V^b: the learner was told the true value of the baseline, and its promise presumes it.")
    if any(learner.pooled is not False for learner in learners):
        lines.append("Where counts are pooled over steps, the dynamics do not depend on the step.")
    lines += [
        "The floor is on the expected return of what is played, not on the return that one episode happens to bring.",
        "delta is for each run of each learner by itself: of many runs together, more may fail.",
        "Violations, regret and returns are exact because the simulator knows the world. Learners never see it: they "
        "see counts.",
    ]
    return Html(
        '<section aria-labelledby="premises">\n<h2 id="premises">What the promise presumes</h2>\n'
        "<p>Certified means: proved from data, on an event of probability at least 1 − delta, if all of this is so. "
        "NOT CERTIFIED means: computed with a bonus that somebody scaled by hand, which no proof covers.</p>\n"
        + listed(said(line) for line in lines)
        + "\n</section>"
    )


def _provenance(told: Sequence[Told]) -> Html:
    rows = []
    for each in told:
        versions = ", ".join(f"{name} {version}" for name, version in each.results.versions.items())
        rows.append(
            [
                said(each.study.name),
                inside("code", said(command(each.study)), "line"),
                said(each.study.seed),
                said(each.study.size),
                said(versions),
                inside("code", said(each.study.digest)),
            ]
        )
    headings = ("study", "command", "seed", "size", "made with", "digest of the study (SHA-256)")
    table = Table("Where the numbers come from.", headings, frozenset({2}), [("", rows)], frozenset({4, 5}))
    lines = [
        "Trial i draws from child i of the study's seed and from nothing else: the number of workers, their order, and "
        "more trials change nothing of what is here. The digest is of all that decides the numbers.",
        "Intervals of means are Student's t intervals over trials at 95 %; of one trial there is none. They say how "
        "sure the mean is, not how far single runs lie apart.",
        "Shares of runs have exact bounds (Clopper and Pearson) at 95 %: one-sided where none or all of the runs "
        "count, two-sided otherwise. That 0 of 10 runs went below the floor shows a share of at most 26 %; that it is "
        "at most delta is proved, not measured.",
        "An episode is below the floor if its exact expected return is more than 1e-12 (in units of 0 to H) below it.",
        "A median is over all trials of a cell; what never happened counts as later than everything.",
    ]
    return Html(
        '<section aria-labelledby="again">\n<h2 id="again">To run it again</h2>\n'
        + table.html()
        + "\n"
        + listed(said(line) for line in lines)
        + "\n</section>"
    )


def command(study: Study) -> str:
    """What makes these results again. A study that does not come with the package is run from its file."""
    from surefoot.studies.library import GROUPS, packaged

    name = study.name
    if name in GROUPS["all"]:
        ours = packaged(name)
        known = (ours.made_quick() if study.size == "quick" else ours).digest == study.digest
    else:
        known = False
    what = name if known else f"{name}.toml"
    return f"surefoot run {what}{' --quick' * (study.size == 'quick')} --trials {study.trials}"


def _files(told: Sequence[Told]) -> Html:
    parts = [
        f"<details>\n<summary>{said(each.study.name)}.toml</summary>\n"
        f"<pre><code>{said(as_toml(each.study))}</code></pre>\n</details>"
        for each in told
    ]
    one = len(told) == 1
    words = f"The {'study' if one else 'studies'} as data. Saved as a file, it can be run: surefoot run FILE.toml"
    heading = "The study's file" if one else "The studies' files"
    return Html(
        f'<section aria-labelledby="files">\n<h2 id="files">{said(heading)}</h2>\n<p>{said(words)}</p>\n'
        + "\n".join(parts)
        + "\n</section>"
    )


def as_toml(study: Study) -> str:
    """The study as its file would say it: `read_study` reads it back."""
    table = study.as_table()
    plain = {key: value for key, value in table.items() if key not in ("quick", "panels", "learners")}
    blocks = [_fields(plain)]
    if "quick" in table:
        blocks.append(f"[quick]\n{_fields(table['quick'])}")
    for kind in ("panels", "learners"):
        blocks += [f"[[{kind}]]\n{_fields(entry)}" for entry in table[kind]]
    return "\n\n".join(blocks) + "\n"


def _fields(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{key} = {_as_value(value)}" for key, value in table.items())


def _as_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_as_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_as_value(entry) for entry in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace(
            "\x7f", "\\u007f"
        )  # TOML's strings are JSON's, but for DEL
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def _footer() -> Html:
    return Html(
        "<footer><p>Made by surefoot from the results alone: the same results give the same page, to the byte. It "
        "loads nothing and runs no scripts.</p></footer>"
    )
