"""What the figures of a study share: headings, axes by scenario or by cell, curves with bands, numbers, legends.

matplotlib is imported when the first picture is drawn, and no global style is touched.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.studies.analysis.stats import band
from surefoot.studies.report.series import (
    NOT_CERTIFIED,
    Shown,
    baselines,
    by_panel,
    learnt,
    mean_baseline,
    one_world,
    shown_cells,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND = 36  # letters in a line of a legend below axes: two columns of them fit
MOST_NAMED = 6  # values of h in a legend
PANELS_A_ROW = 4  # where the axes are small
WIDTH = 10.0  # inches, of every picture
DPI = 150
SMALL, MEDIUM, LARGE = 7.5, 8.5, 10.0  # sizes of letters
BELOW = 32.0  # points from axes down to their legend: past the numbers and the word below them
GREY = "#666666"
NO_BREAK = "\N{NO-BREAK SPACE}"
LEVELS = {"floor": "--", "baseline": "-.", "optimum": ":"}
FEW = 5  # trials of which a band shows all, not an interval of the mean


def new_figure(results: Results, height: float, more: str = "") -> "Figure":
    """A figure with its heading: the study, how many trials, what is missing, and what is NOT CERTIFIED."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    study = results.study
    wanted = len(study.cells) * study.trials
    facts = [
        more,
        f"{study.trials} trial{'s' * (study.trials != 1)} a cell",
        "quick" * (study.size == "quick"),
        f"{results.missing:,} of {wanted:,} trials are missing" * (results.missing > 0),
    ]
    lines = [*in_lines(study.title, 105), *in_lines("; ".join(fact for fact in facts if fact), 105)]
    scaled = {
        trial.label: trial.promise
        for trials in results.trials.values()
        for trial in trials
        if trial.promise.startswith(NOT_CERTIFIED)
    }
    if scaled:
        told = "; ".join(f"{label} ({promise.partition(': ')[2]})" for label, promise in scaled.items())
        lines += in_lines(f"{NOT_CERTIFIED}: {told}", 105)
    figure = Figure(figsize=(WIDTH, height + 0.2 * len(lines)), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("\n".join(lines), fontsize=LARGE)
    return figure


@contextmanager
def strange_letters_allowed() -> Iterator[None]:
    """Letters that the font does not have are drawn as boxes, and not complained of one by one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def finished(figure: "Figure") -> "Figure":
    """Lay it out once and for all: laid out again, it would come out a hair different.

    What people wrote is text: a dollar in a title begins no formula.
    """
    from matplotlib.text import Text

    ticks = {text for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in axis.get_ticklabels()}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in ticks:
            text.set_parse_math(False)
    with strange_letters_allowed():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def figure_of_nothing(results: Results, why: str) -> "Figure":
    """A picture that says why there is none."""
    figure = new_figure(results, 0.8)
    figure.text(0.5, 0.3, why, ha="center", va="center", fontsize=LARGE)
    return finished(figure)


def axes_by_panel(results: Results, ylabel: str) -> tuple["Figure", list[tuple["Axes", list[Shown]]]]:
    """Large axes, two a row, with the cells of a scenario each."""
    several = by_panel(results, shown_cells(results))
    columns = min(2, len(several))
    rows = math.ceil(len(several) / columns)
    lines = max(len(cells) for _, cells in several) + 1
    figure = new_figure(results, 0.3 + rows * (3.2 + 0.15 * max(lines, 3)))
    grid = figure.subplots(rows, columns, sharey=one_world(results), squeeze=False).ravel()
    for axes in grid[len(several) :]:
        axes.remove()
    places = []
    for i, (axes, (scenario, cells)) in enumerate(zip(grid, several, strict=False)):
        axes.set_title("\n".join(in_lines(scenario.heading, 120 // columns)), fontsize=LARGE)
        axes.set_xlabel("episode", fontsize=MEDIUM)
        if i % columns == 0:
            axes.set_ylabel(ylabel, fontsize=MEDIUM)
        thousands(axes.yaxis)
        places.append((axes, cells))
    return figure, places


def axes_by_cell(
    results: Results, cells: Sequence[Shown], row_height: float, sharey: bool
) -> tuple["Figure", list[tuple["Axes", Shown]]]:
    """Small axes: one row a learner, one column a scenario; panels that are too many for a row go below, in blocks."""
    several = by_panel(results, cells)
    names = list(dict.fromkeys(sorted(cell.number for cell in cells)))
    blocks = math.ceil(len(several) / PANELS_A_ROW)
    columns = math.ceil(len(several) / blocks)
    rows = blocks * len(names)
    figure = new_figure(results, 0.9 + rows * row_height + 0.3 * blocks)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    used: list[tuple[Axes, Shown]] = []
    named: set[int] = set()  # rows whose learner is told, at the first axes that is not empty
    for i in range(rows * columns):
        row, column = divmod(i, columns)
        block, line = divmod(row, len(names))
        axes = grid[row, column]
        place = block * columns + column
        _, mine = several[place] if place < len(several) else (None, [])
        cell = next((cell for cell in mine if cell.number == names[line]), None)
        if line == 0 and mine:
            axes.set_title("\n".join(in_lines(mine[0].scenario.heading, 135 // columns)), fontsize=MEDIUM)
        if line == len(names) - 1 and mine:
            axes.set_xlabel("episode", fontsize=SMALL)
        if cell is None:
            axes.set_axis_off()
            continue
        if row not in named:
            named.add(row)
            flat = row_height < 1.0
            axes.set_ylabel(
                "\n".join(in_lines(cell.label, 18 if flat else 30)),
                fontsize=SMALL,
                rotation=0 if flat else 90,
                ha="right" if flat else "center",
                va="center" if flat else "bottom",
            )
        thousands(axes.yaxis)
        used.append((axes, cell))
    return figure, used


def draw_curve(
    axes: "Axes", cell: Shown, x: Floats | Ints, curves: Floats, label: str
) -> tuple[Floats, Floats, Floats]:
    """A mean and, where there is more than one trial, its band; of a few trials, all that they cover.

    Returns lie between bounds and switch: a t interval of two or three of them reaches where none can be.
    """
    mean, low, high = band(curves)
    if len(curves) < FEW:
        low, high = curves.min(axis=0), curves.max(axis=0)
    axes.plot(x, mean, color=cell.colour, ls=cell.line, lw=1.6, zorder=9 - 0.1 * cell.number, label=label)
    if len(curves) > 1:
        wide = high > low
        # Where it has no width there is nothing to fill; its neighbours close it.
        wide[:-1] |= wide[1:]
        wide[1:] |= wide[:-1]
        axes.fill_between(x, low, high, where=wide.tolist(), color=cell.colour, alpha=0.22, lw=0, zorder=2)
    return mean, low, high


def draw_levels(axes: "Axes", trials: Sequence[Trial]) -> list[float]:
    """Lines at the floor, the baseline and the optimum, and where they are."""
    values = {"floor": trials[0].floor, "baseline": mean_baseline(trials), "optimum": trials[0].optimum}
    for name, style in LEVELS.items():
        said = f"{name} {values[name]:.4g}"
        if name == "baseline" and learnt(trials):
            each = baselines(trials)
            below = int((each < trials[0].floor - VIOLATION_TOLERANCE).sum())
            said += f" (mean of trials;\nbelow the floor in {below} of {len(each)})"
        axes.axhline(values[name], color=GREY, ls=style, lw=1.0, zorder=10, label=said)
    return list(values.values())


def limit(axes: "Axes", drawn: Sequence[tuple[Floats, Floats, Floats]], levels: Sequence[float]) -> None:
    """Room for all means and lines; for a band as well, unless it is so wide that the means would be flat.

    Axes that share their range get what all of them need.
    """
    means = [*levels, *(side for mean, _, _ in drawn for side in (mean.min(), mean.max()))]
    low, high = min(means), max(means)
    reach = 0.25 * (high - low)
    for _, under, over in drawn:
        if np.isfinite(under).all():
            low = min(low, max(float(under.min()), min(means) - reach))
            high = max(high, min(float(over.max()), max(means) + reach))
    margin = 0.04 * (high - low or 1.0)
    ends = [(low - margin, high + margin)]
    ends += [other.get_ylim() for other in axes.get_shared_y_axes().get_siblings(axes) if not other.get_autoscaley_on()]
    axes.set_ylim(min(end[0] for end in ends), max(end[1] for end in ends))


def episode_axis(axes: "Axes", cells: Sequence[Shown], axis: str, first: float) -> None:
    """The axis of episodes: from the beginning, or by factors from the first point."""
    most = max(trial.episodes for cell in cells for trial in cell.trials)
    if axis == "log":
        axes.set_xscale("log")
        axes.set_xlim(min(first, most / 2), most)
    else:
        axes.set_xlim(0, most)
    thousands(axes.xaxis)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)


def thousands(axis: Any) -> None:
    """20M, not 2e7; and 0.5, not 500m."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    large = EngFormatter(sep="")
    axis.set_major_formatter(FuncFormatter(lambda value, _: large(value) if abs(value) >= 1000.0 else f"{value:g}"))


def with_violations(cell: Shown) -> str:
    """What the legend says of a learner: violations a run, mean over trials, all episodes counted."""
    total = sum(trial.violations for trial in cell.trials)
    mean = total / len(cell.trials)
    whole = mean >= 10.0 or total % len(cell.trials) == 0
    count = f"{mean:,.0f}" if whole else f"{mean:.2g}"
    words = f"{count} violation{'s' * (count != '1')}{' a run' * (total > 0)}"
    return f"{cell.counted}:{' ' if len(cell.counted + words) < LEGEND - 2 else chr(10)}{words}"


def legend_below(axes: "Axes", learners: int) -> None:
    """Below the axes, where it hides nothing: learners on the left, lines on the right, neither too wide."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    down = ScaledTranslation(0.0, -BELOW / 72.0, figure.dpi_scale_trans)
    handles, labels = axes.get_legend_handles_labels()
    entries = list(zip(handles, ["\n".join(in_lines(label, LEGEND)) for label in labels], strict=True))
    left, right = entries[:learners], entries[learners:]
    none = (Line2D([], [], ls=""), "")
    rows = max(len(left), len(right))
    both = [column + [none] * (rows - len(column)) for column in (left, right)]
    axes.legend(
        [handle for column in both for handle, _ in column],
        [label for column in both for _, label in column],
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0.0,
        ncols=2,
        frameon=False,
        fontsize=SMALL,
        columnspacing=1.0,
        handlelength=1.8,
    )


def in_lines(text: str, width: int) -> list[str]:
    """Lines of so many letters at most; what says NOT CERTIFIED stays in one."""
    glued = text.replace(NOT_CERTIFIED, NOT_CERTIFIED.replace(" ", NO_BREAK))
    return [piece.replace(NO_BREAK, " ") for line in glued.splitlines() for piece in wrap(line, width)]


def number_cells(axes: "Axes", S: int, A: int) -> None:
    """Ticks at the middles of cells, numbered from 0."""
    for axis, n in ((axes.xaxis, A), (axes.yaxis, S)):
        every = math.ceil(n / 6)
        axis.set_ticks(np.arange(0, n, every) + 0.5, [str(i) for i in range(0, n, every)])


def colour_of(h: int, H: int) -> Any:
    """From yellow-green (0: the boldest) to dark violet (H: the baseline)."""
    from matplotlib import colormaps

    return colormaps["viridis"](0.85 * (1.0 - h / H))


def h_handles(several: Sequence[int], shape: str, optimist: str, baseline: str, two: bool = False) -> list[Any]:
    """Legend entries for h = 0..H; where panels differ in H, or H is large, for its ends and between."""
    from matplotlib.lines import Line2D

    def entry(h: int, H: int, name: str) -> Any:
        return Line2D([], [], color=colour_of(h, H), lw=1.4, label=name)

    if two:
        return [entry(0, 1, optimist.strip(" ()")), entry(1, 1, baseline.strip(" ()"))]
    H = max(several)
    end = str(H) if min(several) == H else "H"
    ends = entry(0, H, shape.format(0) + optimist), entry(H, H, shape.format(end) + baseline)
    if min(several) == H and H < MOST_NAMED:
        return [ends[0], *(entry(h, H, shape.format(h)) for h in range(1, H)), ends[1]]
    return [ends[0], entry(H, 2 * H, "between"), ends[1]]
