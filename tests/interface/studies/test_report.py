"""The summary and the page: what is said of results, word by word, in every case that matters."""

import json
import math
import re
import statistics
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
from surefoot.studies.report.plots import FIGURES
from surefoot.studies.report.report import as_toml, command, page, write_report
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


def changed(results, cell, number, **fields):
    """The same results, but for one trial."""
    trials = [
        replace(one, **fields) if one.trial == number else one for one in results.trials[cell]
    ]
    return replace(results, trials={**results.trials, cell: tuple(trials)})


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


def alarms(text):
    return Reader(text).of_class("alarm")


def verdict_of(text):
    return next(
        words for _, attrs, words in Reader(text).texts if attrs.get("aria-label") == "Verdict"
    )


def test_unscaled_agents_that_keep_the_floor_are_certified(results):
    text = page([results])
    assert badges(text) == ["CERTIFIED"]
    assert alarms(text) == []
    assert "unscaled constants" in verdict_of(text)
    assert "delta = 0.1" in verdict_of(text)
    assert "None of the 12 certified runs broke its promise." in verdict_of(text)
    for absent in ("incomplete", "quick:", "no promise in"):
        assert absent not in verdict_of(text)
    assert all(trial.violations > 0 for trial in results.trials["trap/bpi"])  # it promises nothing
    assert "BPI-UCBVI (EpsMix form), promising no floor, went below the floor in" in verdict_of(
        text
    )


def test_one_bonus_scaled_by_hand_makes_it_not_certified(results, scaled):
    text = page([scaled])
    assert badges(text) == ["NOT CERTIFIED"]
    assert "StepMix (bonus times 0.5)" in verdict_of(text)
    assert "<title>Agents NOT CERTIFIED:" in text
    assert badges(page([results, scaled])) == ["NOT CERTIFIED"]
    # said of which study
    assert "Two scenariosNOT CERTIFIED" in verdict_of(page([results, scaled]))
    assert verdict_of(page([results, scaled])).count("Two scenariosNOT") == 1
    # Not one of its trials is there yet: the study says so all the same.
    early = replace(scaled, trials={"trap/bpi": scaled.trials["trap/bpi"]})
    assert badges(page([early])) == ["NOT CERTIFIED"]
    unscaled = replace(
        scaled.study, agents=tuple(replace(one, scale=1.0) for one in scaled.study.agents)
    )
    assert badges(page([replace(early, study=unscaled)])) == ["NO PROMISE"]


def test_a_broken_promise_is_said_in_red_with_numbers(results):
    broken = changed(results, "trap/stepmix", 1, violations=7)
    text = page([broken])
    assert badges(text) == ["CERTIFIED", "PROMISE BROKEN"]
    words = " ".join(alarms(text))
    assert "PROMISE BROKEN in 1 of 12 runs" in words
    assert "StepMix in The trap: 1 of 3 runs" in words
    assert "2.333 episodes per run" in words
    assert "10 % of runs" in words
    assert "1 of the 12 certified runs broke its promise." in verdict_of(text)
    assert "None of" not in verdict_of(text)
    # in the table of results, too
    assert "PROMISE BROKEN in 1 of 3 runs" in " ".join(Reader(text).of_class("bad"))
    assert re.search(r"\.alarm \{ color: var\(--bad\)", text)


def test_an_agent_that_keeps_the_sum_is_judged_by_the_sum(results):
    cell = "trap/budget"
    below = changed(results, cell, 0, violations=40, min_cumulative=0.25)
    assert alarms(page([below])) == []
    lost = changed(below, cell, 0, min_cumulative=-3.0)
    assert "the sum of the episodes fell below the floor" in " ".join(alarms(page([lost])))
    noise = changed(below, cell, 0, min_cumulative=-1e-12)
    assert alarms(page([noise])) == []


def test_an_agent_without_a_floor_changes_nothing(results):
    assert alarms(page([changed(results, "trap/bpi", 0, violations=2000)])) == []
    alone = replace(results.study, agents=results.study.agents[2:])
    text = page(
        [
            replace(
                results,
                study=alone,
                trials={key: results.trials[key] for key in ("trap/bpi", "random/bpi")},
            )
        ]
    )
    assert badges(text) == ["NO PROMISE"]


def test_false_premises_are_counted(results):
    false = {"promise": FALSE_PREMISE, "baseline": 0.5, "violations": 9}
    some = changed(changed(results, "trap/stepmix", 0, **false), "trap/stepmix", 2, **false)
    text = page([some])
    assert badges(text) == ["CERTIFIED"]
    assert alarms(text) == []
    assert "no promise in 2 of 12 trials" in verdict_of(text)
    assert "no promise in 2 of 3 runs" in " ".join(Reader(text).of_class("bad"))
    row = next(
        row for row in summary(some) if (row["scenario"], row["agent"]) == ("trap", "stepmix")
    )
    assert (row["premise_false"], row["certified"], row["baseline_below"]) == (2, 1, 2)
    assert row["baseline_violations"] == 2 * 2000 / 3


def test_what_is_promised_is_red_where_nothing_is(results, scaled):
    """Red is for what promises nothing although it should; an agent that never promised a floor
    is none of that.
    """
    false = {"promise": FALSE_PREMISE, "baseline": 0.5}
    for given, red in (
        (results, []),
        (changed(results, "trap/stepmix", 1, **false), ["no promise", "no promise"]),
    ):
        assert [
            re.match("no promise", words)[0] for words in Reader(page([given])).of_class("bad")
        ] == red
    red = Reader(page([scaled])).of_class("bad")
    assert [words for words in red if words != "NOT CERTIFIED"] == [
        *[words for words in red if "✗" in words],  # the verdict as a whole
        "bonus times 0.5: NOT CERTIFIED",
        "NOT CERTIFIED: bonus scaled by 0.5",
    ]
    assert red.count("NOT CERTIFIED") == 1  # with the results
    broken = Reader(page([changed(results, "trap/stepmix", 1, violations=7)])).of_class("bad")
    assert "PROMISE BROKEN in 1 of 3 runs" in broken


def test_who_knows_the_value_of_the_baseline_is_said(results):
    assert "Knows V^b" not in page([results])
    text = page([changed(results, "trap/stepmix", 1, knows_baseline_value=True)])
    assert "Knows V^b: the agent was given the true value of the baseline" in text
    rows = [row for row in Reader(text).of_tag("tr") if row.startswith("StepMixcertified")]
    assert any("yes" in row for row in rows)


def test_what_never_left_the_baseline_is_trusted_and_not_certified(results):
    """No violation of a run that only ever played a trusted baseline is no proof of anything."""
    stayed = {"off_baseline": None, "first_mixture": None, "first_optimistic": None}
    some = changed(results, "trap/stepmix", 0, **stayed)
    assert "1 run never left the baseline: trusted throughout, not certified." in verdict_of(
        page([some])
    )
    assert "None of the 11 certified runs" in verdict_of(page([some]))
    assert "on trust in 1 of 3 runs: never left the baseline" in page([some])
    # A log that certifies the baseline above the floor is proof enough.
    proved = changed(some, "trap/stepmix", 0, log_lower=some.of("trap", "stepmix")[0].floor)
    assert "None of the 12 certified runs" in verdict_of(page([proved]))
    all_stayed = some
    for cell in results.trials:
        for i in range(3):
            if "bpi" not in cell:
                all_stayed = changed(all_stayed, cell, i, **stayed)
    text = page([all_stayed])
    assert badges(text) == ["ON TRUST"]
    assert "is taken on trust" in verdict_of(text)
    assert " certified runs" not in verdict_of(text)


def test_what_rests_on_a_given_value_is_trusted_and_not_certified(results):
    """Though it left the baseline. Control: the same runs without it are certified."""
    words = "trusted, given the baseline's value"
    control = page([results])
    assert words not in control
    assert "None of the 12 certified runs" in verdict_of(control)
    some = results
    for i, trial in enumerate(results.of("trap", "stepmix")):
        some = changed(
            some, "trap/stepmix", i, promise=replace(trial.promise, knows_baseline_value=True)
        )
    (row,) = (
        row for row in summary(some) if (row["scenario"], row["agent"]) == ("trap", "stepmix")
    )
    assert (row["certified"], row["on_trust"], row["off_baseline_never"]) == (0, 3, 0)
    text = page([some])
    assert badges(text) == ["CERTIFIED"]
    assert f"StepMix: {words}, not certified. Every other agent with a floor" in verdict_of(text)
    assert "None of the 9 certified runs" in verdict_of(text)
    assert f"None of the 3 runs that are {words}," in verdict_of(text)
    assert "never left the baseline" not in verdict_of(text)
    rows = [row for row in Reader(text).of_tag("tr") if row.startswith(f"StepMix{words}")]
    assert rows
    assert not any("StepMixcertified" in row for row in rows)
    broken = changed(some, "trap/stepmix", 0, violations=5)
    assert "PROMISE BROKEN in 1 of 12 runs" in alarms(page([broken]))[0]
    alone = one_scenario(some)
    for i in range(3):
        for cell in alone.trials:
            trial = alone.trials[cell][i]
            if trial.promise.kind == "certified":
                alone = changed(
                    alone, cell, i, promise=replace(trial.promise, knows_baseline_value=True)
                )
    assert badges(page([alone])) == ["ON TRUST"]
    assert "Nothing was certified." in verdict_of(page([alone]))
    assert " certified runs" not in verdict_of(page([alone]))


def test_a_false_certificate_of_a_log_is_an_alarm_of_its_own(results):
    """It is the log's, not an agent's: said once, and of no run that it was below the floor."""
    worth = results.of("trap", "stepmix")[1].baseline
    bad = results
    for cell in ("trap/stepmix", "trap/budget", "trap/bpi"):
        bad = changed(bad, cell, 1, log_lower=worth + 0.01)
    lines = alarms(page([bad]))
    assert len(lines) == 1
    assert (
        "what the log certified of the baseline is more than it is worth, in 1 of 3 trials"
        in lines[0]
    )
    assert "None of the 12 certified runs" in verdict_of(page([bad]))
    assert alarms(page([changed(results, "trap/stepmix", 1, log_lower=worth - 0.01)])) == []


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
    fewer = replace(results, trials={**results.trials, "trap/bpi": results.trials["trap/bpi"][:1]})
    assert "incomplete: 16 of 18 trials" in verdict_of(page([fewer]))
    both = verdict_of(page([fewer, replace(results, study=replace(results.study, name="whole"))]))
    assert "tiny: incomplete: 16 of 18 trials" in both
    quick = replace(results, study=results.study.made_quick())
    assert "quick: 3 trials." in verdict_of(page([quick]))
    blocks = "plans in blocks of {} of the episodes so far: a moment is known to {} only"
    assert blocks.format("1 %", "1 %") in verdict_of(page([quick]))
    assert blocks.format("5 %", "5 %") in verdict_of(page([results]))  # in full as well
    agents = tuple(replace(one, replan=None) for one in quick.study.agents)
    every = replace(quick, study=replace(quick.study, replan=0.0, agents=agents))
    assert "plans in blocks" not in verdict_of(page([every]))


def test_a_page_can_be_made_before_there_is_a_trial(results):
    study = replace(results.study, figures=("return",))
    text = page([replace(results, study=study, trials={})])
    assert badges(text) == ["NO PROMISE"]
    assert "There are no trials yet" in verdict_of(text)
    assert "incomplete: 0 of 18 trials" in verdict_of(text)
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
    assert "Claims of the paper: 1 of 3 hold, 1 does not, 1 cannot be judged." in verdict_of(text)
    assert 'id="study-1-claims"' in text
    assert 'id="study-1-claims"' not in page([analyse(results)._replace(verdicts=[])])


def test_claims_of_ours_are_not_the_paper_s(results):
    """Each below a heading that says whose it is; what is ours must not come out if the paper is
    right.
    """
    sources = (OURS, PAPER, DRAFT, OURS, PAPER)
    verdicts = [Verdict(f"claim {i}", source, True, (), "so") for i, source in enumerate(sources)]
    text = page([analyse(results)._replace(verdicts=verdicts)])
    parts = re.split("<h4>", text)[1:]
    below = {part.partition("</h4>")[0]: re.findall(r"claim \d", part) for part in parts}
    assert below == {
        "What must come out if the paper is right": ["claim 1", "claim 4"],
        "What must come out if drafts of the paper are right, which it leaves out": ["claim 2"],
        "What we claim, and the paper does not": ["claim 0", "claim 3"],
    }
    assert (
        "Claims of the paper: 2 of 2 hold. Claims of its drafts: 1 of 1 holds. Claims of ours: 2"
        in verdict_of(text)
    )
    ours = page([analyse(results)._replace(verdicts=verdicts[:1])])
    assert "if the paper is right" not in ours


def test_what_is_certified_is_said_of_agents_and_what_holds_of_claims(results):
    """Certified agents beside a claim that does not hold: the badge does not speak of the paper."""
    given = analyse(results)._replace(
        verdicts=[Verdict("The paper is right", PAPER, False, (2000,), "0 of 3")]
    )
    for text in (page([given]), page([given, given])):
        assert re.search(r"^The agents:\s+✓ CERTIFIED$", Reader(text).of_class("badges")[0])
        assert (
            "Claims of the paper: 0 of 1 holds, 1 does not" in Reader(text).of_class("tallies")[-1]
        )
        assert "<title>Agents CERTIFIED: " in text


def lines_of_claims(text):
    """Each claim's line, and the numbers that are folded below it: closed, and without a script."""
    found = "".join(re.findall(r'<ul class="claims">(.*?)\n</ul>\n', text, re.DOTALL))
    claims = []
    for folded in re.findall(r"<details>(.*?)</details>", found, re.DOTALL):
        read = Reader(folded)
        claims.append((read.of_tag("summary")[0].strip(), read.of_tag("li")))
    return claims


def places(text, *parts):
    """Where each part of a page begins, in the order in which they are given."""
    found = [text.index(part) for part in parts]
    assert len(found) == len(set(found))
    return found


def test_the_page_shows_before_it_tells(results):
    """The verdict, the first figure, the claims, the other figures, tables, premises, versions."""
    study = replace(results.study, figures=("ribbon", "coverage"), name="online", title="One")
    shown = replace(results, study=study)
    text = page([shown])
    parts = (
        'aria-label="Verdict"',
        "Figure 1.</strong>",
        'id="study-1-claims"',
        "Figure 2.</strong>",
    )
    tables = ("The results of each", "Agents side by side.", "The scenarios.", "The agents.")
    after = ('id="premises"', 'id="words"', 'id="again"', 'id="files"')
    found = places(text, *parts, *(f"<caption><span>{caption}" for caption in tables), *after)
    assert found == sorted(found)
    # nothing but words and the verdict before the first figure
    assert "<table" not in text[: found[2]]
    # what the paper leaves open
    assert "docs/reproduction/choices.md" in text[text.index('id="again"') :]
    both = page([shown, replace(shown, study=replace(study, name="offline", title="Two"))])
    index, first, second = places(
        both, "<caption><span>The studies.", 'id="study-1"', 'id="study-2"'
    )
    assert index < first < second < both.index('id="premises"')
    for i, text in enumerate((both[first:second], both[second:]), 1):
        found = places(
            text,
            "✓</span> CERTIFIED",
            *(part.replace("study-1", f"study-{i}") for part in parts[1:]),
        )
        assert found == sorted(found)


NASTY = "<script>alert(\"1\")</script> & 'so' <b onload=x>"


def test_what_users_write_is_shown_and_never_run(results):
    agents = tuple(replace(one, label=f"{NASTY} {one.id}") for one in results.study.agents)
    scenarios = tuple(replace(one, title=NASTY) for one in results.study.scenarios)
    study = replace(results.study, title=NASTY, question=NASTY, scenarios=scenarios, agents=agents)
    shown = analyse(replace(results, study=study, versions={NASTY: NASTY}))
    given = shown._replace(verdicts=[Verdict(NASTY, PAPER, None, (), NASTY)])
    for text in (page([given]), page([given, given])):
        read = Reader(text)
        assert read.unclosed == []
        assert not [tag for tag, _ in read.elements if tag in ("script", "b")]
        assert not [attrs for _, attrs in read.elements if "onload" in attrs]
        assert "<script" not in text
        assert text.count("&lt;script&gt;") > 10
    read = Reader(page([given]))
    assert read.of_tag("h1") == [NASTY]
    assert NASTY in read.of_class("question")
    assert NASTY in read.of_tag("title")[0]
    written = replace(parse_study(tomllib.loads(read.of_tag("pre")[0]), "page"), size=study.size)
    assert written == study


def test_the_same_results_give_the_same_bytes(results, tmp_path):
    study = replace(one_scenario(results).study, figures=("ribbon",))
    folder = begin(tmp_path / "tiny", study, resume=False)
    for cell in study.cells:
        for trial in results.trials[cell.id]:
            folder.write(trial)
    there = read_results(tmp_path / "tiny")
    text = page([there])
    assert page([replace(there, path=Path("elsewhere"))]) == text  # again
    code = (
        "import sys; from surefoot.studies.report import report; from surefoot.studies.run import "
        "store; " + ("report.write_report([store.read_results(sys.argv[1])], sys.argv[2])")
    )
    target = tmp_path / "page.html"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "tiny"), str(target)], check=True, cwd=tmp_path
    )
    assert target.read_bytes() == text.encode()
    assert str(tmp_path) not in text
    # and it does depend on them
    plain = replace(there, study=replace(study, figures=()))
    assert page([changed(plain, "trap/bpi", 0, regret=1.0)]) != page([plain])


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
    wanted = [*drawn.study.figures, "regret"]
    read = Reader(text)
    captions = read.of_tag("figcaption")
    assert len(captions) == len(wanted)
    assert all(
        FIGURES[name].caption in caption for name, caption in zip(wanted, captions, strict=True)
    )
    pictures = [attrs for tag, attrs in read.elements if tag == "svg"]
    assert len(pictures) == len(wanted)
    for name, attrs in zip(wanted, pictures, strict=True):
        assert attrs["role"] == "img"
        assert FIGURES[name].caption.startswith(attrs["aria-label"])
        assert float(attrs["viewbox"].split()[2]) > 100
        assert len(attrs["aria-label"]) > 10


def test_the_page_is_well_formed_and_loads_nothing(illustrated):
    _, text = illustrated
    read = Reader(text)
    assert read.unclosed == []
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    attributes = [attrs for _, attrs in read.elements]
    ids = [attrs["id"] for attrs in attributes if "id" in attrs]
    assert len(ids) == len(set(ids))
    for attrs in attributes:
        for key in (
            "src",
            "href",
            "xlink:href",
            "srcset",
            "data",
            "action",
            "poster",
            "background",
        ):
            if key in attrs:
                assert attrs[key].startswith(("#", "data:"))
                assert not attrs[key].startswith("#") or attrs[key][1:] in ids
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert "@import" not in text
    assert not {tag for tag, _ in read.elements} & {
        "script",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
    }
    assert not [key for attrs in attributes for key in attrs if key.startswith("on")]
    policy = next(
        attrs for attrs in attributes if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in attributes
    tables = [tag for tag, _ in read.elements if tag in ("table", "caption")]
    assert tables == ["table", "caption"] * (len(tables) // 2)
    assert all(attrs.get("scope") for tag, attrs in read.elements if tag == "th")
    assert len(read.of_tag("h1")) == 1


def test_controls_of_the_reader_of_pages():
    assert Reader("<p><b>x</p>").unclosed
    assert Reader("<div><p>x</p>").unclosed == ["div"]
    assert Reader("<p class='a alarm'>x</p>").of_class("alarm") == ["x"]


def test_several_studies_have_an_index_and_one_has_none(results, illustrated):
    _, text = illustrated
    links = [attrs["href"] for tag, attrs in Reader(text).elements if tag == "a"]
    assert {
        "#study-1",
        "#study-2",
        "#study-2-claims",
        "#premises",
        "#words",
        "#again",
        "#files",
    } <= set(links)
    assert "<nav" in text
    assert "<nav" not in page([results])
    with pytest.raises(InvalidSetting, match="no results"):
        page([])


def test_every_number_of_the_summary_by_hand(results):
    never = changed(results, "trap/stepmix", 2, off_baseline=None, first_optimistic=None)
    given = changed(never, "random/bpi", 1, violations=0, regret=123.5)
    for row, cell in zip(summary(given), given.study.cells, strict=True):
        trials = given.of(cell.scenario.id, cell.agent.id)
        n = len(trials)
        below = sum(trial.violations > 0 for trial in trials)
        assert (row["scenario"], row["agent"], row["label"]) == (
            cell.scenario.id,
            cell.agent.id,
            trials[0].label,
        )
        assert (row["episodes"], row["trials"], row["trials_wanted"], row["delta"]) == (
            2000,
            3,
            3,
            0.1,
        )
        assert (
            row["scenario_title"]
            == {"trap": "The trap", "random": "eta = 5, floor = 0.9"}[cell.scenario.id]
        )
        assert row["knows_baseline_value"] is False
        assert row["in_sum"] is (cell.agent.id == "budget")
        assert (
            row["floor"]
            == {"trap": trials[0].floor, "random": pytest.approx(0.9)}[cell.scenario.id]
        )
        assert row["optimum"] == trials[0].optimum
        for key in ("baseline", "baseline_return"):
            assert row[key] == pytest.approx(np.mean([trial.baseline for trial in trials]))
        assert (row["baseline_low"], row["baseline_high"]) == (
            trials[0].baseline,
            trials[0].baseline,
        )
        assert (row["baseline_below"], row["baseline_violations"]) == (0, 0)
        assert row["violations"] == pytest.approx(np.mean([trial.violations for trial in trials]))
        assert row["runs_below"] == below
        assert row["runs_below_at_most"] == pytest.approx(
            1.0 if below == n else oracle.beta.ppf(0.95, below + 1, n - below)
        )
        left = sum(trial.off_baseline is not None for trial in trials)
        promised = (0, 0, n) if cell.agent.id == "bpi" else (left, n - left, 0)
        assert (row["certified"], row["on_trust"], row["no_floor"]) == promised
        assert (row["broken"], row["premise_false"], row["not_certified"]) == (0, 0, 0)
        assert sum(row["promises"].values()) == n
        for key, field in (("regret", "regret"), ("mean_return", "mean_value")):
            values = [getattr(trial, field) for trial in trials]
            assert row[key] == pytest.approx(np.mean(values), rel=1e-12)
            if len(set(values)) == 1:
                assert (row[f"{key}_low"], row[f"{key}_high"]) == (values[0], values[0])
            else:
                ends = oracle.t.interval(0.95, n - 1, np.mean(values), oracle.sem(values))
                assert (row[f"{key}_low"], row[f"{key}_high"]) == pytest.approx(ends, rel=1e-9)
        alone = [trial.episodes * (trial.optimum - trial.baseline) for trial in trials]
        assert row["baseline_regret"] == pytest.approx(np.mean(alone))
        for key in ("off_baseline", "first_optimistic"):
            when = [getattr(trial, key) for trial in trials]
            late = statistics.median(math.inf if k is None else k for k in when)
            assert row[key] == (None if late == math.inf else late)
            there = [k for k in when if k is not None]
            assert row[f"{key}_never"] == n - len(there)
            assert (row[f"{key}_earliest"], row[f"{key}_latest"]) == (
                min(there, default=None),
                max(there, default=None),
            )
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
    given = changed(results, "trap/stepmix", 2, off_baseline=None)
    text = re.sub(r"<[^>]*>", "|", page([given]))
    row = summary(given)[0]
    for number in (
        amount(row["regret"]),
        amount(row["baseline_regret"]),
        f"{row['mean_return']:.4f}",
        f"{row['baseline_return']:.4f}",
        "never in 1 of 3",
        "0 of 3 runs",
        "at most 63\u00a0% at 95\u00a0% confidence",
    ):
        assert number in text


def test_agents_are_compared_trial_by_trial(results):
    text = page([results])
    rows = [row for row in Reader(text).of_tag("tr") if row.startswith("StepMix against BPI-UCBVI")]
    ones, twos = (results.trials[f"trap/{agent}"] for agent in ("stepmix", "bpi"))
    difference = np.mean([one.regret - two.regret for one, two in zip(ones, twos, strict=True)])
    wins = sum(one.regret < two.regret for one, two in zip(ones, twos, strict=True))
    assert amount(abs(difference)) in rows[0]
    assert f"{wins} of 3" in rows[0]
    assert "one has no baseline" in rows[0]
    # Nothing is said of runs of different lengths.
    longer = tuple(
        replace(one, episodes=4000) if one.id == "bpi" else one for one in results.study.agents
    )
    uneven = page([replace(results, study=replace(results.study, agents=longer))])
    assert "StepMix against BPI-UCBVI" not in uneven
    assert "StepMix against Budget-Exploration" in uneven


def small_below(text, row, where):
    """The small letters in the cells of a row of the table with this caption."""
    table = next(
        table for table in re.findall("<table>.*?</table>", text, re.DOTALL) if where in table
    )
    line = next(line for line in re.findall("<tr>.*?</tr>", table, re.DOTALL) if f">{row}" in line)
    return [re.findall("<small>(.*?)</small>", cell) for cell in re.findall("<td.*?</td>", line)]


def test_an_interval_of_no_width_is_said_to_be_none(results):
    """Control: an interval that has a width, and one that has none in the digits that are shown."""
    cell, other = "trap/stepmix", "trap/budget"
    same = one_scenario(results)
    for i in range(3):
        same = changed(same, cell, i, regret=50.0, off_baseline=400, first_optimistic=15)
        same = changed(same, other, i, regret=40.0, off_baseline=100)

    def shown(given):
        text = page([given]).replace("\u00a0", " ")
        return small_below(text, "StepMix", "The results of"), small_below(
            text, "StepMix against B", "Agents side"
        )

    cells, compared = shown(same)
    assert cells[2][0] == "the same in all 3 trials"
    assert cells[4] == []
    assert compared[0] == compared[2] == ["the same in all 3 trials"]
    apart = changed(same, cell, 0, regret=51.0, off_baseline=420)
    cells, compared = shown(apart)
    assert cells[2][0] == "48.9 to 51.77"  # 50 1/3 +- 4.303 / 3
    assert cells[4] == ["400 to 420"]
    assert " to " in compared[0][0]
    assert cells[3][0] != "the same to these digits"
    for i in range(3):
        apart = changed(apart, cell, i, mean_value=0.6 + 1e-9 * i)
    assert shown(apart)[0][3][0] == "the same to these digits"


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
    given = changed(
        replace(results, study=replace(results.study, agents=labels)),
        "trap/stepmix",
        0,
        violations=3,
    )
    print_summary(given)
    out = capsys.readouterr().out
    # promises are not broken: they are for copying
    assert max(map(len, out.splitlines())) <= 100 + 60
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
