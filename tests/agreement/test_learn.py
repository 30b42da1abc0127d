"""`learn` through reset and step: the law of `simulate`, exact resumption, and nothing counted that
went wrong.

The test of the law: 150 runs of each driver with different seeds. Each run is described by all its
transition counts, its episodes per source, and when it first left the baseline; the statistic is
the largest difference of means among these numbers, each in units of its pooled standard deviation;
the loops' labels are permuted 1,999 times.
- False alarm: p <= 0.001 happens with probability 0.001 per comparison, exactly (a permutation
  test). Seeds are fixed.
- Misses: among 13 to 29 numbers the threshold is a difference of about 0.5 standard deviations of
  one of them between
  runs; one of 0.75 is missed with probability about 0.01. The controls show what that means:
  another floor, another baseline, slightly other dynamics are rejected.
"""

import os
import signal
from dataclasses import replace
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf
from surefoot.run import learn, saved_state
from surefoot.run.learn import episode_seed

RUNS, PERMUTATIONS, LEVEL = 150, 1999, 0.001
DECLARED = {"rewards": [[0.0, 2.0], [0.0, 2.0]], "reward_range": (-1, 5)}


class Walk(gymnasium.Env):
    """Two places, numbered 1 and 2, and two starts. Action 3 waits; action 4 wins 5 and ends with
    probability `win`, else pays 1 and moves to the other place. The next place is 2 in both cases,
    the end is on the transition.
    """

    observation_space = Discrete(2, start=1)
    action_space = Discrete(2, start=3)

    def __init__(self, win=0.5, starts=(0.25, 0.75), shown=True):
        self.starts = starts
        self.table = {
            s: {
                3: [(1.0, s, 0.0, False)],
                4: [(win, 3 - s, 5.0, True), (1 - win, 3 - s, -1.0, False)],
            }
            for s in (1, 2)
        }
        if shown:
            self.P, self.initial_state_distrib = self.table, np.array(starts)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = 1 + int(self.np_random.random() >= self.starts[0])
        return self.s, {}

    def step(self, action):
        outcomes = self.table[self.s][action]
        i = int(len(outcomes) > 1 and self.np_random.random() >= outcomes[0][0])
        _, self.s, reward, terminated = outcomes[i]
        return self.s, reward, terminated, False, {}


def agent_of(kind, problem, changes, pooled=True):
    """An agent for a problem, with bonuses so small that it leaves its baseline soon."""
    return kind(problem, **{"bounds": sf.Bernstein(1e-5), "pooled": pooled, **changes})


def trap(**changes):
    """One of our worlds behind reset and step, and StepMix."""
    world = sf.world("trap")
    known = {"baseline": world.baseline, "floor": world.suggested_floor}
    settings = {**known, "bounds": sf.Bernstein(1e-4), **changes}
    env = gymnasium.make("surefoot.worlds.gymnasium:Trap-v0")
    return env, world, agent_of(sf.StepMix, world.problem, settings, pooled=False)


def lake(**changes):
    """The real FrozenLake on the smallest map, and EpsMix with its coin."""
    env = gymnasium.make("FrozenLake-v1", desc=["SF", "HG"])
    world = sf.from_gymnasium(env, horizon=5).averaged()  # the paper's bounds need r(s, a)
    baseline = 0.7 * sf.solve(world).policy + 0.3 / world.A
    settings = {"baseline": baseline, "floor": 0.1, **changes}
    return env, world, agent_of(sf.EpsMix, world.problem, settings)


def of_walk(problem, changes):
    baseline = sf.embed_policy(problem, np.full((2, 2), 0.5))
    return agent_of(sf.StepMix, problem, {"baseline": baseline, "floor": 2.0, **changes})


def walk(**changes):
    """Everything at once: several starts, an end on the transition, rescaled rewards, spaces
    that start elsewhere.
    """
    env = Walk()
    world = sf.from_gymnasium(env, horizon=4).averaged()
    return env, world, of_walk(world.problem, changes)


def live(**changes):
    """The same without a model: a problem with declared rewards."""
    env = Walk(shown=False)
    problem = sf.from_gymnasium(env, horizon=4, stationary=True, **DECLARED)
    return env, None, of_walk(problem, changes)


CASES = {
    "trap": (partial(trap, bounds=sf.Bernstein(1e-5)), 30),
    "lake": (lake, 40),
    "walk": (walk, 30),
}
EVERYWHERE = {"trap": trap, "lake": lake, "walk": walk, "live": live}


# ---- the same law


def described(runs, episodes):
    """One row of numbers per run; what never happened is put after the last episode."""
    rows = []
    for run in runs:
        both = run.first_mixture, run.first_optimistic
        firsts = [episodes if first is None else first for first in both]
        rows.append(np.concatenate([run.counts.n_sas.ravel(), list(run.sources.values()), firsts]))
    return np.array(rows, dtype=float)


def p_value(one, other):
    """Permutation test on the largest standardised difference of means."""
    both = np.concatenate([one, other])
    both = both[:, both.std(axis=0) > 0]
    both = (both - both.mean(axis=0)) / both.std(axis=0)
    rng = np.random.default_rng(0)
    signs = np.repeat([1.0, -1.0], [len(one), len(other)])
    labels = np.array([signs, *(rng.permutation(signs) for _ in range(PERMUTATIONS))])
    statistic = np.abs(labels @ both).max(axis=1)
    return float(np.mean(statistic >= statistic[0] - 1e-9))


@pytest.fixture(
    scope="module", params=[pytest.param("lake", marks=pytest.mark.full), "trap", "walk"]
)
def learnt(request):
    """150 runs through reset and step."""
    build, episodes = CASES[request.param]
    env, world, agent = build()
    runs = [sf.learn(env, agent, episodes, seed=seed) for seed in range(RUNS)]
    return request.param, build, world, episodes, runs


def simulated(build, episodes, world=None, first_seed=10_000, **changes):
    _, own, agent = build(**changes)
    seeds = range(first_seed, first_seed + RUNS)
    return described(
        sf.simulate_many(own if world is None else world, agent, episodes, seeds), episodes
    )


def test_learn_has_the_law_of_simulate(learnt):
    _, build, _, episodes, runs = learnt
    assert p_value(described(runs, episodes), simulated(build, episodes)) > LEVEL
    left = [run for run in runs if run.off_baseline is not None]
    assert len(left) > RUNS / 3  # not only the baseline is compared


def test_another_law_is_rejected(learnt):
    """Control: the same test with another floor, a baseline other by a fifth, and slightly other
    dynamics.
    """
    name, build, world, episodes, runs = learnt
    found = described(runs, episodes)
    floor = {"trap": 0.4, "lake": 0.2, "walk": 2.6}[name]
    assert p_value(found, simulated(build, episodes, floor=floor)) <= LEVEL
    _, _, agent = build()
    other = 0.8 * agent.baseline + 0.2 * np.eye(world.A)[-1]
    assert p_value(found, simulated(build, episodes, baseline=other)) <= LEVEL
    P = world.P_rows**1.5  # the same successors; 0.7 and 0.3 become 0.78 and 0.22
    P /= P.sum(axis=-1, keepdims=True)
    r, units = sf.Rescaled(world.r_rescaled), world.problem.units
    bent = sf.TabularMDP(P[0] if world.stationary else P, r, s1=world.s1, H=world.H, units=units)
    assert p_value(found, simulated(build, episodes, world=bent)) <= LEVEL


def test_observed_returns_are_on_average_what_the_account_says(learnt):
    """mean_return is observed, mean_value exact: the mean of their difference is 0 within 4
    standard errors (false alarm 6e-5). A standard error is about 0.005 of rescaled return, so an
    offset of 0.04 is missed with probability 3e-5.
    """
    _, _, _, _, runs = learnt
    gaps = np.array([(run.mean_return - run.mean_value) / run.units.scale for run in runs])
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    assert abs(gaps.mean()) < 4 * error
    assert error < 0.01
    assert abs(gaps.mean() + 0.05) > 4 * error  # control: returns off by 0.05 would be seen


# ---- interrupted and resumed


class Trip(gymnasium.wrappers.OrderEnforcing):
    """Something happens in the middle of the episode after `episodes` others."""

    def __init__(self, env, episodes, happens):
        super().__init__(env)
        self.left, self.happens = episodes + 1, happens

    def reset(self, **settings):
        self.left -= 1
        return self.env.reset(**settings)

    def step(self, action):
        answer = self.env.step(action)
        if self.left == 0:
            self.left = -1
            return self.happens(*answer)
        return answer


class PowerCut(Exception):
    pass


def power_cut(*_):
    raise PowerCut


def ctrl_c_twice(*_):
    """The second one is Python's own: it ends the call in the middle of an episode."""
    raise KeyboardInterrupt


def ctrl_c(*answer):
    """The first one is heard between episodes."""
    os.kill(os.getpid(), signal.SIGINT)
    return answer


def saved_episodes(path, H):
    with np.load(path) as file:
        assert file["counts_played"].sum() == H * file["totals"][0]
        return int(file["totals"][0])


@pytest.mark.parametrize("after", [False, True])
def test_ctrl_c_while_an_episode_is_entered_tears_nothing(
    after, tmp_path, monkeypatch, assert_same_run
):
    """Between the tally and the counts: that state is not saved, the one before is."""
    env, _, agent = walk()
    whole = sf.learn(env, agent, 30, seed=3)
    path, real, calls = tmp_path / "run.npz", learn.add_episode, []

    def add_episode(*arguments):
        calls.append(1)
        if after:
            real(*arguments)
        if len(calls) == 20:
            raise KeyboardInterrupt
        if not after:
            real(*arguments)

    monkeypatch.setattr(learn, "add_episode", add_episode)
    with pytest.raises(KeyboardInterrupt):
        sf.learn(env, agent, 30, seed=3, save=path)
    monkeypatch.undo()
    assert saved_episodes(path, agent.problem.H) <= 19
    assert_same_run(sf.learn(env, agent, 30, seed=3, save=path, resume=True), whole)


def test_it_is_saved_now_and_then(tmp_path, monkeypatch):
    """Not only at the end: a machine may die."""
    env, _, agent = walk()
    path, seen = tmp_path / "run.npz", []

    def look(*answer):
        seen.append(saved_episodes(path, agent.problem.H))
        return answer

    sf.learn(Trip(env, 10, look), agent, 20, seed=3, save=path)
    assert seen == [0]  # 30 seconds had not passed
    path.unlink()
    monkeypatch.setattr(saved_state, "SAVE_SECONDS", 0.0)
    sf.learn(Trip(env, 10, look), agent, 20, seed=3, save=path)
    assert seen == [0, 10]


# ---- files


def test_an_existing_file_is_not_overwritten(tmp_path, assert_refused):
    env, _, agent = walk()
    path = tmp_path / "run.npz"
    sf.learn(env, agent, 3, seed=0, save=path)
    before = path.read_bytes()
    assert_refused(
        sf.InvalidFile,
        r"exists. Continue it with resume=True.*nothing is overwritten",
        sf.learn,
        env,
        agent,
        3,
        seed=0,
        save=path,
    )
    assert path.read_bytes() == before
    assert_refused(
        sf.InvalidSetting,
        "resume=True continues from a file",
        sf.learn,
        env,
        agent,
        3,
        seed=0,
        resume=True,
    )
    # nothing to go on from: begins
    fresh = sf.learn(env, agent, 3, seed=0, save=tmp_path / "new.npz", resume=True)
    assert fresh.episodes == 3


@pytest.mark.parametrize(
    "change",
    [
        {"agent": {"floor": 0.5}},
        {"agent": {"floor": 0.6000000001}},
        {"agent": {"delta": 0.06}},
        {"agent": {"bounds": sf.Bernstein(1e-3)}},
        {"agent": {"baseline": np.full((2, 3, 2), 0.5)}},
        {"seed": 1},
        {"floor": 0.5},
    ],
    ids=str,
)
def test_a_file_of_another_run_is_refused(change, tmp_path, assert_refused):
    env, _, agent = trap(floor=0.6)
    path = tmp_path / "run.npz"
    settings = {"episodes": 30, "seed": 0, "floor": None}
    sf.learn(env, agent, save=path, **settings)
    before = path.read_bytes()
    other = change.pop("agent", {})
    if other:
        _, _, agent = trap(**{"floor": 0.6, **other})
    assert_refused(
        sf.InvalidFile,
        "belongs to another run",
        sf.learn,
        env,
        agent,
        save=path,
        resume=True,
        **{**settings, **change},
    )
    assert path.read_bytes() == before


# ---- a run goes on


def test_a_run_that_goes_on_has_the_curve_of_a_longer_one(tmp_path, monkeypatch, assert_same_run):
    """Bins become coarser as episodes are played, however many were asked for."""
    env, _, agent = trap()
    fine = sf.learn(env, agent, 61, seed=3)
    monkeypatch.setattr(learn, "CURVE_POINTS", 9)
    whole = sf.learn(env, agent, 61, seed=3, save=tmp_path / "whole.npz")
    for episodes in (8, 9, 10, 30, 61):
        run = sf.learn(env, agent, episodes, seed=3, save=tmp_path / "parts.npz", resume=True)
    assert_same_run(run, whole)
    assert (tmp_path / "parts.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    curve = whole.curve
    assert len(fine.curve) == 61 and 4 < len(curve) <= 9
    assert curve.episodes[0] == 8 and curve.episodes.sum() == 61
    for first, n, mean, least in zip(
        curve.episode, curve.episodes, curve.mean, curve.min, strict=True
    ):
        each = fine.curve.mean[first : first + n]
        assert mean == pytest.approx(each.mean()) and least == each.min()
    np.testing.assert_array_equal(np.add.reduceat(fine.curve.by_h, curve.episode), curve.by_h)
    np.testing.assert_array_equal(np.add.reduceat(fine.curve.sources, curve.episode), curve.sources)
    assert whole.regret == pytest.approx(fine.regret)


def test_a_run_never_goes_back(tmp_path, assert_refused):
    env, _, agent = trap()
    path = tmp_path / "run.npz"
    sf.learn(env, agent, 30, seed=0, save=path)
    before = path.read_bytes()
    assert_refused(
        sf.InvalidFile,
        r"holds 30 episodes, found episodes=29\..*resume with 30 or more",
        sf.learn,
        env,
        agent,
        29,
        seed=0,
        save=path,
        resume=True,
    )
    assert path.read_bytes() == before
    assert sf.learn(env, agent, 31, seed=0, save=path, resume=True).episodes == 31  # control


def test_the_ledger_of_another_run_is_refused(tmp_path, assert_refused):
    """The file remembers how far its ledger was, and which: nobody continues another one, or
    begins anew.
    """
    env, _, agent = trap(bounds=sf.KL())
    mine, other = (
        {"save": tmp_path / f"{x}.npz", "ledger": tmp_path / f"{x}.ledger"} for x in "ab"
    )
    sf.learn(env, agent, 30, seed=0, **mine)
    sf.learn(env, agent, 30, seed=1, **other)
    before = other["ledger"].read_bytes()
    wrong = {"save": mine["save"], "ledger": other["ledger"]}
    resumed = partial(sf.learn, env, agent, 40, seed=0, resume=True)
    assert_refused(sf.InvalidFile, "is not the ledger that this run wrote", resumed, **wrong)
    assert other["ledger"].read_bytes() == before
    moved = mine["ledger"].rename(tmp_path / "moved.ledger")
    assert_refused(sf.InvalidFile, "plans were written to it", resumed, save=mine["save"])
    # control: where it is now
    run = resumed(save=mine["save"], ledger=moved)
    assert run.episodes == 40 and not sf.check_ledger(moved).refusals


def test_a_file_of_another_world_is_refused(tmp_path, assert_refused):
    """Same rewards, other dynamics: the counts would be a mixture of two worlds."""
    _, _, agent = walk()
    settings = {"agent": agent, "episodes": 3, "seed": 0, "save": tmp_path / "run.npz"}
    sf.learn(Walk(), **settings)
    other = Walk(starts=(0.5, 0.5))
    words = "belongs to another run"
    assert_refused(sf.InvalidFile, words, sf.learn, other, **settings, resume=True)


def rewritten(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for name, change in changes.items():
        arrays[name] = change(arrays[name])
    np.savez_compressed(path, **arrays)


def more_episodes(totals):
    totals[0] += 1
    return totals


@pytest.mark.parametrize(
    "change",
    [
        {"counts_n_sas": lambda n: n[..., :1]},
        {"counts_n_sas": lambda n: n + 1},
        {"counts_n_sas": lambda n: -n},
        {"counts_n_sas": lambda n: n + 0.5},
        {"counts_n_start": lambda n: n[:1]},
        {"counts_n_start": lambda n: -n},
        {"counts_baseline_returns": lambda n: n[:1]},
        {"counts_baseline_returns": lambda n: n - 100},
        {"counts_logged": lambda n: np.int64(1)},
        {"counts_H": lambda n: n + 1},
        {"counts_planned_n_sas": lambda n: n + 1000},
        {"totals": more_episodes},
        {"by_h": lambda n: n[:1]},
        {"bin_sum": lambda n: n.astype(np.float32)},
        {"earned": lambda n: np.array([1.0, 2.0])},
        {"earned": lambda n: np.array(np.nan)},
        {"earned": lambda n: np.array("much")},
        {"width": lambda n: n * 2},
        {"width": lambda n: n * 0},
        {"width": lambda n: n + 0.5},
        {"bin_h": lambda n: n[:1]},
    ],
)
def test_a_damaged_file_is_refused(change, tmp_path, assert_refused):
    env, _, agent = walk()
    path = tmp_path / "run.npz"
    with pytest.raises(PowerCut):
        sf.learn(Trip(env, 5, power_cut), agent, 10, seed=0, save=path)
    whole = path.read_bytes()
    rewritten(path)
    # control: rewritten as it was
    assert sf.learn(env, agent, 10, seed=0, save=path, resume=True).episodes == 10
    path.write_bytes(whole)
    rewritten(path, **change)
    assert_refused(
        sf.InvalidFile, "damaged", sf.learn, env, agent, 10, seed=0, save=path, resume=True
    )


def test_a_file_of_another_kind_is_refused(tmp_path, assert_refused):
    env, _, agent = walk()
    path = tmp_path / "run.npz"
    run = sf.learn(env, agent, 5, seed=0, save=path)
    whole = path.read_bytes()
    for bad in (b"", b"nonsense", whole[: len(whole) // 2], whole[:200] + b"\0\0\0" + whole[203:]):
        path.write_bytes(bad)
        with pytest.raises(sf.InvalidFile):
            sf.learn(env, agent, 5, seed=0, save=path, resume=True)
        assert path.read_bytes() == bad  # left for whoever may want to mend it
    run.counts.save(path)
    assert_refused(
        sf.InvalidFile,
        "holds counts, expected learning",
        sf.learn,
        env,
        agent,
        5,
        seed=0,
        save=path,
        resume=True,
    )


def test_a_folder_that_does_not_exist_is_heard_of_at_once(tmp_path, assert_refused):
    env, _, agent = walk()
    played = []

    def look(*answer):
        played.append(answer)
        return answer

    assert_refused(
        sf.InvalidFile,
        r"does not exist\. Create it first",
        sf.learn,
        Trip(env, 0, look),
        agent,
        5,
        seed=0,
        save=tmp_path / "nowhere" / "run.npz",
    )
    assert played == []
    sf.learn(Trip(env, 0, look), agent, 5, seed=0, save=tmp_path / "run.npz")
    assert len(played) == 1  # control


# ---- what goes wrong during a rollout


def replaced(i, value):
    return lambda *answer: tuple(value if j == i else part for j, part in enumerate(answer))


@pytest.mark.parametrize("name", ["walk", "live"])
@pytest.mark.parametrize(
    ("happens", "error", "message"),
    [
        (
            replaced(1, 5.1),
            sf.InvalidEpisode,
            r"reward is 5.1, outside the declared range \(-1, 5\). Nothing was counted",
        ),
        (replaced(1, -1.1), sf.InvalidEpisode, "reward is -1.1, outside the declared range"),
        (replaced(1, np.nan), sf.InvalidEpisode, "reward is nan, outside the declared range"),
        (replaced(1, np.inf), sf.InvalidEpisode, "reward is inf, outside the declared range"),
        (replaced(0, 3), sf.InvalidModel, "showed 3, outside its own space of 2 states"),
        (replaced(0, 0), sf.InvalidModel, "showed 0, outside its own space of 2 states"),
        (replaced(0, 1.5), sf.InvalidModel, "showed 1.5, expected an integer"),
        (
            lambda s, *_: (s, 0.0, False, True, {}),
            sf.InvalidEpisode,
            r"cut after 2 of 5 steps.*raise the time limit",
        ),
    ],
)
def test_what_goes_wrong_is_said_not_counted_and_marked(
    name, happens, error, message, tmp_path, assert_refused
):
    """The file holds the episodes before, and that one was refused: nobody goes on from it."""
    env, _, agent = EVERYWHERE[name]()
    path = tmp_path / "run.npz"
    assert_refused(error, message, sf.learn, Trip(env, 6, happens), agent, 20, seed=5, save=path)
    assert saved_episodes(path, agent.problem.H) == 6
    assert_refused(
        sf.InvalidCounts,
        "selected by its outcome",
        sf.learn,
        env,
        agent,
        20,
        seed=5,
        save=path,
        resume=True,
    )
    assert sf.learn(env, agent, 20, seed=5).counts.refused == 0  # control


def test_a_wrong_start_is_said_not_counted_and_marked(tmp_path, assert_refused):
    env = Walk(shown=False, starts=(1.0, 0.0))
    problem = sf.from_gymnasium(env, horizon=4, start=1, **DECLARED)
    agent = sf.BPIUCBVI.paper(problem)
    path = tmp_path / "run.npz"
    assert sf.learn(env, agent, 20, seed=0).episodes == 20  # control
    assert_refused(
        sf.InvalidEpisode,
        r"started in state 1, the problem says s1 = 0.*without `start`",
        sf.learn,
        Walk(shown=False),
        agent,
        20,
        seed=0,
        save=path,
    )
    assert saved_episodes(path, 4) < 20
    assert_refused(
        sf.InvalidCounts,
        "selected by its outcome",
        sf.learn,
        env,
        agent,
        20,
        seed=0,
        save=path,
        resume=True,
    )
    words = "showed 3, outside its own space"
    assert_refused(sf.InvalidModel, words, sf.from_gymnasium, env, horizon=4, start=3, **DECLARED)


def test_a_time_limit_added_later_is_said_and_not_counted(tmp_path, assert_refused):
    """The problem was made without the limit."""
    for name in sorted(EVERYWHERE):
        env, _, agent = EVERYWHERE[name]()
        path = tmp_path / f"{name}.npz"
        steps = agent.problem.H - (name in ("walk", "live"))
        limited = gymnasium.wrappers.TimeLimit(env, steps - 1)
        assert_refused(
            sf.SurefootError,
            rf"cuts episodes after {steps - 1} steps|was cut after",
            sf.learn,
            limited,
            agent,
            20,
            seed=0,
            save=path,
        )
        if path.exists():
            assert saved_episodes(path, agent.problem.H) < 20
        # control
        assert sf.learn(gymnasium.wrappers.TimeLimit(env, steps), agent, 20, seed=0).episodes == 20


@pytest.mark.parametrize(
    ("policy", "h", "error", "message"),
    [
        (np.full((5, 4, 2), 0.4), 0, sf.InvalidPolicy, "sums to 0.8"),
        (sf.uniform(4, 4, 2), 0, sf.InvalidPolicy, r"expected \(H, S, A\)"),
        (sf.uniform(5, 4, 2), 6, sf.InvalidSetting, r"h = 6, expected a step in 0..5"),
        (sf.uniform(5, 4, 2), 5, None, None),  # control
    ],
)
def test_a_plan_that_is_no_plan_is_said_and_not_counted(
    policy, h, error, message, tmp_path, assert_refused
):
    env, world, _ = walk()

    class Broken:
        problem, floor, pooled, promise = world.problem, None, False, "no floor promised"

        def plan(self, counts):
            played, step = (policy, h) if counts.episodes >= 4 else (sf.uniform(5, 4, 2), 0)
            return sf.Plan(played, "optimistic", step, 1.0, 0.0, 5.0, [0.0], "no floor")

    path = tmp_path / "run.npz"
    given = (env, Broken(), 20)
    if error is None:
        assert sf.learn(*given, seed=0).episodes == 20
    else:
        assert_refused(error, message, sf.learn, *given, seed=0, save=path)
        assert saved_episodes(path, 5) <= 4


@pytest.mark.parametrize(
    ("episodes", "seed"), [(0, 0), (-1, 0), (2.5, 0), (5, -1), (5, 1.5), (5, None)]
)
def test_wrong_numbers_are_refused(episodes, seed, assert_refused):
    for build in (walk, live):
        env, _, agent = build()
        assert_refused(
            sf.InvalidSetting, "expected an integer", sf.learn, env, agent, episodes, seed
        )


# ---- the shell for people who own the loop


def drive(learner, env, episodes):
    """The loop of someone who owns it, with the environment seeded as `learn` does."""
    first = env.observation_space.start
    for _ in range(episodes):
        learner.begin()
        s, _ = env.reset(seed=episode_seed(learner.seed, learner.episodes))
        problem = learner.agent.problem
        if problem.one_start and problem.s1 == env.observation_space.n + 1:
            learner.act(problem.s1)
            learner.observe(s - first)
        ended = False
        while not (ended or learner.step == learner.agent.problem.H):
            a = learner.act(s - first)
            s, reward, ended, cut, _ = env.step(a + env.action_space.start)
            learner.observe(s - first, reward, ended, cut)
        learner.end()


@pytest.mark.parametrize("name", sorted(EVERYWHERE))
def test_the_shell_and_learn_play_the_same(name):
    env, _, agent = EVERYWHERE[name]()
    rest = env.observation_space.n if name != "trap" else None
    learner = sf.Learner(agent, seed=3, absorbing_state=rest)
    drive(learner, env, 40)
    assert learner.counts == sf.learn(env, agent, 40, seed=3).counts
    assert learner.episodes == 40
    other = sf.Learner(agent, seed=4, absorbing_state=rest)
    drive(other, env, 40)
    assert other.counts != learner.counts  # control: another seed, another history


@pytest.fixture
def learner():
    """In the walk: state 0 or 1, rest 2, start 3; H = 5."""
    _, _, agent = walk()
    return sf.Learner(agent, seed=0, absorbing_state=2)


def test_the_shell_says_what_comes_next(learner, assert_refused):
    assert_refused(
        sf.InvalidEpisode, r"No episode is under way. Call begin\(\) first", learner.act, 3
    )
    assert_refused(
        sf.InvalidEpisode,
        r"no action to observe the outcome of. Call act\(\) first",
        learner.observe,
        0,
    )
    assert_refused(sf.InvalidEpisode, r"No episode is under way. Call begin\(\) first", learner.end)
    plan = learner.begin()
    assert plan is learner.plan
    assert plan.source == "baseline"
    assert_refused(sf.InvalidEpisode, r"An episode is under way. Call end\(\)", learner.begin)
    assert_refused(
        sf.InvalidEpisode,
        r"no action to observe the outcome of. Call act\(\) first",
        learner.observe,
        0,
    )
    assert_refused(
        sf.InvalidEpisode, "called in state 0, but the last state observed is 3", learner.act, 0
    )
    assert learner.act(3) in (0, 1)
    assert_refused(
        sf.InvalidEpisode, r"outcome is missing. Call observe\(next_state\)", learner.act
    )
    learner.observe(np.int64(1))
    assert_refused(
        sf.InvalidEpisode,
        r"1 of 5 steps. Complete it, or abandon\(\) it. Nothing was counted",
        learner.end,
    )
    for _ in range(4):
        learner.act(1)
        learner.observe(1)
    assert learner.step == 5
    assert_refused(sf.InvalidEpisode, r"had its 5 steps. Call end\(\)", learner.act)
    assert learner.counts.n_sas.sum() == 0  # nothing is counted before the end
    episode = learner.end()
    assert episode.states.tolist() == [3, 1, 1, 1, 1, 1]
    assert (learner.counts.episodes, learner.episodes) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"next_state": 4}, r"next state is 4, expected one of 0..3"),
        ({"next_state": -1}, r"next state is -1, expected one of 0..3"),
        ({"next_state": 0.5}, r"next state is 0.5, expected one of 0..3"),
        ({"next_state": np.nan}, r"next state is nan, expected one of 0..3"),
        ({"next_state": None}, r"next state is None, expected one of 0..3"),
        ({"next_state": 0, "reward": np.inf}, "reward is inf, outside the declared range"),
        ({"next_state": 0, "truncated": True}, r"cut after 1 of 5 steps.*not a finished one"),
    ],
)
def test_a_wrong_answer_leaves_the_shell_as_it_was(learner, answer, message, assert_refused):
    """The right answer can still be given; or the episode is played again, and nothing is
    counted.
    """
    learner.begin()
    learner.act(3)
    assert_refused(sf.InvalidEpisode, message, learner.observe, **answer)
    assert learner.step == 0
    learner.observe(0)
    assert learner.step == 1
    learner.rewind()
    assert (learner.counts.n_sas.sum(), learner.episodes) == (0, 0)
    first = learner.begin()
    assert first.source == "baseline"


def test_an_end_is_spent_at_rest(learner, assert_refused):
    learner.begin()
    learner.act(3)
    learner.observe(0)
    learner.act(0)
    assert not learner.over
    learner.observe(1, 5.0, terminated=True)
    assert learner.over
    assert_refused(sf.InvalidEpisode, r"has ended this episode. Call end\(\)", learner.act)
    episode = learner.end()
    assert episode.states.tolist() == [3, 0, 2, 2, 2, 2]
    assert learner.counts.played.sum() == 5
    assert not sf.Learner(learner.agent, 0).over


def test_an_early_end_needs_an_absorbing_state(assert_refused):
    _, _, agent = walk()
    # the mask says so
    assert sf.Learner(agent, seed=0).absorbing_state == agent.problem.absorbing_state == 2
    learner = sf.Learner(replace(agent, problem=agent.problem.forget(support=True)), seed=0)
    learner.begin()
    learner.act()
    assert_refused(
        sf.InvalidEpisode,
        r"ended after 1 of 5 steps, and this problem has no absorbing state",
        learner.observe,
        0,
        terminated=True,
    )
    for _ in range(4):
        learner.observe(0)
        learner.act()
    # at the last step there is nothing left to rest
    learner.observe(0, terminated=True, truncated=True)
    assert learner.end().states.tolist() == [3, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("seed", "episodes"), [(-1, 0), (0.5, 0), (None, 0), (0, -1), (0, 1.5)])
def test_the_shell_refuses_wrong_numbers(seed, episodes, assert_refused):
    _, _, agent = walk()
    assert_refused(
        sf.InvalidSetting, "expected an integer >= 0", sf.Learner, agent, seed, episodes=episodes
    )


def test_a_run_goes_on_with_the_share_it_began_with(tmp_path, assert_refused):
    """When it replans decides what is played next, also where it is an agent inside that does."""
    env, world, _ = walk()
    given = (world.problem, sf.embed_policy(world.problem, np.full((2, 2), 0.5)), 1.5)

    def built(outer, inner):
        learner = sf.BPIUCBVI(world.problem, pooled=True, replan=inner)
        return sf.BudgetExploration(*given, pooled=True, learner=learner, replan=outer)

    settings = {"episodes": 20, "seed": 3, "save": tmp_path / "run.npz"}
    run = sf.learn(env, built(0.1, 0.1), **settings)
    settings["resume"] = True
    for other in (built(0.1, None), built(None, 0.1)):
        words = "belongs to another run"
        assert_refused(sf.InvalidFile, words, sf.learn, env, other, **settings)
    assert sf.learn(env, built(0.1, 0.1), **settings).counts == run.counts


def test_one_process_at_a_time_goes_on_with_a_run(tmp_path, assert_same_run):
    """A second call during an episode is refused and changes nothing: the run ends as it does
    without one.
    """
    refused = []

    def meddling(env):
        reset = env.reset

        def meddle(**settings):
            with pytest.raises(sf.InvalidFile, match="another process") as found:
                sf.learn(Walk(), agent, 9, seed=4, save=tmp_path / "run.npz", resume=True)
            refused.append(found.value)
            return reset(**settings)

        env.reset = meddle
        return env

    _, _, agent = walk()
    once = sf.learn(meddling(Walk()), agent, 6, seed=4, save=tmp_path / "run.npz")
    assert len(refused) == 6
    assert_same_run(once, sf.learn(Walk(), agent, 6, seed=4, save=tmp_path / "control.npz"))
    more = sf.learn(Walk(), agent, 9, seed=4, save=tmp_path / "run.npz", resume=True)
    assert more.counts.episodes == 9


def test_a_run_never_cuts_the_ledger_of_another_one(tmp_path, assert_refused):
    """A mistyped file, or a run without a ledger, given one that is there: refused, and not a
    byte is lost.
    """
    _, _, agent = walk(bounds=sf.KL())
    plans = {"ledger": tmp_path / "plans.ledger"}
    sf.learn(Walk(), agent, 12, seed=4, save=tmp_path / "run.npz", **plans)
    sf.learn(Walk(), agent, 3, seed=5, save=tmp_path / "other.npz")
    before = plans["ledger"].read_bytes()
    for name, seed in (("rum.npz", 4), ("other.npz", 5)):
        assert_refused(
            sf.InvalidFile,
            "exists",
            sf.learn,
            Walk(),
            agent,
            15,
            seed=seed,
            save=tmp_path / name,
            resume=True,
            **plans,
        )
        assert plans["ledger"].read_bytes() == before
    # the control
    sf.learn(Walk(), agent, 15, seed=4, save=tmp_path / "run.npz", resume=True, **plans)
    assert plans["ledger"].read_bytes() != before and sf.check_ledger(plans["ledger"]).closed


@pytest.mark.parametrize("states", [("cold", "warm"), ("warm", "cold")])
def test_a_log_in_another_order_than_the_environments_is_refused(states, tmp_path, assert_refused):
    """Labels of a log are numbered by the alphabet unless they are declared; the environment's
    numbers are its own.
    """

    class Named(gymnasium.Env):
        observation_space, action_space = Discrete(2), Discrete(2)
        state_names, action_names = ("warm", "cold"), ("wait", "call")

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return 0, {}

        def step(self, action):
            return int(self.np_random.integers(2)), 0.5, False, False, {}

    rows = "".join(f"{e},0,warm,wait,0.5,warm\n{e},1,warm,wait,0.5,cold\n" for e in range(20))
    (tmp_path / "log.csv").write_text(f"episode,step,state,action,reward,next_state\n{rows}")
    log = sf.count_log(
        tmp_path / "log.csv", states=states, actions=Named.action_names, reward_range=(0, 1)
    )
    agent = sf.StepMix(log.problem(start="warm"), sf.uniform(2, 2, 2), 0.0)
    if states == Named.state_names:  # the control
        assert sf.learn(Named(), agent, 2, seed=0).episodes == 2
    else:
        words = "numbers its states cold, warm; the environment"
        assert_refused(sf.InvalidModel, words, sf.learn, Named(), agent, 2, seed=0)
