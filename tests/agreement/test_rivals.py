"""The rivals: any agent's plans are played in compiled code to the bits of the plain loop, and
stopping, saving or going on from another basis changes nothing that matters.
"""

import functools
from itertools import product

import numpy as np
import pytest

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.base.validation import REWARD_UNITS
from surefoot.bounds import Model
from surefoot.bounds.lp import best_in_box, best_occupancy
from surefoot.run import loops, simulate

K = 10**5  # episodes inside the logarithms
NAMES = (
    "dope",
    "optpess-lp",
    "budget-exploration",
    "told",
    "conservative-ucbvi",
    "ucbvi",
    "thompson",
    "own",
)
FOUR = ("dope", "optpess-lp", "budget-exploration", "conservative-ucbvi")  # of other papers
SHARES = {"every episode": 0.0, "blocks": 0.1}
LP_AGENTS = {"dope": sf.DOPE, "optpess-lp": sf.OptPessLP}


class Own:
    """A user's own agent: the baseline until 20 episodes are counted, then a deterministic
    policy drawn again.
    """

    floor, promise = None, "nothing"

    def __init__(self, problem, baseline, pooled, replan):
        self.problem, self.baseline, self.pooled, self.replan = problem, baseline, pooled, replan

    def plan(self, counts, rng):
        H, S, A = self.baseline.shape
        if counts.episodes < 20:
            return sf.Plan(
                self.baseline,
                "baseline",
                H,
                0.0,
                0.0,
                H,
                [0.0],
                "no floor",
                max_episodes=7,
                entry=0.25,
            )
        bold = np.eye(A)[rng.integers(A, size=(H, S))]
        if counts.episodes % 2:
            coin = sf.EpisodicMixture(self.baseline, bold, 0.6)
            return sf.Plan(coin, "mixture", 0, 0.6, 0.0, H, [0.0], "no floor", entry=0.5)
        return sf.Plan(bold, "optimistic", 0, 1.0, 0.0, H, [0.0], "no floor", max_episodes=3)


def setting(pooled):
    """A small world, a baseline that can be improved on, its value and a floor below it."""
    world = sf.random_mdp(3, 2, 3, seed=2, stationary=pooled)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=3.0)
    value = float(world.at_start(sf.policy_value(world, baseline)[0]))
    return world, baseline, value, 0.8 * value


def build(name, pooled=False, replan=None, scale=None):
    """The agent, with bounds scaled so that it leaves the baseline within a few hundred
    episodes.
    """
    world, baseline, value, floor = setting(pooled)
    problem, same = world.problem, {"pooled": pooled, "replan": replan}
    three, given = (problem, baseline, floor), {"baseline_value": value, "episodes": K, **same}
    inside = sf.UCBVI(problem, episodes=K, scale=1e-3, pooled=pooled)
    makers = {
        "dope": lambda: sf.DOPE(*three, bounds=sf.BernsteinBox(scale or 1e-3), **given),
        "optpess-lp": lambda: sf.OptPessLP(*three, bounds=sf.HoeffdingBox(scale or 5e-5), **given),
        "budget-exploration": lambda: sf.BudgetExploration(*three, **same),
        "linear inside": lambda: sf.BudgetExploration(
            *three, learner=build("optpess-lp", pooled), **same
        ),
        "told": lambda: sf.BudgetExploration(*three, baseline_value=value, learner=inside, **same),
        "conservative-ucbvi": lambda: sf.ConservativeUCBVI(
            *three, baseline_value=value, learner=inside, **same
        ),
        "ucbvi": lambda: sf.UCBVI(problem, episodes=K, scale=1e-3, **same),
        "thompson": lambda: sf.StepMix(*three, explorer=sf.Thompson(problem), **same),
        "own": lambda: Own(problem, baseline, pooled, replan),
    }
    return makers[name]()


@pytest.fixture
def same(assert_same_run):
    """As everywhere, and in what only the rivals keep."""

    def compare(one, other):
        assert_same_run(one, other)
        for field in (
            "min_cumulative",
            "knows_baseline_value",
            "budget",
            "baseline_cost",
            "max_cost",
        ):
            assert getattr(one, field) == getattr(other, field), field
        assert one.counts.returns_of == other.counts.returns_of
        if one.counts.basis is None or other.counts.basis is None:
            assert one.counts.basis is other.counts.basis
        else:
            np.testing.assert_array_equal(one.counts.basis, other.counts.basis)

    return compare


def same_plan(one, other):
    """To the last bit."""
    policies = [
        (plan.policy.first, plan.policy.second)
        if isinstance(plan.policy, sf.EpisodicMixture)
        else (plan.policy,)
        for plan in (one, other)
    ]
    fields = ("source", "h", "rho", "lower", "upper", "safety", "cost", "max_episodes", "entry")
    bases = [b"-" if plan.basis is None else plan.basis.tobytes() for plan in (one, other)]
    return (
        all(getattr(one, field) == getattr(other, field) for field in fields)
        and [policy.tobytes() for policy in policies[0]]
        == [policy.tobytes() for policy in policies[1]]
        and one.candidates.tobytes() == other.candidates.tobytes()
        and bases[0] == bases[1]
        and one.explain() == other.explain()
    )


# ---- two loops


@functools.cache
def compiled(name, pooled, rule):
    """300 episodes of an agent, in compiled code."""
    world, _, _, floor = setting(pooled)
    return one_by_one(world, build(name, pooled, SHARES[rule]), 300, seed=4, floor=floor)


def one_by_one(world, agent, episodes, **settings):
    """A run whose episodes are played one by one in compiled code, for as long as each plan is
    in force.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate, "loop_for", lambda agent, ledger=None: loops.plan_by_plan)
        return sf.simulate(world, agent, episodes, **settings)


def cases_of(names):
    """Each agent with each rule, step by step and pooled; of these four, two in the quick suite,
    which cover both.
    """
    for (i, name), (j, rule), pooled in product(enumerate(names), enumerate(SHARES), (False, True)):
        marks = () if (i + j + pooled) % 2 == 0 else pytest.mark.full
        yield pytest.param(name, rule, pooled, marks=marks, id=f"{pooled}-{rule}-{name}")


@pytest.mark.parametrize(("name", "rule", "pooled"), list(cases_of(NAMES)))
def test_plain_is_compiled(name, rule, pooled, same):
    world, _, _, floor = setting(pooled)
    agent = build(name, pooled, SHARES[rule])
    run = compiled(name, pooled, rule)
    same(run, simulate_plainly(world, agent, 300, seed=4, floor=floor))
    assert run.off_baseline is not None
    assert run.sources["optimistic"] >= 20
    assert run.sources["baseline"] > 0 or name == "ucbvi"
    assert run.counts.pooled == pooled
    if name in ("budget-exploration", "told", "conservative-ucbvi"):
        assert run.counts.account[0] == run.sources["baseline"]
        assert run.counts.account[1] == run.sources["optimistic"]
    if rule == "every episode":
        same(run, sf.simulate(world, agent, 300, seed=4, floor=floor))
    else:  # control: the comparison tells runs apart
        with pytest.raises(AssertionError):
            same(run, one_by_one(world, agent, 300, seed=5, floor=floor))


@pytest.mark.parametrize("name", ["dope", "budget-exploration", "conservative-ucbvi", "own"])
def test_it_matters_when_plans_are_made(name):
    """Control: what is compared above depends on it."""
    every, blocks = (compiled(name, False, rule) for rule in SHARES)
    assert every.counts != blocks.counts


@pytest.mark.parametrize("name", FOUR)
def test_warm_starts_are_the_same_in_both(name, same):
    """Runs continue from the basis and the account of counts, and leave the counts alone."""
    world, _, _, floor = setting(False)
    agent = build(name, replan=0.1)
    first = sf.simulate(world, agent, 250, seed=4).counts
    before = first.copy()
    runs = [
        run(world, agent, 60, seed=5, floor=floor, counts=first)
        for run in (one_by_one, simulate_plainly)
    ]
    same(*runs)
    assert first == before
    assert runs[0].counts.episodes == 310
    if name in ("budget-exploration", "conservative-ucbvi"):
        assert runs[0].counts.account[:2].sum() == 310


@pytest.mark.parametrize("name", LP_AGENTS)
def test_costs_of_ones_own_are_the_same_in_both(name, same):
    world, baseline, _, _ = setting(False)
    cost = np.random.default_rng(0).random((3, 3, 2))
    spent = float((sf.occupancy(world, baseline) * cost).sum())
    box = sf.BernsteinBox(1e-3) if name == "dope" else sf.HoeffdingBox(5e-5)
    settings = {
        "cost": cost,
        "budget": spent + 0.4,
        "baseline_cost": spent,
        "episodes": K,
        "bounds": box,
    }
    settings["replan"] = 0.1
    agent = LP_AGENTS[name](world.problem, baseline, **settings)
    runs = [run(world, agent, 300, seed=4) for run in (one_by_one, simulate_plainly)]
    same(*runs)
    assert runs[0].sources["optimistic"] > 20
    assert runs[0].budget == spent + 0.4


@pytest.mark.parametrize("name", FOUR)
def test_the_number_of_workers_changes_nothing(name, same):
    world, _, _, floor = setting(False)
    agent = build(name)
    runs = {
        jobs: sf.simulate_many(world, agent, 200, seeds=range(2), jobs=jobs, floor=floor)
        for jobs in (1, 2)
    }
    for one, other in zip(runs[1], runs[2], strict=True):
        same(one, other)
    same(runs[2][1], sf.simulate(world, agent, 200, seed=1, floor=floor))
    assert runs[1][0].counts != runs[1][1].counts  # control


# ---- plans depend on counts alone


@pytest.fixture(scope="module")
def learnt():
    """Counts of agents that are off the baseline, with basis and account."""
    found = {}
    for name in FOUR:
        world, _, _, _ = setting(False)
        run = sf.simulate(world, build(name), 300, seed=4)
        assert run.sources["optimistic"] > 0
        found[name] = run.counts
    return found


@pytest.mark.parametrize("name", FOUR)
def test_saved_counts_give_the_same_plan(name, learnt, tmp_path):
    agent, counts = build(name), learnt[name]
    counts.save(tmp_path / "counts.npz")
    loaded = sf.Counts.load(tmp_path / "counts.npz")
    assert loaded == counts
    np.testing.assert_array_equal(loaded.account, counts.account)
    if name in LP_AGENTS:
        np.testing.assert_array_equal(loaded.basis, counts.basis)
        assert loaded.basis.dtype == counts.basis.dtype
    else:
        assert counts.account[0] > 0
    assert same_plan(agent.plan(counts), agent.plan(loaded))
    assert not same_plan(agent.plan(counts), agent.plan(sf.Counts.zeros(agent.problem)))  # control
    if name not in LP_AGENTS:
        loaded.account[0] += 1000  # control: what is in the account matters
        assert not same_plan(agent.plan(counts), agent.plan(loaded))


def solved(name, agent, counts, basis, less=1e-9):
    """The agent's linear program, begun in a basis: its optimistic rewards, and its answer.
    `less`: of the budget.
    """
    model = Model(agent.problem, counts, agent.delta)
    b = agent.bounds.b(model, agent.episodes)
    D, start, budget = model.H * b.sum(axis=-1), model.problem.start, agent.C - less
    if name == "dope":
        l, u = np.maximum(model.P_hat - b, 0.0), np.minimum(model.P_hat + b, 1.0)  # noqa: E741
        r_bar = model.problem.r + model.H / agent.kappa * D
        return r_bar, best_in_box(l, u, start, r_bar, agent.c + D, budget, basis)
    r_bar = model.problem.r + (1 + 4 * model.H / agent.kappa) * D
    return r_bar, best_occupancy(model.P_hat, start, r_bar, agent.c + D, budget, basis)


@pytest.mark.parametrize("name", LP_AGENTS)
def test_warm_and_cold_plans_are_worth_the_same(name):
    """A basis is where the solver begins, not where it ends: along a run, objective and
    certified cost agree.
    """
    world, _, _, _ = setting(False)
    agent = build(name)
    counts, compared, differ = None, 0, 0
    for k in range(14):
        counts = sf.simulate(world, agent, 40, seed=k, counts=counts).counts
        cold = counts.copy()
        cold.basis = None
        plan, cold_plan = agent.plan(counts), agent.plan(cold)
        assert plan.source == cold_plan.source
        if plan.source == "baseline" or counts.basis is None:
            continue
        compared += 1
        r_bar, warm = solved(name, agent, counts, counts.basis)
        _, cold = solved(name, agent, counts, None)
        assert (warm.q * r_bar).sum() == pytest.approx((cold.q * r_bar).sum(), abs=1e-7)
        assert plan.cost == pytest.approx(cold_plan.cost, abs=1e-8)
        assert max(plan.cost, cold_plan.cost) <= agent.C
        # it is this linear program that was compared
        np.testing.assert_array_equal(plan.basis, warm.basis)
        tighter = solved(name, agent, counts, None, less=0.05)[1]
        differ += abs((warm.q * r_bar).sum() - (tighter.q * r_bar).sum()) > 1e-4
    assert compared >= 4
    assert differ >= 4  # control: a budget that is a little smaller is seen


@pytest.mark.parametrize("name", LP_AGENTS)
@pytest.mark.parametrize(
    "foreign", ["another agent's", "too short", "too long", "nonsense", "all basic"]
)
def test_a_basis_that_does_not_fit_is_no_harm(name, foreign, learnt):
    """Counts may come from another agent, or from a damaged file: the plan is worth the same."""
    agent, counts = build(name), learnt[name]
    own, other = counts.basis, learnt["optpess-lp" if name == "dope" else "dope"].basis
    changed = counts.copy()
    changed.basis = {
        "another agent's": other,
        "too short": own[:-1],
        "too long": np.append(own, own),
        "nonsense": np.random.default_rng(0).integers(0, 5, size=own.size).astype(np.int8),
        "all basic": np.ones_like(own),
    }[foreign]
    plan, strange = agent.plan(counts), agent.plan(changed)
    assert strange.source == plan.source == "optimistic"
    assert strange.cost == pytest.approx(plan.cost, abs=1e-8)
    np.testing.assert_allclose(strange.policy, plan.policy, atol=1e-7)
    # control: the baseline would have been seen
    assert np.abs(plan.policy - agent.baseline).max() > 0.01


def go_on(learner, world, episodes):
    """Play in the world."""
    rng = np.random.default_rng(7)
    for _ in range(episodes):
        learner.begin()
        s = world.s1
        for h in range(world.H):
            s = int(rng.choice(world.S, p=world.P[h, s, learner.act(s)]))
            learner.observe(s)
        learner.end()


@pytest.mark.parametrize("name", ["budget-exploration", "conservative-ucbvi"])
def test_an_account_does_not_go_on_after_an_episode_that_was_given_up(name, learnt):
    """It may have cost something, and nothing is proved of what it brought."""
    world, _, _, _ = setting(False)
    learner = sf.Learner(build(name, replan=0.0), 5, learnt[name].copy())
    before = learner.counts.copy()
    learner.begin()
    learner.abandon()  # nothing was played yet
    assert learner.counts == before
    go_on(learner, world, 3)
    learner.begin()
    learner.act(world.s1)
    learner.abandon()
    with pytest.raises(sf.InvalidCounts, match="were dropped"):
        learner.begin()


# ---- blocks


@pytest.mark.parametrize(
    "name", ["dope", "optpess-lp", "budget-exploration", "told", "conservative-ucbvi", "ucbvi"]
)
@pytest.mark.parametrize("pooled", [False, True])
def test_blocks_add_up(name, pooled):
    """The law, not the bits: every count of episodes sums to all of them, the account too."""
    world, _, value, floor = setting(pooled)
    agent = build(name, pooled, 0.1)
    episodes = 1501
    run = sf.simulate(world, agent, episodes, seed=1, floor=floor)
    counts = run.counts
    assert run.episodes == counts.episodes == counts.n_start.sum() == episodes
    assert sum(run.sources.values()) == run.by_h.sum() == run.curve.episodes.sum() == episodes
    assert run.sources["optimistic"] > 0
    np.testing.assert_array_equal(
        counts.played.sum(axis=(1, 2)), episodes * (world.H if pooled else 1)
    )
    assert counts.baseline_returns[0] == run.sources["baseline"]
    if name in ("dope", "optpess-lp", "ucbvi"):
        assert not counts.account.any()
        return
    assert counts.account[:2].tolist() == [run.sources["baseline"], run.sources["optimistic"]]
    assert counts.account[:2].sum() == episodes
    assert 0 < counts.account[2] <= counts.account[1] * world.H * REWARD_UNITS
    proved = counts.account[2] / REWARD_UNITS
    earned = run.mean_value * episodes - counts.account[0] * value
    # what was proved of the explorer's episodes is below what they were worth
    assert proved <= earned + 1e-6
    # control: the comparison is not always true
    assert proved + world.H * 0.5 * counts.account[1] > earned
