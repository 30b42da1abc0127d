"""One page of HTML with the results of studies: no scripts, nothing loaded, the same bytes for the
same results.

Pictures come first: the verdict, then of each study its first figure, its claims (a line each, the
numbers folded), its other figures and its tables; then what the promise presumes, how to run the
studies again, and their files. Here is what is known; page.html.jinja writes it down, and style.css
says how it looks.
"""

import re
from collections.abc import Sequence
from importlib.resources import files
from operator import methodcaller
from pathlib import Path
from typing import NamedTuple

from surefoot.base.files import write_whole
from surefoot.base.text import how_many
from surefoot.errors import InvalidSetting
from surefoot.logs.methods import METHODS
from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.claims import VERDICTS, Analysis, analyse, tallies
from surefoot.studies.analysis.summary import promised_runs
from surefoot.studies.analysis.trials import (
    is_uncertified,
    premise_is_false,
    promise_beside_truth,
    promises_of,
)
from surefoot.studies.analysis.verdict import OverallVerdict, overall_verdict
from surefoot.studies.report.tables import Tag, columns, comparisons, result, sizes_of, tags
from surefoot.studies.run.store import Results
from surefoot.studies.spec.claims import DRAFT, OURS, PAPER
from surefoot.studies.spec.library import GROUPS, packaged
from surefoot.studies.spec.study import AgentSpec, Study
from surefoot.worlds.registry import family

CLAIMED_BY = {  # the headings of claims, by their source
    PAPER: "What must come out if the paper is right",
    DRAFT: "What must come out if drafts of the paper are right, which it leaves out",
    OURS: "What we claim, and the paper does not",
}


class Figure(NamedTuple):
    """A picture on the page."""

    number: str
    svg: str
    caption: str


class Part(NamedTuple):
    """What the page shows of one study."""

    anchor: str  # of its section
    study: Study
    known: Analysis
    verdict: OverallVerdict
    tallies: list[str]  # of its claims
    figures: list[Figure]
    toml: str


def write_report(studies: Sequence[Results | Analysis], path: str | Path) -> Path:
    """Write the page to a file, whole or not at all. Results that are not analysed yet are
    analysed here.
    """
    write_whole(path, methodcaller("write", page(studies).encode()))
    return Path(path)


def page(studies: Sequence[Results | Analysis]) -> str:
    """Return everything on one page, as HTML."""
    import jinja2

    if not studies:
        raise InvalidSetting(
            "There are no results to report. Give at least one folder that `run` wrote."
        )
    analysed = [one if isinstance(one, Analysis) else analyse(one) for one in studies]
    parts = [_part(f"study-{i}", one) for i, one in enumerate(analysed, 1)]
    here = files("surefoot.studies.report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    helpers = (
        columns,
        command,
        comparisons,
        family,
        how_many,
        promises,
        result,
        sizes_of,
        tags,
        tallies,
    )
    environment.globals |= {helper.__name__: helper for helper in helpers}
    environment.filters["promised_runs"] = promised_runs
    template = environment.from_string(here.joinpath("page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        style=here.joinpath("style.css").read_text(encoding="utf-8"),
        parts=parts,
        verdict=overall_verdict([one.results for one in analysed], [one.rows for one in analysed]),
        verdicts=[verdict for one in analysed for verdict in one.verdicts],
        agents=[(AGENTS[spec.agent], spec) for part in parts for spec in part.study.agents],
        scenarios=[scenario for part in parts for scenario in part.study.scenarios],
        rows=[row for one in analysed for row in one.rows],
        algorithms=AGENTS,
        methods=METHODS,
        claimed_by=CLAIMED_BY,
        in_words=VERDICTS,
    )


def _part(anchor: str, known: Analysis) -> Part:
    """Return what the page shows of one study."""
    verdict = overall_verdict([known.results], [known.rows])
    study = known.results.study
    return Part(
        anchor,
        study,
        known,
        verdict,
        tallies(known.verdicts),
        _figures(anchor, known),
        as_toml(study),
    )


def promises(results: Results, agent: AgentSpec) -> list[Tag]:
    """Return each promise of an agent once, with the number of its runs where there are several.

    It is bad where nothing is promised although it should be.
    """
    trials = [trial for trial in results.every if trial.agent == agent.id]
    said = promises_of(trials, promise_beside_truth)
    withdrawn = {
        promise_beside_truth(trial)
        for trial in trials
        if is_uncertified(trial) or premise_is_false(trial)
    }
    counts = {
        words: f" ({how_many(times, 'run')})" if len(said) > 1 else ""
        for words, times in said.items()
    }
    return [(f"{words}{times}", words in withdrawn) for words, times in counts.items()]


def _figures(anchor: str, known: Analysis) -> list[Figure]:
    """Draw the figures. A screen reader reads the beginning of each caption."""
    names = known.results.study.figures
    if not any(row["trials"] for row in known.rows) or not names:
        return []
    from surefoot.studies.report.plots import FIGURES, save_svg  # matplotlib is slow to import

    drawn = []
    for i, name in enumerate(names, 1):
        salt = f"{anchor.replace('study-', 's')}f{i}"  # ids begin with it, and are many: short
        draw, caption = FIGURES[name]
        short = re.split(r"[.:;] ", caption, maxsplit=1)[0].rstrip(".")
        drawn.append(Figure(f"Figure {i}.", save_svg(draw(known.results), salt, short), caption))
    return drawn


def command(study: Study) -> str:
    """Return what makes these results again. A study that does not come with the package is run
    from its file.
    """
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
