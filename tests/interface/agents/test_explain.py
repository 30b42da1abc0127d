"""plan.explain(): how delta is spent, which evidence certified, which pairs bind, what is taken
on trust.
"""

import re

import numpy as np
import pytest

import surefoot as sf
from edited import edit
from kernel_values import plan_values
from surefoot.bounds.binding import binding_pairs

ON_TRUST = "Taken on trust, checked by nobody:"


@pytest.fixture(scope="module")
def lake():
    world = sf.from_gymnasium("FrozenLake-v1", horizon=20).with_support()
    return world, 0.8 * sf.solve(world).policy + 0.2 / world.A


def test_every_premise_stands_beside_the_certificate(lake):
    world, baseline = lake
    agent = sf.EpsMix(world.problem, baseline, 0.01, delta=0.1, pooled=True, returns=sf.Returns())
    text = agent.plan(sf.simulate(world, agent, 300, seed=0).counts).explain()
    certificate, premises = text.split(ON_TRUST)
    assert "Certified: on an event of probability at least 0.9" in certificate
    for words in (
        "0.05 on 44 balls, ",
        "0.05 on the returns",
        "by the model",
        "whole baseline episodes, which lie in [0, 1]",
        "visits",
    ):
        assert words in certificate
    for words in (
        "do not depend on the step",
        "mask",
        "by next state, are as declared",
        "before they began",
        "coin",
    ):
        assert words in premises
    assert "the user asserts" not in text
    assert "no evidence" not in text


def test_returns_that_are_no_evidence_are_said_to_be_none(lake):
    """Those that are known by their number and sum alone, not one by one."""
    world, baseline = lake
    agent = sf.EpsMix(world.problem, baseline, 0.01, pooled=True)
    counts = sf.simulate(world, agent, 50, seed=0).counts
    n = counts.spread_episodes
    assert (
        f"by the returns of {n} whole baseline episodes, which lie in [0, 1]\n"
        in agent.plan(counts).explain()
    )
    counts.baseline_returns += np.array([1234, 2**20])
    said = (
        f"by the returns of {n} whole baseline episodes, which lie in [0, 1] (1,234 more are "
        f"no "
        "evidence"
    )
    assert said in agent.plan(counts).explain()


def test_what_would_prove_more_is_said_where_it_is_not_yet_used(lake):
    world, baseline = lake
    counts, pooled = (sf.Counts.zeros(world.problem, pooled=flag) for flag in (False, True))
    plain = sf.StepMix(world.problem, baseline, 0.01, returns=None).plan(counts).explain()
    for words in ("returns=sf.Returns()", "pooled=True", "sf.EpsMix, if the floor"):
        assert words in plain.split(ON_TRUST)[0]
    all_of_it = sf.EpsMix(world.problem, baseline, 0.01, pooled=True).plan(pooled)
    assert all_of_it.source == "baseline"
    assert "What would prove more" not in all_of_it.explain()
    optimistic = sf.StepMix(world.problem, baseline, 0.0, returns=None).plan(counts)
    assert optimistic.source == "optimistic"
    assert "What would prove more" not in optimistic.explain()


def test_trust_is_said_and_never_called_certified(lake):
    world, baseline = lake
    agent = sf.StepMix(world.problem, baseline, 0.01, pooled=True)
    text = agent.plan(sf.Counts.zeros(world.problem, pooled=True)).explain()
    assert "Trusted, not certified" in text
    assert "Certified:" not in text
    assert "the baseline is at or above the floor" in text.split(ON_TRUST)[1]


def test_a_bonus_scaled_by_hand_is_not_certified():
    """And no number stands there as if it were proved."""
    world = sf.world("trap")
    agent = sf.StepMix(world.problem, world.baseline, 0.6, bounds=sf.KL(scale=0.5))
    text = agent.plan(sf.Counts.zeros(world.problem)).explain()
    assert "NOT CERTIFIED: the bonus was scaled by 0.5" in text
    assert "at least" not in text.split(ON_TRUST)[0]
    assert "certified value" not in text


def test_what_real_problems_bring_is_listed():
    rng = np.random.default_rng(0)
    world = sf.TabularMDP(
        rng.dirichlet(np.ones(3), size=(3, 2)),
        rng.random((3, 2)),
        H=3,
        start=[0.5, 0.5, 0.0],
        random_rewards=True,
    )
    problem = world.problem.forget(rewards=True, start=True)
    agent = sf.EpsMix(problem, sf.uniform(3, 3, 2), sf.Relative(0.1), pooled=True)
    run = sf.simulate(world, agent, 50, seed=0)
    text = agent.plan(run.counts).explain()
    assert "on 13 balls, " in text and "(dynamics, rewards, start)" in text  # 6 + 6 + 1
    assert "90 % of the baseline" in text
    assert "every reward lies in [0, 1] and has a fixed mean" in text
    assert "unknown but fixed" in text
    logged = sf.Counts.from_log(
        problem, [sf.Episode([0, 1, 2, 0], [0, 1, 0], [0.0, 1.0, 0.0])], pooled=True
    )
    assert "the log is complete" in agent.plan(logged).explain()


def test_rewards_are_called_known_only_where_somebody_declared_some():
    """What is known of an added state (its rewards are 0) was declared by nobody."""
    states = {
        "support": np.array([[[1, 1], [1, 1]], [[0, 1], [0, 1]]], dtype=bool),
        "ended_state": 1,
        "H": 2,
    }
    for mask, declared in (([[1, 1], [0, 0]], False), ([[1, 0], [0, 0]], True)):
        problem = sf.Problem(
            np.zeros((2, 2)), unknown=np.array(mask, dtype=bool), stationary=True, **states
        )
        text = (
            sf.StepMix(problem, sf.uniform(2, 2, 2), 0.5).plan(sf.Counts.zeros(problem)).explain()
        )
        assert "every reward lies in [0, 1] and has a fixed mean" in text
        assert ("are as declared" in text) == declared


def test_after_a_hand_over_nobody_is_told_that_the_baseline_wrote_the_log(tmp_path):
    world = sf.world("offers")
    sf.sample_log(world, world.baseline, 200, tmp_path / "log.parquet", seed=0)
    log = sf.count_log(tmp_path / "log.parquet", reward_range=(-1, 10), states=4, actions=3)
    problem = log.problem("as logged", start=0)
    agent, counts = sf.hand_over(sf.robust_vi(log.counts, problem, 0.05), 60.0, counts=log.counts)
    assert "with_logged_returns" not in agent.plan(counts).explain()
    mine = sf.StepMix(problem, world.baseline, 60.0)
    assert "with_logged_returns" in mine.plan(log.counts).explain()  # control


def test_the_pairs_that_bind_are_those_whose_data_help():
    """Losses add up to about what the certificate is below the estimate, and the largest is
    where data help most.
    """
    world = sf.world("dosing")
    agent = sf.StepMix(world.problem, world.baseline, world.suggested_floor, delta=0.1)
    counts = sf.simulate(world, agent, 500, seed=0).counts
    known = (agent.bounds, world.problem, counts, agent.delta_prime, agent.baseline)
    V_low = plan_values(*known)[-1].V_low
    found = binding_pairs(
        agent.problem, counts, agent.evidence(counts).model, agent.baseline, V_low
    )
    assert [b.cost for b in found] == sorted((b.cost for b in found), reverse=True)

    def lower_with_more(binding):
        more = counts.copy()
        more.origin = None  # what if there were more data here: no counts of whole episodes
        place = binding.step, binding.state, binding.action
        edit(more, lambda n_sas: np.multiply(n_sas[place], 4, out=n_sas[place]))
        return agent.plan(more).grounds.by_model

    gains = [
        lower_with_more(binding) - agent.plan(counts).grounds.by_model
        for binding in (found[0], found[-1])
    ]
    assert gains[0] > 0
    assert gains[0] > 0.5 * gains[1]


def test_a_plan_of_somebody_else_says_so():
    plan = sf.Plan(sf.uniform(1, 1, 2), "baseline", 1, 0.0, 0.0, 1.0, [0.0], "trusted")
    assert "says no more" in plan.explain()
    assert re.search(r"Plan\(baseline, trusted", plan.explain())


def test_a_value_that_equals_the_floor_is_said_to_be_the_floor():
    """A mixture is worth its floor, 4.2318367: to six digits 4.23184, and never rounded up 4.23183.
    Of the two nobody should see one for the value, and the other for the floor.
    """
    world = sf.world("dosing")
    agent = sf.EpsMix(world.problem, world.baseline, 4.2318367, delta=0.1, pooled=True)
    plan = agent.plan(sf.simulate(world, agent, 300, seed=0).counts)
    assert plan.source == "mixture" and plan.certified and plan.lower == 4.2318367
    assert "this is worth at least the floor of 4.23183. " in plan.explain()
    assert "4.23184" not in plan.explain()
