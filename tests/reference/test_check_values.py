"""All nine planning cases of check-values.json, which somebody else computed, to 1e-9."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf
from planning_cases import CASES, built


@pytest.mark.parametrize("i", CASES)
def test_stepmix(check_values, i):
    case = check_values[i]
    problem, baseline, counts = built(case)
    agent = sf.StepMix.paper(problem, baseline, case["floor"], delta=case["delta"])
    plan = agent.plan(counts)
    expected = case["stepmix"]
    assert (plan.source, plan.h) == (expected["source"], expected["h"])
    assert plan.rho == pytest.approx(expected["rho_of_less_conservative"], abs=1e-9)
    assert_allclose(plan.candidates, case["bernstein"]["lower_by_h0"], atol=1e-9, rtol=0)
    assert plan.upper == pytest.approx(case["bernstein"]["upper_value"], abs=1e-9)
    if "policy_step_h" in expected and plan.source == "mixture":
        assert_allclose(plan.policy[plan.h - 1], expected["policy_step_h"], atol=1e-9, rtol=0)


@pytest.mark.parametrize("i", CASES)
def test_epsmix(check_values, i):
    case = check_values[i]
    problem, baseline, counts = built(case)
    agent = sf.EpsMix.paper(problem, baseline, case["floor"], delta=case["delta"])
    plan = agent.plan(counts)
    expected = case["epsmix"]
    assert plan.source == expected["source"]
    assert plan.rho == pytest.approx(expected["rho_of_optimistic"], abs=1e-9)
    assert_allclose(
        plan.candidates,
        [expected["lower_optimistic"], expected["lower_baseline"]],
        atol=1e-9,
        rtol=0,
    )
    assert isinstance(plan.policy, sf.EpisodicMixture)
    assert_array_equal(plan.policy.first, baseline)


@pytest.mark.parametrize("i", CASES)
def test_optimistic_actions(check_values, i):
    case = check_values[i]
    problem, _, counts = built(case)
    plan = sf.StepMix.paper(problem, case["baseline"], 0.0, delta=case["delta"]).plan(counts)
    assert plan.source == "optimistic"  # a floor of 0 is always reached
    actions = plan.policy.argmax(axis=2)
    assert_array_equal(actions, case["bernstein"]["optimistic_actions"])


def test_the_cases_cover_every_exit(check_values):
    """A control for the tests above: a suite of baseline exits would pass with almost any
    planner.
    """
    sources = [case["stepmix"]["source"] for case in check_values]
    assert set(sources) == {"baseline", "mixture", "optimistic"}
    assert sources.count("mixture") >= 5


@pytest.mark.parametrize("wrong", [{"scale": 0.5}, {"scale": 1.0000001}])
def test_a_scaled_bonus_misses_the_check_values(check_values, wrong):
    """Control: these comparisons are sharp enough to see a bonus that is off by one part in ten
    million.
    """
    missed = 0
    for case in check_values:
        problem, baseline, counts = built(case)
        plan = sf.StepMix(
            problem, baseline, case["floor"], delta=case["delta"], bounds=sf.Bernstein(**wrong)
        ).plan(counts)
        missed += not np.allclose(
            plan.candidates, case["bernstein"]["lower_by_h0"], atol=1e-9, rtol=0
        )
    assert missed >= 5
