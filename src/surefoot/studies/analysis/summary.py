"""What came of a study in numbers: one row a cell, by the trials that are there."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.agents import AGENTS
from surefoot.studies.analysis.promises import (
    baseline_is_below,
    breaks_promise,
    certificate_is_false,
    is_on_trust,
    is_proved,
    is_uncertified,
    premise_is_false,
    promises_of,
)
from surefoot.studies.analysis.stats import at_most, mean_interval, summarise_optional
from surefoot.studies.run.store import Results
from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Cell

NOISE = 1e-6  # sums of rounding errors over all episodes stay below


def summary(results: Results) -> list[dict[str, Any]]:
    """One row a cell, in the order of the study. A cell without trials has None for what only they can tell.

    Returns and regret are in the world's units, means over trials; `low` and `high` are 95 % t intervals (None of one
    trial). Beside each is what the baseline alone would have had in the same trials. Episodes count from 0: the median
    over trials is None where half of them never got there.
    """
    return [
        _row(cell, results.of(cell.scenario.id, cell.agent.id), results.study.trials) for cell in results.study.cells
    ]


def _row(cell: Cell, trials: Sequence[Trial], wanted: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "panel": cell.scenario.id,
        "panel_title": cell.scenario.heading,
        "learner": cell.agent.id,
        "label": cell.label,
        "in_sum": AGENTS[cell.agent.agent].in_sum,
        "delta": cell.delta,
        "episodes": cell.episodes,
        "trials": len(trials),
        "trials_wanted": wanted,
    }
    if not trials:
        return {**row, **dict.fromkeys(OF_TRIALS)}
    regret, returns = (mean_interval([getattr(trial, of) for trial in trials]) for of in ("regret", "mean_value"))
    below = sum(trial.violated for trial in trials)
    return {
        **row,
        "told": any(trial.told for trial in trials),
        "floor": trials[0].floor,
        "optimum": trials[0].optimum,
        "baseline": _mean([trial.baseline for trial in trials]),
        "baseline_low": min(trial.baseline for trial in trials),
        "baseline_high": max(trial.baseline for trial in trials),
        "baseline_below": sum(baseline_is_below(trial) for trial in trials),
        "violations": _mean([trial.violations for trial in trials]),
        "baseline_violations": _mean([trial.episodes * baseline_is_below(trial) for trial in trials]),
        "runs_below": below,
        "runs_below_at_most": at_most(below, len(trials)),
        "certified": sum(is_proved(trial, cell.agent) for trial in trials),
        "on_trust": sum(is_on_trust(trial, cell.agent) for trial in trials),
        "false_logs": sum(certificate_is_false(trial) for trial in trials),
        "broken": sum(breaks_promise(trial, cell.agent) for trial in trials),
        "premise_false": sum(premise_is_false(trial) for trial in trials),
        "not_certified": sum(is_uncertified(trial) for trial in trials),
        "no_floor": sum("no floor promised" in trial.promise for trial in trials),
        "promises": promises_of(trials),
        "regret": regret.mean,
        "regret_low": _finite(regret.low),
        "regret_high": _finite(regret.high),
        "baseline_regret": _mean([trial.episodes * (trial.optimum - trial.baseline) for trial in trials]),
        "mean_return": returns.mean,
        "mean_return_low": _finite(returns.low),
        "mean_return_high": _finite(returns.high),
        "baseline_return": _mean([trial.baseline for trial in trials]),
        **_first("off_baseline", [trial.off_baseline for trial in trials]),
        **_first("first_optimistic", [trial.first_optimistic for trial in trials]),
    }


def _first(name: str, when: Sequence[int | None]) -> dict[str, Any]:
    """Median, earliest, latest, and how many never."""
    median, never = summarise_optional(when)
    happened = [k for k in when if k is not None]
    return {
        name: median,
        f"{name}_earliest": min(happened, default=None),
        f"{name}_latest": max(happened, default=None),
        f"{name}_never": never,
    }


OF_TRIALS = (
    *("told", "floor", "optimum", "baseline", "baseline_low", "baseline_high", "baseline_below", "violations"),
    *("baseline_violations", "runs_below", "runs_below_at_most", "certified", "on_trust", "false_logs"),
    *("broken", "premise_false", "not_certified", "no_floor", "promises"),
    *("regret", "regret_low", "regret_high", "baseline_regret"),
    *("mean_return", "mean_return_low", "mean_return_high", "baseline_return"),
    *_first("off_baseline", [None]),
    *_first("first_optimistic", [None]),
)


def _mean(values: Sequence[float]) -> float:
    return mean_interval([float(value) for value in values]).mean


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else value


def amount(value: float | None) -> str:
    """A number for people: whole from a thousand on, four digits below."""
    if value is None:
        return "–"
    value = 0.0 if abs(value) < NOISE else value
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
