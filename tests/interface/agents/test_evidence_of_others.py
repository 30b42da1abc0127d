"""Evidence of another problem, of other labels, or of episodes that are held already proves
nothing: of logs, offline and where counts are joined.
"""

import pickle

import numpy as np
import pytest

import surefoot as sf
from logs import counted_log
from saved import reloaded
from surefoot.bounds.undeclared import undeclared_ball

EUROS = sf.Units(-5.0, 20.0, name="EUR")
PAID = np.array([[6.0, 9.0], [1.0, 2.5]])
DYNAMICS = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.3, 0.7], [0.5, 0.5]]])
WORLD = sf.TabularMDP(DYNAMICS, PAID, H=4, units=EUROS)
BASELINE = sf.uniform(4, 2, 2)


def log_of(path, states):
    rows = [
        row
        for i in range(200)
        for row in (
            f"{i},0,{states[0]},x,0.5,{states[i % 2]}",
            f"{i},1,{states[i % 2]},x,0.5,{states[0]}",
        )
    ]
    return counted_log(path, rows, states="as logged")


def test_counts_of_another_codebook_prove_nothing(tmp_path, assert_refused):
    """The same sizes, other labels: a plan of it was certified."""
    one, other = log_of(tmp_path / "a.csv", "pq"), log_of(tmp_path / "b.csv", "bz")
    for use in (
        lambda: sf.robust_vi(other.counts, one.problem(), 0.05),
        lambda: sf.StepMix(one.problem(), np.ones((2, 2, 1)), 0.1).plan(other.counts),
        lambda: sf.robust_vi(other.counts, one.problem().forget(start=True), 0.05),
    ):
        assert_refused(sf.InvalidCounts, "coding: codebook", use)
    learnt = sf.robust_vi(one.counts, one.problem(), 0.05)  # control
    sf.Baseline.of(learnt, one.codebook).save(tmp_path / "baseline.npz")
    back = sf.load_baseline(tmp_path / "baseline.npz")
    assert back.problem.coding == one.problem().coding != other.problem().coding
    assert sf.certify(back.policy, one.counts, back.problem, 0.05).lower == learnt.lower


def test_unclaimed_counts_certify_nothing_offline(assert_refused):
    seen = sf.simulate(WORLD, sf.BPIUCBVI(WORLD.problem, pooled=True), 50, seed=0).counts
    by_hand = sf.Counts(seen.n_sas[0], H=4, played=seen.played[0], n_start=seen.n_start)
    assert_refused(
        sf.InvalidCounts,
        r"counts\.claimed_for\(problem\)",
        sf.certify,
        BASELINE,
        by_hand,
        WORLD.problem,
        0.05,
    )
    # control
    assert sf.certify(BASELINE, by_hand.claimed_for(WORLD.problem), WORLD.problem, 0.05).certified


def test_no_view_of_a_log_makes_it_another_log(assert_refused):
    known = sf.Problem(np.full((2, 2), 0.5), H=2, stationary=True)
    unknown = known.forget(rewards=True)
    episodes = [sf.Episode([0, i % 2, 1], [i % 2, 0], [0.5, 0.25 * (i % 3)]) for i in range(50)]
    whole = sf.Counts.from_log(known, episodes)
    for view in (
        sf.Counts.from_log(known, episodes, pooled=True),
        sf.Counts.from_log(unknown, episodes).forget_rewards(),
        sf.Counts.from_log(known, episodes).copy(),
    ):
        assert_refused(
            sf.InvalidCounts,
            r"in these counts already|exactly the same",
            (whole.pool() if view.pooled else whole).merge,
            view,
        )
    other = sf.Counts.from_log(known, episodes[:49] + episodes[1:3])
    assert whole.merge(other).episodes == 101  # control


def kinds_log(path, kinds, ends):
    """Each customer is of one of many kinds, which pays 1."""
    first, last = ends
    rows = [
        row
        for i, kind in enumerate(kinds)
        for row in (f"{i},0,{first},x,0,k{kind}", f"{i},1,k{kind},x,1,{last}")
    ]
    return counted_log(path, rows)


def test_a_mask_takes_nothing_from_the_ball_of_undeclared_states(tmp_path):
    """Excluding one transition once gave the row another ball, which no proof covers."""
    kinds = np.random.default_rng(0).integers(500, size=800)
    log = kinds_log(tmp_path / "log.csv", kinds, ends=("start", "end"))
    given = {"rewards": "as logged", "start": "start"}
    mask = np.ones((len(log.codebook.states), 1, len(log.codebook.states)), dtype=bool)
    here = log.codebook.state("start")
    mask[here, 0, here] = False
    free, masked = (
        sf.robust_vi(log.counts, log.problem(**given, support=s), 0.05) for s in (None, mask)
    )
    assert masked.lower == pytest.approx(free.lower, abs=1e-9)
    eps, p_hat = undeclared_ball(log.counts.n_sas[0, here, 0], log.unseen_state, 3.0)
    assert eps > 0.5
    assert p_hat[log.unseen_state] == 0.0


def test_counts_without_first_visits_taken_off_do_not_meet_undeclared_states(
    tmp_path, assert_refused
):
    """From a log of 5,000 kinds they once certified 2.06 where at most 1 can be earned (20 of
    20).
    """
    drawn = np.random.default_rng(0).integers(5000, size=60)
    log = kinds_log(tmp_path / "log.csv", drawn, ends=("a", "b"))
    problem, state = log.problem("as logged", start="a"), log.codebook.state
    episodes = [
        sf.Episode.of(problem, [state("a"), state(f"k{kind}"), state("b")], [0, 0])
        for kind in drawn
    ]
    assert_refused(
        sf.InvalidCounts,
        "first visits of a log must be taken off",
        sf.Counts.from_log,
        problem,
        episodes,
    )
    assert_refused(sf.InvalidEpisode, "nothing can be added", log.counts.add, episodes[0])
    by_hand = log.counts
    by_hand.origin = log.origin
    assert_refused(sf.InvalidCounts, "are not taken off", sf.robust_vi, by_hand, problem, 0.05)
    assert sf.robust_vi(reloaded(log.counts, tmp_path), problem, 0.05).lower == 0.0
    # the same log, counted in a loop of one's own: 10 of 10 were false
    live = sf.Counts.zeros(problem)
    for episode in episodes:
        live.add(episode)
    for method in (sf.robust_vi, sf.clone, sf.spibb):
        assert_refused(sf.InvalidCounts, "are not taken off", method, live, problem, 0.05)
    agent = sf.StepMix(problem, np.ones((2, problem.S, 1)), 0.1)
    # live episodes came after this list of states: the ordinary ball is theirs
    assert agent.plan(live).lower <= 1.0
    assert_refused(sf.InvalidCounts, "first_visits", live.merge, log.counts)


def test_an_end_that_was_never_seen_pays_nothing_also_where_all_else_pays(tmp_path, assert_refused):
    """Every step pays 5 of 5..6; an end is not in the log. 25 was certified, 24.4 was true (31
    of 60).
    """
    rows = [f"{i},{h},a,x,5,a" for i in range(20) for h in range(5)]
    log, path = counted_log, tmp_path / "log.csv"
    assert_refused(
        sf.InvalidSetting,
        r"0 is below the range of 5\.\.6",
        log(path, rows, reward_range=(5, 6)).problem,
    )
    assert log(path, rows, reward_range=(5, 6), states="as logged").problem().lowest == 25.0
    bare = log(path, rows, reward_range=(0, 6)).problem()  # controls
    assert sf.robust_vi(sf.Counts.zeros(bare), bare, 0.05).lower == 0.0


def test_first_states_of_a_known_start_are_no_sample_of_an_unknown_one(assert_refused):
    """2.84 was certified where 1.5 was true (20 of 20), by planning, merging and adding."""
    known = sf.Problem(np.array([[1.0], [0.5]]), s1=0, H=2)
    unknown, baseline = known.forget(start=True), np.ones((2, 2, 1))
    counts = sf.Counts.zeros(known)
    for _ in range(100):
        counts.add(sf.Episode([0, 0, 0], [0, 0]))
    assert_refused(
        sf.InvalidCounts,
        r"start: state 0 in these counts, unknown expected.*forget_start",
        sf.StepMix(unknown, baseline, 0.5).plan,
        counts,
    )
    seen = sf.Counts.zeros(unknown).add(sf.Episode([1, 1, 1], [0, 0]))
    for one, other in ((counts, seen), (seen, counts)):
        assert_refused(sf.InvalidCounts, "start:", one.merge, other)
    assert_refused(
        sf.InvalidEpisode, "start:", seen.copy().add, sf.Episode.of(known, [0, 0, 0], [0, 0])
    )
    assert sf.StepMix(unknown, baseline, 0.5).plan(counts.forget_start()).lower < 1.5
    # control
    assert (
        sf.StepMix(sf.Problem(np.array([[1.0], [0.5]]), s1=1, H=2), baseline, 0.5).plan(seen).lower
        >= 0.0
    )


def market_log(path, seed, labels=("down", "new", "up"), actions=("hold", "buy")):
    """To buy leads up with probability 0.8, to hold with 0.2; up pays 1."""
    rng = np.random.default_rng(seed)
    down, new, up = labels
    rows = []
    for i in range(300):
        a = int(rng.integers(2))
        good = rng.random() < (0.2, 0.8)[a]
        after = up if good else down
        rows += [
            f"{i},0,{new},{actions[a]},0,{after}",
            f"{i},1,{after},{actions[0]},{int(good)},{after}",
        ]
    return counted_log(path, rows, states="as logged")


def test_counts_of_labels_prove_nothing_for_a_problem_without(tmp_path, assert_refused):
    """Actions in the user's own order, (hold, buy), not the codebook's: 42 of 50 plans were
    certified, and false.
    """
    rewards, hold = np.zeros((2, 3, 2)), np.zeros((2, 3, 2))
    rewards[1, 2], hold[..., 0] = 1.0, 1.0
    mine = sf.Problem(rewards, s1=1)
    for seed in range(3):
        log = market_log(tmp_path / "log.csv", seed)
        for use in (
            lambda log=log: sf.StepMix(mine, hold, 0.6).plan(log.counts),
            lambda log=log: sf.robust_vi(log.counts, mine, 0.05),
            lambda log=log: sf.vi_lcb(log.fold_counts, mine, 0.05),
            lambda log=log: sf.Learner(sf.StepMix(mine, hold, 0.6), 0, log.counts),
        ):
            assert_refused(
                sf.InvalidCounts, r"numbers expected.*log\.problem.*with_coding\(log\.origin", use
            )
    live = sf.Counts.zeros(mine.forget(rewards=True)).add(sf.Episode([1, 2, 2], [0, 0], [0.0, 1.0]))
    for refused in (
        lambda: live.merge(log.counts),
        lambda: sf.robust_vi(live, log.problem(), 0.05),
    ):
        assert_refused(sf.InvalidCounts, "coding: ", refused)
    ordered = pickle.loads(pickle.dumps(mine.with_coding(log.origin.coding)))  # controls
    assert ordered.coding == ordered.forget(start=True).coding == log.problem().coding
    assert 0.5 < sf.robust_vi(log.counts, ordered, 0.05).lower < 0.8
    plain = market_log(tmp_path / "numbers.csv", 0, labels=(0, 1, 2), actions=(0, 1))
    assert 0.5 < sf.robust_vi(plain.counts, mine, 0.05).lower < 0.8
    sparse = market_log(tmp_path / "sparse.csv", 0, labels=(10, 20, 30), actions=(0, 1))
    assert_refused(sf.InvalidCounts, "coding: codebook", sf.robust_vi, sparse.counts, mine, 0.05)


def test_counts_that_no_whole_episodes_can_have_certify_nothing_offline(assert_refused):
    """5,000 visits of the first step, 50 of the others, all of them the good ones: 1.8 was
    certified, 0.6 is true.
    """
    problem, policy = (
        sf.Problem(np.array([[0.0], [1.0], [0.0]]), H=3, stationary=True),
        np.ones((3, 3, 1)),
    )
    n_sas = np.zeros((3, 3, 1, 3), dtype=int)
    n_sas[0, 0, 0, 1] = 5000
    n_sas[1:, 1, 0, 1] = 50
    by_step, pooled = sf.Counts(n_sas, problem=problem), sf.Counts(n_sas, problem=problem).pool()
    for counts in (by_step, pooled):
        for method in (sf.robust_vi, sf.clone, sf.spibb, lambda *given: sf.certify(policy, *given)):
            assert_refused(
                sf.InvalidCounts, "not counts of whole episodes", method, counts, problem, 0.05
            )
    n_sas[1:, 1, 0, 1] = 5000  # controls
    assert sf.certify(policy, sf.Counts(n_sas, problem=problem), problem, 0.05).lower > 1.9
    assert sf.certify(policy, sf.Counts(n_sas, problem=problem).pool(), problem, 0.05).lower > 1.9


def shop_log(path, labels, share, seed):
    """One step, which pays 1 with this probability."""
    rng = np.random.default_rng(seed)
    rows = [
        f"{i},0,{labels[0]},x,{int(rng.random() < share)},{labels[int(rng.integers(2))]}"
        for i in range(400)
    ]
    return counted_log(path, rows, states=labels)


def test_the_certificate_of_one_shop_proves_nothing_in_another(tmp_path, assert_refused):
    """The same sizes, other labels: 50 of 50 were certified, and false."""
    one, other = (
        shop_log(tmp_path / "a.csv", ["a", "b"], 0.9, 0),
        shop_log(tmp_path / "b.csv", ["p", "q"], 0.2, 1),
    )
    learnt = sf.robust_vi(one.counts, one.problem(start="a"), 0.025)
    here, elsewhere = one.problem(start="a"), other.problem(start="p")
    for problem in (elsewhere, sf.Problem(np.zeros((2, 1)), H=1, unknown=True)):
        assert_refused(
            sf.InvalidSetting,
            r"for other labels \(codebook.*learnt\.problem",
            sf.StepMix,
            problem,
            learnt.policy,
            0.7,
            certificate=learnt.certificate,
        )
    agent = sf.StepMix(here, learnt.policy, 0.7, certificate=learnt.certificate)  # controls
    assert agent.plan(sf.Counts.zeros(here)).certified
    known = learnt.certificate
    # it does not say of which labels
    bare = sf.Certificate(known.value, known.delta, known.fingerprint)
    assert (
        sf.StepMix(here, learnt.policy, 0.7, certificate=bare).plan(sf.Counts.zeros(here)).certified
    )
    sf.Baseline.of(learnt, one.codebook).save(tmp_path / "baseline.npz")
    assert sf.load_baseline(tmp_path / "baseline.npz").certificate == known


def coin_episode(problem, rng):
    return sf.Episode.of(problem, [0, 0], [0], [float(rng.integers(2))])


def test_copies_that_share_episodes_are_not_merged(tmp_path, assert_refused):
    """Workers that go on from the shared counts: 5,207 episodes were counted of 287 (31 of 200
    certified falsely).
    """
    problem, rng = sf.Problem(np.zeros((1, 1)), H=1, unknown=True), np.random.default_rng(0)
    shared = sf.Counts.zeros(problem)
    empty = [shared.copy(), shared.copy()]
    for counts, n in ((shared, 5), (empty[0], 6), (empty[1], 7)):
        for _ in range(n):
            counts.add(coin_episode(problem, rng))
    workers = [shared.copy(), reloaded(shared, tmp_path), shared.forget_returns()]
    for n, worker in enumerate(workers):
        for _ in range(n + 1):
            worker.add(coin_episode(problem, rng))
    for one, other in ((0, 1), (1, 2), (2, 0)):
        assert_refused(
            sf.InvalidCounts,
            r"Episodes 0 to [56] of one source.*evidence counts once",
            workers[one].merge,
            workers[other],
        )
    assert_refused(sf.InvalidCounts, "Episodes 0 to 4 of one source", shared.merge, workers[2])
    both = empty[0].merge(empty[1])  # controls: nothing was shared
    assert both.add(coin_episode(problem, rng)).merge(workers[0]).episodes == 20
    assert_refused(sf.InvalidCounts, "of one source", both.merge, empty[1])
    assert reloaded(both, tmp_path).ranges == both.ranges
    assert both.numbered == both.episodes == 14


def test_learn_with_one_seed_for_several_baselines_draws_the_same(assert_refused):
    """The environment's numbers are of the seed alone: 2 of 60 merges of 16 such runs certified
    falsely.
    """
    env = "FrozenLake-v1"
    problem = sf.from_gymnasium(env, horizon=5).problem
    baselines = (
        sf.uniform(5, problem.S, problem.A),
        np.broadcast_to(np.eye(problem.A)[0], (5, problem.S, problem.A)),
    )
    one, other = (
        sf.learn(env, sf.StepMix(problem, pi, 0.0), 5, seed=0, progress=False).counts
        for pi in baselines
    )
    assert_refused(
        sf.InvalidCounts,
        r"Episodes 0 to 4 of one source \(learn .*another seed",
        one.forget_returns().merge,
        other.forget_returns(),
    )
    again = sf.StepMix(problem, baselines[1], 0.0)  # controls
    assert sf.learn(env, again, 5, seed=0, counts=one, progress=False).counts.episodes == 10
    elsewhere = sf.learn(env, again, 5, seed=1, progress=False).counts
    assert one.forget_returns().merge(elsewhere.forget_returns()).episodes == 10


def test_who_repeats_evidence_is_told_what_to_do_instead(assert_refused):
    problem = sf.Problem(np.zeros((1, 1)), H=1, unknown=True)
    rng = np.random.default_rng(0)
    log = sf.Counts.from_log(problem, [coin_episode(problem, rng) for _ in range(5)])
    own = sf.Counts.zeros(problem).add(coin_episode(problem, rng))
    for counts, told in (
        (log, "Count each episode of a log once"),
        (own, r"begin with Counts\.zeros\(problem\)"),
    ):
        with pytest.raises(sf.InvalidCounts, match=told) as refusal:
            counts.merge(counts.copy())
        assert "seed" not in str(refusal.value)
    # the same visits, other rewards: two different data
    one, other = (sf.Counts.zeros(problem) for _ in range(2))
    for k in range(10):
        one.add(sf.Episode.of(problem, [0, 0], [0], [k % 2]))
        other.add(sf.Episode.of(problem, [0, 0], [0], [k % 3 == 0]))
    assert one.merge(other).episodes == 20
    assert_refused(
        sf.InvalidCounts,
        "exactly the same",
        sf.Counts([[[5]]], H=1, x_sa=[[7]]).merge,
        sf.Counts([[[5]]], H=1, x_sa=[[7]]),
    )


def test_a_table_of_means_that_a_log_contradicts_is_refused(tmp_path, assert_refused):
    """Rewards are random, and the actions of the table are swapped: 20 of 20 certificates were
    false.
    """
    rng = np.random.default_rng(0)
    actions = rng.integers(2, size=400)
    rows = [
        f"{i},0,s,{'xy'[a]},{int(rng.random() < (0.9, 0.1)[a])},s" for i, a in enumerate(actions)
    ]
    log = counted_log(tmp_path / "log.csv", rows, states=["s"])
    assert_refused(
        sf.InvalidLog,
        r"pays 0\.1 at step 0, but the log on average paid 0\.[89].*codebook",
        log.problem,
        rewards=[[0.1, 0.9]],
        start="s",
    )
    # control
    assert sf.robust_vi(log.counts, log.problem(rewards=[[0.9, 0.1]], start="s"), 0.05).lower > 0.8
