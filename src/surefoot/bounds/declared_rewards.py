"""Do the rewards that were paid contradict the declared table?

A table may hold means, so a single reward that differs proves nothing. In episode k let D_k be what
was paid beyond the table's return along the path, rescaled, over the steps whose reward is known.
If the table holds the mean of each pair (and next state, where it pays by next state), E[D_k |
past] = 0, and -H max r <= D_k <= H (1 - min r). So for either side, s = -1 (less was paid) and s =
+1 (more was), and for stakes 0 < lambda < 1 / (the most that can be lost)

    W_k = mean over s and j of prod_k (1 + lambda_j (s D_k - MARGIN))

is a non-negative supermartingale that starts at 1, whatever the policies were: P(W_k >= 1/ALPHA for
some k) <= ALPHA by Ville's inequality. Where the table holds lower bounds of means, E[D_k | past]
>= 0, and only s = -1 is bet on.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import AnyArray, Floats
from surefoot.errors import InvalidFile, PremiseContradicted
from surefoot.model.problem import Problem
from surefoot.model.steps import added_steps
from surefoot.model.units import Units

ALPHA = 0.01  # of its own: no part of delta
FALSE_TABLE = "the declared table of rewards is not what the process pays on average"
ADVICE = "Correct the table; or leave it out, and learn the rewards."
AT_THE_END = (
    " Where a reward depends on the next state, an end has an entry of its own, also at the last "
    "step: hold it against docs/gymnasium.md, What counts as an end."
)
# in parts of the most that can be lost; each stake is half of the one before
LARGEST_STAKE, STAKES = 0.9, 12
LEAST_LOSS = 1e-3  # times H: where the table allows no loss at all, a stake is finite
# times H and `rounding`: more than the rounding errors of D, from which less at each step is left
# out
MARGIN = 2.0
STATE = ("episodes", "total")  # the order in which the state is kept; log_wealth follows


class TableBet(NamedTuple):
    """The bets, which are fixed before the first episode."""

    sign: Floats  # (2 or 1, 1) s
    stake: Floats  # (2 or 1, J) lambda
    margin: float
    nothing: Floats  # what an episode adds to the logarithms that paid just what the table says

    @classmethod
    def on(cls, problem: Problem) -> "TableBet":
        """Return the bets against the table of this problem."""
        H, paid = problem.H, _known(problem)
        # what each side can lose
        at_most = {-1.0: H * (1.0 - float(paid.min())), 1.0: H * float(paid.max())}
        sides = (-1.0,) if problem.rewards_at_least else (-1.0, 1.0)
        margin = MARGIN * rounding(problem) * H
        loss = np.array([[max(at_most[s], LEAST_LOSS * H) + margin] for s in sides])
        stake = LARGEST_STAKE / loss * 0.5 ** np.arange(STAKES)
        return cls(np.array(sides)[:, None], stake, margin, np.log1p(-stake * margin))


def rounding(problem: Problem) -> float:
    """Return by how much a reward may differ from the table, rescaled, because it was rounded."""
    return problem.units.range.slack / problem.units.scale


def beyond_table(problem: Problem, h: int, s: int, a: int, s_next: int, reward: float) -> float:
    """Return by how much a reward in the user's units is more than the table says, rescaled."""
    lowest = 0.0 if h < added_steps(problem) else problem.units.low  # an added step pays nothing
    return (reward - lowest) / problem.units.scale - float(problem.reward_of(h, s, a, s_next))


def _known(problem: Problem) -> Floats:
    """Return all rewards that the table can pay, rescaled."""
    paid = problem.paid
    return problem.r_rows if paid is None else np.append(paid.value, paid.elsewhere)


@dataclass(frozen=True)
class TableWatch:
    """What was paid beyond the table, after some episodes. `after` returns the next state."""

    bet: TableBet
    units: Units
    log_wealth: Floats  # (2 or 1, J)
    episodes: int = 0
    total: float = 0.0  # sum of D

    @classmethod
    def on(cls, problem: Problem) -> "TableWatch | None":
        """Begin to watch the rewards of this problem; None: it knows none."""
        if problem.unknown_rows is not None and problem.unknown_rows.all():
            return None
        bet = TableBet.on(problem)
        return cls(bet, problem.units, np.zeros(bet.stake.shape))

    def after(self, D: float) -> "TableWatch":
        """Return the state after an episode that paid D more than the table, rescaled."""
        bet = self.bet
        won = bet.nothing if D == 0.0 else np.log1p(bet.stake * (bet.sign * D - bet.margin))
        return TableWatch(bet, self.units, self.log_wealth + won, self.episodes + 1, self.total + D)

    @property
    def contradicted(self) -> bool:
        """Is W at least 1/ALPHA?"""
        most = float(self.log_wealth.max())
        if most < -math.log(ALPHA):  # W is a mean
            return False
        mean = float(np.exp(self.log_wealth - most).mean())
        return most + math.log(mean) >= -math.log(ALPHA)

    @property
    def found(self) -> str:
        """What was seen, in the user's units."""
        beyond = self.total * self.units.scale / self.episodes
        side = "less" if beyond < 0.0 else "more"
        return (
            f"an episode paid {self.units.amount(abs(beyond))} {side} on average than the "
            "declared table of rewards"
        )

    @property
    def state(self) -> Floats:
        """The state, as it is kept with the counts."""
        return np.array([self.episodes, self.total, *self.log_wealth.ravel()], dtype=np.float64)

    def restored(self, path: str | Path, state: AnyArray) -> "TableWatch":
        """Return what had this state."""
        size = len(STATE) + self.log_wealth.size
        if (
            state.shape != (size,)
            or state.dtype != np.float64
            or not np.isfinite(state).all()
            or state[0] < 0.0
        ):
            raise InvalidFile(
                f"{path}: table_watch is not as it was written. The file is damaged: restore a "
                "copy."
            )
        log_wealth = state[len(STATE) :].reshape(self.log_wealth.shape)
        return replace(self, log_wealth=log_wealth, episodes=int(state[0]), total=float(state[1]))


def advice(problem: Problem) -> str:
    """Return what to do where the table of this problem is false."""
    return ADVICE + (AT_THE_END if problem.pays_by_next else "")


def require_as_declared(bets: AnyArray | None, problem: Problem) -> None:
    """Refuse counts whose rewards contradict the declared table. None: nothing was held against
    it.
    """
    table = None if bets is None else TableWatch.on(problem)
    if table is None or bets is None:
        return
    watch = table.restored("these counts", bets)
    if watch.contradicted:
        raise PremiseContradicted(
            f"{FALSE_TABLE[0].upper()}{FALSE_TABLE[1:]}: what was certified from it is void. In "
            f"{watch.episodes:,} episodes {watch.found}. If the table were true, the probability "
            f"of ever seeing so much against it would be at most {ALPHA:g}. {advice(problem)}"
        )
