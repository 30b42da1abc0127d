"""The summary and the page: what is said of results, word by word, in every case that matters."""

import json
import math
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as oracle

from surefoot.agents.promise import Promise
from surefoot.errors import InvalidFile, InvalidSetting
from surefoot.show.figures import COLOURS, LINES, MARKERS
from surefoot.studies.analysis.claims import Verdict, analyse
from surefoot.studies.analysis.stats import amount
from surefoot.studies.analysis.summary import summary
from surefoot.studies.analysis.verdict import overall_verdict
from surefoot.studies.report.plots import FIGURES
from surefoot.studies.report.report import as_toml, command, page, write_report
from surefoot.studies.report.tables import columns, comparisons, result
from surefoot.studies.report.terminal import print_summary
from surefoot.studies.run.store import Results, begin, read_results
from surefoot.studies.run.trial import run_trial
from surefoot.studies.spec.claims import DRAFT, OURS, PAPER
from surefoot.studies.spec.library import GROUPS, find_studies
from surefoot.studies.spec.study import parse_study

TINY = {
    "name": "tiny",
    "title": "Two scenarios",
    "question": "Do they keep the floor?",
    "trials": 3,
    "episodes": 2000,
    "replan": 0.05,
    "figures": [],
    "scenarios": [
        {"id": "trap", "title": "The trap", "world": {"name": "trap"}},
        {
            "id": "random",
            "world": {"name": "random", "S": 3, "A": 2, "H": 2},
            "baseline": {"eta": 5.0},
            "floor": 0.9,
        },
    ],
    "agents": [
        {"id": "stepmix", "agent": "stepmix", "bounds": "kl"},
        {"id": "budget", "agent": "budget-exploration", "bounds": "kl"},
        {"id": "bpi", "agent": "bpi-ucbvi", "bounds": "kl"},
    ],
}
FALSE_PREMISE = Promise("false premise", details="the baseline is worth 0.5")
ALL = (0, 1, 2)
WITH_FLOOR = ("trap/stepmix", "trap/budget", "random/stepmix", "random/budget")
VERSIONS = {"surefoot": "0.0", "python": "3.99"}


def run_all(table):
    study = parse_study(table, "tiny")
    trials = {
        cell.id: tuple(run_trial(cell, i) for i in range(study.trials)) for cell in study.cells
    }
    return Results(Path("nowhere"), study, VERSIONS, trials)


@pytest.fixture(scope="module")
def results():
    return run_all(TINY)


@pytest.fixture(scope="module")
def scaled():
    agents = [{"id": "stepmix", "agent": "stepmix", "bounds": "kl", "scale": 0.5}]
    return run_all(
        {**TINY, "scenarios": TINY["scenarios"][:1], "agents": [*agents, *TINY["agents"][2:]]}
    )


def changed(results, cell, numbers, **fields):
    """The same results, but for some trials of a cell."""
    trials = [
        replace(one, **fields) if one.trial in numbers else one for one in results.trials[cell]
    ]
    return replace(results, trials={**results.trials, cell: tuple(trials)})


def given_value(results, *cells):
    """The same results, but that all runs of some cells rest on a given value of the baseline."""
    for cell in cells:
        promise = replace(results.trials[cell][0].promise, knows_baseline_value=True)
        results = changed(results, cell, ALL, promise=promise)
    return results


def one_scenario(results):
    study = replace(results.study, scenarios=results.study.scenarios[:1])
    return replace(
        results, study=study, trials={cell.id: results.trials[cell.id] for cell in study.cells}
    )


class Reader(HTMLParser):
    """What a browser would make of the page: elements, their text by class, and what is not
    closed.
    """

    VOID = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.unclosed, self.elements, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        self.unclosed += [tag for tag, _, _ in self.open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append((tag, dict(attrs), []))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.unclosed.append(tag)
            return
        name, attrs, parts = self.open.pop()
        self.texts.append((name, attrs, "".join(parts)))

    def handle_data(self, data):
        for _, _, parts in self.open:
            parts.append(data)

    def of_class(self, name):
        return [
            text.strip()
            for _, attrs, text in self.texts
            if name in (attrs.get("class") or "").split()
        ]

    def of_tag(self, tag):
        return [text for name, _, text in self.texts if name == tag]


def badges(text):
    return [re.sub(r"^\W+", "", badge) for badge in Reader(text).of_class("badge")]


def test_unscaled_agents_that_keep_the_floor_are_certified(results):
    verdict = overall_verdict([results])
    assert verdict.word == "CERTIFIED"
    assert "delta = 0.1" in verdict.meaning
    assert verdict.alarms == ()
    certified, free = verdict.found
    assert certified == "None of the 12 certified runs broke its promise."
    assert free.startswith("BPI-UCBVI (EpsMix form), promising no floor, went below the floor in")
    assert all(trial.violations > 0 for trial in results.trials["trap/bpi"])
    (blocks,) = verdict.caveats
    assert "plans in blocks of 5 %" in blocks


def test_one_bonus_scaled_by_hand_makes_it_not_certified(results, scaled):
    verdict = overall_verdict([scaled])
    assert verdict.word == "NOT CERTIFIED"
    assert "StepMix (bonus times 0.5)" in verdict.meaning
    assert overall_verdict([results, scaled]).word == "NOT CERTIFIED"
    # Not one of its trials is there yet: the study says so all the same.
    early = replace(scaled, trials={"trap/bpi": scaled.trials["trap/bpi"]})
    assert overall_verdict([early]).word == "NOT CERTIFIED"
    agents = tuple(replace(one, scale=1.0) for one in scaled.study.agents)
    unscaled = replace(early, study=replace(scaled.study, agents=agents))
    assert overall_verdict([unscaled]).word == "NO PROMISE"


def test_a_broken_promise_is_said_with_numbers(results):
    verdict = overall_verdict([changed(results, "trap/stepmix", [1], violations=7)])
    assert verdict.word == "CERTIFIED"
    count, where = verdict.alarms
    assert count == "PROMISE BROKEN in 1 of 12 runs that came with one."
    assert "StepMix in The trap: 1 of 3 runs, below the floor in 2.333 episodes per run" in where
    assert "10 % of runs" in where
    assert verdict.found[0] == "1 of the 12 certified runs broke its promise."


def test_an_agent_that_keeps_the_sum_is_judged_by_the_sum(results):
    below = changed(results, "trap/budget", [0], violations=40, min_cumulative=0.25)
    for least, broken in ((0.25, False), (-3.0, True), (-1e-12, False)):
        given = changed(below, "trap/budget", [0], min_cumulative=least)
        alarms = " ".join(overall_verdict([given]).alarms)
        assert ("the sum of the episodes fell below the floor" in alarms) is broken
        assert bool(alarms) is broken


def test_an_agent_without_a_floor_changes_nothing(results):
    worse = changed(results, "trap/bpi", [0], violations=2000)
    assert overall_verdict([worse]).alarms == ()
    study = replace(results.study, agents=results.study.agents[2:])
    alone = {cell: results.trials[cell] for cell in ("trap/bpi", "random/bpi")}
    assert overall_verdict([replace(results, study=study, trials=alone)]).word == "NO PROMISE"


def test_false_premises_are_counted(results):
    false = {"promise": FALSE_PREMISE, "baseline": 0.5, "violations": 9}
    some = changed(results, "trap/stepmix", [0, 2], **false)
    verdict = overall_verdict([some])
    assert verdict.word == "CERTIFIED"
    assert verdict.alarms == ()
    assert "no promise in 2 of 12 trials" in verdict.caveats[-1]
    row = summary(some)[0]
    assert (row["premise_false"], row["certified"], row["baseline_below"]) == (2, 1, 2)
    assert row["baseline_violations"] == 2 * 2000 / 3


def test_what_is_promised_is_red_where_nothing_is(results, scaled):
    """Red is for what promises nothing although it should, and for a broken promise; an agent
    that never promised a floor is none of that.
    """

    def red(given):
        return " ".join(Reader(page([given])).of_class("bad"))

    assert red(results) == ""
    false = changed(results, "trap/stepmix", [1], promise=FALSE_PREMISE, baseline=0.5)
    assert red(false).count("no promise") == 2
    assert "bonus times 0.5: NOT CERTIFIED" in red(scaled)
    broken = changed(results, "trap/stepmix", [1], violations=7)
    assert "PROMISE BROKEN in 1 of 3 runs" in red(broken)
    text = page([broken])
    assert badges(text) == ["CERTIFIED", "PROMISE BROKEN"]
    alarms = " ".join(Reader(text).of_class("alarm"))
    assert all(alarm in alarms for alarm in overall_verdict([broken]).alarms)
    assert re.search(r"^\s*\.alarm \{ color: var\(--bad\)", text, re.MULTILINE)


def test_what_never_left_the_baseline_is_trusted_and_not_certified(results):
    """No violation of a run that only ever played a trusted baseline is no proof of anything."""
    stayed = {"off_baseline": None, "first_mixture": None, "first_optimistic": None}
    some = changed(results, "trap/stepmix", [0], **stayed)
    certified, trusted, _ = overall_verdict([some]).found
    assert certified.startswith("None of the 11 certified runs")
    assert trusted == "1 run never left the baseline: trusted throughout, not certified."
    # A log that certifies the baseline above the floor is proof enough.
    proved = changed(some, "trap/stepmix", [0], log_lower=some.of("trap", "stepmix")[0].floor)
    assert overall_verdict([proved]).found[0].startswith("None of the 12 certified runs")
    for cell in WITH_FLOOR:
        some = changed(some, cell, ALL, **stayed)
    verdict = overall_verdict([some])
    assert verdict.word == "ON TRUST"
    assert "is taken on trust" in verdict.meaning
    assert " certified runs" not in " ".join(verdict.found)


def test_what_rests_on_a_given_value_is_trusted_and_not_certified(results):
    """Though it left the baseline. Control: the same runs without it are certified."""
    words = "trusted, given the baseline's value"
    assert words not in page([results])
    some = given_value(results, "trap/stepmix")
    row = summary(some)[0]
    assert (row["certified"], row["on_trust"], row["off_baseline_never"]) == (0, 3, 0)
    verdict = overall_verdict([some])
    assert verdict.word == "CERTIFIED"
    assert verdict.meaning.startswith(f"StepMix: {words}, not certified. Every other agent with a")
    certified, trusted, _ = verdict.found
    assert certified.startswith("None of the 9 certified runs")
    assert trusted.startswith(f"None of the 3 runs that are {words},")
    assert f"StepMix{words}" in "".join(Reader(page([some])).of_tag("tr"))
    broken = overall_verdict([changed(some, "trap/stepmix", [0], violations=5)])
    assert broken.alarms[0].startswith("PROMISE BROKEN in 1 of 12 runs")
    verdict = overall_verdict([given_value(results, *WITH_FLOOR)])
    assert verdict.word == "ON TRUST"
    assert verdict.meaning.endswith("Nothing was certified.")
    assert " certified runs" not in " ".join(verdict.found)


def test_a_false_certificate_of_a_log_is_an_alarm_of_its_own(results):
    """It is the log's, not an agent's: said once, and of no run that it was below the floor."""
    worth = results.of("trap", "stepmix")[1].baseline
    bad = results
    for agent in ("stepmix", "budget", "bpi"):
        bad = changed(bad, f"trap/{agent}", [1], log_lower=worth + 0.01)
    verdict = overall_verdict([bad])
    (line,) = verdict.alarms
    assert "certified of the baseline is more than it is worth, in 1 of 3 trials" in line
    assert verdict.found[0].startswith("None of the 12 certified runs")
    true = changed(results, "trap/stepmix", [1], log_lower=worth - 0.01)
    assert overall_verdict([true]).alarms == ()


def test_a_dollar_is_a_dollar(results):
    """Matplotlib would read what is between two of them as a formula, and fail where it is none."""
    title = r"costs $\frac{ and $5"
    scenarios = tuple(replace(scenario, title=title) for scenario in results.study.scenarios)
    agents = tuple(replace(one, label=r"$\bad{") for one in results.study.agents)
    text = page(
        [
            replace(
                results,
                study=replace(results.study, title=title, scenarios=scenarios, agents=agents),
            )
        ]
    )
    assert text.count("<svg") == len(results.study.figures)


def test_missing_trials_and_quick_sizes_are_said(results):
    def caveats(*given):
        return " ".join(overall_verdict(given).caveats)

    fewer = replace(results, trials={**results.trials, "trap/bpi": results.trials["trap/bpi"][:1]})
    assert "incomplete: 16 of 18 trials" in caveats(fewer)
    whole = replace(results, study=replace(results.study, name="whole"))
    assert "tiny: incomplete: 16 of 18 trials" in caveats(fewer, whole)
    quick = replace(results, study=results.study.made_quick())
    assert "quick: 3 trials." in caveats(quick)
    assert "plans in blocks of 1 % of the episodes so far" in caveats(quick)
    agents = tuple(replace(one, replan=None) for one in quick.study.agents)
    every = replace(quick, study=replace(quick.study, replan=0.0, agents=agents))
    assert "plans in blocks" not in caveats(every)


def test_a_page_can_be_made_before_there_is_a_trial(results):
    study = replace(results.study, figures=("return",))
    text = page([replace(results, study=study, trials={})])
    assert badges(text) == ["NO PROMISE"]
    assert "There are no trials yet" in text
    assert "incomplete: 0 of 18 trials" in text
    assert Reader(text).unclosed == []


def test_claims_have_words_and_symbols(results):
    verdicts = [
        Verdict("It is so", PAPER, True, (2000,), "3 of 3"),
        Verdict("It is not", PAPER, False, (100, 2000, 5_000_000), "0 of 3; or 1 of 3"),
        Verdict("Who knows", PAPER, None, (), "nothing <here>"),
    ]
    text = page([analyse(results)._replace(verdicts=verdicts)])
    assert lines_of_claims(text) == [
        ("✓ holds It is so at K = 2,000", ["3 of 3"]),
        ("✗ does not hold It is not at K = 100 to 5 million", ["0 of 3", "or 1 of 3"]),
        ("? cannot be judged Who knows", ["nothing <here>"]),
    ]
    # Certified agents beside a claim that does not hold: the badge does not speak of the paper.
    assert Reader(text).of_class("badges")[0].startswith("The agents:")
    assert badges(text) == ["CERTIFIED"]
    tally = "Claims of the paper: 1 of 3 hold, 1 does not, 1 cannot be judged."
    assert tally in Reader(text).of_class("tallies")[-1]
    assert 'id="study-1-claims"' not in page([analyse(results)._replace(verdicts=[])])


def test_claims_of_ours_are_not_the_papers(results):
    """Each below a heading that says whose it is; what is ours must not come out if the paper is
    right.
    """
    sources = (OURS, PAPER, DRAFT, OURS, PAPER)
    verdicts = [Verdict(f"claim {i}", source, True, (), "so") for i, source in enumerate(sources)]
    text = page([analyse(results)._replace(verdicts=verdicts)])
    below = [re.findall(r"claim \d", part) for part in text.split("<h4>")[1:]]
    assert below == [["claim 1", "claim 4"], ["claim 2"], ["claim 0", "claim 3"]]


def lines_of_claims(text):
    """Each claim's line, and the numbers that are folded below it: closed, and without a script."""
    found = "".join(re.findall(r'<ul class="claims">(.*?)\n</ul>\n', text, re.DOTALL))
    claims = []
    for folded in re.findall(r"<details>(.*?)</details>", found, re.DOTALL):
        read = Reader(folded)
        claims.append((read.of_tag("summary")[0].strip(), read.of_tag("li")))
    return claims


def test_the_page_shows_before_it_tells(results):
    """The verdict, the first figure, the claims, the other figures, tables, premises, versions."""
    study = replace(results.study, figures=("ribbon", "coverage"), name="online")
    text = page([replace(results, study=study)])
    parts = (
        'aria-label="Verdict"',
        "Figure 1.</strong>",
        'id="study-1-claims"',
        "Figure 2.</strong>",
        "<table",
        'id="premises"',
        'id="words"',
        'id="again"',
        'id="files"',
    )
    found = [text.index(part) for part in parts]
    assert found == sorted(found)


LOADING = ("src", "href", "xlink:href", "srcset", "data", "action", "poster", "background")
NASTY = "<script>alert(\"1\")</script> & 'so' <b onload=x>"


def test_what_users_write_is_shown_and_never_run(results):
    agents = tuple(replace(one, label=f"{NASTY} {one.id}") for one in results.study.agents)
    scenarios = tuple(replace(one, title=NASTY) for one in results.study.scenarios)
    study = replace(results.study, title=NASTY, question=NASTY, scenarios=scenarios, agents=agents)
    shown = analyse(replace(results, study=study, versions={NASTY: NASTY}))
    given = shown._replace(verdicts=[Verdict(NASTY, PAPER, None, (), NASTY)])
    for text in (page([given, given]), page([given])):
        read = Reader(text)
        assert read.unclosed == []
        assert not {"script", "b"} & {tag for tag, _ in read.elements}
        assert not any("onload" in attrs for _, attrs in read.elements)
        assert text.count("&lt;script&gt;") > 10
    assert read.of_tag("h1") == [NASTY]
    written = parse_study(tomllib.loads(read.of_tag("pre")[0]), "page")
    assert replace(written, size=study.size) == study


def test_the_same_results_give_the_same_bytes(results, tmp_path):
    """In a process of its own, from the folder that holds them."""
    study = replace(one_scenario(results).study, figures=("ribbon",))
    folder = begin(tmp_path / "tiny", study, resume=False)
    for cell in study.cells:
        for trial in results.trials[cell.id]:
            folder.write(trial)
    there, target = read_results(tmp_path / "tiny"), tmp_path / "page.html"
    text = page([there])
    assert page([replace(there, path=Path("elsewhere"))]) == text
    command = [sys.executable, "-m", "surefoot", "report", str(there.path), "--out", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    assert target.read_bytes() == text.encode()
    assert str(tmp_path) not in text


@pytest.fixture(scope="module")
def illustrated(results):
    """With every figure there is, and two studies on a page."""
    one = one_scenario(results)
    drawn = replace(one, study=replace(one.study, figures=tuple(FIGURES)))
    other = replace(one, study=replace(one.study, figures=("regret",), name="other", axis="log"))
    return drawn, page([drawn, other])


# Machado, Oliveira and Fernandes 2009, severity 1: what the three kinds of colour blindness make of
# linear RGB.
EYES = (
    np.eye(3),
    np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
)
# white is (1, 1, 1)
TO_XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2127, 0.7152, 0.0722], [0.0178, 0.1095, 0.8728]])


def seen_by(eye, colour):
    """A colour in CIELAB."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in TO_XYZ @ np.clip(eye @ linear, 0, 1)
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def least_difference(colours):
    """Of neighbours, for the eye that can tell them apart least."""
    return min(
        np.linalg.norm(seen_by(eye, one) - seen_by(eye, other))
        for eye in EYES
        for one, other in pairwise(colours)
    )


def test_neighbouring_agents_can_be_told_apart():
    """By colour for every eye (2.3 is just noticeable), without colour by line and marker. Control:
    the same colours in the order of before, in which pink stood beside orange and green.
    """
    before = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
    assert set(before) == set(COLOURS)
    assert least_difference(before) < 18
    assert least_difference(COLOURS) > 20
    looks = [
        (COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]) for i in range(len(COLOURS) * len(LINES))
    ]
    assert len(set(looks)) == len(looks)  # of as many agents no two look the same
    assert len(set(LINES)) == len(LINES)
    assert not {"--", "-.", ":"} & set(LINES)  # floor, baseline and optimum
    assert len(set(MARKERS)) == len(COLOURS)


def test_every_figure_of_a_study_is_there_with_its_caption(illustrated):
    drawn, text = illustrated
    wanted = [FIGURES[name].caption for name in (*drawn.study.figures, "regret")]
    read = Reader(text)
    pictures = [attrs for tag, attrs in read.elements if tag == "svg"]
    for caption, shown, attrs in zip(wanted, read.of_tag("figcaption"), pictures, strict=True):
        assert caption in shown
        assert attrs["role"] == "img"
        assert len(attrs["aria-label"]) > 10
        assert caption.startswith(attrs["aria-label"])


def test_the_page_is_well_formed_and_loads_nothing(illustrated):
    _, text = illustrated
    read = Reader(text)
    assert read.unclosed == []
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    attributes = [attrs for _, attrs in read.elements]
    ids = [attrs["id"] for attrs in attributes if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {value for attrs in attributes for key, value in attrs.items() if key in LOADING}
    assert {f"#{one}" for one in ("study-1", "study-2", "study-2-claims", "files")} <= links
    assert all(link.startswith("data:") or link in {f"#{one}" for one in ids} for link in links)
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert "@import" not in text
    tags = [tag for tag, _ in read.elements]
    assert not {"script", "iframe", "object", "embed", "link", "base", "form"} & set(tags)
    assert not [key for attrs in attributes for key in attrs if key.startswith("on")]
    (policy,) = (attrs for attrs in attributes if "http-equiv" in attrs)
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    tables = [tag for tag in tags if tag in ("table", "caption")]
    assert tables == ["table", "caption"] * (len(tables) // 2)
    assert all(attrs.get("scope") for tag, attrs in read.elements if tag == "th")
    assert tags.count("h1") == 1


def test_controls_of_the_reader_of_pages():
    assert Reader("<p><b>x</p>").unclosed
    assert Reader("<div><p>x</p>").unclosed == ["div"]
    assert Reader("<p class='a alarm'>x</p>").of_class("alarm") == ["x"]


def test_one_study_has_no_index(results, illustrated):
    assert "<nav" in illustrated[1]
    assert "<nav" not in page([results])
    with pytest.raises(InvalidSetting, match="no results"):
        page([])


def interval(values):
    """The 95 % t interval of a mean."""
    if len(set(values)) == 1:
        return values[0], values[0]
    return oracle.t.interval(0.95, len(values) - 1, np.mean(values), oracle.sem(values))


def test_every_number_of_the_summary_by_hand(results):
    never = changed(results, "trap/stepmix", [2], off_baseline=None, first_optimistic=None)
    given = changed(never, "random/bpi", [1], violations=0, regret=123.5)
    for row, cell in zip(summary(given), given.study.cells, strict=True):
        trials = given.of(cell.scenario.id, cell.agent.id)
        assert (row["scenario"], row["agent"]) == (cell.scenario.id, cell.agent.id)
        free = cell.agent.id == "bpi"
        baseline = trials[0].baseline
        below = sum(trial.violations > 0 for trial in trials)
        left = sum(trial.off_baseline is not None for trial in trials)
        expected = {
            "episodes": 2000,
            "trials": 3,
            "trials_wanted": 3,
            "delta": 0.1,
            "knows_baseline_value": False,
            "in_sum": cell.agent.id == "budget",
            "floor": {"trap": trials[0].floor, "random": 0.9}[cell.scenario.id],
            "optimum": trials[0].optimum,
            "baseline": baseline,
            "baseline_return": baseline,
            "baseline_low": baseline,
            "baseline_high": baseline,
            "baseline_below": 0,
            "baseline_violations": 0,
            "baseline_regret": 2000 * (trials[0].optimum - baseline),
            "violations": np.mean([trial.violations for trial in trials]),
            "runs_below": below,
            "runs_below_at_most": (
                1.0 if below == 3 else oracle.beta.ppf(0.95, below + 1, 3 - below)
            ),
            "certified": 0 if free else left,
            "on_trust": 0 if free else 3 - left,
            "no_floor": 3 if free else 0,
            "broken": 0,
            "premise_false": 0,
            "not_certified": 0,
        }
        for key, field in (("regret", "regret"), ("mean_return", "mean_value")):
            values = [getattr(trial, field) for trial in trials]
            expected[key] = np.mean(values)
            expected[f"{key}_low"], expected[f"{key}_high"] = interval(values)
        for key in ("off_baseline", "first_optimistic"):
            when = [getattr(trial, key) for trial in trials]
            there = sorted(k for k in when if k is not None)
            late = sorted(math.inf if k is None else k for k in when)[1]
            expected[key] = None if late == math.inf else late
            expected[f"{key}_never"] = 3 - len(there)
            expected[f"{key}_earliest"] = there[0] if there else None
            expected[f"{key}_latest"] = there[-1] if there else None
        assert {key: row[key] for key in expected} == pytest.approx(expected, rel=1e-9)
        assert sum(row["promises"].values()) == 3
    json.dumps(summary(given))


def test_rows_have_the_same_columns_with_and_without_trials(results):
    fewer = replace(results, trials={"trap/stepmix": results.trials["trap/stepmix"][:1]})
    rows = summary(fewer)
    assert len({tuple(row) for row in rows}) == 1
    assert rows[0]["regret_low"] is None  # one trial has no interval
    assert rows[0]["regret"] == results.trials["trap/stepmix"][0].regret
    assert rows[1]["trials"] == 0
    assert rows[1]["regret"] is None
    assert "one trial: no interval" in page([fewer])


def test_the_page_shows_the_numbers_of_the_summary(results):
    given = changed(results, "trap/stepmix", [2], off_baseline=None)
    text = "".join(Reader(page([given])).of_tag("table"))
    row = summary(given)[0]
    for number in (amount(row["regret"]), f"{row['mean_return']:.4f}", "never in 1 of 3"):
        assert number in text


def compared(given, scenario="trap"):
    """The rows of the table that puts the agents of a scenario side by side."""
    heading = next(one.heading for one in given.study.scenarios if one.id == scenario)
    return {row[0][0]: row[1:] for row in dict(comparisons(analyse(given)))[heading]}


def test_agents_are_compared_trial_by_trial(results):
    regret, ahead, *_ = compared(results)["StepMix against BPI-UCBVI (EpsMix form)"]
    first, second = (
        [trial.regret for trial in results.of("trap", agent)] for agent in ("stepmix", "bpi")
    )
    differences = np.subtract(first, second)
    assert amount(abs(differences.mean())) in regret[0]
    assert ahead[0].startswith(f"{(differences < 0).sum()} of 3")
    # Nothing is said of runs of different lengths.
    longer = tuple(
        replace(one, episodes=4000) if one.id == "bpi" else one for one in results.study.agents
    )
    uneven = compared(replace(results, study=replace(results.study, agents=longer)))
    assert list(uneven) == ["StepMix against Budget-Exploration"]


def test_an_interval_of_no_width_is_said_to_be_none(results):
    """Control: an interval that has a width, and one that has none in the digits that are shown."""
    cell = "trap/stepmix"
    same = changed(results, cell, ALL, regret=50.0, off_baseline=400, first_optimistic=15)
    same = changed(same, "trap/budget", ALL, regret=40.0, off_baseline=100)

    def shown(given):
        rows = summary(given)
        cells = result(rows[0], columns(rows))
        return " | ".join(" ".join(lines) for lines in cells)

    equal = "the same in all 3 trials"
    assert equal in shown(same)
    differences = compared(same)["StepMix against Budget-Exploration"]
    assert differences[0][1] == differences[2][1] == equal
    apart = changed(same, cell, [0], regret=51.0, off_baseline=420)
    assert "48.9 to 51.77" in shown(apart)  # 50 1/3 +- 4.303 / 3
    assert "400 to 420" in shown(apart)
    assert "the same to these digits" not in shown(apart)
    for i in ALL:
        apart = changed(apart, cell, [i], mean_value=0.6 + 1e-9 * i)
    assert "the same to these digits" in shown(apart)


def test_the_study_can_be_read_back_from_the_page():
    for study in find_studies("all"):
        for one in (study, study.made_quick()):
            assert replace(parse_study(tomllib.loads(as_toml(one)), "page"), size=one.size) == one


def test_the_command_names_what_the_package_has_and_files_otherwise(results):
    name = GROUPS["all"][0]
    (study,) = find_studies(name)
    assert command(study) == f"surefoot run {name} --trials {study.trials}"
    quick = study.made_quick()
    assert command(quick) == f"surefoot run {name} --quick --trials {quick.trials}"
    assert command(replace(study, seed=99)) == f"surefoot run {name}.toml --trials {study.trials}"
    assert command(results.study) == "surefoot run tiny.toml --trials 3"


def test_a_page_is_written_whole_or_not_at_all(results, tmp_path):
    target = tmp_path / "page.html"
    assert write_report([results], target) == target
    assert target.read_text(encoding="utf-8") == page([results])
    with pytest.raises(InvalidFile, match="does not exist"):
        write_report([results], tmp_path / "nowhere" / "page.html")
    with pytest.raises(InvalidSetting):
        write_report([], target)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_terminal_shows_it_within_100_columns(results, scaled, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    labels = tuple(replace(one, label=f"[red]{one.id}[/red]") for one in results.study.agents)
    labelled = replace(results, study=replace(results.study, agents=labels))
    print_summary(changed(labelled, "trap/stepmix", [0], violations=3))
    out = capsys.readouterr().out
    # Promises are not broken: they are for copying.
    table = [line for line in out.splitlines() if not line.startswith("[red]") or " of 3 " in line]
    assert max(map(len, table)) <= 100
    assert "…" not in out
    assert "[red]bpi[/red]" in out
    assert out.count("floor 0.6, baseline 0.685, optimum 0.7 per episode") == 1
    assert "PROMISE BROKEN in 1 of 12 runs" in out
    print_summary(scaled)
    assert "\nNOT CERTIFIED\n" in capsys.readouterr().out
    print_summary(replace(results, trials={}))
    assert "no trials yet" in capsys.readouterr().out
