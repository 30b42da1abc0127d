"""The results of a study in numbers: one row per cell, from the trials that are there."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.rivals.registry import AGENTS
from surefoot.studies.analysis.stats import at_most, mean_interval, summarise_optional
from surefoot.studies.analysis.trials import (
    baseline_is_below,
    breaks_promise,
    certificate_is_false,
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


# Every column of the summary with its SQL type: rows in Python, JSON and the SQL table `summary` are made from it.
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
        for ending, kind in (("", "DOUBLE"), ("_earliest", "BIGINT"), ("_latest", "BIGINT"), ("_never", "BIGINT"))
    },
}


def summary(results: Results) -> list[dict[str, Any]]:
    """Return one row per cell, in the order of the study. A cell without trials has None for what only they can tell.

    Returns and regret are in the world's units, means over trials; `low` and `high` are 95 % t intervals (None of one
    trial). Beside each is what the baseline alone would have had in the same trials. Episodes count from 0: the median
    over trials is None where half of them never got there.
    """
    return [
        {**dict.fromkeys(COLUMNS), **_row(cell, results.trials.get(cell.id, ()), results.study.trials)}
        for cell in results.study.cells
    ]


def _row(cell: Cell, trials: Sequence[Trial], wanted: int) -> dict[str, Any]:
    """Return what is known of a cell."""
    row: dict[str, Any] = {
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
    regret, returns = (mean_interval([getattr(trial, of) for trial in trials]) for of in ("regret", "mean_value"))
    below = sum(trial.violations > 0 for trial in trials)
    return {
        **row,
        "knows_baseline_value": any(trial.knows_baseline_value for trial in trials),
        "floor": _one_or_mean([trial.floor for trial in trials]),
        "optimum": _one_or_mean([trial.optimum for trial in trials]),
        "baseline": _mean([trial.baseline for trial in trials]),
        "baseline_low": min(trial.baseline for trial in trials),
        "baseline_high": max(trial.baseline for trial in trials),
        "baseline_below": sum(baseline_is_below(trial) for trial in trials),
        "violations": _mean([trial.violations for trial in trials]),
        "baseline_violations": _mean([trial.episodes if baseline_is_below(trial) else 0 for trial in trials]),
        "runs_below": below,
        "runs_below_at_most": at_most(below, len(trials)),
        "certified": sum(is_proved(trial) for trial in trials),
        "on_trust": sum(is_on_trust(trial) for trial in trials),
        "false_logs": sum(certificate_is_false(trial) for trial in trials),
        "broken": sum(breaks_promise(trial) for trial in trials),
        "premise_false": sum(premise_is_false(trial) for trial in trials),
        "not_certified": sum(is_uncertified(trial) for trial in trials),
        "no_floor": sum(not trial.promise.keeps_floor for trial in trials),
        "promises": promises_of(trials),
        "regret": regret.mean,
        "regret_low": _finite(regret.low),
        "regret_high": _finite(regret.high),
        "baseline_regret": _mean([trial.episodes * (trial.optimum - trial.baseline) for trial in trials]),
        "mean_return": returns.mean,
        "mean_return_low": _finite(returns.low),
        "mean_return_high": _finite(returns.high),
        "baseline_return": _mean([trial.baseline for trial in trials]),
        **{key: value for name in MOMENTS for key, value in _first(name, [getattr(t, name) for t in trials]).items()},
    }


def on_given_value(row: Row) -> bool:
    """Does the promise rest on the value of the baseline that was given? Then runs that left it are on trust, too."""
    return (row["on_trust"] or 0) > (row["off_baseline_never"] or 0)


def promised_runs(row: Row) -> int:
    """Return how many runs came with a promise, certified or given the baseline's value."""
    return (row["certified"] or 0) + ((row["on_trust"] or 0) if on_given_value(row) else 0)


def _first(name: str, when: Sequence[int | None]) -> dict[str, Any]:
    """Return when something first happened: median, earliest, latest, and in how many trials it never did."""
    median, never = summarise_optional(when)
    happened = [k for k in when if k is not None]
    return {
        name: median,
        f"{name}_earliest": min(happened, default=None),
        f"{name}_latest": max(happened, default=None),
        f"{name}_never": never,
    }


def _mean(values: Sequence[float]) -> float:
    return mean_interval([float(value) for value in values]).mean


def _one_or_mean(values: Sequence[float]) -> float:
    """Return the value, which is the same in all trials; their mean where trials are in several worlds."""
    return values[0] if len(set(values)) == 1 else _mean(values)


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else value
