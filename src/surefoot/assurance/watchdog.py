"""Watchdog: is the promise still supported by what is observed?

The promise says E[G_k | past] = V^{pi_k} >= floor for the return G_k of every episode k, whatever was drawn before, the
coin of EpsMix included. Rescale returns to [0, 1] by the range in which they must lie, and the floor with them to f. A
bet of lambda >= 0 against the promise multiplies its stake in episode k by

    1 + lambda (f - G_k),    lambda (1 - f) < 1, so that it is positive,

whose expectation is at most 1 given the past while the promise holds. Start with capital 1, some of it bet from the
first episode and the rest put in bit by bit by a fixed plan: what was made of it, W_k, is a non-negative
supermartingale, and by Ville's inequality

    P(W_k >= 1/alpha for some k while the promise holds) <= alpha,

for ever. Nothing is assumed about the process: neither that it is Markov, nor that it does not change, nor a model.
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surefoot.agents.base import Agent, CountingAgent
from surefoot.agents.explanation import SpliceGrounds
from surefoot.agents.floors import Relative
from surefoot.agents.plan import Plan
from surefoot.agents.returns import Returns, returns_range
from surefoot.base.arrays import AnyArray, Floats
from surefoot.base.files import read_arrays, write_arrays
from surefoot.base.validation import SMALLEST_DELTA, freeze, require_number
from surefoot.errors import InvalidEpisode, InvalidFile, InvalidSetting
from surefoot.task.policy import EpisodicMixture, uniform
from surefoot.task.problem import Units

# Bets for shortfalls of these parts of the range (for returns of 0 or 1, d / (f(1-f)) grows fastest at a shortfall of
# d), and the capital of each.
SHORTFALLS = (0.02, 0.08, 0.3)
CAPITAL = (0.125, 0.75, 0.125)
AT_ONCE = 0.75  # the part of it that is bet from the first episode; the rest comes later, for what changes later
LEAST_VARIANCE = 0.01  # near the ends of the range f(1-f) would make bets too large
MOST = 0.9  # lambda (1 - f) is at most this: no stake is ever lost as a whole
# The floor is held against this much less (a part of the range). It covers what rounding does to a return and an ulp
# that a reward may be outside its range; and, taken off in every episode, far more than rounding adds to a logarithm.
MARGIN = 1e-8
LEAST_SPAN = 1e-6  # of H: a range that is a point is made wider, which is sound


@dataclass(frozen=True)
class Watchdog:
    """Looks at every episode's return, and gives alarm when returns are too low for the promise to be true.

    If every episode's policy is above the floor, the probability that it EVER gives alarm is at most `alpha`. Given to
    `learn(..., watchdog=)` or `Learner(..., watchdog=)`: after an alarm the learner plays its baseline alone.
    """

    alpha: float = 0.01

    def __post_init__(self) -> None:
        meaning = "a number strictly between 0 and 1, such as 0.01: how likely a false alarm may ever be"
        alpha = require_number("alpha", self.alpha, meaning)
        if not SMALLEST_DELTA <= alpha < 1.0:
            raise InvalidSetting(f"alpha is {alpha:g}, expected {meaning}.")
        freeze(self, alpha=alpha)

    def on(self, agent: Agent, path: str | Path | None = None) -> "Watch":
        """Begin to watch this learner; or go on from the file that `Watch.save` wrote."""
        watched = require_watchable(agent)
        problem, floor = watched.problem, watched.floor
        assert isinstance(floor, float)
        low, span, rounding = returns_range(problem, uniform(problem.H, problem.S, problem.A), Returns())
        width = max(span + rounding, LEAST_SPAN * problem.H)
        watch = Watch(Bet.on(self.alpha, floor, low, width), problem.units)
        return watch if path is None else watch.restored(path, *_read(path))


class Bet(NamedTuple):
    """What is fixed before the first episode."""

    alpha: float
    floor: float  # in units of return, 0..H
    low: float  # the lowest return that an episode can have
    span: float  # from there to the highest
    f: float  # the floor as a part of that range; no lower than the lowest return, which nothing can miss
    stakes: tuple[float, ...]  # lambda

    @classmethod
    def on(cls, alpha: float, floor: float, low: float, span: float) -> "Bet":
        """The bets for this floor."""
        f = max((floor - low) / span, 0.0)
        return cls(alpha, floor, low, span, f, stakes(f))


def stakes(f: float) -> tuple[float, ...]:
    """lambda for each shortfall, with lambda (1 - f) <= MOST. A floor above the range is one at its end."""
    room = 1.0 - min(f, 1.0)
    variance = max(min(f, 1.0) * room, LEAST_VARIANCE)
    return tuple(min(d / variance, MOST / room if room > 0.0 else math.inf) for d in SHORTFALLS)


def put_in(k: int) -> float:
    """What is put in before episode k = 1, 2, ...: a share of 1/((m+1)(m+2)) for 2^m <= k < 2^(m+1), evenly.

    All of it together is what was not bet at once. So late changes are found, too: after a delay that grows with the
    logarithm of the number of episodes before.
    """
    m = k.bit_length() - 1
    return (1.0 - AT_ONCE) / ((m + 1) * (m + 2) * (1 << m))


@dataclass(frozen=True)
class Watch:
    """A watchdog's state after some episodes. It is what has to be saved; `after` makes the next one."""

    bet: Bet
    units: Units
    episodes: int = 0
    total: float = 0.0  # sum of returns
    log_wealth: tuple[float, ...] = field(default=(math.log(AT_ONCE),) * len(SHORTFALLS))
    # Since when returns have been low, for the message: how long, the sum of returns, and the logarithm won.
    last: int = 0
    total_of_last: float = 0.0
    streak: float = 0.0

    @property
    def log_capital(self) -> float:
        """log W: the capital that was bet, and what became of it. What is not put in yet is left out."""
        return _log_sum([math.log(share) + wealth for share, wealth in zip(CAPITAL, self.log_wealth, strict=True)])

    @property
    def alarmed(self) -> bool:
        """Has it given alarm? Then it watches no more, and this stays so."""
        return self.log_capital >= -math.log(self.bet.alpha)

    @property
    def alarm(self) -> "Alarm | None":
        """Why, in numbers; None while there is no alarm."""
        if not self.alarmed:
            return None
        last, total_of_last = (self.last, self.total_of_last) if self.last else (self.episodes, self.total)
        return Alarm(
            floor=self.bet.floor,
            alpha=self.bet.alpha,
            episodes=self.episodes,
            mean_return=self.total / self.episodes,
            last=last,
            mean_of_last=total_of_last / last,
            units=self.units,
        )

    def after(self, G: float) -> "Watch":
        """The state after an episode with this return (0..H)."""
        if self.alarmed:
            return self
        bet = self.bet
        g = (G - bet.low) / bet.span
        if not -1e-9 <= g <= 1.0 + 1e-9:
            low, high, found = (self.units.to_user(x) for x in (bet.low, bet.low + bet.span, G))
            raise InvalidEpisode(
                f"The episode's return is {found:.6g}, outside the range ({low:.6g}, {high:.6g}) that follows from the "
                "problem. A premise is false: correct the problem. Nothing was counted."
            )
        x = bet.f - MARGIN - g
        won = [math.log1p(stake * x) for stake in bet.stakes]
        more = math.log(put_in(self.episodes + 1))
        wealth = tuple(_log_sum([before, more]) + gain for before, gain in zip(self.log_wealth, won, strict=True))
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

    def frozen(self, plan: Plan, agent: CountingAgent) -> Plan:
        """What is played after an alarm: the baseline alone, whatever this plan would have been."""
        grounds, policy = plan.grounds, agent.pi_b
        proved = 0.0
        if isinstance(grounds, SpliceGrounds):
            proved = max(grounds.by_model, grounds.by_returns, grounds.agent.proved_before)
        coin = isinstance(plan.policy, EpisodicMixture)
        return Plan(
            policy=EpisodicMixture(policy, plan.policy.second, 0.0) if coin else policy,  # type: ignore[union-attr]
            source="baseline",
            h=agent.problem.H,
            rho=0.0,
            lower=proved,
            upper=plan.upper,
            candidates=plan.candidates,
            safety="NOT CERTIFIED" if plan.safety == "NOT CERTIFIED" else "trusted",
            grounds=grounds,
            alarm=str(self.alarm),
        )

    def arrays(self) -> dict[str, Floats]:
        """The state, and what it was about."""
        bet, state = self.bet, (self.episodes, self.total, self.last, self.total_of_last, self.streak)
        return {
            "watch_about": np.array([bet.alpha, bet.floor, bet.low, bet.span]),
            "watch_state": np.array([*state, *self.log_wealth], dtype=np.float64),
        }

    def save(self, path: str | Path) -> None:
        """Written whole or not at all; `Watchdog.on(agent, path)` goes on from it."""
        write_arrays(path, "watch", self.arrays())

    def restored(self, path: str | Path, about: AnyArray, state: AnyArray) -> "Watch":
        """The state that `arrays` wrote, if it is of the same learner and alpha."""
        mine = self.arrays()
        if about.shape != (4,) or state.shape != mine["watch_state"].shape or state.dtype != np.float64:
            raise InvalidFile(f"{path}: what the watchdog saw is not as it was written: the file is damaged.")
        if not np.array_equal(about, mine["watch_about"]):
            raise InvalidFile(f"{path} is of another watchdog: alpha, the floor or the problem differ.")
        episodes, total, last, total_of_last, streak, *wealth = (float(x) for x in state)
        whole = episodes.is_integer() and last.is_integer() and 0 <= last <= episodes
        if not (whole and np.isfinite(state).all() and streak >= 0.0 and (streak > 0.0) == (last > 0)):
            raise InvalidFile(f"{path}: what the watchdog saw cannot be: the file is damaged. Restore a copy.")
        return replace(
            self,
            episodes=int(episodes),
            total=total,
            log_wealth=tuple(wealth),
            last=int(last),
            total_of_last=total_of_last,
            streak=streak,
        )


class Alarm(NamedTuple):
    """Why a watchdog gave alarm. Returns are in 0..H; in words they are in the user's units."""

    floor: float
    alpha: float
    episodes: int  # watched when it came
    mean_return: float  # of those
    last: int  # for so many episodes returns have been low
    mean_of_last: float
    units: Units

    def __str__(self) -> str:
        floor, mean, recent = (
            f"{self.units.to_user(x):.6g}" for x in (self.floor, self.mean_return, self.mean_of_last)
        )
        seen = f"over {self.episodes:,} episodes the mean return was {mean}"
        if self.last < self.episodes:
            seen += f", and over the last {self.last:,} of them {recent}"
        return (
            f"ALARM after {self.episodes:,} episodes: the promise is not supported by what was observed. The floor is "
            f"{floor} an episode; {seen} (units of return). If every episode's policy were worth the floor, the chance "
            f"of ever seeing this would be at most {self.alpha:g}. Most likely a premise is false: the process has "
            "changed, it is not Markov, or the baseline is below the floor. The baseline alone is played from now on. "
            "Find out which premise it is, and begin anew without these counts."
        )

    @property
    def label(self) -> str:
        """In a few words, beside a promise."""
        return f"not supported by what was observed (alarm after {self.episodes:,} episodes, alpha = {self.alpha:g})"


def require_watchable(agent: Agent) -> CountingAgent:
    """Refuse a learner whose promise is not one about the expected return of every episode."""
    if not isinstance(agent, CountingAgent):
        raise InvalidSetting(
            f"A watchdog freezes a learner to its baseline, and {type(agent).__name__} has none that is known here. "
            "Make it an sf.CountingAgent."
        )
    reason = (
        "keeps costs within a budget, and a watchdog looks at returns"
        if agent.cost_budget is not None
        else "keeps no floor: there is nothing to watch"
        if agent.floor is None
        else "keeps the sum of all episodes above the floor, and single ones may be below: a watchdog looks at each"
        if agent.in_sum
        else "has a floor relative to what the baseline is worth, which nobody knows: there is no number to hold "
        "returns against. Use a floor in units of return"
        if isinstance(agent.floor, Relative)
        else "knows rewards only as what is paid at least: returns summed by them may be below the true ones"
        if agent.problem.rewards_at_least
        else ""
    )
    if reason:
        raise InvalidSetting(f"{agent.name} {reason}. Leave watchdog out.")
    return agent


def begin_watch(watchdog: "Watchdog | Watch | None", agent: Agent) -> Watch | None:
    """The state to begin with: a fresh one, or the one given, if it is of this learner."""
    if watchdog is None:
        return None
    if isinstance(watchdog, Watchdog):
        return watchdog.on(agent)
    if not isinstance(watchdog, Watch):
        raise InvalidSetting(f"watchdog is {watchdog!r}, expected sf.Watchdog(alpha=0.01), or None.")
    if Watchdog(watchdog.bet.alpha).on(agent).bet != watchdog.bet:
        raise InvalidSetting("The watch is of another learner: its floor or problem differ. Give sf.Watchdog().")
    return watchdog


def _read(path: str | Path) -> tuple[AnyArray, AnyArray]:
    _, arrays = read_arrays(path, {"watch": ("watch_about", "watch_state")})
    return arrays["watch_about"], arrays["watch_state"]


def _log_sum(logs: list[float]) -> float:
    """log of the sum of exponentials."""
    most = max(logs)
    return most + math.log(math.fsum(math.exp(x - most) for x in logs))
