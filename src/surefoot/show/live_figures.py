"""plot_run: a picture of a run for people, readable for a hundred episodes and for a million."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.plan import SOURCES
from surefoot.audit.history import History
from surefoot.base.arrays import AnyArray, Bools, Floats, Ints
from surefoot.base.nodes import EPISODE, NODES
from surefoot.errors import InvalidSetting
from surefoot.guard import Guard, GuardState
from surefoot.guard.evidence import log_inverse, lower_value, weights_of
from surefoot.guard.state import OPEN, Proved
from surefoot.model.units import Units
from surefoot.run.guard_env import GuardedRun
from surefoot.run.run import Run
from surefoot.run.simulate_guard import GuardRun
from surefoot.show.figures import (
    COLOURS,
    GREY,
    LINE,
    axis_of_episodes,
    finished,
    heading,
    in_legend,
    mark,
    new_figure,
    with_unit,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_GROUPS = 60
FEWEST = 20  # episodes of a group, where there are as many
NORMAL = 1.96  # standard errors on either side: about 95 %
# what never happened in n episodes has a probability of at most 3/n, about 95 % sure
RULE_OF_THREE = 3.0
BASELINE_COLOUR, ALARM_COLOUR, LOWER_COLOUR = "#BBBBBB", COLOURS[1], COLOURS[2]
SHARE_COLOURS = (BASELINE_COLOUR, COLOURS[3], COLOURS[4], COLOURS[5], COLOURS[2], COLOURS[0])
HATCHES = ("", "///", "", "...", "\\\\\\", "xx")
LEAST_SHARE = 0.02  # of the episodes: lower values are drawn of the policies that played as many
MOST_OPEN = 0.05  # of a group, without a return: of more, no mean is drawn
TRUSTED = "while the plan is trusted"


class Sample(NamedTuple):
    """Groups of returns: how many, their means, the sums of squared differences from them, the
    lowest, the highest.
    """

    n: Ints
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: Floats) -> "Sample":
        """Return a group for each value, without any where it is nan."""
        return cls(
            (~np.isnan(values)).astype(np.int64), values, np.zeros(len(values)), values, values
        )

    def merged(self, starts: Ints) -> "Sample":
        """Return fewer groups: each of those from one of these places up to the next."""
        return self._gathered(lambda how, values: how.reduceat(values, starts))

    @property
    def so_far(self) -> "Sample":
        """The same of all groups up to each."""
        return self._gathered(lambda how, values: how.accumulate(values))

    def _gathered(self, gather: Callable[[np.ufunc, AnyArray], AnyArray]) -> "Sample":
        seen = self.n > 0
        # so that no large numbers are subtracted
        about = float(self.mean[seen].mean()) if seen.any() else 0.0
        apart = np.where(seen, self.mean - about, 0.0)
        n = gather(np.add, self.n)
        mean = gather(np.add, self.n * apart) / np.maximum(n, 1)
        squares = (
            gather(np.add, np.where(seen, self.squares + self.n * apart**2, 0.0)) - n * mean**2
        )
        low, high = gather(np.fmin, self.low), gather(np.fmax, self.high)
        return Sample(n, np.where(n > 0, about + mean, np.nan), np.maximum(squares, 0.0), low, high)

    @property
    def band(self) -> tuple[Floats, Floats]:
        """About 95 % for each mean: 1.96 standard errors from the spread within the group, on
        either side.

        Where all returns of a group are the same, but not all of the run, that would be nothing:
        there it is by the rule of three how far a return that was not seen could move the mean.
        """
        n = np.maximum(self.n, 1)
        half = NORMAL * np.sqrt(self.squares / np.maximum(n - 1, 1) / n)
        least, most = float(np.nanmin(self.low)), float(np.nanmax(self.high))
        alike = (self.low == self.high) & (most > least)
        half = np.where(alike, np.minimum(RULE_OF_THREE / n, 1.0) * (most - least), half)
        half = np.where((self.n < 2) & ~alike, np.nan, half)
        return np.maximum(self.mean - half, least), np.minimum(self.mean + half, most)


class Course(NamedTuple):
    """What is drawn of a run: a row for each group of consecutive episodes. Values are in the
    user's units.
    """

    starts: Ints  # where each group begins among those that were kept
    first: Ints  # its first episode
    size: Ints  # how many episodes it has
    returns: Sample
    exact: bool  # are these values of policies, not returns? Then there is no sampling error
    shares: Floats  # (groups, policies) who played
    players: Sequence[str]
    baseline: Sample | None  # the returns of its own episodes, group by group

    @classmethod
    def of(
        cls,
        width: Ints,
        returns: Sample,
        played: Ints,
        players: Sequence[str] = SOURCES,
        *,
        exact: bool = False,
        baseline: Sample | None = None,
    ) -> "Course":
        """Return the groups that are drawn of those that were kept, of so many episodes each."""
        starts = group_starts(width)
        size = np.add.reduceat(width, starts)
        return cls(
            starts=starts,
            first=(np.cumsum(width) - width)[starts],
            size=size,
            returns=returns.merged(starts),
            exact=exact,
            shares=np.add.reduceat(played, starts) / size[:, None],
            players=players,
            baseline=None if baseline is None else baseline.merged(starts),
        )

    @property
    def middle(self) -> Floats:
        """Where a group is drawn."""
        return np.asarray(self.first + self.size / 2)


class Lower(NamedTuple):
    """Lower values that are drawn over the episodes."""

    name: str
    episode: Floats
    value: Floats
    certified: Bools
    other: str = TRUSTED  # what is said of the others


class Scene(NamedTuple):
    """A run as it is drawn, whatever kind of run it is."""

    heading: str
    course: Course
    lower: list[Lower]
    levels: list[tuple[float | None, str, str]]  # value, name, style of a horizontal line
    # after so many episodes one of these was first: its name, its colour
    firsts: list[tuple[int | None, str, str]]
    alarm: int | None  # after so many episodes
    notes: list[str]
    unit: str
    warnings: list[str]
    # a floor that is measured from a value of the baseline that nobody knows
    relative: BaselineFloor | None = None


def plot_run(
    run: Run | GuardedRun | GuardRun, path: str | Path | None = None, title: str = ""
) -> "Figure":
    """Draw what a run earned: of `learn` or `guard_env` the mean returns of groups of equally many
    episodes.

    With them are the floor, the baseline (exact where the true model is known, else the mean of its
    own episodes so far), the lower value of the plans that were played, who played, when that
    changed, and an alarm. The band is the sampling error of each mean, about 95 % for one group at
    a time; it is no certificate. Of `simulate` and `simulate_guard` the same picture shows what
    they know. Values are in the user's units.
    """
    if not isinstance(run, Run | GuardedRun | GuardRun):
        raise InvalidSetting(
            "Expected a run, as sf.learn, sf.simulate, sf.guard_env or sf.simulate_guard returns "
            f"it, found {type(run).__name__}."
        )
    if run.episodes == 0:
        raise InvalidSetting("The run has no episode: there is nothing to draw.")
    scene = _scene_of_agent(run) if isinstance(run, Run) else _scene_of_guard(run)
    figure = new_figure(9.6, 5.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[6.0, 1.0])
    _draw_values(above, scene)
    _draw_players(below, scene)
    above.set_title(heading([title or scene.heading, *scene.warnings], LINE), fontsize=10)
    for axes in (above, below):
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8.5)
    return finished(figure, path)


def _draw_values(axes: "Axes", scene: Scene) -> None:
    course = scene.course
    x, shown = course.middle, course.returns
    n = int(np.median(course.size))
    what = "value of the policies" if course.exact else "return"
    marker = "o" if len(x) <= 15 else ""
    each = f"mean {what}, {n:,} episodes each" if len(x) > 1 else f"mean {what} of {n:,} episodes"
    axes.plot(x, shown.mean, color=COLOURS[0], lw=1.8, marker=marker, ms=3.5, zorder=5, label=each)
    reach = [shown.mean]
    if not course.exact:
        low, high = shown.band
        reach += [low, high]
        if len(x) > 1:
            axes.fill_between(
                x,
                low,
                high,
                color=COLOURS[0],
                alpha=0.2,
                lw=0,
                zorder=4,
                label="its sampling error (95 %)",
            )
        else:
            axes.errorbar(
                x,
                shown.mean,
                [shown.mean - low, high - shown.mean],
                color=COLOURS[0],
                capsize=4,
                zorder=4,
            )
    if course.baseline is not None:
        reach += _draw_baseline(axes, course, scene)
    for i, line in enumerate(scene.lower):
        reach.append(_draw_lower(axes, line, i))
    for value, name, style in scene.levels:
        if value is not None and np.isfinite(value):
            mark(axes.axhline, value, name, style)
            reach.append(np.array([value]))
    for k, name, colour in scene.firsts:
        if k is not None:
            axes.axvline(
                k,
                color=colour,
                ls=(0, (1.2, 1.2)),
                lw=1.4,
                zorder=1,
                label=f"first {name} after {k:,}",
            )
    last = int(course.first[-1] + course.size[-1])
    if scene.alarm is not None:
        axes.axvline(
            scene.alarm, color=ALARM_COLOUR, lw=2.0, zorder=6, label=f"ALARM after {scene.alarm:,}"
        )
        axes.axvspan(scene.alarm, last, color=ALARM_COLOUR, alpha=0.07, lw=0, zorder=0)
    found = np.concatenate([values[np.isfinite(values)] for values in reach])
    least, most = float(found.min()), float(found.max())
    room = 0.06 * (most - least) or 0.05 * max(abs(most), 1.0)
    axes.set_ylim(least - room, most + room)
    axes.set_ylabel(with_unit("return per episode", scene.unit))


def _draw_baseline(axes: "Axes", course: Course, scene: Scene) -> list[Floats]:
    """Draw the mean of the baseline's own returns up to each group, from the first in which it
    played, and a floor that is measured from it.
    """
    assert course.baseline is not None
    mean = course.baseline.so_far
    played = mean.n > 0
    low, high = (edge[played] for edge in mean.band)
    x = course.middle[played]
    label = f"baseline, mean of its\n{int(mean.n[-1]):,} episodes so far: {mean.mean[-1]:.4g}"
    axes.plot(x, mean.mean[played], color=GREY, ls="-.", lw=1.2, zorder=3, label=label)
    axes.fill_between(x, low, high, color=GREY, alpha=0.15, lw=0, zorder=2)
    # the band of the first few is wide, and need not be seen as a whole
    late = mean.n[played] >= FEWEST
    reach = [mean.mean[played], low[late], high[late]]
    if scene.relative is not None:
        floor = np.array([scene.relative.below(float(value)) for value in mean.mean[played]])
        label = (
            f"floor, {scene.relative.text(Units(name=scene.unit))}:\nabout {floor[-1]:.4g}, "
            "by that mean"
        )
        axes.plot(x, floor, color=GREY, ls="--", lw=1.2, zorder=2, label=label)
        reach.append(floor)
    return reach


def _draw_lower(axes: "Axes", line: Lower, i: int) -> Floats:
    """Draw lower values, solid where they are certified; return what must be seen of them."""
    colour = LOWER_COLOUR if i == 0 else SHARE_COLOURS[i % len(SHARE_COLOURS)]
    seen = np.where(line.certified, line.value, np.nan)
    # up to where it is certified
    before = np.where(line.certified & np.roll(line.certified, 1), np.nan, line.value)
    name = f"{in_legend(line.name)}: " if line.name else ""
    if np.isfinite(seen).any():
        label = f"{name}certified lower value"
        axes.plot(
            line.episode,
            seen,
            color=colour,
            lw=1.8,
            ls="-",
            marker=".",
            ms=3,
            zorder=5,
            label=label,
        )
    if (~line.certified & np.isfinite(line.value)).any():
        start = line.value[np.isfinite(line.value)][0]
        label = f"{name}lower value, {line.other}\n(begins at {start:.4g})"
        axes.plot(
            line.episode, before, color=colour, lw=1.4, ls=(0, (1.2, 1.0)), zorder=4, label=label
        )
    known = line.value[np.isfinite(line.value)]
    return np.array([known[-1]]) if known.size else np.zeros(0)


def _draw_players(axes: "Axes", scene: Scene) -> None:
    """Draw who played, as shares of each group."""
    course, bottom = scene.course, np.zeros(len(scene.course.first))
    for i, name in enumerate(course.players):
        share = course.shares[:, i]
        if share.any():
            colour = SHARE_COLOURS[i % len(SHARE_COLOURS)]
            axes.bar(
                course.first,
                share,
                course.size,
                bottom,
                align="edge",
                color=colour,
                lw=0,
                hatch=HATCHES[i % len(HATCHES)],
                edgecolor="white",
                label=in_legend(name),
            )
        bottom = bottom + share
    if scene.alarm is not None:
        axes.axvline(scene.alarm, color=ALARM_COLOUR, lw=2.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([0.0, 1.0], ["0 %", "100 %"], fontsize=8)
    axes.set_ylabel("played", fontsize=8.5)
    axes.set_xlim(0, int(course.first[-1] + course.size[-1]))
    axis_of_episodes(axes, scene.notes, LINE + 20)


def group_starts(width: Ints) -> Ints:
    """Return where groups begin that are drawn: at most 60, of at least 20 episodes each where
    there are as many.

    `width` are the episodes of the groups that are kept. All have equally many but the last, which
    has half as many at least.
    """
    episodes, size = int(width.sum()), int(width[0])
    wanted = max(FEWEST, -(-episodes // MOST_GROUPS))
    per = max(1, -(-wanted // size))
    starts = np.arange(0, len(width), per)
    if len(starts) > 1 and 2 * int(width[starts[-1] :].sum()) < per * size:
        starts = starts[:-1]
    return starts


BAND = (
    "Bands: 1.96 standard errors on either side of a mean, from the spread of its returns (where "
    "all are the same: the rule of three). That is about 95 % for one mean at a time, and no "
    "certificate."
)


def _scene_of_agent(run: Run) -> Scene:
    course, lower = (
        _simulated(run)
        if run.history is None or not len(run.history)
        else _observed(run, run.history)
    )
    alarm = None if run.alarm is None else run.alarm.episodes
    if run.promise.scope is None:
        lower = [line._replace(other="no floor is promised") for line in lower]
    elif run.in_sum:
        lower = [line._replace(other="certified in the sum alone") for line in lower]
    mean = run.mean_value if run.mean_return is None else run.mean_return
    earned = (
        f"{run.units.amount(float(f'{mean:.4g}'))} per episode "
        f"{'on average' if run.history else 'expected'}"
    )
    notes = [
        f"{run.agent}: {run.promise_in_words}{run.so_far}",
        *filter(None, [run.promise.footnote]),
    ]
    if run.relative_floor is not None:
        notes.append(_of_relative(run.relative_floor, course.baseline, run.units.name))
        notes.append(
            "Lower values may be below it: a policy is proved against the baseline, and not by "
            "them."
        )
    return Scene(
        heading=f"{run.agent}, {run.episodes:,} episodes: {earned}",
        course=course,
        lower=lower,
        levels=[
            (run.optimum, "optimum", ":"),
            (run.baseline, "baseline (exact)", "-."),
            (run.floor, "floor", "--"),
        ],
        firsts=[
            (run.first_mixture, "mixture", SHARE_COLOURS[1]),
            (run.first_optimistic, "optimistic episode", SHARE_COLOURS[2]),
        ],
        alarm=alarm,
        notes=notes if course.exact else [*notes, BAND],
        unit=run.units.name,
        warnings=(["NOT CERTIFIED"] if run.promise.kind == "not certified" else []) + _alarm(alarm),
        relative=run.relative_floor,
    )


def _alarm(after: int | None) -> list[str]:
    """Return what stands above a run with an alarm."""
    return (
        []
        if after is None
        else [f"ALARM after {after:,} episodes: nothing is promised from there on"]
    )


def _of_relative(floor: BaselineFloor, baseline: Sample | None, unit: str) -> str:
    """Say how the floor is drawn that is measured from the baseline, whose value nobody knows."""
    drawn = "drawn by the mean of the baseline's own episodes: an estimate, on which no plan rests."
    if baseline is None:
        drawn = (
            "not drawn: no episode was the baseline's alone, so nothing was seen of what it is "
            "worth."
        )
    return f"The floor, {floor.text(Units(name=unit))}'s value, is {drawn}"


def _observed(run: Run, known: History) -> tuple[Course, list[Lower]]:
    """Return the course of a live run."""
    returns = Sample(known.episodes, known.mean, known.squares, known.low, known.high)
    baseline = None
    if run.baseline is None and known.baseline_episodes.any():
        nothing = np.where(known.baseline_episodes > 0, 0.0, np.nan)
        own = (known.baseline_episodes, known.baseline_mean, known.baseline_squares)
        baseline = Sample(*own, known.low + nothing, known.high + nothing)
    course = Course.of(known.episodes, returns, known.sources, baseline=baseline)
    lower = np.fmin.reduceat(known.lower, course.starts)
    if not np.isfinite(lower).any():
        return course, []
    certified = np.add.reduceat(known.certified, course.starts) == course.size
    return course, [Lower("", course.middle, lower, certified)]


def _simulated(run: Run) -> tuple[Course, list[Lower]]:
    """Return the course of a simulated run: exact values, and lower values where checkpoints
    were asked for.
    """
    curve = run.curve
    values = Sample.of(curve.mean)._replace(n=curve.episodes)
    course = Course.of(curve.episodes, values, curve.sources, exact=True)
    if run.trace is None or run.promise.kind == "not certified":
        return course, []
    reached = (
        np.zeros(len(run.trace), dtype=np.bool_)
        if run.floor is None
        else run.trace.lower >= run.floor
    )
    return course, [Lower("", run.trace.episode.astype(np.float64), run.trace.lower, reached)]


def _scene_of_guard(run: GuardedRun | GuardRun) -> Scene:
    guard, state = run.guard, run.state
    columns, names = state.tickets.columns, [policy.name for policy in state.policies]
    settled = (columns.code != OPEN) & ~np.isnan(columns.ret)
    if not settled.any():
        raise InvalidSetting("No episode of this run has a return yet: there is nothing to draw.")
    mine = columns.policy[:, None] == np.arange(len(names))
    by_baseline = settled & mine[:, 0]
    own, returns = (
        Sample.of(np.where(some, columns.ret, np.nan)) for some in (by_baseline, settled)
    )
    course = Course.of(
        np.ones(len(settled), dtype=np.int64),
        returns,
        mine.astype(np.int64),
        names,
        baseline=own if by_baseline.any() else None,
    )
    complete = course.returns.n >= (1.0 - MOST_OPEN) * course.size
    complete |= ~complete.any()
    means = np.where(complete, course.returns.mean, np.nan)
    course = course._replace(returns=course.returns._replace(mean=means))
    alarm = run.alarm_after if isinstance(run, GuardedRun) else None
    relative, fixed = (
        (guard.floor, None)
        if isinstance(guard.floor, BaselineFloor)
        else (None, float(guard.floor))
    )
    notes = [f"Guard: {state.alarm or run.promise}", BAND]
    lower = _lower_of_guard(guard, state, course, alarm)
    if relative is not None:
        notes.append(_of_relative(relative, course.baseline, guard.unit))
    if lower:
        notes.append("Lower values: what the episodes up to there prove by now.")
    if state.open_tickets:
        notes.append(
            f"{state.open_tickets:,} episodes without a return are in no mean (groups with many of "
            "them have none, if others have one): what returns late may differ. In lower values "
            "they count as the worst."
        )
    mean = f"{columns.ret[settled].mean():.4g} {guard.unit}".rstrip()
    return Scene(
        heading=f"Guard, {run.episodes:,} episodes: {mean} per episode on average",
        course=course,
        lower=lower,
        levels=[(fixed, "floor", "--")],
        firsts=[
            (int(np.argmax(mine[:, p])), name, SHARE_COLOURS[p % len(SHARE_COLOURS)])
            for p, name in enumerate(names)
            if p > 0 and mine[:, p].any()
        ],
        alarm=alarm,
        notes=notes,
        unit=guard.unit,
        warnings=["ALARM: nothing is promised any more"]
        if state.alarm and alarm is None
        else _alarm(alarm),
        relative=relative,
    )


def _lower_of_guard(
    guard: Guard, state: GuardState, course: Course, alarm: int | None
) -> list[Lower]:
    """Return what the tickets up to the end of each group prove of the policies that played enough
    of them.

    Tickets without a return count as the lowest one. Where the floor is measured from the baseline,
    delta is spent on comparisons with it, and no value is certified; nor is any after an alarm.
    """
    if guard.rule.relative or (state.alarm and alarm is None):
        return []
    columns, ends = state.tickets.columns, course.first + course.size
    played = course.shares.T @ course.size
    trusted = np.inf if alarm is None else alarm  # up to this episode
    found, tables = [], kernels.portfolio_from()
    for p in np.flatnonzero(played >= LEAST_SHARE * played.sum()).tolist():
        weights = np.zeros(len(NODES) + 1, dtype=np.int64)
        if p == 0 and state.logged is not None:
            weights = weights + state.logged.settled
            weights[0] += state.logged.missing * EPISODE
        level, best, values, before = log_inverse(guard.levels(p)[0]), 0.0, [], 0
        for end in ends:
            codes = columns.code[before:end][columns.policy[before:end] == p]
            weights = weights + weights_of([int(code) for code in codes[codes != OPEN]])
            weights[0] += int((codes == OPEN).sum()) * EPISODE
            best = max(best, kernels.mean_lower(tables, weights, 1, level))
            values.append(lower_value(Proved(best, 0), guard.low, guard.high))
            before = end
        silent = np.where(ends > trusted, np.nan, values)
        found.append(Lower(state.policies[p].name, ends.astype(np.float64), silent, ends > 0))
    return found
