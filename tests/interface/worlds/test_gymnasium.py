"""Gymnasium both ways: what the conversion gets right, and what it refuses in words."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf
from surefoot.worlds.gymnasium import TabularEnv, env_id

HERE = "surefoot.worlds.gymnasium"


class Tabled(gymnasium.Env):
    """An environment that does what a table P says. States and actions may start anywhere; P may
    be hidden.
    """

    def __init__(self, P, starts=None, first_state=0, first_action=0, shown=True, kind=int):
        self.table, self.kind = P, kind
        self.observation_space = Discrete(len(P), start=first_state)
        self.action_space = Discrete(len(P[first_state]), start=first_action)
        self.starts = np.eye(len(P))[0] if starts is None else np.array(starts)
        if shown:
            self.P = P
        if starts is not None:
            self.initial_state_distrib = self.starts

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = int(
            self.observation_space.start + self.np_random.choice(len(self.starts), p=self.starts)
        )
        return self.kind(self.s), {}

    def step(self, action):
        outcomes = self.table[self.s][action]
        i = self.np_random.choice(len(outcomes), p=[p for p, *_ in outcomes])
        _, self.s, reward, terminated = outcomes[i]
        return self.kind(self.s), reward, terminated, False, {}


def walk(first_state=0, first_action=0, win=5.0, fine=-1.0):
    """Two places. Action 0 waits. Action 1 wins and ends with 1/2, else pays a fine and moves to
    the other place.
    """
    s, a = first_state, first_action
    return {
        s: {a: [(1.0, s, 0.0, False)], a + 1: [(0.5, s + 1, win, True), (0.5, s + 1, fine, False)]},
        s + 1: {a: [(1.0, s + 1, 0.0, False)], a + 1: [(0.5, s, win, True), (0.5, s, fine, False)]},
    }


def constant(problem, a):
    return np.broadcast_to(np.eye(problem.A)[a], (problem.H, problem.S, problem.A))


def worth(world, policy):
    return sf.value(world, policy)


def no_world(message, env, horizon=4, **given):
    """It is refused with this message."""
    with pytest.raises(sf.InvalidModel, match=message):
        sf.from_gymnasium(env, horizon=horizon, **given)


def walk_world(horizon=4, starts=None):
    """The world of `walk`, by its model."""
    return sf.from_gymnasium(Tabled(walk(), starts=starts), horizon=horizon)


# ---- an environment with a model becomes a world


def test_duplicate_successors_are_added_and_rewards_averaged():
    """The same next state three times, twice with different rewards and once as an end."""
    P = {
        0: {
            0: [
                (0.2, 1, 1.0, False),
                (0.3, 1, 0.0, False),
                (0.1, 1, 0.0, True),
                (0.4, 0, 0.5, False),
            ]
        }
    }
    P[1] = {0: [(1.0, 1, 0.0, False)]}
    world = sf.from_gymnasium(Tabled(P), horizon=2)
    assert_allclose(world.P[0, 0, 0], [0.4, 0.5, 0.1], atol=1e-15)
    assert world.r[0, 0, 0] == pytest.approx(0.2 * 1.0 + 0.4 * 0.5, abs=1e-15)
    assert (world.S, world.A, world.H, world.s1, world.stationary) == (3, 1, 2, 0, True)


def test_terminated_belongs_to_the_transition():
    """The other place is an end only for those who won: the fined go on from it."""
    world = walk_world(2)
    rest = 2
    assert_array_equal(world.P[0, 0, 1], [0.0, 0.5, 0.5])
    assert_array_equal(world.P[0, rest, :, rest], [1.0, 1.0])
    # Always action 1: 2 on average now; with 1/2 still in the game, 2 again.
    assert worth(world, constant(world, 1)) == pytest.approx(2.0 + 0.5 * 2.0, abs=1e-12)
    # Action 0 waits. After an end nothing is earned, whatever is done.
    assert worth(world, constant(world, 0)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8, np.array])
def test_spaces_may_start_anywhere_and_observations_be_any_integer(kind):
    plain = walk_world(3)
    env = Tabled(walk(1, 3), first_state=1, first_action=3, kind=kind)
    world = sf.from_gymnasium(env, horizon=3)
    assert_array_equal(world.P, plain.P)
    assert_array_equal(world.r, plain.r)
    assert world.s1 == plain.s1 == 0
    agent = sf.StepMix(world.problem, constant(world, 1), 0.0)
    run = sf.learn(env, agent, 20, seed=0)
    assert run.counts == sf.learn(Tabled(walk()), agent, 20, seed=0).counts
    assert run.counts.episodes == 20


@pytest.mark.parametrize("shown", [1.5, "1", None, np.array([1]), 2, -1])
def test_an_observation_that_is_no_state_is_refused(shown):
    env = Tabled(walk(), kind=lambda s: shown)
    no_world("The environment showed", env, horizon=3)


def test_several_starts_get_a_common_one():
    """One more state and one more step, which earns nothing: the value is the average over the
    starts.
    """
    world = walk_world(starts=[0.25, 0.75])
    rest, start = 2, 3
    assert (world.S, world.H, world.s1, world.stationary) == (4, 5, start, True)
    assert_array_equal(world.P[0, start], [[0.25, 0.75, 0.0, 0.0]] * 2)
    assert_array_equal(world.P[0, rest, :, rest], [1.0, 1.0])
    # Action 1 in the first place, action 0 in the second: who starts in the second earns nothing.
    rule = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert worth(world, sf.embed_policy(world.problem, rule)) == pytest.approx(
        0.25 * 2.0, abs=1e-12
    )
    one = walk_world(starts=[0.0, 1.0])
    assert (one.S, one.H, one.s1) == (3, 4, 1)  # a distribution on one state needs none


def test_a_rule_for_the_environments_own_states_is_refused_with_embed_policy(assert_refused):
    several = walk_world(starts=[0.25, 0.75]).problem
    one = walk_world(starts=[0.0, 1.0]).problem
    rule = np.full((2, 2), 0.5)
    for problem, which in (
        (one, "the absorbing state"),
        (several, "the absorbing state and the common start"),
    ):
        for given in (rule, np.broadcast_to(rule, (4, 2, 2))):
            assert_refused(
                sf.InvalidPolicy,
                rf"without {which}: use sf.embed_policy\(problem, rule\)",
                sf.StepMix,
                problem,
                given,
                0.5,
            )
        sf.StepMix(problem, sf.embed_policy(problem, rule), 0.5)
    # control: no state was added
    with pytest.raises(sf.InvalidPolicy, match=r"np.broadcast_to\(rule") as refusal:
        sf.StepMix(sf.Problem(np.zeros((2, 2)), H=4), rule, 0.5)
    assert "embed_policy" not in str(refusal.value)


def test_several_starts_are_played_through_the_common_one():
    env = Tabled(walk(), starts=[0.25, 0.75])
    world = sf.from_gymnasium(env, horizon=4)
    run = sf.learn(env, sf.BPIUCBVI(world.problem, pooled=True), 400, seed=0)
    firsts = run.counts.n_sas[0, 3].sum(axis=0)
    assert firsts.sum() == 400
    assert abs(firsts[0] - 100) < 5 * np.sqrt(400 * 0.25 * 0.75)
    assert firsts[2:].sum() == 0


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([1.5, -0.5], "not a distribution over the 2 states"),
        ([1.0], "not a distribution over the 2 states"),
        (["a", "b"], "initial_state_distrib has dtype"),
    ],
)
def test_a_start_distribution_must_be_one(said, message):
    env = Tabled(walk())
    env.initial_state_distrib = said
    no_world(message, env)


def test_several_starts_that_nobody_declared_are_refused():
    env = Tabled(walk(), starts=[0.5, 0.5])
    del env.initial_state_distrib
    no_world(
        r"starts in several states .* does not say how likely",
        env,
        horizon=4,
    )


def test_rewards_are_rescaled_and_translated_back():
    world = sf.from_gymnasium(Tabled(walk(win=5.0, fine=-1.0)), horizon=4)
    assert world.problem.units == sf.Units(-1.0, 5.0, 4)
    assert world.r[0, 2, 0] == pytest.approx(0.0, abs=1e-15)  # the absorbing state
    assert world.r_rescaled[0, 2, 0] == pytest.approx(1 / 6)
    assert world.r[0, 0, 1] == pytest.approx(2.0)
    assert world.r_rescaled[0, 0, 1] == pytest.approx((2.0 + 1.0) / 6)
    declared = sf.from_gymnasium(
        Tabled(walk(win=5.0, fine=-1.0)), horizon=4, reward_range=(-10, 10)
    )
    assert declared.problem.units == sf.Units(-10.0, 10.0, 4)
    for policy in (constant(world, 0), constant(world, 1), sf.uniform(4, 3, 2)):
        assert worth(world, policy) == pytest.approx(worth(declared, policy), abs=1e-12)
    units = world.problem.units
    for value in (-4.0, -0.3, 0.0, 7.5, 20.0):
        assert units.to_user(world.problem.level(value)) == pytest.approx(value, abs=1e-12)
    assert world.problem.level(-4.0) == 0.0  # the worst there is: the lowest reward at every step
    assert world.problem.level(20.0) == pytest.approx(4.0)


def test_rewards_by_next_state_stay_and_the_papers_bounds_refuse_them(assert_refused):
    """Winning and being fined are two outcomes of one pair. `averaged` tells learners its mean
    instead.
    """
    world = walk_world()
    after = world.problem.r_next_at(0)[None]
    # 5 and -1, rescaled
    assert after[0, 0, 1, 2] == pytest.approx(1.0) and after[0, 0, 1, 1] == pytest.approx(0.0)
    baseline = sf.uniform(4, 3, 2)
    assert_refused(
        sf.InvalidSetting,
        r"rewards that depend on the next state.*world\.averaged\(\)",
        sf.StepMix.paper,
        world.problem,
        baseline,
        0.1,
    )
    assert_refused(
        sf.InvalidSetting,
        "rewards that depend on the next state",
        sf.BPIUCBVI,
        world.problem,
        bounds=sf.Bernstein(),
    )
    means = world.averaged()
    assert not means.problem.pays_by_next
    assert_array_equal(means.r, world.r)
    assert_array_equal(means.P, world.P)
    run = sf.learn(Tabled(walk()), sf.StepMix.paper(means.problem, baseline, 0.1), 5, seed=0)
    assert run.episodes == 5
    # KL takes both
    assert sf.simulate(world, sf.StepMix(world.problem, baseline, 0.1), 5, seed=0).episodes == 5
    plain = {
        s: {a: [(p, t, 1.0, end) for p, t, _, end in rows] for a, rows in acts.items()}
        for s, acts in walk().items()
    }
    # control: one reward for all outcomes of a pair
    same = sf.from_gymnasium(Tabled(plain), horizon=4)
    assert not same.problem.pays_by_next
    sf.StepMix.paper(same.problem, baseline, 0.1)


def test_a_world_that_pays_nothing_converts():
    world = sf.from_gymnasium(Tabled(walk(win=0.0, fine=0.0)), horizon=3)
    assert worth(world, sf.uniform(3, 3, 2)) == 0.0


@pytest.mark.parametrize(
    ("reward_range", "message"),
    [
        ((-1, 4), r"P\[1\]\[4\] pays 5, outside the declared reward_range \(-1, 4\)\. Widen it"),
        ((0, 5), r"P\[1\]\[4\] pays -1, outside the declared reward_range \(0, 5\)\. Widen it"),
        ((5, -1), "lower one first"),
        ((-np.inf, 5), "expected two finite numbers"),
    ],
)
def test_a_declared_range_must_hold_every_reward(reward_range, message):
    env = Tabled(walk(1, 3), first_state=1, first_action=3)
    no_world(message, env, reward_range=reward_range)


def test_a_declared_range_must_contain_0():
    """After its end an episode earns 0 a step, so 0 is a reward like the others."""
    P = {0: {0: [(1.0, 0, 2.0, False)], 1: [(1.0, 0, 3.0, True)]}}
    no_world(
        r"\(1, 4\), which does not contain 0.*declare \(0, 4\)",
        Tabled(P),
        horizon=4,
        reward_range=(1, 4),
    )
    # found: (0, 3)
    assert sf.from_gymnasium(Tabled(P), horizon=4).problem.units == sf.Units(0.0, 3.0, 4)


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ({0: {0: [(1.0, 0, 0.0, False)]}, 1: {}}, r"P\[1\]\[0\] is missing or not a list"),
        (
            {0: {0: [(1.0, 0, 0.0)]}},
            r"P\[0\]\[0\] is missing or not a list of \(probability, next state, reward",
        ),
        ({0: {0: [(0.9, 0, 0.0, False)]}}, "sums to 0.9"),
        ({0: {0: [(1.0, 7, 0.0, False)]}}, "showed 7, outside its own space of 1 states"),
        ({0: {0: [(1.0, 0, np.nan, False)]}}, "nan"),
    ],
)
def test_a_broken_model_is_refused(P, message):
    env = Tabled(P)
    env.action_space = Discrete(1)
    no_world(message, env, horizon=2)


def test_rewards_and_start_are_not_declared_twice():
    for env in (Tabled(walk()), gymnasium.make(f"{HERE}:Trap-v0")):
        for given in ({"rewards": np.zeros((2, 2))}, {"start": 0}):
            no_world(
                "Leave `rewards` and `start` out",
                env,
                horizon=2,
                **given,
            )


# ---- time limits


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make("FrozenLake-v1"),
        lambda: gymnasium.wrappers.TimeLimit(
            gymnasium.wrappers.TimeLimit(Tabled(walk()), 300), 100
        ),
        lambda: gymnasium.wrappers.TimeLimit(gymnasium.make(f"{HERE}:RiverSwim-v0", H=200), 100),
        lambda: gymnasium.wrappers.TimeLimit(Tabled(walk(), shown=False), 100),
    ],
)
def test_a_time_limit_shorter_than_the_horizon_is_refused(make):
    """An episode that was cut is not one that ended."""
    no_world(
        "cuts episodes after 100 steps, before the horizon of 200",
        make(),
        horizon=200,
    )


def test_a_time_limit_as_long_as_the_horizon_is_fine():
    assert sf.from_gymnasium("FrozenLake-v1", horizon=100).H == 100
    assert (
        sf.from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=200), horizon=200).H
        == 200
    )
    assert sf.from_gymnasium(gymnasium.make("FrozenLake-v1").unwrapped, horizon=200).H == 200


@pytest.mark.parametrize("horizon", [0, -1, 2.5, "3", True, None])
def test_the_horizon_is_a_whole_number(horizon):
    no_world("horizon is", "FrozenLake-v1", horizon=horizon)


# ---- spaces


def test_continuous_spaces_are_refused(assert_refused):
    no_world(
        r"observation space is Box.*expected Discrete\(n\)",
        "CartPole-v1",
        horizon=10,
    )
    env = Tabled(walk())
    env.action_space = Box(0.0, 1.0)
    no_world(
        r"action space is Box.*each action is a number",
        env,
        horizon=10,
    )
    agent = sf.BPIUCBVI.paper(sf.world("trap").problem)
    assert_refused(
        sf.InvalidModel, "observation space is Box", sf.learn, "CartPole-v1", agent, 3, seed=0
    )


# ---- an environment without a model becomes a problem


def opaque(**settings):
    return Tabled(walk(), shown=False, **settings)


AVERAGE = np.array([[0.0, 2.0], [0.0, 2.0]])  # what `walk` pays on average


def test_without_model_and_rewards_the_rewards_are_unknown(assert_refused):
    problem = sf.from_gymnasium(opaque(), horizon=4, reward_range=(-1, 5), start=0)
    assert isinstance(problem, sf.Problem)
    assert problem.unknown_rows is not None and problem.unknown_rows.reshape(-1, 3, 2)[:, :2].all()
    assert problem.units == sf.Units(-1.0, 5.0, 4)
    run = sf.learn(
        opaque(),
        sf.StepMix(problem, sf.embed_policy(problem, np.full((2, 2), 0.5)), 0.1),
        20,
        seed=0,
    )
    paid = run.counts.x_sa[:, :2].sum() / 2**20  # observed, in units of this library
    assert 0.0 < paid <= run.counts.n_sas[:, :2].sum()
    assert_refused(sf.InvalidSetting, "not proved for unknown rewards", sf.BPIUCBVI.paper, problem)


def test_the_range_of_rewards_must_be_declared():
    """What an unseen reward may be is the owner's word: nothing else bounds it."""
    for given in ({}, {"rewards": AVERAGE}):
        no_world(
            "range of rewards must be declared",
            opaque(),
            horizon=4,
            **given,
        )


@pytest.mark.parametrize(
    ("rewards", "reward_range", "message"),
    [
        (np.zeros((3, 2)), (-1, 5), r"shape \(3, 2\), expected \(2, 2\) or \(4, 2, 2\)"),
        (
            np.full((2, 2), 6.0),
            (-1, 5),
            r"rewards\[0, 0\] is 6, outside the declared reward_range \(-1, 5\)",
        ),
        (np.full((2, 2), np.nan), (-1, 5), "expected a finite number"),
    ],
)
def test_declared_rewards_are_checked(rewards, reward_range, message):
    no_world(
        message,
        opaque(),
        horizon=4,
        rewards=rewards,
        reward_range=reward_range,
    )


def test_a_problem_has_the_rewards_of_the_world():
    """With P or with declared rewards: the same numbers, with a start and without."""
    settings = {"horizon": 4, "rewards": AVERAGE, "reward_range": (-1.0, 5.0)}
    problem = sf.from_gymnasium(opaque(), start=0, **settings)
    world = walk_world()
    assert isinstance(problem, sf.Problem)
    assert_array_equal(problem.r, world.r)
    assert (problem.S, problem.H, problem.s1, problem.units) == (3, 4, 0, world.problem.units)
    several = sf.from_gymnasium(opaque(), **settings)
    common = walk_world(starts=[0.5, 0.5])
    assert_array_equal(several.r, common.r)
    assert (several.S, several.H, several.s1, several.units) == (4, 5, 3, common.problem.units)
    assert not several.stationary  # nobody said so
    assert sf.from_gymnasium(opaque(), stationary=True, **settings).stationary


def test_declared_rewards_may_depend_on_the_step():
    rewards = np.arange(16.0).reshape(4, 2, 2)
    for start, several in ((0, 0), (None, 1)):
        problem = sf.from_gymnasium(
            opaque(), horizon=4, rewards=rewards, reward_range=(-5, 15), start=start
        )
        assert_allclose(problem.r[several:, :2], rewards, atol=1e-12)
        assert (problem.r_rescaled[several:, 2] == 0.25).all()
        assert (problem.r[several:, 2] == 0.0).all()
        if several:
            assert (problem.r_rescaled[:, 3] == 0.0).all()
            assert (problem.r[0, 3] == 0.0).all()


def test_learning_live_knows_no_truth():
    env = opaque()
    problem = sf.from_gymnasium(env, horizon=4, rewards=AVERAGE, reward_range=(-1, 5), start=0)
    baseline = sf.embed_policy(problem, [[0.5, 0.5], [0.5, 0.5]])
    floor = 0.5
    run = sf.learn(env, sf.StepMix.paper(problem, baseline, floor), 60, seed=0)
    assert (run.violations, run.regret, run.optimum, run.min_value, run.baseline) == (None,) * 5
    assert run.floor == floor
    assert np.isnan(run.curve.regret).all()
    assert np.isnan(run.curve.below).all()
    # the curve shows observed returns
    assert run.mean_value == pytest.approx(run.mean_return, abs=1e-12)
    # learners are told the same means
    world = walk_world().averaged()
    truth = worth(world, baseline)
    assert abs(run.mean_return - truth) < 4 * 3.0 / np.sqrt(60)  # a return deviates by about 3
    same = sf.learn(Tabled(walk()), sf.StepMix.paper(world.problem, baseline, floor), 60, seed=0)
    # control: with the model, the same episodes and an exact account
    assert same.counts == run.counts
    assert same.violations == 0
    assert same.regret > 0


def test_learning_live_has_no_promise_for_another_floor():
    problem = sf.from_gymnasium(opaque(), horizon=4, rewards=AVERAGE, reward_range=(-1, 5), start=0)
    agent = sf.StepMix.paper(problem, constant(problem, 1), 1.0)
    assert "certified" in str(sf.learn(opaque(), agent, 2, seed=0).promise)
    other = sf.learn(opaque(), agent, 2, seed=0, floor=2.0)
    assert (str(other.promise), other.floor) == (
        "no promise for this floor: the agent keeps 1",
        2.0,
    )


def test_an_agent_for_another_environment_is_refused(assert_refused):
    lake = sf.from_gymnasium("FrozenLake-v1", horizon=5)
    other = sf.from_gymnasium(Tabled(walk(win=4.0)), horizon=4, reward_range=(-1, 5))
    for world, message in (
        (lake, r"the environment has 2 states and 2 actions. Make the problem with"),
        (other, "knows other rewards"),
        (walk_world(starts=[0.5, 0.5]), r"Build the agent from world\.problem"),
    ):
        agent = sf.BPIUCBVI(world.problem)
        assert_refused(sf.InvalidModel, message, sf.learn, Tabled(walk()), agent, 3, seed=0)
    assert_refused(
        sf.InvalidSetting,
        r"Expected an agent such as sf.StepMix\(...\), found str",
        sf.learn,
        Tabled(walk()),
        "stepmix",
        3,
        seed=0,
    )


@pytest.mark.parametrize("fine", [-0.1, -0.04, -0.7, -1 / 3])
def test_a_range_that_rounds_is_still_the_same_range(fine):
    """Steps times the lowest reward, divided by the steps again, is off by an ulp for some."""
    assert any(steps * fine / steps != fine for steps in range(2, 30))
    for steps in range(2, 30):
        env = Tabled(walk(win=1.0, fine=fine))
        world = sf.from_gymnasium(env, horizon=steps)
        run = sf.learn(env, sf.BPIUCBVI(world.problem), 1, seed=0)
        assert run.optimum == sf.solve(world).value


# ---- policies


def test_embed_policy_knows_the_added_states():
    one = walk_world(3).problem
    several = walk_world(3, starts=[0.5, 0.5]).problem
    rule = np.array([[0.9, 0.1], [0.2, 0.8]])
    by_step = np.stack([rule, rule[::-1], rule])
    for problem, extra in ((one, 0), (several, 1)):
        for given in (rule, by_step, by_step.tolist()):
            policy = sf.check_policy(sf.embed_policy(problem, given), problem)
            assert_array_equal(policy[extra:, :2], np.broadcast_to(given, (3, 2, 2)))
            assert (policy[:, 2:] == 0.5).all()
            assert (policy[:extra] == 0.5).all()


@pytest.mark.parametrize(
    "rule",
    [
        np.ones(2),
        np.full((5, 2), 0.5),
        np.full((2, 3), 1 / 3),
        np.full((4, 2, 2), 0.5),
        np.ones((1, 1, 1, 1)),
    ],
)
def test_embed_policy_refuses_what_does_not_fit(rule, assert_refused):
    problem = walk_world(3).problem
    assert_refused(
        sf.InvalidPolicy,
        r"fits no environment behind Problem\(S=3, A=2, H=3",
        sf.embed_policy,
        problem,
        rule,
    )


# ---- our worlds become environments


@pytest.mark.parametrize("name", sorted(sf.FAMILIES))
def test_every_family_passes_gymnasiums_own_check(name):
    """The check asks for the bare environment: of a wrapped one it warns that wrappers may hide
    things.
    """
    env = gymnasium.make(f"{HERE}:{env_id(name)}")
    check_env(env.unwrapped)
    assert isinstance(env.unwrapped, TabularEnv)
    assert sf.from_gymnasium(env, horizon=env.unwrapped.model.H) is env.unwrapped.model
    assert env.unwrapped.model.name == name


def test_gymnasiums_check_would_find_a_fault(assert_refused):
    """Control for the test above: it only warns of many faults, and here warnings are errors."""
    env = gymnasium.make(f"{HERE}:Trap-v0").unwrapped
    env.observation_space = Discrete(1)  # the good and the bad end are outside
    assert_refused(UserWarning, "not within the observation space", check_env, env)


def test_sizes_are_chosen_in_make(assert_refused):
    env = gymnasium.make(f"{HERE}:Random-v0", S=3, A=2, H=4, seed=7)
    assert env.observation_space == Discrete(3)
    assert env.action_space == Discrete(2)
    assert_array_equal(env.unwrapped.model.P, sf.random_mdp(3, 2, 4, seed=7).P)
    assert_refused(
        sf.InvalidSetting,
        "World 'river-swim' has no K",
        gymnasium.make,
        f"{HERE}:RiverSwim-v0",
        K=3,
    )


def test_an_episode_of_our_worlds(assert_refused):
    """Rewards in the world's own units, cut after H steps, the same with the same seed, never
    played past its end.
    """
    env = gymnasium.make(f"{HERE}:Offers-v0").unwrapped
    model = env.model
    assert model.problem.units != sf.Units()

    def episode(seed):
        s, info = env.reset(seed=seed)
        assert (s, info) == (model.s1, {})
        rng, history = np.random.default_rng(seed), []
        for h in range(model.H):
            a = int(rng.integers(model.A))
            s_next, reward, terminated, truncated, _ = env.step(a)
            assert model.P[h, s, a, s_next] > 0
            history.append((s, a, s_next, reward))
            assert (terminated, truncated) == (False, h == model.H - 1)
            s = s_next
        return history

    history = episode(0)
    assert history == episode(0)
    assert history != episode(1)
    earned = sum(reward for *_, reward in history)
    assert earned == pytest.approx(sum(model.r[h, s, a] for h, (s, a, _, _) in enumerate(history)))
    assert_refused(sf.InvalidModel, rf"had its {model.H} steps\. Call reset", env.step, 0)


@pytest.mark.parametrize("action", [-1, 2, 0.5, "0", None])
def test_our_worlds_refuse_an_action_that_does_not_exist(action, assert_refused):
    env = gymnasium.make(f"{HERE}:Trap-v0").unwrapped
    env.reset(seed=0)
    assert_refused(sf.InvalidModel, r"expected one of 0..1", env.step, action)
    assert env.step(np.int64(1))[0] in (1, 2)


def test_our_worlds_have_one_horizon():
    no_world(
        r"This world has 2 steps, not 3\. Use horizon=2",
        f"{HERE}:Trap-v0",
        horizon=3,
    )
