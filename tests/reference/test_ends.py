"""Where an episode ends: rows that steps share hold no next state of the last step.

The world is small enough to list every episode with its probability, so that counts of a thousand
episodes are exactly in proportion: every step ends the episode by itself with probability 0.3, H =
3. A shared row must say 0.3, whether or not the process also says `terminated` when its last step
is done. Controls: three other rules, and what they say.
"""

import itertools
import math
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import surefoot as sf
from surefoot.logs import counting

H, ALIVE, ENDED = 3, 0, 1
# In how many of 1,000 episodes the process ends by itself at step 1, 2, 3, and how many go on to
# the horizon.
LENGTHS = {1: 300, 2: 210, 3: 147, None: 343}
TRUE = Fraction(3, 10)


def outcomes(end, says_so):
    """The steps of one episode as (step, did it end by itself, does the process say
    `terminated`).
    """
    last = H if end is None else end
    for h in range(1, last + 1):
        by_itself = h == end
        yield h, by_itself, by_itself or (says_so and h == H)


def problem(rewards=False):
    """One state, and one for episodes that ended; one action. All rewards 1 while it goes on, or
    unknown.
    """
    support = np.array([[[True, True]], [[False, True]]])
    r = np.array([[1.0], [0.0]])
    unknown = np.array([[True], [False]]) if rewards else None
    return sf.Problem(r, H=H, stationary=True, support=support, ended_state=ENDED, unknown=unknown)


def learner_counts(says_so, pooled=True, rewards=False):
    """Counts of the thousand episodes, each begun, acted, observed and ended."""
    baseline = np.ones((H, 2, 1))
    agent = sf.StepMix(problem(rewards), baseline, 0.1, pooled=pooled, replan=1.0)
    learner = sf.Learner(agent, seed=0)
    ends = [end for end, n in LENGTHS.items() for _ in range(n)]
    # in no order: steps are seen to be alike
    for i in np.random.default_rng(0).permutation(len(ends)):
        learner.begin()
        for _, by_itself, terminated in outcomes(ends[i], says_so):
            learner.act()
            learner.observe(ENDED if by_itself else ALIVE, 1.0, terminated=terminated)
        learner.end()
    assert not learner.counts.alarm
    return learner.counts


def log_counts(path, says_so, header="episode,step,state,action,reward,next_state,terminated"):
    """Counts of the same episodes, from a log."""
    lines, number = [header], 0
    for end, n in LENGTHS.items():
        for _ in range(n):
            for h, by_itself, terminated in outcomes(end, says_so):
                lines.append(
                    f"{number},{h},alive,go,1,{'gone' if by_itself else 'alive'},{int(terminated)}"
                )
            number += 1
    path.write_text("\n".join(lines) + "\n")
    return sf.count_log(path, states=["alive", "gone"], actions=["go"], reward_range=(0, 1))


def share_of_ends(counts):
    """How often the episode was over after a step at which it was not over before."""
    row = counts.n_sas[0, ALIVE, 0]
    return 1 - Fraction(int(row[ALIVE]), int(row.sum()))


def wrong(rule, says_so):
    """What three other rules make of the same episodes."""
    ends = visits = 0
    for end, n in LENGTHS.items():
        for h, _, terminated in outcomes(end, says_so):
            if rule == "all, as the process says":
                ended, counted = terminated, True
            elif rule == "no end at the last step":
                ended, counted = terminated and h < H, True
            else:  # "without step H where it ended there": selected by what came out
                ended, counted = terminated, not (h == H and terminated)
            ends, visits = ends + n * (ended and counted), visits + n * counted
    return Fraction(ends, visits)


@pytest.mark.parametrize("says_so", [True, False])
def test_a_shared_row_says_the_truth(says_so):
    counts = learner_counts(says_so)
    assert share_of_ends(counts) == TRUE
    assert (counts.episodes, counts.played.sum(), counts.total) == (1000, 1000 * H, 1000 * (H - 1))
    assert counts.n_sas[0, ALIVE, 0].sum() == 1700  # of steps 1 and 2 alone


@pytest.mark.parametrize(
    ("rule", "says_so", "found"),
    [
        ("all, as the process says", True, 0.457),
        ("no end at the last step", False, 0.233),
        ("no end at the last step", True, 0.233),
        ("without step H where it ended there", False, 0.250),
    ],
)
def test_controls_say_something_else(rule, says_so, found):
    """Each of these rules has the wrong limit, however many episodes there are."""
    assert float(wrong(rule, says_so)) == pytest.approx(found, abs=5e-4)
    assert wrong(rule, says_so) != TRUE


@pytest.mark.parametrize("says_so", [True, False])
def test_a_log_says_the_same(tmp_path, says_so):
    log = log_counts(tmp_path / "log.csv", says_so)
    counts = log.counts.pool()
    row = counts.n_sas[0, 0, 0]
    assert 1 - Fraction(int(row[0]), int(row.sum())) == TRUE
    assert log.problem(stationary=True).stationary
    assert counts.episodes == 1000
    by_step = log.counts.n_sas[:, 0, 0]
    assert by_step[H - 1].sum() == 490  # unshared rows hold the last step, too
    from_episodes = learner_counts(says_so, pooled=False).pool()
    assert from_episodes.played.sum() == counts.played.sum()


def test_one_step_shares_nothing():
    """H = 1: nothing is shared, and what follows the only step is counted."""
    p = sf.Problem([[0.5]], H=1, stationary=True)
    counts = sf.Counts.zeros(p, pooled=True)
    counts.add(sf.Episode([0, 0], [0]))
    assert (counts.total, counts.episodes, counts.shared) == (1, 1, False)


def test_pooling_counts_by_step_leaves_the_last_step_out():
    by_step = learner_counts(True, pooled=False)
    pooled = by_step.pool()
    assert pooled == learner_counts(True)
    assert share_of_ends(pooled) == TRUE
    # control: all steps added up
    assert share_of_ends(sf.Counts(by_step.n_sas.sum(axis=0), H)) != TRUE
    assert pooled.pool() == pooled


class TestRewardsOfTheLastStep:
    """They count. A pair that is played at the last step alone has rewards, and no next state."""

    def counts(self):
        """State 0 leads to state 1, which pays 0.6 and is seen at the last step alone."""
        p = sf.Problem(
            [[0.0], [0.5]],
            H=2,
            stationary=True,
            support=np.array([[[False, True]], [[True, True]]]),
            unknown=np.array([[False], [True]]),
        )
        counts = sf.Counts.zeros(p, pooled=True)
        for _ in range(1000):
            counts.add(sf.Episode.of(p, [0, 1, 0], [0, 0], [0.0, 0.6]))
        return p, counts

    def test_their_mean_rests_on_what_was_played(self):
        p, counts = self.counts()
        assert (counts.n_sa[0, 1, 0], counts.played[0, 1, 0]) == (0, 1000)
        plan = sf.EpsMix(p, np.ones((2, 2, 1)), 0.1, pooled=True, delta=0.05).plan(counts)
        assert 0.55 < plan.lower <= 0.6

    def test_control_divided_by_the_visits_of_next_states(self):
        """The sum of all rewards over the transitions alone says H/(H-1) times what is true: 0.6
        becomes 1.2.
        """
        p = sf.Problem([[0.5]], H=2, stationary=True, unknown=np.array([[True]]))
        counts = sf.Counts.zeros(p, pooled=True)
        for _ in range(1000):
            counts.add(sf.Episode.of(p, [0, 0, 0], [0, 0], [0.6, 0.6]))
        wrongly = counts.x_sa[0, 0, 0] / 2**20 / counts.n_sa[0, 0, 0]
        assert wrongly == pytest.approx(1.2, abs=1e-5)
        plan = sf.EpsMix(p, np.ones((2, 1, 1)), 0.1, pooled=True).plan(counts)
        assert 1.1 < plan.lower <= 1.2  # two steps of 0.6
        with pytest.raises(sf.InvalidCounts, match="more than one unit of reward per visit"):
            sf.Counts(counts.n_sas, 2, x_sa=counts.x_sa, played=counts.n_sa)


class EndsItself(gym.Env):
    """Three states, and an end when the fifth step is done, as nearly every hand-written
    environment has one.

    Action 1 earns 1; action 0 earns 1 with probability 3/4.
    """

    observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.state = 0, 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        paid = float(action == 1 or self.np_random.random() < 0.75)
        self.state = int(self.np_random.integers(3))
        return self.state, paid, self.steps == 5, False, {}


@pytest.fixture(scope="module")
def ends_itself():
    """1,500 episodes of an agent that learns there, with all steps in one row."""
    env = TimeLimit(EndsItself(), 5)
    problem = sf.from_gymnasium(env, horizon=5, reward_range=(0, 1), start=0, stationary=True)
    baseline = np.zeros((5, problem.S, 2))
    baseline[:, :, 0] = 1.0
    agent = sf.EpsMix(problem, baseline, sf.Relative(0.2), pooled=True, replan=0.1)
    return agent, sf.learn(env, agent, episodes=1500, seed=0)


class TestAnEnvironmentThatEndsItself:
    def test_the_optimum_is_inside_the_bounds(self, ends_itself):
        """The optimum is 5. To count the ends says that no policy is worth more than 3.55."""
        agent, run = ends_itself
        plan = agent.plan(run.counts)
        assert run.first_mixture is not None
        assert 3.75 < plan.lower <= 5.0 <= plan.upper + 1e-9
        # no move of these three states ends an episode
        assert run.counts.n_sas[0, :3, :, 3].sum() == 0

    def test_the_forecast_knows_what_the_baseline_earns(self, ends_itself):
        """3.75; to count the ends says 2.69."""
        agent, run = ends_itself
        assert sf.forecast(agent, counts=run.counts).baseline == pytest.approx(3.75, abs=0.15)


class ShowsItsModel(gym.Env):
    """Two states that follow each other with 0.5; no outcome of its model ends an episode. It may
    say `terminated` when its last step is done all the same.
    """

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(1)
    initial_state_distrib = np.array([1.0, 0.0])
    P = {s: {0: [(0.5, after, float(s), False) for after in (0, 1)]} for s in (0, 1)}  # noqa: RUF012

    def __init__(self, says_so):
        self.says_so = says_so

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.step_number = 0, 0
        return self.state, {}

    def step(self, action):
        reward = float(self.state)
        self.state, self.step_number = int(self.np_random.random() < 0.5), self.step_number + 1
        return self.state, reward, self.says_so and self.step_number == H, False, {}


@pytest.mark.parametrize("pooled", [True, False])
def test_a_model_that_is_shown_says_what_an_end_at_the_horizon_is(pooled):
    """The counts are the same, whether or not the environment says so: its model knows no end."""
    runs = []
    for says_so in (True, False):
        env = ShowsItsModel(says_so)
        problem = sf.from_gymnasium(env, horizon=H).problem
        agent = sf.EpsMix(problem, np.ones((H, problem.S, 1)), 0.2, pooled=pooled)
        runs.append(sf.learn(env, agent, 200, seed=0))
    assert runs[0].counts == runs[1].counts
    assert runs[0].alarm is None and runs[0].mean_return == pytest.approx(1.0, abs=0.2)


# ---- Episodes that were cut, though the totals of the log add up

HEADER = "episode,step,state,action,reward,next_state,terminated,truncated"


def halves(cut):
    """Two steps that pay 0 or 1 with probability 1/2: by enumeration the policy is worth 1. An
    episode whose second step pays 0 is cut after its first one, and of another episode only its
    second step is kept, which pays 1: as many rows at each step, and in each state.
    """
    rows, episode = [HEADER], 0
    for first, second in itertools.product((0, 1), repeat=2):
        for _ in range(500):
            episode += 1
            rows.append(f"{episode},0,s,go,{first},s,0,{cut * (1 - second)}")
            episode += 1 - second
            rows.append(f"{episode},1,s,go,1,s,0,0")
    return "\n".join(rows)


def test_a_log_that_was_cut_is_refused_though_its_totals_add_up(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_text(halves(cut=1))
    declared = {"states": ["s"], "actions": ["go"], "reward_range": (0, 1)}
    with pytest.raises(sf.InvalidLog, match=r"1,000 episodes cut off \(truncated\) before step 1"):
        sf.count_log(path, **declared)
    # The control: by its totals alone it is taken, and 1.4 is certified where 1 is true.
    monkeypatch.setattr(counting.Files, "faults_of_cuts", lambda self, glance: "")
    log = sf.count_log(path, **declared)
    assert sf.robust_vi(log.counts, log.problem(start="s"), delta=0.05).lower > 1.4


def last_step_alone():
    """State 0 leads to state 1, where the second action pays more: a pair of state 1 is played at
    the last step alone, so no next state of it is ever counted where steps share a row.
    """
    P = np.zeros((2, 2, 2))
    P[:, :, 1] = 1.0
    return sf.TabularMDP(P, np.array([[0.0, 0.0], [0.1, 0.9]]), H=2)


OPTIMISTS = {
    "paper": lambda problem: sf.BPIUCBVI(problem, pooled=True, bounds=sf.Bernstein(1e-9)),
    "Menard": lambda problem: sf.BPIUCBVIMenard(problem, pooled=True, scale=1e-9),
    "UCBVI": lambda problem: sf.UCBVI(problem, episodes=10, pooled=True, scale=1e-9),
}


@pytest.mark.parametrize("agent", OPTIMISTS.values(), ids=OPTIMISTS)
def test_what_is_played_at_the_last_step_alone_is_no_riddle_for_ever(agent):
    """After both actions were played there, the better one is taken. Control: by next states that
    were counted neither was ever seen, and the first would be as good as any.
    """
    problem = last_step_alone().problem
    counts = sf.Counts.zeros(problem, pooled=True)
    for action in (0, 1):
        counts.add(sf.Episode([0, 1, 1], [0, action]))
    assert not counts.n_sa[0, 1].any()
    assert agent(problem).plan(counts).policy[1, 1].argmax() == 1


def test_the_box_of_the_last_step_rests_on_how_often_a_pair_was_played():
    """As printed, with the visits of a pair: 2 sqrt(P (1 - P) L/n) + 14 L/(3n), and P is 1/2 where
    no next state was counted.
    """
    problem = last_step_alone().problem
    counts = sf.Counts.zeros(problem, pooled=True)
    for _ in range(5000):
        counts.add(sf.Episode([0, 1, 1], [0, 0]))
    b = sf.BernsteinBox().b(sf.Model(problem, counts, 0.1), 10)
    L = math.log(2 * 2**2 * 2 * 2 * 10 / 0.1)
    at_the_end = 2 * math.sqrt(0.25 * L / 5000) + 14 * L / 15_000
    assert b[1, 1, 0].tolist() == pytest.approx([at_the_end] * 2)
    assert (b[0, 1, 0] == 1.0).all()  # control: elsewhere nothing is known of what follows it
