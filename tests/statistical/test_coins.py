"""Coins that are nobody else's: beside each rule the wrong one, with which a promise that was
certified is false.

Outcomes are coins of known probability, so the value of every policy, and of every share of them,
is known. All seeds are fixed: nothing here fails by chance. False alarm: a run of the right rule
may fail with probability 0.05 (delta). A miss: the wrong rule puts more than 2,900 of 3,000
episodes below the floor; with another seed, too, it never puts none there. Of 3,000 tosses of a
fair coin the share of heads is within 0.05 of 1/2 but with probability 1e-7; a coin that always
falls the same way is 0.5 away.

The verifiers refuse a coin that falls as it does with probability 1e-9, ever. Of 2,000 sequences of
shares a capital reaches 1/alpha in 2,000 alpha at most, expected; it is asked for that and five
standard deviations: a false alarm of a right rule has probability 1e-6. A miss of the wrong rule:
the capital of a coin that falls twice as often as it should is not above 1e9 in 5,000 tickets.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import surefoot as sf
from surefoot.audit import guard_verifier, verifier
from surefoot.bounds.certificate import fingerprint_of

EPISODES = 3000
# true by construction: each episode is won with this probability
WORTH = {"baseline": 0.9, "c": 0.4}
GUARD = sf.Guard(low=0, high=1, floor=sf.Relative(0.05), stages=())


def shared(rng, what, number):
    """The wrong rule: the next number of the user's generator is the coin."""
    return rng


def guarded(seed, env, coin=None):
    """How many certified episodes are below the floor, by the true values, and how many the
    candidate played.
    """
    coins = np.random.default_rng(seed)
    state, plan = GUARD.admit(GUARD.begin(run="shop"), "c"), None
    below = played = 0
    for _ in range(EPISODES):
        plan = GUARD.next_plan(state, plan)
        value = sum(share * WORTH[name] for name, share in plan.share.items())
        below += plan.certified and value < 0.95 * WORTH["baseline"] - 1e-12
        state, ticket = GUARD.draw(state, plan, coins if coin is None else coin())
        played += ticket.policy == "c"
        state = GUARD.settle(state, ticket, float(env.random() < WORTH[ticket.policy]))
    return below, played


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_guard_whose_coin_and_outcomes_have_one_seed(seed):
    """Both are default_rng(seed): a candidate that only plays where u is small wins whenever it
    plays.
    """
    below, played = guarded(seed, np.random.default_rng(seed))
    assert below == 0
    assert played > 0  # it did leave the baseline, until the candidate was withdrawn


def test_with_numbers_of_the_process_such_a_guard_falls_below_its_floor(monkeypatch):
    """The control: of 3,000 episodes, all certified, 2,946 are below the floor."""
    monkeypatch.setattr("surefoot.guard.guard.coin_generator", shared)
    assert guarded(0, np.random.default_rng(0))[0] == 2946


def test_a_guard_whose_process_draws_from_the_very_generator_of_the_coin():
    """One object for both; and one that is made anew for each episode, for both."""
    rng = np.random.default_rng(0)
    assert guarded(0, rng, lambda: rng)[0] == 0

    class Anew:
        def __init__(self):
            self.k = 0

        def random(self):
            self.k += 1
            return np.random.default_rng([0, self.k]).random()

    numbers = itertools.count(1)
    assert guarded(0, Anew(), lambda: np.random.default_rng([0, next(numbers)]))[0] == 0


def test_a_generator_made_anew_for_each_episode(monkeypatch):
    """From one seed. What is played must be the share that was promised: half, of a mixture and
    of a guard's coin.
    """
    half = sf.EpisodicMixture(*(np.broadcast_to(np.eye(2)[a], (1, 1, 2)) for a in (0, 1)), 0.5)
    plan = sf.Plan(half, "mixture", 1, 0.5, 0.0, 1.0, [0.0], "no floor")

    def seconds():
        return np.mean(
            [not plan.draw(np.random.default_rng(0), episode=k).baseline for k in range(EPISODES)]
        )

    def candidates():
        # the candidate has half of the coin at first
        guard = sf.Guard(low=0, high=1, floor=sf.Below(0.5), stages=())
        state = guard.admit(guard.begin(run="shop"), "c")
        first = guard.plan(state)
        assert first.share["c"] == 0.5
        drawn = []
        for _ in range(EPISODES):
            state, ticket = guard.draw(state, first, np.random.default_rng(0))
            drawn.append(ticket.policy == "c")
        return np.mean(drawn)

    for share in (seconds(), candidates()):
        assert abs(share - 0.5) < 0.05
    monkeypatch.setattr("surefoot.guard.guard.coin_generator", shared)
    monkeypatch.setattr("surefoot.agents.plan.coin_generator", shared)
    assert seconds() in (0.0, 1.0)  # the controls: it always falls the same way
    assert candidates() in (0.0, 1.0)


# the baseline wins with this probability, and by its certificate with at least that
WINS, KNOWN = 0.55, 0.54
PROBLEM = sf.Problem(np.zeros((1, 2)), H=1, unknown=True)


def by_returns(seed):
    """What the returns of the baseline prove of it, where coin and outcome are drawn from one
    seed in each episode.
    """
    baseline = np.array([[[1.0, 0.0]]])
    certificate = sf.Certificate(KNOWN, 0.01, fingerprint_of(baseline, PROBLEM))
    agent = sf.EpsMix(PROBLEM, baseline, 0.4, certificate=certificate)
    counts = sf.Counts.zeros(PROBLEM)
    plan = agent.plan(counts)
    assert 0.2 < plan.rho < 0.3
    for k in range(EPISODES):
        drawn = plan.draw(np.random.default_rng([seed, k]), episode=k)
        u = np.random.default_rng([seed, k]).random()
        won = float(u >= 1.0 - WINS) if drawn.baseline else 0.0
        action = 0 if drawn.baseline else 1
        counts.add(sf.Episode.of(PROBLEM, [0, 0], [action], [won], baseline=drawn.baseline))
    return agent.plan(counts).grounds.by_returns


def test_returns_of_a_baseline_whose_coin_and_outcomes_have_one_seed(monkeypatch):
    """The lower bound of its value, by its returns, is below the truth; and above it with the wrong
    rule: the baseline played where u was large, which is where it wins.
    """
    for seed in range(3):
        assert 0.4 < by_returns(seed) < WINS
    monkeypatch.setattr("surefoot.agents.plan.coin_generator", shared)
    for seed in range(3):
        assert by_returns(seed) > WINS + 0.05


def users_generators(seed):
    """What a user would make of a seed."""
    kinds = (
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.MT19937,
        np.random.SFC64,
    )
    made = [np.random.Generator(kind(seed)) for kind in kinds]
    made += [np.random.default_rng([seed, k]) for k in range(4)]
    made += [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]
    return [*made, np.random.Generator(np.random.Philox(key=seed)), np.random.RandomState(seed)]


def test_no_generator_of_the_same_seed_draws_the_coins():
    """Coins of 53 bits: by chance one of 600,000 numbers agrees with one of 40 coins with
    probability 3e-9.
    """
    from surefoot.base.coins import coin_generator

    for seed in (0, 1, 42):
        coins = {
            float(coin_generator(np.random.default_rng(seed), "run shop", k).random())
            for k in range(40)
        }
        assert len(coins) == 40
        for rng in users_generators(seed):
            assert coins.isdisjoint(rng.random(5000).tolist())


ALPHAS = (0.1, 0.01, 1e-9)


def shares_of(rng):
    """How some plan shares out the coin: to up to four candidates, often very little."""
    weights = rng.dirichlet(np.full(rng.integers(2, 6), 0.3))
    shares = [int(w * guard_verifier.GRID) for w in weights]
    shares[0] += guard_verifier.GRID - sum(shares)
    return shares


def most_won_by_shares(rng, odds=1.0):
    """The largest capital of bets against the tickets of a guard, where candidates are drawn with
    `odds` times the odds of their shares.
    """
    coin, most = guard_verifier.Coin(), 0.0
    for _ in range(20):
        shares = shares_of(rng)
        chances = np.array(shares) * np.r_[1.0, np.full(len(shares) - 1, odds)]
        drawn = rng.choice(len(shares), rng.integers(1, 500), p=chances / chances.sum())
        coin.fell(drawn.tolist(), shares)
        most = max(most, coin.log_capital())
    return most


def most_won_by_coins(rng, odds=1.0):
    """The same of an agent: plans of EpsMix, of which each has a coin for every episode."""
    evidence = verifier.Evidence(SimpleNamespace(is_EpsMix=True, rows=1, H=1))
    most = 0.0
    for _ in range(20):
        n, rho = int(rng.integers(1, 500)), float(rng.beta(0.3, 0.3))
        explored = rng.binomial(n, odds * rho / (1.0 - rho + odds * rho))
        plan = SimpleNamespace(baseline_returns=[n - explored, 0])
        before = SimpleNamespace(rho=rho)
        try:
            evidence.check_coin(plan, n, before)
        except ValueError:
            return np.inf
        bets = np.array(evidence.log_bets)
        most = max(most, float(np.logaddexp.reduce(bets)) - np.log(len(bets)))
    return most


@pytest.mark.parametrize("most_won", [most_won_by_shares, most_won_by_coins])
def test_the_verifiers_believe_a_coin_that_falls_as_it_should(most_won):
    """2,000 sequences of shares. The control: odds that are twice as high are not believed."""
    rng = np.random.default_rng(0)
    won = np.array([most_won(rng) for _ in range(2000)])
    for alpha in ALPHAS:
        allowed = 2000 * alpha + 5 * np.sqrt(2000 * alpha)
        assert (won >= -np.log(alpha)).sum() <= (allowed if alpha > 1e-6 else 0)
    assert (won >= np.log(10)).any()  # it does bet
    doubled = np.array([most_won(rng, 2.0) for _ in range(50)])
    assert (doubled >= verifier.IMPOSSIBLE).all()
    assert verifier.IMPOSSIBLE == guard_verifier.IMPOSSIBLE == pytest.approx(-np.log(1e-9))
