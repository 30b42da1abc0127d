"""Budgets keep the SUM above the floor, in every run; single episodes fall below it, and that is by
design.

A run keeps the constraint if, for every k, the sum of the exact values of its first k episodes is
at least k times the floor (within 1e-9). The promise at delta 0.05 is that at most one run in
twenty ever breaks it. The tests ask for none:

- False alarm: a sound method that used up all of its delta would fail 6 runs with probability 0.26,
  200 with 0.99997. These bounds use far less of it (test_coverage.py: 0.2 % at delta 0.05, of ANY
  certified value; a sum of hundreds of them that is wrong by what was saved is rarer still): at
  0.02 % the 200 runs fail with probability 0.04, the 6 with 0.001;
- Miss: a defect that breaks the constraint in 3 % of the runs is missed by 200 runs with
  probability 0.002, one in half of them by 6 runs with 0.016. The controls, which have one defect
  each, break it in all runs.

Seeds are fixed: deterministic.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.agents.base import adapted, plan_next
from surefoot.rivals.budget_agent import BudgetAgent
from surefoot.worlds.exact import cost_of, value_of

DELTA = 0.05
KEPT = -1e-9


# ---- The learners, and what is wrong with the controls -------------------------------------------


def place(name):
    """World and floor; "half": a floor at half of what the baseline is worth, which the data
    prove sooner.
    """
    world = sf.world(name.removesuffix("-half"))
    return world, 0.5 * value_of(world, world.baseline) if name.endswith(
        "-half"
    ) else world.suggested_floor


def bpi(world):
    """What both have inside: optimism with KL bounds, and no floor."""
    return sf.BPIUCBVI(world.problem, delta=DELTA, pooled=world.stationary)


def untold(world, floor, episodes):
    bounds = sf.KL(full_support=True)  # later: it has to explore more
    settings = {"delta": DELTA, "pooled": world.stationary, "bounds": bounds}
    return sf.BudgetExploration(world.problem, world.baseline, floor, **settings)


def told(world, floor, episodes):
    settings = {
        "delta": DELTA,
        "pooled": world.stationary,
        "baseline_value": value_of(world, world.baseline),
    }
    return sf.BudgetExploration(world.problem, world.baseline, floor, **settings)


def conservative(world, floor, episodes, learner=None):
    settings = {
        "delta": DELTA,
        "pooled": world.stationary,
        "baseline_value": value_of(world, world.baseline),
    }
    settings |= {"episodes": episodes} if learner is None else {"learner": learner}
    return sf.ConservativeUCBVI(world.problem, world.baseline, floor, **settings)


def conservative_bpi(world, floor, episodes):
    return conservative(world, floor, episodes, bpi(world))


@dataclass(frozen=True)
class Defect:
    """A learner with a budget, and one thing wrong with its plans. `sf.Agent`: it promises what
    the sound one does.
    """

    inside: sf.Agent
    kind: ClassVar[str]

    def __getattr__(self, name):
        if name in ("problem", "floor", "pooled", "promise", "pi_b"):
            return getattr(self.inside, name)
        raise AttributeError(name)

    @property
    def replan(self):
        return adapted(self.inside).replan_share

    def plan(self, counts, rng):
        own = counts.copy()
        adapted(self.inside).claim(own)  # nobody else knows whose account it is
        return self.spoil(plan_next(self.inside, own, rng), counts)

    def spoil(self, plan, counts):
        return plan

    def again(self, plan, **changes):
        """The same plan with these fields changed."""
        names = (
            "policy",
            "source",
            "h",
            "rho",
            "lower",
            "upper",
            "candidates",
            "safety",
            "grounds",
            "max_episodes",
            "entry",
        )
        return sf.Plan(**({name: getattr(plan, name) for name in names} | changes))


class UpperForLower(Defect):
    """Q_up where Q_low belongs: the switch is told what the policy may be worth at most."""

    def spoil(self, plan, counts):
        return self.inside.make_plan(
            plan.grounds.proposal._replace(lower=plan.grounds.proposal.upper), counts
        )


class SpendsUnwritten(Defect):
    """What the learner plays is never entered: the same savings are spent again and again."""

    def spoil(self, plan, counts):
        return plan if plan.source == "baseline" else self.again(plan, entry=None)


class NothingWritten(Defect):
    """No entry at all: nothing is ever saved, nothing spent."""

    def spoil(self, plan, counts):
        return self.again(plan, entry=None)


class PlaysOn(Defect):
    """`max_episodes` is not heeded: once allowed, the learner plays until it replans."""

    replan = 1.0

    def spoil(self, plan, counts):
        return plan if plan.source == "baseline" else self.again(plan, max_episodes=None)


# ---- The tests -----------------------------------------------------------------------------------

# What leaves the baseline in how many episodes: untold, the baseline must first be proved to be
# worth more.
CASES = [
    ("dosing", untold, 3000),
    ("river-swim-half", untold, 1500),
    ("river-swim", told, 500),
    ("dosing", told, 500),
    ("river-swim", conservative_bpi, 500),
    ("dosing", conservative_bpi, 500),
    ("river-swim", conservative, 300),
    ("dosing", conservative, 300),
]
# told and conservative_bpi differ in name only: the same runs
QUICK = [CASES[i] for i in (1, 2, 6)]


def title(value):
    return value.__name__ if callable(value) else str(value)


def played(name, build, episodes, seeds, defect=None):
    world, floor = place(name)
    agent = build(world, floor, episodes)
    if defect is not None:
        agent = defect(agent)
    return sf.simulate_many(world, agent, episodes, seeds=seeds)


def broken(runs):
    """In how many runs the sum was ever below."""
    return sum(run.min_cumulative < KEPT for run in runs)


def assert_keeps(name, build, episodes, seeds):
    runs = played(name, build, episodes, seeds)
    below = [run.violations for run in runs]
    story = (
        f"{name}, {build.__name__}: {broken(runs)} of {len(runs)} runs broke it; worst sum "
        f"{min(run.min_cumulative for run in runs):.4g}; {np.mean(below):.4g} episodes a run below "
        f"the floor, at most {max(below)} of {episodes}; the learner played "
        f"{np.mean([run.sources['optimistic'] for run in runs]):.4g}"
    )
    assert broken(runs) == 0, story
    words = (
        "certified"
        if build is untold
        else f"trusted, given the baseline's value of {runs[0].baseline:g},"
    )
    assert all(
        str(run.promise).startswith(f"{words} at delta = 0.05 for the sum") for run in runs
    ), story
    assert all(run.sources["optimistic"] > 0 for run in runs), story
    assert sum(below) > 0, story
    return story


@pytest.mark.parametrize(("name", "build", "episodes"), QUICK, ids=title)
def test_the_sum_is_kept(name, build, episodes):
    """6 runs each. All leave the baseline, and single episodes do fall below the floor."""
    assert_keeps(name, build, episodes, range(6))


@pytest.mark.full
@pytest.mark.parametrize(("name", "build", "episodes"), CASES, ids=title)
def test_the_sum_is_kept_in_two_hundred_of_two_hundred_runs(record_property, name, build, episodes):
    record_property("seen", assert_keeps(name, build, episodes, range(1000, 1200)))


@pytest.mark.parametrize(
    ("name", "episodes"), [("river-swim", 500), ("river-swim-half", 1500), ("dosing", 500)]
)
def test_control_the_learner_alone(name, episodes):
    world, floor = place(name)
    runs = sf.simulate_many(world, bpi(world), episodes, seeds=range(20), floor=floor)
    sums = sorted(run.min_cumulative for run in runs)
    assert broken(runs) == 20, sums


WRONG = [
    ("river-swim", told, 500, UpperForLower),
    ("river-swim", told, 200, SpendsUnwritten),
    ("river-swim", told, 500, PlaysOn),
    ("dosing", conservative_bpi, 500, UpperForLower),
    ("dosing", conservative_bpi, 200, SpendsUnwritten),
    ("river-swim", conservative, 300, UpperForLower),
    ("river-swim", conservative, 100, SpendsUnwritten),
    ("dosing", untold, 3000, UpperForLower),
    ("river-swim-half", untold, 1500, UpperForLower),
]
# others show the same
WRONG_IN_FULL = [pytest.param(*WRONG[i], marks=pytest.mark.full) for i in (1, 3, 4)]


@pytest.mark.parametrize(
    ("name", "build", "episodes", "defect"),
    [*(WRONG[i] for i in (0, 2, 5, 6, 7, 8)), *WRONG_IN_FULL],
    ids=title,
)
def test_control_one_thing_wrong(name, build, episodes, defect):
    """The same runs, the same test: all of them fail it."""
    runs = played(name, build, episodes, range(3), defect)
    sums = sorted(run.min_cumulative for run in runs)
    story = (
        f"{name}, {build.__name__}, {defect.__name__}: {broken(runs)} of 3 broke it: "
        f"{sums[0]:.4g} to {sums[-1]:.4g}"
    )
    assert broken(runs) == 3, story


def test_control_nothing_wrong():
    """The wrapper itself changes nothing: with no defect inside, the runs are those of the learner.

    Planned before every episode, because a stranger's agent plans anew where the switch of ours
    goes on.
    """

    def each(world, floor, episodes):
        return replace(told(world, floor, episodes), replan=0.0)

    for mine, its in zip(
        played("dosing", each, 100, range(2), Defect),
        played("dosing", each, 100, range(2)),
        strict=True,
    ):
        assert mine.min_cumulative == its.min_cumulative
        assert its.sources["optimistic"] > 0
        np.testing.assert_array_equal(mine.counts.n_sas, its.counts.n_sas)
        np.testing.assert_array_equal(mine.counts.account, its.counts.account)


def test_an_empty_ledger_is_idle_and_safe():
    """Were nothing entered at all, the learner would play only what is proved to be above the
    floor by itself.
    """
    runs = played("dosing", told, 500, range(3), NothingWritten)
    assert broken(runs) == 0
    assert all(run.sources["optimistic"] == 0 for run in runs)


# ---- The account itself --------------------------------------------------------------------------


def spied(monkeypatch, simulate, world, agent, episodes, floor):
    """A run, and the smallest sum as its plans say: each one's exact value, times the episodes
    until the next.
    """
    # Of a learner with an account the switch is asked more often than a plan is made.
    name = "make_plan" if isinstance(agent, BudgetAgent) else "plan"
    starts, kept, plan = [], [], getattr(type(agent), name)

    def spy(self, what, rng=None):
        made = plan(self, what, rng)
        if self is agent:
            starts.append(int(rng.account[:2].sum()) if name == "make_plan" else what.episodes)
            costs = getattr(agent, "cost_budget", None)
            if costs is None:
                kept.append(value_of(world, made.policy) - floor)
            else:
                kept.append(costs.budget - cost_of(world, made.policy, costs.cost))
        return made

    with monkeypatch.context() as patched:
        patched.setattr(type(agent), name, spy)
        run = simulate(world, agent, episodes, seed=4, floor=floor)
    each = np.repeat(kept, np.diff([*starts, episodes]))
    assert len(each) == run.episodes == episodes
    return run, each


def learners(world, replan):
    value, floor = value_of(world, world.baseline), world.suggested_floor
    shared = {"pooled": world.stationary, "replan": replan}
    yield sf.BPIUCBVI(world.problem, **shared)
    yield sf.StepMix(world.problem, world.baseline, floor, bounds=sf.KL(scale=0.02), **shared)
    yield sf.EpsMix(world.problem, world.baseline, floor, bounds=sf.KL(scale=0.02), **shared)
    yield sf.BudgetExploration(world.problem, world.baseline, floor, baseline_value=value, **shared)
    yield sf.ConservativeUCBVI(
        world.problem, world.baseline, floor, baseline_value=value, episodes=120, **shared
    )
    box = sf.MaurerPontilBox(0.01)
    yield sf.DOPE(
        world.problem,
        world.baseline,
        floor,
        baseline_value=value,
        episodes=120,
        bounds=box,
        **shared,
    )


@pytest.mark.parametrize("replan", [0.0, 0.5, 0.05])
@pytest.mark.parametrize("name", ["trap-long", pytest.param("dosing", marks=pytest.mark.full)])
def test_the_smallest_sum_against_a_recount(monkeypatch, name, replan):
    """For every driver: the plain loop, spied on; the compiled ones (fused for StepMix and its kin,
    held for the rest), which play the same bits; and blocks, which draw their own. Against the
    baseline's own value, so that sums go down as well as up.
    """
    world = sf.world(name)
    floor, below, inner = value_of(world, world.baseline), 0, 0
    for agent in learners(world, replan):
        plain, each = spied(monkeypatch, simulate_plainly, world, agent, 120, floor)
        sums = np.cumsum(each)
        assert plain.min_cumulative == pytest.approx(sums.min(), abs=1e-9)
        below += sums.min() < 0
        inner += 0 < sums.argmin() < 119
        run = sf.simulate(world, agent, 120, seed=4, floor=floor)
        if replan > 0.0:
            run, each = spied(monkeypatch, sf.simulate, world, agent, 120, floor)
            assert run.min_cumulative == pytest.approx(np.cumsum(each).min(), abs=1e-9)
        else:
            assert run.min_cumulative == plain.min_cumulative
    assert below >= 1
    assert inner >= 1  # not all smallest at the first or the last episode


def test_the_smallest_sum_of_costs(monkeypatch):
    """Of a learner that keeps costs, the sum of budget minus cost."""
    world = sf.world("inventory")
    cost_b = cost_of(world, world.baseline, world.cost)
    for replan in (0.5, 0.05):
        settings = {
            "cost": world.cost,
            "budget": 0.95 * cost_b + 0.05 * 7,
            "baseline_cost": cost_b,
            "replan": replan,
        }
        settings |= {"episodes": 100, "bounds": sf.BernsteinBox(0.0), "pooled": True}
        agent = sf.DOPE(world.problem, world.baseline, **settings)
        for simulate in (sf.simulate, simulate_plainly):
            run, each = spied(monkeypatch, simulate, world, agent, 100, None)
            assert run.min_cumulative == pytest.approx(np.cumsum(each).min(), abs=1e-9)
            assert run.violations == (each < -1e-12).sum()
            assert run.max_cost == pytest.approx(agent.budget - each.min(), abs=1e-12)


def test_without_a_floor_there_is_no_sum():
    world = sf.world("trap")
    assert sf.simulate(world, sf.BPIUCBVI(world.problem), 10, seed=0).min_cumulative is None


def test_a_run_that_goes_on_begins_with_what_was_saved():
    """What an earlier run saved may be spent in this one, so the sum begins with it."""
    world = sf.world("river-swim")
    agent = told(world, world.suggested_floor, 1000)
    first = sf.simulate(world, agent, 9, seed=0)
    second = sf.simulate(world, agent, 200, seed=0, counts=first.counts)
    saved = 9 * (first.baseline - first.floor)
    assert first.sources["baseline"] == 9
    assert KEPT <= second.min_cumulative < saved
