"""One page of HTML that says what studies found: no scripts, nothing loaded, the same bytes for the same results."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from surefoot.base.files import write_whole
from surefoot.errors import InvalidSetting
from surefoot.studies.analysis.claims import judge
from surefoot.studies.analysis.summary import summary
from surefoot.studies.analysis.verdict import overall_verdict
from surefoot.studies.report.appendix import files, premises, provenance
from surefoot.studies.report.html import STYLE, Html, inside, link, said, scrolling
from surefoot.studies.report.phrases import setting_in_words
from surefoot.studies.report.sections import claims_section, glances, header
from surefoot.studies.report.study_view import StudyView
from surefoot.studies.report.svg import compact, save_svg, with_shared_letters
from surefoot.studies.report.tables import comparisons, learners_table, places_table, results_table
from surefoot.studies.run.store import Results

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


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
    told = [StudyView(f"study-{i}", one, judge(one), summary(one)) for i, one in enumerate(results, 1)]
    verdict = overall_verdict(results)
    title = results[0].study.title if len(results) == 1 else f"{len(results)} studies of learning above a floor"
    body = [
        header(title, verdict, told),
        Html("<main>"),
        _contents(told) if len(told) > 1 else Html(""),
        claims_section(told),
        *(_study(one, len(told) == 1) for one in told),
        premises(told),
        provenance(told),
        files(told),
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


def _contents(told: Sequence[StudyView]) -> Html:
    places = [("claims", "What was claimed")] * any(each.verdicts for each in told)
    places += [(each.anchor, each.study.title) for each in told]
    places += [("premises", "What the promise presumes"), ("again", "To run it again"), ("files", "The studies' files")]
    entries = "".join(inside("li", link(anchor, text)) for anchor, text in places)
    return Html(f'<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n<ol>{entries}</ol>\n</nav>')


def _study(told: StudyView, alone: bool) -> Html:
    study = told.study
    heading = "What was done" if alone else study.title  # alone, title and question are on top already
    parts = [
        Html(f'<section aria-labelledby="{told.anchor}">\n<h2 id="{told.anchor}">{said(heading)}</h2>'),
        *([] if alone else [inside("p", said(study.question), "question"), glances(told).html()]),
        inside("h3", said("Setting")),
        inside("p", said(setting_in_words(study))),
        places_table(told).html(),
        learners_table(told).html(),
        inside("h3", said("Results")),
        results_table(told).html(),
        *_figures(told),
        *comparisons(told),
        Html("</section>"),
    ]
    return Html("\n".join(parts))


def _figures(told: StudyView) -> list[Html]:
    if not any(row["trials"] for row in told.rows) or not told.study.figures:
        return []
    from surefoot.studies.report.plots import CAPTIONS, FIGURES

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


def _footer() -> Html:
    return Html(
        "<footer><p>Made by surefoot from the results alone: the same results give the same page, to the byte. It "
        "loads nothing and runs no scripts.</p></footer>"
    )
