"""The results of a study in numbers: one row per cell, from the trials that are there."""

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.stats import at_most, mean_interval, summarise_optional
from surefoot.studies.analysis.trials import (
    Of,
    baseline_is_below,
    breaks_promise,
    certificate_is_false,
    column,
    count,
    is_on_trust,
    is_proved,
    is_uncertified,
    premise_is_false,
    promises_of,
)
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Cell

Row = Mapping[str, Any]  # of the summary, by column
Rows = Sequence[Row]


# Every column of the summary with its SQL type: rows in Python, JSON and the SQL table `summary`
# are made from it.
MOMENTS = ("off_baseline", "first_optimistic")
COLUMNS = {
    "scenario": "VARCHAR",  # the scenario's id
    "scenario_title": "VARCHAR",
    "agent": "VARCHAR",  # the agent's id
    "label": "VARCHAR",
    "in_sum": "BOOLEAN",
    "delta": "DOUBLE",
    "episodes": "BIGINT",
    "trials": "BIGINT",
    "trials_wanted": "BIGINT",
    "knows_baseline_value": "BOOLEAN",  # does the agent know the baseline's value?
    "floor": "DOUBLE",
    "optimum": "DOUBLE",
    "baseline": "DOUBLE",
    "baseline_low": "DOUBLE",
    "baseline_high": "DOUBLE",
    "baseline_below": "BIGINT",
    "violations": "DOUBLE",
    "baseline_violations": "DOUBLE",
    "runs_below": "BIGINT",
    "runs_below_at_most": "DOUBLE",
    "certified": "BIGINT",
    "on_trust": "BIGINT",
    "false_logs": "BIGINT",
    "broken": "BIGINT",
    "premise_false": "BIGINT",
    "not_certified": "BIGINT",
    "no_floor": "BIGINT",
    "promises": "VARCHAR",  # in SQL as JSON: sentences, and how many trials have each
    "regret": "DOUBLE",
    "regret_low": "DOUBLE",
    "regret_high": "DOUBLE",
    "baseline_regret": "DOUBLE",
    "mean_return": "DOUBLE",
    "mean_return_low": "DOUBLE",
    "mean_return_high": "DOUBLE",
    "baseline_return": "DOUBLE",
    **{
        f"{moment}{ending}": kind
        for moment in MOMENTS
        for ending, kind in (
            ("", "DOUBLE"),
            ("_earliest", "BIGINT"),
            ("_latest", "BIGINT"),
            ("_never", "BIGINT"),
        )
    },
}
MEANS: dict[str, Of] = {  # over trials
    "floor": "floor",
    "optimum": "optimum",
    "violations": "violations",
    "baseline_violations": lambda trial: trial.episodes if baseline_is_below(trial) else 0,
    "regret": "regret",
    "baseline_regret": lambda trial: trial.episodes * (trial.optimum - trial.baseline),
    "mean_return": "mean_value",
    "baseline_return": "baseline",
}
COUNTS: dict[str, Of] = {  # of trials
    "baseline_below": baseline_is_below,
    "certified": is_proved,
    "on_trust": is_on_trust,
    "false_logs": certificate_is_false,
    "broken": breaks_promise,
    "premise_false": premise_is_false,
    "not_certified": is_uncertified,
    "no_floor": lambda trial: not trial.promise.keeps_floor,
}


def summary(results: Results) -> list[dict[str, Any]]:
    """Return one row per cell, in the order of the study. A cell without trials has None for what
    only they can tell.

    Returns and regret are in the world's units, means over trials; `low` and `high` are 95 % t
    intervals (None of one trial). Beside each is what the baseline alone would have had in the same
    trials. Episodes count from 0: the median over trials is None where half of them never got
    there.
    """
    return [
        _row(cell, results.trials.get(cell.id, ()), results.study.trials)
        for cell in results.study.cells
    ]


def _row(cell: Cell, trials: Sequence[Trial], wanted: int) -> dict[str, Any]:
    """Return what is known of a cell."""
    row: dict[str, Any] = {
        **dict.fromkeys(COLUMNS),
        "scenario": cell.scenario.id,
        "scenario_title": cell.scenario.heading,
        "agent": cell.agent.id,
        "label": cell.label,
        "in_sum": AGENTS[cell.agent.agent].in_sum,
        "delta": cell.delta,
        "episodes": cell.episodes,
        "trials": len(trials),
        "trials_wanted": wanted,
    }
    if not trials:
        return row
    for name, of in MEANS.items():
        known = mean_interval(column(trials, of))
        row[name] = known.mean
        if f"{name}_low" in COLUMNS and known.n > 1:
            row[f"{name}_low"], row[f"{name}_high"] = known.low, known.high
    for name in MOMENTS:
        # The median is None where it lies among those in which it never happened.
        when = column(trials, name)
        happened = [k for k in when if k is not None]
        row[name], row[f"{name}_never"] = summarise_optional(when)
        row[f"{name}_earliest"] = min(happened, default=None)
        row[f"{name}_latest"] = max(happened, default=None)
    worth, below = column(trials, "baseline"), count(trials, "violations")
    return {
        **row,
        **{name: count(trials, of) for name, of in COUNTS.items()},
        "knows_baseline_value": any(column(trials, "knows_baseline_value")),
        "baseline": row["baseline_return"],
        "baseline_low": min(worth),
        "baseline_high": max(worth),
        "runs_below": below,
        "runs_below_at_most": at_most(below, len(trials)),
        "promises": promises_of(trials),
    }


def total(rows: Rows, key: str) -> Any:
    """Return the sum over cells; one without trials has none."""
    return sum(row[key] or 0 for row in rows)


def on_given_value(row: Row) -> bool:
    """Does the promise rest on the value of the baseline that was given? Then runs that left it
    are on trust, too.
    """
    return (row["on_trust"] or 0) > (row["off_baseline_never"] or 0)


def promised_runs(row: Row) -> int:
    """Return how many runs came with a promise, certified or given the baseline's value."""
    return (row["certified"] or 0) + ((row["on_trust"] or 0) if on_given_value(row) else 0)
