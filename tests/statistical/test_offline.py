"""Every certified value of a policy learnt from a log is at or below its true value.

Exact values, fixed seeds: deterministic. The promise at delta 0.1 is that at most one certificate
in ten fails; the union over pairs makes failures far rarer, and none of the 1,000 of `make
test-full` is seen. With these seeds the outcome is always the same, so an unchanged library raises
no false alarm; a defect that makes 1 % of certificates fail is missed by those 1,000 with
probability 4e-5, one that makes 0.3 % fail with 5 %. The 400 of `make test` miss 2 % with 3e-4 and
1 % with 0.018, on each of two kinds of worlds. Controls: VI-LCB without its bonus, and a quarter of
the KL radius, on worlds with two outcomes.
"""

import math
from itertools import product

import numpy as np
import pytest

import surefoot as sf
from surefoot.base.nodes import EPISODE, PLACES, spread
from surefoot.logs.folds import folds_of
from surefoot.logs.methods.learnt import coin_lower, returns_lower, spread_all

DELTA = 0.1
LOGS = [400, pytest.param(1000, marks=pytest.mark.full)]


def logged(world, mu, n, rng):
    """States (n, H+1) and actions (n, H) of n episodes of mu."""
    H, S, A = mu.shape
    states, actions = np.empty((n, H + 1), dtype=int), np.empty((n, H), dtype=int)
    states[:, 0] = rng.choice(S, size=n, p=world.start)
    for h in range(H):
        s = states[:, h]
        actions[:, h] = np.minimum((rng.random((n, 1)) > mu[h][s].cumsum(-1)).sum(-1), A - 1)
        rows = world.P[h][s, actions[:, h]].cumsum(-1)
        states[:, h + 1] = np.minimum((rng.random((n, 1)) > rows).sum(-1), S - 1)
    return states, actions


def counted(states, actions, S, A, keep=None):
    H = actions.shape[1]
    n_sas = np.zeros((H, S, A, S), dtype=int)
    for h in range(H):
        rows = slice(None) if keep is None else keep == h
        np.add.at(n_sas[h], (states[rows, h], actions[rows, h], states[rows, h + 1]), 1)
    return sf.Counts(n_sas, n_start=np.bincount(states[:, 0], minlength=S), logged=True)


def a_log(world, mu, n, seed):
    """All counts of a log, and those of its folds."""
    states, actions = logged(world, mu, n, np.random.default_rng([7, seed]))
    S, A = world.S, world.A
    whole = counted(states, actions, S, A).claimed_for(world.problem)
    return whole, counted(states, actions, S, A, folds_of(np.arange(n), seed, world.H)).claimed_for(
        world.problem
    )


def failures(methods, worlds, sizes, logs):
    """For each `learn(counts, folds, problem)`: how many certified values are above the truth,
    and their mean.
    """
    bad, lower = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0.0)
    for seed in range(logs):
        world = worlds(seed)
        rng = np.random.default_rng([8, seed])
        mu = rng.dirichlet(np.ones(world.A), size=(world.H, world.S))
        counts, folds = a_log(world, mu, int(rng.choice(sizes)), seed)
        for name, learn in methods.items():
            found = learn(counts, folds, world.problem)
            bad[name] += (
                found.lower > float(world.start @ sf.policy_value(world, found.policy)[0]) + 1e-12
            )
            lower[name] += found.lower / logs
    return bad, lower


def dense(seed):
    return sf.random_mdp(3, 2, 3, seed=seed)


def two_outcomes(seed):
    """One action matters: it leads to the state that pays, or to the other."""
    p = np.random.default_rng([9, seed]).uniform(0.2, 0.8, size=2)
    P = np.zeros((2, 3, 2, 3))
    P[0, :, :, 1], P[0, :, :, 2], P[1, :, :, 2] = p, 1.0 - p, 1.0
    r = np.zeros((2, 3, 2))
    r[1, 1] = 1.0
    return sf.TabularMDP(P, r)


METHODS = {
    "vi_lcb": lambda counts, folds, problem: sf.vi_lcb(folds, problem, DELTA),
    "robust_vi": lambda counts, folds, problem: sf.robust_vi(counts, problem, DELTA),
    "clone": lambda counts, folds, problem: sf.clone(counts, problem, DELTA),
    "spibb": lambda counts, folds, problem: sf.spibb(counts, problem, DELTA),
}


@pytest.mark.parametrize("worlds", [dense, two_outcomes])
@pytest.mark.parametrize("logs", LOGS)
def test_all_certificates_hold(worlds, logs):
    """And they say something: they are not certificates of nothing."""
    bad, lower = failures(METHODS, worlds, (30, 100, 300, 3000), logs)
    assert bad == dict.fromkeys(METHODS, 0)
    assert lower.pop("vi_lcb") > 0.02
    assert min(lower.values()) > 0.2


CONTROLS = {
    "vi_lcb without its bonus": lambda counts, folds, problem: sf.vi_lcb(
        folds, problem, DELTA, c=0.0
    ),
    "a quarter of the KL radius": lambda counts, folds, problem: sf.robust_vi(
        counts, problem, DELTA, sf.KL(scale=0.25)
    ),
}


def test_controls_fail():
    """Two of three certificates, and one in twenty: the 400 logs of the test above miss the
    latter with 1e-9.
    """
    bad, _ = failures(CONTROLS, two_outcomes, (30, 100), 400)
    assert bad["vi_lcb without its bonus"] > 120
    assert bad["a quarter of the KL radius"] > 5


def random_rewards(counts, world, seed):
    """Counts with sums of rewards that are 0 or 1, with the world's means."""
    rng = np.random.default_rng([10, seed])
    paid = rng.binomial(counts.n_sa, world.r)
    return sf.Counts(
        counts.n_sas,
        x_sa=paid * 2**20,
        n_start=counts.n_start,
        logged=True,
        problem=world.problem.forget(rewards=True, start=True),
    )


@pytest.fixture(scope="module")
def logs_of_rewards():
    """300 worlds with random rewards and starts, and a log of each: all its counts, and those of
    its folds.
    """
    made = []
    for seed in range(300):
        P = np.random.default_rng([11, seed]).dirichlet(np.ones(3), size=(2, 3, 2))
        start = np.random.default_rng([12, seed]).dirichlet(np.ones(3))
        world = sf.TabularMDP(P, np.random.default_rng([13, seed]).random((2, 3, 2)), start=start)
        counts, folds = a_log(world, np.full((2, 3, 2), 0.5), int([40, 400, 4000][seed % 3]), seed)
        # One draw of each visit's reward serves both: the folds' visits are among all visits, but
        # each list is i.i.d.
        made.append(
            (world, random_rewards(counts, world, seed), random_rewards(folds, world, seed + 1000))
        )
    return made


@pytest.mark.parametrize("method", METHODS)
def test_unknown_rewards_and_start(method, logs_of_rewards):
    """Both have their own share of delta; the truth is the world's.

    None of 300 may fail: a defect that spoils 1 % of the certificates is missed with probability
    0.05, 2 % with 0.002; a false alarm has 0.03 at a share of 1e-4.
    """
    bad = 0
    for seed, (world, all_of, of_folds) in enumerate(logs_of_rewards):
        found = METHODS[method](all_of, of_folds, world.problem.forget(rewards=True, start=True))
        assert found.lower > 0.0 or seed % 3 < 2 or method == "vi_lcb"
        bad += found.lower > float(world.start @ sf.policy_value(world, found.policy)[0]) + 1e-12
    assert bad == 0


def test_the_logged_policy_is_certified_by_its_returns():
    """The mean return of the log, and a lower bound of what it is worth: below the truth, and close
    to it.

    False alarm: the standard error of 2,000 returns is about 0.01, so a mean off by 0.1 is none;
    the bound's own delta of 0.1, used up, would fail the 300 together, but it is for all numbers of
    episodes at once: at a share of 1e-4 they fail with 0.03. A bound that is too high in 2 % of the
    logs is missed with probability 0.002.
    """
    from surefoot.logs.methods.learnt import logged_lower, logged_value

    bad, gaps = 0, []
    for seed in range(300):
        world = dense(seed)
        mu = np.random.default_rng([14, seed]).dirichlet(np.ones(2), size=(3, 3))
        counts, _ = a_log(world, mu, 2000, seed)
        true = sf.policy_value(world, mu)[0, 0]
        low = logged_lower(world.problem, counts, DELTA)
        bad += low > true
        gaps.append(true - low)
        assert abs(logged_value(world.problem, counts) - true) < 0.1
    assert bad == 0
    assert 0.0 < np.mean(gaps) < 0.15


PAID = {"narrow": ([0.5, 0.625, 0.75], [0.3, 0.3, 0.4]), "coin": ([0.0, 1.0], [0.6, 0.4])}


@pytest.mark.parametrize("name", PAID)
def test_returns_certify_the_logged_policy_exactly_as_often_as_promised(name):
    """All logs of eight episodes, by enumeration: the bound is above the truth in a share of at
    most delta = 0.1.

    No error rates: nothing is drawn. Control: the mean return, which proves nothing, is above it in
    more.
    """
    values, shares = PAID[name]
    problem = sf.Problem(np.zeros((1, 1)), H=1)
    true = float(np.dot(values, shares))

    def share_above(bound):
        found = 0.0
        for times in product(range(9), repeat=len(values)):
            if sum(times) == 8:
                low = bound(np.repeat(values, times))
                found += (
                    math.factorial(8)
                    * math.prod(
                        p**k / math.factorial(k) for p, k in zip(shares, times, strict=True)
                    )
                    * (low > true)
                )
        return found

    assert share_above(lambda returns: returns_lower(problem, returns, DELTA)) <= DELTA
    assert share_above(np.mean) > DELTA


def test_returns_that_vary_little_certify_more_than_their_mean():
    """1,000 returns between 0.5 and 0.75 of what is possible, by both bounds. Control: returns
    of 0 and 1.
    """
    problem = sf.Problem(np.zeros((1, 1)), H=1)
    gaps = {}
    for name, (values, shares) in PAID.items():
        returns = np.repeat(values, np.multiply(shares, 1000).round().astype(int))
        coin = coin_lower(1000.0, float(returns.sum()), math.log(1.0 / DELTA))
        gaps[name] = (returns.mean() - returns_lower(problem, returns, DELTA)) / (
            returns.mean() - coin
        )
    assert gaps["narrow"] < 0.4
    assert 0.8 < gaps["coin"] < 1.25


def test_returns_are_spread_as_one_by_one():
    rng = np.random.default_rng(0)
    for span in (1, 7, 3 * 2**20):
        x = np.append(rng.integers(0, span + 1, size=400), [0, span])
        weights = np.zeros(PLACES, dtype=np.int64)
        for one in x.tolist():
            k, above = spread(one, 0, span)
            weights[k] += EPISODE - above
            weights[k + 1] += above
        assert np.array_equal(spread_all(x, span), weights)


def test_returns_of_another_range_are_refused():
    with pytest.raises(sf.InvalidCounts, match=r"lie in 0.2..1.5, expected 0..1"):
        returns_lower(sf.Problem(np.zeros((1, 1)), H=1), np.array([0.2, 1.5]), DELTA)


@pytest.mark.parametrize("kind", [sf.StepMix, sf.EpsMix])
@pytest.mark.parametrize("warm", [True, False])
def test_an_agent_that_starts_from_a_log_keeps_the_floor(kind, warm):
    """World (5,5,3) seed 1, behaviour eta 10, 5,000 episodes, floor 2.2: no violation, and it
    leaves the baseline.

    Five runs: a defect that spoils a share p of them is missed with probability (1-p)^5. False
    alarm: 0.23 if all of the 0.05 were used up, 0.004 at one run in 1,200, which is what a hard
    world shows (test_kl_promise.py).
    """
    world = sf.random_mdp(5, 5, 3, seed=1)
    mu = sf.boltzmann(sf.solve(world).Q, 10.0)
    for seed in range(5):
        counts, _ = a_log(world, mu, 5000, seed)
        learnt = sf.robust_vi(counts, world.problem, 0.025)
        assert learnt.clears(2.2)
        start = sf.hand_over(learnt, 2.2, kind, counts=counts if warm else None)
        run = sf.simulate(world, start.agent, 1000, seed=seed, counts=start.counts)
        assert run.violations == 0
        assert run.sources["baseline"] < 1000


def test_control_a_false_certificate_lets_the_agent_fall():
    """A certificate of more than the baseline is worth is what the agent believes: then it falls
    below the floor.
    """
    from surefoot.bounds.certificate import fingerprint_of

    world = sf.world("trap")
    pi = sf.check_policy(world.baseline, world.problem)
    false = sf.Certificate(float(world.H), 0.05, fingerprint_of(pi, world.problem))
    floor = world.suggested_floor
    settings = {"delta": 0.05, "pooled": world.stationary}
    agents = [
        sf.EpsMix(world.problem, pi, floor, certificate=given, **settings)
        for given in (None, false)
    ]
    fell = [sf.simulate(world, agent, 300, seed=0).violations for agent in agents]
    assert fell[0] == 0 < fell[1]
