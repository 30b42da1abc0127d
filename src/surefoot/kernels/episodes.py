"""The fused loop: plan, draw, count and evaluate exactly, without leaving compiled code.

It draws from the Generator in the order of the plain loop (the coin if there is one, then action and next state of
each step) and adds in the same order, so both give the same run to the last bit.
"""

import math
from typing import NamedTuple

import numpy as np

from surefoot.arrays import Floats, Ints
from surefoot.checks import VIOLATION_TOLERANCE
from surefoot.kernels.evidence import Evidence, refresh_all, refresh_pair
from surefoot.kernels.jit import compiled
from surefoot.kernels.mixing import BASELINE, MIXTURE, OPTIMISTIC, choose, exit_taken, mix_splices
from surefoot.kernels.splices import Splices, bound_splices
from surefoot.kernels.values import draw, start_value

# Places in Tally.totals.
DONE, VIOLATIONS, FIRST_MIXTURE, FIRST_OPTIMISTIC, EPISODES_BY_SOURCE = 0, 1, 2, 3, 4
TOTALS = EPISODES_BY_SOURCE + 3


class TrueWorld(NamedTuple):
    """The world that answers. One row per step, or one for all of them."""

    P: Floats  # (rows, S, A, S)
    P_pairs: Floats  # (rows, S, S*A): the same numbers, pairs last
    r: Floats  # (rows, S*A)
    s1: int


class Rule(NamedTuple):
    """How a plan follows from the candidates' lower values."""

    floor: float  # -inf: everything is certified, the optimist is played
    mixes: bool  # False: the first certified candidate itself
    by_coin: bool  # the neighbours are mixed by a coin for the whole episode, not at one step


class Tally(NamedTuple):
    """Exact totals over all episodes, and one bin per point of the curve."""

    totals: Ints  # (TOTALS,)
    by_h: Ints  # (H+1,) episodes per h
    smallest: Floats  # (1,)
    bin_sum: Floats
    bin_min: Floats
    bin_below: Ints
    width: int  # episodes per bin

    @property
    def done(self) -> int:
        """Episodes entered so far."""
        return int(self.totals[DONE])

    @property
    def violations(self) -> int:
        """Episodes below the floor."""
        return int(self.totals[VIOLATIONS])

    @property
    def first_mixture(self) -> int | None:
        """The first episode that played a mixture."""
        return int(self.totals[FIRST_MIXTURE]) if self.totals[FIRST_MIXTURE] >= 0 else None

    @property
    def first_optimistic(self) -> int | None:
        """The first episode that played the optimist."""
        return int(self.totals[FIRST_OPTIMISTIC]) if self.totals[FIRST_OPTIMISTIC] >= 0 else None

    @property
    def by_source(self) -> Ints:
        """Episodes per source, in the order of their numbers."""
        return self.totals[EPISODES_BY_SOURCE:]


class Desk(NamedTuple):
    """Room to work in; nothing on it is read before it is written, but for the last row of V."""

    L: Floats  # (C,) the candidates' lower values
    pi_bar: Floats  # (H, S, A) the optimistic policy as probabilities
    mixed: Floats  # (H, S, A) the step mixture of this episode
    q: Floats  # (S*A,)
    V: Floats  # (H+1, S); its last row, V_{H+1} = 0, is never written
    states: Ints  # (H+1,)
    actions: Ints  # (H,)


@compiled
def record(tally: Tally, value: float, source: int, h: int, floor: float) -> None:
    """Enter one episode. A floor of nan counts no violations."""
    k = tally.totals[DONE]
    if source == MIXTURE and tally.totals[FIRST_MIXTURE] < 0:
        tally.totals[FIRST_MIXTURE] = k
    if source == OPTIMISTIC and tally.totals[FIRST_OPTIMISTIC] < 0:
        tally.totals[FIRST_OPTIMISTIC] = k
    tally.totals[EPISODES_BY_SOURCE + source] += 1
    tally.by_h[h] += 1
    tally.smallest[0] = min(tally.smallest[0], value)
    b = k // tally.width
    tally.bin_sum[b] += value
    tally.bin_min[b] = min(tally.bin_min[b], value)
    if value < floor - VIOLATION_TOLERANCE:
        tally.totals[VIOLATIONS] += 1
        tally.bin_below[b] += 1
    tally.totals[DONE] = k + 1


@compiled
def play(world: TrueWorld, pi: Floats, rng: np.random.Generator, states: Ints, actions: Ints) -> None:
    """One episode of pi: two uniform numbers a step, the first for the action, the second for the next state."""
    states[0] = world.s1
    for h in range(pi.shape[0]):
        s = states[h]
        actions[h] = draw(pi[h, s], rng.random())
        states[h + 1] = draw(world.P[h % world.P.shape[0], s, actions[h]], rng.random())


@compiled
def count(evidence: Evidence, A: int, states: Ints, actions: Ints) -> None:
    """Add one episode to the counts, and bring up to date what depends on the pairs it met."""
    rows = evidence.n_sa.shape[0]
    for h in range(actions.shape[0]):
        pair = states[h] * A + actions[h]
        evidence.n_sas[h % rows, pair, states[h + 1]] += 1
        evidence.n_sa[h % rows, pair] += 1
    for h in range(actions.shape[0]):
        refresh_pair(evidence, h % rows, states[h] * A + actions[h])


@compiled
def one_hot(actions: Ints, pi: Floats) -> None:
    """The deterministic policy of the actions (H, S) as probabilities (H, S, A)."""
    H, S, A = pi.shape
    for h in range(H):
        for s in range(S):
            for a in range(A):
                pi[h, s, a] = 1.0 if a == actions[h, s] else 0.0


@compiled
def run_episodes(
    world: TrueWorld,
    evidence: Evidence,
    splices: Splices,
    rule: Rule,
    tally: Tally,
    floor: float,
    episodes: int,
    rng: np.random.Generator,
    desk: Desk,
) -> None:
    """Play `episodes` more episodes. Everything that must survive between calls is in `evidence`, `tally`, `rng`."""
    pi_b = splices.pi_b
    H, _, A = pi_b.shape
    L, pi_bar, mixed, q, V, states, actions = desk
    value_b = start_value(world.P_pairs, world.r, pi_b, world.s1, q, V)
    value_bar = 0.0
    known = False  # is value_bar that of the present pi_bar?

    refresh_all(evidence)
    for k in range(episodes):
        moved = bound_splices(evidence, splices, states if k > 0 else states[:0], world.s1, world.s1 + 1)
        if k == 0 or moved:
            one_hot(splices.pi_bar, pi_bar)
            known = False
        for c in range(L.shape[0]):
            L[c] = splices.V_low[0, c, world.s1]
        c, rho, _ = choose(L, rule.floor, rule.mixes)
        h = splices.h0[c]
        source = exit_taken(h, rho, H)
        if not known and (source == OPTIMISTIC or (source == MIXTURE and rule.by_coin)):
            value_bar = start_value(world.P_pairs, world.r, pi_bar, world.s1, q, V)
            known = True

        if source == OPTIMISTIC:
            value = value_bar
            play(world, pi_bar, rng, states, actions)
        elif source == BASELINE:
            value = value_b
            play(world, pi_b, rng, states, actions)
        elif rule.by_coin:
            value = (1.0 - rho) * value_b + rho * value_bar
            if rho == 1.0 or rng.random() < rho:  # a coin with one side is not tossed, as in EpisodicMixture.draw
                play(world, pi_bar, rng, states, actions)
            else:
                play(world, pi_b, rng, states, actions)
        else:
            mix_splices(pi_b, pi_bar, h, rho, mixed)
            value = start_value(world.P_pairs, world.r, mixed, world.s1, q, V)
            play(world, mixed, rng, states, actions)

        record(tally, value, source, h, floor)
        count(evidence, A, states, actions)


def empty_tally(H: int, episodes: int, points: int) -> Tally:
    """Room for a run of `episodes` episodes with at most `points` bins of equal width."""
    width = max(1, math.ceil(episodes / points))
    bins = math.ceil(episodes / width)
    totals = np.zeros(TOTALS, dtype=np.int64)
    totals[FIRST_MIXTURE] = totals[FIRST_OPTIMISTIC] = -1
    return Tally(
        totals=totals,
        by_h=np.zeros(H + 1, dtype=np.int64),
        smallest=np.full(1, np.inf),
        bin_sum=np.zeros(bins),
        bin_min=np.full(bins, np.inf),
        bin_below=np.zeros(bins, dtype=np.int64),
        width=width,
    )


def empty_desk(H: int, S: int, A: int, C: int) -> Desk:
    """Room for the fused loop."""
    return Desk(
        L=np.zeros(C),
        pi_bar=np.zeros((H, S, A)),
        mixed=np.zeros((H, S, A)),
        q=np.zeros(S * A),
        V=np.zeros((H + 1, S)),
        states=np.zeros(H + 1, dtype=np.int64),
        actions=np.zeros(H, dtype=np.int64),
    )
