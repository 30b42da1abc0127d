"""The fused loop: plan, draw, count and evaluate exactly, without leaving compiled code.

It draws uniform numbers in the order of `play` (the coin if there is one, then action
and next state of each step) and adds in the same order, so both give the same run to the last bit.
"""

import ctypes
from typing import NamedTuple

import numpy as np

from surefoot.base.arrays import Floats, Ints
from surefoot.base.validation import REWARD_UNITS
from surefoot.kernels.candidates import values_of_candidates
from surefoot.kernels.evidence import Evidence, refresh_moved, refresh_pair
from surefoot.kernels.jit import compiled
from surefoot.kernels.lists import count_next, lists_have_room
from surefoot.kernels.mixing import (
    BASELINE,
    MIXTURE,
    OPTIMISTIC,
    Rule,
    choose,
    exit_taken,
    mix_splices,
)
from surefoot.kernels.portfolio import SeenReturns, count_return
from surefoot.kernels.splices import Splices, bound_splices
from surefoot.kernels.start_and_returns import ONE, BaselineReturns, Start, refresh_start
from surefoot.kernels.tally import Tally, add_episode
from surefoot.kernels.uniforms import Uniforms, uniform
from surefoot.kernels.values import draw
from surefoot.kernels.worlds import KnownRewards, World, draw_outcome, reward, start_value
from surefoot.model.count_lists import CountLists

# Indices of LoopState.numbers (is the last episode all that is new since the last plan; the chosen
# candidate and its exit; what is up to date of the optimistic policy) and of LoopState.values.
SINGLE, CHOSEN, SOURCE, PI_BAR, NUMBERS = 0, 1, 2, 3, 4
RHO, VALUE, VALUE_B, VALUE_BAR, VALUES = 0, 1, 2, 3, 4
# LoopState.numbers[PI_BAR]: its probabilities; its exact value, too; 0: neither
WRITTEN, EVALUATED = 1, 2


class PlanInputs(NamedTuple):
    """All that plans are made from."""

    evidence: Evidence
    h0: Ints  # (C,) the candidates
    splices: Splices  # those that have values of their own
    start: Start
    returns: BaselineReturns
    rule: Rule


class LoopState(NamedTuple):
    """The plan in force. With evidence, tally and the Generator's state it is all that must
    survive between calls.
    """

    numbers: Ints  # (NUMBERS,)
    values: Floats  # (VALUES,)


class EpisodeArrays(NamedTuple):
    """What happened in one episode; overwritten by the next one."""

    states: Ints  # (H+1,)
    actions: Ints  # (H,)
    paid: Ints  # (H,) rewards as the agent counts them, in units of 2^-20


class Workspace(NamedTuple):
    """Scratch arrays of the fused loop. Nothing in them is read before it is written, except for
    the last row of V.
    """

    L: Floats  # (C,) the candidates' lower values
    pi_bar: Floats  # (H, S, A) the optimistic policy as probabilities
    mixed: Floats  # (H, S, A) the step mixture of this episode
    q: Floats  # (S*A,)
    V: Floats  # (H+1, S); its last row, V_{H+1} = 0, is never written
    episode: EpisodeArrays


@compiled
def play(
    world: World,
    known_rewards: KnownRewards,
    pi: Floats,
    uniforms: Uniforms,
    episode: EpisodeArrays,
) -> None:
    """Play one episode of pi. It takes a uniform number for the first state if there are several,
    then at each step one for the action, one for the next state, and one for the reward if it is
    random.
    """
    states, actions, paid = episode.states, episode.actions, episode.paid
    A = pi.shape[2]
    states[0] = draw(world.start, uniform(uniforms) if world.several else 0.0)
    for h in range(pi.shape[0]):
        s = states[h]
        actions[h] = draw(pi[h, s], uniform(uniforms))
        pair = s * A + actions[h]
        outcome = draw_outcome(world, h, pair, uniform(uniforms))
        states[h + 1] = world.rows.state[outcome]
        paid[h] = reward(world, known_rewards, h, pair, outcome, uniforms)


@compiled
def count(
    n_sas: CountLists,
    played: Ints,
    x_sa: Ints,
    z_sa: Ints,
    n_start: Ints,
    A: int,
    episode: EpisodeArrays,
) -> None:
    """Add one episode to the counts. In rows that steps share, the next state of the last step is
    not counted (evidence/tables.py, `counts_next`).
    """
    states, actions, paid = episode.states, episode.actions, episode.paid
    rows, H = played.shape[0], actions.shape[0]
    counted = H if rows == H else H - 1
    n_start[states[0]] += 1
    for h in range(H):
        row, pair = h % rows, states[h] * A + actions[h]
        if h < counted:
            count_next(n_sas, row, pair, states[h + 1])
        played[row, pair] += 1
        if x_sa.shape[0] > 0:
            x_sa[row, pair] += paid[h]
            z_sa[row, pair] += paid[h] * (REWARD_UNITS - paid[h]) // REWARD_UNITS


@compiled
def refresh_visited(evidence: Evidence, A: int, episode: EpisodeArrays) -> None:
    """Bring up to date what depends on the pairs of one episode."""
    states, actions = episode.states, episode.actions
    rows = evidence.n_sa.shape[0]
    for h in range(actions.shape[0]):
        refresh_pair(evidence, h % rows, states[h] * A + actions[h])


@compiled
def one_hot(actions: Ints, pi: Floats) -> None:
    """Write the deterministic policy that takes these actions (H, S) as probabilities (H, S, A)."""
    H, S, A = pi.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                pi[h, s, a] = 1.0 if a == actions[h, s] else 0.0


@compiled
def make_plan(world: World, inputs: PlanInputs, work: Workspace, loop_state: LoopState) -> None:
    """Bound the candidates, choose, and evaluate exactly what will be played; only what has
    changed is done again.
    """
    evidence, splices, start, rule = inputs.evidence, inputs.splices, inputs.start, inputs.rule
    pi_b, numbers, values = splices.pi_b, loop_state.numbers, loop_state.values
    H, S, A = pi_b.shape
    L, pi_bar, mixed, q, V, states = (
        work.L,
        work.pi_bar,
        work.mixed,
        work.q,
        work.V,
        work.episode.states,
    )
    first_lo, first_hi = (start.first, start.first + 1) if start.kind == ONE else (0, S)
    news = states if numbers[SINGLE] else states[:0]
    if numbers[SINGLE]:
        refresh_visited(evidence, A, work.episode)
    else:
        refresh_moved(evidence)
    refresh_start(start)
    if bound_splices(evidence, splices, news, first_lo, first_hi) or numbers[PI_BAR] < WRITTEN:
        one_hot(splices.pi_bar, pi_bar)
        numbers[PI_BAR] = WRITTEN
    floor = values_of_candidates(evidence, splices, start, inputs.returns, rule, L)
    c, rho, _ = choose(L, floor, rule.mixes)
    h = inputs.h0[c]
    source = exit_taken(h, rho, H)
    by_step = source == MIXTURE and not rule.by_coin
    if by_step:
        mix_splices(pi_b, pi_bar, h, rho, mixed)
    if by_step or (source != BASELINE and numbers[PI_BAR] < EVALUATED):
        pi = mixed if by_step else pi_bar
        value = start_value(world, pi, q, V)
        if by_step:
            values[VALUE] = value
        else:
            values[VALUE_BAR], numbers[PI_BAR] = value, EVALUATED
    if source == OPTIMISTIC:
        values[VALUE] = values[VALUE_BAR]
    elif source == BASELINE:
        values[VALUE] = values[VALUE_B]
    elif rule.by_coin:
        values[VALUE] = (1.0 - rho) * values[VALUE_B] + rho * values[VALUE_BAR]
    numbers[CHOSEN], numbers[SOURCE], values[RHO] = c, source, rho


@compiled
def run_episodes(
    world: World,
    known_rewards: KnownRewards,
    inputs: PlanInputs,
    tally: Tally,
    floor: float,
    episodes: int,
    uniforms: Uniforms,
    work: Workspace,
    loop_state: LoopState,
) -> int:
    """Play so many more episodes, with a plan before each, as long as counts have room. Return
    how many were played.
    """
    evidence, splices, start = inputs.evidence, inputs.splices, inputs.start
    returns, rule = inputs.returns, inputs.rule
    pi_b, numbers, values = splices.pi_b, loop_state.numbers, loop_state.values
    A = pi_b.shape[2]
    pi_bar, mixed, episode = work.pi_bar, work.mixed, work.episode
    for done in range(episodes):
        if not lists_have_room(evidence.n_sas, pi_b.shape[0]):
            return done
        make_plan(world, inputs, work, loop_state)
        source, rho = numbers[SOURCE], values[RHO]
        by_baseline = source == BASELINE
        pi = pi_b
        if source == OPTIMISTIC:
            pi = pi_bar
        elif source == MIXTURE and not rule.by_coin:
            pi = mixed
        elif source == MIXTURE:
            # A coin with one side is not tossed, as in EpisodicMixture.draw.
            by_baseline = not (rho == 1.0 or uniform(uniforms) < rho)
            if not by_baseline:
                pi = pi_bar
        play(world, known_rewards, pi, uniforms, episode)
        add_episode(tally, values[VALUE], values[VALUE], source, inputs.h0[numbers[CHOSEN]], floor)
        count(
            evidence.n_sas,
            evidence.played,
            evidence.x_sa,
            evidence.z_sa,
            start.n,
            A,
            episode,
        )
        if by_baseline:
            count_return(returns.seen, episode.paid)
        numbers[SINGLE] = 1
    return episodes


class ActivePlan(NamedTuple):
    """A plan in force, of any agent: what is played, what it is worth, and how its episodes are
    counted.
    """

    first: Floats  # (H, S, A)
    second: Floats  # (H, S, A): with probability rho, by a coin at the start of each episode
    rho: float
    baseline: bool  # is `first` the baseline?
    # what an episode off the baseline adds to the account, in units of 2^-20; -1: there is no
    # account
    entry: int
    value: float  # the exact value of what is played
    kept: float  # what is compared with the floor: the value, or minus the expected cost
    source: int
    h: int


class CountArrays(NamedTuple):
    """The arrays of the counts, which grow in place."""

    n_sas: CountLists
    played: Ints  # (rows, S*A)
    x_sa: Ints  # (rows, S*A); of size 0 where rewards are known
    z_sa: Ints  # (rows, S*A); of size 0 likewise
    n_start: Ints  # (S,)
    returns: SeenReturns
    account: Ints  # (3,)


@compiled
def count_in(arrays: CountArrays, A: int, episode: EpisodeArrays) -> None:
    """Add one episode to these counts."""
    count(
        arrays.n_sas,
        arrays.played,
        arrays.x_sa,
        arrays.z_sa,
        arrays.n_start,
        A,
        episode,
    )


@compiled
def play_baseline(
    world: World,
    known_rewards: KnownRewards,
    pi_b: Floats,
    arrays: CountArrays,
    episodes: int,
    uniforms: Uniforms,
    episode: EpisodeArrays,
) -> int:
    """Play and count so many episodes of the baseline, whose returns are evidence, as long as
    counts have room. Return how many were played.
    """
    for done in range(episodes):
        if not lists_have_room(arrays.n_sas, pi_b.shape[0]):
            return done
        play(world, known_rewards, pi_b, uniforms, episode)
        count_in(arrays, pi_b.shape[2], episode)
        count_return(arrays.returns, episode.paid)
    return episodes


@compiled
def play_on(
    world: World,
    known_rewards: KnownRewards,
    plan: ActivePlan,
    arrays: CountArrays,
    tally: Tally,
    floor: float,
    episodes: int,
    uniforms: Uniforms,
    episode: EpisodeArrays,
) -> int:
    """Play this plan for so many episodes, as long as counts have room. Return how many were
    played.
    """
    A = plan.first.shape[2]
    for done in range(episodes):
        if not lists_have_room(arrays.n_sas, plan.first.shape[0]):
            return done
        chosen_first = plan.rho == 0.0 or (plan.rho < 1.0 and not uniform(uniforms) < plan.rho)
        play(world, known_rewards, plan.first if chosen_first else plan.second, uniforms, episode)
        add_episode(tally, plan.value, plan.kept, plan.source, plan.h, floor)
        count_in(arrays, A, episode)
        by_baseline = chosen_first and plan.baseline
        if by_baseline:
            count_return(arrays.returns, episode.paid)
        if plan.entry >= 0 and by_baseline:
            arrays.account[0] += 1
        elif plan.entry >= 0:
            arrays.account[1] += 1
            arrays.account[2] += plan.entry
    return episodes


def empty_loop_state(value_b: float) -> LoopState:
    """The state of a loop before its first plan. `value_b`: the baseline's exact value."""
    values = np.zeros(VALUES)
    values[VALUE_B] = value_b
    return LoopState(np.zeros(NUMBERS, dtype=np.int64), values)


def uniforms_from(rng: np.random.Generator) -> Uniforms:
    """The uniform numbers of this Generator, which the caller keeps in memory for as long as
    they are used.
    """
    interface = rng.bit_generator.ctypes
    address = ctypes.cast(interface.next_double, ctypes.c_void_p).value
    assert address is not None
    return Uniforms(address, int(interface.state_address))


def empty_episode(H: int) -> EpisodeArrays:
    """Arrays for one episode of H steps."""
    return EpisodeArrays(
        states=np.zeros(H + 1, dtype=np.int64),
        actions=np.zeros(H, dtype=np.int64),
        paid=np.zeros(H, dtype=np.int64),
    )


def empty_workspace(H: int, S: int, A: int, C: int) -> Workspace:
    """The scratch arrays of the fused loop, for C candidates."""
    return Workspace(
        L=np.zeros(C),
        pi_bar=np.zeros((H, S, A)),
        mixed=np.zeros((H, S, A)),
        q=np.zeros(S * A),
        V=np.zeros((H + 1, S)),
        episode=empty_episode(H),
    )
