"""What was paid beyond the declared table: the capital in exact fractions, and every sequence of
a small law.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import surefoot as sf
from surefoot.base.ranges import SLACK
from surefoot.bounds.declared_rewards import ALPHA, MARGIN, STAKES, TableWatch

H = 2
FAIR = sf.Problem(np.full((1, 1), 0.5), 0, H, stationary=True)  # pays 0 or 1 a step, 0.5 on average


def watch(problem=FAIR):
    return TableWatch.on(problem)


def exact_capital(D, most_lost, sides=(-1, 1)):
    """W after these D, from the formula; each side can lose `most_lost` in an episode, and what is
    left out for rounding.
    """
    lost = Fraction(most_lost) + Fraction(MARGIN * SLACK) * H
    stakes = [Fraction(9, 10) / lost / 2**j for j in range(STAKES)]
    factors = (
        math.prod(1 + stake * (s * Fraction(d) - Fraction(MARGIN * SLACK) * H) for d in D)
        for s, stake in product(sides, stakes)
    )
    return sum(factors) / (len(sides) * STAKES)


def capital(state):
    return float(np.exp(state.log_wealth).mean())


@pytest.mark.parametrize("D", [[], [0.25], [1.0, -1.0, 0.5], [-0.125] * 9, [1.0] * 12])
def test_the_capital_is_the_formula(D):
    state = watch()
    for d in D:
        state = state.after(d)
    assert capital(state) == pytest.approx(float(exact_capital(D, 1)), rel=1e-12)
    assert state.contradicted == (capital(state) >= 1 / ALPHA)
    assert (state.episodes, state.total) == (len(D), sum(D))


def test_what_each_side_can_lose():
    """Of a table in [0, 1]: paid more loses the table, paid less loses the rest of the range;
    never all of a stake.
    """
    table = sf.Problem(np.array([[0.25, 0.75]]), 0, H, stationary=True)
    losses = 0.9 / watch(table).bet.stake[:, 0]
    assert losses == pytest.approx([H * 0.75, H * 0.75])
    for low, high in ((0.0, 1.0), (1e4, 1e4 + 1.0), (1e6, 1e6 + 1.0)):  # rounding is far more there
        units = sf.Units(low, high)
        highest = sf.Problem(np.full((1, 1), high), 0, H, stationary=True, units=units)
        state = watch(highest)
        for _ in range(50):
            state = state.after(0.0)
        assert np.isfinite(state.log_wealth).all() and not state.contradicted
    for r in (0.0, 1e-9, 0.5, 1.0):
        state = watch(sf.Problem(np.full((1, 1), r), 0, H, stationary=True))
        for extreme in (-H * r - 1e-9 * H, H * (1 - r) + 1e-9 * H):
            assert np.isfinite(state.after(extreme).log_wealth).all()
    at_least = sf.Problem(np.full((1, 1), 0.5), 0, H, stationary=True, rewards_at_least=True)
    # more than a lower bound contradicts nothing
    assert watch(at_least).bet.sign.ravel().tolist() == [-1.0]
    unknown = sf.Problem(
        np.full((1, 1), 0.5), 0, H, stationary=True, unknown=np.ones((1, 1), dtype=bool)
    )
    assert watch(unknown) is None


LAWS = {  # D of an episode, and its chances, of a table that holds the mean
    "coins": {
        Fraction(-1): Fraction(1, 4),
        Fraction(0): Fraction(1, 2),
        Fraction(1): Fraction(1, 4),
    },
    "skewed": {Fraction(-1, 4): Fraction(4, 5), Fraction(1): Fraction(1, 5)},
}


@pytest.mark.parametrize("law", LAWS)
def test_every_sequence_of_a_true_table(law):
    """The expectation after every sequence of six episodes is at most 1. Control: of a table that
    says 0.05 less, it is above; and so is, of the true one, that of a rule which takes the better
    side afterwards.
    """
    outcomes = LAWS[law]
    kept = shifted = chosen = Fraction(0)
    for D in product(outcomes, repeat=6):
        chance = math.prod(outcomes[d] for d in D)
        kept += chance * exact_capital(D, 1)
        shifted += chance * exact_capital([d + Fraction(1, 20) for d in D], Fraction(11, 10))
        chosen += chance * max(exact_capital(D, 1, (-1,)), exact_capital(D, 1, (1,)))
    assert kept <= 1 < shifted
    assert chosen > Fraction(11, 10)


def test_where_the_table_is_a_lower_bound_only_less_contradicts():
    at_least = sf.Problem(np.full((1, 1), 0.5), 0, H, stationary=True, rewards_at_least=True)
    more, less = watch(at_least), watch(at_least)
    for _ in range(40):
        more, less = more.after(0.5), less.after(-0.5)
    assert less.contradicted and not more.contradicted
    both = watch()
    for _ in range(40):
        both = both.after(0.5)
    assert both.contradicted  # of a table of means, more contradicts, too


def test_its_state_in_a_file(tmp_path):
    state = watch().after(0.5).after(-0.25)
    same = watch().restored("f", state.state)
    assert same.after(0.1).log_wealth.tobytes() == state.after(0.1).log_wealth.tobytes()
    assert (same.episodes, same.total) == (2, 0.25)
    for wrong in (np.zeros(3), np.full(2 + 2 * STAKES, np.nan)):
        with pytest.raises(sf.InvalidFile, match="table_watch is not as it was written"):
            watch().restored("f", wrong)
