"""A converted model against the environment it was made from: exact values and real rollouts.

The test: the mean return of n rollouts through `env.reset(seed=...)` and `env.step` differs from
the exact value of the converted model by at most 4 standard errors (by at most 1e-9 where nothing
is random).
- False alarm: 6e-5 per case. Seeds are fixed, so it was met in the first run or never.
- Misses: a defect of 8 standard errors passes with probability 3e-5, one of 4 with 1/2. In the
  environments' own units
  8 standard errors of 20,000 rollouts are 0.023 of 0.224 in FrozenLake-v1, 0.025 of 0.256 in
  FrozenLake8x8-v1, 2.9 of -41 in CliffWalking-v1, 3.6 of -84 in CliffWalkingSlippery-v1 and 0.7 of
  -4.7 in Taxi-v4; with the 2,000 of the quick run 3.2 times that.
- Too small for it: duplicate successors assigned and the row renormalised (0.011 in FrozenLake-v1).
  The comparison with a few lines by hand, to 1e-9, sees that one. Beside each comparison stand
  conversions with one deliberate mistake, which it must reject.
"""

import functools
import random
from bisect import bisect

import gymnasium
import numpy as np
import pytest

import surefoot as sf

CASES = {  # id: (horizon, e); the policy is the optimal action with probability 1 - e, else any
    "FrozenLake-v1": (50, 0.2),
    "FrozenLake8x8-v1": (100, 0.2),
    "CliffWalking-v1": (20, 0.1),
    "CliffWalkingSlippery-v1": (50, 0.1),
    "Taxi-v4": (30, 0.2),
}
SIGMAS = 4.0
MANY, FEW = 20_000, 2_000
SLOW = [name for name in CASES if name != "FrozenLake-v1"]


@functools.cache
def converted(name):
    return sf.from_gymnasium(name, horizon=CASES[name][0])


def rule_of(name, e):
    """A policy (H, n, A) for the environment's own states."""
    world, H = converted(name), CASES[name][0]
    n = gymnasium.make(name).observation_space.n
    best = sf.solve(world).policy[world.H - H :, :n]
    return (1.0 - e) * best + e / world.A


def exact(name, rule):
    """The value of the converted model, in the environment's units."""
    world = converted(name)
    return sf.value(world, sf.embed_policy(world.problem, rule))


def returns(name, rule, n, seed):
    """What n episodes of the real environment earn, cut at the horizon. Plain Python: one step
    costs its env.step.
    """
    env = gymnasium.make(name)
    cumulative = np.cumsum(rule, axis=2)
    cumulative[..., -1] = 1.0
    tables = cumulative.tolist()
    draw = random.Random(seed).random
    earned = np.zeros(n)
    for k in range(n):
        s, _ = env.reset(seed=seed + k)
        total, ended = 0.0, False
        for table in tables:
            s, reward, ended, cut, _ = env.step(bisect(table[s], draw()))
            total += reward
            if ended:
                break
            assert not cut
        earned[k] = total
    return earned


@functools.cache
def noisy_returns(name, n):
    return returns(name, rule_of(name, CASES[name][1]), n, seed=1000)


def agree(value, earned):
    """The test itself. Without randomness 1e-9 is asked."""
    error = SIGMAS * earned.std(ddof=1) / np.sqrt(len(earned))
    return bool(abs(earned.mean() - value) <= max(error, 1e-9))


def by_hand(name, rule, mistake=""):
    """Backward induction over env.unwrapped.P in a few lines, in the environment's units; on
    request with a mistake.
    """
    env = gymnasium.make(name).unwrapped
    n, A = int(env.observation_space.n), int(env.action_space.n)
    T, R = np.zeros((n, A, n + 1)), np.zeros((n, A))
    pays = [0.0]
    for s in range(n):
        for a in range(A):
            for p, s_next, reward, terminated in env.P[s][a]:
                place = n if terminated and mistake != "terminated ignored" else s_next
                T[s, a, place] = (
                    p if mistake.startswith("duplicates assigned") else T[s, a, place] + p
                )
                R[s, a] = p * reward if mistake == "rewards assigned" else R[s, a] + p * reward
                pays.append(reward)
    if mistake == "duplicates assigned, renormalised":
        T /= T.sum(axis=2, keepdims=True)
    at_rest = min(pays) if mistake == "rest pays the lowest" else 0.0
    V = np.zeros(n + 1)
    for h in reversed(range(len(rule))):
        V = np.append((rule[h] * (R + T @ V)).sum(axis=1), at_rest + V[n])
    starts = getattr(env, "initial_state_distrib", None)
    if starts is None:
        starts = np.eye(n)[env.reset(seed=0)[0]]
    if mistake == "one start":
        starts = np.eye(n)[np.argmax(starts)]
    return float(starts @ V[:n])


@pytest.mark.parametrize(
    ("name", "rollouts"),
    [
        ("FrozenLake-v1", MANY),
        *((name, FEW) for name in SLOW),
        *(pytest.param(name, MANY, marks=pytest.mark.full) for name in SLOW),
    ],
)
def test_exact_values_are_what_the_environment_pays(name, rollouts):
    assert agree(exact(name, rule_of(name, CASES[name][1])), noisy_returns(name, rollouts))


def test_without_randomness_they_agree_to_1e_9():
    """CliffWalking-v1 with its optimal policy: 13 steps along the cliff, and every episode is
    the same.
    """
    name = "CliffWalking-v1"
    rule = rule_of(name, 0.0)
    earned = returns(name, rule, 50, seed=0)
    assert np.ptp(earned) == 0.0
    assert exact(name, rule) == pytest.approx(earned[0], abs=1e-9)
    assert earned[0] == -13.0
    assert agree(exact(name, rule), earned)
    assert not agree(exact(name, rule) + 1e-6, earned)  # control
    assert not agree(by_hand(name, rule, "terminated ignored"), earned)  # control


@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
def test_exact_values_agree_with_a_few_lines_by_hand(name, e):
    rule = rule_of(name, e)
    assert exact(name, rule) == pytest.approx(by_hand(name, rule), abs=1e-9)
    if "Slippery" in name or "Frozen" in name:  # control: those with duplicates
        assert (
            abs(exact(name, rule) - by_hand(name, rule, "duplicates assigned, renormalised")) > 1e-4
        )


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("FrozenLake-v1", "duplicates assigned"),
        ("FrozenLake-v1", "rewards assigned"),
        ("CliffWalkingSlippery-v1", "duplicates assigned"),
        ("CliffWalkingSlippery-v1", "rewards assigned"),
        ("CliffWalking-v1", "terminated ignored"),
        ("CliffWalking-v1", "rest pays the lowest"),
        ("Taxi-v4", "terminated ignored"),
        ("Taxi-v4", "rest pays the lowest"),
        ("Taxi-v4", "one start"),
    ],
)
def test_a_wrong_conversion_is_caught(name, mistake):
    """Control, with the rollouts of the quick run: right passes, wrong fails."""
    rule = rule_of(name, CASES[name][1])
    earned = noisy_returns(name, MANY if name == "FrozenLake-v1" else FEW)
    assert agree(by_hand(name, rule), earned)
    assert not agree(by_hand(name, rule, mistake), earned)


def test_frozen_lake_has_its_known_values():
    name = "FrozenLake-v1"
    assert sf.solve(converted(name)).value == pytest.approx(0.54591, abs=1e-5)
    assert exact(name, rule_of(name, 0.0)) == pytest.approx(0.54591, abs=1e-5)
    assert exact(name, rule_of(name, 0.2)) == pytest.approx(0.22419, abs=1e-5)
    assert exact(name, rule_of(name, 0.05)) == pytest.approx(0.433, abs=5e-4)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_dynamics_are_stored_once(name):
    """No dense (H, S, A, S) array: Taxi would need 375 MB for it."""
    world, several = converted(name), name == "Taxi-v4"
    assert world.stationary
    assert world.P_rows.shape[0] == 1
    assert world.P.strides[0] == 0
    assert len(world.problem.r_rows) == 1
    assert world.H - several == CASES[name][0]
    assert world.S - 1 - several == gymnasium.make(name).observation_space.n
    assert world.name == name
