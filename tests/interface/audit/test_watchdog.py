"""The watchdog in an environment: it raises an alarm where a premise is false, says why, freezes
the agent to its baseline, and is silent where all is well.

Seeds are fixed, so no test here fails by chance. How often a watchdog errs is in
statistical/test_watchdog.py; here a true promise is watched a few times, each with a chance of at
most 0.01 + delta of an alarm when the seeds were chosen.
"""

import json

import numpy as np
import pytest

import surefoot as sf
from surefoot.base.files import write_arrays
from surefoot.cli.tables import print_runs, rows
from two_states import TwoStates, play

H = 4
FLOOR = 1.3  # the baseline is worth 1.5 in `Coin`


class Coin(TwoStates):
    """Either action leads to state 1 with its probability `good`, from episode `changes` on with
    0.1. `played` is where the episodes begin to be numbered.
    """

    def __init__(self, good=(0.5, 0.6), changes=10**9, played=0):
        self.good, self.changes, self.k = good, changes, played - 1

    def chance(self, action):
        return 0.1 if self.k >= self.changes else self.good[action]


def problem(**settings):
    told = {
        "rewards": np.array([[0, 0], [1, 1]]),
        "reward_range": (0, 1),
        "start": 0,
        "stationary": True,
    }
    return sf.from_gymnasium(Coin(), horizon=H, **{**told, **settings})


def agent(kind=sf.StepMix, floor=FLOOR, known=None, **settings):
    """Uniform baseline; pooled counts, so that an agent leaves the baseline within some hundred
    episodes.
    """
    known = problem() if known is None else known
    return kind(
        known, sf.embed_policy(known, np.full((2, 2), 0.5)), floor, **{"pooled": True, **settings}
    )


BELOW = {"good": (0.3, 0.3)}  # the baseline is worth 0.9


def learnt(env, watched=None, episodes=200, seed=0, alpha=0.01, **settings):
    watched = agent() if watched is None else watched
    return sf.learn(env, watched, episodes, seed, watchdog=sf.Watchdog(alpha), **settings)


# ---- alarm, or none


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix, sf.StepNoMix])
@pytest.mark.parametrize("what", ["the baseline is below the floor", "the process changes"])
def test_a_false_premise_raises_an_alarm_and_freezes(kind, what):
    """From the alarm on the baseline alone is played; before it, in the world that changes, more
    was.

    The change comes late: an agent that knows little would go back to its baseline by itself, alarm
    or not.
    """
    changes = what == "the process changes"
    learner = agent(kind, returns=sf.Returns())
    env, episodes = (Coin(changes=800), 1000) if changes else (Coin(**BELOW), 150)
    run = learnt(env, learner, episodes)
    assert isinstance(run.alarm, sf.Alarm)
    at = run.alarm.episodes
    assert 800 * changes < at < episodes
    assert run.alarm.floor == FLOOR
    assert run.alarm.mean_of_last < FLOOR
    after = run.curve.episode >= at
    assert after.any()
    assert run.curve.sources[after, 1:].sum() == 0
    if changes:
        assert run.curve.sources[~after, 1:].sum() > 100
        assert run.alarm.last < at  # low only lately, and it says so
        assert run.alarm.mean_return > FLOOR > run.alarm.mean_of_last
    assert run.counts.episodes == episodes  # what happened is still counted


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix, sf.StepNoMix])
def test_where_all_is_well_nothing_is_said_and_nothing_changes(kind, assert_same_run):
    """The same run, to the last bit, as without a watchdog; and it left the baseline."""
    learner = agent(kind, returns=sf.Returns())
    run = learnt(Coin(), learner, 350)
    assert run.alarm is None
    assert "ALARM" not in repr(run)
    assert run.off_baseline is not None
    assert_same_run(run, sf.learn(Coin(), learner, 350, seed=0))


def test_a_smaller_alpha_waits_longer():
    quick, slow = (learnt(Coin(**BELOW), alpha=alpha).alarm.episodes for alpha in (0.1, 1e-6))
    assert quick < slow


def test_rivals_with_a_floor_are_frozen_too():
    """DOPE solves a linear program for each plan; after an alarm none of them is played."""
    known = problem()
    learner = agent(sf.DOPE, known=known, baseline_value=1.5, episodes=500)
    run = learnt(Coin(**BELOW), learner, 150)
    assert run.alarm is not None
    assert run.alarm.episodes < 100
    assert run.sources["baseline"] >= 150 - run.alarm.episodes


# ---- what is said


def test_the_message_has_the_numbers_and_their_units():
    """In the user's units: rewards of -1 and 5, so that 0..4 is -4..20."""
    known = problem(rewards=np.array([[-1, -1], [5, 5]]), reward_range=(-1, 5))

    class Paid(Coin):
        def step(self, action):
            state, reward, *rest = super().step(action)
            return state, 6.0 * reward - 1.0, *rest

    assert known.level(3.8) == pytest.approx(FLOOR)
    run = learnt(Paid(**BELOW), agent(known=known, floor=3.8))
    text, at = str(run.alarm), run.alarm.episodes
    mean = run.alarm.mean_return
    assert text.startswith(
        f"ALARM after {at} episodes: the promise is not supported by what was observed."
    )
    assert "The floor is 3.8 per episode" in text
    assert f"over {at} episodes the mean return was {mean:.6g}" in text
    assert "at most 0.01" in text
    for reason in ("the process has changed", "is not Markov", "the baseline is below the floor"):
        assert reason in text
    assert -4.0 < mean < 3.8
    # observed, and of those episodes
    assert run.curve.mean[:at].mean() == pytest.approx(run.alarm.mean_return)


def test_it_is_said_everywhere(capsys):
    """In the run, its label, its repr, the table for people and the rows for programs."""
    run = learnt(Coin(**BELOW))
    label = (
        f"not supported by what was observed (alarm after {run.alarm.episodes} episodes, "
        f"alpha "
        "= 0.01): certified"
    )
    assert str(run.promise).startswith(label)
    follow = 200 - run.alarm.episodes
    assert repr(run).startswith(
        f"Run({run.alarm} {follow} episodes followed, on the baseline alone. StepMix, "
    )
    (row,) = rows([run])
    assert row["alarm"] == str(run.alarm)
    assert row["promise"] == str(run.promise)
    json.dumps(row)
    print_runs([run])
    assert "ALARM after" in capsys.readouterr().out
    fine = learnt(Coin())
    assert rows([fine])[0]["alarm"] is None
    print_runs([fine])
    assert "ALARM" not in capsys.readouterr().out


def test_not_certified_stays_first():
    run = learnt(Coin(**BELOW), agent(bounds=sf.KL(scale=0.5)))
    assert str(run.promise).startswith(
        "NOT CERTIFIED: bonus scaled by 0.5; and the floor is not supported"
    )


# ---- in a loop of one's own


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
def test_plans_after_an_alarm(kind):
    """The baseline alone, trusted and no more, with the reason in explain() and repr()."""
    learner = sf.Learner(agent(kind), seed=0, watchdog=sf.Watchdog())
    assert not learner.watch.alarmed
    before = learner.begin()
    learner.rewind()
    assert not before.frozen
    assert "ALARM" not in before.explain()
    plan = play(learner, Coin(**BELOW), 150).plan
    assert learner.watch.alarmed
    assert plan.frozen
    assert (plan.source, plan.h, plan.rho, plan.safety) == ("baseline", H, 0.0, "trusted")
    assert not plan.certified
    drawn = plan.draw(np.random.default_rng(0), episode=0)
    assert drawn.baseline
    np.testing.assert_array_equal(drawn.policy, learner.agent.baseline)
    assert plan.explain().startswith(f"{learner.watch.alarm}\nNext: the baseline")
    assert repr(learner).startswith("Learner(ALARM, only the baseline is played: ")
    assert "no promise is made" in plan.explain()
    assert "frozen after an ALARM" in repr(plan)


def test_what_was_seen_is_latched():
    """After an alarm nothing moves: good times do not take it back."""
    learner = sf.Learner(agent(), seed=0, watchdog=sf.Watchdog())
    play(learner, Coin(**BELOW), 150)
    then = learner.watch
    plan = play(learner, Coin(good=(1.0, 1.0)), 50).plan
    assert learner.watch is then
    assert plan.frozen
    assert learner.episodes == 200


def test_the_watch_can_be_saved_and_gone_on_with(tmp_path, assert_refused):
    """Counts and watch in files, at any moment: the agent that continues sees what the other
    would have.
    """
    whole = sf.Learner(agent(), seed=0, watchdog=sf.Watchdog())
    play(whole, Coin(**BELOW), 120)
    part = sf.Learner(agent(), seed=0, watchdog=sf.Watchdog())
    play(part, Coin(**BELOW), 20)
    part.watch.save(tmp_path / "watch.npz")
    part.counts.save(tmp_path / "counts.npz")
    learner = agent()
    watch = sf.Watchdog().on(learner, tmp_path / "watch.npz")
    assert watch == part.watch
    counts = sf.Counts.load(tmp_path / "counts.npz")
    rest = sf.Learner(learner, seed=0, counts=counts, watchdog=watch)
    play(rest, Coin(**BELOW), 100)
    assert rest.watch == whole.watch
    assert rest.watch.alarmed
    assert rest.counts == whole.counts
    assert_refused(
        sf.InvalidFile, "another watchdog", sf.Watchdog(0.02).on, learner, tmp_path / "watch.npz"
    )
    assert_refused(
        sf.InvalidFile,
        "another watchdog",
        sf.Watchdog().on,
        agent(floor=1.2),
        tmp_path / "watch.npz",
    )
    assert_refused(
        sf.InvalidSetting,
        "belongs to another agent",
        sf.Learner,
        agent(floor=1.2),
        seed=0,
        watchdog=watch,
    )


def test_rewards_are_those_observed_where_they_are_unknown():
    """The environment pays half of what it seems to: only a watchdog that reads rewards can
    know.
    """
    blind = problem(rewards=None)

    class Half(Coin):
        def step(self, action):
            state, reward, *rest = super().step(action)
            return state, 0.5 * reward, *rest

    assert learnt(Half(), agent(known=blind), 250).alarm is not None
    assert learnt(Coin(), agent(known=blind), 250).alarm is None  # control
    # Where the problem knows what a state pays, that is what is summed: that the table is false is
    # another alarm.
    assert isinstance(learnt(Half(), agent(), 250).alarm, sf.Contradiction)


def test_the_range_of_returns_is_that_of_the_problem(assert_refused):
    """One prize in 50 steps: returns lie in [0, 1], not in [0, 50], and stakes are for that."""
    lake = sf.from_gymnasium("FrozenLake-v1", horizon=50)
    baseline = 0.8 * sf.solve(lake).policy + 0.2 / lake.A
    watch = sf.Watchdog().on(sf.EpsMix(lake.problem, baseline, floor=0.13, pooled=True))
    assert (watch.bet.low, watch.bet.span) == (0.0, 1.0)
    assert watch.bet.f == 0.13
    assert_refused(
        sf.InvalidEpisode, r"return is 1\.5, outside the range \(0, 1\)", watch.after, 1.5
    )
    assert_refused(sf.InvalidEpisode, "outside the range", watch.after, float("nan"))


# ---- files of another run


def test_another_watchdog_is_another_run(tmp_path, assert_refused):
    path = tmp_path / "run.npz"
    learnt(Coin(), episodes=20, save=path)
    assert_refused(
        sf.InvalidFile,
        "the watchdog",
        learnt,
        Coin(),
        episodes=20,
        save=path,
        resume=True,
        alpha=0.02,
    )
    assert_refused(
        sf.InvalidFile,
        "the watchdog",
        sf.learn,
        Coin(),
        agent(),
        20,
        seed=0,
        save=path,
        resume=True,
    )
    assert learnt(Coin(), episodes=20, save=path, resume=True).episodes == 20  # control


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("watch_state", 0, 19.0),  # episodes
        ("watch_state", 0, 19.5),
        ("watch_state", 2, -1.0),  # for how long returns were low
        ("watch_state", 6, np.nan),  # a logarithm
        ("watch_about", 0, 0.5),
        ("watch_state", None, np.zeros(3)),
        ("watch_state", None, None),
    ],
)
def test_a_state_that_cannot_be_is_refused(name, index, value, tmp_path):
    """Written with a valid hash, as by somebody who changes it on purpose."""
    path = tmp_path / "run.npz"
    learnt(Coin(), episodes=20, save=path)
    with np.load(path) as file:
        arrays = {key: file[key].copy() for key in file.files if key != "about"}
    if index is not None:
        arrays[name][index] = value
    elif value is None:
        del arrays[name]
    else:
        arrays[name] = value
    write_arrays(path, "learning", arrays)
    with pytest.raises(sf.InvalidFile):
        learnt(Coin(), episodes=20, save=path, resume=True)


def test_a_ledger_says_that_the_agent_was_frozen(tmp_path):
    """One record more than before the alarm, on the baseline, labelled; and none after it."""
    whole = learnt(Coin(**BELOW), ledger=tmp_path / "book.ledger")
    _, *plans, _ = [
        json.loads(line) for line in (tmp_path / "book.ledger").read_bytes().splitlines()
    ]
    assert [plan["frozen"] for plan in plans] == [False] * (len(plans) - 1) + [True]
    found = [plans[-1][field] for field in ("source", "safety", "episodes")]
    assert found == ["baseline", "trusted", whole.alarm.episodes]


# ---- refusals


def test_whom_it_cannot_watch(assert_refused):
    known = problem()
    costs = {"cost": np.full((H, 3, 2), 0.5), "budget": 3.0, "baseline_cost": 2.0, "episodes": 100}
    baseline = sf.embed_policy(known, np.full((2, 2), 0.5))
    at_least = sf.Problem(known.r[0], H=H, stationary=True, rewards_at_least=True)

    class Own:
        problem, floor, pooled, promise = known, 1.0, False, "mine"

        def plan(self, counts, rng=None):
            return sf.Plan.plain(baseline)

    refused = {
        "keeps no floor": sf.BPIUCBVI(known),
        "keeps the sum of all episodes": agent(sf.BudgetExploration),
        "relative to the baseline's value": agent(floor=sf.Relative(0.1)),
        "keeps costs within a budget": sf.DOPE(known, baseline, **costs),
        "only lower bounds of some rewards": sf.StepMix(at_least, baseline, FLOOR),
        "makes an agent play its baseline, but no baseline of Own is known": Own(),
    }
    for reason, unfit in refused.items():
        assert_refused(sf.InvalidSetting, reason, sf.Watchdog().on, unfit)
        assert_refused(sf.InvalidSetting, reason, sf.Learner, unfit, seed=0, watchdog=sf.Watchdog())
    assert_refused(
        sf.InvalidSetting,
        "keeps no floor",
        sf.learn,
        Coin(),
        sf.BPIUCBVI(known),
        5,
        seed=0,
        watchdog=sf.Watchdog(),
    )


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1e-300, float("nan"), "0.01", True, None])
def test_what_is_no_alpha(alpha, assert_refused):
    assert_refused(
        sf.InvalidSetting,
        "the largest probability of a false alarm in the whole run",
        sf.Watchdog,
        alpha,
    )


def test_what_is_no_watchdog(assert_refused):
    assert_refused(
        sf.InvalidSetting,
        r"expected sf.Watchdog",
        sf.learn,
        Coin(),
        agent(),
        5,
        seed=0,
        watchdog=0.01,
    )
    assert_refused(
        sf.InvalidSetting, r"expected sf.Watchdog", sf.Learner, agent(), seed=0, watchdog=0.01
    )
