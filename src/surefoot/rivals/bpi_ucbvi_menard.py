"""BPI-UCBVI with the thresholds and the lower bound of Menard et al. 2021, without its stopping
rule.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from surefoot.agents.settings import AgentByName
from surefoot.base.arrays import Floats
from surefoot.bounds import Bernstein, Model
from surefoot.evidence.counts import Counts
from surefoot.model.policy import greedy
from surefoot.rivals.optimist import Optimism, Optimist

EVENTS = 3  # counts, KL, Bernstein for V*: each has delta/3


class MenardValues(NamedTuple):
    """The optimistic policy, and both bounds of V*, (H+1, S)."""

    policy: Floats
    V_up: Floats
    V_low: Floats


def mean(P_hat: Floats, V: Floats) -> Floats:
    """Return p_hat V for every pair, summed in the same order: a matrix product may round equal
    rows differently.
    """
    return np.asarray((P_hat * V).sum(axis=-1))


def bpi_ucbvi_menard(model: Model, thresholds: Bernstein) -> MenardValues:
    """Return pi = argmax_a Q_up, the first index winning ties. With X = P_hat (V_up - V_low), and
    for n >= 1,

        Q_up  = min(H, r + 3 sqrt(Var_P_hat(V_up) beta*/n) + 14 H^2 beta/n + (1/H) X + P_hat V_up)
        Q_low = max(0, r - 3 sqrt(Var_P_hat(V_up) beta*/n) - 14 H^2 beta/n - (1/H) X + P_hat V_low)

    and V_up = max_a Q_up, V_low = max_a Q_low: both bound V*, neither the value of pi. At delta' =
    delta/3 the thresholds are beta = log(3SAH/delta) + S log(8e(n+1)) and beta* = log(3SAH/delta) +
    log(8e(n+1)).
    """
    H, S, problem = model.H, model.problem.S, model.problem
    beta, beta_star = thresholds.beta(model), thresholds.beta_star(model)
    Q_up = np.zeros((H, S, problem.A))
    V_up, V_low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        r, P_hat, n = problem.r_rescaled[h], model.P_hat[h], model.n_sa[h]
        seen = np.maximum(n, 1)
        mean_up, mean_low = mean(P_hat, V_up[h + 1]), mean(P_hat, V_low[h + 1])
        Var = (P_hat * (V_up[h + 1] - mean_up[..., None]) ** 2).sum(axis=-1)
        bonus = (
            3 * np.sqrt(Var * beta_star[h] / seen)
            + 14 * H**2 * beta[h] / seen
            + (1 / H) * (mean_up - mean_low)
        )
        Q_up[h] = np.where(n >= 1, np.minimum(H, r + bonus + mean_up), H)
        Q_low = np.where(n >= 1, np.maximum(0, r - bonus + mean_low), 0.0)
        V_up[h], V_low[h] = Q_up[h].max(axis=1), Q_low.max(axis=1)
    return MenardValues(greedy(Q_up), V_up, V_low)


@final
@dataclass(frozen=True, eq=False, repr=False)
class BPIUCBVIMenard(Optimist, AgentByName):
    """Optimism without a floor, as Menard et al. 2021 have it: always the optimistic policy, never
    stopping.

    It differs from `BPIUCBVI`, the form of EpsMix, in the thresholds (log(3SAH/delta), not
    log(4SAH/delta)) and in the lower bound (14, 1/H and max_a Q_low, not 22, 2/H and <pi, Q_low>),
    which enters the upper one through X. It promises nothing about any episode. Its upper value is
    one of V* with probability at least 1 - delta; of its own policy's value nothing is proved.
    docs/rivals.md says from which source each constant is. `scale` multiplies beta and beta*; any
    other than 1 is NOT CERTIFIED.
    """

    name = "BPI-UCBVI (Menard 2021)"
    own_bounds = True

    def optimism(self, counts: Counts, start: Floats) -> Optimism:
        """Return the optimistic policy. No lower value of it is proved."""
        model = Model(self.problem, counts, self.delta / EVENTS)
        found = bpi_ucbvi_menard(model, Bernstein(self.scale))
        return Optimism(found.policy, 0.0, float(start @ found.V_up[0]))
