"""The methods that learn a baseline from a log, by name: the one list for commands, studies and
reports.

To add a method, write its function and add it to METHODS.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from surefoot.evidence.counts import Counts
from surefoot.logs.methods.learnt import Learnt
from surefoot.logs.methods.robust import clone, robust_vi, spibb
from surefoot.logs.methods.vi_lcb import vi_lcb
from surefoot.model.problem import Problem


class Method(NamedTuple):
    """A method, what it is called in a sentence, and which counts it takes."""

    learn: Callable[[Counts, Problem, float], Learnt]  # counts, problem and delta
    words: str  # "learnt by ... from a log"
    # does each step need episodes of its own? Then the counts are those of the folds
    by_folds: bool = False


METHODS = {
    "robust": Method(robust_vi, "KL-robust learning"),
    "vi-lcb": Method(vi_lcb, "VI-LCB", by_folds=True),
    "vi-lcb-first": Method(
        partial(vi_lcb, ties="first"), "VI-LCB with first-index ties", by_folds=True
    ),
    "clone": Method(clone, "cloning"),
    "spibb": Method(spibb, "SPIBB"),
}
