"""A process that answers for itself: how much of the time is planning, and how long episodes of larger worlds take.

Share: of the time that a Learner and its plans take, while the process itself takes none. Any process takes some, and
the share is smaller then. The world is drawn from in the same loop, and that time is left out.
"""

import itertools
import time
from collections.abc import Iterator

import gymnasium
import numpy as np
import scipy.sparse
from scaling import A, H, world_of
from table import Row, at_most, plain

import surefoot as sf
from surefoot.assurance.premises import Premises

WORLDS = (  # tables up to 64 states, lists above
    ("random", {"S": 1, "A": 4, "H": 1}),
    ("random", {"S": 5, "A": 5, "H": 3}),
    ("dosing", {}),
    ("offers", {}),
    ("river-swim", {}),
    ("grid-traps", {"rows": 4, "columns": 4, "H": 20}),
    ("random", {"S": 30, "A": 2, "H": 50, "stationary": True}),  # every state may follow every pair
    ("grid-traps", {"rows": 6, "columns": 6, "H": 12}),
    ("grid-traps", {"rows": 8, "columns": 8, "H": 50}),
    ("random", {"S": 18, "A": 4, "H": 100, "stationary": True}),
    ("grid-traps", {"rows": 23, "columns": 22, "H": 20}),
    ("grid-traps", {"rows": 71, "columns": 71, "H": 20}),
    ("call-centre", {"lines": 40, "desks": 20, "hours": 12, "H": 12}),
)
SMALL_WORLDS = (
    ("random", {"S": 5, "A": 5, "H": 3}),
    ("dosing", {}),
    ("offers", {}),
    ("river-swim", {}),
    ("grid-traps", {"rows": 4, "columns": 4, "H": 20}),
    ("grid-traps", {"rows": 6, "columns": 6, "H": 12}),
    ("grid-traps", {"rows": 8, "columns": 8, "H": 50}),
)
TOLD_SIZES = ((30, 3, 20, 3), (60, 3, 15, 3), (300, 3, 15, 40), (900, 4, 30, 3))  # S, A, H, successors of a pair
STEP_SIZES, MOST_GROWTH_OF_A_STEP = (100, 1_000, 10_000, 100_000), 3.0  # memory is slower than caches
ALIKE_EPISODES = 2_000
MOST_FOR_DOPE = 10  # states: its linear programs take minutes above
MOST_SHARE = 0.5
MOST_FOR_CHECKS, CHECKED_EPISODES, CHECKED_RUNS = 1.1, 200, 6
CHECKED = (
    ("random", {"S": 5, "A": 5, "H": 3, "stationary": True}),
    ("offers", {}),
    ("river-swim", {}),
    WORLDS[6],
    WORLDS[8],
)
AT_LEAST = 100  # episodes, and those of some plans: at first plans are made most often
TAXI_EPISODES, TAXI_SECONDS = 10_000, 120.0
SIMULATED_EPISODES, SIMULATED_SECONDS = 300, {"EpsMix": 2.0, "StepMix": 5.0}


def time_of_live_episodes() -> list[Row]:
    return [
        *itertools.chain(*(shares(sf.world(name, **settings), name, splices) for name, settings in WORLDS)),
        *itertools.chain(*(shares(sf.world(name, **settings), name, others) for name, settings in SMALL_WORLDS)),
        *itertools.chain(*(shares(told(*sizes), "", masked) for sizes in TOLD_SIZES)),
        *steps_of_a_learner(),
        *what_checks_take(),
        *plans_that_change_nothing(),
        *simulated(),
        taxi(),
    ]


def shares(world: sf.TabularMDP, name: str, agents) -> list[Row]:
    """The share of planning, of every agent in a world."""
    rows = []
    for item, agent in agents(world).items():
        rule = agent.replan_rule
        episodes = max(AT_LEAST, getattr(rule, "at_least", 1) + 1)
        agent.plan(sf.Counts.zeros(agent.problem, agent.pooled), np.random.default_rng(0))  # compiles
        planning, acting, plans, episodes = timed(world, agent, episodes)
        where = f"({world.S:,}, {world.A}, {world.H}) {name}".strip()
        note = (
            f"{episodes} episodes, {plans} plans of {1e3 * planning / plans:.2g} ms, "
            f"{1e6 * acting / episodes / world.H:.0f} us a step, {rule}"
        )
        share = planning / (planning + acting)
        rows.append(at_most(f"{item}: share of planning, live", where, share, "", MOST_SHARE, note))
    return rows


def splices(world: sf.TabularMDP) -> dict:
    given = world.problem, world.baseline, world.suggested_floor
    return {kind.name: kind(*given, delta=0.1, pooled=world.stationary) for kind in (sf.EpsMix, sf.StepMix)}


def told(S: int, A: int, H: int, successors: int) -> sf.TabularMDP:
    """A sparse world whose rewards depend on the next state."""
    rng = np.random.default_rng(0)
    states, p = rng.integers(0, S, (S * A, successors)), rng.dirichlet(np.ones(successors), S * A)
    P = scipy.sparse.csr_array((p.ravel(), (np.repeat(np.arange(S * A), successors), states.ravel())), shape=(S * A, S))
    r_next = scipy.sparse.csr_array((rng.random(P.nnz), P.indices, P.indptr), shape=P.shape)
    return sf.TabularMDP(P, r_next=r_next, H=H)


def masked(world: sf.TabularMDP) -> dict:
    """Agents that are told rewards by next state, and possible next states; and those with a relative floor."""
    S, A, H = world.S, world.A, world.H
    pi_b = sf.uniform(H, S, A)
    pair, state, p = world.entries(0)
    support = scipy.sparse.csr_array((p, (pair, state)), shape=(S * A, S))
    r = np.random.default_rng(1).random((S, A))
    knowing = {
        "rewards by next state": world.problem,
        "a mask": sf.Problem(r, H=H, support=support, stationary=True),
    }
    floors = {"": 0.9 * world.at_start(sf.policy_value(world, pi_b)[0]), ", relative": sf.Relative(0.1)}
    return {
        f"{kind.name}{relative}, {what}": kind(problem, pi_b, floor, delta=0.1, pooled=True)
        for kind, (relative, floor), (what, problem) in itertools.product(
            (sf.EpsMix, sf.StepMix), floors.items(), knowing.items()
        )
    }


def others(world: sf.TabularMDP) -> dict:
    """Rivals, and an explorer that draws worlds. A box of no width lets linear programs be solved from the start."""
    given, pooled = (world.problem, world.baseline, world.suggested_floor), {"delta": 0.1, "pooled": world.stationary}
    value = {"baseline_value": world.at_start(sf.policy_value(world, world.baseline)[0])}
    below = sf.Below(max(value["baseline_value"] - world.suggested_floor, 1e-3))
    thompson = sf.Thompson(world.problem)
    optpess = sf.OptPessLP(*given, episodes=20_000, scale=1e-9, **value, **pooled)
    agents = {
        "EpsMix, Thompson": sf.EpsMix(*given, explorer=thompson, **pooled),
        "BPI-UCBVI": sf.BPIUCBVI(world.problem, **pooled),
        "BPI-UCBVI (Menard 2021)": sf.BPIUCBVIMenard(world.problem, **pooled),
        "Budget-Exploration": sf.BudgetExploration(*given, **pooled),
        "conservative UCBVI": sf.ConservativeUCBVI(*given, **value, **pooled),
        "UCBVI": sf.UCBVI(world.problem, episodes=20_000, **pooled),
        "Reward-free safe RL": sf.RewardFreeSafeRL(*given, **value, **pooled),
        "OptPess-LP, scaled": optpess,
        "Budget-Exploration, OptPess-LP inside": sf.BudgetExploration(*given, learner=optpess, **pooled),
        "EpsMix, relative": sf.EpsMix(*given[:2], below, **pooled),
        "StepMix, relative": sf.StepMix(*given[:2], below, **pooled),
    }
    if world.S <= MOST_FOR_DOPE:
        agents["DOPE, scaled"] = sf.DOPE(*given, episodes=20_000, scale=1e-9, **value, **pooled)
    return agents


def paid(world: sf.TabularMDP, h: int, s: int, a: int, s_next: int) -> float:
    """The reward in the world's own units, as a process would pay it: held against the table, it is that."""
    return float(world.problem.units.step_to_user(np.array(world.mean_reward(h, s, a, s_next))))


def timed(world: sf.TabularMDP, agent: sf.Agent, episodes: int) -> tuple[float, float, int, int]:
    """Seconds of planning and of acting, and how many plans and episodes there were: from the second plan on, for so
    many episodes and until the next plan, so that each plan is seen with all the episodes that follow it. An episode
    that begins with a new plan also checks its policy: that is planning, too."""
    learner, rng = sf.Learner(agent, seed=1), np.random.default_rng(0)
    plans: list[float] = []
    acting, first, plan = 0.0, None, None
    for k in itertools.count():
        started = time.perf_counter()
        learner.begin()
        begun = time.perf_counter() - started
        if learner.counts.planned is not plan:
            plan = learner.counts.planned
            if len(plans) == 1:
                acting, first = 0.0, k
            elif first is not None and k - first >= episodes:
                return sum(plans[1:]), acting, len(plans) - 1, k - first
            plans.append(begun)
        else:
            acting += begun
        for h in range(world.H):
            started = time.perf_counter()
            s = world.s1 if h == 0 else learner.state
            a = learner.act()
            acting += time.perf_counter() - started
            s_next = world.draw_next(h, s, a, rng)
            x = paid(world, h, s, a, s_next)
            started = time.perf_counter()
            learner.observe(s_next, x)
            acting += time.perf_counter() - started
        started = time.perf_counter()
        learner.end()
        acting += time.perf_counter() - started


def steps_of_a_learner() -> list[Row]:
    """A step of a Learner without its plans, against the number of states: in one of the smallest world."""
    seconds = {}
    for S in STEP_SIZES:
        world = world_of(S)[0]
        pi_b = sf.uniform(world.H, world.S, world.A)
        agent = sf.EpsMix(world.problem, pi_b, 0.0, delta=0.1, pooled=True, replan=sf.Blocks(0.1, at_least=50))
        _, acting, _, episodes = timed(world, agent, 200)
        seconds[S] = acting / episodes / H
    return [
        at_most(
            "a step of a Learner, without plans, in one of 100 states",
            f"({S:,}, {A}, {H}), three successors",
            seconds[S] / seconds[STEP_SIZES[0]],
            "",
            MOST_GROWTH_OF_A_STEP,
            f"{1e6 * seconds[S]:.0f} us",
        )
        for S in STEP_SIZES[1:]
    ]


def what_checks_take() -> list[Row]:
    """An episode, its plans included, with the checks of premises in one without: by turns, in seconds of this
    process. Steps that share counts are kept apart and compared, and rewards are held against the table."""
    rows = []
    for name, settings in CHECKED:
        world = sf.world(name, **settings)
        agent = splices(world)["EpsMix"]
        episode_seconds(world, agent, 5, checked=True)  # compiles
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for checked in (True, False) * CHECKED_RUNS:
            seconds[checked].append(episode_seconds(world, agent, CHECKED_EPISODES, checked))
        best = {checked: min(some) for checked, some in seconds.items()}
        note = f"{1e6 * best[True]:.0f} us, without checks {1e6 * best[False]:.0f} us"
        where = f"({world.S:,}, {world.A}, {world.H}) {name}"
        rows.append(
            at_most(
                "an episode with its checks in one without", where, best[True] / best[False], "", MOST_FOR_CHECKS, note
            )
        )
    return rows


def episode_seconds(world: sf.TabularMDP, agent: sf.Agent, episodes: int, checked: bool) -> float:
    learner, rng, total = sf.Learner(agent, seed=1), np.random.default_rng(0), 0.0
    if not checked:
        learner.counts.steps, learner.premises = None, Premises(None)
    for _ in range(episodes):
        started = time.process_time()
        learner.begin()
        total += time.process_time() - started
        for h in range(world.H):
            s, started = learner.state, time.process_time()
            a = learner.act()
            total += time.process_time() - started
            s_next = world.draw_next(h, s, a, rng)
            x, started = paid(world, h, s, a, s_next), time.process_time()
            learner.observe(s_next, x)
            total += time.process_time() - started
        started = time.process_time()
        learner.end()
        total += time.process_time() - started
    return total / episodes


def plans_that_change_nothing() -> list[Row]:
    """Whether a plan will come out different is known only by making it: the share of those that do not."""
    rows = []
    for name in ("dosing", "offers", "queue", "river-swim", "media-buffer"):
        world = sf.world(name)
        for item, agent in splices(world).items():
            plans = list(dict.fromkeys(plans_of(world, agent)))
            same = sum(same_policy(*pair) for pair in itertools.pairwise(plans))
            where, note = f"{name}, {ALIKE_EPISODES:,} episodes", f"{same} of {len(plans) - 1} plans"
            rows.append(
                plain(f"{item}: plans that are the last policy again", where, same / (len(plans) - 1), "", note)
            )
    return rows


def plans_of(world: sf.TabularMDP, agent: sf.Agent) -> Iterator[sf.Plan]:
    """The plan of each episode."""
    learner, rng = sf.Learner(agent, seed=1), np.random.default_rng(0)
    for _ in range(ALIKE_EPISODES):
        yield learner.begin()
        for h in range(world.H):
            s = world.s1 if h == 0 else learner.state
            a = learner.act()
            s_next = world.draw_next(h, s, a, rng)
            learner.observe(s_next, paid(world, h, s, a, s_next))
        learner.end()


def same_policy(one: sf.Plan, other: sf.Plan) -> bool:
    a, b = one.policy, other.policy
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    return a.rho == b.rho and (a.rho == 0.0 or np.array_equal(a.second, b.second))


def simulated() -> list[Row]:
    """The first episodes of a run, plans included."""
    world = world_of(500)[0]
    pi_b = sf.uniform(world.H, world.S, world.A)
    floor = 0.9 * world.at_start(sf.policy_value(world, pi_b)[0])
    rows = []
    for kind in (sf.EpsMix, sf.StepMix):
        agent = kind(world.problem, pi_b, floor, delta=0.1, pooled=True)
        sf.simulate(world, agent, 40, seed=0)  # compiles
        started = time.perf_counter()
        sf.simulate(world, agent, SIMULATED_EPISODES, seed=1)
        seconds = time.perf_counter() - started
        item = f"{kind.name}: {SIMULATED_EPISODES} episodes, simulated"
        rows.append(at_most(item, "(500, 5, 20), three successors", seconds, "s", SIMULATED_SECONDS[kind.name]))
    return rows


def taxi() -> Row:
    env = gymnasium.make("Taxi-v4", max_episode_steps=30)
    world = sf.from_gymnasium(env, horizon=30)
    pi_b = sf.uniform(world.H, world.S, world.A)
    floor = world.at_start(sf.policy_value(world, pi_b)[0]) - 20.0
    agent = sf.EpsMix(world.problem, pi_b, floor, delta=0.1, pooled=True)
    sf.learn(env, agent, 30, seed=0, progress=False)  # compiles
    started = time.perf_counter()
    run = sf.learn(env, agent, TAXI_EPISODES, seed=1, progress=False)
    seconds = time.perf_counter() - started
    note = f"{run.violations} below the floor, first mixture at {run.first_mixture}, {agent.replan_rule}"
    where = f"({world.S}, {world.A}, {world.H})"
    return at_most(f"EpsMix: {TAXI_EPISODES:,} episodes of Taxi-v4, live", where, seconds, "s", TAXI_SECONDS, note)
