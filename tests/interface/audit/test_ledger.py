"""Ledgers: what is written, when, and how it goes on after a stop. What a stranger makes of
them: test_verifier.py.
"""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

import surefoot as sf
from command import surefoot
from surefoot.base.nodes import PLACES


def trap(kind=sf.StepMix, **settings):
    world = sf.world("trap")
    return world, kind(world.problem, world.baseline, world.suggested_floor, delta=0.1, **settings)


def records(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def counts_of(lines, world):
    """The counts after each plan, added up from what is written."""
    n = np.zeros((world.H, world.S * world.A, world.S), dtype=np.int64)
    found = []
    for line in lines:
        for row, pair, s, more in line.get("visits", []):
            n[row, pair, s] += more
        found.append(n.copy())
    return found


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix, sf.StepNoMix])
def test_every_plan_is_written_and_the_run_is_the_same(kind, tmp_path):
    """To the last bit; and the ledger holds the counts, values and policies of plans made by
    hand from those counts.
    """
    world, agent = trap(kind)
    run = sf.simulate(world, agent, 1500, seed=3, ledger=tmp_path / "a.ledger")
    alone = sf.simulate(world, agent, 1500, seed=3)
    assert run.counts == alone.counts
    assert (run.regret, run.violations, run.sources) == (
        alone.regret,
        alone.violations,
        alone.sources,
    )
    first, *plans, last = records(tmp_path / "a.ledger")
    assert (first["kind"], first["agent"], last["kind"]) == ("ledger", kind.__name__, "end")
    assert (last["plans"], last["episodes"]) == (len(plans), 1500)
    assert {plan["source"] for plan in plans} >= {"baseline", "optimistic"}
    for line, n in zip(plans, counts_of(plans, world), strict=True):
        places = np.zeros(PLACES, dtype=np.int64)
        for earlier in plans[: line["number"] + 1]:
            for place, more in earlier["returns"]:
                places[place] += more
        by_hand = {"baseline_returns": line["baseline_returns"], "returns_of": agent.fingerprint}
        counts = sf.Counts(
            n.reshape(world.H, world.S, world.A, world.S), problem=world.problem, **by_hand
        )
        counts.hold_returns(places, agent.return_range)
        plan = agent.plan(counts)
        assert line["candidates"] == [value.hex() for value in plan.candidates.tolist()]
        assert (line["h"], float.fromhex(line["rho"]), line["safety"]) == (
            plan.h,
            plan.rho,
            plan.safety,
        )
        assert line["episodes"] == n.sum() // world.H
        if isinstance(plan.policy, np.ndarray):
            assert [
                float.fromhex(x) for x in np.ravel(line["policy"])
            ] == plan.policy.ravel().tolist()


def test_the_chain_is_what_the_page_says(tmp_path):
    """docs/ledger.md, by hand: SHA-256 of the digest before and the canonical line without its
    own.
    """
    world, agent = trap()
    sf.simulate(world, agent, 50, seed=0, ledger=tmp_path / "a.ledger")
    before = "0" * 64
    for line in (tmp_path / "a.ledger").read_bytes().splitlines(keepends=True):
        record = json.loads(line)
        assert json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n" == line
        digest = record.pop("digest")
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        assert digest == hashlib.sha256((before + text).encode()).hexdigest()
        before = digest


def test_nothing_is_overwritten_and_nothing_else_is_taken(tmp_path, assert_refused):
    world, agent = trap()
    path = tmp_path / "a.ledger"
    path.write_text("mine")
    assert_refused(
        sf.InvalidFile, "nothing is overwritten", sf.simulate, world, agent, 10, seed=0, ledger=path
    )
    assert path.read_text() == "mine"
    assert_refused(sf.InvalidFile, "does not exist", sf.Ledger, tmp_path / "no" / "a.ledger", agent)
    assert_refused(
        sf.InvalidSetting,
        "not of BPIUCBVI",
        sf.simulate,
        world,
        sf.BPIUCBVI(world.problem),
        10,
        seed=0,
        ledger=tmp_path / "b.ledger",
    )
    assert not (tmp_path / "b.ledger").exists()
    book = sf.Ledger(tmp_path / "c.account", agent)
    assert_refused(
        sf.InvalidSetting,
        "not made by the agent of the ledger",
        book.write,
        trap()[1].plan(sf.Counts.zeros(world.problem)),
    )
    assert_refused(
        sf.InvalidSetting,
        "not made by the agent of the ledger",
        book.write,
        sf.Plan.plain(agent.baseline),
    )
    book.close()
    assert not (tmp_path / "c.account").exists()  # nothing was planned
    assert_refused(
        sf.InvalidSetting, "closed", book.write, agent.plan(sf.Counts.zeros(world.problem))
    )


def test_one_plan_asked_for_twice_is_written_once(tmp_path):
    world, agent = trap()
    counts = sf.Counts.zeros(world.problem)
    with sf.Ledger(tmp_path / "a.ledger", agent) as book:
        book.write(agent.plan(counts))
        book.write(agent.plan(counts))
        counts.add(sf.Episode([0, 1, 1], [0, 0]))
        book.write(agent.plan(counts))
        assert repr(book).endswith("2 plans)")
    assert [line["kind"] for line in records(tmp_path / "a.ledger")] == [
        "ledger",
        "plan",
        "plan",
        "end",
    ]


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
@pytest.mark.parametrize("returns", [None, sf.Returns()])
def test_returns_that_are_no_evidence_are_not_written(kind, returns, tmp_path):
    """An agent without returns, from counts that hold them spread; and one to which they are
    evidence.
    """
    world, with_returns = trap(kind, returns=sf.Returns())
    counts = sf.simulate(world, with_returns, 100, seed=0).counts
    assert counts.spread_episodes
    _, agent = trap(kind, returns=returns)
    sf.simulate(world, agent, 300, seed=1, counts=counts, ledger=tmp_path / "a.ledger")
    assert sf.check_ledger(tmp_path / "a.ledger").refusals == []
    first, *plans, _ = records(tmp_path / "a.ledger")
    assert first["warm"] and any(plan["returns"] for plan in plans) == (returns is not None)
    assert plans[0]["baseline_returns"] == counts.baseline_returns.tolist()


def test_a_ledger_without_spread_returns_is_continued(tmp_path):
    """The plan that is made again from the same counts is not written twice."""
    world, with_returns = trap(returns=sf.Returns())
    counts = sf.simulate(world, with_returns, 100, seed=0).counts
    _, agent = trap(returns=None)
    agent.claim(counts)
    sf.Ledger(tmp_path / "a.ledger", agent).write(agent.plan(counts))
    text = (tmp_path / "a.ledger").read_bytes()
    sf.Ledger.resume(tmp_path / "a.ledger", agent, 100).write(agent.plan(counts))
    assert (tmp_path / "a.ledger").read_bytes() == text


def test_an_empty_log_is_no_log(tmp_path):
    world, agent = trap()
    for name, episodes in (("none", []), ("one", [sf.Episode([0] * (world.H + 1), [0] * world.H)])):
        counts = sf.Counts.from_log(world.problem, episodes)
        with sf.Ledger(tmp_path / name, agent) as book:
            book.write(agent.plan(counts))
        first = records(tmp_path / name)[0]
        assert first["warm"] == first["logged"] == bool(episodes)
        assert sf.check_ledger(tmp_path / name).refusals == []


def test_the_ledger_of_another_agent_is_not_continued(tmp_path, assert_refused):
    world, agent = trap()
    sf.simulate(world, agent, 50, seed=0, ledger=tmp_path / "a.ledger")
    text = (tmp_path / "a.ledger").read_bytes()
    other = sf.StepMix(world.problem, world.baseline, 0.59, delta=0.1)
    assert_refused(
        sf.InvalidFile, "another agent", sf.Ledger.resume, tmp_path / "a.ledger", other, 50
    )
    for damaged in (
        text.replace(b'"h":', b'"h" :', 1),
        b"{}\n" + text,
        text.replace(b"\n", b"\n\n", 1),
        b"\xff" + text,
    ):
        (tmp_path / "b.ledger").write_bytes(damaged)
        assert_refused(
            sf.InvalidFile, "damaged", sf.Ledger.resume, tmp_path / "b.ledger", agent, 50
        )
        assert (tmp_path / "b.ledger").read_bytes() == damaged
    assert (tmp_path / "a.ledger").read_bytes() == text


def test_the_command_writes_and_checks(tmp_path):
    path = tmp_path / "a.ledger"
    tried = surefoot("try", "trap", "--episodes", 300, "--ledger", path)
    assert tried.exit_code == 0, tried.output
    assert "surefoot certify" in tried.output
    checked = surefoot("certify", path)
    assert checked.exit_code == 0, checked.output
    assert "ACCEPTED" in checked.output
    both = surefoot("try", "trap", "--agent", "stepmix", "--agent", "epsmix", "--ledger", path)
    assert isinstance(both.exception, sf.InvalidSetting)


def test_a_file_that_is_not_there(tmp_path, assert_refused):
    assert_refused(sf.InvalidFile, "cannot be read", sf.check_ledger, tmp_path / "no.ledger")
    command = [sys.executable, "-m", "surefoot", "certify", str(tmp_path / "no.ledger")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr.count("\n") <= 2
    assert "is not a file. Expected a ledger" in " ".join(answer.stderr.split())
