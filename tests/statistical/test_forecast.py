"""The forecast against what happens: within a factor of two, for both families of bounds.

By default, with returns as evidence, it is within a factor of 1.5 of the first episode off the
baseline, in ten worlds, from nothing and from a log. Medians of 31 runs: single runs scatter by a
factor of 1.8 at most (one standard deviation) and a median by less than 1.15; of 124 in deep-sea,
where medians of 31 scatter by 1.25. Seen are factors of 0.8 to 1.42. Miss: a forecast that is wrong
by 1.8 everywhere passes in a few worlds, not in all.

For the rest: medians of nine runs are compared. False alarm: single runs scatter most on the trap
(by a factor of 1.8, one standard deviation); there the median of nine other runs is not within the
factor with probability 0.002, in deep-sea, where they scatter by 7 to 18 %, never. Miss: a forecast
wrong by a factor of 4 passes on the trap with 0.003, one that is wrong by less than 2 passes by
design. One run with the paper's bounds scatters by a per mille: no false alarm to speak of, and
wrong by more than 2.01 is seen. Seeds are fixed.
"""

import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

import surefoot as sf
from surefoot.run.forecast import MOST, lemma_finite

SEEDS = range(9)


def agents(name):
    world = sf.world(name)
    for kind in (sf.StepMix, sf.EpsMix):
        yield (
            world,
            kind(
                world.problem,
                world.baseline,
                world.suggested_floor,
                delta=0.1,
                pooled=world.stationary,
            ),
        )


def close(forecast, measured):
    """Within a factor of two, a handful of episodes forgiven where it is a matter of a handful."""
    return forecast <= 2 * measured + 5 and measured <= 2 * forecast + 5


def until(forecast):
    """So many episodes decide whether a run is within a factor of two; what has not come by then
    is too late.
    """
    return math.ceil(2 * forecast) + 7


def median(runs, what):
    """What never came came too late."""
    found = (getattr(run, what) for run in runs)
    return statistics.median(math.inf if when is None else when for when in found)


def medians(world, agent, forecast):
    """Of nine runs that are long enough to judge this forecast: off the baseline, and fully
    optimistic.
    """
    runs = sf.simulate_many(world, agent, until(forecast), SEEDS)
    return [median(runs, what) for what in ("off_baseline", "first_optimistic")]


TEN = (
    *(
        "trap",
        "dosing",
        "river-swim",
        "deep-sea",
        "offers",
        "queue",
        "media-buffer",
        "random-sparse",
        "trap-pit",
    ),
    "trap-long",
)


def off_the_baseline(world, agent, runs, counts=None):
    """The forecast, the median of the first episode off the baseline, and how many runs were
    ever below the floor.
    """
    forecast = (
        sf.forecast(agent, world=world) if counts is None else sf.forecast(agent, counts=counts)
    )
    expected = forecast.outlooks[0].first_mixture
    played = sf.simulate_many(
        world, agent, 3 * expected + 100, range(runs), counts=counts, progress=False
    )
    return expected, median(played, "off_baseline"), sum(run.violations > 0 for run in played)


# With delta = 0.1. None was ever seen to break the promise but in deep-sea, where 2 % do. There,
# more are seen with probability 0.003 where the promise only just holds; so few, with less than
# 0.001 where every third run breaks it.
RUNS = dict.fromkeys(TEN, 31) | {"deep-sea": 124}
MOST_BROKEN = dict.fromkeys(TEN, 0) | {"deep-sea": 22}


@pytest.mark.parametrize("name", TEN)
def test_within_a_factor_of_one_and_a_half_by_default(name):
    world, agent = list(agents(name))[1]
    expected, seen, broken = off_the_baseline(world, agent, RUNS[name])
    assert expected <= 1.5 * seen and seen <= 1.5 * expected, (expected, seen)
    assert broken <= MOST_BROKEN[name]


@pytest.mark.parametrize("name", ["dosing", "random-sparse", "river-swim", "deep-sea"])
def test_from_a_log_too(name):
    """1,000 episodes (300 where more would prove the floor) of another policy: its frequencies
    stand for the world.
    """
    world, agent = list(agents(name))[1]
    mu, rng = (
        0.5 * world.baseline + 0.5 * sf.uniform(world.H, world.S, world.A),
        np.random.default_rng(1),
    )
    n = 1000 if name in ("dosing", "random-sparse") else 300
    counts = sf.Counts.from_log(
        world.problem, [sf.play(world, mu, rng) for _ in range(n)], pooled=agent.pooled
    )
    expected, seen, broken = off_the_baseline(world, agent, RUNS[name], counts)
    assert expected <= 1.5 * seen and seen <= 1.5 * expected, (expected, seen)
    assert broken <= MOST_BROKEN[name]
    # control: the forecast of another agent is not that of this one
    former = replace(agent, returns=None)
    other = sf.forecast(former, counts=counts).outlooks[0].first_mixture
    assert name in ("deep-sea", "river-swim") or other > 1.5 * seen


def test_waiting_times_against_floor_and_delta(tmp_path):
    """A floor nearer to the baseline, or a smaller delta, takes longer; and there is a picture
    of it.
    """
    world, agent = list(agents("dosing"))[1]
    found = sf.waiting_times(agent, world=world)
    for rows in (found.by_floor, tuple(reversed(found.by_delta))):
        waits = [outlook.first_mixture for _, outlook in rows]
        assert waits == sorted(waits, reverse=True) and waits[0] > 2 * waits[-1]
    assert found.forecast.floor == world.suggested_floor
    sf.plot_waiting(found, tmp_path / "waiting.png")
    assert (tmp_path / "waiting.png").stat().st_size > 10_000
    with pytest.raises(sf.InvalidSetting, match="a floor in units of return"):
        sf.waiting_times(replace(agent, floor=sf.Relative(0.1)), world=world)


SLOW = [
    pytest.param(name, marks=pytest.mark.full)
    for name in ("river-swim", "deep-sea", "offers", "queue", "inventory")
]


@pytest.mark.parametrize("name", ["trap", "dosing", *SLOW])
def test_within_a_factor_of_two_with_kl(name):
    """Medians of nine runs; single runs of the trap scatter by about a factor of 1.7."""
    for world, agent in agents(name):
        ours = sf.forecast(agent, world=world).outlooks[0]
        off, optimistic = medians(world, agent, max(ours.first_mixture, ours.first_optimistic))
        assert close(ours.first_mixture, off), (ours, off)
        assert close(ours.first_optimistic, optimistic), (ours, optimistic)


@pytest.mark.parametrize(
    "name", ["trap", *(pytest.param(name, marks=pytest.mark.full) for name in ("dosing", "offers"))]
)
def test_within_a_factor_of_two_with_the_papers_bounds(name):
    """One run of up to 10^8 episodes, in blocks; runs scatter by a per mille there."""
    for world, agent in agents(name):
        paper = sf.forecast(agent, world=world).outlooks[1]
        literal = type(agent)(
            world.problem,
            world.baseline,
            agent.floor,
            delta=0.1,
            pooled=agent.pooled,
            bounds=sf.Bernstein(),
            replan=0.01,
        )
        run = sf.simulate(
            world, literal, until(max(paper.first_mixture, paper.first_optimistic)), seed=0
        )
        assert close(paper.first_mixture, median([run], "off_baseline"))
        assert close(paper.first_optimistic, median([run], "first_optimistic"))


def test_returns_are_part_of_it():
    world = sf.world("deep-sea")
    settings = {"delta": 0.1, "pooled": True}
    plain = sf.EpsMix(
        world.problem, world.baseline, world.suggested_floor, returns=None, **settings
    )
    more = sf.EpsMix(
        world.problem, world.baseline, world.suggested_floor, returns=sf.Returns(), **settings
    )
    sooner, later = (
        sf.forecast(agent, world=world).outlooks[0].first_mixture for agent in (more, plain)
    )
    assert sooner < later
    assert close(sooner, medians(world, more, sooner)[0])


def test_from_counts_it_goes_on_from_there():
    """Frequencies seen stand for the world, and what was seen need not be seen again."""
    world = sf.world("dosing")
    agent = sf.StepMix(world.problem, world.baseline, world.suggested_floor, delta=0.1, pooled=True)
    # what was seen of few returns says little about the margin
    agent = replace(agent, returns=None)
    begun = sf.simulate(world, agent, 1200, seed=3).counts
    left = sf.forecast(agent, counts=begun).outlooks[0].first_mixture
    runs = [sf.simulate(world, agent, until(left), seed=seed, counts=begun) for seed in SEEDS]
    assert close(left, median(runs, "off_baseline"))
    assert left < sf.forecast(agent, world=world).outlooks[0].first_mixture


def test_a_guess_of_kappa():
    """More room, sooner; and it says what it took for the world."""
    world = sf.world("dosing")
    agent = sf.StepMix(world.problem, world.baseline, world.suggested_floor, pooled=True)
    near, far = (sf.forecast(agent, kappa=kappa) for kappa in (0.1, 0.5))
    assert near.outlooks[0].first_mixture > far.outlooks[0].first_mixture
    assert "equally likely" in near.grounds
    assert math.isclose(near.kappa, 0.1)


def test_practically_never_is_said_plainly():
    world = sf.random_mdp(20, 5, 10, seed=0)
    baseline = sf.boltzmann(sf.solve(world).Q, 10.0)
    value = float(sf.policy_value(world, baseline)[0, 0])
    found = sf.forecast(sf.StepMix(world.problem, baseline, value - 0.01), world=world)
    assert found.outlooks[1].first_mixture is None
    assert "practically never" in str(found)
    assert found.lemma > MOST
    below = sf.forecast(sf.StepMix(world.problem, baseline, value + 0.01), world=world)
    assert below.outlooks == ()
    assert "not above the floor" in str(below)


def test_the_lemmas_number_is_its_fixed_point():
    """The smallest K with (4608 e^26/kappa^2 + 2688 e^13 S/kappa) H^3 S A log^2(K+1) <= K."""
    problem = sf.random_mdp(5, 5, 3, seed=0).problem
    K = lemma_finite(problem, 0.5)
    c = (4608 * math.e**26 / 0.25 + 2688 * math.e**13 * 5 / 0.5) * 27 * 25
    assert math.isclose(c * math.log(K + 1) ** 2, K, rel_tol=1e-9)
    assert c * math.log(K / 2 + 1) ** 2 > K / 2  # control: not yet


def test_what_it_refuses():
    world = sf.world("trap")
    agent = sf.StepMix(world.problem, world.baseline, 0.6)
    with pytest.raises(sf.InvalidSetting, match="one of world, counts or kappa"):
        sf.forecast(agent)
    with pytest.raises(sf.InvalidSetting, match=r"one of world, counts or kappa.*world, kappa"):
        sf.forecast(agent, world=world, kappa=0.1)
    with pytest.raises(sf.InvalidSetting, match="with a floor"):
        sf.forecast(sf.BPIUCBVI(world.problem), world=world)
    explorer = sf.StepMix(world.problem, world.baseline, 0.6, explorer=sf.Thompson(world.problem))
    with pytest.raises(sf.InvalidSetting, match="optimistic explorer"):
        sf.forecast(explorer, world=world)
    other = sf.world("trap-long")
    with pytest.raises(sf.InvalidModel, match=r"Build the agent from world.problem"):
        sf.forecast(agent, world=other)


def test_control_a_radius_scaled_by_hand_is_seen():
    """A forecast that did not follow the bounds would miss this: a hundredth of the radius
    leaves at once.
    """
    world = sf.world("dosing")
    settings = {"delta": 0.1, "pooled": True}
    wrong = sf.StepMix(
        world.problem, world.baseline, world.suggested_floor, bounds=sf.KL(scale=0.01), **settings
    )
    right = sf.StepMix(world.problem, world.baseline, world.suggested_floor, **settings)
    soon, due = (
        sf.forecast(agent, world=world).outlooks[0].first_mixture for agent in (wrong, right)
    )
    assert soon < due  # by much: so long as the right one is judged, the runs do leave the baseline
    off = medians(world, right, due)[0]
    assert off < math.inf
    assert not close(soon, off)
    assert np.isfinite(sf.forecast(wrong, world=world).kappa)


def test_it_knows_for_how_long_a_plan_is_kept():
    """Deterministic: with a share of 1 plans are made at episodes 0, 1, 2, 4, 8, ...; planned
    sooner, it leaves sooner.
    """
    world = sf.world("dosing")
    given = world.problem, world.baseline, world.suggested_floor
    often = sf.EpsMix(*given, delta=0.1, pooled=True, replan=0.1)
    assert sf.forecast(often, world=world).outlooks[0].first_mixture < 120
    doubling = sf.EpsMix(*given, delta=0.1, pooled=True, replan=1.0)
    assert sf.forecast(doubling, world=world).outlooks[0].first_mixture == 128
    assert sf.simulate(world, doubling, 300, seed=0).first_mixture in (64, 128, 256)
