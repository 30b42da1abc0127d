"""The bounds of a plan at every step and state, by the kernels that plan."""

from typing import NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.bounds.model import margin
from surefoot.model.policy import one_hot


class Values(NamedTuple):
    """Of one policy: V_low <= V^pi <= V_up, both (H+1, S)."""

    policy: np.ndarray
    V_low: np.ndarray
    V_up: np.ndarray


def evidence_of(bounds, problem, counts, delta_prime, row_sum_error=0.0):
    """What the kernels read of these counts, up to date."""
    rounding = margin(problem.H, row_sum_error)
    evidence = bounds.evidence(problem, counts.copy(), delta_prime, rounding, uppers=True)
    kernels.refresh_all(evidence)
    return evidence


def splices_of(evidence, pi_b, explorer=None):
    """The optimistic policy (or an explorer's) and its splices with pi_b, h0 = 0 .. H."""
    H, S, A = pi_b.shape
    found = kernels.empty_splices(np.arange(H + 1), np.ascontiguousarray(pi_b), explorer)
    kernels.bound_splices(evidence, found, np.zeros(0, dtype=np.int64), 0, S)
    bold = one_hot(found.pi_bar, A) if explorer is None else np.asarray(explorer)
    values = []
    for h0 in range(H + 1):  # from step h0 on the values are those of slot 0
        policy = np.concatenate([pi_b[:h0], bold[h0:]])
        both = (np.concatenate([V[:h0, h0], V[h0:, 0]]) for V in (found.V_low, found.V_up))
        values.append(Values(policy, *both))
    return values


def plan_values(bounds, problem, counts, delta_prime, pi_b, explorer=None):
    """`splices_of` these counts: first the optimistic policy (or the explorer's), last pi_b."""
    return splices_of(evidence_of(bounds, problem, counts, delta_prime), pi_b, explorer)
