"""Forecast: about how long until an agent leaves its baseline, before an episode is played.

Blocks of episodes bring their EXPECTED counts, and the agent plans from those as from any others.
What comes out is a typical run, without what is random in it.
"""

import bisect
import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from surefoot.agents.floor_agent import FloorAgent
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.plan import exit_taken
from surefoot.agents.splice_agent import Decision
from surefoot.base.arrays import AnyArray, Floats
from surefoot.base.nodes import OUTSIDE, PLACES
from surefoot.base.validation import REWARD_UNITS, require_number
from surefoot.bounds import KL
from surefoot.bounds.binding import Binding, binding_pairs
from surefoot.errors import InvalidSetting
from surefoot.evidence.counts import Counts
from surefoot.evidence.fitting import require_no_alarm
from surefoot.model.count_lists import Entries, added, joined
from surefoot.model.given_rows import SMALL
from surefoot.model.policy import EpisodicMixture
from surefoot.model.problem import Problem
from surefoot.model.rows import Rows, offsets
from surefoot.model.transitions import Shape, Transitions
from surefoot.model.units import Rescaled
from surefoot.run.loops import draw_baseline
from surefoot.run.setup import check_same_problem
from surefoot.worlds.exact import occupancy, value_of
from surefoot.worlds.tabular_mdp import TabularMDP, require_world

MOST = 10**10  # episodes: later is "practically never"
KAPPA = "how far the baseline is above the floor, in the units of the rewards, > 0"
GROWTH = 0.05  # of a block, in episodes so far
SAMPLE = 20_000  # baseline episodes from which the distribution of returns is taken
ALIKE = 64  # states that stand for all, where there are more
ENOUGH = 50  # returns seen, from which it is taken instead
# Half of all runs have proved the floor before the typical returns have: a random walk that must
# gain some 5 nats, with twice as much variance as drift, has done so after 0.83 of that time in the
# median. Measured in 12 worlds: 0.7 to 1.
EARLY = 0.85
# floors to forecast for, in margins of the present one
MARGINS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
DELTAS = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)
PAPERS_BOUNDS = "the paper's bounds"


@dataclass(frozen=True)
class Outlook:
    """When one agent is expected to leave its baseline. None: not within 10^10 episodes."""

    bounds: str
    first_mixture: int | None
    first_optimistic: int | None
    # the pairs that keep the baseline's certified value low before the first mixture
    holds_back: tuple[Binding, ...]


@dataclass(frozen=True)
class Forecast:
    """What to expect, with our bounds and with the paper's.

    `kappa` is the margin between baseline and floor; all three are in the user's units. `lemma` is
    the smallest number of episodes for which the paper's Lemma (finite) says that any of them is
    optimistic at all; inf where there is no margin.
    """

    agent: str
    grounds: str  # what was taken for the world
    kappa: float
    baseline: float
    floor: float
    unit: str  # what the units of these three are called
    outlooks: tuple[Outlook, ...]
    lemma: float
    # is this the paper's setting, so that its bounds and its lemma say anything at all?
    covered: bool

    def __str__(self) -> str:
        lines = [
            f"{self.agent}, {self.grounds}: baseline {self.baseline:.6g}, floor {self.floor:.6g}, "
            f"the baseline above the floor by kappa = {self.kappa:.4g} {self.unit}".rstrip()
        ]
        if self.kappa <= 0.0:
            return (
                lines[0]
                + "\nThe baseline is not above the floor: the premise of the promise is false. "
                "Lower the floor."
            )
        for outlook in self.outlooks:
            mixture, optimistic = (
                about(k) for k in (outlook.first_mixture, outlook.first_optimistic)
            )
            lines.append(
                f"  {outlook.bounds}: first mixture after {mixture}, the optimistic policy alone "
                f"after {optimistic}"
            )
            lines += [f"    held back by {binding}" for binding in outlook.holds_back[:3]]
        if self.covered:
            lines.append(
                "  the paper's Lemma (finite) guarantees an optimistic episode only after "
                f"{about(self.lemma)}"
            )
        else:
            lines.append("  the paper's bounds and its lemma do not cover this problem")
        return "\n".join(lines)


def about(episodes: float | None) -> str:
    """Return a number of episodes as people say it."""
    if episodes is None or episodes == math.inf:
        return "practically never"
    if episodes > MOST:
        return f"{episodes:.1e} episodes: practically never"
    if episodes == 0:
        return "no episode at all"
    digits = 10.0 ** max(0, math.floor(math.log10(episodes)) - 1)
    return f"about {round(episodes / digits) * digits:,.0f} episodes"


def forecast(
    agent: FloorAgent,
    *,
    world: TabularMDP | None = None,
    counts: Counts | None = None,
    kappa: float | None = None,
) -> Forecast:
    """Forecast about how many episodes there are until the first mixture, and until the explorer is
    played alone.

    Exactly one of: `world`, if you have a model; `counts` of episodes already seen, whose
    frequencies are taken for the world and from which it continues; `kappa`, a guess of how far the
    baseline is above the floor (in the units of floors): then all possible next states are taken to
    be equally likely, and the floor to be kappa below the baseline.

    It is an expectation, not a promise: runs vary around it, on easy worlds by a few episodes, on
    hard ones by a factor of about two.
    """
    if not isinstance(agent, FloorAgent):
        raise InvalidSetting(
            f"Expected an agent with a floor such as sf.StepMix(...), found {type(agent).__name__}."
        )
    if not agent.plans_itself:
        raise InvalidSetting(
            f"There is no forecast for {agent.name}: it is for StepMix, EpsMix and StepNoMix."
        )
    if agent.explorer is not None:
        raise InvalidSetting(
            "A forecast is for the optimistic explorer: what another one will draw is not known."
        )
    given = [
        name
        for name, value in (("world", world), ("counts", counts), ("kappa", kappa))
        if value is not None
    ]
    if len(given) != 1:
        raise InvalidSetting(
            "Give one of world, counts or kappa to forecast from, found "
            f"{', '.join(given) or 'none'}."
        )
    problem, floor = agent.problem, agent.floor
    if kappa is not None and isinstance(floor, BaselineFloor):
        raise InvalidSetting(
            "A relative floor has no kappa: the margin is a share of what the baseline is worth."
        )
    if counts is not None and not counts.episodes:
        raise InvalidSetting(
            "These counts hold no episode, so they suggest no world. Give kappa=..., a guess, "
            "instead."
        )
    if world is not None:
        require_world(world)
        check_same_problem(world, agent)
        model, grounds = world, "in this world"
    elif counts is not None:
        agent.check_counts(counts)
        require_no_alarm(counts)
        model, grounds = _stand_in(problem, counts), "in the world these counts suggest"
    else:
        model, grounds = (
            _stand_in(problem, None),
            "if every possible next state were equally likely",
        )
    V_b = value_of(model, agent.pi_b)
    if kappa is not None:
        guess = require_number("kappa", kappa, KAPPA)
        if guess <= 0.0:
            raise InvalidSetting(f"kappa is {guess:g}, expected {KAPPA}.")
        floor = problem.units.to_user(V_b) - guess
    level = (
        floor.of(V_b, problem)
        if isinstance(floor, BaselineFloor)
        else problem.level(floor, "baseline - kappa")
    )
    ours = "KL certificates" if isinstance(agent.bounds, KL) else PAPERS_BOUNDS
    agents = [(ours, replace(agent, floor=floor))]
    if isinstance(agent.bounds, KL) and problem.plain:
        preset = type(agent).paper(
            problem, agent.baseline, floor, delta=agent.delta, pooled=agent.pooled
        )
        agents.append((PAPERS_BOUNDS, preset))
    margin = V_b - level
    outlooks = (
        tuple(_outlook(name, one, model, counts) for name, one in agents) if margin > 0.0 else ()
    )
    return Forecast(
        agent=agent.name,
        grounds=grounds,
        kappa=problem.units.scale * margin,
        baseline=problem.units.to_user(V_b),
        floor=floor if isinstance(floor, float) else problem.units.to_user(level),
        unit=problem.units.name,
        outlooks=outlooks,
        lemma=lemma_finite(problem, margin) if problem.plain else math.inf,
        covered=problem.plain,
    )


def baseline_in(
    problem: Problem,
    baseline: Floats,
    *,
    world: TabularMDP | None = None,
    counts: Counts | None = None,
) -> float:
    """Return what a baseline is worth in a world, or in the one that counts suggest, in the
    user's units.
    """
    model = _stand_in(problem, counts) if world is None else world
    return problem.units.to_user(value_of(model, baseline))


@dataclass(frozen=True)
class Waiting:
    """Forecasts for other floors, and for other deltas, as (floor or delta, outlook); all else
    as the agent has it.
    """

    forecast: Forecast  # for the agent as it is
    delta: float
    by_floor: tuple[tuple[float, Outlook], ...]
    by_delta: tuple[tuple[float, Outlook], ...]


def waiting_times(
    agent: FloorAgent, *, world: TabularMDP | None = None, counts: Counts | None = None
) -> Waiting:
    """Forecast how long the agent would wait with floors nearer to and further from the baseline,
    and other deltas.

    The floor is a number; `world` or `counts` are as in `forecast`.
    """
    found = forecast(agent, world=world, counts=counts)
    if isinstance(agent.floor, BaselineFloor) or found.kappa <= 0.0:
        raise InvalidSetting(
            "Waiting times are for a floor in units of return that is below the baseline, found "
            f"{agent.floor} and a baseline worth {found.baseline:.6g}. Use sf.forecast for other "
            "floors."
        )

    def first(one: FloorAgent) -> Outlook:
        return forecast(one, world=world, counts=counts).outlooks[0]

    floors = [found.baseline - part * found.kappa for part in MARGINS]
    return Waiting(
        found,
        agent.delta,
        tuple(
            (floor, first(replace(agent, floor=floor)))
            for floor in floors
            if floor > agent.problem.lowest
        ),
        tuple((delta, first(replace(agent, delta=delta))) for delta in DELTAS),
    )


def lemma_finite(problem: Problem, kappa: float) -> float:
    """Return the smallest K for which the paper's Lemma (finite) says that an episode is optimistic
    (rescaled kappa).

    Of K episodes at most (4608 e^26/kappa^2 + 2688 e^13 S/kappa) H^3 S A log^2(K+1) are not.
    """
    if kappa <= 0.0:
        return math.inf
    S, A, H = problem.S, problem.A, problem.H
    c = (4608 * math.exp(26) / kappa**2 + 2688 * math.exp(13) * S / kappa) * H**3 * S * A
    K = c
    for _ in range(100):
        K = c * math.log(K + 1) ** 2
    return K


def _stand_in(problem: Problem, counts: Counts | None) -> TabularMDP:
    """Return what is taken for the world: the frequencies seen; where nothing was seen, all next
    states alike.
    """
    S, A = problem.S, problem.A
    P = _suggested(problem, counts)
    seen = np.full((1, S, A), 0.5)
    start = np.full(S, 1.0 / S)
    if counts is not None:
        n = counts.played
        if counts.x_sa is not None:
            seen = np.where(n > 0, counts.x_sa / REWARD_UNITS / np.maximum(n, 1), seen)
        if counts.n_start.any():
            start = counts.n_start / counts.n_start.sum()
    return world_like(problem, P, np.clip(seen, 0.0, 1.0), start)


def world_like(problem: Problem, P: Rows, unknown: Floats, start: Floats) -> TabularMDP:
    """Return a world that this problem could be about, with these probabilities. What is given of
    rewards and of the start is taken where the problem does not know them.
    """
    first = start if problem.start is None else problem.start
    if problem.pays_by_next:
        return TabularMDP(
            P, r_next=Rescaled(problem.arguments()["r_next"]), H=problem.H, start=first
        )
    r = np.where(problem.unknown, unknown, problem.r_rescaled)
    # Nobody knows how much unknown rewards vary: as much as rewards of 0 and 1, which is the most.
    return TabularMDP(
        P, r, H=problem.H, start=first, random_rewards=problem.unknown_rows is not None
    )


def _suggested(problem: Problem, counts: Counts | None) -> Rows:
    """Return these transition probabilities, for all steps or for each. Where nothing was seen, and
    all next states are possible, a few of many stand for all: as many as were seen of each pair
    that was visited, on average; at most ALIKE, or as many as fit.
    """
    S, A, most = problem.S, problem.A, ALIKE
    if counts is not None and counts.total and S > ALIKE:
        most = min(ALIKE, math.ceil(len(counts.entries.n) / np.count_nonzero(counts.n_sa)))
    rows = 1 if problem.stationary and (counts is None or counts.pooled) else problem.H
    lists = rows * S * A
    alike = problem.limits.filled(rows, max(1, min(most, SMALL // lists)))
    place, p = alike.places, np.repeat(1.0 / alike.sizes, alike.sizes)
    parts = Entries(place, alike.state, p)
    if counts is not None:
        n_sa, (seen, state, n) = counts.n_sa.reshape(-1), counts.entries
        never = n_sa[place] == 0
        parts = joined(
            Entries(*(part[never] for part in parts)), Entries(seen, state, n / n_sa[seen])
        )
    order = np.argsort(parts.place, kind="stable")
    first = offsets(np.bincount(parts.place, minlength=lists))
    return Rows(first, parts.state[order], parts.n[order], S, A)


class _Expected:
    """Counts that need not be whole numbers: what the planner's kernels read of them."""

    def __init__(self, problem: Problem, pooled: bool, counts: Counts | None) -> None:
        rows, S, A = 1 if pooled else problem.H, problem.S, problem.A
        self.pooled, self.logged, self.returns_of = pooled, False, "this baseline"
        before = Transitions.none_yet((rows, S, A)) if counts is None else counts.transitions
        self.transitions = before.as_floats()
        self.played = np.zeros((rows, S, A)) if counts is None else counts.played.astype(np.float64)
        self.n_start = np.zeros(S) if counts is None else counts.n_start.astype(np.float64)
        self.baseline_returns = (
            np.zeros(2) if counts is None else counts.baseline_returns.astype(np.float64)
        )
        self.return_weights = (
            np.zeros(PLACES) if counts is None else counts.return_weights.astype(np.float64)
        )
        self.x_sa = self.z_sa = None
        if problem.unknown_rows is not None:
            seen = (None, None) if counts is None else (counts.x_sa, counts.z_sa)
            self.x_sa, self.z_sa = (
                np.zeros((rows, S, A)) if x is None else x.astype(np.float64) for x in seen
            )

    def row(self, h: int) -> int:
        """Return the row of step h, as `Counts.row` does."""
        return h % self.shape[0]

    @property
    def shape(self) -> Shape:
        """Rows, states, actions."""
        return self.transitions.shape

    @property
    def n_sas(self) -> AnyArray:
        """The table of counts."""
        return self.transitions.n_sas

    @property
    def n_sa(self) -> AnyArray:
        """The visits of each pair."""
        return self.transitions.n_sa

    @property
    def entries(self) -> Entries:
        """The counts above 0, one by one."""
        return self.transitions.entries

    @property
    def as_counts(self) -> Counts:
        """The same, for signatures: only arrays and rows are read."""
        return cast(Counts, self)

    def add(self, world: TabularMDP, visits: Floats, n: float) -> None:
        """Add the expected counts of n episodes of a policy with these expected visits of an
        episode (H, S, A).
        """
        d = n * visits
        rows = self.shape[0]
        self.played += d.sum(axis=0, keepdims=True) if rows == 1 else d
        counted = d[:-1] if rows < len(d) else d  # `counts_next` of evidence/tables.py
        self.transitions.add_entries(_expected_entries(world, counted, rows))
        self.n_start += n * world.start
        if self.x_sa is not None and self.z_sa is not None:
            r = world.r_rescaled
            between = np.zeros_like(r) if world.random_rewards else r * (1.0 - r)
            for sums, each in ((self.x_sa, r), (self.z_sa, between)):
                paid = d * each * REWARD_UNITS
                sums[:] = sums + (paid.sum(axis=0, keepdims=True) if rows == 1 else paid)


def _expected_entries(world: TabularMDP, d: Floats, rows: int) -> Entries:
    """Return expected visits d (H, S, A), spread over the successors of a world, for counts of
    so many rows.
    """
    pairs, parts = world.S * world.A, []
    # the same successors at every step: their visits are added up before
    if rows == 1 and world.problem.stationary:
        d = d.sum(axis=0, keepdims=True)
    for h, visits in enumerate(d.reshape(len(d), -1)):
        pair, state, p = world.entries(h)
        n = visits[pair] * p
        reached = n > 0.0
        parts.append(Entries((h % rows * pairs + pair)[reached], state[reached], n[reached]))
    return added(Entries(*(np.concatenate(part) for part in zip(*parts, strict=True))), world.S)


def _outlook(name: str, agent: FloorAgent, world: TabularMDP, counts: Counts | None) -> Outlook:
    """Plan and play blocks in expectation, until the explorer is played alone, or for MOST
    episodes.

    At first only the baseline is played, and more of it never proves less: when that ends is found
    by bisection.
    """
    play = _Baseline(agent, world, counts)
    moments = play.moments()

    def has_left(i: int) -> bool:
        return play.source(play.decide(moments[i])) != "baseline"

    left = bisect.bisect_left(range(len(moments)), True, key=has_left)
    last = play.decide(moments[left - 1]) if left > 0 else None
    if left == len(moments):
        return Outlook(name, None, None, _binding(agent, play.after(moments[-1]), last))
    k, first_optimistic, expected = moments[left], None, play.after(moments[left])
    binding = _binding(agent, expected, last)
    while k <= MOST:
        decision = agent.decide(agent.evidence(expected.as_counts))
        if play.source(decision) == "optimistic":
            first_optimistic = round(k)
            break
        n = play.length(k)
        policy, by_baseline = agent.policy_of(decision), 0.0
        if play.source(decision) == "baseline":
            by_baseline = n
        elif isinstance(policy, EpisodicMixture):
            by_baseline = (1.0 - policy.rho) * n
            expected.add(world, occupancy(world, policy.second), policy.rho * n)
        else:
            expected.add(world, occupancy(world, policy), n)
        play.add(expected, by_baseline)
        k += n
    return Outlook(name, round(moments[left]), first_optimistic, binding)


class _Baseline:
    """What an agent's baseline brings in expectation, and what the agent decides from that."""

    def __init__(self, agent: FloorAgent, world: TabularMDP, counts: Counts | None) -> None:
        self.agent, self.world, self.counts = agent, world, counts
        self.value, self.visits = value_of(world, agent.pi_b), occupancy(world, agent.pi_b)
        self.returns = _typical_returns(agent, world, counts)

    def add(self, expected: _Expected, n: float) -> None:
        """Add the expected counts and returns of n episodes."""
        if n > 0.0:
            expected.add(self.world, self.visits, n)
            expected.baseline_returns += np.array([n, n * self.value * REWARD_UNITS])
            expected.return_weights += n / EARLY * self.returns

    def after(self, k: float) -> _Expected:
        """Return what is expected after k episodes of nothing else."""
        expected = _Expected(self.agent.problem, self.agent.pooled, self.counts)
        self.add(expected, k)
        return expected

    def length(self, k: float) -> float:
        """Return for how many episodes a plan after k of them is kept."""
        return max(1.0, max(GROWTH, self.agent.replan_share) * k)

    def moments(self) -> list[float]:
        """Return after how many episodes plans are made, as long as nothing else is played."""
        k, moments = 0.0, []
        while k <= MOST:
            moments.append(k)
            k += self.length(k)
        return moments

    def decide(self, k: float) -> Decision:
        """Return what the agent decides after k episodes."""
        return self.agent.decide(self.agent.evidence(self.after(k).as_counts))

    def source(self, decision: Decision) -> str:
        """Return what is played then."""
        return exit_taken(decision.h, decision.rho, self.world.H)


def _typical_returns(agent: FloorAgent, world: TabularMDP, counts: Counts | None) -> Floats:
    """Return how the return of one baseline episode is spread over nodes on average: as seen, or
    in this world.
    """
    if agent.return_range is None:
        return np.zeros(PLACES)
    if counts is not None and counts.spread_episodes >= ENOUGH:
        return np.asarray(counts.return_weights / counts.spread_episodes)
    played = Counts.zeros(agent.problem, agent.pooled)
    draw_baseline(world, agent, played, SAMPLE, np.random.default_rng(0))
    # of a range that the user declares, and that is false in this world
    played.return_weights[OUTSIDE] = 0
    return np.asarray(played.return_weights / max(played.spread_episodes, 1))


def _binding(
    agent: FloorAgent, expected: _Expected, decision: Decision | None
) -> tuple[Binding, ...]:
    """Return the pairs that kept the baseline's certified value low."""
    if decision is None or not isinstance(agent.bounds, KL):
        return ()
    counts = expected.as_counts
    return tuple(
        binding_pairs(
            agent.problem, counts, agent.evidence(counts).model, agent.pi_b, decision.V_low_b
        )
    )
