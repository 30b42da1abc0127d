"""The planning cases of tests/data/check-values.json."""

import numpy as np

import surefoot as sf

CASES = range(9)


def built(case):
    """The problem, the baseline and the counts of a case."""
    problem = sf.Problem(case["r"], s1=case["s1"])
    return problem, np.array(case["baseline"]), sf.Counts(case["n_sas"])
