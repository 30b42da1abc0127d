"""One backward pass for all splices, line by line.

Without data a KL backup is r + min V_low and r + max V_up, exact for short binary fractions, so every value of every
splice can be worked out in plain Python. What an incremental pass leaves out is found by marking it.
"""

import math
from itertools import product

import numpy as np
import pytest

from surefoot.numerics.kernels.bernstein import estimate_from
from surefoot.numerics.kernels.evidence import refresh_all, refresh_moved
from surefoot.numerics.kernels.kl import RewardArrays, balls_from
from surefoot.numerics.kernels.pessimism import lower_values
from surefoot.numerics.kernels.splices import (
    bound_splices,
    cache_aligned,
    empty_splices,
    mixed_bound,
    read_optimistic,
    read_policy,
)

NOTHING = np.zeros(0, dtype=np.int64)


# ---- Reading a table ------------------------------------------------------------------------------------------------


def read_best(Q_up, Q_low, A, tie, s_lo, s_hi, S=4):
    pi_bar, V_up, V_low = np.full(S, 7), np.full(S, 9.0), np.full(S, 9.0)
    moved = read_optimistic(np.array(Q_up), np.array(Q_low), A, tie, s_lo, s_hi, pi_bar, V_up, V_low)
    return moved, pi_bar.tolist(), V_up.tolist(), V_low.tolist()


def test_the_best_action_of_some_states():
    """States 1 and 2 of four; the table begins with the first of them. The others are not touched."""
    moved, pi_bar, V_up, V_low = read_best([1, 3, 2, 5, 4, 4], [10, 11, 12, 13, 14, 15], 3, 0.0, 1, 3)
    assert moved == (True, True)
    assert pi_bar == [7, 1, 0, 7]
    assert V_up == [9, 3, 5, 9]
    assert V_low == [9, 11, 13, 9]


def test_the_first_of_equal_actions():
    assert read_best([2, 2, 2], [0.5, 0.25, 1], 3, 0.0, 0, 1)[1:] == ([0, 7, 7, 7], [2, 9, 9, 9], [0.5, 9, 9, 9])
    assert read_best([1, 2, 2], [0.5, 0.25, 1], 3, 0.0, 0, 1)[1:] == ([1, 7, 7, 7], [2, 9, 9, 9], [0.25, 9, 9, 9])


def test_values_within_the_tie_are_equal_but_the_upper_value_is_the_largest():
    """2.25 is not more than 2 by more than 1/4; 2.5 is."""
    assert read_best([2, 2.25, 1], [0.5, 0.25, 1], 3, 0.25, 0, 1)[1:] == ([0, 7, 7, 7], [2.25, 9, 9, 9], [0.5, 9, 9, 9])
    assert read_best([2, 2.5, 1], [0.5, 0.25, 1], 3, 0.25, 0, 1)[1:] == ([1, 7, 7, 7], [2.5, 9, 9, 9], [0.25, 9, 9, 9])


@pytest.mark.parametrize(
    ("before", "moved"),
    [
        ((1, 2.0, 0.5), (False, False)),
        ((0, 2.0, 0.5), (True, False)),
        ((1, 3.0, 0.5), (False, True)),
        ((1, 1.0, 0.5), (False, True)),
        ((1, 2.0, 0.75), (False, True)),
        ((1, 2.0, 0.25), (False, True)),
        ((2, 2.0, 0.25), (True, True)),
    ],
)
def test_what_moved_is_said(before, moved):
    """A state that did not move, after one that did or did not, changes nothing of that."""
    pi_bar, V_up, V_low = np.array([before[0], 0]), np.array([before[1], 1.0]), np.array([before[2], 0.25])
    Q_up, Q_low = np.array([1.0, 2.0, 1.5, 1.0, 0.0, 0.0]), np.array([0.125, 0.5, 0.0, 0.25, 0.0, 0.0])
    assert read_optimistic(Q_up, Q_low, 3, 0.0, 0, 2, pi_bar, V_up, V_low) == moved
    assert (pi_bar.tolist(), V_up.tolist(), V_low.tolist()) == ([1, 0], [2.0, 1.0], [0.5, 0.25])


PI = np.array([[0.5, 0.5, 0.0], [0.25, 0.0, 0.75], [0.0, 1.0, 0.0], [0.5, 0.25, 0.25]])


def read_some(Q_up, Q_low, s_lo, s_hi, margin):
    V_up, V_low = np.full(4, 9.0), np.full(4, 9.0)
    moved = read_policy(np.array(Q_up), np.array(Q_low), PI, s_lo, s_hi, margin, V_up, V_low)
    return moved, V_up.tolist(), V_low.tolist()


def test_the_values_of_a_policy():
    """States 1 and 2: 1/4 * 4 + 3/4 * 8 = 7, and the second action; lower values 1/4 * 1 + 3/4 * 2 = 7/4, and 5."""
    Q_up, Q_low = [4, 99, 8, 0, 6, 99], [1, -99, 2, 77, 5, 77]
    assert read_some(Q_up, Q_low, 1, 3, 0.0) == (True, [9, 7, 6, 9], [9, 1.75, 5, 9])


def test_the_margin_stops_at_what_is_played():
    """It is taken off the lower value down to the smallest Q_low that is played, and added up to the largest Q_up."""
    Q_up, Q_low = [4, 99, 8], [1, -99, 2]
    assert read_some(Q_up, Q_low, 1, 2, 0.25)[1:] == ([9, 7.25, 9, 9], [9, 1.5, 9, 9])
    assert read_some(Q_up, Q_low, 1, 2, 5.0)[1:] == ([9, 8, 9, 9], [9, 1, 9, 9])


@pytest.mark.parametrize(
    ("before", "moved"),
    [((7.0, 1.75), False), ((8.0, 1.75), True), ((6.0, 1.75), True), ((7.0, 2.0), True), ((7.0, 1.0), True)],
)
def test_what_moved_of_a_policy_is_said(before, moved):
    V_up, V_low = np.array([9.0, before[0], 6.0, 9.0]), np.array([9.0, before[1], 5.0, 9.0])
    Q_up, Q_low = np.array([4.0, 99, 8, 0, 6, 99]), np.array([1.0, -99, 2, 77, 5, 77])
    assert read_policy(Q_up, Q_low, PI, 1, 3, 0.0, V_up, V_low) == moved
    assert (V_up.tolist(), V_low.tolist()) == ([9, 7, 6, 9], [9, 1.75, 5, 9])


# ---- Room -----------------------------------------------------------------------------------------------------------


def test_room_for_splices():
    h0, pi_b = np.array([0, 2]), np.full((3, 4, 2), 0.5)
    splices = empty_splices(h0, pi_b)
    assert splices.h0 is h0 and splices.pi_b is pi_b
    assert splices.explorer.shape == (0, 0, 0)
    assert splices.pi_bar.shape == (3, 4) and splices.V_up.shape == splices.V_low.shape == (4, 2, 4)
    assert splices.changed.shape == (4, 2)
    assert splices.scratch.shape == (5, 128)  # 128 pairs, or all actions of one state
    assert empty_splices(h0, np.full((1, 2, 300), 1 / 300)).scratch.shape == (5, 300)
    np.testing.assert_array_equal(empty_splices(h0, pi_b, pi_b).explorer, pi_b)


@pytest.mark.parametrize(("rows", "columns"), [(5, 128), (3, 7), (1, 1)])
def test_room_begins_on_a_cache_line(rows, columns):
    for _ in range(20):  # wherever the memory happens to be
        scratch = cache_aligned(rows, columns)
        assert scratch.shape == (rows, columns) and scratch.dtype == np.float64
        assert scratch.ctypes.data % 64 == 0
        assert not scratch.any()


# ---- A whole pass, without data -------------------------------------------------------------------------------------


def balls(n_sas, H, r, margin=0.0, tie=0.0, uppers=True):
    evidence = balls_from(
        n_sas,
        n_sas.sum(axis=-1),
        H,
        rewards=RewardArrays(r),
        support=None,
        log_union=2.0,
        alpha=0.5,
        scale=1.0,
        tie=tie,
        margin=margin,
        uppers=uppers,
    )
    refresh_all(evidence)
    return evidence


def drawn(S, A, H, seed, explorer=False):
    """Rewards and policies of short binary fractions."""
    rng = np.random.default_rng([S, A, H, seed])
    r = rng.integers(0, 65, size=(H, S, A)) / 64
    policies = []
    for _ in range(2):
        share = rng.integers(0, 5, size=(H, S, 1)) / 4
        one, two = (np.eye(A)[rng.integers(A, size=(H, S))] for _ in range(2))
        policies.append(share * one + (1 - share) * two)
    return r, policies[0], policies[1] if explorer else None


def untried(r, pi):
    """V_up and V_low (H+1, S) of a policy where nothing is known of the transitions."""
    H, S, _ = pi.shape
    V_up, V_low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        V_up[h] = (pi[h] * (r[h] + V_up[h + 1].max())).sum(axis=1)
        V_low[h] = (pi[h] * (r[h] + V_low[h + 1].min())).sum(axis=1)
    return V_up, V_low


SIZES = [(2, 3, 3), (1, 1, 1), (3, 2, 4), (5, 60, 2), (3, 130, 2), (3, 2, 1)]  # 60 and 130: blocks of 2 and 1 states


@pytest.mark.parametrize("explorer", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_all_splices_of_an_untried_world(size, pooled, explorer):
    """Slot c holds pi_b up to h0[c], then the explorer or the best of r + max V_up, at every step up to h0."""
    S, A, H = size
    for seed, h0 in product(range(2), (np.arange(H + 1), np.array([0, H]), np.zeros(1, dtype=np.int64))):
        r, pi_b, bold = drawn(S, A, H, seed, explorer)
        evidence = balls(np.zeros((1 if pooled else H, S, A, S), dtype=np.int64), H, r.reshape(H, S * A))
        splices = empty_splices(h0, pi_b, bold)
        assert bound_splices(evidence, splices, NOTHING, 0, S) == bool(not explorer and splices.pi_bar.any())
        if explorer:
            assert not splices.pi_bar.any()
        else:
            np.testing.assert_array_equal(splices.pi_bar, r.argmax(axis=2))  # the next state is anybody's guess
        tail = bold if explorer else np.eye(A)[r.argmax(axis=2)]
        for c, h in enumerate(h0):
            V_up, V_low = untried(r, np.concatenate([pi_b[:h], tail[h:]]))
            # Rows from h on are slot 0's: nobody reads them here, and nobody writes them.
            assert c == 0 or not splices.V_low[h:, c].any()
            np.testing.assert_array_equal(splices.V_up[: max(h, 1), c], V_up[: max(h, 1)])
            np.testing.assert_array_equal(splices.V_low[: max(h, 1), c], V_low[: max(h, 1)])
        np.testing.assert_array_equal(splices.V_low[:, 0], untried(r, tail)[1])


def test_a_second_pass_finds_nothing_moved():
    r, pi_b, _ = drawn(3, 2, 4, 0)
    evidence = balls(np.zeros((4, 3, 2, 3), dtype=np.int64), 4, r.reshape(4, 6))
    splices = empty_splices(np.arange(5), pi_b)
    assert bound_splices(evidence, splices, NOTHING, 0, 3)
    assert splices.changed[:4, 0].all() and all(splices.changed[h, c] for c in range(5) for h in range(c))
    assert not bound_splices(evidence, splices, NOTHING, 0, 3)
    assert not splices.changed[:4].any()


def test_only_the_first_states_asked_for_are_evaluated():
    """At the first step states 1 and 2 of four: the others keep what they had. Later steps have all."""
    r, pi_b, _ = drawn(4, 2, 3, 1)
    evidence = balls(np.zeros((3, 4, 2, 4), dtype=np.int64), 3, r.reshape(3, 8))
    whole, part = empty_splices(np.arange(4), pi_b), empty_splices(np.arange(4), pi_b)
    bound_splices(evidence, whole, NOTHING, 0, 4)
    part.V_low[0], part.V_up[0], part.pi_bar[0] = 50.0, 60.0, 70
    bound_splices(evidence, part, NOTHING, 1, 3)
    np.testing.assert_array_equal(part.V_low[0, :, 1:3], whole.V_low[0, :, 1:3])
    np.testing.assert_array_equal(part.V_up[0, :, 1:3], whole.V_up[0, :, 1:3])
    np.testing.assert_array_equal(part.pi_bar[0, 1:3], whole.pi_bar[0, 1:3])
    assert (part.V_low[0][:, [0, 3]] == 50.0).all() and (part.V_up[0][:, [0, 3]] == 60.0).all()
    assert (part.pi_bar[0, [0, 3]] == 70).all()
    np.testing.assert_array_equal(part.V_low[1, 0], whole.V_low[1, 0])
    np.testing.assert_array_equal(part.V_low[1, 2:], whole.V_low[1, 2:])


def test_margin_and_tie_are_the_evidences():
    """One state, rewards 1/2 and 5/8: within a tie of 1/4 the first. The 9/16 of pi_b lose 1/32, or end at 1/2."""
    r, pi_b = np.array([[0.5, 0.625]]), np.full((1, 1, 2), 0.5)
    for margin, low, up in ((1 / 32, 17 / 32, 19 / 32), (1.0, 0.5, 0.625)):
        splices = empty_splices(np.array([0, 1]), pi_b)
        bound_splices(balls(np.zeros((1, 1, 2, 1), dtype=np.int64), 1, r, margin, 0.25), splices, NOTHING, 0, 1)
        assert splices.pi_bar.tolist() == [[0]]
        assert splices.V_up[0, :, 0].tolist() == [0.625, up] and splices.V_low[0, :, 0].tolist() == [0.5, low]


# ---- An incremental pass --------------------------------------------------------------------------------------------


def estimate(n_sas, r):
    evidence = estimate_from(n_sas, n_sas.sum(axis=-1), r, 1.0, 1e-3)  # a small scale: bounds that are not all clipped
    refresh_all(evidence)
    return evidence


def one_more(n_sas, evidence, states, actions):
    for h, a in enumerate(actions):
        row = h % len(n_sas)
        n_sas[row, states[h], a, states[h + 1]] += 1
        evidence.n_sa[row, states[h] * n_sas.shape[2] + a] += 1
    refresh_moved(evidence)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("explorer", [False, True])
@pytest.mark.parametrize("H", [2, 4])
@pytest.mark.parametrize("kind", ["bernstein", "kl"])
def test_an_incremental_pass_is_a_full_one(kind, H, explorer, pooled):
    """Episode after episode, to the last bit; and pi_bar is said to have moved if and only if it has."""
    S, A = 3, 2
    rng = np.random.default_rng(5)
    r, pi_b, bold = drawn(S, A, H, 3, explorer)
    n_sas = rng.integers(0, 30, size=(1 if pooled else H, S, A, S))
    evidence = estimate(n_sas, r.reshape(H, S * A)) if kind == "bernstein" else balls(n_sas, H, r.reshape(H, S * A))
    kept = empty_splices(np.arange(H + 1), pi_b, bold)
    bound_splices(evidence, kept, NOTHING, 0, S)
    moves = 0
    for _ in range(8):
        states, actions = rng.integers(S, size=H + 1), rng.integers(A, size=H)
        states[0] = 1
        one_more(n_sas, evidence, states, actions)
        before = kept.pi_bar.copy()
        moved = bound_splices(evidence, kept, states, 1, 2)
        fresh = empty_splices(np.arange(H + 1), pi_b, bold)
        bound_splices(evidence, fresh, NOTHING, 1, 2)
        for c in range(H + 1):
            rows = range(H) if c == 0 else range(c)
            for h in rows:
                at = slice(1, 2) if h == 0 else slice(None)
                np.testing.assert_array_equal(kept.V_low[h, c, at], fresh.V_low[h, c, at])
                np.testing.assert_array_equal(kept.V_up[h, c, at], fresh.V_up[h, c, at])
        assert moved == (kept.pi_bar != before).any()
        moves += moved
    assert not explorer or moves == 0


# ---- A mixture ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("explorer", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_the_mixture_as_the_policy_it_is(size, explorer, pooled):
    """(1-rho) pi^h + rho pi^{h-1} without data, at all first states or some; others there keep the tail's values."""
    S, A, H = size
    r, pi_b, bold = drawn(S, A, H, 7, explorer)
    evidence = balls(np.zeros((1 if pooled else H, S, A, S), dtype=np.int64), H, r.reshape(H, S * A))
    splices = empty_splices(np.arange(H + 1), pi_b, bold)
    bound_splices(evidence, splices, NOTHING, 0, S)
    tail = bold if explorer else np.eye(A)[r.argmax(axis=2)]
    for h, rho in product(range(1, H + 1), (0.0, 0.25, 1.0)):
        mixed = np.concatenate([pi_b[:h], tail[h:]])
        mixed[h - 1] = (1 - rho) * pi_b[h - 1] + rho * tail[h - 1]
        V_low = untried(r, mixed)[1]
        values = np.full((3, S), np.nan)
        values[2] = 0.0
        mixed_bound(evidence, splices, 0, S, h, rho, values)
        np.testing.assert_array_equal(values[0], V_low[0])
        values[:2] = np.nan
        mixed_bound(evidence, splices, S - 1, S, h, rho, values)
        assert values[0, S - 1] == V_low[0, S - 1]
        np.testing.assert_array_equal(values[0, : S - 1], V_low[1, : S - 1])


def test_a_mixture_with_data_reads_the_row_of_its_step():
    """At rho = 0 and 1 it is one of the two candidates: the same numbers, to the last bit; and margin and least too."""
    S, A, H = 3, 2, 3
    rng = np.random.default_rng(2)
    r, pi_b, _ = drawn(S, A, H, 3)
    for rows, margin in product((1, H), (0.0, 0.01, 1.0)):
        evidence = balls(rng.integers(0, 50, size=(rows, S, A, S)), H, r.reshape(H, S * A), margin)
        splices = empty_splices(np.arange(H + 1), pi_b)
        bound_splices(evidence, splices, NOTHING, 0, S)
        values = np.zeros((3, S))
        for h in range(1, H + 1):
            mixed_bound(evidence, splices, 0, S, h, 0.0, values)
            np.testing.assert_allclose(values[0], splices.V_low[0, h], atol=1e-15)
            if h > 1:
                mixed_bound(evidence, splices, 0, S, h, 1.0, values)
                # one margin more than the optimistic policy's own row, which has none, at most
                assert (values[0] <= splices.V_low[0, h - 1] + 1e-15).all()
                assert (values[0] >= splices.V_low[0, h - 1] - margin - 1e-15).all()


def test_a_state_that_is_worth_least():
    """Two actions worth 1/4 and 3/4: the even mixture, 1/2, less a margin of 1/8 is 3/8, less one of 1/2 is 1/4."""
    r = np.array([[0.25, 0.75]])
    pi_b, bold = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])
    for margin, expected in ((0.0, 0.5), (0.125, 0.375), (0.5, 0.25)):
        evidence = balls(np.zeros((1, 1, 2, 1), dtype=np.int64), 1, r, margin)
        splices = empty_splices(np.array([0, 1]), pi_b, bold)
        bound_splices(evidence, splices, NOTHING, 0, 1)
        values = np.zeros((3, 1))
        mixed_bound(evidence, splices, 0, 1, 1, 0.5, values)
        assert values[0, 0] == expected
    assert math.isfinite(values[0, 0])


# ---- With data, against one policy at a time ------------------------------------------------------------------------


def seen_world(S, A, H, rows, seed):
    """Balls of a few visits, which need no upper values of other candidates, a baseline and an explorer."""
    rng = np.random.default_rng(seed)
    n_sas = rng.integers(0, 6, (rows, S, A, S)) * (rng.random((rows, S, A, S)) < 0.5)
    evidence = balls(n_sas, H, rng.random((H, S * A)), uppers=False)
    refresh_all(evidence)
    return evidence, *(rng.dirichlet(np.ones(A), (H, S)) for _ in range(2))


@pytest.mark.parametrize("explored", [False, True])
@pytest.mark.parametrize("steps", ["all", "ends", "first and ends"])
@pytest.mark.parametrize("rows", [1, 4])
def test_every_splice_is_the_policy_it_is(steps, explored, rows):
    """A splice's lower values are those of the policy: also where only best actions' are computed of pi_bar."""
    S, A, H = 4, 3, 4
    h0 = np.array({"all": range(H + 1), "ends": [0, H], "first and ends": [0, 1, H]}[steps])
    evidence, pi_b, explorer = seen_world(S, A, H, rows, seed=rows)
    splices = empty_splices(h0, pi_b, explorer if explored else None)
    bound_splices(evidence, splices, NOTHING, 0, S)
    pi_bar = explorer if explored else np.eye(A)[splices.pi_bar]
    assert explored or (splices.pi_bar > 0).any()  # control: not the first action everywhere
    assert (splices.V_up[0, 0] >= splices.V_low[0, 0]).all()
    for c, h in enumerate(h0):
        spliced = np.concatenate([pi_b[:h], pi_bar[h:]])
        np.testing.assert_allclose(splices.V_low[0, c], lower_values(evidence, spliced)[0], rtol=0, atol=1e-12)
    apart = splices.V_low[0, 0] != splices.V_low[0, -1]
    assert apart.any()  # control: the candidates differ


def test_a_mixture_of_many_states_is_the_policy_it_is():
    """Of more states than are backed up together: those of the next step are read as they were."""
    S, A, H = 50, 3, 3
    evidence, pi_b, _ = seen_world(S, A, H, 1, seed=0)
    splices = empty_splices(np.arange(H + 1), pi_b)
    bound_splices(evidence, splices, NOTHING, 0, S)
    pi_bar, rho, values = np.eye(A)[splices.pi_bar], 0.25, np.zeros((3, S))
    for h in range(1, H + 1):
        mixed_bound(evidence, splices, 0, S, h, rho, values)
        bolder, safer = (np.concatenate([pi_b[:i], pi_bar[i:]]) for i in (h - 1, h))
        found = lower_values(evidence, (1 - rho) * safer + rho * bolder)[0]
        np.testing.assert_allclose(values[0], found, rtol=0, atol=1e-12)
