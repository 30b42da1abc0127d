"""Watchdog: check whether the promise is still supported by the observed returns.

The promise says E[G_k | past] = V^{pi_k} >= floor for the return G_k of every episode k, whatever
was drawn before, the coin of EpsMix included. Rescale returns to [0, 1] by the range in which they
must lie, and the floor with them to f. A bet of lambda >= 0 against the promise multiplies its
stake in episode k by

    1 + lambda (f - G_k),    lambda (1 - f) < 1, so that it is positive,

whose expectation is at most 1 given the past while the promise holds. Start with capital 1: a part
of it is bet from the first episode, and the remainder is added step by step on a fixed schedule.
The resulting capital W_k is a non-negative supermartingale, and by Ville's inequality

    P(W_k >= 1/alpha for some k while the promise holds) <= alpha,

however long the run. Nothing is assumed about the process: it may be non-Markov, it may change, and
no model is needed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surefoot.agents.base import Agent, CountingAgent
from surefoot.agents.floors import BaselineFloor
from surefoot.agents.returns import returns_range
from surefoot.base.arrays import AnyArray, Floats
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.ranges import DeclaredRange
from surefoot.base.validation import freeze, require_delta
from surefoot.errors import InvalidEpisode, InvalidFile, InvalidSetting
from surefoot.guard import Guard
from surefoot.model.policy import uniform
from surefoot.model.units import Units

# There is one bet for each of these shortfalls, in parts of the range (for returns of 0 or 1, the
# capital of the stake d / (f(1-f)) grows fastest at a shortfall of d), and each has a part of the
# capital.
SHORTFALLS = (0.02, 0.08, 0.3)
CAPITAL = (0.125, 0.75, 0.125)
# the part of it that is bet from the first episode; the remainder follows, for later changes
AT_ONCE = 0.75
LEAST_VARIANCE = 0.01  # near the ends of the range f(1-f) would make bets too large
MOST = 0.9  # lambda (1 - f) is at most this: no stake is ever lost completely
# The floor is lowered by this much (a part of the range). It covers the rounding of a return, and a
# reward that is an ulp outside its range. It is subtracted in every episode, and is far more than
# the rounding errors of the logarithms.
MARGIN = 1e-8
# the order in a file; log_wealth follows
STATE = ("episodes", "total", "last", "total_of_last", "streak")
NO_NUMBER = (
    "has a floor relative to the baseline's value, which is unknown: there is no number to compare "
    "returns with. Give it a number as its floor, in the units of your rewards (floor=90.0, say), "
    "or leave watchdog out."
)
LEAST_SPAN = 1e-6  # times H: a range that is a single point is made wider, which is sound


@dataclass(frozen=True)
class Watchdog:
    """A check of every episode's return, which raises an alarm when returns are too low for the
    promise to be true.

    If every episode's policy is above the floor, the probability that it EVER raises an alarm is at
    most `alpha`. Give it to `learn(..., watchdog=)` or `Learner(..., watchdog=)`: after an alarm
    the agent plays only its baseline.
    """

    alpha: float = 0.01

    def __post_init__(self) -> None:
        meaning = "such as 0.01: the largest probability of a false alarm in the whole run"
        freeze(self, alpha=require_delta(self.alpha, "alpha", meaning))

    def on(self, agent: Agent, path: str | Path | None = None) -> "Watch":
        """Start to watch this agent, or continue from the file that `Watch.save` wrote."""
        watched = require_watchable(agent)
        problem = watched.problem
        possible = returns_range(problem, uniform(problem.H, problem.S, problem.A))
        low, width = possible.lowest, max(possible.span + possible.rounding, LEAST_SPAN * problem.H)
        watch = Watch(Bet.on(self.alpha, watched.level, low, width), problem.units)
        if path is None:
            return watch
        _, arrays = read_arrays(path, {"watch": ("watch_about", "watch_state")})
        return watch.restored(path, arrays)

    def on_guard(self, guard: Guard) -> "Watch":
        """Start to watch the episodes of a guard."""
        if isinstance(guard.floor, BaselineFloor):
            raise InvalidSetting(f"The guard {NO_NUMBER}")
        level = (guard.floor - guard.low) / (guard.high - guard.low)
        return Watch(
            Bet.on(self.alpha, level, 0.0, 1.0), Units(guard.low, guard.high, 1, guard.unit)
        )


class Bet(NamedTuple):
    """The settings of the bets, which are fixed before the first episode. Returns are rescaled
    to 0..H.
    """

    alpha: float
    floor: float
    low: float  # the lowest return that an episode can have
    span: float  # the highest return minus the lowest
    f: float  # the floor as a part of that range; at least 0, because no return is below the lowest
    stakes: tuple[float, ...]  # lambda

    @classmethod
    def on(cls, alpha: float, floor: float, low: float, span: float) -> "Bet":
        """Return the bets against this floor."""
        f = max((floor - low) / span, 0.0)
        return cls(alpha, floor, low, span, f, stakes(f))


def stakes(f: float) -> tuple[float, ...]:
    """Return lambda for each shortfall, with lambda (1 - f) <= MOST. A floor above the range
    counts as its end.
    """
    above = 1.0 - min(f, 1.0)  # the part of the range above the floor
    variance = max(min(f, 1.0) * above, LEAST_VARIANCE)
    return tuple(min(d / variance, MOST / above if above > 0.0 else math.inf) for d in SHORTFALLS)


def put_in(k: int) -> float:
    """Return the capital added before episode k = 1, 2, ...: 1/((m+1)(m+2)) of it, evenly over 2^m
    <= k < 2^(m+1).

    The sum is the capital that was not bet at once. So late changes are found, too, after a delay
    that grows with the logarithm of the number of episodes before.
    """
    m = k.bit_length() - 1
    return (1.0 - AT_ONCE) / ((m + 1) * (m + 2) * (1 << m))


@dataclass(frozen=True)
class Watch:
    """The state of a watchdog after some episodes. `after` returns the next state, `save` writes it
    to a file.

    Sums of returns in it are rescaled to 0..H.
    """

    bet: Bet
    units: Units
    episodes: int = 0
    total: float = 0.0  # sum of returns
    log_wealth: tuple[float, ...] = field(default=(math.log(AT_ONCE),) * len(SHORTFALLS))
    # Since when returns have been low, for the message: how many episodes, the sum of returns, and
    # the logarithm won.
    last: int = 0
    total_of_last: float = 0.0
    streak: float = 0.0

    @property
    def log_capital(self) -> float:
        """The logarithm of W, the capital that was bet and its gains. Capital that is not added
        yet is left out.
        """
        return _log_sum(
            [
                math.log(share) + wealth
                for share, wealth in zip(CAPITAL, self.log_wealth, strict=True)
            ]
        )

    @property
    def alarmed(self) -> bool:
        """True once an alarm was raised. It stays so: no further episode is watched."""
        return self.log_capital >= -math.log(self.bet.alpha)

    @property
    def alarm(self) -> "Alarm | None":
        """The alarm with its numbers; None while there is none."""
        if not self.alarmed:
            return None
        last, total_of_last = (
            (self.last, self.total_of_last) if self.last else (self.episodes, self.total)
        )
        return Alarm(
            floor=float(f"{self.units.to_user(self.bet.floor):.12g}"),  # as it was given
            alpha=self.bet.alpha,
            episodes=self.episodes,
            mean_return=self.units.to_user(self.total / self.episodes),
            last=last,
            mean_of_last=self.units.to_user(total_of_last / last),
            units=self.units,
        )

    def after(self, ret: float) -> "Watch":
        """Return the state after an episode with this return, in the user's units."""
        return self.after_rescaled(self.units.from_user(ret))

    def after_rescaled(self, G: float) -> "Watch":
        """Return the state after an episode with this return, rescaled to 0..H."""
        if self.alarmed:
            return self
        bet = self.bet
        possible = DeclaredRange(bet.low, bet.low + bet.span)
        g = (float(possible.clipped(G)) - bet.low) / bet.span
        if not possible.admits(G):
            low, high, found = (self.units.to_user(x) for x in (bet.low, bet.low + bet.span, G))
            raise InvalidEpisode(
                f"The episode's return is {found:.6g}, outside the range ({low:.6g}, {high:.6g}) "
                "that follows from the problem. A premise is false: correct the problem. The "
                "episode was not counted."
            )
        x = bet.f - MARGIN - g
        won = [math.log1p(stake * x) for stake in bet.stakes]
        more = math.log(put_in(self.episodes + 1))
        wealth = tuple(
            _log_sum([before, more]) + gain
            for before, gain in zip(self.log_wealth, won, strict=True)
        )
        streak = max(self.streak + won[1], 0.0)
        return replace(
            self,
            episodes=self.episodes + 1,
            total=self.total + G,
            log_wealth=wealth,
            last=self.last + 1 if streak > 0.0 else 0,
            total_of_last=self.total_of_last + G if streak > 0.0 else 0.0,
            streak=streak,
        )

    def arrays(self) -> dict[str, Floats]:
        """Return the settings and the state, as they are stored in a file."""
        bet, state = self.bet, [getattr(self, name) for name in STATE]
        return {
            "watch_about": np.array([bet.alpha, bet.floor, bet.low, bet.span]),
            "watch_state": np.array([*state, *self.log_wealth], dtype=np.float64),
        }

    def save(self, path: str | Path) -> None:
        """Write the state, whole or not at all; `Watchdog.on(agent, path)` continues from it."""
        write_arrays(path, "watch", self.arrays())

    def restored(self, path: str | Path, arrays: Mapping[str, AnyArray]) -> "Watch":
        """Return the state that `arrays` stored, if the agent and alpha are the same."""
        mine = self.arrays()
        about, state = (arrays.get(name, np.zeros(0)) for name in mine)
        if (
            about.shape != (4,)
            or state.shape != mine["watch_state"].shape
            or state.dtype != np.float64
        ):
            raise InvalidFile(
                f"{path}: the watchdog's state is not as it was written. The file is damaged: "
                "restore a copy."
            )
        if not np.array_equal(about, mine["watch_about"]):
            raise InvalidFile(
                f"{path} belongs to another watchdog: alpha, the floor or the problem differ."
            )
        numbers = [float(x) for x in state]
        known, wealth = dict(zip(STATE, numbers, strict=False)), tuple(numbers[len(STATE) :])
        episodes, last, streak = known["episodes"], known["last"], known["streak"]
        whole = episodes.is_integer() and last.is_integer() and 0 <= last <= episodes
        if not (
            whole and np.isfinite(state).all() and streak >= 0.0 and (streak > 0.0) == (last > 0)
        ):
            raise InvalidFile(
                f"{path}: the watchdog's state is impossible. The file is damaged: restore a copy."
            )
        return replace(
            self,
            episodes=int(episodes),
            total=known["total"],
            log_wealth=wealth,
            last=int(last),
            total_of_last=known["total_of_last"],
            streak=streak,
        )


class Alarm(NamedTuple):
    """The reason for an alarm. Returns are in the user's units."""

    floor: float
    alpha: float
    episodes: int  # how many were watched
    mean_return: float  # over all of them
    last: int  # for how many episodes returns have been low
    mean_of_last: float
    units: Units

    def __str__(self) -> str:
        floor, mean, recent = map(
            self.units.amount, (self.floor, self.mean_return, self.mean_of_last)
        )
        seen = f"over {self.episodes:,} episodes the mean return was {mean}"
        if self.last < self.episodes:
            seen += f", and over the last {self.last:,} of them {recent}"
        return (
            f"ALARM after {self.episodes:,} episodes: the promise is not supported by what was "
            f"observed. The floor is {floor} per episode; {seen}. If every episode's policy were "
            "worth the floor, the probability of ever seeing this would be at most "
            f"{self.alpha:g}. Most likely a premise is false: the process has changed, it is not "
            "Markov, or the baseline is below the floor. Only the baseline is played from now on. "
            "Find out which premise is false, and start again without these counts."
        )

    def sentence(self, follows: str) -> str:
        """Return one sentence for a log; `follows` is what is played from now on."""
        floor, recent = map(self.units.amount, (self.floor, self.mean_of_last))
        lately = (
            f"over the last {self.last:,} of them"
            if self.last < self.episodes
            else "over all of them"
        )
        return (
            f"The watchdog raised an ALARM after {self.episodes:,} episodes: {lately} the mean "
            f"return was {recent}, too low for a floor of {floor} per episode (alpha = "
            f"{self.alpha:g}), so the promise is not supported by what was observed, and {follows}."
        )

    @property
    def label(self) -> str:
        """A short text to print beside a promise."""
        return (
            f"not supported by what was observed (alarm after {self.episodes:,} episodes, "
            f"alpha "
            f"= {self.alpha:g})"
        )


def require_watchable(agent: Agent) -> CountingAgent:
    """Refuse an agent whose promise is not about the expected return of every episode."""
    if not isinstance(agent, CountingAgent):
        raise InvalidSetting(
            "A watchdog makes an agent play its baseline, but no baseline of "
            f"{type(agent).__name__} is known. Make it an sf.CountingAgent."
        )
    reason = _why_not_watchable(agent)
    if reason is not None:
        raise InvalidSetting(f"{agent.name} {reason}. Leave watchdog out.")
    if isinstance(agent.floor, BaselineFloor):
        raise InvalidSetting(f"{agent.name} {NO_NUMBER}")
    return agent


def _why_not_watchable(agent: CountingAgent) -> str | None:
    """Say why no watchdog fits this agent; None if one does."""
    if agent.cost_budget is not None:
        return "keeps costs within a budget, and a watchdog looks at returns"
    if agent.floor is None:
        return "keeps no floor: there is nothing to watch"
    if agent.in_sum:
        return (
            "keeps the sum of all episodes above the floor, and single ones may be below: a "
            "watchdog looks at each"
        )
    if agent.problem.rewards_at_least:
        return (
            "knows only lower bounds of some rewards: returns computed from them may be below "
            "the true ones"
        )
    return None


def begin_watch(watchdog: "Watchdog | Watch | None", agent: Agent) -> Watch | None:
    """Return the state to start with: a new one, or the given one if it belongs to this agent."""
    if not isinstance(watchdog, Watch):
        require_watchdog(watchdog)
        return None if watchdog is None else watchdog.on(agent)
    if Watchdog(watchdog.bet.alpha).on(agent).bet != watchdog.bet:
        raise InvalidSetting(
            "The watch belongs to another agent: its floor or problem differ. Give sf.Watchdog()."
        )
    return watchdog


def require_watchdog(given: object) -> None:
    """Refuse what is no watchdog; None: there is none."""
    if given is not None and not isinstance(given, Watchdog):
        raise InvalidSetting(f"watchdog is {given!r}, expected sf.Watchdog(alpha=0.01), or None.")


def _log_sum(logs: list[float]) -> float:
    """Return the logarithm of the sum of exponentials."""
    most = max(logs)
    return most + math.log(math.fsum(math.exp(x - most) for x in logs))
