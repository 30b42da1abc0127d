"""The plain loop and the fused loop: same seed, same run, to the last bit."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest

import surefoot as sf
from plain_loop import simulate_plainly
from process import python
from surefoot.agents import SpliceAgent
from surefoot.kernels import bets
from surefoot.run.loops import RunContext, loop_for
from surefoot.run.setup import check_setup

SPLICES = sorted(name for name, kind in sf.AGENTS.items() if issubclass(kind, SpliceAgent))


def set_up(name, sizes, share, **settings):
    """A world of these sizes, an agent that keeps this share of the baseline's value there, and
    that floor.
    """
    S, A, H = sizes
    world = sf.random_mdp(S=S, A=A, H=H, seed=3)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=4.0)
    floor = share * sf.value(world, baseline)
    return world, build(name, world, baseline, floor, delta=0.1, **settings), floor


def build(name, world, baseline, floor, **settings):
    if name == "bpi-ucbvi":
        return sf.BPIUCBVI(world.problem, **settings)
    return sf.AGENTS[name](world.problem, baseline, floor, **settings)


# S, A, H: episodes, scale of the bonus, floor as a share of the baseline's value, that reach every
# exit soon
SHORT = {
    (5, 5, 3): (150, 1e-5, 0.5),
    (3, 2, 5): (250, 1e-5, 0.9),
    (1, 1, 1): (40, 1e-4, 0.9),
    (2, 3, 1): (60, 1e-4, 0.9),
    (1, 4, 2): (60, 5e-5, 0.9),
    (4, 1, 2): (60, 1e-5, 0.9),
    (40, 5, 2): (150, 1e-6, 0.4),
}
# A scale small enough that bounds of every kind are met: clipped, in between, and fully optimistic.
LONG = (1500, 1e-4, 0.9)
# where mixtures are among the short runs
MIXED = {"stepmix": [(5, 5, 3), (3, 2, 5), (2, 3, 1), (1, 4, 2), (40, 5, 2)]}
MIXED |= {"epsmix": MIXED["stepmix"], "step-no-mix": [(3, 2, 5), (1, 4, 2)]}
STAYS = {"step-no-mix": [(5, 5, 3), (40, 5, 2)]}  # and where the baseline is not left
BETWEEN = {"stepmix": [(40, 5, 2)], "epsmix": [(40, 5, 2)]}  # or left for mixtures only


@pytest.mark.parametrize("name", SPLICES)
@pytest.mark.parametrize("sizes", SHORT)
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.full)])
def test_plain_is_fused(name, sizes, long, assert_same_run):
    """The short runs pass through all that the long ones do, as is asserted: whatever the
    learner has is played.
    """
    episodes, scale, share = LONG if long else SHORT[sizes]
    world, agent, floor = set_up(name, sizes, share, bounds=sf.Bernstein(scale))
    fused = sf.simulate(world, agent, episodes, seed=11, floor=floor)
    plain = simulate_plainly(world, agent, episodes, seed=11, floor=floor)
    assert_same_run(fused, plain)
    if not long:
        assert (fused.sources["baseline"] > 0) == (name != "bpi-ucbvi")
        assert (fused.sources["mixture"] > 0) == (sizes in MIXED.get(name, []))
        optimistic = sizes not in STAYS.get(name, []) + BETWEEN.get(name, [])
        assert (fused.sources["optimistic"] > 0) == optimistic
    elif name == "stepmix" and sizes == (5, 5, 3):
        assert min(fused.sources.values()) > 0


@pytest.mark.parametrize("name", SPLICES)
@pytest.mark.parametrize("sizes", [(5, 5, 3), (3, 2, 5), (1, 1, 1), (1, 4, 2)])
@pytest.mark.parametrize("episodes", [250, pytest.param(600, marks=pytest.mark.full)])
def test_plain_is_fused_with_kl(name, sizes, episodes, assert_same_run):
    world, agent, floor = set_up(name, sizes, 0.97, replan=0.0)
    fused = sf.simulate(world, agent, episodes, seed=11, floor=floor)
    assert_same_run(fused, simulate_plainly(world, agent, episodes, seed=11, floor=floor))
    assert fused.sources["optimistic"] > 0
    if sizes == (3, 2, 5):
        assert (fused.sources["baseline"] > 0) == (name != "bpi-ucbvi")


@pytest.mark.parametrize("name", ["stepmix", "epsmix"])
def test_every_loop_plans_before_every_episode(name, tmp_path, assert_same_run):
    """In Python, plan by plan (with a ledger) and all in compiled code. Control: a plan may be
    in force for longer.
    """
    world, agent, _ = set_up(name, (5, 5, 3), 0.97, replan=0.0)
    fused = sf.simulate(world, agent, 300, seed=7)
    assert_same_run(fused, simulate_plainly(world, agent, 300, seed=7))
    assert_same_run(fused, sf.simulate(world, agent, 300, seed=7, ledger=tmp_path / "plans.ledger"))
    assert fused.sources["optimistic"] > 0
    longer = replace(agent, replan=0.1)
    assert simulate_plainly(world, longer, 300, seed=7).counts != fused.counts


@pytest.mark.parametrize("name", SPLICES)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.full)])
def test_plain_is_fused_in_a_stationary_world(name, pooled, long, assert_same_run):
    world = sf.random_mdp(S=4, A=2, H=3, seed=0, stationary=True)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=5.0)
    floor = sf.value(world, baseline) - 0.2
    episodes, scale = (1500, 1e-3) if long else (120, 1e-5)
    settings = {"bounds": sf.Bernstein(scale), "delta": 0.1, "pooled": pooled}
    agent = build(name, world, baseline, floor, **settings)
    fused = sf.simulate(world, agent, episodes, seed=5, floor=floor)
    assert_same_run(fused, simulate_plainly(world, agent, episodes, seed=5, floor=floor))
    assert fused.counts.pooled == pooled
    assert fused.sources["optimistic"] > 0
    assert (fused.sources["baseline"] > 0) == (name != "bpi-ucbvi")
    if name in MIXED and not (pooled or long):
        assert fused.sources["mixture"] > 0


@pytest.mark.parametrize("floor", [1e-20, 1e-17, 0.1 + 0.2 - 0.3])
def test_plain_is_fused_where_rho_rounds_to_one(floor, assert_same_run):
    """A floor so small that (L_b - floor) / (L_b - 0) is 1: a mixture whose coin has one side,
    and is not tossed.
    """
    world = sf.random_mdp(3, 2, 2, seed=0)
    agent = sf.EpsMix(world.problem, sf.uniform(2, 3, 2), floor, bounds=sf.Bernstein(0.002))
    fused = sf.simulate(world, agent, 400, seed=0)
    assert_same_run(fused, simulate_plainly(world, agent, 400, seed=0))
    assert fused.sources["mixture"] > 0


def test_another_seed_gives_another_run(paper_world):
    """Control: what is compared above does tell two runs apart."""
    agent = sf.BPIUCBVI(paper_world.problem, bounds=sf.Bernstein(1e-3))
    one, other = (sf.simulate(paper_world, agent, 500, seed=seed) for seed in (1, 2))
    assert one.counts != other.counts
    assert one.regret != other.regret
    assert not np.array_equal(one.curve.mean, other.curve.mean)


def test_epsmix_with_floor_zero_is_bpi_ucbvi_to_the_bit(paper_world):
    """Nothing is below 0, so the coin is never needed; delta' is the same, so the bounds are."""
    baseline = sf.boltzmann(sf.solve(paper_world).Q, eta=10.0)
    bounds = sf.Bernstein(0.01)
    agent = sf.EpsMix(paper_world.problem, baseline, 0.0, delta=0.1, bounds=bounds)
    optimist = sf.BPIUCBVI(paper_world.problem, delta=0.1, bounds=bounds)
    eps, other = (
        sf.simulate(paper_world, each, 30_000, seed=4)
        for each in (agent, replace(agent, floor=2.0))
    )
    bpi = sf.simulate(paper_world, optimist, 30_000, seed=4, floor=0.0)
    assert eps.counts == bpi.counts
    assert eps.regret == bpi.regret
    np.testing.assert_array_equal(eps.curve.mean, bpi.curve.mean)
    assert other.counts != bpi.counts  # control: with a floor they part


@pytest.mark.parametrize("jobs", [1, 2, -1])
def test_the_number_of_workers_changes_nothing(paper_world, jobs, assert_same_run):
    baseline = sf.boltzmann(sf.solve(paper_world).Q, eta=10.0)
    agent = sf.EpsMix(paper_world.problem, baseline, 2.0, delta=0.1, bounds=sf.Bernstein(0.001))
    runs = sf.simulate_many(paper_world, agent, 4000, seeds=range(4), jobs=jobs)
    for seed, run in enumerate(runs):
        assert_same_run(run, sf.simulate(paper_world, agent, 4000, seed=seed))


COMPILED = """
import sys
import numpy as np
import surefoot as sf
sys.path.insert(0, {shared!r})
from plain_loop import simulate_plainly
from surefoot.kernels import episodes, evidence, mixing, splices, worlds

world = sf.random_mdp(5, 5, 3, seed=0)
baseline = sf.boltzmann(sf.solve(world).Q, eta=10.0)
for name in {names}:
    for bounds in (sf.Bernstein(), sf.KL()):
        agent = (
            sf.BPIUCBVI(world.problem, bounds=bounds, replan=0.0)
            if name == "bpi-ucbvi"
            else sf.AGENTS[name](world.problem, baseline, 2.0, bounds=bounds, replan=0.0)
        )
        sf.simulate(world, agent, 5, seed=0)
        simulate_plainly(world, agent, 5, seed=0)
# Rewards that are one row for all steps, and not known: their bounds are one for each.
stationary = sf.random_mdp(5, 5, 3, seed=0, stationary=True)
hidden = stationary.problem.forget(rewards=True)
sf.simulate(stationary, sf.StepMix(hidden, sf.uniform(3, 5, 5), 0.1, replan=0.0), 5, seed=0)
sf.policy_value(world, np.array(baseline))
sf.policy_value(world, baseline.tolist())
families = (episodes.run_episodes, splices.bound_splices, evidence.refresh_all)
others = (episodes.add_episode, mixing.choose, mixing.mix_splices, worlds.policy_value)
print(*(len(kernel.signatures) for kernel in families + others))
"""


def test_kernels_are_compiled_once():
    """One signature a kernel, one per family of bounds where they enter: more would be seconds of a
    first minute. Counted in a process of its own, because other tests compile the same kernels for
    other kinds of counts.
    """
    shared = str(Path(__file__).parents[1] / "shared")
    code = COMPILED.format(names=SPLICES, shared=shared)
    assert python("-c", code).split() == ["2"] * 3 + ["1"] * 4


def test_other_compiled_functions_may_call_kernels():
    """Kernels are compiled as a whole with those they call. A function compiled by numba alone may
    still call them, also once Python has: their parts, which have no address of their own, are not
    confused with its own copies.
    """
    ours = bets.average_bounds(10.0, 4.0, 0.0, 3.0, 1.0, 1e-12)
    theirs = numba.njit(lambda n, x: bets.average_bounds(n, x, 0.0, 3.0, 1.0, 1e-12))
    assert theirs(10.0, 4.0) == ours
    assert 0.0 < ours[0] < 0.4 < ours[1] < 1.0


@pytest.mark.full
def test_a_changed_kernel_is_compiled_anew(tmp_path):
    """The loop inlines the bounds from another file; numba alone would go on using its old
    machine code.
    """
    source = Path(sf.__file__).parent
    shutil.copytree(source, tmp_path / "surefoot", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import surefoot as sf; w = sf.random_mdp(2, 2, 2, 0); a = sf.StepMix(w.problem, "
        "sf.uniform(2, 2, 2), 0.5, bounds=sf.Bernstein(0.01)); print(sf.__file__, sf.simulate(w, "
        "a, 4000, 0).first_mixture)"
    )
    found = []
    for old, new in ((" ", " "), ("22.0 * H * H", "11.0 * H * H")):
        bernstein = tmp_path / "surefoot" / "kernels" / "bernstein.py"
        bernstein.write_text(bernstein.read_text().replace(old, new))
        cache = str(tmp_path / "cache")
        out = python("-c", code, PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR=cache)
        where, first = out.split()
        assert Path(where).is_relative_to(tmp_path)
        found.append(int(first))
    assert found[1] < 0.9 * found[0]


@pytest.mark.parametrize("ledger", [None, "plan by plan"])
def test_a_simulation_leaves_no_memory_behind(paper_world, ledger):
    """numba keeps a reference to each Generator that it is given, for ever where its allocator is
    switched off, as in our kernels: 3 KB for every simulation. Nothing else in a simulation
    outlived it.
    """
    agent = sf.StepMix.paper(paper_world.problem, sf.uniform(3, 5, 5), 1.0)
    setup = check_setup(paper_world, agent, 5, None)
    for seed in range(40):
        context = RunContext.begin(setup, seed, None)
        before = sys.getrefcount(context.rng)
        for _ in loop_for(agent, ledger)(context):
            pass
        # not in the assertion, which holds a reference of its own
        after = sys.getrefcount(context.rng)
        assert after == before
    given = numba.njit(_nrt=False)(lambda rng: rng.random())
    given(context.rng)
    after = sys.getrefcount(context.rng)
    assert after > before  # control: what numba does with a Generator


def test_curve_and_totals_agree(paper_world):
    """The thinned curve loses nothing: its bins add up to the totals. 2,000 bins for 30,001
    episodes: uneven.
    """
    run = sf.simulate(
        paper_world,
        sf.BPIUCBVI(paper_world.problem, bounds=sf.Bernstein(0.01)),
        30_001,
        seed=0,
        floor=2.0,
    )
    assert len(run.curve) <= 2000
    assert run.curve.episodes.sum() == run.episodes == 30_001
    assert run.curve.min.min() == run.min_value
    assert (run.curve.below * run.curve.episodes).sum() == pytest.approx(run.violations, abs=1e-6)
    assert run.violations > 0
    assert run.curve.regret[-1] == pytest.approx(run.regret, rel=1e-12)
    assert sum(run.sources.values()) == run.by_h.sum() == run.episodes


def test_regret_counts_every_episode():
    """One state: every policy's value is known by hand, so the account can be checked by hand."""
    world = sf.TabularMDP(P=np.ones((1, 1, 2, 1)), r=[[[0.25, 0.75]]])
    agent = sf.StepMix.paper(world.problem, [[[1.0, 0.0]]], 0.2)
    run = sf.simulate(world, agent, 10, seed=0)
    assert run.sources == {"baseline": 10, "mixture": 0, "optimistic": 0}
    assert (run.regret, run.min_value, run.violations) == (5.0, 0.25, 0)
    assert run.off_baseline is None
    assert run.mean_value == 0.25
