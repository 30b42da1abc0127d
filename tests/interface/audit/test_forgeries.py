"""Forgeries, field by field: real ledgers in which something is changed, and which are chained
again with good digests.

Only what a record means can give such a forgery away. Each row of a table is one in each of its
ledgers: what is said instead, the ledgers, the value that the field gets in its usual record (or a
change of all records), and words of the reason for which it must be refused. The control: the same
ledgers as they were written are accepted. A second table has what is accepted, and why that is
harmless. Each field is in one of them.
"""

import copy
import functools
import importlib.util
import itertools
import json
import operator
import tempfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

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


class Of(NamedTuple):
    """What a function makes of the value that is there."""

    function: Callable


def written(value):
    """A value as a ledger has it: floats in hexadecimal digits."""
    if isinstance(value, dict):
        return {key: written(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [written(inner) for inner in value]
    return hexed(value) if isinstance(value, float) else value


def put(at, *way):
    """Another value in one place."""
    *way, last, value = way

    def change(records):
        for inner in places(records, at, way):
            inner[last] = value.function(inner[last]) if isinstance(value, Of) else written(value)

    return change


def more(amount):
    """A number that is larger by so much, or smaller."""

    def plus(known):
        return known + amount if isinstance(known, int) else hexed(float.fromhex(known) + amount)

    return Of(plus)


def add(at, *way):
    """More, or less, in one place."""
    *way, amount = way
    return put(at, *way, more(amount))


def times(factor):
    """Numbers, or lists of them, by a factor."""

    def scaled(x):
        return [scaled(y) for y in x] if isinstance(x, list) else hexed(factor * float.fromhex(x))

    return Of(scaled)


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
ALL = 0.2  # of delta


def certificate(value, delta, fingerprint="00ff"):
    """An earlier certificate, of which the ledger knew nothing."""
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


def a_failure_left_out(records):
    """The first ticket of the candidate was never drawn."""
    drawn = next(record["drawn"] for record in records[1:] if 1 in record["drawn"])
    drawn.remove(1)


def half_of_all_returns_far_below(records):
    """Below the range, and so perhaps taken for high ones."""
    rows = [row for record in records[1:] for row in record["settled"]]
    for row in rows[: len(rows) // 2]:
        row[1] = hexed(-5.0)


def drawn_without_a_share(records):
    """A ticket of a policy to which the plan in force gave no share."""
    before, record = next(
        pair
        for pair in itertools.pairwise(records[:0:-1])
        if pair[0]["drawn"] and 0 in pair[1]["shares"]
    )[::-1]
    record["drawn"][0] = before["shares"].index(0)


def share_moved(at, p, more):
    """To policy p, from whoever has most."""

    def change(records):
        shares = records[at]["shares"]
        shares[shares.index(max(shares))] -= more
        shares[p] += more

    return change


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

FORGED = {
    "ledger.kind": [
        ("a plan", "step", "plan", "other fields"),
    ],
    "ledger.format": [
        ("one that is not there yet", "step | eps", 9, "format"),
    ],
    "ledger.software": [
        ("nobody's", "step", "", "software"),
    ],
    "ledger.agent": [
        ("one that does not mix", "step", "StepNoMix", "StepNoMix does not mix"),
        ("one that mixes by a coin", "step", "EpsMix", "not as expected|longer|shorter"),
        ("one that mixes steps", "eps", "StepMix", "not as expected"),
    ],
    "ledger.H": [
        ("a step fewer", "step", 2, "rewards|policy"),
    ],
    "ledger.S": [
        ("a state more", "step", more(1), "not one entry|policy"),
    ],
    "ledger.A": [
        ("an action fewer", "step", 1, "not one entry|policy|probabilities"),
        ("more than can be", "step", 2**61, "too large"),
        ("as many as states", "step", everywhere(put(0, "S", 2), put(0, "A", 3)), "sizes"),
    ],
    "ledger.pooled": [
        ("counts of all steps", "step | eps", True, "stationary"),
        ("counts of each step", "step pooled | eps pooled | nomix pooled", False, "more events"),
    ],
    "ledger.stationary": [
        ("pooled though steps differ", "step pooled | eps pooled", False, "stationary"),
    ],
    "ledger.rewards": [
        (
            "beside those by next state",
            "step next",
            put(0, "rewards", 0, 0, 0.5),
            "others are paid",
        ),
        ("of what is unknown", "step unknown", put(0, "rewards", 0, 0, 0.5), "others are paid"),
        ("less than was proved", "step", put(0, "rewards", 2, 4, 0.1), "not proved"),
        ("less", "step | step paper", times(0.9), "proved|earned"),
        ("beyond 1", "step", put(0, "rewards", 0, 0, 1.5), "not in 0..1"),
        ("of a step more", "step", Of(lambda x: x + x[:1]), "nor H"),
    ],
    "ledger.rewards_by_next": [
        ("above 1", "step next", put(0, "rewards_by_next", 0, 0, 0, 1.5), "not in 0..1"),
        ("below 0", "step next", put(0, "rewards_by_next", 0, 0, 0, -1.0), "not in 0..1"),
        ("less", "step next", times(0.9), "not proved"),
        (
            "some are unknown",
            "step next",
            everywhere(
                put(0, "unknown_rewards", [[1, 0, 0, 0, 0, 0]]), add(0, "spending", "events", 3)
            ),
            "some are unknown",
        ),
    ],
    "ledger.unknown_rewards": [
        ("marked by 2", "step unknown", put(0, "unknown_rewards", 0, 0, 2), "neither 0 nor 1"),
        ("one is known", "step unknown", put(0, "unknown_rewards", 0, 0, 0), "of what is known"),
        (
            "fewer than none, for fewer events",
            "step | eps",
            everywhere(
                put(0, "unknown_rewards", [[0, 0, 0, 0, 0, -10.0]]),
                add(0, "spending", "events", -10),
            ),
            "neither 0 nor 1",
        ),
    ],
    "ledger.support": [
        ("without what was seen", "step mask", put(0, "support", 1, 2, [0]), "impossible"),
        ("a state twice", "step mask", put(0, "support", 0, 2, [0, 0, 1, 2]), "ascending"),
        ("where there was none", "step", [[[0, 1]] * 6], "impossible"),
        ("none", "step mask", None, "more events"),
        (
            "none, and the events of that",
            "step mask",
            everywhere(put(0, "support", None), put(0, "spending", "events", 18)),
            "not proved",
        ),
        (
            "a common start among what may follow",
            "shop no support",
            put(0, "support", 0, 0, 4),
            "reached again",
        ),
        (
            "a common start among the many that may follow",
            "many shops",
            put(0, "support", 0, 0, 72),
            "reached again",
        ),
        (
            "nothing is said, though a common start was added",
            "many shops no support",
            None,
            "reached again",
        ),
        ("more states than there are", "many shops", put(0, "support", 0, 0, 73), "ascending"),
        ("nothing", "many shops", put(0, "support", 0, 0, []), "no next state"),
    ],
    "ledger.start": [
        ("elsewhere", "step | step starts", [0.0, 1.0, 0.0], "not proved|no episode starts"),
        ("half a start", "step", [0.5, 0.0, 0.0], "not probabilities"),
        (
            "other probabilities than were seen",
            "step starts",
            [1e-9, 1e-9, 1 - 2e-9],
            "others than their declared probabilities",
        ),
    ],
    "units.steps": [
        ("none pays", "losses", 0, "units"),
        ("two of three pay", "step units", 2, "reached again|start that pays"),
        ("one of three pays", "losses", 1, "units"),
        ("four of three pay", "losses", 4, "units"),
        ("a first state that pays nothing", "losses", back_to_the_start, "reached again"),
        ("a first state to which nothing led", "chain", 2, "reached again"),
        ("no step after a common start pays", "shop", 0, "units"),
        ("several first states", "step starts units", 2, "common start"),
        ("an unknown start", "step nostart units", 2, "common start"),
        ("a first state among many, to which nothing led", "many", 2, "reached again"),
        ("a first state among many that a mask says may follow", "many mask", 2, "reached again"),
        ("a common start that pays", "shop", start_that_pays, "start that pays"),
        ("a common start that paid", "shop unknown", paid_at_the_start, "of what is known"),
        ("a first state that is not the last", "start first", 2, "not the last"),
        ("a first state with a choice", "start differs", 2, "actions differ"),
        ("a first state of unknown rewards", "start unknown", 2, "start that pays"),
    ],
    "units.low": [
        ("above high", "losses", 4.5, "units"),
        ("0", "step relative units", 0.0, "user's zero"),
        (
            "below 0, to the user",
            "step relative units",
            everywhere(
                add(0, "units", "low", -4.0),
                add(0, "units", "high", -4.0),
                put(0, "relative", "offset", 3 * (0.1 - 4.0) / 4.1),
            ),
            "user's zero",
        ),
    ],
    "units.high": [
        ("as low as low", "losses", -10.0, "units"),
    ],
    "ledger.units": [
        ("none", "losses", None, "steps|low"),
    ],
    "ledger.baseline": [
        ("another one", "step | eps", put(0, "baseline", 1, 1, [0.5, 0.5]), "not"),
        (
            "a row that misses 1",
            "step | eps",
            add(0, "baseline", 0, 0, 0, -9e-10),
            "not one of probabilities",
        ),
        (
            "a row beyond 1",
            "step | eps",
            add(0, "baseline", 0, 0, 0, 1e-6),
            "not one of probabilities",
        ),
    ],
    "ledger.floor": [
        ("below all returns", "step", put(slice(-1), "floor", -1.0), "no value of an episode"),
        ("above all returns", "step", put(slice(-1), "floor", 4.0), "no value of an episode"),
        ("more", "step | eps | step paper", more(0.5), "not that of"),
        (
            "more, in all plans",
            "step | eps | step paper",
            add(slice(-1), "floor", 0.05),
            "not the choice",
        ),
    ],
    "ledger.relative": [
        ("both floors", "step relative", put(0, "floor", 1.0), "or both"),
    ],
    "relative.max_loss": [
        ("nothing", "step relative | eps relative", 0.0, "max_loss"),
        (
            "a little less",
            "step relative | eps relative | step relative returns",
            more(-1e-9),
            "floor: too low",
        ),
        ("beside an amount", "step below returns", 0.01, "an amount and a share"),
    ],
    "relative.offset": [
        ("no zero", "step relative units", 0.0, "zero"),
        ("more", "step relative units", more(0.1), "zero"),
    ],
    "relative.below": [
        ("a gain", "step below returns", -0.1, "amount"),
        ("a little less", "step below returns | eps below units", more(-1e-9), "floor: too low"),
        ("beside a share", "step relative", 0.01, "an amount and a share"),
    ],
    "ledger.delta": [
        ("all", "step | eps | nomix", spending(1.0, put(0, "delta", 1.0)), "delta"),
        (
            "half of it",
            "step | eps | step paper | step unknown",
            spending(times(0.5), put(0, "delta", times(0.5))),
            "not proved",
        ),
        (
            "half of it, and the parts as they were",
            "step | step paper",
            times(0.5),
            "spending: model",
        ),
    ],
    "ledger.spending": [
        ("none", "step", None, "model"),
    ],
    "spending.model": [
        ("more than its part", "step returns", more(1e-6), "spending: model"),
        (
            "more than its part, with delta_prime",
            "step | step paper",
            spending(times(1.5)),
            "spending: model",
        ),
        ("all, beside returns", "step returns", spending(ALL), "spending: model"),
    ],
    "spending.returns": [
        ("what nobody has", "step", 1e-9, "spending: returns"),
    ],
    "spending.delta_prime": [
        ("of fewer parts", "step paper", more(0.001), "delta_prime"),
    ],
    "spending.events": [
        (
            "one fewer",
            "step supports unknown | step | step pooled | eps nostart | step unknown | step paper",
            more(-1),
            "more events",
        ),
    ],
    "ledger.bounds": [
        ("none", "step", None, "family"),
    ],
    "bounds.family": [
        ("an unknown one", "step", "Hoeffding", "bounds"),
        (
            "the paper's",
            "step",
            put(0, "bounds", {"family": "Bernstein", "scale": 1.0}),
            "delta_prime",
        ),
        (
            "KL",
            "step paper",
            put(0, "bounds", {"full_support": True, "family": "KL", "scale": 1.0}),
            "delta_prime",
        ),
    ],
    "bounds.full_support": [
        ("neither", "step", None, "full_support"),
        ("in words", "step", "true", "full_support"),
        ("not all states follow: the balls are larger", "step", False, "not proved"),
    ],
    "bounds.scale": [
        ("half, but certified", "step | eps", 0.5, "NOT CERTIFIED"),
        ("one, of what was scaled", "step scaled", 1.0, "NOT CERTIFIED"),
        (
            "one, and certified",
            "step scaled",
            everywhere(put(0, "bounds", "scale", 1.0), put(PLANS, "safety", "certified")),
            "not proved",
        ),
    ],
    "ledger.returns": [
        ("no evidence", "step returns", None, "spending"),
    ],
    "returns.share": [
        ("of another size", "step returns | eps returns", more(1e-9), "spending"),
        (
            "none",
            "eps returns",
            spending(ALL, put(0, "returns", "share", 0.0), put(0, "spending", "returns", 0.0)),
            "no share of delta",
        ),
    ],
    "returns.lowest": [
        ("above what can be", "step returns", more(0.001), "too narrow"),
        (
            "above what can be, up to the same",
            "step returns",
            everywhere(add(0, "returns", "lowest", 0.01), add(0, "returns", "span", -0.01)),
            "too narrow",
        ),
    ],
    "returns.span": [
        ("less than can be", RANGES, more(-0.001), "too narrow"),
    ],
    "returns.rounding": [
        ("less than is lost", "step returns", 2 ** (-30), "rounding"),
        ("none", "step relative returns", 0.0, "rounding"),
    ],
    "certificate.value": [
        ("more than all returns", "step", certificate(3.5, 0.1), "certificate"),
        ("in words", "step certificate", "5/2", "5/2"),
        ("less than was proved", "step certificate | eps certificate", more(-0.001), "not proved"),
    ],
    "certificate.delta": [
        ("all that is left", "step", certificate(2.5, 0.8), "certificate"),
        ("that gives some back", "step", certificate(1.0, -0.1), "certificate"),
    ],
    "certificate.fingerprint": [
        ("none", "step", certificate(2.5, 0.1, ""), "certificate"),
    ],
    "ledger.certificate": [
        ("a number", "step", 2.5, "not a record"),
        ("none", "step certificate | eps certificate", None, "not proved"),
    ],
    "ledger.warm": [
        ("though it began with nothing", "step | step returns | eps returns", True, "warm"),
        ("though it did not", "warm step | warm step returns | warm eps returns", False, "warm"),
        (
            "not, and the first plan has counts",
            "step",
            episodes_that_nobody_planned,
            "not as often",
        ),
    ],
    "ledger.logged": [
        ("a log, of none", "step | step paper | eps", True, "logged"),
        ("no flag", "step", "perhaps", "found"),
    ],
    "plan.kind": [
        ("the end", "step", put(3, "kind", "end"), "other fields"),
        ("with a field more", "step", put(3, "extra", None), "other fields"),
    ],
    "plan.number": [
        ("another one", "step | eps | nomix", add(3, "number", 1), "number"),
        ("one left out", "step", lambda records: records.pop(4), "not the next plan"),
    ],
    "plan.episodes": [
        ("one more", "step | eps unknown nostart pooled", more(1), "episodes"),
    ],
    "plan.visits": [
        ("an action that was not played", "step", another_action, "never plays"),
        ("an action that neither side of the coin plays", "eps", another_action, "never plays"),
        ("at another step", "step", visits_of_another_step, "not as often as next states"),
        (
            "one more",
            "step | step pooled",
            add(with_some("visits"), "visits", 0, 3, 1),
            "not as often as next states",
        ),
        (
            "fewer than none",
            "step",
            put(with_some("visits"), "visits", 0, 3, Of(lambda n: -n)),
            "found -",
        ),
        ("a half", "step", put(with_some("visits"), "visits", 0, 3, 1.5), "not whole numbers"),
        (
            "once more at the end, once less at the start",
            "warm step | warm eps returns",
            a_warm_ledger_that_does_not_flow,
            "flow",
        ),
    ],
    "plan.played": [
        ("an action that was not played", "step pooled", another_last_action, "never plays"),
        ("once more", "step pooled", add(LAST, "played", 0, 2, 1), "not of H visits"),
        ("never", "step pooled", put(PLANS, "played", []), "not as often as next states"),
        (
            "the explorer's actions alone, where they are mixed",
            "step",
            actions_by_the_explorer,
            "not by the coin",
        ),
    ],
    "plan.rewards": [
        ("of what is known", "step | eps", [[0, 0, 5]], "of what is known"),
        (
            "more than 1 each",
            "step unknown | eps unknown nostart pooled | step supports unknown",
            add(with_some("rewards"), "rewards", 0, 2, 2**40),
            "more than 1",
        ),
        ("none", "step unknown", put(PLANS, "rewards", []), "not proved|between|earned"),
    ],
    "plan.between": [
        (
            "more than x (1 - x)",
            "step unknown | step supports unknown | eps supports unknown nostart pooled",
            add(with_some("between"), "between", 0, 2, 2**20),
            "add up to",
        ),
        (
            "nothing: then less is proved",
            "eps supports unknown nostart pooled | step supports unknown",
            put(PLANS, "between", []),
            "not proved",
        ),
        (
            "of rewards that nobody saw yet",
            "coins",
            put(1, "between", [[0, 0, 2**25]]),
            "add up to",
        ),
        ("more than the new rewards allow, less than all do", "coins", spread_less, "add up to"),
    ],
    "plan.starts": [
        ("one more", "step | eps nostart", add(LAST, "starts", 0, 1, 1), "flow"),
        (
            "before the first plan",
            "eps nostart",
            everywhere(put(1, "starts", [[0, 1000]]), no_later_plan),
            "warm",
        ),
        ("elsewhere", "step", put(LAST, "starts", 0, 0, 2), "no episode starts"),
    ],
    "plan.baseline_returns": [
        ("a hair less", "step returns | eps returns", add(2, "baseline_returns", 1, -1), "earned"),
        ("a hair more", "step returns | eps returns", add(2, "baseline_returns", 1, 1), "earned"),
        ("the worst, for a low bound", "eps below returns", worst_returns, "earned"),
        ("the worst, for a low floor", "eps relative returns", worst_returns, "earned"),
        ("one fewer", "step returns", add(2, "baseline_returns", 0, -1), "other episodes"),
        (
            "many more",
            "step returns | eps returns",
            everywhere(
                add(LAST, "baseline_returns", 0, 10**6),
                add(LAST, "baseline_returns", 1, 2 * 10**6 * 2**20),
            ),
            "other episodes",
        ),
        ("none any more", "step returns", [0, 0], "other episodes"),
        (
            "of an episode of the explorer",
            "step returns",
            add(LAST, "baseline_returns", 0, 1),
            "other episodes",
        ),
        (
            "the highest, of an episode that the baseline did not play",
            "warm step returns",
            a_return_of_an_episode_that_the_baseline_did_not_play,
            "other episodes",
        ),
        (
            "more, of episodes before the first plan",
            "warm step",
            later_returns_that_were_earned_before_the_first_plan,
            "earned",
        ),
        (
            "a losing episode left out",
            "eps returns",
            everywhere(add(2, "baseline_returns", 0, -1), add(2, "returns", 0, 1, -(2**20))),
            "returns: found -",
        ),
        (
            "of an episode in which the explorer's action was taken",
            "eps coins",
            labelled(1, 1),
            "other episodes",
        ),
        (
            "of one fewer than took the baseline's action",
            "eps coins",
            labelled(-1, 0),
            "other episodes",
        ),
        ("of as many, but a return of the explorer's", "eps coins", labelled(0, 1), "earned"),
        (
            "of as many, but less than the baseline's action paid",
            "eps coins",
            labelled(0, -1),
            "earned",
        ),
        (
            "none, as if the coin had always fallen for the explorer",
            "eps coins",
            all_by_the_explorer,
            "not by the coin",
        ),
    ],
    "plan.returns": [
        (
            "at the highest node",
            "step returns",
            put(2, "returns", [[64, 2**20]]),
            "not all|sum says",
        ),
        (
            "a node higher",
            "step returns | eps returns | eps relative returns",
            a_return_counted_higher,
            "sum says",
        ),
        (
            "too low, of those before the first plan",
            "warm eps relative returns",
            spread_too_low(0),
            "sum says",
        ),
        (
            "too low, of all but one before the first plan",
            "warm eps relative returns",
            spread_too_low(1),
            "sum says",
        ),
        (
            "one more",
            "step returns | eps returns",
            add(2, "returns", 0, 1, 2**20),
            "more than there were",
        ),
        ("a part", "step returns | eps returns", add(2, "returns", 0, 1, 1), "whole episodes"),
        (
            "outside",
            "step returns | step relative returns",
            put(2, "returns", Of(lambda known: [*known, [65, 1]])),
            "outside their range",
        ),
        ("without a share of delta", "step", put(2, "returns", [[3, 2**20]]), "or none"),
    ],
    "plan.explorer": [
        ("an action more", "eps", put(MIXED, "explorer", 0, 0, 2), "probabilities"),
        ("not the paper's", "step paper | step", [[0] * 3] * 3, "policy|optimistic"),
        ("the other actions", "step | step paper", Of(other_actions), "not the mixture"),
        (
            "not the paper's, beside the baseline",
            "step paper | eps paper pooled",
            an_explorer_the_paper_does_not_know,
            "not the paper's optimistic",
        ),
    ],
    "plan.candidates": [
        ("one fewer", "step", [], "longer|shorter|range"),
        ("the boldest, more", "step", add(1, "candidates", 0, 2.0), "not the choice|not proved"),
        ("the boldest, a hair more", EVERY_KIND, add(PLANS, "candidates", 0, 2e-11), "not proved"),
        ("all of the last plan", OF_THE_LAST_PLAN, all_of_the_last_plan_up, "not proved"),
        (
            "by word",
            "step",
            everywhere(put(TRUSTED, "candidates", -1, 2.5), put(TRUSTED, "lower", 2.5)),
            "not proved",
        ),
        ("no number", "step", put(2, "candidates", 0, "nan"), "found 'nan'"),
    ],
    "plan.by_model": [
        ("more", "step | step returns | eps | nomix", more(2e-11), "not proved"),
    ],
    "plan.by_returns": [
        ("more", "step returns | eps returns | eps paper returns", more(0.0001), "by_returns"),
        ("of none", "step", 0.1, "by_returns"),
    ],
    "plan.floor": [
        ("lower", "step", more(-1e-9), "floor"),
        ("lower than by the upper value", "step relative", more(-1e-9), "floor: too low"),
    ],
    "plan.upper": [
        (
            "lower",
            "step relative | eps relative | step relative returns | step paper relative pooled",
            add(MIXED, "upper", -1e-9),
            "upper: too low",
        ),
        ("where none is needed", "step | eps", 3.0, "upper"),
    ],
    "plan.h": [
        ("a bolder one", "step", add(MIXED, "h", -1), "policy|choice"),
        ("the boldest", "step | eps", bolder_than_certified, "not the choice"),
        ("none", "step", None, "choice|policy|supported"),
    ],
    "plan.rho": [
        (
            "more",
            "eps | eps pooled | eps paper pooled | eps relative | eps returns",
            add(MIXED, "rho", 1e-9),
            "not proved",
        ),
        (
            "more, and the policy that it makes",
            "step | step relative | step paper",
            bolder_with_its_policy,
            "not proved",
        ),
        (
            "of who does not mix",
            "nomix",
            put(where(safety="certified"), "rho", 0.5),
            "not the mixture",
        ),
        ("written otherwise", "step", put(2, "rho", "0x0p0"), "canonical"),
        ("a flag", "step", put(where(source="optimistic"), "rho", True), "found True"),
    ],
    "plan.source": [
        ("the baseline", "step", put(MIXED, "source", "baseline"), "source"),
    ],
    "plan.safety": [
        ("NOT CERTIFIED, though it is", "step", "NOT CERTIFIED", "scaled bounds"),
        (
            "certified, of trust",
            "step | eps | nomix | step paper",
            put(TRUSTED, "safety", "certified"),
            "not proved",
        ),
        ("another word", "step | eps | nomix", "sure", "safety"),
    ],
    "plan.lower": [
        ("more", "step | eps | nomix", more(2e-11), "lower"),
        ("without bound", "step", put(2, "lower", "-inf"), "found '-inf'"),
    ],
    "plan.policy": [
        (
            "another one",
            "nomix | step | step paper",
            put(LAST, "policy", 0, 0, [0.5, 0.5]),
            "mixture",
        ),
        (
            "of another step",
            "step | nomix",
            put(MIXED, "policy", Of(lambda steps: steps[::-1])),
            "not the mixture",
        ),
        ("none", "step | nomix", put(PLANS, "policy", []), "other sizes"),
        ("one, of a coin", "eps", [[[0.5] * 2] * 3] * 3, "policy"),
    ],
    "plan.frozen": [
        ("for one plan only", "step | eps", put(BASELINE, "frozen", True), "thaws"),
        (
            "for ever, and certified",
            "step relative",
            a_frozen_plan_called_certified,
            "nothing is certified",
        ),
        ("not said", "step", lambda records: records[3].pop("frozen"), "other fields"),
        ("in another word", "step", a_field_under_another_name, "other fields"),
    ],
    "end.kind": [
        ("a plan", "step", "plan", "other fields"),
    ],
    "end.plans": [
        ("one fewer", "step | eps | nomix", more(-1), "plans"),
        ("one more", "step", more(1), "plans"),
    ],
    "end.episodes": [
        ("fewer than were counted", "step | eps", 1, "episodes"),
    ],
    "guard.kind": [
        (
            "twice",
            "guard absolute",
            lambda records: records.insert(1, dict(records[0])),
            "second first",
        ),
        ("a plan", "guard absolute", "plan", "other fields"),
    ],
    "guard.format": [
        ("of comparisons", "guard absolute", 2, "format"),
        ("of bounds", "guard relative", 1, "format"),
    ],
    "guard.software": [
        ("nobody's", "guard absolute", "", "software"),
    ],
    "guard.baseline": [
        ("no text", "guard absolute", None, "baseline"),
    ],
    "guard.low": [
        ("far below 0, with a share", "guard relative", -1.0, "returns that are >= 0"),
        ("above high", "guard below", 1.5, "range"),
        (
            "above a return",
            "guard absolute",
            everywhere(put(0, "low", 0.5), add(0, "floor", 0.2)),
            "range",
        ),
        ("below 0, with a share", "guard relative", -0.5, ">= 0"),
    ],
    "guard.high": [
        ("below a return", "guard below", 0.5, "outside its range"),
    ],
    "guard.floor": [
        ("below all returns", "guard absolute", -0.5, "outside the range"),
        ("above all returns", "guard absolute", 1.5, "outside the range"),
        ("higher", "guard absolute", 0.7, "not proved"),
    ],
    "guard.max_loss": [
        ("less", "guard relative", 0.1, "not proved to keep"),
        ("all", "guard relative", 1.0, "share of the baseline"),
    ],
    "guard.below": [
        ("beside a number", "guard absolute", 0.1, "one floor"),
        ("less", "guard below", 0.1, "not proved to keep"),
        ("more than the range", "guard below", 2.5, "no more than the range"),
    ],
    "guard.delta": [
        ("much less", "guard below", 1e-9, "not proved by"),
        ("all", "guard below", 1.0, "delta"),
    ],
    "guard.stages": [
        ("others", "guard absolute", [0.001, 0.002], "no stage"),
        ("that fall", "guard absolute", [0.5, 0.1], "rise"),
    ],
    "guard.logged": [
        ("more", "guard absolute", add(0, "logged", 64, 2**20 * 500), "more tickets than there"),
        ("a part of a return", "guard absolute", add(0, "logged", 64, 1), "logged returns"),
        ("none", "guard absolute", [], "more tickets|not proved"),
    ],
    "guard.missing": [
        ("fewer than none", "guard absolute", -1, "whole number"),
    ],
    "guard plan.kind": [
        ("with a field more", "guard absolute", put(1, "more", 1), "other fields"),
        ("the end", "guard absolute", put(2, "kind", "end"), "other fields"),
    ],
    "guard plan.number": [
        (
            "one left out",
            "guard absolute",
            lambda records: records.pop(2),
            "missing|unknown|no share",
        ),
        ("another one", "guard absolute", add(2, "number", 1), "missing"),
    ],
    "guard plan.admitted": [
        (
            "a name used twice",
            "guard absolute",
            put(2, "admitted", Of(lambda known: [*known, ["c", "", 0]])),
            "used again|another time|add up",
        ),
        ("nobody new", "guard absolute", put(1, "admitted", []), "add up"),
        ("later than now", "guard absolute", add(1, "admitted", 0, 2, 50), "another time"),
        ("the baseline again", "guard absolute", put(1, "admitted", 0, 0, "baseline"), "again"),
        ("more than there may be", "guard absolute", many_candidates, "more candidates"),
    ],
    "guard plan.withdrawn": [
        ("who is not there", "guard absolute", [[7, 300]], "not there"),
        ("who still plays", "guard absolute", put(2, "withdrawn", [[1, 0]]), "withdrawn"),
    ],
    "guard plan.drawn": [
        (
            "a failure left out",
            "guard absolute",
            a_failure_left_out,
            "unknown|no share|not proved|again|more tickets",
        ),
        ("of who has no share now", "guard absolute", drawn_without_a_share, "no share"),
        ("who has no share", "guard absolute", put(with_some("drawn"), "drawn", 0, 2), "no share"),
        ("the candidate, whatever its share is", "guard absolute", drawn_by_luck, "do not draw"),
        (
            "before there was a plan",
            "guard absolute",
            put(1, "drawn", [0]),
            "before there was a plan",
        ),
    ],
    "guard plan.settled": [
        (
            "half of all, far below their range",
            "guard absolute",
            half_of_all_returns_far_below,
            "outside its range",
        ),
        ("a ticket that is not there", "guard absolute", put(2, "settled", 0, 0, 9999), "unknown"),
        ("a return out of range", "guard absolute", put(2, "settled", 0, 1, 1.25), "outside"),
        ("to nothing", "guard absolute", put(PLANS, "settled", []), "not proved"),
    ],
    "guard plan.alarm": [
        ("another one", "guard absolute", two_alarms, "another one"),
        ("for one plan", "guard absolute", put(2, "alarm", "why"), "alarm"),
    ],
    "guard plan.bounds": [
        ("by others", "guard absolute", put(LAST, "bounds", 1, 1, 3), "not proved by its tickets"),
        (
            "by more tickets than there are",
            "guard absolute",
            put(LAST, "bounds", 1, 1, 10**6),
            "more tickets",
        ),
        (
            "more than compared",
            "guard relative | guard below",
            add(LAST, "bounds", 0, 0, 0.02),
            "the comparison of policy 1 is not proved by its tickets",
        ),
        (
            "compared by fewer tickets",
            "guard relative | guard below",
            put(LAST, "bounds", 0, 1, 30),
            "the comparison of policy 1 is not proved by its tickets",
        ),
        (
            "compared by more tickets than there are",
            "guard relative | guard below",
            put(LAST, "bounds", 0, 1, 10**6),
            "more tickets",
        ),
        (
            "of one policy more",
            "guard relative | guard below",
            put(LAST, "bounds", Of(lambda bounds: [[hexed(1.0), 0], *bounds])),
            "other policies",
        ),
        ("a share below 0", "guard relative", add(LAST, "bounds", 0, 0, -2.0), "below 0"),
        ("more", "guard absolute", add(LAST, "bounds", 1, 0, 0.001), "not proved by"),
        ("three things", "guard below", put(LAST, "bounds", 0, ["0x0.0p+0", 0, 0]), "too many"),
    ],
    "guard plan.shares": [
        ("more", "guard absolute", share_moved(1, 1, 2**52), "not proved to keep|no stage"),
        ("a little more", "guard relative", share_moved(1, 1, 2**40), "not proved to keep"),
        ("of who was withdrawn", "guard absolute", share_moved(LAST, 2, 1), "withdrawn|no stage"),
        ("that do not add up", "guard below", add(LAST, "shares", 0, 1), "add up"),
        (
            "of who is not proved",
            "guard relative",
            put(1, "shares", [0, 2**53]),
            "not proved to keep",
        ),
    ],
    "guard plan.safety": [
        ("another word", "guard below", "sure", "label"),
        ("trusted, of comparisons", "guard relative", "trusted", "label"),
    ],
    "guard end.kind": [
        (
            "once more",
            "guard absolute",
            lambda records: records.append(dict(records[-1])),
            "after the last",
        ),
        ("a plan", "guard below", "plan", "other fields"),
    ],
    "guard end.plans": [
        ("one fewer", "guard below", more(-1), "missing"),
    ],
    "guard end.admitted": [
        ("the same again", "guard below", [["c", "", 300]], "again"),
    ],
    "guard end.withdrawn": [
        ("the baseline", "guard below", [[0, 300]], "not there"),
    ],
    "guard end.drawn": [
        ("of nobody", "guard below", [9], "no share"),
    ],
    "guard end.settled": [
        ("again", "guard below", settled_again, "again"),
    ],
    "guard end.alarm": [
        ("no text", "guard below", None, "no text"),
    ],
}

# What nobody can check, or need not: why, and what the verifier says of it, if it says anything.
DECLARED = "it is declared: the promise is about what it says"
WEAKER = "less is said than is proved"
ACCEPTED = {
    "ledger.format": [
        ("lists of next states, of which there are none", "step", 2, WEAKER, ""),
    ],
    "ledger.software": [
        ("another one", "step", "of somebody else", "a name", ""),
    ],
    "ledger.stationary": [
        ("without pooling", "step", True, "nothing rests on it", ""),
    ],
    "ledger.rewards": [
        ("higher, where nobody was", "step", put(0, "rewards", 0, 4, 1.0), DECLARED, ""),
    ],
    "ledger.support": [
        (
            "fewer, where nobody was",
            "step mask",
            put(0, "support", 0, 4, [0, 1]),
            DECLARED,
            "no next states",
        ),
    ],
    "units.low": [
        ("another one", "losses", -20.0, DECLARED, "-20 to 4 in each of 3"),
    ],
    "units.high": [
        ("another one", "losses", 40.0, DECLARED, "-10 to 40 in each of 3"),
    ],
    "units.steps": [
        ("all, though a common start was added", "shop", 3, DECLARED, "of 3 steps"),
    ],
    "ledger.start": [
        (
            "the state in which all episodes started, though nobody knew it",
            "step nostart",
            [1.0, 0.0, 0.0],
            DECLARED,
            "every episode starts in state 0",
        ),
    ],
    "relative.max_loss": [
        ("more", "step relative", more(0.1), WEAKER, "0.78 of the baseline"),
    ],
    "relative.below": [
        ("more", "step below returns", more(0.1), WEAKER, "below the baseline"),
    ],
    "spending.events": [
        ("more, at first", "step scaled", more(5), WEAKER, ""),
    ],
    "returns.rounding": [
        ("more", "step returns", 0.5, WEAKER, ""),
    ],
    "certificate.fingerprint": [
        (
            "a certificate on which nothing rests",
            "step",
            put(0, "certificate", {"value": 0.1, "delta": 0.3, "fingerprint": "any"}),
            "its delta is added",
            "delta = 0.5",
        ),
    ],
    "ledger.logged": [
        ("of earlier counts", "warm step", True, "nothing rests on it", "before the first"),
    ],
    "plan.candidates": [
        ("the boldest of a baseline", "step", put(1, "candidates", 0, -1.0), WEAKER, ""),
    ],
    "plan.lower": [
        ("less", "step", -3.0, WEAKER, ""),
    ],
    "plan.by_model": [
        (
            "less, in all that the baseline is worth",
            "step",
            everywhere(
                add(BASELINE, "candidates", -1, -1e-9),
                add(BASELINE, "by_model", -1e-9),
                add(BASELINE, "lower", -1e-9),
            ),
            WEAKER,
            "",
        ),
    ],
    "plan.rho": [
        ("less", "eps", add(MIXED, "rho", -0.001), WEAKER, ""),
    ],
    "end.episodes": [
        ("more", "step", more(10**6), "episodes after the last plan are not counted", ""),
    ],
    "guard.delta": [
        ("more", "guard absolute", 0.9, DECLARED, ""),
    ],
    "guard.floor": [
        ("lower", "guard absolute", 0.1, DECLARED, "the floor is 0.1"),
    ],
}


def by_ledgers(table):
    """The rows of a table, one for each ledger, with the field first."""
    return [
        (field, row[0], name, *row[2:])
        for field, rows in table.items()
        for row in rows
        for name in row[1].split(" | ")
    ]


FORGERIES, HARMLESS = by_ledgers(FORGED), by_ledgers(ACCEPTED)
# where a value is put, if a row does not say it: by the first part of the field's name
USUAL = {
    "ledger": (0,),
    **{part: (0, part) for part in ("units", "relative", "spending", "bounds", "returns")},
    "certificate": (0, "certificate"),
    "plan": (LAST,),
    "end": (END,),
    "guard": (0,),
    "guard plan": (LAST,),
    "guard end": (END,),
}


def change_of(field, told):
    """The change of a row: its own, or another value of its field."""
    kind, _, name = field.partition(".")
    return told if callable(told) else put(*USUAL[kind], name, told)


def named(row):
    return f"{row[0]}: {row[1]} ({row[2]})"


def forged(row):
    """The verdict on a ledger that was changed as a row says."""
    field, _, name, told, *_ = row
    records = copy.deepcopy(honest(name))
    change_of(field, told)(records)
    assert records != honest(name), "nothing was forged"
    return verdict_of(name, records)


@pytest.mark.parametrize("row", FORGERIES, ids=named)
def test_what_is_not_proved_is_refused(row):
    verdict = forged(row)
    assert verdict.refusals, verdict
    found = verdict.refusals[0][1]
    assert any(words in found for words in row[-1].split("|")), found
    assert "digest" not in found  # it was what is meant that was found


@pytest.mark.parametrize("name", sorted({row[2] for row in FORGERIES}))
def test_the_same_ledgers_as_they_were_written_are_accepted(name):
    verdict = verdict_of(name, honest(name))
    assert not verdict.refusals and verdict.closed
    assert verdict.certified or name == "step scaled"


@pytest.mark.parametrize("row", HARMLESS, ids=named)
def test_what_is_harmless_is_accepted_and_no_more_is_certified(row):
    *_, name, _, why, said = row
    verdict, before = forged(row), verdict_of(name, honest(name))
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
    assert {field for field in fields if not field.endswith(".digest")} == {*FORGED, *ACCEPTED}


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
