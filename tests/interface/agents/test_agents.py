"""What every agent must do. Registering one in `sf.AGENTS` enrols it here."""

import copy
import pickle

import numpy as np
import pytest

import surefoot as sf
from saved import reloaded
from surefoot.agents import SpliceAgent
from surefoot.agents.replanning import SHARE
from surefoot.agents.settings import AgentSettings
from surefoot.base.digest import digest
from surefoot.bounds import BOUNDS
from surefoot.bounds.certificate import fingerprint_of
from surefoot.run.by_name import build_agent, build_bounds, try_agents
from surefoot.studies.spec.study import parse_study

KINDS = {**sf.AGENTS, "ucbvi": sf.UCBVI}  # what conservative UCBVI has inside is an agent, too
NAMES = sorted(KINDS)
SPLICES = sorted(name for name, kind in sf.AGENTS.items() if issubclass(kind, SpliceAgent))
BOXES = {"dope": sf.BernsteinBox, "optpess-lp": sf.HoeffdingBox}  # as printed
K = 4 * 10**7  # the number of episodes inside the rivals' logarithms


def scaled(kind, scale):
    """The agent's own constants times a scale."""
    if issubclass(kind, SpliceAgent):
        return {"bounds": sf.Bernstein(scale)}
    return {"scale": scale}


def maker(name, world):
    """A function that builds the agent with given settings."""
    kind = KINDS[name]
    baseline = sf.boltzmann(sf.solve(world).Q, eta=10.0)
    value = sf.value(world, baseline)

    def build(floor=2.0, **settings):
        if kind in (sf.BPIUCBVI, sf.BPIUCBVIMenard):
            return kind(world.problem, **settings)
        if kind is sf.UCBVI:
            return kind(world.problem, **{"episodes": K, **settings})
        if not issubclass(kind, SpliceAgent):
            settings = {"baseline_value": value, "episodes": K, **settings}
        return kind(world.problem, baseline, floor, **settings)

    return build


@pytest.fixture(params=NAMES)
def make(request, paper_world):
    """What every agent does."""
    return maker(request.param, paper_world)


@pytest.fixture(params=SPLICES)
def make_splice(request, paper_world):
    """Of those that take KL or the paper's bounds."""
    return maker(request.param, paper_world)


def said(plan):
    """What a plan says, but for its policy."""
    return plan.source, plan.h, plan.rho, plan.lower, plan.upper


def informed(world, counts_of, episodes=3 * 10**7):
    best = sf.solve(world)
    explore = sf.step_mixture(sf.boltzmann(best.Q, eta=2.0), best.policy, 0.5)
    return counts_of(world, explore, episodes, seed=0)


def test_it_is_an_agent(make):
    assert isinstance(make(), sf.Agent)


def test_it_is_frozen(make):
    agent = make()
    with pytest.raises(AttributeError):
        agent.delta = 0.5
    if agent.floor is not None:
        with pytest.raises(ValueError, match="read-only"):
            agent.baseline[0, 0, 0] = 1.0


def test_defaults_are_for_people(make):
    agent = make()
    assert agent.delta == 0.05
    assert agent.pooled is False
    assert agent.replan is None and agent.replan_share == SHARE == 0.02
    assert make(replan=0.1).replan_share == 0.1
    assert "NOT CERTIFIED" not in str(agent.promise)


def test_agents_that_cannot_plan_for_so_many_states_refuse_them(assert_refused):
    many = sf.Problem(np.full((20_000, 2), 0.5), H=2, stationary=True)
    few = (
        r"has a number for every next state of every pair: H x S x A x S = 2 x 20000 x 2 x "
        r"20000, expected at most"
    )
    for build in (
        lambda: sf.UCBVI(many, episodes=100),
        lambda: sf.BPIUCBVIMenard(many),
    ):
        assert_refused(sf.InvalidSetting, few, build)


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan, np.inf, "0.1", True])
def test_a_share_outside_of_0_to_1_is_refused(make, share, assert_refused):
    assert_refused(
        sf.InvalidSetting,
        r"replan is .*expected a number from 0 to 1: the share of",
        make,
        replan=share,
    )


def test_default_bounds_are_sharp(make_splice):
    make, agent = make_splice, make_splice()
    assert agent.bounds == sf.KL()
    assert agent.bounds.certified
    # With the paper's bounds the default is the paper's, too; and what is said is kept.
    assert make(bounds=sf.Bernstein()).replan_share == 0.0
    assert make(bounds=sf.Bernstein(), replan=0.1).replan_share == 0.1


def test_the_rivals_constants_are_the_printed_ones(paper_world):
    assert maker("dope", paper_world)().bounds == sf.BernsteinBox(1.0)
    assert maker("optpess-lp", paper_world)().bounds == sf.HoeffdingBox(1.0)
    assert maker("dope", paper_world)(scale=0.5).bounds == sf.BernsteinBox(0.5)


def test_the_preset_is_the_papers(make_splice):
    plain = make_splice()
    kind = type(plain)
    arguments = (
        (plain.problem,) if plain.floor is None else (plain.problem, plain.baseline, plain.floor)
    )
    agent = kind.paper(*arguments, delta=0.1)
    assert (agent.delta, agent.pooled) == (0.1, False)
    assert agent.bounds == sf.Bernstein(1.0)
    assert agent.replan_share == agent.replan == 0.0
    assert kind.paper(*arguments).delta == 0.05


def test_plans_depend_on_counts_alone(make, paper_world, counts_of):
    agent, counts = make(), informed(paper_world, counts_of)
    before = counts.copy()
    first, second = agent.plan(counts), agent.plan(counts)
    assert counts == before
    assert said(first) == said(second)


def test_a_plan_says_what_it_is(make, paper_world, counts_of):
    for counts in (sf.Counts.zeros(paper_world.problem), informed(paper_world, counts_of)):
        agent = make()
        plan = agent.plan(counts)
        policies = (
            [plan.policy.first, plan.policy.second]
            if isinstance(plan.policy, sf.EpisodicMixture)
            else [plan.policy]
        )
        for policy in policies:
            sf.check_policy(policy, paper_world.problem)
        assert plan.source in ("baseline", "mixture", "optimistic")
        assert 0 <= plan.h <= paper_world.H
        assert 0.0 <= plan.rho <= 1.0
        assert 0.0 <= plan.lower <= plan.upper <= paper_world.H
        assert plan.safety in repr(plan)
        if plan.certified:
            assert plan.lower >= agent.floor
        if plan.entry is not None:
            assert 0.0 <= plan.entry <= paper_world.H


def test_without_data_safety_is_trust(make, paper_world):
    """At a floor that the rewards alone do not prove: these are known, so KL certifies some
    values without any data.
    """
    agent = make(floor=2.55)
    plan = agent.plan(sf.Counts.zeros(paper_world.problem))
    if agent.floor is None:
        assert (plan.source, plan.safety) == ("optimistic", "no floor")
    else:
        assert (plan.source, plan.h, plan.rho, plan.safety) == (
            "baseline",
            paper_world.H,
            0.0,
            "trusted",
        )
        assert plan.lower < agent.floor
    assert not plan.certified


def test_with_data_safety_is_certified(make, paper_world, counts_of):
    agent = make()
    plan = agent.plan(informed(paper_world, counts_of))
    if agent.floor is not None:
        assert plan.source != "baseline" or isinstance(agent, sf.StepNoMix)
        assert plan.safety == "certified"


def test_a_scaled_bonus_is_never_certified(make, paper_world, counts_of):
    for scale in (0.0, 0.5, 0.999999, 2.0):
        agent = make(**scaled(type(make()), scale))
        for counts in (sf.Counts.zeros(paper_world.problem), informed(paper_world, counts_of)):
            plan = agent.plan(counts)
            assert plan.safety == "NOT CERTIFIED"
            assert not plan.certified
        assert "NOT CERTIFIED" in str(agent.promise)
        assert "NOT CERTIFIED" in repr(sf.simulate(paper_world, agent, 3, seed=0))


def test_counts_of_another_problem_are_refused(make, assert_refused):
    other = sf.random_mdp(S=4, A=5, H=3, seed=0)
    assert_refused(
        sf.InvalidCounts,
        r"shape \(3, 4, 5, 4\), expected \(3, 5, 5, 5\)",
        make().plan,
        sf.Counts.zeros(other.problem),
    )


def test_episodes_per_source_sum_to_all_and_it_resumes_from_saved_counts(
    make, paper_world, tmp_path
):
    """Agents of the plain loop play fewer episodes: each of their plans takes a thousand times
    as long.
    """
    agent = make(**scaled(type(make()), 1e-4))
    episodes = 3000 if type(agent) in (sf.StepMix, sf.EpsMix, sf.StepNoMix, sf.BPIUCBVI) else 400
    run = sf.simulate(paper_world, agent, episodes, seed=1, floor=2.0)
    assert sum(run.sources.values()) == run.by_h.sum() == run.episodes == episodes
    assert run.counts.n_sas.sum() == episodes * paper_world.H
    counts = run.counts
    again = agent.plan(reloaded(counts, tmp_path))
    plan = agent.plan(counts)
    assert said(plan) == said(again)


def test_the_mixture_is_worth_its_promise(paper_world, counts_of):
    """On counts from the true world: the mixed policy's exact value is the neighbours' mean, and
    above the floor.
    """
    baseline = sf.boltzmann(sf.solve(paper_world).Q, eta=10.0)
    counts = counts_of(paper_world, baseline, 4 * 10**6, seed=0)
    step = sf.StepMix.paper(paper_world.problem, baseline, 2.0, delta=0.1).plan(counts)
    eps = sf.EpsMix.paper(paper_world.problem, baseline, 2.0, delta=0.1).plan(counts)
    for plan in (step, eps):
        assert plan.source == "mixture"
        assert 0.0 < plan.rho < 1.0
        assert plan.lower == 2.0
        assert sf.value(paper_world, plan.policy) > 2.0
    mixed_rows = [h for h in range(3) if not np.array_equal(step.policy[h], baseline[h])]
    assert step.h - 1 in mixed_rows
    assert all(row >= step.h - 1 for row in mixed_rows)


def test_an_agent_with_a_plan_of_its_own_is_asked_for_it(paper_world):
    """The fused loop would otherwise play, and certify, something else."""

    class Timid(sf.StepMix):
        def plan(self, counts):
            return sf.Plan(self.baseline, "baseline", 3, 0.0, 0.0, 3.0, [0.0], "trusted")

    run = sf.simulate(paper_world, Timid(paper_world.problem, sf.uniform(3, 5, 5), 0.0), 20, seed=0)
    assert run.sources["baseline"] == 20
    run = sf.simulate(
        paper_world, sf.StepMix.paper(paper_world.problem, sf.uniform(3, 5, 5), 0.0), 20, seed=0
    )
    assert run.sources["optimistic"] == 20  # control: StepMix itself is optimistic at floor 0


def test_a_subclass_of_the_bounds_is_never_certified(paper_world, assert_refused):
    class Mine(sf.Bernstein):
        pass

    assert not Mine().certified
    assert_refused(
        sf.InvalidSetting, "not a subclass", sf.BPIUCBVI, paper_world.problem, bounds=Mine()
    )


def test_another_floor_has_no_promise(paper_world):
    agent = sf.StepMix.paper(paper_world.problem, sf.boltzmann(sf.solve(paper_world).Q, 10.0), 1.0)
    assert str(sf.simulate(paper_world, agent, 3, seed=0, floor=1.0).promise).startswith(
        "certified at delta = 0.05"
    )
    other = sf.simulate(paper_world, agent, 3, seed=0, floor=2.0).promise
    assert str(other) == "no promise for this floor: the agent keeps 1"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_as_frozen_as_the_original(make, paper_world, copied):
    """Worker processes get copies; kernels would be compiled again for writable ones, which
    could be changed.
    """
    used = make()
    # what was asked of it before is no obstacle
    assert used.replan_share == copied(used).replan_share
    for original in (
        used,
        copied(used),
        paper_world,
        paper_world.problem,
        make().plan(sf.Counts.zeros(paper_world.problem)),
    ):
        again = copied(original)
        arrays = {
            name: value for name, value in vars(again).items() if isinstance(value, np.ndarray)
        }
        assert all(not array.flags.writeable for array in arrays.values())
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, getattr(original, name))
    world = copied(sf.random_mdp(3, 2, 4, seed=0, stationary=True))
    assert world.stationary
    assert world.P_rows.shape == (1, 3, 2, 3)
    assert world.P.strides[0] == 0  # still stored once


def test_a_users_own_agent_runs_in_the_plain_loop(paper_world, assert_refused):
    """The protocol is all that is asked."""

    class Uniform:
        problem = paper_world.problem
        floor = None
        pooled = False
        promise = "no floor promised"

        def plan(self, counts):
            return sf.Plan(
                sf.uniform(3, 5, 5), "baseline", self.h, 0.0, 0.0, 3.0, [0.0], "no floor"
            )

    Uniform.h = 4
    assert_refused(
        sf.InvalidSetting,
        r"h = 4, expected a step in 0..3",
        sf.simulate,
        paper_world,
        Uniform(),
        50,
        seed=0,
    )
    Uniform.h = 3
    run = sf.simulate(paper_world, Uniform(), 50, seed=0)
    value = sf.value(paper_world, sf.uniform(3, 5, 5))
    assert run.mean_value == pytest.approx(value, abs=1e-12)
    assert run.violations is None


class Delegating:
    """A user's agent that lets one of ours plan."""

    floor, pooled, promise = 1.0, False, "as planned by another"

    def __init__(self, problem):
        self.problem, self._agent = problem, sf.StepMix(problem, sf.uniform(3, 5, 5), self.floor)

    def plan(self, counts):
        return self._agent.plan(counts)


def test_a_users_agent_may_let_another_plan(paper_world):
    learner = sf.Learner(Delegating(paper_world.problem), seed=0)
    for _ in range(3):
        learner.begin()
        for _ in range(paper_world.H):
            learner.act()
            learner.observe(0)
        learner.end()
    assert learner.counts.episodes == 3


# ---- built by name


def described(agent):
    return repr(agent), digest(agent)


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("family", sorted(BOUNDS))
def test_an_agent_built_by_name_is_the_one_built_by_hand(family, scale):
    """Each takes the settings that it can use: the rivals their printed boxes and bonus, or the
    sharpest of theirs.
    """
    world = sf.world("random", S=3, A=2, H=3, seed=1, stationary=True)
    pi_b, value = world.baseline, sf.value(world, world.baseline)
    three, sharp = (world.problem, pi_b, 0.4), family == "kl"
    common = {"delta": 0.1, "pooled": True, "replan": 0.1}
    given = {**common, "bounds": build_bounds(family, scale)}
    knows = {**common, "baseline_value": value, "episodes": 300}
    box = {name: sf.MaurerPontilBox if sharp else own for name, own in BOXES.items()}
    inside = (
        None
        if sharp
        else sf.UCBVI(world.problem, episodes=300, delta=0.1, scale=scale, pooled=True)
    )
    certificate = sf.Certificate(0.2, 0.01, fingerprint_of(pi_b, world.problem))
    by_hand = {
        "stepmix": sf.StepMix(*three, certificate=certificate, **given),
        "epsmix": sf.EpsMix(*three, certificate=certificate, **given),
        "bpi-ucbvi": sf.BPIUCBVI(world.problem, **given),
        "step-no-mix": sf.StepNoMix(*three, certificate=certificate, **given),
        "dope": sf.DOPE(*three, bounds=box["dope"](scale), **knows),
        "optpess-lp": sf.OptPessLP(*three, bounds=box["optpess-lp"](scale), **knows),
        "budget-exploration": sf.BudgetExploration(*three, **given),
        "conservative-ucbvi": sf.ConservativeUCBVI(
            *three, baseline_value=value, learner=inside, **given
        ),
        "bpi-ucbvi-menard": sf.BPIUCBVIMenard(world.problem, scale=scale, **common),
    }
    assert by_hand.keys() == sf.AGENTS.keys()
    settings = AgentSettings(pi_b, 0.4, value, 300, certificate=certificate, **given)
    for name, agent in by_hand.items():
        built = build_agent(name, world.problem, settings)
        assert type(built) is sf.AGENTS[name]
        assert described(built) == described(agent), name


def test_one_registration_is_enough(monkeypatch, assert_refused):
    """An agent that is registered in AGENTS can be tried, and named in a study, with no other
    change.
    """

    class Mine(sf.StepMix):
        name = "Mine"

    study = {
        **{"name": "mine", "title": "Mine", "question": "Does it learn?", "episodes": 10},
        "scenarios": [{"id": "trap", "world": {"name": "trap"}}],
        "agents": [{"id": "mine", "agent": "mine", "bounds": "kl"}],
    }
    assert_refused(sf.InvalidStudy, "mine", parse_study, study, "study")
    monkeypatch.setitem(sf.AGENTS, "mine", Mine)
    runs = try_agents(sf.world("trap"), ["mine"], None, 0.1, sf.KL(), False, 20, 0)
    assert [run.agent for run in runs] == ["Mine", "BPI-UCBVI (EpsMix form)"]
    assert parse_study(study, "study").cells[0].label == "Mine"


def test_every_registered_agent_is_a_public_name():
    assert all(
        getattr(sf, kind.__name__) is kind and kind.__name__ in sf.__all__
        for kind in sf.AGENTS.values()
    )
