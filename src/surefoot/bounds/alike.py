"""Are the steps that share counts alike? A sequential test, at a level of its own.

Split the steps into two groups, m: the first c against the others, or one step against the others.
For each pair z and each successor i (i or not), of n visits of z

    E_z = mean over m, i of  KT(group 1) KT(group 2) / [p^n_i (1-p)^(n - n_i)],
    p = n_i/n over both groups,
    KT(k of n) = B(k + 1/2, n - k + 1/2) / B(1/2, 1/2),
    W   = 1/2 prod_z (1 - 1/Z + E_z/Z) + 1/2 prod_z (1/2 + E_z/2),   Z pairs, visited or not.

KT is a mixture of likelihoods that is fixed beforehand: divided by the likelihood of the one p that
is true where steps are alike, it is a martingale in the visits of z. The denominator is the largest
likelihood, so E_z is below that; and it is so whatever chose the visits, because those of another
pair, or of another step, do not change it. So P(W >= 1/ALPHA at some time) <= ALPHA. "End" is a
successor like the others. (To pair visits of two steps and bet on their difference is no test:
whoever sees the first outcome may leave the second one out.)

Sums of rewards in [0, 1] take the place of n_i (the coin's counts: each factor of a likelihood is
convex in the reward, so its mean is at most that of a coin). Where rewards are learnt, half of E_z
is theirs. A next state of step H is never counted in rows that steps share; the reward of step H
is.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from surefoot import kernels
from surefoot.base.arrays import Bools, Floats
from surefoot.base.validation import REWARD_UNITS
from surefoot.errors import PremiseContradicted
from surefoot.evidence.counts import Counts
from surefoot.model.by_step import StepCounts
from surefoot.model.problem import Problem
from surefoot.model.steps import added_steps

ALPHA = 0.01  # of its own: no part of delta
# episodes between looks: so many, and one for each 30 next states of pairs (S*A*S)
LEAST_WAIT, EPISODE_WORK = 5, 30
FALSE_STEPS = "steps that share counts are not alike"
ADVICE = (
    "Do not pool: give the agent pooled=False (a log: count it without --stationary); or, if you "
    "can say what changes with the step, put that into the state, and pool again."
)


class Unlike(NamedTuple):
    """The split of a pair's steps that speaks most against their being alike."""

    pair: int  # s*A + a
    successor: int | None  # None: it is the reward that differs
    steps: range  # of the one group
    k: float  # how often the successor followed there, or what was paid in all, rescaled
    n: int  # visits
    other_k: float  # the same at the other steps
    other_n: int

    def text(self, problem: Problem) -> str:
        """Return what was seen, with the names that people gave; steps count from 1."""
        names, (s, a) = problem.names, divmod(self.pair, problem.A)
        added = added_steps(problem)
        first, last = self.steps[0] + 1 - added, self.steps[-1] + 1 - added
        at = f"step {last}" if len(self.steps) == 1 else f"steps {first} to {last}"
        who = f"Action {names.action(a)} in state {names.state(s)}"
        if self.successor is None:
            amounts = (k / n for k, n in ((self.k, self.n), (self.other_k, self.other_n)))
            here, there = (
                problem.units.amount(float(problem.units.step_to_user(np.array(x))))
                for x in amounts
            )
            return (
                f"{who} paid {here} on average of {self.n:,} visits at {at}, and {there} of "
                f"{self.other_n:,} at others"
            )
        return (
            f"{who} led to state {names.state(self.successor)} in {self.k:,.0f} of {self.n:,} "
            f"visits at {at}, and in {self.other_k:,.0f} of {self.other_n:,} at the other steps"
        )


def log_wealth(steps: StepCounts, problem: Problem) -> float:
    """Return log W."""
    return float(kernels.log_wealth(_log_evidence(steps, problem)))


def unlike(steps: StepCounts, problem: Problem) -> Unlike | None:
    """Return the pair that speaks most against its steps being alike, if W >= 1/ALPHA; else
    None.
    """
    log_E = _log_evidence(steps, problem)
    if float(kernels.log_wealth(log_E)) < -math.log(ALPHA):
        steps.looked_at = steps.total
        return None
    z = int(log_E.argmax())
    return max(_splits_of(steps, z, bool(_learnt(steps, problem)[z])), key=_log_E)


def _log_evidence(steps: StepCounts, problem: Problem) -> Floats:
    """Return log E_z of every pair."""
    H, Z, _ = steps.shape
    paid = np.zeros((H, Z)) if steps.x_paid is None else steps.x_paid / REWARD_UNITS
    log_E = np.zeros(Z)
    kernels.log_evidence(
        steps.table, steps.n_visits, paid, _learnt(steps, problem), log_E, np.zeros((2, H))
    )
    return log_E


def require_alike(steps: StepCounts | None, problem: Problem) -> None:
    """Refuse pooled counts whose steps are not alike. None: it is not checked. Where there is no
    more to see than when they were last compared, and as long as it takes until the next look
    (`is_due`), they are not compared again.
    """
    found = None if steps is None or steps.total <= _next_look(steps) else unlike(steps, problem)
    if found is not None:
        raise PremiseContradicted(
            f"{FALSE_STEPS[0].upper()}{FALSE_STEPS[1:]}: counts that are pooled over steps prove "
            f"nothing. {found.text(problem)}. If the steps were alike, the probability of ever "
            f"seeing so much against it would be at most {ALPHA:g}. {ADVICE}"
        )


def compared(counts: Counts) -> str:
    """Return whether the steps that share counts are compared with each other, as the end of a
    sentence.
    """
    if not counts.shared:
        return ""
    return (
        "; not checked"
        if counts.steps is None
        else f"; compared as they come, at alpha = {ALPHA:g}"
    )


def _next_look(steps: StepCounts) -> float:
    """Return how many visits there may be before steps that were compared are compared again."""
    H, Z, S = steps.shape
    return (
        1.1 * steps.looked_at + (LEAST_WAIT + Z * S // EPISODE_WORK) * H if steps.looked_at else 0.0
    )


def is_due(episodes: int, steps: StepCounts) -> bool:
    """Is it time to look, after so many episodes? When there are about a twentieth more: as often
    as is cheap, and decided by the number of episodes alone.
    """
    _, Z, S = steps.shape
    looks, rest = divmod(episodes, LEAST_WAIT + Z * S // EPISODE_WORK)
    return rest == 0 and looks > 0 and looks % max(1, looks // 20) == 0


def _learnt(steps: StepCounts, problem: Problem) -> Bools:
    """Return the pairs whose reward is unknown at every step."""
    # without a state that nobody has seen
    unknown = problem.unknown.all(axis=0).ravel()[: steps.shape[1]]
    return unknown if steps.x_paid is not None else np.zeros_like(unknown)


def _splits_of(steps: StepCounts, z: int, learnt: bool) -> Iterator[Unlike]:
    """Yield all splits of this pair's steps, for each of its successors, and for its reward
    where that is learnt.
    """
    n, followed = steps.n_visits[:, z], steps.table[:, z].astype(np.float64)
    outcomes: list[tuple[int | None, Floats]] = list(enumerate(followed.T))
    if learnt and steps.x_paid is not None:
        outcomes.append((None, steps.x_paid[:, z] / REWARD_UNITS))
    for i, k in outcomes:
        T = len(k)
        all_k, all_n = float(k.sum()), int(n[:T].sum())
        for group in (*(range(c) for c in range(1, T)), *(range(h, h + 1) for h in range(T))):
            one_k, one_n = float(k[group].sum()), int(n[group].sum())
            yield Unlike(z, i, group, one_k, one_n, all_k - one_k, all_n - one_n)


def _log_E(split: Unlike) -> float:
    """Return log of KT(group 1) KT(group 2) over the largest likelihood."""
    all_n = float(split.n + split.other_n)
    return float(kernels.log_against(split.k, float(split.n), split.k + split.other_k, all_n))
