"""DOPE's linear program, solved before every episode: warm, cold, and the same program by scipy."""

import time
from collections.abc import Iterator

import numpy as np
from settings import EVERY_EPISODE
from table import Row, at_most, plain

import surefoot as sf

SIZES = (((4, 2, 3), 300_000, 200, 1.0), ((10, 4, 5), 3_000_000, 50, 20.0))


def time_of_linear_programs() -> Iterator[Row]:
    for (S, A, H), seen, episodes, target in SIZES:
        where = f"({S}, {A}, {H})"
        agent, world, counts = setting(S, A, H, seen)
        warm, found = planned(agent, world, counts.copy(), episodes, warm=True)
        cold, _ = planned(agent, world, counts.copy(), episodes // 10, warm=False)
        other = by_scipy(agent, counts, repeats=3)
        note = (
            f"{found} of {episodes} plans off the baseline; median, with boxes, checks and policy"
        )
        yield at_most("DOPE: a plan, warm", where, warm * 1e3, "ms", target, note)
        yield plain(
            "DOPE: a plan, cold", where, cold * 1e3, "ms", f"{cold / warm:.1f} times the warm one"
        )
        yield plain(
            "the same program by scipy, cold",
            where,
            other * 1e3,
            "ms",
            f"{other / warm:.1f} times the warm one",
        )


def setting(S: int, A: int, H: int, seen: int) -> tuple[sf.DOPE, sf.TabularMDP, sf.Counts]:
    """Counts of a uniform policy, enough for the linear program to be feasible."""
    world = sf.random_mdp(S, A, H, seed=0, stationary=True)
    baseline = sf.boltzmann(sf.solve(world).Q, eta=5.0)
    value = float(sf.policy_value(world, baseline)[0, world.s1])
    visits = np.random.default_rng(0).multinomial(seen, world.P_rows[0])
    counts = sf.Counts(visits, H=H, s1=world.s1)
    given = {"baseline_value": value, "episodes": 10**9, "pooled": True, "replan": EVERY_EPISODE}
    return sf.DOPE(world.problem, baseline, value - 0.5, **given), world, counts


def planned(
    agent: sf.DOPE, world: sf.TabularMDP, counts: sf.Counts, episodes: int, warm: bool
) -> tuple[float, int]:
    """Median seconds of a plan, one before every episode; and how many left the baseline."""
    rng = np.random.default_rng(1)
    times, off = [], 0
    for k in range(episodes + 1):
        counts.basis = counts.basis if warm else None
        started = time.perf_counter()
        plan = agent.plan(counts)
        if k:  # the first one is cold
            times.append(time.perf_counter() - started)
            off += plan.source != "baseline"
        counts.basis = plan.basis
        counts.add(sf.play(world, plan.policy, rng))
    return float(np.median(times)), off


def by_scipy(agent: sf.DOPE, counts: sf.Counts, repeats: int) -> float:
    """Median seconds of scipy's HiGHS on the linear program as it is printed: z(h,s,a,s'), two
    rows of the box each.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    model = sf.Model(agent.problem, counts, agent.delta)
    b = agent.bounds.b(model, agent.episodes)
    H, S, A, _ = b.shape
    z = np.arange(b.size).reshape(b.shape)
    b_bar = b.sum(axis=-1, keepdims=True)
    c_bar = np.broadcast_to(agent.c[..., None] + H * b_bar, b.shape)
    r_bar = np.broadcast_to(agent.problem.r[..., None] + H**2 / agent.kappa * b_bar, b.shape)
    rows, columns, values = [], [], []
    for h in range(H):
        for s in range(S):
            rows += [h * S + s] * (A * S)
            columns += z[h, s].ravel().tolist()
            values += [1.0] * (A * S)
            if h > 0:
                rows += [h * S + s] * (A * S)
                columns += z[h - 1, :, :, s].ravel().tolist()
                values += [-1.0] * (A * S)
    flow = coo_array((values, (rows, columns)), shape=(H * S, z.size))
    start = np.zeros(H * S)
    start[:S] = agent.problem.start
    pairs = z.reshape(-1, S)
    same = np.repeat(pairs, S, axis=0)  # each entry's row sums over its pair
    own = np.eye(S)[np.tile(np.arange(S), len(pairs))]
    low, high = (model.P_hat - b).reshape(-1, 1), (model.P_hat + b).reshape(-1, 1)
    box = np.concatenate([(own - high).ravel(), (low - own).ravel(), c_bar.ravel()])
    at = np.concatenate([np.repeat(np.arange(2 * z.size), S), np.full(z.size, 2 * z.size)])
    columns_of = np.concatenate([same.ravel(), same.ravel(), z.ravel()])
    above = coo_array((box, (at, columns_of)), shape=(2 * z.size + 1, z.size)).tocsr()
    limits = np.zeros(2 * z.size + 1)
    limits[-1] = agent.C
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        answer = linprog(
            -r_bar.ravel(), A_ub=above, b_ub=limits, A_eq=flow.tocsr(), b_eq=start, method="highs"
        )
        times.append(time.perf_counter() - started)
        assert answer.status == 0, answer.message
    return float(np.median(times))
