"""How long a plan takes: counted in steps of a Learner, not timed, so that the same seed gives the same bytes.

A step is one `act` and one `observe`, about 50 microseconds. The numbers were measured (docs/scaling.md): they need not
be exact, because they only decide for how many episodes a plan is kept.
"""

from typing import NamedTuple

from surefoot.base.validation import FEW
from surefoot.task.listed import rows_of
from surefoot.task.problem import Problem
from surefoot.task.transitions import MOST_IN_A_TABLE

# What takes as long as one step, about: so many backups of a pair, up to FEW states and above; above, so many next
# states that were seen, in a backup; so many bounds of an unknown reward; so many entries of a table of all next
# states, when a plan fills and reads it; so many weights that are drawn, and that are read.
SEARCHES_PER_STEP, BACKUPS_PER_STEP, SUCCESSORS_PER_STEP, REWARDS_PER_STEP = 40, 500, 250, 5
ENTRIES_PER_STEP, DRAWN_PER_STEP, READ_PER_STEP = 2_500, 1_000, 8_000
PAID_PER_STEP, COUNTS_PER_STEP = 5_000, 4_000  # rewards by next state, in a backup; counts of a table, once
BACKUPS_OF_A_BISECTION = 0.3  # of the weight of a step mixture
STEPS_OF_A_PLAN, STEPS_OF_AN_EPISODE = 12, 2  # beside its backups; beside its own steps


class PlanWork(NamedTuple):
    """What a plan consists of."""

    backups: float  # how often each pair is backed up at each step but the last, after which nothing comes, about
    further: float = 0.0  # what else it takes, in steps of a Learner: tables, linear programs, an explorer
    plans: int = 1  # of its own, and of agents inside

    def with_inner(self, inner: "PlanWork") -> "PlanWork":
        """Return this work and that of an agent inside, which makes a whole plan of its own."""
        return PlanWork(self.backups + inner.backups, self.further + inner.further, self.plans + inner.plans)

    def made(self, problem: Problem) -> float:
        """Return how many backups of pairs that is in all."""
        return problem.S * problem.A * self.backups * (problem.H - 1)

    def steps(self, problem: Problem, rows: int) -> float:
        """Return how many steps a plan takes, but for the next states that were seen; `rows` of counts."""
        rewards = 0.0 if problem.unknown_rows is None else rows * problem.S * problem.A / REWARDS_PER_STEP
        by_next = _paid_by_next(problem) * self.backups * (problem.H - 1) / PAID_PER_STEP
        table = rows * problem.S**2 * problem.A / COUNTS_PER_STEP if FEW < problem.S <= MOST_IN_A_TABLE else 0.0
        per_step = SEARCHES_PER_STEP if problem.S <= FEW else BACKUPS_PER_STEP
        made = self.made(problem) / per_step
        return STEPS_OF_A_PLAN * self.plans + rewards + by_next + table + made + self.further

    def episodes_per_successor(self, problem: Problem, rows: int) -> float:
        """Return how many episodes take as long as reading one next state that was seen, in all backups of a plan."""
        if problem.S <= FEW:
            return 0.0
        return self.backups * (problem.H - 1) / (rows * SUCCESSORS_PER_STEP * (STEPS_OF_AN_EPISODE + problem.H))


def _paid_by_next(problem: Problem) -> float:
    """Return how many rewards by next state each backup of all pairs reads, over lists."""
    if problem.S <= MOST_IN_A_TABLE:
        return 0.0
    if problem.paid_lists is None:
        return 0.0 if problem.r_next_rows is None else float(problem.S**2 * problem.A)
    return len(problem.paid_lists.state) / rows_of(problem.paid_lists, problem.S * problem.A)


def splice_backups(S: int, others: int, relative: bool, optimistic: bool) -> float:
    """Return the backups of a plan that bounds the optimistic policy and so many other candidates, of S states.

    Twice for the optimistic policy, twice for an explorer's beside it, and for each other candidate before its splice
    once, twice with a relative floor. Over lists few are bounded (`SpliceAgent.slots`), in half the time.
    """
    whole, values = 2.0 if optimistic else 4.0, 2 if relative else 1
    if S > MOST_IN_A_TABLE:
        return 0.5 * (whole + values * min(others, 3))
    return whole + values * max(0.5 * others, min(others, 1))


def table_steps(problem: Problem) -> float:
    """Return the steps of backward inductions over a table of all next states, (H, S, A, S), filled for a plan."""
    H, S, A = problem.H, problem.S, problem.A
    return H + H * S * A * S / ENTRIES_PER_STEP


def occupancy_steps(problem: Problem) -> float:
    """Return the steps of a linear program over visits: H S A columns, H S rows. Begun at the last solution it takes a
    sixth of that, unless what has been seen since leads far away."""
    H, S, A = problem.H, problem.S, problem.A
    return H * S * A * (H * S + 200) / 850


def box_steps(problem: Problem) -> float:
    """Return the steps of DOPE's linear program: about H S A S columns and as many rows."""
    entries = problem.H * problem.S * problem.A * problem.S
    return entries * (entries * problem.H + 15_000) / 45_000


def drawn_steps(problem: Problem, rows: int, weights: int) -> float:
    """Return the steps of drawing a world with so many weights in so many rows, and of its best policy."""
    H = problem.H
    per_step = 3 if problem.S > MOST_IN_A_TABLE else 1  # to look into lists takes longer
    return per_step * H + weights / DRAWN_PER_STEP + H * weights / (rows * READ_PER_STEP)
