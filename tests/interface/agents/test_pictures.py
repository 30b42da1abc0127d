"""Pictures of runs and plans show the numbers: read back from the axes, and held against what is
known otherwise.
"""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import surefoot as sf
from surefoot.agents.plan import SOURCES
from surefoot.audit import history
from surefoot.base.files import read_arrays, write_arrays
from surefoot.show.live_figures import Sample

STATES, ACTIONS = ("new", "regular"), ("wait", "mail")
EUROS = (-5.0, 20.0)
SHOP_GUARD = sf.Guard(floor=9.0, low=-15.0, high=60.0, unit="EUR")
ACTS = {"baseline": lambda state: 0, "candidate": {"mailer": lambda state: 1}}
QUIET = {"seed": 0, "progress": False}


class Shop(gymnasium.Env):
    """Two kinds of customers; mail earns more, and after `breaks` episodes everything earns 8
    euro less a step.
    """

    observation_space, action_space = Discrete(2), Discrete(2)
    state_names, action_names = STATES, ACTIONS

    def __init__(self, breaks=10**9, fails=None, wild=10**9):
        self.breaks, self.fails, self.wild, self.returns, self._now = breaks, fails, wild, {}, 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._seed, self._step = seed, 0
        self.state = 0
        return 0, {}

    def step(self, action):
        if len(self.returns) == self.fails:
            self.fails = None
            raise RuntimeError("the shop is closed")
        euros = (4.0, 9.0)[action] + 2.0 * self.np_random.standard_normal()
        euros = float(np.clip(euros - (8.0 if len(self.returns) >= self.breaks else 0.0), *EUROS))
        euros -= 1000.0 * (len(self.returns) >= self.wild)
        self._now = euros + (self._now if self._step else 0.0)
        self._step += 1
        self.state = int(self.np_random.random() < 0.5)
        if self._step == 3:
            self.returns[self._seed] = self._now
        return self.state, euros, False, self._step == 3, {}


def agent_for(env, floor=9.0):
    problem = sf.from_gymnasium(
        env, horizon=3, reward_range=EUROS, start=0, stationary=True, unit="EUR"
    )
    baseline = sf.embed_policy(problem, np.array([[0.8, 0.2], [0.8, 0.2]]))
    return sf.EpsMix(problem, baseline, floor, pooled=True)


@pytest.fixture(scope="module")
def played():
    env = Shop()
    agent = agent_for(env)
    return env, agent, sf.learn(env, agent, 700, seed=1)


def test_a_floor_that_is_measured_from_the_baseline_is_drawn_as_estimated():
    env = Shop()
    run = sf.learn(env, agent_for(env, sf.Below(2.0)), 300, seed=1)
    assert run.floor is None
    above, _ = sf.plot_run(run).axes
    floor = labelled(above, "floor, 2 EUR below the baseline").get_ydata()
    mean = labelled(above, "baseline, mean of its").get_ydata()
    np.testing.assert_allclose(floor, np.asarray(mean) - 2.0)
    low, high = above.get_ylim()
    assert low < min(floor)
    assert max(floor) < high


@pytest.fixture(scope="module")
def alarmed():
    env = Shop(breaks=150)
    return sf.learn(env, agent_for(env), 400, seed=1, watchdog=sf.Watchdog(0.01))


def lines_of(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def labelled(axes, words):
    (found,) = (line for label, line in lines_of(axes).items() if words in label)
    return found


class TestHistory:
    def test_it_is_what_the_environment_paid(self, played):
        env, _, run = played
        known = run.history
        returns = np.array(list(env.returns.values()))
        assert known.episodes.sum() == len(returns) == 700
        assert run.off_baseline is not None  # else there is nothing to see
        for k, n, mean, squares, low, high in zip(
            known.episode,
            known.episodes,
            known.mean,
            known.squares,
            known.low,
            known.high,
            strict=True,
        ):
            group = returns[k : k + n]
            assert (low, high) == (group.min(), group.max())
            np.testing.assert_allclose(
                [mean, squares], [group.mean(), ((group - group.mean()) ** 2).sum()], atol=1e-9
            )
        assert dict(zip(SOURCES, known.sources.sum(axis=0), strict=True)) == run.sources
        n, total = run.counts.baseline_returns
        assert known.baseline_episodes.sum() == n
        rescaled = total / 2**20
        own = np.nansum(known.baseline_episodes * known.baseline_mean)
        # rewards are rounded down to 2^-20
        assert own == pytest.approx(25.0 * rescaled - 15.0 * n, abs=1e-4 * n)

    def test_lower_values_are_those_of_the_plans(self, played):
        _, agent, run = played
        known, plan = run.history, agent.plan(run.counts)
        assert known.certified.sum() > 300
        assert known.lower[-1] == pytest.approx(plan.lower, abs=1.0)  # a plan or two later
        certified = known.certified == known.episodes
        assert (known.lower[certified] >= run.floor).all()
        assert (known.lower[known.certified == 0] < run.floor).all()
        assert known.certified[0] == 0  # at first nothing is proved

    @pytest.mark.parametrize("n", [1, 7, 1024, 1025, 5000])
    def test_neighbours_are_put_together_without_a_trace(self, n):
        rng = np.random.default_rng(n)
        x, own = rng.normal(1e6, 3.0, n), rng.random(n) < 0.3
        plan = sf.Plan.plain(np.ones((1, 1, 1)))
        groups = history.Groups()
        for ret, mine in zip(x, own, strict=True):
            groups.add(ret, bool(mine), plan)
        kept = groups.record()
        width = 1
        while -(-n // width) > history.MOST:
            width *= 2
        assert list(kept.episode) == list(range(0, n, width))
        for i, k in enumerate(kept.episode):
            part, of_it = x[k : k + width], x[k : k + width][own[k : k + width]]
            assert (kept.episodes[i], kept.baseline_episodes[i]) == (len(part), len(of_it))
            squares = ((part - part.mean()) ** 2).sum()
            np.testing.assert_allclose(
                [kept.mean[i], kept.squares[i]], [part.mean(), squares], atol=1e-6
            )
            own_mean = of_it.mean() if len(of_it) else np.nan
            np.testing.assert_allclose(kept.baseline_mean[i], own_mean)
        again = history.Groups.from_arrays(groups.arrays(), n)
        for name, array in again.arrays().items():
            np.testing.assert_array_equal(array, groups.arrays()[name])

    def test_a_run_that_goes_on_has_the_same_history(self, played, tmp_path):
        _, agent, whole = played
        path = tmp_path / "run.npz"
        with pytest.raises(RuntimeError):
            sf.learn(Shop(fails=300), agent, 700, seed=1, save=path)
        later = sf.learn(Shop(), agent, 700, seed=1, save=path, resume=True)
        for name in history.History.__dataclass_fields__:
            np.testing.assert_array_equal(
                getattr(later.history, name), getattr(whole.history, name)
            )

    def test_a_damaged_one_is_refused(self, played, tmp_path):
        _, agent, _ = played
        path = tmp_path / "run.npz"
        with pytest.raises(RuntimeError):
            sf.learn(Shop(fails=30), agent, 40, seed=1, save=path)
        _, arrays = read_arrays(path, {"learning": ()})
        damaged = tmp_path / "damaged.npz"
        whole, at, real = arrays["history_whole"], arrays["history_at"], arrays["history_real"]
        for name, wrong in (
            ("history_whole", whole + 1),
            ("history_whole", whole[:-1]),
            ("history_at", at + 1),
            ("history_at", at[:2]),
            ("history_at", at * [1, 3, 1]),
            ("history_real", np.full_like(real, np.inf)),
            ("history_real", real[:, :-1]),
        ):
            write_arrays(damaged, "learning", {**arrays, name: wrong})
            with pytest.raises(sf.InvalidFile, match="its history is damaged"):
                sf.learn(Shop(), agent, 40, seed=1, save=damaged, resume=True)


class TestRun:
    def test_means_baseline_floor_and_lower_values_are_drawn(self, played, tmp_path):
        env, _, run = played
        above, below = sf.plot_run(run, tmp_path / "run.png").axes
        assert (tmp_path / "run.png").stat().st_size > 10_000
        assert above.get_ylabel() == "return per episode (EUR)"
        drawn = labelled(above, "mean return, ")
        n = int(2 * drawn.get_xdata()[0])
        whole = 700 // n
        returns = np.array(list(env.returns.values()))[: whole * n].reshape(whole, n)
        np.testing.assert_allclose(drawn.get_ydata()[:whole], returns.mean(axis=1))
        assert set(labelled(above, "floor 9").get_ydata()) == {9.0}
        n_b, total = run.counts.baseline_returns
        mean = (25.0 * total / 2**20 - 15.0 * n_b) / n_b
        own = labelled(above, "baseline, mean of its")
        assert own.get_ydata()[-1] == pytest.approx(mean, abs=1e-4)
        last = run.history.episode >= drawn.get_xdata()[-2] + n / 2
        lower = labelled(above, "certified lower value").get_ydata()
        assert lower[-1] == run.history.lower[last].min()
        assert labelled(above, "trusted")
        for words in ("first mixture", "first optimistic"):
            when = getattr(run, words.replace(" ", "_"))
            assert set(labelled(above, words).get_xdata()) == {when}
        assert str(run.promise) in below.get_xlabel().replace("\n", " ")
        assert "ALARM" not in above.get_title()  # the control of the next test
        shares = {
            bars.get_label(): sum(bar.get_height() * bar.get_width() for bar in bars)
            for bars in below.containers
        }
        assert shares == pytest.approx(run.sources)

    def test_an_alarm_is_marked_and_nothing_is_certified_after_it(self, alarmed):
        after = alarmed.alarm.episodes
        above, below = sf.plot_run(alarmed).axes
        assert f"ALARM after {after:,} episodes: nothing is promised" in above.get_title()
        assert set(labelled(above, "ALARM").get_xdata()) == {after}
        assert any(set(line.get_xdata()) == {after} for line in below.get_lines())
        known = alarmed.history
        later = known.episode >= after
        assert later.any()
        assert np.isnan(known.lower[later]).all()
        assert not known.certified[later].any()
        assert known.certified[~later].any()  # the control
        lower = labelled(above, "certified lower value")
        assert lower.get_xdata()[~np.isnan(lower.get_ydata())].max() < after

    def test_the_band_is_the_sampling_error_and_never_nothing_by_chance(self):
        x = np.array([1.0] * 5 + [0.0] * 15 + [0.0] * 20 + [1.0, 0.0])
        ones = np.ones(42, dtype=np.int64)
        sample = Sample(ones, x, np.zeros(42), x, x).merged(np.array([0, 20, 40]))
        np.testing.assert_allclose(sample.mean, [0.25, 0.0, 0.5])
        half = 1.96 * np.sqrt(0.25 * 0.75 * 20 / 19 / 20)
        # Of equal returns the rule of three; never beyond what returns there are.
        low, high = sample.band
        np.testing.assert_allclose(low, [0.25 - half, 0.0, 0.0])
        np.testing.assert_allclose(high, [0.25 + half, 3.0 / 20, 1.0])
        np.testing.assert_allclose(sample.so_far.mean, [5 / 20, 5 / 40, 6 / 42])
        np.testing.assert_allclose(sample.so_far.squares[-1], 42 * x.var())
        same = np.full(42, 7.0)  # where nothing varies at all, nothing says how much it could
        low, high = Sample(ones, same, same * 0, same, same).merged(np.array([0])).band
        assert (low[0], high[0]) == (7.0, 7.0)

    def test_simulated_runs_have_exact_values_and_no_band(self):
        world = sf.world("trap")
        agent = sf.StepMix(world.problem, world.baseline, world.suggested_floor)
        run = sf.simulate(world, agent, 3000, seed=0, checkpoints=[100, 1000, 3000])
        above, _ = sf.plot_run(run).axes
        drawn = labelled(above, "mean value of the policies").get_ydata()
        np.testing.assert_allclose(drawn[-1], run.curve.mean[-25:].mean())
        assert not above.collections  # no band
        assert labelled(above, "certified lower value").get_ydata()[-1] == run.trace.lower[-1]

    def test_no_value_is_shown_as_certified_that_is_not(self):
        """Of agents without a floor or with a scaled bonus; of guards, relative floors rest on
        comparisons, and after an alarm nothing is certified. The control: a guard whose floor is
        a number.
        """

        def lower_values(run):
            return [label for label in lines_of(sf.plot_run(run).axes[0]) if "lower value" in label]

        world = sf.world("trap")
        bare = sf.simulate(world, sf.BPIUCBVI(world.problem), 300, seed=0, checkpoints=[300])
        assert "no floor is promised" in lower_values(bare)[0]
        scaled = sf.StepMix(
            world.problem, world.baseline, world.suggested_floor, bounds=sf.KL(scale=0.1)
        )
        run = sf.simulate(world, scaled, 300, seed=0, checkpoints=[300])
        assert lower_values(run) == []
        assert "NOT CERTIFIED" in sf.plot_run(run).axes[0].get_title()
        laws = sf.Outcomes.coin(0.5), sf.Outcomes.coin(0.8)
        for floor, shown in ((0.3, True), (sf.Relative(0.2), False)):
            guard = sf.Guard(floor=floor, low=0.0, high=1.0)
            assert bool(lower_values(sf.simulate_guard(guard, *laws, 2000, seed=0))) == shown
        alarmed = sf.guard_env(Shop(wild=300), SHOP_GUARD, **ACTS, episodes=400, **QUIET)
        assert "ALARM" in sf.plot_run(alarmed).axes[0].get_title()
        assert lower_values(alarmed) == []

    def test_guards_have_the_same_picture(self):
        watched = {"watchdog": sf.Watchdog(0.01), **QUIET}
        run = sf.guard_env(Shop(breaks=500), SHOP_GUARD, **ACTS, episodes=900, **watched)
        assert run.played["mailer"] > 100
        assert f"ALARM after {run.alarm_after:,} episodes" in run.alarm
        above, below = sf.plot_run(run).axes
        assert set(labelled(above, "ALARM").get_xdata()) == {run.alarm_after}
        assert {bars.get_label() for bars in below.containers} == {"baseline", "mailer"}
        quiet = sf.guard_env(Shop(), SHOP_GUARD, **ACTS, episodes=600, **QUIET)
        above, _ = sf.plot_run(quiet).axes
        for name, value in quiet.plan.lower.items():
            drawn = labelled(above, f"{name}: certified lower value").get_ydata()[-1]
            # plans between the ends of groups may have proved a little more
            assert value - 0.2 < drawn <= value + 1e-9
        law = {"good": sf.Outcomes([0, 1], [0.3, 0.7], lost=[0.2, 0.0])}
        guard = sf.Guard(floor=0.3, low=0.0, high=1.0)
        made = sf.simulate_guard(guard, sf.Outcomes.coin(0.5), law, 3000, seed=0)
        assert made.state.open_tickets
        above, _ = sf.plot_run(made).axes
        drawn = labelled(above, "good: certified lower value").get_ydata()
        # a plan may leave the last open tickets out, the picture does not
        assert 0.3 < drawn[-1] <= guard.plan(made.state).lower["good"] + 1e-9

    def test_refusals(self, played, tmp_path, assert_refused):
        _, _, run = played
        guard, silent = sf.Guard(floor=0.3, low=0.0, high=1.0), sf.Outcomes([1.0], [1.0], lost=1.0)
        for wrong, words in (
            ({}, r"Expected a run, as sf\.learn, .*found dict"),
            (replace(run, episodes=0), "no episode"),
            (sf.simulate_guard(guard, silent, silent, 10, seed=0), "has a return yet"),
        ):
            assert_refused(sf.InvalidSetting, words, sf.plot_run, wrong)
        assert_refused(
            sf.InvalidSetting, r"expected one of \.png", sf.plot_run, run, tmp_path / "run.xyz"
        )


class TestPlan:
    def test_cells_say_actions_and_where_they_differ(self, played, tmp_path):
        _, agent, run = played
        plan = agent.plan(run.counts)
        assert plan.source == "optimistic"
        axes = sf.plot_plan(plan, tmp_path / "plan.png").axes[0]
        assert (tmp_path / "plan.png").exists()
        assert [label.get_text() for label in axes.get_yticklabels()] == list(STATES)
        cells = [text.get_text() for text in axes.texts if text.get_text() != "step"]
        assert cells == ["mail\nbaseline: wait 80 %"] * 2
        assert axes.get_title().startswith("EpsMix: optimistic (certified, ")
        np.testing.assert_allclose(axes.collections[0].get_array(), 0.8)

    def test_of_the_baseline_nothing_differs(self, played):
        _, agent, _ = played
        plan = agent.plan(sf.Counts.zeros(agent.problem, pooled=True))
        axes = sf.plot_plan(plan).axes[0]
        assert "wait 80 %" in [text.get_text() for text in axes.texts]
        assert "Every decision is the baseline's." in axes.get_xlabel()

    def test_a_coin_is_said_to_be_one(self, played):
        _, agent, run = played
        fewer = sf.learn(Shop(), agent, run.first_mixture, seed=1)
        plan = agent.plan(fewer.counts)
        assert plan.source == "mixture"
        assert f"with probability {plan.rho:.3g}" in sf.plot_plan(plan).axes[0].get_xlabel()

    def test_of_many_states_those_visited_most_are_drawn(self):
        world = sf.random_mdp(30, 2, 2, seed=0, stationary=True)
        agent = sf.BPIUCBVI(world.problem, pooled=True)
        n_sas = np.zeros((1, 30, 2, 30), dtype=np.int64)
        n_sas[0, 3:, 0, 0] = np.arange(1, 28)
        counts = sf.Counts(n_sas, H=2)
        axes = sf.plot_plan(sf.Plan.plain(sf.uniform(2, 30, 2)), agent=agent, counts=counts).axes[0]
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            str(s) for s in range(6, 30)
        ]
        share = f"{1 - (1 + 2 + 3) / sum(range(28)):.1%}"
        note = axes.get_xlabel().replace("\n", " ")
        assert f"24 of 30 states: those visited most, with {share} of all visits." in note

    def test_refusals(self, played, assert_refused):
        _, agent, _ = played
        plain = sf.Plan.plain(np.ones((1, 1, 1)))
        assert_refused(sf.InvalidSetting, "does not say which agent made it", sf.plot_plan, plain)
        assert_refused(
            sf.InvalidSetting,
            r"policy of shape \(1, 1, 1\), which is not for",
            sf.plot_plan,
            plain,
            agent=agent,
        )
        assert_refused(sf.InvalidSetting, "Expected a plan", sf.plot_plan, agent)
