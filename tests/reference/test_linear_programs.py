"""Constrained optima, DOPE and OptPess-LP against linear programs written down literally and
solved by somebody else's solver, against enumeration, and by hand.

The literal linear programs follow the formulas as printed: variables z(h,s,a,s') for all steps, two
rows of the box for each of them. Ours has fewer rows and variables; what it finds must be the same.
"""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

import surefoot as sf
from constrained import REFERENCE
from surefoot.bounds.lp import best_in_box, best_occupancy, cheapest_in_box

K = 10**9  # episodes inside the logarithm; tables of counts below hold fewer
DELTA = 0.05


# ---- pieces that are not ours


def visits_of(P, start, pi):
    """How often pi is at each (h, s, a): forwards, one product at a time."""
    H, S, A = np.shape(pi)
    reach, d = np.array(start, dtype=float), np.zeros((H, S, A))
    for h in range(H):
        following = np.zeros(S)
        for s, a in itertools.product(range(S), range(A)):
            d[h, s, a] = reach[s] * pi[h][s][a]
            following += d[h, s, a] * np.asarray(P[h][s][a])
        reach = following
    return d


def literal_occupancy(P, start, reward, cost, budget):
    """max sum q r, sum q c <= budget, flow in a known model: a box without width."""
    return literal_extended(P, np.zeros_like(P), start, reward, cost, budget)


def literal_extended(P_hat, b, start, reward, cost, budget=None, pi=None):
    """DOPE's linear program as printed, all H steps, two rows of the box for each z. With pi: of
    this policy alone.

    Without a budget: the least cost. Returns linprog's answer; the sign of `fun` is that of a
    minimum.
    """
    H, S, A = reward.shape
    at = {key: i for i, key in enumerate(itertools.product(range(H), range(S), range(A), range(S)))}
    equal, equals, below, belows = [], [], [], []
    for h, s in itertools.product(range(H), range(S)):
        row = np.zeros(len(at))
        for a, y in itertools.product(range(A), range(S)):
            row[at[h, s, a, y]] += 1.0
        if h > 0:
            for s_, a_ in itertools.product(range(S), range(A)):
                row[at[h - 1, s_, a_, s]] -= 1.0
        equal.append(row)
        equals.append(start[s] if h == 0 else 0.0)
    for (h, s, a, y), place in at.items():
        for sign, bound in (
            (1.0, P_hat[h][s][a][y] + b[h][s][a][y]),
            (-1.0, P_hat[h][s][a][y] - b[h][s][a][y]),
        ):
            row = np.zeros(len(at))  # z <= (P_hat + b) sum_y z, and (P_hat - b) sum_y z <= z
            row[place] += sign
            for y_ in range(S):
                row[at[h, s, a, y_]] -= sign * bound
            below.append(row)
            belows.append(0.0)
    if pi is not None:
        for h, s, a in itertools.product(range(H), range(S), range(A)):
            row = np.zeros(len(at))
            for y in range(S):
                row[at[h, s, a, y]] += 1.0
                for a_ in range(A):
                    row[at[h, s, a_, y]] -= pi[h][s][a]
            equal.append(row)
            equals.append(0.0)
    spent = np.array([cost[h, s, a] for h, s, a, _ in at])
    earned = np.array([reward[h, s, a] for h, s, a, _ in at])
    if budget is None:
        return linprog(spent, below, belows, equal, equals, method="highs")
    return linprog(-earned, [*below, spent], [*belows, budget], equal, equals, method="highs")


def estimate(n_sas, S):
    """P_hat, with 1/S where there are no visits."""
    n = n_sas.sum(axis=-1)
    P_hat = np.full(n_sas.shape, 1.0 / S)
    P_hat[n > 0] = n_sas[n > 0] / n[n > 0][:, None]
    return n, P_hat


def printed_box(n_sas, S, A, H, scale, inside=None):
    """b = 2 sqrt(P_hat (1 - P_hat) L/(n v 1)) + 14 L/(3 (n v 1)), min with 1, L = log(2 S^2 A H
    K/delta).
    """
    L = scale * math.log((2 * S**2 * A * H * K / DELTA) if inside is None else inside)
    n, P_hat = estimate(n_sas, S)
    m = np.maximum(n, 1)[..., None]
    return P_hat, np.minimum(2 * np.sqrt(P_hat * (1 - P_hat) * L / m) + 14 * L / (3 * m), 1.0)


def sharper_box(n_sas, S, A, H, scale):
    """Maurer and Pontil: sqrt(2 P_hat (1 - P_hat) L/(n-1)) + 7 L/(3 (n-1)), and 1 below two
    visits.
    """
    L = scale * math.log(3 * S**2 * A * H * K / DELTA)
    n, P_hat = estimate(n_sas, S)
    m = np.maximum(n - 1, 1)[..., None]
    b = np.minimum(np.sqrt(2 * P_hat * (1 - P_hat) * L / m) + 7 * L / (3 * m), 1.0)
    return P_hat, np.where(n[..., None] >= 2, b, 1.0)


def ends(P_hat, b):
    """The ends of the box."""
    return np.maximum(P_hat - b, 0.0), np.minimum(P_hat + b, 1.0)


class Tiny:
    """A tiny world, a table of counts, costs, a budget, a baseline: all at random."""

    def __init__(self, seed, sizes=None, plenty=None):
        rng = np.random.default_rng(seed)
        S, A, H = (
            sizes
            or [(2, 2, 2), (3, 2, 2), (2, 2, 3), (3, 1, 3), (2, 3, 2), (1, 2, 3), (2, 2, 1)][
                seed % 7
            ]
        )
        self.S, self.A, self.H = S, A, H
        self.pooled = bool(rng.random() < 0.5)
        steps = () if self.pooled else (H,)
        P = rng.dirichlet(np.ones(S), size=(*steps, S, A))
        start = rng.dirichlet(np.ones(S)) if rng.random() < 0.5 else np.eye(S)[rng.integers(S)]
        self.world = sf.TabularMDP(P, rng.random((*steps, S, A)), H=H, start=start)
        self.start = start
        few = [0, 1, 2, 30, 1000, 10**6] if plenty is None else plenty
        n = rng.choice(few, size=(*steps, S, A))
        self.counts = sf.Counts(rng.multinomial(n, P), H if self.pooled else None)
        self.n_sas = np.broadcast_to(self.counts.n_sas, (H, S, A, S))
        self.pi_b = rng.dirichlet(np.ones(A), size=(H, S))
        self.cost = rng.random((H, S, A))
        self.rng = rng

    def settings(self, C, kappa):
        """The settings of an agent that knows that the baseline leaves the slack kappa."""
        return {
            "cost": self.cost,
            "budget": C,
            "baseline_cost": C - kappa,
            "episodes": K,
            "delta": DELTA,
            "pooled": self.pooled,
        }


# ---- constrained optima


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_the_worlds_with_costs(name):
    """To the numbers that Lagrangian duality gives, and within the budget when added up by hand."""
    world = sf.world(name)
    for budget, value in REFERENCE[name].items():
        best = sf.constrained_optimum(world, budget)
        assert best.feasible
        assert best.value == pytest.approx(value, abs=1e-8)
        d = visits_of(world.P, world.start, best.policy)
        assert (d * world.r).sum() == pytest.approx(best.value, abs=1e-9)
        assert (d * world.cost).sum() == pytest.approx(best.cost, abs=1e-9)
        assert best.cost <= budget + 1e-9
        # control: another budget
        assert abs(sf.constrained_optimum(world, budget - 0.01).value - value) > 1e-4
        d = visits_of(world.P, world.start, sf.solve(world).policy)
        # control: the budget binds, the optimum would break it
        assert (d * world.cost).sum() > budget


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_a_budget_that_nobody_needs(name):
    world = sf.world(name)
    for budget in (float(world.H), float(world.H) + 5.0, math.inf):
        assert sf.constrained_optimum(world, budget).value == pytest.approx(
            sf.solve(world).value, abs=1e-8
        )


@pytest.mark.parametrize("seed", range(40))
def test_tiny_worlds_against_another_solver(seed):
    """Step-dependent and stationary, one start and several, feasible and not."""
    tiny = Tiny(seed)
    world, cost = tiny.world, tiny.cost
    budget = tiny.H * (0.1 + 0.5 * tiny.rng.random())
    theirs = literal_occupancy(world.P, world.start, world.r, cost, budget)
    ours = sf.constrained_optimum(world, budget, cost=cost)
    assert ours.feasible == (theirs.status == 0)
    if ours.feasible:
        assert ours.value == pytest.approx(-theirs.fun, abs=1e-8)
        d = visits_of(world.P, world.start, ours.policy)
        assert (d * cost).sum() <= budget + 1e-9
        assert (d * cost).sum() == pytest.approx(ours.cost, abs=1e-12)
        assert (d * world.r).sum() == pytest.approx(ours.value, abs=1e-12)
    else:
        assert theirs.status == 2
        assert (ours.value, ours.policy) == (-math.inf, None)
        assert "infeasible" in repr(ours)


def test_tiny_worlds_have_budgets_of_both_kinds():
    """Control of the test above: some budgets are out of reach, some bind, some do not."""
    kinds = []
    for seed in range(40):
        tiny = Tiny(seed)
        budget = tiny.H * (0.1 + 0.5 * tiny.rng.random())
        best = sf.constrained_optimum(tiny.world, budget, cost=tiny.cost)
        free = best.feasible and best.value > sf.solve(tiny.world).value - 1e-9
        kinds.append("out of reach" if not best.feasible else "free" if free else "binds")
    assert min(kinds.count(kind) for kind in ("out of reach", "free", "binds")) >= 5


@pytest.mark.parametrize("seed", range(10))
def test_around_the_cheapest_policy(seed):
    """A hair below what the cheapest policy costs nothing is feasible; a hair above, something
    is.
    """
    tiny = Tiny(seed)
    world = tiny.world
    cheapest = literal_occupancy(world.P, world.start, -tiny.cost, tiny.cost, 1e3).fun
    below = sf.constrained_optimum(world, cheapest - 1e-6, cost=tiny.cost)
    assert (below.feasible, below.value) == (False, -math.inf)
    assert below.cost == pytest.approx(cheapest, abs=1e-9)
    above = sf.constrained_optimum(world, cheapest + 1e-6, cost=tiny.cost)
    assert above.feasible
    assert above.cost == pytest.approx(cheapest, abs=2e-6)


def test_budgets_that_no_policy_meets():
    world = sf.world("three-rooms")
    for budget in (-1e-6, -3.0, -math.inf):
        answer = sf.constrained_optimum(world, budget)
        assert (answer.feasible, answer.value, answer.policy, answer.cost) == (
            False,
            -math.inf,
            None,
            0.0,
        )
    # control: staying is free
    assert sf.constrained_optimum(world, 0.0).value == pytest.approx(0.0, abs=1e-9)


# ---- boxes, by hand


def nearly(x):
    """But for a rounding."""
    return pytest.approx(x, abs=1e-15)


def test_boxes_by_hand():
    """S = 2, A = 2, H = 3, K = 1000, delta = 0.1: entries worked out one at a time, also at n =
    0 and n = 1.
    """
    problem = sf.Problem(np.zeros((3, 2, 2)))
    n_sas = np.zeros((3, 2, 2, 2), dtype=int)
    n_sas[0, 0, 1] = [30_000, 10_000]
    n_sas[1, 1, 0] = [0, 1]
    n_sas[2, 0, 0] = [5, 0]
    n_sas[2, 1, 1] = [1, 1]
    model = sf.Model(problem, sf.Counts(n_sas), 0.1)
    L = math.log(2 * 4 * 2 * 3 * 1000 / 0.1)
    b = sf.BernsteinBox().b(model, 1000)
    root = 2 * math.sqrt(0.75 * 0.25 * L / 40_000)
    assert b[0, 0, 1, 0] == nearly(root + 14 * L / 120_000)
    assert b[0, 0, 1, 1] == nearly(root + 14 * L / 120_000)
    assert 0.01 < b[0, 0, 1, 0] < 0.02
    assert b[0, 0, 0, 0] == b[0, 0, 0, 1] == 1.0  # n = 0
    assert b[1, 1, 0, 0] == b[1, 1, 0, 1] == 1.0  # n = 1: 14 L/3 is far above
    assert b[2, 0, 0, 0] == 1.0
    small = sf.BernsteinBox(0.01).b(model, 1000)
    assert small[2, 0, 0, 0] == nearly(14 * 0.01 * L / 15)  # no variance seen
    assert small[1, 1, 0, 1] == nearly(14 * 0.01 * L / 3)
    # 1/S
    assert small[0, 0, 0, 1] == nearly(2 * math.sqrt(0.25 * 0.01 * L) + 14 * 0.01 * L / 3)

    Z = math.log(32 * 4 * 2 * 3 * 1000 / 0.1)
    b = sf.HoeffdingBox().b(model, 1000)
    assert b[0, 0, 1, 0] == b[0, 0, 1, 1] == nearly(math.sqrt(Z / 40_000))
    assert b[1, 1, 0, 0] == nearly(math.sqrt(Z))  # n = 1
    assert b[0, 0, 0, 0] == nearly(math.sqrt(Z))  # n = 0 counts as 1

    L = math.log(3 * 4 * 2 * 3 * 1000 / 0.1)
    b = sf.MaurerPontilBox().b(model, 1000)
    expected = math.sqrt(2 * 0.75 * 0.25 * L / 39_999) + 7 * L / (3 * 39_999)
    assert b[0, 0, 1, 0] == nearly(expected)
    assert b[0, 0, 0, 0] == b[1, 1, 0, 1] == 1.0  # n = 0, n = 1
    small = sf.MaurerPontilBox(0.01).b(model, 1000)
    assert small[1, 1, 0, 0] == 1.0  # one visit says nothing, at any scale
    # n = 2
    assert small[2, 1, 1, 0] == nearly(math.sqrt(2 * 0.25 * 0.01 * L) + 7 * 0.01 * L / 3)

    # control: the published code's logarithm is another number
    no_A = math.log(2 * 4 * 3 * 1000 / 0.1)
    wrong = 2 * math.sqrt(0.75 * 0.25 * no_A / 40_000) + 14 * no_A / 120_000
    assert abs(sf.BernsteinBox().b(model, 1000)[0, 0, 1, 0] - wrong) > 1e-4


def test_pooled_visits_share_a_box():
    """One table for all steps: the same half widths at each, and the same logarithm."""
    problem = sf.Problem(np.zeros((2, 2)), H=3, stationary=True)
    n_sas = np.array([[[3, 1], [0, 0]], [[1, 0], [2, 2]]]) * 1000
    model = sf.Model(problem, sf.Counts(n_sas, 3), DELTA)
    L = math.log(2 * 4 * 2 * 3 * 1000 / DELTA)
    for h in range(3):
        b = sf.BernsteinBox().b(model, 1000)[h, 0, 0, 0]
        assert b == nearly(2 * math.sqrt(0.75 * 0.25 * L / 4000) + 14 * L / 12_000)


# ---- the cheapest model of a box


def corners(l, u):  # noqa: E741
    """All corners of {l <= p <= u, sum p = 1}: all entries but one at an end."""
    S, found = len(l), []
    for free in range(S):
        others = [i for i in range(S) if i != free]
        for ends in itertools.product(*[(l[i], u[i]) for i in others]):
            p = np.zeros(S)
            p[others] = ends
            p[free] = 1.0 - p.sum()
            if l[free] - 1e-12 <= p[free] <= u[free] + 1e-12:
                found.append(p)
    return found


def dearest(l, u, start, cost, pi):  # noqa: E741
    """Wrong on purpose: what is left goes to the dearest states first."""
    H, S, _ = cost.shape
    V = np.zeros(S)
    for h in reversed(range(H)):
        Q = np.zeros(cost.shape[1:])
        for s, a in np.ndindex(*Q.shape):
            Q[s, a] = cost[h, s, a] + max(p @ V for p in corners(l[h, s, a], u[h, s, a]))
        V = (pi[h] * Q).sum(axis=1)
    return start @ V


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 1, 2), (2, 1, 3), (1, 2, 2)])
def test_the_cheapest_model_is_a_corner(sizes):
    """Every combination of corners tried, for one policy and for the best of all deterministic
    ones.
    """
    S, A, H = sizes
    apart = 0
    for seed in range(4):
        rng = np.random.default_rng([seed, *sizes])
        P, width = rng.dirichlet(np.ones(S), size=(H, S, A)), 0.5 * rng.random((H, S, A, S))
        l, u = ends(P, width)  # noqa: E741
        cost, pi, start = (
            2.0 * rng.random((H, S, A)),
            rng.dirichlet(np.ones(A), size=(H, S)),
            rng.dirichlet(np.ones(S)),
        )
        # the last step leads nowhere
        pairs = list(itertools.product(range(H - 1), range(S), range(A)))
        policies = [pi] + [
            np.eye(A)[np.reshape(actions, (H, S))]
            for actions in itertools.product(range(A), repeat=H * S)
        ]
        best = [math.inf] * len(policies)
        for choice in itertools.product(*[corners(l[pair], u[pair]) for pair in pairs]):
            model = P.copy()
            for pair, p in zip(pairs, choice, strict=True):
                model[pair] = p
            values = [(visits_of(model, start, policy) * cost).sum() for policy in policies]
            best = np.minimum(best, values)
        assert cheapest_in_box(l, u, start, cost, pi) == pytest.approx(best[0], abs=1e-12)
        assert cheapest_in_box(l, u, start, cost) == pytest.approx(min(best[1:]), abs=1e-12)
        apart += dearest(l, u, start, cost, pi) > best[0] + 1e-3
    assert apart == (0 if S == 1 else 4)  # control: the other end of the box is far away


@pytest.mark.parametrize("seed", range(20))
def test_the_cheapest_policy_in_a_box(seed):
    """Against the literal linear program, for all policies and for one."""
    tiny = Tiny(seed)
    P_hat, b = printed_box(tiny.n_sas, tiny.S, tiny.A, tiny.H, 1e-2)
    l, u = ends(P_hat, b)  # noqa: E741
    cost = tiny.cost + tiny.H * b.sum(axis=-1)
    for pi in (None, tiny.pi_b):
        theirs = literal_extended(P_hat, b, tiny.start, cost, cost, pi=pi)
        assert theirs.status == 0
        ours = cheapest_in_box(l, u, tiny.start, cost, pi)
        assert ours == pytest.approx(theirs.fun, abs=1e-8, rel=1e-9)
        if b[:-1].max(initial=0.0) > 0.05 and tiny.S > 1:
            centre = cheapest_in_box(P_hat, P_hat, tiny.start, cost, pi)
            assert centre > theirs.fun + 1e-6  # control: the estimate itself is dearer


# ---- DOPE


DOPE_CASES = {  # box, scale, visits of each pair
    "printed": ("printed", 1.0, [10**6, 10**7]),
    "printed, some unvisited": ("printed", 1.0, [0, *[10**7] * 5]),
    "scaled": ("printed", 1e-3, None),
    "scaled more": ("printed", 1e-5, None),
    "sharper": ("sharper", 1.0, [10**4, 10**6]),
    "sharper, scaled": ("sharper", 1e-3, None),
}


def dope_case(name, seed):
    """What the printed formulas come to for a random table of counts; a budget around what is
    feasible.
    """
    box, scale, plenty = DOPE_CASES[name]
    tiny = Tiny(seed, plenty=plenty)
    S, A, H = tiny.S, tiny.A, tiny.H
    P_hat, b = (printed_box if box == "printed" else sharper_box)(tiny.n_sas, S, A, H, scale)
    b_bar = b.sum(axis=-1)
    weight = np.full(H, float(H)) if box == "printed" else np.arange(H - 1.0, -1.0, -1.0)
    c_bar = tiny.cost + weight[:, None, None] * b_bar
    kappa = 0.05 + 0.5 * tiny.rng.random()
    r_bar = tiny.world.r + H / kappa * weight[:, None, None] * b_bar  # H^2/(C - C_b) b_bar
    least = literal_extended(P_hat, b, tiny.start, c_bar, c_bar).fun
    C = float(np.clip(least + tiny.rng.uniform(-0.2, 0.6), kappa, H))
    bounds = sf.BernsteinBox(scale) if box == "printed" else sf.MaurerPontilBox(scale)
    agent = sf.DOPE(tiny.world.problem, tiny.pi_b, bounds=bounds, **tiny.settings(C, kappa))
    return tiny, P_hat, b, r_bar, c_bar, C, agent


@pytest.mark.parametrize("name", DOPE_CASES)
def test_dope_solves_the_printed_linear_program(name):
    """Status, optimal objective, the policy's own objective and its pessimistic cost, for random
    tables of counts.
    """
    feasible, differ = 0, 0
    for seed in range(28):
        tiny, P_hat, b, r_bar, c_bar, C, agent = dope_case(name, seed)
        theirs = literal_extended(P_hat, b, tiny.start, r_bar, c_bar, C)
        l, u = ends(P_hat, b)  # noqa: E741
        plan = agent.plan(tiny.counts)
        within = theirs.status == 0
        assert theirs.status in (0, 2)
        assert within == (cheapest_in_box(l, u, tiny.start, c_bar) <= C)
        assert plan.source == ("optimistic" if within else "baseline"), plan.explain()
        if not within:
            assert_array_equal(plan.policy, tiny.pi_b)
            continue
        feasible += 1
        answer = best_in_box(l, u, tiny.start, r_bar, c_bar, C)
        assert answer.status == "optimal"
        assert (answer.q * r_bar).sum() == pytest.approx(-theirs.fun, abs=1e-7, rel=1e-7)
        # The policy played is worth that much in the best model of the box: the linear program of
        # this policy alone.
        alone = literal_extended(P_hat, b, tiny.start, r_bar, c_bar, C, pi=plan.policy)
        assert alone.status == 0
        assert -alone.fun == pytest.approx(-theirs.fun, abs=1e-6, rel=1e-7)
        # Its pessimistic cost, by the other solver, is within the budget, and it is what the plan
        # says.
        cost = literal_extended(P_hat, b, tiny.start, r_bar, c_bar, pi=plan.policy).fun
        assert cost <= C + 1e-9
        assert plan.cost == pytest.approx(min(cost, tiny.H), abs=1e-8)
        other = literal_extended(P_hat, b, tiny.start, r_bar, c_bar, C, pi=tiny.pi_b)
        differ += other.status != 0 or -other.fun < -theirs.fun - 1e-4
    assert 5 <= feasible <= 27  # both happen
    assert differ >= 4  # control: the baseline in place of the linear program's policy is seen


@pytest.mark.parametrize("name", ["scaled", "printed"])
def test_the_policy_is_z_normalised(name):
    """Where the linear program goes, sum_s' z / sum_a,s' z; elsewhere the baseline."""
    compared = elsewhere = 0
    for seed in range(21):
        tiny, P_hat, b, r_bar, c_bar, C, agent = dope_case(name, seed)
        plan = agent.plan(tiny.counts)
        if plan.source == "baseline":
            continue
        l, u = ends(P_hat, b)  # noqa: E741
        q = best_in_box(l, u, tiny.start, r_bar, c_bar, C - 1e-9).q
        for h, s in np.ndindex(tiny.H, tiny.S):
            total = sum(q[h, s])
            if total > 1e-9:
                assert_allclose(plan.policy[h, s], q[h, s] / total, atol=1e-9)
                compared += tiny.A > 1
            elif total == 0.0:
                assert_array_equal(plan.policy[h, s], tiny.pi_b[h, s])
                elsewhere += tiny.A > 1
    assert compared > 10
    assert elsewhere > 0 or name == "scaled"


def wrong_logarithm(tiny, scale, C, kappa):
    """The published code's: A is missing."""
    S, A, H = tiny.S, tiny.A, tiny.H
    P_hat, b = printed_box(tiny.n_sas, S, A, H, scale, inside=2 * S**2 * H * K / DELTA)
    return P_hat, b, tiny.cost + H * b.sum(axis=-1), tiny.world.r + H**2 / kappa * b.sum(axis=-1)


def wrong_optimism(tiny, scale, C, kappa):
    """H instead of H^2 in front of the optimism."""
    H = tiny.H
    P_hat, b = printed_box(tiny.n_sas, tiny.S, tiny.A, H, scale)
    return P_hat, b, tiny.cost + H * b.sum(axis=-1), tiny.world.r + H / kappa * b.sum(axis=-1)


def no_pessimism(tiny, scale, C, kappa):
    """Costs as they are."""
    P_hat, b = printed_box(tiny.n_sas, tiny.S, tiny.A, tiny.H, scale)
    return P_hat, b, tiny.cost, tiny.world.r + tiny.H**2 / kappa * b.sum(axis=-1)


@pytest.mark.parametrize("wrong", [wrong_logarithm, wrong_optimism, no_pessimism])
def test_another_linear_program_is_noticed(wrong):
    """Control: the comparison of objectives and statuses above fails for three wrong formulas."""
    differ = 0
    for seed in range(28):
        tiny, P_hat, b, r_bar, c_bar, C, agent = dope_case("printed", seed)
        right = literal_extended(P_hat, b, tiny.start, r_bar, c_bar, C)
        P_, b_, c_, r_ = wrong(tiny, 1.0, C, agent.kappa)
        other = literal_extended(P_, b_, tiny.start, r_, c_, C)
        differ += right.status != other.status or (
            right.status == 0 and abs(right.fun - other.fun) > 1e-5
        )
    assert differ >= 7


# ---- OptPess-LP


OPT_CASES = {  # box, scale, visits of each pair
    "printed": ("printed", 1.0, [10**6, 10**7]),
    "unvisited": ("printed", 1e-3, [0, 1, 10**6]),
    "scaled": ("printed", 1e-5, None),
    "sharper": ("sharper", 1.0, [10**5, 10**6]),
}


def opt_case(name, seed):
    """c + D and r + (1 + 4 H/(tau - c0)) D, where D = S H beta, beta = sqrt(Z/(n v 1)) and
    Z = log(32 S^2 A H K/delta). With Maurer and Pontil's b: D = (H - h)/2 times sum b.
    """
    box, scale, plenty = OPT_CASES[name]
    tiny = Tiny(seed, plenty=plenty)
    S, A, H = tiny.S, tiny.A, tiny.H
    n, P_hat = estimate(tiny.n_sas, S)
    if box == "printed":
        Z = scale * math.log(32 * S**2 * A * H * K / DELTA)
        D, bounds = S * H * np.sqrt(Z / np.maximum(n, 1)), sf.HoeffdingBox(scale)
    else:
        b = sharper_box(tiny.n_sas, S, A, H, scale)[1].sum(axis=-1)
        D = (np.arange(H - 1.0, -1.0, -1.0) / 2)[:, None, None] * b
        bounds = sf.MaurerPontilBox(scale)
    c_bar = tiny.cost + D
    cost_b = (visits_of(P_hat, tiny.start, tiny.pi_b) * c_bar).sum()
    kappa = 0.05 + 0.5 * tiny.rng.random()
    # the test is at tau - kappa/2
    tau = float(np.clip(cost_b + kappa / 2 + tiny.rng.uniform(-0.2, 0.4), kappa, H))
    c0 = tau - kappa
    r_bar = tiny.world.r + (1 + 4 * H / (tau - c0)) * D
    agent = sf.OptPessLP(tiny.world.problem, tiny.pi_b, bounds=bounds, **tiny.settings(tau, kappa))
    return tiny, P_hat, r_bar, c_bar, cost_b, tau, c0, agent


@pytest.mark.parametrize("name", OPT_CASES)
def test_optpess_solves_the_printed_linear_program(name):
    solved = refused = differ = by_other_test = 0
    for seed in range(42):
        tiny, P_hat, r_bar, c_bar, cost_b, tau, c0, agent = opt_case(name, seed)
        plan = agent.plan(tiny.counts)
        if cost_b >= (tau + c0) / 2:
            assert plan.source == "baseline"
            assert_array_equal(plan.policy, tiny.pi_b)
            assert plan.cost == pytest.approx(min(cost_b, tiny.H), abs=1e-9)
            assert "baseline's pessimistic cost" in plan.explain()
            refused += 1
            by_other_test += cost_b < tau
            continue
        solved += 1
        theirs = literal_occupancy(P_hat, tiny.start, r_bar, c_bar, tau)
        assert theirs.status == 0
        assert plan.source == "optimistic", plan.explain()
        assert plan.safety != "certified"  # drawn counts, which nobody claims
        d = visits_of(P_hat, tiny.start, plan.policy)
        assert (d * r_bar).sum() == pytest.approx(-theirs.fun, abs=1e-6, rel=1e-7)
        assert (d * c_bar).sum() <= tau
        assert plan.cost == pytest.approx((d * c_bar).sum(), abs=1e-9)
        differ += (visits_of(P_hat, tiny.start, tiny.pi_b) * r_bar).sum() < -theirs.fun - 1e-4
    assert solved >= 5
    assert refused >= 5
    assert differ >= 4  # control: the baseline in the place of the policy is seen
    assert by_other_test >= 2  # control: tau itself as the limit of the test would have been seen


# ---- what is handed to the solver


@pytest.mark.parametrize("name", [*DOPE_CASES, *(f"optpess {name}" for name in OPT_CASES)])
def test_the_numbers_of_the_linear_program(name, monkeypatch):
    """A slightly wrong coefficient seldom changes which policy is best, so the coefficients
    themselves are compared.
    """
    taken = []

    def spy(solve):
        def called(*arguments):
            taken.append(arguments)
            return solve(*arguments)

        return called

    monkeypatch.setattr("surefoot.rivals.dope.best_in_box", spy(best_in_box))
    monkeypatch.setattr("surefoot.rivals.optpess_lp.best_occupancy", spy(best_occupancy))
    compared = 0
    for seed in range(28):
        taken.clear()
        if name in DOPE_CASES:
            tiny, P_hat, b, r_bar, c_bar, C, agent = dope_case(name, seed)
            model = ends(P_hat, b)
        else:
            tiny, P_hat, r_bar, c_bar, _, C, _, agent = opt_case(
                name.removeprefix("optpess "), seed
            )
            model = [P_hat]
        agent.plan(tiny.counts)
        for arguments in taken:
            *found, start, reward, cost, budget, basis = arguments
            for one, other in zip(
                [*found, start, reward, cost], [*model, tiny.start, r_bar, c_bar], strict=True
            ):
                assert_allclose(one, other, rtol=1e-12, atol=1e-14)
            assert C - 1e-8 <= budget < C  # a hair less, for the solver's tolerance
            assert basis is None
            compared += 1
            r = tiny.world.r
            if np.abs(r_bar - r).max() > 1e-3:
                with pytest.raises(AssertionError):  # control: a twentieth more optimism is seen
                    assert_allclose(reward, r + 1.05 * (r_bar - r), rtol=1e-12, atol=1e-14)
    assert compared >= 3


# ---- what both have in common


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.parametrize("kind", [sf.DOPE, sf.OptPessLP])
def test_without_a_bonus_the_estimate_is_believed(kind, seed):
    """The constrained optimum of the empirical model, rows of 1/S where nothing was seen.
    Nothing is certified.
    """
    tiny = Tiny(seed, plenty=[0, 1, 3, 50])
    S, H = tiny.S, tiny.H
    _, P_hat = estimate(tiny.n_sas, S)
    empirical = sf.TabularMDP(P_hat, tiny.world.r, start=tiny.start)
    dear = (visits_of(P_hat, tiny.start, sf.solve(empirical).policy) * tiny.cost).sum()
    cheapest = sf.constrained_optimum(empirical, -1.0, cost=tiny.cost).cost
    C = float(cheapest + 0.4 * (dear - cheapest) + 0.01)
    cheap = sf.solve(sf.TabularMDP(P_hat, 1.0 - tiny.cost, start=tiny.start)).policy
    box = sf.BernsteinBox(0.0) if kind is sf.DOPE else sf.HoeffdingBox(0.0)
    settings = tiny.settings(C, C - cheapest)
    agent = kind(tiny.world.problem, cheap, bounds=box, **settings)
    plan = agent.plan(tiny.counts)
    best = sf.constrained_optimum(empirical, C, cost=tiny.cost)
    d = visits_of(P_hat, tiny.start, plan.policy)
    assert (d * tiny.world.r).sum() == pytest.approx(best.value, abs=1e-7)
    assert (d * tiny.cost).sum() <= C
    assert (plan.source, plan.safety, plan.certified) == ("optimistic", "NOT CERTIFIED", False)
    assert "NOT CERTIFIED" in str(agent.promise)
    assert "NOT CERTIFIED" in plan.explain()
    # control: unseen rows matter
    wrong = np.where(tiny.n_sas.sum(axis=-1)[..., None] > 0, P_hat, np.eye(S)[0])
    if S > 1 and H > 1 and (tiny.n_sas.sum(axis=-1)[0] == 0).all():
        elsewhere = sf.TabularMDP(wrong, tiny.world.r, start=tiny.start)
        assert abs(sf.constrained_optimum(elsewhere, C, cost=tiny.cost).value - best.value) > 1e-6


def test_the_empirical_optimum_is_not_the_true_one():
    """Control of the test above: with another model the numbers differ."""
    apart = 0
    for seed in range(14):
        tiny = Tiny(seed, plenty=[0, 1, 3, 50])
        _, P_hat = estimate(tiny.n_sas, tiny.S)
        C = 0.4 * tiny.H
        models = (sf.TabularMDP(P, tiny.world.r, start=tiny.start) for P in (P_hat, tiny.world.P))
        mine, true = (sf.constrained_optimum(model, C, cost=tiny.cost).value for model in models)
        apart += math.isinf(mine) != math.isinf(true) or (
            not math.isinf(mine) and abs(mine - true) > 1e-4
        )
    assert apart >= 5


@pytest.mark.parametrize(
    ("kind", "why"),
    [(sf.DOPE, "The linear program is infeasible"), (sf.OptPessLP, "pessimistic cost")],
)
def test_few_data_leave_the_baseline_on_trust(kind, why):
    """The printed constants after no episodes, and after a thousand."""
    world = sf.world("three-rooms")
    floor = world.suggested_floor
    value = sf.value(world, world.baseline)
    agent = kind(world.problem, world.baseline, floor, baseline_value=value, episodes=K)
    for n in (0, 1000):
        counts = sf.Counts(n * world.P.astype(int))
        plan = agent.plan(counts)
        assert (plan.source, plan.safety, plan.certified) == ("baseline", "trusted", False)
        assert (plan.h, plan.rho) == (world.H, 0.0)
        assert_array_equal(plan.policy, world.baseline)
        assert plan.cost > world.H - floor
        assert plan.lower < floor
        assert why in plan.explain()
        assert "Trusted, not certified" in plan.explain()
        rounded_down = math.floor(floor * 1e5) / 1e5  # 2.68323: a promise is never rounded up
        assert f"the floor is {rounded_down:.6g}" in plan.explain()
    plan = agent.plan(sf.Counts(10**8 * world.P.astype(int)))  # control: plenty
    # made by hand, and of no episodes
    assert (plan.source, plan.safety) == ("optimistic", "trusted")
    assert "nobody says what these counts are evidence about" in plan.explain()
    assert plan.lower >= floor
    assert why not in plan.explain()


@pytest.mark.parametrize("kind", [sf.DOPE, sf.OptPessLP])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_floor_is_a_budget(kind, scale):
    """cost = 1 - r, budget = H - floor, baseline_cost = H - baseline_value: the same plan. Dyadic
    numbers: no rounding.

    Of returns nothing is said where costs are given, so `lower` differs.
    """
    left = 0
    box = sf.BernsteinBox(scale) if kind is sf.DOPE else sf.HoeffdingBox(scale)
    for seed in range(14):
        rng = np.random.default_rng(seed)
        S, A, H = 3, 2, 2
        P, r = rng.dirichlet(np.ones(S), size=(H, S, A)), rng.integers(0, 65, size=(H, S, A)) / 64
        world = sf.TabularMDP(P, r)
        baseline = sf.boltzmann(sf.solve(world).Q, eta=3.0)
        value = math.floor(64 * sf.value(world, baseline)) / 64
        floor = value - 0.25
        n = rng.choice([10**3, 10**6] if scale < 1.0 else [10**7, 10**8], size=(H, S, A))
        counts = sf.Counts(rng.multinomial(n, P))
        by_floor = kind(
            world.problem, baseline, floor, baseline_value=value, episodes=K, bounds=box
        )
        costs = {"cost": 1.0 - r, "budget": H - floor, "baseline_cost": H - value}
        by_cost = kind(world.problem, baseline, episodes=K, bounds=box, **costs)
        one, other = by_floor.plan(counts), by_cost.plan(counts)
        assert_array_equal(one.policy, other.policy)
        assert (one.source, one.cost, one.safety) == (other.source, other.cost, other.safety)
        left += one.source == "optimistic"
        if one.source == "optimistic":
            assert one.lower == pytest.approx(H - one.cost, abs=1e-12)
            assert other.lower == pytest.approx(r.min(axis=(1, 2)).sum(), abs=1e-12)
            tighter = one.cost - 0.01  # control: another budget, another plan
            costs |= {"budget": tighter, "baseline_cost": min(H - value, tighter / 2)}
            again = kind(world.problem, baseline, episodes=K, bounds=box, **costs).plan(counts)
            assert again.source == "baseline" or again.cost <= tighter < one.cost
            assert not np.array_equal(again.policy, one.policy)
    assert left >= 7
