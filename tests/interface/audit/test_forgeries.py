"""Forgeries, field by field: real ledgers in which something is changed, and which are chained
again with good digests.

Only what a record means can give such a forgery away. Each row of a table is one in each of its
ledgers: the field, what is said instead, the ledgers, the change, and words of the reason for which
it must be refused. The control: the same ledgers as they were written are accepted. A second table
has what is accepted, and why that is harmless. Each field is in one of them.
"""

import copy
import functools
import importlib.util
import itertools
import json
import operator
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import surefoot as sf
from surefoot.audit import guard_verifier, verifier


def module(path):
    """The tests of whole ledgers have the worlds, and what writes their ledgers."""
    spec = importlib.util.spec_from_file_location(f"ledgers_of_{path.stem}", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


HERE = Path(__file__).parent
AGENTS, GUARDS = (
    module(HERE / "test_verifier.py"),
    module(HERE.parent / "guard" / "test_guard_ledger.py"),
)
hexed, chain = float.hex, AGENTS.chain


class Shop(gymnasium.Env):
    """Two states, in each of which an episode may start: one loses 10, or little; the other
    earns 4, or nothing.
    """

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
    initial_state_distrib = np.array([0.5, 0.5])
    P = {  # noqa: RUF012  (Gymnasium's own form)
        0: {
            a: [(0.3, 0, (-1.0, -10.0)[a], False), (0.7, 1, (-1.0, -10.0)[a], False)]
            for a in (0, 1)
        },
        1: {a: [(0.6, 1, (4.0, 0.0)[a], False), (0.4, 0, (4.0, 0.0)[a], False)] for a in (0, 1)},
    }


def shop(path, **settings):
    """A ledger of a problem whose states got a common start: 3 steps, of which 2 pay."""
    world = sf.from_gymnasium(Shop(), horizon=2, reward_range=(-10.0, 4.0))
    problem = world.problem.forget(**settings)
    agent = sf.StepMix(problem, sf.uniform(3, 4, 2), -8.0, delta=0.2, replan=0.5, returns=None)
    sf.simulate(world, agent, 2000, seed=1, ledger=path)


def losses(path):
    """A ledger of rewards of -10 to 4: the least that an episode can return is -30. State 0 pays
    least, for certain.
    """
    rng = np.random.default_rng(7)
    r = np.array([[0.0, 0.0], [0.2, 0.7], [0.9, 0.9]])
    world = sf.TabularMDP(
        rng.dirichlet(np.ones(3), size=(3, 3, 2)), sf.Rescaled(r), units=sf.Units(-10.0, 4.0)
    )
    agent = sf.StepMix(
        world.problem, sf.uniform(3, 3, 2), -20.0, delta=0.2, replan=0.5, returns=None
    )
    sf.simulate(world, agent, 2000, seed=1, ledger=path)


def chained(path):
    """A ledger of rewards of -10 to 4, whose first state pays the least, and which nothing leads
    back to; but no mask says so.
    """
    P = np.zeros((3, 2, 3))
    P[:, 0], P[:, 1] = [0.0, 0.7, 0.3], [0.0, 0.2, 0.8]
    r = np.array([[0.0, 0.0], [0.2, 0.3], [0.9, 0.9]])
    world = sf.TabularMDP(P, sf.Rescaled(r), H=3, units=sf.Units(-10.0, 4.0))
    agent = sf.StepMix(
        world.problem, sf.uniform(3, 3, 2), -25.0, delta=0.2, replan=0.5, returns=None
    )
    sf.simulate(world, agent, 2000, seed=1, ledger=path)


def like_a_start(path, s1=2, differ=False, unknown=False):
    """A ledger of rewards of -10 to 4, whose first state pays the least, and which nothing leads
    back to, as the mask says: 3 steps pay. It has all marks of a common start but one.
    """
    others = [s for s in range(3) if s != s1]
    P, r = np.zeros((3, 2, 3)), np.zeros((3, 2))
    P[:, :, others] = 0.5
    if differ:
        P[s1, 1] = np.eye(3)[others[0]]
    r[others[0]], r[others[1]] = [0.6, 0.7], [0.9, 0.95]
    world = sf.TabularMDP(P, sf.Rescaled(r), H=3, s1=s1, units=sf.Units(-10.0, 4.0))
    world = world.with_support()
    problem = world.problem.forget(rewards=True) if unknown else world.problem
    agent = sf.StepMix(problem, sf.uniform(3, 3, 2), -25.0, delta=0.2, replan=0.5, returns=None)
    sf.simulate(world, agent, 2000, seed=1, ledger=path)


def coins(path):
    """A ledger of one state and one action, which pays 0 or 1 by a fair coin that nobody knows."""
    world = sf.TabularMDP(np.ones((1, 1, 1, 1)), np.array([[[0.5]]]), random_rewards=True)
    problem = world.problem.forget(rewards=True)
    agent = sf.StepMix(problem, np.ones((1, 1, 1)), 0.3, delta=0.1, replan=0.5, returns=None)
    sf.simulate(world, agent, 400, seed=1, ledger=path)


class ManyShops(Shop):
    """The same in 70 states, in half of which one loses: more than a table is made for."""

    observation_space = gymnasium.spaces.Discrete(70)
    initial_state_distrib = np.full(70, 1 / 70)
    P = {  # noqa: RUF012  (Gymnasium's own form)
        s: {
            a: [(0.5, s // 2, reward, False), (0.5, (s + 1) % 70, reward, False)]
            for a, reward in enumerate((-1.0, -10.0) if s % 2 else (4.0, 0.0))
        }
        for s in range(70)
    }


def many_shops(path, **settings):
    """A ledger of 70 states that got a common start; nobody knows what follows most of them."""
    world = sf.from_gymnasium(ManyShops(), horizon=2, reward_range=(-10.0, 4.0))
    problem = world.problem.forget(**settings)
    agent = sf.StepMix(problem, sf.uniform(3, 72, 2), -15.0, delta=0.2, replan=1.0, returns=None)
    sf.simulate(world, agent, 2000, seed=1, ledger=path)


def many_states(path, listed=False):
    """A ledger of rewards of -10 to 4 in 70 states, the last of which is the first, and pays the
    least. It has all marks of a common start but one: nobody says that nothing leads back to it.

    `listed`: what may follow is said, and the first state is among it.
    """
    S = 70
    P, rewards, mask = np.zeros((S, 1, S)), np.full((S, 1), 0.5), np.ones((S, 1, S), dtype=np.bool_)
    P[:, :, 1:-1] = 1 / (S - 2)
    mask[:, :, 0] = False
    rewards[-1] = 0.0
    known = {"s1": S - 1, "units": sf.Units(-10.0, 4.0), "support": mask if listed else None}
    world = sf.TabularMDP(P, sf.Rescaled(rewards), H=3, **known)
    agent = sf.StepMix(
        world.problem,
        np.ones((3, S, 1)),
        -25.0,
        delta=0.2,
        replan=0.5,
        returns=None,
        pooled=True,
    )
    sf.simulate(world, agent, 3000, seed=1, ledger=path)


def eps_coins(path):
    """A ledger of EpsMix: the baseline takes the coin that pays 1 with probability 0.5, and the
    explorer, once it is another policy, the one with 0.9.
    """
    world = sf.TabularMDP(np.ones((1, 1, 2, 1)), np.array([[[0.5, 0.9]]]), random_rewards=True)
    problem = world.problem.forget(rewards=True)
    agent = sf.EpsMix(problem, np.array([[[1.0, 0.0]]]), 0.4, delta=0.1, replan=0.2)
    sf.simulate(world, agent, 3000, seed=1, ledger=path)


# ledgers that are made here, by their names
MADE = {
    "eps coins": eps_coins,
    "coins": coins,
    "shop": shop,
    "shop unknown": lambda path: shop(path, rewards=True),
    "shop no support": lambda path: shop(path, support=True),
    "many shops": many_shops,
    "many shops no support": lambda path: many_shops(path, support=True),
    "many": many_states,
    "many mask": lambda path: many_states(path, listed=True),
    "chain": chained,
    "losses": losses,
    "start first": lambda path: like_a_start(path, s1=0),
    "start differs": lambda path: like_a_start(path, differ=True),
    "start unknown": lambda path: like_a_start(path, unknown=True),
}


@functools.cache
def honest(name):
    """The records of a ledger as it was written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        if name.startswith("guard "):
            GUARDS.written(path, name.removeprefix("guard "), 300)
        elif name in MADE:
            MADE[name](path)
        else:
            path.write_bytes(b"".join(AGENTS.ledger(name)))
        return [json.loads(line) for line in path.read_bytes().splitlines()]


def verdict_of(name, records):
    """What the verifier of this kind of ledger says."""
    return (guard_verifier if name.startswith("guard ") else verifier).verify(chain(records))


# ---- changes. A record is named by its number, or by a function that finds it; several by a slice


def places(records, at, way):
    """What holds the last of these keys, in each of these records."""
    at = at(records) if callable(at) else at
    for record in records[at] if isinstance(at, slice) else [records[at]]:
        yield functools.reduce(operator.getitem, way, record)


def put(at, *way):
    """Another value in one place, or what a function makes of the one that is there."""
    *way, last, value = way

    def change(records):
        for inner in places(records, at, way):
            inner[last] = value(inner[last]) if callable(value) else copy.deepcopy(value)

    return change


def add(at, *way):
    """More, or less, in one place."""
    *way, amount = way

    def plus(known):
        return known + amount if isinstance(known, int) else hexed(float.fromhex(known) + amount)

    return put(at, *way, plus)


def times(factor):
    """Numbers, or lists of them, by a factor."""

    def scaled(x):
        return [scaled(y) for y in x] if isinstance(x, list) else hexed(factor * float.fromhex(x))

    return scaled


def everywhere(*changes):
    """Several changes at once."""

    def change(records):
        for one in changes:
            one(records)

    return change


def first_plan(records, **wanted):
    """The number of the first plan record in which these fields have these values."""
    for number, record in enumerate(records):
        if record["kind"] == "plan" and all(record[key] == value for key, value in wanted.items()):
            return number
    raise AssertionError(f"no such plan: {wanted}")


def where(**wanted):
    """The number of the first plan with these fields."""
    return lambda records: first_plan(records, **wanted)


def with_some(field):
    """The number of the first plan in which this list is not empty."""
    return lambda records: next(i for i, record in enumerate(records) if i and record[field])


MIXED, LAST, END = where(source="mixture", safety="certified"), -2, -1
TRUSTED, BASELINE = where(safety="trusted"), where(source="baseline")
PLANS = slice(1, -1)
ALL = hexed(0.2)  # of delta


def certificate(value, delta, fingerprint="00ff"):
    """An earlier certificate, of which the ledger knew nothing."""
    value, delta = hexed(value), hexed(delta)
    return put(0, "certificate", {"value": value, "delta": delta, "fingerprint": fingerprint})


def spending(model, *more):
    """Another part of delta for the model, in all places that say it."""
    parts = (put(0, "spending", key, model) for key in ("model", "delta_prime"))
    return everywhere(*parts, *more)


def no_later_plan(records):
    """The first one is the only one."""
    del records[2:-1]
    records[-1]["plans"] = 1


def bolder_with_its_policy(records):
    """A larger rho, and the policy that it makes."""
    plan = records[MIXED(records)]
    rho = min(1.0, float.fromhex(plan["rho"]) + 1e-6)
    h, A = plan["h"] - 1, records[0]["A"]
    explorer = plan["explorer"][h]
    bold = [np.eye(A)[x] if isinstance(x, int) else [float.fromhex(y) for y in x] for x in explorer]
    safe = [[float.fromhex(y) for y in row] for row in records[0]["baseline"][h]]
    mixed = (1 - rho) * np.array(safe) + rho * np.array(bold)
    plan["rho"], plan["policy"][h] = hexed(rho), [[hexed(x) for x in row] for row in mixed]


def bolder_than_certified(records):
    plan = records[BASELINE(records)]
    plan |= {"h": 0, "rho": hexed(1.0), "source": "optimistic", "safety": "certified"}
    if plan["policy"]:
        A = records[0]["A"]
        plan["policy"] = [
            [[hexed(x) for x in np.eye(A)[a]] for a in row] for row in plan["explorer"]
        ]


def all_of_the_last_plan_up(records):
    plan = records[LAST]
    plan["candidates"] = [hexed(float.fromhex(x) + 2e-11) for x in plan["candidates"]]
    plan["lower"], plan["by_model"] = plan["candidates"][0], plan["candidates"][-1]


def other_actions(explorer):
    """The other one of two, everywhere."""
    return [[1 - a for a in row] for row in explorer]


def an_explorer_the_paper_does_not_know(records):
    """On the baseline, so that only the explorer itself is wrong."""
    plan = next(record for record in records[-2:0:-1] if record["source"] == "baseline")
    plan["explorer"] = other_actions(plan["explorer"])
    plan["candidates"] = [hexed(0.0)] * len(plan["candidates"])
    plan["by_model"] = plan["lower"] = hexed(0.0)


def a_field_under_another_name(records):
    records[3]["frosty"] = records[3].pop("frozen")


def a_return_counted_higher(records):
    """From one node to the next."""
    place, weight = next(change for change in records[2]["returns"] if change[0] < 64)
    changes = dict(map(tuple, records[2]["returns"]))
    changes[place] -= weight
    changes[place + 1] = changes.get(place + 1, 0) + weight
    records[2]["returns"] = [[k, n] for k, n in sorted(changes.items()) if n]


def a_frozen_plan_called_certified(records):
    """Of the baseline, too: it cannot break a relative floor."""
    assert records[1]["safety"] == "certified"
    records[1] |= {"h": 3, "rho": hexed(0.0), "source": "baseline", "frozen": True}
    records[1] |= {"policy": records[0]["baseline"], "lower": records[1]["by_model"]}
    no_later_plan(records)


def episodes_that_nobody_planned(records):
    """The first plan has counts, though the ledger is not warm."""
    first, second = records[1:3]
    for key in ("visits", "starts", "rewards", "between", "returns"):
        first[key], second[key] = second[key], []
    first["episodes"], first["baseline_returns"] = second["episodes"], second["baseline_returns"]
    no_later_plan(records)


def spread_too_low(missing):
    """All first returns but so many are spread, at the lowest node: then the upper bound would be
    too small. What is not spread would be, by the sum, as much as many can be.
    """

    def change(records):
        total = sum(weight for _, weight in records[1]["returns"])
        assert total == records[1]["baseline_returns"][0] * 2**20
        records[1]["returns"] = [[0, total - missing * 2**20]]

    return change


def a_warm_ledger_that_does_not_flow(records):
    """Of later episodes, one visit more at the last step, and one fewer at the first."""
    last = next(record for record in records[2:-1] if len(record["visits"]) > 6)
    fewer = next(entry for entry in last["visits"] if entry[0] == 0 and entry[3] > 1)
    more = last["visits"][-1]
    for entry, change in ((fewer, -1), (more, 1)):
        next(played for played in last["played"] if played[:2] == entry[:2])[2] += change
        entry[3] += change
    del records[records.index(last) + 1 : -1]
    records[-1]["plans"] = len(records) - 2


def a_return_of_an_episode_that_the_baseline_did_not_play(records):
    """The highest that there is."""
    assert records[1]["source"] == "mixture" and records[2]["returns"] == []
    records[2]["returns"] = [[64, 2**20]]
    highest = sum(float.fromhex(records[0]["returns"][key]) for key in ("lowest", "span"))
    for record in records[2:-1]:
        n, total = record["baseline_returns"]
        record["baseline_returns"] = [n + 1, total + round(2**20 * highest)]


def later_returns_that_were_earned_before_the_first_plan(records):
    """The highest there are, of as many episodes as the baseline played."""
    played = next(i for i in range(2, len(records)) if records[i - 1]["source"] == "baseline")
    (n, total), (n_now, total_now) = (
        record["baseline_returns"] for record in records[played - 1 : played + 1]
    )
    for record in records[played:-1]:
        record["baseline_returns"][1] += (n_now - n) * records[0]["H"] * 2**20 - (total_now - total)


def spread_less(records):
    """The coin's last rewards are said to be all of 1/2: less than all rewards so far allow, more
    than the last ones, of which half are 1. Rewards spread less prove more.
    """
    n = records[LAST]["played"][0][-1]
    x = records[LAST]["rewards"][0][-1]
    x_so_far = sum(more for record in records[1:-1] for *_, more in record["rewards"])
    assert 2**18 * n < x < x_so_far / 2
    records[LAST]["between"] = [[0, 0, 2**18 * n + 2**10]]


def another_action(records):
    """At the last step, after a plan that never plays it: no state is left or reached in another
    number.
    """
    A, last = records[0]["A"], records[0]["H"] - 1
    optimistic = first_plan(records, source="optimistic", h=0)
    plan = next(record for record in records[optimistic + 1 : -1] if record["visits"])
    for field in ("visits", "played"):
        moved = [
            [h, pair + 1 - 2 * (pair % A) if h == last else pair, *rest]
            for h, pair, *rest in plan[field]
        ]
        plan[field] = sorted(moved)


def another_last_action(records):
    """Once, at the last step, whose next state is not counted: an action that is not played at
    any step.
    """
    A = records[0]["A"]
    optimistic = first_plan(records, source="optimistic", h=0)
    plan = next(record for record in records[optimistic + 1 : -1] if record["visits"])
    before = records[records.index(plan) - 1]
    chosen = {s * A + a for step in before["explorer"] for s, a in enumerate(step)}
    followed = [
        (pair, sum(n for _, other, _, n in plan["visits"] if other == pair)) for pair in chosen
    ]
    played = {pair: n for _, pair, n in plan["played"]}
    at = next(p for p, n in followed if played.get(p, 0) > n and p + 1 - 2 * (p % A) not in chosen)
    played[at] -= 1
    played[at + 1 - 2 * (at % A)] = 1
    plan["played"] = [[0, pair, n] for pair, n in sorted(played.items()) if n]


def worst_returns(records):
    """The sum and the spread of all returns are those of the worst ones there can be."""
    least = float.fromhex(records[0]["returns"]["lowest"]) * 2**20
    before = 0
    for record in records[1:-1]:
        n = record["baseline_returns"][0]
        record["baseline_returns"][1] = round(n * least)
        record["returns"] = [[0, (n - before) * 2**20]] if n > before else []
        before = n


def labelled(more, earned):
    """After the mixture with the most of the explorer's episodes, so many more are said to be the
    baseline's, and to have paid so much more; and they are spread as that says.
    """

    def change(records):
        plans = records[1:-1]
        plan = max(
            (now for then, now in itertools.pairwise(plans) if then["source"] == "mixture"),
            key=lambda plan: sum(n for _, pair, n in plan["played"] if pair == 1),
        )
        for later in plans[plans.index(plan) :]:
            later["baseline_returns"][0] += more
            later["baseline_returns"][1] += earned * 2**20
        weights = dict(plan["returns"])
        weights[0] += (more - earned) * 2**20
        weights[64] += earned * 2**20
        plan["returns"] = [[place, weight] for place, weight in sorted(weights.items()) if weight]

    return change


def all_by_the_explorer(records):
    """After a mixture of EpsMix: every coin of it fell for the explorer."""
    plans = records[1:-1]
    then, plan = next(
        pair
        for pair in itertools.pairwise(plans)
        if pair[0]["source"] == "mixture" and float.fromhex(pair[0]["rho"]) < 0.1
    )
    n = plan["episodes"] - then["episodes"]
    plan["visits"], plan["played"] = [[0, 1, 0, n]], [[0, 1, n]]
    plan["rewards"] = [[0, 1, sum(x for *_, x in plan["rewards"])]]
    plan["baseline_returns"], plan["returns"] = then["baseline_returns"], []


def actions_by_the_explorer(records):
    """After a mixture: at its step every action was the explorer's, whatever its probability."""
    plans = records[1:-1]
    then, plan = next(
        (then, plan)
        for then, plan in itertools.pairwise(plans)
        if then["source"] == "mixture" and float.fromhex(then["rho"]) < 0.7
    )
    h, A = then["h"] - 1, records[0]["A"]
    for field in ("visits", "played"):
        moved = Counter()
        for row, pair, *rest, more in plan[field]:
            s = pair // A
            chosen = s * A + then["explorer"][h][s]
            moved[row, chosen if row == h else pair, *rest] += more
        plan[field] = [[*place, more] for place, more in sorted(moved.items())]


def drawn_by_luck(records):
    """Wherever the candidate had a share that is not all of the coin, it was drawn."""
    moved = 0
    for then, now in itertools.pairwise(records[1:]):
        if 0 < then["shares"][1] < 2**53:
            moved += now["drawn"].count(0)
            now["drawn"] = [1 if p == 0 else p for p in now["drawn"]]
    assert moved > 20


def back_to_the_start(records):
    """As if all but the first of 3 steps paid, where the only first state pays nothing, but is
    visited again.
    """
    assert sum(map(len, [record["visits"] for record in records[1:-1]])) > 20
    records[0]["units"]["steps"] = 2


def start_that_pays(records):
    """The common start is state 3; pairs 6 and 7 are its own."""
    for row in records[0]["rewards"]:
        row[6] = row[7] = hexed(0.5)


def paid_at_the_start(records):
    plan = next(record for record in records[2:-1] if record["rewards"])
    plan["rewards"] = [[0, 6, 1], *plan["rewards"]]


def many_candidates(records):
    records[1]["admitted"] += [[f"c{k}", "", 0] for k in range(1000)]
    records[1]["shares"] += [0] * 1000
    records[1]["bounds"] += [[hexed(0.0), 0]] * 1000


def two_alarms(records):
    plan, end = records[-2:]
    plan |= {
        "alarm": "one",
        "safety": "trusted",
        "shares": [2**53, *[0] * (len(plan["shares"]) - 1)],
    }
    end |= {"alarm": "another", "drawn": [], "settled": []}


def settled_again(records):
    records[-1]["settled"].append(records[-2]["settled"][0])


def visits_of_another_step(records):
    """Of the last step, said of the one before."""
    plan = next(record for record in records[2:-1] if record["visits"])
    plan["visits"] = sorted([min(h, 1), pair, s, n] for h, pair, s, n in plan["visits"])


# Ledgers for which one change is a forgery each; in a row, too, they are named so
EVERY_KIND = (
    "step | eps | nomix | step pooled | step mask | step next | step starts | step unknown"
    " | step supports | eps supports mask pooled"
)
OF_THE_LAST_PLAN = (
    "step | eps nostart | step paper | eps paper pooled | step unknown | step supports unknown"
)
RANGES = (
    "step returns | step relative returns | eps relative returns | eps relative unknown returns"
)

FORGED = [
    # -- the first record
    ("ledger.kind", "a plan", "step", put(0, "kind", "plan"), "other fields"),
    ("ledger.format", "one that is not there yet", "step | eps", put(0, "format", 9), "format"),
    ("ledger.software", "nobody's", "step", put(0, "software", ""), "software"),
    (
        "ledger.agent",
        "one that does not mix",
        "step",
        put(0, "agent", "StepNoMix"),
        "StepNoMix does not mix",
    ),
    (
        "ledger.agent",
        "one that mixes by a coin",
        "step",
        put(0, "agent", "EpsMix"),
        "not as expected|longer|shorter",
    ),
    ("ledger.agent", "one that mixes steps", "eps", put(0, "agent", "StepMix"), "not as expected"),
    ("ledger.H", "a step fewer", "step", put(0, "H", 2), "rewards|policy"),
    ("ledger.S", "a state more", "step", add(0, "S", 1), "not one entry|policy"),
    ("ledger.A", "an action fewer", "step", put(0, "A", 1), "not one entry|policy|probabilities"),
    ("ledger.A", "more than can be", "step", put(0, "A", 2**61), "too large"),
    ("ledger.A", "as many as states", "step", everywhere(put(0, "S", 2), put(0, "A", 3)), "sizes"),
    ("ledger.pooled", "counts of all steps", "step | eps", put(0, "pooled", True), "stationary"),
    (
        "ledger.pooled",
        "counts of each step",
        "step pooled | eps pooled | nomix pooled",
        put(0, "pooled", False),
        "more events",
    ),
    (
        "ledger.stationary",
        "pooled though steps differ",
        "step pooled | eps pooled",
        put(0, "stationary", False),
        "stationary",
    ),
    (
        "ledger.rewards",
        "beside those by next state",
        "step next",
        put(0, "rewards", 0, 0, hexed(0.5)),
        "others are paid",
    ),
    (
        "ledger.rewards",
        "of what is unknown",
        "step unknown",
        put(0, "rewards", 0, 0, hexed(0.5)),
        "others are paid",
    ),
    (
        "ledger.rewards",
        "less than was proved",
        "step",
        put(0, "rewards", 2, 4, hexed(0.1)),
        "not proved",
    ),
    ("ledger.rewards", "less", "step | step paper", put(0, "rewards", times(0.9)), "proved|earned"),
    ("ledger.rewards", "beyond 1", "step", put(0, "rewards", 0, 0, hexed(1.5)), "not in 0..1"),
    ("ledger.rewards", "of a step more", "step", put(0, "rewards", lambda x: x + x[:1]), "nor H"),
    (
        "ledger.rewards_by_next",
        "above 1",
        "step next",
        put(0, "rewards_by_next", 0, 0, 0, hexed(1.5)),
        "not in 0..1",
    ),
    (
        "ledger.rewards_by_next",
        "below 0",
        "step next",
        put(0, "rewards_by_next", 0, 0, 0, hexed(-1.0)),
        "not in 0..1",
    ),
    (
        "ledger.rewards_by_next",
        "less",
        "step next",
        put(0, "rewards_by_next", times(0.9)),
        "not proved",
    ),
    (
        *("ledger.rewards_by_next", "some are unknown", "step next"),
        everywhere(
            put(0, "unknown_rewards", [[1, 0, 0, 0, 0, 0]]), add(0, "spending", "events", 3)
        ),
        "some are unknown",
    ),
    (
        "ledger.unknown_rewards",
        "marked by 2",
        "step unknown",
        put(0, "unknown_rewards", 0, 0, 2),
        "neither 0 nor 1",
    ),
    (
        "ledger.unknown_rewards",
        "one is known",
        "step unknown",
        put(0, "unknown_rewards", 0, 0, 0),
        "of what is known",
    ),
    (
        *("ledger.unknown_rewards", "fewer than none, for fewer events", "step | eps"),
        everywhere(
            put(0, "unknown_rewards", [[0, 0, 0, 0, 0, hexed(-10.0)]]),
            add(0, "spending", "events", -10),
        ),
        "neither 0 nor 1",
    ),
    (
        "ledger.support",
        "without what was seen",
        "step mask",
        put(0, "support", 1, 2, [0]),
        "impossible",
    ),
    (
        "ledger.support",
        "a state twice",
        "step mask",
        put(0, "support", 0, 2, [0, 0, 1, 2]),
        "ascending",
    ),
    (
        "ledger.support",
        "where there was none",
        "step",
        put(0, "support", [[[0, 1]] * 6]),
        "impossible",
    ),
    ("ledger.support", "none", "step mask", put(0, "support", None), "more events"),
    (
        *("ledger.support", "none, and the events of that", "step mask"),
        everywhere(put(0, "support", None), put(0, "spending", "events", 18)),
        "not proved",
    ),
    (
        "ledger.start",
        "elsewhere",
        "step | step starts",
        put(0, "start", [hexed(x) for x in (0.0, 1.0, 0.0)]),
        "not proved|no episode starts",
    ),
    (
        "ledger.start",
        "half a start",
        "step",
        put(0, "start", [hexed(x) for x in (0.5, 0.0, 0.0)]),
        "not probabilities",
    ),
    ("units.steps", "none pays", "losses", put(0, "units", "steps", 0), "units"),
    (
        "units.steps",
        "two of three pay",
        "step units",
        put(0, "units", "steps", 2),
        "reached again|start that pays",
    ),
    ("units.steps", "one of three pays", "losses", put(0, "units", "steps", 1), "units"),
    ("units.steps", "four of three pay", "losses", put(0, "units", "steps", 4), "units"),
    (
        "units.steps",
        "a first state that pays nothing",
        "losses",
        back_to_the_start,
        "reached again",
    ),
    (
        "units.steps",
        "a first state to which nothing led",
        "chain",
        put(0, "units", "steps", 2),
        "reached again",
    ),
    (
        "units.steps",
        "no step after a common start pays",
        "shop",
        put(0, "units", "steps", 0),
        "units",
    ),
    (
        "units.steps",
        "several first states",
        "step starts units",
        put(0, "units", "steps", 2),
        "common start",
    ),
    (
        "units.steps",
        "an unknown start",
        "step nostart units",
        put(0, "units", "steps", 2),
        "common start",
    ),
    (
        "units.steps",
        "a first state among many, to which nothing led",
        "many",
        put(0, "units", "steps", 2),
        "reached again",
    ),
    (
        "units.steps",
        "a first state among many that a mask says may follow",
        "many mask",
        put(0, "units", "steps", 2),
        "reached again",
    ),
    (
        "ledger.support",
        "a common start among what may follow",
        "shop no support",
        put(0, "support", 0, 0, 4),
        "reached again",
    ),
    (
        "ledger.support",
        "a common start among the many that may follow",
        "many shops",
        put(0, "support", 0, 0, 72),
        "reached again",
    ),
    (
        "ledger.support",
        "nothing is said, though a common start was added",
        "many shops no support",
        put(0, "support", None),
        "reached again",
    ),
    (
        "ledger.support",
        "more states than there are",
        "many shops",
        put(0, "support", 0, 0, 73),
        "ascending",
    ),
    ("ledger.support", "nothing", "many shops", put(0, "support", 0, 0, []), "no next state"),
    ("units.steps", "a common start that pays", "shop", start_that_pays, "start that pays"),
    (
        "units.steps",
        "a common start that paid",
        "shop unknown",
        paid_at_the_start,
        "of what is known",
    ),
    (
        "units.steps",
        "a first state that is not the last",
        "start first",
        put(0, "units", "steps", 2),
        "not the last",
    ),
    (
        "units.steps",
        "a first state with a choice",
        "start differs",
        put(0, "units", "steps", 2),
        "actions differ",
    ),
    (
        "units.steps",
        "a first state of unknown rewards",
        "start unknown",
        put(0, "units", "steps", 2),
        "start that pays",
    ),
    (
        "ledger.start",
        "other probabilities than were seen",
        "step starts",
        put(0, "start", [hexed(x) for x in (1e-9, 1e-9, 1 - 2e-9)]),
        "others than their declared probabilities",
    ),
    ("units.low", "above high", "losses", put(0, "units", "low", hexed(4.5)), "units"),
    ("units.low", "0", "step relative units", put(0, "units", "low", hexed(0.0)), "user's zero"),
    (
        *("units.low", "below 0, to the user", "step relative units"),
        everywhere(
            add(0, "units", "low", -4.0),
            add(0, "units", "high", -4.0),
            put(0, "relative", "offset", hexed(3 * (0.1 - 4.0) / 4.1)),
        ),
        "user's zero",
    ),
    ("units.high", "as low as low", "losses", put(0, "units", "high", hexed(-10.0)), "units"),
    ("ledger.units", "none", "losses", put(0, "units", None), "steps|low"),
    (
        "ledger.baseline",
        "another one",
        "step | eps",
        put(0, "baseline", 1, 1, [hexed(0.5), hexed(0.5)]),
        "not",
    ),
    (
        "ledger.baseline",
        "a row that misses 1",
        "step | eps",
        add(0, "baseline", 0, 0, 0, -9e-10),
        "not one of probabilities",
    ),
    (
        "ledger.baseline",
        "a row beyond 1",
        "step | eps",
        add(0, "baseline", 0, 0, 0, 1e-6),
        "not one of probabilities",
    ),
    *(
        ("ledger.floor", what, "step", put(slice(-1), "floor", hexed(x)), "no value of an episode")
        for what, x in (("below all returns", -1.0), ("above all returns", 4.0))
    ),
    ("ledger.floor", "more", "step | eps | step paper", add(0, "floor", 0.5), "not that of"),
    (
        "ledger.floor",
        "more, in all plans",
        "step | eps | step paper",
        add(slice(-1), "floor", 0.05),
        "not the choice",
    ),
    ("ledger.relative", "both floors", "step relative", put(0, "floor", hexed(1.0)), "or both"),
    (
        "relative.max_loss",
        "nothing",
        "step relative | eps relative",
        put(0, "relative", "max_loss", hexed(0.0)),
        "max_loss",
    ),
    (
        "relative.max_loss",
        "a little less",
        "step relative | eps relative | step relative returns",
        add(0, "relative", "max_loss", -1e-9),
        "floor: too low",
    ),
    (
        "relative.max_loss",
        "beside an amount",
        "step below returns",
        put(0, "relative", "max_loss", hexed(0.01)),
        "an amount and a share",
    ),
    (
        "relative.offset",
        "no zero",
        "step relative units",
        put(0, "relative", "offset", hexed(0.0)),
        "zero",
    ),
    ("relative.offset", "more", "step relative units", add(0, "relative", "offset", 0.1), "zero"),
    (
        "relative.below",
        "a gain",
        "step below returns",
        put(0, "relative", "below", hexed(-0.1)),
        "amount",
    ),
    (
        "relative.below",
        "a little less",
        "step below returns | eps below units",
        add(0, "relative", "below", -1e-9),
        "floor: too low",
    ),
    (
        "relative.below",
        "beside a share",
        "step relative",
        put(0, "relative", "below", hexed(0.01)),
        "an amount and a share",
    ),
    (
        "ledger.delta",
        "all",
        "step | eps | nomix",
        spending(hexed(1.0), put(0, "delta", hexed(1.0))),
        "delta",
    ),
    (
        "ledger.delta",
        "half of it",
        "step | eps | step paper | step unknown",
        spending(times(0.5), put(0, "delta", times(0.5))),
        "not proved",
    ),
    (
        "ledger.delta",
        "half of it, and the parts as they were",
        "step | step paper",
        put(0, "delta", times(0.5)),
        "spending: model",
    ),
    ("ledger.spending", "none", "step", put(0, "spending", None), "model"),
    (
        "spending.model",
        "more than its part",
        "step returns",
        add(0, "spending", "model", 1e-6),
        "spending: model",
    ),
    (
        "spending.model",
        "more than its part, with delta_prime",
        "step | step paper",
        spending(times(1.5)),
        "spending: model",
    ),
    ("spending.model", "all, beside returns", "step returns", spending(ALL), "spending: model"),
    (
        "spending.returns",
        "what nobody has",
        "step",
        put(0, "spending", "returns", hexed(1e-9)),
        "spending: returns",
    ),
    (
        "spending.delta_prime",
        "of fewer parts",
        "step paper",
        add(0, "spending", "delta_prime", 1e-3),
        "delta_prime",
    ),
    (
        "spending.events",
        "one fewer",
        "step supports unknown | step | step pooled | eps nostart | step unknown | step paper",
        add(0, "spending", "events", -1),
        "more events",
    ),
    ("ledger.bounds", "none", "step", put(0, "bounds", None), "family"),
    ("bounds.family", "an unknown one", "step", put(0, "bounds", "family", "Hoeffding"), "bounds"),
    (
        "bounds.family",
        "the paper's",
        "step",
        put(0, "bounds", {"family": "Bernstein", "scale": hexed(1.0)}),
        "delta_prime",
    ),
    (
        "bounds.family",
        "KL",
        "step paper",
        put(0, "bounds", {"full_support": True, "family": "KL", "scale": hexed(1.0)}),
        "delta_prime",
    ),
    (
        "bounds.full_support",
        "neither",
        "step",
        put(0, "bounds", "full_support", None),
        "full_support",
    ),
    (
        "bounds.full_support",
        "in words",
        "step",
        put(0, "bounds", "full_support", "true"),
        "full_support",
    ),
    (
        "bounds.full_support",
        "not all states follow: the balls are larger",
        "step",
        put(0, "bounds", "full_support", False),
        "not proved",
    ),
    (
        "bounds.scale",
        "half, but certified",
        "step | eps",
        put(0, "bounds", "scale", hexed(0.5)),
        "NOT CERTIFIED",
    ),
    (
        "bounds.scale",
        "one, of what was scaled",
        "step scaled",
        put(0, "bounds", "scale", hexed(1.0)),
        "NOT CERTIFIED",
    ),
    (
        *("bounds.scale", "one, and certified", "step scaled"),
        everywhere(put(0, "bounds", "scale", hexed(1.0)), put(PLANS, "safety", "certified")),
        "not proved",
    ),
    ("ledger.returns", "no evidence", "step returns", put(0, "returns", None), "spending"),
    (
        "returns.share",
        "of another size",
        "step returns | eps returns",
        add(0, "returns", "share", 1e-9),
        "spending",
    ),
    (
        *("returns.share", "none", "eps returns"),
        spending(
            ALL,
            put(0, "returns", "share", hexed(0.0)),
            put(0, "spending", "returns", hexed(0.0)),
        ),
        "no share of delta",
    ),
    (
        "returns.lowest",
        "above what can be",
        "step returns",
        add(0, "returns", "lowest", 1e-3),
        "too narrow",
    ),
    (
        *("returns.lowest", "above what can be, up to the same", "step returns"),
        everywhere(add(0, "returns", "lowest", 0.01), add(0, "returns", "span", -0.01)),
        "too narrow",
    ),
    (
        "returns.span",
        "less than can be",
        RANGES,
        add(0, "returns", "span", -1e-3),
        "too narrow",
    ),
    (
        "returns.rounding",
        "less than is lost",
        "step returns",
        put(0, "returns", "rounding", hexed(2**-30)),
        "rounding",
    ),
    (
        "returns.rounding",
        "none",
        "step relative returns",
        put(0, "returns", "rounding", hexed(0.0)),
        "rounding",
    ),
    ("certificate.value", "more than all returns", "step", certificate(3.5, 0.1), "certificate"),
    (
        "certificate.value",
        "in words",
        "step certificate",
        put(0, "certificate", "value", "5/2"),
        "5/2",
    ),
    (
        "certificate.value",
        "less than was proved",
        "step certificate | eps certificate",
        add(0, "certificate", "value", -1e-3),
        "not proved",
    ),
    ("certificate.delta", "all that is left", "step", certificate(2.5, 0.8), "certificate"),
    ("certificate.delta", "that gives some back", "step", certificate(1.0, -0.1), "certificate"),
    ("certificate.fingerprint", "none", "step", certificate(2.5, 0.1, ""), "certificate"),
    ("ledger.certificate", "a number", "step", put(0, "certificate", hexed(2.5)), "not a record"),
    (
        "ledger.certificate",
        "none",
        "step certificate | eps certificate",
        put(0, "certificate", None),
        "not proved",
    ),
    (
        "ledger.warm",
        "though it began with nothing",
        "step | step returns | eps returns",
        put(0, "warm", True),
        "warm",
    ),
    (
        "ledger.warm",
        "though it did not",
        "warm step | warm step returns | warm eps returns",
        put(0, "warm", False),
        "warm",
    ),
    (
        "ledger.warm",
        "not, and the first plan has counts",
        "step",
        episodes_that_nobody_planned,
        "not as often",
    ),
    (
        "ledger.logged",
        "a log, of none",
        "step | step paper | eps",
        put(0, "logged", True),
        "logged",
    ),
    ("ledger.logged", "no flag", "step", put(0, "logged", "perhaps"), "found"),
    # -- a plan
    ("plan.kind", "the end", "step", put(3, "kind", "end"), "other fields"),
    ("plan.kind", "with a field more", "step", put(3, "extra", None), "other fields"),
    ("plan.number", "another one", "step | eps | nomix", add(3, "number", 1), "number"),
    ("plan.number", "one left out", "step", lambda records: records.pop(4), "not the next plan"),
    (
        "plan.episodes",
        "one more",
        "step | eps unknown nostart pooled",
        add(LAST, "episodes", 1),
        "episodes",
    ),
    ("plan.visits", "an action that was not played", "step", another_action, "never plays"),
    (
        "plan.visits",
        "an action that neither side of the coin plays",
        "eps",
        another_action,
        "never plays",
    ),
    (
        "plan.visits",
        "at another step",
        "step",
        visits_of_another_step,
        "not as often as next states",
    ),
    (
        "plan.visits",
        "one more",
        "step | step pooled",
        add(with_some("visits"), "visits", 0, 3, 1),
        "not as often as next states",
    ),
    (
        "plan.visits",
        "fewer than none",
        "step",
        put(with_some("visits"), "visits", 0, 3, lambda n: -n),
        "found -",
    ),
    (
        "plan.visits",
        "a half",
        "step",
        put(with_some("visits"), "visits", 0, 3, hexed(1.5)),
        "not whole numbers",
    ),
    (
        "plan.visits",
        "once more at the end, once less at the start",
        "warm step | warm eps returns",
        a_warm_ledger_that_does_not_flow,
        "flow",
    ),
    (
        "plan.played",
        "an action that was not played",
        "step pooled",
        another_last_action,
        "never plays",
    ),
    ("plan.played", "once more", "step pooled", add(LAST, "played", 0, 2, 1), "not of H visits"),
    (
        "plan.played",
        "never",
        "step pooled",
        put(PLANS, "played", []),
        "not as often as next states",
    ),
    (
        "plan.rewards",
        "of what is known",
        "step | eps",
        put(LAST, "rewards", [[0, 0, 5]]),
        "of what is known",
    ),
    (
        "plan.rewards",
        "more than 1 each",
        "step unknown | eps unknown nostart pooled | step supports unknown",
        add(with_some("rewards"), "rewards", 0, 2, 2**40),
        "more than 1",
    ),
    (
        "plan.rewards",
        "none",
        "step unknown",
        put(PLANS, "rewards", []),
        "not proved|between|earned",
    ),
    (
        "plan.between",
        "more than x (1 - x)",
        "step unknown | step supports unknown | eps supports unknown nostart pooled",
        add(with_some("between"), "between", 0, 2, 2**20),
        "add up to",
    ),
    (
        "plan.between",
        "nothing: then less is proved",
        "eps supports unknown nostart pooled | step supports unknown",
        put(PLANS, "between", []),
        "not proved",
    ),
    (
        "plan.between",
        "of rewards that nobody saw yet",
        "coins",
        put(1, "between", [[0, 0, 2**25]]),
        "add up to",
    ),
    (
        "plan.between",
        "more than the new rewards allow, less than all do",
        "coins",
        spread_less,
        "add up to",
    ),
    ("plan.starts", "one more", "step | eps nostart", add(LAST, "starts", 0, 1, 1), "flow"),
    (
        *("plan.starts", "before the first plan", "eps nostart"),
        everywhere(put(1, "starts", [[0, 1000]]), no_later_plan),
        "warm",
    ),
    ("plan.starts", "elsewhere", "step", put(LAST, "starts", 0, 0, 2), "no episode starts"),
    (
        "plan.baseline_returns",
        "a hair less",
        "step returns | eps returns",
        add(2, "baseline_returns", 1, -1),
        "earned",
    ),
    (
        "plan.baseline_returns",
        "a hair more",
        "step returns | eps returns",
        add(2, "baseline_returns", 1, 1),
        "earned",
    ),
    (
        "plan.baseline_returns",
        "the worst, for a low bound",
        "eps below returns",
        worst_returns,
        "earned",
    ),
    (
        "plan.baseline_returns",
        "the worst, for a low floor",
        "eps relative returns",
        worst_returns,
        "earned",
    ),
    (
        "plan.baseline_returns",
        "one fewer",
        "step returns",
        add(2, "baseline_returns", 0, -1),
        "other episodes",
    ),
    (
        *("plan.baseline_returns", "many more", "step returns | eps returns"),
        everywhere(
            add(LAST, "baseline_returns", 0, 10**6),
            add(LAST, "baseline_returns", 1, 2 * 10**6 * 2**20),
        ),
        "other episodes",
    ),
    (
        "plan.baseline_returns",
        "none any more",
        "step returns",
        put(LAST, "baseline_returns", [0, 0]),
        "other episodes",
    ),
    (
        "plan.baseline_returns",
        "of an episode of the explorer",
        "step returns",
        add(LAST, "baseline_returns", 0, 1),
        "other episodes",
    ),
    (
        "plan.baseline_returns",
        "the highest, of an episode that the baseline did not play",
        "warm step returns",
        a_return_of_an_episode_that_the_baseline_did_not_play,
        "other episodes",
    ),
    (
        "plan.baseline_returns",
        "more, of episodes before the first plan",
        "warm step",
        later_returns_that_were_earned_before_the_first_plan,
        "earned",
    ),
    (
        *("plan.baseline_returns", "a losing episode left out", "eps returns"),
        everywhere(add(2, "baseline_returns", 0, -1), add(2, "returns", 0, 1, -(2**20))),
        "returns: found -",
    ),
    (
        "plan.baseline_returns",
        "of an episode in which the explorer's action was taken",
        "eps coins",
        labelled(1, 1),
        "other episodes",
    ),
    (
        "plan.baseline_returns",
        "of one fewer than took the baseline's action",
        "eps coins",
        labelled(-1, 0),
        "other episodes",
    ),
    (
        "plan.baseline_returns",
        "of as many, but a return of the explorer's",
        "eps coins",
        labelled(0, 1),
        "earned",
    ),
    (
        "plan.baseline_returns",
        "of as many, but less than the baseline's action paid",
        "eps coins",
        labelled(0, -1),
        "earned",
    ),
    (
        "plan.returns",
        "at the highest node",
        "step returns",
        put(2, "returns", [[64, 2**20]]),
        "not all|sum says",
    ),
    (
        "plan.returns",
        "a node higher",
        "step returns | eps returns | eps relative returns",
        a_return_counted_higher,
        "sum says",
    ),
    (
        "plan.returns",
        "too low, of those before the first plan",
        "warm eps relative returns",
        spread_too_low(0),
        "sum says",
    ),
    (
        "plan.returns",
        "too low, of all but one before the first plan",
        "warm eps relative returns",
        spread_too_low(1),
        "sum says",
    ),
    (
        "plan.returns",
        "one more",
        "step returns | eps returns",
        add(2, "returns", 0, 1, 2**20),
        "more than there were",
    ),
    (
        "plan.returns",
        "a part",
        "step returns | eps returns",
        add(2, "returns", 0, 1, 1),
        "whole episodes",
    ),
    (
        "plan.returns",
        "outside",
        "step returns | step relative returns",
        put(2, "returns", lambda known: [*known, [65, 1]]),
        "outside their range",
    ),
    (
        "plan.returns",
        "without a share of delta",
        "step",
        put(2, "returns", [[3, 2**20]]),
        "or none",
    ),
    (
        "plan.baseline_returns",
        "none, as if the coin had always fallen for the explorer",
        "eps coins",
        all_by_the_explorer,
        "not by the coin",
    ),
    (
        "plan.played",
        "the explorer's actions alone, where they are mixed",
        "step",
        actions_by_the_explorer,
        "not by the coin",
    ),
    ("plan.explorer", "an action more", "eps", put(MIXED, "explorer", 0, 0, 2), "probabilities"),
    (
        "plan.explorer",
        "not the paper's",
        "step paper | step",
        put(LAST, "explorer", [[0] * 3] * 3),
        "policy|optimistic",
    ),
    (
        "plan.explorer",
        "the other actions",
        "step | step paper",
        put(LAST, "explorer", other_actions),
        "not the mixture",
    ),
    (
        "plan.explorer",
        "not the paper's, beside the baseline",
        "step paper | eps paper pooled",
        an_explorer_the_paper_does_not_know,
        "not the paper's optimistic",
    ),
    ("plan.candidates", "one fewer", "step", put(LAST, "candidates", []), "longer|shorter|range"),
    (
        "plan.candidates",
        "the boldest, more",
        "step",
        add(1, "candidates", 0, 2.0),
        "not the choice|not proved",
    ),
    (
        *("plan.candidates", "the boldest, a hair more", EVERY_KIND),
        add(PLANS, "candidates", 0, 2e-11),
        "not proved",
    ),
    (
        *("plan.candidates", "all of the last plan", OF_THE_LAST_PLAN),
        all_of_the_last_plan_up,
        "not proved",
    ),
    (
        *("plan.candidates", "by word", "step"),
        everywhere(put(TRUSTED, "candidates", -1, hexed(2.5)), put(TRUSTED, "lower", hexed(2.5))),
        "not proved",
    ),
    ("plan.candidates", "no number", "step", put(2, "candidates", 0, "nan"), "found 'nan'"),
    (
        "plan.by_model",
        "more",
        "step | step returns | eps | nomix",
        add(LAST, "by_model", 2e-11),
        "not proved",
    ),
    (
        "plan.by_returns",
        "more",
        "step returns | eps returns | eps paper returns",
        add(LAST, "by_returns", 1e-4),
        "by_returns",
    ),
    ("plan.by_returns", "of none", "step", put(LAST, "by_returns", hexed(0.1)), "by_returns"),
    ("plan.floor", "lower", "step", add(LAST, "floor", -1e-9), "floor"),
    (
        "plan.floor",
        "lower than by the upper value",
        "step relative",
        add(LAST, "floor", -1e-9),
        "floor: too low",
    ),
    (
        "plan.upper",
        "lower",
        "step relative | eps relative | step relative returns | step paper relative pooled",
        add(MIXED, "upper", -1e-9),
        "upper: too low",
    ),
    ("plan.upper", "where none is needed", "step | eps", put(LAST, "upper", hexed(3.0)), "upper"),
    ("plan.h", "a bolder one", "step", add(MIXED, "h", -1), "policy|choice"),
    ("plan.h", "the boldest", "step | eps", bolder_than_certified, "not the choice"),
    ("plan.h", "none", "step", put(LAST, "h", None), "choice|policy|supported"),
    (
        "plan.rho",
        "more",
        "eps | eps pooled | eps paper pooled | eps relative | eps returns",
        add(MIXED, "rho", 1e-9),
        "not proved",
    ),
    (
        "plan.rho",
        "more, and the policy that it makes",
        "step | step relative | step paper",
        bolder_with_its_policy,
        "not proved",
    ),
    (
        "plan.rho",
        "of who does not mix",
        "nomix",
        put(where(safety="certified"), "rho", hexed(0.5)),
        "not the mixture",
    ),
    ("plan.rho", "written otherwise", "step", put(2, "rho", "0x0p0"), "canonical"),
    ("plan.rho", "a flag", "step", put(where(source="optimistic"), "rho", True), "found True"),
    ("plan.source", "the baseline", "step", put(MIXED, "source", "baseline"), "source"),
    (
        "plan.safety",
        "NOT CERTIFIED, though it is",
        "step",
        put(LAST, "safety", "NOT CERTIFIED"),
        "scaled bounds",
    ),
    (
        "plan.safety",
        "certified, of trust",
        "step | eps | nomix | step paper",
        put(TRUSTED, "safety", "certified"),
        "not proved",
    ),
    ("plan.safety", "another word", "step | eps | nomix", put(LAST, "safety", "sure"), "safety"),
    ("plan.lower", "more", "step | eps | nomix", add(LAST, "lower", 2e-11), "lower"),
    ("plan.lower", "without bound", "step", put(2, "lower", "-inf"), "found '-inf'"),
    (
        "plan.policy",
        "another one",
        "nomix | step | step paper",
        put(LAST, "policy", 0, 0, [hexed(0.5), hexed(0.5)]),
        "mixture",
    ),
    (
        "plan.policy",
        "of another step",
        "step | nomix",
        put(MIXED, "policy", lambda steps: steps[::-1]),
        "not the mixture",
    ),
    ("plan.policy", "none", "step | nomix", put(PLANS, "policy", []), "other sizes"),
    (
        "plan.policy",
        "one, of a coin",
        "eps",
        put(LAST, "policy", [[[hexed(0.5)] * 2] * 3] * 3),
        "policy",
    ),
    (
        "plan.frozen",
        "for one plan only",
        "step | eps",
        put(BASELINE, "frozen", True),
        "thaws",
    ),
    (
        "plan.frozen",
        "for ever, and certified",
        "step relative",
        a_frozen_plan_called_certified,
        "nothing is certified",
    ),
    ("plan.frozen", "not said", "step", lambda records: records[3].pop("frozen"), "other fields"),
    ("plan.frozen", "in another word", "step", a_field_under_another_name, "other fields"),
    # -- the last record
    ("end.kind", "a plan", "step", put(END, "kind", "plan"), "other fields"),
    ("end.plans", "one fewer", "step | eps | nomix", add(END, "plans", -1), "plans"),
    ("end.plans", "one more", "step", add(END, "plans", 1), "plans"),
    ("end.episodes", "fewer than were counted", "step | eps", put(END, "episodes", 1), "episodes"),
    # -- of a guard: the first record
    ("guard.kind", "a plan", "guard absolute", put(0, "kind", "plan"), "other fields"),
    ("guard.format", "of comparisons", "guard absolute", put(0, "format", 2), "format"),
    ("guard.format", "of bounds", "guard relative", put(0, "format", 1), "format"),
    ("guard.software", "nobody's", "guard absolute", put(0, "software", ""), "software"),
    ("guard.baseline", "no text", "guard absolute", put(0, "baseline", None), "baseline"),
    ("guard.low", "above high", "guard below", put(0, "low", hexed(1.5)), "range"),
    (
        "guard.low",
        "above a return",
        "guard absolute",
        everywhere(put(0, "low", hexed(0.5)), add(0, "floor", 0.2)),
        "range",
    ),
    ("guard.low", "below 0, with a share", "guard relative", put(0, "low", hexed(-0.5)), ">= 0"),
    (
        "guard.high",
        "below a return",
        "guard below",
        put(0, "high", hexed(0.5)),
        "outside its range",
    ),
    (
        "guard.floor",
        "below all returns",
        "guard absolute",
        put(0, "floor", hexed(-0.5)),
        "outside the range",
    ),
    (
        "guard.floor",
        "above all returns",
        "guard absolute",
        put(0, "floor", hexed(1.5)),
        "outside the range",
    ),
    ("guard.floor", "higher", "guard absolute", put(0, "floor", hexed(0.7)), "not proved"),
    (
        "guard.max_loss",
        "less",
        "guard relative",
        put(0, "max_loss", hexed(0.1)),
        "not proved to keep",
    ),
    (
        "guard.max_loss",
        "all",
        "guard relative",
        put(0, "max_loss", hexed(1.0)),
        "share of the baseline",
    ),
    ("guard.below", "less", "guard below", put(0, "below", hexed(0.1)), "not proved to keep"),
    (
        "guard.below",
        "more than the range",
        "guard below",
        put(0, "below", hexed(2.5)),
        "no more than the range",
    ),
    ("guard.delta", "much less", "guard below", put(0, "delta", hexed(1e-9)), "not proved by"),
    ("guard.delta", "all", "guard below", put(0, "delta", hexed(1.0)), "delta"),
    (
        "guard.stages",
        "others",
        "guard absolute",
        put(0, "stages", [hexed(0.001), hexed(0.002)]),
        "no stage",
    ),
    (
        "guard.stages",
        "that fall",
        "guard absolute",
        put(0, "stages", [hexed(0.5), hexed(0.1)]),
        "rise",
    ),
    (
        "guard.logged",
        "a part of a return",
        "guard absolute",
        add(0, "logged", 64, 1),
        "logged returns",
    ),
    ("guard.logged", "none", "guard absolute", put(0, "logged", []), "more tickets|not proved"),
    ("guard.missing", "fewer than none", "guard absolute", put(0, "missing", -1), "whole number"),
    # -- a plan
    ("guard plan.kind", "the end", "guard absolute", put(2, "kind", "end"), "other fields"),
    ("guard plan.number", "another one", "guard absolute", add(2, "number", 1), "missing"),
    ("guard plan.admitted", "nobody new", "guard absolute", put(1, "admitted", []), "add up"),
    (
        "guard plan.admitted",
        "later than now",
        "guard absolute",
        add(1, "admitted", 0, 2, 50),
        "another time",
    ),
    (
        "guard plan.admitted",
        "the baseline again",
        "guard absolute",
        put(1, "admitted", 0, 0, "baseline"),
        "again",
    ),
    (
        "guard plan.admitted",
        "more than there may be",
        "guard absolute",
        many_candidates,
        "more candidates",
    ),
    (
        "guard plan.withdrawn",
        "who is not there",
        "guard absolute",
        put(LAST, "withdrawn", [[7, 300]]),
        "not there",
    ),
    (
        "guard plan.withdrawn",
        "who still plays",
        "guard absolute",
        put(2, "withdrawn", [[1, 0]]),
        "withdrawn",
    ),
    (
        "guard plan.drawn",
        "who has no share",
        "guard absolute",
        put(with_some("drawn"), "drawn", 0, 2),
        "no share",
    ),
    (
        "guard plan.drawn",
        "the candidate, whatever its share is",
        "guard absolute",
        drawn_by_luck,
        "do not draw",
    ),
    (
        "guard plan.drawn",
        "before there was a plan",
        "guard absolute",
        put(1, "drawn", [0]),
        "before there was a plan",
    ),
    (
        "guard plan.settled",
        "a ticket that is not there",
        "guard absolute",
        put(2, "settled", 0, 0, 9999),
        "unknown",
    ),
    (
        "guard plan.settled",
        "a return out of range",
        "guard absolute",
        put(2, "settled", 0, 1, hexed(1.25)),
        "outside",
    ),
    (
        "guard plan.settled",
        "to nothing",
        "guard absolute",
        put(PLANS, "settled", []),
        "not proved",
    ),
    ("guard plan.alarm", "another one", "guard absolute", two_alarms, "another one"),
    ("guard plan.alarm", "for one plan", "guard absolute", put(2, "alarm", "why"), "alarm"),
    (
        "guard plan.bounds",
        "more",
        "guard absolute",
        add(LAST, "bounds", 1, 0, 1e-3),
        "not proved by",
    ),
    (
        "guard plan.bounds",
        "by fewer tickets",
        "guard relative",
        put(LAST, "bounds", 0, 1, 30),
        "not proved by",
    ),
    (
        "guard plan.bounds",
        "three things",
        "guard below",
        put(LAST, "bounds", 0, ["0x0.0p+0", 0, 0]),
        "too many",
    ),
    ("guard plan.shares", "that do not add up", "guard below", add(LAST, "shares", 0, 1), "add up"),
    (
        "guard plan.shares",
        "of who is not proved",
        "guard relative",
        put(1, "shares", [0, 2**53]),
        "not proved to keep",
    ),
    ("guard plan.safety", "another word", "guard below", put(LAST, "safety", "sure"), "label"),
    (
        "guard plan.safety",
        "trusted, of comparisons",
        "guard relative",
        put(LAST, "safety", "trusted"),
        "label",
    ),
    # -- the last record
    ("guard end.kind", "a plan", "guard below", put(END, "kind", "plan"), "other fields"),
    ("guard end.plans", "one fewer", "guard below", add(END, "plans", -1), "missing"),
    (
        "guard end.admitted",
        "the same again",
        "guard below",
        put(END, "admitted", [["c", "", 300]]),
        "again",
    ),
    (
        "guard end.withdrawn",
        "the baseline",
        "guard below",
        put(END, "withdrawn", [[0, 300]]),
        "not there",
    ),
    ("guard end.drawn", "of nobody", "guard below", put(END, "drawn", [9]), "no share"),
    ("guard end.settled", "again", "guard below", settled_again, "again"),
    ("guard end.alarm", "no text", "guard below", put(END, "alarm", None), "no text"),
]

# What nobody can check, or need not: why, and what the verifier says of it, if it says anything.
DECLARED = "it is declared: the promise is about what it says"
WEAKER = "less is said than is proved"
ACCEPTED = [
    (
        "ledger.format",
        "lists of next states, of which there are none",
        "step",
        put(0, "format", 2),
        WEAKER,
        "",
    ),
    (
        "ledger.software",
        "another one",
        "step",
        put(0, "software", "of somebody else"),
        "a name",
        "",
    ),
    (
        "ledger.stationary",
        "without pooling",
        "step",
        put(0, "stationary", True),
        "nothing rests on it",
        "",
    ),
    (
        "ledger.rewards",
        "higher, where nobody was",
        "step",
        put(0, "rewards", 0, 4, hexed(1.0)),
        DECLARED,
        "",
    ),
    (
        "ledger.support",
        "fewer, where nobody was",
        "step mask",
        put(0, "support", 0, 4, [0, 1]),
        DECLARED,
        "no next states",
    ),
    (
        "units.low",
        "another one",
        "losses",
        put(0, "units", "low", hexed(-20.0)),
        DECLARED,
        "-20 to 4 in each of 3",
    ),
    (
        "units.high",
        "another one",
        "losses",
        put(0, "units", "high", hexed(40.0)),
        DECLARED,
        "-10 to 40 in each of 3",
    ),
    (
        "units.steps",
        "all, though a common start was added",
        "shop",
        put(0, "units", "steps", 3),
        DECLARED,
        "of 3 steps",
    ),
    (
        "ledger.start",
        "the state in which all episodes started, though nobody knew it",
        "step nostart",
        put(0, "start", [hexed(x) for x in (1.0, 0.0, 0.0)]),
        DECLARED,
        "every episode starts in state 0",
    ),
    (
        "relative.max_loss",
        "more",
        "step relative",
        add(0, "relative", "max_loss", 0.1),
        WEAKER,
        "0.78 of the baseline",
    ),
    (
        "relative.below",
        "more",
        "step below returns",
        add(0, "relative", "below", 0.1),
        WEAKER,
        "below the baseline",
    ),
    (
        "spending.events",
        "more, at first",
        "step scaled",
        add(0, "spending", "events", 5),
        WEAKER,
        "",
    ),
    (
        "returns.rounding",
        "more",
        "step returns",
        put(0, "returns", "rounding", hexed(0.5)),
        WEAKER,
        "",
    ),
    (
        *("certificate.fingerprint", "a certificate on which nothing rests", "step"),
        put(0, "certificate", {"value": hexed(0.1), "delta": hexed(0.3), "fingerprint": "any"}),
        *("its delta is added", "delta = 0.5"),
    ),
    (
        "ledger.logged",
        "of earlier counts",
        "warm step",
        put(0, "logged", True),
        "nothing rests on it",
        "before the first",
    ),
    (
        "plan.candidates",
        "the boldest of a baseline",
        "step",
        put(1, "candidates", 0, hexed(-1.0)),
        WEAKER,
        "",
    ),
    ("plan.lower", "less", "step", put(LAST, "lower", hexed(-3.0)), WEAKER, ""),
    (
        *("plan.by_model", "less, in all that the baseline is worth", "step"),
        everywhere(
            add(BASELINE, "candidates", -1, -1e-9),
            add(BASELINE, "by_model", -1e-9),
            add(BASELINE, "lower", -1e-9),
        ),
        *(WEAKER, ""),
    ),
    ("plan.rho", "less", "eps", add(MIXED, "rho", -1e-3), WEAKER, ""),
    (
        "end.episodes",
        "more",
        "step",
        add(END, "episodes", 10**6),
        "episodes after the last plan are not counted",
        "",
    ),
]


FORGERIES = [(*row[:2], name, *row[3:]) for row in FORGED for name in row[2].split(" | ")]


def named(row):
    return f"{row[0]}: {row[1]} ({row[2]})"


def forged(name, change):
    """The verdict on a ledger with this change."""
    records = copy.deepcopy(honest(name))
    change(records)
    assert records != honest(name), "nothing was forged"
    return verdict_of(name, records)


@pytest.mark.parametrize("row", FORGERIES, ids=named)
def test_what_is_not_proved_is_refused(row):
    _, _, name, change, reasons = row
    verdict = forged(name, change)
    assert verdict.refusals, verdict
    found = verdict.refusals[0][1]
    assert any(words in found for words in reasons.split("|")), found
    assert "digest" not in found  # it was what is meant that was found


@pytest.mark.parametrize("name", sorted({row[2] for row in FORGERIES}))
def test_the_same_ledgers_as_they_were_written_are_accepted(name):
    verdict = verdict_of(name, honest(name))
    assert not verdict.refusals and verdict.closed
    assert verdict.certified or name == "step scaled"


@pytest.mark.parametrize("row", ACCEPTED, ids=named)
def test_what_is_harmless_is_accepted_and_no_more_is_certified(row):
    _, _, name, change, why, said = row
    verdict, before = forged(name, change), verdict_of(name, honest(name))
    assert why and not verdict.refusals, verdict.refusals
    assert verdict.certified <= before.certified and verdict.plans == before.plans
    assert said in verdict.promise


def a_certificate_of_all(records):
    """An earlier certificate of the largest return there is; the mixtures claim what follows."""
    most = float(records[0]["H"])
    records[0]["certificate"] = {
        "value": hexed(most),
        "delta": hexed(1e-12),
        "fingerprint": "00",
    }
    for plan in records[1:-1]:
        plan["candidates"][-1] = hexed(most)
        if plan["source"] == "baseline":
            plan["lower"] = hexed(most)
        elif plan["source"] == "mixture":
            rho = Fraction(float.fromhex(plan["rho"]))
            bold = Fraction(float.fromhex(plan["candidates"][0]))
            plan["lower"] = hexed(np.nextafter(float((1 - rho) * 3 + rho * bold), 0.0))


def test_a_certificate_is_assumed_and_the_verdict_says_so(tmp_path, capsys):
    """Nobody can check it: what rests on it is counted apart, and the exit code is another one.
    The control: the same ledger without one; and one that honestly has one.
    """
    said = {}
    records = copy.deepcopy(honest("eps"))
    a_certificate_of_all(records)
    ledgers = {"forged": records, "none": honest("eps"), "honest": honest("eps certificate")}
    for name, written in ledgers.items():
        path = tmp_path / name
        path.write_bytes(b"".join(chain(written)))
        code = verifier.main([str(path)])
        said[name] = code, capsys.readouterr().out.splitlines(), sf.check_ledger(path)
    code, lines, verdict = said["forged"]
    assert lines[0].endswith("at delta = 0.200001")
    assert lines[1] == "Assumes a certificate of 3 at delta = 1e-12, which nobody can check here"
    assert lines[-1] == "ACCEPTED, if the certificate holds that nobody can check here"
    assert code == 4 and verdict.assumed
    code, lines, before = said["none"]
    assert (code, lines[-1], before.assumed, before.by_certificate) == (0, "ACCEPTED", False, 0)
    assert lines[0].endswith("at delta = 0.2") and "ssumes" not in "".join(lines)
    # every mixture of the baseline claims more than it is worth
    mixtures = sum(plan["source"] == "mixture" for plan in records[1:-1])
    assert verdict.by_certificate == mixtures > 0
    assert verdict.certified == before.certified - mixtures > 0
    code, lines, verdict = said["honest"]
    assert code == 4 and not verdict.refusals and verdict.by_certificate > 0
    assert lines[0].endswith("at delta = 0.21") and "at delta = 0.01, which" in lines[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("step nostart", "first states that nobody knows"),
        ("step", "every episode starts in state 0"),
        ("step starts", "the probabilities of first states that are listed"),
        ("shop", "after a common start"),
    ],
)
def test_what_is_declared_of_the_start_is_said(name, said):
    """One of the four, and no other."""
    declared = verdict_of(name, honest(name)).promise.splitlines()[-1]
    start = [part for part in declared.split("; ") if "start" in part or "first" in part]
    assert len(start) == 1 and start[0].endswith(said)


SPOOF = "x\nclosed, last digest 00\nACCEPTED\n\x1b[8m\x1b[1000D\u202e"


@pytest.mark.parametrize("refused", [False, True])
def test_an_alarm_writes_nothing_on_a_terminal_but_itself(refused):
    """It is the only text of a file's own that is shown: in one line, and of a file that is refused
    not at all. The control: as it is in the file, it would end the verdict with ACCEPTED.
    """
    records = copy.deepcopy(honest("guard absolute"))
    plan, end = records[-2:]
    nobody_else = [2**53, *[0] * (len(plan["shares"]) - 1)]
    plan |= {"alarm": SPOOF, "safety": "trusted", "shares": nobody_else}
    end |= {"alarm": SPOOF, "drawn": [], "settled": [[0, hexed(7.0)]] if refused else []}
    verdict = verdict_of("guard absolute", records)
    assert bool(verdict.refusals) == refused
    told = guard_verifier.summary(verdict)
    lines = told.split("\n")
    assert all(line.isprintable() for line in lines) and not lines.pop()
    assert lines[-1].startswith("REFUSED" if refused else "ACCEPTED")
    assert sum(line.startswith("ACCEPTED") for line in lines) == (not refused)
    assert ("ACCEPTED" in told) != refused
    assert (r"x\nclosed, last digest 00\nACCEPTED\n\x1b[8m\x1b[1000D\u202e" in told) != refused
    raw = verdict.alarm.split("\n")
    assert "ACCEPTED" in raw and not all(line.isprintable() for line in raw)


@pytest.mark.parametrize("which", [verifier, guard_verifier])
def test_what_a_file_says_is_shown_as_one_short_line(which):
    """Of a reason, too, that quotes the file. The control: what can be printed is as it was."""
    for text in ("The return 1.25 is above 1 €", "größer"):
        assert which.shown(text) == text
    for code in (*range(0xA0), 0xAD, 0x2028, 0x2029, 0x202E, 0x200B, 0xD800, 0xFEFF, 0xE0001):
        found = which.shown(f"a{chr(code)}b")
        assert found.isprintable() and "\n" not in found
        assert found == f"a{chr(code)}b" or "\\" in found
    assert which.shown("\\n") != which.shown("\n")
    assert len(which.shown("long" * 10_000)) == 500
    line = b'{"digest":"","kind":"\\nACCEPTED\\n"}\n'
    told = which.summary(which.verify([line]))
    assert not any(line.startswith("ACCEPTED") for line in told.splitlines())


def test_every_field_has_a_row():
    """Of all records of both verifiers, but for digests, which have tests of their own."""
    fields = {
        f"{kind}.{field}" for kind, names in verifier.FIELDS.items() for field in names.split()
    }
    for kind, names in guard_verifier.FIELDS.items():
        fields |= {
            f"{'guard' if kind == 'guard' else f'guard {kind}'}.{field}" for field in names.split()
        }
    rows = {row[0] for row in (*FORGED, *ACCEPTED)}
    assert {field for field in fields if not field.endswith(".digest")} == rows


def test_a_common_start_must_be_known(tmp_path):
    """Otherwise nobody could check that the first step pays nothing. The control: other things
    may be forgotten.
    """
    shop(tmp_path / "one.ledger", rewards=True)
    assert not sf.check_ledger(tmp_path / "one.ledger").refusals
    with pytest.raises(sf.InvalidSetting, match="common start"):
        shop(tmp_path / "two.ledger", start=True)


def test_returns_of_the_explorer_are_none_of_the_baseline(tmp_path):
    """Where EpsMix plays its explorer for certain, no episode was the baseline's. The control:
    as it was written.
    """
    path = tmp_path / "one.ledger"
    P = np.full((2, 2, 2), 0.5)
    world = sf.TabularMDP(P, np.array([[0.5, 0.6], [0.5, 0.6]]), H=2)
    agent = sf.EpsMix(world.problem, sf.uniform(2, 2, 2), 0.4, delta=0.2, replan=0.5)
    sf.simulate(world, agent, 400, seed=1, ledger=path)
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert not verifier.verify(chain(records)).refusals
    plans = [record for record in records if record["kind"] == "plan"]
    before, after = next(pair for pair in itertools.pairwise(plans) if pair[0]["rho"] == hexed(1.0))
    assert after["baseline_returns"] == before["baseline_returns"]
    after["baseline_returns"] = [
        after["baseline_returns"][0] + 1,
        after["baseline_returns"][1] + 2**20,
    ]
    (_, found), *_ = verifier.verify(chain(records)).refusals
    assert found == "baseline_returns: of other episodes"
