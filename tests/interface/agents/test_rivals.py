"""The rivals from the outside: what they refuse and in which words, runs about costs, who was given
what, and that nothing which rests on a scaled constant or on an assertion is called certified.
"""

import itertools
import json

import gymnasium
import highspy
import numpy as np
import pytest

import surefoot as sf
from command import surefoot
from plain_loop import simulate_plainly
from surefoot.base.validation import VIOLATION_TOLERANCE
from surefoot.bounds.lp import Occupancy
from surefoot.cli.tables import print_runs, rows
from surefoot.rivals.lp_agent import settle
from surefoot.run import loops

H, S, A = 3, 3, 2
LP_AGENTS = {"DOPE": sf.DOPE, "OptPess-LP": sf.OptPessLP}
OWN_BOX = {"DOPE": sf.BernsteinBox, "OptPess-LP": sf.HoeffdingBox}


@pytest.fixture(scope="module")
def world():
    return sf.random_mdp(S, A, H, seed=2)


@pytest.fixture(scope="module")
def baseline(world):
    return sf.boltzmann(sf.solve(world).Q, eta=3.0)


@pytest.fixture(scope="module")
def value(world, baseline):
    return float(sf.policy_value(world, baseline)[0, 0])


@pytest.fixture(scope="module")
def cost():
    return np.random.default_rng(0).random((H, S, A))


@pytest.fixture(scope="module")
def spent(world, baseline, cost):
    return float((sf.occupancy(world, baseline) * cost).sum())


@pytest.fixture(params=LP_AGENTS)
def kind(request):
    return request.param


@pytest.fixture
def make(kind, world, baseline):
    """DOPE or OptPess-LP with these settings."""

    def build(*floor, **settings):
        return LP_AGENTS[kind](world.problem, baseline, *floor, **{"episodes": 10_000, **settings})

    return build


@pytest.fixture
def costly(make, cost, spent):
    """The same about costs, with a budget that is so much above what the baseline costs."""

    def build(above, **settings):
        return make(**{"cost": cost, "budget": spent + above, "baseline_cost": spent, **settings})

    return build


# ---- refusals


def test_settings_that_are_right(make, value, cost, spent):
    """Control: what the refusals below begin from is accepted."""
    assert make(1.0, baseline_value=value).kappa == value - 1.0
    assert make(floor=1.0, baseline_value=value).C == H - 1.0
    agent = make(cost=cost, budget=2.5, baseline_cost=spent)
    assert (agent.C, agent.kappa, agent.floor) == (2.5, 2.5 - spent, None)
    flat = make(cost=cost[0], budget=2.5, baseline_cost=spent)
    np.testing.assert_array_equal(flat.cost, np.broadcast_to(cost[0], (H, S, A)))
    with pytest.raises(ValueError, match="read-only"):
        agent.cost[0, 0, 0] = 0.5


TWO_WAYS = r"takes either floor= and baseline_value= .* or cost=, budget= and baseline_cost="
WITH_FLOOR = r"with a floor needs baseline_value=, what the baseline is worth, and no costs"
WITH_COSTS = (
    r"with costs needs budget= and baseline_cost=, what the baseline costs, and no baseline_value"
)
TABLE = np.full((H, S, A), 0.5)


PAID = {"floor": 1.0, "baseline_value": 1.4}
COSTLY = {"cost": TABLE, "budget": 2.0, "baseline_cost": 1.5}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, TWO_WAYS),
        ({"budget": 2.0}, r"cost is None, expected costs \(H, S, A\) in \[0, 1\]"),
        (COSTLY | {"cost": None}, r"cost is None.*Does the world have a cost signal"),
        (PAID | {"cost": TABLE}, TWO_WAYS),
        ({"floor": 1.0}, WITH_FLOOR),
        (PAID | {"budget": 2.0}, WITH_FLOOR),
        (PAID | {"baseline_cost": 1.0}, WITH_FLOOR),
        ({"cost": TABLE}, WITH_COSTS),
        ({"cost": TABLE, "budget": 2.0}, WITH_COSTS),
        ({"cost": TABLE, "baseline_cost": 1.5}, WITH_COSTS),
        (COSTLY | {"baseline_value": 1.4}, WITH_COSTS),
        (
            PAID | {"floor": 1.4},
            r"baseline_value is 1.4, .* more than the floor of 1.4: .* divides",
        ),
        (
            {"floor": 1.4, "baseline_value": 1.0},
            r"baseline_value is 1, expected more than the floor of 1.4",
        ),
        (COSTLY | {"budget": 1.5}, r"baseline_cost is 1.5, expected less than the budget of 1.5"),
        (PAID | {"floor": 4.0}, r"floor is 4, but returns lie in 0\.\.3"),
        (PAID | {"baseline_value": 3.5}, r"baseline_value is 3.5"),
        (PAID | {"floor": "high"}, r"floor is 'high', expected a number in 0\.\.3"),
        (PAID | {"delta": 1.0}, r"delta is 1, expected"),
        (PAID | {"episodes": 0}, r"episodes is 0, expected an integer >= 1"),
        (PAID | {"episodes": 1e5}, r"episodes is 100000.0, expected an integer"),
        (PAID | {"replan": 1.1}, "replan is 1.1, expected a number from 0 to 1"),
        *((COSTLY | {"cost": table}, "cost has shape") for table in ([], np.zeros((0, S, A)))),
        *(
            (COSTLY | {"cost": table}, message)
            for table, message in (
                (
                    np.full((H - 1, S, A), 0.5),
                    r"cost has shape \(2, 3, 2\), expected \(3, 3, 2\) or \(3, 2\)",
                ),
                (np.full(S, 0.5), r"cost has shape \(3,\), "),
                (np.full((H, S, A, S), 0.5), r"cost has shape \(3, 3, 2, 3\), "),
                (TABLE + 1.0, r"cost\[0, 0, 0\] is 1.5, expected a number in \[0, 1\]"),
                (TABLE - 1.0, r"cost\[0, 0, 0\] is -0.5"),
                (TABLE * np.nan, r"cost\[0, 0, 0\] is nan, expected a finite number"),
                ("dear", r"cost has dtype"),
                ([[0.5], [0.5, 0.5]], r"cost is ragged"),
            )
        ),
    ],
)
def test_settings_that_are_refused(make, kind, settings, message):
    with pytest.raises(sf.InvalidSetting, match=message) as refusal:
        make(**settings)
    if message in (TWO_WAYS, WITH_FLOOR, WITH_COSTS):
        assert str(refusal.value).startswith(kind)  # it says who refuses


def test_a_budget_out_of_range_is_about_costs(make):
    """Not about returns. A budget of 9 is one that every policy keeps."""
    for name in ("budget", "baseline_cost"):
        for number in (-1.0, np.inf):
            with pytest.raises(sf.InvalidSetting, match=rf"{name} is {number:g}") as refusal:
                make(**{"cost": TABLE, "budget": 2.0, "baseline_cost": 1.0, name: number})
            assert "returns" not in str(refusal.value)
    assert make(cost=TABLE, budget=9.0, baseline_cost=1.0).kappa == 8.0


def test_bounds_of_another_kind_are_refused(make, kind, value, assert_refused):
    class Mine(OWN_BOX[kind]):
        pass

    other = sf.HoeffdingBox() if kind == "DOPE" else sf.BernsteinBox()
    for wrong in (other, sf.KL(), sf.Bernstein(), Mine(), OWN_BOX[kind], None, 1.0):
        assert_refused(
            sf.InvalidSetting,
            r"expected sf\.\w+\(\) or sf.MaurerPontilBox\(\), and not a sub",
            make,
            1.0,
            baseline_value=value,
            bounds=wrong,
        )
    assert not Mine().certified
    for right in (OWN_BOX[kind](), sf.MaurerPontilBox()):  # control
        assert make(1.0, baseline_value=value, bounds=right).bounds.certified


@pytest.mark.parametrize("box", [sf.BernsteinBox, sf.HoeffdingBox, sf.MaurerPontilBox])
def test_scales_of_boxes(box, assert_refused):
    assert box().certified
    assert box(1).certified
    for scale in (0.0, 0.999, 2.0):
        assert not box(scale).certified
    for wrong in (-1.0, np.inf, np.nan, "one", True, None):
        assert_refused(
            sf.InvalidSetting,
            r"scale is .*expected a finite number >= 0; 1 is the proved one",
            box,
            wrong,
        )


def test_problems_that_are_not_covered(kind, world, baseline, value, assert_refused):
    def build(problem):
        return LP_AGENTS[kind](problem, baseline, 1.0, baseline_value=value, episodes=10)

    problem = world.problem
    cases = {
        "unknown rewards": problem.forget(rewards=True),
        "an unknown start": problem.forget(start=True),
        r"depend on the next state \(world.averaged\(\)": sf.Problem(r_next=np.zeros((H, S, A, S))),
    }
    for message, unfit in cases.items():
        assert_refused(
            sf.InvalidSetting,
            f"{kind} is built for known rewards.*not for .*{message}",
            build,
            unfit,
        )
    assert_refused(sf.InvalidSetting, "expected a Problem", build, world)
    assert_refused(
        sf.InvalidPolicy,
        "baseline has shape",
        LP_AGENTS[kind],
        problem,
        baseline[:2],
        1.0,
        baseline_value=value,
        episodes=10,
    )
    assert_refused(
        sf.InvalidCounts,
        "Counts pooled over steps need dynamics",
        LP_AGENTS[kind],
        problem,
        baseline,
        1.0,
        baseline_value=value,
        episodes=10,
        pooled=True,
    )
    several = sf.Problem(problem.r, start=[0.5, 0.5, 0.0])
    # control: several starts are covered
    assert build(several).plan(sf.Counts.zeros(several)).source == "baseline"


LIMITED = ("DOPE", "OptPess-LP", "conservative UCBVI", "UCBVI")


def limited(name, world, baseline, value, episodes, **settings):
    """Those whose logarithm holds a number of episodes."""
    if name == "UCBVI":
        return sf.UCBVI(world.problem, episodes=episodes, **settings)
    kind = {**LP_AGENTS, "conservative UCBVI": sf.ConservativeUCBVI}[name]
    return kind(world.problem, baseline, 1.0, baseline_value=value, episodes=episodes, **settings)


@pytest.mark.parametrize("name", LIMITED)
def test_more_episodes_than_the_proof_covers(name, world, baseline, value, assert_refused):
    agent = limited(name, world, baseline, value, 100)
    for run in (sf.simulate, simulate_plainly):
        assert_refused(
            sf.InvalidSetting,
            r"101 episodes are asked for, but .* are for 100 in all.*episodes=",
            run,
            world,
            agent,
            101,
            seed=0,
        )
    assert_refused(
        sf.InvalidSetting,
        "101 episodes are asked for",
        sf.simulate_many,
        world,
        agent,
        101,
        seeds=range(2),
    )
    counts = sf.simulate(world, agent, 100, seed=0).counts  # control: a hundred are fine
    assert counts.episodes == 100
    fewer = limited(name, world, baseline, value, 99)
    message = (
        r"These counts hold 100 episodes, but the bounds of .* are for 99 in all: that "
        r"number is inside"
    )
    for use in (
        lambda: fewer.plan(counts),
        lambda: sf.Learner(fewer, 0, counts.copy()),
        lambda: sf.simulate(world, fewer, 5, seed=0, counts=counts),
    ):
        assert_refused(sf.InvalidCounts, message, use)


@pytest.mark.parametrize("name", LIMITED)
def test_what_a_run_would_come_to_is_refused_before_it_begins(
    name, world, baseline, value, monkeypatch, assert_refused
):
    """60 episodes are held, 60 more are asked for, 100 are covered: known at once, and not an
    hour later.
    """
    agent = limited(name, world, baseline, value, 100)
    counts = sf.simulate(world, agent, 60, seed=0).counts
    planned, plan = [], type(agent).plan

    def spy(self, counts, rng=None):
        planned.append(counts.episodes)
        return plan(self, counts, rng)

    monkeypatch.setattr(type(agent), "plan", spy)
    # control: these are covered
    assert sf.simulate(world, agent, 40, seed=1, counts=counts).counts.episodes == 100
    assert planned
    planned.clear()
    assert_refused(
        sf.SurefootError, "for 100 in all", sf.simulate, world, agent, 60, seed=1, counts=counts
    )
    assert planned == []


def test_refusals_of_the_switches(world, baseline, value, assert_refused):
    problem, given = world.problem, {"baseline_value": value}
    known = {"learner": sf.BPIUCBVI(problem)}
    saving, conservative = sf.BudgetExploration, sf.ConservativeUCBVI
    of_floor = "relative to the baseline needs baseline_value="
    of_bounds = "paper's bounds are proved for its own optimistic policy"
    of_agent = r"expected sf.UCBVI\(...\) or sf.BPIUCBVI"
    of_delta = r"The delta of the agent inside is 0.1, above delta = 0.05"
    of_both = "either episodes=, for UCBVI inside, or learner="
    of_value = r"baseline_value is 1, below the floor of 1.2"
    nested = {"learner": saving(problem, baseline, 1.0)}
    for kind, floor, settings, message in (
        (saving, sf.Relative(0.1), {}, of_floor),
        (saving, 1.0, known | {"bounds": sf.Bernstein()}, of_bounds),
        (saving, 1.0, known | {"explorer": sf.Thompson(problem)}, "either learner= or explorer="),
        (saving, 1.0, {"learner": "ucbvi"}, "expected an agent such as"),
        (saving, 1.2, {"baseline_value": 1.0}, of_value),
        (saving, 1.0, nested, "keeps an account of its own"),
        (conservative, 1.0, given | {"learner": sf.StepMix(problem, baseline, 1.0)}, of_agent),
        (conservative, 1.0, given | {"learner": sf.BPIUCBVI(problem, delta=0.1)}, of_delta),
        (conservative, 1.0, {"episodes": 10}, "give baseline_value"),
        (conservative, 1.0, given | known | {"episodes": 10}, of_both),
    ):
        assert_refused(sf.InvalidSetting, message, kind, problem, baseline, floor, **settings)
    # Also of the same sizes but for other rewards: what it proves is about those.
    for other in (sf.random_mdp(4, A, H, seed=0).problem, sf.Problem(np.ones((H, S, A)))):
        for kind, settings in ((saving, {}), (conservative, given)):
            inside = settings | {"learner": sf.BPIUCBVI(other)}
            message = "Build both from the same problem"
            assert_refused(sf.InvalidSetting, message, kind, problem, baseline, 1.0, **inside)
            kind(problem, baseline, 1.0, **settings, **known)  # control
    unknown, message = problem.forget(rewards=True), "UCBVI is built for known rewards"
    assert_refused(sf.InvalidSetting, message, sf.UCBVI, unknown, episodes=10)
    # controls
    assert saving(problem, baseline, sf.Relative(0.1), **given).floor == pytest.approx(0.9 * value)
    assert "baseline_value=" in repr(saving(problem, baseline, 1.0, **given))


# ---- costs


def spied(monkeypatch, world, agent):
    """A run of 150 episodes, and the policies that were planned for it."""
    played, plan = [], type(agent).plan

    def spy(self, counts, rng=None):
        made = plan(self, counts, rng)
        played.append(made.policy)
        return made

    monkeypatch.setattr(type(agent), "plan", spy)
    return sf.simulate(world, agent, 150, seed=0), played


def test_a_run_about_costs(kind, costly, world, cost, spent, monkeypatch):
    """Violations are of the budget: recounted from the policies that were planned, by their
    exact visits.
    """
    box = OWN_BOX[kind](1e-3 if kind == "DOPE" else 5e-5)
    agent = costly(0.3, bounds=box, replan=0.0)
    run, played = spied(monkeypatch, world, agent)
    costs = np.array([(sf.occupancy(world, policy) * cost).sum() for policy in played])
    assert len(costs) == run.episodes == 150
    assert run.budget == spent + 0.3
    assert run.baseline_cost == pytest.approx(spent, abs=1e-12)
    assert run.max_cost == pytest.approx(costs.max(), abs=1e-12)
    assert run.violations == (costs > run.budget + VIOLATION_TOLERANCE).sum()
    assert run.min_cumulative == pytest.approx((run.budget - costs).cumsum().min(), abs=1e-9)
    assert run.sources["optimistic"] > 10
    assert (run.floor, run.knows_baseline_value) == (None, True)
    assert f"violations of the budget of {run.budget:g}" in repr(run)


def test_a_broken_budget_is_counted(kind, world, monkeypatch):
    """Control: without any bonus, where what pays is what costs, the budget is broken; each such
    episode is counted.
    """
    cost, baseline = world.r, sf.uniform(H, S, A)
    spent = float((sf.occupancy(world, baseline) * cost).sum())
    given = {"cost": cost, "budget": spent + 0.1, "baseline_cost": spent, "episodes": 1000}
    bounds = OWN_BOX[kind](0.0)
    agent = LP_AGENTS[kind](world.problem, baseline, bounds=bounds, replan=0.0, **given)
    run, played = spied(monkeypatch, world, agent)
    costs = np.array([(sf.occupancy(world, policy) * cost).sum() for policy in played])
    values = np.array([sf.policy_value(world, policy)[0, 0] for policy in played])
    over = costs > spent + 0.1 + VIOLATION_TOLERANCE
    assert 0 < run.violations == over.sum() < 150
    assert run.max_cost == pytest.approx(costs.max(), abs=1e-12)
    assert run.max_cost > run.budget + 1e-3
    assert (run.curve.below * run.curve.episodes).sum() == pytest.approx(run.violations)
    assert run.min_value == pytest.approx(values.min(), abs=1e-12)  # still values, not costs
    best = sf.constrained_optimum(world, spent + 0.1, cost).value  # what the budget allows, not V*
    assert best < sf.solve(world).value - 0.1
    assert run.regret == pytest.approx((best - values).sum(), abs=1e-7)
    assert "NOT CERTIFIED" in str(run.promise)


def test_a_baseline_over_the_budget_is_warned_of(costly, world, spent):
    agent = costly(-0.1, baseline_cost=spent - 0.5)
    with pytest.warns(
        sf.FloorAboveBaseline, match=r"The baseline costs 1\.\d+, above the budget of 1\.\d+"
    ):
        run = sf.simulate(world, agent, 20, seed=0)
    assert run.violations == 20
    assert str(run.promise).startswith("no promise: its premise is false, the baseline costs")
    # control: no warning (they are errors here), no violation
    run = sf.simulate(world, costly(0.1), 20, seed=0)
    assert run.violations == 0
    assert str(run.promise).startswith(
        "certified at delta = 0.05 for the cost of every episode's policy, at most"
    )


def test_a_floor_beside_costs_has_no_promise(costly, world, value):
    run = sf.simulate(world, costly(0.3), 20, seed=0, floor=value - 0.1)
    assert str(run.promise).startswith("no promise for this floor: the agent keeps costs within")
    assert (run.floor, run.budget, run.max_cost, run.violations) == (value - 0.1, None, None, 0)


def test_the_baselines_row_of_a_run_about_costs(costly, world, spent):
    """Its violations are of the budget, too: how many episodes on the baseline alone would have
    broken it.
    """
    fine = rows([sf.simulate(world, costly(0.3), 20, seed=0)])
    assert fine[0]["agent"] == "baseline alone"
    assert fine[0]["cost"] == pytest.approx(spent, abs=1e-12)
    assert fine[1]["cost"] == pytest.approx(spent, abs=1e-12)
    assert fine[0]["violations"] == 0
    with pytest.warns(sf.FloorAboveBaseline):
        run = sf.simulate(world, costly(-0.1, baseline_cost=0.1), 20, seed=0)
    assert [row["violations"] for row in rows([run])] == [20, 20]


# ---- who was given the value, and what is promised


def everybody(world, baseline, value, **scaled):
    """All rivals, and whether they know what the baseline is worth."""
    problem, three = world.problem, (world.problem, baseline, 1.0)
    given = {"baseline_value": value, "episodes": 1000}
    scale = scaled.get("scale", 1.0)
    return [
        (sf.DOPE(*three, bounds=sf.BernsteinBox(scale), **given), True),
        (sf.DOPE(*three, bounds=sf.MaurerPontilBox(scale), **given), True),
        (sf.OptPessLP(*three, bounds=sf.HoeffdingBox(scale), **given), True),
        (sf.OptPessLP(*three, bounds=sf.MaurerPontilBox(scale), **given), True),
        (sf.BudgetExploration(*three, bounds=sf.KL(scale=scale), baseline_value=value), True),
        (sf.BudgetExploration(*three, bounds=sf.KL(scale=scale)), False),
        (sf.ConservativeUCBVI(*three, bounds=sf.KL(scale=scale), baseline_value=value), True),
        (
            sf.ConservativeUCBVI(
                *three, learner=sf.UCBVI(problem, episodes=99, scale=scale), baseline_value=value
            ),
            True,
        ),
        (sf.UCBVI(problem, episodes=1000, scale=scale), False),
        (sf.StepMix(*three, bounds=sf.KL(scale=scale)), False),
    ]


def test_who_knows_the_value_is_shown(world, baseline, value, capsys):
    runs = []
    for agent, knows in everybody(world, baseline, value):
        run = sf.simulate(world, agent, 10, seed=0, floor=1.0)
        assert run.knows_baseline_value is knows, agent
        runs.append(run)
    table = rows(runs)
    assert [row["knows_baseline_value"] for row in table[1:]] == [
        "yes" if run.knows_baseline_value else "no" for run in runs
    ]
    assert table[0]["knows_baseline_value"] is None
    assert all(row["cost"] is None for row in table)
    print_runs(runs[:1])
    assert "knows" in capsys.readouterr().out
    print_runs(runs[-1:])
    assert "knows" not in capsys.readouterr().out  # control: nobody does


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0 - 1e-12, 2.0])
def test_a_scaled_rival_is_never_certified(scale, world, baseline, value):
    for agent, _ in everybody(world, baseline, value, scale=scale):
        assert str(agent.promise).startswith("NOT CERTIFIED"), agent
        for floor in (None, 1.0, 1.1):
            run = sf.simulate(world, agent, 5, seed=0, floor=floor)
            assert "NOT CERTIFIED" in str(run.promise)
            assert "NOT CERTIFIED" in repr(run)
            assert "NOT CERTIFIED" in rows([run])[-1]["promise"]
        plan = agent.plan(sf.Counts.zeros(world.problem))
        assert (plan.safety, plan.certified) == ("NOT CERTIFIED", False)
    for agent, _ in everybody(world, baseline, value):  # control
        assert "NOT CERTIFIED" not in str(agent.promise)
        assert agent.plan(sf.Counts.zeros(world.problem)).safety != "NOT CERTIFIED"


def test_a_scaled_agent_for_costs_is_never_certified(kind, costly, world, value):
    """Whatever else is to be said about its promise: the premise, or another floor."""
    box = OWN_BOX[kind](0.5)
    fine = costly(0.3, bounds=box)
    for floor in (None, value - 0.1):
        run = sf.simulate(world, fine, 5, seed=0, floor=floor)
        assert "NOT CERTIFIED" in str(run.promise)
    over = costly(-0.1, baseline_cost=0.1, bounds=box)
    with pytest.warns(sf.FloorAboveBaseline):
        assert "NOT CERTIFIED" in str(sf.simulate(world, over, 5, seed=0).promise)


def test_a_ledger_of_scaled_values_is_not_spent_as_certified():
    """What an agent with a scaled bonus entered was never proved. Another one must not call it
    saved.
    """
    world = sf.world("trap")
    three = (world.problem, world.baseline, world.suggested_floor)
    counts = sf.simulate(
        world, sf.BudgetExploration(*three, bounds=sf.KL(scale=1e-4)), 300, seed=0
    ).counts
    assert counts.account[1] > 100
    proper = sf.BudgetExploration(*three)

    def next_source(counts):
        """What is played next; counts that are refused are not played from at all."""
        try:
            return next(
                source
                for source, n in sf.simulate(world, proper, 1, 1, counts=counts).sources.items()
                if n
            )
        except sf.InvalidCounts:
            return "refused"

    empty = counts.copy()
    empty.account[:] = 0
    # control: without the account there is nothing to spend
    assert next_source(empty) in ("baseline", "refused")
    own = sf.simulate(world, proper, 2000, seed=0).counts
    assert next_source(own) != "refused"  # control: what it entered itself is its own
    assert next_source(counts) in ("baseline", "refused")


# ---- resuming


def test_another_table_of_costs_is_another_run(tmp_path, assert_refused):
    """A run about some costs is not continued about others, though budget and slack are the
    same.
    """
    env, world = gymnasium.make("surefoot.worlds.gymnasium:Trap-v0"), sf.world("trap")
    one, other = np.random.default_rng(0).random((2, *world.r.shape))

    def agent(cost):
        settings = {"cost": cost, "budget": 1.5, "baseline_cost": 0.1, "episodes": 1000}
        return sf.DOPE(world.problem, world.baseline, **settings)

    path = tmp_path / "run.npz"
    first = sf.learn(env, agent(one), 20, seed=0, save=path)
    # control: its own goes on
    again = sf.learn(env, agent(one), 20, seed=0, save=path, resume=True)
    assert (again.max_cost, again.budget) == (first.max_cost, 1.5)
    assert_refused(
        sf.InvalidFile,
        "belongs to another run",
        sf.learn,
        env,
        agent(other),
        20,
        seed=0,
        save=path,
        resume=True,
    )


@pytest.mark.parametrize("name", ["baseline_value", "scale"])
def test_numbers_are_compared_to_the_last_digit(name, tmp_path, assert_refused):
    """The value that the agent was given, or its scale, shown with six digits, is compared with
    all of them.
    """
    env, world = gymnasium.make("surefoot.worlds.gymnasium:Trap-v0"), sf.world("trap")
    three, settings = (
        (world.problem, world.baseline, world.suggested_floor),
        {"episodes": 1000, "baseline_value": 0.68},
    )

    def agent(more):
        if name == "scale":
            inside = sf.UCBVI(world.problem, episodes=1000, scale=0.01 + more)
            return sf.ConservativeUCBVI(*three, learner=inside, baseline_value=0.68)
        return sf.DOPE(*three, **{**settings, "baseline_value": 0.68 + more})

    path = tmp_path / "run.npz"
    sf.learn(env, agent(0.0), 20, seed=0, save=path)
    sf.learn(env, agent(0.0), 20, seed=0, save=path, resume=True)  # control
    for more in (1e-3, 1e-10):
        assert_refused(
            sf.InvalidFile,
            "belongs to another run",
            sf.learn,
            env,
            agent(more),
            20,
            seed=0,
            save=path,
            resume=True,
        )


# ---- words


def test_a_plan_must_be_a_plan(world, assert_refused):
    """The natural mistake in an agent of one's own: to return the policy."""

    class Mine:
        problem, floor, pooled, promise = world.problem, None, False, "no floor promised"

        def plan(self, counts):
            return self.answer

    mine = Mine()
    mine.answer = sf.uniform(H, S, A)
    for agent in (
        mine,
        sf.BudgetExploration(world.problem, sf.uniform(H, S, A), 0.1, learner=mine),
    ):
        assert_refused(
            sf.InvalidSetting,
            r"The plan of Mine is a ndarray, expected an sf.Plan: sf.Plan.plain",
            sf.simulate,
            world,
            agent,
            3,
            seed=0,
        )
    mine.answer = sf.Plan.plain(sf.uniform(H, S, A))
    assert sf.simulate(world, mine, 3, seed=0).violations is None
    assert (mine.answer.safety, mine.answer.certified) == ("no floor", False)


def test_what_is_scaled_is_not_called_proved():
    world = sf.world("trap")
    three = (world.problem, world.baseline, 0.6)
    for scale in (1.0, 0.1):
        agent = sf.BudgetExploration(*three, bounds=sf.KL(scale=scale), baseline_value=0.685)
        said = agent.plan(sf.simulate(world, agent, 300, seed=0).counts).explain()
        assert ("NOT CERTIFIED" in said) == (scale != 1.0)
        assert ("proved" in said) == (scale == 1.0)
        assert "0.685" in said


def test_an_account_says_what_it_rests_on(monkeypatch):
    """Each of the three labels of a plan of the explorer's, with its reason."""
    world = sf.world("trap")
    three = (world.problem, world.baseline, 0.6)
    seen, make_plan = {}, sf.BudgetExploration.make_plan

    def spy(self, proposal, counts):
        plan = make_plan(self, proposal, counts)
        seen.setdefault((plan.source, plan.safety, self.baseline_value is not None), plan.explain())
        return plan

    monkeypatch.setattr(sf.BudgetExploration, "make_plan", spy)
    for seed, given in itertools.product((0, 1), ({}, {"baseline_value": 0.685})):
        agent = sf.BudgetExploration(*three, bounds=sf.KL(full_support=True), **given)
        sf.simulate(world, agent, 4000, seed=seed)
    assert (
        "Trusted, given the baseline's value of 0.685: not certified."
        in seen["optimistic", "trusted", True]
    )
    assert (
        "Trusted, not certified: it rests on the premise that"
        in seen["optimistic", "trusted", False]
    )
    assert "this policy alone is worth at least" in seen["optimistic", "certified", False]
    assert "Certified in total, not by itself" in seen["optimistic", "certified in total", False]
    learner = sf.Learner(sf.BudgetExploration(*three), 0)
    learner.begin()
    assert repr(learner).startswith("Learner(BudgetExploration(")
    assert repr(learner).endswith("seed=0, 0 episodes played, step 0 of one more)")


def answered(q, status="optimal"):
    return Occupancy(status, status.capitalize(), q, None)


def test_the_solvers_answer_is_not_enough():
    """A solver that spends too much is asked again with less; one that never stops, or finds
    nothing where there is something, is warned of, and the baseline is played.
    """
    pi_b, dear = sf.uniform(1, 1, 2), np.array([[[0.0, 1.0]]])

    def prove(pi):  # the second action costs 1, the first nothing
        return float(pi[0, 0, 1])

    def settled(solve, C=0.6, cheapest=0.0):
        return settle(solve, prove, pi_b, C, cheapest, 0.0, None)

    asked = []

    # half of what it has is spent beyond that, until it has less than 0.4
    def greedy_solver(budget):
        asked.append(budget)
        share = budget + 0.1 * (budget > 0.45)
        return answered(np.array([[[1.0 - share, share]]]))

    found = settled(greedy_solver)
    assert (found.source, found.failed) == ("optimistic", False)
    assert found.cost == pytest.approx(asked[-1]) == prove(found.policy) <= 0.6
    assert len(asked) == 2
    assert asked[1] < asked[0] - 0.1
    for answer in (answered(dear), answered(dear, "failed"), answered(dear, "infeasible")):
        found = settled(lambda budget, answer=answer: answer)
        assert (found.source, found.cost, found.failed) == ("baseline", 0.5, True)
    # Control: where hardly anything is cheap enough, infeasible is an honest answer.
    found = settled(lambda budget: answered(dear, "infeasible"), C=0.6, cheapest=0.6 - 1e-9)
    assert (found.source, found.failed) == ("baseline", False)


@pytest.mark.parametrize("kind", ["DOPE", "OptPess-LP"])
def test_a_solver_that_fails_from_its_basis_begins_without(kind, monkeypatch):
    """And one that fails altogether warns, and plays the baseline."""
    world = sf.random_mdp(3, 2, 3, seed=0, stationary=True)
    baseline = sf.boltzmann(sf.solve(world).Q, 2.0)
    worth = float(sf.policy_value(world, baseline)[0, 0])
    given = {
        "baseline_value": worth,
        "episodes": 10**9,
        "pooled": True,
        "bounds": sf.MaurerPontilBox(),
    }
    agent = LP_AGENTS[kind](world.problem, baseline, worth - 0.3, **given)
    counts = sf.Counts(np.random.default_rng(0).multinomial(10**7, world.P_rows[0]), H=3)
    cold = agent.plan(counts)
    assert cold.source == "optimistic"
    counts.basis = cold.basis
    begun, runs = [], []

    class Failing(highspy.Highs):
        def setBasis(self, *basis):
            begun.append(len(runs))
            return super().setBasis(*basis)

        def getModelStatus(self):
            runs.append(super().getModelStatus())
            return runs[-1] if len(runs) > fails else highspy.HighsModelStatus.kUnknown

    monkeypatch.setattr(highspy, "Highs", Failing)
    fails = 1
    again = agent.plan(counts)
    # the first run begins from the basis, the second one without
    assert (begun, len(runs)) == ([0], 2)
    np.testing.assert_array_equal(again.policy, cold.policy)
    fails = 10**6
    with pytest.warns(sf.SolverTrouble, match="the solver says 'Unknown'. The baseline is played"):
        assert agent.plan(counts).source == "baseline"


class Handmade(sf.CountingAgent):
    """A user's own agent of our kind, without dataclasses: two policies by turns, ten episodes
    each.
    """

    name, delta, pooled, replan, floor, promise = (
        "by hand",
        0.05,
        False,
        1.0,
        None,
        "no floor promised",
    )

    def __init__(self, problem):
        self.problem = problem

    @property
    def pi_b(self):
        return sf.uniform(self.problem.H, self.problem.S, self.problem.A)

    def turn(self, a):
        policy = np.zeros((self.problem.H, self.problem.S, self.problem.A))
        policy[..., a] = 1.0
        return sf.Plan(
            policy,
            "optimistic",
            0,
            1.0,
            0.0,
            float(self.problem.H),
            [0.0],
            "no floor",
            max_episodes=10,
        )

    def plan(self, counts, rng=None):
        return self.turn(0)

    def continue_plan(self, plan, counts):
        return self.turn(int(1 - plan.policy[0, 0].argmax()))


def test_an_agent_by_hand_continues_as_it_says(world, assert_same_run):
    """By both loops that play episode by episode; and in blocks, which are as long as it says."""
    runs = [
        simulate(world, Handmade(world.problem), 95, seed=0)
        for simulate in (sf.simulate, simulate_plainly)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "surefoot.run.simulate.loop_for", lambda agent, ledger=None: loops.plan_by_plan
        )
        assert_same_run(sf.simulate(world, Handmade(world.problem), 95, seed=0), runs[1])
    np.testing.assert_array_equal(runs[0].curve.mean, runs[1].curve.mean)
    values = [sf.policy_value(world, Handmade(world.problem).turn(a).policy)[0, 0] for a in (0, 1)]
    assert abs(values[0] - values[1]) > 0.01
    assert {round(v, 9) for v in runs[0].curve.mean} == {round(v, 9) for v in values}
    assert sf.check_agent(Handmade(world.problem)).ok
    env = gymnasium.make("surefoot.worlds.gymnasium:Trap-v0")
    assert sf.learn(env, Handmade(sf.world("trap").problem), 5, seed=0).episodes == 5


def test_an_agent_for_few_episodes_can_be_checked(world, baseline, value):
    for episodes in (1, 2, 20, 31):
        agent = sf.DOPE(world.problem, baseline, 1.0, baseline_value=value, episodes=episodes)
        assert sf.check_agent(agent).ok


@pytest.mark.parametrize("kappa", [1e-3, 1e-6, 1e-9])
def test_a_baseline_that_leaves_hardly_any_slack(kappa):
    """The optimistic rewards are divided by it: a linear program with numbers of 10^8 is solved
    all the same.
    """
    world = sf.random_mdp(3, 2, 3, seed=0, stationary=True)
    baseline = sf.boltzmann(sf.solve(world).Q, 2.0)
    visits = np.random.default_rng(0).multinomial(10**6, world.P_rows[0])
    worth = float(sf.policy_value(world, baseline)[0, 0])
    for kind in (sf.DOPE, sf.OptPessLP):
        for box in (sf.MaurerPontilBox(), None):
            settings = {"bounds": box} if box else {}
            given = {"baseline_value": worth - 0.3 + kappa, "episodes": 10**7, "pooled": True}
            agent = kind(world.problem, baseline, worth - 0.3, **given, **settings)
            plan = agent.plan(sf.Counts(visits, H=3))  # a SolverTrouble would be an error here
            assert plan.safety in ("certified", "trusted")


def test_the_smallest_sum_of_the_baseline_alone(world, baseline, value):
    """Of its first episode where it is above the floor; of all of them where it is below."""
    run = sf.simulate(world, sf.StepMix(world.problem, baseline, value - 0.2), 50, seed=0)
    assert rows([run])[0]["smallest_sum"] == pytest.approx(0.2)
    with pytest.warns(sf.FloorAboveBaseline):
        run = sf.simulate(world, sf.StepMix(world.problem, baseline, value + 0.1), 50, seed=0)
    assert rows([run])[0]["smallest_sum"] == pytest.approx(-5.0)


# ---- the command


RIVALS = ("dope", "optpess-lp", "budget-exploration", "conservative-ucbvi")


def test_try_takes_the_rivals():
    agents = [word for name in RIVALS for word in ("--agent", name)]
    result = surefoot("try", "trap", *agents, "--episodes", "300", "--json")
    assert result.exit_code == 0, result.output
    table = json.loads(result.stdout)
    found = {row["agent"]: row for row in table["rows"]}
    names = [
        "baseline alone",
        "DOPE",
        "OptPess-LP",
        "Budget-Exploration",
        "conservative UCBVI",
        "BPI-UCBVI (EpsMix form)",
    ]
    assert [row["agent"] for row in table["rows"]] == names
    assert [row["knows_baseline_value"] for row in table["rows"]] == [
        None,
        "yes",
        "yes",
        "no",
        "yes",
        "no",
    ]
    assert all(row["episodes"] == 300 and not row["interrupted"] for row in table["rows"])
    assert found["DOPE"]["violations"] == found["OptPess-LP"]["violations"] == 0
    # control: without a floor it is broken
    assert found["BPI-UCBVI (EpsMix form)"]["violations"] > 0
    assert found["Budget-Exploration"]["smallest_sum"] >= 0.0
    assert all("certified at delta = 0.05" in found[name]["promise"] for name in names[1:4])
    assert found["conservative UCBVI"]["promise"].startswith(
        "trusted, given the baseline's value of"
    )
