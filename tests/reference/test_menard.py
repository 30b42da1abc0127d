"""BPI-UCBVI with the constants of Menard et al. 2021, written a second time, pair by pair, from
the formulas.
"""

from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surefoot as sf
from reading import Reading
from surefoot.bounds import Bernstein, Model
from surefoot.rivals.bpi_ucbvi_menard import EVENTS, bpi_ucbvi_menard

DELTA = 0.1


def slowly(n_sas, r, delta, low=14, share=1, of_policy=False, events=3):
    """Both bounds of V* for every step and state, and the actions: one pair at a time.

    `low`, `share` and `of_policy` are the paper's form of the lower bound: 22, 2/H, and that of the
    action chosen.
    """
    known = {"bonus": (14, low), "spread": (1, share)}
    reading = Reading(n_sas.tolist(), r.tolist(), Decimal(delta) / events, **known)
    V_up, V_low, actions = [[Decimal(0)] * reading.S], [[Decimal(0)] * reading.S], []
    for h in reversed(range(reading.H)):
        Q_up, Q_low = reading.tables(h, V_up[0], V_low[0])
        best = [row.index(max(row)) for row in Q_up]
        V_up.insert(0, [max(row) for row in Q_up])
        V_low.insert(
            0, [row[a] if of_policy else max(row) for row, a in zip(Q_low, best, strict=True)]
        )
        actions.insert(0, best)
    return np.array(V_up, dtype=float), np.array(V_low, dtype=float), np.array(actions)


def tables(seed):
    """Rewards, and counts of many sizes: some pairs were never seen."""
    rng = np.random.default_rng(seed)
    H, S, A = [(3, 2, 2), (3, 3, 2), (4, 2, 3), (1, 3, 2)][seed % 4]
    n = rng.choice([0, 10**3, 10**5, 10**6, 10**7], size=(H, S, A), p=[0.05, 0.05, 0.3, 0.3, 0.3])
    P = rng.dirichlet(np.ones(S), size=(H, S, A))
    n_sas = rng.multinomial(n, P)
    return rng.random((H, S, A)), n_sas


def planned(seed):
    """The agent's plan and both bounds."""
    r, n_sas = tables(seed)
    problem, counts = sf.Problem(r, s1=0), sf.Counts(n_sas)
    values = bpi_ucbvi_menard(Model(problem, counts, DELTA / EVENTS), Bernstein())
    return sf.BPIUCBVIMenard(problem, delta=DELTA).plan(counts), values, r, n_sas


@pytest.mark.parametrize("seed", range(16))
def test_it_is_the_formula(seed):
    plan, values, r, n_sas = planned(seed)
    V_up, V_low, actions = slowly(n_sas, r, DELTA)
    assert_allclose(values.V_up, V_up, rtol=0, atol=1e-12)
    assert_allclose(values.V_low, V_low, rtol=0, atol=1e-12)
    assert_array_equal(plan.policy.argmax(axis=2), actions)
    assert plan.upper == pytest.approx(V_up[0][0], abs=1e-10)
    assert (plan.source, plan.lower, plan.safety) == ("optimistic", 0.0, "no floor")


def test_each_of_the_differences_is_seen():
    """Control: the paper's 22, its 2/H, its lower bound of the chosen action, and its delta/4,
    one by one.
    """
    changes = ({"low": 22}, {"share": 2}, {"of_policy": True}, {"events": 4})
    differ = np.zeros(len(changes), dtype=int)
    for seed in range(16):
        _, values, r, n_sas = planned(seed)
        for i, change in enumerate(changes):
            V_up, _, _ = slowly(n_sas, r, DELTA, **change)
            differ[i] += np.abs(values.V_up - V_up).max() > 1e-9
    assert differ.min() >= 3, differ


def test_the_paper_form_is_the_other_one():
    """The same second version, with all of the paper's constants, is `BPIUCBVI.paper`: they are
    two algorithms.
    """
    apart = 0
    for seed in range(16):
        plan, _, r, n_sas = planned(seed)
        problem, counts = sf.Problem(r, s1=0), sf.Counts(n_sas)
        V_up, V_low, actions = slowly(n_sas, r, DELTA, low=22, share=2, of_policy=True, events=4)
        ours = sf.BPIUCBVI.paper(problem, delta=DELTA).plan(counts)
        assert ours.upper == pytest.approx(V_up[0][0], abs=1e-10)
        assert ours.lower == pytest.approx(V_low[0][0], abs=1e-10)
        assert_array_equal(ours.policy.argmax(axis=2), actions)
        apart += abs(plan.upper - ours.upper) > 1e-6
    assert apart >= 5  # where unseen pairs do not make both as large as can be


def test_pooled_counts_are_read_at_every_step():
    """With log(3SAH/delta) as before: H stays inside. Next states of the last step are not read."""
    r, n_sas = tables(1)
    summed = np.repeat(n_sas[:-1].sum(axis=0, keepdims=True), len(n_sas), axis=0)
    summed[-1] += n_sas[-1]  # nothing follows: how often a pair was played is all that counts
    V_up, _, actions = slowly(summed, r, DELTA)
    problem = sf.Problem(r, s1=0, stationary=True)
    counts = sf.Counts(n_sas).pool()
    counts.steps = None  # these tables were drawn step by step
    plan = sf.BPIUCBVIMenard(problem, delta=DELTA, pooled=True).plan(counts)
    assert plan.upper == pytest.approx(V_up[0][0], abs=1e-10)
    assert_array_equal(plan.policy.argmax(axis=2), actions)
