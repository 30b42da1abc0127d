"""The rivals' promises with certified constants: DOPE and OptPess-LP in every episode, UCBVI's two
values, the boxes.

Exact values, fixed seeds: deterministic. Error rates, where runs are counted: the promise is that
at most a share delta of runs ever fails, and the tests ask for none. False alarm: a method that
used up all of delta = 0.1 would fail 4 runs with probability 0.34 and 60 with 0.998; these use far
less of it (no box was left in 1,000 runs at delta 0.5, see below): at a share of 1e-4 they fail
with probability 4e-4 and 0.006. A defect that breaks the promise in half of the runs is missed by
the four of one case with probability 0.06, by the three cases of DOPE in `make test` with 2e-4 and
the two of OptPess-LP with 0.004 (by all seven and three, in full, with 4e-9 and 2e-4); one that
breaks it in 5 % of them by 60 runs with 0.05. How large a defect that is, the controls say: the
constants have so much room that the logarithm must shrink by a factor of about 100 (Maurer and
Pontil) or 10,000 (the printed ones) before half of the runs fail. Smaller ones are seen by the
boxes' own test.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import surefoot as sf
from surefoot.bounds import Model
from surefoot.bounds.lp import best_in_box, policy_from
from surefoot.rivals.lp_agent import SOLVER
from surefoot.worlds.exact import cost_of, value_of

DELTA = 0.1


# ---- Worlds --------------------------------------------------------------------------------------


def crossroads():
    """Two states, three steps: what pays leads to the dear state, where a step costs 1. The best
    policy within the budget uses up all of it, so a cost that is underestimated at all is a
    violation.
    """
    P = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.8, 0.2], [0.3, 0.7]]])
    r = np.array([[0.2, 1.0], [0.0, 0.6]])
    cost = np.broadcast_to(np.array([[0.0, 0.0], [1.0, 1.0]]), (3, 2, 2))
    return sf.TabularMDP(P, r, H=3), np.broadcast_to([0.9, 0.1], (3, 2, 2)), cost, 0.2


def rooms():
    world = sf.world("three-rooms")
    return world, np.broadcast_to([0.5, 0.5], (6, 3, 2)), world.cost, 0.5


def shop():
    world = sf.world("inventory")
    return world, world.baseline, world.cost, 0.7


COSTLY = {"crossroads": crossroads, "three-rooms": rooms, "inventory": shop}


def learner(kind, name, box, episodes):
    """The world, and the learner: with costs where the name is one of those above, else with the
    world's floor.
    """
    settings = {"episodes": episodes, "bounds": box, "delta": DELTA, "replan": 0.1}
    if name in COSTLY:
        world, baseline, cost, room = COSTLY[name]()
        cost_b = cost_of(world, baseline, cost)
        settings |= {"cost": cost, "budget": cost_b + room, "baseline_cost": cost_b, "pooled": True}
        return world, kind(world.problem, baseline, **settings)
    world = sf.world(name)
    settings |= {"baseline_value": value_of(world, world.baseline), "pooled": world.stationary}
    return world, kind(world.problem, world.baseline, world.suggested_floor, **settings)


# ---- Every episode -------------------------------------------------------------------------------

# Episodes in which even the slowest seed leaves the baseline. Those in QUICK are for `make test`.
CASES = [
    (sf.DOPE, "trap", sf.MaurerPontilBox(), 20_000),
    (sf.DOPE, "trap", sf.BernsteinBox(), 200_000),
    (sf.DOPE, "trap-pit", sf.MaurerPontilBox(), 20_000),
    (sf.DOPE, "trap-pit", sf.BernsteinBox(), 20_000),
    (sf.DOPE, "crossroads", sf.MaurerPontilBox(), 20_000),
    (sf.DOPE, "crossroads", sf.BernsteinBox(), 40_000),
    (sf.DOPE, "three-rooms", sf.MaurerPontilBox(), 5_000),
    (sf.OptPessLP, "trap", sf.MaurerPontilBox(), 100_000),
    (sf.OptPessLP, "trap-pit", sf.MaurerPontilBox(), 20_000),
    (sf.OptPessLP, "crossroads", sf.MaurerPontilBox(), 20_000),
]
QUICK = [CASES[i] for i in (0, 3, 4, 8, 9)]
LONG = [
    (sf.OptPessLP, "trap-pit", sf.HoeffdingBox(), 10_000_000),
    (sf.OptPessLP, "crossroads", sf.HoeffdingBox(), 10_000_000),
    (sf.DOPE, "inventory", sf.MaurerPontilBox(), 1_000_000),
    (sf.OptPessLP, "inventory", sf.MaurerPontilBox(), 2_000_000),
]
BROKEN = [
    (sf.DOPE, "trap", sf.BernsteinBox(1e-4)),
    (sf.DOPE, "trap", sf.MaurerPontilBox(1e-3)),
    (sf.DOPE, "crossroads", sf.BernsteinBox(1e-5)),
    (sf.DOPE, "crossroads", sf.MaurerPontilBox(1e-3)),
    (sf.OptPessLP, "trap", sf.HoeffdingBox(1e-6)),
    (sf.OptPessLP, "crossroads", sf.HoeffdingBox(1e-5)),
    (sf.OptPessLP, "crossroads", sf.MaurerPontilBox(1e-3)),
]


QUICKLY_BROKEN = [BROKEN[i] for i in (1, 2, 5, 6)]


def title(value):
    return getattr(value, "__name__", str(value))


def others_in_full(cases, quick):
    return [pytest.param(*case, marks=() if case in quick else pytest.mark.full) for case in cases]


def assert_keeps(kind, name, box, episodes, seeds):
    world, agent = learner(kind, name, box, episodes)
    runs = sf.simulate_many(world, agent, episodes, seeds=seeds)
    story = (
        f"{agent.name} on {name}, {box}: {sum(run.violations > 0 for run in runs)} of {len(runs)} "
        f"runs violate; off the baseline at {[run.off_baseline for run in runs][:10]}"
    )
    assert sum(run.violations for run in runs) == 0, story
    assert all(str(run.promise).startswith("certified at delta = 0.1 for") for run in runs), story
    assert all(run.sources["optimistic"] > 0 for run in runs), story
    return story


@pytest.mark.parametrize(
    ("kind", "name", "box", "episodes"), others_in_full(CASES, QUICK), ids=title
)
def test_no_violation_and_not_by_idleness(kind, name, box, episodes):
    assert_keeps(kind, name, box, episodes, range(4))


@pytest.mark.full
@pytest.mark.parametrize(("kind", "name", "box", "episodes"), CASES, ids=title)
def test_no_violation_in_sixty_runs(record_property, kind, name, box, episodes):
    record_property("seen", assert_keeps(kind, name, box, episodes, range(1000, 1060)))


@pytest.mark.full
@pytest.mark.parametrize(("kind", "name", "box", "episodes"), LONG, ids=title)
def test_no_violation_where_leaving_takes_millions(record_property, kind, name, box, episodes):
    record_property("seen", assert_keeps(kind, name, box, episodes, range(2)))


@pytest.mark.parametrize(("kind", "name", "box"), others_in_full(BROKEN, QUICKLY_BROKEN), ids=title)
def test_control_a_logarithm_of_nearly_nothing(kind, name, box):
    """As re-implementations had to scale it to see anything: in the first 300 episodes more than
    half of the runs violate, six of ten or more. With the sixth it has failed, and the others are
    not played.
    """
    world, agent = learner(kind, name, box, 2000)
    failed = 0
    for seed in range(10, 20):
        run = sf.simulate(world, agent, 300, seed=seed)
        assert str(run.promise).startswith("NOT CERTIFIED")
        failed += run.violations > 0
        if failed == 6:
            break
    assert failed == 6, f"{failed} of 10 runs violate"


@dataclass(frozen=True)
class OptimisticCost:
    """DOPE, its box and its bonus, with the cost bonus subtracted where it must be added."""

    inside: sf.DOPE
    replan = 0.1

    def __getattr__(self, name):
        if name in ("problem", "floor", "pooled", "promise"):
            return getattr(self.inside, name)
        raise AttributeError(name)

    def plan(self, counts):
        agent = self.inside
        model = Model(agent.problem, counts, agent.delta)
        b, across = agent.bounds.b(model, agent.episodes), agent.bounds.across(model.H)
        low, high = np.maximum(model.P_hat - b, 0.0), np.minimum(model.P_hat + b, 1.0)
        room = across * b.sum(axis=-1)
        rewards, costs = (
            agent.problem.r + model.H / agent.kappa * room,
            np.maximum(agent.c - room, 0.0),
        )
        answer = best_in_box(low, high, agent.problem.start, rewards, costs, agent.C - SOLVER, None)
        assert answer.status == "optimal"
        policy = policy_from(answer.q, agent.baseline)
        return sf.Plan(policy, "optimistic", 0, 1.0, 0.0, float(model.H), [0.0], "NOT CERTIFIED")


@pytest.mark.parametrize("box", [sf.BernsteinBox(), sf.MaurerPontilBox()], ids=str)
def test_control_costs_taken_at_their_best(box):
    """Optimism about costs falls below the floor in every run: in the first hundreds of
    episodes, all is affordable.
    """
    world, agent = learner(sf.DOPE, "trap", box, 2000)
    runs = sf.simulate_many(world, OptimisticCost(agent), 300, seeds=range(4))
    assert sum(run.violations > 0 for run in runs) == 4


# ---- Every plan ----------------------------------------------------------------------------------


def cheaper_than_proved(kind, name, box, counts_of, sizes, each):
    """Of plans from counts of so many episodes of a mixed policy: how many are off the baseline,
    and of how many is the proved cost below the true one.
    """
    world, agent = learner(kind, name, box, 10 * max(sizes))
    tries = 0.5 * agent.baseline + 0.5 / world.A
    left = false = 0
    for size in sizes:
        for seed in range(each):
            plan = agent.plan(counts_of(world, tries, size, seed=seed, pooled=agent.pooled))
            left += plan.source == "optimistic"
            false += plan.cost < cost_of(world, plan.policy, agent.c) - 1e-12
    return left, false


@pytest.mark.parametrize("name", ["trap", "crossroads"])
@pytest.mark.parametrize(
    ("kind", "box", "scale"),
    [
        (sf.DOPE, sf.BernsteinBox, 1e-5),
        (sf.DOPE, sf.MaurerPontilBox, 1e-4),
        (sf.OptPessLP, sf.HoeffdingBox, 1e-6),
        (sf.OptPessLP, sf.MaurerPontilBox, 1e-4),
    ],
    ids=title,
)
def test_the_proved_cost_is_above_the_true_one(counts_of, name, kind, box, scale):
    """45 independent data sets. At a share of delta = 0.1 per data set a method would pass with
    probability 0.009, at the share of a sound one (below 1e-3) it fails with less than 0.05.
    Control: nearly no box, where the proved cost is an estimate and too low in a good part of them.
    """
    sizes = [1000, 100_000, 10_000_000]
    left, false = cheaper_than_proved(kind, name, box(), counts_of, sizes, 15)
    assert false == 0
    assert left >= 15
    _, false = cheaper_than_proved(kind, name, box(scale), counts_of, [100, 1000, 10_000], 15)
    assert false >= 5, f"{false} of 45 proved costs are too low"


# ---- The boxes -----------------------------------------------------------------------------------

# P(s'|s,a): even, rare, very rare
TRUE = np.array([[[0.5, 0.5], [0.9, 0.1]], [[0.98, 0.02], [0.3, 0.7]]])


def left_boxes(box, runs, visits, delta):
    """In how many runs P is outside the box of some pair after some number of visits, each up to
    `visits`.
    """
    problem = sf.TabularMDP(TRUE, np.zeros((2, 2)), H=1).problem
    rng, n = np.random.default_rng(0), np.arange(1, visits + 1)[:, None, None]
    outside = 0
    for _ in range(runs):
        share = np.cumsum(rng.random((visits, 2, 2)) < TRUE[..., 1], axis=0) / n
        P_hat = np.stack([1.0 - share, share], axis=-1)
        seen = SimpleNamespace(
            problem=problem, delta_prime=delta, n_sa=np.broadcast_to(n, share.shape), P_hat=P_hat
        )
        outside += bool((np.abs(P_hat - TRUE) > box.b(seen, visits)).any())
    return outside


def test_the_boxes_are_asked_for_the_right_thing(counts_of):
    """What stands in for a model above has the fields that `b` reads: against a true one."""
    world = sf.TabularMDP(TRUE, np.zeros((2, 2)), H=1)
    counts = counts_of(world, sf.uniform(1, 2, 2), 100, seed=0)
    model = sf.Model(world.problem, counts, 0.5)
    seen = SimpleNamespace(
        problem=world.problem, delta_prime=0.5, n_sa=model.n_sa, P_hat=model.P_hat
    )
    for box in (sf.BernsteinBox(), sf.HoeffdingBox(), sf.MaurerPontilBox()):
        np.testing.assert_array_equal(box.b(model, 100), box.b(seen, 100))


@pytest.mark.parametrize("delta", [0.5, 0.1])
@pytest.mark.parametrize("kind", [sf.BernsteinBox, sf.HoeffdingBox, sf.MaurerPontilBox], ids=title)
def test_the_truth_stays_in_the_box(is_below, is_above, kind, delta):
    """1,000 runs of four pairs, looked at after each of 200 visits: an exact test at level 1 %
    rejects "delta or more".

    A box that is left in a share of delta is let pass with probability 1 %; one that uses half of
    delta fails with less than 1e-4. Measured: never left, so that is asked for, too. At a share of
    1e-5 this fails with probability 0.01; a box that is left in 0.5 % of the runs is let pass with
    0.007. So wide a box is, at delta 0.5, one with three tenths of its logarithm (left in 2 % of
    the runs by Maurer and Pontil, 0.7 % by Hoeffding; Bernstein's, which has most room, with a
    tenth: 14 %). Control: a twentieth.
    """
    outside = left_boxes(kind(), 1000, 200, delta)
    assert is_below(outside, 1000, delta)
    assert outside == 0
    outside = left_boxes(kind(0.05), 300, 200, delta)
    assert is_above(outside, 300, delta), f"left in {outside} of 300 runs"


# ---- UCBVI's two values --------------------------------------------------------------------------


def wrong_values(scale, counts_of, worlds=100):
    """In how many worlds lower <= V^pi <= V* <= upper fails, and how many lower values say
    anything.
    """
    wrong = says = 0
    for seed in range(worlds):
        world = sf.world("random-sparse", S=3, A=2, H=3, branch=2, share=0.5, seed=seed)
        episodes = int(10 ** np.random.default_rng(seed).uniform(2, 8))
        agent = sf.UCBVI(world.problem, episodes=episodes, delta=0.5, scale=scale)
        plan = agent.plan(counts_of(world, sf.uniform(3, 3, 2), episodes, seed=seed))
        value, best = value_of(world, plan.policy), sf.solve(world).value
        wrong += not (plan.lower <= value + 1e-12 and value <= best + 1e-12 <= plan.upper + 2e-12)
        says += plan.lower > 0.0
    return wrong, says


def test_the_two_values_of_ucbvi(is_below, is_above, counts_of):
    """100 worlds with 10^2 to 10^8 episodes of data, delta 0.5: an exact test at level 1 % rejects
    "half of them or more are wrong". Sound: none is; a share of 1e-4 fails with 0.01, one of 5 %
    passes with 0.006. Control: a hundred-thousandth of the bonus.
    """
    wrong, says = wrong_values(1.0, counts_of)
    assert is_below(wrong, 100, 0.5)
    assert wrong == 0
    assert says >= 20
    wrong, _ = wrong_values(1e-5, counts_of)
    assert wrong >= 50, f"{wrong} of 100 are wrong"


# ---- The paper's homogeneous comparison, in small ------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_papers_comparison(seed):
    """(S, A, H) = (4, 2, 3), the same dynamics at every step, eta 5, floor V^b - 0.2, delta 0.1,
    literal constants.

    DOPE leaves first, by a factor of 2.8 and 5.3, and ends with more regret, by 4.4 and 2.3. Other
    draws move these by 2 %, so what is asked for does not hang on them. (Off the baseline at
    320,636; never; 908,403; 1,699,174.) Control: told ten times the room, DOPE needs as long, for
    its certificate does not lean on what it is told.
    """
    K, replan = 5 * 10**6, 0.03
    world = sf.random_mdp(4, 2, 3, seed=0, stationary=True)
    baseline = sf.boltzmann(sf.solve(world).Q, 5.0)
    value = value_of(world, baseline)
    place = (world.problem, baseline, value - 0.2)
    rival = {"episodes": K, "baseline_value": value, "pooled": True, "delta": 0.1, "replan": replan}
    ours = {"bounds": sf.Bernstein(), "delta": 0.1, "replan": replan}
    dope, optpess, pooled, unpooled = (
        sf.simulate(world, agent, K, seed=seed)
        for agent in (
            sf.DOPE(*place, **rival),
            sf.OptPessLP(*place, **rival),
            sf.StepMix(*place, pooled=True, **ours),
            sf.StepMix(*place, **ours),
        )
    )
    assert dope.off_baseline < pooled.off_baseline < unpooled.off_baseline
    assert dope.regret > unpooled.regret > pooled.regret
    assert optpess.off_baseline is None
    assert optpess.regret == pytest.approx(K * (optpess.optimum - value), rel=1e-9)
    assert optpess.regret > dope.regret
    for run in (dope, optpess, pooled, unpooled):
        assert run.violations == 0
        assert str(run.promise).startswith("certified at delta = 0.1")
    flattered = sf.DOPE(*place, **{**rival, "baseline_value": value + 1.0})
    assert sf.simulate(world, flattered, K, seed=seed).off_baseline == dope.off_baseline
