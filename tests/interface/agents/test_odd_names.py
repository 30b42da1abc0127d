"""Whatever states, actions, policies, units and titles are called: pictures and texts show it,
as text and no more.
"""

from dataclasses import replace

import pytest

import surefoot as sf

ESC = "\x1b[31m"
DRAWN = {
    "formula": "$x^2$",
    "no formula": r"$\frac{",
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


def agent_of(world):
    return sf.EpsMix(world.problem, WORLD.baseline, WORLD.suggested_floor)


def texts_of(figure):
    from matplotlib.text import Text

    return [text for text in figure.findobj(Text) if text.get_text()]


def assert_text(figure, tmp_path, shown):
    """The picture can be written, and what contains `shown` is no formula."""
    figure.savefig(tmp_path / "picture.png", dpi=30)
    found = [text for text in texts_of(figure) if shown in text.get_text().replace("\n", " ")]
    assert found and not any(text.get_parse_math() for text in found)


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
@pytest.mark.parametrize("text", DRAWN.values(), ids=DRAWN)
def test_states_actions_and_titles_are_drawn_as_text(text, tmp_path):
    world = named(text)
    agent = agent_of(world)
    run = sf.simulate(world, agent, 200, seed=0)
    figure = sf.plot_plan(agent.plan(run.counts), tmp_path / "plan.png")
    first = figure.axes[0].get_yticklabels()[0]
    expected = world.problem.names.state_name(0)[:30]
    assert first.get_text() == expected and not first.get_parse_math() and expected.isprintable()
    start = text.lstrip(ESC[0]).replace("\u202e", "\n").splitlines()[0].split()[0][:20]
    plan = agent.plan(run.counts)
    for draw, what in ((sf.plot_run, run), (sf.plot_returns, run), (sf.plot_plan, plan)):
        assert_text(draw(what, title=text), tmp_path, start)


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
@pytest.mark.parametrize("text", DRAWN.values(), ids=DRAWN)
def test_agents_are_in_the_legend_by_name(text, tmp_path):
    run = replace(sf.simulate(WORLD, agent_of(WORLD), 50, seed=0), agent=text)
    figure = sf.plot_returns(run, tmp_path / "returns.png")
    labels = [label.get_text() for label in figure.legends[0].get_texts()]
    assert len(labels) == 4 and all(
        part.isprintable() for label in labels for part in label.split("\n")
    )
    assert not any(label.get_parse_math() for label in figure.legends[0].get_texts())
    width = figure.axes[0].get_position().width
    assert width > 0.3  # a long name leaves room for the picture


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
@pytest.mark.parametrize("text", SPOKEN.values(), ids=SPOKEN)
def test_candidates_and_units_are_drawn_as_text(text, tmp_path):
    guard = sf.Guard(floor=0.3, low=0.0, high=1.0, stages=(), unit=text)
    paid, better = sf.Outcomes([0.5, 1.0], [0.5, 0.5]), sf.Outcomes([0.9, 1.0], [0.5, 0.5])
    run = sf.simulate_guard(guard, paid, {text: better}, 400, seed=0)
    figure = sf.plot_run(run)
    assert_text(figure, tmp_path, text[:10])
    assert [bars.get_label().strip() for bars in figure.axes[1].containers] == ["baseline", text]
    assert text in [label.get_text().strip() for label in figure.axes[1].get_legend().get_texts()]
    assert text in guard.plan(run.state).explain()
    world = sf.TabularMDP(WORLD.P, WORLD.r, units=sf.Units(0.0, 1.0, name=text))
    mine = sf.simulate(world, agent_of(world), 50, seed=0)
    for drawn in (
        sf.plot_run(mine),
        sf.plot_returns(mine),
        sf.plot_plan(agent_of(world).plan(mine.counts)),
    ):
        assert_text(drawn, tmp_path, text[:10])


@pytest.mark.parametrize("text", ["one\ntwo", f"{ESC}red", "x" * 41, 3, None])
def test_units_that_are_no_word_are_refused(text):
    with pytest.raises(sf.InvalidModel, match=r"The name of the units is .*expected a word"):
        sf.Units(0.0, 1.0, name=text)
    with pytest.raises(sf.InvalidSetting, match=r"unit is .*expected a word"):
        sf.Guard(floor=0.4, low=0.0, high=1.0, unit=text)
