"""Trials made by hand: all that follows from the returns of their bins is worked out here."""

import numpy as np

from surefoot.studies.run.trial import Trial
from surefoot.studies.spec.study import Cell


def trial_by_hand(
    cell: Cell,
    trial: int,
    mean: np.ndarray,
    sources: np.ndarray,
    by_h: np.ndarray,
    **fields: object,
) -> Trial:
    """A trial with these means, episodes per exit and episodes per h of bins of one width.

    `fields` are what does not follow from them, and what is to be otherwise.
    """
    width = int(np.sum(sources[0]))
    lost = np.cumsum(width * (fields["optimum"] - mean))
    log = cell.scenario.log
    on_baseline, on_mixture, on_optimistic = np.sum(sources, axis=0)
    worked_out = {
        "study": cell.study,
        "scenario": cell.scenario.id,
        "agent": cell.agent.id,
        "trial": trial,
        "label": cell.label,
        "digest": cell.digest,
        "knows_baseline_value": False,
        "episodes": width * len(mean),
        "violations": 0,
        "regret": lost[-1],
        "min_value": mean.min(),
        "mean_value": mean.mean(),
        "on_baseline": on_baseline,
        "on_mixture": on_mixture,
        "on_optimistic": on_optimistic,
        "min_cumulative": 0.0,
        "log_episodes": None if log is None else log.episodes,
        "log_lower": None,
        "log_behaviour": None,
        "by_h": np.sum(by_h, axis=0),
        "curve_episode": width * np.arange(len(mean)),
        "curve_episodes": np.full(len(mean), width),
        "curve_mean": mean,
        "curve_min": mean,
        "curve_below": np.zeros(len(mean)),
        "curve_regret": lost,
        "curve_sources": sources,
        "curve_by_h": by_h,
    }
    traces = ("episode", "lower", "upper", "rho", "h", "candidates")
    no_trace = {f"trace_{name}": () for name in traces}
    return Trial(**{**worked_out, **no_trace, **fields})
