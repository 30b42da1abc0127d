"""From a log to a baseline and on to an agent: the command, the files, the certificate and its
delta.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot as sf
from log_rows import ENDS, HEAD, write_lines
from plain_loop import simulate_plainly
from surefoot.bounds.certificate import fingerprint_of
from surefoot.cli.console import BAD_DATA, CERTIFICATE_FAILED
from surefoot.cli.main import app
from surefoot.logs.baseline_file import METHODS, learn_baseline

FLOOR = 2.2
DECLARED = ("--reward-range", 0, 1, "--states", 5, "--start", 0, "--rewards", "as-logged")


@pytest.fixture(scope="module")
def world():
    return sf.random_mdp(5, 5, 3, seed=0)


@pytest.fixture(scope="module")
def path(world, tmp_path_factory):
    """A log of 3,000 episodes of a good behaviour."""
    mu = sf.boltzmann(sf.solve(world).Q, 15.0)
    return sf.sample_log(world, mu, 3000, tmp_path_factory.mktemp("log") / "log.parquet", seed=1)


@pytest.fixture(scope="module")
def log(path):
    return sf.count_log(path, states=5, actions=5, reward_range=(0, 1))


@pytest.fixture(scope="module")
def learnt(log, world):
    return sf.robust_vi(log.counts, log.problem(rewards=world.r, start=0), 0.05)


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


def refused(*arguments):
    """What `main` turns into one sentence and an exit code."""
    found = run(*arguments)
    assert isinstance(found.exception, sf.SurefootError), found.output
    return str(found.exception)


class TestTheCommand:
    @pytest.mark.parametrize("method", METHODS)
    def test_ends_in_a_policy_file_and_a_report(self, method, path, tmp_path):
        out = tmp_path / "policy.npz"
        found = run("baseline", path, "--floor", FLOOR, "--method", method, "--out", out, *DECLARED)
        assert found.exit_code == (CERTIFICATE_FAILED if METHODS[method].by_folds else 0)
        assert ("NOT cleared" if METHODS[method].by_folds else "CLEARED") in found.output
        assert "certified to be worth at least" in " ".join(found.output.split())
        # a number for researchers: in JSON, and learnt.corollary(floor)
        assert "corollary" not in found.output
        assert "Premises, which nothing here checks unless a line says so:" in found.output
        assert "The logged policy had a mean return of" in " ".join(found.output.split())
        baseline = sf.load_baseline(out)
        assert np.array_equal(sf.load_policy(out), baseline.policy)
        assert baseline.codebook.states == (0, 1, 2, 3, 4)

    def test_json_has_the_same_numbers(self, path, tmp_path):
        found = run(
            "baseline", path, "--floor", FLOOR, "--out", tmp_path / "p.npz", "--json", *DECLARED
        )
        told = json.loads(found.output)
        assert told["cleared"] is True
        assert (
            FLOOR
            <= told["certified_value"]
            == pytest.approx(sf.load_baseline(tmp_path / "p.npz").certificate.value)
        )
        assert told["logged_certified"] < told["logged_mean_return"]
        log = sf.count_log(path, reward_range=(0, 1), states=5, actions=5)
        learnt = sf.robust_vi(log.counts, log.problem("as logged", start=0), 0.05)
        # as printed, and with the constant of its proof
        assert told["corollary"] == list(learnt.corollary(FLOOR))
        assert told["corollary"][1] == pytest.approx(2 * told["corollary"][0], rel=1e-6)

    def test_counts_may_come_in_the_logs_place(self, path, tmp_path):
        assert (
            run(
                "logs", "count", path, "--out", tmp_path / "c.npz", "--reward-range", 0, 1
            ).exit_code
            == 0
        )
        direct = run(
            "baseline", path, "--out", tmp_path / "p.npz", "--json", "--reward-range", 0, 1
        )
        by_counts = run(
            "baseline", tmp_path / "c.npz", "--out", tmp_path / "p.npz", "--force", "--json"
        )
        by_log, from_counts = json.loads(direct.output), json.loads(by_counts.output)
        # Counts hold the mean of returns, not how they vary: they prove less of the policy that
        # wrote the log.
        assert (
            from_counts.pop("logged_certified")
            < by_log.pop("logged_certified")
            < by_log["logged_mean_return"]
        )
        assert by_log == from_counts

    def test_an_unusable_log_leaves_nothing_behind(self, tmp_path):
        log = write_lines(tmp_path / "log.csv", ["7,0,0,0,0.5,1", "7,1,2,0,0.5,1"])
        out = tmp_path / "p.npz"
        found = run("baseline", log, "--floor", 1, "--out", out)
        assert found.exit_code == BAD_DATA
        assert "broken chain" in found.output
        assert "episode 7" in found.output
        assert not out.exists()
        checked = run("logs", "check", log)
        assert checked.exit_code == BAD_DATA
        assert "cannot be used" in checked.output
        told = json.loads(run("logs", "check", log, "--json").output)
        assert told["usable"] is False
        assert told["findings"][0]["episodes"] == [7]

    def test_refusals(self, path, tmp_path):
        out = tmp_path / "p.npz"
        magic = refused("baseline", path, "--method", "magic", "--out", out, *DECLARED)
        assert "expected one of robust, vi-lcb" in magic
        assert "returns lie in 0..3" in refused(
            "baseline", path, "--floor", 4, "--out", out, *DECLARED
        )
        assert "MEANING=NAME" in refused("baseline", path, "--column", "state", "--out", out)
        assert "does not exist" in refused(
            "baseline", path, "--out", tmp_path / "nowhere" / "p.npz"
        )
        assert not out.exists()

    def test_a_log_of_ones_own_columns_and_labels(self, tmp_path):
        rows = [f"c{i},1,new,{'mail' if i % 3 else 'call'},{2 * (i % 2)},old" for i in range(90)]
        names = "customer,week,segment,offer,margin,next"
        log, out = write_lines(tmp_path / "log.csv", rows, names), tmp_path / "p.npz"
        columns = ["--reward-range", 0, 2, "--out", out]
        for ours, called in zip(HEAD.split(","), names.split(","), strict=True):
            columns += ["--column", f"{ours}={called}"]
        found = run("baseline", log, *columns)
        assert found.exit_code == 0, found.output
        assert "Steps are numbered from 1" in found.output
        baseline = sf.load_baseline(out)
        assert baseline.codebook.actions == ("call", "mail")
        assert baseline.problem.unknown[:, :2].all()  # nobody declared them
        assert baseline.problem.unseen_state == 2
        told = json.loads(
            run("baseline", log, *columns, "--floor", 0.5, "--json", "--force").output
        )
        assert told["certified_value"] < 1.0  # the mean reward is 1

    def test_an_example_to_try_things_out(self, tmp_path):
        out = tmp_path / "log.parquet"
        example = ("logs", "example", "offers", "--out", out, "--episodes", 300)
        out.write_text("mine")
        assert run(*example).exit_code != 0 and out.read_text() == "mine"
        found = run(*example, "--force")
        assert found.exit_code == 0
        words = next(
            line for line in found.output.splitlines() if line.startswith("Next: surefoot ")
        ).split()[2:]
        assert run(*words, "--out", tmp_path / "p.npz").exit_code in (0, CERTIFICATE_FAILED)


class TestFiles:
    def test_a_baseline_comes_back_whole(self, learnt, log, tmp_path):
        path = tmp_path / "baseline.npz"
        sf.Baseline.of(learnt, log.codebook).save(path)
        back = sf.load_baseline(path)
        assert np.array_equal(back.policy, learnt.policy)
        assert back.certificate == learnt.certificate
        assert back.problem.same_as(learnt.problem)
        assert back.codebook == log.codebook
        sf.StepMix(back.problem, back.policy, FLOOR, certificate=back.certificate)

    @pytest.mark.parametrize("start", [None, "unknown"])
    def test_problems_of_every_kind_come_back(self, start, tmp_path):
        rng = np.random.default_rng(0)
        support = np.ones((2, 2, 2), dtype=bool)
        support[1] = [[False, True]] * 2
        problem = sf.Problem(
            r_next=rng.random((2, 2, 2)), H=3, stationary=True, start=start, support=support
        )
        hidden = sf.Problem(np.zeros((2, 2)), H=3, unknown=True, units=sf.Units(-1.0, 3.0))
        for some in (problem, hidden):
            baseline = sf.Baseline(
                sf.uniform(3, 2, 2), None, some, sf.Codebook(["a", "b"], 2), "by hand", 0
            )
            baseline.save(tmp_path / "b.npz")
            assert sf.load_baseline(tmp_path / "b.npz").problem.same_as(some)
            assert sf.load_baseline(tmp_path / "b.npz").certificate is None

    def test_another_file_is_not_a_baseline(self, tmp_path):
        sf.save_policy(tmp_path / "p.npz", sf.uniform(1, 2, 2))
        with pytest.raises(sf.InvalidFile, match="lacks codebook"):
            sf.load_baseline(tmp_path / "p.npz")


class TestCertificates:
    def test_its_delta_comes_on_top_and_is_printed(self, learnt):
        start = sf.hand_over(learnt, FLOOR)
        assert start.agent.delta == learnt.delta == 0.05
        assert start.agent.delta_in_all == pytest.approx(0.1)
        promised = "certified at delta = 0.1 for every episode's policy"
        assert (
            str(start.agent.promise) == f"{promised}; baseline above the floor: certified by data"
        )
        plan = start.agent.plan(start.counts)
        assert plan.safety == "certified"
        text = plan.explain()
        assert "probability at least 0.9 " in text
        assert "How delta = 0.1 is spent" in text
        assert "by the certificate it came with" in text

    def test_without_one_the_first_plan_is_on_trust(self, learnt):
        alone = sf.StepMix(learnt.problem, learnt.policy, FLOOR, delta=0.05)
        first = alone.plan(sf.Counts.zeros(learnt.problem))
        assert (first.source, first.safety) == ("baseline", "trusted")
        with_it = sf.StepMix(
            learnt.problem, learnt.policy, FLOOR, delta=0.05, certificate=learnt.certificate
        )
        mixed = with_it.plan(sf.Counts.zeros(learnt.problem))
        assert (mixed.source, mixed.safety) == ("mixture", "certified")
        assert mixed.lower == pytest.approx(FLOOR, abs=1e-9)

    def test_one_below_the_floor_leaves_the_baseline_on_trust(self, log, world):
        weak = sf.vi_lcb(log.folds, log.problem(rewards=world.r, start=0), 0.05)
        start = sf.hand_over(weak, FLOOR)
        assert str(start.agent.promise).endswith("; baseline above the floor: unknown")
        plan = start.agent.plan(start.counts)
        assert (plan.source, plan.safety) == ("baseline", "trusted")
        assert plan.lower == pytest.approx(max(weak.lower, plan.candidates[-1]))

    def test_it_is_of_one_policy_alone(self, learnt):
        other = sf.uniform(3, 5, 5)
        with pytest.raises(sf.InvalidSetting, match="of another policy"):
            sf.StepMix(learnt.problem, other, FLOOR, certificate=learnt.certificate)
        problem = learnt.problem
        for another in (
            sf.Problem(0.1 * problem.r),
            sf.Problem(problem.r, s1=1),
            problem.forget(rewards=True),
        ):
            with pytest.raises(sf.InvalidSetting, match="for another problem"):
                sf.StepMix(another, learnt.policy, 0.1, certificate=learnt.certificate)
        same = sf.Problem(problem.r.copy())
        assert fingerprint_of(learnt.policy, same) == learnt.certificate.fingerprint

    def test_refusals(self, learnt, log):
        problem, pi = learnt.problem, learnt.policy
        scaled = sf.robust_vi(log.counts, problem, 0.05, sf.KL(scale=0.5))
        with pytest.raises(sf.InvalidSetting, match="nothing is certified"):
            _ = scaled.certificate
        assert "NOT CERTIFIED" in scaled.explain(FLOOR)
        assert not scaled.clears(0.0)
        assert sf.hand_over(scaled, FLOOR).agent.certificate is None
        assert not sf.vi_lcb(log.folds, problem, 0.05, c=0.5).certified
        assert sf.vi_lcb(log.folds, problem, 0.05, c=0.71).certified
        for settings, words in (
            ({"certificate": 2.4}, "expected learnt.certificate"),
            (
                {"certificate": sf.Certificate(3.5, 0.05, fingerprint_of(pi, problem))},
                "no policy can reach it",
            ),
            (
                {"certificate": sf.Certificate(2.4, 0.97, fingerprint_of(pi, problem))},
                "add up to 1.02",
            ),
        ):
            with pytest.raises(sf.InvalidSetting, match=words):
                sf.StepMix(problem, pi, FLOOR, **settings)
        with pytest.raises(sf.InvalidSetting, match="relative floor"):
            sf.EpsMix(problem, pi, sf.Relative(0.1), certificate=learnt.certificate)
        with pytest.raises(sf.InvalidSetting, match="takes no certificate"):
            sf.BudgetExploration(problem, pi, FLOOR, certificate=learnt.certificate)
        with pytest.raises(sf.InvalidSetting, match="paper's bounds"):
            sf.hand_over(learnt, FLOOR, bounds=sf.Bernstein(), counts=log.counts)
        with pytest.raises(sf.InvalidSetting, match=r"sf.StepMix or sf.EpsMix"):
            sf.hand_over(learnt, FLOOR, sf.BPIUCBVI)
        with pytest.raises(sf.InvalidSetting, match="expected one of"):
            learn_baseline(log, problem, 0.05, "magic")

    def test_a_run_remembers_it_to_the_bit(self, learnt, world):
        """Fused and plain loop agree, with a certificate as without."""
        for kind in (sf.StepMix, sf.EpsMix):
            start = sf.hand_over(learnt, FLOOR, kind)
            agent, begin = replace(start.agent, replan=0.0), start.counts
            fast = sf.simulate(world, agent, 200, seed=3, counts=begin)
            plain = simulate_plainly(world, agent, 200, seed=3, counts=begin)
            assert fast.counts == plain.counts
            assert (fast.violations, fast.regret, fast.sources) == (
                plain.violations,
                plain.regret,
                plain.sources,
            )
            assert fast.sources["baseline"] < 200


class TestWhatIsMissing:
    def test_as_many_episodes_as_are_said_to_be_needed_do(self, world, log):
        """A floor that is not cleared yet is cleared by about as many episodes as was said."""
        problem = log.problem(rewards=world.r, start=0)
        floor = 2.49
        now = sf.robust_vi(log.counts, problem, 0.05)
        assert not now.clears(floor)
        needed = now.episodes_needed(floor)
        assert needed > log.episodes
        from surefoot.logs.methods.learnt import times

        assert now.recompute_lower(times(log.counts, 1.05 * needed / log.episodes)) >= floor
        assert now.recompute_lower(times(log.counts, 0.9 * needed / log.episodes)) < floor
        assert now.episodes_needed(2.6) == np.inf  # more than any policy is worth
        assert "No number of episodes" in now.explain(2.6)
        assert now.episodes_needed(2.0) == log.episodes

    def test_the_pairs_that_bind_go_by_their_labels(self, learnt):
        codebook = sf.Codebook(["a", "b", "c", "d", "e"], ["v", "w", "x", "y", "z"])
        assert "state a, action" in learnt.explain(2.6, codebook)


class TestRest:
    def test_an_early_end_is_worth_nothing_more(self, tmp_path):
        """Half of the episodes end at once; rewards of -1..1 per step. The absorbing state pays
        0, not -1.
        """
        rows = []
        for i in range(400):
            rows.append(f"{i},0,0,0,0.5,1,{int(i % 2)}")
            rows += [] if i % 2 else [f"{i},1,1,0,-1,0,0"]
        log = write_lines(tmp_path / "log.csv", rows, ENDS)
        found = sf.count_log(log, reward_range=(-1.0, 1.0), states=2)
        assert (found.H, found.S, found.absorbing_state, found.episodes) == (2, 3, 2, 400)
        problem = found.problem(rewards="as logged", start=0)
        learnt = sf.robust_vi(found.counts, problem, 0.05)
        true = 0.5 + 0.5 * -1.0
        assert true - 0.3 < learnt.lower < true
        assert found.mean_return == pytest.approx(true)
        by_folds = sf.vi_lcb(found.fold_counts, problem, 0.05)
        assert by_folds.lower < true
        # An online agent of this problem counts the same way.
        agent = sf.StepMix(problem, learnt.policy, 0.1)
        learner = sf.Learner(agent, 0, found.counts, absorbing_state=found.absorbing_state)
        learner.begin()
        learner.act()
        learner.observe(1, 0.5, terminated=True)
        assert learner.end().states.tolist() == [0, 2, 2]


class TestWhatALogDoesNotSay:
    """Each of these was once certified, and false."""

    def test_an_end_at_the_last_step_says_nothing_of_the_others(self, tmp_path):
        """Action 1 pays 1 and ends the episode; it was only tried at the last step. Pooled, nobody
        knows what follows it, which may be the end: it is worth its reward at the last step, and no
        more than that.
        """
        rows = [
            f"{i},{h},0,{int(h == 2)},{int(h == 2)},0,{int(h == 2)}"
            for i in range(200)
            for h in range(3)
        ]
        declared = {"states": "as logged", "reward_range": (0, 1)}
        log = sf.count_log(write_lines(tmp_path / "log.csv", rows, ENDS), **declared)
        by_step = log.problem(rewards="as logged", start=0)
        assert 0.9 < sf.robust_vi(log.counts, by_step, 0.05).lower <= 1.0  # by step, too
        assert log.absorbing_state == 1
        alike = log.problem(rewards="as logged", start=0, stationary=True)
        pooled = log.counts.pool()
        assert (pooled.n_sa[0, 0, 1], pooled.played[0, 0, 1]) == (0, 200)
        assert 0.9 < sf.robust_vi(pooled, alike, 0.05).lower <= 1.0
        # control: a log that says nothing of ends
        unsaid = [row.rpartition(",")[0] for row in rows]
        goes_on = sf.count_log(
            write_lines(tmp_path / "log.csv", unsaid),
            **declared,
        )
        alike = goes_on.problem(rewards="as logged", start=0, stationary=True)
        assert sf.robust_vi(goes_on.counts.pool(), alike, 0.05).lower == 3.0

    def test_an_end_after_which_nothing_can_be_paid_is_refused_where_steps_are_alike(
        self, tmp_path
    ):
        rows = [f"{i},{h},0,0,2,0,{int(h == 2)}" for i in range(20) for h in range(3)]
        log = sf.count_log(
            write_lines(tmp_path / "log.csv", rows, ENDS), states="as logged", reward_range=(1, 3)
        )
        assert log.absorbing_state is None
        assert log.problem(start=0).H == 3
        log.save(tmp_path / "c.npz")
        for found in (log, sf.LogCounts.load(tmp_path / "c.npz")):
            with pytest.raises(sf.InvalidLog, match="20 episodes terminated at the last step"):
                found.problem(stationary=True)

    def test_what_was_never_tried_has_no_upper_bound(self, tmp_path):
        """Only action 0 was tried. Its rewards are known, those of action 1 at least as the
        lowest there is.
        """
        rows = [f"{i},0,0,0,0.5,0,0" for i in range(300)]
        log = sf.count_log(
            write_lines(tmp_path / "log.csv", rows, ENDS), states=1, actions=2, reward_range=(0, 1)
        )
        problem = log.problem(rewards="as logged")
        assert problem.rewards_at_least
        assert problem.r.tolist() == [[[0.5, 0.0]]]
        other = np.array([[[0.0, 1.0]]])
        with pytest.raises(sf.InvalidSetting, match="needs an upper bound"):
            sf.StepMix(problem, other, sf.Relative(0.1))
        plan = sf.StepMix(problem, other, 0.1).plan(log.counts)
        assert plan.upper == 1.0  # H: nothing is known
        with pytest.raises(sf.InvalidSetting, match="at least so much"):
            sf.DOPE(problem, other, 0.1, episodes=10, baseline_value=0.2)
        told = log.problem(rewards=[[0.5, 0.9]])
        assert not told.rewards_at_least
        assert log.problem().unknown.all()

    def test_rewards_that_were_never_seen_twice_are_not_known(self, tmp_path):
        rng = np.random.default_rng(0)
        rows = [f"{i},0,0,{i},{rng.random():.6f},0,0" for i in range(20)]
        log = sf.count_log(
            write_lines(tmp_path / "log.csv", rows, ENDS), states=1, reward_range=(0, 1)
        )
        assert not log.by_pair
        assert log.problem().unknown.all()
        twice = [f"{i},0,0,{i % 10},0.{i % 10},0,0" for i in range(20)]
        assert sf.count_log(write_lines(tmp_path / "log.csv", twice, ENDS)).by_pair

    def test_a_table_in_another_order_is_refused(self, log, world):
        assert log.problem(rewards=world.r, start=0).same_as(world.problem)
        with pytest.raises(sf.InvalidLog, match="order of the codebook"):
            log.problem(rewards=world.r[:, ::-1])

    def test_options_for_logs_are_not_for_counts(self, path, tmp_path):
        run("logs", "count", path, "--out", tmp_path / "c.npz", "--reward-range", 0, 1)
        given = [
            ("--reward-range", -50, 10),
            ("--horizon", 2),
            ("--seed", 3),
            ("--states", 9),
            ("--after-end", 0),
        ]
        for option in given:
            assert f"{option[0]} is for logs" in refused(
                "baseline", tmp_path / "c.npz", *option, "--out", tmp_path / "p"
            )

    def test_what_is_printed_is_proved_as_well(self):
        from surefoot.base.validation import at_least, at_most

        assert at_least(1234567.4) == "1.23456e+06"
        assert at_most(1234561.4) == "1.23457e+06"
        assert (at_least(2.1999999999999997), at_least(2.199999), at_least(-1.23456789)) == (
            "2.2",
            "2.19999",
            "-1.23457",
        )
        assert (at_least(0.0), at_most(0.1), at_least(float("-inf"))) == ("0", "0.1", "-inf")

    def test_folds_are_logged_data_too(self, log, world):
        learnt = sf.vi_lcb(log.folds, log.problem(rewards=world.r, start=0), 0.05)
        agent = sf.StepMix(learnt.problem, learnt.policy, 0.5, bounds=sf.Bernstein())
        with pytest.raises(sf.InvalidCounts, match="logged episodes"):
            agent.plan(learnt.counts)

    def test_premises_are_those_of_the_method(self, log, world, learnt):
        from surefoot.logs.baseline_file import premises

        problem = log.problem(rewards=world.r, start=0)
        by_folds = list(premises(log, sf.vi_lcb(log.folds, problem, 0.05)))
        assert any("a single policy wrote the whole log" in line for line in by_folds)
        assert not any(
            "a single policy wrote the whole log" in line for line in premises(log, learnt)
        )
        assert any("no episode ends before its 3 steps" in line for line in by_folds)
        hidden = sf.robust_vi(log.counts, log.problem(), 0.05)
        assert any("or the reward" in line for line in premises(log, hidden))

    def test_premises_say_what_is_declared_and_what_is_unknown(self, path, log, world):
        from surefoot.logs.baseline_file import premises

        told = "\n".join(
            premises(log, sf.robust_vi(log.counts, log.problem(world.r, start=0), 0.05))
        )
        for words in ("every reward lies in 0..1", "the 5 states are all there are", "or what your "
                                                                                     "table says",
                      "every episode starts in state 0"):  # fmt: skip
            assert f"{words} (declared by you)" in told
        bare = sf.count_log(path, reward_range=(0, 1))
        told = "\n".join(premises(bare, sf.robust_vi(bare.counts, bare.problem(), 0.05)))
        for words in ("which states there are is unknown", "rewards are unknown", "the start is "
                                                                                  "unknown",
                      "whether dynamics or rewards depend on the step is unknown"):  # fmt: skip
            assert words in told
        assert "ends before" not in told  # an early end would be one more thing that was never seen
        masked = log.problem(world.r, start=0, support="as logged", stationary=False)
        told = list(premises(log, sf.robust_vi(log.counts, masked, 0.05)))
        assert "only the transitions of the mask are possible (declared by you)" in told


class TestNewcomers:
    """What people tried first."""

    def test_all_counts_are_not_folds(self, log, world):
        problem = log.problem(rewards=world.r, start=0)
        with pytest.raises(sf.InvalidCounts, match=r"give log\.folds"):
            sf.vi_lcb(log.counts, problem, 0.05)
        assert (
            sf.vi_lcb(log.fold_counts, problem, 0.05).lower
            == sf.vi_lcb(log.folds, problem, 0.05).lower
        )
        with pytest.raises(sf.InvalidCounts, match=r"Give log\.fold_counts"):
            sf.vi_lcb(log.folds, log.problem(), 0.05)
        with pytest.raises(
            sf.InvalidCounts, match=r"start of this problem is unknown.* Give log\.fold_counts"
        ):
            sf.vi_lcb(log.folds, log.problem(world.r), 0.05)

    def test_the_log_itself_and_a_frame(self, log, world):
        with pytest.raises(
            sf.InvalidCounts, match=r"counts is a LogCounts, expected Counts, such as log\.counts"
        ):
            sf.robust_vi(log, log.problem(), 0.05)
        with pytest.raises(
            sf.InvalidSetting, match=r"found dict\. Write a data frame to a file first"
        ):
            sf.count_log({"episode": [1]})

    def test_a_floor_is_in_the_users_units(self, tmp_path):
        wide = sf.count_log(a_wide_log(tmp_path), reward_range=(-3.0, 12.0), states=5, actions=5)
        learnt = sf.robust_vi(wide.counts, wide.problem(), 0.05)
        H = learnt.problem.H
        with pytest.raises(
            sf.InvalidSetting, match=rf"returns lie in {-3 * H}..{12 * H} per episode"
        ):
            learnt.explain(12.0 * H + 1.0)
        assert "The floor of 15 is" in learnt.explain(15.0)
        assert learnt.lower == pytest.approx(15.0 * learnt.rescaled_lower - 3.0 * H)
        assert learnt.lower < learnt.estimate

    def test_the_problem_knows_where_episodes_rest(self, tmp_path):
        rows = [
            f"{i},0,a,x,2,,1" if i % 2 else f"{i},0,a,x,2,a,0\n{i},1,a,x,2,a,0" for i in range(40)
        ]
        path = write_lines(tmp_path / "log.csv", rows, ENDS)
        for states, S in (("as logged", 2), (None, 3)):
            found = sf.count_log(path, reward_range=(-1, 3), states=states)
            assert found.problem("as logged").absorbing_state == found.absorbing_state == 1
            assert found.problem().absorbing_state == 1
            assert (
                sf.Learner(sf.StepMix(found.problem(), sf.uniform(2, S, 1), 0.1), 0).absorbing_state
                == 1
            )
        assert sf.random_mdp(3, 2, 2, seed=0).problem.absorbing_state is None

    def test_several_files_and_columns_in_another_order(self, tmp_path):
        one, two = tmp_path / "1.csv", tmp_path / "2.csv"
        one.write_text("episode,step,state,action,reward,next_state,cost\n1,0,a,true,1.0,a,0.0\n")
        two.write_text("cost,episode,step,state,action,next_state,reward\n0.0,2,0,a,false,a,1.0\n")
        assert sf.count_log([one, two]).mean_return == 1.0
        assert run("logs", "check", one, two).exit_code == 0
        assert sf.count_log(tmp_path / "*.csv").A == 2  # true and false

    def test_a_baseline_is_shown_by_its_labels(self, learnt, tmp_path):
        path = tmp_path / "b.npz"
        sf.Baseline.of(
            learnt, sf.Codebook(["a", "b", "c", "d", "e"], ["v", "w", "x", "y", "z"])
        ).save(path)
        found = run("show", path)
        assert "certified to be worth at least" in " ".join(found.output.split())
        assert "step 1 of 3, state a: " in found.output and "step 3 of 3, state e: " in found.output
        assert "Steps count from 1 here" in found.output
        told = json.loads(run("show", path, "--json").output)
        assert len(told["rules"]) == 15
        assert told["rules"][0]["step"] == 0  # as in arrays
        assert told["delta"] == 0.05

    def test_messages_name_what_is_strange(self, tmp_path):
        path = tmp_path / "log.csv"
        head = "episode,step,state,action,reward,next_state\n1,0,a,x,1.0,a\n"
        for line, words in (
            ('2,0,a,x,"3,50",a\n', r"log\.csv, row 2: column 'reward' is '3,50', expected numbers"),
            ("2,0,a,x", r"log\.csv, row 2 \(line 3\) has 4 fields, expected 6, as in the header"),
        ):
            path.write_text(head + line)
            with pytest.raises(sf.InvalidLog, match=words):
                sf.count_log(path)
        path.write_text("episode,when,state,action,pay,next_state\n1,0,a,x,1.0,a\n")
        with pytest.raises(sf.InvalidLog, match="no column 'step', 'reward'"):
            sf.count_log(path)
        (tmp_path / "folder").mkdir()
        path.rename(tmp_path / "folder" / "log.csv")
        with pytest.raises(sf.InvalidLog, match=r"folder/\*\.csv"):
            sf.count_log(tmp_path / "folder")


def a_wide_log(folder):
    """A log with rewards from -3 to 9."""
    from surefoot.logs.writing import write_log

    n = 500
    rng = np.random.default_rng(0)
    state = np.zeros((n, 4), dtype=np.int64)
    state[:, 1:] = rng.integers(5, size=(n, 3))
    columns = {
        "episode": np.repeat(np.arange(n), 3),
        "step": np.tile(np.arange(3), n),
        "state": state[:, :-1].reshape(-1),
        "action": rng.integers(5, size=3 * n),
        "reward": 3.0 * state[:, :-1].reshape(-1) - 3.0,
        "next_state": state[:, 1:].reshape(-1),
    }
    return write_log(folder / "log.parquet", columns)


def test_a_key_that_comes_late_is_read(tmp_path):
    """DuckDB looks at the first 20,480 lines of JSON for names; the first end comes later."""
    row = dict.fromkeys(HEAD.split(","), 0)
    rows = [json.dumps({**row, "episode": i, "step": h}) for i in range(10_500) for h in (0, 1)]
    last = json.dumps({**row, "episode": 99_999, "terminated": True})
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([*rows, last]))
    with pytest.raises(sf.InvalidLog, match="21,000 rows without terminated"):
        sf.count_log(path)


def test_a_sure_pair_is_sure_only_if_its_reward_was_known_before(log):
    """One possible next state each. b is 0 if rewards were given; if a log paid them, only in
    the absorbing state.
    """
    support = np.zeros((2, 2, 2), dtype=bool)
    support[:, :, 1] = True
    r = np.full((2, 2, 2), 0.5)
    folds = np.zeros((2, 2, 2, 2), dtype=int)
    folds[..., 1] = 10
    given = sf.vi_lcb(folds, sf.Problem(r, support=support), 0.1)
    told = sf.vi_lcb(folds, sf.Problem(r, support=support, rewards_at_least=True), 0.1)
    assert given.lower == pytest.approx(1.0, abs=1e-9)
    assert told.lower == 0.0
