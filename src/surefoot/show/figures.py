"""Pictures of runs. matplotlib is imported when the first one is drawn, and no global style is
touched.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from surefoot.base.files import as_path, system_errors_told
from surefoot.base.text import shortened
from surefoot.base.validation import told
from surefoot.errors import InvalidFile, InvalidSetting, printable
from surefoot.guard.forecast import RampForecast
from surefoot.run.forecast import Waiting
from surefoot.run.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE, LINE_OF_TWO = 85, 70  # characters below axes, alone and beside another
FORMATS = (".png", ".svg", ".pdf")
# Okabe and Ito: safe for colour blindness, in an order in which neighbours differ most. Line styles
# and markers say the same without colour; all differ from those of floor, baseline and optimum.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7")
GREY = "#666666"
Line = str | tuple[float, tuple[float, ...]]
LINES: tuple[Line, ...] = (
    "-",
    (0, (7, 1)),
    (0, (2.5, 0.8)),
    (0, (7, 1, 2.5, 1)),
    (0, (1.2, 0.6)),
    (0, (7, 1, 1.2, 1, 1.2, 1)),
    (0, (12, 1.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P")
LONGEST = 40  # characters of a name in a legend


def require_target(path: str | Path) -> Path:
    """Return the path of a picture: its ending says what to write, and its folder is made if it
    does not exist.
    """
    target = as_path(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidSetting(
            f"{target} ends in {target.suffix or 'nothing'!r}, expected one of "
            f"{', '.join(FORMATS)}."
        )
    with system_errors_told(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir() or not os.access(target.parent, os.W_OK):
            raise InvalidFile(f"{target} cannot be written: no permission. Choose another folder.")
    return target


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty picture of so many inches, which `finished` ends."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def finished(figure: "Figure", path: str | Path | None = None) -> "Figure":
    """Return the figure without frames, and write it to this path, if there is one.

    What people wrote is text: a dollar in a name begins no formula. The only formulas are 10^3 and
    so on along logarithmic axes.
    """
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatter

    formulas: set[object] = set()
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                formulas |= {*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in formulas:
            text.set_parse_math(False)
    for legend in figure.findobj(Legend):
        if isinstance(legend, Legend):
            legend.set_frame_on(False)
    if path is not None:
        target = require_target(path)
        with missing_letters_allowed(), system_errors_told(target):
            figure.savefig(target)
    return figure


@contextmanager
def missing_letters_allowed() -> Iterator[None]:
    """Draw letters that the font does not have as boxes, without a warning for each of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def heading(lines: Sequence[str], width: int) -> str:
    """Return what stands above a picture, in lines of at most `width` characters."""
    for text in lines:
        if not isinstance(text, str):
            raise InvalidSetting(f"title is {told(text)}, expected a text.")
    return "\n".join(wrapped((line for text in lines for line in text.splitlines()), width))


def wrapped(texts: Iterable[str], width: int) -> list[str]:
    """Return texts in lines of at most `width` characters. Broken by hand: a line wider than the
    axes would leave the picture on both sides.
    """
    return [line for text in texts for line in wrap(printable(text), width)]


def axis_of_episodes(axes: "Axes", texts: Iterable[str], width: int, fontsize: float = 8) -> None:
    """Call the axis one of episodes, with texts below it."""
    from matplotlib.ticker import EngFormatter

    axes.set_xlabel("\n".join(["episode", "", *wrapped(texts, width)]), fontsize=fontsize)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def with_unit(text: str, unit: str) -> str:
    """Return the name of an axis with its unit, if there is one."""
    return f"{text} ({unit})" if unit else text


def mark(draw: Callable[..., object], value: float, name: str, style: Line) -> None:
    """Draw a grey line at a value, across or upwards, with the value in the legend."""
    draw(value, color=GREY, ls=style, lw=1.0, zorder=0, label=f"{name} {value:.4g}")


def in_legend(name: str) -> str:
    """Return a name as a legend takes it: in one short line. Matplotlib leaves out labels that
    begin with _.
    """
    text = shortened(printable(name), LONGEST)
    return f" {text}" if text.startswith("_") else text


def plot_returns(
    runs: Run | Sequence[Run], path: str | Path | None = None, title: str = ""
) -> "Figure":
    """Draw the expected return per episode of each run, with floor, baseline and optimum;
    violations in the legend.

    All runs must be of one world and one floor. The promise of each is written below; if one of
    them is not certified, the title says so.
    """
    several = [runs] if isinstance(runs, Run) else runs
    if not isinstance(several, Sequence) or not all(isinstance(run, Run) for run in several):
        raise InvalidSetting(
            f"Expected a run, or a list of runs, as sf.simulate returns them, found {told(runs)}."
        )
    return _drawn([("", list(several))], path, title)


def plot_sides(
    sides: Sequence[tuple[str, Sequence[Run]]], path: str | Path | None = None, title: str = ""
) -> "Figure":
    """Draw `plot_returns` for several groups of runs in one world, each with a title and its own
    axis of episodes.
    """
    return _drawn([(name, list(runs)) for name, runs in sides], path, title)


def _drawn(sides: list[tuple[str, list[Run]]], path: str | Path | None, title: str) -> "Figure":
    everyone = [run for _, runs in sides for run in runs]
    if not everyone or not all(runs for _, runs in sides):
        raise InvalidSetting("There is no run to draw. Give at least one.")
    first = everyone[0]
    for run in everyone:
        both = first, run
        if len({(one.optimum, one.floor, one.budget) for one in both}) > 1:
            mine, its = (
                f"{one.agent} with {_limit_of(one)}, optimum {one.optimum}" for one in both
            )
            raise InvalidSetting(
                f"The runs are of different worlds or floors: {mine}; {its}. Draw those in "
                "separate figures; to hold an agent without a floor against one, give "
                "simulate(..., floor=...)."
            )
    figure = new_figure(8.2 if len(sides) == 1 else 11.5, 4.6)
    columns = figure.subplots(1, len(sides), sharey=True, squeeze=False)[0]
    for axes, (name, runs) in zip(columns, sides, strict=True):
        _draw(axes, runs, name)
    how = "observed" if first.optimum is None else "expected"
    columns[0].set_ylabel(with_unit(f"{how} return per episode", first.units.name))
    lines = [title] if title else []
    if any(run.promise.kind == "not certified" for run in everyone):
        lines.append("NOT CERTIFIED")
    if len(sides) == 1:
        columns[0].set_title(heading(lines, LINE_OF_TWO), fontsize=10)
        figure.legend(loc="outside right center", fontsize=8.5)
    else:
        figure.suptitle(heading(lines, LINE + LINE_OF_TWO), fontsize=10)
        for axes in columns:
            axes.legend(loc="best", fontsize=8)
    return finished(figure, path)


def plot_waiting(waiting: Waiting, path: str | Path | None = None, title: str = "") -> "Figure":
    """Draw forecast waiting times against the floor and against delta: off the baseline, and
    fully optimistic.
    """
    known = waiting.forecast
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, rows, here, name in (
        (left, waiting.by_floor, known.floor, with_unit("floor", known.unit)),
        (right, waiting.by_delta, waiting.delta, "delta: how likely the promise may fail"),
    ):
        for colour, what, label in (
            (COLOURS[0], "first_mixture", "off the baseline"),
            (COLOURS[1], "first_optimistic", "the optimistic policy alone"),
        ):
            points = [(x, getattr(outlook, what)) for x, outlook in rows]
            shown = [(x, max(k, 1)) for x, k in points if k is not None]
            if shown:
                axes.plot(*zip(*shown, strict=True), "o-", color=colour, ms=3.5, label=label)
        mark(axes.axvline, here, "now", "--")
        axes.set_xlabel(name, fontsize=9)
        axes.set_yscale("log")
        axes.legend(fontsize=8)
    right.set_xscale("log")
    mark(left.axvline, known.baseline, "baseline", "-.")
    left.legend(fontsize=8)
    left.set_ylabel("episodes, as forecast")
    above = title or f"{known.agent}, {known.grounds}: how long until ..."
    figure.suptitle(heading([above], LINE + LINE_OF_TWO), fontsize=10)
    return finished(figure, path)


def plot_ramp(ramp: RampForecast, path: str | Path | None = None, unit: str = "") -> "Figure":
    """Draw how many episodes a candidate needs to each stage of a guard, against its true value."""
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    for i, goal in enumerate(ramp.goals):
        shown = [(value, found[i]) for value, found in ramp.rows if found[i] is not None]
        over = len(ramp.goals) - 1 - i  # stages that are reached at once: thinner, above
        if shown:
            (line,) = axes.plot(
                *zip(*shown, strict=True),
                "o-",
                color=COLOURS[i % len(COLOURS)],
                label=f"{goal:.0%}",
            )
            line.set(markersize=3.5 + 1.5 * over, linewidth=1.5 + 1.0 * over)
    for value, name, style in ((ramp.floor, "floor", "--"), (ramp.baseline, "baseline", "-.")):
        mark(axes.axvline, value, name, style)
    axes.set_xlabel(with_unit("true value of the candidate", unit), fontsize=9)
    axes.set_ylabel("episodes to each stage, as forecast")
    axes.set_yscale("symlog", linthresh=1.0)  # 0 has a place: a stage may be reached at once
    axes.set_ylim(bottom=-0.1)
    axes.legend(fontsize=8)
    return finished(figure, path)


def _limit_of(run: Run) -> str:
    if run.budget is not None:
        return f"a budget of {run.budget:g}"
    return "no floor" if run.floor is None else f"floor {run.units.amount(run.floor)}"


def _words_of(run: Run) -> str:
    """Return what the legend says of a run's limit."""
    if run.violations is None:
        return "no floor" if run.floor is None and run.budget is None else "violations unknown"
    if run.budget is None:
        return f"{run.violations:,} below the floor"
    costs = f"largest cost {run.max_cost:.4g}, baseline {run.baseline_cost:.4g}"
    return f"{run.violations:,} over the budget\nof {run.budget:g} ({costs})"


def _draw(axes: "Axes", runs: list[Run], title: str) -> None:
    """Draw one group of runs."""
    optimum, floor = runs[0].optimum, runs[0].floor
    baseline = next((run.baseline for run in runs if run.baseline is not None), None)
    best = "optimum" if runs[0].budget is None else "best within budget"
    lines = [(optimum, best, ":"), (baseline, "baseline", "-."), (floor, "floor", "--")]
    for i, run in enumerate(runs):
        known = ", knows V^b" if run.knows_baseline_value else ""
        # A bin is drawn at its middle: the means of unequal first and last bins then stand where
        # they belong.
        middle = run.curve.episode + run.curve.episodes / 2
        axes.plot(
            middle,
            run.curve.mean,
            color=COLOURS[i % len(COLOURS)],
            ls=LINES[i % len(LINES)],
            lw=1.6,
            zorder=9 - i,
            label=f"{in_legend(run.agent)}{known}: {_words_of(run)}",
        )
    for value, name, style in lines:
        if value is not None:
            mark(axes.axhline, value, name, style)
    promises: dict[str, dict[str, None]] = {}
    for run in runs:
        promises.setdefault(run.promise_in_words, {})[run.agent] = None
    lines_of_text = (f"{', '.join(names)}: {promise}" for promise, names in promises.items())
    width, size = (LINE_OF_TWO, 7) if title else (LINE, 8)
    axis_of_episodes(axes, lines_of_text, width, size)
    axes.set_xlim(0, max(run.episodes for run in runs))
    if title:
        axes.set_title(heading([title], LINE_OF_TWO), fontsize=10)
