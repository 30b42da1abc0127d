"""Explorers, checks, forecasts, learners and ledgers of many states: what they draw and record,
against numpy; and that no table over next states is made on the way.

Large problems are refused where a number for every next state would be needed, before anything is
made of them.
"""

import inspect
import json

import numpy as np
import pytest
import scipy.sparse

import surefoot as sf
from layouts import A, H, S, compact, problem_of, small_world
from surefoot.audit import verifier
from surefoot.audit.records import FORMAT, OF_LISTS, chained, first_record, format_of
from surefoot.base.validation import REWARD_UNITS
from surefoot.worlds.gymnasium import TabularEnv

WORDS = (
    "plain",
    "mask",
    "next",
    "next mask",
    "by step mask",
    "by step next",
    "unknown",
    "unknown mask nostart",
)


def seen(made, problem, pooled, episodes=200):
    agent = sf.BPIUCBVI(problem, delta=0.1, pooled=pooled)
    return sf.simulate(made, agent, episodes, seed=1).counts


class Means:
    """In place of a generator: of every draw the mean."""

    def standard_gamma(self, shape):
        return np.asarray(shape, dtype=np.float64)

    def beta(self, a, b):
        return a / (a + b)


def best_of_the_mean_world(problem, counts):
    """The best policy of the posterior's mean: a visit more for each possible next state, and a
    reward of 1 and one of 0 more where rewards are unknown.
    """
    possible = np.broadcast_to(problem.support, counts.n_sas.shape)
    p = np.where(possible, counts.n_sas + 1.0, 0.0)
    p /= p.sum(axis=-1, keepdims=True)
    r, V, policy = problem.r_rescaled, np.zeros(S), np.zeros((H, S, A))
    if problem.unknown_rows is not None:
        r = np.broadcast_to((counts.x_sa / REWARD_UNITS + 1) / (counts.played + 2), r.shape)
    for h in reversed(range(H)):
        after = problem.r_next_at(h) if problem.pays_by_next else r[h][..., None]
        Q = (p[counts.row(h)] * (after + V)).sum(axis=-1)
        policy[h, np.arange(S), Q.argmax(axis=1)] = 1.0
        V = Q.max(axis=1)
    return policy


@pytest.mark.parametrize("word", WORDS)
def test_thompson_plays_the_best_policy_of_what_it_draws(word, no_tables):
    """With the means in place of draws: the best policy of the mean world. Control: real
    draws give another one.
    """
    made = small_world(word)
    problem, pooled = problem_of(word, made), "by step" not in word
    counts = seen(made, problem, pooled, 30)
    expected = best_of_the_mean_world(problem, counts)
    no_tables()
    explorer = sf.Thompson(problem)
    np.testing.assert_array_equal(explorer(counts, Means()), expected)
    rng = np.random.default_rng(0)
    assert any((explorer(counts, rng) != expected).any() for _ in range(20))


def test_thompson_draws_gammas_of_the_right_shapes():
    """Each possible next state has the prior and its visits, and nothing else is drawn."""
    made = small_world("mask")
    counts = seen(made, made.problem, True, 30)
    asked = []

    class Noted(Means):
        def standard_gamma(self, shape):
            asked.append(shape)
            return shape

    sf.Thompson(made.problem)(counts, Noted())
    np.testing.assert_array_equal(asked[0], counts.n_sas[0][made.problem.support[0]] + 1.0)
    sf.Thompson(made.problem)(sf.Counts.zeros(made.problem, pooled=True), Noted())
    assert asked[1].tolist() == [1.0] * int(made.problem.support.sum())


def large(n=3_000, by_next=False, mask=True, H=3):
    rng = np.random.default_rng(0)
    states, p = rng.integers(0, n, (n * A, 3)), rng.dirichlet(np.ones(3), n * A)
    P = scipy.sparse.csr_array(
        (p.ravel(), (np.repeat(np.arange(n * A), 3), states.ravel())), shape=(n * A, n)
    )
    rewards = {"r": rng.random((n, A))}
    if by_next:
        rewards = {
            "r_next": scipy.sparse.csr_array(
                (rng.random(P.nnz), P.indices, P.indptr), shape=P.shape
            )
        }
    made = sf.TabularMDP(P, H=H, **rewards)
    return made.with_support() if mask else made


def test_thompson_is_refused_before_it_draws_too_much():
    made = large(mask=False)
    with pytest.raises(
        sf.InvalidSetting,
        match=r"Thompson draws a weight for each .* 1.8e\+07 .* \(support=\.\.\.\)",
    ):
        sf.Thompson(made.problem)
    known = large()
    agent = sf.StepMix(
        known.problem,
        sf.uniform(3, 3_000, A),
        0.5,
        explorer=sf.Thompson(known.problem),
        pooled=True,
    )
    run = sf.simulate(known, agent, 3, seed=0)
    assert run.counts.played.sum() == 9


@pytest.mark.parametrize("by_next", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_agents_of_many_states_are_checked(by_next, mask):
    made = large(400, by_next, mask)
    agent = sf.EpsMix(made.problem, sf.uniform(3, 400, A), 0.5, pooled=True)
    found = sf.check_agent(agent)
    assert found.ok and len(found) == 0, str(found)

    class Boastful(sf.EpsMix):
        """It says more than it can know."""

        def plan(self, counts, rng=None):
            return sf.Plan.plain(sf.uniform(3, 400, A), lower=2.9, upper=3.0, safety="certified")

    assert not sf.check_agent(Boastful(made.problem, sf.uniform(3, 400, A), 0.5, pooled=True)).ok


@pytest.mark.parametrize("word", WORDS)
def test_a_forecast_does_not_depend_on_the_layout_of_lists(word, no_tables):
    """What stands for the world is the same: frequencies, and where nothing was seen, all next
    states alike.
    """
    made = small_world(word)
    problem, pooled = problem_of(word, made), "by step" not in word
    agent = sf.EpsMix(problem, sf.uniform(H, S, A), 0.3, delta=0.1, pooled=pooled)
    counts = seen(made, problem, pooled, 5)
    assert (counts.n_sa == 0).any()
    no_tables()
    one, other = (sf.forecast(agent, counts=each).outlooks[0] for each in (counts, compact(counts)))
    assert one.first_mixture is not None
    for field in ("first_mixture", "first_optimistic"):
        assert getattr(one, field) == getattr(other, field)


@pytest.mark.parametrize("by_next", [False, True])
@pytest.mark.parametrize("kind", [sf.EpsMix, sf.StepMix])
def test_runs_and_ledgers_make_no_tables(kind, by_next, no_tables, tmp_path):
    """Simulated in one go, and learnt live; with counts and plans saved, merged and explained."""
    made = large(400, by_next)
    no_tables()
    agent = kind(made.problem, sf.uniform(3, 400, A), 0.5, delta=0.1, pooled=True)
    counts = sf.simulate(made, agent, 20, seed=0, ledger=tmp_path / "ledger").counts
    live = sf.learn(TabularEnv(made), agent, 20, seed=1, save=tmp_path / "run").counts
    counts.save(tmp_path / "counts.npz")
    assert sf.Counts.load(tmp_path / "counts.npz") == counts
    assert counts.forget_returns().merge(live.forget_returns()).episodes == 40
    assert agent.plan(counts).explain()


def test_tables_are_noticed(no_tables):
    """The control of the others."""
    made = large(400)
    no_tables()
    counts = sf.Counts.zeros(made.problem)
    for read in (lambda: counts.n_sas, lambda: made.P, lambda: made.problem.support):
        with pytest.raises(AssertionError, match="a table was made of lists"):
            read()


@pytest.mark.parametrize("kind", [sf.StepMix.paper, sf.EpsMix.paper, sf.BPIUCBVI, sf.StepNoMix])
def test_other_agents_make_no_tables(kind, no_tables):
    made = large(400, mask=False)
    no_tables()
    known = {"baseline": sf.uniform(3, 400, A), "floor": 0.5, "delta": 0.1}
    asked = inspect.signature(kind).parameters
    agent = kind(made.problem, **{name: x for name, x in known.items() if name in asked})
    assert sf.simulate(made, agent, 20, seed=0).counts.episodes == 20


def test_a_few_states_stand_for_all_of_many():
    """Where nothing is declared, a table of next states would have two million entries."""
    made = large(1_000, mask=False)
    agent = sf.EpsMix(made.problem, sf.uniform(3, 1_000, A), 0.5, pooled=True)
    assert sf.forecast(agent, kappa=0.3).outlooks


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def rewritten(lines, change):
    """The same ledger after a change, with digests that fit."""
    records, before, made = [json.loads(line) for line in lines], "0" * 64, []
    change(records)
    for record in records:
        record.pop("digest")
        line, before = chained(record, before)
        made.append(line)
    return made


def ledger_of(tmp_path, made, name="ledger"):
    n, steps = made.S, made.H
    value = sf.value(made, sf.uniform(steps, n, A))
    agent = sf.EpsMix(made.problem, sf.uniform(steps, n, A), 0.9 * value, delta=0.2, pooled=True)
    sf.simulate(made, agent, 200, seed=2, ledger=tmp_path / name)
    return agent, lines_of(tmp_path / name)


def partly(made):
    """The same world for agents to whom the mask says nothing of the first states."""
    lists = made.problem.mask
    first, state = lists.first.copy(), lists.state[lists.first[20] :]
    first[:21], first[21:] = 0, first[21:] - first[20]
    known = made.problem.arguments() | {"support": lists._replace(first=first, state=state)}
    return sf.TabularMDP(made.transitions, H=made.H, **_rewards(known), support=known["support"])


def _rewards(known):
    return {word: sf.Rescaled(known[word]) for word in ("r", "r_next") if known[word] is not None}


@pytest.mark.parametrize("by_next", [False, True])
@pytest.mark.parametrize("kind", ["mask", "part of a mask"])
def test_ledgers_of_lists_are_verified(tmp_path, by_next, kind):
    made = large(80, by_next)
    made = partly(made) if kind != "mask" else made
    agent, lines = ledger_of(tmp_path, made)
    verdict = verifier.verify(lines)
    assert verdict.refusals == [] and verdict.closed and verdict.certified > 0
    head = first_record(agent, sf.Counts.zeros(made.problem, pooled=True), OF_LISTS)
    assert head["format"] == OF_LISTS == format_of(made.problem)
    assert (kind != "mask") == any(states == 80 for states in head["support"][0])
    in_tables = first_record(agent, sf.Counts.zeros(made.problem, pooled=True), FORMAT)
    assert all(states for states in in_tables["support"][0])

    def as_tables(records):
        records[0] |= {name: in_tables[name] for name in ("format", "support", "rewards_by_next")}

    written = rewritten(lines, as_tables)
    assert verifier.verify(written).refusals == []  # the same in tables
    if by_next and kind == "mask":
        assert len(written[0]) > 5 * len(lines[0])

    def unlisted(records):
        records[0] |= {"format": FORMAT}
        records[0]["support"][0][0] = []

    def shorter(records):
        """A transition that was seen is no longer possible."""
        for row, pair, state, _ in records[-2]["visits"]:
            states = records[0]["support"][row][pair]
            if states != 80 and len(states) > 1:
                place = states.index(state)
                del states[place]
                if by_next:
                    del records[0]["rewards_by_next"][row][pair][place]
                return

    def paid_more(records):
        records[0]["rewards_by_next"] = [[["0x1.0000000000000p+0"] * len(one) for one in row]
                                         for row in records[0]["rewards_by_next"]]  # fmt: skip

    def paid_less_often(records):
        records[0]["rewards_by_next"][0][3].pop()

    for forge in (unlisted, shorter, *((paid_more, paid_less_often) if by_next else ())):
        assert verifier.verify(rewritten(lines, forge)).refusals, forge.__name__


def test_a_row_of_rewards_for_all_steps_needs_a_mask_for_all_steps(tmp_path):
    made = large(80, by_next=True)
    rows = made.transitions
    lists = (np.ones(len(rows.state)), rows.state, rows.first)
    by_step = [scipy.sparse.csr_array(lists, shape=(80 * A, 80))] * 3
    problem = sf.Problem(
        r_next=sf.Rescaled(made.problem.arguments()["r_next"]), H=3, support=by_step
    )
    agent = sf.EpsMix(problem, sf.uniform(3, 80, A), 0.1, delta=0.2)
    with sf.Ledger(tmp_path / "ledger", agent) as ledger:
        ledger.write(agent.plan(sf.Counts.zeros(problem)))
    lines = lines_of(tmp_path / "ledger")
    assert verifier.verify(lines).refusals == []

    def one_row(records):
        del records[0]["rewards_by_next"][1:]

    assert verifier.verify(rewritten(lines, one_row)).refusals


def test_a_ledger_that_nobody_could_read_is_refused_at_once(tmp_path):
    """Rewards by next state, of which any may follow: more than a record can hold. Nothing was
    planned yet.
    """
    free = large(1_500, by_next=True, mask=False)
    agent = sf.EpsMix(free.problem, sf.uniform(3, 1_500, A), 0.1, pooled=True)
    with pytest.raises(
        sf.InvalidSetting, match=r"begin with 4.5e\+06 rewards by next state, .*\(support=\.\.\.\)"
    ):
        sf.Ledger(tmp_path / "ledger", agent)
    known = large(1_500, by_next=True)
    sf.Ledger(
        tmp_path / "ledger", sf.EpsMix(known.problem, sf.uniform(3, 1_500, A), 0.1, pooled=True)
    )


def test_a_ledger_of_lists_is_continued(tmp_path):
    made = large(80, by_next=True)
    agent, lines = ledger_of(tmp_path, made)
    sf.Ledger.resume(tmp_path / "ledger", agent, 100)
    kept = lines_of(tmp_path / "ledger")
    assert 1 < len(kept) < len(lines) and kept == lines[: len(kept)]
