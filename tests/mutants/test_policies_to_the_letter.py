"""Policies and mixtures, line by line, in short fractions; and what is refused."""

import math

import numpy as np
import pytest

from surefoot.base.files import write_arrays
from surefoot.errors import InvalidFile, InvalidPolicy, InvalidSetting
from surefoot.task.policy import (
    EpisodicMixture,
    boltzmann,
    check_policy,
    draw,
    greedy,
    load_policy,
    one_hot,
    save_policy,
    splice,
    step_mixture,
    uniform,
)
from surefoot.task.problem import Problem

H, S, A = 3, 2, 4
KNOWN = Problem(np.zeros((H, S, A)))


def eighths(seed):
    """A policy of eighths."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(8, np.ones(A) / A, size=(H, S)) / 8


def test_a_policy_is_checked():
    pi = check_policy(eighths(0).tolist(), KNOWN)
    assert pi.shape == (H, S, A) and pi.dtype == np.float64 and not pi.flags.writeable
    assert check_policy(np.ones((1, 1, 1))).shape == (1, 1, 1)
    rule, actions = np.full((S, A), 0.25), np.zeros((H, S))
    for wrong, message in (
        (rule, r"shape \(2, 4\), expected \(H, S, A\) = \(3, 2, 4\): .*np.broadcast_to"),
        (actions, r"shape \(3, 2\), .*np.eye\(A\)\[actions\]"),
        (np.full((2, 2, 4), 0.25), r"shape \(2, 2, 4\), expected .* probabilities of actions\.$"),
        (np.full((4, 2, 4), 0.25), r"shape \(4, 2, 4\), expected .* probabilities of actions\.$"),
        (np.full((H, S, A), 0.2), "sums to 0.8"),
    ):
        with pytest.raises(InvalidPolicy, match=message):
            check_policy(wrong, KNOWN)
    for wrong in (rule, np.zeros((0, 2, 4)), np.zeros((3, 2, 0)), np.zeros((1, 1, 1, 1))):
        with pytest.raises(InvalidPolicy, match="with at least one step, state and action"):
            check_policy(wrong)
    with pytest.raises(InvalidPolicy, match="mine has shape"):
        check_policy(rule, name="mine")


def test_uniform():
    assert (uniform(H, S, A) == 0.25).all() and uniform(H, S, A).shape == (H, S, A)
    assert uniform(1, 1, 1).tolist() == [[[1.0]]]
    for wrong in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(InvalidPolicy, match="is 0, expected an integer >= 1"):
            uniform(*wrong)


def test_greedy():
    Q = np.array([[[1.0, 3.0, 2.0], [5.0, 5.0, 4.0]], [[-2.0, -1.0, -1.0], [0.0, 0.0, 0.0]]])
    assert greedy(Q).argmax(axis=2).tolist() == [[1, 0], [1, 0]]
    assert (greedy(Q).sum(axis=2) == 1.0).all() and set(greedy(Q).ravel()) == {0.0, 1.0}
    for wrong, message in (
        (np.zeros((2, 2)), r"Q has shape \(2, 2\), expected"),
        (np.zeros((1, 1, 1, 1)), r"Q has shape \(1, 1, 1, 1\), expected"),
        (np.zeros((2, 0, 2)), r"Q has shape \(2, 0, 2\), expected"),
        (np.full((1, 1, 2), np.nan), "finite"),
        (np.full((1, 1, 2), -2e100), "as large as 2e\\+100"),
        (np.array([[[0.0, 2e100]]]), "as large as 2e\\+100"),
    ):
        with pytest.raises(InvalidPolicy, match=message):
            greedy(wrong)
    assert greedy(np.array([[[0.0, 1e100]]])).tolist() == [[[0.0, 1.0]]]


def test_boltzmann():
    """exp(eta Q), over the sum: with eta = log 2 of Q = 0, 1, 3 that is 1, 2, 8 elevenths."""
    Q = np.array([[[0.0, 1.0, 3.0], [5.0, 5.0, 4.0]]])
    np.testing.assert_allclose(boltzmann(Q, math.log(2)), [[[1 / 11, 2 / 11, 8 / 11], [0.4, 0.4, 0.2]]], rtol=1e-14)
    np.testing.assert_allclose(boltzmann(Q, 0), np.full((1, 2, 3), 1 / 3), rtol=1e-15)
    assert boltzmann(1e6 * Q, 1e6).tolist() == [[[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]]  # nothing overflows
    for wrong in (-1e-9, math.inf, math.nan, "x"):
        with pytest.raises(InvalidSetting, match=r"eta is .* expected a finite number >= 0"):
            boltzmann(Q, wrong)


def test_splices():
    one, two = eighths(0), eighths(1)
    for h0 in range(H + 1):
        np.testing.assert_array_equal(splice(one, two, h0), np.concatenate([one[:h0], two[h0:]]))
    for wrong in (-1, H + 1, 1.5):
        with pytest.raises(InvalidSetting, match="h0 is"):
            splice(one, two, wrong)
    with pytest.raises(InvalidPolicy, match=r"shapes \(3, 2, 4\) and \(1, 2, 4\), expected the same"):
        splice(one, two[:1], 1)
    with pytest.raises(InvalidPolicy, match=r"shapes \(1, 2, 4\) and \(3, 2, 4\), expected the same"):
        splice(one[:1], two, 1)


def test_step_mixtures():
    one, two = eighths(0), eighths(1)
    np.testing.assert_array_equal(step_mixture(one, two, 0.25), 0.75 * one + 0.25 * two)
    np.testing.assert_array_equal(step_mixture(one, two, 0), one)
    np.testing.assert_array_equal(step_mixture(one, two, 1), two)
    # Equal entries are copied: 0.7 * 0.1 + 0.3 * 0.1 is not 0.1 in floats.
    assert 0.7 * 0.1 + 0.3 * 0.1 != 0.1
    x, y = np.array([[[0.1, 0.2, 0.7]]]), np.array([[[0.1, 0.7, 0.2]]])
    found = step_mixture(x, y, 0.3)
    assert found[0, 0, 0] == 0.1
    np.testing.assert_allclose(found[0, 0, 1:], [0.35, 0.55], rtol=1e-14)
    for wrong in (-1e-9, 1 + 1e-9, math.nan):
        with pytest.raises(InvalidSetting, match=r"rho is .* expected a weight in \[0, 1\]"):
            step_mixture(one, two, wrong)


class Coin:
    """A generator whose next number is known, and that counts its tosses."""

    def __init__(self, u):
        self.u, self.tosses = u, 0

    def random(self):
        self.tosses += 1
        return self.u


@pytest.mark.parametrize(
    ("rho", "u", "second", "tosses"),
    [
        (0.5, 0.25, True, 1),
        (0.5, 0.5, False, 1),
        (0.5, 0.75, False, 1),
        (0.0, 0.0, False, 0),
        (1.0, 0.999, True, 0),
        (0.25, 0.2, True, 1),
    ],
)
def test_a_coin_for_the_whole_episode(rho, u, second, tosses):
    coin, mixture = Coin(u), EpisodicMixture(eighths(0), eighths(1), rho)
    assert mixture.draw(coin) is (mixture.second if second else mixture.first)
    assert coin.tosses == tosses
    with pytest.raises(InvalidPolicy, match="Toss it first"):
        _ = mixture[0]


def test_a_coin_keeps_its_own():
    one = eighths(0)
    mixture = EpisodicMixture(one, eighths(1), 0.5)
    one[:] = 0.0
    np.testing.assert_array_equal(mixture.first, eighths(0))
    assert mixture.rho == 0.5 and not mixture.first.flags.writeable and not mixture.second.flags.writeable


@pytest.mark.parametrize(("u", "index"), [(0.0, 1), (0.24, 1), (0.25, 2), (0.99, 2)])
def test_an_index_by_its_weight(u, index):
    """Weights 0, 1/4, 3/4, 0."""
    assert draw(np.array([0.0, 0.25, 0.75, 0.0]), Coin(u)) == index


def test_an_index_where_weights_do_not_reach_1():
    """u is above their sum: the last one with any weight."""
    assert draw(np.array([0.25, 0.5, 0.0, 0.0]), Coin(0.9)) == 1
    assert draw(np.array([0.25, 0.5, 0.25 - 1e-9]), Coin(1.0 - 1e-12)) == 2


def test_policies_on_disk(tmp_path):
    save_policy(tmp_path / "pi.npz", eighths(0))
    np.testing.assert_array_equal(load_policy(tmp_path / "pi.npz"), eighths(0))
    save_policy(tmp_path / "coin.npz", EpisodicMixture(eighths(0), eighths(1), 0.25))
    coin = load_policy(tmp_path / "coin.npz")
    np.testing.assert_array_equal(coin.first, eighths(0))
    np.testing.assert_array_equal(coin.second, eighths(1))
    assert coin.rho == 0.25
    for wrong in (np.array([0.25]), np.array(1), np.array(True)):
        arrays = {"first": eighths(0), "second": eighths(1), "rho": wrong}
        write_arrays(tmp_path / "bad.npz", "episodic-mixture", arrays)
        with pytest.raises(InvalidFile, match="rho is not one number"):
            load_policy(tmp_path / "bad.npz")


def test_a_policy_of_actions_takes_no_table_of_all_pairs_of_actions():
    """A table of A x A would take 80 GB."""
    actions = np.array([[0, 99_999, 5]])
    policy = one_hot(actions, 100_000)
    assert policy.shape == (1, 3, 100_000) and policy.sum() == 3.0
    assert (policy.argmax(axis=-1) == actions).all()
    np.testing.assert_array_equal(one_hot(np.array([[1, 0]]), 2), [[[0.0, 1.0], [1.0, 0.0]]])
