"""The portfolio bound of a mean, against exact arithmetic, and its exact probability of being
wrong.

W(m) = sum_j weight_j prod_x (1 - theta_j + theta_j x / m) stays below 1/delta_0 for all numbers of
returns at once with probability at least 1 - delta_0, if the mean is m. What is kept of the returns
is how they are spread over nodes.

- Safe side: at the bound, W of the RETURNS THEMSELVES, in 60 digits, is at least 1/delta_0.
- Coverage: for returns of 0 and 1, and for three values, the probability that the bound ever passes
  the mean is computed by dynamic programming over counts. Nothing is drawn. Controls: stakes that
  depend on the data, returns that are counted at the node above, one level for both sides.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import surefoot as sf
from crossing import crossing_probability
from plain_loop import simulate_plainly
from returns import LAWS, UNITS, in_units, wealth
from surefoot.base.nodes import EPISODE, FINE, LOST, NODES, OUTSIDE, PLACES, STAKES, WEIGHTS, spread
from surefoot.kernels import portfolio as kernel

TABLES = kernel.portfolio_from()


def counted(returns, low=0, width=UNITS):
    """Weights of returns, in units of 2^-20, by the kernel."""
    weights = np.zeros(PLACES, dtype=np.int64)
    seen = kernel.seen_returns_from(np.zeros(2, dtype=np.int64), weights, (low, width))
    for x in returns:
        kernel.count_return(seen, np.array([x]))
    return weights


# ---- nodes


def test_nodes_are_symmetric_and_hold_both_ends():
    assert NODES[0] == 0 and NODES[-1] == FINE and list(NODES) == sorted(set(NODES))
    assert [FINE - node for node in reversed(NODES)] == list(NODES)
    assert sum(map(Fraction, WEIGHTS)) == 1 and len(STAKES) == len(WEIGHTS) == 16
    assert all(0 < theta <= 1 for theta in STAKES)


@pytest.mark.parametrize(
    ("low", "width"), [(0, UNITS), (-7, 13), (5, 1), (0, 10**6 * UNITS), (12345, 999_983)]
)
def test_a_return_is_spread_over_its_neighbours_and_keeps_its_mean(low, width):
    """Exactly, but for rounding down by at most LOST of the range; the kernel does the same."""
    rng = np.random.default_rng(width)
    for x in [
        low,
        low + width,
        low + width // 2,
        *(low + int(x) for x in rng.integers(0, width + 1, 200)),
    ]:
        k, above = spread(x, low, width)
        assert 0 <= above <= EPISODE and 0 <= k < len(NODES) - 1
        mean = Fraction(NODES[k] * (EPISODE - above) + NODES[k + 1] * above, EPISODE * FINE)
        assert 0 <= Fraction(x - low, width) - mean <= Fraction(LOST)
        weights = counted([x], low, width)
        assert (
            weights[k] == EPISODE - above and weights[k + 1] == above and weights.sum() == EPISODE
        )


def test_ends_lose_nothing_and_what_is_outside_is_counted_apart():
    assert spread(0, 0, 8) == (0, 0) and spread(8, 0, 8) == (len(NODES) - 2, EPISODE)
    assert spread(3, 3, 0) == (0, 0)  # a single possible return
    for x in (-1, 9):
        assert spread(x, 0, 8) == (OUTSIDE, 0)
        assert counted([x], 0, 8).tolist() == [*(0,) * len(NODES), 1]


# ---- the bound


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [1, 7, 100, 3000])
def test_the_bound_is_nearly_where_what_is_kept_reaches_the_level(law, n):
    """W of the nodes' weights in 60 digits: at the bound it is at least 1/level, and a twentieth
    above it no longer. Between the 255 fixed means W is interpolated, downwards.
    """
    weights = counted(in_units(law, n))
    for level in (0.5, 0.02, 1e-6):
        for sign in (1, -1):
            found = kernel.mean_lower(TABLES, weights, sign, math.log(1 / level))
            kept = of_side([Fraction(x, FINE) for x in NODES], weights[:OUTSIDE] / EPISODE, sign)
            if found > 0.0:
                assert wealth(*kept, found) >= 1 / level
            above = max(1.05 * found, 1e-4)
            assert above >= 1.0 or wealth(*kept, above) < 1 / level


def of_side(values, times, sign):
    """Of the other side count what is missing to the highest return."""
    return (values if sign > 0 else [1 - x for x in values]), times


def wealth_of(returns, m, sign=1):
    """W of the returns themselves."""
    values, times = np.unique(returns, return_counts=True)
    return wealth(*of_side([Fraction(x, UNITS) for x in values.tolist()], times, sign), m)


# of returns that are all the same between two nodes the bound is less close
@pytest.mark.parametrize("law", sorted(LAWS.keys() - {"constant"}))
@pytest.mark.parametrize("sign", [1, -1])
def test_the_bound_is_on_the_safe_side_and_close(law, sign):
    """At the bound W is at least 1/delta_0. A fiftieth of the way to the mean above it, it is
    not.
    """
    for n in (1, 20, 400, 3000):
        returns = in_units(law, n)
        found = kernel.mean_lower(TABLES, counted(returns), sign, math.log(1 / 0.02))
        if found == 0.0:
            assert wealth_of(returns, 1e-4, sign) < 50
            continue
        assert wealth_of(returns, found, sign) >= 50
        mean = np.mean(returns / UNITS) if sign > 0 else 1 - np.mean(returns / UNITS)
        above = found + 0.02 * (mean - found) + 1e-4
        assert wealth_of(returns, above, sign) < 50


def test_a_bound_that_is_too_large_is_noticed():
    """Control of the safe side."""
    returns = in_units("smooth", 400)
    found = kernel.mean_lower(TABLES, counted(returns), 1, math.log(1 / 0.02))
    assert wealth_of(returns, found * 1.001) < 50


def test_sure_values():
    """All returns the lowest: nothing is proved. More returns, a smaller level: never a smaller,
    a larger bound.
    """
    zeros, ones = counted([0] * 50), counted([UNITS] * 50)
    assert kernel.mean_lower(TABLES, zeros, 1, 3.0) == 0.0
    assert (
        kernel.mean_lower(TABLES, ones, 1, 3.0) == kernel.mean_lower(TABLES, zeros, -1, 3.0) > 0.85
    )
    for n in (1, 10, 100, 10**4, 10**6, 10**9):
        weights = counted([UNITS // 2])
        bound = [
            kernel.mean_lower(TABLES, n * weights, 1, log_inverse)
            for log_inverse in (0.1, 3.0, 30.0)
        ]
        assert bound == sorted(bound, reverse=True) and bound[0] < 0.5
    assert kernel.mean_lower(TABLES, 10**9 * weights, 1, 3.0) > 0.499


# ---- exact probabilities


def crossed(zeros, ones, log_inverse, mean, sign, rule):
    """Does the bound of so many returns of 0 and of 1 pass the mean?"""
    weights = np.zeros(PLACES, dtype=np.int64)
    weights[0], weights[len(NODES) - 1] = zeros * EPISODE, ones * EPISODE
    m = mean if sign > 0 else 1 - mean
    if rule == "best stake":  # chosen by looking at the data
        n_k = np.array([zeros, ones] if sign > 0 else [ones, zeros])
        with np.errstate(divide="ignore", invalid="ignore"):
            theta = np.array(STAKES)[:, None]
            logs = np.log(1 - theta + theta * np.array([0.0, 1.0]) / m)
            return bool(np.where(n_k > 0, n_k * logs, 0.0).sum(axis=1).max() >= log_inverse)
    if rule == "one node up":
        weights[1], weights[0] = weights[0], 0
        weights[len(NODES) - 1], weights[len(NODES) - 2] = ones * EPISODE, 0
    return kernel.mean_lower(TABLES, weights, sign, log_inverse) > m


def passing_probability(mean, level, visits, sides=(1,), rule="ours"):
    """The probability that a bound of 0/1 returns with this mean ever passes it within so many
    episodes.
    """
    return crossing_probability(
        [(1 - mean, mean)] * visits,
        lambda counts: any(
            crossed(*counts, math.log(1 / level), mean, sign, rule) for sign in sides
        ),
        dropped=1e-15,
    )


@pytest.mark.parametrize("level", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("mean", [0.05, 0.3, 0.5, 0.9])
def test_the_bound_ever_fails_with_at_most_its_level(mean, level):
    """For each side, within 150 episodes; what was dropped, less than 1e-9 in all, is within the
    comparison.
    """
    found = [passing_probability(mean, level, 150, (sign,)) for sign in (1, -1)]
    assert max(found) <= level + 1e-9 and sum(found) > 0.001 * level


def test_stakes_that_depend_on_the_data_fail():
    """Control: the best stake in hindsight, with its whole weight."""
    assert passing_probability(0.3, 0.05, 150, rule="best stake") > 0.075


def test_returns_counted_at_the_node_above_fail():
    """Control: zeros counted as 6e-4, over and over: enough for returns that are hardly ever 1."""
    assert passing_probability(0.0005, 0.05, 150) <= 0.05
    assert passing_probability(0.0005, 0.05, 150, rule="one node up") > 0.05


def test_one_level_for_both_sides_fails():
    """Two supermartingales need two shares: with one level for both, the probability that one
    fails is larger.
    """
    both = passing_probability(0.5, 0.5, 150, (1, -1))
    assert both > 0.5
    assert passing_probability(0.5, 0.25, 150, (1, -1)) <= 0.5  # half of it each


def test_three_values():
    """0, 0.37 (between two nodes) and 1, with a mean of exactly 0.4: the bound never passes it
    more often than said.
    """
    level, visits = 0.2, 45
    values, shares = np.array([0.0, 0.37, 1.0]), np.array([0.3, 0.5, 0.0])
    shares[2] = 1 - shares.sum()
    mean = float(values @ shares)
    units = np.floor(values * UNITS).astype(int).tolist()
    each = [counted([x]) for x in units]
    for sign in (1, -1):
        m = mean if sign > 0 else 1 - mean
        lost = (LOST + 1 / UNITS) * (sign < 0)

        def passes(counts, m=m, sign=sign, lost=lost):
            weights = sum(n * one for n, one in zip(counts, each, strict=True))
            return kernel.mean_lower(TABLES, weights, sign, math.log(1 / level)) - lost > m

        gone = crossing_probability([shares] * visits, passes)
        assert 0.01 < gone <= level


# ---- in a plan


@pytest.mark.parametrize("floor", [-1.0, sf.Below(2.0)])
def test_a_plan_claims_no_more_than_its_returns_prove(floor):
    """In the user's units, from episodes played one by one: W of the returns themselves proves
    what is claimed.
    """
    rng = np.random.default_rng(3)
    world = sf.TabularMDP(
        rng.dirichlet(np.ones(3), size=(4, 3, 2)),
        rng.uniform(-2, 5, (4, 3, 2)),
        units=sf.Units(-2, 5),
    )
    agent = sf.EpsMix(world.problem, sf.uniform(4, 3, 2), floor, delta=0.1, returns=sf.Returns(0.4))
    counts, earned = sf.Counts.zeros(world.problem), []
    agent.claim(counts)
    for _ in range(150):
        episode = sf.play(world, agent.baseline, rng).as_learnt(world.problem, str(agent.label))
        counts.add(episode)
        earned.append(sum(math.floor(x * UNITS) for x in episode.learnt.tolist()))
    low, width = agent.return_range
    assert counts.spread_episodes == 150 and min(earned) >= low and max(earned) <= low + width
    plan = agent.plan(counts)
    upper = isinstance(floor, sf.Below)
    claim = plan.grounds.U - agent.possible_returns.rounding if upper else plan.grounds.by_returns
    m = (Fraction(claim) * UNITS - low) / width
    paid = [Fraction(x - low, width) for x in earned]
    if upper:
        m, paid = 1 - m, [1 - x for x in paid]
    assert wealth(paid, [1] * len(paid), m) >= 1 / (0.1 * 0.4)
    assert (plan.grounds.by_returns == -math.inf) == upper  # the other side has no share of delta
    truth = sf.value(world, agent.baseline)
    value = world.problem.units.to_user(float(claim))
    assert value > truth - 0.01 if upper else value < truth


def test_only_what_was_drawn_is_labelled_as_evidence():
    """The fingerprint of a plan is no label: `draw` knows what is played. Returns that nobody
    claims prove nothing.
    """
    world = sf.world("trap")
    agent = sf.EpsMix(world.problem, world.baseline, world.suggested_floor)
    plan = agent.plan(sf.Counts.zeros(world.problem))
    drawn = plan.draw(np.random.default_rng(0), episode=0)
    assert drawn.baseline == str(agent.label) != plan.baseline_of == agent.fingerprint
    episode = sf.play(world, world.baseline, np.random.default_rng(1))
    for label, evidence in ((drawn.baseline, 1), (plan.baseline_of, 0)):
        counts = sf.Counts.zeros(world.problem)
        counts.add(
            sf.Episode.of(
                world.problem, episode.states, episode.actions, episode.rewards, baseline=label
            )
        )
        assert (counts.baseline_returns[0], counts.spread_episodes) == (1, evidence)
    alone = sf.Counts(
        counts.n_sas * 0, baseline_returns=[10**6, 10**6 * UNITS], returns_of=agent.fingerprint
    )
    top = [0] * PLACES
    top[len(NODES) - 1] = 10**6 * EPISODE
    alone.hold_returns(top, agent.return_range)
    assert agent.plan(alone).safety == "trusted"


def test_stepmix_keeps_all_of_delta_where_it_never_plays_the_baseline_alone():
    world = sf.world("trap")
    for floor in (sf.Relative(0.1), sf.Below(0.2)):
        assert sf.StepMix(world.problem, world.baseline, floor).returns is None
        assert sf.EpsMix(world.problem, world.baseline, floor).returns == sf.Returns()
        assert (
            sf.StepMix(world.problem, world.baseline, floor, returns=sf.Returns()).returns
            is not None
        )
    assert sf.StepMix(world.problem, world.baseline, 0.5).returns == sf.Returns()


def test_every_agent_labels_its_baseline_in_every_loop():
    """Also one that switches instead of mixing: its returns were evidence in compiled loops
    alone.
    """
    world = sf.world("dosing")
    settings = {"delta": 0.1, "pooled": True, "returns": sf.Returns(), "replan": 0.0}
    for kind in (sf.BudgetExploration, sf.EpsMix):
        agent = kind(world.problem, world.baseline, world.suggested_floor, **settings)
        fast, plain = (
            run(world, agent, 40, 3, progress=False) for run in (sf.simulate, simulate_plainly)
        )
        assert fast.counts == plain.counts and fast.counts.spread_episodes == 40
        learner = sf.Learner(agent, 0)
        learner.begin()
        for _ in range(world.H):
            learner.act()
            learner.observe(world.s1)
        learner.end()
        assert learner.counts.spread_episodes == 1
