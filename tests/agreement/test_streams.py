"""The numbers of live episodes: by the published algorithm, the same in any order, and those of
no user's generator.
"""

import hashlib
import itertools

import numpy as np
import pytest
from gymnasium.utils.seeding import np_random

import surefoot as sf
from surefoot.bounds.certificate import fingerprint_of
from surefoot.evidence.tables import STREAM
from surefoot.run.learn import episode_seed
from surefoot.run.streams import COIN, FIRST_ACTION, PLANNING, CounterStream

SEEDS = (0, 1, 7, 2**32, 2**64 + 3, 10**40)
EPISODES, STEPS, NUMBERS = 6, 5, 64

# seed 0, episode 3: the coin, the first action
VECTOR = (0.08392548306274628, 0.004502055535886895)

# ---- the construction, by another hand


def philox(counter, key):
    """Philox4x64-10 (Salmon, Moraes, Dror and Shaw 2011) in Python's whole numbers: a block of
    four words.
    """
    c, k, words = list(counter), list(key), 2**64
    for _ in range(10):
        high0, low0 = divmod(0xD2E7470EE14C6C93 * c[0], words)
        high1, low1 = divmod(0xCA5A826395121157 * c[2], words)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B97F4A7C15) % words, (k[1] + 0xBB67AE8584CAA73B) % words]
    return c


def by_hand(seed, episode, step, numbers):
    """Uniform numbers as docs/gymnasium.md says."""
    digest = hashlib.sha256(b"surefoot live stream 1, seed " + hex(seed)[2:].encode()).digest()
    key = [int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(2)]
    words = itertools.chain.from_iterable(
        philox((block, step, episode, 0), key) for block in itertools.count(1)
    )
    return [(word >> 11) / 2**53 for word in itertools.islice(words, numbers)]


def test_philox_by_hand_gives_the_published_words():
    """Known answers of Random123 for philox4x64-10: all bits 0, all bits 1, digits of pi."""
    ones = 2**64 - 1
    pi = [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89]
    answers = {
        ((0,) * 4, (0,) * 2): "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b",
        (
            (ones,) * 4,
            (ones,) * 2,
        ): "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0",
        (tuple(pi), (0x452821E638D01377, 0xBE5466CF34E90C6C)): (
            "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6"
        ),
    }
    for (counter, key), words in answers.items():
        assert [f"{word:016x}" for word in philox(counter, key)] == words.split()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_stream_is_what_is_documented(seed):
    """At every step, for the largest numbers too, and for more numbers than a block holds."""
    stream = CounterStream(seed)
    for episode, step in ((0, 0), (0, 1), (1, 0), (3, 4), (2**63 + 5, FIRST_ACTION + 999)):
        assert stream.at(episode, step).random(10).tolist() == by_hand(seed, episode, step, 10)
    stream.begin(4)
    assert stream.planning(2).random(10).tolist() == by_hand(seed, 2, PLANNING, 10)
    assert stream.coin().random() == by_hand(seed, 4, COIN, 1)[0]
    assert stream.action(3).random() == by_hand(seed, 4, FIRST_ACTION + 3, 1)[0]
    assert by_hand(seed, 0, 0, 9) != by_hand(seed + 1, 0, 0, 9)  # control


def test_a_number_that_never_changes():
    """The test vector of docs/gymnasium.md."""
    assert (PLANNING, COIN, FIRST_ACTION, STREAM) == (0, 1, 2, "surefoot live stream 1")
    stream = CounterStream(0)
    stream.begin(3)
    assert stream.coin().random() == by_hand(0, 3, 1, 1)[0] == VECTOR[0]
    assert stream.action(0).random() == by_hand(0, 3, 2, 1)[0] == VECTOR[1]


def test_a_learner_draws_its_actions_from_it():
    """The action is the first whose summed probability is above the number of its step."""
    world = sf.random_mdp(S=3, A=3, H=4, seed=0)
    baseline = np.random.default_rng(1).dirichlet(np.ones(3), size=(4, 3))
    learner = sf.Learner(sf.StepMix(world.problem, baseline, floor=3.9), seed=5)
    for k in range(30):
        assert learner.begin().source == "baseline"
        for h in range(4):
            s = learner.state
            u = by_hand(5, k, 2 + h, 1)[0]
            assert learner.act() == np.searchsorted(np.cumsum(baseline[h, s]), u, side="right")
            learner.observe((s + h + k) % 3)
        learner.end()


def test_a_learner_tosses_its_coin_with_it():
    """An explorer that draws, and a coin: each has its own numbers, whatever the other takes."""
    world = sf.random_mdp(S=2, A=2, H=2, seed=0)
    first, second = (np.broadcast_to(np.eye(2)[a], (2, 2, 2)) for a in (0, 1))
    drawn = []

    class Coin:
        problem, floor, pooled, promise = world.problem, None, False, "no floor promised"

        def plan(self, counts, rng):
            drawn.append(rng.random(1 + len(drawn)).tolist())
            return sf.Plan(
                sf.EpisodicMixture(first, second, 0.5),
                "mixture",
                2,
                0.5,
                0.0,
                2.0,
                [0.0],
                "no floor",
            )

    learner = sf.Learner(Coin(), seed=8)
    sides = []
    for k in range(20):
        learner.begin()
        sides.append(learner.act())
        assert sides[-1] == (by_hand(8, k, 1, 1)[0] < 0.5)
        learner.observe(0)
        assert learner.act() == sides[-1]
        learner.observe(0)
        learner.end()
        assert drawn[k] == by_hand(8, k, 0, k + 1)
    assert len(drawn) == 20
    assert set(sides) == {0, 1}


# ---- any order


def test_any_order_gives_the_same_numbers():
    places = [(episode, step) for episode in range(4) for step in range(4)]
    expected = {place: by_hand(3, *place, 3) for place in places}
    assert len({number for numbers in expected.values() for number in numbers}) == 3 * len(places)
    rng, stream = np.random.default_rng(0), CounterStream(3)
    for _ in range(20):
        for i in rng.permutation(len(places)):
            asked = int(rng.integers(1, 4))  # how many are drawn here changes nothing there
            assert stream.at(*places[i]).random(asked).tolist() == expected[places[i]][:asked]
            # half a word: the other half is not left over
            stream.at(*places[i]).integers(5, dtype=np.uint32)
    # control: in one generator the order matters
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    assert [one.random() for h in (0, 1)] != [other.random() for h in (1, 0)][::-1]


def agent_of(kind):
    world = sf.random_mdp(S=3, A=3, H=3, seed=2)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=3.0)
    more = {"explorer": sf.Thompson(world.problem)} if kind == "thompson" else {}
    make = sf.EpsMix if kind == "epsmix" else sf.StepMix
    certificate = sf.Certificate(1.98, 0.01, fingerprint_of(baseline, world.problem))
    return world, make(world.problem, baseline, 1.95, certificate=certificate, **more)


def one_episode(learner, world, stop_after=None):
    """The world draws from the number of the episode alone. `stop_after` so many steps it goes
    wrong.
    """
    rng = np.random.default_rng([9, learner.episodes])
    learner.begin()
    for h in range(world.H):
        if h == stop_after:
            return None
        learner.observe(int(rng.choice(world.S, p=world.P[h, learner.state, learner.act()])))
    return learner.end().actions.tolist()


@pytest.mark.parametrize("kind", ["stepmix", "epsmix", "thompson"])
def test_interleaved_torn_and_restarted_episodes_have_the_same_actions(kind, tmp_path):
    world, agent = agent_of(kind)
    whole = sf.Learner(agent, 4)
    expected, sources = [], set()
    for _ in range(40):
        expected.append(one_episode(whole, world))
        sources.add(whole.plan.source)
    mine, other, played = sf.Learner(agent, 4), sf.Learner(agent, 6), []
    for k in range(40):
        one_episode(other, world)
        if k % 3 == 0:
            one_episode(mine, world, stop_after=k % 2 + 1)
            mine.rewind()
        if k % 7 == 0:  # in the middle of an episode: what was counted is all that is left
            one_episode(mine, world, stop_after=1)
            mine.counts.save(tmp_path / "counts.npz")
            mine = sf.Learner(agent, 4, sf.Counts.load(tmp_path / "counts.npz"))
        played.append(one_episode(mine, world))
    assert played == expected
    assert mine.counts == whole.counts
    assert other.counts != whole.counts  # control: another seed
    assert "mixture" in sources


# ---- nobody else's numbers


def idioms(seed, k, h):
    """Generators that people make of a seed, the number of an episode and that of a step."""
    sequence = np.random.SeedSequence
    child = sequence(seed).spawn(k + 1)[k]
    seeds = (
        seed,
        seed + k,
        [seed, k],
        (seed, k, h),
        sequence(seed),
        child,
        child.spawn(h + 1)[h],
        sequence(seed, spawn_key=(k, h)),
        sequence(seed, spawn_key=(0, k, h)),
        int(sequence(seed).generate_state(k + 1, np.uint64)[k]),
        sequence([seed, k]).generate_state(4),
        episode_seed(seed, k),
    )
    yield from map(np.random.default_rng, seeds)
    yield np.random.default_rng(seed).spawn(k + 1)[k]
    yield np_random(seed + k)[0]
    yield np_random(episode_seed(seed, k))[0]
    random = np.random
    kinds = random.Philox, random.PCG64, random.PCG64DXSM, random.MT19937, random.SFC64
    bits = [kind(one) for kind in kinds for one in (seed, [seed, k], child)]
    bits += [kind(seed).jumped(k) for kind in kinds if kind is not random.SFC64]
    key = seed % 2**128
    bits += [
        random.Philox(key=key, counter=[0, h, k, 0]),
        random.Philox(key=key).jumped(k),
        random.Philox(key=[seed % 2**64, k], counter=[0, 0, h, 0]),
        random.Philox(key=(seed + k) % 2**128),
    ]
    yield from map(random.Generator, bits)
    if seed < 2**32:
        yield np.random.RandomState(seed)
        yield np.random.RandomState([seed, k])


def test_no_ordinary_use_of_a_seed_has_our_numbers():
    """The first 64 numbers of each idiom against those of the first episodes and steps, for every
    seed. 64-bit words would coincide by chance with probability 1e-8; children of the seed do
    coincide.
    """
    ours, children, theirs = set(), set(), set()
    for seed in SEEDS:
        stream = CounterStream(seed)
        for k in range(EPISODES):
            child = np.random.SeedSequence(seed, spawn_key=(k,))
            children |= set(np.random.default_rng(child).random(NUMBERS).tolist())
            for step in range(FIRST_ACTION + STEPS):
                ours |= set(stream.at(k, step).random(NUMBERS).tolist())
        for k, h in itertools.product(range(EPISODES), range(STEPS)):
            for rng in idioms(seed, k, h):
                theirs |= set(rng.random(NUMBERS).tolist())
    # no step has another one's numbers
    assert len(ours) == len(SEEDS) * EPISODES * (FIRST_ACTION + STEPS) * NUMBERS
    assert not ours & theirs
    assert len(children & theirs) == len(children)  # control


# ---- which stream goes on


def test_new_counts_have_the_stream_and_keep_its_name(tmp_path):
    """Also those of a log or a simulation, by way of a file: a learner that starts from them is
    new.
    """
    world, agent = agent_of("stepmix")
    counts, other = (sf.simulate(world, agent, 5, seed=seed).counts for seed in (0, 1))
    for some in (
        counts,
        counts.copy(),
        counts.pool(),
        counts.merge(other),
        sf.Counts.zeros(world.problem),
    ):
        assert some.stream == STREAM
    counts.save(tmp_path / "counts.npz")
    learner = sf.Learner(agent, 3, sf.Counts.load(tmp_path / "counts.npz"))
    learner.begin()
    u = by_hand(3, 5, 2, 1)[0]
    assert learner.act() == np.searchsorted(
        np.cumsum(learner.plan.policy[0, world.s1]), u, side="right"
    )


def test_an_unknown_stream_is_refused(tmp_path):
    world, agent = agent_of("stepmix")
    counts = sf.Counts.zeros(world.problem)
    counts.stream = "surefoot live stream 2"
    counts.save(tmp_path / "counts.npz")
    with pytest.raises(
        sf.InvalidCounts, match=r"stream 2', expected 'surefoot live stream 1'.*Update surefoot"
    ):
        sf.Learner(agent, 3, sf.Counts.load(tmp_path / "counts.npz"))
