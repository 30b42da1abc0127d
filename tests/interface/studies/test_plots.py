"""Pictures of studies show the numbers: read back from the axes and held against what was put in
by hand.
"""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from surefoot.agents.promise import NO_FLOOR, Promise
from surefoot.errors import InvalidSetting
from surefoot.show.figures import COLOURS
from surefoot.studies.analysis.stats import band, binomial_bounds
from surefoot.studies.report import axes as drawing
from surefoot.studies.report import plots
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import run_trial
from surefoot.studies.spec import study as spec
from trials_by_hand import trial_by_hand

K, BINS, H, S, A = 400, 4, 2, 2, 3
FLOOR, BASELINE, OPTIMUM = 1.0, 1.5, 2.0
CERTIFIED = Promise("certified", 0.1, "every episode's policy", "unknown")
SCALED = Promise("not certified", scope="every episode's policy", scale=0.1)
AGENTS = ("stepmix", "epsmix", "bpi-ucbvi")


def study_of(scenarios=1, agents=AGENTS, logs=(), **more):
    where = [
        {"id": f"p{i}", "title": f"scenario {i}", "world": {"name": "trap"}}
        for i in range(scenarios)
    ]
    where += [{"id": f"log{n}", "world": {"name": "trap"}, "log": {"episodes": n}} for n in logs]
    who = [{"id": name, "agent": name, "bounds": "kl"} for name in agents]
    head = {
        "name": "made-up",
        "title": "Made up",
        "question": "?",
        "episodes": K,
        "trials": 3,
        **more,
    }
    return spec.parse_study({**head, "scenarios": where, "agents": who}, "test")


def trial_of(cell, i, **changes):
    """A trial whose numbers can be followed: trial i is worth 1.5 + 0.1 i, a little more in
    every bin.
    """
    optimist = cell.agent.agent == "bpi-ucbvi"
    width = K // BINS
    mean = 1.5 + 0.1 * i + 0.01 * np.arange(BINS)
    candidates = {"stepmix": H + 1, "epsmix": 2}.get(cell.agent.agent, 1)
    on = (
        [[0, 0, width]] * BINS
        if optimist
        else [[width, 0, 0], [50, 50, 0], [0, 25, 75], [0, 0, width]]
    )
    by_h = (
        [[width, 0, 0]] * BINS
        if optimist
        else [[0, 0, width], [0, 50, 50], [75, 25, 0], [width, 0, 0]]
    )
    given = {
        "promise": NO_FLOOR if optimist else CERTIFIED,
        "H": H,
        "S": S,
        "A": A,
        "floor": FLOOR,
        "baseline": BASELINE,
        "optimum": OPTIMUM,
        "violations": i if optimist else 0,
        "first_mixture": 150,
        "first_optimistic": 225,
        "off_baseline": 150,
        "trace_episode": [1, 100, 400],
        "trace_lower": np.array([0.5, 1.0, 1.2]) + 0.1 * i,
        "trace_upper": [2.0, 2.0, 2.0],
        "trace_rho": np.zeros(3),
        "trace_h": np.zeros(3, dtype=np.int64),
        "trace_candidates": np.add.outer([0.0, 0.5, 1.0], 0.1 * np.arange(candidates)) + 0.01 * i,
        "n_sa": np.arange(H * S * A) * (i + 1),
    }
    return trial_by_hand(cell, i, mean, on, by_h, **{**given, **changes})


def binned(mean):
    """The curves of a run with many bins of five episodes, the last of three."""
    n = len(mean)
    return {
        "episodes": 5 * n - 2,
        "curve_episode": 5 * np.arange(n),
        "curve_episodes": np.append(np.full(n - 1, 5), 3),
        "curve_mean": mean,
        "curve_min": mean,
        "curve_below": mean,
        "curve_regret": mean.cumsum(),
        "curve_sources": np.tile([5, 0, 0], (n, 1)),
        "curve_by_h": np.tile([5, 0, 0], (n, 1)),
    }


def results_of(study, keep=lambda cell, i: True, change=lambda cell, i: {}):
    trials = {
        cell.id: tuple(
            trial_of(cell, i, **change(cell, i)) for i in range(study.trials) if keep(cell, i)
        )
        for cell in study.cells
    }
    return Results(Path("nowhere"), study, {}, trials)


def line_of(axes, label):
    """The line that the legend names so."""
    found = [line for line in axes.get_lines() if line.get_label().startswith(label)]
    assert len(found) == 1, (label, [line.get_label() for line in axes.get_lines()])
    return found[0]


def legend(axes):
    """The legend's words, lines joined again."""
    return [text.get_text().replace("\n", " ") for text in axes.get_legend().get_texts()]


def by_colour(axes, colour):
    wanted = matplotlib.colors.to_rgba(colour)
    return [
        line
        for line in axes.get_lines()
        if np.allclose(matplotlib.colors.to_rgba(line.get_color()), wanted)
    ]


@pytest.fixture(scope="module")
def online():
    return results_of(study_of())


@pytest.fixture(scope="module")
def returns(online):
    return plots.plot_return(online)


@pytest.fixture(scope="module")
def certificates(online):
    return plots.plot_certificates(online)


@pytest.fixture(scope="module")
def coverage(online):
    return plots.plot_coverage(online)


def test_there_is_a_figure_and_a_caption_for_every_name_of_a_study():
    assert tuple(plots.FIGURES) == tuple(spec.FIGURES)
    assert all(figure.caption.endswith(".") for figure in plots.FIGURES.values())


class TestReturn:
    def test_means_and_bands_are_those_of_the_trials(self, online, returns):
        (axes,) = returns.axes
        curves = np.array([trial.curve_mean for trial in online.of("p0", "stepmix")])
        mean, _, _ = band(curves)
        low, high = curves.min(axis=0), curves.max(axis=0)  # of three trials all that they cover
        np.testing.assert_allclose(mean, [1.6, 1.61, 1.62, 1.63], atol=1e-12)
        line = line_of(axes, "StepMix")
        np.testing.assert_array_equal(line.get_xdata(), [50, 150, 250, 350])
        np.testing.assert_allclose(line.get_ydata(), mean, atol=1e-12)
        assert len(axes.collections) == 3
        corners = {(round(x), round(y, 9)) for x, y in axes.collections[0].get_paths()[0].vertices}
        for x, under, over in zip([50, 150, 250, 350], low, high, strict=True):
            assert {(x, round(under, 9)), (x, round(over, 9))} <= corners

    def test_one_trial_has_no_band(self):
        (axes,) = plots.plot_return(results_of(study_of(trials=1))).axes
        assert len(axes.collections) == 0

    def test_lines_are_where_they_say(self, returns):
        (axes,) = returns.axes
        for name, value, style in (
            ("floor", 1.0, "--"),
            ("baseline", 1.5, "-."),
            ("optimum", 2.0, ":"),
        ):
            line = line_of(axes, name)
            assert set(line.get_ydata()) == {value}
            assert line.get_linestyle() == style
            assert f"{name} {value:.4g}" in legend(axes)
        low, high = axes.get_ylim()
        assert low < 1.0
        assert high > 2.0

    @pytest.mark.parametrize(
        ("violations", "words"),
        [((0, 0, 1), "0.33 violations"), ((10**6, 0, 0), "333,333 violations per run")],
    )
    def test_the_legend_counts_a_mean(self, violations, words):
        study = study_of(agents=["bpi-ucbvi"])
        results = results_of(study, change=lambda cell, i: {"violations": violations[i]})
        (axes,) = plots.plot_return(results).axes
        assert f": {words}" in legend(axes)[0]

    def test_by_factors_the_first_episode_is_one(self):
        results = results_of(study_of(axis="log", agents=["stepmix"]))
        (axes,) = plots.plot_return(results).axes
        assert axes.get_xscale() == "log"
        np.testing.assert_array_equal(
            line_of(axes, "StepMix").get_xdata(), [50.5, 150.5, 250.5, 350.5]
        )

    @pytest.mark.parametrize("axis", ["linear", "log"])
    def test_many_bins_are_pooled_and_nothing_is_lost(self, axis):
        long = binned(np.random.default_rng(0).random(2000))
        study = study_of(agents=["stepmix"], trials=1, axis=axis)
        (axes,) = plots.plot_return(results_of(study, change=lambda cell, i: long)).axes
        line = line_of(axes, "StepMix")
        x, y = line.get_xdata(), line.get_ydata()
        assert 100 < len(x) <= drawing.MOST_POINTS
        ends = [0.0]
        for middle in x - 0.5 * (axis == "log"):
            ends.append(2 * middle - ends[-1])
        assert ends[-1] == pytest.approx(9998, abs=1e-6)
        weights = np.diff(ends)
        mean = np.average(long["curve_mean"], weights=long["curve_episodes"])
        assert np.average(y, weights=weights) == pytest.approx(mean)
        assert (weights[0] == 5) == (axis == "log")  # by factors, the first bins stay by themselves

    def test_not_certified_is_said_in_the_title(self, returns):
        results = results_of(
            study_of(),
            change=lambda cell, i: {"promise": SCALED} if cell.agent.id == "epsmix" else {},
        )
        for plot in (plots.plot_return, plots.plot_regret):
            assert "NOT CERTIFIED: EpsMix" in plot(results).get_suptitle()
        assert "NOT CERTIFIED" not in returns.get_suptitle()

    def test_with_a_log_the_baseline_is_a_mean_and_says_so(self):
        worth = (0.9, 1.4, 1.6)
        results = results_of(
            study_of(scenarios=0, logs=[50]), change=lambda cell, i: {"baseline": worth[i]}
        )
        (axes,) = plots.plot_return(results).axes
        assert set(line_of(axes, "baseline").get_ydata()) == {1.3}
        assert "below the floor in 1 of 3" in " ".join(legend(axes))

    def test_agents_keep_their_colour_when_others_are_missing(self):
        results = results_of(study_of(), keep=lambda cell, i: cell.agent.id == "bpi-ucbvi")
        (axes,) = plots.plot_return(results).axes
        assert line_of(axes, "BPI-UCBVI (EpsMix form)").get_color() == COLOURS[2]

    def test_agents_of_one_name_have_different_labels(self):
        study = study_of(agents=["stepmix"])
        twin = replace(study.agents[0], id="other")
        (axes,) = plots.plot_return(results_of(replace(study, agents=(*study.agents, twin)))).axes
        first, second, *_ = legend(axes)
        assert first.startswith("StepMix (stepmix)")
        assert second.startswith("StepMix (other)")

    def test_legends_hide_nothing_and_are_inside(self):
        agents = ["stepmix", "epsmix", "bpi-ucbvi", "step-no-mix"]
        figure = plots.plot_return(results_of(study_of(4, agents)))
        for axes in figure.axes:
            box = axes.get_legend().get_window_extent()
            assert box.y1 <= axes.xaxis.label.get_window_extent().y0
            assert figure.bbox.count_contains(box.corners()) == 4
            others = [other.get_tightbbox() for other in figure.axes if other is not axes]
            assert box.count_overlaps(others) == 0


def test_regret_and_the_baseline_alone(online):
    (axes,) = plots.plot_regret(online).axes
    line = line_of(axes, "StepMix")
    np.testing.assert_array_equal(line.get_xdata(), [100, 200, 300, 400])
    np.testing.assert_allclose(
        line.get_ydata(), 100 * np.cumsum(2.0 - np.array([1.6, 1.61, 1.62, 1.63]))
    )
    alone = line_of(axes, "baseline alone")
    np.testing.assert_allclose(alone.get_ydata(), 0.5 * alone.get_xdata())
    assert alone.get_xdata()[-1] == K
    (axes,) = plots.plot_regret(results_of(study_of(axis="log"))).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_ribbons_are_shares_of_episodes():
    results = results_of(study_of(scenarios=2))
    figure = plots.plot_ribbon(results)
    assert len(figure.axes) == 6
    # long ones are in several lines
    labels = [" ".join(axes.get_ylabel().splitlines()) for axes in figure.axes]
    assert labels == ["StepMix", "", "EpsMix", "", "BPI-UCBVI (EpsMix form)", ""]

    def areas(axes):
        found = []
        for colour, piece in zip(plots.EXITS, axes.collections, strict=True):
            np.testing.assert_allclose(piece.get_facecolor()[0], matplotlib.colors.to_rgba(colour))
            x, y = np.concatenate([path.vertices for path in piece.get_paths()]).T
            found.append(abs(np.dot(x[:-1], y[1:]) - np.dot(x[1:], y[:-1])) / 2)
        return found

    assert areas(figure.axes[0]) == pytest.approx([150, 75, 175])
    assert areas(figure.axes[4]) == pytest.approx([0, 0, 400])
    grey = [
        0.299 * r + 0.587 * g + 0.114 * b for r, g, b in map(matplotlib.colors.to_rgb, plots.EXITS)
    ]
    assert np.diff(grey).min() > 0.2  # apart without any colour, too


class TestCertificates:
    def test_candidates_of_agents_with_a_floor(self, certificates):
        figure = certificates
        step, eps = figure.axes  # nobody else
        assert [axes.get_ylabel() for axes in (step, eps)] == ["StepMix", "EpsMix"]
        (played,) = by_colour(step, plots.PLAYED)
        np.testing.assert_array_equal(played.get_xdata(), [1, 100, 400])
        np.testing.assert_allclose(played.get_ydata(), [0.6, 1.1, 1.3])
        for axes, h0s in ((step, (0, 1, 2)), (eps, (0, H))):
            for c, h0 in enumerate(h0s):
                (line,) = by_colour(axes, drawing.colour_of(h0, H))
                np.testing.assert_allclose(
                    line.get_ydata(), np.array([0.0, 0.5, 1.0]) + 0.1 * c + 0.01
                )
        words = [text.get_text() for text in figure.legends[0].get_texts()]
        assert {
            "h0 = 0 (optimistic)",
            "h0 = 1",
            "h0 = 2 (baseline)",
            "floor",
            "baseline",
            "optimum",
        } <= set(words)

    def test_other_checkpoints_are_interpolated(self):
        moved = {"trace_episode": np.array([1, 200, 400])}
        results = results_of(
            study_of(agents=["stepmix"]), change=lambda cell, i: moved if i == 2 else {}
        )
        (axes,) = plots.plot_certificates(results).axes
        (played,) = by_colour(axes, plots.PLAYED)
        third = 0.7 + 0.5 * 99 / 199  # at 100, between 0.7 at 1 and 1.2 at 200
        np.testing.assert_allclose(played.get_ydata(), [0.6, (1.0 + 1.1 + third) / 3, 1.3])

    def test_with_many_states_only_what_every_plan_bounds_is_drawn(self):
        """The ends and the first splice, and others if they were ever bounded: else they have the
        lowest value.
        """
        lower = np.arange(12.0).reshape(2, 6)
        some = lower * [1, 1, 0, 1, 0, 1]
        for candidates, drawn in ((lower, [0, 1, 2, 3, 4, 5]), (some, [0, 1, 3, 5])):
            found = plots.by_h0(candidates, 5)
            assert list(found) == drawn
            assert all(values.tolist() == lower[:, h0].tolist() for h0, values in found.items())
        assert list(plots.by_h0(lower[:, :2], 5)) == [0, 5]
        assert plots.by_h0(lower[:, :1], 5) == {}

    def test_without_a_floor_the_picture_says_so(self):
        results = results_of(study_of(agents=["bpi-ucbvi"]))
        for plot in (plots.plot_certificates, plots.plot_by_h):
            figure = plot(results)
            assert figure.axes == []
            assert "promises a floor" in figure.texts[-1].get_text()


class TestCoverage:
    def test_visits_are_means_and_none_are_left_out(self, coverage):
        maps = [axes for axes in coverage.axes if axes.get_title().startswith("step")]
        assert len(maps) == 3 * H
        first = maps[0].collections[0].get_array()
        np.testing.assert_allclose(first.filled(-1).ravel(), [-1, 2, 4, 6, 8, 10])
        assert first.mask.sum() == 1
        assert maps[0].patch.get_hatch()
        norm = maps[0].collections[0].norm
        assert isinstance(norm, matplotlib.colors.LogNorm)
        assert (norm.vmin, norm.vmax) == (2, 22)

    def test_pooled_counts_are_one_map(self):
        pooled = {"n_sa": np.ones((1, S, A))}
        figure = plots.plot_coverage(
            results_of(
                study_of(), change=lambda cell, i: pooled if cell.agent.id == "epsmix" else {}
            )
        )
        titles = [axes.get_title() for axes in figure.axes]
        assert (
            titles.count("all steps"),
            titles.count("step 1 of 2"),
            titles.count("step 2 of 2"),
        ) == (1, 2, 2)


def test_episodes_at_each_h(online):
    step, eps = plots.plot_by_h(online).axes
    assert eps.get_ylabel() == "EpsMix"
    for h, counts in enumerate(([0, 0, 75, 175], [0, 50, 75, 75], [100, 150, 150, 150])):
        (line,) = by_colour(step, drawing.colour_of(h, H))
        np.testing.assert_array_equal(line.get_ydata(), counts)
        np.testing.assert_array_equal(line.get_xdata(), [100, 200, 300, 400])
    step, _ = plots.plot_by_h(results_of(study_of(axis="log"))).axes
    (line,) = by_colour(step, drawing.colour_of(0, H))
    np.testing.assert_array_equal(line.get_ydata(), [np.nan, np.nan, 75, 175])  # 0 has no logarithm
    assert step.get_yscale() == "log"


class TestViolations:
    def test_means_and_exact_bounds(self):
        violations = {10: (0, 7, 20), 100: (0, 0, 3), 1000: (0, 0, 0)}
        results = results_of(
            study_of(scenarios=1, agents=["stepmix"], logs=violations),
            change=lambda cell, i: (
                {}
                if cell.scenario.log is None
                else {"violations": violations[cell.scenario.log.episodes][i]}
            ),
        )
        left, right = plots.plot_violations(results).axes
        mean = line_of(left, "StepMix")
        np.testing.assert_allclose(mean.get_xdata(), [10, 100, 1000])
        np.testing.assert_allclose(mean.get_ydata(), [9, 1, 0])
        bars = right.containers[0]
        np.testing.assert_allclose(bars.lines[0].get_ydata(), [2 / 3, 1 / 3, 0])
        found = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
        np.testing.assert_allclose(found, [binomial_bounds(k, 3) for k in (2, 1, 0)], atol=1e-12)
        assert left.get_ylim()[0] < 0 < left.get_ylim()[1]  # no violations can be seen as well
        assert (left.get_xscale(), right.get_xscale()) == ("log", "log")

    def test_scenarios_that_differ_in_more_are_not_joined(self):
        study = study_of(scenarios=0, agents=["stepmix"], logs=[10, 100])
        other = [
            replace(scenario, id=f"{scenario.id}-b", floor=0.55) for scenario in study.scenarios
        ]
        figure = plots.plot_violations(
            results_of(replace(study, scenarios=(*study.scenarios, *other)))
        )
        assert len(figure.axes) == 4
        assert [axes.get_title(loc="left") for axes in figure.axes[::2]] == [
            "floor usual",
            "floor 0.55",
        ]

    def test_without_a_log_the_picture_says_so(self, online):
        assert "has a log" in plots.plot_violations(online).texts[-1].get_text()


def test_what_is_there_is_drawn_and_what_is_missing_said(returns):
    assert "missing" not in returns.get_suptitle()

    def keep(cell, i):
        return cell.id in {"p0/bpi-ucbvi", "log10/stepmix"}

    results = results_of(study_of(scenarios=2, logs=[10]), keep=keep)
    for name, figure in plots.FIGURES.items():
        assert "21 of 27 trials are missing" in figure.draw(results).get_suptitle(), name
    axes = plots.plot_return(results).axes
    assert [one.get_title() for one in axes] == ["scenario 0", "n = 10"]


@pytest.mark.parametrize("name", plots.FIGURES)
def test_no_trial_at_all_is_refused(name):
    with pytest.raises(InvalidSetting, match=r"no trial of study 'made-up'.*Run it first"):
        plots.FIGURES[name].draw(results_of(study_of(), keep=lambda cell, i: False))


@pytest.mark.parametrize("plot", [plots.plot_return, plots.plot_certificates])
def test_a_picture_is_written_to_the_same_bytes(online, plot, tmp_path):
    """The second time it would move a little, were it laid out again."""
    figure = plot(online)
    text = plots.save_svg(figure, "a")
    assert plots.save_svg(figure, "a") == text
    assert plots.save_svg(plot(online), "a") == text
    one, two = (plots.save_png(figure, tmp_path / "new" / f"{name}.png") for name in "ab")
    assert one.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert one.read_bytes() == two.read_bytes()


def test_svg_can_stand_on_a_page_with_others(online):
    before = dict(matplotlib.rcParams)
    text = plots.save_svg(plots.plot_coverage(online), "one")
    assert dict(matplotlib.rcParams) == before  # no style is left behind
    assert text.startswith("<svg ")
    assert not re.search(r"<\?xml|<!DOCTYPE|<!--|dc:date|>\*\{", text)
    ids = [element.attrib["id"] for element in ET.fromstring(text).iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids)) > 0
    assert all(one.startswith("one-") for one in ids)
    used = re.findall(r'(?:href="|url\()#([^")]*)', text)
    assert used
    assert set(used) <= set(ids)


@pytest.mark.parametrize("salt", ["", "1a", "a b", 'a"'])
def test_a_salt_that_is_no_id_is_refused(returns, salt):
    with pytest.raises(InvalidSetting, match="salt"):
        plots.save_svg(returns, salt)


def test_svg_is_small():
    """Four scenarios, three agents, as many bins as a run can have, and bands that nowhere
    vanish.
    """
    noise = np.random.default_rng(0)
    results = results_of(study_of(scenarios=4), change=lambda cell, i: binned(noise.random(2000)))
    assert len(plots.save_svg(plots.plot_return(results))) < 350_000


def test_real_trials_can_be_drawn():
    """What the simulator gives, not what was made up; every other picture of real trials is in
    test_report.py.
    """
    study = study_of(agents=["bpi-ucbvi"], episodes=1000, trials=2, replan=0.2)
    (cell,) = study.cells
    trials = tuple(run_trial(cell, i) for i in range(2))
    (axes,) = plots.plot_return(Results(Path("nowhere"), study, {}, {cell.id: trials})).axes
    mean = np.mean([trial.violations for trial in trials])
    assert mean > 10
    assert f": {mean:,.0f} violations per run" in legend(axes)[0]
