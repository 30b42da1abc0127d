"""A world small enough to work out by hand, the bounds written out a second time, and the published
check values.

Everything here is deterministic. The hand calculation is in fractions; the second version of the
bounds is plain Python with 50 decimal digits and follows the paper's text, not this library's code.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf
from reading import Reading, decimal

F = Fraction
LOWERED = 1e-11  # directed rounding takes 1e-12 H off each lower value

# ---- The world: two states, two actions, two steps, start in state 0 -----------------------------
#
#                      step 1                          step 2
#               action 0      action 1          action 0      action 1
# state 0   r=1/2, 1/4    r=1/4, 3/4        r=1/5, 1/3    r=3/10, 1/2       (the second number is
# the probability
# state 1   r=0,   1/2    r=1/3, 1          r=9/10, 0     r=1/2,  1/5        that state 1 comes
# next)

R = [
    [[F(1, 2), F(1, 4)], [F(0), F(1, 3)]],
    [[F(1, 5), F(3, 10)], [F(9, 10), F(1, 2)]],
]
TO_STATE_1 = [
    [[F(1, 4), F(3, 4)], [F(1, 2), F(1)]],
    [[F(1, 3), F(1, 2)], [F(0), F(1, 5)]],
]
PI = [
    [[F(2, 3), F(1, 3)], [F(1, 2), F(1, 2)]],
    [[F(1, 4), F(3, 4)], [F(2, 5), F(3, 5)]],
]


def floats(nested):
    return np.array(nested, dtype=object).astype(np.float64)


@pytest.fixture(scope="module")
def world():
    P = [[[[1 - p, p] for p in row] for row in step] for step in TO_STATE_1]
    return sf.TabularMDP(floats(P), floats(R), s1=0)


def assert_close(found, expected):
    """A few roundings of numbers of size one: nothing more is forgiven."""
    assert_allclose(found, floats(expected), atol=1e-15, rtol=0)


def test_the_value_of_a_policy(world):
    # Step 2.  V_2(0) = 1/4 * 1/5  + 3/4 * 3/10 = 2/40 + 9/40   = 11/40
    #          V_2(1) = 2/5 * 9/10 + 3/5 * 1/2  = 18/50 + 15/50 = 33/50
    # Step 1.  Q_1(0,0) = 1/2 + 3/4 * 11/40 + 1/4 * 33/50 = (400 + 165 + 132)/800 = 697/800
    #          Q_1(0,1) = 1/4 + 1/4 * 11/40 + 3/4 * 33/50 = (200 +  55 + 396)/800 = 651/800
    #          Q_1(1,0) = 0   + 1/2 * 11/40 + 1/2 * 33/50 = (55 + 132)/400        = 187/400
    #          Q_1(1,1) = 1/3 + 0   * 11/40 + 1   * 33/50 = (50 + 99)/150         = 149/150
    #          V_1(0) = 2/3 * 697/800 + 1/3 * 651/800 = (1394 + 651)/2400 = 409/480
    #          V_1(1) = 1/2 * 187/400 + 1/2 * 149/150 = (561 + 1192)/2400 = 1753/2400
    V = sf.policy_value(world, floats(PI))
    assert_close(V, [[F(409, 480), F(1753, 2400)], [F(11, 40), F(33, 50)], [F(0), F(0)]])


def test_the_optimum(world):
    # Step 2.  V*_2(0) = 3/10 by action 1, V*_2(1) = 9/10 by action 0.
    # Step 1.  Q*_1(0,0) = 1/2 + 3/4 * 3/10 + 1/4 * 9/10 = (20 + 9 + 9)/40  = 19/20
    # Q*_1(0,1) = 1/4 + 1/4 * 3/10 + 3/4 * 9/10 = (10 + 3 + 27)/40 = 1       the lower reward pays
    # in the end
    #          Q*_1(1,0) = 0   + 1/2 * 3/10 + 1/2 * 9/10 = 3/5
    #          Q*_1(1,1) = 1/3 + 0   * 3/10 + 1   * 9/10 = 37/30
    best = sf.solve(world)
    assert_close(best.Q, [[[F(19, 20), F(1)], [F(3, 5), F(37, 30)]], R[1]])
    assert_close(best.V, [[F(1), F(37, 30)], [F(3, 10), F(9, 10)], [F(0), F(0)]])
    assert_array_equal(best.policy, [[[0, 1], [0, 1]], [[0, 1], [1, 0]]])
    assert best.value == pytest.approx(1.0, abs=1e-15)


def test_the_occupancy(world):
    # Step 1 is in state 0: d_1 = (2/3, 1/3 | 0, 0). State 1 comes next with 2/3 * 1/4 + 1/3 * 3/4 =
    # 2/12 + 3/12 = 5/12, state 0 with 7/12. Step 2: d_2(0,.) = 7/12 * (1/4, 3/4) = (7/48, 21/48),
    # d_2(1,.) = 5/12 * (2/5, 3/5) = (1/6, 1/4).
    d = [[[F(2, 3), F(1, 3)], [F(0), F(0)]], [[F(7, 48), F(21, 48)], [F(1, 6), F(1, 4)]]]
    assert_close(sf.occupancy(world, floats(PI)), d)
    # <d, r> = 2/3 * 1/2 + 1/3 * 1/4 + 7/48 * 1/5 + 21/48 * 3/10 + 1/6 * 9/10 + 1/4 * 1/2
    #        = (160 + 40 + 14 + 63 + 72 + 60)/480 = 409/480, the value found above.
    value = sum(d[h][s][a] * R[h][s][a] for h in range(2) for s in range(2) for a in range(2))
    assert value == F(409, 480)


def test_the_splices_and_the_step_mixture(world):
    # With pi* as the bolder policy:
    #   pi^0 = pi*                    V = 1
    #   pi^1 = pi, then pi*           V = 2/3 * 19/20 + 1/3 * 1 = 19/30 + 10/30 = 29/30
    #   pi^2 = pi                     V = 409/480
    pi, best = floats(PI), sf.solve(world).policy
    values = [sf.value(world, sf.splice(pi, best, h0)) for h0 in range(3)]
    assert_close(values, [F(1), F(29, 30), F(409, 480)])

    # Mixing pi^2 and pi^1 with rho = 1/4 changes step 2 alone:
    #   state 0: 3/4 * (1/4, 3/4) + 1/4 * (0, 1) = (3/16, 13/16)
    #   state 1: 3/4 * (2/5, 3/5) + 1/4 * (1, 0) = (11/20, 9/20)
    mixed = sf.step_mixture(sf.splice(pi, best, 2), sf.splice(pi, best, 1), 0.25)
    assert_close(mixed, [PI[0], [[F(3, 16), F(13, 16)], [F(11, 20), F(9, 20)]]])

    # Its value, worked out anew:
    # V_2(0) = 3/16 * 1/5 + 13/16 * 3/10 = 45/160 = 9/32,   V_2(1) = 11/20 * 9/10 + 9/20 * 1/2 =
    # 144/200 = 18/25
    #   V_1(0) = 2/3 (1/2 + 3/4 * 9/32 + 1/4 * 18/25) + 1/3 (1/4 + 1/4 * 9/32 + 3/4 * 18/25)
    #          = 5/12 + 21/128 + 3/10 = (800 + 315 + 576)/1920 = 1691/1920
    # and by linearity: 3/4 * 409/480 + 1/4 * 29/30 = (1227 + 464)/1920 = 1691/1920.
    assert F(3, 4) * F(409, 480) + F(1, 4) * F(29, 30) == F(1691, 1920)
    assert_close(sf.value(world, mixed), F(1691, 1920))


def test_a_coin_is_not_a_step_mixture_when_two_steps_differ(world):
    # The coin with rho = 1/4 between pi and pi*: 3/4 * 409/480 + 1/4 * 1 = (409 + 160)/640 =
    # 569/640 = 0.889... Mixing them at BOTH steps instead: step 1 in state 0 becomes (1/2, 1/2),
    # step 2 is the mixed row above, so
    #   V_1(0) = 1/2 (1/2 + 3/4 * 9/32 + 1/4 * 18/25) + 1/2 (1/4 + 1/4 * 9/32 + 3/4 * 18/25)
    #          = 3/8 + 9/64 + 9/25 = (600 + 225 + 576)/1600 = 1401/1600 = 0.875...
    pi, best = floats(PI), sf.solve(world).policy
    assert_close(sf.value(world, sf.EpisodicMixture(pi, best, 0.25)), F(569, 640))
    assert_close(sf.value(world, sf.step_mixture(pi, best, 0.25)), F(1401, 1600))
    assert F(569, 640) - F(1401, 1600) > F(1, 100)  # the control: linearity is lost


def test_the_hand_calculation_is_sharp(world):
    """Control: one reward that is off by 1e-14 is seen."""
    r = np.array(world.r)
    r[1, 0, 1] += 1e-14
    with pytest.raises(AssertionError):
        assert_close(sf.value(sf.TabularMDP(world.P, r), floats(PI)), F(409, 480))


def assert_bounds(plan, L, upper):
    """The candidates' lower values, and the upper value of the plan."""
    expected = [float(low) for low in L]
    assert_allclose(plan.candidates, expected, atol=LOWERED, rtol=0)
    assert plan.upper == pytest.approx(float(upper), abs=LOWERED)


# ---- The bounds, written out again ---------------------------------------------------------------


def test_one_state_one_action_one_step():
    # S = A = H = 1, n = 999,999 visits, r = 1/2. With delta = 6/100 StepMix has delta' = delta / (3
    # * 2) = 1/100, so
    # beta = log(1/delta') + log(8e(n+1)) = 2 ln 10 + 3 ln 2 + 1 + 6 ln 10 = 8 ln 10 + 3 ln 2 + 1 =
    # 21.500122285...
    # and the variance of nothing is nothing:
    #   Q_up = 1/2 + 14 beta/n = 0.500301002...,   Q_low = 1/2 - 22 beta/n = 0.499526996...
    # EpsMix gets the same delta' from delta = 4/100, as delta' = delta / 4.
    n = 999_999
    with localcontext(prec=50):
        beta = 8 * Decimal(10).ln() + 3 * Decimal(2).ln() + 1
        assert str(beta).startswith("21.500122285")
        upper, lower = Decimal("0.5") + 14 * beta / n, Decimal("0.5") - 22 * beta / n
        assert str(upper).startswith("0.500301002") and str(lower).startswith("0.499526996")
    problem, counts = sf.Problem([[[0.5]]]), sf.Counts([[[[n]]]])
    for agent in (
        sf.StepMix.paper(problem, [[[1.0]]], 0.1, delta=0.06),
        sf.EpsMix.paper(problem, [[[1.0]]], 0.1, delta=0.04),
    ):
        plan = agent.plan(counts)
        assert_bounds(plan, [lower] * 2, upper)
        assert (plan.candidates < float(lower)).all()  # towards safety
        assert 0.0 < plan.upper - float(upper) <= LOWERED  # towards safety, too


def chosen(L, floor, h0):
    """Source, h and rho from the candidates' lower values: the three exits of Algorithms 1 and
    4.
    """
    H = h0[-1]
    for c, low in enumerate(L):
        if low >= floor:
            return (
                ("optimistic", 0, Decimal(1))
                if c == 0
                else ("mixture", h0[c], (low - floor) / (low - L[c - 1]))
            )
    return "baseline", H, Decimal(0)


# Next-state counts (n_0, n_1) of each pair. `rich` has millions of visits, `uneven` an untried pair
# and a scarce one, `tiny` a handful (n = 0, 1, 2, 3), where every bound is as wide as it can be.
TABLES = {
    "rich": [
        [[[6_000_000, 2_000_000], [900_000, 2_700_000]], [[400_000, 500_000], [0, 700_000]]],
        [[[3_000_000, 1_500_000], [1_200_000, 1_300_000]], [[2_500_000, 0], [1_600_000, 400_000]]],
    ],
    "uneven": [
        [[[50_000_000, 20_000_000], [90_000, 270_000]], [[0, 0], [0, 1]]],
        [[[30_000_000, 15_000_000], [12_000_000, 13_000_000]], [[25_000_000, 0], [3_000, 700]]],
    ],
    "tiny": [
        [[[1, 0], [0, 0]], [[2, 1], [0, 2]]],
        [[[1, 1], [3, 0]], [[0, 0], [0, 1]]],
    ],
}
FLOORS = [
    F(0),
    F(1, 10),
    F(1, 4),
    F(2, 5),
    F(1, 2),
    F(3, 5),
    F(7, 10),
    F(3, 4),
    F(4, 5),
    F(9, 10),
    F(1),
    F(2),
]
DELTA = F(1, 10)
SHARE = {sf.StepMix: F(1, 9), sf.EpsMix: F(1, 4)}  # delta'/delta: 1/(3(H+1)) with H = 2, and 1/4
SPLICES = {sf.StepMix: [0, 1, 2], sf.EpsMix: [0, 2]}


def read(kind, table, **misreading):
    share = misreading.pop("share", SHARE[kind])
    return Reading(TABLES[table], R, decimal(DELTA * share), **misreading).candidates(
        PI, SPLICES[kind]
    )


def planned(kind, table, floor):
    problem = sf.Problem(floats(R), s1=0)
    return kind.paper(problem, floats(PI), float(floor), delta=float(DELTA)).plan(
        sf.Counts(TABLES[table])
    )


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
@pytest.mark.parametrize("table", TABLES)
def test_the_bounds_of_a_small_table(kind, table):
    with localcontext(prec=50):
        L, upper = read(kind, table)
        for floor in FLOORS:
            plan = planned(kind, table, floor)
            source, h, rho = chosen(L, decimal(floor), SPLICES[kind])
            assert_bounds(plan, L, upper)
            assert (plan.source, plan.h) == (source, h)
            # a ratio of differences of lowered values
            assert plan.rho == pytest.approx(float(rho), abs=1e-10)


@pytest.mark.parametrize("table", TABLES)
def test_the_two_companions(table):
    """StepNoMix uses StepMix's delta' and does not mix; BPI-UCBVI uses EpsMix's and is always
    optimistic.
    """
    problem, counts = sf.Problem(floats(R), s1=0), sf.Counts(TABLES[table])
    with localcontext(prec=50):
        L, upper = read(sf.StepMix, table)
        L_opt, upper_opt = read(sf.EpsMix, table)
    for floor in map(float, FLOORS):
        plan = sf.StepNoMix.paper(problem, floats(PI), floor, delta=float(DELTA)).plan(counts)
        assert_bounds(plan, L, upper)
        assert plan.h == next((h0 for h0 in range(3) if L[h0] >= floor), 2)
        assert plan.rho == (1.0 if plan.h == 0 else 0.0)
    plan = sf.BPIUCBVI.paper(problem, delta=float(DELTA)).plan(counts)
    assert_bounds(plan, L_opt[:1], upper_opt)


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
@pytest.mark.parametrize("table", TABLES)
def test_pooled_counts_are_the_sum_over_the_steps_but_the_last(kind, table):
    """Every step then reads the same numbers, in which the last step is not; log(SAH/delta')
    keeps its H.
    """
    both = [TABLES[table][0]] * 2
    with localcontext(prec=50):
        reading = Reading(both, R, decimal(DELTA * SHARE[kind]), shared=True)
        L, upper = reading.candidates(PI, SPLICES[kind])
    problem = sf.Problem(floats(R), s1=0, stationary=True)
    agent = kind.paper(problem, floats(PI), 0.0, delta=float(DELTA), pooled=True)
    plan = agent.plan(sf.Counts(TABLES[table]).pool())
    assert_bounds(plan, L, upper)
    if table != "tiny":  # the control: counted per step it is another plan
        assert np.abs(plan.candidates - planned(kind, table, 0).candidates).max() > 1e-3


def test_the_small_tables_reach_every_exit():
    """Control: without mixtures among them, the comparison of rho above would compare constants."""
    for kind in (sf.StepMix, sf.EpsMix):
        plans = [planned(kind, table, floor) for table in TABLES for floor in FLOORS]
        assert {plan.source for plan in plans} == {"baseline", "mixture", "optimistic"}
        assert sum(0 < plan.rho < 1 for plan in plans) >= 3
    assert {planned(sf.StepMix, "uneven", floor).h for floor in FLOORS} == {0, 1, 2}


MISREADINGS = {
    "the bonuses swapped": {"bonus": (22, 14)},
    "the deviation without its 3": {"deviation": 1},
    "1/H in both": {"spread": (1, 1)},
    "the variance of V_low": {"variance_of": "lower"},
    "beta for beta*": {"states_in_beta_star": True},
    "V_low from Q_up (Eq. Xd)": {"lower_reads": "Q_up"},
    "delta' of the other algorithm": {"share": F(1, 4)},
}


def moved_by(**misreading):
    """The most that a misreading moves any number of the small tables."""
    with localcontext(prec=50):
        moves = []
        for table in TABLES:
            right, wrong = read(sf.StepMix, table), read(sf.StepMix, table, **misreading)
            moves += [
                abs(x - y)
                for x, y in zip([*right[0], right[1]], [*wrong[0], wrong[1]], strict=True)
            ]
        return max(moves)


@pytest.mark.parametrize("misreading", MISREADINGS)
def test_a_misreading_is_noticed(misreading):
    """Control: every way to misread the paper that we know of moves some number in the third
    digit or before.
    """
    assert moved_by(**MISREADINGS[misreading]) > 1e-3


def test_one_visit_or_none_is_the_same_at_the_papers_scale():
    """Eq. p says n > 1, the notation table n >= 1. At n = 1 the bonus 14 H^2 beta exceeds H: no
    number can tell.
    """
    assert moved_by(seen_from=2) == 0
    assert moved_by(seen_from=1_000_000) > 1e-3  # the control: pairs that matter are told apart


# ---- Published check values ----------------------------------------------------------------------

PUBLISHED = [  # S, A, H, seed, stationary, V*, {eta: V of the Boltzmann policy}
    (5, 5, 3, 1, False, 2.6716774539, {5: 2.4407173332, 10: 2.5925387329, 15: 2.6283320674}),
    (5, 5, 3, 0, False, 2.5081774714, {5: 2.2327557036, 10: 2.4192279868, 15: 2.4675473868}),
    (20, 5, 10, 0, False, 8.3672768587, {}),
    (4, 2, 3, 0, True, 1.6925636810, {}),
    (5, 5, 3, 0, True, 2.4992761154, {}),
    (20, 5, 10, 0, True, 8.5446209952, {}),
]


@pytest.mark.parametrize(("S", "A", "H", "seed", "stationary", "optimum", "baselines"), PUBLISHED)
def test_published_values(S, A, H, seed, stationary, optimum, baselines):
    world = sf.random_mdp(S, A, H, seed, stationary=stationary)
    best = sf.solve(world)
    assert best.value == pytest.approx(optimum, abs=1e-9)
    for eta, value in baselines.items():
        assert sf.value(world, sf.boltzmann(best.Q, eta)) == pytest.approx(value, abs=1e-9)


def test_the_published_values_tell_worlds_apart():
    """Control: another seed, or the step-dependent world for the stationary one, is nowhere
    near.
    """
    assert abs(sf.solve(sf.random_mdp(5, 5, 3, 2)).value - 2.6716774539) > 1e-3
    assert abs(sf.solve(sf.random_mdp(5, 5, 3, 0)).value - 2.4992761154) > 1e-3
