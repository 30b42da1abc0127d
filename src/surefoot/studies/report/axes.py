"""What the figures of a study share: the cells to draw, axes by scenario or by cell, curves with
bands, legends.

matplotlib is imported when the first picture is drawn, and no global style is touched.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.agents.promise import UNCERTIFIED
from surefoot.base.arrays import Floats, Ints
from surefoot.errors import InvalidSetting
from surefoot.show.figures import (
    COLOURS,
    LINES,
    MARKERS,
    Line,
    finished,
    missing_letters_allowed,
    new_figure,
)
from surefoot.studies.analysis.stats import band
from surefoot.studies.analysis.trials import (
    Of,
    Trials,
    baseline_is_below,
    column,
    grouped,
    is_uncertified,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Scenario, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND = 36  # letters in a line of a legend below axes: two columns of them fit
HEADING = 105  # letters in a line above a figure
MOST_POINTS = 300  # of a curve: more cannot be distinguished in axes of five inches
MOST_NAMED = 6  # values of h in a legend
SCENARIOS_PER_ROW = 4  # where the axes are small
WIDTH = 10.0  # inches, of every picture
SMALL, MEDIUM, LARGE = 7.5, 8.5, 10.0  # sizes of letters
BELOW = 32.0  # points from axes down to their legend: past the numbers and the word below them
GREY = "#666666"
NO_BREAK = "\N{NO-BREAK SPACE}"
LEVELS = {"floor": "--", "baseline": "-.", "optimum": ":"}
FEW = 5  # trials of which a band shows all, not an interval of the mean


STYLE: Any = {  # of our pictures alone
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": LARGE,
    "axes.labelsize": MEDIUM,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "figure.titlesize": LARGE,
    "figure.labelsize": MEDIUM,
}


@dataclass(frozen=True)
class DrawnCell:
    """A cell that has trials, with what decides how it looks: the same in every picture of a
    study.
    """

    scenario: Scenario
    number: int  # of the agent in the study, which decides its colour
    label: str
    trials: tuple[Trial, ...]
    study: Study

    @property
    def by_factors(self) -> bool:
        """Is the axis of episodes logarithmic?"""
        return self.study.axis == "log"

    @property
    def colour(self) -> str:
        """The colour of the agent."""
        return COLOURS[self.number % len(COLOURS)]

    @property
    def line(self) -> Line:
        """The line style of the agent, for readers to whom colours look alike. There is one more
        than colours.
        """
        return LINES[self.number % len(LINES)]

    @property
    def marker(self) -> str:
        """The marker of the agent, where there are points and not a curve."""
        return MARKERS[self.number % len(MARKERS)]

    @property
    def counted(self) -> str:
        """The label, and how many trials there are where some are missing."""
        there, wanted = len(self.trials), self.study.trials
        return self.label if there == wanted else f"{self.label} ({there} of {wanted} trials)"

    def mean(self, of: Of) -> Any:
        """Return the mean over trials."""
        return np.mean(column(self.trials, of), axis=0)


def drawn_cells(results: Results) -> list[DrawnCell]:
    """Return the cells that have trials, in the order of the study."""
    study = results.study
    labels = {cell.agent.id: cell.label for cell in study.cells}
    found = []
    for cell in study.cells:
        trials = results.trials.get(cell.id, ())
        if not trials:
            continue
        label = cell.label
        if list(labels.values()).count(label) > 1:
            label += f" ({cell.agent.id})"
        if trials[0].knows_baseline_value:
            label += ", knows V^b"
        if any(map(is_uncertified, trials)):
            label += f", {UNCERTIFIED}"
        number = list(labels).index(cell.agent.id)
        found.append(DrawnCell(cell.scenario, number, label, trials, study))
    if not found:
        raise InvalidSetting(
            f"There is no trial of study {study.name!r} to draw in {results.path}. Run it first."
        )
    return found


def with_floor(results: Results) -> list[DrawnCell]:
    """Return the cells whose agent keeps a floor."""
    return [cell for cell in drawn_cells(results) if cell.trials[0].promise.keeps_floor]


def by_scenario(cells: Sequence[DrawnCell]) -> list[list[DrawnCell]]:
    """Return the cells of each scenario that has something to draw."""
    return list(grouped((cell.scenario.id, cell) for cell in cells).values())


def trials_of(cells: Sequence[DrawnCell]) -> list[Trial]:
    """Return the trials of all these cells."""
    return [trial for cell in cells for trial in cell.trials]


def one_world(results: Results) -> bool:
    """Are all scenarios of one world, so that their returns can be compared?"""
    first = results.study.scenarios[0]
    return all(
        one.world == first.world and one.world_seeds == first.world_seeds
        for one in results.study.scenarios
    )


def several_baselines(trials: Trials) -> bool:
    """Is the baseline another one in every trial: learnt from the trial's own log, or of its own
    world?
    """
    return trials[0].log_episodes is not None or len(set(column(trials, "optimum"))) > 1


def by_trial(trials: Trials, of: Of) -> Floats:
    """Return one value for each number of a trial: trials of the same number have the same
    scenario.
    """
    numbers = dict(zip(column(trials, "trial"), column(trials, of), strict=True))
    return np.array(list(numbers.values()))


def level(trials: Trials, of: Of) -> float:
    """Return a value that is the same in all trials; where there are several, the mean over
    trials.
    """
    values = by_trial(trials, of)
    return float(values[0] if (values == values[0]).all() else values.mean())


def bins_of(cell: DrawnCell) -> tuple[Ints, Ints, Ints]:
    """Return the first episode and the end of each point to draw, and the bin at which it begins.

    There are at most MOST_POINTS. Bins that are too many are pooled: equally many each, or, on a
    logarithmic axis, more and more.
    """
    trial = cell.trials[0]
    n = len(trial.curve_episode)
    if n <= MOST_POINTS:
        groups = np.arange(n)
    elif cell.by_factors:
        groups = np.unique(np.geomspace(1, n, MOST_POINTS).astype(np.int64)) - 1
        groups = groups[:-1]  # the last bin belongs to the point before
    else:
        groups = np.arange(MOST_POINTS) * n // MOST_POINTS
    first = trial.curve_episode[groups]
    return first, np.append(first[1:], trial.episodes), groups


def pool(values: Floats, weights: Ints, groups: Ints) -> Floats:
    """Return the means of pooled bins; a bin by itself stays what it is to the last bit."""
    if len(groups) == len(values):
        return values
    pooled: Floats = np.add.reduceat(values * weights, groups) / np.add.reduceat(weights, groups)
    return pooled


def figure_of(results: Results, height: float, more: str = "") -> "Figure":
    """Return a figure with its heading: the study, how many trials, what is missing, and what is
    NOT CERTIFIED.
    """
    study = results.study
    facts = [more] if more else []
    facts.append("1 trial per cell" if study.trials == 1 else f"{study.trials} trials per cell")
    if study.size == "quick":
        facts.append("quick")
    if results.missing > 0:
        facts.append(
            f"{results.missing:,} of {len(study.cells) * study.trials:,} trials are missing"
        )
    lines = [*in_lines(study.title, HEADING), *in_lines("; ".join(facts), HEADING)]
    scaled = {
        trial.label: trial.promise.why_uncertified
        for trial in results.every
        if is_uncertified(trial)
    }
    if scaled:
        agents = "; ".join(f"{label} ({why})" for label, why in scaled.items())
        lines += in_lines(f"{UNCERTIFIED}: {agents}", HEADING)
    figure = new_figure(WIDTH, height + 0.2 * len(lines))
    figure.suptitle("\n".join(lines))
    return figure


def picture(plot: "Callable[[Results], Figure | str]") -> "Callable[[Results], Figure]":
    """Give a figure our style, and end it with its layout fixed: a second layout would differ
    slightly from the first.

    A plot returns its figure, or, in words, why there is nothing to draw: then that is the picture.
    Results without any trial are refused.
    """

    @wraps(plot)
    def drawn(results: Results) -> "Figure":
        from matplotlib import rc_context

        drawn_cells(results)
        with rc_context(STYLE):
            figure = plot(results)
            if isinstance(figure, str):
                why, figure = figure, figure_of(results, 0.8)
                figure.text(0.5, 0.3, why, ha="center", va="center", fontsize=LARGE)
            for axes in figure.axes:
                # in the style it would be forgotten when the picture is written
                axes.tick_params(labelsize=SMALL)
            finished(figure)
            with missing_letters_allowed():
                figure.draw_without_rendering()
        figure.set_layout_engine("none")
        return figure

    return drawn


def axes_by_scenario(
    results: Results, ylabel: str
) -> tuple["Figure", list[tuple["Axes", list[DrawnCell]]]]:
    """Return large axes, two per row, each with the cells of a scenario."""
    several = by_scenario(drawn_cells(results))
    lines = max(map(len, several)) + 1
    headings = [cells[0].scenario.heading for cells in several]
    figure, grid = two_per_row(
        results, headings, ylabel, 3.2 + 0.15 * max(lines, 3), one_world(results)
    )
    for axes in grid:
        axes.set_xlabel("episode")
        thousands(axes.yaxis)
    return figure, list(zip(grid, several, strict=True))


def two_per_row(
    results: Results, titles: Sequence[str], ylabel: str, row_height: float, sharey: bool
) -> tuple["Figure", list["Axes"]]:
    """Return large axes, two per row, one for each title."""
    columns = min(2, len(titles))
    rows = math.ceil(len(titles) / columns)
    figure = figure_of(results, 0.3 + rows * row_height)
    grid = list(figure.subplots(rows, columns, sharey=sharey, squeeze=False).ravel())
    for axes in grid[len(titles) :]:
        axes.remove()
    for i, (axes, title) in enumerate(zip(grid, titles, strict=False)):
        axes.set_title("\n".join(in_lines(title, 120 // columns)))
        if i % columns == 0:
            axes.set_ylabel(ylabel)
    return figure, grid[: len(titles)]


def axes_by_cell(
    results: Results, cells: Sequence[DrawnCell], row_height: float, sharey: bool
) -> tuple["Figure", list[tuple["Axes", DrawnCell]]]:
    """Return small axes: a row per agent, a column per scenario; scenarios too many for a row go
    below, in blocks.
    """
    several = by_scenario(cells)
    numbers = sorted({cell.number for cell in cells})
    blocks = math.ceil(len(several) / SCENARIOS_PER_ROW)
    columns = math.ceil(len(several) / blocks)
    rows = blocks * len(numbers)
    figure = figure_of(results, 0.9 + rows * row_height + 0.3 * blocks)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    for axes in grid.flat:
        axes.set_axis_off()
    used: dict[Axes, DrawnCell] = {}
    for i, mine in enumerate(several):
        block, place = divmod(i, columns)
        top = block * len(numbers)
        column = grid[top : top + len(numbers), place]
        title = in_lines(mine[0].scenario.heading, 135 // columns)
        column[0].set_title("\n".join(title), fontsize=MEDIUM)
        column[-1].set_xlabel("episode", fontsize=SMALL)
        for cell in mine:
            axes = column[numbers.index(cell.number)]
            axes.set_axis_on()
            thousands(axes.yaxis)
            used[axes] = cell
    for row in grid:  # the agent is named at the first axes that is not empty
        axes = next(axes for axes in row if axes in used)
        flat = row_height < 1.0
        label = in_lines(used[axes].label, 18 if flat else 30)
        axes.set_ylabel("\n".join(label), fontsize=SMALL)
        if flat:  # the name is beside them, not along them
            axes.yaxis.label.set(rotation=0, ha="right", va="center")
    return figure, list(used.items())


def legend_of_all(figure: "Figure", handles: Sequence[Any], columns: int = 4) -> None:
    """Put one legend below all axes."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)


def draw_curve(
    axes: "Axes", cell: DrawnCell, x: Floats | Ints, curves: Floats, label: str
) -> tuple[Floats, Floats, Floats]:
    """Draw a mean and, where there is more than one trial, its band; of a few trials, all that they
    cover.

    Returns lie between bounds and switch: a t interval of two or three of them reaches where none
    can be.
    """
    mean, low, high = band(curves)
    if len(curves) < FEW:
        low, high = curves.min(axis=0), curves.max(axis=0)
    axes.plot(
        x, mean, color=cell.colour, ls=cell.line, lw=1.6, zorder=9 - 0.1 * cell.number, label=label
    )
    if len(curves) > 1:
        wide = high > low
        # Where it has no width there is nothing to fill; its neighbours close it.
        wide[:-1] |= wide[1:]
        wide[1:] |= wide[:-1]
        axes.fill_between(
            x, low, high, where=wide.tolist(), color=cell.colour, alpha=0.22, lw=0, zorder=2
        )
    return mean, low, high


def draw_levels(axes: "Axes", trials: Trials) -> list[float]:
    """Draw lines at the floor, the baseline and the optimum, and return where they are."""
    values = []
    for name, style in LEVELS.items():
        value = level(trials, name)
        label = f"{name} {value:.4g}"
        if name == "baseline" and several_baselines(trials):
            below = by_trial(trials, baseline_is_below)
            label += f" (mean of trials;\nbelow the floor in {below.sum()} of {len(below)})"
        axes.axhline(value, color=GREY, ls=style, lw=1.0, zorder=10, label=label)
        values.append(value)
    return values


def limit(
    axes: "Axes", drawn: Sequence[tuple[Floats, Floats, Floats]], levels: Sequence[float]
) -> None:
    """Set the range to fit all means and lines; a band as well, unless it is so wide that the means
    would be flat.

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
    ends += [
        other.get_ylim()
        for other in axes.get_shared_y_axes().get_siblings(axes)
        if not other.get_autoscaley_on()
    ]
    axes.set_ylim(min(end[0] for end in ends), max(end[1] for end in ends))


def episode_axis(axes: "Axes", cells: Sequence[DrawnCell]) -> None:
    """Set the axis of episodes: from the beginning, or logarithmic from the first point drawn."""
    most = max(column(trials_of(cells), "episodes"))
    if cells[0].by_factors:
        axes.set_xscale("log")
        axes.set_xlim(min(axes.dataLim.minposx, most / 2), most)
    else:
        axes.set_xlim(0, most)
    thousands(axes.xaxis)


def thousands(axis: Any) -> None:
    """Write 20M, not 2e7; and 0.5, not 500m."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    large = EngFormatter(sep="")
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: large(value) if abs(value) >= 1000.0 else f"{value:g}")
    )


def with_violations(cell: DrawnCell) -> str:
    """Return the words of the legend: the agent and its violations per run, mean over trials,
    all episodes counted.
    """
    total = sum(column(cell.trials, "violations"))
    mean = total / len(cell.trials)
    whole = mean >= 10.0 or total % len(cell.trials) == 0
    count = f"{mean:,.0f}" if whole else f"{mean:.2g}"
    words = f"{count} violation{'' if count == '1' else 's'}{' per run' if total > 0 else ''}"
    gap = " " if len(cell.counted + words) < LEGEND - 2 else "\n"
    return f"{cell.counted}:{gap}{words}"


def legend_below(axes: "Axes", agents: int) -> None:
    """Put the legend below the axes, where it hides nothing: agents on the left, lines on the
    right.
    """
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    down = ScaledTranslation(0.0, -BELOW / 72.0, figure.dpi_scale_trans)
    handles, labels = axes.get_legend_handles_labels()
    words = ["\n".join(in_lines(label, LEGEND)) for label in labels]
    missing = len(handles) - 2 * agents  # entries on the left, or, if negative, on the right
    at = agents if missing > 0 else len(handles)
    handles[at:at] = [Line2D([], [], ls="")] * abs(missing)
    words[at:at] = [""] * abs(missing)
    axes.legend(
        handles,
        words,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0.0,
        ncols=2,
        columnspacing=1.0,
        handlelength=1.8,
    )


def in_lines(text: str, width: int) -> list[str]:
    """Return lines of at most so many letters; the words NOT CERTIFIED stay in one line."""
    glued = text.replace(UNCERTIFIED, UNCERTIFIED.replace(" ", NO_BREAK))
    return [
        piece.replace(NO_BREAK, " ") for line in glued.splitlines() for piece in wrap(line, width)
    ]


def number_cells(axes: "Axes", S: int, A: int) -> None:
    """Put ticks at the middles of cells, numbered from 0."""
    for axis, n in ((axes.xaxis, A), (axes.yaxis, S)):
        every = math.ceil(n / 6)
        axis.set_ticks(np.arange(0, n, every) + 0.5, [str(i) for i in range(0, n, every)])


def colour_of(h: float, H: int) -> Any:
    """Return the colour of h: from yellow-green (0: the boldest) to dark violet (H: the
    baseline).
    """
    from matplotlib import colormaps

    return colormaps["viridis"](0.85 * (1.0 - h / H))


def h_handles(several: Sequence[int], shape: str, optimist: str, baseline: str) -> list[Any]:
    """Return legend entries for h = 0..H; where scenarios differ in H, or H is large, for its ends
    and between.

    Where there is no H, the two ends have no h.
    """
    from matplotlib.lines import Line2D

    if several:
        H, equal = max(several), min(several) == max(several)
        names: dict[float, str] = {
            0: shape.format(0) + optimist,
            H: shape.format(H if equal else "H") + baseline,
        }
        names |= (
            {h: shape.format(h) for h in range(1, H)}
            if equal and H < MOST_NAMED
            else {H / 2: "between"}
        )
    else:
        H, names = 1, {0: optimist.strip(" ()"), 1: baseline.strip(" ()")}
    return [Line2D([], [], color=colour_of(h, H), lw=1.4, label=names[h]) for h in sorted(names)]
