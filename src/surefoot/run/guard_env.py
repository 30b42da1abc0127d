"""guard_env: a guard over policies of any kind, in any Gymnasium environment."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.agents.promise import Promise
from surefoot.audit.guard_ledger import GuardLedger
from surefoot.audit.watchdog import Alarm, Watch, Watchdog, require_watchdog
from surefoot.base.digest import digest
from surefoot.base.files import read_arrays, require_place, write_arrays
from surefoot.base.progress import ctrl_c, progress_bar
from surefoot.base.validation import require_integer, require_mapping, told
from surefoot.errors import (
    InvalidEpisode,
    InvalidFile,
    InvalidPolicy,
    InvalidSetting,
    printable_lines,
)
from surefoot.guard import Guard, GuardPlan, GuardState
from surefoot.guard.guard import BASELINE, require_guard
from surefoot.guard.saved import ARRAYS, state_arrays, state_from
from surefoot.guard.state import OPEN, Ticket
from surefoot.run.alarms import OnAlarm, require_on_alarm, tell_alarm, tell_range_alarm
from surefoot.run.journal import Journal, Outcome, Told, only_writer
from surefoot.run.kept_ledger import Remembered, ledger_arrays, remembered
from surefoot.run.learn import called, episode_seed
from surefoot.run.saved_state import SAVE_SECONDS, goes_on, require_file
from surefoot.run.streams import COIN, CounterStream
from surefoot.worlds.environments import Env, EnvOrId, make
from surefoot.worlds.gymnasium import as_action

Act = Callable[[Any], Any]
KIND = "guarding"


@dataclass(frozen=True, eq=False)
class GuardedRun:
    """What happened in a guarded environment. Returns are what episodes were paid, in the
    environment's units.
    """

    guard: Guard
    state: GuardState  # after the last episode: `guard.plan(run.state)` says what is certified now
    episodes: int
    mean_return: dict[str, float | None]  # of each policy; None: no return is known
    played: dict[str, int]
    failed: int  # episodes whose policy raised an error: they count as the worst return
    refused: int  # episodes whose return was refused: they, too
    last_failure: str  # the last of these errors
    alarm: str
    interrupted: bool
    seconds: float
    # the episodes up to the one after which a watchdog raised the alarm
    alarm_after: int | None = None

    @property
    def plan(self) -> GuardPlan:
        """What would be played next, and why."""
        return self.guard.plan(self.state)

    @property
    def promise(self) -> Promise:
        """What is promised of every episode. After an alarm: nothing."""
        return self.plan.promise

    def explain(self) -> str:
        """Return the explanation of the next plan, after an alarm and what failed."""
        parts = [self._alarm] if self.alarm else []
        if self.failed or self.refused:
            parts.append(
                f"{self._trouble}: they count as the worst returns. The last one: "
                f"{self.last_failure}"
            )
        return printable_lines("\n\n".join([*parts, self.plan.explain()]))

    @property
    def _alarm(self) -> str:
        text = self.alarm.rstrip(".")
        return f"{text if text.startswith('ALARM') else f'ALARM: {text}'}."

    @property
    def _trouble(self) -> str:
        counts = [(self.failed, "whose policy FAILED"), (self.refused, "whose return was REFUSED")]
        found = ", and ".join(f"{n:,} {what}" for n, what in counts if n)
        return f"{found} (of {self.episodes:,} episodes)" if found else ""

    def __repr__(self) -> str:
        trouble = f", {self._trouble}" if self._trouble else ""
        alarm = f"{self._alarm} " if self.alarm else ""
        return printable_lines(
            f"GuardedRun({alarm}{self.episodes:,} episodes, played {self.played}{trouble}, "
            f"next: {self.plan!r})"
        )


def guard_env(
    env: EnvOrId,
    guard: Guard,
    *,
    baseline: Any,
    candidate: Any,
    episodes: int,
    seed: int,
    fingerprints: Mapping[str, str] | None = None,
    logged: Iterable[float | None] | None = None,
    save: str | Path | None = None,
    resume: bool = False,
    progress: bool | None = None,
    ledger: str | Path | None = None,
    watchdog: Watchdog | None = None,
    on_alarm: OnAlarm | None = None,
) -> GuardedRun:
    """Play `episodes` episodes of any Gymnasium environment under a guard.

    A policy is a function of the observation, or anything with `predict(observation)`, which may
    return an action, an action with a state (Stable-Baselines3), or a batch of one (scikit-learn,
    which is given a batch of one, too). `candidate` is one policy, or several by name: `{"ppo-7":
    model}`. `fingerprints` are theirs, and the baseline's.

    Before each episode the coin is drawn from (seed, number of the episode) alone, and so is the
    environment's seed. The draw is recorded first: a policy that raises an error leaves its ticket
    open, and the episode counts as the worst return. A return is what an episode paid until it was
    terminated or truncated. With `save` a run can be interrupted and continued with `resume=True`:
    it ends with the same bits, if policies and environment depend on nothing but their observations
    and the seed. With more `episodes` than before, a run that was finished goes on, to the bits of
    one that was asked for all of them at once. Each draw is on disk before its episode begins, in a
    journal beside the file: an episode that was broken off (the process was killed, the second
    Ctrl-C, an error of the environment) is not played again, and counts as the worst return, too. A
    file that another process is writing is refused: one process at a time goes on with a run.

    `ledger` is a file for every plan, which `check_ledger` re-derives; the file of a run remembers
    where it is, and resume=True continues it. A `watchdog` holds returns against an absolute floor:
    after an alarm only the baseline is played. Every alarm, also that of a return outside the
    declared range, is a warning in the log "surefoot", and `on_alarm(alarm)` is called with an
    `sf.Alarm`, or with a text where a range was false: `str(alarm)` says why.
    """
    started = time.perf_counter()
    require_file(save, resume)
    require_watchdog(watchdog)
    require_guard(guard)
    require_mapping("fingerprints", fingerprints, "texts by policy, such as {'ppo': '1f3a'}")
    made = make(env)
    number = require_integer("episodes", episodes, 1, InvalidSetting)
    seed = require_integer("seed", seed, 0, InvalidSetting)
    policies = {
        BASELINE: baseline,
        **(candidate if isinstance(candidate, Mapping) else {"candidate": candidate}),
    }
    known = dict(fingerprints or {})
    if set(known) - set(policies):
        raise InvalidSetting(
            f"fingerprints names {sorted(set(known) - set(policies))[0]!r}, which is no policy "
            "here."
        )
    require_on_alarm(on_alarm)
    names = list(called(made))
    identity = digest([guard.fingerprint, seed, names, list(policies), known, watchdog])
    state = guard.begin(logged, known.get(BASELINE), identity)
    for name in list(policies)[1:]:
        state = guard.admit(state, name, known.get(name))
    fresh = Played(state, None if watchdog is None else watchdog.on_guard(guard))
    file = RunFile(save, guard, identity, state)
    shown = {name: Actor(policy, made) for name, policy in policies.items()}
    alarms = Alarms(on_alarm, number)
    with only_writer(file.path):
        begun = file.begin(fresh, resume)
        if begun.state.tickets.n > number:
            raise InvalidFile(
                f"{save} holds {begun.state.tickets.n:,} episodes, found episodes={number:,}. A "
                f"run goes on, never back: resume with {begun.state.tickets.n:,} or more."
            )
        file.ledger = file.ledger_to_write(ledger, begun.state)
        with ctrl_c() as stop, progress_bar("Guard", number, progress) as report:
            done, interrupted = _play(
                made, guard, shown, begun, file, number, seed, alarms, stop, report
            )
    return _run(guard, done, interrupted, time.perf_counter() - started)


@dataclass(frozen=True)
class Played:
    """Where a run stands between two episodes."""

    state: GuardState
    watch: Watch | None
    failed: int = 0
    refused: int = 0
    last_failure: str = ""

    @property
    def alarm(self) -> Alarm | None:
        """That of the watchdog, if there is one."""
        return None if self.watch is None else self.watch.alarm


class Alarms:
    """Tells of an alarm once, and how many episodes follow it."""

    def __init__(self, on_alarm: OnAlarm | None, episodes: int) -> None:
        """Tell it to this function, in a run of so many episodes."""
        self._on_alarm, self._episodes, self._told = on_alarm, episodes, False

    def look(self, played: Played) -> None:
        """Tell of the alarm where there is one, and something is still to be said."""
        if self._told or not played.state.alarm:
            return
        self._told = True
        following = self._episodes - played.state.tickets.n
        if played.alarm is None:
            tell_range_alarm(played.state.alarm, self._on_alarm, following)
        else:
            tell_alarm(played.alarm, self._on_alarm, following)


def _play(
    env: Env,
    guard: Guard,
    actors: Mapping[str, "Actor"],
    played: Played,
    file: "RunFile",
    episodes: int,
    seed: int,
    alarms: Alarms,
    stop: Callable[[], bool],
    report: Callable[[int], None],
) -> tuple[Played, bool]:
    """Play episode after episode, and save now and then. Return where it ends, and whether it
    was interrupted.
    """
    coins, ledger = CounterStream(seed), file.ledger
    file.save(played)  # a folder that does not exist is refused now, not after the last episode
    try:
        if played.state.tickets.n < episodes:
            alarms.look(played)  # of a run that goes on
        while (k := played.state.tickets.n) < episodes and (file.tells(k) or not stop()):
            plan = guard.plan(played.state)
            if ledger is not None:
                ledger.write(plan)
            state, ticket = guard.draw(played.state, plan, coins.at(k, COIN))
            outcome = file.told(ticket)
            played = replace(played, state=state)  # recorded, whatever happens from here on
            if outcome is None:
                file.drawn(ticket)
                outcome = actors[ticket.policy].outcome(env, episode_seed(seed, k))
                file.ended(ticket, outcome)
            played = _after(guard, played, ticket, outcome)
            report(k + 1)
            alarms.look(played)
            file.save_now_and_then(played)
        interrupted = played.state.tickets.n < episodes
        if ledger is not None and not interrupted:
            ledger.close(played.state)
    finally:
        file.save(played)
    return played, interrupted


def _after(guard: Guard, played: Played, ticket: Ticket, outcome: Outcome) -> Played:
    """Return where a run stands after an episode. Without a return its ticket stays open."""
    if outcome.failure:
        _warn(played, ticket, outcome.failure)
        return replace(played, failed=played.failed + 1, last_failure=outcome.failure)
    if outcome.ret is None:
        return played
    try:
        state = guard.settle(played.state, ticket, outcome.ret)
    except InvalidEpisode as refusal:
        _warn(played, ticket, str(refusal))
        return replace(played, refused=played.refused + 1, last_failure=str(refusal))
    counted = state.tickets.row(ticket.number)[2]
    return _watched(guard, replace(played, state=state), counted)


def _warn(before: Played, ticket: Ticket, why: str) -> None:
    """Say in the log "surefoot" that an episode failed, once in a run: `run` tells how many did."""
    if not before.failed + before.refused:
        text = (
            "Episode %d of policy %r failed, and counts as the worst return: %s. Later "
            "failures "
            "are only counted."
        )
        logging.getLogger("surefoot").warning(text, ticket.number, ticket.policy, why.rstrip("."))


def _watched(guard: Guard, played: Played, ret: float) -> Played:
    """Show a return to the watchdog; after an alarm the guard is frozen."""
    if played.watch is None or played.state.alarm:
        return played
    watch = played.watch.after(ret)
    state = played.state if watch.alarm is None else guard.freeze(played.state, str(watch.alarm))
    return replace(played, watch=watch, state=state)


class PolicyFailed(Exception):
    """A policy raised an error, or gave no action of the environment."""


class Actor:
    """A policy as a function of observations: a function, or anything with `predict`."""

    def __init__(self, policy: Any, env: Env) -> None:
        """Take the policy; whether `predict` wants a batch is found at its first observation."""
        if not callable(getattr(policy, "predict", policy)):
            raise InvalidPolicy(
                f"A policy is {type(policy).__name__}, expected a function of the observation, or "
                "an object with predict(observation)."
            )
        self._policy, self._space = policy, env.action_space
        self._act: Act | None = None if hasattr(policy, "predict") else policy

    def outcome(self, env: Env, seed: int) -> Outcome:
        """Play one episode, and return how it ended."""
        try:
            return Outcome(self.play(env, seed))
        except PolicyFailed as failure:
            return Outcome(None, str(failure))

    def play(self, env: Env, seed: int) -> float:
        """Play one episode, and return what it was paid. An error of the policy is a
        PolicyFailed.
        """
        observation, _ = env.reset(seed=seed)
        paid, over = 0.0, False
        while not over:
            action = self._action(observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            try:
                paid += float(reward)
            except (TypeError, ValueError):
                raise InvalidEpisode(
                    f"The environment paid {told(reward)}, expected a number."
                ) from None
            over = bool(terminated) or bool(truncated)
        return paid

    def _action(self, observation: Any) -> Any:
        try:
            if self._act is None:
                self._act = self._found(observation)
            return as_action(self._space, self._act(observation))
        except Exception as error:
            raise PolicyFailed(f"{type(error).__name__}: {error}") from error

    def _found(self, observation: Any) -> Act:
        """Return how to ask `predict`: with one observation, or with a batch of one."""
        try:
            as_action(self._space, self._one(observation))
        except Exception as first:
            try:
                as_action(self._space, self._of_batch(observation))
            except Exception:
                raise first from None
            return self._of_batch
        return self._one

    def _one(self, observation: Any) -> Any:
        found = self._policy.predict(observation)
        return found[0] if isinstance(found, tuple) else found

    def _of_batch(self, observation: Any) -> Any:
        return self._one(np.asarray(observation)[None])[0]


class RunFile:
    """The file of a run with its journal, or none."""

    def __init__(self, path: str | Path | None, guard: Guard, run: str, begun: GuardState) -> None:
        """Save the run with this fingerprint there."""
        self.path = None if path is None else require_place(path)
        self._guard, self._run, self._begun, self._saved = guard, run, begun, time.perf_counter()
        self._journal = (
            None
            if self.path is None
            else Journal(self.path.with_name(f"{self.path.name}.journal"), run)
        )
        # what the journal tells of episodes that are not in the file
        self._told: dict[int, Told] = {}
        self.ledger: GuardLedger | None = None  # the one that is written
        self._remembered: Remembered | None = None  # the one that the file speaks of

    def begin(self, fresh: Played, resume: bool) -> Played:
        """Return what is in the file, or the fresh one."""
        if self.path is None or self._journal is None:
            return fresh
        if not goes_on(self.path, resume):
            if self._journal.path.exists():
                raise InvalidFile(
                    f"{self._journal.path} tells of episodes of a run, but {self.path} does not "
                    "exist. Restore it, or choose another file: nothing is overwritten."
                )
            return fresh
        _, arrays = read_arrays(self.path, {KIND: (*ARRAYS, "run", "numbers", "failure")})
        if str(arrays["run"]) != self._run:
            raise InvalidFile(
                f"{self.path} belongs to another run: the guard, its policies' names or "
                "fingerprints, the environment, the seed or the watchdog differ. Resume with what "
                "it was begun with, or choose another file."
            )
        self._remembered = remembered(self.path, arrays)
        guard = self._guard
        state = state_from(self.path, arrays, guard.fingerprint, guard.low, guard.high)
        if not np.array_equal(state_arrays(self._begun)["logged"], arrays["logged"]):
            raise InvalidFile(
                f"{self.path} began with other logged returns. Resume with those it was begun with."
            )
        watch = None if fresh.watch is None else fresh.watch.restored(self.path, arrays)
        numbers = arrays["numbers"]
        if numbers.shape != (2,) or numbers.dtype != np.int64 or numbers.min() < 0:
            raise InvalidFile(
                f"{self.path}: the numbers of failures are not as written. Restore a copy."
            )
        failed, refused = numbers.tolist()
        self._told = {k: told for k, told in self._journal.read().items() if k >= state.tickets.n}
        return Played(
            guard.checked(self.path, state), watch, failed, refused, str(arrays["failure"])
        )

    def ledger_to_write(self, given: str | Path | None, state: GuardState) -> GuardLedger | None:
        """Return the ledger at this place, or the one that the file remembers. Another run's is
        never continued.
        """
        known = self._remembered
        path = known.path if given is None and known is not None else given
        if path is None:
            return None
        if known is None:
            return GuardLedger(path, self._guard)
        return GuardLedger.resume(path, self._guard, state, known.place)

    def tells(self, k: int) -> bool:
        """Was episode k begun by a process that was killed before it saved the run?"""
        return k in self._told

    def told(self, ticket: Ticket) -> Outcome | None:
        """Return how this episode ended for that process; None: it was never begun."""
        told = self._told.get(ticket.number)
        if told is None:
            return None
        if told.policy != ticket.policy:
            raise InvalidFile(
                f"{self.path}: its journal says that {told.policy!r} played episode "
                f"{ticket.number}, found {ticket.policy!r}. Resume with the version of surefoot "
                "that wrote it, or restore a copy."
            )
        return self._told.pop(ticket.number).outcome

    def drawn(self, ticket: Ticket) -> None:
        """Have the draw on disk before its episode begins."""
        if self._journal is not None:
            self._journal.drawn(ticket.number, ticket.policy)

    def ended(self, ticket: Ticket, outcome: Outcome) -> None:
        """Write how an episode ended."""
        if self._journal is not None:
            self._journal.ended(ticket.number, outcome)

    def save(self, played: Played) -> None:
        """Write where the run stands, whole or not at all. Its journal has nothing more to tell
        then.
        """
        if self.path is None or self._journal is None:
            return
        watch: Mapping[str, Any] = {} if played.watch is None else played.watch.arrays()
        numbers = np.array([played.failed, played.refused])
        about = {"run": self._run, "numbers": numbers, "failure": played.last_failure or " "}
        kept = ledger_arrays(self.ledger, self.path)  # on disk before the state that remembers it
        write_arrays(self.path, KIND, {**state_arrays(played.state), **watch, **kept, **about})
        if not self._told:
            self._journal.remove()
        self._saved = time.perf_counter()

    def save_now_and_then(self, played: Played) -> None:
        """Save if that was last done some time ago."""
        if time.perf_counter() - self._saved > SAVE_SECONDS:
            self.save(played)


def _run(guard: Guard, played: Played, interrupted: bool, seconds: float) -> GuardedRun:
    state, columns = played.state, played.state.tickets.columns
    mean_return: dict[str, float | None] = {}
    episodes: dict[str, int] = {}
    for p, policy in enumerate(state.policies):
        returns = columns.ret[columns.policy == p]
        known = returns[~np.isnan(returns)]
        mean_return[policy.name] = float(known.mean()) if len(known) else None
        episodes[policy.name] = len(returns)
    alarmed_at = None
    if played.alarm is not None:  # a watchdog counts the episodes that have a return
        alarmed_at = int(np.flatnonzero(columns.code != OPEN)[played.alarm.episodes - 1]) + 1
    return GuardedRun(
        guard,
        state,
        state.tickets.n,
        mean_return,
        episodes,
        played.failed,
        played.refused,
        played.last_failure.strip(),
        state.alarm,
        interrupted,
        seconds,
        alarmed_at,
    )
