"""plot_plan: which action in which state and step, and where that differs from the baseline."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surefoot.agents.base import Agent, CountingAgent, adapted
from surefoot.agents.plan import Plan
from surefoot.base.arrays import Bools, Floats, Ints
from surefoot.base.text import shortened
from surefoot.base.validation import at_least, told
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.names import Names
from surefoot.model.policy import EpisodicMixture
from surefoot.model.steps import added_steps, common_start
from surefoot.show.figures import COLOURS, finished, heading, new_figure, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS, MOST_COLUMNS = 24, 10
SAME = 0.005  # decisions that differ less often than this are called the same
LONGEST = 14  # characters of an action in a cell
FAINT = "#8A8A8A"  # of what was never visited


class Table(NamedTuple):
    """What is drawn: a row for each state, a column for each group of steps that look alike."""

    states: Ints
    steps: list[tuple[int, int]]  # the first and the last step of each column
    texts: list[list[str]]
    differs: Floats  # (rows, columns) how often decisions differ from the baseline's
    visited: Bools  # (rows, columns)


def plot_plan(
    plan: Plan,
    path: str | Path | None = None,
    title: str = "",
    *,
    agent: Agent | None = None,
    counts: Counts | None = None,
) -> "Figure":
    """Draw which action a plan takes in which state and step, and where that differs from the
    baseline.

    Colour says how often the decision differs. A cell has the likeliest action, with its
    probability where that is not 1, and below it what the baseline does, where they differ. Of more
    than 24 states those are drawn that are visited most. Steps that look alike are one column.
    States that were never visited are left out. The picture says what it leaves out.

    `agent` and `counts` are needed only where the plan does not know them: of an agent of your own,
    or of a rival.
    """
    mine = _agent_of(plan, agent)
    problem = mine.problem
    seen = counts if counts is not None else getattr(plan.grounds, "counts", None)
    if seen is not None and not isinstance(seen, Counts):
        raise InvalidSetting(
            f"counts is {told(seen)}, expected the counts that the plan was made from."
        )
    pi = plan.policy
    if isinstance(pi, EpisodicMixture):
        pi = pi.second if pi.rho > 0.0 else pi.first
    if pi.shape != (problem.H, problem.S, problem.A):
        raise InvalidSetting(
            f"The plan has a policy of shape {pi.shape}, which is not for {problem}. Give its "
            "agent."
        )
    # at a step that only draws the first state nobody decides anything
    first = added_steps(problem)
    pi = pi[first:]
    baseline = mine.pi_b[first:] if mine.plays_baseline else pi
    differs = 0.5 * np.abs(pi - baseline).sum(axis=-1)
    visits = np.zeros(pi.shape[:2], dtype=np.int64)
    if seen is not None:
        visits = np.broadcast_to(seen.n_sa.sum(axis=-1), (problem.H, problem.S))[first:]
    nobody_decides = {problem.absorbing_state, problem.unseen_state, common_start(problem)}
    states, left_out = _chosen_states(visits, nobody_decides)
    table = _table(pi, baseline, differs, visits, states, problem.names)
    wide = max(6.4, 2.2 + 1.25 * len(table.steps))
    notes = [*left_out, *_notes(plan, table, len(pi), mine.plays_baseline)]
    lines = wrapped(notes, int(13 * wide))
    figure = new_figure(wide, 1.9 + 0.4 * len(states) + 0.16 * len(lines))
    axes = figure.subplots()
    _draw(axes, table, problem.names, mine.plays_baseline)
    axes.set_title(heading([title or _heading(plan, mine)], int(10 * wide)), fontsize=10)
    axes.set_xlabel("\n".join(lines), fontsize=8)
    return finished(figure, path)


def _agent_of(plan: Plan, given: Agent | None) -> CountingAgent:
    if not isinstance(plan, Plan):
        raise InvalidSetting(
            f"Expected a plan, as agent.plan(counts) returns it, found {type(plan).__name__}."
        )
    agent = given if given is not None else getattr(plan.grounds, "agent", None)
    if agent is None:
        raise InvalidSetting(
            "The plan does not say which agent made it. Give it: sf.plot_plan(plan, agent=agent)."
        )
    return adapted(agent)


def _chosen_states(visits: Ints, nobody_decides: set[int | None]) -> tuple[Ints, list[str]]:
    """Return the states that are drawn, in the order of their numbers, and a sentence about those
    that are not.
    """
    often = visits.sum(axis=0)
    states = np.array([s for s in range(len(often)) if s not in nobody_decides], dtype=np.int64)
    most = states[np.lexsort((states, -often[states]))]
    if often.any():
        most = most[often[most] > 0]
    shown = np.sort(most[:MOST_ROWS])
    if len(shown) == len(states):
        return shown, []
    visited = ""
    if often.any():
        visited = f", with {often[shown].sum() / often[states].sum():.1%} of all visits"
    return shown, [f"{len(shown)} of {len(states):,} states: those visited most{visited}."]


def _table(
    pi: Floats, baseline: Floats, differs: Floats, visits: Ints, states: Ints, names: Names
) -> Table:
    """Return the cells. Neighbouring steps with the same texts are one column; too many of those
    are thinned out.
    """
    H = len(pi)
    columns = [[_text(pi[h, s], baseline[h, s], names) for s in states] for h in range(H)]
    begins = [h for h in range(H) if h == 0 or columns[h] != columns[h - 1]]
    steps = [(h, end - 1) for h, end in zip(begins, [*begins[1:], H], strict=True)]
    if len(steps) > MOST_COLUMNS:
        kept = np.unique(np.linspace(0, len(steps) - 1, MOST_COLUMNS).round().astype(int))
        steps = [steps[i] for i in kept]
    there = visits[:, states] > 0 if visits.any() else np.ones((H, len(states)), dtype=np.bool_)
    return Table(
        states,
        steps,
        [columns[first] for first, _ in steps],
        np.array([differs[first : last + 1, states].max(axis=0) for first, last in steps]).T,
        np.array([there[first : last + 1].any(axis=0) for first, last in steps]).T,
    )


def _text(row: Floats, before: Floats, names: Names) -> str:
    """Return the likeliest action, and below it that of the baseline, where decisions differ."""
    mine = _likeliest(row, names)
    if 0.5 * np.abs(row - before).sum() <= SAME:
        return mine
    return f"{mine}\nbaseline: {_likeliest(before, names)}"


def _likeliest(row: Floats, names: Names) -> str:
    a = int(row.argmax())
    name = names.action_name(a) if names.actions is not None else f"action {a}"
    name = shortened(name, LONGEST)
    return name if row[a] >= 1.0 - SAME else f"{name} {100.0 * row[a]:.0f} %"


def _draw(axes: "Axes", table: Table, names: Names, compared: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("differs", ["#FFFFFF", COLOURS[3]])
    rows, columns = table.differs.shape
    picture = axes.pcolormesh(
        table.differs, cmap=shades, vmin=0.0, vmax=1.0, edgecolors="#D0D0D0", linewidth=0.6
    )
    for j, texts in enumerate(table.texts):
        for i, text in enumerate(texts):
            colour = "black" if table.visited[i, j] else FAINT
            axes.text(
                j + 0.5,
                i + 0.5,
                text,
                ha="center",
                va="center",
                fontsize=7,
                color=colour,
                linespacing=1.0,
            )
    axes.set_yticks(
        np.arange(rows) + 0.5, [names.state_name(int(s))[:30] for s in table.states], fontsize=8
    )
    heads = [
        f"{first + 1}" if first == last else f"{first + 1}-{last + 1}"
        for first, last in table.steps
    ]
    axes.set_xticks(np.arange(columns) + 0.5, heads, fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_ylabel("state")
    axes.invert_yaxis()
    axes.text(-0.01, 1.005, "step", transform=axes.transAxes, ha="right", va="bottom", fontsize=8)
    axes.spines[:].set_visible(False)
    if compared:
        bar = axes.figure.colorbar(picture, ax=axes, fraction=0.04, pad=0.02, ticks=[0.0, 0.5, 1.0])
        bar.ax.set_yticklabels(["same", "50 %", "100 %"], fontsize=7)
        bar.set_label("decisions other than the baseline's", fontsize=7.5)


def _heading(plan: Plan, agent: CountingAgent) -> str:
    if plan.alarm is not None:
        return f"{agent.name}: the baseline, frozen after an ALARM"
    worth = ""
    if np.isfinite(plan.lower) and plan.safety != "NOT CERTIFIED":
        worth = f", worth at least {at_least(plan.lower)} {agent.problem.units.name}".rstrip()
    return f"{agent.name}: {plan.source} ({plan.safety}{worth})"


def _notes(plan: Plan, table: Table, H: int, compared: bool) -> list[str]:
    notes = []
    drawn = sum(last - first + 1 for first, last in table.steps)
    if drawn < H:
        notes.append(f"{drawn} of {H} steps are drawn, evenly chosen.")
    if isinstance(plan.policy, EpisodicMixture) and 0.0 < plan.policy.rho < 1.0:
        notes.append(
            f"A coin decides for the whole episode: this with probability {plan.policy.rho:.3g}, "
            "else the baseline."
        )
    if not table.visited.all():
        notes.append("Grey: never visited at that step.")
    if compared and not (table.differs > SAME).any():
        notes.append("Every decision is the baseline's.")
    return notes
