"""The checks that users point at their own code: each planted fault is found, and good ones are
left in peace.
"""

import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf
from surefoot.agents.settings import AgentSettings
from surefoot.run.by_name import build_agent
from surefoot.worlds.exact import value_of
from surefoot.worlds.gymnasium import env_id


class Bandit(gymnasium.Env):
    """Two states. Action 0 stays and pays 0; action 1 moves on with 0.7 and pays 1 for it. Ends
    never.
    """

    observation_space = Discrete(2)
    action_space = Discrete(2)

    def __init__(self, shown=True, does=0.7):
        """`does` is what it does; 0.7 is what it says."""
        self.does = does
        if shown:
            self.P = {
                s: {0: [(1.0, s, 0.0, False)], 1: [(0.7, 1 - s, 1.0, False), (0.3, s, 0.0, False)]}
                for s in (0, 1)
            }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = 0
        return self.s, {}

    def step(self, action):
        moves = action == 1 and self.np_random.random() < self.does
        self.s = 1 - self.s if moves else self.s
        return self.s, float(moves), False, False, {}


def errors(findings):
    return [finding.text for finding in findings if finding.level == "error"]


def assert_found(findings, text):
    """One error, and this one; the verdict says so."""
    found = errors(findings)
    assert len(found) == 1, findings
    assert text in found[0]
    assert not findings.ok
    assert "not usable as it is" in str(findings)
    assert f"error: {found[0]}" in str(findings)


def assert_quiet(findings):
    assert errors(findings) == []
    assert findings.ok
    assert str(findings).splitlines()[0].endswith(": fine")


# ---- environments


@pytest.mark.parametrize("shown", [True, False])
def test_a_good_environment_is_left_in_peace(shown):
    for seed in range(5):
        assert_quiet(sf.check_world(Bandit(shown), seed=seed))


@pytest.mark.parametrize(
    "name",
    ["FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4"],
)
def test_gymnasiums_own_environments_are_left_in_peace(name):
    findings = sf.check_world(name)
    assert_quiet(findings)
    assert ("Episodes start in several states" in str(findings)) == (name == "Taxi-v4")
    assert ("No time limit" in str(findings)) == name.startswith("Cliff")


@pytest.mark.parametrize("name", sorted(sf.FAMILIES))
def test_our_worlds_are_left_in_peace(name):
    world = sf.world(name)
    assert_quiet(sf.check_world(world))
    findings = sf.check_world(f"surefoot.worlds.gymnasium:{env_id(name)}")
    assert_quiet(findings)
    assert f"the horizon is {world.H}" in str(findings)
    assert "any horizon" not in str(findings)
    assert "declared reward table" not in str(findings)


@pytest.mark.parametrize("does", [0.5, 0.0, 1.0])
def test_an_environment_that_does_not_do_what_its_model_says(does):
    assert_found(sf.check_world(Bandit(does=does)), "but P says")


@pytest.mark.parametrize(
    ("action", "state", "reward", "rows"),
    [
        # says it pays 2, and pays 1
        (1, 1, 1, [(0.7, 0, 2.0, False), (0.3, 1, 0.0, False)]),
        # says it ends, and does not
        (0, 0, 0, [(1.0, 0, 0.0, True)]),
    ],
)
def test_an_outcome_that_the_model_excludes(action, state, reward, rows):
    env = Bandit()
    env.P[state][action] = rows
    words = f"Action {action} in state {state} led to state 0 with reward {reward}, which P says is"
    assert_found(sf.check_world(env), words)


def test_findings_use_the_environments_own_numbers():
    class Shifted(Bandit):
        observation_space = Discrete(2, start=5)
        action_space = Discrete(2, start=7)

        def __init__(self):
            super().__init__()
            self.P = {
                s + 5: {
                    a + 7: [(p, to + 5, paid, ends) for p, to, paid, ends in rows]
                    for a, rows in actions.items()
                }
                for s, actions in self.P.items()
            }

        def reset(self, *, seed=None, options=None):
            s, info = super().reset(seed=seed)
            return s + 5, info

        def step(self, action):
            s, *rest = super().step(action - 7)
            return s + 5, *rest

    assert_quiet(sf.check_world(Shifted()))
    env = Shifted()
    env.P[6][8] = [(1.0, 5, 1.0, True)]
    assert_found(sf.check_world(env), "Action 8 in state 6 led to state ")


def test_time_limits_are_noted():
    """Whether the environment was made by id or wrapped by hand."""
    limited = gymnasium.wrappers.TimeLimit(Bandit(), 30)
    assert "A time limit of 30 steps" in str(sf.check_world(limited))
    assert "A time limit of 100 steps" in str(sf.check_world("FrozenLake-v1"))
    assert "No time limit" in str(sf.check_world(Bandit()))


def test_an_environment_that_ignores_its_seed():
    class Deaf(Bandit):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=None)

    for shown in (True, False):
        assert_found(
            sf.check_world(Deaf(shown)), "The same seed and actions gave two different histories"
        )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rewards_that_are_no_numbers(bad):
    class Broken(Bandit):
        def step(self, action):
            s, reward, *rest = super().step(action)
            return s, (bad if reward else 0.0), *rest

    assert_found(sf.check_world(Broken(shown=False)), f"is {bad}, expected a finite")
    env = Bandit()
    env.P[1][1] = [(0.7, 0, bad, False), (0.3, 1, 0.0, False)]
    assert not sf.check_world(env).ok


@pytest.mark.parametrize(
    ("P", "text"),
    [
        ([(0.6, 1, 0.0, False)], "sums to 0.6"),
        (None, "is missing or not a list"),
    ],
)
def test_a_model_that_is_none(P, text):
    env = Bandit()
    env.P[0][1] = P
    assert_found(sf.check_world(env), text)


def test_starts_that_nobody_declared():
    class Scattered(Bandit):
        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.s = int(self.np_random.integers(2))
            return self.s, {}

    assert_found(sf.check_world(Scattered()), "does not say how likely each is")
    env = Scattered()
    env.initial_state_distrib = [0.5, 0.5]
    assert_quiet(sf.check_world(env))


@pytest.mark.parametrize("method", ["reset", "step"])
def test_an_environment_that_raises_is_a_finding(method):
    def fail(*_, **__):
        raise ZeroDivisionError("by zero")

    env = Bandit(shown=False)
    setattr(env, method, fail)
    assert_found(sf.check_world(env), "reset() or step() raised ZeroDivisionError: by zero")


def test_a_check_of_an_environment_changes_nothing():
    env = Bandit()
    before = copy.deepcopy(env.P)
    first, second = sf.check_world(env), sf.check_world(env)
    assert before == env.P
    assert list(first) == list(second)
    assert len(list(first)) == len(first) == 2


# ---- worlds


def test_a_world_with_a_floor_above_its_baseline():
    P, r = np.ones((1, 1, 2, 1)), np.array([[[0.2, 0.8]]])
    kept = sf.TabularMDP(P, r, baseline=[[[0.5, 0.5]]], suggested_floor=0.4)
    assert_quiet(sf.check_world(kept))
    broken = sf.TabularMDP(P, r, baseline=[[[0.5, 0.5]]], suggested_floor=0.6)
    assert_found(sf.check_world(broken), "baseline is worth 0.5, below the floor of 0.6")


# ---- agents


@pytest.fixture(scope="module")
def world():
    return sf.world("random", S=4, A=2, H=3, seed=0, stationary=True)


@pytest.mark.parametrize("name", sorted(sf.AGENTS))
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_our_agents_are_left_in_peace(name, pooled, scale, world):
    bounds = sf.Bernstein(scale)
    value = value_of(world, world.baseline)
    settings = AgentSettings(
        world.baseline, 0.1, value, 1000, delta=0.05, bounds=bounds, pooled=pooled
    )
    agent = build_agent(name, world.problem, settings)
    for seed in range(3):
        findings = sf.check_agent(agent, seed=seed)
        assert_quiet(findings)
        assert ("NOT CERTIFIED" in str(findings)) == (scale != 1.0)


@pytest.mark.parametrize("family", sorted(sf.FAMILIES))
def test_our_agents_are_left_in_peace_in_every_family(family):
    world = sf.world(family)
    assert_quiet(
        sf.check_agent(sf.StepMix.paper(world.problem, world.baseline, world.suggested_floor))
    )


class Own:
    """An agent of one's own: it plays at random and promises nothing. `spoil` plants a fault in
    its plan.
    """

    pooled, promise, floor = False, "no floor promised", None

    def __init__(self, world, spoil=lambda fields, counts: None):
        self.problem, self.spoil = world.problem, spoil

    def plan(self, counts):
        fields = {
            "policy": sf.uniform(self.problem.H, self.problem.S, self.problem.A),
            "source": "optimistic",
            "h": 0,
            "rho": 1.0,
            "lower": 0.0,
            "upper": float(self.problem.H),
            "candidates": [0.0],
            "safety": "no floor",
        }
        fields.update(self.spoil(fields, counts) or {})
        return sf.Plan(**fields)


def test_an_agent_of_ones_own_is_left_in_peace(world):
    assert_quiet(sf.check_agent(Own(world)))


@pytest.mark.parametrize("name", ["problem", "floor", "pooled", "promise", "plan"])
def test_an_agent_that_lacks_something(name, world):
    parts = {
        "problem": world.problem,
        "floor": None,
        "pooled": False,
        "promise": "no floor promised",
        "plan": Own(world).plan,
    }
    assert_quiet(sf.check_agent(type("Whole", (), parts)()))
    del parts[name]
    assert_found(
        sf.check_agent(type("Partial", (), parts)()), f"It is not an agent: it lacks {name}. See"
    )


def test_an_agent_that_was_given_the_world(world):
    agent = Own(world)
    agent.problem = world
    assert_found(sf.check_agent(agent), "Its problem is a TabularMDP, expected a Problem")


def test_an_agent_that_pools_what_must_not_be_pooled():
    agent = Own(sf.random_mdp(3, 2, 3, seed=0))
    agent.pooled = True
    assert_found(sf.check_agent(agent), "does not say it is stationary")


def test_an_agent_that_changes_the_counts(world):
    def greedy(fields, counts):
        counts.played[0, 0, 0] += 1

    assert_found(sf.check_agent(Own(world, greedy)), "plan() changed the counts")


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fields, counts: {"policy": RNG.dirichlet(np.ones(2), size=(3, 4))},
        lambda fields, counts: {
            "policy": sf.EpisodicMixture(
                fields["policy"], RNG.dirichlet(np.ones(2), size=(3, 4)), 0.5
            )
        },
        lambda fields, counts: {"lower": RNG.random()},
    ],
)
def test_an_agent_that_is_random(spoil, world):
    """In its policy alone, or in what it says of it."""
    assert_found(sf.check_agent(Own(world, spoil)), "Two plans from the same counts differ")


@pytest.mark.parametrize(
    ("floor", "lower", "upper", "text"),
    [
        (0.5, 0.0, 3.0, "is labelled certified, but its lower value is 0"),
        # above the floor, but no such policy exists in the world that the data come from
        (0.5, 2.9, 3.0, "certified to be worth 2.9, but is worth"),
        (0.5, 0.5, 0.6, "says no policy is worth more than 0.6"),
        (None, 0.5, 3.0, "is labelled certified"),  # there is nothing to certify
        (0.5, 0.5, 3.0, None),  # control: true of these data, by luck
    ],
)
def test_an_agent_that_lies_about_being_certified(floor, lower, upper, text, world):
    said = {"lower": lower, "upper": upper, "safety": "certified"}
    agent = Own(world, lambda fields, counts: said)
    agent.floor, agent.promise = floor, "certified at delta = 0.05"
    findings = sf.check_agent(agent)
    assert findings.ok is (text is None)
    assert all(text in found for found in errors(findings))
    if floor is not None:
        # before, after 1, after 31 episodes
        assert len(errors(findings)) == 3 * (text is not None)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"policy": np.full((3, 4, 2), 0.4)}, "plan() raised InvalidPolicy"),
        ({"policy": np.full((2, 4, 2), 0.5)}, "plan() raised InvalidPolicy"),
        ({"h": 4}, "has h = 4, expected a step in 0..3"),
        ({"lower": 2.0, "upper": 1.0}, "has lower 2 above upper 1"),
        ({"lower": np.nan}, "has lower nan above upper 3"),
    ],
)
def test_a_plan_that_is_none(fields, text, world):
    findings = sf.check_agent(Own(world, lambda plan, counts: fields))
    assert not findings.ok
    assert text in errors(findings)[0]


def test_an_agent_that_raises_or_answers_nothing_is_a_finding(world):
    failing = Own(world, lambda fields, counts: 1 / int(counts.n_sas.sum()))
    assert_found(sf.check_agent(failing), "plan() raised ZeroDivisionError")
    silent = Own(world)
    silent.plan = lambda counts: None
    assert_found(sf.check_agent(silent), "plan() raised InvalidSetting")


def test_a_splice_agent_with_a_plan_of_its_own_is_noted(world):
    class Mine(sf.StepNoMix):
        def plan(self, counts):
            return super().plan(counts)

    for kind, noted in ((Mine, True), (sf.StepNoMix, False)):
        agent = kind(world.problem, world.baseline, 0.1)
        assert ("It plans by itself" in str(sf.check_agent(agent))) is noted
