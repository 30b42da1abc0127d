"""Whatever states, actions, policies, units and titles are called: pictures and texts show it,
as text and no more.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text

import surefoot as sf

ESC = "\x1b[31m"
DRAWN = {
    "formula": "$x^2$",
    "no formula": r"$\frac{",
    "broken formula": r"$\frac{$",
    "command": r"\frac{a}{b}",
    "underscore": "_x",
    "lines": "one\ntwo",
    "long": "very " * 60,
    "markup": "[red]stop[/red]",
    "escape": f"{ESC}red",
    "reversed": "abc\u202edef",
    "percent": "100 % {} %s",
    "no letter of the font": "\U0001f600 \u4e2d\u6587",
}
SPOKEN = {name: text for name, text in DRAWN.items() if text.isprintable() and len(text) <= 40}
WORLD = sf.world("trap")


def named(text):
    """A world all of whose states and actions have this name, and a number."""
    states, actions = ([f"{text}{i}" for i in range(n)] for n in (WORLD.S, WORLD.A))
    return WORLD.with_names(states=states, actions=actions)


def plan_and_run(world):
    """Of an agent in it."""
    agent = sf.EpsMix(world.problem, WORLD.baseline, WORLD.suggested_floor)
    run = sf.simulate(world, agent, 200, seed=0)
    return agent.plan(run.counts), run


def assert_text(figure, tmp_path, shown):
    """The picture can be written, and what contains `shown` is no formula."""
    figure.savefig(tmp_path / "picture.png", dpi=30)
    texts = figure.findobj(Text)
    found = [text for text in texts if shown in text.get_text().replace("\n", " ")]
    assert found
    assert not any(text.get_parse_math() for text in found)


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
@pytest.mark.parametrize("text", DRAWN.values(), ids=DRAWN)
def test_states_actions_agents_and_titles_are_drawn_as_text(text, tmp_path):
    world = named(text)
    plan, run = plan_and_run(world)
    first = sf.plot_plan(plan).axes[0].get_yticklabels()[0]
    assert first.get_text() == world.problem.names.state_name(0)[:30]
    assert first.get_text().isprintable()
    assert not first.get_parse_math()
    start = text.lstrip(ESC[0]).replace("\u202e", "\n").splitlines()[0].split()[0][:20]
    run = replace(run, agent=text)
    for draw, what in ((sf.plot_run, run), (sf.plot_returns, run), (sf.plot_plan, plan)):
        assert_text(draw(what, title=text), tmp_path, start)
    figure = sf.plot_returns(run)
    labels = figure.legends[0].get_texts()
    assert all(line.isprintable() for label in labels for line in label.get_text().split("\n"))
    assert not any(label.get_parse_math() for label in labels)
    # a long name leaves room for the picture
    assert figure.axes[0].get_position().width > 0.3


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
@pytest.mark.parametrize("text", SPOKEN.values(), ids=SPOKEN)
def test_candidates_and_units_are_drawn_as_text(text, tmp_path):
    guard = sf.Guard(floor=0.3, low=0.0, high=1.0, stages=(), unit=text)
    better = {text: sf.Outcomes([0.9, 1.0], [0.5, 0.5])}
    run = sf.simulate_guard(guard, sf.Outcomes([0.5, 1.0], [0.5, 0.5]), better, 400, seed=0)
    figure = sf.plot_run(run)
    assert_text(figure, tmp_path, text[:10])
    assert [bars.get_label().strip() for bars in figure.axes[1].containers] == ["baseline", text]
    assert text in guard.plan(run.state).explain()
    plan, mine = plan_and_run(sf.TabularMDP(WORLD.P, WORLD.r, units=sf.Units(0.0, 1.0, name=text)))
    for drawn in (sf.plot_run(mine), sf.plot_returns(mine), sf.plot_plan(plan)):
        assert_text(drawn, tmp_path, text[:10])


@pytest.mark.parametrize("text", ["one\ntwo", f"{ESC}red", "x" * 41, 3, None])
def test_units_that_are_no_word_are_refused(text):
    with pytest.raises(sf.InvalidModel, match=r"The name of the units is .*expected a word"):
        sf.Units(0.0, 1.0, name=text)
    with pytest.raises(sf.InvalidSetting, match=r"unit is .*expected a word"):
        sf.Guard(floor=0.4, low=0.0, high=1.0, unit=text)


def test_a_name_that_is_drawn_as_matplotlib_draws_it_breaks_the_picture(tmp_path):
    """The control: the plain way to write a label takes its dollars for a formula."""
    figure = plt.figure()
    figure.text(0.5, 0.5, DRAWN["broken formula"])
    with pytest.raises(ValueError, match="frac"):
        figure.savefig(tmp_path / "picture.png", dpi=30)
    plt.close(figure)
