"""UCBVI with the Hoeffding-type bonus (Azar et al. 2017, UCBVI-CH), and the pessimistic value of
its own policy.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np

from surefoot.base.arrays import Floats
from surefoot.base.validation import freeze, require_integer
from surefoot.bounds import Model
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.policy import greedy
from surefoot.rivals.optimist import Optimism, Optimist


def ucbvi(model: Model, start: Floats, log: float) -> Optimism:
    """pi = argmax_a Q_up with Q_up = min(H, r + 7 H L/sqrt(n) + P_hat V_up), n >= 1; and, read at
    that action, Q_low = max(0, r - 7 H L/sqrt(n) + P_hat V_low): pessimism with the same bonus
    (Garcelon et al. 2020).
    """
    H, S, problem = model.H, model.problem.S, model.problem
    V_up, V_low, Q_up = np.zeros(S), np.zeros(S), np.zeros((H, S, problem.A))
    for h in reversed(range(H)):
        n = model.n_sa[h]
        bonus = 7.0 * H * log / np.sqrt(np.maximum(n, 1))
        Q_up[h] = np.minimum(
            H, problem.r_rescaled[h] + bonus + (model.P_hat[h] * V_up).sum(axis=-1)
        )
        Q_up[h] = np.where(n >= 1, Q_up[h], H)
        Q_low = np.maximum(
            0.0, problem.r_rescaled[h] - bonus + (model.P_hat[h] * V_low).sum(axis=-1)
        )
        Q_low = np.where(n >= 1, Q_low, 0.0)
        a = Q_up[h].argmax(axis=1)
        V_up, V_low = Q_up[h][np.arange(S), a], Q_low[np.arange(S), a]
    return Optimism(greedy(Q_up), float(start @ V_low), float(start @ V_up))


@final
@dataclass(frozen=True, eq=False, repr=False)
class UCBVI(Optimist):
    """Optimism without a floor, as in Azar et al. 2017: what conservative UCBVI has inside. It
    promises nothing.

    L = log(5 S A H K/delta), K = `episodes`. With probability at least 1 - delta (Weissman et al.
    2003), for all pairs, steps and n, |P_hat - P|_1 <= sqrt(2 (S log 2 + log(S A H K/delta))/n).
    Half of that times H is below the bonus, so its lower value is one of its policy and its upper
    value of every policy. `scale` multiplies the bonus; any other than 1 is NOT CERTIFIED.
    """

    name = "UCBVI"

    _: KW_ONLY
    episodes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, episodes=require_integer("episodes", self.episodes, 1, InvalidSetting))
        S, log = self.problem.S, self.log
        if 98.0 * log**2 < S * math.log(2.0) + log:
            raise InvalidSetting(
                f"With S = {S} states the bonus of UCBVI is below what its proof needs."
            )

    @property
    def log(self) -> float:
        """L = log(5 S A H K/delta)."""
        return math.log(
            5.0 * self.problem.S * self.problem.A * self.problem.H * self.episodes / self.delta
        )

    @property
    def most_episodes(self) -> int:
        """The number inside the logarithm."""
        return self.episodes

    def optimism(self, counts: Counts, start: Floats) -> Optimism:
        """Return the optimistic policy, with its lower value."""
        return ucbvi(Model(self.problem, counts, self.delta), start, self.scale * self.log)
