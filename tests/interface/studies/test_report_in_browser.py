"""The page in a real browser, offline: it loads nothing, says nothing in the console, and fits a
phone and a desk.
"""

import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from surefoot.studies.report.report import write_report
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import run_trial
from surefoot.studies.spec.study import parse_study

CHROMIUM = shutil.which("chromium")
PHONE, DESK = 390, 1280
# lines, areas and maps; the others are of the same, drawn by the same writer
DRAWN = ("return", "ribbon", "coverage")
LOOK = """() => {
    const shown = (element) => {
        const box = element.getBoundingClientRect();
        const visible = getComputedStyle(element).visibility === 'visible';
        return box.width > 0 && box.height > 0 && visible;
    };
    const all = (which) => [...document.querySelectorAll(which)].map(shown);
    const badges = [...document.querySelectorAll('.badge')].filter(shown);
    const uses = [...document.querySelectorAll('figure svg use')];
    return {
        width: document.documentElement.scrollWidth,
        badges: badges.map((badge) => badge.innerText),
        bottom: Math.max(0, ...badges.map((badge) => badge.getBoundingClientRect().bottom)),
        figures: all('figure svg'),
        ink: [...document.querySelectorAll('figure svg')]
            .map((svg) => svg.querySelectorAll('path, use').length),
        marks: uses.every((use) => document.getElementById(use.getAttribute('href').slice(1))),
        letters: uses.filter(shown).length,
        tables: all('table'),
        cut: [...document.querySelectorAll('.scroll:has(> table)')]
            .filter((box) => box.scrollWidth > box.clientWidth)
            .map((box) => box.getAttribute('aria-label')),
        hints: [...document.querySelectorAll('figure .scroll')].map((box) => [
            box.scrollWidth > box.clientWidth,
            getComputedStyle(box, '::before').content.includes('scroll it sideways')]),
        links: [...document.querySelectorAll('a')]
            .every((a) => document.querySelector(a.getAttribute('href'))),
    };
}"""


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (make browser)"
    )
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@contextmanager
def opened(browser, path, width=DESK, scheme="light"):
    """A page from a file, without a network; what it asks for beside itself, and what it says,
    are noted.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900}, offline=True, color_scheme=scheme
    )
    try:
        tab, noted = context.new_page(), []
        address = Path(path).as_uri()
        tab.on(
            "request",
            lambda request: (
                noted.append(f"request {request.url}") if request.url != address else None
            ),
        )
        tab.on("console", lambda message: noted.append(f"console {message.text}"))
        tab.on("pageerror", lambda error: noted.append(f"error {error}"))
        tab.goto(address, wait_until="load")
        tab.wait_for_timeout(100)
        yield tab, noted
    finally:
        context.close()


UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


def troubles(browser, path, width):
    """What is wrong with a page at this width, once all of it is unfolded."""
    with opened(browser, path, width) as (tab, noted):
        tab.evaluate(UNFOLD)
        seen = tab.evaluate(LOOK)
    wrong = list(noted)
    if seen["width"] > width:
        wrong.append(f"it is {seen['width']} px wide, and scrolls")
    for what in ("badges", "figures", "tables"):
        if not seen[what] or not all(seen[what]):
            wrong.append(f"{what} are not shown")
    if width >= DESK:
        wrong += [f"cut off: {table}" for table in seen["cut"]]
    wrong += [
        f"a figure is cut off: {cut}, but says so: {said}"
        for cut, said in seen["hints"]
        if cut is not said
    ]
    if not seen["marks"]:
        wrong.append("a mark or letter of a figure is not defined")
    if not seen["links"]:
        wrong.append("a link leads nowhere")
    return wrong


@pytest.fixture(scope="module")
def results():
    agents = [
        {"id": "stepmix", "agent": "stepmix", "bounds": "kl"},
        {
            "id": "bpi",
            "agent": "bpi-ucbvi",
            "bounds": "kl",
            "label": "BPI-UCBVI, a label that is long, as labels are",
        },
    ]
    table = {
        "name": "tiny",
        "title": "Two agents and a trap",
        "question": "Does the one with a floor keep it?",
        "trials": 2,
        "episodes": 1000,
        "replan": 0.05,
        "figures": list(DRAWN),
        "claims": ["promise"],
        "scenarios": [{"id": "trap", "title": "The trap", "world": {"name": "trap"}}],
        "agents": agents,
    }
    study = parse_study(table, "tiny")
    trials = {cell.id: tuple(run_trial(cell, i) for i in range(2)) for cell in study.cells}
    return Results(Path("nowhere"), study, {"surefoot": "0.0"}, trials)


@pytest.fixture(scope="module")
def report(results, tmp_path_factory):
    fewer = replace(results, study=replace(results.study, figures=("return",)))
    return write_report([results, fewer], tmp_path_factory.mktemp("report") / "report.html")


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_it_loads_nothing_and_all_of_it_is_seen(browser, report, width):
    assert troubles(browser, report, width) == []
    with opened(browser, report, width) as (tab, _):
        seen = tab.evaluate(LOOK)
    assert seen["badges"] == ["✓ CERTIFIED"]
    assert seen["bottom"] < 900  # on the first screen
    assert len(seen["figures"]) == len(DRAWN) + 1
    assert min(seen["ink"]) > 10
    assert seen["letters"] > 100
    assert len(seen["tables"]) >= 8


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_wide_tables_fit_a_desk_and_scroll_in_their_box_on_a_phone(
    browser, results, width, tmp_path
):
    """Numbers in hundreds of millions, long labels, agents that know V^b, and all that the paper
    leaves open.
    """
    large = {"violations": 12_345_678, "off_baseline": 345_678_901, "knows_baseline_value": True}
    trials = {
        cell: tuple(replace(one, regret=123_456_789.0 * (one.trial + 1), **large) for one in some)
        for cell, some in results.trials.items()
    }
    title = "The rivals, with large numbers and " * 3
    study = replace(results.study, name="rivals", title=title, figures=("return",))
    given = [replace(results, study=study, trials=trials), results]
    path = write_report(given, tmp_path / "wide.html")
    assert troubles(browser, path, width) == []
    with opened(browser, path, width) as (tab, _):
        tab.evaluate(UNFOLD)
        assert bool(tab.evaluate(LOOK)["cut"]) is (width == PHONE)


def test_what_is_folded_unfolds_by_the_keyboard_and_is_printed(browser, report):
    folded = "[...document.querySelectorAll('details > :not(summary)')]"
    visible = f"{folded}.map((one) => one.checkVisibility())"
    with opened(browser, report) as (tab, noted):
        assert not any(tab.evaluate(visible))
        tab.focus(".claims summary")
        tab.keyboard.press("Enter")  # without a script
        assert any(tab.evaluate(visible))
        tab.emulate_media(media="print")
        assert all(tab.evaluate(visible))  # also where it was never unfolded
    assert noted == []


GOOD = '<strong class="badge">✓</strong><table><tr><td>1</td></tr></table>'
GOOD += '<figure><svg width="9" height="9"></svg></figure>'
CONTROLS = {
    "request": '<img src="http://example.invalid/x.png" alt="">',
    "console": "<script>console.log('hello')</script>",
    "error": "<script>throw new Error('no')</script>",
    "scrolls": '<div style="width: 3000px">wide</div>',
    "badges are not shown": "<style>.badge { display: none }</style>",
    "figures are not shown": "<figure><svg width='0' height='0'></svg></figure>",
    "tables are not shown": "<style>table { display: none }</style>",
    "letter of a figure is "
    "not": '<figure><svg width="9" height="9"><use href="#nobody"/></svg></figure>',
    "cut off: wide": '<div class="scroll" aria-label="wide" style="width: 50px; overflow: '
    'auto"><table><tr><td>' + "x" * 99 + "</td></tr></table></div>",
    "a figure is cut "
    "off": '<figure><div class="scroll" style="width: 50px; overflow: auto"><svg width="99"/>'
    "</div></figure>",
    "a link leads nowhere": '<a href="#nobody">there</a>',
}


def written(path, body):
    page = (
        "<!DOCTYPE html><html lang='en'><head><meta "
        "charset='utf-8'><title>x</title></head><body>{}</body></html>"
    )
    path.write_text(page.format(body), encoding="utf-8")
    return path


def test_control_of_what_the_checks_let_pass(browser, tmp_path):
    assert troubles(browser, written(tmp_path / "good.html", GOOD), DESK) == []


@pytest.mark.parametrize("trouble", CONTROLS)
def test_control_of_what_the_checks_find(browser, tmp_path, trouble):
    found = troubles(browser, written(tmp_path / "bad.html", GOOD + CONTROLS[trouble]), DESK)
    assert any(trouble in words for words in found)
