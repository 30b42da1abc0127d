"""The kernel plans what the readable version plans, whatever the learner knows."""

from itertools import pairwise

import numpy as np
import pytest

import surefoot as sf
from surefoot.bounds import kl

CLOSE = 1e-9
# how far below the readable bound by returns the kernel's may be, which ends its search on the safe
# side
NEWTON = 1e-8
LEARNERS = (sf.StepMix, sf.EpsMix, sf.StepNoMix, sf.BPIUCBVI)
FLOORS = {sf.BPIUCBVI: 1, sf.StepNoMix: 2}  # it has none; it differs from StepMix in its last line
SETTINGS = {
    "nothing": {},
    "full support": {"bounds": sf.KL(full_support=True)},
    "scaled": {"bounds": sf.KL(scale=0.1, full_support=True)},
    "no returns": {"returns": None},
    "a small share for returns": {"returns": sf.Returns(0.1)},
}


@pytest.fixture(scope="module", autouse=True)
def each_search_once():
    """The readable version looks for the worst mean over each ball in 200 steps. Learners, floors
    and candidates ask for many of them again, to the last bit: here each is looked for once. (It is
    a function of its arguments alone.)
    """
    known, search = {}, kl.worst_mean

    def once(p_hat, eps, V):
        key = (p_hat.tobytes(), eps, V.tobytes())
        if key not in known:
            known[key] = search(p_hat, eps, V)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kl, "worst_mean", once)
        yield


def build(learner, case, pooled, floor, **settings):
    settings = {"delta": 0.3, "pooled": pooled, **settings}
    if learner is sf.BPIUCBVI:
        return learner(
            case.problem,
            **{k: v for k, v in settings.items() if k in ("delta", "pooled", "bounds")},
        )
    return learner(case.problem, case.baseline, floor, **settings)


def data_of(case, pooled, **settings):
    """Counts of the first episode in which StepMix mixes, and of forty episodes."""
    agent = build(sf.StepMix, case, pooled, case.floor, replan=0.0, **settings)
    first = sf.simulate(case.world, agent, 160, seed=3).first_mixture
    for episodes in (first, 40):
        run = episodes and sf.simulate(case.world, agent, episodes, seed=3)
        yield run.counts if run else sf.Counts.zeros(case.problem, pooled)


def differences(plan, book):
    """What a reader would notice between two plans; empty when they agree."""
    found = [
        name for name in ("source", "h", "safety") if getattr(plan, name) != getattr(book, name)
    ]
    c, last = min(plan.h, len(plan.candidates) - 1), len(plan.candidates) - 1
    apart = plan.candidates[c] - plan.candidates[c - 1] if c else 1.0  # rho is a quotient by this
    by_returns = plan.grounds is not None and plan.candidates[last] == plan.grounds.by_returns
    below = plan.candidates[last] <= book.candidates[last] + CLOSE
    for name, unit in (
        ("candidates", 1.0),
        ("lower", 1.0),
        ("upper", 1.0),
        ("rho", min(1.0, abs(apart))),
    ):
        gap = unit * np.abs(np.asarray(getattr(plan, name)) - np.asarray(getattr(book, name)))
        close = np.full(gap.shape, CLOSE)
        if by_returns and below and (name == "candidates" or c == last):
            close.flat[-1] = NEWTON
        if not (gap <= close).all():  # nan is a difference, too
            found.append(f"{name}, by {gap.max()}")
    return found


def floors_of(L, case):
    """0, the case's own, the top, and the middle of every climb of the candidates, where a
    mixture is planned.
    """
    middles = [(low + high) / 2 for low, high in pairwise(L) if high - low > 1e-4]
    return [0.0, case.floor, float(case.problem.H), *middles[:1]]


@pytest.mark.parametrize("pooled", [False, pytest.param(True, marks=pytest.mark.full)])
def test_the_kernel_plans_by_the_book(kind, pooled, case_of):
    case = case_of(kind, pooled)
    seen = set()
    for counts in data_of(case, pooled):
        before = counts.copy()
        for learner in LEARNERS:
            known = build(learner, case, pooled, 0.0).plan(counts).candidates
            for floor in floors_of(known, case)[: FLOORS.get(learner)]:
                agent = build(learner, case, pooled, floor)
                plan, book = agent.plan(counts), agent.plan_reference(counts)
                assert not differences(plan, book), (learner, floor, plan, book)
                seen.add((learner, plan.source))
        assert counts == before  # planning reads
    assert {source for _, source in seen} == {"baseline", "mixture", "optimistic"}


@pytest.mark.full
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_kernel_plans_by_the_book_with_every_setting(kind, setting, case_of):
    case = case_of(kind, False)
    # counted in their range
    returns = {name: value for name, value in SETTINGS[setting].items() if name == "returns"}
    for counts in data_of(case, False, **returns):
        for learner in LEARNERS[:3]:
            agent = build(learner, case, False, case.floor, **SETTINGS[setting])
            plan, book = agent.plan(counts), agent.plan_reference(counts)
            found = differences(plan, book)
            assert not found, (learner, plan, book)


@pytest.mark.parametrize("pooled", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_relative_floor_is_planned_by_the_book(kind, pooled, case_of):
    """The choice is the book's. What is then called proved is the mixture of lower values, not of
    the baseline's upper one, which stands for it in the choice.
    """
    case = case_of(kind, pooled)
    weights = set()
    for counts in data_of(case, pooled):
        for learner in LEARNERS[:3]:
            for give, settings in ((0.05, {"returns": None}), (0.5, {"returns": sf.Returns()})):
                agent = build(learner, case, pooled, sf.Relative(give), **settings)
                plan, book = agent.plan(counts), agent.plan_reference(counts)
                assert (plan.source, plan.h) == (book.source, book.h), (plan, book)
                np.testing.assert_allclose(
                    plan.candidates[:-1], book.candidates[:-1], rtol=0.0, atol=CLOSE
                )
                assert abs(plan.upper - book.upper) <= CLOSE
                # rho divides by the gap between neighbours
                assert abs(plan.rho - book.rho) <= 100 * CLOSE
                assert plan.lower <= book.lower + CLOSE
                weights.add(plan.rho)
    assert len(weights) > 2


def test_differences_are_seen(case_of):
    """Control: other data, another delta, another prior, another floor, another knowledge; and of
    returns, none of them, another share, one less.
    """
    case = case_of("all-together", False)
    few, more = list(data_of(case, False))[-2:]
    told = case._replace(problem=case.world.problem)

    def agent(case=case, floor=0.2, **settings):
        return build(sf.StepMix, case, False, floor, **settings)

    without = {"bounds": sf.KL(full_support=True), "returns": None}
    book = agent(**without).plan_reference(more)
    for other, counts in (
        (agent(**without), few),
        (agent(delta=0.29, **without), more),
        (agent(bounds=sf.KL(scale=0.999, full_support=True), returns=None), more),
        (agent(returns=None), more),
        (agent(floor=2.9, **without), more),
        (agent(told, **without), more),
    ):
        assert differences(other.plan(counts), book), other
    book, fewer = agent().plan_reference(more), more.copy()
    fewer.return_weights[np.flatnonzero(fewer.return_weights[:-1])[-1]] -= 2**20
    for other, counts in (
        (agent(returns=None), more),
        (agent(returns=sf.Returns(0.4)), more),
        (agent(), fewer),
    ):
        assert differences(other.plan(counts), book), other
