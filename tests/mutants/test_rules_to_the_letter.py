"""Small rules, line by line: relative floors, the range of returns, when to replan."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from surefoot.agents.floors import Below, Relative, require_share, user_zero
from surefoot.agents.plan import Plan
from surefoot.agents.replanning import (
    Blocks,
    EveryEpisode,
    Growth,
    block_length,
    by_iterations,
    deadline,
    is_due,
    limits,
    require_replan,
    usual,
)
from surefoot.agents.returns import Returns, returns_range
from surefoot.agents.schedule import PlanInForce
from surefoot.agents.work import (
    BACKUPS_OF_A_BISECTION,
    PlanWork,
    box_iteration,
    drawn_steps,
    occupancy_iteration,
    splice_backups,
    table_steps,
)
from surefoot.errors import InvalidSetting
from surefoot.task.counts import Counts
from surefoot.task.problem import Problem
from surefoot.task.units import Units

UNIT = 2.0**-20
UNITS = 2**20
SIXTEENTH = 2**16  # in multiples of 2^-20

# ---- Floors ---------------------------------------------------------------------------------------------------------


def in_units(low, high, H=4):
    return Problem.rescaled(np.zeros((1, 1)), Units(low, high), H=H)


def test_a_share_of_the_baseline():
    """In the user's units rewards are 1 to 3 in 4 steps: nothing is worth 4 * 1 / 2 = 2 here."""
    assert user_zero(in_units(1.0, 3.0)) == 2.0
    assert user_zero(in_units(0.0, 3.0)) == 0.0
    assert Relative(0.25).of(3.0, in_units(1.0, 3.0)) == 0.75 * 3.0 - 0.25 * 2.0
    assert Relative(0.25).of(3.0, in_units(0.0, 1.0)) == 2.25
    assert Relative(0.75).of(1.0, in_units(1.0, 3.0)) == 0.0
    assert str(Relative(0.05)) == "95 % of the baseline"


def test_an_amount_below_the_baseline():
    """In the user's units, whose rewards are 1 to 3: half as much here, and not more."""
    scaled = in_units(1.0, 3.0)
    assert Below(0.5).rescaled(in_units(0.0, 1.0)) == 0.5
    assert Below(0.5).rescaled(scaled) == math.nextafter(0.25, 0.0)
    assert Below(0.5).of(3.0, in_units(0.0, 1.0)) == 2.5
    assert Below(0.5).of(3.0, scaled) == pytest.approx(2.75, abs=1e-15)
    assert Below(0.5).of(0.125, scaled) == 0.0
    assert Below(0.5).under(5.0, scaled) == 4.5
    assert Below(2.0).under(5.0, scaled) == 4.0  # the lowest that there is
    assert Relative(0.25).under(8.0, scaled) == 6.0 and Relative(0.25).under(5.0, scaled) == 4.0
    assert str(Below(0.5)) == "0.5 below the baseline"
    assert Below(2.0).under(-1.0, in_units(-2.0, 1.0)) == -3.0  # of any sign


@pytest.mark.parametrize("amount", [0.0, -0.5, math.inf, math.nan, "x"])
def test_an_amount_is_positive(amount):
    with pytest.raises(InvalidSetting, match=r"amount is .* expected an amount > 0, in the units of the rewards"):
        Below(amount)
    assert Below(1e-9).amount == 1e-9


@pytest.mark.parametrize("max_loss", [0.0, 1.0, -0.5, 1.5, math.nan, "x"])
def test_a_share_is_between_0_and_1(max_loss):
    with pytest.raises(InvalidSetting, match=r"max_loss is .* expected a share strictly between 0 and 1"):
        Relative(max_loss)
    assert Relative(1e-9).max_loss == 1e-9 and Relative(1 - 1e-9).max_loss == 1 - 1e-9


def test_a_share_needs_values_that_are_not_negative():
    require_share(in_units(0.0, 1.0))
    require_share(in_units(1.0, 3.0))
    with pytest.raises(InvalidSetting, match=r"as low as -0.5"):
        require_share(in_units(-0.5, 1.0))


# ---- The range of returns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 1.5, math.nan])
def test_a_share_of_delta(share):
    with pytest.raises(InvalidSetting, match=r"share is .* expected a share of delta strictly between 0 and 1"):
        Returns(share)
    assert Returns().share == 0.5 and Returns(1e-9).share == 1e-9 and Returns(1 - 1e-9).share == 1 - 1e-9


def test_a_declared_range_has_two_ends():
    for wrong in ({"low": 0.0}, {"high": 1.0}):
        with pytest.raises(InvalidSetting, match="needs both ends"):
            Returns(**wrong)
    for low, high in ((1.0, 1.0), (2.0, 1.0), (-math.inf, 1.0), (0.0, math.inf)):
        with pytest.raises(InvalidSetting, match="two numbers, low < high"):
            Returns(low=low, high=high)
    assert not Returns().declared and Returns(low=-1, high=2).declared
    assert (Returns(low=-1, high=2).low, Returns(low=-1, high=2).high) == (-1.0, 2.0)


PI = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]]])  # two steps, two states, two actions
R = np.array([[[2.0, 8.0], [1.0, 3.0]], [[4.0, 6.0], [9.0, 5.0]]]) / 16


def test_a_declared_range():
    """Rewards were rounded down, by at most 2^-20 each: the lowest sum is that much lower. In the user's units."""
    known = Problem.rescaled(R, Units(1.0, 3.0)).forget(rewards=True)  # returns of 2..6 are possible
    found = returns_range(known, PI, Returns(low=3.0, high=5.0))
    assert found == (UNITS // 2 - 2, UNITS + 2, 2 * UNIT)
    assert (found.lowest, found.span, found.highest) == (0.5 - 2 * UNIT, 1.0 + 2 * UNIT, 1.5)
    # Ends between two multiples: the least is rounded down, the highest up.
    found = returns_range(known, PI, Returns(low=3.0 + UNIT, high=5.0 + UNIT))
    assert found == (UNITS // 2 - 2, UNITS + 3, 2 * UNIT)
    assert returns_range(known, PI, Returns(low=-9.0, high=5.0)) == (0, 3 * UNITS // 2, 2 * UNIT)  # no wider
    assert returns_range(known, PI, Returns(low=3.0, high=1e30)) == (UNITS // 2 - 2, 3 * UNITS // 2 + 2, 2 * UNIT)
    assert returns_range(known, PI, Returns(low=8.0, high=10.0)) == (3 * UNITS - 2, UNITS + 2, 2 * UNIT)  # none of it


def test_the_range_of_what_is_possible():
    """From state 0, action 0: 2/16 and then the worst or best that is played anywhere: 4 to 6 in state 0, 5 in 1."""
    assert returns_range(Problem(R), PI, Returns()) == (6 * SIXTEENTH, 2 * SIXTEENTH, 0.0)
    found = returns_range(Problem(R), PI, Returns())
    assert (found.lowest, found.span, found.highest) == (6 / 16, 2 / 16, 8 / 16)
    assert type(found.low) is type(found.width) is int
    # From state 1 either action is played: 1 to 3, and then the same.
    assert returns_range(Problem(R, s1=1), PI, Returns()) == (5 * SIXTEENTH, 4 * SIXTEENTH, 0.0)
    # From both, or from anywhere: the widest.
    for start in ([0.5, 0.5], "unknown"):
        assert returns_range(Problem(R, start=start), PI, Returns()) == (5 * SIXTEENTH, 4 * SIXTEENTH, 0.0)
    # A mask: after the first step always state 1.
    mask = np.zeros((2, 2, 2, 2), dtype=bool)
    mask[..., 1] = True
    assert returns_range(Problem(R, support=mask), PI, Returns()) == (7 * SIXTEENTH, 0, 0.0)
    mask[0, 0, 0] = True
    assert returns_range(Problem(R, support=mask), PI, Returns()) == (6 * SIXTEENTH, 2 * SIXTEENTH, 0.0)


def test_the_range_of_rewards_by_next_state():
    """First step 2/16 to state 0 and 1/16 to state 1, then as it pays: state 0 4 or 6 and 0, state 1 5 and 1."""
    after = np.zeros((2, 2, 2, 2))
    after[0, :, :, 0], after[0, :, :, 1] = 2 / 16, 1 / 16
    after[1, 0, :, 0], after[1, 1, :, 0] = (4 / 16, 6 / 16), (9 / 16, 5 / 16)
    after[1, 1, :, 1] = 1 / 16
    # to state 0: 2 + (0 to 6) = 2..8; to state 1: 1 + (1 or 5) = 2 or 6
    assert returns_range(Problem(r_next=after), PI, Returns()) == (2 * SIXTEENTH, 6 * SIXTEENTH, 0.0)


def test_rewards_count_as_they_are_summed():
    """Rounded down to multiples of 2^-20: 0.1 is a bit more than 104857 of them. What that takes off is said."""
    tenth = math.floor(0.1 / UNIT)
    known = Problem(np.full((2, 2, 2), 0.1))
    assert returns_range(known, PI, Returns()) == (2 * tenth, 0, 2 * UNIT)
    assert returns_range(Problem(np.full((2, 2, 2), 0.125)), PI, Returns()) == (4 * SIXTEENTH, 0, 0.0)


def test_unknown_rewards_are_anything():
    """0 to 1 where they are unknown; and rounded."""
    hidden = np.zeros((2, 2, 2), dtype=bool)
    hidden[1, 0, 0] = True
    # From state 0: 2/16, then state 0 pays anything or 6/16, state 1 pays 5/16.
    assert returns_range(Problem(R, unknown=hidden), PI, Returns()) == (2 * SIXTEENTH, UNITS, 2 * UNIT)
    everywhere = np.ones((2, 2), dtype=bool)
    whole = Problem(np.zeros((2, 2)), H=2, unknown=everywhere)
    assert returns_range(whole, PI, Returns()) == (0, 2 * UNITS, 2 * UNIT)
    # Rows that are the same at every step are read at every step.
    assert returns_range(Problem(np.full((2, 2), 0.25), H=2), PI, Returns()) == (8 * SIXTEENTH, 0, 0.0)


def test_three_steps_and_one_row():
    """Rewards, masks and unknown ones may have a row for each step or one for all: 3 steps tell them apart."""
    pi = np.full((3, 2, 2), 0.5)
    r = np.array([[1.0, 2.0], [3.0, 4.0]]) / 16
    assert returns_range(Problem(r, H=3), pi, Returns()) == (3 * SIXTEENTH, 7 * SIXTEENTH, 0.0)
    steps = np.array([r, 2 * r, 3 * r])
    assert returns_range(Problem(steps), pi, Returns()) == (6 * SIXTEENTH, (2 + 8 + 12 - 6) * SIXTEENTH, 0.0)
    mask = np.zeros((2, 2, 2), dtype=bool)
    mask[..., 0] = True
    # always to state 0: (1 or 2) + 2 (1 or 2) + 3 (1 or 2)
    assert returns_range(Problem(steps, support=mask), pi, Returns()) == (6 * SIXTEENTH, 6 * SIXTEENTH, 0.0)


# ---- When to replan -------------------------------------------------------------------------------------------------


def test_the_pace_of_each_rule():
    assert tuple(EveryEpisode().rule) == (0.0, math.inf, 1, 0.0)
    assert tuple(Growth().rule) == (math.inf, 1.1, 1, 0.0) and tuple(Growth(2.0, 7, 0.5).rule) == (
        math.inf,
        2.0,
        7,
        0.5,
    )
    assert tuple(Blocks().rule) == (0.01, math.inf, 1, 0.0) and tuple(Blocks(0.5, 7, 2).rule) == (0.5, math.inf, 7, 2.0)


def test_settings_of_the_rules():
    for wrong in (1.0, 0.5, 1000.5, math.inf, math.nan, "x"):
        with pytest.raises(InvalidSetting, match=r"factor is .* expected a number above 1, up to 1000, such as 1\.1"):
            Growth(wrong)
    assert limits(Growth(1000), np.array([[2**53]])) == 1000 * 2**53  # no overflow
    for wrong in (0.0, -0.5, 1.5, math.nan, "x"):
        with pytest.raises(InvalidSetting, match=r"share is .* expected a number in \(0, 1\]"):
            Blocks(wrong)
    for wrong in (0, -1, 1.5, True, "x", 2**53 + 1):
        for kind, number in ((Blocks, 0.5), (Growth, 1.5)):
            with pytest.raises(InvalidSetting, match="at_least is"):
                kind(number, at_least=wrong)
    assert Blocks(0.5, at_least=2**53).at_least == 2**53 and Blocks(0.5, at_least=np.int64(3)).at_least == 3
    for wrong in (-1e-9, 10_000.5, math.nan, math.inf, "x", True):
        for kind, number in ((Blocks, 0.5), (Growth, 1.5)):
            with pytest.raises(
                InvalidSetting, match=r"per_successor is .* expected a number of episodes from 0 to 10000"
            ):
                kind(number, 1, wrong)
        with pytest.raises(InvalidSetting, match=r"per_iteration is .* expected a number of episodes from 0 to 10000"):
            Blocks(0.5, per_iteration=wrong)
    assert Blocks(0.5, per_iteration=10_000).per_iteration == 10_000.0
    assert str(Blocks(0.5, 2, 3, 0.25)) == "Blocks(share=0.5, at_least=2, per_successor=3.0, per_iteration=0.25)"
    assert str(Blocks(0.5, per_iteration=1)) == "Blocks(share=0.5, per_iteration=1.0)"
    assert Growth(1.5, 1, 10_000).per_successor == 10_000.0 and Blocks(0.5, 1, 0).per_successor == 0.0
    assert str(Growth(1.5, 1, 0.25)) == "Growth(factor=1.5, per_successor=0.25)"
    assert str(Blocks(0.5, 2, 3)) == "Blocks(share=0.5, at_least=2, per_successor=3.0)"
    assert str(Growth(1.5)) == "Growth(factor=1.5)" and str(Growth(1.5, 3)) == "Growth(factor=1.5, at_least=3)"
    assert str(Blocks(0.5)) == "Blocks(share=0.5)" and str(Blocks(0.5, 3)) == "Blocks(share=0.5, at_least=3)"
    assert Growth(1 + 1e-9).factor == 1 + 1e-9 and Blocks(1.0).share == 1.0 and Blocks(1e-9).share == 1e-9
    for kind, text in ((Growth, "factor=1.5"), (Blocks, "share=0.5")):  # a user's own speaks for itself
        own = type("Own", (kind,), {})
        assert str(own(1.5 if kind is Growth else 0.5)) == f"Own({text})"
    for rule in (EveryEpisode(), Growth(), Blocks()):
        require_replan(rule)
    with pytest.raises(InvalidSetting, match=r"replan is 5, expected sf.EveryEpisode"):
        require_replan(5)


@pytest.mark.parametrize(
    ("S", "A", "H", "backups", "expected"),
    [
        (1, 4, 1, 3.0, Growth(1.1, 5)),  # 28.03 / (5 + 1) = 4.7
        (2, 2, 30, 3.0, Growth(1.1, 1, 87 / 32 / 35)),  # (28.04 + 2 2 3 29/250) / 35 = 0.8
        (18, 5, 3, 2.0, Growth(1.1, 4, 4 / 32 / 8)),  # (28 + 0.54 + 1.01 + 360/250) / 8 = 3.9
        (19, 5, 3, 2.0, Growth(1.1, 4, 4 / 120 / 8)),  # (28 + 0.57 + 1.13 + 380/250) / 8 = 3.9
        (45, 5, 3, 2.0, Growth(1.1, 5, 4 / 120 / 8)),  # 900 backups; (28 + 1.35 + 6.33 + 900/250) / 8 = 4.9
        (41, 11, 3, 1.0, Blocks(0.1, 6, 2 / 120 / 8)),  # 902
        (40, 9, 3, 0.347, Growth(1.1, 5, 0.694 / 120 / 8)),  # (28 + 2 + 9 + 249.84/250) / 8 = 4.999
        (40, 9, 3, 0.348, Growth(1.1, 6, 0.696 / 120 / 8)),  # a bit more than 5
        (20_000, 5, 2, 1.5, Blocks(0.1, 176, 1.5 / 120 / 7)),  # (28 + 600 + 150000/250) / 7 = 175.4
    ],
)
def test_the_usual_rule(S, A, H, backups, expected):
    """So many episodes take as long as the plan, in steps of a learner; long plans are made in blocks."""
    assert usual(Problem(np.zeros((S, A)), H=H), PlanWork(backups), True) == expected


def test_the_usual_rule_with_steps_of_their_own_and_unknown_rewards():
    """Next states are seen at each step, and read at one. The reward of a pair is bounded where it is unknown, which
    takes a step for each next state that was seen."""
    known = Problem(np.zeros((20, 5)), H=5)
    some = 28 + 5 * 120 / 200 + 5 * 2000 / 1600 + 1200 / 250
    assert usual(known, PlanWork(3.0), False) == Growth(1.1, math.ceil(some / 10), 3.0 * 4 / (5 * 120) / 10)
    for pooled, rows in ((False, 5), (True, 1)):
        without = usual(known, PlanWork(3.0), pooled)
        steps = 3.0 * 4 / (rows * 120) + 1.0
        assert usual(known.forget(rewards=True), PlanWork(3.0), pooled) == replace(without, per_successor=steps / 10)


def test_the_usual_rule_with_work_beside_backups():
    """Steps of a learner are added; more than 19 for each step of an episode are long, as 300 backups are."""
    known = Problem(np.zeros((4, 5)), H=2)  # 0.12 + 0.05 for the counts
    assert usual(known, PlanWork(2.0, 6.67), True) == Growth(1.1, 5, 2 / 32 / 7)  # (28.17 + 40/250 + 6.67) / 7 = 5
    assert usual(known, PlanWork(2.0, 6.68), True) == Growth(1.1, 6, 2 / 32 / 7)
    assert usual(known, PlanWork(30.0, 37.8), True) == Growth(1.1, 10, 30 / 32 / 7)  # 600 backups
    assert usual(known, PlanWork(30.01, 37.8), True) == Blocks(0.1, 10, 30.01 / 32 / 7)
    assert usual(known, PlanWork(0.0, 37.83), True) == Growth(1.1, 10)
    assert usual(known, PlanWork(0.0, 37.84), True) == Blocks(0.1, 10)
    assert usual(known, PlanWork(0.0, 37.66), False) == Growth(1.1, 10)
    assert usual(known, PlanWork(0.0, 37.67), False) == Blocks(0.1, 10)
    assert usual(known, PlanWork(2.0, 4.0, plans=3), True).at_least == 13  # (3 28 + 0.33 + 4) / 7 = 12.6


def test_the_usual_rule_with_linear_programs():
    """How many iterations they take, only the plan says: blocks, and so many episodes for each."""
    known = Problem(np.zeros((4, 5)), H=2)
    assert usual(known, PlanWork(2.0, 4.0, per_iteration=0.6), True) == Blocks(0.1, 5, 2 / 32 / 7, 0.6 / 7)
    outer, inner = PlanWork(2.0, 4.0), PlanWork(1.5, 3.0, plans=2, per_iteration=0.25)
    assert outer.with_inner(inner) == inner.with_inner(outer) == PlanWork(3.5, 7.0, plans=3, per_iteration=0.25)
    assert not any(map(by_iterations, (EveryEpisode(), Growth(1.1), Blocks(0.1))))
    assert by_iterations(Blocks(0.1, per_iteration=1e-9))


def test_the_work_of_tables_linear_programs_and_drawn_worlds():
    known = Problem(np.zeros((6, 5)), H=2)
    assert table_steps(known) == 5 + 2 * 6 * 5 * 6 / 1000
    assert occupancy_iteration(known) == 0.75 + 12 * (20 * 5 + 5 * 6 + 4 * 6) / 20_000
    assert box_iteration(known) == 0.75 + 360 / 700
    assert drawn_steps(known, 2, 3000) == 5 + 7.5 + 2 * 1500 / 1200
    assert drawn_steps(Problem(np.zeros((64, 1)), H=7), 1, 3000) == 17.5 + 7.5 + 7 * 3000 / 1200
    assert drawn_steps(Problem(np.zeros((65, 1)), H=7), 1, 3000) == 52.5 + 7.5 + 7 * 3000 / 1200  # lists
    by_next = [Problem(None, r_next=np.zeros((S, 1, S)), H=7) for S in (64, 65)]
    assert [drawn_steps(paid, 1, 3000) for paid in by_next] == [17.5 + 7.5 + 17.5, 52.5 + 7.5 + 4 * 17.5]


def test_the_work_of_tables_of_counts_masks_and_rewards_by_next_state():
    """1600 entries of a table up to 64 states take a step, in every row, and 200 pairs, or states; in a backup of all
    pairs, 2000 possible next states or rewards, and 300 pairs with a mask."""

    def steps(S, rows=1, **settings):
        r = None if "r_next" in settings else np.zeros((S, 2))
        return PlanWork(2.0).steps(Problem(r, H=5, **settings), rows)

    assert steps(18) == pytest.approx(28 + 18 * 3 / 200 + 18 * 2 * 2 * 4 / 250 + 18 * 2 * 18 / 1600)
    assert steps(64, 5) == pytest.approx(28 + 5 * 64 * 3 / 200 + 64 * 2 * 2 * 4 / 250 + 5 * 64 * 2 * 64 / 1600)
    assert steps(65, 5) == pytest.approx(28 + 5 * 65 * 3 / 200 + 65 * 2 * 2 * 4 / 250)
    for S, table in ((18, 3), (64, 3), (65, 0)):
        dense, every = np.zeros((S, 2, S)), S * 2 * S
        once = table * every / 1600  # of each of three rows
        assert steps(S, 3, r_next=dense) == pytest.approx(steps(S, 3) + once + every * 8 / 2000)
        masked = 8 * (every / 2000 + 2 * S / 300)
        assert steps(S, 3, support=dense == 0) == pytest.approx(steps(S, 3) + once + masked)
        both = steps(S, 3, support=dense == 0, r_next=dense)
        assert both == pytest.approx(steps(S, 3) + 2 * once + masked + every * 8 / 2000)
    few = scipy.sparse.csr_array(([0.5, 0.5, 0.5], ([0, 7, 7], [1, 2, 3])), shape=(130, 65))
    assert steps(65, r_next=few) == pytest.approx(steps(65) + 3 * 2 * 4 / 2000)
    by_step = PlanWork(2.0).steps(Problem(None, r_next=[few] * 5, units=Units(0.0, 1.0)), 1)
    assert by_step == pytest.approx(steps(65) + 3 * 2 * 4 / 2000)  # each step reads its own
    one = scipy.sparse.csr_array((np.ones(130), (np.arange(130), np.zeros(130, dtype=int))), shape=(130, 65))
    for lists in (one, [one] * 5):
        assert steps(65, support=lists) == pytest.approx(steps(65) + 8 * (130 / 2000 + 130 / 300))
    assert BACKUPS_OF_A_BISECTION == 0.3


@pytest.mark.parametrize(
    ("S", "others", "relative", "optimistic", "expected"),
    [
        (64, 0, False, True, 2.0),
        (64, 0, True, True, 2.0),
        (64, 1, False, True, 3.0),
        (64, 1, True, True, 4.0),
        (64, 2, False, True, 3.0),
        (64, 8, False, True, 6.0),
        (64, 8, True, False, 12.0),
        (64, 1, False, False, 5.0),
        (10, 8, False, True, 6.0),
        (65, 0, False, True, 1.0),
        (65, 1, False, True, 1.5),
        (65, 2, False, True, 2.0),
        (65, 3, False, True, 2.5),
        (65, 8, False, True, 2.5),
        (65, 8, True, True, 4.0),
        (65, 1, False, False, 2.5),
    ],
)
def test_backups_of_splices(S, others, relative, optimistic, expected):
    """Two for the optimistic policy and two for an explorer's; half of the steps of each splice; over lists three of
    them at most, in half the time."""
    assert splice_backups(S, others, relative, optimistic) == expected


def test_the_length_of_a_block():
    """A share of the episodes so far, rounded up, and one at least; none where growth decides."""
    assert [block_length(Blocks(0.25), n, 1) for n in (0, 1, 4, 5, 8, 100)] == [1, 1, 1, 2, 2, 25]
    assert [block_length(Blocks(0.25), n, 3) for n in (0, 1, 8, 12, 13, 100)] == [3, 3, 3, 3, 4, 25]
    assert block_length(EveryEpisode(), 1000, 1) == 1
    assert block_length(Growth(), 1000, 1) is None


def test_visits_that_end_a_plan():
    """The next whole number at or above growth times the visits, and one more at least."""
    n_sa = np.array([[[0, 1, 2, 10, 11]]])
    assert limits(Growth(1.5), n_sa).tolist() == [[[1, 2, 3, 15, 17]]]
    assert limits(Growth(1.01), n_sa).tolist() == [[[1, 2, 3, 11, 12]]]
    assert limits(Growth(1.5), n_sa).dtype == np.int64
    for rule in (EveryEpisode(), Blocks()):
        assert limits(rule, n_sa).shape == (0, 0)


def counts(*visits, H=2):
    """`visits` of the two actions at the first step; as many at the others."""
    n_sas = np.zeros((H, 1, 2, 1), dtype=np.int64)
    n_sas[0, 0, :, 0] = visits
    n_sas[1:, 0, 0, 0] = sum(visits)
    return Counts(n_sas)


def due(rule, then, now, H):
    """Is a plan that was computed from the counts `then` at its end?"""
    return is_due(deadline(rule, then), now)


def test_growth_is_due():
    then = counts(10, 4)
    assert not due(Growth(1.5), then, counts(14, 5), 2)
    assert due(Growth(1.5), then, counts(15, 4), 2)
    assert due(Growth(1.5), then, counts(10, 6), 2)
    assert due(Growth(1.5), counts(10, 0), counts(10, 1), 2)


def test_growth_is_not_due_before_so_many_episodes():
    """A plan made after 14 episodes is in force for 3 at least, and then until something has grown."""
    then, patient = counts(10, 4), Growth(1.5, 3)
    for more, ends in ((1, False), (2, False), (3, True), (4, True)):
        assert due(patient, then, counts(10, 4 + more), 2) == ends
        assert due(Growth(1.5), then, counts(10, 4 + more), 2) == (more >= 2)  # control: grown before
    assert not due(patient, then, counts(14, 5), 2)  # five episodes, and nothing has grown
    in_force = PlanInForce.begin(Handmade(patient), lasting(None), then)
    assert [in_force.episodes_before_growth_counts(counts(10, 4 + more)) for more in (0, 2, 3, 5)] == [3, 1, 0, -2]
    late = returned(1, 10, 4)
    for more, ends in ((2, False), (3, True)):
        assert is_due(deadline(patient, late, True), returned(9, 10 + more, 4)) == ends


def returned(n, *visits):
    """The same with so many returns of the baseline."""
    seen = counts(*visits)
    seen.baseline_returns[0] = n
    return seen


def test_growth_of_returns_is_due():
    """Where they are evidence: the next whole number at or above growth times their number, and one more at least."""
    ends = [deadline(Growth(1.5), returned(n, 1000, 0), True).returns for n in (0, 1, 2, 10, 11)]
    assert ends == [1, 2, 3, 15, 17]
    assert deadline(Growth(1.01), returned(10, 1000, 0), True).returns == 11
    then = returned(10, 1000, 500)
    for n, ends in ((10, False), (14, False), (15, True), (16, True)):
        assert is_due(deadline(Growth(1.5), then, True), returned(n, 1004, 500)) == ends
        assert not is_due(deadline(Growth(1.5), then), returned(n, 1004, 500))
        by_returns, by_visits = Handmade(Growth(1.5), return_range=(0, 1)), Handmade(Growth(1.5))
        assert (PlanInForce.begin(by_returns, lasting(None), then).next(returned(n, 1004, 500)) is None) == ends
        assert PlanInForce.begin(by_visits, lasting(None), then).next(returned(n, 1004, 500)) is not None
    assert is_due(deadline(Growth(1.5), then, True), returned(10, 1500, 500))  # visits count as before
    for rule in (EveryEpisode(), Blocks(0.25)):
        assert deadline(rule, then, True).returns is None
        assert deadline(rule, then, True).episodes == deadline(rule, then).episodes
    assert deadline(Growth(1.5), then).returns is None


def test_blocks_are_due():
    """A plan made after 8 episodes with a share of 1/4 lasts for 2."""
    then = counts(6, 2)
    for more, ends in ((0, False), (1, False), (2, True), (3, True)):
        assert due(Blocks(0.25), then, counts(6 + more, 2), 2) == ends
    assert due(EveryEpisode(), then, counts(7, 2), 2)
    assert not due(EveryEpisode(), then, then, 2)
    three = counts(6, 2, H=3)
    assert not due(Blocks(0.25), three, counts(7, 2, H=3), 3)
    assert due(Blocks(0.25), three, counts(8, 2, H=3), 3)


class Handmade:
    """As much of an agent as a plan in force asks for."""

    problem = Problem(np.zeros((1, 2)), H=2)

    def __init__(self, rule, following=None, return_range=None):
        self.replan_rule, self.following, self.return_range = rule, following, return_range

    def continue_plan(self, plan, counts):
        return self.following


def lasting(episodes, iterations=0):
    settings = {"max_episodes": episodes, "iterations": iterations}
    return Plan(np.full((2, 1, 2), 0.5), "optimistic", 0, 1.0, 0.0, 2.0, [0.0], "no floor", **settings)


@pytest.mark.parametrize("make", [PlanInForce.begin, PlanInForce.remembered])
def test_a_plan_that_lasts_so_long_at_most(make):
    then = counts(60, 20)
    for rule in (Growth(1.5), Blocks(0.5)):
        in_force = make(Handmade(rule), lasting(5), then)
        for more, ends in ((0, False), (4, False), (5, True), (6, True)):
            assert in_force.next(counts(60 + more, 20)) is (None if ends else in_force)
            assert in_force.episodes_left(counts(60 + more, 20)) == 5 - more
    for_long, at_will = (make(Handmade(Growth(1.5)), lasting(most), then) for most in (1000, None))
    assert at_will.next(counts(66, 20)) is at_will
    assert at_will.episodes_left(counts(66, 20)) is None
    assert for_long.next(counts(95, 20)) is None  # the rule itself may say so before
    assert make(Handmade(Blocks(0.05)), lasting(1000), then).episodes_left(counts(61, 20)) == 3


def test_what_continues_a_plan():
    """It lasts from the moment at which it was asked for; after a restart, nobody remembers when that was."""
    then, following = counts(60, 20), lasting(3)
    agent = Handmade(Growth(1.5), following)
    in_force = PlanInForce.begin(agent, lasting(5), then)
    assert in_force.next(counts(64, 20)) is in_force
    second = in_force.next(counts(65, 20))
    assert (second.plan, second.since, second.computed, second.end) == (following, 85, 80, in_force.end)
    assert second.next(counts(67, 20)) is second
    assert second.next(counts(68, 20)).since == 88
    assert second.next(counts(90, 20)) is None  # the rule counts from the plan that was computed
    remembered = PlanInForce.remembered(agent, lasting(5), then)
    assert remembered.next(counts(61, 20)).plan is following
    assert remembered.next(counts(90, 20)) is None


@pytest.mark.parametrize("make", [PlanInForce.begin, PlanInForce.remembered])
def test_a_plan_of_many_iterations_is_kept_for_long(make):
    """A block of 8 episodes after 80, and of 3 + 0.5 30 = 18 where its linear programs took 30 iterations."""
    then = counts(60, 20)
    for iterations, length in ((0, 8), (9, 8), (12, 9), (30, 18)):
        plan = lasting(None, iterations)
        in_force = make(Handmade(Blocks(0.1, 3, per_iteration=0.5)), plan, then)
        assert in_force.episodes_left(then) == length
        assert in_force.next(counts(60 + length - 1, 20)) is in_force
        assert in_force.next(counts(60 + length, 20)) is None
        # Control: without a word on iterations, the plan is kept as any other.
        assert make(Handmade(Blocks(0.1, 3)), plan, then).episodes_left(then) == 8
