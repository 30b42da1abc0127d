"""Ledgers of guards: true ones are accepted, forged ones are refused; the verifier needs the
standard library only.
"""

import itertools
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import surefoot as sf
from command import surefoot
from guards import begun
from surefoot import kernels
from surefoot.audit import guard_verifier
from surefoot.audit.records import chained
from surefoot.base.nodes import EPISODE, FINE, PLACES, spread
from surefoot.guard import comparison, evidence

GUARDS = {
    "absolute": sf.Guard(floor=0.5, low=0.0, high=1.0),
    "relative": sf.Guard(floor=sf.Relative(0.2), low=1.0, high=3.0, stages=()),
    "below": sf.Guard(floor=sf.Below(0.4), low=-1.0, high=1.0, delta=0.1),
}


def written(path, name, episodes=300, seed=0):
    """A ledger of a run with late and lost returns, three candidates, and a withdrawal."""
    guard = GUARDS[name]
    rng = np.random.default_rng(seed)
    ledger = sf.GuardLedger(path, guard)
    logged = [float(x) for x in guard.low + (guard.high - guard.low) * rng.beta(8, 2, 300)]
    state, due = begun(guard, [*logged, None]), []
    for k in range(episodes):
        if k == 100:
            state = guard.admit(state, "d", "f1")
        if k == 200:
            state = guard.withdraw(state, "d")
        plan = guard.plan(state)
        ledger.write(plan)
        state, ticket = guard.draw(state, plan, rng)
        good = 0.95 if ticket.policy == "c" else 0.8
        due.append(
            (
                k + int(rng.integers(0, 20)),
                ticket,
                guard.low + (guard.high - guard.low) * rng.beta(10 * good, 10 * (1 - good)),
            )
        )
        for _, old, ret in [one for one in due if one[0] <= k]:
            if rng.random() > 0.01:
                state = guard.settle(state, old, float(ret))
        due = [one for one in due if one[0] > k]
    ledger.close(state)
    return ledger, state


@pytest.mark.parametrize("name", GUARDS)
def test_a_true_ledger_is_accepted(tmp_path, name, assert_refused):
    path = tmp_path / "g.ledger"
    ledger, state = written(path, name)
    verdict = sf.check_ledger(path)
    assert verdict.refusals == () and verdict.closed and verdict.episodes == 300
    assert (
        verdict.plans > 5
        and verdict.certified > 3
        and verdict.certified + verdict.trusted == verdict.plans
    )
    assert "closed" in repr(ledger)
    assert_refused(sf.InvalidSetting, "closed", ledger.write, GUARDS[name].plan(state))
    assert_refused(sf.InvalidFile, "exists", sf.GuardLedger, path, GUARDS[name])


@pytest.mark.parametrize("floor", [0.5, sf.Relative(0.1)])
def test_no_plan_is_certified_after_an_alarm(tmp_path, floor):
    """A true ledger says so, and one that claims it is refused: the same file without the alarm
    is not.
    """
    guard = sf.Guard(floor=floor, low=0.0, high=1.0)
    state = begun(guard, [1.0] * 300)
    path = tmp_path / "g.ledger"
    with sf.GuardLedger(path, guard) as ledger:
        for at in ("before", "after"):
            plan = guard.plan(state)
            ledger.write(plan)
            state, ticket = guard.draw(state, plan, np.random.default_rng(0))
            state = guard.settle(state, ticket, -1.0 if at == "before" else 1.0)
        ledger.close(state)
    verdict = sf.check_ledger(path)
    assert (verdict.refusals, verdict.certified, verdict.trusted) == ((), 1, 1)
    told = guard_verifier.summary(verdict)
    assert f"The guard is frozen, and plays its baseline: {verdict.alarm}" in told and verdict.alarm
    assert ("very plan is the baseline" in told) == (verdict.off_baseline == 0)
    lied = forged(path, lambda r: plans(r)[1].update(safety="certified"))
    assert "an alarm was raised" in str(lied.refusals)
    quiet = forged(
        path,
        lambda r: (
            [record.update(alarm="") for record in r[1:]] + [plans(r)[1].update(safety="certified")]
        ),
    )
    assert quiet.refusals == () and quiet.certified == 2


def test_the_command_chooses_the_verifier_and_the_file_stands_alone(tmp_path):
    path = tmp_path / "g.ledger"
    written(path, "absolute", 60)
    told = surefoot("certify", path)
    assert told.exit_code == 0 and "ACCEPTED" in told.output and "A guard" in told.output
    alone = tmp_path / "elsewhere.py"
    alone.write_text(Path(guard_verifier.__file__).read_text())
    done = subprocess.run(
        [sys.executable, "-I", str(alone), str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout == told.output
    damaged = path.read_bytes().replace(b"certified", b"Certified", 1)
    path.write_bytes(damaged)
    assert surefoot("certify", path).exit_code == 3
    done = subprocess.run(
        [sys.executable, "-I", str(alone), "none"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "cannot be read" in done.stderr


def forged(path, forge):
    """The verdict on a ledger whose records were changed, with digests that fit again."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    forge(records)
    digest, lines = "0" * 64, []
    for record in records:
        line, digest = chained(
            {key: value for key, value in record.items() if key != "digest"}, digest
        )
        lines.append(line)
    return guard_verifier.verify(lines)


def plans(records):
    return [record for record in records if record["kind"] == "plan"]


def last(records):
    """A late plan in which the candidate has a share."""
    return [record for record in plans(records) if record["shares"][1] > 0][-1]


def add_to_bound(record, p, more):
    record["bounds"][p][0] = (float.fromhex(record["bounds"][p][0]) + more).hex()


@pytest.mark.parametrize(
    ("shares", "refused"), [((0.01, 0.5), True), ((0.01, 0.0), False), ((0.0, 0.0), False)]
)
def test_a_trusted_plan_plays_no_candidate_that_is_not_proved(tmp_path, shares, refused):
    """Beside the baseline, which is trusted, only candidates that are proved to be above the
    floor may play.
    """
    guard = sf.Guard(floor=0.5, low=0.0, high=1.0)
    state = guard.admit(begun(guard, [1.0] * 200), "d")
    ledger = sf.GuardLedger(tmp_path / "g.ledger", guard)
    plan = guard.plan(state)
    assert round(10 * plan.share["c"]) == round(10 * plan.share["d"]) == 1  # of ten tickets
    ledger.write(plan)
    ten = ["c", "d", *["baseline"] * 8]
    ledger.write(guard.plan(guard.replay([(name, 1.0) for name in ten * 40], state=state)))

    def forge(records):
        coin = [int(share * 2**53) for share in shares]
        trusted = {
            "bounds": [[(0.0).hex(), 0], records[-1]["bounds"][1], [(0.0).hex(), 0]],
            "safety": "trusted",
        }
        records[-1].update(trusted, shares=[2**53 - sum(coin), *coin])

    found = forged(tmp_path / "g.ledger", forge).refusals
    assert bool(found) == refused and all(
        "not proved to be above the floor" in why for _, why in found
    )


def compared(b, c, level, zero, ratio):
    """What returns that are spread like this prove of V_c and V_b together."""
    how = kernels.Comparison(comparison.ladder(level), zero, ratio)
    return kernels.compared(kernels.portfolio_from(), how, b, c, 0.0, np.zeros(2))


def test_a_bound_that_leaves_out_open_tickets_is_refused(tmp_path):
    """What the settled tickets alone would prove: the others must count as the worst return."""
    guard = sf.Guard(floor=0.5, low=0.0, high=1.0)
    state = begun(guard, [1.0] * 200)
    assert round(10 * guard.plan(state).share["c"]) == 1  # of ten tickets
    for k in range(60):
        ret = float(k % 3 > 0) if k % 4 else None
        state = guard.replay([("c", ret), *[("baseline", 1.0)] * 9], state=state)
    with sf.GuardLedger(tmp_path / "g.ledger", guard) as ledger:
        ledger.write(guard.plan(begun(guard, [1.0] * 200)))
        ledger.write(guard.plan(state))
        ledger.close(state)
    assert sf.check_ledger(tmp_path / "g.ledger").refusals == ()
    inverse = evidence.log_inverse(guard.levels(1)[0])
    alone = kernels.mean_lower(kernels.portfolio_from(), state.policies[1].settled, 1, inverse)

    def forge(records):
        records[-2]["bounds"][1] = [alone.hex(), 60]

    assert "not proved by its tickets" in forged(tmp_path / "g.ledger", forge).refusals[0][1]


def test_a_comparison_that_leaves_out_open_tickets_is_refused(tmp_path):
    """Of the baseline, whose returns that are missing count as the highest, and of the
    candidate: the lowest.
    """
    guard, rng = (
        sf.Guard(floor=sf.Relative(0.3), low=0.0, high=1.0, stages=()),
        np.random.default_rng(0),
    )
    start = state = begun(guard)
    for k in range(300):
        ret = float(rng.random() < 0.7) if k % 4 else None
        state = guard.replay([("baseline" if k % 3 else "c", ret)], state=state)
    with sf.GuardLedger(tmp_path / "g.ledger", guard) as ledger:
        ledger.write(guard.plan(start))
        ledger.write(guard.plan(state))
        ledger.close(state)
    assert sf.check_ledger(tmp_path / "g.ledger").refusals == ()
    level = guard.levels(1)[0]
    alone = compared(state.policies[0].settled, state.policies[1].settled, level, 0.0, True)
    assert alone > guard.plan(state).compared["c"] + 0.1
    found = forged(
        tmp_path / "g.ledger", lambda r: r[-2].update(bounds=[[alone.hex(), 300]])
    ).refusals
    assert "not proved by its tickets" in found[0][1]


@pytest.fixture
def work(monkeypatch):
    """How often the verifier computed a capital: what a plan costs, whatever the machine."""
    done, capital = [], guard_verifier.log_capital

    def counted(*arguments):
        done.append(1)
        return capital(*arguments)

    monkeypatch.setattr(guard_verifier, "log_capital", counted)
    return done


@pytest.mark.parametrize("name", ["relative", "below"])
def test_a_claim_near_its_limit_takes_no_longer_than_an_honest_plan(
    tmp_path, name, work, monkeypatch
):
    """Claims above an honest one, ever nearer to what is just proved: the nearer, the more
    intervals they need.

    Control: with eight times as many intervals allowed, such claims take them all.
    """
    path = tmp_path / "g.ledger"
    written(path, name)

    def most_work():
        """What such a claim adds, over claims that halve the distance to the limit 8 times."""
        proved, refused, most = 0.0, 0.02, 0
        for _ in range(8):
            middle = (proved + refused) / 2
            work.clear()
            found = forged(
                path, lambda records, more=middle: add_to_bound(last(records), 0, more)
            ).refusals
            most = max(most, len(work))
            proved, refused = (proved, middle) if found else (middle, refused)
        return most - honest

    assert sf.check_ledger(path).refusals == ()
    honest = len(work)
    limited = most_work()
    assert limited <= 2 * guard_verifier.MOST_INTERVALS
    monkeypatch.setattr(guard_verifier, "MOST_INTERVALS", 8 * guard_verifier.MOST_INTERVALS)
    assert most_work() > 4 * limited


def rounded_down(n, outcomes):
    """n returns, spread over the nodes: `outcomes` are returns, in parts of the range, and how
    often they come.
    """
    weights = np.zeros(PLACES, dtype=np.int64)
    for x, chance in outcomes.items():
        place, above = spread(int(x * FINE), 0, FINE)
        weights[place] += int(n * chance) * (EPISODE - above)
        weights[place + 1] += int(n * chance) * above
    return weights


@pytest.mark.parametrize("low", [0.0, 5.0])
@pytest.mark.parametrize("ratio", [True, False])
def test_honest_comparisons_need_at_most_half_of_the_intervals(low, ratio, work):
    """From no return to 10^12, and at tiny levels: what a guard proves, its verifier can prove."""
    bound = {"max_loss": (0.2).hex() if ratio else None, "below": None if ratio else (0.2).hex()}
    head = {
        "kind": "guard",
        "format": 2,
        "software": "s",
        "baseline": "",
        "floor": None,
        **bound,
        "stages": [],
    }
    head |= {
        "low": low.hex(),
        "high": (low + 1.0).hex(),
        "delta": (0.05).hex(),
        "logged": [],
        "missing": 0,
    }
    checked = guard_verifier.Head(head)
    baseline, equal = {0.0: 0.3, 1.0: 0.7}, {0.25: 0.1, 0.5: 0.2, 0.875: 0.7}
    candidates = ({0.0: 0.2, 1.0: 0.8}, {0.0: 0.98, 1.0: 0.02}, {0.875: 1.0}, equal)
    most = 0
    for level, n_b, n_c, one in itertools.product(
        (0.05, 1e-9), (0, 50, 10**6, 10**12), (50, 10**6, 10**12), candidates
    ):
        b, c = rounded_down(n_b, baseline), rounded_down(n_c, one)
        zero = low if ratio else 0.0
        found = compared(b, c, level, zero, ratio)
        value = Fraction(found) if ratio else Fraction(found) - 1
        work.clear()
        nodes = (weights[: len(guard_verifier.NODES)].tolist() for weights in (b, c))
        assert guard_verifier.comparison_proves(checked, *nodes, value - Fraction(1, 2**50), level)
        most = max(most, len(work))
    assert guard_verifier.MOST_INTERVALS / 8 < most / 2 < guard_verifier.MOST_INTERVALS / 2


def test_any_change_of_a_byte_is_found(tmp_path):
    path = tmp_path / "g.ledger"
    written(path, "below", 40)
    text = path.read_bytes()
    for i in range(0, len(text), 97):
        changed = bytearray(text)
        changed[i] ^= 1
        verdict = guard_verifier.verify(bytes(changed).splitlines(keepends=True))
        assert verdict.refusals
    assert (
        guard_verifier.verify([]).refusals
        and not guard_verifier.verify(text.splitlines(keepends=True)[:2]).closed
    )


def test_a_ledger_is_continued_from_a_state_before_its_alarm(tmp_path):
    """What came after that state is removed: also an alarm, and a withdrawal."""
    guard = sf.Guard(floor=0.6, low=0.0, high=1.0)
    for name, later in (
        ("alarm", lambda s, t: guard.settle(s, t, -1.0)),
        ("gone", lambda s, _: guard.withdraw(s, "a")),
    ):
        state, rng = (
            begun(guard, [1.0] * 200, name="a"),
            np.random.default_rng(0),
        )
        ledger = sf.GuardLedger(tmp_path / name, guard)
        ledger.write(guard.plan(state))
        saved, ticket = guard.draw(state, guard.plan(state), rng)
        ledger.write(guard.plan(later(saved, ticket)))
        assert len((tmp_path / name).read_text().splitlines()) == 3
        ledger = sf.GuardLedger.resume(tmp_path / name, guard, saved)
        state = guard.settle(saved, ticket, 1.0)
        ledger.write(guard.plan(state))
        ledger.close(guard.draw(state, guard.plan(state), rng)[0])
        assert sf.check_ledger(tmp_path / name).refusals == ()


def test_the_summary_says_what_was_declared(tmp_path):
    written(tmp_path / "one.ledger", "absolute", 20)
    told = guard_verifier.summary(sf.check_ledger(tmp_path / "one.ledger"))
    assert "frozen" not in told and "plan is the baseline" not in told
    assert (
        "Declared: the floor is 0.5, returns lie in 0 to 1, 300 logged returns of the baseline, 1 "
        "missing" in told
    )
    written(tmp_path / "g.ledger", "below", 20)
    told = guard_verifier.summary(sf.check_ledger(tmp_path / "g.ledger"))
    assert "the floor is 1 of the baseline's value less 0.4, returns lie in -1 to 1" in told


def test_a_ledger_of_another_guard_is_not_continued(tmp_path, assert_refused):
    path = tmp_path / "g.ledger"
    _, state = written(path, "absolute", 40)
    other = GUARDS["below"]
    assert_refused(
        sf.InvalidFile, "another guard", sf.GuardLedger.resume, path, other, other.begin()
    )
    (tmp_path / "text").write_text("no ledger\n")
    assert_refused(
        sf.InvalidFile,
        "not the ledger",
        sf.GuardLedger.resume,
        tmp_path / "text",
        GUARDS["absolute"],
        state,
    )
    assert_refused(
        sf.InvalidSetting,
        "not made by the guard",
        sf.GuardLedger(tmp_path / "new", other).write,
        GUARDS["absolute"].plan(state),
    )


@pytest.mark.parametrize("line", [b"[]\n", b"3\n", b"null\n", b'"end"\n'])
def test_a_line_that_is_no_record_is_refused(tmp_path, line):
    """JSON that is no object, alone or after an honest record: refused, not an error of the
    verifier.
    """
    guard = sf.Guard(floor=0.4, low=0.0, high=1.0)
    with sf.GuardLedger(tmp_path / "a.ledger", guard) as ledger:
        ledger.write(guard.plan(guard.begin()))
    assert not sf.check_ledger(tmp_path / "a.ledger").refusals  # the control
    for before in (b"", (tmp_path / "a.ledger").read_bytes()):
        (tmp_path / "b.ledger").write_bytes(before + line)
        assert sf.check_ledger(tmp_path / "b.ledger").refusals
