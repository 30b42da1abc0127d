"""Sparse worlds as users meet them: what is refused and why, environments with many states, and
the large families.
"""

import inspect
import time
import tracemalloc

import gymnasium
import numpy as np
import pytest
import scipy.sparse
from gymnasium.envs.toy_text.frozen_lake import generate_random_map
from numpy.testing import assert_array_equal

import surefoot as sf
from surefoot.model.rows import Rows

S, A, H = 4, 2, 3
EVEN = np.full((S * A, S), 1.0 / S)
R = np.full((S, A), 0.5)


def sparse(P=EVEN, kind=scipy.sparse.csr_array):
    return kind(np.asarray(P))


def changed(place, value, P=EVEN):
    other = P.copy()
    other[place] = value
    return other


def duplicated(values, rows, columns, shape=(S * A, S)):
    return scipy.sparse.coo_array((values, (rows, columns)), shape=shape)


@pytest.mark.parametrize(
    "kind", ["csr_array", "csc_matrix", "coo_array", "lil_matrix", "dok_array", "csr_matrix"]
)
def test_every_format_of_scipy_is_read(kind):
    world = sf.TabularMDP(sparse(kind=getattr(scipy.sparse, kind)), R, H=H)
    assert_array_equal(world.P_rows[0].reshape(S * A, S), EVEN)
    assert world.stationary
    assert sf.value(world, sf.uniform(H, S, A)) == pytest.approx(1.5)


def test_what_was_given_is_not_changed():
    P = sparse()
    P.indices[:S] = P.indices[:S][::-1].copy()  # in no order
    P.has_sorted_indices = False
    before = P.indices.copy()
    world = sf.TabularMDP(P, R, H=H)
    assert_array_equal(P.indices, before)
    assert world.transitions.value.flags.writeable is False
    assert world.transitions.state.flags.writeable is False


def test_duplicates_are_added_up_and_zeros_left_out():
    rows = np.repeat(np.arange(S * A), 3)
    columns = np.tile([2, 1, 2], S * A)
    world = sf.TabularMDP(duplicated(np.tile([0.25, 0.5, 0.25], S * A), rows, columns), R, H=H)
    assert world.transitions.of(0).tolist() == [1, 2]
    assert world.transitions.value[:2].tolist() == [0.5, 0.5]
    zeros = duplicated(np.tile([0.0, 1.0, 0.0], S * A), rows, columns)
    assert sf.TabularMDP(zeros, R, H=H).transitions.of(3).tolist() == [1]


@pytest.mark.parametrize(
    ("P", "settings", "text"),
    [
        (sparse(changed((3, 0), 0.5)), {}, "P sums to 1.25 for state 1, action 1, expected 1"),
        (sparse(changed(5, 0.0)), {}, "P sums to 0 for state 2, action 1"),
        (sparse(changed((2, 1), np.nan)), {}, r"P\[2, 1\] \(state 1, action 0\) is nan"),
        (sparse(changed((2, 1), np.inf)), {}, r"P\[2, 1\] \(state 1, action 0\) is inf"),
        (
            sparse(changed((7, slice(0, 2)), [-0.25, 0.75])),
            {},
            "P is -0.25 for state 3, action 1, next state 0",
        ),
        (
            sparse(EVEN[:7]),
            {},
            r"P has shape \(7, 4\), expected scipy.sparse matrices of shape \(S\*A, S\)",
        ),
        (
            sparse(EVEN[:4]),
            {},
            r"r is for S = 4, A = 2, but P is for S = 4, A = 1\. Expected .* or another P",
        ),
        (sparse(EVEN * (1 + 1e-7)), {}, "Rows must be .* These nearly are: were they rounded"),
        (sparse(EVEN.astype(complex)), {}, "P has dtype complex128, expected real numbers"),
        (sparse(), {"H": None}, "P is one sparse matrix for all steps: give their number with H"),
        (
            [sparse()] * 2,
            {},
            "P has 2 matrices, expected one for each of the H = 3 steps, .* row s\\*A \\+ a is of",
        ),
        (
            [sparse(), EVEN, sparse()],
            {},
            r"P\[1\] is of type ndarray, expected scipy.sparse matrices",
        ),
        (
            [sparse(), sparse(EVEN[:4]), sparse()],
            {},
            r"P\[1\] has shape \(4, 4\) and P\[0\] \(8, 4\), expected the same for every step",
        ),
        (sparse(), {"H": 0}, "H is 0, expected an integer >= 1"),
        (sparse(), {"H": 10**7}, "H is 10000000, expected at most 1000000 steps"),
        (
            sparse(),
            {"support": sparse(changed((0, 1), 0.0) > 0)},
            r"P\[0, 0, 0, 1\] is 0.25, but support says",
        ),
        (
            sparse(),
            {"support": sparse(EVEN[:4] > 0)},
            r"support has shape \(4, 4\), expected \(S\*A, S\)",
        ),
        (
            sparse(),
            {"support": sparse(changed(5, 0.0))},
            "support of state 2, action 1 allows no next state",
        ),
        (
            sparse(),
            {"support": [sparse()] * H},
            "support has a mask for each step, but the problem is stationary",
        ),
        (
            sparse(),
            {"r": None, "r_next": sparse(2 * EVEN + 1)},
            "r_next of state 0, action 0, next state 0 is 1.5",
        ),
    ],
)
def test_bad_matrices_are_refused(P, settings, text, assert_refused):
    assert_refused(sf.SurefootError, text, sf.TabularMDP, P, **({"r": R, "H": H} | settings))


@pytest.mark.parametrize("P", [EVEN.reshape(S, A, S), sparse()], ids=["array", "matrix"])
def test_arrays_and_matrices_may_be_mixed(P):
    paid = np.arange(S * A * S).reshape(S * A, S) / 50
    for r_next in (paid.reshape(S, A, S), scipy.sparse.csr_array(paid)):
        world = sf.TabularMDP(P, r_next=r_next, H=H)
        assert_array_equal(world.P_rows[0].reshape(S * A, S), EVEN)
        assert_array_equal(world.problem.r_next_at(0).reshape(S * A, S), paid)
        assert sf.value(world, sf.uniform(H, S, A)) == pytest.approx(
            0.25 * paid[:A].sum() / A + 2 * paid.mean()
        )


def test_rewards_that_are_not_stored(assert_refused):
    """They pay 0 in the user's units; where 0 is no reward, all that are possible must be
    stored.
    """
    stored = scipy.sparse.csr_array(changed((slice(None), slice(1, None)), 0.0, 40.0 * EVEN))
    world = sf.TabularMDP(sparse(), r_next=stored, H=H, units=sf.Units(-10.0, 10.0))
    assert world.r[0, 0, 0] == pytest.approx(2.5)
    assert float(world.mean_reward(0, 0, 0, 3)) == 0.5
    assert_refused(
        sf.InvalidModel,
        "does not store a reward for every next state that is possible",
        sf.TabularMDP,
        sparse(),
        r_next=stored,
        H=H,
        units=sf.Units(5.0, 10.0),
    )
    loops = scipy.sparse.csr_array(np.repeat(np.eye(S), A, axis=0))
    known = sf.TabularMDP(loops, r_next=7.0 * loops, H=H, units=sf.Units(5.0, 10.0), support=loops)
    assert sf.solve(known).value == pytest.approx(21.0)


def test_sizes_that_do_not_fit_are_refused_before_memory_is_taken(assert_refused):
    """A matrix of 10^9 rows without entries takes no memory in this form; nor does its refusal."""
    wide = scipy.sparse.coo_array(([1.0], ([0], [0])), shape=(10**9, 10**8))
    tracemalloc.start()
    assert_refused(
        sf.InvalidModel,
        r"policies, rewards and values would take about .* GB",
        sf.TabularMDP,
        wide,
        r_next=wide,
        H=50,
    )
    assert_refused(
        sf.InvalidModel, "would take about", sf.world, "grid-traps", rows=10**5, columns=10**5
    )
    assert_refused(
        sf.InvalidModel, "would take about", sf.world, "call-centre", lines=10**6, desks=10**3
    )
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_dense_arrays_of_a_large_world_are_refused_with_what_to_read(assert_refused):
    world = sf.world("grid-traps", rows=70, columns=70).with_support()
    assert world.P_pairs.size == 0
    for read in (lambda: world.P, lambda: world.P_rows):
        assert_refused(sf.InvalidModel, r"Read world\.transitions instead", read)
    with pytest.raises(sf.InvalidModel, match=r"Read problem\.mask instead"):
        _ = world.problem.support
    by_next = scipy.sparse.csr_array(
        (world.transitions.value, (world.entries(0)[0], world.entries(0)[1])), shape=(19600, 4900)
    )
    paid = sf.Problem(r_next=by_next, H=2)
    assert (paid.S, paid.A) == (4900, 4)
    assert_refused(sf.InvalidModel, r"Read problem\.paid instead", paid.r_next_at, 0)


LP_AGENTS = [sf.DOPE, sf.OptPessLP]
DENSE_AGENTS = [sf.UCBVI, sf.BPIUCBVIMenard]


@pytest.mark.parametrize("kind", LP_AGENTS + DENSE_AGENTS)
def test_agents_with_a_number_for_every_next_state_refuse_many_states_before_they_take_memory(
    kind, assert_refused
):
    world = sf.world("grid-traps", rows=70, columns=70)
    known = {"episodes": 9, "accuracy": 0.5, "baseline_value": sf.value(world, world.baseline)}
    known |= {"baseline": world.baseline, "floor": world.suggested_floor, "pooled": True}
    fields = inspect.signature(kind).parameters
    counts = sf.simulate(world, sf.BPIUCBVI(world.problem, pooled=True), 2, seed=0).counts
    tracemalloc.start()
    assert_refused(
        sf.InvalidSetting,
        r"x 4900 x 4 x 4900, expected at most .*StepMix, EpsMix",
        lambda: kind(
            world.problem, **{name: x for name, x in known.items() if name in fields}
        ).plan(counts, np.random.default_rng(0)),
    )
    # policies and the like; a table: 23 GB
    assert tracemalloc.get_traced_memory()[1] < 5 * world.r_rescaled.nbytes
    tracemalloc.stop()


def test_a_problem_may_be_sparse_by_itself(assert_refused):
    mask = sparse(changed((slice(None), 0), 0.0) > 0)
    problem = sf.Problem(R, H=H, support=mask, stationary=True)
    assert problem.knows_support
    assert problem.mask.of(0).tolist() == [1, 2, 3]
    assert "support known" in repr(problem)
    assert not problem.allows(0, 1, 1, 0)
    assert problem.allows(0, 1, 1, 3)
    assert problem.forget(support=True).mask is None
    by_step = sf.Problem(R, H=H, support=[mask] * H)
    assert not by_step.same_as(problem)
    paid = sf.Problem(r_next=sparse(), H=H, stationary=True)
    assert_array_equal(paid.r_next_at(1).reshape(S * A, S), EVEN)
    assert not paid.plain
    assert_refused(
        sf.InvalidSetting, "next state", sf.StepMix.paper, paid, sf.uniform(H, S, A), floor=0.1
    )
    hidden = paid.forget(rewards=True)
    assert hidden.paid is None
    assert hidden.stationary
    assert sf.KL().events(problem, pooled=True) == S * A


def test_a_problem_says_what_its_lists_hold():
    loops = scipy.sparse.eye_array(100, format="csr")
    many = sf.Problem(r_next=2 * loops, H=H, support=loops, units=sf.Units(-2, 2))
    assert isinstance(many.arguments()["r_next"], Rows)
    assert float(many.reward_of(0, 3, 0, 4)) == 0.5
    assert float(many.reward_of(0, 3, 0, 3)) == 1.0
    assert many.knows_support
    assert many.never_left(7)
    assert many.forget(support=True, rewards=True).mask is None
    assert sf.KL().events(many, pooled=False) == 1


def lake(n):
    return gymnasium.make(
        "FrozenLake-v1", desc=generate_random_map(n, seed=1), max_episode_steps=10**4
    )


@pytest.mark.parametrize(
    ("make", "horizon", "states"),
    [
        (lambda: gymnasium.make("Taxi-v4"), 30, 502),
        (lambda: gymnasium.make("FrozenLake8x8-v1"), 100, 65),
        (lambda: lake(64), 130, 4097),
    ],
)
def test_environments(make, horizon, states):
    """Against the model that the environment shows: rows, rewards, ends. No array over all pairs
    of states is made.
    """
    env = make()
    tracemalloc.start()
    started = time.perf_counter()
    world = sf.from_gymnasium(env, horizon=horizon)
    seconds = time.perf_counter() - started
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert states == world.S
    assert used < 200 * 10**6
    assert seconds < 20.0
    assert world.problem.absorbing_state == env.observation_space.n
    units, rng = world.problem.units, np.random.default_rng(0)
    for s in rng.integers(env.observation_space.n, size=40).tolist():
        for a in range(world.A):
            expected, paid = {}, {}
            for p, s_next, reward, terminated in env.unwrapped.P[s][a]:
                place = env.observation_space.n if terminated else s_next
                expected[place] = expected.get(place, 0.0) + p
                paid[place] = paid.get(place, 0.0) + p * reward
            states_found, p_found = world.next_states(world.H - 1, s, a)
            assert dict(zip(states_found.tolist(), p_found.tolist(), strict=True)) == {
                place: p for place, p in sorted(expected.items()) if p > 0.0
            }
            mean = sum(paid.values())
            assert world.r[-1, s, a] == pytest.approx(mean, abs=1e-9 * units.scale)


def test_what_a_large_environment_leaves_unsaid(monkeypatch):
    """What follows from how the problem is built is said of all states, or, where that would be
    too many lists, of two; of the others nothing, not even that no state leads to the common start:
    a wider set of worlds, so lower values still hold.
    """
    monkeypatch.setattr("surefoot.worlds.outcomes.MOST_LISTED", 2**30)
    small = sf.from_gymnasium("Taxi-v4", horizon=5)
    monkeypatch.setattr("surefoot.worlds.outcomes.MOST_LISTED", 0)
    large = sf.from_gymnasium("Taxi-v4", horizon=5)
    assert_array_equal(large.P_rows, small.P_rows)
    assert_array_equal(large.r_rescaled, small.r_rescaled)
    assert large.problem.absorbing_state == small.problem.absorbing_state
    wider = large.problem.support & ~small.problem.support
    assert wider.any()
    assert not wider[..., :501].any()
    assert (small.problem.support <= large.problem.support).all()


@pytest.mark.parametrize(
    ("name", "sizes", "states", "most"),
    [
        ("grid-traps", {}, 36, 3),
        ("grid-traps", {"rows": 100, "columns": 100, "H": 20}, 10_000, 3),
        ("call-centre", {}, 113, 4),
        ("call-centre", {"lines": 40, "desks": 20, "hours": 12}, 10_333, 4),
    ],
)
def test_large_families(name, sizes, states, most):
    world = sf.world(name, **sizes)
    assert states == world.S
    sizes = world.transitions.sizes
    assert 1 <= sizes.min() <= sizes.max() <= most
    value = sf.value(world, world.baseline)
    best = sf.solve(world).value
    assert world.suggested_floor < value < 0.95 * best
    worst = np.broadcast_to(np.eye(world.A)[2], (world.H, world.S, world.A))
    assert sf.value(world, worst) < world.suggested_floor
    assert sf.occupancy(world, world.baseline).sum(axis=(1, 2)) == pytest.approx(
        np.ones(world.H), abs=1e-9
    )


def test_a_grid_by_hand():
    """Two rows and three columns without traps, and one step at a time."""
    world = sf.world("grid-traps", rows=2, columns=3, H=2, traps=0.0, slip=0.2)
    assert dict(
        zip(*(x.tolist() for x in world.next_states(0, 0, 0)), strict=True)
    ) == pytest.approx({0: 0.1, 1: 0.8, 3: 0.1})
    assert dict(
        zip(*(x.tolist() for x in world.next_states(0, 4, 1)), strict=True)
    ) == pytest.approx({3: 0.1, 4: 0.8, 5: 0.1})
    assert world.r[0, :, 0].tolist() == pytest.approx([0.3, 0.3, 0.0, 0.3, 0.65, 0.0])
    assert world.r[0, :, 3].tolist() == pytest.approx([0.0, 0.0, 0.0, 0.3, 0.65, 0.65])


def test_a_call_centre_by_hand():
    """Two lines, two desks, one hour: one usual call, none, or two; all agents sent home, calls
    pile up.
    """
    world = sf.world("call-centre", lines=2, desks=2, hours=1, H=2)
    assert world.S == 10
    assert world.s1 == 1  # nobody waits, one agent
    calls = {0: 0.25, 1: 0.5, 2: 0.25}
    assert int(np.rint(2 * 2 / 3)) == 1
    none = {}  # two wait, no agent, keep: 2, 3 or 4 wait; with more than two the day may be over
    for n, p in calls.items():
        breaks = 0.5 if 2 + n > 2 else 0.0
        none[6] = none.get(6, 0.0) + p * (1 - breaks)
        none[9] = none.get(9, 0.0) + p * breaks
    assert dict(
        zip(*(x.tolist() for x in world.next_states(0, 6, 0)), strict=True)
    ) == pytest.approx(none)
    assert world.r[0, 1, 0] == pytest.approx(0.4 + (0.6 * 0.75 - 0.3) / 2)
    assert (world.r[:, 9] == 0.0).all()


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"rows": 1}, "rows is 1"),
        ({"traps": 1.0}, "traps is 1.0"),
        ({"slip": -0.1}, "slip is -0.1"),
    ],
)
def test_wrong_sizes_of_a_grid(sizes, text, assert_refused):
    assert_refused(sf.InvalidModel, text, sf.world, "grid-traps", **sizes)


def unsound(column=None, end=None):
    """A matrix of 8 pairs and 4 states that scipy takes, with a column or the end of a row beyond
    it.
    """
    columns, ends = np.zeros(8, dtype=int), np.arange(9)
    if column is not None:
        columns[3] = column
    if end is not None:
        ends[5] = end
    return scipy.sparse.csr_array((np.ones(8), columns, ends), shape=(8, 4))


READERS = {
    "support": lambda given: sf.Problem(np.zeros((4, 2)), H=3, support=given),
    "r_next": lambda given: sf.Problem(r_next=given, H=3),
    "P": lambda given: sf.TabularMDP(given, np.zeros((4, 2)), H=3),
    "n_sas": lambda given: sf.Counts(given, H=3),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("wrong", [{"column": 4}, {"column": -1}, {"column": 10**6}, {"end": 99}])
def test_matrices_that_lead_out_of_themselves_are_refused(read, wrong):
    """Control: with every entry in column 0 the same matrix is read."""
    with pytest.raises(sf.SurefootError, match=r"no sound sparse matrix .* Build it again"):
        read(unsound(**wrong))
    assert read(unsound()) is not None


def test_rewards_that_are_not_stored_make_no_bound_looser():
    """As a matrix, and as the table that it stands for: the same plan, to the bit. Control: rewards
    that are left as lists, without a number for each next state, prove less.
    """
    rng = np.random.default_rng(0)
    S, A, H = 6, 2, 3
    table = np.where(rng.random((S, A, S)) < 0.4, rng.random((S, A, S)), 0.0)
    n_sas = rng.poisson(200.0, (H, S, A, S))
    given = scipy.sparse.csr_array(table.reshape(S * A, S))
    lower = []
    for r_next, most in ((table, 2**22), (given, 2**22), (given, 0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("surefoot.model.given_rows.MOST_WRITTEN", most)
            problem = sf.Problem(r_next=r_next, H=H)
        agent = sf.StepMix(problem, sf.uniform(H, S, A), 0.0, delta=0.1, returns=None)
        lower.append(agent.plan(sf.Counts(n_sas)).candidates.tolist())
    assert lower[0] == lower[1]
    assert lower[2][-1] < lower[1][-1]
