"""What is declared about a log, what is not, and what that costs: in Python, by the command, and
in one's own loop.
"""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot as sf
from log_rows import write_lines
from surefoot.cli.main import app
from surefoot.logs.methods.learnt import Learnt


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


@pytest.fixture(scope="module")
def world():
    """It does not depend on the step."""
    rng = np.random.default_rng(0)
    return sf.TabularMDP(rng.dirichlet(np.ones(5), size=(5, 3)), rng.random((5, 3)), H=3)


@pytest.fixture(scope="module")
def path(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    return sf.sample_log(world, sf.uniform(3, 5, 3), 2000, folder / "log.parquet", seed=1)


@pytest.fixture(scope="module")
def bare(path):
    """Only the range of rewards is declared."""
    return sf.count_log(path, reward_range=(0, 1))


class TestSavings:
    def test_each_is_the_certificate_of_the_same_policy_with_that_declaration(self, path, bare):
        learnt = sf.robust_vi(bare.counts, bare.problem(), 0.05)
        found = {saving.option: saving.lower for saving in learnt.savings(bare)}
        assert list(found) == [
            "--states as-logged",
            "--start 0",
            "--rewards as-logged",
            "--stationary",
        ]
        whole = sf.count_log(path, reward_range=(0, 1), states="as logged")
        pi = learnt.policy
        expected = {
            "--states as-logged": sf.certify(pi[:, :5], whole.counts, whole.problem(), 0.05),
            "--start 0": sf.certify(pi, bare.counts, bare.problem(start=0), 0.05),
            "--rewards as-logged": sf.certify(pi, bare.counts, bare.problem("as logged"), 0.05),
            "--stationary": sf.certify(pi, bare.counts.pool(), bare.problem(stationary=True), 0.05),
        }
        for option, other in expected.items():
            assert found[option] == pytest.approx(other.lower, abs=1e-12), option
            assert found[option] > learnt.lower

    def test_steps_that_differ_are_not_recommended_to_be_the_same(self, tmp_path):
        world = sf.random_mdp(5, 3, 3, seed=0)
        path = sf.sample_log(world, sf.uniform(3, 5, 3), 2000, tmp_path / "log.parquet", seed=1)
        log = sf.count_log(path, reward_range=(0, 1))
        learnt = sf.robust_vi(log.counts, log.problem(), 0.05)
        assert "--stationary" not in [saving.option for saving in learnt.savings(log)]

    def test_what_is_declared_is_not_listed(self, path, world):
        log = sf.count_log(path, reward_range=(0, 1), states=5)
        learnt = sf.robust_vi(log.counts, log.problem(world.r, start=0, support="as logged"), 0.05)
        # a mask by step does not fit "stationary"
        assert [saving.option for saving in learnt.savings(log)] == []
        assert "You did not declare" not in learnt.explain(1.0, log)
        learnt = sf.robust_vi(log.counts, log.problem(world.r, start=0), 0.05)
        assert [saving.option for saving in learnt.savings(log)] == [
            "--support as-logged",
            "--stationary",
        ]
        with pytest.raises(sf.InvalidSetting, match="is not the log of"):
            learnt.savings(sf.count_log(path, reward_range=(0, 1)))

    @pytest.mark.parametrize("method", ["robust", "vi-lcb", "clone", "spibb"])
    def test_the_command_prints_them_with_both_ways_to_say_it(self, path, tmp_path, method):
        given = f"--reward-range 0 1 --method {method} --force --out {tmp_path / 'b.npz'}"
        words = ("baseline", path, *given.split())
        text = " ".join(run(*words).output.split())
        assert "Declare what you know to be true, not what helps:" in text
        assert (
            'count_log(..., states="as logged") or --states as-logged the certificate would be'
            in text
        )
        assert "problem(start=0) or --start 0 the certificate would be" in text
        told = json.loads(run(*words, "--json").output)
        for saving in told["savings"]:
            assert saving["certified_value"] >= told["certified_value"] - 1e-9, saving
        start = run(*words, "--json", "--start", 0)  # and what is said comes true
        by_option = {saving["option"]: saving["certified_value"] for saving in told["savings"]}
        assert json.loads(start.output)["certified_value"] >= by_option["--start 0"] - 1e-9

    def test_the_command_asks_once_and_says_it_twice(self, path, bare, tmp_path, monkeypatch):
        """In numbers and in words: each answer takes many passes over the counts."""
        asked = []
        for name in ("savings", "episodes_needed"):
            whole = getattr(Learnt, name)
            monkeypatch.setattr(
                Learnt,
                name,
                lambda *given, name=name, whole=whole: asked.append(name) or whole(*given),
            )
        given = f"--reward-range 0 1 --floor 2.4 --json --out {tmp_path / 'b.npz'}"
        told = json.loads(run("baseline", path, *given.split()).output)
        assert sorted(asked) == ["episodes_needed", "savings"]
        learnt = sf.robust_vi(bare.counts, bare.problem(), 0.05)
        assert (
            told["explanation"]
            == learnt.explain(2.4, bare)
            == learnt.told(learnt.missing(2.4, bare), bare.codebook)
        )
        assert (
            f"About {told['episodes_needed']:,} episodes" in told["explanation"]
            and len(told["savings"]) == 4
        )

    def test_rewards_that_vary_have_no_number(self, tmp_path):
        rows = [f"{i},0,{i % 2},0,{i % 3},0" for i in range(60)]
        log = sf.count_log(write_lines(tmp_path / "log.csv", rows), reward_range=(0, 2))
        learnt = sf.robust_vi(log.counts, log.problem(), 0.05)
        assert (
            "- what each pair pays, which varies in the log: declared by problem(rewards=table)"
            in learnt.explain(None, log)
        )
        assert "the probabilities of the first states" in learnt.explain(None, log)


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            (
                {"rewards": "known"},
                "rewards is 'known', expected an array, or 'as logged' or 'as logged by next",
            ),
            ({"support": "all"}, "support is 'all', expected an array, or 'as logged'"),
            ({"start": 7}, "start is 7, expected the label of a state, such as 0, 1"),
            ({"start": "new"}, "start is 'new', expected the label of a state"),
            ({"start": [0.5, 0.5]}, "start has shape"),
            ({"support": "as logged"}, "the states were not declared"),
            ({"support": np.ones((2, 2, 2), dtype=bool)}, "support has shape"),
            ({"support": np.zeros((5, 3, 5), dtype=bool)}, "cannot lead to state"),
            ({"rewards": np.ones((2, 2))}, "rewards has shape"),
        ],
    )
    def test_declarations_that_do_not_fit(self, bare, settings, words):
        with pytest.raises(sf.SurefootError, match=words):
            bare.problem(**settings)

    def test_rewards_that_a_log_contradicts(self, tmp_path):
        path = write_lines(tmp_path / "log.csv", ["1,0,a,x,0,a", "2,0,a,x,1,b"])
        log = sf.count_log(path, reward_range=(0, 1))
        with pytest.raises(
            sf.InvalidLog,
            match=r"action 'x' in state 'a' paid from 0 to 1 at step 0.*by next state",
        ):
            log.problem("as logged")
        assert log.problem("as-logged-by-next-state").r_next_at(0)[0, 0].tolist() == [0.0, 1.0, 0.0]

    def test_a_range_that_was_not_declared(self, path):
        with pytest.raises(sf.InvalidSetting, match="That is what was seen, not what is possible"):
            sf.count_log(path).problem()
        assert isinstance(run("baseline", path).exception, sf.InvalidSetting)

    def test_states_of_a_problem_that_are_not_what_they_are_called(self):
        mask = np.ones((2, 1, 2), dtype=bool)
        sure = np.array([[[True, True]], [[False, True]]])
        r = np.array([[0.5], [0.0]])
        assert (
            sf.Problem(r, H=2, support=sure, rewards_at_least=True, unseen_state=1).unseen_state
            == 1
        )
        assert (
            sf.Problem(sf.Rescaled(r), H=2, support=sure, units=sf.Units(2, 5)).absorbing_state
            is None
        )  # it pays 2, not nothing
        assert (
            sf.Problem(
                sf.Rescaled(r), H=2, support=sure, units=sf.Units(2, 5), ended_state=1
            ).absorbing_state
            == 1
        )
        for settings, words in (
            ({"support": mask, "ended_state": 1}, "this state can be left"),
            ({"support": sure, "unknown": True, "ended_state": 1}, "what it pays is not known"),
            ({"support": sure, "unseen_state": 1}, "rewards_at_least=True"),
            ({"support": sure, "unseen_state": 2}, "expected a state in 0..1"),
        ):
            with pytest.raises(sf.InvalidModel, match=words):
                sf.Problem(r, H=2, **settings)


class TestUnseen:
    def agent(self, bare):
        return sf.StepMix(bare.problem(), sf.uniform(3, 6, 3), 0.1)

    def test_an_episode_that_gets_there_stays_there(self, bare):
        learner = sf.Learner(self.agent(bare), 0)
        learner.begin()
        learner.act(0)
        learner.observe(bare.codebook.state(99), 0.5)  # a label that nobody has seen
        learner.act(bare.codebook.state(2))  # it is back among known states
        learner.observe(2, 1.0)
        learner.act(2)
        learner.observe(3, 1.0)
        episode = learner.end()
        assert episode.states.tolist() == [0, 5, 5, 5]
        assert episode.rewards.tolist() == [0.5, 0.0, 0.0]  # what is proved counts nothing more
        assert learner.counts.n_sas[0, 0, episode.actions[0], 5] == 1

    def test_counts_that_leave_room_for_others_are_not_added_to(self, bare):
        """Their first visits are taken off: a live episode counted into them would be read in
        another way.
        """
        learnt = sf.robust_vi(bare.counts, bare.problem(), 0.05)
        with pytest.raises(
            sf.InvalidCounts,
            match=r"were not declared.*states=\[\.\.\.\].*begin without these counts",
        ):
            sf.Learner(self.agent(bare), 0, bare.counts)
        with pytest.raises(sf.InvalidCounts, match="were not declared"):
            sf.hand_over(learnt, 0.0, counts=bare.counts)
        assert sf.hand_over(learnt, 0.0).agent.certificate == learnt.certificate

    def test_an_early_end_is_one_more_thing_that_was_never_seen(self, bare):
        learner = sf.Learner(self.agent(bare), 0)
        learner.begin()
        learner.act(0)
        learner.observe(1, 0.5, terminated=True)
        assert learner.end().states.tolist() == [0, 5, 5, 5]

    def test_an_episode_may_start_there(self, bare):
        learner = sf.Learner(self.agent(bare), 0)
        learner.begin()
        learner.act(bare.codebook.state("elsewhere"))
        learner.observe(1)
        assert learner.state == 5

    def test_a_start_that_was_not_declared_is_free_after_hand_over(self, path):
        log = sf.count_log(path, reward_range=(0, 1), states=5)
        learnt = sf.robust_vi(log.counts, log.problem(), 0.05)
        agent, counts = sf.hand_over(learnt, 0.1, counts=log.counts)
        learner = sf.Learner(agent, 0, counts)
        learner.begin()
        for s in (1, 2, 3):  # all episodes of the log began in state 0
            learner.act(s)
            learner.observe(s + 1, 0.5)
        assert learner.end().states[0] == 1

    def test_a_baseline_file_keeps_it(self, bare, tmp_path):
        learnt = sf.robust_vi(bare.counts, bare.problem(start=0), 0.05)
        sf.Baseline.of(learnt, bare.codebook).save(tmp_path / "b.npz")
        back = sf.load_baseline(tmp_path / "b.npz")
        assert back.problem.same_as(learnt.problem)
        assert back.problem.unseen_state == back.codebook.unseen_state == 5
        assert back.certificate == learnt.certificate
        assert run("show", tmp_path / "b.npz").exit_code == 0


def test_after_end_of_a_learner():
    """Declared by the problem, by the user, or not at all."""
    unknown = sf.Problem(np.zeros((2, 1)), H=2, unknown=True, units=sf.Units(2, 5))
    agent = sf.StepMix(unknown, sf.uniform(2, 2, 1), 4.5)
    for settings, words in (
        ({}, "0 is not in the declared range"),
        ({"after_end": 7}, "outside the declared range"),
        ({"after_end": 3, "absorbing_state": None}, "no absorbing state"),
    ):
        with pytest.raises(sf.InvalidSetting, match=words):
            sf.Learner(agent, 0, **{"absorbing_state": 1, **settings})
    learner = sf.Learner(agent, 0, absorbing_state=1, after_end=3.5)
    learner.begin()
    learner.act()
    learner.observe(0, 5.0, terminated=True)
    assert learner.end().rewards.tolist() == [5.0, 3.5]
    known = sf.StepMix(
        sf.Problem([[3.5], [2.75]], H=2, units=sf.Units(2, 5)), sf.uniform(2, 2, 1), 4.5
    )
    for settings in ({}, {"after_end": 3.5}):
        with pytest.raises(
            sf.InvalidSetting, match=r"pays 2\.75 a step by the problem.*after_end=x.*ended_state="
        ):
            sf.Learner(known, 0, absorbing_state=1, **settings)
    learner = sf.Learner(known, 0, absorbing_state=1, after_end=2.75)
    learner.begin()
    learner.act()
    learner.observe(0, terminated=True)
    assert learner.end().rewards.tolist() == [3.5, 2.75]
