"""The ball for undeclared states holds the true row at all times at once: crossing probabilities,
exactly.

No sampling: all count paths of a row with few labels, by dynamic programming. The ball knows
neither the labels nor how many there are. Controls that must cross more often than the level: first
visits that are counted like any others, and a radius that is halved.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from crossing import crossing_probability
from surefoot.bounds.undeclared import more_events, undeclared_ball
from surefoot.model.problem import Problem

LEVELS = (0.5, 0.05, 0.001)


def booked(n_x):
    """Counts as a log's tables book them: first visits are visits of the unseen state, which is
    the last.
    """
    again = [max(n - 1, 0) for n in n_x]
    return np.array([*again, sum(n > 0 for n in n_x)], dtype=np.int64)


def naively(n_x):
    """Control: every visit counts, and something else was never seen."""
    return np.array([*n_x, 0], dtype=np.int64)


def outside(n_x, p, level, book=booked, scale=1.0):
    """Is the true row outside of the ball? Of two rows with these labels the unseen one has
    probability 0.
    """
    eps, p_hat = undeclared_ball(book(n_x), len(n_x), math.log(1.0 / level))
    if eps == math.inf:
        return False
    divergence = sum(q * math.log(q / p[i]) for i, q in enumerate(p_hat[:-1]) if q > 0.0)
    return divergence > scale * eps


def crossing(p, N, level, **how):
    """The probability that the row is ever outside, up to N visits."""
    return crossing_probability([p] * N, lambda n_x: outside(n_x, p, level, **how))


ROWS = [
    ((0.5, 0.5), 120),
    ((0.9, 0.1), 120),
    ((0.99, 0.01), 120),
    ((0.2, 0.3, 0.5), 26),
    ((0.25,) * 4, 14),
]


@pytest.mark.parametrize(("p", "N"), ROWS)
@pytest.mark.parametrize("level", LEVELS)
def test_the_true_row_is_left_out_with_probability_at_most_the_level(p, N, level):
    assert crossing(p, N, level) <= level


def test_controls_cross_more_often():
    """Counting first visits like others, or half of the radius, is not enough."""
    assert crossing((0.5, 0.5), 60, 0.05, scale=0.5) > 0.15
    assert crossing((0.25,) * 4, 14, 0.05, book=naively) > 0.9


def test_many_rare_labels_leave_room_for_the_next():
    """1,000 visits, each to a label of its own: nothing is proved. Counted like others they
    would prove much.
    """
    each_new = booked([1] * 1000)
    assert undeclared_ball(each_new, 1000, 3.0)[0] == math.inf
    twice = undeclared_ball(booked([2] * 500), 500, 3.0)[0]
    assert twice > 5.0  # the unseen state may have all of the mass but e^-5
    often = undeclared_ball(booked([500, 500]), 2, 3.0)[0]
    assert often < 0.03  # control: two labels seen often prove much


@pytest.mark.parametrize("n_x", [(3, 1, 2), (1, 1, 1), (5,), (2, 2, 2, 2), (7, 1)])
def test_q_is_a_probability_of_the_coded_sequence(n_x):
    """prod (n_x - 1)! / n!, multiplied out visit by visit, in any order of the visits."""
    orders = [list(np.repeat(range(len(n_x)), n_x)), list(np.repeat(range(len(n_x)), n_x))[::-1]]
    closed = Fraction(math.prod(math.factorial(n - 1) for n in n_x), math.factorial(sum(n_x)))
    for visits in orders:
        Q, seen = Fraction(1), {}
        for t, x in enumerate(visits, start=1):
            Q *= Fraction(seen.get(x, 1), t)  # new: 1/t
            seen[x] = seen.get(x, 0) + 1
        assert closed == Q
    eps, p_hat = undeclared_ball(booked(n_x), len(n_x), 2.0)
    m = sum(n_x) - len(n_x)
    if m == 0:
        assert eps == math.inf
        return
    again = [n - 1 for n in n_x if n > 1]
    exact = 2.0 + sum(k * math.log(k / m) for k in again) - math.log(float(closed))
    assert eps == pytest.approx(exact / m, rel=1e-12)
    assert eps >= exact / m
    assert p_hat.tolist() == pytest.approx([(n - 1) / m for n in n_x] + [0.0])


def test_predictions_of_a_visit_add_up_to_one():
    for t in range(1, 7):
        for n_x in product(range(t), repeat=3):
            if sum(n_x) == t - 1:
                assert Fraction(1, t) + sum(Fraction(n, t) for n in n_x) == 1


@pytest.mark.parametrize("start", ["unknown", None])
def test_shares_of_delta_add_up_to_at_most_one(start):
    """The i-th state, j-th action and h-th step to appear use delta / (events (S+1)(A+1)(H+1)) at
    the end: summed over all that could ever appear, dynamics, rewards and the start together.
    """
    total = 0.0
    for i, j, h in product(range(1, 40), repeat=3):
        balls = 2 * i * j * h + 1  # at least so many events, when this pair is the last to appear
        total += 2.0 / (balls * (i + 1) * (j + 1) * (h + 1))
    rest = 1.0 - (1.0 - 1.0 / 40) ** 3  # what larger indices can add: the tail of sum 1/(i(i+1))
    assert total + 1.0 / (3 * 8) + rest <= 1.0 + rest  # the start: one more ball
    problem = Problem(np.zeros((3, 2)), H=4, start=start)
    assert more_events(problem) == 4 * 3 * 5
