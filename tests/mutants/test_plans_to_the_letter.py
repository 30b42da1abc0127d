"""Plans of every splice agent in a world of which nothing was seen, where each number is a short fraction.

Two steps, two states, two actions, start in state 0. At the first step action 0 leads to state 0 for sure and pays 1/4;
action 1 leads anywhere and pays 1/2. At the second step state 0 pays 5/8 or 3/4, state 1 nothing. The baseline always
takes action 0. Without data:

    pi_bar takes action 1 (1/2 + 3/4 at best) and then the 3/4, and is worth 1/2 + 0 at least     L(0) = 1/2
    pi_b first, then pi_bar: 1/4 + 3/4                                                            L(1) = 1
    pi_b: 1/4 + 5/8, and no more                                                                  L(2) = 7/8
"""

import math

import numpy as np
import pytest

from surefoot.agents.bpi_ucbvi import BPIUCBVI
from surefoot.agents.epsmix import EpsMix, epsmix
from surefoot.agents.floors import Relative
from surefoot.agents.plan import Plan, exit_taken, proved, safety
from surefoot.agents.replanning import EveryEpisode, Growth
from surefoot.agents.returns import Returns
from surefoot.agents.splice_agent import SpliceAgent
from surefoot.agents.step_no_mix import StepNoMix, step_no_mix
from surefoot.agents.stepmix import StepMix, stepmix
from surefoot.base.nodes import NODES, STAKES, WEIGHTS
from surefoot.bounds import KL, Bernstein, Certificate
from surefoot.bounds.certificate import fingerprint_of
from surefoot.errors import InvalidCounts, InvalidPolicy, InvalidSetting
from surefoot.task.counts import Counts
from surefoot.task.episode import Episode
from surefoot.task.policy import EpisodicMixture
from surefoot.task.problem import Problem
from surefoot.task.units import Rescaled, Units

UNITS = 2**20
R = np.array([[[0.25, 0.5], [0.0, 0.0]], [[0.625, 0.75], [0.0, 0.0]]])
SUPPORT = np.ones((2, 2, 2, 2), dtype=bool)
SUPPORT[0, 0, 0, 1] = False
PI_B = np.zeros((2, 2, 2))
PI_B[..., 0] = 1.0
PI_BAR = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
L = [0.5, 1.0, 0.875]
UPPER = 1.25


def problem(**settings):
    return Problem(Rescaled(R), **{"support": SUPPORT, **settings})


def build(kind, floor, **settings):
    return kind(settings.pop("problem", None) or problem(), settings.pop("baseline", PI_B), floor, **settings)


def both(agent, counts=None):
    """The kernel's plan and the readable one."""
    counts = Counts.zeros(agent.problem) if counts is None else counts
    return agent.plan(counts), agent.plan_reference(counts)


def mixed(h, rho):
    """pi_b up to row h-1, which is mixed, then pi_bar."""
    pi = np.concatenate([PI_B[:h], PI_BAR[h:]])
    if h:
        pi[h - 1] = (1 - rho) * PI_B[h - 1] + rho * PI_BAR[h - 1]
    return pi


STEPS = [  # floor; source, h, rho, lower, safety
    (0.0, "optimistic", 0, 1.0, 0.5, "certified"),
    (0.5, "optimistic", 0, 1.0, 0.5, "certified"),
    (0.75, "mixture", 1, 0.5, 0.75, "certified"),
    (0.9375, "mixture", 1, 0.125, 0.9375, "certified"),
    (1.0, "mixture", 1, 0.0, 1.0, "certified"),
    (1.125, "baseline", 2, 0.0, 0.875, "trusted"),
]


@pytest.mark.parametrize(("floor", "source", "h", "rho", "lower", "label"), STEPS)
def test_stepmix(floor, source, h, rho, lower, label):
    for plan in both(build(StepMix, floor)):
        assert (plan.source, plan.h, plan.safety) == (source, h, label)
        assert plan.rho == pytest.approx(rho, abs=1e-11)
        assert (plan.candidates.tolist(), plan.upper) == (L, UPPER)
        assert plan.lower == pytest.approx(lower, abs=1e-14)
        np.testing.assert_allclose(plan.policy, mixed(h, rho), atol=1e-14, rtol=0)
        assert plan.certified == (label == "certified")


@pytest.mark.parametrize(("floor", "source", "h", "rho", "lower", "label"), STEPS)
def test_step_no_mix(floor, source, h, rho, lower, label):
    """As StepMix, and the candidate itself."""
    lower, rho = (L[h], 0.0) if source == "mixture" else (lower, rho)
    for plan in both(build(StepNoMix, floor)):
        assert (plan.source, plan.h, plan.rho, plan.safety, plan.lower) == (source, h, rho, label, lower)
        assert (plan.candidates.tolist(), plan.upper) == (L, UPPER)
        np.testing.assert_array_equal(plan.policy, mixed(h, 0.0))


@pytest.mark.parametrize(
    ("floor", "source", "h", "rho", "lower", "label"),
    [
        (0.5, "optimistic", 0, 1.0, 0.5, "certified"),
        (0.75, "mixture", 2, 1 / 3, 0.75, "certified"),
        (0.875, "baseline", 2, 0.0, 0.875, "certified"),
        (1.0, "baseline", 2, 0.0, 0.875, "trusted"),
    ],
)
def test_epsmix(floor, source, h, rho, lower, label):
    for plan in both(build(EpsMix, floor)):
        assert (plan.source, plan.h, plan.safety) == (source, h, label)
        assert plan.rho == pytest.approx(rho, abs=1e-11)
        assert (plan.candidates.tolist(), plan.upper) == ([0.5, 0.875], UPPER)
        assert plan.lower == pytest.approx(lower, abs=1e-14)
        assert isinstance(plan.policy, EpisodicMixture) and plan.policy.rho == plan.rho
        np.testing.assert_array_equal(plan.policy.first, PI_B)
        np.testing.assert_array_equal(plan.policy.second, PI_BAR)


def test_where_nothing_else_is_said_of_the_baseline():
    """The readable versions by themselves: what the model says of pi_b is all."""
    model = build(StepMix, 0.75).model(Counts.zeros(problem()))
    for rule in (stepmix, step_no_mix):
        assert rule(model, PI_B, 1.125, KL()).candidates.tolist() == L
    assert epsmix(model, PI_B, 1.125, KL()).candidates.tolist() == [0.5, 0.875]
    assert stepmix(model, PI_B, 1.125, KL(), 1.0).candidates.tolist() == [0.5, 1.0, 1.0]


def test_a_baseline_that_is_just_at_the_floor_is_the_baseline():
    """Nothing but the asserted 3/4 reaches the floor of 3/4, with h = H and rho = 0."""
    for kind in (StepMix, StepNoMix, EpsMix):
        for plan in both(build(kind, 0.75, problem=wide(), baseline_at_least=0.75)):
            assert (plan.source, plan.h, plan.rho, plan.candidates[-1]) == ("baseline", 2, 0.0, 0.75)


def test_the_optimist_alone():
    for plan in both(BPIUCBVI(problem())):
        assert (plan.source, plan.h, plan.rho, plan.lower, plan.upper) == ("optimistic", 0, 1.0, 0.5, UPPER)
        assert (plan.candidates.tolist(), plan.safety) == ([0.5], "no floor")
        np.testing.assert_array_equal(plan.policy, PI_BAR)
    assert str(BPIUCBVI(problem()).promise) == "no floor promised"
    scaled = BPIUCBVI(problem(), bounds=KL(scale=0.5))
    assert str(scaled.promise) == "NOT CERTIFIED: bonus scaled by 0.5, and no floor promised at any scale"
    assert scaled.plan(Counts.zeros(problem())).safety == "NOT CERTIFIED"


# ---- Settings -------------------------------------------------------------------------------------------------------


def test_what_is_not_said():
    for kind in (StepMix, EpsMix, StepNoMix):
        agent = build(kind, 0.75)
        assert (agent.delta, agent.bounds, agent.pooled) == (0.05, KL(), False)
        assert agent.replan is agent.baseline_at_least is agent.certificate is agent.explorer is None
        assert agent.returns == Returns(0.5)
        assert isinstance(agent.replan_rule, Growth) and agent.replan_rule.at_least == 5
        assert agent.rule[:2] == (0.75, kind is not StepNoMix)
        assert agent.rule[2:] == (kind is EpsMix, -1.0, 0.0, 0, 0.0)
        assert agent.plans_itself
        paper = kind.paper(Problem(R), PI_B, 0.75)
        assert (paper.delta, paper.bounds, paper.pooled, paper.replan) == (0.05, Bernstein(), False, EveryEpisode())
        literal = build(kind, 0.75, problem=Problem(R), bounds=Bernstein())
        assert literal.replan_rule == EveryEpisode() and paper.returns is literal.returns is None
        said = build(kind, 0.75, problem=Problem(R), bounds=Bernstein(), returns=Returns(0.5))
        assert said.returns == Returns(0.5) and build(kind, 0.75, returns=None).returns is None
        assert build(kind, 0.75, replan=Growth(2.0)).replan_rule == Growth(2.0)
    assert build(StepMix, 0.75).bisections == 0
    optimist = BPIUCBVI(problem())
    assert (optimist.delta, optimist.bounds, optimist.pooled, optimist.replan) == (0.05, KL(), False, None)
    paper = BPIUCBVI.paper(Problem(R))
    assert (paper.delta, paper.bounds, paper.pooled, paper.replan) == (0.05, Bernstein(), False, EveryEpisode())
    assert optimist.rule == (-math.inf, False, False, -1.0, 0.0, 0, 0.0)
    assert optimist.h0.tolist() == [0]
    for kind, h0 in ((StepMix, [0, 1, 2]), (StepNoMix, [0, 1, 2]), (EpsMix, [0, 2])):
        assert build(kind, 0.75).h0.tolist() == h0


def test_how_delta_is_divided():
    """By 3(H+1) = 9 for StepMix and StepNoMix and by 4 for the others with the paper's bounds; not with KL."""
    for kind, parts in ((StepMix, 9), (StepNoMix, 9), (EpsMix, 4)):
        assert build(kind, 0.5).parts == parts
        assert kind.paper(Problem(R), PI_B, 0.5, delta=0.36).delta_prime == pytest.approx(0.36 / parts, rel=1e-15)
        assert build(kind, 0.5, delta=0.36, returns=None).delta_prime == 0.36
        assert build(kind, 0.5, delta=0.36).delta_prime == 0.18
    assert BPIUCBVI.paper(Problem(R), delta=0.36).delta_prime == pytest.approx(0.09, rel=1e-15)
    agent = build(EpsMix, 0.5, delta=0.5, returns=Returns(0.25))
    assert agent.delta_model == agent.delta_prime == 0.375
    assert build(EpsMix, 0.5, delta=0.5, returns=None).delta_model == 0.5
    assert agent.delta_in_all == 0.5


def certificate(value=0.75, delta=0.125, baseline=PI_B):
    return Certificate(value, delta, fingerprint_of(baseline, problem()))


def test_a_certificate_comes_on_top():
    agent = build(StepMix, 0.75, delta=0.25, certificate=certificate())
    assert agent.delta_in_all == 0.375
    assert (agent.proved_before, agent.known_before) == (0.75, 0.75)
    assert build(StepMix, 0.75).proved_before == build(StepMix, 0.75).known_before == -math.inf
    assert build(StepMix, 0.75, baseline_at_least=0.5).known_before == 0.5
    assert build(StepMix, 0.75, baseline_at_least=0.5).asserted == 0.5
    assert build(StepMix, 0.75, baseline_at_least=0.5).proved_before == -math.inf
    assert build(StepMix, 0.75, baseline_at_least=0.5, certificate=certificate()).known_before == 0.75
    build(StepMix, 0.75, certificate=certificate(2.0))
    for given, floor, delta, message in (
        (certificate(baseline=PI_BAR), 0.75, 0.25, "another policy"),
        (Certificate(0.75, 0.125, ""), 0.75, 0.25, "another policy"),
        (Certificate(0.75, 0.125, "zzz"), 0.75, 0.25, "another policy"),
        (certificate(delta=0.875), 0.75, 0.25, "add up to 1.125, expected less than 1"),
        (certificate(2.25), 0.75, 0.25, "value is 2.25, but returns lie in 0..2 per episode"),
        (certificate(), Relative(0.1), 0.25, "a certificate adds nothing"),
        (certificate(delta=0.75), 0.75, 0.25, "add up to 1, expected less than 1"),
        ("x", 0.75, 0.25, "certificate is 'x', expected learnt.certificate, or None"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            build(StepMix, floor, delta=delta, certificate=given)
    assert build(StepMix, 0.75, delta=0.25, certificate=certificate(delta=0.5)).delta_in_all == 0.75


def test_what_is_refused():
    for settings, message in (
        ({"returns": 5}, "returns is 5, expected sf.Returns"),
        ({"baseline_at_least": 3.0}, "baseline_at_least is 3"),
        ({"floor": Relative(0.1), "baseline_at_least": 1.0}, "baseline_at_least adds nothing"),
        ({"explorer": lambda counts: PI_B}, r"expected a function of counts and a generator, f\(counts, rng\)"),
        ({"explorer": lambda a, b: PI_B, "bounds": Bernstein(), "problem": Problem(R)}, "not for another explorer"),
        ({"floor": Relative(0.1), "problem": problem(rewards_at_least=True)}, "only what is paid at least"),
        ({"bisections": -1}, "bisections is -1"),
        ({"bisections": 1, "bounds": Bernstein(), "problem": Problem(R)}, "not proved for mixtures evaluated directly"),
        ({"floor": 2.5}, "no policy can reach it"),
        ({"delta": 1.0}, "delta is 1"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            build(StepMix, settings.pop("floor", 0.75), **settings)
    build(StepMix, 0.75, bisections=0, bounds=Bernstein(), problem=Problem(R))
    build(StepMix, 0.75, explorer=lambda counts, rng: PI_B)
    build(StepMix, 2.0)
    with pytest.raises(InvalidPolicy, match="baseline"):
        build(StepMix, 0.75, baseline=PI_B[:1])
    with pytest.raises(InvalidSetting, match="delta is 0"):
        BPIUCBVI(problem(), delta=0.0)


def test_the_promise_in_words():
    """With what is presumed of the baseline, and how well that is known."""
    given, below = {"baseline_at_least": 0.75}, {"baseline_at_least": 0.5}
    trusted = "trusted, given the baseline's value of 0.75,"
    for settings, premise, word in (
        ({}, "unknown", "certified"),
        (given, "asserted by the user", trusted),
        (below, "unknown", "certified"),
        ({"certificate": certificate(0.75)}, "certified by data", "certified"),
        ({"certificate": certificate(0.5)}, "unknown", "certified"),
        ({"certificate": certificate(0.5), **given}, "asserted by the user", trusted),
        ({"certificate": certificate(0.75), **given}, "certified by data", "certified"),  # it proves as much
    ):
        agent = build(EpsMix, 0.75, delta=0.25, **settings)
        assert agent.premise == premise
        delta = "0.375" if "certificate" in settings else "0.25"
        scope = "every episode's coin-averaged value"
        assert str(agent.promise) == f"{word} at delta = {delta} for {scope}; baseline above the floor: {premise}"
    assert build(StepMix, 0.0, **given).promise.certified  # such a floor needs no value
    assert build(StepMix, 0.5, **given).promise.baseline_value == 0.75
    assert str(build(StepMix, 0.75, bounds=KL(scale=0.5)).promise) == "NOT CERTIFIED: bonus scaled by 0.5"
    assert build(StepMix, 0.0).premise == build(StepMix, Relative(0.1)).premise == "none needed"


def test_rows_that_miss_1():
    """The most that any of baseline, explorer and known start misses."""
    off = np.array(PI_B)
    off[1, 1] = (1.0, 5e-10)
    more = np.array(PI_B)
    more[0, 1] = (1.0 - 8e-10, 0.0)
    agent = build(StepMix, 0.5, baseline=off)
    assert agent.row_sum_error(None) == pytest.approx(5e-10, rel=1e-6)
    assert agent.row_sum_error(more) == pytest.approx(8e-10, rel=1e-6)
    assert build(StepMix, 0.5).row_sum_error(PI_B) == 0.0
    several = problem(start=[0.5, 0.5 + 9e-10])
    assert build(StepMix, 0.5, problem=several).row_sum_error(None) == pytest.approx(9e-10, rel=1e-6)
    assert build(StepMix, 0.5, problem=problem(start="unknown")).row_sum_error(None) == 0.0


# ---- More evidence of the baseline ----------------------------------------------------------------------------------


def with_returns(agent, episodes=20, each=0.875, fingerprint=None, within=None):
    """So many returns of this much, spread in the range of this agent: its baseline's, or those of another."""
    counts = Counts.zeros(agent.problem)
    counts.returns_of = fingerprint or agent.fingerprint
    counts.return_range = within or agent.return_range
    for _ in range(episodes):
        counts.count_return(math.floor(each * UNITS))
    return counts


def by_hand(n, x, log_inverse):
    """The m at which sum_j w_j (1 - theta_j + theta_j x / m)^n is exp(log_inverse): n returns of x in [0, 1]."""
    below, above = 0.0, 1.0
    for _ in range(200):
        m = (below + above) / 2
        factors = zip(STAKES, WEIGHTS, strict=True)
        W = sum(w * (1 - theta + theta * x / m) ** n for theta, w in factors)
        below, above = (m, above) if math.exp(log_inverse) <= W else (below, m)
    return below


def wide():
    """Anything may follow the first action: the baseline is certified 1/4 by the model, and may return 1/4 to 7/8."""
    return problem(support=None)


NEAR = 5e-4  # a bound is found between two of 255 means: hardly below the exact one


def test_returns_are_evidence():
    """20 returns of 7/8, the most in [1/4, 7/8]. Their share of delta is 1/4 of 1/2."""
    agent = build(EpsMix, 0.5, problem=wide(), delta=0.5, returns=Returns(0.25))
    assert agent.return_range == (UNITS // 4, 5 * UNITS // 8) and agent.possible_returns.rounding == 0.0
    counts = with_returns(agent)
    low, up = agent.by_returns(counts)
    exact = 0.25 + 0.625 * by_hand(20, 1.0, math.log(8))
    assert exact - NEAR < low <= exact and up == math.inf
    assert agent.of_baseline(counts) == (low, math.inf)
    assert low > 0.75
    plan, book = both(agent, counts)
    for found in (plan, book):
        assert found.candidates == pytest.approx([0.5, low], abs=1e-9)
    assert (plan.grounds.by_model, plan.grounds.asserted) == (0.25, -math.inf)
    assert plan.grounds.by_returns == pytest.approx(low, abs=1e-9)
    assert build(EpsMix, 0.5, problem=wide(), returns=None).by_returns(counts) == (-math.inf, math.inf)
    assert agent.by_returns(with_returns(agent, 0)) == (-math.inf, math.inf)
    assert agent.by_returns(with_returns(agent, 1, 0.25)) == (0.25, math.inf)
    other = agent.by_returns(with_returns(agent, 20, 0.5))[0]  # x = (1/2 - 1/4) / (5/8) = 0.4
    exact = 0.25 + 0.625 * by_hand(20, 0.4, math.log(8))
    assert exact - NEAR < other <= exact < low
    scaled = build(EpsMix, 0.5, problem=wide(), delta=0.5, returns=Returns(0.25), bounds=KL(scale=0.5))
    exact = 0.25 + 0.625 * by_hand(20, 1.0, 0.5 * math.log(8))
    assert exact - NEAR < scaled.by_returns(counts)[0] <= exact


def test_returns_that_are_not_spread_are_no_evidence():
    """Their number and their sum, as earlier files hold them, prove nothing; those that are spread beside them do."""
    agent = build(EpsMix, 0.5, problem=wide(), delta=0.5, returns=Returns(0.25))
    counts = Counts.zeros(agent.problem)
    counts.returns_of = agent.fingerprint
    counts.baseline_returns[:] = (20, 20 * 0.875 * UNITS)
    assert agent.by_returns(counts) == (-math.inf, math.inf)
    for plan in both(agent, counts):
        assert plan.candidates.tolist() == [0.5, 0.25]
    assert agent.plan(counts).grounds.by_returns == -math.inf
    more = with_returns(agent)
    more.baseline_returns += counts.baseline_returns
    assert agent.by_returns(more) == agent.by_returns(with_returns(agent))
    assert agent.plan(more).grounds.by_returns > 0.75


def test_returns_of_nobody_are_no_evidence():
    """However they are spread: nobody says that this baseline played them. Whoever claims them says so (control)."""
    agent = build(EpsMix, 0.75, problem=wide(), delta=0.5, returns=Returns(0.25))
    counts = with_returns(agent)
    counts.returns_of = None
    for plan in both(agent, counts):
        assert plan.candidates.tolist() == [0.5, 0.25]
        assert plan.safety == "trusted"
    assert agent.plan(counts).grounds.by_returns == -math.inf
    agent.claim(counts)
    assert agent.plan(counts).safety == "certified"


def test_returns_that_cannot_vary():
    """The baseline of the first world returns 7/8 always: the span is 0."""
    agent = build(EpsMix, 0.5, returns=Returns())
    assert agent.by_returns(with_returns(agent)) == (0.875, math.inf)
    agent = build(EpsMix, Relative(0.1), returns=Returns())
    assert agent.by_returns(with_returns(agent)) == (-math.inf, 0.875)


def test_returns_of_others_are_refused():
    agent = build(EpsMix, 0.5, problem=wide(), returns=Returns())
    with pytest.raises(InvalidCounts, match="returns of another baseline"):
        agent.plan(with_returns(agent, fingerprint="other"))
    agent.plan(with_returns(agent))
    build(EpsMix, 0.5, problem=wide(), returns=None).plan(with_returns(agent, fingerprint="other"))  # not read
    for each in (0.25, 0.875):
        agent.check_counts(with_returns(agent, 10, each))
    for each in (0.25 - 1e-5, 0.875 + 1e-5):
        with pytest.raises(InvalidCounts, match=r"10 returns of .* outside the range \(0.25, 0.875\)"):
            agent.check_counts(with_returns(agent, 10, each))
    agent.check_counts(with_returns(agent, 0, 0.0, "other"))
    with pytest.raises(InvalidCounts, match="returns of another baseline"):
        agent.check_counts(with_returns(agent, 5, 0.0, "other"))  # five returns of nothing are five returns
    declared = build(EpsMix, 0.5, problem=wide(), returns=Returns(low=0.25, high=0.5))
    with pytest.raises(InvalidCounts, match=r"1 returns of .* outside the range \(0.25, 0.5\)"):
        declared.check_counts(with_returns(declared, 1, 0.75))
    declared.check_counts(with_returns(declared, 10, 0.25))
    tenths = Problem(np.full((2, 2, 2), 0.1))
    agent = build(EpsMix, 0.1, problem=tenths, returns=Returns())
    agent.check_counts(with_returns(agent, 1, 2 * math.floor(0.1 * UNITS) / UNITS))  # as they are summed: rounded down
    with pytest.raises(InvalidCounts, match="outside the range"):
        agent.check_counts(with_returns(agent, 1, 0.2))


def test_returns_in_another_range_are_refused():
    """What is spread over nodes cannot be spread anew. Where nothing is spread, no range is read."""
    agent = build(EpsMix, 0.5, problem=wide(), returns=Returns())
    low, span = agent.return_range
    for within in ((low - 1, span + 1), (low, span + 1), (low - 1, span)):
        with pytest.raises(InvalidCounts, match=r"counted in another range than this agent's \(0.25, 0.875\)"):
            agent.check_counts(with_returns(agent, 10, 0.5, within=within))
        agent.check_counts(with_returns(agent, 0, within=within))
        build(EpsMix, 0.5, problem=wide(), returns=None).check_counts(with_returns(agent, 10, 0.5, within=within))
    agent.check_counts(with_returns(agent, 10, 0.5))


def test_the_papers_bounds_refuse_logs():
    logged = Counts.from_log(Problem(R), [Episode([0, 0, 0], [0, 0])])
    with pytest.raises(InvalidCounts, match="logged episodes"):
        build(StepMix, 0.5, problem=Problem(R), bounds=Bernstein()).plan(logged)
    build(StepMix, 0.5, problem=Problem(R)).plan(logged)
    build(StepMix, 0.5, problem=Problem(R), bounds=Bernstein()).plan(Counts.zeros(Problem(R)))


@pytest.mark.parametrize(
    ("settings", "label", "lower", "last"),
    [
        ({}, "trusted", 0.25, 0.25),
        ({"baseline_at_least": 0.75}, "trusted", 0.25, 0.75),
        ({"certificate": 0.75}, "certified", 0.75, 0.75),
        ({"certificate": 0.75, "baseline_at_least": 0.875}, "trusted", 0.75, 0.875),
        ({"certificate": 0.875, "baseline_at_least": 0.75}, "certified", 0.875, 0.875),
        ({"certificate": 0.75, "baseline_at_least": 0.75}, "certified", 0.75, 0.75),
    ],
)
def test_what_the_user_asserts_is_trusted_and_a_certificate_is_not(settings, label, lower, last):
    """The floor is reached by pi_b alone, exactly at what is known of it: nothing is mixed."""
    floor = last if last > 0.25 else 0.75
    if "certificate" in settings:
        settings = settings | {"certificate": Certificate(settings["certificate"], 0.1, fingerprint_of(PI_B, wide()))}
    plan = build(EpsMix, floor, problem=wide(), **settings).plan(Counts.zeros(wide()))
    assert (plan.source, plan.safety, plan.lower) == ("baseline", label, lower)
    assert plan.candidates.tolist() == [0.5, last]


def test_a_mixture_that_rests_on_an_assertion():
    """Floor 5/8, asserted 3/4: rho = (3/4 - 5/8) / (3/4 - 1/2) = 1/2; proved is 1/2 * 1/4 + 1/2 * 1/2 = 3/8."""
    plan = build(EpsMix, 0.625, problem=wide(), baseline_at_least=0.75).plan(Counts.zeros(wide()))
    assert (plan.source, plan.safety) == ("mixture", "trusted")
    assert plan.rho == pytest.approx(0.5, abs=1e-14) and plan.lower == pytest.approx(0.375, abs=1e-14)
    # With a floor at the optimistic policy's own value nothing rests on it.
    plan = build(EpsMix, 0.5, problem=wide(), baseline_at_least=0.75).plan(Counts.zeros(wide()))
    assert (plan.source, plan.safety, plan.lower) == ("optimistic", "certified", 0.5)
    # A mixture of two candidates before pi_b does not either.
    plan = build(StepMix, 0.75, baseline_at_least=1.5).plan(Counts.zeros(problem()))
    assert (plan.h, plan.safety, plan.lower) == (1, "certified", 0.75)
    assert plan.candidates.tolist() == [0.5, 1.0, 1.5]


def test_a_declared_range_is_trusted_where_it_matters():
    for returns, floor, label in (
        (Returns(0.25), 0.75, "certified"),
        (Returns(0.25, low=0.25, high=0.875), 0.75, "trusted"),
        (Returns(0.25, low=0.25, high=0.875), 0.5, "certified"),  # the optimistic policy's
    ):
        agent = build(EpsMix, floor, problem=wide(), delta=0.5, returns=returns)
        assert agent.plan(with_returns(agent)).safety == label
    # The certificate says more than returns do: nothing rests on the range.
    known = Certificate(0.8125, 0.1, fingerprint_of(PI_B, wide()))
    agent = build(EpsMix, 0.75, problem=wide(), returns=Returns(0.25, low=0.25, high=0.875), certificate=known)
    assert agent.plan(with_returns(agent, 20, 0.5)).safety == "certified"
    # Returns say exactly as much as a certificate: the certificate is enough.
    settings = {"problem": wide(), "delta": 0.5, "returns": Returns(0.25, low=0.25, high=0.875)}
    agent = build(EpsMix, 0.75, **settings)
    low = agent.plan(with_returns(agent)).grounds.by_returns
    for value, label in ((low, "certified"), (math.nextafter(low, 0.0), "trusted")):
        agent = build(EpsMix, 0.75, **settings, certificate=Certificate(value, 0.1, fingerprint_of(PI_B, wide())))
        assert agent.plan(with_returns(agent)).safety == label


def test_how_well_the_premise_is_known_after_data():
    for settings, episodes, expected in (
        ({}, 0, "unknown"),
        ({"returns": None}, 20, "unknown"),
        ({"returns": Returns(0.25)}, 20, "certified by data"),
        ({"returns": Returns(0.25, low=0.25, high=0.875)}, 20, "asserted by the user"),
        ({"baseline_at_least": 0.75}, 0, "asserted by the user"),
        ({"baseline_at_least": 0.5}, 0, "unknown"),
        ({"certificate": Certificate(0.75, 0.1, fingerprint_of(PI_B, wide()))}, 0, "certified by data"),
        ({"bounds": KL(scale=0.5), "baseline_at_least": 0.75}, 0, "asserted by the user"),
        ({"bounds": KL(scale=0.5), "returns": Returns(0.25)}, 20, "unknown"),
    ):
        agent = build(EpsMix, 0.75, problem=wide(), **{"delta": 0.5, **settings})
        seen = with_returns(build(EpsMix, 0.75, problem=wide()) if agent.returns is None else agent, episodes)
        assert agent.plan(seen).grounds.premise == expected
    assert build(EpsMix, 0.25, problem=wide()).plan(Counts.zeros(wide())).grounds.premise == "certified by data"


# ---- Relative floors ------------------------------------------------------------------------------------------------


def test_a_relative_floor():
    """U = 7/8 of the first world. 3/4 of it is 21/32: h = 1, rho = (1 - 21/32) / (1/2) = 11/16, proved 1 - 11/32."""
    plan, book = both(build(StepMix, Relative(0.25)))
    assert plan.grounds.floor == pytest.approx(21 / 32, abs=1e-15) and plan.grounds.floor > 21 / 32
    assert pytest.approx(0.875, abs=1e-15) == plan.grounds.U
    for found in (plan, book):
        assert (found.source, found.h, found.safety) == ("mixture", 1, "certified")
        assert found.rho == pytest.approx(11 / 16, abs=1e-14)
    assert plan.lower == pytest.approx(21 / 32, abs=1e-14)
    assert plan.candidates.tolist() == L
    assert build(StepMix, Relative(0.25)).rule == (0.0, True, False, 0.25, 0.0, 0, 0.0)


def test_a_relative_floor_mixes_with_the_baseline_by_its_upper_value():
    """EpsMix, U = 7/8, give 1/4: rho = (7/8 - 21/32) / (7/8 - 1/2) = 7/12; data prove (1-rho) 7/8 + rho / 2."""
    plan, book = both(build(EpsMix, Relative(0.25)))
    for found in (plan, book):
        assert (found.source, found.h, found.safety) == ("mixture", 2, "certified")
        assert found.rho == pytest.approx(7 / 12, abs=1e-14)
    assert plan.lower == pytest.approx(5 / 12 * 0.875 + 7 / 24, abs=1e-14)
    # Where less is known of the baseline than its upper value, less is proved: 1/4 here, while U stays 7/8.
    plan, book = both(build(EpsMix, Relative(0.25), problem=wide()))
    assert plan.rho == pytest.approx(7 / 12, abs=1e-14) and book.rho == pytest.approx(7 / 12, abs=1e-14)
    assert plan.lower == pytest.approx(5 / 12 * 0.25 + 7 / 24, abs=1e-14)
    assert plan.candidates.tolist() == [0.5, 0.25]


def test_a_relative_floor_in_the_users_units():
    """Rewards of 1 to 3 in two steps: nothing is worth 2 * 1 / 2 = 1 here. 3/4 of 15/8, less 1: 13/32."""
    scaled = problem(units=Units(1.0, 3.0))
    agent = build(StepMix, Relative(0.25), problem=scaled)
    assert agent.rule == (0.0, True, False, 0.25, 1.0, 0, 0.0)
    plan = agent.plan(Counts.zeros(scaled))
    assert plan.grounds.floor == pytest.approx(13 / 32, abs=1e-15)
    model = agent.model(Counts.zeros(scaled))
    assert agent.standard(model, Counts.zeros(scaled)) == pytest.approx((13 / 32, 0.875), abs=1e-15)
    assert build(StepMix, 0.75).standard(model, Counts.zeros(scaled)) == (0.75, -math.inf)
    high = problem(units=Units(10.0, 11.0))  # nothing is worth 20 here: a quarter of that is more than 3/4 of 7/8
    assert build(StepMix, Relative(0.25), problem=high).standard(model, Counts.zeros(high)) == (0.0, 0.875)


def test_a_relative_floor_reads_the_returns():
    """Returns that are never above 1/2, declared: U is 1/2 then, and what rests on it is trusted."""
    agent = build(EpsMix, Relative(0.5), returns=Returns(low=0.0, high=0.5))
    counts = with_returns(agent, 10, 0.25)
    plan, book = both(agent, counts)
    low, U = agent.by_returns(counts)
    assert low == -math.inf  # the whole share is for the other side
    assert U > 0.25 and U <= 0.5 + 2.0**-18
    exact = 0.5 * (1 - by_hand(10, 0.5, math.log(1 / 0.025)))  # and what rounding may have taken off
    assert exact <= U < exact + NEAR
    assert plan.grounds.floor == pytest.approx(0.5 * U, abs=1e-9)
    assert agent.standard(agent.model(counts), counts) == pytest.approx((0.5 * U, U), abs=1e-12)
    assert plan.safety == "trusted" and book.source == plan.source


# ---- Explorers and bisection ----------------------------------------------------------------------------------------


def test_an_explorer_in_the_optimists_place():
    """It always takes action 1: worth 1/2 at least; after pi_b's first step 1/4 + 3/4. The upper value is the best."""
    bold = PI_B[..., ::-1]
    seen = []

    def explorer(counts, rng):
        seen.append(counts)
        return bold

    counts = Counts.zeros(problem())
    plan = build(StepMix, 0.75, explorer=explorer).plan(counts, np.random.default_rng(0))
    assert (plan.h, plan.candidates.tolist(), plan.upper) == (1, L, UPPER)
    np.testing.assert_allclose(plan.policy[0], 0.5, atol=1e-14)
    np.testing.assert_array_equal(plan.policy[1], bold[1])
    np.testing.assert_array_equal(plan.grounds.explorer, bold)
    assert seen[0] is not counts and seen[0] == counts
    with pytest.raises(InvalidSetting, match=r"call plan\(counts, rng\)"):
        build(StepMix, 0.75, explorer=explorer).plan(counts)
    assert build(StepMix, 0.75).explored(counts, None) is None
    poor = build(StepMix, 0.75, explorer=lambda counts, rng: PI_B).plan(counts, np.random.default_rng(0))
    assert (poor.candidates.tolist(), poor.upper, poor.source) == ([0.875] * 3, UPPER, "optimistic")


def test_bisections():
    """The mixture is a line here, so no larger weight is to be had; where nothing is mixed none is looked for."""
    for bisections in (0, 1, 20):
        plan = build(StepMix, 0.75, bisections=bisections).plan(Counts.zeros(problem()))
        assert plan.rho == pytest.approx(0.5, abs=1e-5)
        assert build(StepMix, 0.5, bisections=bisections).plan(Counts.zeros(problem())).rho == 1.0
        assert build(StepMix, 1.5, bisections=bisections).plan(Counts.zeros(problem())).rho == 0.0
    assert build(StepMix, 0.75, bisections=7).rule == (0.75, True, False, -1.0, 0.0, 7, 0.0)


def test_bisection_finds_what_the_line_does_not_show():
    """The first step leads anywhere. At the second, state 0 pays 1 to pi_b and 0 to the explorer, state 1 pays them 1/2
    and 3/4. Mixed there, min(1 - rho, 1/2 + rho/4) is 1/4 at rho = 3/4; the line from 1/2 to 0 says 1/2."""
    r = np.zeros((2, 2, 2))
    r[1] = [[1.0, 0.0], [0.5, 0.75]]
    settings = {"problem": Problem(r), "explorer": lambda counts, rng: PI_B[..., ::-1]}
    for bisections, rho in ((0, 0.5), (1, 0.5), (2, 0.625), (40, 0.75)):  # 3/4 itself is below by the margin
        agent = build(StepMix, 0.25, **settings, bisections=bisections)
        plan = agent.plan(Counts.zeros(agent.problem), np.random.default_rng(0))
        assert (plan.source, plan.h, plan.candidates.tolist()) == ("mixture", 2, [0.0, 0.0, 0.5])
        assert plan.rho == pytest.approx(rho, abs=1e-11)
        # Where the baseline itself is at the floor it is played, and nothing else is looked for.
        agent = build(StepMix, 0.5, **settings, bisections=bisections)
        plan = agent.plan(Counts.zeros(agent.problem), np.random.default_rng(0))
        assert (plan.source, plan.h, plan.rho) == ("baseline", 2, 0.0)


# ---- What a plan keeps ----------------------------------------------------------------------------------------------


def test_the_grounds_of_a_plan():
    counts = Counts.zeros(problem())
    agent = build(StepMix, 0.75)
    grounds = agent.plan(counts).grounds
    assert grounds.agent is agent and grounds.counts is not counts and grounds.counts == counts
    assert (grounds.floor, grounds.by_model, grounds.by_returns, grounds.asserted) == (
        0.75,
        0.875,
        -math.inf,
        -math.inf,
    )
    np.testing.assert_array_equal(grounds.bolder, PI_BAR)
    np.testing.assert_array_equal(grounds.explorer, PI_BAR)
    assert grounds.V_low[:, 0].tolist() == [0.5, 0.75, 0.0]
    grounds = build(StepMix, 1.125).plan(counts).grounds  # of the candidate before the baseline
    np.testing.assert_array_equal(grounds.bolder, mixed(1, 0.0))
    assert grounds.V_low[0, 0] == 1.0
    grounds = build(StepMix, 0.5).plan(counts).grounds
    np.testing.assert_array_equal(grounds.bolder, PI_BAR)
    assert build(StepMix, 0.75, baseline_at_least=0.5).plan(counts).grounds.asserted == 0.5


def test_an_upper_value_of_what_is_paid_at_least_is_unknown():
    assert build(StepMix, 0.75, problem=problem(rewards_at_least=True)).plan(Counts.zeros(problem())).upper == 2.0


def test_the_margin_of_the_papers_bounds_is_taken_off_at_the_end():
    """One state, one action, a reward of 1/2, no bonus: 1/2 - 1e-12, and nothing less than 0."""
    one = Problem([[[0.5]]])
    counts = Counts(np.full((1, 1, 1, 1), 10))
    for kind in (StepMix, EpsMix):
        plan = kind(one, np.ones((1, 1, 1)), 0.25, bounds=Bernstein(0.0)).plan(counts)
        assert plan.candidates == pytest.approx([0.5 - 1e-12] * 2, abs=1e-15)
        assert plan.grounds.by_model == pytest.approx(0.5 - 1e-12, abs=1e-15)
        nothing = kind(one, np.ones((1, 1, 1)), 0.25, bounds=Bernstein()).plan(Counts.zeros(one))
        assert nothing.candidates.tolist() == [0.0, 0.0] and nothing.grounds.by_model == 0.0
    assert StepMix(one, np.ones((1, 1, 1)), 0.25).plan(counts).grounds.by_model == 0.5


def test_what_kernels_are_given():
    known = problem(start=[0.5, 0.5])
    agent = build(EpsMix, 0.5, problem=known, delta=0.5, returns=Returns(0.25), baseline_at_least=0.375)
    counts = Counts.zeros(known)
    agent.claim(counts)
    evidence, start, record = agent.evidence(counts)
    assert evidence.log_union == start.log_union == pytest.approx(math.log(7 / 0.375), rel=1e-14)
    assert (start.alpha, start.scale, start.final, start.kind) == (-1.0, 1.0, 0.0, 1)  # kernels.SUPPORTS
    assert start.margin == record.margin == evidence.margin == pytest.approx(2e-12, rel=1e-12)
    assert (record.seen.low, record.seen.width, record.rounding) == (0, 7 * UNITS // 8, 0.0)
    assert record.log_inverse == pytest.approx(math.log(8), rel=1e-14)
    assert (record.upper, record.asserted) == (False, 0.375)
    assert record.seen.total is counts.baseline_returns and record.seen.weights is counts.return_weights
    assert record.seen.nodes.tolist() == list(NODES) and not evidence.uppers
    relative = build(EpsMix, Relative(0.1)).evidence(counts)
    assert relative[0].uppers and relative[2].upper
    evidence, start, record = build(EpsMix, 0.5, problem=Problem(R), bounds=Bernstein(0.5)).evidence(counts)
    assert start.final == start.margin == pytest.approx(2e-12, rel=1e-12) and start.alpha == 0.5
    assert (start.scale, record.log_inverse) == (0.5, math.inf)
    assert (record.seen.low, record.seen.width, record.rounding, record.seen.weights.size) == (0, 0, 0.0, 0)
    scaled = build(EpsMix, 0.5, delta=0.5, bounds=KL(scale=0.5), returns=Returns(0.25)).evidence(counts)[2]
    assert scaled.log_inverse == pytest.approx(0.5 * math.log(8), rel=1e-14)
    tenths = build(EpsMix, 0.1, problem=Problem(np.full((2, 2, 2), 0.1))).evidence(counts)[2]
    assert (tenths.seen.low, tenths.seen.width, tenths.rounding) == (2 * math.floor(0.1 * UNITS), 0, 2 / UNITS)
    assert build(EpsMix, 0.5, bounds=KL("1/S")).evidence(counts)[1].alpha == 0.5
    assert build(EpsMix, 0.5, bounds=KL(0.125)).evidence(counts)[1].alpha == 0.125
    assert build(EpsMix, 0.5, bounds=KL("supports")).evidence(counts)[1].alpha == -1.0  # kernels.SUPPORTS


# ---- Plans as records -----------------------------------------------------------------------------------------------


def test_a_plan_is_checked():
    pi = np.full((2, 2, 2), 0.5)
    plan = Plan(pi, "mixture", 1, 0.5, 0.25, 1.0, [0.25], "certified")
    assert plan.grounds is plan.cost is plan.max_episodes is plan.entry is plan.basis is plan.alarm is None
    assert not plan.frozen and plan.certified
    assert Plan(pi, "mixture", 0, 0.0, 0.25, 1.0, [0.25], "trusted", max_episodes=1).max_episodes == 1
    assert not Plan(pi, "mixture", 0, 1.0, 0.25, 1.0, [0.25], "trusted").certified
    for change, message in (
        ({"source": "other"}, "source is 'other'"),
        ({"safety": "safe"}, "safety is 'safe'"),
        ({"h": -1}, "h is -1"),
        ({"rho": 1.5}, "rho is 1.5"),
        ({"rho": -0.5}, "rho is -0.5"),
        ({"max_episodes": 0}, "max_episodes is 0"),
    ):
        fields = {"source": "mixture", "h": 1, "rho": 0.5, "safety": "certified"} | change
        with pytest.raises(InvalidSetting, match=message):
            Plan(pi, lower=0.25, upper=1.0, candidates=[0.25], **fields)
    assert not Plan(pi, "mixture", 0, 1.0, 0.25, 1.0, [0.25], "NOT CERTIFIED").certified
    assert Plan(pi, "baseline", 1, 0.0, 0.25, 1.0, [0.25], "trusted", alarm="x").frozen


def test_what_a_plan_says_without_its_grounds():
    pi = np.full((2, 2, 2), 0.5)
    plain = Plan(pi, "baseline", 2, 0.0, 0.25, 1.0, [0.25], "trusted")
    assert plain.explain().endswith("the agent that made this plan says no more about it.")
    frozen = Plan(pi, "baseline", 2, 0.0, 0.25, 1.0, [0.25], "trusted", alarm="Smoke.")
    assert frozen.explain() == "Smoke.\nNext: the baseline (h = 2, rho = 0). Frozen, no promise is made."
    scaled = Plan(pi, "baseline", 2, 0.0, 0.25, 1.0, [0.25], "NOT CERTIFIED", alarm="Smoke.")
    assert scaled.explain() == "Smoke.\nNext: the baseline (h = 2, rho = 0). NOT CERTIFIED, and frozen."


def test_a_plain_plan():
    plan = Plan.plain(np.full((3, 2, 2), 0.5))
    assert (plan.source, plan.h, plan.rho, plan.lower, plan.upper) == ("optimistic", 0, 1.0, -math.inf, math.inf)
    assert (plan.candidates.tolist(), plan.safety) == ([-math.inf], "no floor")


def test_what_is_drawn():
    rng = np.random.default_rng(0)
    for source in ("baseline", "mixture", "optimistic"):
        drawn = Plan(PI_B, source, 1, 0.5, 0.25, 1.0, [0.25], "certified").draw(rng, episode=0)
        assert drawn.baseline == (True if source == "baseline" else "")  # whose it is, this plan does not say
        np.testing.assert_array_equal(drawn.policy, PI_B)
    coin = Plan(EpisodicMixture(PI_B, PI_BAR, 0.5), "mixture", 2, 0.5, 0.25, 1.0, [0.25], "certified")
    found = [coin.draw(rng, episode=k) for k in range(40)]
    assert {drawn.baseline for drawn in found} == {True, ""}
    assert all(bool(drawn.baseline) == np.array_equal(drawn.policy, PI_B) for drawn in found)
    mine = Plan(PI_B, "baseline", 1, 0.5, 0.25, 1.0, [0.25], "certified", label="mine")
    assert mine.draw(rng, episode=0).baseline == "mine"


def test_what_is_proved():
    values = np.array([0.25, 0.5, 1.0])
    assert proved(values, 0, 1.0, 0.125, False) == proved(values, 0, 1.0, 0.125, True) == 0.25
    assert proved(values, 2, 0.0, 0.125, False) == proved(values, 2, 0.0, 0.125, True) == 1.0
    assert proved(values, 2, 0.25, 0.125, False) == proved(values, 1, 0.25, 0.125, False) == 0.125
    assert proved(values, 2, 0.25, 0.125, True) == 0.875
    assert proved(values, 1, 0.25, 0.125, True) == 0.4375


def test_marks_and_exits():
    assert [exit_taken(h, rho, 2) for h, rho in ((0, 1.0), (2, 0.0), (2, 0.5), (1, 0.0))] == [
        "optimistic",
        "baseline",
        "mixture",
        "mixture",
    ]
    assert safety(True, 0.5, True) == "certified"
    assert safety(True, 0.5, False) == safety(True, 0.5, True, True) == "trusted"
    assert safety(True, -math.inf, True) == "no floor"
    assert safety(False, -math.inf, True) == safety(False, 0.5, True) == "NOT CERTIFIED"


def test_who_plans_itself():
    class Mine:
        plan = None

    assert not SpliceAgent.plans_itself.fget(Mine())
    assert build(StepMix, 0.5).plans_itself
