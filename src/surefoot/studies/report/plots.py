"""Pictures of a study's results: panels as axes, learners as lines of a colour that is theirs in every picture.

Means are over trials, bands are pointwise 95 % intervals of those means, or, of fewer than five trials, all that they
cover. What is missing is not drawn, and the title says how much that is. matplotlib is imported when the first picture
is drawn, and no global style is touched.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surefoot.agents.plan import SOURCES
from surefoot.errors import InvalidSetting
from surefoot.simulation.figures import require_target
from surefoot.studies.analysis.stats import binomial_bounds
from surefoot.studies.report.axes import (
    GREY,
    LARGE,
    LEVELS,
    MEDIUM,
    PANELS_A_ROW,
    SMALL,
    axes_by_cell,
    axes_by_panel,
    colour_of,
    draw_curve,
    draw_levels,
    episode_axis,
    figure_of_nothing,
    finished,
    h_handles,
    in_lines,
    legend_below,
    limit,
    new_figure,
    number_cells,
    strange_letters_allowed,
    thousands,
    with_violations,
)
from surefoot.studies.report.series import (
    bins_of,
    by_h0,
    h_of,
    learnt,
    log_series,
    log_size,
    mean_baseline,
    one_world,
    pool,
    shown_cells,
    traces,
)
from surefoot.studies.run.store import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STEPS = 8  # axes beside each other in a picture of visits
MOST_VECTOR_CELLS = 4000  # of a heat map; with more, the picture of it is smaller than its outlines
PLAYED = "#B8B8B8"
# Baseline, mixture, optimistic: dark, middle and light, so that they differ in grey as well; Okabe and Ito's hues.
EXITS = ("#0B3C6F", "#D55E00", "#F0E442")


def plot_return(results: Results) -> "Figure":
    """Expected return per episode, with floor, baseline and optimum; violations in the legends."""
    figure, places = axes_by_panel(results, "expected return per episode")
    for axes, cells in places:
        bins = [bins_of(cell.trials, results.study.axis) for cell in cells]
        drawn = []
        for cell, (first, end, groups) in zip(cells, bins, strict=True):
            curves = [pool(trial.curve_mean, trial.curve_episodes, groups) for trial in cell.trials]
            # A bin stands at its middle; on an axis by factors episode 0 is the first.
            middle = (first + end) / 2 + 0.5 * (results.study.axis == "log")
            drawn.append(draw_curve(axes, cell, middle, np.array(curves), with_violations(cell)))
        levels = draw_levels(axes, [trial for cell in cells for trial in cell.trials])
        limit(axes, drawn, levels)
        episode_axis(axes, cells, results.study.axis, min(float(first[0] + end[0]) / 2 + 0.5 for first, end, _ in bins))
        legend_below(axes, len(cells))
    return finished(figure)


def plot_regret(results: Results) -> "Figure":
    """Cumulative regret, and that of the baseline alone."""
    figure, places = axes_by_panel(results, "regret so far, in return")
    for axes, cells in places:
        drawn, lowest = [], math.inf
        for cell in cells:
            _, end, groups = bins_of(cell.trials, results.study.axis)
            last = np.append(groups[1:], len(cell.trials[0].curve_regret)) - 1
            curves = np.array([trial.curve_regret[last] for trial in cell.trials])
            drawn.append(draw_curve(axes, cell, end, curves, cell.counted))
            lowest = min(lowest, float(end[0]))
        trials = [trial for cell in cells for trial in cell.trials]
        most = max(trial.episodes for trial in trials)
        # Points by equal factors, as an axis of one kind needs two and of the other many.
        k = np.geomspace(lowest, most, 60)
        loss = trials[0].optimum - mean_baseline(trials)
        among = " (mean of trials)" * learnt(trials)
        axes.plot(k, loss * k, color=GREY, ls="-.", lw=1.0, zorder=10, label=f"baseline alone{among}")
        if results.study.axis == "log":
            axes.set_yscale("log")
            positive = [mean[mean > 0] for mean, _, _ in drawn]
            ends = [*(side for mean in positive if len(mean) for side in (mean.min(), mean.max())), loss * most]
            ends = [end for end in ends if end > 0]
            if ends:
                axes.set_ylim(min(ends) / 2, max(ends) * 2)
            thousands(axes.yaxis)
        else:
            limit(axes, drawn, [0.0, loss * most])
        episode_axis(axes, cells, results.study.axis, lowest)
        legend_below(axes, len(cells))
    return finished(figure)


def plot_ribbon(results: Results) -> "Figure":
    """Which exit was taken: shares of baseline, mixture and optimistic over the episodes."""
    from matplotlib.patches import Patch

    figure, grid = axes_by_cell(results, shown_cells(results), row_height=0.62, sharey=True)
    for axes, cell in grid:
        trial = cell.trials[0]
        first, end, groups = bins_of(cell.trials, results.study.axis)
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
        episode_axis(axes, [cell], results.study.axis, float(end[0]) / 2 + 0.5)
        axes.spines[["left"]].set_visible(False)
    figure.legend(
        handles=[Patch(color=colour, label=name) for colour, name in zip(EXITS, SOURCES, strict=True)],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=MEDIUM,
    )
    return finished(figure)


def plot_certificates(results: Results) -> "Figure":
    """What the data prove of the candidates, against the floor; learners with a floor only."""
    from matplotlib.lines import Line2D

    cells = [cell for cell in shown_cells(results) if cell.floor]
    if not cells:
        return figure_of_nothing(
            results, "No learner of this study promises a floor: there are no certificates to draw."
        )
    figure, grid = axes_by_cell(results, cells, row_height=2.2, sharey=one_world(results))
    log = results.study.axis == "log"
    for axes, cell in grid:
        H = cell.trials[0].H
        k, lower, upper, candidates = traces(cell.trials)
        x = k + float(log)
        for h0, values in by_h0(candidates, H).items():
            axes.plot(x, values, color=colour_of(h0, H), lw=0.9, zorder=3)
        axes.plot(x, upper, color="#999999", lw=0.9, zorder=1)
        axes.plot(x, lower, color=PLAYED, lw=3.6, zorder=2)
        levels = draw_levels(axes, list(cell.trials))
        episode_axis(axes, [cell], results.study.axis, float(x[0]))
        # The upper value begins at the most that can be paid, often far above: it comes in from there.
        low = min(*levels, float(candidates.min(initial=math.inf)), float(lower.min()))
        limit(axes, [], [low, min(float(upper.max()), max(levels) + 0.35 * (max(levels) - low))])
    several = [H for H in (h_of(cell) for cell in cells) if H is not None]
    handles = [
        Line2D([], [], color=PLAYED, lw=3.6, label="lower value of what would be played"),
        *h_handles(several, "h0 = {}", optimist=" (optimist)", baseline=" (baseline)", two=not several),
        Line2D([], [], color="#999999", lw=0.9, label="upper value: no policy is worth more"),
        *(Line2D([], [], color=GREY, ls=style, lw=1.0, label=name) for name, style in LEVELS.items()),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL)
    figure.supylabel("return", fontsize=MEDIUM)
    return finished(figure)


def plot_coverage(results: Results) -> "Figure":
    """Visits of every pair at the end, in the first scenario that has trials; hatched: never visited in any trial."""
    from matplotlib.colors import LogNorm

    cells = shown_cells(results)
    cells = [cell for cell in cells if cell.scenario.id == cells[0].scenario.id]
    means = [np.mean([trial.n_sa for trial in cell.trials], axis=0) for cell in cells]
    columns = min(MOST_STEPS, max(len(mean) for mean in means))
    S, A = means[0].shape[1:]
    figure = new_figure(results, 1.0 + len(cells) * min(2.2, max(1.1, 0.8 + 0.12 * S)), cells[0].scenario.heading)
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
            number_cells(axes, S, A)
            axes.tick_params(labelsize=SMALL, length=2)
            axes.set_title("all steps" if H == 1 and cell.trials[0].H > 1 else f"step {h + 1} of {H}", fontsize=SMALL)
            if axes is row[0]:
                axes.set_ylabel("\n".join([*in_lines(cell.label, 22), "state"]), fontsize=SMALL)
            else:
                axes.set_yticklabels([])
            if cell is cells[-1]:
                axes.set_xlabel("action", fontsize=SMALL)
    bar = figure.colorbar(mesh, ax=list(figure.axes), shrink=0.8, aspect=30, pad=0.01)
    bar.set_label("visits (mean over trials); hatched: none", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    return finished(figure)


def plot_by_h(results: Results) -> "Figure":
    """Episodes so far at each h, from 0 (the optimist) to H (the baseline); learners with a floor only."""
    cells = [cell for cell in shown_cells(results) if cell.floor]
    if not cells:
        return figure_of_nothing(results, "No learner of this study promises a floor: there is no h to count.")
    same = len({cell.trials[0].episodes for cell in cells}) == 1
    figure, grid = axes_by_cell(results, cells, row_height=2.2, sharey=same)
    log = results.study.axis == "log"
    for axes, cell in grid:
        H = cell.trials[0].H
        _, end, groups = bins_of(cell.trials, results.study.axis)
        last = np.append(groups[1:], len(cell.trials[0].curve_episode)) - 1
        so_far = np.mean([np.cumsum(trial.curve_by_h, axis=0)[last] for trial in cell.trials], axis=0)
        for h in range(H + 1):
            counts = np.where(so_far[:, h] > 0, so_far[:, h], np.nan) if log else so_far[:, h]
            axes.plot(end, counts, color=colour_of(h, H), lw=1.6, zorder=3 + (h == 0))
        if log:
            axes.set_yscale("log")
        episode_axis(axes, [cell], results.study.axis, float(end[0]))
        thousands(axes.yaxis)
    handles = h_handles([cell.trials[0].H for cell in cells], "h = {}", " (optimist)", " (baseline, or mixed with it)")
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL)
    figure.supylabel("episodes so far", fontsize=MEDIUM)
    return finished(figure)


def plot_violations(results: Results) -> "Figure":
    """Violations a run, and runs that violate, against the number of episodes in the log."""
    from matplotlib.ticker import PercentFormatter

    series = log_series([cell for cell in shown_cells(results) if cell.scenario.log is not None])
    if not series:
        return figure_of_nothing(
            results, "No scenario of this study has a log: there is nothing to draw violations against."
        )
    figure = new_figure(results, 1.2 + 3.4 * len(series))
    rows = figure.subplots(len(series), 2, squeeze=False)
    for (left, right), (title, cells) in zip(rows, series.items(), strict=True):
        names = list(dict.fromkeys(cell.number for cell in cells))
        for i, number in enumerate(names):
            mine = sorted((cell for cell in cells if cell.number == number), key=log_size)
            x = np.array([log_size(cell) for cell in mine], dtype=np.float64)
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
        sizes = sorted({log_size(cell) for cell in cells})
        for axes in (left, right):
            axes.set_xscale("log")
            if len(sizes) <= PANELS_A_ROW * 2:
                axes.set_xticks(sizes)
                axes.minorticks_off()
            axes.set_xlabel("episodes in the log", fontsize=MEDIUM)
            thousands(axes.xaxis)
            axes.tick_params(labelsize=SMALL)
            axes.spines[["top", "right"]].set_visible(False)
        thousands(left.yaxis)
        left.set_title(title, fontsize=LARGE, loc="left")
    named = [row[0].get_legend_handles_labels() for row in rows]
    handles = {label: handle for some in named for handle, label in zip(*some, strict=True)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL
    )
    return finished(figure)


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
        "Expected return of the policies played, exact, not sampled: the mean over trials with its 95 % band (of fewer "
        "than five trials: from the lowest to the highest). A point is a mean over a bin of episodes, so single "
        "violations do not show in a curve; the legend counts every one."
    ),
    "regret": (
        "What was lost against the optimum so far: the mean over trials with its 95 % band (of fewer than five trials: "
        "from the lowest to the highest). Below the line of the baseline alone, learning has paid."
    ),
    "ribbon": (
        "What was played when: the baseline alone, a mixture with the optimist, or the optimist alone (of DOPE and "
        "OptPess-LP: their programme's own policy); shares of the episodes, mean over trials."
    ),
    "certificates": (
        "Lower values of the candidates' returns, mean over trials: proved from the data, unless the learner is NOT "
        "CERTIFIED. The boldest candidate that has reached the floor is played, mixed with its bolder neighbour where "
        "the algorithm mixes; until there is one, the baseline is played on trust."
    ),
    "coverage": (
        "How often each pair of state and action was visited by the end, in the first scenario: mean over trials on a "
        "logarithmic scale. Hatched pairs were never visited."
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


def save_png(figure: "Figure", path: str | Path) -> Path:
    """The figure as a PNG file; the same figure gives the same bytes."""
    target = require_target(path)
    if target.suffix.lower() != ".png":
        raise InvalidSetting(f"{target} ends in {target.suffix!r}, expected .png.")
    with strange_letters_allowed():
        figure.savefig(target, format="png", metadata={"Software": None})
    return target
