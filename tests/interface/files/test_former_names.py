"""Every name that users may have in their code, and that was changed since, still works and leads to the new one."""

import numpy as np
import pytest

import surefoot as sf

PI = np.full((2, 2, 2), 0.5)


def known(**more) -> sf.Problem:
    return sf.Problem(np.zeros((2, 2)), H=2, **more)


def absorbing() -> sf.Problem:
    """State 1 leads nowhere else and pays nothing."""
    support = np.ones((2, 2, 2), dtype=bool)
    support[1, :, 0] = False
    return sf.Problem(np.array([[0.5, 0.5], [0.0, 0.0]]), H=2, support=support)


def counted(n: int = 3) -> sf.Counts:
    counts = sf.Counts.zeros(known())
    for _ in range(n):
        counts.add(sf.Episode([0, 1, 0], [0, 1], [1.0, 0.5], baseline=True, entry=0.5))
    return counts


def objects():
    problem = absorbing()
    agent = sf.StepMix(problem, PI, 0.1)
    return {
        "problem": problem,
        "counts": counted(),
        "model": sf.Model(problem, sf.Counts.zeros(problem), 0.1),
        "certificate": sf.Certificate(0.5, 0.1, "abc"),
        "relative": sf.Relative(0.25),
        "agent": agent,
        "budgets": sf.BudgetExploration(problem, PI, 0.1),
        "plan": agent.plan(sf.Counts.zeros(problem)),
    }


@pytest.mark.parametrize(
    ("owner", "former", "today"),
    [
        ("problem", "hidden", "unknown"),
        ("problem", "possible", "support"),
        ("problem", "rest", "absorbing_state"),
        ("problem", "mark", "fingerprint"),
        ("counts", "record", "baseline_returns"),
        ("counts", "record_of", "returns_of"),
        ("counts", "ledger", "account"),
        ("counts", "ledger_of", "account_of"),
        ("model", "possible", "support"),
        ("certificate", "mark", "fingerprint"),
        ("relative", "give", "max_loss"),
        ("agent", "when", "replan_rule"),
        ("agent", "told_value", "known_baseline_value"),
        ("agent", "mark", "fingerprint"),
        ("agent", "go_on", "continue_plan"),
        ("agent", "plan_by_the_book", "plan_reference"),
        ("budgets", "ledger_mark", "account_fingerprint"),
        ("plan", "lasts", "max_episodes"),
    ],
)
def test_an_attribute_by_its_former_name(owner, former, today):
    it = objects()[owner]
    np.testing.assert_array_equal(getattr(it, former), getattr(it, today))


def test_what_the_attributes_are():
    """Not just equal to each other."""
    assert absorbing().rest == 1
    assert sf.Relative(0.25).give == 0.25
    assert counted().record.tolist() == [3, 3 * 3 * 2**19]
    assert counted().ledger.tolist() == [3, 0, 0]


def test_counts_are_written_by_their_former_names_too():
    counts = counted()
    counts.record = np.array([1, 2])
    counts.ledger_of = "whose"
    counts.ledger[0] = 7
    assert counts.baseline_returns.tolist() == [1, 2]
    assert (counts.account_of, counts.account.tolist()) == ("whose", [7, 0, 0])


def test_keywords_by_their_former_names():
    n_sas, returns, account = counted().n_sas, [3, 2**20], [3, 1, 2**19]
    former = sf.Counts(n_sas, record=returns, record_of="a", ledger=account, ledger_of="b")
    today = sf.Counts(n_sas, baseline_returns=returns, returns_of="a", account=account, account_of="b")
    assert former == today
    assert (former.returns_of, former.account_of) == ("a", "b")
    assert former.account.tolist() == account
    assert sf.Relative(give=0.25) == sf.Relative(max_loss=0.25) == sf.Relative(0.25)
    assert sf.Certificate(0.5, 0.1, mark="abc") == sf.Certificate(0.5, 0.1, fingerprint="abc")
    plan = sf.Plan(PI, "baseline", 2, 0.0, 0.0, 2.0, [0.0], "no floor", lasts=3)
    assert plan.max_episodes == plan.lasts == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: sf.Counts(counted().n_sas, record=[0, 0], baseline_returns=[0, 0]),
            "baseline_returns was given, and record",
        ),
        (lambda: sf.Counts(counted().n_sas, ledger_of="a", account_of="b"), "account_of was given, and ledger_of"),
        (lambda: sf.Relative(0.1, give=0.1), "max_loss was given, and give"),
        (lambda: sf.Certificate(0.5, 0.1, "abc", mark="abc"), "fingerprint was given, and mark"),
    ],
)
def test_both_names_at_once_are_refused(make, message):
    with pytest.raises(sf.InvalidSetting, match=f"{message}, which is its former name"):
        make()


def test_functions_by_their_former_names():
    assert sf.simulate_plainly is sf.simulate_reference
    assert {"simulate_plainly", "simulate_reference"} <= set(sf.__all__)
