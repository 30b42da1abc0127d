"""The shell for people who own the loop: stopping and going on changes nothing, whatever the
learner knows.
"""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.agents.schedule import PlanInForce

EXPLORERS = {"optimist": lambda problem: None, "thompson": sf.Thompson}


def build(case, explorer="optimist", **changes):
    settings = {
        "delta": 0.3,
        "replan": 1.0,
        "explorer": EXPLORERS[explorer](case.problem),
        **changes,
    }
    return sf.StepMix(case.problem, case.baseline, settings.pop("floor", case.floor), **settings)


def continue_plan(learner, world, episodes):
    """Play in the world; episode k of the world draws from k alone, so what differs is the
    learner's doing.
    """
    out = []
    for _ in range(episodes):
        rng = np.random.default_rng([7, learner.episodes])
        learner.begin()
        s = int(rng.choice(world.S, p=world.start))
        for h in range(world.H):
            a = learner.act(s)
            t = int(rng.choice(world.S, p=world.P[h, s, a]))
            x = world.r[h, s, a]
            if world.problem.pays_by_next:
                x = float(world.mean_reward(h, s, a, t))
            learner.observe(t, float(rng.random() < x) if world.random_rewards else x)
            s = t
        out.append(learner.end())
    return out


def same(one, other):
    def plainly(episodes):
        return [
            (e.states.tolist(), e.actions.tolist(), np.asarray(e.rewards).tolist(), e.baseline)
            for e in episodes
        ]

    return plainly(one) == plainly(other)


class Own:
    """An agent of somebody's own."""

    pooled, floor, promise = False, None, "none"

    def __init__(self, case, replan):
        self.case, self.problem, self.replan, self.asked = case, case.problem, replan, []

    def plan(self, counts):
        self.asked.append(counts.episodes)
        return sf.Plan.plain(self.policy(counts))

    def policy(self, counts):
        return self.case.baseline


@pytest.mark.parametrize("explorer", EXPLORERS)
def test_a_rewound_episode_is_played_again(explorer, case_of, tmp_path):
    """From the same numbers: also where an explorer drew for its plan first, and also after
    loading.
    """
    case = case_of("plain", False)
    agent = build(case, explorer, floor=2.9)  # the baseline, whose actions are drawn
    whole = continue_plan(sf.Learner(agent, 5), case.world, 40)
    for reload in (False, True):
        learner, played = sf.Learner(agent, 5), []
        for _ in range(40):
            learner.begin()
            learner.act(1)
            learner.rewind()
            if reload:
                learner.counts.save(tmp_path / "counts.npz")
                learner = sf.Learner(agent, 5, sf.Counts.load(tmp_path / "counts.npz"))
            played += continue_plan(learner, case.world, 1)
        assert same(played, whole)


def test_counts_of_another_learner_may_be_anywhere_in_a_plan(case_of):
    """With its own number of episodes a learner does not know the streams of the plan in force:
    it plans anew.
    """
    case = case_of("plain", False)
    agent = build(case)
    learner = sf.Learner(agent, 5)
    continue_plan(learner, case.world, 47)
    assert learner.counts.planned.episodes < 47
    other = sf.Learner(agent, 6, learner.counts, episodes=0)
    np.testing.assert_array_equal(other.begin().candidates, agent.plan(learner.counts).candidates)


def test_rewards_and_starts_are_asked_for(case_of, assert_refused):
    """What a certificate needs is not guessed, and what was refused is not counted."""
    case = case_of("all-together", False)
    learner = sf.Learner(build(case), 0)
    learner.begin()
    assert_refused(sf.InvalidEpisode, r"several states.*act\(state\)", learner.act)
    assert_refused(sf.InvalidEpisode, r"first state is 7, expected one of 0..2", learner.act, 7)
    learner.act(2)
    assert_refused(
        sf.InvalidEpisode,
        r"rewards are unknown: call observe\(next_state, reward\)",
        learner.observe,
        0,
    )
    for wrong in (1.5, -0.1, np.nan):
        assert_refused(sf.InvalidEpisode, "declared range", learner.observe, 0, wrong)
    learner.abandon()
    assert learner.counts == sf.Counts.zeros(case.problem)


class Slots(gymnasium.Env):
    """Three places, two actions, random rewards of -2 or 4, two first states; no model, no table
    of rewards.
    """

    observation_space, action_space = Discrete(3), Discrete(2)

    def __init__(self, too_much_at=None):
        self.steps, self.too_much_at = 0, too_much_at

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = int(self.np_random.integers(2))
        return self.s, {}

    def step(self, action):
        won = self.np_random.random() < (0.2 + 0.3 * action + 0.2 * self.s)
        self.s = int(self.np_random.integers(3)) if action else self.s
        self.steps += 1
        reward = 9.0 if self.steps == self.too_much_at else 4.0 if won else -2.0
        return self.s, reward, False, False, {}


def slots(explorer):
    problem = sf.from_gymnasium(Slots(), horizon=3, reward_range=(-2, 4), stationary=True)
    baseline = sf.embed_policy(problem, np.full((3, 2), 0.5))
    more = {"explorer": sf.Thompson(problem)} if explorer == "thompson" else {}
    return sf.StepMix(problem, baseline, -5.5, delta=0.5, pooled=True, **more)


def test_learn_does_not_go_on_after_a_refusal(tmp_path, assert_refused):
    """An episode that was refused is missing, whatever comes out of it later: its file is marked,
    and so are counts that were given.
    """
    agent = slots("optimist")
    path, warm = tmp_path / "refused.npz", sf.learn(Slots(), agent, 10, seed=3).counts
    refused = r"reward is 9, outside the declared range \(-2, 4\).*Nothing was"
    for given in ({"save": path}, {"counts": warm}):
        assert_refused(
            sf.InvalidEpisode,
            refused,
            sf.learn,
            Slots(too_much_at=3 * 80 + 2),
            agent,
            150,
            seed=1,
            **given,
        )
    for given in ({"save": path, "resume": True}, {"counts": warm}):
        assert_refused(
            sf.InvalidCounts,
            "selected by its outcome",
            sf.learn,
            Slots(),
            agent,
            150,
            seed=1,
            **given,
        )


def test_warm_starts(case_of, assert_same_run, assert_refused):
    """learn and simulate go on from counts and leave them alone; the first plan is that of these
    counts.
    """
    agent = slots("optimist")
    first = sf.learn(Slots(), agent, 60, seed=1).counts
    before = first.copy()
    warm = sf.learn(Slots(), agent, 60, seed=2, counts=first)
    assert first == before
    assert warm.counts.episodes == 120
    assert (warm.counts.n_sas >= first.n_sas).all()
    assert_same_run(warm, sf.learn(Slots(), agent, 60, seed=2, counts=first))
    # control: warmth matters
    assert warm.counts != sf.learn(Slots(), agent, 60, seed=2).counts.merge(first)
    known, hidden = case_of("plain", False), case_of("unknown-random", False)
    # they hold sums of rewards, now known
    counts = sf.simulate(hidden.world, build(hidden), 20, seed=0).counts
    told = sf.StepMix(hidden.world.problem, hidden.baseline, hidden.floor, replan=0.0)
    assert_refused(
        sf.InvalidCounts,
        r"summed by other rewards.*forget_returns",
        sf.simulate,
        hidden.world,
        told,
        20,
        1,
        counts=counts,
    )  # its own are summed by what is known
    not_read = sf.StepMix(
        hidden.world.problem, hidden.baseline, hidden.floor, returns=None, replan=0.0
    )
    for agent, rest in ((told, counts.forget_returns()), (not_read, counts)):
        both = [
            run(hidden.world, agent, 20, 1, counts=rest) for run in (sf.simulate, simulate_plainly)
        ]
        assert_same_run(*both)
    bare = sf.simulate(known.world, build(known), 9, 0).counts
    given = hidden.world, build(hidden), 20, 1
    assert_refused(sf.InvalidCounts, "hold no sums of rewards", sf.simulate, *given, counts=bare)


def test_logs_are_for_kl(case_of, assert_refused):
    """The paper's proof needs a baseline from before the data."""
    case = case_of("plain", False)
    rng = np.random.default_rng(0)
    log = [sf.play(case.world, case.baseline, rng) for _ in range(30)]
    counts = sf.Counts.from_log(case.problem, log)
    assert counts.episodes == 30
    paper, sharp = build(case, bounds=sf.Bernstein()), build(case)
    for use in (
        lambda agent: agent.plan(counts),
        lambda agent: sf.simulate(case.world, agent, 5, seed=0, counts=counts),
        lambda agent: sf.Learner(agent, 0, counts),
        lambda agent: agent.plan(counts.merge(sf.Counts.zeros(case.problem))),
    ):
        assert_refused(
            sf.InvalidCounts,
            r"logged episodes, which the paper's bounds do not cover.*sf.KL",
            use,
            paper,
        )
        use(sharp)


def test_a_policy_is_checked_once_for_the_episodes_that_play_it(case_of, monkeypatch):
    """With many states that takes longer than an episode. A new plan is checked again, and so is
    what is no policy.
    """
    case, checked = case_of("plain", False), []

    def check(policy, problem):
        checked.append(policy)
        return sf.check_policy(policy, problem)

    class Alternating(Own):
        """Two plans of five episodes each, after 100; what the last one plays is no policy."""

        def policy(self, counts):
            first, shape = case.baseline, case.baseline.shape
            second = sf.EpisodicMixture(first, sf.uniform(*shape), 0.5)
            return [first, second, np.full(shape, 0.7)][len(self.asked) - 1]

    monkeypatch.setattr("surefoot.run.learner.check_policy", check)
    counts = sf.simulate(case.world, build(case), 100, seed=0).counts.forget_returns()
    learner = sf.Learner(Alternating(case, 0.05), 3, counts)
    continue_plan(learner, case.world, 5)
    assert len(checked) == 1
    continue_plan(learner, case.world, 6)
    assert len(checked) == 3  # both sides of the coin, each once
    with pytest.raises(sf.InvalidPolicy):
        learner.begin()


@pytest.mark.parametrize("replan", [0.0, 0.02, 0.5])
def test_an_agent_is_not_asked_for_a_plan_that_is_over(case_of, replan):
    """A process that starts anew for each episode remembers no plan. The one in force is computed
    again, unless the counts say that it is over: then the next one is made at once.
    """
    case = case_of("plain", False)
    whole, torn, again = (Own(case, replan) for _ in range(3))
    continue_plan(sf.Learner(whole, 3), case.world, 20)
    counts = None
    for _ in range(20):
        learner = sf.Learner(torn, 3, counts)
        continue_plan(learner, case.world, 1)
        counts = learner.counts
    assert len(torn.asked) == 20 and sorted(set(torn.asked)) == whole.asked
    assert len(whole.asked) == {0.0: 20, 0.02: 20, 0.5: 8}[replan]
    learner = sf.Learner(again, 3)
    for _ in range(20):
        for _ in range(3):
            learner.begin()
            learner.act(1)
            learner.rewind()
        continue_plan(learner, case.world, 1)
    assert again.asked == whole.asked  # an episode that is played again needs no plan of its own


@pytest.mark.parametrize("replan", [0.0, 0.2])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_where_planning_fails_no_other_plan_is_played(case_of, replan, error):
    """Whoever asks again gets the plan that was to be made, not the last one."""
    case = case_of("plain", False)

    class Changing(Own):
        def policy(self, counts):
            H, S, A = case.baseline.shape
            return np.eye(A)[np.full((H, S), counts.episodes % A)]  # another one each time

    class Failing(Changing):
        failures = 0

        def policy(self, counts):
            if self.failures < 2 * (1 + counts.episodes):
                self.failures += 1
                raise error
            return super().policy(counts)

    whole = continue_plan(sf.Learner(Changing(case, replan), 3), case.world, 20)
    learner, played = sf.Learner(Failing(case, replan), 3), []
    while len(played) < 20:
        try:
            played += continue_plan(learner, case.world, 1)
        except error:
            continue
    assert same(played, whole)
    assert learner.agent.failures >= 10


def test_the_end_of_a_plan_is_found_once(case_of, monkeypatch):
    """With many states that takes longer than an episode."""
    case, found = case_of("plain", False), []
    remembered = PlanInForce.remembered
    monkeypatch.setattr(
        PlanInForce, "remembered", lambda *given: found.append(given) or remembered(*given)
    )
    learner = sf.Learner(build(case, replan=1.0), 3)
    continue_plan(learner, case.world, 41)
    assert len(found) == 7  # once for each plan: those made after 0, 1, 2, 4, 8, 16 and 32 episodes


class Kept(Own):
    """One that keeps one plan, and writes into its array."""

    def __init__(self, case, replan):
        super().__init__(case, replan)
        self.array = np.array(case.baseline)
        self.kept = sf.Plan.plain(self.array)

    def plan(self, counts):
        return self.kept


def test_what_was_checked_is_played(case_of):
    """Whatever is written into the array of a plan in force; and where it is planned again, it
    is checked again.
    """
    case = case_of("plain", False)
    agent = Kept(case, 1.0)
    once, other = sf.Learner(agent, 3), sf.Learner(Kept(case, agent.replan), 3)
    continue_plan(once, case.world, 9)
    agent.array[:] = np.nan
    assert same(continue_plan(once, case.world, 7), continue_plan(other, case.world, 16)[9:])
    with pytest.raises(sf.InvalidPolicy):  # the next plan
        once.begin()
    every = Kept(case, 0.0)
    learner = sf.Learner(every, 3)
    continue_plan(learner, case.world, 2)
    # a policy: from the next plan on it is played
    every.array[...] = np.eye(every.array.shape[2])[0]
    assert {
        a for episode in continue_plan(learner, case.world, 5) for a in episode.actions.tolist()
    } == {0}
    every.array[:] = 0.7
    with pytest.raises(sf.InvalidPolicy):
        learner.begin()
