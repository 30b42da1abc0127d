"""Whatever somebody gives for an argument of a public name: it is taken, or refused in words."""

import inspect
import itertools
import math
from contextlib import suppress

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf
from surefoot.base import validation

ODD = (
    None,
    float("nan"),
    float("inf"),
    -float("inf"),
    -1,
    "",
    [],
    {},
    object(),
    True,
    1j,
    [[1], [1, 2]],
    9e307,
    -9e307,
    1.7e308,
    5e-324,
    1e30,
)
HUGE = (2**63, 10**400)
ENDLESS = ("learn", "guard_env", "simulate_guard", "simulate")  # so many episodes would be played


class Coin(gymnasium.Env):
    """One step, which pays `pay`."""

    observation_space, action_space = Discrete(1), Discrete(2)

    def __init__(self, pay=0.5):
        self.pay = pay

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, self.pay, True, False, {}


WORLD = sf.world("trap")
PROBLEM, BASELINE = WORLD.problem, WORLD.baseline
LIVE = sf.from_gymnasium(Coin(), horizon=1, reward_range=(0, 1), start=0)
AGENT = sf.EpsMix(PROBLEM, BASELINE, floor=0.1)
LEARNER = sf.EpsMix(LIVE, sf.uniform(1, LIVE.S, 2), floor=0.1)
GUARD = sf.Guard(floor=0.4, low=0.0, high=1.0)
FLOOR = {"problem": PROBLEM, "baseline": BASELINE, "floor": 0.1}
RUN = {"episodes": 3, "seed": 0}
ACTS = {"baseline": lambda _: 0, "candidate": lambda _: 1}
CALLS = {
    "Guard": (sf.Guard, {"floor": 0.4, "low": 0.0, "high": 1.0}),
    "StepMix": (sf.StepMix, FLOOR),
    "EpsMix": (sf.EpsMix, FLOOR),
    "StepNoMix": (sf.StepNoMix, FLOOR),
    "BPIUCBVI": (sf.BPIUCBVI, {"problem": PROBLEM}),
    "UCBVI": (sf.UCBVI, {"problem": PROBLEM, "episodes": 5}),
    "ConservativeUCBVI": (sf.ConservativeUCBVI, {**FLOOR, "baseline_value": 0.5}),
    "Problem": (sf.Problem, {"r": np.zeros((2, 2)), "H": 2}),
    "TabularMDP": (sf.TabularMDP, {"P": np.full((2, 2, 2), 0.5), "r": np.zeros((2, 2)), "H": 2}),
    "Units": (sf.Units, {"low": 0.0, "high": 1.0}),
    "Outcomes": (sf.Outcomes, {"returns": [0.5], "probabilities": [1.0]}),
    "Below": (sf.Below, {"amount": 1.0}),
    "Relative": (sf.Relative, {"max_loss": 0.1}),
    "Learner": (sf.Learner, {"agent": LEARNER, "seed": 0}),
    "learn": (sf.learn, {"env": Coin(), "agent": LEARNER, **RUN}),
    "simulate": (sf.simulate, {"world": WORLD, "agent": AGENT, **RUN}),
    "guard_env": (sf.guard_env, {"env": Coin(), "guard": GUARD, **ACTS, **RUN}),
    "simulate_guard": (
        sf.simulate_guard,
        {
            "guard": GUARD,
            "baseline": sf.Outcomes([0.5], [1.0]),
            "candidates": sf.Outcomes([0.6], [1.0]),
            **RUN,
        },
    ),
    "from_gymnasium": (
        sf.from_gymnasium,
        {"env": Coin(), "horizon": 1, "reward_range": (0, 1), "start": 0},
    ),
    "embed_policy": (sf.embed_policy, {"problem": LIVE, "rule": np.full((1, 2), 0.5)}),
    "FlatDiscrete": (sf.FlatDiscrete, {"env": Coin()}),
    "random_mdp": (sf.random_mdp, {"S": 2, "A": 2, "H": 2, "seed": 0}),
    "forecast": (sf.forecast, {"agent": AGENT, "world": WORLD}),
    "count_log": (sf.count_log, {"paths": "there is no such log.csv"}),
    "plot_plan": (sf.plot_plan, {"plan": AGENT.plan(sf.Counts.zeros(PROBLEM))}),
    "plot_run": (sf.plot_run, {"run": sf.simulate(WORLD, AGENT, 3, 0)}),
    "plot_returns": (sf.plot_returns, {"runs": sf.simulate(WORLD, AGENT, 3, 0)}),
    "save_policy": (sf.save_policy, {"path": "", "policy": BASELINE}),
    "load_policy": (sf.load_policy, {"path": ""}),
    "check_ledger": (sf.check_ledger, {"path": ""}),
    "Ledger": (sf.Ledger, {"path": "", "agent": AGENT}),
    "load_learner": (sf.load_learner, {"path": "", "agent": LEARNER}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_is_taken_or_refused_in_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, given = CALLS[name]
    parameters = [p for p in inspect.signature(call).parameters.values() if p.kind != p.VAR_KEYWORD]
    call_with(call, given)  # nothing else is wrong
    raised = {}
    for parameter in parameters:
        endless = parameter.name == "episodes" and name in ENDLESS
        for odd in ODD if endless else (*ODD, *HUGE):
            try:
                call_with(call, {**given, parameter.name: odd})
            except sf.SurefootError as refusal:
                assert len(str(refusal)) < 900
            except Exception as error:  # the test lists all of them
                raised.setdefault(parameter.name, []).append((type(odd), error))
    assert raised == {}


def call_with(call, given):
    """Call it; a file that is not there is refused, and that is fine."""
    with suppress(sf.InvalidFile, sf.InvalidLog):
        call(**given)


@pytest.mark.filterwarnings("ignore")
def test_no_range_overflows_wherever_it_is_used():
    """What is accepted is used, too: none of it overflows later."""
    ends = (9e307, -9e307, 1.7e308, 5e-324, 1e100, -1e100, 0.0, 1.0, 1e-99)
    accepted = 0
    for low, high in itertools.permutations(ends, 2):
        try:
            units = sf.Units(low, high)
        except sf.InvalidModel:
            continue
        rewards = np.array([[low, high], [low, high]])
        world = sf.TabularMDP(np.full((2, 2, 2), 0.5), rewards, H=2, units=units)
        for floor in (*ends, sf.Below(1.0), sf.Below(1e100)):
            try:
                agent = sf.EpsMix(world.problem, np.full((2, 2, 2), 0.5), floor)
            except sf.SurefootError:
                continue
            accepted += 1
            run = sf.simulate(world, agent, 3, seed=0)
            assert repr(run) and agent.plan(run.counts).explain()
    assert accepted > 50


def test_without_a_limit_a_range_is_wider_than_a_number_can_say(monkeypatch):
    """The control: the limit alone keeps the width of a range below infinity."""
    monkeypatch.setattr(validation, "LARGEST_NUMBER", math.inf)
    assert sf.Units(-9e307, 9e307).scale == math.inf


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: sf.Guard(floor=0.4, low=0.0, high=1.0, stages=None),
            r"stages is None, expected shares .*; \(\) for none",
        ),
        (
            lambda: sf.Units(-9e307, 9e307),
            r"units is -9e\+307, expected a number .* to 1e\+100\. .* Count it in larger units",
        ),
        (
            lambda: sf.Units(0.0, 5e-324),
            "units are 0 to 4.94066e-324, expected a width of at least 1e-100",
        ),
        (
            lambda: sf.Guard(floor=0.0, low=-9e307, high=9e307),
            r"low is -9e\+307, expected a number .* to 1e\+100",
        ),
        (
            lambda: sf.StepMix(PROBLEM, BASELINE, 9e307),
            r"floor is 9e\+307, expected a number .* to 1e\+100",
        ),
        (lambda: sf.guard_env(Coin(), None, **ACTS, **RUN), r"guard is None, expected sf\.Guard"),
        (lambda: sf.save_learner(AGENT, "learner.npz"), "Expected a learner, .* found EpsMix"),
        (
            lambda: sf.Ledger("a.ledger", AGENT).write(None),
            "was not made by the agent of the ledger",
        ),
        (
            lambda: sf.GuardLedger("a.ledger", GUARD).write(None),
            "was not made by the guard of the ledger",
        ),
        (lambda: sf.load_policy(None), "A file is named None, expected a text"),
        (
            lambda: sf.UCBVI(PROBLEM, episodes=10**5000),
            "episodes is a number of 16610 bits, expected an integer >= 1",
        ),
    ],
)
def test_a_refusal_says_what_was_expected(make, words, assert_refused):
    assert_refused(sf.SurefootError, words, make)


@pytest.mark.parametrize("size", [1.5, 9e307])
def test_what_was_observed_is_judged_by_its_range_however_large_it_is(size, assert_refused):
    """A setting may be refused and given anew; an episode that is left out because of its reward
    proves nothing.
    """
    learner = sf.Learner(LEARNER, seed=0, absorbing_state=1)
    learner.begin()
    learner.act(0)
    assert_refused(
        sf.InvalidEpisode, "outside the declared range", learner.observe, 0, size, terminated=True
    )
    assert learner.counts.refused == 1
    state, ticket = GUARD.draw(GUARD.begin(), GUARD.plan(GUARD.begin()), np.random.default_rng(0))
    assert "the premise is false" in GUARD.settle(state, ticket, -size).alarm
    assert_refused(sf.InvalidEpisode, "above the declared range", GUARD.settle, state, ticket, size)


@pytest.mark.parametrize("paid", [None, "much", [0.5, 0.5]])
def test_an_environment_that_pays_no_number_ends_a_guarded_run_in_words(
    paid, tmp_path, assert_refused
):
    assert_refused(
        sf.InvalidEpisode,
        r"The environment paid .*, expected a number",
        sf.guard_env,
        Coin(paid),
        GUARD,
        **ACTS,
        **RUN,
        save=tmp_path / "run.npz",
    )
    run = sf.guard_env(Coin(), GUARD, **ACTS, **RUN, save=tmp_path / "run.npz", resume=True)
    assert run.state.tickets.n == 3 and sum(run.played.values()) == 3
    # the ticket of that episode stays open
    assert np.isnan(run.state.tickets.columns.ret).sum() == 1
