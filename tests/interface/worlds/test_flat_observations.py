"""Observations of several numbers as one: Blackjack, and spaces of every kind. And ids that
Gymnasium does not know.
"""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

import surefoot as sf


class Shows(gymnasium.Env):
    """An environment that shows samples of its space, and ends after three steps."""

    action_space = Discrete(2)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.k = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.k += 1
        return self.observation_space.sample(), float(action), self.k == 3, False, {}


SPACES = {
    "tuple": (Tuple([Discrete(3), Discrete(2, start=5)]), 6),
    "multi-discrete": (MultiDiscrete([2, 3, 2]), 12),
    "matrix": (MultiDiscrete([[2, 3], [2, 1]]), 12),
    "binary": (MultiBinary(3), 8),
    "dict": (Dict(b=Discrete(2), a=Tuple([Discrete(2), MultiBinary(1)])), 8),
}


@pytest.mark.parametrize("name", SPACES)
def test_every_observation_has_a_number_of_its_own(name):
    space, n = SPACES[name]
    env = sf.FlatDiscrete(Shows(space))
    assert env.observation_space == Discrete(n)
    numbers = {}
    for _ in range(400):
        observation = space.sample()
        state = env.state(observation)
        assert state in env.observation_space
        assert numbers.setdefault(state, repr(observation)) == repr(observation)
        assert len(env.parts(state)) > 1
    assert sorted(numbers) == list(range(n))  # and none is left out
    assert len({env.parts(state) for state in range(n)}) == n
    assert all(env.reset(seed=seed)[0] in env.observation_space for seed in range(5))


def test_the_order_is_that_of_numpy():
    env = sf.FlatDiscrete(gymnasium.make("Blackjack-v1"))
    for hand in ((14, 10, 0), (31, 10, 1), (0, 0, 0), (20, 1, 1)):
        assert env.state(hand) == np.ravel_multi_index(hand, (32, 11, 2))
        assert env.parts(env.state(hand)) == hand
    assert env.state((14, 10, 0)) == 328


@pytest.mark.parametrize("wrong", [(32, 1, 0), (4, 1), (4.5, 1, 0), (4, -1, 0)])
def test_what_is_no_observation_is_refused(wrong, assert_refused):
    assert_refused(
        sf.InvalidModel, "observation", sf.FlatDiscrete(gymnasium.make("Blackjack-v1")).state, wrong
    )


def test_what_cannot_be_flat(assert_refused):
    assert_refused(
        sf.InvalidModel,
        r"a part Box.*grouped into ranges first",
        sf.FlatDiscrete,
        Shows(Tuple([Discrete(2), Box(0, 1)])),
    )
    assert_refused(
        sf.InvalidModel, r"1e\+12 values", sf.FlatDiscrete, Shows(MultiDiscrete([10**6, 10**6]))
    )
    assert_refused(
        sf.InvalidModel,
        r"state is 704, expected one of 0\.\.703",
        sf.FlatDiscrete(gymnasium.make("Blackjack-v1")).parts,
        704,
    )


def test_the_message_names_the_wrapper_where_it_helps(assert_refused):
    assert_refused(
        sf.InvalidModel,
        r"each observation is a number\. sf\.FlatDiscrete\(env\) does that\.",
        sf.from_gymnasium,
        "Blackjack-v1",
        horizon=5,
        reward_range=(-1, 1),
    )
    with pytest.raises(sf.InvalidModel, match=r"Box.*wrap the environment") as refusal:
        sf.from_gymnasium("CartPole-v1", horizon=5, reward_range=(0, 1))
    assert "FlatDiscrete" not in str(refusal.value)  # control


def test_blackjack_is_learnt_live(tmp_path):
    """Rewards unknown, 706 states, a baseline that sticks from 17 on; and it goes on after it
    was finished.
    """
    env = sf.FlatDiscrete(gymnasium.make("Blackjack-v1"))
    problem = sf.from_gymnasium(env, horizon=8, reward_range=(-1, 1), stationary=True)
    assert (problem.S, problem.A, problem.H) == (706, 2, 9)
    hits = np.array([env.parts(state)[0] < 17 for state in range(704)])
    rule = np.where(hits[:, None], [0.1, 0.9], [0.9, 0.1])
    agent = sf.EpsMix(
        problem,
        sf.embed_policy(problem, rule),
        floor=-0.8,
        pooled=True,
        replan=0.5,
    )
    run = sf.learn(env, agent, 25, seed=0, save=tmp_path / "run.npz")
    assert run.counts.episodes == 25 and -1.0 <= run.mean_return <= 1.0
    assert sf.learn(env, agent, 27, seed=0, save=tmp_path / "run.npz", resume=True).episodes == 27


def test_versions_of_taxi_are_named(assert_refused):
    for asked in ("Taxi-v9", "Taxi-v3"):
        assert_refused(
            sf.InvalidModel,
            r"Gymnasium .* has Taxi-v\d\. It is Taxi-v3 until .*Taxi-v4 since",
            sf.from_gymnasium,
            asked,
            horizon=5,
        )
    assert_refused(
        sf.InvalidModel, r"has CliffWalking-v1\.$", sf.from_gymnasium, "CliffWalking-v7", horizon=5
    )
    # control: nothing to name
    assert_refused(
        sf.InvalidModel,
        r"Environment `Nowhere` doesn't exist\.$",
        sf.from_gymnasium,
        "Nowhere-v0",
        horizon=5,
    )


# ---- numbers and rows


def test_a_value_is_a_number():
    """The same as V[0] at the start, whatever the start and the coin are, in the user's units."""
    world = sf.random_mdp(4, 3, 5, seed=2)
    policy = sf.uniform(5, 4, 3)
    assert isinstance(sf.value(world, policy), float)
    assert sf.value(world, policy) == sf.policy_value(world, policy)[0, world.s1]
    assert sf.value(world, sf.solve(world).policy) == pytest.approx(
        sf.solve(world).value, abs=1e-12
    )
    coin = sf.EpisodicMixture(policy, sf.solve(world).policy, 0.25)
    assert sf.value(world, coin) == pytest.approx(
        0.75 * sf.value(world, policy) + 0.25 * sf.solve(world).value
    )
    euros = sf.TabularMDP(
        world.P, -1.0 + 6.0 * world.r, start=[0.5, 0.5, 0, 0], units=sf.Units(-1, 5, name="euros")
    )
    V = sf.policy_value(euros, policy)[0]
    assert sf.value(euros, policy) == pytest.approx(0.5 * V[0] + 0.5 * V[1])
    with pytest.raises(sf.InvalidPolicy):
        sf.value(world, sf.uniform(5, 4, 2))


def softmax(dtype, shape=(4, 3, 5)):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_rounded_softmax_is_refused_with_what_to_do(dtype, assert_refused):
    rounded = softmax(dtype)
    assert_refused(
        sf.InvalidPolicy,
        r"sums to .*Cast to float64 and divide each row.*sf.normalise\(policy\)",
        sf.check_policy,
        rounded,
    )
    policy = sf.normalise(rounded)
    assert policy.dtype == np.float64 and np.abs(policy.sum(axis=-1) - 1.0).max() < 1e-15
    np.testing.assert_allclose(policy, softmax(np.float64), rtol=0, atol=2e-3)
    sf.check_policy(policy)
    sf.check_policy(softmax(np.float64))  # control
    # rules (S, A), too
    np.testing.assert_array_equal(sf.normalise(policy[0]), sf.normalise(policy)[0])


def test_what_was_no_distribution_is_not_made_one(assert_refused):
    good = softmax(np.float64)
    for wrong, words in (
        (good * 1.002, "expected 1 within 0.001"),
        (good - 1e-3, "sums to|probability"),
        (np.where(good == good.max(), np.nan, good), "finite"),
        (np.full((2, 3), 0.0), "sums to 0"),
        (np.zeros((2, 0)), "expected rows of probabilities"),
        (0.5, "expected rows of probabilities"),
        ("uniform", "dtype"),
    ):
        assert_refused(sf.InvalidPolicy, words, sf.normalise, wrong)
    with pytest.raises(sf.InvalidPolicy) as refusal:
        sf.check_policy(good * 1.002)
    assert "normalise" not in str(refusal.value)  # far from it: no hint
    negative = good.copy()
    negative[0, 0, :2] = (-1e-9, negative[0, 0, 0] + negative[0, 0, 1] + 1e-9)
    assert_refused(sf.InvalidPolicy, "expected a probability >= 0", sf.normalise, negative)
