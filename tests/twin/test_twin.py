"""Production held against a twin in exact arithmetic: every lower value, every choice, every
mixture, case by case.

A case is one plan: counts, a problem, a baseline, a floor and a learner. Small worlds (S, A, H up
to 3) and a few larger ones, few counts and counts up to 1e9; KL with Dirichlet(1/2) and with a
mixture over supports, pooled or not, with masks, rewards by next state, unknown rewards, known and
unknown starts; the paper's bounds; StepMix, EpsMix, StepNoMix; floors at, between and an ulp beside
the candidates; relative floors; the certificates of logs. What is compared, and how closely, is
said in comparison.py.

What the comparison sees (asserted by the controls below): a radius, or the paper's beta, one
millionth too small; a candidate 1e-11 H too high, and 1e-15 where no backup took a margin off; a
rho one ulp beyond what the candidates allow; a delta that is not divided as it should be; the
paper's printed V_low = <pi, Q_up>. What it does not see: an error that both hands share because the
statement has it, and anything that shows in worlds larger than these alone.

No test here is left to chance: seeds are fixed and nothing is drawn that a bound could miss. False
alarms: none.
"""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import surefoot as sf
from kernel_values import evidence_of
from surefoot import kernels
from surefoot.kernels import kl

from .cases import (
    FAMILIES,
    LEARNERS,
    PRIORS,
    Case,
    Seen,
    plan_of,
    random_case,
    some_between,
    some_counts,
    some_floor,
    some_policy,
    some_rewards,
    some_task,
)
from .comparison import allowance, complaints
from .enclosures import (
    GRID,
    ZERO,
    Between,
    between,
    dirichlet_mixture,
    exp,
    largest,
    log,
    log_dirichlet_mixture,
    log_gamma,
    log_supports_mixture,
    sqrt,
    supports_mixture,
)
from .twin import (
    Literal,
    Row,
    Task,
    chosen,
    exact_policy,
    policy_value,
    radius,
    splice,
    step_mixture,
    worst_mean,
)

HALF = Fraction(1, 2)


# ---- the twin itself -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [Fraction(1, 10**9), Fraction(1, 3), 1 - Fraction(1, 2**60), Fraction(22, 7), Fraction(10**3)],
)
def test_enclosures_hold_what_interval_arithmetic_holds(x):
    """mpmath's own intervals, with more digits, lie inside ours; ours are at most 2^-215 wide,
    relatively.
    """
    iv = mpmath.ctx_iv.MPIntervalContext()
    iv.prec = 320
    wide = iv.mpf(x.numerator) / x.denominator
    point = between(x)
    pairs = [(log(x), iv.log(wide)), (exp(-point), iv.exp(-wide)), (sqrt(point), iv.sqrt(wide))]
    for ours, theirs in pairs:
        lo, hi = (Fraction(*mpmath.libmp.to_rational(end)) for end in theirs._mpi_)
        assert ours.lo <= lo <= hi <= ours.hi
        assert ours.width <= Fraction(32 * max(1, math.ceil(abs(lo))), GRID)


@pytest.mark.parametrize("alpha", [HALF, Fraction(1, 3)])
@pytest.mark.parametrize("counts", [(0, 1), (3, 0, 2), (40, 7, 90), (150, 1, 49)])
def test_mixtures_by_products_and_by_stirling_agree(alpha, counts):
    exact = log(dirichlet_mixture(counts, alpha))
    series = log_dirichlet_mixture([Fraction(n) for n in counts], alpha)
    assert max(exact.lo, series.lo) <= min(exact.hi, series.hi)
    assert series.width < Fraction(1, 2**190)


def test_a_mixture_is_a_law():
    """m(n) is the probability of a sequence: it is the sum of m over what may come next."""
    for counts in ([0, 0], [2, 5], [1, 0, 3]):
        after = [[n + (i == j) for j, n in enumerate(counts)] for i in range(len(counts))]
        for m in (lambda n_i: dirichlet_mixture(n_i, Fraction(1, 3)), supports_mixture):
            assert sum(map(m, after)) == m(counts)
    assert supports_mixture([0, 0, 0]) == 1


@pytest.mark.parametrize("counts", [(0, 1), (3, 0, 2), (0, 0, 90), (150, 1, 49)])
def test_mixtures_over_supports_by_products_and_by_stirling_agree(counts):
    exact, series = (
        log(supports_mixture(counts)),
        log_supports_mixture([Fraction(n) for n in counts]),
    )
    assert max(exact.lo, series.lo) <= min(exact.hi, series.hi)
    assert series.width < Fraction(1, 2**190)


def test_gamma_of_a_third_is_known():
    """2.678938534707747633..., a published constant; Gamma(1/2)^2 is pi."""
    assert abs(float(exp(log_gamma(Fraction(1, 3))).lo) - 2.6789385347077476) < 1e-15
    square = exp(log_gamma(HALF) * 2)
    assert square.lo < Fraction(355, 113) and abs(float(square.lo) - math.pi) < 1e-15


@pytest.mark.parametrize("eps", [Fraction(1, 10**8), Fraction(1, 7), Fraction(3)])
def test_worst_means_that_are_known_in_closed_form(eps):
    """A fair coin: KL(1/2, p) = -log(4 p (1-p)) / 2, so p = (1 - sqrt(1 - exp(-2 eps))) / 2. A coin
    of which only heads were seen: p = exp(-eps).
    """
    V = [between(0), between(1)]
    fair = worst_mean([HALF, HALF], V, between(eps))
    known = (between(1) - sqrt(between(1) - exp(between(-2 * eps)))) * HALF
    assert max(fair.lo, known.lo) <= min(fair.hi, known.hi)
    assert fair.width < Fraction(1, 10**17)
    heads, known = worst_mean([Fraction(0), Fraction(1)], V, between(eps)), exp(between(-eps))
    assert max(heads.lo, known.lo) <= min(heads.hi, known.hi)


def test_the_worst_mean_is_below_every_row_in_the_ball():
    """500 rows near the edge of the ball, in it by exact arithmetic: none has a mean below the
    enclosure's lower end, and the best of them is close to it.
    """
    rng = np.random.default_rng(5)
    counts = [Fraction(4), Fraction(1), Fraction(0)]
    p_hat, V = [n / 5 for n in counts], [Fraction(1), Fraction(1, 4), Fraction(0)]
    eps = radius(counts, HALF, Fraction(1, 20))
    low = worst_mean(p_hat, [between(v) for v in V], eps)
    nearest = Fraction(10)
    for weights in rng.dirichlet([0.5, 0.5, 1.0], size=500):
        row = [Fraction(float(w)) for w in weights]
        row = [w / sum(row) for w in row]
        if all(row[:2]):
            apart = log(p_hat[0] / row[0]) * p_hat[0] + log(p_hat[1] / row[1]) * p_hat[1]
            if apart.hi <= eps.lo:
                mean = sum(w * v for w, v in zip(row, V, strict=True))
                assert mean >= low.lo
                nearest = min(nearest, mean - low.hi)
    assert 0 <= nearest < Fraction(1, 20)


@pytest.mark.parametrize("seed", range(20))
def test_the_kernel_finds_worst_and_best_means(seed):
    """Clipped, wide and narrow balls, unseen worst states, constant V."""
    rng = np.random.default_rng([3, seed])
    for _ in range(10):
        S = int(rng.integers(1, 9))
        p = rng.dirichlet(np.full(S, rng.choice([0.1, 1.0, 10.0])))
        n_i = rng.multinomial(int(10 ** rng.uniform(0, 7)), p)
        V = rng.random(S) * rng.choice([1.0, 20.0]) * (rng.random(S) < 0.8)
        eps, n = float(10 ** rng.uniform(-7, 1.5)), int(n_i.sum())
        p_hat, values = [Fraction(int(x), n) for x in n_i], [between(Fraction(float(v))) for v in V]
        for sign in (1, -1):
            found = kl.worst_mean(n_i / n, V, S, float(sign), eps, 0.0)
            exact = worst_mean(p_hat, [v * sign for v in values], between(Fraction(eps)))
            assert abs(found - float(exact.lo)) <= 1e-10 * max(1.0, V.max())


# ---- mixtures ------------------------------------------------------------------------------------


def rational_row(rng: np.random.Generator, size: int) -> Row:
    parts = [
        Fraction(int(x))
        for x in rng.integers(0, 9, size=size) + np.eye(size, dtype=int)[rng.integers(size)]
    ]
    return [x / sum(parts) for x in parts]


def rational_world(
    rng: np.random.Generator, S: int, A: int, H: int
) -> tuple[list, list, list, list]:
    """P, r and two policies, all rational."""
    P = [[[rational_row(rng, S) for _ in range(A)] for _ in range(S)] for _ in range(H)]
    r = [
        [[Fraction(int(x), 8) for x in rng.integers(0, 9, size=A)] for _ in range(S)]
        for _ in range(H)
    ]
    pi_b, pi_bar = ([[rational_row(rng, A) for _ in range(S)] for _ in range(H)] for _ in range(2))
    return P, r, pi_b, pi_bar


@pytest.mark.parametrize("seed", range(20))
def test_the_value_of_neighbours_mixed_is_linear_exactly(seed):
    """For every h0 and rho: pi^{h0} and pi^{h0-1} differ at one step, and V of their step mixture
    is (1-rho) V + rho W. pi^{H} and pi^{0} differ at all steps: there it is not, which is asserted,
    too.
    """
    rng = np.random.default_rng([seed, 1])
    S, A, H = (int(rng.integers(2, 4)) for _ in range(3))
    P, r, pi_b, pi_bar = rational_world(rng, S, A, H)
    weights = [Fraction(0), Fraction(1, 7), HALF, Fraction(999, 1000), Fraction(1)]
    for h0 in range(1, H + 1):
        safe, bold = splice(pi_b, pi_bar, h0), splice(pi_b, pi_bar, h0 - 1)
        V, W = policy_value(P, r, safe, 0), policy_value(P, r, bold, 0)
        for rho in weights:
            assert policy_value(P, r, step_mixture(safe, bold, rho), 0) == (1 - rho) * V + rho * W
    V, W = policy_value(P, r, pi_b, 0), policy_value(P, r, pi_bar, 0)
    assert policy_value(P, r, step_mixture(pi_b, pi_bar, HALF), 0) != (V + W) / 2


def test_mixing_two_steps_can_be_worth_less_than_both():
    """The same action is needed twice: each policy keeps to one of them and earns 1, their step
    mixture earns 1/2. A certificate that mixed lower values of policies apart at two steps would be
    wrong by a half.
    """
    one, none = Fraction(1), Fraction(0)
    P = [[[[none, one, none], [none, none, one]]] * 3, [[[one, none, none]] * 2] * 3]
    r = [[[none, none]] * 3, [[none, none], [one, none], [none, one]]]
    first, second = ([[row] * 3] * 2 for row in ([one, none], [none, one]))
    assert policy_value(P, r, first, 0) == policy_value(P, r, second, 0) == 1
    assert policy_value(P, r, step_mixture(first, second, HALF), 0) == HALF


# ---- production against the twin -----------------------------------------------------------------


def assert_agreement(case: Case) -> Seen:
    seen = plan_of(case)
    assert complaints(case, seen) == [], case
    return seen


def agree_at_random(batch: int, cases: int) -> dict[str, int]:
    """How many plans took which exit."""
    rng = np.random.default_rng([2023, batch])
    exits = {"baseline": 0, "mixture": 0, "optimistic": 0}
    for _ in range(cases):
        exits[assert_agreement(random_case(rng)).source] += 1
    return exits


IN_FULL = [pytest.param(batch, marks=pytest.mark.full) for batch in range(3, 97)]


@pytest.mark.parametrize("batch", [*range(3), *IN_FULL])
def test_random_cases(batch):
    """300 cases, and 9,400 more in test-full; every batch has every exit."""
    assert min(agree_at_random(batch, 100).values()) > 0


@st.composite
def odd_cases(draw):
    """Cases that a random draw would hardly find: tiny, equal and extreme numbers side by side."""
    S, A, H = (draw(st.integers(1, 3)) for _ in range(3))
    family, learner = draw(st.sampled_from(FAMILIES)), draw(st.sampled_from(list(LEARNERS)))
    pooled = draw(st.booleans())
    rows = 1 if pooled else H

    def array(shape, elements):
        size = math.prod(shape)
        return np.array(draw(st.lists(elements, min_size=size, max_size=size))).reshape(shape)

    count = st.one_of(st.integers(0, 3), st.sampled_from([0, 1, 10, 10**5, 10**9]))
    share = st.one_of(
        st.sampled_from([0.0, 0.5, 1.0, 1e-300, 1.0 - 2.0**-53, 1e-9]), st.floats(0.0, 1.0)
    )
    n_sas = array((rows, S, A, S), count).astype(np.int64)
    kind = (
        draw(st.sampled_from(["known", "known", "by next state", "unknown"]))
        if family != "Bernstein"
        else "known"
    )
    task = Task(
        H,
        S,
        A,
        draw(st.sampled_from([0.05, 0.5, 1e-6, 0.99])),
        pooled,
        n_sas,
        None,
        start=np.eye(S)[0],
    )
    if family != "Bernstein" and draw(st.booleans()):
        task = replace(task, start=None, n_start=array((S,), count).astype(np.int64))
    if kind == "by next state":
        task = replace(task, r_next=array((H, S, A, S), share).astype(float))
    else:
        task = replace(task, r=array((H, S, A), share).astype(float))
    if kind == "unknown":
        played = n_sas.sum(axis=-1)
        if pooled and H > 1:
            played = played + array((rows, S, A), count).astype(np.int64)
        sums = np.floor(array((rows, S, A), share) * played * 2.0**20).astype(np.int64)
        inner = some_between(sums, played, draw(st.sampled_from([0.0, 0.5, 1.0])))
        task = replace(
            task, unknown=np.ones((H, S, A), dtype=bool), played=played, x_sa=sums, z_sa=inner
        )
    weights = (
        array((H, S, A), st.integers(0, 3)) + np.eye(A, dtype=int)[draw(st.integers(0, A - 1))]
    )
    case = Case(task, weights / weights.sum(axis=-1, keepdims=True), learner, family, 0.0)
    if draw(st.integers(0, 7)) == 0:
        return replace(case, max_loss=draw(st.sampled_from([0.01, 0.5, 0.99])))
    L = [float(x) for x in case.agent(0.0).plan(case.counts).candidates]
    return replace(case, floor=some_floor(np.random.default_rng(draw(st.integers(0, 2**20))), L, H))


HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(
    max_examples=80, derandomize=True, database=None, deadline=None, suppress_health_check=HEALTH
)
@given(odd_cases())
def test_odd_cases(case):
    assert_agreement(case)


@pytest.mark.full
@settings(
    max_examples=2000, derandomize=True, database=None, deadline=None, suppress_health_check=HEALTH
)
@given(odd_cases())
def test_more_odd_cases(case):
    assert_agreement(case)


# ---- larger worlds: more states, more steps, more pairs than the kernels back up together --------

SIZES = [(5, 5, 3), (4, 3, 7), (8, 2, 3), (40, 7, 2), (2, 130, 2)]  # S, A, H
FEW = 8  # states up to which all supports can be listed


def halfway(size, family: str, learner: str, pooled: bool) -> Case:
    """Random counts by which a safer candidate is worth more, and the floor halfway up to it. If
    none of 30 tables is like that, the floor is H/2.
    """
    S, A, H = size
    rng = np.random.default_rng([*size, pooled])
    for _ in range(30):
        n_sas = some_counts(rng, (1 if pooled else H, S, A, S), family)
        start = np.eye(S)[rng.integers(S)]
        task = Task(H, S, A, 0.1, pooled, n_sas, some_rewards(rng, (H, S, A)), start=start)
        case = Case(task, some_policy(rng, H, n_sas.sum(axis=-1)), learner, family, H / 2)
        L = candidates_of(case)
        climbs = [c for c in range(1, len(L)) if L[c] > max(L[:c]) + 1e-3]
        if climbs:
            return replace(case, floor=(L[climbs[-1]] + max(L[: climbs[-1]])) / 2)
    return case


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_larger_worlds(size, learner, pooled):
    families = FAMILIES if size[0] <= FEW else ("KL(full)", "Bernstein")
    plans = [assert_agreement(halfway(size, family, learner, pooled)) for family in families]
    mixed = [plan.h for plan in plans if plan.h and 0.0 < plan.rho < 1.0]
    assert bool(mixed) == (learner != "StepNoMix") and any(plan.h for plan in plans)


@pytest.mark.parametrize("family", FAMILIES)
def test_others_of_the_family_bound_what_epsmix_does(family):
    """To the bit: BPI-UCBVI the optimistic policy, budget agents that and the baseline."""
    case = halfway((5, 5, 3), family, "EpsMix", True)
    problem, counts = case.problem, case.counts
    plan = case.agent(case.floor).plan(counts)
    settings = {"delta": 0.1, "bounds": case.bounds(), "pooled": True}
    bold = sf.BPIUCBVI(problem, **settings).plan(counts)
    assert (bold.lower, bold.upper) == (plan.candidates[0], plan.upper)
    np.testing.assert_array_equal(bold.policy, plan.policy.second)
    for kind in (sf.BudgetExploration, sf.ConservativeUCBVI):
        other = kind(problem, case.baseline, case.floor, **settings).plan(counts)
        assert (*other.candidates, other.upper) == (*plan.candidates, plan.upper)
        np.testing.assert_array_equal(other.grounds.proposal.policy, plan.policy.second)


@pytest.mark.parametrize("kind", ["number", "share", "amount"])
def test_returns_are_one_more_bound_of_the_baseline(kind):
    """All else is planned with the rest of delta. What returns prove, tests/reference has. Where
    the floor is relative, the baseline's upper value stands for it.
    """
    world = sf.world("trap")
    pi_b = world.baseline

    def agent(floor):
        return sf.EpsMix(world.problem, pi_b, floor, delta=0.3, returns=sf.Returns(0.4))

    mine = agent(0.0 if kind == "number" else {"share": sf.Relative, "amount": sf.Below}[kind](0.2))
    counts = sf.Counts.zeros(world.problem)
    mine.claim(counts)
    rng = np.random.default_rng(0)
    for _ in range(100):
        counts.add(sf.play(world, pi_b, rng).as_learnt(world.problem, str(mine.label)))
    if kind == "number":
        mine = agent(float(mine.plan(counts).candidates.mean()))
    plan = mine.plan(counts)
    grounds, (bold, safe), close = plan.grounds, plan.candidates, Fraction(1, 10**10)
    start = np.eye(world.S)[world.s1]
    sizes = (world.H, world.S, world.A, mine.delta_model, False)
    task = Task(*sizes, counts.n_sas, world.r, start=start)
    twin, baseline = Case(task, pi_b, "EpsMix", "KL", 0.0).twin(), exact_policy(pi_b)
    optimistic = exact_policy(plan.policy.second)
    for found, exact in ((grounds.by_model, baseline), (bold, optimistic)):
        low = twin.lower(exact)
        assert low.lo - close <= Fraction(float(found)) <= low.lo
    assert safe == max(grounds.by_model, grounds.by_returns) and 0.0 < plan.rho < 1.0
    if kind == "number":
        assert grounds.by_returns > grounds.by_model
        assert plan.rho == pytest.approx((safe - mine.floor) / (safe - bold), abs=1e-12)
        return
    assert grounds.by_returns == -math.inf
    assert twin.upper(baseline).lo > grounds.U >= sf.value(world, pi_b)
    least = 0.8 * grounds.U if kind == "share" else grounds.U - 0.2
    assert least <= grounds.floor < least + 1e-13
    assert least <= (1 - plan.rho) * grounds.U + plan.rho * bold < least + 1e-12


# ---- certificates of logs ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_certificates_of_logs(seed):
    """Robust value iteration takes the largest exact lower value in every state, ties aside, and
    certifies no more than its policy is worth; a given policy likewise.
    """
    rng = np.random.default_rng([11, seed])
    task = some_task(rng, "KL")
    baseline = some_policy(rng, task.H, task.n_sas.sum(axis=-1))
    case = Case(task, baseline, "StepMix", "KL", 0.0)
    problem, counts, twin, close = case.problem, case.counts, case.twin(), 2 * allowance(case)
    off = float(np.abs(baseline.sum(axis=-1) - 1.0).max())
    evidence, wider = (evidence_of(sf.KL(), problem, counts, task.delta, x) for x in (0.0, off))
    actions, V_low = kernels.pessimistic(evidence, counts.n_sa, task.H)
    V = [ZERO] * task.S
    for h in reversed(range(task.H)):
        Q = [[twin.Q_low(h, s, a, V) for a in range(task.A)] for s in range(task.S)]
        V = [largest(row).rounded() for row in Q]
        for s, row in enumerate(Q):
            assert row[actions[h, s]].hi >= V[s].lo - close
    exact = twin.lower(exact_policy(baseline))
    for best, low in ((twin.at_start(V), V_low), (exact, kernels.lower_values(wider, baseline))):
        log_union = math.log(twin.events / task.delta)
        found = sf.KL().lower_at_start(problem, counts.n_start, low[0], log_union)
        assert best.lo - close <= Fraction(found) <= best.lo


# ---- at the edges --------------------------------------------------------------------------------


def by_hand(
    learner="StepMix", family="KL(full)", S=2, A=2, H=2, visits=(900, 3), late=(0.9, 0.1), floor=0.0
) -> Case:
    """Action 0 was tried much and leads to state 0 where the last step pays `late`; action 1 was
    tried little. Earlier steps pay nothing for action 0 and 0.05 for action 1. The baseline mostly
    takes action 0.
    """
    n_sas = np.zeros((H, S, A, S), dtype=np.int64)
    for a in range(A):
        n_sas[:, :, a, 0] = visits[min(a, 1)]
        n_sas[:, :, a, -1] += visits[min(a, 1)] // 9
    r = np.zeros((H, S, A))
    r[: H - 1, :, 1:] = 0.05
    r[H - 1] = np.array([late[min(s, 1)] for s in range(S)])[:, None]
    baseline = np.full((H, S, A), 0.125 / A) + 0.875 * np.eye(A)[0]
    task = Task(H, S, A, 0.1, False, n_sas, r, start=np.eye(S)[0])
    return Case(task, baseline, learner, family, floor)


def candidates_of(case: Case) -> list[float]:
    return [float(x) for x in case.agent(0.0).plan(case.counts).candidates]


MANY_VISITS = (10**9, 3)  # the paper's lower values are 0 with fewer
KINDS = [*((family, (900, 3)) for family in PRIORS), ("Bernstein", MANY_VISITS)]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(("family", "visits"), KINDS)
def test_a_floor_at_a_candidate_and_an_ulp_beside_it(learner, family, visits):
    """At it the candidate itself is played, an ulp above it no longer, and with nothing left the
    baseline on trust.
    """
    case = by_hand(learner, family, visits=visits)
    L = candidates_of(case)
    assert L[0] < L[-1]
    for floor in L:
        seen = assert_agreement(replace(case, floor=floor))
        assert seen.candidates[chosen(L, floor)] == floor
        assert seen.rho == (1.0 if floor == L[0] else 0.0)
        assert_agreement(replace(case, floor=max(0.0, float(np.nextafter(floor, -1.0)))))
        above = assert_agreement(replace(case, floor=float(np.nextafter(floor, 9.0))))
        assert above.h >= seen.h
    assert above.source == "baseline" and above.lower < np.nextafter(L[-1], 9.0)


@pytest.mark.parametrize("learner", ["StepMix", "EpsMix"])
@pytest.mark.parametrize(("family", "visits"), KINDS)
def test_every_weight_from_0_to_1(learner, family, visits):
    """Floors from just above the bolder neighbour to just below the safe one."""
    case = by_hand(learner, family, visits=visits, H=3)
    L = candidates_of(case)
    c = next(i for i in range(1, len(L)) if L[i] > max(L[:i]) + 1e-3)
    found = []
    for share in (1e-15, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9, 1 - 1e-15):
        floor = L[c] + share * (L[c - 1] - L[c])
        found.append(assert_agreement(replace(case, floor=floor)).rho)
    assert found == sorted(found) and found[0] < 1e-8 and found[-1] > 1 - 1e-8


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("S", "A", "H"), [(1, 1, 1), (1, 3, 2), (3, 1, 2), (2, 2, 1), (3, 3, 3)])
@pytest.mark.parametrize("visits", [(0, 0), (1, 1), (1, 0), (2**52, 0)])
def test_no_counts_single_counts_and_single_states(learner, family, S, A, H, visits):
    """A floor of 0 is certified without data; one of H never is unless rewards alone say so."""
    case = by_hand(learner, family, S, A, H, visits)
    seen = assert_agreement(case)
    assert (seen.source, seen.h, seen.rho) == ("optimistic", 0, 1.0)
    assert assert_agreement(replace(case, floor=float(H))).source == "baseline"


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_all_candidates_equal(learner, family):
    """Every action is the same: the floor is reached by all or by none, and nothing is mixed."""
    case = by_hand(learner, family, visits=(500, 500))
    case = replace(case, task=replace(case.task, r=np.full((2, 2, 2), 0.375)))
    L = candidates_of(case)
    assert max(L) - min(L) < 1e-10
    assert assert_agreement(replace(case, floor=min(L))).source == "optimistic"
    assert assert_agreement(replace(case, floor=max(L))).rho in (0.0, 1.0)
    assert (
        assert_agreement(replace(case, floor=float(np.nextafter(max(L), 9.0)))).source == "baseline"
    )


def test_of_equal_actions_the_first_is_taken():
    case = by_hand(A=3, visits=(7, 7))
    case = replace(case, task=replace(case.task, r=np.full((2, 2, 3), 0.25)))
    seen = assert_agreement(case)
    assert (seen.pi_bar.argmax(axis=-1) == 0).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lead", [0.0, 2.0**-53, 1e-15, 1e-13, 1e-12, 3e-12, 1e-9])
def test_near_ties(family, lead):
    """Two actions apart by a little: either may be the optimistic one where that is less than
    values are exact to.
    """
    case = by_hand(family=family, visits=(40, 40))
    r = np.full((2, 2, 2), 0.5)
    r[..., 1] += lead
    seen = assert_agreement(replace(case, task=replace(case.task, r=r), floor=0.3))
    if lead == 1e-9:
        assert (seen.pi_bar[1].argmax(axis=-1) == 1).all() or family == "Bernstein"


@pytest.mark.parametrize("family", PRIORS)
def test_one_possible_next_state(family):
    """By a mask: nothing is uncertain, and the lower value is the value, without any data."""
    support = np.zeros((2, 2, 2, 2), dtype=bool)
    support[:, :, 0, 0] = support[:, :, 1, 1] = True
    case = by_hand(family=family, visits=(0, 0))
    case = replace(case, task=replace(case.task, support=support))
    seen = assert_agreement(case)
    assert seen.candidates[0] == 0.9 == seen.upper


# ---- controls ------------------------------------------------------------------------------------


def sample(count: int, wanted: str) -> list[Case]:
    """Random cases of one family of bounds, a number for a floor."""
    rng = np.random.default_rng([7, len(wanted)])
    found: list[Case] = []
    while len(found) < count:
        case = random_case(rng)
        if case.family.startswith(wanted) and case.max_loss is None:
            found.append(case)
    return found


@pytest.mark.parametrize("wanted", ["KL", "Bernstein"])
def test_control_a_bonus_one_millionth_too_small(wanted):
    """Where it moves a candidate at all, it is caught as too high in 8 of 10 cases or more; in the
    others the candidate moves by less than the margin that production takes off.
    """
    moved = caught = 0
    for case in sample(60, wanted):
        small = plan_of(case, scale=0.999999)
        if small.candidates != plan_of(case).candidates:
            moved += 1
            caught += any(
                "above the exact lower" in sentence for sentence in complaints(case, small)
            )
    assert moved >= 15
    assert caught >= 0.8 * moved


def test_control_candidates_too_high():
    """1e-11 H is caught in every case, 1e-12 H wherever nothing was taken off: with rewards
    alone, in one step.
    """
    for case in sample(20, "KL"):
        if case.task.n_sas.max() > 10**4:
            continue
        seen = plan_of(case)
        high = seen._replace(candidates=[x + 1.1e-11 * case.task.H for x in seen.candidates])
        if (case.baseline.sum(axis=-1) == 1.0).all():
            assert any("above the exact lower" in sentence for sentence in complaints(case, high))
    case = by_hand(H=1, visits=(5, 5))
    seen = plan_of(case)
    assert complaints(case, seen) == []
    for much in (1e-12, 1e-15):
        high = seen._replace(candidates=[x + much for x in seen.candidates])
        assert any("above the exact lower" in sentence for sentence in complaints(case, high))


def test_control_rho_an_ulp_too_large():
    """Production shrinks rho by at least 5 ulp. The first float beyond the exact ratio is caught in
    every mixture; the last one before it is not wrong, and not caught.
    """
    seen_mixtures = 0
    for case in sample(120, "KL"):
        seen = plan_of(case)
        if not 0.0 < seen.rho < 1.0:
            continue
        seen_mixtures += 1
        L, floor = [Fraction(x) for x in seen.candidates], Fraction(case.floor)
        c = chosen(L, floor)
        exact = (L[c] - floor) / (L[c] - L[c - 1])
        beyond = float(exact)
        while Fraction(beyond) <= exact:
            beyond = float(np.nextafter(beyond, 2.0))
        before = float(np.nextafter(beyond, 0.0))
        twin = case.twin()
        assert any(
            "takes the mixture" in s for s in complaints(case, seen._replace(rho=beyond), twin)
        )
        assert not any(
            "takes the mixture" in s for s in complaints(case, seen._replace(rho=before), twin)
        )
        assert seen.rho <= before
    assert seen_mixtures >= 10


class AsPrinted(Literal):
    """Eq. Xd to the letter: V_low = <pi, Q_up>."""

    def average(self, row: Row, pairs: list[tuple[Between, Between]]) -> tuple[Between, Between]:
        V_up, _ = super().average(row, pairs)
        return V_up, V_up


def test_control_the_paper_as_printed():
    """With Q_up for Q_low the twin's lower values are upper ones, and production is found far
    below them.
    """
    case = by_hand(family="Bernstein", visits=MANY_VISITS)
    delta_prime = Fraction(case.task.delta) / 9  # 3 (H+1)
    seen = plan_of(case)
    assert complaints(case, seen, Literal(case.task, delta_prime)) == []
    found = complaints(case, seen, AsPrinted(case.task, delta_prime))
    assert any("below the exact lower value" in sentence for sentence in found)


def test_control_a_delta_that_is_not_divided():
    """A twin with delta in place of delta' has less to add, so production is found too low; and
    the other way round.
    """
    case = by_hand(family="Bernstein", visits=MANY_VISITS)
    seen = plan_of(case)
    for parts, word in ((1, "below"), (90, "above")):
        found = complaints(case, seen, Literal(case.task, Fraction(case.task.delta) / parts))
        assert any(f"{word} the exact lower value" in sentence for sentence in found)


SLIPS = {  # what goes wrong: the case that production is given in place of the right one
    "delta' of EpsMix": {"delta": 0.1 * 9 / 4},
    "a floor of a millionth more": {"floor": 1 + 1e-6},
    "rewards of a millionth less": {"r": 1 - 1e-6},
    "one visit in ten thousand more": {"n_sas": 1e-4},
    "no mixing": {"learner": "StepNoMix"},
    "a coin": {"learner": "EpsMix"},
}


@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.parametrize("family", ["KL", "Bernstein"])
def test_control_a_slip_is_noticed(family, slip):
    visits = MANY_VISITS if family == "Bernstein" else (900, 3)
    case = by_hand(family=family, visits=visits)
    L = candidates_of(case)
    c = next(i for i in range(1, len(L)) if L[i] > max(L[:i]) + 1e-3)
    case = replace(case, floor=(L[c] + max(L[:c])) / 2)
    assert 0.0 < assert_agreement(case).rho < 1.0
    (what, value), task = next(iter(SLIPS[slip].items())), case.task
    if what == "learner":
        wrong = replace(case, learner=value)
    elif what == "floor":
        wrong = replace(case, floor=case.floor * value)
    else:
        old = getattr(task, what)
        new = {
            "delta": value,
            "r": task.r * value,
            "n_sas": task.n_sas + np.ceil(task.n_sas * value).astype(int),
        }[what]
        assert np.shape(old) == np.shape(new)
        wrong = replace(case, task=replace(task, **{what: new}))
    assert complaints(case, plan_of(wrong))


def test_control_a_wrong_policy_and_a_wrong_step():
    """A row mixed elsewhere, and a step that is not the boldest certified one."""
    case = by_hand(visits=(900, 3), H=3)
    L = candidates_of(case)
    c = next(i for i in range(1, len(L)) if L[i] > max(L[:i]) + 1e-3)
    case = replace(case, floor=(L[c] + L[c - 1]) / 2)
    seen = plan_of(case)
    assert 0.0 < seen.rho < 1.0 and complaints(case, seen) == []
    assert any(
        "not the mixture" in s for s in complaints(case, seen._replace(policy=seen.policy[::-1]))
    )
    later = seen._replace(h=seen.h - 1)
    assert any("boldest candidate" in s for s in complaints(case, later))


def test_control_relative_floors_see_the_share():
    """A learner that gives up 1 % more than it is held to is caught."""
    case = replace(by_hand(visits=(900, 3)), max_loss=0.3)
    assert complaints(case, plan_of(case)) == []
    bolder = plan_of(replace(case, max_loss=0.31))
    assert any("below the share" in sentence for sentence in complaints(case, bolder))


def test_control_another_share_of_delta_is_seen():
    """Balls with twice their share of delta, as if half of them had been forgotten in the union."""
    case = by_hand(visits=(900, 3))
    bolder = replace(case, task=replace(case.task, delta=case.task.delta * 2))
    assert any(
        "above the exact lower" in sentence for sentence in complaints(case, plan_of(bolder))
    )
