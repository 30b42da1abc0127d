"""Pictures of a study's results: scenarios as axes, agents as lines of a colour that is theirs in
every picture.

Means are over trials, bands are pointwise 95 % intervals of those means, or, of fewer than five
trials, all that they cover. What is missing is not drawn, and the title says how much that is.
matplotlib is imported when the first picture is drawn, and no global style is touched. `FIGURES`,
at the end, names every figure once.
"""

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.agents.plan import SOURCES
from surefoot.base.arrays import Floats, Ints
from surefoot.errors import InvalidSetting
from surefoot.show.figures import missing_letters_allowed, require_target
from surefoot.studies.analysis.stats import binomial_bounds
from surefoot.studies.analysis.trials import column, count, grouped
from surefoot.studies.report.axes import (
    GREY,
    LEVELS,
    SCENARIOS_PER_ROW,
    SMALL,
    DrawnCell,
    axes_by_cell,
    axes_by_scenario,
    bins_of,
    by_scenario,
    colour_of,
    draw_curve,
    draw_levels,
    drawn_cells,
    episode_axis,
    figure_of,
    h_handles,
    in_lines,
    legend_below,
    legend_of_all,
    level,
    limit,
    number_cells,
    one_world,
    picture,
    pool,
    several_baselines,
    thousands,
    trials_of,
    with_floor,
    with_violations,
)
from surefoot.studies.report.tables import sizes_of
from surefoot.studies.report.theory_plots import plot_exponents, plot_growth
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STEPS = 8  # axes beside each other in a picture of visits
MOST_VECTOR_CELLS = 4000  # of a heat map; with more, the picture of it is smaller than its outlines
PLAYED, UPPER = "#B8B8B8", "#999999"
# Baseline, mixture, optimistic: dark, middle and light, so that they differ in grey as well; Okabe
# and Ito's hues.
EXITS = ("#0B3C6F", "#D55E00", "#F0E442")


@picture
def plot_return(results: Results) -> "Figure":
    """Draw the expected return per episode, with floor, baseline and optimum; violations in the
    legends.
    """
    figure, grid = axes_by_scenario(results, "expected return per episode")
    for axes, cells in grid:
        drawn = []
        for cell in cells:
            first, end, groups = bins_of(cell)
            # A bin stands at its middle; on a logarithmic axis episode 0 is the first.
            middle = (first + end + cell.by_factors) / 2
            curves = [pool(trial.curve_mean, trial.curve_episodes, groups) for trial in cell.trials]
            drawn.append(draw_curve(axes, cell, middle, np.array(curves), with_violations(cell)))
        limit(axes, drawn, draw_levels(axes, trials_of(cells)))
        episode_axis(axes, cells)
        legend_below(axes, len(cells))
    return figure


@picture
def plot_regret(results: Results) -> "Figure":
    """Draw the cumulative regret, and that of the baseline alone."""
    figure, grid = axes_by_scenario(results, "regret so far, in return")
    for axes, cells in grid:
        drawn = []
        for cell in cells:
            _, end, groups = bins_of(cell)
            curves = np.array([trial.curve_regret[_last(cell, groups)] for trial in cell.trials])
            drawn.append(draw_curve(axes, cell, end, curves, cell.counted))
        trials = trials_of(cells)
        most = max(column(trials, "episodes"))
        # Points by equal factors: a linear axis needs two of them, a logarithmic one many.
        k = np.geomspace(axes.dataLim.minposx, most, 60)
        loss = level(trials, "optimum") - level(trials, "baseline")
        label = "baseline alone (mean of trials)" if several_baselines(trials) else "baseline alone"
        axes.plot(k, loss * k, color=GREY, ls="-.", lw=1.0, zorder=10, label=label)
        if cells[0].by_factors:
            _limit_by_factors(axes, [mean for mean, _, _ in drawn], loss * most)
        else:
            limit(axes, drawn, [0.0, loss * most])
        episode_axis(axes, cells)
        legend_below(axes, len(cells))
    return figure


def _last(cell: DrawnCell, groups: Ints) -> Ints:
    """Return the last bin of each point."""
    return np.append(groups[1:], len(cell.trials[0].curve_episode)) - 1


def _limit_by_factors(axes: "Axes", means: Sequence[Floats], most: float) -> None:
    """Set a logarithmic axis of regret to fit all means that are above 0, and the most that the
    baseline has.
    """
    axes.set_yscale("log")
    values = np.append(np.concatenate(means), most)
    positive = values[values > 0]
    if len(positive):
        axes.set_ylim(positive.min() / 2, positive.max() * 2)
    thousands(axes.yaxis)


@picture
def plot_ribbon(results: Results) -> "Figure":
    """Draw which exit was taken: shares of baseline, mixture and optimistic over the episodes."""
    from matplotlib.patches import Patch

    figure, grid = axes_by_cell(results, drawn_cells(results), row_height=0.62, sharey=True)
    for axes, cell in grid:
        first, end, groups = bins_of(cell)
        shares = np.add.reduceat(cell.mean("curve_sources"), groups, axis=0)
        shares /= shares.sum(axis=1, keepdims=True)
        # Stretches without a change are one piece.
        begins = np.append(0, 1 + np.flatnonzero((np.diff(shares, axis=0) != 0.0).any(axis=1)))
        edges = np.append(first[begins], cell.trials[0].episodes) + cell.by_factors
        tops = np.vstack([np.zeros(len(begins)), np.cumsum(shares[begins], axis=1).T])
        tops = np.hstack([tops, tops[:, -1:]])
        for i, colour in enumerate(EXITS):
            axes.fill_between(edges, tops[i], tops[i + 1], step="post", color=colour, lw=0)
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        episode_axis(axes, [cell])
        if cell.by_factors:  # as far as the first bin is known
            axes.set_xlim(left=min((end[0] + 1) / 2, cell.trials[0].episodes / 2))
        axes.spines["left"].set_visible(False)
    patches = [Patch(color=colour, label=name) for colour, name in zip(EXITS, SOURCES, strict=True)]
    legend_of_all(figure, patches, 3)
    return figure


@picture
def plot_certificates(results: Results) -> "Figure | str":
    """Draw what the data prove of the candidates, against the floor; agents with a floor only."""
    from matplotlib.lines import Line2D

    cells = with_floor(results)
    if not cells:
        return "No agent of this study promises a floor: there are no certificates to draw."
    figure, grid = axes_by_cell(results, cells, row_height=2.2, sharey=one_world(results))
    for axes, cell in grid:
        H = cell.trials[0].H
        lower, upper, candidates = traces(cell)
        x = cell.trials[0].trace_episode + cell.by_factors
        drawn = by_h0(candidates, H)
        for h0, values in drawn.items():
            axes.plot(x, values, color=colour_of(h0, H), lw=0.9, zorder=3)
        axes.plot(x, upper, color=UPPER, lw=0.9, zorder=1)
        axes.plot(x, lower, color=PLAYED, lw=3.6, zorder=2)
        levels = draw_levels(axes, cell.trials)
        episode_axis(axes, [cell])
        # The upper value begins at the most that can be paid, often far above: it comes in from
        # there.
        low = min(*levels, *(float(values.min()) for values in drawn.values()), float(lower.min()))
        limit(axes, [], [low, min(float(upper.max()), max(levels) + 0.35 * (max(levels) - low))])
    # Where no agent has a candidate for every h0, it has two, or one.
    several = [
        cell.trials[0].H
        for cell in cells
        if cell.trials[0].trace_candidates.shape[1] == cell.trials[0].H + 1
    ]
    handles = [
        Line2D([], [], color=PLAYED, lw=3.6, label="lower value of what would be played"),
        *h_handles(several, "h0 = {}", optimist=" (optimistic)", baseline=" (baseline)"),
        Line2D([], [], color=UPPER, lw=0.9, label="upper value: no policy is worth more"),
        *(
            Line2D([], [], color=GREY, ls=style, lw=1.0, label=name)
            for name, style in LEVELS.items()
        ),
    ]
    legend_of_all(figure, handles)
    figure.supylabel("return")
    return figure


def traces(cell: DrawnCell) -> tuple[Floats, Floats, Floats]:
    """Return the means of lower, upper and candidates (checkpoints, candidates) at the first
    trial's checkpoints.

    Trials whose checkpoints are not the same (blocks of other lengths) are interpolated there.
    """
    k = cell.trials[0].trace_episode

    def at_checkpoints(trial: Trial) -> Floats:
        known = np.column_stack([trial.trace_lower, trial.trace_upper, trial.trace_candidates])
        if np.array_equal(trial.trace_episode, k):
            return known
        return np.column_stack([np.interp(k, trial.trace_episode, values) for values in known.T])

    means = cell.mean(at_checkpoints)
    return means[:, 0], means[:, 1], means[:, 2:]


def by_h0(candidates: Floats, H: int) -> dict[int, Floats]:
    """Return each candidate by its h0. A single one is what is played, and is drawn as that.

    With many states, splices between the first and the baseline need not be bounded
    (docs/scaling.md), and then have the lowest possible value, which says nothing of them.
    """
    h0 = {H + 1: list(range(H + 1)), 2: [0, H]}.get(candidates.shape[1], [])
    known = dict(zip(h0, candidates.T, strict=False))
    return {h: values for h, values in known.items() if h in (0, 1, H) or values.any()}


@picture
def plot_coverage(results: Results) -> "Figure":
    """Draw the visits of every pair at the end, in the first scenario that has trials; hatched:
    none in any trial.
    """
    from matplotlib.colors import LogNorm

    cells = by_scenario(drawn_cells(results))[0]
    means = [cell.mean("n_sa") for cell in cells]
    columns = min(MOST_STEPS, max(len(mean) for mean in means))
    S, A = means[0].shape[1:]
    figure = figure_of(
        results, 1.0 + len(cells) * min(2.2, max(1.1, 0.8 + 0.12 * S)), cells[0].scenario.heading
    )
    grid = figure.subplots(len(cells), columns, squeeze=False)
    seen = np.concatenate([mean[mean > 0] for mean in means])
    norm = LogNorm(seen.min(), max(seen.max(), seen.min() * 1.01))
    for row, cell, mean in zip(grid, cells, means, strict=True):
        H = len(mean)
        steps = np.unique(np.rint(np.linspace(0, H - 1, min(H, columns))).astype(int))
        for axes in row[len(steps) :]:
            axes.remove()
        for axes, h in zip(row, steps, strict=False):
            mesh = _draw_visits(
                axes, mean[h], norm, rasterized=H * S * A * len(cells) > MOST_VECTOR_CELLS
            )
            axes.set_title(
                "all steps" if H == 1 and cell.trials[0].H > 1 else f"step {h + 1} of {H}",
                fontsize=SMALL,
            )
            if axes is row[0]:
                axes.set_ylabel("\n".join([*in_lines(cell.label, 22), "state"]), fontsize=SMALL)
            else:
                axes.set_yticklabels([])
            if cell is cells[-1]:
                axes.set_xlabel("action", fontsize=SMALL)
    bar = figure.colorbar(mesh, ax=list(figure.axes), shrink=0.8, aspect=30, pad=0.01)
    bar.set_label("visits (mean over trials); hatched: none", fontsize=SMALL)
    return figure


def _draw_visits(axes: "Axes", visits: Floats, norm: Any, rasterized: bool) -> Any:
    """Draw the visits (S, A) of one step, and return what the colour bar shows."""
    axes.patch.set(facecolor="white", edgecolor="#BBBBBB", hatch="////")
    shown = np.ma.masked_equal(visits, 0.0)
    mesh = axes.pcolormesh(shown, norm=norm, cmap="viridis", edgecolors="face", linewidth=0.3)
    mesh.set_rasterized(rasterized)
    number_cells(axes, *visits.shape)
    axes.spines[:].set_visible(True)
    axes.tick_params(length=2)
    return mesh


@picture
def plot_by_h(results: Results) -> "Figure | str":
    """Draw the episodes so far at each h, from 0 (optimistic) to H (the baseline); agents with a
    floor only.
    """
    cells = with_floor(results)
    if not cells:
        return "No agent of this study promises a floor: there is no h to count."
    same = len(set(column(trials_of(cells), "episodes"))) == 1
    figure, grid = axes_by_cell(results, cells, row_height=2.2, sharey=same)
    for axes, cell in grid:
        H = cell.trials[0].H
        _, end, groups = bins_of(cell)
        so_far = np.cumsum(cell.mean("curve_by_h"), axis=0)[_last(cell, groups)]
        if cell.by_factors:  # none has no logarithm
            so_far[so_far == 0] = np.nan
            axes.set_yscale("log")
        for h in range(H + 1):
            axes.plot(end, so_far[:, h], color=colour_of(h, H), lw=1.6, zorder=4 if h == 0 else 3)
        episode_axis(axes, [cell])
        thousands(axes.yaxis)
    several = [cell.trials[0].H for cell in cells]
    legend_of_all(
        figure, h_handles(several, "h = {}", " (optimistic)", " (baseline, or mixed with it)")
    )
    figure.supylabel("episodes so far")
    return figure


@picture
def plot_violations(results: Results) -> "Figure | str":
    """Draw violations per run, and runs that violate, against the number of episodes in the log."""
    series = log_series([cell for cell in drawn_cells(results) if cell.scenario.log is not None])
    if not series:
        return "No scenario of this study has a log: there is nothing to draw violations against."
    figure = figure_of(results, 1.2 + 3.4 * len(series))
    rows = figure.subplots(len(series), 2, squeeze=False)
    handles: dict[str, Any] = {}
    for (left, right), (title, cells) in zip(rows, series.items(), strict=True):
        by_agent = grouped((cell.number, cell) for cell in cells)
        for i, mine in enumerate(by_agent.values()):
            # Moved by a factor, so that agents do not hide each other.
            _draw_violations(
                left, right, sorted(mine, key=log_size), 1.06 ** (i - (len(by_agent) - 1) / 2)
            )
        _dress_violations(left, right, cells)
        left.set_title(title, loc="left")
        handles |= {handle.get_label(): handle for handle in left.get_legend_handles_labels()[0]}
    legend_of_all(figure, list(handles.values()), 3)
    return figure


def _draw_violations(
    left: "Axes", right: "Axes", cells: Sequence[DrawnCell], beside: float
) -> None:
    """Draw one agent: its violations, and the runs that have any."""
    x = beside * np.array([log_size(cell) for cell in cells], dtype=np.float64)
    colour, points = cells[0].colour, f"{cells[0].marker}-"
    means = [cell.mean("violations") for cell in cells]
    left.plot(x, means, points, color=colour, ms=4, lw=1.2, label=cells[0].label)
    every = [
        (size, trial.violations)
        for size, cell in zip(x, cells, strict=True)
        for trial in cell.trials
    ]
    left.plot(*np.array(every).T, "o", color=colour, ms=2.5, alpha=0.3, mec="none")
    bad = [(count(cell.trials, "violations"), len(cell.trials)) for cell in cells]
    shares = np.array([k / n for k, n in bad])
    errors = np.abs(np.array([binomial_bounds(k, n) for k, n in bad]).T - shares)
    right.errorbar(
        x, shares, yerr=errors, fmt=points, color=colour, ms=4, lw=1.2, elinewidth=0.9, capsize=2
    )


def _dress_violations(left: "Axes", right: "Axes", cells: Sequence[DrawnCell]) -> None:
    """Set the axes of violations: on the left how many per run, on the right in how many runs."""
    from matplotlib.ticker import PercentFormatter

    left.set_yscale("symlog", linthresh=1.0)
    left.set_ylim(-0.3, max(10.0, 2.0 * max(column(trials_of(cells), "violations"))))
    left.set_ylabel("violations per run (dots: single runs)")
    right.set_ylim(-0.04, 1.04)
    right.yaxis.set_major_formatter(PercentFormatter(1.0))
    right.set_ylabel("runs that violate, with exact 95 % bounds")
    sizes = sorted({log_size(cell) for cell in cells})
    for axes in (left, right):
        axes.set_xscale("log")
        if len(sizes) <= SCENARIOS_PER_ROW * 2:
            axes.set_xticks(sizes)
            axes.minorticks_off()
        axes.set_xlabel("episodes in the log")
        thousands(axes.xaxis)
    thousands(left.yaxis)


def log_size(cell: DrawnCell) -> int:
    """Return the number of episodes in the log; 0 where there is none."""
    return 0 if cell.scenario.log is None else cell.scenario.log.episodes


def log_series(cells: Sequence[DrawnCell]) -> dict[str, list[DrawnCell]]:
    """Return the cells that differ in the size of their log only, by what they have in common
    and others have not.
    """
    facts = [_facts_but_size(cell.scenario) for cell in cells]
    distinct = [i for i, found in enumerate(zip(*facts, strict=True)) if len(set(found)) > 1]
    titles = [", ".join(some[i] for i in distinct if some[i]) for some in facts]
    return grouped(zip(titles, cells, strict=True))


def _facts_but_size(scenario: Scenario) -> tuple[str, ...]:
    """Return all of a scenario with a log but the size of the log, in words."""
    log = scenario.log
    assert log is not None
    world = ", ".join(f"{key} = {value}" for key, value in sizes_of(scenario).items())
    written = (
        log.behaviour
        if isinstance(log.behaviour, str)
        else f"{log.behaviour[0]} = {log.behaviour[1]:g}"
    )
    return (
        f"{scenario.world['name']} ({world})" if world else str(scenario.world["name"]),
        f"behaviour {written}",
        log.method,
        "floor "
        f"{scenario.floor if isinstance(scenario.floor, str) else format(scenario.floor, 'g')}",
        f"{scenario.episodes:,} episodes" if scenario.episodes else "",
    )


def save_png(figure: "Figure", path: str | Path) -> Path:
    """Write the figure to a PNG file; the same figure gives the same bytes."""
    target = require_target(path)
    if target.suffix.lower() != ".png":
        raise InvalidSetting(f"{target} ends in {target.suffix!r}, expected .png.")
    with missing_letters_allowed():
        figure.savefig(target, format="png", metadata={"Software": None})
    return target


def save_svg(figure: "Figure", salt: str = "figure", label: str = "") -> str:
    """Return the SVG element of a figure, for a page, with the label that a screen reader reads:
    always the same bytes.

    Figures with different salts can stand on one page: ids begin with the salt. Letters are drawn
    as paths, so that the picture is the same where our font is not installed and nothing comes to
    overlap.
    """
    import matplotlib

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", salt):
        raise InvalidSetting(
            f"salt is {salt!r}, expected a letter, then letters, digits, _ or -: ids begin with it."
        )
    written = io.StringIO()
    settings: Any = {"svg.hashsalt": salt, "svg.fonttype": "path", "svg.image_inline": True}
    # whose licence the page names
    settings |= {"font.sans-serif": ["DejaVu Sans"], "mathtext.fontset": "dejavusans"}
    with matplotlib.rc_context(settings), missing_letters_allowed():
        figure.savefig(
            written, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = text.replace("xlink:href=", "href=")
    # a title may hold what ends a comment in HTML
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    # a style for this picture, not for the whole page
    text = text.replace(">*{", f">#{salt}-figure_1 *{{")
    text = re.sub(r'\bid="', f'id="{salt}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{salt}-", text)
    # A hundredth of a point is less than anybody sees, and half of the bytes.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"-?\d+\.\d{3,}", _rounded, path[0]), text)
    named = f'aria-label="{html.escape(label)}"' if label else ""
    return text.replace(
        "<svg ", f'<svg role="img" {named} style="max-width: 100%; height: auto" ', 1
    )


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


class StudyFigure(NamedTuple):
    """A figure that a study can ask for: how it is drawn, and what the page says below it."""

    draw: Callable[[Results], "Figure"]
    caption: str


FIGURES: Mapping[str, StudyFigure] = {  # by the name in a study's file
    "return": StudyFigure(
        plot_return,
        "Expected return of the policies played, exact, not sampled: the mean over trials with its "
        "95 % band (of fewer than five trials: from the lowest to the highest). A point is a mean "
        "over a bin of episodes, so single violations do not show in a curve; the legend counts "
        "every one.",
    ),
    "regret": StudyFigure(
        plot_regret,
        "What was lost against the optimum so far: the mean over trials with its 95 % band (of "
        "fewer than five trials: from the lowest to the highest). Below the line of the baseline "
        "alone, learning has paid.",
    ),
    "ribbon": StudyFigure(
        plot_ribbon,
        "What was played when: the baseline alone, a mixture with the optimistic policy, or the "
        "optimistic policy alone (of DOPE and OptPess-LP: their linear program's own policy); "
        "shares of the episodes, mean over trials.",
    ),
    "certificates": StudyFigure(
        plot_certificates,
        "Lower values of the candidates' returns, mean over trials: proved from the data, unless "
        "the agent is NOT CERTIFIED. The boldest candidate that has reached the floor is played, "
        "mixed with its bolder neighbour where the algorithm mixes; until there is one, the "
        "baseline is played on trust.",
    ),
    "coverage": StudyFigure(
        plot_coverage,
        "How often each pair of state and action was visited by the end, in the first scenario: "
        "mean over trials on a logarithmic scale. Hatched pairs were never visited.",
    ),
    "by-h": StudyFigure(
        plot_by_h,
        "Episodes so far at each h, mean over trials: h = 0 is the optimistic policy alone, h = H "
        "the baseline or a mixture with it. Lemma finite bounds the counts of h > 0 by a constant "
        "times log^2(K+1).",
    ),
    "violations": StudyFigure(
        plot_violations,
        "Episodes below the floor in a run, and how many runs have any, where the baseline was "
        "learnt from a log of so many episodes. Bars are exact binomial 95 % bounds.",
    ),
    "growth": StudyFigure(
        plot_growth,
        "Regret against K on logarithmic axes: medians over trials. Dotted lines are where the "
        "first optimistic episode is; what is added after it is in the legend. The dashed line is "
        "the leading term of the theorem's order without its constants; with them the bound is the "
        "number in the legend.",
    ),
    "exponents": StudyFigure(
        plot_exponents,
        "Episodes that are not optimistic, on logarithmic axes: medians over trials, with the "
        "power law fitted to them. Grey lines through the first point have the exponents of Lemma "
        "finite, which bounds from above.",
    ),
}
