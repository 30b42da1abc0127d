"""What the figures of a study share: the cells to draw, axes by scenario or by cell, curves with bands, legends.

matplotlib is imported when the first picture is drawn, and no global style is touched.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.agents.promise import UNCERTIFIED
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.errors import InvalidSetting
from surefoot.show.figures import COLOURS, LINES, MARKERS, Line, finished, missing_letters_allowed, new_figure
from surefoot.studies.analysis.stats import band
from surefoot.studies.analysis.trials import is_uncertified
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Scenario

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


@dataclass(frozen=True)
class DrawnCell:
    """A cell that has trials, with what decides how it looks: the same in every picture of a study."""

    scenario: Scenario
    heading: str  # of the scenario
    number: int  # of the agent in the study, which decides its colour
    label: str
    trials: tuple[Trial, ...]
    wanted: int  # trials

    @property
    def colour(self) -> str:
        """The colour of the agent."""
        return COLOURS[self.number % len(COLOURS)]

    @property
    def line(self) -> Line:
        """The line style of the agent, for readers to whom colours look alike. There is one more than colours."""
        return LINES[self.number % len(LINES)]

    @property
    def marker(self) -> str:
        """The marker of the agent, where there are points and not a curve."""
        return MARKERS[self.number % len(MARKERS)]

    @property
    def counted(self) -> str:
        """The label, and how many trials there are where some are missing."""
        there = len(self.trials)
        return self.label if there == self.wanted else f"{self.label} ({there} of {self.wanted} trials)"


def drawn_cells(results: Results) -> list[DrawnCell]:
    """Return the cells that have trials, in the order of the study."""
    study = results.study
    labels = {cell.agent.id: cell.label for cell in study.cells}
    numbers = {agent.id: number for number, agent in enumerate(study.agents)}
    found = []
    for cell in study.cells:
        trials = results.trials.get(cell.id, ())
        if not trials:
            continue
        label = labels[cell.agent.id]
        if list(labels.values()).count(label) > 1:
            label += f" ({cell.agent.id})"
        if trials[0].knows_baseline_value:
            label += ", knows V^b"
        if any(map(is_uncertified, trials)):
            label += f", {UNCERTIFIED}"
        number = numbers[cell.agent.id]
        found.append(DrawnCell(cell.scenario, cell.scenario.heading, number, label, trials, study.trials))
    if not found:
        raise InvalidSetting(f"There is no trial of study {study.name!r} to draw in {results.path}. Run it first.")
    return found


def with_floor(cells: Sequence[DrawnCell]) -> list[DrawnCell]:
    """Return the cells whose agent keeps a floor."""
    return [cell for cell in cells if cell.trials[0].promise.keeps_floor]


def by_scenario(cells: Sequence[DrawnCell]) -> list[list[DrawnCell]]:
    """Return the cells of each scenario that has something to draw."""
    groups: dict[str, list[DrawnCell]] = {}
    for cell in cells:
        groups.setdefault(cell.scenario.id, []).append(cell)
    return list(groups.values())


def one_world(results: Results) -> bool:
    """Are all scenarios of one world, so that their returns can be compared?"""
    first = results.study.scenarios[0]
    return all(one.world == first.world and one.world_seeds == first.world_seeds for one in results.study.scenarios)


def several_baselines(trials: Sequence[Trial]) -> bool:
    """Is the baseline another one in every trial: learnt from the trial's own log, or of its own world?"""
    return trials[0].log_episodes is not None or len({trial.optimum for trial in trials}) > 1


def baselines(trials: Sequence[Trial]) -> Floats:
    """Return the value of the baseline of each trial; trials of the same number have the same baseline."""
    return np.array(list({trial.trial: trial.baseline for trial in trials}.values()))


def mean_baseline(trials: Sequence[Trial]) -> float:
    """Return the value of the baseline; where there are several, the mean over trials."""
    values = baselines(trials)
    return float(values.mean()) if several_baselines(trials) else float(values[0])


def mean_optimum(trials: Sequence[Trial]) -> float:
    """Return the value of the best policy; where trials are in several worlds, the mean over trials."""
    values = {trial.trial: trial.optimum for trial in trials}.values()
    return next(iter(values)) if len(set(values)) == 1 else float(np.mean(list(values)))


def bins_of(trials: Sequence[Trial], axis: str) -> tuple[Ints, Ints, Ints]:
    """Return the first episode and the end of each point to draw, and the bin at which it begins.

    There are at most MOST_POINTS. Bins that are too many are pooled: equally many each, or, on a logarithmic axis, more
    and more.
    """
    trial = trials[0]
    n = len(trial.curve_episode)
    if n <= MOST_POINTS:
        groups = np.arange(n)
    elif axis == "log":
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
    """Return a figure with its heading: the study, how many trials, what is missing, and what is NOT CERTIFIED."""
    study = results.study
    trials = [trial for some in results.trials.values() for trial in some]
    wanted = len(study.cells) * study.trials
    facts = [more] if more else []
    facts.append("1 trial per cell" if study.trials == 1 else f"{study.trials} trials per cell")
    if study.size == "quick":
        facts.append("quick")
    if len(trials) < wanted:
        facts.append(f"{wanted - len(trials):,} of {wanted:,} trials are missing")
    lines = [*in_lines(study.title, HEADING), *in_lines("; ".join(facts), HEADING)]
    scaled = {trial.label: trial.promise.why_uncertified for trial in trials if is_uncertified(trial)}
    if scaled:
        agents = "; ".join(f"{label} ({why})" for label, why in scaled.items())
        lines += in_lines(f"{UNCERTIFIED}: {agents}", HEADING)
    figure = new_figure(WIDTH, height + 0.2 * len(lines))
    figure.suptitle("\n".join(lines), fontsize=LARGE)
    return figure


def laid_out(figure: "Figure") -> "Figure":
    """Return the finished figure with its layout fixed: a second layout would differ slightly from the first."""
    finished(figure)
    with missing_letters_allowed():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def figure_of_nothing(results: Results, why: str) -> "Figure":
    """Return a picture that says why there is nothing to draw, in results that have trials."""
    drawn_cells(results)  # it refuses results without any
    figure = figure_of(results, 0.8)
    figure.text(0.5, 0.3, why, ha="center", va="center", fontsize=LARGE)
    return laid_out(figure)


def axes_by_scenario(results: Results, ylabel: str) -> tuple["Figure", list[tuple["Axes", list[DrawnCell]]]]:
    """Return large axes, two per row, each with the cells of a scenario."""
    several = by_scenario(drawn_cells(results))
    lines = max(map(len, several)) + 1
    headings = [cells[0].heading for cells in several]
    figure, grid = two_per_row(results, headings, ylabel, 3.2 + 0.15 * max(lines, 3), one_world(results))
    for axes in grid:
        axes.set_xlabel("episode", fontsize=MEDIUM)
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
        axes.set_title("\n".join(in_lines(title, 120 // columns)), fontsize=LARGE)
        if i % columns == 0:
            axes.set_ylabel(ylabel, fontsize=MEDIUM)
    return figure, grid[: len(titles)]


def axes_by_cell(
    results: Results, cells: Sequence[DrawnCell], row_height: float, sharey: bool
) -> tuple["Figure", list[tuple["Axes", DrawnCell]]]:
    """Return small axes: a row per agent, a column per scenario; scenarios too many for a row go below, in blocks."""
    several = by_scenario(cells)
    numbers = sorted({cell.number for cell in cells})
    blocks = math.ceil(len(several) / SCENARIOS_PER_ROW)
    columns = math.ceil(len(several) / blocks)
    rows = blocks * len(numbers)
    figure = figure_of(results, 0.9 + rows * row_height + 0.3 * blocks)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    used: list[tuple[Axes, DrawnCell]] = []
    named: set[int] = set()  # rows whose agent is named, at the first axes that is not empty
    for i in range(rows * columns):
        row, column = divmod(i, columns)
        block, line = divmod(row, len(numbers))
        axes = grid[row, column]
        at = block * columns + column
        mine = several[at] if at < len(several) else []
        cell = next((cell for cell in mine if cell.number == numbers[line]), None)
        if line == 0 and mine:
            axes.set_title("\n".join(in_lines(mine[0].heading, 135 // columns)), fontsize=MEDIUM)
        if line == len(numbers) - 1 and mine:
            axes.set_xlabel("episode", fontsize=SMALL)
        if cell is None:
            axes.set_axis_off()
            continue
        if row not in named:
            named.add(row)
            _name_row(axes, cell.label, flat=row_height < 1.0)
        thousands(axes.yaxis)
        used.append((axes, cell))
    return figure, used


def _name_row(axes: "Axes", label: str, flat: bool) -> None:
    """Name an agent at the left of its axes: beside flat axes, along others."""
    axes.set_ylabel(
        "\n".join(in_lines(label, 18 if flat else 30)),
        fontsize=SMALL,
        rotation=0 if flat else 90,
        ha="right" if flat else "center",
        va="center" if flat else "bottom",
    )


def draw_curve(
    axes: "Axes", cell: DrawnCell, x: Floats | Ints, curves: Floats, label: str
) -> tuple[Floats, Floats, Floats]:
    """Draw a mean and, where there is more than one trial, its band; of a few trials, all that they cover.

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
    """Draw lines at the floor, the baseline and the optimum, and return where they are."""
    floors = {trial.trial: trial.floor for trial in trials}
    floor = trials[0].floor if len(set(floors.values())) == 1 else float(np.mean(list(floors.values())))
    values = {"floor": floor, "baseline": mean_baseline(trials), "optimum": mean_optimum(trials)}
    for name, style in LEVELS.items():
        label = f"{name} {values[name]:.4g}"
        if name == "baseline" and several_baselines(trials):
            each = baselines(trials)
            below = int((each < np.array(list(floors.values())) - VIOLATION_TOLERANCE).sum())
            label += f" (mean of trials;\nbelow the floor in {below} of {len(each)})"
        axes.axhline(values[name], color=GREY, ls=style, lw=1.0, zorder=10, label=label)
    return list(values.values())


def limit(axes: "Axes", drawn: Sequence[tuple[Floats, Floats, Floats]], levels: Sequence[float]) -> None:
    """Set the range to fit all means and lines; a band as well, unless it is so wide that the means would be flat.

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


def episode_axis(axes: "Axes", cells: Sequence[DrawnCell], axis: str, first: float) -> None:
    """Set the axis of episodes: from the beginning, or logarithmic from the first point."""
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
    """Write 20M, not 2e7; and 0.5, not 500m."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    large = EngFormatter(sep="")
    axis.set_major_formatter(FuncFormatter(lambda value, _: large(value) if abs(value) >= 1000.0 else f"{value:g}"))


def with_violations(cell: DrawnCell) -> str:
    """Return the words of the legend: the agent and its violations per run, mean over trials, all episodes counted."""
    total = sum(trial.violations for trial in cell.trials)
    mean = total / len(cell.trials)
    whole = mean >= 10.0 or total % len(cell.trials) == 0
    count = f"{mean:,.0f}" if whole else f"{mean:.2g}"
    words = f"{count} violation" if count == "1" else f"{count} violations"
    if total > 0:
        words += " per run"
    gap = " " if len(cell.counted + words) < LEGEND - 2 else "\n"
    return f"{cell.counted}:{gap}{words}"


def legend_below(axes: "Axes", agents: int) -> None:
    """Put the legend below the axes, where it hides nothing: agents on the left, lines on the right."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    down = ScaledTranslation(0.0, -BELOW / 72.0, figure.dpi_scale_trans)
    handles, labels = axes.get_legend_handles_labels()
    entries = list(zip(handles, ["\n".join(in_lines(label, LEGEND)) for label in labels], strict=True))
    left, right = entries[:agents], entries[agents:]
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
    """Return lines of at most so many letters; the words NOT CERTIFIED stay in one line."""
    glued = text.replace(UNCERTIFIED, UNCERTIFIED.replace(" ", NO_BREAK))
    return [piece.replace(NO_BREAK, " ") for line in glued.splitlines() for piece in wrap(line, width)]


def number_cells(axes: "Axes", S: int, A: int) -> None:
    """Put ticks at the middles of cells, numbered from 0."""
    for axis, n in ((axes.xaxis, A), (axes.yaxis, S)):
        every = math.ceil(n / 6)
        axis.set_ticks(np.arange(0, n, every) + 0.5, [str(i) for i in range(0, n, every)])


def colour_of(h: int, H: int) -> Any:
    """Return the colour of h: from yellow-green (0: the boldest) to dark violet (H: the baseline)."""
    from matplotlib import colormaps

    return colormaps["viridis"](0.85 * (1.0 - h / H))


def h_handles(several: Sequence[int], shape: str, optimist: str, baseline: str, two: bool = False) -> list[Any]:
    """Return legend entries for h = 0..H; where scenarios differ in H, or H is large, for its ends and between."""
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
