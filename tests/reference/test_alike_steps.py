"""Are steps alike: the evidence against it, in exact fractions and by enumeration. Nothing here is
drawn.

The oracle is the formula in fractions: KT by its product, the largest likelihood, the mean over
splits and successors, and W. What must hold of it is found by going through every sequence, whoever
chose the step that is visited next; the rules that look alike and are wrong exceed 1 there.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import surefoot as sf
from surefoot.bounds.alike import log_wealth, unlike
from surefoot.model.by_step import StepCounts

VISITS = 9


@cache
def kt(k, n):
    """B(k + 1/2, n - k + 1/2) / B(1/2, 1/2): each next outcome has the chance (how often it was
    + 1/2) / (n + 1).
    """
    chance = Fraction(1)
    for j in range(k):
        chance *= Fraction(2 * j + 1, 2)
    for j in range(n - k):
        chance *= Fraction(2 * j + 1, 2)
    return chance / math.factorial(n)


def likelihood(k, n, p):
    return Fraction(p) ** k * (1 - Fraction(p)) ** (n - k)  # 0^0 = 1


def E_split(k, n, other_k, other_n):
    both = n + other_n
    p = Fraction(k + other_k, both) if both else Fraction(0)
    return kt(k, n) * kt(other_k, other_n) / likelihood(k + other_k, both, p)


def splits(T):
    return [list(range(c)) for c in range(1, T)] + [[h] for h in range(T)]


def E_pair(n_next):
    """(T, S) how often each successor followed at each step."""
    T, S = n_next.shape
    total = Fraction(0)
    for group in splits(T):
        others = [h for h in range(T) if h not in group]
        for i in range(S):
            k, n = int(n_next[group, i].sum()), int(n_next[group].sum())
            total += E_split(k, n, int(n_next[others, i].sum()), int(n_next[others].sum()))
    return total / (len(splits(T)) * S)


def W_of(n_next):
    return mixed([E_pair(n_next[:, z]) for z in range(n_next.shape[1])])


def mixed(E):
    """The mean of both mixtures over pairs."""
    Z = len(E)
    few, many = (
        math.prod(f(x) for x in E)
        for f in (lambda x: 1 - Fraction(1, Z) + x / Z, lambda x: (1 + x) / 2)
    )
    return (few + many) / 2


def problem_of(S, A, H, unknown=None):
    return sf.Problem(np.full((S, A), 0.5), 0, H, stationary=True, unknown=unknown)


def steps_of(n_next, S, A, paid=None):
    H = len(n_next) + 1
    n_visits = np.zeros((H, S * A), dtype=np.int64)
    n_visits[:-1] = n_next.sum(axis=2)
    return StepCounts.of(n_next, n_visits, paid)


# ---- the code is the formula


@pytest.mark.parametrize(("S", "A", "T"), [(2, 1, 2), (3, 2, 2), (2, 2, 3), (4, 1, 5)])
def test_w_is_the_formula(S, A, T):
    """In exact fractions, for counts of all kinds: none, few, many; every pair seen, or some
    never.
    """
    rng = np.random.default_rng(1)
    for size in (0, 1, 3, 12, 40):
        n_next = rng.integers(0, size + 1, (T, S * A, S))
        n_next[:, rng.random(S * A) < 0.3] = 0
        n_next[rng.random(n_next.shape) < 0.4] = 0
        exact = W_of(n_next)
        assert math.exp(
            log_wealth(steps_of(n_next, S, A), problem_of(S, A, T + 1))
        ) == pytest.approx(float(exact))


def test_it_counts_each_step_but_no_next_state_of_the_last():
    """Episode after episode, as a table that is counted plainly; a copy is one of its own."""
    rng, S, A, H = np.random.default_rng(2), 3, 2, 4
    steps, table = (
        StepCounts.zeros(H, S, A, rewards=True),
        np.zeros((H - 1, S * A, S), dtype=np.int64),
    )
    visits, paid = np.zeros((2, H, S * A), dtype=np.int64)
    before = steps.copy()
    for _ in range(25):
        states, actions, x = rng.integers(0, S, H + 1), rng.integers(0, A, H), rng.integers(0, 9, H)
        pairs = states[:-1] * A + actions
        steps.add(pairs, states[1:], x)
        for h in range(H):
            visits[h, pairs[h]] += 1
            paid[h, pairs[h]] += x[h]
            if h < H - 1:
                table[h, pairs[h], states[h + 1]] += 1
    assert (
        (steps.table == table).all()
        and (steps.n_visits == visits).all()
        and (steps.x_paid == paid).all()
    )
    assert before.total == 0 and not before.n_next
    both = steps.merged(steps.copy())
    assert (
        (both.table == 2 * table).all()
        and (both.x_paid == 2 * paid).all()
        and steps.merged(None) is None
    )


def test_rewards_take_the_place_of_a_successor():
    """Half of E_z is that of the rewards where they are learnt, over all H steps; whole rewards
    are a coin's.
    """
    # (2 steps, 2 pairs, 2 successors): H = 3
    n_next = np.array([[[3, 1], [0, 0]], [[0, 4], [0, 0]]])
    steps = steps_of(n_next, 2, 1, np.zeros((3, 2), dtype=np.int64))
    steps.n_visits[2, 0] = 5
    heads = [4, 1, 0]
    steps.x_paid[:, 0] = np.array(heads) * 2**20
    unknown = np.array([[True], [True]])
    n = [4, 4, 5]
    rewards = Fraction(0)
    for group in splits(3):
        k, m = sum(heads[h] for h in group), sum(n[h] for h in group)
        rewards += E_split(k, m, sum(heads) - k, sum(n) - m)
    E = (E_pair(n_next[:, 0]) + rewards / 5) / 2
    exact = mixed([E, Fraction(1)])  # nothing was seen of the other pair
    assert math.exp(log_wealth(steps, problem_of(2, 1, 3, unknown))) == pytest.approx(float(exact))
    # Control: where the reward is known, the transitions alone.
    exact = W_of(n_next)
    assert math.exp(log_wealth(steps_of(n_next, 2, 1), problem_of(2, 1, 3))) == pytest.approx(
        float(exact)
    )


# ---- and the formula keeps its word: every sequence, whoever chooses the visits


def best_expectation(E, p, visits=VISITS):
    """The largest expectation of E when it ends, over all ways to choose the next step to visit,
    and when to end, from what was seen. The state: outcomes of n visits at step 1, and at step 2.
    """

    @cache
    def best(k, n, other_k, other_n):
        found = E(k, n, other_k, other_n)
        if n + other_n < visits:
            here = p * best(k + 1, n + 1, other_k, other_n) + (1 - p) * best(
                k, n + 1, other_k, other_n
            )
            there = p * best(k, n, other_k + 1, other_n + 1) + (1 - p) * best(
                k, n, other_k, other_n + 1
            )
            found = max(found, here, there)
        return found

    return best(0, 0, 0, 0)


CHANCES = [Fraction(x) for x in ("0", "1/50", "1/4", "1/2", "9/10", "1")]


@pytest.mark.parametrize("p", CHANCES)
def test_expectation_is_at_most_one_whoever_chose_the_visits(p):
    assert best_expectation(E_split, p) <= 1


def test_control_the_wrong_denominator_exceeds_one():
    """KT of both groups, in place of the largest likelihood: a ratio of two mixtures, no test of
    one p.
    """
    worst = max(
        best_expectation(lambda k, n, i, m: kt(k, n) * kt(i, m) / kt(k + i, n + m), p)
        for p in CHANCES
    )
    assert worst > Fraction(3, 2)


def test_control_pairing_visits_exceeds_one():
    """1 + lambda (X - Y), X and Y being the j-th visits of both steps: whoever sees X first may
    leave Y out.
    """

    stake, p = Fraction(1, 2), Fraction(1, 2)
    won = p * 1 + (1 - p) * (1 + stake)  # X was 1; now Y is 1, or 0
    each = p * won + (1 - p) * 1  # X was 0, with which the bet can only lose: Y is not visited
    assert each == Fraction(9, 8)  # of every pair: it grows without end
    assert best_expectation(E_split, p) <= 1  # ours, whoever chooses


# ---- and it says what it found


def test_it_names_the_pair_the_successor_and_the_steps():
    rng, S, A, H = np.random.default_rng(3), 3, 2, 5
    n_next = rng.integers(20, 25, (H - 1, S * A, S))
    n_next[2:, 3] = [200, 2, 2]
    n_next[:2, 3] = [2, 200, 2]
    found = unlike(steps_of(n_next, S, A), problem_of(S, A, H))
    assert (found.pair, found.steps) == (3, range(2)) and found.successor in (0, 1)
    text = found.text(problem_of(S, A, H))
    assert (
        "Action 1 in state 1 led to state" in text
        and "of 408 visits at steps 1 to 2, and in" in text
    )
    assert unlike(steps_of(np.tile(n_next[:1], (H - 1, 1, 1)), S, A), problem_of(S, A, H)) is None
    # One step against the others, and the reward.
    paid = np.zeros((H, S * A), dtype=np.int64)
    steps = steps_of(np.tile(n_next[:1], (H - 1, 1, 1)), S, A, paid)
    steps.n_visits[-1] = 60
    paid[:, 2] = steps.n_visits[:, 2] * 2**19
    paid[2, 2] = 0
    found = unlike(steps, problem_of(S, A, H, np.ones((S, A), dtype=bool)))
    assert (found.pair, found.steps, found.successor) == (2, range(2, 3), None)
    assert (
        f"Action 0 in state 1 paid 0 on average of {steps.n_visits[2, 2]} visits at step 3"
        in found.text(problem_of(S, A, H))
    )


def test_it_is_not_kept_where_nothing_is_shared_or_it_would_be_too_much():
    assert StepCounts.zeros(1, 5, 2, rewards=True) is None
    assert StepCounts.zeros(100, 100, 1, rewards=True) is not None  # 10^6 numbers
    assert StepCounts.zeros(101, 100, 1, rewards=True) is None
