"""The switch of a budget, and the account it reads: against a rule that decides episode by episode,
in exact fractions.

Hypothesis runs derandomised here, and the simulations have fixed seeds: deterministic, no error
rates.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import surefoot as sf
from plain_loop import simulate_plainly
from surefoot.base.validation import REWARD_UNITS
from surefoot.evidence.counts import entered
from surefoot.rivals.budget_agent import BudgetGrounds, switch
from surefoot.worlds.exact import value_of

examples = settings(max_examples=100, deadline=None, derandomize=True, database=None)
H = 4
ONE_BY_ONE = 60  # episodes that are replayed one by one


# ---- The rule, as it is written ------------------------------------------------------------------


def may_play(account, L, v_b, floor):
    """sum of past entries + L + N_b v_b >= floor k, for the episode that comes next."""
    N_b, N, total = (int(number) for number in account)
    worth = Fraction(math.floor(Fraction(L) * REWARD_UNITS), REWARD_UNITS)
    return Fraction(total, REWARD_UNITS) + worth + N_b * Fraction(v_b) >= Fraction(floor) * (
        N_b + N + 1
    )


def after(account, explores, entry, episodes=1):
    """The account after so many episodes of one of the two."""
    one = [0, 1, math.floor(Fraction(entry) * REWARD_UNITS)] if explores else [1, 0, 0]
    return [held + episodes * new for held, new in zip(account, one, strict=True)]


def assert_lasts(account, L, v_b, floor):
    """The same answer before each of the `max_episodes` episodes, and the other one right after."""
    now = switch(account, L, v_b, floor)
    moments = (
        range(ONE_BY_ONE)
        if now.max_episodes is None
        else [*range(min(now.max_episodes, ONE_BY_ONE)), now.max_episodes - 1]
    )
    for moment in moments:
        then = after(account, now.explores, L, moment)
        assert may_play(then, L, v_b, floor) == now.explores
        assert switch(then, L, v_b, floor).explores == now.explores
    if now.max_episodes is not None:
        assert now.max_episodes >= 1
        assert (
            may_play(after(account, now.explores, L, now.max_episodes), L, v_b, floor)
            != now.explores
        )
    return now


whole = st.one_of(st.integers(0, 12), st.integers(0, 10**6))
coarse = st.integers(0, 8 * H).map(lambda eighths: eighths / 8)  # equalities happen often
values = st.one_of(coarse, st.floats(0.0, H, allow_subnormal=False))


@st.composite
def accounts(draw):
    N_b, N = draw(whole), draw(whole)
    each = draw(values)
    return np.array([N_b, N, N * math.floor(each * REWARD_UNITS)])


@examples
@given(accounts(), values, values, values)
def test_the_switch_decides_as_the_rule_episode_by_episode(account, L, v_b, floor):
    now = assert_lasts([int(number) for number in account], L, v_b, floor)
    worth = Fraction(math.floor(L * REWARD_UNITS), REWARD_UNITS)
    always = worth >= Fraction(floor) if now.explores else v_b <= floor
    assert (now.max_episodes is None) == always


@examples
@given(accounts(), values, values)
def test_what_was_saved_is_the_sum_beyond_the_floor(account, v_b, floor):
    N_b, N, total = (int(number) for number in account)
    exact = Fraction(total, REWARD_UNITS) + N_b * Fraction(v_b) - (N_b + N) * Fraction(floor)
    assert switch(account, 0.0, v_b, floor).saved == float(exact)


@examples
@given(st.integers(1, 1000), st.integers(1, 8 * H), st.integers(1, 100))
def test_at_an_equality_the_explorer_plays(episodes, eighths, baseline_episodes):
    """Saved is exactly what so many episodes take: it plays all of them, and not one more."""
    floor, L = float(H), H - eighths / 8
    saved = episodes * eighths  # in eighths
    v_b = Fraction(saved, 8) / baseline_episodes + H  # beyond H: only the arithmetic is looked at
    assume(Fraction(float(v_b)) == v_b)
    now = assert_lasts([baseline_episodes, 0, 0], L, float(v_b), floor)
    assert now == (True, episodes, saved / 8)


@examples
@given(st.integers(1, 1000), st.integers(1, 8 * H))
def test_an_equality_is_waited_for(adds, takes):
    """From nothing, the baseline earns in eighths until the sum is reached, exactly where it
    divides.
    """
    now = assert_lasts([0, 0, 0], H - takes / 8, H + adds / 8, float(H))
    assert now == (False, -(-takes // adds), 0.0)


@pytest.mark.parametrize("episodes", [1, 10**6, 10**12])
def test_one_unit_in_the_last_place_decides(episodes):
    """An explorer at the floor may play if nothing is owed. What a baseline owes that is below by
    2^-54 a rounded sum would not see.
    """
    assert switch([episodes, 0, 0], 0.5, 0.5, 0.5) == (True, None, 0.0)
    assert switch([episodes, 0, 0], 0.5, math.nextafter(0.5, 0.0), 0.5) == (
        False,
        None,
        -episodes * 2.0**-54,
    )
    assert switch([episodes, 0, 0], 0.5, math.nextafter(0.5, 1.0), 0.5) == (
        True,
        None,
        episodes * 2.0**-53,
    )
    assert switch([episodes, 1, 2**19 - 1], 0.5, 0.5, 0.5) == (False, None, -(2.0**-20))


def test_a_value_that_is_rounded_to_below_the_floor_costs():
    """Entries are rounded down: a floor between two multiples of 2^-20 is not reached by a value
    equal to it.
    """
    floor = 1 / 3
    assert switch([0, 0, 0], floor, floor, floor) == (False, None, 0.0)
    assert switch([0, 0, 0], floor, 1.0, floor) == (False, 1, 0.0)
    spends = switch([1, 0, 0], floor, 1.0, floor)
    assert spends.explores
    assert spends.max_episodes > REWARD_UNITS // 2


@examples
@given(accounts(), st.floats(-1.0, 0.0, allow_subnormal=False), values, values)
def test_a_lower_value_below_zero_never_plays_longer_than_its_entries_allow(account, L, v_b, floor):
    """A plan enters 0 for it, which is true of any policy; the switch counts with what is less."""
    now = switch(account, L, v_b, floor)
    if now.explores and now.max_episodes is not None:
        last = after([int(number) for number in account], True, 0.0, now.max_episodes - 1)
        assert may_play(last, 0.0, v_b, floor)


# ---- The agents, driven --------------------------------------------------------------------------


def budget_agents(name, replan):
    world = sf.world(name)
    three = (world.problem, world.baseline, world.suggested_floor)
    shared = {"pooled": world.stationary, "replan": replan}
    given = shared | {"baseline_value": value_of(world, world.baseline)}
    bpi = sf.BPIUCBVI(world.problem, pooled=world.stationary)
    yield world, sf.BudgetExploration(*three, **shared)
    yield world, sf.BudgetExploration(*three, **given)
    yield world, sf.ConservativeUCBVI(*three, learner=bpi, **given)
    yield world, sf.ConservativeUCBVI(*three, episodes=500, **given)


def spied_plans(monkeypatch, agent, play):
    """Every answer of the switch, with the account it was given and the episodes before it."""
    made, make_plan = [], type(agent).make_plan

    def spy(self, proposal, counts):
        answer = make_plan(self, proposal, counts)
        made.append((int(counts.account[:2].sum()), counts.account.copy(), answer))
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(type(agent), "make_plan", spy)
        run = play()
    return run, made


@pytest.mark.parametrize("simulate", [sf.simulate, simulate_plainly])
@pytest.mark.parametrize("replan", [0.0, 0.1])
def test_every_episode_played_by_the_explorer_was_allowed(monkeypatch, replan, simulate):
    """Played by each of the loops: who played each episode is what the rule says of that episode,
    with the L of the plan in force; the account is the sum of what was entered, and is what the run
    ends with.
    """
    for world, agent in budget_agents("trap", replan):
        run, made = spied_plans(
            monkeypatch, agent, lambda w=world, a=agent: simulate(w, a, 100, seed=1)
        )
        ends = [episodes for episodes, _, _ in made[1:]] + [100]
        account = [0, 0, 0]
        for (start, held, plan), end in zip(made, ends, strict=True):
            assert account == held.tolist()
            grounds = plan.grounds
            assert isinstance(grounds, BudgetGrounds)
            lower, v_b = grounds.proposal.lower, grounds.proposal.v_b
            assert grounds.decision == switch(held, lower, v_b, agent.floor)
            explores = plan.source == "optimistic"
            assert plan.max_episodes is None or end - start <= plan.max_episodes
            for _ in range(start, end):
                assert may_play(account, lower, v_b, agent.floor) == explores
                account = after(account, explores, plan.entry)
        assert account == run.counts.account.tolist()
        assert account[:2] == [run.sources["baseline"], run.sources["optimistic"]]
        if agent.known_baseline_value is not None:
            assert run.sources["optimistic"] > 0


def test_the_shell_keeps_the_same_account():
    """What `Learner` plays is what the rule says, and each episode enters what its plan proved."""
    world = sf.world("trap")
    agent = sf.BudgetExploration(world.problem, world.baseline, 0.6, baseline_value=0.685)
    learner, rng = sf.Learner(agent, seed=3), np.random.default_rng(0)
    for _ in range(60):
        plan, before = learner.begin(), learner.counts.account.copy()
        explores = plan.source == "optimistic"
        assert may_play(before, plan.grounds.proposal.lower, 0.685, 0.6) == explores
        for h in range(world.H):
            a = learner.act()
            learner.observe(int(rng.choice(world.S, p=world.P[h, learner.state, a])))
        learner.end()
        entry = entered(not explores, plan.entry)
        np.testing.assert_array_equal(learner.counts.account, before + entry)
    assert learner.counts.account[1] > 0


# ---- The account ---------------------------------------------------------------------------------


STEADY = sf.Problem([[0.0, 0.0], [1.0, 1.0]], H=2, stationary=True)  # pooled, too


@pytest.fixture
def problem():
    return sf.world("trap").problem


def episode(entry=None, baseline=False):
    return sf.Episode([0, 1, 1], [0, 1], [0.0, 1.0], baseline, entry)


@examples
@given(st.lists(st.tuples(st.booleans(), st.one_of(st.none(), st.floats(0.0, 2.0))), max_size=12))
def test_entries_are_added_rounded_down(played):
    counts = sf.Counts.zeros(sf.world("trap").problem)
    for baseline, entry in played:
        counts.add(episode(entry, baseline))
    kept = [(baseline, entry) for baseline, entry in played if entry is not None]
    others = [entry for baseline, entry in kept if not baseline]
    units = sum(math.floor(Fraction(entry) * 2**20) for entry in others)
    assert counts.account.tolist() == [sum(baseline for baseline, _ in kept), len(others), units]
    assert Fraction(units, 2**20) <= sum(map(Fraction, others), Fraction(0))


def test_an_episode_that_does_not_fit_enters_nothing(problem, assert_refused):
    counts = sf.Counts.zeros(problem).add(episode(0.5))
    before = counts.copy()
    assert_refused(
        sf.InvalidEpisode, "states", counts.add, sf.Episode([0, 7, 1], [0, 1], entry=0.5)
    )
    assert_refused(sf.InvalidEpisode, "s1", counts.add, sf.Episode([1, 1, 1], [0, 1], entry=0.5))
    assert_refused(
        sf.InvalidEpisode,
        "no rewards",
        counts.add,
        sf.Episode([0, 1, 1], [0, 1], baseline=True, entry=0.5),
    )
    assert counts == before


def with_account(problem, account_of, account):
    n_sas = sf.Counts.zeros(problem).n_sas
    return sf.Counts(n_sas, problem.H, problem.s1, account_of=account_of, account=account)


@pytest.mark.parametrize("other", [[1, 0, 0], [0, 2, 7]])
def test_accounts_of_different_baselines_are_not_merged(problem, other, assert_refused):
    """An entry is of the rewards it was certified by, and the fingerprint says which: also where
    the baseline played no episode.
    """
    mine, its = with_account(problem, "mine", [3, 1, 5]), with_account(problem, "its", other)
    assert_refused(sf.InvalidCounts, "accounts of two agents", mine.merge, its)
    assert mine.merge(its.forget_returns()).account.tolist() == [3, 1, 5]
    assert mine.merge(with_account(problem, "its", [0, 0, 0])).account_of == "mine"


def mine(*episodes):
    """Counts of these, and whose they are."""
    counts = sf.Counts.zeros(STEADY)
    for each in episodes:
        counts.add(each)
    counts.returns_of, counts.account_of = "mine", "my account"
    return counts


def loaded(counts, folder):
    counts.save(folder / "counts.npz")
    return sf.Counts.load(folder / "counts.npz")


@pytest.mark.parametrize(
    ("made", "account"),
    [
        (lambda counts, _: counts.copy(), [1, 1, 2**19]),
        (lambda counts, _: counts.pool(), [1, 1, 2**19]),
        (loaded, [1, 1, 2**19]),
        (lambda counts, _: counts.forget_returns(), [0, 0, 0]),
        (lambda counts, _: counts.merge(mine(episode(0.7, baseline=True))), [2, 1, 2**19]),
        (lambda counts, _: mine(episode(0.7, baseline=True)).merge(counts), [2, 1, 2**19]),
    ],
    ids=["copied", "pooled", "saved", "forgotten", "merged", "merged the other way"],
)
def test_what_becomes_of_an_account(made, account, tmp_path):
    """It is another one from then on, and nothing that was seen is lost."""
    counts = mine(episode(0.5), episode(0.7, baseline=True))
    found = made(counts, tmp_path)
    assert found.account.tolist() == account
    assert found.episodes == 2 + (account[0] == 2)
    if any(account):
        assert (found.returns_of, found.account_of) == ("mine", "my account")
    found.account[:] = 0
    assert counts.account.tolist() == [1, 1, 2**19] and found != counts


def test_a_log_enters_nothing(problem):
    counts = sf.Counts.from_log(problem, [episode(0.5), episode(0.5, baseline=True)])
    assert counts.account.tolist() == [0, 0, 0]
    assert counts.baseline_returns.tolist() == [0, 0]
    assert counts.episodes == 2


@pytest.mark.parametrize(
    ("account", "says"),
    [
        ([1, 2], "shape"),
        ([[1, 2, 3]], "shape"),
        ([-1, 0, 0], "expected a count"),
        ([0, 1, -1], "expected a count"),
        ([0, 2**62 + 1, 0], "expected a count"),
        ([0.5, 0, 0], "whole number"),
        ([math.nan, 0, 0], "whole number"),
        ([0, 1, 2 * 2**20 + 1], "values of more than 2"),
        ([5, 0, 1], "values of more than 2"),
        (["a", "b", "c"], "account"),
    ],
)
def test_accounts_that_are_none(problem, account, says, assert_refused):
    assert_refused(sf.InvalidCounts, says, with_account, problem, None, account)


def test_the_largest_entries_are_let_in(problem):
    assert with_account(problem, None, [0, 3, 3 * 2 * 2**20]).account.tolist() == [
        0,
        3,
        3 * 2 * 2**20,
    ]


@pytest.mark.parametrize(
    "entry", [-1e-9, 2.0 + 1e-9, math.nan, math.inf, -math.inf, "0.5", True, [0.5], 1j]
)
def test_entries_that_are_none(entry, assert_refused):
    assert_refused(sf.InvalidEpisode, "entry", episode, entry)


@pytest.mark.parametrize("entry", [None, 0, 0.0, 2, 2.0, np.float64(0.3), np.int64(1)])
def test_entries_that_are(entry):
    assert episode(entry).entry == entry
    assert sf.Counts.zeros(sf.world("trap").problem).add(episode(entry)).account[1] == (
        entry is not None
    )


def test_an_episode_as_learnt_has_the_entry_it_is_given(problem):
    assert sf.Episode.of(problem, [0, 1, 1], [0, 1], entry=0.5).entry == 0.5
    assert sf.Episode([0, 1, 1], [0, 1]).as_learnt(problem, True, 0.5).entry == 0.5
    assert sf.Episode([0, 1, 1], [0, 1]).as_learnt(problem, True).entry is None


# ---- Whose entries -------------------------------------------------------------------------------


def budget(world, baseline=None, **settings):
    baseline = world.baseline if baseline is None else baseline
    return sf.BudgetExploration(world.problem, baseline, 0.6, baseline_value=0.685, **settings)


def other_rewards(world):
    r = np.array(world.r)
    r[1, 1] = 0.9
    return sf.TabularMDP(world.P, r, s1=world.s1)


def changed(world):
    """Agents whose account is another one: what their entries prove, or what they are held
    against, differs.
    """
    pi_b, settings = world.baseline, {"baseline_value": 0.685}
    yield budget(world, baseline=sf.uniform(2, 3, 2))
    yield budget(other_rewards(world), world.baseline)
    yield sf.BudgetExploration(world.problem, pi_b, 0.6)
    yield sf.BudgetExploration(world.problem, pi_b, 0.61, **settings)
    yield budget(world, delta=0.05 + 1e-12)
    yield budget(world, bounds=sf.KL(full_support=True))
    yield budget(world, bounds=sf.KL(scale=0.5))
    yield budget(world, returns=sf.Returns())
    yield budget(world, learner=sf.BPIUCBVI(world.problem))
    yield sf.ConservativeUCBVI(world.problem, pi_b, 0.6, **settings)
    yield sf.ConservativeUCBVI(world.problem, pi_b, 0.6, episodes=1000, **settings)


def test_the_account_of_another_agent_is_refused(assert_refused):
    """Whoever asks: a run, a shell, or a plan. What was seen of the dynamics may be kept."""
    world = sf.world("trap")
    mine = budget(world)
    counts = sf.Counts.zeros(world.problem).add(episode(0.5)).add(episode(0.5, baseline=True))
    mine.claim(counts)
    assert counts.account.tolist() == [1, 1, 2**19]
    fingerprints = {mine.account_fingerprint}
    for other in changed(world):
        for ask in (
            other.plan,
            lambda c, o=other: o.starting_counts(c, 10),
            lambda c, o=other: sf.Learner(o, 0, c.copy()),
        ):
            assert_refused(sf.InvalidCounts, "account of another agent", ask, counts)
        kept = counts.forget_returns()
        assert other.starting_counts(kept, 10).account_of == other.account_fingerprint
        assert kept.episodes == 2
        fingerprints.add(other.account_fingerprint)
    assert len(fingerprints) == 12  # no two alike
    # Control: its own account, also when it plans at other moments or is made again.
    for same in (
        mine,
        budget(world),
        sf.BudgetExploration(world.problem, world.baseline, 0.6, baseline_value=0.685, replan=0.0),
    ):
        assert same.starting_counts(counts, 10).account.tolist() == [1, 1, 2**19]


def test_what_the_problem_says_is_part_of_the_mark(assert_refused):
    """An account, or returns, of episodes that start elsewhere prove nothing here; nor what a
    mask helped to prove.
    """
    P = np.eye(2)[:, None, :].repeat(2, axis=1)  # both states are absorbing
    worlds = [sf.TabularMDP(P, np.array([[1.0, 1.0], [0.5, 0.5]]), s1=s1, H=2) for s1 in (0, 1)]
    worlds.append(worlds[0].with_support())
    agents = [sf.BudgetExploration(world.problem, sf.uniform(2, 2, 2), 1.0) for world in worlds]
    assert len({agent.account_fingerprint for agent in agents}) == 3
    assert agents[0].fingerprint != agents[1].fingerprint
    counts = sf.simulate(worlds[1], agents[1], 50, seed=0).counts
    assert_refused(
        sf.InvalidCounts,
        r"start: state 1 .* state 0 expected.*counts\.forget_start\(\)",
        agents[0].plan,
        counts,
    )
    assert_refused(
        sf.InvalidCounts,
        "account of another agent",
        agents[2].plan,
        sf.simulate(worlds[0], agents[0], 50, seed=0).counts,
    )
    # What was seen of the dynamics may be used, and is gone on with from the other start, by every
    # driver.
    kept = counts.forget_start()
    for simulate in (sf.simulate, simulate_plainly):
        run = simulate(worlds[0], agents[0], 20, seed=0, counts=kept)
        assert run.counts.n_start.tolist() == [20, 0]
        assert run.min_value == pytest.approx(2.0)


def test_two_accounts_of_one_agent_are_not_added(assert_refused):
    """Their entries are proved on two events, each of probability 1 - delta: together that is
    not 1 - delta.
    """
    world = sf.world("trap")
    agent = budget(world)
    one, other = (sf.simulate(world, agent, 100, seed=seed).counts for seed in (0, 1))
    assert one.account[1] > 0
    assert other.account[1] > 0
    assert_refused(sf.InvalidCounts, "accounts of two agents", one.merge, other)
    assert one.merge(other.forget_returns()).account.tolist() == one.account.tolist()


def test_an_account_that_nobody_claimed_is_refused(assert_refused):
    """Until the user says whose it is."""
    world = sf.world("trap")
    agent = budget(world)
    counts = sf.Counts.zeros(world.problem).add(episode(0.5))
    for ask in (agent.plan, lambda some: sf.Learner(agent, 0, some)):
        assert_refused(sf.InvalidCounts, r"or of nobody.*agent\.claim\(counts\)", ask, counts)
    agent.claim(counts)
    assert agent.plan(counts).grounds.account[1] == 1


def test_learn_carries_an_account_on_as_simulate_does():
    import gymnasium

    world = sf.world("trap")
    agent = budget(world)
    warm = sf.Counts(sf.simulate(world, agent, 500, seed=0).counts.n_sas, problem=world.problem)
    warm.account[0], warm.account_of = 500, agent.account_fingerprint
    env = gymnasium.make("surefoot.worlds.gymnasium:Trap-v0")
    saved = 500 * (0.685 - 0.6)
    for run in (
        sf.simulate(world, agent, 60, seed=0, counts=warm),
        sf.learn(env, agent, 60, seed=0, counts=warm),
    ):
        assert run.sources["optimistic"] > 0
        assert saved - 60 * 0.6 <= run.min_cumulative <= saved + 0.1
    other = sf.simulate(
        world, sf.StepMix(world.problem, world.baseline, 0.6), 60, seed=0, counts=warm
    )
    assert other.min_cumulative < 1.0  # control: somebody else's savings are not its own


def test_a_plan_of_another_baseline_is_not_in_force():
    """Counts that remember the plan of one agent are not continued by another."""
    world = sf.world("trap")
    learner = sf.Learner(budget(world), 0)
    for _ in range(3):
        learner.begin()
        learner.rewind()
    assert learner.counts.planned is not None
    other = budget(world, baseline=sf.uniform(2, 3, 2))
    kept = learner.counts
    sf.Learner(other, 0, kept)
    assert kept.planned is None


def test_the_same_baseline_goes_on_with_it():
    """A run in two parts: the second spends what the first saved, and the sum over both is kept."""
    world = sf.world("trap")
    agent = budget(world)
    first = sf.simulate(world, agent, 5, seed=0)
    assert first.sources["baseline"] == 5
    second = sf.simulate(world, agent, 200, seed=0, counts=first.counts)
    assert second.counts.account[:2].sum() == 205
    whole = sf.simulate(world, agent, 205, seed=0)
    assert 5 + second.off_baseline == whole.off_baseline == 7
    assert first.counts.account.tolist() == [5, 0, 0]


def test_entries_that_a_scaled_agent_made_are_not_taken_for_proved(assert_refused):
    """Nearly no radius "certifies" what was seen, lucky or not. What such an agent entered is no
    proof for one with scale 1: a total that rests on it may not be called certified.
    """
    world = sf.world("trap")
    scaled = sf.BudgetExploration(world.problem, world.baseline, 0.6, bounds=sf.KL(scale=1e-6))
    run = sf.simulate(world, scaled, 100, seed=11)
    assert str(run.promise).startswith("NOT CERTIFIED")
    entries = run.counts.account[2] / REWARD_UNITS / run.counts.account[1]
    assert entries > 0.7  # more than V*, on average: they are false
    proved = sf.BudgetExploration(world.problem, world.baseline, 0.6)
    assert_refused(sf.InvalidCounts, "account of another agent", proved.plan, run.counts)
    plan = proved.plan(run.counts.forget_returns())
    assert (plan.source, plan.safety) == ("baseline", "trusted")
