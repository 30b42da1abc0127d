"""Pictures of a study's results: panels as axes, learners as lines of a colour that is theirs in every picture.

Means are over trials, bands are pointwise 95 % intervals of those means. What is missing is not drawn, and the title
says how much that is. matplotlib is imported when the first picture is drawn, and no global style is touched.
"""

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.agents.plans import SOURCES
from surefoot.arrays import Floats, Ints
from surefoot.checks import VIOLATION_TOLERANCE
from surefoot.errors import InvalidSetting
from surefoot.figures import COLOURS, require_target
from surefoot.studies.spec import Panel
from surefoot.studies.stats import band, binomial_bounds
from surefoot.studies.store import Results
from surefoot.studies.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 300  # of a curve: more cannot be told apart in an axes of five inches
LEGEND = 36  # letters in a line of a legend below axes: two columns of them fit
MOST_STEPS = 8  # axes beside each other in a picture of visits
MOST_NAMED = 6  # values of h in a legend
MOST_VECTOR_CELLS = 4000  # of a heat map; with more, the picture of it is smaller than its outlines
PANELS_A_ROW = 4  # where the axes are small
WIDTH = 10.0  # inches, of every picture
DPI = 150
SMALL, MEDIUM, LARGE = 7.5, 8.5, 10.0  # sizes of letters
BELOW = 32.0  # points from axes down to their legend: past the numbers and the word below them
GREY, PLAYED = "#666666", "#B8B8B8"
# Baseline, mixture, optimistic: dark, middle and light, so that they differ in grey as well; Okabe and Ito's hues.
EXITS = ("#0B3C6F", "#D55E00", "#F0E442")
NO_FLOOR = "no floor promised"  # in the promise of a learner without one
NOT_CERTIFIED, NO_BREAK = "NOT CERTIFIED", "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Shown:
    """A cell of which there are trials."""

    panel: Panel
    number: int  # of the learner in the study, which decides its colour
    label: str
    trials: tuple[Trial, ...]
    wanted: int  # trials

    @property
    def colour(self) -> str:
        """The same in every picture of a study."""
        return COLOURS[self.number % len(COLOURS)]

    @property
    def counted(self) -> str:
        """The label, and how many trials there are where some are missing."""
        there = len(self.trials)
        return self.label if there == self.wanted else f"{self.label} ({there} of {self.wanted} trials)"

    @property
    def line(self) -> Any:
        """A style, for studies of more learners than there are colours."""
        return "-" if self.number < len(COLOURS) else (0, (4, 1.2))

    @property
    def floor(self) -> bool:
        """Does the learner keep a floor?"""
        return NO_FLOOR not in self.trials[0].promise


def plot_return(results: Results) -> "Figure":
    """Expected return per episode, with floor, baseline and optimum; violations in the legends."""
    figure, places = _places(results, "expected return per episode")
    for axes, cells in places:
        bins = [_bins(cell.trials, results.study.axis) for cell in cells]
        drawn = []
        for cell, (first, end, groups) in zip(cells, bins, strict=True):
            curves = [_pooled(trial.curve_mean, trial.curve_episodes, groups) for trial in cell.trials]
            # A bin stands at its middle; on an axis by factors episode 0 is the first.
            middle = (first + end) / 2 + 0.5 * (results.study.axis == "log")
            drawn.append(_curve(axes, cell, middle, np.array(curves), _with_violations(cell)))
        levels = _levels(axes, [trial for cell in cells for trial in cell.trials])
        _limit(axes, drawn, levels)
        _episodes(axes, cells, results.study.axis, min(float(first[0] + end[0]) / 2 + 0.5 for first, end, _ in bins))
        _legend_below(axes, len(cells))
    return _finished(figure)


def plot_regret(results: Results) -> "Figure":
    """Cumulative regret, and that of the baseline alone."""
    figure, places = _places(results, "regret so far, in return")
    for axes, cells in places:
        drawn, lowest = [], math.inf
        for cell in cells:
            _, end, groups = _bins(cell.trials, results.study.axis)
            last = np.append(groups[1:], len(cell.trials[0].curve_regret)) - 1
            curves = np.array([trial.curve_regret[last] for trial in cell.trials])
            drawn.append(_curve(axes, cell, end, curves, cell.counted))
            lowest = min(lowest, float(end[0]))
        trials = [trial for cell in cells for trial in cell.trials]
        most = max(trial.episodes for trial in trials)
        # Points by equal factors, as an axis of one kind needs two and of the other many.
        k = np.geomspace(lowest, most, 60)
        loss = trials[0].optimum - _mean_baseline(trials)
        among = " (mean of trials)" * _learnt(trials)
        axes.plot(k, loss * k, color=GREY, ls="-.", lw=1.0, zorder=10, label=f"baseline alone{among}")
        if results.study.axis == "log":
            axes.set_yscale("log")
            positive = [mean[mean > 0] for mean, _, _ in drawn]
            ends = [*(side for mean in positive if len(mean) for side in (mean.min(), mean.max())), loss * most]
            ends = [end for end in ends if end > 0]
            if ends:
                axes.set_ylim(min(ends) / 2, max(ends) * 2)
            _thousands(axes.yaxis)
        else:
            _limit(axes, drawn, [0.0, loss * most])
        _episodes(axes, cells, results.study.axis, lowest)
        _legend_below(axes, len(cells))
    return _finished(figure)


def plot_ribbon(results: Results) -> "Figure":
    """Which exit was taken: shares of baseline, mixture and optimistic over the episodes."""
    from matplotlib.patches import Patch

    figure, grid = _grid(results, _shown(results), row_height=0.62, sharey=True)
    for axes, cell in grid:
        trial = cell.trials[0]
        first, end, groups = _bins(cell.trials, results.study.axis)
        sources = np.mean([some.curve_sources for some in cell.trials], axis=0)
        shares = np.add.reduceat(sources, groups, axis=0)
        shares /= shares.sum(axis=1, keepdims=True)
        # Stretches without a change are one piece.
        begins = np.append(0, 1 + np.flatnonzero((np.diff(shares, axis=0) != 0.0).any(axis=1)))
        edges = np.append(first[begins], trial.episodes) + (results.study.axis == "log")
        tops = np.vstack([np.zeros(len(begins)), np.cumsum(shares[begins], axis=1).T])
        tops = np.hstack([tops, tops[:, -1:]])
        for i, colour in enumerate(EXITS):
            axes.fill_between(edges, tops[i], tops[i + 1], step="post", color=colour, lw=0)
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        _episodes(axes, [cell], results.study.axis, float(end[0]) / 2 + 0.5)
        axes.spines[["left"]].set_visible(False)
    figure.legend(
        handles=[Patch(color=colour, label=name) for colour, name in zip(EXITS, SOURCES, strict=True)],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=MEDIUM,
    )
    return _finished(figure)


def plot_certificates(results: Results) -> "Figure":
    """What the data prove of the candidates, against the floor; learners with a floor only."""
    from matplotlib.lines import Line2D

    cells = [cell for cell in _shown(results) if cell.floor]
    if not cells:
        return _nothing(results, "No learner of this study promises a floor: there are no certificates to draw.")
    figure, grid = _grid(results, cells, row_height=2.2, sharey=_one_world(results))
    log = results.study.axis == "log"
    for axes, cell in grid:
        H = cell.trials[0].H
        k, lower, upper, candidates = _traces(cell.trials)
        x = k + float(log)
        for h0, values in _by_h0(candidates, H).items():
            axes.plot(x, values, color=_colour_of(h0, H), lw=0.9, zorder=3)
        axes.plot(x, upper, color="#999999", lw=0.9, zorder=1)
        axes.plot(x, lower, color=PLAYED, lw=3.6, zorder=2)
        levels = _levels(axes, list(cell.trials))
        _episodes(axes, [cell], results.study.axis, float(x[0]))
        # The upper value begins at the most that can be paid, often far above: it comes in from there.
        low = min(*levels, float(candidates.min(initial=math.inf)), float(lower.min()))
        _limit(axes, [], [low, min(float(upper.max()), max(levels) + 0.35 * (max(levels) - low))])
    several = [H for H in (_h_of(cell) for cell in cells) if H is not None]
    handles = [
        Line2D([], [], color=PLAYED, lw=3.6, label="lower value of what would be played"),
        *_h_handles(several, "h0 = {}", optimist=" (optimist)", baseline=" (baseline)", two=not several),
        Line2D([], [], color="#999999", lw=0.9, label="upper value: no policy is worth more"),
        *(Line2D([], [], color=GREY, ls=style, lw=1.0, label=name) for name, style in LEVELS.items()),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL)
    figure.supylabel("return", fontsize=MEDIUM)
    return _finished(figure)


def plot_coverage(results: Results) -> "Figure":
    """Visits of every pair at the end, in the first panel that has trials; hatched: never visited in any trial."""
    from matplotlib.colors import LogNorm

    cells = _shown(results)
    cells = [cell for cell in cells if cell.panel.id == cells[0].panel.id]
    means = [np.mean([trial.n_sa for trial in cell.trials], axis=0) for cell in cells]
    columns = min(MOST_STEPS, max(len(mean) for mean in means))
    S, A = means[0].shape[1:]
    figure = _figure(results, 1.0 + len(cells) * min(2.2, max(1.1, 0.8 + 0.12 * S)), _panel_title(cells[0].panel))
    grid = figure.subplots(len(cells), columns, squeeze=False)
    seen = np.concatenate([mean[mean > 0] for mean in means])
    norm = LogNorm(seen.min(), max(seen.max(), seen.min() * 1.01))
    for row, cell, mean in zip(grid, cells, means, strict=True):
        H = len(mean)
        steps = np.unique(np.rint(np.linspace(0, H - 1, min(H, columns))).astype(int))
        for axes in row[len(steps) :]:
            axes.remove()
        for axes, h in zip(row, steps, strict=False):
            axes.patch.set(facecolor="white", edgecolor="#BBBBBB", hatch="////")
            mesh = axes.pcolormesh(
                np.ma.masked_equal(mean[h], 0.0), norm=norm, cmap="viridis", edgecolors="face", linewidth=0.3
            )
            mesh.set_rasterized(H * S * A * len(cells) > MOST_VECTOR_CELLS)
            _number_cells(axes, S, A)
            axes.tick_params(labelsize=SMALL, length=2)
            axes.set_title("all steps" if H == 1 and cell.trials[0].H > 1 else f"step {h + 1} of {H}", fontsize=SMALL)
            if axes is row[0]:
                axes.set_ylabel("\n".join([*_lines(cell.label, 22), "state"]), fontsize=SMALL)
            else:
                axes.set_yticklabels([])
            if cell is cells[-1]:
                axes.set_xlabel("action", fontsize=SMALL)
    bar = figure.colorbar(mesh, ax=list(figure.axes), shrink=0.8, aspect=30, pad=0.01)
    bar.set_label("visits (mean over trials); hatched: none", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    return _finished(figure)


def plot_by_h(results: Results) -> "Figure":
    """Episodes so far at each h, from 0 (the optimist) to H (the baseline); learners with a floor only."""
    cells = [cell for cell in _shown(results) if cell.floor]
    if not cells:
        return _nothing(results, "No learner of this study promises a floor: there is no h to count.")
    same = len({cell.trials[0].episodes for cell in cells}) == 1
    figure, grid = _grid(results, cells, row_height=2.2, sharey=same)
    log = results.study.axis == "log"
    for axes, cell in grid:
        H = cell.trials[0].H
        _, end, groups = _bins(cell.trials, results.study.axis)
        last = np.append(groups[1:], len(cell.trials[0].curve_episode)) - 1
        so_far = np.mean([np.cumsum(trial.curve_by_h, axis=0)[last] for trial in cell.trials], axis=0)
        for h in range(H + 1):
            counts = np.where(so_far[:, h] > 0, so_far[:, h], np.nan) if log else so_far[:, h]
            axes.plot(end, counts, color=_colour_of(h, H), lw=1.6, zorder=3 + (h == 0))
        if log:
            axes.set_yscale("log")
        _episodes(axes, [cell], results.study.axis, float(end[0]))
        _thousands(axes.yaxis)
    handles = _h_handles([cell.trials[0].H for cell in cells], "h = {}", " (optimist)", " (baseline, or mixed with it)")
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL)
    figure.supylabel("episodes so far", fontsize=MEDIUM)
    return _finished(figure)


def plot_violations(results: Results) -> "Figure":
    """Violations a run, and runs that violate, against the number of episodes in the log."""
    from matplotlib.ticker import PercentFormatter

    series = _log_series([cell for cell in _shown(results) if cell.panel.log is not None])
    if not series:
        return _nothing(results, "No panel of this study has a log: there is nothing to draw violations against.")
    figure = _figure(results, 1.2 + 3.4 * len(series))
    rows = figure.subplots(len(series), 2, squeeze=False)
    for (left, right), (title, cells) in zip(rows, series.items(), strict=True):
        names = list(dict.fromkeys(cell.number for cell in cells))
        for i, number in enumerate(names):
            mine = sorted((cell for cell in cells if cell.number == number), key=_log_size)
            x = np.array([_log_size(cell) for cell in mine], dtype=np.float64)
            violations = [[trial.violations for trial in cell.trials] for cell in mine]
            beside = x * 1.06 ** (i - (len(names) - 1) / 2)  # so that they do not hide each other
            first, means = mine[0], [np.mean(some) for some in violations]
            left.plot(beside, means, "o-", color=first.colour, ms=4, lw=1.2, label=first.label)
            every = [(size, n) for size, some in zip(beside, violations, strict=True) for n in some]
            left.plot(*np.array(every).T, "o", color=first.colour, ms=2.5, alpha=0.3, mec="none")
            bad = [sum(n > 0 for n in some) for some in violations]
            shares = np.array([k / len(some) for k, some in zip(bad, violations, strict=True)])
            bounds = np.array([binomial_bounds(k, len(some)) for k, some in zip(bad, violations, strict=True)]).T
            right.errorbar(
                beside,
                shares,
                yerr=np.abs(bounds - shares),
                fmt="o-",
                color=first.colour,
                ms=4,
                lw=1.2,
                elinewidth=0.9,
                capsize=2,
            )
        left.set_yscale("symlog", linthresh=1.0)
        left.set_ylim(-0.3, max(10.0, 2.0 * max(trial.violations for cell in cells for trial in cell.trials)))
        left.set_ylabel("violations a run (dots: single runs)", fontsize=MEDIUM)
        right.set_ylim(-0.04, 1.04)
        right.yaxis.set_major_formatter(PercentFormatter(1.0))
        right.set_ylabel("runs that violate, with exact 95 % bounds", fontsize=MEDIUM)
        sizes = sorted({_log_size(cell) for cell in cells})
        for axes in (left, right):
            axes.set_xscale("log")
            if len(sizes) <= PANELS_A_ROW * 2:
                axes.set_xticks(sizes)
                axes.minorticks_off()
            axes.set_xlabel("episodes in the log", fontsize=MEDIUM)
            _thousands(axes.xaxis)
            axes.tick_params(labelsize=SMALL)
            axes.spines[["top", "right"]].set_visible(False)
        _thousands(left.yaxis)
        left.set_title(title, fontsize=LARGE, loc="left")
    named = [row[0].get_legend_handles_labels() for row in rows]
    handles = {label: handle for some in named for handle, label in zip(*some, strict=True)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
    )
    return _finished(figure)


FIGURES: dict[str, Callable[[Results], "Figure"]] = {
    "return": plot_return,
    "regret": plot_regret,
    "ribbon": plot_ribbon,
    "certificates": plot_certificates,
    "coverage": plot_coverage,
    "by-h": plot_by_h,
    "violations": plot_violations,
}
CAPTIONS: dict[str, str] = {
    "return": (
        "Expected return of the policies played, exact, not sampled: the mean over trials with its 95 % band. A point "
        "is a mean over many episodes, so single violations do not show in a curve; the legend counts every one."
    ),
    "regret": (
        "What was lost against the optimum so far: the mean over trials with its 95 % band. Below the line of the "
        "baseline alone, learning has paid."
    ),
    "ribbon": (
        "What was played when: the baseline alone, a mixture with the optimist, or the optimist alone; shares of the "
        "episodes, mean over trials."
    ),
    "certificates": (
        "Lower values of the candidates' returns, mean over trials: proved from the data, unless the learner is NOT "
        "CERTIFIED. The boldest candidate that has reached the floor is played, mixed with its bolder neighbour where "
        "the algorithm mixes; until there is one, the baseline is played on trust."
    ),
    "coverage": (
        "How often each pair of state and action was visited by the end, in the first panel: the mean over trials on a "
        "scale of factors. Hatched pairs were never visited."
    ),
    "by-h": (
        "Episodes so far at each h, mean over trials: h = 0 is the optimist alone, h = H the baseline or a mixture "
        "with it. The paper's lemma says that the counts of h > 0 stop growing."
    ),
    "violations": (
        "Episodes below the floor in a run, and how many runs have any, where the baseline was learnt from a log of so "
        "many episodes. Bars are exact binomial 95 % bounds."
    ),
}
LEVELS = {"floor": "--", "baseline": "-.", "optimum": ":"}


def save_svg(figure: "Figure", salt: str = "figure") -> str:
    """The SVG element of a figure, for a page: the same figure and salt give the same bytes.

    Figures with different salts can stand on one page: ids begin with the salt. Letters are drawn as paths, so that the
    picture is the same where our font is not installed and nothing comes to overlap.
    """
    import matplotlib

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", salt):
        raise InvalidSetting(f"salt is {salt!r}, expected a letter, then letters, digits, _ or -: ids begin with it.")
    written = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path", "svg.image_inline": True}):
        figure.savefig(written, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)  # a title may hold what ends a comment in HTML
    text = text.replace(">*{", f">#{salt}-figure_1 *{{")  # a style for this picture, not for the whole page
    text = re.sub(r'\bid="', f'id="{salt}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{salt}-", text)
    # A hundredth of a point is less than anybody sees, and half of the bytes.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"-?\d+\.\d{3,}", _hundredth, path[0]), text)
    return text.replace("<svg ", '<svg role="img" style="max-width: 100%; height: auto" ', 1)


def _hundredth(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def save_png(figure: "Figure", path: str | Path) -> Path:
    """The figure as a PNG file; the same figure gives the same bytes."""
    target = require_target(path)
    if target.suffix.lower() != ".png":
        raise InvalidSetting(f"{target} ends in {target.suffix!r}, expected .png.")
    figure.savefig(target, format="png", metadata={"Software": None})
    return target


# ---------------------------------------------------------------------------------------------------------------------
# What there is to draw
# ---------------------------------------------------------------------------------------------------------------------


def _shown(results: Results) -> list[Shown]:
    """The cells that have trials, in the study's order."""
    study = results.study
    labels = {cell.learner.id: cell.label for cell in study.cells}
    found = []
    for cell in study.cells:
        trials = results.of(cell.panel.id, cell.learner.id)
        if not trials:
            continue
        label = labels[cell.learner.id]
        if list(labels.values()).count(label) > 1:
            label += f" ({cell.learner.id})"
        label += ", told V^b" * trials[0].told
        label += f", {NOT_CERTIFIED}" * any(trial.promise.startswith(NOT_CERTIFIED) for trial in trials)
        number = [learner.id for learner in study.learners].index(cell.learner.id)
        found.append(Shown(cell.panel, number, label, trials, study.trials))
    if not found:
        raise InvalidSetting(f"There is no trial of study {study.name!r} to draw in {results.path}. Run it first.")
    return found


def _panels(results: Results, cells: Sequence[Shown]) -> list[tuple[Panel, list[Shown]]]:
    """By panel, those that have something to show."""
    several = [(panel, [cell for cell in cells if cell.panel.id == panel.id]) for panel in results.study.panels]
    return [(panel, some) for panel, some in several if some]


def _one_world(results: Results) -> bool:
    """Are all panels of one world, so that their returns can be compared?"""
    return all(panel.world == results.study.panels[0].world for panel in results.study.panels)


def _panel_title(panel: Panel) -> str:
    return panel.title or panel.id


def _learnt(trials: Sequence[Trial]) -> bool:
    """Was the baseline learnt from a log, and so another one in every trial?"""
    return trials[0].log_episodes is not None


def _baselines(trials: Sequence[Trial]) -> Floats:
    """What the baseline of each trial is worth; trials of the same number have the same one."""
    return np.array(list({trial.trial: trial.baseline for trial in trials}.values()))


def _mean_baseline(trials: Sequence[Trial]) -> float:
    values = _baselines(trials)
    return float(values.mean()) if _learnt(trials) else float(values[0])


def _with_violations(cell: Shown) -> str:
    """What the legend says of a learner: violations a run, mean over trials, all episodes counted."""
    total = sum(trial.violations for trial in cell.trials)
    mean = total / len(cell.trials)
    whole = mean >= 10.0 or total % len(cell.trials) == 0
    count = f"{mean:,.0f}" if whole else f"{mean:.2g}"
    words = f"{count} violation{'s' * (count != '1')}{' a run' * (total > 0)}"
    return f"{cell.counted}:{' ' if len(cell.counted + words) < LEGEND - 2 else chr(10)}{words}"


def _bins(trials: Sequence[Trial], axis: str) -> tuple[Ints, Ints, Ints]:
    """First episode and end of each point to draw, and the bin at which it begins: at most MOST_POINTS of them.

    Bins of the curve that are too many are pooled: equally many each, or, on an axis by factors, more and more.
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


def _pooled(values: Floats, weights: Ints, groups: Ints) -> Floats:
    """Means of bins, pooled; a bin by itself stays what it is to the last bit."""
    if len(groups) == len(values):
        return values
    pooled: Floats = np.add.reduceat(values * weights, groups) / np.add.reduceat(weights, groups)
    return pooled


def _traces(trials: Sequence[Trial]) -> tuple[Ints, Floats, Floats, Floats]:
    """Checkpoints, and the means of lower, upper and candidates (checkpoints, candidates) there.

    Trials whose checkpoints are not the same (blocks of other lengths) are interpolated at those of the first.
    """
    k = trials[0].trace_episode

    def at(trial: Trial, values: Floats) -> Floats:
        same = np.array_equal(trial.trace_episode, k)
        return values if same else np.interp(k, trial.trace_episode, values)

    lower = np.mean([at(trial, trial.trace_lower) for trial in trials], axis=0)
    upper = np.mean([at(trial, trial.trace_upper) for trial in trials], axis=0)
    columns = [
        np.mean([at(trial, trial.trace_candidates[:, c]) for trial in trials], axis=0)
        for c in range(trials[0].trace_candidates.shape[1])
    ]
    return k, lower, upper, np.column_stack(columns) if columns else np.zeros((len(k), 0))


def _by_h0(candidates: Floats, H: int) -> dict[int, Floats]:
    """Each candidate by its h0. A single one is what is played, and is drawn as that."""
    n = candidates.shape[1]
    h0 = {H + 1: list(range(H + 1)), 2: [0, H]}.get(n, [])
    return dict(zip(h0, candidates.T, strict=True)) if h0 else {}


def _h_of(cell: Shown) -> int | None:
    """H, where the learner has a candidate for every h0; None: it has two, or one."""
    trial = cell.trials[0]
    return trial.H if trial.trace_candidates.shape[1] == trial.H + 1 else None


def _log_size(cell: Shown) -> int:
    return 0 if cell.panel.log is None else cell.panel.log.episodes


def _log_series(cells: Sequence[Shown]) -> dict[str, list[Shown]]:
    """Panels that differ in the size of their log only, by what they have in common and others have not."""

    def facts(panel: Panel) -> dict[str, str]:
        log = panel.log
        assert log is not None
        world = ", ".join(f"{key} = {value}" for key, value in panel.world.items() if key != "name")
        written = log.behaviour if isinstance(log.behaviour, str) else f"{log.behaviour[0]} = {log.behaviour[1]:g}"
        return {
            "world": f"{panel.world['name']} ({world})" if world else str(panel.world["name"]),
            "behaviour": f"behaviour {written}",
            "method": log.method,
            "floor": f"floor {panel.floor if isinstance(panel.floor, str) else format(panel.floor, 'g')}",
            "episodes": f"{panel.episodes:,} episodes" if panel.episodes else "",
        }

    every = [facts(cell.panel) for cell in cells]
    telling = [key for key in (every[0] if every else ()) if len({some[key] for some in every}) > 1]
    series: dict[str, list[Shown]] = {}
    for cell, some in zip(cells, every, strict=True):
        series.setdefault(", ".join(some[key] for key in telling if some[key]), []).append(cell)
    return series


# ---------------------------------------------------------------------------------------------------------------------
# How it is drawn
# ---------------------------------------------------------------------------------------------------------------------


def _figure(results: Results, height: float, more: str = "") -> "Figure":
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
    lines = [*_lines(study.title, 105), *_lines("; ".join(fact for fact in facts if fact), 105)]
    scaled = {
        trial.label: trial.promise
        for trials in results.trials.values()
        for trial in trials
        if trial.promise.startswith(NOT_CERTIFIED)
    }
    if scaled:
        told = "; ".join(f"{label} ({promise.partition(': ')[2]})" for label, promise in scaled.items())
        lines += _lines(f"{NOT_CERTIFIED}: {told}", 105)
    figure = Figure(figsize=(WIDTH, height + 0.2 * len(lines)), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("\n".join(lines), fontsize=LARGE)
    return figure


def _finished(figure: "Figure") -> "Figure":
    """Lay it out once and for all: laid out again, it would come out a hair different."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _nothing(results: Results, why: str) -> "Figure":
    """A picture that says why there is none."""
    figure = _figure(results, 0.8)
    figure.text(0.5, 0.3, why, ha="center", va="center", fontsize=LARGE)
    return _finished(figure)


def _places(results: Results, ylabel: str) -> tuple["Figure", list[tuple["Axes", list[Shown]]]]:
    """Large axes, two a row, with the cells of a panel each."""
    several = _panels(results, _shown(results))
    columns = min(2, len(several))
    rows = math.ceil(len(several) / columns)
    lines = max(len(cells) for _, cells in several) + 1
    figure = _figure(results, 0.3 + rows * (3.2 + 0.15 * max(lines, 3)))
    grid = figure.subplots(rows, columns, sharey=_one_world(results), squeeze=False).ravel()
    for axes in grid[len(several) :]:
        axes.remove()
    places = []
    for i, (axes, (panel, cells)) in enumerate(zip(grid, several, strict=False)):
        axes.set_title("\n".join(_lines(_panel_title(panel), 120 // columns)), fontsize=LARGE)
        axes.set_xlabel("episode", fontsize=MEDIUM)
        if i % columns == 0:
            axes.set_ylabel(ylabel, fontsize=MEDIUM)
        _thousands(axes.yaxis)
        places.append((axes, cells))
    return figure, places


def _grid(
    results: Results, cells: Sequence[Shown], row_height: float, sharey: bool
) -> tuple["Figure", list[tuple["Axes", Shown]]]:
    """Small axes: one row a learner, one column a panel; panels that are too many for a row go below, in blocks."""
    several = _panels(results, cells)
    names = list(dict.fromkeys(sorted(cell.number for cell in cells)))
    blocks = math.ceil(len(several) / PANELS_A_ROW)
    columns = math.ceil(len(several) / blocks)
    rows = blocks * len(names)
    figure = _figure(results, 0.9 + rows * row_height + 0.3 * blocks)
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
            axes.set_title("\n".join(_lines(_panel_title(mine[0].panel), 135 // columns)), fontsize=MEDIUM)
        if line == len(names) - 1 and mine:
            axes.set_xlabel("episode", fontsize=SMALL)
        if cell is None:
            axes.set_axis_off()
            continue
        if row not in named:
            named.add(row)
            flat = row_height < 1.0
            axes.set_ylabel(
                "\n".join(_lines(cell.label, 18 if flat else 30)),
                fontsize=SMALL,
                rotation=0 if flat else 90,
                ha="right" if flat else "center",
                va="center" if flat else "bottom",
            )
        _thousands(axes.yaxis)
        used.append((axes, cell))
    return figure, used


def _curve(axes: "Axes", cell: Shown, x: Floats | Ints, curves: Floats, label: str) -> tuple[Floats, Floats, Floats]:
    """A mean and, where there is more than one trial, its band."""
    mean, low, high = band(curves)
    axes.plot(x, mean, color=cell.colour, ls=cell.line, lw=1.6, zorder=9 - 0.1 * cell.number, label=label)
    if len(curves) > 1:
        wide = high > low
        # Where it has no width there is nothing to fill; its neighbours close it.
        wide[:-1] |= wide[1:]
        wide[1:] |= wide[:-1]
        axes.fill_between(x, low, high, where=wide.tolist(), color=cell.colour, alpha=0.22, lw=0, zorder=2)
    return mean, low, high


def _levels(axes: "Axes", trials: Sequence[Trial]) -> list[float]:
    """Lines at the floor, the baseline and the optimum, and where they are."""
    values = {"floor": trials[0].floor, "baseline": _mean_baseline(trials), "optimum": trials[0].optimum}
    for name, style in LEVELS.items():
        said = f"{name} {values[name]:.4g}"
        if name == "baseline" and _learnt(trials):
            each = _baselines(trials)
            below = int((each < trials[0].floor - VIOLATION_TOLERANCE).sum())
            said += f" (mean of trials;\nbelow the floor in {below} of {len(each)})"
        axes.axhline(values[name], color=GREY, ls=style, lw=1.0, zorder=10, label=said)
    return list(values.values())


def _limit(axes: "Axes", drawn: Sequence[tuple[Floats, Floats, Floats]], levels: Sequence[float]) -> None:
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


def _episodes(axes: "Axes", cells: Sequence[Shown], axis: str, first: float) -> None:
    """The axis of episodes: from the beginning, or by factors from the first point."""
    most = max(trial.episodes for cell in cells for trial in cell.trials)
    if axis == "log":
        axes.set_xscale("log")
        axes.set_xlim(min(first, most / 2), most)
    else:
        axes.set_xlim(0, most)
    _thousands(axes.xaxis)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)


def _thousands(axis: Any) -> None:
    """20M, not 2e7; and 0.5, not 500m."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    large = EngFormatter(sep="")
    axis.set_major_formatter(FuncFormatter(lambda value, _: large(value) if abs(value) >= 1000.0 else f"{value:g}"))


def _legend_below(axes: "Axes", learners: int) -> None:
    """Below the axes, where it hides nothing: learners on the left, lines on the right, neither too wide."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    down = ScaledTranslation(0.0, -BELOW / 72.0, figure.dpi_scale_trans)
    handles, labels = axes.get_legend_handles_labels()
    entries = list(zip(handles, ["\n".join(_lines(label, LEGEND)) for label in labels], strict=True))
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


def _lines(text: str, width: int) -> list[str]:
    """Lines of so many letters at most; what says NOT CERTIFIED stays in one."""
    glued = text.replace(NOT_CERTIFIED, NOT_CERTIFIED.replace(" ", NO_BREAK))
    return [piece.replace(NO_BREAK, " ") for line in glued.splitlines() for piece in wrap(line, width)]


def _number_cells(axes: "Axes", S: int, A: int) -> None:
    """Ticks at the middles of cells, numbered from 0."""
    for axis, n in ((axes.xaxis, A), (axes.yaxis, S)):
        every = math.ceil(n / 6)
        axis.set_ticks(np.arange(0, n, every) + 0.5, [str(i) for i in range(0, n, every)])


def _colour_of(h: int, H: int) -> Any:
    """From yellow-green (0: the boldest) to dark violet (H: the baseline)."""
    from matplotlib import colormaps

    return colormaps["viridis"](0.85 * (1.0 - h / H))


def _h_handles(several: Sequence[int], shape: str, optimist: str, baseline: str, two: bool = False) -> list[Any]:
    """Legend entries for h = 0..H; where panels differ in H, or H is large, for its ends and between."""
    from matplotlib.lines import Line2D

    def entry(h: int, H: int, name: str) -> Any:
        return Line2D([], [], color=_colour_of(h, H), lw=1.4, label=name)

    if two:
        return [entry(0, 1, optimist.strip(" ()")), entry(1, 1, baseline.strip(" ()"))]
    H = max(several)
    end = str(H) if min(several) == H else "H"
    ends = entry(0, H, shape.format(0) + optimist), entry(H, H, shape.format(end) + baseline)
    if min(several) == H and H < MOST_NAMED:
        return [ends[0], *(entry(h, H, shape.format(h)) for h in range(1, H)), ends[1]]
    return [ends[0], entry(H, 2 * H, "between"), ends[1]]
