"""KL certificates: the same promise as the paper's bounds, from far fewer episodes.

One event covers everything. Fix a pair; the next states drawn at its successive visits are i.i.d.
from p = P_h(.|s,a), whatever the agent does. The Dirichlet mixture of likelihoods over the
likelihood of p,

    M_n = E_{q ~ Dirichlet(1/2)}[ prod_i q_i^{n_i} ] / prod_i p_i^{n_i},

is a non-negative supermartingale that starts at 1, so by Ville's inequality it stays below
1/delta_0 for ALL n at once with probability 1 - delta_0. Taking logarithms, that is n KL(P_hat, p)
<= n eps with the eps of `dirichlet_radius` in kernels/kl.py. The event is about p alone: it holds
for every policy, also one chosen from the data, and no union over policies is needed. Any other
mixture that is fixed in advance does the same: by default `supports_radius` averages over unknown
supports. Over the ball `worst_mean` is the least mean, and `q_kl` the backup.
"""

import math
from dataclasses import dataclass

from surefoot import kernels
from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import freeze, require_bool, require_number
from surefoot.bounds.model import margin
from surefoot.bounds.undeclared import undeclared_ball
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.model.problem import Problem

TIE = 1e-12  # upper values closer than this count as equal: they are found by a search


@dataclass(frozen=True, kw_only=True)
class KL:
    """Bounds by the worst and the best transition row in a KL ball around the estimate: valid for
    ANY Markov policy.

    On the event above (probability at least 1 - delta, for all episodes and pairs at once) V_low <=
    V^pi <= V* <= V_up. What is proved is safety; the paper's regret theorem is about its own
    bounds. The mixture of likelihoods is one over unknown supports, which adapts to the number of
    successors that each pair has. `full_support` is for a mask that is tight: every next state that
    it allows does occur. The mixture is then Dirichlet(1/2) over these states; it must be chosen
    before the data are seen, and costs much where the mask is wide (docs/certificates.md). Any
    `scale` of the radius other than 1 is NOT CERTIFIED. An unknown reward is bounded by a coin and
    by bets (kernels/bets.py).
    """

    scale: float = 1.0
    full_support: bool = False

    def __post_init__(self) -> None:
        scale = require_number("scale", self.scale, "a finite number >= 0; 1 is the proved radius")
        if not 0.0 <= scale < math.inf:
            raise InvalidSetting(
                f"scale is {self.scale}, expected a finite number >= 0; 1 is the proved radius."
            )
        freeze(self, scale=scale, full_support=require_bool("full_support", self.full_support))

    @property
    def certified(self) -> bool:
        """Are these bounds the proved ones? A subclass may compute anything, so it is not
        certified.
        """
        return type(self) is KL and self.scale == 1.0

    def share_of(self, delta: float, parts: int) -> float:
        """Return all of delta: one event covers every candidate and every episode."""
        return delta

    def events(self, problem: Problem, pooled: bool) -> int:
        """Return how many balls share delta: none for a pair with one possible next state, one for
        an unknown reward.

        Without a mask and with known rewards that is SAH, or SA when counts are pooled over steps.
        """
        steps = 1 if pooled else problem.H
        pairs = steps * problem.S * problem.A
        if problem.mask is not None:
            unsure = int((problem.mask.sizes != 1).sum())
            pairs = unsure * (steps if problem.mask.rows == 1 else 1)
        rewards = 0
        if problem.unknown_rows is not None:
            rewards = int(problem.unknown_rows.sum()) * (
                steps if len(problem.unknown_rows) == 1 else 1
            )
        return max(1, pairs + rewards + (problem.start is None))

    def require(self, problem: Problem) -> None:
        """Refuse nothing: the event is about the dynamics alone, and rewards and start have
        balls of their own.
        """

    def lower_at_start(
        self, problem: Problem, n_start: Ints, V: Floats, log_union: float, undeclared: bool = False
    ) -> float:
        """Return a lower bound, rounded to safety, of the value of V (S,) at the start of a log's
        problem: the value there, the known average, or the worst mean over the ball around the
        first states seen. `undeclared`: the states are those of the log, and the first visit of
        each is taken off.
        """
        row_sum_error = 0.0 if problem.start is None else abs(float(problem.start.sum()) - 1.0)
        rounding = margin(problem.H, row_sum_error)
        start = kernels.start_from(
            problem.start, n_start.copy(), log_union, self.full_support, self.scale, rounding, 0.0
        )
        kernels.refresh_start(start)
        if undeclared and problem.unseen_state is not None and problem.start is None:
            eps, start.weights[:] = undeclared_ball(n_start, problem.unseen_state, log_union)
            start.eps[0] = self.scale * eps
        return float(max(kernels.start_bound(start, V, 1.0), 0.0))

    def evidence(
        self,
        problem: Problem,
        counts: Counts,
        delta_prime: float,
        rounding: float,
        uppers: bool = False,
    ) -> "kernels.Evidence":
        """Return what the kernels read. It shares the counts' arrays."""
        rewards = kernels.RewardArrays(
            problem.r_rows,
            problem.unknown_rows,
            counts.x_sa,
            counts.z_sa,
        )
        level = kernels.BallSettings(
            log_union=math.log(self.events(problem, counts.pooled) / delta_prime),
            full_support=self.full_support,
            scale=self.scale,
            tie=TIE,
            margin=rounding,
            uppers=uppers,
        )
        return kernels.balls_from(
            counts.transitions.lists,
            counts.played,
            problem.H,
            rewards,
            problem.mask,
            problem.paid,
            level,
        )
