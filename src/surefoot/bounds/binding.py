"""Which pairs keep a certified value low: where more data would help most."""

from dataclasses import dataclass, field

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Floats, Ints
from surefoot.base.text import how_many
from surefoot.bounds.frequencies import Frequencies
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem
from surefoot.model.steps import step_name

SHOWN = 5  # pairs


@dataclass(frozen=True)
class Binding:
    """A pair that keeps a lower value low."""

    step: int | None  # None: all steps together, where counts are pooled
    state: int
    action: int
    visits: int
    # about what it costs the lower value at the start, in the user's units: visits times what is
    # lost
    cost: float
    # of the problem; None: it has only numbers
    state_name: str | None = field(default=None, compare=False, repr=False)
    action_name: str | None = field(default=None, compare=False, repr=False)
    # as people count; None: all steps together
    step_name: str | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        step = "" if self.step_name is None else f", {self.step_name}"
        state = self.state if self.state_name is None else self.state_name
        action = self.action if self.action_name is None else self.action_name
        return f"state {state}, action {action}{step}: {self.visited}"

    @property
    def visited(self) -> str:
        """How often it was visited, in words."""
        return how_many(self.visits, "visit")


def binding_pairs(
    problem: Problem, counts: Counts, evidence: "kernels.Evidence", policy: Floats, V_low: Floats
) -> list[Binding]:
    """Return where the lower values V_low (H+1, S) of this policy lose most against the estimate,
    largest loss first.

    The loss of a pair is how far its worst mean is below the estimated one, times how often the
    policy visits the pair in the estimated world. Losses add up to about the difference between
    estimate and certificate.
    """
    H, S, A = problem.H, problem.S, problem.A
    # else it is up to date, perhaps with balls of its own (undeclared.py)
    if (evidence.n_fresh < 0).any():
        kernels.refresh_all(evidence)
    seen = Frequencies.of(counts.transitions)
    scratch = np.zeros((5, S * A))
    reach = (
        counts.n_start / max(1, counts.n_start.sum())
        if problem.start is None
        else np.asarray(problem.start)
    )
    losses = np.zeros((H, S, A))
    for h in range(H):
        ahead = V_low[h + 1]
        row = counts.row(h)
        kernels.look_ahead(evidence, ahead, ahead, S * A, False)
        kernels.q_bounds(
            evidence, row, h, 0, S * A, H, ahead, ahead, scratch, kernels.LOWER, np.zeros((0, 0))
        )
        there = seen[row]
        mean = there.rewards(problem, counts, h) + there.mean(
            ahead[there.state], possible_mean(problem, h, ahead)
        )
        taken = reach[:, None] * policy[h]
        losses[h] = taken * (mean - scratch[1].reshape(S, A))
        reach = there.reached(taken) + possible_next(
            problem, h, np.where(there.n_sa == 0, taken, 0.0)
        )
    pooled = counts.pooled and H > 1
    if pooled:
        losses = losses.sum(axis=0, keepdims=True)
    return largest(problem, losses, counts.played, pooled)


def largest(problem: Problem, costs: Floats, n_sa: Ints, pooled: bool = False) -> list[Binding]:
    """Return the pairs (h, s, a) that cost most, the worst first."""
    scale, names = problem.units.scale, problem.names
    named = names.states is not None, names.actions is not None
    found = np.argsort(-costs, axis=None)[:SHOWN]
    places = [tuple(int(i) for i in np.unravel_index(i, costs.shape)) for i in found]
    return [
        Binding(
            None if pooled else h,
            s,
            a,
            int(n_sa[h, s, a]),
            scale * float(costs[h, s, a]),
            names.state_name(s) if named[0] else None,
            names.action_name(a) if named[1] else None,
            None if pooled else step_name(problem, h),
        )
        for h, s, a in places
        if costs[h, s, a] > 1e-9
    ]


def possible_mean(problem: Problem, h: int, V: Floats) -> Floats:
    """Return the mean of V after each pair (S, A), if all possible next states are alike."""
    limits = problem.limits.at(h)
    total = np.bincount(limits.places, V[limits.state], minlength=limits.pairs)
    mean = np.where(limits.sizes > 0, total / np.maximum(limits.sizes, 1), V.mean())
    return np.asarray(mean.reshape(problem.S, problem.A))


def possible_next(problem: Problem, h: int, taken: Floats) -> Floats:
    """Return how likely each state comes next, if pairs are taken like this, and all possible
    next states are alike.
    """
    limits, S = problem.limits.at(h), problem.S
    free = limits.sizes == 0
    share = taken.reshape(-1) / np.where(free, S, limits.sizes)
    reached = np.bincount(limits.state, share[limits.places], minlength=S) + share[free].sum()
    return np.asarray(reached, dtype=np.float64)
