"""Names of states and actions: texts say them, and nothing else knows them."""

import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf
from surefoot.model.names import Names

STATES = ["home", "cart", "paid"]
ACTIONS = ["wait", "offer 5 %"]


def shop(**names):
    """Three states and two actions; `paid` is never left."""
    P = np.array(
        [
            [[0.8, 0.2, 0.0], [0.4, 0.6, 0.0]],
            [[0.3, 0.5, 0.2], [0.1, 0.3, 0.6]],
            [[0.0, 0.0, 1.0]] * 2,
        ]
    )
    r = np.array([[0.0, 0.0], [0.5, 0.3], [0.0, 0.0]])
    world = sf.TabularMDP(P, r, H=3, support=P > 0)
    return world.with_names(**names) if names else world


def agent_of(world, floor=0.2):
    return sf.StepMix(world.problem, np.full((3, 3, 2), 0.5), floor, pooled=True)


@pytest.fixture(scope="module")
def worlds():
    return shop(states=STATES, actions=ACTIONS), shop()


def test_explanations_and_forecasts_say_the_names(worlds):
    texts = []
    for world in worlds:
        agent = agent_of(world, 0.3)
        counts = sf.simulate(world, agent, 10, seed=0).counts
        texts.append(agent.plan(counts).explain() + str(sf.forecast(agent, world=world)))
    assert "state home, action offer 5 %: " in texts[0]
    assert "state 0, action 1: " in texts[1]  # the control
    for s, state in enumerate(STATES):
        for a, action in enumerate(ACTIONS):
            texts[1] = texts[1].replace(f"state {s}, action {a}", f"state {state}, action {action}")
    assert texts[0] == texts[1]  # and nothing else differs
    pairs = [
        sf.forecast(agent_of(world, 0.3), world=world).outlooks[0].holds_back[0] for world in worlds
    ]  # which `surefoot forecast --json` prints
    assert pairs[0] == pairs[1]
    assert [(pair.state_name, pair.action_name) for pair in pairs] == [
        ("home", "offer 5 %"),
        (None, None),
    ]


def test_no_bit_and_no_identity_depends_on_them(worlds, assert_same_run):
    named, plain = worlds
    runs = [sf.simulate(world, agent_of(world), 200, seed=3) for world in worlds]
    assert_same_run(*runs)
    assert named.problem.fingerprint == plain.problem.fingerprint
    assert named.problem.same_as(plain.problem)
    assert named.problem.origin == plain.problem.origin
    agents = [agent_of(world) for world in worlds]
    assert agents[0].fingerprint == agents[1].fingerprint
    # evidence of both is of the same
    runs[0].counts.merge(sf.simulate(plain, agents[1], 5, seed=4).counts)
    crossed = [agent.plan(run.counts) for agent, run in zip(agents, reversed(runs), strict=True)]
    np.testing.assert_array_equal(crossed[0].policy, crossed[1].policy)
    # it left the baseline, so that there is something
    assert np.abs(crossed[0].policy - agents[0].pi_b).max() > 0.01
    other = sf.TabularMDP(plain.P[0], 0.9 * plain.r[0], H=3)
    # the control: a fingerprint notices rewards
    assert other.problem.fingerprint != plain.problem.fingerprint


def test_a_saved_run_goes_on_under_other_names(tmp_path, assert_same_run):
    env, path = sf.world("trap"), tmp_path / "run.npz"
    named = env.problem.with_names(actions=[f"a{i}" for i in range(env.A)])
    one, other = (
        sf.StepMix(problem, env.baseline, env.suggested_floor) for problem in (env.problem, named)
    )
    trap = "surefoot.worlds.gymnasium:Trap-v0"
    whole = sf.learn(trap, one, 30, seed=0, save=path)
    assert_same_run(whole, sf.learn(trap, other, 30, seed=0, save=path, resume=True))


def test_names_stay_with_problems_that_are_made_of_one(worlds):
    named, plain = worlds
    expected = Names(tuple(STATES), tuple(ACTIONS))
    problem = named.problem
    for made in (
        problem.forget(rewards=True, start=True, support=True),
        problem.with_coding("x"),
        pickle.loads(pickle.dumps(problem)),
        pickle.loads(pickle.dumps(named)).problem,
        named.with_support().problem,
        named.averaged().problem,
        sf.Problem(plain.r, state_names=STATES, action_names=ACTIONS),
        problem.with_names(actions=ACTIONS),  # what is left out stays
    ):
        assert made.names == expected
    assert plain.problem.names == Names()
    assert problem.with_names(states=[10, 20, 30]).names.state(1) == "20"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"state_names": ["a", "b"]}, r"^state_names has 2 names, expected 3, one per state\.$"),
        (
            {"action_names": list("abc")},
            r"^action_names has 3 names, expected 2, one per action\.$",
        ),
        (
            {"state_names": ["a", "b", "a"]},
            r"^state_names\[2\] is 'a', as is state_names\[0\]: expected each once\.$",
        ),
        ({"state_names": ["1", 2, 1]}, r"state_names\[2\] is 1, as is state_names\[0\]"),
        (
            {"state_names": "abc"},
            r"^state_names is 'abc', expected a list of 3 names, one per state\.$",
        ),
        ({"action_names": 2}, r"^action_names is 2, expected a list of 2 names"),
        (
            {"action_names": ["a", None]},
            r"^action_names\[1\] is None, expected a text or a whole number\.$",
        ),
        (
            {"action_names": ["a", ""]},
            r"^action_names\[1\] is '', expected a text or a whole number\.$",
        ),
        (
            {"action_names": ["a", True]},
            r"^action_names\[1\] is True, expected a text or a whole number\.$",
        ),
    ],
)
def test_wrong_names_are_refused_in_one_sentence(names, message, assert_refused):
    assert_refused(sf.InvalidModel, message, sf.Problem, np.zeros((3, 2)), H=3, **names)
    words = {f"{name.removesuffix('_names')}s": given for name, given in names.items()}
    for task in (shop(), shop().problem):
        assert_refused(sf.InvalidModel, message, task.with_names, **words)
    # the control
    assert sf.Problem(np.zeros((3, 2)), H=3, state_names=STATES).names.actions is None


def test_errors_name_what_they_are_about(worlds, assert_refused):
    named, _ = worlds
    learner = sf.Learner(agent_of(named), seed=0)
    learner.begin()
    a = learner.act()
    assert_refused(
        sf.InvalidEpisode,
        f"Action '{ACTIONS[a]}' in state 'home' led to state 'paid', which",
        learner.observe,
        2,
    )
    learner.observe(1)
    assert_refused(
        sf.InvalidEpisode,
        "called in state 'paid', but the last state observed is 'cart'",
        learner.act,
        2,
    )
    assert_refused(
        sf.InvalidEpisode,
        "called in state cart, but the last state observed is 'cart'",
        learner.act,
        "cart",
    )
    n_sas = np.zeros((3, 3, 2, 3), dtype=np.int64)
    n_sas[0, 0, 1, 2] = 1
    assert_refused(
        sf.InvalidCounts,
        r"Action 'offer 5 %' in state 'home' \(step 0\) led to state 'paid'",
        sf.StepMix(named.problem, np.full((3, 3, 2), 0.5), 0.2).plan,
        sf.Counts(n_sas),
    )


def test_long_names_are_shortened_in_texts():
    problem = sf.Problem(np.zeros((1, 1)), H=1, state_names=["x" * 500])
    assert problem.names.state(0) == repr("x" * 57 + "...")
    assert problem.names.states == ("x" * 500,)


class Corridor(gymnasium.Env):
    """Two rooms; the second one ends the episode."""

    observation_space, action_space = Discrete(2), Discrete(2)

    def __init__(self, shows=False):
        if shows:
            self.P = {
                0: {a: [(1.0, a, float(a), a == 1)] for a in range(2)},
                1: {a: [(1.0, 1, 0.0, True)] for a in (0, 1)},
            }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), float(action), action == 1, False, {}


class NamedCorridor(Corridor):
    """A corridor that names its rooms and what can be done."""

    state_names = ("hall", "garden")

    def get_action_meanings(self):
        """As environments of the Arcade Learning Environment do."""
        return ["STAY", "GO"]


@pytest.mark.parametrize("shows", [True, False])
def test_an_environment_that_names_something_is_heard(shows, assert_refused):
    more = {"horizon": 3} if shows else {"horizon": 3, "reward_range": (0.0, 1.0)}

    def names(env, **given):
        task = sf.from_gymnasium(env, **more, **given)
        return (task if isinstance(task, sf.Problem) else task.problem).names

    added = ("(ended)",) if shows else ("(ended)", "(start)")
    assert names(Corridor(shows)) == Names()  # the control
    for env in (NamedCorridor(shows), gymnasium.wrappers.TimeLimit(NamedCorridor(shows), 5)):
        assert names(env) == Names(("hall", "garden", *added), ("STAY", "GO"))
    given = names(NamedCorridor(shows), action_names=["stay", "go"])
    assert given == Names(("hall", "garden", *added), ("stay", "go"))
    assert names(Corridor(shows), action_names=["stay", "go"]) == Names(None, ("stay", "go"))
    assert_refused(
        sf.InvalidModel,
        "state_names has 1 names, expected 2, one per state",
        names,
        NamedCorridor(shows),
        state_names=["hall"],
    )


def test_the_labels_of_a_log_are_the_names_of_its_problem(tmp_path, assert_refused):
    rows = "".join(
        f"{k},0,a,left,0,b\n{k},1,b,left,1,a\n{k + 1},0,b,right,0,a\n{k + 1},1,a,right,1,b\n"
        for k in range(0, 40, 2)
    )
    path = tmp_path / "log.csv"
    path.write_text(f"episode,step,state,action,reward,next_state\n{rows}")
    log = sf.count_log(path, reward_range=(0, 1), states="as logged")
    problem = log.problem()
    assert problem.names == log.codebook.names == Names(("a", "b"), ("left", "right"))
    learnt = sf.robust_vi(log.counts, problem, 0.1)
    assert "state b, action left" in learnt.explain()
    assert "state b, action left" in learnt.explain(codebook=log.codebook)
    numbers = sf.Codebook(2, 2)
    assert "state 1, action 0" in learnt.explain(codebook=numbers)  # the control
    agent = sf.EpsMix(problem, np.broadcast_to([1.0, 0.0], (2, 2, 2)), 0.1)  # left alone
    words = "The log holds action 'right' in state 'b', which this baseline never"
    use = agent.with_logged_returns
    assert_refused(sf.InvalidCounts, words, use, log.counts, sf.log_returns(path))
    file = tmp_path / "baseline.npz"
    sf.Baseline.of(learnt, log.codebook).save(file)
    loaded = sf.load_baseline(file)
    assert loaded.problem.names == problem.names
    assert loaded.problem.fingerprint == problem.fingerprint
    assert loaded.problem.units.name == ""
    euros = sf.Problem(np.full((2, 2), 7.0), H=2, units=sf.Units(-5.0, 20.0, name="EUR"))
    sf.Baseline(np.full((2, 2, 2), 0.5), None, euros, sf.Codebook(2, 2), "by hand", 0).save(file)
    assert sf.load_baseline(file).problem.units.name == "EUR"
    own = sf.robust_vi(log.counts, problem.with_names(states=["A", "B"]), 0.1)
    sf.Baseline.of(own, log.codebook).save(file)
    assert sf.load_baseline(file).problem.names == Names(("A", "B"), ("left", "right"))
