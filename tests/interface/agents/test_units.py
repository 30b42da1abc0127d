"""One unit, the user's: a world in euros and the same world rescaled say the same, number by
number.
"""

import dataclasses
import math

import numpy as np
import pytest

import surefoot as sf
from learners import begun
from surefoot.worlds.exact import value_of

LOW, HIGH, H = -5.0, 20.0, 8
EUROS = sf.Units(LOW, HIGH, name="EUR")
DYNAMICS = np.array(
    [[[0.9, 0.1, 0.0], [0.6, 0.3, 0.1]], [[0.2, 0.7, 0.1], [0.4, 0.4, 0.2]], [[0.1, 0.2, 0.7]] * 2]
)
PAID = np.array([[6.0, 9.0], [1.0, 2.5], [-5.0, -4.0]])  # euros
BASELINE = np.broadcast_to([0.8, 0.2], (H, 3, 2))


@pytest.fixture(scope="module")
def shop():
    return sf.TabularMDP(DYNAMICS, PAID, H=H, units=EUROS)


@pytest.fixture(scope="module")
def rescaled():
    return sf.TabularMDP(DYNAMICS, (PAID - LOW) / (HIGH - LOW), H=H)


def whole(value):
    """A value of a whole episode, rescaled by hand."""
    return (np.asarray(value) - H * LOW) / (HIGH - LOW)


def part(value):
    """A difference of such values, rescaled by hand."""
    return np.asarray(value) / (HIGH - LOW)


# ---- what goes in


def test_a_floor_of_one_euro_is_one_euro(shop, rescaled):
    """Read as 1 of 0..8 it was -15 euros, and "certified" after 99 episodes."""
    agent = sf.StepMix(shop.problem, BASELINE, floor=1.0, pooled=True)
    assert agent.level == pytest.approx(41.0 / 25.0)
    assert "floor=1 EUR of -40..160" in repr(agent)
    assert agent.floor == 1.0
    poor = np.broadcast_to([0.0, 1.0], (H, 3, 2))
    assert sf.value(shop, poor) > 1.0  # else nothing could be certified
    run = sf.simulate(shop, agent, 3000, seed=0)
    assert run.off_baseline is not None
    assert run.violations == 0
    # Control: the floor as it was read, -15 euros, is certified from far fewer episodes.
    as_read = sf.StepMix(shop.problem, BASELINE, floor=-15.0, pooled=True)
    assert sf.simulate(shop, as_read, 3000, seed=0).off_baseline < run.off_baseline / 2


def test_a_baseline_below_one_euro_is_not_certified(shop):
    """The same mistake as a false certificate: a baseline worth less than the floor, in euros."""
    bad = sf.TabularMDP(
        DYNAMICS, PAID - np.array([[8.0, 9.0], [3.0, 3.0], [0.0, 0.0]]), H=H, units=EUROS
    )
    value = sf.value(bad, BASELINE)
    assert -15.0 < value < 1.0
    agent = sf.StepMix(bad.problem, BASELINE, floor=1.0, pooled=True)
    with pytest.warns(sf.FloorAboveBaseline, match="below the floor of 1"):
        run = sf.simulate(bad, agent, 2000, seed=0)
    assert agent.plan(run.counts).safety == "trusted"
    # control: -15 euros is certified
    as_read = sf.StepMix(bad.problem, BASELINE, floor=-15.0, pooled=True)
    assert as_read.plan(sf.simulate(bad, as_read, 2000, seed=0).counts).safety == "certified"


@pytest.mark.parametrize("floor", [-40.1, 160.1, 1e9])
def test_a_floor_outside_the_range_is_refused_with_the_range(shop, floor, assert_refused):
    for make in (
        lambda: sf.StepMix(shop.problem, BASELINE, floor),
        lambda: sf.BudgetExploration(shop.problem, BASELINE, floor),
        lambda: sf.DOPE(shop.problem, BASELINE, floor, baseline_value=50.0, episodes=10),
        lambda: sf.simulate(shop, sf.BPIUCBVI(shop.problem), 10, seed=0, floor=floor),
    ):
        assert_refused(sf.InvalidSetting, r"returns lie in -40\.\.160 EUR per episode", make)


def test_rewards_that_were_rescaled_by_hand_are_not_read_in_silence(assert_refused):
    old = (PAID - LOW) / (HIGH - LOW)
    for make in (
        lambda: sf.Problem(old, H=H, units=EUROS),
        lambda: sf.TabularMDP(DYNAMICS, old, H=H, units=EUROS),
    ):
        assert_refused(
            sf.InvalidModel, r"lies in 0\.\.1.*Problem\.rescaled\(r, units\).*Units\(0, 1\)", make
        )
    assert sf.Problem.rescaled(old, EUROS, H=H).same_as(sf.Problem(PAID, H=H, units=EUROS))


def test_rewards_are_read_in_their_units(assert_refused):
    assert_refused(
        sf.InvalidModel,
        r"r\[2, 1\] is 21, outside the units' range of -5 to 20 EUR a step",
        sf.Problem,
        np.where(PAID == -4.0, 21.0, PAID),
        H=H,
        units=EUROS,
    )
    hidden = np.zeros((3, 2), dtype=bool)
    hidden[2, 1] = True
    # is not read
    some = sf.Problem(np.where(PAID == -4.0, np.nan, PAID), H=H, units=EUROS, unknown=hidden)
    assert some.r[0, :2] == pytest.approx(PAID[:2])
    everywhere = sf.Problem(np.zeros((3, 2)), H=H, units=sf.Units(2.0, 5.0), unknown=True)
    assert (everywhere.lowest, everywhere.highest) == (16.0, 40.0)
    by_next = np.stack([PAID] * 3, axis=-1)
    assert sf.Problem(r_next=by_next, H=H, units=EUROS).r_next_at(0) == pytest.approx(
        (by_next - LOW) / (HIGH - LOW)
    )
    assert_refused(sf.InvalidModel, "name of the units is 3", sf.Units, 0.0, 5.0, name=3)


# ---- what comes out


def test_values_of_worlds(shop, rescaled):
    best, same = sf.solve(shop), sf.solve(rescaled)
    assert whole(best.value) == pytest.approx(same.value)
    left = np.arange(H, -1, -1)[:, None]
    assert (best.V - LOW * left) / 25.0 == pytest.approx(same.V)
    assert (best.Q - LOW * left[:-1, :, None]) / 25.0 == pytest.approx(same.Q)
    assert whole(sf.policy_value(shop, BASELINE)[0]) == pytest.approx(
        sf.policy_value(rescaled, BASELINE)[0]
    )
    assert value_of(shop, BASELINE) == value_of(rescaled, BASELINE)
    assert shop.r == pytest.approx(np.broadcast_to(PAID, (H, 3, 2)))
    again = sf.TabularMDP(DYNAMICS, shop.r[0], H=H, units=EUROS)  # what comes out may go in
    assert again.problem.same_as(shop.problem)
    cost = np.broadcast_to([0.0, 0.5], (3, 2))
    costly, bare = (sf.constrained_optimum(world, 1.0, cost) for world in (shop, rescaled))
    assert whole(costly.value) == pytest.approx(bare.value, abs=1e-6)


RUN_WHOLE = ("floor", "optimum", "baseline", "min_value", "mean_value")
KINDS = {
    "stepmix": lambda problem, units: sf.StepMix(problem, BASELINE, units(2.2), pooled=True),
    "epsmix": lambda problem, units: sf.EpsMix(
        problem, BASELINE, units(2.2), pooled=True, returns=sf.Returns()
    ),
    "relative": lambda problem, units: sf.StepNoMix(problem, BASELINE, units(2.2), pooled=True),
    "bpi": lambda problem, units: sf.BPIUCBVI(problem, pooled=True),
    "ucbvi": lambda problem, units: sf.UCBVI(problem, episodes=4000, pooled=True),
    "budget": lambda problem, units: sf.BudgetExploration(
        problem, BASELINE, units(2.2), pooled=True, baseline_value=units(2.6)
    ),
    "conservative": lambda problem, units: sf.ConservativeUCBVI(
        problem,
        BASELINE,
        units(2.2),
        pooled=True,
        baseline_value=units(2.6),
        learner=sf.UCBVI(problem, episodes=4000, pooled=True),
    ),
    "dope": lambda problem, units: sf.DOPE(
        problem,
        BASELINE,
        units(2.2),
        baseline_value=units(2.6),
        episodes=200,
        pooled=True,
        bounds=sf.MaurerPontilBox(),
    ),
}


@pytest.mark.filterwarnings("ignore::surefoot.FloorAboveBaseline")
@pytest.mark.parametrize("name", KINDS)
def test_runs_and_plans_say_the_same_in_both_units(shop, rescaled, name):
    """Same counts, same exits; each value is the other one's in euros. A field left on the other
    scale is seen.
    """
    episodes = 60 if name == "dope" else 3000
    theirs = KINDS[name](rescaled.problem, float)
    mine = KINDS[name](shop.problem, lambda value: value * 25.0 - 40.0)
    both = [
        sf.simulate(*pair, episodes, seed=1, checkpoints=[episodes])
        for pair in ((shop, mine), (rescaled, theirs))
    ]
    one, other = both
    if mine.in_sum:  # whose account it is, says in which units it is kept
        assert one.counts.account_of != other.counts.account_of
        one.counts.account_of = other.counts.account_of
    assert one.counts == other.counts
    assert one.sources == other.sources
    for field in RUN_WHOLE:
        known = getattr(other, field)
        assert (None if known is None else pytest.approx(known)) == (
            None if known is None else float(whole(getattr(one, field)))
        ), field
    assert part(one.regret) == pytest.approx(other.regret)
    if other.min_cumulative is not None:
        assert part(one.min_cumulative) == pytest.approx(other.min_cumulative)
    assert whole(one.curve.mean) == pytest.approx(other.curve.mean)
    assert whole(one.curve.min) == pytest.approx(other.curve.min)
    assert part(one.curve.regret) == pytest.approx(other.curve.regret)
    one.counts.account_of = getattr(mine, "account_fingerprint", None)
    rng = np.random.default_rng
    plan, known = mine.next_plan(one.counts, rng(0)), theirs.next_plan(other.counts, rng(0))
    for field in ("lower", "upper", "candidates"):
        assert whole(getattr(plan, field)) == pytest.approx(getattr(known, field), abs=1e-9), field
        assert whole(getattr(one.trace, field)) == pytest.approx(
            getattr(other.trace, field), abs=1e-9
        ), field
    assert (plan.rho, plan.h, plan.safety) == (known.rho, known.h, known.safety)
    if mine.floor is not None and plan.certified:
        assert plan.lower >= mine.floor  # no rounding error is between them
    # Every other number of a run is a count, a cost or a time: a new field must say what it is.
    assert {field.name for field in dataclasses.fields(sf.Run)} == EXPECTED_FIELDS


EXPECTED_FIELDS = {
    *(
        "agent",
        "promise",
        "episodes",
        "seed",
        "floor",
        "optimum",
        "baseline",
        "violations",
        "regret",
        "min_value",
    ),
    *(
        "first_mixture",
        "first_optimistic",
        "sources",
        "by_h",
        "curve",
        "counts",
        "seconds",
        "interrupted",
    ),
    *(
        "mean_return",
        "units",
        "min_cumulative",
        "knows_baseline_value",
        "in_sum",
        "budget",
        "baseline_cost",
    ),
    *("max_cost", "trace", "alarm", "history", "relative_floor"),  # the last: as the user gave it
}


def test_forecasts_logs_and_certificates(shop, rescaled):
    mine, theirs = (
        sf.StepMix(world.problem, BASELINE, floor, pooled=True)
        for world, floor in ((shop, 15.0), (rescaled, 2.2))
    )
    one, other = sf.forecast(mine, world=shop), sf.forecast(theirs, world=rescaled)
    assert (whole(one.baseline), whole(one.floor), part(one.kappa)) == pytest.approx(
        (other.baseline, other.floor, other.kappa)
    )
    assert one.lemma == pytest.approx(other.lemma)
    assert [outlook.first_mixture for outlook in one.outlooks] == [
        outlook.first_mixture for outlook in other.outlooks
    ]
    costs = [[binding.cost for binding in found.outlooks[0].holds_back] for found in (one, other)]
    assert part(costs[0]) == pytest.approx(costs[1])
    assert "EUR" in str(one)
    guesses = sf.forecast(mine, kappa=25.0), sf.forecast(theirs, kappa=1.0)
    assert guesses[0].outlooks[0].first_mixture == guesses[1].outlooks[0].first_mixture

    counts = sf.simulate(shop, mine, 500, seed=3).counts
    learnt, known = (sf.robust_vi(counts, world.problem, 0.05) for world in (shop, rescaled))
    assert whole(learnt.lower) == pytest.approx(known.lower) == pytest.approx(learnt.rescaled_lower)
    assert whole(learnt.estimate) == pytest.approx(known.estimate)
    assert learnt.certificate.value == learnt.lower
    middle = (learnt.lower + 160.0) / 2.0
    assert learnt.clears(learnt.lower - 1.0)
    assert not learnt.clears(middle)
    assert learnt.episodes_needed(middle) == known.episodes_needed(float(whole(middle)))
    start = sf.hand_over(learnt, learnt.lower - 1.0)
    assert start.agent.plan(start.counts).safety == "certified"


def test_alarms_are_in_euros(shop, assert_refused):
    agent = sf.StepMix(shop.problem, BASELINE, 60.0)
    watch = sf.Watchdog(0.01).on(agent)
    while not watch.alarmed:
        watch = watch.after(0.0)
    assert watch.alarm.floor == 60.0
    assert watch.alarm.mean_return == pytest.approx(0.0, abs=1e-9)
    assert "The floor is 60 EUR per episode" in str(watch.alarm)
    assert_refused(sf.InvalidEpisode, "outside the range", sf.Watchdog(0.01).on(agent).after, 500.0)


def test_what_comes_out_leads_back():
    """A value in euros, given again, is the value that it came from but for the last bit of the
    coarser of both.
    """
    rng = np.random.default_rng(0)
    for _ in range(50):
        low, high = np.sort(np.round(rng.normal(0.0, 50.0, 2), 2))
        units = sf.Units(float(low), float(high), H)
        for x in rng.random(20) * H:
            coarser = max(math.ulp(x), math.ulp(units.to_user(x)) / units.scale)
            assert abs(units.from_user(units.to_user(x)) - x) <= coarser
    # as floors in saved runs were rescaled
    assert sf.Units(-1.0, 5.0, 4).from_user(1.5) == 5.5 / 6.0


def test_a_rescaled_table_pays_at_every_step(assert_refused):
    """Units that leave a step out are those of a world with a common start: nobody types them."""
    assert_refused(
        sf.InvalidModel,
        r"units are for 2 steps, but the problem has 3\. Leave steps out",
        sf.Problem.rescaled,
        np.full((1, 1), 0.5),
        sf.Units(2.0, 5.0, steps=2),
        H=3,
    )
    for units in (sf.Units(2.0, 5.0), sf.Units(2.0, 5.0, steps=3)):  # controls
        assert sf.Problem.rescaled(np.full((1, 1), 0.5), units, H=3).lowest == 6.0


def test_floors_and_regret_are_shown_with_their_unit():
    world = sf.TabularMDP(
        np.ones((1, 2, 1)), np.array([[3.0, 5.0]]), H=2, units=sf.Units(0, 5, name="EUR")
    )
    agent = sf.EpsMix(world.problem, sf.uniform(2, 1, 2), sf.Below(2.0))
    assert "floor=2 EUR below the baseline," in repr(agent)
    run = sf.simulate(world, agent, 5, seed=0)
    assert f"regret={run.regret:.6g} EUR," in repr(run)
    assert "coin-averaged: a coin chooses one of two policies before each episode" in repr(run)
    bare = sf.simulate(world, sf.StepMix(world.problem, sf.uniform(2, 1, 2), 6.0), 5, seed=0)
    assert "a coin chooses" not in repr(bare)  # control


def test_a_value_is_not_converted_twice_where_counts_are_unclaimed(shop):
    agent = sf.StepMix(shop.problem, BASELINE, 5.0, pooled=True)
    seen = sf.simulate(shop, agent, 500, seed=0).counts
    plan = agent.plan(sf.Counts(seen.n_sas, H=H, s1=0))
    assert plan.safety == "trusted"
    stated = plan.explain().split("this is worth at least ")[1].split(" EUR. ")[0]
    assert float(stated) == pytest.approx(plan.lower, abs=1e-4)


def test_units_are_the_same_whatever_they_are_called():
    four = sf.Problem(PAID, H=4, units=EUROS)
    again = sf.Problem(PAID, H=4, units=sf.Units(-5.0, 20.0, name="euros"))
    assert again.same_as(four)  # a name is for people
    assert sf.Problem(PAID, H=4, units=sf.Units(-5.0, 20.0)).origin == four.origin
    assert sf.Units(-0.0, 1.0).range_text == sf.Units(0.0, 1.0).range_text


def test_a_plain_plan_proves_nothing_in_any_units():
    assert (sf.Plan.plain(BASELINE).lower, sf.Plan.plain(BASELINE).upper) == (-np.inf, np.inf)


def test_what_an_episode_earned_is_the_sum_of_its_rewards():
    """Also where a first step only leads to the start, which pays nothing."""
    world = sf.from_gymnasium("Taxi-v4", horizon=5)
    assert world.problem.units.steps == world.H - 1
    states = [world.s1, 0, 0, 0, 0, 0, 0]
    episode = sf.Episode.of(world.problem, states, [0] * 6)
    assert episode.rewards[0] == 0.0
    assert world.problem.units.to_user(float(episode.learnt.sum())) == pytest.approx(
        float(episode.rewards.sum())
    )
    agent = sf.StepMix(world.problem, sf.uniform(6, world.S, world.A), world.problem.lowest)
    learner = begun(agent, world.s1)
    learner.observe(0, 0.0)  # what it pays is no contradiction of the table
    assert learner.counts.unlike_table == 0


def test_a_bare_episode_whose_rewards_look_rescaled_is_refused(assert_refused):
    """Somebody rescaled them by hand to 0..1: -10 EUR were certified, and -40 were true (50 of
    50).
    """
    units = sf.Units(-40.0, 10.0, name="EUR")
    problem = sf.Problem(np.zeros((1, 1)), H=2, unknown=True, units=units)
    agent, rng = sf.StepMix(problem, np.ones((2, 1, 1)), -10.0), np.random.default_rng(0)
    paid = rng.uniform(-40.0, 0.0, size=(400, 2))
    counts = sf.Counts.zeros(problem)
    for bare in (
        sf.Episode([0, 0, 0], [0, 0], units.of_a_step(paid[0])),
        sf.Episode([0, 0, 0], [0, 0], [0.0, 1.0]),
    ):
        for use in (counts.add, lambda episode: sf.Counts.from_log(problem, [episode])):
            assert_refused(
                sf.InvalidEpisode, r"sf\.Episode\.of\(problem.*units\.step_to_user", use, bare
            )
    assert (counts.episodes, counts.refused) == (0, 2)
    counts = sf.Counts.zeros(problem)
    for x in paid:  # controls
        counts.add(sf.Episode([0, 0, 0], [0, 0], x))
    assert not agent.plan(counts).certified
    # it happens: this way always works
    counts.add(sf.Episode.of(problem, [0, 0, 0], [0, 0], [0.0, 1.0]))
    for more in (sf.Units(0.0, 0.5), sf.Units(0.2, 1.0), sf.Units()):  # nothing to confuse
        sf.Counts.zeros(sf.Problem(np.zeros((1, 1)), H=1, unknown=True, units=more)).add(
            sf.Episode([0, 0], [0], [0.4])
        )
    ten = sf.Problem(np.zeros((1, 1)), H=1, unknown=True, units=sf.Units(0.0, 10.0))
    sf.Counts.zeros(ten).add(sf.Episode([0, 0], [0], [0.0]))  # 0 is 0 in both


def test_a_table_within_a_range_within_0_1_is_read_as_it_is():
    problem = sf.Problem([[0.2, 0.4]], H=2, units=sf.Units(0.0, 0.5))
    assert problem.r_rescaled[0].tolist() == [[0.4, 0.8]]
