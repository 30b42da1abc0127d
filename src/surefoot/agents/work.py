"""How long a plan takes: counted in steps of a Learner, not timed, so that the same seed gives the same bytes.

A step is one `act` and one `observe`, about 17 microseconds. The numbers were measured (docs/scaling.md): they need not
be exact, because they only decide for how many episodes a plan is kept.
"""

from typing import NamedTuple

from surefoot.base.successors import PaidLists, Successors
from surefoot.base.validation import FEW
from surefoot.task.listed import rows_of
from surefoot.task.problem import Problem
from surefoot.task.transitions import MOST_IN_A_TABLE

# What takes as long as one step, about. Once in a plan: so many pairs of the counts, which are copied and written;
# so many entries of a table of counts, of a mask or of rewards by next state.
COUNTED_PER_STEP, ENTRIES_PER_STEP = 200, 1_600
# In a backup: so many pairs; so many next states that were seen, and up to FEW states, where a search is made without
# looking for the closed form first; so many pairs with a mask; so many next states of a mask or of rewards by next
# state.
BACKUPS_PER_STEP, SUCCESSORS_PER_STEP, SEARCHED_PER_STEP, MASKED_PER_STEP, LISTED_PER_STEP = 250, 120, 32, 300, 2_000
# Of a table of all next states, filled and read for a plan: so many entries. Of a drawn world: so many weights that are
# drawn, and that are read.
FILLED_PER_STEP, DRAWN_PER_STEP, READ_PER_STEP = 1_000, 400, 1_200
BACKUPS_OF_A_BISECTION = 0.3  # of the weight of a step mixture
STEPS_OF_A_PLAN, STEPS_OF_AN_EPISODE = 28, 5  # beside its backups; beside its own steps
STEPS_OF_A_TABLE = 2.5  # for each step of an episode, however few its entries are
STEPS_OF_A_REWARD = 1.0  # that is unknown: it is bounded where it was seen
STEPS_OF_AN_ITERATION = 0.75  # of the simplex method, however small the linear program is


class PlanWork(NamedTuple):
    """What a plan consists of."""

    backups: float  # how often each pair is backed up at each step but the last, after which nothing comes, about
    further: float = 0.0  # what else it takes, in steps of a Learner: tables, an explorer
    plans: int = 1  # of its own, and of agents inside
    per_iteration: float = 0.0  # steps that an iteration of its linear programs takes; how many these are, a plan says

    def with_inner(self, inner: "PlanWork") -> "PlanWork":
        """Return this work and that of an agent inside, which makes a whole plan; one of them has no linear program."""
        backups, further = self.backups + inner.backups, self.further + inner.further
        return PlanWork(backups, further, self.plans + inner.plans, self.per_iteration + inner.per_iteration)

    def made(self, problem: Problem) -> float:
        """Return how many backups of pairs that is in all."""
        return problem.S * problem.A * self.backups * (problem.H - 1)

    def steps(self, problem: Problem, rows: int) -> float:
        """Return how many steps a plan takes, but for the next states that were seen; `rows` of counts."""
        per_backup = problem.S * problem.A / BACKUPS_PER_STEP + _known_in_a_backup(problem)
        backups = self.backups * (problem.H - 1) * per_backup
        return STEPS_OF_A_PLAN * self.plans + self.once(problem, rows) + backups

    def once(self, problem: Problem, rows: int) -> float:
        """Return the steps of what is done once in a plan: to go through the counts, and what else there is."""
        counted = rows * problem.S * (problem.A + 1) / COUNTED_PER_STEP
        return counted + _tables(problem, rows) + self.further

    def episodes_per_successor(self, problem: Problem, rows: int) -> float:
        """Return how many episodes take as long as one next state that was seen: to read it in all backups of a plan,
        and to bound the reward of its pair, where that is unknown."""
        per_step = SEARCHED_PER_STEP if problem.S <= FEW else SUCCESSORS_PER_STEP
        steps = self.backups * (problem.H - 1) / (rows * per_step)
        if problem.unknown_rows is not None:
            steps += STEPS_OF_A_REWARD
        return steps / (STEPS_OF_AN_EPISODE + problem.H)

    def episodes_per_iteration(self, problem: Problem) -> float:
        """Return how many episodes take as long as an iteration of its linear programs."""
        return self.per_iteration / (STEPS_OF_AN_EPISODE + problem.H)


def _tables(problem: Problem, rows: int) -> float:
    """Return the steps of reading tables of all next states: of the counts, a mask, and rewards by next state."""
    if problem.S > MOST_IN_A_TABLE:
        return 0.0
    tables = 1 + problem.knows_support + problem.pays_by_next
    return tables * rows * problem.S**2 * problem.A / ENTRIES_PER_STEP


def _known_in_a_backup(problem: Problem) -> float:
    """Return the steps that a mask, and rewards by next state, add to a backup of all pairs."""
    pairs, steps = problem.S * problem.A, 0.0
    if problem.as_mask is not None:
        steps += pairs / MASKED_PER_STEP + _listed(problem.as_mask, pairs) / LISTED_PER_STEP
    if problem.paid_lists is not None:
        steps += _listed(problem.paid_lists, pairs) / LISTED_PER_STEP
    elif problem.pays_by_next:
        steps += pairs * problem.S / LISTED_PER_STEP
    return steps


def _listed(lists: Successors | PaidLists, pairs: int) -> float:
    """Return how many next states are in the lists of a step."""
    return len(lists.state) / rows_of(lists, pairs)


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
    return STEPS_OF_A_TABLE * H + H * S * A * S / FILLED_PER_STEP


def occupancy_iteration(problem: Problem) -> float:
    """Return the steps of an iteration in a linear program over visits: H S A columns, H S rows, S + 2 in a column."""
    H, S, A = problem.H, problem.S, problem.A
    return STEPS_OF_AN_ITERATION + H * S * (20 * A + A * S + 4 * S) / 20_000


def box_iteration(problem: Problem) -> float:
    """Return the steps of an iteration in DOPE's linear program: about H S A S columns and rows, 5 in a column."""
    return STEPS_OF_AN_ITERATION + problem.H * problem.S * problem.A * problem.S / 700


def drawn_steps(problem: Problem, rows: int, weights: int) -> float:
    """Return the steps of drawing a world with so many weights in so many rows, and of its best policy."""
    H = problem.H
    lists = problem.S > MOST_IN_A_TABLE
    best, read = 3.0 if lists else 1.0, 4.0 if lists and problem.pays_by_next else 1.0  # to look into lists takes long
    return STEPS_OF_A_TABLE * best * H + weights / DRAWN_PER_STEP + read * H * weights / (rows * READ_PER_STEP)
