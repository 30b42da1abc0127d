"""What is refused of the newer settings, and that the message says what was found and what was
expected.
"""

import numpy as np
import pytest

import surefoot as sf

S, A, H = 3, 2, 2
R = np.full((S, A), 0.5)
AFTER = np.full((S, A, S), 0.5)
ALL = np.ones((S, A, S), dtype=bool)
BASELINE = sf.uniform(H, S, A)
PROBLEM = sf.Problem(R, H=H)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"either as r .* or as r_next"),
        ({"r": R, "r_next": AFTER}, r"either as r .* or as r_next"),
        (
            {"r_next": AFTER[..., :2]},
            r"r_next has shape \(3, 2, 2\), expected rewards over as many next states",
        ),
        (
            {"r_next": 2 * AFTER + 1},
            r"r_next\[0, 0, 0\] is 2, expected a reward in \[0, 1\].*declare their range",
        ),
        ({"r_next": R}, r"r_next has shape \(3, 2\), expected \(H, S, A, S\)"),
        ({"r_next": AFTER, "unknown": True}, r"either unknown or given as r_next"),
        (
            {"r": R, "unknown": np.ones((2, 2), bool)},
            r"unknown has shape \(2, 2\), expected \(3, 2\), or \(2, 3, 2\)",
        ),
        ({"r": R, "unknown": R}, r"unknown has dtype float64, expected True or False"),
        (
            {"r": R, "support": ALL[0]},
            r"support has shape \(2, 3\), expected \(3, 2, 3\), or \(2, 3, 2, 3\)",
        ),
        ({"r": R, "support": ALL * 1.0}, r"support has dtype float64, expected True or False"),
        (
            {"r": R, "support": ALL & (np.arange(A) == 0)[:, None]},
            r"support\[0, 1\] allows no next state",
        ),
        (
            {"r": R, "support": np.stack([ALL, ALL]), "stationary": True},
            r"support has a mask for each step, but .* st",
        ),
        (
            {"r": R, "unknown": np.ones((H, S, A), bool), "stationary": True},
            r"unknown has a mask for each step",
        ),
        (
            {"r": R, "start": "anywhere"},
            r"start is 'anywhere', expected probabilities of the 3 states, or \"unknown\"",
        ),
        (
            {"r": R, "start": [0.5, 0.5]},
            r"start has shape \(2,\), expected probabilities of the 3 states",
        ),
        ({"r": R, "start": [0.5, 0.4, 0.0]}, r"start.* sums to 0.9, expected 1"),
        ({"r": R, "start": [1.5, -0.5, 0.0]}, r"start\[1\] is -0.5, expected a probability"),
        ({"r": R, "s1": 3}, r"s1 is 3, expected a state in 0..2"),
    ],
)
def test_problems(settings, message, assert_refused):
    assert_refused(sf.InvalidModel, message, sf.Problem, H=H, **settings)


def test_worlds(assert_refused):
    P = np.full((S, A, S), 1 / 3)
    for settings, message in (
        ({"r": R, "r_next": AFTER}, "either as r or as r_next"),
        ({"r": R, "start": "unknown"}, r"start of a true world is known.*forget\(start=True\)"),
        (
            {"r": R, "support": ALL & (np.arange(S) > 0)},
            r"P\[0, 0, 0, 0\] is 0.333333, but support says .*impossible",
        ),
    ):
        assert_refused(sf.InvalidModel, message, sf.TabularMDP, P, H=H, **settings)
    several = sf.TabularMDP(P, R, H=H, start=[0.5, 0.5, 0.0])
    with pytest.raises(sf.InvalidModel, match=r"several states; see problem.start"):
        _ = several.s1


def test_a_world_that_is_not_what_the_agent_was_given(assert_refused):
    """A premise that the simulator can see to be false is refused, and not certified."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(S), size=(S, A))
    by_step = sf.TabularMDP(P, rng.random((H, S, A)), H=H)
    after = sf.TabularMDP(P, r_next=rng.random((S, A, S)), H=H)
    hidden = np.zeros((S, A), dtype=bool)
    hidden[0, 0] = True
    for world, problem, pooled, message in (
        (
            by_step,
            sf.Problem(np.zeros((S, A)), H=H, unknown=True, stationary=True),
            True,
            "pools rewards .* depend on the step",
        ),
        (after, sf.Problem(R, H=H, unknown=hidden), False, "knows other rewards"),
        (by_step, sf.Problem(R, H=H, start="unknown"), False, "knows other rewards"),
        (by_step, sf.Problem(by_step.r, start=[0.5, 0.5, 0.0]), False, "starts elsewhere"),
        (
            by_step,
            sf.Problem(by_step.r, support=ALL & (np.arange(S) > 0)),
            False,
            "support excludes transitions",
        ),
    ):
        assert_refused(
            sf.InvalidModel,
            message,
            sf.simulate,
            world,
            sf.StepMix(problem, BASELINE, 0.0, pooled=pooled),
            5,
            seed=0,
        )
    for world, pooled in ((by_step, False), (after, True)):  # control: the same, rightly given
        agent = sf.StepMix(world.problem.forget(rewards=True), BASELINE, 0.0, pooled=pooled)
        assert sf.simulate(world, agent, 5, seed=0).episodes == 5


def test_counts_and_episodes(assert_refused):
    masked = sf.Problem(R, H=H, support=ALL & (np.arange(S) < 2))
    hidden = PROBLEM.forget(rewards=True)
    agent = sf.StepMix(masked, BASELINE, 0.1)
    outside = sf.Counts.zeros(masked).add(sf.Episode([0, 1, 2], [1, 0]))
    assert_refused(
        sf.InvalidCounts,
        r"Action 0 in state 1 \(step 1\) led to state 2.*support.*correct the",
        agent.plan,
        outside,
    )
    assert_refused(
        sf.InvalidCounts,
        r"expected \(2, 3, 2, 3\) for Problem",
        agent.plan,
        sf.Counts(np.zeros((2, 4, 2, 4))),
    )
    counts = sf.Counts.zeros(hidden)
    for episode, message in (
        (sf.Episode([0, 1, 2], [1, 0]), r"no rewards, but its rewards are unknown.*Episode.of"),
        (
            sf.Episode([0, 1, 2], [1, 0], [0.5, 1.5]),
            r"rewards\[1\] is 1.5, outside the declared range \(0, 1\).*not counted",
        ),
    ):
        assert_refused(sf.InvalidEpisode, message, counts.add, episode)
    assert_refused(
        sf.InvalidEpisode,
        r"no rewards, but it was played by the baseline",
        sf.Counts.zeros(PROBLEM).add,
        sf.Episode([0, 1, 2], [1, 0], baseline=True),
    )
    assert counts == sf.Counts.zeros(hidden)
    assert_refused(
        sf.InvalidEpisode,
        "must bring the rewards seen",
        sf.Counts.zeros(hidden).add,
        sf.Episode.of(hidden, [0, 1, 2], [1, 0]),
    )
    assert_refused(
        sf.InvalidCounts,
        "more than one unit of reward per visit",
        sf.Counts,
        np.zeros((S, A, S)),
        H,
        x_sa=np.full((S, A), 2**33),
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"explorer": sf.Thompson(PROBLEM)}, "not for another explorer"),
        ({"problem": PROBLEM.forget(rewards=True)}, "not proved for unknown rewards"),
        (
            {"problem": sf.Problem(r_next=AFTER, H=H)},
            r"rewards that depend on the next state.*world.averaged\(\)",
        ),
        ({"problem": PROBLEM.forget(start=True)}, "not proved for several first states"),
        (
            {"problem": sf.Problem(R, H=H, start=[0.5, 0.5, 0])},
            "not proved for several first states",
        ),
    ],
)
def test_the_papers_bounds(settings, message, assert_refused):
    """What its proof does not cover is refused, with KL() as the remedy; with KL it is accepted."""
    settings = {"problem": PROBLEM, "baseline": BASELINE, "floor": 0.1, **settings}
    for words in (message, r"bounds=sf.KL\(\)"):
        assert_refused(sf.InvalidSetting, words, sf.StepMix, **settings, bounds=sf.Bernstein())
    assert sf.StepMix(**settings).bounds == sf.KL()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.Returns(0.0), "share is 0, expected a share of delta strictly between 0 and 1"),
        (lambda: sf.Returns(1.0), "share is 1, expected"),
        (lambda: sf.Thompson(PROBLEM, 0.0), "prior is 0, expected a finite number > 0"),
        (lambda: sf.Thompson(PROBLEM, np.inf), "prior is inf, expected"),
        (lambda: sf.Relative(0.0), "max_loss is 0, expected a share strictly between 0 and 1"),
        (lambda: sf.Relative(1.0), "max_loss is 1, expected"),
        (
            lambda: sf.StepMix(PROBLEM, BASELINE, 0.1, replan=5),
            "replan is 5, expected a number from 0 to 1",
        ),
        (
            lambda: sf.StepMix(PROBLEM, BASELINE, 0.1, returns=True),
            r"returns is True, expected sf.Returns\(\), or None",
        ),
        (
            lambda: sf.StepMix(PROBLEM, BASELINE, 0.1, explorer="ucb"),
            "explorer is 'ucb', expected a function of counts",
        ),
        (
            lambda: sf.StepMix(
                sf.Problem.rescaled(R, sf.Units(-1.0, 1.0, H), H=H), BASELINE, sf.Relative(0.1)
            ),
            "needs rewards that are never negative, but they may be as low as -1",
        ),
    ],
)
def test_settings(make, message, assert_refused):
    assert_refused(sf.InvalidSetting, message, make)


def test_an_explorer_needs_a_generator_and_gives_a_policy(assert_refused):
    agent = sf.StepMix(PROBLEM, BASELINE, 0.1, explorer=sf.Thompson(PROBLEM))
    assert_refused(
        sf.InvalidSetting, r"call plan\(counts, rng\)", agent.plan, sf.Counts.zeros(PROBLEM)
    )
    wrong = sf.StepMix(PROBLEM, BASELINE, 0.1, explorer=lambda counts, rng: BASELINE[:1])
    assert_refused(
        sf.InvalidPolicy,
        r"the explorer's policy.* shape \(1, 3, 2\), expected",
        wrong.plan,
        sf.Counts.zeros(PROBLEM),
        np.random.default_rng(0),
    )
