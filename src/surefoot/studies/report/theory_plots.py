"""Pictures of the theory: what was measured, its fitted power law, and the theorem's order, on
logarithmic axes.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from surefoot.show.figures import COLOURS, MARKERS
from surefoot.studies.analysis import theorem
from surefoot.studies.analysis.stats import amount
from surefoot.studies.analysis.theory import (
    SIZES,
    by_kappa,
    by_size,
    regret_at,
    setting_of,
    total_added,
)
from surefoot.studies.analysis.trials import (
    MIXERS,
    CellTrials,
    cells_of,
    grouped,
    median,
    optimistic_at,
)
from surefoot.studies.report.axes import GREY, legend_below, picture, thousands, two_per_row
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@picture
def plot_growth(results: Results) -> "Figure | str":
    """Draw regret against K on logarithmic axes, the first optimistic episode marked, beside
    sqrt(H^3 S A K).
    """
    cells = [one for one in cells_of(results, MIXERS) if median(one.trials, "regret") > 0.0]
    drawn = grouped((one.scenario.heading, one) for one in cells)
    if not drawn:
        return "No run of StepMix or EpsMix has regret."
    figure, grid = _axes(results, list(drawn), "regret so far, in return")
    for cells, axes in zip(drawn.values(), grid, strict=True):
        for one, colour in zip(cells, COLOURS, strict=False):
            _draw_growth(axes, one, colour)
        it, k = setting_of(cells[0]), _moments(cells[0].trials[0])
        order = [theorem.leading_order(it._replace(K=int(end))) for end in k]
        axes.plot(k, order, color=GREY, ls="--", lw=1.0, label="sqrt(H^3 S A K), without constants")
        axes.plot(
            [], [], " ", label=f"the theorem's bound at the end: {theorem.regret_bound(it):.0e}"
        )
        axes.set_xlabel("K")
        legend_below(axes, len(cells))
    return figure


def _moments(trial: Trial) -> np.ndarray:
    """Return episodes by equal factors, from the end of the first bin: before it a curve is not
    known.
    """
    return np.geomspace(int(trial.curve_episodes[0]), trial.episodes, 60)


def _draw_growth(axes: "Axes", one: CellTrials, colour: str) -> None:
    """Draw the median regret of an agent, and where it is first optimistic; what is added after
    that in words.
    """
    k, first, after = (
        _moments(one.trials[0]),
        median(one.trials, optimistic_at),
        total_added(one.trials),
    )
    label = (
        one.label
        if after is None
        else f"{one.label}: {amount(after)} added after the first optimistic episode"
    )
    if math.isfinite(first):
        axes.axvline(max(first, k[0]), color=colour, ls=":", lw=1.0)
    axes.plot(k, np.median(regret_at(one.trials, k), axis=0), color=colour, lw=1.4, label=label)


@picture
def plot_exponents(results: Results) -> "Figure | str":
    """Draw the episodes that are not optimistic against 1/kappa, H, S or A, with fits and the
    theorem's exponents.
    """
    several = [("1/kappa", series.title, series) for series in by_kappa(results)]
    several += [
        (size, f"{series.title}, {size} varied", series) for size, series in by_size(results)
    ]
    drawn = grouped(((varied, title), series) for varied, title, series in several if series.known)
    if not drawn:
        return "No three cells that differ in one thing became optimistic."
    figure, grid = _axes(results, [title for _, title in drawn], "episodes that are not optimistic")
    for ((varied, _), some), axes in zip(drawn.items(), grid, strict=True):
        for i, series in enumerate(some):
            x, y = (
                np.array([getattr(point, name) for point in series.points])
                for name in ("x", "waited")
            )
            axes.plot(
                x,
                y,
                MARKERS[i],
                color=COLOURS[i],
                ms=3.5,
                label=f"{series.label}: exponent {series.fit}",
            )
            ends = np.array([x.min(), x.max()])
            fitted = series.fit.factor * ends**series.fit.exponent
            axes.plot(ends, fitted, color=COLOURS[i], lw=1.2)
        exponents = (1.0, 2.0) if varied == "1/kappa" else (SIZES[varied],)
        # lines through the first point: with the theorem's constants they would be far above
        first, last = some[0].points[0], some[0].points[-1]
        for exponent, style in zip(exponents, ("--", ":"), strict=False):
            axes.plot(
                [first.x, last.x],
                [first.waited, first.waited * (last.x / first.x) ** exponent],
                color=GREY,
                ls=style,
                lw=1.0,
                label=f"Lemma finite: exponent {exponent:g}",
            )
        axes.set_xlabel(varied)
        legend_below(axes, len(some))
    return figure


def _axes(results: Results, titles: Sequence[str], ylabel: str) -> tuple["Figure", "list[Axes]"]:
    """Return logarithmic axes, two per row, one for each title."""
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, grid = two_per_row(results, titles, ylabel, 3.8, sharey=False)
    for axes in grid:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
            axis.set_minor_formatter(NullFormatter())
            thousands(axis)
    return figure, grid
