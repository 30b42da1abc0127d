"""Steps that share counts and are not alike: an alarm in a process that answers, a refusal of a
log.

Seeds are fixed: no test here fails by chance. How often the check errs is in
statistical/test_alike_steps.py.
"""

import numpy as np
import pytest

import surefoot as sf
from command import surefoot
from surefoot.bounds.alike import unlike
from surefoot.cli.main import main
from surefoot.model import by_step
from surefoot.model.by_step import StepCounts
from two_states import TwoStates, play

H = 5


class Tide(TwoStates):
    """Either action leads to state 1 with 0.3, plus `tide` times the step."""

    def __init__(self, tide=0.0):
        self.tide = tide

    def chance(self, action):
        return 0.3 + self.tide * self.h


KNOWN = {"rewards": np.array([[0, 0], [1, 1]])}


def agent(pooled=True, floor=0.3, kind=sf.EpsMix, **told):
    told = told or KNOWN
    problem = sf.from_gymnasium(
        Tide(), horizon=H, reward_range=(0, 1), start=0, stationary=True, **told
    )
    return kind(problem, sf.embed_policy(problem, np.full((2, 2), 0.5)), floor, pooled=pooled)


def learnt(tide, mine=None, episodes=400, **settings):
    return sf.learn(Tide(tide), agent() if mine is None else mine, episodes, seed=0, **settings)


def test_a_process_that_changes_with_the_step_is_found(caplog):
    heard = []
    run = learnt(0.15, on_alarm=heard.append)
    assert (
        isinstance(run.alarm, sf.Contradiction)
        and heard == [run.alarm]
        and run.alarm.episodes < 300
    )
    text = str(run.alarm)
    assert (
        "steps that share counts are not alike" in text
        and "led to state" in text
        and "visits at step" in text
    )
    assert "put that into the state" in text and "pooled=False" in text and "alpha" not in text
    assert repr(run).startswith("Run(ALARM") and not run.promise.certified
    (line,) = (said for record in caplog.records if "ALARM" in (said := record.getMessage()))
    assert f"in the {400 - run.alarm.episodes} episodes that follow" in line
    plan = agent().plan(run.counts)
    assert plan.source == "baseline" and plan.explain().startswith("ALARM")


@pytest.mark.parametrize("told", [KNOWN, {"reward_range": (0, 1)}])
def test_control_a_process_whose_steps_are_alike(told):
    told = {name: value for name, value in told.items() if name != "reward_range"} or {
        "rewards": None
    }
    run = learnt(0.0, agent(**told), 1_500)
    assert run.alarm is None
    assert (
        "counts are pooled; compared as they come, at alpha = 0.01"
        in agent(**told).plan(run.counts).explain()
    )


class EndsAtH(Tide):
    """The same, which says `terminated` at its last step: that is its horizon, and no move of
    the other steps.
    """

    def step(self, action):
        state, reward, *_ = super().step(action)
        return state, reward, self.h == H, False, {}


def test_an_end_at_the_last_step_is_no_next_state():
    """Control of the rule: counted as an end, it would be an alarm after some 20 episodes."""
    run = sf.learn(EndsAtH(), agent(), 600, seed=0)
    assert run.alarm is None
    seen = run.counts.steps
    ends = np.concatenate([seen.table, np.zeros((1, *seen.table.shape[1:]), dtype=np.int64)])
    ends[-1, :, agent().problem.absorbing_state] = seen.n_visits[-1]
    visits = np.vstack([seen.n_visits, np.zeros((1, seen.n_visits.shape[1]), dtype=np.int64)])
    assert (
        unlike(StepCounts.of(ends, visits, None), agent().problem).successor
        == agent().problem.absorbing_state
    )


@pytest.mark.parametrize("told", [{**KNOWN}, {"rewards": None}])
def test_what_is_kept_apart_adds_up_to_what_is_shared(told):
    """Every next state but those of step H, every visit, and every sum of rewards."""
    counts = learnt(0.1, agent(**told), 37).counts
    seen, (_, S, A) = counts.steps, counts.shape
    assert np.array_equal(seen.table.sum(axis=0).reshape(S, A, S), counts.n_sas[0])
    assert np.array_equal(seen.n_visits.sum(axis=0).reshape(S, A), counts.played[0])
    assert (seen.x_paid is None) == (counts.x_sa is None)
    if counts.x_sa is not None:
        assert np.array_equal(seen.x_paid.sum(axis=0).reshape(S, A), counts.x_sa[0])


def test_control_counts_that_are_not_pooled_share_nothing():
    run = learnt(0.15, agent(pooled=False))
    assert run.alarm is None and run.counts.steps is None


@pytest.mark.parametrize("floor", [0.3, sf.Below(0.5), sf.Relative(0.5)])
def test_any_floor(floor):
    assert learnt(0.15, agent(floor=floor)).alarm is not None


def test_an_agent_that_keeps_no_floor_is_not_checked():
    problem = agent().problem
    run = sf.learn(Tide(0.15), sf.BPIUCBVI(problem, pooled=True), 300, seed=0)
    assert run.alarm is None and run.counts.steps is None


def test_where_it_is_not_checked_an_explanation_says_so():
    """Counts made by hand, and those of a simulated world, which is stationary by construction.
    Those of no episodes, to which somebody adds, are checked.
    """
    world = sf.world("dosing")
    mine = sf.EpsMix(world.problem, world.baseline, world.suggested_floor, pooled=True)
    run = sf.simulate(world, mine, 50, seed=0)
    by_hand = sf.Counts(
        np.zeros((world.S, world.A, world.S), dtype=np.int64), H=world.H, s1=world.s1
    )
    for counts in (run.counts, by_hand):
        assert counts.steps is None
        assert (
            "the dynamics do not depend on the step (counts are pooled; not checked)"
            in mine.plan(counts).explain()
        )
    # What was kept apart before is dropped by a simulation that goes on from it.
    first = sf.Counts.zeros(world.problem, pooled=True)
    assert "(counts are pooled; compared as they come" in mine.plan(first).explain()
    assert (
        first.steps is not None
        and sf.simulate(world, mine, 5, seed=1, counts=first).counts.steps is None
    )


def test_counts_that_are_saved_copied_and_added_keep_steps_apart(tmp_path, assert_refused):
    mine = agent()
    one, other = (
        play(sf.Learner(mine, 1), Tide(0.15), 8).counts,
        play(sf.Learner(mine, 2), Tide(0.15), 60).counts,
    )
    one.save(tmp_path / "counts.npz")
    for counts in (sf.Counts.load(tmp_path / "counts.npz"), one.copy(), one.copy_for(mine.problem)):
        assert counts.steps.n_next == one.steps.n_next and counts.steps is not one.steps
    both = one.forget_returns().merge(other.forget_returns())
    assert (both.steps.n_visits == one.steps.n_visits + other.steps.n_visits).all()
    assert (both.steps.table.sum(axis=(1, 2)) == 68).all() and both.steps.n_visits.sum() == 68 * H
    # Together they contradict: nobody begins with them.
    more = play(sf.Learner(mine, 3), Tide(0.15), 60).counts.forget_returns()
    for begin in (
        lambda counts: sf.Learner(mine, 4, counts),
        lambda counts: learnt(0.0, counts=counts),
    ):
        begin(one.copy())
        assert_refused(
            sf.PremiseContradicted,
            r"not alike: counts that are pooled over steps prove nothing",
            begin,
            both.merge(more),
        )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("steps_next", lambda n: -n),
        ("steps_next", lambda n: n + 1),
        ("steps_visits", lambda n: n[:1]),
    ],
)
def test_a_damaged_file_is_refused(name, change, tmp_path):
    path = tmp_path / "counts.npz"
    play(sf.Learner(agent(), 0), Tide(0.0), 5).counts.save(path)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    np.savez_compressed(path, **{**arrays, name: change(arrays[name])})
    with pytest.raises(sf.InvalidFile):
        sf.Counts.load(path)


def test_unknown_rewards_that_change_with_the_step():
    """The dynamics are alike; what a state pays falls from step to step."""

    class Falling(Tide):
        def step(self, action):
            state, _, *rest = super().step(action)
            return state, 1.0 - 0.2 * self.h * (1 - state), *rest

    mine = agent(rewards=None)
    run = sf.learn(Falling(), mine, 400, seed=0)
    assert "paid" in str(run.alarm) and "on average of" in str(run.alarm)


# ---- logs


def log_of(tide, path, episodes=300):
    """A log with the columns that are read by default."""
    env, rng, rows = Tide(tide), np.random.default_rng(0), []
    for k in range(episodes):
        state, _ = env.reset(seed=k)
        for h in range(H):
            action = int(rng.integers(2))
            after, reward, *_ = env.step(action)
            rows.append(f"{k},{h},{state},{action},{reward},{after}")
            state = after
    path.write_text("\n".join(["episode,step,state,action,reward,next_state", *rows]))
    return path


@pytest.mark.parametrize(
    "states", [["--states", "2"], [], ["--states", "2", "--start", "0", "--method", "vi-lcb"]]
)
def test_the_command_refuses_a_log_whose_steps_are_not_alike(states, tmp_path, monkeypatch, capsys):
    """With exit code 3; also where states were not declared, and first visits count as the unseen
    state; and by a method that counts step by step.
    """
    for tide, code in ((0.15, 3), (0.0, 0)):
        path, out = log_of(tide, tmp_path / "log.csv"), tmp_path / f"baseline{tide}.npz"
        words = [
            "baseline",
            str(path),
            "--stationary",
            "--reward-range",
            "0",
            "1",
            *states,
            "--out",
            str(out),
        ]
        monkeypatch.setattr("sys.argv", ["surefoot", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr().err
        assert (ended.value.code or 0) == code and (
            "steps that share counts are not alike" in said.lower()
        ) == (code == 3)
        assert out.exists() == (code == 0)
    done = surefoot(*words[:2], *words[3:], "--force")
    assert done.exit_code == 0  # control: not pooled, nothing to contradict


def test_methods_and_warm_starts_refuse_it_too(tmp_path, assert_refused):
    log = sf.count_log(log_of(0.15, tmp_path / "log.csv"), states=2, reward_range=(0, 1))
    problem = log.problem(start=0, stationary=True)
    assert_refused(
        sf.PremiseContradicted, "Do not pool", sf.robust_vi, log.counts.pool(), problem, 0.05
    )
    learnt_there = sf.robust_vi(log.counts, problem, 0.05)  # control
    assert "--stationary" not in learnt_there.told(learnt_there.missing(None, log), log.codebook)
    episodes = [sf.Episode.of(problem, [0] * (H + 1), [0] * H, [0.0] * H) for _ in range(5)]
    assert sf.Counts.from_log(problem, episodes, pooled=True).steps.total == 5 * H


def test_first_visits_that_are_taken_off_are_not_compared(tmp_path):
    """Where states were not declared, each first visit counts as one of the unseen state: steps
    that are visited more rarely look as if they led there more often. What is compared is what was
    seen.
    """
    counts = sf.count_log(log_of(0.0, tmp_path / "log.csv"), reward_range=(0, 1)).counts
    for pooled in (counts.pool(), counts.copy().pool()):
        assert pooled.steps.total == 300 * H
        assert not pooled.steps.table[:, :, -1].any()
    counts.save(tmp_path / "counts.npz")
    assert sf.Counts.load(tmp_path / "counts.npz").pool().steps.total == 300 * H


def tide_log(path, change):
    """4,000 episodes: action 1, which the first step mostly takes, leads to state 1, which pays 1,
    with 0.9 there and with 0.1 at later steps (where nothing changes: with 0.5 at all); action 0
    with 0.05.
    """
    rng = np.random.default_rng(0)
    rows = ["episode,step,state,action,next_state,reward"]
    for episode in range(4_000):
        state = 0
        for h in range(H):
            early = h == 0
            action = int(rng.random() < (0.9 if early else 0.1))
            moves = (0.9 if early else 0.1) if change else 0.5
            after = int(rng.random() < (moves if action else 0.05))
            rows.append(f"{episode},{h},{state},{action},{after},{state}")
            state = after
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("states", [2, None], ids=["declared", "not declared"])
def test_counts_that_were_refused_are_refused_again(tmp_path, states, assert_refused):
    """The second time, and for any other method; saved and loaded. 1.85 was certified where 1.2 is
    true. The control: a log whose steps are alike is compared, and proves something.
    """
    log = sf.count_log(tide_log(tmp_path / "log.csv", True), states=states, reward_range=(0, 1))
    problem, pooled = log.problem(start=0, rewards="as logged", stationary=True), log.counts.pool()
    for _ in range(3):
        assert_refused(
            sf.PremiseContradicted, "led to state", sf.robust_vi, pooled, problem, delta=0.05
        )
    pooled.save(tmp_path / "counts.npz")
    for counts in (
        pooled,
        pooled.copy(),
        sf.Counts.load(tmp_path / "counts.npz"),
        log.counts.pool(),
    ):
        with pytest.raises(sf.PremiseContradicted):
            sf.clone(counts, problem, delta=0.05)
    same = sf.count_log(tide_log(tmp_path / "same.csv", False), states=states, reward_range=(0, 1))
    found = sf.robust_vi(
        same.counts.pool(), same.problem(start=0, rewards="as logged", stationary=True), delta=0.05
    )
    assert found.lower > 0.0
    assert (
        "All steps share counts: declared by you; compared as they come, at alpha = 0.01."
        in found.explain()
    )


def test_a_file_that_says_more_was_compared_than_there_is_is_refused(tmp_path, assert_refused):
    log = sf.count_log(tide_log(tmp_path / "log.csv", True), states=2, reward_range=(0, 1))
    pooled = log.counts.pool()
    pooled.steps.looked_at = 2**62
    pooled.save(tmp_path / "counts.npz")
    assert_refused(
        sf.InvalidFile,
        "counts by step are not as they were written",
        sf.Counts.load,
        tmp_path / "counts.npz",
    )


def test_where_steps_are_not_compared_it_says_so(tmp_path, monkeypatch):
    log = sf.count_log(tide_log(tmp_path / "log.csv", True), states=2, reward_range=(0, 1))
    monkeypatch.setattr(by_step, "MOST_NUMBERS", 1)
    found = sf.robust_vi(
        log.counts.pool(), log.problem(start=0, rewards="as logged", stationary=True), delta=0.05
    )
    assert "All steps share counts: declared by you; not checked." in found.explain()


def stays_then_moves(*steps_in_state_0):
    """A log of 3,000 episodes of 10 steps: state 0 for so many steps, then state 1, which stays
    and pays 1.
    """
    problem = sf.Problem(np.array([[0.0], [1.0]]), H=10, stationary=True)
    episodes = [sf.Episode([0] * n + [1] * (11 - n), [0] * 10) for n in steps_in_state_0]
    counts = sf.Counts.from_log(problem, episodes * (3000 // len(episodes)), pooled=True)
    return counts, sf.EpsMix(problem, np.ones((10, 2, 1)), 2.5, pooled=True)


def test_no_plan_is_made_from_steps_that_are_not_alike(assert_refused):
    """Two steps of ten pay in every episode; pooled, 3.86 was certified. Counts of nothing
    change nothing.
    """
    counts, agent = stays_then_moves(8)
    empty = sf.Counts.zeros(agent.problem, pooled=True)
    for given in (counts, counts.merge(empty), empty.merge(counts)):
        assert_refused(
            sf.PremiseContradicted, "21,000 of 21,000 visits at steps 1 to 7", agent.plan, given
        )
    one = sf.Episode([0] * 8 + [1] * 3, [0] * 10)
    unkept = sf.Counts.from_log(agent.problem, [one], pooled=True)
    unkept.steps = None
    for given in (counts.merge(unkept), unkept.merge(counts)):  # what contradicts is not forgotten
        with pytest.raises(sf.PremiseContradicted):
            agent.plan(given)
    control = counts.copy()
    control.steps = None  # nobody kept what was seen at each step
    plan = agent.plan(control)
    assert plan.certified and plan.lower > 3.8
    assert "not checked" in plan.explain()
