"""simulate_guard: a guard over policies whose returns have a known distribution, in compiled
code.
"""

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot import kernels
from surefoot.agents.floors import Below, Relative
from surefoot.agents.promise import Promise
from surefoot.base.arrays import Floats, Ints
from surefoot.base.nodes import PLACES
from surefoot.base.validation import (
    as_floats,
    freeze,
    require_distributions,
    require_finite,
    require_integer,
    require_mapping,
    require_size,
    told,
)
from surefoot.errors import FloorAboveBaseline, InvalidModel, InvalidSetting
from surefoot.guard import Guard, GuardState
from surefoot.guard.comparison import ladder, zero_of
from surefoot.guard.evidence import code_of, log_inverse
from surefoot.guard.guard import BASELINE, BELOW, require_guard
from surefoot.guard.state import Columns, PolicyRecord, Proved, Tickets


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The true distribution of a policy's return: values with their probabilities, in the user's
    units.

    Each value has a delay (how many more episodes begin before it is reported) and a probability of
    being lost: so failures may be late, or never reported, which successes are not.
    """

    returns: Floats
    probabilities: Floats
    delays: Ints
    lost: Floats

    def __init__(
        self,
        returns: ArrayLike,
        probabilities: ArrayLike,
        *,
        delays: ArrayLike = 0,
        lost: ArrayLike = 0.0,
    ) -> None:
        """Give one number for each value, or one delay and one probability of loss for all of
        them.
        """
        values, weights, late, gone = (
            np.atleast_1d(as_floats(name, x, InvalidModel))
            for name, x in (
                ("returns", returns),
                ("probabilities", probabilities),
                ("delays", delays),
                ("lost", lost),
            )
        )
        if values.ndim != 1 or values.shape != weights.shape or not len(values):
            raise InvalidModel(
                f"There are {values.shape} returns and {weights.shape} probabilities, expected as "
                "many."
            )
        require_finite("returns", values, InvalidModel)
        require_distributions("probabilities", weights, "a distribution over returns", InvalidModel)
        for name, given in (("delays", late), ("lost", gone)):
            if given.shape not in ((1,), values.shape):
                raise InvalidModel(
                    f"{name} has shape {given.shape}, expected one number, or one for each return."
                )
        whole = (late >= 0) & (late == np.floor(late)) & (late < 2**40)
        if not (whole.all() and ((gone >= 0) & (gone <= 1)).all()):
            raise InvalidModel("delays must be whole numbers >= 0, lost must be probabilities.")
        freeze(
            self,
            returns=values,
            probabilities=weights,
            delays=np.broadcast_to(late.astype(np.int64), values.shape),
            lost=np.broadcast_to(gone, values.shape),
        )

    @classmethod
    def coin(cls, p: float, *, delays: ArrayLike = 0, lost: ArrayLike = 0.0) -> "Outcomes":
        """Return outcomes 0 and 1, the latter with probability p. Delays and losses are those of
        0 and of 1.
        """
        return cls([0.0, 1.0], [1.0 - p, p], delays=delays, lost=lost)

    @classmethod
    def beta(cls, mean: float, sd: float) -> "Outcomes":
        """Return a Beta distribution with this mean and standard deviation, at 1,000 values
        between 0 and 1.
        """
        size = mean * (1.0 - mean) / sd**2 - 1.0
        if not (0.0 < mean < 1.0 and sd > 0.0 and size > 0.0):
            raise InvalidModel(
                f"No Beta distribution has mean {mean:g} and standard deviation {sd:g}."
            )
        x = (np.arange(1000) + 0.5) / 1000
        log_p = (mean * size - 1.0) * np.log(x) + ((1.0 - mean) * size - 1.0) * np.log1p(-x)
        p = np.exp(log_p - log_p.max())
        return cls(x, p / p.sum())

    @property
    def mean(self) -> float:
        """The expected return."""
        return float(self.probabilities @ self.returns / self.probabilities.sum())


@dataclass(frozen=True, eq=False)
class GuardRun:
    """What happened in a simulated guard. Values are true ones, in the user's units."""

    guard: Guard
    state: GuardState  # after the last episode
    seed: int
    values: dict[str, float]  # of each policy
    floor: float
    violations: int  # episodes whose coin-averaged value is below the floor
    worst: float  # the lowest coin-averaged value
    played: dict[str, int]  # episodes of each policy
    adopted: dict[str, int | None]  # the first episode in which a candidate has all of the coin
    # the episode in which it was withdrawn, and its own until then
    withdrawn: dict[str, tuple[int, int] | None]
    changes: Ints  # (R,) the episodes at which shares of the coin changed
    shares: Floats  # (R, P) the shares from then on
    seconds: float = 0.0

    @property
    def episodes(self) -> int:
        """How many episodes there were."""
        return self.state.tickets.n

    @property
    def off_baseline(self) -> float:
        """Which part of the episodes a candidate played."""
        return 1.0 - self.played[BASELINE] / max(self.episodes, 1)

    @property
    def promise(self) -> Promise:
        """What was promised of every episode, and how well its premise is known by now."""
        return self.guard.plan(self.state).promise

    def reached(self, name: str, share: float) -> int | None:
        """Return the first episode in which this candidate has at least this share of the coin."""
        column = self.shares[:, list(self.values).index(name)]
        found = np.flatnonzero(column >= share * (1.0 - 1e-12))
        return int(self.changes[found[0]]) if len(found) else None

    def __repr__(self) -> str:
        return (
            f"GuardRun({self.episodes:,} episodes, {self.violations:,} below the floor, played "
            f"{self.played})"
        )


def simulate_guard(
    guard: Guard,
    baseline: Outcomes,
    candidates: Outcomes | Mapping[str, Outcomes],
    episodes: int,
    seed: int,
    *,
    logged: int = 0,
    admitted: Mapping[str, int] | None = None,
) -> GuardRun:
    """Play `episodes` episodes under a guard with known distributions of returns.

    `logged` returns of the baseline are drawn before the first episode. `admitted` says before
    which episode a candidate is admitted (0 where nothing is said), in the order of `candidates`.
    Plans are in force as `guard.next_plan` says; each episode draws three uniform numbers: the
    coin, the return, and whether it is lost.
    """
    started = time.perf_counter()
    require_guard(guard)
    require_mapping("admitted", admitted, "the episodes by candidate, such as {'ppo': 100}")
    laws = {
        BASELINE: baseline,
        **(candidates if isinstance(candidates, Mapping) else {"candidate": candidates}),
    }
    N = require_integer("episodes", episodes, 1, InvalidSetting)
    require_size("The tickets", (N, 8), InvalidSetting)
    for name, law in laws.items():
        if not isinstance(law, Outcomes):
            raise InvalidSetting(
                f"{name} is {told(law)}, expected sf.Outcomes(returns, probabilities)."
            )
    said = dict(admitted or {})
    before = [require_integer("admitted", said.get(name, 0), 0, InvalidSetting) for name in laws]
    if before != sorted(before) or before[0] or not set(said) <= set(laws) - {BASELINE}:
        raise InvalidSetting("admitted must name candidates, in the order in which they are given.")
    rng = np.random.default_rng(require_integer("seed", seed, 0, InvalidSetting))
    rule = _rule(guard, len(laws))
    truth = _laws(guard, list(laws.values()), rule)
    if not rule.relative and truth.value[0] < truth.floor:
        warnings.warn(
            "The baseline is below the floor: the premise of the promise is false.",
            FloorAboveBaseline,
            2,
        )
    require_size(
        "The logged returns",
        (require_integer("logged", logged, 0, InvalidSetting),),
        InvalidSetting,
    )
    past = _drawn(baseline, logged, rng)
    begun = guard.begin(logged=past, run=f"simulated, seed {seed}")
    P, rows = len(laws), len(laws) * (1000 + 260 * math.ceil(math.log(N + 2)))
    tickets = kernels.empty_tickets(N, P)
    tickets.settled[0], tickets.heard[0] = begun.policies[0].settled, begun.policies[0].heard
    reports = kernels.Reports(*(_each(-1, n) for n in (N + 1, N, N)))
    loop = kernels.GuardLoop(np.array(before), _each(0, P), _each(-1, P), np.zeros(P))
    account = kernels.GuardAccount(
        _each(0, 3),
        _each(0, P),
        _each(-1, P),
        _each(-1, P, 2),
        np.full(1, math.inf),
        _each(0, rows),
        np.zeros((rows, P)),
    )
    numbers = np.zeros(P), np.zeros(P), np.zeros((P, 2)), _each(0, P, 2)
    scratch = kernels.GuardScratch(*numbers, _each(0, 2, PLACES), np.zeros((P, 2)))
    uniforms = kernels.uniforms_from(rng)
    kernels.run_guard(
        kernels.portfolio_from(), rule, truth, tickets, reports, loop, scratch, account, uniforms
    )
    state = _state(guard, begun, laws, tickets, reports, loop, scratch, account)
    values = {name: law.mean for name, law in laws.items()}
    floor = float(guard.rule.level(Fraction(values[BASELINE])))
    changed, names = int(account.totals[2]), list(laws)
    adopted = [t if t >= 0 else None for t in account.adopted.tolist()]
    withdrawn = [(t, n) if t >= 0 else None for t, n in account.withdrawn.tolist()]
    return GuardRun(
        guard,
        state,
        seed,
        values,
        floor,
        int(account.totals[0]),
        floor + float(account.worst[0]) * (guard.high - guard.low),
        dict(zip(names, account.played.tolist(), strict=True)),
        dict(zip(names[1:], adopted[1:], strict=True)),
        dict(zip(names[1:], withdrawn[1:], strict=True)),
        account.at[:changed].copy(),
        account.trace[:changed].copy(),
        time.perf_counter() - started,
    )


def _each(value: int, *shape: int) -> Ints:
    """Return an array in which every whole number is this one."""
    return np.full(shape, value, dtype=np.int64)


def _rule(guard: Guard, P: int) -> Any:
    """Return the floor and the stages as the kernel reads them."""
    span, floor = guard.high - guard.low, guard.floor
    levels = [[log_inverse(level) for level in guard.levels(p)] for p in range(P)]
    return kernels.GuardRule(
        guard.rule.relative,
        0.0 if isinstance(floor, Relative | Below) else (floor - guard.low) / span,
        float(guard.rule.keep),
        float(guard.rule.amount) / span,
        zero_of(guard.rule, guard.low, guard.high) if isinstance(floor, Relative) else 0.0,
        np.array([share for share, _ in guard.ladder], dtype=np.float64),
        np.array([needed for _, needed in guard.ladder], dtype=np.int64),
        np.array(levels),
        np.array([ladder(guard.delta * guard.share_of_delta(max(p, 1))) for p in range(P)]),
    )


def _laws(guard: Guard, laws: list[Outcomes], rule: Any) -> Any:
    """Return the distributions as the kernel reads them; refuse returns outside the guard's
    range.
    """
    V = max(len(law.returns) for law in laws)
    shape = len(laws), V
    cumulative, lost = np.ones(shape), np.zeros(shape)
    code, delay = _each(0, *shape), _each(0, *shape)
    for p, law in enumerate(laws):
        n = len(law.returns)
        bad = law.returns[guard.range.outside(law.returns)]
        if len(bad):
            raise InvalidModel(
                f"A return is {bad[0]:g}, outside the guard's range {guard.low:g} to "
                f"{guard.high:g}."
            )
        cumulative[p, : n - 1] = np.cumsum(law.probabilities)[:-1]
        code[p, :n] = [
            code_of(x, guard.low, guard.high) for x in guard.range.clipped(law.returns).tolist()
        ]
        delay[p, :n], lost[p, :n] = law.delays, law.lost
    span = guard.high - guard.low
    value = np.array([(law.mean - guard.low) / span + rule.zero for law in laws])
    floor = rule.keep * value[0] - rule.amount if rule.relative else rule.floor
    return kernels.Laws(cumulative, code, delay, lost, value, float(floor))


def _drawn(law: Outcomes, n: int, rng: np.random.Generator) -> list[float] | None:
    """Return n returns of the baseline from before."""
    if n == 0:
        return None
    place = np.searchsorted(np.cumsum(law.probabilities)[:-1], rng.random(n), side="right")
    return [float(x) for x in law.returns[place]]


def _state(
    guard: Guard,
    begun: GuardState,
    laws: Mapping[str, Outcomes],
    tickets: Any,
    reports: Any,
    loop: Any,
    scratch: Any,
    account: Any,
) -> GuardState:
    """Return the state of the guard after the run, with which it can go on."""
    returns = np.full(len(tickets.policy), np.nan)
    for p, law in enumerate(laws.values()):
        mine = (tickets.policy == p) & (tickets.code >= 0)
        returns[mine] = guard.range.clipped(law.returns)[reports.drawn[mine]]
    records = []
    for p, name in enumerate(laws):
        if p and not loop.active[p]:
            break
        gone = int(account.withdrawn[p, 0])
        numbers = (tickets.settled[p].copy(), int(tickets.heard[p]), int(tickets.unheard[p]), 0)
        proved = (Proved(float(scratch.proved[p, i]), int(scratch.sizes[p, i])) for i in range(2))
        reason = BELOW if gone >= 0 else ""
        withdrawn = gone if gone >= 0 else None
        records.append(
            PolicyRecord(name, None, int(loop.admitted[p]), withdrawn, reason, *numbers, *proved)
        )
    columns = Columns(tickets.policy, tickets.code, returns, _each(0, len(returns)))
    return GuardState(
        guard.fingerprint, tuple(records), Tickets.of(columns), begun.logged, run=begun.run
    )
