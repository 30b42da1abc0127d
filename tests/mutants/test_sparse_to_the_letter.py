"""Kernels over lists of next states, line by line: against tables, the readable bounds and numbers by hand."""

import math
import os

import numba
import numpy as np
import pytest

from surefoot.base.count_lists import Entries, lists_from
from surefoot.base.nodes import PLACES
from surefoot.base.successors import PaidLists, Successors, offsets
from surefoot.bounds.kl import worst_mean
from surefoot.numerics.kernels import lists as counting
from surefoot.numerics.kernels import parts
from surefoot.numerics.kernels.bernstein import estimate_from, q_bernstein, refresh_bernstein
from surefoot.numerics.kernels.candidates import bound_candidates
from surefoot.numerics.kernels.kl import (
    BEST,
    BOTH,
    HIGH,
    HIGH_UP,
    LOW,
    LOW_UP,
    LOWER,
    RewardArrays,
    add,
    balls_from,
    best_action,
    look_ahead_balls,
    refresh_kl,
    worst_mean_at_once,
)
from surefoot.numerics.kernels.mixing import Rule
from surefoot.numerics.kernels.portfolio import portfolio_from, seen_returns_from
from surefoot.numerics.kernels.sparse import (
    BallSettings,
    mask_list,
    masked,
    q_sparse_balls,
    q_sparse_estimate,
    refresh_sparse_balls,
    refresh_sparse_estimate,
    sparse_balls_from,
    sparse_estimate_from,
    value_after,
    worst_of_pair,
)
from surefoot.numerics.kernels.splices import empty_splices
from surefoot.numerics.kernels.start_and_returns import BaselineReturns, start_from

S, A, H = 5, 2, 3
PAIRS = S * A
ALL = np.zeros((0, 0))
NOBODY = np.zeros(0)
SETTINGS = BallSettings(log_union=2.0, alpha=0.5, scale=1.0, tie=0.25, margin=0.0, uppers=False)


def counted(seed, rows):
    """Counts (rows, S, A, S) with many zeros; the last pair of each row was never tried. And lists of them."""
    rng = np.random.default_rng(seed)
    n_sas = rng.poisson(4.0, (rows, S, A, S)) * (rng.random((rows, S, A, S)) < 0.6)
    n_sas[:, S - 1, A - 1] = 0
    table = n_sas.reshape(rows * PAIRS, S)
    place, state = np.nonzero(table)
    return n_sas, lists_from(Entries(place, state, table[place, state]), (rows, PAIRS), S)


def mask_of(rng, rows, n_sas):
    """Possible next states (rows, S*A, S) that hold what was seen, and as lists; every third pair may lead anywhere."""
    mask = (rng.random((rows, PAIRS, S)) < 0.4) | n_sas.reshape(-1, PAIRS, S).any(axis=0)
    mask[..., 2] = True
    free = np.arange(PAIRS) % 3 == 1
    mask[:, free] = True
    listed = mask.copy()
    listed[:, free] = False
    sizes = listed.reshape(rows * PAIRS, S).sum(axis=1)
    return mask, Successors(offsets(sizes), np.nonzero(listed.reshape(-1, S))[1])


def paid_by(rng, rows, elsewhere=0.375):
    """Rewards by next state (rows, S*A, S), and as lists; of pair 0 all are listed, of pair 2 none."""
    listed = rng.random((rows, PAIRS, S)) < 0.5
    listed[:, 0], listed[:, 2] = True, False
    rewards = np.where(listed, rng.integers(0, 17, listed.shape) / 16, elsewhere)
    flat = listed.reshape(-1, S)
    return rewards, PaidLists(offsets(flat.sum(axis=1)), np.nonzero(flat)[1], rewards.reshape(-1, S)[flat], elsewhere)


def refreshed(balls):
    for row, pair in np.ndindex(*balls.n_sa.shape):
        balls.n_sa[row, pair] = balls.n_sas.visits[row, pair]
        refresh_sparse_balls(balls, row, pair)
    return balls


def sparse(lists, rewards=None, mask=None, paid=None, **others):
    known = np.arange(H * PAIRS).reshape(H, PAIRS) / 64 if rewards is None else rewards
    given = known if isinstance(known, RewardArrays) else RewardArrays(known)
    return refreshed(sparse_balls_from(lists, lists.visits.copy(), H, given, mask, paid, SETTINGS._replace(**others)))


# ---- Counting -------------------------------------------------------------------------------------------------------


def stores():
    """A table and lists, with room, of the same counts (2, 3, 4)."""
    table = np.arange(24).reshape(2, 3, 4)
    place, state = np.nonzero(table.reshape(6, 4))
    return table, lists_from(Entries(place, state, table.reshape(6, 4)[place, state]), (2, 3), 4, 5)


def compiled(name, which):
    """What numba would compile for such a store."""
    kinds = {"add_one": 4, "visits": 3, "has_room": 2}
    return getattr(counting, f"_{name}")(numba.typeof(stores()[which]), *[numba.int64] * (kinds[name] - 1))


# ---- Balls ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, H])
@pytest.mark.parametrize("unknown", [False, True])
def test_room_for_balls(rows, unknown):
    _, lists = counted(0, rows)
    known = np.arange(PAIRS).reshape(1, PAIRS) / 32
    x_sa = np.arange(rows * PAIRS).reshape(rows, S, A)
    rewards = RewardArrays(known, None, np.ones((1, PAIRS), dtype=bool), x_sa, x_sa + 1, bets=True)
    settings = BallSettings(2.0, -1.0, 0.5, 0.25, 0.125, True)
    balls = sparse_balls_from(
        lists, lists.visits.copy(), H, rewards if unknown else RewardArrays(known), None, None, settings
    )
    assert balls.n_sas is lists
    assert balls.n_sa.shape == balls.n_fresh.shape == balls.eps.shape == (rows, PAIRS)
    assert (balls.n_fresh < 0).all() and not balls.n_sa.any() and not balls.eps.any()
    assert balls.n_sa.dtype == balls.n_fresh.dtype == lists.n.dtype
    assert [len(part) for part in balls.mask] == [0, 0] and [len(part) for part in balls.paid[:3]] == [0, 0, 0]
    assert balls.paid.elsewhere == 0.0 and balls.mask.first.dtype == balls.paid.state.dtype == np.int64
    assert balls.gathered.shape == balls.p_hat.shape == (S,) and balls.places.tolist() == list(range(S))
    assert balls.ahead.tolist() == [0.0] * 4
    assert (balls.log_union, balls.alpha, balls.scale, balls.tie, balls.margin) == (2.0, -1.0, 0.5, 0.25, 0.125)
    assert balls.uppers is True and balls.bets is unknown
    r_rows = H if unknown and rows == H else 1
    for r in (balls.r_low, balls.r_up):
        np.testing.assert_array_equal(r, np.broadcast_to(known, (r_rows, PAIRS)))
    assert not np.shares_memory(balls.r_low, balls.r_up)
    assert balls.x_sa.shape == balls.z_sa.shape == ((rows, PAIRS) if unknown else (0, 0))
    assert np.shares_memory(balls.x_sa, x_sa) == unknown
    tiny = lists_from(Entries(*np.zeros((3, 0), dtype=np.int64)), (1, 2), 2)
    assert sparse_balls_from(
        tiny, tiny.visits.copy(), 1, RewardArrays(np.zeros((1, 2))), None, None, settings
    ).gathered.shape == (4,)
    assert sparse_balls_from(
        tiny, tiny.visits.copy(), 1, RewardArrays(np.zeros((1, 2))), None, None, settings
    ).p_hat.shape == (4,)
    mask, paid = Successors(np.zeros(3, int), np.zeros(0, int)), PaidLists(*np.zeros((2, 3), int), np.zeros(3), 0.5)
    kept = sparse_balls_from(tiny, tiny.visits.copy(), 1, RewardArrays(np.zeros((1, 2))), mask, paid, settings)
    assert kept.mask is mask and kept.paid is paid


@pytest.mark.parametrize("alpha", [0.5, 0.0, -1.0])
@pytest.mark.parametrize("mask_rows", [0, 1, H])
def test_radii_are_those_of_tables(alpha, mask_rows):
    n_sas, lists = counted(1, H)
    mask, listed = mask_of(np.random.default_rng(2), mask_rows, n_sas) if mask_rows else (None, None)
    balls = sparse(lists, mask=listed, alpha=alpha, scale=0.75)
    table = balls_from(
        n_sas,
        n_sas.sum(axis=-1),
        H,
        rewards=RewardArrays(np.zeros((1, PAIRS))),
        support=mask,
        log_union=2.0,
        alpha=alpha,
        scale=0.75,
        tie=0.0,
        margin=0.0,
        uppers=False,
    )
    for row, pair in np.ndindex(H, PAIRS):
        table.n_sa[row, pair] = n_sas.reshape(H, PAIRS, S)[row, pair].sum()
        refresh_kl(table, row, pair)
    np.testing.assert_allclose(balls.eps, table.eps, rtol=1e-14)
    np.testing.assert_array_equal(balls.n_fresh, table.n_fresh)
    assert np.isinf(balls.eps[:, -1]).all() and (balls.n_fresh[:, -1] == 0).all()


def test_unknown_rewards_are_brought_up_to_date():
    """Of the pair itself: more was paid in row 1; a pair that was never tried may pay anything."""
    _, lists = counted(1, H)
    x_sa = np.zeros((H, S, A), dtype=np.int64)
    x_sa.reshape(H, PAIRS)[1] = lists.visits[1] * 2**19
    rewards = RewardArrays(np.zeros((1, PAIRS)), None, np.ones((1, PAIRS), dtype=bool), x_sa)
    balls = sparse(lists, rewards)
    some = lists.visits[1] > 5
    assert some.any() and (balls.r_low[1, some] > 0.0).all() and not balls.r_low[0].any()
    assert (balls.r_up[0, -1], balls.r_low[0, -1]) == (1.0, 0.0)


def test_lists_of_the_mask():
    """Of one row for all steps, or of its own; an empty one lists nothing."""
    n_sas, lists = counted(1, H)
    for rows in (1, H):
        _, listed = mask_of(np.random.default_rng(2), rows, n_sas)
        balls = sparse(lists, mask=listed)
        for row, pair in np.ndindex(H, PAIRS):
            assert mask_list(balls, row, pair) == (row % rows) * PAIRS + pair
            assert masked(balls, row, pair) is (pair % 3 != 1)
    none = sparse(lists)
    assert masked(none, 1, 2) is False
    one = sparse(lists_from(Entries(*np.zeros((3, 0), dtype=np.int64)), (1, 1), 1), np.zeros((1, 1)),
                 Successors(np.array([0, 1]), np.array([0])))  # fmt: skip
    assert masked(one, 0, 0) is True


def test_what_lies_ahead():
    balls = sparse(counted(0, 1)[1])
    V_up, V_low = np.array([3.0, 5.0, 2.0, 4.0]), np.array([1.0, 0.5, 2.0, 1.5])
    look_ahead_balls(balls, V_up, V_low)
    assert [balls.ahead[place] for place in (LOW, HIGH, LOW_UP, HIGH_UP)] == [0.5, 2.0, 2.0, 5.0]
    assert sorted((LOW, HIGH, LOW_UP, HIGH_UP)) == [0, 1, 2, 3]
    look_ahead_balls(balls, V_up[:1], V_low[:1])
    assert [balls.ahead[place] for place in (LOW, HIGH, LOW_UP, HIGH_UP)] == [1.0, 1.0, 3.0, 3.0]
    look_ahead_balls(balls, NOBODY, NOBODY)
    assert balls.ahead.tolist() == [0.0] * 4


# ---- The value after a transition -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, H])
def test_the_value_after_a_transition(rows):
    rewards, paid = paid_by(np.random.default_rng(5), rows)
    V = np.arange(S) / 8
    for h, pair, s_next in np.ndindex(H, PAIRS, S):
        expected = rewards[h % rows, pair, s_next] + V[s_next]
        assert value_after(paid, h, pair, PAIRS, s_next, V, 1.0) == expected
        assert value_after(paid, h, pair, PAIRS, s_next, NOBODY, 1.0) == rewards[h % rows, pair, s_next]
        nothing = PaidLists(np.zeros(0, int), np.zeros(0, int), np.zeros(0), 0.0)
        assert value_after(nothing, h, pair, PAIRS, s_next, V, 1.0) == V[s_next]
        assert value_after(nothing, h, pair, PAIRS, s_next, NOBODY, 1.0) == 0.0
    third = PaidLists(np.array([0, 1]), np.array([0]), np.array([1 / 3]), 0.25)
    tenth = np.array([0.1])  # 1/3 + 0.1 is rounded: down and up
    low, up = (value_after(third, 0, 0, 1, 0, tenth, sign) for sign in (1.0, -1.0))
    assert low < up and (low, up) == (add(1 / 3, 0.1, 1.0), add(1 / 3, 0.1, -1.0))
    single = PaidLists(np.array([0, 0]), np.zeros(0, int), np.zeros(0), 0.25)
    assert value_after(single, 0, 0, 1, 0, np.array([0.5]), 1.0) == 0.75


# ---- The worst mean of a list ---------------------------------------------------------------------------------------


def reference(p, V, eps, low, high):
    """By the readable search, in which an outcome that was never seen has the lowest value, and one the highest."""
    return worst_mean(np.append(p, [0.0, 0.0]), eps, np.append(V, [low, high]))


@pytest.mark.parametrize("seed", range(60))
def test_the_worst_mean_of_a_list(seed):
    """On both sides of the condition, near it and far from it; with sign -1 of what has the other sign."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 4))
    p, V = rng.dirichlet(np.ones(k)), rng.uniform(1.0, 3.0, k)
    low, high, margin = float(rng.choice([0.0, 0.9, 0.999])), 3.5, 2.0**-9
    slope = float((p * np.log(V - low)).sum() + math.log((p / (V - low)).sum()))  # of eps: the condition's other side
    for eps in (slope - 0.4, slope - 0.05, slope - 1e-3, slope + 1e-3, slope + 0.05, slope + 0.9, slope + 1.5, 0.7):
        if eps <= 0.0:
            continue
        exact = reference(p, V, eps, low, high) - low
        found = worst_mean_at_once(p, V, k, 1.0, eps, 0.0, low, high)
        assert found == pytest.approx(low + exact, abs=1e-9)
        assert worst_mean_at_once(p, -V, k, -1.0, eps, 0.0, low, high) == found
        less = worst_mean_at_once(p, V, k, 1.0, eps, margin, low, high)
        assert less == pytest.approx(low + max(exact - margin, 0.0), abs=1e-9)
        assert worst_mean_at_once(p, V, k, 1.0, eps, 99.0, low, high) == low
    assert worst_mean_at_once(p, V, k, 1.0, 500.0, 0.0, low, high) == low
    assert worst_mean_at_once(p, V, k, 1.0, math.inf, 0.0, low, high) == low
    assert worst_mean_at_once(p, V, k, 1.0, 0.1, 0.0, low, low) == low


def test_the_closed_form_by_hand():
    """One outcome at 1 above the lowest, which was never seen: exp(-eps), whatever the highest is; two outcomes, of
    which the first does not count; and one that is itself the lowest."""
    one = np.ones(1)
    assert worst_mean_at_once(one, np.array([1.0]), 1, 1.0, 0.5, 0.0, 0.0, 7.0) == math.exp(-0.5)
    assert worst_mean_at_once(one, np.array([1.5]), 1, 1.0, 0.5, 0.125, 0.5, 7.0) == 0.5 + math.exp(-0.5) - 0.125
    assert worst_mean_at_once(one, np.array([1.0]), 1, 1.0, 499.0, 0.0, 0.0, 7.0) == math.exp(-499.0)
    p = np.array([0.0, 1.0])
    assert worst_mean_at_once(p, np.array([0.0, 1.0]), 2, 1.0, 0.5, 0.0, 0.0, 7.0) == math.exp(-0.5)
    lowest = worst_mean_at_once(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 2, 1.0, 0.5, 0.0, 0.0, 1.0)
    assert lowest == pytest.approx(reference([0.5, 0.5], [0.0, 1.0], 0.5, 0.0, 1.0), abs=1e-9)
    assert worst_mean_at_once(one, np.array([2.0]), 1, 1.0, 0.25, 0.0, 0.0, 2.0) == math.exp(-0.25 + math.log(2.0))


# ---- Q of pairs -----------------------------------------------------------------------------------------------------


def expected_of(n_i, eps, mask, rewards, listed, elsewhere, V, sign):
    """The worst mean of sign V of one pair, from the definition: n_i, mask and rewards are rows over all next states.

    Where any state may follow, those whose rewards are not listed count as the worst of all states.
    """
    after = rewards is not None
    values = [add(rewards[s] if after else 0.0, V[s], sign) for s in range(S)] if after else list(V)
    if mask is not None:
        ends = [sign * values[s] for s in np.flatnonzero(mask)]
    elif after:
        ends = [sign * values[s] for s in np.flatnonzero(listed)]
        if not listed.all():
            ends += [sign * add(elsewhere, v, s) for v, s in ((min(V), sign), (max(V), -sign))]
            ends += [sign * add(elsewhere, v, s) for v, s in ((max(V), sign), (min(V), -sign))]
    else:
        ends = [sign * v for v in V]
    low, high = min(ends), max(ends)
    n = n_i.sum()
    if n == 0:
        return low
    seen = np.flatnonzero(n_i)
    return reference(n_i[seen] / n, np.array([sign * values[s] for s in seen]), float(eps), low, high)


KINDS = [
    (rows, mask_rows, paid_rows)
    for rows, mask_rows in ((1, 0), (H, 0), (1, 1), (H, 1), (H, H))
    for paid_rows in (0, 1, H)
]


@pytest.mark.parametrize(("rows", "mask_rows", "paid_rows"), KINDS)
def test_q_of_every_pair(rows, mask_rows, paid_rows):
    """Of all pairs and of windows, at each step, the last one with nothing ahead; uppers only where they are needed."""
    rng = np.random.default_rng([rows, mask_rows, paid_rows])
    n_sas, lists = counted(3, rows)
    mask, listed_mask = mask_of(rng, mask_rows, n_sas) if mask_rows else (None, None)
    rewards, paid = paid_by(rng, paid_rows) if paid_rows else (None, None)
    known = np.zeros((1, PAIRS)) if paid_rows else rng.integers(0, 17, (H, PAIRS)) / 16
    both = sparse(lists, known, listed_mask, paid, uppers=True)
    lower = sparse(lists, known, listed_mask, paid)
    for h in range(H):
        ahead = S if h < H - 1 else 0
        V_low = rng.integers(0, 33, S) / 16
        V_up = V_low + rng.integers(0, 33, S) / 16
        row = h % rows
        look_ahead_balls(both, V_up[:ahead], V_low[:ahead])
        look_ahead_balls(lower, V_up[:ahead], V_low[:ahead])
        scratch = np.full((5, PAIRS), np.nan)
        q_sparse_balls(both, row, h, 0, PAIRS, H, V_up[:ahead], V_low[:ahead], scratch, LOWER, ALL)
        for pair in range(PAIRS):
            free = mask is None or pair % 3 == 1
            possible = None if free else mask[row % mask_rows, pair]
            paid_row = None if rewards is None else rewards[h % paid_rows, pair]
            i = (h % max(paid_rows, 1)) * PAIRS + pair
            listed = np.zeros(S, dtype=bool)
            if paid is not None:
                listed[paid.state[paid.first[i] : paid.first[i + 1]]] = True
            about = n_sas.reshape(rows, PAIRS, S)[row, pair], both.eps[row, pair], possible, paid_row, listed, 0.375
            for Q, V, sign in ((scratch[1], V_low, 1.0), (scratch[0], V_up, -1.0)):
                worst = expected_of(*about, V if ahead else np.zeros(S), sign)
                assert Q[pair] == pytest.approx(known[h % len(known), pair] + sign * worst, abs=1e-8)
        window, low_only = np.full((5, 4), np.nan), np.full((5, PAIRS), np.nan)
        q_sparse_balls(both, row, h, 3, 7, H, V_up[:ahead], V_low[:ahead], window, LOWER, ALL)
        np.testing.assert_array_equal(window[:2], scratch[:2, 3:7])
        q_sparse_balls(lower, row, h, 0, PAIRS, H, V_up[:ahead], V_low[:ahead], low_only, LOWER, ALL)
        np.testing.assert_array_equal(low_only[1], scratch[1])
        np.testing.assert_array_equal(low_only[0], 0.0 if ahead or paid_rows else scratch[0])
        q_sparse_balls(lower, row, h, 0, PAIRS, H, V_up[:ahead], V_low[:ahead], low_only, BOTH, ALL)
        np.testing.assert_array_equal(low_only[:2], scratch[:2])
        pi = (np.arange(PAIRS).reshape(S, A) % 3 > 0).astype(float)
        q_sparse_balls(both, row, h, 0, PAIRS, H, V_up[:ahead], V_low[:ahead], low_only, LOWER, pi)
        played = (pi.reshape(-1) > 0) | (not ahead and not paid_rows)  # the last step takes no time
        np.testing.assert_array_equal(low_only[:2, played], scratch[:2, played])
        assert not low_only[:2, ~played].any()
        q_sparse_balls(both, row, h, 3, 7, H, V_up[:ahead], V_low[:ahead], window, LOWER, pi)
        np.testing.assert_array_equal(window[:2], low_only[:2, 3:7])
        # of the best action of each state alone, but for the last step, where all are known
        best = np.zeros((S, A), dtype=bool)
        best[np.arange(S), [best_action(some, both.tie) for some in scratch[0].reshape(S, A)]] = True
        for lo, hi in ((0, PAIRS), (A, 3 * A)):
            window = np.full((5, hi - lo), np.nan)
            q_sparse_balls(lower, row, h, lo, hi, H, V_up[:ahead], V_low[:ahead], window, BEST, np.zeros((0, A)))
            np.testing.assert_array_equal(window[0], scratch[0, lo:hi])
            wanted = best.reshape(-1) | (not ahead and not paid_rows)
            np.testing.assert_array_equal(window[1], np.where(wanted, scratch[1], 0.0)[lo:hi])
        assert scratch[1][~best.reshape(-1)].any()  # control: others have lower values, too


def test_one_state_has_something_ahead():
    """V of size 1 is not an empty V, and a policy of one state is one: r = 1/4, V_up = 1, V_low = 1/2."""
    lists = lists_from(Entries(*np.array([[0], [0], [1]])), (1, 1), 1)
    balls = refreshed(
        sparse_balls_from(lists, lists.visits.copy(), 2, RewardArrays(np.full((1, 1), 0.25)), None, None, SETTINGS)
    )
    V_up, V_low, scratch = np.ones(1), np.full(1, 0.5), np.full((5, 1), np.nan)
    look_ahead_balls(balls, V_up, V_low)
    q_sparse_balls(balls, 0, 0, 0, 1, 2, V_up, V_low, scratch, BOTH, ALL)
    assert scratch[:2, 0].tolist() == [1.25, 0.75]
    q_sparse_balls(balls, 0, 0, 0, 1, 2, V_up, V_low, scratch, BOTH, np.zeros((1, 1)))
    assert scratch[:2, 0].tolist() == [0.0, 0.0]
    paid = PaidLists(np.array([0, 1]), np.array([0]), np.array([0.5]), 0.125)
    by_next = refreshed(
        sparse_balls_from(lists, lists.visits.copy(), 2, RewardArrays(np.zeros((1, 1))), None, paid, SETTINGS)
    )
    look_ahead_balls(by_next, V_up, V_low)
    q_sparse_balls(by_next, 0, 0, 0, 1, 2, V_up, V_low, scratch, BOTH, ALL)
    assert scratch[:2, 0].tolist() == [1.5, 1.0]


def test_one_action_is_the_best():
    """Of three states with one action each, all are."""
    place = np.repeat(np.arange(3), 3)
    lists = lists_from(Entries(place, np.tile(np.arange(3), 3), np.full(9, 4)), (1, 3), 3)
    balls = refreshed(
        sparse_balls_from(
            lists, lists.visits.copy(), 2, RewardArrays(np.arange(3).reshape(1, 3) / 4), None, None, SETTINGS
        )
    )
    V, best, every = np.array([1.0, 2.0, 3.0]), np.full((5, 3), np.nan), np.full((5, 3), np.nan)
    look_ahead_balls(balls, V, V)
    q_sparse_balls(balls, 0, 0, 0, 3, 2, V, V, best, BEST, np.zeros((0, 1)))
    q_sparse_balls(balls, 0, 0, 0, 3, 2, V, V, every, BOTH, ALL)
    np.testing.assert_array_equal(best[:2], every[:2])
    assert (best[1] > 1.0).all()


@pytest.mark.parametrize("v", [0.1, 0.7])
def test_sums_are_rounded_to_safety(v):
    """A lower Q is not above, an upper one not below the exact sum: 1/3 + 0.1, which floats round up, and 1/3 + 0.7,
    which they round down."""
    lists = lists_from(Entries(*np.zeros((3, 0), dtype=np.int64)), (1, 1), 1)
    balls = refreshed(
        sparse_balls_from(lists, lists.visits.copy(), 1, RewardArrays(np.full((1, 1), 1 / 3)), None, None, SETTINGS)
    )
    V, scratch = np.array([v]), np.zeros((5, 1))
    look_ahead_balls(balls, V, V)
    q_sparse_balls(balls, 0, 0, 0, 1, 1, V, V, scratch, BOTH, ALL)
    assert scratch[:2, 0].tolist() == [add(1 / 3, v, -1.0), add(1 / 3, v, 1.0)]
    assert add(1 / 3, v, -1.0) != add(1 / 3, v, 1.0)
    for elsewhere, listed in ((1 / 3, 0), (0.9, 1)):
        paid = PaidLists(np.array([0, listed]), np.zeros(listed, int), np.full(listed, 1 / 3), elsewhere)
        balls = refreshed(
            sparse_balls_from(lists, lists.visits.copy(), 1, RewardArrays(np.zeros((1, 1))), None, paid, SETTINGS)
        )
        look_ahead_balls(balls, V, V)
        for sign, worst, best in ((1.0, LOW, HIGH), (-1.0, HIGH_UP, LOW_UP)):
            assert worst_of_pair(balls, 0, 0, 0, V, sign, worst, best) == sign * add(1 / 3, v, sign)


def test_one_visit():
    """It was to the highest of two states, 0 and 1: the worst mean is exp(-eps), and with sign -1 nothing is lost."""
    lists = lists_from(Entries(*np.array([[0], [1], [1]])), (1, 1), 2)
    balls = refreshed(
        sparse_balls_from(lists, lists.visits.copy(), 1, RewardArrays(np.zeros((1, 1))), None, None, SETTINGS)
    )
    V = np.array([0.0, 1.0])
    look_ahead_balls(balls, V, V)
    assert worst_of_pair(balls, 0, 0, 0, V, 1.0, LOW, HIGH) == pytest.approx(math.exp(-balls.eps[0, 0]), rel=1e-12)
    assert worst_of_pair(balls, 0, 0, 0, V, -1.0, HIGH_UP, LOW_UP) == -1.0


def test_a_policy_of_one_action():
    """Of two states: the policy is needed in the second one alone."""
    lists = lists_from(Entries(*np.array([[0, 1], [0, 0], [9, 9]])), (1, 2), 2)
    pi, r, V = np.array([[0.0], [1.0]]), np.full((1, 2), 0.25), np.ones(2)
    balls = refreshed(sparse_balls_from(lists, lists.visits.copy(), 2, RewardArrays(r), None, None, SETTINGS))
    look_ahead_balls(balls, V, V)
    scratch = np.full((5, 2), np.nan)
    q_sparse_balls(balls, 0, 0, 0, 2, 2, V, V, scratch, BOTH, pi)
    assert scratch[:2].tolist() == [[0.0, 1.25], [0.0, 1.25]]
    estimate = sparse_estimate_from(lists, lists.visits.copy(), r, 1.0, 0.0)
    estimate.n_sa[:] = 9
    for pair in range(2):
        refresh_sparse_estimate(estimate, 0, pair)
    q_sparse_estimate(estimate, 0, 0, 0, 2, 2, V, V, scratch, 0, pi)
    assert scratch[:2].tolist() == [[2.0, 1.25], [0.0, 1.25]]


def test_the_range_of_values_reaches_beyond_what_was_seen():
    """Two next states were seen and are worth the same; the highest, of another, matters for the bracket alone, the
    lowest for the value: where it is the same, nothing can be lost."""
    lists = lists_from(Entries(np.array([0, 0]), np.array([1, 2]), np.array([3, 4])), (1, 1), 4)
    balls = refreshed(
        sparse_balls_from(lists, lists.visits.copy(), 1, RewardArrays(np.zeros((1, 1))), None, None, SETTINGS)
    )
    for V, expected in (([1.0, 1.0, 1.0, 1.0], 1.0), ([1.0, 1.0, 1.0, 2.0], 1.0)):
        values = np.array(V)
        look_ahead_balls(balls, values, values)
        assert worst_of_pair(balls, 0, 0, 0, values, 1.0, LOW, HIGH) == expected
    values = np.array([0.0, 1.0, 1.0, 2.0])
    look_ahead_balls(balls, values, values)
    found = worst_of_pair(balls, 0, 0, 0, values, 1.0, LOW, HIGH)
    assert found == pytest.approx(math.exp(-balls.eps[0, 0]), rel=1e-14)
    paid = PaidLists(np.array([0, 1]), np.array([0]), np.array([0.0]), 0.5)  # the listed one pays least
    by_next = refreshed(
        sparse_balls_from(lists, lists.visits.copy(), 1, RewardArrays(np.zeros((1, 1))), None, paid, SETTINGS)
    )
    flat = np.ones(4)
    look_ahead_balls(by_next, flat, flat)
    assert worst_of_pair(by_next, 0, 0, 0, flat, 1.0, LOW, HIGH) == pytest.approx(1 + 0.5 * math.exp(-balls.eps[0, 0]))


# ---- A pass in parts ------------------------------------------------------------------------------------------------


def evidence_of(kind):
    _, lists = counted(7, H)
    r = np.arange(H * PAIRS).reshape(H, PAIRS) / 64
    if kind == "balls":
        return sparse(lists, r, uppers=True)
    estimate = sparse_estimate_from(lists, lists.visits.copy(), r, 3.0, 2.0**-30)
    for row, pair in np.ndindex(H, PAIRS):
        estimate.n_sa[row, pair] = lists.visits[row, pair]
        refresh_sparse_estimate(estimate, row, pair)
    return estimate


def judged():
    """Start, returns and rule: episodes start in state 1, nothing was returned, and the floor is low."""
    start = start_from(np.eye(S)[1], np.zeros(S, dtype=np.int64), 1.0, 0.5, 1.0, 0.0, 0.0)
    seen = seen_returns_from(np.zeros(2, dtype=np.int64), np.zeros(PLACES, dtype=np.int64), (0, 0))
    returns = BaselineReturns(seen, portfolio_from(), 0.0, False, 1.0, 0.0, -math.inf)
    return start, returns, Rule(2.0**-10, True, False)


@pytest.mark.parametrize("kind", ["balls", "estimate"])
@pytest.mark.parametrize("h0", [(0, 1, 2, 3), (0, 1, 3), (0, 3)])
def test_parts_compute_what_one_pass_does(kind, h0):
    """The same bits, however many parts there are."""
    pi_b = np.random.default_rng(1).dirichlet(np.ones(A), (H, S))
    start, returns, rule = judged()
    candidates = len(h0) if kind == "estimate" or len(h0) == 2 else H + 1
    whole, L = empty_splices(np.array(h0), pi_b), np.zeros(candidates)
    floor = bound_candidates(evidence_of(kind), whole, start, returns, rule, L)
    assert whole.V_low.any() and whole.V_up[0].all()
    for n in (1, 2, 3, 7):
        found, mine = empty_splices(np.array(h0), pi_b), np.full(candidates, -1.0)
        assert parts.bound_in_parts(evidence_of(kind), found, start, returns, rule, mine, n) == floor
        for name in ("V_up", "V_low", "pi_bar"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
        np.testing.assert_array_equal(mine, L)


def test_each_part_has_its_states(monkeypatch):
    """Each state of a step is in one part, and parts are of about the same size: S = 5 in 2 and in 3."""
    for n, expected in ((2, [(0, 2), (2, 5)]), (3, [(0, 1), (1, 3), (3, 5)])):
        asked = []
        monkeypatch.setattr(parts, "bound_states", lambda *given, asked=asked: asked.append(given[2:]))
        splices = empty_splices(np.array([0]), np.full((H, S, A), 0.5))
        parts.bound_in_parts(evidence_of("balls"), splices, *judged(), np.zeros(1), n)
        assert sorted(asked) == [(h, 0, *window) for h in range(H) for window in expected]


def test_parts_have_scratch_of_their_own_and_pass_on_what_fails(monkeypatch):
    balls = evidence_of("balls")
    own = parts._own(balls)
    assert own.gathered is not balls.gathered and own.p_hat is not balls.p_hat and own.ahead is balls.ahead
    estimate = evidence_of("estimate")
    assert parts._own(estimate) is estimate

    def fails(*given):
        raise ArithmeticError(given[3:])

    monkeypatch.setattr(parts, "bound_states", fails)
    splices = empty_splices(np.array([0, 3]), np.full((H, S, A), 0.5))
    with pytest.raises(ArithmeticError):
        parts.bound_in_parts(balls, splices, None, None, None, np.zeros(2), 2)


def test_how_many_cores(monkeypatch):
    assert parts.LONG == 5_000
    asked = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: asked.append(pid) or {3, 5, 9}, raising=False)
    assert parts.cores() == 3 and asked == [0]
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert parts.cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert parts.cores() == 1


# ---- The paper's bounds ---------------------------------------------------------------------------------------------


def both_estimates(scale=2.0**-12):
    """Counts (2, S, A, S), with a pair that was never tried and one that was tried once; in a table and in lists."""
    n_sas, _ = counted(4, 2)
    n_sas[0, 0, 0] = 0
    n_sas[0, 0, 0, 3] = 1
    table = n_sas.reshape(2 * PAIRS, S)
    place, state = np.nonzero(table)
    lists = lists_from(Entries(place, state, table[place, state]), (2, PAIRS), S)
    r = np.arange(3 * PAIRS).reshape(3, PAIRS) / 64
    return (
        n_sas,
        lists,
        estimate_from(n_sas, n_sas.sum(axis=-1), r, 3.0, scale),
        sparse_estimate_from(lists, lists.visits.copy(), r, 3.0, scale),
    )


def test_room_for_an_estimate():
    _, lists, _, estimate = both_estimates()
    assert estimate.n_sas is lists
    shapes = [getattr(estimate, name).shape for name in ("n_sa", "n_fresh", "beta_n", "beta_star_n")]
    assert shapes == [(2, PAIRS)] * 4
    assert (estimate.n_fresh < 0).all() and not estimate.n_sa.any() and estimate.n_sa.dtype == lists.n.dtype
    assert estimate.x_sa.shape == estimate.z_sa.shape == (0, 0)
    assert (estimate.log_union, estimate.scale, estimate.tie, estimate.margin) == (3.0, 2.0**-12, 0.0, 0.0)
    assert estimate.r.shape == (3, PAIRS)


def test_the_papers_bounds_have_the_bits_of_tables():
    n_sas, lists, table, estimate = both_estimates()
    rng, clipped = np.random.default_rng(6), 0
    for row, pair in np.ndindex(2, PAIRS):
        table.n_sa[row, pair] = n_sas.reshape(2, PAIRS, S)[row, pair].sum()
        estimate.n_sa[row, pair] = lists.visits[row, pair]
        refresh_bernstein(table, row, pair)
        refresh_sparse_estimate(estimate, row, pair)
    for name in ("n_sa", "n_fresh", "beta_n", "beta_star_n"):
        np.testing.assert_array_equal(getattr(estimate, name), getattr(table, name))
    assert (estimate.n_sa == 0).any() and (estimate.n_sa == 1).any()
    for h in range(4):
        V_low = rng.random(S)
        V_up = V_low + rng.random(S)
        for V in ((V_up, V_low), (NOBODY, NOBODY)):
            for lo, hi in ((0, PAIRS), (3, 7)):
                one, other = np.full((5, hi - lo), np.nan), np.full((5, hi - lo), np.nan)
                q_bernstein(table, h % 2, h, lo, hi, 4, *V, one, 0, ALL)
                q_sparse_estimate(estimate, h % 2, h, lo, hi, 4, *V, other, 0, ALL)
                np.testing.assert_allclose(other[:2], one[:2], rtol=1e-15)
                clipped += int((one[0] == 4).sum() + (one[1] == 0).sum())
            pi = (np.arange(PAIRS).reshape(S, A) % 3 > 0).astype(float)
            whole, some = np.full((5, PAIRS), np.nan), np.full((5, PAIRS), np.nan)
            q_sparse_estimate(estimate, h % 2, h, 0, PAIRS, 4, *V, whole, 0, ALL)
            q_sparse_estimate(estimate, h % 2, h, 0, PAIRS, 4, *V, some, 0, pi)
            played = pi.reshape(-1) > 0
            np.testing.assert_array_equal(some[:2, played], whole[:2, played])
            assert (some[0, ~played] == 4).all() and (some[1, ~played] == 0).all()
            window = np.full((5, 4), np.nan)
            q_sparse_estimate(estimate, h % 2, h, 3, 7, 4, *V, window, 0, pi)
            np.testing.assert_array_equal(window[:2], some[:2, 3:7])
    assert 0 < clipped < 4 * 2 * 2 * (PAIRS + 4)


def test_one_state_of_the_papers_bounds():
    """V of size 1 is not an empty V: r = 1/4, no bonus, V_up = 1, V_low = 1/2, H = 2 (as in the dense kernel)."""
    lists = lists_from(Entries(*np.array([[0], [0], [1]])), (1, 1), 1)
    estimate = sparse_estimate_from(lists, lists.visits.copy(), np.full((1, 1), 0.25), 1.0, 0.0)
    estimate.n_sa[0, 0] = 1
    refresh_sparse_estimate(estimate, 0, 0)
    scratch = np.zeros((5, 1))
    q_sparse_estimate(estimate, 0, 0, 0, 1, 2, np.ones(1), np.full(1, 0.5), scratch, 0, ALL)
    assert scratch[:2, 0].tolist() == [1.5, 0.25]
    q_sparse_estimate(estimate, 0, 0, 0, 1, 2, np.ones(1), np.full(1, 0.5), scratch, 0, np.zeros((1, 1)))
    assert scratch[:2, 0].tolist() == [2.0, 0.0]
    wide = sparse_estimate_from(lists, lists.visits.copy(), np.full((1, 1), 0.25), 1.0, 1.0)  # its bonus is far above H
    wide.n_sa[0, 0] = 1
    refresh_sparse_estimate(wide, 0, 0)
    for V in (np.ones(1), NOBODY):
        q_sparse_estimate(wide, 0, 0, 0, 1, 2, V, V, scratch, 0, ALL)
        assert scratch[:2, 0].tolist() == [2.0, 0.0]
