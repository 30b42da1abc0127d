"""Returns of a log as evidence of the policy that wrote it, if the user says so: a premise that
`explain` lists.
"""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot as sf
from log_rows import ENDS, write_lines
from surefoot.cli.main import app
from surefoot.logs.methods.learnt import returns_lower


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A log that the baseline of dosing wrote; and another policy's."""
    folder, world = tmp_path_factory.mktemp("logs"), sf.world("dosing")
    pair = {"own": world.baseline, "other": sf.uniform(world.H, world.S, world.A)}
    paths = {
        name: sf.sample_log(world, pi, 400, folder / f"{name}.parquet", seed=1)
        for name, pi in pair.items()
    }
    return world, paths


def counts_and_agent(world, path, **more):
    log = sf.count_log(path, states=world.S, actions=world.A, reward_range=(0, 1))
    problem = log.problem(rewards=world.r, start=world.s1)
    agent = sf.EpsMix(problem, world.baseline, world.suggested_floor, delta=0.1, **more)
    return log.counts, agent


def test_returns_are_the_sums_of_the_log(logged):
    world, paths = logged
    found = np.sort(sf.log_returns(paths["own"]))
    log = sf.count_log(paths["own"], states=world.S, actions=world.A, reward_range=(0, 1))
    assert len(found) == 400 and found.min() >= 0.0
    assert found.sum() == pytest.approx(
        float((log.rewards.mean * log.rewards.n)[log.rewards.n > 0].sum()), rel=1e-9
    )
    assert sf.log_returns(paths["own"], horizon=1).sum() < found.sum()  # longer episodes are cut


def test_early_ends_pay_what_is_declared(tmp_path):
    rows = ["a,0,0,0,1,0,false", "a,1,0,0,1,0,false", "b,0,0,0,2,0,true"]
    path = write_lines(tmp_path / "log.csv", rows, ENDS)
    assert sorted(sf.log_returns(path).tolist()) == [2.0, 2.0]
    assert sorted(sf.log_returns(path, after_end=0.5).tolist()) == [2.0, 2.5]


def test_logged_and_live_returns_count_together(logged, tmp_path):
    """400 logged and 60 live episodes of one policy count as 460; the premise is listed, also
    after a file.
    """
    world, paths = logged
    counts, agent = counts_and_agent(world, paths["own"])
    with_returns = agent.with_logged_returns(counts, sf.log_returns(paths["own"]))
    assert counts.spread_episodes == 0 and with_returns.spread_episodes == 400
    alone, together = agent.plan(counts), agent.plan(with_returns)
    assert together.grounds.by_returns > alone.grounds.by_model
    assert (
        together.certified
        and "played all 400 logged episodes, and was fixed before" in together.explain()
    )
    assert "logged episodes, and was fixed" not in alone.explain()  # control
    with_returns.save(tmp_path / "counts.npz")
    loaded = sf.Counts.load(tmp_path / "counts.npz")
    assert loaded == with_returns and loaded.logged_returns == 400
    # stays on the baseline
    slow = sf.EpsMix(agent.problem, agent.baseline, 0.999 * 4.70, delta=0.1)
    begun = slow.with_logged_returns(counts, sf.log_returns(paths["own"]))
    more = sf.simulate(
        sf.TabularMDP(world.P, world.r, s1=world.s1), slow, 60, seed=0, counts=begun, progress=False
    )
    assert more.counts.spread_episodes == 400 + int(more.sources["baseline"]) == 460


def test_every_episode_needs_its_return(logged):
    world, paths = logged
    counts, agent = counts_and_agent(world, paths["own"])
    returns = sf.log_returns(paths["own"])
    for few in (returns[1:], returns[returns > np.median(returns)], np.append(returns, 5.0)):
        with pytest.raises(sf.InvalidCounts, match="one return for each of its episodes"):
            agent.with_logged_returns(counts, few)
    twice = agent.with_logged_returns(counts, returns)
    with pytest.raises(sf.InvalidCounts, match="one return for each of its episodes"):
        agent.with_logged_returns(twice, returns)
    with pytest.raises(sf.InvalidCounts, match="Expected the counts of a log alone"):
        agent.with_logged_returns(sf.Counts.zeros(agent.problem), [])
    with pytest.raises(sf.InvalidCounts, match="The returns have a mean of"):
        agent.with_logged_returns(counts, returns + 7.0)
    with pytest.raises(sf.InvalidCounts, match="returns"):
        agent.with_logged_returns(counts, np.where(returns > 5.0, np.nan, returns))
    _, silent = counts_and_agent(world, paths["own"], returns=None)
    with pytest.raises(sf.InvalidSetting, match="no evidence for this agent"):
        silent.with_logged_returns(counts, returns)


def test_returns_of_other_episodes_are_noticed(tmp_path):
    """A forgotten horizon, another reward after an end, numbers of nothing: 0.5 was certified
    where 0.3 is true.
    """
    rng, rows = np.random.default_rng(0), []
    for i in range(3000):
        last = 5 if i % 2 else 4
        rows += [
            f"{i},{h},0,0,{int(rng.random() < 0.1)},0,{str(h == last < 5).lower()}"
            for h in range(last + 1)
        ]
    path = write_lines(tmp_path / "log.csv", rows, ENDS)
    cut = sf.count_log(path, horizon=3, states=1, actions=1, reward_range=(-1, 1))
    agent = sf.EpsMix(cut.problem(start=0), np.ones((3, 1, 1)), 0.5)
    with pytest.raises(
        sf.InvalidCounts,
        match="Give log_returns the horizon= and after_end= that count_log was given",
    ):
        agent.with_logged_returns(cut.counts, sf.log_returns(path))
    with pytest.raises(sf.InvalidCounts, match="The returns have a mean of 2"):
        agent.with_logged_returns(cut.counts, np.full(3000, 2.0))
    good = agent.with_logged_returns(cut.counts, sf.log_returns(path, horizon=3))  # controls
    assert good.spread_episodes == 3000 and agent.plan(
        good
    ).grounds.by_returns < agent.problem.level(0.32)
    paying = sf.count_log(path, states=1, actions=1, reward_range=(-1, 1), after_end=-1)
    whole = sf.EpsMix(paying.problem(start=0), np.ones((6, 2, 1)), 0.1)
    with pytest.raises(sf.InvalidCounts, match="after_end="):
        whole.with_logged_returns(paying.counts, sf.log_returns(path))
    assert (
        whole.with_logged_returns(paying.counts, sf.log_returns(path, after_end=-1)).spread_episodes
        == 3000
    )


def test_a_log_with_actions_that_the_baseline_never_plays_is_not_its(logged):
    world, paths = logged
    counts, agent = counts_and_agent(world, paths["other"])
    first = np.broadcast_to(np.eye(world.A)[0], (world.H, world.S, world.A))
    agent = sf.EpsMix(agent.problem, first, 0.5)
    with pytest.raises(
        sf.InvalidCounts, match="which this baseline never plays there: somebody else wrote it"
    ):
        agent.with_logged_returns(counts, sf.log_returns(paths["other"]))


def test_a_false_premise_certifies_what_is_false(logged):
    """Control: why it is a premise. Returns of a better policy prove too much of a baseline that
    did not earn them.
    """
    world, paths = logged
    counts, _ = counts_and_agent(world, paths["own"])
    poor = sf.uniform(world.H, world.S, world.A)
    problem = counts_and_agent(world, paths["own"])[1].problem
    truth = float(sf.policy_value(world, poor)[0, world.s1])
    agent = sf.EpsMix(problem, poor, 0.5 * truth, delta=0.1)
    claimed = agent.plan(agent.with_logged_returns(counts, sf.log_returns(paths["own"])))
    assert claimed.grounds.by_returns > truth


def test_the_best_return_that_is_possible_is_not_outside(tmp_path):
    """Rewards of 1/3 are rounded down one by one in the range, and together in a log."""
    rows = [f"{i},{h},0,0,{1 / 3!r},0" for i in range(30) for h in range(3)]
    path = write_lines(tmp_path / "log.csv", rows)
    log = sf.count_log(path, states=1, actions=1, reward_range=(0, 1))
    problem = log.problem(rewards="as logged", start="as logged")
    agent = sf.EpsMix(problem, np.ones((3, 1, 1)), 0.5)
    low, width = agent.return_range
    assert low + width < 1 * 2**20  # what was paid is above the range as it is summed
    assert agent.with_logged_returns(log.counts, sf.log_returns(path)).spread_episodes == 30


def test_the_command_bounds_the_returns_of_the_counted_episodes(tmp_path):
    """Of early ends, too, which pay what was declared. Control: without the declaration these
    are other returns.
    """
    rng, rows = np.random.default_rng(0), []
    for episode in range(2000):
        for h in range(3):
            ends = int(h == 2 or rng.random() < 0.3)
            rows.append(f"{episode},{h},0,0,{rng.integers(0, 3) - 1},0,{ends}")
            if ends:
                break
    path, told = write_lines(tmp_path / "log.csv", rows, ENDS), []
    for more in (("--after-end", "-0.5"), ()):
        given = ("--states", "1", "--actions", "1", "--reward-range", "-1", "1", *more, "--json")
        words = ["baseline", str(path), "--out", str(tmp_path / "b.npz"), "--force", *given]
        told.append(json.loads(CliRunner().invoke(app, words).output))
        returns = sf.log_returns(path, after_end=float(more[1]) if more else 0.0)
        assert told[-1]["logged_mean_return"] == pytest.approx(returns.mean())
        lower = returns_lower(
            sf.Problem.rescaled(np.zeros((1, 1)), sf.Units(-1, 1), H=3), returns, told[-1]["delta"]
        )
        assert told[-1]["logged_certified"] == pytest.approx(2.0 * lower - 3.0)
    assert told[0]["logged_certified"] < told[1]["logged_certified"]
